package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/elicit"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/queue"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// A call that takes long, or asks for it, becomes a task: it is answered with a name, the run
// goes on, and the client asks for the result. What a task needs to go on in another process is
// in the journal; see package run. taskresume.go takes up the tasks of a server that ended,
// package mcpserver has the tasks extension of MCP, and [Engine.taskCall] is run {"task": ID} for
// clients that know none.

const (
	// taskAfter is after how long a call becomes a task, and queuedAfter one that is to be one and
	// waits for its turn.
	taskAfter   = 2 * time.Second
	queuedAfter = 200 * time.Millisecond
	// taskLifetime is how long a task is known by its name, from its creation.
	TaskLifetime = 24 * time.Hour
	// maxTasks is how many tasks of one server are under way, and maxAllTasks of all that share
	// a TaskRoom.
	maxTasks    = 256
	maxAllTasks = 1024
	// maxArgumentBytes is how many bytes of arguments they have together, and a principal a quarter of
	// it, or one task with more.
	maxArgumentBytes = 16 << 20
	// freeTasks and freeArgumentBytes are those of each server that don't count among the others'.
	freeTasks         = 4
	freeArgumentBytes = 64 << 10
	// maxAnswerBytes is how many bytes of answers of tasks are in memory. Of the others the run
	// is done again by its record.
	maxAnswerBytes = 64 << 20
	// maxPollWait is how long run {"task": ID} waits for the end.
	maxPollWait = 20 * time.Second
	// maxEarly is how many questions of a task may be answered before they are put again, and maxEarlyBytes what the
	// answers have together.
	maxEarly      = 20
	maxEarlyBytes = 64 << 10
	// endWait is how long the end of a run is waited for that was cancelled.
	endWait = 2 * time.Second
)

// A TaskRoom bounds the tasks of several servers together. The zero value is one.
type TaskRoom struct {
	under, arguments atomic.Int64 // beyond what each server has of its own

	mu    sync.Mutex
	bytes int64              // of answers
	sets  map[*taskSet]int64 // those that have some, with how many
}

// answers counts bytes of answers of a set's, and returns the set that has most where there are too many in all; nil:
// there aren't.
func (r *TaskRoom) answers(ts *taskSet, n int64) (most *taskSet) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sets == nil {
		r.sets = map[*taskSet]int64{}
	}
	r.bytes += n
	if r.sets[ts] += n; r.sets[ts] == 0 {
		delete(r.sets, ts)
	}
	if r.bytes <= maxAnswerBytes {
		return nil
	}
	for other, has := range r.sets {
		if most == nil || has > r.sets[most] {
			most = other
		}
	}
	return most
}

// A taskSet is those of a server.
type taskSet struct {
	room  *TaskRoom
	owner *taskOwner // nil: they end with the process
	most  int64      // bytes of arguments
	// Of who goes on: servers that are gone, with when it found that, and runs of theirs that are over.
	gone map[string]time.Time
	over map[string]bool

	mu        sync.Mutex
	all       map[string]*taskRun // by name, those under way and those whose answer is in memory
	answered  []*taskRun          // the oldest first
	under     int
	arguments int64 // bytes of those under way
	closed    bool
	running   sync.WaitGroup
	recalls   map[string]chan struct{} // what is done again, each closed at its end
}

