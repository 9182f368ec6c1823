package cert_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check/cert"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// TestCost: formulas, which package issue's tests hold against runs.
func TestCost(t *testing.T) {
	nested := "1"
	for range 30 {
		nested = "fold(p => " + nested + ", 0, xs)"
	}
	for _, c := range []struct{ code, formula, class string }{
		{"x => x * x", "5", "constant"},
		{"x => if x > 1 then x else x * x", "9", "constant"},
		{"(a, b) => [a, b]", "9", "constant"},
		{"xs => sum(xs)", "9 + 5*n", "linear"},
		{"xs => sum(map(x => x + 1, xs))", "24 + 20*n", "linear"},
		{"xs => sum(cons(1, xs))", "16 + 5*n", "linear"},
		{"xs => map(x => map(y => x + y, xs), xs)", "18 + 28*n + 15*n^2", "polynomial"},
		{"(xs, ys) => map(x => map(y => x, ys), xs)", "20 + 28*n + 13*n^2", "polynomial"},
		{"n => if n <= 1 then 1 else n * self(n - 1)", "(13)*(1 + calls)", "budget"},
		{"xs => if isEmpty(xs) then 0 else sum(xs) + self(tail(xs))", "(17 + 5*n)*(1 + calls)", "budget"},
		{"xs => if length(xs) > 9 then sum(xs) else self([...xs, ...xs])", "unbounded", "budget"},
		{"xs => if isEmpty(xs) then sum(xs) else self(head(xs))", "unbounded", "budget"},
		{"xs => if isEmpty(xs) then sum(xs) else self([1])", "unbounded", "budget"},
		{"n => let f = self in if n <= 1 then 1 else n * f(n - 1)", "unbounded", "budget"},
		{"(n, m) => self(n)", "unbounded", "budget"},
		{"let h = x => x * x in (xs, k) => map(x => h(x) + k, xs)", "23 + 20*n", "linear"},
		{"let h = (xs, k) => map(x => x + k, xs) in h", "23 + 15*n", "linear"},
		{"if isEmpty([]) then xs => sum(xs) else xs => 1", "unbounded", "budget"},
		{"xs => sort(xs)", "unbounded", "budget"},
		{"f => f(1)", "unbounded", "budget"},
		{"x => (f => f(f))(f => f(f))", "unbounded", "budget"},
		{"x => eval('{x})", "unbounded", "budget"},
		{"xs => fold(p => append(fst(p), fst(p)), xs, xs)", "unbounded", "budget"},
		{"xs => sum(fold(p => append(fst(p), fst(p)), xs, [1, 2]))", "unbounded", "budget"},
		{"xss => fold(p => sum(fst(p)), [1], xss)", "unbounded", "budget"},
		{"xs => " + nested, "unbounded", "budget"},
		// Of types that nobody claims the larger size counts, too.
		{"xs => sum(get({}, \"k\", map(x => x, [])))", "unbounded", "budget"},
		{"xs => sum(get({k: map(x => x, xs)}, \"k\", map(x => x, [])))", "43 + 18*n", "linear"},
		{"xs => sum(get({k: map(x => x, [])}, \"k\", map(x => x, xs)))", "43 + 18*n", "linear"},
	} {
		p, f := text.Parse([]byte(c.code), text.Options{Tool: "tool"})
		if f != nil {
			t.Fatalf("%s: %v", c.code, f)
		}
		is, _, err := cert.Claims(p.Term, true, nil, prim.Expand, func(term.Term) *cert.Type { return nil })
		if err != nil || is.Cost != c.formula || is.Class != c.class {
			t.Errorf("%.60s: %.200s, %s (%v); want %s, %s", c.code, is.Cost, is.Class, err, c.formula, c.class)
		}
	}
}

// TestSmall: what has to be trusted can be read.
func TestSmall(t *testing.T) {
	files, err := filepath.Glob("*.go")
	must.NoError(t, err)
	lines := 0
	for _, f := range files {
		src, err := os.ReadFile(f)
		must.NoError(t, err)
		if !strings.HasSuffix(f, "_test.go") {
			lines += bytes.Count(src, []byte("\n"))
		}
		if bytes.Contains(src, []byte("core/check\"")) {
			t.Errorf("%s imports the inference", f)
		}
	}
	if lines >= 760 {
		t.Errorf("the checker has %d lines", lines)
	}
}
