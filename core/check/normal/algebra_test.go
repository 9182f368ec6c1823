package normal_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check/normal"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// An algebra makes programs in the text form out of what is rewritten: sums and
// products, strings, comparisons, conditionals with branches alike, and folds.
type algebra struct {
	r    *rand.Rand
	deep int
}

func (g *algebra) one(of ...string) string { return of[g.r.IntN(len(of))] }

// number is a term that gives a number, if the variables are what it takes.
func (g *algebra) number() string {
	if g.deep--; g.deep < 0 {
		return g.one("x", "y", "0", "1", "2", "7", "-3", "length(z)", "div(x, 2)")
	}
	a, b := g.number(), g.number()
	switch g.r.IntN(12) {
	case 0, 1, 2:
		return fmt.Sprintf("(%s + %s)", a, b)
	case 3, 4:
		return fmt.Sprintf("(%s - %s)", a, b)
	case 5, 6:
		return fmt.Sprintf("(%s * %s)", a, b)
	case 7:
		return fmt.Sprintf("mod(%s, %s)", a, g.one("3", "-2", "0", b))
	case 8:
		return fmt.Sprintf("(let v = %s in %s)", a, strings.ReplaceAll(b, "x", "v"))
	case 9:
		return fmt.Sprintf("(if %s then %s else %s)", g.truth(), a, b)
	case 10:
		return "length(" + g.str() + ")"
	}
	return fmt.Sprintf("fold(p => fst(p) + %s, %s, %s)", strings.ReplaceAll(a, "x", "snd(p)"), b, g.list())
}

func (g *algebra) str() string {
	if g.deep--; g.deep < 0 {
		return g.one("z", "x", `"a"`, `""`, `"b"`)
	}
	if g.r.IntN(3) == 0 {
		return fmt.Sprintf("(if %s then %s else %s)", g.truth(), g.str(), g.str())
	}
	if g.r.IntN(5) == 0 {
		return fmt.Sprintf("(let e = %s in %s ++ e)", g.one("!fs.read(x)", "head(z)", "x * y", "to_text(x * x)"), g.str())
	}
	return fmt.Sprintf("(%s ++ %s)", g.str(), g.str())
}

func (g *algebra) truth() string {
	if g.deep--; g.deep < 0 {
		return g.one("x", "isEmpty(z)", "true", "y")
	}
	switch g.r.IntN(8) {
	case 0:
		return "not " + g.truth()
	case 1:
		return fmt.Sprintf("(%s and %s)", g.truth(), g.truth())
	case 2:
		return fmt.Sprintf(`(equal(type_of(%s), %q) and %s)`, g.one("x", "y"), g.one("int", "string", "list"), g.truth())
	case 3:
		return fmt.Sprintf("(if %s then %s else %s)", g.truth(), g.truth(), g.truth())
	}
	return fmt.Sprintf("(%s %s %s)", g.number(), g.one("<", "<=", ">", ">=", "=="), g.number())
}

func (g *algebra) list() string {
	if g.deep--; g.deep < 0 {
		return g.one("z", "[x, y]", "x", "[]", "y")
	}
	switch g.r.IntN(5) {
	case 0:
		return "reverse(" + g.list() + ")"
	case 1:
		return fmt.Sprintf("cons(%s, %s)", g.number(), g.list())
	case 2:
		return fmt.Sprintf("filter(i => %s, %s)", strings.ReplaceAll(g.truth(), "x", "i"), g.list())
	}
	f := g.one("(i, 1)", "[i]", "i", "!fs.read(i)", "fst(i)", "i + 1", "head(i)", "y", "length(i)", "(x, i)", "type_of(i)")
	return fmt.Sprintf("map(i => %s, %s)", f, g.list())
}

func (g *algebra) term() string {
	g.deep = 1 + g.r.IntN(10)
	switch g.r.IntN(8) {
	case 0:
		return g.str()
	case 1:
		return g.truth()
	case 2, 3:
		return g.list()
	case 4:
		c := g.truth()
		a := g.number()
		return fmt.Sprintf("(if %s then %s else %s)", c, a, g.one(a, g.number()))
	case 5:
		return fmt.Sprintf("(%s, %s)", g.number(), g.str())
	}
	return g.number()
}

