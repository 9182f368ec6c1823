package check_test

import (
	"slices"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// TestRows: of the examples of every row, those that succeed have no
// diagnostic at their root, which is evaluated, those that fail by their types
// aren't sound, and nothing is known by its kind alone.
func TestRows(t *testing.T) {
	told, failing := 0, 0
	for i := range prim.Table {
		row := &prim.Table[i]
		for _, x := range row.Examples {
			p, f := parse.Code([]byte(x.Code), parse.Options{})
			if f != nil {
				continue // how it fails
			}
			r := check.Infer(p.Term, p.Source, check.Env{}, check.Budget{})
			for _, d := range r.Dynamic {
				if d.Reason == check.ReasonRow {
					t.Errorf("%s: %s", x.Code, d.Message)
				}
			}
			switch {
			case x.Want != "" && slices.ContainsFunc(r.Diagnostics, func(d check.Diagnostic) bool { return d.At == "" }):
				t.Errorf("%s succeeds, and is to fail: %v", x.Code, r.Diagnostics)
			case x.Fault == fault.TypeError && x.Input == "" || x.Fault == fault.Unbound:
				failing++
				if len(r.Diagnostics) > 0 {
					told++
				}
				if r.Sound() {
					t.Errorf("%s fails with %s, and is to be sound: %s", x.Code, x.Fault, r.Type)
				}
			}
		}
	}
	t.Logf("of %d examples that fail by their types %d have a diagnostic", failing, told)
	if told*10 < failing*7 {
		t.Error("too few are told of")
	}
}
