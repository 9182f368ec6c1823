package mcpserver

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/facts"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// structured is what an answer has under a name.
func structured(t testing.TB, content any, name string) string {
	t.Helper()
	b, err := json.Marshal(content)
	must.NoError(t, err)
	var members map[string]json.RawMessage
	must.NoError(t, json.Unmarshal(b, &members))
	var plain any
	if members[name] == nil {
		return ""
	}
	must.NoError(t, json.Unmarshal(members[name], &plain))
	return string(wire.Encode(plain)) // sorted
}

// TestCheckAnswered: evolve and describe say what is known of a tool before it runs.
func TestCheckAnswered(t *testing.T) {
	w := newRecordedWorld(t, 1)
	cs := session(t, w.server, nil)
	evolve := func(name, code, more string) (check, notes string) {
		t.Helper()
		text, res := ask(t, cs, "evolve", fmt.Sprintf(`{"name":%q,"code":%q%s}`, name, code, more))
		if res.IsError {
			t.Fatalf("%s: %s", name, text)
		}
		return text, structured(t, res.StructuredContent, "notes")
	}
	for _, c := range []struct{ name, code, more, check, note string }{
		{"square", "n => n * n", "", `"type":"(num) -> num","capabilities":[],"cost":"constant"}`, "[]"},
		{"lengths", "s => length(s) + 1", "", `"type":"(string | list[any]) -> int","capabilities":[],"cost":"linear in the length of input"}`, "[]"},
		{"again", "m => m * m", "", `"cost":"constant"`, "does the same as square@1"},
		{"fails", `x => (x, add(1, "a"))`, `,"draft":true`,
			`"problems":[{"at":"","line":1,"col":10,"kind":"type_error","message":"add takes a number as its second operand, not a string",` +
				`"hint":"Join strings with A ++ B, and make a number of one with parse_int(S) or to_dec(S). Correct: 2 + 3."}],"notes":`, ""},
		{"note", `k => !toy.get(k)`, `,"capabilities":["toy:notes/**"]`,
			`"effects":["toy.get"]`, "[]"},
		{"careful", `k => !toy.get(k)`, `,"capabilities":["toy.get:notes/**"]`, `"cost":"linear in the bytes of input"`, "does the same as note@1"},
		{"never", `k => let f = x => !toy.put({key: x, value: 1}) in !toy.get(k)`, `,"capabilities":["toy.get:notes/**","toy.put:notes/**"]`,
			`"effects":["toy.get"]`, "it declares toy.put:notes/**, and no run of it can come to use that"},
		{"says", `x => !toy.say("a")`, `,"capabilities":["toy.get:notes/**"]`, `"effects":["toy.say"]`, "[]"},
		{"counts", `k => length(!toy.get(k))`, `,"capabilities":["toy.get:notes/**"]`, `"notes":["may fail, line 1, column 6: length takes a string or a list as its operand, not a value of another kind"]`, ""},
		{"any", `c => eval(c, ["toy.get:notes/**"])`, `,"capabilities":["toy.get:notes/**"]`, `"effects":["toy.get"],`, "what eval at 1:6 will be"},
		{"calls", `k => call("note", k)`, `,"capabilities":["call:note"]`, `"effects":["call:note","toy.get"]`, "[]"},
		{"endless", `n => self(n + 1)`, "", `"cost":"bounded by its budget only"`, "[]"},
	} {
		check, notes := evolve(c.name, c.code, c.more)
		if !strings.Contains(check, c.check) || c.check[0] == '{' && check != c.check {
			t.Errorf("%s: %s\n expected %s", c.name, check, c.check)
		}
		if !strings.Contains(notes, c.note) {
			t.Errorf("%s: the notes are %s, not %s", c.name, notes, c.note)
		}
	}
	for name, want := range map[string][]string{
		"square": {`"cannot":["toy.*"]`, `"certificate":"checked"`, `"certified":["type","effects","cost","dependencies"]`, `"equals":"again@1"`, `"memory":"`, `"type":"(num) -> num"`},
		"counts": {`"cannot":["toy.put","toy.say"]`, `"effects":[{"at":"","col":13,"line":1,"op":"toy.get"}]`, `"certified":["effects","cost","dependencies"]`},
		"calls":  {`"cannot":["toy.put","toy.say"]`, `"op":"toy.get","via":"note"`, `"op":"call:note"`, `"certificate":"checked"`},
	} {
		_, res := ask(t, cs, "describe", fmt.Sprintf(`{"name":%q,"detail":true}`, name))
		got := structured(t, res.StructuredContent, "check")
		for _, part := range want {
			if !strings.Contains(got, part) {
				t.Errorf("describe %s: %s\n has no %s", name, got, part)
			}
		}
	}
	// Another server on the same record knows the same.
	other := session(t, newOther(w), nil)
	for _, name := range []string{"square", "calls"} {
		_, res := ask(t, cs, "describe", fmt.Sprintf(`{"name":%q,"detail":true}`, name))
		_, again := ask(t, other, "describe", fmt.Sprintf(`{"name":%q,"detail":true}`, name))
		if a, b := structured(t, res.StructuredContent, "check"), structured(t, again.StructuredContent, "check"); a != b || a == "" {
			t.Errorf("%s: %s\n and elsewhere %s", name, a, b)
		}
	}
	// What was replaced is known as it was bound.
	evolve("note", `k => 7`, "")
	if _, res := ask(t, cs, "describe", `{"name":"calls","detail":true}`); !strings.Contains(structured(t, res.StructuredContent, "check"), `"via":"note"`) {
		t.Error("calls is bound to the first note, and that isn't said")
	}
	if check, _ := evolve("calls", `k => call("note", k)`, `,"capabilities":["call:note"]`); !strings.Contains(check, `"effects":["call:note"]`) || !strings.Contains(check, `int`) {
		t.Errorf("bound anew: %s", check)
	}
}

