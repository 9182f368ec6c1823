package mcpserver

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/elicit"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/queue"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// A taskState is what a client is told of a task.
type taskState struct {
	id, status, message string
	created, updated    time.Time
	questions           []*taskQuestion
	answer              *wire.Answer // of one that is completed
}

// The states, as MCP calls them.
const (
	taskWorking   = "working"
	taskAsking    = "input_required"
	taskCompleted = "completed"
	taskCancelled = "cancelled"
)

func (t *taskRun) state() taskState {
	t.mu.Lock()
	defer t.mu.Unlock()
	st := taskState{id: t.id, status: taskWorking, message: t.progress, created: t.created, updated: t.updated}
	switch {
	case t.answer != nil && t.cancelled && t.answer.Fault != nil && t.answer.Fault.Kind == fault.Cancelled:
		st.status, st.answer = taskCancelled, t.answer
	case t.answer != nil:
		st.status, st.answer = taskCompleted, t.answer
	case len(t.questions) > 0:
		st.status, st.questions, st.message = taskAsking, slices.Clone(t.questions), "waits for the user's answer"
	}
	return st
}

// taskState is the state of a task of this server's, or of another one on the same journal. With
// whole it has the answer, though the run has to be done again for it. ok is not set where
// there is no such task, or not any more.
func (s *Server) taskState(ctx context.Context, id string, whole bool) (st taskState, ok bool) {
	if t := s.tasks.find(id); t != nil {
		if st = t.state(); time.Since(st.created) < taskLifetime || st.answer == nil {
			return st, true
		}
		return st, false
	}
	rec, err := run.FindTask(s.broker.Journal(), id)
	if err != nil {
		s.log.Error("a task can't be read", "task", id, "error", err)
	}
	if rec == nil || time.Since(rec.Created) > taskLifetime {
		return st, false
	}
	st = taskState{id: id, status: taskWorking, created: rec.Created, updated: rec.Created}
	switch {
	case !rec.Cancelled.IsZero() && (rec.Ended.IsZero() || rec.Fault != nil && rec.Fault.Kind == fault.Cancelled):
		st.status, st.updated = taskCancelled, rec.Cancelled
		a := wire.Failed(queue.Cancelled())
		st.answer = &a
	case !rec.Ended.IsZero():
		st.status, st.updated = taskCompleted, rec.Ended
		if whole {
			st.answer = s.recall(ctx, rec)
		}
	case !s.tasks.owner.lives(rec.Owner):
		st.message = "its server ended; it goes on when one starts"
	}
	return st, true
}

// recall does a task's run again by its record, for its answer.
func (s *Server) recall(ctx context.Context, rec *run.Task) *wire.Answer {
	s.tasks.recalls.Lock()
	defer s.tasks.recalls.Unlock()
	if t := s.tasks.find(rec.ID); t != nil { // somebody else did
		return t.state().answer
	}
	a, err := s.replayed(ctx, cmp.Or(rec.By, rec.ID))
	if err != nil && !rec.Answered { // it ended without a run of its own
		if a, err = s.planOfTask(ctx, rec); err != nil {
			a, err = wire.Failed(rec.Fault), nil
		}
	}
	if err != nil {
		f := cantGoOn("what it gave can't be had again: " + err.Error())
		f.Kind, f.Message = fault.OutcomeUnknown, strings.Replace(f.Message, "can't go on", "ended, and so did its server", 1)
		a = wire.Failed(f)
		return &a
	}
	t := s.newTask(rec.ID, Call{})
	t.created, t.answer, t.public, t.cancelled = rec.Created, &a, true, !rec.Cancelled.IsZero()
	t.updated = rec.Ended
	t.size = int64(len(a.Text) + len(a.Structured))
	close(t.done)
	if s.tasks.admit(t) == nil {
		s.tasks.ended(t)
	}
	return &a
}

// replayed is the answer of a run that ended, by its record.
func (s *Server) replayed(ctx context.Context, id string) (a wire.Answer, err error) {
	rec, err := run.ReadRecord(s.broker.Journal(), id)
	if err != nil {
		return a, err
	}
	if e := rec.End; e != nil && e.Sealed != "" && s.broker.Flow() != nil {
		one, f := s.sealedOf(e.Sealed)
		if f != nil {
			return a, f
		}
		return s.sealedAnswer(one), nil
	} else if e != nil {
		if err := s.broker.ShowNames(e.Entered, rec.ID); err != nil {
			return a, err
		}
	}
	tools, err := s.tools.At(rec.AsOf)
	if err != nil {
		return a, err
	}
	if rec.Tool != "" {
		if then, err := s.tools.WithVersion(tools, registry.Ref{Name: rec.Tool, Version: rec.Version}); err == nil {
			tools = then
		}
	}
	p := run.NewReplay(rec, false)
	a, v := Replay(ctx, ReplayOptions{Replay: p, Tools: tools, Whole: true, Processors: s.cpu})
	if !v.OK() && (v.Verdict != run.Incomplete || rec.End == nil || rec.End.Answer != nil) {
		return a, fmt.Errorf("%s", v.Text)
	}
	return s.offer(s.orGone(Call{Tool: rec.Call.Tool, Tools: tools}, a)), nil
}

