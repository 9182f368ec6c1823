package eval

import (
	"bytes"
	"slices"
	"unicode/utf8"
	"unsafe"

	"github.com/mcp-pif/mcp-pif/core/code"
	"github.com/mcp-pif/mcp-pif/core/json"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// JSON is written from the heap into the heap, and read so, in one pass: both take what
// is free behind the last object, and where that is too little they begin once more with
// more of it. What is rare (a value that JSON has no form for, a text that is no JSON,
// numbers of many digits, deep nesting) they leave to the table's rows, untouched.

// maxJSONDepth is how many lists and records inside each other are gone through.
const maxJSONDepth = 200

// unfit says why a pass ended: the row has to do it, or there was too little room.
type unfit uint8

const (
	fits unfit = iota
	noForm
	noRoom
)

// inFree has a pass done in the free space of the heap, of at least so many bytes, which
// is made larger as long as the pass says that it is too small. done is false where the
// pass doesn't fit at all.
func (m *Machine) inFree(in *code.Instr, need int, pass func() unfit) (done, stop bool) {
	for {
		if uintptr(need)*2+m.hp > m.heapBudget()/2 {
			return false, false // close to the budget the rows know better
		}
		if !m.reserve(even(need/8+2), int(in.K)) {
			return true, true
		}
		room := int(m.hlim - m.hp)
		before := m.hp
		switch pass() {
		case fits:
			return true, false
		case noForm:
			m.hp = before
			return false, false
		}
		m.hp = before
		need = 2 * room
	}
}

// A jsonWriter writes a value behind the last object of the heap.
type jsonWriter struct {
	m            *Machine
	to           []byte
	parts, extra uint64
	longer       int // bytes that the row counts less than there are
	bad          unfit
}

func (m *Machine) nativeToJSON(in *code.Instr) (done, stop bool) {
	var w jsonWriter
	done, stop = m.inFree(in, 256, func() unfit {
		free := m.unused()
		w = jsonWriter{m: m, to: free[:0]}
		w.value(*m.reg(in.C), 0)
		return w.bad
	})
	if !done || stop {
		return done, stop
	}
	if m.spend(prim.WriteCost(uint64(len(w.to)-w.longer), w.parts) + w.extra) {
		return true, true
	}
	return m.set(in, m.keepText(w.to))
}

// unused is the bytes of the heap that keepText can make a string of.
func (m *Machine) unused() []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(m.at(word(m.hp)+16))), (int(m.hlim-m.hp)-32)&^15)
}

// keepText makes a string of a text that was written where it is to be, in a slice of
// what is free there.
func (m *Machine) keepText(text []byte) word {
	n := len(text)
	words := strWords(n)
	clear(text[n : words*8-16])
	p := m.alloc(words)
	*m.at(p), *m.at(p + 8) = header(kStr, words), word(n)|word(utf8.RuneCount(text))<<32
	return p | tagBox
}

// room reports whether so many bytes fit.
func (w *jsonWriter) room(n int) bool {
	if cap(w.to)-len(w.to) < n {
		w.bad = noRoom
		return false
	}
	return true
}

func (w *jsonWriter) value(v word, depth int) {
	m := w.m
	w.parts++
	m.look(1)
	if w.bad != fits || !w.room(96) {
		return
	}
	if text, ok := m.appendShort(w.to, v); ok {
		w.to = text
		return
	}
	switch {
	case depth == maxJSONDepth:
		w.bad = noForm
	case m.isList(v):
		c := byte('[')
		for l := m.walkList(v); ; c = ',' {
			item, ok := l.next()
			if !ok || w.bad != fits || !w.room(2) {
				break
			}
			w.to = append(w.to, c)
			w.value(item, depth+1)
		}
		w.end(']')
	case m.isString(v):
		w.string(v)
	case m.isRecord(v):
		n := m.recordLen(v)
		w.extra += prim.ItemsCost(n)
		c := byte('{')
		if n == 0 {
			w.end(c)
		}
		m.fields(v, func(key, item word) bool {
			if !w.room(4) {
				return false
			}
			w.to = append(w.to, c)
			c = ','
			w.string(key)
			if w.bad != fits || !w.room(4) {
				return false
			}
			w.to = append(w.to, ':')
			w.value(item, depth+1)
			return w.bad == fits
		})
		w.end('}')
	default:
		w.bad = noForm
	}
}

// end writes a bracket, if there is room.
func (w *jsonWriter) end(c byte) {
	if w.bad == fits && w.room(1) {
		w.to = append(w.to, c)
	}
}

