package journal

import (
	"context"
	"fmt"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/lease"
)

const (
	// proposeAgain is how long after it was acknowledged a proposal is waited for before it
	// is proposed again.
	proposeAgain = 10 * time.Second
	// lastTries is how long a store that is being closed still tries to propose what waits.
	lastTries = 3 * time.Second
)

const (
	// gatherTime is how long it is waited for those who were just answered, and gatherPause for the next one of them.
	gatherTime  = 4 * time.Millisecond
	gatherPause = time.Millisecond
	// minTogether is of how many callers at once that is worth it.
	minTogether = 4
)

// gather waits for what those who were just answered ask for next, so that it is in one proposal with what the others
// wait for: without that there are always two groups of callers, of whom one waits for the other's proposal. Where few
// call at once nobody is waited for.
func (w *writer) gather(answered int) {
	w.mu.Lock()
	together := answered + waiters(w.queue)
	w.mu.Unlock()
	if together < minTogether {
		return
	}
	over, pause := time.NewTimer(gatherTime), time.NewTimer(gatherPause)
	defer over.Stop()
	defer pause.Stop()
	for {
		w.mu.Lock()
		enough := w.closed || waiters(w.queue) >= together
		w.mu.Unlock()
		if enough {
			return
		}
		select {
		case <-w.wake:
			pause.Reset(gatherPause)
		case <-pause.C:
			return
		case <-over.C:
			return
		}
	}
}

// waiters is how many of some entries somebody waits for.
func waiters(entries []*entry) (n int) {
	for _, x := range entries {
		if x.done != nil {
			n++
		}
	}
	return n
}

// errUnknown says that nobody knows whether what was proposed will be applied.
func (w *writer) errUnknown() error {
	return &problem{w.path, ErrUnknown, "the cluster's order hasn't answered: whether this was recorded isn't known", nil}
}

// errSilent says that the order doesn't answer.
func (w *writer) errSilent() error {
	return &problem{w.path, ErrCluster, fmt.Sprintf("the cluster's order hasn't answered for %v: nothing can be recorded now", w.o.Patience), nil}
}

// propose puts a batch into the order and waits until it is applied here. One is under way at a time.
func (w *writer) propose(batch []*entry) error {
	f := w.follower
	var mine []*entry
	proposed := false
	for _, x := range batch {
		if proposed = proposed || !x.flush; !x.flush && !x.barrier {
			mine = append(mine, x)
		}
	}
	if !proposed {
		return nil
	}
	begun := lease.Now()
	content := encodeEntries(batch)
	size := len(content)
	if size > maxWhole {
		size = maxPiece
	}
	pieces := 1
	if size > 0 {
		pieces = (len(content) + size - 1) / size
	}
	for i := range pieces {
		p := proposal{profile: w.o.Profile, node: w.o.Node, boot: f.boot, base: f.base, piece: uint64(i), pieces: uint64(pieces)}
		p.content = content[i*size : min((i+1)*size, len(content))]
		x := &waiting{applied: make(chan struct{})}
		if i == pieces-1 {
			x.entries = mine
		}
		if err := f.put(&p, x, batch); err != nil {
			return err
		}
	}
	f.mu.Lock()
	f.fresh = begun
	f.mu.Unlock()
	return nil
}

// put proposes, unchanged, until it is applied here. It gives up only where the node has
// stopped, or the store is being closed; those who wait are let go after a while.
func (f *follower) put(p *proposal, x *waiting, batch []*entry) error {
	w := f.s.writer
	closing := w.closing.Done()
	timeout := time.NewTimer(w.o.Patience)
	defer timeout.Stop()
	var over <-chan time.Time
	acknowledged, seen := false, f.point().place
	// wait waits for a channel, and reports whether the proposal is to be tried again.
	wait := func(until <-chan time.Time, also <-chan struct{}) (bool, error) {
		for {
			select {
			case <-x.applied:
				return false, nil
			case <-f.stopping:
				return false, f.stopped
			case <-over:
				f.gaveUp = true
				return false, w.errUnknown()
			case <-closing:
				closing, over = nil, time.After(lastTries)
			case <-timeout.C:
				if at := f.point().place; acknowledged && at > seen {
					// The order has it, and what comes before it is being applied.
					seen = at
					timeout.Reset(w.o.Patience)
					continue
				}
				w.letGo(batch)
				timeout.Reset(time.Second)
			case <-also:
				return true, nil
			case <-until:
				return true, nil
			}
		}
	}
	if again, err := wait(nil, f.identified); !again {
		return err
	}
	if f.gaveUp {
		return w.errUnknown() // a number after one that may be missing would fence this boot
	}
	f.next++
	p.n, p.at = f.next, f.point()
	x.n = p.n
	f.mu.Lock()
	f.waiting = x
	f.mu.Unlock()
	payload := p.encode()
	said := ""
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		ctx, cancel := context.WithCancel(f.ctx)
		answered := make(chan struct{})
		var err error
		go func() {
			defer close(answered)
			err = f.order.Propose(ctx, payload)
		}()
		again, ended := wait(nil, answered)
		cancel()
		<-answered
		if !again {
			return ended
		}
		if err == nil {
			acknowledged, pause = true, proposeAgain
		} else if words := err.Error(); words != said {
			said = words
			w.o.Log.Warn("the cluster's order didn't acknowledge", "profile", w.o.Profile, "error", err)
		}
		if again, err := wait(time.After(pause), nil); !again {
			return err
		}
		if pause == proposeAgain {
			pause = time.Second
		}
	}
}

// letGo answers those who wait while the order doesn't: of what was proposed nobody knows,
// what is in the queue was not.
func (w *writer) letGo(batch []*entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failing == nil {
		w.failing = w.errSilent()
		w.o.Log.Error("the cluster's order doesn't answer", "profile", w.o.Profile)
	}
	for _, x := range batch {
		if x.done != nil && !x.told {
			x.told = true
			x.done <- outcome{0, w.errUnknown()}
		}
	}
	kept := w.queue[:0]
	for _, x := range w.queue {
		if x.done == nil {
			kept = append(kept, x)
			continue
		}
		w.held -= x.weight()
		x.done <- outcome{0, w.failing}
	}
	w.queue = kept
	w.room.Broadcast()
}
