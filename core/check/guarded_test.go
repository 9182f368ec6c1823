package check_test

import (
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// A place that fails each time it is reached breaks a program, but for those that a
// program may be meant to have.
func TestBroken(t *testing.T) {
	for _, c := range []struct {
		src    string
		broken int
	}{
		{`n => foo(n)`, 1},
		{`n => if n < 0 then "a" + 1 else n`, 1},
		{`n => map(x => x + "a", range(0, n))`, 1},
		{`n => [n + "a", foo, n ++ 1]`, 3},
		{`n => let f = x => x + "a" in if n < 0 then f(n) else f(1)`, 1},
		{`n => n / 0`, 1},
		{`n => try(n + "a")`, 0},
		{`n => let f = x => x + "a" in try(f(n))`, 1},
		{`n => quote(1 + "a")`, 0},
		{`n => eval(quote(1 + "a"))`, 0},
		{`n => raise("no")`, 0},
		{`n => match n { 1 => 2 }`, 0},
		{`match "a" { "b" => 1 }`, 0},
		{`n => let x = 5 in if equal(type_of(x), "string") then x ++ foo else n`, 0},
		{`n => let x = 5 in if equal(type_of(x), "string") then [1 + "a"] else [x + n]`, 0},
		{`n => let x = 5 in if equal(type_of(x), "int") then [1 + "a"] else [n]`, 1},
		{`n => if equal(type_of(n), "string") then length(n) + "a" else 0`, 1},
		{`n => let f = x => if equal(type_of(x), "string") then x ++ "a" + 1 else x in [f(n), f(1)]`, 1},
		{`r => get({a: 1}, "b")`, 1},
		{`x + 1`, 0},
		{`x + y`, 2},
	} {
		p, f := text.Parse([]byte(c.src), text.Options{Tool: "tool"})
		if f != nil {
			t.Fatal(c.src, f)
		}
		r := check.Infer(p.Term, p.Source, check.Env{Tool: "tool"}, check.Budget{})
		if got := r.Broken(); len(got) != c.broken {
			t.Errorf("%s\nhas the broken places %v, expected %d", c.src, got, c.broken)
		}
	}
}
