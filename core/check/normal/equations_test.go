package normal_test

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check/normal"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// An equation is two terms in the text form, of which normalising makes the
// same. In them a, b, c and f are anything that gives a value, and x is a
// variable.
type equation struct {
	Name  string
	Left  string
	Right string
	// When is what has to be known; empty where it always holds.
	When string
	// Let gives what is known to the variables of Left and Right: tests apply
	// both sides as functions. Not, where not empty, is what Left mustn't be
	// equal to where that isn't known.
	Let, Not string
}

// equations is all that normalising does. Each holds for the value, the kind of
// failure, and what is asked for in which order.
var equations = []equation{
	{Name: "beta", Left: "(x => (x, x))(a)", Right: "let v = a in (v, v)", When: "a is evaluated once, before the body"},
	{Name: "variables", Left: "x => x", Right: "y => y"},
	{Name: "eta", Let: "let f = x => x(1) in ", Left: "y => f(y)", Right: "f", When: "f is known to be a function", Not: "f"},
	{Name: "if true", Left: "if true then a else b", Right: "a"},
	{Name: "if false", Left: "if false then a else b", Right: "b"},
	{Name: "if itself", Let: "let c = isEmpty(a) in ", Left: "if c then true else false", Right: "c", When: "c is a truth value", Not: "c"},
	{Name: "if not", Let: "let c = isEmpty(a) in ", Left: "if not c then a else b", Right: "if c then b else a", When: "c is a truth value"},
	{Name: "if same", Let: "let c = isEmpty(a) in ", Left: "if c then 1 else 1", Right: "1", When: "c is a truth value", Not: "1"},
	{Name: "what a condition says", Left: "if a then (if a then 1 else 2) else 3", Right: "if a then 1 else 3", When: "inside a branch of it"},
	{Name: "and", Left: "a and b", Right: "if a then (if b then true else false) else false"},
	{Name: "or", Left: "a or b", Right: "if a then true else (if b then true else false)"},
	{Name: "first", Left: "fst((a, b))", Right: "let x = a, y = b in x"},
	{Name: "second", Left: "snd((a, b))", Right: "let x = a, y = b in y"},
	{Name: "head", Left: "head([a, b])", Right: "let x = a, y = b in x"},
	{Name: "tail", Left: "tail([a, b])", Right: "let x = a, y = b in [y]"},
	{Name: "lists", Left: "cons(a, [b])", Right: "[a, b]"},
	{Name: "a record's key", Left: "{k: a, l: b}.k", Right: "let x = a, y = b in x"},
	{Name: "a record with a key put", Left: "put({k: a}, \"k\", b)", Right: "let x = a, y = b in {k: y}"},
	{Name: "fold of known items", Left: "fold(p => (snd(p), fst(p)), a, [b, c])", Right: "let x = a, y = b, z = c in (z, (y, x))"},
	{Name: "rows of the library", Left: "map(x => (x, a), [b])", Right: "let y = b in [(y, a)]", When: "they are the functions they are written as; one that calls itself stays where it isn't known how often"},
	{Name: "constants", Left: "2 * 3 + 4", Right: "10", When: "the row's own meaning gives it within a bound of size and work"},
	{Name: "certain failures", Left: "(raise(a), b)", Right: "raise(a)", When: "what comes after is never reached"},
	{Name: "failures of a kind", Left: "(1 - \"a\", b)", Right: "1 - \"a\"", When: "an operand is known to be of no kind that the row takes"},
	{Name: "done before", Left: "(a + b, a + b)", Right: "let x = a + b in (x, x)", When: "the row is strict, and its operands are the same"},
	{Name: "left out", Let: "let a = length(a) in ", Left: "let x = a + 1 in b", Right: "b", When: "the row can't fail for what its operands are", Not: "b"},
	{Name: "type", Let: "let a = a + 1 in ", Left: "type_of((a, 1))", Right: "\"pair\"", When: "the kind is known"},
	{Name: "larger", Left: "a > b", Right: "let x = a, y = b in y < x"},
	{Name: "at least", Left: "a >= b", Right: "let x = a, y = b in y <= x"},
	{Name: "not less", Left: "not (a < b)", Right: "b <= a"},
	{Name: "one comparison", Left: "if a < b then 1 else 2", Right: "if b <= a then 2 else 1"},
	{Name: "the other way round", Left: "[compare(a, b), 0 - compare(a, b)]", Right: "[0 - compare(b, a), compare(b, a)]", When: "the operands are values"},
	{Name: "not before", Left: "not lt(compare(a, b), 0)", Right: "let x = a, y = b in lte(compare(y, x), 0)"},
	{Name: "symmetric", Left: "[a + b, eq(a, b), equal(a, b), a * b]", Right: "[b + a, eq(b, a), equal(b, a), b * a]", When: "the operands are values"},
	{Name: "plus 0", Let: "let a = a + 1 in ", Left: "a + 0", Right: "a", When: "a is a number", Not: "a"},
	{Name: "minus 0", Let: "let a = a + 1 in ", Left: "a - 0", Right: "a", When: "a is a number", Not: "a"},
	{Name: "times 1", Let: "let a = a + 1 in ", Left: "a * 1", Right: "a", When: "a is a number", Not: "a"},
	{Name: "times 0", Let: "let a = length(a) in ", Left: "a * 0", Right: "0", When: "a is an integer", Not: "0"},
	{Name: "minus itself", Let: "let a = length(a) in ", Left: "a - a", Right: "0", When: "a is an integer", Not: "0"},
	{Name: "twice", Left: "a + a", Right: "a * 2"},
	{Name: "sums and products", Let: "let a = length(a), b = length(b), c = length(c) in ", Left: "[a * (b + c), (a + b) + c, (a + b) * (a - b)]",
		Right: "[c * a + a * b, a + (b + c), a * a - b * b]", When: "they are of integers: decimals have a bound of digits", Not: "[a * b + a * c, a + b + c, a * a - b * b]"},
	{Name: "differences that are known", Let: "let a = length(a) in ", Left: "[a < a + 1, a + 2 <= a, a + b == a + b]", Right: "[true, false, a + b == a + b]", When: "a is an integer", Not: "[true, false, a + b == a + b]"},
	{Name: "literals together", Let: "let a = length(a) in ", Left: "a + 1 - 3", Right: "a - 2", When: "a is an integer", Not: "a - 2"},
	{Name: "divided by 1", Let: "let a = length(a) in ", Left: "(a / 1, a % 1)", Right: "(a, 0)", When: "a is an integer", Not: "(a, 0)"},
	{Name: "compared with itself", Let: "let a = a + 1 in ", Left: "[a < a, a <= a, eq(a, a)]", Right: "[false, true, true]", When: "a is a number", Not: "[false, true, true]"},
	{Name: "strings joined", Left: "(a ++ \"x\") ++ (\"y\" ++ b)", Right: "a ++ (\"xy\" ++ b)"},
	{Name: "tested together", Left: "let x = a ++ \"1\", y = b ++ \"2\" in (y, x)", Right: "(b ++ \"2\", a ++ \"1\")", When: "nothing but computing that can't fail otherwise comes between"},
	{Name: "branches alike", Left: "if a then f(b) else f(b)", Right: "let x = not a in f(b)"},
	{Name: "map of map", Left: "map(f, map(x => (x, a), b))", Right: "map(x => f((x, a)), b)", When: "the inner function only computes"},
	{Name: "turned round twice", Left: "reverse(reverse(a))", Right: "let x = isEmpty(a) in a"},
	{Name: "map of the other way round", Left: "map(x => [x], reverse(a))", Right: "reverse(map(x => [x], a))", When: "the function only computes"},
	{Name: "nothing joined", Let: "let a = a ++ \"b\" in ", Left: "a ++ \"\"", Right: "a", When: "a is a string", Not: "a"},
	{Name: "not not", Let: "let a = isEmpty(a) in ", Left: "not not a", Right: "a", When: "a is a truth value", Not: "a"},
	{Name: "try of what can't fail", Left: "try((a, 1))", Right: "{ok: (a, 1)}"},
	{Name: "par of what can't fail", Left: "par(a, 1)", Right: "[a, 1]"},
	{Name: "eval of plain code", Left: "eval('{a + 1})", Right: "a + 1", When: "the code makes, applies and asks for nothing"},
}

