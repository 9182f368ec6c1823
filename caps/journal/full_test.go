package journal_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/journal"
)

// Where the disk is full an error says so, what is there can be read, and when
// there is room again it goes on by itself.
func TestFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	s := openStore(t, path, journal.Options{MaxBytes: 400_000})
	fillUp(t, s)
	// As an operator would: drop old events. There is room for that in -wal.
	retain(t, s, journal.RetainOptions{MaxBytes: 100_000})
	add(t, s, journal.Synced, journal.ToolEvolved, "{}")
	verified(t, s)
}

// fillUp appends until the store is full, and checks what it is like then.
func fillUp(t *testing.T, s *journal.Store) {
	t.Helper()
	pad := []byte(`{"pad":"` + strings.Repeat("x", 3000) + `"}`)
	acknowledged := uint64(0)
	for n := 0; ; n++ {
		seq, err := s.Append(journal.Written, journal.RunStarted, "", "", slices.Clone(pad))
		if err == nil {
			acknowledged = seq
			if n > 100_000 {
				t.Fatal("it is never full")
			}
			continue
		}
		if !errors.Is(err, journal.ErrFull) || !strings.Contains(err.Error(), "full") {
			t.Fatalf("after %d events: %v", n, err)
		}
		break
	}
	if acknowledged < 10 {
		t.Fatalf("it is full after %d events", acknowledged)
	}
	if _, err := s.Append(journal.Synced, journal.ToolEvolved, "", "", slices.Clone(pad)); !errors.Is(err, journal.ErrFull) {
		t.Errorf("Synced: %v", err)
	}
	if _, err := s.PutBlob(ctx, bytes.Repeat([]byte("x"), 100_000)); !errors.Is(err, journal.ErrFull) {
		t.Errorf("PutBlob: %v", err)
	}
	if !errors.Is(s.Failing(), journal.ErrFull) {
		t.Errorf("it is failing: %v", s.Failing())
	}
	events := all(t, s, journal.Query{})
	if uint64(len(events)) != acknowledged {
		t.Errorf("%d events are there of %d acknowledged", len(events), acknowledged)
	}
	verified(t, s)
}
