package cert

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// Bounds of a check: what is compared of types, a visit of a term counting as
// many; how deep terms and types are nested.
const (
	maxWork = 20_000_000
	perTerm = 400
	maxDeep = 4_000
)

// A pass goes along a program: a function whose code is known is gone through
// where it is applied, with what its argument is.
type pass struct {
	// said is the type that is claimed of a function's parameter, of a list's
	// items, of what a fold accumulates, and of what another term gives.
	said   func(t term.Term) *Type
	expand func(p *term.Prim) term.Term
	tools  Tools
	self   *Type // nil: there is none
	err    error // why the type isn't shown
	cost   bound // of what was gone through
	calls  bool  // of self, besides
	longer bool  // a list that a call of self takes may be longer than the parameter
	seen   map[[2]*Type]bool
	// what is left of maxWork, how deep it is, the folds so far, the parameters
	left, deep, folds, params int
}

// An env is the variables, innermost first.
type env struct {
	name string
	is   *Type
	next *env
}

// find is what binds a variable; nil for other terms.
func (e *env) find(t term.Term) *env {
	v, ok := t.(*term.Var)
	for e != nil && !(ok && e.name == v.Name) {
		e = e.next
	}
	return e
}

// run goes through a program, and gives the bound of its evaluations in words.
func (c *pass) run(t term.Term, tool bool) (cost, class string) {
	root := orNothing(c.said(t))
	gives, claimed := c.term(t, nil), root
	for gives.lam != nil {
		if c.params++; claimed.Kinds&prim.KindFunction == 0 {
			c.fail(t, "it is a function")
		}
		if tool {
			c.self = root
		}
		t = gives.lam.Body
		gives = c.term(t, &env{gives.lam.Param, orNothing(claimed.Param).sized(longest), gives.env})
		claimed = orNothing(claimed.Result)
	}
	if c.into(t, gives, claimed); gives.Kinds&prim.KindFunction != 0 || gives.Kinds == 0 && c.params == 0 {
		c.cost = bound{} // it isn't known what that is applied to
	}
	// The applications are evaluated besides.
	most := c.cost.with(exactly(c.params), true)
	most.ok = most.ok && !(c.longer && most.by[1]+most.by[2]+most.by[3] > 0)
	return most.claim(c.calls)
}

func (c *pass) fail(t term.Term, why string) *Type {
	if c.err == nil {
		c.err = fmt.Errorf("the type of the %T at %d: %s", t, t.Pos(), why)
	}
	return nothing
}

// spend takes work, and says whether there is any left and all is well so far.
func (c *pass) spend(n int) bool {
	if c.left -= n; c.left < 0 || c.deep > maxDeep {
		c.left, c.cost = -1, bound{}
		c.fail(&term.Unit{}, "it is too large to be checked")
	}
	return c.err == nil
}

// fits demands that all values of a type are of kinds.
func (c *pass) fits(t term.Term, a *Type, k prim.Kinds) {
	if a.Kinds&^k != 0 {
		c.fail(t, "an operand may be of another kind than "+k.String())
	}
}

// into demands that a is within b.
func (c *pass) into(t term.Term, a, b *Type) {
	if !c.within(a, b) {
		c.fail(t, "what flows there is not of the type that is said")
	}
}

// either is the type of a term whose values are each of one of the types: where
// these are several, it is said.
func (c *pass) either(t term.Term, types ...*Type) *Type {
	if !slices.ContainsFunc(types, func(u *Type) bool {
		return u != types[0] && (u.Kinds != types[0].Kinds || u.Kinds&structured != 0)
	}) {
		u := append(types, nothing)[0]
		for _, other := range slices.Compact(slices.Clone(types))[min(1, len(types)):] {
			u = u.sized(u.size.with(other.size, false)) // of types that aren't known each has a size of its own
		}
		return u
	}
	said := c.said(t)
	for _, u := range types {
		c.into(t, u, said)
	}
	return orNothing(said)
}

// code works the type of a function out whose code is known: that is gone through
// with what is said of the parameter.
func (c *pass) code(f *Type) {
	if l := f.lam; l != nil && f.Result == nil {
		before := c.cost
		f.Param = orNothing(c.said(l))
		f.Result = c.term(l.Body, &env{l.Param, f.Param, f.env})
		c.cost = before // it isn't evaluated here
	}
}

// apply is what a function gives of an argument.
func (c *pass) apply(t term.Term, f, arg *Type) *Type {
	if f.lam != nil {
		return c.term(f.lam.Body, &env{f.lam.Param, arg, f.env})
	}
	if c.fits(t, f, prim.KindFunction); f.Kinds != 0 { // or it never comes to that
		c.into(t, arg, f.Param)
	}
	return orNothing(f.Result)
}

