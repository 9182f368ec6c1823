package run_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
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

// post is notes, and a way out.
var post = func() *caps.Manifest {
	m := *toy
	m.Verbs = append(append([]caps.Verb{}, toy.Verbs...), caps.Verb{Name: "send", Flags: caps.Flags{OpenWorld: true}}, caps.Verb{Name: "move"})
	m.Operations = append(append([]caps.Operation{}, toy.Operations...), caps.Operation{Name: "toy.send", Verb: "send", Params: []caps.Param{
		{Name: "to", Type: "string"}, {Name: "text", Type: "any", Optional: true},
	}}, caps.Operation{Name: "toy.move", Verb: "move", Params: []caps.Param{
		{Name: "from", Type: "string", Designates: true}, {Name: "to", Type: "string", Designates: true},
	}})
	return &m
}()

// A posted world has notes, of which those below secret have that label, and remembers what was sent.
type posted struct {
	*world
	mu   sync.Mutex
	sent []string
	kept map[string]value.Value
	// needed is called where "need" is read.
	needed func()
	// moving is called before something is moved.
	moving func()
}

func newPosted(t *testing.T, config string, o run.Options) *posted {
	t.Helper()
	p := &posted{kept: map[string]value.Value{"secret/a": value.Str("S"), "open/a": value.Str("O")}}
	kinds, err := caps.NewKinds(post)
	must.NoError(t, err)
	c, err := flow.ParseConfig([]byte(config))
	must.NoError(t, err)
	if o.Flow, err = flow.Compile(c, kinds, nil); err != nil {
		t.Fatal(err)
	}
	p.world = newWorldOf(t, post, o, func(_ context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
		p.mu.Lock()
		defer p.mu.Unlock()
		key := string(asText(field(a.Args, "key")))
		switch a.Verb {
		case "put":
			p.kept[key] = field(a.Args, "value")
		case "move":
			if p.moving != nil {
				p.moving()
			}
			p.kept[string(asText(field(a.Args, "to")))] = p.kept[string(asText(field(a.Args, "from")))]
		case "send":
			if text := field(a.Args, "text"); asText(field(a.Args, "to")) == "nobody" {
				return nil, 0, &fault.Fault{Kind: fault.EffectFailed, Message: "there is nobody", Raised: text}
			}
			p.sent = append(p.sent, fmt.Sprint(asText(field(a.Args, "to")), ":", asText(field(a.Args, "text"))))
		default:
			if v, ok := p.kept[key]; ok {
				if strings.HasSuffix(key, "need") {
					p.needed()
				}
				return v, 10, nil
			}
			return nil, 0, fault.New(fault.EffectFailed, "there is no such note")
		}
		return value.Unit{}, 1, nil
	}, "toy:**")
	return p
}

func asText(v value.Value) value.Str {
	s, _ := value.Force(v).(value.Str)
	return s
}

const toSend = `{"sources":[{"of":"toy.get:secret/**","label":"secret"}],"rules":[{"to":"toy.send","not_from":"secret"},{"to":"toy.send","argument":"to","not_from":"secret"}]}`

// askText is toSend where a person is asked about the text.
var askText = strings.Replace(toSend, `"rules":[{"to":"toy.send","not_from":"secret"}`, `"rules":[{"to":"toy.send","argument":"text","not_from":"secret","else":"ask"}`, 1)

// taintOpen is toSend where what is open may become secret.
var taintOpen = strings.Replace(toSend, `"rules":[`, `"rules":[{"to":"toy.put:open/**","not_from":"secret","else":"taint"},`, 1)

func sayYes(context.Context, run.FlowQuestion) (bool, error) { return true, nil }

