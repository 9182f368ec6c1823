package eval

import (
	"cmp"
	"math"
	"math/bits"

	"github.com/mcp-pif/mcp-pif/core/code"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// Decimals whose digits fit a word are computed as such, with what the table's rows
// give to the digit; what doesn't fit is left to those, and to math/big. Numbers of
// this size take no steps beyond the row's own.

// short is a number of one word: coef / 10^scale.
type short struct {
	coef  int64
	scale int
}

// maxShortScale bounds the scale of a short number: more of it may take steps.
const maxShortScale = 250

const (
	// decHeader is the first word of a decimal of one limb.
	decHeader = tagHeader | kDec<<4 | 4<<8
	// mostLoop and loopPowers bound what the loop computes with: products, and numbers
	// times a power of ten below the second, fit a word.
	mostLoop   = 1<<31 - 1
	loopPowers = 9
)

var powers = func() (p [19]int64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = 10 * p[i-1]
	}
	return p
}()

// asShort returns a small integer, or a decimal of one limb.
func (m *Machine) asShort(w word) (s short, ok bool) {
	if isInt(w) {
		return short{coef: toInt(w)}, true
	}
	if !m.isKind(w, kDec) {
		return s, false
	}
	h, scale := *m.obj(w, 1), *m.obj(w, 2)
	if h>>1 == 0 {
		return short{scale: int(scale)}, scale <= maxShortScale
	}
	size := *m.obj(w, 3)
	if h>>1 > 1 || size > math.MaxInt64 || scale > maxShortScale {
		return s, false
	}
	s = short{int64(size), int(scale)}
	if h&1 != 0 {
		s.coef = -s.coef
	}
	return s, true
}

// giveDec makes a decimal of one word the value of register a.
func (m *Machine) giveDec(a uint8, s short, height int) (ok bool) {
	if !m.reserve(decWords(1), height) {
		return false
	}
	*m.reg(a) = m.newShort(s)
	return true
}

// newShort makes a decimal of one word, for which room has been reserved.
func (m *Machine) newShort(s short) word {
	p := m.alloc(decWords(1))
	*m.at(p), *m.at(p + 8), *m.at(p + 16), *m.at(p + 24) = header(kDec, decWords(1)), 1<<1, word(s.scale), word(s.coef)
	switch {
	case s.coef < 0:
		*m.at(p + 8), *m.at(p + 24) = 1<<1|1, word(-s.coef)
	case s.coef == 0:
		*m.at(p + 8) = 0
	}
	return p | tagBox
}

// times multiplies where the product fits a word and its negative, too.
func times(a, b int64) (int64, bool) {
	hi, lo := bits.Mul64(uint64(max(a, -a)), uint64(max(b, -b)))
	if hi != 0 || lo > math.MaxInt64 {
		return 0, false
	}
	if (a < 0) != (b < 0) {
		return -int64(lo), true
	}
	return int64(lo), true
}

// rescaled multiplies by a power of ten.
func rescaled(a int64, by int) (int64, bool) {
	if by >= len(powers) {
		return 0, a == 0
	}
	return times(a, powers[by])
}

// align writes two numbers with as many digits after the point.
func align(a, b short) (x, y int64, scale int, ok bool) {
	x, y = a.coef, b.coef
	ok = true
	if a.scale < b.scale {
		x, ok = rescaled(x, b.scale-a.scale)
	} else if b.scale < a.scale {
		y, ok = rescaled(y, a.scale-b.scale)
	}
	return x, y, max(a.scale, b.scale), ok
}

// compareNumbers orders two numbers of a word each.
func (m *Machine) compareNumbers(a, b word) (d int, ok bool) {
	s, okA := m.asShort(a)
	t, okB := m.asShort(b)
	if !okA || !okB {
		return 0, false
	}
	x, y, _, ok := align(s, t)
	return cmp.Compare(x, y), ok
}

