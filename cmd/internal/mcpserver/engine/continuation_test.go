package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/eval"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// TestResultOfAnotherNode: a large result of a run is read on at the other nodes of a cluster, by one name, under which
// each of them keeps it once.
func TestResultOfAnotherNode(t *testing.T) {
	t.Parallel()
	one, two := nodes(t)
	a, _ := one.serves(newGate(), "toy:notes/**")
	b, _ := two.serves(newGate(), "toy:notes/**")
	made := one.call(a, "run", `{"code":"range(0, 20000)"}`)
	var shown struct{ URI string }
	if err := json.Unmarshal(made.Structured, &shown); err != nil || shown.URI == "" {
		t.Fatalf("no large result: %s", made.Text)
	}
	id := strings.TrimPrefix(shown.URI, wire.ResultURI(""))
	of, _, _ := strings.Cut(id, ".")
	wait.Until(t, "b has the run", func() bool {
		rec, err := run.ReadRecord(b.broker.Journal(), of)
		return err == nil && rec.End != nil
	})
	late, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range atOnce {
		must.NoFault(t, b.plain.Enter(late, 0, 0))
	}
	must.NoFault(t, b.slots.Enter(late, 0, together))
	whole := made
	if b.Completed(late, &whole); whole.Fault == nil || whole.Fault.Kind != fault.Overloaded {
		t.Errorf("the whole is %.300s", whole.Text)
	}
	if a := b.Call(late, Call{Tool: "run", Arguments: json.RawMessage(fmt.Sprintf(`{"result":%q}`, id))}); a.Fault == nil || a.Fault.Kind != fault.Overloaded {
		t.Errorf("without a slot it gives %.300s", a.Text)
	}
	b.slots.Leave(together)
	for range atOnce {
		b.plain.Leave(0)
		must.NoFault(t, b.redoes.Enter(late, 0, 0))
	}
	if _, _, err := b.answered(late, of); !notNow(err) {
		t.Errorf("out of turn its record is read: %v", err)
	}
	for range atOnce {
		b.redoes.Leave(0)
	}
	read := func(name string) wire.Answer {
		return two.call(b, "run", fmt.Sprintf(`{"result":%q,"from":20000}`, name))
	}
	first, again := read(id), read(id)
	if here := one.call(a, "run", fmt.Sprintf(`{"result":%q,"from":20000}`, id)); first.Fault != nil || first.Text != again.Text || first.Text != here.Text {
		t.Errorf("%s\n%s\n%s", first.Text, again.Text, here.Text)
	}
	for _, other := range []string{of, of + ".", of + ".x1", id + ".x"} {
		if answer := read(other); answer.Fault == nil {
			t.Errorf("%q names the result, too", other)
		}
	}
	if got, err := b.replayed(t.Context(), of); err != nil || !strings.Contains(string(got.Structured), id) {
		t.Errorf("%s, %v", got.Structured, err)
	}
}

// TestSealedOutOfTurn: what a run's end was sealed as is there though many records are read.
func TestSealedOutOfTurn(t *testing.T) {
	t.Parallel()
	w := &tasked{t: t, dir: t.TempDir(), flow: `{"sources":[{"of":"toy.get:mail/**","label":"mail"}],"rules":[{"to":"model","not_from":"mail"}]}`}
	s, _ := w.serves(&noteWorld{notes: map[string]string{"mail/1": "pay me"}}, "toy:**")
	w.call(s, "evolve", `{"name":"gets","code":"k => !toy.get(k)","capabilities":["toy:**"]}`)
	made := w.call(s, "run", `{"tool":"gets","input":"mail/1"}`)
	ended, _, err := s.broker.Journal().Read(journal.Query{Kind: journal.RunEnded})
	if err != nil || len(ended) != 1 || !made.IsSealed {
		t.Fatalf("%d runs ended, %v: %s", len(ended), err, made.Text)
	}
	for range atOnce {
		must.NoFault(t, s.redoes.Enter(t.Context(), 0, 0))
	}
	if a, _, err := s.answered(t.Context(), ended[0].Run); err != nil || a.Text != made.Text {
		t.Errorf("%s, %v\nexpected %s", a.Text, err, made.Text)
	}
}

