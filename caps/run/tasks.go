package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/lease"
	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// A task is a run that outlives the call that asked for it, and its server. The journal has,
// under the run's name, that it was created, by which server, each time that another server
// went on with it, and that it was cancelled. The end is the run's.

// TaskKind selects the events about tasks.
const TaskKind journal.Kind = "task"

// aboutRun reports whether a kind tells of a run what no replay depends on.
func aboutRun(k journal.Kind) bool {
	switch k {
	case journal.RunLost, journal.TaskCreated, journal.TaskResumed, journal.TaskCancelled, journal.PlanMade, journal.PlanAnswered, journal.PlanStarted:
		return true
	}
	return false
}

// A Task is what a journal tells of one.
type Task struct {
	ID       string // the run's
	Created  time.Time
	Call     Call   // of one on record without the arguments; see [Task.Arguments]
	AsOf     uint64 // of the tools that the call saw
	Schedule string // by which it was started; "": by a client
	Owner    string // the server that goes on with it, as it calls itself
	// Under is the sources that the model had been shown when it asked for it.
	Under   []string
	Begun   bool // whether its run had begun when it became one
	Resumed int  // times
	Crashed int  // how many of those since the server before ended without leaving its tasks
	// Cancelled is when that was asked for, and Ended when the run ended; zero: not yet.
	Cancelled, Ended time.Time
	// Fault is the kind and the beginning of what it failed of, see [ReadEnd]; nil: it has a result, or no end.
	Fault *fault.Fault
	// By is the run of a plan that gave the answer; "": the task's own.
	By string
	// Answered is set where a replay gives the whole answer, which is longer than the fault.
	Answered bool
	// Sealed is set where the model was given a name for what it gave.
	Sealed bool

	created uint64 // the event
}

// Over reports whether nothing more is to be done.
func (t *Task) Over() bool { return !t.Ended.IsZero() || !t.Cancelled.IsZero() }

// CreateTask records that a run is a task. From its return on the task, and what was recorded
// of the run, outlives the process.
func (b *Broker) CreateTask(t *Task) error {
	data := journal.AppendString([]byte(`{"call":{"tool":`), t.Call.Tool)
	data, err := b.appendKept(append(data, `,"arguments":`...), t.Call.Arguments)
	if err != nil {
		return err
	}
	data = strconv.AppendUint(append(data, `},"as_of":`...), t.AsOf, 10)
	if t.Schedule != "" {
		data = journal.AppendString(append(data, `,"schedule":`...), t.Schedule)
	}
	if len(t.Under) > 0 {
		data = appendTexts(append(data, `,"under":`...), t.Under)
	}
	if t.Begun {
		data = append(data, `,"begun":true`...)
	}
	data = journal.AppendString(append(data, `,"owner":`...), t.Owner)
	_, err = b.journal.Append(journal.Written, journal.TaskCreated, t.ID, "", append(data, '}'))
	if errors.Is(err, journal.ErrUnknown) { // who asked for it isn't told that it is one
		_, undone := b.journal.Append(journal.Noted, journal.TaskCancelled, t.ID, "", []byte(`{"by":"its server, which didn't know that it was recorded"}`))
		err = errors.Join(err, undone)
	}
	return err
}

// ResumeTask records that a server goes on with a task that was resumed so many times before, and with left that the one
// before left it in order. mine is not set where another did so first.
func (b *Broker) ResumeTask(id, owner string, resumed int, left bool) (mine bool, err error) {
	data := fmt.Appendf(nil, `{"after":%d,"resumed":%d`, resumed, resumed+1)
	if left {
		data = append(data, `,"left":true`...)
	}
	data = append(journal.AppendString(append(data, `,"owner":`...), owner), '}')
	if _, err := b.journal.Append(journal.Written, journal.TaskResumed, id, "", data); err != nil {
		return false, err
	}
	t, err := FindTask(b.journal, id)
	return err == nil && t != nil && t.Owner == owner && t.Resumed == resumed+1, err
}

// errTaken is what a program is told that another server goes on with.
var errTaken = errors.New("another server has taken over this task")

