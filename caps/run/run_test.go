package run_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/journal/order"
	"github.com/mcp-pif/mcp-pif/caps/lease"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// toy is a kind of notes, with a name each.
var toy = &caps.Manifest{
	Kind: "toy", Version: "1.0.0", Doc: "notes in memory", Algebra: caps.Segments,
	Verbs: []caps.Verb{{Name: "get", Flags: caps.Flags{ReadOnly: true, Idempotent: true}}, {Name: "put", Flags: caps.Flags{Destructive: true}}},
	Operations: []caps.Operation{
		{Name: "toy.get", Verb: "get", Doc: "gives a note", Result: "string", Params: []caps.Param{{Name: "key", Doc: "its name", Type: "string", Main: true, Designates: true}}},
		{Name: "toy.put", Verb: "put", Doc: "keeps a note", Result: "unit", Params: []caps.Param{
			{Name: "key", Doc: "its name", Type: "string", Designates: true}, {Name: "value", Doc: "the note", Type: "any"},
		}},
	},
}

// A performer is a handler in this process.
type performer struct {
	perform  func(ctx context.Context, a run.Act) (value.Value, int64, *fault.Fault)
	prepared atomic.Int32
}

func (p *performer) Prepare(*caps.Grant) { p.prepared.Add(1) }

func (p *performer) Perform(ctx context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
	return p.perform(ctx, a)
}

// echo gives each key back.
func echo(_ context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
	return field(a.Args, "key"), 10, nil
}

func field(v value.Value, key string) value.Value {
	for _, f := range v.(*value.Record).Fields {
		if f.Key == key {
			return f.Value
		}
	}
	return value.Unit{}
}

// An act takes one of a rate that other processes take from, however often it asks whether it
// may begin; where there is none it isn't begun.
func TestRateOfSeveral(t *testing.T) {
	left, keys := 1, map[string]bool{}
	o := run.Options{
		Act: func(context.Context) (lease.Time, error) { return lease.Now().Add(lease.Length), nil },
		Rate: func(_ context.Context, key string, r caps.Rate) error {
			if keys[key+r.String()] = true; left == 0 {
				return errors.New("none is left")
			}
			left--
			return nil
		},
	}
	w := newWorld(t, o, func(ctx context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
		if _, err := a.Lease(ctx); err != nil {
			return nil, 0, &fault.Fault{Kind: fault.EffectFailed, Message: err.Error()}
		}
		return echo(ctx, a)
	}, "toy:notes/**,rate=9/h", "toy:free/**")
	w.evolve("get", "k => !toy.get(k)", "toy.get:notes/**")
	w.evolve("free", "k => !toy.get(k)", "toy.get:free/**")
	w.gives("get", `"notes/a"`, `"notes/a"`)
	w.fails("get", `"notes/a"`, fault.EffectFailed, "was not begun: none is left")
	w.gives("free", `"free/a"`, `"free/a"`)
	if len(keys) != 1 || !keys["\x00toy:notes/**,rate=9/h9/h"] {
		t.Errorf("%v", keys)
	}
}

// TestClearedMeanwhile: an effect whose approval is cleared while its node waits until it may act isn't begun.
func TestClearedMeanwhile(t *testing.T) {
	t.Parallel()
	kinds, err := caps.NewKinds(toy)
	must.NoError(t, err)
	consents := &caps.Consents{Path: filepath.Join(t.TempDir(), "consent.json"), Kinds: kinds}
	cleared := func() {
		must.Succeed(t)(consents.Clear("get"))
		must.NoError(t, consents.Poll())
	}
	recording, leasing := &meanwhile{Journal: journal.NewMemory(1<<30, nil)}, func() {}
	o := run.Options{Consents: consents, Journal: recording, Act: func(context.Context) (lease.Time, error) {
		leasing()
		return lease.Now().Add(lease.Length), nil
	}}
	w := newWorldOfKinds(t, kinds, o, echo)
	c, err := caps.Parse("toy:notes/**", kinds)
	must.NoError(t, err)
	g, err := caps.Resolve(c, caps.ResolveOptions{Kinds: kinds})
	must.NoError(t, err)
	g.Asked = true
	must.NoError(t, w.policy.Grant(g))
	q := caps.Question{Tool: "get", Subject: *registry.SubjectOf(w.evolve("get", "k => !toy.get(k)", "toy.get:notes/**"))}
	for _, when := range []*func(){&leasing, &recording.do} {
		id, _, err := consents.Ask(q)
		must.NoError(t, err)
		must.NoError(t, consents.Answer(id, &q.Subject, caps.YesVersion, "terminal"))
		must.NoError(t, consents.Poll())
		w.gives("get", `"notes/a"`, `"notes/a"`)
		before := *when
		*when = cleared
		w.fails("get", `"notes/a"`, fault.Denied, "approve")
		*when = before
	}
}

