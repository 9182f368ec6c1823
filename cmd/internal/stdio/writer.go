package stdio

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcp-pif/mcp-pif/core/display"
	pifjson "github.com/mcp-pif/mcp-pif/core/json"
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

// maxErrorText bounds the message of an error. The SDK quotes params that it
// can't decode whole, which would send a client its 16 MiB back, escaped.
const maxErrorText = 8 << 10

// A line is a message on its way out. All its parts but key are JSON text
// without newlines; appendTo puts them together. The SDK would encode the
// finished result once more, only to copy it.
type line struct {
	key    jsonrpc.ID
	echo   string // instead of key, unless ""
	method string // "" for a response
	body   []byte // params, result or error; may be nil for params
	kind   bodyKind
	whole  []byte // instead of all of these: a line as it is
}

type bodyKind string

const (
	params bodyKind = `,"params":`
	result bodyKind = `,"result":`
	fault  bodyKind = `,"error":`
)

func (l line) appendTo(b []byte) []byte {
	if l.whole != nil {
		return append(append(b, l.whole...), '\n')
	}
	b = append(b, `{"jsonrpc":"2.0"`...)
	if l.kind != params || l.key.IsValid() {
		b = append(b, `,"id":`...)
		if l.echo != "" {
			b = append(b, l.echo...)
		} else {
			b = appendKey(b, l.key)
		}
	}
	if l.kind == params {
		b = append(b, `,"method":`...)
		b = appendString(b, l.method)
	}
	if len(l.body) > 0 {
		b = append(b, l.kind...)
		b = append(b, l.body...)
	}
	return append(b, "}\n"...)
}

// newLine prepares a message of the SDK. echo is the id of a response as the
// client wrote it, if that matters.
func newLine(msg jsonrpc.Message, echo string) (line, error) {
	switch m := msg.(type) {
	case *jsonrpc.Request:
		body, err := oneLine(m.Params)
		return line{key: m.ID, method: m.Method, kind: params, body: body}, err
	case *jsonrpc.Response:
		if m.Error != nil {
			return line{key: m.ID, echo: echo, kind: fault, body: errorBody(m.Error)}, nil
		}
		body, err := oneLine(m.Result)
		switch {
		case err != nil:
			return line{key: m.ID, echo: echo, kind: fault, body: errorBody(err)}, nil
		case len(body) == 0:
			body = []byte("null")
		}
		return line{key: m.ID, echo: echo, kind: result, body: body}, nil
	}
	return line{}, fmt.Errorf("stdio: can't send a %T", msg)
}

// oneLine removes the newlines from JSON text. The SDK's own encoder leaves
// none; a middleware that puts a result together itself might.
func oneLine(body []byte) ([]byte, error) {
	if bytes.IndexByte(body, '\n') < 0 {
		return body, nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, body); err != nil {
		return nil, fmt.Errorf("stdio: malformed message: %w", err)
	}
	return b.Bytes(), nil
}

// errorBody encodes the error of a response. An error without a code is one
// that a handler returned as it came, which the SDK would send as code 0.
func errorBody(err error) []byte {
	var wire jsonrpc.Error
	if coded, ok := err.(*jsonrpc.Error); ok {
		wire = *coded
	} else {
		wire.Message = err.Error()
		if errors.As(err, &coded) {
			wire.Code = coded.Code
		}
	}
	wire.Code = cmp.Or(wire.Code, jsonrpc.CodeInternalError)
	if all := len(wire.Message); all > maxErrorText {
		cut := display.Prefix(wire.Message, maxErrorText)
		wire.Message = fmt.Sprintf("%s… (the first %d of %d bytes)", cut, len(cut), all)
	}
	b, err := pifjson.Encode(&wire)
	if err != nil {
		wire.Data = nil // the only part that can fail to encode
		b, _ = pifjson.Encode(&wire)
	}
	return b
}
