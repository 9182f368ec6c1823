package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// An ear is a plugin that holds what it is given to what its manifest says.
type ear struct{ t *testing.T }

func (ear) Prepare(*caps.Grant) {}

func (e ear) Perform(_ context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
	args, _ := value.Force(a.Args).(*value.Record)
	for _, f := range args.Fields {
		for _, p := range a.Operation.Params {
			if p.Name == f.Key && p.Of != nil && p.Of.Misfit(f.Value) != "" {
				e.t.Errorf("%s is given what isn't %s", p.Name, p.Of)
			}
		}
	}
	return value.Str("done"), 4, nil
}

// spell writes a value as code.
func spell(v value.Value) string {
	switch v := v.(type) {
	case *value.Cons:
		var parts []string
		for at, ok := v, true; ok; at, ok = at.Tail.(*value.Cons) {
			parts = append(parts, spell(at.Head))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case value.Nil:
		return "[]"
	case *value.Pair:
		return "(" + spell(v.First) + ", " + spell(v.Second) + ")"
	case *value.Record:
		var parts []string
		for _, f := range v.Fields {
			parts = append(parts, f.Key+": "+spell(f.Value))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case value.Str:
		return fmt.Sprintf("%q", string(v))
	case value.Unit:
		return "null"
	case value.Dec:
		return v.String()
	case value.Int:
		return v.String()
	case value.Bool:
		return fmt.Sprint(bool(v))
	}
	return "?"
}

// TestArgumentsSound: evolve refuses an argument only if the host would, too; an
// argument of which nothing is left open is performed; and no other reaches a plugin.
func TestArgumentsSound(t *testing.T) {
	worlds := must.Full(3, 60)
	refused, performed, open := 0, 0, 0
	for seed := range worlds {
		o := &oracle{Rand: rand.New(rand.NewPCG(uint64(seed), 19))}
		m := *toy
		m.Operations = nil
		const ops = 6
		types := make([]*check.Type, ops)
		for i := range types {
			types[i] = o.typ(2)
			op := toy.Operations[0]
			op.Name, op.Type = fmt.Sprint("toy.op", i), check.String
			op.Params = append(op.Params[:len(op.Params):len(op.Params)], caps.Param{Name: "n", Type: "any", Of: types[i], Optional: true})
			m.Operations = append(m.Operations, op)
		}
		s, _ := answering(t, &m, ear{t})
		for range 40 {
			i := o.IntN(ops)
			of := types[i]
			if o.IntN(2) == 0 {
				of = o.typ(2)
			}
			code := fmt.Sprintf(`k => !toy.op%d({key: "notes/a", n: %s})`, i, spell(o.value(of, 4)))
			if o.IntN(12) == 0 {
				code = strings.Replace(code, "n:", "m:", 1)
			}
			evolve := map[string]any{"name": "it", "code": code, "capabilities": []string{"toy:notes/**"}}
			a := do(t, s, "evolve", string(wire.Encode(evolve)))
			evolve["draft"] = true
			succeed(t, s, "evolve", string(wire.Encode(evolve)))
			tool, _ := s.tools.Snapshot().Get("it")
			ran := do(t, s, "run", `{"tool":"it","input":1}`)
			switch {
			case ran.Fault != nil && ran.Fault.Kind != fault.EffectFailed:
				t.Errorf("%s, where n is %s: %s", code, types[i], ran.Text)
			case a.Fault != nil:
				if refused++; a.Fault.Kind != fault.Refused || ran.Fault == nil {
					t.Errorf("%s, where n is %s, is refused and performed: %s", code, types[i], a.Text)
				}
			case !tool.Report().Sound():
				open++
			case ran.Fault != nil:
				t.Errorf("%s, where n is %s, is sound and fails: %s", code, types[i], ran.Text)
			default:
				performed++
			}
		}
	}
	t.Logf("%d are refused, %d performed, %d left to the run", refused, performed, open)
	if refused < 10*worlds || performed < 10*worlds || open == 0 {
		t.Error("these show too little")
	}
}

// TestHintsSpeakText: what fails of code in the text form is told in the text form, and
// of JSON in JSON.
func TestHintsSpeakText(t *testing.T) {
	s := New(Options{})
	for text, json := range map[string]string{
		`x => equal(x, 1) + 1`:    `{"lam":"x","body":{"add":[{"equal":[{"var":"x"},1]},1]}}`,
		`x => "a" ++ x`:           `{"lam":"x","body":{"concat":["a",{"var":"x"}]}}`,
		`x => {a: 1}.b`:           `{"lam":"x","body":{"get":[{"record":{"a":1}},"b"]}}`,
		`x => if 1 then 2 else 3`: `{"lam":"x","body":{"if":{"cond":1,"then":2,"else":3}}}`,
		`x => fst(x)`:             `{"lam":"x","body":{"fst":{"var":"x"}}}`,
		`x => y`:                  `{"lam":"x","body":{"var":"y"}}`,
		`x => eq(x, "a")`:         `{"lam":"x","body":{"eq":[{"var":"x"},"a"]}}`,
		`x => 1 / 0`:              `{"lam":"x","body":{"div":[1,0]}}`,
		`x => head([])`:           `{"lam":"x","body":{"head":[]}}`,
		`x => fold(1, 2, [3])`:    `{"lam":"x","body":{"fold":[1,2,[3]]}}`,
		`x => slice(x, "a", "b")`: `{"lam":"x","body":{"slice":[{"var":"x"},"a","b"]}}`,
		`x => map(x, y => y + 1)`: `{"lam":"x","body":{"map":[{"var":"x"},{"lam":"y","body":{"add":[{"var":"y"},1]}}]}}`,
		`x => parse_time("2026-13-0" ++ to_text(x))`: `{"lam":"x","body":{"parse_time":[{"concat":["2026-13-0",{"to_text":{"var":"x"}}]}]}}`,
		`x => parse_int("x" ++ x)`:                   `{"lam":"x","body":{"parse_int":{"concat":["x",{"var":"x"}]}}}`,
	} {
		for _, call := range []string{`{"code":` + quoteJSON(text) + `,"input":7}`, `{"code":` + json + `,"input":7}`} {
			a := do(t, s, "run", call)
			if a.Fault == nil {
				t.Errorf("%s gives %s", call, a.Text)
				continue
			}
			if isText := call[8] == '"'; isText && strings.Contains(a.Fault.Hint, `{"`) {
				t.Errorf("%s: %s", text, a.Fault.Hint)
			} else if !isText && !strings.Contains(a.Fault.Hint, `{"`) && strings.Contains(core.HintInText(a.Fault.Hint), "(") {
				t.Errorf("%s: %s", json, a.Fault.Hint)
			}
		}
	}
	// A call of a tool, too.
	succeed(t, s, "evolve", `{"name":"sub","code":"(a, b) => a - b"}`)
	for code, want := range map[string]string{
		`"x => @sub(x)"`: `Give them in their order, @sub(A, B), or in one record by their names.`,
		`{"lam":"x","body":{"call":{"tool":"sub","inputs":[{"var":"x"}]}}}`: `Give them in their order, {"call":{"tool":"sub","inputs":[A,B]}}, or in one record by their names.`,
	} {
		succeed(t, s, "evolve", fmt.Sprintf(`{"name":"calls%d","capabilities":["call:sub"],"code":%s}`, len(code), code))
		if a := do(t, s, "run", fmt.Sprintf(`{"tool":"calls%d","input":4}`, len(code))); a.Fault == nil || a.Fault.Hint != want {
			t.Errorf("%s: %s", code, a.Text)
		}
	}
	// Every correct use that the table has can be told in the text form.
	for i := range prim.Table {
		if r := &prim.Table[i]; r.Operation() {
			hint := "Correct: " + r.Correct() + "."
			if got := core.HintInText(hint); strings.Contains(got, `{"`) && len(r.Correct()) < 60 {
				t.Errorf("%s: %s", r.Name, got)
			}
		}
	}
}

const thirdSchema = `{"type":"object","properties":{"input":{"type":"integer","minimum":10}}}`

// TestInputSchema: a declared schema is what tools/list shows, calls by name are held
// against it before anything runs, and run is bound by it, too.
func TestInputSchema(t *testing.T) {
	s := New(Options{})
	a := succeed(t, s, "evolve", `{"name":"third","code":"n => n / 3","input_schema":`+thirdSchema+`}`)
	if got := string(a.Structured) + string(succeed(t, s, "describe", `{"name":"third"}`).Structured); !strings.Contains(got, `"input_schema":{"additionalProperties":false,"properties":{"input":{"type":"integer","minimum":10}},"required":["input"],"type":"object"}`) ||
		!strings.Contains(got, `"input":10`) {
		t.Errorf("%s", got)
	}
	// As a string, and of several parameters, the names of which stay.
	succeed(t, s, "evolve", `{"name":"share","code":"(whole, parts) => whole / parts","input_schema":`+
		quoteJSON(`{"type":"object","properties":{"parts":{"type":"integer","minimum":1,"maximum":9,"description":"how many"}}}`)+`}`)
	succeed(t, s, "evolve", `{"name":"hail","code":"s => s ++ \"!\"","input_schema":{"type":"object","properties":{"input":{"type":"string","pattern":"^[a-z]+$","maxLength":5}}}}`)
	succeed(t, s, "evolve", `{"name":"tone","code":"x => x","input_schema":{"type":"object","properties":{"input":{"enum":["high",1.5]}}}}`)
	succeed(t, s, "evolve", `{"name":"plain","code":"x => x","input_schema":{}}`)
	// Of the fields of one record, which the code may do without.
	succeed(t, s, "evolve", `{"name":"seek","code":"r => get(r, \"pattern\", \"\") ++ get(r, \"files\", \"*\")","examples":[{"input":{"pattern":"MILK","files":"*.md"},"expect":"MILK*.md"}],"input_schema":`+
		`{"type":"object","properties":{"pattern":{"type":"string","minLength":1},"files":{"type":"string"}},"required":["pattern"]}}`)
	succeed(t, s, "evolve", `{"name":"swap","code":"r => r.old ++ r.new","input_schema":{"type":"object","properties":{"old":{"type":"string"},"new":{"type":"string"}},"required":["old","new"]}}`)
	cs := session(t, s, nil)
	shelf := shelfOfSchemas{}
	for tool, err := range cs.Tools(t.Context(), nil) {
		must.NoError(t, err)
		raw, err := json.Marshal(tool.InputSchema)
		must.NoError(t, err)
		var schema jsonschema.Schema
		must.NoError(t, json.Unmarshal(raw, &schema))
		in, err := schema.Resolve(nil)
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		shelf[tool.Name] = [2]*jsonschema.Resolved{in}
	}
	for _, c := range []struct{ tool, arguments, text string }{
		{"third", `{"input":12}`, "4"},
		{"third", `{"input":"12"}`, "4"},
		{"third", `"12"`, "4"},
		{"third", `{"input":9}`, "input: 9 is not at least 10"},
		{"third", `9`, "input: 9 is not at least 10"},
		{"third", `{"input":"x"}`, `"x" is not of the type integer`},
		{"third", `{}`, `missing: "input"`},
		{"third", `null`, `missing: "input"`},
		{"share", `{"whole":18,"parts":9}`, "2"},
		{"share", `{"whole":18,"parts":0}`, "parts: 0 is not at least 1"},
		{"share", `{"input":18}`, `parts is missing`},
		{"share", `18`, `parts is missing`},
		{"hail", `{"input":"abc"}`, `"abc!"`},
		{"hail", `{"input":"ABC"}`, "pattern"},
		{"hail", `{"input":"abcdef"}`, "at most 5"},
		{"tone", `{"input":1.50}`, `1.50`},
		{"tone", `{"input":"low"}`, `one of`},
		{"plain", `{"input":"low"}`, `"low"`},
		{"seek", `{"pattern":"x"}`, `"x*"`},
		{"seek", `{}`, "pattern is missing\nCall {\"name\":\"seek\",\"arguments\":{\"pattern\":\"MILK\"}}."},
		{"seek", `{"files":"*.txt"}`, "Call {\"name\":\"seek\",\"arguments\":{\"files\":\"*.txt\",\"pattern\":\"MILK\"}}."},
		{"seek", `{"patern":"x"}`, "Call {\"name\":\"seek\",\"arguments\":{\"pattern\":\"x\"}}."},
		{"swap", `{"oldText":"a","newText":"b"}`, "Call {\"name\":\"swap\",\"arguments\":{\"new\":\"b\",\"old\":\"a\"}}."},
		{"seek", `{"pattern":""}`, "Call {\"name\":\"seek\",\"arguments\":{\"pattern\":\"MILK\",\"files\":\"*.md\"}}."},
		{"seek", `{"files":"*.txt","patern":""}`, "Call {\"name\":\"seek\",\"arguments\":{\"pattern\":\"MILK\",\"files\":\"*.md\"}}."},
	} {
		a := do(t, s, c.tool, c.arguments)
		if !strings.Contains(a.Text, c.text) || a.Fault == nil && a.Text != c.text {
			t.Errorf("%s %s: %s, expected %s", c.tool, c.arguments, a.Text, c.text)
		}
		if a.Fault != nil && (a.Fault.Kind != fault.InvalidRequest || a.Steps != 0) {
			t.Errorf("%s %s: %+v", c.tool, c.arguments, a.Fault)
		}
		if a.Fault != nil {
			// The hint is a call that is right.
			var call struct {
				Name      string
				Arguments json.RawMessage
			}
			text := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(a.Fault.Hint, "Call it as "), "Call "), ".")
			if err := json.Unmarshal([]byte(text), &call); err != nil {
				t.Fatalf("%s: %v", a.Fault.Hint, err)
			}
			if again := do(t, s, call.Name, string(call.Arguments)); again.Fault != nil && c.tool != "hail" || shelf.takes(t, call.Name, string(call.Arguments)) != nil {
				t.Errorf("%s: %s", text, again.Text)
			}
		}
		if strings.HasPrefix(c.arguments, "{\"input\":\"12") || c.arguments[0] != '{' {
			continue // not what a client that validates sends
		}
		if err := shelf.takes(t, c.tool, c.arguments); (err == nil) != (a.Fault == nil) {
			t.Errorf("%s %s: %s, and a client says %v", c.tool, c.arguments, a.Text, err)
		}
	}
	if a := do(t, s, "run", `{"tool":"third","input":9}`); a.Fault == nil || !strings.Contains(a.Text, "not at least 10") {
		t.Errorf("run isn't bound by it: %s", a.Text)
	}
	// describe has it, and what evolves that version again.
	a = succeed(t, s, "describe", `{"name":"third"}`)
	if !strings.Contains(string(a.Structured), `"minimum":10`) {
		t.Errorf("%s", a.Structured)
	}
	a = succeed(t, s, "evolve", `{"name":"third","code":"n => n / 3"}`)
	if got := string(a.Structured); !strings.Contains(got, "unchanged") || do(t, s, "third", `{"input":9}`).Fault == nil {
		t.Errorf("%s", got)
	}
	a = succeed(t, s, "evolve", `{"name":"third","code":"n => n / 3","input_schema":null}`)
	if got := string(a.Structured); strings.Contains(got, `"input_schema":`) || strings.Contains(got, "unchanged") {
		t.Errorf("%s", got)
	}
	if a = succeed(t, s, "third", `{"input":9}`); a.Text != "3" {
		t.Errorf("%s", a.Text)
	}
	succeed(t, s, "evolve", `{"name":"third","from_version":1}`)
	if a = do(t, s, "third", `{"input":9}`); a.Fault == nil {
		t.Errorf("%s", a.Text)
	}
}

