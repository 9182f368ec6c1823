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
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/engine"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
)

const (
	toyGet = "toy.get:notes/**"
	toyPut = "toy.put:notes/**"
)

// Whatever a run did, and however it ended, its replay gives the very same
// answer.
func TestReplaysAreIdentical(t *testing.T) {
	runs := must.Full(50, 1000)
	w := newRecordedWorld(t, 42)
	w.evolveGenerated()
	ends, effects := map[string]int{}, 0
	for i := range runs {
		id, was, begun := w.generated(i)
		if !begun {
			ends["not begun"]++
			continue
		}
		end := "done"
		if was.Fault != nil {
			end = string(was.Fault.Kind)
		}
		ends[end]++
		effects += w.record(id).Requests()
		w.identical(id, was)
	}
	t.Logf("%d decisions; ends: %v", effects, ends)
	if effects < 2*runs || ends["done"] < runs/10 || ends["cancelled"] == 0 || ends["timeout"] == 0 || ends["out_of_fuel"] == 0 || len(ends) < 7 {
		t.Errorf("these runs show too little: %d decisions, ends %v", effects, ends)
	}
}

// evolveGenerated makes the tools that generated runs call.
func (w *recordedWorld) evolveGenerated() {
	w.evolve("helper", term1{"lam": "x", "body": []any{term1{"toy.get": "notes/helper"}, term1{"var": "x"}}}, toyGet)
	w.evolve("secret", 1)
	w.evolve("steps", `n => if n <= 0 then !toy.get("notes/end") else (let got = try(!toy.get("notes/" ++ to_text(n))) in continue(n - 1))`, toyGet)
	w.evolve("spin", "n => self(n + 1)")
}

// generated does a run by chance, the i-th, which ends in one of many ways.
func (w *recordedWorld) generated(i int) (id string, was wire.Answer, begun bool) {
	w.t.Helper()
	// How far a run came that the clock ended is nothing to those after it.
	*w.dice = *rand.New(rand.NewPCG(42, uint64(i)))
	w.evolve("it", term1{"lam": "x", "body": []any{w.program(4), w.program(3)}}, toyGet, toyPut, "call:helper")
	tool, arguments := "run", term1{"tool": "it", "input": w.input(), "input_as": []string{"auto", "data"}[w.dice.IntN(2)]}
	server := w.server
	switch i % 10 {
	case 0:
		tool, arguments = "it", term1{"input": w.input()}
	case 1:
		arguments["steps"] = 1 + w.dice.IntN(120)
	case 2:
		server = w.short
	case 3:
		arguments = term1{"tool": "steps", "input": w.dice.IntN(6), "drive": w.dice.IntN(3) > 0, "rounds": 1 + w.dice.IntN(6)}
	case 4:
		arguments = term1{"code": term1{"lam": "x", "body": w.program(2)}, "input": w.input()}
	case 5:
		w.script.after = w.script.asked + 1 + w.dice.IntN(3)
	case 6:
		if i%30 == 6 {
			server, arguments = w.short, term1{"tool": "spin", "input": 1, "steps": 200_000_000}
		}
	}
	text, err := json.Marshal(arguments)
	must.NoError(w.t, err)
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	w.script.cancel = nil
	if i%10 == 5 {
		w.script.cancel = cancel
	}
	before := w.newestOr()
	was = server.Call(ctx, Call{Tool: tool, Arguments: text})
	id = w.newestOr()
	return id, was, id != before
}

// newestOr is newest, or nothing.
func (w *recordedWorld) newestOr() string {
	events, _, err := w.store.Read(journal.Query{Kind: journal.RunStarted, Limit: 1, Last: true})
	if err != nil || len(events) == 0 {
		return ""
	}
	return events[0].Run
}

// A run that was cancelled, or took too long, while it computed is replayed up to
// that step, whatever the clock says.
func TestReplayEndsWhereTheWorldEndedIt(t *testing.T) {
	w := newRecordedWorld(t, 1)
	w.evolve("spin", "n => self(n + 1)")
	was := do(t, w.short, "run", `{"tool":"spin","input":1,"steps":1000000000}`)
	if was.Fault == nil || was.Fault.Kind != fault.Timeout {
		t.Fatalf("it ended with %s", was.Text)
	}
	w.identical(w.newest(), was)

	ctx, cancel := context.WithCancel(t.Context())
	var reports atomic.Int32
	was = w.server.Call(ctx, Call{Tool: "run", Arguments: json.RawMessage(`{"tool":"spin","input":1}`), Progress: func(engine.Progress) {
		if reports.Add(1) == 1 {
			cancel()
		}
	}})
	if was.Fault == nil || was.Fault.Kind != fault.Cancelled || was.Steps == 0 {
		t.Fatalf("it ended with %s", was.Text)
	}
	w.identical(w.newest(), was)
	if _, v := w.replay(w.record(w.newest())); !strings.Contains(v.Text, "up to its end by cancelled") {
		t.Errorf("the verdict is %q", v.Text)
	}
}

