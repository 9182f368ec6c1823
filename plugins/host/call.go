package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/lease"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/internal/wire"
	pluginv1 "github.com/mcp-pif/mcp-pif/proto/mcppif/plugin/v1"
)

// lapsePause is how long is waited before a request is made again whose lease was over.
const lapsePause = 10 * time.Millisecond

// Perform acts, by the process of the act's grant. It returns within two seconds
// of the deadline or the end of ctx, whatever the plugin does: a request is told
// to end, and a process that goes on with it after a second is killed.
//
// What is read only is tried once more on a new process when the first one died;
// nothing else is. Where Most is 0 the host's limit on messages holds. The bytes are those
// of the outcome, or of the value that a failure brings.
func (h *Host) Perform(ctx context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
	if a.Held == nil || a.Held.Grant == nil || a.Operation == nil {
		return nil, 0, fault.New(fault.Internal, "an effect without a grant reached the plugin host")
	}
	g := a.Held.Grant
	a.Most = min(a.Most, int64(h.most-wire.MaxOverhead)) // more can't come
	attempt := wire.Attempt{Operation: a.Operation.Name, Most: a.Most}
	s, err := h.seat(g)
	if err != nil {
		return nil, 0, wire.Fault(err, attempt)
	}
	attempt.Clean = s.clean
	flags := flagsOf(s.source.Manifest, a)
	revoked := g.Context()
	if revoked == nil { // a grant that wasn't resolved can't be revoked
		revoked = context.Background()
	}
	if revoked.Err() != nil {
		return nil, 0, revokedFault(a.Operation.Name, false)
	}
	if s.source.Shared { // the process goes on, for the others
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(revoked, cancel)()
	}
	v, size, sent, err := s.perform(ctx, a)
	if err != nil && mayRepeat(err, sent, flags) && ctx.Err() == nil && revoked.Err() == nil {
		v, size, sent, err = s.perform(ctx, a)
	}
	attempt.Repeatable = !sent || flags.ReadOnly || flags.Idempotent
	if revoked.Err() != nil {
		return nil, 0, revokedFault(a.Operation.Name, !attempt.Repeatable)
	}
	if err != nil {
		if !sent && errors.Is(err, wire.ErrEnded) {
			err = wire.NotSent{Reason: "the plugin's process ended before the request"}
		}
		f := wire.Fault(err, attempt)
		if failure, ok := errors.AsType[wire.PluginFailure](err); ok && f.Raised != nil {
			size = int64(len(failure.GetValue()))
		}
		return nil, size, h.scrubFault(f)
	}
	return h.secrets.Scrubber().Value(v), size, nil
}

// flagsOf is what an act can do at worst, by the manifest that the host was given.
func flagsOf(m *caps.Manifest, a run.Act) caps.Flags {
	args, _ := a.Args.(*value.Record)
	return m.FlagsOf(a.Operation, args)
}

// mayRepeat reports whether a request is safe on a new process: it wasn't sent, or
// it only reads; and the old one died.
func mayRepeat(err error, sent bool, flags caps.Flags) bool {
	return errors.Is(err, wire.ErrEnded) && (!sent || flags.ReadOnly)
}

// revokedFault is the fault of an act whose grant was taken back meanwhile.
func revokedFault(operation string, unknown bool) *fault.Fault {
	if unknown {
		f := fault.New(fault.OutcomeUnknown, operation+": the capability was revoked by the operator while it was under way; it is unknown whether it was done")
		f.Hint = "Tell the user; it can't be found out with this capability."
		return f
	}
	f := fault.New(fault.Denied, operation+": the capability was revoked by the operator")
	f.Hint = "Don't retry; ask the operator."
	return f
}

