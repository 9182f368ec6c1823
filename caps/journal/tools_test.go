package journal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/core/must"
)

var _ journal.Journal = (*journal.Memory)(nil)

// journals calls test with a journal of each sort.
func journals(t *testing.T, test func(t *testing.T, j journal.Journal)) {
	t.Run("store", func(t *testing.T) { test(t, newStore(t)) })
	t.Run("memory", func(t *testing.T) { test(t, journal.NewMemory(1<<30, nil)) })
}

func about(tool string, version int) []byte {
	return fmt.Appendf(nil, `{"tool":%q,"version":%d}`, tool, version)
}

func seqs(events []journal.Event) string {
	list := make([]uint64, len(events))
	for i := range events {
		list[i] = events[i].Seq
	}
	return fmt.Sprint(list)
}

func TestTool(t *testing.T) {
	for _, c := range []struct {
		kind       journal.Kind
		data, want string
	}{
		{journal.ToolEvolved, `{"tool":"a b"}`, "a b"}, {journal.ToolRefused, `{"tool":"a","tool":"b"}`, "a"}, {journal.RunStarted, `{"tool":"a"}`, ""},
		{journal.ToolRetired, `{"tool":"a\"é\u0065"}`, `a"ée`}, {journal.ToolRolledBack, `{"x":{"tool":"no"},"y":["tool"],"tool":"yes"}`, "yes"},
		{journal.ToolEvolved, `{"Tool":"a"}`, ""}, {journal.ToolEvolved, `{"tool":1}`, ""}, {journal.ToolEvolved, `{"x":`, ""}, {journal.ToolEvolved, ``, ""},
	} {
		e := journal.Event{Kind: c.kind, Data: []byte(c.data)}
		if got := e.Tool(); got != c.want {
			t.Errorf("%s %s is about %q, expected %q", c.kind, c.data, got, c.want)
		}
	}
}

// history appends what n random acts on some tools would.
func history(t *testing.T, pick *rand.Rand, n int, appenders ...journal.Journal) {
	t.Helper()
	kinds := []journal.Kind{journal.ToolEvolved, journal.ToolEvolved, journal.ToolRetired, journal.ToolRolledBack, journal.ToolRefused, journal.RunStarted, journal.EffectDenied}
	names := []string{"a", "b", "c", `quo"te`, "é 日本", "%_", "x'y", ""}
	for i := range n {
		k, data := kinds[pick.IntN(len(kinds))], about(names[pick.IntN(len(names))], i)
		if pick.IntN(10) == 0 {
			data = []byte(`{"version":1}`)
		}
		run := fmt.Sprint("r", pick.IntN(2))
		for _, j := range appenders {
			must.Succeed(t)(j.Append(journal.Noted, k, run, "", bytes.Clone(data)))
		}
	}
}

// What is known of tools is the same in a store, in a journal in memory, and by
// reading all events.
func TestToolsOfAnyHistory(t *testing.T) {
	for round := range full(4, 60) {
		pick := rand.New(rand.NewPCG(7, uint64(round)))
		s, m := newStore(t), journal.NewMemory(1<<30, nil)
		history(t, pick, 1+pick.IntN(300), s, m)
		everything := all(t, s, journal.Query{})
		last := uint64(0)
		for _, e := range everything {
			if e.Kind.Changes() {
				last = e.Seq
			}
		}
		for name, j := range map[string]journal.Journal{"store": s, "memory": m} {
			if got, err := j.Changed(); err != nil || got != last {
				t.Errorf("%s: the last change is %d, %v; expected %d", name, got, err, last)
			}
			for _, through := range []uint64{0, 1, 1 << 62, 1<<64 - 1, uint64(pick.IntN(300))} {
				newest := map[string]uint64{}
				for _, e := range everything {
					if e.Kind.Changes() && e.Tool() != "" && (through == 0 || e.Seq <= through) {
						newest[e.Tool()] = e.Seq
					}
				}
				events, err := journal.Newest(j, through)
				if err != nil || len(events) != len(newest) || !slices.IsSortedFunc(events, func(a, b journal.Event) int { return int(a.Seq) - int(b.Seq) }) {
					t.Fatalf("%s: up to %d the newest are %s, %v; expected %v", name, through, seqs(events), err, newest)
				}
				for _, e := range events {
					if newest[e.Tool()] != e.Seq {
						t.Errorf("%s: up to %d the newest of %q is %d, expected %d", name, through, e.Tool(), e.Seq, newest[e.Tool()])
					}
				}
			}
		}
	}
}

