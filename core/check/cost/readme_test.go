package cost_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check/cost"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// TestREADME: tools and their bounds, in the blocks "cost" of core/check/README.md.
func TestREADME(t *testing.T) {
	src, err := os.ReadFile("../README.md")
	must.NoError(t, err)
	n := 0
	for _, block := range strings.Split(string(src), "```cost\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		lines := strings.Split(strings.TrimSpace(block), "\n")
		for i := 0; i+1 < len(lines); i += 2 {
			n++
			p, f := text.Parse([]byte(lines[i]), text.Options{Tool: "tool"})
			must.NoFault(t, f)
			r := cost.Of(p.Term, cost.Options{Tool: true, Source: p.Source})
			got := string(r.Class) + ": " + r.Steps.Explain()
			if !r.Steps.Finite() {
				got = fmt.Sprintf("%s at %d:%d: %s", r.Class, r.Why[0].Line, r.Why[0].Col, r.Why[0].Message)
			}
			if got != lines[i+1] {
				t.Errorf("%s\n%s\nwant\n%s", lines[i], got, lines[i+1])
			}
		}
	}
	if n < 5 {
		t.Errorf("the README has %d bounds", n)
	}
}
