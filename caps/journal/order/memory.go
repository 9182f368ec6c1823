package order

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sort"
	"sync"
)

// MemoryOptions of an order in memory.
type MemoryOptions struct {
	// Identity of the order; a random one where it is empty.
	Identity string
	// First is the first place, 1 where it is 0: an order that goes on after a file's
	// last place has the next one.
	First uint64
}

// A Memory is an order that lasts as long as its process. Each node opens it.
type Memory struct {
	mu       sync.Mutex
	identity string
	first    uint64 // the first place that is kept, or the one that the next proposal gets
	last     uint64 // the last number used
	kept     []placed
	grown    chan struct{} // closed at each change
}

type placed struct {
	place uint64
	p     []byte
}

// NewMemory returns an empty order.
func NewMemory(options MemoryOptions) *Memory {
	m := &Memory{identity: options.Identity, first: max(options.First, 1), grown: make(chan struct{})}
	if m.identity == "" {
		m.identity = rand.Text()
	}
	m.last = m.first - 1
	return m
}

// Open returns a node's access to the order.
func (m *Memory) Open() Order {
	ctx, cancel := context.WithCancelCause(context.Background())
	return &access{memory: m, life: ctx, end: cancel}
}

// Truncate takes the last places back, as an engine does that lost them, and
// makes those that follow beyond return ErrEnds.
func (m *Memory) Truncate(after uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept = slices.DeleteFunc(m.kept, func(x placed) bool { return x.place > after })
	m.last = max(min(m.last, after), m.first-1)
	m.wake()
}

// Replace makes it another order, which is empty.
func (m *Memory) Replace() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept, m.first, m.last, m.identity = nil, 1, 0, rand.Text()
	m.wake()
}

// wake tells those who follow. The caller has the lock.
func (m *Memory) wake() {
	close(m.grown)
	m.grown = make(chan struct{})
}

// Skip leaves numbers out before the next place.
func (m *Memory) Skip(n uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last += n
}

// from returns what is kept from a place on, at most some, and what is closed when there is more.
func (m *Memory) from(place uint64, identity string) ([]placed, <-chan struct{}, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	place = cmp.Or(place, m.first)
	switch {
	case identity != m.identity:
		return nil, nil, ErrOther
	case place < m.first:
		return nil, nil, ErrTrimmed
	case place > m.last+1:
		return nil, nil, ErrEnds
	}
	i := sort.Search(len(m.kept), func(i int) bool { return m.kept[i].place >= place })
	return slices.Clone(m.kept[i:min(len(m.kept), i+64)]), m.grown, nil
}

// An access is one node's.
type access struct {
	memory *Memory
	life   context.Context
	end    context.CancelCauseFunc

	mu       sync.Mutex
	identity string // once seen
}

// joined returns a context that ends with ctx and with the access.
func (a *access) joined(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(a.life, func() { cancel(ErrClosed) })
	if a.life.Err() != nil {
		cancel(ErrClosed)
	}
	return ctx, func() { stop(); cancel(nil) }
}

// ended returns why ctx, which is joined, ended; nil if it didn't.
func ended(ctx context.Context) error {
	if context.Cause(ctx) == ErrClosed {
		return ErrClosed
	}
	return ctx.Err()
}

func (a *access) Propose(ctx context.Context, p []byte) error {
	if len(p) > MaxProposal {
		return ErrTooLarge
	}
	if err := errors.Join(context.Cause(a.life), ctx.Err()); err != nil {
		return err
	}
	m := a.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last++
	m.kept = append(m.kept, placed{m.last, slices.Clone(p)})
	m.wake()
	return nil
}

func (a *access) Follow(ctx context.Context, from uint64, fn func(uint64, []byte) error) error {
	ctx, done := a.joined(ctx)
	defer done()
	identity, err := a.Identity(ctx)
	if err != nil {
		return err
	}
	for {
		some, grown, err := a.memory.from(from, identity)
		if err != nil {
			return err
		}
		for _, x := range some {
			if err := ended(ctx); err != nil {
				return err
			}
			if err := fn(x.place, slices.Clone(x.p)); err != nil {
				return err
			}
			from = x.place + 1
		}
		if len(some) > 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return ended(ctx)
		case <-grown:
		}
	}
}

// Identity returns the order's as it was when this node first asked, or ErrOther.
func (a *access) Identity(ctx context.Context) (string, error) {
	if err := context.Cause(a.life); err != nil {
		return "", err
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	a.memory.mu.Lock()
	now := a.memory.identity
	a.memory.mu.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.identity = cmp.Or(a.identity, now)
	if a.identity != now {
		return "", ErrOther
	}
	return now, nil
}

func (a *access) Trim(ctx context.Context, before uint64) error {
	if err := errors.Join(context.Cause(a.life), ctx.Err()); err != nil {
		return err
	}
	m := a.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	m.first = max(m.first, min(before, m.last+1))
	m.kept = slices.DeleteFunc(m.kept, func(x placed) bool { return x.place < m.first })
	return nil
}

func (a *access) Close() error {
	a.end(ErrClosed)
	return nil
}
