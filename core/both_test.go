package core_test

import (
	"cmp"
	"encoding/json"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/internal/vectors"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/naive"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A program is what a test runs on both evaluators: inline code, or the tool
// called tool.
type program struct {
	tools     []vectors.Tool
	tool      string
	code      string
	text      bool   // code is in the text form
	inline    bool   // as a server reads it that runs it
	semantics int    // by which inline code is read; 0: the newest
	input     string // JSON; empty for null
	as        core.InputAs
	budgets   core.Budgets
	// effect performs the i-th effect (from 0), if the evals around permit it;
	// nil: every effect is denied.
	effect func(i int, op string, arg value.Value) (value.Value, *fault.Fault)
	// rounds, where not nil, makes what answers whole rounds, for each run.
	rounds func() func([]core.Request) []core.Answer
}

// An ending is what came of a program on one evaluator: a result, or a fault.
type ending struct {
	result string // JSON
	kind   value.Type
	steps  uint64
	fault  *fault.Fault
}

// whole is the fault as a client sees it, with the steps beside it.
func (e ending) whole(t *testing.T) string {
	t.Helper()
	b, err := json.MarshalIndent(e.fault, "", " ")
	must.NoError(t, err)
	return string(b)
}

func (e ending) String() string {
	if e.fault != nil {
		return e.fault.Error()
	}
	return e.result
}

// prepare reads the program's parts. What can't be read ends it.
func (p *program) prepare() (*core.Program, tools, *fault.Fault) {
	ts, f := evolve(p.tools)
	if f != nil {
		return nil, nil, f
	}
	if p.tool != "" {
		return ts[p.tool], ts, nil
	}
	compile := func(src []byte) (*core.Program, error) { return core.CompileTool("", src) }
	if p.inline {
		compile = func(src []byte) (*core.Program, error) {
			return core.CompileUnder(cmp.Or(p.semantics, core.Semantics), src)
		}
	} else if p.text {
		compile = func(src []byte) (*core.Program, error) { return core.CompileText("", src) }
	}
	prog, err := compile([]byte(p.code))
	if err != nil {
		return nil, nil, err.(*fault.Fault)
	}
	return prog, ts, nil
}

// onEval runs the program as a Go program would.
func (p *program) onEval(t *testing.T) ending {
	t.Helper()
	prog, ts, f := p.prepare()
	if f != nil {
		return ending{fault: f}
	}
	in, err := core.ParseInput([]byte(p.input), p.as)
	if err != nil {
		return ending{fault: err.(*fault.Fault)}
	}
	m := prog.Start(in, p.budgets, ts)
	defer m.Release()
	perform := p.performer()
	for m.Run(0) == core.Suspended {
		m.Resume(perform(m.Requests()))
	}
	if m.State() == core.Failed {
		return ending{fault: m.Fault(), steps: m.Steps()}
	}
	e, f := m.Encode(16 << 20)
	return ending{string(e.JSON), e.Type, m.Steps(), f}
}

// performer answers rounds of requests.
func (p *program) performer() func([]core.Request) []core.Answer {
	if p.rounds != nil {
		return p.rounds()
	}
	effects := 0
	return func(round []core.Request) []core.Answer {
		answers := make([]core.Answer, len(round))
		for i, r := range round {
			if p.effect == nil || !vectors.Permits(r.With, r.Op) {
				answers[i].Fault = fault.New(fault.Denied, "nothing was granted")
				continue
			}
			answers[i].Value, answers[i].Fault = p.effect(effects, r.Op, r.Arg)
			effects++
		}
		return answers
	}
}

// onNaive runs the program on the reference evaluator.
func (p *program) onNaive(t *testing.T) ending {
	t.Helper()
	prog, ts, f := p.prepare()
	if f != nil {
		return ending{fault: f}
	}
	in, f := parse.Input([]byte(p.input), p.as)
	if f != nil {
		return ending{fault: f}
	}
	c := naive.Config{
		Term: prog.Term(), Source: prog.Tool().Source, Tool: p.tool, Input: in,
		Budgets: naive.Budgets{Steps: p.budgets.Steps, Memory: p.budgets.Memory, Depth: p.budgets.Depth},
		Tools:   ts, Handler: p.performer(),
	}
	v, steps, f := naive.Run(c)
	if f != nil {
		return ending{fault: f, steps: steps}
	}
	most := p.budgets.Memory
	most = cmp.Or(most, core.DefaultMemory)
	e, f := text.Encode(v, 16<<20, most)
	return ending{string(e.JSON), e.Type, steps, f}
}

// onBoth runs the program on both evaluators, by name.
func (p *program) onBoth(t *testing.T, visit func(t *testing.T, got ending)) {
	t.Helper()
	t.Run("eval", func(t *testing.T) { visit(t, p.onEval(t)) })
	t.Run("naive", func(t *testing.T) { visit(t, p.onNaive(t)) })
}

// encoded is a value as a result's JSON.
func encoded(t *testing.T, v value.Value) []byte {
	t.Helper()
	e, f := text.Encode(v, 1<<20, 1<<20)
	must.NoFault(t, f)
	return e.JSON
}

// datum is the value that JSON says as data.
func datum(t *testing.T, data string) value.Value {
	t.Helper()
	in, f := parse.Input([]byte(data), parse.Data)
	must.NoFault(t, f)
	v, _, f := naive.Run(naive.Config{Term: in.Term, Source: in.Source})
	must.NoFault(t, f)
	return v
}

// TestHiddenNames: no variable of a program can be called as those are that the
// compiler adds, not even where a host gives back a string that is none.
func TestHiddenNames(t *testing.T) {
	p := program{
		code: `{"app":[{"eval":{"to_code":{"record":{"op":"lam","param":{"a.b":1},"args":[{"to_data":{"quote":{"lam":"x","body":{"a.b":2}}}}]}}},0]}`,
		effect: func(i int, op string, arg value.Value) (value.Value, *fault.Fault) {
			return value.Str("\xff"), nil
		},
	}
	p.onBoth(t, func(t *testing.T, got ending) {
		if got.fault == nil || got.fault.Kind != fault.ParseError {
			t.Errorf("got %v", got)
		}
	})
}
