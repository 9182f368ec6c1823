package mcpserver

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/journal"
)

// nextOf is the call that evolving some code suggests, with the notes.
func nextOf(t *testing.T, s *Server, name, code, more string) (tool, arguments, notes string) {
	t.Helper()
	a := must(t, s, "evolve", fmt.Sprintf(`{"name":%q,"code":%s%s}`, name, quoteJSON(code), more))
	if !strings.Contains(string(a.Structured), `"next"`) {
		return "", "", field(t, a, "notes")
	}
	return strings.Trim(field(t, a, "next/name"), `"`), field(t, a, "next/arguments"), field(t, a, "notes")
}

// TestSuggestedCallsWork: the call that evolve suggests succeeds, also where the first
// input that comes to mind doesn't.
func TestSuggestedCallsWork(t *testing.T) {
	s := New(Options{})
	must(t, s, "evolve", `{"name":"third","code":"n => 1 / (n - 5)"}`)
	for i, c := range []struct{ code, more string }{
		{"n => 100 / (n - 5)", ""},
		{"n => if n < 100 then raise(\"small\") else n", ""},
		{"n => if n == 4711 then 1 else raise(\"other\")", ""},
		{`op => match op { "add" => 1; "sub" => 2 }`, ""},
		{`r => match r { {name: n, born: b} => n ++ to_text(b) }`, ""},
		{`s => let p = split(s, "-") in parse_int(nth(p, 0)) + parse_int(nth(p, 2))`, ""},
		{`s => parse_int(s) + 1`, ""},
		{`line => let p = split(line, "=") in {k: head(p), v: head(tail(p))}`, ""},
		{`xs => nth(xs, 2)`, ""},
		{`(a, b) => a / (b - 5)`, ""},
		{`f => f(1)`, ""},
		{`(f, xs) => map(f, xs)`, ""},
		{`(f, init, xs) => fold(p => f(fst(p), snd(p)), init, xs)`, ""},
		{`(c, x) => eval(c)`, ""},
		{`r => r.f(r.x)`, ""},
		{`c => eval(c)`, ""},
		{`n => @third(n)`, `,"capabilities":["call:third"]`},
		{`r => r.input + 1`, ""},
		{`s => if equal(s, "{\"add\":[1,2]}") then raise("yes") else raise("no")`, `,"examples":[{"input":"{\"add\":[1,2]}","error":"raised"}]`},
		{`r => if has(r, "add") then r.add else raise("no")`, `,"examples":[{"input":{"add":[1,2],"x":{}},"expect":[1,2]}]`},
		{`n => if n == 987 then "yes" else raise("no")`, `,"examples":[{"input":5,"error":"raised"},{"input":987,"expect":"yes"}]`},
		{`n => n`, `,"input_schema":{"type":"object","properties":{"input":{"type":"integer","minimum":7}}}`},
		{`5`, ""},
		{`f => f(5).b`, ""},
		{`(f, r) => keys(f(r))`, ""},
	} {
		name := fmt.Sprintf("t%d", i)
		tool, arguments, notes := nextOf(t, s, name, c.code, c.more)
		if tool == "" {
			if i != 18 { // nothing succeeds
				t.Errorf("%s: no call that works is suggested: %s", c.code, notes)
			}
			continue
		}
		a := do(t, s, tool, arguments)
		if a.Fault != nil || a.Text == `"<function>"` {
			t.Errorf("%s: %s %s is suggested, which gives %s", c.code, tool, arguments, a.Text)
		}
		if again := must(t, s, "describe", fmt.Sprintf(`{"name":%q}`, name)); field(t, again, "next/arguments") != arguments {
			t.Errorf("%s: describe suggests %s, evolve %s", c.code, field(t, again, "next"), arguments)
		}
	}
}

