package normal_test

import (
	"os"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check/normal"
)

// TestREADME: two programs and what is said of them, in the blocks "equal" of
// core/check/README.md.
func TestREADME(t *testing.T) {
	src, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, block := range strings.Split(string(src), "```equal\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		lines := strings.Split(strings.TrimSpace(block), "\n")
		for i := 0; i+2 < len(lines); i += 3 {
			n++
			want, reason, _ := strings.Cut(lines[i+2], ": ")
			v := normal.Equal(parseText(t, lines[i]), parseText(t, lines[i+1]), true, normal.Limits{})
			if string(v.Answer) != want || v.Reason != reason {
				t.Errorf("%s and %s\n%s: %s", lines[i], lines[i+1], v.Answer, v.Reason)
			}
		}
	}
	if n < 5 {
		t.Errorf("the README has %d pairs of programs", n)
	}
}
