package remote_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/journal/order"
	"github.com/mcp-pif/mcp-pif/cmd/internal/orders/remote"
	"github.com/mcp-pif/mcp-pif/core/must"
	orderv1 "github.com/mcp-pif/mcp-pif/proto/mcppif/order/v1"
)

// A led order has a leader at times.
type led struct {
	order.Order
	leads *atomic.Bool
}

func (l led) Alive(context.Context) error {
	if !l.leads.Load() {
		return errors.New("no leader")
	}
	return nil
}

func (l led) Propose(ctx context.Context, p []byte) error {
	if err := l.Alive(ctx); err != nil {
		return err
	}
	return l.Order.Propose(ctx, p)
}

// A process serves an order, and is paused at times: it answers nothing then.
type process struct {
	server orderv1.OrderServer
	paused atomic.Bool
}

func (p *process) runs(ctx context.Context) error {
	for p.paused.Load() && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	return ctx.Err()
}

func (p *process) Propose(ctx context.Context, r *orderv1.ProposeRequest, _ ...grpc.CallOption) (*orderv1.ProposeResponse, error) {
	if err := p.runs(ctx); err != nil {
		return nil, err
	}
	return p.server.Propose(ctx, r)
}

func (p *process) Identity(ctx context.Context, r *orderv1.IdentityRequest, _ ...grpc.CallOption) (*orderv1.IdentityResponse, error) {
	if err := p.runs(ctx); err != nil {
		return nil, err
	}
	return p.server.Identity(ctx, r)
}

func (p *process) Trim(ctx context.Context, r *orderv1.TrimRequest, _ ...grpc.CallOption) (*orderv1.TrimResponse, error) {
	return p.server.Trim(ctx, r)
}

func (p *process) Follow(ctx context.Context, r *orderv1.FollowRequest, _ ...grpc.CallOption) (grpc.ServerStreamingClient[orderv1.FollowResponse], error) {
	f := &following{ctx: ctx, process: p, sent: make(chan *orderv1.FollowResponse), ended: make(chan error, 1)}
	go func() { f.ended <- p.server.Follow(r, sending{nil, f}) }()
	return f, nil
}

// A following is a stream as who follows has it.
type following struct {
	grpc.ClientStream
	ctx     context.Context
	process *process
	sent    chan *orderv1.FollowResponse
	ended   chan error
}

func (f *following) Recv() (*orderv1.FollowResponse, error) {
	select {
	case r := <-f.sent:
		return r, f.process.runs(f.ctx)
	case err := <-f.ended:
		return nil, errors.Join(err, f.process.runs(f.ctx))
	case <-f.ctx.Done():
		return nil, f.ctx.Err()
	}
}

// A sending is the same stream as the process has it.
type sending struct {
	grpc.ServerStream
	*following
}

func (s sending) Context() context.Context { return s.ctx }

func (s sending) Send(r *orderv1.FollowResponse) error {
	select {
	case s.sent <- r:
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

// TestStall: while two of three processes can work nothing that a node proposes takes longer than 15 s, whichever is
// paused, and since when: it is six seconds after the others have a leader, and JetStream's election takes nine at most.
func TestStall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, leads := order.NewMemory(order.MemoryOptions{}), &atomic.Bool{}
		leads.Store(true)
		var all []*process
		var services []orderv1.OrderClient
		for range 3 {
			all = append(all, &process{server: remote.Service(led{m.Open(), leads})})
			services = append(services, all[len(all)-1])
		}
		o := remote.Through(services...)
		s, err := journal.Open(filepath.Join(t.TempDir(), "s.db"), journal.Options{Order: o, Node: "n", Profile: "p", Patience: time.Hour})
		must.NoError(t, err)
		defer func() { must.NoError(t, errors.Join(s.Close(), o.Close())) }()
		proposed := func() time.Duration {
			begun := time.Now()
			must.NoError(t, s.Barrier(t.Context()))
			return time.Since(begun)
		}
		proposed()
		r := rand.New(rand.NewPCG(1, 7))
		var longest time.Duration
		for range must.Full(100, 3000) {
			p := all[r.IntN(3)]
			p.paused.Store(true)
			leads.Store(false)
			time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
			election := time.Duration(r.IntN(9001)) * time.Millisecond
			time.AfterFunc(election, func() { leads.Store(true) })
			longest = max(longest, proposed()-election)
			p.paused.Store(false)
			time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
			proposed()
		}
		if t.Logf("the longest took %v after the election", longest); longest > 6*time.Second {
			t.Error("a proposal can take longer than 15 s")
		}
	})
}

// TestSilent: who follows at a process that says nothing any more leaves it at once, as gRPC ends the stream.
func TestSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := order.NewMemory(order.MemoryOptions{})
		first := &stuck{Order: m.Open()}
		ctx, stop := context.WithCancel(t.Context())
		var serving sync.WaitGroup
		defer func() { stop(); serving.Wait() }()
		dial := func(o order.Order) orderv1.OrderClient {
			l := bufconn.Listen(1 << 16)
			serving.Go(func() { _ = remote.Serve(ctx, l, o, nil) })
			conn, err := grpc.NewClient("passthrough:///process", grpc.WithTransportCredentials(insecure.NewCredentials()),
				grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
			must.NoError(t, err)
			serving.Go(func() { <-ctx.Done(); _ = conn.Close() })
			return orderv1.NewOrderClient(conn)
		}
		o := remote.Through(dial(first), dial(m.Open()))
		defer o.Close()
		seen := make(chan string)
		serving.Go(func() {
			_ = o.Follow(ctx, 1, func(_ uint64, p []byte) error {
				seen <- string(p)
				return nil
			})
		})
		for _, p := range []string{"before", "after"} {
			must.NoError(t, m.Open().Propose(ctx, []byte(p)))
			if got := <-seen; got != p {
				t.Fatal(got)
			}
			first.is.Store(true)
		}
		if n := first.follows.Load(); n != 1 {
			t.Errorf("it was followed %d times", n)
		}
	})
}

// A long order takes its time to trim.
type long struct{ order.Order }

func (l long) Trim(ctx context.Context, before uint64) error {
	select {
	case <-time.After(8 * time.Second):
		return l.Order.Trim(ctx, before)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestSlowTrim: a process that takes as long to trim as an engine may does it, and isn't left for another one.
func TestSlowTrim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := order.NewMemory(order.MemoryOptions{})
		first, other := &process{server: remote.Service(long{m.Open()})}, &process{server: remote.Service(m.Open())}
		other.paused.Store(true)
		o := remote.Through(first, other)
		defer o.Close()
		must.NoError(t, o.Propose(t.Context(), []byte("x")))
		must.NoError(t, o.Trim(t.Context(), 2))
		must.NoError(t, o.Propose(t.Context(), []byte("y")))
	})
}
