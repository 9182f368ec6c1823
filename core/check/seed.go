package check

import (
	"slices"

	"github.com/mcp-pif/mcp-pif/core/prim"
)

// A seed is an unknown: what the caller of a program gives it, or a part of
// that. It flows through the program as a shape that fits everything. Where a
// test meets it, it becomes a value of each of the kinds that all the tests
// permit that it has come to; one that fails at a later test is dead: the
// caller must not give it.
type seed struct {
	v     *variable
	pos   int // of the function whose parameter it is part of
	name  string
	shape *shape // the unknown itself
	// holders is the variables that it has flowed into; rest it where it was shown that it isn't null.
	holders []holder
	rest    *shape
	// deep is what it and all its parts may be.
	deep prim.Kinds
	// made is what it became; pending, that it is to become something.
	made          []*shape
	pending, used bool
	dead          prim.Kinds
	conflict      bool
	// parent is the unknown that it is a part of; same, one around it that it
	// is like: it flows to where that comes from.
	parent, same *seed
	deepness     int
	// wants is the kinds of the literals that it is compared with; freely is set
	// where it is compared with anything else.
	wants  prim.Kinds
	freely bool
	// asked is set where type_of looks at it.
	asked bool
	// decimal is what is computed with it, where it is a decimal.
	decimal *shape
	// letter is a character of it, where it is a string.
	letter *shape
	// mixed is set for the items of a list, and the fields whose keys aren't written: it
	// stands for many values, which one test makes of one kind though they need not be.
	mixed bool
	// taking is what is taken by its place of it as a list; tuple is set for the items of one
	// that holds several kinds.
	taking *taking
	tuple  bool
	whole  prim.Kinds     // of a tuple's items: what they may be, by what is demanded of all
	part   string         // which part of its parent it is
	like   map[*seed]bool // other places of the same list that it is compared with
	path   int            // see pathOf
}

// A holder is a variable into which an unknown has flowed, or what of it isn't null.
type holder struct {
	v       *variable
	notNull bool
}

// restOf is what of an unknown isn't null.
func (c *checker) restOf(s *seed) *shape {
	if s.rest == nil {
		s.rest = c.shape(0)
		s.rest.unknown = s
	}
	return s.rest
}

// unknownKinds is what an unknown may become.
var unknownKinds = []prim.Kinds{
	prim.KindInt, prim.KindDec, prim.KindBool, prim.KindString, prim.KindUnit, prim.KindList,
	prim.KindPair, prim.KindRecord, prim.KindFunction, prim.KindQuoted, prim.KindContinuation,
}

// opens lets an unknown flow into v.
func (c *checker) opens(v *variable, pos int, name string) {
	if v.open != nil || v.fixed {
		return
	}
	s := &seed{v: v, pos: pos, name: name, deep: prim.KindAny}
	s.shape = c.shape(0)
	s.shape.unknown = s
	v.open = s
	c.seeds = append(c.seeds, s)
	c.add(v, s.shape)
}

// need says that a test has met an unknown.
func (c *checker) need(s *seed) {
	if !s.pending {
		s.pending = true
		c.pending = append(c.pending, s)
	}
}

// maxMixed is how many lists and records without keys may be inside each other before the
// next is one like that around it: what goes through a tree tests its parts apart.
const maxMixed = 16

// maxSeedDepth is how deep the parts of a parameter are followed.
const maxSeedDepth = 30

// become makes values of an unknown, of the kinds that are permitted wherever
// it has flowed.
func (c *checker) become(s *seed) {
	if s.tuple {
		return
	}
	kinds, last := s.deep, prim.Kinds(0)
	for _, h := range s.holders {
		if !c.spend(1 + len(h.v.watch)/16) {
			return
		}
		for _, w := range h.v.watch {
			accepts := w.accepts
			if h.notNull { // null doesn't come there
				accepts |= prim.KindUnit
			}
			kinds &= accepts
			last |= w.last
		}
	}
	s.used = true
	for up := s.parent; up != nil; up = up.parent {
		loops := func(h holder) bool {
			return h.v == up.v || h.v.loops && slices.ContainsFunc(up.holders, func(of holder) bool { return of.v == h.v })
		}
		if up.same == nil && slices.ContainsFunc(s.holders, loops) {
			// What calls itself with a part takes parts like the whole.
			s.same = up
			c.flow(up.v, s.v)
			if s.rest != nil && kinds&prim.KindUnit != 0 && !slices.ContainsFunc(s.holders, func(h holder) bool { return !h.notNull && loops(h) }) {
				s.makes(c, prim.KindUnit) // which ends it
			}
			return
		}
	}
	deep := 0
	for up := s; up != nil && up.mixed; up = up.parent {
		deep++
	}
	if deep > maxMixed {
		s.same = s.parent
		c.flow(s.parent.v, s.v)
		return
	}
	if s.deepness > maxSeedDepth {
		s.conflict = true
		c.unknownAt(s.pos, ReasonComplex, s.name, "parts of a parameter that are inside many others are tested when it runs")
		c.add(s.v, c.dynamic)
		return
	}
	for _, less := range []prim.Kinds{last, last & prim.KindPair} { // JSON has lists, and no pairs
		if kinds&^less&^prim.KindUnit != 0 {
			kinds &^= less
		}
	}
	if kinds == 0 || s.rest != nil && kinds == prim.KindUnit {
		s.conflict = true
		c.add(s.v, c.dynamic)
		return
	}
	for _, k := range unknownKinds {
		if kinds&k != 0 {
			s.makes(c, k)
		}
	}
}