// A meanwhile does something while a request for an effect is recorded.
type meanwhile struct {
	journal.Journal
	do func()
}

func (j *meanwhile) AppendLater(s journal.Stage, k journal.Kind, id, branch string, data []byte) func() (uint64, error) {
	if k == journal.EffectRequested && j.do != nil {
		j.do()
	}
	return j.Journal.AppendLater(s, k, id, branch, data)
}

// A stranger's question takes one of such a rate, too.
func TestRateOfSeveralAsked(t *testing.T) {
	t.Parallel()
	left := 1
	o := run.Options{
		Asker: inquirer{},
		Act:   func(context.Context) (lease.Time, error) { return lease.Now().Add(lease.Length), nil },
		Rate: func(context.Context, string, caps.Rate) error {
			if left--; left < 0 {
				return errors.New("none is left")
			}
			return nil
		},
	}
	m := *toy
	m.Kind, m.Operations = "ask", []caps.Operation{m.Operations[0]}
	m.Operations[0].Name = "ask.get"
	kinds, err := caps.NewKinds(&m, toy)
	must.NoError(t, err)
	w := newWorldOfKinds(t, kinds, o, func(ctx context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
		r := a.Ask(ctx, run.Question{Message: "sure"})
		return value.Str(r.Action + r.Reason), 1, nil
	}, "toy:**", "ask:**,rate=9/h")
	w.evolve("get", `k => if k == "" then !ask.get(k) else !toy.get(k)`, "toy.get:**", "ask.get:**")
	w.gives("get", `"a"`, `"accept"`)
	w.gives("get", `"a"`, `"declineask.get: none is left"`)
	w.recorded(journal.EffectAsked, "asked", "asked denied")
}

func TestEffectsAreDecidedRecordedPerformed(t *testing.T) {
	w := newWorld(t, run.Options{}, echo, "toy:notes/**")
	w.evolve("get", "k => !toy.get(k)", "toy.get:notes/**")
	w.gives("get", `"notes/a"`, `"notes/a"`)
	w.fails("get", `"secret"`, fault.Denied, "secret")
	w.fails("get", `{"in":"notes/**","key":"notes/a"}`, fault.EffectFailed)
	w.recorded("effect",
		`requested toy.get {"key":"notes/a"}`, `outcome "notes/a"`,
		`denied toy.get "secret" denied`,
		`denied toy.get {"in":"notes/**","key":"notes/a"} effect_failed`)
	w.recorded("run", "run.started", "run.ended", "run.started", "run.ended denied", "run.started", "run.ended effect_failed")
}

