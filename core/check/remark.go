package check

import (
	"fmt"
	"slices"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// A Note is a place that does what it says, which is hardly what is meant.
type Note struct {
	Place
	Message string `json:"message"`
}

// A remark is a [Note] being made. A term may be typed many times: it is dropped
// where one of them shows that the term may be meant.
type remark struct {
	pos     int
	message string
	dropped bool
	// left and right are the kinds of what is compared.
	left, right prim.Kinds
	// unknown is what else is compared, if that never becomes known; some are nil.
	unknown []*seed
}

// stands reports whether it is a note.
func (x *remark) stands() bool {
	return x.message != "" && !x.dropped && !slices.ContainsFunc(x.unknown, func(s *seed) bool { return s != nil && !s.known() })
}

// remark is that on a term of the program; nil for one of the library.
func (c *checker) remark(t term.Term) *remark {
	x, ok := c.remarks[t]
	if !ok && c.library == elsewhere {
		x = &remark{pos: t.Pos()}
		c.remarks[t] = x
		c.remarked = append(c.remarked, x)
	}
	return x
}

// apart notes that two values are compared by equal, of the same kind or not.
func (c *checker) apart(t term.Term, a, b *shape, same bool) {
	x := c.remarks[t]
	if x == nil {
		return
	}
	x.dropped = x.dropped || same
	// What a caller gives may be null, though the code isn't seen to take it.
	asked := a.seed != nil && b.kind == prim.KindUnit || b.seed != nil && a.kind == prim.KindUnit
	if !same && !asked {
		x.left, x.right = x.left|a.kind, x.right|b.kind
		x.message = fmt.Sprintf("this is never true: %s and %s are never equal", describe(x.left), describe(x.right))
	}
}

// divided notes that the integer that a division gives is used as a number with
// digits after the point.
func (c *checker) divided(t term.Term) {
	if p, ok := t.(*term.Prim); !ok || p.ID != prim.Div {
		return
	}
	if x := c.remark(t); x != nil {
		x.message = `/ of two integers is rounded down, and this is used as a number with digits after the point: div_dec(a, b, 2, "half_even") gives two`
	}
}

// digits notes a division beside a decimal.
func (u *use) digits() {
	for i := range 2 {
		if _, ok := u.t.Args[1-i].(*term.Dec); ok {
			u.c.divided(u.t.Args[i])
		}
	}
}

// wants notes the kinds of the literals that an unknown is compared with.
func (u *use) wants() {
	for i, v := range u.args {
		k := literalKind(u.t.Args[1-i])
		u.c.watches(v, prim.KindAny, func(s *shape) {
			if s.unknown != nil {
				s.unknown.wants |= k
				s.unknown.freely = s.unknown.freely || k == 0
			}
		})
	}
}

// wanted is the kinds of the literals that an unknown is compared with, if it is
// compared with those of one kind only; else none.
func (s *seed) wanted() prim.Kinds {
	switch s.wants {
	case prim.KindNumber, prim.KindBool, prim.KindUnit:
		if !s.freely {
			return s.wants
		}
	}
	return 0
}
