package issue_test

import (
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/check/issue"
	"github.com/mcp-pif/mcp-pif/core/text"
)

func BenchmarkSmallTool(b *testing.B) {
	p, f := text.Parse([]byte("(items, rate) => let total = sum(map(i => i.price * i.count, items)) in {total: total, tax: div(total * rate, 100)}"), text.Options{Tool: "tool"})
	if f != nil {
		b.Fatal(f)
	}
	b.ReportAllocs()
	for b.Loop() {
		if c := issue.Certificate(p.Term, p.Source, check.Env{Tool: "tool"}, tools); len(c.Types) == 0 {
			b.Fatal("it has no types")
		}
	}
}
