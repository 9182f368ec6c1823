package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/inputs"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/prim/gen"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// TestFixedOrder: the eight tools are always there, in their order, and those
// names are the ones that no evolved tool may have.
func TestFixedOrder(t *testing.T) {
	want := "evolve run list help describe history journal retire"
	if got := strings.Join(wire.ToolNames(), " "); got != want {
		t.Errorf("%s, expected %s", got, want)
	}
	s := New(Options{})
	for _, name := range wire.ToolNames() {
		if a := do(t, s, "evolve", fmt.Sprintf(`{"name":%q,"code":1}`, name)); a.Fault == nil || a.Fault.Kind != "refused" {
			t.Errorf("%s could be evolved: %s", name, a.Text)
		}
	}
}

// TestHelpCalls: every call that help shows of the server's own tools is one
// that works, in the order in which they stand.
func TestHelpCalls(t *testing.T) {
	s := New(Options{})
	calls := 0
	for i := range wire.Tools {
		text := do(t, s, "help", fmt.Sprintf(`{"name":%q}`, wire.Tools[i].Name)).Text
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if !strings.HasPrefix(line, `{"name":`) {
				continue
			}
			var c struct {
				Name      string
				Arguments json.RawMessage
			}
			if err := json.Unmarshal([]byte(line), &c); err != nil {
				t.Errorf("help %s: %s: %v", wire.Tools[i].Name, line, err)
				continue
			}
			calls++
			if a := do(t, s, c.Name, string(c.Arguments)); a.Fault != nil {
				// What retire took away can't be retired again.
				if c.Name == "retire" && (a.Fault.Kind == "no_tool" || a.Fault.Kind == "conflict") {
					continue
				}
				t.Errorf("help %s shows %s\n which gives %s", wire.Tools[i].Name, line, a.Text)
			}
		}
	}
	if calls < 14 {
		t.Errorf("help shows %d calls", calls)
	}
}

// TestHistoryPages: the pages of a history are all of it, each version once.
func TestHistoryPages(t *testing.T) {
	s := New(Options{})
	for i := range 45 {
		if a := do(t, s, "evolve", fmt.Sprintf(`{"name":"n","code":%d}`, i)); a.Fault != nil {
			t.Fatal(a.Text)
		}
		if i == 20 {
			do(t, s, "retire", `{"name":"n"}`)
		}
	}
	var seen []string
	arguments := `{"name":"n","limit":7}`
	for arguments != "" {
		a := do(t, s, "history", arguments)
		var page struct {
			Versions []struct {
				Version int
				Kind    string
			}
			Next struct{ Arguments json.RawMessage }
		}
		if err := json.Unmarshal(a.Structured, &page); err != nil || a.Fault != nil {
			t.Fatal(a.Text, err)
		}
		for _, v := range page.Versions {
			seen = append(seen, fmt.Sprint(v.Version, v.Kind[:1]))
		}
		arguments = string(page.Next.Arguments)
	}
	var want []string
	for v := 45; v > 0; v-- {
		if v == 21 {
			want = append(want, "21r")
		}
		want = append(want, fmt.Sprint(v, "e"))
	}
	for i := range want {
		want[i] = strings.ReplaceAll(want[i], " ", "")
	}
	for i := range seen {
		seen[i] = strings.ReplaceAll(seen[i], " ", "")
	}
	if !slices.Equal(seen, want) {
		t.Errorf("the pages have\n%v, expected\n%v", seen, want)
	}
}

