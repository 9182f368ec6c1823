package journal_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/core/must"
)

var ctx = context.Background()

func tools(e *journal.Event) bool { return e.Kind == journal.ToolEvolved }

func retain(t testing.TB, s *journal.Store, o journal.RetainOptions) journal.Retained {
	t.Helper()
	r, err := s.Retain(ctx, o)
	must.NoError(t, err)
	return r
}

// aged is a store whose events are a minute apart, from start on.
type aged struct {
	*journal.Store
	path string
	mu   sync.Mutex
	now  time.Time
}

func newAged(t testing.TB, n int) *aged {
	a := &aged{path: filepath.Join(t.TempDir(), "j.db"), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	a.Store = openStore(t, a.path, journal.Options{Now: a.clock})
	for i := range n {
		a.pass(time.Minute)
		k := journal.EffectOutcome
		if i%50 == 17 {
			k = journal.ToolEvolved
		}
		add(t, a.Store, journal.Written, k, "{}")
	}
	return a
}

func (a *aged) clock() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now
}

func (a *aged) pass(d time.Duration) {
	a.mu.Lock()
	a.now = a.now.Add(d)
	a.mu.Unlock()
}

// What is old is dropped, a signed checkpoint is in its place, and the chain of
// the rest holds; also when that is done again, and in what is exported.
func TestRetainByAge(t *testing.T) {
	a := newAged(t, 300)
	before := all(t, a.Store, journal.Query{})
	if r := retain(t, a.Store, journal.RetainOptions{MaxAge: 24 * time.Hour}); r != (journal.Retained{}) {
		t.Errorf("what is new was dropped: %+v", r)
	}
	r := retain(t, a.Store, journal.RetainOptions{MaxAge: 100 * time.Minute})
	if r.Through != 199 || r.Dropped != 199 || r.Kept != 0 {
		t.Fatalf("%+v", r)
	}
	after := all(t, a.Store, journal.Query{})
	if len(after) != 102 || after[0].Seq != 199 || after[0].Kind != journal.Checkpoint || after[1].Seq != 200 || after[1].Hash != before[199].Hash {
		t.Fatalf("%d events, the first %+v", len(after), after[:2])
	}
	cut, err := journal.ReadCut(&after[0])
	if err != nil || cut.To != 199 || cut.Dropped != 199 || cut.Hash != before[198].Hash || cut.Key != hex.EncodeToString(a.Key()) || cut.Store != a.ID() {
		t.Fatalf("%+v, %v", cut, err)
	}
	anchor := func(n int) journal.Anchor { return journal.Anchor{Seq: before[n-1].Seq, Hash: before[n-1].Hash} }
	report := verified(t, a.Store, anchor(199), anchor(250), anchor(300), anchor(10))
	if report.Cut == nil || report.Cut.Dropped != 199 || !strings.Contains(strings.Join(report.Unproved, "\n"), "event 10 was") {
		t.Errorf("%+v", report)
	}
	// The simple verifier, as those have it who only read.
	var v journal.Verifier
	for i := range after {
		must.NoError(t, v.Next(&after[i]))
	}
	if v.From != 199 {
		t.Errorf("it begins at %d", v.From)
	}

	a.pass(50 * time.Minute)
	if r := retain(t, a.Store, journal.RetainOptions{MaxAge: 100 * time.Minute}); r.Through != 249 || r.Dropped != 50 {
		t.Fatalf("the second time: %+v", r)
	}
	second, err := journal.ReadCut(&all(t, a.Store, journal.Query{Kind: journal.Checkpoint})[0])
	if err != nil || second.Dropped != 249 || second.Previous == nil || *second.Previous != after[0].Hash {
		t.Errorf("%+v, %v", second, err)
	}
	if r := retain(t, a.Store, journal.RetainOptions{MaxAge: 1}); r.Through != 299 {
		t.Errorf("the newest stays: %+v", r)
	}
	populate(t, a.Store, 3)
	if report := verified(t, a.Store, anchor(300)); report.Events != 5 {
		t.Errorf("%+v", report)
	}
	var lines bytes.Buffer
	must.NoError(t, a.Export(ctx, &lines, journal.Query{}))
	if r, err := journal.VerifyLines(&lines); err != nil || r.Cut == nil || r.Cut.Dropped != 299 || r.Events != 5 {
		t.Errorf("exported: %+v, %v", r, err)
	}
}

