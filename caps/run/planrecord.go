package run

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A Planned is what a journal tells of a plan.
type Planned struct {
	*Plan
	Section  int
	Approved bool // a person said yes to it
	Once     bool // and before it was refused or withdrawn, if it was
	Refused  bool
	By       string // who said so: terminal, elicitation, or server for one that is withdrawn
	Started  int    // how often it was begun to be done
	Owner    string // the server that began it last, as tasks name it
	Ended    bool

	starts []uint64 // the events of that
	begun  uint64   // the newest that didn't come too late
}

// State is waiting for a plan that a person has to approve yet, else ready.
func (p *Planned) State() string {
	if p.Confirm && !p.Approved {
		return "waiting"
	}
	return "ready"
}

// PlanStage is what an event about a plan says became of it; "" for any other event. yes and by are of an answer.
func PlanStage(k journal.Kind, yes bool, by string) string {
	switch {
	case k == journal.PlanMade:
		return "planned"
	case k == journal.PlanStarted:
		return "plan begun"
	case k != journal.PlanAnswered:
		return ""
	case yes:
		return "plan approved"
	case by == Withdrawn:
		return "plan withdrawn"
	}
	return "plan refused"
}

// PlanKind selects the events about plans.
const PlanKind journal.Kind = "plan"

// Withdrawn is who withdraws a plan that can't be done any more; see [AnswerPlan].
const Withdrawn = "server"

// runEvents is the events of a run of some kinds, in their order. A kind is read before those that tell that an event of it
// came too late, so that none is missed.
func runEvents(j journal.Journal, run string, kinds ...journal.Kind) (list []journal.Event, err error) {
	for _, k := range kinds {
		events, _, err := j.Read(journal.Query{Run: run, Kind: k})
		if err != nil {
			return nil, err
		}
		list = append(list, events...)
	}
	slices.SortFunc(list, func(a, b journal.Event) int { return cmp.Compare(a.Seq, b.Seq) })
	return list, nil
}

// FindPlan is the plan of a name; nil: there is none on record.
func FindPlan(j journal.Journal, id string) (*Planned, error) {
	f, err := followPlan(j, id)
	return f.found, err
}

// followPlan is FindPlan that can go on.
func followPlan(j journal.Journal, id string) (*planFollower, error) {
	f := &planFollower{j: j, id: id}
	name, ok := strings.CutPrefix(id, "p_")
	if !ok {
		return f, nil
	}
	id, _, _ = strings.Cut(name, ".")
	events, err := runEvents(j, id, journal.RunEnded, journal.TaskResumed, PlanKind)
	if err == nil {
		err = f.take(events)
	}
	if err != nil {
		f.found = nil
	}
	return f, err
}

// A planFollower reads of what became of a plan, event by event.
type planFollower struct {
	j  journal.Journal
	id string

	mu       sync.Mutex // guards what follows
	found    *Planned   // nil: it wasn't made yet
	sections int        // of its run
	owners   owners
	seen     uint64 // the newest event
}

// next takes in what came since, and gives the event that began it last and didn't come too late.
func (f *planFollower) next() (begun uint64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	events, _, err := f.j.Read(journal.Query{Run: f.found.Run, After: f.seen})
	if err == nil {
		err = f.take(events)
	}
	return f.found.begun, err
}

// take takes in events.
func (f *planFollower) take(events []journal.Event) error {
	for i := range events {
		e := &events[i]
		if e.Kind == journal.RunEnded || aboutRun(e.Kind) {
			late, err := f.owners.late(e)
			if err == nil && !late {
				err = f.event(e)
			}
			if err != nil {
				return err
			}
		}
		f.seen = e.Seq
	}
	if f.found != nil && f.sections > f.found.Section { // the run has gone on to another one
		f.found.Ended = true
	}
	return nil
}

