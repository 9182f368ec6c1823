package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/mcp-pif/mcp-pif/caps/flow"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/queue"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/step"
)

// ReplayOptions is what a recorded run is done again with.
type ReplayOptions struct {
	// Replay answers what it asks for.
	Replay *run.Replay
	// Tools is the tools as they were; see [registry.Registry.At].
	Tools *registry.Snapshot
	// Call is done in place of the recorded one where its Tool isn't empty: for
	// other code.
	Call run.Call
	// Walked, if it isn't nil, is given what the run evaluated, for [step.New]. It may
	// be walked through when the replay is over.
	Walked *[]step.Round
	// Whole keeps all that can be read on of a large result, not only what is shown.
	Whole bool
	// For is the server that asks for it: it computes in that one's turns, and draws on its share of the pool. nil: it is alone.
	For *Engine
}

// Replay does a recorded call again, through the very code that did it, with the
// limits of then. Nothing is done in the world, and nothing is decided; the answer
// is what the caller got, where the verdict says so.
func Replay(ctx context.Context, o ReplayOptions) (a wire.Answer, v run.Verdict) {
	rec := o.Replay.Record()
	b := rec.Bounds
	s := &Engine{
		limits: Limits{MaxSteps: b.MaxSteps, MaxMemory: b.MaxMemory, MaxDepth: b.MaxDepth, Result: b.Result, Timeout: b.Timeout}.orDefault(),
		broker: o.Replay.Broker(), log: slog.New(slog.DiscardHandler), walked: o.Walked,
	}
	s.slots = queue.NewSlots(s.limits.Runs, together, s.limits.Waiting)
	if s.whole, s.as = o.Whole, o.For; s.as == nil {
		s.as, s.cpu = s, queue.NewProcessors()
	} else {
		s.cpu = o.For.cpu
	}
	call := rec.Call
	if o.Call.Tool != "" {
		call = o.Call
	} else {
		s.record = rec
	}
	ctx = context.WithValue(ctx, taskKey{}, (*taskRun)(nil)) // a task that asks for it isn't what is done again
	a = s.redo(ctx, Call{Tool: call.Tool, Arguments: json.RawMessage(call.Arguments), Tools: o.Tools.Answering(rec.Tool, rec.Answers)})
	v = o.Replay.Verdict(a.Fault)
	v.Memory = s.most.Load()
	return a, v
}

// redo is Call for what can be recorded as a run.
func (s *Engine) redo(ctx context.Context, c Call) wire.Answer {
	c.Ticket = s.Ticket()
	return s.guarded(c.Tool, func() wire.Answer {
		switch {
		case c.Tool == "run":
			return s.run(ctx, c)
		case c.Tool == promptCall:
			return s.runPrompt(ctx, c)
		case wire.ToolNamed(c.Tool) != nil:
			return wire.Failed(&fault.Fault{Kind: fault.InvalidRequest, Message: fmt.Sprintf("%q runs nothing", c.Tool)})
		}
		return s.direct(ctx, c)
	})
}

// WithCode gives a recorded call of run, which evaluates inline code, with other
// code in its place: JSON, or the text form.
func WithCode(c run.Call, code []byte) (run.Call, error) {
	a, f := wire.Read("run", c.Arguments, runArguments...)
	if f != nil {
		return run.Call{}, f
	}
	o := wire.Begin()
	for _, m := range a.Members {
		switch {
		case m.Name != "code":
			o = o.Raw(m.Name, m.Value)
		case json.Valid(code):
			o = o.Raw("code", code)
		default:
			o = o.Text("code", string(code))
		}
	}
	return run.Call{Tool: "run", Arguments: o.End()}, nil
}

// replayed is the answer of a run that ended, by its record; it is sealed once.
func (s *Engine) replayed(ctx context.Context, id string) (wire.Answer, error) {
	end, f := s.tasks.alone(ctx, "run "+id)
	if f != nil {
		return wire.Answer{}, f
	}
	defer end()
	a, kept, err := s.answered(ctx, id)
	switch {
	case err != nil:
		return a, err
	case kept != 0:
		return s.sealEnded(id, a, kept), nil
	}
	return s.offer(a, s.resultID(id)), nil
}

