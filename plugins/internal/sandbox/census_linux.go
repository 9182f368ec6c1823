package sandbox

import (
	"bytes"
	"os"
	"strconv"
)

// A Census tells which processes descend from another. It remembers who doesn't
// for a while, since most of a system's processes are somebody else's.
type Census struct {
	strangers map[int]int // until which count they are taken for that
	count     int
}

// remembered is for how many counts somebody is known to be a stranger.
const remembered = 40

// A Member is a descendant.
type Member struct {
	PID, Parent int
	Group       int
	Ended       bool // and wasn't reaped yet
	Threads     int
	Pages       int64 // in memory
}

// Take counts the descendants of a process; all of them asks everybody.
func (c *Census) Take(root int, all bool) []Member {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	if c.count++; c.count%remembered == 0 || c.strangers == nil {
		c.strangers = map[int]int{}
	}
	found := map[int]*Member{}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == root || !all && c.strangers[pid] > c.count {
			continue
		}
		if m := memberOf(name); m != nil {
			m.PID = pid
			found[pid] = m
		}
	}
	var members []Member
	for pid, m := range found {
		// What was read at different times may even go in a circle.
		up, left := m, len(found)
		for up != nil && up.Parent != root && left > 0 {
			up, left = found[up.Parent], left-1
		}
		if up == nil || up.Parent != root {
			c.strangers[pid] = c.count + remembered
			continue
		}
		members = append(members, *m)
	}
	return members
}

// memberOf reads proc_pid_stat(5); nil where there is no such process any more.
func memberOf(name string) *Member {
	text, err := os.ReadFile("/proc/" + name + "/stat")
	if err != nil {
		return nil
	}
	// The program's name is in parentheses, and may hold anything.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 22 {
		return nil
	}
	number := func(i int) int64 { n, _ := strconv.ParseInt(string(fields[i]), 10, 64); return n }
	return &Member{Ended: fields[0][0] == 'Z', Parent: int(number(1)), Group: int(number(2)), Threads: int(number(17)), Pages: number(21)}
}
