package text

import (
	"math"
	"math/big"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/internal/long"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// maxIntDigits is how many digits are worked out exactly, in a fifth of a second.
// Of longer integers only those that are kept are worked out.
const maxIntDigits = 1_000_000

// guard is how many more digits are worked out than are kept; unless all of
// them are 0 or all 9, those before them are certain.
const guard = 20

// Big writes an integer of any size, one of more than 4,096 digits as
// {"int":"…"}. It takes time by the digits that are kept, not by those there
// are; in the rare case where that leaves open what the digits are, an integer
// of more than a million digits makes the writer full.
func (w *Writer) Big(n *big.Int) {
	if n.IsInt64() {
		w.Int(n.Int64())
		return
	}
	w.Inexact = true
	abs, sign := n, ""
	if n.Sign() < 0 {
		abs, sign = new(big.Int).Neg(n), "-"
	}
	// A number of b bits has at least (b-1)·log10(2) digits.
	least := int64(float64(abs.BitLen()-1) * math.Log10(2))
	switch {
	case least > w.max:
		w.total += least
		return
	case least < maxDigits-1:
		w.Raw(sign)
		w.Raw(abs.String())
		return
	case least <= maxDigits+1:
		if s := abs.String(); len(s) <= maxDigits {
			w.Raw(sign)
			w.Raw(s)
			return
		}
	}
	w.inexpressible |= notTerm
	w.Raw(`{"int":"`)
	w.Raw(sign)
	w.digits(abs, least)
	w.Raw(`"}`)
}

// digits writes the digits of a large positive integer of at least so many.
func (w *Writer) digits(n *big.Int, least int64) {
	if w.work += prim.DigitsCost(20 * len(n.Bits())); w.mostWork > 0 && w.work > w.mostWork {
		w.total = w.max + 1
		return
	}
	// The work is left in the middle where nobody wants the rest.
	defer func() {
		if p := recover(); p != nil && p != unwanted {
			panic(p)
		}
	}()
	room := max(w.room(), 0)
	if least < maxIntDigits && int64(room) > least/2 || int64(room) > least {
		w.Raw(long.Text(n, w.atWork))
		return
	}
	prefix, total, ok := leadingDigits(n, room, w.atWork)
	if !ok {
		if least >= maxIntDigits {
			w.total = w.max + 1
			return
		}
		if room > 0 {
			w.Raw(long.Text(n, w.atWork))
			return
		}
		// Only the length is open: n is next to a power of ten.
		total = least
		for p := w.power(total); n.Cmp(p) >= 0; p = w.power(total) {
			total++
		}
	}
	w.Raw(prefix)
	w.total += total - int64(len(prefix))
}

// unwanted is the panic that leaves digits.
const unwanted = "text: the digits are not wanted any more"

// atWork asks Stop after so much work, in units of some tens of nanoseconds.
func (w *Writer) atWork(units int) {
	if w.worked += units; w.worked >= 1<<16 {
		w.worked = 0
		if w.stopped = w.stopped || w.Stop != nil && w.Stop(); w.stopped {
			panic(unwanted)
		}
	}
}

// power returns a power of ten; the last one is kept.
func (w *Writer) power(exponent int64) *big.Int {
	if w.ten == nil || w.tens != exponent {
		w.ten = long.Parse("1"+strings.Repeat("0", int(exponent)), w.atWork)
		w.tens = exponent
	}
	return w.ten
}

// A scaled number is n·2^e.
type scaled struct {
	n *big.Int
	e int64
}

// cut keeps so many bits of n.
func (s scaled) cut(bits int) scaled {
	if more := s.n.BitLen() - bits; more > 0 {
		return scaled{new(big.Int).Rsh(s.n, uint(more)), s.e + int64(more)}
	}
	return s
}

func (s scaled) times(t scaled, look func(int)) scaled {
	return scaled{long.Mul(s.n, t.n, look), s.e + t.e}
}

// leadingDigits gives the first keep digits of a large positive integer and how many
// it has; not ok where the precision doesn't tell.
func leadingDigits(n *big.Int, keep int, look func(int)) (prefix string, total int64, ok bool) {
	first := max(keep, 1)
	// The powers below are off by less than a part in 2^(bits-40).
	want := int64(first + guard)
	bits := int(float64(want)*math.Log2(10)) + 128
	total = int64(float64(n.BitLen()) * math.Log10(2))
	ten, scale := scaled{n: big.NewInt(10)}, scaled{n: big.NewInt(1)}
	for k := total - want; k > 0; k >>= 1 {
		if k&1 == 1 {
			scale = scale.times(ten, look).cut(bits)
		}
		if k > 1 {
			ten = ten.times(ten, look).cut(bits)
		}
	}
	// The quotient has as many bits as what it is made of.
	f := scaled{n, 0}.cut(bits)
	more := max(scale.n.BitLen()+bits-f.n.BitLen(), 0)
	q, _ := long.QuoRem(new(big.Int).Lsh(f.n, uint(more)), scale.n, look)
	if shift := f.e - int64(more) - scale.e; shift >= 0 {
		q.Lsh(q, uint(shift))
	} else {
		q.Rsh(q, uint(-shift))
	}
	s := long.Text(q, look)
	total += int64(len(s)) - want
	if rest := s[first:]; strings.Trim(rest, "0") == "" || strings.Trim(rest, "9") == "" {
		return "", 0, false
	}
	return s[:keep], total, true
}
