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

// TestContains: plain values are looked for in a list as the reference does it, for as
// many steps, and so are those that aren't plain.
func TestContains(t *testing.T) {
	items := []string{"1", "2", `"a"`, `"b"`, `"` + strings.Repeat("a", 700) + `"`, "true", "null", "[]", "1.0", "[1]", `concat("` + strings.Repeat("b", 60) + `", "a")`, "9223372036854775808"}
	for _, n := range []int{0, 1, 5, 70, 3000} {
		for _, part := range items {
			for _, list := range []string{"range(0, %d)", "map(x => to_text(x), range(0, %d))", "[" + strings.Join(items[:8], ", ") + ", %d]", "[" + strings.Join(items, ", ") + ", %d]"} {
				code := fmt.Sprintf("x => let xs = %s in [contains(xs, %s), type_of(%s)]", fmt.Sprintf(list, n), part, part)
				trial{code: string(mustCompileText(t, code).Canonical()), input: "1"}.check(t)
			}
		}
	}
}
