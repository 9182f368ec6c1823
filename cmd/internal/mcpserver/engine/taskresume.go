package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/lease"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// maxCrashed is how often servers go on with one task of a server that ended without leaving it: it may be what ends them.
const maxCrashed = 20

// lookAgain is how long a node of a cluster waits until it looks again for tasks of nodes that are gone.
const lookAgain = 30 * time.Second

// tryAgain is how long it waits where that failed.
const tryAgain = 5 * time.Second

// OpenTasks goes on with the tasks of servers on the same journal that ended, and has an eye on
// what is cancelled and scheduled, until what it gives is called: then the tasks under way are
// left to the next server. Tasks work without it, and end with the process.
func (s *Engine) OpenTasks(ctx context.Context) (stop func()) {
	leave := s.Own()
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	seen := s.newestCancelled()
	if s.opts.Node == nil { // a cluster's order may not answer now
		if err := s.goOn(ctx); err != nil {
			s.log.Error(cantTakeUp, "error", err)
		}
	}
	go func() {
		defer close(ended)
		s.watchTasks(ctx, seen)
	}()
	return sync.OnceFunc(func() {
		cancel()
		<-ended
		s.tasks.abandon()
		leave()
	})
}

// Own lets others on the same journal see that this server runs, until the returned function is called, so that
// they don't take up what it does. It takes up no tasks itself; [Engine.OpenTasks] does both.
func (s *Engine) Own() (leave func()) {
	if _, memory := s.broker.Journal().(*journal.Memory); s.opts.TaskDir == "" || memory {
		return func() {}
	}
	owner, err := ownTasks(s.opts.TaskDir, s.broker.NewID(), s.opts.Node)
	if err != nil {
		s.log.Warn("tasks end with this server", "error", err)
		return func() {}
	}
	s.tasks.owner = owner
	return func() {
		if err := owner.close(); err != nil {
			s.log.Debug("the file of this server's tasks stays", "error", err)
		}
	}
}

// Owns reports whether others see that this server runs, and it sees which of them do.
func (s *Engine) Owns() bool { return s.tasks.owner != nil }

const cantTakeUp = "tasks of servers that ended can't be taken up"

// goOn goes on with the tasks that no server does any more; the error is why it couldn't with all.
func (s *Engine) goOn(ctx context.Context) error {
	if s.tasks.owner == nil || s.idle() {
		return nil
	}
	if err := s.barrier(ctx); err != nil { // others aren't locked out while that takes long
		return err
	}
	var found []*taskRun
	err := s.tasks.owner.alone(func() (waiting map[string]bool, err error) {
		found, waiting, err = s.orphans(ctx)
		return waiting, err
	})
	if s.opts.Node != nil {
		err = errors.Join(err, s.loseRuns(ctx, time.Now()))
	}
	for _, t := range found {
		if s.opts.Node == nil {
			t.start(ctx, true)
			continue
		}
		s.tasks.running.Go(func() { t.goOn(ctx) })
	}
	return err
}

// goOn starts it, once it is time.
func (t *taskRun) goOn(ctx context.Context) {
	select {
	case <-t.gone.Done():
	case <-time.After(t.waits):
	}
	t.start(ctx, true)
}

// loseRuns records what runs, that are no tasks or cancelled ones, ended with their node. Each node before this one has the
// time until another look to do so, since it may have no engine for the journal.
func (s *Engine) loseRuns(ctx context.Context, now time.Time) error {
	gone, due := map[string]time.Time{}, map[string]bool{}
	patience := time.Duration(s.opts.Node.Before()) * lookAgain
	over, err := s.broker.LoseRuns(ctx, s.tasks.over, now.Add(-s.limits.Task-patience-2*time.Minute), func(server string) bool {
		if _, known := due[server]; !known {
			due[server] = false
			if !s.tasks.owner.lives(server) {
				since, seen := s.tasks.gone[server]
				if !seen {
					since = now
				}
				gone[server] = since
				due[server] = now.Sub(since) >= patience || !s.tasks.owner.elsewhere(server)
			}
		}
		return due[server]
	})
	s.tasks.gone, s.tasks.over = gone, over
	if err != nil {
		return fmt.Errorf("which runs ended with their node can't be recorded: %w", err)
	}
	return nil
}