// TestJournalPages: going back from the newest events, and on from the oldest,
// shows each once, also where an answer has no room for a page.
func TestJournalPages(t *testing.T) {
	s := New(Options{Limits: Limits{Result: 4000}})
	for i := range 40 {
		do(t, s, "evolve", fmt.Sprintf(`{"name":"n%d","code":%q}`, i, strings.Repeat("x", 200)))
	}
	for start, want := range map[string]int{
		`{"kind":"tool"}`: 40, `{"kind":"tool","after":0}`: 40, `{"kind":"tool","limit":3}`: 40,
		`{"after":5,"before":26,"limit":3}`: 20, `{"kind":"tool","after":0,"before":31}`: 30,
	} {
		seen := map[uint64]bool{}
		for arguments := start; arguments != ""; {
			a := do(t, s, "journal", arguments)
			var page struct {
				Events []struct{ Seq uint64 }
				Next   struct{ Arguments json.RawMessage }
			}
			if err := json.Unmarshal(a.Structured, &page); err != nil || a.Fault != nil {
				t.Fatal(a.Text, err)
			}
			if len(a.Structured) > 6000 || len(page.Events) == 0 {
				t.Fatalf("%s gave %d bytes, %d events", arguments, len(a.Structured), len(page.Events))
			}
			for i, e := range page.Events {
				if seen[e.Seq] || i > 0 && e.Seq <= page.Events[i-1].Seq {
					t.Errorf("%s: event %d comes twice, or out of order", arguments, e.Seq)
				}
				seen[e.Seq] = true
			}
			arguments = string(page.Next.Arguments)
		}
		if len(seen) != want {
			t.Errorf("from %s there are %d events", start, len(seen))
		}
	}
}

// TestListPages: tools/list comes in pages, with the fixed tools first, and each
// tool once.
func TestListPages(t *testing.T) {
	s := New(Options{})
	for i := range 2 * mostListed {
		must.Succeed(t)(s.Registry().Evolve(registry.Definition{Name: fmt.Sprintf("t%05d", i), Code: []byte("1")}, registry.Edit{}))
	}
	cs := session(t, s, nil)
	var names []string
	var params mcp.ListToolsParams
	for pages := 0; pages < 5; pages++ {
		list, err := cs.ListTools(t.Context(), &params)
		must.NoError(t, err)
		for _, tool := range list.Tools {
			names = append(names, tool.Name)
		}
		if params.Cursor = list.NextCursor; params.Cursor == "" {
			break
		}
	}
	if len(names) != 8+2*mostListed || !slices.IsSorted(names[8:]) || !slices.Equal(names[:8], wire.ToolNames()) {
		t.Errorf("%d tools, the first %v", len(names), names[:10])
	}
	if _, err := cs.ListTools(t.Context(), &mcp.ListToolsParams{Cursor: "b"}); err == nil {
		t.Error("any cursor is taken")
	}
}

// TestOthersChanges: what another registry on the same journal changes is seen by
// the next call, and told to clients that ask for nothing.
func TestOthersChanges(t *testing.T) {
	j := journal.NewMemory(1<<20, nil)
	policy := caps.NewPolicy(nil, time.Now)
	s := New(Options{Broker: run.New(run.Options{Policy: policy, Journal: j})})
	other, _, err := registry.Open(run.Log(j), policy)
	must.NoError(t, err)
	changed := make(chan struct{}, 100)
	cs := session(t, s, &mcp.ClientOptions{ToolListChangedHandler: func(_ context.Context, _ *mcp.ToolListChangedRequest) { changed <- struct{}{} }})
	evolve := func(name, code string) {
		t.Helper()
		must.Succeed(t)(other.Evolve(registry.Definition{Name: name, Code: []byte(code)}, registry.Edit{}))
	}
	evolve("five", "5")
	if text, _ := ask(t, cs, "five", `{}`); text != "5" {
		t.Errorf("%s, expected 5", text)
	}
	wait.For(t, changed, "a notification of the first change")
	evolve("six", "6")
	wait.For(t, changed, "a notification of the second change") // by looking, since nothing was asked
	list, err := cs.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 10 {
		t.Errorf("%v, %v", list, err)
	}
	must.Succeed(t)(other.Retire("five", registry.Edit{}))
	if list, err = cs.ListTools(t.Context(), nil); err != nil || len(list.Tools) != 9 {
		t.Errorf("%v, %v", list, err)
	}
	if text, _ := ask(t, cs, "five", `{}`); !strings.Contains(text, "no_tool") {
		t.Errorf("%s, expected no_tool", text)
	}
}

