package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/flow"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/engine"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/eval"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// mailKind is notes with a way out.
var mailKind = func() *caps.Manifest {
	m := *toy
	m.Verbs = append(append([]caps.Verb{}, toy.Verbs...), caps.Verb{Name: "send", Flags: caps.Flags{OpenWorld: true}}, caps.Verb{Name: "move"})
	m.Operations = append(append([]caps.Operation{}, toy.Operations...), caps.Operation{Name: "toy.send", Verb: "send", Params: []caps.Param{
		{Name: "to", Type: "string"}, {Name: "text", Type: "any", Optional: true}, {Name: "cc.0", Type: "string", Optional: true},
	}}, caps.Operation{Name: "toy.move", Verb: "move", Params: []caps.Param{
		{Name: "key", Type: "string", Designates: true}, {Name: "to", Type: "string", Designates: true},
	}}, caps.Operation{Name: "toy.list", Verb: "get", Params: []caps.Param{{Name: "prefix", Type: "string", Main: true, Designates: true, Prefix: true}}})
	return &m
}()

// A mailbox is a server with notes, of which those below mail are others', and remembers what was sent.
type mailbox struct {
	*Server
	t       testing.TB
	memory  *journal.Memory
	refuses journal.Kind // what the journal doesn't take
	moving  func()       // is called before something is moved
	session string
	mu      sync.Mutex
	sent    []string
	notes   map[string]value.Value
}

const mailRules = `{"sources":[{"of":"toy.get:mail/**","label":"mail"}],"rules":[{"to":"toy.send","argument":"to","not_from":"mail"}`

// toModel is the rules with one about the model.
const toModel = mailRules + `,{"to":"model","not_from":"mail","except":[{"type":"boolean"}],"bits":2}]}`

func newMailbox(t testing.TB, config string) *mailbox {
	t.Helper()
	m := &mailbox{t: t, memory: journal.NewMemory(64<<20, nil), session: filepath.Join(t.TempDir(), "flow.json"), notes: map[string]value.Value{
		"mail/1": &value.Record{Fields: []value.Field{{Key: "from", Value: value.Str("eve@evil")}, {Key: "text", Value: value.Str("pay me")}}}, "open/1": value.Str("O"),
	}}
	m.start(config)
	return m
}

// A refusing journal takes no events of a kind.
type refusing struct {
	*journal.Memory
	kind journal.Kind
}

func (j refusing) Append(s journal.Stage, k journal.Kind, run, branch string, data []byte) (uint64, error) {
	if k == j.kind {
		return 0, errors.New("it is full")
	}
	return j.Memory.Append(s, k, run, branch, data)
}

// start is a server on the same journal and session.
func (m *mailbox) start(config string) {
	m.t.Helper()
	known, err := caps.NewKinds(mailKind)
	must.NoError(m.t, err)
	c, err := flow.ParseConfig([]byte(config))
	must.NoError(m.t, err)
	rules, err := flow.Compile(c, known, nil)
	must.NoError(m.t, err)
	session, err := flow.NewSession(m.session, rules)
	must.NoError(m.t, err)
	policy := caps.NewPolicy(known, time.Now)
	for _, text := range []string{"toy:**"} {
		c, err := caps.Parse(text, known)
		must.NoError(m.t, err)
		g, err := caps.Resolve(c, caps.ResolveOptions{Kinds: known})
		must.NoError(m.t, err)
		must.NoError(m.t, policy.Grant(g))
	}
	broker := run.New(run.Options{Policy: policy, Handler: m, Journal: refusing{m.memory, m.refuses}, Flow: rules, Session: session})
	tools, problems, err := registry.Open(run.Log(m.memory), policy)
	if err != nil || len(problems) > 0 {
		m.t.Fatal(err, problems)
	}
	m.Server = New(Options{Broker: broker, Registry: tools})
}

func (*mailbox) Prepare(*caps.Grant) {}

