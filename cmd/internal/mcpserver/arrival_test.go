package mcpserver

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/cmd/internal/wait"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// A stuck connection has calls to read, and a client that reads no answer.
type stuck struct {
	fed
	given    atomic.Int32 // answers
	released chan struct{}
	once     sync.Once
}

func (c *stuck) Connect(context.Context) (mcp.Connection, error) { return c, nil }
func (c *stuck) SessionID() string                               { return "" }
func (c *stuck) Close() error                                    { c.once.Do(func() { close(c.requests) }); return nil }

func (c *stuck) Write(context.Context, jsonrpc.Message) error {
	c.given.Add(1)
	<-c.released
	return nil
}

// TestUnreadAnswers: no more answers are made than a few while the client reads none, and all of them when it
// does.
func TestUnreadAnswers(t *testing.T) {
	const calls = 200
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"}}`
	for method, params := range map[string]string{
		"tools/list":     `{` + meta + `}`,
		"resources/list": `{` + meta + `}`,
		"tools/call":     `{"name":"list","arguments":{},` + meta + `}`,
		"tools/call ":    `{"name":"run","arguments":{"code":"1+1"},` + meta + `}`,
		"tools/call  ":   `{"name":"help","arguments":{},` + meta + `}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := New(Options{Limits: Limits{Runs: atOnce}})
			c := &stuck{fed: fed{requests: make(chan *jsonrpc.Request, calls)}, released: make(chan struct{})}
			for i := range calls {
				id, _ := jsonrpc.MakeID(float64(i))
				c.requests <- &jsonrpc.Request{ID: id, Method: strings.TrimSpace(method), Params: json.RawMessage(params)}
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- s.Serve(ctx, c) }()
			synctest.Wait()
			if n := c.given.Load(); n != atOnce {
				t.Errorf("%s: %d answers were made that nobody reads", params, n)
			}
			close(c.released)
			synctest.Wait()
			if n := c.given.Load(); n != calls {
				t.Errorf("%s: %d answers of %d", params, n, calls)
			}
			cancel()
			<-ended
			if s.plain.Idle() != atOnce || s.slots.Idle() != atOnce {
				t.Errorf("%s: %d and %d turns are free", params, s.plain.Idle(), s.slots.Idle())
			}
		})
	}
}

// TestPlainAnswersWait: what is no run has its turn, too.
func TestPlainAnswersWait(t *testing.T) {
	s := New(Options{})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range atOnce {
		s.plain.Enter(t.Context(), 0, 0)
		s.makes.Enter(t.Context(), 0, 0)
	}
	for tool, arguments := range map[string]string{
		"list": `{}`, "describe": `{"name":"f"}`, "history": `{}`, "journal": `{}`, "help": `{}`, "retire": `{"name":"f"}`,
		"evolve": `{"name":"f","code":"1"}`, "run": `{"result":"r"}`,
	} {
		if a := s.Call(gone, Call{Tool: tool, Arguments: json.RawMessage(arguments)}); a.Fault == nil || a.Fault.Kind != fault.Cancelled {
			t.Errorf("%s doesn't wait: %s", tool, a.Text)
		}
	}
}

// A fed connection has what is to be read, and forgets what is written.
type fed struct {
	mcp.Connection
	requests chan *jsonrpc.Request
}

func (f *fed) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case r, ok := <-f.requests:
		if !ok {
			return nil, io.EOF
		}
		return r, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (f *fed) Write(context.Context, jsonrpc.Message) error { return nil }

// TestNothingIsReadMeanwhile: after an evolve and after a retire nothing is read
// until it is answered, or asks the client something; an answer to another call, and
// other calls, hold nothing up.
func TestNothingIsReadMeanwhile(t *testing.T) {
	id := func(n float64) jsonrpc.ID {
		key, err := jsonrpc.MakeID(n)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	calls := func(n float64, tool string) *jsonrpc.Request {
		return &jsonrpc.Request{ID: id(n), Method: "tools/call", Params: json.RawMessage(`{"name":"` + tool + `"}`)}
	}
	for _, test := range []struct {
		tool   string
		free   bool // at once
		writes jsonrpc.Message
		frees  bool
	}{
		{"evolve", false, &jsonrpc.Response{ID: id(1)}, true},
		{"retire", false, &jsonrpc.Response{ID: id(1)}, true},
		{"retire", false, &jsonrpc.Response{ID: id(2)}, false},
		{"evolve", false, &jsonrpc.Response{ID: id(2)}, false},
		{"evolve", false, &jsonrpc.Request{ID: id(1), Method: "elicitation/create"}, true},
		{"evolve", false, &jsonrpc.Request{Method: "notifications/progress"}, false},
		{"run", true, nil, true},
		{"r", true, nil, true},
	} {
		f := &fed{requests: make(chan *jsonrpc.Request, 2)}
		o := &orderly{Connection: f, server: New(Options{})}
		f.requests <- calls(1, test.tool)
		f.requests <- calls(2, "run")
		if _, err := o.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
		read := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_, err := o.Read(ctx)
			read <- err
		}()
		if !test.free {
			// Whether it waits can't be seen but by what it waits for.
			o.mu.Lock()
			waits := o.done != nil
			o.mu.Unlock()
			if !waits || len(f.requests) != 1 {
				t.Errorf("%s: the next call is read", test.tool)
			}
			if err := o.Write(ctx, test.writes); err != nil {
				t.Fatal(err)
			}
		}
		o.mu.Lock()
		freed := o.done == nil
		o.mu.Unlock()
		if freed != test.frees {
			t.Errorf("%s, and %+v is written: reading goes on: %v", test.tool, test.writes, freed)
		}
		if freed {
			if err := wait.For(t, read, "the next call"); err != nil || len(f.requests) != 0 {
				t.Errorf("%s: %v", test.tool, err)
			}
		}
		cancel()
		if !freed {
			wait.For(t, read, "the end of reading")
		}
	}
}
