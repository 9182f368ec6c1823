package mcpserver

import (
	"container/heap"
	"context"
	"fmt"
	"sync"

	"github.com/mcp-pif/mcp-pif/core/fault"
)

// slots lets so many runs be under way at once, with so many bytes of code and
// input together, since what is read from them takes a multiple of their size;
// the others wait in the order in which their calls arrived. A run with more
// bytes than that is under way alone.
type slots struct {
	mu      sync.Mutex
	free    int
	bytes   int // of the runs under way
	most    int // bytes together
	under   int // runs under way
	room    int // how many may wait
	waiting waiters
}

// A waiter is a call that waits for a slot.
type waiter struct {
	ticket uint64
	bytes  int
	index  int           // in the heap; -1 once out
	turn   chan struct{} // closed when the slot is its own
}

// codeWeight and textWeight are how much more a byte of code counts than one of
// input: in memory it becomes up to twenty, of the text form eighty, and as many
// again while it is read.
const (
	codeWeight = 16
	textWeight = 32
)

// weight is what a task's code counts for.
func (t *task) weight() int {
	n, isText := len(t.code), t.isText
	if t.tool != nil {
		n, isText = len(t.tool.Source), t.tool.Text
	}
	if isText {
		return textWeight * n
	}
	return codeWeight * n
}

// admits reports whether a run of so many bytes may start now.
func (s *slots) admits(bytes int) bool {
	return s.free > 0 && (s.under == 0 || s.bytes+bytes <= s.most)
}

func (s *slots) take(bytes int) {
	s.free--
	s.under++
	s.bytes += bytes
}

// enter takes a slot, waiting for it if need be. The fault is overloaded or
// cancelled, and no slot is held then.
func (s *slots) enter(ctx context.Context, ticket uint64, bytes int) *fault.Fault {
	s.mu.Lock()
	if len(s.waiting) == 0 && s.admits(bytes) {
		s.take(bytes)
		s.mu.Unlock()
		return nil
	}
	if len(s.waiting) >= s.room {
		s.mu.Unlock()
		return &fault.Fault{
			Kind:    fault.Overloaded,
			Message: fmt.Sprintf("%d calls are waiting for their turn, no more fit", s.room),
			Hint:    "Wait for answers to the calls already made, then make this one again.",
		}
	}
	w := &waiter{ticket: ticket, bytes: bytes, turn: make(chan struct{})}
	heap.Push(&s.waiting, w)
	s.mu.Unlock()
	select {
	case <-w.turn:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	if w.index >= 0 {
		heap.Remove(&s.waiting, w.index)
		s.admit() // it may have been in the way of others
		s.mu.Unlock()
		return cancelled()
	}
	s.mu.Unlock()
	s.leave(bytes) // it was given the slot at the same moment
	return cancelled()
}

// leave gives a slot back, to the first who wait.
func (s *slots) leave(bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free++
	s.under--
	s.bytes -= bytes
	s.admit()
}

// admit gives slots to those who wait, in order, as far as they go.
func (s *slots) admit() {
	for len(s.waiting) > 0 && s.admits(s.waiting[0].bytes) {
		w := heap.Pop(&s.waiting).(*waiter)
		s.take(w.bytes)
		close(w.turn)
	}
}

func cancelled() *fault.Fault {
	return &fault.Fault{Kind: fault.Cancelled, Message: "the call was cancelled"}
}

// waiters is a heap with the earliest ticket on top.
type waiters []*waiter

func (w waiters) Len() int           { return len(w) }
func (w waiters) Less(i, j int) bool { return w[i].ticket < w[j].ticket }
func (w waiters) Swap(i, j int) {
	w[i], w[j] = w[j], w[i]
	w[i].index, w[j].index = i, j
}
func (w *waiters) Push(x any) {
	x.(*waiter).index = len(*w)
	*w = append(*w, x.(*waiter))
}
func (w *waiters) Pop() any {
	last := len(*w) - 1
	x := (*w)[last]
	(*w)[last] = nil
	*w = (*w)[:last]
	x.index = -1
	return x
}

// cpu hands out the processors to runs, a slice of steps at a time. A run's
// first slice goes before the further slices of others, so that short runs
// don't wait for long ones; but one turn in eight is a further slice's, so that
// long ones get on too. Holding runs back here, rather than leaving them all to
// Go's scheduler, keeps it free for the goroutines that read and write.
type cpu struct {
	mu           sync.Mutex
	free         int
	turns        uint
	first, later fifo
}

// enter takes a processor for a slice. Slices are short, so there is no way
// out of the wait.
func (c *cpu) enter(first bool) {
	c.mu.Lock()
	if c.free > 0 {
		c.free--
		c.mu.Unlock()
		return
	}
	turn := make(chan struct{})
	if first {
		c.first.push(turn)
	} else {
		c.later.push(turn)
	}
	c.mu.Unlock()
	<-turn
}

// leave gives the processor back, to the next in turn.
func (c *cpu) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turns++
	from, other := &c.first, &c.later
	if c.turns%8 == 0 {
		from, other = other, from
	}
	if turn, ok := from.pop(); ok {
		close(turn)
	} else if turn, ok := other.pop(); ok {
		close(turn)
	} else {
		c.free++
	}
}

// fifo is a queue of those who wait.
type fifo struct {
	items []chan struct{}
	start int
}

func (f *fifo) push(c chan struct{}) {
	if f.start > 64 && f.start*2 > len(f.items) {
		f.items = append(f.items[:0], f.items[f.start:]...)
		f.start = 0
	}
	f.items = append(f.items, c)
}

func (f *fifo) pop() (chan struct{}, bool) {
	if f.start == len(f.items) {
		f.items, f.start = f.items[:0], 0
		return nil, false
	}
	c := f.items[f.start]
	f.items[f.start] = nil
	f.start++
	return c, true
}