// A branch's events have its position; outcomes come back in the order of the
// branches, whatever is done first.
func TestParIsPerformedTogether(t *testing.T) {
	var under, most atomic.Int32
	all := make(chan struct{})
	w := newWorld(t, run.Options{Limits: run.Limits{Width: 4}}, func(ctx context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
		n := under.Add(1)
		defer under.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		if n == 4 {
			close(all)
		}
		<-all
		return echo(ctx, a)
	}, "toy:notes/**")
	w.evolve("four", `k => par(!toy.get(k ++ "0"), !toy.get(k ++ "1"), par(!toy.get(k ++ "2"), !toy.get(k ++ "3")))`, "toy.get:notes/**")
	w.gives("four", `"notes/"`, `["notes/0","notes/1",["notes/2","notes/3"]]`)
	if most.Load() != 4 {
		t.Errorf("%d effects were under way at once, not 4", most.Load())
	}
	got := w.events(journal.EffectRequested)
	if want := []string{`requested 0 toy.get {"key":"notes/0"}`, `requested 1 toy.get {"key":"notes/1"}`, `requested 2.0 toy.get {"key":"notes/2"}`, `requested 2.1 toy.get {"key":"notes/3"}`}; strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("requested\n%s", strings.Join(got, "\n"))
	}
}

func TestWidthIsBounded(t *testing.T) {
	var under, most atomic.Int32
	w := newWorld(t, run.Options{Limits: run.Limits{Width: 3}}, func(ctx context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
		n := under.Add(1)
		defer under.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		time.Sleep(time.Millisecond)
		return echo(ctx, a)
	}, "toy:notes/**")
	w.evolve("wide", `n => if n == 0 then 0 else par(length(!toy.get("notes/" ++ to_text(n))), self(n - 1)) |> sum`, "toy.get:notes/**")
	w.gives("wide", "60", "471")
	if most.Load() > 3 {
		t.Errorf("%d effects were under way at once, 3 are allowed", most.Load())
	}
}

func TestEffectsOfARunAreBounded(t *testing.T) {
	w := newWorld(t, run.Options{Limits: run.Limits{Effects: 10}}, echo, "toy:notes/**")
	w.evolve("all", `n => fold(p => try(!toy.get("elsewhere")), 0, range(0, n))`, "toy.get:notes/**")
	w.fails("all", "11", fault.OutOfFuel, "10 effects")
	if got := len(w.events(journal.EffectDenied)); got != 11 {
		t.Errorf("%d denials are on record, not 11", got)
	}
	events, _, err := w.memory.Read(journal.Query{Kind: journal.RunEnded})
	must.NoError(t, err)
	var end struct{ Steps uint64 }
	must.NoError(t, json.Unmarshal(events[0].Data, &end))
	if end.Steps == 0 || end.Steps > 1000 {
		t.Errorf("%d steps are on record", end.Steps)
	}
}

// What can't be recorded isn't done.
func TestNothingIsDoneUnrecorded(t *testing.T) {
	var performed atomic.Int32
	full := errors.New("the disk is full")
	var broken atomic.Bool
	broke := journal.NewMemory(1<<20, func(e *journal.Event) error {
		if broken.Load() {
			return full
		}
		return nil
	})
	w := newWorld(t, run.Options{Journal: broke}, func(ctx context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
		performed.Add(1)
		broken.Store(true)
		return echo(ctx, a)
	}, "toy:notes/**")
	w.evolve("get", "k => !toy.get(k)", "toy.get:notes/**")
	w.evolve("pure", "k => k")
	w.fails("get", `"notes/a"`, fault.OutcomeUnknown, "recorded")
	w.fails("get", `"notes/a"`, fault.EffectFailed, "recorded")
	w.gives("pure", "1", "1")
	if performed.Load() != 1 {
		t.Errorf("%d effects were performed", performed.Load())
	}
	if _, err := w.tools.Evolve(registry.Definition{Name: "x", Code: []byte("1")}, registry.Edit{}); err == nil {
		t.Error("a tool was made and not recorded")
	}
}

