package run_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/flow"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/lease"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// ledger is a kind whose writes answer something.
var ledger = &caps.Manifest{
	Kind: "led", Version: "1.0.0", Doc: "entries", Algebra: caps.Segments,
	Verbs: []caps.Verb{{Name: "get", Flags: caps.Flags{ReadOnly: true, Idempotent: true}}, {Name: "put", Flags: caps.Flags{Destructive: true}}},
	Operations: []caps.Operation{
		{Name: "led.get", Verb: "get", Doc: "gives an entry", Result: "any", Params: []caps.Param{{Name: "key", Doc: "its name", Type: "string", Main: true, Designates: true}}},
		{Name: "led.put", Verb: "put", Doc: "keeps an entry", Result: "record: id, ok, text", Params: []caps.Param{
			{Name: "key", Doc: "its name", Type: "string", Designates: true}, {Name: "value", Doc: "the entry", Type: "any"},
			{Name: "note", Doc: "about it", Type: "string", Optional: true},
		}},
	},
}

// entries is a world whose answers are by chance, and depend on nothing but what was done.
type entries struct {
	mu   sync.Mutex
	seed uint64
	kept map[string]string
	puts []string // in their order
	gets int
}

func newEntries(seed uint64) *entries {
	return &entries{seed: seed, kept: map[string]string{"a": "1", "b": "2", "c": "3"}}
}

func (e *entries) perform(_ context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
	e.mu.Lock()
	defer e.mu.Unlock()
	key := string(value.Force(field(a.Args, "key")).(value.Str))
	if a.Verb == "get" {
		e.gets++
		if v, ok := e.kept[key]; ok {
			return value.Str(v), 1, nil
		}
		return nil, 0, &fault.Fault{Kind: fault.EffectFailed, Message: "there is no entry " + key}
	}
	text := fmt.Sprint(value.Force(field(a.Args, "value")))
	e.kept[key] = text
	e.puts = append(e.puts, key+"="+text)
	dice := rand.New(rand.NewPCG(e.seed, uint64(len(e.puts))))
	if dice.IntN(8) == 0 {
		return nil, 0, &fault.Fault{Kind: fault.EffectFailed, Message: "the disk is full"}
	}
	return &value.Record{Fields: []value.Field{{Key: "id", Value: value.NewInt(dice.Int64N(4))}, {Key: "ok", Value: value.Bool(dice.IntN(2) == 0)},
		{Key: "text", Value: value.Str("t" + string(rune('a'+dice.IntN(5))))}}}, 10, nil
}

// acting draws a program that reads, writes, reads what it wrote, and depends on what it was answered.
func acting(dice *rand.Rand) string {
	var b strings.Builder
	b.WriteString("k => ")
	text := func(i int) string { // a string made of what is there
		if i == 0 || dice.IntN(3) == 0 {
			return []string{`"a"`, `"b"`, `"c"`, `"d"`, `(k ++ "x")`}[dice.IntN(5)]
		}
		v := fmt.Sprintf("v%d", dice.IntN(i))
		return []string{"to_text(" + v + ")", `("k" ++ ` + v + ".t)", "to_json(" + v + ")", `(if ` + v + `.n > 1 then "a" else "b")`}[dice.IntN(4)]
	}
	n := 1 + dice.IntN(7)
	for i := range n {
		put := func() string { return fmt.Sprintf("!led.put({key: %s, value: %s})", text(i), text(i)) }
		get := func() string { return fmt.Sprintf("!led.get(%s)", text(i)) }
		var what string
		switch dice.IntN(6) {
		case 0, 1:
			what = fmt.Sprintf(`{n: 2, t: try(%s)}`, get())
		case 2:
			what = fmt.Sprintf(`(let p = %s in {n: p.id, t: p.text})`, put())
		case 3:
			what = fmt.Sprintf(`(let p = try(%s) in {n: if has(p, "ok") then 1 else 2, t: "e"})`, put())
		case 4:
			what = fmt.Sprintf(`{n: length(par(try(%s), try(%s), try(%s))), t: "p"}`, put(), get(), put())
		default:
			what = fmt.Sprintf(`{n: 0, t: to_text(%s)}`, put())
		}
		fmt.Fprintf(&b, "let v%d = %s in ", i, what)
	}
	b.WriteString("[")
	for i := range n {
		fmt.Fprintf(&b, "v%d,", i)
	}
	return strings.TrimSuffix(b.String(), ",") + "]"
}

// planned does a tool by plans, section by section, and gives the plans and what came of it.
func planned(t *testing.T, w *world, e *entries, made *registry.Tool, input string, change func(section int)) (plans []*run.Plan, result string, f *fault.Fault) {
	t.Helper()
	in, err := core.ParseInput([]byte(input), core.InputData)
	must.NoError(t, err)
	r := w.broker.Begin(w.tools.Snapshot(), bounds(made, "", input))
	for section := 1; ; section++ {
		if section > 30 {
			t.Fatal("there is no end of sections")
		}
		before := len(e.puts)
		p, f := r.Plan(t.Context(), time.Now().Add(time.Hour), run.Evaluation{Tool: made, Program: made.Program(), Input: in}, section, nil)
		must.NoFault(t, f)
		if len(e.puts) != before {
			t.Fatalf("planning wrote %q", e.puts[before:])
		}
		r.Abandon()
		plans = append(plans, p)
		kept, err := run.FindPlan(w.memory, p.ID)
		if err != nil || kept == nil || kept.Hash != p.Hash || len(kept.Steps) != len(p.Steps) {
			t.Fatalf("the plan %s isn't on record as it is: %+v, %v", p.ID, kept, err)
		}
		if change != nil {
			change(section)
		}
		resume := func() *run.Run {
			rec, err := run.ReadRecord(w.memory, p.Run)
			must.NoError(t, err)
			r, err := w.broker.Resume(w.tools.Snapshot(), bounds(made, "", input), rec)
			must.NoError(t, err)
			return r
		}
		r = resume()
		must.NoFault(t, r.Does(kept.Plan, kept.Started, ""))
		result, f = drive(t, r, made, input)
		if !r.Section() {
			return plans, result, f
		}
		r = resume()
	}
}