// TestStrict: what isn't known to be free of type errors is refused where that is
// asked for, with the places, and nothing is kept.
func TestStrict(t *testing.T) {
	s := New(Options{})
	for _, c := range []struct{ code, strict, refused string }{
		{`x => x + 1`, `true`, ""},
		{`x => x + 1`, `"true"`, ""},
		{`x => 1 - \"a\"`, `false`, ""},
		{`x => 1 - \"a\"`, `null`, ""},
		{`x => 1 - \"a\"`, `true`, "1 place must fail"},
		{`x => 1 - \"a\"`, `"true"`, "1 place must fail"},
		{`x => parse_json(x) + 1`, `true`, "1 place is known only when it runs"},
		{`x => call(x, 1)`, `true`, "1 place is known only when it runs"},
	} {
		a := do(t, s, "evolve", fmt.Sprintf(`{"name":"t","code":"%s","strict":%s,"draft":true}`, c.code, c.strict))
		switch {
		case c.refused == "" && a.Fault != nil, c.refused != "" && a.Fault == nil:
			t.Errorf("%s with strict %s: %s", c.code, c.strict, a.Text)
		case c.refused != "" && (a.Fault.Kind != "refused" || !strings.Contains(a.Fault.Message, c.refused) || len(a.Fault.More) == 0 || a.Fault.More[0].Line != 1 || a.Fault.Hint == ""):
			t.Errorf("%s with strict %s: %s", c.code, c.strict, a.Structured)
		}
		if _, kept := s.tools.Snapshot().Get("t"); kept != (c.refused == "") {
			t.Errorf("%s with strict %s is kept: %t", c.code, c.strict, kept)
		}
		do(t, s, "retire", `{"name":"t"}`)
	}
	if a := do(t, s, "evolve", `{"name":"t","code":1,"strict":"perhaps"}`); a.Fault == nil || !strings.Contains(a.Text, `"strict"`) {
		t.Errorf("strict is perhaps: %s", a.Text)
	}
	// Very many places are told in a few words.
	a := do(t, s, "evolve", fmt.Sprintf(`{"name":"t","code":[1%s],"strict":true,"draft":true}`, strings.Repeat(`,{"add":[1,"a"]}`, 2000)))
	if a.Fault == nil || !strings.Contains(a.Text, "2000 places must fail") || len(a.Text)+len(a.Structured) > 10_000 {
		t.Errorf("%.3000s", a.Text)
	}
	b := succeed(t, s, "evolve", fmt.Sprintf(`{"name":"t","code":[1%s],"draft":true}`, strings.Repeat(`,{"add":[1,"a"]}`, 2000)))
	var answered struct {
		Problems []json.RawMessage
		More     int `json:"more_problems"`
	}
	if err := json.Unmarshal(b.Structured, &answered); err != nil || len(answered.Problems) != facts.MostPlaces || answered.More != 2000-facts.MostPlaces {
		t.Errorf("%v, %+v", err, answered)
	}
}

