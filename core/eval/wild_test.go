package eval_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/parse"
)

// The generator of package gen makes typed programs of usual shapes. This one
// makes the unusual ones: functions of up to 20 parameters applied to any
// number of arguments, closures that capture much, windows wider than the
// registers an instruction can name, functions applied to themselves, pairs
// that are and aren't built, loops of several parameters.

// A wildVar is a variable in scope: a number, a function of so many numbers, a
// pair or a list of numbers.
type wildVar struct {
	name  string
	kind  byte // 'n', 'f', 'p', 'l'
	arity int
}

type wild struct {
	r      *rand.Rand
	env    []wildVar
	budget int
	count  int
	self   int // parameters of the tool; 0: there is none
	acts   bool
}

func (g *wild) fresh() string {
	g.count++
	if g.r.IntN(4) == 0 {
		return string(rune('a' + g.r.IntN(3))) // shadows something
	}
	return fmt.Sprintf("v%d", g.count)
}

func ref(name string) string { return fmt.Sprintf(`{"var":%q}`, name) }

func (g *wild) pick(kind byte) (wildVar, bool) {
	seen := map[string]bool{}
	var fit []wildVar
	for i := len(g.env) - 1; i >= 0; i-- {
		if v := g.env[i]; !seen[v.name] {
			seen[v.name] = true
			if v.kind == kind {
				fit = append(fit, v)
			}
		}
	}
	if len(fit) == 0 {
		return wildVar{}, false
	}
	return fit[g.r.IntN(len(fit))], true
}

// with is what in gives with variables more in scope.
func (g *wild) with(in func() string, vars ...wildVar) string {
	n := len(g.env)
	g.env = append(g.env, vars...)
	s := in()
	g.env = g.env[:n]
	return s
}

func (g *wild) let(kind byte, arity int, value, in func() string) string {
	v := wildVar{g.fresh(), kind, arity}
	val := value()
	return `{"app":[{"lam":"` + v.name + `","body":` + g.with(in, v) + `},` + val + `]}`
}

// lambda is a function of n numbers.
func (g *wild) lambda(n int) string {
	var vars []wildVar
	s := ""
	for range n {
		v := wildVar{g.fresh(), 'n', 0}
		vars = append(vars, v)
		s += `{"lam":"` + v.name + `","body":`
	}
	return s + g.with(g.number, vars...) + strings.Repeat("}", n)
}

// eval evaluates code, within limits or not.
func (g *wild) eval(code string) string {
	with := ""
	if g.acts {
		with = []string{"", `,"with":["a"]`, `,"with":["a.b"]`, `,"with":["a","a.b"]`, `,"with":["c"]`}[g.r.IntN(5)]
	}
	return fmt.Sprintf(`{"eval":{"quote":%s}%s}`, code, with)
}

func (g *wild) numbers(n int) []string {
	s := make([]string, n)
	for i := range s {
		s[i] = g.number()
	}
	return s
}

func (g *wild) apply(f string, args ...string) string {
	if len(args) == 0 {
		return f
	}
	if g.r.IntN(2) == 0 {
		return `{"app":[` + f + "," + strings.Join(args, ",") + `]}`
	}
	for _, a := range args {
		f = `{"app":{"func":` + f + `,"arg":` + a + `}}`
	}
	return f
}

func (g *wild) list() string {
	if v, ok := g.pick('l'); ok && g.r.IntN(2) == 0 {
		return ref(v.name)
	}
	n := g.r.IntN(6)
	if g.r.IntN(8) == 0 {
		n = g.r.IntN(80)
	}
	switch g.r.IntN(4) {
	case 0:
		return fmt.Sprintf(`{"cons":[%s,%s]}`, g.number(), g.list())
	case 1:
		return fmt.Sprintf(`{"tail":[0,%s]}`, g.number())
	}
	return "[" + strings.Join(g.numbers(n), ",") + "]"
}

func (g *wild) pair() string {
	if v, ok := g.pick('p'); ok && g.r.IntN(2) == 0 {
		return ref(v.name)
	}
	return fmt.Sprintf(`{"pair":[%s,%s]}`, g.number(), g.number())
}

