package ordertest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/journal/order"
)

// ErrNotAcknowledged is what a proposer gets whom a [Faulty] order doesn't acknowledge.
var ErrNotAcknowledged = errors.New("no acknowledgement: whether the proposal has a place isn't known")

// A Fate is what a [Faulty] order does with one proposal. The zero Fate stores it once and
// acknowledges it.
type Fate struct {
	// Lost leaves it out. A proposal that is lost and acknowledged is what no engine may
	// do: controls need it.
	Lost bool
	// Refused answers with ErrNotAcknowledged, whether or not it is stored.
	Refused bool
	// Before and After delay the storing, and the answer.
	Before, After time.Duration
	// Copies is how many further places it gets, each Apart after the one before.
	Copies int
	Apart  time.Duration
	// Skip is how many numbers before its place are none.
	Skip uint64
}

// A Faulty is an order in memory that produces on demand what engines do under faults.
type Faulty struct {
	*order.Memory
	mu   sync.Mutex
	fate func(p []byte) Fate
}

// NewFaulty returns an empty order. fate decides each proposal's, one call at a time, in the
// order of proposing.
func NewFaulty(fate func(p []byte) Fate) *Faulty {
	return &Faulty{Memory: order.NewMemory(order.MemoryOptions{}), fate: fate}
}

// Open returns a node's access to the order.
func (f *Faulty) Open() order.Order {
	life, end := context.WithCancelCause(context.Background())
	return &faulty{f.Memory.Open(), f, life, end}
}

// A faulty is one node's access.
type faulty struct {
	order.Order
	of   *Faulty
	life context.Context
	end  context.CancelCauseFunc
}

func (a *faulty) Close() error {
	a.end(order.ErrClosed)
	return a.Order.Close()
}

func (a *faulty) Propose(ctx context.Context, p []byte) error {
	if err := errors.Join(context.Cause(a.life), ctx.Err()); err != nil {
		return err
	}
	if len(p) > order.MaxProposal {
		return order.ErrTooLarge
	}
	p = slices.Clone(p)
	a.of.mu.Lock()
	fate := a.of.fate(p)
	a.of.mu.Unlock()
	answer := make(chan error, 1)
	go func() { // what was sent arrives, whoever still waits for the answer
		o := a.of.Memory.Open()
		time.Sleep(fate.Before)
		if !fate.Lost {
			a.of.Skip(fate.Skip)
			_ = o.Propose(context.Background(), p) // which has no reason to fail
		}
		go func() {
			for range fate.Copies {
				time.Sleep(fate.Apart)
				_ = o.Propose(context.Background(), p)
			}
		}()
		time.Sleep(fate.After)
		if fate.Refused {
			answer <- ErrNotAcknowledged
		}
		close(answer)
	}()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-a.life.Done():
		return order.ErrClosed
	}
}
