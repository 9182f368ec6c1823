package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// toy is a kind of notes, with a name each.
var toy = &caps.Manifest{
	Kind: "toy", Version: "1.0.0", Doc: "notes", Algebra: caps.Segments,
	Verbs: []caps.Verb{{Name: "get", Flags: caps.Flags{ReadOnly: true, Idempotent: true}}, {Name: "put", Flags: caps.Flags{Destructive: true}}},
	Operations: []caps.Operation{
		{Name: "toy.get", Verb: "get", Doc: "gives a note", Result: "any", Params: []caps.Param{
			{Name: "key", Doc: "its name", Type: "string", Main: true, Designates: true}, {Name: "part", Doc: "which", Type: "int", Optional: true},
		}},
		{Name: "toy.say", Verb: "get", Doc: "says something", Result: "any", Params: []caps.Param{{Name: "text", Doc: "what", Type: "string", Main: true}}},
		{Name: "toy.put", Verb: "put", Doc: "keeps a note", Result: "unit", Params: []caps.Param{
			{Name: "key", Doc: "its name", Type: "string", Designates: true}, {Name: "value", Doc: "the note", Type: "any"},
		}},
	},
}

// A script is what the world does, by chance.
type script struct {
	mu     sync.Mutex
	dice   *rand.Rand
	asked  int
	cancel func() // at the effect of number after
	after  int
}

func (*script) Prepare(*caps.Grant) {}

// Perform gives anything that a plugin could give.
func (s *script) Perform(_ context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked++; s.cancel != nil && s.asked == s.after {
		s.cancel()
		if s.dice.IntN(2) == 0 {
			return nil, 0, &fault.Fault{Kind: fault.OutcomeUnknown, Message: "it was cancelled", Hint: "Look."}
		}
	}
	if s.dice.IntN(5) == 0 {
		kind := []fault.Kind{fault.EffectFailed, fault.Denied, fault.Conflict, fault.OutcomeUnknown}[s.dice.IntN(4)]
		f := &fault.Fault{Kind: kind, Message: fmt.Sprintf("%s: no \"%d\" \n\x1b[31m\xff é", a.Operation.Name, s.dice.IntN(100)), Hint: "Try 'x'.", Expected: "more", Near: "toy"}
		if s.dice.IntN(4) == 0 {
			f.Message = strings.Repeat(f.Message, 500)
		}
		return nil, 0, f
	}
	return s.value(3), 100, nil
}

func (s *script) value(depth int) value.Value {
	digits, _ := journal.ReadValue([]byte(`{"int":"` + strings.Repeat("98765432109876543210", 1+s.dice.IntN(300)) + `"}`))
	dec, _ := value.ParseDec("12345.678900")
	code, _ := journal.ReadValue([]byte(`{"quote":{"add":[{"var":"x"},1]}}`))
	switch n := s.dice.IntN(13); {
	case n == 0:
		return digits
	case n == 1:
		return dec
	case n == 2:
		return code
	case n == 3:
		return value.Bool(s.dice.IntN(2) == 0)
	case n == 4:
		return value.Unit{}
	case n == 5 && s.dice.IntN(8) == 0:
		return value.Str(strings.Repeat("0123456789\u20ac\n", 25_000)) // a blob
	case n == 6:
		// It looks like the digest of a blob.
		return &value.Record{Fields: []value.Field{{Key: "bytes", Value: value.NewInt(5)}, {Key: "sha256", Value: value.Str(strings.Repeat("ab", 32))}}}
	case n < 9 && depth > 0:
		var items []value.Value
		for range s.dice.IntN(4) {
			items = append(items, s.value(depth-1))
		}
		return value.FromSlice(items)
	case n == 9 && depth > 0:
		return &value.Record{Fields: []value.Field{{Key: "a", Value: s.value(depth - 1)}, {Key: "dec", Value: s.value(depth - 1)}}}
	case n == 10 && depth > 0:
		return &value.Pair{First: s.value(depth - 1), Second: s.value(depth - 1)}
	case n == 11:
		return value.NewInt(int64(s.dice.IntN(1000)))
	}
	return value.Str(fmt.Sprintf("note %d \"\\ \u2028 \x7f", s.dice.IntN(1000)))
}

