package journal

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
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

// A Feeder appends what is in an order to a store that is in no cluster.
type Feeder struct {
	Store *Store
	Now   *atomic.Int64 // the store's clock, in microseconds

	last    map[boot]uint64
	content map[boot][]byte
	newest  map[string]uint64 // of each tool
	changed uint64
}

// Feed takes the next proposal. One that was there before is left out, as nodes do; times are its proposer's. The store
// knows conditions of all tools only: who asked for one of some tools that holds has read the newest change, as who is refused
// reads it.
func (f *Feeder) Feed(payload []byte) error {
	p, err := decodeProposal(payload)
	if err != nil || p.n <= f.last[p.boot] {
		return err
	}
	if f.last == nil {
		f.last, f.content, f.newest = map[boot]uint64{}, map[boot][]byte{}, map[string]uint64{}
	}
	if p.n != f.last[p.boot]+1 {
		return fmt.Errorf("of a boot of the node %s %d comes after %d", p.node, p.n, f.last[p.boot])
	}
	f.last[p.boot] = p.n
	content := append(f.content[p.boot], p.content...)
	if f.content[p.boot] = content; p.piece < p.pieces-1 {
		return nil
	}
	delete(f.content, p.boot)
	batch, err := decodeEntries(content)
	if err != nil {
		return err
	}
	for _, x := range batch {
		if len(x.tools) > 0 && !slices.ContainsFunc(x.tools, func(name string) bool { return f.newest[name] > x.after }) {
			x.after = f.changed
		} else if len(x.tools) > 0 {
			x.after = 0
		}
		f.Now.Store(x.e.Time.UnixMicro())
		seq, err := f.Store.Take(encodeEntries([]*entry{x}))
		if errors.Is(err, ErrBehind) {
			continue
		} else if err != nil {
			return err
		}
		parts := x.all
		if x.blob == nil && parts == nil {
			parts = []Part{{Kind: x.e.Kind, Data: x.e.Data}}
		}
		for i, part := range parts {
			if e := (Event{Kind: part.Kind, Data: part.Data}); e.Kind.Changes() {
				f.changed = seq + uint64(i)
				f.newest[e.Tool()] = f.changed
			}
		}
	}
	return nil
}
