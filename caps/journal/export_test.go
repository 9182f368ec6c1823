package journal

import (
	"context"
	"crypto/ed25519"
	"time"
)

// Head returns the number and hash of the newest event.
func (s *Store) Head() (seq uint64, hash Hash, err error) {
	s.flush()
	e, err := lastEvent(s.readers)
	if err != nil {
		return 0, Hash{}, err
	}
	return e.Seq, e.Hash, nil
}

// ID returns the store's own name: random, made with it.
func (s *Store) ID() string { return s.id }

// Key returns what the signatures of the store's checkpoints are checked with.
func (s *Store) Key() ed25519.PublicKey { return s.public }

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
