package normal

import (
	"cmp"
	"slices"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// maxCompared is how many parts one comparison of two values looks at.
const maxCompared = 200

// An order compares values by what they are made of, so that it makes no
// difference in which order a program comes to them. Parameters, and what must be
// done in an order, come first, in that order; what only computes comes by how deep
// it is, by its row and by its operands.
type order struct{ left int }

func (n *normaliser) compare(x, y val) int {
	o := order{maxCompared}
	c := o.vals(x, y)
	n.spend((maxCompared - o.left) / 16)
	return c
}

func (o *order) atoms(a, b *atom) int {
	if o.left--; a == b || o.left < 0 {
		return cmp.Compare(a.id, b.id)
	}
	pureA, pureB := a.c != nil && a.c.pure, b.c != nil && b.c.pure
	switch {
	case !pureA && !pureB:
		return cmp.Compare(a.id, b.id)
	case !pureA:
		return -1
	case !pureB:
		return 1
	}
	if c := cmp.Or(cmp.Compare(a.c.depth, b.c.depth), cmp.Compare(a.c.what, b.c.what), cmp.Compare(a.c.id, b.c.id), cmp.Compare(len(a.c.args), len(b.c.args))); c != 0 {
		return c
	}
	for i := range a.c.args {
		if c := o.vals(a.c.args[i], b.c.args[i]); c != 0 {
			return c
		}
	}
	if a.c.sum != nil {
		if c := slices.CompareFunc(a.c.sum.terms, b.c.sum.terms, func(x, y product) int { return x.times.Cmp(y.times) }); c != 0 {
			return c
		}
	}
	return cmp.Compare(a.id, b.id)
}

// rank orders the of kinds of values: what isn't known is first.
func rank(v val) int {
	switch v.(type) {
	case *atom:
		return 0
	case *closure, *fun:
		return 1
	case *cons:
		return 2
	case *pair:
		return 3
	case *record:
		return 4
	case quoted:
		return 5
	case empty:
		return 6
	}
	return 7
}

func (o *order) vals(x, y val) int {
	if o.left--; o.left < 0 {
		return 0
	}
	if c := cmp.Compare(rank(x), rank(y)); c != 0 {
		return c
	}
	switch x := x.(type) {
	case *atom:
		return o.atoms(x, y.(*atom))
	case *cons:
		y := y.(*cons)
		if c := o.vals(x.head, y.head); c != 0 {
			return c
		}
		return o.vals(x.tail, y.tail)
	case *pair:
		y := y.(*pair)
		if c := o.vals(x.a, y.a); c != 0 {
			return c
		}
		return o.vals(x.b, y.b)
	case *record:
		y := y.(*record)
		if c := slices.Compare(x.keys, y.keys); c != 0 {
			return c
		}
		for i := range x.vals {
			if c := o.vals(x.vals[i], y.vals[i]); c != 0 {
				return c
			}
		}
	case lit:
		return literals(x.v, y.(lit).v)
	}
	return 0
}

func literals(x, y value.Value) int {
	if c := cmp.Compare(prim.KindOf(x), prim.KindOf(y)); c != 0 {
		return c
	}
	switch x := x.(type) {
	case value.Int:
		return x.Big().Cmp(y.(value.Int).Big())
	case value.Dec:
		y := y.(value.Dec)
		return cmp.Or(cmp.Compare(x.Scale(), y.Scale()), x.Unscaled().Cmp(y.Unscaled()))
	case value.Bool:
		if x == y.(value.Bool) {
			return 0
		} else if !x {
			return -1
		}
		return 1
	case value.Str:
		return cmp.Compare(x, y.(value.Str))
	}
	return 0
}

// deeper returns one more than how deep the operands are of what only computes, so
// that nothing comes before what it is made of.
func (n *normaliser) deeper(args []val) int {
	deepest, left := 0, 64
	for _, v := range args {
		if !within(v, &deepest, &left) {
			return max(deepest, n.atoms) + 1 // deeper than all there is
		}
	}
	return deepest + 1
}

// within looks for the deepest in a value; false: it can't be known.
func within(v val, deepest, left *int) bool {
	if *left--; *left < 0 {
		return false
	}
	switch v := v.(type) {
	case *atom:
		if v.c != nil && v.c.pure {
			*deepest = max(*deepest, v.c.depth)
		}
	case *cons:
		return within(v.head, deepest, left) && within(v.tail, deepest, left)
	case *pair:
		return within(v.a, deepest, left) && within(v.b, deepest, left)
	case *record:
		for _, f := range v.vals {
			if !within(f, deepest, left) {
				return false
			}
		}
	case *fun, *closure:
		return false
	}
	return true
}

// symmetric reports whether a row's operands may change places.
func symmetric(id term.ID) bool {
	return id == prim.Add || id == prim.Mul || id == prim.Eq || id == idEqual
}
