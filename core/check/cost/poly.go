package cost

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
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
// its fields, [*].
type Var struct {
	Measure Measure
	Path    string
	Log     bool
}

// A factor is a variable to a power, or a number to the power of a variable.
type factor struct {
	Var
	pow  uint64
	base uint64 // 0: it is none
}

func (f factor) compare(g factor) int {
	log := func(f factor) int {
		if f.Log {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(min(f.base, 1), min(g.base, 1)), strings.Compare(string(f.Measure), string(g.Measure)), strings.Compare(f.Path, g.Path), cmp.Compare(log(f), log(g)))
}

// unit is the coefficient that means 1: coefficients are multiples of 1/unit.
const unit = 1 << 12

// A mono is a product of factors, in their order, with a coefficient.
type mono struct {
	c uint64
	f []factor
}

func (m mono) key() string {
	if len(m.f) == 0 {
		return ""
	}
	var b []byte
	for _, f := range m.f {
		b = append(b, f.Measure...)
		if f.Log {
			b = append(b, '\'')
		}
		b = append(b, ' ')
		b = append(b, f.Path...)
		b = append(b, ' ')
		b = strconv.AppendUint(b, f.pow, 10)
		b = append(b, '^')
		b = strconv.AppendUint(b, f.base, 10)
		b = append(b, ' ')
	}
	return string(b)
}

// A poly is a sum of products by their keys; nil is 0. It is never changed
// once it is made.
type poly map[string]mono

// over is set in the coefficient of what is too large to be told.
const over = math.MaxUint64

func number(n uint64) poly {
	switch {
	case n == 0:
		return nil
	case n < uint64(len(numbers)):
		return numbers[n]
	}
	return poly{"": {c: scaled(n)}}
}

// numbers is the small ones, of which there are many.
var numbers = func() (all [64]poly) {
	for n := range all {
		all[n] = poly{"": {c: scaled(uint64(n))}}
	}
	return all
}()

func scaled(n uint64) uint64 {
	if n > over/unit {
		return over
	}
	return n * unit
}

func variable(v Var) poly {
	m := mono{c: unit, f: []factor{{Var: v, pow: 1}}}
	return poly{m.key(): m}
}

func sat(a, b uint64) uint64 {
	s, carry := bits.Add64(a, b, 0)
	if carry != 0 {
		return over
	}
	return s
}

// times is the product of two coefficients, rounded up.
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

// most is how many products a sum may have; more are too complex to be told.
const most = 200

func (p poly) plus(q poly) poly {
	if len(p) == 0 {
		return q
	}
	if len(q) == 0 {
		return p
	}
	if n, ok := q[""]; ok && len(q) == 1 && len(p) == 1 {
		if m, ok := p[""]; ok && sat(m.c, n.c) < unit*uint64(len(numbers)) && (m.c+n.c)%unit == 0 {
			return number((m.c + n.c) / unit)
		}
	}
	r := make(poly, len(p)+len(q))
	for k, m := range p {
		r[k] = m
	}
	for k, m := range q {
		if old, ok := r[k]; ok {
			m.c = sat(m.c, old.c)
		}
		r[k] = m
	}
	return r
}

// max is at least both: the larger of each coefficient.
func (p poly) max(q poly) poly {
	if len(p) == 0 {
		return q
	}
	if len(q) == 0 {
		return p
	}
	r := make(poly, len(p)+len(q))
	for k, m := range p {
		r[k] = m
	}
	for k, m := range q {
		if old, ok := r[k]; ok {
			m.c = max(m.c, old.c)
		}
		r[k] = m
	}
	return r
}

func (p poly) equal(q poly) bool {
	if len(p) != len(q) {
		return false
	}
	for k, m := range p {
		if n, ok := q[k]; !ok || n.c != m.c {
			return false
		}
	}
	return true
}

func (p poly) times(q poly) poly {
	r := make(poly, len(p)*len(q))
	for ka, a := range p {
		for kb, b := range q {
			m := a.times(b)
			k := ka + kb // of a constant it is empty
			if ka != "" && kb != "" {
				k = m.key()
			}
			if old, ok := r[k]; ok {
				m.c = sat(m.c, old.c)
			}
			r[k] = m
		}
	}
	return r
}

func (m mono) times(n mono) mono {
	r := mono{c: times(m.c, n.c)}
	a, b := m.f, n.f
	if len(a) == 0 || len(b) == 0 {
		r.f = append(a[:len(a):len(a)], b...)
		return r
	}
	for len(a) > 0 && len(b) > 0 {
		switch c := a[0].compare(b[0]); {
		case c < 0:
			r.f, a = append(r.f, a[0]), a[1:]
		case c > 0:
			r.f, b = append(r.f, b[0]), b[1:]
		default:
			f := a[0]
			if f.base > 0 {
				hi, lo := bits.Mul64(f.base, b[0].base)
				f.base = lo
				if hi != 0 {
					r.c = over
				}
			} else {
				f.pow += b[0].pow
			}
			r.f, a, b = append(r.f, f), a[1:], b[1:]
		}
	}
	r.f = append(append(r.f, a...), b...)
	return r
}

// over reports whether p is too large or too complex to be told.
func (p poly) over() bool {
	if len(p) > most {
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

// part is p·num/den, rounded up.
func (p poly) part(num, den uint64) poly {
	r := make(poly, len(p))
	for k, m := range p {
		if m.c != over {
			hi, lo := bits.Mul64(m.c, num)
			if lo += den - 1; hi != 0 || lo < den-1 {
				m.c = over
			} else {
				m.c = lo / den
			}
		}
		r[k] = m
	}
	return r
}

// constant is p's term without a variable, rounded up, and rest the others.
func (p poly) split() (constant uint64, rest poly) {
	for k, m := range p {
		if k == "" {
			constant = whole(m.c)
			continue
		}
		if rest == nil {
			rest = poly{}
		}
		rest[k] = m
	}
	return constant, rest
}

// whole is a coefficient as a number, rounded up.
func whole(c uint64) uint64 {
	if c == over {
		return over
	}
	return (c + unit - 1) / unit
}

// sorted is p's products, the constant first, then by degree and name.
func (p poly) sorted() []mono {
	keys := make([]string, 0, len(p))
	for k := range p {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int {
		return cmp.Or(cmp.Compare(p[a].degree(), p[b].degree()), strings.Compare(a, b))
	})
	all := make([]mono, len(p))
	for i, k := range keys {
		all[i] = p[k]
	}
	return all
}

// degree orders products: by their powers, exponentials last.
func (m mono) degree() uint64 {
	d := uint64(0)
	for _, f := range m.f {
		if f.base > 0 {
			d += 1000
		} else {
			d += f.pow
		}
	}
	return d
}

// power is base to p: where p is a sum of variables with whole coefficients.
func power(base uint64, p poly) (poly, bool) {
	m := mono{c: unit}
	for _, x := range p.sorted() {
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
			m.c = times(m.c, scaled(f))
		case len(x.f) == 1 && x.f[0].base == 0 && x.f[0].pow == 1 && !x.f[0].Log:
			m = m.times(mono{c: unit, f: []factor{{Var: x.f[0].Var, base: f}}})
		default:
			return nil, false
		}
	}
	return poly{m.key(): m}, true
}

// logarithm is at least the number of bits of p.
func (p poly) logarithm() poly {
	sum := uint64(0)
	powers := map[Var]uint64{}
	for _, m := range p {
		sum = sat(sum, whole(m.c))
		for _, f := range m.f {
			if f.base > 0 {
				return nil
			}
			powers[f.Var] = max(powers[f.Var], f.pow)
		}
	}
	r := number(uint64(bits.Len64(sum)))
	for v, n := range powers {
		if !v.Log {
			v.Log = true
		}
		r = r.plus(variable(v).times(number(n)))
	}
	return r
}
