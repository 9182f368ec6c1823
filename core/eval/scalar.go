package eval

import (
	"math/big"
	"slices"
	"unicode/utf8"
	"unsafe"

	"github.com/mcp-pif/mcp-pif/core/code"
)

func (m *Machine) isKind(w word, kind int) bool {
	return w&tagMask == tagBox && headerKind(*m.obj(w, 0)) == kind
}

func (m *Machine) isString(w word) bool {
	if w&tagMask != tagBox {
		return false
	}
	k := headerKind(*m.obj(w, 0))
	return k == kStr || k == kRope
}

// strLen returns a string's length in bytes.
func (m *Machine) strLen(w word) int { return int(uint32(*m.obj(w, 1))) }

// rawBytes returns n bytes of the heap from word i of w on, to be used before
// the next allocation.
func (m *Machine) rawBytes(w word, i, n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(m.obj(w, i))), n)
}

// pieces calls visit for each flat piece of a string, in order, until it
// returns false. Ropes may be deep on either side and shared.
func (m *Machine) pieces(w word, visit func([]byte) bool) bool {
	var todo []word
	for {
		if headerKind(*m.obj(w, 0)) == kRope {
			todo = append(todo, *m.obj(w, 3))
			w = *m.obj(w, 2)
			continue
		}
		if !visit(m.rawBytes(w, 2, m.strLen(w))) {
			return false
		}
		if len(todo) == 0 {
			return true
		}
		w = todo[len(todo)-1]
		todo = todo[:len(todo)-1]
	}
}

// goString copies a string out of the heap.
func (m *Machine) goString(w word) string {
	m.copied += m.strLen(w) / 8
	b := make([]byte, 0, m.strLen(w))
	m.pieces(w, func(p []byte) bool {
		m.look(1 + len(p)/perBytes)
		b = append(b, p...)
		return true
	})
	return unsafe.String(unsafe.SliceData(b), len(b))
}

func strWords(bytes int) int { return even(2 + (bytes+7)/8) }

// copyPiece is how many bytes are copied between two looks.
const copyPiece = 1 << 20

// newString copies s into the heap, where room for it has been reserved.
func (m *Machine) newString(s string) word {
	w, to := m.newText(len(s), m.countRunes(s))
	for {
		k := copy(to[:min(len(to), copyPiece)], s)
		if to, s = to[k:], s[k:]; s == "" {
			return w
		}
		m.look(k / perBytes)
	}
}

// countRunes is [utf8.RuneCountInString], with looks.
func (m *Machine) countRunes(s string) (n int) {
	for len(s) > copyPiece {
		k := copyPiece
		for k > copyPiece-utf8.UTFMax+1 && !utf8.RuneStart(s[k]) {
			k--
		}
		n += utf8.RuneCountInString(s[:k])
		s = s[k:]
		m.look(k * 8 / perBytes)
	}
	return n + utf8.RuneCountInString(s)
}

func bigWords(limbs int) int { return even(2 + limbs) }

// newBig copies b into the heap, where room for it has been reserved.
func (m *Machine) newBig(b *big.Int) word {
	limbs := b.Bits()
	n := bigWords(len(limbs))
	p := m.alloc(n)
	*m.at(p) = header(kBig, n)
	sign := word(0)
	if b.Sign() < 0 {
		sign = 1
	}
	*m.at(p + 8) = word(len(limbs))<<1 | sign
	for i, l := range limbs {
		*m.at(p + 16 + word(i)*8) = word(l)
	}
	return p | tagBox
}

// contWords is the size of a continuation.
const contWords = 4

// newCont makes a tool's continuation, for which room has been reserved.
func (m *Machine) newCont(input word, tool string) word {
	i := slices.Index(m.names, tool)
	if i < 0 {
		i = len(m.names)
		m.acted = true
		m.names = append(m.names, tool)
	}
	p := m.alloc(contWords)
	*m.at(p), *m.at(p + 8), *m.at(p + 16), *m.at(p + 24) = header(kCont, contWords), input, fromInt(int64(i)), 0
	return p | tagBox
}

// contTool returns the tool of a continuation.
func (m *Machine) contTool(w word) string { return m.names[*m.obj(w, 2)>>1] }

func decWords(limbs int) int { return even(3 + limbs) }

// newDec copies a decimal into the heap, where room for it has been reserved.
func (m *Machine) newDec(unscaled *big.Int, scale int) word {
	limbs := unscaled.Bits()
	n := decWords(len(limbs))
	p := m.alloc(n)
	*m.at(p) = header(kDec, n)
	sign := word(0)
	if unscaled.Sign() < 0 {
		sign = 1
	}
	*m.at(p + 8), *m.at(p + 16) = word(len(limbs))<<1|sign, word(scale)
	for i, l := range limbs {
		*m.at(p + 24 + word(i)*8) = word(l)
	}
	return p | tagBox
}

// limbs copies the integer whose sign and count are word 1 and whose limbs
// start at word i.
func (m *Machine) limbs(w word, i int) *big.Int {
	h := *m.obj(w, 1)
	limbs := make([]big.Word, h>>1)
	for k := range limbs {
		limbs[k] = big.Word(*m.obj(w, i+k))
	}
	b := new(big.Int).SetBits(limbs)
	if h&1 != 0 {
		b.Neg(b)
	}
	return b
}

// goBig copies an integer that is no immediate word out of the heap.
func (m *Machine) goBig(w word) *big.Int { return m.limbs(w, 2) }

func fitsWord(v int64) bool { return v >= code.MinInt && v <= code.MaxInt }

func (m *Machine) makeInt(v int64) word {
	if fitsWord(v) {
		return fromInt(v)
	}
	return m.newBig(big.NewInt(v))
}
