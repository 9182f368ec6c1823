// Package gen makes random programs for tests, from the table of package prim.
//
// A program is mostly well typed, so that runs get far: an expression of a
// wanted type is a literal, a variable of that type in scope, a form around
// parts of fitting types, or any strict row of the table whose result fits, with
// operands of the kinds the row declares. So a new row is in the generated
// programs from the day it is in the table. On purpose some operands are of the
// wrong type, some variables unbound, some divisors 0 and some lists empty: how
// programs fail is half of what they mean.
//
// Choices come from a function, so that a fuzzer or rapid can own them. Programs
// end soon for most choices, not for all: run them with budgets.
package gen

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// Draw gives a number from 0 up to, not including, n.
type Draw func(n int) int

// Options say what may be in a program.
type Options struct {
	// Wrong is how many of a thousand operands are of a type that doesn't fit,
	// or an unbound variable.
	Wrong int
	// Effects lets programs act: ask for fs.read and kv.put, call [Tools],
	// evaluate code within limits, and do so in branches of par.
	Effects bool
	// Records lets programs have record literals.
	Records bool
	// Tool makes self, continue (in tail position) and code_of "self" legal.
	Tool bool
}

// Bytes is a Draw that takes its choices from data, and 0 after its end.
func Bytes(data []byte) Draw {
	return func(n int) int {
		if n <= 1 || len(data) == 0 {
			return 0
		}
		c := int(data[0])
		data = data[1:]
		if n > 256 && len(data) > 0 {
			c = c<<8 | int(data[0])
			data = data[1:]
		}
		return c % n
	}
}

// Term gives a closed term of about size nodes as JSON.
func Term(draw Draw, size int, o Options) string {
	g := &generator{draw: draw, o: o, budget: size * 4}
	g.expr(g.anyType(2), size)
	return g.out.String()
}

// Function gives a function of one parameter and an input that mostly fits it.
// With Options.Tool it is the code of a tool, which may call itself; most of
// those calls come to an end.
func Function(draw Draw, size int, o Options) (code, input string) {
	g := &generator{draw: draw, o: o, budget: size * 4}
	if o.Tool && draw(3) > 0 {
		g.recursive(size)
		return g.out.String(), strconv.Itoa(draw(9))
	}
	param := g.anyType(2)
	if param.kind == prim.KindFunction {
		param = integer
	}
	g.lambda(param, g.anyType(2), size, o.Tool)
	in := &generator{draw: draw, budget: 40}
	in.value(param, 3)
	return g.out.String(), in.out.String()
}

// A typ is what an expression is wanted to give. Lists and quoted code have
// their items' type in a, pairs both parts', functions parameter and result.
type typ struct {
	kind prim.Kinds
	a, b *typ
}

var (
	integer = &typ{kind: prim.KindInt}
	boolean = &typ{kind: prim.KindBool}
	str     = &typ{kind: prim.KindString}
	unit    = &typ{kind: prim.KindUnit}
	record  = &typ{kind: prim.KindRecord}
	dec     = &typ{kind: prim.KindDec}
)

func (t *typ) equal(u *typ) bool {
	if t == nil || u == nil {
		return t == u
	}
	return t.kind == u.kind && t.a.equal(u.a) && t.b.equal(u.b)
}

type variable struct {
	name string
	typ  *typ
}

type generator struct {
	draw Draw
	o    Options
	out  strings.Builder
	env  []variable
	// budget bounds the nodes of the whole, whatever the choices.
	budget int
	// tail is set where continue may stand.
	tail bool
}

func (g *generator) anyType(deep int) *typ {
	n := 11
	if deep == 0 {
		n = 7
	}
	switch g.draw(n) {
	case 0, 1, 2:
		return integer
	case 3:
		return boolean
	case 4:
		return str
	case 5:
		if g.o.Records && g.draw(2) == 0 {
			return record
		}
		return unit
	case 6:
		return dec
	case 7:
		return &typ{prim.KindList, g.anyType(deep - 1), nil}
	case 8:
		return &typ{prim.KindPair, g.anyType(deep - 1), g.anyType(deep - 1)}
	case 9:
		return &typ{prim.KindFunction, g.anyType(deep - 1), g.anyType(deep - 1)}
	default:
		return &typ{prim.KindQuoted, g.anyType(deep - 1), nil}
	}
}

