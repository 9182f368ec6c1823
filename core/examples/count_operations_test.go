package examples_test

import (
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
)

// The predecessor's documents show count_operations with both operands in its
// own spelling: analyze with its code in an array, code_of with a term. That
// is the example's program, but for the array, and does the same.
func TestCountOperationsAsPrinted(t *testing.T) {
	const printed = `{"lam":"tool_name","body":{"analyze":[{"code_of":{"var":"tool_name"}}]}}`
	p, err := core.CompileTool("count_operations", []byte(printed))
	if err != nil {
		t.Fatal(err)
	}
	square, err := core.CompileTool("square", []byte(`{"lam":"x","body":{"mul":[{"var":"x"},{"var":"x"}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	tools := registry{"count_operations": p, "square": square}
	for name, want := range map[string]string{
		"square":           `{"count":2,"depth":3,"effects":[],"free":[],"operations":{"lam":1,"mul":1},"parameters":["x"],"size":4}`,
		"count_operations": `{"count":3,"depth":4,"effects":[],"free":[],"operations":{"analyze":1,"code_of":1,"lam":1},"parameters":["tool_name"],"size":4}`,
	} {
		if got := run(t, p, []byte(`"`+name+`"`), core.InputAuto, core.Budgets{}, tools); string(got) != want {
			t.Errorf("of %s it gives %s, not %s", name, got, want)
		}
	}
}
