package mcpserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/engine"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/eval"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// An oracle is a plugin whose answers vary within what its manifest says, or, where
// it lies, beyond.
type oracle struct {
	*rand.Rand
	lies bool
}

func (*oracle) Prepare(*caps.Grant) {}

func (o *oracle) Perform(_ context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
	if !o.lies && o.IntN(10) == 0 {
		return nil, 0, &fault.Fault{Kind: fault.EffectFailed, Message: "it doesn't want to"}
	}
	v := o.value(a.Operation.Type, 4)
	for o.lies && a.Operation.Type.Misfit(v) == "" {
		v = o.value(o.typ(2), 4)
	}
	return v, 10, nil
}

var answerKinds = []prim.Kinds{prim.KindInt, prim.KindDec, prim.KindBool, prim.KindString, prim.KindUnit, prim.KindList, prim.KindPair, prim.KindRecord}

// typ makes a type of answers.
func (o *oracle) typ(depth int) *check.Type {
	t := &check.Type{}
	for t.Kinds == 0 {
		for _, k := range answerKinds {
			if o.IntN(6) > 0 || depth == 0 && k&(prim.KindList|prim.KindPair|prim.KindRecord) != 0 {
				continue
			}
			switch t.Kinds |= k; k {
			case prim.KindList:
				t.Item = o.typ(depth - 1)
			case prim.KindPair:
				t.First, t.Second = o.typ(depth-1), o.typ(depth-1)
			case prim.KindRecord:
				for _, key := range []string{"a", "b"} {
					if o.IntN(2) == 0 {
						t.Fields = append(t.Fields, check.Field{Key: key, Type: o.typ(depth - 1), Optional: o.IntN(2) == 0})
					}
				}
				if o.IntN(4) == 0 {
					t.Rest = o.typ(depth - 1)
				}
			}
		}
	}
	return t
}

func (o *oracle) value(t *check.Type, depth int) value.Value {
	var kinds []prim.Kinds
	for _, k := range answerKinds {
		if t.Kinds&k != 0 {
			kinds = append(kinds, k)
		}
	}
	switch kinds[o.IntN(len(kinds))] {
	case prim.KindInt:
		return value.NewInt(int64(o.IntN(20) - 5))
	case prim.KindDec:
		d, _ := value.ParseDec(fmt.Sprintf("%d.25", o.IntN(9)))
		return d
	case prim.KindBool:
		return value.Bool(o.IntN(2) == 0)
	case prim.KindString:
		return value.Str(strings.Repeat("é", o.IntN(4)))
	case prim.KindList:
		var items []value.Value
		for range o.IntN(4) {
			items = append(items, o.value(t.Item, depth-1))
		}
		return value.FromSlice(items)
	case prim.KindPair:
		return &value.Pair{First: o.value(t.First, depth-1), Second: o.value(t.Second, depth-1)}
	case prim.KindRecord:
		r := &value.Record{}
		for _, f := range t.Fields {
			if !f.Optional || o.IntN(2) == 0 {
				r.Fields = append(r.Fields, value.Field{Key: f.Key, Value: o.value(f.Type, depth-1)})
			}
		}
		if t.Rest != nil && o.IntN(2) == 0 {
			r.Fields = append(r.Fields, value.Field{Key: "c", Value: o.value(t.Rest, depth-1)})
		}
		return r
	}
	return value.Unit{}
}

