package normal_test

import (
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check/normal"
	"github.com/mcp-pif/mcp-pif/core/text"
)

func BenchmarkSmallTool(b *testing.B) {
	p, f := text.Parse([]byte("(items, rate) => let total = sum(map(i => i.price * i.count, items)) in {total: total, tax: div(total * rate, 100)}"), text.Options{Tool: "tool"})
	if f != nil {
		b.Fatal(f)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := normal.Of(p.Term, normal.Options{Tool: true}); err != nil {
			b.Fatal(err)
		}
	}
}
