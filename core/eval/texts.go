package eval

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf8"
	"unsafe"

	"github.com/mcp-pif/mcp-pif/core/code"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// Rows of text done on the machine's own strings, for those that lie in one piece: they
// read and write the heap, with no copy in Go, and charge what the table's rows do.
// What is rare (a part that is empty, a character of several bytes where the case
// changes, a wrong kind) they leave to those.

// newText makes a flat string of so many bytes and characters, to be filled at once.
// strWords have been reserved.
func (m *Machine) newText(n, runes int) (word, []byte) {
	words := strWords(n)
	p := m.alloc(words)
	*m.at(p), *m.at(p + 8) = header(kStr, words), word(n)|word(runes)<<32
	if words > 2 {
		// What is beyond the text is 0: short strings are compared by words.
		*m.at(p + word(words)*8 - 16), *m.at(p + word(words)*8 - 8) = 0, 0
	}
	w := p | tagBox
	return w, m.rawBytes(w, 2, n)
}

// runes returns the number of a string's characters.
func (m *Machine) runes(w word) int { return int(*m.obj(w, 1) >> 32) }

// giveRunes makes text that is not of the heap, of so many characters, the value of the instruction.
func (m *Machine) giveRunes(in *code.Instr, text []byte, runes int) (done, stop bool) {
	if !m.reserve(strWords(len(text)), int(in.K)) {
		return true, true
	}
	w, to := m.newText(len(text), runes)
	copy(to, text)
	return m.set(in, w)
}

// longText is how many bytes a string has at most that is searched without a look.
const longText = 1 << 20

// flats returns the bytes of the first n operands where all are flat strings and none is
// long, until the next allocation.
func (m *Machine) flats(in *code.Instr, n int) (s [3][]byte, ok bool) {
	for i := range n {
		w := *m.reg(in.C + uint8(i))
		if !m.isFlat(w) || m.strLen(w) > longText {
			return s, false
		}
		s[i] = m.view(w)
	}
	m.look(len(s[0]) / perBytes)
	return s, true
}

// spend charges the cost of a row; stop: it can't be paid.
func (m *Machine) spend(cost uint64) (stop bool) { return cost > 0 && !m.work(cost) }

// appendShort writes what to_text and to_json write of a short number, a truth value or
// null alike.
func (m *Machine) appendShort(to []byte, w word) ([]byte, bool) {
	switch {
	case isInt(w):
		return strconv.AppendInt(to, toInt(w), 10), true
	case w == wTrue:
		return append(to, "true"...), true
	case w == wFalse:
		return append(to, "false"...), true
	case w == wUnit:
		return append(to, "null"...), true
	case w == wNil:
		return append(to, "[]"...), true
	}
	s, ok := m.asShort(w)
	if !ok || s.scale > 40 {
		return to, false
	}
	if s.coef < 0 {
		to = append(to, '-')
		s.coef = -s.coef
	}
	var buf [24]byte
	digits := strconv.AppendInt(buf[:0], s.coef, 10)
	if s.scale == 0 {
		return append(to, digits...), true
	}
	whole := max(0, len(digits)-s.scale)
	if whole == 0 {
		to = append(to, '0')
	}
	to = append(append(to, digits[:whole]...), '.')
	for range s.scale - (len(digits) - whole) {
		to = append(to, '0')
	}
	return append(to, digits[whole:]...), true
}

func (m *Machine) nativeToText(in *code.Instr) (done, stop bool) {
	w := *m.reg(in.C)
	if m.isString(w) {
		return m.set(in, w)
	}
	var buf [80]byte
	text, ok := m.appendShort(buf[:0], w)
	if !ok {
		return m.nativeToJSON(in)
	}
	return m.giveRunes(in, text, len(text))
}

func (m *Machine) nativeParseInt(in *code.Instr) (done, stop bool) {
	s, ok := m.flats(in, 1)
	digits := s[0]
	negative := len(digits) > 0 && digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	if !ok || len(digits) == 0 || len(digits) > 18 {
		return false, false
	}
	n := int64(0)
	for _, c := range digits {
		if c < '0' || c > '9' {
			return false, false
		}
		n = 10*n + int64(c-'0')
	}
	if negative {
		n = -n
	}
	return m.set(in, fromInt(n))
}

