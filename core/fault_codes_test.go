package core_test

import (
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/internal/vectors"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// TestFaultCodes runs the example of every kind in the table of faults, on both
// evaluators.
func TestFaultCodes(t *testing.T) {
	examples := 0
	for _, c := range fault.Codes {
		if c.Example == "" {
			continue
		}
		examples++
		t.Run(string(c.Kind), func(t *testing.T) {
			p := program{code: c.Example, budgets: core.Budgets{Steps: 100_000}}
			p.onBoth(t, func(t *testing.T, got ending) { failsWith(t, got, c.Kind) })
		})
	}
	if examples == 0 {
		t.Error("no kind has an example")
	}
}

// failsWith wants a failure of a kind that can be acted upon: it says what
// happened and what to do.
func failsWith(t *testing.T, got ending, kind fault.Kind) {
	t.Helper()
	switch {
	case got.fault == nil:
		t.Errorf("got %s, want %s", got, kind)
	case got.fault.Kind != kind:
		t.Errorf("got %v, want %s", got.fault, kind)
	case got.fault.Message == "" || got.fault.Hint == "":
		t.Errorf("%s lacks message or hint: %+v", kind, got.fault)
	}
}

const (
	sum  = `{"lam":"n","body":{"if":{"cond":{"eq":[{"var":"n"},0]},"then":0,"else":{"add":[{"var":"n"},{"app":{"func":{"self":true},"arg":{"sub":[{"var":"n"},1]}}}]}}}}`
	list = `{"lam":"n","body":{"if":{"cond":{"eq":[{"var":"n"},0]},"then":[],"else":{"cons":[{"var":"n"},{"app":{"func":{"self":true},"arg":{"sub":[{"var":"n"},1]}}}]}}}}`
	// twice doubles a pair that it shares n times.
	twice = `{"lam":"n","body":{"if":{"cond":{"eq":[{"var":"n"},0]},"then":1,"else":{"app":[{"lam":"p","body":{"pair":[{"var":"p"},{"var":"p"}]}},{"app":{"func":{"self":true},"arg":{"sub":[{"var":"n"},1]}}}]}}}}`
)

// TestFaultKindsOfRuns: the kinds of the language whose examples need a tool,
// an input, an effect or small budgets.
func TestFaultKindsOfRuns(t *testing.T) {
	tool := func(code string) []vectors.Tool { return []vectors.Tool{{Name: "t", Code: []byte(code)}} }
	refuse := func(int, string, value.Value) (value.Value, *fault.Fault) {
		return nil, &fault.Fault{Kind: fault.EffectFailed, Message: "no such file", Hint: "Name a file that exists."}
	}
	for _, c := range []struct {
		kind fault.Kind
		p    program
	}{
		{fault.ParseError, program{code: `1`, input: `{"add":[1,2}`, as: core.InputAuto}},
		{fault.ParseError, program{code: `[1,2`}},
		{fault.ParseError, program{tools: tool(`{"lam":"x","body":[{"continue":{"input":1}}]}`), tool: "t"}},
		{fault.Unbound, program{code: `{"lam":"x","body":0}`, input: `{"var":"x"}`, as: core.InputAuto}},
		{fault.RuntimeError, program{code: `{"continue":{"input":1}}`}},
		{fault.RuntimeError, program{code: `{"code_of":"no_such_tool"}`}},
		{fault.RuntimeError, program{tools: tool(`{"lam":"n","body":{"app":[{"eval":{"code_of":"t"}},1]}}`), tool: "t"}},
		{fault.OutOfFuel, program{tools: tool(sum), tool: "t", input: `100`, budgets: core.Budgets{Steps: 100}}},
		{fault.TooDeep, program{tools: tool(sum), tool: "t", input: `100`, budgets: core.Budgets{Depth: 99}}},
		{fault.ResultTooLarge, program{tools: tool(twice), tool: "t", input: `60`, budgets: core.Budgets{Memory: 1 << 20}}},
		{fault.Denied, program{code: `{"lam":"x","body":0}`, input: `{"call":{"tool":"t","input":1}}`, as: core.InputAuto}},
		{fault.EffectFailed, program{code: `{"fs.read":"a.txt"}`, effect: refuse}},
	} {
		t.Run(string(c.kind), func(t *testing.T) {
			c.p.onBoth(t, func(t *testing.T, got ending) { failsWith(t, got, c.kind) })
		})
	}
}

// TestOutOfMemory: only the machine counts memory exactly.
func TestOutOfMemory(t *testing.T) {
	p := program{
		tools: []vectors.Tool{{Name: "t", Code: []byte(list)}}, tool: "t", input: `100000`,
		budgets: core.Budgets{Memory: 1 << 20},
	}
	failsWith(t, p.onEval(t), fault.OutOfMemory)
	p.budgets.Memory = 64 << 20
	if got := p.onEval(t); got.fault != nil {
		t.Errorf("with 64 MiB: %v", got.fault)
	}
	p = program{code: `{"fold":[{"lam":"p","body":{"concat":[{"fst":{"var":"p"}},{"fst":{"var":"p"}}]}},"ab",[` + strings.Repeat("0,", 40) + `0]]}`}
	p.onBoth(t, func(t *testing.T, got ending) { failsWith(t, got, fault.OutOfMemory) })
}

// TestFaultDocuments: a failure says which document its place points into.
func TestFaultDocuments(t *testing.T) {
	for _, c := range []struct {
		in   string
		p    program
		deep int
	}{
		{"code", program{code: `{"add":[1,null]}`}, 0},
		{"input", program{code: `{"lam":"x","body":0}`, input: `{"add":[1,null]}`, as: core.InputAuto}, 0},
		{"input", program{code: `{"lam":"x","body":0}`, input: `{"add":[1]}`, as: core.InputAuto}, 0},
		{"tool:t", program{tools: []vectors.Tool{{Name: "t", Code: []byte(`{"lam":"x","body":{"not":{"var":"x"}}}`)}}, tool: "t"}, 0},
		{"eval", program{code: `{"eval":{"quote":{"eval":{"quote":{"not":null}}}}}`}, 2},
	} {
		c.p.onBoth(t, func(t *testing.T, got ending) {
			if got.fault == nil || got.fault.In != c.in || got.fault.EvalDepth != c.deep {
				t.Errorf("got %v %+v, want it in %q, %d deep", got, got.fault, c.in, c.deep)
			}
		})
	}
}