// TestEquations: both sides of each have one normal form, and where it holds
// only of what is known, not without that.
func TestEquations(t *testing.T) {
	bind := func(let, side string) term.Term { return parseText(t, "a => b => c => f => "+let+side) }
	hash := func(x term.Term) string {
		f, err := normal.Of(x, normal.Options{})
		if err != nil || f.Opaque != "" {
			t.Fatalf("%s: %v %s", text.Print(x), err, f.Opaque)
		}
		return f.Hash + " " + string(text.Print(f.Term))
	}
	for _, e := range equations {
		if l, r := hash(bind(e.Let, e.Left)), hash(bind(e.Let, e.Right)); l != r {
			t.Errorf("%s: %s and %s\n%s\n%s", e.Name, e.Left, e.Right, l, r)
		}
		if e.Not != "" && hash(bind("", e.Left)) == hash(bind("", e.Not)) {
			t.Errorf("%s: %s is %s for everything", e.Name, e.Left, e.Not)
		}
		if e.Let != "" && e.When == "" {
			t.Errorf("%s: it isn't said when it holds", e.Name)
		}
	}
}

// unequal is pairs that look alike and are not: by a failure, by an effect, by
// order, or by what looks at code.
var unequal = [][2]string{
	{"a => a + 0", "a => a"},
	{"x => let a = !fs.read(1), k = x.k in (keys(x), (a, k))", "x => (keys(x), (!fs.read(1), x.k))"},
	{"(x, y) => let a = x * y, b = y ++ \"\" in (y ++ \"a\", a)", "(x, y) => (y ++ \"a\", x * y)"},
	{"(x, y) => let a = x * y, l = cons(1, x) in (l, a)", "(x, y) => (cons(1, x), x * y)"},
	{"x => let h = x / 2 in (x + 1, h)", "x => (x + 1, x / 2)"},
	{"x => let h = x / 2 in 7 - x - h", "x => 7 - x - x / 2"},
	{"(a, b) => let c = !fs.read(1) in a ++ b ++ c", "(a, b) => let d = a ++ b in d ++ !fs.read(1)"},
	{"(x, y) => let h = 2 % x, k = 2 % y in x + y + h + k", "(x, y) => x + y + 2 % x + 2 % y"},
	{"x => (x + 5) - 3", "x => x + 2"},
	{"(a, b, c) => a * (b + c)", "(a, b, c) => a * b + a * c"},
	{"x => x * 2 * 0", "x => x * 0"},
	{"(a, b) => (a < b, !fs.read(1))", "(a, b) => let y = !fs.read(1) in (a < b, y)"},
	{"(f, xs) => map(x => x, map(f, xs))", "(f, xs) => map(f, reverse(xs))"},
	{"(xs, ys) => map(x => ys(x), map(x => !fs.read(x), xs))", "(xs, ys) => map(x => ys(!fs.read(x)), xs)"},
	{"c => if c then !fs.read(1) else !fs.read(2)", "c => let x = not c in !fs.read(1)"},
	{"(c, a) => if c then head(a) else 1 + head(a)", "(c, a) => let x = not c in head(a)"},
	{"a => let x = a(1) in 2", "a => 2"},
	{"a => (a(1), a(2))", "a => let y = a(2), x = a(1) in (x, y)"},
	{"a => (a(1), a(1))", "a => let x = a(1) in (x, x)"},
	{"a => let x = !fs.read(a) in 1", "a => 1"},
	{"a => (!fs.read(1), 1 / 0)", "a => 1 / 0"},
	{"a => (!fs.read(a), !fs.read(a))", "a => let x = !fs.read(a) in (x, x)"},
	{"f => x => f(x)", "f => f"},
	{"a => '{x => x}", "a => '{y => y}"},
	{"a => if a then 1 else 1", "a => 1"},
	{"a => y => a + 1", "a => let x = a + 1 in y => x"},
	{"a => \"1.50\"", "a => \"1.5\""},
	{"a => dec(\"1.50\")", "a => dec(\"1.5\")"},
	{"a => a * 0", "a => 0"},
	{`a => let n = length(a), s = (if equal(type_of(a), "list") then slice(a, 0, 1) else slice(a, 0, 1)) in type_of(s)`, `a => let n = length(a), s = slice(a, 0, 1) in "list"`},
	{`(a, b) => let n = a < b, s = (if equal(type_of(a), "dec") then a * b else a * b) in type_of(s)`, `(a, b) => let n = a < b, s = a * b in "dec"`},
	{`(a, xs) => map(i => i, if equal(type_of(a), "list") then map(i => if equal(type_of(a), "list") then 1 else 2, xs) else map(i => 1, xs))`,
		`(a, xs) => map(i => if equal(type_of(a), "list") then 1 else 2, xs)`},
	{"a => (head(a), 1 - \"a\")", "a => 1 - \"a\""},
	{"a => try(a + 1)", "a => try(let x = a in x + 1)"},
	{"n => code_of(\"self\")", "m => code_of(\"self\")"},
	{"x => y => eval(x)", "x => z => eval(x)"},
	{"x => eval('{!fs.read(x)})", "x => !fs.read(x)"},
	{"x => !fs.read({path: x})", "x => !fs.read({\"in\": \"./a\", path: x})"},
	{"x => let r = {\"in\": x} in !fs.read(r)", "x => !fs.read({path: x})"},
}

