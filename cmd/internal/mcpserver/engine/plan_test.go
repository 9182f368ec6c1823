package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/elicit"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// noteWorld is a world of notes that counts what is put.
type noteWorld struct {
	mu    sync.Mutex
	notes map[string]string
	puts  []string
	// Requests by the verb that it holds wait until held is closed; each is told by begun.
	holds       string
	begun, held chan struct{}
}

func (*noteWorld) Prepare(*caps.Grant) {}

func (s *noteWorld) Perform(ctx context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
	if a.Verb == s.holds {
		s.begun <- struct{}{}
		select {
		case <-s.held:
		case <-ctx.Done():
			return nil, 0, fault.New(fault.EffectFailed, "it ended")
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	text := func(name string) string {
		for _, f := range a.Args.(*value.Record).Fields {
			if f.Key == name {
				return strings.Trim(fmt.Sprint(value.Force(f.Value)), `"`)
			}
		}
		return ""
	}
	if a.Verb == "get" {
		return value.Str(s.notes[text("key")]), 1, nil
	}
	s.notes[text("key")] = text("value")
	s.puts = append(s.puts, text("key")+"="+text("value"))
	return value.Unit{}, 1, nil
}

func (s *noteWorld) done() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.puts, " ")
}

// newNoteWorld is a server with a grant of notes; with confirm what changes them needs an approved plan.
func newNoteWorld(t *testing.T, confirm bool) (*Engine, *noteWorld) {
	t.Helper()
	known, err := caps.NewKinds(toy)
	must.NoError(t, err)
	policy := caps.NewPolicy(known, time.Now)
	c, err := caps.Parse("toy:**", known)
	must.NoError(t, err)
	g, err := caps.Resolve(c, caps.ResolveOptions{Kinds: known})
	if err == nil {
		err = policy.Grant(g)
	}
	must.NoError(t, err)
	world := &noteWorld{notes: map[string]string{"a": "hello"}}
	o := run.Options{Policy: policy, Handler: world, Journal: journal.NewMemory(8<<20, nil)}
	if confirm {
		r, err := caps.ParseRequests("toy.put:**", "", known)
		must.NoError(t, err)
		policy.Confirm([]caps.Requests{r})
	}
	s := New(Options{Elicit: true, Broker: run.New(o)})
	for _, text := range []string{
		`{"name":"copy","code":"k => let v = !toy.get(k) in let p = !toy.put({key: k ++ \"2\", value: v}) in [p, !toy.put({key: \"log\", value: k})]","capabilities":["toy:**"]}`,
		`{"name":"look","code":"k => !toy.get(k)","capabilities":["toy:**"]}`,
		`{"name":"careful","code":"k => let p = !toy.put({key: k, value: \"1\"}) in if p == null then !toy.put({key: k ++ \"3\", value: \"2\"}) else null","capabilities":["toy:**"]}`,
	} {
		if a := s.Call(t.Context(), Call{Tool: "evolve", Arguments: json.RawMessage(text)}); a.Fault != nil {
			t.Fatal(a.Text)
		}
	}
	return s, world
}

// asks calls a tool and gives the answer's members.
func callPlan(ctx context.Context, t *testing.T, s *Engine, tool, arguments string) (a wire.Answer, got struct {
	Plan, State, Ends string
	Steps             []struct {
		Op   string
		Args map[string]any
		From map[string][]string
	}
	Reads    map[string]int
	Complete bool
}) {
	t.Helper()
	a = s.Call(ctx, Call{Tool: tool, Arguments: json.RawMessage(arguments)})
	if a.Fault == nil {
		_ = json.Unmarshal(a.Structured, &got)
	}
	return a, got
}

