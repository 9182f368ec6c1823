package journal_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// A file system that is really full.
func TestFullFileSystem(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=1m,mode=0700"); err != nil {
		t.Skipf("no small file system can be mounted here (that takes root): %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	ballast := filepath.Join(dir, "ballast")
	must.NoError(t, os.WriteFile(ballast, bytes.Repeat([]byte("x"), 300<<10), 0o600))
	path := filepath.Join(dir, "j.db")
	s, err := journal.Open(path, journal.Options{})
	must.NoError(t, err)
	fillUp(t, s)
	noted := add(t, s, journal.Noted, journal.RunStarted, `{"noted":true}`)
	must.NoError(t, os.Remove(ballast))
	seq := add(t, s, journal.Synced, journal.ToolEvolved, "{}")
	events := all(t, s, journal.Query{Last: true, Limit: 2})
	if noted != 0 || string(events[0].Data) != `{"noted":true}` || events[1].Seq != seq {
		t.Errorf("after there is room: %s, %s", events[0].Data, events[1].Data)
	}
	verified(t, s)
	must.NoError(t, s.Close())

	// And one where not even an empty store fits.
	must.NoError(t, os.Remove(path))
	for size := 1 << 20; size > 0; size /= 2 {
		f, err := os.OpenFile(ballast, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		must.NoError(t, err)
		_, _ = f.Write(make([]byte, size))
		f.Close()
	}
	if s, err := journal.Open(path, journal.Options{}); !errors.Is(err, journal.ErrFull) {
		t.Errorf("opened: %v, %v", s, err)
	}
}
