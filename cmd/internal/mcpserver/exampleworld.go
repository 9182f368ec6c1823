package mcpserver

import (
	"fmt"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// equality decides as the language does: numbers by what they are worth, records
// by their fields, values of different types never.
var equality = func() *core.Program {
	p, err := core.Compile([]byte(`{"lam":["a","b"],"body":{"equal":[{"var":"a"},{"var":"b"}]}}`))
	if err != nil {
		panic(err)
	}
	return p
}()

// equalData reports whether a result is the data that is expected, which rounded
// says was read with its numbers rounded. The error is of a text that is no data, or
// of data too large to compare.
func equalData(got, want []byte, rounded bool) (bool, error) {
	a, err := core.ParseInput(got, core.InputData)
	if err != nil {
		return false, err
	}
	b, err := core.ParseInput(want, dataMode(rounded))
	if err != nil {
		return false, err
	}
	m := equality.Start(core.Inputs(a, b), core.Budgets{}, nil)
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

// dataMode is how data is read that may be of an older store.
func dataMode(rounded bool) core.InputAs {
	if rounded {
		return core.InputRounded
	}
	return core.InputData
}

// dataValue is what data says, as a value.
func dataValue(data []byte, rounded bool) (value.Value, *fault.Fault) {
	in, err := core.ParseInput(data, dataMode(rounded))
	if err != nil {
		return nil, wire.AsFault(err)
	}
	m := identity.Start(in, core.Budgets{}, nil)
	defer m.Release()
	if m.Run(0) != core.Done {
		return nil, m.Fault()
	}
	return m.Value(), nil
}

// unwritten is the fault of an effect for which the example has no outcome.
func unwritten(q *core.Request, args []byte) *fault.Fault {
	shown := wire.Excerpt(args, 200)
	sample := args
	if len(sample) > 200 {
		sample = nil
	}
	o := wire.Begin().Text("op", q.Op)
	if sample != nil {
		o = o.Raw("args", sample)
	}
	return &fault.Fault{
		Kind: fault.Refused, At: q.At, In: q.Where,
		Message: fmt.Sprintf("it asks for %s with %s, and the example has no outcome for that", q.Op, shown),
		Hint: fmt.Sprintf(`Effects of an example aren't carried out. Write what this one gives into the example: "effects":[%s], with "value":V, or with "error":"effect_failed" where it fails; "args" may be left out.`,
			o.Raw("value", []byte(`"…"`)).End()),
	}
}

// impossible is the fault of an outcome that the operation never gives, by the type
// that its plugin is held to: what an example shows has to be what a run can see.
func (t *trial) impossible(q *core.Request, v value.Value) *fault.Fault {
	_, o, ok := t.server.broker.Policy().Kinds().Operation(q.Op)
	if !ok || o.Type == nil {
		return nil
	}
	why := o.Type.Misfit(v)
	if why == "" {
		return nil
	}
	return &fault.Fault{
		Kind: fault.Refused, At: q.At, In: q.Where,
		Message: fmt.Sprintf("it asks for %s, and the outcome in the example is none that this gives: %s", q.Op, why),
		Hint:    fmt.Sprintf(`%s gives %s: write such a "value" into the example, all of it.`, q.Op, o.Type),
	}
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
	if f := v.trial.server.broker.Policy().PermitCall(v.trial.held(v.tool), name, v.tool.Name, with); f != nil {
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