// A taskRun is a call under way that is a task, or may become one.
type taskRun struct {
	s        *Engine
	id       string
	call     Call
	record   *run.Record // it goes on from there; nil: it begins
	schedule string
	later    bool            // it is a task before it does anything
	again    bool            // a server that ended had begun it
	gone     context.Context // ends when it is cancelled, or has its answer
	cancel   context.CancelFunc
	resumed  int           // how often servers went on with it
	waits    time.Duration // until it goes on
	under    []string      // the sources that the model had been shown when it asked for it
	begun    chan struct{} // closed when its run begins
	asks     chan struct{} // has something while a question waits
	done     chan struct{} // closed when the answer is there
	extra    atomic.Int64  // nanoseconds that it may take beyond what a call may

	mu        sync.Mutex // guards what follows
	run       *run.Run
	plan      *run.Run // that does a plan for it
	by        string   // the run of a plan that gave the answer; "": its own, or none
	public    bool     // it is a task
	created   time.Time
	updated   time.Time
	progress  string
	cancelled bool
	ending    bool // that it is cancelled is on record
	abandoned bool
	answer    *wire.Answer // nil: not yet, or not in memory any more
	size      int64
	questions []*TaskQuestion
	early     map[string]*TaskQuestion // of a server that ended, answered before they are put again
	room      int                      // bytes of those answers
	asked     map[string]bool          // the keys of all that were put
	// The slot that it computes in.
	held   bool
	ticket uint64
	bytes  int
}

// A taskQuestion waits for the person before a client.
type TaskQuestion struct {
	Key    string
	Params *mcp.ElicitParams
	answer chan *mcp.ElicitResult // has room for one
	put    bool                   // by a call that waits for the answer
}

type taskKey struct{}

// taskOf is the task, or what may become one, that a context is of; nil: none.
func taskOf(ctx context.Context) *taskRun {
	t, _ := ctx.Value(taskKey{}).(*taskRun)
	return t
}

// scheduled reports whether a context is of what a person has run now and then.
func scheduled(ctx context.Context) bool {
	t := taskOf(ctx)
	return t != nil && t.schedule != ""
}

// waited is how long a call has waited for a person: its clock stands still then. A task has
// more time besides.
func waited(ctx context.Context) time.Duration {
	d := elicit.Waited(ctx)
	if t := taskOf(ctx); t != nil {
		d += time.Duration(t.extra.Load())
	}
	return d
}

// newTask prepares a call as what may become a task.
func (s *Engine) newTask(id string, c Call) *taskRun {
	gone, cancel := context.WithCancel(context.Background())
	return &taskRun{
		s: s, id: id, gone: gone, cancel: cancel, call: c, created: time.Now(), updated: time.Now(),
		under: s.broker.MadeUnder(), begun: make(chan struct{}), asks: make(chan struct{}, 1), done: make(chan struct{}),
	}
}

// start begins the call in the background. With able its client can put questions.
func (t *taskRun) start(ctx context.Context, able bool) {
	ctx = context.WithValue(context.WithoutCancel(ctx), taskKey{}, t)
	var e *elicit.Elicitor
	if able {
		e = &elicit.Elicitor{Put: t.ask, Patience: TaskLifetime}
	}
	ctx = elicit.With(ctx, e)
	ctx, cancel := context.WithCancel(ctx)
	if context.AfterFunc(t.gone, cancel); t.gone.Err() != nil {
		cancel() // before it begins
	}
	tell := t.call.Progress
	t.call.Progress = func(p Progress) {
		t.mu.Lock()
		public := t.public
		if t.progress = p.Message; p.Message == "" {
			t.progress = fmt.Sprintf("%d steps", p.Steps)
		}
		t.mu.Unlock()
		if tell != nil && !public { // nobody waits for the call any more
			tell(p)
		}
	}
	t.s.tasks.running.Go(func() {
		defer t.cancel()
		a := t.s.Call(ctx, t.call)
		t.finish(a)
	})
}

// finish takes in the answer.
func (t *taskRun) finish(a wire.Answer) {
	t.mu.Lock()
	t.answer, t.updated = &a, time.Now()
	t.size = a.Size()
	arguments := len(t.call.Arguments)
	public, begun, by := t.public, t.run != nil || t.abandoned, t.by
	elsewhere := !t.abandoned && (t.run != nil && t.run.Taken() || t.plan != nil && t.plan.Taken())
	t.call, t.record, t.run, t.plan = Call{}, nil, nil, nil // they hold the arguments
	t.mu.Unlock()
	if elsewhere { // what is asked of it is answered by the record from here on
		t.s.tasks.mu.Lock()
		t.s.tasks.forget(t)
		t.s.tasks.mu.Unlock()
	}
	if public && !begun && !elsewhere {
		if err := t.s.broker.EndTask(t.id, by, t.resumed, a.Fault); err != nil {
			t.s.log.Error("the end of a task could not be recorded", "task", t.id, "error", err)
		}
	}
	if public {
		t.s.tasks.ended(t, arguments)
	}
	close(t.done)
}