// lease waits until the run may begin an effect, and gives until when. A task may have gone
// on at another node of the cluster while this one was silent: then it is abandoned here.
func (r *Run) lease(ctx context.Context) (until lease.Time, err error) {
	if until, err = r.b.act(ctx); err != nil || r.owner == "" || !r.lasts.Load() {
		return until, err
	}
	at, err := r.own(ctx)
	if at != 0 {
		until = min(until, at.Add(lease.Length))
	}
	return until, err
}

// ownWait is how long it is waited for word whose a run is that was told to end, too.
const ownWait = 15 * time.Second

// owned is why nothing of the run may be recorded: another server has taken it over, and it is
// abandoned, or that isn't known.
func (r *Run) owned() error {
	switch {
	case r.abandoned.Load():
		return errTaken
	case r.b.act == nil || r.owner == "" || !r.lasts.Load():
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), ownWait)
	defer cancel()
	_, err := r.own(ctx)
	return err
}

// mine reports whether the run isn't another server's, as far as is known.
func (r *Run) mine() bool {
	_ = r.owned() // what another took over meanwhile is left out of the record
	return !r.abandoned.Load()
}

// numbered is the data of an event of the run, with the number of its server among those that went on with it.
func (r *Run) numbered(data []byte) []byte { return numbered(data, r.resumed) }

func numbered(data []byte, resumed int) []byte {
	if resumed == 0 {
		return data
	}
	return fmt.Appendf(data[:len(data)-1], `,"resumed":%d}`, resumed)
}

// owners follows which server goes on with a run, from its first event on that wasn't dropped.
type owners struct {
	newest     int            // its number; see [Run.resumed]
	before     map[string]int // how often the task "", or a plan, was begun before
	task, plan string         // who took over the task, and who began a plan last; "": nobody
}

// late takes in the next event, and reports whether it is of a server that another had taken the run over from.
func (o *owners) late(e *journal.Event) (bool, error) {
	takes := takesOver(e.Kind)
	if !takes && (o.newest == 0 || aboutRun(e.Kind)) {
		return false, nil
	}
	var data struct {
		Resumed     int
		After       *int
		Plan, Owner string
	}
	if err := json.Unmarshal(e.Data, &data); err != nil || !takes {
		return data.Resumed < o.newest, err
	}
	if o.before == nil {
		o.before = map[string]int{}
	}
	n, seen := o.before[data.Plan]
	if !seen && data.After != nil { // those before were dropped
		n = *data.After
	}
	first := data.After == nil || *data.After == n
	if first || e.Kind == journal.PlanStarted {
		o.before[data.Plan] = n + 1
	}
	if first {
		o.newest = max(o.newest, data.Resumed)
		if data.Plan == "" {
			o.task = data.Owner
		} else {
			o.plan = data.Owner
		}
	}
	return false, nil
}

// takesOver reports whether events of a kind say which server goes on with a run.
func takesOver(k journal.Kind) bool { return k == journal.TaskResumed || k == journal.PlanStarted }

// An ownerFollower reads whose a run is, event by event.
type ownerFollower struct {
	owners
	seen uint64 // the newest event
}

// followOwner gives whose a run is, with what came since it was asked last. The caller holds the lock.
func (r *Run) followOwner(id string) (*ownerFollower, error) {
	f := r.followed[id]
	if f == nil {
		if f = new(ownerFollower); r.followed == nil {
			r.followed = map[string]*ownerFollower{}
		}
		r.followed[id] = f
	}
	for more := true; more; {
		var events []journal.Event
		var err error
		if events, more, err = r.b.journal.Read(journal.Query{Run: id, After: f.seen, Limit: 100}); err != nil {
			return nil, err
		}
		for i := range events {
			if takesOver(events[i].Kind) {
				if _, err := f.late(&events[i]); err != nil {
					return nil, err
				}
			}
			f.seen = events[i].Seq
		}
	}
	return f, nil
}

