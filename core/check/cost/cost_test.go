package cost_test

import (
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check/cost"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// bounds is tools with what they take.
var bounds = []struct {
	code  string
	steps string
	class cost.Class
	exact bool
}{
	{"x => x * x", "", cost.Constant, true},
	{"x => 1", "", cost.Constant, true},
	{"x => if x > 1 then x else x + 1", "", cost.Constant, false},
	{"(a, b) => a + b", "", cost.Constant, true},
	{"xs => fold(p => fst(p) + snd(p), 0, xs)", "", cost.Linear, false},
	{"xs => fold((acc, x) => acc + x, 0, xs)", "", cost.Linear, false},
	{"({price, qty}) => price * qty", "", cost.Constant, true},
	{"r => fold((acc, (k, n)) => acc + n, 0, entries(r))", "", cost.Linear, false},
	{"v => match v { (a, b) if a > b => a; (a, b) | [a, b] => b; _ => 0 }", "", cost.Constant, false},
	{"xs => sum(xs)", "", cost.Linear, false},
	{"xs => map(x => x * 2, xs)", "", cost.Linear, false},
	{"xs => filter(x => x > 2, xs)", "", cost.Linear, false},
	{"xs => map(x => map(y => x + y, xs), xs)", "", cost.Polynomial, false},
	{"xs => sort(xs)", "", cost.Polynomial, false},
	{"n => if n <= 1 then 1 else n * self(n - 1)", "", cost.Polynomial, false},
	{"n => if n <= 0 then 0 else 1 + self(n - 1)", "", cost.Linear, false},
	{"n => if n <= 1 then n else self(n - 1) + self(n - 2)", "", cost.Exponential, false},
	{"n => if n == 0 then 0 else self(n - 1)", "", cost.Budget, false},
	{"xs => if isEmpty(xs) then 0 else head(xs) + self(tail(xs))", "", cost.Linear, false},
	{"n => sum(range(0, n))", "", cost.Linear, false},
	{"f => f(1)", "", cost.Budget, false},
	{"x => (f => f(f))(f => f(f))", "", cost.Budget, false},
	{"xs => any(x => x > 3, xs)", "", cost.Linear, false},
	{"(xs, ys) => zip(xs, ys)", "", cost.Linear, false},
	{"n => repeat(n, \"a\")", "", cost.Linear, false},
	{"r => r.name ++ \"x\"", "", cost.Constant, true},
	{"s => join(reverse(chars(s)), \"\")", "", cost.Linear, false},
	{"xs => unique(xs)", "", cost.Polynomial, false},
	{"xs => group(x => to_text(x), xs)", "", cost.Polynomial, false},
	{"x => pow(x, 3)", "", cost.Constant, false},
	{"n => let go = (go, i) => if i >= n then 0 else go(go, i + 1) in go(go, 0)", "", cost.Linear, false},
	{"p => !fs.read({path: p})", "", cost.Linear, false},
	{"p => split(!fs.read({path: p}), \"\\n\")", "", cost.Linear, false},
	{"q => eval(q)", "", cost.Budget, false},
	{"x => eval('{x + 1})", "", cost.Constant, true},
	{"s => parse_json(s)", "", cost.Linear, false},
	{"xs => fold(p => fst(p) ++ fst(p), \"ab\", xs)", "", cost.Linear, false},
	{"s => pipeline([s => trim(s), s => split(s, \",\"), l => length(l)], s)", "", cost.Linear, false},
	{"x => pipeline([x => [x], l => length(l), n => n * 2], x)", "41 + terms(x)", cost.Constant, true},
	{"n => fst(fold(p => let f = fst(p) in (snd(f), fst(f) + snd(f)), (0, 1), range(0, n)))", "", cost.Polynomial, false},
	{"(n, a, b) => if n <= 0 then a else self(n - 1, b, a + b)", "", cost.Polynomial, false},
	{"xs => fold(p => match fst(p) { (a, b) => (b + 1, a + 2) }, (0, 0), xs)", "", cost.Linear, false},
	{"xs => fold(p => match fst(p) { (a, b) => (a * b, a) }, (2, 3), xs)", "", cost.Exponential, false},
}

func TestOf(t *testing.T) {
	for _, c := range bounds {
		p, f := text.Parse([]byte(c.code), text.Options{Tool: "tool"})
		if f != nil {
			t.Fatalf("%s: %v", c.code, f)
		}
		r := cost.Of(p.Term, cost.Options{Tool: true, Source: p.Source})
		t.Logf("%s: %s | %s | %v", c.code, r.Steps.Explain(), r.Memory, r.Why)
		if r.Class != c.class || r.Exact != c.exact || c.steps != "" && r.Steps.String() != c.steps {
			t.Errorf("%s: %s, %s, exact %v %v", c.code, r.Steps, r.Class, r.Exact, r.Why)
		}
		back, err := cost.ParseBound(r.Steps.String())
		if err != nil || !back.Equal(r.Steps) {
			t.Errorf("%s is read as %s: %v", r.Steps, back, err)
		}
		if back, err = cost.ParseBound(r.Memory.String()); err != nil || !back.Equal(r.Memory) {
			t.Errorf("%s is read as %s: %v", r.Memory, back, err)
		}
	}
}
