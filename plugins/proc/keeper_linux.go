package proc

import (
	"bytes"
	"context"
	"errors"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcp-pif/mcp-pif/plugins/internal/sandbox"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// adopt makes this process the parent of every descendant whose parent ends: none
// gets away by leaving its group or its session.
func adopt() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// below is by how much the command's priority is lower than its keeper's, which has
// to count and end what multiplies.
const below = 5

// launch starts the command in a sandbox within this process's, which it can't
// reach out of: not to the plugin, its keeper or another session. ended is closed
// when it has ended; it isn't reaped, so that its number stays its own.
func launch(c *sdk.Command) (pid int, ended <-chan struct{}, err error) {
	rules, err := sandbox.Command(c.Path, c.Dir, c.Read, c.Write, c.Execute)
	if err != nil {
		return 0, nil, err
	}
	spec := sandbox.Spec{
		Path: c.Path, Args: c.Args, Env: environment(c), Dir: "/", Rules: rules, Fork: true, Mode: sandbox.Mode(c.Sandbox),
		Limits: sandbox.Limits{Memory: c.Memory},
	}
	if c.Dir != "" {
		spec.Dir = c.Dir
	}
	if c.Network {
		spec.Network = sandbox.Outgoing
		spec.Rules = append(spec.Rules, sandbox.Resolver()...)
	}
	if len(c.Write) > 0 {
		spec.Limits.FileSize = c.FileSize
	}
	l, err := sandbox.New(spec)
	if err != nil {
		return 0, nil, err
	}
	in, out, errs := os.NewFile(fdInput, "input"), os.NewFile(fdOutput, "output"), os.NewFile(fdErrors, "errors")
	l.Cmd.Stdin, l.Cmd.Stdout, l.Cmd.Stderr = in, out, errs
	// A session of its own, and where it has a terminal that is its terminal.
	l.Cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: c.PTY, Ctty: 0, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the signal of the parent's death is this thread's
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, below)
		_, err := l.Start(context.Background())
		started <- err
		select {}
	}()
	if err := <-started; err != nil {
		return 0, nil, err
	}
	// Held here, the command's end couldn't be seen by who reads.
	in.Close()
	out.Close()
	errs.Close()
	pid = l.Cmd.Process.Pid
	done := make(chan struct{})
	go func() {
		for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
		}
		close(done)
	}()
	return pid, done, nil
}

// sweep ends whatever is left of the session, and says how the command ended. It
// returns when this process has no descendants: a killed one's children become its
// own, so none is missed, and one that makes others as it is ended loses.
func (k *keeper) sweep(c *census) (how syscall.WaitStatus) {
	self, reaped := os.Getpid(), false
	_ = syscall.Kill(-k.main, syscall.SIGKILL) // all of its group at once
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		members := c.take(self, true)
		for _, m := range members {
			if m.state != 'Z' {
				_ = syscall.Kill(m.pid, syscall.SIGKILL)
			} else if m.parent == self && m.pid != k.main {
				_, _ = syscall.Wait4(m.pid, nil, syscall.WNOHANG, nil)
			}
		}
		if alone(members, k.main) && !reaped {
			pid, err := syscall.Wait4(k.main, &how, syscall.WNOHANG, nil)
			reaped = pid == k.main || errors.Is(err, syscall.ECHILD)
		}
		if reaped {
			// The kernel has the last word.
			if err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil); errors.Is(err, unix.ECHILD) {
				return how
			}
		}
		time.Sleep(wait)
	}
}

// alone reports whether the command's process is all there is.
func alone(members []member, main int) bool {
	return len(members) == 0 || len(members) == 1 && members[0].pid == main
}

// A census tells which processes descend from another. It remembers who doesn't
// for a while, since most of a system's processes are somebody else's.
type census struct {
	strangers map[int]int // until which count they are taken for that
	count     int
}

// remembered is for how many counts somebody is known to be a stranger.
const remembered = 40

// A member is a descendant.
type member struct {
	pid, parent int
	group       int
	state       byte
	threads     int
	pages       int64 // in memory
}

// take counts the descendants of a process; all of them asks everybody.
func (c *census) take(root int, all bool) []member {
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
	found := map[int]*member{}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == root || !all && c.strangers[pid] > c.count {
			continue
		}
		if m := memberOf(name); m != nil {
			m.pid = pid
			found[pid] = m
		}
	}
	var members []member
	for pid, m := range found {
		// What was read at different times may even go in a circle.
		up, left := m, len(found)
		for up != nil && up.parent != root && left > 0 {
			up, left = found[up.parent], left-1
		}
		if up == nil || up.parent != root {
			c.strangers[pid] = c.count + remembered
			continue
		}
		members = append(members, *m)
	}
	return members
}

// memberOf reads proc_pid_stat(5); nil where there is no such process any more.
func memberOf(name string) *member {
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
	return &member{state: fields[0][0], parent: int(number(1)), group: int(number(2)), threads: int(number(17)), pages: number(21)}
}

// threadsEach is how many threads a session may have for each process that it may
// be.
const threadsEach = 16

// over says which limit a session is over; "" for none. The ended are reaped on the
// way.
func (c *census) over(main int, limits *sdk.Command) string {
	self, processes, threads, pages := os.Getpid(), 0, 0, int64(0)
	for _, m := range c.take(self, false) {
		if m.state == 'Z' && m.parent == self && m.pid != main {
			_, _ = syscall.Wait4(m.pid, nil, syscall.WNOHANG, nil)
			continue
		}
		processes++
		threads += m.threads
		pages += m.pages
	}
	switch {
	case processes > limits.Processes || threads > threadsEach*limits.Processes:
		return "processes"
	case pages*int64(os.Getpagesize()) > limits.Memory:
		return "memory"
	}
	return ""
}
