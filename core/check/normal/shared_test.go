package normal_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check/normal"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// A part may stand in a value in so many places that nobody can go through them,
// be it to compare two values or to show one.
func TestEqualOfSharedParts(t *testing.T) {
	doubled := func(first, with string) string {
		var b strings.Builder
		fmt.Fprintf(&b, "x => let a0 = %s", first)
		for i := range 60 {
			fmt.Fprintf(&b, ", a%d = "+with, i+1, i)
		}
		return b.String() + " in a60"
	}
	for _, c := range []struct{ a, b, answer string }{
		{doubled("[x + x]", "[a%d, a%[2]d]"), doubled("[2 * x]", "[a%d, a%[2]d]"), "unknown"},
		{doubled("x + x", "{a: a%d, b: a%[2]d}"), doubled("2 * x", "{a: a%d, b: a%[2]d}"), "unknown"},
		{doubled("x + x", "(a%d, a%[2]d)"), doubled("2 * x", "(a%d, a%[2]d)"), "unknown"},
		{doubled("x + x", "(a%d, a%[2]d)"), "x => 0", "different"},
	} {
		a, f := text.Parse([]byte(c.a), text.Options{Tool: "tool"})
		if f != nil {
			t.Fatal(f)
		}
		b, f := text.Parse([]byte(c.b), text.Options{Tool: "tool"})
		if f != nil {
			t.Fatal(f)
		}
		if v := normal.Equal(a.Term, b.Term, true, normal.Limits{}); string(v.Answer) != c.answer {
			t.Errorf("%s: %s", v.Answer, v.Reason)
		}
	}
}
