package check

import (
	"fmt"
	"strconv"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// knowledge is what tests around a place have shown of paths: a variable, or
// the parts of one. The innermost comes first.
type knowledge struct {
	path string
	v    *variable
	next *knowledge
}

func (k *knowledge) of(path string) *variable {
	for ; k != nil; k = k.next {
		if k.path == path {
			return k.v
		}
	}
	return nil
}

// since is of, of what became known after a point.
func (k *knowledge) since(point *knowledge, path string) *variable {
	for ; k != point; k = k.next {
		if k.path == path {
			return k.v
		}
	}
	return nil
}

func (e env) knows(path string, v *variable) env {
	return env{e.vars, &knowledge{path, v, e.known}}
}

// path is a new name for a variable.
func (c *checker) path() string {
	c.ids++
	return strconv.Itoa(c.ids)
}

// path is the name of what a term stands for, where that is a variable or a
// part of one: such terms give the same value each time. It is empty for
// others.
func (e env) path(t term.Term) string {
	switch t := t.(type) {
	case *term.Var:
		if b := e.lookup(t.Name); b != nil {
			return b.path
		}
	case *term.Prim:
		if len(t.Args) == 0 || !partOf[t.ID] {
			return ""
		}
		of := e.path(t.Args[0])
		if of == "" {
			return ""
		}
		step := "." + strconv.Itoa(int(t.ID))
		if len(t.Args) == 1 {
			return of + step
		}
		if len(t.Args) != 2 {
			return ""
		}
		if key := e.key(t.Args[1]); key != "" {
			return of + step + key
		}
	}
	return ""
}

// key is the name of what stands for a key or an index: a literal, a path, a sum or the
// like of these. It is empty for others.
func (e env) key(t term.Term) string {
	switch t := t.(type) {
	case *term.Str:
		return strconv.Quote(t.Value)
	case *term.Int:
		return ":" + strconv.FormatInt(t.Value, 10)
	case *term.Prim:
		switch t.ID {
		case prim.Add, prim.Sub, prim.Mul, prim.Concat:
			if a, b := e.key(t.Args[0]), e.key(t.Args[1]); a != "" && b != "" {
				return fmt.Sprintf("(%s %d %s)", a, t.ID, b)
			}
			return ""
		}
	}
	if path := e.path(t); path != "" {
		return "[" + path + "]"
	}
	return ""
}

// partOf is the rows that give a part of their first operand.
var partOf = map[term.ID]bool{
	prim.Fst: true, prim.Snd: true, prim.Head: true, prim.Tail: true,
	id("get"): true, id("nth"): true, prim.At: true, id("to_data"): true,
}

func id(name string) term.ID {
	i, _, ok := prim.Lookup(name)
	if !ok {
		panic("check: no row named " + name)
	}
	return i
}

var (
	compare, typeOf = id("compare"), id("type_of")
	has, isEmpty    = id("has"), id("isEmpty")
	containing      = id("contains")
)

// narrow is what is known where a condition is true, or is false.
func (c *checker) narrow(cond term.Term, is bool, e env, ctx context) env {
	switch t := cond.(type) {
	case *term.Var:
		if b := e.lookup(t.Name); b != nil && b.means != nil {
			return env{e.vars, c.narrow(b.means, is, env{b.scope, e.known}, ctx).known}
		}
	case *term.If:
		// What and and or are among patterns: if a then b else false.
		if no, ok := t.Else.(*term.Bool); ok && !no.Value {
			return c.narrowBoth(t.Cond, t.Then, true, is, e, ctx)
		}
		if yes, ok := t.Then.(*term.Bool); ok && yes.Value {
			return c.narrowBoth(t.Cond, t.Else, false, is, e, ctx)
		}
	case *term.Prim:
		switch t.ID {
		case prim.Not:
			return c.narrow(t.Args[0], !is, e, ctx)
		case prim.And, prim.Or:
			return c.narrowBoth(t.Args[0], t.Args[1], t.ID == prim.And, is, e, ctx)
		case prim.Equal:
			return c.narrowEqual(t, is, e, ctx)
		case has:
			key, ok := t.Args[1].(*term.Str)
			path := e.path(t.Args[0])
			if ok && path != "" {
				in, out := c.split(c.infer(t.Args[0], e, ctx), key.Value)
				if is {
					return e.knows(path, in)
				}
				return e.knows(path, out)
			}
		case containing:
			if l, ok := t.Args[0].(*term.List); ok {
				return c.narrowOneOf(l, t.Args[1], is, e, ctx)
			}
		case isEmpty:
			if path := e.path(t.Args[0]); path != "" {
				none, some := c.splitEmpty(c.infer(t.Args[0], e, ctx))
				if is {
					return e.knows(path, none)
				}
				return e.knows(path, some)
			}
		}
	}
	return e
}

// narrowBoth is what is known where a and b, or a or b, is true, or is false.
func (c *checker) narrowBoth(a, b term.Term, and, is bool, e env, ctx context) env {
	if is == and {
		return c.narrow(b, is, c.narrow(a, is, e, ctx), ctx)
	}
	if left := mostChoices; !choices(a, &left) || !choices(b, &left) {
		return e
	}
	// One of them decides, or the other does.
	first, second := c.narrow(a, is, e, ctx), c.narrow(b, is, c.narrow(a, !is, e, ctx), ctx)
	before, seen := e.known, map[string]bool{}
	for k := first.known; k != before; k = k.next {
		if v := second.known.since(before, k.path); v != nil && !seen[k.path] {
			e = e.knows(k.path, c.joined(k.v, v))
		}
		seen[k.path] = true
	}
	return e
}

// mostChoices is of how many conditions it is worked out what follows where one of
// them, whichever, is true.
const mostChoices = 12

// choices reports whether a condition consists of no more than so many.
func choices(t term.Term, left *int) bool {
	*left--
	switch t := t.(type) {
	case *term.If:
		return *left >= 0 && choices(t.Cond, left) && choices(t.Then, left) && choices(t.Else, left)
	case *term.Prim:
		switch t.ID {
		case prim.And, prim.Or, prim.Not:
			for _, x := range t.Args {
				if !choices(x, left) {
					return false
				}
			}
		}
	}
	return *left >= 0
}

// narrowEqual knows the kind of what is equal to a literal, or of what has a
// type of a name that is a literal.
func (c *checker) narrowEqual(t *term.Prim, is bool, e env, ctx context) env {
	a, b := t.Args[0], t.Args[1]
	for range 2 {
		p, at := e.meaning(a)
		if p, ok := p.(*term.Prim); ok && p.ID == typeOf {
			if path := at.path(p.Args[0]); path != "" {
				v := c.infer(p.Args[0], at, ctx)
				if s, ok := b.(*term.Str); ok {
					in, out := c.filter(v, c.named(s))
					if is {
						return e.knows(path, in)
					}
					return e.knows(path, out)
				}
				if is && !c.single {
					c.unknown(t, ReasonCompare, "", "which type is asked for is known only when it runs")
					e = e.knows(path, c.ofAsked(v))
				}
			}
		}
		if k := literalKind(b); k != 0 && (is || k == prim.KindUnit && !c.single) {
			if path := e.path(a); path != "" {
				v := c.infer(a, e, ctx)
				if !is {
					return e.knows(path, c.notNull(v))
				}
				return e.knows(path, c.equalTo(v, k))
			}
		}
		a, b = b, a
	}
	return e
}

// narrowOneOf knows the kind of what has a type whose name is one of a list of literals.
func (c *checker) narrowOneOf(names *term.List, tested term.Term, is bool, e env, ctx context) env {
	t, at := e.meaning(tested)
	p, ok := t.(*term.Prim)
	if !ok || p.ID != typeOf || c.single {
		return e
	}
	var kinds prim.Kinds
	for _, n := range names.Items {
		s, ok := n.(*term.Str)
		if !ok {
			return e
		}
		kinds |= c.named(s)
	}
	path := at.path(p.Args[0])
	if path == "" {
		return e
	}
	in, out := c.filter(c.infer(p.Args[0], at, ctx), kinds)
	if is {
		return e.knows(path, in)
	}
	return e.knows(path, out)
}

// meaning is the test that a variable is the outcome of, with what it stands in; of
// any other term it is that.
func (e env) meaning(t term.Term) (term.Term, env) {
	if x, ok := t.(*term.Var); ok {
		if b := e.lookup(x.Name); b != nil && b.means != nil {
			return b.means, env{b.scope, e.known}
		}
	}
	return t, e
}

// isTest reports whether a term looks at a value, so that what comes of it tells
// something of that.
func isTest(t term.Term) bool {
	switch t := t.(type) {
	case *term.If:
		return isTest(t.Cond)
	case *term.Prim:
		switch t.ID {
		case prim.And, prim.Or, prim.Not, prim.Equal, typeOf, has, isEmpty, containing:
			return true
		}
	}
	return false
}

func literalKind(t term.Term) prim.Kinds {
	switch t.(type) {
	case *term.Int, *term.Big, *term.Dec:
		return prim.KindNumber
	case *term.Bool:
		return prim.KindBool
	case *term.Str:
		return prim.KindString
	case *term.Unit:
		return prim.KindUnit
	}
	return 0
}

type filterKey struct {
	v     *variable
	kinds prim.Kinds
	key   string
}

// derived is the variable of a key, to which each adds what there is of the key's variable.
func (c *checker) derived(k filterKey, each func(out *variable, s *shape)) *variable {
	if both, ok := c.filters[k]; ok {
		return both[0]
	}
	out := c.variable()
	c.filters[k] = [2]*variable{out}
	c.watches(k.v, prim.KindAny, func(s *shape) { each(out, s) })
	return out
}

// equalTo is what of v is equal to a literal of the kinds, which have no parts. What
// is unknown stays so: it need be of no kind for that.
func (c *checker) equalTo(v *variable, kinds prim.Kinds) *variable {
	return c.derived(filterKey{v: v, kinds: kinds, key: "equal"}, func(in *variable, s *shape) {
		switch {
		case s.unknown != nil || s.dynamic:
			for _, k := range unknownKinds {
				if k&kinds != 0 {
					c.flow(c.basic[k], in)
				}
			}
		case s.kind&kinds != 0:
			c.add(in, s)
		}
	})
}

// notNull is what of v isn't null; of what is unknown, its restOf.
func (c *checker) notNull(v *variable) *variable {
	return c.derived(filterKey{v: v, key: "not null"}, func(out *variable, s *shape) {
		if s.unknown != nil {
			s = c.restOf(s.unknown)
		}
		if s.kind != prim.KindUnit {
			c.add(out, s)
		}
	})
}

// ofAsked is what of v is of a type that isn't known: of a caller's value no kind is demanded.
func (c *checker) ofAsked(v *variable) *variable {
	return c.derived(filterKey{v: v, key: "asked"}, func(out *variable, s *shape) {
		if s.seed != nil || s.unknown != nil {
			s = c.dynamic
		}
		c.add(out, s)
	})
}

// filter is what of v is of the kinds, and what isn't.
func (c *checker) filter(v *variable, kinds prim.Kinds) (in, out *variable) {
	k := filterKey{v: v, kinds: kinds}
	if both, ok := c.filters[k]; ok {
		return both[0], both[1]
	}
	in, out = c.variable(), c.variable()
	c.filters[k] = [2]*variable{in, out}
	c.watches(v, prim.KindAny, func(s *shape) {
		switch {
		case s.unknown != nil:
			c.need(s.unknown)
		case s.dynamic:
			for _, k := range unknownKinds {
				if k&kinds != 0 && (!s.data || k&prim.KindData != 0) {
					c.add(in, c.someOf(k, s))
				}
			}
			c.add(out, s)
		case s.kind&kinds != 0:
			c.add(in, s)
		default:
			c.add(out, s)
		}
	})
	return in, out
}

// someOf is a value of the kind, with parts of which nothing is known.
func (c *checker) someOf(k prim.Kinds, s *shape) *shape {
	key := fmt.Sprint("some ", k, s.id)
	m, ok := c.interned[key]
	if ok {
		return m
	}
	m = c.shape(k)
	c.interned[key] = m
	part := c.fixed(s)
	switch k {
	case prim.KindInt, prim.KindDec, prim.KindBool, prim.KindString, prim.KindUnit:
		m = c.basic[k].lower[0]
		c.interned[key] = m
	case prim.KindList:
		m.item = part
	case prim.KindPair:
		m.first, m.second = part, part
	case prim.KindRecord:
		m.record = &record{rest: part}
	case prim.KindFunction:
		m.param, m.result, m.effects, m.raised = c.variable(), part, c.lent, part
		c.sinks(m.param)
	case prim.KindContinuation:
		m.next = part
	}
	return m
}

// split is what of v is a record with the key, and what is one without.
func (c *checker) split(v *variable, key string) (in, out *variable) {
	k := filterKey{v: v, key: "has " + key}
	if both, ok := c.filters[k]; ok {
		return both[0], both[1]
	}
	in, out = c.variable(), c.variable()
	c.filters[k] = [2]*variable{in, out}
	c.watches(v, prim.KindRecord, func(s *shape) {
		switch {
		case s.unknown != nil:
			c.need(s.unknown)
		case s.dynamic:
			c.add(in, c.someOf(prim.KindRecord, s))
			c.add(out, c.someOf(prim.KindRecord, s))
		case s.kind == prim.KindRecord:
			switch f, p := c.lookup(s, key, false); p {
			case required:
				c.add(in, s)
			case absent:
				c.add(out, s)
			default:
				c.add(in, c.with(s, field{key, f, required}))
				c.add(out, c.with(s, field{key, nil, absent}))
			}
		}
	})
	return in, out
}

// splitEmpty returns what of v is an empty list, and what is a list with items. A list of
// which that isn't known becomes both.
func (c *checker) splitEmpty(v *variable) (none, some *variable) {
	k := filterKey{v: v, key: "empty"}
	if both, ok := c.filters[k]; ok {
		return both[0], both[1]
	}
	none, some = c.variable(), c.variable()
	c.filters[k] = [2]*variable{none, some}
	c.watches(v, prim.KindList, func(s *shape) {
		if s.unknown != nil {
			c.need(s.unknown)
			return
		}
		if s.dynamic {
			s = c.someOf(prim.KindList, s)
		}
		if s.kind != prim.KindList {
			return
		}
		if s.length != filled {
			c.add(none, c.ofLength(s, empty))
		}
		if s.length != empty {
			c.add(some, c.ofLength(s, filled))
		}
	})
	return none, some
}

// ofLength returns the shape of a list of which a test has shown the length.
func (c *checker) ofLength(s *shape, n length) *shape {
	if s.length == n {
		return s
	}
	key := fmt.Sprint("length ", n, " ", s.id)
	m, ok := c.interned[key]
	if !ok {
		m = c.shape(prim.KindList)
		m.seed, m.item, m.length, m.base, m.items, m.from = s.seed, s.item, n, s, s.items, s.from
		c.interned[key] = m
	}
	return m
}

// A tested branch is one of a condition, with what is known in it beyond what was known
// before.
type tested struct {
	branch        term.Term
	known, before *knowledge
}

// excluded reports whether no value comes to the branch: of something that its
// condition looks at there is none left.
func (b *tested) excluded() bool {
	for k := b.known; k != b.before; k = k.next {
		if len(k.v.lower) == 0 {
			return true
		}
	}
	return false
}

// guarded is the offsets of the terms that stand in quoted code, in what a try
// evaluates, or in a branch that is excluded however often the code is typed.
func (c *checker) guarded() map[int]bool {
	if len(c.failed) == 0 {
		return nil
	}
	reached := map[term.Term]bool{}
	for i := range c.branches {
		b := &c.branches[i]
		reached[b.branch] = reached[b.branch] || !b.excluded()
	}
	in := map[int]bool{}
	var inside func(t term.Term) bool
	inside = func(t term.Term) bool {
		in[t.Pos()] = true
		return term.Children(t, inside)
	}
	var outside func(t term.Term) bool
	outside = func(t term.Term) bool {
		alive, branch := reached[t]
		_, quoted := t.(*term.Quote)
		p, ok := t.(*term.Prim)
		switch {
		case branch && !alive:
			return inside(t)
		case quoted || ok && p.ID == prim.Try:
			return term.Children(t, inside)
		}
		return term.Children(t, outside)
	}
	outside(c.code)
	return in
}
