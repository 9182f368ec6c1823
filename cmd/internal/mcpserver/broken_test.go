package mcpserver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// TestRefusesWhatCannotWork: code with places that always fail is refused with all of
// them, each with its fix once, and the version before stays.
func TestRefusesWhatCannotWork(t *testing.T) {
	s := New(Options{})
	must(t, s, "evolve", `{"name":"square","code":"n => n * n"}`)
	for _, c := range []struct {
		code  string
		words []string
	}{
		{`n => foo(n)`, []string{"1 place fails", `version 1 of "square" stays`, `binds the variable "foo"`}},
		{`n => len(n) + len([n]) + reduce(n, 1)`, []string{"3 places", "Did you mean length", "column 15", "Did you mean fold"}},
		{`n => if n < 0 then "none" else n + "s"`, []string{"line 1, column 34", `n + "s"`, "A ++ B"}},
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
	if a.Fault == nil || len(a.Fault.More) != mostBroken || len(a.Text) > 2000 {
		t.Errorf("%s", a.Text)
	}
	if a := must(t, s, "run", `{"tool":"square","input":7}`); a.Text != "49" {
		t.Errorf("%s", a.Text)
	}
	if a := must(t, s, "evolve", `{"name":"square","code":"n => foo(n)","draft":true}`); field(t, a, "version") != "2" {
		t.Errorf("%s", a.Text)
	}
	for _, code := range []string{`x + 1`, `n => try(foo(n))`, `n => quote(foo(n))`, `n => raise("no")`, `n => match n { 1 => 2 }`} {
		must(t, s, "evolve", string(wire.Encode(map[string]any{"name": "fine", "code": code})))
	}
}

// TestRefusesWhatFailsEachTime: code that fails each time by its constants, or in the
// tool that it calls, is refused in one place with its fix; what only may fail is made.
func TestRefusesWhatFailsEachTime(t *testing.T) {
	s := New(Options{})
	for name, code := range map[string]string{
		"sub": `(a, b) => a - b`, "sq": `n => n * n`, "area": `r => r.w * r.h`, "or_else": `(a, b) => if equal(a, null) then b else a ++ b`,
	} {
		must(t, s, "evolve", string(wire.Encode(map[string]any{"name": name, "code": code})))
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
		{`x => pow(2, -1)`, "isn't negative", "pow(2, 100)"},
		{`x => pow(x, -1)`, "isn't negative", "pow(2, 100)"},
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
		{`x => get({a: 1}, "b")`, `no key "b"`, "get(R, K, DEFAULT)"},
		{`x => let xs = [], f = y => head(y) in f(xs)`, "head of the empty list", "isEmpty(L)"},
		{`x => let f = y => 10 / y in f(0)`, "div of the integer 10 by 0", "if B == 0"},
		{`x => [x ++ "a", x + 1]`, `no value of "x" fits each of its uses`, "type_of(X)"},
		{`(a, b) => [a ++ "x", a + b]`, `no value of "a" fits each of its uses`, "type_of(X)"},
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
			must(t, s, "evolve", string(wire.Encode(map[string]any{"name": "draft", "code": c.code, "capabilities": capabilities, "draft": true})))
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
