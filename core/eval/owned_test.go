package eval_test

import (
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
)

// TestOwned: a fold whose put changes its record in place, and a push that adds where the
// list is, leave what others see as it was.
func TestOwned(t *testing.T) {
	big := `fold((acc, i) => put(acc, to_text(i), i), {}, range(0, 50))`
	for _, src := range []string{
		`let r = {a: 1, b: 2} in [fold((acc, x) => put(acc, "a", x), r, [5, 6, 7]), fold((acc, x) => put(acc, "c", x), r, [8, 9]), r]`,
		`let r = ` + big + ` in [fold((acc, x) => put(acc, to_text(x), 0 - x), r, [5, 6, 5, 70]), r]`,
		`let r = ` + big + ` in [fold((acc, x) => if x > 5 then put(acc, "5", [x, get(acc, "5")]) else acc, r, [5, 6, 7]), fold((acc, x) => acc, r, [1]), r]`,
		`fold((acc, x) => put(acc, to_text(x % 5), [get(acc, "0", 0), has(acc, "3"), x]), {}, range(0, 50))`,
		`fold((acc, x) => put(acc, to_text(x), y => get(acc, "0", y)), {}, range(0, 4)) |> map_values(f => f(9))`,
		`fold((acc, x) => put(acc, "k", [acc, x]), {}, [1, 2, 3])`,
		`fold((acc, x) => put(put(acc, "a", x), "b", get(acc, "a", 0)), {a: 0, b: 0}, [1, 2, 3])`,
		`fold((acc, x) => let old = acc in put(acc, "k", get(old, "k", 0) + x), {}, [1, 2, 3])`,
		`fold((acc, x) => let before = [acc] in put(acc, "k", before), {k: 1}, [1, 2, 3])`,
		`fold((acc, x) => put(acc, "k", fold((a, y) => a + y + get(acc, "k", 1), 0, [x, x])), {}, [1, 2, 3])`,
		`fold((acc, x) => put(acc, "k", (y => get(acc, "k", y))(x)), {}, [1, 2, 3])`,
		`fold((acc, x) => put(acc, x, 1), {a: 1}, ["a", "b", 3])`,
		`fold((acc, x) => put(acc, "a", 1), 7, [1])`,
		`[try(fold((acc, x) => put(acc, "a", 10 / x), {a: 0}, [5, 2, 0])), fold((acc, x) => put(acc, "a" ++ to_text(x), x), {a: 0}, range(0, 60))]`,
		`let xs = range(0, 40), a = push(xs, 1), b = push(xs, 2), c = push(a, 3), d = push(a, 4), e = push(slice(c, 3, 41), 5) in [xs, a, b, c, d, e, push(c, 6)]`,
		`let xs = fold((acc, i) => push(acc, i), [], range(0, 12)), a = push(xs, 1), b = push(xs, 2) in [xs, a, b, [0, ...a], tail(b), push(cons(9, b), 3)]`,
		`scan((acc, i) => push(acc, i), [], range(0, 70)) |> map(xs => [length(xs), xs[0], last(xs)])`,
	} {
		for _, tight := range []bool{false, true} {
			tr := trial{code: string(mustCompileText(t, src).Canonical()), budgets: core.Budgets{Steps: 200_000, Memory: 16 << 20, Depth: 1000}}
			if tight {
				stressed(t, true)
			} else {
				stressedNot()
			}
			tr.check(t)
		}
	}
	stressedNot()
}