func (m *mailbox) Perform(_ context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	args := a.Args.(*value.Record)
	field := func(name string) value.Value {
		i := slices.IndexFunc(args.Fields, func(f value.Field) bool { return f.Key == name })
		if i < 0 {
			return nil
		}
		return value.Force(args.Fields[i].Value)
	}
	key, _ := field("key").(value.Str)
	switch a.Verb {
	case "put":
		m.notes[string(key)] = field("value")
	case "move":
		to, _ := field("to").(value.Str)
		m.notes[string(to)] = m.notes[string(key)]
		m.mu.Unlock()
		defer m.mu.Lock()
		m.moving()
	case "send":
		text, _ := journal.AppendValue(nil, args, 1<<20)
		m.sent = append(m.sent, string(text))
	default:
		if prefix, ok := field("prefix").(value.Str); ok {
			return value.Texts(slices.DeleteFunc(slices.Sorted(maps.Keys(m.notes)), func(key string) bool { return !strings.HasPrefix(key, string(prefix)) })), 10, nil
		}
		if v, ok := m.notes[string(key)]; ok {
			return v, 10, nil
		}
		return nil, 0, fault.New(fault.EffectFailed, "there is no such note")
	}
	return value.Unit{}, 1, nil
}

func (m *mailbox) evolve(name, code string) {
	m.t.Helper()
	succeed(m.t, m.Server, "evolve", string(wire.Encode(map[string]any{"name": name, "code": code, "capabilities": []string{"toy:**"}})))
}

// label is what the model was shown, as it is on file.
func (m *mailbox) label() string { return strings.Join(m.state().Label, " ") }

// state is what lasts of the model's session.
func (m *mailbox) state() flow.SessionState {
	m.t.Helper()
	state, err := m.broker.Session().State()
	must.NoError(m.t, err)
	return state
}

// newShown is a mailbox whose model was shown the mail, by its tool read.
func newShown(t *testing.T) *mailbox {
	t.Helper()
	m := newMailbox(t, mailRules+"]}")
	m.evolve("read", `k => !toy.get(k)`)
	succeed(t, m.Server, "run", `{"tool":"read","input":"mail/1"}`)
	if m.label() != "mail" {
		t.Fatal("the model wasn't shown the mail")
	}
	return m
}

// TestSessionLabel: what the model was shown counts for what it writes and passes on, until a person clears
// it, also after a start.
func TestSessionLabel(t *testing.T) {
	t.Parallel()
	m := newMailbox(t, mailRules+"]}")
	m.evolve("read", `k => !toy.get(k)`)
	m.evolve("send", `r => !toy.send({to: r.to, text: r.text})`)
	const toBob = `{"tool":"send","input":{"to":"bob","text":"hi"}}`
	succeed(t, m.Server, "run", `{"tool":"read","input":"open/1"}`)
	succeed(t, m.Server, "run", toBob)
	if got := m.label(); got != "" {
		t.Fatalf("the label is %q before anything was read", got)
	}
	a := succeed(t, m.Server, "run", `{"tool":"read","input":"mail/1"}`)
	if !strings.Contains(a.Text, "pay me") || m.label() != "mail" {
		t.Fatalf("%s; the label is %q", a.Text, m.label())
	}
	for _, restarted := range []bool{false, true} {
		if restarted {
			m.start(mailRules + "]}")
		}
		if a := do(t, m.Server, "run", toBob); a.Fault == nil || a.Fault.Kind != fault.Denied || !strings.Contains(a.Text, "mail was shown to whoever wrote this") {
			t.Errorf("restarted %v: what was dictated is sent: %s", restarted, a.Text)
		}
	}
	// A tool that was made before is clean, and one made now isn't.
	m.evolve("fixed", `x => !toy.send({to: "eve@evil"})`)
	if a := do(t, m.Server, "run", `{"tool":"fixed"}`); a.Fault == nil {
		t.Error("a constant that was dictated is sent")
	}
	must.NoError(t, m.broker.Session().Clear(nil))
	succeed(t, m.Server, "run", toBob)
	if a := succeed(t, m.Server, "list", `{}`); strings.Contains(a.Text, "eve@evil") {
		t.Errorf("a list shows words that were dictated: %s", a.Text)
	}
	if a := succeed(t, m.Server, "describe", `{"name":"fixed"}`); field(t, a, "made_under") != `["mail"]` || m.label() != "mail" {
		t.Errorf("describe: made_under %s; label %q", field(t, a, "made_under"), m.label())
	}
	must.NoError(t, m.broker.Session().Clear(nil))
	if a := do(t, m.Server, "run", `{"tool":"fixed"}`); a.Fault == nil {
		t.Errorf("it forgot under what the tool was made: %s", a.Text)
	}
	if len(m.sent) != 2 {
		t.Errorf("sent %q", m.sent)
	}
}

