package cost

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// asNumber returns v as a number.
func (a *analyser) asNumber(v *aval) *aval {
	var r *aval
	for _, x := range v.variants() {
		var n *aval
		switch x.kind {
		case isNumber:
			n = x
		case isInput:
			n = &aval{kind: isNumber, abs: a.v(Int, x.path), words: a.wordsAt(x.path), frac: a.v(frac, x.path), lin: &linear{of: [2]part{{x.path, 1}}, by: 1}}
		case isTop:
			n = &aval{kind: isNumber, abs: infinite, words: infinite, frac: infinite}
		case isWithin:
			n = &aval{kind: isNumber, abs: infinite, words: x.n, frac: x.n}
		default:
			continue
		}
		if r == nil {
			r = n
		} else {
			r, _ = a.merge(r, n)
		}
		if r == nil {
			return &aval{kind: isNumber, abs: infinite, words: infinite, frac: infinite}
		}
	}
	if r == nil {
		return literalNumber(zero)
	}
	return r
}

// asList returns how many items v has, and what they are; asBytes the bytes of a
// string.
func (a *analyser) asList(v *aval) (n size, item *aval) {
	item = nothing
	for _, x := range v.variants() {
		switch x.kind {
		case isList:
			n, item = n.max(x.n), a.join(item, x.item)
		case isInput:
			n, item = n.max(a.lengthAt(x.path)), a.join(item, a.below(x, "[]"))
		case isTop:
			return infinite, top
		case isWithin:
			n, item = n.max(x.n), a.join(item, x)
		}
	}
	return n, item
}

func (a *analyser) asBytes(v *aval) size {
	s := size{}
	for _, x := range v.variants() {
		switch x.kind {
		case isString, isInput, isTop, isWithin:
			s = s.max(a.measureOne(x, Len, ""))
		}
	}
	return s
}

// field returns what a record has under a key; nil stands for any.
func (a *analyser) field(v *aval, key *string) *aval {
	r := nothing
	for _, x := range v.variants() {
		switch x.kind {
		case isRecord:
			if key != nil {
				if f, ok := x.fields[*key]; ok {
					r = a.join(r, f)
					continue
				}
				r = a.join(r, x.item)
				continue
			}
			r = a.join(r, x.item)
			for _, f := range a.namedFields(x) {
				r = a.join(r, f)
			}
		case isInput:
			if key != nil {
				r = a.join(r, a.below(x, "["+strconv.Quote(*key)+"]"))
			} else {
				r = a.join(r, a.below(x, "[*]"))
			}
		case isTop:
			return top
		case isWithin:
			r = a.join(r, x)
		}
	}
	return r
}

// perBytes returns the steps of going through n units, of which many are free: one
// for each so many.
func perBytes(s size, many uint64) (poly, bool) {
	if s.inf {
		return nil, false
	}
	c, rest := s.flat().split()
	if c == over {
		return nil, false
	}
	p := number(c / many)
	if len(rest) > 0 {
		p = p.plus(number(1)).plus(rest.part(1, many))
	}
	return p, true
}

// free is the words of numbers that cost nothing further.
const free = 64

// linear returns the further steps of a row that goes through the words of numbers.
func (a *analyser) linear(x, y *aval) (poly, bool) {
	cx, wx := a.parts(x)
	cy, wy := a.parts(y)
	if cx == over || cy == over {
		return nil, false
	}
	cx, cy = cx+1, cy+1
	both := wx.plus(wy) // decimals are aligned: each may be as long as both
	c := cx + cy
	if c <= free/2 {
		return both.part(1, 32), true
	}
	return number(c/64 + 1).plus(both.part(1, 64)), true
}

// product returns the further steps of a row that multiplies the words of numbers.
func (a *analyser) product(x, y *aval) (poly, bool) {
	cx, wx := a.parts(x)
	cy, wy := a.parts(y)
	if cx == over || cy == over {
		return nil, false
	}
	w := wx.plus(wy)
	c := cx + cy + 2
	n := number(c).plus(w)
	if c <= free/2 {
		// One of them has more than 32 words that the constant doesn't have.
		return w.times(n).part(1, 32), true
	}
	return n.times(n).part(1, 64), true
}