// rearranged is a program that may say the same otherwise.
func (g *algebra) rearranged(s string) string {
	for range 1 + g.r.IntN(3) {
		switch g.r.IntN(7) {
		case 0:
			s = strings.Replace(s, "(x + y)", "(y + x)", 1)
		case 1:
			s = strings.Replace(s, " + 1)", " + 3 - 2)", 1)
		case 2:
			s = "(let w = " + s + " in w)"
		case 3:
			s = strings.Replace(s, "x * ", "(x + 0) * ", 1)
		case 4:
			s = strings.Replace(s, "map(i => i, ", "map(i => fst((i, 1)), ", 1)
		case 5:
			s = strings.NewReplacer("length(z)", "(length(z) * 2 - length(z))", "div(x, 2)", "(0 - div(x, 2) + 2 * div(x, 2))").Replace(s)
		case 6:
			s = strings.Replace(s, "isEmpty(z)", "not not isEmpty(z)", 1)
		}
	}
	return s
}

// odd is inputs for x, y and z: numbers at the bounds, and what is of another kind.
func (g *algebra) odd() string {
	nines := strings.Repeat("9", 4096)
	number := func() string {
		return g.one("0", "1", "-1", "2", "3", "9223372036854775807", "-9223372036854775808", `{"dec":"1.50"}`, `{"dec":"-0.0"}`, `{"dec":"2"}`, "12345678901234567890123",
			nines, `{"dec":"`+nines+`"}`, `{"dec":"-`+nines+`"}`, `{"dec":"0.`+nines[1:]+`"}`)
	}
	any := func() string {
		if g.r.IntN(4) > 0 {
			return number()
		}
		return g.one(`""`, `"ab"`, "true", "false", "null", "[]", `[1,"a"]`, `{"record":{"a":1}}`, `[[1],[2,3]]`, `{"pair":[1,2]}`, `[{"pair":["u","v"]},{"pair":[1,2]}]`)
	}
	z := g.one(`""`, `"abc"`, "[]", "[1,2,3]", `[{"pair":[1,2]},{"pair":["a","b"]}]`, "[[1],[]]", "["+number()+","+number()+"]", any())
	return fmt.Sprintf("[%s,%s,%s]", any(), any(), z)
}

// TestAlgebra: a program, its form, and another program with the same form give the
// same, fail alike and ask for the same, for numbers at the bounds of what they are
// and for values of other kinds.
func TestAlgebra(t *testing.T) {
	n := must.Drawn(300, 50_000)
	compared, same, form := 0, 0, map[string]int{}
	for seed := range n {
		g := &algebra{r: rand.New(rand.NewPCG(uint64(seed), 77))}
		body := g.term()
		pair := []string{body, g.rearranged(body)}
		var forms []normal.Form
		var codes [][]byte
		for _, s := range pair {
			code := parseText(t, "p => let x = nth(p, 0), y = nth(p, 1), z = nth(p, 2) in "+s)
			f, err := normal.Of(code, normal.Options{Tool: true})
			if err != nil || f.Opaque != "" {
				form["none"]++
				break
			}
			forms, codes = append(forms, f), append(codes, text.Canonical(code))
		}
		if len(forms) < 2 {
			continue
		}
		equal := forms[0].Hash == forms[1].Hash
		if equal {
			same++
		}
		again, err := normal.Of(forms[0].Term, normal.Options{Tool: true})
		if err != nil || again.Hash != forms[0].Hash {
			form["another"]++
		}
		for range 3 {
			input := g.odd()
			want, unsure := observed(t, codes[0], "tool", input, 20_000)
			if unsure {
				continue
			}
			compared++
			for i, c := range [][]byte{forms[0].JSON, codes[1], forms[1].JSON} {
				if i > 0 && !equal {
					break
				}
				if got, unsure := observed(t, c, "tool", input, 200_000); unsure || got != want {
					t.Fatalf("seed %d, %d\ngot  %.300s\nwant %.300s\ncode %s\nform %s\nother %s\ninput %.300s", seed, i, got, want, pair[0], text.Print(forms[0].Term), pair[1], input)
				}
			}
		}
	}
	t.Logf("%d runs compared, %d of %d pairs are equal, %v", compared, same, n, form)
	if compared < n || same < n/2 || form["none"]+form["another"] > n/50 {
		t.Errorf("the test shows little: %d compared, %d equal, %v", compared, same, form)
	}
}