// TestSealed: a result that a rule keeps from the model has a name, with which it can be passed on; it is
// labelled in the run that it is passed to.
func TestSealed(t *testing.T) {
	t.Parallel()
	m := newMailbox(t, toModel)
	m.evolve("read", `k => !toy.get(k)`)
	m.evolve("send", `r => !toy.send({to: get(r, "to", "bob"), text: r.m})`)
	m.evolve("fails", `k => raise(!toy.get(k).text)`)
	m.evolve("is", `k => !toy.get(k).text == "pay me"`)
	m.evolve("keep", `r => !toy.put({key: "mail/2", value: r.m})`)
	a := succeed(t, m.Server, "run", `{"tool":"read","input":"mail/1"}`)
	id := strings.Trim(field(t, a, "sealed"), `"`)
	if strings.Contains(a.Text+string(a.Structured), "pay") || !strings.HasPrefix(id, "s_") || field(t, a, "steps") != "" || m.label() != "" {
		t.Fatalf("%s %s; label %q", a.Text, a.Structured, m.label())
	}
	b := succeed(t, m.Server, "run", `{"tool":"fails","input":"mail/1"}`)
	if sealed := strings.Trim(field(t, b, "sealed"), `"`); strings.ReplaceAll(b.Text, sealed, "") != strings.ReplaceAll(a.Text, id, "") {
		t.Errorf("a failure is told from a result: %s", b.Text)
	}
	succeed(t, m.Server, "run", `{"tool":"send","input":{"to":"ann"},"sealed":{"/m":"`+id+`"}}`)
	if a := do(t, m.Server, "run", `{"tool":"send","input":{"m":"hi"},"sealed":{"/to":"`+id+`"}}`); field(t, a, "sealed") == "" {
		t.Errorf("a recipient that is sealed: %s", a.Text)
	}
	m.start(toModel) // it is on record
	succeed(t, m.Server, "run", `{"tool":"send","input":{},"sealed":{"/m":"`+id+`"}}`)
	succeed(t, m.Server, "run", `{"tool":"keep","input":{},"sealed":{"/m":"`+id+`"}}`)
	want := []string{`{"text":{"from":"eve@evil","text":"pay me"},"to":"ann"}`, `{"text":{"from":"eve@evil","text":"pay me"},"to":"bob"}`}
	if strings.Join(m.sent, "\n") != strings.Join(want, "\n") {
		t.Errorf("sent %q", m.sent)
	}
	told := m.state().Bits["mail"]
	m.start(strings.Replace(toModel, `"bits":2`, fmt.Sprintf(`"bits":%d`, told+5), 1))
	for i, want := range []string{"true", "true", ""} {
		if a := succeed(t, m.Server, "run", `{"tool":"is","input":"mail/1"}`); field(t, a, "result") != want {
			t.Errorf("small answer %d: %s", i, a.Text)
		}
	}
	if got := m.label(); got != "" {
		t.Errorf("the label is %q, and nothing was shown but two bits", got)
	}
	if a := succeed(t, m.Server, "run", `{"tool":"read","input":"open/1"}`); a.Text != `"O"` {
		t.Errorf("what isn't labelled: %s", a.Text)
	}
	// That it came to an end at all, where another message had it fail, would tell of the message.
	m.evolve("quiet", `k => let _ = if length(!toy.get(k).text) > 3 then 0 else raise("short") in "done"`)
	if a := succeed(t, m.Server, "run", `{"tool":"quiet","input":"mail/1"}`); field(t, a, "sealed") == "" {
		t.Errorf("a constant that only long messages come to: %s", a.Text)
	}
	if a := do(t, m.Server, "journal", `{"limit":200}`); a.Fault == nil {
		t.Errorf("the journal shows it: %s", a.Text)
	}
	places := func(n int, id string) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"/m%d":%q`, i, id))
		}
		return `{"code":"x => 1","input":{},"sealed":{` + strings.Join(all, ",") + `}}`
	}
	succeed(t, m.Server, "run", places(100, id))
	for wrong, want := range map[string]string{
		`{"tool":"send","input":{},"sealed":{"/m":"s_none"}}`:    "there is no sealed result",
		`{"tool":"send","input":3,"sealed":{"/m":"` + id + `"}}`: "places in the input",
		places(101, id): "at most 100 places",
		strings.Replace(places(100, id), id, "s_none", 1): "there is no sealed result \"s_none\"",
	} {
		if a := do(t, m.Server, "run", wrong); a.Fault == nil || !strings.Contains(a.Text, want) {
			t.Errorf("%.100s: %.300s", wrong, a.Text)
		}
	}
}

// TestSealedBits: that a result is sealed which may have been shown is a bit, too: else one guess after the other would
// cost nothing until it is right. That what is never shown is sealed tells nothing.
func TestSealedBits(t *testing.T) {
	t.Parallel()
	m := newMailbox(t, mailRules+`,{"to":"model","not_from":"mail","except":[{"type":"boolean"}],"bits":4}]}`)
	m.evolve("texts", `k => map(x => !toy.get("mail/1"), [1])`)
	m.evolve("guess", `x => if (!toy.get("mail/1")).from == x then true else raise("no")`)
	for i, want := range []struct{ call, result string }{
		{`"texts","input":0`, ""}, {`"texts","input":0`, ""}, {`"guess","input":"eve@evil"`, "true"}, {`"guess","input":"a"`, ""}, {`"guess","input":"b"`, ""}, {`"guess","input":"eve@evil"`, ""},
	} {
		if a := do(t, m.Server, "run", `{"tool":`+want.call+`}`); field(t, a, "result") != want.result {
			t.Errorf("answer %d: %s", i, a.Text)
		}
	}
	if got := m.state().Bits["mail"]; got != 4 {
		t.Errorf("it was told %d bits", got)
	}
}

// TestSealedFree: a result that is sealed costs its bit where its type isn't known, too, and by each rule that might have let
// it be shown.
func TestSealedFree(t *testing.T) {
	t.Parallel()
	const bits = `,"except":[{"type":"boolean"}],"bits":4}`
	for name, c := range map[string]struct{ rules, code string }{
		"a value of an unknown type": {`{"to":"model","not_from":"mail"` + bits, `x => if (!toy.get("mail/1")).from == x then get_in({v: true}, ["v"], 0) else raise("no")`},
		"a boolean, or a function":   {`{"to":"model","not_from":"mail"` + bits, `x => if (!toy.get("mail/1")).from == x then true else (y => 1)`},
		"a rule before without bits": {`{"to":"model","not_from":"web"},{"to":"model","not_from":"mail"` + bits, `x => if (!toy.get("mail/1")).from == x then true else length(!toy.get("web/1").text) >= 0`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMailbox(t, strings.Replace(mailRules, `"label":"mail"}`, `"label":"mail"},{"of":"toy.get:web/**","label":"web"}`, 1)+","+c.rules+`]}`)
			m.evolve("guess", c.code)
			for range 3 {
				do(t, m.Server, "run", `{"tool":"guess","input":"a"}`)
			}
			if got := m.state().Bits["mail"]; got != 3 {
				t.Errorf("three wrong guesses told %d bits", got)
			}
		})
	}
}

// TestSealedSection: that what follows a plan is sealed costs a bit, as any sealed result does.
func TestSealedSection(t *testing.T) {
	t.Parallel()
	m := newMailbox(t, mailRules+`,{"to":"model","not_from":"mail","except":[{"type":"boolean"}],"bits":8}]}`)
	m.evolve("send", `k => let text = !toy.get(k).text, sent = !toy.send({to: "bob", text: text}) in if sent == 0 then true else !toy.send({to: "ann", text: text})`)
	plan := strings.Trim(field(t, succeed(t, m.Server, "run", `{"tool":"send","input":"mail/1","plan":true}`), "plan"), `"`)
	before := m.state().Bits["mail"]
	if a := do(t, m.Server, "run", `{"plan":"`+plan+`"}`); field(t, a, "sealed") == "" || len(m.sent) != 1 {
		t.Fatalf("it sent %v: %s", m.sent, a.Text)
	}
	if got := m.state().Bits["mail"] - before; got != 1 {
		t.Errorf("it told %d bits", got)
	}
}

