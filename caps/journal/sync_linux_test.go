package journal_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// unsynced is how many pages of a file the disk doesn't have yet.
func unsynced(t *testing.T, path string) uint64 {
	t.Helper()
	f, err := os.Open(path)
	must.NoError(t, err)
	defer f.Close()
	var s unix.Cachestat_t
	if err := unix.Cachestat(uint(f.Fd()), &unix.CachestatRange{Len: 1 << 40}, &s, 0); err != nil {
		t.Skipf("the kernel can't tell (cachestat, Linux 6.5): %v", err)
	}
	return s.Dirty + s.Writeback
}

// A Synced event, and all that was there before, also by others, is on the disk
// when Append returns.
func TestSyncedIsOnTheDisk(t *testing.T) {
	dir := t.TempDir()
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil || fs.Type == unix.TMPFS_MAGIC {
		t.Skip("the temporary directory is in memory, where nothing is ever synced: set TMPDIR to one on a disk")
	}
	path := filepath.Join(dir, "j.db")
	one, two := openStore(t, path, journal.Options{}), openStore(t, path, journal.Options{})
	for i := range 20 {
		dirty := uint64(0)
		for range 10 {
			add(t, one, journal.Written, journal.EffectRequested, "{}")
			dirty += unsynced(t, path+"-wal")
		}
		if dirty == 0 {
			t.Fatal("no page waits to be synced after ten events that are only written: this test can't see")
		}
		must.Succeed(t)(two.PutBlob(t.Context(), []byte{byte(i)}))
		add(t, two, journal.Synced, journal.ToolEvolved, "{}")
		if n := unsynced(t, path+"-wal"); n > 0 {
			t.Fatalf("%d pages wait to be synced after a Synced event", n)
		}
	}
	must.NoError(t, errors.Join(one.Close(), two.Close()))
}
