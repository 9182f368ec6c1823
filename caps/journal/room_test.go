package journal_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// held opens a store that is held within a limit until the test ends.
func held(t *testing.T, o journal.Options, l journal.Limits) (s *journal.Store, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "j.db")
	s = openStore(t, path, o)
	until, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.KeepWithin(until, l)
	}()
	wait.Until(t, "the store is held", func() bool { return s.HeldTo() == l.Size })
	t.Cleanup(func() {
		cancel()
		wait.For(t, ended, "keeping ended")
	})
	return s, path
}

// bytesOf is how large the files of a store are.
func bytesOf(t *testing.T, path string) (n int64) {
	t.Helper()
	for _, name := range []string{path, path + "-wal"} {
		info, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		must.NoError(t, err)
		n += info.Size()
	}
	return n
}

// blobOf is a blob that no other is.
func blobOf(i, size int) []byte { return bytes.Repeat(fmt.Appendf(nil, "%08d", i), size/8) }

// referring is the data of an event that refers to a blob.
func referring(t *testing.T, h journal.Hash, size int) string {
	t.Helper()
	data, err := json.Marshal(map[string]any{"value_blob": journal.Reference{Bytes: int64(size), SHA256: h}})
	must.NoError(t, err)
	return string(data)
}

// TestWithinLimit: whatever is written, by several at once, the file and its write-ahead
// file stay within a quarter over the limit; a blob goes with the last event that refers
// to it, and what is left is whole.
func TestWithinLimit(t *testing.T) {
	t.Parallel()
	const limit = journal.MinLimit
	s, path := held(t, journal.Options{Patience: time.Hour}, journal.Limits{Size: limit}) // however slow the machine is
	var mu sync.Mutex
	largest := int64(0)
	look := func() {
		n := bytesOf(t, path)
		mu.Lock()
		defer mu.Unlock()
		largest = max(largest, n)
	}
	var all sync.WaitGroup
	for w := range 2 {
		all.Go(func() {
			for i := range 12 {
				size := []int{1 << 20, 700_000, 8, 300_000}[i%4]
				h, err := s.PutBlob(ctx, blobOf(w*100+i, size))
				look()
				if err == nil {
					_, err = s.Append(journal.Written, journal.EffectOutcome, "r", "", []byte(referring(t, h, size)))
				}
				look()
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
		all.Go(func() {
			for i := range 250 {
				if _, err := s.Append(journal.Noted, journal.RunStarted, fmt.Sprint("w", w, i), "", []byte(`{"a":"`+strings.Repeat("x", 10_000)+`"}`)); err != nil {
					t.Error(err)
					return
				}
			}
			look()
		})
	}
	all.Wait()
	look()
	if most := int64(limit + limit/4); largest > most {
		t.Errorf("%d bytes, with a limit of %d at most %d", largest, limit, most)
	}
	report := verified(t, s)
	if report.Blobs == 0 || report.Cut == nil {
		t.Errorf("%+v", report)
	}
	// Nothing waits to be dropped, so no blob is there but those that events refer to and
	// the list of what was kept.
	refers := map[journal.Hash]bool{}
	must.NoError(t, s.Each(ctx, journal.Query{}, func(e *journal.Event) error {
		for h := range journal.References(e.Data) {
			refers[h] = true
		}
		return nil
	}))
	if report.Blobs > len(refers) {
		t.Errorf("%d blobs are there, events refer to %d", report.Blobs, len(refers))
	}
}

// TestOverLimit: what can't be dropped makes who writes wait, and then be refused, in
// words; when it can be, writing goes on. More than a quarter is refused at once.
func TestOverLimit(t *testing.T) {
	const limit, size = journal.MinLimit, 1 << 20
	s, path := held(t, journal.Options{Patience: 50 * time.Millisecond}, journal.Limits{Size: limit})
	var hashes []journal.Hash
	for i := 0; ; i++ {
		h, err := s.PutBlob(ctx, blobOf(i, size)) // whose events are yet to come
		if err != nil {
			if !errors.Is(err, journal.ErrFull) || !strings.Contains(err.Error(), fmt.Sprint(limit)) {
				t.Fatal(err)
			}
			break
		}
		if hashes = append(hashes, h); i > 100 {
			t.Fatal("nothing is refused")
		}
	}
	if n := bytesOf(t, path); n > limit+limit/4 {
		t.Errorf("%d bytes", n)
	}
	for _, h := range hashes {
		if _, err := s.Blob(h); err != nil {
			t.Errorf("what an event will refer to: %v", err)
		}
		add(t, s, journal.Written, journal.EffectOutcome, referring(t, h, size))
	}
	verified(t, s)
	wait.Until(t, "there is room again", func() bool {
		_, err := s.PutBlob(ctx, blobOf(1000, size))
		return err == nil
	})
	if _, err := s.PutBlob(ctx, blobOf(0, limit/4+8)); !errors.Is(err, journal.ErrFull) || !strings.Contains(err.Error(), "quarter") {
		t.Errorf("a blob too large for the limit: %v", err)
	}
}

// TestNotedBeyondLimit: a noted event that is never written isn't in the way of others.
func TestNotedBeyondLimit(t *testing.T) {
	t.Parallel()
	s, _ := held(t, journal.Options{}, journal.Limits{Size: journal.MinLimit})
	data := []byte(`{"a":"` + strings.Repeat("x", journal.MinLimit/4) + `"}`)
	if _, err := s.Append(journal.Noted, journal.RunStarted, "r", "", data); !errors.Is(err, journal.ErrFull) || !strings.Contains(err.Error(), "quarter") {
		t.Error(err)
	}
	add(t, s, journal.Written, journal.RunStarted, "{}")
}

// TestBlobsOfAnother: what another process put lately may be about to be referred to, and
// stays for seconds; what this one put and nothing refers to any more doesn't.
func TestBlobsOfAnother(t *testing.T) {
	a := newAged(t, 0)
	other := openStore(t, a.path, journal.Options{Now: a.clock})
	put := func(s *journal.Store, i int) journal.Hash {
		h, err := s.PutBlob(ctx, blobOf(i, 100_000))
		must.NoError(t, err)
		return h
	}
	refer := func(s *journal.Store, h journal.Hash) {
		add(t, s, journal.Written, journal.EffectOutcome, referring(t, h, 100_000))
	}
	mine, theirs, both := put(a.Store, 1), put(other, 2), put(a.Store, 3)
	refer(a.Store, mine)
	refer(other, theirs)
	refer(a.Store, both)
	a.pass(time.Second)
	put(other, 3) // whose event is yet to come
	pendingHere := put(a.Store, 4)
	add(t, a.Store, journal.Written, journal.RunStarted, `{}`)
	there := func(what string, want map[journal.Hash]bool) {
		t.Helper()
		for h, want := range want {
			if _, err := a.Blob(h); (err == nil) != want || err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %s: %v", what, h, err)
			}
		}
	}
	retain(t, a.Store, journal.RetainOptions{MaxBytes: 1})
	there("at once", map[journal.Hash]bool{mine: false, theirs: true, both: true, pendingHere: true})
	a.pass(time.Minute)
	refer(other, both)
	retain(t, a.Store, journal.RetainOptions{MaxBytes: 1})
	there("a minute later", map[journal.Hash]bool{theirs: false, both: true, pendingHere: true})
	a.pass(time.Hour)
	retain(t, a.Store, journal.RetainOptions{MaxBytes: 1})
	there("an hour later", map[journal.Hash]bool{both: true, pendingHere: false})
	verified(t, a.Store)
}

// TestClockAhead: a clock that jumps ahead makes all too old. No more than an eighth of
// the record goes for that, and it is said.
func TestClockAhead(t *testing.T) {
	a := newAged(t, 0)
	var mu sync.Mutex
	var log bytes.Buffer
	for i := range 800 {
		add(t, a.Store, journal.Noted, journal.RunStarted, fmt.Sprintf(`{"i":%d}`, i))
	}
	must.NoError(t, a.Close())
	s := openStore(t, a.path, journal.Options{Now: a.clock, Log: slog.New(slog.NewTextHandler(locked{&mu, &log}, nil))})
	until, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	a.pass(365 * 24 * time.Hour)
	go func() {
		defer close(ended)
		s.KeepWithinEvery(until, journal.Limits{Age: 30 * 24 * time.Hour}, time.Millisecond)
	}()
	wait.Until(t, "it is said", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return strings.Contains(log.String(), "if the clock is wrong")
	})
	for range 20 { // more would go with each
		add(t, s, journal.Written, journal.RunStarted, `{}`)
	}
	cancel()
	wait.For(t, ended, "keeping ended")
	if n := len(all(t, s, journal.Query{Kind: journal.RunStarted})); n < 700 || n > 720+1 {
		t.Errorf("%d events are left", n)
	}
	verified(t, s)
}

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
