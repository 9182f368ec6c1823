package run

import (
	"cmp"
	"context"
	"fmt"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// A run whose record ends before it does can go on in another process. It is computed anew
// from its beginning: what is on record is answered from there, and what comes after is
// decided, recorded and performed as ever. Steps, memory and limits count what was used
// before, since it is used again. An effect that was under way is repeated where that
// changes nothing; of any other nobody knows whether it was done, and the program is told so.
// Authority is as it is now: a run that did what it may not do any more ends.

// A past is what is on record of a run that goes on. A nil one is that of a run that begins.
type past struct {
	rec  *Record
	last int // the number of the last decision
}

// has reports whether a decision is on record, or one that came later.
func (p *past) has(n int) bool {
	if p != nil && p.rec.planned {
		return p.rec.byNumber[n] != nil
	}
	return p != nil && n <= p.last
}

// Resume is [Broker.Begin] for a run that is on record without an end. The tools are those
// that it saw, with the authority they have now. The error says why it can't go on.
func (b *Broker) Resume(tools *registry.Snapshot, s Start, rec *Record) (*Run, error) {
	t := s.Tool
	switch {
	case rec.End != nil:
		return nil, noRecord("the run has ended")
	case rec.recounted():
		return nil, noRecord("it began under version %d of what programs mean, and this program has version %d", rec.Semantics, core.Semantics)
	case (t == nil) != (rec.Tool == ""), t != nil && (t.Name != rec.Tool || t.Version != rec.Version || t.Hash != rec.Hash):
		return nil, noRecord("the call runs something else than was recorded")
	}
	r := &Run{b: b, id: rec.ID, tools: tools, ledger: caps.NewLedger(), task: s.Task, doer: s.Doer, doerResumed: s.DoerResumed, owner: s.Owner, resumed: cmp.Or(s.Resumed, rec.resumed)}
	r.follows(rec)
	r.lasts.Store(true)
	if r.beginFlow(&s); r.flows != nil {
		r.flows.under = r.under(rec.Under) | r.under(s.Under)
	}
	return r, nil
}

// Next is [Broker.Resume] for what follows the plan that the run did. Where another server began that again meanwhile, what
// this one records comes too late, though rec has the other's beginning.
func (r *Run) Next(tools *registry.Snapshot, s Start, rec *Record) (*Run, error) {
	next, err := r.b.Resume(tools, s, rec)
	if err == nil {
		next.resumed = r.resumed
	}
	return next, err
}

// Enters has the run know what came into the one that it follows, where it ends before it has replayed that.
func (r *Run) Enters(did *Run) {
	if r.flows != nil && did.flows != nil {
		r.flows.entered |= did.flows.entered
	}
}

// follows has the run go on from a record.
func (r *Run) follows(rec *Record) {
	r.past = &past{rec: rec}
	if n := len(rec.decisions); n > 0 {
		r.past.last = rec.decisions[n-1].n
	}
}

// Last has the run be one that goes on after the end of its server: each of its events from
// here on outlives the process. What it recorded before does so once something was written
// that outlives it.
func (r *Run) Last() { r.lasts.Store(true) }

// Abandon ends the run in this process alone: nothing more is performed or recorded, as if
// the process had ended, so that another can go on with it.
func (r *Run) Abandon() {
	if r.abandoned.Store(true); r.flows != nil {
		r.flows.kept.drop(errGaveWay)
	}
}

// Taken reports whether another server has taken over the task that it is, or is of.
func (r *Run) Taken() bool { return r.taken.Load() }

// Halted is why the run may not go on; nil: it may.
func (r *Run) Halted() *fault.Fault { return r.halted.Load() }

// stopped reports whether nothing may be begun any more: at the end of a section what was planned of the round is.
func (r *Run) stopped() bool { return r.halted.Load() != nil && !r.Section() }

// stage is how safe the run's events must be that no effect waits for.
func (r *Run) stage() journal.Stage {
	if r.lasts.Load() {
		return journal.Written
	}
	return journal.Noted
}

// halt has the run end. No program can catch what it gives.
func (r *Run) halt(kind fault.Kind, format string, args ...any) *fault.Fault {
	r.halted.CompareAndSwap(nil, &fault.Fault{Kind: kind, Message: "the run can't go on: " + fmt.Sprintf(format, args...), Hint: "Call the tool again, with regard to what was done: the journal shows it."})
	return stop("the run can't go on")
}

// recall answers a request from the record; again is set where it has to be decided again first.
func (a *act) recall() (again bool, f *fault.Fault) {
	r, d := a.run, a.run.past.rec.byNumber[a.n]
	if d == nil { // the journal didn't take it, so it wasn't done
		return false, unrecorded(a.request.Op)
	}
	if _, what := d.differs(a.request, true); what != "" {
		return false, r.halt(fault.Internal, "request %d differs from what was recorded (%s)", a.n, what)
	}
	if d.denied != nil {
		return false, d.denied
	}
	return true, nil
}

// goOn takes up what was permitted before: f is why it isn't any more.
func (a *act) goOn(ctx context.Context, f *fault.Fault) *fault.Fault {
	r, d := a.run, a.run.past.rec.byNumber[a.n]
	if f != nil {
		return r.halt(f.Kind, "what it did before isn't permitted any more: %s", f.Message)
	}
	if r.flows != nil && (a.permit.Rated() || d.limited) {
		r.flows.apast = true
	}
	a.limited.Store(d.limited)
	a.seq = d.seq
	once := !a.permit.Flags.ReadOnly && !a.permit.Flags.Idempotent
	if r.b.asker != nil && (d.done || once) {
		for _, message := range d.questions {
			if p, f := a.permitQuestion(message, true); f == nil {
				p.Settle(0)
			}
		}
	}
	if !d.done {
		if once {
			return a.interrupted()
		}
		if r.flows != nil && r.b.flow.Hash != r.past.rec.Flow { // other rules let it be made
			if _, f = r.flow(ctx, a); f != nil {
				a.settle(0)
				return r.halt(f.Kind, "what was under way isn't permitted any more: %s", f.Message)
			}
		}
		a.recorded = func() (uint64, error) { return d.seq, nil }
		return nil
	}
	given, text, err := r.past.rec.answerOf(d)
	if err != nil {
		a.settle(0)
		return r.halt(fault.Internal, "what request %d gave can't be read: %v", a.n, err)
	}
	size := int64(len(d.outcome.text))
	if d.outcome.digest != nil {
		size = d.outcome.digest.Bytes
	}
	a.settle(size)
	r.hold(ctx, size)
	a.given, a.text = &given, text
	return nil
}

// interrupted gives an effect that was under way when the server ended, and mustn't be
// repeated, the outcome that nobody knows it.
func (a *act) interrupted() *fault.Fault {
	r, op := a.run, a.request.Op
	a.settle(0)
	if err := a.arrived(); err != nil {
		return r.halt(fault.OutcomeUnknown, "%s was under way, and %v", op, err)
	}
	f := fault.New(fault.OutcomeUnknown, "the server ended while "+op+" was under way; nobody knows whether it was done").
		Hinted("Find out with an operation that only reads before doing it again.")
	data := r.b.appendFault(fmt.Appendf(nil, `{"request":%d,"error":`, a.seq), f)
	if _, err := r.b.journal.Append(journal.Written, journal.EffectOutcome, r.id, a.request.Branch, r.numbered(append(data, '}'))); err != nil {
		return r.halt(fault.EffectFailed, "that %s was under way could not be recorded", op)
	}
	r.unsure(op)
	return f
}

// calledBefore gives a call the decision of then; f is that of now.
func (r *Run) calledBefore(name string, f *fault.Fault) *fault.Fault {
	switch d := r.past.rec.byNumber[r.effects]; {
	case d != nil && d.op == "call" && d.callee == name:
		return d.denied
	case d != nil:
		return r.halt(fault.Internal, "it calls %s where something else was recorded", name)
	case f != nil:
		return r.halt(f.Kind, "it called what it may not call any more: %s", f.Message)
	}
	return nil
}