// TestExpectIsRead: what an example expects is read by the type of the tool's result.
func TestExpectIsRead(t *testing.T) {
	s := New(Options{})
	for _, c := range []struct{ code, expect, differs string }{
		{"n => {pair: [n, n * 1]}", `{"pair":[1,1]}`, `{"pair":[1,2]}`},
		{"n => {pair: [n, n * 1]}", `{"record":{"pair":[1,1]}}`, `{"pair":[1,1],"a":1}`},
		{"n => (n, n * 1)", `[1,1]`, `[1,2]`},
		{"n => [{dec: to_text(n * 1)}]", `[{"dec":"1"}]`, `["1"]`},
		{"n => n * 1", `"1"`, `"2"`},
		{"n => to_text(n * 1)", `"1"`, `1`},
		{"n => if n > 5 then 1 else (m => n * m)", `"<function>"`, `"function"`},
		{"n => '{n + 1}", `{"add":[{"var":"n"},1]}`, `{"add":[1,1]}`},
		{"n => if n > 2 then n else continue(n + 1)", `{"continue":{"input":2}}`, `{"continue":{"input":3}}`},
	} {
		evolve := `{"name":"t","code":` + quoteJSON(c.code) + `,"examples":[{"input":1,"expect":%s}]}`
		succeed(t, s, "evolve", fmt.Sprintf(evolve, c.expect))
		if a := do(t, s, "evolve", fmt.Sprintf(evolve, c.differs)); a.Fault == nil || !strings.Contains(a.Text, "is expected") {
			t.Errorf("%s: %s", c.code, a.Text)
		}
	}
}

// TestLimitsOfExamples: the time of a run bounds examples, and no more is said of
// large ones than is read.
func TestLimitsOfExamples(t *testing.T) {
	s := New(Options{Limits: Limits{MaxSteps: 1000}})
	a := do(t, s, "evolve", `{"name":"n","code":"n => fold(p => fst(p) + 1, 0, range(0, n))","examples":[{"input":1000,"expect":1000}]}`)
	if a.Fault == nil || !strings.Contains(a.Text, "1000 steps in all") {
		t.Error(a.Text)
	}
	// Two that are within it, and together aren't.
	counting := `{"name":"n","code":"n => if n == 0 then 0 else self(n - 1)","examples":[{"input":60000,"expect":0}%s]}`
	if a := do(t, New(Options{}), "evolve", fmt.Sprintf(counting, "")); a.Fault != nil {
		t.Error(a.Text)
	}
	a = do(t, New(Options{}), "evolve", fmt.Sprintf(counting, `,{"input":60001,"expect":0}`))
	if a.Fault == nil || !strings.Contains(a.Text, "example 2 of 2") || !strings.Contains(a.Text, "1000000 steps in all") {
		t.Error(a.Text)
	}
	long := strings.Repeat("x", 10_000)
	a = do(t, s, "evolve", fmt.Sprintf(`{"name":"n","code":"n => n","examples":[{"input":%q,"expect":1}]}`, long))
	if a.Fault == nil || len(a.Text) > 4000 {
		t.Errorf("%d bytes are said", len(a.Text))
	}
	// One of its own size, among many, takes only its part.
	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprintf(`{"input":%d,"expect":%d}`, i, i))
	}
	a = do(t, New(Options{}), "evolve", `{"name":"n","code":"n => n","examples":[`+strings.Join(many, ",")+`]}`)
	if got := field(t, a, "examples"); got != "100" {
		t.Errorf("%s examples: %s", got, a.Text)
	}
	a = do(t, New(Options{}), "evolve", `{"name":"n","code":"n => n","examples":[`+strings.Join(append(many, many[0]+" "), ",")+`,{"input":"more","expect":"more"}]}`)
	if a.Fault == nil || a.Fault.Kind != "invalid_request" {
		t.Errorf("101 examples: %s", a.Text)
	}
}

// TestUnkept: what the store says is for the operator; a model isn't shown where
// that is.
func TestUnkept(t *testing.T) {
	j := journal.NewMemory(1<<20, func(e *journal.Event) error {
		if e.Kind == journal.ToolEvolved {
			return fmt.Errorf("the store /home/ada/state/journal.db: %w", journal.ErrFull)
		}
		return nil
	})
	s := New(Options{Broker: run.New(run.Options{Policy: caps.NewPolicy(nil, time.Now), Journal: j})})
	a := do(t, s, "evolve", `{"name":"n","code":1}`)
	if a.Fault == nil || a.Fault.Kind != "refused" || strings.Contains(string(a.Structured)+a.Text, "ada") || !strings.Contains(a.Text, "the disk is full") {
		t.Errorf("%s", a.Text)
	}
	if a := do(t, s, "run", `{"code":{"add":[1,2]}}`); a.Text != "3" {
		t.Errorf("%s, expected 3", a.Text)
	}
}

