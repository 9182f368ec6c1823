package main

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/flow"
	"github.com/mcp-pif/mcp-pif/caps/journal/order"
	"github.com/mcp-pif/mcp-pif/caps/journal/order/ordertest"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/node"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// A cuttable order acknowledges nothing while it is cut.
type cuttable struct {
	order.Order
	cut atomic.Bool
}

func (c *cuttable) Propose(ctx context.Context, p []byte) error {
	if c.cut.Load() {
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
		return ordertest.ErrNotAcknowledged
	}
	return c.Order.Propose(ctx, p)
}

// TestBarrierOfFlow: where there are rules about data a request waits until its node has what the model was shown elsewhere,
// also with --cluster-reads=local.
func TestBarrierOfFlow(t *testing.T) {
	t.Parallel()
	o := &cuttable{Order: order.NewMemory(order.MemoryOptions{}).Open()}
	n, err := node.Open(t.Context(), node.Options{Order: o, Name: "a", Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	must.NoError(t, err)
	defer n.Close()
	w := &web{o: &serveOptions{}}
	w.o.reads = "local"
	if w.barrier(&app.Authority{Node: n}) != nil {
		t.Error("it waits without rules")
	}
	barrier := w.barrier(&app.Authority{Node: n, Flow: &flow.Policy{}})
	if barrier == nil {
		t.Fatal("it doesn't wait")
	}
	must.NoError(t, barrier(t.Context()))
	o.cut.Store(true)
	wait.Until(t, "the end of the lease", func() bool { return !n.CanAct() })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := barrier(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cut off it gives %v", err)
	}
	o.cut.Store(false)
	must.NoError(t, barrier(t.Context()))
}
