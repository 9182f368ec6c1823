package eval

import (
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// constant returns constant i, making it on its first use.
func (m *Machine) constant(i, height int) (word, bool) {
	if w := m.consts[i]; w != 0 {
		return w, true
	}
	k := &m.kinds[i]
	var w word
	switch {
	case k.Func != nil:
		if !m.reserve(2, height) {
			return 0, false
		}
		w = m.closureOf(k.Func)
	case k.Term != nil:
		var ok bool
		if q, is := k.Term.(*term.Quote); is {
			w, ok = m.quote(quoted{q.Body, m.unitAt(m.index()).source}, height)
		} else {
			w, ok = m.importTerm(k.Term, height)
		}
		if !ok {
			return 0, false
		}
	}
	m.consts[i] = w
	return w, true
}

// termWords returns how many words importing a constant term takes.
func termWords(t term.Term) int {
	switch t := t.(type) {
	case *term.Int:
		if !fitsWord(t.Value) {
			return bigWords(1)
		}
	case *term.Big:
		return bigWords(len(t.Value.Bits()))
	case *term.Dec:
		return decWords(len(t.Unscaled.Bits()))
	case *term.Str:
		return strWords(len(t.Value))
	case *term.List:
		n := listWords(len(t.Items))
		for _, it := range t.Items {
			n += termWords(it)
		}
		return n
	case *term.Record:
		n := recordWords(len(t.Fields))
		for i := range t.Fields {
			n += strWords(len(t.Fields[i].Key)) + termWords(t.Fields[i].Value)
		}
		return n
	case *term.Prim:
		if t.ID == prim.Pair {
			return 2 + termWords(t.Args[0]) + termWords(t.Args[1])
		}
	}
	return 0
}

// importTerm makes the value of a term of nothing but literals.
func (m *Machine) importTerm(t term.Term, height int) (word, bool) {
	if !m.reserve(termWords(t), height) {
		return 0, false
	}
	return m.makeTerm(t), true
}

func (m *Machine) makeTerm(t term.Term) word {
	switch t := t.(type) {
	case *term.Int:
		return m.makeInt(t.Value)
	case *term.Big:
		return m.newBig(t.Value)
	case *term.Dec:
		return m.newDec(t.Unscaled, t.Scale)
	case *term.Bool:
		return fromBool(t.Value)
	case *term.Str:
		return m.newString(t.Value)
	case *term.List:
		return m.makeList(len(t.Items), func(i int) word { return m.makeTerm(t.Items[i]) })
	case *term.Record:
		return m.makeRecord(0, len(t.Fields), func(i int) (word, word) {
			k := m.newString(t.Fields[i].Key)
			return k, m.makeTerm(t.Fields[i].Value)
		})
	case *term.Prim:
		if t.ID == prim.Pair {
			p := m.alloc(2)
			a := m.makeTerm(t.Args[0])
			*m.at(p), *m.at(p + 8) = a, m.makeTerm(t.Args[1])
			return p | tagPair
		}
		return wNil
	}
	return wUnit
}

// maxImportDepth is how deep a value may be nested that is imported: Go's stack is bounded.
const maxImportDepth = 1 << 20

// A wordCount is how many words importing a value takes at most; it ends soon after those
// are more than most, as they are of one that is nested too deep.
type wordCount struct{ words, most, depth int }

func (n *wordCount) full() bool { return n.words > n.most }

func (n *wordCount) add(v value.Value) {
	if n.depth++; n.depth > maxImportDepth {
		n.words = n.most + 1
	}
	cells := 0
	for {
		c, ok := v.(*value.Cons)
		if !ok || n.full() {
			break
		}
		cells++
		n.words += 2
		n.add(c.Head)
		v = c.Tail
	}
	n.words += max(0, listWords(cells)-2*cells)
	switch v := v.(type) {
	case value.Int:
		if i, ok := v.Int64(); !ok || !fitsWord(i) {
			n.words += bigWords(v.Words())
		}
	case value.Lazy:
		if _, ok := v.In.(vecRest); ok {
			n.words += vecWords
		}
	case value.Dec:
		n.words += decWords(len(v.Unscaled().Bits()))
	case value.Str:
		n.words += strWords(len(v))
	case *value.Pair:
		if n.words += 2; !n.full() {
			n.add(v.First)
			n.add(v.Second)
		}
	case *value.Record:
		n.words += recordWords(len(v.Fields))
		for i := 0; i < len(v.Fields) && !n.full(); i++ {
			n.words += strWords(len(v.Fields[i].Key))
			n.add(v.Fields[i].Value)
		}
	case *value.Code, *value.Continuation:
		n.words += 2
		if k, ok := v.(*value.Continuation); ok && !n.full() {
			n.words += contWords
			n.add(k.Input)
		}
	}
	n.depth--
}

// importValue makes a host's value one of the machine's. Parts that are this
// machine's already ([value.Lazy]) stay what they are; a function of anyone
// else's sets foreign.
func (m *Machine) importValue(v value.Value, height int) (word, bool) {
	count := wordCount{most: int(m.budget.Memory / 8)}
	count.add(v)
	n := count.words
	switch {
	case n == 0:
		return m.makeValue(v), true
	case count.full():
		m.outOfMemory()
		return 0, false
	}
	m.look(n / 8)
	if m.hp+uintptr(n)*8 > m.hlim {
		// A collection moves what the lazy parts refer to.
		m.pin(v)
		m.look(n / 8)
		if ok := m.reserve(n, height); !ok {
			m.pins = m.pins[:0]
			return 0, false
		}
	}
	before := m.extra
	w := m.makeValue(v)
	m.pins = m.pins[:0]
	m.pinned = 0
	if m.extra != before && !m.covered() {
		return 0, false
	}
	if m.hlim == 0 {
		m.outOfMemory()
		return 0, false
	}
	return w, true
}

// lazyWord returns the word in the heap that a lazy value refers to.
func lazyWord(v value.Lazy) word {
	if r, ok := v.In.(vecRest); ok {
		return r.w
	}
	return v.Word
}

// pin collects the lazy parts of v in the order in which makeValue meets them.
func (m *Machine) pin(v value.Value) {
	for {
		c, ok := v.(*value.Cons)
		if !ok {
			break
		}
		m.pin(c.Head)
		v = c.Tail
	}
	switch v := v.(type) {
	case value.Lazy:
		m.pins = append(m.pins, lazyWord(v))
	case *value.Closure:
		if r, ok := v.Impl.(closureRef); ok && r.m == m {
			m.pins = append(m.pins, r.w)
		}
	case *value.Pair:
		m.pin(v.First)
		m.pin(v.Second)
	case *value.Record:
		for i := range v.Fields {
			m.pin(v.Fields[i].Value)
		}
	case *value.Continuation:
		m.pin(v.Input)
	}
}

func (m *Machine) makeValue(v value.Value) word {
	m.look(1)
	switch v := v.(type) {
	case value.Lazy:
		w := lazyWord(v)
		if m.pinned < len(m.pins) {
			w = m.pins[m.pinned]
			m.pinned++
		}
		if _, ok := v.In.(vecRest); ok {
			return m.vecSlice(w, int(v.Word), m.vecLen(w))
		}
		return w
	case value.Int:
		if i, ok := v.Int64(); ok {
			return m.makeInt(i)
		}
		return m.newBig(v.Big())
	case *value.Closure:
		r, ok := v.Impl.(closureRef)
		if !ok || r.m != m {
			m.foreign = true
			return wUnit
		}
		if m.pinned < len(m.pins) {
			m.pinned++
			return m.pins[m.pinned-1]
		}
		return r.w
	case value.Dec:
		return m.newDec(v.Unscaled(), v.Scale())
	case value.Bool:
		return fromBool(bool(v))
	case value.Str:
		return m.newString(string(v))
	case value.Nil:
		return wNil
	case *value.Cons:
		return m.makeCells(v)
	case *value.Pair:
		p := m.alloc(2)
		a := m.makeValue(v.First)
		*m.at(p), *m.at(p + 8) = a, m.makeValue(v.Second)
		return p | tagPair
	case *value.Record:
		return m.makeRecord(0, len(v.Fields), func(i int) (word, word) {
			k := m.newString(v.Fields[i].Key)
			return k, m.makeValue(v.Fields[i].Value)
		})
	case *value.Continuation:
		return m.newCont(m.makeValue(v.Input), v.Tool)
	case *value.Code:
		i, ok := m.codeIndex[v.Term]
		if !ok {
			i = m.addCode(quoted{v.Term, v.Source})
			m.made(v.Term)
			if v.Source != nil {
				m.owe(int64(len(v.Source.Text)))
			}
		}
		p := m.alloc(2)
		*m.at(p), *m.at(p + 8) = header(kCode, 2), fromInt(int64(i))
		return p | tagBox
	}
	return wUnit
}

// sketch returns the value of w for a message or for arithmetic: integers, truth
// values and short strings as they are, everything else by its type alone.
func (m *Machine) sketch(w word) value.Value {
	if isInt(w) {
		return value.NewInt(toInt(w))
	}
	switch w & tagMask {
	case tagCons:
		return &value.Cons{Head: value.Unit{}, Tail: value.Nil{}}
	case tagPair:
		return &value.Pair{First: value.Unit{}, Second: value.Unit{}}
	case tagClosure:
		return &value.Closure{}
	case tagImm:
		return immediates[w>>4&7]
	}
	switch headerKind(*m.obj(w, 0)) {
	case kStr, kRope:
		var b []byte
		m.pieces(w, func(p []byte) bool {
			b = append(b, p[:min(len(p), 200)]...)
			return len(b) < 200
		})
		return value.Str(b)
	case kBig:
		return value.NewBig(m.goBig(w))
	case kDec:
		d, _ := value.NewDec(m.limbs(w, 3), int(*m.obj(w, 2)))
		return d
	case kVec:
		return &value.Cons{Head: value.Unit{}, Tail: value.Nil{}}
	case kRecord, kNode:
		return &value.Record{}
	case kCode:
		return &value.Code{}
	case kCont:
		return &value.Continuation{}
	}
	return value.Unit{}
}

var immediates = [8]value.Value{value.Nil{}, value.Unit{}, value.Bool(false), value.Bool(true), value.Unit{}}

// makeCells makes the list of a host's cons cells: a vector where they are
// many and end in nil.
func (m *Machine) makeCells(v *value.Cons) word {
	n := 0
	var rest value.Value = v
	for c, ok := rest.(*value.Cons); ok; c, ok = rest.(*value.Cons) {
		n++
		rest = c.Tail
	}
	if _, ends := rest.(value.Nil); ends {
		c := v
		return m.makeList(n, func(i int) word {
			w := m.makeValue(c.Head)
			c, _ = c.Tail.(*value.Cons)
			return w
		})
	}
	p := m.alloc(2 * n)
	for i := range n {
		cell := p + word(i)*16
		*m.at(cell), *m.at(cell + 8) = wUnit, (cell+16)|tagCons
	}
	for i := range n {
		w := m.makeValue(v.Head)
		*m.at(p + word(i)*16) = w
		if i == n-1 {
			*m.at(p + word(i)*16 + 8) = m.makeValue(v.Tail)
			break
		}
		v = v.Tail.(*value.Cons)
	}
	return p | tagCons
}