// TestShownEvents: a model sees of an event what it can use: no record made for
// replays, no hash of the chain, and of a failure its kind, however long it is.
func TestShownEvents(t *testing.T) {
	s := New(Options{})
	do(t, s, "run", `{"code":{"add":[1,2]}}`)
	do(t, s, "evolve", fmt.Sprintf(`{"name":"n","code":"n => n","examples":[{"input":%q,"expect":1}]}`, strings.Repeat("x", 1000)))
	a := do(t, s, "journal", `{}`)
	for _, hidden := range []string{`"call"`, `"limits"`, `"semantics"`, `"answer"`, `"prev"`, `"hash"`} {
		if strings.Contains(a.Text, hidden) {
			t.Errorf("%s is shown: %s", hidden, a.Text)
		}
	}
	refused := do(t, s, "journal", `{"kind":"tool.refused"}`)
	if !strings.Contains(refused.Text, `"error":{"kind":"refused","message":"example 1`) {
		t.Errorf("the kind isn't shown: %s", refused.Text)
	}
	if strings.Count(refused.Text, "x") > 400 {
		t.Errorf("a failure is shown whole: %s", refused.Text)
	}
}

// A shelfOfSchemas is what a client has read of tools/list, to hold calls and
// answers against.
type shelfOfSchemas map[string][2]*jsonschema.Resolved

