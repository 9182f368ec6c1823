package eval_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
)

// TestDecimalsInLoop: sums, differences and products of decimals and integers are those of
// the reference, on both sides of what the loop computes itself.
func TestDecimalsInLoop(t *testing.T) {
	stressedNot()
	r := rand.New(rand.NewPCG(7, 21))
	edges := []uint64{0, 1, 2, 1<<31 - 2, 1<<31 - 1, 1 << 31, 1<<32 + 1, 1<<61 - 1, 1 << 62, 1<<63 - 1, 1 << 63, 1<<64 - 5, 1<<64 - 1}
	number := func() string {
		n := edges[r.IntN(len(edges))]
		if r.IntN(2) == 0 {
			n = r.Uint64() >> r.IntN(64)
		}
		s := fmt.Sprint(n)
		if scale := []int{0, 0, 1, 2, 2, 8, 9, 10, 18, 19, 40, 130}[r.IntN(12)]; scale > 0 {
			s = strings.Repeat("0", max(0, scale+1-len(s))) + s
			s = s[:len(s)-scale] + "." + s[len(s)-scale:]
		}
		if r.IntN(3) == 0 {
			s = "-" + s
		}
		return fmt.Sprintf(`{"dec":%q}`, s)
	}
	ints := []string{"0", "1", "-1", "7", "2147483647", "-2147483648", "4611686018427387903", "-4611686018427387904"}
	for range full(5_000, 300) {
		a, b := number(), number()
		switch r.IntN(6) {
		case 0:
			a = ints[r.IntN(len(ints))]
		case 1:
			b = ints[r.IntN(len(ints))]
		}
		// Twice, so that operands are what the machine made itself, too.
		code := fmt.Sprintf(`{"let":[["a",%s],["b",%s],["s",{"add":[{"var":"a"},{"var":"b"}]}],["d",{"sub":[{"var":"a"},{"var":"b"}]}],["m",{"mul":[{"var":"a"},{"var":"b"}]}]],
			"in":[{"var":"s"},{"var":"d"},{"var":"m"},{"sub":[{"var":"s"},{"var":"a"}]},{"add":[{"var":"d"},{"var":"s"}]},{"mul":[{"var":"d"},{"var":"b"}]},
			{"sub":[{"var":"d"},{"var":"d"}]},{"equal":[{"var":"s"},{"var":"d"}]},{"lt":[{"var":"m"},{"var":"s"}]},{"sub":[{"var":"b"},"x"]}]}`, a, b)
		if r.IntN(2) == 0 {
			code = strings.Replace(code, `,{"sub":[{"var":"b"},"x"]}`, "", 1)
		}
		trial{code: code, budgets: core.Budgets{Steps: 100_000, Memory: 4 << 20, Depth: 100}}.check(t)
	}
}
