package check_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
)

func readText(t *testing.T, src []byte) term.Term {
	t.Helper()
	p, f := check.ReadText(src, text.Options{})
	if f != nil {
		t.Fatalf("%v\n%s", f, src)
	}
	return p.Term
}

// TestOperators: what each operator is read as by the types of its operands; the print says
// it, and is read as the same.
func TestOperators(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		"xs => xs[:1] ++ xs[2:]":             "xs => let left = at(xs, null, 1), right = at(xs, 2, null) in if type_of(left) == \"list\" then append(left, right) else concat(left, right)",
		"(xs, y) => xs[:1] + y + xs[1:]":     "",
		"(a, b, xs) => (a ++ b) ++ xs[1:]":   "",
		"xs => (xs[:1] ++ xs[2:], trim(xs))": "xs => (at(xs, null, 1) ++ at(xs, 2, null), trim(xs))",
		"xs => concat(xs[:1], xs[2:])":       "xs => concat(at(xs, null, 1), at(xs, 2, null))",
		"(a, b) => a < b":                    "(a, b) => compare(a, b) < 0",
		"(a, b) => a >= b":                   "(a, b) => compare(a, b) >= 0",
		"(a, b) => a + b":                    "(a, b) => a + b",
		"(a, b) => a ++ b":                   "(a, b) => a ++ b",
		"(a, b) => (a < b, a - b)":           "(a, b) => (a < b, a - b)",
		"(a, b, c) => a + b > c":             "(a, b, c) => a + b > c",
		"(a, b) => (a + b, trim(a))":         "(a, b) => (a ++ b, trim(a))",
		"(a, b) => (a + b, head(a))":         "(a, b) => (append(a, b), head(a))",
		"(a, b) => (a ++ b, tail(b))":        "(a, b) => (append(a, b), tail(b))",
		"(a, b) => (a ++ b, trim(b))":        "(a, b) => (a ++ b, trim(b))",
		"(a, b) => (a < b, trim(a))":         "(a, b) => (compare(a, b) < 0, trim(a))",
		// One reading for all that a function is applied to.
		"let f = (a, b) => a < b in (f(1, 2), f(3, 4))":     "let f = (a, b) => a < b in (f(1, 2), f(3, 4))",
		`let f = (a, b) => a < b in (f(1, 2), f("3", "4"))`: `let f = (a, b) => compare(a, b) < 0 in (f(1, 2), f("3", "4"))`,
		// What + gives tells of a comparison, once it is known what it adds.
		"(a, b) => let s = a + b, t = b + a in s < t":         "(a, b) => let s = a + b, t = b + a in s < t",
		"(n, xs) => map(x => if x < n then x else n - 1, xs)": "(n, xs) => map(x => if x < n then x else n - 1, xs)",
		// A number beside null is one; what may be anything isn't.
		"xs => fold((m, x) => if m == null or x > m then x * 1 else m, null, xs)": "xs => fold( arg => let m = fst(arg), x = snd(arg) in if m == null or x > m then x * 1 else m, null, xs )",
		"xs => fold((m, x) => if x > m then x else m, xs[0], xs)":                 "xs => fold( arg => let m = fst(arg), x = snd(arg) in if compare(x, m) > 0 then x else m, at(xs, 0), xs )",
		// The items of a list need not be of one kind, though all are one to the checker.
		"r => [trim(r[0]), r[1] + r[2], r[1] < r[2]]": "r => [trim(at(r, 0)), at(r, 1) + at(r, 2), compare(at(r, 1), at(r, 2)) < 0]",
		"r => [trim(r.a), r.a + r.b, r.b + r.c]":      "r => [trim(r.a), r.a ++ r.b, r.b + r.c]",
		"'{a < b}":                                    "'{a < b}",
		"(a, b) => lt(a, b)":                          "(a, b) => lt(a, b)",
		"(a, b) => concat(tail(a), b)":                "(a, b) => concat(tail(a), b)",
		// It is a tool's code that names self.
		"xs => match xs { [] => []; [x, ...r] => self(r) ++ x }": "xs => let `match` = xs in if if type_of(`match`) == \"list\" then isEmpty(`match`) else false then [] else if if type_of(`match`) == \"list\" then not isEmpty(`match`) else false then let x = head(`match`), r = tail(`match`) in append(self(r), x) else no_match(`match`)",
		// Where there is no knowing what + joins, and where the types are too many.
		"(a, b) => [a + b, a - 1, trim(b)]":                                     "(a, b) => [a + b, a - 1, trim(b)]",
		"(a, b) => [" + strings.Repeat("map(x => [x, a], b), ", 900) + "a < b]": "",
	} {
		p := readText(t, []byte(src))
		got := strings.Join(strings.Fields(string(check.PrintText(p))), " ")
		if want != "" && got != want {
			t.Errorf("%s\nis printed\n%s\nnot\n%s", src, got, want)
		}
		if a, b := text.Canonical(p), text.Canonical(readText(t, []byte(got))); string(a) != string(b) {
			t.Errorf("%s\nis printed\n%s\nwhich is\n%s", src, got, b)
		}
	}
}