// Plan, approve and run is the same as a plain run in the same world, and performs exactly the steps
// of the plans; programs read what they wrote, and depend on answers that are by chance.
func TestPlanIsRun(t *testing.T) {
	t.Parallel()
	count := must.Full(150, 20_000)
	steps, sections, whole := 0, 0, 0
	for seed := range uint64(count) {
		dice := rand.New(rand.NewPCG(seed, 7))
		code := acting(dice)
		if seed == 0 { // a round that one plan has no room for
			code = "k => par(" + strings.Repeat(`try(!led.put({key: "a", value: "x"})), `, run.MaxPlanSteps+5) + "null)"
		}
		alone, byPlan := newEntries(seed), newEntries(seed)
		plain := newWorldOf(t, ledger, run.Options{}, alone.perform, "led:**")
		w := newWorldOf(t, ledger, run.Options{Limits: run.Limits{Width: 1}}, byPlan.perform, "led:**")
		plain.evolve("act", code, "led:**")
		made := w.evolve("act", code, "led:**")
		// What is under way together comes in any order, so it is done in order here.
		plain.broker = run.New(run.Options{Policy: plain.policy, Journal: plain.memory, Handler: &performer{perform: alone.perform}, Limits: run.Limits{Width: 1}})
		want, wantFault := plain.run(t.Context(), "act", `"k"`)
		plans, got, f := planned(t, w, byPlan, made, `"k"`, nil)
		if got != want || (f == nil) != (wantFault == nil) || f != nil && f.Error() != wantFault.Error() {
			t.Fatalf("%d: %s\nplain: %s %v\nplanned: %s %v", seed, code, want, wantFault, got, f)
		}
		if !maps.Equal(alone.kept, byPlan.kept) || !slices.Equal(alone.puts, byPlan.puts) {
			t.Fatalf("%d: %s\nplain did %q\nplanned did %q", seed, code, alone.puts, byPlan.puts)
		}
		sections += len(plans)
		for i, p := range plans {
			steps += len(p.Steps)
			if p.Complete && i == 0 && len(p.Steps) > 1 {
				whole++
			}
		}
		rec, err := run.ReadRecord(w.memory, plans[0].Run)
		must.NoError(t, err)
		replay := run.NewReplay(rec, false)
		again, ended := drive(t, replay.Broker().Begin(w.tools.Snapshot(), bounds(made, "", `"k"`)), made, `"k"`)
		if v := replay.Verdict(ended); !v.OK() || again != got {
			t.Fatalf("%d: %s\nthe replay gives %s: %s", seed, code, again, v.Text)
		}
	}
	if whole < count/20 || sections < count+count/10 {
		t.Errorf("of %d programs %d were planned whole, %d sections, %d steps: they test little", count, whole, sections, steps)
	}
}

// web is a kind of requests to a server.
var web = &caps.Manifest{
	Kind: "web", Version: "1.0.0", Doc: "pages", Algebra: caps.URL,
	Verbs: []caps.Verb{{Name: "get", Flags: caps.Flags{ReadOnly: true, Idempotent: true}}, {Name: "post", Flags: caps.Flags{Destructive: true}}},
	Operations: []caps.Operation{
		{Name: "web.get", Verb: "get", Doc: "gives a page", Result: "string", Params: []caps.Param{{Name: "url", Doc: "its address", Type: "string", Main: true, Designates: true}}},
		{Name: "web.post", Verb: "post", Doc: "sends", Result: "string", Params: []caps.Param{{Name: "url", Doc: "where", Type: "string", Main: true, Designates: true}}},
	},
}

// What reads what a step before it may change is a step, too: of a server all, since nothing tells what changes what there.
func TestPlanOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind           *caps.Manifest
		grant, changes string
		reads          string
		steps          int
	}{
		{web, "web:https://h.example/**", `!web.post("https://h.example/login")`, `!web.get("https://h.example/me")`, 2},
		{web, "web:https://h.example/**", `!web.post("https://H.example/a")`, `!web.get("https://h.example:443/a")`, 2},
		{ledger, "led:**", `!led.put({key: "a/b", value: 1})`, `!led.get("a/c")`, 1},
		{ledger, "led:**", `!led.put({key: "a/b", value: 1})`, `!led.get("a/b")`, 2},
	} {
		w := newWorldOf(t, c.kind, run.Options{}, func(context.Context, run.Act) (value.Value, int64, *fault.Fault) { return value.Str(""), 0, nil }, c.grant)
		made := w.evolve("act", `k => let p = `+c.changes+` in try(`+c.reads+`)`, c.grant)
		in, err := core.ParseInput([]byte(`null`), core.InputData)
		must.NoError(t, err)
		p, f := w.broker.Begin(w.tools.Snapshot(), bounds(made, "", `null`)).Plan(t.Context(), time.Now().Add(time.Hour), run.Evaluation{Tool: made, Program: made.Program(), Input: in}, 1, nil)
		must.NoFault(t, f)
		if len(p.Steps) != c.steps {
			t.Errorf("%s and %s are a plan of %d steps, and %v was done: want %d", c.changes, c.reads, len(p.Steps), p.Reads, c.steps)
		}
	}
}