// TestInputSchemaRefused: a schema that widens, or isn't flat, changes nothing.
func TestInputSchemaRefused(t *testing.T) {
	s := New(Options{})
	for schema, want := range map[string]string{
		`{"type":"object","properties":{"input":{"type":"number"}}}`: "can't take",
		`{"type":"object","properties":{"n":{"type":"integer"}}}`:    "no such parameter",
		`{"type":"object","properties":{"input":{"$ref":"#/x"}}}`:    "$ref",
		`[1]`:                      "a JSON Schema of an object",
		`7`:                        "a JSON Schema of an object",
		`"{"`:                      "a JSON Schema of an object",
		`"{\"type\":\"object\"}x"`: "a JSON Schema of an object",
		`{"type":"object","description":"` + strings.Repeat("x", 17<<10) + `"}`: "at most 16384",
	} {
		a := do(t, s, "evolve", fmt.Sprintf(`{"name":"half","code":"n => shift(n, -1)","input_schema":%s}`, schema))
		if a.Fault == nil || a.Fault.Kind != fault.InvalidRequest || !strings.Contains(a.Text, want) || len(a.Text) > 2000 {
			t.Errorf("%.100s: %.500s", schema, a.Text)
		}
	}
	if n := s.tools.Snapshot().Len(); n != 0 {
		t.Error(n)
	}
	for _, none := range []string{`""`, `{}`, `null`, `"{}"`, `" "`} {
		a := succeed(t, s, "evolve", fmt.Sprintf(`{"name":"half","code":"n => shift(n, -1)","input_schema":%s}`, none))
		if strings.Contains(string(a.Structured), "input_schema") {
			t.Errorf("%s: %s", none, a.Structured)
		}
	}
}

