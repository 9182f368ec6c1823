package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/elicit"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// ofMail is rules about what is in the mail.
const ofMail = `{"sources":[{"of":"toy.get:mail/**","label":"mail"}],"rules":[{"to":"toy.put","not_from":"mail"}]}`

// keepsMail has it not be shown to the model.
const keepsMail = `{"sources":[{"of":"toy.get:mail/**","label":"mail"}],"rules":[{"to":"model","not_from":"mail"}]}`

// TestFlowAbsent: an answer of the journal tells of what isn't in it, too.
func TestFlowAbsent(t *testing.T) {
	t.Parallel()
	w := &tasked{t: t, dir: t.TempDir(), flow: ofMail}
	s, _ := w.serves(&noteWorld{notes: map[string]string{"mail/1": "hi"}}, "toy:**")
	w.call(s, "evolve", `{"name":"maybe","code":"k => let m = !toy.get(k) in let _ = if m == \"no\" then try(!toy.put({key: k, value: 1})) else 0 in 0","capabilities":["toy:**"]}`)
	if a := w.call(s, "run", `{"tool":"maybe","input":"mail/1"}`); a.Text != "0" || len(s.broker.MadeUnder()) > 0 {
		t.Fatalf("it gives %s, and the model was shown %q", a.Text, s.broker.MadeUnder())
	}
	begun, _, err := s.broker.Journal().Read(journal.Query{Kind: journal.RunStarted})
	must.NoError(t, err)
	for query, tells := range map[string]bool{
		`{"run":"` + begun[0].Run + `","kind":"effect.denied"}`: true, `{"kind":"effect.denied"}`: true, `{"tool":"maybe","kind":"effect.denied"}`: true, `{"kind":"plan"}`: true,
		`{"run":"none"}`: false, `{"kind":"tool"}`: false, `{"tool":"maybe"}`: false,
	} {
		if a := w.call(s, "journal", query); a.Fault != nil || len(s.broker.MadeUnder()) > 0 != tells {
			t.Errorf("%s: %s; the model was shown %q", query, a.Text, s.broker.MadeUnder())
		}
		must.NoError(t, s.broker.Session().Clear(nil))
	}
}

// talkative is a world whose operations say what they read.
type talkative struct {
	noteWorld
	before func() // is called before it says anything
}

func (h *talkative) Perform(ctx context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
	v, n, f := h.noteWorld.Perform(ctx, a)
	if h.before != nil {
		h.before()
	}
	if a.Progress != nil {
		text, _ := journal.AppendValue(nil, v, 100)
		a.Progress(string(text))
	}
	return v, n, f
}

// TestFlowProgress: what operations say of how they get on comes before the session has the label of what they give, so it
// is told only where that has none; and of a task that isn't done it isn't told whether it waits.
func TestFlowProgress(t *testing.T) {
	t.Parallel()
	w := &tasked{t: t, dir: t.TempDir(), flow: ofMail}
	s, _ := w.serves(&talkative{noteWorld: noteWorld{notes: map[string]string{"mail/1": "hi", "open/1": "ho"}}}, "toy:**")
	for tool, held := range map[string]string{"mail": "toy:**", "open": "toy:open/**"} {
		w.call(s, "evolve", `{"name":"`+tool+`","code":"k => let _ = !toy.get(k) in 0","capabilities":["`+held+`"]}`)
		var said []string
		a := s.Call(t.Context(), Call{Tool: "run", Arguments: json.RawMessage(`{"tool":"` + tool + `","input":"` + tool + `/1"}`), Progress: func(p Progress) {
			if p.Message != "" {
				said = append(said, p.Message)
			}
		}})
		if a.Text != "0" || (strings.Join(said, " ") == `"ho"`) != (tool == "open") || tool == "mail" && said != nil {
			t.Errorf("%s gives %s and says %q", tool, a.Text, said)
		}
	}
	waits, works := s.told(&TaskState{ID: "x", Status: taskAsking, Message: "waits"}), s.told(&TaskState{ID: "x", Status: taskWorking})
	if waits.Text != works.Text || string(waits.Structured) != string(works.Structured) {
		t.Errorf("of one that waits it is told\n%s\nand else\n%s", waits.Structured, works.Structured)
	}
}

