package engine

import (
	"context"
	"time"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/step"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// trace logs a job's evaluations, on the reference evaluator, before it is done
// for real: each with the names of the variables in scope, the functions that are made
// and applied, the code that is looked up, and the values. Where tracing is off it costs
// the test. Effects are denied: nothing was done yet that could be looked at.
func (s *Engine) trace(j *job) {
	if s.opts.Trace == nil {
		return
	}
	log := s.opts.Trace
	if j.run != nil {
		log = log.With("run", j.run.ID())
	}
	b := j.budgets
	b.Steps = min(b.Steps, traced)
	type level struct{ branch, level int }
	under := map[level]term.Term{} // what is evaluated at each level
	shown := map[term.Term]string{}
	enters := false // the next evaluation is of the body of a tool's function
	_, steps, f := j.program.TraceWith(j.input, b, core.Tracing{
		Tools: j.run.Twin().Tools(j.tool),
		Visit: func(e core.TraceEvent) bool {
			at := level{e.Branch(), e.Level}
			var env []string
			var argument value.Value
			e.Vars(func(name string, v value.Value) bool {
				if env = append(env, name); argument == nil {
					argument = v
				}
				return len(env) < 20
			})
			if _, applies := under[at].(*term.App); (applies || enters) && len(env) > 0 {
				log.Debug("closure applied", "step", e.Step, "param", env[0], "argument", step.Show(argument, maxTracedTerm))
			}
			text, ok := shown[e.Term]
			if !ok {
				text = beginningOf(e.Term)
				shown[e.Term] = text
			}
			isProgram := e.Term == e.Root()
			if isProgram && isCall(under[level{at.branch, at.level - 1}]) {
				log.Debug("code looked up", "step", e.Step, "tool", e.Tool(), "code", text)
			}
			// A tool's function is applied at the level of the call, the program at level 0.
			if enters = isProgram && (e.Level == 0 || isCall(under[at])); !enters {
				under[at] = e.Term
			}
			log.Debug("eval", "step", e.Step, "left", j.budgets.Steps-e.Step, "depth", e.Depth, "term", text, "env", env)
			return true
		},
		Ended: func(e core.TraceEnding) {
			at := level{e.Branch, e.Level}
			t := under[at]
			delete(under, at)
			if e.Fault != nil || t == nil {
				return
			}
			shown := step.Show(e.Value, maxTracedTerm)
			switch t := t.(type) {
			case *term.Lam:
				log.Debug("closure made", "steps", e.Steps, "param", t.Param)
			case *term.CodeOf:
				log.Debug("code looked up", "steps", e.Steps, "tool", t.Name, "code", shown)
			default:
				log.Debug("value", "steps", e.Steps, "level", e.Level, "value", shown)
			}
		},
	})
	switch {
	case f != nil && (f.Kind == fault.OutOfMemory || b.Steps < j.budgets.Steps && steps >= b.Steps):
		log.Debug("trace ends here, the run may go on", "steps", steps)
	case f != nil:
		log.Debug("failed", "steps", steps, "fault", f.Error())
	default:
		log.Debug("done", "steps", steps)
	}
}

// traced is how many evaluations of a run are logged at most: whoever reads a
// trace reads its beginning.
const traced = 100_000

// maxTracedTerm is how much of a term a trace shows, in bytes.
const maxTracedTerm = 200

// maxPrintedTerm is how long the canonical form of a term may be that is written in the text form.
const maxPrintedTerm = 8 << 10

// beginningOf writes the first of a term: of a large one in the canonical form, of which no
// more is written than is shown.
func beginningOf(t term.Term) string {
	w := text.NewWriter(maxPrintedTerm, maxPrintedTerm)
	if w.Canonical(t); w.Full() {
		return display.Truncate(string(w.Bytes()), maxTracedTerm)
	}
	return step.Term(t)
}

func isCall(t term.Term) bool {
	p, ok := t.(*term.Prim)
	return ok && p.ID == prim.Call
}

// keepRound tells of a job of a replay what package step walks through. What answers it
// is the replay as it is now, anew each time.
func (s *Engine) keepRound(j *job) {
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
func (s *Engine) endRound(p *product) {
	if p.Fault == nil {
		return
	}
	switch p.Fault.Kind {
	case fault.Cancelled, fault.Timeout, fault.Overloaded, fault.OutOfMemory:
		last := &(*s.walked)[len(*s.walked)-1]
		last.Ended, last.Steps = p.Fault, p.Steps
	}
}