// TestHugeCheck: what is known of code that is made to be hard is told in few words.
func TestHugeCheck(t *testing.T) {
	s := New(Options{})
	var pairs strings.Builder
	for i := range 60 {
		fmt.Fprintf(&pairs, `,["p%d",{"pair":[{"var":"p%d"},{"var":"p%[2]d"}]}]`, i+1, i)
	}
	keys := make([]string, 300)
	for i := range keys {
		keys[i] = fmt.Sprintf("k%d: %q", i, strings.Repeat("long ", 20))
	}
	for name, code := range map[string]string{
		"items": "[1" + strings.Repeat(",1", 100_000) + "]",
		"pairs": `{"let":[["p0",{"pair":[1,2]}]` + pairs.String() + `],"in":{"var":"p60"}}`,
		"keys":  string(wire.Encode("{" + strings.Join(keys, ", ") + "}")),
		"deep":  strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
		"many":  string(wire.Encode("f => [" + strings.Repeat(`f(1)(2), `, 800) + "1]")),
	} {
		a := succeed(t, s, "evolve", fmt.Sprintf(`{"name":%q,"code":%s}`, name, code))
		if text := field(t, a, "text"); len(a.Text)-len(text)-len(field(t, a, "next")) > 1200 {
			t.Errorf("%s: an answer of %d bytes: %.3000s", name, len(a.Text), a.Text)
		}
		if c := field(t, succeed(t, s, "describe", fmt.Sprintf(`{"name":%q,"detail":true}`, name)), "check"); c == "" || len(c) > 20_000 {
			t.Errorf("%s: a check of %d bytes", name, len(c))
		}
	}
}

// TestAskedIsInTheRow: whatever is asked for while a tool runs is among the effects
// that were known before, or it was said that there can be others.
func TestAskedIsInTheRow(t *testing.T) {
	runs := must.Full(60, 5000)
	w := newRecordedWorld(t, 7)
	w.evolve("helper", term1{"lam": "x", "body": []any{term1{"toy.get": "notes/helper"}, term1{"var": "x"}}}, toyGet)
	w.evolve("secret", 1)
	seen, closed, sound := 0, 0, 0
	for range runs {
		w.evolve("it", term1{"lam": "x", "body": []any{w.program(4), w.program(3)}}, toyGet, toyPut, "call:helper")
		tool, _ := w.server.tools.Snapshot().Get("it")
		r := tool.Report()
		open := r.Open || slices.ContainsFunc(r.Effects, func(e check.Effect) bool { return e.Op == "*" && !e.Inert })
		if !open {
			closed++
		}
		input, err := json.Marshal(w.input())
		must.NoError(t, err)
		a := do(t, w.server, "run", fmt.Sprintf(`{"tool":"it","input":%s,"input_as":"data"}`, input))
		if r.Sound() && r.Type.Param.Any {
			if sound++; a.Fault != nil && (a.Fault.Kind == fault.TypeError || a.Fault.Kind == fault.Unbound) {
				t.Errorf("%s is sound, and gives %s", registry.Printed(tool.Program()), a.Text)
			}
		}
		events, _, err := w.store.Read(journal.Query{Run: w.newest(), Kind: "effect", Limit: 10_000})
		must.NoError(t, err)
		for _, e := range events {
			var data struct{ Op, Callee string }
			if e.Kind == journal.EffectOutcome {
				continue
			}
			if err := json.Unmarshal(e.Data, &data); err != nil || data.Op == "" {
				t.Fatal(err, string(e.Data))
			}
			if data.Callee != "" {
				data.Op += ":" + data.Callee
			}
			seen++
			if !open && !slices.ContainsFunc(r.Effects, func(f check.Effect) bool {
				// What an eval denies is asked for in vain.
				return (f.Op == data.Op || strings.HasPrefix(data.Op, "call:") && f.Op == "call:*") && (e.Kind == journal.EffectDenied || !f.Inert)
			}) {
				t.Errorf("%s %s isn't in %+v of %s", e.Kind, data.Op, r.Effects, registry.Printed(tool.Program()))
			}
			if e.Kind == journal.EffectRequested && slices.Contains(tool.Unreachable([]string{data.Op}), data.Op) {
				t.Errorf("%s is said to be out of reach of %s", data.Op, registry.Printed(tool.Program()))
			}
		}
	}
	t.Logf("%d were asked for; of %d of %d tools all operations are known, %d are sound", seen, closed, runs, sound)
	if seen < runs || closed < runs/5 || sound == 0 {
		t.Error("these runs show too little")
	}
}

