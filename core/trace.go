package core

import (
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/naive"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// A TraceEvent is one evaluation of a term: its place, its variables, what is
// left of the budget.
type TraceEvent = naive.Scene

// A TraceEnding is the end of an evaluation of a term and of those that go on with it.
type TraceEnding = naive.Ending

// Tracing is how [Program.TraceWith] looks at a run.
type Tracing struct {
	Tools Tools // may be nil
	// Visit is called before each evaluation of a term; false ends the trace.
	// nil: nothing is called.
	Visit func(TraceEvent) bool
	// Ended is told of the end of each evaluation; nil: nothing is called.
	Ended func(TraceEnding)
	// Asked is told of the steps used before each round of requests; nil: nothing is called.
	Asked func(steps uint64)
	// Answer answers a round of requests, in order, as [Machine.Resume] is
	// given them; nil: every effect is denied. Whoever traces a run that was
	// recorded answers from the record.
	Answer func([]Request) []Answer
}

// Trace runs p as Start and Run would, on the reference evaluator, which is
// slow, and calls visit before each evaluation of a term. Effects are denied.
// It returns the result as JSON, its first 256 KiB, with the steps used.
func (p *Program) Trace(in Input, b Budgets, tools Tools, visit func(TraceEvent)) (Encoded, uint64, *fault.Fault) {
	return p.TraceWith(in, b, Tracing{Tools: tools, Visit: func(e TraceEvent) bool {
		visit(e)
		return true
	}})
}

// TraceWith is [Program.Trace] with effects that are answered, and an end that
// the visitor may choose: the fault is of kind cancelled then.
func (p *Program) TraceWith(in Input, b Budgets, t Tracing) (Encoded, uint64, *fault.Fault) {
	e := b.orDefault()
	v, steps, f := naive.Run(naive.Config{
		Term: p.parsed.Term, Source: p.parsed.Source, Tool: p.tool, Input: in.in, More: in.more,
		Budgets: naive.Budgets{Steps: e.Steps, Memory: e.Memory, Depth: e.Depth},
		Tools:   t.Tools, Handler: t.Answer, Visit: t.Visit, Ended: t.Ended, Asked: t.Asked,
	})
	if f != nil {
		return Encoded{}, steps, f
	}
	enc, more, f := text.EncodeWithin(v, 256<<10, e.Memory, steps, e.Steps, nil)
	return enc, steps + more, f
}
