package check_test

import (
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// TestCallee: a call is typed by what is known of the tool, and what the tool
// can't take is a dynamic place: it fails in the tool, if it looks at it.
func TestCallee(t *testing.T) {
	for _, c := range []struct{ callee, code, want, reason string }{
		{"(string) -> int", `x => @t(x) + 1`, "(string) ->{call:t} int", ""},
		{"(string) -> int", `@t(1)`, "int | ?", "what the tool takes"},
		{"(a) -> list[a]", `@t(1)`, "list[int]", ""},
		{"(a) -> pair[a, a]", `x => fst(@t(x ++ ""))`, "(string) ->{call:t} string", ""},
		{"({a: int, *: any}) -> string", `@t({a: 1, b: null})`, "string", ""},
		{"({a: int, *: any}) -> string", `@t({a: "x"})`, "string | ?", "what the tool takes"},
		{"({a: int, *: string}) -> string", `@t({a: 1, b: 2})`, "string | ?", "what the tool takes"},
		{"(rec a. unit | pair[int, a]) -> int", `@t((1, (2, null)))`, "int", ""},
		{"(rec a. unit | pair[int, a]) -> int", `@t((1, ("x", null)))`, "int | ?", "what the tool takes"},
		{"(list[data]) -> int", `@t([1, "a"])`, "int", ""},
		{"(any) -> int", `@t(x => x)`, "int", "call takes"},
		{"(int) -> (int) -> int", `@t(1)`, "(any) -> int", "what the tool gives"},
		{"list[int]", `head(@t(null))`, "int", ""},
		{"(int) -> ?", `@t(1)`, "?", ""},
		{"(int) -> (int) -> int", `@t(1, 2)`, "int", ""},
		{"(a) -> (b) -> list[a | b]", `@t(1, "x")`, "list[int | string]", ""},
		{"(int) -> (int) -> int", `(a, b) => @t(a, b)`, "(int) -> (int) ->{call:t} int", ""},
		{"(int) -> (int) -> int", `@t(1, "x")`, "int | ?", "what the tool takes"},
		{"(int) -> int", `@t(1, 2)`, "nothing", "takes 1 input, not 2"},
		{"int", `@t(1, 2)`, "int", ""},
		{"?", `@t(1, 2)`, "?", ""},
		{"n,k: (int) -> (int) -> int", `@t(1, 2)`, "int", ""},
		{"n,k: (int) -> (int) -> int", `@t({n: 1, k: 2})`, "int", ""},
		{"n,k: (int) -> (int) -> int", `(n, k) => @t({n, k})`, "(int) -> (int) ->{call:t} int", ""},
		{"n,k: (int) -> (int) -> int", `@t({n: 1, k: "x"})`, "int | ?", "what the tool takes"},
		{"n,k: (int) -> (int) -> int", `@t({n: 1})`, "int", "takes n and k: k is missing"},
		{"n,k: (int) -> (int) -> int", `@t({n: 1, k: 2, z: 3})`, "int", "there is no parameter z"},
		{"n,k: (int) -> (int) -> int", `@t(1)`, "int", "takes n and k: k is missing"},
		{"n,k,m: (int) -> (int) -> (int) -> int", `@t(1, 2)`, "nothing", "takes n, k and m: m is missing"},
		{"n,k: (int) -> (int) -> int", `@t([1, 2])`, "int", "whether"},
		{"n,k: (int) -> (int) -> int", `r => @t(r)`, "({k: int, n: int, *: data}) ->{call:t} int", "whether"},
	} {
		params, of, named := strings.Cut(c.callee, ": ")
		if !named || strings.ContainsAny(params, "({") {
			params, of = "", c.callee
		}
		callee, err := check.ParseType(of)
		must.NoError(t, err)
		p, f := text.Parse([]byte(c.code), text.Options{})
		must.NoFault(t, f)
		r := check.Infer(p.Term, p.Source, check.Env{Callee: func(string) (check.Callee, bool) {
			return check.Callee{Type: callee, Params: strings.FieldsFunc(params, func(r rune) bool { return r == ',' }), Sound: true}, true
		}}, check.Budget{})
		why := ""
		for _, d := range r.Dynamic {
			why += d.Message
		}
		for _, d := range r.Diagnostics {
			why += d.Message
		}
		if r.Type.String() != c.want || (why == "") != (c.reason == "") || !strings.Contains(why, c.reason) {
			t.Errorf("%s of a tool %s is %s (%q), want %s (%q)", c.code, c.callee, r.Type, why, c.want, c.reason)
		}
	}
}

// TestCallThatFails: a call breaks a program where the tool's code can't but fail on
// what it is given; what a branch of it may fail on doesn't.
func TestCallThatFails(t *testing.T) {
	for _, c := range []struct{ callee, code, want string }{
		{`(a, b) => a - b`, `x => @t("a", 2)`, "sub takes a number as its first operand, not a string"},
		{`(a, b) => a - b`, `x => @t({b: x ++ "", a: 2})`, "sub takes a number as its second operand, not a string"},
		{`(a, b) => a - b`, `x => if x then @t(1, [2]) else 0`, "not a list"},
		{`(a, b) => a - b`, `x => @t(1, 2)`, ""},
		{`(a, b) => a - b`, `x => @t(x, x)`, ""},
		{`(a, b) => a - b`, `x => @t(if x then 1 else "a", 2)`, ""},
		{`(a, b) => a - b`, `x => try(@t("a", 2))`, ""},
		{`(a, b) => a - b`, `x => '{@t("a", 2)}`, ""},
		{`(a, b) => a - b`, `x => let f = y => @t(y, 2) in [f(1), f("a")]`, ""},
		{`(a, b) => a - b`, `x => let f = y => @t(y, 2) in f("a")`, "not a string"},
		{`(a, b) => a - b`, `x => @t(1, 2, 3)`, "takes 2 inputs, not 3"},
		{`(a, b) => a - b`, `x => @t(1)`, "b is missing"},
		{`(a, b) => a - b`, `x => @t({a: 1, c: 2})`, "no parameter c"},
		{`n => n * n`, `x => @t([1])`, "not a list"},
		{`n * n`, `x => @t("a")`, "not a string"},
		{`n => n * n`, `x => @t(1, 2)`, "takes 1 input, not 2"},
		{`r => r.w * r.h`, `x => @t({w: x})`, `no key "h"`},
		{`r => r.w * r.h`, `x => @t({w: x, h: "a"})`, "second operand, not a string"},
		{`r => r.w * r.h`, `x => @t({w: x, h: 2, d: 3})`, ""},
		{`xs => sum(xs)`, `x => @t(5)`, "fold takes a list"},
		{`xs => sum(xs)`, `x => @t([])`, ""},
		{`p => let a = fst(p) in a + 1`, `x => @t(("a", 1))`, "not a string"},
		{`(s, x) => if equal(s, null) then x else s ++ x`, `x => @t(null, 5)`, ""},
		{`(s, x) => if equal(s, null) then x else s ++ x`, `x => @t(5, 5)`, ""},
		{`(c, x) => c and x > 1`, `x => @t(false, "a")`, ""},
		{`(c, x) => c and x > 1`, `x => @t(1, 5)`, "and takes true or false"},
		{`x => if x then sum("a") else 0`, `x => @t(x)`, ""},
		{`x => try(x + 1)`, `x => @t("a")`, ""},
		{`x => let f = y => x + y in 5`, `x => @t("a")`, ""},
		{`x => match x { {k: v} => v; _ => 0 }`, `x => @t(5)`, ""},
		{`x => if x then eval('{1 - "a"}) else 0`, `x => @t(false)`, ""},
		{`x => @u(x) + 1`, `x => @t("a")`, ""},
		{`n => if n < 2 then n else self(n - 1)`, `x => @t("a")`, "lt takes a number"},
		{`5`, `x => @t("a")`, ""},
		{`5`, `n => if eq(n, 0) then 0 else self("a") + n`, "self fails on these inputs: eq takes a number"},
		{`5`, `(a, b) => b + (if a == 0 then 0 else self(a - 1)("x"))`, "not a string"},
		{`5`, `n => if equal(type_of(n), "string") then 1 else self("a")`, ""},
		{`5`, `n => if n == 0 then 0 else try(self("a")) `, ""},
		{`5`, `n => if n == 0 then 0 else self(if n > 5 then "a" else 0)`, ""},
		{`5`, `n => '{self("a")}`, ""},
		{`xs => max(xs[0], xs[1])`, `x => @t([x, 3]) + 1`, ""},
		{`r => let f = n => if type_of(n) != "record" then n else fold((m, k) => put(m, k, f(n[k])), {}, keys(n)) in fold((m, k) => put(m, k, f(r[k])), {}, keys(r))`, `x => @t({n: 1, a: "q"}).n + 1`, ""},
		{`let m = {a: 1}, f = k => get(m, k) in k => f(k) + k`, `x => @t("a")`, "second operand, not a string"},
		{`let m = {a: 1}, f = k => get(m, k) in k => f(k) + 1`, `x => @t("a")`, ""},
	} {
		callee := parsed(t, c.callee)
		known := check.Infer(callee.Term, callee.Source, check.Env{Tool: "t"}, check.Budget{})
		p := parsed(t, c.code)
		r := check.Infer(p.Term, p.Source, check.Env{
			Tool: "tool",
			Callee: func(string) (check.Callee, bool) {
				return check.Callee{Type: known.Type, Params: known.Params, Sound: known.Sound()}, true
			},
			Code: func(string) (term.Term, bool) { return callee.Term, true },
		}, check.Budget{})
		why := ""
		for _, d := range r.Broken() {
			why += d.Message
		}
		if (why == "") != (c.want == "") || !strings.Contains(why, c.want) {
			t.Errorf("%s of a tool %s is broken by %q, want %q", c.code, c.callee, why, c.want)
		}
	}
}

func parsed(t *testing.T, src string) *text.Parsed {
	t.Helper()
	p, f := text.Parse([]byte(src), text.Options{Tool: "t"})
	if f != nil {
		t.Fatal(src, f)
	}
	return p
}