// string writes a string in quotes.
func (w *jsonWriter) string(v word) {
	m := w.m
	n := m.strLen(v)
	if n > longText/4 {
		w.bad = noForm // the row looks while it writes
		return
	}
	if !w.room(6*n + 4) {
		return
	}
	before := len(w.to)
	w.to = append(w.to, '"')
	m.look(n / perBytes)
	m.pieces(v, func(s []byte) bool {
		m.look(1)
		start := 0
		for i, c := range s {
			if c >= ' ' && c != '"' && c != '\\' {
				continue
			}
			w.to = append(append(w.to, s[start:i]...), json.Escape(c)...)
			start = i + 1
		}
		w.to = append(w.to, s[start:]...)
		return true
	})
	w.to = append(w.to, '"')
	if n > prim.LongString {
		w.longer += len(w.to) - before - (n + 2)
	}
}

// A jsonReader makes the value of a text. What it makes lies behind the last object; the
// parts of what it is in lie on a stack of its own.
type jsonReader struct {
	m     *Machine
	s     []byte
	i     int
	parts []word
	keys  [64]word // that were made already, by their lengths and ends
	text  []byte
	bad   unfit
}

func (m *Machine) nativeParseJSON(in *code.Instr) (done, stop bool) {
	if !m.isFlat(*m.reg(in.C)) {
		return false, false
	}
	s := m.view(*m.reg(in.C))
	steps, size := prim.JSONCost(unsafe.String(unsafe.SliceData(s), len(s)))
	if left := m.stepsIn() + int64(m.left) - m.pending(); left < 0 || steps > uint64(left) || size > m.budget.Memory {
		return false, false
	}
	var v word
	done, stop = m.inFree(in, 2*len(s)+256, func() unfit {
		r := jsonReader{m: m, s: m.view(*m.reg(in.C))}
		v = r.value(0)
		if r.space(); r.i < len(r.s) {
			r.fail()
		}
		m.repay()
		m.short = false
		return r.bad
	})
	if m.state == Failed {
		return true, true
	}
	if !done || stop {
		return done, stop
	}
	if m.spend(steps) {
		return true, true
	}
	return m.set(in, v)
}

func (r *jsonReader) fail() word {
	r.bad, r.i = max(r.bad, noForm), len(r.s)
	return wUnit
}

// push puts a part on the stack, which takes memory of the run's where it is large.
func (r *jsonReader) push(w word) {
	if n := cap(r.parts); len(r.parts) == n {
		if n = max(2*n, 64); n >= lending/8 && r.m.borrow(8*int64(n)) != nil {
			r.fail()
		}
		r.parts = slices.Grow(r.parts, n-len(r.parts))
	}
	r.parts = append(r.parts, w)
}

// room reports whether there is room for so many words.
func (r *jsonReader) room(words int) bool {
	if m := r.m; m.hp+uintptr(words)*8 > m.hlim {
		r.bad, r.i = noRoom, len(r.s)
		return false
	}
	return true
}

func (r *jsonReader) space() {
	for r.i < len(r.s) && (r.s[r.i] == ' ' || r.s[r.i] == '\n' || r.s[r.i] == '\t' || r.s[r.i] == '\r') {
		r.i++
	}
}

// peek skips blanks and returns the next byte; 0 at the end.
func (r *jsonReader) peek() byte {
	r.space()
	if r.i < len(r.s) {
		return r.s[r.i]
	}
	return 0
}

func (r *jsonReader) next(c byte) bool {
	if r.peek() != c {
		return false
	}
	r.i++
	return true
}

func (r *jsonReader) word(text string, w word) word {
	if !bytes.HasPrefix(r.s[r.i:], []byte(text)) {
		return r.fail()
	}
	r.i += len(text)
	return w
}

func (r *jsonReader) value(depth int) word {
	r.m.look(1)
	switch c := r.peek(); {
	case depth == maxJSONDepth:
	case c == '{':
		return r.object(depth + 1)
	case c == '[':
		return r.array(depth + 1)
	case c == '"':
		if s, ok := r.string(); ok && r.room(strWords(len(s))) {
			w, to := r.m.newText(len(s), utf8.RuneCount(s))
			copy(to, s)
			return w
		}
		return wUnit
	case c == 't':
		return r.word("true", wTrue)
	case c == 'f':
		return r.word("false", wFalse)
	case c == 'n':
		return r.word("null", wUnit)
	case c == '-' || c-'0' <= 9:
		return r.number()
	}
	return r.fail()
}

