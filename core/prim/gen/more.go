package gen

import (
	"strconv"

	"github.com/mcp-pif/mcp-pif/core/prim"
)

// part writes an expression of the type out of something larger.
func (g *generator) part(t *typ, size int) {
	switch g.draw(6) {
	case 0, 1:
		g.w(`{"get":[`)
		if g.draw(3) > 0 {
			g.w(`{"put":[`)
			g.operand(record, size/2)
			g.w(`,"k",`)
			g.operand(t, size/2)
			g.w(`]},"k"]}`)
			return
		}
		g.operand(record, size/2)
		g.w(`,"a",`)
		g.operand(t, size/2)
		g.w(`]}`)
	case 2, 3:
		g.indexed(t, size/2)
	case 4:
		g.w(`{"parse_json":`)
		g.operand(str, size)
		g.w(`}`)
	default:
		g.unary([]string{"raise", "no_match"}[g.draw(2)], g.anyType(1), size)
	}
}

// indexed writes an item, a character, a field or a slice of the type.
func (g *generator) indexed(t *typ, size int) {
	sequence := t.kind&(prim.KindList|prim.KindString) != 0
	switch n := g.draw(6); {
	case n < 2:
		g.w(`{"nth":[`)
		g.operand(&typ{prim.KindList, t, nil}, size)
	case n == 2 && sequence:
		g.w(`{"at":[`)
		g.operand(t, size)
		for range 2 {
			g.w(",")
			g.operand([]*typ{integer, {kind: prim.KindUnit}}[g.draw(2)], 2)
		}
		g.w("]}")
		return
	case n == 3 && t.kind == prim.KindString:
		g.w(`{"at":[`)
		g.operand(t, size)
	case n == 4:
		g.w(`{"at":[{"put":[`)
		g.operand(record, size)
		g.w(`,"k",`)
		g.operand(t, size)
		g.w(`]},"k"]}`)
		return
	default:
		g.w(`{"at":[`)
		g.operand(&typ{prim.KindList, t, nil}, size)
	}
	g.w(",")
	g.operand(integer, 2)
	g.w("]}")
}

// tried writes what may fail with something in its place.
func (g *generator) tried(t *typ, size int) {
	tail := g.tail
	g.tail = false
	switch g.draw(3) {
	case 0:
		g.w(`{"get":[{"try":`)
		g.expr(t, size)
		g.w(`},"ok",`)
		g.expr(t, size/3)
		g.w(`]}`)
	case 1:
		g.w(`{"get":[{"get":[{"try":{"raise":`)
		g.expr(t, size)
		g.w(`}},"error"]},"value"]}`)
	default:
		g.w(`{"match":{"try":`)
		g.expr(t, size)
		g.w(`},"with":[[{"record":{"ok":{"var":"x"}}},`)
		g.bind("x", t, func() { g.expr(t, size/3) })
		g.w(`],["_",`)
		g.expr(t, size/3)
		g.w(`]]}`)
	}
	g.tail = tail
}

// match writes a match of a value on its shape.
func (g *generator) match(t *typ, size int) {
	if g.draw(2) == 0 {
		g.w(`{"cond":[[`)
		g.operand(boolean, size/2)
		g.w(",")
		g.expr(t, size/3)
		g.w(`],[`)
		g.operand(boolean, size/3)
		g.w(",")
		g.expr(t, size/3)
		g.w(`]],"else":`)
		g.expr(t, size/3)
		g.w("}")
		return
	}
	subject := g.anyType(2)
	g.w(`{"match":`)
	g.operand(subject, size/2)
	g.w(`,"with":[`)
	for range g.draw(3) {
		g.w("[")
		env := len(g.env)
		g.pattern(subject, 2, map[string]bool{})
		g.w(",")
		g.expr(t, size/3)
		g.env = g.env[:env]
		g.w("],")
	}
	g.w(`["_",`)
	g.expr(t, size/3)
	g.w(`]]}`)
}

