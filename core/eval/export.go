package eval

import (
	"unsafe"

	"github.com/mcp-pif/mcp-pif/core/code"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// exporter copies values out of the heap. What is shared there is shared in
// the copy, so that its size is bounded by the heap's. It works with a stack
// of its own: values may be deeper than Go's.
type exporter struct {
	m     *Machine
	seen  map[word]value.Value
	todo  []fill
	bytes int64 // of the copy, about, with what seen takes
	limit int64 // stop beyond so many; 0: go on
}

// full reports whether the copy isn't whole, since it would pass the limit.
func (e *exporter) full() bool { return e.limit > 0 && e.bytes > e.limit }

// fill is a place in a copy that is still to be given its value.
type fill struct {
	w  word
	to *value.Value
}

// export returns w as Go data.
func (m *Machine) export(w word) value.Value {
	e := exporter{m: m}
	return e.export(w)
}

// export returns w as Go data.
func (e *exporter) export(w word) value.Value {
	var v value.Value
	e.put(w, &v)
	for len(e.todo) > 0 && !e.full() {
		f := e.todo[len(e.todo)-1]
		e.todo = e.todo[:len(e.todo)-1]
		e.put(f.w, f.to)
	}
	return v
}

func (e *exporter) put(w word, to *value.Value) {
	m := e.m
	for {
		if tag := w & tagMask; isInt(w) || tag == tagImm {
			m.look(1)
			*to = m.sketch(w)
			return
		}
		if v, ok := e.seen[w]; ok {
			*to = v
			return
		}
		v, next, at := e.object(w)
		m.look(2)
		e.count(v)
		*to = v
		if e.seen == nil {
			e.seen = make(map[word]value.Value)
		}
		e.seen[w] = v
		if next == nil || e.full() {
			return
		}
		w, to = at, next
	}
}

// count counts what a copy takes.
func (e *exporter) count(v value.Value) {
	e.bytes += 112
	switch v := v.(type) {
	case value.Str:
		e.bytes += int64(len(v))
	case value.Int:
		e.bytes += 8 * int64(v.Words())
	case *value.Record:
		e.bytes += 48 * int64(len(v.Fields))
		for i := range v.Fields {
			e.bytes += int64(len(v.Fields[i].Key))
		}
	}
}

// object makes the copy of one object; next, where not nil, is the last of its
// places, for the word at.
func (e *exporter) object(w word) (v value.Value, next *value.Value, at word) {
	m := e.m
	switch w & tagMask {
	case tagCons:
		c := &value.Cons{}
		e.todo = append(e.todo, fill{*m.at(w - tagCons), &c.Head})
		return c, &c.Tail, *m.at(w - tagCons + 8)
	case tagPair:
		p := &value.Pair{}
		e.todo = append(e.todo, fill{*m.at(w - tagPair), &p.First})
		return p, &p.Second, *m.at(w - tagPair + 8)
	case tagClosure:
		return &value.Closure{}, nil, 0
	}
	switch headerKind(*m.obj(w, 0)) {
	case kStr, kRope:
		return value.Str(m.goString(w)), nil, 0
	case kVec:
		n := m.vecLen(w)
		if e.limit > 0 && e.bytes+56*int64(n) > e.limit { // with todo
			e.bytes = e.limit + 1
			return value.Nil{}, nil, 0
		}
		cells := make([]value.Cons, n)
		m.look(len(cells) / 2)
		for i := range cells {
			cells[i].Tail = value.Nil{}
			if i+1 < len(cells) {
				cells[i].Tail = &cells[i+1]
			}
			e.bytes += 32
			e.todo = append(e.todo, fill{m.vecAt(w, i), &cells[i].Head})
		}
		return &cells[0], nil, 0
	case kRecord, kNode:
		r := &value.Record{Fields: make([]value.Field, 0, m.recordLen(w))}
		m.fields(w, func(k, v word) bool {
			r.Fields = append(r.Fields, value.Field{Key: m.goString(k)})
			e.todo = append(e.todo, fill{v, &r.Fields[len(r.Fields)-1].Value})
			return true
		})
		return r, nil, 0
	case kCode:
		q := m.codes[*m.obj(w, 1)>>1]
		return &value.Code{Term: q.term, Source: q.source}, nil, 0
	case kCont:
		k := &value.Continuation{Tool: m.contTool(w)}
		return k, &k.Input, *m.obj(w, 1)
	}
	return m.sketch(w), nil, 0
}

// Value returns the result of a run that is [Done], as Go data.
func (m *Machine) Value() value.Value {
	if m.state != Done {
		return nil
	}
	if w := m.result; isInt(w) {
		if n := toInt(w); n >= minSmall && n < minSmall+int64(len(smallInts)) {
			return smallInts[n-minSmall]
		}
	}
	m.plain = false
	v := m.export(m.result)
	return v
}

// minSmall is the first of the integers that are ready as values.
const minSmall = -128

var smallInts = func() (ints [1152]value.Value) {
	for i := range ints {
		ints[i] = value.NewInt(int64(i) + minSmall)
	}
	return ints
}()

// Encode returns the result of a run that is [Done] as JSON, of which it keeps
// the first keep bytes. It takes steps beyond its first MiB, and is bounded by the
// budget of memory, too: a result whose JSON is larger is a fault, result_too_large. Of a run that isn't Done
// the fault is the run's, or internal.
func (m *Machine) Encode(keep int) (text.Encoded, *fault.Fault) { return m.EncodeUntil(keep, nil) }

// EncodeUntil does what Encode does, and asks stop from time to time whether to give
// up; the fault is of kind cancelled then.
func (m *Machine) EncodeUntil(keep int, stop func() bool) (text.Encoded, *fault.Fault) {
	if m.state != Done {
		return text.Encoded{}, m.unfinished()
	}
	keep = max(0, keep)
	if small, ok := m.encodeSmall(keep); ok {
		return small, nil
	}
	m.plain = false
	enc, steps, f := text.EncodeWithin(m.lazy(m.result), keep, m.budget.Memory, m.Steps(), m.budget.Steps, stop)
	if f != nil {
		if m.fault = f; f.Kind == fault.OutOfFuel {
			m.useUp()
		}
	} else if steps > 0 {
		m.charge(steps)
	}
	return enc, f
}

// unfinished is the fault of asking a run that isn't [Done] for its result.
func (m *Machine) unfinished() *fault.Fault {
	if m.fault != nil {
		return m.fault
	}
	return fault.New(fault.Internal, "the run isn't done")
}

// lazy returns w as Go data whose parts are made when they are asked for.
func (m *Machine) lazy(w word) value.Value {
	if isInt(w) || w&tagMask == tagImm {
		return m.sketch(w)
	}
	return value.Lazy{In: m, Word: w}
}

// Force returns the outermost part of a value of this machine.
func (m *Machine) Force(w uint64) value.Value {
	m.look(1)
	switch w & tagMask {
	case tagCons:
		return &value.Cons{Head: m.lazy(*m.at(w - tagCons)), Tail: m.lazy(*m.at(w - tagCons + 8))}
	case tagPair:
		return &value.Pair{First: m.lazy(*m.at(w - tagPair)), Second: m.lazy(*m.at(w - tagPair + 8))}
	case tagClosure:
		return &value.Closure{Impl: closureRef{m, w}}
	case tagBox:
		switch headerKind(*m.obj(w, 0)) {
		case kVec:
			return vecRest{m, w}.Force(0)
		case kRecord, kNode:
			r := &value.Record{Fields: make([]value.Field, 0, m.recordLen(w))}
			m.copied += 16 * cap(r.Fields)
			m.fields(w, func(k, v word) bool {
				m.look(4)
				r.Fields = append(r.Fields, value.Field{Key: m.goString(k), Value: m.lazy(v)})
				return true
			})
			return r
		case kCont:
			return &value.Continuation{Tool: m.contTool(w), Input: m.lazy(*m.obj(w, 1))}
		case kStr, kRope:
			return value.Str(m.goString(w))
		}
		v := m.export(w)
		return v
	}
	return m.sketch(w)
}

// Measure returns what a value of this machine is, and how large, as
// [value.Measure] does.
func (m *Machine) Measure(w uint64) (value.Type, int) {
	switch w & tagMask {
	case tagCons:
		return value.TypeList, 0
	case tagPair:
		return value.TypePair, 0
	case tagClosure:
		return value.TypeFunction, 0
	}
	if m.isString(w) {
		return value.TypeString, m.strLen(w)
	}
	if m.isRecord(w) {
		return value.TypeRecord, m.recordLen(w)
	}
	if m.isKind(w, kBig) {
		return value.TypeInt, 0
	}
	return m.sketch(w).Type(), 0
}

// closureRef is a closure of the machine as a host's value.
type closureRef struct {
	m *Machine
	w word
}

// vecRest is the memory of the rests of a vector: its words are where they start.
type vecRest struct {
	m *Machine
	w word
}

// Force returns the list of the items from i on.
func (v vecRest) Force(i uint64) value.Value {
	v.m.look(1)
	if n := v.m.vecLen(v.w); int(i) >= n {
		return value.Nil{}
	}
	return &value.Cons{Head: v.m.lazy(v.m.vecAt(v.w, int(i))), Tail: value.Lazy{In: v, Word: i + 1}}
}

// encodeSmall encodes what needs no walk.
func (m *Machine) encodeSmall(keep int) (e text.Encoded, ok bool) {
	s := ""
	switch m.result {
	case wTrue:
		s, e.Type = "true", value.TypeBool
	case wFalse:
		s, e.Type = "false", value.TypeBool
	case wUnit:
		s, e.Type = "null", value.TypeUnit
	case wNil:
		s, e.Type = "[]", value.TypeList
	default:
		return e, false
	}
	e.JSON, e.Total, e.Truncated = []byte(s[:min(keep, len(s))]), int64(len(s)), keep < len(s)
	return e, true
}

// flatText is how long a string is that concat makes in one piece.
const flatText = 48

// concat makes a flat string of a short one, and a rope of a long one; or adds to the first
// where it is.
func (m *Machine) concat(in *code.Instr) bool {
	a, b := *m.reg(in.B), *m.reg(in.C)
	for i, w := range [...]word{a, b} {
		if !m.isString(w) {
			return m.mismatch(prim.Concat, i, w)
		}
	}
	la, lb := m.strLen(a), m.strLen(b)
	n := la + lb
	if int64(n) > m.budget.Memory || n > 1<<31 {
		return m.outOfMemory()
	}
	fresh := in.K&code.GivesFresh != 0
	switch {
	case m.isFlat(b) && m.grows(in, a, lb):
		if !m.reserve(strWords(n)-strWords(la), int(in.D)) {
			return true
		}
		if !m.grows(in, *m.reg(in.B), lb) {
			break
		}
		b = *m.reg(in.C)
		copy(m.grow(*m.reg(in.B), lb, m.runes(b)), m.rawBytes(b, 2, lb))
		*m.reg(in.A) = *m.reg(in.B)
		return false
	case la == 0 && !(fresh && m.isFlat(b)):
		*m.reg(in.A) = b
		return false
	case lb == 0 && !(fresh && m.isFlat(a)):
		*m.reg(in.A) = a
		return false
	}
	words := 4
	if n <= flatText {
		words = strWords(n)
	}
	if !m.reserve(words, int(in.D)) {
		return true
	}
	a, b = *m.reg(in.B), *m.reg(in.C)
	runes := m.runes(a) + m.runes(b)
	if n <= flatText {
		w, to := m.newText(n, runes)
		copy(to, m.rawBytes(a, 2, la))
		copy(to[la:], m.rawBytes(b, 2, lb))
		*m.reg(in.A) = w
		return false
	}
	p := m.alloc(words)
	*m.at(p), *m.at(p + 8) = header(kRope, 4), word(n)|word(runes)<<32
	*m.at(p + 16), *m.at(p + 24) = a, b
	*m.reg(in.A) = p | tagBox
	return false
}

// mostGrown is how long a string becomes at most where it is.
const mostGrown = 4096

// grows reports whether the first operand of a concat can be made longer where it is:
// nothing else refers to it, and it is what was made last.
func (m *Machine) grows(in *code.Instr, w word, by int) bool {
	return in.K&code.JoinsFresh != 0 && m.isFlat(w) && m.strLen(w)+by <= mostGrown &&
		uintptr(w-tagBox)+uintptr(strWords(m.strLen(w)))*8 == m.hp
}

// grow makes a string longer, for which room has been reserved, and returns what is new.
func (m *Machine) grow(w word, bytes, runes int) []byte {
	la := m.strLen(w)
	words := strWords(la + bytes)
	if more := words - strWords(la); more > 0 {
		m.alloc(more)
		*m.obj(w, words-2), *m.obj(w, words-1) = 0, 0
		*m.obj(w, 0) = header(kStr, words)
	}
	*m.obj(w, 1) += word(bytes) | word(runes)<<32
	return m.rawBytes(w, 2, la+bytes)[la:]
}

// concatText does concat of a string and the text of a short value, and goes on after what
// does the same one after the other; or leaves it to that.
func (m *Machine) concatText(in *code.Instr) bool {
	const skipped = 2 * code.InstrSize
	a, v := *m.reg(in.B), *m.reg(in.C)
	if m.isString(v) {
		m.ip = unsafe.Add(m.ip, skipped)
		in = m.instr()
		return m.concat(in)
	}
	var buf [80]byte
	text, ok := m.appendShort(buf[:0], v)
	if !ok || !m.isFlat(a) {
		return false
	}
	la, lb := m.strLen(a), len(text)
	grows := m.grows(in, a, lb)
	if !grows && la+lb > flatText || int64(la+lb) > m.budget.Memory {
		return false
	}
	if !m.reserve(strWords(la+lb), int(in.D)) {
		return true
	}
	a = *m.reg(in.B)
	if grows && m.grows(in, a, lb) {
		copy(m.grow(a, lb, lb), text)
	} else if la+lb > flatText {
		return false
	} else {
		w, to := m.newText(la+lb, m.runes(a)+lb)
		copy(to, m.rawBytes(a, 2, la))
		copy(to[la:], text)
		a = w
	}
	*m.reg(in.A) = a
	m.ip = unsafe.Add(m.ip, skipped)
	return false
}

// record makes a record whose values are in registers, or backwards in a list.
func (m *Machine) record(in *code.Instr) bool {
	keys := m.kinds[in.D].Keys
	words := recordWords(len(keys))
	if in.Op == code.Record && len(keys) <= flatFields {
		if m.consts[in.D] != 0 {
			return m.room(words, int(in.K))
		}
		// The records that the literal makes have their keys in common.
		for _, k := range keys {
			words += strWords(len(k))
		}
		if !m.reserve(words, int(in.K)) {
			return true
		}
		m.consts[in.D] = m.makeRecord(0, len(keys), func(i int) (word, word) { return m.newString(keys[i]), wUnit })
		m.again()
		return false
	}
	for _, k := range keys {
		words += strWords(len(k))
	}
	if !m.reserve(words, int(in.K)) {
		return true
	}
	values := make([]word, len(keys))
	var list word
	if in.Op == code.RecordL {
		list = *m.reg(in.B)
	}
	for i := len(keys) - 1; i >= 0; i-- {
		if in.Op == code.RecordL {
			values[i], list = *m.at(list - tagCons), *m.at(list - tagCons + 8)
		} else {
			values[i] = *m.reg(in.C + uint8(i))
		}
	}
	*m.reg(in.A) = m.makeRecord(0, len(keys), func(i int) (word, word) {
		return m.newString(keys[i]), values[i]
	})
	return false
}
