package cost_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check/cost"
	"github.com/mcp-pif/mcp-pif/core/must"
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
	{"(a, b) => if b == 0 then a else self(b, a % b)", "", cost.Linear, false},
	{"n => if n <= 1 then 0 else 1 + self(n / 2)", "", cost.Linear, false},
	{"n => let go = (lo, hi) => if lo >= hi then lo else let m = (lo + hi) / 2 in if m * m < n then go(m + 1, hi) else go(lo, m) in go(0, 1000)", "", cost.Constant, false},
	{"(xs, ys) => fold((acc, y) => let i = find_index(x => x == y, acc.rest) in if i < 0 then acc else {rest: append(take(i, acc.rest), drop(i + 1, acc.rest)), n: acc.n + 1}, {rest: xs, n: 0}, ys)", "", cost.Polynomial, false},
	{"(i, k, xs) => fold((acc, x) => append(take(i, acc), drop(i - 1, acc)), xs, xs)", "", cost.Exponential, false},
	{"(i, k, xs) => fold((acc, x) => append(take(i, acc), drop(k, acc)), xs, xs)", "", cost.Exponential, false},
	// Most of these go on for ever for some numbers.
	{"n => if n == 0 then 0 else 1 + self(n / 2)", "", cost.Budget, false},
	{"n => if n < 0 then 0 else self(n / 2)", "", cost.Budget, false},
	{"n => if n <= 1 then 0 else self((n + 1) / 2)", "", cost.Budget, false},
	{"n => if n <= 0 then 0 else if n >= 10 then 0 else if n % 2 == 0 then self(n - 1) else self(n + 1)", "", cost.Budget, false},
	{"n => if n <= 1 then 0 else if n % 2 == 0 then self(n / 2) else self(n + 1)", "", cost.Budget, false},
	{"(n, m) => if m == 0 then n else self(n, n % m)", "", cost.Budget, false},
	{"xs => let go = (lo, hi) => if lo > hi then lo else let m = (lo + hi) / 2 in if xs[m] < 7 then go(m + 1, hi) else go(lo, m) in go(0, length(xs))", "", cost.Budget, false},
	{"xs => let go = (lo, hi) => if lo >= hi then lo else let m = (lo + hi) / 2 in if xs[m] < 7 then go(m, hi) else go(lo, m) in go(0, length(xs))", "", cost.Budget, false},
	{"(lo, hi) => if lo >= hi then lo else let m = (lo + hi) / 2 in if m > 7 then self(m + 1, hi) else self(lo, m)", "", cost.Budget, false},
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
	}
}

// A person reads the terms of a long formula that grow fastest; a short one is as it is.
func TestShort(t *testing.T) {
	for code, want := range map[string]string{
		"(a, b) => 7": "5 + n + m, n = terms of a, m = terms of b",
		"x => x * x":  "5 + n + 1/2·m + 1/2·m^2, n = terms of x, m = words beyond 64 bits of x",
		"(xs, ys) => map(x => map(y => (x, y), ys), xs)": "15·n·m + k + p + smaller terms, n = length of xs, m = length of ys, k = terms of xs, p = terms of ys",
	} {
		p, err := core.CompileText("tool", []byte(code))
		must.NoError(t, err)
		if got := cost.Of(p.Term(), cost.Options{Tool: true}).Steps.Short(); got != want {
			t.Errorf("%s is shown as %q, want %q", code, got, want)
		}
	}
}

// Strings that are known could double with every term.
func TestKnownTextIsBounded(t *testing.T) {
	var src strings.Builder
	src.WriteString(`x => let a0 = "aaaaaaaa"`)
	const doublings = 22
	for i := range doublings {
		fmt.Fprintf(&src, ", a%d = a%d ++ a%d", i+1, i, i)
	}
	fmt.Fprintf(&src, " in length(a%d)", doublings)
	parsed, err := text.Parse([]byte(src.String()), text.Options{Tool: "tool"})
	must.NoFault(t, err)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := cost.Of(parsed.Term, cost.Options{Tool: true})
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 8 {
		t.Errorf("working out the cost took %d MiB", took)
	}
	if r.Class != cost.Constant || !r.Steps.Finite() {
		t.Errorf("cost: %s, %s", r.Class, r.Steps.Explain())
	}
}

