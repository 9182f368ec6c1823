package journal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/core/must"
)

var _ journal.Journal = (*journal.Store)(nil)

func openStore(t testing.TB, path string, o journal.Options) *journal.Store {
	t.Helper()
	s, err := journal.Open(path, o)
	must.NoError(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func newStore(t testing.TB) *journal.Store {
	t.Helper()
	return openStore(t, filepath.Join(t.TempDir(), "state", "j.db"), journal.Options{})
}

func add(t testing.TB, s *journal.Store, st journal.Stage, k journal.Kind, data string) uint64 {
	t.Helper()
	seq, err := s.Append(st, k, "", "", []byte(data))
	must.NoError(t, err)
	return seq
}

// populate appends n events, of which those of three runs take turns.
func populate(t testing.TB, s *journal.Store, n int) {
	t.Helper()
	for i := range n {
		kind := journal.EffectRequested
		if i%2 == 1 {
			kind = journal.EffectOutcome
		}
		if i%50 == 17 {
			kind = journal.ToolEvolved
		}
		must.Succeed(t)(s.Append(journal.Noted, kind, fmt.Sprint("r", i%3), "0.1", fmt.Appendf(nil, `{"i":%d,"text":"é <&> \u2028"}`, i)))
	}
}

func all(t testing.TB, s *journal.Store, q journal.Query) []journal.Event {
	t.Helper()
	events, more, err := s.Read(q)
	if err != nil || more && q.Limit == 0 {
		t.Fatal(err, more)
	}
	return events
}

func verified(t testing.TB, s *journal.Store, anchors ...journal.Anchor) journal.Report {
	t.Helper()
	r, err := s.Verify(context.Background(), anchors...)
	if err != nil {
		t.Fatalf("%v: %+v", err, r)
	}
	return r
}

func TestStoreKeepsEventsExactly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	s := openStore(t, path, journal.Options{})
	long := `{"text":"` + strings.Repeat("é\\n", 100_000) + `"}`
	for i, c := range []struct{ run, branch, data string }{
		{"", "", "{}"}, {"r-1", "0.2.1", `{"a":[1,2.50,"<&>"],"b":{"c":null}}`}, {"é'\"\\\x00", "\u2028", `{"a":1}`}, {"r", "", long},
	} {
		seq, err := s.Append(journal.Stage(i%3), journal.Kinds[i], c.run, c.branch, []byte(c.data))
		if want := uint64(i + 1); err != nil || seq != want && i%3 != 0 || seq != 0 && i%3 == 0 {
			t.Fatalf("event %d: %d, %v", want, seq, err)
		}
	}
	before := all(t, s, journal.Query{})
	if len(before) != 4 || before[2].Run != "é'\"\\\x00" || string(before[3].Data) != long || time.Since(before[0].Time) > time.Hour {
		t.Fatalf("%d events are there, %+v", len(before), before[:3])
	}
	must.NoError(t, s.Close())
	if names, err := filepath.Glob(path + "*"); err != nil || !slices.Equal(names, []string{path, path + ".key"}) {
		t.Errorf("after Close there is %v, %v", names, err)
	}
	s = openStore(t, path, journal.Options{})
	if after := all(t, s, journal.Query{}); !reflect.DeepEqual(before, after) {
		t.Fatalf("%+v came back as %+v", before, after)
	}
	seq, hash, err := s.Head()
	if err != nil || seq != 4 || hash != before[3].Hash {
		t.Errorf("the head is %d %s, %v", seq, hash, err)
	}
	if r := verified(t, s, journal.Anchor{Seq: 2, Hash: before[1].Hash}); r.Events != 4 || r.Last != 4 || r.Head != hash || len(r.Unproved) != 1 {
		t.Errorf("%+v", r)
	}
	if seq := add(t, s, journal.Synced, journal.RunEnded, "{}"); seq != 5 {
		t.Errorf("the next is %d", seq)
	}
}

func TestStoreRefuses(t *testing.T) {
	s := newStore(t)
	for _, c := range []struct {
		kind              journal.Kind
		run, branch, data string
	}{
		{"effect", "", "", "{}"}, {"", "", "", "{}"}, {journal.Checkpoint, "", "", "{}"}, {journal.RunEnded, "\xff", "", "{}"},
		{journal.RunEnded, "", "\xff", "{}"}, {journal.RunEnded, "", "", ""}, {journal.RunEnded, "", "", "[]"}, {journal.RunEnded, "", "", "{"},
		{journal.RunEnded, "", "", "{\n}"}, {journal.RunEnded, "", "", "{\"a\":\"\xff\"}"}, {journal.RunEnded, "", "", `{"a":"` + strings.Repeat("x", journal.MaxData) + `"}`},
	} {
		for st := range journal.Stage(3) {
			if seq, err := s.Append(st, c.kind, c.run, c.branch, []byte(c.data)); err == nil {
				t.Errorf("%q %q %q %.20q was taken as %d", c.kind, c.run, c.branch, c.data, seq)
			}
		}
	}
	if n := len(all(t, s, journal.Query{})); n != 0 {
		t.Errorf("%d events are there", n)
	}
	must.NoError(t, s.Close())
	if _, err := s.Append(journal.Noted, journal.RunEnded, "", "", []byte("{}")); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if _, _, err := s.Read(journal.Query{}); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("Read after Close: %v", err)
	}
	if _, err := s.Last(); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("Last after Close: %v", err)
	}
	if _, err := s.PutBlob(context.Background(), nil); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("PutBlob after Close: %v", err)
	}
}