// TestFlowDecides: what a request depends on is found out exactly, and what breaks a rule doesn't reach
// the plugin.
func TestFlowDecides(t *testing.T) {
	t.Parallel()
	any := toSend
	data := `{"sources":[{"of":"toy.get:secret/**","label":"secret"}],"rules":[{"to":"toy.send","argument":"to","not_from":"secret"}]}`
	both := `{"sources":[{"of":"toy.get:secret/**","label":"secret"},{"of":"toy.get:open/**","label":"open"}],"rules":[{"to":"toy.send","all_of":["secret","open"]}]}`
	for name, test := range map[string]struct {
		config, code string
		denied       bool
		follows      int64
	}{
		"nothing labelled came in":            {any, `x => !toy.send({to: !toy.get("open/a")})`, false, 0},
		"the argument":                        {any, `x => !toy.send({to: "a", text: !toy.get("secret/a")})`, true, 1},
		"another argument":                    {data, `x => !toy.send({to: "a", text: !toy.get("secret/a")})`, false, 1},
		"a part that isn't of it":             {any, `x => let p = {s: !toy.get("secret/a"), o: !toy.get("open/a")} in !toy.send({to: p.o})`, false, 1},
		"a part that is":                      {data, `x => let p = {s: !toy.get("secret/a"), o: "b"} in !toy.send({to: p.s})`, true, 1},
		"a condition, where only data counts": {data, `x => if !toy.get("secret/a") == "S" then !toy.send({to: "a"}) else null`, false, 1},
		"a condition":                         {any, `x => if !toy.get("secret/a") == "S" then !toy.send({to: "a"}) else null`, true, 1},
		"a request that failed for it":        {any, `x => let _ = try(!toy.get(!toy.get("secret/a"))) in !toy.send({to: "a"})`, false, 1},
		"whether it failed":                   {any, `x => match try(!toy.get("secret/none")) { {ok: _} => null; _ => !toy.send({to: "a"}) }`, true, 1},
		"two of two":                          {both, `x => !toy.send({to: !toy.get("secret/a") ++ !toy.get("open/a")})`, true, 1},
		"one of two":                          {both, `x => let _ = !toy.get("open/a") in !toy.send({to: !toy.get("secret/a")})`, false, 1},
		"in par":                              {any, `x => snd((par(!toy.get("secret/a"), !toy.send({to: "a"})), 1))`, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPosted(t, test.config, run.Options{})
			p.evolve("it", test.code, "toy:**")
			got, f := p.run(context.Background(), "it", "null")
			if denied := f != nil && f.Kind == fault.Denied; denied != test.denied || !denied && f != nil {
				t.Errorf("it gives %s, %v", got, f)
			}
			if test.denied && len(p.sent) > 0 {
				t.Errorf("what was denied was sent: %v", p.sent)
			}
			if n := p.broker.Follows(); n != test.follows {
				t.Errorf("it was followed %d times, not %d", n, test.follows)
			}
			if err := p.memory.Verify(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestFlowRoom: what is kept of a run's outcomes lies in the server's pool: where other runs need that it is dropped, and
// then all that came in counts, which the denial says. Not parallel: the pool is the process's.
func TestFlowRoom(t *testing.T) {
	for _, needed := range []bool{false, true} {
		stake, lent := &core.Stake{Share: &core.Share{}, Most: 1 << 30}, int64(0)
		p := newPosted(t, toSend, run.Options{})
		p.share = &core.Share{}
		p.kept["large"], p.kept["need"] = value.Str(strings.Repeat("x", 1<<20)), value.Unit{}
		p.needed = func() {
			for needed && core.Lend(stake, 1<<20) {
				lent += 1 << 20
			}
			core.Lend(stake, -lent/4) // for the run itself
			lent -= lent / 4
		}
		p.evolve("it", `x => let _ = [!toy.get("large"), !toy.get("secret/a"), !toy.get("need")] in !toy.send({to: "a"})`, "toy:**")
		_, f := p.run(context.Background(), "it", "null")
		if denied := f != nil && f.Kind == fault.Denied && strings.Contains(f.Message, "others needed its memory"); denied != needed || !denied && f != nil {
			t.Errorf("with others that need the memory: %v; it gives %v", needed, f)
		}
		core.Lend(stake, -lent)
	}
}

// TestSealedBefore: what was sealed for a source that the policy doesn't name any more stays sealed.
func TestSealedBefore(t *testing.T) {
	t.Parallel()
	p := newPosted(t, toSend, run.Options{}).broker.Flow()
	for name, want := range map[string]flow.Label{"gone": flow.Both(1), "secret": 1} {
		if got := (&run.Sealed{Data: []string{name}}).Label(p); got != want {
			t.Errorf("sealed for %s it has the label %x, not %x", name, got, want)
		}
	}
}

// flowEvents is the members "flow" of a kind of events.
func (p *posted) flowEvents(kind journal.Kind) (list []string) {
	p.t.Helper()
	events, _, err := p.memory.Read(journal.Query{Kind: kind})
	must.NoError(p.t, err)
	for _, e := range events {
		var data struct{ Flow json.RawMessage }
		must.NoError(p.t, json.Unmarshal(e.Data, &data))
		list = append(list, string(data.Flow))
	}
	return list
}

// TestFlowSays: a denial says where it came from, a program can catch it, and the record has the decision.
func TestFlowSays(t *testing.T) {
	t.Parallel()
	p := newPosted(t, toSend, run.Options{})
	p.evolve("it", `x => let s = !toy.get("secret/a") in try(!toy.send({to: "a", text: s}))`, "toy:**")
	p.gives("it", "null", `{"error":{"at":"1:42","kind":"denied","message":"toy.send may not be given what depends on secret: secret is what toy.get gave at 1:14 (request 1 of this run). Rule 1","value":{"flow":{"argument":"","by":"any","from":["secret"],"requests":[1],"rule":1}}}}`)
	if got := strings.Join(p.flowEvents(journal.EffectDenied), "\n"); got != `{"tier":2,"from":["secret"],"rule":1,"verdict":"deny"}` {
		t.Errorf("the denial's record has %s", got)
	}
	p.evolve("two", `x => let s = !toy.get("secret/a") in [!toy.send({to: "a"}), !toy.send({to: "b"})]`, "toy:**")
	p.gives("two", "null", `[null,null]`)
	if got := strings.Join(p.flowEvents(journal.EffectRequested), "\n"); !strings.HasSuffix(got, "\n\n"+`{"tier":2,"verdict":"allow"}`+"\n"+`{"tier":2,"verdict":"allow"}`) {
		t.Errorf("the requests' record has %s", got)
	}
	if n := p.broker.Follows(); n != 2 {
		t.Errorf("two runs were followed %d times", n)
	}
	if got := p.flowEvents(journal.RunStarted); got[0] != `"`+p.broker.Flow().Hash+`"` {
		t.Errorf("the run's start has %s", got)
	}
}

// TestFlowReports: with report everything is done, and what would be denied is on record.
func TestFlowReports(t *testing.T) {
	t.Parallel()
	p := newPosted(t, toSend, run.Options{})
	p.broker.Flow().Report = true
	p.evolve("it", `x => !toy.send({to: !toy.get("secret/a")})`, "toy:**")
	p.gives("it", "null", "null")
	if got := p.flowEvents(journal.EffectRequested); got[1] != `{"tier":2,"from":["secret"],"rule":1,"verdict":"report"}` || len(p.sent) != 1 {
		t.Errorf("%s; sent %v", got, p.sent)
	}
}

// TestFlowAsks: a person sees the very request, and a yes is to that one.
func TestFlowAsks(t *testing.T) {
	t.Parallel()
	for _, yes := range []bool{true, false} {
		var asked []run.FlowQuestion
		p := newPosted(t, strings.Replace(toSend, `"rules":[{"to":"toy.send","not_from":"secret"}`, `"rules":[{"to":"toy.send","not_from":"secret","else":"ask"}`, 1), run.Options{
			AskFlow: func(_ context.Context, q run.FlowQuestion) (bool, error) {
				asked = append(asked, q)
				return yes && q.Record(), nil
			},
		})
		p.evolve("it", `x => let s = !toy.get("secret/a") in let send = to => try(!toy.send({to: to, text: s})) in [send("a"), send("b"), send("a")]`, "toy:**")
		if _, f := p.run(context.Background(), "it", "null"); f != nil {
			t.Error(f)
		}
		questions := map[bool]int{true: 3, false: 2}[yes] // after a no it isn't asked again in the run
		if len(asked) != questions || asked[0].From["text"] != "made of secret: what toy.get gave (request 1)" || asked[0].From["to"] != "" || len(p.sent) != map[bool]int{true: 3}[yes] {
			t.Errorf("asked %+v; sent %v", asked, p.sent)
		}
		p.count(journal.FlowAsked, map[bool]int{true: 3}[yes]) // by who is asked, before that
		p.count(journal.FlowAnswered, questions)
	}
}

// TestFlowAsksAtTerminal: a request waits for a person at a terminal, whose yes is to the same one, made once more.
func TestFlowAsksAtTerminal(t *testing.T) {
	t.Parallel()
	p := newPosted(t, askText, run.Options{})
	p.evolve("it", `to => let r = par(!toy.get("secret/a"), !toy.get("open/a")) in !toy.send({to: to, text: {a: r[0], b: r[1]}})`, "toy:**")
	answer := func(yes bool) {
		t.Helper()
		waiting := p.waiting()
		shown := strings.Join(waiting.Lines, "\n")
		if want := "(made of secret: what toy.get gave (request 1): written by others)"; !strings.Contains(shown, want) || strings.Contains(shown, "request 2") {
			t.Errorf("it isn't shown that it is %s:\n%s", want, shown)
		}
		must.NoError(t, run.AnswerFlow(p.memory, waiting.ID, yes, "terminal"))
		if err := run.AnswerFlow(p.memory, waiting.ID, yes, "terminal"); err == nil {
			t.Error("a question was answered twice")
		}
	}
	p.fails("it", `"a"`, fault.Denied, "It needs the user's yes to this one request")
	id := p.waiting().ID
	p.fails("it", `"a"`, fault.Denied, "It needs")
	if again := p.waiting().ID; again != id {
		t.Errorf("asked again, %s isn't what waits, but %s", id, again)
	}
	answer(true)
	p.fails("it", `"b"`, fault.Denied, "It needs")
	answer(false)
	p.fails("it", `"b"`, fault.Denied, "It needs")
	p.gives("it", `"a"`, "null")
	p.fails("it", `"a"`, fault.Denied, "It needs")
	if len(p.sent) != 1 {
		t.Errorf("sent %v", p.sent)
	}
	p.count(journal.FlowAsked, 4)
}

// TestFlowAskTells: what became of a question tells how long a request is, and whether it was made before: the model is told
// the same of all, unless it was shown what is in them.
func TestFlowAskTells(t *testing.T) {
	t.Parallel()
	p := newPosted(t, `{"sources":[{"of":"toy.get:secret/**","label":"secret"}],"rules":[{"to":"toy.send","argument":"text","not_from":"secret","else":"ask"}]}`, run.Options{})
	p.kept["secret/long"] = value.Str(strings.Repeat("L", 100_000))
	p.evolve("it", `k => !toy.send({to: "a", text: !toy.get(k)})`, "toy:**")
	hint := func(key string) string {
		t.Helper()
		_, f := p.run(t.Context(), "it", key)
		if f == nil || f.Kind != fault.Denied {
			t.Fatalf("%s: %v", key, f)
		}
		return f.Hint
	}
	first := hint(`"secret/a"`)
	if again, long := hint(`"secret/a"`), hint(`"secret/long"`); again != first || long != first {
		t.Errorf("of three requests it is told %q, %q, %q", first, again, long)
	}
	must.NoError(t, p.broker.ShowNames([]string{"secret"}, ""))
	if shown := hint(`"secret/a"`); !strings.Contains(shown, p.waiting().ID) {
		t.Errorf("who has seen what is in it is told %q", shown)
	}
}

// TestFlowAskDenies: that a person wasn't asked tells of the arguments that the rule isn't about, too, since together they may be
// too long; and what is released decides about what isn't.
func TestFlowAskDenies(t *testing.T) {
	t.Parallel()
	const sources = `{"sources":[{"of":"toy.get:secret/**","label":"secret"},{"of":"toy.get:other/**","label":"other"}],"rules":[{"to":"toy.move","not_from":["secret","other"]},`
	const code = `x => let s = !toy.get("secret/a"), o = !toy.get("other/a") in let long = join(map(_ => "x", range(0, if o == "long" then 30000 else 1)), "\n") in
		let r = try(!toy.send({to: %s, text: long})) in !toy.put({key: "open/b", value: has(r, "ok")})`
	for _, other := range []string{"long", "short"} {
		p := newPosted(t, sources+`{"to":"toy.send","argument":"to","not_from":"secret","else":"ask"}]}`, run.Options{AskFlow: sayYes})
		p.kept["other/a"] = value.Str(other)
		p.evolve("it", fmt.Sprintf(code, "s"), "toy:**")
		p.fails("it", "null", fault.Denied, "may not keep what depends on")
		p.evolve("it", fmt.Sprintf(code, `if o == "long" then s else "a"`), "toy:**")
		p.fails("it", "null", fault.Denied, "may not keep what depends on")
	}
	const released = `x => let s = !toy.get("secret/a") in let to = if s == "S" then !toy.get("other/a") else "a" in let r = try(!toy.send({to: to})) in !toy.put({key: "open/b", value: has(r, "ok")})`
	for _, secret := range []string{"S", "T"} {
		made := newPosted(t, toSend, run.Options{}).evolve("it", released, "toy:**")
		p := newPosted(t, sources+`{"to":"toy.send","by":"any","not_from":["secret","other"]}],"release":[{"tool":"it@sha256:`+made.Whole()+`","from":"secret","to":"toy.send"}]}`, run.Options{})
		p.kept["other/a"], p.kept["secret/a"] = value.Str("x"), value.Str(secret)
		p.evolve("it", released, "toy:**")
		p.fails("it", "null", fault.Denied, "may not keep what depends on")
	}
}

// TestFlowContinues: that there is another step depends on what came into the one before, and so does all that it does.
func TestFlowContinues(t *testing.T) {
	t.Parallel()
	p := newPosted(t, toSend, run.Options{})
	made := p.evolve("it", `k => let _ = !toy.send({to: "a"}) in if !toy.get(k) == "S" then continue(k) else 0`, "toy:**")
	steps := func(input string) (fault *fault.Fault, l, ended flow.Label) {
		in, err := core.ParseInput([]byte(input), core.InputData)
		must.NoError(t, err)
		r := p.broker.Begin(p.tools.Snapshot(), bounds(made, "", input))
		for range 2 {
			r.Evaluates(run.Evaluation{Tool: made, Program: made.Program(), Input: in})
			m := made.Program().Start(in, core.Budgets{}, r.Tools(made))
			for m.Run(0) == core.Suspended {
				m.Resume(r.Answer(t.Context(), time.Now().Add(time.Hour), m.Requests()))
			}
			fault = m.Fault()
			m.Release()
		}
		l, ended = r.Shown(t.Context())
		return fault, l, ended
	}
	if f, l, _ := steps(`"secret/a"`); f == nil || f.Kind != fault.Denied || len(p.sent) != 1 || l == 0 {
		t.Errorf("a step that depends on what is secret: %v with the label %x; sent %q", f, l, p.sent)
	}
	if f, _, _ := steps(`"open/a"`); f != nil || len(p.sent) != 3 {
		t.Errorf("another: %v; sent %q", f, p.sent)
	}
}

// TestFlowRates: a run that goes on tells what a rate decided then, of runs that nobody knows.
func TestFlowRates(t *testing.T) {
	t.Parallel()
	for _, uses := range []int{1, 2} { // permitted, and denied
		p := newPosted(t, strings.Replace(toSend, `"rules":[`, `"rules":[{"to":"model","not_from":"secret"},`, 1), run.Options{})
		p.world = newWorldOf(t, post, run.Options{Flow: p.broker.Flow()}, func(context.Context, run.Act) (value.Value, int64, *fault.Fault) {
			return value.Str("O"), 1, nil
		}, "toy.send:**", "toy.get:**,rate=2/h")
		made := p.evolve("it", `x => let a = try(!toy.get("open/a")) in let _ = try(!toy.send({to: "a"})) in has(a, "ok")`, "toy:**")
		p.evolve("reads", `k => !toy.get(k)`, "toy:**")
		for range uses {
			p.gives("reads", `"open/a"`, `"O"`)
		}
		plan := p.plan(made, "null")
		rec, err := run.ReadRecord(p.memory, plan.Run)
		must.NoError(t, err)
		r, err := p.broker.Resume(p.tools.Snapshot(), bounds(made, "", "null"), rec)
		must.NoError(t, err)
		must.NoFault(t, r.Does(plan, 0, ""))
		if got, f := drive(t, r, made, "null"); f != nil || got != fmt.Sprint(uses < 2) {
			t.Fatalf("it gives %s, %v", got, f)
		}
		if _, ended := r.Shown(t.Context()); ended == 0 {
			t.Errorf("used %d times before: that it was, tells of nothing", uses)
		}
	}
}

// TestFlowRated: what a rate decides tells of what had come into the runs that counted for it, also where it permits.
func TestFlowRated(t *testing.T) {
	t.Parallel()
	p := newPosted(t, toSend, run.Options{})
	p.world = newWorldOf(t, post, run.Options{Flow: p.broker.Flow()}, func(context.Context, run.Act) (value.Value, int64, *fault.Fault) {
		return value.Str("S"), 1, nil
	}, "toy.get:secret/**", "toy.get:open/**,rate=5/h")
	look := p.evolve("look", `x => has(try(!toy.get("open/a")), "ok")`, "toy.get:open/**")
	p.evolve("reads", `k => !toy.get(k)`, "toy.get:secret/**")
	p.evolve("uses", `k => let s = !toy.get({key: k, in: "secret/**"}) in if s == "S" then !toy.get({key: "open/a", in: "open/**"}) else 0`, "toy.get:secret/**", "toy.get:open/**")
	for i, uses := range []string{"", "reads", "uses", ""} {
		if uses != "" {
			p.gives(uses, `"secret/a"`, `"S"`)
		}
		if got, labelled := p.shown(t, look, "null"); got != fmt.Sprint(i < 3) || labelled != (i > 1) {
			t.Errorf("%d: it gives %s, with a label: %v", i, got, labelled)
		}
		if i != 2 {
			continue
		}
		p.gives("look", "null", "true")
		ended, _, err := p.memory.Read(journal.Query{Kind: journal.RunEnded, Limit: 1, Last: true})
		if must.NoError(t, err); !strings.Contains(string(ended[0].Data), `"entered":["secret"]`) {
			t.Errorf("its end on record is %s", ended[0].Data)
		}
	}
}

// TestPlanRated: a plan is made under what had come into the runs that a rate which decided about it counts.
func TestPlanRated(t *testing.T) {
	t.Parallel()
	p := newPosted(t, toSend, run.Options{})
	p.world = newWorldOf(t, post, run.Options{Flow: p.broker.Flow()}, func(context.Context, run.Act) (value.Value, int64, *fault.Fault) {
		return value.Str("S"), 1, nil
	}, "toy.get:secret/**", "toy.get:open/**,rate=3/h")
	look := p.evolve("look", `x => has(try(!toy.get("open/a")), "ok")`, "toy.get:open/**")
	p.evolve("uses", `k => if !toy.get({key: k, in: "secret/**"}) == "S" then !toy.get({key: "open/a", in: "open/**"}) else 0`, "toy.get:secret/**", "toy.get:open/**")
	for i, want := range []string{"[]", "[secret]", "[secret]"} { // permitted twice, and denied
		if plan := p.plan(look, "null"); fmt.Sprint(plan.Under) != want {
			t.Errorf("plan %d is made under %v, and not %s", i, plan.Under, want)
		}
		p.run(t.Context(), "uses", `"secret/a"`)
	}
}

// shown runs a tool, and gives what it gives and whether that has a label.
func (w *world) shown(t *testing.T, tool *registry.Tool, input string) (string, bool) {
	t.Helper()
	r := w.broker.Begin(w.tools.Snapshot(), bounds(tool, "", input))
	got, f := drive(t, r, tool, input)
	must.NoFault(t, f)
	l, _ := r.Shown(t.Context())
	return got, l != 0
}

// TestFlowRatedOnly: a token of a rate tells also where the run ends before the request is made.
func TestFlowRatedOnly(t *testing.T) {
	t.Parallel()
	p := newPosted(t, toSend, run.Options{})
	p.world = newWorldOf(t, post, run.Options{Flow: p.broker.Flow(), Limits: run.Limits{Bytes: 1}}, func(context.Context, run.Act) (value.Value, int64, *fault.Fault) {
		return value.Str("S"), 1, nil
	}, "toy.get:secret/**", "toy.get:open/**,rate=1/h")
	look := p.evolve("look", `x => has(try(!toy.get("open/a")), "ok")`, "toy.get:open/**")
	p.evolve("uses", `k => if !toy.get({key: k, in: "secret/**"}) == "S" then !toy.get({key: "open/a", in: "open/**"}) else 0`, "toy.get:secret/**", "toy.get:open/**")
	p.fails("uses", `"secret/a"`, fault.OutOfFuel)
	if got, labelled := p.shown(t, look, "null"); got != "false" || !labelled {
		t.Errorf("it gives %s, with a label: %v", got, labelled)
	}
}

// TestFlowRatedByOthers: the rates of a grant that several principals have tell of the runs of all, also to one who
// comes later.
func TestFlowRatedByOthers(t *testing.T) {
	t.Parallel()
	p := newPosted(t, toSend, run.Options{})
	perform := func(context.Context, run.Act) (value.Value, int64, *fault.Fault) { return value.Str("S"), 1, nil }
	lends := newWorldOf(t, post, run.Options{}, perform, "toy.get:secret/**", "toy.get:open/**,rate=2/h")
	kinds, err := caps.NewKinds(post)
	must.NoError(t, err)
	all := caps.NewPrincipals(kinds, time.Now)
	must.NoError(t, all.Replace(caps.Allowance{Grants: lends.policy.Grants()}, nil))
	open := func(name string) *world {
		w := newWorldOf(t, post, run.Options{}, nil)
		w.policy = all.Open(name)
		w.broker = run.New(run.Options{Policy: w.policy, Journal: w.memory, Flow: p.broker.Flow(), Handler: &performer{perform: perform}})
		tools, _, err := registry.Open(w.broker.Log(), w.policy)
		must.NoError(t, err)
		w.tools = tools
		return w
	}
	const code = `x => has(try(!toy.get("open/a")), "ok")`
	a, b := open("a"), open("b")
	a.evolve("uses", `k => if !toy.get({key: k, in: "secret/**"}) == "S" then !toy.get({key: "open/a", in: "open/**"}) else 0`, "toy.get:secret/**", "toy.get:open/**")
	look := b.evolve("look", code, "toy.get:open/**")
	if got, labelled := b.shown(t, look, "null"); got != "true" || labelled {
		t.Errorf("before, it gives %s, with a label: %v", got, labelled)
	}
	a.gives("uses", `"secret/a"`, `"S"`)
	for range 2 {
		if got, labelled := b.shown(t, look, "null"); got != "false" || !labelled {
			t.Errorf("it gives %s, with a label: %v", got, labelled)
		}
		all.Forget(b.policy)
		b = open("b")
		look = b.evolve("look", code, "toy.get:open/**")
	}
}

// TestFlowRatedElsewhere: the rates of a cluster count runs of other nodes, of which nobody here knows what came into
// them, so that what they decide tells of every source.
func TestFlowRatedElsewhere(t *testing.T) {
	t.Parallel()
	p := newPosted(t, toSend, run.Options{})
	left := 3
	p.world = newWorldOf(t, post, run.Options{Flow: p.broker.Flow(), Act: func(context.Context) (lease.Time, error) { return 0, nil }, Rate: func(context.Context, string, caps.Rate) error {
		if left--; left < 0 {
			return fault.New(fault.Denied, "all nodes together have done it as often as they may")
		}
		return nil
	}}, func(ctx context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
		if _, err := a.Lease(ctx); err != nil {
			return nil, 0, fault.New(fault.Denied, err.Error())
		}
		if a.Verb == "send" {
			p.sent = append(p.sent, "sent")
		}
		return value.Str("O"), 1, nil
	}, "toy.get:open/**,rate=20/h", "toy.get:other/**", "toy.send:**")
	look := p.evolve("look", `x => has(try(!toy.get({key: "open/a", in: "open/**"})), "ok")`, "toy.get:open/**")
	other := p.evolve("other", `x => has(try(!toy.get({key: "other/a", in: "other/**"})), "ok")`, "toy.get:other/**")
	p.evolve("tells", `x => if has(try(!toy.get({key: "open/a", in: "open/**"})), "ok") then !toy.send({to: "a"}) else !toy.send({to: "b"})`, "toy.get:open/**", "toy.send:**")
	for i, want := range []string{"true", "true", "true", "false"} {
		if got, labelled := p.shown(t, look, "null"); got != want || !labelled {
			t.Errorf("%d: it gives %s, with a label: %v", i, got, labelled)
		}
		if got, labelled := p.shown(t, other, "null"); got != "true" || labelled {
			t.Errorf("%d: what has no rate gives %s, with a label: %v", i, got, labelled)
		}
	}
	if plan := p.plan(look, "null"); fmt.Sprint(plan.Under) != "[secret]" {
		t.Errorf("its plan is made under %v", plan.Under)
	}
	if p.fails("tells", "null", fault.Denied, "may not be given what depends on secret"); len(p.sent) > 0 {
		t.Error("that the rate is used up is sent on")
	}
}

// TestFlowUnheard: what another node showed the model before it asked for a run, of which this one, which was cut off, learns
// meanwhile, lets it begin no effect; what is shown while the run goes on is no reason for that.
func TestFlowUnheard(t *testing.T) {
	t.Parallel()
	cut := true
	var p *posted
	p = newPosted(t, toSend, run.Options{Act: func(ctx context.Context) (lease.Time, error) {
		if ctx.Err() != nil {
			if cut {
				return 0, ctx.Err()
			}
			return lease.Now().Add(lease.Length), nil
		}
		_, err := p.broker.Session().Show(p.broker.Flow().Known([]string{"secret"}))
		return lease.Now().Add(lease.Length), err
	}})
	p.evolve("sends", `x => !toy.send({to: x})`, "toy.send:**")
	if p.fails("sends", `"S"`, fault.EffectFailed, "was not begun: this node didn't know yet"); len(p.sent) > 0 {
		t.Errorf("it is sent: %v", p.sent)
	}
	must.NoError(t, p.broker.Session().Clear(nil))
	cut = false
	p.gives("sends", `"b"`, `null`)
}

// TestFlowShownMeanwhile: what is shown while a run of a node that was cut off goes on, after its first effect, is no reason
// not to begin the next.
func TestFlowShownMeanwhile(t *testing.T) {
	t.Parallel()
	p := newPosted(t, toSend, run.Options{Act: func(ctx context.Context) (lease.Time, error) {
		return lease.Now().Add(lease.Length), ctx.Err()
	}})
	p.kept["open/need"] = value.Unit{}
	p.needed = func() {
		_, err := p.broker.Session().Show(p.broker.Flow().Known([]string{"secret"}))
		must.NoError(t, err)
	}
	p.evolve("sends", `x => let _ = !toy.get("open/need") in !toy.send({to: x})`, "toy.get:open/**", "toy.send:**")
	p.gives("sends", `"b"`, `null`)
}

// TestResumeOtherRules: where a run went on under other rules than it began under, or none, its end says which.
func TestResumeOtherRules(t *testing.T) {
	t.Parallel()
	p := newPosted(t, toSend, run.Options{})
	made := p.evolve("gets", `k => !toy.get(k)`, "toy.get:**")
	for i, rules := range []*flow.Policy{p.broker.Flow(), nil} {
		id, want := fmt.Sprint("r", i), []string{"", `""`}[i]
		p.broker.Begin(p.tools.Snapshot(), bounds(made, id, `"open/a"`))
		rec, err := run.ReadRecord(p.memory, id)
		must.NoError(t, err)
		b := run.New(run.Options{Policy: p.policy, Journal: p.memory, Flow: rules, Handler: &performer{perform: func(context.Context, run.Act) (value.Value, int64, *fault.Fault) {
			return value.Str("O"), 1, nil
		}}})
		r, err := b.Resume(p.tools.Snapshot(), bounds(made, id, `"open/a"`), rec)
		must.NoError(t, err)
		_, f := drive(t, r, made, `"open/a"`)
		if ends := p.flowEvents(journal.RunEnded); f != nil || len(ends) != i+1 || ends[i] != want {
			t.Errorf("%d: the ends have %q, %v", i, ends, f)
		}
	}
}

// An inquirer answers the questions of strangers.
type inquirer struct{}

func (inquirer) AskOperation() string { return "ask.get" }

func (inquirer) Ask(context.Context, run.Act, run.Question) run.Reply {
	return run.Reply{Action: "accept"}
}

// asking is the kind of questions, and another.
func asking(t *testing.T, other *caps.Manifest) caps.Kinds {
	m := *ledger
	m.Kind, m.Operations = "ask", []caps.Operation{m.Operations[0]}
	m.Operations[0].Name = "ask.get"
	kinds, err := caps.NewKinds(&m, other)
	must.NoError(t, err)
	return kinds
}

// TestResumeCountsQuestions: what strangers asked before the process died counts for the limits of the run that goes on, also
// what the rate of a cluster refused.
func TestResumeCountsQuestions(t *testing.T) {
	t.Parallel()
	kinds := asking(t, post)
	perform := func(ctx context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
		return value.Str(a.Ask(ctx, run.Question{Message: "sure"}).Action), 1, nil
	}
	for want, takes := range map[string]int{`["accept","decline"]`: 5, `["decline","decline"]`: 4} { // with the first outcome
		w := newWorldOfKinds(t, kinds, run.Options{}, nil, "toy:**", "ask:**,calls=1,rate=9/h")
		made := w.evolve("send", `x => if x == 1 then !ask.get("b") else let a = !toy.send({to: "a"}) in let b = !toy.send({to: "b"}) in [a, b]`, "ask:**", "toy:**")
		j := &mortal{Journal: w.memory, takes: takes}
		begins := func(j journal.Journal, refused error) *run.Broker {
			rate := func(context.Context, string, caps.Rate) error { return refused }
			return run.New(run.Options{Policy: w.policy, Journal: j, Asker: inquirer{}, Handler: &performer{perform: perform}, Rate: rate})
		}
		var refused error
		if takes == 4 {
			refused = fault.New(fault.Denied, "too often")
		}
		drive(t, begins(j, refused).Begin(w.tools.Snapshot(), bounds(made, "r", "null")), made, "null")
		rec, err := run.ReadRecord(w.memory, "r")
		must.NoError(t, err)
		r, err := begins(w.memory, nil).Resume(w.tools.Snapshot(), bounds(made, "r", "null"), rec)
		must.NoError(t, err)
		if got, f := drive(t, r, made, "null"); f != nil || got != want {
			t.Errorf("%s, %v; want %s", got, f, want)
		}
	}
}

// TestFlowRatedQuestion: a stranger's question takes from a rate as a request does, and what comes of it tells of that.
func TestFlowRatedQuestion(t *testing.T) {
	t.Parallel()
	kinds := asking(t, post)
	c, err := flow.ParseConfig([]byte(`{"sources":[{"of":"toy.get:secret/**","label":"secret"}],"rules":[{"to":"toy.put:kept","not_from":"secret"}]}`))
	must.NoError(t, err)
	rules, err := flow.Compile(c, kinds, nil)
	must.NoError(t, err)
	w := newWorldOfKinds(t, kinds, run.Options{Flow: rules, Asker: inquirer{}}, func(ctx context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
		if a.Verb == "send" {
			return value.Str(a.Ask(ctx, run.Question{Message: "sure"}).Action), 1, nil
		}
		return value.Str("S"), 1, nil
	}, "toy:**", "ask:**,rate=2/h")
	look := w.evolve("look", `x => has(try(!ask.get("a")), "ok")`, "ask:**")
	send := w.evolve("send", `x => let _ = try(!ask.get("b")) in !toy.send({to: "a"})`, "ask:**", "toy:**")
	only := w.evolve("only", `x => if x == 1 then !ask.get("b") else !toy.send({to: "a"})`, "ask:**", "toy:**")
	w.evolve("uses", `k => if !toy.get("secret/a") == "S" then !toy.send({to: "a"}) else let _ = !ask.get("b") in "no"`, "ask:**", "toy:**")
	for i, want := range []string{"true false", "", "false true", `"decline" true`} {
		switch i {
		case 1:
			w.gives("uses", "null", `"accept"`)
			continue
		case 3:
			look = send
		}
		if got, labelled := w.shown(t, look, "null"); fmt.Sprint(got, " ", labelled) != want {
			t.Errorf("%d: it gives %s, with a label: %v", i, got, labelled)
		}
	}
	if got, labelled := w.shown(t, only, "null"); got != `"decline"` || !labelled {
		t.Errorf("it gives %s, with a label: %v", got, labelled)
	}
	asked, _, err := w.memory.Read(journal.Query{Kind: journal.EffectAsked, Limit: 1, Last: true})
	must.NoError(t, err)
	rec, err := run.ReadRecord(w.memory, asked[0].Run)
	must.NoError(t, err)
	rec.End = nil
	r, err := w.broker.Resume(w.tools.Snapshot(), bounds(only, rec.ID, "null"), rec)
	must.NoError(t, err)
	got, f := drive(t, r, only, "null")
	must.NoFault(t, f)
	if l, _ := r.Shown(t.Context()); got != `"decline"` || l == 0 {
		t.Errorf("from the record it gives %s, with the label %x", got, l)
	}
}

// waiting is the one question that waits.
func (p *posted) waiting() *run.WaitingFlow {
	p.t.Helper()
	list, err := run.WaitingFlows(p.memory, time.Now())
	if err != nil || len(list) != 1 {
		p.t.Fatalf("%d wait: %v", len(list), err)
	}
	return list[0]
}

// TestFlowAsksAboutAll: a person sees every rule that a request breaks, and a yes is to no more.
func TestFlowAsksAboutAll(t *testing.T) {
	t.Parallel()
	p := newPosted(t, `{"sources":[{"of":"toy.get:secret/**","label":"secret"},{"of":"toy.get:open/**","label":"open"}],"rules":[
		{"to":"toy.send","argument":"text","not_from":"secret","else":"ask"},{"to":"toy.send","argument":"to","not_from":"open","else":"ask"}]}`, run.Options{})
	p.evolve("it", `read => !toy.send({to: (if read then !toy.get("open/a") else "O"), text: !toy.get("secret/a")})`, "toy:**")
	for _, test := range []struct {
		read  string
		rules int
	}{{"false", 1}, {"true", 2}} {
		p.fails("it", test.read, fault.Denied, "It needs")
		q := p.waiting()
		if n := strings.Count(strings.Join(q.Lines, "\n"), "The rule: "); n != test.rules {
			t.Errorf("%d rules are shown, not %d: %q", n, test.rules, q.Lines)
		}
		must.NoError(t, run.AnswerFlow(p.memory, q.ID, true, "terminal"))
	}
	p.gives("it", "true", "null")
	p.gives("it", "false", "null")
	p.fails("it", "false", fault.Denied, "It needs")
}

// TestFlowAsksInSilence: a program sees of a denial nothing that depends on what would be asked.
func TestFlowAsksInSilence(t *testing.T) {
	t.Parallel()
	p := newPosted(t, askText, run.Options{})
	p.evolve("it", `x => let s = !toy.get("secret/a") in
		let say = t => try(!toy.send({to: "a", text: t})) in
		let long = join(map(_ => s, range(0, 30000)), "\n") in [say(s) == say(s), say(s) == say("b" ++ s), say(s) == say(long)]`, "toy:**")
	p.gives("it", "null", "[true,true,true]")
	p.count(journal.FlowAsked, 2)
}

// TestFlowOfFailures: what was done although it breaks a rule, and failed, tells of its argument.
func TestFlowOfFailures(t *testing.T) {
	t.Parallel()
	const code = `x => let s = !toy.get("secret/a") in let r = try(!toy.send({to: "nobody", text: s})) in !toy.send({to: to_json(r)})`
	p := newPosted(t, askText, run.Options{AskFlow: sayYes})
	p.evolve("it", code, "toy:**")
	p.fails("it", "null", fault.Denied, "Rule 2")
	p.broker.Flow().Report = true
	p.gives("it", "null", "null")
	if got := p.flowEvents(journal.EffectRequested); got[len(got)-1] != `{"tier":2,"from":["secret"],"rule":2,"verdict":"report"}` {
		t.Errorf("it reports %s", got)
	}
}

// tried is what a trial of the server's own rules judges of a run.
func (p *posted) tried(t *testing.T, made *registry.Tool) []run.FlowJudgement {
	t.Helper()
	r := p.broker.Begin(p.tools.Snapshot(), bounds(made, "", "null"))
	_, f := drive(t, r, made, "null")
	must.NoFault(t, f)
	rec, err := run.ReadRecord(p.memory, r.ID())
	must.NoError(t, err)
	replay := run.NewReplay(rec, false)
	must.NoError(t, replay.TryFlow(p.broker.Flow(), p.policy))
	_, f = drive(t, replay.Broker().Begin(p.tools.Snapshot(), bounds(made, "", "null")), made, "null")
	must.NoFault(t, f)
	return replay.Judged()
}

// TestFlowTriesDenials: a denial on record tells a trial of the same rules what it told the run.
func TestFlowTriesDenials(t *testing.T) {
	t.Parallel()
	p := newPosted(t, toSend, run.Options{})
	made := p.evolve("it", `x => let s = !toy.get("secret/a") in let r = try(!toy.send({to: s})) in !toy.send({to: "a", text: has(r, "ok")})`, "toy:**")
	if j := p.tried(t, made); len(j) != 3 || j[1].Verdict != "deny" || j[2].Verdict != "allow" {
		t.Errorf("it judges %+v", j)
	}
}

// TestFlowTriesTaints: in a trial a store takes on what it would have, and a replay that isn't one changes nothing.
func TestFlowTriesTaints(t *testing.T) {
	t.Parallel()
	p := newPosted(t, taintOpen, run.Options{})
	p.broker.Flow().Report = true
	made := p.evolve("it", `x => let _ = !toy.put({key: "open/b", value: !toy.get("secret/a")}) in !toy.send({to: !toy.get("open/b")})`, "toy:**")
	if j := p.tried(t, made); len(j) != 4 || j[1].Verdict != "taint" || j[3].Verdict != "deny" {
		t.Errorf("it judges %+v", j)
	}
	if state, err := p.broker.Session().State(); err != nil || !state.Empty() {
		t.Errorf("the server's session is %+v: %v", state, err)
	}
}

// does does a plan of a run, as after the end of the server that made it.
func (p *posted) does(t *testing.T, plan *run.Plan, made *registry.Tool, input string) {
	t.Helper()
	must.NoFault(t, p.tries(t, plan, made, input))
}

// tries gives the fault of a plan that may not be done to its end.
func (p *posted) tries(t *testing.T, plan *run.Plan, made *registry.Tool, input string) *fault.Fault {
	t.Helper()
	rec, err := run.ReadRecord(p.memory, plan.Run)
	must.NoError(t, err)
	r, err := p.broker.Resume(p.tools.Snapshot(), bounds(made, "", input), rec)
	must.NoError(t, err)
	must.NoFault(t, r.Does(plan, 0, ""))
	_, f := drive(t, r, made, input)
	return f
}

// plan plans a run.
func (p *posted) plan(made *registry.Tool, input string) *run.Plan {
	p.t.Helper()
	in, err := core.ParseInput([]byte(input), core.InputData)
	must.NoError(p.t, err)
	r := p.broker.Begin(p.tools.Snapshot(), bounds(made, "", input))
	plan, f := r.Plan(p.t.Context(), time.Now().Add(time.Hour), run.Evaluation{Tool: made, Program: made.Program(), Input: in}, 1, nil)
	must.NoFault(p.t, f)
	r.Abandon()
	return plan
}

// TestFlowPlansTaint: a store takes a label on when a plan is done, and not before.
func TestFlowPlansTaint(t *testing.T) {
	t.Parallel()
	p := newPosted(t, taintOpen, run.Options{})
	made := p.evolve("copy", `k => !toy.put({key: k, value: !toy.get("secret/a")})`, "toy:**")
	p.evolve("leak", `k => !toy.send({to: !toy.get(k)})`, "toy:**")
	plan := p.plan(made, `"open/b"`)
	p.count(journal.StoreTainted, 0)
	p.gives("leak", `"open/a"`, "null")
	p.does(t, plan, made, `"open/b"`)
	p.count(journal.StoreTainted, 1)
	p.fails("leak", `"open/a"`, fault.Denied, "secret")
}

// TestFlowPlansDenial: a denial while planning is of its own request, not of the first of its round.
func TestFlowPlansDenial(t *testing.T) {
	t.Parallel()
	p := newPosted(t, toSend, run.Options{})
	plan := p.plan(p.evolve("it", `x => let s = !toy.get("secret/a") in
		let deep = fold((a, i) => [a], "x", range(0, 20000)) in
		let r = par(try(!toy.get(s)), try(!toy.send({to: "a", text: deep}))) in
		if has(r[0], "ok") then null else !toy.send({to: "b"})`, "toy:**"), "null")
	if len(plan.Steps) != 0 {
		t.Errorf("it plans %+v", plan.Steps[0])
	}
}

// TestFlowPlansGoOn: a denial that was planned tells what follows no more when the plan is done.
func TestFlowPlansGoOn(t *testing.T) {
	t.Parallel()
	for _, request := range []string{"!toy.send({to: s})", `!toy.put({key: "open/b", value: s})`, `!toy.get("other/a")`} {
		p := newPosted(t, toSend, run.Options{})
		made := p.evolve("it", `x => let s = !toy.get("secret/a") in let r = try(`+request+`) in !toy.send({to: "a", text: has(r, "ok")})`, "toy.get:secret/**", "toy.put:open/**", "toy.send:**")
		plan := p.plan(made, "null")
		if len(plan.Steps) != 1 || plan.Steps[0].Op != "toy.send" {
			t.Fatalf("%s: it plans %+v", request, plan.Steps)
		}
		if p.does(t, plan, made, "null"); len(p.sent) != 1 {
			t.Errorf("%s: sent %v", request, p.sent)
		}
		// By other rules it may tell of more.
		plan = p.plan(made, "null")
		p.broker.Flow().Hash = "other"
		if f := p.tries(t, plan, made, "null"); f == nil || f.Kind != fault.Denied || len(p.sent) != 1 {
			t.Errorf("%s, under other rules: %v, sent %v", request, f, p.sent)
		}
	}
}

// TestFlowCostsNothing: of a tool that holds nothing that gives what has a label nothing is kept to follow it: an effect
// allocates hardly more than without rules. Not parallel: it counts what the process allocates.
func TestFlowCostsNothing(t *testing.T) {
	var each [3]float64
	for i, held := range []string{"toy.get:open/**", "toy.get:open/**", "toy.get:**"} {
		p := newPosted(t, toSend, run.Options{})
		if p.share = &(core.Share{}); i == 0 {
			p.world = newWorldOf(t, post, run.Options{}, func(context.Context, run.Act) (value.Value, int64, *fault.Fault) { return p.kept["open/a"], 10, nil }, "toy:**")
		}
		p.evolve("it", `n => fold((acc, i) => acc + length(!toy.get("open/a")), 0, range(0, n))`, held)
		count := func(n string) float64 { return testing.AllocsPerRun(5, func() { p.run(t.Context(), "it", n) }) }
		each[i] = (count("200") - count("100")) / 100
	}
	t.Log(each)
	if each[1] > each[0]+6 || each[2] < each[0]+10 {
		t.Errorf("an effect allocates %.1f times without rules, %.1f with, and %.1f where it might have a label", each[0], each[1], each[2])
	}
}

// TestFlowMeanwhile: where nothing is kept of a run, and a store that it reads takes a label on, all that came in counts.
func TestFlowMeanwhile(t *testing.T) {
	t.Parallel()
	p := newPosted(t, taintOpen, run.Options{})
	p.kept["open/need"] = value.Unit{}
	p.evolve("copy", `k => !toy.put({key: k, value: !toy.get("secret/a")})`, "toy:**")
	p.evolve("it", `x => let _ = [!toy.get("open/a"), !toy.get("open/need")] in !toy.send({to: !toy.get("open/b")})`, "toy.get:open/**", "toy.send:open/**")
	p.needed = func() {
		p.mu.Unlock()
		defer p.mu.Lock()
		p.gives("copy", `"open/b"`, "null")
	}
	p.fails("it", "null", fault.Denied, "depends on secret", "had a label when it began")
}

// TestFlowExplainsMany: a person is told which of many answers an argument is made of.
func TestFlowExplainsMany(t *testing.T) {
	t.Parallel()
	var asked []run.FlowQuestion
	p := newPosted(t, askText, run.Options{AskFlow: func(_ context.Context, q run.FlowQuestion) (bool, error) {
		asked = append(asked, q)
		return true, nil
	}})
	p.evolve("it", `x => let l = map(_ => !toy.get("secret/a"), range(0, 40)) in [!toy.send({to: "a", text: l[35]}), !toy.send({to: "a", text: l})]`, "toy:**")
	if _, f := p.run(t.Context(), "it", "null"); f != nil || len(asked) != 2 {
		t.Fatalf("asked %+v, %v", asked, f)
	}
	if got := asked[0].From["text"]; got != "made of secret: what toy.get gave (request 36)" {
		t.Errorf("one of them is %s", got)
	}
	if got := asked[1].From["text"]; !strings.HasSuffix(got, "what toy.get gave (request 4), others") {
		t.Errorf("all of them is %s", got)
	}
}

// TestFlowDeniesBeforeItAsks: nobody is asked about what another rule, or a store's label, denies.
func TestFlowDeniesBeforeItAsks(t *testing.T) {
	t.Parallel()
	o := run.Options{AskFlow: func(context.Context, run.FlowQuestion) (bool, error) {
		t.Error("a person was asked")
		return true, nil
	}}
	p := newPosted(t, strings.Replace(toSend, `"rules":[`, `"rules":[{"to":"toy.send","argument":"text","not_from":"secret","else":"ask"},{"to":"toy.put","argument":"value","not_from":"secret","else":"ask"},`, 1), o)
	p.evolve("send", `x => !toy.send({to: "a", text: !toy.get("secret/a")})`, "toy:**")
	p.fails("send", "null", fault.Denied, "Rule 3")
	p.evolve("put", `x => !toy.put({key: "open/b", value: !toy.get("secret/a")})`, "toy:**")
	p.fails("put", "null", fault.Denied, "may not keep")
}

// TestFlowOfLimits: that a limit is used up tells whatever decided about the requests before.
func TestFlowOfLimits(t *testing.T) {
	t.Parallel()
	p := newPosted(t, toSend, run.Options{})
	const code = `k => let s = !toy.get(k) in let u = (if s == "S" then !toy.get("open/a") else 0) in !toy.send({to: (if has(try(!toy.get("open/a")), "ok") then "no" else "yes")})`
	p.evolve("it", code, "toy.get:**,calls=2", "toy.send:**")
	p.fails("it", `"secret/a"`, fault.OutOfFuel, "the run has used up the calls")
	p.gives("it", `"open/a"`, "null")
	// A program that goes on would show it by what it doesn't ask for.
	p.sent = nil
	p.evolve("on", `k => let s = !toy.get(k) in let u = (if s == "S" then !toy.get("open/a") else 0) in let r = try(!toy.send({to: if has(try(!toy.get("open/a")), "ok") then "no" else "yes"})) in !toy.send({to: "on"})`, "toy.get:**,calls=2", "toy.send:**")
	if p.fails("on", `"secret/a"`, fault.OutOfFuel, "the run has used up the calls"); len(p.sent) > 0 {
		t.Errorf("it sends %q", p.sent)
	}
	if p.gives("on", `"open/a"`, "null"); len(p.sent) != 2 {
		t.Errorf("of what rules aren't about it sends %q", p.sent)
	}
}

// TestFlowOfBytes: an outcome that is too large for what is left ends a run in which something came in that rules are about, and
// fails, for a try to catch, in any other; so does one that is too large in itself.
func TestFlowOfBytes(t *testing.T) {
	t.Parallel()
	p := newPosted(t, toSend, run.Options{})
	p.world = newWorldOf(t, post, run.Options{Flow: p.broker.Flow()}, func(_ context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
		if a.Most < 60 {
			return nil, 0, fault.New(fault.EffectFailed, "toy.get: too_large: it has 60 bytes")
		}
		return value.Str("S"), 60, nil
	}, "toy:**")
	p.evolve("it", `k => let s = !toy.get(k) in try(!toy.get("open/a")).error.kind`, "toy.get:**,bytes=100")
	p.fails("it", `"secret/a"`, fault.OutOfFuel, "too_large")
	p.gives("it", `"open/a"`, `"effect_failed"`)
	p.evolve("small", `k => let s = !toy.get({key: k, in: "**"}) in try(!toy.get({key: "open/a", in: "open/**"})).error.kind`, "toy.get:**", "toy.get:open/**,max=50")
	p.gives("small", `"secret/a"`, `"effect_failed"`)
}

func (w *world) count(kind journal.Kind, n int) {
	w.t.Helper()
	if events, _, err := w.memory.Read(journal.Query{Kind: kind}); err != nil || len(events) != n {
		w.t.Errorf("%d events of the kind %s, not %d: %v", len(events), kind, n, err)
	}
}

// TestFlowStores: what is labelled may be kept where the store has the label; elsewhere it is denied, or
// the store has it from then on, in later runs too.
func TestFlowStores(t *testing.T) {
	t.Parallel()
	p := newPosted(t, toSend, run.Options{})
	p.evolve("copy", `k => !toy.put({key: k, value: !toy.get("secret/a")})`, "toy:**")
	p.evolve("leak", `k => !toy.send({to: !toy.get(k)})`, "toy:**")
	p.fails("copy", `"open/b"`, fault.Denied, "may not keep what depends on secret there", `{"of":"toy:**","label":"secret"}`)
	p.gives("copy", `"secret/b"`, "null")
	p.fails("leak", `"secret/b"`, fault.Denied, "secret")

	p = newPosted(t, taintOpen, run.Options{})
	p.evolve("copy", `k => !toy.put({key: k, value: !toy.get("secret/a")})`, "toy:**")
	p.evolve("leak", `k => !toy.send({to: !toy.get(k)})`, "toy:**")
	p.gives("leak", `"open/a"`, "null")
	p.gives("copy", `"open/b"`, "null")
	p.fails("leak", `"open/a"`, fault.Denied, "secret")
	p.fails("copy", `"other/b"`, fault.Denied, "may not keep")
	p.count(journal.StoreTainted, 1)
}

// TestFlowStoresMany: a rule that has a store take labels on is about no others, however many rules there are and places that
// a request acts on.
func TestFlowStoresMany(t *testing.T) {
	t.Parallel()
	const sources = `{"sources":[{"of":"toy.get:mail/**","label":"mail"},{"of":"toy.get:priv/**","label":"priv"}],"rules":[{"to":"toy.send","not_from":["mail","priv"]},`
	mail, priv := `{"to":"toy.put:open/**","not_from":"mail","else":"taint"}`, `{"to":"toy.put:open/**","not_from":"priv","else":"taint"}`
	start := func(t *testing.T, rules ...string) *posted {
		p := newPosted(t, sources+strings.Join(rules, ",")+"]}", run.Options{AskFlow: sayYes})
		for _, key := range []string{"mail/a", "priv/a", "other/a"} {
			p.kept[key] = value.Str(key)
		}
		p.evolve("both", `k => !toy.put({key: k, value: !toy.get("mail/a") ++ !toy.get("priv/a")})`, "toy:**")
		p.evolve("where", `k => !toy.put({key: if !toy.get("priv/a") == "" then k ++ "x" else k, value: !toy.get("mail/a")})`, "toy:**")
		p.evolve("move", `k => !toy.move({from: k[0], to: k[1]})`, "toy:**")
		p.evolve("leak", `k => !toy.send({to: "a", text: !toy.get(k)})`, "toy:**")
		return p
	}
	p := start(t, mail)
	p.fails("both", `"open/b"`, fault.Denied, "may not keep what depends on priv there")
	p.fails("where", `"open/b"`, fault.Denied, "may not keep what depends on priv there")
	p = start(t, mail, priv)
	p.gives("both", `"open/b"`, "null")
	p.count(journal.StoreTainted, 2)
	p.fails("leak", `"open/b"`, fault.Denied, "depends on mail and priv")
	p = start(t, mail, strings.Replace(priv, "taint", "ask", 1))
	p.fails("both", `"open/b"`, fault.Denied, "may not keep what depends on priv there")
	p = start(t, `{"to":"toy.put:open/**","argument":"value","not_from":["mail","priv"],"else":"taint"}`)
	p.fails("where", `"open/b"`, fault.Denied, "may not keep what depends on priv there")
	// One end of a move isn't both.
	p = start(t, `{"to":"toy.move:open/**","not_from":["mail","priv"],"else":"taint"}`)
	p.gives("move", `["mail/a","open/b"]`, "null")
	p.fails("leak", `"open/b"`, fault.Denied, "mail")
	p.fails("move", `["open/b","other/b"]`, fault.Denied, "may not keep what depends on mail there")
	p.fails("move", `["mail/a","other/b"]`, fault.Denied, "may not keep")
	// What a place takes on while it is moved from.
	p = start(t, mail)
	p.evolve("copy", `k => !toy.put({key: k, value: !toy.get("mail/a")})`, "toy:**")
	p.moving = func() {
		p.mu.Unlock()
		defer p.mu.Lock()
		p.gives("copy", `"open/a"`, "null")
	}
	p.gives("move", `["open/a","other/b"]`, "null")
	p.fails("leak", `"other/b"`, fault.Denied, "mail")
	// Also where its server ends meanwhile.
	p = start(t, mail)
	p.evolve("copy", `k => !toy.put({key: k, value: !toy.get("mail/a")})`, "toy:**")
	move := p.evolve("move", `k => !toy.move({from: k[0], to: k[1]})`, "toy:**")
	const from = `["open/a","other/b"]`
	r := p.broker.Begin(p.tools.Snapshot(), bounds(move, "r", from))
	p.moving = func() {
		p.mu.Unlock()
		defer p.mu.Lock()
		p.gives("copy", `"open/a"`, "null")
		r.Abandon()
	}
	drive(t, r, move, from)
	rec, err := run.ReadRecord(p.memory, "r")
	must.NoError(t, err)
	r, err = p.broker.Resume(p.tools.Snapshot(), bounds(move, "r", from), rec)
	must.NoError(t, err)
	if _, f := drive(t, r, move, from); f == nil || f.Kind != fault.OutcomeUnknown {
		t.Errorf("what was moved when its server ended is told as %v", f)
	}
	p.fails("leak", `"other/b"`, fault.Denied, "mail")
}

// TestFlowMoves: what a place takes on while something is moved from it the other place has at once, since nobody may be left
// to tell. Nothing is recorded where no store takes a label on.
func TestFlowMoves(t *testing.T) {
	t.Parallel()
	for _, rules := range []string{taintOpen, toSend} {
		p := newPosted(t, rules, run.Options{})
		p.evolve("copy", `k => try(!toy.put({key: k, value: !toy.get("secret/a")}))`, "toy:**")
		p.evolve("move", `k => !toy.move({from: k[0], to: k[1]})`, "toy:**")
		p.evolve("leak", `k => !toy.send({to: !toy.get(k)})`, "toy:**")
		under := 0
		p.moving = func() {
			p.mu.Unlock()
			defer p.mu.Lock()
			state, err := p.broker.Session().State()
			must.NoError(t, err)
			if under = len(state.Moves); rules == toSend {
				return
			}
			p.run(t.Context(), "copy", `"open/a"`)
			p.kept["other/b"] = p.kept["open/a"]
			p.fails("leak", `"other/b"`, fault.Denied, "secret")
			p.kept["third/a"] = value.Str("T")
			p.gives("leak", `"third/a"`, "null")
		}
		p.gives("move", `["open/a","other/b"]`, "null")
		state, err := p.broker.Session().State()
		if err != nil || len(state.Moves) != 0 || under != map[bool]int{true: 1}[rules == taintOpen] {
			t.Errorf("%d were under way, and %v is: %v", under, state.Moves, err)
		}
	}
	// What it took on between the decision and the record.
	p := newPosted(t, taintOpen, run.Options{Limits: run.Limits{Width: 1}})
	p.kept["need"] = value.Unit{}
	p.evolve("move", `k => fst((par(!toy.get("need"), !toy.move({from: k[0], to: k[1]})), 1))`, "toy:**")
	p.evolve("leak", `k => !toy.send({to: !toy.get(k)})`, "toy:**")
	p.needed = func() {
		_, err := p.broker.Session().Taint("toy:open/**", 1)
		must.NoError(t, err)
	}
	p.moving = func() {
		p.mu.Unlock()
		defer p.mu.Lock()
		p.kept["other/b"] = p.kept["open/a"]
		p.fails("leak", `"other/b"`, fault.Denied, "secret")
	}
	p.gives("move", `["open/a","other/b"]`, "[null,null]")
}

// TestFlowTooLong: where a run is too long to follow, what came in counts, and the denial says so.
func TestFlowTooLong(t *testing.T) {
	t.Parallel()
	p := newPosted(t, strings.Replace(toSend, `{"sources"`, `{"steps":1000,"sources"`, 1), run.Options{})
	p.evolve("it", `n => let s = !toy.get("secret/a") in let _ = fold((a, i) => a + i, 0, range(0, n)) in !toy.send({to: "a"})`, "toy:**")
	p.gives("it", "10", "null")
	p.fails("it", "1000", fault.Denied, "too long to tell what this depends on", "a smaller tool")
}

// TestFlowAcrossCalls: labels go through calls, and a denied call is denied to the follower, too.
func TestFlowAcrossCalls(t *testing.T) {
	t.Parallel()
	p := newPosted(t, toSend, run.Options{})
	p.evolve("read", `k => !toy.get(k)`, "toy:**")
	p.evolve("it", `k => let s = @read(k) in let _ = try(call("other" ++ "", 1)) in !toy.send({to: s})`, "toy:**", "call:read", "call:mine/**")
	p.gives("it", `"open/a"`, "null")
	p.fails("it", `"secret/a"`, fault.Denied, "secret is what toy.get gave")
}

// twoLabels is rules of which one is about one label, and one about both.
const twoLabels = `{"sources":[{"of":"toy.get:secret/**","label":"secret"},{"of":"toy.get:other/**","label":"other"}],"rules":[{"to":"toy.send","not_from":"secret"},{"to":"toy.move","not_from":["secret","other"]}]}`

// TestFlowDenialBeside: where what a rule is about decides whether another label comes in, too, a denial has both in either case.
func TestFlowDenialBeside(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{"S", "T"} {
		p := newPosted(t, twoLabels, run.Options{})
		p.kept["other/a"], p.kept["secret/a"] = value.Str("x"), value.Str(secret)
		const code = `x => let s = !toy.get("secret/a") in let to = if s == "S" then !toy.get("other/a") else s in let r = try(!toy.send({to: to})) in !toy.put({key: "open/b", value: has(r, "ok")})`
		p.evolve("it", code, "toy:**")
		p.fails("it", "null", fault.Denied, "may not keep what depends on")
	}
	p := newPosted(t, toSend, run.Options{}) // there is no other
	p.evolve("it", `x => let s = !toy.get("secret/a") in let r = try(!toy.send({to: s})) in !toy.put({key: "open/b", value: has(r, "ok")})`, "toy:**")
	p.gives("it", "null", "null")
}

// TestFlowDenialBesideCopied: code that code_of takes brings in what it was made under, also if that isn't called.
func TestFlowDenialBesideCopied(t *testing.T) {
	t.Parallel()
	for _, test := range [][2]string{{`"b"`, "S"}, {`"b"`, "T"}, {`"b" ++ ""`, "S"}, {`"b" ++ ""`, "T"}} {
		p := newPosted(t, twoLabels, run.Options{})
		p.kept["secret/a"] = value.Str(test[1])
		_, err := p.tools.Evolve(registry.Definition{Name: "b", Code: []byte("x => x"), Text: true, MadeUnder: []string{"other"}}, registry.Edit{})
		must.NoError(t, err)
		p.evolve("it", `x => let s = !toy.get({key: "secret/a", in: "secret/**"}) in let text = if s == "S" then {s: s, c: code_of(`+test[0]+`)} else s in
			let r = try(!toy.send({to: "a", text: text})) in !toy.put({key: "open/b", value: has(r, "ok")})`, "toy.get:secret/**", "toy.send:**", "toy.put:open/**")
		p.fails("it", "null", fault.Denied, "may not keep what depends on")
	}
}

// TestFlowDenialBesideAsked: a limit of questions that is used up brings in what came into runs of other nodes.
func TestFlowDenialBesideAsked(t *testing.T) {
	t.Parallel()
	kinds := asking(t, post)
	for _, secret := range []string{"S", "T"} {
		p := newPosted(t, twoLabels, run.Options{})
		rate := func(context.Context, string, caps.Rate) error { return nil }
		w := newWorldOfKinds(t, kinds, run.Options{Flow: p.broker.Flow(), Asker: inquirer{}, Rate: rate}, func(ctx context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
			if key := asText(field(a.Args, "key")); a.Verb == "get" && key == "open/q" {
				return value.Str(a.Ask(ctx, run.Question{Message: "sure"}).Action), 1, nil
			}
			return value.Str(secret), 1, nil
		}, "toy:**", "ask:**,calls=1")
		w.evolve("it", `x => let _ = if x == 1 then !ask.get("a") else !toy.get({key: "open/q", in: "open/**"}) in let q = !toy.get({key: "open/q", in: "open/**"}) in let s = !toy.get({key: "secret/a", in: "secret/**"}) in
			let to = if s == "S" then q else s in let r = try(!toy.send({to: to})) in !toy.put({key: "open/b", value: has(r, "ok")})`, "toy.get:secret/**", "toy.get:open/**", "toy.send:**", "toy.put:open/**", "ask:**")
		w.fails("it", "null", fault.Denied, "may not keep what depends on")
	}
}

// TestFlowDenialBesideRated: a rate of an eval's list that is used up brings in what had come into other runs.
func TestFlowDenialBesideRated(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{"S", "T"} {
		p := newPosted(t, twoLabels, run.Options{})
		p.world = newWorldOf(t, post, run.Options{Flow: p.broker.Flow()}, func(context.Context, run.Act) (value.Value, int64, *fault.Fault) {
			return value.Str(secret), 1, nil
		}, "toy:secret/**", "toy:other/**", "toy:open/**", "toy.send:**")
		const open = `eval('{ !toy.get({key: "open/a", in: "open/**"}) }, ["toy.get:open/**,rate=1/h"])`
		p.evolve("uses", `x => let o = !toy.get({key: "other/a", in: "other/**"}) in if o == "" then 0 else `+open, "toy.get:other/**", "toy.get:open/**")
		p.gives("uses", "null", `"`+secret+`"`)
		p.evolve("it", `x => let _ = `+open+` in let q = has(try(`+open+`), "ok") in let s = !toy.get({key: "secret/a", in: "secret/**"}) in
			let text = if s == "S" then [s, q] else [s] in let r = try(!toy.send({to: "a", text: text})) in !toy.put({key: "open/b", value: has(r, "ok"), in: "open/**"})`,
			"toy.get:secret/**", "toy.get:open/**", "toy.send:**", "toy.put:open/**")
		p.fails("it", "null", fault.Denied, "may not keep what depends on")
	}
}

// TestFlowAskDeniesParts: that a question is too long tells of all parts of an argument of which a rule is about one, whatever their names.
func TestFlowAskDeniesParts(t *testing.T) {
	t.Parallel()
	m := *post
	m.Operations = slices.Clone(m.Operations)
	for i := range m.Operations {
		if o := &m.Operations[i]; o.Name == "toy.send" {
			o.Params = append(slices.Clone(o.Params), caps.Param{Name: "x.y", Type: "any", Optional: true})
		}
	}
	kinds, err := caps.NewKinds(&m)
	must.NoError(t, err)
	for _, test := range [][2]string{{"text.url", `{to: "a", text: {url: s, body: long}}`}, {"text[].url", `{to: "a", text: [{url: s, body: long}]}`}, {"to", `{to: s, "x.y": long}`}} {
		for _, secret := range []string{"S", "T"} {
			c, err := flow.ParseConfig([]byte(`{"sources":[{"of":"toy.get:secret/**","label":"secret"}],"rules":[{"to":"toy.send","argument":"` + test[0] + `","not_from":"secret","else":"ask"}]}`))
			must.NoError(t, err)
			rules, err := flow.Compile(c, kinds, nil)
			must.NoError(t, err)
			w := newWorldOfKinds(t, kinds, run.Options{Flow: rules, AskFlow: sayYes}, func(context.Context, run.Act) (value.Value, int64, *fault.Fault) {
				return value.Str(secret), 1, nil
			}, "toy:**")
			w.evolve("it", `x => let s = !toy.get("secret/a") in let long = join(map(_ => "x", range(0, if s == "S" then 30000 else 1)), "\n") in
				let r = try(!toy.send(`+test[1]+`)) in !toy.put({key: "open/b", value: has(r, "ok")})`, "toy:**")
			w.fails("it", "null", fault.Denied, "may not keep what depends on")
		}
	}
}
