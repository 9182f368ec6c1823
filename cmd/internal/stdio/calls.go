package stdio

import (
	"sync"

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
