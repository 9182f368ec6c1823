package stdio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// errStopped is what waiting returns when the session stops. For the SDK io.EOF
// is what makes it a regular end.
var errStopped = fmt.Errorf("stdio: the session is over: %w", io.EOF)

// codeRejected makes the SDK fail one call rather than the session: its
// ErrRejected, which is internal and compared by code.
const codeRejected = -32005

// A conn is one session. The SDK calls Read from one goroutine, Write from any,
// and Close when the session has ended and its handlers have returned.
type conn struct {
	log      *slog.Logger
	in       io.Reader
	frames   *frames
	out      *writer
	calls    calls
	notes    notes
	patience time.Duration // see [backpressureTimeout]
	grace    time.Duration // see [closeGrace]
	release  func() bool   // detaches from the context of Connect

	batches atomic.Bool // the session's version has batches
	parts   []part      // of the last batch, not taken yet; Read's

	stalled   bool   // the last call over the limit waited in vain,
	stalledAt uint64 // when so many calls had ended

	once    sync.Once
	stopped chan struct{}
	err     error // why it stopped, once it has
	closing sync.Once
}

var _ mcp.Connection = (*conn)(nil)

// SessionID returns "": there is one session, and it needs no name.
func (c *conn) SessionID() string { return "" }

// stop ends the session: it frees whoever waits in Read or Write. What is
// queued for Out is still written.
func (c *conn) stop(err error) {
	c.once.Do(func() {
		c.err = err
		close(c.stopped)
	})
}

// writeFailed ends the session on the first failed Write. That the client has
// gone is no failure of ours.
func (c *conn) writeFailed(err error) {
	if gone(err) {
		c.log.Debug("the client no longer reads", "error", err)
	} else {
		c.log.Warn("writing failed", "error", err)
	}
	c.stop(lost(err))
}

// Close writes what is queued, if the client takes it, and closes In. It may be
// called several times and at any time; it makes Read return io.EOF.
func (c *conn) Close() error {
	c.stop(io.EOF)
	c.closing.Do(func() {
		c.release()
		select {
		case <-c.out.done():
		case <-time.After(c.grace):
			c.log.Warn("the client doesn't read its answers")
		}
		if in, ok := c.in.(io.Closer); ok {
			if err := in.Close(); err != nil && !gone(err) {
				c.log.Debug("closing the input failed", "error", err)
			}
		}
	})
	return nil
}

// Read returns the client's next message. Lines that aren't messages, or can't
// be taken, it answers itself. At the end of input it returns io.EOF only after
// every answer owed has been written.
func (c *conn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		select {
		case <-c.stopped:
			return nil, c.err
		case <-ctx.Done():
			return nil, ctx.Err()
		default:
		}
		if ping := c.notes.ping(); ping != nil {
			return ping, nil
		}
		p, err := c.next()
		switch {
		case err == errStopped:
			return nil, c.err
		case err != nil:
			return c.drain(err)
		}
		msg, refused := c.take(p)
		switch {
		case refused != nil:
			c.refuse(refused, p)
			continue
		case msg == nil:
			c.leave(p.batch)
			continue
		}
		if r, ok := msg.(*jsonrpc.Request); !ok || !r.ID.IsValid() {
			c.leave(p.batch)
		}
		return msg, nil
	}
}

// next returns the next message of a batch, or else the next line.
func (c *conn) next() (part, error) {
	if len(c.parts) > 0 {
		p := c.parts[0]
		c.parts = c.parts[1:]
		return p, nil
	}
	f, err := c.frames.next()
	return part{frame: f}, err
}

// take makes of a line a message for the SDK, or says why not. Neither means
// that there is nothing to do.
func (c *conn) take(f part) (jsonrpc.Message, *refusal) {
	if f.batch == nil {
		if refused, ok := c.unpack(f.frame); ok {
			return nil, refused
		}
	}
	if f.long != nil {
		return nil, refuseOversized(f.long.head, f.long.tail, c.frames.limit)
	}
	m, refused := parse(f.line)
	if refused != nil || m == nil {
		return nil, refused
	}
	if !f.owned || f.batch != nil { // one message of a batch would keep the memory of all
		m.params = bytes.Clone(m.params)
		m.result = bytes.Clone(m.result)
	}
	switch {
	case m.method == "" && (m.result != nil || m.fault != nil):
		if !c.calls.forget(m.id.key) {
			return nil, nil
		}
		return &jsonrpc.Response{ID: m.id.key, Result: m.result, Error: m.fault}, nil
	case m.call:
		if m.method == methodInitialize && f.batch != nil {
			return nil, invalid([]byte(m.id.text()), "initialize can't be part of a batch")
		}
		if refused := c.admit(m, len(f.line), f.batch); refused != nil {
			return nil, refused
		}
	case m.method == methodCancelled:
		target, ok := cancelledID(m.params)
		if !ok {
			return nil, nil
		}
		its, ok := c.calls.cancel(target.key)
		if !ok {
			return nil, nil // too late, or nonsense; either way nobody waits
		}
		c.leave(its)
		m.params = cancelParams(target.key)
	case !c.notes.room(len(f.line), backpressureTimeout, c.stopped):
		c.log.Debug("notification dropped: too many are unhandled", "method", m.method)
		return nil, nil
	}
	return &jsonrpc.Request{ID: m.id.key, Method: m.method, Params: m.params}, nil
}