// Bounds hold of what grows to a power of a size, of how often that is gone
// through, and of values that are made of one another.
func TestGrowthHolds(t *testing.T) {
	for _, code := range []string{
		"n => sort(fold(p => append(fst(p), fst(p)), [3, 1, 2, 5, 4, 9, 7, 8], range(0, n)))",
		"n => pow(3, length(fold(p => append(fst(p), fst(p)), [3, 1, 2], range(0, n))))",
		"n => fold(p => fst(p) + fst(p), 1, range(0, n)) * 3 + 1",
		"n => fold(p => fst(p) * 3, 1, range(0, n * n))",
		"n => fst(fold(p => let f = fst(p) in (snd(f), fst(f) + snd(f)), (0, 1), range(0, n * 40)))",
		"n => fold(p => match fst(p) { (a, b) => (b * 3, a - b) }, (1, 2.5), range(0, n * 20))",
		"n => fold(p => match fst(p) { (a, b) => (a * b, a) }, (2, 3), range(0, n))",
		"n => fold(p => match fst(p) { (a, b) => (b ++ a, upper(a)) }, (\"p\", \"q\"), range(0, n))",
		"n => fold(p => {a: fst(p).c + 1, b: fst(p).a * 2, c: fst(p).b}, {a: 1, b: 2, c: 3}, range(0, n * 50))",
		"n => let go = (go, n, a, b) => if n <= 0 then a else go(go, n - 1, b, a + b) in go(go, n * 60, 0, 1)",
		"n => pipeline([n => range(0, n), l => map(x => x * 7, l), l => sort(l), l => length(l)], n)",
		"n => pipeline([n => range(0, n), l => pipeline([x => x + 1, x => [x, l]], n)], n)",
		"n => let go = (n, acc) => if n <= 0 then acc + 1 else go(n - 1, go(n - 1, acc)), k = go(n, 0) in length(map(i => map(j => i, range(0, k)), range(0, k)))",
		"n => let go = (n, a, b) => if n <= 0 then 1 else 3 * go(n - 1, b, a + b) + a, k = go(n, 1, 1) in length(map(i => i, range(0, k)))",
		"n => let t = fold((acc, i) => {left: acc, right: acc}, null, range(0, n)), walk = t => if t == null then 1 else walk(t.left) + walk(t.right) in walk(t)",
		"n => let t = fold((acc, i) => [acc, [i]], [], range(0, n * 30)), walk = t => if type_of(t) == \"list\" then 1 + sum(map(walk, t)) else t in walk(t)",
		"n => let walk = t => if type_of(t) == \"list\" then sum(map(walk, t)) else 1 in walk(parse_json(fold((acc, i) => \"[1,\" ++ acc ++ \"]\", \"[]\", range(0, n * 30))))",
	} {
		bounded := 0
		for n := range 9 {
			tr := trial{code: code, tool: "tool", inputs: []string{fmt.Sprint(n)}}
			if _, ok := tr.check(t); ok {
				bounded++
			}
		}
		if bounded == 0 {
			t.Errorf("%s has no bound", code)
		}
	}
}