// ended counts a task that is over, and lets the oldest answers go that there is no room for, of who has most.
func (ts *taskSet) ended(t *taskRun, arguments int) {
	ts.mu.Lock()
	ts.count(-1, -int64(arguments))
	most := (*taskSet)(nil)
	if ts.all[t.id] == t && !ts.closed {
		ts.answered = append(ts.answered, t)
		if most = ts.room.answers(ts, t.size); len(ts.answered) > maxTasks {
			most = ts
		}
	}
	ts.mu.Unlock()
	for most != nil {
		most = most.dropOldest()
	}
}

// dropOldest lets the oldest answer go, and returns which set is to do so next; nil: none.
func (ts *taskSet) dropOldest() *taskSet {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if len(ts.answered) == 0 { // it left meanwhile
		return ts.room.answers(ts, 0)
	}
	oldest := ts.answered[0]
	ts.answered = ts.answered[1:]
	ts.forget(oldest)
	return ts.room.answers(ts, -oldest.size)
}

// forget has a task not be known, unless this server has taken up the one of its name again. The caller holds the lock.
func (ts *taskSet) forget(t *taskRun) {
	if ts.all[t.id] == t {
		delete(ts.all, t.id)
	}
}

// full is the fault of a task that there is no room for beside whose.
func full(whose string) *fault.Fault {
	return fault.New(fault.Overloaded, "there is no room for another task beside "+whose).
		Hinted("Wait for the end of those under way, or cancel one; without background it can be called now.")
}

// admit makes room for a task, and has it known by its name.
func (ts *taskSet) admit(t *taskRun) *fault.Fault {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	n := int64(len(t.call.Arguments))
	if ts.closed || ts.under >= maxTasks || ts.arguments > 0 && ts.arguments+n > ts.most {
		return full("yours")
	}
	if under, arguments := ts.count(1, n); under > maxAllTasks || arguments > maxArgumentBytes && arguments > n {
		ts.count(-1, -n)
		return full("those of other principals")
	}
	if ts.all == nil {
		ts.all = map[string]*taskRun{}
	}
	ts.all[t.id] = t
	return nil
}

// count counts tasks under way and the bytes of their arguments, and returns what there is in all then, or 0 of
// what only took of the server's own. The caller holds the lock.
func (ts *taskSet) count(tasks int, arguments int64) (allTasks, allArguments int64) {
	shared := func(all *atomic.Int64, before, n, own int64) int64 {
		if n = max(before+n-own, 0) - max(before-own, 0); n == 0 {
			return 0
		}
		return all.Add(n)
	}
	allTasks = shared(&ts.room.under, int64(ts.under), int64(tasks), freeTasks)
	allArguments = shared(&ts.room.arguments, ts.arguments, arguments, freeArgumentBytes)
	ts.under += tasks
	ts.arguments += arguments
	return allTasks, allArguments
}

// leave takes back what admit did.
func (ts *taskSet) leave(t *taskRun) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.count(-1, -int64(len(t.call.Arguments)))
	ts.forget(t)
}

