// Package queue has calls wait for their turn: in slots, by the order in which they
// arrived and by how much memory they take, and for the processors, on which runs
// compute a slice of steps at a time.
//
// It knows no server but as somebody who has turns: several servers of one process
// share [Processors] so that no principal's runs keep another's waiting.
package queue

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/mcp-pif/mcp-pif/core/fault"
)

// Slots lets so many runs be under way at once, with so many bytes of code and
// input together, since what is read from them takes a multiple of their size;
// the others wait in the order in which their calls arrived. A run with more
// bytes than that is under way alone.
type Slots struct {
	mu      sync.Mutex
	free    int
	bytes   int       // of the runs under way
	most    int       // bytes together
	under   int       // runs under way
	room    int       // how many may wait
	waiting []*waiter // by ticket
}

// A waiter is a call that waits for a slot.
type waiter struct {
	ticket uint64
	bytes  int
	turn   chan struct{} // closed when the slot is its own
}

// NewSlots lets n runs be under way at once, with so many bytes together, and room calls wait.
func NewSlots(n, bytes, room int) Slots { return Slots{free: n, most: bytes, room: room} }

// admits reports whether a run of so many bytes may start now.
func (s *Slots) admits(bytes int) bool {
	return s.free > 0 && (s.under == 0 || s.bytes+bytes <= s.most)
}

func (s *Slots) take(bytes int) {
	s.free--
	s.under++
	s.bytes += bytes
}