// Whatever is asked, a store answers what a journal in memory does.
func TestStoreAnswersAsMemory(t *testing.T) {
	s, m := newStore(t), journal.NewMemory(1<<30, nil)
	populate(t, s, 400)
	history(t, rand.New(rand.NewPCG(5, 6)), 300, s)
	for _, e := range all(t, s, journal.Query{}) {
		must.Succeed(t)(m.Append(journal.Noted, e.Kind, e.Run, e.Branch, e.Data))
	}
	pick := rand.New(rand.NewPCG(1, 2))
	found := 0
	for range full(600, 5000) {
		q := journal.Query{
			Run:   []string{"", "", "r1", "no"}[pick.IntN(4)],
			Kind:  []journal.Kind{"", "", "effect", "effect.outcome", "tool", "tool.evolved", "eff", "run.ended"}[pick.IntN(8)],
			After: []uint64{0, 0, 5, 650, 700, 1 << 63}[pick.IntN(6)], Before: []uint64{0, 0, 1, 40, 690, 1<<64 - 1}[pick.IntN(6)],
			Limit: []int{0, 1, 2, 7, 1000}[pick.IntN(5)], Last: pick.IntN(2) == 0,
			Changes: pick.IntN(5) == 0, Tool: []string{"", "", "", "a", "x'y"}[pick.IntN(5)],
		}
		want, wantMore, _ := m.Read(q)
		got, more, err := s.Read(q)
		must.NoError(t, err)
		var streamed []journal.Event
		must.NoError(t, s.Each(context.Background(), q, func(e *journal.Event) error {
			streamed = append(streamed, *e)
			return nil
		}))
		number := func(events []journal.Event) (seqs []uint64) {
			for _, e := range events {
				seqs = append(seqs, e.Seq)
			}
			return seqs
		}
		if !slices.Equal(number(got), number(want)) || more != wantMore {
			t.Errorf("%+v: %v, more %v; want %v, %v", q, number(got), more, number(want), wantMore)
		}
		if !reflect.DeepEqual(streamed, got) {
			t.Errorf("%+v: Each gives %v, Read %v", q, number(streamed), number(got))
		}
		found += len(got)
	}
	if found < full(1200, 10_000) {
		t.Errorf("only %d events in all: the queries are too narrow", found)
	}
}

