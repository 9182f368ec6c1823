package prim_test

import (
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// TestNoItem: what is expected can be given, and the hint shows the row that
// failed.
func TestNoItem(t *testing.T) {
	some := value.FromSlice([]value.Value{i64(1), i64(2)})
	for _, c := range []struct {
		name           string
		list           value.Value
		expected, hint string
	}{
		{"nth", some, "an index from 0 to 1", `{"nth":[L,I]}`},
		{"nth", value.Nil{}, "a list that has items", `{"nth":[L,I]}`},
		{"set_nth", some, "an index from 0 to 1", `{"set_nth":[L,I,V]}`},
		{"set_nth", value.Nil{}, "a list that has items", `{"set_nth":[L,I,V]}`},
	} {
		_, r, _ := prim.Lookup(c.name)
		_, f := r.Eval([]value.Value{c.list, i64(7), i64(0)}[:len(r.Params)])
		if f == nil || f.Expected != c.expected || !strings.Contains(f.Hint, c.hint) {
			t.Errorf("%s: %v, %q, %q", c.name, f, f.Expected, f.Hint)
		}
	}
}