// TestSealedTwice: the bits of an answer that two rules except count once; one that a rule seals costs the other's bit.
func TestSealedTwice(t *testing.T) {
	t.Parallel()
	m := newMailbox(t, mailRules+`,{"to":"model","not_from":"mail","except":[{"type":"boolean"}],"bits":7},{"to":"model","not_from":"mail","except":[{"type":"boolean"},{"type":"integer","minimum":0,"maximum":1}],"bits":7}]}`)
	m.evolve("is", `k => !toy.get(k).text == "pay me"`)
	m.evolve("number", `k => if !toy.get(k).text == "pay me" then 1 else 0`)
	for i, want := range []string{"", "true", "true", ""} {
		a := succeed(t, m.Server, "run", `{"tool":"`+[]string{"number", "is", "is", "is"}[i]+`","input":"mail/1"}`)
		if field(t, a, "result") != want {
			t.Errorf("answer %d: %s", i, a.Text)
		}
	}
}

// TestSealedSpelling: a number that a rule excepts has one spelling: otherwise it tells more than its bits.
func TestSealedSpelling(t *testing.T) {
	t.Parallel()
	m := newMailbox(t, mailRules+`,{"to":"model","not_from":"mail","except":[{"type":"integer","minimum":0,"maximum":1},{"enum":[0.5,"1.00",[2]]}]}]}`)
	for code, shown := range map[string]string{"1": "1", "1.0": "", "1.00": "", "0.5": "0.5", "0.50": "", `"1.00"`: `"1.00"`, "[2]": "[2]", "[2.0]": ""} {
		m.evolve("gives", `k => if length(!toy.get(k).text) > 0 then `+code+` else 0`)
		if a := succeed(t, m.Server, "run", `{"tool":"gives","input":"mail/1"}`); field(t, a, "result") != shown {
			t.Errorf("%s: %s", code, a.Text)
		}
	}
}

