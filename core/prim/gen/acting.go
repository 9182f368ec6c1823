package gen

import (
	"strings"

	"github.com/mcp-pif/mcp-pif/core/prim"
)

// Tools is the code of the tools that programs look up and call, by name.
var Tools = map[string]string{
	"other":  `{"lam":"x","body":{"if":{"cond":{"lt":[{"var":"x"},1]},"then":0,"else":{"add":[2,{"app":[{"self":true},{"sub":[{"var":"x"},1]}]}]}}}}`,
	"echo":   `{"lam":"x","body":{"var":"x"}}`,
	"asks":   `{"lam":"x","body":{"pair":[{"fs.read":{"in":"./own","path":{"var":"x"}}},{"eval":{"quote":{"var":"x"}},"with":["fs.read"]}]}}`,
	"both":   `{"lam":"x","body":{"par":[{"fs.read":1},{"call":{"tool":"asks","input":{"var":"x"}}}]}}`,
	"evals":  `{"lam":"q","body":{"eval":{"var":"q"},"with":["kv"]}}`,
	"makes":  `{"app":[{"lam":"k","body":{"lam":"x","body":{"pair":[{"var":"k"},{"var":"x"}]}}},{"kv.put":1}]}`,
	"open":   `{"pair":[{"var":"x"},1]}`,
	"value":  `[1,2]`,
	"two":    `{"lam":"a","body":{"lam":"b","body":{"pair":[{"var":"b"},{"add":[{"var":"a"},1]}]}}}`,
	"three":  `{"lam":"a","body":{"lam":"b","body":{"lam":"c","body":[{"var":"a"},{"head":{"var":"b"}},{"var":"c"}]}}}`,
	"later":  `{"app":[{"lam":"k","body":{"lam":"a","body":{"lam":"b","body":{"pair":[{"var":"a"},{"var":"b"}]}}}},{"kv.put":1}]}`,
	"helps":  `{"let":[["h",{"lam":"a","body":{"lam":"b","body":{"pair":[{"var":"a"},{"var":"b"}]}}}],["k",2]],"in":{"var":"h"}}`,
	"curry":  `{"lam":"x","body":{"lam":"y","body":1}}`,
	"again":  `{"lam":"x","body":{"continue":{"input":{"var":"x"}}}}`,
	"nested": `{"lam":"x","body":{"call":{"tool":"other","input":2}}}`,
	"fails":  `{"lam":"x","body":{"head":[]}}`,
}

var toolNames = []string{"other", "echo", "asks", "both", "evals", "makes", "open", "value", "two", "two", "three", "later", "helps", "curry", "again", "nested", "fails", "none", "self"}

// withs is what stands beside evals.
var withs = []string{`[]`, `["fs.read"]`, `["kv:x"]`, `["fs","kv"]`, `["fs:a","kv.put","call"]`, `["fs","kv","call"]`, `["call:other","call:echo"]`}

// acting writes something of the type that asks, calls, evaluates within
// limits or runs in branches.
func (g *generator) acting(t *typ, size int) {
	defer g.at(false)()
	asks := func(t *typ, size int) func() {
		return func() { g.after(func() { g.ask(size) }, t, size) }
	}
	switch g.draw(11) {
	case 0, 1:
		// What is asked for goes away, the value stays.
		asks(t, size/2)()
	case 2:
		g.after(func() { g.call(size / 2) }, t, size/2)
	case 3:
		g.within(t, size)
	case 4:
		// A function that is made in an eval or outside, used in one or outside.
		made := func() {
			g.w(g.lam(g.fresh(), integer, func() {
				if g.draw(3) == 0 {
					g.w(`{"lam":"_","body":`, asks(t, size/4), `}`)
					return
				}
				asks(t, size/4)()
			}))
		}
		within := func(f func()) {
			if g.draw(3) > 0 {
				f()
				return
			}
			g.w(`{"eval":{"quote":`, f, `}`, g.with, `}`)
		}
		within(func() { g.w(`{"app":[`, func() { within(made) }, ",", g.arg(integer, 2), "]}") })
	case 5:
		// A function under a name, applied inside.
		of := &typ{prim.KindFunction, integer, t}
		g.w(`{"app":[`, g.lam(g.fresh(), of, func() { g.within(t, size/2) }), `,`)
		g.w(g.lam(g.fresh(), integer, asks(t, size/4)), `]}`)
	case 6:
		g.after(func() { g.deferred(size) }, t, size/2)
	case 7, 8:
		if t.kind == prim.KindList {
			g.par(t.a, size)
			return
		}
		g.w(`{"nth":[`, func() { g.par(t, size) }, `,0]}`)
	default:
		g.w(`{"get":[{"try":`, func() { g.acting(t, size/2) }, `},"ok",`, func() { g.acting(t, size/3) }, `]}`)
	}
}