// TestNextOfExamples: the input of a tool's first example that doesn't fail is that of the
// call that is suggested, of several parameters by their names.
func TestNextOfExamples(t *testing.T) {
	s := New(Options{})
	for i, c := range []struct{ code, examples, arguments string }{
		{"n => 1 / n", `[{"input":0,"error":"division_by_zero"},{"input":-1,"expect":-1}]`, `{"tool":"t0","input":-1}`},
		{"(a, b) => a / b", `[{"input":{"b":2,"a":84},"expect":42}]`, `{"tool":"t1","input":{"a":84,"b":2}}`},
		{"(a, b) => a / b", `[{"input":[84,2],"expect":42}]`, `{"tool":"t2","input":{"a":84,"b":2}}`},
		{"(f, x) => f(x)", `[{"input":{"f":"n => n / 2","x":8},"expect":4}]`, `{"tool":"t3","input":{"f":"n => n / 2","x":8}}`},
	} {
		_, arguments, notes := nextOf(t, s, fmt.Sprintf("t%d", i), c.code, `,"examples":`+c.examples)
		if arguments != c.arguments {
			t.Errorf("%s: %s, expected %s: %s", c.code, arguments, c.arguments, notes)
		}
		must(t, s, "run", arguments)
	}
}

// TestHintsUseNext: what the call in a hint adds to the values that were given is of the
// input that next has, and the call is another than that which failed.
func TestHintsUseNext(t *testing.T) {
	s := New(Options{})
	for i, c := range []struct{ code, more, tool, arguments, hint string }{
		{"(r, k) => get(r, k)", "", "t0", `{"k":"b"}`, `{"name":"t0","arguments":{"r":{"abc":5,"b":2},"k":"b"}}`},
		{"(xs, i) => nth(xs, i)", "", "run", `{"tool":"t1","input":{"xs":[1,2,3,4,5]}}`, `{"name":"run","arguments":{"tool":"t1","input":{"xs":[1,2,3,4,5],"i":3}}}`},
		{"(a, b) => a / (b - 2)", "", "t2", `{"a":7}`, `{"name":"t2","arguments":{"a":7,"b":3}}`},
		{"(a, b) => a / b", `,"examples":[{"input":[84,4],"expect":21}]`, "t3", `{"a":8}`, `{"name":"t3","arguments":{"a":8,"b":4}}`},
		{"r => r.n / (r.m - 5)", "", "t4", `{"n":8}`, `{"name":"t4","arguments":{"m":2,"n":8}}`},
		{"n => 10 / (n - 5)", "", "t5", `{"x":"a"}`, `{"name":"t5","arguments":{"input":2}}`},
		{"n => 10 / (n - 5)", "", "run", `{"tool":"t6","input":"a"}`, `{"name":"run","arguments":{"tool":"t6","input":2}}`},
		{"n => 70 / (n - 7)", `,"input_schema":{"type":"object","properties":{"input":{"type":"integer","minimum":8}}}`, "t7", `{"input":1}`, `{"name":"t7","arguments":{"input":8}}`},
		{"5", "", "t8", `{"a":1}`, `{"name":"t8","arguments":{}}`},
		{"r => r", "", "run", `{"tool":"t9","input":{"a":1,"a":2}}`, `{"name":"run","arguments":{"tool":"t9","input":{"a":2}}}`},
		{"n => n", "", "run", `{"code":"r => r.a + 1","input":{"b":1,"a":1,"a":2}}`, `"input":{"a":2}}}`},
		{"n => n", "", "run", `{"code":"(r, k) => get(r, k)","input":{"r":{"b":1}}}`, `{"name":"run","arguments":{"code":"(r, k) => get(r, k)","input":{"r":{"b":1},"k":"abc"}}}`},
	} {
		must(t, s, "evolve", fmt.Sprintf(`{"name":"t%d","code":%s%s}`, i, quoteJSON(c.code), c.more))
		a := do(t, s, c.tool, c.arguments)
		text := a.Text + "\n" + strings.Join(a.More, "\n")
		if a.Fault == nil || !strings.Contains(text, c.hint) {
			t.Errorf("%s: %s %s: %s\n has no %s", c.code, c.tool, c.arguments, text, c.hint)
			continue
		}
		var call struct {
			Name      string
			Arguments json.RawMessage
		}
		if json.Unmarshal([]byte(c.hint), &call) == nil && i < 11 {
			must(t, s, call.Name, string(call.Arguments))
		}
	}
}