// perform makes one attempt. sent is whether the request was given to a process.
func (s *seat) perform(ctx context.Context, a run.Act) (v value.Value, size int64, sent bool, err error) {
	if a.Args == nil {
		a.Args = &value.Record{}
	}
	secrets, extra := secretMessages(a.Secrets)
	args, err := wire.EncodeValue(a.Args, s.host.most-wire.MaxOverhead-extra)
	if err != nil {
		return nil, 0, false, wire.NotSent{Reason: fmt.Sprintf("its arguments can't be sent: %v", err)}
	}
	p, it, done, err := s.opened(ctx, a)
	if err != nil {
		return nil, 0, false, err
	}
	defer done()
	if len(secrets) > 0 && !p.secrets {
		return nil, 0, false, errNoSecrets
	}
	request := &pluginv1.InvokeRequest{
		Handle: it.number, Operation: a.Operation.Name, IdempotencyKey: a.Key, MaxOutcomeBytes: max(0, a.Most),
		Secrets: secrets, Hops: uint32(run.Hops(ctx)),
	}
	if a.Ask != nil && p.questions && p.stream && s.source.Asks != nil && s.source.Asks(a.Held.Grant) {
		request.Questions = run.MaxQuestions
	}
	room := a.Room
	if s.source.Local && a.Most > wire.LargeOutcome && room != nil && flagsOf(s.source.Manifest, a).ReadOnly {
		request.MaxOutcomeBytes, a.Room = wire.LargeOutcome, nil
	}
	var answer *wire.Response
	for again := true; again; {
		if a.Lease != nil { // as late as this process can ask; the plugin looks once more
			until, err := a.Lease(ctx)
			if err != nil {
				return nil, 0, false, wire.NotSent{Reason: err.Error()}
			}
			request.LeaseNs = int64(until)
		}
		if !a.Deadline.IsZero() {
			left := time.Until(a.Deadline)
			if left <= 0 {
				return nil, 0, false, wire.NotSent{Reason: "there was no time left for it"}
			}
			request.TimeoutNs = int64(left)
		}
		if ctx.Err() != nil {
			return nil, 0, false, wire.NotSent{Reason: "it was cancelled before"}
		}
		request.Call = p.lastCall.Add(1)
		if args == nil { // once more; they aren't held while the plugin acts
			args, _ = wire.EncodeValue(a.Args, s.host.most)
		}
		sent := &wire.Request{Head: request, Arguments: args}
		args = nil
		answer, err = p.invoke(ctx, a, sent)
		again = err == nil && request.LeaseNs != 0 && answer.Failure.GetCode() == wire.Lapsed &&
			lease.Time(request.LeaseNs).Over() // else it isn't so, and would be said again
		if err == nil && answer.Failure.GetCode() == "too_large" && request.MaxOutcomeBytes < a.Most {
			if request.MaxOutcomeBytes == wire.LargeOutcome && answer.Size > wire.LargeOutcome {
				request.MaxOutcomeBytes = min(a.Most, int64(answer.Size))
			} else { // it needs more than it said
				request.MaxOutcomeBytes = a.Most
			}
			again = true
			if err := waitFor(ctx, room, a.Deadline, request.MaxOutcomeBytes, false); errors.Is(err, errNoRoom) {
				return nil, 0, false, wire.NotSent{Reason: err.Error()}
			}
		} else if again {
			select {
			case <-ctx.Done():
			case <-time.After(lapsePause):
			}
		}
	}
	switch {
	case err != nil:
	case answer.Err != nil:
		err = answer.Err
	case answer.Failure != nil:
		err = wire.PluginFailure{Failure: answer.Failure}
	case a.Most > 0 && int64(answer.Size) > a.Most:
		err = wire.ErrTooLarge
	default:
		return answer.Value, int64(answer.Size), true, nil
	}
	return nil, 0, true, err
}

// opened gives the process with the act's capability open.
func (s *seat) opened(ctx context.Context, a run.Act) (p *process, it *handle, done func(), err error) {
	if p, err = s.running(ctx, a.Deadline); err != nil {
		return nil, nil, nil, err
	}
	it, done, err = p.handle(ctx, a)
	return p, it, done, err
}

