package naive

import (
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// analysis does a row that reasons about code, or goes through values: its steps are
// charged before anything else comes of it, and its memory is given back.
func (r *run) analysis(do func([]value.Value, *prim.Meter) (value.Value, *fault.Fault), args []value.Value, n *term.Prim, ctx *context) (value.Value, *fault.Fault) {
	before := r.allocated
	meter := &prim.Meter{
		Left: r.Budgets.Steps - r.steps, Memory: r.Budgets.Memory,
		Hold: func(bytes int64) *fault.Fault { return r.alloc(bytes, n, ctx) },
	}
	v, f := do(args, meter)
	r.allocated = before
	if f := r.charge(meter.Used(), n, ctx); f != nil {
		return nil, f
	}
	if f != nil {
		return nil, ctx.fail(n, f)
	}
	return v, nil
}