func (f *planFollower) event(e *journal.Event) error {
	var data struct {
		Plan    string
		Content json.RawMessage
		Yes     bool
		Hash    journal.Hash
		By      string
		After   *int
		Owner   string
	}
	found := f.found
	switch e.Kind {
	case journal.PlanMade, journal.PlanAnswered, journal.PlanStarted:
		if err := json.Unmarshal(e.Data, &data); err != nil {
			return err
		}
		if e.Kind == journal.PlanMade && data.Plan == f.id && found != nil && (found.Started > 0 || found.Once) {
			return nil // a node made it anew that was silent meanwhile
		}
		if e.Kind == journal.PlanMade {
			f.sections++
		}
		if data.Plan != f.id {
			return nil
		}
	}
	switch e.Kind {
	case journal.PlanMade:
		texts := &Record{}
		texts.blobs, _ = f.j.(Blobs)
		text, err := texts.readText(data.Content)
		if err != nil {
			return err
		}
		f.found = &Planned{Plan: &Plan{}, Section: f.sections}
		return json.Unmarshal(text, f.found.Plan)
	case journal.PlanAnswered:
		if found != nil && (found.Started == 0 || data.By != Withdrawn) { // else it was begun while another compared it
			if !data.Yes { // for good
				found.Approved, found.Refused, found.By = false, true, data.By
			} else if !found.Refused && data.Hash == found.Hash { // else another was shown
				found.Approved, found.Once, found.By = true, true, data.By
			}
		}
	case journal.PlanStarted:
		if found != nil && !found.Refused { // else it was begun too late
			if data.After == nil || *data.After == found.Started { // else it came too late, and did nothing
				found.Owner, found.begun = data.Owner, e.Seq
			}
			found.Started++
			found.starts = append(found.starts, e.Seq)
		}
	case journal.RunEnded:
		if found != nil {
			found.Ended = true
		}
	}
	return nil
}

// StartedPlan is the plan of a run that was begun last; nil: none was.
func StartedPlan(j journal.Journal, id string) (*Planned, error) {
	events, _, err := j.Read(journal.Query{Run: id, Kind: journal.PlanStarted, Limit: 1, Last: true})
	if err != nil || len(events) == 0 {
		return nil, err
	}
	var data struct{ Plan string }
	if err := json.Unmarshal(events[0].Data, &data); err != nil {
		return nil, err
	}
	return FindPlan(j, data.Plan)
}

// plansMade calls fn with the plans made that a query selects, the newest first, until it reports true, or many in a row
// were made before a time: the journal's order counts, since clocks differ. What an older server recorded has the task, and
// whether it is to be confirmed, in its content only.
func plansMade(j journal.Journal, q journal.Query, since time.Time, fn func(e *journal.Event, plan, task string, confirm bool) (bool, error)) error {
	texts := &Record{}
	texts.blobs, _ = j.(Blobs)
	for q.Kind, q.Limit, q.Last = journal.PlanMade, 100, true; ; {
		events, more, err := j.Read(q)
		if err != nil {
			return err
		}
		for i := range slices.Backward(events) {
			var data struct {
				Plan, Task string
				Confirm    *bool
				Content    json.RawMessage
			}
			if err := json.Unmarshal(events[i].Data, &data); err != nil {
				return err
			}
			made := Plan{Task: data.Task}
			if data.Confirm != nil {
				made.Confirm = *data.Confirm
			} else if text, err := texts.readText(data.Content); err != nil {
				return err
			} else if err := json.Unmarshal(text, &made); err != nil {
				return err
			}
			if done, err := fn(&events[i], data.Plan, made.Task, made.Confirm); done || err != nil {
				return err
			}
		}
		if !more || !slices.ContainsFunc(events, func(e journal.Event) bool { return !e.Time.Before(since) }) {
			return nil
		}
		q.Before = events[0].Seq
	}
}

// maxPlansBefore is how many plans are looked at that were made before a task was created, and maxWaiting how many of the
// newest that a person has to approve, and how much the arguments of those have before the last.
const maxPlansBefore, maxWaiting, maxWaitingBytes = 1000, 1000, 32 << 20