// hostile is programs that are small for what they make an analysis do, each by
// something else than many terms that are evaluated.
func hostile() map[string]string {
	repeat := strings.Repeat
	record := func(n int, value string) string {
		fields := make([]string, n)
		for i := range fields {
			fields[i] = fmt.Sprintf("k%d: %s", i, value)
		}
		return "{" + strings.Join(fields, ", ") + "}"
	}
	lets := func(n int, first, each, last string) string {
		var b strings.Builder
		b.WriteString("x => let v0 = " + first)
		for i := range n {
			b.WriteString(strings.NewReplacer("%0", fmt.Sprint("v", i), "%1", fmt.Sprint("v", i+1)).Replace(", %1 = " + each))
		}
		return b.String() + " in " + strings.ReplaceAll(last, "%0", fmt.Sprint("v", n))
	}
	sumOf := func(n int, each string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf(each, i)
		}
		return strings.Join(all, " + ")
	}
	sum := sumOf(181, "length(x.k%d)")
	return map[string]string{
		"records in records":   lets(12, "x", record(30, "%0"), "fold(p => fst(p), %0, x)"),
		"texts doubled":        lets(60, `"abcdefgh"`, "%0 ++ %0", "%0"),
		"sums of sums":         "x => let s = " + sum + ", r = range(0, s) in map(i => map(j => map(k => i + j + k, r), r), r)",
		"squares of sums":      lets(30, "x => "+sum+" + x", "x => (%0)(x * x)", "range(0, (%0)(1))"),
		"sorts of sums":        "x => let s = " + sum + ", r = range(0, s) in [" + repeat("sort(r), ", 500) + "1]",
		"a path without end":   lets(16, "y => y."+repeat("k", 4_000), "z => %0(%0(z))", "%0(x)"),
		"conditions":           "x => " + repeat("if x < 5 then ", 1_500) + "1" + repeat(" else 0", 1_500),
		"lists over and over":  lets(20, "y => ["+repeat("1, ", 5_000)+"1]", "z => %0(%0(z))", "%0(x)"),
		"records over":         lets(20, "y => "+record(1_000, "1"), "z => merge(%0(%0(z)), {a: 1})", "%0(x)"),
		"variables around":     "x => " + repeat("(y => ", 1_500) + "[" + repeat("x, ", 2_000) + "1]" + repeat(")(x)", 1_500),
		"calls of itself":      "x => " + repeat("(y => ", 300) + "if x <= 0 then 1 else [" + repeat("self(x - 1), ", 300) + "1]" + repeat(")(x * 2)", 300),
		"parameters":           "x => " + repeat("y => ", 3_000) + "1",
		"tries":                "x => " + repeat("try(", 3_000) + "x" + repeat(")", 3_000),
		"numbers":              lets(16, "y => 1"+repeat("7", 4_000), "z => %0(%0(z))", "%0(x)"),
		"walks of many":        "x => if x == null then 0 else " + repeat("sum(map(self, x.a ?? [])) + ", 400) + sumOf(400, "self(x.k%d)"),
		"walks in walks":       lets(10, "y => let go = t => if t == null then 0 else go(t.l) + sum(map(go, t.r)) in go(y)", "z => let go = t => if t == null then 0 else %0(t) + sum(map(go, t.r)) in go(z)", "%0(x)"),
		"a fold in folds":      "x => " + repeat("fold((a, c) => a + self(c) + ", 200) + "1" + repeat(", 0, x.children ?? [])", 200),
		"unlike calls of many": "x => " + repeat("(h => h(h, x))((h, n) => if n <= 0 then 0 else h(h, n - 1) + ", 100) + "1" + repeat(")", 100),
	}
}

// TestBudget: what an analysis allocates is in proportion to its steps, whatever
// the program, and where they are used up there is no bound and a reason.
func TestBudget(t *testing.T) {
	const perStep, always, perByte = 8 << 10, 2 << 20, 200
	for name, code := range hostile() {
		p, err := core.CompileText("tool", []byte(code))
		if err != nil {
			t.Errorf("%s: %.300v", name, err)
			continue
		}
		for _, steps := range []int{500, 2_000, 8_000} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r := cost.Of(p.Term(), cost.Options{Tool: true, Source: p.Tool().Source, Steps: steps})
			runtime.ReadMemStats(&after)
			n := after.TotalAlloc - before.TotalAlloc
			t.Logf("%-22s %6d bytes, %5d steps: %5.1f MiB, %s %d", name, len(code), steps, float64(n)/(1<<20), r.Class, len(r.Why))
			if n > uint64(always+perByte*len(code)+perStep*steps) {
				t.Errorf("%s: %d MiB were allocated in %d steps", name, n>>20, steps)
			}
			if !r.Steps.Finite() && (len(r.Why) == 0 || !r.Why[0].Unbounded) {
				t.Errorf("%s: no bound, and no reason: %+v", name, r.Why)
			}
		}
	}
}

// TestSteps: a program has the same report whatever the steps, if they are enough,
// and no bound if they are not.
func TestSteps(t *testing.T) {
	for _, code := range everyShape() {
		p, err := core.CompileText("tool", []byte(code))
		must.NoError(t, err)
		o := cost.Options{Tool: true, Source: p.Tool().Source}
		want := cost.Of(p.Term(), o)
		last := false
		for o.Steps = 1; o.Steps < cost.Steps; o.Steps *= 2 {
			r := cost.Of(p.Term(), o)
			same := r.Steps.String() == want.Steps.String() && r.Memory.String() == want.Memory.String()
			if !same && (r.Steps.Finite() || r.Memory.Finite() || len(r.Why) == 0 || !r.Why[0].Unbounded) || last && !same {
				t.Errorf("%s: in %d steps %s, %s", code, o.Steps, r.Steps, r.Memory)
			}
			last = same
		}
		if !last {
			t.Errorf("%s: %d steps are not enough", code, o.Steps/2)
		}
	}
}
