package eval

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
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

const (
	// maxSorted is the most items that are sorted in Go's memory, indexBits what the index of one takes.
	maxSorted = 1 << indexBits
	indexBits = 17
	// byDigits is how many integers at least are sorted by their digits.
	byDigits = 256
	// sortDepth is more than the depth that the body takes for as many.
	sortDepth = 32
)

// sortItem is the key of item i; of a string the first bytes.
type sortItem struct {
	key uint64
	i   int32
}

type sorter struct {
	m           *Machine
	texts       []word // where the keys are strings
	keys        []uint64
	room        []sortItem
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
	s := sorter{m: m, keys: make([]uint64, n)}
	if !s.find(*m.reg(in.B), *m.reg(in.C), negative) {
		return false
	}
	s.order()
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
	*m.reg(in.A) = m.makeList(n, func(i int) word { return words[s.keys[i]%maxSorted] })
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
	for i := range s.keys {
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
		switch {
		case isInt(w) && s.texts == nil:
			key := toInt(w)
			if negative {
				if w == fromInt(code.MinInt) {
					return false
				}
				key = -key
			}
			s.keys[i] = uint64(key) ^ 1<<63
		case !negative && m.isFlat(w) && m.strLen(w) <= prim.FreeText && (i == 0 || s.texts != nil):
			if i == 0 {
				s.texts = make([]word, len(s.keys))
			}
			s.texts[i] = w
			var first [8]byte
			copy(first[:], m.view(w))
			s.keys[i] = binary.BigEndian.Uint64(first[:])
		default:
			return false
		}
	}
	return true
}

// order puts the indexes of the items in order, each in the lowest bits of a key.
func (s *sorter) order() {
	n, low, high := len(s.keys), slices.Min(s.keys), slices.Max(s.keys)
	if width := bits.Len64(high-low) + indexBits; s.texts == nil && n >= byDigits && width <= 64 {
		for i, k := range s.keys {
			s.keys[i] = (k-low)<<indexBits | uint64(i)
		}
		s.merges(s.keys)
		s.digits(width)
		return
	}
	items := make([]sortItem, n)
	for i, k := range s.keys {
		items[i] = sortItem{k, int32(i)}
	}
	s.room = make([]sortItem, (n+1)/2)
	s.sort(items)
	for i := range items {
		s.keys[i] = uint64(items[i].i)
	}
}

// merges counts what sort counts, of keys that all differ, and returns the largest: of two sorted lists one ends
// when the smaller of their largest keys is taken, and the keys above that, all in the other, are not.
func (s *sorter) merges(keys []uint64) uint64 {
	n := len(keys)
	x, y, half := keys[0], keys[n-1], keys[n/2:]
	switch {
	case n == 1:
		return x
	case n > 2:
		x, y = s.merges(keys[:n/2]), s.merges(half)
	}
	if x > y {
		s.ends++
		x, y, half = y, x, keys[:n/2]
	}
	left := 0
	for _, k := range half {
		if k > x {
			left++
		}
	}
	s.taken += uint64(n - left)
	return y
}

// digits sorts the keys by their bits from indexBits to width, a byte at a time; in those below they are in order.
func (s *sorter) digits(width int) {
	from, to := s.keys, make([]uint64, len(s.keys))
	for shift := indexBits; shift < width; shift += 8 {
		var at [256]uint32
		for _, k := range from {
			at[byte(k>>(shift&63))]++
		}
		sum := uint32(0)
		for i, n := range at {
			at[i] = sum
			sum += n
		}
		for _, k := range from {
			d := byte(k >> (shift & 63))
			to[at[d]] = k
			at[d]++
		}
		from, to = to, from
	}
	s.keys = from
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
