package normal

import (
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A sum is a polynomial: what sums, differences and products of integers come to,
// each value of which nothing more is known being an unknown. Two of them are equal
// for all integers only if they are the same. Of numbers that may be decimals that
// isn't so: a decimal has a bound of digits, which one way to compute may meet where
// another doesn't.
type sum struct{ terms []product }

// A product is unknowns, in their order, and how often they are there; without
// unknowns, an integer. times is never 0.
type product struct {
	of    []*atom
	times *big.Int
}

// The bounds of a sum. What would be larger is a row like any other.
const (
	maxTerms       = 24
	maxDegree      = 8
	maxFactorWords = 16 // words of a factor
)

// asSum returns an integer as a sum.
func asSum(v val, b *block) (*sum, bool) {
	switch v := v.(type) {
	case lit:
		i, ok := v.v.(value.Int)
		if !ok || i.Words() > maxFactorWords {
			return nil, false
		}
		if i.Big().Sign() == 0 {
			return &sum{}, true
		}
		return &sum{[]product{{nil, i.Big()}}}, true
	case *atom:
		if b.kinds(v) != prim.KindInt {
			return nil, false
		}
		if v.c != nil && v.c.sum != nil {
			return v.c.sum, true
		}
		return &sum{[]product{{[]*atom{v}, big.NewInt(1)}}}, true
	}
	return nil, false
}

// arithmetic normalises add, sub and mul of integers.
func (n *normaliser) arithmetic(id term.ID, args []val, b *block) (v val, done bool) {
	x, okX := asSum(args[0], b)
	y, okY := asSum(args[1], b)
	if !okX || !okY {
		return nil, false
	}
	s := n.combine(id, x, y)
	if s == nil || len(s.terms) > maxTerms {
		return nil, false
	}
	for _, t := range s.terms {
		if len(t.of) > maxDegree || t.times.BitLen() > 64*maxFactorWords {
			return nil, false
		}
	}
	switch {
	case len(s.terms) == 0:
		return lit{value.NewInt(0)}, true
	case len(s.terms) == 1 && len(s.terms[0].of) == 0:
		return lit{value.NewBig(s.terms[0].times)}, true
	case len(s.terms) == 1 && len(s.terms[0].of) == 1 && s.terms[0].times.IsInt64() && s.terms[0].times.Int64() == 1:
		return s.terms[0].of[0], true
	}
	key := s.key()
	if a, ok := b.done(key); ok {
		return b.resolve(a), true
	}
	c := &comp{what: aSum, sum: s, result: &atom{kinds: prim.KindInt}, total: true}
	for _, t := range s.written() {
		for _, a := range t.of {
			c.args = append(c.args, a)
		}
	}
	v, ok := n.leave(b, c)
	if !ok {
		return nil, true
	}
	b.note(key, c.result)
	return v, true
}

// combine returns what one of the rows makes of two sums; nil where that takes too
// much.
func (n *normaliser) combine(id term.ID, x, y *sum) *sum {
	var all []product
	switch id {
	case prim.Mul:
		if len(x.terms)*len(y.terms) > 4*maxTerms {
			return nil
		}
		for _, t := range x.terms {
			for _, u := range y.terms {
				p := product{append(slices.Clone(t.of), u.of...), new(big.Int).Mul(t.times, u.times)}
				slices.SortFunc(p.of, func(a, b *atom) int { return n.compare(a, b) })
				all = append(all, p)
			}
		}
	default:
		all = slices.Clone(x.terms)
		for _, u := range y.terms {
			if id == prim.Sub {
				u.times = new(big.Int).Neg(u.times)
			}
			all = append(all, u)
		}
	}
	if !n.spend(len(all)) {
		return nil
	}
	slices.SortFunc(all, func(a, b product) int { return n.products(a, b) })
	s := &sum{}
	for _, t := range all {
		if last := len(s.terms) - 1; last >= 0 && slices.Equal(s.terms[last].of, t.of) {
			s.terms[last].times = new(big.Int).Add(s.terms[last].times, t.times)
		} else {
			s.terms = append(s.terms, t)
		}
	}
	s.terms = slices.DeleteFunc(s.terms, func(t product) bool { return t.times.Sign() == 0 })
	return s
}

// products orders products: those of more unknowns first.
func (n *normaliser) products(a, b product) int {
	if len(a.of) != len(b.of) {
		return len(b.of) - len(a.of)
	}
	for i := range a.of {
		if c := n.compare(a.of[i], b.of[i]); c != 0 {
			return c
		}
	}
	return 0
}

func (s *sum) key() string {
	var w strings.Builder
	w.WriteString("sum")
	for _, t := range s.terms {
		w.WriteString(" " + t.times.String())
		for _, a := range t.of {
			w.WriteString("#" + strconv.Itoa(a.id))
		}
	}
	return w.String()
}

// written returns the terms in the order in which they are written: one that isn't
// taken away is first, if there is one.
func (s *sum) written() []product {
	first := slices.IndexFunc(s.terms, func(t product) bool { return t.times.Sign() > 0 })
	if first <= 0 {
		return s.terms
	}
	all := []product{s.terms[first]}
	return append(append(all, s.terms[:first]...), s.terms[first+1:]...)
}

// sum writes a sum.
func (w *writer) sum(s *sum, names *names) term.Term {
	var whole term.Term
	for _, t := range s.written() {
		times := t.times
		less := whole != nil && times.Sign() < 0
		if less {
			times = new(big.Int).Neg(times)
		}
		var one term.Term
		for _, a := range t.of {
			if v := w.val(a, names); one == nil {
				one = v
			} else {
				one = &term.Prim{ID: prim.Mul, Args: []term.Term{one, v}}
			}
		}
		if k := literal(value.NewBig(times)); one == nil {
			one = k
		} else if !times.IsInt64() || times.Int64() != 1 {
			one = &term.Prim{ID: prim.Mul, Args: []term.Term{one, k}}
		}
		switch {
		case whole == nil:
			whole = one
		case less:
			whole = &term.Prim{ID: prim.Sub, Args: []term.Term{whole, one}}
		default:
			whole = &term.Prim{ID: prim.Add, Args: []term.Term{whole, one}}
		}
	}
	w.deepest = max(w.deepest, w.nesting+maxTerms+maxDegree)
	return whole
}

// decide decides a comparison of integers whose difference is known.
func (n *normaliser) decide(id term.ID, args []val, b *block) (val, bool) {
	x, okX := asSum(args[0], b)
	y, okY := asSum(args[1], b)
	if !okX || !okY || len(x.terms)+len(y.terms) < 2 {
		return nil, false
	}
	d := n.combine(prim.Sub, x, y)
	if d == nil || len(d.terms) > 1 || len(d.terms) == 1 && len(d.terms[0].of) > 0 {
		return nil, false
	}
	sign := 0
	if len(d.terms) == 1 {
		sign = d.terms[0].times.Sign()
	}
	return lit{value.Bool(id == prim.Eq && sign == 0 || id == prim.Lte && sign <= 0 || id == prim.Lt && sign < 0)}, true
}
