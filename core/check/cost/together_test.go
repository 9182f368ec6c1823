package cost_test

import (
	"fmt"
	"testing"
)

// Bounds hold of what grows to a power of a size, of how often that is gone
// through, and of values that are made of one another.
func TestGrowthHolds(t *testing.T) {
	for _, code := range []string{
		"n => sort(fold(p => append(fst(p), fst(p)), [3, 1, 2, 5, 4, 9, 7, 8], range(0, n)))",
		"n => pow(3, length(fold(p => append(fst(p), fst(p)), [3, 1, 2], range(0, n))))",
		"n => fold(p => fst(p) + fst(p), 1, range(0, n)) * 3 + 1",
		"n => fold(p => fst(p) * 3, 1, range(0, n * n))",
		"n => fst(fold(p => let f = fst(p) in (snd(f), fst(f) + snd(f)), (0, 1), range(0, n * 40)))",
		"n => fold(p => match fst(p) { (a, b) => (b * 3, a - b) }, (1, 2.5), range(0, n * 20))",
		"n => fold(p => match fst(p) { (a, b) => (a * b, a) }, (2, 3), range(0, n))",
		"n => fold(p => match fst(p) { (a, b) => (b ++ a, upper(a)) }, (\"p\", \"q\"), range(0, n))",
		"n => fold(p => {a: fst(p).c + 1, b: fst(p).a * 2, c: fst(p).b}, {a: 1, b: 2, c: 3}, range(0, n * 50))",
		"n => let go = (go, n, a, b) => if n <= 0 then a else go(go, n - 1, b, a + b) in go(go, n * 60, 0, 1)",
		"n => pipeline([n => range(0, n), l => map(x => x * 7, l), l => sort(l), l => length(l)], n)",
		"n => pipeline([n => range(0, n), l => pipeline([x => x + 1, x => [x, l]], n)], n)",
	} {
		bounded := 0
		for n := range 9 {
			tr := trial{code: code, tool: "tool", inputs: []string{fmt.Sprint(n)}}
			if _, ok := tr.check(t); ok {
				bounded++
			}
		}
		if bounded == 0 {
			t.Errorf("%s has no bound", code)
		}
	}
}
