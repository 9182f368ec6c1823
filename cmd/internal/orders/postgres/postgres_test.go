//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-pif/mcp-pif/caps/journal/order"
	"github.com/mcp-pif/mcp-pif/caps/journal/order/ordertest"
	"github.com/mcp-pif/mcp-pif/cmd/internal/orders/postgres"
	"github.com/mcp-pif/mcp-pif/cmd/internal/orders/postgres/pgtest"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// open opens the order of a URL.
func open(t *testing.T, url string) order.Order {
	t.Helper()
	o, err := postgres.Open(t.Context(), url, nil)
	must.NoError(t, err)
	return o
}

func TestConformance(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t)
	ordertest.Run(t, func() order.Order { return open(t, s.URL()) })
}

// A load proposes from several nodes until it is stopped.
type load struct {
	nodes        []order.Order
	last         []atomic.Int64 // of each proposer, that was acknowledged
	stop         context.CancelFunc
	group        sync.WaitGroup
	acknowledged atomic.Int64
}

func start(t *testing.T, nodes ...order.Order) *load {
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{nodes: nodes, last: make([]atomic.Int64, 2*len(nodes)), stop: cancel}
	for who := range l.last {
		l.group.Go(func() {
			for n := int64(1); ; n++ {
				if _, err := ordertest.Propose(ctx, nodes[who%len(nodes)], fmt.Appendf(nil, "%d %d", who, n)); err != nil {
					return
				}
				l.last[who].Store(n)
				l.acknowledged.Add(1)
			}
		})
	}
	return l
}

// more waits until some more are acknowledged.
func (l *load) more(t *testing.T, what string) {
	t.Helper()
	from := l.acknowledged.Load()
	wait.Until(t, what, func() bool { return l.acknowledged.Load() > from+20 })
}

// check stops it, and compares what all nodes, and one more, see with what was acknowledged.
func (l *load) check(t *testing.T, another order.Order) {
	t.Helper()
	l.stop()
	l.group.Wait()
	mark := fmt.Appendf(nil, "mark %x", rand.Uint64())
	must.Succeed(t)(ordertest.Propose(t.Context(), l.nodes[0], mark))
	var views [][]ordertest.Place
	for _, o := range append(l.nodes, another) {
		seen, err := ordertest.Until(t.Context(), o, 1, mark)
		must.NoError(t, err)
		if views = append(views, seen); ordertest.Equal(views[0], seen) != "" {
			t.Fatalf("node %d differs: %s", len(views)-1, ordertest.Equal(views[0], seen))
		}
	}
	there := map[string]bool{}
	for _, x := range views[0] {
		there[string(x.P)] = true
	}
	missing := 0
	for who := range l.last {
		for n := int64(1); n <= l.last[who].Load(); n++ {
			if !there[fmt.Sprintf("%d %d", who, n)] {
				missing++
			}
		}
	}
	if missing > 0 {
		t.Errorf("%d of %d acknowledged proposals are missing", missing, l.acknowledged.Load())
	}
}

// Nothing acknowledged is lost when the server is killed, and its users go on when it is back.
func TestKilledServer(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t)
	nodes := []order.Order{open(t, s.URL()), open(t, s.URL())}
	for _, o := range nodes {
		defer o.Close()
	}
	l := start(t, nodes...)
	times := must.Full(2, 20)
	for range times {
		l.more(t, "proposals are acknowledged")
		s.Kill()
		s.Start()
	}
	l.more(t, "proposals are acknowledged again")
	another := open(t, s.URL())
	defer another.Close()
	l.check(t, another)
}