// use is code that does something with a variable of a type; now and then with
// another than that.
func (o *oracle) use(x string, t *check.Type, depth int) string {
	if o.IntN(15) == 0 {
		return []string{x + " + 1", "length(" + x + ")", x + ".a", "fst(" + x + ")", x + ` ++ "!"`, "not(" + x + ")", "sum(" + x + ")"}[o.IntN(7)]
	}
	y := fmt.Sprint("v", depth)
	inside := func(of string, p *check.Type) string {
		if depth == 0 || p == nil {
			return of
		}
		return fmt.Sprintf("(let %s = %s in %s)", y, of, o.use(y, p, depth-1))
	}
	one := func(k prim.Kinds) string {
		switch k {
		case prim.KindInt:
			return []string{x + " + 1", x + " * 2", "to_text(" + x + ")", "if " + x + " > 3 then 1 else 2"}[o.IntN(4)]
		case prim.KindDec:
			return []string{x + " * 2", "to_text(" + x + ")"}[o.IntN(2)]
		case prim.KindBool:
			return []string{"not(" + x + ")", "if " + x + " then 1 else 2"}[o.IntN(2)]
		case prim.KindString:
			return []string{"length(" + x + ")", x + ` ++ "!"`, "upper(" + x + ")"}[o.IntN(3)]
		case prim.KindList:
			if t.Item.Kinds == 0 || o.IntN(3) == 0 {
				return "length(" + x + ")"
			}
			return fmt.Sprintf("map(%s => %s, %s)", y, o.use(y, t.Item, max(0, depth-1)), x)
		case prim.KindPair:
			return inside("fst("+x+")", t.First)
		case prim.KindRecord:
			if len(t.Fields) > 0 {
				f := t.Fields[o.IntN(len(t.Fields))]
				if f.Optional {
					return fmt.Sprintf(`if has(%s, %q) then 1 else 0`, x, f.Key)
				}
				return inside(x+"."+f.Key, f.Type)
			}
			return "keys(" + x + ")"
		}
		return "[" + x + "]"
	}
	var kinds []prim.Kinds
	for _, k := range answerKinds {
		if t.Kinds&k != 0 {
			kinds = append(kinds, k)
		}
	}
	code := one(kinds[len(kinds)-1])
	for _, k := range kinds[:len(kinds)-1] {
		code = fmt.Sprintf("if type_of(%s) == %q then %s else (%s)", x, k.String(), one(k), code)
	}
	return code
}

// asking is a server with operations toy.op0, toy.op1, … that answer what is of
// random types.
func (o *oracle) asking(t *testing.T, n int) (*Server, []*check.Type) {
	t.Helper()
	m := *toy
	m.Operations = nil
	types := make([]*check.Type, n)
	for i := range types {
		types[i] = o.typ(2)
		op := toy.Operations[0]
		op.Name, op.Type = fmt.Sprint("toy.op", i), types[i]
		m.Operations = append(m.Operations, op)
	}
	s, _ := answering(t, &m, o)
	return s, types
}

// answering is a server of a kind of notes, on a store.
func answering(t *testing.T, m *caps.Manifest, h run.Handler) (*Server, *journal.Store) {
	t.Helper()
	kinds, err := caps.NewKinds(m)
	must.NoError(t, err)
	policy := caps.NewPolicy(kinds, time.Now)
	c, err := caps.Parse("toy:notes/**", kinds)
	must.NoError(t, err)
	g, err := caps.Resolve(c, caps.ResolveOptions{Kinds: kinds})
	if err == nil {
		err = policy.Grant(g)
	}
	must.NoError(t, err)
	store, err := journal.Open(filepath.Join(t.TempDir(), "journal.db"), journal.Options{})
	must.NoError(t, err)
	t.Cleanup(func() { store.Close() })
	return New(Options{Broker: run.New(run.Options{Policy: policy, Handler: h, Journal: store})}), store
}

