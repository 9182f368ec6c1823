package mcpserver

import (
	"fmt"
	"strings"
	"testing"

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
		{`n => if n == "a" then n == "b" else n`, []string{"2 places", "equal(A, B)"}},
		{`{"lam":"n","body":{"if":{"cond":true,"then":{"length":5},"else":{"var":"m"}}}}`, []string{"2 places", "/body/if/then", `{"length":5}`, "/body/if/else"}},
		{`n => [` + strings.Repeat(`n - "a", `, 12) + `n]`, []string{"12 places", "the first 8"}},
	} {
		a := do(t, s, "evolve", string(encode(map[string]any{"name": "square", "code": c.code})))
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
	a := do(t, s, "evolve", string(encode(map[string]any{"name": "square", "code": "n => [" + strings.Join(many, ", ") + "]"})))
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
		must(t, s, "evolve", string(encode(map[string]any{"name": "fine", "code": code})))
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
		a := do(t, s, "evolve", string(encode(map[string]any{"name": "it", "code": c.code, "as": c.as})))
		if (a.Fault == nil) != (c.refused == "") || !strings.Contains(a.Text, c.refused) {
			t.Errorf("%s %s: %s", c.as, c.code, a.Text)
		}
	}
}