// A step that would be another one isn't made.
func TestPlanDeviates(t *testing.T) {
	t.Parallel()
	e := newEntries(3)
	w := newWorldOf(t, ledger, run.Options{}, e.perform, "led:**")
	made := w.evolve("copy", `k => let x = !led.get("a") in let p = !led.put({key: "x", value: x}) in let q = !led.put({key: "y", value: p.text}) in [p.id, q.id]`, "led:**")
	both := w.evolve("both", `k => par(!led.put({key: "x", value: k}), !led.put({key: "y", value: k}))`, "led:**")
	in, _ := core.ParseInput([]byte(`"k"`), core.InputData)
	for name, change := range map[string]func(*run.Plan){
		"operation": func(p *run.Plan) { p.Steps[0].Op = "led.get" },
		"argument":  func(p *run.Plan) { p.Steps[0].Args = []byte(strings.Replace(string(p.Steps[0].Args), `"1"`, `"2"`, 1)) },
		"place":     func(p *run.Plan) { p.Steps[0].At = "/elsewhere" },
		"more":      func(p *run.Plan) { p.Steps = p.Steps[1:] },
		"round":     func(p *run.Plan) { p.Steps[1].At = "/elsewhere" }, // the first of it isn't made either
	} {
		before, made := len(e.puts), made
		if name == "round" {
			made = both
		}
		r := w.broker.Begin(w.tools.Snapshot(), bounds(made, "", `"k"`))
		p, f := r.Plan(t.Context(), time.Now().Add(time.Hour), run.Evaluation{Tool: made, Program: made.Program(), Input: in}, 1, nil)
		if f != nil || len(p.Steps) != 2 || !p.Complete {
			t.Fatalf("%+v, %v", p, f)
		}
		r.Abandon()
		change(p)
		rec, err := run.ReadRecord(w.memory, p.Run)
		must.NoError(t, err)
		if r, err = w.broker.Resume(w.tools.Snapshot(), bounds(made, "", `"k"`), rec); err != nil {
			t.Fatal(err)
		}
		must.NoFault(t, r.Does(p, 0, ""))
		if _, f = drive(t, r, made, `"k"`); f == nil || f.Kind != fault.Deviated || len(e.puts) != before {
			t.Errorf("%s: %v, and it wrote %q", name, f, e.puts[before:])
		}
	}
}

// TestPlanAgain: a plan that is made anew has what isn't answered the same twice from the record, with the labels that it
// had, and reads as the plan before did.
func TestPlanAgain(t *testing.T) {
	t.Parallel()
	kinds := asking(t, ledger)
	c, err := flow.ParseConfig([]byte(`{"sources":[{"of":"ask.get:secret","label":"secret"}],"rules":[{"to":"led.get:out/**","not_from":"secret"}]}`))
	must.NoError(t, err)
	rules, err := flow.Compile(c, kinds, nil)
	must.NoError(t, err)
	var got []string
	w := newWorldOfKinds(t, kinds, run.Options{Flow: rules, Limits: run.Limits{Width: 1}}, func(_ context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
		key := string(asText(field(a.Args, "key")))
		if got = append(got, key); a.Held.Kind == "led" {
			return value.Str(key), 1, nil
		}
		return value.Str(fmt.Sprint(key, len(got))), 1, nil
	}, "ask:**", "led:**")
	made := w.evolve("tells", `k => let a = !ask.get("secret") in [try(!led.get("out/" ++ a)), par(!ask.get("b"), !led.get("c"), !ask.get("d"))]`, "ask:**", "led:**")
	in, err := core.ParseInput([]byte(`"k"`), core.InputData)
	must.NoError(t, err)
	plan := func(was *run.Record) *run.Plan {
		p, f := w.broker.Begin(w.tools.Snapshot(), bounds(made, "", `"k"`)).Plan(t.Context(), time.Now().Add(time.Hour), run.Evaluation{Tool: made, Program: made.Program(), Input: in}, 1, was)
		must.NoFault(t, f)
		return p
	}
	first := plan(nil)
	rec, err := run.ReadRecord(w.memory, first.Run)
	must.NoError(t, err)
	anew := plan(rec)
	if all := strings.Join(got, " "); all != "secret b c d c" {
		t.Errorf("it asked for %s", all)
	}
	if fmt.Sprint(first.Under, first.Reads) != fmt.Sprint(anew.Under, anew.Reads) || first.Hash != anew.Hash {
		t.Errorf("the first plan is made under %v of %v, the second, of the hash %s and not %s, under %v of %v", first.Under, first.Reads, anew.Hash, first.Hash, anew.Under, anew.Reads)
	}
}

// echoes is a journal in which others, who looked at the same time, say what became of an effect after the first who does.
type echoes struct{ *journal.Memory }

func (j echoes) Append(s journal.Stage, k journal.Kind, id, branch string, data []byte) (uint64, error) {
	var said struct{ Request uint64 }
	if err := json.Unmarshal(data, &said); err != nil {
		return 0, err
	}
	seq, err := j.Memory.Append(s, k, id, branch, data)
	for _, other := range [][]byte{data, fmt.Appendf(nil, `{"request":%d,"done":false}`, said.Request), fmt.Appendf(nil, `{"request":%d,"value":"late"}`, said.Request)} {
		if err == nil {
			_, err = j.Memory.Append(s, k, id, branch, bytes.Clone(other))
		}
	}
	return seq, err
}

