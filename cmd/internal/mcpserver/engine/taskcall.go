package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcp-pif/mcp-pif/caps/flow"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/elicit"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/queue"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// taskState is the state of a task of this server's, or of another one on the same journal. With
// whole it has the answer, though the run has to be done again for it. ok is not set where
// there is no such task, or not any more.
func (s *Engine) TaskState(ctx context.Context, id string, whole bool) (st TaskState, ok bool) {
	if t := s.tasks.find(id); t != nil {
		if st = t.state(); time.Since(st.Created) < TaskLifetime || st.Answer == nil {
			return st, true
		}
		return st, false
	}
	rec, err := run.FindTask(s.broker.Journal(), id)
	if err != nil {
		s.log.Error("a task can't be read", "task", id, "error", err)
	}
	if rec == nil || time.Since(rec.Created) > TaskLifetime {
		return st, false
	}
	st = TaskState{ID: id, Status: taskWorking, Created: rec.Created, Updated: rec.Created}
	switch {
	case !rec.Cancelled.IsZero() && (rec.Ended.IsZero() || rec.Fault != nil && rec.Fault.Kind == fault.Cancelled && !rec.Sealed):
		st.Status, st.Updated = taskCancelled, rec.Cancelled
		a := wire.Failed(queue.Cancelled())
		st.Answer = &a
	case !rec.Ended.IsZero():
		st.Status, st.Updated = TaskCompleted, rec.Ended
		if whole {
			if st.Answer = s.recall(ctx, rec); st.Answer == nil {
				st.Status, st.Message = taskWorking, "there is no room now to tell what it gave"
			}
		}
	case !s.tasks.owner.lives(rec.Owner):
		st.Message = "its server ended; it goes on when one starts"
	}
	return st, true
}

// recall does a task's run again by its record, for its answer; nil: it can't now.
func (s *Engine) recall(ctx context.Context, rec *run.Task) *wire.Answer {
	end, f := s.tasks.alone(ctx, "task "+rec.ID)
	if f != nil {
		return nil
	}
	defer end()
	if t := s.tasks.find(rec.ID); t != nil { // somebody else did
		return t.state().Answer
	}
	a, err := s.replayed(ctx, cmp.Or(rec.By, rec.ID))
	if err != nil && !rec.Answered && !notNow(err) { // it ended without a run of its own
		if a, err = s.planOfTask(ctx, rec); err != nil && !notNow(err) {
			id, kept := cmp.Or(rec.By, rec.ID), flow.Atoms(0)
			var under []string
			var end *run.Ended
			if under, kept, err = s.tellsOf(id, nil); err == nil {
				if end, err = run.ReadEnd(s.broker.Journal(), rec.ID); err == nil && (end == nil || end.Fault == nil) {
					err = errors.New("its end was dropped meanwhile")
				}
			}
			if err == nil {
				if a = wire.Failed(end.Fault); kept == 0 {
					a.Under = under
				} else {
					a = s.sealEnded(id, a, kept)
				}
			}
		}
	}
	if notNow(err) {
		return nil
	}
	if err != nil {
		why := err.Error()
		if s.broker.Flow() != nil { // it may tell what the run asked for
			s.log.Error("what a task gave can't be had again", "task", rec.ID, "error", err)
			why = "the operator's log has more"
		}
		f := cantGoOn("what it gave can't be had again: " + why)
		f.Kind, f.Message = fault.OutcomeUnknown, strings.Replace(f.Message, "can't go on", "ended, and so did its server", 1)
		a = wire.Failed(f)
		return &a
	}
	t := s.newTask(rec.ID, Call{})
	t.created, t.answer, t.public, t.cancelled = rec.Created, &a, true, !rec.Cancelled.IsZero()
	t.updated = rec.Ended
	t.size = a.Size()
	close(t.done)
	if s.tasks.admit(t) == nil {
		s.tasks.ended(t, 0)
	}
	return &a
}

// taskCall is run with "task": the result of a task, or how far it is; with "cancel" it ends.
func (s *Engine) taskCall(ctx context.Context, a *wire.Arguments, in *wire.RunArguments) wire.Answer {
	for _, m := range a.Members {
		if m.Name != "task" && m.Name != "cancel" && string(m.Value) != "null" {
			return wire.Failed(wire.Invalid(fmt.Sprintf(`run takes "task" with "cancel" only, not with %q`, m.Name), "run", runArguments))
		}
	}
	id := in.Task
	st, ok := s.TaskState(ctx, id, !in.Cancel)
	if !ok {
		return wire.Failed(NoTask(id))
	}
	if in.Cancel {
		if f := s.CancelTask(id, "client"); f != nil {
			return wire.Failed(f)
		}
		if st, ok = s.TaskState(ctx, id, true); ok && st.Status == taskCancelled {
			return wire.Succeeded(wire.Begin().Text("task", id).Text("status", st.Status))
		}
		return s.told(&st)
	}
	deadline := time.NewTimer(maxPollWait)
	defer deadline.Stop()
	for st.Answer == nil {
		if t := s.tasks.find(id); t == nil {
			if !s.otherServer(ctx, id, deadline.C) {
				break
			}
		} else if e := elicit.Of(ctx); e != nil {
			if q := t.toPut(); q != nil {
				if !t.putBy(ctx, e, q) {
					st = t.state()
					break
				}
				continue
			}
			if !t.wait(ctx, deadline.C, t.asks) {
				break
			}
		} else if !t.wait(ctx, deadline.C, nil) {
			break
		}
		if st, ok = s.TaskState(ctx, id, true); !ok {
			return wire.Failed(NoTask(id))
		}
	}
	return s.told(&st)
}