// TestAdoptPruned: a copy of a store from which events were dropped is another machine's,
// which drops further ones; its chain holds.
func TestAdoptPruned(t *testing.T) {
	t.Parallel()
	a := newAged(t, 300)
	retain(t, a.Store, journal.RetainOptions{MaxAge: 200 * time.Minute})
	path := filepath.Join(t.TempDir(), "copy.db")
	must.NoError(t, a.Snapshot(ctx, path))
	must.NoError(t, journal.Adopt(path, nil))
	s := openStore(t, path, journal.Options{Now: a.clock})
	if s.ID() == a.ID() {
		t.Error("two stores have one name")
	}
	for _, age := range []time.Duration{200, 100} {
		if r := retain(t, s, journal.RetainOptions{MaxAge: age * time.Minute}); (r.Dropped == 0) != (age == 200) {
			t.Errorf("older than %d minutes: %+v", age, r)
		}
		_, err := s.Verify(ctx)
		must.NoError(t, err)
	}
}

// What is to be kept stays, with its number and hash, and is still covered by
// the checkpoint's signature; what is no longer to be kept goes later.
func TestRetainKeeps(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	s := openStore(t, path, journal.Options{})
	defer journal.SetMostDropped(journal.SetMostDropped(1000))
	for i := range 2500 { // more than two steps
		k := journal.EffectOutcome
		if i%100 == 0 {
			k = journal.ToolEvolved
		}
		add(t, s, journal.Noted, k, `{"pad":"0123456789"}`)
	}
	evolved := all(t, s, journal.Query{Kind: "tool"})
	r := retain(t, s, journal.RetainOptions{MaxBytes: 50_000, Keep: tools})
	left := all(t, s, journal.Query{})
	if r.Through < 2000 || r.Through > 2400 || r.Kept != 23 || r.Dropped != r.Through-23 || len(left) > 350 || len(left) < 200 {
		t.Fatalf("%+v, %d are left", r, len(left))
	}
	if after := all(t, s, journal.Query{Kind: "tool"}); fmt.Sprint(after) != fmt.Sprint(evolved) {
		t.Error("the events kept are not what they were")
	}
	report := verified(t, s, journal.Anchor{Seq: evolved[3].Seq, Hash: evolved[3].Hash})
	if report.Cut.Kept.Bytes != 23*40 || report.Cut.Dropped != r.Dropped {
		t.Errorf("%+v", report.Cut)
	}
	var lines bytes.Buffer
	must.NoError(t, s.Export(ctx, &lines, journal.Query{}))
	if _, err := journal.VerifyLines(&lines); err != nil {
		t.Errorf("exported: %v", err)
	}
	// Two are no longer wanted, and nothing else is old.
	r = retain(t, s, journal.RetainOptions{Keep: func(e *journal.Event) bool { return tools(e) && e.Seq > 101 }})
	if r.Dropped != 2 || r.Kept != 21 || r.Through != report.Cut.To {
		t.Errorf("%+v", r)
	}
	verified(t, s)
	if again := retain(t, s, journal.RetainOptions{Keep: func(e *journal.Event) bool { return tools(e) && e.Seq > 101 }}); again.Dropped != 0 {
		t.Errorf("%+v", again)
	}
}

// Evidence isn't dropped.
func TestRetainStopsAtABreak(t *testing.T) {
	a := newAged(t, 100)
	sqlExec(t, raw(t, a.path), `UPDATE events SET run='x' WHERE seq=30`)
	_, err := a.Retain(ctx, journal.RetainOptions{MaxAge: 10 * time.Minute})
	if b, ok := errors.AsType[*journal.Break](err); !ok || b.Seq != 30 {
		t.Errorf("an edited event is dropped: %v", err)
	}
	if n := len(all(t, a.Store, journal.Query{})); n != 100 {
		t.Errorf("%d events are left", n)
	}
}

// Blobs go when no event refers to them and they weren't put lately; the file
// becomes smaller.
func TestRetainBlobs(t *testing.T) {
	a := newAged(t, 3)
	put := func(b byte) journal.Hash {
		h, err := a.PutBlob(ctx, bytes.Repeat([]byte{b}, 1<<20))
		must.NoError(t, err)
		return h
	}
	refer := func(h journal.Hash) {
		data, err := json.Marshal(map[string]any{"value": map[string]any{"bytes": 1 << 20, "sha256": h}})
		must.NoError(t, err)
		add(t, a.Store, journal.Written, journal.EffectOutcome, string(data))
	}
	old, shared, loose := put(1), put(2), put(3)
	refer(old)
	refer(shared)
	a.pass(10 * time.Hour)
	refer(shared)
	fresh := put(4)
	again := put(3) // used again, though no event refers to it yet
	size := func() int64 {
		info, err := os.Stat(a.path)
		must.NoError(t, err)
		return info.Size()
	}
	sqlExec(t, raw(t, a.path), `PRAGMA wal_checkpoint(TRUNCATE)`)
	before := size()
	r := retain(t, a.Store, journal.RetainOptions{MaxAge: time.Hour})
	if r.Through != 5 || r.Blobs != 1 {
		t.Errorf("%+v", r)
	}
	for _, c := range []struct {
		h     journal.Hash
		there bool
	}{{old, false}, {shared, true}, {loose, true}, {fresh, true}, {again, true}} {
		if _, err := a.Blob(c.h); (err == nil) != c.there || err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", c.h, err)
		}
	}
	sqlExec(t, raw(t, a.path), `PRAGMA wal_checkpoint(TRUNCATE)`)
	if after := size(); after > before-1<<20 {
		t.Errorf("of %d bytes %d are left", before, after)
	}
	a.pass(2 * time.Hour)
	if r := retain(t, a.Store, journal.RetainOptions{}); r.Blobs != 2 {
		t.Errorf("%+v", r)
	}
	// By size: the blob of the newest event counts, and stays.
	if r := retain(t, a.Store, journal.RetainOptions{MaxBytes: 1}); r != (journal.Retained{}) {
		t.Errorf("%+v", r)
	}
	if report := verified(t, a.Store); report.Blobs != 1 || report.Absent != 0 {
		t.Errorf("%+v", report)
	}
}

