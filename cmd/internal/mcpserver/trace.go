package mcpserver

import (
	"context"
	"time"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/step"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// traced is how many evaluations of a run are logged at most: whoever reads a
// trace reads its beginning.
const traced = 100_000

// trace logs a job's evaluations, on the reference evaluator, before it is done
// for real. Where tracing is off it costs the test. Effects are denied: nothing
// was done yet that could be looked at.
func (s *Server) trace(j *job) {
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

// keepRound tells of a job of a replay what package step walks through. What answers it
// is the replay as it is now, anew each time.
func (s *Server) keepRound(j *job) {
	twin, tool := j.run.Twin(), j.tool
	*s.walked = append(*s.walked, step.Round{
		Program: j.program, Input: j.input, Budgets: j.budgets, Before: j.used,
		Begin: func() (core.Tools, func([]core.Request) []core.Answer) {
			again := twin.Twin()
			return again.Tools(tool), func(requests []core.Request) []core.Answer {
				return again.Answer(context.Background(), time.Time{}, requests)
			}
		},
	})
}

// endRound tells how it ended where the reference evaluator doesn't come to that by itself:
// where the world ended it, or the room that the machine takes.
func (s *Server) endRound(p *product) {
	if p.Fault == nil {
		return
	}
	switch p.Fault.Kind {
	case fault.Cancelled, fault.Timeout, fault.Overloaded, fault.OutOfMemory:
		last := &(*s.walked)[len(*s.walked)-1]
		last.Ended, last.Steps = p.Fault, p.Steps
	}
}