// TestReplayInputSchema: what was let through replays as it ran, also when the schema
// is another by then, and what was refused has left no run.
func TestReplayInputSchema(t *testing.T) {
	w := newRecordedWorld(t, 9)
	succeed(t, w.server, "evolve", `{"name":"third","code":"n => n / 3","input_schema":`+thirdSchema+`}`)
	was := do(t, w.server, "third", `{"input":"12"}`)
	id := w.newest()
	w.identical(id, was)
	for range 2 {
		if a := do(t, w.server, "third", `{"input":9}`); a.Fault == nil || w.newest() != id {
			t.Errorf("%s, and the newest run is %s", a.Text, w.newest())
		}
	}
	succeed(t, w.server, "evolve", `{"name":"third","code":"n => n / 3","input_schema":{"type":"object","properties":{"input":{"type":"integer","minimum":20}}}}`)
	w.identical(id, was)
}

// TestDeclaredForms: a capability is declared in its text form or as the object that
// says the same, alone or in a list, as JSON or as a string of it; what is neither is
// told, and nothing is made.
func TestDeclaredForms(t *testing.T) {
	s := newRecordedWorld(t, 1).server
	for _, declared := range []string{
		`["toy.get:notes/**,calls=5"]`,
		`"toy.get:notes/**,calls=5"`,
		`[{"cap":"toy:notes/**","ops":["get"],"limits":{"calls":5}}]`,
		`{"cap":"toy:notes/**","ops":["get"],"limits":{"calls":5}}`,
		`"[{\"cap\":\"toy:notes/**\",\"ops\":[\"get\"],\"limits\":{\"calls\":5}}]"`,
		`"{\"cap\":\"toy:notes/**\",\"ops\":[\"get\"],\"limits\":{\"calls\":5}}"`,
		`["call:none",{"cap":"toy:notes/**","ops":["get"],"limits":{"calls":5}}]`,
	} {
		a := do(t, s, "evolve", `{"name":"reads","code":"k => !toy.get(k)","capabilities":`+declared+`}`)
		if a.Fault != nil || !strings.Contains(a.Text, `"capabilities":["toy.get:notes/**,calls=5"]`) {
			t.Errorf("%s: %s", declared, a.Text)
		}
	}
	for _, declared := range []string{`[5]`, `5`, `[null]`, `[["toy:notes/**"]]`, `[{"cap":"toy:notes/**","op":["get"]}]`, `[{"cap":"toy:notes/**","cap":"toy:**"}]`, `[{}]`, `[{"cap":"toy.get:notes/**"}]`} {
		if a := do(t, s, "evolve", `{"name":"other","code":"k => k","capabilities":`+declared+`}`); a.Fault == nil {
			t.Errorf("%s: %s", declared, a.Text)
		}
	}
}

