package fs

import (
	"runtime"
	"syscall"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
)

// TestWasElsewhere: what may not be read isn't compared by another name of its folder either.
func TestWasElsewhere(t *testing.T) {
	runtime.LockOSThread() // for good: the mounts are this thread's, and end with it
	if err := syscall.Unshare(syscall.CLONE_FS | syscall.CLONE_NEWNS); err != nil {
		t.Skip("nothing can be mounted here:", err)
	}
	w := newWorld(t, Plugin())
	w.put(w.at("private/key"), "secret")
	w.put(w.at("other/x"), "")
	must.NoError(t, syscall.Mount("", "/", "", syscall.MS_PRIVATE|syscall.MS_REC, ""))
	must.NoError(t, syscall.Mount(w.at("private"), w.at("other"), "", syscall.MS_BIND, ""))
	t.Cleanup(func() { must.NoError(t, syscall.Unmount(w.at("other"), syscall.MNT_DETACH)) })
	h := w.hold(denying("read:private"))
	h.refused("denied", "fs.read", "path", "other/key")
	h.refused("denied", "fs.write", "path", "other/key", "content", "x", "was", hashOf("secret"))
}
