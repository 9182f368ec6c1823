package text

import (
	"math"
	"math/big"
	"strings"
)

// longest is how many digits are worked out exactly, in a fifth of a second.
// Of longer integers only those that are kept are worked out.
const longest = 1_000_000

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
	room := max(w.room(), 0)
	if least < longest && int64(room) > least/2 || int64(room) > least {
		w.Raw(n.String())
		return
	}
	prefix, total, ok := leading(n, room)
	if !ok {
		if least >= longest {
			w.total = w.max + 1
			return
		}
		if room > 0 {
			w.Raw(n.String())
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

// power is a power of ten; the last one is kept.
func (w *Writer) power(exponent int64) *big.Int {
	if w.ten == nil || w.tens != exponent {
		w.ten = new(big.Int).Exp(big.NewInt(10), big.NewInt(exponent), nil)
		w.tens = exponent
	}
	return w.ten
}

// leading gives the first keep digits of a large positive integer and how many
// it has; not ok where the precision doesn't tell.
func leading(n *big.Int, keep int) (prefix string, total int64, ok bool) {
	first := max(keep, 1)
	// The powers below are off by less than a part in 2^(prec-40).
	want := int64(first + guard)
	prec := uint(float64(want)*math.Log2(10)) + 128
	f := new(big.Float).SetPrec(prec).SetInt(n)
	e := f.MantExp(nil)
	total = int64(float64(e) * math.Log10(2))
	ten := new(big.Float).SetPrec(prec).SetInt64(10)
	scale := new(big.Float).SetPrec(prec).SetInt64(1)
	for k := total - want; k > 0; k >>= 1 {
		if k&1 == 1 {
			scale.Mul(scale, ten)
		}
		ten.Mul(ten, ten)
	}
	q, _ := f.Quo(f, scale).Int(nil)
	s := q.String()
	total += int64(len(s)) - want
	rest := s[first:]
	if strings.Trim(rest, "0") == "" || strings.Trim(rest, "9") == "" {
		return "", 0, false
	}
	return s[:keep], total, true
}