// TestHintsOfRuns: what fails when it runs is told with the code that was written.
func TestHintsOfRuns(t *testing.T) {
	s := New(Options{})
	for code, c := range map[string]struct{ input, want string }{
		`xs => fold((acc, x) => acc + x, xs[0], xs[1:])`: {`["a","b"]`, `Join texts with acc ++ x; of numbers in texts write to_dec(acc) + to_dec(x).`},
		`(k, n) => k + n`:                         {`{"k":"a","n":3}`, `Where n is a number write k ++ to_text(n).`},
		`(k, n) => k ++ (0 + n)`:                  {`{"k":"a","n":3}`, `Make a text of the value: k ++ to_text(0 + n).`},
		`(d, e) => d - e`:                         {`{"d":"2026-01-02","e":"2026-01-01"}`, `Write diff_time(d, e, "days").`},
		`(a, b) => a ++ b`:                        {`{"a":[1],"b":[2]}`, `Join lists with append(a, b).`},
		`(d, s) => contains(d, s.off)`:            {`{"d":"Mon","s":{"off":["Tue"]}}`, `contains takes the list first: contains(s.off, d).`},
		`(a, b) => b * 1.0 / a`:                   {`{"a":3,"b":1}`, `Write ratio(b * 1.0, a), which has 16 digits`},
		`(a, b) => b + (a ++ "!")`:                {`{"a":1,"b":"2"}`, `Make a text of the value: to_text(a) ++ "!".`},
		`s => parse_csv(s)[0].n * 2`:              {`"n\n4"`, `Make numbers of the texts: to_dec(at(parse_csv(s), 0).n) * 2.`},
		`s => split(s, ",")[0] > 3`:               {`"4,5"`, `Make numbers of the texts: to_dec(at(split(s, ","), 0)) > 3.`},
		`r => r.a.b`:                              {`{"a":{}}`, `Write r.a.b ?? d, with d for what stands in for it.`},
		`(table, e) => get(get(table, e, {}), e)`: {`{"table":{"a":{}},"e":"a"}`, `Write get(get(table, e, {}), e, null), or what stands in for it in place of null.`},
		"(`match`, table) => get(table, `match`)": {`{"match":"a","table":{}}`, "Write get(table, `match`, null), or"},
		`(tasks, n) => has(tasks.deps, n)`:        {`{"tasks":{"deps":["a"]},"n":"a"}`, `Whether a list has an item, or a string a part, is contains(LIST, ITEM).`},
		`(a, b) => div_dec(a, b - b, 2)`:          {`{"a":1,"b":2}`, `Test the divisor first: if b - b == 0 then 0 else div_dec(a, b - b, 2, "half_up").`},
		`x => "%d of it" % x`:                     {`3`, `Write $"{x} of it".`},
		`x => "{} of".format(x)`:                  {`3`, `Write $"{x} of".`},
		`x => "%.2f of it" % x`:                   {`3`, `Write $"{x:.2f} of it".`},
		`x => "{:>8}|".format(x)`:                 {`3`, `Write $"{x:>8}|".`},
		`xs => xs.count(1)`:                       {`[1]`, `Write count(x => x == 1, xs).`},
		`s => s.count("a")`:                       {`"banana"`, `Write length(split(s, "a")) - 1`},
		`(a, b) => a + b`:                         {`{"a":{},"b":{}}`, `Write {...a, ...b}`},
		`n => append(repeat("  ", n), [1])`:       {`2`, `a list of copies is repeat(n, "  ").`},
		`x => "3" * x`:                            {`3`, `to_dec("3") * to_dec(x).`},
		`xs => max(xs)`:                           {`[]`, `Test the list first: if isEmpty(xs) then null else max(xs).`},
		`s => if s then 1 else 2`:                 {`"a"`, `Nothing but true and false is a condition: write s != "".`},
		`r => r.n and r.m`:                        {`{"n":1,"m":true}`, `write r.n != 0.`},
		`r => r.m or r.n`:                         {`{"n":1.5,"m":false}`, `write r.n != 0.`},
		`r => not r.n`:                            {`{"n":null}`, `write r.n == null.`},
		`r => r.n ? 1 : 2`:                        {`{"n":[]}`, `write not isEmpty(r.n).`},
		`r => if r.n then 1 else 2`:               {`{"n":{}}`, `write r.n != {}.`},
		`xs => filter(x => x % 2, xs)`:            {`[1,2]`, `Nothing but true and false is a condition: write x % 2 != 0.`},
		`rs => [r.n for r in rs if r.n]`:          {`[{"n":"a"}]`, `write r.n != "".`},
		`x => x or 5`:                             {`null`, `Nothing but true and false stands beside or; write x ?? 5 where`},
		`r => isEmpty(r.a)`:                       {`{"a":{}}`, `Write r.a == {}.`},
		`r => r[1]`:                               {`{"1":"a"}`, `A key is a text: write at(r, "1").`},
		`(r, k) => has(r, k)`:                     {`{"r":{},"k":1}`, `A key is a text: write has(r, to_text(k)).`},
		`xs => fold((acc, x) => {...acc, [x]: (acc[x] ?? 0) + 1}, {}, xs)`: {`[1,2,1]`, `A key is a text: write at(acc, to_text(x)).`},
		`(xs, k, v) => set_nth(xs, v, k)`:                                  {`{"xs":["a"],"k":0,"v":"b"}`, `set_nth takes the index before the value: set_nth(xs, k, v).`},
		`s => to_dec(s)`:                                                   {`"1.234,50"`, `Write to_dec(replace(replace(S, ".", ""), ",", ".")) for a number with a comma`},
		`(x, n) => pow(x, n)`:                                              {`{"x":2,"n":0.3}`, `exp(b * ln(a)) for a to the power of b`},
		`{"lam":"x","body":{"add":[{"var":"x"},{"split":["a",","]}]}}`:     {`1`, `{"append":[A,B]}`},
	} {
		arg := code
		if code[0] != '{' {
			arg = quoteJSON(code)
		}
		if a := do(t, s, "run", `{"code":`+arg+`,"input":`+c.input+`}`); a.Fault == nil || !strings.Contains(a.Fault.Hint, c.want) {
			t.Errorf("%s: %s", code, a.Text)
		}
	}
}

