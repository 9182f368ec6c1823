package core_test

import (
	"testing"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/internal/vectors"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// TestRowExamples runs every example of the table on both evaluators.
func TestRowExamples(t *testing.T) {
	for i := range prim.Table {
		r := &prim.Table[i]
		t.Run(r.Name, func(t *testing.T) {
			for _, x := range r.Examples {
				if _, f := parse.Code([]byte(x.Code), parse.Options{}); f != nil {
					if x.Fault != fault.ParseError {
						t.Errorf("%s: %v", x.Code, f)
					}
					continue
				}
				input := x.Input
				if input == "" {
					input = "null"
				}
				tr := trial{code: x.Code, input: input}
				tr.compare(t)
				got := tr.onNaive(t)
				if got.Kind != x.Fault || x.Want != "" && !vectors.SameJSON([]byte(x.Want), got.Result) {
					t.Errorf("%s gives %v, want %s%s", x.Code, got, x.Want, x.Fault)
				}
				if x.Steps != 0 && got.Steps != x.Steps {
					t.Errorf("%s takes %d steps, not %d", x.Code, got.Steps, x.Steps)
				}
			}
		})
	}
}