func TestPlan(t *testing.T) {
	t.Parallel()
	s, world := newNoteWorld(t, false)
	a, p := callPlan(t.Context(), t, s, "run", `{"tool":"copy","input":"a","plan":true}`)
	if world.done() != "" || p.State != "ready" || len(p.Steps) != 2 || !p.Complete || p.Reads["toy.get"] != 1 ||
		p.Steps[0].Args["value"] != "hello" || fmt.Sprint(p.Steps[0].From) != "map[key:[input] value:[input toy.get]]" {
		t.Fatalf("%s\n%q", a.Text, world.done())
	}
	if !strings.Contains(strings.Join(a.More, "\n"), `{"plan":"`+p.Plan+`"}`) {
		t.Errorf("%q doesn't say how it is done", a.More)
	}
	if a, _ := callPlan(t.Context(), t, s, "run", `{"plan":"`+p.Plan+`"}`); a.Fault != nil || world.done() != "a2=hello log=a" {
		t.Fatalf("%s\n%q", a.Text, world.done())
	}
	if a, _ := callPlan(t.Context(), t, s, "run", `{"plan":"`+p.Plan+`"}`); a.Fault == nil || a.Fault.Kind != fault.Conflict || world.done() != "a2=hello log=a" {
		t.Errorf("done twice: %s", a.Text)
	}
	// The world moves on in between.
	_, p = callPlan(t.Context(), t, s, "run", `{"tool":"copy","input":"a","plan":true}`)
	world.notes["a"] = "changed"
	if a, _ := callPlan(t.Context(), t, s, "run", `{"plan":"`+p.Plan+`"}`); a.Fault == nil || a.Fault.Kind != fault.Deviated || world.done() != "a2=hello log=a" {
		t.Errorf("done in another world: %s %q", a.Text, world.done())
	}
	_, p = callPlan(t.Context(), t, s, "run", `{"tool":"copy","input":"a","plan":true}`)
	world.notes["a"] = "again"
	if a, _ := callPlan(t.Context(), t, s, "run", `{"plan":"`+p.Plan+`","fresh":false}`); a.Fault != nil || world.done() != "a2=hello log=a a2=changed log=a" {
		t.Errorf("with what was read then: %s %q", a.Text, world.done())
	}
	// It is only read otherwise, and more often: the steps are the same.
	callPlan(t.Context(), t, s, "evolve", `{"name":"mark","code":"k => let v = !toy.get(k) in let w = if v == \"again\" then v else !toy.get(k) in !toy.put({key: k ++ \"4\", value: w != null})","capabilities":["toy:**"]}`)
	_, p = callPlan(t.Context(), t, s, "run", `{"tool":"mark","input":"a","plan":true}`)
	world.notes["a"] = "once more"
	if a, _ := callPlan(t.Context(), t, s, "run", `{"plan":"`+p.Plan+`"}`); a.Fault != nil || !strings.HasSuffix(world.done(), " a4=true") {
		t.Errorf("other reads: %s %q", a.Text, world.done())
	}
	// Not where another section goes by what was read.
	callPlan(t.Context(), t, s, "evolve", `{"name":"marked","code":"k => let v = !toy.get(k) in let p = !toy.put({key: \"lock\", value: \"1\"}) in if p == null then !toy.put({key: k, value: v}) else null","capabilities":["toy:**"]}`)
	_, p = callPlan(t.Context(), t, s, "run", `{"tool":"marked","input":"a","plan":true}`)
	world.notes["a"] = "again"
	if a, _ := callPlan(t.Context(), t, s, "run", `{"plan":"`+p.Plan+`"}`); a.Fault == nil || a.Fault.Kind != fault.Deviated || !strings.Contains(a.Text, "goes by") || !strings.Contains(a.Text, `"fresh":false`) {
		t.Errorf("other reads, and a section behind: %s %q", a.Text, world.done())
	}
	// In sections, where it depends on an answer.
	_, p = callPlan(t.Context(), t, s, "run", `{"tool":"careful","input":"c","plan":true}`)
	if len(p.Steps) != 1 || p.Complete {
		t.Fatalf("%+v", p)
	}
	_, next := callPlan(t.Context(), t, s, "run", `{"plan":"`+p.Plan+`"}`)
	if next.Plan == p.Plan || len(next.Steps) != 1 || !next.Complete || !strings.HasSuffix(world.done(), " c=1") {
		t.Fatalf("%+v %q", next, world.done())
	}
	if a, _ := callPlan(t.Context(), t, s, "run", `{"plan":"`+next.Plan+`"}`); a.Fault != nil || !strings.HasSuffix(world.done(), " c=1 c3=2") {
		t.Errorf("%s %q", a.Text, world.done())
	}
	for arguments, kind := range map[string]fault.Kind{
		`{"plan":"p_none-1"}`:                                  fault.InvalidRequest,
		`{"plan":"` + next.Plan + `","input":"a"}`:             fault.InvalidRequest,
		`{"tool":"copy","input":"a","plan":7}`:                 fault.InvalidRequest,
		`{"tool":"copy","input":"a","plan":true,"drive":true}`: fault.InvalidRequest,
	} {
		if a, _ := callPlan(t.Context(), t, s, "run", arguments); a.Fault == nil || a.Fault.Kind != kind {
			t.Errorf("%s: %s", arguments, a.Text)
		}
	}
	if a, _ := callPlan(t.Context(), t, s, "run", `{"code":"1 + 1","plan":true}`); a.Text != "2" {
		t.Errorf("a plan of nothing: %s", a.Text)
	}
	// Several calls at once: it is done once.
	world.puts = nil
	_, p = callPlan(t.Context(), t, s, "run", `{"tool":"copy","input":"a","plan":true}`)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			s.Call(context.Background(), Call{Tool: "run", Arguments: json.RawMessage(`{"plan":"` + p.Plan + `"}`)})
		})
	}
	all.Wait()
	if world.done() != "a2=again log=a" {
		t.Errorf("eight calls did %q", world.done())
	}
	// What a task answers may be a plan.
	a, _ = callPlan(t.Context(), t, s, "run", `{"tool":"copy","input":"a","plan":true,"background":true}`)
	for try := 0; strings.Contains(a.Text, "isn't done yet") && try < 100; try++ {
		var st struct{ Task string }
		_ = json.Unmarshal(a.Structured, &st)
		a, _ = callPlan(t.Context(), t, s, "run", `{"task":"`+st.Task+`"}`)
	}
	if a.Fault != nil || !strings.Contains(a.Text, `"plan":"p_`) {
		t.Errorf("a plan as a task: %s", a.Text)
	}
	if err := s.broker.EndTask("none-1", "", 0, nil); err != nil {
		t.Error(err)
	}
}

