package stdio

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Methods whose meaning touches the account of calls.
const (
	methodInitialize = "initialize"
	methodListen     = "subscriptions/listen"
	methodCancelled  = "notifications/cancelled"
)

// calls is the account of what was asked and not yet answered, in both
// directions. The zero value with its limits set is an empty account.
type calls struct {
	maxCalls, maxBytes int

	mu    sync.Mutex
	open  map[jsonrpc.ID]call // the client's calls that occupy the server
	bytes int                 // their lines, together
	freed uint64              // how many have left open
	owed  int                 // answers not yet handed to the writer

	listens map[jsonrpc.ID]struct{} // of open, the subscriptions nobody has ended
	asked   map[jsonrpc.ID]struct{} // our calls that the client hasn't answered
	ended   bool                    // nor will it

	changed chan struct{} // closed when open or owed shrinks, if anyone waits
}

// A call is a request of the client that the SDK is still at work on.
type call struct {
	echo       string // see id.echo
	size       int    // of its line
	initialize bool
	cancelled  bool   // no answer is to be sent
	batch      *batch // what it came in, and its answer goes back in; nil: neither
}

type admission int

const (
	admitted admission = iota
	inUse              // another call in flight has the id
	full               // over a limit
)

// begin enters a call. The standing is given with [full] only.
func (c *calls) begin(i id, method string, size int, b *batch) (admission, standing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.open[i.key]; ok || i.key == pingKey {
		return inUse, standing{}
	}
	if len(c.open) >= c.maxCalls || c.bytes+size > c.maxBytes && len(c.open) > 0 {
		return full, c.stand()
	}
	if c.open == nil {
		c.open = make(map[jsonrpc.ID]call)
		c.listens = make(map[jsonrpc.ID]struct{})
	}
	if method == methodListen {
		c.listens[i.key] = struct{}{}
	}
	c.open[i.key] = call{echo: i.echo, size: size, initialize: method == methodInitialize, batch: b}
	c.bytes += size
	c.owed++
	return admitted, standing{}
}

// holds reports whether a call in flight has the id.
func (c *calls) holds(k jsonrpc.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.open[k]
	return ok
}

// finish takes out a call that the SDK has done with; its id is free again. If
// the answer is still owed, the caller hands it to the writer and calls
// answered.
func (c *calls) finish(k jsonrpc.ID) (entry call, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry, known = c.open[k]
	if known {
		delete(c.open, k)
		delete(c.listens, k)
		c.bytes -= entry.size
		c.freed++
		c.announce()
	}
	return entry, known
}

// countAnswer records that an answer owed is with the writer. It is apart from
// finish because an end of input seen between the two must wait for the answer,
// while a client that has seen the answer may use the id again at once.
func (c *calls) countAnswer() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.owed--
	c.announce()
}

// cancel marks a call as not to be answered, and reports whether the SDK is to
// hear of it; b is the batch that has no answer of it to wait for. An initialize
// can't be cancelled, by the specification.
func (c *calls) cancel(k jsonrpc.ID) (b *batch, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry, ok := c.open[k]
	if !ok || entry.cancelled || entry.initialize {
		return nil, false
	}
	entry.cancelled = true
	c.open[k] = entry
	delete(c.listens, k)
	c.owed--
	c.announce()
	return entry.batch, true
}

// ask enters a call of ours. It reports false if nobody is there to answer.
func (c *calls) ask(k jsonrpc.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return false
	}
	if c.asked == nil {
		c.asked = make(map[jsonrpc.ID]struct{})
	}
	c.asked[k] = struct{}{}
	return true
}

// forget takes out a call of ours that was answered or given up, and reports
// whether there was one.
func (c *calls) forget(k jsonrpc.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.asked[k]
	delete(c.asked, k)
	return ok
}

// end records that no more input comes and returns a call of ours that
// therefore stays unanswered, if there is one left.
func (c *calls) end() (k jsonrpc.ID, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	for k := range c.asked {
		delete(c.asked, k)
		return k, true
	}
	return jsonrpc.ID{}, false
}

// endListen picks a subscription for the server to end: one for which nobody
// has asked that yet, once no other answer is owed.
func (c *calls) endListen() (k jsonrpc.ID, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.owed != len(c.listens) {
		return jsonrpc.ID{}, false
	}
	for k := range c.listens {
		delete(c.listens, k)
		return k, true
	}
	return jsonrpc.ID{}, false
}

// A standing is how the account stands at one moment.
type standing struct {
	owed    int             // answers
	freed   uint64          // calls that have ended so far
	changed <-chan struct{} // closed when either is no longer so
}

func (c *calls) standing() standing {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stand()
}

func (c *calls) stand() standing {
	if c.changed == nil {
		c.changed = make(chan struct{})
	}
	return standing{c.owed, c.freed, c.changed}
}