// TestNoSuggestion: where no input is known to do, no call is suggested.
func TestNoSuggestion(t *testing.T) {
	s := New(Options{})
	for i, code := range []string{
		"n => self(n + 1)", `r => if r.a + 1 > 0 and equal(r.b ++ "", "") then 1 else raise("no")`,
		`(a, s) => if length(s ++ "") > 1000 then a / 2 else raise("short")`, `xs => nth(xs, 9)`,
	} {
		a := must(t, s, "evolve", fmt.Sprintf(`{"name":"t%d","code":%s}`, i, quoteJSON(code)))
		if strings.Contains(string(a.Structured), `"next"`) {
			t.Errorf("%s: %s", code, a.Text)
		}
		must(t, s, "describe", fmt.Sprintf(`{"name":"t%d"}`, i))
		must(t, s, "help", fmt.Sprintf(`{"name":"t%d"}`, i))
	}
}

// TestFunctionsAsInputs: the suggested call of a tool that takes functions or code
// gives it some, and succeeds.
func TestFunctionsAsInputs(t *testing.T) {
	s := New(Options{})
	for i, code := range []string{
		"(f, xs) => map(f, xs)", "f => f(1)", "r => r.f(r.x)", "(p, x) => (fst(p))(x)", "(c, n) => eval(c) + n", "xs => map(n => n, xs)",
	} {
		a := must(t, s, "evolve", fmt.Sprintf(`{"name":"t%d","code":%s}`, i, quoteJSON(code)))
		must(t, s, strings.Trim(field(t, a, "next/name"), `"`), field(t, a, "next/arguments"))
	}
}

// TestSuggestedActs: what acts is suggested on the input of an example only, and nothing
// is done, or on record, for having been suggested.
func TestSuggestedActs(t *testing.T) {
	w := newRecordedWorld(t, 1)
	for i, c := range []struct{ code, examples, arguments string }{
		{"k => !toy.get(k)", "", ""},
		{"k => try(!toy.get(k))", "", ""},
		{"k => !toy.get(k)", `,"examples":[{"input":"notes/a","effects":[{"op":"toy.get","value":"text"}],"expect":"text"}]`, `{"tool":"t2","input":"notes/a"}`},
		{`n => if n < 0 then !toy.get("notes/a") else n`, "", `{"tool":"t3","input":5}`},
	} {
		name := fmt.Sprintf("t%d", i)
		_, arguments, notes := nextOf(t, w.server, name, c.code, `,"capabilities":["toy.get:notes/**"]`+c.examples)
		if arguments != c.arguments {
			t.Errorf("%s: %s is suggested, expected %s; %s", c.code, arguments, c.arguments, notes)
		}
		must(t, w.server, "describe", fmt.Sprintf(`{"name":%q}`, name))
		must(t, w.server, "help", fmt.Sprintf(`{"name":%q}`, name))
	}
	events, _, err := w.store.Read(journal.Query{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if e.Run != "" || !slices.Contains([]journal.Kind{journal.ToolEvolved, journal.ServerStarted}, e.Kind) {
			t.Errorf("on record: %s %s", e.Kind, e.Data)
		}
	}
	if w.script.asked != 0 {
		t.Errorf("%d operations were carried out", w.script.asked)
	}
}

// TestSuggestingIsBounded: looking for an input takes no more steps than that may, however
// the code is made, and finds the same again.
func TestSuggestingIsBounded(t *testing.T) {
	s := New(Options{})
	for i, code := range []string{
		"n => self(n + 1)",
		"n => self(n) + self(n)",
		`s => self(s ++ s)`,
		"n => pow(10, pow(10, n + 5))",
		`n => repeat(100000000, "abc")`,
		"s => if length(s) > 100000 then 1 else self(s ++ s ++ s)",
		"n => if n == 123456 then 1 else raise(\"no\")",
		"x => try(self(x))",
		"x => map(y => self(y), repeat(1000000, x))",
	} {
		_, first, _ := nextOf(t, s, fmt.Sprintf("t%d", i), code, "")
		tool, _ := s.Registry().Snapshot().Get(fmt.Sprintf("t%d", i))
		again := s.suggest(tool, s.Registry().Snapshot())
		var call struct{ Arguments json.RawMessage }
		if again.call != nil {
			if err := json.Unmarshal(again.call, &call); err != nil {
				t.Fatal(err)
			}
		}
		if string(call.Arguments) != first {
			t.Errorf("%s: %s, and then %s", code, first, call.Arguments)
		}
	}
}