// newOther is another server on the same record.
func newOther(w *recordedWorld) *Server {
	return New(Options{Broker: run.New(run.Options{Policy: w.policy, Handler: w.script, Journal: w.store})})
}

// TestCostNames: a cost is told in sizes of what a caller gives, by the names that the
// input schema has.
func TestCostNames(t *testing.T) {
	s := New(Options{})
	measured := regexp.MustCompile(`(?:length|magnitude|words beyond 64 bits|bytes|terms) of ([^, ;\[]+)`)
	for i, c := range []struct{ code, has string }{
		{"s => length(s)", "length of input"},
		{"`my list` => sum(`my list`)", "length of input"},
		{"r => length(r.name)", `length of input["name"]`},
		{"(x, x) => x", "terms of x_2"},
		{"(xs, xs) => length(xs)", "length of xs_2"},
		{"(`a b`, `a_b`) => length(`a_b`)", "length of a_b_2"},
		{"(`__proto__`, n) => n + 1", "terms of _proto_"},
		{"(xs, n) => length(xs) + n", "length of xs"},
		{`{"lam":"!a","body":{"lam":"@b","body":{"length":{"var":"@b"}}}}`, "length of _b"},
	} {
		name := fmt.Sprintf("t%d", i)
		succeed(t, s, "evolve", string(wire.Begin().Text("name", name).Text("code", c.code).End()))
		whole := field(t, succeed(t, s, "describe", fmt.Sprintf(`{"name":%q,"detail":true}`, name)), "check/cost")
		steps := whole
		if !strings.Contains(steps, strings.ReplaceAll(c.has, `"`, `\"`)) {
			t.Errorf("%s: %s has no %s", c.code, steps, c.has)
		}
		tool, _ := s.Registry().Snapshot().Get(name)
		var schema struct{ Properties map[string]any }
		must.NoError(t, json.Unmarshal(tool.InputSchema(), &schema))
		found := measured.FindAllStringSubmatch(whole, -1)
		if len(found) < 2 {
			t.Errorf("%s: %s and %s tell of no arguments", c.code, steps, whole)
		}
		for _, m := range found {
			if _, ok := schema.Properties[strings.Trim(m[1], `"\}`)]; !ok {
				t.Errorf("%s: the cost is told in sizes of %s, the arguments are %v", c.code, m[1], schema.Properties)
			}
		}
	}
}

