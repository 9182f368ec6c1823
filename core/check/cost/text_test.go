package cost_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check/cost"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// Strings that are known could double with every term.
func TestKnownTextIsBounded(t *testing.T) {
	var src strings.Builder
	src.WriteString(`x => let a0 = "aaaaaaaa"`)
	const doublings = 22
	for i := range doublings {
		fmt.Fprintf(&src, ", a%d = a%d ++ a%d", i+1, i, i)
	}
	fmt.Fprintf(&src, " in length(a%d)", doublings)
	parsed, err := text.Parse([]byte(src.String()), text.Options{Tool: "tool"})
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := cost.Of(parsed.Term, cost.Options{Tool: true})
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 8 {
		t.Errorf("working out the cost took %d MiB", took)
	}
	if r.Class != cost.Constant || !r.Steps.Finite() {
		t.Errorf("cost: %s, %s", r.Class, r.Steps.Explain())
	}
}
