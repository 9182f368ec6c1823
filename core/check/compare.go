package check

import (
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

type compareKey struct {
	a, b    *variable
	x       *test
	ordered bool
}

// compares demands that two values can be compared; ordered, that there is a
// less and a more.
func (c *checker) compares(a, b *variable, ordered bool, x *test, t term.Term) {
	k := compareKey{a, b, x, ordered}
	if a == nil || b == nil || c.compared[k] {
		return
	}
	c.compared[k] = true
	var sides [2][]*shape
	var kinds [2]prim.Kinds // of what isn't a caller's
	for i, v := range []*variable{a, b} {
		c.watches(v, prim.KindAny, func(s *shape) {
			sides[i] = append(sides[i], s)
			more := ordered && s.seed == nil && s.unknown == nil && kinds[i]|s.kind != kinds[i]
			if more {
				kinds[i] |= s.kind
			}
			for _, other := range sides[1-i] {
				if i == 0 {
					c.compareTwo(s, other, ordered, x, t)
				} else {
					c.compareTwo(other, s, ordered, x, t)
				}
				if more {
					other.among(kinds[i])
				}
			}
			s.among(kinds[1-i])
		})
	}
}

// among marks a caller's value that is ordered among values of several kinds, one of which is
// its own: whatever it is, it fits some of them, and none fits all.
func (s *shape) among(kinds prim.Kinds) {
	if kinds&prim.KindNumber != 0 {
		kinds |= prim.KindNumber
	}
	if s.seed != nil && s.kind&kinds != 0 && kinds != prim.KindNumber && kinds&(kinds-1) != 0 {
		s.seed.conflict = true
	}
}

// outermost reports whether what is compared is what stands there, or the items of a list, and no part of it.
func (x *test) outermost() bool { return x.inner == "" || x.inner == itsItems }

const itsItems = "its items"

// plain is the kinds without parts, which equal compares with everything.
const plain = prim.KindInt | prim.KindDec | prim.KindBool | prim.KindString | prim.KindUnit

const notEqual = prim.KindFunction | prim.KindContinuation

func (c *checker) compareTwo(a, b *shape, ordered bool, x *test, t term.Term) {
	if !c.spend(1) {
		return
	}
	if c.byPlace {
		likens(a, b)
	}
	if ordered {
		c.unsaid(a)
		c.unsaid(b)
	}
	if a.unknown != nil || b.unknown != nil {
		x.ok = true
		if y := c.remarks[t]; y != nil && !ordered && x.outermost() {
			y.unknown = append(y.unknown, a.unknown, b.unknown)
		}
		for i, s := range []*shape{a, b} {
			if u := s.unknown; u != nil {
				if other := []*shape{b, a}[i]; other.kind&plain == 0 {
					u.deep &= prim.KindData
				}
				if ordered && (a.unknown == nil || b.unknown == nil) && !a.dynamic && !b.dynamic {
					c.need(u)
				}
			}
		}
		if ordered && a.unknown != nil && b.unknown != nil {
			c.doubts = append(c.doubts, doubt{a, b, t, ReasonCompare, doubtful})
		}
		return
	}
	if a.dynamic || b.dynamic {
		x.ok = true
		if !ordered && x.outermost() {
			c.apart(t, a, b, true)
		}
		return
	}
	same := a.kind == b.kind || (a.kind|b.kind)&^prim.KindNumber == 0
	if !ordered && x.outermost() {
		c.apart(t, a, b, same)
	}
	bad := same && a.kind&notEqual != 0
	if ordered {
		bad = !same || a.kind&(notEqual|prim.KindQuoted) != 0
	}
	if bad {
		kinds := a.kind | b.kind
		switch {
		case a.seed != nil && b.seed != nil && a.kind == b.kind:
			x.unfit(a, kinds)
			x.unfit(b, kinds)
		case a.seed != nil && b.seed != nil:
			c.doubts = append(c.doubts, doubt{a, b, t, ReasonCompare, doubtful})
		case a.seed != nil:
			x.unfit(a, kinds)
		default:
			x.unfit(b, kinds)
		}
		return
	}
	x.ok = true
	if !same {
		return
	}
	inner := c.testOf(t, x.id, x.operand, "every part of them", x.want)
	switch a.kind {
	case prim.KindList:
		if a.items == nil || b.items == nil {
			c.compares(a.item, b.item, ordered, inner, t)
			return
		}
		for i := range min(len(a.items), len(b.items)) {
			c.compares(a.items[i], b.items[i], ordered, inner, t)
		}
	case prim.KindPair:
		c.compares(a.first, b.first, ordered, inner, t)
		c.compares(a.second, b.second, ordered, inner, t)
	case prim.KindRecord:
		c.compareRecords(a, b, ordered, inner, t)
	}
}

// A doubt is two of a caller's values that fit each other or not, by what they turn
// out to be. Tests that come later may leave nothing of it.
type doubt struct {
	a, b        *shape
	t           term.Term
	reason, why string
}

const doubtful = "what is compared, and so whether it can be, is known only when it runs"

// remains reports whether it is still open what a value is that doubts are about.
func (s *shape) remains() bool {
	if s.unknown != nil {
		return !s.unknown.known()
	}
	return s.seed.dead&s.kind == 0
}

// decide notes the doubts that nothing has removed. Where one value can't be of a
// kind that the other would have to be of for it, the other isn't of that either.
func (c *checker) decide() {
	for range 3 {
		for _, d := range c.doubts {
			if d.open() && c.spend(1) {
				d.settle(d.a, d.b)
				d.settle(d.b, d.a)
			}
		}
	}
	for _, d := range c.doubts {
		if d.open() {
			c.unknown(d.t, d.reason, "", d.why)
		}
	}
}

func (d doubt) open() bool { return d.a.remains() && d.b.remains() }

func (d doubt) settle(a, b *shape) {
	if a.unknown != nil || b.unknown != nil {
		return
	}
	if d.reason == ReasonCompare && b.kind == prim.KindUnit && a.kind != prim.KindUnit && a.seed.rest != nil {
		b.seed.dead |= prim.KindUnit // a is tested for null elsewhere, so what it is compared with here is none
		return
	}
	if a.seed == b.seed || b.base != nil || a.letter || b.letter || d.reason == ReasonIndex || d.reason != ReasonCompare && b.kind != prim.KindString {
		return
	}
	fit := b.kind
	if fit&prim.KindNumber != 0 {
		fit = prim.KindNumber
	}
	for _, m := range a.seed.alive() {
		if m.kind&fit != 0 {
			return
		}
	}
	b.seed.dead |= b.kind
}

// compareRecords compares the fields that may have one key.
func (c *checker) compareRecords(a, b *shape, ordered bool, x *test, t term.Term) {
	each := func(of, in *shape) {
		c.fieldsOf(of, func(key string, v *variable) {
			if key == "" {
				c.fieldsOf(in, func(other string, w *variable) { c.compares(v, w, ordered, x, t) })
			} else if w, p := c.lookup(in, key, false); p != absent {
				c.compares(v, w, ordered, x, t)
			}
		})
	}
	each(a, b)
	each(b, a)
}
