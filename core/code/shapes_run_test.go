package code_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/naive"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// TestShapesRun: the shapes do what the reference evaluator says. Effects give
// their argument back if it is an integer, or else 1.
func TestShapesRun(t *testing.T) {
	budgets := core.Budgets{Steps: 20_000, Memory: 8 << 20, Depth: 2000}
	for name, src := range shapes {
		t.Run(name, func(t *testing.T) {
			for _, input := range []string{`3`, `"s"`, `{"pair":[4,5]}`, `{"quote":{"var":"in"}}`, `{"lam":"a","body":{"lam":"b","body":{"var":"a"}}}`} {
				for _, tool := range []string{"", "t"} {
					code := `{"lam":"in","body":` + src + `}`
					if got, want := onEval(t, tool, code, input, budgets), onNaive(t, tool, code, input, budgets); got != want {
						t.Errorf("as %q of %s: eval  %.500s\nnaive %.500s", tool, input, got, want)
					}
				}
			}
		})
	}
}

func answer(arg value.Value) value.Value {
	if n, ok := arg.(value.Int); ok {
		return n
	}
	return value.NewInt(1)
}

func onEval(t *testing.T, tool, code, input string, b core.Budgets) string {
	t.Helper()
	p, err := compile(tool, code)
	must.NoError(t, err)
	in, err := core.ParseInput([]byte(input), core.InputTerm)
	must.NoError(t, err)
	m := p.Start(in, b, nil)
	defer m.Release()
	for m.Run(0) == core.Suspended {
		m.Resume([]core.Answer{{Value: answer(m.Requests()[0].Arg)}})
	}
	if f := m.Fault(); f != nil {
		return failure(f, m.Steps())
	}
	e, f := m.Encode(1 << 20)
	if f != nil {
		return failure(f, m.Steps())
	}
	return fmt.Sprintf("%s, %d steps", e.JSON, m.Steps())
}

func onNaive(t *testing.T, tool, code, input string, b core.Budgets) string {
	t.Helper()
	p, err := compile(tool, code)
	must.NoError(t, err)
	in, f := parse.Input([]byte(input), parse.Term)
	must.NoFault(t, f)
	v, steps, f := naive.Run(naive.Config{
		Term: p.Term(), Source: p.Tool().Source, Tool: tool, Input: in,
		Budgets: naive.Budgets{Steps: b.Steps, Memory: b.Memory, Depth: b.Depth},
		Handler: func(round []value.Request) []value.Answer {
			return []value.Answer{{Value: answer(round[0].Arg)}}
		},
	})
	if f != nil {
		return failure(f, steps)
	}
	e, f := text.Encode(v, 1<<20, b.Memory)
	if f != nil {
		return failure(f, steps)
	}
	return fmt.Sprintf("%s, %d steps", e.JSON, steps)
}

func compile(tool, code string) (*core.Program, error) {
	if tool == "" {
		return core.Compile([]byte(code))
	}
	return core.CompileTool(tool, []byte(code))
}

// failure is a fault in full, but for a budget's, whose place may differ.
func failure(f *fault.Fault, steps uint64) string {
	if f.Kind == fault.OutOfFuel || f.Kind == fault.TooDeep {
		return string(f.Kind)
	}
	b, err := json.Marshal(f)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s, %d steps", b, steps)
}
