package core_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/internal/vectors"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// TestTopics runs the examples of the card and of help's topics, as tools, on both
// evaluators.
func TestTopics(t *testing.T) {
	for _, x := range prim.CardExamples() {
		t.Run("card/"+x.Code, func(t *testing.T) { runWritten(t, x) })
	}
	for _, topic := range prim.Topics {
		for _, x := range topic.Examples {
			t.Run(topic.Names[0]+"/"+x.Code, func(t *testing.T) { runWritten(t, x) })
		}
	}
}

func runWritten(t *testing.T, x prim.Written) {
	t.Helper()
	code := x.Code
	if p, err := core.CompileText("it", []byte(code)); err == nil && len(p.Params()) > 1 && x.Input != "" {
		code = fmt.Sprintf("r => (%s)(r.%s)", code, strings.Join(p.Params(), ", r.")) // as a call by name is read
	}
	tools := []vectors.Tool{{Name: "it", Code: canonical(t, "it", code)}}
	if x.Beside[0] != "" {
		tools = append(tools, vectors.Tool{Name: x.Beside[0], Code: canonical(t, x.Beside[0], x.Beside[1])})
	}
	p := program{tools: tools, tool: "it", input: x.Input, as: core.InputData, budgets: core.Budgets{Steps: 100_000}}
	if x.Input == "" {
		p.input = "null"
	}
	if quoted, ok := strings.CutPrefix(x.Input, `"'`); ok { // code is an input as a tool reads it
		p.as, p.input = core.InputTerm, string(canonical(t, "", "'"+strings.TrimSuffix(quoted, `"`)))
	}
	if x.Gives != "" {
		p.effect = func(int, string, value.Value) (value.Value, *fault.Fault) { return datum(t, x.Gives), nil }
	}
	p.onBoth(t, func(t *testing.T, got ending) {
		switch {
		case x.Fault != "":
			if got.fault == nil || got.fault.Kind != x.Fault {
				t.Errorf("it gives %s, want %s", got, x.Fault)
			}
		case got.fault != nil:
			t.Errorf("it fails: %v", got.fault)
		case !vectors.SameJSON(json.RawMessage(got.result), json.RawMessage(x.Want)):
			t.Errorf("it gives %s, want %s", got, x.Want)
		}
	})
}

// canonical is the JSON of code in the text form, which has nothing that is noted.
func canonical(t *testing.T, name, code string) json.RawMessage {
	t.Helper()
	p, err := core.CompileText(name, []byte(code))
	if err != nil {
		t.Fatalf("%s: %v", code, err)
	}
	if len(p.Notes()) > 0 {
		t.Errorf("%s: %q", code, p.Notes())
	}
	return p.Canonical()
}
