package cost

import (
	"strconv"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// asNumber is v as a number.
func (a *analyser) asNumber(v *aval) *aval {
	var r *aval
	for _, x := range v.variants() {
		var n *aval
		switch x.kind {
		case isNumber:
			n = x
		case isInput:
			n = &aval{kind: isNumber, abs: a.v(Int, x.path), words: a.wordsAt(x.path), frac: a.v(frac, x.path), aff: &affine{path: x.path}}
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

// asList is how many items v has, and what they are; asBytes the bytes of a
// string.
func (a *analyser) asList(v *aval) (n size, item *aval) {
	item = nothing
	for _, x := range v.variants() {
		switch x.kind {
		case isList:
			n, item = n.max(x.n), a.join(item, x.item)
		case isInput:
			n, item = n.max(a.v(Len, x.path)), a.join(item, input(x.path+"[]"))
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

// field is what a record has under a key; nil stands for any.
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
			for _, f := range x.fields {
				r = a.join(r, f)
			}
		case isInput:
			if key != nil {
				r = a.join(r, input(x.path+"["+strconv.Quote(*key)+"]"))
			} else {
				r = a.join(r, input(x.path+"[*]"))
			}
		case isTop:
			return top
		case isWithin:
			r = a.join(r, x)
		}
	}
	return r
}

// perBytes is the steps of going through n units, of which many are free: one
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

// linear is the further steps of a row that goes through the words of numbers.
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

// product is the further steps of a row that multiplies the words of numbers.
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

// row is a strict row: what it gives, and what it takes besides its step.
func (a *analyser) row(t *term.Prim, r *prim.Row, args []*aval) (*aval, cost) {
	for _, v := range args {
		if v == nothing {
			return nothing, cost{}
		}
	}
	v, steps, ok := a.strict(t, r.Name, args)
	if !ok {
		_, c := a.lost(t, "the operands of "+r.Name+" can be of any size")
		return v, c
	}
	memory := steps.times(number(1024)) // a step is at most 512 bytes, or 16 items
	for _, m := range steps {
		a.inexact = a.inexact || len(m.f) == 0
		for _, f := range m.f {
			a.inexact = a.inexact || f.Measure != Words
		}
	}
	made, finite := a.result(v, args)
	return v, cost{steps: steps, memory: memory.plus(made), vast: !finite}
}

// result is a bound of the bytes that a row makes.
func (a *analyser) result(v *aval, args []*aval) (poly, bool) {
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

// strict is what a strict row gives, and its further steps; ok is false where
// they have no bound.
func (a *analyser) strict(t *term.Prim, name string, args []*aval) (v *aval, steps poly, ok bool) {
	arg := func(i int) *aval { return args[min(i, len(args)-1)] }
	switch name {
	case "add", "sub", "mul", "div", "mod", "eq", "lt", "lte", "gt", "gte":
		return a.arithmetic(name, a.asNumber(arg(0)), a.asNumber(arg(1)))
	case "div_dec", "round_dec", "to_int", "to_dec":
		return a.decimal(t, name, args)
	case "not":
		x := arg(0)
		return &aval{kind: isBool, yes: x.no, no: x.yes}, nil, true
	case "type_of":
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
			return aBool, steps, ok
		}
		return integerOf(exactly(1)), steps, ok
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
				r = a.join(r, input(x.path+".1"))
			} else {
				r = a.join(r, input(x.path+".2"))
			}
		case isTop:
			return top
		case isWithin:
			r = a.join(r, x)
		}
	}
	return r
}

// tailed notes that a list is a part of what is at a path.
func tailed(v *aval) string {
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
		return list(n.plus(exactly(1)), a.join(item, args[0])), nil, true, true
	case "head", "nth":
		_, item := a.asList(x)
		return item, nil, true, true
	case "tail":
		n, item := a.asList(x)
		v = list(n, item)
		v.tailOf = tailed(x)
		return v, nil, true, true
	case "isEmpty":
		return aBool, nil, true, true
	case "length":
		n, _ := a.asList(x)
		if c, rest := n.flat().split(); n.inf || len(rest) > 0 || c > 1<<14 {
			steps, ok = perBytes(n, 64)
		}
		n = n.max(a.asBytes(x))
		return &aval{kind: isNumber, abs: n, words: exactly(0)}, steps, ok, true
	case "set_nth", "push":
		n, item := a.asList(x)
		last := args[len(args)-1]
		return list(n.plus(exactly(1)), a.join(item, last)), nil, true, true
	case "slice":
		b := a.asBytes(x)
		steps, ok = perBytes(b, 512)
		v = nothing
		for _, y := range x.variants() {
			switch y.kind {
			case isString:
				v = a.join(v, aText(y.n))
			case isList:
				v = a.join(v, list(y.n, y.item))
			default:
				v = a.join(v, y)
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
		if k := from.aff; k == nil || k.path != "" || k.offset < 0 {
			n = n.plus(from.abs)
		}
		steps, ok = perBytes(n, 16)
		item := &aval{kind: isNumber, abs: from.abs.max(to.abs), words: exactly(0)}
		return list(n, item), steps, ok, true
	}
	return nil, nil, false, false
}

// textRow is the rows of strings and JSON.
func (a *analyser) textRow(name string, args []*aval) (v *aval, steps poly, ok, done bool) {
	n := a.asBytes(args[0])
	all := size{}
	for _, x := range args {
		all = all.plus(a.asBytes(x))
	}
	switch name {
	case "concat":
		v = aText(n.plus(a.asBytes(args[1])))
		if args[0].lit != nil && args[1].lit != nil {
			v = literalText(*args[0].lit + *args[1].lit)
		}
		return v, nil, true, true
	case "split":
		steps, ok = perBytes(all, 512)
		parts, okP := perBytes(n.plus(exactly(1)), 16)
		return list(n.plus(exactly(1)), aText(n)), steps.plus(parts), ok && okP, true
	case "chars":
		steps, ok = perBytes(n, 16)
		return list(n, aText(exactly(4))), steps, ok, true
	case "join":
		l, item := a.asList(args[0])
		bytes := l.times(a.asBytes(item).plus(a.asBytes(args[1])))
		steps, ok = perBytes(l, 16)
		more, okM := perBytes(bytes, 512)
		return aText(bytes), steps.plus(more), ok && okM, true
	case "trim", "upper", "lower":
		steps, ok = perBytes(all, 512)
		return aText(n.times(exactly(3))), steps, ok, true
	case "replace":
		made := n.plus(n.times(a.asBytes(args[2])))
		steps, ok = perBytes(all, 512)
		more, okM := perBytes(made, 512)
		return aText(made), steps.plus(more), ok && okM, true
	case "index_of":
		steps, ok = perBytes(all, 512)
		return integerOf(n.plus(exactly(1))), steps, ok, true
	case "starts_with", "ends_with":
		steps, ok = perBytes(a.asBytes(args[1]), 512)
		return aBool, steps, ok, true
	case "parse_int":
		words := size{}
		if n.inf {
			return top, nil, false, true
		}
		c, rest := n.flat().split()
		words = exactly(c/19 + 1).plus(sized(rest.part(1, 16)))
		number := &aval{kind: isNumber, abs: infinite, words: words}
		steps, ok = a.product(number, literalNumber(zero))
		return number, steps, ok, true
	case "to_text", "to_json":
		s := a.total(args[0])
		v = aText(s.times(exactly(8)))
		steps, ok = perBytes(s.times(exactly(8)), 512)
		w := a.anyWords(args[0])
		if cw, rest := w.flat().split(); w.inf {
			ok = false
		} else if cw > 40 || len(rest) > 0 {
			// Digits are worked out in the square of the words, for all at most
			// the square of the whole.
			steps = steps.plus(s.flat().times(w.flat()).part(1, 16))
		}
		if name == "to_text" && args[0].kind == isString {
			return args[0], nil, true, true
		}
		return v, steps, ok, true
	case "parse_json":
		steps, ok = perBytes(n, 512)
		parts, okP := perBytes(n.plus(exactly(1)), 16)
		return &aval{kind: isWithin, n: n.plus(exactly(1))}, steps.plus(parts), ok && okP, true
	}
	return nil, nil, false, false
}

// anyWords is the words of the largest number in a value.
func (a *analyser) anyWords(v *aval) size {
	s := size{}
	for _, x := range v.variants() {
		if !a.spend() {
			return infinite
		}
		switch x.kind {
		case isTop:
			return infinite
		case isNumber:
			s = s.max(a.wordsOf(x))
		case isInput:
			// Any number in it; the bytes of the whole are 8 for each word.
			s = s.max(a.v(Bytes, x.path).part(64))
		case isWithin:
			s = s.max(x.n)
		case isList:
			s = s.max(a.anyWords(x.item))
		case isPair:
			s = s.max(a.anyWords(x.a)).max(a.anyWords(x.b))
		case isRecord:
			s = s.max(a.anyWords(x.item))
			for _, f := range x.fields {
				s = s.max(a.anyWords(f))
			}
		}
	}
	return s
}

func (s size) part(den uint64) size {
	if s.inf {
		return s
	}
	return sized(s.flat().part(1, den))
}

func (a *analyser) recordRow(name string, args []*aval) (v *aval, steps poly, ok bool) {
	x := args[0]
	n, keys := a.fields(x)
	var key *string
	if len(args) > 1 {
		key = args[1].lit
	}
	switch name {
	case "get":
		v = a.field(x, key)
		if len(args) == 3 {
			v = a.join(v, args[2])
		}
		return v, nil, true
	case "has":
		return aBool, nil, true
	case "put":
		r := &aval{kind: isRecord, n: n.plus(exactly(1)), abs: keys, item: a.rest(x), fields: map[string]*aval{}}
		if x.kind == isRecord {
			for k, f := range x.fields {
				r.fields[k] = f
			}
		}
		switch {
		case key != nil && len(r.fields) < 64:
			r.fields[*key] = args[2]
		default:
			for k, f := range r.fields {
				r.fields[k] = a.join(f, args[2])
			}
			r.item = a.join(r.item, args[2])
			r.abs = keys.max(a.asBytes(args[1]))
		}
		return r, nil, true
	case "del":
		return x, nil, true
	case "keys", "values", "entries":
		steps, ok = perBytes(n, 16)
		item := a.field(x, nil)
		k := aText(keys)
		switch name {
		case "keys":
			item = k
		case "entries":
			item = &aval{kind: isPair, a: k, b: item}
		}
		return list(n, item), steps, ok
	case "from_entries":
		l, item := a.asList(x)
		steps, ok = perBytes(l, 16)
		return &aval{kind: isRecord, n: l, abs: a.asBytes(a.half(item, true)), item: a.half(item, false)}, steps, ok
	case "merge":
		m, more := a.fields(args[1])
		p, okP := perBytes(n, 16)
		q, okQ := perBytes(m, 16)
		return &aval{kind: isRecord, n: n.plus(m), abs: keys.max(more), item: a.join(a.field(x, nil), a.field(args[1], nil))}, p.plus(q), okP && okQ
	case "to_data", "analyze":
		s := a.total(x)
		steps, ok = perBytes(s, 256)
		more, _ := perBytes(s, 512)
		return &aval{kind: isWithin, n: s.plus(exactly(64))}, steps.plus(more), ok
	case "to_code":
		s := a.total(x)
		steps, ok = perBytes(s, 256)
		more, _ := perBytes(s, 512)
		return &aval{kind: isCode}, steps.plus(more), ok
	}
	return top, nil, false
}

// fields is how many fields a record has, and how long its keys are.
func (a *analyser) fields(v *aval) (n, keys size) {
	for _, x := range v.variants() {
		switch x.kind {
		case isRecord:
			n, keys = n.max(x.n), keys.max(x.abs)
			for k := range x.fields {
				keys = keys.max(exactly(uint64(len(k))))
			}
		case isInput:
			n, keys = n.max(a.v(Len, x.path)), keys.max(a.v(Bytes, x.path))
		case isTop:
			return infinite, infinite
		case isWithin:
			n, keys = n.max(x.n), keys.max(x.n)
		}
	}
	return n, keys
}

// rest is a record's fields that aren't named.
func (a *analyser) rest(v *aval) *aval {
	if v.kind == isRecord {
		return v.item
	}
	return a.field(v, nil)
}

// arithmetic is the rows of numbers.
func (a *analyser) arithmetic(name string, x, y *aval) (v *aval, steps poly, ok bool) {
	switch name {
	case "eq", "lt", "lte", "gt", "gte":
		steps, ok = a.linear(x, y)
		return compared(name, x, y), steps, ok
	case "add", "sub":
		steps, ok = a.linear(x, y)
		v = &aval{kind: isNumber, abs: x.abs.plus(y.abs), words: x.words.max(y.words).plus(exactly(1)), frac: x.frac.max(y.frac)}
		v.aff = x.aff.add(y.aff, name == "sub")
		return v, steps, ok
	case "mul":
		steps, ok = a.product(x, y)
		return &aval{kind: isNumber, abs: x.abs.times(y.abs), words: x.words.plus(y.words).plus(exactly(1)), frac: x.frac.plus(y.frac)}, steps, ok
	case "div":
		steps, ok = a.product(x, y)
		abs := x.abs
		if k := y.aff; k != nil && k.path == "" && k.offset > 0 && !abs.inf {
			abs = sized(abs.flat().part(1, uint64(k.offset))).plus(exactly(1))
		} else {
			abs = abs.plus(exactly(1))
		}
		return &aval{kind: isNumber, abs: abs, words: x.words}, steps, ok
	}
	steps, ok = a.product(x, y)
	abs := y.abs
	if abs.inf {
		abs = x.abs.plus(y.abs)
	}
	return &aval{kind: isNumber, abs: abs, words: y.words}, steps, ok
}

// add is the sum or the difference of two numbers, one of which is known.
func (x *affine) add(y *affine, minus bool) *affine {
	if x == nil || y == nil || x.path != "" && y.path != "" || minus && y.path != "" {
		return nil
	}
	const far = 1 << 60
	if x.offset > far || x.offset < -far || y.offset > far || y.offset < -far {
		return nil
	}
	if minus {
		return &affine{x.path, x.offset - y.offset}
	}
	path := x.path
	if path == "" {
		path = y.path
	}
	return &affine{path, x.offset + y.offset}
}

// compared is a comparison's truth value, with what it says.
func compared(name string, x, y *aval) *aval {
	r := &aval{kind: isBool}
	switch name {
	case "gt":
		name, x, y = "lt", y, x
	case "gte":
		name, x, y = "lte", y, x
	case "eq":
		return r
	}
	// x < y or x ≤ y. What is less has a limit above, what isn't one below.
	say := func(v *aval, least bool, other *aval, to *[]fact) {
		if v.aff == nil || v.aff.path == "" {
			return
		}
		f := fact{path: v.aff.path, least: least, bound: -v.aff.offset, other: other}
		if k := other.aff; k != nil && k.path == "" {
			f.bound, f.other = k.offset-v.aff.offset, nil
		}
		*to = append(*to, f)
	}
	say(x, false, y, &r.yes)
	say(y, true, x, &r.yes)
	say(x, true, y, &r.no)
	say(y, false, x, &r.no)
	return r
}

// decimal is the rows that round.
func (a *analyser) decimal(t *term.Prim, name string, args []*aval) (v *aval, steps poly, ok bool) {
	longest := value.MaxDigits/19*2 + 4
	scale := uint64(value.MaxDigits / 19)
	for _, x := range t.Args {
		if k, isInt := x.(*term.Int); isInt && name != "to_int" && name != "to_dec" && k.Value >= 0 && k.Value <= value.MaxDigits {
			scale = uint64(k.Value)/19 + 1 // the last integer written is the scale
		}
	}
	x := a.asNumber(args[0])
	if name == "to_dec" {
		n := a.asBytes(args[0])
		return &aval{kind: isNumber, abs: infinite, words: exactly(uint64(longest)).max(n.part(16)), frac: exactly(scale)}, nil, true
	}
	y := literalNumber(zero)
	abs := x.abs.plus(exactly(1))
	if name == "div_dec" {
		y = a.asNumber(args[1])
		abs = infinite
	}
	if name == "to_int" {
		scale = 0
	}
	cx, wx := a.parts(x)
	cy, wy := a.parts(y)
	if cx == over || cy == over {
		return top, nil, false
	}
	c, w := cx+cy+scale+2, wx.plus(wy)
	n := number(c).plus(w)
	if c <= free/2 {
		steps = w.times(n).part(1, 32)
	} else {
		steps = n.times(n).part(1, 64)
	}
	v = &aval{kind: isNumber, abs: abs, words: exactly(uint64(longest)), frac: exactly(scale)}
	if name == "to_int" {
		v.words, v.frac = x.words, size{}
	}
	return v, steps, true
}