// sealEnded is [Engine.seal] of what a run gave that ended, once.
func (s *Engine) sealEnded(id string, a wire.Answer, kept flow.Atoms) wire.Answer {
	if one := s.sealedBefore(id, kept, func(one *run.Sealed) bool {
		return one.Lost || one.Text == a.First() && one.Failed == (a.Fault != nil)
	}); one != nil {
		return s.sealedAnswer(one)
	}
	begun, _, err := s.broker.Journal().Read(journal.Query{Run: id, Kind: journal.RunStarted, Limit: 1})
	t := &task{}
	var of struct {
		Tool    string
		Version int
	}
	if err == nil && len(begun) > 0 && json.Unmarshal(begun[0].Data, &of) == nil && of.Tool != "" {
		if t.tool, err = s.tools.Version(registry.Ref{Name: of.Tool, Version: of.Version}); err != nil {
			t.tool = nil
		}
	}
	_, a = s.keep(id, t, a, flow.Both(kept))
	return a
}

// notNow reports whether a run couldn't be done again for want of room, or since nobody waits for it any more.
func notNow(err error) bool {
	f, ok := errors.AsType[*fault.Fault](err)
	return ok && (f.Kind == fault.Overloaded || f.Kind == fault.Cancelled)
}

// noRoom is why a run isn't done again now for who asks with ctx.
func noRoom(ctx context.Context) *fault.Fault {
	if ctx.Err() != nil {
		return queue.Cancelled()
	}
	return fault.New(fault.Overloaded, "there is no room now to do the run again for what it gave").
		Hinted("Call again when fewer of your runs are under way.")
}

// sealedBefore finds what was sealed of a run, with labels; nil: there is none.
func (s *Engine) sealedBefore(id string, under flow.Atoms, is func(*run.Sealed) bool) *run.Sealed {
	all, err := run.SealedOf(s.broker.Journal(), id)
	if i := slices.IndexFunc(all, func(one *run.Sealed) bool { return is(one) && flow.Both(under)&^one.Label(s.broker.Flow()) == 0 }); err == nil && i >= 0 {
		return all[i]
	}
	return nil
}

// answered is the same with all of a large result; what it is of that may not be shown is kept.
func (s *Engine) answered(ctx context.Context, id string) (a wire.Answer, kept flow.Atoms, err error) {
	if e, err := run.ReadEnd(s.broker.Journal(), id); err == nil && e != nil && e.Sealed != "" {
		one, err := run.FindSealed(ctx, s.broker.Journal(), e.Sealed)
		if ctx.Err() != nil {
			return a, 0, queue.Cancelled()
		} else if err != nil {
			return a, 0, noSealed(e.Sealed)
		}
		return s.sealedAnswer(one), 0, nil
	}
	late, stop := context.WithTimeout(ctx, mostWait)
	f := s.redoes.Enter(late, s.Ticket(), 0)
	if stop(); f != nil {
		return a, 0, noRoom(ctx)
	}
	leave := sync.OnceFunc(func() { s.redoes.Leave(0) })
	defer leave()
	rec, err := run.ReadRecord(s.broker.Journal(), id)
	if err != nil {
		return a, 0, err
	}
	under, kept, err := s.tellsOf(id, rec)
	if err != nil {
		return a, 0, err
	}
	tools, err := s.tools.At(rec.AsOf)
	if err != nil {
		return a, 0, err
	}
	if rec.Tool != "" {
		if then, err := s.tools.WithVersion(tools, registry.Ref{Name: rec.Tool, Version: rec.Version}); err == nil {
			tools = then
		}
	}
	late, stop = context.WithTimeout(ctx, mostWait)
	f = s.slots.Enter(late, s.Ticket(), len(rec.Call.Arguments))
	if stop(); f != nil {
		return a, 0, noRoom(ctx)
	}
	defer s.slots.Leave(len(rec.Call.Arguments))
	leave()
	p := run.NewReplay(rec, false)
	a, v := Replay(ctx, ReplayOptions{Replay: p, Tools: tools, Whole: true, For: s})
	switch {
	case v.OK():
	case v.Verdict == run.Interrupted:
		return a, 0, noRoom(ctx)
	case v.Verdict != run.Incomplete || rec.End == nil || rec.End.Answer != nil:
		return a, 0, fmt.Errorf("%s", v.Text)
	case rec.End.Fault != nil:
		a = wire.Failed(rec.End.Fault)
	}
	if p := s.broker.Flow(); p != nil && p.Keeps(p.Known(under)) {
		a = a.Uncounted()
	}
	a.Under = under
	return s.orGone(Call{Tool: rec.Call.Tool, Tools: tools}, a), kept, nil
}