// A plan ends with its time also while it looks at what a step is given: this has 2^60 parts, and nothing else ends it.
func TestPlanEndsWithItsTime(t *testing.T) {
	t.Parallel()
	s, world := newNoteWorld(t, false)
	s.limits.MaxMemory, s.limits.MaxSteps, s.limits.Timeout = 1<<62, 1<<62, 100*time.Millisecond
	a, _ := callPlan(t.Context(), t, s, "evolve", `{"name":"long","code":"k => !toy.put({key: k, value: fold(p => (fst(p), fst(p)), 1, range(0, 60))})","capabilities":["toy:**"]}`)
	if a.Fault != nil {
		t.Fatal(a.Text)
	}
	a, _ = callPlan(t.Context(), t, s, "run", `{"tool":"long","input":"a","plan":true,"steps":1000000000000000000}`)
	if a.Fault == nil || a.Fault.Kind != fault.Timeout || world.done() != "" {
		t.Errorf("%s %q", a.Text, world.done())
	}
}

var moreToRead = regexp.MustCompile(`show it in full first|go on reading \(page [0-9]+ of [0-9]+\)`)

func TestConfirm(t *testing.T) {
	t.Parallel()
	s, world := newNoteWorld(t, true)
	if a, _ := callPlan(t.Context(), t, s, "look", `{"input":"a"}`); a.Text != `"hello"` {
		t.Errorf("what only reads: %s", a.Text)
	}
	for name, yes := range map[string]bool{"yes": true, "no": false} {
		before := world.done()
		_, p := callPlan(t.Context(), t, s, "copy", `{"input":"a"}`)
		if p.State != "waiting" || world.done() != before {
			t.Fatalf("%s: %+v %q", name, p, world.done())
		}
		if _, again := callPlan(t.Context(), t, s, "run", `{"plan":"`+p.Plan+`"}`); again.State != "waiting" || world.done() != before {
			t.Fatalf("%s: done without an approval: %+v", name, again)
		}
		kept, err := run.FindPlan(s.broker.Journal(), p.Plan)
		must.NoError(t, err)
		lines, _, fits := kept.Lines()
		if text := strings.Join(lines, "\n"); !fits || !strings.Contains(text, "toy.put") || !strings.Contains(text, `"hello" (from: input, toy.get)`) {
			t.Errorf("the screen is %s", text)
		}
		must.NoError(t, run.AnswerPlan(s.broker.Journal(), kept.Plan, yes, "terminal"))
		a, _ := callPlan(t.Context(), t, s, "run", `{"plan":"`+p.Plan+`"}`)
		if yes != (a.Fault == nil) || yes != (world.done() != before) {
			t.Errorf("%s: %s %q", name, a.Text, world.done())
		}
	}
	// A client that asks its user, who reads all of it first.
	var shown []string
	ctx := elicit.With(t.Context(), &elicit.Elicitor{Calls: &elicit.Calls{}, Put: func(_ context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		shown = append(shown, p.Message)
		answer := "yes, do exactly this"
		if more := moreToRead.FindString(string(p.RequestedSchema.(json.RawMessage))); more != "" {
			answer = more
		}
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": answer}}, nil
	}})
	long := strings.Repeat("a line of a letter, which is long\n", 350) + "the end"
	before := len(world.done())
	if a := s.Call(ctx, Call{Tool: "copy", Arguments: wire.Encode(map[string]string{"input": "a"})}); a.Fault != nil || len(shown) != 1 {
		t.Errorf("%s %q", a.Text, shown)
	}
	world.notes["a"], shown = long, nil
	if a := s.Call(ctx, Call{Tool: "copy", Arguments: wire.Encode(map[string]string{"input": "a"})}); a.Fault != nil || len(shown) != 5 || !strings.Contains(shown[4], "  |   the end") || len(world.done()) < before+len(long) {
		t.Errorf("%s %q", a.Text, shown)
	}
	world.notes["a"] = "hello"
	// And one who doesn't.
	for answer, want := range map[string]bool{"yes, do exactly this": true, "no": false, "yes": false} {
		before := world.done()
		ctx := elicit.With(t.Context(), &elicit.Elicitor{Calls: &elicit.Calls{}, Put: func(_ context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			if !strings.Contains(p.Message, `"copy" (version 1) wants to do 2 things:`) {
				t.Errorf("it asks %s", p.Message)
			}
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": answer}}, nil
		}})
		if a, _ := callPlan(ctx, t, s, "copy", `{"input":"a"}`); (a.Fault != nil) != (answer == "no") || answer == "no" && !strings.Contains(a.Text, "said no") || want != (world.done() != before) {
			t.Errorf("%s: %s %q", answer, a.Text, world.done())
		}
	}
}

