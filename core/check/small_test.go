package check_test

import (
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// small is a tool of some 30 terms, as most are.
const small = "(items, rate) => let total = sum(map(i => i.price * i.count, items)) in {total: total, tax: div(total * rate, 100)}"

func BenchmarkSmallTool(b *testing.B) {
	p, f := text.Parse([]byte(small), text.Options{Tool: "tool"})
	if f != nil {
		b.Fatal(f)
	}
	b.ReportAllocs()
	for b.Loop() {
		check.Infer(p.Term, p.Source, check.Env{Tool: "tool"}, check.Budget{})
	}
}