// A revocation ends an effect that is under way, and its outcome is dropped.
func TestRevocationCancels(t *testing.T) {
	began, listed := make(chan struct{}), make(chan struct{})
	w := newWorld(t, run.Options{}, func(ctx context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
		close(began)
		<-ctx.Done()
		select {
		case <-listed:
		case <-time.After(time.Minute):
			t.Error("the revocation isn't recorded")
		}
		return value.Str("too late"), 8, nil
	}, "toy:notes/**")
	w.evolve("get", "k => try(!toy.get(k))", "toy.get:notes/**")
	go func() {
		<-began
		g := w.policy.Grants()[0]
		w.policy.Revoke(g.ID)
		w.broker.Revoked(caps.Change{Grant: g, Revoked: true, Text: "toy:notes/**"})()
		close(listed)
	}()
	got, f := w.run(context.Background(), "get", `"notes/a"`)
	if f != nil || !strings.Contains(got, `"kind":"denied"`) || strings.Contains(got, "too late") {
		t.Errorf("the outcome is %s, %v", got, f)
	}
	w.gives("get", `"notes/a"`, func() string { s, _ := w.run(context.Background(), "get", `"notes/a"`); return s }())
	requests, _, err := w.memory.Read(journal.Query{Kind: journal.EffectRequested})
	if n := len(requests); n != 1 || err != nil {
		t.Fatalf("%d requests were allowed, %v", n, err)
	}
	revoked, _, err := w.memory.Read(journal.Query{Kind: journal.PolicyRevoked})
	if err != nil || len(revoked) != 1 {
		t.Fatal(len(revoked), err)
	}
	if on := string(revoked[0].Data); !strings.Contains(on, fmt.Sprintf(`"under_way":["toy.get of the run %s, event %d"]`, requests[0].Run, requests[0].Seq)) {
		t.Errorf("what was under way isn't listed: %s", on)
	}
}

// What was permitted is decided again after a wait: for a turn among the effects of a round, or for a person.
func TestDecidedAgain(t *testing.T) {
	t.Parallel()
	until := time.Now().Add(10 * time.Minute).UTC().Truncate(time.Second)
	var done []string
	var w *world
	w = newWorld(t, run.Options{Limits: run.Limits{Width: 1}}, func(_ context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
		key := string(field(a.Args, "key").(value.Str))
		if done = append(done, fmt.Sprint(key, " ", len(a.Denies))); len(done) == 1 {
			w.policy.Revoked([]caps.Revocation{{ID: "1", Text: "toy:notes/b"}})
		}
		if !a.Deadline.Equal(until) {
			t.Errorf("%s has until %s, not %s", key, a.Deadline, until)
		}
		return value.Unit{}, 1, nil
	}, "toy:notes/**,timeout=2h,until="+until.Format(time.RFC3339))
	w.evolve("all", `x => map(r => if has(r, "ok") then "ok" else r.error.kind, par(try(!toy.put({key: "notes/a", value: 1})), try(!toy.put({key: "notes/b", value: 1})), try(!toy.put({key: "notes/c", value: 1}))))`, "toy:**")
	w.gives("all", "null", `["outcome_unknown","denied","ok"]`)
	if got := fmt.Sprint(done); got != "[notes/a 0 notes/c 1]" {
		t.Errorf("%s were done", got)
	}
	var p *posted
	p = newPosted(t, askText, run.Options{AskFlow: func(context.Context, run.FlowQuestion) (bool, error) {
		d, err := caps.Parse("toy.send:**", p.policy.Kinds())
		must.NoError(t, err)
		return true, p.policy.Deny(d)
	}})
	p.evolve("send", `x => !toy.send({to: "a", text: !toy.get("secret/a")})`, "toy:**")
	if p.fails("send", "null", fault.Denied, "the operator denies"); len(p.sent) > 0 {
		t.Errorf("it sent %v", p.sent)
	}
}

// A call runs the version that was there when its caller was made, with that
// version's authority, and is recorded where it is denied.
func TestCallsAreBound(t *testing.T) {
	w := newWorld(t, run.Options{}, echo, "toy:notes/**")
	w.evolve("get", "k => !toy.get(k)", "toy.get:notes/**")
	w.evolve("outer", "k => @get(k)", "call:get")
	w.gives("outer", `"notes/a"`, `"notes/a"`)
	w.evolve("get", `k => "another"`)
	w.gives("outer", `"notes/a"`, `"notes/a"`)
	w.gives("get", `"notes/a"`, `"another"`)
	w.evolve("pick", "t => call(t, 1)", "call:outer")
	w.fails("pick", `"get"`, fault.Denied, "call:get")
	w.recorded(journal.EffectDenied, "denied call get denied")
}