// What was approved is done in the world that it was approved in, also when the answer came in a form, or before the end of
// the server whose task it is.
func TestConfirmedInAnotherWorld(t *testing.T) {
	t.Parallel()
	s, world := newNoteWorld(t, true)
	differs := func(how string, a wire.Answer) {
		t.Helper()
		if a.Fault == nil || a.Fault.Kind != fault.Deviated || !strings.Contains(a.Text, "step 1, toy.put, would have other arguments") || world.done() != "" {
			t.Errorf("%s: %s %q", how, a.Text, world.done())
		}
	}
	copies := Call{Tool: "copy", Arguments: json.RawMessage(`{"input":"a"}`), Tools: s.Latest()}
	form := elicit.With(t.Context(), &elicit.Elicitor{Calls: &elicit.Calls{}, Put: func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		world.notes["a"] = "changed"
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": "yes, do exactly this"}}, nil
	}})
	differs("in a form", s.Call(form, copies))
	task := s.newTask("t-1", copies)
	must.NoFault(t, task.promote())
	ctx := context.WithValue(t.Context(), taskKey{}, task)
	_, p := callPlan(ctx, t, s, "copy", string(copies.Arguments))
	kept, err := run.FindPlan(s.broker.Journal(), p.Plan)
	must.NoError(t, err)
	must.NoError(t, run.AnswerPlan(s.broker.Journal(), kept.Plan, true, "terminal"))
	world.notes["a"], task.again = "again", true
	differs("before a restart", s.Call(ctx, copies))
}

// TestConfirmTooLate: the question of a plan ends with the plan, also where the call, as a task's, might wait for longer.
func TestConfirmTooLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, world := newNoteWorld(t, true)
		began := time.Now()
		ctx := elicit.With(t.Context(), &elicit.Elicitor{Patience: TaskLifetime, Put: func(ctx context.Context, _ *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		a, _ := callPlan(ctx, t, s, "copy", `{"input":"a"}`)
		if waited := time.Since(began); a.Fault == nil || !strings.Contains(a.Text, "is too old") || waited.Round(time.Minute) != run.PlanLifetime || world.done() != "" {
			t.Errorf("after %v: %s %q", waited, a.Text, world.done())
		}
	})
}

