package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
)

// TestStrangers: nobody is taken for a stranger whose parent ended between two reads, or whose number, or its parent's,
// was a stranger's.
func TestStrangers(t *testing.T) {
	const root = 100
	of := func(pid, parent int, started int64) *Member {
		return &Member{PID: pid, Parent: parent, started: started, inode: uint64(pid)}
	}
	found := map[int]*Member{}
	for _, m := range []*Member{
		of(1, 0, 0), of(2, 1, 1), of(3, 2, 2), of(5, 4, 2), // strangers; 4 is known
		of(101, root, 10), of(102, 101, 11), of(103, 102, 12),
		of(104, 99, 13),                 // whose parent is gone
		of(105, 3, 1), of(106, 105, 14), // whose parent's number is another's
		of(107, 108, 15), of(108, 107, 15),
	} {
		found[m.PID] = m
	}
	c := &Census{strangers: map[int]uint64{4: 4}}
	var members []int
	for _, m := range c.sort(root, found) {
		members = append(members, m.PID)
	}
	slices.Sort(members)
	if !slices.Equal(members, []int{101, 102, 103}) {
		t.Errorf("the descendants are %d", members)
	}
	for pid := range found {
		if _, strange := c.strangers[pid]; strange != (pid < root) {
			t.Errorf("%d is a stranger: %v", pid, strange)
		}
	}
}

// TestNumbersUsedAgain: a mark is of a process, and not of its number.
func TestNumbersUsedAgain(t *testing.T) {
	cmd := exec.Command("sleep", "600")
	must.NoError(t, cmd.Start())
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	pid := cmd.Process.Pid
	c := &Census{}
	isMember := func() bool {
		return slices.ContainsFunc(c.Take(os.Getpid(), false), func(m Member) bool { return m.PID == pid })
	}
	if !isMember() {
		t.Fatal("a child isn't counted")
	}
	var folder syscall.Stat_t
	must.NoError(t, syscall.Lstat(fmt.Sprint("/proc/", os.Getpid()), &folder))
	c.strangers[pid] = folder.Ino // another process's
	if !isMember() {
		t.Error("a child that has a stranger's number isn't counted")
	}
	must.NoError(t, syscall.Lstat(fmt.Sprint("/proc/", pid), &folder))
	c.strangers[pid] = folder.Ino
	const ended = 1 << 30 // no process has such a number
	c.strangers[ended] = 1
	if isMember() {
		t.Error("strangers are asked again")
	}
	if _, marked := c.strangers[ended]; marked {
		t.Error("the mark of one that ended stays")
	}
}