// A dying context is over when it was asked so many times.
type dying struct {
	context.Context
	left atomic.Int64
}

func (d *dying) Err() error {
	if d.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// Wherever a run may be stopped, its replay is stopped there: with the same steps,
// and the same call to go on with.
func TestReplayOfEveryMoment(t *testing.T) {
	w := newRecordedWorld(t, 8)
	w.server = over(w.server, run.New(run.Options{Policy: w.policy, Handler: steady{}, Journal: w.store}))
	w.evolve("rounds", `p => (let n = fst(p) in let got = !toy.get("notes/a") in if n <= 0 then range(0, 12000) else continue((n - 1, range(0, 8000))))`, toyGet)
	moments := map[run.Moment]int{}
	for n := range int64(40) {
		ctx := &dying{Context: t.Context()}
		ctx.left.Store(n)
		was := w.server.Call(ctx, Call{Tool: "run", Arguments: json.RawMessage(`{"tool":"rounds","input":{"pair":[2,1]},"drive":true,"input_as":"data"}`)})
		id := w.newest()
		w.identical(id, was)
		if e := w.record(id).End; e != nil {
			moments[e.Stopped]++
		}
	}
	for _, m := range []run.Moment{run.Running, run.Encoding, run.Between} {
		if moments[m] == 0 {
			t.Errorf("no run was stopped %s: %v", m, moments)
		}
	}
}

// A replay has room, and ends where there was none.
func TestReplayOfARunWithoutRoom(t *testing.T) {
	w := newRecordedWorld(t, 9)
	w.server = over(w.server, run.New(run.Options{Policy: w.policy, Handler: steady{}, Journal: w.store}))
	w.evolve("large", `n => (let got = !toy.get("notes/a") in let list = map(x => [x, x + 1], range(0, 200000)) in [!toy.get("notes/b"), length(list)])`, toyGet)
	core.SetPool(1 << 20)
	was := do(t, w.server, "run", `{"tool":"large","input":1}`)
	core.SetPool(128 << 20)
	if was.Fault == nil || was.Fault.Kind != fault.Overloaded || was.Steps == 0 {
		t.Fatalf("it ended with %s", was.Structured)
	}
	w.identical(w.newest(), was)
}

// A main argument that stands alone is recognised at any size: on record there may
// be no more of it than a digest of the record that it became.
func TestReplayOfLargeArguments(t *testing.T) {
	w := newRecordedWorld(t, 11)
	w.server = over(w.server, run.New(run.Options{Policy: w.policy, Handler: steady{}, Journal: w.store}))
	w.evolve("alone", `k => {got: !toy.say(k)}`, toyGet)
	w.evolve("named", `k => {got: !toy.say({text: k})}`, toyGet)
	for _, n := range []int{100, 16<<10 - 30, 16<<10 - 8, 16<<10 - 2, 16<<10 + 100} {
		input := wire.Encode(strings.Repeat("a", n))
		for _, tool := range []string{"alone", "named"} {
			was := do(t, w.server, "run", fmt.Sprintf(`{"tool":%q,"input":%s,"input_as":"data"}`, tool, input))
			id := w.newest()
			w.identical(id, was)
			if was.Fault != nil {
				t.Errorf("%s with %d bytes: %v", tool, n, was.Fault)
			}
		}
	}
}

// What a tool is now is nothing to a replay: it runs the code it had.
func TestReplayRunsTheCodeOfThen(t *testing.T) {
	w := newRecordedWorld(t, 2)
	w.evolve("part", `k => !toy.get("notes/part")`, toyGet)
	w.evolve("whole", `k => [@part(k), type_of(code_of("part"))]`, "call:part")
	was := do(t, w.server, "run", `{"tool":"whole","input":1}`)
	first := w.newest()
	w.evolve("part", `k => "another"`)
	w.evolve("whole", `k => [@part(k), 2]`, "call:part")
	was2 := do(t, w.server, "run", `{"tool":"whole","input":1}`)
	second := w.newest()
	succeed(t, w.server, "retire", `{"name":"part"}`)
	must.Succeed(t)(w.server.Registry().Rollback("whole", 1, registry.Edit{}))
	succeed(t, w.server, "retire", `{"name":"whole"}`)
	must.NoError(t, w.policy.Replace(nil, nil))
	w.identical(first, was)
	w.identical(second, was2)
}

// requests is a program of n requests whose order is that of their keys, with an
// edit of request k; -1: none.
func requests(dice *rand.Rand, n, k int, edit func(i int) any) any {
	var build func(from, to int) any
	build = func(from, to int) any {
		if to-from == 1 {
			if from == k {
				return edit(from)
			}
			return term1{"toy.get": fmt.Sprintf("notes/%d", from)}
		}
		mid := from + 1 + dice.IntN(to-from-1)
		a, b := build(from, mid), build(mid, to)
		switch dice.IntN(4) {
		case 0:
			return []any{a, b}
		case 1:
			return term1{"let": []any{[]any{"y", a}}, "in": []any{term1{"var": "y"}, b}}
		case 2:
			return term1{"pair": []any{term1{"try": a}, b}}
		}
		return term1{"fst": term1{"pair": []any{term1{"app": term1{"func": term1{"lam": "z", "body": []any{term1{"var": "z"}, b}}, "arg": a}}, 1}}}
	}
	return term1{"lam": "x", "body": build(0, n)}
}

// Code that asks for something else is caught at the very request; code that is
// only written otherwise passes.
func TestOtherCodeIsCaughtAtTheRequest(t *testing.T) {
	runs := must.Full(30, 1000)
	w := newRecordedWorld(t, 3)
	for i := range runs {
		n := 2 + w.dice.IntN(12)
		w.evolve("it", requests(w.dice, n, -1, nil), toyGet)
		// No outcome may fail: what comes behind it would not be asked for.
		w.server = over(w.server, run.New(run.Options{Policy: w.policy, Handler: steady{}, Journal: w.store}))
		succeed(t, w.server, "run", `{"tool":"it","input":1}`)
		rec := w.record(w.newest())
		if rec.Requests() != n {
			t.Fatalf("%d requests are on record, not %d", rec.Requests(), n)
		}
		with := func(k int, edit func(int) any) run.Verdict {
			code, err := json.Marshal(requests(w.dice, n, k, edit))
			must.NoError(t, err)
			tools, _, err := w.at(rec.AsOf).Trying(registry.Definition{Name: "it", Code: code})
			must.NoError(t, err)
			_, v := engine.Replay(t.Context(), engine.ReplayOptions{Replay: run.NewReplay(rec, true), Tools: tools})
			return v
		}
		k := w.dice.IntN(n)
		if v := with(k, func(i int) any { return term1{"toy.get": term1{"record": term1{"key": fmt.Sprintf("notes/%d", i)}}} }); v.Difference != nil || v.Same != n {
			t.Errorf("run %d: written otherwise it is %s: %s", i, v.Verdict, v.Text)
		}
		for what, edit := range map[string]func(int) any{
			"arguments": func(i int) any { return term1{"toy.get": fmt.Sprintf("notes/%d", i+100)} },
			"operation": func(i int) any { return term1{"toy.put": fmt.Sprintf("notes/%d", i)} },
			`"in"`: func(i int) any {
				return term1{"toy.get": term1{"record": term1{"in": "notes/**", "key": fmt.Sprintf("notes/%d", i)}}}
			},
		} {
			v := with(k, edit)
			if v.Verdict != run.Different || v.Difference == nil || v.Difference.N != k+1 || v.Difference.What != what || v.Same != k || !strings.Contains(string(v.Difference.Recorded.Args), fmt.Sprintf("notes/%d", k)) {
				t.Errorf("run %d: another %s in request %d of %d is reported as %s: %s", i, what, k+1, n, v.Verdict, v.Text)
			}
		}
		if v := with(k, func(int) any { return 1 }); v.Verdict != run.Different || v.Difference == nil || v.Difference.N != k+1 {
			t.Errorf("run %d: without request %d of %d it is %s: %s", i, k+1, n, v.Verdict, v.Text)
		}
		if v := with(n-1, func(i int) any {
			return []any{term1{"toy.get": fmt.Sprintf("notes/%d", i)}, term1{"toy.get": "notes/more"}}
		}); v.Verdict != run.Different || v.Difference == nil || v.Difference.N != n+1 || v.Difference.Recorded != nil {
			t.Errorf("run %d: with a request more it is %s: %s", i, v.Verdict, v.Text)
		}
	}
}

// steady gives the key back.
type steady struct{}

func (steady) Prepare(*caps.Grant) {}

func (steady) Perform(_ context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
	return a.Args, 10, nil
}

// A replay says when the code of then isn't what ran: the same place, another
// request.
func TestReplayTellsWhatDiffers(t *testing.T) {
	w := newRecordedWorld(t, 4)
	w.server = over(w.server, run.New(run.Options{Policy: w.policy, Handler: steady{}, Journal: w.store}))
	w.evolve("it", `k => [!toy.get("notes/a"), !toy.get("notes/b")]`, toyGet)
	succeed(t, w.server, "run", `{"tool":"it","input":1}`)
	rec := w.record(w.newest())
	for code, want := range map[string]string{
		`k => [!toy.get("notes/a"), !toy.get("notes/b")]`:                       "the same: 2 requests, and the result",
		`k => (let b = !toy.get({key: "notes/a"}) in [b, !toy.get("notes/b")])`: "the same: 2 requests, and the result",
		`k => [!toy.get("notes/a"), !toy.get("notes/b"), 1]`:                    "2 requests, all the same; the result: list of",
		`k => !toy.get("notes/a")`:                                              `request 2: toy.get {"key":"notes/b"} at`,
		`k => [!toy.get("notes/b"), !toy.get("notes/a")]`:                       `request 1 differs (arguments): toy.get {"key":"notes/a"} at tool:it 1:7 was recorded, and it asked for toy.get "notes/b" at tool:it 1:7`,
		`k => par(!toy.get("notes/a"), !toy.get("notes/b"))`:                    "the same: 2 requests, and the result",
	} {
		tools, _, err := w.at(rec.AsOf).Trying(registry.Definition{Name: "it", Code: []byte(code), Text: true})
		must.NoError(t, err)
		_, v := engine.Replay(t.Context(), engine.ReplayOptions{Replay: run.NewReplay(rec, true), Tools: tools})
		if !strings.Contains(v.Text, want) {
			t.Errorf("%s: %s, not %q", code, v.Text, want)
		}
	}
}

// An argument that is larger than the run's memory once it is written is nowhere on
// record, and its denial and its refusal are replayed.
func TestReplayOfArgumentsThatAreNotRecorded(t *testing.T) {
	const shared = `fold(p => (fst(p), fst(p)), 1, range(0, 60))`
	w := newRecordedWorld(t, 12)
	w.server = New(Options{
		Limits: Limits{MaxMemory: 2 << 20},
		Broker: run.New(run.Options{Policy: w.policy, Handler: steady{}, Journal: w.store}),
	})
	was := do(t, w.server, "run", `{"code":"try(!toy.say(`+shared+`))"}`)
	if was.Fault != nil || !strings.Contains(was.Text, `"denied"`) {
		t.Errorf("inline code was told %s", was.Text)
	}
	w.identical(w.newest(), was)
	w.evolve("put", `k => get(try(!toy.put({key: k, value: [`+shared+`]})), "error")`, toyPut)
	was = do(t, w.server, "run", `{"tool":"put","input":"elsewhere/a"}`)
	if was.Fault != nil || !strings.Contains(was.Text, `"denied"`) {
		t.Errorf("a denial gave %s", was.Text)
	}
	w.identical(w.newest(), was)
}

// A record of another version of what programs mean, in which steps were counted
// in another way, is told from one that was tampered with.
func TestReplayUnderOtherRules(t *testing.T) {
	w := newRecordedWorld(t, 13)
	w.server = over(w.server, run.New(run.Options{Policy: w.policy, Handler: steady{}, Journal: w.store}))
	w.evolve("get", `k => !toy.get(k)`, toyGet)
	w.evolve("spin", `n => (let got = !toy.get("notes/a") in self(n + 1))`, toyGet)
	replay := func(rec *run.Record) run.Verdict {
		_, v := w.replay(rec)
		return v
	}
	do(t, w.server, "run", `{"tool":"get","input":"notes/a"}`)
	rec := w.record(w.newest())
	rec.End.Steps--
	if v := replay(rec); v.Verdict != run.Different {
		t.Errorf("other steps under the same rules are %s: %s", v.Verdict, v.Text)
	}
	rec.Semantics--
	if v := replay(rec); v.Verdict != run.Same || !strings.Contains(v.Text, "steps") {
		t.Errorf("other steps under other rules are %s: %s", v.Verdict, v.Text)
	}
	rec.End.Effects++
	if v := replay(rec); v.Verdict != run.Different {
		t.Errorf("an effect fewer under other rules is %s: %s", v.Verdict, v.Text)
	}
	do(t, w.server, "evolve", `{"name":"largest","code":"k => [!toy.get(k), max([])]","capabilities":["toy.get:notes/**"],"draft":true}`)
	do(t, w.server, "run", `{"tool":"largest","input":"notes/a"}`)
	rec = w.record(w.newest())
	if v := replay(rec); v.Verdict != run.Identical {
		t.Errorf("a fault in the library is %s: %s", v.Verdict, v.Text)
	}
	rec.End.Fault.Message = "head of the empty list"
	if v := replay(rec); v.Verdict != run.Different {
		t.Errorf("other words under the same rules are %s: %s", v.Verdict, v.Text)
	}
	rec.Semantics--
	answer := *rec.End.Answer
	answer[0]++
	rec.End.Answer = &answer
	if v := replay(rec); v.Verdict != run.Same {
		t.Errorf("other words under other rules are %s: %s", v.Verdict, v.Text)
	}
	w.server = over(w.server, run.New(run.Options{Policy: w.policy, Handler: steady{}, Journal: w.store, Limits: run.Limits{Effects: 3}}))
	do(t, w.server, "run", `{"tool":"spin","input":1,"steps":1000}`)
	rec = w.record(w.newest())
	if v := replay(rec); v.Verdict != run.Identical || rec.End.Steps != v.Steps || rec.End.Steps > 100 {
		t.Errorf("%d steps up to the budget of effects are %s: %s", rec.End.Steps, v.Verdict, v.Text)
	}
	rec.End.Answer = &answer
	for steps, want := range map[uint64]string{1000: run.Same, 999: run.Different} { // 1000: as was recorded once
		rec.End.Steps = steps
		if v := replay(rec); v.Verdict != want {
			t.Errorf("%d steps of the budget of effects are %s: %s", steps, v.Verdict, v.Text)
		}
	}
	do(t, w.server, "run", `{"tool":"spin","input":1,"steps":100}`)
	rec = w.record(w.newest())
	rec.Semantics--
	rec.End.Fault, rec.End.Type = nil, "int"
	if v := replay(rec); v.Verdict != run.Incomplete || !strings.Contains(v.Text, "steps are used up") {
		t.Errorf("out_of_fuel under other rules is %s: %s", v.Verdict, v.Text)
	}
}

// Code in the text form is read by the rules under which it was recorded.
func TestReplayReadsAsRecorded(t *testing.T) {
	w := newRecordedWorld(t, 1)
	for _, c := range []struct {
		semantics          int
		recorded, the, was string
	}{
		{12, `let a = 9 // 3\na`, `let a = 9\na`, `9`},
		{13, `x => x\nlet y = 1\ny`, `let y = 1\ny`, `1`},
	} {
		do(t, w.server, "run", `{"code":"`+c.the+`"}`)
		rec := w.record(w.newest())
		rec.Semantics, rec.Call.Arguments = c.semantics, json.RawMessage(`{"code":"`+c.recorded+`"}`)
		if now, v := w.replay(rec); now.Text != c.was {
			t.Errorf("%s under %d is replayed as %s: %s, %s", c.recorded, c.semantics, now.Text, v.Verdict, v.Text)
		}
	}
}

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
	must.NoError(t, err)
	t.Cleanup(func() { store.Close() })
	known, err := caps.NewKinds(toy)
	must.NoError(t, err)
	w := &recordedWorld{t: t, dice: rand.New(rand.NewPCG(seed, 1)), policy: caps.NewPolicy(known, time.Now), store: store}
	w.script = &script{dice: w.dice}
	c, err := caps.Parse("toy:notes/**", known)
	must.NoError(t, err)
	g, err := caps.Resolve(c, caps.ResolveOptions{Kinds: known})
	if err == nil {
		err = w.policy.Grant(g)
	}
	must.NoError(t, err)
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
	return engine.Replay(w.t.Context(), engine.ReplayOptions{Replay: run.NewReplay(rec, false), Tools: w.at(rec.AsOf)})
}

func (w *recordedWorld) at(seq uint64) *registry.Snapshot {
	w.t.Helper()
	tools, _, err := registry.Open(run.Log(w.store), nil)
	must.NoError(w.t, err)
	s, err := tools.At(seq)
	must.NoError(w.t, err)
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
	must.NoError(w.t, err)
	succeed(w.t, w.server, "evolve", string(arguments))
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