// TestRefusesWhatCannotWork: code with places that always fail is refused with all of
// them, each with its fix once, and the version before stays.
func TestRefusesWhatCannotWork(t *testing.T) {
	s := New(Options{})
	succeed(t, s, "evolve", `{"name":"square","code":"n => n * n"}`)
	for _, c := range []struct {
		code  string
		words []string
	}{
		{`n => foo(n)`, []string{"1 place fails", `version 1 of "square" stays`, `binds the variable "foo"`}},
		{`n => lenght(n) + lenght([n]) + foldl(n, 1)`, []string{"3 places", "Did you mean length", "column 18", "Did you mean fold"}},
		{`n => if n < 0 then "none" else add(n, "s")`, []string{"line 1, column 32", `add(n, "s")`, "A ++ B"}},
		{`n => cube(n)`, []string{`binds the variable "cube"`}},
		{`n => square(n - 1)`, []string{"self(n - 1)"}},
		{`n => if eq(n, "a") then eq(n, "b") else n`, []string{"2 places", "A == B"}},
		{`{"lam":"n","body":{"if":{"cond":true,"then":{"length":5},"else":{"var":"m"}}}}`, []string{"2 places", "/body/if/then", `{"length":5}`, "/body/if/else"}},
		{`n => [` + strings.Repeat(`n - "a", `, 12) + `n]`, []string{"12 places", "the first 8"}},
	} {
		a := do(t, s, "evolve", string(wire.Encode(map[string]any{"name": "square", "code": c.code})))
		if a.Fault == nil || a.Fault.Kind != fault.Refused {
			t.Errorf("%s: %s", c.code, a.Text)
			continue
		}
		for _, w := range c.words {
			if !strings.Contains(a.Text, w) {
				t.Errorf("%s: %q isn't in\n%s", c.code, w, a.Text)
			}
		}
		for _, g := range a.Fault.More {
			if g.Hint != "" && strings.Count(a.Text, g.Hint) > 1 {
				t.Errorf("%s: %q comes twice in\n%s", c.code, g.Hint, a.Text)
			}
		}
	}
	many := make([]string, 20)
	for i := range many {
		many[i] = fmt.Sprintf("v%d", i)
	}
	a := do(t, s, "evolve", string(wire.Encode(map[string]any{"name": "square", "code": "n => [" + strings.Join(many, ", ") + "]"})))
	if a.Fault == nil || len(a.Fault.More) != facts.MostBroken || len(a.Text) > 2000 {
		t.Errorf("%s", a.Text)
	}
	if a := succeed(t, s, "run", `{"tool":"square","input":7}`); a.Text != "49" {
		t.Errorf("%s", a.Text)
	}
	if a := succeed(t, s, "evolve", `{"name":"square","code":"n => foo(n)","draft":true}`); field(t, a, "version") != "2" {
		t.Errorf("%s", a.Text)
	}
	for _, code := range []string{`x + 1`, `n => try(foo(n))`, `n => quote(foo(n))`, `n => raise("no")`, `n => match n { 1 => 2 }`} {
		succeed(t, s, "evolve", string(wire.Encode(map[string]any{"name": "fine", "code": code})))
	}
}

