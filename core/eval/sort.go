package eval

import (
	"bytes"
	"encoding/binary"
	"unsafe"

	"github.com/mcp-pif/mcp-pif/core/code"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// sort_by of small integers or short strings, as the body of the row sorts: by the same
// merges, whose steps are counted. The tests hold each number here against that body.
const (
	sortSteps    = 31 // for a list of one
	sortPerItem  = 68 // of each further item: a list is split, and two are merged
	sortPerMerge = 41 // of an item that is taken from the smaller, with keys of a step
	sortNoSecond = 3  // where of two lists the second has ended
)

// maxSorted is the most items that are sorted in Go's memory.
const maxSorted = 1 << 17

// sortDepth is more than the depth that the body takes for as many.
const sortDepth = 32

// sortItem is the key of item i; of a string the first bytes.
type sortItem struct {
	key int64
	i   int32
}

type sorter struct {
	m           *Machine
	texts       []word // where the keys are strings
	items, room []sortItem
	taken, ends uint64
}

// sort puts the sorted list into a register and jumps, or goes on with the row's body.
func (m *Machine) sort(in *code.Instr) (stop bool) {
	meta := &m.meta[m.index()]
	negative := meta.Side == code.ConstLeft
	if m.fuel>>40 < sortDepth {
		return false
	}
	n, _ := m.lengthOf(*m.reg(in.B))
	if n < 1 || n > maxSorted {
		return false
	}
	m.look(n)
	s := sorter{m: m, items: make([]sortItem, n), room: make([]sortItem, (n+1)/2)}
	if !s.find(*m.reg(in.B), *m.reg(in.C), negative) {
		return false
	}
	s.sort(s.items)
	keySteps := uint64(0)
	if *m.reg(in.C) != wUnit {
		keySteps += 2
	}
	if negative {
		keySteps += 2
	}
	cost := prim.LengthCost(n) + sortSteps + sortPerItem*uint64(n-1) + (sortPerMerge+2*keySteps)*s.taken + sortNoSecond*s.ends
	// Where the budget ends in the middle the body finds out.
	if left := m.stepsIn() + int64(m.left) - m.pending(); left < 0 || cost > uint64(left) {
		return false
	}
	m.work(cost)
	if !m.reserve(listWords(n), int(meta.Height)) {
		return true
	}
	words := make([]word, 0, n)
	for l := m.walkList(*m.reg(in.B)); ; {
		w, ok := l.next()
		if !ok {
			break
		}
		words = append(words, w)
	}
	*m.reg(in.A) = m.makeList(n, func(i int) word { return words[s.items[i].i] })
	m.fuel += in.K
	m.ip = unsafe.Add(unsafe.Pointer(in), int(in.D))
	return false
}

// lengthOf returns the length of a list; not ok: w is none.
func (m *Machine) lengthOf(w word) (n int, ok bool) {
	if !m.isList(w) {
		return 0, false
	}
	n, _ = m.listLen(w)
	return n, true
}

// find finds the keys of all items: false where they aren't all small integers, or all
// short strings.
func (s *sorter) find(list, field word, negative bool) bool {
	m := s.m
	l := m.walkList(list)
	for i := range s.items {
		w, _ := l.next()
		if field != wUnit {
			if !m.isRecord(w) {
				return false
			}
			var ok bool
			if w, ok = m.recordGet(w, field); !ok {
				return false
			}
		}
		s.items[i].i = int32(i)
		switch {
		case isInt(w) && s.texts == nil:
			if s.items[i].key = toInt(w); negative {
				if w == fromInt(code.MinInt) {
					return false
				}
				s.items[i].key = -s.items[i].key
			}
		case !negative && m.isFlat(w) && m.strLen(w) <= prim.FreeText && (i == 0 || s.texts != nil):
			if i == 0 {
				s.texts = make([]word, len(s.items))
			}
			s.texts[i] = w
			var first [8]byte
			copy(first[:], m.view(w))
			s.items[i].key = int64(binary.BigEndian.Uint64(first[:]) ^ 1<<63)
		default:
			return false
		}
	}
	return true
}

// sort sorts as sort_by splits: the first half, then the rest.
func (s *sorter) sort(items []sortItem) {
	if len(items) < 2 {
		return
	}
	h := len(items) / 2
	s.sort(items[:h])
	s.sort(items[h:])
	a := s.room[:copy(s.room, items[:h])]
	b := items[h:]
	// Which of two is smaller can't be foretold, so nothing jumps on it.
	i, j, to := 0, 0, 0
	for i < len(a) && j < len(b) {
		x, y := a[i], b[j]
		second := 0
		if y.key < x.key {
			second = 1
		}
		if y.key == x.key && s.texts != nil && s.compare(y, x) < 0 {
			second = 1
		}
		if second != 0 {
			x = y
		}
		items[to] = x
		i, j, to = i+1-second, j+second, to+1
	}
	s.taken += uint64(to)
	if i < len(a) {
		s.ends++
	}
	copy(items[to:], a[i:])
}

// compare compares two strings that begin alike.
func (s *sorter) compare(a, b sortItem) int {
	x, y := s.texts[a.i], s.texts[b.i]
	if x == y {
		return 0
	}
	return bytes.Compare(s.m.view(x), s.m.view(y))
}
