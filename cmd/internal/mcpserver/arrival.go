package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
)

// The SDK starts every call at once, in no order. A client that sends evolve
// and then run without waiting for the answer, as a file of requests does,
// means the new tool; so each call is stamped as it is read with its place in
// the order and with the tools there are, what other servers changed until then
// included, and nothing is read after an evolve or a retire until that is done.

// arriving is a transport whose requests are stamped.
type arriving struct {
	mcp.Transport
	server *Server
}

// Connect connects the transport below.
func (a arriving) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := a.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &orderly{Connection: c, server: a.server}, nil
}

// An arrival is what a call is stamped with. It travels in the one field of a
// request that the SDK hands through to the handler.
type arrival struct {
	ticket uint64
	tools  *registry.Snapshot // of a call of a tool

	// done lets reading go on before the answer, of what changes tools.
	done func()

	mu      sync.Mutex
	answers bool // its answer is with the transport, or never will be
	leave   func()
}

// WhenAnswered gives back what an answer is made with once the transport has taken it: a client that
// doesn't read its answers is slowed, and no more of them are made.
// Of a call over HTTP there is no arrival: there answers are counted where they are written.
func (a *arrival) WhenAnswered(leave func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.answers {
		leave()
		return
	}
	if earlier := a.leave; earlier != nil {
		earlier()
	}
	a.leave = leave
}

// Changed lets reading go on once the call has changed the tools, if that isn't all that
// it does.
func (a *arrival) Changed() {
	if a.done != nil {
		a.done()
	}
}

// answered gives it back.
func (a *arrival) answered() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answers = true
	if a.leave != nil {
		a.leave()
		a.leave = nil
	}
}

const arrivalKey = "mcp-pif/arrival"

func arrivalOf(extra *mcp.RequestExtra) *arrival {
	if extra == nil || extra.TokenInfo == nil {
		return nil
	}
	a, _ := extra.TokenInfo.Extra[arrivalKey].(*arrival)
	return a
}

// orderly is a connection whose requests are stamped.
type orderly struct {
	mcp.Connection
	server *Server

	mu      sync.Mutex
	pending jsonrpc.ID    // of the evolve, or retire, under way
	done    chan struct{} // closed when it is answered; nil: none under way
	calls   map[jsonrpc.ID]*arrival
}

// patience is how long reading waits for an evolve. It takes milliseconds; the
// bound is for the case that its answer is lost.
const patience = 10 * time.Second

// Read stamps calls.
func (o *orderly) Read(ctx context.Context) (jsonrpc.Message, error) {
	o.mu.Lock()
	done := o.done
	o.mu.Unlock()
	if done != nil {
		timer := time.NewTimer(patience)
		select {
		case <-done:
		case <-ctx.Done():
		case <-timer.C:
			o.readOn(nil)
		}
		timer.Stop()
	}
	m, err := o.Connection.Read(ctx)
	if req, ok := m.(*jsonrpc.Request); ok && err == nil && req.IsCall() && takesTurn(req.Method) {
		o.stamp(req)
	}
	return m, err
}

func (o *orderly) stamp(req *jsonrpc.Request) {
	extra, _ := req.Extra.(*mcp.RequestExtra)
	if extra == nil {
		extra = new(mcp.RequestExtra)
		req.Extra = extra
	}
	if extra.TokenInfo == nil {
		extra.TokenInfo = new(auth.TokenInfo)
	}
	if extra.TokenInfo.Extra == nil {
		extra.TokenInfo.Extra = make(map[string]any, 1)
	}
	a := &arrival{ticket: o.server.Ticket()}
	extra.TokenInfo.Extra[arrivalKey] = a
	o.mu.Lock()
	if o.calls == nil {
		o.calls = map[jsonrpc.ID]*arrival{}
	}
	o.calls[req.ID] = a
	o.mu.Unlock()
	if req.Method != "tools/call" {
		return
	}
	a.tools = o.server.Latest()
	var name string
	_ = json.Unmarshal(wire.MemberOf(req.Params, "name"), &name)
	if name == "evolve" || name == "retire" {
		o.mu.Lock()
		o.pending, o.done = req.ID, make(chan struct{})
		o.mu.Unlock()
		a.done = func() { o.readOn(&req.ID) }
	}
}

// Write lets reading go on when an evolve is answered, and gives back what an answer was made with.
func (o *orderly) Write(ctx context.Context, m jsonrpc.Message) error {
	res, ok := m.(*jsonrpc.Response)
	if ok && res.Error != nil {
		m = &jsonrpc.Response{ID: res.ID, Error: coded(res.Error), Extra: res.Extra}
	}
	if ok {
		o.mu.Lock()
		a := o.calls[res.ID] // the client may use the id again before the answer is written
		delete(o.calls, res.ID)
		o.mu.Unlock()
		if a != nil {
			defer a.answered()
		}
	}
	err := o.Connection.Write(ctx, m)
	if ok {
		o.readOn(&res.ID)
	} else if req, asks := m.(*jsonrpc.Request); asks && req.IsCall() {
		o.readOn(nil) // what is asked of the client is answered by what is read next
	}
	return err
}

// readOn lets reading go on if it waits for the call of an id; nil: for any.
func (o *orderly) readOn(id *jsonrpc.ID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.done != nil && (id == nil || *id == o.pending) {
		close(o.done)
		o.done = nil
	}
}

// Close gives back what answers were made with that nobody will read.
func (o *orderly) Close() error {
	err := o.Connection.Close()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, a := range o.calls {
		a.answered()
	}
	o.calls = nil
	return err
}

// coded gives an error of the SDK's the code that JSON-RPC has for it. The SDK names
// none where it refuses a request of the older protocols for its place in the
// session, and such a refusal would go out as a defect of the server.
func coded(err error) error {
	if _, ok := errors.AsType[*jsonrpc.Error](err); err == nil || ok {
		return err
	}
	words := err.Error()
	switch {
	case strings.HasSuffix(words, "is invalid during session initialization"):
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "invalid request: send initialize first; or give each request its protocol version in _meta, as 2026-07-28 has it"}
	case strings.HasPrefix(words, `duplicate "initialize"`):
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "invalid request: this session is initialized already"}
	case strings.HasPrefix(words, "handling 'initialize': "):
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf(`invalid params: initialize takes {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"…","version":"…"}}; %.200s`, words)}
	}
	return err
}

// takesTurn reports whether what answers a method has its turn: a run, or what takes much memory whatever was asked.
func takesTurn(method string) bool {
	return method == "tools/call" || method == "resources/read" || method == "completion/complete" || strings.HasSuffix(method, "/list")
}