// TestCodeInOneLine: of a tool without a description one line of its code is shown, without
// comments.
func TestCodeInOneLine(t *testing.T) {
	s := New(Options{})
	succeed(t, s, "evolve", `{"name":"lines","code":"n => // squares\n  let a = to_text(n)\n  a ++ \"//\""}`)
	for tool, arguments := range map[string]string{"describe": `{"name":"lines"}`, "list": `{}`} {
		if a := succeed(t, s, tool, arguments); !strings.Contains(a.Text, `"description":"n => let a = to_text(n) a ++ \"//\""`) {
			t.Errorf("%s: %s", tool, a.Text)
		}
	}
}

// TestHintsOfTheCode: what fails by a habit of other languages is told with the code
// that was written, in its form.
func TestHintsOfTheCode(t *testing.T) {
	s := New(Options{})
	for code, want := range map[string]string{
		`xs => let hex = (n, d) => if d == 0 then "" else self(n / 16, d - 1) ++ "0" in map(x => hex(x, 2), xs)`: `self is the whole tool; inside hex, call hex(…).`,
		`(entries, r) => group_by(e => e.w, entries) |> entries`:                                                 `entries is the variable here; ::entries is the operation.`,
		`n => let big = m => words(m + 1) in let words = m => m in big(n)`:                                       `words is the operation here: the let in line 1 binds its function words too late. Bind it before, or rename it.`,
		`xs => let step = a => b => a + b in fold(step, 0, xs)`:                                                  `fold passes its function one pair, and this one takes one value after the other: write fold((a, b) => step(a, b), …).`,
		`c => let a = "a" in c + 0 >= a`:                                                                         `gte compares numbers only: write compare(c + 0, a) >= 0 for strings.`,
		`s => reverse(lower(s))`:                                                                                 `reverse takes a list: write join(reverse(chars(lower(s))), "") for a string.`,
		`xs => nth({a: 7}.a, xs.b)`:                                                                              `nth takes a list first, and then an integer: nth(xs.b, {a: 7}.a).`,
		`rows => push({a: 7}.a, rows.b)`:                                                                         `push takes the list first, and then the item: push(rows.b, {a: 7}.a).`,
		`s => map(m => m.a, [re_match(s, "a")])`:                                                                 `re_find gives a record with the named groups`,
		`xs => from_codes(xs)`:                                                                                   `from_codepoints`,
		`xs => group(x => x, xs) |> map(e => e)`:                                                                 `map takes a list, and group gives a record: write entries(group(x => x, xs)) for pairs (key, value), or values(R).`,
		`{"lam":"c","body":{"lt":[{"var":"c"},"a"]}}`:                                                            `lt compares numbers only: write {"lt":[{"compare":[{"var":"c"},"a"]},0]} for strings.`,
		`{"lam":"xs","body":{"app":[{"lam":"h","body":{"map":[{"var":"h"},{"var":"xs"}]}},{"lam":"n","body":{"app":[{"app":[{"self":true},{"var":"n"}]},1]}}]}}`: `self is the whole tool; inside h, call {"app":[{"var":"h"},…]}.`,
	} {
		arg := code
		if code[0] != '{' {
			arg = quoteJSON(code)
		}
		a := do(t, s, "evolve", `{"name":"t","code":`+arg+`}`)
		if a.Fault == nil || len(a.Fault.More) != 1 || !strings.Contains(a.Fault.More[0].Hint, want) {
			t.Errorf("%s: %s", code, a.Text)
		} else if strings.Contains(a.Fault.More[0].Hint, "100000000000000000000") || strings.Count(a.Text, "passes its function") > 1 {
			t.Errorf("%s: %s", code, a.Text)
		}
	}
	self := succeed(t, s, "evolve", `{"name":"t","code":"(n, xs) => if n == 0 then xs else self({n: n - 1, xs: push(xs, n)})"}`)
	if note := "line 1, column 39: self takes its parameters in order: self(n - 1, push(xs, n))"; !strings.Contains(self.Text, note) {
		t.Errorf("%s: %s", note, self.Text)
	}
	a := succeed(t, s, "evolve", `{"name":"t","code":"xs => let go = c => if isEmpty(c) then 0 else self(tail(c)) in go(xs)"}`)
	if note := "line 1, column 47: self is the whole tool; inside go, call go(…)"; !strings.Contains(a.Text, note) {
		t.Errorf("%s", a.Text)
	}
	if a := do(t, s, "help", `{"name":"from_codes"}`); a.Fault == nil || a.Fault.Near != "from_codepoints" {
		t.Errorf("%s", a.Text)
	}
	if a := do(t, s, "help", `{"name":"from_xml"}`); a.Fault == nil || a.Fault.Near == "from_codepoints" {
		t.Errorf("%s", a.Text)
	}
}

