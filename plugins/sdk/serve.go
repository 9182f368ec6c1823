package sdk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/internal/wire"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"
)

// Serve is the main function of a plugin's process. It returns never: it exits
// when the host is gone. A process that no host started says so on its standard
// error and exits with status 1, and so does one whose plugin is mistaken.
//
// From the first request on, what is written to os.Stdout goes to os.Stderr,
// which the host logs; before Serve nothing must be written there, since the
// host reads the handshake from it.
func Serve(p Plugin) {
	m, err := p.Manifest()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if os.Getenv(wire.Handshake.MagicCookieKey) != wire.Handshake.MagicCookieValue {
		fmt.Fprintf(os.Stderr, "%s is a plugin of mcp-pif: add it with 'mcp-pif plugin add', and grant it with --plugin-lock and --cap %s:SCOPE.\n", os.Args[0], p.Kind)
		os.Exit(1)
	}
	root, err := rootOf(os.Getenv(wire.EnvRoot))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	most := wire.MaxMessage
	if n, err := strconv.Atoi(os.Getenv(wire.EnvMaxMessage)); err == nil && n > wire.MaxOverhead {
		most = n
	}
	stderr := os.Stderr
	s := newServer(p, m, root, most, func() {
		// go-plugin has put pipes here, whose ends it sends as messages: output
		// would wait for the host to read them.
		os.Stdout, os.Stderr = stderr, stderr
	})
	s.state = os.Getenv(wire.EnvState)
	if v, ok := os.LookupEnv(wire.EnvVariable); ok {
		s.variable = &v
	}
	if text, ok := os.LookupEnv(wire.EnvCommand); ok {
		if s.command, err = caps.ReadCommand(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if p.Begin != nil && root != nil {
		go p.Begin(root)
	}
	watch := &hostWatch{end: time.AfterFunc(neverCame, leave), give: time.AfterFunc(neverCame, giveBack)}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: wire.Handshake,
		TLSProvider:     serverTLS,
		Plugins:         plugin.PluginSet{wire.Service: &contract{server: s}},
		Logger:          hclog.New(&hclog.LoggerOptions{Level: hclog.Warn, Output: stderr, JSONFormat: true}),
		GRPCServer: func(options []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(options,
				grpc.ForceServerCodecV2(wire.Codec), grpc.MaxRecvMsgSize(most), grpc.MaxSendMsgSize(most), grpc.StatsHandler(watch),
				grpc.InitialWindowSize(wire.Window), grpc.InitialConnWindowSize(wire.Window),
			)...)
		},
	})
	os.Exit(0)
}

// A contract is the plugin as go-plugin registers it.
type contract struct {
	plugin.NetRPCUnsupportedPlugin
	server *server
}

// GRPCServer registers the service.
func (c *contract) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	s.RegisterService(describeService(), c.server)
	return nil
}

// GRPCClient is the host's side, which has it elsewhere.
func (c *contract) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("this is the plugin's side")
}

// How long a plugin without a connection waits for its host.
const (
	neverCame = time.Minute
	goneAfter = 2 * time.Second
)

func leave() { os.Exit(0) }

// A hostWatch ends the process when the host's connection is gone: a plugin must
// not outlive its host, however that ended. Where the system tells a child of its
// parent's death this comes second.
type hostWatch struct {
	mu    sync.Mutex
	conns int
	end   *time.Timer

	large atomic.Int64 // bytes of large messages since the last call ended
	give  *time.Timer  // gives memory back
}

// HandleConn counts connections.
func (w *hostWatch) HandleConn(_ context.Context, s stats.ConnStats) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch s.(type) {
	case *stats.ConnBegin:
		w.conns++
		w.end.Stop()
	case *stats.ConnEnd:
		if w.conns--; w.conns == 0 {
			w.end.Stop()
			w.end = time.AfterFunc(goneAfter, leave)
		}
	}
}

// TagConn leaves the context as it is.
func (*hostWatch) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// TagRPC leaves the context as it is.
func (*hostWatch) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// What a message of hugeMessage took is given back at once, and that of smaller ones when none came for a while: a call of
// those costs less than a collection.
const (
	hugeMessage = 1 << 20
	quietTime   = 50 * time.Millisecond
)

// HandleRPC gives the system back what large messages took.
func (w *hostWatch) HandleRPC(_ context.Context, s stats.RPCStats) {
	size := 0
	switch s := s.(type) {
	case *stats.InPayload:
		size = s.Length
	case *stats.OutPayload:
		size = s.Length
	case *stats.End:
		if n := w.large.Swap(0); n >= hugeMessage {
			w.give.Reset(0)
		} else if n > 0 {
			w.give.Reset(quietTime)
		}
	}
	if size >= wire.LargeOutcome {
		w.large.Add(int64(size))
	}
}

