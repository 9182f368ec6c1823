package core

import (
	"context"
	"fmt"

	"github.com/mcp-pif/mcp-pif/core/fault"
)

// runSlice is how many steps [Run] takes before it looks at its context.
const runSlice = 100_000

// A Result is what a run gave.
type Result struct {
	// Value is the result as Go data, and JSON the same as JSON, exact.
	Value Value
	JSON  []byte
	// Steps is how many were used.
	Steps uint64
	// Notes tell what was ignored in the code, and how the input was read.
	Notes []string
}

// Run evaluates a program on an input: JSON that is read by the types of the program's
// parameters, as [Program.ReadInput] does; empty: null. Zero budgets are the defaults. The
// run ends with the context, whose error is the cause of the fault.
//
// It performs nothing. A program that asks for an effect fails with denied: [Program.Start]
// is for hosts that answer one, and for calls in a hot loop. Errors are of type
// [*fault.Fault].
func Run(ctx context.Context, p *Program, input []byte, b Budgets) (Result, error) {
	in, err := p.ReadInput(input)
	if err != nil {
		return Result{}, err
	}
	m := p.Start(in, b, nil)
	defer m.Release()
	for {
		if err := ctx.Err(); err != nil {
			return Result{}, &fault.Fault{Kind: fault.Cancelled, Message: fmt.Sprintf("the run was ended after %d steps: %v", m.Steps(), err), Cause: err}
		}
		switch m.Run(runSlice) {
		case Failed:
			return Result{}, m.Fault()
		case Suspended:
			q := m.Requests()[0]
			return Result{}, &fault.Fault{
				Kind: fault.Denied, At: q.At, In: q.Where, Message: q.Op + ": nothing performs effects here",
				Hint: "Start a machine, and answer its requests.",
			}
		case Done:
			enc, f := m.Encode(int(b.orDefault().Memory))
			if f != nil {
				return Result{}, f
			}
			if int64(len(enc.JSON)) < enc.Total {
				return Result{}, &fault.Fault{Kind: fault.ResultTooLarge, Message: fmt.Sprintf("the result has %d bytes as JSON, more than the budget of memory", enc.Total)}
			}
			return Result{m.Value(), enc.JSON, m.Steps(), append(p.Notes(), in.Notes...)}, nil
		}
	}
}
