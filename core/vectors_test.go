package core_test

import (
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/internal/vectors"
)

// tools is a snapshot for code_of.
type tools map[string]*core.Program

func (t tools) Tool(name string, _ bool) (core.Tool, bool) {
	p, ok := t[name]
	if !ok {
		return core.Tool{}, false
	}
	found := p.Tool()
	found.Tools = t
	return found, true
}

func (t tools) Callee(name string, with [][]string, _ fault.Pointer) (core.Tool, *fault.Fault) {
	return vectors.Callee(t, name, with)
}

func evolve(setup []vectors.Tool) (tools, *fault.Fault) {
	ts := tools{}
	for _, s := range setup {
		p, err := core.CompileTool(s.Name, s.Source())
		if err != nil {
			return nil, err.(*fault.Fault)
		}
		ts[s.Name] = p
	}
	return ts, nil
}

func outcome(m *core.Machine) vectors.Outcome {
	if m.State() == core.Failed {
		return vectors.Failed(m.Fault(), m.Steps())
	}
	e, f := m.Encode(16 << 20)
	if f != nil {
		return vectors.Failed(f, m.Steps())
	}
	return vectors.Outcome{Result: e.JSON, Type: string(e.Type), Steps: m.Steps()}
}

func TestVectors(t *testing.T) {
	vectors.Each(t, func(t *testing.T, v vectors.Vector) vectors.Outcome {
		ts, f := evolve(v.Setup)
		if f != nil {
			return vectors.Failed(f, 0)
		}
		name, src := v.Program()
		p := ts[name]
		if name == "" {
			var err error
			if p, err = core.CompileTool("", src); err != nil {
				return vectors.Failed(err.(*fault.Fault), 0)
			}
		}
		in, err := core.ParseInput(v.Input, core.InputAuto)
		if err != nil {
			return vectors.Failed(err.(*fault.Fault), 0)
		}
		m := p.Start(in, core.Budgets{}, ts)
		defer m.Release()
		// In slices, so that pausing is exercised by every vector.
		for m.Run(97) == core.Paused {
		}
		return outcome(m)
	})
}

func TestCorpus(t *testing.T) {
	vectors.EachCase(t, func(t *testing.T, c *vectors.Case) vectors.Outcome {
		ts, f := evolve(c.Setup())
		if f != nil {
			return vectors.Failed(f, 0)
		}
		name, src := c.Program()
		p := ts[name]
		if name == "" {
			var err error
			if p, err = core.CompileTool("", src); err != nil {
				return vectors.Failed(err.(*fault.Fault), 0)
			}
		}
		as := map[string]core.InputAs{"": core.InputAuto, "auto": core.InputAuto, "term": core.InputTerm, "data": core.InputData}[c.InputAs]
		in, err := core.ParseInput(c.Input, as)
		if err != nil {
			return vectors.Failed(err.(*fault.Fault), 0)
		}
		m := p.Start(in, core.Budgets{Steps: c.Budgets.Steps, Memory: c.Budgets.Memory, Depth: c.Budgets.Depth}, ts)
		defer m.Release()
		asked, rounds := 0, 0
		for m.Run(0) == core.Suspended {
			var answers []core.Answer
			for _, e := range c.Answers(t, m.Requests(), func(v core.Value) []byte { return encoded(t, v) }, &asked, &rounds) {
				answers = append(answers, answer(t, e))
			}
			m.Resume(answers)
		}
		o := outcome(m)
		if o.Kind == "" && asked != len(c.Effects) {
			t.Errorf("%d effects were asked for, want %d", asked, len(c.Effects))
		}
		return o
	})
}

func answer(t *testing.T, e vectors.Effect) core.Answer {
	if e.Fault != "" {
		return core.Answer{Fault: &fault.Fault{Kind: e.Fault, Message: "as the case says"}}
	}
	in, err := core.ParseInput(e.Result, core.InputData)
	if err != nil {
		t.Fatal(err)
	}
	p, err := core.Compile([]byte(`{"lam":"x","body":{"var":"x"}}`))
	if err != nil {
		t.Fatal(err)
	}
	m := p.Start(in, core.Budgets{}, nil)
	defer m.Release()
	if m.Run(0) != core.Done {
		t.Fatal(m.Fault())
	}
	return core.Answer{Value: m.Value()}
}