// TestPlanMayNotAct: a plan whose tool may not act any more says that nothing of it was done.
func TestPlanMayNotAct(t *testing.T) {
	t.Parallel()
	w := &tasked{t: t, dir: t.TempDir()}
	world := &noteWorld{notes: map[string]string{"a": "hello"}}
	s, stop := w.serves(world, "toy:**")
	w.call(s, "evolve", `{"name":"copy","code":"k => let v = !toy.get(k) in !toy.put({key: k ++ \"2\", value: v})","capabilities":["toy:**"]}`)
	_, p := callPlan(t.Context(), t, s, "run", `{"tool":"copy","input":"a","plan":true}`)
	stop()
	s, _ = w.serves(world)
	if a := w.call(s, "run", `{"plan":"`+p.Plan+`"}`); a.Fault == nil || a.Fault.Kind != fault.Denied || !strings.HasPrefix(a.Fault.Hint, "Nothing of it was done.") || world.done() != "" {
		t.Errorf("%s", a.Text)
	}
}

// A plan that is refused or withdrawn while it is planned anew isn't done; once it is begun, the refusal comes too late for the call
// that does it, and the record shows that.
func TestPlanRefusedMeanwhile(t *testing.T) {
	t.Parallel()
	w := &tasked{t: t, dir: t.TempDir(), confirm: "toy.put:**"}
	for _, c := range []struct {
		verb, by string
		begun    bool
		kind     fault.Kind
	}{{"get", "terminal", false, fault.Denied}, {"put", "terminal", true, ""}, {"get", run.Withdrawn, false, fault.Conflict}, {"put", run.Withdrawn, true, ""}} {
		verb, begun := c.verb, c.begun
		world := &noteWorld{notes: map[string]string{"a": "hello"}, begun: make(chan struct{}, 10), held: make(chan struct{})}
		s, _ := w.serves(world, "toy:**")
		w.call(s, "evolve", `{"name":"copy","code":"k => let v = !toy.get(k) in !toy.put({key: k ++ \"2\", value: v})","capabilities":["toy:**"]}`)
		_, p := callPlan(t.Context(), t, s, "run", `{"tool":"copy","input":"a","plan":true}`)
		kept, err := run.FindPlan(s.broker.Journal(), p.Plan)
		must.NoError(t, err)
		must.NoError(t, run.AnswerPlan(s.broker.Journal(), kept.Plan, true, "terminal"))
		world.holds = verb
		answered := make(chan wire.Answer, 1)
		go func() { answered <- w.call(s, "run", `{"plan":"`+p.Plan+`"}`) }()
		wait.For(t, world.begun, "the "+verb)
		must.NoError(t, run.AnswerPlan(s.broker.Journal(), kept.Plan, false, c.by))
		close(world.held)
		a := wait.For(t, answered, "the answer")
		now, err := run.FindPlan(s.broker.Journal(), p.Plan)
		must.NoError(t, err)
		if begun != (a.Fault == nil) || a.Fault != nil && (a.Fault.Kind != c.kind || strings.Contains(a.Text, "another call")) || begun != (world.done() != "") || begun != (now.Started == 1) {
			t.Errorf("refused at the %s by %s: %s %q, begun %d times", verb, c.by, a.Text, world.done(), now.Started)
		}
	}
}