// deferred writes what makes a function in an eval, by itself or by functions
// from outside that act, and applies it later, somewhere else.
func (g *generator) deferred(size int) {
	acts := func(name string) string {
		out := g.out
		g.out = strings.Builder{}
		g.after(func() { g.ask(2) }, integer, 1)
		body := g.out.String()
		g.out = out
		return `{"lam":"` + name + `","body":` + body + `}`
	}
	bind := func(name, value string) { g.w(`{"let":[["`, name, `",`, value, `]],"in":`) }
	outer := g.env
	g.env = nil
	bind("load", acts("p"))
	bind("two", `{"lam":"p","body":`+acts("q")+`}`)
	bind("mk", `{"lam":"u","body":{"lam":"x","body":{"app":[{"var":"load"},{"var":"x"}]}}}`)
	bind("self", `{"let":[["w",{"lam":"h","body":{"lam":"n","body":{"if":{"cond":{"lte":[{"var":"n"},0]},"then":{"app":[{"var":"load"},0]},"else":{"app":[{"var":"h"},{"var":"h"},{"sub":[{"var":"n"},1]}]}}}}}]],"in":{"lam":"u","body":{"app":[{"var":"w"},{"var":"w"}]}}}`)
	made := []string{
		`{"lam":"x","body":{"app":[{"var":"load"},{"var":"x"}]}}`,
		`{"lam":"x","body":{"add":[{"app":[{"var":"load"},{"var":"x"}]},{"app":[{"var":"load"},1]}]}}`,
		`{"app":[{"var":"two"},1]}`,
		`{"app":[{"var":"mk"},1]}`,
		`{"app":[{"var":"self"},1]}`,
		`{"compose":[{"var":"load"},{"lam":"x","body":{"var":"x"}}]}`,
		`{"app":[{"lam":"a","body":{"lam":"b","body":{"app":[{"var":"load"},{"var":"b"}]}}},1]}`,
		`{"app":[{"lam":"f","body":{"lam":"x","body":{"app":[{"var":"f"},{"var":"x"}]}}},` + acts("z") + `]}`,
		`{"lam":"x","body":{"eval":{"quote":{"app":[{"var":"load"},{"var":"x"}]}},"with":["fs","kv"]}}`,
		`{"var":"load"}`,
	}[g.draw(10)]
	wrap := [][2]string{
		{``, ``}, {`{"head":`, `}`}, {`{"fst":`, `}`}, {`{"get":[`, `,"k"]}`}, {`{"get":[`, `,"ok"]}`},
	}
	inner := [][2]string{
		{``, ``}, {`[`, `]`}, {`{"pair":[`, `,1]}`}, {`{"record":{"k":`, `}}`}, {`{"try":`, `}`},
	}
	k := g.draw(len(wrap))
	bind("g", wrap[k][0]+`{"eval":{"quote":`+inner[k][0]+made+inner[k][1]+`}`+g.limits()+`}`+wrap[k][1])
	apply := []string{
		`{"app":[{"var":"g"},2]}`,
		`{"map":[{"var":"g"},[1,2]]}`,
		`{"fold":[{"lam":"p","body":{"app":[{"var":"g"},{"snd":{"var":"p"}}]}},0,[1,2]]}`,
		`{"par":[{"app":[{"var":"g"},1]},{"app":[{"var":"load"},1]},{"app":[{"var":"g"},2]}]}`,
		`{"eval":{"quote":{"app":[{"var":"g"},1]}}` + g.limits() + `}`,
		`{"try":{"head":[{"app":[{"var":"g"},1]},{"head":[]}]}}`,
		`{"try":{"app":[{"lam":"_","body":{"head":[]}},{"app":[{"var":"g"},1]}]}}`,
		`{"app":[{"compose":[{"var":"load"},{"var":"g"}]},1]}`,
		`{"fold":[{"var":"g"},0,[1,2]]}`,
	}[g.draw(9)]
	g.w(`[`, apply, `,{"app":[{"var":"load"},3]}]}}}}}`)
	g.env = outer
}

