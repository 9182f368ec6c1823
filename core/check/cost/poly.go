package cost

import (
	"math"
	"math/bits"
	"slices"
)

// Measure is what of a value a variable of a bound stands for.
type Measure string

// The measures. Each is of all values at a path: the largest one.
const (
	// Len is the items of a list, the bytes of a string, the fields of a record.
	Len Measure = "len"
	// Int is the magnitude of a number, rounded up.
	Int Measure = "int"
	// Words is the 64-bit words that a number has beyond its first, with those
	// of the digits after a decimal's point: 0 for every number that fits 64 bits.
	Words Measure = "words"
	// Bytes is the size of a whole value: 64 for each part, and what strings,
	// keys and numbers take.
	Bytes Measure = "bytes"
	// Parts is how many values there are in a whole value, itself and the cells of lists
	// among them: those that are in several places count in each.
	Parts Measure = "parts"
	// items is Len of what is no string, of what a recursion works with.
	items Measure = "items"
	// frac is the words of a decimal's digits after the point, of what a loop
	// works with; inputs have them among Words.
	frac Measure = "frac"
	// Terms is the steps that evaluating the value as an input takes.
	Terms Measure = "terms"
)

// A Var is a variable of a bound: a measure of what is at a path, or with Log
// the number of its bits. A path begins with the name of a parameter, or of an
// operation whose answers are meant, "!fs.read" (in quotes, as every name that is
// no word); then follow the items of a
// list, [], the parts of a pair, .1 and .2, a record's field, ["k"], or all of
// its fields, [*], or all that is in a value at any depth, itself too, [**].
type Var struct {
	Measure Measure
	Path    string
	Log     bool
}

// unit is the coefficient that means 1: coefficients are multiples of 1/unit.
const unit = 1 << 12

// A poly is a sum of products, each of other factors than the others, in their
// order; nil is 0. It is never changed once it is made.
type poly []mono

// over is set in the coefficient of what is too large to be told.
const over = math.MaxUint64

// tooLarge is a sum that is too large or too complex to be told.
var tooLarge = poly{{c: over}}

func number(n uint64) poly {
	switch {
	case n == 0:
		return nil
	case n < uint64(len(numbers)):
		return numbers[n]
	}
	return poly{{c: scale(n)}}
}

// numbers is the small ones, of which there are many.
var numbers = func() (all [1025]poly) {
	for n := 1; n < len(all); n++ {
		all[n] = poly{{c: scale(uint64(n))}}
	}
	return all
}()

func scale(n uint64) uint64 {
	if n > over/unit {
		return over
	}
	return n * unit
}

func sat(a, b uint64) uint64 {
	s, carry := bits.Add64(a, b, 0)
	if carry != 0 {
		return over
	}
	return s
}

// times returns the product of two coefficients, rounded up.
func times(a, b uint64) uint64 {
	if a == over || b == over {
		return over
	}
	hi, lo := bits.Mul64(a, b)
	lo, carry := bits.Add64(lo, unit-1, 0)
	hi += carry
	if hi >= unit {
		return over
	}
	q, _ := bits.Div64(hi, lo, unit)
	return q
}

// maxProducts is how many products a sum may have; more are too complex to be told.
// While sums are worked out they may have twice as many.
const maxProducts = 200

// table returns the table of the variables, nil for a constant.
func (p poly) table() *table {
	if len(p) == 0 {
		return nil
	}
	if f := p[len(p)-1].f; len(f) > 0 {
		return f[0].in
	}
	return nil
}

// charge takes the work that an operation on both makes off what their analysis
// may still do, and reports whether there was enough left.
func charge(p, q poly, n int) bool {
	t := p.table()
	if t == nil {
		t = q.table()
	}
	return t.charge(n)
}

// merge adds p and q, with op of the coefficients where both have a product.
func (p poly) merge(q poly, op func(a, b uint64) uint64) poly {
	t := p.table()
	if t == nil {
		t = q.table()
	}
	if !t.charge(len(p) + len(q)) {
		return tooLarge
	}
	r := t.sum(len(p) + len(q))
	for len(p) > 0 && len(q) > 0 {
		switch c := p[0].order(q[0]); {
		case c < 0:
			r, p = append(r, p[0]), p[1:]
		case c > 0:
			r, q = append(r, q[0]), q[1:]
		default:
			r = append(r, mono{op(p[0].c, q[0].c), p[0].f})
			p, q = p[1:], q[1:]
		}
	}
	r = append(append(r, p...), q...)
	if len(r) > 2*maxProducts {
		return tooLarge
	}
	return t.made(r)
}

func (p poly) plus(q poly) poly {
	if len(p) == 0 {
		return q
	}
	if len(q) == 0 {
		return p
	}
	if len(p) == 1 && len(q) == 1 && len(p[0].f) == 0 && len(q[0].f) == 0 {
		if c := sat(p[0].c, q[0].c); c < unit*uint64(len(numbers)) && c%unit == 0 {
			return numbers[c/unit]
		}
	}
	return p.merge(q, sat)
}

// max returns at least both: the larger of each coefficient.
func (p poly) max(q poly) poly {
	if len(p) == 0 {
		return q
	}
	if len(q) == 0 || p.equal(q) {
		return p
	}
	return p.merge(q, func(a, b uint64) uint64 { return max(a, b) })
}

func (p poly) equal(q poly) bool {
	if len(p) != len(q) {
		return false
	}
	if len(p) > 0 && &p[0] == &q[0] {
		return true
	}
	if !charge(p, nil, len(p)) {
		return false
	}
	for i, m := range p {
		if m.c != q[i].c || m.order(q[i]) != 0 {
			return false
		}
	}
	return true
}

