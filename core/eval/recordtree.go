package eval

import (
	"bytes"
	"cmp"
	"math/bits"
	"unsafe"
)

// Records of up to flatFields fields are one object with the fields in order.
// Larger ones are weight-balanced trees (S. Adams, Efficient sets: a balancing
// act, 1993; with the parameters of Y. Hirai and K. Yamamoto, Balancing
// weight-balanced trees, 2011), so that reading and changing them takes time
// in the logarithm of their size and shares all the rest.

// flatFields is the largest record that is kept flat.
const flatFields = 32

const (
	nodeWords = 6 // header, size, key, value, left, right
	delta     = 3
	ratio     = 2
)

// putWords is how much a change of a record may allocate, the key not counted:
// a flat one is copied, or made a tree; of a tree a path is copied, whose
// length is below 2·log2 of any size there is memory for, with up to two more
// nodes for a rotation at each step.
const putWords = 2 + 2*(flatFields+1) + nodeWords*(flatFields+1) + 3*2*32*nodeWords

func (m *Machine) isRecord(w word) bool {
	if w&tagMask != tagBox {
		return false
	}
	k := headerKind(*m.obj(w, 0))
	return k == kRecord || k == kNode
}

// recordLen returns the number of fields; wUnit is the empty tree.
func (m *Machine) recordLen(w word) int {
	if w == wUnit {
		return 0
	}
	return int(*m.obj(w, 1) >> 1)
}

// view returns the bytes of a string, to be used before the next allocation.
func (m *Machine) view(w word) []byte {
	if headerKind(*m.obj(w, 0)) == kStr {
		return m.rawBytes(w, 2, m.strLen(w))
	}
	return []byte(m.goString(w))
}

// A textKey is a key that is looked for: of a short one the words, in the order of their
// bytes. It is good until the next allocation.
type textKey struct {
	bytes  []byte
	short  bool
	w0, w1 uint64
}

func (m *Machine) keyOf(w word) textKey {
	k := textKey{bytes: m.view(w)}
	if *m.obj(w, 0) == shortText {
		k.short, k.w0, k.w1 = true, bits.ReverseBytes64(*m.obj(w, 2)), bits.ReverseBytes64(*m.obj(w, 3))
	}
	return k
}

// compare orders the key and a flat string.
func (k *textKey) compare(m *Machine, w word) int {
	if !k.short || *m.obj(w, 0) != shortText {
		return bytes.Compare(k.bytes, m.view(w))
	}
	if w0 := bits.ReverseBytes64(*m.obj(w, 2)); k.w0 != w0 {
		return cmp.Compare(k.w0, w0)
	}
	if w1 := bits.ReverseBytes64(*m.obj(w, 3)); k.w1 != w1 {
		return cmp.Compare(k.w1, w1)
	}
	return cmp.Compare(len(k.bytes), m.strLen(w))
}

