package order

import (
	"context"
	"errors"
	"slices"
	"sort"
	"sync"
)

// What Share keeps of the order's end.
const (
	maxTailBytes  = 16 << 20
	maxTailPlaces = 4096
)

// Share returns o with all that follow its end served by one Follow of o, from memory. Who
// begins further back follows o by itself until it has come to what is in memory.
func Share(o Order) Order { return &shared{Order: o} }

type shared struct {
	Order
	mu   sync.Mutex
	tail *tail // of those who follow; nil while there are none
}

// A tail is the end of the order as one Follow sees it.
type tail struct {
	stop  context.CancelFunc
	users int

	mu    sync.Mutex
	from  uint64 // the least place of which all that come after are kept
	next  uint64 // the place after the last one seen
	kept  []placed
	bytes int
	err   error         // why it ended
	grown chan struct{} // closed at each change
}

// errCaughtUp ends a follower's own Follow.
var errCaughtUp = errors.New("in memory from here on")

func (s *shared) Follow(ctx context.Context, from uint64, fn func(uint64, []byte) error) error {
	if from == 0 {
		return s.Order.Follow(ctx, 0, fn)
	}
	t := s.enter(from)
	defer s.leave(t)
	for {
		some, grown, behind, err := t.since(from)
		if behind {
			// Not in memory (any more).
			err := s.Order.Follow(ctx, from, func(place uint64, p []byte) error {
				if err := fn(place, p); err != nil {
					return err
				}
				from = place + 1
				if t.has(from) {
					return errCaughtUp
				}
				return nil
			})
			if err != errCaughtUp {
				return err
			}
			continue
		}
		for _, x := range some {
			if err := ctx.Err(); err != nil {
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
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-grown:
		}
	}
}

// enter returns the tail, and starts it where there is none.
func (s *shared) enter(from uint64) *tail {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tail != nil && !s.tail.ended() {
		s.tail.users++
		return s.tail
	}
	ctx, cancel := context.WithCancel(context.Background())
	t := &tail{stop: cancel, users: 1, from: from, next: from, grown: make(chan struct{})}
	s.tail = t
	go func() { t.end(s.Order.Follow(ctx, from, t.add)) }()
	return t
}

func (s *shared) leave(t *tail) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.users--; t.users == 0 {
		t.stop()
		if s.tail == t {
			s.tail = nil
		}
	}
}

func (t *tail) ended() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err != nil
}

func (t *tail) wake() {
	close(t.grown)
	t.grown = make(chan struct{})
}

func (t *tail) end(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = err
	t.wake()
}

func (t *tail) add(place uint64, p []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, placed{place, p})
	t.bytes += len(p)
	t.next = place + 1
	for t.bytes > maxTailBytes || len(t.kept) > maxTailPlaces {
		t.from, t.bytes = t.kept[0].place+1, t.bytes-len(t.kept[0].p)
		t.kept[0] = placed{}
		t.kept = t.kept[1:]
	}
	t.wake()
	return nil
}

// has reports whether all from a place on is in memory, or will be.
func (t *tail) has(place uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err == nil && t.from <= place && place <= t.next
}

// since returns some of what is kept from a place on, or that it isn't kept.
func (t *tail) since(from uint64) (some []placed, grown <-chan struct{}, behind bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if from < t.from || from > t.next {
		return nil, nil, true, nil
	}
	i := sort.Search(len(t.kept), func(i int) bool { return t.kept[i].place >= from })
	return slices.Clone(t.kept[i:min(len(t.kept), i+64)]), t.grown, false, t.err
}