// The limits of a grant hold for a run, however many tools it goes through.
func TestLimitsAreNotMultiplied(t *testing.T) {
	var performed atomic.Int32
	w := newWorld(t, run.Options{}, func(ctx context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
		performed.Add(1)
		return echo(ctx, a)
	}, "toy:notes/**,calls=5")
	w.evolve("a", "k => !toy.get(k)", "toy.get:notes/**")
	w.evolve("b", "k => !toy.get(k)", "toy.get:notes/*,calls=5")
	w.evolve("both", `n => fold(p => [try(@a("notes/x")), try(@b("notes/x"))], 0, range(0, n))`, "call:a", "call:b")
	if _, f := w.run(context.Background(), "both", "10"); f != nil {
		t.Fatal(f)
	}
	if performed.Load() != 5 {
		t.Errorf("%d effects were performed, 5 are allowed", performed.Load())
	}
}

// Callers together: each gets its own outcomes, and the journal has all.
func TestManyCallers(t *testing.T) {
	w := newWorld(t, run.Options{}, echo, "toy:notes/**")
	w.evolve("sum", `n => fold(p => fst(p) + length(!toy.get("notes/" ++ to_text(snd(p)))), 0, range(0, n))`, "toy.get:notes/**")
	const callers, each = 16, 500
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			if got, f := w.run(context.Background(), "sum", fmt.Sprint(each)); f != nil || got != "4390" {
				t.Errorf("%s, %v", got, f)
			}
		})
	}
	wg.Wait()
	if n := w.memory.Len(); n != 1+callers*(2+2*each) {
		t.Errorf("the journal has %d events", n)
	}
	if err := w.memory.Verify(); err != nil {
		t.Error(err)
	}
}

func TestCancelledRunsStopActing(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	w := newWorld(t, run.Options{}, func(ctx context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
		cancel()
		<-ctx.Done()
		return nil, 0, &fault.Fault{Kind: fault.EffectFailed, Message: "cancelled"}
	}, "toy:notes/**")
	w.evolve("get", "k => !toy.get(k)", "toy.get:notes/**")
	if got, f := w.run(ctx, "get", `"notes/a"`); f == nil || f.Kind != fault.EffectFailed {
		t.Errorf("%s, %v", got, f)
	}
}

// A server without plugins denies what its policy would allow.
func TestWithoutHandler(t *testing.T) {
	w := newWorld(t, run.Options{}, nil, "toy:notes/**")
	w.evolve("get", "k => !toy.get(k)", "toy.get:notes/**")
	w.fails("get", `"notes/a"`, fault.Denied)
}

func BenchmarkEffect(b *testing.B) {
	w := newWorld(b, run.Options{Limits: run.Limits{Effects: 1 << 40}}, echo, "toy:notes/**,calls=1000000000,bytes=1000GiB")
	made := w.evolve("get", "k => !toy.get(k)", "toy.get:notes/**")
	r := w.broker.Begin(w.tools.Snapshot(), run.Start{Tool: made})
	requests := []core.Request{{Op: "toy.get", Arg: value.Str("notes/a"), Where: "tool:get", Tool: "get", Tools: r.Tools(made)}}
	until := time.Now().Add(time.Hour)
	for b.Loop() {
		if a := r.Answer(context.Background(), until, requests); a[0].Fault != nil {
			b.Fatal(a[0].Fault)
		}
	}
}

