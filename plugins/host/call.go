package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/internal/wire"
	pluginv1 "github.com/mcp-pif/mcp-pif/proto/mcppif/plugin/v1"
)

// Perform acts, by the process of the act's grant. It returns within two seconds
// of the deadline or the end of ctx, whatever the plugin does: a request is told
// to end, and a process that goes on with it after a second is killed.
//
// What is read only is tried once more on a new process when the first one died;
// nothing else is. Where Most is 0 the host's limit on messages holds.
func (h *Host) Perform(ctx context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
	if a.Held == nil || a.Held.Grant == nil || a.Operation == nil {
		return nil, 0, fault.New(fault.Internal, "an effect without a grant reached the plugin host")
	}
	g := a.Held.Grant
	if !a.Deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, a.Deadline)
		defer cancel()
	}
	attempt := wire.Attempt{Operation: a.Operation.Name, Most: a.Most}
	s, err := h.seat(g)
	if err != nil {
		return nil, 0, wire.Fault(err, attempt)
	}
	attempt.Clean = s.clean
	flags := flagsOf(s.source.Manifest, a)
	attempt.Repeatable = flags.ReadOnly || flags.Idempotent
	revoked := g.Context()
	v, size, sent, err := s.perform(ctx, a)
	if err != nil && mayRepeat(err, sent, flags) && ctx.Err() == nil && revoked.Err() == nil {
		v, size, sent, err = s.perform(ctx, a)
	}
	if revoked.Err() != nil {
		return nil, 0, revokedFault(a.Operation.Name, sent && !attempt.Repeatable)
	}
	if err != nil {
		return nil, 0, wire.Fault(err, attempt)
	}
	return v, size, nil
}

// flagsOf is what an act can do at worst, by the manifest that the host was given.
func flagsOf(m *caps.Manifest, a run.Act) caps.Flags {
	name := a.Verb
	if name == "" {
		name = a.Operation.Verb
	}
	v, _ := m.Verb(name) // none: changes things, and not twice the same
	return v.Flags
}

// mayRepeat reports whether a request is safe on a new process: it wasn't sent, or
// it only reads; and the old one died.
func mayRepeat(err error, sent bool, flags caps.Flags) bool {
	if sent {
		return flags.ReadOnly && status.Code(err) == codes.Unavailable
	}
	opening, ok := errors.AsType[errOpening](err)
	return ok && status.Code(opening.cause) == codes.Unavailable
}

// revokedFault is the fault of an act whose grant was taken back meanwhile.
func revokedFault(operation string, unknown bool) *fault.Fault {
	if unknown {
		f := fault.New(fault.OutcomeUnknown, operation+": the operator took the capability back while it was under way; nobody knows whether it was done")
		f.Hint = "Tell the user; it can't be found out with this capability."
		return f
	}
	f := fault.New(fault.Denied, operation+": the operator took the capability back")
	f.Hint = "Don't retry; ask the operator."
	return f
}

// perform makes one attempt. sent is whether the request was given to a process.
func (s *seat) perform(ctx context.Context, a run.Act) (v value.Value, size int64, sent bool, err error) {
	args, err := wire.EncodeValue(a.Args, s.host.most-wire.MaxOverhead)
	if err != nil {
		return nil, 0, false, wire.NotSent{Reason: fmt.Sprintf("its arguments can't be sent: %v", err)}
	}
	p, err := s.running(ctx)
	if err != nil {
		return nil, 0, false, err
	}
	it, done, err := p.handle(ctx, a.Held, a.Denies)
	if err != nil {
		return nil, 0, false, err
	}
	defer done()
	if ctx.Err() != nil {
		return nil, 0, false, wire.NotSent{Reason: "there was no time left for it"}
	}
	b, err := p.invoke(ctx, a, &pluginv1.InvokeRequest{
		Handle: it.number, Operation: a.Operation.Name, Arguments: args, IdempotencyKey: a.Key,
		MaxOutcomeBytes: max(0, a.Most),
	})
	if err != nil {
		return nil, 0, true, err
	}
	v, err = wire.DecodeValue(b)
	return v, int64(len(b)), true, err
}

