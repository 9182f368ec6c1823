package count_test

import (
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check/cert/count"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// TestOf: formulas, which package issue's tests hold against runs.
func TestOf(t *testing.T) {
	many, nested := "(", "1"
	for i := range 40 {
		many += "a" + string(rune('a'+i/26)) + string(rune('a'+i%26)) + ", "
	}
	for range 30 {
		nested = "fold(p => " + nested + ", 0, all)"
	}
	union := "aaa"
	for i := 1; i < 40; i++ {
		union = "fold(p => cons(snd(p), fst(p)), " + union + ", a" + string(rune('a'+i/26)) + string(rune('a'+i%26)) + ")"
	}
	for _, c := range []struct{ code, formula, class string }{
		{"x => x * x", "5", "constant"},
		{"x => if x > 1 then x else x * x", "9", "constant"},
		{"(a, b) => [a, b]", "9", "constant"},
		{"xs => sum(xs)", "9 + 5*len(1)", "linear"},
		{"xs => map(x => map(y => x + y, xs), xs)", "18 + 28*len(1) + 15*len(1)*len(1)", "polynomial"},
		{"(xs, ys) => map(x => map(y => x, ys), xs)", "20 + 28*len(1) + 13*len(1)*len(2)", "polynomial"},
		{"n => if n <= 1 then 1 else n * self(n - 1)", "13 + 13*calls", "budget"},
		{"xs => sort(xs)", "unbounded", "budget"},
		{"f => f(1)", "unbounded", "budget"},
		{"x => (f => f(f))(f => f(f))", "unbounded", "budget"},
		{"x => eval('{x})", "unbounded", "budget"},
		{strings.TrimSuffix(many, ", ") + ") => let all = " + union + " in " + nested, "unbounded", "budget"},
	} {
		p, f := text.Parse([]byte(c.code), text.Options{Tool: "tool"})
		if f != nil {
			t.Fatalf("%s: %v", c.code, f)
		}
		if formula, class := count.Of(p.Term); formula != c.formula || class != c.class {
			t.Errorf("%.60s: %.200s, %s; want %s, %s", c.code, formula, class, c.formula, c.class)
		}
	}
}
