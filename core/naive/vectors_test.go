package naive_test

import (
	"encoding/json"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/internal/vectors"
	"github.com/mcp-pif/mcp-pif/core/naive"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// registry is the tools that a program may look up.
type registry map[string]*parse.Parsed

func (r registry) Tool(name string, _ bool) (value.Tool, bool) {
	p, ok := r[name]
	if !ok {
		return value.Tool{}, false
	}
	return value.Tool{Term: p.Term, Source: p.Source, Name: name, Tools: r, Takes: check.Takes(name, p.Term)}, true
}

func (r registry) Callee(name string, with [][]string, _ fault.Pointer) (value.Tool, *fault.Fault) {
	return vectors.Callee(r, name, with)
}

// evolve parses tools as evolve would.
func evolve(tools []vectors.Tool) (registry, *fault.Fault) {
	r := registry{}
	for _, tool := range tools {
		p, f := parse.Code(tool.Source(), parse.Options{Tool: tool.Name})
		if f != nil {
			return nil, f
		}
		p.Source = &term.Source{Text: p.Source.Text, In: "tool:" + tool.Name + "@1"}
		r[tool.Name] = p
	}
	return r, nil
}

// program fills in the code to run: that of a tool, or a source.
func (r registry) program(c *naive.Config, tool string, source []byte) *fault.Fault {
	p := r[tool]
	if tool == "" {
		var f *fault.Fault
		if p, f = parse.Code(source, parse.Options{}); f != nil {
			return f
		}
	}
	c.Term, c.Source, c.Tool, c.Tools = p.Term, p.Source, tool, r
	return nil
}

// outcome runs and encodes.
func outcome(c naive.Config) vectors.Outcome {
	v, steps, f := naive.Run(c)
	if f != nil {
		return vectors.Failed(f, steps)
	}
	e, f := text.Encode(v, 64<<20, 64<<20)
	if f != nil {
		return vectors.Failed(f, steps)
	}
	return vectors.Outcome{Result: json.RawMessage(e.JSON), Type: string(e.Type), Steps: steps}
}

func TestVectors(t *testing.T) {
	vectors.Each(t, func(t *testing.T, v vectors.Vector) vectors.Outcome {
		tools, f := evolve(v.Setup)
		if f != nil {
			return vectors.Failed(f, 0)
		}
		c := naive.Config{Budgets: naive.Budgets{Steps: v.Steps()}}
		tool, source := v.Program()
		if f := tools.program(&c, tool, source); f != nil {
			return vectors.Failed(f, 0)
		}
		if c.Input, f = parse.Input(v.Input, parse.Auto); f != nil {
			return vectors.Failed(f, 0)
		}
		return outcome(c)
	})
}