// TestFlowTaintedProgress: what operations say isn't told from when any store took a label on, also while a run is on its way.
func TestFlowTaintedProgress(t *testing.T) {
	t.Parallel()
	w := &tasked{t: t, dir: t.TempDir(), flow: `{"sources":[{"of":"toy.get:mail/**","label":"mail"}],"rules":[{"to":"toy.put:open/**","not_from":"mail","else":"taint"}]}`}
	h := &talkative{noteWorld: noteWorld{notes: map[string]string{"open/1": "ho"}}}
	s, _ := w.serves(h, "toy:**")
	w.call(s, "evolve", `{"name":"open","code":"k => let _ = !toy.get(k) in 0","capabilities":["toy:open/**"]}`)
	for _, when := range []string{"", "while it runs", "before"} {
		if h.before = nil; when == "while it runs" {
			h.before = func() {
				_, err := s.broker.Session().Taint("toy:open/**", 1)
				must.NoError(t, err)
			}
		}
		var said []string
		s.Call(t.Context(), Call{Tool: "run", Arguments: json.RawMessage(`{"tool":"open","input":"open/1"}`), Progress: func(p Progress) {
			if p.Message != "" {
				said = append(said, p.Message)
			}
		}})
		if (strings.Join(said, " ") == `"ho"`) != (when == "") || when != "" && said != nil {
			t.Errorf("a store took a label on %s: it says %q", when, said)
		}
	}
}

// An ending is a world in which the run ends from outside while it reads what is open.
type ending struct {
	noteWorld
	end func(ctx context.Context)
}

func (h *ending) Perform(ctx context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
	v, n, f := h.noteWorld.Perform(ctx, a)
	if text, ok := v.(value.Str); ok && text == "end" {
		h.end(ctx)
	}
	return v, n, f
}

// TestFlowEnds: that a run whose result may be sealed was cancelled, or took too long, depends on what it had read, and is
// sealed like a result; of one that read nothing like that it is told.
func TestFlowEnds(t *testing.T) {
	t.Parallel()
	sealed := regexp.MustCompile(`s_[a-z0-9]+`)
	for _, kind := range []fault.Kind{fault.Cancelled, fault.Timeout} {
		w := &tasked{t: t, dir: t.TempDir(), flow: keepsMail}
		h := &ending{noteWorld: noteWorld{notes: map[string]string{"mail/1": "go on", "mail/2": "stop", "open/end": "end"}}}
		s, _ := w.serves(h, "toy:**")
		w.call(s, "evolve", `{"name":"maybe","code":"k => let m = !toy.get(k) in if m == \"go on\" then 0 else !toy.get(\"open/end\")","capabilities":["toy:**"]}`)
		told := map[string]string{}
		for _, key := range []string{"mail/1", "mail/2", "open/end"} {
			ctx, cancel := context.WithCancel(elicit.With(t.Context(), new(elicit.Elicitor)))
			h.end = func(act context.Context) {
				if kind == fault.Timeout {
					elicit.Of(act).Waited.Add(-int64(time.Hour)) // its time is over then
					return
				}
				cancel()
				<-act.Done()
			}
			a := s.Call(ctx, Call{Tool: "run", Arguments: json.RawMessage(`{"tool":"maybe","input":"` + key + `"}`)})
			cancel()
			told[key] = sealed.ReplaceAllString(a.Text+string(a.Structured), "ID")
		}
		if told["mail/1"] != told["mail/2"] || !strings.Contains(told["mail/1"], "it is sealed as ID") {
			t.Errorf("%s: of one that comes to its end it is told\n%s\nand of the other\n%s", kind, told["mail/1"], told["mail/2"])
		}
		if !strings.Contains(told["open/end"], string(kind)) {
			t.Errorf("%s: of one that read nothing of it, it is told %s", kind, told["open/end"])
		}
		ends, _, err := s.broker.Journal().Read(journal.Query{Kind: journal.RunEnded})
		if must.NoError(t, err); len(ends) != 3 || !strings.Contains(string(ends[1].Data), `"kind":"`+string(kind)+`"`) {
			t.Errorf("%s: it isn't what became of it: %s", kind, ends[1].Data)
		}
	}
}