// term is what is known of what a term gives.
func (c *pass) term(t term.Term, s *env) *Type {
	c.deep++
	defer func() { c.deep-- }()
	if c.spend(perTerm); c.left < 0 {
		return nothing
	}
	if p, ok := t.(*term.Prim); ok && prim.Get(p.ID).Body != "" {
		return c.term(c.expand(p), s)
	}
	c.cost = c.cost.with(exactly(1), true)
	switch t := t.(type) {
	case *term.Int, *term.Big:
		return of(prim.KindInt)
	case *term.Dec:
		return of(prim.KindDec)
	case *term.Bool:
		return of(prim.KindBool)
	case *term.Str:
		return chars
	case *term.Unit:
		return of(prim.KindUnit)
	case *term.Quote, *term.CodeOf:
		return of(prim.KindQuoted)
	case *term.Var:
		if v := s.find(t); v != nil {
			return v.is
		}
		return c.fail(t, "nothing binds the variable")
	case *term.Lam:
		return &Type{Kinds: prim.KindFunction, lam: t, env: s}
	case *term.App:
		f, arg := c.term(t.Func, s), c.term(t.Arg, s)
		if _, self := t.Func.(*term.Self); self && c.params == 1 {
			c.calls = true // it is counted with them
			c.longer = c.longer || arg.size.with(longest, false) != longest
		} else if f.lam == nil {
			c.cost = bound{} // what is applied isn't written here
		}
		return c.apply(t, f, arg)
	case *term.If:
		return c.conditional(t, s)
	case *term.List:
		c.cost = c.cost.with(exactly(len(t.Items)), true)
		return listOf(c.either(t, c.all(t.Items, s)...)).sized(exactly(len(t.Items)))
	case *term.Record:
		r := &Type{Kinds: prim.KindRecord}
		for _, f := range t.Fields {
			r.Fields = append(r.Fields, Field{Key: f.Key, Type: c.term(f.Value, s)})
		}
		return r
	case *term.Self:
		if c.self == nil {
			return c.fail(t, "there is no self")
		}
		return c.self
	case *term.Continue:
		c.term(t.Input, s)
		return of(prim.KindContinuation)
	case *term.Effect:
		c.term(t.Arg, s)
		_, answer, _ := c.tools("!" + t.Op)
		return cmp.Or(answer, data)
	case *term.Prim:
		if t.ID == prim.Fold {
			return c.fold(t, s)
		}
		return c.prim(t, c.all(t.Args, s))
	}
	c.cost = bound{} // of a letrec
	return c.fail(t, "the term isn't known")
}

func (c *pass) all(ts []term.Term, s *env) []*Type {
	types := make([]*Type, len(ts))
	for i, x := range ts {
		types[i] = c.term(x, s)
	}
	return types
}

// conditional counts the larger branch.
func (c *pass) conditional(t *term.If, s *env) *Type {
	c.fits(t, c.term(t.Cond, s), prim.KindBool)
	before := c.cost
	yes := c.term(t.Then, narrowed(t.Cond, true, s))
	then := c.cost
	c.cost = before
	no := c.term(t.Else, narrowed(t.Cond, false, s))
	c.cost = c.cost.with(then, false)
	return c.either(t, yes, no).sized(yes.size.with(no.size, false))
}

// narrowed is the variables where a condition is so: a test of the kind of one
// tells what it is.
func narrowed(cond term.Term, yes bool, s *env) *env {
	p, _ := cond.(*term.Prim)
	if p == nil || prim.Get(p.ID).Name != "equal" {
		return s
	}
	q, _ := p.Args[0].(*term.Prim)
	name, _ := p.Args[1].(*term.Str)
	if q == nil || name == nil || prim.Get(q.ID).Name != "type_of" || s.find(q.Args[0]) == nil {
		return s
	}
	v := s.find(q.Args[0])
	u := *v.is
	for k := prim.KindInt; k < prim.KindName; k <<= 1 {
		if (k.String() == name.Value) != yes {
			u.Kinds &^= k
		}
	}
	return &env{v.name, &u, s}
}

// fold goes through its function once, and counts that for each item: so often
// what accumulates may become larger as the function's result is larger than it.
func (c *pass) fold(t *term.Prim, s *env) *Type {
	a := c.all(t.Args, s)
	f, list := a[0], a[2]
	c.fits(t, list, prim.KindList)
	acc := orNothing(c.said(t))
	c.into(t, a[1], acc)
	c.folds++
	of, before := c.folds, c.cost
	c.cost = bound{ok: f.lam != nil}
	gives := c.apply(t, f, &Type{Kinds: prim.KindPair, First: acc.sized(bound{ok: true, on: of}), Second: list.Item})
	c.into(t, gives, acc)
	c.cost = before.with(c.cost.times(list.size), true)
	more := gives.size
	if more.on == of { // of another's nothing comes
		more.on = 0
	}
	return acc.sized(a[1].size.with(more.times(list.size), true))
}