// TestFacts: what was found out of a version is in its event, and is read back; what
// is missing, or can't be read, is no reason to lose the version.
func TestFacts(t *testing.T) {
	for sort, j := range journals(t) {
		r := openTools(t, j)
		made, err := r.Evolve(definition("square", `{"lam":"n","body":{"mul":[{"var":"n"},{"var":"n"}]}}`), registry.Edit{})
		must.NoError(t, err)
		c, ok, err := run.Log(j).One(made.Seq)
		if err != nil || !ok || c.Facts.Normal == "" || c.Facts.Semantics == 0 || !strings.Contains(string(c.Facts.Certificate), made.Hash) ||
			string(c.Facts.Input) != string(made.InputSchema()) || string(c.Facts.Output) != string(made.OutputSchema()) {
			t.Errorf("%s: %v, %+v", sort, err, c.Facts)
		}
		// The event as it was before there were facts, and as somebody may write it.
		events, _, err := j.Read(journal.Query{Changes: true, Limit: 1})
		if err != nil || len(events) != 1 {
			t.Fatal(sort, err)
		}
		var data map[string]json.RawMessage
		if err := json.Unmarshal(events[0].Data, &data); err != nil || data["facts"] == nil {
			t.Fatal(sort, err, string(events[0].Data))
		}
		for i, facts := range []string{"", `7`, `null`, `{"normal":7}`, `{"certificate":null}`, `{"certificate":{"hash":"x"},"input":[],"output":"x"}`} {
			name := string(rune('a' + i))
			if delete(data, "facts"); facts != "" {
				data["facts"] = json.RawMessage(facts)
			}
			data["tool"] = json.RawMessage(`"` + name + `"`)
			text, err := json.Marshal(data)
			must.NoError(t, err)
			after, err := j.Changed()
			if err == nil {
				_, err = j.Change(after, journal.ToolEvolved, text)
			}
			if err != nil {
				t.Fatal(sort, err)
			}
			again := openTools(t, j)
			tool, ok := again.Snapshot().Get(name)
			if !ok || tool.Report().Type.String() != "(num) -> num" || string(tool.InputSchema()) != string(made.InputSchema()) {
				t.Errorf("%s, %s: it is there: %t", sort, facts, ok)
			} else if p := again.Proof(tool); p.Status == registry.ProofChecked {
				t.Errorf("%s, %s: its certificate is %+v", sort, facts, p)
			}
		}
	}
}

// TestChangeByName: in a cluster a change is made anew only where one of the names that it
// was made from was changed meanwhile; what others made is there in any case.
func TestChangeByName(t *testing.T) {
	t.Parallel()
	m := order.NewMemory(order.MemoryOptions{})
	open := func(name string) *registry.Registry {
		s, err := journal.Open(filepath.Join(t.TempDir(), "j.db"), journal.Options{Order: m.Open(), Profile: "p", Node: name})
		must.NoError(t, err)
		t.Cleanup(func() { _ = s.Close() })
		r, _, err := registry.Open(run.Log(s), nil)
		must.NoError(t, err)
		return r
	}
	a, b := open("a"), open("b")
	evolve := func(r *registry.Registry, name, code string, check registry.Check) *registry.Tool {
		t.Helper()
		d := definition(name, code)
		if name == "calls" {
			d.Capabilities, d.Text = []string{"call:used"}, true
		}
		made, err := r.Evolve(d, registry.Edit{Check: check})
		must.NoError(t, err)
		return made
	}
	evolve(a, "used", "1", nil)
	for _, c := range []struct {
		other string
		times int
	}{{"unrelated", 1}, {"used", 2}, {"calls", 2}} {
		times := 0
		made := evolve(a, "calls", fmt.Sprintf("x => @used(%d)", len(c.other)), func(*registry.Tool, *registry.Snapshot) *fault.Fault {
			if times++; times == 1 {
				evolve(b, c.other, fmt.Sprintf("%q", c.other), nil)
			}
			return nil
		})
		if times != c.times {
			t.Errorf("beside a change of %s it was tried %d times, expected %d", c.other, times, c.times)
		}
		if now, ok := a.Snapshot().Get("calls"); !ok || now != made {
			t.Errorf("beside a change of %s it isn't what is there", c.other)
		}
		if _, ok := a.Snapshot().Get(c.other); !ok {
			t.Errorf("%s isn't there", c.other)
		}
	}
}