// overtaken reports whether another server has taken over the run's task, and whether one has begun again the plan that
// the run does or follows.
func (r *Run) overtaken() (task, plan bool, err error) {
	r.following.Lock()
	defer r.following.Unlock()
	does := r.doing != nil && r.doing.begun > 0
	if does {
		begun, err := r.doing.follower.next()
		if plan = begun != r.doing.begun; err != nil || r.doer == "" {
			return false, plan, err
		}
	}
	id, resumed := r.id, r.resumed
	if r.doer != "" {
		id, resumed = r.doer, r.doerResumed
	}
	f, err := r.followOwner(id)
	if err == nil && f.task != "" {
		task = f.task != r.owner || f.before[""] != resumed
	}
	if err == nil && r.planning != nil && !does { // what follows a plan
		if f, err = r.followOwner(r.id); err == nil {
			plan = f.plan != "" && f.plan != r.owner
		}
	}
	return task, plan, err
}

// own abandons a task that another server has taken up, and else gives when it wasn't.
func (r *Run) own(ctx context.Context) (at lease.Time, err error) {
	if s, ok := r.b.journal.(interface {
		Fresh(context.Context) (lease.Time, error)
	}); ok {
		at, err = s.Fresh(ctx)
	}
	var task, plan bool
	if err == nil {
		task, plan, err = r.overtaken()
	}
	switch {
	case err != nil:
		r.b.log.Error("can't read which server owns the task", "run", r.id, "error", err)
		return 0, errors.New("it isn't known whether another server has taken over this task")
	case task || plan:
		if task {
			r.taken.Store(true)
		}
		r.b.log.Warn(errTaken.Error(), "run", r.id)
		r.halted.CompareAndSwap(nil, fault.New(fault.Conflict, "the run ended here: "+errTaken.Error()).
			Hinted("The other server does the rest; the journal shows what was done."))
		r.Abandon()
		return 0, errTaken
	}
	return at, nil
}

// newest gives the events of a kind, the newest first, back to those of a time; of the older ones, and beyond so many events,
// what comes in the same page.
func newest(j journal.Journal, kind journal.Kind, since time.Time, maxEvents int) iter.Seq2[*journal.Event, error] {
	return func(yield func(*journal.Event, error) bool) {
		q := journal.Query{Kind: kind, Limit: 100, Last: true} // each may have arguments
		for n := 0; n < maxEvents; {
			events, more, err := j.Read(q)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range slices.Backward(events) {
				if !yield(&events[i], nil) {
					return
				}
			}
			if !more || len(events) == 0 || events[0].Time.Before(since) {
				return
			}
			n += len(events)
			q.Before = events[0].Seq
		}
	}
}

// maxLost is how many of the newest runs are looked at for those that are lost.
const maxLost = 100_000

// LoseRuns records of the runs since a time without an end whose server is gone that nobody knows what came of them. A server
// that was only silent records the end all the same, which counts. Plans go on elsewhere, and tasks that are not cancelled.
// known is the runs that an earlier call found over, which aren't read again; those that it knows now are returned.
func (b *Broker) LoseRuns(ctx context.Context, known map[string]bool, since time.Time, gone func(server string) bool) (over map[string]bool, err error) {
	type lostRun struct{ id, owner string }
	var lost []lostRun
	over, resumed := map[string]bool{}, map[string]bool{}
	for e, failed := range newest(b.journal, journal.TaskResumed, since, maxLost) {
		if failed != nil {
			return known, failed
		}
		resumed[e.Run] = true
	}
	for e, failed := range newest(b.journal, journal.RunStarted, since, maxLost) {
		if failed != nil {
			return known, errors.Join(err, failed)
		}
		var data struct{ Owner string }
		if json.Unmarshal(e.Data, &data) != nil || data.Owner == "" || !resumed[e.Run] && !gone(data.Owner) {
			continue
		}
		if known[e.Run] {
			over[e.Run] = true
			continue
		}
		done, failed := b.overOrElsewhere(e.Run)
		var t *Task
		if failed == nil && !done {
			t, failed = FindTask(b.journal, e.Run)
		}
		if t != nil {
			data.Owner = t.Owner
		}
		switch {
		case done:
			over[e.Run] = true
		case failed == nil && gone(data.Owner) && (t == nil || !t.Cancelled.IsZero()):
			lost = append(lost, lostRun{e.Run, data.Owner})
		}
		err = errors.Join(err, failed)
	}
	if s, ok := b.journal.(interface{ Barrier(context.Context) error }); ok && len(lost) > 0 { // another node may have
		ctx, cancel := context.WithTimeout(ctx, ownWait)
		defer cancel()
		if failed := s.Barrier(ctx); failed != nil {
			return over, errors.Join(err, failed)
		}
	}
	for _, r := range lost {
		done, failed := b.overOrElsewhere(r.id)
		if failed == nil && !done {
			_, node, _ := strings.Cut(r.owner, "@")
			f := fault.New(fault.OutcomeUnknown, "the node "+node+" ended while it did this: whether what it had begun was done is not known")
			_, failed = b.journal.Append(journal.Written, journal.RunLost, r.id, "", append(b.appendFault([]byte(`{"error":`), f), '}'))
		}
		if failed = cmp.Or(failed, ctx.Err()); failed != nil {
			return over, errors.Join(err, failed)
		}
		over[r.id] = true
	}
	return over, err
}

