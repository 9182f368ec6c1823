package journal_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/journal"
)

func fill(t testing.TB, m *journal.Memory, n int) {
	t.Helper()
	for i := range n {
		run := fmt.Sprint("r", i%3)
		kind := journal.EffectRequested
		if i%2 == 1 {
			kind = journal.EffectOutcome
		}
		seq, err := m.Append(journal.Noted, kind, run, "0.1", fmt.Appendf(nil, `{"i":%d}`, i))
		if err != nil || seq != uint64(i+1) {
			t.Fatalf("event %d has number %d, error %v", i, seq, err)
		}
	}
}

func read(t testing.TB, m *journal.Memory, q journal.Query) ([]journal.Event, bool) {
	t.Helper()
	events, more, err := m.Read(q)
	if err != nil {
		t.Fatal(err)
	}
	return events, more
}

func TestQuery(t *testing.T) {
	m := journal.NewMemory(1<<30, nil)
	fill(t, m, 3000)
	for _, c := range []struct {
		q    journal.Query
		want string
		more bool
	}{
		{journal.Query{Limit: 2}, "1 2", true},
		{journal.Query{Limit: 2, Last: true}, "2999 3000", true},
		{journal.Query{Limit: 3, Last: true, Run: "r1"}, "2993 2996 2999", true},
		{journal.Query{Limit: 2, Kind: "effect.outcome", After: 2990}, "2992 2994", true},
		{journal.Query{Limit: 2, Kind: "effect", After: 2998}, "2999 3000", false},
		{journal.Query{Limit: 2, Kind: "eff"}, "", false},
		{journal.Query{Limit: 2, Last: true, Before: 5}, "3 4", true},
		{journal.Query{Limit: 9, Before: 3}, "1 2", false},
		{journal.Query{After: 3000}, "", false},
	} {
		events, more := read(t, m, c.q)
		var got []string
		for _, e := range events {
			got = append(got, fmt.Sprint(e.Seq))
		}
		if strings.Join(got, " ") != c.want || more != c.more {
			t.Errorf("%+v: %v, more %v; want %s, %v", c.q, got, more, c.want, c.more)
		}
	}
	if journal.CheckKind("effect") != nil || journal.CheckKind("run.ended") != nil || journal.CheckKind("ru") == nil {
		t.Error("CheckKind takes what it should not, or refuses what it should take")
	}
}

// Whatever is changed in an event, its chain breaks there or right behind.
func TestVerifierFindsEveryChange(t *testing.T) {
	m := journal.NewMemory(1<<30, nil)
	fill(t, m, 10)
	if err := m.Verify(); err != nil {
		t.Fatal(err)
	}
	verify := func(events []journal.Event) error {
		v := journal.Verifier{}
		for i := range events {
			if err := v.Next(&events[i]); err != nil {
				return err
			}
		}
		return nil
	}
	for name, change := range map[string]func(e *journal.Event){
		"seq":    func(e *journal.Event) { e.Seq++ },
		"prev":   func(e *journal.Event) { e.Prev[3] ^= 1 },
		"hash":   func(e *journal.Event) { e.Hash[0] ^= 1 },
		"time":   func(e *journal.Event) { e.Time = e.Time.Add(time.Microsecond) },
		"kind":   func(e *journal.Event) { e.Kind = journal.EffectDenied },
		"run":    func(e *journal.Event) { e.Run += "x" },
		"branch": func(e *journal.Event) { e.Branch = "0" },
		"data":   func(e *journal.Event) { e.Data = []byte(`{"i":11}`) },
		"moved": func(e *journal.Event) {
			e.Run, e.Branch = e.Run+e.Branch[:1], e.Branch[1:]
		},
		"sealed again": func(e *journal.Event) { e.Data = []byte(`{}`); e.Hash = e.Seal() },
	} {
		events, _ := read(t, m, journal.Query{})
		change(&events[4])
		var b *journal.Break
		if err := verify(events); !errors.As(err, &b) || b.Seq < 5 || b.Seq > 6 {
			t.Errorf("%s changed: %v", name, err)
		}
	}
	events, _ := read(t, m, journal.Query{})
	if verify(append(events[:3:3], events[4:]...)) == nil {
		t.Error("a missing event was not found")
	}
	if verify(events[1:]) == nil {
		t.Error("a missing first event was not found")
	}
}

func TestMemoryIsBounded(t *testing.T) {
	const size = 1 << 20
	m := journal.NewMemory(size, nil)
	fill(t, m, 20_000)
	events, _ := read(t, m, journal.Query{})
	if n := len(events); n < 2000 || n > size/160+1024 {
		t.Errorf("%d events are kept of a size of %d", n, size)
	}
	if last := events[len(events)-1].Seq; last != 20_000 {
		t.Errorf("the last is %d", last)
	}
	if m.Dropped() != events[0].Seq-1 {
		t.Errorf("dropped to %d, the first is %d", m.Dropped(), events[0].Seq)
	}
	if err := m.Verify(); err != nil {
		t.Error(err)
	}
}

func TestMirror(t *testing.T) {
	full := errors.New("full")
	var seen []uint64
	m := journal.NewMemory(1<<20, func(e *journal.Event) error {
		if e.Seq == 3 {
			return full
		}
		seen = append(seen, e.Seq)
		return nil
	})
	fill(t, m, 2)
	if _, err := m.Append(journal.Written, journal.RunEnded, "", "", []byte("{}")); !errors.Is(err, full) {
		t.Errorf("an event that was not recorded: %v", err)
	}
	if len(seen) != 2 || m.Len() != 2 {
		t.Errorf("mirrored %v, %d kept", seen, m.Len())
	}
}

func TestConcurrentAppends(t *testing.T) {
	m := journal.NewMemory(1<<30, nil)
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			for range 1000 {
				if _, err := m.Append(journal.Written, journal.EffectRequested, fmt.Sprint(g), "", []byte("{}")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if m.Len() != 16_000 {
		t.Errorf("%d events", m.Len())
	}
	if err := m.Verify(); err != nil {
		t.Error(err)
	}
}

func BenchmarkAppend(b *testing.B) {
	m := journal.NewMemory(64<<20, nil)
	data := []byte(`{"op":"fs.read","capability":"fs.read:./sandbox","args":{"path":"a.txt"}}`)
	for b.Loop() {
		if _, err := m.Append(journal.Written, journal.EffectRequested, "7f3a9c", "", data); err != nil {
			b.Fatal(err)
		}
	}
}