// function is an expression for a function of n numbers.
func (g *wild) function(n int) string {
	if v, ok := g.pick('f'); ok && v.arity >= n && g.r.IntN(2) == 0 {
		return g.apply(ref(v.name), g.numbers(v.arity-n)...) // a partial application
	}
	switch g.r.IntN(6) {
	case 0:
		return fmt.Sprintf(`{"head":[%s]}`, g.lambda(n))
	case 1:
		return g.eval(g.function(n))
	case 2:
		return fmt.Sprintf(`{"if":{"cond":{"lt":[%s,3]},"then":%s,"else":%s}}`, g.number(), g.lambda(n), g.lambda(n))
	}
	return g.lambda(n)
}

// tower nests n operands to the right, each of which needs a register while
// the rest is evaluated.
func (g *wild) tower(n int) string {
	s := g.number()
	for range n {
		left := []string{`{"head":[1,2]}`, `{"length":{"tail":[1,2,3]}}`}[g.r.IntN(2)]
		if v, ok := g.pick('n'); ok && g.r.IntN(3) == 0 {
			left = fmt.Sprintf(`{"mul":[%s,1]}`, ref(v.name))
		}
		s = fmt.Sprintf(`{"add":[%s,%s]}`, left, s)
	}
	return s
}

func (g *wild) number() string {
	g.budget--
	v, ok := g.pick('n')
	if g.budget <= 0 || g.r.IntN(4) == 0 {
		if ok && g.r.IntN(3) > 0 {
			return ref(v.name)
		}
		return fmt.Sprint(g.r.IntN(12) - 3)
	}
	if g.acts && g.r.IntN(8) == 0 {
		if g.r.IntN(4) == 0 {
			return fmt.Sprintf(`{"nth":[{"par":[%s,%s]},%d]}`, g.number(), g.number(), g.r.IntN(2))
		}
		return fmt.Sprintf(`{"a.b":%s}`, g.number())
	}
	n := 1 + g.r.IntN(4)
	if g.r.IntN(8) == 0 {
		n = 1 + g.r.IntN(20)
	}
	switch g.r.IntN(20) {
	case 0, 1:
		op := []string{"add", "sub", "mul", "div", "mod"}[g.r.IntN(5)]
		return fmt.Sprintf(`{%q:[%s,%s]}`, op, g.number(), g.number())
	case 2, 3:
		op := []string{"lt", "eq", "gte"}[g.r.IntN(3)]
		return fmt.Sprintf(`{"if":{"cond":{%q:[%s,%s]},"then":%s,"else":%s}}`, op, g.number(), g.number(), g.number(), g.number())
	case 4, 5: // a function under a name, used more than once
		return g.let('f', n, func() string { return g.function(n) }, g.number)
	case 6, 7:
		if f, ok := g.pick('f'); ok {
			k := f.arity
			if g.r.IntN(12) == 0 {
				k = g.r.IntN(f.arity + 3) // too few: a function where a number should be; too many
			}
			return g.apply(ref(f.name), g.numbers(k)...)
		}
		return g.apply(g.function(n), g.numbers(n)...)
	case 8:
		return g.apply(g.function(n), g.numbers(n)...)
	case 9:
		return g.let('p', 0, g.pair, g.number)
	case 10:
		return fmt.Sprintf(`{%q:%s}`, []string{"fst", "snd"}[g.r.IntN(2)], g.pair())
	case 11:
		return g.let('l', 0, g.list, g.number)
	case 12:
		p := wildVar{g.fresh(), 'p', 0}
		body := g.with(g.number, p)
		if f, ok := g.pick('f'); ok && g.r.IntN(3) == 0 {
			body = g.apply(ref(f.name), g.numbers(f.arity)...)
		}
		return fmt.Sprintf(`{"fold":[{"lam":%q,"body":%s},%s,%s]}`, p.name, body, g.number(), g.list())
	case 13:
		return fmt.Sprintf(`{"fold":[%s,%s,%s]}`,
			`{"head":[{"lam":"p","body":{"sub":[{"fst":{"var":"p"}},{"snd":{"var":"p"}}]}}]}`, g.number(), g.list())
	case 14:
		return g.eval(g.number())
	case 15: // ω-like: a function that gets itself
		w, x, n := g.fresh(), g.fresh(), g.fresh()
		body := g.with(g.number, wildVar{n, 'n', 0})
		call := fmt.Sprintf(`{"app":[%s,%s,{"sub":[%s,1]}]}`, ref(x), ref(x), ref(n))
		if g.r.IntN(2) == 0 {
			call = fmt.Sprintf(`{"add":[%s,%s]}`, body, call)
		}
		return fmt.Sprintf(`{"app":[{"lam":%q,"body":{"app":[%s,%s,%d]}},{"lam":%q,"body":{"lam":%q,"body":{"if":{"cond":{"lt":[%s,1]},"then":%s,"else":%s}}}}]}`,
			w, ref(w), ref(w), g.r.IntN(6), x, n, ref(n), body, call)
	case 16:
		if g.r.IntN(6) == 0 {
			return g.tower(g.r.IntN(260))
		}
		return g.tower(g.r.IntN(12))
	case 17:
		// Ends soon: the first argument gets smaller.
		switch g.self {
		case 1:
			return `{"app":[{"self":true},{"sub":[{"var":"n0"},1]}]}`
		case 2:
			return fmt.Sprintf(`{"app":[{"self":true},{"pair":[{"sub":[{"fst":{"var":"p0"}},1]},%s]}]}`, g.number())
		}
		return g.number()
	case 18: // the pair is the parameter of a function with a name
		f, p := g.fresh(), wildVar{g.fresh(), 'p', 0}
		body := g.with(g.number, p)
		use := func() string { return g.apply(ref(f), g.pair()) }
		return fmt.Sprintf(`{"app":[{"lam":%q,"body":{"add":[%s,%s]}},{"lam":%q,"body":%s}]}`, f, use(), use(), p.name, body)
	default:
		switch g.r.IntN(3) {
		case 0:
			return fmt.Sprintf(`{"head":%s}`, g.list())
		case 1:
			return fmt.Sprintf(`{"get":[{"try":%s},"ok",%s]}`, g.number(), g.number())
		}
		fields := make([]string, 1+g.r.IntN(40))
		for i := range fields {
			fields[i] = fmt.Sprintf(`"k%d":%s`, i, []string{"1", g.number()}[g.r.IntN(2)])
		}
		return fmt.Sprintf(`{"get":[{"record":{%s}},"k%d"]}`, strings.Join(fields, ","), g.r.IntN(len(fields)))
	}
}