// pattern writes a pattern that values of the type may fit, and leaves its
// variables in scope.
func (g *generator) pattern(t *typ, deep int, seen map[string]bool) {
	if deep == 0 || g.draw(3) == 0 {
		name := g.fresh()
		if seen[name] {
			g.w(`"_"`)
			return
		}
		seen[name] = true
		g.w(`{"var":`)
		g.name(name)
		g.w("}")
		g.env = append(g.env, variable{name, t})
		return
	}
	switch t.kind {
	case prim.KindList:
		g.w("[")
		n := g.draw(3)
		for i := range n {
			if i > 0 {
				g.w(",")
			}
			g.pattern(t.a, deep-1, seen)
		}
		if g.draw(2) == 0 {
			if n > 0 {
				g.w(",")
			}
			g.w(`{"rest":`)
			g.pattern(t, deep-1, seen)
			g.w("}")
		}
		g.w("]")
	case prim.KindPair:
		g.w(`{"pair":[`)
		g.pattern(t.a, deep-1, seen)
		g.w(",")
		g.pattern(t.b, deep-1, seen)
		g.w("]}")
	case prim.KindRecord:
		g.w(`{"record":{"a":"_"}}`)
	case prim.KindInt, prim.KindBool, prim.KindString, prim.KindDec, prim.KindUnit:
		g.value(t, 1)
	case prim.KindQuoted:
		g.w(`{"quote":`, []string{"1", `{"var":"_"}`, `{"add":[1,{"var":"_"}]}`, `{"lam":"x","body":{"var":"_"}}`, `[{"var":"_"},2]`}[g.draw(5)], `}`)
	default:
		g.w(`"_"`)
	}
}

// named writes a let with a binding or two.
func (g *generator) named(t, bound *typ, size int) {
	x, tail := g.fresh(), g.tail
	g.w(`{"let":[[`)
	g.name(x)
	g.w(",")
	g.operand(bound, size)
	g.w("]")
	g.bind(x, bound, func() {
		if g.draw(2) == 0 {
			y, second := g.fresh(), g.anyType(1)
			if y == x {
				y += "2" // functions beside one another have names of their own
			}
			g.w(",[")
			g.name(y)
			g.w(",")
			g.operand(second, size/2)
			g.w(`]],"in":`)
			g.tail = tail
			g.bind(y, second, func() { g.expr(t, size/2) })
			return
		}
		g.w(`],"in":`)
		g.tail = tail
		g.expr(t, size)
	})
	g.tail = tail
	g.w("}")
}

// library writes the use of a row of the prelude, with operands of the kinds
// that the row declares; those that take functions mostly get fitting ones.
func (g *generator) library(t *typ, size int) {
	var fit []*prim.Row
	for i := range prim.Table {
		if r := &prim.Table[i]; r.Body != "" && r.Result&t.kind != 0 {
			fit = append(fit, r)
		}
	}
	if len(fit) == 0 {
		g.strict(t, size)
		return
	}
	r := fit[g.draw(len(fit))]
	item := g.anyType(1)
	g.w(`{"`, r.Name, `":`)
	if r.Shape == prim.Array {
		g.w("[")
	}
	params := r.Params
	if r.Min > 0 {
		params = params[:r.Min+g.draw(len(params)-r.Min+1)]
	}
	for i, p := range params {
		if i > 0 {
			g.w(",")
		}
		switch {
		case p.Name == "path":
			g.w([]string{`["a"]`, `["a",0]`, `[1]`, `["pair","a"]`, `[]`, `["b.c","k"]`}[g.draw(6)])
		case p.Name == "columns":
			g.w([]string{`["a"]`, `["a","pair"]`, `[]`}[g.draw(3)])
		case p.Name == "records":
			g.operand(&typ{prim.KindList, record, nil}, size/2)
		case p.Name == "rows":
			g.operand(&typ{prim.KindList, &typ{prim.KindList, item, nil}, nil}, size/2)
		case p.Kinds == prim.KindFunction && r.Passes == prim.PassesPair:
			g.operand(&typ{prim.KindFunction, &typ{prim.KindPair, item, item}, item}, size/2)
		case p.Kinds == prim.KindFunction && (r.Name == "zip_with" || r.Name == "filter_entries"):
			g.operand(&typ{prim.KindFunction, str, &typ{prim.KindFunction, item, boolean}}, size/2)
		case p.Kinds == prim.KindFunction:
			result := boolean
			if r.Name == "map" && t.a != nil {
				result = t.a
			} else if r.Result == prim.KindAny {
				result = t
			}
			g.operand(&typ{prim.KindFunction, item, result}, size/2)
		case p.Kinds&prim.KindAny == prim.KindAny:
			g.operand(item, size/2)
		case p.Kinds&prim.KindList != 0 && t.kind == prim.KindList && r.Name != "map":
			g.operand(t, size/2)
		case p.Kinds&prim.KindList != 0:
			g.operand(&typ{prim.KindList, item, nil}, size/2)
		case p.Kinds == prim.KindInt:
			g.w(strconv.Itoa(g.draw(5)))
		default:
			g.operand(g.ofKinds(p.Kinds), size/2)
		}
	}
	if r.Shape == prim.Array {
		g.w("]")
	}
	g.w("}")
}
