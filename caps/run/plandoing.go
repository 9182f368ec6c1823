package run

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A doing is a plan that a run does.
type doing struct {
	plan    *Plan
	steps   map[int]int // by the number of the decision; from 1
	mu      sync.Mutex  // guards what follows
	answers map[int]value.Value
	begun   uint64 // the event that it was

	follower *planFollower
}

// errSection is that a run has come to the end of a plan that isn't complete.
var errSection = &fault.Fault{Kind: fault.Cancelled, Message: "the plan ends here", Hint: "Do the next plan."}

// ErrWithdrawn is the cause of a fault of [Run.Does] where the plan was withdrawn meanwhile.
var ErrWithdrawn = errors.New("the plan is withdrawn")

// Does has a run that goes on do a plan, and nothing else. started is how often the plan was begun before, as
// far as is known: where somebody else began it meanwhile it isn't done. by is the server, as tasks name it.
func (r *Run) Does(p *Plan, started int, by string) *fault.Fault {
	d := &doing{plan: p, steps: map[int]int{}, answers: map[int]value.Value{}}
	for i, s := range p.Steps {
		d.steps[s.N] = i + 1
	}
	r.doing = d
	if err := r.owned(); err != nil { // whoever has the task now may have made another plan
		r.Abandon()
		return &fault.Fault{Kind: fault.Conflict, Message: "the plan " + p.ID + " was not begun: " + err.Error(), Hint: "The journal shows what was done."}
	}
	data := journal.AppendString([]byte(`{"plan":`), p.ID)
	data = journal.AppendString(fmt.Appendf(data, `,"after":%d,"owner":`, started), by)
	if started > 0 {
		r.resumed = r.past.rec.resumed + 1
		data = fmt.Appendf(data, `,"resumed":%d`, r.resumed)
	}
	seq, err := r.b.journal.Append(journal.Written, journal.PlanStarted, r.id, "", append(data, '}'))
	var now *Planned
	if err == nil {
		if d.follower, err = followPlan(r.b.journal, p.ID); err == nil {
			now = d.follower.found
		}
	}
	switch {
	case err != nil || now == nil:
		r.Abandon()
		return &fault.Fault{Kind: fault.Overloaded, Message: "that the plan is done could not be recorded", Hint: "Tell the operator.", Cause: err}
	case now.Refused && now.By != Withdrawn && !slices.Contains(now.starts, seq): // meanwhile
		r.Abandon()
		return &fault.Fault{Kind: fault.Denied, Message: "the user said no to the plan " + p.ID, Hint: "Don't try again; ask the user what they want instead."}
	case now.Refused && !slices.Contains(now.starts, seq):
		r.Abandon()
		return &fault.Fault{Kind: fault.Conflict, Message: "the plan " + p.ID + " can't be done any more", Hint: `Plan it again: run with "tool", "input" and "plan":true.`, Cause: ErrWithdrawn}
	case now.Ended || slices.Index(now.starts, seq) != started:
		r.Abandon()
		return &fault.Fault{Kind: fault.Conflict, Message: "another call is doing the plan " + p.ID, Hint: "Wait for that call: a plan is done once."}
	}
	d.begun, now.Plan = seq, p
	if started == 0 {
		return nil
	}
	rec, err := ReadRecord(r.b.journal, r.id) // with what the one before recorded until now
	if err != nil {
		r.Abandon()
		return &fault.Fault{Kind: fault.Overloaded, Message: "what was done of the plan can't be read", Hint: "Tell the operator.", Cause: err}
	}
	r.follows(rec)
	return nil
}

// Section reports whether the run was stopped at the end of a plan that isn't complete.
func (r *Run) Section() bool { return r.doing != nil && r.halted.Load() == errSection }

// confirmed decides whether a request keeps to the plan, where there is one or has to be. f is why it
// isn't permitted anyway.
func (r *Run) confirmed(a *act, f *fault.Fault) *fault.Fault {
	d := r.doing
	if d == nil {
		if f == nil && r.planning != nil && !a.permit.Flags.ReadOnly { // it has just come to be permitted
			return &fault.Fault{Kind: fault.Denied, Message: a.request.Op + " wasn't permitted when it was planned", Hint: "Plan it again."}
		}
		if f == nil && r.b.confirms(a.permit) {
			return fault.New(fault.Denied, a.request.Op+" is performed only as part of a plan that the operator approved").
				Hinted(`Call run with "tool", "input" and "plan":true; the user sees the plan and approves it as a whole.`)
		}
		return nil
	}
	if r.halted.Load() != nil {
		return stop("the run ends")
	}
	i, ok := d.steps[a.n]
	last := 0
	if len(d.plan.Steps) > 0 {
		last = d.plan.Steps[len(d.plan.Steps)-1].N
	}
	switch {
	case !ok && a.n > last && !d.plan.Complete:
		r.halted.CompareAndSwap(nil, errSection) // and abandoned when what was planned of the round is done
		return stop("the plan ends here")
	case !ok:
		return r.deviate("asks for %s at %s, which isn't planned", a.request.Op, cmp.Or(string(a.request.At), "/"))
	}
	s := d.plan.Steps[i-1]
	if what := s.differs(a.request, d); what != "" {
		return r.deviate("step %d is another: %s", i, what)
	}
	switch {
	case f != nil && s.Capability != "":
		return r.deviate("step %d, %s, isn't permitted any more: %s", i, s.Op, f.Message)
	case f == nil && !s.Confirm && r.b.confirms(a.permit):
		return r.deviate("step %d, %s, needs an approval", i, s.Op)
	}
	return nil
}

