package mcpserver

import (
	"fmt"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// equality decides as the language does: numbers by what they are worth, records
// by their fields, values of different types never.
var equality = func() *core.Program {
	p, err := core.Compile([]byte(`{"lam":"p","body":{"equal":[{"fst":{"var":"p"}},{"snd":{"var":"p"}}]}}`))
	if err != nil {
		panic(err)
	}
	return p
}()

// equalData reports whether two texts say the same data. The error is of a text
// that is no data, or of data too large to compare.
func equalData(a, b []byte) (bool, error) {
	pair := append(append(append(append([]byte(`{"pair":[`), a...), ','), b...), "]}"...)
	in, err := core.ParseInput(pair, core.InputData)
	if err != nil {
		return false, err
	}
	m := equality.Start(in, core.Budgets{}, nil)
	defer m.Release()
	if m.Run(0) != core.Done {
		return false, m.Fault()
	}
	return m.Value() == value.Bool(true), nil
}

var identity = func() *core.Program {
	p, err := core.Compile([]byte(`{"lam":"x","body":{"var":"x"}}`))
	if err != nil {
		panic(err)
	}
	return p
}()

// dataValue is what data says, as a value.
func dataValue(data []byte) (value.Value, *fault.Fault) {
	in, err := core.ParseInput(data, core.InputData)
	if err != nil {
		return nil, asFault(err)
	}
	m := identity.Start(in, core.Budgets{}, nil)
	defer m.Release()
	if m.Run(0) != core.Done {
		return nil, m.Fault()
	}
	return m.Value(), nil
}

// A trialView is the tools as a tool's code sees them in an example: itself as
// it is to be, those it is bound to, and the others as they are.
type trialView struct {
	trial *trial
	tool  *registry.Tool
}

var _ core.Tools = (*trialView)(nil)

func (v *trialView) find(name string, bound bool) (*registry.Tool, bool) {
	if name == v.trial.candidate.Name && v.tool == v.trial.candidate {
		return v.tool, true
	}
	if bound {
		if t := v.tool.Bound[name]; t != nil {
			return t, true
		}
	}
	return v.trial.sees.Get(name)
}

// Tool finds what code_of gives.
func (v *trialView) Tool(name string, literal bool) (core.Tool, bool) {
	t, ok := v.find(name, literal)
	if !ok || t.Unusable() != nil {
		return core.Tool{}, false
	}
	return t.Program().Tool(), true
}

// Callee decides a call as it is decided in a run.
func (v *trialView) Callee(name string, with [][]string, _ fault.Pointer) (core.Tool, *fault.Fault) {
	if f := v.trial.server.broker.Policy().PermitCall(v.tool.Held, name, v.tool.Name, with); f != nil {
		return core.Tool{}, f
	}
	t, ok := v.find(name, true)
	if !ok {
		return core.Tool{}, &fault.Fault{Kind: fault.NoTool, Message: fmt.Sprintf("there is no tool %q to call", name)}
	}
	if f := t.Unusable(); f != nil {
		return core.Tool{}, f
	}
	tool := t.Program().Tool()
	tool.Name, tool.Tools = t.Name, &trialView{v.trial, t}
	return tool, nil
}