// With a synchronous standby nothing is acknowledged without it, or shown to those who
// follow; and nothing is lost with the primary.
func TestStandby(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t)
	standby := primary.Standby()
	url := primary.URL(standby)
	ordertest.Run(t, func() order.Order { return open(t, url) })
	if _, err := postgres.Open(t.Context(), standby.URL(), nil); err == nil {
		t.Error("a standby alone is taken for an order")
	}
	primary.Exec("DROP TABLE mcp_pif_order, mcp_pif_proposals")

	nodes := []order.Order{open(t, url), open(t, url)}
	for _, o := range nodes {
		defer o.Close()
	}
	l := start(t, nodes...)
	l.more(t, "proposals are acknowledged")
	standby.Signal(syscall.SIGSTOP)
	// What was under way may still come; then nothing does.
	secret := []byte("not yet")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	if err := nodes[0].Propose(ctx, secret); err == nil {
		t.Error("a proposal was acknowledged without the standby")
	}
	cancel()
	ctx, cancel = context.WithTimeout(t.Context(), time.Second)
	if seen, err := ordertest.Until(ctx, nodes[1], 1, secret); err == nil {
		t.Errorf("place %d is shown that the standby doesn't have", seen[len(seen)-1].Place)
	}
	cancel()
	standby.Signal(syscall.SIGCONT)
	l.more(t, "proposals are acknowledged when the standby is back")
	primary.Kill()
	standby.Promote()
	l.more(t, "proposals are acknowledged by the new primary")
	l.check(t, open(t, standby.URL()))
}

// An order that lost something, or is another one, says so.
func TestLoss(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t)
	o := open(t, s.URL())
	defer o.Close()
	for n := range 10 {
		must.NoError(t, o.Propose(t.Context(), fmt.Append(nil, n)))
	}
	follow := func(from uint64) error {
		return o.Follow(t.Context(), from, func(place uint64, p []byte) error {
			if string(p) == "9" {
				return errors.New("the end")
			}
			return nil
		})
	}
	s.Exec("DELETE FROM mcp_pif_proposals WHERE place = 5")
	for from, want := range map[uint64]string{1: "lost proposals", 5: "lost proposals", 6: "the end"} {
		if err := follow(from); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("without place 5, from %d: %v", from, err)
		}
	}
	s.Exec("DELETE FROM mcp_pif_proposals WHERE place > 8")
	if err := follow(9); !errors.Is(err, order.ErrEnds) {
		t.Errorf("without the last places, from 9: %v", err)
	}
	s.Exec("UPDATE mcp_pif_order SET last = 8")
	// A standby that lacked the end took over, and the place was given again.
	at, ended := make(chan bool, 1), make(chan error, 1)
	go func() {
		ended <- o.Follow(t.Context(), 8, func(uint64, []byte) error {
			at <- true
			return nil
		})
	}()
	wait.For(t, at, "the last place")
	s.Exec("UPDATE mcp_pif_proposals SET p = 'other' WHERE place = 8")
	s.Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'mcp-pif' AND query NOT LIKE '%UPDATE%'")
	if err := wait.For(t, ended, "the end of Follow"); !errors.Is(err, order.ErrEnds) {
		t.Errorf("with something else at the last place: %v", err)
	}
	if err := follow(10); !errors.Is(err, order.ErrEnds) {
		t.Errorf("with an earlier end, from 10: %v", err)
	}
	s.Exec("UPDATE mcp_pif_order SET identity = 'another'")
	if err := follow(6); !errors.Is(err, order.ErrOther) {
		t.Errorf("another order's Follow: %v", err)
	}
	if err := o.Propose(t.Context(), []byte("x")); !errors.Is(err, order.ErrOther) {
		t.Errorf("another order's Propose: %v", err)
	}
	if _, err := o.Identity(t.Context()); !errors.Is(err, order.ErrOther) {
		t.Errorf("another order's Identity: %v", err)
	}
	if err := o.Trim(t.Context(), 3); !errors.Is(err, order.ErrOther) {
		t.Errorf("another order's Trim: %v", err)
	}
}