func TestUnequal(t *testing.T) {
	for _, c := range unequal {
		a, b := parseText(t, c[0]), parseText(t, c[1])
		x, errX := normal.Of(a, normal.Options{Tool: true})
		y, errY := normal.Of(b, normal.Options{Tool: true})
		if errX != nil || errY != nil || x.Hash == y.Hash {
			t.Errorf("%s and %s: %v %v\n%s", c[0], c[1], errX, errY, x.JSON)
		}
		if v := normal.Equal(a, b, true, normal.Limits{}); v.Answer == normal.Same {
			t.Errorf("%s and %s: %+v", c[0], c[1], v)
		}
	}
}

// TestForm: forms are terms that can be read, closed where the term is, the
// same each time, and their own normal form.
func TestForm(t *testing.T) {
	for _, c := range []struct{ code, form string }{
		{"x => let y = x + 1 in y * y", "v0 => let v1 = v0 + 1 in v1 * v1"},
		{"(x, y) => (x + 1) * (y + 2)", "(v0, v1) => (v0 + 1) * (v1 + 2)"},
		{"x => v0 + x", "v_0 => v_0 + v0"},
		{"x => self(x - 1)", "v0 => self(v0 - 1)"},
		{"x => self(x)", "v0 => self(v0)"},
		{"xs => map(self, xs)", "v0 => fold( v1 => cons(snd(v1), fst(v1)), [], fold(v1 => cons(self(snd(v1)), fst(v1)), [], v0) )"},
		{"x => let r = {\"in\": x} in !fs.read(r)", "v0 => !fs.read(put({}, \"in\", v0))"},
		{"n => if n < 1 then n else continue(n - 1)", "v0 => if 1 <= v0 then continue(v0 - 1) else v0"},
	} {
		f, err := normal.Of(parseText(t, c.code), normal.Options{Tool: true})
		if err != nil {
			t.Errorf("%s: %v", c.code, err)
			continue
		}
		if got := strings.Join(strings.Fields(string(text.Print(f.Term))), " "); got != c.form {
			t.Errorf("%s has the form %s, want %s", c.code, got, c.form)
		}
	}
}