// TestAnswersSound: a tool that is sound by what manifests say of answers never fails
// with type_error or unbound while these hold, gives what its schema says, and fails
// by the plugin's fault where that lies.
func TestAnswersSound(t *testing.T) {
	worlds := must.Full(3, 60)
	const ops, tools, runs = 6, 25, 6
	sound, unsound, failed, lies := 0, 0, 0, 0
	for seed := range worlds {
		o := &oracle{Rand: rand.New(rand.NewPCG(uint64(seed), 9))}
		s, types := o.asking(t, ops)
		succeed(t, s, "evolve", `{"name":"helper","code":"k => !toy.op0(\"notes/a\")","capabilities":["toy.get:notes/**"]}`)
		for range tools {
			i := o.IntN(ops)
			asked := fmt.Sprintf(`!toy.op%d("notes/x")`, i)
			if i == 0 && o.IntN(2) == 0 {
				asked = "@helper(k)"
			}
			code := fmt.Sprintf("k => let x = %s in %s", asked, o.use("x", types[i], 2))
			if o.IntN(4) == 0 {
				code = fmt.Sprintf("k => let x = try(%s) in if has(x, \"ok\") then (let x = x.ok in %s) else 0", asked, o.use("x", types[i], 2))
			}
			succeed(t, s, "evolve", string(wire.Encode(map[string]any{"name": "it", "code": code, "capabilities": []string{"toy:notes/**", "call:helper"}, "draft": true})))
			tool, _ := s.tools.Snapshot().Get("it")
			if !tool.Report().Sound() {
				unsound++
				continue
			}
			sound++
			for range runs {
				o.lies = false
				a := do(t, s, "run", `{"tool":"it","input":1}`)
				switch {
				case a.Fault == nil && !shapeOf(t, tool).Holds(json.RawMessage(a.Text)) && a.Type != string(value.TypePair):
					t.Errorf("%s of %s gives %s, which isn't of %s", code, types[i], a.Text, tool.OutputSchema())
				case a.Fault == nil:
				case a.Fault.Kind == fault.TypeError || a.Fault.Kind == fault.Unbound:
					t.Errorf("%s is sound by %s, and gives %s", code, types[i], a.Text)
				default:
					failed++
				}
			}
			o.lies = true
			if a := do(t, s, "run", `{"tool":"it","input":1}`); a.Fault != nil {
				if lies++; a.Fault.Kind != fault.EffectFailed || !strings.Contains(a.Text, "the plugin's answer can't be used") {
					t.Errorf("%s of %s, of which the plugin lies, gives %s", code, types[i], a.Text)
				}
			} else if !strings.Contains(code, "try") {
				t.Errorf("%s of %s has the answer of a plugin that lies: %s", code, types[i], a.Text)
			}
			o.lies = false
		}
	}
	t.Logf("%d tools are sound and %d aren't; %d runs failed otherwise, %d by lies", sound, unsound, failed, lies)
	if sound < 6*worlds || unsound < worlds || failed < worlds || lies < 5*worlds {
		t.Error("these runs show too little")
	}
}

// A performer is a handler that is a function.
type performer func(a run.Act) value.Value

func (performer) Prepare(*caps.Grant) {}

func (p performer) Perform(_ context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
	return p(a), 10, nil
}

// toyOf is the toy whose get answers what is of a type; "": it says none.
func toyOf(t *testing.T, notation string) *caps.Manifest {
	t.Helper()
	m := *toy
	m.Operations = slices.Clone(toy.Operations)
	if notation != "" {
		var err error
		if m.Operations[0].Type, err = check.ParseAnswer(notation); err != nil {
			t.Fatal(err)
		}
	}
	return &m
}