// TestFlowRecall: why a task failed that did a plan tells of the plan's run, also where that can't be done again.
func TestFlowRecall(t *testing.T) {
	t.Parallel()
	w := &tasked{t: t, dir: t.TempDir(), flow: ofMail}
	s, _ := w.serves(&noteWorld{notes: map[string]string{}}, "toy:**")
	_, err := s.broker.Journal().Append(journal.Written, journal.RunEnded, "r-1", "", []byte(`{"steps":1,"entered":["mail"]}`))
	must.NoError(t, err)
	must.NoError(t, s.broker.CreateTask(&run.Task{ID: "t-1", Call: run.Call{Tool: "run", Arguments: []byte(`{"plan":"p_r-1"}`)}}))
	must.NoError(t, s.broker.EndTask("t-1", "r-1", 0, fault.New(fault.Denied, "it is in the mail")))
	if a := w.call(s, "run", `{"task":"t-1"}`); !strings.Contains(a.Text, "it is in the mail") || len(s.broker.MadeUnder()) != 1 {
		t.Errorf("it gives %s, and the model was shown %q", a.Text, s.broker.MadeUnder())
	}
}

// namings are the names of plans and of what is sealed, and the times, in the order in which they are told.
type namings map[string]string

var named = regexp.MustCompile(`[ps]_[a-z0-9-]+|20\d\d-[-0-9TZ:]+`)

// of is all that an answer tells but these.
func (n namings) of(a wire.Answer) string {
	return named.ReplaceAllStringFunc(a.Text+string(a.Structured)+strings.Join(a.More, " "), func(name string) string {
		if n[name] == "" {
			n[name] = fmt.Sprint("ID", len(n))
		}
		return n[name]
	})
}

// TestFlowPlansCourse: whether a plan waits for a person, and how many sections it has, tells of what was read: that counts
// as shown, and is the same where it may not be.
func TestFlowPlansCourse(t *testing.T) {
	t.Parallel()
	const maybe = `{"name":"maybe","code":"k => if !toy.get(k) == \"hi\" then !toy.put({key: \"mail/2\", value: 1}) else 0","capabilities":["toy:**"]}`
	const twice = `{"name":"twice","code":"k => let m = !toy.get(k) in let p = !toy.put({key: \"mail/2\", value: 1}) in if m == \"hi\" then (if p == null then !toy.put({key: \"mail/3\", value: 2}) else 0) else 0","capabilities":["toy:**"]}`
	w := &tasked{t: t, dir: t.TempDir(), confirm: "toy.put:**", flow: ofMail}
	s, _ := w.serves(&noteWorld{notes: map[string]string{"mail/1": "hi"}}, "toy:**")
	w.call(s, "evolve", strings.Replace(maybe, "mail/2", "log", 1))
	if a := w.call(s, "run", `{"tool":"maybe","input":"open/1"}`); a.Text != "0" || len(s.broker.MadeUnder()) > 0 {
		t.Errorf("it gives %s, and the model was shown %q", a.Text, s.broker.MadeUnder())
	}
	w.call(s, "evolve", `{"name":"gets","code":"k => let _ = !toy.get(k) in 0","capabilities":["toy:**"]}`) // it holds nothing to be approved
	if a := w.call(s, "run", `{"tool":"gets","input":"mail/1"}`); a.Text != "0" || len(s.broker.MadeUnder()) > 0 {
		t.Errorf("it gives %s, and the model was shown %q", a.Text, s.broker.MadeUnder())
	}
	if a := w.call(s, "run", `{"tool":"maybe","input":"mail/1"}`); len(s.broker.MadeUnder()) != 1 {
		t.Errorf("it gives %s, and the model was shown %q", a.Text, s.broker.MadeUnder())
	}
	said, put := [2][]string{}, [2]string{}
	for i, text := range []string{"hi", "ho"} {
		for _, code := range []string{maybe, twice} {
			w := &tasked{t: t, dir: t.TempDir(), confirm: "toy.put:**", flow: keepsMail}
			world := &noteWorld{notes: map[string]string{"mail/1": text}}
			s, _ := w.serves(world, "toy:**")
			w.call(s, "evolve", code)
			names := namings{}
			tell := func(call string) string {
				a := w.call(s, "run", call)
				said[i] = append(said[i], names.of(a))
				return regexp.MustCompile(`p_[a-z0-9-]+`).FindString(a.Text)
			}
			plan := tell(code[:0] + `{"tool":"` + map[string]string{maybe: "maybe", twice: "twice"}[code] + `","input":"mail/1"}`)
			tell(`{"plan":"` + plan + `"}`)
			tell(`{"plan":"` + plan + `.2"}`)
			for range 3 {
				if p, err := run.FindPlan(s.broker.Journal(), plan); err != nil || p == nil {
					t.Fatalf("there is no plan %q: %v", plan, err)
				} else if !p.Approved {
					must.NoError(t, run.AnswerPlan(s.broker.Journal(), p.Plan, true, "terminal"))
				} else if next, err := run.FindPlan(s.broker.Journal(), plan+".2"); err == nil && next != nil && !next.Approved {
					must.NoError(t, run.AnswerPlan(s.broker.Journal(), next.Plan, true, "terminal"))
				}
				tell(`{"plan":"` + plan + `"}`)
			}
			put[i] += world.done() + ";"
			if shown := s.broker.MadeUnder(); len(shown) > 0 {
				t.Errorf("the model was shown %q", shown)
			}
		}
	}
	for k := range said[0] {
		if said[0][k] != said[1][k] {
			t.Errorf("call %d:\n%s\n%s", k, said[0][k], said[1][k])
		}
	}
	if put[0] != "mail/2=1;mail/2=1 mail/3=2;" || put[1] != ";mail/2=1;" {
		t.Errorf("done: %q", put)
	}
}