// TestBudget: terms that would take too much end by their budgets.
func TestBudget(t *testing.T) {
	double := "(f => x => f(f(x)))"
	exponential := "x => " + double
	for range 6 {
		exponential += "(" + double + ")"
	}
	wide := "x => let a = (x, x)"
	for range 60 {
		wide += ", a = (a, a)"
	}
	deep := "x => " + strings.Repeat("(", 900) + "x" + strings.Repeat(" + 1)", 900)
	for name, c := range map[string]struct {
		code string
		ends bool
	}{
		"a loop":         {"x => (f => f(f))(f => f(f))", true},
		"exponential":    {exponential + "(y => y + x)(1)", true},
		"shared":         {wide + " in a", false},
		"a large number": {"x => fold(p => fst(p) * fst(p), 7, range(0, 40))", true},
		"a long list":    {"x => sum(range(0, 100000000))", true},
		"deep":           {deep, true},
		"recursion":      {"x => let go = go => n => go(go)(n + 1) in go(go)(0)", false},
	} {
		f, err := normal.Of(parseText(t, c.code), normal.Options{Tool: true})
		if (err == nil) != c.ends && f.Opaque == "" {
			t.Errorf("%s: %v %.200s", name, err, f.JSON)
		}
		if v := normal.Equal(parseText(t, c.code), parseText(t, "x => 77"), true, normal.Limits{Runs: 5}); v.Answer == normal.Same {
			t.Errorf("%s: %+v", name, v)
		}
	}
	small, err := normal.Of(parseText(t, "x => x + 1"), normal.Options{Steps: 3})
	if err == nil {
		t.Errorf("three steps gave %s", small.JSON)
	}
}