// onDecimals adds, subtracts or multiplies two numbers of which one is a decimal.
func (m *Machine) onDecimals(id term.ID, a, b word) (s short, ok bool) {
	x, okA := m.asShort(a)
	y, okB := m.asShort(b)
	if !okA || !okB || isInt(a) && isInt(b) {
		return s, false
	}
	if id == prim.Mul {
		s.coef, ok = times(x.coef, y.coef)
		s.scale = x.scale + y.scale
		return s, ok
	}
	p, q, scale, ok := align(x, y)
	if id == prim.Sub {
		q = -q
	} else if id != prim.Add {
		return s, false
	}
	s = short{p + q, scale}
	return s, ok && (s.coef > p) == (q > 0) && s.coef != math.MinInt64
}

// A rounding is how a number loses digits; 0: none that has a name.
type rounding uint8

const (
	roundDown rounding = 1 + iota
	roundUp
	roundFloor
	roundCeiling
	roundHalfUp
	roundHalfEven
)

// divided returns n ÷ d, rounded; d is not 0.
func divided(n, d int64, mode rounding) (q int64) {
	q, r := n/d, n%d
	if r == 0 {
		return q
	}
	negative := (n < 0) != (d < 0)
	away := false
	switch half := cmp.Compare(uint64(max(r, -r)), uint64(max(d, -d))-uint64(max(r, -r))); mode {
	case roundUp:
		away = true
	case roundFloor:
		away = negative
	case roundCeiling:
		away = !negative
	case roundHalfUp:
		away = half >= 0
	case roundHalfEven:
		away = half > 0 || half == 0 && q&1 == 1
	}
	switch {
	case away && negative:
		q--
	case away:
		q++
	}
	return q
}

// mode returns the rounding that a register names.
func (m *Machine) mode(w word) rounding {
	if !m.isFlat(w) {
		return 0
	}
	switch string(m.view(w)) {
	case "down":
		return roundDown
	case "up":
		return roundUp
	case "floor":
		return roundFloor
	case "ceiling":
		return roundCeiling
	case "half_up":
		return roundHalfUp
	case "half_even":
		return roundHalfEven
	}
	return 0
}

// rounded returns a number with so many digits after the point.
func rounded(s short, scale int, mode rounding) (int64, bool) {
	if scale >= s.scale {
		return rescaled(s.coef, scale-s.scale)
	}
	if by := s.scale - scale; by < len(powers) {
		return divided(s.coef, powers[by], mode), true
	}
	return 0, false
}

func (m *Machine) nativeRoundDec(in *code.Instr) (done, stop bool) {
	s, ok := m.asShort(*m.reg(in.C))
	scale, mode := *m.reg(in.C + 1), m.mode(*m.reg(in.C + 2))
	if !ok || !isInt(scale) || scale > fromInt(maxShortScale) || mode == 0 {
		return false, false
	}
	q, ok := rounded(s, int(toInt(scale)), mode)
	if !ok {
		return false, false
	}
	return true, !m.giveDec(in.A, short{q, int(toInt(scale))}, int(in.K))
}

func (m *Machine) nativeToInt(in *code.Instr) (done, stop bool) {
	s, ok := m.asShort(*m.reg(in.C))
	mode := m.mode(*m.reg(in.C + 1))
	if !ok || mode == 0 {
		return false, false
	}
	q, ok := rounded(s, 0, mode)
	if !ok || !fitsWord(q) {
		return false, false
	}
	return m.set(in, fromInt(q))
}

func (m *Machine) nativeDivDec(in *code.Instr) (done, stop bool) {
	a, okA := m.asShort(*m.reg(in.C))
	b, okB := m.asShort(*m.reg(in.C + 1))
	scale, mode := *m.reg(in.C + 2), m.mode(*m.reg(in.C + 3))
	if !okA || !okB || b.coef == 0 || !isInt(scale) || scale > fromInt(maxShortScale) || mode == 0 {
		return false, false
	}
	n, okN := rescaled(a.coef, b.scale+int(toInt(scale)))
	d, okD := rescaled(b.coef, a.scale)
	if !okN || !okD {
		return false, false
	}
	return true, !m.giveDec(in.A, short{divided(n, d, mode), int(toInt(scale))}, int(in.K))
}
