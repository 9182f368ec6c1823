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
			g.w(`{"put":[`, g.arg(record, size/2), `,"k",`, g.arg(t, size/2), `]},"k"]}`)
			return
		}
		g.w(g.arg(record, size/2), `,"a",`, g.arg(t, size/2), `]}`)
	case 2, 3:
		g.indexed(t, size/2)
	case 4:
		g.unary("parse_json", str, size)
	default:
		g.unary([]string{"raise", "no_match"}[g.draw(2)], g.anyType(1), size)
	}
}

// indexed writes an item, a character, a field or a slice of the type.
func (g *generator) indexed(t *typ, size int) {
	sequence := t.kind&(prim.KindList|prim.KindString) != 0
	switch n := g.draw(6); {
	case n < 2:
		g.w(`{"nth":[`, g.arg(&typ{prim.KindList, t, nil}, size))
	case n == 2 && sequence:
		g.w(`{"at":[`, g.arg(t, size))
		for range 2 {
			g.w(",", g.arg([]*typ{integer, {kind: prim.KindUnit}}[g.draw(2)], 2))
		}
		g.w("]}")
		return
	case n == 3 && t.kind == prim.KindString:
		g.w(`{"at":[`, g.arg(t, size))
	case n == 4:
		g.w(`{"at":[{"put":[`, g.arg(record, size), `,"k",`, g.arg(t, size), `]},"k"]}`)
		return
	default:
		g.w(`{"at":[`, g.arg(&typ{prim.KindList, t, nil}, size))
	}
	g.w(",", g.arg(integer, 2), "]}")
}

// tried writes what may fail with something in its place.
func (g *generator) tried(t *typ, size int) {
	defer g.at(false)()
	switch g.draw(3) {
	case 0:
		g.w(`{"get":[{"try":`, g.sub(t, size), `},"ok",`, g.sub(t, size/3), `]}`)
	case 1:
		g.w(`{"get":[{"get":[{"try":{"raise":`, g.sub(t, size), `}},"error"]},"value"]}`)
	default:
		g.w(`{"match":{"try":`, g.sub(t, size), `},"with":[[{"record":{"ok":{"var":"x"}}},`)
		g.w(g.binding("x", t, g.sub(t, size/3)), `],["_",`, g.sub(t, size/3), `]]}`)
	}
}

// match writes a match of a value on its shape.
func (g *generator) match(t *typ, size int) {
	if g.draw(2) == 0 {
		then := g.sub(t, size/3)
		g.w(`{"cond":[[`, g.arg(boolean, size/2), ",", then, `],[`, g.arg(boolean, size/3), ",", then, `]],"else":`, then, "}")
		return
	}
	subject := g.anyType(2)
	g.w(`{"match":`, g.arg(subject, size/2), `,"with":[`)
	for range g.draw(3) {
		g.w("[")
		env := len(g.env)
		g.pattern(subject, 2, map[string]bool{})
		g.w(",", g.sub(t, size/3), "],")
		g.env = g.env[:env]
	}
	g.w(`["_",`, g.sub(t, size/3), `]]}`)
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
		g.variable(name)
		g.env = append(g.env, variable{name, t})
		return
	}
	switch t.kind {
	case prim.KindList:
		g.w("[")
		n := g.draw(3)
		g.list(n, func(int) { g.pattern(t.a, deep-1, seen) })
		if g.draw(2) == 0 {
			if n > 0 {
				g.w(",")
			}
			g.w(`{"rest":`, func() { g.pattern(t, deep-1, seen) }, "}")
		}
		g.w("]")
	case prim.KindPair:
		parts := []*typ{t.a, t.b}
		g.w(`{"pair":[`)
		g.list(2, func(i int) { g.pattern(parts[i], deep-1, seen) })
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
	x := g.fresh()
	g.w(`{"let":[[`, name(x), ",", g.arg(bound, size), "]", g.binding(x, bound, func() {
		if g.draw(2) > 0 {
			g.w(`],"in":`, g.sub(t, size))
			return
		}
		y, second := g.fresh(), g.anyType(1)
		if y == x {
			y += "2" // functions beside one another have names of their own
		}
		g.w(",[", name(y), ",", g.arg(second, size/2), `]],"in":`, g.binding(y, second, g.sub(t, size/2)))
	}), "}")
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
	g.list(len(params), func(i int) {
		switch p := params[i]; {
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
	})
	if r.Shape == prim.Array {
		g.w("]")
	}
	g.w("}")
}

// Kept gives a function of a list of integers and a list. It tries operations on what is
// made of the list, most of them on an operand that doesn't fit, and gives the list.
func Kept(draw Draw) (code, input string) {
	ints := &typ{prim.KindList, integer, nil}
	g := &generator{draw: draw, o: Options{Records: true}, budget: 200, env: []variable{{"xs", ints}}}
	made := func() {
		switch g.draw(6) {
		case 0:
			g.w(`{"fold":[{"lam":"p","body":{"put":[{"fst":`, g.ref("p"), `},{"to_text":{"snd":`, g.ref("p"), `}},`, g.integer(), `]}},{"record":{}},`, g.ref("xs"), `]}`)
		case 1:
			g.w(`{"map":[`, g.lam("x", integer, g.sub(g.anyType(1), 3)), `,`, g.ref("xs"), `]}`)
		case 2:
			g.expr(g.anyType(2), 6)
		default:
			item := []string{`{"snd":{"var":"p"}}`, `{"sub":[0,{"snd":{"var":"p"}}]}`}[g.draw(2)]
			g.w(`{"fold":[{"lam":"p","body":{"cons":[`, item, `,{"fst":`, g.ref("p"), `}]}},[],`, g.ref("xs"), `]}`)
		}
	}
	g.w(`{"lam":"xs","body":[`)
	for range 1 + g.draw(3) {
		op := []string{"concat", "concat", "cons", "pair", "eq", "add", "put", "join", "append", "get", "push"}[g.draw(11)]
		g.w(`{"try":{"`, op, `":[`)
		n := 2
		if op == "put" {
			n = 3
		}
		g.list(n, func(int) {
			if g.draw(2) == 0 {
				made()
			} else {
				g.small(g.anyType(1))
			}
		})
		g.w(`]}},`)
	}
	g.w(g.ref("xs"), `]}`)
	in := &generator{draw: draw, budget: 40}
	in.value(ints, 3)
	return g.out.String(), in.out.String()
}
