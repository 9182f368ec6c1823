package order_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/journal/order"
	"github.com/mcp-pif/mcp-pif/caps/journal/order/ordertest"
	"github.com/mcp-pif/mcp-pif/core/must"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	m := order.NewMemory(order.MemoryOptions{})
	ordertest.Run(t, m.Open)
}

func TestShared(t *testing.T) {
	t.Parallel()
	m := order.NewMemory(order.MemoryOptions{})
	ordertest.Run(t, func() order.Order { return order.Share(m.Open()) })
}

// A counted order counts how many follow it.
type counted struct {
	order.Order
	now atomic.Int64
}

func (c *counted) Follow(ctx context.Context, from uint64, fn func(uint64, []byte) error) error {
	c.now.Add(1)
	defer c.now.Add(-1)
	return c.Order.Follow(ctx, from, fn)
}

// Fifty that follow the end are one for the order. One of them falls behind what is kept in
// memory; all see what they would see alone; and none is left in the end.
func TestSharedIsOne(t *testing.T) {
	t.Parallel()
	const followers, proposals = 50, 6000
	c := &counted{Order: order.NewMemory(order.MemoryOptions{}).Open()}
	o := order.Share(c)
	propose := func(n int) {
		if err := o.Propose(t.Context(), fmt.Append(nil, n)); err != nil {
			t.Error(err)
		}
	}
	done := errors.New("done")
	propose(0)
	var group, all sync.WaitGroup
	all.Add(followers)
	for f := range followers {
		group.Go(func() {
			next, stopped := 0, false
			err := o.Follow(t.Context(), 1, func(place uint64, p []byte) error {
				if place != uint64(next+1) || string(p) != fmt.Sprint(next) {
					return fmt.Errorf("place %d has %q after %d", place, p, next)
				}
				if next == 0 {
					all.Done()
				}
				if next++; next == proposals {
					return done
				}
				if f == 0 && !stopped { // until the others have seen more than is kept
					stopped = true
					all.Wait()
					if now := c.now.Load(); now != 1 {
						t.Errorf("%d follow for %d", now, followers)
					}
					for n := 1; n < proposals; n++ {
						propose(n)
					}
				}
				return nil
			})
			if err != done {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for c.now.Load() > 0 {
		if t.Context().Err() != nil {
			t.Fatal("who follows for the others stays when they are gone")
		}
		time.Sleep(time.Millisecond)
	}
}

// faulty returns a fate of all that engines do: delays, doubled proposals, refused ones that
// are stored, refused ones that are not, numbers left out.
func faulty(seed uint64) func([]byte) ordertest.Fate {
	r := rand.New(rand.NewPCG(seed, 1))
	return func([]byte) (f ordertest.Fate) {
		if r.IntN(3) == 0 {
			f.Refused = true
			f.Lost = r.IntN(2) == 0
		}
		if r.IntN(4) == 0 {
			f.Before, f.After = time.Duration(r.IntN(3_000))*time.Microsecond, time.Duration(r.IntN(3_000))*time.Microsecond
		}
		if r.IntN(5) == 0 {
			f.Copies, f.Apart = 1+r.IntN(2), time.Duration(r.IntN(5_000))*time.Microsecond
		}
		f.Skip = uint64(max(r.IntN(8)-6, 0))
		return f
	}
}

// The contract holds under all that an engine may do.
func TestMemoryWithFaults(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			m := ordertest.NewFaulty(faulty(seed))
			ordertest.Run(t, m.Open)
		})
	}
}

// A proposer that gives up leaves a proposal that arrives later, and one that is refused
// is stored all the same.
func TestLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := ordertest.NewFaulty(func(p []byte) ordertest.Fate {
			if strings.HasPrefix(string(p), "slow") {
				return ordertest.Fate{Before: time.Second}
			}
			return ordertest.Fate{Refused: true}
		})
		o := m.Open()
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if err := o.Propose(ctx, []byte("slow")); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if err := o.Propose(t.Context(), []byte("refused")); !errors.Is(err, ordertest.ErrNotAcknowledged) {
			t.Fatal(err)
		}
		seen, err := ordertest.Until(t.Context(), o, 1, []byte("slow"))
		if err != nil || len(seen) != 2 || string(seen[0].P) != "refused" {
			t.Fatalf("%v, %v", seen, err)
		}
	})
}

// An order that loses its end, is replaced, or begins later,
// says so to those who follow it and to those who come.
func TestEnds(t *testing.T) {
	t.Parallel()
	m := order.NewMemory(order.MemoryOptions{})
	o := m.Open()
	for _, p := range []string{"a", "b", "c"} {
		must.NoError(t, o.Propose(t.Context(), []byte(p)))
	}
	must.Succeed(t)(o.Identity(t.Context()))
	err := o.Follow(t.Context(), 1, func(place uint64, p []byte) error {
		if place == 3 {
			m.Truncate(1)
		}
		return nil
	})
	if !errors.Is(err, order.ErrEnds) {
		t.Errorf("who follows an order that lost its end gets %v", err)
	}
	if err := m.Open().Follow(t.Context(), 4, nil); !errors.Is(err, order.ErrEnds) {
		t.Errorf("who comes to an order that lost its end gets %v", err)
	}
	later := order.NewMemory(order.MemoryOptions{First: 100}).Open()
	must.NoError(t, later.Propose(t.Context(), []byte("a")))
	if seen, err := ordertest.Until(t.Context(), later, 100, []byte("a")); err != nil || seen[0].Place != 100 {
		t.Errorf("an order from place 100 on: %v, %v", seen, err)
	}
	if err := later.Follow(t.Context(), 99, nil); !errors.Is(err, order.ErrTrimmed) {
		t.Errorf("who follows it from before gets %v", err)
	}
	m.Replace()
	if err := o.Follow(t.Context(), 1, nil); !errors.Is(err, order.ErrOther) {
		t.Errorf("who follows another order gets %v", err)
	}
}

// Each rule of the contract is one that the suite sees broken.
func TestSuiteSees(t *testing.T) {
	t.Parallel()
	seen := func(places ...uint64) (out []ordertest.Place) {
		for _, p := range places {
			out = append(out, ordertest.Place{Place: p, P: []byte{byte(p)}})
		}
		return out
	}
	for _, c := range []struct{ a, b []ordertest.Place }{
		{seen(1, 2), seen(1)}, {seen(1, 2), seen(1, 3)}, {seen(1), nil},
		{[]ordertest.Place{{Place: 1, P: []byte("a")}}, []ordertest.Place{{Place: 1, P: []byte("b")}}},
	} {
		if ordertest.Equal(c.a, c.b) == "" {
			t.Errorf("%v and %v are called equal", c.a, c.b)
		}
	}
	// An acknowledged proposal that is lost is missed.
	m := ordertest.NewFaulty(func(p []byte) ordertest.Fate { return ordertest.Fate{Lost: string(p) == "lost"} })
	o := m.Open()
	for _, p := range []string{"a", "lost", "z"} {
		must.Succeed(t)(ordertest.Propose(t.Context(), o, []byte(p)))
	}
	if got, err := ordertest.Until(t.Context(), o, 1, []byte("z")); err != nil || len(got) != 2 {
		t.Fatalf("%v, %v", got, err)
	}
}