// row evaluates a strict row: what it gives, and what it takes besides its step.
func (a *analyser) row(t *term.Prim, r *prim.Row, args []*aval) (*aval, cost) {
	if slices.Contains(args, nothing) {
		return nothing, cost{}
	}
	var v *aval
	var steps poly
	var ok bool
	if of, grows := r.Facts(t.Args); grows != nil {
		v, steps, ok = a.grown(r, of, grows, args)
	} else {
		v, steps, ok = a.strict(t, r.Name, args)
	}
	if !ok {
		why := "the operands of " + r.Name + " can be of any size"
		if r.Analysis != nil {
			why = r.Name + " reasons about code, and how much work that is shows only then"
		}
		_, c := a.lost(t, why)
		return v, c
	}
	memory := steps.times(number(1024)) // a step is at most 512 bytes, or 16 items
	for _, m := range steps {
		a.inexact = a.inexact || len(m.f) == 0
		for _, f := range m.f {
			a.inexact = a.inexact || f.Measure != Words
		}
	}
	var made poly
	finite := true
	if n, small := shared[r.Name]; small && !(r.Name == "at" && len(args) == 3) {
		made = number(n) // what it gives shares its parts with the operands
	} else {
		made, finite = a.result(v)
	}
	return v, cost{steps: steps, memory: memory.plus(made), vast: !finite}
}

// shared is the bytes that rows make that give parts of their operands, or put
// one more to them.
var shared = map[string]uint64{
	"cons": 64, "head": 64, "tail": 64, "nth": 64, "at": 64, "fst": 64, "snd": 64, "get": 64, "pair": 64, "put": 4096, "del": 4096,
	"equal": 64, "compare": 64, "has": 64, "isEmpty": 64, "raise": 2048, "no_match": 64,
}

// result bounds the bytes that a row makes.
func (a *analyser) result(v *aval) (poly, bool) {
	s := size{}
	for _, x := range v.variants() {
		switch x.kind {
		case isString:
			s = s.max(x.n.plus(exactly(64)))
		case isNumber:
			w := a.wordsOf(x)
			s = s.max(w.times(exactly(16)).plus(exactly(64)))
		case isList:
			// Lists of more than 32 items are trees.
			s = s.max(x.n.times(exactly(32)).plus(exactly(512)))
		case isRecord:
			s = s.max(x.n.times(exactly(64)).plus(exactly(512)))
		default:
			s = s.max(exactly(128))
		}
	}
	if s.inf {
		return nil, false
	}
	return s.flat(), true
}

// strict returns what a strict row gives, and its further steps; ok is false where
// they have no bound.
func (a *analyser) strict(t *term.Prim, name string, args []*aval) (v *aval, steps poly, ok bool) {
	arg := func(i int) *aval { return args[min(i, len(args)-1)] }
	switch name {
	case "add", "sub", "mul", "div", "mod", "ratio", "eq", "lt", "lte", "gt", "gte":
		return a.arithmetic(name, a.asNumber(arg(0)), a.asNumber(arg(1)))
	case "div_dec", "round_dec", "to_int", "to_dec":
		return a.decimal(t, name, args)
	case "not":
		x := arg(0)
		return &aval{kind: isBool, yes: x.no, no: x.yes, is: -x.is}, nil, true
	case "type_of":
		if name := arg(0).name(); a.leaf && name != "" {
			return literalText(name), nil, true
		}
		return aText(exactly(16)), nil, true
	case "nil":
		return list(exactly(0), nothing), nil, true
	case "pair":
		return &aval{kind: isPair, a: arg(0), b: arg(1)}, nil, true
	case "fst", "snd":
		return a.half(arg(0), name == "fst"), nil, true
	case "raise", "no_match":
		steps, ok = perBytes(a.total(arg(0)), 512)
		return nothing, steps, ok || name == "no_match"
	case "equal", "compare":
		x, y := a.total(arg(0)), a.total(arg(1))
		if c, rest := y.flat().split(); x.inf || !y.inf && len(rest) == 0 && c < over {
			x = y // they are gone through together
		} else if c, rest := x.flat().split(); !(len(rest) == 0 && c < over) && !y.inf {
			x = x.plus(y)
		}
		steps, ok = perBytes(x, 512)
		if name == "equal" {
			v = &aval{kind: isBool, whole: cmp.Or(arg(0).whole, arg(1).whole)}
			if a.leaf {
				v.is = equals(arg(0), arg(1))
			}
			if v.whole != "" {
				v.tellWhole()
			}
			return v, steps, ok
		}
		return &aval{kind: isNumber, abs: exactly(1), words: infinite}, steps, ok
	}
	if v, steps, ok, done := a.listRow(name, args); done {
		return v, steps, ok
	}
	if v, steps, ok, done := a.textRow(name, args); done {
		return v, steps, ok
	}
	return a.recordRow(name, args)
}