func giveBack() {
	runtime.GC() // what gRPC keeps for the next message goes with the second
	debug.FreeOSMemory()
}

// NewServer makes the gRPC server that a plugin's process has, in this one: for
// tests of plugins that go by the wire and need no program, such as package
// plugintest's. The root is the grant's directory where the scope is a path; most
// is the bytes of the largest message, 0 for the default. Serve is what a plugin
// calls.
func NewServer(p Plugin, root *os.File, most int) (*grpc.Server, error) {
	m, err := p.Manifest()
	if err != nil {
		return nil, err
	}
	most = cmp.Or(most, wire.MaxMessage)
	s := grpc.NewServer(grpc.ForceServerCodecV2(wire.Codec), grpc.MaxRecvMsgSize(most), grpc.MaxSendMsgSize(most))
	s.RegisterService(describeService(), newServer(p, m, root, most, func() {}))
	return s, nil
}

// A Handle is an open capability: what requests are made of. It may be used by
// several goroutines.
type Handle struct {
	plugin Plugin
	scope  any
	close  sync.Once
	failed error
}

// Direct opens a capability of a plugin in this process, for tests of plugins.
// Requests go the way they go in a plugin's process, without the wire; nothing
// holds them to the capability, which is the host's part.
func Direct(ctx context.Context, p Plugin, c Capability) (*Handle, error) {
	if _, err := p.Manifest(); err != nil {
		return nil, err
	}
	return p.open(ctx, c)
}

// open makes a handle of a plugin whose manifest is right. The error is a
// [Failure].
func (p Plugin) open(ctx context.Context, c Capability) (h *Handle, err error) {
	defer func() {
		if r := recover(); r != nil {
			h, err = nil, panicked("failed", p.Kind+"'s Open", r)
		}
	}()
	h = &Handle{plugin: p}
	if p.Open == nil {
		return h, nil
	}
	if h.scope, err = p.Open(ctx, c); err != nil {
		return nil, failureOf(err)
	}
	return h, nil
}

// Invoke performs an operation ("fs.read") with a record of arguments. The error
// is a [Failure].
func (h *Handle) Invoke(ctx context.Context, operation string, args value.Value) (v value.Value, err error) {
	perform, ok := h.plugin.performer(operation)
	if !ok {
		return nil, Fail("invalid", "unknown operation %s", short(operation))
	}
	defer func() {
		if r := recover(); r != nil {
			v, err = nil, panicked("unknown", operation, r)
		}
	}()
	if v, err = perform(ctx, h.scope, args); err != nil {
		return nil, failureOf(err)
	}
	return v, nil
}

// Close closes what the plugin's Open gave, once, if it is an [io.Closer].
func (h *Handle) Close() (err error) {
	h.close.Do(func() {
		defer func() {
			if r := recover(); r != nil {
				h.failed = panicked("failed", "Close", r)
			}
		}()
		if c, ok := h.scope.(io.Closer); ok {
			h.failed = c.Close()
		}
	})
	return h.failed
}

// panicked is the failure, with a code, of a handler that panicked; the log says where.
func panicked(code, what string, r any) Failure {
	if err, ok := r.(error); ok {
		if f, ok := asFailure(err); ok {
			return f
		}
	}
	fmt.Fprintf(os.Stderr, "panic in %s: %v\n%s", what, r, debug.Stack())
	return Fail(code, "the plugin has a defect: it panicked in %s", what)
}

// rootOf is the grant's directory, which the host passed as a descriptor; nil
// where it passed none.
func rootOf(number string) (*os.File, error) {
	if number == "" {
		return nil, nil
	}
	f, err := inherited(number, "root")
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("the host passed the descriptor %s, which is not a directory", number)
	}
	return f, nil
}

// maxSettings is the bytes of settings that a plugin reads.
const maxSettings = 64 << 20

// ReadSettings reads what the host tells a plugin's process besides its grant, once,
// before [Serve]: nothing of it is in the environment, where others could read it. It is
// an error where the host passed none.
func ReadSettings() ([]byte, error) {
	number, ok := os.LookupEnv(wire.EnvSettings)
	if !ok {
		return nil, errors.New("the host passed no settings")
	}
	f, err := inherited(number, "settings")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSettings+1))
	if err == nil && len(b) > maxSettings {
		err = fmt.Errorf("the settings have more than %d bytes", maxSettings)
	}
	return b, err
}
