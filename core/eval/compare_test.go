package eval_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestCompareShort: integers and strings are compared as the reference does, and for as
// many steps: on both sides of the length from which a comparison takes some.
func TestCompareShort(t *testing.T) {
	texts := []string{`""`, `"a"`, `"b"`, `"é"`, `concat("a", "b")`, `concat(s, "x")`, `concat("x", s)`}
	for _, n := range []int{502, 503, 504, 505, 1100} {
		texts = append(texts, fmt.Sprintf("%q", strings.Repeat("a", n)), fmt.Sprintf("%q", strings.Repeat("a", n-1)+"b"))
	}
	numbers := []string{"0", "-1", "1", "4611686018427387903", "-4611686018427387904", "9223372036854775808", "n", "n - 1"}
	for _, of := range [][]string{texts, numbers, {"true", "1", `"1"`, "1.0"}} {
		for _, a := range of {
			for _, b := range of {
				for _, op := range []string{"compare", "equal"} {
					code := fmt.Sprintf("s => n => %s(%s, %s)", op, a, b)
					code = `x => (` + code + `)("` + strings.Repeat("a", 502) + `")(4611686018427387903)`
					trial{code: string(mustCompileText(t, code).Canonical()), input: "null"}.check(t)
				}
			}
		}
	}
	code := `xs => [sort(xs), sort_by(x => 0 - x, xs), unique(xs), sort(map(x => to_text(x), xs))]`
	trial{code: string(mustCompileText(t, code).Canonical()), input: "[3,1,2,9,3,-7,4]"}.check(t)
}
