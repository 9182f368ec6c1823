package core

import (
	"github.com/mcp-pif/mcp-pif/core/code"
	"github.com/mcp-pif/mcp-pif/core/eval"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// constantRun is the budget of [RunConstant].
var constantRun = eval.Budgets{Steps: 2_000, Memory: 256 << 10, Depth: 1_000}

// RunConstant evaluates a closed term that asks for nothing, and returns what it fails
// with; nil if it has a value, or comes to the end of a small budget. It is what
// check.Env has as Run.
func RunConstant(t term.Term) *fault.Fault {
	list := &term.List{Items: []term.Term{t}} // a function alone would be applied
	unit := code.Compile(list, code.Options{})
	if unit.Entangled {
		return nil
	}
	m := eval.Start(&eval.Program{Term: list, Unit: unit}, nil, constantRun, nil)
	defer m.Release()
	if m.Run(0) != eval.Failed || !m.Fault().Kind.Catchable() {
		return nil
	}
	return m.Fault()
}