func (a *analyser) half(v *aval, first bool) *aval {
	r := nothing
	for _, x := range v.variants() {
		switch x.kind {
		case isPair:
			if first {
				r = a.join(r, x.a)
			} else {
				r = a.join(r, x.b)
			}
		case isInput:
			if first {
				r = a.join(r, a.below(x, ".1"))
			} else {
				r = a.join(r, a.below(x, ".2"))
			}
		case isTop:
			return top
		case isWithin:
			r = a.join(r, x)
		}
	}
	return r
}

// item returns what stands at an index of a list, a pair, a string or a record.
func (a *analyser) item(v, index *aval) *aval {
	_, r := a.asList(v)
	r = a.itemAt(v, r, []*aval{index})
	if v.kind == isPair {
		return a.join(v.a, v.b)
	}
	if v.kind != isList && v.kind != isRecord {
		r = a.join(r, aText(exactly(4)))
	}
	if index.kind != isNumber {
		r = a.join(r, a.field(v, index.lit))
	}
	return r
}

// tailPath notes that a list is a part of what is at a path.
func tailPath(v *aval) string {
	switch v.kind {
	case isInput:
		return v.path
	case isList:
		return v.tailOf
	}
	return ""
}

func (a *analyser) listRow(name string, args []*aval) (v *aval, steps poly, ok, done bool) {
	x := args[0]
	ok, done = true, true
	switch name {
	case "cons":
		n, item := a.asList(args[1])
		v = list(n.plus(exactly(1)), a.join(item, args[0]))
		v.addedTo(args[1], args[0])
		return v, nil, true, true
	case "head", "nth":
		_, item := a.asList(x)
		return a.itemAt(x, item, args[1:]), nil, true, true
	case "tail":
		n, item := a.asList(x)
		v = list(n, item)
		v.tailOf, v.spot, v.from = tailPath(x), a.tailSpot(x), a.origin(x)
		return v, nil, true, true
	case "isEmpty":
		if a.leaf && x.kind == isList && isZero(x.n) {
			return &aval{kind: isBool, is: 1}, nil, true, true
		}
		return aBool, nil, true, true
	case "length":
		n, _ := a.asList(x)
		if c, rest := n.flat().split(); n.inf || len(rest) > 0 || c > 1<<14 {
			steps, ok = perBytes(n, 64)
		}
		n = n.max(a.asBytes(x))
		v = &aval{kind: isNumber, abs: n, words: exactly(0)}
		if x.kind == isInput && x.spot == "" && a.states[x.path] {
			v.lin = &linear{of: alone(lengthOf(x.path)), by: 1}
		}
		return v, steps, ok, true
	case "set_nth", "push":
		n, item := a.asList(x)
		last := args[len(args)-1]
		v = list(n.plus(exactly(1)), a.join(item, last))
		if name == "push" {
			v.addedTo(x, last)
		}
		return v, nil, true, true
	case "slice", "at":
		b := a.asBytes(x)
		steps, ok = perBytes(b, 512)
		if len(args) == 3 {
			if v = a.cut(x, args[1], args[2]); v != nil {
				return v, steps, ok, true
			}
		}
		v = nothing
		for _, y := range x.variants() {
			if name == "at" && len(args) == 2 {
				v = a.join(v, a.item(y, args[1]))
				continue
			}
			switch y.kind {
			case isString:
				v = a.join(v, aText(y.n))
			case isList:
				part := list(y.n, y.item)
				part.from = y.from
				v = a.join(v, part)
			default:
				v = a.join(v, a.sliced(y))
			}
		}
		return v, steps, ok, true
	case "contains":
		steps, ok = perBytes(a.total(x).plus(a.total(args[1])), 512)
		if n, item := a.asList(x); item != nothing {
			// Each item is held against the other value, which is no larger.
			p, okP := perBytes(n.times(a.total(item).plus(exactly(64))).plus(exactly(64)), 512)
			steps, ok = steps.plus(p), ok && okP
		}
		return aBool, steps, ok, true
	case "range":
		from, to := a.asNumber(x), a.asNumber(args[1])
		n := to.abs
		if k, ok := from.lin.constant(); !ok || k < 0 {
			n = n.plus(from.abs)
		}
		steps, ok = perBytes(n, 16)
		item := &aval{kind: isNumber, abs: from.abs.max(to.abs), words: exactly(0)}
		return list(n, item), steps, ok, true
	}
	return nil, nil, false, false
}