// number reads an integer or a decimal of up to 18 digits.
func (r *jsonReader) number() word {
	negative := r.s[r.i] == '-'
	if negative {
		r.i++
	}
	from, point, n := r.i, -1, int64(0)
	for ; r.i < len(r.s); r.i++ {
		if c := r.s[r.i]; c == '.' && point < 0 {
			point = r.i
		} else if c-'0' <= 9 {
			n = 10*n + int64(c-'0')
		} else {
			break
		}
		if r.i-from == 18 {
			return r.fail()
		}
	}
	whole := r.i - from
	if point >= 0 {
		whole = point - from
	}
	if whole == 0 || whole > 1 && r.s[from] == '0' || point == r.i-1 {
		return r.fail()
	}
	if r.i < len(r.s) {
		if c := r.s[r.i]; c|0x20 == 'e' || c == '.' || c == '+' || c == '-' {
			return r.fail()
		}
	}
	if negative {
		n = -n
	}
	if point < 0 {
		return fromInt(n)
	}
	if !r.room(decWords(1)) {
		return wUnit
	}
	return r.m.newShort(short{n, r.i - point - 1})
}

// string reads the string that begins here, to be used before the next one.
func (r *jsonReader) string() (s []byte, ok bool) {
	r.i++
	start := r.i
	for i := start; i < len(r.s); i++ {
		switch c := r.s[i]; {
		case c == '"':
			r.i = i + 1
			r.m.look((i - start) / perBytes)
			return r.s[start:i], true
		case c < ' ':
			r.fail()
			return nil, false
		case c == '\\':
			return r.escaped(start, i)
		}
	}
	r.fail()
	return nil, false
}

// escaped reads the string that began at start and has its first escape at i.
func (r *jsonReader) escaped(start, i int) (s []byte, ok bool) {
	r.text = append(r.text[:0], r.s[start:i]...)
	all := unsafe.String(unsafe.SliceData(r.s), len(r.s))
	for i < len(r.s) {
		if len(r.text) > longText/4 {
			break // the row looks while it reads
		}
		switch c := r.s[i]; {
		case c == '"':
			r.i = i + 1
			r.m.look(len(r.text) / 8)
			return r.text, true
		case c < ' ':
			r.fail()
			return nil, false
		case c == '\\':
			c, n, half := json.Unescape(all, i)
			if n == 0 || half {
				r.fail()
				return nil, false
			}
			r.text = utf8.AppendRune(r.text, c)
			i += n
		default:
			r.text = append(r.text, c)
			i++
		}
	}
	r.fail()
	return nil, false
}

func (r *jsonReader) array(depth int) word {
	r.i++
	if r.next(']') {
		return wNil
	}
	base := len(r.parts)
	for {
		v := r.value(depth)
		r.push(v)
		if r.next(',') {
			continue
		}
		if !r.next(']') {
			return r.fail()
		}
		items := r.parts[base:]
		r.parts = r.parts[:base]
		if !r.room(listWords(len(items))) {
			return wUnit
		}
		return r.m.makeList(len(items), func(i int) word { return items[i] })
	}
}

func (r *jsonReader) object(depth int) word {
	m := r.m
	r.i++
	base := len(r.parts)
	sorted := true
	for !r.next('}') {
		if len(r.parts) > base && !r.next(',') || r.peek() != '"' {
			return r.fail()
		}
		key, ok := r.key()
		if !ok || !r.next(':') {
			return r.fail()
		}
		if n := len(r.parts); n > base && bytes.Compare(m.view(r.parts[n-2]), m.view(key)) >= 0 {
			sorted = false
		}
		r.push(key)
		r.push(wUnit)
		at := len(r.parts) - 1
		v := r.value(depth)
		r.parts[at] = v
	}
	var fields [][2]word
	if n := (len(r.parts) - base) / 2; n > 0 {
		fields = unsafe.Slice((*[2]word)(unsafe.Pointer(&r.parts[base])), n)
	}
	r.parts = r.parts[:base]
	if !sorted {
		slices.SortFunc(fields, func(a, b [2]word) int {
			a0, b0 := m.view(a[0]), m.view(b[0])
			m.look(1 + min(len(a0), len(b0))/perBytes)
			return bytes.Compare(a0, b0)
		})
		for i := 1; i < len(fields); i++ {
			if bytes.Equal(m.view(fields[i-1][0]), m.view(fields[i][0])) {
				return r.fail()
			}
		}
	}
	if !r.room(recordWords(len(fields))) {
		return wUnit
	}
	return m.makeRecord(0, len(fields), func(i int) (key, val word) { return fields[i][0], fields[i][1] })
}

// key reads a key; those that are alike are made once, mostly.
func (r *jsonReader) key() (word, bool) {
	s, ok := r.string()
	if !ok {
		return 0, false
	}
	slot := &r.keys[0]
	if n := len(s); n > 0 {
		slot = &r.keys[(n+7*int(s[0])+13*int(s[n-1]))%len(r.keys)]
	}
	if *slot != 0 && bytes.Equal(r.m.view(*slot), s) {
		return *slot, true
	}
	if !r.room(strWords(len(s))) {
		return 0, false
	}
	w, to := r.m.newText(len(s), utf8.RuneCount(s))
	copy(to, s)
	*slot = w
	return w, true
}