// A listWalk goes through the items of a list, which must not move meanwhile.
type listWalk struct {
	m     *Machine
	rest  word   // the cells that are left, then the vector
	items []word // those of its leaf that are left
	i     int    // of the item after those
}

func (m *Machine) walkList(w word) listWalk { return listWalk{m: m, rest: w} }

func (l *listWalk) next() (item word, ok bool) {
	m := l.m
	if w := l.rest; w&tagMask == tagCons {
		l.rest = *m.at(w - tagCons + 8)
		return *m.at(w - tagCons), true
	}
	if len(l.items) == 0 {
		if l.rest == wNil || l.i == m.vecLen(l.rest) {
			return 0, false
		}
		l.items = m.leaf(l.rest, l.i)
		l.i += len(l.items)
	}
	item, l.items = l.items[0], l.items[1:]
	return item, true
}

func (m *Machine) nativeJoin(in *code.Instr) (done, stop bool) {
	list, sep := *m.reg(in.C), *m.reg(in.C + 1)
	if !m.isList(list) || !m.isFlat(sep) {
		return false, false
	}
	items, size, runes := 0, 0, 0
	for l := m.walkList(list); ; items++ {
		w, ok := l.next()
		if !ok {
			break
		}
		if !m.isString(w) {
			return false, false
		}
		m.look(1)
		size += m.strLen(w)
		runes += m.runes(w)
	}
	seps := max(0, items-1)
	most := size + items*m.strLen(sep)
	size, runes = size+seps*m.strLen(sep), runes+seps*m.runes(sep)
	if m.spend(prim.ItemsCost(items) + prim.BytesCost(most)) {
		return true, true
	}
	if int64(most) > m.budget.Memory || most > 1<<31 {
		return true, m.outOfMemory()
	}
	if !m.reserve(strWords(size), int(in.K)) {
		return true, true
	}
	text, to := m.newText(size, runes)
	between := m.view(*m.reg(in.C + 1))
	l := m.walkList(*m.reg(in.C))
	for i := range items {
		if i > 0 {
			to = to[copy(to, between):]
		}
		w, _ := l.next()
		m.look(1 + m.strLen(w)/perBytes)
		switch h := *m.obj(w, 0); {
		case h == shortText && len(to) >= 16:
			// All 16 bytes at once: what comes next is written over the rest.
			*(*[2]word)(unsafe.Pointer(&to[0])) = *(*[2]word)(unsafe.Pointer(m.obj(w, 2)))
			to = to[m.strLen(w):]
			continue
		case headerKind(h) == kStr:
			to = to[copy(to, m.view(w)):]
			continue
		}
		m.pieces(w, func(p []byte) bool {
			m.look(1)
			to = to[copy(to, p):]
			return true
		})
	}
	return m.set(in, text)
}

// giveParts makes a list of the n parts of the first operand, whose texts take so many words and
// of which next gives the bounds from a place on.
func (m *Machine) giveParts(in *code.Instr, n, words int, next func(s []byte, at int) (from, to, then int)) (done, stop bool) {
	m.look(n)
	if !m.reserve(listWords(n)+words, int(in.K)) {
		return true, true
	}
	w := *m.reg(in.C)
	s := m.view(w)
	ascii := m.runes(w) == len(s)
	at := 0
	*m.reg(in.A) = m.makeList(n, func(int) word {
		from, to, then := next(s, at)
		at = then
		part, runes := s[from:to], to-from
		if !ascii {
			runes = utf8.RuneCount(part)
		}
		w, b := m.newText(len(part), runes)
		copy(b, part)
		return w
	})
	return true, false
}

