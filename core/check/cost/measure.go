package cost

import (
	"math/bits"
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// v returns a variable as a size, or what it is known to be at most.
func (a *analyser) v(m Measure, path string) size {
	if !strings.HasPrefix(path, "@") {
		switch m {
		case frac:
			m = Words
		case items:
			m = Len
		}
	}
	x := a.vars.variable(Var{Measure: m, Path: path})
	if by := a.solved[x.root]; by != nil {
		return a.resolveSize(by.solve(x))
	}
	return x.size()
}

// resolveSize returns a size in which variables are replaced that are known by now.
func (a *analyser) resolveSize(s size) size { return s.each(a.resolve) }

func (a *analyser) resolve(p poly) size {
	sum, changing := p.partition(func(v *variable) bool { return a.solved[v.root] != nil })
	if len(changing) == 0 {
		return sum
	}
	if !a.spend() {
		return infinite
	}
	for _, m := range changing {
		t := size{alts: []poly{{{c: m.c}}}}
		for _, f := range m.f {
			if a.solved[f.root] == nil {
				t = t.times(sizeOf(poly{{c: unit, f: []factor{f}}}))
				continue
			}
			s := f.of(a.v(f.Measure, f.Path))
			for range max(f.pow, 1) {
				t = t.times(s)
			}
		}
		sum = sum.plus(t)
	}
	return sum
}

// of returns the factor where its variable is s; its power is left to the caller.
func (f factor) of(s size) size {
	switch {
	case s.inf:
		return s
	case f.base > 0:
		q, ok := power(f.base, s.flat())
		if !ok {
			return infinite
		}
		return sizeOf(q)
	case f.Log:
		return sizeOf(s.flat().logarithm())
	}
	return s
}

// measure measures what is below v by a path without its root.
func (a *analyser) measure(v *aval, m Measure, rest string) size {
	s := size{}
	for _, x := range v.variants() {
		s = s.max(a.measureOne(x, m, rest))
	}
	return s
}

func (a *analyser) measureOne(v *aval, m Measure, rest string) size {
	if !a.spend() {
		return infinite
	}
	switch v.kind {
	case isTop:
		return infinite
	case isInput:
		a.vars.charge((len(v.path) + len(rest)) / 32)
		if m == Words {
			return a.wordsAt(v.path + rest)
		}
		return a.v(m, v.path+rest)
	case isWithin:
		switch m {
		case Int:
			return infinite
		case Bytes:
			return v.n.times(exactly(64)).plus(exactly(64))
		case Parts:
			return v.n.plus(exactly(1))
		}
		return v.n
	}
	if rest != "" {
		return a.measureBelow(v, m, rest)
	}
	switch m {
	case Len:
		switch v.kind {
		case isString, isList, isRecord:
			return v.n
		}
	case items:
		if v.kind == isList || v.kind == isRecord {
			return v.n
		}
	case Parts:
		return a.partsOf(v)
	case Int:
		if v.kind == isNumber {
			return v.abs
		}
	case Words:
		if v.kind == isNumber {
			return a.wordsOf(v)
		}
	case frac:
		if v.kind == isNumber {
			return v.frac
		}
	case Bytes:
		return a.bytes(v)
	}
	return size{}
}

// measureBelow goes one part down.
func (a *analyser) measureBelow(v *aval, m Measure, rest string) size {
	r := reader{s: rest}
	switch {
	case r.take("[**]"):
		s := a.measureOne(v, m, r.s)
		for _, x := range append(a.namedFields(v), v.item, v.a, v.b) {
			if x != nil {
				s = s.max(a.measure(x, m, rest))
			}
		}
		return s
	case r.take("[]"):
		if v.kind == isList && v.item != nil {
			return a.measure(v.item, m, r.s)
		} else if v.kind == isPair {
			return a.measure(v.a, m, r.s).max(a.measure(v.b, m, r.s))
		}
	case r.take(".1"), r.take(".2"):
		if v.kind == isPair {
			part := v.a
			if rest[1] == '2' {
				part = v.b
			}
			return a.measure(part, m, r.s)
		}
	case r.take("[*]"):
		if v.kind == isRecord {
			s := a.measure(v.item, m, r.s)
			for _, f := range a.namedFields(v) {
				s = s.max(a.measure(f, m, r.s))
			}
			return s
		}
	default:
		if v.kind == isRecord {
			quoted, err := strconv.QuotedPrefix(rest[1:])
			if err != nil {
				return infinite
			}
			key, _ := strconv.Unquote(quoted)
			f, ok := v.fields[key]
			if !ok {
				f = v.item
			}
			return a.measure(f, m, rest[1+len(quoted)+1:])
		}
	}
	return size{}
}

// spare is the words that a number may have in a loop, beyond the first, before
// they are counted: it has them for being added up, and they cost nothing.
const spare = 8

// wordsAt returns the words of the number at a path beyond its first.
func (a *analyser) wordsAt(path string) size {
	if strings.HasPrefix(path, "@") {
		return a.v(Words, path).plus(exactly(spare))
	}
	return a.v(Words, path)
}

// beyond returns a number's words beyond those that are spare.
func beyond(s size) size {
	if s.inf {
		return s
	}
	r := size{}
	for _, p := range s.alts {
		c, rest := p.split()
		r = r.max(size{alts: []poly{rest.plus(number(c - min(c, spare)))}})
	}
	return r
}

// wordsOf returns the words of a number beyond its first, and those of its digits
// after the point.
func (a *analyser) wordsOf(v *aval) size {
	c, w := a.parts(v)
	return exactly(c).plus(sizeOf(w)).atMost(v.words.plus(v.frac))
}

// assumed is how many bits lengths have at most: no memory holds more items.
const assumed = 40

// parts bounds a number's words: a constant, and what it has for being made of
// integers beyond 64 bits, or by multiplying over and over.
func (a *analyser) parts(v *aval) (constant uint64, rest poly) {
	if v.abs.inf {
		s := v.words.plus(v.frac)
		if s.inf {
			return over, nil
		}
		return s.flat().split()
	}
	sum, powers, ok := v.abs.flat().powers()
	if !ok {
		return over, nil
	}
	bits := uint64(bits.Len64(sum))
	for _, f := range powers {
		n := f.pow
		switch {
		case f.base > 0:
			rest = rest.plus(f.exponent().part(1, 64))
		case f.Log:
			bits += n * 16
		case f.Measure == Int:
			w := a.wordsAt(f.Path)
			if w.inf {
				return over, nil
			}
			c, more := w.flat().split()
			bits += n * 64 * (1 + c)
			rest = rest.plus(more.times(number(n)))
		default:
			bits += n * assumed
		}
	}
	c, w := v.frac.flat().split()
	if v.frac.inf {
		return over, nil
	}
	return bits/64 + c, rest.plus(w)
}

// bytes returns the size of a whole value.
func (a *analyser) bytes(v *aval) size {
	if !a.spend() {
		return infinite
	}
	part := exactly(64)
	switch v.kind {
	case isTop, isInput, isWithin:
		return a.measureOne(v, Bytes, "")
	case isNumber:
		return part.plus(a.wordsOf(v).times(exactly(24)))
	case isString:
		return part.plus(v.n)
	case isList:
		return part.plus(v.n.times(a.total(v.item).plus(part)))
	case isPair:
		return part.plus(a.total(v.a)).plus(a.total(v.b))
	case isRecord:
		s := part
		for _, f := range a.namedFields(v) {
			s = s.plus(a.total(f))
		}
		for k := range v.fields {
			s = s.plus(exactly(uint64(64 + len(k))))
		}
		if v.item != nothing {
			s = s.plus(v.n.times(a.total(v.item).plus(exactly(64)).plus(v.abs)))
		}
		return s
	case isCode:
		if v.code == nil {
			return infinite
		}
		return exactly(64 * a.nodes(v.code))
	}
	return part
}

// total returns the bytes of a value. What is shared in it is worked out once.
func (a *analyser) total(v *aval) size {
	if outermost := a.totals == nil; outermost {
		a.totals = map[*aval]size{}
		defer func() { a.totals = nil }()
	}
	if s, ok := a.totals[v]; ok {
		return s
	}
	s := size{}
	for _, x := range v.variants() {
		s = s.max(a.bytes(x))
	}
	a.totals[v] = s
	return s
}

// nodes counts a term's nodes, and the bytes of its strings as one for each 64; those of
// what may be counted again just once.
func (a *analyser) nodes(t term.Term) uint64 {
	again := false
	switch t := t.(type) {
	case *term.Lam, *term.Quote:
		again = true
	case *term.Prim:
		again = t.ID == prim.Try || t.ID == prim.Par
	}
	if again {
		if n, ok := a.counts[t]; ok {
			return n
		}
	}
	n := own(t)
	term.Children(t, func(c term.Term) bool {
		n += a.nodes(c)
		return true
	})
	if again {
		a.counts[t] = n
	}
	return n
}

// own returns what a node counts without those below it.
func own(t term.Term) uint64 {
	switch t := t.(type) {
	case *term.Str:
		return 1 + uint64(len(t.Value))/64
	case *term.Big:
		return 1 + uint64(t.Value.BitLen())/64
	}
	return 1
}