// goes is a tool whose plan has a second section where what it reads is "hi".
const goes = `{"name":"goes","code":"k => let m = !toy.get(k) in let p = !toy.put({key: \"DIR/a\", value: m}) in if m == \"hi\" then (if p == null then (let _ = !toy.put({key: \"DIR/b\", value: \"end\"}) in let v = !toy.get(\"DIR/b\") in let _ = !toy.put({key: \"DIR/c\", value: v}) in 0) else 0) else 0","capabilities":["toy:**"]}`

// TestFlowSectionGoesOn: a later section of a plan that was begun, and whose server ended, goes on by the plan's name. Where
// it may not be told that there is one, the same is told as where there is none.
func TestFlowSectionGoesOn(t *testing.T) {
	t.Parallel()
	said := map[string][]string{}
	for _, c := range []struct{ dir, text, holds, then, want string }{
		{"open", "hi", "", "", "a=hi b=end c=end"}, {"mail", "hi", "", "", "a=hi b=end c=end"}, {"mail", "hi", "put", "", "a=hi b=end"}, {"mail", "ho", "", "", "a=ho"},
		{"mail", "hi", "", "retire", "a=hi b=end"}, {"mail", "ho", "", "retire", "a=ho"}, {"mail", "hi", "", "leave", "a=hi b=end"}, {"mail", "ho", "", "leave", "a=ho"},
	} {
		w := &tasked{t: t, dir: t.TempDir(), flow: keepsMail, confirm: "toy.put:z/**"} // nothing that it does, but it may
		begun, held := make(chan struct{}, 10), make(chan struct{})
		h := &ending{noteWorld: noteWorld{notes: map[string]string{c.dir + "/1": c.text}, begun: begun, held: held}, end: func(context.Context) { begun <- struct{}{}; <-held }}
		s, stop := w.serves(h, "toy:**")
		w.call(s, "evolve", strings.ReplaceAll(goes, "DIR", c.dir))
		approve := func(plan string) {
			if p, err := run.FindPlan(s.broker.Journal(), plan); err == nil && p != nil && p.Confirm {
				must.NoError(t, run.AnswerPlan(s.broker.Journal(), p.Plan, true, "terminal"))
			}
		}
		call := `{"tool":"goes","input":"` + c.dir + `/1"}`
		if c.dir == "mail" { // where a person is always asked
			plan := regexp.MustCompile(`p_[a-z0-9-]+`).FindString(w.call(s, "run", call).Text)
			approve(plan)
			call = `{"plan":"` + plan + `"}`
			w.call(s, "run", call)
			approve(plan + ".2")
		}
		h.holds = c.holds
		answered := make(chan wire.Answer, 1)
		go func() { answered <- w.call(s, "run", call) }()
		if c.text == "hi" {
			wait.For(t, begun, "the middle of the second section")
			stop() // nothing of what follows is on record
		}
		close(held)
		wait.For(t, answered, "the end of the call")
		stop()
		h.holds = ""
		s, _ = w.serves(h, "toy:**")
		made, _, err := s.broker.Journal().Read(journal.Query{Kind: journal.PlanMade})
		must.NoError(t, err)
		plan, names := "p_"+made[0].Run, namings{}
		tell := func(a wire.Answer) {
			said[c.dir+c.text+c.holds+c.then] = append(said[c.dir+c.text+c.holds+c.then], names.of(a))
		}
		switch c.then {
		case "retire":
			w.call(s, "retire", `{"name":"goes"}`)
		case "leave": // the call that goes on
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			tell(s.Call(ctx, Call{Tool: "run", Arguments: json.RawMessage(`{"plan":"` + plan + `","resume":true}`)}))
		}
		for _, resume := range []string{"", `,"resume":true`, `,"resume":true`} {
			tell(w.call(s, "run", `{"plan":"`+plan+`"`+resume+`}`))
		}
		if got := strings.ReplaceAll(h.done(), c.dir+"/", ""); got != c.want {
			t.Errorf("%+v: %q was put; it is told %q", c, got, said[c.dir+c.text+c.holds+c.then])
		}
	}
	if open := said["openhi"]; !strings.Contains(open[0], "was begun before and didn't end") || !strings.HasPrefix(open[1], "0{") || !strings.Contains(open[2], "has ended") {
		t.Errorf("of one that read nothing of the mail it is told %q", open)
	}
	for with, without := range map[string]string{"mailhi": "mailho", "mailhiput": "mailho", "mailhiretire": "mailhoretire", "mailhileave": "mailholeave"} {
		for i, answer := range said[without] {
			if said[with][i] != answer {
				t.Errorf("%s, call %d: with a second section it is told\n%s\nand without\n%s", with, i, said[with][i], answer)
			}
		}
	}
}