// A plan is done once, however many calls of two servers on one store ask for it at once, and whatever they say; nor
// does another go on with it while it is under way.
func TestPlanOnce(t *testing.T) {
	t.Parallel()
	w := &tasked{t: t, dir: t.TempDir()}
	world := &noteWorld{notes: map[string]string{"a": "hello"}, holds: "put", begun: make(chan struct{}, 10_000), held: make(chan struct{})}
	a, _ := w.serves(world, "toy:**")
	b, _ := w.serves(world, "toy:**")
	if got := w.call(a, "evolve", `{"name":"copy","code":"k => let v = !toy.get(k) in let p = !toy.put({key: k ++ \"2\", value: v}) in [p, !toy.put({key: \"log\", value: k})]","capabilities":["toy:**"]}`); got.Fault != nil {
		t.Fatal(got.Text)
	}
	plan := func() string {
		_, p := callPlan(t.Context(), t, a, "run", `{"tool":"copy","input":"a","plan":true}`)
		return p.Plan
	}
	id := plan()
	first := make(chan wire.Answer, 1)
	go func() { first <- w.call(a, "run", `{"plan":"`+id+`"}`) }()
	wait.For(t, world.begun, "the first step")
	for name, s := range map[string]*Engine{"the same server": a, "another": b} {
		for _, more := range []string{``, `,"resume":true`, `,"resume":true,"fresh":false`} {
			if got := w.call(s, "run", `{"plan":"`+id+`"`+more+`}`); got.Fault == nil || got.Fault.Kind != fault.Conflict {
				t.Errorf("%s, with %q while it is done: %s", name, more, got.Text)
			}
		}
	}
	close(world.held)
	if got := wait.For(t, first, "the end"); got.Fault != nil || world.done() != "a2=hello log=a" {
		t.Fatalf("%s %q", got.Text, world.done())
	}
	rounds := must.Full(3, 300)
	for round := range rounds {
		world.mu.Lock()
		world.puts = nil
		world.mu.Unlock()
		id = plan()
		var all sync.WaitGroup
		for i := range 12 {
			more := []string{``, `,"resume":true`, `,"fresh":false`, `,"background":true`}[i%4]
			all.Go(func() {
				s := []*Engine{a, b}[(i+i/4)%2]
				got := w.call(s, "run", `{"plan":"`+id+`"`+more+`}`)
				for st := struct{ Task string }{}; strings.Contains(got.Text, "isn't done yet"); {
					_ = json.Unmarshal(got.Structured, &st)
					got = w.call(s, "run", `{"task":"`+st.Task+`"}`)
				}
			})
		}
		all.Wait()
		if world.done() != "a2=hello log=a" {
			t.Fatalf("round %d: twelve calls of two servers did %q", round, world.done())
		}
	}
}

// A plan that a server planned anew, and found another, while another one on the same store began it isn't withdrawn: it
// goes on after the end of that server.
func TestPlanWithdrawnTooLate(t *testing.T) {
	t.Parallel()
	w := &tasked{t: t, dir: t.TempDir()}
	does := &noteWorld{notes: map[string]string{"a": "hello"}, holds: "put", begun: make(chan struct{}, 10), held: make(chan struct{})}
	compares := &noteWorld{notes: map[string]string{"a": "changed"}, holds: "get", begun: make(chan struct{}, 10), held: make(chan struct{})}
	a, _ := w.serves(does, "toy:**")
	b, _ := w.serves(compares, "toy:**")
	w.call(a, "evolve", `{"name":"copy","code":"k => let v = !toy.get(k) in let p = !toy.put({key: k ++ \"2\", value: v}) in [p, !toy.put({key: \"log\", value: k})]","capabilities":["toy:**"]}`)
	_, p := callPlan(t.Context(), t, a, "run", `{"tool":"copy","input":"a","plan":true}`)
	late := make(chan wire.Answer, 1)
	go func() { late <- w.call(b, "run", `{"plan":"`+p.Plan+`"}`) }()
	wait.For(t, compares.begun, "the read at b")
	w.background(a, `{"plan":"`+p.Plan+`","background":true}`)
	wait.For(t, does.begun, "the first step at a")
	close(compares.held)
	if got := wait.For(t, late, "the answer of b"); got.Fault == nil || got.Fault.Kind != fault.Conflict || !strings.Contains(got.Text, "another call") {
		t.Errorf("b answers %s", got.Text)
	}
	now, err := run.FindPlan(b.broker.Journal(), p.Plan)
	must.NoError(t, err)
	if close(does.held); now.Refused || now.Started != 1 {
		t.Errorf("begun %d times, refused: %v", now.Started, now.Refused)
	}
}