func (m *Machine) nativeSplit(in *code.Instr) (done, stop bool) {
	s, ok := m.flats(in, 2)
	if !ok || len(s[1]) == 0 {
		return false, false
	}
	n, words, rest := 0, 0, s[0]
	for {
		i := bytes.Index(rest, s[1])
		if i < 0 {
			break
		}
		words += strWords(i)
		rest = rest[i+len(s[1]):]
		n++
	}
	words += strWords(len(rest))
	if prim.SplitSize(len(s[0]), n) > m.budget.Memory {
		return false, false
	}
	if m.spend(prim.BytesCost(len(s[0])+len(s[1])) + prim.ItemsCost(n+1)) {
		return true, true
	}
	return m.giveParts(in, n+1, words, func(s []byte, at int) (from, to, then int) {
		sep := m.view(*m.reg(in.C + 1))
		if i := bytes.Index(s[at:], sep); i >= 0 {
			return at, at + i, at + i + len(sep)
		}
		return at, len(s), len(s)
	})
}

// blank reports whether a byte is white space of ASCII.
func blank(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// wordFrom returns the bounds of the first word from a place on.
func wordFrom(s []byte, at int) (from, to, then int) {
	for at < len(s) && blank(s[at]) {
		at++
	}
	from = at
	for at < len(s) && !blank(s[at]) {
		at++
	}
	return from, at, at
}

func (m *Machine) nativeWords(in *code.Instr) (done, stop bool) {
	s, ok := m.flats(in, 1)
	if !ok || m.runes(*m.reg(in.C)) != len(s[0]) {
		return false, false
	}
	n, words := 0, 0
	for at := 0; ; n++ {
		from, to, then := wordFrom(s[0], at)
		if from == to {
			break
		}
		words += strWords(to - from)
		at = then
	}
	if prim.SplitSize(len(s[0]), n) > m.budget.Memory {
		return false, false
	}
	if m.spend(prim.BytesCost(len(s[0])) + prim.ItemsCost(n)) {
		return true, true
	}
	return m.giveParts(in, n, words, wordFrom)
}

func (m *Machine) nativeReplace(in *code.Instr) (done, stop bool) {
	s, ok := m.flats(in, 3)
	if !ok || len(s[1]) == 0 {
		return false, false
	}
	n := bytes.Count(s[0], s[1])
	longer := len(s[2]) - len(s[1])
	if n > 0 && longer > (math.MaxInt32-len(s[0]))/n {
		return false, false
	}
	size, most := len(s[0])+n*longer, len(s[0])+n*max(0, longer)
	if int64(most) > m.budget.Memory {
		return false, false
	}
	if m.spend(prim.BytesCost(len(s[0])+len(s[1])+len(s[2])) + prim.BytesCost(most)) {
		return true, true
	}
	if n == 0 {
		return m.set(in, *m.reg(in.C))
	}
	runes := m.runes(*m.reg(in.C)) + n*(m.runes(*m.reg(in.C + 2))-m.runes(*m.reg(in.C + 1)))
	if !m.reserve(strWords(size), int(in.K)) {
		return true, true
	}
	s, _ = m.flats(in, 3)
	w, to := m.newText(size, runes)
	rest := s[0]
	for range n {
		i := bytes.Index(rest, s[1])
		to = to[copy(to, rest[:i]):]
		to = to[copy(to, s[2]):]
		rest = rest[i+len(s[1]):]
	}
	copy(to, rest)
	return m.set(in, w)
}

// pad does pad_left and pad_right with a fill of one byte.
func (m *Machine) pad(in *code.Instr, left bool) (done, stop bool) {
	s, ok := m.flats(in, 1)
	width := *m.reg(in.C + 1)
	if !ok || !isInt(width) || width > fromInt(1<<20) && int64(width) > 0 {
		return false, false
	}
	fill, read := byte(' '), len(s[0])
	if in.B > 2 {
		f := *m.reg(in.C + 2)
		if !m.isFlat(f) || m.strLen(f) != 1 {
			return false, false
		}
		fill = m.view(f)[0]
		read++
	}
	missing := max(0, int(toInt(width))-m.runes(*m.reg(in.C)))
	size := len(s[0]) + missing
	if int64(size) > m.budget.Memory {
		return false, false
	}
	if m.spend(prim.BytesCost(read) + prim.BytesCost(size)) {
		return true, true
	}
	if missing == 0 {
		return m.set(in, *m.reg(in.C))
	}
	if !m.reserve(strWords(size), int(in.K)) {
		return true, true
	}
	w, to := m.newText(size, m.runes(*m.reg(in.C))+missing)
	text := m.view(*m.reg(in.C))
	blanks := to[len(text):]
	if left {
		copy(to[missing:], text)
		blanks = to[:missing]
	} else {
		copy(to, text)
	}
	for i := range blanks {
		blanks[i] = fill
	}
	return m.set(in, w)
}

func (m *Machine) nativePadLeft(in *code.Instr) (done, stop bool)  { return m.pad(in, true) }
func (m *Machine) nativePadRight(in *code.Instr) (done, stop bool) { return m.pad(in, false) }

// recase does upper and lower of ASCII: letters between two change.
func (m *Machine) recase(in *code.Instr, from, to byte) (done, stop bool) {
	s, ok := m.flats(in, 1)
	n := len(s[0])
	if !ok || m.runes(*m.reg(in.C)) != n || 3*int64(n) > m.budget.Memory {
		return false, false
	}
	if m.spend(prim.BytesCost(n)) || !m.reserve(strWords(n), int(in.K)) {
		return true, true
	}
	w, out := m.newText(n, n)
	for i, c := range m.view(*m.reg(in.C)) {
		if c >= from && c <= to {
			c ^= 'a' - 'A'
		}
		out[i] = c
	}
	return m.set(in, w)
}

func (m *Machine) nativeUpper(in *code.Instr) (done, stop bool) { return m.recase(in, 'a', 'z') }
func (m *Machine) nativeLower(in *code.Instr) (done, stop bool) { return m.recase(in, 'A', 'Z') }

func (m *Machine) nativeStartsWith(in *code.Instr) (done, stop bool) {
	return m.testText(in, bytes.HasPrefix)
}

func (m *Machine) nativeEndsWith(in *code.Instr) (done, stop bool) {
	return m.testText(in, bytes.HasSuffix)
}

func (m *Machine) testText(in *code.Instr, holds func(s, part []byte) bool) (done, stop bool) {
	s, ok := m.flats(in, 2)
	if !ok {
		return false, false
	}
	if m.spend(prim.BytesCost(len(s[1]))) {
		return true, true
	}
	return m.set(in, fromBool(holds(s[0], s[1])))
}

// nativeContains looks for a string in a string, or for a plain value among such in a
// list.
func (m *Machine) nativeContains(in *code.Instr) (done, stop bool) {
	if s, ok := m.flats(in, 2); ok {
		if m.spend(prim.BytesCost(len(s[0]) + len(s[1]))) {
			return true, true
		}
		return m.set(in, fromBool(bytes.Contains(s[0], s[1])))
	}
	list, part := *m.reg(in.C), *m.reg(in.C + 1)
	if !m.isList(list) || !m.isPlain(part) {
		return false, false
	}
	var c prim.Comparison
	l := m.walkList(list)
	found := false
	for !found {
		w, ok := l.next()
		if !ok {
			break
		}
		if !m.isPlain(w) {
			return false, false
		}
		m.look(1)
		c.Part()
		if found = w == part; m.isFlat(w) && m.isFlat(part) {
			c.Text(min(m.strLen(w), m.strLen(part)))
			found = bytes.Equal(m.view(w), m.view(part))
		}
	}
	if m.spend(c.Steps()) {
		return true, true
	}
	return m.set(in, fromBool(found))
}

// isPlain reports whether w is a small integer, a truth value, null, the empty list or a
// flat string.
func (m *Machine) isPlain(w word) bool { return isInt(w) || w&tagMask == tagImm || m.isFlat(w) }

func (m *Machine) nativeTypeOf(in *code.Instr) (done, stop bool) {
	t, _ := m.Measure(*m.reg(in.C))
	return m.giveRunes(in, []byte(t), len(t))
}