// TestSealedPlanned: a plan, which does what only reads at once, follows the labels of sealed inputs as the run does.
func TestSealedPlanned(t *testing.T) {
	t.Parallel()
	m := newMailbox(t, mailRules+`,{"to":"toy.get:out/**","not_from":"mail"},{"to":"model","not_from":"mail"}]}`)
	m.evolve("from", `k => !toy.get(k).from`)
	m.evolve("tells", `r => !toy.get("out/" ++ r.m)`)
	id := strings.Trim(field(t, succeed(t, m.Server, "run", `{"tool":"from","input":"mail/1"}`), "sealed"), `"`)
	for _, plan := range []string{"false", "true"} {
		do(t, m.Server, "run", `{"tool":"tells","input":{},"sealed":{"/m":"`+id+`"},"plan":`+plan+`}`)
		asked, _, err := m.memory.Read(journal.Query{Kind: journal.EffectRequested, Limit: 100})
		if must.NoError(t, err); strings.Contains(string(asked[len(asked)-1].Data), "eve@evil") {
			t.Errorf("with \"plan\":%s it sends what is sealed: %s", plan, asked[len(asked)-1].Data)
		}
		plans, _, err := m.memory.Read(journal.Query{Kind: journal.PlanMade, Limit: 100})
		if must.NoError(t, err); len(plans) > 0 && !strings.Contains(string(plans[0].Data), `\"under\":[\"mail\"]`) {
			t.Errorf("the plan isn't made under what is sealed: %s", plans[0].Data)
		}
	}
}

