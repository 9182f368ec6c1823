package value

import (
	"math/big"
	"strings"
	"sync"
)

// MaxDigits is how many digits a decimal may have in all, and after the point.
const MaxDigits = 4096

// Dec is an exact decimal: an integer divided by a power of ten. Its scale,
// the number of digits after the point, is part of what is shown (1.50), not
// of what is compared. The zero value is 0. Use [NewDec] and [ParseDec].
type Dec struct {
	unscaled *big.Int // nil: 0; never changed
	scale    int
}

// NewDec returns unscaled / 10^scale, and false where that has more than
// [MaxDigits] digits. scale is not negative; the caller must not change
// unscaled afterwards.
func NewDec(unscaled *big.Int, scale int) (Dec, bool) {
	if scale > MaxDigits || unscaled.CmpAbs(tooLarge()) >= 0 {
		return Dec{}, false
	}
	return Dec{unscaled, scale}, true
}

// Unscaled returns the integer of the decimal's digits, not to be changed.
func (d Dec) Unscaled() *big.Int {
	if d.unscaled == nil {
		return new(big.Int)
	}
	return d.unscaled
}

// Scale returns the number of digits after the point.
func (d Dec) Scale() int { return d.scale }

// Words returns the size of the digits in 64-bit words, at least 1.
func (d Dec) Words() int { return max(1, len(d.Unscaled().Bits())) }

// String returns the decimal without an exponent: "1.50".
func (d Dec) String() string {
	s := d.Unscaled().String()
	if d.scale == 0 {
		return s
	}
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	if len(s) <= d.scale {
		s = strings.Repeat("0", d.scale-len(s)+1) + s
	}
	point := len(s) - d.scale
	return sign + s[:point] + "." + s[point:]
}

// Cmp compares two decimals by what they are worth.
func (d Dec) Cmp(e Dec) int {
	a, b, _ := Align(d, e)
	return a.Cmp(b)
}

// CmpInt compares d with an integer of any size.
func (d Dec) CmpInt(n *big.Int) int {
	if n.CmpAbs(tooLarge()) >= 0 {
		return -n.Sign()
	}
	return d.Cmp(Dec{unscaled: n})
}

// Align returns the digits of both for the larger of their scales, which is
// returned too.
func Align(d, e Dec) (a, b *big.Int, scale int) {
	a, b = d.Unscaled(), e.Unscaled()
	switch {
	case d.scale < e.scale:
		a = new(big.Int).Mul(a, Power10(e.scale-d.scale))
	case e.scale < d.scale:
		b = new(big.Int).Mul(b, Power10(d.scale-e.scale))
	}
	return a, b, max(d.scale, e.scale)
}

// Power10 returns 10^n, not to be changed.
func Power10(n int) *big.Int {
	low, high := powers()
	switch at := n / lowPowers; {
	case at == 0:
		return low[n]
	case at < len(high):
		return new(big.Int).Mul(high[at], low[n%lowPowers])
	}
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}

// powers returns the powers of 10 below lowPowers, and those of 10^lowPowers that exponents need.
var powers = sync.OnceValues(func() (low, high []*big.Int) {
	ten, one := big.NewInt(10), big.NewInt(1)
	for p := one; len(low) < lowPowers; p = new(big.Int).Mul(p, ten) {
		low = append(low, p)
	}
	step := new(big.Int).Mul(low[lowPowers-1], ten)
	for p := one; len(high) <= 2*MaxDigits/lowPowers; p = new(big.Int).Mul(p, step) {
		high = append(high, p)
	}
	return low, high
})

// lowPowers is how many powers are kept one by one; above that one in so many is.
const lowPowers = 64

// tooLarge is the smallest integer with more than MaxDigits digits.
var tooLarge = sync.OnceValue(func() *big.Int { return Power10(MaxDigits) })

// MaxGrown is how many digits numbers that are read together may have beyond what they are
// written with, as 1e4000 has.
const MaxGrown = 16 << 20

// Grown returns about how many digits d has beyond the text that it was read from.
func (d Dec) Grown(text string) int { return max(0, 19*(d.Words()-2)-len(text)) }

// ParseDec reads a number as JSON writes it, and false where s is none or has
// more than [MaxDigits] digits written out.
func ParseDec(s string) (Dec, bool) {
	rest := s
	negative := strings.HasPrefix(rest, "-")
	if negative {
		rest = rest[1:]
	}
	whole := leading(rest)
	rest = rest[len(whole):]
	frac := ""
	if strings.HasPrefix(rest, ".") {
		frac = leading(rest[1:])
		rest = rest[1+len(frac):]
		if frac == "" {
			return Dec{}, false
		}
	}
	if whole == "" || len(whole) > 1 && whole[0] == '0' {
		return Dec{}, false
	}
	// The 0 before a point is written and is none of the digits.
	if n := len(frac); n > MaxDigits || whole != "0" && len(whole)+n > MaxDigits {
		return Dec{}, false
	}
	exp := 0
	if rest != "" {
		if rest[0]|0x20 != 'e' {
			return Dec{}, false
		}
		rest = rest[1:]
		minus := strings.HasPrefix(rest, "-")
		if minus || strings.HasPrefix(rest, "+") {
			rest = rest[1:]
		}
		if rest == "" || leading(rest) != rest {
			return Dec{}, false
		}
		for _, c := range []byte(rest) {
			if exp = exp*10 + int(c-'0'); exp > 2*MaxDigits {
				return Dec{}, false
			}
		}
		if minus {
			exp = -exp
		}
	}
	n, ok := new(big.Int).SetString(whole+frac, 10)
	if !ok {
		return Dec{}, false
	}
	scale := len(frac) - exp
	if scale < 0 {
		if len(whole)+len(frac)-scale > 2*MaxDigits {
			return Dec{}, false
		}
		n.Mul(n, Power10(-scale))
		scale = 0
	}
	if negative {
		n.Neg(n)
	}
	return NewDec(n, scale)
}

// leading returns the digits that s begins with.
func leading(s string) string {
	i := 0
	for i < len(s) && s[i]-'0' <= 9 {
		i++
	}
	return s[:i]
}
