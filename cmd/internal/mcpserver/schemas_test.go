package mcpserver

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim/gen"
)

// A shelfOfSchemas is what a client has read of tools/list, to hold calls and
// answers against.
type shelfOfSchemas map[string][2]*jsonschema.Resolved

// listSchemas reads all pages, as a client does, and holds each schema against what
// every client takes: flat, of an object, without references.
func listSchemas(t *testing.T, cs *mcp.ClientSession) shelfOfSchemas {
	t.Helper()
	shelf := shelfOfSchemas{}
	for tool, err := range cs.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		var both [2]*jsonschema.Resolved
		for i, s := range []any{tool.InputSchema, tool.OutputSchema} {
			raw, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
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
	if err := json.Unmarshal(raw, &root); err != nil {
		t.Fatal(err)
	}
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
	if err := json.Unmarshal([]byte(arguments), &v); err != nil {
		t.Fatal(err)
	}
	return shelf[tool][0].Validate(v)
}

// TestAnswersFitSchemas: whatever a tool gives, or doesn't, a client that holds it
// against what tools/list said lets it through; and of a tool whose types are
// known the call that is shown for it is one that its schema lets through, and
// doesn't fail by its types.
func TestAnswersFitSchemas(t *testing.T) {
	s := New(Options{Limits: Limits{MaxSteps: 20_000}})
	inputs := map[string][]string{}
	evolve := func(name, code string, with ...string) {
		if a := do(t, s, "evolve", fmt.Sprintf(`{"name":%q,"code":%s,"draft":true}`, name, code)); a.Fault == nil {
			inputs[name] = with
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
			if err := json.Unmarshal(line, &c); err != nil {
				t.Fatal(err)
			}
			if len(c.Tools) > 0 {
				c.Term = c.Tools[c.Tool]
			}
			if len(c.Term) > 0 && len(c.Term) < 10_000 && len(c.Input) < 10_000 {
				evolve(fmt.Sprintf("c%d", len(inputs)), string(c.Term), string(c.Input))
			}
		})
	}
	n := 100
	if os.Getenv("PIF_FULL") != "" {
		n = 5000
	}
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
	for name, with := range inputs {
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
		if input := s.suggest(tool, s.tools.Snapshot()).input; input != nil {
			src := source{tool: tool, report: tool.Report(), byName: true}
			var c struct{ Arguments json.RawMessage }
			if err := json.Unmarshal(src.call(input), &c); err != nil {
				t.Fatal(err)
			}
			if err := shelf.takes(t, name, string(c.Arguments)); err != nil {
				t.Errorf("%s takes no %s: %v\n%s\n%s", tool.Source, c.Arguments, err, tool.InputSchema(), tool.Report().Type)
			}
			res, _ := shelf.fits(t, cs, name, string(c.Arguments))
			shown++
			if tool.Report().Sound() {
				sound++
				got, _ := json.Marshal(res.StructuredContent)
				var failed struct{ Error struct{ Kind fault.Kind } }
				if err := json.Unmarshal(got, &failed); err != nil {
					t.Fatal(err)
				}
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
	t.Logf("%d tools, %d results, %d calls shown, %d of them of tools whose types are known", len(inputs), runs, shown, sound)
	if len(inputs) < n+300 || runs < n || sound < n/2 {
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
		must(t, s, "evolve", fmt.Sprintf(`{"name":%q,"code":%s}`, c.name, quoteJSON(c.code)))
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
	must(t, s, "evolve", `{"name":"factorial","code":"n => if n <= 1 then 1 else n * self(n - 1)"}`)
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
