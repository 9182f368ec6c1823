package keeper

import (
	"os"
	"os/exec"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/mcp-pif/mcp-pif/plugins/internal/sandbox"
)

// keepers is the processes of this one's keepers.
var keepers = struct {
	sync.Mutex
	pids  map[int]bool
	ready bool
}{pids: map[int]bool{}}

// program is what runs now, whatever became of its path.
func program() (string, error) { return "/proc/self/exe", nil }

// startKeeper starts a keeper's process, and remembers it. What a keeper leaves
// that is killed becomes this process's own.
func startKeeper(cmd *exec.Cmd) error {
	keepers.Lock()
	defer keepers.Unlock()
	if !keepers.ready {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return err
		}
		keepers.ready = true
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	keepers.pids[cmd.Process.Pid] = true
	return nil
}

// endKeeper forgets a keeper that has ended, and where that was none of its own
// doing ends what it left: the children of this process that are no keepers and
// not of its group.
func endKeeper(pid int, orderly bool) {
	keepers.Lock()
	defer keepers.Unlock()
	delete(keepers.pids, pid)
	if orderly {
		return
	}
	self, group := os.Getpid(), syscall.Getpgrp()
	for c := (&sandbox.Census{}); ; {
		left := 0
		for _, m := range c.Take(self, true) {
			if m.Parent != self || m.Group == group || keepers.pids[m.PID] {
				continue
			}
			left++
			_ = syscall.Kill(m.PID, syscall.SIGKILL)
			_, _ = syscall.Wait4(m.PID, nil, 0, nil)
		}
		if left == 0 {
			return
		}
	}
}