// TestToolsMeant: who writes a tool's name as a variable hears how a tool is called.
func TestToolsMeant(t *testing.T) {
	s := New(Options{})
	succeed(t, s, "evolve", `{"name":"square","code":"n => n * n"}`)
	for code, note := range map[string]string{
		"xs => map(x => square(x), xs)":                     `"capabilities":["call:square"]`,
		"n => if n < 2 then n else fib(n - 1) + fib(n - 2)": "a tool calls itself as self: self(n - 1), not fib(n - 1)",
		"n => other(n)":               "",
		"square => square(1)":         "",
		"n => if n < 1 then 0 else n": "",
	} {
		// The refusal says it, and the notes of a draft.
		said := do(t, s, "evolve", `{"name":"fib","code":`+quoteJSON(code)+`}`).Text
		if !strings.Contains(said, note) || note == "" && (strings.Contains(said, "as self") || strings.Contains(said, "call:")) {
			t.Errorf("%s: %s", code, said)
		}
		notes := field(t, succeed(t, s, "evolve", `{"name":"draft","draft":true,"code":`+quoteJSON(code)+`}`), "notes")
		if strings.Contains(note, "call:") && !strings.Contains(notes, strings.ReplaceAll(note, `"`, `\"`)) {
			t.Errorf("%s: %s", code, notes)
		}
	}
}