// TestFlowSectionWaits: a second section that another call is about to do isn't told of where it may not be.
func TestFlowSectionWaits(t *testing.T) {
	t.Parallel()
	said := map[string]string{}
	for _, text := range []string{"hi", "ho"} {
		w := &tasked{t: t, dir: t.TempDir(), flow: keepsMail, confirm: "toy.put:z/**"}
		s, stop := w.serves(&noteWorld{notes: map[string]string{"mail/1": text}}, "toy:**")
		w.call(s, "evolve", strings.ReplaceAll(goes, "DIR", "mail"))
		plan := regexp.MustCompile(`p_[a-z0-9-]+`).FindString(w.call(s, "run", `{"tool":"goes","input":"mail/1"}`).Text)
		for _, id := range []string{plan, plan + ".2"} {
			if p, err := run.FindPlan(s.broker.Journal(), id); err == nil && p != nil {
				must.NoError(t, run.AnswerPlan(s.broker.Journal(), p.Plan, true, "terminal"))
			}
			if id == plan {
				w.call(s, "run", `{"plan":"`+plan+`"}`)
			}
		}
		s.doing.Store(plan+".2", true)
		said[text] = namings{}.of(w.call(s, "run", `{"plan":"`+plan+`"}`))
		stop()
	}
	if said["hi"] != said["ho"] || said["hi"] == "" {
		t.Errorf("with a second section it is told\n%s\nand without\n%s", said["hi"], said["ho"])
	}
}

// TestFlowPlanWithdrawn: that another server withdrew a plan, having read something else, isn't told where it may not be shown.
func TestFlowPlanWithdrawn(t *testing.T) {
	t.Parallel()
	w := &tasked{t: t, dir: t.TempDir(), flow: keepsMail}
	world := &noteWorld{notes: map[string]string{"mail/1": "hi"}, begun: make(chan struct{}, 10), held: make(chan struct{})}
	s, _ := w.serves(world, "toy:**")
	w.call(s, "evolve", `{"name":"notes","code":"k => !toy.put({key: \"log\", value: !toy.get(k)})","capabilities":["toy:**"]}`)
	id := regexp.MustCompile(`p_[a-z0-9-]+`).FindString(w.call(s, "run", `{"tool":"notes","input":"mail/1","plan":true}`).Text)
	world.holds = "get"
	answered := make(chan wire.Answer, 1)
	go func() { answered <- w.call(s, "run", `{"plan":"`+id+`"}`) }()
	wait.For(t, world.begun, "the read")
	p, err := run.FindPlan(s.broker.Journal(), id)
	must.NoError(t, err)
	s.withdrawPlan(p.Plan)
	close(world.held)
	if a := wait.For(t, answered, "the answer"); !a.IsSealed || a.Fault != nil || strings.Contains(a.Text, "any more") || world.done() != "" {
		t.Errorf("it gives %s, and did %q", a.Text, world.done())
	}
}