// prim is what is known of what a strict row gives, or one of a few forms. Of a row
// without a rule of its own the result has no parts.
func (c *pass) prim(t *term.Prim, a []*Type) *Type {
	row, both := prim.Get(t.ID), prim.Kinds(0)
	for i, u := range a {
		both |= u.Kinds
		c.fits(t, u, row.Params[min(i, len(row.Params)-1)].Kinds)
	}
	switch row.Name {
	case "eval", "call":
		c.cost = bound{}
		return c.call(t, a)
	case "par":
		return listOf(c.either(t, a...)).sized(exactly(len(a)))
	case "pair":
		return &Type{Kinds: prim.KindPair, First: a[0], Second: a[1]}
	case "fst":
		return orNothing(a[0].First)
	case "snd":
		return orNothing(a[0].Second)
	case "nil":
		return listOf(nothing).sized(exactly(0))
	case "cons":
		return c.either(t, listOf(a[0]), a[1]).sized(a[1].size.with(exactly(1), true))
	case "push", "set_nth":
		return c.either(t, a[0], listOf(a[len(a)-1])).sized(a[0].size.with(exactly(1), true))
	case "tail", "slice":
		return a[0]
	case "head", "nth":
		return orNothing(a[0].Item)
	case "get":
		if key, ok := t.Args[1].(*term.Str); ok {
			f, _ := a[0].get(key.Value)
			return c.either(t, append(a[2:], orNothing(f))...)
		}
	case "put":
		if key, ok := t.Args[1].(*term.Str); ok && c.spend(len(a[0].Fields)) {
			// The first field of a key is what counts.
			return &Type{Kinds: prim.KindRecord, Rest: a[0].Rest, Fields: append([]Field{{key.Value, false, a[2]}}, a[0].Fields...)}
		}
	case "try":
		caught := &Type{Kinds: prim.KindRecord, Fields: []Field{{"at", false, chars}, {"kind", false, chars}, {"message", false, chars}, {"value", true, anything}}}
		return &Type{Kinds: prim.KindRecord, Fields: []Field{{"error", true, caught}, {"ok", true, a[0]}}}
	case "parse_json":
		return written
	case "to_json", "to_json_indent":
		c.into(t, a[0], written)
	case "to_csv":
		c.into(t, a[0], table(t))
	case "raise", "no_match":
		return nothing
	case "add", "sub", "mul":
		if both == prim.KindInt || a[0].Kinds == prim.KindDec {
			return of(a[0].Kinds)
		} else if a[1].Kinds == prim.KindDec {
			return a[1]
		}
	case "equal", "contains", "index_of", "last_index_of":
		isData := func(u *Type) bool { // nothing is concluded from it for what is compared later
			d := pass{seen: map[[2]*Type]bool{}, left: c.left}
			defer func() { c.left = d.left }()
			return d.within(u, data)
		}
		if !slices.ContainsFunc(a, isData) || row.Name != "equal" && a[0].Kinds != prim.KindList && a[1].Kinds != prim.KindString {
			c.fail(t, "functions may be compared")
		}
	case "compare":
		if both&^prim.KindNumber != 0 && both != prim.KindString && both != prim.KindBool {
			c.fail(t, "values of several kinds may be compared")
		}
	}
	for i, kinds := range row.Items[:min(len(row.Items), len(a))] {
		if a[i].Item != nil {
			c.fits(t, a[i].Item, kinds)
		}
	}
	if of, _ := row.Facts(t.Args); of != nil {
		return ofType(of)
	}
	if row.Result&(structured|prim.KindContinuation) != 0 {
		return c.fail(t, "there is no rule for "+row.Name)
	}
	return of(row.Result & prim.KindAny)
}

// table is what to_csv writes: records with cells in the columns that the term names, or else everywhere.
func table(t *term.Prim) *Type {
	all, named := &Type{Kinds: prim.KindRecord, Rest: of(prim.KindCell)}, &Type{Kinds: prim.KindRecord, Rest: anything}
	if list, ok := t.Args[len(t.Args)-1].(*term.List); ok && len(t.Args) > 1 {
		for _, x := range list.Items {
			name, ok := x.(*term.Str)
			if !ok {
				return listOf(all)
			}
			named.Fields = append(named.Fields, Field{name.Value, true, all.Rest})
		}
		return listOf(named)
	}
	return listOf(all)
}

// ofType is what a row declares of the parts of its result.
func ofType(t *prim.Type) *Type {
	switch {
	case t == nil:
		return nil
	case t.Kinds&prim.KindData == prim.KindData:
		return data
	}
	u := &Type{Kinds: t.Kinds, Item: ofType(t.Item), Rest: ofType(t.Rest)}
	for _, f := range t.Fields {
		u.Fields = append(u.Fields, Field{Key: f.Key, Optional: f.Optional, Type: ofType(f.Type)})
	}
	return u
}

// call is the type of what the call of a tool gives.
func (c *pass) call(t *term.Prim, a []*Type) *Type {
	if name, ok := t.Args[0].(*term.Str); ok && t.ID == prim.Call {
		if _, f, _ := c.tools(name.Value); f != nil {
			for _, in := range a[1:] {
				c.into(t, in, data)
				if f.Kinds == prim.KindFunction || len(a) > 2 { // otherwise the tool is a value
					c.fits(t, f, prim.KindFunction)
					c.into(t, in, orNothing(f.Param))
					f = orNothing(f.Result)
				}
			}
			c.into(t, f, data)
			return f
		}
	}
	return c.fail(t, "the type of what is evaluated, or of the tool that is called, isn't certified")
}
