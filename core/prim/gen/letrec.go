package gen

import (
	"strconv"

	"github.com/mcp-pif/mcp-pif/core/prim"
)

// A looper is a function that mostly calls itself, or one beside it, with smaller
// numbers: of a number, of a number and something more, or of a pair of both.
type looper struct {
	shape  int
	second *typ // nil: a number alone
	result *typ
}

func (l *looper) typ() *typ {
	switch l.shape {
	case 1:
		return &typ{prim.KindFunction, integer, &typ{prim.KindFunction, l.second, l.result}}
	case 2:
		return &typ{prim.KindFunction, &typ{prim.KindPair, integer, l.second}, l.result}
	}
	return &typ{prim.KindFunction, integer, l.result}
}

// letrec writes functions that see one another, one or two, and what uses them.
func (g *generator) letrec(t *typ, size int) {
	defer g.at(g.tail)()
	tail := g.tail
	l := &looper{shape: g.draw(3), second: g.anyType(1), result: t}
	if g.draw(4) == 0 {
		l.result = g.anyType(1)
	}
	funcs := []string{"f", "add"}[:1+g.draw(2)]
	key := "let"
	if g.draw(2) == 0 {
		key = "letrec"
	}
	seen := g.env
	g.w(`{"`, key, `":[`)
	g.list(len(funcs), func(i int) {
		g.w("[", name(funcs[i]), ",")
		// What is written in the bodies may use them as well, or not.
		if i == 0 && g.draw(4) == 0 {
			for _, f := range funcs {
				seen = append(seen[:len(seen):len(seen)], variable{f, l.typ()})
			}
		}
		outer := g.env
		g.env = seen
		g.looping(l, funcs[(i+g.draw(2))%len(funcs)], size/len(funcs))
		g.env = outer
		g.w("]")
	})
	g.w(`],"in":`)
	outer := g.env
	for _, f := range funcs {
		g.env = append(g.env[:len(g.env):len(g.env)], variable{f, l.typ()})
	}
	if g.tail = tail; l.result.equal(t) && g.draw(3) > 0 {
		g.tail = false
		g.loop(l, funcs[0], func() { g.w(strconv.Itoa(g.draw(9))) }, size/2)
	} else {
		g.expr(t, size/2)
	}
	g.env = outer
	g.w("}")
}

// looping writes a function that calls the one of a name.
func (g *generator) looping(l *looper, callee string, size int) {
	defer g.at(false)()
	n, y := g.fresh(), g.fresh()
	number, of := g.ref(n), integer
	body := func() {
		g.w(`{"if":{"cond":{"or":[{"lte":[`, number, `,0]},{"gt":[`, number, `,8]}]},"then":`, g.sub(l.result, size/3), `,"else":`)
		g.calling(l.result, size, func() {
			g.loop(l, callee, func() { g.w(`{"sub":[`, number, `,`, strconv.Itoa(1+g.draw(2)), `]}`) }, size/4)
		})
		g.w("}}")
	}
	switch l.shape {
	case 1:
		if y == n {
			y = "y2"
		}
		body = g.lam(y, l.second, body)
	case 2:
		number = func() { g.w(`{"fst":`, g.ref(n), "}") }
		of = &typ{prim.KindPair, integer, l.second}
	}
	g.w(g.lam(n, of, body))
}

// loop writes a call of such a function with a number.
func (g *generator) loop(l *looper, callee string, number func(), size int) {
	g.w(`{"app":[`, g.ref(callee), ",")
	switch l.shape {
	case 0:
		number()
	case 1:
		g.w(number, ",", g.arg(l.second, size))
	case 2:
		g.w(`{"pair":[`, number, ",", g.arg(l.second, size), "]}")
	}
	g.w("]}")
}

// calling writes what a function gives that calls itself: once or twice, in tail
// position or with something left to do.
func (g *generator) calling(t *typ, size int, call func()) {
	defer g.at(g.tail)()
	r := g.fresh()
	switch g.draw(4) {
	case 0: // in tail position
		call()
	case 1: // its result under a name
		g.w(`{"app":{"func":`, g.lam(r, t, g.sub(t, size/2)), `,"arg":`, call, `}}`)
	case 2: // in a list of two calls, folded
		g.tail = false
		g.w(`{"fold":[`)
		g.lambda(&typ{prim.KindPair, t, t}, t, size/2, false)
		g.w(",", call, ",[", call, "]]}")
	default: // as an operand where the type allows it
		if t.kind != prim.KindInt {
			call()
			return
		}
		g.tail = false
		g.w(`{"add":[`, call, ",")
		if g.draw(2) == 0 {
			call()
		} else {
			g.operand(integer, size/2)
		}
		g.w("]}")
	}
}