// Who adds doesn't wait while a lot is deleted.
func TestTrimBesideOthers(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t)
	o := open(t, s.URL())
	defer o.Close()
	must.NoError(t, o.Propose(t.Context(), []byte("first")))
	s.Exec("INSERT INTO mcp_pif_proposals SELECT n, '' FROM generate_series(2, 12000) n")
	s.Exec("UPDATE mcp_pif_order SET last = 12000")
	conn, err := pgx.Connect(t.Context(), s.URL())
	must.NoError(t, err)
	defer conn.Close(context.Background())
	other, err := pgx.Connect(t.Context(), s.URL())
	must.NoError(t, err)
	defer other.Close(context.Background())
	tx, err := conn.Begin(t.Context()) // has the deletion wait
	must.NoError(t, err)
	_, err = tx.Exec(t.Context(), "SELECT FROM mcp_pif_proposals WHERE place = 7000 FOR UPDATE")
	must.NoError(t, err)
	trimmed := make(chan error, 1)
	trim := func() { trimmed <- o.Trim(t.Context(), 11_000) }
	go trim()
	wait.Until(t, "the deletion waits", func() bool {
		select {
		case <-trimmed: // it waits for some seconds only
			go trim()
		default:
		}
		n := 0
		must.NoError(t, other.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'").Scan(&n))
		return n > 0
	})
	s.Exec("SELECT last FROM mcp_pif_order FOR UPDATE NOWAIT") // as who adds
	must.NoError(t, tx.Rollback(t.Context()))
	wait.For(t, trimmed, "the end of Trim") // which may have given up
	must.NoError(t, o.Trim(t.Context(), 11_000))
	n, first := 0, 0
	must.NoError(t, conn.QueryRow(t.Context(), "SELECT count(*), min(place) FROM mcp_pif_proposals").Scan(&n, &first))
	if n != 1001 || first != 11_000 {
		t.Errorf("%d are left, from %d on", n, first)
	}
}

// TestPlan: what nodes read is planned as a few rows also where no statistics say so: a server that takes it for much compiles
// it each time, for half a second, in which no node may act.
func TestPlan(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t)
	o := open(t, s.URL())
	defer o.Close()
	must.NoError(t, o.Propose(t.Context(), []byte("first")))
	s.Exec("INSERT INTO mcp_pif_proposals SELECT n, '' FROM generate_series(2, 50000) n")
	s.Exec("UPDATE mcp_pif_order SET last = 50000")
	conn, err := pgx.Connect(t.Context(), s.URL())
	must.NoError(t, err)
	defer conn.Close(context.Background())
	rows, err := conn.Query(t.Context(), "EXPLAIN "+postgres.Read, 49_000)
	must.NoError(t, err)
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if text := strings.Join(plan, "\n"); err != nil || strings.Contains(text, "JIT") || !strings.Contains(text, "mcp_pif_proposals") {
		t.Error(err, text)
	}
}

// A server that doesn't keep what it acknowledges isn't used.
func TestUnsafeServer(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, "synchronous_commit=off")
	o := open(t, s.URL())
	defer o.Close()
	must.NoError(t, o.Propose(t.Context(), []byte("x")))
	// What is acknowledged is in the log on disk at once, whatever the server's default is.
	s.Kill()
	s.Start()
	ctx, cancel := context.WithTimeout(t.Context(), wait.Limit(t))
	defer cancel()
	if _, err := ordertest.Until(ctx, o, 1, []byte("x")); err != nil {
		t.Error(err)
	}
	s.Kill()
	s.Start("fsync=off")
	if _, err := postgres.Open(t.Context(), s.URL(), nil); err == nil || !strings.Contains(err.Error(), "fsync") {
		t.Errorf("a server with fsync off: %v", err)
	}
	for _, url := range []string{"postgres://[", "host=/nowhere user=pif"} {
		if _, err := postgres.Open(t.Context(), url, nil); err == nil {
			t.Errorf("%s: no error", url)
		}
	}
}
