package stdio

import (
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// maxNotes and maxNoteBytes bound the notifications handed to the SDK at once.
// Twice as much may be unhandled.
const (
	maxNotes     = 256
	maxNoteBytes = 4 << 20
)

// notes bounds the notifications that the SDK has queued. It takes them faster
// than it handles them, without limit, and doesn't say when it has handled one.
// But it handles messages in order: so after every batch of notifications comes
// a ping of our own, and its answer, which goes nowhere, says that the batch is
// done with. All but passed belongs to the goroutine in Read.
type notes struct {
	count, bytes int           // notifications since the last ping
	due          bool          // a ping is to be sent next
	out          bool          // one is unanswered
	stalled      bool          // and has been waited for in vain
	passed       chan struct{} // has a token once it is answered
}

// pingKey is the id of the ping. No client has it: see [calls.begin].
var pingKey = key("\x00notifications handled")

// ping returns the ping if it is due.
func (n *notes) ping() *jsonrpc.Request {
	if !n.due {
		return nil
	}
	n.due, n.out = false, true
	n.count, n.bytes = 0, 0
	return &jsonrpc.Request{ID: pingKey, Method: "ping"}
}

// pass records the answer to the ping.
func (n *notes) pass() {
	select {
	case n.passed <- struct{}{}:
	default:
	}
}

// room reports whether the SDK can take another notification of so many bytes.
// If it can't it waits, but not for long: a handler of a notification may itself
// be waiting for a message that comes later.
func (n *notes) room(size int, patience time.Duration, stopped <-chan struct{}) bool {
	select {
	case <-n.passed:
		n.out, n.stalled = false, false
	default:
	}
	if n.out && (n.count >= maxNotes || n.bytes >= maxNoteBytes) {
		if n.stalled {
			return false
		}
		enough := time.NewTimer(patience)
		defer enough.Stop()
		select {
		case <-n.passed:
			n.out = false
		case <-stopped:
			return false
		case <-enough.C:
			n.stalled = true
			return false
		}
	}
	n.count++
	n.bytes += size
	n.due = !n.out && (n.count >= maxNotes || n.bytes >= maxNoteBytes)
	return true
}