// A file of the first format is read as it is, and brought up to this one by the
// first who writes, whatever is in it, while others have it open.
func TestFirstFormat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	m := journal.NewMemory(1<<30, nil)
	s := openStore(t, path, journal.Options{})
	history(t, rand.New(rand.NewPCG(3, 4)), 200, s, m)
	add(t, s, journal.Written, journal.ToolRefused, `{"tool":"a"}`)
	must.NoError(t, s.Close())
	conn := raw(t, path)
	sqlExec(t, conn, `DROP INDEX events_tool; DROP INDEX events_kind; CREATE INDEX events_kind ON events(kind); PRAGMA user_version=1`)
	sqlExec(t, conn, `UPDATE events SET data=CAST('no JSON' AS BLOB) WHERE seq=201`) // somebody edited it
	format := func() (n int) {
		must.NoError(t, conn.QueryRowContext(context.Background(), `PRAGMA user_version`).Scan(&n))
		return n
	}
	answers := func(s *journal.Store) {
		t.Helper()
		for _, q := range []journal.Query{{Changes: true}, {Tool: "a"}, {Tool: "x'y", Last: true, Limit: 3}, {Tool: "c", Kind: journal.ToolRetired, Run: "r1"}} {
			want, wantMore := read(t, m, q)
			if got, more, err := s.Read(q); err != nil || seqs(got) != seqs(want) || more != wantMore || len(got) == 0 {
				t.Errorf("%+v: %s, %v, expected %s", q, seqs(got), err, seqs(want))
			}
		}
		want, _ := journal.Newest(m, 150)
		if got, err := journal.Newest(s, 150); err != nil || seqs(got) != seqs(want) {
			t.Errorf("the newest are %s, %v, expected %s", seqs(got), err, seqs(want))
		}
	}
	reader := openStore(t, path, journal.Options{ReadOnly: true})
	answers(reader)
	if format() != 1 {
		t.Errorf("to read it made it format %d", format())
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			s, err := journal.Open(path, journal.Options{Busy: time.Minute})
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if format() != journal.Format {
		t.Errorf("it has format %d now", format())
	}
	answers(reader)
	s = openStore(t, path, journal.Options{})
	answers(s)
	var b *journal.Break
	if r, err := s.Verify(ctx); !errors.As(err, &b) || b.Seq != 201 || len(r.Breaks) != 1 {
		t.Errorf("%v, %+v", err, r)
	}
}

// A file that can't be written is not brought up, and says why.
func TestFirstFormatLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	made(t, path)
	conn := raw(t, path)
	sqlExec(t, conn, `DROP INDEX events_tool; DROP INDEX events_kind; CREATE INDEX events_kind ON events(kind); PRAGMA user_version=1`)
	defer lock(t, path)()
	if s, err := journal.Open(path, journal.Options{Busy: 20 * time.Millisecond}); !errors.Is(err, journal.ErrLocked) {
		t.Errorf("%v, %v", s, err)
	}
	openStore(t, path, journal.Options{ReadOnly: true})
}

// A journal in memory keeps the tools when it drops what happened to them.
func TestMemoryKeepsChanges(t *testing.T) {
	m := journal.NewMemory(1<<20, nil)
	for i := range 100 {
		must.Succeed(t)(m.Change(uint64(i), journal.ToolEvolved, about(fmt.Sprint("t", i%40), i/40+1)))
	}
	noise(t, m, 20_000)
	if m.Dropped() < 1000 {
		t.Fatalf("only %d are dropped", m.Dropped())
	}
	if events, _ := read(t, m, journal.Query{Changes: true}); len(events) != 100 {
		t.Errorf("%d changes are left of 100", len(events))
	}
	if events, more := read(t, m, journal.Query{Tool: "t3", Last: true, Limit: 2}); seqs(events) != "[44 84]" || !more {
		t.Errorf("the last of t3 are %s, more %v", seqs(events), more)
	}
	if err := m.Verify(); err != nil {
		t.Error(err)
	}
	// More of them than may be kept: what each tool is now stays.
	for i := range 20_000 {
		must.Succeed(t)(m.Append(journal.Synced, journal.ToolEvolved, "", "", about(fmt.Sprint("u", i%200), i)))
	}
	events, err := journal.Newest(m, 0)
	if err != nil || len(events) != 240 {
		t.Errorf("%d tools are left of 240, %v", len(events), err)
	}
	kept, _ := read(t, m, journal.Query{Changes: true})
	if n := len(kept); n < 1000 || n > 1<<20/160+1024 {
		t.Errorf("%d changes are kept", n)
	}
	if err := m.Verify(); err != nil {
		t.Error(err)
	}
}

// noise appends n events that change no tool.
func noise(t *testing.T, m *journal.Memory, n int) {
	t.Helper()
	for i := range n {
		must.Succeed(t)(m.Append(journal.Noted, journal.RunStarted, "", "", fmt.Appendf(nil, `{"i":%d}`, i)))
	}
}

// TestRan: a query for the runs of a tool gives the beginnings of its runs and nothing else,
// from a file and from memory.
func TestRan(t *testing.T) {
	t.Parallel()
	s, err := journal.Open(filepath.Join(t.TempDir(), "j.db"), journal.Options{})
	must.NoError(t, err)
	defer s.Close()
	for name, j := range map[string]journal.Journal{"store": s, "memory": journal.NewMemory(1<<20, nil)} {
		for i, data := range []string{`{"tool":"a","version":1}`, `{"tool":"ab","version":1}`, `{"code":"x","call":{"tool":"a","version":1}}`, `{"tool":"a","version":2}`, `{"tool":"q\"x","version":1}`} {
			must.Succeed(t)(j.Append(journal.Written, journal.RunStarted, fmt.Sprint("r", i), "", []byte(data)))
			must.Succeed(t)(j.Append(journal.Written, journal.RunEnded, fmt.Sprint("r", i), "", []byte(`{"tool":"a","version":1}`)))
		}
		for tool, want := range map[string]string{"a": "[r0 r3]", "ab": "[r1]", `q"x`: "[r4]", "b": "[]"} {
			events, _, err := j.Read(journal.Query{Kind: journal.RunStarted, Ran: tool, Limit: 9, Last: true})
			got := []string{}
			for i := range events {
				got = append(got, events[i].Run)
			}
			if err != nil || fmt.Sprint(got) != want {
				t.Errorf("%s, %s: %v, %v", name, tool, got, err)
			}
		}
	}
}