// TestFlowPlanCompared: whether a plan's steps are the same now isn't told of one that reads, only now, what may not be shown.
func TestFlowPlanCompared(t *testing.T) {
	t.Parallel()
	said := map[string]string{}
	for _, text := range []string{"hi", "ho"} {
		w := &tasked{t: t, dir: t.TempDir(), flow: keepsMail}
		world := &noteWorld{notes: map[string]string{"mail/1": text, "open/switch": "off"}}
		s, _ := w.serves(world, "toy:**")
		w.call(s, "evolve", `{"name":"guess","code":"k => let m = if !toy.get(\"open/switch\") == \"on\" then (if !toy.get(k) == \"hi\" then 1 else raise(\"no\")) else 1 in !toy.put({key: \"mail/2\", value: m})","capabilities":["toy:**"]}`)
		names := namings{}
		a := w.call(s, "run", `{"tool":"guess","input":"mail/1","plan":true}`)
		said[text] = names.of(a)
		world.notes["open/switch"] = "on"
		said[text] += names.of(w.call(s, "run", `{"plan":"`+regexp.MustCompile(`p_[a-z0-9-]+`).FindString(a.Text)+`"}`)) + world.done()
	}
	if said["hi"] != said["ho"] || !strings.Contains(said["hi"], "deviated") {
		t.Errorf("where it is \"hi\" it is told\n%s\nand else\n%s", said["hi"], said["ho"])
	}
}

// TestFlowPlanUnplanned: that a run can't be planned is told as a plan where it depends on what may not be shown.
func TestFlowPlanUnplanned(t *testing.T) {
	t.Parallel()
	said := map[string]string{}
	for _, text := range []string{"hi", "ho"} {
		w := &tasked{t: t, dir: t.TempDir(), flow: keepsMail}
		s, _ := w.serves(&noteWorld{notes: map[string]string{"mail/1": text}}, "toy:**")
		w.call(s, "evolve", `{"name":"long","code":"k => let n = if !toy.get(k) == \"hi\" then 23 else 1 in !toy.put({key: \"mail/2\", value: fold(s => fst(s) ++ fst(s), \"x\", range(0, n))})","capabilities":["toy:**"]}`)
		names := namings{}
		a := w.call(s, "run", `{"tool":"long","input":"mail/1","plan":true}`)
		said[text] = names.of(a) + names.of(w.call(s, "run", `{"plan":"`+regexp.MustCompile(`p_[a-z0-9-]+`).FindString(a.Text)+`"}`))
	}
	if said["hi"] != said["ho"] || !strings.Contains(said["hi"], "waiting") {
		t.Errorf("of one that can't be planned it is told\n%s\nand of the other\n%s", said["hi"], said["ho"])
	}
}

// TestFlowPlanLate: a plan isn't withdrawn where the time was too short to compare it with what it would be now.
func TestFlowPlanLate(t *testing.T) {
	t.Parallel()
	for rules, sealed := range map[string]bool{ofMail: false, keepsMail: true} {
		w := &tasked{t: t, dir: t.TempDir(), flow: rules}
		world := &noteWorld{notes: map[string]string{"mail/1": "hi"}, begun: make(chan struct{}, 10), held: make(chan struct{})}
		s, _ := w.serves(world, "toy:**")
		w.call(s, "evolve", `{"name":"notes","code":"k => let _ = !toy.get(k) in !toy.put({key: \"mail/2\", value: 1})","capabilities":["toy:**"]}`)
		id := regexp.MustCompile(`p_[a-z0-9-]+`).FindString(w.call(s, "run", `{"tool":"notes","input":"mail/1","plan":true}`).Text)
		world.holds = "get"
		answered := make(chan wire.Answer, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			answered <- s.Call(ctx, Call{Tool: "run", Arguments: json.RawMessage(`{"plan":"` + id + `"}`)})
		}()
		wait.For(t, world.begun, "the read")
		cancel()
		a := wait.For(t, answered, "the answer")
		now, err := run.FindPlan(s.broker.Journal(), id)
		must.NoError(t, err)
		if a.IsSealed != sealed || !sealed && (a.Fault == nil || a.Fault.Kind != fault.Timeout) || now.Refused {
			t.Errorf("it gives %s, and the plan is refused: %v", a.Text, now.Refused)
		}
		close(world.held)
		if a := w.call(s, "run", `{"plan":"`+id+`"}`); world.done() != "mail/2=1" {
			t.Errorf("later it gives %s, and did %q", a.Text, world.done())
		}
	}
}
