package mcpserver

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
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
	// Processors is what it computes on; nil: all there are.
	Processors *Processors
}

// Replay does a recorded call again, through the very code that did it, with the
// limits of then. Nothing is done in the world, and nothing is decided; the answer
// is what the caller got, where the verdict says so.
func Replay(ctx context.Context, o ReplayOptions) (a Answer, v run.Verdict) {
	rec := o.Replay.Record()
	b := rec.Bounds
	s := &Server{
		limits: Limits{MaxSteps: b.MaxSteps, MaxMemory: b.MaxMemory, MaxDepth: b.MaxDepth, Result: b.Result, Timeout: b.Timeout}.orDefault(),
		broker: o.Replay.Broker(), log: slog.New(slog.DiscardHandler), walked: o.Walked,
	}
	s.slots = slots{free: s.limits.Runs, most: together, room: s.limits.Waiting}
	if s.whole, s.cpu = o.Whole, o.Processors; s.cpu == nil {
		s.cpu = NewProcessors()
	}
	call := rec.Call
	if o.Call.Tool != "" {
		call = o.Call
	} else {
		s.record = rec
	}
	a = s.redo(ctx, Call{Tool: call.Tool, Arguments: json.RawMessage(call.Arguments), Tools: o.Tools.Answering(rec.Tool, rec.Answers)})
	return a, o.Replay.Verdict(a.Fault)
}

// redo is Call for what can be recorded as a run.
func (s *Server) redo(ctx context.Context, c Call) (a Answer) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("recovered from a panic", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			a = s.defect(c.Tool, p)
		}
	}()
	c.ticket = s.tickets.Add(1)
	switch {
	case c.Tool == "run":
		return s.run(ctx, c)
	case c.Tool == promptCall:
		return s.runPrompt(ctx, c)
	case fixedNamed(c.Tool) != nil:
		return failed(&fault.Fault{Kind: fault.InvalidRequest, Message: fmt.Sprintf("%q runs nothing", c.Tool)})
	}
	return s.direct(ctx, c)
}

// digest is the hash of all that the caller is given: of the texts and of the
// structured content, each behind its length in eight bytes.
func (a *Answer) digest() journal.Hash {
	var buf [1024]byte
	size := len(a.Text) + len(a.Structured) + 16
	for _, more := range a.More {
		size += len(more) + 8
	}
	if size > len(buf) {
		h := sha256.New()
		part := func(n int, write func()) {
			h.Write(binary.BigEndian.AppendUint64(buf[:0], uint64(n)))
			write()
		}
		part(len(a.Text), func() { _, _ = io.WriteString(h, a.Text) })
		for _, more := range a.More {
			part(len(more), func() { _, _ = io.WriteString(h, more) })
		}
		part(len(a.Structured), func() { h.Write(a.Structured) })
		return journal.Hash(h.Sum(nil))
	}
	b := append(binary.BigEndian.AppendUint64(buf[:0], uint64(len(a.Text))), a.Text...)
	for _, more := range a.More {
		b = append(binary.BigEndian.AppendUint64(b, uint64(len(more))), more...)
	}
	return sha256.Sum256(append(binary.BigEndian.AppendUint64(b, uint64(len(a.Structured))), a.Structured...))
}

// WithCode gives a recorded call of run, which evaluates inline code, with other
// code in its place: JSON, or the text form.
func WithCode(c run.Call, code []byte) (run.Call, error) {
	a, f := readArguments("run", c.Arguments, runArguments...)
	if f != nil {
		return run.Call{}, f
	}
	o := begin()
	for _, m := range a.members {
		switch {
		case m.name != "code":
			o = o.raw(m.name, m.value)
		case json.Valid(code):
			o = o.raw("code", code)
		default:
			o = o.text("code", string(code))
		}
	}
	return run.Call{Tool: "run", Arguments: o.end()}, nil
}
