package check_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/prim/gen"
)

// An untyped generator puts operations together without regard to types, those
// of which the types are hard most of all: records, tests of what a value is,
// comparisons, functions among data. Most of its programs are wrong somewhere;
// those that the checker takes for sound must be.
type untyped struct {
	draw gen.Draw
	vars []string
	tool bool // it may call itself
	rows bool // it takes lists by places that are written
}

func (g *untyped) pick(choices ...string) string { return choices[g.draw(len(choices))] }

func (g *untyped) key() string { return g.pick(`"a"`, `"b"`, `"a"`) }

// path is a variable, or a part of one.
func (g *untyped) path() string {
	if len(g.vars) == 0 {
		return g.expr(1)
	}
	p := fmt.Sprintf(`{"var":%q}`, g.vars[g.draw(len(g.vars))])
	for g.draw(3) == 0 {
		p = fmt.Sprintf(g.pick(`{"fst":%s}`, `{"snd":%s}`, `{"get":[%s,"a"]}`, `{"head":%s}`), p)
	}
	for g.rows && g.draw(2) == 0 {
		p = fmt.Sprintf(g.pick(`{"at":[%s,0]}`, `{"at":[%s,1]}`, `{"at":[%s,-1]}`, `{"nth":[%s,2]}`, `{"head":%s}`, `{"tail":%s}`, `{"head":{"tail":%s}}`, `{"at":[%s,1,null]}`), p)
	}
	return p
}

func (g *untyped) test(deep int) string {
	switch g.draw(9) {
	case 7:
		return fmt.Sprintf(`{"contains":[["int",%q],{"type_of":%s}]}`, g.pick("dec", "string", "list"), g.path())
	case 8:
		return fmt.Sprintf(`{"equal":[{"type_of":%s},{"type_of":%s}]}`, g.path(), g.path())
	case 0, 1:
		kind := g.pick("int", "string", "list", "record", "pair", "function", "bool")
		return fmt.Sprintf(`{"equal":[{"type_of":%s},%q]}`, g.path(), kind)
	case 2, 3:
		return fmt.Sprintf(`{"has":[%s,%s]}`, g.path(), g.key())
	case 4:
		return fmt.Sprintf(`{"not":%s}`, g.test(deep-1))
	case 5:
		return fmt.Sprintf(`{%q:[%s,%s]}`, g.pick("and", "or"), g.test(deep-1), g.test(deep-1))
	default:
		return fmt.Sprintf(`{"equal":[%s,%s]}`, g.path(), g.pick("1", `"a"`, "null", "true"))
	}
}

func (g *untyped) bind(name string, body func() string) string {
	g.vars = append(g.vars, name)
	defer func() { g.vars = g.vars[:len(g.vars)-1] }()
	return body()
}

