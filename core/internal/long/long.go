// Package long is arithmetic on integers of any length in pieces: each is left to
// math/big and takes some milliseconds at most, and between them the caller's look is
// called, with the piece's work in units of some tens of nanoseconds. A look that
// panics leaves the work in the middle. A nil look is never called.
//
// Multiplication is A. A. Karatsuba's, division C. Burnikel's and J. Ziegler's (Fast
// Recursive Division, 1998), and digits are read and written by halves of their number
// (D. E. Knuth, The Art of Computer Programming 2, 4.4).
package long

import (
	"math/big"
	"math/bits"
	"strings"
)

// piece is up to how many words times how many are one piece.
const piece = 4096 * 4096

// pieceDigits is how many decimal digits are one piece.
const pieceDigits = 2048

func words(x *big.Int) int { return len(x.Bits()) }

// work looks at a piece of so many words times so many.
func work(look func(int), words int) {
	if look != nil {
		look(1 + words>>9)
	}
}

// Mul returns x·y.
func Mul(x, y *big.Int, look func(int)) *big.Int {
	z := product(new(big.Int).Abs(x), new(big.Int).Abs(y), look)
	if x.Sign() != y.Sign() {
		z.Neg(z)
	}
	return z
}

// QuoRem returns the quotient of x and y, which isn't 0, rounded towards 0, and the
// remainder.
func QuoRem(x, y *big.Int, look func(int)) (q, r *big.Int) {
	q, r = quotient(new(big.Int).Abs(x), new(big.Int).Abs(y), look)
	if x.Sign() != y.Sign() {
		q.Neg(q)
	}
	if x.Sign() < 0 {
		r.Neg(r)
	}
	return q, r
}

// split returns x as high·2^(64n) + low. They share x's words.
func split(x *big.Int, n int) (high, low *big.Int) {
	w := x.Bits()
	n = min(n, len(w))
	return new(big.Int).SetBits(w[n:]), new(big.Int).SetBits(w[:n:n])
}

// join returns high·2^(64n) + low, in place of high.
func join(high, low *big.Int, n int) *big.Int {
	high.Lsh(high, uint(n)*bits.UintSize)
	return high.Add(high, low)
}

// product returns x·y, neither of which is negative.
func product(x, y *big.Int, look func(int)) *big.Int {
	if words(x) < words(y) {
		x, y = y, x
	}
	n := words(x)
	if n*words(y) <= piece {
		work(look, n*words(y))
		return new(big.Int).Mul(x, y)
	}
	half := (n + 1) / 2
	x1, x0 := split(x, half)
	if words(y) <= half {
		return join(product(x1, y, look), product(x0, y, look), half)
	}
	y1, y0 := split(y, half)
	high, low := product(x1, y1, look), product(x0, y0, look)
	mid := product(new(big.Int).Add(x1, x0), new(big.Int).Add(y1, y0), look)
	mid.Sub(mid, high)
	mid.Sub(mid, low)
	return join(join(high, mid, half), low, half)
}

// quotient returns the quotient and the remainder of a and b, neither of which is
// negative, and b not 0.
func quotient(a, b *big.Int, look func(int)) (q, r *big.Int) {
	n := words(b)
	k := words(a) - n + 1 // words of the quotient
	switch {
	case k*n <= piece:
		work(look, max(k, 1)*n)
		return new(big.Int).QuoRem(a, b, new(big.Int))
	case 2*n <= 3*k:
		// One half of the quotient after the other.
		high, low := split(a, k/2)
		q, r = quotient(high, b, look)
		rest, r := quotient(join(r, low, k/2), b, look)
		return join(q, rest, k/2), r
	}
	// The first words tell the quotient, or one that is larger by 2 at most.
	cut := n - (k + 1)
	a1, a0 := split(a, cut)
	b1, b0 := split(b, cut)
	q, r = quotient(a1, b1, look)
	r = join(r, a0, cut)
	r.Sub(r, product(q, b0, look))
	for one := big.NewInt(1); r.Sign() < 0; {
		q.Sub(q, one)
		r.Add(r, b)
	}
	return q, r
}

// Parse returns the integer of decimal digits, of which there is at least one, with a
// minus before them or not.
func Parse(s string, look func(int)) *big.Int {
	digits := strings.TrimPrefix(s, "-")
	n := parse(digits, powers(len(digits), look), look)
	if len(digits) < len(s) {
		n.Neg(n)
	}
	return n
}

// powers returns powers of ten: each is the square of the one before it, and has half
// the digits of a number of so many, or more.
func powers(digits int, look func(int)) []*big.Int {
	if digits <= pieceDigits {
		return nil
	}
	all := []*big.Int{new(big.Int).Exp(big.NewInt(10), big.NewInt(pieceDigits), nil)}
	for pieceDigits<<len(all) < digits {
		last := all[len(all)-1]
		all = append(all, product(last, last, look))
	}
	return all
}

func parse(s string, powers []*big.Int, look func(int)) *big.Int {
	if len(s) <= pieceDigits {
		work(look, len(s)*len(s)/64)
		n, _ := new(big.Int).SetString(s, 10)
		return n
	}
	last := len(powers) - 1
	low := len(s) - pieceDigits<<last
	if low <= 0 {
		return parse(s, powers[:last], look)
	}
	n := product(parse(s[:low], powers[:last], look), powers[last], look)
	return n.Add(n, parse(s[low:], powers[:last], look))
}

// Text returns the decimal digits of an integer, with a minus where it is negative.
func Text(x *big.Int, look func(int)) string {
	if words(x)*words(x) <= piece/4 {
		work(look, words(x)*words(x))
		return x.String()
	}
	var out strings.Builder
	if x.Sign() < 0 {
		out.WriteByte('-')
	}
	// 64 bits are less than 20 digits.
	write(&out, new(big.Int).Abs(x), powers(20*words(x), look), false, look)
	return out.String()
}

// write writes x, which is less than the square of the last of the powers; with all
// the digits there may be if full.
func write(out *strings.Builder, x *big.Int, powers []*big.Int, full bool, look func(int)) {
	last := len(powers) - 1
	if last < 3 {
		s := x.String()
		work(look, words(x)*words(x))
		if full {
			for i := pieceDigits<<len(powers) - len(s); i > 0; i-- {
				out.WriteByte('0')
			}
		}
		out.WriteString(s)
		return
	}
	high, low := new(big.Int), x
	if full || x.CmpAbs(powers[last]) >= 0 {
		high, low = quotient(x, powers[last], look)
	}
	if full || high.Sign() > 0 {
		write(out, high, powers[:last], full, look)
		full = true
	}
	write(out, low, powers[:last], full, look)
}