// A plan whose server died at any of its events goes on, once a person said what became of what was under
// way: each step is done once, and the first answer counts.
func TestPlanGoesOn(t *testing.T) {
	t.Parallel()
	code := `k => let x = !led.get("a") in let p = !led.put({key: "x", value: x}) in let q = !led.put({key: "y", value: p.text}) in [!led.put({key: "z", value: 1}).id, q.id]`
	in, _ := core.ParseInput([]byte(`"k"`), core.InputData)
	for cut, ended := 1, false; !ended; cut++ {
		for _, did := range []bool{false, true} {
			e := newEntries(9)
			w := newWorldOf(t, ledger, run.Options{}, e.perform, "led:**")
			made := w.evolve("act", code, "led:**")
			r := w.broker.Begin(w.tools.Snapshot(), bounds(made, "", `"k"`))
			p, f := r.Plan(t.Context(), time.Now().Add(time.Hour), run.Evaluation{Tool: made, Program: made.Program(), Input: in}, 1, nil)
			must.NoFault(t, f)
			r.Abandon()
			resume := func(b *run.Broker, dies bool) *run.Run {
				rec, err := run.ReadRecord(w.memory, p.Run)
				must.NoError(t, err)
				if n, op := rec.Unsettled(w.policy); n > 0 {
					if op != "led.put" {
						t.Errorf("%s waits for an answer", op)
					}
					must.NoError(t, run.Settle(echoes{w.memory}, p.Run, n, did))
					if rec, err = run.ReadRecord(w.memory, p.Run); err != nil {
						t.Fatal(err)
					}
				}
				now, err := run.FindPlan(w.memory, p.ID)
				must.NoError(t, err)
				begun := now.Started
				r, err := b.Resume(w.tools.Snapshot(), bounds(made, "", `"k"`), rec)
				must.NoError(t, err)
				if f := r.Does(p, begun, ""); f != nil && !dies {
					t.Fatal(f)
				}
				return r
			}
			j := &mortal{Journal: w.memory, takes: cut}
			dying := run.New(run.Options{Policy: w.policy, Journal: j, Handler: &performer{perform: func(ctx context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
				// What was recorded is under way when the process dies, and done or not; nothing else is.
				if !j.dead() || did && !strings.HasSuffix(a.Key, fmt.Sprint(unrecorded)) {
					return e.perform(ctx, a)
				}
				return value.Str("nobody hears this"), 1, nil
			}}})
			drive(t, resume(dying, true), made, `"k"`)
			if ended = j.takes >= 0; ended {
				break
			}
			_, f = drive(t, resume(run.New(run.Options{Policy: w.policy, Journal: w.memory, Handler: &performer{perform: e.perform}}), false), made, `"k"`)
			events, _, err := w.memory.Read(journal.Query{Run: p.Run})
			must.NoError(t, err)
			before, err := run.ReadRecord(w.memory, p.Run)
			must.NoError(t, err)
			summary := run.Summarize(events).Effects
			for _, o := range events { // of who looked before it went on, after the end
				if o.Kind == journal.EffectOutcome {
					_, err := echoes{w.memory}.Append(journal.Written, o.Kind, o.Run, o.Branch, bytes.Clone(o.Data))
					must.NoError(t, err)
				}
			}
			events, _, err = w.memory.Read(journal.Query{Run: p.Run})
			must.NoError(t, err)
			if after, err := run.ReadRecord(w.memory, p.Run); err != nil || !reflect.DeepEqual(before, after) || !reflect.DeepEqual(summary, run.Summarize(events).Effects) {
				t.Errorf("cut %d, did %v: with late answers the record is %+v, %v, and was %+v", cut, did, after, err, before)
			}
			times := map[string]int{}
			for _, put := range e.puts {
				times[put[:1]]++
			}
			for key, n := range times {
				if n > 1 {
					t.Errorf("cut %d, did %v: %s was put %d times", cut, did, key, n)
				}
			}
			if f == nil && len(times) < 3 || f != nil && f.Kind != fault.OutcomeUnknown && f.Kind != fault.EffectFailed {
				t.Errorf("cut %d, did %v: %v, and it put %q", cut, did, f, e.puts)
			}
		}
		if cut > 100 {
			t.Fatal("it never ends")
		}
	}
}

// dropping is a journal that has dropped that tasks were created and plans made.
type dropping struct {
	journal.Journal
	drops atomic.Bool
}

func (j *dropping) Read(q journal.Query) ([]journal.Event, bool, error) {
	events, more, err := j.Journal.Read(q)
	if j.drops.Load() {
		events = slices.DeleteFunc(events, func(e journal.Event) bool { return e.Kind == journal.TaskCreated || e.Kind == journal.PlanMade })
	}
	return events, more, err
}

// TestPlanFenced: what follows a plan that another server has taken over isn't planned by the one before, and a yes to another
// plan of the same name doesn't count.
func TestPlanFenced(t *testing.T) {
	t.Parallel()
	for name, task := range map[string]string{"a task": "t1", "a call": "", "a task, dropped": "t1", "a call, dropped": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := &dropping{}
			w := newWorldOf(t, ledger, run.Options{}, newEntries(9).perform, "led:**")
			j.Journal = w.memory
			made := w.evolve("act", `k => let p = !led.put({key: "x", value: 1}) in !led.put({key: if p.ok then "y" else "z", value: 1})`, "led:**")
			in, _ := core.ParseInput([]byte(`"k"`), core.InputData)
			b := run.New(run.Options{
				Policy: w.policy, Journal: j, Handler: &performer{perform: newEntries(9).perform},
				Act: func(context.Context) (lease.Time, error) { return lease.Now().Add(time.Hour), nil },
			})
			start := bounds(made, "", `"k"`)
			start.Task, start.Doer, start.Owner = task, task, "a"
			if task != "" {
				must.NoError(t, w.broker.CreateTask(&run.Task{ID: task, Call: run.Call{Tool: "run", Arguments: []byte(`{}`)}, Owner: "a"}))
			}
			plan := func(r *run.Run, section int) (*run.Plan, *fault.Fault) {
				return r.Plan(t.Context(), time.Now().Add(time.Hour), run.Evaluation{Tool: made, Program: made.Program(), Input: in}, section, nil)
			}
			var first *run.Plan
			resume := func() *run.Run {
				rec, err := run.ReadRecord(w.memory, first.Run)
				must.NoError(t, err)
				r, err := b.Resume(w.tools.Snapshot(), start, rec)
				must.NoError(t, err)
				return r
			}
			r := b.Begin(w.tools.Snapshot(), start)
			var f *fault.Fault
			first, f = plan(r, 1)
			must.NoFault(t, f)
			r.Abandon()
			other := *first
			other.Hash[0]++
			must.NoError(t, run.AnswerPlan(w.memory, &other, true, "terminal"))
			if p, err := run.FindPlan(w.memory, first.ID); err != nil || p.Approved {
				t.Errorf("a yes to another plan counts: %+v, %v", p, err)
			}
			r = resume()
			must.NoFault(t, r.Does(first, 0, "a"))
			got, f := drive(t, r, made, `"k"`)
			if !r.Section() {
				t.Fatalf("there is one section: %s, %v, %+v", got, f, first)
			}
			r = resume()
			if task != "" {
				if mine, err := w.broker.ResumeTask(task, "b", 0, false); err != nil || !mine {
					t.Fatal(mine, err)
				}
			} else {
				must.NoFault(t, resume().Does(first, 1, "b"))
			}
			j.drops.Store(strings.HasSuffix(name, "dropped"))
			if _, f := plan(r, 2); f == nil || f.Kind != fault.Conflict || len(w.events(journal.PlanMade)) != 1 {
				t.Errorf("the server before plans on: %v", f)
			}
		})
	}
}