// listSchemas reads all pages, as a client does, and holds each schema against what
// every client takes: flat, of an object, without references.
func listSchemas(t *testing.T, cs *mcp.ClientSession) shelfOfSchemas {
	t.Helper()
	shelf := shelfOfSchemas{}
	for tool, err := range cs.Tools(t.Context(), nil) {
		must.NoError(t, err)
		var both [2]*jsonschema.Resolved
		for i, s := range []any{tool.InputSchema, tool.OutputSchema} {
			raw, err := json.Marshal(s)
			must.NoError(t, err)
			portable(t, tool.Name, raw)
			var schema jsonschema.Schema
			if err := json.Unmarshal(raw, &schema); err != nil {
				t.Fatalf("%s: %v\n%s", tool.Name, err, raw)
			}
			if both[i], err = schema.Resolve(nil); err != nil {
				t.Fatalf("%s: %v\n%s", tool.Name, err, raw)
			}
			if i == 0 {
				for name := range schema.Properties {
					if !regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`).MatchString(name) {
						t.Errorf("%s: no client takes the argument %q", tool.Name, name)
					}
				}
			}
		}
		shelf[tool.Name] = both
	}
	return shelf
}

// portable holds a schema against what clients agree on.
func portable(t *testing.T, tool string, raw []byte) {
	t.Helper()
	var root map[string]any
	must.NoError(t, json.Unmarshal(raw, &root))
	if root["type"] != "object" || root["anyOf"] != nil {
		t.Errorf("%s: the root is no plain object: %s", tool, raw)
	}
	known := map[string]bool{"type": true, "properties": true, "required": true, "additionalProperties": true, "items": true, "anyOf": true, "description": true, "minItems": true, "maxItems": true, "enum": true, "minimum": true}
	var walk func(v map[string]any, deep int)
	walk = func(v map[string]any, deep int) {
		if deep > 20 {
			t.Errorf("%s: too deep: %s", tool, raw)
			return
		}
		for key, part := range v {
			if !known[key] {
				t.Errorf("%s: the keyword %q: %s", tool, key, raw)
			}
			switch part := part.(type) {
			case map[string]any:
				if key == "properties" {
					for _, p := range part {
						walk(p.(map[string]any), deep+1)
					}
				} else {
					walk(part, deep+1)
				}
			case []any:
				for _, p := range part {
					if p, ok := p.(map[string]any); ok {
						walk(p, deep+1)
					}
				}
			}
		}
	}
	walk(root, 0)
}

// fits calls a tool as a client does that validates, and says whether that
// succeeded.
func (shelf shelfOfSchemas) fits(t *testing.T, cs *mcp.ClientSession, tool, arguments string) (*mcp.CallToolResult, bool) {
	t.Helper()
	res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
	if err != nil {
		t.Fatalf("%s %.300s: %v", tool, arguments, err)
	}
	if err := shelf[tool][1].Validate(res.StructuredContent); err != nil {
		got, _ := json.Marshal(res.StructuredContent)
		t.Errorf("%s %.300s: %v\n%.500s", tool, arguments, err, got)
	}
	return res, !res.IsError
}

// takes reports whether arguments are of a tool's schema.
func (shelf shelfOfSchemas) takes(t *testing.T, tool, arguments string) error {
	t.Helper()
	var v any
	must.NoError(t, json.Unmarshal([]byte(arguments), &v))
	return shelf[tool][0].Validate(v)
}

// TestAnswersFitSchemas: whatever a tool gives, or doesn't, a client that holds it
// against what tools/list said lets it through; and of a tool whose types are
// known the call that is shown for it is one that its schema lets through, and
// doesn't fail by its types.
func TestAnswersFitSchemas(t *testing.T) {
	must.SkipRacing(t)
	s := New(Options{Limits: Limits{MaxSteps: 20_000}})
	given := map[string][]string{}
	evolve := func(name, code string, with ...string) {
		if a := do(t, s, "evolve", fmt.Sprintf(`{"name":%q,"code":%s,"draft":true}`, name, code)); a.Fault == nil {
			given[name] = with
		}
	}
	files, err := filepath.Glob("../../../core/testdata/corpus/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	for _, file := range files {
		eachLine(t, file, func(line []byte) {
			var c struct {
				Term, Input json.RawMessage
				Tool        string
				Tools       map[string]json.RawMessage
			}
			must.NoError(t, json.Unmarshal(line, &c))
			if len(c.Tools) > 0 {
				c.Term = c.Tools[c.Tool]
			}
			if len(c.Term) > 0 && len(c.Term) < 10_000 && len(c.Input) < 10_000 {
				evolve(fmt.Sprintf("c%d", len(given)), string(c.Term), string(c.Input))
			}
		})
	}
	evolve("fields", `"x => if has(x, \"b\") then x.a + x.b else x.a"`)
	evolve("inputField", `"x => x.input + 1"`)
	evolve("anyRecord", `"x => product(values(x))"`)
	n := must.Full(50, 5000)
	for i := range n {
		r := rand.New(rand.NewPCG(uint64(i), 3))
		o := gen.Options{Records: true, Wrong: []int{0, 20}[r.IntN(2)], Tool: true}
		code, input := gen.Function(r.IntN, 1+r.IntN(60), o)
		if r.IntN(2) == 0 {
			o.Tool = false
			second, _ := gen.Function(r.IntN, 1+r.IntN(60), o)
			code = fmt.Sprintf(`{"lam":["one","two"],"body":[{"app":[%s,{"var":"one"}]},{"app":[%s,{"var":"two"}]}]}`, second, second)
		}
		evolve(fmt.Sprintf("g%d", i), code, input)
	}
	cs := session(t, s, nil)
	shelf := listSchemas(t, cs)
	runs, shown, sound := 0, 0, 0
	for name, with := range given {
		if shelf[name][0] == nil {
			t.Fatalf("%s isn't listed", name)
		}
		calls := []string{`{"input":"5"}`, `{"input":[1,2.5,{"a":null}]}`, `{"one":"5","two":"5"}`, `{"one":[1,2.5],"two":7}`}
		for _, in := range with {
			if json.Valid([]byte(in)) {
				calls = append(calls, `{"input":`+in+`}`)
			}
		}
		tool, _ := s.Registry().Snapshot().Get(name)
		if input := s.Suggest(tool, s.tools.Snapshot()).Input; input != nil {
			src := inputs.Source{Tool: tool, Report: tool.Report(), ByName: true}
			var c struct{ Arguments json.RawMessage }
			must.NoError(t, json.Unmarshal(src.Call(input), &c))
			if err := shelf.takes(t, name, string(c.Arguments)); err != nil {
				t.Errorf("%s takes no %s: %v\n%s\n%s", tool.Source, c.Arguments, err, tool.InputSchema(), tool.Report().Type)
			}
			res, _ := shelf.fits(t, cs, name, string(c.Arguments))
			shown++
			if tool.Report().Sound() {
				sound++
				got, _ := json.Marshal(res.StructuredContent)
				var failed struct{ Error struct{ Kind fault.Kind } }
				must.NoError(t, json.Unmarshal(got, &failed))
				if slices.Contains([]fault.Kind{fault.TypeError, fault.Unbound, fault.InvalidRequest}, failed.Error.Kind) {
					t.Errorf("%s\nof %s fails on %s: %s", tool.Source, tool.Report().Type, c.Arguments, got)
				}
			}
		}
		for _, arguments := range calls {
			if _, ok := shelf.fits(t, cs, name, arguments); ok {
				runs++
			}
		}
	}
	t.Logf("%d tools, %d results, %d calls shown, %d of them of tools whose types are known", len(given), runs, shown, sound)
	if len(given) < n+300 || runs < n || sound < n/2 {
		t.Error("too few: the test shows little")
	}
}

// TestSpecialResults: what isn't simply a value fits the schema, too.
func TestSpecialResults(t *testing.T) {
	s := New(Options{Limits: Limits{Result: 20_000}})
	for _, c := range []struct{ name, code, arguments, has string }{
		{"int", `n => n / 2`, `{"input":8}`, `"result":4`},
		{"large", `n => if n == 0 then 1 else n * self(n - 1)`, `{"input":30}`, `"result":265252859812191058636308480000000`},
		{"larger", `n => if n <= 1 then [1] else [n * head(self(n - 1))]`, `{"input":500}`, `"text":"[1220136825`},
		{"largest", `n => let f = k => if k == 0 then 10 else 1 in fold(p => fst(p) * 10, 1, range(0, n))`, `{"input":5000}`, `"text":"{\"int\":\"1000000`},
		{"largeDec", `n => n * 1e400`, `{"input":2}`, `holds a number of over 300 digits`},
		{"smallDec", `n => n * 1e-400`, `{"input":2}`, `"type":"dec"`},
		{"dec", `n => n * 1.5`, `{"input":2.5}`, `"result":3.75`},
		{"function", `x => y => x / y`, `{"x":8,"y":2}`, `"result":4`},
		{"givesOne", `x => if x == 1 then (y => y) else (y => x)`, `{"input":8}`, `"result":"\u003cfunction\u003e"`},
		{"functions", `x => [x, y => x / y]`, `{"input":8}`, `"result":[8,"\u003cfunction\u003e"]`},
		{"continues", `n => if n <= 0 then "done" else continue(n - 1)`, `{"input":8}`, `"next":{`},
		{"long", `n => range(0, n)`, `{"input":10000}`, `"preview":"[0,1,2`},
		{"deep", `n => fold(p => [fst(p)], 0, range(0, n))`, `{"input":2000}`, `"preview":"[[[`},
		{"fails", `n => 1 / n`, `{"input":0}`, `"kind":"division_by_zero"`},
		{"raises", `n => raise({a: n})`, `{"input":0}`, `"kind":"raised"`},
		{"record", `n => {pair: n / 2}`, `{"input":6}`, `"result":{"record":{"pair":3}}`},
		{"maybe", `n => if n == 0 then {a: 1} else {b: "x"}`, `{"input":6}`, `"result":{"b":"x"}`},
		{"proto", `n => {"__proto__": n / 2}`, `{"input":6}`, `"result":{"__proto__":3}`},
		{"quoted", `n => '{n + 1}`, `{"input":6}`, `"result":{"add"`},
		{"outside", `x => if equal(type_of(x), "record") then x else if x then x else x ++ "b"`, `{"input":true}`, `"text":"true"`},
		{"inside", `x => if equal(type_of(x), "record") then x else if x then x else x ++ "b"`, `{"input":{"a":1}}`, `"result":{"a":1}`},
		{"unit", `n => null`, `{}`, `"result":null`},
		{"any", `n => n`, `{"input":{"dec":"1.50"}}`, `"result":1.5`},
		{"tries", `n => try(1 / n)`, `{"input":0}`, `"result":{"error":{`},
	} {
		succeed(t, s, "evolve", fmt.Sprintf(`{"name":%q,"code":%s}`, c.name, quoteJSON(c.code)))
		cs := session(t, s, nil)
		res, _ := listSchemas(t, cs).fits(t, cs, c.name, c.arguments)
		if got, _ := json.Marshal(res.StructuredContent); !strings.Contains(string(got), c.has) && !(c.name == "large" && strings.Contains(string(got), `"result":2.65`)) {
			t.Errorf("%s gives %.300s, want %s", c.name, got, c.has)
		}
	}
}

// TestBareInteger: a result that is an integer is a number, however large.
func TestBareInteger(t *testing.T) {
	s := New(Options{})
	succeed(t, s, "evolve", `{"name":"factorial","code":"n => if n <= 1 then 1 else n * self(n - 1)"}`)
	a := s.Call(t.Context(), Call{Tool: "factorial", Arguments: json.RawMessage(`{"input":500}`), Tools: s.tools.Snapshot()})
	var got struct{ Result json.RawMessage }
	if json.Unmarshal(a.Structured, &got) != nil || string(got.Result) != a.Text || len(a.Text) != 1135 {
		t.Errorf("500! is %.100s…", a.Structured)
	}
}

func TestLongNumber(t *testing.T) {
	nines := strings.Repeat("9", 400)
	for src, want := range map[string]bool{
		nines: true, "-" + nines: true, `[1,{"a":` + nines + `}]`: true, `"` + nines + `"`: false, `["\"",` + nines + `]`: true,
		`["\\","` + nines + `"]`: false, strings.Repeat("9", 308): false, strings.Repeat("9", 309): true,
		`{"dec":"` + strings.Repeat("9", 5000) + `"}`: false, `{"int":"` + strings.Repeat("9", 5000) + `"}`: true, `[1,2]`: false, ``: false,
		nines + ".5": true, "0." + nines: false, "[0." + nines + "," + nines + "]": true, `"`: false,
	} {
		if wire.HasLongNumber([]byte(src)) != want {
			t.Errorf("%.60s: %t", src, !want)
		}
	}
}

var update = flag.Bool("update", false, "write the table of sizes into cmd/README.md")

// What a sized answer may have, in bytes, without printed code.
const (
	usualAnswer   = 600 // nine of ten
	largestAnswer = 1200
)

// tasks is the programs in some folders, by their names.
func tasks(t *testing.T, dirs ...string) map[string]string {
	t.Helper()
	programs := map[string]string{}
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.*"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no programs in %s: %v", dir, err)
		}
		for _, file := range files {
			name, ext, _ := strings.Cut(filepath.Base(file), ".")
			code, err := os.ReadFile(file)
			must.NoError(t, err)
			switch {
			case ext == "txtar":
				for _, f := range txtar.Parse(code).Files {
					if name, ok := strings.CutSuffix(f.Name, ".pif"); ok {
						programs[name] = string(f.Data)
					}
				}
			case dir == "testdata/tried":
				programs["my_"+name] = string(code)
			}
		}
	}
	return programs
}