// TestTwos: in match, a pattern of two is read as what there is: a list, or a pair.
func TestTwos(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		`xs => map(p => match p { [i, x] => i; _ => 0 }, enumerate(xs))`:               `xs => map(p => match p { (i, x) => i; _ => 0 }, enumerate(xs))`,
		`xs => match zip(xs, xs) { [[a, b], ...r] => b; _ => 0 }`:                      `xs => match zip(xs, xs) { [(a, b), ...r] => b; _ => 0 }`,
		`s => match split(s, ":") { (a, b) => b; _ => "" }`:                            `s => match split(s, ":") { [a, b] => b; _ => "" }`,
		`s => match re_find(s, "(a)(b)") { (a, b) => b; _ => "" }`:                     `s => match re_find(s, "(a)(b)") { [a, b] => b; _ => "" }`,
		`p => match p { [a, b] => a; _ => 0 }`:                                         `p => match p { [c, d] => c; _ => 0 }`,
		`let f = v => match v { [a, b] => a; (a, b) => b; _ => 0 } in f((1, 2))`:       `let f = v => match v { [a, c] => a; (a, b) => b; _ => 0 } in f((1, 2))`,
		`let f = v => match v { [a, b] => a; _ => 0 } in [f((1, 2)), f([1, 2]), f(1)]`: `let f = v => match v { [a, c] => a; _ => 0 } in [f((1, 2)), f([1, 2]), f(1)]`,
	} {
		if a, b := text.Canonical(readText(t, []byte(src))), text.Canonical(readText(t, []byte(want))); len(a) != len(b) {
			t.Errorf("%s is %s, not %s", src, a, b)
		}
	}
}

// drawOperators draws a term as JSON that has hardly anything but the operators and what
// tells of their operands.
func drawOperators(r *rand.Rand, size int, vars []string) string {
	draw := func() string { return drawOperators(r, size-1-r.IntN(2), vars) }
	v := fmt.Sprintf("v%d", r.IntN(5))
	in := func() string { return drawOperators(r, size-1, append(vars[:len(vars):len(vars)], v)) }
	if size <= 0 {
		return []string{"1", `"a"`, "[2]", `{"var":"` + vars[r.IntN(len(vars))] + `"}`, `{"var":"` + vars[len(vars)-1] + `"}`}[r.IntN(5)]
	}
	switch k := r.IntN(16); k {
	case 0, 1, 2, 3, 4, 5, 6, 7:
		return fmt.Sprintf(`{%q:[%s,%s]}`, []string{"lt", "lte", "gt", "gte", "add", "concat", "add", "concat"}[k], draw(), draw())
	case 8:
		return fmt.Sprintf(`{"app":[{"lam":%q,"body":%s},%s]}`, v, in(), draw())
	case 9:
		return fmt.Sprintf(`{"lam":%q,"body":%s}`, v, in())
	case 10:
		return fmt.Sprintf(`{"fold":[{"lam":%q,"body":%s},%s,%s]}`, v, in(), draw(), draw())
	case 11:
		return fmt.Sprintf(`{%q:%s}`, []string{"trim", "head", "tail", "length", "quote", "fst"}[r.IntN(6)], draw())
	case 12:
		return fmt.Sprintf(`{"if":{"cond":%s,"then":%s,"else":%s}}`, draw(), draw(), draw())
	case 13:
		return fmt.Sprintf(`{"append":[%s,%s]}`, draw(), draw())
	case 14:
		return fmt.Sprintf(`{"get":[%s,"k"]}`, draw())
	}
	return fmt.Sprintf(`[%s,%s]`, draw(), draw())
}

// TestPrintOperators: any term is printed so that it is read back.
func TestPrintOperators(t *testing.T) {
	t.Parallel()
	n, named := must.Drawn(200, 50_000), 0
	for seed := range n {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		p, f := parse.Code([]byte(drawOperators(r, 2+r.IntN(7), []string{"a", "b"})), parse.Options{})
		must.NoFault(t, f)
		src := check.PrintText(p.Term)
		if string(src) != string(text.Print(p.Term)) {
			named++
		}
		if a, b := text.Canonical(p.Term), text.Canonical(readText(t, src)); string(a) != string(b) {
			t.Fatalf("seed %d: %s\nis printed\n%s\nwhich is\n%s", seed, a, src, b)
		}
	}
	if named < n/20 {
		t.Errorf("only %d of %d have an operator that is written by its name", named, n)
	}
}