// TestPlanOfTaskFenced: a server that was silent while another took over the task that it had planned begins nothing of its
// plan, and the one that the other began counts, though it is the older. What is planned for a task isn't lost with its server.
func TestPlanOfTaskFenced(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, ledger, run.Options{}, newEntries(9).perform, "led:**")
	made := w.evolve("act", `k => let p = !led.put({key: "x", value: 1}) in !led.put({key: if p.ok then "y" else "z", value: 1})`, "led:**")
	in, _ := core.ParseInput([]byte(`"k"`), core.InputData)
	b := run.New(run.Options{
		Policy: w.policy, Journal: w.memory, Handler: &performer{perform: newEntries(9).perform},
		Act: func(context.Context) (lease.Time, error) { return lease.Now().Add(time.Hour), nil },
	})
	of := func(server string) run.Start {
		start := bounds(made, "", `"k"`)
		start.Task, start.Doer, start.Owner = "t1", "t1", server
		start.DoerResumed = map[string]int{"b": 1}[server]
		return start
	}
	plan := func(r *run.Run, section int) *run.Plan {
		p, f := r.Plan(t.Context(), time.Now().Add(time.Hour), run.Evaluation{Tool: made, Program: made.Program(), Input: in}, section, nil)
		must.NoFault(t, f)
		r.Abandon()
		return p
	}
	resume := func(p *run.Plan, server string) *run.Run {
		rec, err := run.ReadRecord(w.memory, p.Run)
		must.NoError(t, err)
		r, err := b.Resume(w.tools.Snapshot(), of(server), rec)
		must.NoError(t, err)
		return r
	}
	finds := func(want *run.Plan) {
		t.Helper()
		if p, err := run.PlanOfTask(w.memory, "t1"); err != nil || p == nil || p.ID != want.ID {
			t.Errorf("the plan of the task is %+v, not %s: %v", p, want.ID, err)
		}
	}
	must.NoError(t, w.broker.CreateTask(&run.Task{ID: "t1", Call: run.Call{Tool: "run", Arguments: []byte(`{}`)}, Owner: "a"}))
	first := plan(b.Begin(w.tools.Snapshot(), of("a")), 1)
	mine, err := w.broker.ResumeTask("t1", "b", 0, false)
	if err != nil || !mine {
		t.Fatal(mine, err)
	}
	if f := resume(first, "a").Does(first, 0, "a"); f == nil || f.Kind != fault.Conflict || len(w.events(journal.PlanStarted)) > 0 {
		t.Errorf("the server before begins its plan: %v", f)
	}
	other := plan(b.Begin(w.tools.Snapshot(), of("b")), 1)
	finds(other) // it is the newest
	r := resume(other, "b")
	must.NoFault(t, r.Does(other, 0, "b"))
	plan(w.broker.Begin(w.tools.Snapshot(), of("a")), 1) // by a, which had found that the task was its own
	finds(other)
	if got, f := drive(t, r, made, `"k"`); !r.Section() {
		t.Fatalf("there is one section: %s, %v", got, f)
	}
	finds(plan(resume(other, "b"), 2))
	third := b.Begin(w.tools.Snapshot(), of("b"))
	if mine, err := w.broker.ResumeTask("t1", "c", 1, false); err != nil || !mine {
		t.Fatal(mine, err)
	}
	if mine, err := w.broker.ResumeTask("t1", "b", 2, false); err != nil || !mine {
		t.Fatal(mine, err)
	}
	before := len(w.events(journal.PlanMade))
	if _, f := third.Plan(t.Context(), time.Now().Add(time.Hour), run.Evaluation{Tool: made, Program: made.Program(), Input: in}, 1, nil); f == nil || f.Kind != fault.Conflict || len(w.events(journal.PlanMade)) > before {
		t.Errorf("what the server that has the task again planned before is a plan: %v", f)
	}
	if _, err := b.LoseRuns(t.Context(), nil, time.Now().Add(-time.Hour), func(string) bool { return true }); err != nil || len(w.events(journal.RunLost)) > 0 {
		t.Errorf("lost: %v, %v", w.events(journal.RunLost), err)
	}
}

// muted is a cluster's journal whose order doesn't say now what is newest.
type muted struct {
	journal.Journal
	silent bool
}

func (j *muted) Fresh(context.Context) (lease.Time, error) {
	if j.silent {
		return 0, journal.ErrCluster
	}
	return lease.Now(), nil
}