func wildTrial(seed int) trial {
	r := rand.New(rand.NewPCG(uint64(seed), 12))
	g := &wild{r: r, budget: 20 + r.IntN(200), acts: r.IntN(2) == 0}
	tr := trial{input: "3", budgets: core.Budgets{Steps: 20_000, Memory: 4 << 20, Depth: 300}, slice: uint64(max(0, r.IntN(60)-30)), reply: echo}
	switch r.IntN(4) {
	case 0:
		tr.code = g.lambda(1)
	case 1:
		tr.code = g.number()
	case 2:
		g.self, tr.tool = 1, "tool"
		n := func() string { return g.with(g.number, wildVar{"n0", 'n', 0}) }
		tr.code = fmt.Sprintf(`{"lam":"n0","body":{"if":{"cond":{"lt":[{"var":"n0"},1]},"then":%s,"else":%s}}}`, n(), n())
	default:
		g.self, tr.tool, tr.input = 2, "tool", `{"pair":[4,7]}`
		n := func() string { return g.with(g.number, wildVar{"p0", 'p', 0}) }
		tr.code = fmt.Sprintf(`{"lam":"p0","body":{"if":{"cond":{"lt":[{"fst":{"var":"p0"}},1]},"then":%s,"else":%s}}}`, n(), n())
	}
	return tr
}

func TestStressWild(t *testing.T) {
	kinds := map[string]int{}
	for seed := range must.Drawn(120, 5_000) {
		stressed(t, seed%2 == 0)
		if seed%5 == 0 {
			stressedNot()
		}
		tr := wildTrial(seed)
		if _, f := compileAs(tr.tool, tr.code); f != nil && len(tr.code) > parse.MaxCode {
			continue
		} else if f != nil {
			t.Fatalf("%v\n%s", f, tr)
		}
		o := tr.check(t)
		kinds[string(o.Kind)+o.Type]++
	}
	t.Log(kinds)
}
