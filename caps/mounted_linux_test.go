package caps_test

import (
	"runtime"
	"syscall"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// TestMounted: a folder that has another name, as a mount gives it here and a file system that takes A for a elsewhere, is
// meant by rules of flow and by denials all the same.
func TestMounted(t *testing.T) {
	runtime.LockOSThread() // for good: the mounts are this thread's, and end with it
	if err := syscall.Unshare(syscall.CLONE_FS | syscall.CLONE_NEWNS); err != nil {
		t.Skip("nothing can be mounted here:", err)
	}
	w := newWorld(t, "in/private/deep/key", "in/OTHER/", "in/open/", "out/")
	mount := func(from, to string) {
		t.Helper()
		must.NoError(t, syscall.Mount(w.path(from), w.path(to), "", syscall.MS_BIND, ""))
		t.Cleanup(func() { must.NoError(t, syscall.Unmount(w.path(to), syscall.MNT_DETACH)) })
	}
	must.NoError(t, syscall.Mount("", "/", "", syscall.MS_PRIVATE|syscall.MS_REC, ""))
	mount("in/private", "in/OTHER")
	mount("in", "out")
	meant := func(scope string) caps.Requests {
		t.Helper()
		r, err := caps.ParseRequests("fs:"+w.path(scope), "", w.kinds)
		must.NoError(t, err)
		return r
	}
	grants := w.grant("fs:./in", "fs:./out")
	for _, c := range []struct {
		scope, in, path string
		want            bool
	}{
		{"in/private", "./in", "OTHER/deep/key", true},
		{"in/private", "./in", "OTHER", true},
		{"in/private/deep", "./in", "OTHER", true},
		{"in/private/deep", "./in", "OTHER/key", false},
		{"in/private/new", "./in", "OTHER/NEW/x", true},
		{"in/private/new", "./in", "OTHER/DEEP/x", false},
		{"in/private/Deep", "./in", "OTHER/deep/x", false}, // another, since it is there
		{"in/private", "./in", "open/x", false},
		{"in/private", "./out", "private/deep/key", true},
		{"in/private", "./out", "open", false},
		{"out/private", "./in", "private/deep/key", true},
	} {
		p, f := w.permit(caps.NewLedger(), w.hold("fs.append:"+c.in), "fs.append", rec("path", c.path, "content", "x"))
		must.NoFault(t, f)
		r := meant(c.scope)
		if r.Meets(p) != c.want {
			t.Errorf("what lies in %s is met by %s of %s: want %v", c.scope, c.path, c.in, c.want)
		}
		if c.want && !r.Overlaps(p.Held.Grant) {
			t.Errorf("nothing of %s lies in %s", c.scope, c.in)
		}
	}
	for one, other := range map[string]string{"in/private": "in/OTHER", "in/OTHER/deep": "out/private", "in/private/new": "out/private/NEW"} {
		if a, b := meant(one), meant(other); !a.Together(&b) {
			t.Errorf("%s and %s have nothing in common", one, other)
		}
	}
	// What is kept in a place has its label only where it is surely there.
	p, f := w.permit(caps.NewLedger(), w.hold("fs.append:./in"), "fs.append", rec("path", "OTHER/NEW", "content", "x"))
	if r := meant("in/private/new"); f != nil || r.Keeps(p) {
		t.Errorf("it is the same file for sure: %v", f)
	}

	w.deny("fs:./in/private")
	for _, g := range grants {
		p, f := w.permit(caps.NewLedger(), w.hold("fs.append:"+g.Label), "fs.append", rec("path", "open/x", "content", "x"))
		if f != nil || len(p.Denies) == 0 || p.Denies[0].Scope != "private" {
			t.Errorf("the denial isn't of %s: %v", g.Label, f)
		}
	}
}
