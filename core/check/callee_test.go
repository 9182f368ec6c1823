package check_test

import (
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// TestCallee: a call is typed by what is known of the tool, and what the tool
// can't take is a dynamic place: it fails in the tool, if it looks at it.
func TestCallee(t *testing.T) {
	for _, c := range []struct{ callee, code, want, reason string }{
		{"(string) -> int", `x => @t(x) + 1`, "(string) ->{call:t} int", ""},
		{"(string) -> int", `@t(1)`, "int", "what the tool takes"},
		{"(a) -> list[a]", `@t(1)`, "list[int]", ""},
		{"(a) -> pair[a, a]", `x => fst(@t(x ++ ""))`, "(string) ->{call:t} string", ""},
		{"({a: int, *: any}) -> string", `@t({a: 1, b: null})`, "string", ""},
		{"({a: int, *: any}) -> string", `@t({a: "x"})`, "string", "what the tool takes"},
		{"({a: int, *: string}) -> string", `@t({a: 1, b: 2})`, "string", "what the tool takes"},
		{"(rec a. unit | pair[int, a]) -> int", `@t((1, (2, null)))`, "int", ""},
		{"(rec a. unit | pair[int, a]) -> int", `@t((1, ("x", null)))`, "int", "what the tool takes"},
		{"(list[data]) -> int", `@t([1, "a"])`, "int", ""},
		{"(any) -> int", `@t(x => x)`, "int", "call takes"},
		{"(int) -> (int) -> int", `@t(1)`, "(any) -> int", "what the tool gives"},
		{"list[int]", `head(@t(null))`, "int", ""},
		{"(int) -> ?", `@t(1)`, "?", ""},
		{"(int) -> (int) -> int", `@t(1, 2)`, "int", ""},
		{"(a) -> (b) -> list[a | b]", `@t(1, "x")`, "list[int | string]", ""},
		{"(int) -> (int) -> int", `(a, b) => @t(a, b)`, "(int) -> (int) ->{call:t} int", ""},
		{"(int) -> (int) -> int", `@t(1, "x")`, "int", "what the tool takes"},
		{"(int) -> int", `@t(1, 2)`, "nothing", "takes 1 inputs, not 2"},
		{"int", `@t(1, 2)`, "int", ""},
		{"?", `@t(1, 2)`, "?", ""},
		{"n,k: (int) -> (int) -> int", `@t(1, 2)`, "int", ""},
		{"n,k: (int) -> (int) -> int", `@t({n: 1, k: 2})`, "int", ""},
		{"n,k: (int) -> (int) -> int", `(n, k) => @t({n, k})`, "(int) -> (int) ->{call:t} int", ""},
		{"n,k: (int) -> (int) -> int", `@t({n: 1, k: "x"})`, "int", "what the tool takes"},
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
		if err != nil {
			t.Fatal(err)
		}
		p, f := text.Parse([]byte(c.code), text.Options{})
		if f != nil {
			t.Fatal(f)
		}
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
