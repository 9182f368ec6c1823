package mcpserver

import (
	"context"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// traced is how many evaluations of a run are logged at most: whoever reads a
// trace reads its beginning.
const traced = 100_000

// trace logs a job's evaluations, on the reference evaluator, before it is done
// for real. Where tracing is off it costs the test. Effects are denied: nothing
// was done yet that could be looked at. A replay shows them; see [Watcher].
func (s *Server) trace(ctx context.Context, j *job) {
	if s.watcher != nil {
		s.look(ctx, j)
		return
	}
	if s.opts.Trace == nil {
		return
	}
	b := j.budgets
	b.Steps = min(b.Steps, traced)
	_, steps, f := j.program.Trace(j.input, b, j.run.Twin().Tools(j.tool), func(e core.TraceEvent) {
		s.opts.Trace.Debug("eval", "step", e.Step, "left", j.budgets.Steps-e.Step, "depth", e.Depth, "term", beginningOf(e.Term))
	})
	switch {
	case f != nil && b.Steps < j.budgets.Steps && steps >= b.Steps:
		s.opts.Trace.Debug("trace ends here, the run goes on", "steps", steps)
	case f != nil:
		s.opts.Trace.Debug("failed", "steps", steps, "fault", f.Error())
	default:
		s.opts.Trace.Debug("done", "steps", steps)
	}
}

// maxTracedTerm is how much of a term a trace shows, in bytes.
const maxTracedTerm = 200

// beginningOf writes the first of a term, and no more of it than is shown.
func beginningOf(t term.Term) string {
	w := text.NewWriter(maxTracedTerm, maxTracedTerm)
	w.Canonical(t)
	return string(w.Bytes())
}

// A Watcher looks at a replay, evaluation by evaluation.
type Watcher interface {
	// Eval is told before each evaluation; before is the steps of the rounds
	// before. false ends the trace, not the replay.
	Eval(before uint64, e core.TraceEvent) bool
	// Effect is told of each request, with what the record has for it.
	Effect(q *core.Request, a *core.Answer)
	// Done is told of the end of each round.
	Done(steps uint64, result core.Encoded, f *fault.Fault)
}

// look shows a job of a replay to the watcher, before it is done.
func (s *Server) look(ctx context.Context, j *job) {
	twin := j.run.Twin()
	left := true
	result, steps, f := j.program.TraceWith(j.input, j.budgets, core.Tracing{
		Tools: twin.Tools(j.tool),
		Visit: func(e core.TraceEvent) bool {
			left = left && ctx.Err() == nil && s.watcher.Eval(j.used, e)
			return left
		},
		Answer: func(requests []core.Request) []core.Answer {
			answers := twin.Answer(ctx, j.until, requests)
			for i := range requests {
				s.watcher.Effect(&requests[i], &answers[i])
			}
			return answers
		},
	})
	if left {
		s.watcher.Done(j.used+steps, result, f)
	}
}