// PlanOfTask is the newest plan that the call of a task was given, of a run of which something was begun where there is
// one: a server that was silent may have recorded another plan meanwhile. nil: there is none on record.
func PlanOfTask(j journal.Journal, task string) (found *Planned, err error) {
	created, _, err := j.Read(journal.Query{Run: task, Kind: journal.TaskCreated, Limit: 1})
	if err != nil || len(created) == 0 {
		return nil, err
	}
	before := 0
	find := func(e *journal.Event, plan, of string, _ bool) (bool, error) {
		if e.Seq < created[0].Seq {
			before++
		}
		if of != task {
			return before == maxPlansBefore, nil
		}
		p, err := FindPlan(j, plan)
		if err != nil || p == nil || p.By == Withdrawn {
			return false, err
		}
		begun := p.Started > 0 || p.Section > 1
		if found == nil || begun {
			found = p
		}
		return begun, nil
	}
	err = plansMade(j, journal.Query{After: created[0].Seq}, time.Time{}, find)
	if err == nil && found == nil { // the call was planned shortly before it became a task, by the same server
		err = plansMade(j, journal.Query{Before: created[0].Seq}, created[0].Time.Add(-time.Minute), find)
	}
	return found, err
}

// WaitingPlans is the plans on record that a person has to approve and didn't answer, the oldest first.
func WaitingPlans(j journal.Journal, now time.Time) (list []*Planned, err error) {
	since, looked, bytes := now.Add(-PlanLifetime), 0, 0
	err = plansMade(j, journal.Query{}, since, func(e *journal.Event, plan, _ string, confirm bool) (bool, error) {
		if !confirm || e.Time.Before(since) {
			return false, nil
		}
		looked++
		p, err := FindPlan(j, plan)
		if err == nil && p != nil && !p.Approved && !p.Refused && !p.Ended {
			list = append(list, p)
			for _, s := range p.Steps {
				bytes += len(s.Args)
			}
		}
		return looked == maxWaiting || bytes > maxWaitingBytes, err
	})
	slices.Reverse(list)
	return list, err
}

// AnswerPlan records what was said to a plan: by a person, or that it is withdrawn.
func AnswerPlan(j journal.Journal, p *Plan, yes bool, by string) error {
	data := journal.AppendString([]byte(`{"plan":`), p.ID)
	data = appendHash(append(data, `,"hash":`...), p.Hash)
	data = journal.AppendString(fmt.Appendf(data, `,"yes":%t,"by":`, yes), by)
	_, err := j.Append(journal.Written, journal.PlanAnswered, p.Run, "", append(data, '}'))
	return err
}

// Unsettled is the first effect of a run that was under way when its server ended, and that mustn't be
// repeated: a person has to say what became of it, by [Settle].
func (r *Record) Unsettled(p *caps.Policy) (n int, op string) {
	for _, d := range r.decisions {
		if d.denied != nil || d.done || d.op == "call" {
			continue
		}
		if m, o, ok := p.Kinds().Operation(d.op); ok {
			args, err := r.argsOf(d)
			if flags := m.FlagsOf(o, args); err == nil && (flags.ReadOnly || flags.Idempotent) {
				continue
			}
		}
		return d.n, d.op
	}
	return 0, ""
}

// argsOf is the arguments that a request was performed with; an error is that they can't be read.
func (r *Record) argsOf(d *decision) (*value.Record, error) {
	text, err := d.args.text, error(nil)
	if d.args.digest != nil {
		if text, err = r.blob(*d.args.digest); err != nil {
			return nil, err
		}
	}
	v, err := journal.ReadValue(text)
	args, _ := v.(*value.Record)
	return args, err
}

// Settle records what a person knows of an effect that was under way when its server ended. One that
// was done is answered by outcome_unknown, which says so; one that was not is made again. Only a plan waits for that.
func Settle(j journal.Journal, id string, n int, did bool) error {
	rec, err := ReadRecord(j, id)
	if err != nil {
		return err
	}
	if !rec.planned {
		return fmt.Errorf("the run %s does no plan, so nothing of it waits for an answer", id)
	}
	d := rec.byNumber[n]
	if d == nil || d.denied != nil || d.done || rec.End != nil {
		return fmt.Errorf("step %d of the run %s doesn't wait for an answer", n, id)
	}
	var data []byte
	if did {
		data = appendFault(fmt.Appendf(nil, `{"request":%d,"error":`, d.seq), fault.New(fault.OutcomeUnknown, d.op+" was done, as a person said, and what it answered is not known"))
	} else {
		data = fmt.Appendf(nil, `{"request":%d,"done":false`, d.seq)
	}
	_, err = j.Append(journal.Written, journal.EffectOutcome, id, d.branch, numbered(append(data, '}'), rec.resumed))
	return err
}