// invoke makes one request under guard.
func (p *process) invoke(ctx context.Context, a run.Act, r *wire.Request) (*wire.Response, error) {
	p.underway.Add(1)
	defer p.underway.Add(-1)
	most := p.seat.host.most
	if a.Most > 0 && a.Most < int64(most-wire.MaxOverhead) {
		most = int(a.Most) + wire.MaxOverhead
	}
	// The request outlives ctx by the grace: what it answers to being told to end
	// is more than that it was told.
	call, giveUp := context.WithCancelCause(context.WithoutCancel(ctx))
	defer giveUp(nil)
	g := p.guard(ctx, r.Head.Call, a.Deadline, giveUp)
	defer g.lift()

	var answer *wire.Response
	var err error
	// Who waits for room waits no longer than the request has time.
	room := func(bytes int64, begun bool) error {
		return waitFor(ctx, a.Room, g.until(), min(bytes, int64(most)), begun)
	}
	// What comes from elsewhere is read when there is room.
	elsewhere := func(privilege string) bool { return privilege == "network" || privilege == "processes" }
	waits := a.Room != nil && p.stream && p.rooms && slices.ContainsFunc(p.seat.source.Manifest.Privileges, elsewhere)
	if a.Progress != nil && p.stream || r.Head.Questions > 0 || waits {
		l := listener{hear: a.Progress, ask: func(q *pluginv1.Question) error { return p.ask(ctx, call, r, a, g, q) }}
		l.room, l.going = room, func() bool { return ctx.Err() == nil && (g.until().IsZero() || time.Now().Before(g.until())) }
		answer, err = p.listen(call, r, l, most)
	} else {
		answer, err = p.hear(call, r, room, most)
	}
	if err == nil && errors.Is(answer.Err, wire.ErrLarger) {
		p.kill("an answer had more bytes than it said")
	}
	if err != nil {
		if cause := context.Cause(call); cause != nil {
			return nil, cause
		}
		return nil, p.ending(err)
	}
	return answer, nil
}

var errNoRoom = errors.New("too many effects are under way")

// waitFor waits for room until a time, zero: for as long as it takes; nil is room that everybody has. The error is errNoRoom, or that it is over.
func waitFor(ctx context.Context, room func(context.Context, int64, bool) bool, until time.Time, bytes int64, begun bool) error {
	if !until.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, until)
		defer cancel()
	}
	if room == nil || room(ctx, bytes, begun) {
		return nil
	}
	return cmp.Or(ctx.Err(), errNoRoom)
}

// sizeUnknown is what an answer is taken to have of which the plugin doesn't say that. A process may say too little, so
// trustedAtOnce of its answers at once are believed: beyond that a small one is taken to have sizeUnknown, and a large one waits.
const (
	sizeUnknown   = 1 << 20
	trustedAtOnce = 8
)

// hear makes a request whose answer of so many bytes at most is waited for, and has it come when there is room. ctx ends if
// the request was given up.
func (p *process) hear(ctx context.Context, r *wire.Request, room func(bytes int64, begun bool) error, most int) (*wire.Response, error) {
	stream, err := p.request(ctx, pluginv1.Plugin_Invoke_FullMethodName, &grpc.StreamDesc{}, r, most)
	if err != nil {
		return nil, err
	}
	answer, takes := &wire.Response{Size: sizeUnknown}, sizeUnknown
	if head, err := stream.Header(); err == nil && p.sizes {
		size, _ := strconv.Atoi(strings.Join(head.Get(wire.Size), ""))
		answer.Size = max(0, min(size, most))
		answer.Limit = max(answer.Size, wire.LargeOutcome)
		takes = answer.Size
		if takes >= wire.LargeOutcome { // small ones don't wait behind what waits for room
			_ = room(int64(takes), true)
			select {
			case p.trusted <- struct{}{}:
				defer func() { <-p.trusted }()
			case <-ctx.Done():
			}
			return answer, stream.RecvMsg(answer)
		}
		select {
		case p.trusted <- struct{}{}:
			defer func() { <-p.trusted }()
		default:
			takes = sizeUnknown
		}
	}
	_ = room(int64(takes), true) // it comes all the same
	return answer, stream.RecvMsg(answer)
}

// request makes one whose answers have so many bytes at most.
func (p *process) request(ctx context.Context, method string, d *grpc.StreamDesc, r *wire.Request, most int) (grpc.ClientStream, error) {
	stream, err := p.conn.NewStream(ctx, d, method, grpc.MaxCallRecvMsgSize(most), grpc.ForceCodecV2(wire.Codec), grpc.StaticMethod())
	if err == nil {
		err = stream.SendMsg(r)
		r.Arguments = nil // they aren't held while the plugin acts
	}
	return stream, err
}