// Between gives a program and an input, a function of a value and of a function
// that acts, of which each or none evaluates and applies what the other made.
func Between(draw Draw) (code, input string) {
	with := func() string { return `,"with":` + withs[draw(len(withs))] }
	in := func(name, body string) string {
		if draw(2) == 0 {
			return body
		}
		return `{"let":[["` + name + `",{"eval":{"quote":` + body + `}` + with() + `}]],"in":{"var":"` + name + `"}}`
	}
	apply := []string{
		`{"app":[{"var":"f"},{"var":"x"}]}`,
		`{"let":[["k",{"var":"x"}]],"in":{"add":[{"app":[{"var":"f"},{"var":"k"}]},1]}}`,
		`{"head":{"map":[{"var":"f"},[{"var":"x"}]]}}`,
		`{"get":[{"try":{"app":[{"var":"f"},{"var":"x"}]}},"ok",0]}`,
	}[draw(4)]
	input = `{"lam":"x","body":` + in("r", `{"lam":"f","body":`+in("v", apply)+`}`) + `}`
	load := `{"lam":"p","body":{"let":[["q",{"kv.put":{"var":"p"}}]],"in":{"var":"p"}}}`
	code = `{"lam":"i","body":{"let":[["load",` + load + `],["g",` + in("g", `{"app":[{"var":"i"},1]}`) + `],["v",` + in("v", `{"app":[{"var":"g"},{"var":"load"}]}`) + `]],
		"in":[{"var":"v"},{"app":[{"var":"load"},2]},` + in("w", `{"app":[{"var":"i"},3,{"var":"load"}]}`) + `]}}`
	return code, input
}

// after writes a value of the type, evaluated after something else.
func (g *generator) after(first func(), t *typ, size int) {
	g.w(`{"app":[{"lam":"_","body":`, g.sub(t, size), `},`, first, `]}`)
}

// ask writes an effect.
func (g *generator) ask(size int) {
	op := []string{"fs.read", "fs.read", "kv.put"}[g.draw(3)]
	g.w(`{"`, op, `":`)
	switch g.draw(3) {
	case 0:
		g.w(`{"in":"./in","length":`, g.arg(integer, size), "}")
	case 1:
		g.w(`{"path":`, g.arg(str, size), `,"from":1}`)
	default:
		g.operand(g.anyType(1), size)
	}
	g.w("}")
}

// call writes the call of a tool.
func (g *generator) call(size int) {
	g.w(`{"call":{"tool":`)
	if g.draw(4) == 0 {
		g.w(`{"concat":["`, toolNames[g.draw(len(toolNames))], `",`, g.arg(str, 1), `]}`)
	} else {
		g.w(name(toolNames[g.draw(len(toolNames))]))
	}
	switch g.draw(5) {
	case 0, 1:
		g.w(`,"inputs":[`)
		n := 1 + g.draw(3)
		g.list(n, func(int) { g.operand(g.anyType(2), size/n) })
		g.w(`]}}`)
	case 2:
		// By name, perhaps with one too few or too many.
		g.w(`,"input":{"record":{"a":`, g.arg(integer, size/2))
		for _, key := range []string{"b", "c"}[:g.draw(3)] {
			g.w(`,"`, key, `":`, g.arg(g.anyType(2), size/2))
		}
		g.w(`}}}}`)
	case 3:
		around := [][2]string{{`{"pair":[`, `]}`}, {`[`, `]`}}[g.draw(2)]
		g.w(`,"input":`, around[0], g.arg(integer, size/2), ",")
		g.w(g.arg(g.anyType(2), size/2), around[1], `}}`)
	default:
		g.w(`,"input":`, g.arg(g.anyType(2), size), `}}`)
	}
}

func (g *generator) with() { g.w(g.limits()) }

// limits returns what stands beside the code of an eval.
func (g *generator) limits() string {
	if g.draw(5) == 0 {
		return ""
	}
	return `,"with":` + withs[g.draw(len(withs))]
}

// within writes an eval of the type.
func (g *generator) within(t *typ, size int) {
	g.w(`{"eval":`, g.arg(&typ{prim.KindQuoted, t, nil}, size), g.with, `}`)
}

// par writes branches of the type.
func (g *generator) par(t *typ, size int) {
	n := 1 + g.draw(4)
	g.w(`{"par":[`)
	g.list(n, func(int) {
		if g.draw(2) == 0 && g.budget > 0 {
			g.acting(t, size/n)
		} else {
			g.operand(t, size/n)
		}
	})
	g.w(`]}`)
}
