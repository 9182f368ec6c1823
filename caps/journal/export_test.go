package journal

import (
	"context"
	"time"
)

// KeepWithinEvery is KeepWithin that looks more often.
func (s *Store) KeepWithinEvery(ctx context.Context, l Limits, every time.Duration) {
	s.keepWithin(ctx, l, every, 0)
}

// HeldTo is the limit that the store is held within while it is written; 0: none.
func (s *Store) HeldTo() int64 { return s.quota.get() }

// References gives the hashes that an event's data refers to.
var References = references

// SetMostDropped sets how many events are dropped at once, and gives back what
// it was.
func SetMostDropped(n uint64) (before uint64) {
	before, maxDropped = maxDropped, n
	return before
}

// Failing returns why the last attempt to write failed; nil: it didn't.
func (s *Store) Failing() error {
	if s.writer == nil {
		return nil
	}
	s.writer.mu.Lock()
	defer s.writer.mu.Unlock()
	return s.writer.failing
}

// Newest collects what [Journal.EachNewest] gives.
func Newest(j Journal, through uint64) (events []Event, err error) {
	err = j.EachNewest(through, func(e *Event) error {
		events = append(events, *e)
		return nil
	})
	return events, err
}
