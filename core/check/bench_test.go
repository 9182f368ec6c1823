package check_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// large is programs of about 10,000 nodes, by what they are made of.
func large() map[string]string {
	repeat := func(n int, before, after, inner string) string {
		return strings.Repeat(before, n) + inner + strings.Repeat(after, n)
	}
	var lets, list, records strings.Builder
	for i := range 1_200 {
		fmt.Fprintf(&lets, `["f%d",{"lam":"x","body":{"add":[{"var":"x"},{"app":[{"var":"f%d"},%d]}]}}],`, i+1, i, i)
		fmt.Fprintf(&list, `{"map":[{"lam":"x","body":{"mul":[{"var":"x"},%d]}},[1,2,3]]},`, i)
		fmt.Fprintf(&records, `{"record":{"id":%d,"name":"n","tags":["a"],"at":{"pair":[1,2]}}},`, i)
	}
	return map[string]string{
		"deep":    `{"lam":"n","body":` + repeat(4_900, `{"add":[1,`, `]}`, `{"var":"n"}`) + `}`,
		"lets":    `{"let":[["f0",{"lam":"x","body":{"var":"x"}}],` + strings.TrimSuffix(lets.String(), ",") + `],"in":{"app":[{"var":"f1200"},1]}}`,
		"maps":    `[` + strings.TrimSuffix(list.String(), ",") + `]`,
		"records": `{"map":[{"lam":"r","body":{"get":[{"var":"r"},"id"]}},[` + strings.TrimSuffix(records.String(), ",") + `]]}`,
		"matches": `{"lam":"x","body":` + repeat(350, `{"match":{"var":"x"},"with":[[{"pair":[{"var":"a"},"_"]},{"var":"a"}],[[{"var":"h"},{"rest":"_"}],{"var":"h"}],["_",`, `]]}`, `0`) + `}`,
		"pairs":   `{"let":[["p0",{"pair":[1,2]}],` + doubling(60) + `],"in":{"var":"p60"}}`,
	}
}

// doubling is pairs of the same pair, over and over: a type of 2^n parts.
func doubling(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `["p%d",{"pair":[{"var":"p%d"},{"var":"p%[2]d"}]}],`, i+1, i)
	}
	return strings.TrimSuffix(b.String(), ",")
}

func size(t term.Term) int {
	n := 1
	term.Children(t, func(c term.Term) bool { n += size(c); return true })
	return n
}

func BenchmarkInfer(b *testing.B) {
	for name, src := range large() {
		b.Run(name, func(b *testing.B) {
			p, f := parse.Code([]byte(src), parse.Options{})
			if f != nil {
				b.Fatal(f)
			}
			var r *check.Report
			for b.Loop() {
				r = check.Infer(p.Term, p.Source, check.Env{}, check.Budget{})
			}
			b.ReportMetric(float64(size(p.Term)), "nodes")
			b.ReportMetric(float64(r.Steps), "steps")
		})
	}
}