func (p poly) times(q poly) poly {
	if len(p) > len(q) {
		p, q = q, p
	}
	if len(p) == 0 {
		return nil
	}
	if len(p) == 1 && len(p[0].f) == 0 {
		return q.scale(p[0].c)
	}
	var r poly
	for _, a := range p {
		row := make(poly, len(q))
		work := 0
		for i, b := range q {
			row[i] = a.times(b)
			work += 1 + len(a.f) + len(b.f)
		}
		if !charge(p, q, work) {
			return tooLarge
		}
		if r = r.plus(row.sort()); len(r) == 1 && len(r[0].f) == 0 && r[0].c == over {
			return tooLarge
		}
	}
	return r
}

// scale returns p with each coefficient multiplied.
func (p poly) scale(c uint64) poly {
	if c == unit {
		return p
	}
	if len(p) == 1 && len(p[0].f) == 0 {
		if c = times(p[0].c, c); c > 0 && c%unit == 0 && c/unit < uint64(len(numbers)) {
			return numbers[c/unit]
		}
		return poly{{c: c}}
	}
	t := p.table()
	if !t.charge(len(p)) {
		return tooLarge
	}
	r := t.sum(len(p))
	for _, m := range p {
		r = append(r, mono{times(m.c, c), m.f})
	}
	return t.made(r)
}

// over reports whether p is too large or too complex to be told.
func (p poly) over() bool {
	if len(p) > maxProducts {
		return true
	}
	for _, m := range p {
		if m.c == over {
			return true
		}
		for _, f := range m.f {
			if f.pow > 16 {
				return true
			}
		}
	}
	return false
}

// partition returns the products of p without a variable that some says, as a size, and
// those with one.
func (p poly) partition(some func(*variable) bool) (size, poly) {
	if !charge(p, nil, len(p)) {
		return infinite, nil
	}
	has := func(m mono) bool {
		return slices.ContainsFunc(m.f, func(f factor) bool { return some(f.variable) })
	}
	if !slices.ContainsFunc(p, has) {
		return sizeOf(p), nil
	}
	var with, without poly
	for _, m := range p {
		if has(m) {
			with = append(with, m)
		} else {
			without = append(without, m)
		}
	}
	return sizeOf(without), with
}

// part returns p·num/den, rounded up.
func (p poly) part(num, den uint64) poly {
	if !charge(p, nil, len(p)) {
		return tooLarge
	}
	r := make(poly, len(p))
	for i, m := range p {
		if m.c != over {
			hi, lo := bits.Mul64(m.c, num)
			if lo += den - 1; hi != 0 || lo < den-1 {
				m.c = over
			} else {
				m.c = lo / den
			}
		}
		r[i] = m
	}
	return r
}

// split returns p's term without a variable, rounded up, and the others.
func (p poly) split() (constant uint64, rest poly) {
	if len(p) > 0 && len(p[0].f) == 0 {
		return whole(p[0].c), p[1:]
	}
	return 0, p
}

// whole returns a coefficient as a number, rounded up.
func whole(c uint64) uint64 {
	if c == over {
		return over
	}
	return (c + unit - 1) / unit
}

// power returns base to p: where p is a sum of variables and their logarithms, with whole
// coefficients.
func power(base uint64, p poly) (poly, bool) {
	r := number(1)
	for _, x := range p {
		c := whole(x.c)
		f := uint64(1)
		for range min(c, 65) {
			hi, lo := bits.Mul64(f, base)
			if hi != 0 {
				return nil, false
			}
			f = lo
		}
		if c > 64 && base > 1 {
			return nil, false
		}
		switch {
		case len(x.f) == 0:
			r = r.scale(scale(f))
		case len(x.f) == 1 && x.f[0].base == 0 && x.f[0].pow == 1 && x.f[0].Log:
			// 2 to the number of bits of v is 2v at most, and 1 where v is 0.
			of := x.f[0].Var
			of.Log = false
			for range bits.Len64(f - 1) {
				r = r.times(number(1).plus(x.f[0].in.variable(of).poly().scale(scale(2))))
			}
		case len(x.f) == 1 && x.f[0].base == 0 && x.f[0].pow == 1:
			r = r.times(poly{{c: unit, f: []factor{{variable: x.f[0].variable, base: f}}}})
		default:
			return nil, false
		}
	}
	return r, !r.over()
}

// logarithm returns at least the number of bits of p.
func (p poly) logarithm() poly {
	sum, powers, ok := p.powers()
	if !ok {
		return tooLarge
	}
	r := number(uint64(bits.Len64(sum)))
	for _, f := range powers {
		if f.base > 0 {
			r = r.plus(f.exponent())
			continue
		}
		r = r.plus(f.logarithm().poly().scale(scale(f.pow)))
	}
	return r
}

// exponent returns at least the number of bits of a number to the power of a
// variable.
func (f factor) exponent() poly { return f.poly().scale(scale(uint64(bits.Len64(f.base)))) }

// powers returns the sum of p's coefficients, and the variables with their largest
// powers, and with the largest numbers to their power.
func (p poly) powers() (sum uint64, powers []factor, ok bool) {
	for _, m := range p {
		sum = sat(sum, whole(m.c))
	next:
		for _, f := range m.f {
			for i := range powers {
				if x := &powers[i]; x.variable == f.variable && (x.base > 0) == (f.base > 0) {
					x.pow, x.base = max(x.pow, f.pow), max(x.base, f.base)
					continue next
				}
			}
			powers = append(powers, f)
		}
	}
	return sum, powers, charge(p, nil, len(p)*(1+len(powers)))
}
