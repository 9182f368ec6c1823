package cost

import (
	"bytes"
	"cmp"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A variable is a Var of one analysis, which has it once: variables are told
// apart, and put in order, by their numbers.
type variable struct {
	Var
	root  string // what the path begins with
	id    int
	in    *table // nil: that of a bound
	log   *variable
	plain *variable
	// The variable itself, as a size: one allocation for all.
	own  [1]poly
	mono [1]mono
	self [1]factor
}

// A table is the variables of an analysis, and the work that it may still do, in
// parts of a step.
type table struct {
	vars map[Var]*variable
	left int
	told int // what was left when spend was told of it
	// See Options.
	spend func(steps int) bool
	room  []mono // for sums that are made
}

// grain is how many parts a step has: one for a product of a formula that is
// looked at.
const grain = 32

// portion is how many steps are told of at once.
const portion = 64

// charge takes work off what is left, and reports whether there was enough.
func (t *table) charge(n int) bool {
	if t == nil {
		return true
	}
	t.left = max(t.left-n, -1)
	for ; t.spend != nil && t.left < t.told; t.told -= portion * grain {
		if !t.spend(portion) {
			t.left, t.spend = -1, nil
		}
	}
	return t.left >= 0
}

// rooms is room for the sums of an analysis, which no report keeps: that of most is
// enough for another one.
var rooms = sync.Pool{New: func() any { return new([1024]mono) }}

// borrow gives the table room until what it gives back is called.
func (t *table) borrow() (free func()) {
	room := rooms.Get().(*[1024]mono)
	t.room = room[:]
	return func() {
		t.room = nil
		clear(room[:])
		rooms.Put(room)
	}
}

// sum reserves room for a sum of at most n products; made says that it has been
// used.
func (t *table) sum(n int) poly {
	if t == nil {
		return make(poly, 0, n)
	}
	if len(t.room) < n {
		t.room = make([]mono, max(n, min(256, 16+len(t.vars)*8)))
	}
	return t.room[:0:n]
}

func (t *table) made(p poly) poly {
	if t != nil {
		t.room = t.room[len(p):]
	}
	return p[:len(p):len(p)]
}

func (t *table) variable(v Var) *variable {
	x, ok := t.vars[v]
	if !ok {
		t.charge(1 + len(v.Path)/16)
		x = &variable{Var: v, root: rootOf(v.Path), id: len(t.vars), in: t}
		x.self[0] = factor{variable: x, pow: 1}
		x.mono[0] = mono{c: unit, f: x.self[:]}
		x.own[0] = x.mono[:]
		t.vars[v] = x
	}
	return x
}

// logarithm returns the number of bits of the variable.
func (v *variable) logarithm() *variable {
	if v.Log {
		return v
	}
	if v.log == nil {
		of := v.Var
		of.Log = true
		v.log = v.in.variable(of)
	}
	return v.log
}

// detach returns the variable without its analysis.
func (v *variable) detach() *variable {
	if v.in == nil {
		return v
	}
	if v.plain == nil {
		v.plain = &variable{Var: v.Var, root: v.root}
	}
	return v.plain
}

// size returns the variable itself.
func (v *variable) size() size { return size{alts: v.own[:]} }

func (v *variable) poly() poly { return v.own[0] }

// A factor is a variable to a power, or a number to the power of a variable.
type factor struct {
	*variable
	pow  uint64
	base uint64 // 0: it is none
}

// order orders the factors of a product while it is worked out.
func (f factor) order(g factor) int {
	if f.variable != g.variable {
		return cmp.Compare(f.id, g.id)
	}
	return cmp.Compare(min(f.base, 1), min(g.base, 1))
}

// compare orders the factors of a product as it is written.
func (f factor) compare(g factor) int {
	log := func(f factor) int {
		if f.Log {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(min(f.base, 1), min(g.base, 1)), strings.Compare(string(f.Measure), string(g.Measure)), strings.Compare(f.Path, g.Path), cmp.Compare(log(f), log(g)))
}

// A mono is a product of factors, in their order, with a coefficient.
type mono struct {
	c uint64
	f []factor
}

// order orders the products of a sum while it is worked out: the constant comes
// first.
func (m mono) order(n mono) int {
	if len(m.f) != len(n.f) {
		return cmp.Compare(len(m.f), len(n.f))
	}
	for i, f := range m.f {
		g := n.f[i]
		if f == g {
			continue
		}
		if c := f.order(g); c != 0 {
			return c
		}
		if f.pow != g.pow {
			return cmp.Compare(f.pow, g.pow)
		}
		return cmp.Compare(f.base, g.base)
	}
	return 0
}

func (m mono) times(n mono) mono {
	r := mono{c: times(m.c, n.c)}
	a, b := m.f, n.f
	switch {
	case len(a) == 0:
		r.f = b
		return r
	case len(b) == 0:
		r.f = a
		return r
	}
	r.f = make([]factor, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch c := a[0].order(b[0]); {
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

// sort returns products, which it may change, as a sum.
func (p poly) sort() poly {
	if !slices.IsSortedFunc(p, mono.order) {
		slices.SortFunc(p, mono.order)
	}
	r := p[:0]
	for _, m := range p {
		if n := len(r); n > 0 && r[n-1].order(m) == 0 {
			r[n-1].c = sat(r[n-1].c, m.c)
			continue
		}
		r = append(r, m)
	}
	return r
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

// key returns the factors of a product as it is written, appended.
func (m mono) key(b []byte) []byte {
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
	return b
}

// written orders the products of a sum as it is written.
func (m mono) written(n mono) int {
	if c := cmp.Compare(m.degree(), n.degree()); c != 0 {
		return c
	}
	var a, b [128]byte
	return bytes.Compare(m.key(a[:0]), n.key(b[:0]))
}

// canonical returns a sum as it is written, without its analysis: the constant
// first, then by degree and name.
func canonical(p poly) poly {
	if len(p) == 0 {
		return nil
	}
	n := 0
	for _, m := range p {
		n += len(m.f)
	}
	q, all := make(poly, len(p)), make([]factor, 0, n)
	for i, m := range p {
		from := len(all)
		for _, x := range m.f {
			all = append(all, factor{x.detach(), x.pow, x.base})
		}
		m.f = all[from:len(all):len(all)]
		if len(m.f) > 1 {
			slices.SortFunc(m.f, factor.compare)
		}
		q[i] = m
	}
	slices.SortFunc(q, mono.written)
	return q
}
