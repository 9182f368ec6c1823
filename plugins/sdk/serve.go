package sdk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/plugins/internal/wire"
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
		fmt.Fprintf(os.Stderr, "%s is a plugin of mcp-pif: mcp-pif starts it when it is granted (--cap %s:SCOPE).\n", os.Args[0], p.Kind)
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
	watch := &hostWatch{end: time.AfterFunc(neverCame, leave)}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: wire.Handshake,
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

// HandleRPC hears of requests, which don't matter here.
func (*hostWatch) HandleRPC(context.Context, stats.RPCStats) {}

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
	if most == 0 {
		most = wire.MaxMessage
	}
	s := grpc.NewServer(grpc.ForceServerCodecV2(wire.Codec), grpc.MaxRecvMsgSize(most), grpc.MaxSendMsgSize(most))
	s.RegisterService(describeService(), newServer(p, m, root, most, func() {}))
	return s, nil
}
