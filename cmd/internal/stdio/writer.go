package stdio

import (
	"context"
	"io"
	"sync"
)

const (
	// highWater is how many bytes may wait to be written before those who have
	// more to say wait too. One line of any size may go over it.
	highWater = 1 << 20
	// keepBuffer is the largest buffer kept for the next messages.
	keepBuffer = 256 << 10
)

// A writer puts whole lines on a stream, in the order of the calls of send. A
// goroutine of its own does so while there is something to write: a Write that
// blocks, because the client doesn't read, can't be interrupted, and so mustn't
// be what a handler is stuck in. What is sent meanwhile gathers in a buffer and
// goes out in the next Write, so that a thousand answers that come at once cost
// a few system calls.
type writer struct {
	out     io.Writer
	stopped <-chan struct{}
	failed  func(error) // told once, of the first failed Write

	mu    sync.Mutex
	buf   []byte        // not yet given to out
	spare []byte        // the other buffer, while nobody writes it
	busy  bool          // run is running
	err   error         // of the first failed Write; nothing is written after it
	room  chan struct{} // closed when buf was taken or err set, if anyone waits
	quiet chan struct{} // closed when nothing is left to write, if anyone waits
}

func newWriter(out io.Writer, stopped <-chan struct{}, failed func(error)) *writer {
	return &writer{out: out, stopped: stopped, failed: failed}
}

// send queues a line. It waits while too much is queued already, until the
// context or the session ends. It returns the error of an earlier line; that
// this one can't be written only failed and the next send will say.
func (w *writer) send(ctx context.Context, l line) error {
	w.mu.Lock()
	for w.err == nil && len(w.buf) >= highWater {
		if w.room == nil {
			w.room = make(chan struct{})
		}
		room := w.room
		w.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		case <-w.stopped:
			return errStopped
		}
		w.mu.Lock()
	}
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	w.buf = l.appendTo(w.buf)
	if !w.busy {
		w.busy = true
		go w.run()
	}
	return nil
}

// run writes until nothing is left.
func (w *writer) run() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.buf) > 0 {
		w.write()
	}
	w.busy = false
	if w.quiet != nil {
		close(w.quiet)
		w.quiet = nil
	}
}

// write writes what is queued. It is called, and returns, with the lock held.
func (w *writer) write() {
	buf := w.buf
	w.buf, w.spare = w.spare[:0], nil
	w.wake()
	w.mu.Unlock()
	n, err := w.out.Write(buf)
	if err == nil && n < len(buf) {
		err = io.ErrShortWrite
	}
	if err != nil {
		w.failed(err)
	}
	w.mu.Lock()
	if cap(buf) <= keepBuffer {
		w.spare = buf[:0]
	}
	if err != nil {
		w.err = lost(err)
		w.buf = nil
		w.wake()
	}
}

// wake wakes who waits for room.
func (w *writer) wake() {
	if w.room != nil {
		close(w.room)
		w.room = nil
	}
}

// done returns a channel that is closed once nothing is left to write.
func (w *writer) done() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.quiet == nil {
		w.quiet = make(chan struct{})
	}
	quiet := w.quiet
	if !w.busy {
		close(w.quiet)
		w.quiet = nil
	}
	return quiet
}