// overOrElsewhere reports whether a run has an end on record, or is a plan, which goes on elsewhere.
func (b *Broker) overOrElsewhere(id string) (bool, error) {
	events, err := runEvents(b.journal, id, journal.RunEnded, journal.RunLost, journal.TaskResumed, PlanKind)
	return endOf(events) != nil || slices.ContainsFunc(events, func(e journal.Event) bool {
		return e.Kind != journal.RunEnded && e.Kind != journal.TaskResumed
	}), err
}

// CancelTask records that a task is to end.
func CancelTask(j journal.Journal, id, by string) error {
	_, err := j.Append(journal.Written, journal.TaskCancelled, id, "", append(journal.AppendString([]byte(`{"by":`), by), '}'))
	return err
}

// EndTask records the end of a task that can't go on, or has no run of its own: by is that of the plan that it
// did; "": none. resumed is how often servers went on with it, this one included: the end is none where another did since.
func (b *Broker) EndTask(id, by string, resumed int, f *fault.Fault) error {
	if f == nil && by == "" { // its answer is a plan, which [PlanOfTask] finds
		f = fault.New(fault.Cancelled, "what the task gave, a plan, ended with its server").
			Hinted("The user sees the plans that wait with `mcp-pif approve --list`; or plan it again.")
	}
	data := []byte(`{"steps":0,`)
	if by != "" {
		data = append(journal.AppendString(append(data, `"by":`...), by), ',')
	}
	if f != nil {
		data = append(b.appendFault(append(data, `"error":`...), f), ',')
	}
	return b.recordEnd(journal.Written, id, numbered(append(data, `"stopped":"running"}`...), resumed))
}

// recordEnd records an end; where the journal can't now, it does so when it can again.
func (b *Broker) recordEnd(s journal.Stage, id string, data []byte) error {
	_, err := b.journal.Append(s, journal.RunEnded, id, "", data)
	if err != nil && s != journal.Noted && !errors.Is(err, journal.ErrUnknown) {
		_, err = b.journal.Append(journal.Noted, journal.RunEnded, id, "", data)
	}
	return err
}

// maxTaskEvents is how many of the newest events about tasks are looked at.
const maxTaskEvents = 200_000

// Tasks is the tasks on record that were created after a time, the oldest first.
func Tasks(j journal.Journal, after time.Time) ([]*Task, error) {
	var events []*taskEvent
	for e, err := range newest(j, TaskKind, after, maxTaskEvents) {
		if err != nil {
			return nil, err
		}
		x, err := readTaskEvent(e)
		if err != nil {
			return nil, err
		}
		events = append(events, x)
	}
	slices.Reverse(events)
	all, err := readTasks(j, events)
	return slices.DeleteFunc(all, func(t *Task) bool { return !t.Created.After(after) }), err
}

