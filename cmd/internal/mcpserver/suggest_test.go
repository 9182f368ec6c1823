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
		{`s => get(parse_json(s), "price") * 2`, ""},
		{`s => parse_json(s) |> map(r => r.price) |> sum`, ""},
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
		if strings.Contains(notes, "shape of a call") {
			if i != 20 { // nothing succeeds
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

// TestSuggestedShape: where no input is known to do there is the shape of one, and it
// is said why.
func TestSuggestedShape(t *testing.T) {
	s := New(Options{})
	for i, c := range []struct{ code, arguments, note string }{
		{"n => self(n + 1)", `{"tool":"t0","input":"<int>"}`, "takes more than the 5000 steps"},
		{`r => if r.a + 1 > 0 and equal(r.b ++ "", "") then 1 else raise("no")`, `{"tool":"t1","input":{"a":"<int>","b":"<string>"}}`, "fails with"},
		{`(a, s) => if length(s ++ "") > 1000 then a / 2 else raise("short")`, `{"a":"<int>","s":"<string>"}`, "fails with raised"},
	} {
		_, arguments, notes := nextOf(t, s, fmt.Sprintf("t%d", i), c.code, "")
		if arguments != c.arguments || !strings.Contains(notes, "next shows the shape of a call") || !strings.Contains(notes, c.note) {
			t.Errorf("%s: %s, %s", c.code, arguments, notes)
		}
	}
}

// TestNoJSONIsAFunction: of a tool that takes a function it is said that it can't be
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

// TestSuggestedActs: what is suggested for a tool that acts lies within what it holds,
// and nothing is done, or on record, for having been suggested.
func TestSuggestedActs(t *testing.T) {
	w := newRecordedWorld(t, 1)
	for i, c := range []struct{ code, verbs, arguments string }{
		{"k => !toy.get(k)", "get", `{"tool":"t0","input":"notes/example"}`},
		{"k => !toy.get({key: k})", "get", `{"tool":"t1","input":"notes/example"}`},
		{`k => !toy.get("notes/" ++ k)`, "get", `{"tool":"t2","input":"abc"}`},
		{"(v, k) => !toy.put({key: k, value: v})", "put", `{"v":"abc","k":"notes/example"}`},
		{"r => !toy.put({value: r.v, key: r.at.k})", "put", `{"tool":"t4","input":{"at":{"k":"notes/example"},"v":"def"}}`},
		{"(from, to) => let v = !toy.get(from) in !toy.put({key: to, value: v})", "get,put", `{"from":"notes/example","to":"notes/example"}`},
		{"ks => map(k => !toy.get(k), ks)", "get", `{"tool":"t6","input":["notes/example"]}`},
		{"k => try(!toy.get(k))", "get", `{"tool":"t7","input":"notes/example"}`},
		{`k => !toy.get("other/" ++ k)`, "get", `{"tool":"t8","input":"<string>"}`},
		{"n => par(!toy.get(\"notes/a\"), n / 2)", "get", `{"tool":"t9","input":5}`},
	} {
		name := fmt.Sprintf("t%d", i)
		_, arguments, notes := nextOf(t, w.server, name, c.code, `,"capabilities":["toy.`+c.verbs+`:notes/**"]`)
		if arguments != c.arguments {
			t.Errorf("%s: %s is suggested, expected %s; %s", c.code, arguments, c.arguments, notes)
		}
		if strings.Contains(arguments, "example") != strings.Contains(notes, "give one that is meant") {
			t.Errorf("%s: %s", c.code, notes)
		}
		must(t, w.server, "describe", fmt.Sprintf(`{"name":%q}`, name))
		must(t, w.server, "help", fmt.Sprintf(`{"name":%q}`, name))
	}
	// Of several capabilities of a kind it has to be said which is meant.
	const both = `,"capabilities":["toy.get:notes/a/**","toy.get:notes/b/**"]`
	if _, arguments, _ := nextOf(t, w.server, "that", `k => !toy.get({in: "notes/b/**", key: k})`, both); arguments != `{"tool":"that","input":"notes/b/example"}` {
		t.Errorf("that: %s", arguments)
	}
	// What another tool asks for is held against what that one holds.
	if _, arguments, _ := nextOf(t, w.server, "outer", "k => @t0(k)", `,"capabilities":["call:t0"]`); arguments != `{"tool":"outer","input":"notes/example"}` {
		t.Errorf("outer: %s", arguments)
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
		p := &prober{server: s, tool: tool, trial: &trial{server: s, candidate: tool, sees: s.Registry().Snapshot()}, left: probeSteps}
		p.params, _ = tool.Report().Arguments()
		again := p.search()
		var call struct{ Arguments json.RawMessage }
		if err := json.Unmarshal(again.call, &call); err != nil {
			t.Fatal(err)
		}
		if string(call.Arguments) != first {
			t.Errorf("%s: %s, and then %s", code, first, call.Arguments)
		}
		if p.runs > mostProbes+1 || p.left > probeSteps {
			t.Errorf("%s: %d runs, %d steps left", code, p.runs, p.left)
		}
		// With no steps left nothing more is tried.
		p.left, p.runs = 1, 0
		if p.search(); p.runs > 2 {
			t.Errorf("%s: %d runs in a step", code, p.runs)
		}
	}
}