// background answers a call of run at once with the name of a task, unless it is over soon.
func (s *Server) background(ctx context.Context, c Call) wire.Answer {
	t := s.newTask(s.broker.NewID(), c)
	t.call.arrival, t.later = nil, true
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
	return st.told()
}

// told is the answer to who asks for a task by run.
func (st *taskState) told() wire.Answer {
	if st.answer != nil {
		return *st.answer
	}
	next := wire.Begin().Text("name", "run").Raw("arguments", wire.Begin().Text("task", st.id).End()).End()
	o := wire.Begin().Text("task", st.id).Text("status", st.status)
	text := "The task " + st.id + " isn't done yet"
	if st.message != "" {
		o = o.Text("message", st.message)
		text += " (" + st.message + ")"
	}
	text += ". The next call waits for its result; with \"cancel\": true it ends."
	a := wire.Answer{Text: text, Structured: []byte(o.Raw("next", next).End())}
	a.Tell(nil, string(next))
	return a
}

// taskCall is run with "task": the result of a task, or how far it is; with "cancel" it ends.
func (s *Server) taskCall(ctx context.Context, a *wire.Arguments) wire.Answer {
	for _, m := range a.Members {
		if m.Name != "task" && m.Name != "cancel" && string(m.Value) != "null" {
			return wire.Failed(wire.Invalid(fmt.Sprintf(`run takes "task" with "cancel" only, not with %q`, m.Name), "run", runArguments))
		}
	}
	id, _, f := a.Text("task")
	if f != nil {
		return wire.Failed(f)
	}
	end, f := a.Flag("cancel")
	if f != nil {
		return wire.Failed(f)
	}
	st, ok := s.taskState(ctx, id, !end)
	if !ok {
		return wire.Failed(noTask(id))
	}
	if end {
		if f := s.cancelTask(id, "client"); f != nil {
			return wire.Failed(f)
		}
		if st, ok = s.taskState(ctx, id, true); ok && st.status == taskCancelled {
			return wire.Succeeded(wire.Begin().Text("task", id).Text("status", st.status))
		}
		return st.told()
	}
	deadline := time.NewTimer(maxPollWait)
	defer deadline.Stop()
	for st.answer == nil {
		t := s.tasks.find(id)
		if t == nil {
			if !s.otherServer(ctx, id, deadline.C) {
				break
			}
		} else if e := elicit.Of(ctx); e != nil {
			if q := t.toPut(); q != nil {
				t.putBy(ctx, e, q)
				continue
			}
			if !t.wait(ctx, deadline.C, t.asks) {
				break
			}
		} else if !t.wait(ctx, deadline.C, nil) {
			break
		}
		if st, ok = s.taskState(ctx, id, true); !ok {
			return wire.Failed(noTask(id))
		}
	}
	return st.told()
}

// putBy has a call's client put a question of the task.
func (t *taskRun) putBy(ctx context.Context, e *elicit.Elicitor, q *taskQuestion) {
	res, err := e.Ask(ctx, q.params)
	if err == nil || ctx.Err() == nil {
		t.reply(q.key, res)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	q.put = false // for another call
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
func (s *Server) otherServer(ctx context.Context, id string, late <-chan time.Time) bool {
	tick := time.NewTicker(glance)
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

func noTask(id string) *fault.Fault {
	return &fault.Fault{
		Kind:    fault.InvalidRequest,
		Message: fmt.Sprintf("there is no task %q", wire.Short([]byte(id))),
		Hint:    fmt.Sprintf("A task is known for %d hours; the journal has its run for longer.", int(taskLifetime.Hours())),
	}
}

// cancelTask ends a task, whichever server does it.
func (s *Server) cancelTask(id, by string) *fault.Fault {
	if t := s.tasks.find(id); t != nil {
		return t.end(by)
	}
	rec, err := run.FindTask(s.broker.Journal(), id)
	if err == nil && rec != nil && !rec.Over() {
		err = run.CancelTask(s.broker.Journal(), id, by)
	}
	if err != nil {
		return &fault.Fault{Kind: fault.Overloaded, Message: "that the task is cancelled could not be recorded", Hint: "Tell the operator.", Cause: err}
	}
	return nil
}
