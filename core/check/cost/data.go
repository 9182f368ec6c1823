package cost

import "maps"

// maxKnownBytes is how long a string is known that code puts together of others, in
// bytes: those could double with every term.
const maxKnownBytes = 4 << 10

// textRow evaluates the rows of strings and JSON.
func (a *analyser) textRow(name string, args []*aval) (v *aval, steps poly, ok, done bool) {
	n := a.asBytes(args[0])
	all := size{}
	for _, x := range args {
		all = all.plus(a.asBytes(x))
	}
	switch name {
	case "concat":
		v = aText(n.plus(a.asBytes(args[1])))
		if x, y := args[0].lit, args[1].lit; x != nil && y != nil && len(*x)+len(*y) <= maxKnownBytes {
			a.vars.charge((len(*x) + len(*y)) / 32)
			v = literalText(*x + *y)
		}
		return v, nil, true, true
	case "split":
		steps, ok = perBytes(all, 512)
		parts, okP := perBytes(n.plus(exactly(1)), 16)
		return list(n.plus(exactly(1)), aText(n)), steps.plus(parts), ok && okP, true
	case "join":
		l, item := a.asList(args[0])
		bytes := l.times(a.asBytes(args[1])).plus(a.bytesIn(args[0], l, item))
		steps, ok = perBytes(l, 16)
		more, okM := perBytes(bytes, 512)
		return aText(bytes), steps.plus(more), ok && okM, true
	case "replace":
		made := n.plus(n.times(a.asBytes(args[2])))
		steps, ok = perBytes(all, 512)
		more, okM := perBytes(made, 512)
		return aText(made), steps.plus(more), ok && okM, true
	case "starts_with", "ends_with":
		steps, ok = perBytes(a.asBytes(args[1]), 512)
		return aBool, steps, ok, true
	case "parse_int":
		words := size{}
		if n.inf {
			return top, nil, false, true
		}
		c, rest := n.flat().split()
		words = exactly(c/19 + 1).plus(sizeOf(rest.part(1, 16)))
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

// anyWords returns the words of the largest number in a value.
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
			for _, f := range a.namedFields(x) {
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
	return sizeOf(s.flat().part(1, den))
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
		if len(args) == 3 && !(a.leaf && x.name() != "" && x.kind != isRecord) {
			v = a.join(v, args[2])
		}
		return v, nil, true
	case "has":
		return aBool, nil, true
	case "put":
		r := &aval{kind: isRecord, n: n.plus(exactly(1)), abs: keys, item: a.rest(x), fields: map[string]*aval{}}
		if x.kind == isRecord {
			a.vars.charge(4 * len(x.fields))
			maps.Copy(r.fields, x.fields)
		}
		switch {
		case key != nil && len(r.fields) < 64:
			r.fields[*key] = args[2]
		default:
			for _, k := range r.keys() {
				r.fields[k] = a.join(r.fields[k], args[2])
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
		from := a.fieldsOrigin(x)
		k := aText(keys)
		switch name {
		case "keys":
			item, from = k, ""
		case "entries":
			item = &aval{kind: isPair, a: k, b: item}
		}
		v = list(n, item)
		v.from = from
		return v, steps, ok
	case "from_entries":
		l, item := a.asList(x)
		steps, ok = perBytes(l, 16)
		_, part := a.asList(item) // of a list of two
		return &aval{kind: isRecord, n: l, abs: a.asBytes(a.join(a.half(item, true), part)), item: a.join(a.half(item, false), part)}, steps, ok
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

// fields returns how many fields a record has, and how long its keys are.
func (a *analyser) fields(v *aval) (n, keys size) {
	for _, x := range v.variants() {
		switch x.kind {
		case isRecord:
			n, keys = n.max(x.n), keys.max(x.abs)
			a.vars.charge(len(x.fields))
			for _, k := range x.keys() {
				keys = keys.max(exactly(uint64(len(k))))
			}
		case isInput:
			n, keys = n.max(a.lengthAt(x.path)), keys.max(a.v(Bytes, x.path))
		case isTop:
			return infinite, infinite
		case isWithin:
			n, keys = n.max(x.n), keys.max(x.n)
		}
	}
	return n, keys
}

// rest returns a record's fields that aren't named.
func (a *analyser) rest(v *aval) *aval {
	if v.kind == isRecord {
		return v.item
	}
	return a.field(v, nil)
}
