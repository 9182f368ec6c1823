package eval

import (
	"bytes"
	"cmp"

	"github.com/mcp-pif/mcp-pif/core/code"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// natives are the rows that the machine does on its own objects, in place of
// the row's Eval: those whose cost would otherwise be the size of their
// operands. They do what Eval does, to the letter of its faults; where an
// operand is of a wrong kind they leave it to Eval.
var natives = func() []func(m *Machine, in *code.Instr) (done, stop bool) {
	fs := make([]func(m *Machine, in *code.Instr) (done, stop bool), len(prim.Table))
	for name, f := range map[string]func(m *Machine, in *code.Instr) (done, stop bool){
		"get": (*Machine).nativeGet,
		"has": (*Machine).nativeHas,
		"put": (*Machine).nativePut,
		"del": (*Machine).nativeDel,

		"compare": (*Machine).nativeCompare,

		"round_dec": (*Machine).nativeRoundDec,
		"div_dec":   (*Machine).nativeDivDec,
		"to_int":    (*Machine).nativeToInt,

		"to_text":     (*Machine).nativeToText,
		"to_json":     (*Machine).nativeToJSON,
		"parse_json":  (*Machine).nativeParseJSON,
		"to_csv":      (*Machine).nativeToCSV,
		"parse_csv":   (*Machine).nativeParseCSV,
		"parse_int":   (*Machine).nativeParseInt,
		"join":        (*Machine).nativeJoin,
		"split":       (*Machine).nativeSplit,
		"words":       (*Machine).nativeWords,
		"replace":     (*Machine).nativeReplace,
		"pad_left":    (*Machine).nativePadLeft,
		"pad_right":   (*Machine).nativePadRight,
		"upper":       (*Machine).nativeUpper,
		"lower":       (*Machine).nativeLower,
		"starts_with": (*Machine).nativeStartsWith,
		"ends_with":   (*Machine).nativeEndsWith,
		"contains":    (*Machine).nativeContains,
		"type_of":     (*Machine).nativeTypeOf,

		"nth":     (*Machine).nativeNth,
		"at":      (*Machine).nativeAt,
		"set_nth": (*Machine).nativeSetNth,
		"push":    (*Machine).nativePush,
		"slice":   (*Machine).nativeSlice,
		"range":   (*Machine).nativeRange,
	} {
		if id, _, ok := prim.Lookup(name); ok {
			fs[id] = f
		}
	}
	return fs
}()

// set makes w what a native row gives.
func (m *Machine) set(in *code.Instr, w word) (done, stop bool) {
	*m.reg(in.A) = w
	return true, false
}

// field returns the record and key that are the first two operands.
func (m *Machine) field(in *code.Instr) (rec, key word, ok bool) {
	rec, key = *m.reg(in.C), *m.reg(in.C + 1)
	return rec, key, m.isRecord(rec) && m.isString(key)
}

func (m *Machine) nativeGet(in *code.Instr) (done, stop bool) {
	rec, key, ok := m.field(in)
	if !ok {
		return false, false
	}
	w, ok := m.recordGet(rec, key)
	if !ok {
		if in.B < 3 {
			return true, m.fail(prim.MissingKey(m.goString(key), m.firstKeys(rec, prim.NearKeys)))
		}
		w = *m.reg(in.C + 2)
	}
	return m.set(in, w)
}

// firstKeys copies the first n keys of a record.
func (m *Machine) firstKeys(rec word, n int) []string {
	var keys []string
	m.fields(rec, func(k, _ word) bool {
		keys = append(keys, m.goString(k))
		return len(keys) < n
	})
	return keys
}

func (m *Machine) nativeHas(in *code.Instr) (done, stop bool) {
	rec, key, ok := m.field(in)
	if !ok {
		return false, false
	}
	_, has := m.recordGet(rec, key)
	return m.set(in, fromBool(has))
}

func (m *Machine) nativePut(in *code.Instr) (done, stop bool) {
	if _, _, ok := m.field(in); !ok {
		return false, false
	}
	if !m.reserve(putWords+strWords(m.strLen(*m.reg(in.C + 1))), int(in.K)) {
		return true, true
	}
	rec, key, _ := m.field(in)
	if headerKind(*m.obj(key, 0)) != kStr {
		key = m.newString(m.goString(key))
	}
	return m.set(in, m.recordPut(rec, key, *m.reg(in.C + 2)))
}

// putOwn is put where the compiler knows that after the first put of a fold nobody else
// sees the record: it says so in register own, and the later ones may change a value in place.
func (m *Machine) putOwn(own uint8, in *code.Instr) bool {
	rec, key, ok := m.field(in)
	flag := m.reg(own)
	// Of a tree the first put copies a path only: it stays shared.
	fresh := ok && headerKind(*m.obj(rec, 0)) == kRecord
	if ok && *flag == wTrue && headerKind(*m.obj(rec, 0)) == kNode {
		k := m.keyOf(key)
		if t := m.treeFind(rec, &k); t != wUnit {
			*m.obj(t, 3) = *m.reg(in.C + 2)
			*m.reg(in.A) = rec
			return false
		}
	}
	if !ok {
		return m.generic(in)
	}
	if _, stop := m.nativePut(in); stop {
		return true
	}
	if fresh {
		*flag = wTrue
	}
	return false
}

func (m *Machine) nativeDel(in *code.Instr) (done, stop bool) {
	if _, _, ok := m.field(in); !ok {
		return false, false
	}
	if !m.reserve(putWords, int(in.K)) {
		return true, true
	}
	rec, key, _ := m.field(in)
	return m.set(in, m.recordDel(rec, key))
}

// item returns the list and index that are the first two operands, for an
// index the list has; fromEnd says that a negative one counts from the end.
func (m *Machine) item(in *code.Instr, fromEnd bool) (list word, i int, ok bool) {
	list, iw := *m.reg(in.C), *m.reg(in.C + 1)
	if !m.isList(list) || !isInt(iw) {
		return 0, 0, false
	}
	k := toInt(iw)
	if k < 0 && fromEnd {
		n, cells := m.listLen(list)
		m.effort(cells / 64)
		k += int64(n)
	}
	if k < 0 || k > 1<<40 {
		return 0, 0, false
	}
	i = int(k)
	n, cells := m.reach(list, i)
	m.effort(cells / 64)
	return list, i, i < n
}

// reach walks the cons cells of a list up to the one that holds item i. It
// returns how many items there are, or i+1 where there are more cells, and how
// many cells were passed.
func (m *Machine) reach(w word, i int) (n, cells int) {
	for ; w&tagMask == tagCons; w = *m.at(w - tagCons + 8) {
		if cells == i {
			return i + 1, cells
		}
		cells++
	}
	if w == wNil {
		return cells, cells
	}
	return cells + m.vecLen(w), cells
}

func (m *Machine) nativeNth(in *code.Instr) (done, stop bool) { return m.giveItem(in, false) }

// giveItem does nth, and at of a list.
func (m *Machine) giveItem(in *code.Instr, fromEnd bool) (done, stop bool) {
	if w, i := *m.reg(in.C), *m.reg(in.C + 1); isInt(i) && m.isVec(w) {
		k, n := int(toInt(i)), m.vecLen(w)
		if k < 0 && fromEnd {
			k += n
		}
		if k < 0 || k >= n {
			return false, false
		}
		return m.set(in, m.vecAt(w, k))
	}
	w, i := *m.reg(in.C), 0
	if k := *m.reg(in.C + 1); w&tagMask == tagCons && k <= fromInt(1<<40) && isInt(k) {
		cells := 0
		for i = int(toInt(k)); w&tagMask == tagCons && i > 0; i-- {
			w = *m.at(w - tagCons + 8)
			cells++
		}
		m.effort(cells / 64)
		if w == wNil || w&tagMask != tagCons && i >= m.vecLen(w) {
			return false, false
		}
	} else {
		var ok bool
		if w, i, ok = m.item(in, fromEnd); !ok {
			return false, false
		}
	}
	for ; w&tagMask == tagCons; w = *m.at(w - tagCons + 8) {
		if i == 0 {
			return m.set(in, *m.at(w - tagCons))
		}
		i--
	}
	return m.set(in, m.vecAt(w, i))
}

// nativeAt does at of a record, a part of a pair, an item of a list and a slice of a vector.
func (m *Machine) nativeAt(in *code.Instr) (done, stop bool) {
	w, iw := *m.reg(in.C), *m.reg(in.C + 1)
	switch {
	case in.B == 2 && m.isRecord(w):
		return m.nativeGet(in)
	case in.B == 2 && w&tagMask == tagPair && (iw == fromInt(0) || iw == fromInt(1)):
		return m.set(in, *m.at(w - tagPair + word(toInt(iw))*8))
	case in.B == 2:
		return m.giveItem(in, true)
	case in.B == 3 && m.isVec(w) && m.isBound(iw) && m.isBound(*m.reg(in.C + 2)):
		if !m.reserve(vecWords, int(in.K)) {
			return true, true
		}
		w = *m.reg(in.C)
		from, to := prim.Bounds(m.sketch(iw), m.sketch(*m.reg(in.C + 2)), m.vecLen(w))
		return m.set(in, m.vecSlice(w, from, to))
	}
	return false, false
}

// isBound reports whether w is where a slice may begin or end.
func (m *Machine) isBound(w word) bool { return isInt(w) || w == wUnit }

// vector makes the list in a register a vector, if it is none and long, with
// room for words more. It returns false where the run has failed.
func (m *Machine) vector(r uint8, words, height int) bool {
	w := *m.reg(r)
	if m.isVec(w) {
		return m.reserve(words, height)
	}
	n, cells := m.listLen(w)
	m.effort(cells / 16)
	if !m.reserve(listWords(n+1)+2+words, height) {
		return false
	}
	*m.reg(r) = m.copyList(*m.reg(r), n)
	return true
}

// copyList makes a new list of the n items of a list.
func (m *Machine) copyList(w word, n int) word {
	i := 0
	return m.makeList(n, func(int) word {
		if w&tagMask == tagCons {
			v := *m.at(w - tagCons)
			w = *m.at(w - tagCons + 8)
			return v
		}
		i++
		return m.vecAt(w, i-1)
	})
}

func (m *Machine) nativeSetNth(in *code.Instr) (done, stop bool) {
	_, i, ok := m.item(in, false)
	if !ok {
		return false, false
	}
	if !m.vector(in.C, pathWords, int(in.K)) {
		return true, true
	}
	w, v := *m.reg(in.C), *m.reg(in.C + 2)
	if m.isVec(w) {
		w = m.vecSet(w, i, v)
	} else {
		// A short list was copied.
		c := w
		for range i {
			c = *m.at(c - tagCons + 8)
		}
		*m.at(c - tagCons) = v
	}
	return m.set(in, w)
}

func (m *Machine) nativePush(in *code.Instr) (done, stop bool) {
	if m.isVec(*m.reg(in.C)) {
		if !m.reserve(vecWords, int(in.K)) {
			return true, true
		}
		if v, ok := m.vecAdd(*m.reg(in.C), *m.reg(in.C + 1)); ok {
			return m.set(in, v)
		}
	} else if !m.isList(*m.reg(in.C)) {
		return false, false
	}
	if n, _ := m.listLen(*m.reg(in.C)); !m.isVec(*m.reg(in.C)) && n <= shortList {
		// What is added to is soon added to again: a short list gets room for that.
		if !m.reserve(vecWords+listWords(shortList+1), int(in.K)) {
			return true, true
		}
		next := m.walkList(*m.reg(in.C))
		item := func(i int) word {
			if i == n {
				return *m.reg(in.C + 1)
			}
			v, _ := next.next()
			return v
		}
		if n < pushedCells || n == shortList {
			return m.set(in, m.makeList(n+1, item))
		}
		p := m.newRoomy(n + 1)
		for i := range n + 1 {
			*m.obj(p, 2+i) = item(i)
		}
		return m.set(in, m.newVec(p, 0, n+1, 0))
	}
	if !m.vector(in.C, pathWords, int(in.K)) {
		return true, true
	}
	w := *m.reg(in.C)
	return m.set(in, m.vecSet(w, m.vecLen(w), *m.reg(in.C + 1)))
}

func (m *Machine) nativeSlice(in *code.Instr) (done, stop bool) {
	w, fw, tw := *m.reg(in.C), *m.reg(in.C + 1), *m.reg(in.C + 2)
	if !m.isVec(w) || !isInt(fw) || !isInt(tw) || toInt(fw) < 0 || toInt(tw) < toInt(fw) {
		return false, false
	}
	if !m.reserve(vecWords, int(in.K)) {
		return true, true
	}
	w = *m.reg(in.C)
	n := int64(m.vecLen(w))
	return m.set(in, m.vecSlice(w, int(min(toInt(fw), n)), int(min(toInt(tw), n))))
}

// nativeRange makes the integers where they are to be, with no copy in Go.
func (m *Machine) nativeRange(in *code.Instr) (done, stop bool) {
	fw, tw := *m.reg(in.C), *m.reg(in.C + 1)
	if !isInt(fw) || !isInt(tw) || toInt(tw) <= toInt(fw) {
		return false, false
	}
	from := toInt(fw)
	n := int(toInt(tw) - from)
	if m.spend(prim.ItemsCost(n)) {
		return true, true
	}
	if 16*int64(n) > m.budget.Memory {
		return true, m.outOfMemory()
	}
	if !m.reserve(listWords(n), int(in.K)) {
		return true, true
	}
	return m.set(in, m.makeList(n, func(i int) word { return fromInt(from + int64(i)) }))
}

// nativeCompare compares two numbers of a word or two short strings.
func (m *Machine) nativeCompare(in *code.Instr) (done, stop bool) {
	d, ok := m.compareShort(*m.reg(in.C), *m.reg(in.C + 1))
	if ok {
		*m.reg(in.A) = fromInt(int64(d))
	}
	return ok, false
}

// compareShort orders two numbers of a word each, or two strings of which each lies in one piece
// and one is so short that comparing them takes no steps. ok is false for all others.
func (m *Machine) compareShort(a, b word) (d int, ok bool) {
	if (a|b)&1 == 0 {
		return cmp.Compare(int64(a), int64(b)), true
	}
	if d, ok := m.compareNumbers(a, b); ok {
		return d, true
	}
	if !m.isFlat(a) || !m.isFlat(b) || min(m.strLen(a), m.strLen(b)) > prim.FreeText {
		return 0, false
	}
	return bytes.Compare(m.view(a), m.view(b)), true
}

// isFlat reports whether w is a string that lies in one piece.
func (m *Machine) isFlat(w word) bool {
	return w&tagMask == tagBox && headerKind(*m.obj(w, 0)) == kStr
}
