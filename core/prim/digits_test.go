package prim

import (
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestParseDigits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, fewDigits - 1, fewDigits, fewDigits + 1, 2*fewDigits - 1, 2 * fewDigits, 2*fewDigits + 1, 3 * fewDigits, 4 * fewDigits, 4*fewDigits + 1, 10*fewDigits + 7} {
		for _, s := range []string{strings.Repeat("9", n), "1" + strings.Repeat("0", n-1), strings.Repeat("0", n), strings.Map(func(rune) rune { return '0' + r.Int32N(10) }, strings.Repeat("0", n))} {
			want, _ := new(big.Int).SetString(s, 10)
			if got := parseDigits(s); got.Cmp(want) != 0 {
				t.Errorf("%d digits, %.20s…: read as a number of %d bits, not %d", n, s, got.BitLen(), want.BitLen())
			}
		}
	}
}

func BenchmarkParseDigits(b *testing.B) {
	s := strings.Repeat("123456789", 100_000)
	for b.Loop() {
		parseDigits(s)
	}
}