// TestRefusesWhatFailsEachTime: code that fails each time by its constants, or in the
// tool that it calls, is refused in one place with its fix; what only may fail is made.
func TestRefusesWhatFailsEachTime(t *testing.T) {
	s := New(Options{})
	for name, code := range map[string]string{
		"sub": `(a, b) => a - b`, "sq": `n => n * n`, "area": `r => r.w * r.h`, "or_else": `(a, b) => if equal(a, null) then b else a ++ b`,
	} {
		succeed(t, s, "evolve", string(wire.Encode(map[string]any{"name": name, "code": code})))
	}
	for _, c := range []struct{ code, message, fix string }{
		{`x => @sub("a", 2)`, "not a string", "(num) -> (num) -> num"},
		{`x => @sub(x ++ "", x)`, "not a string", "(num) -> (num) -> num"},
		{`x => @sub(1)`, "b is missing", "@sub(A, B)"},
		{`x => @sub(1, 2, 3)`, "takes 2 inputs, not 3", "Leave out"},
		{`x => @sub({a: 1, c: 2})`, "no parameter c", "@sub(A, B)"},
		{`x => if x then @sq([1]) else 0`, "not a list", "(num) -> num"},
		{`x => @area({w: 1})`, `no key "h"`, "{h: num, w: num, *: any}"},
		{`x => head([])`, "head of the empty list", "isEmpty(L)"},
		{`x => tail([])`, "tail of the empty list", "isEmpty(L)"},
		{`x => last([])`, "the empty list", "isEmpty(L)"},
		{`x => min([])`, "the empty list", "isEmpty(L)"},
		{`x => parse_int("x")`, `"x" is no integer`, "try(parse_int(S))"},
		{`x => to_dec("x")`, `"x" is no number`, "try(to_dec(S))"},
		{`x => parse_json("{")`, "expected a key", "try(parse_json(S))"},
		{`x => to_code({a: 1})`, "no op", "to_data"},
		{`x => nth([1], 5)`, "no item 5", "length(L)"},
		{`x => nth(x, -1)`, "a negative index", "length(L) - 1"},
		{`x => set_nth(x, -1, 0)`, "a negative index", "length(L) - 1"},
		{`x => slice(x, -1, 2)`, "0 ≤ from", "length(L) - 2"},
		{`x => ::pow(2, -1)`, "isn't negative", "pow(2, 100)"},
		{`x => ::pow(x, -1)`, "isn't negative", "pow(2, 100)"},
		{`x => 5 / 0`, "div by 0", "another number"},
		{`x => x % (1 - 1)`, "mod by 0", "another number"},
		{`x => let d = 0 in x / d`, "div by 0", "another number"},
		{`x => div_dec(x, 0, 2, "down")`, "div_dec by 0", "another number"},
		{`x => round_dec(x, 2, "halfup")`, `no rounding "halfup"`, "half_even"},
		{`x => to_int(x, "round")`, `no rounding "round"`, "half_even"},
		{`x => map(5, [1])`, "map takes a function as its first operand", "Give map a function"},
		{`x => zip(1, x)`, "zip takes a list as its first operand", "Give zip a list"},
		{`x => filter(y => y, [1])`, "a function that gives true or false, and it gave the integer 1", "Give filter a function"},
		{`x => sort([1, "a"])`, "sort can't compare", "all numbers or all strings"},
		{`x => sum([1, "a"])`, "sum takes as its operand a list each of whose items is a number", "sum(map(x => to_dec(x), L))"},
		{`x => join([1], ",")`, "each of whose items is a string", "to_text(x)"},
		{`x => split(x, "")`, "an empty string", "chars(S)"},
		{`x => replace(x, "", "a")`, "an empty string", `replace(S, "a", "b")`},
		{`x => range(0, 99999999999999999999)`, "64 bits", "range(0, N)"},
		{`x => 5(3)`, "takes a function", "Give app a function"},
		{`x => get({a: 1}, "b")`, `no key "b"`, `It has "a".`},
		{`x => {total: 1}.totl`, `no key "totl"`, `Did you mean "total"?`},
		{`x => let xs = [], f = y => head(y) in f(xs)`, "head of the empty list", "isEmpty(L)"},
		{`x => let f = y => 10 / y in f(0)`, "div of the integer 10 by 0", "if B == 0"},
		{`x => [x ++ "a", x + 1]`, `no value of "x" fits each of its uses`, "type_of(X)"},
		{`(a, b) => [a ++ "x", a - b]`, `no value of "a" fits each of its uses`, "type_of(X)"},
		{`let rates = {eur: 1.1} in x => x * get(rates, x)`, `no value of "x" fits each of its uses`, "type_of(X)"},
		{`x => x.a + x`, `no value of "x" fits each of its uses`, "type_of(X)"},
		{`x => if x < 0 then head([]) else x`, "head of the empty list", "isEmpty(L)"},
		{`x => map(y => head([]), x)`, "head of the empty list", "isEmpty(L)"},
		{`x => @or_else(null, "a")`, "", ""},
		{`x => @sub(x, 1)`, "", ""},
		{`x => try(@sub("a", 1))`, "", ""},
		{`x => quote(@sub("a", 1))`, "", ""},
		{`x => try(head([]))`, "", ""},
		{`x => quote(head([]))`, "", ""},
		{`x => eval(quote(head([])))`, "", ""},
		{`x => raise("no")`, "", ""},
		{`x => match 5 { "a" => 1 }`, "", ""},
		{`x => map(y => if y then y else raise("no"), [false])`, "", ""},
		{`x => let xs = [] in if x then xs else tail(cons(x, xs))`, "", ""},
		{`x => head(x.a) + nth(x.a, 5) + parse_int(x.b)`, "", ""},
		{`x => let xs = [] in if isEmpty(xs) then x else head(xs)`, "", ""},
		{`x => let on = false in on and head([])`, "", ""},
		{`x => match '{1 + 2} { '{1} => 1; _ => x }`, "", ""},
		{`x => map(5, x)`, "", ""},
		{`x => get(x, "a") + 10 / x.b`, "", ""},
		{`x => if equal(type_of(x), "string") then x ++ "a" else x + 1`, "", ""},
		{`x => sum(range(0, 100000)) + pow(10, 100)`, "", ""},
		{`x => let f = f => f(f) in f(f)`, "", ""},
	} {
		capabilities := []string{}
		for _, name := range []string{"sub", "sq", "area", "or_else"} {
			if strings.Contains(c.code, "@"+name) {
				capabilities = append(capabilities, "call:"+name)
			}
		}
		a := do(t, s, "evolve", string(wire.Encode(map[string]any{"name": "it", "code": c.code, "capabilities": capabilities})))
		switch {
		case c.message == "":
			if a.Fault != nil {
				t.Errorf("%s: %s", c.code, a.Text)
			}
		case a.Fault == nil || a.Fault.Kind != fault.Refused || len(a.Fault.More) != 1:
			t.Errorf("%s: %s", c.code, a.Text)
		case !strings.Contains(a.Fault.More[0].Message, c.message) || !strings.Contains(a.Fault.More[0].Hint, c.fix):
			t.Errorf("%s: %s", c.code, a.Text)
		default:
			succeed(t, s, "evolve", string(wire.Encode(map[string]any{"name": "draft", "code": c.code, "capabilities": capabilities, "draft": true})))
		}
	}
}