// A plan that is done by a task goes on after the end of its server, and so does a call that has to be planned; what
// came of it is known to the next one.
func TestPlanTask(t *testing.T) {
	t.Parallel()
	for name, confirm := range map[string]string{"by its name": "", "a call of a tool of which something may need an approval": "toy.put:b/**", "one of which all needs it": "toy.put:**"} {
		w := &tasked{t: t, dir: t.TempDir(), confirm: confirm}
		world := &noteWorld{notes: map[string]string{"a": "hello"}, holds: "get", begun: make(chan struct{}, 10_000), held: make(chan struct{})}
		s, stop := w.serves(world, "toy:**")
		first := ""
		if confirm == "toy.put:**" { // it is a task before it is planned
			first = `let r = !toy.get(k) in `
		}
		if got := w.call(s, "evolve", `{"name":"copy","code":"k => `+first+`let p = !toy.put({key: k ++ \"2\", value: k}) in let v = !toy.get(k) in let q = !toy.put({key: \"log\", value: k}) in v","capabilities":["toy:**"]}`); got.Fault != nil {
			t.Fatal(got.Text)
		}
		call := `{"tool":"copy","input":"a","background":true}`
		if confirm == "" {
			_, p := callPlan(t.Context(), t, s, "run", `{"tool":"copy","input":"a","plan":true}`)
			call = `{"plan":"` + p.Plan + `","background":true}`
		}
		id := w.background(s, call)
		wait.For(t, world.begun, "the read")
		stop()
		close(world.held)
		for i := range 2 {
			s, stop = w.serves(world, "toy:**")
			got := w.call(s, "run", `{"task":"`+id+`"}`)
			if confirm == "toy.put:**" {
				if !strings.Contains(got.Text, `"state":"waiting"`) || world.done() != "" {
					t.Errorf("%s: server %d answers %s after %q", name, i+2, got.Text, world.done())
				}
			} else if got.Text != `"hello"` || world.done() != "a2=a log=a" {
				t.Errorf("%s: server %d answers %s after %q", name, i+2, got.Text, world.done())
			}
			stop()
		}
	}
}

// TestSectionPlannedTwice: a server that ends while it plans what follows a plan leaves that to the next one.
func TestSectionPlannedTwice(t *testing.T) {
	t.Parallel()
	w := &tasked{t: t, dir: t.TempDir()}
	world := &noteWorld{notes: map[string]string{"a": "hello"}, holds: "get", begun: make(chan struct{}, 10), held: make(chan struct{})}
	s, stop := w.serves(world, "toy:**")
	plan := w.plans(s, sections, `{"tool":"sections","input":"a","plan":true}`)
	id := w.background(s, `{"plan":"`+plan+`","background":true}`)
	wait.For(t, world.begun, "the read of the second section")
	stop()
	close(world.held)
	s, _ = w.serves(world, "toy:**")
	if got := w.call(s, "run", `{"task":"`+id+`"}`); !strings.Contains(got.Text, plan+".2") || world.done() != "a2=a" {
		t.Errorf("the next server answers %s after %q", got.Text, world.done())
	}
	if got := w.call(s, "run", `{"plan":"`+plan+`.2"}`); got.Text != `"hello"` || world.done() != "a2=a log=a" {
		t.Errorf("what follows gives %s after %q", got.Text, world.done())
	}
}

// sections is a tool whose plan has two of them, of which the second one reads first.
const sections = `{"name":"sections","code":"k => let p = !toy.put({key: k ++ \"2\", value: k}) in if p == null then let v = !toy.get(k) in let q = !toy.put({key: \"log\", value: k}) in v else null","capabilities":["toy:**"]}`

// A runCount observes how many runs are under way at once, and how many ended by a defect, and takes half a second to hear of
// the end of one.
type runCount struct{ now, most, wrong int }

func (o *runCount) Run(ctx context.Context, _, _ string, _ int) (context.Context, func(uint64, *fault.Fault)) {
	o.now++
	o.most = max(o.most, o.now)
	return ctx, func(_ uint64, f *fault.Fault) {
		time.Sleep(time.Second / 2)
		o.now--
		if f != nil && f.Kind == fault.Internal {
			o.wrong++
		}
	}
}

// A slowWorld is one of notes of which each takes its time.
type slowWorld struct {
	*noteWorld
	takes time.Duration
}

func (w *slowWorld) Perform(ctx context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
	time.Sleep(w.takes)
	return w.noteWorld.Perform(ctx, a)
}