// TestResultElsewhereSealed: where the rules of now keep a large result that another node showed, it is sealed, once.
func TestResultElsewhereSealed(t *testing.T) {
	t.Parallel()
	one, two := nodes(t)
	rules := `{"sources":[{"of":"toy.get:mail/**","label":"mail"}],"rules":[{"to":"toy.put","not_from":"mail"}`
	one.flow, two.flow = rules+`]}`, rules+`,{"to":"model","not_from":"mail"}]}`
	world := &noteWorld{notes: map[string]string{"mail/1": strings.Repeat("pay me ", 5000)}}
	a, _ := one.serves(world, "toy:**")
	b, _ := two.serves(world, "toy:**")
	one.call(a, "evolve", `{"name":"gets","code":"k => !toy.get(k)","capabilities":["toy:**"]}`)
	var shown struct{ URI string }
	made := one.call(a, "run", `{"tool":"gets","input":"mail/1"}`)
	if err := json.Unmarshal(made.Structured, &shown); err != nil || shown.URI == "" {
		t.Fatalf("no large result: %s", made.Text)
	}
	id := strings.TrimPrefix(shown.URI, wire.ResultURI(""))
	of, _, _ := strings.Cut(id, ".")
	wait.Until(t, "b has the run", func() bool {
		rec, err := run.ReadRecord(b.broker.Journal(), of)
		return err == nil && rec.End != nil
	})
	for range 2 {
		if got := two.call(b, "run", fmt.Sprintf(`{"result":%q}`, id)); !got.IsSealed || strings.Contains(got.Text, "pay me") {
			t.Errorf("it gives %.300s", got.Text)
		}
	}
	if all, _, err := b.broker.Journal().Read(journal.Query{Kind: journal.ResultSealed}); err != nil || len(all) != 1 {
		t.Errorf("it was sealed %d times: %v", len(all), err)
	}
	if _, err := run.ReadRecord(b.broker.Journal(), of); err != nil {
		t.Error(err)
	}
}

// TestRecallNotNow: what a task gave isn't told while its principal has no slot or there is no memory to do its run again,
// and is told later; who gives up waiting for another who asks isn't kept.
func TestRecallNotNow(t *testing.T) {
	w, g := &tasked{t: t, dir: t.TempDir()}, newGate()
	one, stop := w.serves(g, "toy:notes/**")
	w.call(one, "evolve", `{"name":"large","code":"k => let _ = !toy.get(k) in length(map(x => [x, x + 1], range(0, 50000)))","capabilities":["toy:notes/**"]}`)
	id := w.background(one, `{"tool":"large","input":"notes/a","background":true}`)
	close(g.open)
	wait.For(t, one.tasks.find(id).done, "the end of the task")
	stop()
	two, _ := w.serves(g, "toy:notes/**")
	must.NoFault(t, two.slots.Enter(t.Context(), 0, together))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if st, ok := two.TaskState(ctx, id, true); !ok || st.Answer != nil || st.Status != taskWorking {
		t.Errorf("without a slot: %+v", st)
	}
	answers := make(chan TaskState, 2)
	ask := func() {
		st, _ := two.TaskState(t.Context(), id, true)
		answers <- st
	}
	for range 2 {
		go ask()
	}
	for range 2 {
		if st := wait.For(t, answers, "what is told while there is no slot"); st.Answer != nil || st.Status != taskWorking {
			t.Errorf("while there is no slot: %+v", st)
		}
	}
	go ask()
	wait.Until(t, "somebody asks", func() bool {
		two.tasks.mu.Lock()
		defer two.tasks.mu.Unlock()
		return len(two.tasks.recalls) > 0
	})
	if st, ok := two.TaskState(ctx, id, true); !ok || st.Answer != nil || st.Status != taskWorking {
		t.Errorf("who doesn't wait gets %+v", st)
	}
	core.SetPool(eval.PoolHeld() + 1<<20)
	two.slots.Leave(together)
	st := wait.For(t, answers, "what is told without memory")
	core.SetPool(eval.DefaultPool)
	if st.Answer != nil || st.Status != taskWorking {
		t.Errorf("without memory: %+v", st)
	}
	if st, ok := two.TaskState(t.Context(), id, true); !ok || st.Answer == nil || st.Answer.Text != "50000" {
		t.Errorf("then: %+v", st)
	}
}