// codeEnded is the code with which the transport answers for a client that has closed its end.
const codeEnded = -32005

// putBy has a call's client put a question of the task; that it refuses is no answer of the person's. false: it couldn't,
// and another call may.
func (t *taskRun) putBy(ctx context.Context, e *elicit.Elicitor, q *TaskQuestion) bool {
	res, err := e.Ask(ctx, q.Params)
	if refused := (*jsonrpc.Error)(nil); err == nil || ctx.Err() == nil && errors.As(err, &refused) && refused.Code != codeEnded { // it would refuse the next, too
		q.Reply(res)
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	q.put = false
	return false
}

// wait waits for the end of a task, or for more; false: it was too long.
func (t *taskRun) wait(ctx context.Context, late <-chan time.Time, more <-chan struct{}) bool {
	select {
	case <-t.done:
	case <-more:
	case <-late:
		return false
	case <-ctx.Done():
		return false
	}
	return true
}

// otherServer looks now and then whether a task has ended that another server does; false: that
// took too long.
func (s *Engine) otherServer(ctx context.Context, id string, late <-chan time.Time) bool {
	tick := time.NewTicker(Glance)
	defer tick.Stop()
	for {
		select {
		case <-late:
			return false
		case <-ctx.Done():
			return false
		case <-tick.C:
			if rec, err := run.FindTask(s.broker.Journal(), id); err != nil || rec == nil || rec.Over() {
				return true
			}
		}
	}
}

func NoTask(id string) *fault.Fault {
	return fault.Newf(fault.InvalidRequest, "there is no task %q", wire.Short([]byte(id))).
		Hinted(fmt.Sprintf("A task is known for %d hours; the journal has its run for longer.", int(TaskLifetime.Hours())))
}

// CancelTask ends a task, whichever server does it.
func (s *Engine) CancelTask(id, by string) *fault.Fault {
	var err error
	if t := s.tasks.find(id); t != nil {
		err = t.end(by)
	} else {
		var rec *run.Task
		if rec, err = run.FindTask(s.broker.Journal(), id); err == nil && rec != nil && !rec.Over() {
			err = run.CancelTask(s.broker.Journal(), id, by)
		}
	}
	if err == nil {
		return nil
	}
	return &fault.Fault{Kind: fault.Overloaded, Message: "that the task is cancelled could not be recorded", Hint: "Tell the operator.", Cause: err}
}

// MayBeTask reports whether a call can be answered with a task: of the tools that are always there run can.
func (s *Engine) MayBeTask(c *Call) bool {
	if c.Tool != "run" {
		return wire.ToolNamed(c.Tool) == nil
	}
	a, f := wire.Read("run", c.Arguments, runArguments...)
	if f != nil {
		return false
	}
	_, task := a.Raw("task")
	_, result := a.Raw("result")
	return !task && !result
}

// AsTask does a call of a client that knows tasks: where it takes long, has a question, or is to
// be in the background, a task is the answer, whose state has none. With able the client can put questions.
func (s *Engine) AsTask(ctx context.Context, c Call, able bool) (st TaskState) {
	if c.Tools == nil {
		c.Tools = s.Latest()
	}
	t := s.newTask(s.broker.NewID(), c)
	if c.Tool == "run" {
		if a, f := wire.Read("run", c.Arguments, runArguments...); f == nil {
			t.later, _ = a.Flag("background")
		}
	}
	t.start(ctx, able)
	stop := context.AfterFunc(ctx, t.cancel)
	timer := time.NewTimer(taskAfter)
	defer timer.Stop()
	begun := t.begun
	if !t.later {
		begun = nil
	}
	select {
	case <-t.done:
		return t.state()
	case <-t.asks:
	case <-timer.C:
	case <-begun:
	}
	if stop() && t.promote() == nil {
		return t.state()
	}
	defer context.AfterFunc(ctx, t.cancel)()
	for { // no room for a task: nobody can answer what it asks
		if q := t.toPut(); q != nil {
			q.Reply(nil)
			continue
		}
		select {
		case <-t.done:
			return t.state()
		case <-t.asks:
		}
	}
}

// Questions gives the questions that a task waits with, each by its key and the bytes of its answer; nil: it waits with
// none. The error is that this server takes no answer for it.
func (s *Engine) Questions(id string) (func(key string, bytes int) (*TaskQuestion, error), error) {
	if t := s.tasks.find(id); t != nil {
		return t.question, nil
	}
	if rec, err := run.FindTask(s.broker.Journal(), id); err != nil || rec == nil || rec.Over() {
		return nil, err
	}
	return nil, errNotHere
}

// errNotHere is why a server takes no answer for a task.
var errNotHere = errors.New("another server does the task, or goes on with it soon; send the answer to it, or again")