// announce wakes who waits for the account to shrink.
func (c *calls) announce() {
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// noBatches is the first version of the protocol without batches: the one before
// it has servers take them, the one before that says nothing against them.
const noBatches = "2025-06-18"

// maxBatch is how many messages a batch may have.
const maxBatch = 1000

// A batch is a line with several messages, whose answers go back as one line. Once
// more of them than [highWater] wait for the last, they go as a line of their own:
// clients tell answers by their ids, and one slow call mustn't hold all the memory
// that a thousand answers may take.
type batch struct {
	mu    sync.Mutex
	left  int    // messages that are neither answered nor known to have no answer
	lines []byte // the answers so far, each behind a comma
}

// leave records that a message is done with, by an answer or, nil, without one. It
// returns what is to be sent now, if anything is.
func (b *batch) leave(answer *line) (line, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left--
	if answer != nil {
		b.lines = append(b.lines, ',')
		b.lines = bytes.TrimSuffix(answer.appendTo(b.lines), []byte("\n"))
	}
	if len(b.lines) == 0 || b.left > 0 && len(b.lines) < highWater {
		return line{}, false
	}
	whole := slices.Concat([]byte("["), b.lines[1:], []byte("]"))
	b.lines = nil
	return line{whole: whole}, true
}

// part is a message that came in a batch; without one in a line of its own.
type part struct {
	frame
	batch *batch
}

// unpack makes of a line that is an array the messages in it. It reports false for
// any other line, and where the session's version has no batches.
func (c *conn) unpack(f frame) (*refusal, bool) {
	if !c.batches.Load() || f.long != nil || !isArray(f.line) {
		return nil, false
	}
	parts, refused := elements(f.line)
	if refused != nil {
		return refused, true
	}
	b := &batch{left: len(parts)}
	for _, p := range parts {
		c.parts = append(c.parts, part{frame{line: p, owned: f.owned}, b})
	}
	return nil, true
}

// leave finishes with a message of a batch that has no answer.
func (c *conn) leave(b *batch) {
	if b == nil {
		return
	}
	if l, ok := b.leave(nil); ok {
		_ = c.out.send(context.Background(), l) // what makes it fail ends the session too
	}
}

// negotiate takes note of the version that an initialize settled.
func (c *conn) negotiate(result []byte) {
	var said struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	if json.Unmarshal(result, &said) == nil {
		c.batches.Store(said.ProtocolVersion != "" && said.ProtocolVersion < noBatches)
	}
}

func isArray(text []byte) bool {
	s := scanner{b: text}
	i := s.space(0)
	return i < len(text) && text[i] == '['
}

// elements takes an array of messages apart. What isn't JSON, or has no or too many
// elements, is refused as a whole.
func elements(text []byte) ([][]byte, *refusal) {
	s := scanner{b: text}
	start := s.space(0)
	end := s.value(start)
	if end >= 0 {
		if rest := s.space(end); rest < len(text) {
			end = s.fail(rest, "more after the message")
		}
	}
	if end < 0 {
		return nil, &refusal{code: jsonrpc.CodeParseError, reason: fmt.Sprintf("parse error: %s at byte %d", s.fault, s.at)}
	}
	var parts [][]byte
	for i := s.space(start + 1); text[i] != ']'; {
		if len(parts) == maxBatch {
			return nil, invalid(nil, "a batch of over %d messages", maxBatch)
		}
		after := s.value(i)
		parts = append(parts, text[i:after])
		if i = s.space(after); text[i] == ',' {
			i = s.space(i + 1)
		}
	}
	if len(parts) == 0 {
		return nil, invalid(nil, "an empty batch")
	}
	return parts, nil
}

// maxExactInt is the largest integer id that comes back over HTTP as it was.
const maxExactInt = 1 << 53

// Refusal returns the answer to a text that is no message: not JSON, not JSON-RPC, or
// with an id that can't be given back. It is nil for a message, and, where batches
// may be, for an array of them. It is for the transport over HTTP, which is the
// SDK's: that one answers such texts without a code, or takes 1.5 for the id 1.
func Refusal(text []byte, batches bool) []byte {
	parts := [][]byte{text}
	if batches && isArray(text) {
		var refused *refusal
		if parts, refused = elements(text); refused != nil {
			return refused.answer()
		}
	}
	seen := map[jsonrpc.ID]bool{}
	for _, p := range parts {
		m, refused := parse(p)
		if refused != nil {
			return refused.answer()
		}
		if m != nil && m.refused != nil {
			return m.refused.answer()
		}
		if m == nil || !m.call {
			continue
		}
		if m.id.big() {
			return invalid([]byte(m.id.echo), "over HTTP an integer id is at most %d", int64(maxExactInt)).answer()
		}
		if seen[m.id.key] {
			return invalid(nil, "id %.100s is that of two requests of the batch", appendKey(nil, m.id.key)).answer()
		}
		seen[m.id.key] = true
	}
	return nil
}

// answer returns the refusal as a message.
func (r *refusal) answer() []byte {
	l := line{echo: string(r.id), kind: fault, body: errorBody(r.fault())}
	return bytes.TrimSuffix(l.appendTo(nil), []byte("\n"))
}

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
		select {
		case <-n.passed:
			n.out = false
		case <-stopped:
			return false
		case <-time.After(patience):
			n.stalled = true
			return false
		}
	}
	n.count++
	n.bytes += size
	n.due = !n.out && (n.count >= maxNotes || n.bytes >= maxNoteBytes)
	return true
}