// bomb is code of a value that takes a kilobyte of memory and 2^60 times as much
// written out.
const bomb = `fold(p => (fst(p), fst(p)), 1, range(0, 60))`

// An argument that is larger than the run's memory once it is written is written
// nowhere: of a denial there is what it was about and that it is larger, and a
// request that is permitted is refused before it is performed, for good.
func TestArgumentsAreMeasuredBeforeTheyAreWritten(t *testing.T) {
	performed := 0
	w := newWorld(t, run.Options{}, func(context.Context, run.Act) (value.Value, int64, *fault.Fault) {
		performed++
		return value.Unit{}, 4, nil
	}, "toy:notes/**,max=1GiB")
	w.evolve("put", "k => get(try(!toy.put({key: k, value: "+bomb+"})), \"error\")", "toy.put:notes/**")
	w.evolve("get", "k => get(get(try(!toy.get("+bomb+")), \"error\"), \"kind\")", "toy.get:notes/**")

	w.gives("get", `0`, `"effect_failed"`) // a pair is no key
	if got, f := w.run(context.Background(), "put", `"secret"`); f != nil || !strings.Contains(got, `"kind":"denied"`) {
		t.Errorf("a denial gave %s, %v, and is to be caught", got, f)
	}
	w.fails("put", `"notes/a"`, fault.OutOfMemory, "toy.put", "67108864")
	if performed > 0 {
		t.Errorf("%d requests were performed", performed)
	}
	events, _, err := w.memory.Read(journal.Query{Kind: journal.EffectDenied})
	must.NoError(t, err)
	want := []string{
		`{"kind":"toy","bytes":67108865}`,
		`{"kind":"toy","scope":"secret","bytes":67108865}`,
		`{"kind":"toy","scope":"notes/a","bytes":67108865}`,
	}
	for i, e := range events {
		var data struct {
			Measured json.RawMessage `json:"args_measured"`
		}
		if err := json.Unmarshal(e.Data, &data); err != nil || string(data.Measured) != want[i] || len(e.Data) > 4096 {
			t.Errorf("denial %d has %s (%v) in %d bytes, not %s", i, data.Measured, err, len(e.Data), want[i])
		}
	}
	if len(events) != len(want) {
		t.Errorf("%d denials are recorded, not %d", len(events), len(want))
	}
	if err := w.memory.Verify(); err != nil {
		t.Error(err)
	}
}

// What is large and fits is hashed without being written as a whole, and hashed as
// ever: older records are compared with it.
func TestLargeDenialsAreHashed(t *testing.T) {
	w := newWorld(t, run.Options{}, echo, "toy:notes/**")
	w.evolve("put", `n => !toy.put({key: "secret", value: join(map(i => "\u2028é\u0001\"", range(0, n)), "x")})`, "toy.put:notes/**")
	w.fails("put", `100000`, fault.Denied)
	events, _, err := w.memory.Read(journal.Query{Kind: journal.EffectDenied})
	if err != nil || len(events) != 1 {
		t.Fatal(err, len(events))
	}
	var data struct {
		Hash run.Digest `json:"args_hash"`
	}
	must.NoError(t, json.Unmarshal(events[0].Data, &data))
	unit := `\u2028é\u0001\"`
	text := `{"key":"secret","value":"` + strings.Repeat(unit+"x", 99_999) + unit + `"}`
	if want := (run.Digest{Bytes: int64(len(text)), SHA256: sha256.Sum256([]byte(text))}); data.Hash != want {
		t.Errorf("the digest is %v, not %v", data.Hash, want)
	}
}

