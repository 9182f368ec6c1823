package journal_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/core/must"
)

func fill(t testing.TB, m *journal.Memory, n int) {
	t.Helper()
	for i := range n {
		run := fmt.Sprint("r", i%3)
		kind := journal.EffectRequested
		if i%2 == 1 {
			kind = journal.EffectOutcome
		}
		if seq, err := m.Append(journal.Noted, kind, run, "0.1", fmt.Appendf(nil, `{"i":%d}`, i)); err != nil || seq != uint64(i+1) {
			t.Fatalf("event %d has number %d, error %v", i, seq, err)
		}
	}
}

func read(t testing.TB, m *journal.Memory, q journal.Query) ([]journal.Event, bool) {
	t.Helper()
	events, more, err := m.Read(q)
	must.NoError(t, err)
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
	must.NoError(t, m.Verify())
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

// TestMemoryOfTools fills a journal with tools: what ran last can be read all the same.
func TestMemoryOfTools(t *testing.T) {
	const size = 1 << 20
	for _, m := range []*journal.Memory{journal.NewMemory(size, nil), journal.NewRoom(size).Memory(size)} {
		long := strings.Repeat("x", 4000)
		for i := range 600 {
			for _, k := range []journal.Kind{journal.ToolRefused, journal.ToolEvolved} {
				if _, err := m.Append(journal.Noted, k, "", "", fmt.Appendf(nil, `{"tool":"t%d","code":%q}`, i, long)); err != nil {
					t.Fatal(err)
				}
			}
			if i%100 == 0 {
				if found, _ := read(t, m, journal.Query{Tool: fmt.Sprint("t", i)}); len(found) == 0 || found[len(found)-1].Kind != journal.ToolEvolved {
					t.Fatalf("of tool %d is %v", i, found)
				}
				if found, _ := read(t, m, journal.Query{Tool: "other"}); len(found) != 0 {
					t.Fatalf("of no tool are %d events", len(found))
				}
			}
		}
		for i := range 3000 {
			if _, err := m.Append(journal.Noted, journal.RunStarted, fmt.Sprint("r", i), "", []byte(`{}`)); err != nil {
				t.Fatal(err)
			}
		}
		if found, _ := read(t, m, journal.Query{Run: "r2999"}); len(found) != 1 {
			t.Errorf("of the last run are %d events", len(found))
		}
		if found, _ := read(t, m, journal.Query{Changes: true}); len(found) != 600 {
			t.Errorf("%d tools are kept", len(found))
		}
		if all, _ := read(t, m, journal.Query{}); len(all) > 2400 {
			t.Errorf("%d events are kept", len(all))
		}
		if err := m.Verify(); err != nil {
			t.Error(err)
		}
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

// TestMemoryBounds: a journal in memory holds about its size, however large its events are, and
// several in one room what that has: the one that holds most gives way.
func TestMemoryBounds(t *testing.T) {
	bytes := func(j journal.Journal) (n int) {
		events, _, err := j.Read(journal.Query{})
		must.NoError(t, err)
		for _, e := range events {
			n += len(e.Data)
		}
		return n
	}
	large := []byte(`{"code":"` + strings.Repeat("x", 250<<10) + `"}`)
	room := journal.NewRoom(3 << 20)
	ann, bob := room.Memory(2<<20), room.Memory(2<<20)
	fill := func(m *journal.Memory, times int) {
		for range times {
			if _, err := m.Append(journal.Noted, journal.RunStarted, "r", "", large); err != nil {
				t.Fatal(err)
			}
		}
	}
	fill(ann, 100)
	if n := bytes(ann); n > 2<<20 || n < 1<<20 {
		t.Errorf("a journal of 2 MiB holds %d bytes", n)
	}
	if _, err := bob.Append(journal.Noted, journal.RunStarted, "r", "", []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	fill(bob, 100)
	if a, b := bytes(ann), bytes(bob); a+b > 3<<20 || a < 1<<20 || b < 1<<20 {
		t.Errorf("of 3 MiB one holds %d bytes and the other %d", a, b)
	}
	for _, m := range []*journal.Memory{ann, bob} {
		if err := m.Verify(); err != nil || m.Dropped() == 0 {
			t.Errorf("%d are dropped: %v", m.Dropped(), err)
		}
	}
	must.NoError(t, bob.Close())
	if fill(ann, 100); bytes(ann) < 3<<19 {
		t.Errorf("what was closed takes room: %d bytes", bytes(ann))
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

// Whoever changes what is before or in a checkpoint is found, without the key.
func TestForgedCheckpoints(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit string
		seq  uint64
	}{
		"a kept event removed":  {`DELETE FROM events WHERE seq=68`, 68},
		"a kept event edited":   {`UPDATE events SET run='x' WHERE seq=68`, 68},
		"a kept event forged":   {`UPDATE events SET run='x' WHERE seq=68`, 68},
		"an event put back":     {`INSERT INTO events SELECT 50,prev,hash,time,kind,run,branch,data FROM events WHERE seq=68`, 50},
		"more dropped":          {`DELETE FROM events WHERE seq=(SELECT seq+1 FROM events WHERE kind='checkpoint')`, 201},
		"no checkpoint":         {`DELETE FROM events WHERE kind='checkpoint'`, 18},
		"another time":          {`UPDATE events SET time=time+1 WHERE kind='checkpoint'`, 199},
		"another count":         {`UPDATE events SET data=CAST(replace(data,'"dropped":195','"dropped":194') AS BLOB) WHERE kind='checkpoint'`, 199},
		"another key":           {`UPDATE events SET data=CAST(replace(data,'"key":"','"key":"00') AS BLOB) WHERE kind='checkpoint'`, 199},
		"moved":                 {`UPDATE events SET seq=198 WHERE kind='checkpoint'`, 198},
		"an event in its place": {`UPDATE events SET kind='run.ended' WHERE kind='checkpoint'`, 18},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAged(t, 300)
			retain(t, a.Store, journal.RetainOptions{MaxAge: 100 * time.Minute, Keep: tools})
			verified(t, a.Store)
			// Whatever is changed is sealed anew: only the signature can tell.
			conn := raw(t, a.path)
			sqlExec(t, conn, c.edit)
			if name != "a kept event edited" {
				for _, e := range all(t, a.Store, journal.Query{Before: 200}) {
					sum := e.Seal()
					sqlExec(t, conn, `UPDATE events SET hash=? WHERE seq=?`, sum[:], int64(e.Seq))
				}
			}
			r, err := a.Verify(ctx)
			if b, ok := errors.AsType[*journal.Break](err); !ok || b.Seq != c.seq {
				t.Errorf("%v in %v, expected at %d", err, r.Breaks, c.seq)
			}
			if _, err := a.Retain(ctx, journal.RetainOptions{MaxAge: time.Minute}); err == nil || !strings.Contains(err.Error(), "nothing is dropped") {
				t.Errorf("more is dropped: %v", err)
			}
		})
	}
}

// A checkpoint made with another key, or by another store with the same key,
// holds only in itself.
func TestForeignCheckpoints(t *testing.T) {
	a, b := newAged(t, 20), newAged(t, 20)
	for _, s := range []*aged{a, b} {
		retain(t, s.Store, journal.RetainOptions{MaxAge: 10 * time.Minute})
	}
	conn := raw(t, a.path)
	sqlExec(t, conn, `ATTACH DATABASE ? AS other`, b.path)
	sqlExec(t, conn, `DELETE FROM events; INSERT INTO events SELECT * FROM other.events`)
	if r, err := a.Verify(ctx); err == nil || !strings.Contains(err.Error(), "another key") || len(r.Breaks) != 1 {
		t.Errorf("events and checkpoint of another store: %v", r.Breaks)
	}
	// With its public key in the store, the file beside it still tells.
	sqlExec(t, conn, `UPDATE meta SET value=(SELECT value FROM other.meta WHERE name='key') WHERE name='key'`)
	again := openStore(t, a.path, journal.Options{})
	if r, err := again.Verify(ctx); err == nil || len(r.Damage) == 0 || len(r.Breaks) != 1 {
		t.Errorf("with the other key: %v, %+v", err, r)
	}
	if _, err := again.Retain(ctx, journal.RetainOptions{MaxAge: 1}); !errors.Is(err, journal.ErrDamaged) {
		t.Errorf("Retain signs with a key that isn't the store's: %v", err)
	}
	must.NoError(t, os.Remove(a.path+".key"))
	if _, err := again.Retain(ctx, journal.RetainOptions{MaxAge: 1}); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "without its key") {
		t.Errorf("Retain without the key: %v", err)
	}
	if r, err := again.Verify(ctx); err == nil || !strings.Contains(err.Error(), "another store") {
		t.Errorf("with the other key and no file: %v", r.Breaks)
	}
}