// ofKinds is a type of one of the kinds.
func (g *generator) ofKinds(k prim.Kinds) *typ {
	if k&prim.KindAny == prim.KindAny {
		return g.anyType(1)
	}
	for range 8 {
		if t := g.anyType(1); t.kind&k != 0 {
			return t
		}
	}
	switch {
	case k&prim.KindInt != 0:
		return integer
	case k&prim.KindDec != 0:
		return dec
	case k&prim.KindBool != 0:
		return boolean
	case k&prim.KindString != 0:
		return str
	case k&prim.KindList != 0:
		return &typ{prim.KindList, integer, nil}
	case k&prim.KindPair != 0:
		return &typ{prim.KindPair, integer, integer}
	case k&prim.KindRecord != 0:
		return record
	case k&prim.KindFunction != 0:
		return &typ{prim.KindFunction, integer, integer}
	case k&prim.KindQuoted != 0:
		return &typ{prim.KindQuoted, integer, nil}
	}
	return unit
}

// w writes texts, names, and what functions write, one after the other.
func (g *generator) w(parts ...any) {
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			g.out.WriteString(p)
		case name:
			q, _ := json.Marshal(p)
			g.out.Write(q)
		case func():
			p()
		default:
			panic(fmt.Sprintf("%T is no part of a program", p))
		}
	}
}

// A name is written as JSON.
type name string

// list writes n items with commas between them.
func (g *generator) list(n int, item func(i int)) {
	for i := range n {
		if i > 0 {
			g.w(",")
		}
		item(i)
	}
}

// at sets whether continue may stand, until restore.
func (g *generator) at(tail bool) (restore func()) {
	was := g.tail
	g.tail = tail
	return func() { g.tail = was }
}

// sub and arg are expr and operand as a part of [generator.w].
func (g *generator) sub(t *typ, size int) func() { return func() { g.expr(t, size) } }
func (g *generator) arg(t *typ, size int) func() { return func() { g.operand(t, size) } }
func (g *generator) ref(name string) func()      { return func() { g.variable(name) } }

// lam writes a function, in whose body a variable of type t is in scope.
func (g *generator) lam(x string, t *typ, body func()) func() {
	return func() { g.w(`{"lam":`, name(x), `,"body":`, g.binding(x, t, body), "}") }
}

// names are few, so that they shadow each other, and some look like system
// context or operations.
var names = []string{"x", "y", "n", "p", "acc", "add", "__self", "é", ""}

func (g *generator) fresh() string { return names[g.draw(len(names))] }

// lookup finds a variable in scope of the type, not shadowed.
func (g *generator) lookup(t *typ) (string, bool) {
	var fit []string
	seen := map[string]bool{}
	for i := len(g.env) - 1; i >= 0; i-- {
		v := g.env[i]
		if !seen[v.name] && v.typ.equal(t) {
			fit = append(fit, v.name)
		}
		seen[v.name] = true
	}
	if len(fit) == 0 {
		return "", false
	}
	return fit[g.draw(len(fit))], true
}

func (g *generator) variable(x string) { g.w(`{"var":`, name(x), "}") }

// binding writes something with a variable in scope.
func (g *generator) binding(name string, t *typ, body func()) func() {
	return func() {
		g.env = append(g.env, variable{name, t})
		body()
		g.env = g.env[:len(g.env)-1]
	}
}

// lambda writes a function; at tells that its body is a tool's tail position.
func (g *generator) lambda(param, result *typ, size int, at bool) {
	defer g.at(at)()
	g.w(g.lam(g.fresh(), param, g.sub(result, size)))
}

// operand writes an expression that is not in tail position, sometimes of
// another type than wanted.
func (g *generator) operand(t *typ, size int) {
	defer g.at(false)()
	switch {
	case g.o.Wrong == 0 || g.draw(1000) < 1000-g.o.Wrong:
		g.expr(t, size)
	case g.draw(4) == 0:
		g.variable("nope")
	default:
		g.expr(g.anyType(1), size)
	}
}

// borders are integers on both sides of where the machine writes them
// otherwise: words of 64 and 63 bits, halves and quarters of them in an
// instruction, and powers of two.
var borders = []string{
	"9223372036854775807", "-9223372036854775808", "9223372036854775808",
	"4611686018427387903", "4611686018427387904", "-4611686018427387904", "-4611686018427387905",
	"123456789012345678901234567890", "4294967296", "2147483647", "-2147483649",
	"32767", "32768", "-32768", "-32769", "255", "256", "1024",
}

// Use finds a use of a row in a term.
func Use(t term.Term, id term.ID) (found *term.Prim) {
	if p, ok := t.(*term.Prim); ok && p.ID == id {
		return p
	}
	term.Children(t, func(c term.Term) bool {
		if found == nil {
			found = Use(c, id)
		}
		return found == nil
	})
	return found
}
