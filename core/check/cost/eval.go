package cost

import (
	"math/big"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// An analyser is one analysis under way.
type analyser struct {
	o       Options
	vars    table
	depth   int
	solved  map[string]*loop
	active  []*recursion
	abort   *recursion // the function that was found to call itself
	roots   int
	counts  map[term.Term]uint64 // nodes
	expand  map[*term.Prim]term.Term
	inexact bool
	totals  map[*aval]size // while a value's bytes are worked out
	why     []reason
	at      int // the place of the use of the library that is looked into; -1
	last    int // the place at which the steps were used up; -1
	// states is the roots of what changes from call to call, and of the items of lists in
	// that; results the root of what calls of a function give, by that of one of them.
	states  map[string]bool
	results map[string]string
	named   map[*env]int // a number for each binding that conditions of filters name
	leaf    bool         // it is looked at whether a function that is given a constant calls itself
}

// A reason is a place that makes a bound large, or takes it away.
type reason struct {
	pos     int
	message string
	fatal   bool
}

// spend takes a step of the analysis; false: they are used up.
func (a *analyser) spend() bool {
	return a.vars.charge(grain)
}

// tell notes why a bound isn't constant.
func (a *analyser) tell(t term.Term, message string, fatal bool) {
	pos := t.Pos()
	if a.at >= 0 {
		pos = a.at
	}
	for _, r := range a.why {
		if r.pos == pos && r.message == message {
			return
		}
	}
	if len(a.why) < 50 {
		a.why = append(a.why, reason{pos, message, fatal})
	}
}

// lost returns the cost of what can't be bounded.
func (a *analyser) lost(t term.Term, why string) (*aval, cost) {
	if a.abort == nil {
		a.tell(t, why, true)
	}
	return top, cost{none: true}
}

// A scope is where a term stands.
type scope struct {
	env   *env
	tool  bool // self is there
	evals int
	facts []fact
}

func (a *analyser) with(s scope, facts []fact) scope {
	if len(facts) > 0 {
		a.vars.charge(len(s.facts) + len(facts))
		s.facts = append(s.facts[:len(s.facts):len(s.facts)], facts...)
	}
	return s
}

const maxNesting = 4_000

const (
	tooComplex = "the program is too complex to be looked through"
	overBounds = "its bound is larger than any number that a bound can have"
)

// eval returns what t gives at most, and what that takes.
func (a *analyser) eval(t term.Term, s scope) (*aval, cost) {
	if a.abort != nil {
		return nothing, cost{}
	}
	if !a.spend() {
		if a.last < 0 {
			a.last = t.Pos()
		}
		return top, cost{none: true}
	}
	if a.depth++; a.depth > maxNesting {
		a.depth--
		return a.lost(t, tooComplex)
	}
	defer func() { a.depth-- }()
	switch t := t.(type) {
	case *term.Int:
		return literalNumber(big.NewInt(t.Value)), one(0)
	case *term.Big:
		a.vars.charge(t.Value.BitLen() / 256)
		return literalNumber(t.Value), one(uint64(16 + t.Value.BitLen()/8 + 8))
	case *term.Dec:
		a.vars.charge(t.Unscaled.BitLen()/64 + t.Scale/16)
		d, _ := value.NewDec(t.Unscaled, t.Scale)
		whole := new(big.Int).Quo(t.Unscaled, value.Power10(t.Scale))
		v := literalNumber(new(big.Int).Add(whole.Abs(whole), big.NewInt(1)))
		v.lin = nil
		v.frac = exactly(uint64(d.Words() + t.Scale/19))
		return v, one(uint64(64 + 8*d.Words()))
	case *term.Bool:
		if a.leaf {
			return &aval{kind: isBool, is: map[bool]int8{true: 1, false: -1}[t.Value]}, one(0)
		}
		return aBool, one(0)
	case *term.Str:
		return literalText(t.Value), one(uint64(32 + len(t.Value)))
	case *term.Unit:
		return aUnit, one(0)
	case *term.Var:
		if v, ok := a.lookup(s.env, t.Name); ok {
			if v.kind == isFunction && len(v.funcs) == 1 && v.funcs[0].env != nil && v.funcs[0].env.rec != nil {
				return v, one(a.closures(v.funcs[0].env.rec.t)) // it may be made of another one
			}
			return v, one(0)
		}
		return nothing, one(0)
	case *term.Lam:
		f := &closure{lam: t, env: s.env, tool: s.tool, evals: s.evals}
		return &aval{kind: isFunction, funcs: []*closure{f}}, one(16 + 8*a.size(t))
	case *term.LetRec:
		made := a.closures(t)
		s.env = &env{next: s.env, rec: &group{t, s.tool, s.evals}}
		v, c := a.eval(t.Body, s)
		return v, c.plus(cost{steps: number(3 * uint64(len(t.Funcs))), memory: number(made)})
	case *term.App:
		f, c := a.eval(t.Func, s)
		x, d := a.eval(t.Arg, s)
		v, e := a.apply(t, f, x, s)
		return v, c.plus(d).plus(one(0)).plus(e)
	case *term.If:
		return a.branch(t, s)
	case *term.List:
		item, c := nothing, cost{}
		for _, x := range t.Items {
			if a.vars.left < 0 {
				break
			}
			v, d := a.eval(x, s)
			c = c.plus(d).plus(one(16))
			item = a.join(item, v)
		}
		return list(exactly(uint64(len(t.Items))), item), c.plus(one(64))
	case *term.Record:
		r := &aval{kind: isRecord, n: exactly(uint64(len(t.Fields))), item: nothing, fields: map[string]*aval{}}
		c := one(64)
		for _, f := range t.Fields {
			if a.vars.left < 0 {
				break
			}
			v, d := a.eval(f.Value, s)
			c = c.plus(d).plus(cost{memory: number(uint64(64 + len(f.Key)))})
			r.fields[f.Key] = v
		}
		return r, c
	case *term.Quote:
		return &aval{kind: isCode, code: t.Body}, one(64)
	case *term.CodeOf:
		return &aval{kind: isCode}, one(64)
	case *term.Self:
		if !s.tool || a.o.self == nil {
			return nothing, one(0)
		}
		return a.o.self, one(0)
	case *term.Continue:
		v, c := a.eval(t.Input, s)
		_ = v
		return top, c.plus(one(64))
	case *term.Effect:
		arg, c := a.eval(t.Arg, s)
		if arg == nothing {
			return nothing, c.plus(one(0))
		}
		measured, ok := perBytes(a.total(arg).times(exactly(8)), 512)
		if !ok {
			_, d := a.lost(t, "what "+t.Op+" is asked with can be of any size")
			c = c.plus(d)
		}
		a.inexact = a.inexact || len(measured) > 0
		answer := RootName("!" + t.Op)
		return input(answer), c.plus(cost{steps: number(1).plus(measured), memory: number(256).plus(a.vars.variable(Var{Measure: Bytes, Path: answer}).poly())})
	case *term.Prim:
		return a.prim(t, s)
	}
	return a.lost(t, "this term isn't known")
}

// closures returns the memory of a closure of functions that see one another.
func (a *analyser) closures(t *term.LetRec) uint64 {
	n := uint64(16)
	for _, f := range t.Funcs {
		n += 8 * a.size(f.Lam)
	}
	return n
}

// size estimates how many registers a function has.
func (a *analyser) size(l *term.Lam) uint64 {
	return a.nodes(l) + 7 // without the function itself
}

func literalNumber(n *big.Int) *aval {
	abs := new(big.Int).Abs(n)
	v := &aval{kind: isNumber}
	if abs.IsUint64() && abs.Uint64() <= over/unit/2 {
		v.abs = exactly(abs.Uint64())
	} else {
		v.abs = infinite
	}
	v.words = exactly(uint64(abs.BitLen() / 64))
	if n.IsInt64() {
		v.lin = (&linear{offset: n.Int64(), by: 1}).checked()
	}
	return v
}

func (a *analyser) branch(t *term.If, s scope) (*aval, cost) {
	c, costs := a.eval(t.Cond, s)
	costs = costs.plus(one(0))
	if c.kind != isBool && c.kind != isInput && c.kind != isTop && c.kind != isUnion && c.kind != isWithin {
		return nothing, costs
	}
	if a.leaf && c.is != 0 {
		then := t.Then
		if c.is < 0 {
			then = t.Else
		}
		v, d := a.eval(then, s)
		return v, costs.plus(d)
	}
	x, d := a.eval(t.Then, a.with(s, c.yes))
	y, e := a.eval(t.Else, a.with(s, c.no))
	if !d.whole().equal(e.whole()) {
		a.inexact = true
	}
	return a.join(x, y), costs.plus(d.max(e))
}

func (a *analyser) prim(t *term.Prim, s scope) (*aval, cost) {
	row := prim.Get(t.ID)
	if v, c, ok := a.library(t, row, s); ok {
		return v, c
	}
	if row.Body != "" {
		return a.written(t, s)
	}
	switch t.ID {
	case prim.And, prim.Or:
		return a.logic(t, s)
	case prim.Eval:
		return a.evaluate(t, s)
	case prim.Try:
		v, c := a.eval(t.Args[0], s)
		a.inexact = true
		caught := &aval{kind: isRecord, n: exactly(4), item: nothing, fields: map[string]*aval{
			"at": aText(exactly(1 << 20)), "kind": aText(exactly(64)), "message": aText(exactly(1 << 20)), "value": top,
		}}
		r := &aval{kind: isRecord, n: exactly(1), item: nothing, fields: map[string]*aval{"ok": v, "error": caught}}
		return r, c.plus(one(512 + 8*a.nodes(t.Args[0])))
	case prim.Par:
		item, c := nothing, one(64)
		for _, b := range t.Args {
			if a.vars.left < 0 {
				break
			}
			v, d := a.eval(b, s)
			item = a.join(item, v)
			c = c.plus(d).plus(cost{memory: number(1024 + 64*a.nodes(b))})
		}
		return list(exactly(uint64(len(t.Args))), item), c
	}
	args := make([]*aval, len(t.Args))
	c := one(16)
	for i, x := range t.Args {
		v, d := a.eval(x, s)
		args[i] = v
		c = c.plus(d)
	}
	switch t.ID {
	case prim.Fold:
		v, d := a.fold(t, args, s)
		return v, c.plus(d)
	case prim.CodeOf:
		return &aval{kind: isCode}, c
	case prim.Call:
		if n := len(args) - 1; n > 1 { // the list of them
			c = c.plus(one(0))
			for range n {
				c = c.plus(one(16))
			}
		}
		v, d := a.callee(t, args[1:])
		return v, c.plus(d)
	}
	v, d := a.row(t, row, args)
	return v, c.plus(d)
}

// written evaluates a row of the library as what it is written as.
func (a *analyser) written(t *term.Prim, s scope) (*aval, cost) {
	body, ok := a.expand[t]
	if !ok {
		a.vars.charge(2 * grain)
		body = prim.Expand(t)
		a.expand[t] = body
	}
	return a.eval(body, s)
}

func (a *analyser) logic(t *term.Prim, s scope) (*aval, cost) {
	x, c := a.eval(t.Args[0], s)
	inner := a.with(s, x.yes)
	if t.ID == prim.Or {
		inner = a.with(s, x.no)
	}
	if a.leaf && x.is != 0 && (t.ID == prim.And) == (x.is < 0) {
		return x, c.plus(one(0))
	}
	y, d := a.eval(t.Args[1], inner)
	a.inexact = true
	r := &aval{kind: isBool}
	if x.is != 0 {
		r.is = y.is
	}
	if t.ID == prim.And {
		a.vars.charge(len(x.yes) + len(y.yes))
		r.yes = append(append([]fact{}, x.yes...), y.yes...)
	} else {
		a.vars.charge(len(x.no) + len(y.no))
		r.no = append(append([]fact{}, x.no...), y.no...)
	}
	return r, c.plus(d).plus(one(0))
}

// evaluate evaluates code that is there.
func (a *analyser) evaluate(t *term.Prim, s scope) (*aval, cost) {
	v, c := a.eval(t.Args[0], s)
	c = c.plus(one(0))
	if v.kind != isCode && v.kind != isInput && v.kind != isTop && v.kind != isUnion && v.kind != isWithin {
		return nothing, c
	}
	if v.kind != isCode || v.code == nil {
		_, d := a.lost(t, "the code that is evaluated isn't known before it runs")
		return top, c.plus(d)
	}
	if s.evals >= prim.MaxEvals {
		return nothing, c
	}
	outer := a.at
	if a.at < 0 {
		a.at = t.Pos()
	}
	s.tool, s.evals = false, s.evals+1
	r, d := a.eval(v.code, s)
	a.at = outer
	// Compiling takes memory.
	return r, c.plus(d).plus(cost{memory: number(512 * (a.nodes(v.code) + 8))})
}
