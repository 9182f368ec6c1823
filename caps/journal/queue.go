package journal

import (
	"fmt"
	"slices"
	"time"
)

// An entry is an event on its way to the file.
type entry struct {
	e     Event
	stage Stage
	// change marks an entry that is written only if no tool was changed after
	// the event with the number after; behind is set where one was.
	change, behind bool
	after          uint64
	// tools is the names of which no change may be newer; empty: any tool's.
	tools []string
	// all is the parts of an entry that is several events, of about size bytes; e is
	// none then but for the time, and the number of the first.
	all  []Part
	size int64
	// flush marks an entry that is no event: it asks for what is before it.
	flush bool
	// barrier marks one that asks a cluster for what was acknowledged before it.
	barrier bool
	// blob is bytes to be kept by their hash, in a cluster, in place of an event.
	blob []byte
	// told is set where it has its outcome already.
	told bool
	// done gets the outcome; nil where nobody waits.
	done chan outcome
}

type outcome struct {
	seq uint64
	err error
}

func (x *entry) weight() int64 {
	if x.flush || x.barrier {
		return 0
	}
	return overhead + int64(len(x.e.Run)+len(x.e.Branch)+len(x.e.Data)) + x.size
}

// push puts an entry into the queue, when there is room.
func (w *writer) push(x *entry) error {
	n := x.weight()
	if x.done == nil { // nobody would hear of it, and it would be tried for ever
		if err := w.beyond(n); err != nil {
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.closed && w.held > 0 && w.held+n > w.o.Queue && !x.flush {
		if w.failing != nil && x.done == nil {
			w.lost++
			return fmt.Errorf("%d bytes of events wait already: %w", w.held, w.failing)
		}
		if w.failing != nil {
			break // it tries to write; whether it can is its answer
		}
		w.hasten()
		w.room.Wait()
	}
	if w.closed {
		return &problem{w.path, ErrClosed, "it was closed", nil}
	}
	if w.follower != nil && w.failing != nil && x.done != nil {
		return w.failing
	}
	if x.flush && w.stalled {
		return errNoRoom
	}
	if x.flush && w.failing != nil {
		return w.failing // writing nothing isn't the sign that it works again
	}
	w.queue = append(w.queue, x)
	w.held += n
	switch {
	case x.done != nil || w.failing == nil && w.held > w.o.Queue/4:
		w.hasten()
	case w.linger == nil:
		w.linger, w.armed = time.AfterFunc(w.o.Linger, w.lingered), true
	case !w.armed:
		w.armed = true
		w.linger.Reset(w.o.Linger)
	}
	return nil
}

// hasten has the loop write what there is now.
func (w *writer) hasten() {
	w.urgent = true
	signal(w.hurry)
	signal(w.wake)
}

// lingered has the loop write what waits for more events.
func (w *writer) lingered() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.due, w.armed = len(w.queue) > 0, false
	signal(w.wake)
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// take takes what can be written at once from the front of the queue.
func (w *writer) take() (batch []*entry, size int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	most := int64(maxBatchBytes)
	if w.follower != nil {
		most = maxWhole * 2 / 3
	}
	if limit := w.quota.get(); limit > 0 {
		most = min(most, limit/small)
	}
	n := 0
	for n < len(w.queue) && n < maxBatchEvents && (n == 0 || size+w.queue[n].weight() < most) {
		size += w.queue[n].weight()
		n++
	}
	if n == len(w.queue) {
		batch, w.queue = w.queue, nil
		w.urgent, w.due = false, false
	} else {
		batch = slices.Clone(w.queue[:n])
		w.queue = slices.Delete(w.queue, 0, n)
	}
	w.older = len(w.queue)
	return batch, size
}

// stall lets go of those who wait for nothing but what is before them, in a batch or
// behind it, and of those who come, until resume: who makes room reads, too.
func (w *writer) stall(batch []*entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stalled = true
	for _, x := range slices.Concat(batch, w.queue) {
		if x.flush && !x.told {
			x.told = true
			x.done <- outcome{}
		}
	}
}

func (w *writer) resume() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stalled = false
}

// settle answers those who wait, and puts back what is to be tried again; it gives
// how many those are, and whether the writer is being closed. Bytes count as held
// until then.
func (w *writer) settle(batch []*entry, err error) (kept int, closing bool) {
	var again []*entry
	w.mu.Lock()
	for _, x := range batch {
		if err != nil && x.done == nil {
			again = append(again, x)
			continue
		}
		w.held -= x.weight()
	}
	before, lost := w.failing, w.lost
	if w.failing = err; err == nil {
		w.lost = 0
	}
	if err != nil {
		// Those who wait behind what can't be written must not wait for long. For who
		// came since it is tried anew: what was in the way may be gone.
		n := 0
		w.queue = slices.DeleteFunc(w.queue, func(x *entry) bool {
			if n++; x.done == nil || n > w.older && !x.flush {
				return false
			}
			w.held -= x.weight()
			batch = append(batch, x)
			return true
		})
	}
	w.queue = append(again, w.queue...)
	w.due = w.due || len(again) > 0
	w.room.Broadcast()
	closing = w.closed
	w.mu.Unlock()

	for _, x := range batch {
		if x.done == nil || x.told {
			continue
		}
		if err == nil && x.behind {
			x.done <- outcome{0, ErrBehind}
		} else {
			x.done <- outcome{x.e.Seq, err}
		}
	}
	switch {
	case err != nil && before == nil:
		w.o.Log.Error("the journal can't be written", "path", w.path, "error", err)
	case err == nil && before != nil:
		w.o.Log.Warn("the journal is written again", "path", w.path, "lost", lost)
	}
	return len(again), closing
}

// A state is what it depends on which entries are appended, and as what: the number and
// hash of the newest event, and the newest changes of tools.
type state struct {
	seq     uint64
	hash    Hash
	changed uint64 // number of the newest change of any tool
	// newest is that of each tool that was asked for or changed; nil: only changed counts.
	newest map[string]uint64
}

// decide numbers and chains those of the entries whose condition holds after the
// entries before, marks the others, and adds the events to a list. It is a function of
// the state and the entries alone: every node of a cluster decides the same.
func (s *state) decide(batch []*entry, list []*Event) []*Event {
	for _, x := range batch {
		if x.behind = x.change && s.behind(x); x.flush || x.behind {
			continue
		}
		if x.all == nil {
			list = append(list, s.put(&x.e))
			continue
		}
		x.e.Seq = s.seq + 1
		for i := range x.all {
			p := &x.all[i]
			list = append(list, s.put(&Event{Time: x.e.Time, Kind: p.Kind, Data: p.fill(x.e.Seq)}))
		}
	}
	return list
}

// behind reports whether the tools have changed since what an entry is based on.
func (s *state) behind(x *entry) bool {
	if s.newest == nil || len(x.tools) == 0 {
		return s.changed > x.after
	}
	return slices.ContainsFunc(x.tools, func(name string) bool { return s.newest[name] > x.after })
}

// put makes e the newest event.
func (s *state) put(e *Event) *Event {
	s.seq++
	e.Seq, e.Prev = s.seq, s.hash
	e.Hash = e.Seal()
	s.hash = e.Hash
	if e.Kind.Changes() {
		s.changed = e.Seq
		if s.newest != nil {
			s.newest[e.Tool()] = e.Seq
		}
	}
	return e
}