// abandon leaves the tasks under way to the next server.
func (ts *taskSet) abandon() {
	ts.mu.Lock()
	ts.closed = true
	all := slices.Collect(maps.Values(ts.all))
	ts.mu.Unlock()
	for _, t := range all {
		t.mu.Lock()
		t.abandoned = true
		for _, r := range []*run.Run{t.run, t.plan} {
			if r != nil && t.answer == nil {
				r.Abandon()
			}
		}
		t.mu.Unlock()
		t.cancel()
	}
	over := make(chan struct{})
	go func() {
		ts.running.Wait()
		close(over)
	}()
	select {
	case <-over:
	case <-time.After(endWait):
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, t := range ts.answered {
		ts.room.answers(ts, -t.size)
	}
	ts.answered = nil
}

// orphans is the tasks that no server does any more, taken up by this one, and the owners of those that there is no room for.
func (s *Engine) orphans(ctx context.Context) (found []*taskRun, waiting map[string]bool, err error) {
	waiting = map[string]bool{}
	if err := s.barrier(ctx); err != nil {
		return nil, nil, err
	}
	all, err := run.Tasks(s.broker.Journal(), time.Now().Add(-TaskLifetime))
	if err != nil {
		return nil, nil, err
	}
	s.Latest()
	for _, rec := range all {
		// It may have taken one up without knowing so.
		unknown := rec.Owner == s.tasks.owner.name && rec.Resumed > 0 && s.tasks.find(rec.ID) == nil
		if rec.Over() || s.tasks.owner.lives(rec.Owner) && !unknown {
			continue
		}
		t := s.newTask(rec.ID, Call{Tool: rec.Call.Tool})
		t.created, t.public, t.again, t.schedule = rec.Created, true, true, rec.Schedule
		t.early, t.asked = map[string]*TaskQuestion{}, map[string]bool{}
		t.extra.Store(int64(s.limits.Task - s.limits.Timeout))
		if f := s.takeUp(t, rec); f != nil {
			s.log.Warn("a task can't go on", "task", rec.ID, "tool", rec.Call.Tool, "why", f.Message)
			if s.tasks.owner.elsewhere(rec.Owner) && (f.Kind == fault.Denied || f.Cause != nil) { // it may at another node
				continue
			}
			if s.opts.Node == nil {
				if err := s.broker.EndTask(rec.ID, "", rec.Resumed, f); err != nil {
					return found, waiting, err
				}
				continue
			}
		}
		if s.tasks.admit(t) != nil {
			s.log.Warn("a task waits for the next start: too many are under way", "task", rec.ID)
			waiting[rec.Owner] = true
			continue
		}
		if mine, err := s.broker.ResumeTask(rec.ID, s.tasks.owner.name, rec.Resumed, s.tasks.owner.left(rec.Owner)); !mine {
			s.tasks.leave(t)
			if err != nil {
				return found, waiting, err
			}
			continue
		}
		t.resumed, t.waits = rec.Resumed+1, s.lastBegin(rec.Owner, unknown)
		if s.opts.Node != nil { // again, with what a node that was only silent recorded until now
			if f := s.takeUp(t, rec); f != nil {
				s.tasks.leave(t)
				now, err := run.FindTask(s.broker.Journal(), rec.ID)
				if err == nil && now != nil && !now.Over() {
					err = s.broker.EndTask(rec.ID, "", t.resumed, f)
				}
				if err != nil {
					return found, waiting, err
				}
				continue
			}
		}
		s.log.Info("a task goes on", "task", rec.ID, "tool", rec.Call.Tool)
		found = append(found, t)
	}
	return found, waiting, nil
}

// lastBegin returns after how long a node has begun all effects of a task that was taken over from it just now. If it is
// silent and not dead, it begins one only within [lease.Length] of a proposal of its own to this journal that came before
// the takeover, see [run.Act], and all of these have been applied here: one that is silent for longer begins none any more.
// They get that time once more to come where they are going. With unknown somebody else may have had the task until lately.
func (s *Engine) lastBegin(owner string, unknown bool) time.Duration {
	silent := time.Duration(0)
	if j, ok := s.broker.Journal().(interface{ Silent(string) time.Duration }); ok && !unknown {
		_, node, _ := strings.Cut(owner, "@")
		silent = j.Silent(node)
	}
	return max(0, 2*lease.Length-silent)
}

// takeUp prepares a task to go on; the fault says why it can't.
func (s *Engine) takeUp(t *taskRun, rec *run.Task) *fault.Fault {
	t.under = rec.Under
	if rec.Crashed >= maxCrashed && !s.tasks.owner.left(rec.Owner) {
		return cantGoOn(fmt.Sprintf("%d servers ended while they did it", rec.Crashed+1))
	}
	unread := func(err error) *fault.Fault {
		f := cantGoOn(err.Error())
		f.Cause = err
		return f
	}
	arguments, err := rec.Arguments(s.broker.Journal())
	if err != nil {
		return unread(err)
	}
	t.call.Arguments = arguments
	if t.call.Tools, err = s.tools.Again(rec.AsOf); err != nil {
		return unread(err)
	}
	begun, _, err := s.broker.Journal().Read(journal.Query{Run: rec.ID, Kind: journal.RunStarted, Limit: 1})
	if err != nil {
		return unread(err)
	}
	if len(begun) == 0 && rec.Begun {
		return cantGoOn("what it had done is not on record any more")
	}
	name, version := rec.Call.Tool, 0
	if len(begun) > 0 {
		if t.record, err = run.ReadRecord(s.broker.Journal(), rec.ID); errors.Is(err, run.ErrNoRecord) {
			return cantGoOn(err.Error())
		} else if err != nil {
			return unread(err)
		} else if t.record.End != nil {
			return cantGoOn("the run has ended")
		}
		name, version = t.record.Tool, t.record.Version
		t.call.Tools = t.call.Tools.Answering(name, t.record.Answers)
	}
	if version == 0 { // it waited for its turn, or is inline code
		return nil
	}
	if _, ok := s.tools.Snapshot().Get(name); !ok {
		f := cantGoOn(fmt.Sprintf("the tool %q was retired", name))
		f.Kind = fault.NoTool
		return f
	}
	tool, err := s.tools.Version(registry.Ref{Name: name, Version: version})
	if err != nil {
		return cantGoOn(wire.AsFault(err).Message)
	}
	if state, why := s.StateOf(tool); state != registry.StateReady {
		f := cantGoOn(fmt.Sprintf("the tool %q may not act now: %s", name, why))
		f.Kind = fault.Denied
		return f
	}
	return nil
}

// newestCancelled is the number of the last event that cancelled a task.
func (s *Engine) newestCancelled() uint64 {
	last, _, err := s.broker.Journal().Read(journal.Query{Kind: journal.TaskCancelled, Limit: 1, Last: true})
	if err != nil || len(last) == 0 {
		return 0
	}
	return last[0].Seq
}

// watchTasks ends what others cancelled and what took too long, and starts what is scheduled.
func (s *Engine) watchTasks(ctx context.Context, seen uint64) {
	tick := time.NewTicker(2 * Glance)
	defer tick.Stop()
	known := map[string]*due{}
	looked, gone, idle := time.Time{}, 0, s.idle()
	all, told := false, false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s.tasks.mu.Lock()
		under := s.tasks.under
		var late []*taskRun
		for _, t := range s.tasks.all {
			if time.Since(t.created) > TaskLifetime {
				late = append(late, t)
			}
		}
		s.tasks.mu.Unlock()
		for _, t := range late {
			if err := t.end("its time is over"); err != nil {
				s.log.Error("that a task is cancelled could not be recorded", "task", t.id, "error", err)
			}
		}
		if under > 0 {
			events, _, err := s.broker.Journal().Read(journal.Query{Kind: journal.TaskCancelled, After: seen})
			if err != nil {
				s.log.Debug("what was cancelled can't be read", "error", err)
			}
			for i := range events {
				seen = events[i].Seq
				if t := s.tasks.find(events[i].Run); t != nil && !t.cancels() { // cancelled by somebody else
					go t.stop()
				}
			}
		}
		if s.opts.Node != nil {
			lost, was := s.opts.Node.Lost(), idle
			if idle = s.idle(); was && !idle || (lost > 0 || !all) && (lost != gone || time.Since(looked) > lookAgain || !all && time.Since(looked) > tryAgain) {
				err := s.goOn(ctx)
				if all, looked = err == nil, time.Now(); !all {
					level := slog.LevelError
					if told { // once until it can again
						level = slog.LevelDebug
					}
					s.log.Log(ctx, level, cantTakeUp, "error", err)
				}
				told = !all
			}
			if gone = lost; lost == 0 {
				s.tasks.gone, s.tasks.over = nil, nil
			}
		}
		if s.tasks.owner != nil && !idle {
			s.startScheduled(ctx, known, time.Now())
		}
	}
}

// idle reports whether this server leaves tasks to other nodes, since it may not act.
func (s *Engine) idle() bool { return s.opts.Node != nil && s.opts.Node.Unlike() != nil }
