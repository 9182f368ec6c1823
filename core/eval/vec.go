package eval

import (
	"unsafe"

	"github.com/mcp-pif/mcp-pif/core/code"
)

// Lists are chains of cons cells, made by cons, and vectors, made by literals,
// inputs and primitives of more than shortList items, and by push of more than pushedCells. A vector is a
// window on a radix tree of 32-way nodes (P. Bagwell, Ideal Hash Trees, 2001;
// as in Clojure's vectors): reading or changing an item and adding one at the
// end take time in the logarithm of its length with base 32, a part of it takes
// no copy. The tail of a chain may be a vector; a vector is never empty.

// shortList is the most items that a new list has as cons cells.
const shortList = 32

const (
	vecBits  = 5
	vecWidth = 1 << vecBits
	vecMask  = vecWidth - 1
	vecWords = 6 // header, root, start, length, shift of the root, padding
	// pathWords is how much a changed path may take: a node of each level.
	pathWords = vecWords + 8*(vecWidth+2)
	// vecHeader is the first word of a vector.
	vecHeader = tagHeader | kVec<<4 | vecWords<<8
	// nearCells is how many cells the loop goes through for an item: so few are no effort.
	nearCells = 64
	// pushedCells is the most items of a list that push makes of cons cells.
	pushedCells = 8
	// expanded is how many items at a time a fold takes out of a vector.
	expanded = 64
)

func (m *Machine) isVec(w word) bool { return m.isKind(w, kVec) }

func (m *Machine) vecLen(w word) int { return int(*m.obj(w, 3) >> 1) }

// isList reports whether w is a list.
func (m *Machine) isList(w word) bool {
	return w&tagMask == tagCons || w == wNil || m.isVec(w)
}

// listWords returns how many words a new list of n items takes.
func listWords(n int) int {
	if n <= shortList {
		return 2 * n
	}
	words, level := vecWords, n
	for level > 1 {
		nodes := (level + vecMask) / vecWidth
		words += level + 2*nodes + nodes
		level = nodes
	}
	return words
}

// makeList makes a list of n items. Room for it, and for what item allocates,
// has been reserved.
func (m *Machine) makeList(n int, item func(i int) word) word {
	if n == 0 {
		return wNil
	}
	if n <= shortList {
		p := m.alloc(2 * n)
		for i := range n {
			cell := p + word(i)*16
			next := (cell + 16) | tagCons
			if i == n-1 {
				next = wNil
			}
			*m.at(cell), *m.at(cell + 8) = wUnit, next
		}
		for i := range n {
			v := item(i)
			*m.at(p + word(i)*16) = v
		}
		return p | tagCons
	}
	level := make([]word, 0, (n+vecMask)/vecWidth)
	for at := 0; at < n; at += vecWidth {
		k := min(vecWidth, n-at)
		p := m.newChunk(k)
		for i := range k {
			v := item(at + i)
			*m.obj(p, 2+i) = v
		}
		level = append(level, p)
	}
	shift := 0
	for len(level) > 1 {
		shift += vecBits
		up := level[:0]
		for at := 0; at < len(level); at += vecWidth {
			k := min(vecWidth, len(level)-at)
			p := m.newChunk(k)
			for i := range k {
				*m.obj(p, 2+i) = level[at+i]
			}
			up = append(up, p)
		}
		level = up
	}
	return m.newVec(level[0], 0, n, shift)
}

// newChunk makes a node of k children or items, to be filled.
func (m *Machine) newChunk(k int) word {
	words := even(2 + k)
	p := m.alloc(words)
	*m.at(p) = header(kChunk, words)
	*m.at(p + 8) = fromInt(int64(k))
	for i := range words - 2 {
		*m.at(p + 16 + word(i)*8) = wUnit
	}
	return p | tagBox
}

// newRoomy makes a leaf of k items, to be filled, with room for all it can have: see
// vecAdd.
func (m *Machine) newRoomy(k int) word {
	p := m.newChunk(vecWidth)
	*m.obj(p, 1) = fromInt(int64(k))
	return p
}

func (m *Machine) newVec(root word, start, n, shift int) word {
	p := m.alloc(vecWords)
	*m.at(p), *m.at(p + 8) = header(kVec, vecWords), root
	*m.at(p + 16), *m.at(p + 24) = fromInt(int64(start)), fromInt(int64(n))
	*m.at(p + 32), *m.at(p + 40) = fromInt(int64(shift)), 0
	return p | tagBox
}

// vecAt returns item i of a vector.
func (m *Machine) vecAt(w word, i int) word {
	j := int(*m.obj(w, 2)>>1) + i
	node := *m.obj(w, 1)
	for s := int(*m.obj(w, 4) >> 1); s > 0; s -= vecBits {
		node = *m.obj(node, 2+j>>s&vecMask)
	}
	return *m.obj(node, 2+j&vecMask)
}