// alone waits until nobody else does what has a name, for [mostWait]; the fault is [noRoom].
func (ts *taskSet) alone(ctx context.Context, name string) (end func(), f *fault.Fault) {
	mine := make(chan struct{})
	late, stop := context.WithTimeout(ctx, mostWait)
	defer stop()
	for {
		ts.mu.Lock()
		before := ts.recalls[name]
		if before == nil {
			if ts.recalls == nil {
				ts.recalls = map[string]chan struct{}{}
			}
			ts.recalls[name] = mine
		}
		ts.mu.Unlock()
		if before == nil {
			return func() {
				ts.mu.Lock()
				defer ts.mu.Unlock()
				delete(ts.recalls, name)
				close(mine)
			}, nil
		}
		select {
		case <-before:
		case <-late.Done():
			return nil, noRoom(ctx)
		}
	}
}

// find gives a task that is in memory; nil: there is none.
func (ts *taskSet) find(id string) *taskRun {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.all[id]
}

// promote has the call be a task, unless it is over. From its return on it is on record.
func (t *taskRun) promote() *fault.Fault {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.create()
}

// create is promote for who holds the lock.
func (t *taskRun) create() *fault.Fault {
	if t.public || t.answer != nil {
		return nil
	}
	ts := &t.s.tasks
	if f := ts.admit(t); f != nil {
		return f
	}
	if t.run != nil {
		t.run.Last()
	}
	err := t.s.broker.CreateTask(&run.Task{
		ID: t.id, Call: run.Call{Tool: t.call.Tool, Arguments: t.call.Arguments}, AsOf: t.call.Tools.Seq(), Schedule: t.schedule, Owner: ts.owner.word(),
		Under: t.under, Begun: t.run != nil,
	})
	if err != nil {
		ts.leave(t)
		f := &fault.Fault{Kind: fault.Overloaded, Message: "the task could not be recorded", Hint: "Tell the operator; a call without background works.", Cause: err}
		if errors.Is(err, journal.ErrUnknown) {
			f.Kind, f.Message = fault.OutcomeUnknown, "whether the task "+t.id+" was recorded is not known"
			f.Hint = "Look at the journal before you call it again: another server may do it, if this one ends now."
		}
		return f
	}
	t.public = true
	t.extra.Store(int64(t.s.limits.Task - t.s.limits.Timeout))
	return nil
}

// begin is [run.Broker.Begin] for a run that may be a task, or that goes on.
func (s *Engine) begin(ctx context.Context, tools *registry.Snapshot, start run.Start) (*run.Run, *fault.Fault) {
	t := taskOf(ctx)
	start.Owner = s.tasks.owner.word()
	if t == nil {
		return s.broker.Begin(tools, start), nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.run != nil || t.abandoned {
		return nil, queue.Cancelled()
	}
	if t.later {
		if f := t.create(); f != nil {
			return nil, f
		}
	}
	start.Under, start.Person = t.under, scheduled(ctx)
	start.ID, start.Lasts, start.Resumed = t.id, t.public, t.resumed
	if t.record != nil {
		r, err := s.broker.Resume(tools, start, t.record)
		if err != nil {
			return nil, cantGoOn(err.Error())
		}
		t.run = r
	} else {
		t.run = s.broker.Begin(tools, start)
	}
	close(t.begun)
	return t.run, nil
}

// within notes the run that does a plan for a task, which ends with it in this process; false: it has ended.
func (t *taskRun) within(r *run.Run) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.abandoned {
		r.Abandon()
		return false
	}
	t.plan = r
	return true
}

// answeredBy notes the run of a plan that gave the answer, if it has ended.
func (t *taskRun) answeredBy(id string) {
	if end, err := run.EndEvent(t.s.broker.Journal(), id); err == nil && end != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.by = id
	}
}

// taskStays is the beginning of what is said of a task that ends because its server did.
const taskStays = "the task can't go on after the end of its server"

// cantGoOn is the fault of a task that ends because its server did.
func cantGoOn(why string) *fault.Fault {
	return fault.New(fault.Cancelled, taskStays+": "+why).
		Hinted("Call the tool again, with regard to what was done: the journal shows it.")
}