func (g *untyped) expr(deep int) string {
	if deep <= 0 {
		if len(g.vars) > 0 && g.draw(3) > 0 {
			return g.path()
		}
		return g.pick("1", "2", `"a"`, `"x"`, "true", "null", "[]", `{"record":{}}`, `{"dec":"1.5"}`)
	}
	e := func() string { return g.expr(deep - 1) }
	if g.tool && g.draw(8) == 0 {
		return fmt.Sprintf(`{"app":[{"self":true},%s]}`, g.pick(g.path(), g.path(), e()))
	}
	if g.rows && g.draw(6) == 0 { // ([x, ...y]) => …
		list := g.path()
		return fmt.Sprintf(`{"if":{"cond":{"isEmpty":%s},"then":%s,"else":{"let":[["x",{"head":%[1]s}],["y",{"tail":%[1]s}]],"in":%s}}}`,
			list, e(), g.bind("x", func() string { return g.bind("y", e) }))
	}
	switch g.draw(20) {
	case 0, 1, 2, 3:
		cond := g.test(2)
		return fmt.Sprintf(`{"if":{"cond":%s,"then":%s,"else":%s}}`, cond, e(), e())
	case 4:
		return "[" + e() + "," + e() + "]"
	case 5:
		return fmt.Sprintf(`{"pair":[%s,%s]}`, e(), e())
	case 6:
		return fmt.Sprintf(`{"record":{"a":%s,"b":%s}}`, e(), e())
	case 7:
		return fmt.Sprintf(`{"record":{"a":%s}}`, e())
	case 8:
		return fmt.Sprintf(`{"put":[%s,%s,%s]}`, e(), g.pick(g.key(), g.path()), e())
	case 9:
		return fmt.Sprintf(`{"get":[%s,%s,%s]}`, e(), g.pick(g.key(), g.key(), g.path()), e())
	case 10:
		return fmt.Sprintf(g.pick(`{"del":[%s,"a"]}`, `{"keys":%s}`, `{"values":%s}`, `{"entries":%s}`, `{"from_entries":%s}`, `{"get":[%s,"b"]}`, `{"reverse":%s}`, `{"to_json":%s}`, `{"unique":%s}`, `{"sort":%s}`), e())
	case 11:
		return fmt.Sprintf(g.pick(`{"merge":[%s,%s]}`, `{"equal":[%s,%s]}`, `{"compare":[%s,%s]}`, `{"append":[%s,%s]}`, `{"contains":[%s,%s]}`, `{"concat":[%s,%s]}`, `{"join":[%s,%s]}`, `{"push":[%s,%s]}`), e(), e())
	case 12:
		return fmt.Sprintf(g.pick(`{"add":[%s,%s]}`, `{"mul":[%s,%s]}`, `{"mod":[%s,%s]}`, `{"lt":[%s,%s]}`, `{"mul":[%s,%s]}`), e(), e())
	case 13:
		return fmt.Sprintf(g.pick(`{"fst":%s}`, `{"snd":%s}`, `{"head":%s}`, `{"tail":%s}`, `{"length":%s}`, `{"isEmpty":%s}`, `{"try":%s}`, `{"raise":%s}`), e())
	case 14, 15:
		x := g.pick("x", "y", "z")
		v := e()
		return fmt.Sprintf(`{"let":[[%q,%s]],"in":%s}`, x, v, g.bind(x, e))
	case 16:
		x := g.pick("x", "y", "z")
		return fmt.Sprintf(`{"lam":%q,"body":%s}`, x, g.bind(x, e))
	case 17:
		return fmt.Sprintf(`{"app":[%s,%s]}`, e(), e())
	case 18:
		f := fmt.Sprintf(`{"lam":"x","body":%s}`, g.bind("x", e))
		return fmt.Sprintf(g.pick(`{"map":[%s,%s]}`, `{"filter":[%s,%s]}`, `{"sort_by":[%s,%s]}`, `{"group":[%s,%s]}`), f, e())
	default:
		f := fmt.Sprintf(`{"lam":"p","body":%s}`, g.bind("p", e))
		return fmt.Sprintf(`{"fold":[%s,%s,%s]}`, f, e(), e())
	}
}

// TestSoundUntyped is TestSound for programs that nobody has made to be right. What comes out is
// of the type, and as the schema has it, also of those that may fail.
func TestSoundUntyped(t *testing.T) {
	w := newWorld(t)
	n := must.Drawn(800, 30_000)
	sound, tuples, ran := 0, 0, 0
	for seed := range n {
		r := rand.New(rand.NewPCG(uint64(seed), 51))
		g, tool := &untyped{draw: r.IntN, vars: []string{"x"}, tool: seed%2 == 0, rows: seed%4 > 1}, ""
		if g.tool {
			tool = "tool"
		}
		src := fmt.Sprintf(`{"lam":"x","body":%s}`, g.expr(2+r.IntN(4)))
		if strings.Contains(src, "%!") {
			t.Fatal(src)
		}
		tr := w.trial(t, tool, src)
		if tr.report.Sound() {
			sound++
		}
		if slices.ContainsFunc(tr.report.Dynamic, func(u check.Unknown) bool { return strings.Contains(u.Message, "of several kinds") }) {
			tuples++
		}
		for range 4 {
			s := sampler{draw: r.IntN, deep: 3}
			input, ok := s.term(tr.report.Type.Param)
			if !ok {
				break
			}
			ran++
			v, f := tr.run(t, input)
			if f != nil {
				if tr.report.Sound() && (f.Kind == fault.TypeError || f.Kind == fault.Unbound) {
					t.Fatalf("seed %d: %v\ninput %s\n%s", seed, f, input, tr)
				}
				continue
			}
			result := tr.report.Type.Result
			if why := misfit(v, result, map[string]*check.Type{}); why != "" {
				t.Fatalf("seed %d: %s\ninput %s\n%s", seed, why, input, tr)
			}
			if err := validates(t, check.SchemaOf(result), shown(t, v)); err != nil {
				t.Fatalf("seed %d: %v\ninput %s\n%s", seed, err, input, tr)
			}
		}
	}
	t.Logf("of %d programs %d type without a dynamic place, %d take tuples; %d runs", n, sound, tuples, ran)
	if sound < n/20 || tuples < n/20 || ran < n {
		t.Error("too few: the test shows little")
	}
}
