package normal

import (
	"slices"

	"github.com/mcp-pif/mcp-pif/core/prim"
)

// merged returns a conditional whose branches do the same: what they do, once the
// condition is known to be a truth value.
func (n *normaliser) merged(c val, b *block, blocks []*block) (v val, ok, done bool) {
	x, y := blocks[0], blocks[1]
	p := pairing{of: map[*atom]*atom{}, left: 1000}
	if !p.block(x, y) {
		return nil, false, false
	}
	n.spend((1000 - p.left) / 16)
	if b.kinds(c) != prim.KindBool && !n.guard(c, prim.KindBool, b) {
		return nil, false, true
	}
	b.comps = append(b.comps, x.comps...)
	return x.result, !x.dead, true
}

// A pairing holds two blocks against each other: what one calls so is what the other
// calls otherwise.
type pairing struct {
	of   map[*atom]*atom
	left int
}

func (p *pairing) block(x, y *block) bool {
	if x.dead != y.dead || !slices.EqualFunc(x.comps, y.comps, p.comp) {
		return false
	}
	return x.dead || p.val(x.result, y.result)
}

func (p *pairing) comp(x, y *comp) bool {
	if x.what != y.what || x.id != y.id || x.name != y.name || x.in != y.in || x.guard != y.guard || x.total != y.total || (x.sum == nil) != (y.sum == nil) {
		return false
	}
	if !slices.EqualFunc(x.args, y.args, p.val) || !slices.EqualFunc(x.blocks, y.blocks, p.block) {
		return false
	}
	if x.sum != nil && !slices.EqualFunc(x.sum.terms, y.sum.terms, func(t, u product) bool {
		return t.times.Cmp(u.times) == 0 && slices.EqualFunc(t.of, u.of, func(a, b *atom) bool { return p.val(a, b) })
	}) {
		return false
	}
	p.of[x.result] = y.result
	return true
}

func (p *pairing) val(x, y val) bool {
	if p.left--; p.left < 0 || rank(x) != rank(y) {
		return false
	}
	switch x := x.(type) {
	case *atom:
		if a, ok := p.of[x]; ok {
			return val(a) == y
		}
		return val(x) == y
	case *cons:
		y := y.(*cons)
		return p.val(x.head, y.head) && p.val(x.tail, y.tail)
	case *pair:
		y := y.(*pair)
		return p.val(x.a, y.a) && p.val(x.b, y.b)
	case *record:
		y := y.(*record)
		return slices.Equal(x.keys, y.keys) && slices.EqualFunc(x.vals, y.vals, p.val)
	case *fun:
		y, ok := y.(*fun)
		if !ok {
			return false
		}
		p.of[x.param] = y.param
		return p.block(x.body, y.body)
	case lit:
		return literals(x.v, y.(lit).v) == 0
	case empty:
		return true
	}
	return false
}
