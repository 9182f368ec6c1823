package core_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/internal/vectors"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// TestPrimExamples runs the examples of every row of the table, which are what
// help shows, on both evaluators: result, or kind of failure, and steps where
// the example states them.
func TestPrimExamples(t *testing.T) {
	for i := range prim.Table {
		row := &prim.Table[i]
		for k, x := range row.Examples {
			t.Run(fmt.Sprintf("%s/%d", row.Name, k), func(t *testing.T) {
				if x.Text != "" {
					if read, err := core.Compile([]byte(x.Code)); err != nil || !bytes.Equal(read.Canonical(), canonical(t, "", x.Text)) {
						t.Errorf("%s is not %s: %v", x.Text, x.Code, err)
					}
				}
				p := program{code: x.Code, input: x.Input}
				p.onBoth(t, func(t *testing.T, got ending) {
					switch {
					case x.Fault != "":
						if got.fault == nil || got.fault.Kind != x.Fault {
							t.Errorf("%s gives %s, want %s", x.Code, got, x.Fault)
						}
					case got.fault != nil:
						t.Errorf("%s fails: %v", x.Code, got.fault)
					case !vectors.SameJSON(json.RawMessage(got.result), json.RawMessage(x.Want)):
						t.Errorf("%s gives %s, want %s", x.Code, got, x.Want)
					}
					if x.Steps != 0 && got.steps != x.Steps {
						t.Errorf("%s takes %d steps, want %d", x.Code, got.steps, x.Steps)
					}
				})
			})
		}
	}
}

// TestPrimResultKinds: what a row's examples give is of a kind the row says,
// where the row is what the example is.
func TestPrimResultKinds(t *testing.T) {
	for i := range prim.Table {
		row := &prim.Table[i]
		for _, x := range row.Examples {
			if x.Fault != "" || !row.Operation() || !topmost(x.Code, row.Name) || row.Name == "lam" {
				continue // a lam's example gives what its body does
			}
			got := (&program{code: x.Code, input: x.Input}).onEval(t)
			if kinds := strings.Split(row.Result.String(), "|"); row.Result != prim.KindAny && !slices.Contains(kinds, string(got.kind)) {
				t.Errorf("%s gives %s, the row says %s", x.Code, got.kind, row.Result)
			}
		}
	}
}

// topmost reports whether the operation is the whole of a term.
func topmost(code, name string) bool {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(code), &object) != nil {
		return false
	}
	_, ok := object[name]
	return ok
}
