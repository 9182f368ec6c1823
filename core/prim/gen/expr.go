package gen

import (
	"strconv"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// expr writes an expression of the type, with about size nodes.
func (g *generator) expr(t *typ, size int) {
	g.budget--
	if size <= 1 || g.budget <= 0 {
		g.small(t)
		return
	}
	size--
	half := size / 2
	if g.o.Effects && g.draw(5) == 0 {
		g.acting(t, size)
		return
	}
	switch g.draw(23) {
	case 0, 1:
		g.small(t)
	case 2, 3:
		g.w(`{"if":{"cond":`, g.arg(boolean, half), `,"then":`, g.sub(t, half), `,"else":`, g.sub(t, half), `}}`)
	case 4, 5:
		g.let(t, half)
	case 6:
		// A function of two parameters applied to both.
		a, b := g.anyType(1), g.anyType(1)
		x, y, part := g.fresh(), g.fresh(), size/3
		g.w(`{"app":[`, g.lam(x, a, g.lam(y, b, g.sub(t, part))), `,`, g.arg(a, part), ",", g.arg(b, part), `]}`)
	case 7:
		// Parts of a pair: fst or snd of one that is made here or elsewhere.
		other := g.anyType(1)
		if g.draw(2) == 0 {
			g.unary("fst", &typ{prim.KindPair, t, other}, size)
		} else {
			g.unary("snd", &typ{prim.KindPair, other, t}, size)
		}
	case 8:
		g.unary("head", &typ{prim.KindList, t, nil}, size)
	case 9, 10:
		g.fold(t, size/3)
	case 11:
		g.unary("eval", &typ{prim.KindQuoted, t, nil}, size)
	case 12:
		// A function from somewhere, applied.
		param := g.anyType(1)
		g.apply(g.arg(&typ{prim.KindFunction, param, t}, half), g.arg(param, half))
	case 13:
		g.special(t, size)
	case 14:
		g.part(t, half)
	case 15:
		g.tried(t, half)
	case 16:
		g.match(t, half)
	case 17:
		g.library(t, half)
	case 18:
		g.letrec(t, half)
	default:
		g.strict(t, size)
	}
}

// small writes a variable or a value of the type.
func (g *generator) small(t *typ) {
	if name, ok := g.lookup(t); ok && g.draw(4) > 0 {
		g.variable(name)
		return
	}
	g.value(t, 2)
}

// value writes an expression for a type that only builds.
func (g *generator) value(t *typ, size int) {
	g.budget--
	switch t.kind {
	case prim.KindInt:
		g.w(g.integer())
	case prim.KindDec:
		g.w(`{"dec":"`, []string{"0", "1.50", "-2.5", "0.001", "10", "123456789012345678901234567890.5", "1e3", "-0.05"}[g.draw(8)], `"}`)
	case prim.KindBool:
		g.w([]string{"true", "false"}[g.draw(2)])
	case prim.KindString:
		g.w([]string{`"a"`, `"b"`, `""`, `"héllo😀"`, `"\"\\\n"`, `"42"`, `"true"`, `"half_even"`, `"a,b"`, `"[1,{\"a\":2.50}]"`}[g.draw(10)])
	case prim.KindList:
		n := 0
		if g.budget > 0 {
			n = g.draw(5)
		}
		if n == 0 && g.draw(2) == 0 {
			g.w(`{"nil":true}`)
			return
		}
		g.w("[")
		g.list(n, func(int) { g.small(t.a) })
		g.w("]")
	case prim.KindPair:
		g.w(`{"pair":[`)
		g.value(t.a, size-1)
		g.w(",")
		g.value(t.b, size-1)
		g.w("]}")
	case prim.KindRecord:
		g.record(size)
	case prim.KindFunction:
		g.lambda(t.a, t.b, size, false)
	case prim.KindQuoted:
		g.w(`{"quote":`, g.sub(t.a, size), "}")
	default:
		g.w("null")
	}
}

func (g *generator) record(size int) {
	g.w(`{"record":{`)
	g.list(g.draw(4), func(i int) {
		g.w(name([]string{"a", "b.c", "pair"}[i]), ":", g.arg(g.anyType(1), size-1))
	})
	g.w("}}")
}

func (g *generator) integer() string {
	switch g.draw(10) {
	case 0:
		return borders[g.draw(len(borders))]
	case 1, 2:
		return "0"
	case 3:
		return "-" + strconv.Itoa(1+g.draw(100))
	}
	return strconv.Itoa(g.draw(20))
}

func (g *generator) unary(op string, t *typ, size int) {
	g.w(`{"`, op, `":`, g.arg(t, size), "}")
}

// apply writes an application, in one of its two spellings.
func (g *generator) apply(f, a func()) {
	if g.draw(3) == 0 {
		g.w(`{"app":[`, f, ",", a, "]}")
		return
	}
	g.w(`{"app":{"func":`, f, `,"arg":`, a, "}}")
}

// let writes a function applied at once; its body is in the same position.
func (g *generator) let(t *typ, size int) {
	bound := g.anyType(2)
	tail := g.tail
	if g.draw(3) == 0 {
		g.named(t, bound, size)
		return
	}
	g.apply(func() { g.lambda(bound, t, size, tail) }, g.arg(bound, size))
}

// fold writes a fold that gives the type, mostly with a function that takes
// its pair apart.
func (g *generator) fold(t *typ, size int) {
	item := g.anyType(1)
	pair := &typ{prim.KindPair, t, item}
	g.w(`{"fold":[`)
	if g.draw(5) == 0 {
		g.operand(&typ{prim.KindFunction, pair, t}, size)
	} else {
		p := g.fresh()
		restore := g.at(false)
		g.w(g.lam(p, pair, func() {
			if g.draw(2) > 0 {
				g.expr(t, size)
				return
			}
			// The parts are bound under names of their own.
			acc, it := g.fresh(), g.fresh()
			body := g.sub(t, size)
			if acc != p {
				body = func() {
					g.w(`{"app":{"func":`, g.lam(it, item, g.sub(t, size)), `,"arg":{"snd":`, g.ref(p), `}}}`)
				}
			}
			g.w(`{"app":{"func":`, g.lam(acc, t, body), `,"arg":{"fst":`, g.ref(p), `}}}`)
		}))
		restore()
	}
	g.w(",", g.arg(t, size), ",", g.arg(&typ{prim.KindList, item, nil}, size), "]}")
}

// strict writes a row of the table whose result fits, or a value.
func (g *generator) strict(t *typ, size int) {
	var fit []term.ID
	for i := range prim.Table {
		r := &prim.Table[i]
		operands := r.Shape == prim.UnaryOrArray || r.Shape == prim.Unary || r.Shape == prim.Array || r.Shape == prim.Keyed || r.Shape == prim.KeyedOrArray
		if operands && (r.Eval != nil || r.Analysis != nil || r.Name == "and" || r.Name == "or") && r.Result&t.kind != 0 && r.Result&prim.KindAny != prim.KindAny {
			fit = append(fit, term.ID(i))
		}
	}
	if len(fit) == 0 {
		g.small(t)
		return
	}
	r := prim.Get(fit[g.draw(len(fit))])
	params := r.Params
	if r.Min > 0 {
		params = params[:r.Min+g.draw(len(params)-r.Min+1)]
	}
	types := make([]*typ, len(params))
	for i, p := range params {
		types[i] = g.ofKinds(p.Kinds)
	}
	small := false
	// What the kinds don't say: the parts of what is taken apart or built.
	switch r.Name {
	case "cons":
		types[0], types[1] = t.a, t
	case "tail":
		types[0] = t
	case "pair":
		types[0], types[1] = t.a, t.b
	case "push", "set_nth":
		types[0], types[len(types)-1] = t, t.a
	case "slice":
		types[0] = t
	case "from_codepoints":
		types[0] = &typ{prim.KindList, integer, nil}
	case "to_base", "from_base", "pad_left", "pad_right", "repeat_text", "to_json_indent", "shift", "sqrt", "format":
		// Small ones, mostly.
		small = g.draw(8) > 0
	case "range":
		// Short ones.
		from := g.draw(10)
		g.w(`{"range":[`, strconv.Itoa(from), ",", strconv.Itoa(from+g.draw(50)-5), "]}")
		return
	}
	share := size
	if len(types) > 0 {
		share = size / len(types)
	}
	keyed := r.Shape == prim.Keyed || r.Shape == prim.KeyedOrArray && g.draw(4) > 0
	g.w(`{"`, r.Name, `":`)
	switch {
	case r.Shape == prim.Unary:
		if of := written[r.Group+" "+params[0].Name]; len(of) > 0 && g.draw(4) > 0 {
			g.w(of[g.draw(len(of))])
			break
		}
		g.operand(types[0], share)
	case keyed:
		g.w("{")
		g.list(len(types), func(i int) { g.w(name(r.Params[i].Name), ":", g.arg(types[i], share)) })
		g.w("}")
	default:
		g.w("[")
		g.list(len(types), func(i int) {
			if small && i == 1 {
				g.w(strconv.Itoa(g.draw(40)))
			} else if of := written[r.Group+" "+params[i].Name]; len(of) > 0 && g.draw(4) > 0 {
				g.w(of[g.draw(len(of))])
			} else {
				g.operand(types[i], share)
			}
		})
		g.w("]")
	}
	g.w("}")
}

// written is what operands mostly are of which few strings mean something, by the row's
// group and the parameter.
var written = func() map[string][]string {
	times := []string{`"2026-11-22"`, `"2024-02-29T23:59:59.5+05:30"`, `"1999-12-31 12:00"`, `{"record":{"year":2026,"month":1,"day":31}}`, `"0000-01-01"`, `"2026-02-30"`}
	return map[string][]string{
		"regex s":       {`"a1 b22=c"`, `"2026-11-22"`, `"ab,añb é\n"`, `""`},
		"regex pattern": {`"[0-9]+"`, `"(\\w)(\\d)?"`, `"(?P<a>\\w)=?(?P<k>.)"`, `"(a|b)*"`, `"^.*$"`, `"(?i)A"`, `"(?:a?){3}a{3}"`, `"a"`, `"("`},
		"regex new":     {`"<$0>"`, `"$1$$"`, `"${a}"`, `""`},
		"dates t":       times, "dates a": times, "dates b": times, "dates s": {`"2026-11-22"`, `"22.11.2026 9:05"`, `"2026-11-22T10:00:00Z"`},
		"dates layout": {`"YYYY-MM-DD"`, `"DD.MM.YYYY H:mm"`, `"dddd, D MMMM YYYY [at] hh:mm A SSS Z"`, `"%d/%m/%y"`, `"now"`},
		"dates offset": {`"+02:00"`, `"Z"`, `"CET"`}, "dates unit": {`"days"`, `"month"`, `"seconds"`, `"x"`},
		"dates amount":      {`{"record":{"days":-3,"months":13}}`, `86400`, `{"dec":"0.25"}`, `{"record":{"hours":30,"seconds":{"dec":"1.5"}}}`, `{"record":{"a":1}}`},
		"formats s":         {`"a,b\n1,2\n\"x,\",\n"`, `"https://u:p@h.de:80/a?q=1&k=%20#f"`, `"6162"`, `"YWI="`, `"a%20b"`, `"a;b"`},
		"formats separator": {`";"`, `","`}, "formats columns": {`["a","k"]`, `[]`}, "formats records": {`[{"record":{"a":1,"b":"x,\""}},{"record":{"k":null}}]`},
		"formats record": {`{"record":{"scheme":"https","host":"h","path":"/a b","query":{"record":{"k":1}}}}`, `{"record":{"host":"h","port":80}}`},
	}
}()

// special writes what depends on where the program runs: effects, continue,
// self and code_of.
func (g *generator) special(t *typ, size int) {
	switch {
	case g.o.Effects && g.draw(2) == 0:
		g.ask(size)
	case g.tail && g.o.Tool && g.draw(2) == 0:
		g.w(`{"continue":{"input":`, g.arg(g.anyType(1), size), `}}`)
	case g.draw(6) == 0:
		g.w(`{"self":true}`)
	case t.kind == prim.KindQuoted && g.draw(3) == 0:
		g.w(`{"code_of":"self"}`)
	case t.kind == prim.KindQuoted && g.draw(3) == 0:
		g.w(`{"code_of":{"concat":["se",`, g.arg(str, 1), `]}}`)
	default:
		g.strict(t, size)
	}
}

// recursive writes a tool of a small number that calls itself with smaller
// ones: λn. if n ≤ 0 then … else … with one or two calls of self in it.
func (g *generator) recursive(size int) {
	t := g.anyType(1)
	n := g.fresh()
	g.tail = true
	g.w(g.lam(n, integer, func() {
		call := func() {
			g.w(`{"app":{"func":{"self":true},"arg":{"sub":[`, g.ref(n), `,`, strconv.Itoa(1+g.draw(2)), `]}}}`)
		}
		g.w(`{"if":{"cond":{"lte":[`, g.ref(n), `,0]},"then":`, g.sub(t, size/3), `,"else":`)
		g.calling(t, size, call)
		g.w(`}}`)
	}))
}
