//go:build linux

package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// TestHandles: a session is found by its name alone, under its own grant.
func TestHandles(t *testing.T) {
	p, c := Plugin(), mapped(t, helper(t, "echo"))
	one, other := open(t, p, "one", c), open(t, p, "other", c)
	same, apart := open(t, p, "one", c), open(t, Plugin(), "one", c)
	s := one.start()
	if len(s) != 32 {
		t.Errorf("its name is %s", s)
	}
	same.does("send", "session", s, "text", "a\n")
	one.until(s, "echo a\n")
	for _, h := range []holder{other, apart} {
		for _, operation := range []string{"read", "send", "status", "wait_for", "stop"} {
			h.fails("not_found", operation, s)
		}
		h.fails("not_found", "signal", "session", s, "signal", "KILL")
		if v := h.does("list"); fmt.Sprint(v) != fmt.Sprint(apart.does("list")) {
			t.Errorf("it lists %v", v)
		}
	}
	for _, guess := range []string{"", "0", strings.Repeat("0", 32), strings.ToUpper(s), s + " ", s[:31], "../" + s, "*"} {
		one.fails("not_found", "read", guess)
	}
	one.fails("denied", "start", "name", "other")
	one.fails("denied", "start", "name", "one; id")
	other.start()
	one.does("stop", s)
	if two := one.start(); two == s {
		t.Error("a name came twice")
	}
	// Ended sessions are forgotten at last, the first of them first.
	for range keptEnded + 1 {
		one.does("stop", one.start())
	}
	one.fails("not_found", "read", s)
	open(t, Plugin(), "unmapped", nil).fails("not_found", "start")
}

// TestNoShell: characters that a shell knows are text.
func TestNoShell(t *testing.T) {
	dir := t.TempDir()
	hostile := "$(touch " + dir + "/a); `touch " + dir + "/b` | touch " + dir + "/c > " + dir + "/d & *"
	c := helper(t, "args", hostile, "$HOME", "a\nb")
	c.Write = []string{dir}
	h := hold(t, c)
	if out, _, _ := h.rest(h.start()); out != fmt.Sprintf("%q\n", []string{hostile, "$HOME", "a\nb"}) {
		t.Errorf("%s", out)
	}
	if made, _ := os.ReadDir(dir); len(made) > 0 {
		t.Errorf("it made %v", made)
	}
}

// TestDoesntStart: what can't be started is refused without paths, and no session is
// left of it.
func TestDoesntStart(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "script")
	must.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\n"), 0o700))
	h := hold(t, sdk.Command{Args: []string{script}})
	if f := h.fails("failed", "start"); strings.Contains(f.Error()+f.Hint, dir) {
		t.Errorf("%v", f)
	}
	if fmt.Sprint(h.does("list")) != fmt.Sprint(open(t, Plugin(), "x", nil).does("list")) {
		t.Error("a session is left")
	}
}

// TestArguments: what can't be meant is refused.
func TestArguments(t *testing.T) {
	h := hold(t, helper(t, "echo"))
	s := h.start()
	for _, args := range [][]any{
		{"pattern", "("}, {"pattern", strings.Repeat("a", mostPattern+1)}, {"pattern", `(a{1000}){1000}`}, {"wait", -1},
		{"silence", -1}, {"max", 0}, {"max", mostMost + 1}, {"from", map[string]any{"stdout": 5, "stderr": 0}},
		{"from", map[string]any{"stdout": -1, "stderr": 0}}, {"stream", "stdin"}, {"encoding", "hex"},
	} {
		h.fails("invalid", "read", append([]any{"session", s}, args...)...)
	}
	h.fails("invalid", "send", "session", s, "text", "a", "bytes", "YQ==")
	if _, err := h.try("signal", "session", s, "signal", "SEGV"); err == nil {
		t.Error("a signal that there isn't")
	}
}
