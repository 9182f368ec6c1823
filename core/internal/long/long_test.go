package long

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
)

// number returns a random integer of so many words, of which many are all ones or
// all zeros.
func number(r *rand.Rand, words int) *big.Int {
	w := make([]big.Word, words)
	for i := range w {
		switch r.IntN(4) {
		case 0:
			w[i] = big.Word(r.Uint64())
		case 1:
			w[i] = ^big.Word(0)
		}
	}
	if words > 0 {
		w[words-1] |= 1
	}
	return new(big.Int).SetBits(w)
}

func TestAsMathBig(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	sizes := []int{0, 1, 100, 4097, 6000, 9001}
	for _, n := range sizes {
		for _, k := range sizes {
			t.Run(fmt.Sprintf("%d,%d", n, k), func(t *testing.T) {
				x, y := number(r, n), number(r, k)
				for i, sign := range [][2]bool{{}, {true, false}, {false, true}, {true, true}} {
					if i > 0 && n*k > piece {
						break
					}
					x, y := new(big.Int).Set(x), new(big.Int).Set(y)
					if sign[0] {
						x.Neg(x)
					}
					if sign[1] {
						y.Neg(y)
					}
					xs, ys := new(big.Int).Set(x), new(big.Int).Set(y)
					if got := Mul(x, y, nil); got.Cmp(new(big.Int).Mul(x, y)) != 0 {
						t.Error("the product differs")
					}
					if k > 0 {
						want, rest := new(big.Int).QuoRem(x, y, new(big.Int))
						if q, m := QuoRem(x, y, nil); q.Cmp(want) != 0 || m.Cmp(rest) != 0 {
							t.Error("the quotient or the remainder differs")
						}
					}
					if x.Cmp(xs) != 0 || y.Cmp(ys) != 0 {
						t.Error("an operand has changed")
					}
				}
			})
		}
	}
	// A divisor whose first word says least, and a dividend that is one less than a
	// multiple of it.
	b := new(big.Int).Lsh(big.NewInt(1), 64*9000)
	b.Sub(b, big.NewInt(1)).SetBit(b, 64*9000, 1)
	a := new(big.Int).Mul(b, number(r, 7000))
	a.Sub(a, big.NewInt(1))
	want, rest := new(big.Int).QuoRem(a, b, new(big.Int))
	if q, m := QuoRem(a, b, nil); q.Cmp(want) != 0 || m.Cmp(rest) != 0 {
		t.Error("the quotient or the remainder differs")
	}
}

func TestDigits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, pieceDigits - 1, pieceDigits, pieceDigits + 1, 4*pieceDigits - 1, 4 * pieceDigits, 4*pieceDigits + 1, 10*pieceDigits + 7, 32*pieceDigits + 1} {
		for _, s := range []string{strings.Repeat("9", n), "1" + strings.Repeat("0", n-1), strings.Repeat("0", n), strings.Map(func(rune) rune { return '0' + r.Int32N(10) }, strings.Repeat("0", n))} {
			want, _ := new(big.Int).SetString(s, 10)
			if got := Parse(s, nil); got.Cmp(want) != 0 {
				t.Errorf("%d digits, %.20s…: read as a number of %d bits, not %d", n, s, got.BitLen(), want.BitLen())
			}
			for range 2 {
				if got := Parse(want.String(), nil); got.Cmp(want) != 0 {
					t.Errorf("%.20s… is read as %d bits, not %d", s, got.BitLen(), want.BitLen())
				}
				if got := Text(want, nil); got != want.String() {
					t.Errorf("%d digits, %.20s…: written as %d characters, %.20s…", n, s, len(got), got)
				}
				want.Neg(want)
			}
		}
	}
}

// No work on integers that are longer than a piece does more than a piece between two
// looks: as many are taken as the work needs at least.
func TestLooks(t *testing.T) {
	const n = 6 * 4096
	r := rand.New(rand.NewPCG(1, 2))
	x, y := number(r, 2*n), number(r, n)
	text := strings.Repeat("1234567890", n)
	for name, do := range map[string]func(look func(int)){
		"mul":    func(look func(int)) { Mul(y, y, look) },
		"quorem": func(look func(int)) { QuoRem(x, y, look) },
		"text":   func(look func(int)) { Text(y, look) },
		"parse":  func(look func(int)) { Parse(text, look) },
	} {
		pieces, most := 0, 0
		do(func(work int) {
			pieces++
			most = max(most, work)
		})
		if pieces < 12 || most > 1+piece>>9 {
			t.Errorf("%s: %d pieces, the largest of %d", name, pieces, most)
		}
		stopped := 0
		func() {
			defer func() { recover() }()
			do(func(int) { stopped++; panic("stop") })
		}()
		if stopped != 1 {
			t.Errorf("%s: went on after it was stopped", name)
		}
	}
}

func BenchmarkLong(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	const n = 100_000
	x, y := number(r, 2*n), number(r, n)
	x.SetBit(x, 128*n-1, 1)
	s := strings.Repeat("1234567890", 200_000)
	for _, c := range []struct {
		name      string
		ours, big func()
	}{
		{"mul", func() { Mul(y, y, nil) }, func() { new(big.Int).Mul(y, y) }},
		{"quorem", func() { QuoRem(x, y, nil) }, func() { new(big.Int).QuoRem(x, y, new(big.Int)) }},
		{"text", func() { Text(y, nil) }, func() { y.Text(10) }},
		{"parse", func() { Parse(s, nil) }, func() { new(big.Int).SetString(s, 10) }},
		{"piece", func() { Mul(number(r, 4096), number(r, 4096), nil) }, func() { number(r, 4096).Text(10) }},
		{"quopiece", func() { QuoRem(number(r, 8192), number(r, 4096), nil) }, func() { number(r, 2048).Text(10) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				c.ours()
			}
		})
		b.Run(c.name+"-big", func(b *testing.B) {
			for b.Loop() {
				c.big()
			}
		})
	}
}