// deviate ends a run that would do something else than was planned.
func (r *Run) deviate(format string, args ...any) *fault.Fault {
	f := fault.New(fault.Deviated, "the run would do something else than was planned, so it was stopped before that: "+fmt.Sprintf(format, args...)).
		Hinted(`Plan it again with "plan":true; the journal shows what was done.`)
	r.halted.CompareAndSwap(nil, f)
	return stop("it deviates from the plan")
}

// keep notes what a step answered.
func (d *doing) keep(a *act) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i, ok := d.steps[a.n]; ok && a.answer.Fault == nil {
		d.answers[i] = a.answer.Value
	}
}

// differs says in what a request isn't the step; "" if it is.
func (s *PlanStep) differs(q *core.Request, d *doing) string {
	switch {
	case s.Op != q.Op:
		return fmt.Sprintf("%s was planned, and it asks for %s", s.Op, q.Op)
	case s.In != q.In || s.Branch != q.Branch || s.At != string(q.At) || s.Where != q.Where:
		return s.Op + " was planned elsewhere in the program"
	case q.TooLarge():
		return "its argument is larger than was planned"
	}
	planned, err := journal.ReadValue(s.Args)
	if err != nil {
		return "the planned argument can't be read"
	}
	d.mu.Lock()
	merged, ok := d.fill(planned, q.Arg)
	d.mu.Unlock()
	want, errA := journal.AppendValue(nil, merged, mostRecorded(q))
	got, errB := journal.AppendValue(nil, q.Arg, mostRecorded(q))
	if !ok || errA != nil || errB != nil || string(want) != string(got) {
		return "the arguments of " + s.Op + " differ"
	}
	return ""
}

// fill puts into the holes of a planned value what stands there in the real one, which has to be
// what an earlier step answered; what is made of an answer is whatever the program makes of it.
func (d *doing) fill(planned, got value.Value) (value.Value, bool) {
	got = value.Force(got)
	switch p := value.Force(planned).(type) {
	case *value.Record:
		if len(p.Fields) == 1 && p.Fields[0].Key == holeKey {
			return got, d.fits(p.Fields[0].Value, got)
		}
		g, ok := got.(*value.Record)
		if !ok || len(g.Fields) != len(p.Fields) {
			return p, false
		}
		merged := &value.Record{Fields: slices.Clone(p.Fields)}
		for i := range merged.Fields {
			if merged.Fields[i].Value, ok = d.fill(p.Fields[i].Value, g.Fields[i].Value); !ok {
				return p, false
			}
		}
		return merged, true
	case *value.Pair:
		g, ok := got.(*value.Pair)
		if !ok {
			return p, false
		}
		first, a := d.fill(p.First, g.First)
		second, b := d.fill(p.Second, g.Second)
		return &value.Pair{First: first, Second: second}, a && b
	case *value.Cons:
		var merged []value.Value
		rest := got
		for here := value.Value(p); ; {
			x, more := here.(*value.Cons)
			y, same := rest.(*value.Cons)
			if !more || !same {
				return value.FromSlice(merged), more == same
			}
			item, ok := d.fill(x.Head, y.Head)
			if !ok {
				return p, false
			}
			merged = append(merged, item)
			here, rest = value.Force(x.Tail), value.Force(y.Tail)
		}
	default:
		return p, true
	}
}

// fits reports whether a value is what a hole stands for.
func (d *doing) fits(hole, got value.Value) bool {
	text, _ := value.Force(hole).(value.Str)
	var h PlanHole
	if json.Unmarshal([]byte(text), &h) != nil || len(h.Steps) == 0 {
		return false
	}
	if h.Made {
		return true
	}
	v, ok := d.answers[h.Steps[0]]
	for _, key := range h.Path {
		r, isRecord := value.Force(v).(*value.Record)
		i := -1
		if ok && isRecord {
			i = slices.IndexFunc(r.Fields, func(f value.Field) bool { return f.Key == key })
		}
		if i < 0 {
			return false
		}
		v = r.Fields[i].Value
	}
	if !ok {
		return false
	}
	want, errA := journal.AppendValue(nil, v, journal.MaxBlob)
	is, errB := journal.AppendValue(nil, got, journal.MaxBlob)
	return errA == nil && errB == nil && string(want) == string(is)
}
