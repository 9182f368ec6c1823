package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
)

// TestFullStoreGrantsNothing: where the disk is full a server that grants something doesn't
// begin to act, whether the store is there already or not; one that grants nothing goes on.
func TestFullStoreGrantsNothing(t *testing.T) {
	for _, there := range []bool{true, false} {
		// Each has a file system of its own: no file of the other gives room back later.
		state := t.TempDir()
		if err := syscall.Mount("none", state, "tmpfs", 0, "size=300k,mode=0700"); err != nil {
			t.Skipf("no small file system can be mounted here (that takes root): %v", err)
		}
		t.Cleanup(func() {
			if err := syscall.Unmount(state, syscall.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
		t.Setenv("XDG_STATE_HOME", state)
		folder := t.TempDir()
		start := func(args ...string) (int, string) {
			var out, errs strings.Builder
			in := initialize + "\n" + `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run","arguments":{"code":"1 + 1"}}}` + "\n"
			status := command(append(args, "--sandbox=off", "--log-level=error"), strings.NewReader(in), &out, &errs)
			return status, out.String() + errs.String()
		}
		if there {
			if status, said := start(); status != 0 {
				t.Fatal(said)
			}
		}
		f, err := os.Create(filepath.Join(state, "ballast"))
		must.NoError(t, err)
		for _, err = f.Write(make([]byte, 512)); err == nil; {
			_, err = f.Write(make([]byte, 512))
		}
		must.NoError(t, f.Close())
		if status, said := start("--cap", "fs:"+filepath.ToSlash(folder)); status != 1 || !strings.Contains(said, "full") || strings.Contains(said, `"result"`) {
			t.Errorf("there already: %v, it ends with %d: %s", there, status, said)
		}
		if status, said := start(); status != 0 || !strings.Contains(said, `"text":"2"`) {
			t.Errorf("there already: %v, with nothing granted it ends with %d: %s", there, status, said)
		}
	}
}
