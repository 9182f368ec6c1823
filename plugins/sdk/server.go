package sdk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/lease"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/internal/wire"
	pluginv1 "github.com/mcp-pif/mcp-pif/proto/mcppif/plugin/v1"
)

// maxHandles is how many handles a host may have open at once.
const maxHandles = 10_000

// A server is a plugin as gRPC sees it.
type server struct {
	pluginv1.UnimplementedPluginServer
	plugin   Plugin
	manifest *caps.Manifest
	root     *os.File // the grant's directory, or nil
	state    string   // the folder of what lasts, or empty
	variable *string  // what the grant names, or nil
	command  *Command // what its name is mapped to, or nil
	most     int      // bytes of a message
	begin    func()   // before the first answer
	rooms    bool     // the host says when a large outcome may be read; see Describe

	mu      sync.Mutex
	last    uint64
	handles map[uint64]*held
	calls   map[uint64]context.CancelFunc
	askers  map[uint64]*asker // of calls that may put questions
}

// A held handle is closed when it was given back and nothing uses it.
type held struct {
	*Handle
	users  int
	closed bool
}

func newServer(p Plugin, m *caps.Manifest, root *os.File, most int, begin func()) *server {
	return &server{
		plugin: p, manifest: m, root: root, most: most, begin: sync.OnceFunc(begin),
		handles: map[uint64]*held{}, calls: map[uint64]context.CancelFunc{}, askers: map[uint64]*asker{},
	}
}

// Describe answers with the manifest.
func (s *server) Describe(_ context.Context, r *pluginv1.DescribeRequest) (*pluginv1.DescribeResponse, error) {
	s.begin()
	s.mu.Lock()
	s.rooms = s.rooms || slices.Contains(r.GetFeatures(), wire.FeatureRoom)
	s.mu.Unlock()
	return &pluginv1.DescribeResponse{
		Protocol: wire.Protocol, Features: featuresOf(s.manifest), Manifest: wire.ToManifest(s.manifest),
	}, nil
}

// featuresOf is what a plugin has of the contract: secrets only where it has a
// place for one, and questions only of those who stand for a server.
func featuresOf(m *caps.Manifest) []string {
	return slices.DeleteFunc(slices.Clone(wire.Features), func(f string) bool {
		return f == wire.FeatureSecrets && !takesSecrets(m) || f == wire.FeatureQuestions && m.Server == ""
	})
}

// Open makes a handle.
func (s *server) Open(ctx context.Context, r *pluginv1.OpenRequest) (*pluginv1.OpenResponse, error) {
	s.begin()
	in := r.GetCapability()
	if in == nil {
		return nil, status.Error(codes.InvalidArgument, "no capability")
	}
	c := Capability{
		Text: in.Text, Verbs: in.Verbs, Within: in.Within, Options: in.Options, Max: in.Max,
		Timeout: time.Duration(in.TimeoutNs), Root: s.root, File: in.File,
		State: s.state, Variable: s.variable, Command: s.command,
	}
	for _, d := range r.GetDenies() {
		c.Denies = append(c.Denies, Deny{Verbs: d.GetVerbs(), Within: d.GetWithin()})
	}
	h, err := s.plugin.open(ctx, c)
	if err != nil {
		return &pluginv1.OpenResponse{Outcome: &pluginv1.OpenResponse_Failure{Failure: failureMessage(err, 0)}}, nil
	}
	s.mu.Lock()
	full := len(s.handles) >= maxHandles
	if !full {
		s.last++
		s.handles[s.last] = &held{Handle: h}
	}
	number := s.last
	s.mu.Unlock()
	if full {
		h.Close()
		return nil, status.Error(codes.ResourceExhausted, "too many handles")
	}
	return &pluginv1.OpenResponse{Outcome: &pluginv1.OpenResponse_Handle{Handle: number}}, nil
}

// describeService is the contract's service as gRPC is told of it: the generated
// one, but that the messages of Invoke and InvokeStream hold values (see package wire).
func describeService() *grpc.ServiceDesc {
	d := pluginv1.Plugin_ServiceDesc
	d.Methods = slices.Clone(d.Methods)
	for i := range d.Methods {
		if d.Methods[i].MethodName == "Invoke" {
			d.Methods[i].Handler = func(s any, ctx context.Context, read func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
				r := &wire.Request{}
				if err := read(r); err != nil {
					return nil, err
				}
				return s.(*server).invoke(ctx, r)
			}
		}
	}
	d.Streams = slices.Clone(d.Streams)
	for i := range d.Streams {
		if d.Streams[i].StreamName == "InvokeStream" {
			d.Streams[i].Handler = func(s any, stream grpc.ServerStream) error {
				r := &wire.Request{}
				if err := stream.RecvMsg(r); err != nil {
					return err
				}
				return s.(*server).invokeStream(r, stream)
			}
		}
	}
	return &d
}

