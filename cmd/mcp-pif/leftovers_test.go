//go:build linux

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// in lists what is there of a pattern.
func in(t *testing.T, pattern ...string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(pattern...))
	must.NoError(t, err)
	return found
}

// TestKilledServerLeavesNothing: what a server leaves that is killed in the middle of a
// write is gone when the next has started; what is another's stays.
func TestKilledServerLeavesNothing(t *testing.T) {
	temp, state, granted := t.TempDir(), t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temp)
	must.NoError(t, os.Mkdir(filepath.Join(granted, "d"), 0o700))
	theirs := filepath.Join(temp, "mcp-pif-mine")
	must.NoError(t, os.Mkdir(theirs, 0o700))
	flags := []string{"--profile", "p", "--cap", "fs:w=" + granted}
	for first, caught := true, false; !caught; first = false {
		p := withState(t, state, flags...)
		if first {
			p.makes("writes", `s => let done = !fs.write({path: "d/f", content: s}) in self(s)`, "fs.write:w")
		}
		p.request(1, "writes", strings.Repeat("x", 1<<20))
		wait.Until(t, "it writes", func() bool { return len(in(t, granted, "d", ".pif-*.tmp")) > 0 })
		p.cmd.Process.Kill()
		p.cmd.Wait()
		wait.Until(t, "its plugin is gone", func() bool {
			return !slices.ContainsFunc(in(t, "/proc", "[0-9]*", "environ"), func(name string) bool {
				env, err := os.ReadFile(name)
				return err == nil && strings.Contains(string(env), "TMPDIR="+temp+"/mcp-pif-run-")
			})
		})
		caught = len(in(t, granted, "d", ".pif-*.tmp")) > 0
	}
	if len(in(t, temp, "mcp-pif-run-*")) == 0 {
		t.Fatal("there is no folder of a server's")
	}
	p := withState(t, state, flags...)
	wait.Until(t, "the file is gone", func() bool { return len(in(t, granted, "d", ".pif-*")) == 0 })
	p.in.Close()
	_ = p.wait()
	if left := in(t, temp, "*"); len(left) != 1 || left[0] != theirs {
		t.Errorf("left are %q", left)
	}
}

// TestTourLeavesNothing: the tour takes its folder along when it is interrupted, and a
// server removes it where it was killed.
func TestTourLeavesNothing(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		cmd := self("mcp-pif", "tour")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // as a terminal's
		must.NoError(t, cmd.Start())
		wait.Until(t, "it has a folder", func() bool { return len(in(t, temp, "mcp-pif-run-*", "tools.db")) > 0 })
		must.NoError(t, syscall.Kill(-cmd.Process.Pid, sig))
		cmd.Wait()
		if left := in(t, temp, "*"); (len(left) > 0) != (sig == syscall.SIGKILL) {
			t.Errorf("after %v there are %q", sig, left)
		}
	}
	start(t).open() // nothing is granted
	wait.Until(t, "it is gone", func() bool { return len(in(t, temp, "*")) == 0 })
}