// TestSealedPlanDone: that a plan was done has another name each time that it is asked for, as what one gives has that goes on.
func TestSealedPlanDone(t *testing.T) {
	t.Parallel()
	m := newMailbox(t, toModel)
	m.evolve("send", `k => !toy.send({to: "bob", text: !toy.get(k).text})`)
	plan := string(wire.Encode(map[string]any{"plan": strings.Trim(field(t, succeed(t, m.Server, "run", `{"tool":"send","input":"mail/1","plan":true}`), "plan"), `"`)}))
	names := map[string]int{}
	for range 4 {
		names[field(t, do(t, m.Server, "run", plan), "sealed")]++
	}
	if len(names) != 4 || names[""] > 0 || len(m.sent) != 1 {
		t.Errorf("it is done %d times, and told as %v", len(m.sent), names)
	}
}

// TestSealedShapes: the only field of a record is labelled as what the input is read as.
func TestSealedShapes(t *testing.T) {
	t.Parallel()
	m := newMailbox(t, toModel)
	m.notes["mail/key"], m.notes["mail/two"] = &value.Record{Fields: []value.Field{{Key: "pay me", Value: value.NewInt(1)}}}, value.FromSlice([]value.Value{value.NewInt(1), value.Str("pay me")})
	m.evolve("read", `k => !toy.get(k)`)
	for i, c := range []struct{ note, code, place string }{
		{"key", `x => keys(x)`, "/record"}, {"key", `x => keys(x.a)`, "/a/record"}, {"key", `(x, y) => keys(y)`, "/y/record"},
		{"two", `x => snd(x)`, "/pair"}, {"two", `x => x.a`, "/a/pair"},
	} {
		id := strings.Trim(field(t, succeed(t, m.Server, "run", `{"tool":"read","input":"mail/`+c.note+`"}`), "sealed"), `"`)
		name := fmt.Sprintf("it%d", i)
		m.evolve(name, c.code)
		input := "{}"
		if strings.Count(c.place, "/") > 1 {
			input = `{"x":1,"a":{},"y":{}}`
		}
		if a := do(t, m.Server, "run", `{"tool":"`+name+`","input":`+input+`,"sealed":{"`+c.place+`":"`+id+`"}}`); a.Fault != nil || field(t, a, "sealed") == "" {
			t.Errorf("%s of a sealed %s: %s", c.code, c.place, a.Text)
		}
	}
}