// invokeStream performs an operation and sends what it says meanwhile. Progress
// that comes faster than it can be sent is dropped; a question waits.
func (s *server) invokeStream(q *wire.Request, stream grpc.ServerStream) error {
	r := q.Head
	news, sent, ended := make(chan *pluginv1.InvokeStreamResponse, 16), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(sent)
		for event := range news {
			if stream.SendMsg(&wire.Event{Other: event}) != nil {
				break
			}
		}
		for range news {
		}
	}()
	var over sync.RWMutex // a handler's goroutine may speak after the handler is done
	open := true
	ctx := WithProgress(stream.Context(), func(message string) {
		over.RLock()
		defer over.RUnlock()
		if !open {
			return
		}
		event := &pluginv1.InvokeStreamResponse_Progress{Progress: wire.Line(message, wire.MaxProgress)}
		select {
		case news <- &pluginv1.InvokeStreamResponse{Event: event}:
		default:
		}
	})
	s.mu.Lock()
	rooms := s.rooms
	s.mu.Unlock()
	if (rooms || r.GetQuestions() > 0) && r.GetCall() > 0 {
		a := &asker{may: r.GetQuestions(), rooms: rooms, answer: map[uint32]chan Answer{}}
		a.send = func(ctx context.Context, event *pluginv1.InvokeStreamResponse) bool {
			over.RLock()
			defer over.RUnlock()
			if !open {
				return false
			}
			select {
			case news <- event:
				return true
			case <-ctx.Done():
			case <-ended:
			}
			return false
		}
		if ctx = context.WithValue(ctx, askerKey{}, a); a.may > 0 {
			ctx = WithAsk(ctx, a.ask)
		}
	}
	answer, err := s.invoke(ctx, q)
	close(ended)
	over.Lock()
	open = false
	over.Unlock()
	close(news)
	<-sent
	if err != nil {
		return err
	}
	return stream.SendMsg(&wire.Event{Outcome: answer})
}

// invoke performs an operation.
func (s *server) invoke(ctx context.Context, q *wire.Request) (*wire.Response, error) {
	s.begin()
	r := q.Head
	h, done, ok := s.use(r.GetHandle())
	if !ok {
		return nil, status.Error(codes.NotFound, "no such handle")
	}
	defer done()
	ctx, cancel := s.begun(ctx, r)
	defer cancel()
	if q.Err != nil {
		return nil, status.Error(codes.InvalidArgument, "the arguments: "+q.Err.Error())
	}
	most := s.most - wire.MaxOverhead
	if asked := r.GetMaxOutcomeBytes(); asked > 0 && asked < int64(most) {
		most = int(asked)
	}
	if until := lease.Time(r.GetLeaseNs()); until != 0 && until.Over() {
		return &wire.Response{Failure: &pluginv1.Failure{Code: wire.Lapsed, Message: "its lease is over", Retryable: true}}, nil
	}
	bound := &outcomeBound{most: int64(most)}
	v, err := h.Invoke(context.WithValue(ctx, boundKey{}, bound), r.GetOperation(), q.Value)
	if err != nil {
		f := failureOf(err)
		hide := scrubber(ctx)
		f.Message, f.Hint = hide.Text(f.Message), hide.Text(f.Hint)
		if f.Value != nil {
			f.Value = hide.Value(f.Value)
		}
		answer := failed(f, most)
		size := int64(proto.Size(answer.Failure))
		announce(ctx, max(bound.needs, size))
		_ = Room(ctx, size)
		return answer, nil
	}
	if v == nil {
		v = value.Unit{}
	}
	outcome, err := encoded(v, most)
	switch {
	case errors.Is(err, wire.ErrTooLarge):
		if whole, err := encoded(v, s.most); err == nil {
			announce(ctx, int64(len(whole)))
		}
		return failed(s.unsendable("too_large", q, "the outcome has more than the %d bytes that are allowed", most).
			WithHint("Ask for less at once, such as a part or a smaller limit."), most), nil
	case err != nil:
		return failed(s.unsendable("failed", q, "the outcome can't be sent: %s", err), most), nil
	}
	announce(ctx, int64(len(outcome)))
	_ = Room(ctx, int64(len(outcome))) // it is there: refused, it comes all the same
	return &wire.Response{Outcome: outcome}, nil
}

// unsendable is the failure, of a code, of a request whose outcome can't be sent. What may have changed something was
// done all the same.
func (s *server) unsendable(code string, q *wire.Request, format string, args ...any) Failure {
	given, _ := q.Value.(*value.Record)
	if o, ok := s.manifest.Operation(q.Head.GetOperation()); ok && s.manifest.FlagsOf(o, given).ReadOnly {
		return Fail(code, format, args...)
	}
	return Fail("unknown", "it was done, but "+format, args...)
}