// TestPublishedMustWork: what types tell of a prompt or a resource that can't be used
// refuses it.
func TestPublishedMustWork(t *testing.T) {
	s := New(Options{})
	for _, c := range []struct{ as, code, refused string }{
		{"prompt", `n => n * 2`, "this gives num"},
		{"prompt", `(a, b) => [a ++ b]`, "this gives list[string]"},
		{"prompt", `a => []`, "an empty list"},
		{"prompt", `a => [{role: "user", text: 5}]`, "text: int"},
		{"prompt", `a => [{role: "user", text: a, more: 1}]`, "more: int"},
		{"prompt", `a => {role: "user", text: a}`, "role: string"},
		{"prompt", `a => "Say " ++ a`, ""},
		{"prompt", `"Say it"`, ""},
		{"prompt", `(a, b) => [{role: "user", text: a}, {role: "assistant", text: b}]`, ""},
		{"prompt", `a => parse_json(a)`, ""},
		{"resource", `n => n + 1`, "fails on it: it takes num"},
		{"resource", `(a, b) => a`, "the parameters a, b"},
		{"resource", `x => y => x`, "the parameters x, y"},
		{"resource", `x => if equal(x, null) then (y => x) else (z => z)`, "gives"},
		{"resource", `x => 5`, ""},
		{"resource", `"text"`, ""},
		{"resource", `x => if equal(x, null) then {a: 1} else x`, ""},
	} {
		a := do(t, s, "evolve", string(wire.Encode(map[string]any{"name": "it", "code": c.code, "as": c.as})))
		if (a.Fault == nil) != (c.refused == "") || !strings.Contains(a.Text, c.refused) {
			t.Errorf("%s %s: %s", c.as, c.code, a.Text)
		}
	}
}

// TestNoEffects: of effects that an eval never permits evolve says nothing, as of
// everything that would be empty; describe has the places.
func TestNoEffects(t *testing.T) {
	w := newRecordedWorld(t, 1)
	cs := session(t, w.server, nil)
	text, res := ask(t, cs, "evolve", `{"name":"inert","code":"k => eval('{!toy.get(\"notes/a\")})","capabilities":[]}`)
	if res.IsError {
		t.Fatal(text)
	}
	if check := structured(t, res.StructuredContent, "check"); strings.Contains(check, `"effects"`) {
		t.Error(check)
	}
	text, _ = ask(t, cs, "describe", `{"name":"inert","detail":true}`)
	if !strings.Contains(text, `"inert":true`) {
		t.Error(text)
	}
}
