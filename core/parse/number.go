package parse

import (
	"math/big"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// integer reads a number's text, rounded half to even on the exact decimal
// where it has a fraction; rounded says that this changed it. Exactly one of
// small and large holds the result: small where large is nil.
func integer(s string, meta uint32) (small int64, large *big.Int, rounded bool) {
	if meta&fraction != 0 {
		s, rounded = round(s)
	}
	if len(s) <= 18 {
		return atoi(s), nil, rounded
	}
	n, _ := new(big.Int).SetString(s, 10)
	if n.IsInt64() {
		return n.Int64(), nil, rounded
	}
	return 0, n, rounded
}

// atoi reads at most 18 characters.
func atoi(s string) int64 {
	n := int64(0)
	neg := s[0] == '-'
	if neg {
		s = s[1:]
	}
	for i := 0; i < len(s); i++ {
		n = n*10 + int64(s[i]-'0')
	}
	if neg {
		return -n
	}
	return n
}

// round gives the digits of the nearest integer, of two equally near the even
// one. s is a JSON number.
func round(s string) (digits string, changed bool) {
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	mantissa, exponent := s, 0
	if e := strings.IndexAny(s, "eE"); e >= 0 {
		mantissa = s[:e]
		x := strings.TrimPrefix(s[e+1:], "+")
		minus := strings.HasPrefix(x, "-")
		for _, c := range []byte(strings.TrimPrefix(x, "-")) {
			exponent = exponent*10 + int(c-'0')
		}
		if minus {
			exponent = -exponent
		}
	}
	whole, frac, _ := strings.Cut(mantissa, ".")
	all := whole + frac
	// The point stands before all[point].
	point := len(whole) + exponent
	if point < 0 {
		all = strings.Repeat("0", -point) + all
		point = 0
	}
	if point > len(all) {
		all += strings.Repeat("0", point-len(all))
	}
	kept, rest := all[:point], strings.TrimRight(all[point:], "0")
	kept = strings.TrimLeft(kept, "0")
	if rest == "" {
		return withSign(sign, kept), false
	}
	if odd := kept != "" && (kept[len(kept)-1]-'0')%2 == 1; rest[0] > '5' || rest[0] == '5' && (len(rest) > 1 || odd) {
		kept = increment(kept)
	}
	return withSign(sign, kept), true
}

func withSign(sign, digits string) string {
	if digits == "" {
		return "0"
	}
	return sign + digits
}

// increment adds one to decimal digits.
func increment(digits string) string {
	b := []byte(digits)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] < '9' {
			b[i]++
			return string(b)
		}
		b[i] = '0'
	}
	return "1" + string(b)
}

// number makes the literal of node i: with a point or an exponent a decimal.
func (b *builder) number(i uint32) term.Term {
	n := &b.nodes[i]
	s := b.src[n.off:n.end]
	if n.meta&fraction != 0 && !b.rounds {
		t, ok := prim.DecLiteral(term.At(n.off), s, &b.grown)
		if b.grown > value.MaxGrown {
			return b.refuseGrown(i)
		}
		if !ok {
			return b.refuse(i, &fault.Fault{
				Message:  display.Truncate(s, 40) + " has more than 4,096 digits",
				Expected: "a decimal of at most 4,096 digits",
				Hint:     "Compute large numbers in the program.",
			})
		}
		return t
	}
	if b.grown > value.MaxGrown && n.meta&fraction != 0 {
		return b.refuseGrown(i)
	}
	small, large, rounded := integer(s, n.meta)
	if large != nil && n.meta&fraction != 0 {
		if b.grown += max(0, 19*len(large.Bits())-len(s)); b.grown > value.MaxGrown {
			return b.refuseGrown(i)
		}
	}
	if rounded {
		b.noteRounded(i, s, small, large)
	}
	if large != nil {
		return &term.Big{At: term.At(n.off), Value: large}
	}
	t := b.ints.get()
	t.At, t.Value = term.At(n.off), small
	return t
}

// refuseGrown refuses a number after which there are too many digits.
func (b *builder) refuseGrown(i uint32) term.Term {
	if b.enough(i) {
		return &term.Unit{}
	}
	return b.refuse(i, prim.TooGrown())
}

// decimalOf writes the digits of a number in another base as decimal ones.
func decimalOf(digits string, base int) string {
	n, _ := new(big.Int).SetString(digits, base)
	return n.String()
}

// dec builds the decimal of the object i, whose digits are the value v.
func (b *builder) dec(i, v uint32) term.Term {
	if b.nodes[v].kind() != text {
		return b.failShape(i, prim.Get(prim.Dec), v, code)
	}
	t, ok := prim.DecLiteral(term.At(b.nodes[i].off), b.string(v), &b.grown)
	if b.grown > value.MaxGrown {
		return b.refuseGrown(v)
	}
	if !ok {
		return b.refuse(v, &fault.Fault{
			Message:  b.describe(v) + " is no decimal of at most 4,096 digits",
			Expected: "a number in quotes, as JSON writes it",
			Got:      b.describe(v),
			Hint:     `Write digits with a point: {"dec":"3.14"}.`,
		})
	}
	return t
}