// invoke makes one request, and gives the encoded value of its answer.
func (p *process) invoke(ctx context.Context, a run.Act, r *pluginv1.InvokeRequest) ([]byte, error) {
	p.underway.Add(1)
	defer p.underway.Add(-1)
	timing := &p.seat.host.timing
	r.Call = p.lastCall.Add(1)
	if at, ok := ctx.Deadline(); ok {
		r.TimeoutNs = max(1, int64(time.Until(at)))
	}
	most := p.seat.host.most
	if a.Most > 0 && a.Most < int64(most-wire.MaxOverhead) {
		most = int(a.Most) + wire.MaxOverhead
	}
	// The request outlives ctx by the grace: what it answers to being told to end
	// is more than that it was told.
	call, giveUp := context.WithCancelCause(context.WithoutCancel(ctx))
	defer giveUp(nil)
	over := make(chan struct{})
	defer close(over)
	defer context.AfterFunc(ctx, func() { p.conclude(r.Call, over, giveUp) })()
	watch := time.AfterFunc(timing.watch, func() { p.watch(over) })
	defer watch.Stop()

	var answer *pluginv1.InvokeResponse
	var err error
	if a.Progress != nil && p.stream {
		answer, err = p.listen(call, r, a.Progress, grpc.MaxCallRecvMsgSize(most))
	} else {
		answer, err = p.plugin.Invoke(call, r, grpc.MaxCallRecvMsgSize(most))
	}
	if err != nil {
		if cause := context.Cause(call); cause != nil {
			return nil, cause
		}
		return nil, err
	}
	switch outcome := answer.GetOutcome().(type) {
	case *pluginv1.InvokeResponse_Value:
		if a.Most > 0 && int64(len(outcome.Value)) > a.Most {
			return nil, wire.ErrTooLarge
		}
		return outcome.Value, nil
	case *pluginv1.InvokeResponse_Failure:
		return nil, wire.PluginFailure{Failure: outcome.Failure}
	}
	return nil, wire.ErrAnswer
}

// How much of a request's progress is passed on: so many at once, and then one in
// so long. The rest is dropped.
const (
	newsBurst = 32
	newsEvery = 100 * time.Millisecond
)

// listen makes a request whose progress somebody hears.
func (p *process) listen(ctx context.Context, r *pluginv1.InvokeRequest, hear func(string), o ...grpc.CallOption) (*pluginv1.InvokeResponse, error) {
	stream, err := p.plugin.InvokeStream(ctx, r, o...)
	if err != nil {
		return nil, err
	}
	room, since := float64(newsBurst), time.Now()
	for {
		event, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil, wire.ErrAnswer
		}
		if err != nil {
			return nil, err
		}
		switch e := event.GetEvent().(type) {
		case *pluginv1.InvokeStreamResponse_Progress:
			now := time.Now()
			room = min(newsBurst, room+float64(now.Sub(since))/float64(newsEvery))
			since = now
			if room >= 1 {
				room--
				hear(wire.Line(p.seat.clean(e.Progress), wire.MaxProgress))
			}
		case *pluginv1.InvokeStreamResponse_Outcome:
			if e.Outcome == nil {
				return nil, wire.ErrAnswer
			}
			return e.Outcome, nil
		}
	}
}

// conclude ends a request whose time is over: the plugin is told, and if it goes on,
// it is killed.
func (p *process) conclude(number uint64, over <-chan struct{}, giveUp context.CancelCauseFunc) {
	timing := &p.seat.host.timing
	if p.cancel {
		go func() {
			ctx, cancel := context.WithTimeout(p.seat.host.ctx, timing.grace)
			defer cancel()
			// If it isn't heard, the process is killed.
			_, _ = p.plugin.Cancel(ctx, &pluginv1.CancelRequest{Call: number})
		}()
	}
	select {
	case <-over:
	case <-time.After(timing.grace):
		giveUp(wire.ErrStopped)
		p.kill("a request went on after its end")
	}
}

// watch kills a process that has a request and doesn't answer at all. It asks
// twice: a machine may be busy.
func (p *process) watch(over <-chan struct{}) {
	timing := &p.seat.host.timing
	for missed := 0; missed < 2; {
		if p.lives(timing.health) {
			missed = 0
		} else {
			missed++
			continue
		}
		select {
		case <-over:
			return
		case <-time.After(timing.watch):
		}
	}
	select {
	case <-over:
	default:
		p.kill("it doesn't answer any more")
	}
}
