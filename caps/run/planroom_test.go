package run_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/flow"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// TestPlansCountInThePool: what a plan holds counts for its run, which has none where there is no room, and is given back.
func TestPlansCountInThePool(t *testing.T) {
	defer core.SetPool(128 << 20)
	w := newWorldOf(t, ledger, run.Options{}, newEntries(1).perform, "led:**")
	made := w.evolve("act", `k => map(i => !led.put({key: "a", value: repeat("x", 10000)}), range(0, 100))`, "led:**")
	for _, c := range []struct {
		pool int64
		want fault.Kind
	}{{32 << 20, ""}, {5 << 20, fault.Overloaded}} {
		core.SetPool(c.pool)
		r := w.broker.Begin(w.tools.Snapshot(), bounds(made, "", `"k"`))
		in, err := core.ParseInput([]byte(`"k"`), core.InputData)
		must.NoError(t, err)
		_, f := r.Plan(t.Context(), time.Now().Add(time.Hour), run.Evaluation{Tool: made, Program: made.Program(), Input: in, Share: &core.Share{}}, 1, nil)
		if got := kindOf(f); got != c.want {
			t.Errorf("a pool of %d bytes: %q, want %q", c.pool, got, c.want)
		}
		if !core.Lend(nil, c.pool) {
			t.Error("what the plan held isn't given back")
		} else {
			core.Lend(nil, -c.pool)
		}
	}
}

func kindOf(f *fault.Fault) fault.Kind {
	if f == nil {
		return ""
	}
	return f.Kind
}

// TestPlansTakeTurns: of many runs that are to be planned some are at once, and the others when those are done.
func TestPlansTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const plans = 9
		now, most := make(chan int, 1), 0
		now <- 0
		count := func(n int) {
			under := <-now + n
			most = max(most, under)
			now <- under
		}
		w := newWorldOf(t, ledger, run.Options{}, func(context.Context, run.Act) (value.Value, int64, *fault.Fault) {
			count(1)
			time.Sleep(time.Second)
			count(-1)
			return value.Str("x"), 3, nil
		}, "led:**")
		made := w.evolve("act", `k => let v = !led.get({key: "a"}) in !led.put({key: "b", value: v})`, "led:**")
		done := make(chan *fault.Fault)
		for range plans {
			go func() {
				in, _ := core.ParseInput([]byte(`"k"`), core.InputData)
				r := w.broker.Begin(w.tools.Snapshot(), bounds(made, "", `"k"`))
				_, f := r.Plan(t.Context(), time.Now().Add(time.Minute), run.Evaluation{Tool: made, Program: made.Program(), Input: in}, 1, nil)
				done <- f
			}()
		}
		for range plans {
			if f := <-done; f != nil {
				t.Error(f)
			}
		}
		if most != 4 {
			t.Errorf("%d were planned at once", most)
		}
	})
}

// TestPlanWithoutTurn: what never has its turn isn't planned, by any rules.
func TestPlanWithoutTurn(t *testing.T) {
	t.Parallel()
	p := newPosted(t, toSend, run.Options{})
	made := p.evolve("act", `k => let v = !toy.get("open/a") in !toy.send({to: v})`, "toy:**")
	begun, held := make(chan struct{}, 4), make(chan struct{})
	w := run.New(run.Options{Policy: p.policy, Journal: p.memory, Flow: p.broker.Flow(), Handler: &performer{perform: func(context.Context, run.Act) (value.Value, int64, *fault.Fault) {
		begun <- struct{}{}
		<-held
		return value.Str("x"), 1, nil
	}}})
	plan := func(ctx context.Context) *fault.Fault {
		in, _ := core.ParseInput([]byte(`"k"`), core.InputData)
		r := w.Begin(p.tools.Snapshot(), bounds(made, "", `"k"`))
		_, f := r.Plan(ctx, time.Now().Add(time.Hour), run.Evaluation{Tool: made, Program: made.Program(), Input: in}, 1, nil)
		return f
	}
	done := make(chan *fault.Fault, 4)
	for range 4 {
		go func() { done <- plan(t.Context()) }()
	}
	for range 4 {
		wait.For(t, begun, "a plan")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if f := plan(ctx); kindOf(f) != fault.Cancelled {
		t.Errorf("cancelled: %v", f)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 0)
	defer cancel()
	if f := plan(ctx); kindOf(f) != fault.Overloaded {
		t.Errorf("without a turn: %v", f)
	}
	close(held)
	for range 4 {
		if f := wait.For(t, done, "the plan"); f != nil {
			t.Error(f)
		}
	}
}

// TestPlanCancelled: a run that is cancelled while it is planned says so and leaves no plan, by any rules.
func TestPlanCancelled(t *testing.T) {
	t.Parallel()
	p := newPosted(t, toSend, run.Options{})
	made := p.evolve("act", `k => let v = !toy.get("open/a") in !toy.send({to: v})`, "toy:**")
	for name, rules := range map[string]*flow.Policy{"without rules": nil, "under rules": p.broker.Flow()} {
		ctx, cancel := context.WithCancel(t.Context())
		w := run.New(run.Options{Policy: p.policy, Journal: p.memory, Flow: rules, Handler: &performer{perform: func(context.Context, run.Act) (value.Value, int64, *fault.Fault) {
			cancel()
			return value.Str("x"), 1, nil
		}}})
		in, _ := core.ParseInput([]byte(`"k"`), core.InputData)
		r := w.Begin(p.tools.Snapshot(), bounds(made, "", `"k"`))
		_, f := r.Plan(ctx, time.Now().Add(time.Hour), run.Evaluation{Tool: made, Program: made.Program(), Input: in}, 1, nil)
		plan, err := run.FindPlan(p.memory, "p_"+r.ID())
		if must.NoError(t, err); kindOf(f) != fault.Cancelled || plan != nil {
			t.Errorf("%s: %v, and the plan on record is %+v", name, f, plan)
		}
	}
}

// TestPlanMadeLate: a plan that was begun, or approved, stays as it is where a node that was silent records another of its name.
func TestPlanMadeLate(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{"begun": `{"plan":"p_r-1","after":0,"owner":"b"}`, "approved": `{"plan":"p_r-1","hash":"` + strings.Repeat("0", 64) + `","yes":true,"by":"terminal"}`} {
		j := journal.NewMemory(1<<20, nil)
		add := func(k journal.Kind, data string) {
			_, err := j.Append(journal.Written, k, "r-1", "", []byte(data))
			must.NoError(t, err)
		}
		made := func(tool string) {
			add(journal.PlanMade, `{"plan":"p_r-1","confirm":true,"content":"{\"id\":\"p_r-1\",\"run\":\"r-1\",\"tool\":\"`+tool+`\",\"hash\":\"`+strings.Repeat("0", 64)+`\"}"}`)
		}
		made("one")
		add(map[string]journal.Kind{"begun": journal.PlanStarted, "approved": journal.PlanAnswered}[name], answer)
		made("late")
		p, err := run.FindPlan(j, "p_r-1")
		must.NoError(t, err)
		if p == nil || p.Tool != "one" || p.Ended || (p.Started == 1) != (name == "begun") || p.Approved != (name == "approved") {
			t.Errorf("%s: %+v", name, p)
		}
	}
}