// A sizing is how long answers are, in bytes of the text without printed code.
type sizing struct{ all []int }

func (s *sizing) add(t *testing.T, a wire.Answer) {
	n := len(a.Text)
	for _, more := range a.More {
		n += len(more)
	}
	var shown map[string]json.RawMessage
	if json.Unmarshal(a.Structured, &shown) == nil && a.Fault == nil {
		n -= len(shown["text"]) // printed code
		if string(shown["description"]) == string(shown["text"]) {
			n -= len(shown["description"])
		}
	}
	s.all = append(s.all, n)
}

// at is the size that so many of a hundred answers don't pass, in steps of 50 bytes.
func (s *sizing) at(percent int) int {
	slices.Sort(s.all)
	return (s.all[min(len(s.all)-1, len(s.all)*percent/100)] + 49) / 50 * 50
}

// groupSizes is how long the answer is that makes so many tools at once, each of which
// calls the next one, and which makes their next versions.
func groupSizes(t *testing.T, n int) (of sizing) {
	for _, kind := range []struct{ code, rest string }{
		{`n => if n == 0 then true else @%s(n - 1)`, ``},
		{`text => if length(text) == 0 then 0 else 1 + @%s(slice(text, 1, length(text)))`, `,"description":"how long a text is, by parts","examples":[{"input":"","expect":0}]`},
		{`(order, n) => if n < 1 then order.total else @%s(order, n - 1)`, `,"description":"what an order comes to"`},
		{`n => if n == 0 then [] else cons({n: n}, @%s(n - 1))`, `,"if_version":0`},
	} {
		s := New(Options{})
		var entries []string
		for i := range n {
			next := fmt.Sprintf("part_%d", (i+1)%n)
			entries = append(entries, fmt.Sprintf(`{"name":"part_%d","code":"%s","capabilities":["call:%s"]%s}`, i, fmt.Sprintf(kind.code, next), next, kind.rest))
		}
		call := `{"tools":[` + strings.Join(entries, ",") + `]}`
		next := strings.NewReplacer("n - 1", "n - 2", "slice(text, 1", "slice(text, 2", `"if_version":0`, `"if_version":1`).Replace(call)
		for _, call := range []string{call, next} {
			a := succeed(t, s, "evolve", call)
			if of.add(t, a); n <= 8 && len(a.Text) > largestAnswer {
				t.Errorf("%d tools: %d bytes: %s", n, len(a.Text), a.Text)
			}
		}
	}
	return of
}

