package conform

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/host"
	"github.com/mcp-pif/mcp-pif/plugins/internal/wire"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
	pluginv1 "github.com/mcp-pif/mcp-pif/proto/mcppif/plugin/v1"
)

// most is the bytes of a message that plugins are told in these checks: less than
// a server's, so that passing it is quick.
const most = 4 << 20

// A peer is a plugin that can be spoken to: a process, or a server in this one.
type peer struct {
	pluginv1.PluginClient
	probe *host.Probe // nil in this process
	close func()
}

// gone reports whether the process has ended, and how.
func (p *peer) gone() (why string, gone bool) {
	if p.probe == nil {
		return "", false
	}
	select {
	case <-p.probe.Done():
		return p.probe.Exit(), true
	default:
		return "", false
	}
}

// ending is gone, and gives a process whose connection broke time to end.
func (p *peer) ending(within time.Duration) (why string, gone bool) {
	if p.probe != nil {
		select {
		case <-p.probe.Done():
		case <-time.After(within):
		}
	}
	return p.gone()
}

// isSocketFolder tells the folder that go-plugin makes for a socket.
func isSocketFolder(name string) bool { return strings.HasPrefix(name, "plugin-dir") }

// start starts the plugin in a world; without one it has no directory.
func (s *subject) start(ctx context.Context, w *world) (*peer, error) {
	var root *os.File
	var env []string
	var state string
	if w != nil {
		root, state, env = w.root, w.state, []string{"HOME=" + w.home}
	}
	if s.process {
		probe, err := host.NewProbe(ctx, host.ProbeOptions{
			Source: s.o.Source, Root: root, State: state, Env: env, MaxMessage: most, Within: s.o.Patience, Sandbox: s.o.Sandbox,
		})
		if err != nil {
			return nil, err
		}
		return &peer{PluginClient: pluginv1.NewPluginClient(probe.Conn()), probe: probe, close: probe.Close}, nil
	}
	serve := s.o.server
	if serve == nil {
		p := *s.o.Plugin
		if open := p.Open; open != nil && state != "" {
			p.Open = func(ctx context.Context, c sdk.Capability) (any, error) {
				c.State = state
				return open(ctx, c)
			}
		}
		serve = func(root *os.File) (*grpc.Server, error) { return sdk.NewServer(p, root, most) }
	}
	server, err := serve(root)
	if err != nil {
		return nil, err
	}
	conn, err := inProcess(server)
	if err != nil {
		return nil, err
	}
	return &peer{PluginClient: pluginv1.NewPluginClient(conn), close: func() {
		conn.Close()
		server.Stop()
	}}, nil
}

// inProcess serves in this process, and connects to it.
func inProcess(server *grpc.Server) (*grpc.ClientConn, error) {
	listener := bufconn.Listen(1 << 20)
	go server.Serve(listener)
	conn, err := grpc.NewClient("passthrough:plugin",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(2*most), grpc.MaxCallSendMsgSize(4*most)))
	if err != nil {
		server.Stop()
	}
	return conn, err
}

// An answer is what came of a request: a value, a failure, or an error of gRPC.
type answer struct {
	value   value.Value
	size    int // bytes of the encoded value
	failure *pluginv1.Failure
	err     error
}

// refused reports whether the request was answered by a refusal: a failure, or a
// status that says what is wrong with it.
func (a answer) refused() bool {
	return a.failure != nil || a.err != nil && slices.Contains([]codes.Code{
		codes.InvalidArgument, codes.NotFound, codes.Unimplemented, codes.FailedPrecondition, codes.OutOfRange,
		codes.ResourceExhausted, codes.PermissionDenied, codes.Canceled, codes.DeadlineExceeded,
	}, status.Code(a.err)) && !errors.Is(a.err, errNoAnswer)
}

// String says what came, for a report.
func (a answer) String() string {
	switch {
	case a.failure != nil:
		return fmt.Sprintf("the failure %s: %s", a.failure.GetCode(), a.failure.GetMessage())
	case errors.Is(a.err, errNoAnswer):
		return a.err.Error()
	case a.err != nil:
		return fmt.Sprintf("the status %s: %s", status.Code(a.err), status.Convert(a.err).Message())
	}
	return fmt.Sprintf("a value (%s)", a.value.Type())
}

// open opens a capability.
func (t *trial) open(ctx context.Context, r *pluginv1.OpenRequest) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, t.o.Patience)
	defer cancel()
	out, err := t.peer.Open(ctx, r)
	if err != nil {
		return 0, err
	}
	switch o := out.GetOutcome().(type) {
	case *pluginv1.OpenResponse_Handle:
		return o.Handle, nil
	case *pluginv1.OpenResponse_Failure:
		return 0, fmt.Errorf("%s: %s", o.Failure.GetCode(), o.Failure.GetMessage())
	}
	return 0, errors.New("an answer without a handle or a failure")
}

// handle opens the whole of the generated scope; where that fails the check does, and ends.
func (t *trial) handle(ctx context.Context) uint64 {
	h, err := t.open(ctx, t.world.request("", nil))
	if err != nil {
		t.stop("the capability %s can't be opened: %v", t.world.text(""), err)
	}
	return h
}

// timeout is the time of a call of an operation: where a slow call of it is known, guessed
// arguments may take as long. 0: none.
func (t *trial) timeout(operation string) int64 {
	if slices.ContainsFunc(t.o.Fixtures.Calls, func(c Call) bool { return c.Slow && c.Operation == operation }) {
		return int64(t.o.Grace / 10)
	}
	return 0
}

// call makes a request; change may make it another one. Secrets that the arguments
// name are given, as a host does.
func (t *trial) call(ctx context.Context, handle uint64, operation string, args value.Value, change ...func(*pluginv1.InvokeRequest)) answer {
	b, err := wire.EncodeValue(args, 2*most)
	if err != nil {
		return answer{err: err}
	}
	r := &pluginv1.InvokeRequest{Handle: handle, Operation: operation, Arguments: b, IdempotencyKey: "conform", TimeoutNs: t.timeout(operation)}
	if o, known := t.manifest.Operation(operation); known {
		if fields, ok := args.(*value.Record); ok {
			t.give(r, caps.SecretsIn(o, fields), "a-secret-of-no-use", t.world.scope)
		}
	}
	for _, c := range change {
		c(r)
	}
	return t.invoke(ctx, r)
}

// invoke sends a request as it is, and waits for its answer as long as one may
// take.
func (t *trial) invoke(ctx context.Context, r *pluginv1.InvokeRequest) answer {
	limited, cancel := context.WithTimeout(ctx, t.o.Patience)
	defer cancel()
	out, err := t.peer.Invoke(limited, r)
	if err != nil {
		if limited.Err() != nil && ctx.Err() == nil {
			err = fmt.Errorf("%w within %s", errNoAnswer, t.o.Patience)
		}
		return answer{err: err}
	}
	return read(out)
}

// read is the answer in a message.
func read(out *pluginv1.InvokeResponse) answer {
	switch o := out.GetOutcome().(type) {
	case *pluginv1.InvokeResponse_Value:
		v, err := wire.DecodeValue(o.Value)
		if err != nil {
			return answer{err: fmt.Errorf("an outcome that is no value: %w", err)}
		}
		return answer{value: v, size: len(o.Value)}
	case *pluginv1.InvokeResponse_Failure:
		return answer{failure: o.Failure}
	}
	return answer{err: errors.New("an answer without an outcome")}
}