// TestRunMeant: code that is run hears how it calls the tool it names, and that an input is ignored.
func TestRunMeant(t *testing.T) {
	s := New(Options{})
	succeed(t, s, "evolve", `{"name":"square","code":"n => n * n"}`)
	a := do(t, s, "run", `{"code":"x => square(x)","input":3}`)
	if notes := field(t, a, "notes"); a.Fault == nil || !strings.Contains(notes, "the tool square is called as @square(x)") {
		t.Error(a.Text, notes)
	}
	succeed(t, s, "evolve", `{"name":"sq","code":"n => n * n"}`)
	if a := do(t, s, "run", `{"code":"sq(3)"}`); strings.Contains(a.Text+field(t, a, "notes"), "eq") || !strings.Contains(a.Text, "sq is a tool: write @sq(x).") {
		t.Error(a.Text, field(t, a, "notes"))
	}
	if a := do(t, s, "run", `{"tool":"sq@1","input":3}`); a.Fault == nil || !strings.Contains(a.Text, `The tool is "sq"; run takes "version":1`) {
		t.Error(a.Text)
	}
	for args, note := range map[string]string{
		`{"code":"square => square + 1","input":3}`: "", `{"code":"5","input":3}`: "ignored", `{"code":"1 + 1","input":"3"}`: "ignored", `{"code":"5","input":null}`: "", `{"code":"5"}`: "",
		`{"code":"let f = x => x in f","input":3}`: "", `{"code":"compose(x => x, y => y)","input":3}`: "",
	} {
		if notes := field(t, succeed(t, s, "run", args), "notes"); note == "" && notes != "[]" || !strings.Contains(notes, note) {
			t.Error(args, notes)
		}
	}
}