// vecSlice returns the items from lo to hi of a vector, in vecWords that were
// reserved.
func (m *Machine) vecSlice(w word, lo, hi int) word {
	if lo == hi {
		return wNil
	}
	if lo == 0 && hi == m.vecLen(w) {
		return w
	}
	return m.newVec(*m.obj(w, 1), int(*m.obj(w, 2)>>1)+lo, hi-lo, int(*m.obj(w, 4)>>1))
}

// vecSet returns the vector with item i replaced, or added where i is its
// length, in pathWords that were reserved.
func (m *Machine) vecSet(w word, i int, v word) word {
	start, n, shift := int(*m.obj(w, 2)>>1), m.vecLen(w), int(*m.obj(w, 4)>>1)
	root := *m.obj(w, 1)
	j := start + i
	if j>>(shift+vecBits) > 0 {
		up := m.newChunk(1)
		*m.obj(up, 2) = root
		root, shift = up, shift+vecBits
	}
	return m.newVec(m.chunkSet(root, shift, j, v), start, max(n, i+1), shift)
}

// vecAdd adds an item to a vector where its last leaf has room for it and nobody has added
// to that yet, in vecWords that were reserved: others see as many items as before.
func (m *Machine) vecAdd(w, v word) (word, bool) {
	start, n, shift := int(*m.obj(w, 2)>>1), m.vecLen(w), int(*m.obj(w, 4)>>1)
	node, i := *m.obj(w, 1), start+n
	if i>>(shift+vecBits) > 0 {
		return 0, false
	}
	for s := shift; s > 0; s -= vecBits {
		k := i >> s & vecMask
		if k >= int(*m.obj(node, 1)>>1) {
			return 0, false
		}
		node = *m.obj(node, 2+k)
	}
	i &= vecMask
	if int(*m.obj(node, 1)>>1) != i || i+2 >= headerWords(*m.obj(node, 0)) {
		return 0, false
	}
	*m.obj(node, 2+i), *m.obj(node, 1) = v, fromInt(int64(i+1))
	return m.newVec(*m.obj(w, 1), start, n+1, shift), true
}

func (m *Machine) chunkSet(node word, shift, j int, v word) word {
	k, at := 0, j>>shift&vecMask
	if node != wUnit {
		k = int(*m.obj(node, 1) >> 1)
	}
	var p word
	if shift == 0 && at == k {
		p = m.newRoomy(k + 1)
	} else {
		p = m.newChunk(max(k, at+1))
	}
	for i := range k {
		*m.obj(p, 2+i) = *m.obj(node, 2+i)
	}
	if shift > 0 {
		v = m.chunkSet(*m.obj(p, 2+at), shift-vecBits, j, v)
	}
	*m.obj(p, 2+at) = v
	return p
}

// expandWords is what expand takes.
const expandWords = 2*expanded + vecWords

// expand returns a vector's list with its first items as cons cells, for a
// fold to go through, in expandWords that were reserved.
func (m *Machine) expand(w word) word {
	n := m.vecLen(w)
	k := min(n, expanded)
	rest := m.vecSlice(w, k, n)
	p := m.alloc(2 * k)
	cell := p
	for i := 0; i < k; {
		items := m.leaf(w, i)
		items = items[:min(len(items), k-i)]
		for _, v := range items {
			*m.at(cell), *m.at(cell + 8) = v, (cell+16)|tagCons
			cell += 16
		}
		i += len(items)
	}
	*m.at(cell - 8) = rest
	return p | tagCons
}

// leaf returns the items of a vector from item i on that lie in one leaf.
func (m *Machine) leaf(w word, i int) []word {
	j := int(*m.obj(w, 2)>>1) + i
	node := *m.obj(w, 1)
	for s := int(*m.obj(w, 4) >> 1); s > 0; s -= vecBits {
		node = *m.obj(node, 2+j>>s&vecMask)
	}
	return unsafe.Slice(m.obj(node, 2+j&vecMask), min(m.vecLen(w)-i, vecWidth-j&vecMask))
}

// addItems does what FoldAdd does where a vector is left, as far as the sum is a small integer.
func (m *Machine) addItems(in *code.Instr) bool {
	if !m.reserve(vecWords, int(in.A)+3) {
		return true
	}
	acc, w, i := *m.reg(in.A), *m.reg(in.A + 2), 0
	n := m.vecLen(w)
items:
	for i < n {
		for _, v := range m.leaf(w, i) {
			s := acc + v
			if (acc|v)&1|((acc^s)&(v^s))>>63 != 0 || spent(m.fuel+in.K) {
				break items
			}
			m.fuel += in.K
			acc = s
			i++
		}
	}
	if i == 0 {
		return m.expandAt(in.A+2, int(in.A)+3)
	}
	*m.reg(in.A), *m.reg(in.A + 2) = acc, m.vecSlice(w, i, n)
	m.again()
	return false
}

// listLen returns the length of a list, and how many cons cells it starts with.
func (m *Machine) listLen(w word) (n, cells int) {
	for ; w&tagMask == tagCons; w = *m.at(w - tagCons + 8) {
		cells++
	}
	if w == wNil {
		return cells, cells
	}
	return cells + m.vecLen(w), cells
}
