package cost

import "slices"

// A size is a number that isn't known: at most the largest of some sums, or
// with inf anything.
type size struct {
	alts []poly
	inf  bool
}

var infinite = size{inf: true}

func exactly(n uint64) size {
	if n < uint64(len(numbers)) {
		return size{alts: numbers[n : n+1 : n+1]}
	}
	return size{alts: []poly{number(n)}}
}

func sizeOf(p poly) size {
	if p.over() {
		return infinite
	}
	return size{alts: []poly{p}}
}

// maxAlternatives is how many sums a size may be the largest of.
const maxAlternatives = 4

// flat returns one sum that is at least s.
func (s size) flat() poly {
	if len(s.alts) == 1 {
		return s.alts[0]
	}
	var p poly
	for _, q := range s.alts {
		p = p.max(q)
	}
	return p
}

// each is s with its sums replaced.
func (s size) each(f func(poly) size) size {
	r := size{inf: s.inf}
	for _, p := range s.alts {
		r = r.max(f(p))
	}
	return r
}

func (s size) norm() size {
	if s.inf {
		return infinite
	}
	if len(s.alts) == 1 {
		if s.alts[0].over() {
			return infinite
		}
		return s
	}
	var alts []poly
	for _, p := range s.alts {
		if p.over() {
			return infinite
		}
		if !slices.ContainsFunc(alts, p.equal) {
			alts = append(alts, p)
		}
	}
	if len(alts) > maxAlternatives {
		alts = []poly{size{alts: alts}.flat()}
	}
	return size{alts: alts}
}

func (s size) max(t size) size {
	switch {
	case s.inf || t.inf:
		return infinite
	case len(s.alts) == 0 || len(t.alts) == 1 && len(s.alts) == 1 && s.alts[0].equal(t.alts[0]):
		return t.norm()
	case len(t.alts) == 0:
		return s.norm()
	}
	return size{alts: append(slices.Clone(s.alts), t.alts...), inf: s.inf || t.inf}.norm()
}

func (s size) both(t size, op func(a, b poly) poly) size {
	if s.inf || t.inf {
		return infinite
	}
	if len(s.alts) == 1 && len(t.alts) == 1 {
		return s.one(t, op(s.alts[0], t.alts[0]))
	}
	var r size
	for _, a := range orZero(s.alts) {
		for _, b := range orZero(t.alts) {
			r.alts = append(r.alts, op(a, b))
		}
	}
	return r.norm()
}

// one returns p, which is s or t where it has their products.
func (s size) one(t size, p poly) size {
	switch {
	case p.over():
		return infinite
	case is(p, s.alts[0]):
		return s
	case is(p, t.alts[0]):
		return t
	case len(p) == 1 && len(p[0].f) == 0 && p[0].c%unit == 0:
		return exactly(p[0].c / unit)
	}
	return size{alts: []poly{p}}
}

// is reports whether p and q are the same in memory.
func is(p, q poly) bool { return len(p) == len(q) && (len(p) == 0 || &p[0] == &q[0]) }

func orZero(alts []poly) []poly {
	if len(alts) == 0 {
		return []poly{nil}
	}
	return alts
}

func (s size) plus(t size) size { return s.both(t, poly.plus) }
func (s size) times(t size) size {
	if !s.inf && len(s.flat()) == 0 || !t.inf && len(t.flat()) == 0 {
		return size{}
	}
	return s.both(t, poly.times)
}

// atMost returns s, or t where s is infinite.
func (s size) atMost(t size) size {
	if s.inf {
		return t
	}
	return s
}