// TestSealedSizes: how large a sealed result is, how deep and of what it is made, isn't told by whether it can be passed on.
func TestSealedSizes(t *testing.T) {
	must.SkipRacing(t)
	t.Parallel()
	m := newMailbox(t, toModel)
	m.evolve("size", `r => length(to_json(r.m))`)
	var said []string
	kept := 0
	for i, code := range []string{
		`k => !toy.get(k).text`, `k => repeat_text(!toy.get(k).text, 300000)`, `k => fold((a, i) => [a], !toy.get(k).text, range(0, 20000))`,
		`k => [pow(10, 300000), !toy.get(k).text]`, `k => map(i => i, range(0, length(!toy.get(k).text) * 60000))`,
	} {
		m.evolve("gives", code)
		id := strings.Trim(field(t, succeed(t, m.Server, "run", `{"tool":"gives","input":"mail/1"}`), "sealed"), `"`)
		one, err := run.FindSealed(t.Context(), m.memory, id)
		if must.NoError(t, err); engine.Unpassed(one) {
			if kept++; one.Text == "" || strings.Contains(one.Text, "passed on") {
				t.Errorf("a person is shown of %s %.300s", code, one.Text)
			}
		}
		for _, call := range []string{`{"tool":"size","input":{},"sealed":{"/m":"ID"}}`, `{"code":"x => 1","input":{},"sealed":{"/a":"ID","/b":"ID","/c":"ID","/d":"ID","/e":"ID","/f":"ID","/g":"ID","/h":"ID","/i":"ID","/j":"ID"}}`} {
			a := do(t, m.Server, "run", strings.ReplaceAll(call, "ID", id))
			text := a.Text
			if sealed := strings.Trim(field(t, a, "sealed"), `"`); sealed != "" {
				text = strings.ReplaceAll(text, sealed, "")
			}
			if said = append(said, text); i > 0 && text != said[len(said)-3] {
				t.Errorf("%s: of %s\n%.300s\nand before\n%.300s", call, code, text, said[len(said)-3])
			}
		}
	}
	if kept == 0 || kept == 5 {
		t.Errorf("%d of them are kept as texts alone", kept)
	}
}

// TestSealedPadding: an input that can't be read with what is sealed in it is passed on with something else in its place,
// which tells no size.
func TestSealedPadding(t *testing.T) {
	must.SkipRacing(t)
	t.Parallel()
	m := newMailbox(t, toModel)
	m.evolve("size", `r => length(to_json(r.m))`)
	var said []string
	for _, times := range []string{"1", "300"} {
		m.evolve("gives", `k => repeat_text(!toy.get(k).text, `+times+`)`)
		id := strings.Trim(field(t, succeed(t, m.Server, "run", `{"tool":"gives","input":"mail/1"}`), "sealed"), `"`)
		a := do(t, m.Server, "run", `{"tool":"size","input":{"pad":"`+strings.Repeat("x", 16<<20-1000)+`"},"sealed":{"/m":"`+id+`"}}`)
		said = append(said, strings.ReplaceAll(a.Text, strings.Trim(field(t, a, "sealed"), `"`), ""))
	}
	if said[0] != said[1] || !strings.Contains(said[0], "it is sealed") {
		t.Errorf("it is told %q", said)
	}
}

// TestSealedShortage: where there is no room now to read an input with what is sealed in it, nothing is run, least of all
// with something else in its place, and the answer is sealed.
func TestSealedShortage(t *testing.T) {
	m := newMailbox(t, toModel)
	m.evolve("gives", `k => map(i => i, range(0, length(!toy.get(k).text) * 20000))`)
	m.evolve("send", `r => !toy.send({to: "bob", text: type_of(r.m)})`)
	id := strings.Trim(field(t, succeed(t, m.Server, "run", `{"tool":"gives","input":"mail/1"}`), "sealed"), `"`)
	core.SetPool(eval.PoolHeld() + 2<<20)
	defer core.SetPool(eval.DefaultPool)
	call := `{"tool":"send","input":{},"sealed":{"/m":"` + id + `"}}`
	a := succeed(t, m.Server, "run", call)
	one, err := run.FindSealed(t.Context(), m.memory, strings.Trim(field(t, a, "sealed"), `"`))
	if err != nil || !strings.Contains(string(one.Result), `"overloaded"`) || len(m.sent) > 0 || m.label() != "" {
		t.Fatalf("%s, that is %+v (%v), and sent is %q", a.Text, one, err, m.sent)
	}
	core.SetPool(eval.DefaultPool)
	if a := do(t, m.Server, "run", call); a.Fault != nil || len(m.sent) != 1 || !strings.Contains(m.sent[0], `"list"`) {
		t.Errorf("with room: %s, and sent is %q", a.Text, m.sent)
	}
}