// Enter takes a slot, waiting for it if need be. The fault is overloaded or
// cancelled, and no slot is held then.
func (s *Slots) Enter(ctx context.Context, ticket uint64, bytes int) *fault.Fault {
	s.mu.Lock()
	if len(s.waiting) == 0 && s.admits(bytes) {
		s.take(bytes)
		s.mu.Unlock()
		return nil
	}
	if len(s.waiting) >= s.room {
		s.mu.Unlock()
		return fault.Newf(fault.Overloaded, "%d of your calls are waiting for their turn, and no more fit", s.room).
			Hinted("Wait for answers to the calls already made, then make this one again.")
	}
	w := &waiter{ticket: ticket, bytes: bytes, turn: make(chan struct{})}
	s.waiting = slices.Insert(s.waiting, sort.Search(len(s.waiting), func(i int) bool { return s.waiting[i].ticket > ticket }), w)
	s.mu.Unlock()
	select {
	case <-w.turn:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	if at := slices.Index(s.waiting, w); at >= 0 {
		s.waiting = slices.Delete(s.waiting, at, at+1)
		s.admit() // it may have been in the way of others
		s.mu.Unlock()
		return Cancelled()
	}
	s.mu.Unlock()
	s.Leave(bytes) // it was given the slot at the same moment
	return Cancelled()
}

// Leave gives a slot back, to the first who wait.
func (s *Slots) Leave(bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free++
	s.under--
	s.bytes -= bytes
	s.admit()
}

// admit gives slots to those who wait, in order, as far as they go.
func (s *Slots) admit() {
	for len(s.waiting) > 0 && s.admits(s.waiting[0].bytes) {
		w := s.waiting[0]
		s.waiting = slices.Delete(s.waiting, 0, 1)
		s.take(w.bytes)
		close(w.turn)
	}
}

// Cancelled is the fault of a call that is given up.
func Cancelled() *fault.Fault {
	return &fault.Fault{Kind: fault.Cancelled, Message: "the call was cancelled"}
}

// Processors hands out the processors to runs, a slice of steps at a time. A run's
// first slice goes before the further slices of others, so that short runs
// don't wait for long ones; but one turn in eight is a further slice's, so that
// long ones get on too. Among either the servers have turns, so that many runs of one principal don't
// keep another's waiting. Holding runs back here, rather than leaving them all to
// Go's scheduler, keeps it free for the goroutines that read and write.
type Processors struct {
	most   time.Duration // that a slice holds others back; 0: longSlice
	making *Processors   // for long code to be read, of which there are no slices

	mu           sync.Mutex
	free         int
	held         []*Lease // those that hold others back, the earliest first
	watched      bool     // for a lease that takes long
	turns        uint
	first, later fair
}

// Read waits for a turn to read so many bytes of code, which short code needs none for. What end ends
// may be over before.
func (c *Processors) Read(over <-chan struct{}, s any, bytes int) (end func()) {
	if bytes < LongCode {
		return func() {}
	}
	l := c.making.Enter(over, s, true)
	if l == nil {
		return func() {}
	}
	return l.End
}

// NewProcessors returns all processors there are.
func NewProcessors() *Processors {
	n := runtime.GOMAXPROCS(0)
	return &Processors{free: n, making: &Processors{free: max(1, n/2), most: LongMaking}}
}

// Enter takes a processor for a slice of a run of one of the servers, unless over is closed before there is
// one, and the lease is nil: a run that is to end has no turn to wait for.
func (c *Processors) Enter(over <-chan struct{}, s any, first bool) *Lease {
	c.mu.Lock()
	c.endLate()
	if c.free > 0 {
		c.free--
		l := c.lease()
		c.mu.Unlock()
		return l
	}
	turn := &turn{has: make(chan struct{})}
	if first {
		c.first.push(s, turn)
	} else {
		c.later.push(s, turn)
	}
	c.watch()
	c.mu.Unlock()
	select {
	case <-turn.has:
		return turn.lease
	case <-over:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	turn.gone = true
	return turn.lease // which it may have since the same moment
}

// A turn is what a run waits for.
type turn struct {
	has   chan struct{} // closed when there is a lease
	lease *Lease
	gone  bool // nobody waits any more
}

// A Lease is a processor that a slice has.
type Lease struct {
	c    *Processors
	late time.Time // from then on it holds nobody back
}

// longSlice is after how long a slice holds nobody back any more: Go's scheduler has it share
// the processors with those whose turn comes then.
const longSlice = 10 * time.Millisecond

// LongMaking is the same where code is read: most of it takes less, but an evolve runs its examples, too.
const LongMaking = time.Second

// LongCode is from how many bytes on code is read in turns. What is shorter takes no longer than a slice
// or two, and mustn't wait for what does.
const LongCode = 8 << 10

func (c *Processors) lease() *Lease {
	l := &Lease{c, time.Now().Add(cmp.Or(c.most, longSlice))}
	c.held = append(c.held, l)
	return l
}

// End gives the processor back, if that didn't happen before.
func (l *Lease) End() {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	if i := slices.Index(l.c.held, l); i >= 0 {
		l.c.held = slices.Delete(l.c.held, i, i+1)
		l.c.pass()
	}
}

// endLate gives back the processors of the leases that have taken long.
func (c *Processors) endLate() {
	now := time.Now()
	for len(c.held) > 0 && !c.held[0].late.After(now) {
		c.held = slices.Delete(c.held, 0, 1)
		c.pass()
	}
}

// watch ends leases that take long while somebody waits. Only then is there a timer: a slice is
// short, and to set one would wake a thread for each.
func (c *Processors) watch() {
	if c.watched || len(c.held) == 0 || len(c.first.order)+len(c.later.order) == 0 {
		return
	}
	c.watched = true
	time.AfterFunc(time.Until(c.held[0].late), func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.watched = false
		c.endLate()
		c.watch()
	})
}

// pass gives a processor to the next in turn.
func (c *Processors) pass() {
	c.turns++
	from, other := &c.first, &c.later
	if c.turns%8 == 0 {
		from, other = other, from
	}
	turn := from.pop()
	if turn == nil {
		turn = other.pop()
	}
	if turn == nil {
		c.free++
		return
	}
	turn.lease = c.lease()
	close(turn.has)
}

// fair is those who wait, a queue for each server. The servers have turns.
type fair struct {
	of    map[any]*fifo
	order []any // whose turn is next first
}

func (f *fair) push(s any, c *turn) {
	q := f.of[s]
	if q == nil {
		if f.of == nil {
			f.of = map[any]*fifo{}
		}
		q = new(fifo)
		f.of[s] = q
		f.order = append(f.order, s)
	}
	q.push(c)
}

// pop takes off the next who still waits; nil: nobody does.
func (f *fair) pop() *turn {
	for len(f.order) > 0 {
		s := f.order[0]
		f.order = append(f.order[:0], f.order[1:]...)
		q := f.of[s]
		next, ok := q.pop()
		for ok && next.gone {
			next, ok = q.pop()
		}
		if q.empty() {
			delete(f.of, s)
		} else {
			f.order = append(f.order, s)
		}
		if ok {
			return next
		}
	}
	return nil
}

// fifo is a queue of those who wait.
type fifo struct {
	items []*turn
	start int
}

func (f *fifo) push(c *turn) {
	if f.start > 64 && f.start*2 > len(f.items) {
		f.items = append(f.items[:0], f.items[f.start:]...)
		f.start = 0
	}
	f.items = append(f.items, c)
}

func (f *fifo) pop() (*turn, bool) {
	if f.start == len(f.items) {
		f.items, f.start = f.items[:0], 0
		return nil, false
	}
	c := f.items[f.start]
	f.items[f.start] = nil
	f.start++
	return c, true
}

func (f *fifo) empty() bool { return f.start == len(f.items) }