// TasksOf is the tasks of a schedule that were created after a time, the newest first.
func TasksOf(j journal.Journal, schedule string, after time.Time) iter.Seq2[*Task, error] {
	return func(yield func(*Task, error) bool) {
		for e, err := range newest(j, journal.TaskCreated, after, maxTaskEvents) {
			var t *Task
			if err == nil {
				var x *taskEvent
				if x, err = readTaskEvent(e); err == nil && (x.Schedule != schedule || !x.time.After(after)) {
					continue
				}
			}
			if err == nil {
				t, err = FindTask(j, e.Run)
			}
			if (t != nil || err != nil) && (!yield(t, err) || err != nil) {
				return
			}
		}
	}
}

// FindTask is the task of a name; nil: there is none on record.
func FindTask(j journal.Journal, id string) (*Task, error) {
	if id == "" {
		return nil, nil
	}
	read, _, err := j.Read(journal.Query{Run: id, Kind: TaskKind})
	events := make([]*taskEvent, len(read))
	for i := range read {
		if err == nil {
			events[i], err = readTaskEvent(&read[i])
		}
	}
	if err != nil {
		return nil, err
	}
	all, err := readTasks(j, events)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return all[0], nil
}

// Arguments reads those of the call.
func (t *Task) Arguments(j journal.Journal) ([]byte, error) {
	if t.created == 0 {
		return t.Call.Arguments, nil
	}
	var data struct {
		Call struct{ Arguments json.RawMessage }
	}
	events, _, err := j.Read(journal.Query{Run: t.ID, Kind: journal.TaskCreated, After: t.created - 1, Limit: 1})
	if err == nil && len(events) == 0 {
		err = noRecord("event %d is gone", t.created)
	}
	if err == nil {
		err = json.Unmarshal(events[0].Data, &data)
	}
	if err != nil {
		return nil, err
	}
	texts := &Record{}
	texts.blobs, _ = j.(Blobs)
	return texts.readText(data.Call.Arguments)
}

// A taskEvent is one about a task, without the arguments.
type taskEvent struct {
	seq             uint64
	time            time.Time
	kind            journal.Kind
	run             string
	Call            struct{ Tool string }
	AsOf            uint64 `json:"as_of"`
	Owner, Schedule string
	Under           []string
	After           *int
	Left, Begun     bool
}

func readTaskEvent(e *journal.Event) (*taskEvent, error) {
	x := &taskEvent{seq: e.Seq, time: e.Time, kind: e.Kind, run: e.Run}
	return x, json.Unmarshal(e.Data, x)
}

func readTasks(j journal.Journal, events []*taskEvent) (all []*Task, err error) {
	byID := map[string]*Task{}
	for _, e := range events {
		t := byID[e.run]
		switch {
		case e.kind == journal.TaskCreated:
			t = &Task{ID: e.run, Created: e.time, AsOf: e.AsOf, Schedule: e.Schedule, Owner: e.Owner, Under: e.Under, Begun: e.Begun, created: e.seq}
			t.Call.Tool = e.Call.Tool
			byID[e.run] = t
			all = append(all, t)
		case t == nil: // its beginning is older than what was read
		case e.kind == journal.TaskResumed && e.After != nil && *e.After != t.Resumed: // another was first
		case e.kind == journal.TaskResumed:
			if t.Owner, t.Resumed = e.Owner, t.Resumed+1; !e.Left {
				t.Crashed++
			}
		case e.kind == journal.TaskCancelled && t.Cancelled.IsZero():
			t.Cancelled = e.time
		}
	}
	for _, t := range all {
		end, err := EndEvent(j, t.ID)
		if err != nil {
			return nil, err
		}
		if end != nil {
			var data struct {
				Error  *fault.Fault
				Answer *journal.Hash
				By     string
				Sealed string
			}
			if err := json.Unmarshal(end.Data, &data); err != nil {
				return nil, err
			}
			t.Ended, t.Answered, t.By = end.Time, data.Answer != nil, data.By
			t.Sealed = data.Sealed != ""
			if f := data.Error; f != nil {
				t.Fault = &fault.Fault{Kind: f.Kind, Message: strings.Clone(display.Prefix(f.Message, 1000))}
			} else {
				t.Answered = true
			}
		}
	}
	return all, nil
}