// TestSectionEndsLate: where a server plans what follows a plan that another has begun again, and can't find that out now, the
// end that it records isn't the run's.
func TestSectionEndsLate(t *testing.T) {
	t.Parallel()
	e := newEntries(9)
	w := newWorldOf(t, ledger, run.Options{}, e.perform, "led:**")
	j := &muted{Journal: w.memory}
	b := run.New(run.Options{
		Policy: w.policy, Journal: j, Handler: &performer{perform: e.perform},
		Act: func(context.Context) (lease.Time, error) { return lease.Now().Add(time.Hour), nil },
	})
	made := w.evolve("act", `k => let p = !led.put({key: "x", value: 1}) in !led.put({key: if p.ok then "y" else "z", value: 1})`, "led:**")
	in, _ := core.ParseInput([]byte(`"k"`), core.InputData)
	start := bounds(made, "", `"k"`)
	start.Owner = "a"
	p, f := b.Begin(w.tools.Snapshot(), start).Plan(t.Context(), time.Now().Add(time.Hour), run.Evaluation{Tool: made, Program: made.Program(), Input: in}, 1, nil)
	must.NoFault(t, f)
	record := func() *run.Record {
		rec, err := run.ReadRecord(w.memory, p.Run)
		must.NoError(t, err)
		return rec
	}
	does := func(started int, server string) *run.Run {
		start := start
		start.Owner = server
		r, err := b.Resume(w.tools.Snapshot(), start, record())
		must.NoError(t, err)
		must.NoFault(t, r.Does(p, started, server))
		if got, f := drive(t, r, made, `"k"`); !r.Section() {
			t.Fatalf("there is one section: %s, %v", got, f)
		}
		return r
	}
	first := does(0, "a")
	second := does(1, "b")
	j.silent = true
	for i, did := range []*run.Run{first, second} {
		start.Owner = []string{"a", "b"}[i]
		next, err := did.Next(w.tools.Snapshot(), start, record())
		must.NoError(t, err)
		next.End(run.End{Fault: fault.New(fault.Cancelled, "it is cancelled")})
		if end, err := run.EndEvent(w.memory, p.Run); err != nil || (end != nil) != (i == 1) {
			t.Errorf("after the end by %s it is %v, %v", start.Owner, end, err)
		}
	}
}

var update = flag.Bool("update", false, "write the screens of plans into cmd/README.md")

// TestPlanScreens holds the screens in cmd/README.md against plans as they are shown.
func TestPlanScreens(t *testing.T) {
	t.Parallel()
	e := newEntries(1)
	e.kept["inbox"] = "Dear team, the figures of this month are attached, and those of the last one are corrected."
	w := newWorldOf(t, ledger, run.Options{}, e.perform, "led:**")
	var screens []string
	for _, c := range []struct{ name, code, input string }{
		{"newsletter", `u => let text = !led.get("inbox") in map(i => !led.put({key: "to-" ++ to_text(i) ++ "-acme", value: text}), range(1, 41))`, `null`},
		{"triage", `r => let ticket = !led.put({key: r.ticket, value: "open: " ++ !led.get("inbox")}) in let b = !led.put({key: ticket.text, value: {of: ticket.id, seen: to_text(ticket.ok)}}) in if b.ok then !led.put({key: "log", value: "ok"}) else null`, `{"ticket":"T4711"}`},
		{"archive", `u => map(i => [!led.put({key: "archive-of-november-2026-sheet-number-" ++ to_text(i), value: i}), !led.get("inbox")], range(0, 190))`, `null`},
	} {
		made := w.evolve(c.name, c.code, "led:**")
		in, err := core.ParseInput([]byte(c.input), core.InputData)
		must.NoError(t, err)
		p, f := w.broker.Begin(w.tools.Snapshot(), bounds(made, "", c.input)).Plan(t.Context(), time.Now().Add(time.Hour),
			run.Evaluation{Tool: made, Program: made.Program(), Input: in}, 1, nil)
		must.NoFault(t, f)
		lines, _, fits := p.Lines()
		if !fits {
			lines = append(append(lines[:4:4], "…"), "(too long to be approved: the call is refused)")
		}
		screens = append(screens, "```text\n"+strings.Join(lines, "\n")+"\n```\n")
	}
	const path, begin, end = "../../cmd/README.md", "<!-- plan screens -->\n", "<!-- end plan screens -->"
	text, err := os.ReadFile(path)
	must.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), begin)
	got, after, ok2 := strings.Cut(rest, end)
	want := "\n" + strings.Join(screens, "\n") + "\n"
	switch {
	case !ok || !ok2:
		t.Fatal("there are no marks")
	case *update:
		must.NoError(t, os.WriteFile(path, []byte(before+begin+want+end+after), 0o644))
	case got != want:
		t.Errorf("the screens are others; run with -update and look at them:\n%s", want)
	}
}

// TestPlanScreenGroups: contents of a group that begin alike and differ behind what is shown are counted, and so
// are their characters; what only some steps have names these.
func TestPlanScreenGroups(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, ledger, run.Options{}, newEntries(1).perform, "led:**")
	for name, c := range map[string]struct {
		code string
		want []string
	}{
		"alike": {`u => map(i => !led.put({key: "k" ++ to_text(i), value: repeat_text("same \"beginning\" ", 12) ++ (if i == 4 then "EVIL" else "fine")}), range(0, 8))`,
			[]string{"(208 characters)", "(2 different ones)"}},
		"some": {`u => map(i => if i == 2 then !led.put({key: "a", value: 1, note: "n"}) else !led.put({key: "a", value: 1}), range(0, 5))`,
			[]string{`note "n" (only in 3)`}},
	} {
		made := w.evolve(name, c.code, "led:**")
		in, err := core.ParseInput([]byte(`null`), core.InputData)
		must.NoError(t, err)
		p, f := w.broker.Begin(w.tools.Snapshot(), bounds(made, "", "null")).Plan(t.Context(), time.Now().Add(time.Hour),
			run.Evaluation{Tool: made, Program: made.Program(), Input: in}, 1, nil)
		must.NoFault(t, f)
		lines, _, _ := p.Lines()
		text := strings.Join(strings.Fields(strings.Join(lines, "\n")), " ")
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q:\n%s", name, want, strings.Join(lines, "\n"))
			}
		}
	}
}

// The screen of a plan has no more than what is in it, however deep that is nested, and no more lines than are wanted.
func TestPlanScreenBounds(t *testing.T) {
	t.Parallel()
	args := `{"key":"a","value":` + strings.Repeat("[", 900) + strings.Repeat("1,", 5000) + "1" + strings.Repeat("]", 900) + "}"
	p := &run.Plan{Steps: []*run.PlanStep{{Op: "led.put", Capability: "led:**", Designating: []string{"key"}, Args: []byte(args)}}}
	lines := p.Full(1, 1, 0)
	if got := strings.Join(lines, ""); len(got) > 2*len(args) || strings.Count(got, "1,") != 5000 {
		t.Errorf("%d bytes of an argument make a screen of %d in %d lines", len(args), len(got), len(lines))
	}
	if some := p.Full(1, 1, 20); !slices.Equal(some, lines[:20]) {
		t.Errorf("20 lines of it are\n%s", strings.Join(some, "\n"))
	}
}