// TestSizes: what evolve answers is short for ordinary tools, those of core/examples and
// those that models were asked to make; the README has how long answers are.
func TestSizes(t *testing.T) {
	must.SkipRacing(t)
	s := New(Options{})
	const examples = "../../../core/examples/tasks"
	var evolves, describes, details, failures sizing
	programs := tasks(t, examples, "testdata/tried")
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		var a wire.Answer
		if code := programs[name]; strings.HasPrefix(code, "{") {
			a = succeed(t, s, "evolve", fmt.Sprintf(`{"name":%q,"code":%s}`, name, code))
		} else {
			a = succeed(t, s, "evolve", string(wire.Encode(map[string]any{"name": name, "code": code})))
		}
		var one sizing
		one.add(t, a)
		if evolves.all = append(evolves.all, one.all...); one.all[0] > largestAnswer {
			t.Errorf("%s: %d bytes: %s", name, one.all[0], a.Text)
		}
		if strings.HasPrefix(name, "my_") {
			continue
		}
		describes.add(t, succeed(t, s, "describe", fmt.Sprintf(`{"name":%q}`, name)))
		details.add(t, succeed(t, s, "describe", fmt.Sprintf(`{"name":%q,"detail":true}`, name)))
		failed := do(t, s, "run", fmt.Sprintf(`{"tool":%q,"input":{"wrong":true}}`, name))
		if failed.Fault == nil {
			failed = do(t, s, "run", fmt.Sprintf(`{"tool":%q,"input":null}`, name))
		}
		if failed.Fault != nil {
			failures.add(t, failed)
		}
	}
	if n := len(evolves.all); n != len(programs) || len(describes.all) != n-40 {
		t.Fatalf("%d programs, %d of them examples", n, len(describes.all))
	}
	if p90 := evolves.at(90); p90 > usualAnswer {
		t.Errorf("nine of ten answers of evolve have up to %d bytes, expected %d", p90, usualAnswer)
	}
	if a := do(t, s, "evolve", `{"tools":[`+strings.Repeat(`{"name":"a","code":"1"},`, 31)+`{"name":"a","code":"1"}]}`); a.Fault == nil || !strings.Contains(a.Text, "2 to 16 tools are evolved at once, not more") {
		t.Errorf("%s", a.Text)
	}
	two, eight, sixteen := groupSizes(t, 2), groupSizes(t, 8), groupSizes(t, 16)
	var table bytes.Buffer
	table.WriteString("| answer | median | nine of ten | longest |\n|---|---|---|---|\n")
	for _, row := range []struct {
		name string
		of   *sizing
	}{
		{"`evolve`, of the tasks and forty more", &evolves},
		{"`evolve` of 2 tools that call each other", &two}, {"of 8", &eight}, {"of 16, the most", &sixteen}, {"`describe`", &describes}, {"`describe` with `\"detail\":true`", &details}, {"a call that fails", &failures},
	} {
		fmt.Fprintf(&table, "| %s | %d | %d | %d |\n", row.name, row.of.at(50), row.of.at(90), row.of.at(100))
	}
	const file, from, to = "../../README.md", "<!-- sizes -->\n", "<!-- /sizes -->"
	page, err := os.ReadFile(file)
	must.NoError(t, err)
	before, rest, ok := strings.Cut(string(page), from)
	was, after, ok2 := strings.Cut(rest, to)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", file)
	}
	if was == table.String() {
		return
	}
	if !*update {
		t.Errorf("%s has another table than\n%s\ngo test ./cmd/internal/mcpserver -run TestSizes -update writes it", file, table.String())
		return
	}
	must.NoError(t, os.WriteFile(file, []byte(before+from+table.String()+to+after), 0o644))
}
