//go:build linux

package host

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/internal/wire"
	pluginv1 "github.com/mcp-pif/mcp-pif/proto/mcppif/plugin/v1"
)

// BenchmarkPerform is an effect as the broker has it performed: a string there
// and back.
func BenchmarkPerform100(b *testing.B) { benchmarkPerform(b, 100, 1) }
func BenchmarkPerform64K(b *testing.B) { benchmarkPerform(b, 64<<10, 1) }

// With 16 callers at once.
func BenchmarkPerform100Parallel(b *testing.B) { benchmarkPerform(b, 100, 16) }

// BenchmarkEffect is all of an effect, as a program's request has it done: decided,
// recorded in memory, performed by the plugin in its sandbox, the outcome recorded.
func BenchmarkEffect100(b *testing.B)         { benchmarkEffect(b, 100, 1) }
func BenchmarkEffect64K(b *testing.B)         { benchmarkEffect(b, 64<<10, 1) }
func BenchmarkEffect100Parallel(b *testing.B) { benchmarkEffect(b, 100, 16) }

// BenchmarkBareGRPC is the same bytes over the same kind of socket with nothing
// between: go-plugin as it comes, mutual TLS, and a method that gives back what
// it is given.
func BenchmarkBareGRPC100(b *testing.B)         { benchmarkBare(b, 100, 1) }
func BenchmarkBareGRPC64K(b *testing.B)         { benchmarkBare(b, 64<<10, 1) }
func BenchmarkBareGRPC100Parallel(b *testing.B) { benchmarkBare(b, 100, 16) }

// BenchmarkStart is from nothing to the first outcome, and BenchmarkStartBoxed the
// same in the system's sandbox, as servers have it.
func BenchmarkStart(b *testing.B) { benchmarkStart(b, unboxed) }

func BenchmarkStartBoxed(b *testing.B) {
	needsLayers(b)
	benchmarkStart(b, nil)
}

func benchmarkStart(b *testing.B, sandbox func(string) Mode) {
	w := newWorld(b, "toy")
	w.sandbox = sandbox
	held := w.grant(b, "toy:a/**")
	for b.Loop() {
		w.do(b, held, "pid")
		w.mu.Lock()
		s := w.seats[held.Grant.ID]
		w.mu.Unlock()
		s.process.kill("the benchmark goes on")
		<-s.process.gone
	}
}

// BenchmarkPerform100Boxed is a call of a plugin in its sandbox; BenchmarkPerform100
// without.
func BenchmarkPerform100Boxed(b *testing.B) {
	needsLayers(b)
	benchmarkPerformIn(b, 100, 1, nil)
}

func benchmarkPerform(b *testing.B, size, callers int) { benchmarkPerformIn(b, size, callers, unboxed) }

func benchmarkPerformIn(b *testing.B, size, callers int, sandbox func(string) Mode) {
	w := newWorld(b, "toy")
	w.sandbox = sandbox
	held := w.grant(b, "toy:a/**")
	w.do(b, held, "pid")
	a := act(b, held, "echo", arg("v", value.Str(strings.Repeat("x", size))))
	a.Deadline = time.Now().Add(time.Hour)
	callMany(b, size, callers, func() error {
		if _, _, f := w.Perform(context.Background(), a); f != nil {
			return f
		}
		return nil
	})
}

func benchmarkEffect(b *testing.B, size, callers int) {
	w := newWorld(b, "toy")
	w.sandbox = nil // as servers have it
	held := w.grant(b, "toy:a/**,calls=1000000000,bytes=100000GiB")
	w.do(b, held, "pid")
	broker := run.New(run.Options{
		Policy: w.policy, Handler: w.Host, Journal: journal.NewMemory(64<<20, nil), Limits: run.Limits{Effects: 1 << 40, Bytes: 1 << 60},
	})
	tool := &registry.Tool{Name: "echo", Version: 1, Hash: strings.Repeat("0", 64), Held: []*caps.Held{held}}
	payload := value.Str(strings.Repeat("x", size))
	until := time.Now().Add(time.Hour)
	runs := sync.Pool{New: func() any { return broker.Begin(new(registry.Snapshot), run.Start{Tool: tool}) }}
	callMany(b, size, callers, func() error {
		r := runs.Get().(*run.Run)
		defer runs.Put(r)
		requests := []core.Request{{Op: "toy.echo", Arg: payload, Where: "tool:echo", Tool: "echo", Tools: r.Tools(tool)}}
		if a := r.Answer(context.Background(), until, requests); a[0].Fault != nil {
			return a[0].Fault
		}
		return nil
	})
}

func benchmarkBare(b *testing.B, size, callers int) {
	remote := bare(b)
	request := &pluginv1.InvokeRequest{Operation: "toy.echo", Arguments: []byte(strings.Repeat("x", size))}
	callMany(b, size, callers, func() error {
		_, err := remote.Invoke(context.Background(), request)
		return err
	})
}

// bare is a plugin reached as go-plugin reaches it, with nothing of ours between.
func bare(b *testing.B) pluginv1.PluginClient {
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig: wire.Handshake, Plugins: plugin.PluginSet{wire.Service: &bareClient{}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC}, AutoMTLS: true,
		Cmd: exec.Command(os.Args[0], "raw"), Logger: hclog.New(&hclog.LoggerOptions{Output: io.Discard, Level: hclog.Off}),
	})
	b.Cleanup(client.Kill)
	protocol, err := client.Client()
	must.NoError(b, err)
	it, err := protocol.Dispense(wire.Service)
	must.NoError(b, err)
	return it.(pluginv1.PluginClient)
}

// callMany measures calls by so many callers at once.
func callMany(b *testing.B, size, callers int, call func() error) {
	b.SetBytes(int64(2 * size))
	b.ReportAllocs()
	if callers == 1 {
		for b.Loop() {
			must.NoError(b, call())
		}
		return
	}
	b.SetParallelism(callers)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := call(); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

type bareClient struct{ plugin.NetRPCUnsupportedPlugin }

func (*bareClient) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error { return nil }

func (*bareClient) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, c *grpc.ClientConn) (any, error) {
	return pluginv1.NewPluginClient(c), nil
}