// reader is a journal that counts what is read of it.
type reader struct {
	journal.Journal
	mu    sync.Mutex
	reads int
	kinds map[journal.Kind]int
}

func (j *reader) Read(q journal.Query) ([]journal.Event, bool, error) {
	events, more, err := j.Journal.Read(q)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.reads++
	for i := range events {
		j.kinds[events[i].Kind]++
	}
	return events, more, err
}

// counted gives how many reads there were since it was called last, and of what.
func (j *reader) counted() (reads int, kinds map[journal.Kind]int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	reads, kinds = j.reads, j.kinds
	j.reads, j.kinds = 0, map[journal.Kind]int{}
	return reads, kinds
}

// Whose a run is that does a plan is known with each event read once, and what became of a plan without what the run did;
// nor is a plan that nobody has to approve looked up when those are listed that wait.
func TestPlanReadsLittle(t *testing.T) {
	t.Parallel()
	e := newEntries(9)
	j := &reader{Journal: journal.NewMemory(1<<30, nil)}
	j.counted()
	w := newWorldOf(t, ledger, run.Options{Journal: j, Act: func(context.Context) (lease.Time, error) { return lease.Now().Add(time.Hour), nil }}, e.perform, "led:**")
	made := w.evolve("act", `k => map(i => try(!led.put({key: "k", value: i})), range(0, 10))`, "led:**")
	in, err := core.ParseInput([]byte(`"k"`), core.InputData)
	must.NoError(t, err)
	p, f := w.broker.Begin(w.tools.Snapshot(), bounds(made, "", `"k"`)).Plan(t.Context(), time.Now().Add(time.Hour), run.Evaluation{Tool: made, Program: made.Program(), Input: in}, 1, nil)
	must.NoFault(t, f)
	rec, err := run.ReadRecord(j, p.Run)
	must.NoError(t, err)
	start := bounds(made, "", `"k"`)
	start.Owner = "a"
	r, err := w.broker.Resume(w.tools.Snapshot(), start, rec)
	must.NoError(t, err)
	must.NoFault(t, r.Does(p, 0, "a"))
	j.counted()
	_, f = drive(t, r, made, `"k"`)
	must.NoFault(t, f)
	if reads, kinds := j.counted(); reads == 0 || len(e.puts) != 10 || kinds[journal.EffectRequested] > 10 || kinds[journal.EffectOutcome] > 10 || kinds[journal.PlanMade]+kinds[journal.PlanStarted] > 0 {
		t.Errorf("while it did %d steps %d reads were of %v", len(e.puts), reads, kinds)
	}
	if now, err := run.FindPlan(j, p.ID); err != nil || !now.Ended || now.Started != 1 {
		t.Errorf("the plan is %+v, %v", now, err)
	}
	if _, kinds := j.counted(); kinds[journal.EffectRequested]+kinds[journal.EffectOutcome] > 0 {
		t.Errorf("what became of the plan was read from %v", kinds)
	}
	if list, err := run.WaitingPlans(j, time.Now()); err != nil || len(list) > 0 {
		t.Errorf("%d plans wait, %v", len(list), err)
	}
	if reads, _ := j.counted(); reads != 1 {
		t.Errorf("there were %d reads for the plans that wait", reads)
	}
}

// The plan of a task, and those that wait, are found however many there were since, and whatever the clocks of servers say.
func TestPlanAmongMany(t *testing.T) {
	t.Parallel()
	ahead := time.Duration(0)
	j := skewed{journal.NewMemory(1<<30, nil), map[uint64]time.Duration{}}
	put := func(i int, task string, confirm bool) {
		text, err := json.Marshal(run.Plan{ID: fmt.Sprintf("p_r-%d", i), Run: fmt.Sprintf("r-%d", i), Task: task, Confirm: confirm})
		must.NoError(t, err)
		data := journal.AppendString(fmt.Appendf(nil, `{"plan":"p_r-%d","confirm":%t,"task":%q,"content":`, i, confirm, task), string(text))
		seq, err := j.Append(journal.Written, journal.PlanMade, fmt.Sprintf("r-%d", i), "", append(data, '}'))
		must.NoError(t, err)
		j.ahead[seq] = ahead
	}
	create := func(task string) {
		seq, err := j.Append(journal.Written, journal.TaskCreated, task, "", []byte(`{}`))
		must.NoError(t, err)
		j.ahead[seq] = ahead
	}
	finds := func(task, want string) {
		t.Helper()
		p, err := run.PlanOfTask(j, task)
		got := ""
		if p != nil {
			got = p.ID
		}
		if err != nil || got != want {
			t.Errorf("the plan of %s is %q, %v", task, got, err)
		}
	}
	ahead = time.Hour
	create("t-1") // by a server whose clock is ahead
	ahead = 0
	put(0, "t-1", true)
	put(1, "t-1", true)
	for i := range 1100 {
		if i == 1000 { // the first of a page
			ahead = -2 * time.Hour // that of another is behind
		}
		put(2+i, "", i == 500 || i == 1099)
		ahead = 0
	}
	finds("t-1", "p_r-1")
	list, err := run.WaitingPlans(j, time.Now())
	if err != nil || len(list) != 4 || list[0].ID != "p_r-0" || list[3].ID != "p_r-1101" {
		t.Errorf("%d plans wait, %v", len(list), err)
	}
	if list, err := run.WaitingPlans(j, time.Now().Add(2*time.Hour)); err != nil || len(list) > 0 {
		t.Errorf("%d plans wait after their time, %v", len(list), err)
	}
	for i := range 150 { // a whole page behind the one of the task
		put(1200+i, map[int]string{5: "t-2"}[i], false)
	}
	create("t-2") // it was planned before
	finds("t-2", "p_r-1205")
	ahead = time.Hour
	create("t-3")
	finds("t-3", "")
	finds("t-4", "")
	create("t-5") // what an older server made of it
	text, err := json.Marshal(run.Plan{ID: "p_old", Run: "old", Task: "t-5", Confirm: true})
	must.NoError(t, err)
	_, err = j.Append(journal.Written, journal.PlanMade, "old", "", append(journal.AppendString([]byte(`{"plan":"p_old","content":`), string(text)), '}'))
	must.NoError(t, err)
	finds("t-5", "p_old")
	if list, err := run.WaitingPlans(j, time.Now()); err != nil || list[len(list)-1].ID != "p_old" {
		t.Errorf("%d plans wait, %v", len(list), err)
	}
}

