// Package order defines what a cluster needs of an engine: one sequence of proposals that
// all nodes see alike.
//
// An [Order] decides nothing but the sequence. Whether a proposal was there before, whether
// its condition holds and what it changes is decided by each node that applies it, from the
// proposal and the node's own file. So an engine needs no compare-and-set, no locks and no
// deduplication, and what it answers is believed in one case only: an acknowledged proposal
// has a place that lasts. An error doesn't mean that a proposal has none.
//
// [Memory] is the order of tests and of a cluster in one process. Package ordertest holds
// every implementation against the contract, and has one that does what engines do under
// faults.
package order

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
)

// MaxProposal is the size in bytes of the largest proposal.
const MaxProposal = 1 << 20

var (
	// ErrTooLarge occurs when a proposal is larger than [MaxProposal]. It has no place.
	ErrTooLarge = fmt.Errorf("a proposal has more than %d bytes", MaxProposal)
	// ErrTrimmed occurs when the place to follow from is no longer kept: the node needs a
	// copy of another node's file.
	ErrTrimmed = errors.New("the order no longer keeps this place")
	// ErrEnds occurs when the order ends before the place that precedes the one to follow
	// from: it lost what it acknowledged, or is the copy of an older one.
	ErrEnds = errors.New("the order ends before this place: it lost proposals")
	// ErrOther occurs when there is another order now than the one that was opened.
	ErrOther = errors.New("another order is there now, with another identity")
	// ErrClosed occurs when an order is used after its Close.
	ErrClosed = errors.New("the order is closed")
)

// A Seen is the last place that a follower saw. One that follows anew begins with that place
// and not with the next one, and holds what is there now against what was there: an order
// that lost its end may have given the place to something else meanwhile.
type Seen struct {
	Place uint64 // 0: none
	Sum   [sha256.Size]byte
	again bool // Sum is yet to be compared
}

// From returns where to follow, that of next unless a place was seen, and expects that place.
func (s *Seen) From(next uint64) uint64 {
	if s.again = s.Place > 0; s.again {
		return s.Place
	}
	return next
}

// Check takes what comes, and reports whether it is new.
func (s *Seen) Check(place uint64, p []byte) (isNew bool, err error) {
	sum := sha256.Sum256(p)
	if s.again && (place != s.Place || sum != s.Sum) {
		return false, fmt.Errorf("%w: place %d isn't what it was", ErrEnds, s.Place)
	}
	isNew = !s.again
	s.Place, s.Sum, s.again = place, sum, false
	return isNew, nil
}

// An Order puts what several nodes propose into one order and keeps it. It is believed in
// this only: what Propose acknowledged is in the order, once or more often, and Follow gives
// everybody the same sequence. All else (whether it was there before, whether its condition
// held) is decided by who applies it. Its methods may be called concurrently.
type Order interface {
	// Propose returns nil when p has a place that lasts. Any other error than ErrTooLarge
	// means that nobody knows: it is proposed again, unchanged, until it is acknowledged or
	// seen. Propose tries for some seconds at most, and doesn't keep p.
	Propose(ctx context.Context, p []byte) error
	// Follow calls fn for each from a place on, in order, without gaps, one at a time, and
	// waits for further ones; from 0: from the first that is kept. Places ascend from 1, but
	// not every number is a place. The bytes belong to fn. Follow goes on by itself when the engine is out of reach for a
	// while, and makes sure then that it still has what was seen last; it returns the error of ctx or of fn, ErrTrimmed, ErrEnds, ErrOther or
	// ErrClosed.
	Follow(ctx context.Context, from uint64, fn func(place uint64, p []byte) error) error
	// Identity names the order itself: another one under the old name is another identity.
	Identity(ctx context.Context) (string, error)
	// Trim forgets what is before a place.
	Trim(ctx context.Context, before uint64) error
	// Close ends what is under way with ErrClosed. It doesn't change the order.
	Close() error
}