// Bytes that an event says are kept and that are gone are found, and it is said
// whose they were. A program's value can't look like that.
func TestVerifyMissingBlob(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	s := openStore(t, path, journal.Options{})
	h, err := s.PutBlob(ctx, bytes.Repeat([]byte("x"), 1<<20))
	must.NoError(t, err)
	add(t, s, journal.Written, journal.RunStarted, `{"n":1}`)
	add(t, s, journal.Written, journal.EffectOutcome, fmt.Sprintf(`{"request":1,"value_blob":{"bytes":1048576,"sha256":"%s"}}`, h))
	nowhere := journal.Hash{1}
	add(t, s, journal.Written, journal.EffectOutcome, fmt.Sprintf(`{"request":1,"value":{"a_blob":{"bytes":5,"sha256":"%s"}},"result":{"bytes":5,"sha256":"%[1]s"}}`, nowhere))
	if r, err := s.Verify(ctx); err != nil {
		t.Fatalf("%v, %+v", err, r)
	}
	must.NoError(t, s.Close())
	sqlExec(t, raw(t, path), `DELETE FROM blobs`)
	s = openStore(t, path, journal.Options{ReadOnly: true})
	r, err := s.Verify(ctx)
	if err == nil || len(r.Damage) != 1 || !strings.Contains(r.Damage[0], "event 2: ") || !strings.Contains(r.Damage[0], h.String()) {
		t.Errorf("%v, %+v", err, r)
	}
}

// What has to last isn't acknowledged where the file is no longer at its path.
func TestRemovedFile(t *testing.T) {
	for name, remove := range map[string]func(path string) error{
		"removed":  os.Remove,
		"replaced": func(path string) error { return errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o600)) },
	} {
		path := filepath.Join(t.TempDir(), "j.db")
		s, err := journal.Open(path, journal.Options{})
		must.NoError(t, err)
		must.Succeed(t)(s.Change(0, journal.ToolEvolved, []byte(`{"tool":"a","version":1}`)))
		must.NoError(t, remove(path))
		if seq, err := s.Change(1, journal.ToolEvolved, []byte(`{"tool":"b","version":1}`)); !errors.Is(err, journal.ErrUnsafe) {
			t.Errorf("%s: event %d, %v", name, seq, err)
		}
		if seq, err := s.Append(journal.Written, journal.EffectRequested, "r", "", []byte("{}")); !errors.Is(err, journal.ErrUnsafe) {
			t.Errorf("%s: event %d of an effect, %v", name, seq, err)
		}
		_ = s.Close() // what it says about a file that is gone is its own affair
	}
}

// Dropping while others append and drop.
func TestRetainTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	var wg sync.WaitGroup
	for i := range 3 {
		s := openStore(t, path, journal.Options{Busy: time.Minute})
		wg.Go(func() {
			for n := range 40 {
				if _, err := s.Append(journal.Written, journal.Kinds[n%2], fmt.Sprint(i), "", []byte(`{"pad":"0123456789"}`)); err != nil {
					t.Error(err)
				}
				if n%5 == i {
					if _, err := s.Retain(ctx, journal.RetainOptions{MaxBytes: 2000, Keep: tools}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	s := openStore(t, path, journal.Options{})
	retain(t, s, journal.RetainOptions{MaxBytes: 2000, Keep: tools})
	if r := verified(t, s); r.Last != 120 || r.Cut == nil {
		t.Errorf("%+v", r)
	}
	kept := map[string]int{}
	for _, e := range all(t, s, journal.Query{Kind: "tool"}) {
		kept[e.Run]++
	}
	if fmt.Sprint(kept) != "map[0:20 1:20 2:20]" {
		t.Errorf("kept are %v", kept)
	}
}
