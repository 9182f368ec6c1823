package check_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check"
)

// TestNotes: what is compared and can never be equal is a note, and so is a quotient
// that is used as if it had digits after the point.
func TestNotes(t *testing.T) {
	for _, c := range []struct{ code, want string }{
		{`s => length(s) == "2"`, "line 1, column 16: this is never true: an integer and a string"},
		{`n => n + 1 != "2"`, "line 1, column 13: this is never true: a number and a string"},
		{`n => n + 1 > 0 and n == "a"`, "line 1, column 22: this is never true: a number and a string"},
		{`x => match to_text(x) { 1 => 2; _ => 3 }`, "column 25: this is never true"},
		{`x => x == 1 or x == "a"`, ""},
		{`(a, b) => a == b`, ""},
		{`r => r.kind == "a"`, ""},
		{`x => match x { 1 => 2; "a" => 3; _ => 4 }`, ""},
		{`let f = x => x == 1 in [f(1), f("a")]`, ""},
		{`xs => unique(xs)`, ""},
		{`n => (n + 1) * 1.5 == 2`, ""},
		{`xs => round_dec(sum(xs) / length(xs), 2, "half_up")`, "line 1, column 25: / of two integers is rounded down"},
		{`n => to_dec(n / 2)`, "line 1, column 15: / of two integers is rounded down"},
		{`n => n / 2 * 1.5`, "line 1, column 8: / of two integers is rounded down"},
		{`xs => round(sum(xs) / length(xs), 2)`, "line 1, column 21: / of two integers is rounded down"},
		{`n => n / 2.0 * 1.5`, ""},
		{`n => n / 2 + 1`, ""},
	} {
		var got []string
		for _, n := range reportOf(t, c.code).Notes {
			got = append(got, fmt.Sprintf("line %d, column %d: %s", n.Line, n.Col, n.Message))
		}
		if said := strings.Join(got, "\n"); !strings.Contains(said, c.want) || c.want == "" && said != "" {
			t.Errorf("%s: the notes are %q, want %q", c.code, said, c.want)
		}
	}
}

// TestWanted: a parameter that is compared only with literals of one kind is read as
// that kind, wherever its type leaves it open.
func TestWanted(t *testing.T) {
	for _, c := range []struct{ code, input, want string }{
		{`n => n == 1`, `"1"`, `[1]`},
		{`n => if n == 1 or n == 2.5 then n else 0`, `"2.5"`, `[2.5]`},
		{`r => r.n == 1`, `{"n":"1"}`, `[{"n":1}]`},
		{`x => x == true`, `"true"`, `[true]`},
		{`n => n == 1`, `"one"`, `["one"]`},
		{`s => s == "1"`, `"1"`, `["1"]`},
		{`x => x == 1 or x == "1"`, `"1"`, `["1"]`},
		{`x => x == 1 or x == [1]`, `"1"`, `["1"]`},
		{`n => eq(n, 1)`, `"1"`, `[1]`},
	} {
		d, f := check.Read(json.RawMessage(c.input), reportOf(t, c.code), nil)
		if f != nil {
			t.Fatal(f)
		}
		if got := fmt.Sprintf("%s", d.Values); got != c.want {
			t.Errorf("%s with %s reads %s, want %s", c.code, c.input, got, c.want)
		}
	}
}