// TestCodeOfIsBound: a name that is written under code_of in a kept tool's code, quoted or not, means the version there
// was, or the tool itself; one that no tool had is the current version, if it is written in the code that was evolved.
func TestCodeOfIsBound(t *testing.T) {
	w := newWorld(t, run.Options{}, nil)
	w.evolve("lib", "x => x + 1")
	w.evolve("nested", `x => eval(code_of("later"))(x)`)
	for name, code := range map[string]string{
		"late":     `x => eval(code_of("later"))(x)`,
		"quoting":  `x => let q = '{code_of("later")} in eval(eval(q))(x)`,
		"data":     `x => eval(eval(to_code({op: "code_of", args: [], name: "later"})))(x)`,
		"deep":     `x => eval(code_of("nested"))(x)`,
		"quoted":   `x => let q = '{code_of("lib")} in eval(eval(q))(x)`,
		"itself":   `x => if x == 0 then 7 else eval(code_of("itself"))(0)`,
		"self_too": `x => length(to_text(code_of("self"))) > 0`,
		"computed": `x => eval(code_of(join(["la", "ter"], "")))(x)`,
		"built":    `x => eval(eval(to_code({op: "code_of", args: [{op: "concat", args: [{op: "string", args: [], value: "lat"}, {op: "string", args: [], value: "er"}]}]})))(x)`,
	} {
		w.evolve(name, code)
	}
	for _, code := range []string{"x => 100", "x => 200"} {
		w.evolve("later", code)
		w.evolve("lib", code)
	}
	w.evolve("self", "x => 300")
	w.evolve("nobody", `x => eval(eval(to_code({op: "code_of", args: [], name: "none"})))(x)`)
	w.fails("nobody", "1", fault.RuntimeError, `there is no tool named "none"`)
	for _, name := range []string{"data", "built"} { // of which nobody can tell from its code
		w.fails(name, "1", fault.RuntimeError, `code_of "later" in code that doesn't name that tool`)
	}
	for _, name := range []string{"late", "quoting", "deep"} {
		w.gives(name, "1", "200")
		if kept, ok := w.tools.Snapshot().Get(name); !ok || kept.Whole() != "" {
			t.Errorf("what %s copies is known", name)
		}
	}
	// That this takes any is seen in its code.
	w.evolve("any", `x => let lib = code_of("l" ++ "ib") in eval(eval(to_code({op: "code_of", args: [], name: "later"})))(x)`)
	w.gives("any", "1", "200")
	w.gives("quoted", "1", "2")
	w.gives("itself", "1", "7")
	w.gives("self_too", "1", "true")
	w.gives("computed", "1", "200") // which is why no person can have approved all that it runs
}

// startless is a journal that takes no start of a run.
type startless struct{ *journal.Memory }

func (j startless) Append(s journal.Stage, k journal.Kind, id, branch string, data []byte) (uint64, error) {
	if k == journal.RunStarted {
		return 0, errors.New("it is too large")
	}
	return j.Memory.Append(s, k, id, branch, data)
}

// TestNoStart: a run whose start the journal didn't take acts as little as one whose request it didn't take, and isn't planned.
func TestNoStart(t *testing.T) {
	t.Parallel()
	did := 0
	j := startless{journal.NewMemory(1<<20, nil)}
	w := newWorld(t, run.Options{Journal: j}, func(context.Context, run.Act) (value.Value, int64, *fault.Fault) {
		did++
		return value.Unit{}, 1, nil
	}, "toy:notes/**")
	made := w.evolve("puts", `k => !toy.put({key: k, value: 1})`, "toy:notes/**")
	w.fails("puts", `"notes/a"`, fault.EffectFailed, "it could not be recorded")
	in, err := core.ParseInput([]byte(`"notes/a"`), core.InputData)
	must.NoError(t, err)
	p, f := w.broker.Begin(w.tools.Snapshot(), bounds(made, "", `"notes/a"`)).Plan(t.Context(), time.Now().Add(time.Hour), run.Evaluation{Tool: made, Program: made.Program(), Input: in}, 1, nil)
	if events, _, _ := j.Read(journal.Query{Kind: "effect"}); did > 0 || f == nil || len(events) > 0 {
		t.Errorf("it acted %d times, was planned as %+v, %v, and has on record %v", did, p, f, events)
	}
}