// announce says in the answer's header how large it is, or would be if it might.
func announce(ctx context.Context, size int64) {
	if size >= wire.LargeOutcome {
		_ = grpc.SetHeader(ctx, metadata.Pairs(wire.Size, strconv.FormatInt(size, 10))) // a stream's may have been sent
	}
}

type boundKey struct{}

type outcomeBound struct{ most, needs int64 }

// MaxOutcome returns how many bytes the outcome of the operation of ctx may have, at most most.
func MaxOutcome(ctx context.Context, most int64) int64 {
	if b, ok := ctx.Value(boundKey{}).(*outcomeBound); ok {
		most = min(most, b.most)
	}
	return most
}

// NeedsOutcome says that the operation of ctx fails because its outcome would have so many bytes.
func NeedsOutcome(ctx context.Context, bytes int64) {
	if b, ok := ctx.Value(boundKey{}).(*outcomeBound); ok {
		b.needs = bytes + wire.MaxOverhead
	}
}

// encoded is a result as it is sent. A handler may have made it of what is no
// value at all.
func encoded(v value.Value, most int) (b []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it is not a value: %v", r)
		}
	}()
	return wire.EncodeValue(v, most)
}

// use takes a handle for a request; done gives it back.
func (s *server) use(number uint64) (h *Handle, done func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held, ok := s.handles[number]
	if !ok {
		return nil, nil, false
	}
	held.users++
	return held.Handle, func() {
		s.mu.Lock()
		held.users--
		last := held.closed && held.users == 0
		s.mu.Unlock()
		if last {
			held.Handle.Close()
		}
	}, true
}

// begun is the context of a request: with its time, and known by its number.
func (s *server) begun(ctx context.Context, r *pluginv1.InvokeRequest) (context.Context, context.CancelFunc) {
	var cancel context.CancelFunc
	if key := r.GetIdempotencyKey(); key != "" {
		ctx = WithKey(ctx, key)
	}
	if n := r.GetHops(); n > 0 {
		ctx = context.WithValue(ctx, hopsKey{}, int(n))
	}
	ctx = withSecrets(ctx, r.GetSecrets())
	a, _ := ctx.Value(askerKey{}).(*asker)
	switch ns := r.GetTimeoutNs(); {
	case ns > 0 && a != nil && a.may > 0:
		var end context.CancelCauseFunc
		ctx, end = context.WithCancelCause(ctx)
		a.clock = newClock(time.Duration(ns), end)
		cancel = func() { a.clock.stop(); end(nil) }
	case ns > 0:
		ctx, cancel = context.WithTimeout(ctx, time.Duration(ns))
	default:
		ctx, cancel = context.WithCancel(ctx)
	}
	number := r.GetCall()
	if number == 0 {
		return ctx, cancel
	}
	s.mu.Lock()
	s.calls[number] = cancel
	if a != nil {
		s.askers[number] = a
	}
	s.mu.Unlock()
	return ctx, func() {
		s.mu.Lock()
		delete(s.calls, number)
		delete(s.askers, number)
		s.mu.Unlock()
		cancel()
	}
}

// Cancel ends the context of a request.
func (s *server) Cancel(_ context.Context, r *pluginv1.CancelRequest) (*pluginv1.CancelResponse, error) {
	s.mu.Lock()
	cancel := s.calls[r.GetCall()]
	s.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	return &pluginv1.CancelResponse{}, nil
}

// Close takes a handle back. Requests that use it still do to their end.
func (s *server) Close(_ context.Context, r *pluginv1.CloseRequest) (*pluginv1.CloseResponse, error) {
	s.mu.Lock()
	h, ok := s.handles[r.GetHandle()]
	idle := false
	if ok {
		delete(s.handles, r.GetHandle())
		h.closed, idle = true, h.users == 0
	}
	s.mu.Unlock()
	if idle {
		h.Handle.Close()
	}
	return &pluginv1.CloseResponse{}, nil
}

// failed is the answer of a request that failed.
func failed(err error, most int) *wire.Response {
	return &wire.Response{Failure: failureMessage(err, most)}
}

// failureMessage is a failure on the wire. Its texts are bounded, and their
// control characters gone, before they are sent; a value of more than most bytes is
// left out.
func failureMessage(err error, most int) *pluginv1.Failure {
	f := failureOf(err)
	m := &pluginv1.Failure{Code: f.Code, Message: wire.Line(f.Message, 1000), Retryable: f.Retryable}
	if f.Hint != "" {
		m.Hint = wire.Line(f.Hint, 500)
	}
	if f.Value != nil {
		if b, err := encoded(f.Value, most); err == nil {
			m.Value = b
		}
	}
	return m
}
