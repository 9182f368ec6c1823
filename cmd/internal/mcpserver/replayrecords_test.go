package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// What the journal couldn't take, and what a killed server left, is replayed as
// far as it goes.
func TestReplayOfWhatIsMissing(t *testing.T) {
	w := newRecordedWorld(t, 5)
	w.server.broker = run.New(run.Options{Policy: w.policy, Handler: steady{}, Journal: w.store})
	w.evolve("it", `k => [!toy.get("notes/a"), !toy.get("notes/b")]`, toyGet)
	must(t, w.server, "run", `{"tool":"it","input":1}`)
	events, _, err := w.store.Read(journal.Query{Run: w.newest()})
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int]string{
		6: run.Identical, // start, request, outcome, request, outcome, end
		5: run.Incomplete, 4: run.Incomplete, 3: run.Incomplete, 2: run.Incomplete, 1: run.Incomplete, 0: run.Impossible,
	} {
		rec, err := run.ParseRecord(w.store, events[:n])
		if n == 0 {
			if err == nil {
				t.Error("no events are a record")
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, v := w.replay(rec); v.Verdict != want {
			t.Errorf("of %d events it is %s: %s", n, v.Verdict, v.Text)
		}
	}
	if _, err := run.ParseRecord(w.store, events[1:]); err == nil || !strings.Contains(err.Error(), "beginning") {
		t.Errorf("without its beginning: %v", err)
	}
	if _, err := run.ReadRecord(w.store, "nosuch-1"); err == nil || !strings.Contains(err.Error(), "no run") {
		t.Errorf("of a run that never was: %v", err)
	}
}

// failing takes every event but one.
type failing struct {
	journal.Journal
	at int
}

func (f *failing) Append(s journal.Stage, k journal.Kind, id, branch string, data []byte) (uint64, error) {
	if id != "" {
		if f.at--; f.at == -1 {
			return 0, errors.New("the disk is full")
		}
	}
	return f.Journal.Append(s, k, id, branch, data)
}

func (f *failing) AppendLater(s journal.Stage, k journal.Kind, id, branch string, data []byte) func() (uint64, error) {
	seq, err := f.Append(s, k, id, branch, data)
	return func() (uint64, error) { return seq, err }
}

// What one event was that the journal didn't take can be told from the others,
// but for a denial's words.
func TestReplayOfWhatTheJournalDidntTake(t *testing.T) {
	w := newRecordedWorld(t, 12)
	w.evolve("it", `k => [try(!toy.get("notes/a")), try(!toy.get("elsewhere")), try(!toy.get("notes/b"))]`, toyGet)
	for i, want := range []string{
		run.Impossible, // the start
		run.Identical,  // a request: it wasn't done
		run.Identical,  // an outcome: nobody knows
		run.Different,  // a denial
		run.Identical, run.Identical,
		run.Incomplete, // the end
		run.Identical,  // nothing
	} {
		w.server.broker = run.New(run.Options{Policy: w.policy, Handler: steady{}, Journal: &failing{w.store, i}})
		was := must(t, w.server, "run", `{"tool":"it","input":1}`)
		events, _, err := w.store.Read(journal.Query{Kind: journal.EffectOutcome, Limit: 1, Last: true}) // each has two
		if err != nil {
			t.Fatal(err)
		}
		rec, err := run.ReadRecord(w.store, events[0].Run)
		if err != nil {
			if want != run.Impossible {
				t.Errorf("without event %d: %v", i, err)
			}
			continue
		}
		now, v := w.replay(rec)
		if v.Verdict != want || want == run.Identical && string(now.Structured) != string(was.Structured) {
			t.Errorf("without event %d it is %s: %s; %s", i, v.Verdict, v.Text, now.Structured)
		}
		if want == run.Different && !strings.Contains(strings.Join(v.Notes, ""), "didn't take 1 of its denials") {
			t.Errorf("without event %d the notes are %q", i, v.Notes)
		}
	}
}

// A record that lies is refused, or differs; it breaks nothing.
func TestRecordsThatLie(t *testing.T) {
	runs := 300
	if os.Getenv("PIF_FULL") != "" {
		runs = 20_000
	}
	w := newRecordedWorld(t, 6)
	w.evolve("helper", term1{"lam": "x", "body": []any{term1{"toy.get": "notes/helper"}, term1{"var": "x"}}}, toyGet)
	w.evolve("it", term1{"lam": "x", "body": []any{term1{"par": []any{term1{"try": term1{"toy.get": "notes/a"}}, term1{"try": term1{"toy.get": "elsewhere"}}}},
		term1{"try": term1{"call": term1{"tool": "helper", "input": 1}}}, term1{"try": term1{"call": term1{"tool": term1{"var": "x"}, "input": 1}}}, term1{"try": term1{"toy.get": "notes/b"}}}}, toyGet, "call:helper")
	do(t, w.server, "run", `{"tool":"it","input":"secret"}`)
	id := w.newest()
	events, _, err := w.store.Read(journal.Query{Run: id})
	if err != nil {
		t.Fatal(err)
	}
	tools := w.at(w.record(id).AsOf)
	lies := []string{`null`, `0`, `-1`, `18446744073709551615`, `1e999`, `""`, `"\ud800"`, `[]`, `{}`, `[[[[[[]]]]]]`, `{"kind":""}`, `{"kind":"timeout","message":"m"}`,
		`{"kind":"denied","message":"m","raised":{"pair":[1]}}`, `{"bytes":5,"sha256":"` + strings.Repeat("00", 32) + `"}`, `{"bytes":-1,"sha256":"x"}`,
		`{"quote":{"eval":{"self":true}}}`, `{"quote":5e}`, `{"int":"-"}`, `{"dec":"1.2.3"}`, `{"record":{"b":1,"a":2}}`, `{"pair":[1,2,3]}`, strings.Repeat("[", 3000) + strings.Repeat("]", 3000),
		`{"tool":"evolve","arguments":"{}"}`, `{"tool":"it","arguments":"{"}`, `{"steps":1,"memory":1,"depth":1,"result":1}`}
	for i := range runs {
		forged := make([]journal.Event, 0, len(events)+1)
		for j := range events {
			e := events[j]
			if w.dice.IntN(len(events)) == 0 {
				e.Data = lie(w.dice, e.Data, lies[w.dice.IntN(len(lies))])
			}
			switch w.dice.IntN(30) {
			case 0: // is missing
			case 1:
				forged = append(forged, e, e)
			case 2:
				e.Kind = events[w.dice.IntN(len(events))].Kind
				forged = append(forged, e)
			default:
				forged = append(forged, e)
			}
		}
		rec, err := run.ParseRecord(w.store, forged)
		if err != nil {
			continue
		}
		a, v := Replay(t.Context(), ReplayOptions{Replay: run.NewReplay(rec, i%2 == 1), Tools: tools})
		if a.Fault != nil && a.Fault.Kind == fault.Internal && strings.Contains(a.Fault.Message, "defect") {
			t.Errorf("a panic: %s, of %v", a.Text, forged)
		}
		if v.Verdict == "" || v.Text == "" {
			t.Errorf("no verdict of %v", forged)
		}
	}
}

// lie puts another value in the place of one member, or takes it out.
func lie(dice *rand.Rand, data []byte, with string) []byte {
	members, _ := wire.Split(data)
	if len(members) == 0 {
		return data
	}
	k := dice.IntN(len(members))
	o := wire.Begin()
	for i, m := range members {
		switch {
		case i != k:
			o = o.Raw(m.Name, m.Value)
		case dice.IntN(4) == 0:
		case dice.IntN(3) == 0 && m.Value[0] == '{':
			o = o.Raw(m.Name, lie(dice, m.Value, with))
		default:
			o = o.Raw(m.Name, json.RawMessage(with))
		}
	}
	return o.End()
}

// An event that isn't what was recorded, or is missing, is found before anything
// is replayed, whosever it is.
func TestReplayChecksTheChain(t *testing.T) {
	w := newRecordedWorld(t, 7)
	w.server.broker = run.New(run.Options{Policy: w.policy, Handler: steady{}, Journal: w.store})
	w.evolve("it", `k => [!toy.get("notes/a"), !toy.get("notes/b")]`, toyGet)
	must(t, w.server, "run", `{"tool":"it","input":1}`)
	id := w.newest()
	events, _, err := w.store.Read(journal.Query{Run: id})
	if err != nil {
		t.Fatal(err)
	}
	w.record(id)
	for i := range events {
		seq := events[i].Seq
		for how, edit := range map[string]func(*journal.Event) bool{
			"changed": func(e *journal.Event) bool {
				e.Data = []byte(strings.Replace(string(e.Data), ":", ": ", 1))
				return true
			},
			"sealed anew": func(e *journal.Event) bool {
				e.Data = []byte(strings.Replace(string(e.Data), ":", ": ", 1))
				e.Hash = e.Seal()
				return true
			},
			"missing": func(*journal.Event) bool { return false },
		} {
			if i == len(events)-1 && how != "changed" {
				continue // nothing behind it knows of it
			}
			if i == 0 && how == "missing" {
				continue // then it has no beginning
			}
			if _, err := run.ReadRecord(forging{w.store, seq, edit}, id); err == nil {
				t.Errorf("event %d of the run %s: nothing was found", i, how)
			}
		}
	}
}

// A forging journal has one event edited.
type forging struct {
	journal.Journal
	seq  uint64
	edit func(*journal.Event) bool
}

func (f forging) Read(q journal.Query) ([]journal.Event, bool, error) {
	events, more, err := f.Journal.Read(q)
	var list []journal.Event
	for _, e := range events {
		if e.Seq != f.seq || f.edit(&e) {
			list = append(list, e)
		}
	}
	return list, more, err
}

// A file that was edited is refused: what a program was given is what was recorded.
func TestReplayRefusesAnEditedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	w := newRecordedWorldAt(t, 10, path, journal.Options{})
	w.server.broker = run.New(run.Options{Policy: w.policy, Handler: steady{}, Journal: w.store})
	w.evolve("it", `k => !toy.get("notes/original")`, toyGet)
	must(t, w.server, "run", `{"tool":"it","input":1}`)
	id := w.newest()
	w.record(id)
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	outcome := []byte(`"value":{"key":"notes/original"}`)
	if bytes.Count(text, outcome) != 1 {
		t.Fatalf("the file has the outcome %d times", bytes.Count(text, outcome))
	}
	if err := os.WriteFile(path, bytes.Replace(text, outcome, []byte(`"value":{"key":"notes/ORIGINAL"}`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	store, err := journal.Open(path, journal.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	var broken *journal.Break
	if _, err := run.ReadRecord(store, id); !errors.As(err, &broken) {
		t.Errorf("reading the record gave %v", err)
	}
}

// A run of which retention dropped a part says so; one that is there is replayed,
// with tools that were made before what was dropped.
func TestReplayAfterRetention(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var later time.Duration
	var mu sync.Mutex
	w := newRecordedWorldAt(t, 11, filepath.Join(t.TempDir(), "journal.db"), journal.Options{Now: func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now.Add(later)
	}})
	w.server.broker = run.New(run.Options{Policy: w.policy, Handler: slow(func() {
		mu.Lock()
		defer mu.Unlock()
		later += time.Hour
	}), Journal: w.store})
	w.evolve("it", `k => [!toy.get("notes/a"), !toy.get("notes/b")]`, toyGet)
	must(t, w.server, "run", `{"tool":"it","input":1}`)
	gone := w.newest()
	must(t, w.server, "run", `{"tool":"it","input":1}`)
	half := w.newest()
	was := must(t, w.server, "run", `{"tool":"it","input":1}`)
	there := w.newest()
	// Now 6 hours have passed: the first run took 2, and so on.
	if _, err := w.store.Retain(t.Context(), journal.RetainOptions{MaxAge: 3*time.Hour + time.Minute}); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{gone: "there is no run", half: "its beginning is not on record"} {
		if _, err := run.ReadRecord(w.store, id); !errors.Is(err, run.ErrNoRecord) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "dropped by retention") {
			t.Errorf("of %s: %v", id, err)
		}
	}
	w.identical(there, was)
}

// slow is steady, and does something else meanwhile.
type slow func()

func (slow) Prepare(*caps.Grant) {}

func (s slow) Perform(ctx context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
	s()
	return steady{}.Perform(ctx, a)
}

// Every part of a record counts: the place of a request, and the whole answer.
func TestReplayComparesAll(t *testing.T) {
	w := newRecordedWorld(t, 13)
	w.server.broker = run.New(run.Options{Policy: w.policy, Handler: steady{}, Journal: w.store})
	w.evolve("it", `k => [!toy.get("notes/a")]`, toyGet)
	must(t, w.server, "run", `{"tool":"it","input":1}`)
	events, _, err := w.store.Read(journal.Query{Run: w.newest()})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		event    int
		old, new string
		want     string
	}{
		{1, `"at":"1:7"`, `"at":"1:9"`, "differs (place)"},
		{1, `"op":"toy.get"`, `"op":"toy.put"`, "differs (operation)"},
		{3, `"answer":"`, `"answer":"00`, "64 digits"},
		{3, `"answer":`, `"answer":"` + strings.Repeat("00", 32) + `","old":`, "the notes or the next call of the answer differ"},
		{3, `"steps":`, `"steps":9`, "steps: 9"},
		{3, `"type":"list"`, `"type":"pair"`, "the result: pair of"},
	} {
		forged := append([]journal.Event{}, events...)
		text := strings.Replace(string(events[c.event].Data), c.old, c.new, 1)
		if text == string(events[c.event].Data) {
			t.Errorf("event %d has no %s: %s", c.event, c.old, text)
		}
		forged[c.event].Data = []byte(text)
		rec, err := run.ParseRecord(w.store, forged)
		says := ""
		if err != nil {
			says = err.Error()
		} else {
			_, v := w.replay(rec)
			says = v.Text
		}
		if !strings.Contains(says, c.want) {
			t.Errorf("with %s it says %q, not %q", c.new, says, c.want)
		}
	}
	doubled := append(append([]journal.Event{}, events[:3]...), events[2:]...)
	if _, err := run.ParseRecord(w.store, doubled); !errors.Is(err, run.ErrNoRecord) {
		t.Errorf("of two outcomes of one request: %v", err)
	}
}
