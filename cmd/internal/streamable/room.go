package streamable

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// A room is a number of bytes that all principals share. Each has a little of its own, so that
// whoever wants no more than that never waits. Where the rest is short, what has been
// under way for longest gives way, of the principal that has most.
type room struct {
	size int64 // beside what each principal has of its own
	own  int64

	mu      sync.Mutex
	taken   int64
	each    map[string]int64 // bytes of those with a hold
	holds   map[*hold]struct{}
	waiting []*waiter
}

// A waiter is a hold that waits for more.
type waiter struct {
	hold  *hold
	bytes int64
	has   bool
	turn  chan struct{} // closed when it has them, or gives way
}

// A hold is what one request has of a room.
type hold struct {
	room      *room
	principal string
	bytes     int64
	since     time.Time // when it had the first
	giveWay   func()    // ends what holds it, and doesn't wait for that; nil: it stays
	told      bool      // to give way
}

// yieldDelay is for how long nothing has to give way.
const yieldDelay = time.Second

// hold begins one, with nothing. What it is for ends by giveWay.
func (r *room) hold(principal string, giveWay func()) *hold {
	h := &hold{room: r, principal: principal, giveWay: giveWay}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.holds == nil {
		r.each, r.holds = map[string]int64{}, map[*hold]struct{}{}
	}
	r.holds[h] = struct{}{}
	return h
}

// take takes bytes, waiting for them if need be; false: ctx ended, or the hold has to
// give way.
func (h *hold) take(ctx context.Context, n int64) bool {
	r := h.room
	w := &waiter{hold: h, bytes: n, turn: make(chan struct{})}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.shared(h.principal, n) <= 0 && !h.told {
		r.add(h, n)
		return true
	}
	r.waiting = append(r.waiting, w)
	for r.serve(); ctx.Err() == nil && !h.told && !w.has; r.serve() {
		timer := time.NewTimer(r.press())
		r.mu.Unlock()
		select {
		case <-w.turn:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		r.mu.Lock()
	}
	if !w.has {
		r.waiting = slices.DeleteFunc(r.waiting, func(o *waiter) bool { return o == w })
		r.serve() // it may have been in the way of others
		return false
	}
	return true
}

// serve gives room to those who wait, in the order of how little their principals have. The caller holds the lock.
func (r *room) serve() {
	for len(r.waiting) > 0 {
		next := slices.MinFunc(r.waiting, func(a, b *waiter) int { return cmp.Compare(r.each[a.hold.principal], r.each[b.hold.principal]) })
		h := next.hold
		if more := r.shared(h.principal, next.bytes); more > 0 && r.taken > 0 && r.taken+more > r.size {
			return
		}
		r.waiting = slices.DeleteFunc(r.waiting, func(o *waiter) bool { return o == next })
		r.add(h, next.bytes)
		next.has = true
		close(next.turn)
	}
}

// stay has a hold give way to nobody any more, and reports whether it still has all.
func (h *hold) stay() bool {
	h.room.mu.Lock()
	defer h.room.mu.Unlock()
	h.giveWay = nil
	return !h.told
}

// give gives bytes back.
func (h *hold) give(n int64) {
	h.room.mu.Lock()
	defer h.room.mu.Unlock()
	h.room.add(h, -n)
	h.room.serve()
}

// end gives all back.
func (h *hold) end() {
	h.room.mu.Lock()
	defer h.room.mu.Unlock()
	h.room.add(h, -h.bytes)
	delete(h.room.holds, h)
	h.room.serve()
}

// has returns how many bytes a principal holds.
func (r *room) has(principal string) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.each[principal]
}

// shared returns how much of n bytes more would be of what all share. The caller holds the
// lock.
func (r *room) shared(principal string, n int64) int64 {
	before := r.each[principal]
	return max(before+n-r.own, 0) - max(before-r.own, 0)
}

// add counts bytes. The caller holds the lock.
func (r *room) add(h *hold, n int64) {
	r.taken += r.shared(h.principal, n)
	if h.bytes == 0 {
		h.since = time.Now()
	}
	h.bytes += n
	if r.each[h.principal] += n; r.each[h.principal] == 0 {
		delete(r.each, h.principal)
	}
}

// press has the one give way whose turn it is, unless one does so already, and returns
// when to ask again. The caller holds the lock.
func (r *room) press() time.Duration {
	var longest *hold
	for h := range r.holds {
		switch {
		case h.told:
			return yieldDelay
		case h.giveWay == nil || h.bytes == 0:
		case longest == nil || r.each[h.principal] > r.each[longest.principal] ||
			r.each[h.principal] == r.each[longest.principal] && h.since.Before(longest.since):
			longest = h
		}
	}
	if longest == nil {
		return yieldDelay
	}
	if left := yieldDelay - time.Since(longest.since); left > 0 {
		return left
	}
	longest.told = true
	longest.giveWay()
	for _, w := range r.waiting {
		if w.hold == longest {
			close(w.turn)
		}
	}
	r.waiting = slices.DeleteFunc(r.waiting, func(w *waiter) bool { return w.hold == longest })
	return yieldDelay
}
