package mcpserver

import (
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// traced is how many evaluations of a run are logged at most: whoever reads a
// trace reads its beginning.
const traced = 100_000

// trace logs a job's evaluations, on the reference evaluator, before it is done
// for real. Where tracing is off it costs the test.
func (s *Server) trace(j *job) {
	if s.opts.Trace == nil {
		return
	}
	b := j.budgets
	b.Steps = min(b.Steps, traced)
	_, steps, f := j.program.Trace(j.input, b, j.tools, func(e core.TraceEvent) {
		s.opts.Trace.Debug("eval", "step", e.Step, "left", j.budgets.Steps-e.Step, "depth", e.Depth, "term", cut(text.Canonical(e.Term), 200))
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