// cancelParams names a call to cancel as the SDK knows it, which isn't always as
// the client wrote it, and nothing else: what the SDK can't decode of the params would
// have it drop the cancellation of a call that has no answer any more.
func cancelParams(k jsonrpc.ID) []byte {
	return append(appendKey([]byte(`{"requestId":`), k), '}')
}

// admit enters a call in the account, or says why not.
func (c *conn) admit(m *message, size int, b *batch) *refusal {
	for {
		result, at := c.calls.begin(m.id, m.method, size, b)
		switch result {
		case admitted:
			return nil
		case inUse:
			return invalid(nil, "id %.100s is in use by an earlier request", appendKey(nil, m.id.key))
		}
		if !c.awaitSlot(at) {
			return &refusal{code: codeOverloaded, id: appendID(nil, m.id), reason: fmt.Sprintf(
				"overloaded: over %d requests or %d bytes of them are unanswered; try again when some are",
				c.calls.maxCalls, c.calls.maxBytes)}
		}
	}
}

// awaitSlot waits for a call to end, and reports whether to try again. It waits
// once in vain and then not at all until calls end again, so that a cancellation
// is never far behind requests that are refused.
func (c *conn) awaitSlot(at standing) bool {
	if c.stalled && at.freed == c.stalledAt {
		return false
	}
	select {
	case <-at.changed:
		c.stalled = false
		return true
	case <-c.stopped:
	case <-time.After(c.patience):
		c.log.Warn("overloaded: refusing requests")
		c.stalled, c.stalledAt = true, at.freed
	}
	return false
}

// refuse answers a line with an error. An id that another request has in flight
// isn't used: the client would take the error for that one's answer.
func (c *conn) refuse(r *refusal, f part) {
	size := int64(len(f.line))
	if f.long != nil {
		size = f.long.size
	}
	c.log.Debug("line refused", "code", r.code, "reason", r.reason, "bytes", size)
	if i, ok := parseID(r.id); ok && c.calls.holds(i.key) {
		r.id = nil
	}
	l := line{echo: string(r.id), kind: fault, body: errorBody(r.fault())}
	if f.batch != nil {
		var ok bool
		if l, ok = f.batch.leave(&l); !ok {
			return
		}
	}
	_ = c.out.send(context.Background(), l) // what makes it fail ends the session too
}

// drain sees the session through its end of input: nobody will answer our own
// calls, which fails them; every request gets its answer; subscriptions, which
// by themselves never end, are ended by us and so answered too. It returns the
// messages that this takes, and at last the reader's error.
func (c *conn) drain(end error) (jsonrpc.Message, error) {
	if k, ok := c.calls.end(); ok {
		return &jsonrpc.Response{ID: k, Error: errInputEnded}, nil
	}
	for {
		at := c.calls.standing()
		if at.owed == 0 {
			break
		}
		if k, ok := c.calls.endListen(); ok {
			return &jsonrpc.Request{Method: methodCancelled, Params: cancelParams(k)}, nil
		}
		select {
		case <-at.changed:
		case <-c.stopped:
			return nil, c.err
		}
	}
	select {
	case <-c.out.done():
	case <-c.stopped:
		return nil, c.err
	}
	if gone(end) {
		end = io.EOF
	} else {
		c.log.Warn("reading failed", "error", end)
	}
	c.stop(end)
	return nil, c.err // of a failed write, if the last ones failed
}

// errInputEnded fails our own calls once the client can't answer them.
var errInputEnded = &jsonrpc.Error{Code: codeRejected, Message: "the client has closed its end and can't answer"}

// Write sends a message, unless it answers a cancelled call: such an answer is
// dropped. It waits while the client is slow to read.
func (c *conn) Write(ctx context.Context, msg jsonrpc.Message) error {
	echo := ""
	var in *batch
	switch m := msg.(type) {
	case *jsonrpc.Request:
		if err := ctx.Err(); err != nil {
			return err
		}
		if m.ID.IsValid() && !c.calls.ask(m.ID) {
			return errInputEnded
		}
		if m.Method == methodCancelled {
			if target, ok := cancelledID(m.Params); ok {
				c.calls.forget(target.key)
			}
		}
	case *jsonrpc.Response:
		if m.ID == pingKey {
			c.notes.pass()
			return nil
		}
		entry, known := c.calls.finish(m.ID)
		if entry.cancelled {
			c.log.Debug("answer to a cancelled call dropped")
			return nil
		}
		if known {
			defer c.calls.countAnswer()
		}
		if entry.initialize && m.Error == nil {
			c.negotiate(m.Result)
		}
		echo, in = entry.echo, entry.batch
	}
	l, err := newLine(msg, echo)
	if err != nil {
		return err
	}
	if in != nil {
		var ok bool
		if l, ok = in.leave(&l); !ok {
			return nil
		}
	}
	return c.out.send(ctx, l)
}

// gone reports whether an error of In or Out says that the other side, or we,
// have closed it.
func gone(err error) bool {
	return slices.ContainsFunc([]error{io.EOF, io.ErrClosedPipe, os.ErrClosed, net.ErrClosed, syscall.EPIPE, syscall.ECONNRESET}, func(closed error) bool {
		return errors.Is(err, closed)
	})
}

// lost returns what a failed Write means to the SDK: for it, io.EOF is the end of a
// session and anything else a failure to report.
func lost(err error) error {
	if gone(err) {
		return fmt.Errorf("%w: the client no longer reads: %w", io.EOF, err)
	}
	return fmt.Errorf("stdio: writing: %w", err)
}
