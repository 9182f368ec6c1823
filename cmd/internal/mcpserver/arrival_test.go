package mcpserver

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/cmd/internal/wait"
)

// A fed connection has what is to be read, and forgets what is written.
type fed struct {
	mcp.Connection
	requests chan *jsonrpc.Request
}

func (f *fed) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case r := <-f.requests:
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
