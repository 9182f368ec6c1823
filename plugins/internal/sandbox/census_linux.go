package sandbox

import (
	"bytes"
	"maps"
	"os"
	"strconv"
	"syscall"
)

// A Census tells which processes descend from another. It remembers who doesn't
// for a while, since most of a system's processes are somebody else's.
type Census struct {
	strangers map[int]uint64 // the inodes of their folders in /proc, which a later process of that number has not
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
	started     int64 // since the system did, in ticks
	inode       uint64
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
	known := c.strangers
	if c.count++; c.count%remembered == 0 {
		known = nil
	}
	c.strangers = map[int]uint64{} // not those that ended
	found := map[int]*Member{}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == root {
			continue
		}
		var folder syscall.Stat_t
		if syscall.Lstat("/proc/"+name, &folder) != nil {
			continue
		}
		if !all && known[pid] == folder.Ino {
			c.strangers[pid] = folder.Ino
			continue
		}
		if m := memberOf(name); m != nil {
			m.PID, m.inode = pid, folder.Ino
			found[pid] = m
		}
	}
	return c.sort(root, found)
}

// sort returns the descendants among those found. The others are strangers, but for those of whom it isn't known:
// a parent may have ended before it was read, and another may have its number.
func (c *Census) sort(root int, found map[int]*Member) (members []Member) {
	known := maps.Clone(c.strangers) // of whom none was read
	for pid, m := range found {
		// What was read at different times may even go in a circle.
		up := m
		for range found {
			next := found[up.Parent]
			if up.Parent == root || next == nil || next.started > up.started {
				break
			}
			up = next
		}
		switch _, strange := known[up.Parent]; {
		case up.Parent == root:
			members = append(members, *m)
		case strange || up.Parent <= 1:
			c.strangers[pid] = m.inode
		}
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
	return &Member{Ended: fields[0][0] == 'Z', Parent: int(number(1)), Group: int(number(2)), Threads: int(number(17)), started: number(19), Pages: number(21)}
}
