package text_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// habitForms are what people write in other languages, with holes: E for an expression, S for
// statements, P for a pattern, V for a name.
var habitForms = map[byte][]string{
	'E': {
		"1", "V", "V", `"a"`, "[]", "[E, E]", "{V: E}", "(E, E)", "xs[E]", "r?.V ?? E", "-E", "E / E", "E + E", "E ++ [E]", "E * 100", "E == E", "not E", "E and E || 1",
		"V => E", "(V, V) => E", "(acc, x, i) => E", "\\V V -> E", "|V, V| E", "lambda V: E", "P => E", "(P) => { S }", "V => { S }", "self(E)", "f(E)", "map(f, E)", "map((x, i) => E, E)", "str(E)",
		"[E for P in E]", "[E for V, V in E if E]", "{E: E for V in E}", "{E for V in E}", "sum(E for V in E)", "E.map((x, i) => E)", "E.filter(V => E).length", "E.reduce((acc, x, i) => E)", "E.reduce((acc, x) => E, E)",
		"E.find(E)", "E.find(E, E)", "::sort(E, key=E)", "sorted(E, key=E, reverse=True)", "max(E, key=E)", "E.sort((a, b) => E - E)", "Math.round(E * 100) / 100", "round(E / E, 2)", "format(E / E, \"+,.2f\")", "E ** E",
		"E if E else E", "if E then E else E", "if (E) { E } else { S }", "E ? E : E", "match E { [] => E; [V, ...V] => E; P if E => E; _ => E }", "match E { P => { S }, P -> E }", "let V = E in E", "let V = V => E, V = E in E", "let P = E in E",
		"f\"{{{E}}} {E:05d} {E:,.2f}\"", "f'{E:10}|'", "$\"a{E}\"", "`a ${E}`", "E in E", "E is not None", "E |> map(E) |> sum", "E |> sort(key=E)", "{ S }", "do { S }", "{...E, V: E}", "[...E, E]", "'{E}", "{[E]: E}", "re_replace(E, \"a(b)\", (V, V) => E)",
		"re_find(E, \"(a)\")", "chunk(E, 2)", "E.slice(-2)", "repeat(E, E)", "E and V = E", "E;", "match E { E => E }", "!V.V", "!clock.now()", "@t(E)", "E = E", "const", "V V",
	},
	'S': {"E", "E", "return E", "V = E; S", "V = E\nS", "let V = E; S", "let V = E\nS", "let mut V = E\nS", "const V = E; S", "const P = E; S", "const P = E\nS", "var P = E; V = E; S", "E; S", "E\nS", "let V = V => E\nlet V = (V, V) => E\nS",
		"if (E) { return E }; S", "if (E) return E; S", "if E then raise(E); S", "let rec V = V => E and V = V => E in S"},
	'P': {"V", "{V}", "{V, V: P}", "[V, V]", "[P, ...V]", "(V, V)", "_", "1", "[]", "None", "1 | 2", "'{V}"},
	'V': {"a", "b", "t", "xs", "sum", "sort", "find", "r", "i", "self", "x", "lambda"},
}

var habitHole = regexp.MustCompile(`\b[ESPV]\b`)

// drawHabit draws a source of such forms.
func drawHabit(draw *rand.Rand, kind byte, size int) string {
	forms := habitForms[kind]
	if size <= 0 {
		forms = forms[:min(3, len(forms))]
	}
	return habitHole.ReplaceAllStringFunc(forms[draw.IntN(len(forms))], func(hole string) string {
		return drawHabit(draw, hole[0], size-1-draw.IntN(2))
	})
}

// TestHabitsCombined: forms of other languages inside each other are read or refused, and what is
// read is printed so that it is read again.
func TestHabitsCombined(t *testing.T) {
	read := 0
	n := must.Drawn(6000, 300_000)
	for seed := range n {
		draw := rand.New(rand.NewPCG(uint64(seed), 14))
		src := drawHabit(draw, "SE"[draw.IntN(2)], 2+draw.IntN(4))
		if seed%3 == 0 {
			src = "r => " + src
		}
		p, f := text.Parse([]byte(src), text.Options{Inline: seed%2 == 0, Semantics: []int{0, 13, 12}[seed%5%3]})
		if f != nil {
			if f.Kind == fault.Internal {
				t.Fatalf("%s\n%v", src, f)
			}
			checkFault(t, src, f)
			continue
		}
		read++
		roundTrip(t, p.Term)
	}
	t.Logf("%d of %d were read", read, n)
}

// TestPanicIsInternal: a defect of the reader is a fault, not the end of the program.
func TestPanicIsInternal(t *testing.T) {
	_, f := text.Parse([]byte("match x { [a] => 1; _ => 2 }"), text.Options{Turned: map[int]bool{10: true}}) // which can't be
	if f == nil || f.Kind != fault.Internal || f.Hint == "" || f.Line != 1 {
		t.Errorf("it is %v", f)
	}
}

// TestTermsAreBounded: a short form that stands for many terms is refused once they are more
// than other code can have.
func TestTermsAreBounded(t *testing.T) {
	src := "[" + strings.Repeat("a"+strings.Repeat("[0]", 400)+" ?? 1, ", 100) + "1]"
	if _, f := text.Parse([]byte(src), text.Options{}); f == nil || !strings.Contains(f.Message, "terms") {
		t.Errorf("it is read, or refused for %v", f)
	}
	src = "[" + strings.Repeat("1,", text.MaxSource/2-2) + "1]"
	if _, f := text.Parse([]byte(src), text.Options{}); f != nil {
		t.Errorf("the longest list is refused: %v", f)
	}
}

// TestChains: a hundred comparisons chain, and as many as one likes with and between.
func TestChains(t *testing.T) {
	for src, read := range map[string]bool{
		"a" + strings.Repeat(" < a", 100):             true,
		"a" + strings.Repeat(" < a", 101):             false,
		"a" + strings.Repeat(" in a", 100):            true,
		"a" + strings.Repeat(" in a", 101):            false,
		"a in a" + strings.Repeat(" and a in a", 500): true,
	} {
		if _, f := text.Parse([]byte(src), text.Options{}); f != nil && (read || !strings.Contains(f.Message, "more than 100 comparisons")) || f == nil && !read {
			t.Errorf("%.20q… of %d: %v", src, len(src), f)
		}
	}
}

// TestReadingTakesNoSquare: what takes time by the square of its length, or by the cube, isn't read
// in hours: each of these is as long as a source may be.
func TestReadingTakesNoSquare(t *testing.T) {
	many := func(s string, bytes int) string { return strings.Repeat(s, bytes/len(s)) }
	const half = text.MaxSource/2 - 100
	keys := &strings.Builder{}
	for i := 0; keys.Len() < 2*half; i++ {
		fmt.Fprintf(keys, `"k%d":1,`, i)
	}
	for name, src := range map[string]string{
		"later":    "(let a=1 in " + many("sum(x)+", half) + "1)+[" + many("let sum=x=>x in 1,", half) + "1]",
		"or":       "a" + many("||1", 2*half),
		"assigned": many("{a=", 2*half),
		"keys":     "{" + keys.String() + "}",
		"ordered":  "a" + many("<a", 2*half),
		"within":   "a" + many(" in a", 2*half),
	} {
		t.Run(name, func(t *testing.T) {
			if _, f := text.Parse([]byte(src), text.Options{}); f != nil && f.Kind == fault.Internal {
				t.Error(f)
			}
		})
	}
}