// TestSectionsOfACall: sections that are done without asking don't hold what those before them held, and together have the
// time of one run.
func TestSectionsOfACall(t *testing.T) {
	for name, c := range map[string]struct {
		takes time.Duration
		puts  int
	}{"it has the time": {time.Second / 2, 30}, "it is too slow": {3080 * time.Millisecond, 15}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				known, err := caps.NewKinds(toy)
				must.NoError(t, err)
				s, world := newNoteWorld(t, false)
				r, err := caps.ParseRequests("toy.put:b/**", "", known)
				must.NoError(t, err)
				s.broker.Policy().Confirm([]caps.Requests{r}) // nothing that it does, but it may
				count := &runCount{}
				s = New(Options{Observer: count, Broker: run.New(run.Options{Policy: s.broker.Policy(), Handler: &slowWorld{world, c.takes}, Journal: s.broker.Journal()})})
				_ = s.Call(t.Context(), Call{Tool: "evolve", Arguments: json.RawMessage(`{"name":"many","code":"k => fold((n, i) => if !toy.put({key: k, value: i}) == null then n + 1 else n, 0, range(0, 30))","capabilities":["toy:**"]}`)})
				a := s.Call(t.Context(), Call{Tool: "many", Arguments: json.RawMessage(`{"input":"a"}`)})
				if late := c.puts < 30; late != (a.Fault != nil && a.Fault.Kind == fault.Timeout) || !late && a.First() != "30" || len(world.puts) != c.puts {
					t.Errorf("%d were put: %s", len(world.puts), a.Text)
				}
				if count.most > 3 {
					t.Errorf("%d runs were under way at once", count.most)
				}
				if count.wrong > 0 {
					t.Errorf("%d runs ended by a defect", count.wrong)
				}
			})
		})
	}
}

// TestSectionHeld: while a call plans what follows a section that it did without asking, no other one goes on with that.
func TestSectionHeld(t *testing.T) {
	t.Parallel()
	w := &tasked{t: t, dir: t.TempDir(), confirm: "toy.put:b/**"}
	world := &noteWorld{notes: map[string]string{"z": "hello"}, holds: "get", begun: make(chan struct{}, 10), held: make(chan struct{})}
	s, _ := w.serves(world, "toy:**")
	w.call(s, "evolve", `{"name":"three","code":"k => let p = !toy.put({key: k, value: 1}) in if p == null then let q = !toy.put({key: k, value: 2}) in if q == null then let v = !toy.get(\"z\") in let r = !toy.put({key: k, value: v}) in v else 0 else 0","capabilities":["toy:**"]}`)
	begin := func(arguments string) chan wire.Answer {
		answered := make(chan wire.Answer, 1)
		go func() { answered <- w.call(s, "run", arguments) }()
		return answered
	}
	answered := begin(`{"tool":"three","input":"a"}`)
	wait.For(t, world.begun, "the read of the third section")
	made, _, err := s.broker.Journal().Read(journal.Query{Kind: journal.PlanMade})
	if err != nil || len(made) != 2 {
		t.Fatal(made, err)
	}
	for _, section := range []string{"", ".2"} {
		if a := wait.For(t, begin(`{"plan":"p_`+made[0].Run+section+`","resume":true}`), "the answer to another call"); a.Fault == nil || a.Fault.Kind != fault.Conflict {
			t.Errorf("another call for %q is answered with %s", section, a.Text)
		}
	}
	close(world.held)
	if a := wait.For(t, answered, "the answer"); a.First() != `"hello"` || world.done() != "a=1 a=2 a=hello" {
		t.Errorf("%s after %q", a.Text, world.done())
	}
	s.doing.Range(func(id, _ any) bool {
		t.Errorf("%v is done still", id)
		return true
	})
}

// TestPlanEndedAsksRarely: a task whose plan ended before its server did asks ever more rarely for room that there isn't.
func TestPlanEndedAsksRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newNoteWorld(t, false)
		_, p := callPlan(t.Context(), t, s, "run", `{"tool":"copy","input":"a","plan":true}`)
		call := Call{Tool: "run", Arguments: json.RawMessage(`{"plan":"` + p.Plan + `"}`)}
		if a := s.Call(t.Context(), call); a.Fault != nil {
			t.Fatal(a.Text)
		}
		must.NoFault(t, s.slots.Enter(t.Context(), 0, together))
		task := s.newTask("t-1", call)
		task.again = true
		before := s.Ticket()
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), taskKey{}, task), time.Hour)
		defer cancel()
		a := s.doPlan(ctx, call, p.Plan, false, true, false)
		if asked := s.Ticket() - before; a.Fault == nil || a.Fault.Kind != fault.Cancelled || asked > 200 {
			t.Errorf("%d times it is asked for a turn: %s", asked, a.Text)
		}
	})
}