// TestReplayAnswers: a run whose answer depended on what operations answer is done
// again the same, without a plugin and whatever that says now.
func TestReplayAnswers(t *testing.T) {
	for _, c := range []struct{ typ, arguments, want string }{
		{"int", `{"input":"42"}`, "42"},      // read as the number that it has to be
		{"string", `{"input":"42"}`, `"42"`}, // and as the string
		{"", `{"input":"42"}`, ""},
		{"int", `{"input":7.0}`, "9"},
	} {
		var answer value.Value = value.NewInt(9)
		if c.typ == "string" {
			answer = value.Str("1")
		}
		s, store := answering(t, toyOf(t, c.typ), performer(func(run.Act) value.Value { return answer }))
		succeed(t, s, "evolve", `{"name":"larger","code":"x => max([x, !toy.get(\"notes/a\")])","capabilities":["toy.get:notes/**"]}`)
		succeed(t, s, "evolve", `{"name":"outer","code":"x => @larger(x)","capabilities":["call:larger"]}`)
		for _, tool := range []string{"larger", "outer"} {
			was := do(t, s, tool, c.arguments)
			if c.want != "" && was.Text != c.want {
				t.Errorf("%s by %s gives %s, expected %s", tool, c.typ, was.Text, c.want)
			}
			events, _, err := store.Read(journal.Query{Kind: journal.RunStarted, Limit: 1, Last: true})
			if err != nil || len(events) != 1 {
				t.Fatal(err)
			}
			if says := strings.Contains(string(events[0].Data), `"answers":{"toy.get":"`+c.typ+`","toy.get(":"string | {key: string, part?: int}"}`); says != (c.typ != "") {
				t.Errorf("%s by %s: the record is %s", tool, c.typ, events[0].Data)
			}
			rec, err := run.ReadRecord(store, events[0].Run)
			must.NoError(t, err)
			for _, now := range []*caps.Policy{nil, s.broker.Policy()} {
				tools, _, err := registry.Open(run.Log(store), now)
				must.NoError(t, err)
				then, err := tools.At(rec.AsOf)
				must.NoError(t, err)
				again, v := engine.Replay(t.Context(), engine.ReplayOptions{Replay: run.NewReplay(rec, false), Tools: then})
				if v.Verdict != run.Identical || again.Text != recorded(was).Text {
					t.Errorf("%s by %q %s gave %s, and again %s: %s", tool, c.typ, c.arguments, was.Text, again.Text, v.Text)
				}
			}
		}
	}
}

// TestExamplesHeld: an example's outcome is one that the operation can give.
func TestExamplesHeld(t *testing.T) {
	m := toyOf(t, "{n: int, of?: string}")
	s, _ := answering(t, m, performer(func(run.Act) value.Value { return value.Unit{} }))
	evolve := func(outcome string) wire.Answer {
		return do(t, s, "evolve", `{"name":"n","code":"k => (!toy.get(k)).n","capabilities":["toy.get:notes/**"],
			"examples":[{"input":"notes/a","expect":1,"effects":[{"op":"toy.get",`+outcome+`}]}]}`)
	}
	for _, outcome := range []string{`"value":{"n":1}`, `"value":{"n":1,"of":"x"}`} {
		if a := evolve(outcome); a.Fault != nil {
			t.Errorf("%s: %s", outcome, a.Text)
		}
	}
	for outcome, says := range map[string]string{
		`"value":{"n":1,"x":2}`:       "a record with a member that wasn't said",
		`"value":{"n":{"dec":"1.5"}}`: "n: dec where int was said",
		`"value":{"of":"x"}`:          "a record without n",
		`"value":{"n":1,"of":1}`:      "of: int where string was said",
		`"value":"it is no note"`:     "string where {n: int, of?: string} was said",
	} {
		a := evolve(outcome)
		if a.Fault == nil || a.Fault.Kind != fault.Refused || !strings.Contains(a.Text, says) || !strings.Contains(a.Text, "toy.get gives {n: int, of?: string}") {
			t.Errorf("%s: %s", outcome, a.Text)
		}
	}
	if a := evolve(`"error":"effect_failed"`); a.Fault == nil || !strings.Contains(a.Text, "effect_failed") {
		t.Errorf("a failure: %s", a.Text)
	}
}

// TestAnswersShown: the type stands where an operation is explained, and a tool's
// type and schema are made of it.
func TestAnswersShown(t *testing.T) {
	s, _ := answering(t, toyOf(t, "{n: int}"), performer(func(run.Act) value.Value { return value.Unit{} }))
	if a := succeed(t, s, "help", `{"name":"toy.get"}`); !strings.Contains(a.Text, "of the type {n: int}") {
		t.Errorf("help: %s", a.Text)
	}
	if got := string(s.capabilities()); !strings.Contains(got, "of the type {n: int}") {
		t.Errorf("pif://capabilities: %s", got)
	}
	a := succeed(t, s, "evolve", `{"name":"note","code":"k => !toy.get(k)","capabilities":["toy.get:notes/**"]}`)
	var made struct{ Type string }
	if err := json.Unmarshal(a.Structured, &made); err != nil || !strings.HasSuffix(made.Type, "->{toy.get} {n: int}") {
		t.Errorf("%+v, %v", made, err)
	}
	note, _ := s.tools.Snapshot().Get("note")
	if got := string(note.OutputSchema()); !strings.Contains(got, `"properties":{"n":{"type":"integer"}}`) || !strings.Contains(got, `"required":["n"]`) {
		t.Errorf("its schema is %s", got)
	}
	if a := succeed(t, s, "describe", `{"name":"note","detail":true}`); !strings.Contains(string(a.Structured), `"certificate":"checked"`) {
		t.Errorf("%s", a.Structured)
	}
}

