package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdkmcp "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// An exchange is one request and what its transport knows of it: the SDK has no word for
// whether anything was sent, and decodes numbers as doubles.
type exchange struct {
	// most is the bytes that the answer may have as it is transferred.
	most int64
	// sent is set before the first byte of the request may reach the server.
	sent atomic.Bool

	mu      sync.Mutex
	raw     json.RawMessage // the result, as it came
	trouble error           // why there is none, if the transport knows
}

// What a transport knows of a request that has no answer.
var (
	errTooLarge = errors.New("the answer is too large")
	errAnswer   = errors.New("the answer is against the protocol")
	errLost     = errors.New("the connection was lost")
)

// A statusError is an HTTP status that isn't one of success.
type statusError struct {
	status     int
	retryAfter int64 // seconds; 0: not said
	isLost     bool  // the server doesn't know the session any more
}

func (e *statusError) Error() string { return fmt.Sprintf("HTTP status %d", e.status) }

// fail notes the first trouble.
func (x *exchange) fail(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.trouble == nil {
		x.trouble = err
	}
}

// result gives what came of it.
func (x *exchange) result() (json.RawMessage, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.raw, x.trouble
}

type exchangeKey struct{}

// exchanging returns a context for one request.
func exchanging(ctx context.Context, x *exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
}

// maxOwn is the bytes of an answer to a request that the SDK makes by itself.
const maxOwn = 1 << 20

// exchanges is those that are under way, by the identifiers of their requests.
type exchanges struct {
	// notice is told of what the server says without being asked, in order.
	notice func(method string, params json.RawMessage)

	mu   sync.Mutex
	byID map[jsonrpc.ID]pending
	asks int // requests of the server that aren't answered yet
}

type pending struct {
	*exchange
	method string
	ctx    context.Context // its request's
}

// begin notes a request that is about to be sent; done forgets it, so that a late answer
// is for nobody.
func (e *exchanges) begin(ctx context.Context, r *jsonrpc.Request) (x *exchange) {
	x, ok := ctx.Value(exchangeKey{}).(*exchange)
	if !ok {
		x = &exchange{most: maxOwn}
	}
	e.mu.Lock()
	if e.byID == nil {
		e.byID = map[jsonrpc.ID]pending{}
	}
	e.byID[r.ID] = pending{x, r.Method, ctx}
	e.mu.Unlock()
	context.AfterFunc(ctx, func() { e.forget(r.ID) })
	return x
}

func (e *exchanges) forget(id jsonrpc.ID) (p pending, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p, ok = e.byID[id]
	delete(e.byID, id)
	return p, ok
}

// most is the bytes that any message may have now.
func (e *exchanges) most() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	most := int64(maxOwn)
	for _, p := range e.byID {
		most = max(most, p.exchange.most)
	}
	return most
}

// room waits until there is room for so many bytes of an answer whose identifier may not be seen yet.
func (e *exchanges) room(id jsonrpc.ID, bytes int64) error {
	e.mu.Lock()
	p := e.byID[id]
	for _, other := range e.byID {
		if !id.IsValid() && len(e.byID) == 1 { // of several, nobody knows which one's it is
			p = other
		}
	}
	e.mu.Unlock()
	if p.exchange == nil {
		return nil
	}
	return sdk.Room(p.ctx, bytes)
}

// mostOf is the bytes that the answer to a request may have.
func (e *exchanges) mostOf(id jsonrpc.ID) int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if p, ok := e.byID[id]; ok {
		return p.exchange.most
	}
	return maxOwn
}

// maxAsks is how many requests of a server may wait for their answers.
const maxAsks = 16

// receive takes a message that came. It keeps the result of a tool as it is and gives the
// SDK an empty one in its place, so that nothing of it is decoded twice. It gives nil for
// what is for nobody.
func (e *exchanges) receive(m jsonrpc.Message) jsonrpc.Message {
	switch m := m.(type) {
	case *jsonrpc.Request:
		if !m.IsCall() {
			e.notice(m.Method, m.Params)
			return nil
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.asks >= maxAsks {
			return nil
		}
		e.asks++
	case *jsonrpc.Response:
		p, ok := e.forget(m.ID)
		if !ok {
			return nil
		}
		if m.Error != nil {
			p.fail(m.Error) // the SDK takes some codes for its own, of a lost connection
			return m
		}
		if int64(len(m.Result)) > p.exchange.most {
			p.fail(errTooLarge)
			return &jsonrpc.Response{ID: m.ID, Error: errTooLarge}
		}
		stub := stubs[p.method]
		if stub == nil {
			return m
		}
		p.mu.Lock()
		p.raw = m.Result
		p.mu.Unlock()
		m.Result = stub
	}
	return m
}

// answered notes that a request of the server was answered.
func (e *exchanges) answered() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asks--
}

// stubs is what the SDK is given for the results that this package reads itself.
var stubs = map[string]json.RawMessage{
	"tools/call": json.RawMessage(`{"content":[]}`),
	"tools/list": json.RawMessage(`{"tools":[]}`),
}

// failed is the answer to a request that got none, with the reason in its exchange.
func (e *exchanges) failed(id jsonrpc.ID, why error) jsonrpc.Message {
	p, ok := e.forget(id)
	if !ok {
		return nil
	}
	p.fail(why)
	return &jsonrpc.Response{ID: id, Error: why}
}

// A connection is a transport's, and says when it has ended.
type connection interface {
	sdkmcp.Connection
	ended() <-chan struct{}
}

// A ready transport is one whose connection is there.
type ready struct{ connection }

// Connect gives it to the SDK.
func (r ready) Connect(context.Context) (sdkmcp.Connection, error) { return r.connection, nil }
