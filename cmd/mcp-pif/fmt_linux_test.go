package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// TestFmtReadOnly: a file that may not be written isn't replaced, though its folder may.
func TestFmtReadOnly(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.pif")
	must.NoError(t, os.WriteFile(path, []byte("n=>n"), 0o444))
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // ends with the goroutine: it has another user's rights from here on
		var err error
		if os.Geteuid() == 0 {
			const nobody = 65534
			for dir := filepath.Dir(path); dir != filepath.Dir(os.TempDir()); dir = filepath.Dir(dir) {
				err = errors.Join(err, os.Chmod(dir, 0o711))
			}
			err = errors.Join(err, os.Chown(filepath.Dir(path), nobody, nobody), syscall.Setfsuid(nobody))
		}
		if err == nil {
			err = rewrite(path, nil)
		}
		done <- err
	}()
	err := wait.For(t, done, "the file")
	if text, _ := os.ReadFile(path); !errors.Is(err, fs.ErrPermission) || string(text) != "n=>n" {
		t.Errorf("%v, and it has %q", err, text)
	}
}