// TestAtOnce: a tool of several parameters takes them by their names, whichever way it
// is called.
func TestAtOnce(t *testing.T) {
	s := New(Options{})
	succeed(t, s, "evolve", `{"name":"save","code":"(path, text) => path ++ text"}`)
	for _, c := range [][2]string{
		{"save", `{"path":"o.txt","text":"x"}`}, {"save", `{"input":{"text":"x","path":"o.txt"}}`}, {"save", `["o.txt","x"]`},
		{"run", `{"tool":"save","input":{"path":"o.txt","text":"x"}}`}, {"run", `{"tool":"save","input":{"pair":["o.txt","x"]}}`},
	} {
		if a := succeed(t, s, c[0], c[1]); a.Text != `"o.txtx"` || len(a.More) > 0 {
			t.Errorf("%s %s: %s %s", c[0], c[1], a.Text, a.More)
		}
	}
	if a := do(t, s, "run", `{"tool":"save","input":"a"}`); a.Fault == nil || !strings.Contains(a.Text, `text is missing`) || !strings.Contains(a.Text, `{"path":"a","text":"abc"}`) {
		t.Error(a.Text)
	}
}

// TestInlineSelf: self in the function that run is given is that function, its parameters taken by
// their names, as in a tool.
func TestInlineSelf(t *testing.T) {
	s := New(Options{})
	for call, want := range map[string]string{
		`{"code":"n => if n <= 1 then 1 else n * self(n - 1)","input":5}`:                             "120",
		`{"code":"(n, acc) => if n == 0 then acc else self(n - 1, acc + n)","input":{"acc":1,"n":4}}`: "11",
	} {
		if a := do(t, s, "run", call); a.Text != want {
			t.Errorf("%s gives %s", call, a.Text)
		}
	}
	said := "self is the whole function; inside f, call f(…)"
	if a := do(t, s, "run", `{"code":"n => { let f = k => if k < 1 then 0 else self(k - 1); f(n) }","input":2}`); !strings.Contains(strings.Join(a.More, "\n"), said) {
		t.Errorf("self in a function that let binds: %s", a.More)
	}
}