// Each reads in pages and lets its function use the store.
func TestEach(t *testing.T) {
	s := newStore(t)
	populate(t, s, 3000)
	seen := uint64(0)
	err := s.Each(context.Background(), journal.Query{}, func(e *journal.Event) error {
		if e.Seq != seen+1 {
			t.Fatalf("event %d follows %d", e.Seq, seen)
		}
		if seen = e.Seq; seen%1000 == 0 && seen <= 3000 {
			add(t, s, journal.Written, journal.RunEnded, "{}")
		}
		return nil
	})
	if err != nil || seen < 3000 {
		t.Errorf("%d events, %v", seen, err)
	}
	stop := errors.New("stop")
	if err := s.Each(context.Background(), journal.Query{}, func(*journal.Event) error { return stop }); err != stop {
		t.Errorf("an error of the function became %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	err = s.Each(ctx, journal.Query{}, func(*journal.Event) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
}

// Many goroutines on several stores of one file, as several servers have it: no
// event is lost, none twice, and each writer's are in its order.
func TestStoresShareAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	var wg sync.WaitGroup
	const stores, writers, events = 3, 4, 150
	for i := range stores {
		s := openStore(t, path, journal.Options{Busy: time.Minute})
		for j := range writers {
			wg.Go(func() {
				run, before := fmt.Sprintf("%d-%d", i, j), uint64(0)
				for n := range events {
					seq, err := s.Append(journal.Stage(n%3), journal.EffectRequested, run, "", fmt.Appendf(nil, `{"n":%d}`, n))
					if err != nil {
						t.Error(err)
						return
					}
					if n%3 != 0 {
						if seq <= before {
							t.Errorf("%s: %d comes after %d", run, seq, before)
						}
						before = seq
					}
				}
			})
		}
	}
	wg.Wait()
	s := openStore(t, path, journal.Options{})
	next := map[string]int{}
	for range 30_000 { // what the other stores noted is written soon
		if last, err := s.Last(); err != nil || last == stores*writers*events {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	for _, e := range all(t, s, journal.Query{}) {
		if want := fmt.Sprintf(`{"n":%d}`, next[e.Run]); string(e.Data) != want {
			t.Fatalf("run %s: %s, expected %s", e.Run, e.Data, want)
		}
		next[e.Run]++
	}
	if r := verified(t, s); r.Events != stores*writers*events {
		t.Errorf("%d events", r.Events)
	}
}

func TestWatch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	one, two := openStore(t, path, journal.Options{}), openStore(t, path, journal.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	add(t, one, journal.Written, journal.ServerStarted, "{}")
	news := two.Watch(ctx)
	for want := uint64(2); want < 5; want++ {
		add(t, one, journal.Written, journal.ToolEvolved, "{}")
		if seq := <-news; seq != want {
			t.Fatalf("told of %d, expected %d", seq, want)
		}
		if last, err := two.Last(); err != nil || last != want {
			t.Errorf("the last is %d, %v", last, err)
		}
	}
	cancel()
	if _, open := <-news; open {
		t.Error("there is news after the end of the context")
	}
}

func TestBlobs(t *testing.T) {
	s := newStore(t)
	ctx := context.Background()
	for _, data := range [][]byte{nil, []byte("x"), bytes.Repeat([]byte("0123456789"), 300_000)} {
		hash, err := s.PutBlob(ctx, data)
		must.NoError(t, err)
		if again, err := s.PutBlob(ctx, data); err != nil || again != hash {
			t.Errorf("put twice: %v, %v", again, err)
		}
		if back, err := s.Blob(hash); err != nil || !bytes.Equal(back, data) {
			t.Errorf("%d bytes came back as %d, %v", len(data), len(back), err)
		}
	}
	if _, err := s.Blob(journal.Hash{1}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a blob that isn't there: %v", err)
	}
	if r := verified(t, s); r.Blobs != 3 {
		t.Errorf("%d blobs", r.Blobs)
	}
}

// TestPagesHaveBytes: a page of large events is cut by their bytes, and the pages together have all, from either end.
func TestPagesHaveBytes(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	for i := range 12 {
		add(t, s, journal.Noted, journal.RunStarted, `{"text":"`+strings.Repeat("x", []int{3 << 20, 10 << 20, 10}[i%3])+`"}`)
	}
	for _, last := range []bool{false, true} {
		q := journal.Query{Limit: 1000, Last: last}
		var seen []uint64
		for more := true; more; {
			var page []journal.Event
			var err error
			page, more, err = s.Read(q)
			must.NoError(t, err)
			size := 0
			for _, e := range page {
				size += len(e.Data)
			}
			if len(page) == 0 || size > 18<<20+100 || !slices.IsSortedFunc(page, func(a, b journal.Event) int { return int(a.Seq) - int(b.Seq) }) {
				t.Fatalf("last %v: a page of %d events, of %d bytes", last, len(page), size)
			}
			if last {
				q.Before = page[0].Seq
				slices.Reverse(page)
			} else {
				q.After = page[len(page)-1].Seq
			}
			for _, e := range page {
				seen = append(seen, e.Seq)
			}
		}
		if last {
			slices.Reverse(seen)
		}
		if want := []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}; !slices.Equal(seen, want) {
			t.Errorf("last %v: the pages have %v", last, seen)
		}
	}
	if all, more, err := s.Read(journal.Query{}); len(all) != 12 || more || err != nil {
		t.Errorf("without a limit it gives %d, %v, %v", len(all), more, err)
	}
}