// Where it can't be read whose a plan is, no step of it is done, however often that is asked.
func TestPlanUnread(t *testing.T) {
	t.Parallel()
	e := newEntries(9)
	j := journal.NewMemory(1<<30, nil)
	w := newWorldOf(t, ledger, run.Options{Journal: j, Act: func(context.Context) (lease.Time, error) { return lease.Now().Add(time.Hour), nil }}, func(ctx context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
		if _, err := a.Lease(ctx); err != nil {
			return nil, 0, fault.New(fault.EffectFailed, err.Error())
		}
		return e.perform(ctx, a)
	}, "led:**")
	made := w.evolve("act", `k => map(i => try(!led.put({key: "k", value: i})), range(0, 10))`, "led:**")
	in, err := core.ParseInput([]byte(`"k"`), core.InputData)
	must.NoError(t, err)
	p, f := w.broker.Begin(w.tools.Snapshot(), bounds(made, "", `"k"`)).Plan(t.Context(), time.Now().Add(time.Hour), run.Evaluation{Tool: made, Program: made.Program(), Input: in}, 1, nil)
	must.NoFault(t, f)
	rec, err := run.ReadRecord(j, p.Run)
	must.NoError(t, err)
	start := bounds(made, "", `"k"`)
	start.Owner = "a"
	r, err := w.broker.Resume(w.tools.Snapshot(), start, rec)
	must.NoError(t, err)
	must.NoFault(t, r.Does(p, 0, "a"))
	_, err = j.Append(journal.Written, journal.PlanStarted, p.Run, "", []byte(`{"plan":1}`))
	must.NoError(t, err)
	got, f := drive(t, r, made, `"k"`)
	if len(e.puts) > 0 {
		t.Errorf("%d steps were done; it gave %s, %v", len(e.puts), got, f)
	}
}

// A skewed journal is of servers whose clocks differ: by how much, by event.
type skewed struct {
	*journal.Memory
	ahead map[uint64]time.Duration
}

func (j skewed) Read(q journal.Query) ([]journal.Event, bool, error) {
	events, more, err := j.Memory.Read(q)
	events = slices.Clone(events)
	for i := range events {
		events[i].Time = events[i].Time.Add(j.ahead[events[i].Seq])
	}
	return events, more, err
}

// Which plans wait is known without the content of others.
func TestWaitingReadsLittle(t *testing.T) {
	t.Parallel()
	j := journal.NewMemory(1<<30, nil)
	_, err := j.Append(journal.Written, journal.PlanMade, "r", "", fmt.Appendf(nil, `{"plan":"p_r","confirm":false,"content":{"bytes":1,"sha256":"%064d"}}`, 0))
	must.NoError(t, err)
	if list, err := run.WaitingPlans(j, time.Now()); err != nil || len(list) > 0 {
		t.Errorf("%d plans wait, %v", len(list), err)
	}
}

// However many large plans wait, the newest alone are read.
func TestWaitingHasBytes(t *testing.T) {
	t.Parallel()
	j := journal.NewMemory(1<<30, nil)
	args := journal.AppendString(nil, strings.Repeat("x", 4<<20))
	for i := range 12 {
		id := fmt.Sprint("r-", i)
		text, err := json.Marshal(run.Plan{ID: "p_" + id, Run: id, Confirm: true, Steps: []*run.PlanStep{{N: 1, Args: args}}})
		must.NoError(t, err)
		data := journal.AppendString(fmt.Appendf(nil, `{"plan":"p_%s","confirm":true,"content":`, id), string(text))
		_, err = j.Append(journal.Written, journal.PlanMade, id, "", append(data, '}'))
		must.NoError(t, err)
	}
	if list, err := run.WaitingPlans(j, time.Now()); err != nil || len(list) != 8 || list[0].ID != "p_r-4" {
		t.Errorf("%d plans wait, %v", len(list), err)
	}
}

// What becomes of an effect under way can be said of a plan only: any other run is told itself.
func TestSettleIsOfPlans(t *testing.T) {
	t.Parallel()
	j := journal.NewMemory(1<<30, nil)
	var id string
	var err error
	w := newWorldOf(t, ledger, run.Options{Journal: j}, func(context.Context, run.Act) (value.Value, int64, *fault.Fault) {
		if begun, _, _ := j.Read(journal.Query{Kind: journal.RunStarted, Limit: 1}); len(begun) > 0 {
			id = begun[0].Run
		}
		err = run.Settle(j, id, 1, false)
		return value.Str("done"), 1, nil
	}, "led:**")
	made := w.evolve("act", `k => !led.put({key: k, value: 1})`, "led:**")
	got, f := drive(t, w.broker.Begin(w.tools.Snapshot(), bounds(made, "", `"k"`)), made, `"k"`)
	rec, failed := run.ReadRecord(j, id)
	if err == nil || f != nil || got != `"done"` || failed != nil || rec.End == nil {
		t.Errorf("it was settled while under way, %v, and gave %s, %v; its record %+v, %v", err, got, f, rec, failed)
	}
}