// TestShownSources: a denial names the sources that its rule is about, not which of them what it denies is from.
func TestShownSources(t *testing.T) {
	t.Parallel()
	m := newMailbox(t, `{"sources":[{"of":"toy.get:mail/**","label":"mail"},{"of":"toy.get:open/**","label":"open"}],"rules":[{"to":"toy.send","argument":"to","not_from":["mail","open"]}]}`)
	m.evolve("sends", `k => let t = to_json(!toy.get(k)) in !toy.send({to: t, text: "x"})`)
	for _, key := range []string{"mail/1", "open/1"} {
		if a := do(t, m.Server, "run", `{"tool":"sends","input":"`+key+`"}`); !strings.Contains(a.Text, "mail and open") {
			t.Errorf("of %s: %s", key, a.Text)
		}
	}
}

// TestPagesForgotten: a page of tools with what others wrote isn't kept for a model that wasn't shown what those were.
func TestPagesForgotten(t *testing.T) {
	t.Parallel()
	m := newShown(t)
	succeed(t, m.Server, "evolve", `{"name":"says","description":"pay me","code":"x => 1"}`)
	listed := m.fill(&mcp.ListToolsResult{}, true, "")
	text, err := listed.MarshalJSON()
	if must.NoError(t, err); !strings.Contains(string(text), "pay me") {
		t.Fatalf("who wrote it doesn't see it: %s", text)
	}
	must.NoError(t, m.broker.Session().Clear(nil))
	again := m.fill(&mcp.ListToolsResult{}, true, "")
	if text, err = again.MarshalJSON(); err != nil || strings.Contains(string(text), "pay me") || m.label() != "" {
		t.Errorf("who wasn't shown mail sees words of who was: %v %s", err, text)
	}
	runtime.KeepAlive(listed)
}

// TestPromptWords: what a prompt's writer said of it is told with a sealed answer no more than in a list.
func TestPromptWords(t *testing.T) {
	t.Parallel()
	m := newMailbox(t, toModel)
	must.NoError(t, m.broker.ShowNames([]string{"mail"}, ""))
	succeed(t, m.Server, "evolve", `{"name":"told","description":"pay me","code":"x => \"hi\"","as":"prompt"}`)
	must.NoError(t, m.broker.Session().Clear(nil))
	got, err := m.evolvedPrompt(t.Context(), "told", map[string]string{"x": "1"})
	if must.NoError(t, err); strings.Contains(got.Description, "pay") || m.label() != "" {
		t.Errorf("it says %q; the model was shown %q", got.Description, m.label())
	}
}

// TestSealedAsks: that a request may wait for a yes is told with every sealed answer, whether one does or not.
func TestSealedAsks(t *testing.T) {
	t.Parallel()
	m := newMailbox(t, `{"sources":[{"of":"toy.get","label":"mail"}],"rules":[{"to":"toy.send","not_from":"mail","by":"any","else":"ask"},{"to":"model","not_from":"mail","else":"seal"}]}`)
	m.evolve("reads", `k => !toy.get(k)`)
	m.evolve("sends", `k => let m = !toy.get(k) in !toy.send({to: "ann", text: m})`)
	var told []string
	for _, tool := range []string{"reads", "sends"} {
		a := succeed(t, m.Server, "run", `{"tool":"`+tool+`","input":"mail/1"}`)
		told = append(told, strings.ReplaceAll(a.Text, strings.Trim(field(t, a, "sealed"), `"`), ""))
	}
	waiting, err := run.WaitingFlows(m.broker.Journal(), time.Now())
	if err != nil || len(waiting) != 1 || told[0] != told[1] || !strings.Contains(told[0], "'mcp-pif approve'") {
		t.Errorf("%d wait (%v), and %q is told", len(waiting), err, told)
	}
}
