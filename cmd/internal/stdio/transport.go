// Package stdio carries MCP over a pair of byte streams: one JSON-RPC message a
// line in, one a line out. It is an [mcp.Transport] for servers, in place of
// the SDK's StdioTransport, whose session a single malformed line ends and whose
// end of input loses the answers still being worked on.
//
// It decides which lines are messages. A line that isn't JSON is answered with
// -32700, one that is JSON but no JSON-RPC message, and one over the size
// limit, with -32600, and the session goes on. Envelopes are read in one pass
// and handed to the SDK decoded; params stay the bytes the client sent.
//
// It keeps an account of the requests read and not yet answered. From it
// follow: an id in use is refused to a second request; a cancelled call is
// never answered; a request beyond the limits is answered "overloaded" while
// cancellations still get through; and at the end of input every request read
// so far is answered before the session ends, so that
//
//	mcp-pif < requests.jsonl
//
// prints every answer and exits.
//
// It takes batches in the sessions of versions that had them, up to 2025-03-26, and
// answers each with one line; in others it refuses them. It knows only the methods
// whose meaning touches the account: initialize, subscriptions/listen,
// notifications/cancelled.
// Nothing but JSON-RPC is ever written to Out.
//
// Start at [Transport]; then conn.go for the life of a session, envelope.go for
// what is a message, calls.go for the account and for several in a line,
// writer.go for the way out.
package stdio

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Defaults of the limits in [Transport].
const (
	// DefaultMaxFrame is the longest line accepted, in bytes: what the SDK
	// accepts, and more than the TypeScript clients do (10 MiB).
	DefaultMaxFrame = 16 << 20
	// DefaultMaxCalls is how many requests may be read and unanswered at once.
	DefaultMaxCalls = 10_000
	// DefaultMaxCallBytes is how many bytes of requests may be read and
	// unanswered at once. The SDK holds a small multiple of it.
	DefaultMaxCallBytes = 32 << 20
	// MaxDepth is how deep the params of a message may nest. The SDK refuses to
	// decode deeper ones, with an error that quotes them whole.
	MaxDepth = 1000
)

// backpressureTimeout is how long a request beyond the limits waits for another to end
// before it is refused. A client that pipes in a long file of short calls is
// slowed down rather than turned away; once calls have stopped ending nobody
// waits any more. A regular file can't send a cancellation that would free a
// slot, so its patience ends only where a deadlock must be broken.
const (
	backpressureTimeout = 50 * time.Millisecond
	fileTimeout         = time.Minute
)

// closeGrace is how long closing waits for a client to take the answers already
// given. It matters only for a client that has stopped reading.
const closeGrace = time.Second

// Transport is an [mcp.Transport] over In and Out. Set the fields before
// Connect and leave them alone afterwards; one Transport serves one session.
//
// The context given to Connect, that is to [mcp.Server.Run], is the life of the
// session: when it ends, reading ends and the calls in flight are cancelled.
//
// Closing the session closes In if it is an [io.Closer]; Out stays open. When
// Out is an [*os.File], Connect arranges for the whole process that writing to
// a closed pipe is an error rather than a fatal SIGPIPE.
type Transport struct {
	In  io.Reader // lines from the client
	Out io.Writer // lines to the client, each whole line in one Write

	// Log is told at debug level of every line refused and answer dropped, at
	// warning level of what ends a session early. Nil discards.
	Log *slog.Logger

	// MaxFrame bounds the bytes of a line, without its newline. A longer one is
	// skipped without being held. 0 means [DefaultMaxFrame].
	MaxFrame int
	// MaxCalls bounds the requests in flight. 0 means [DefaultMaxCalls].
	MaxCalls int
	// MaxCallBytes bounds the bytes of the requests in flight; a single request
	// within MaxFrame is always let in. 0 means [DefaultMaxCallBytes].
	MaxCallBytes int

	connected atomic.Bool
}

var _ mcp.Transport = (*Transport)(nil)

// Connect starts reading In. It fails if In or Out is missing or if the
// Transport has been connected before.
func (t *Transport) Connect(ctx context.Context) (mcp.Connection, error) {
	if t.In == nil || t.Out == nil {
		return nil, errors.New("stdio: Transport needs In and Out")
	}
	if t.connected.Swap(true) {
		return nil, errors.New("stdio: Transport is already connected")
	}
	return t.connect(ctx), nil
}

func (t *Transport) connect(ctx context.Context) *conn {
	if _, ok := t.Out.(*os.File); ok {
		surviveSIGPIPE()
	}
	log := cmp.Or(t.Log, slog.New(slog.DiscardHandler))
	c := &conn{
		log:      log,
		in:       t.In,
		stopped:  make(chan struct{}),
		patience: backpressureTimeout,
		grace:    closeGrace,
		calls: calls{
			maxCalls: or(t.MaxCalls, DefaultMaxCalls),
			maxBytes: or(t.MaxCallBytes, DefaultMaxCallBytes),
		},
	}
	if f, ok := t.In.(*os.File); ok {
		if st, err := f.Stat(); err == nil && st.Mode().IsRegular() {
			c.patience = fileTimeout
		}
	}
	c.notes.passed = make(chan struct{}, 1)
	c.out = newWriter(t.Out, c.stopped, c.writeFailed)
	c.frames = newFrames(t.In, or(t.MaxFrame, DefaultMaxFrame), c.stopped)
	c.release = context.AfterFunc(ctx, func() { c.stop(context.Cause(ctx)) })
	return c
}

func or(n, otherwise int) int {
	if n > 0 {
		return n
	}
	return otherwise
}

// surviveSIGPIPE makes a write to a closed pipe on descriptor 1 or 2 fail with
// EPIPE; without it the runtime would end the process by the signal, and with
// it what the server still has to put away. Stderr counts too: a client that
// dies closes both, and the farewell to the log must not be what kills us.
//
// Notify, not Ignore: an ignored signal is inherited by child processes.
var surviveSIGPIPE = sync.OnceFunc(func() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
})