// A recorded world is a server whose effects are scripted, on a store.
type recordedWorld struct {
	t      testing.TB
	dice   *rand.Rand
	script *script
	policy *caps.Policy
	store  *journal.Store
	server *Server
	short  *Server // of little time and room
}

func newRecordedWorld(t testing.TB, seed uint64) *recordedWorld {
	t.Helper()
	return newRecordedWorldAt(t, seed, filepath.Join(t.TempDir(), "journal.db"), journal.Options{})
}

func newRecordedWorldAt(t testing.TB, seed uint64, path string, o journal.Options) *recordedWorld {
	t.Helper()
	store, err := journal.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	known, err := caps.NewKinds(toy)
	if err != nil {
		t.Fatal(err)
	}
	w := &recordedWorld{t: t, dice: rand.New(rand.NewPCG(seed, 1)), policy: caps.NewPolicy(known, time.Now), store: store}
	w.script = &script{dice: w.dice}
	c, err := caps.Parse("toy:notes/**", known)
	if err != nil {
		t.Fatal(err)
	}
	g, err := caps.Resolve(c, caps.ResolveOptions{Kinds: known})
	if err == nil {
		err = w.policy.Grant(g)
	}
	if err != nil {
		t.Fatal(err)
	}
	server := func(l Limits, acting run.Limits) *Server {
		return New(Options{Limits: l, Broker: run.New(run.Options{Policy: w.policy, Handler: w.script, Journal: store, Limits: acting})})
	}
	w.server = server(Limits{MaxSteps: 1_000_000}, run.Limits{})
	w.short = server(Limits{MaxMemory: 1 << 20, Timeout: 20 * time.Millisecond, Result: 100}, run.Limits{Effects: 6, Bytes: 2000})
	return w
}

// newest is the name of the run that began last.
func (w *recordedWorld) newest() string {
	w.t.Helper()
	events, _, err := w.store.Read(journal.Query{Kind: journal.RunStarted, Limit: 1, Last: true})
	if err != nil || len(events) == 0 {
		w.t.Fatalf("no run: %v", err)
	}
	return events[0].Run
}

// record reads a run's record.
func (w *recordedWorld) record(id string) *run.Record {
	w.t.Helper()
	rec, err := run.ReadRecord(w.store, id)
	if err != nil {
		w.t.Fatalf("run %s: %v", id, err)
	}
	return rec
}

// replay replays a run with the tools as they were, opened anew.
func (w *recordedWorld) replay(rec *run.Record) (wire.Answer, run.Verdict) {
	w.t.Helper()
	return Replay(w.t.Context(), ReplayOptions{Replay: run.NewReplay(rec, false), Tools: w.at(rec.AsOf)})
}