// flatFind returns the index of the key in a flat record, or where it would go.
func (m *Machine) flatFind(w word, key *textKey) (int, bool) {
	lo, hi := 0, m.recordLen(w)
	for lo < hi {
		mid := (lo + hi) / 2
		switch c := key.compare(m, *m.obj(w, 2+2*mid)); {
		case c == 0:
			return mid, true
		case c > 0:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return lo, false
}

// recordGet returns the value of a key.
func (m *Machine) recordGet(w, name word) (word, bool) {
	key := m.keyOf(name)
	return m.recordFind(w, &key)
}

func (m *Machine) recordFind(w word, key *textKey) (word, bool) {
	if headerKind(*m.obj(w, 0)) == kRecord {
		i, ok := m.flatFind(w, key)
		if !ok {
			return 0, false
		}
		return *m.obj(w, 3+2*i), true
	}
	if w = m.treeFind(w, key); w == wUnit {
		return 0, false
	}
	return *m.obj(w, 3), true
}

// treeFind returns the node of a key, or wUnit.
func (m *Machine) treeFind(w word, key *textKey) word {
	for w != wUnit {
		switch c := key.compare(m, *m.obj(w, 2)); {
		case c == 0:
			return w
		case c < 0:
			w = *m.obj(w, 4)
		default:
			w = *m.obj(w, 5)
		}
	}
	return w
}

// recordPut returns the record with the key's value replaced or added. putWords
// have been reserved. key is a flat string.
func (m *Machine) recordPut(w, key, val word) word {
	k := m.keyOf(key)
	if headerKind(*m.obj(w, 0)) == kNode {
		return m.treePut(w, key, val, &k)
	}
	n := m.recordLen(w)
	i, found := m.flatFind(w, &k)
	if !found && n == flatFields {
		return m.treePut(m.treeOf(w, 0, n), key, val, &k)
	}
	size := n
	if !found {
		size++
	}
	p := m.newFlat(size)
	old, made := unsafe.Slice(m.obj(w, 2), 2*n), unsafe.Slice(m.obj(p, 2), 2*size)
	copy(made, old[:2*i])
	made[2*i], made[2*i+1] = key, val
	if found {
		made[2*i] = old[2*i]
		i++
	}
	copy(made[2*(size-(n-i)):], old[2*i:])
	return p
}

// recordDel returns the record without the key. putWords have been reserved.
func (m *Machine) recordDel(w, name word) word {
	key := m.keyOf(name)
	if headerKind(*m.obj(w, 0)) == kNode {
		t, _ := m.treeDel(w, &key)
		if t == wUnit {
			return m.newFlat(0)
		}
		return t
	}
	i, found := m.flatFind(w, &key)
	if !found {
		return w
	}
	n := m.recordLen(w) - 1
	p := m.newFlat(n)
	for to := range n {
		from := to
		if from >= i {
			from++
		}
		*m.obj(p, 2+2*to), *m.obj(p, 3+2*to) = *m.obj(w, 2+2*from), *m.obj(w, 3+2*from)
	}
	return p
}

// newFlat makes a flat record of n fields, to be filled.
func (m *Machine) newFlat(n int) word {
	words := even(2 + 2*n)
	p := m.alloc(words)
	*m.at(p) = header(kRecord, words)
	*m.at(p + 8) = fromInt(int64(n))
	return p | tagBox
}

// fields calls visit for each field in order, until it returns false.
func (m *Machine) fields(w word, visit func(key, val word) bool) bool {
	if w == wUnit {
		return true
	}
	if headerKind(*m.obj(w, 0)) == kRecord {
		for i := range m.recordLen(w) {
			if !visit(*m.obj(w, 2+2*i), *m.obj(w, 3+2*i)) {
				return false
			}
		}
		return true
	}
	return m.fields(*m.obj(w, 4), visit) && visit(*m.obj(w, 2), *m.obj(w, 3)) && m.fields(*m.obj(w, 5), visit)
}

// treeOf makes a balanced tree of the fields from lo to hi of a flat record.
func (m *Machine) treeOf(w word, lo, hi int) word {
	if lo == hi {
		return wUnit
	}
	mid := (lo + hi) / 2
	l, r := m.treeOf(w, lo, mid), m.treeOf(w, mid+1, hi)
	return m.node(*m.obj(w, 2+2*mid), *m.obj(w, 3+2*mid), l, r)
}

func (m *Machine) node(key, val, l, r word) word {
	p := m.alloc(nodeWords)
	*m.at(p) = header(kNode, nodeWords)
	*m.at(p + 8) = fromInt(int64(1 + m.recordLen(l) + m.recordLen(r)))
	*m.at(p + 16), *m.at(p + 24) = key, val
	*m.at(p + 32), *m.at(p + 40) = l, r
	return p | tagBox
}

// balance makes a node of subtrees of which one may be heavier by one change.
func (m *Machine) balance(key, val, l, r word) word {
	ln, rn := m.recordLen(l)+1, m.recordLen(r)+1
	switch {
	case ln+rn <= 3:
	case rn > delta*ln:
		rl, rr := *m.obj(r, 4), *m.obj(r, 5)
		if m.recordLen(rl)+1 < ratio*(m.recordLen(rr)+1) {
			return m.node(*m.obj(r, 2), *m.obj(r, 3), m.node(key, val, l, rl), rr)
		}
		return m.node(*m.obj(rl, 2), *m.obj(rl, 3),
			m.node(key, val, l, *m.obj(rl, 4)),
			m.node(*m.obj(r, 2), *m.obj(r, 3), *m.obj(rl, 5), rr))
	case ln > delta*rn:
		ll, lr := *m.obj(l, 4), *m.obj(l, 5)
		if m.recordLen(lr)+1 < ratio*(m.recordLen(ll)+1) {
			return m.node(*m.obj(l, 2), *m.obj(l, 3), ll, m.node(key, val, lr, r))
		}
		return m.node(*m.obj(lr, 2), *m.obj(lr, 3),
			m.node(*m.obj(l, 2), *m.obj(l, 3), ll, *m.obj(lr, 4)),
			m.node(key, val, *m.obj(lr, 5), r))
	}
	return m.node(key, val, l, r)
}

func (m *Machine) treePut(t, key, val word, by *textKey) word {
	if t == wUnit {
		return m.node(key, val, wUnit, wUnit)
	}
	k, v, l, r := *m.obj(t, 2), *m.obj(t, 3), *m.obj(t, 4), *m.obj(t, 5)
	switch c := by.compare(m, k); {
	case c < 0:
		return m.balance(k, v, m.treePut(l, key, val, by), r)
	case c > 0:
		return m.balance(k, v, l, m.treePut(r, key, val, by))
	}
	return m.node(k, val, l, r)
}

func (m *Machine) treeDel(t word, key *textKey) (word, bool) {
	if t == wUnit {
		return t, false
	}
	k, v, l, r := *m.obj(t, 2), *m.obj(t, 3), *m.obj(t, 4), *m.obj(t, 5)
	switch c := key.compare(m, k); {
	case c < 0:
		l, ok := m.treeDel(l, key)
		if !ok {
			return t, false
		}
		return m.balance(k, v, l, r), true
	case c > 0:
		r, ok := m.treeDel(r, key)
		if !ok {
			return t, false
		}
		return m.balance(k, v, l, r), true
	case l == wUnit:
		return r, true
	case r == wUnit:
		return l, true
	}
	// The smallest of the right takes its place.
	s := r
	for *m.obj(s, 4) != wUnit {
		s = *m.obj(s, 4)
	}
	return m.balance(*m.obj(s, 2), *m.obj(s, 3), l, m.withoutFirst(r)), true
}

func (m *Machine) withoutFirst(t word) word {
	l := *m.obj(t, 4)
	if l == wUnit {
		return *m.obj(t, 5)
	}
	return m.balance(*m.obj(t, 2), *m.obj(t, 3), m.withoutFirst(l), *m.obj(t, 5))
}

// recordWords returns how many words a new record of n fields takes, its keys and
// values not counted.
func recordWords(n int) int {
	if n <= flatFields {
		return even(2 + 2*n)
	}
	return nodeWords * n
}

// makeRecord makes a record of the fields from lo to hi, in order. Room for it
// and for what field allocates has been reserved.
func (m *Machine) makeRecord(lo, hi int, field func(i int) (key, val word)) word {
	if hi-lo > flatFields {
		return m.makeTree(lo, hi, field)
	}
	p := m.newFlat(hi - lo)
	for i := lo; i < hi; i++ {
		k, v := field(i)
		*m.obj(p, 2+2*(i-lo)), *m.obj(p, 3+2*(i-lo)) = k, v
	}
	return p
}

func (m *Machine) makeTree(lo, hi int, field func(i int) (key, val word)) word {
	if lo == hi {
		return wUnit
	}
	mid := (lo + hi) / 2
	l := m.makeTree(lo, mid, field)
	k, v := field(mid)
	r := m.makeTree(mid+1, hi, field)
	return m.node(k, v, l, r)
}