// shownContents is content items in a line.
func shownContents(t testing.TB, list []mcp.Content) string {
	t.Helper()
	var all []string
	for _, c := range list {
		switch c := c.(type) {
		case *mcp.TextContent:
			all = append(all, "text "+c.Text)
		case *mcp.ImageContent:
			all = append(all, fmt.Sprintf("image %s %d", c.MIMEType, len(c.Data)))
		case *mcp.AudioContent:
			all = append(all, fmt.Sprintf("audio %s %d", c.MIMEType, len(c.Data)))
		case *mcp.EmbeddedResource:
			all = append(all, fmt.Sprintf("resource %s %s%s", c.Resource.URI, c.Resource.Text, c.Resource.Blob))
		default:
			t.Errorf("%T", c)
		}
	}
	return strings.Join(all, ", ")
}

// TestContents: a tool answers with content items, images of any size among them, where
// its result is a record of them and nothing else.
func TestContents(t *testing.T) {
	w := newRecordedWorld(t, 1)
	cs := session(t, w.server, nil)
	large := base64.StdEncoding.EncodeToString(make([]byte, 60_000))
	for code, want := range map[string]string{
		`u => {content: [{type: "text", text: "a"}, {type: "image", data: "aGk=", mimeType: "image/png"}]}`: "text a, image image/png 2",
		`u => {content: [{type: "audio", data: "aGk=", mimeType: "audio/wav"}]}`:                            "audio audio/wav 2",
		`u => {content: [{type: "resource", resource: {uri: "a://b", text: "x"}}]}`:                         "resource a://b x",
		`u => {content: [{type: "resource", resource: {uri: "a://b", mimeType: "a/b", blob: "aGk="}}]}`:     "resource a://b hi",
		`u => {content: [{type: "image", data: "` + large + `", mimeType: "image/png"}]}`:                   "image image/png 60000",
		`u => {content: [{type: "image", data: "not base64", mimeType: "image/png"}]}`:                      `text {"content"`,
		`u => {content: [{type: "image", data: "aGk=", mimeType: "text/plain"}]}`:                           `text {"content"`,
		`u => {content: [{type: "text", text: "a", more: 1}]}`:                                              `text {"content"`,
		`u => {content: [{type: "text", text: "a"}], more: 1}`:                                              `text {"content"`,
		`u => {content: [{type: "resource", resource: {uri: "a://b", text: "x", blob: "aGk="}}]}`:           `text {"content"`,
		`u => {content: []}`: `text {"content":[]}`,
		`u => {content: [{type: "text", text: "a"}, "b"]}`: `text {"content"`,
	} {
		w.evolve("t", code)
		for _, c := range [][2]string{{"t", `{}`}, {"run", `{"tool":"t"}`}} {
			res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: c[0], Arguments: json.RawMessage(c[1])})
			must.NoError(t, err)
			if got := shownContents(t, res.Content); !strings.HasPrefix(got, want) {
				t.Errorf("%.80s: %.80s, expected %s", code, got, want)
			}
			if _, v := w.replay(w.record(w.newest())); v.Verdict != run.Identical {
				t.Errorf("%.80s: the replay: %+v", code, v)
			}
		}
	}
	// Inline code and what isn't a tool's own stays JSON.
	if a := succeed(t, w.server, "run", `{"code":"{content: [{type: \"text\", text: \"a\"}]}"}`); a.Contents != nil {
		t.Errorf("inline code answered with %v", a.Contents)
	}
}