// enter takes the slot that a run computes in; leave gives it back.
func (t *taskRun) enter(ctx context.Context, ticket uint64, bytes int) *fault.Fault {
	if f := t.s.slots.Enter(ctx, ticket, bytes); f != nil {
		return f
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held, t.ticket, t.bytes = true, ticket, bytes
	return nil
}

func (t *taskRun) leave() {
	t.mu.Lock()
	held := t.held
	t.held = false
	t.mu.Unlock()
	if held {
		t.s.slots.Leave(t.bytes)
	}
}

// ask waits for the answer to a question. Meanwhile others compute in its slot.
func (t *taskRun) ask(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	key := elicit.NameOf(ctx)
	if key == "" {
		key = elicit.QuestionName + "-" + strings.ToLower(rand.Text()[:8])
	}
	t.mu.Lock()
	q := t.early[key]
	if q == nil {
		q = newQuestion(key)
	}
	q.Params = p
	if t.again {
		delete(t.early, key)
		t.asked[key] = true
	}
	if len(q.answer) > 0 {
		t.mu.Unlock()
		return <-q.answer, nil
	}
	t.questions, t.updated = append(t.questions, q), time.Now()
	t.mu.Unlock()
	select {
	case t.asks <- struct{}{}:
	default:
	}
	t.leave()
	var res *mcp.ElicitResult
	select {
	case res = <-q.answer:
	case <-ctx.Done():
	}
	t.mu.Lock()
	t.questions = slices.DeleteFunc(t.questions, func(other *TaskQuestion) bool { return other == q })
	t.updated = time.Now()
	last := len(t.questions) == 0
	t.mu.Unlock()
	if err := ctx.Err(); err != nil || !last { // another question waits still, and computes nothing
		return res, err
	}
	if f := t.enter(ctx, t.ticket, t.bytes); f != nil {
		return nil, f
	}
	return res, nil
}

func newQuestion(key string) *TaskQuestion {
	return &TaskQuestion{Key: key, answer: make(chan *mcp.ElicitResult, 1)}
}

// question is the question of a key that waits for an answer of so many bytes, or may be put again; nil: it has one, or
// was never put. The error is that the answer can't be taken yet.
func (t *taskRun) question(key string, bytes int) (*TaskQuestion, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.IndexFunc(t.questions, func(q *TaskQuestion) bool { return q.Key == key }); i >= 0 {
		return t.questions[i], nil
	}
	if !t.again || t.answer != nil || t.asked[key] {
		return nil, nil
	}
	if q := t.early[key]; q != nil {
		return q, nil
	}
	if len(t.early) >= maxEarly || t.room+bytes > maxEarlyBytes {
		return nil, errNotYet
	}
	t.room += bytes
	q := newQuestion(key)
	t.early[key] = q
	return q, nil
}

// errNotYet is why an answer isn't taken that may count later.
var errNotYet = errors.New("the task goes on after the end of its server, and hasn't put the question again yet; send the answer again")

// Reply gives a question its answer. Of several the first counts.
func (q *TaskQuestion) Reply(res *mcp.ElicitResult) {
	select {
	case q.answer <- res:
	default:
	}
}

// toPut is a question that no call puts yet; nil: there is none. The caller puts it.
func (t *taskRun) toPut() *TaskQuestion {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, q := range t.questions {
		if !q.put {
			q.put = true
			return q
		}
	}
	return nil
}

// cancels notes that it is cancelled, unless it is over.
func (t *taskRun) cancels() (over bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	over = t.answer != nil
	t.cancelled = t.cancelled || !over
	return over
}

// end cancels a task and waits for its end, not long. From its return on, it does no further
// effect.
func (t *taskRun) end(by string) error {
	if t.cancels() {
		return nil
	}
	if err := run.CancelTask(t.s.broker.Journal(), t.id, by); err != nil {
		return err
	}
	t.stop()
	return nil
}

// stop ends the run, and waits for that. Where it is cancelled that is on record.
func (t *taskRun) stop() {
	t.mu.Lock()
	t.ending = t.cancelled
	t.mu.Unlock()
	t.cancel()
	timer := time.NewTimer(endWait)
	defer timer.Stop()
	select {
	case <-t.done:
	case <-timer.C:
	}
}

// Busy reports whether a task is under way which needs the server. One that waits for a person, and is on record,
// doesn't, unless it does something meanwhile that can't be done again: the next server goes on with it.
func (s *Engine) Busy() bool {
	s.tasks.mu.Lock()
	all, lasts := slices.Collect(maps.Values(s.tasks.all)), s.tasks.owner != nil
	s.tasks.mu.Unlock()
	return slices.ContainsFunc(all, func(t *taskRun) bool {
		if !t.mu.TryLock() { // it is just being recorded
			return true
		}
		defer t.mu.Unlock()
		acting := t.run != nil && t.run.Acting() || t.plan != nil && t.plan.Acting()
		return t.answer == nil && (!lasts || len(t.questions) == 0 || acting)
	})
}

// A taskState is what a client is told of a task.
type TaskState struct {
	ID, Status, Message string
	Created, Updated    time.Time
	Questions           []*TaskQuestion
	Answer              *wire.Answer // of one that is completed
}

// The states, as MCP calls them.
const (
	taskWorking   = "working"
	taskAsking    = "input_required"
	TaskCompleted = "completed"
	taskCancelled = "cancelled"
)

func (t *taskRun) state() TaskState {
	t.mu.Lock()
	defer t.mu.Unlock()
	st := TaskState{ID: t.id, Status: taskWorking, Message: t.progress, Created: t.created, Updated: t.updated}
	switch {
	case t.answer != nil && t.cancelled && t.answer.Fault != nil && t.answer.Fault.Kind == fault.Cancelled:
		st.Status, st.Answer = taskCancelled, t.s.again(t.answer, t.id)
	case t.answer != nil:
		st.Status, st.Answer = TaskCompleted, t.s.again(t.answer, t.id)
	case t.ending: // as whoever has the record says
		a := wire.Failed(queue.Cancelled())
		st.Status, st.Answer, st.Message = taskCancelled, &a, ""
	case len(t.questions) > 0:
		st.Status, st.Questions, st.Message = taskAsking, slices.Clone(t.questions), "waits for the user's answer"
	}
	return st
}

// background answers a call of run at once with the name of a task, unless it is over soon.
func (s *Engine) background(ctx context.Context, c Call) wire.Answer {
	t := s.newTask(s.broker.NewID(), c)
	t.call.Arrival, t.later = nil, true
	t.start(ctx, elicit.Of(ctx) != nil)
	timer := time.NewTimer(queuedAfter)
	defer timer.Stop()
	select {
	case <-t.done:
		return *t.answer
	case <-t.begun:
	case <-timer.C: // it waits for its turn
	}
	if f := t.promote(); f != nil {
		t.stop()
		return wire.Failed(f)
	}
	st := t.state()
	return s.told(&st)
}

// told is the answer to who asks for a task by run. Under rules of flow it is the same however far that is, and whatever it
// waits for.
func (s *Engine) told(st *TaskState) wire.Answer {
	if st.Answer != nil {
		return *st.Answer
	}
	if s.broker.Flow() != nil && st.Status != taskCancelled {
		st = &TaskState{ID: st.ID, Status: taskWorking, Message: "it may wait for the user"}
	}
	next := wire.Begin().Text("name", "run").Raw("arguments", wire.Begin().Text("task", st.ID).End()).End()
	o := wire.Begin().Text("task", st.ID).Text("status", st.Status)
	text := "The task " + st.ID + " isn't done yet"
	if st.Message != "" {
		o = o.Text("message", st.Message)
		text += " (" + st.Message + ")"
	}
	text += ". The next call waits for its result; with \"cancel\": true it ends."
	a := wire.Answer{Text: text, Structured: []byte(o.Raw("next", next).End())}
	a.Tell(nil, string(next))
	return a
}