// How much of a request's progress is passed on: so many at once, and then one in
// so long. The rest is dropped.
const (
	newsBurst = 32
	newsEvery = 100 * time.Millisecond
)

// A listener takes what a request says before its outcome.
type listener struct {
	hear func(string) // nil: nobody hears progress
	ask  func(*pluginv1.Question) error
	room func(bytes int64, begun bool) error
	// going reports whether the request wasn't told to end: one that was doesn't wait for room.
	going func() bool
}

// listen makes a request whose progress somebody hears, or that may put questions or wait for room.
func (p *process) listen(ctx context.Context, r *wire.Request, l listener, most int) (*wire.Response, error) {
	stream, err := p.request(ctx, pluginv1.Plugin_InvokeStream_FullMethodName, &grpc.StreamDesc{ServerStreams: true}, r, most)
	if err != nil {
		return nil, err
	}
	room, since, asked, had, said, counted := float64(newsBurst), time.Now(), uint32(0), uint64(0), uint64(0), false
	for {
		var event wire.Event
		if counted { // the SDK doesn't ask again for what is less than twice as large
			event.Limit = max(2*int(min(had, uint64(most))), wire.LargeOutcome)
		}
		if err := stream.RecvMsg(&event); errors.Is(err, io.EOF) {
			return nil, wire.ErrAnswer
		} else if err != nil {
			return nil, err
		}
		if answer := event.Outcome; answer != nil {
			if answer.Size > wire.LargeOutcome && !counted { // it comes where room was refused, too
				_ = l.room(int64(answer.Size), true)
				if p.rooms && uint64(answer.Size) > 2*said && l.going() {
					return &wire.Response{Err: wire.ErrLarger}, nil
				}
			}
			return answer, nil
		}
		switch e := event.Other.GetEvent().(type) {
		case *pluginv1.InvokeStreamResponse_Progress:
			now := time.Now()
			room = min(newsBurst, room+float64(now.Sub(since))/float64(newsEvery))
			since = now
			if room >= 1 && l.hear != nil {
				room--
				l.hear(p.seat.host.scrub(wire.Line(p.seat.clean(e.Progress), wire.MaxProgress)))
			}
		case *pluginv1.InvokeStreamResponse_Question:
			// A question's answer is waited for before anything else of the request is
			// heard, so there is never more than one.
			if asked++; asked > r.Head.Questions {
				return nil, wire.ErrAnswer
			}
			if err := l.ask(e.Question); err != nil {
				return nil, err
			}
		case *pluginv1.InvokeStreamResponse_Room:
			if e.Room <= had {
				return nil, wire.ErrAnswer
			}
			said = max(said, min(e.Room, wire.MaxMessage))
			answer := &pluginv1.AnswerRequest{Call: r.Head.Call, Action: "accept"}
			err := l.room(int64(min(e.Room, wire.MaxMessage)), false)
			if counted = err == nil; counted {
				had = e.Room
			} else if errors.Is(err, errNoRoom) {
				answer.Action = "decline"
			} else {
				continue // it is told to end
			}
			if _, err := p.plugin.Answer(ctx, answer); err != nil {
				return nil, err
			}
		}
	}
}

// ask puts a question of a request to the user, and brings the plugin the answer. The
// request's time stands still meanwhile. ctx ends if the request is to end, call if it was
// given up.
func (p *process) ask(ctx, call context.Context, r *wire.Request, a run.Act, g *guard, q *pluginv1.Question) error {
	goOn := g.stand()
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(call, cancel)()
	go func() {
		select {
		case <-p.launch.dead:
			cancel()
		case <-waiting.Done():
		}
	}()
	hide := p.seat.host.secrets.Scrubber()
	reply := a.Ask(waiting, run.Question{Message: hide.Text(q.GetMessage()), Schema: []byte(hide.Text(string(q.GetSchema())))})
	goOn()
	_, err := p.plugin.Answer(call, &pluginv1.AnswerRequest{
		Call: r.Head.Call, Number: q.GetNumber(), Action: reply.Action, Content: reply.Content, Reason: reply.Reason,
	})
	return err
}
