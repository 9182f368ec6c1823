package eval_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
)

// TestSortInOne: a list that is sorted by one instruction comes out as from the row's
// body, for as many steps, and so does one that the instruction leaves alone.
func TestSortInOne(t *testing.T) {
	keys := []string{"x => x", "x => 0 - x", "x => x.k", "x => -x.k", "x => x.k + 1", "x => to_text(x)", "x => get(x, \"k\", 0)"}
	items := []func(r *rand.Rand) string{
		func(r *rand.Rand) string { return fmt.Sprint(r.IntN(20) - 10) },
		func(r *rand.Rand) string { return fmt.Sprint(r.Int64()) },
		func(r *rand.Rand) string { return fmt.Sprintf("%d.%d", r.IntN(3), r.IntN(100)) },
		func(r *rand.Rand) string {
			return fmt.Sprintf("%q", "abcdefgh"[:r.IntN(9)]+strings.Repeat("é", r.IntN(3)))
		},
		func(r *rand.Rand) string { return fmt.Sprintf(`"same first bytes %d"`, r.IntN(9)) },
		func(r *rand.Rand) string { return fmt.Sprintf("%q", strings.Repeat("a", 500+r.IntN(8))) },
		func(r *rand.Rand) string { return fmt.Sprintf(`{k: %d, n: %d}`, r.IntN(5), r.IntN(1000)) },
		func(r *rand.Rand) string { return fmt.Sprintf(`{k: "%d", l: 1}`, r.IntN(50)) },
		func(r *rand.Rand) string { return "-4611686018427387904" },
		func(r *rand.Rand) string { return "null" },
	}
	for seed := range full(6_000, 700) {
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		kind := r.IntN(len(items))
		list := make([]string, r.IntN([]int{4, 12, 70}[r.IntN(3)]))
		for i := range list {
			if r.IntN(200) == 0 {
				kind = r.IntN(len(items))
			}
			list[i] = items[kind](r)
		}
		code := fmt.Sprintf("n => let xs = [%s] in length(sort_by(%s, xs)) + n", strings.Join(list, ", "), keys[r.IntN(len(keys))])
		if r.IntN(2) == 0 {
			code = fmt.Sprintf("n => sort_by(%s, [%s])", keys[r.IntN(len(keys))], strings.Join(list, ", "))
		}
		tr := trial{code: string(mustCompileText(t, code).Canonical()), input: "1"}
		if seed%3 == 0 {
			stressed(t, seed%2 == 0)
		} else {
			stressedNot()
		}
		switch r.IntN(4) {
		case 0:
			tr.budgets = core.Budgets{Steps: uint64(1 + r.IntN(9000))}
		case 1:
			tr.budgets = core.Budgets{Depth: 1 + r.IntN(40)}
		}
		tr.slice = uint64(r.IntN(3) * 50)
		tr.check(t)
	}
	stressedNot()
	// The length of so long a list takes steps, too.
	tr := trial{code: string(mustCompileText(t, "n => length(sort(map(x => x * 7919 % 10007, range(0, n))))").Canonical()), input: "16500"}
	tr.budgets = core.Budgets{Steps: 100_000_000}
	tr.check(t)
}