// TestLongKeys: what computations are called by doesn't outgrow their steps.
func TestLongKeys(t *testing.T) {
	long, digits := strings.Repeat("K", 60_000), strings.Repeat("7", 4_000)
	for _, made := range []string{`'{"` + long + `"}`, `{"` + long + `": x}`, `"` + long + `"`, digits, digits[:2000] + "." + digits[:2000]} {
		code := parseText(t, `x => let r = `+made+` in fold(p => let e = equal([`+strings.Repeat("r, ", 15)+`x], [snd(p), x]) in fst(p), 0, range(0, 300))`)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := normal.Of(code, normal.Options{Tool: true})
		runtime.ReadMemStats(&after)
		if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 40 {
			t.Errorf("%.20s… took %d MiB (%v)", made, took, err)
		}
	}
}

// TestDeepScopes: to look for what is known takes steps where much is around.
func TestDeepScopes(t *testing.T) {
	for _, around := range []string{"let z = x in ", "z => "} {
		steps := func(deep, uses int) int {
			f, err := normal.Of(parseText(t, "x => let y = [x] in "+strings.Repeat(around, deep)+"["+strings.Repeat("y[0], ", uses)+"x]"), normal.Options{Tool: true})
			must.NoError(t, err)
			return f.Steps
		}
		if more := steps(320, 200) - steps(320, 0) - steps(1, 200) + steps(1, 0); more < 200*320/64 {
			t.Errorf("300 times %q around takes %d steps more", around, more)
		}
	}
}

func BenchmarkOf(b *testing.B) {
	square := parseText(b, "x => let y = x + 1 in y * y")
	sort := parseText(b, "xs => sort_by(x => 0 - x, filter(x => x > 1, xs))")
	for name, t := range map[string]term.Term{"square": square, "sort": sort} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := normal.Of(t, normal.Options{Tool: true}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkEqual(b *testing.B) {
	x, y := parseText(b, "xs => sum(map(x => x * x, xs))"), parseText(b, "xs => fold(p => fst(p) + snd(p) * snd(p), 0, xs)")
	for b.Loop() {
		normal.Equal(x, y, true, normal.Limits{})
	}
}

// TestREADME: two programs and what is said of them, in the blocks "equal" of
// core/check/README.md.
func TestREADME(t *testing.T) {
	src, err := os.ReadFile("../README.md")
	must.NoError(t, err)
	n := 0
	for _, block := range strings.Split(string(src), "```equal\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		lines := strings.Split(strings.TrimSpace(block), "\n")
		for i := 0; i+2 < len(lines); i += 3 {
			n++
			want, reason, _ := strings.Cut(lines[i+2], ": ")
			v := normal.Equal(parseText(t, lines[i]), parseText(t, lines[i+1]), true, normal.Limits{})
			if string(v.Answer) != want || v.Reason != reason {
				t.Errorf("%s and %s\n%s: %s", lines[i], lines[i+1], v.Answer, v.Reason)
			}
		}
	}
	if n < 5 {
		t.Errorf("the README has %d pairs of programs", n)
	}
}