func (s *seed) makes(c *checker, k prim.Kinds) {
	m := c.unknownOf(k, s)
	s.made = append(s.made, m)
	c.add(s.v, m)
}

// unknownOf is a value of the kind of which only that is known.
func (c *checker) unknownOf(k prim.Kinds, s *seed) *shape {
	m := c.shape(k)
	m.seed = s
	switch k {
	case prim.KindList:
		m.item = c.partOf(s, anItem)
		m.item.open.mixed = true
	case prim.KindPair:
		m.first, m.second = c.partOf(s, "<"), c.partOf(s, ">")
	case prim.KindRecord:
		m.record = &record{row: &row{rest: c.partOf(s, "*"), fields: map[string]*rowField{}, seed: s}}
		m.record.row.rest.open.mixed = true
	case prim.KindFunction:
		m.param, m.effects = c.variable(), c.lent
		m.result, m.raised = c.partOf(s, "="), c.partOf(s, "!")
		// The caller's function may apply what it is given, at any time.
		c.lends(m.param)
	case prim.KindContinuation:
		m.next = c.partOf(s, "~")
	}
	return m
}

// anItem is which part an item of a list is, whatever its place.
const anItem = "[]"

// partOf is a part of an unknown, an unknown itself.
func (c *checker) partOf(s *seed, part string) *variable {
	v := c.variable()
	c.opens(v, s.pos, s.name)
	v.open.parent, v.open.part, v.open.deepness = s, part, s.deepness+1
	return v
}

// alive is what an unknown may be.
func (s *seed) alive() []*shape {
	var alive []*shape
	if s.same != nil {
		alive = s.same.alive()
	}
	for _, m := range s.made {
		if s.dead&m.kind == 0 {
			alive = append(alive, m)
		}
	}
	return alive
}

// fits reports whether a value is left that passes all tests, and isn't null where some come behind one for null.
func (s *seed) fits() bool {
	return slices.ContainsFunc(s.alive(), func(m *shape) bool { return s.rest == nil || m.kind != prim.KindUnit })
}

// known reports whether it has become something.
func (s *seed) known() bool { return s.same != nil || len(s.made) > 0 }

// escapes says that the caller gets what flows into v: it may apply functions.
func (c *checker) escapes(v *variable) {
	if v == nil || v.escaped {
		return
	}
	v.escaped = true
	c.watches(v, prim.KindAny, func(s *shape) {
		if s.param != nil {
			c.opens(s.param, c.root.Pos(), "")
			c.escapes(s.result)
			c.flow(s.effects, c.effects)
			c.flow(s.raised, c.raised)
		}
		c.parts(s, c.escapes)
	})
}

// lends says that a function of the caller's gets what flows into v.
func (c *checker) lends(v *variable) {
	if v == nil || v.lent {
		return
	}
	v.lent = true
	c.escapes(v)
	c.watches(v, prim.KindAny, func(s *shape) {
		if s.param != nil {
			c.flow(s.effects, c.lent)
			c.lends(s.result)
		}
		c.parts(s, c.lends)
	})
}

// sinks says that what flows into v goes where nothing is known of it, and
// that functions are applied to anything.
func (c *checker) sinks(v *variable) {
	if v == nil || v.sunk {
		return
	}
	v.sunk = true
	c.watches(v, prim.KindAny, func(s *shape) {
		if s.param != nil {
			c.add(s.param, c.dynamic)
			c.sinks(s.result)
			c.flow(s.effects, c.effects)
			c.flow(s.effects, c.lent)
			c.flow(s.raised, c.raised)
		}
		c.parts(s, c.sinks)
	})
}

// parts visits the variables of a shape that holds others.
func (c *checker) parts(s *shape, visit func(*variable)) {
	for _, v := range []*variable{s.item, s.first, s.second, s.next} {
		if v != nil {
			visit(v)
		}
	}
	if s.record != nil {
		c.fieldsOf(s, func(_ string, v *variable) { visit(v) })
	}
}