func (w *recordedWorld) at(seq uint64) *registry.Snapshot {
	w.t.Helper()
	tools, _, err := registry.Open(run.Log(w.store), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	s, err := tools.At(seq)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// identical replays a run and holds the answer to the one that was given.
func (w *recordedWorld) identical(id string, was wire.Answer) {
	w.t.Helper()
	rec := w.record(id)
	now, v := w.replay(rec)
	was = recorded(was)
	if v.Verdict != run.Identical || now.Text != was.Text || string(now.Structured) != string(was.Structured) || strings.Join(now.More, "\x00") != strings.Join(was.More, "\x00") {
		w.t.Errorf("%s %s gave\n%.2000s\nand its replay %s: %s\n%.2000s", rec.Call.Tool, rec.Call.Arguments, was.Structured, v.Verdict, v.Text, now.Structured)
	}
}

// recorded is an answer without how to read on in it, which the record hasn't.
func recorded(a wire.Answer) wire.Answer {
	if before, _, ok := strings.Cut(string(a.Structured), `,"uri":"pif://results/`); ok {
		a.Structured = []byte(before + "}")
		a.More = slices.DeleteFunc(slices.Clone(a.More), func(s string) bool { return strings.HasPrefix(s, `next: {"name":"run","arguments":{"result":`) })
	}
	return a
}

func (w *recordedWorld) evolve(name string, code any, capabilities ...string) {
	w.t.Helper()
	arguments, err := json.Marshal(map[string]any{"name": name, "code": code, "capabilities": capabilities, "draft": true})
	if err != nil {
		w.t.Fatal(err)
	}
	must(w.t, w.server, "evolve", string(arguments))
}

type term1 = map[string]any

// program is a term that acts, by chance. A variable x is in scope.
func (w *recordedWorld) program(depth int) any {
	d := w.dice
	sub := func() any { return w.program(depth - 1) }
	key := func() string {
		return []string{"notes/", "notes/deep/", "elsewhere/", "notes/../"}[[]int{0, 0, 0, 0, 1, 2, 3}[d.IntN(7)]] + fmt.Sprint(d.IntN(5))
	}
	if depth == 0 {
		return []any{d.IntN(10), term1{"try": term1{"toy.get": key()}}, term1{"var": "x"}, term1{"toy.get": key()}, term1{"toy.get": term1{"record": term1{"key": key(), "part": d.IntN(3)}}}}[d.IntN(5)]
	}
	fn := func(body any) any { return term1{"lam": "x", "body": body} }
	switch d.IntN(22) {
	case 0, 1:
		return term1{"try": sub()}
	case 2, 3:
		return term1{"par": []any{sub(), term1{"try": sub()}, sub()}}
	case 4:
		return []any{sub(), sub()}
	case 5:
		return term1{"pair": []any{sub(), sub()}}
	case 6:
		return term1{"let": []any{[]any{"x", sub()}}, "in": sub()}
	case 7:
		return term1{"fold": []any{term1{"lam": "x", "body": term1{"pair": []any{term1{"snd": term1{"var": "x"}}, term1{"try": sub()}}}}, 0, term1{"range": []any{0, d.IntN(5)}}}}
	case 8, 9:
		return term1{"call": term1{"tool": "helper", "input": term1{"var": "x"}}}
	case 10:
		return term1{"try": term1{"call": term1{"tool": term1{"concat": []any{"sec", "ret"}}, "input": 1}}} // denied
	case 11:
		return term1{"eval": term1{"quote": sub()}, "with": []any{"toy.get:notes/**"}}
	case 12:
		return term1{"try": term1{"eval": term1{"quote": term1{"toy.get": key()}}}}
	case 13:
		return term1{"raise": sub()}
	case 14:
		return term1{"length": sub()}
	case 15:
		return term1{"get": []any{sub(), "a", sub()}}
	case 16:
		return term1{"if": term1{"cond": term1{"equal": []any{sub(), sub()}}, "then": sub(), "else": sub()}}
	case 17:
		return term1{"toy.put": term1{"record": term1{"key": key(), "value": sub()}}}
	case 18:
		return term1{"app": term1{"func": fn(sub()), "arg": sub()}}
	case 19:
		return term1{"record": term1{"a": sub(), "b": term1{"type_of": sub()}}}
	case 20:
		return term1{"eval": term1{"try": sub()}}
	}
	return term1{"try": term1{"toy.get": term1{"concat": []any{"notes/", term1{"to_text": term1{"var": "x"}}}}}}
}

// input is an input, by chance.
func (w *recordedWorld) input() any {
	switch w.dice.IntN(9) {
	case 0:
		return strings.Repeat("a large input \"\u00e9\" ", 20_000)
	case 1:
		return []any{1, "2", nil, true}
	case 2:
		return term1{"pair": []any{1, 2}}
	case 3:
		return nil
	case 4:
		return "7"
	}
	return w.dice.IntN(6)
}
