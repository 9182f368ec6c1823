//go:build linux

package host

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	pluginv1 "github.com/mcp-pif/mcp-pif/proto/mcppif/plugin/v1"
)

// BenchmarkDurable is an effect whose journal is a file against a bare gRPC call, each
// in turn, so many at once: what only reads is written with what comes after it, what
// acts is on disk before it is performed.
func BenchmarkDurable(b *testing.B) {
	const rounds = 20
	for _, operation := range []string{"echo", "echo_once"} {
		for _, batch := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("%s/batch=%d", operation, batch), func(b *testing.B) {
				w := newWorld(b, "toy")
				w.sandbox = nil // as servers have it
				held := w.grant(b, "toy:a/**,calls=1000000000,bytes=100000GiB")
				w.do(b, held, "pid")
				store, err := journal.Open(filepath.Join(b.TempDir(), "journal.db"), journal.Options{})
				must.NoError(b, err)
				b.Cleanup(func() { _ = store.Close() })
				broker := run.New(run.Options{
					Policy: w.policy, Handler: w.Host, Journal: store, Limits: run.Limits{Effects: 1 << 40, Bytes: 1 << 60},
				})
				tool := &registry.Tool{Name: "echo", Version: 1, Hash: strings.Repeat("0", 64), Held: []*caps.Held{held}}
				r := broker.Begin(new(registry.Snapshot), run.Start{Tool: tool})
				until := time.Now().Add(time.Hour)
				payload := strings.Repeat("x", 100)
				requests := make([]core.Request, batch)
				for i := range requests {
					requests[i] = core.Request{Op: "toy." + operation, Arg: value.Str(payload), Where: "tool:echo", Tool: "echo", Tools: r.Tools(tool)}
				}
				effects := func() {
					for _, a := range r.Answer(context.Background(), until, requests) {
						if a.Fault != nil {
							b.Error(a.Fault)
						}
					}
				}
				remote := bare(b)
				call := &pluginv1.InvokeRequest{Operation: "toy.echo", Arguments: []byte(payload)}
				calls := func() {
					var all sync.WaitGroup
					for range batch {
						all.Go(func() {
							if _, err := remote.Invoke(context.Background(), call); err != nil {
								b.Error(err)
							}
						})
					}
					all.Wait()
				}
				took := func(do func()) time.Duration {
					start := time.Now()
					for range rounds {
						do()
					}
					return time.Since(start)
				}
				var ours, theirs time.Duration
				for b.Loop() {
					ours += took(effects)
					theirs += took(calls)
				}
				each := float64(b.N * rounds * batch)
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(float64(ours.Microseconds())/each, "durable-µs")
				b.ReportMetric(float64(theirs.Microseconds())/each, "grpc-µs")
				b.ReportMetric(float64(ours)/float64(theirs), "durable/grpc")
			})
		}
	}
}
