package core

import (
	"context"

	"github.com/mcp-pif/mcp-pif/core/flow"
	"github.com/mcp-pif/mcp-pif/core/naive"
)

// Follow runs p on an input as Start and Run would, with labels; see package flow. It
// fills in what c says of the program, its inputs and its budgets. shadows are where the
// inputs come from, the first one's and so on; those that are missing have no labels.
func (p *Program) Follow(ctx context.Context, in Input, b Budgets, c flow.Config, shadows ...*flow.Shadow) (flow.Result, error) {
	c.Term, c.Source, c.Tool = p.parsed.Term, p.parsed.Source, p.tool
	e := b.orDefault()
	c.Budgets = naive.Budgets{Steps: e.Steps, Memory: e.Memory, Depth: e.Depth}
	c.Inputs = []flow.Input{{Parsed: in.in}}
	for _, more := range in.more {
		c.Inputs = append(c.Inputs, flow.Input{Parsed: more})
	}
	for i := range c.Inputs {
		if i < len(shadows) {
			c.Inputs[i].Shadow = shadows[i]
		}
	}
	return flow.Run(ctx, c)
}