// TestOwnContents: prompts have messages of other content and described arguments, and
// resources have contents with a type and an address of their own.
func TestOwnContents(t *testing.T) {
	s := New(Options{})
	cs := session(t, s, nil)
	for _, arguments := range []string{
		`{"name":"p","as":"prompt","code":"a => [{role: \"user\", text: a.topic ++ get(a, \"tone\", \"!\")}, {role: \"assistant\", content: {type: \"image\", data: \"aGk=\", mimeType: \"image/png\"}}]","input_schema":{"type":"object","properties":{"topic":{"type":"string","description":"what about","maxLength":5},"tone":{"type":"string","description":"how"}},"required":["topic"]}}`,
		`{"name":"one","as":"prompt","code":"topic => topic ++ \"?\"","input_schema":{"type":"object","properties":{"input":{"type":"string","description":"what about"}}}}`,
		`{"name":"csv","as":"resource","code":"{mimeType: \"text/csv\", text: \"a,b\"}"}`,
		`{"name":"both","as":"resource","code":"{contents: [{uri: \"data://x\", mimeType: \"image/png\", blob: \"aGk=\"}, {text: \"t\"}]}"}`,
		`{"name":"plain","as":"resource","code":"{text: \"t\"}"}`,
	} {
		succeed(t, s, "evolve", arguments)
	}
	list, err := cs.ListPrompts(t.Context(), nil)
	must.NoError(t, err)
	var arguments []string
	for _, p := range list.Prompts[4:] {
		for _, a := range p.Arguments {
			arguments = append(arguments, fmt.Sprintf("%s %s: %s %v", p.Name, a.Name, a.Description, a.Required))
		}
	}
	if got, want := strings.Join(arguments, ", "), "one topic: what about true, p tone: how false, p topic: what about true"; got != want {
		t.Errorf("the arguments are %s, expected %s", got, want)
	}
	res, err := cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "p", Arguments: map[string]string{"topic": "cats"}})
	if err != nil || len(res.Messages) != 2 || shownContents(t, []mcp.Content{res.Messages[0].Content, res.Messages[1].Content}) != "text cats!, image image/png 2" {
		t.Errorf("%+v, %v", res, err)
	}
	if _, err = cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "p", Arguments: map[string]string{"topic": "too long"}}); err == nil || !strings.Contains(err.Error(), "declared") {
		t.Errorf("an argument longer than is declared: %v", err)
	}
	for uri, want := range map[string]string{
		"pif://published/csv":   `[{"uri":"pif://published/csv","mimeType":"text/csv","text":"a,b"}]`,
		"pif://published/both":  `[{"uri":"data://x","mimeType":"image/png","blob":"aGk="},{"uri":"pif://published/both","mimeType":"text/plain","text":"t"}]`,
		"pif://published/plain": `[{"uri":"pif://published/plain","mimeType":"application/json","text":"{\"text\":\"t\"}"}]`,
	} {
		res, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		must.NoError(t, err)
		if got := string(wire.Encode(res.Contents)); got != want {
			t.Errorf("%s: %s, expected %s", uri, got, want)
		}
	}
}

// TestPoolIsGivenBack: what runs hold is given back when they end, also where
// the collector drops what was kept for later runs. A server that lives for
// months sees many collections.
func TestPoolIsGivenBack(t *testing.T) {
	core.SetPool(eval.PoolHeld() + 2<<20)
	defer core.SetPool(eval.DefaultPool)
	s := New(Options{})
	for i := range 200 {
		a := s.Call(t.Context(), Call{Tool: "run", Arguments: json.RawMessage(`{"code":[1]}`)})
		if a.Fault != nil {
			t.Fatalf("run %d: %v", i, a.Fault)
		}
		runtime.GC()
		runtime.GC()
	}
}

// shapeOf is the output schema of a tool, as results are held against it.
func shapeOf(t *testing.T, tool *registry.Tool) *check.Shape {
	t.Helper()
	shape, err := check.ParseShape(tool.OutputSchema())
	must.NoError(t, err)
	return shape
}
