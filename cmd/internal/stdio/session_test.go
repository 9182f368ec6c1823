package stdio

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

const (
	initializeLine  = `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`
	initializedLine = `{"jsonrpc":"2.0","method":"notifications/initialized"}`

	// modern is the _meta of a request of the stateless protocol.
	modern = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"}}`
)

// A session is a server on this transport and a client that speaks in lines.
type session struct {
	t   *testing.T
	in  io.WriteCloser // the client's end of In
	out *bufio.Reader  // and of Out
	raw *os.File       // what out reads
	end chan error     // what Run returned

	cancel  context.CancelFunc
	release chan struct{} // closing it ends the calls of hold and stubborn
	entered chan string   // the ids' argument x of calls that reached hold, stubborn, ask
}

// start connects a server of test tools:
//
//	echo      answers with its argument x
//	hold      answers "released" once the session's release is closed, or ends when cancelled
//	stubborn  the same, but doesn't heed cancellation
//	ask       asks the client's user, and answers with the error if that fails
func start(t *testing.T, configure func(*Transport)) *session {
	t.Helper()
	return startTuned(t, configure, func(*conn) {})
}

// startTuned is start with a last word on the connection.
func startTuned(t *testing.T, configure func(*Transport), tune func(*conn)) *session {
	t.Helper()
	s := &session{
		t:       t,
		end:     make(chan error, 1),
		release: make(chan struct{}),
		entered: make(chan string, 20_000),
	}
	in, clientIn := pipe(t)
	clientOut, out := pipe(t)
	s.in, s.raw, s.out = clientIn, clientOut, bufio.NewReader(clientOut)
	tr := &Transport{In: in, Out: out}
	if configure != nil {
		configure(tr)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	server := s.server()
	go func() {
		err := server.Run(ctx, connector(func(ctx context.Context) *conn {
			c := tr.connect(ctx)
			tune(c)
			return c
		}))
		out.Close()
		s.end <- err
	}()
	t.Cleanup(func() {
		cancel()
		s.in.Close()
		s.free()
		clientOut.Close()
		s.ended()
	})
	return s
}

// A connector is a transport that hands out a connection it was given.
type connector func(context.Context) *conn

func (f connector) Connect(ctx context.Context) (mcp.Connection, error) { return f(ctx), nil }

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	must.NoError(t, err)
	return r, w
}

func (s *session) server() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}},
		// Notifications are handled in turn, so one that is held holds up the others.
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationServerRequest) {
			if req.Params.Message == "hold" {
				s.entered <- "held up"
				<-s.release
			}
		},
	})
	type args struct {
		X string `json:"x"`
	}
	tool := func(name string, handle func(context.Context, *mcp.CallToolRequest, string) string) {
		server.AddTool(&mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}},
			func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				var a args
				if len(req.Params.Arguments) > 0 {
					if err := json.Unmarshal(req.Params.Arguments, &a); err != nil {
						return nil, err
					}
				}
				text := handle(ctx, req, a.X)
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
			})
	}
	tool("echo", func(_ context.Context, _ *mcp.CallToolRequest, x string) string { return x })
	tool("hold", func(ctx context.Context, _ *mcp.CallToolRequest, x string) string {
		s.entered <- x
		select {
		case <-s.release:
			return "released"
		case <-ctx.Done():
			s.entered <- "cancelled " + x
			return "cancelled"
		}
	})
	tool("stubborn", func(_ context.Context, _ *mcp.CallToolRequest, x string) string {
		s.entered <- x
		<-s.release
		return "released"
	})
	tool("ask", func(ctx context.Context, req *mcp.CallToolRequest, x string) string {
		s.entered <- x
		if _, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "?"}); err != nil {
			return err.Error()
		}
		return "answered"
	})
	return server
}

var freeing sync.Mutex

// free lets the calls of hold and stubborn go.
func (s *session) free() {
	freeing.Lock()
	defer freeing.Unlock()
	select {
	case <-s.release:
	default:
		close(s.release)
	}
}

// initialized performs the handshake of the older protocol.
func (s *session) initialized() *session {
	s.t.Helper()
	s.send(initializeLine)
	if m := s.receive(); m.Error != nil || string(m.ID) != `"init"` {
		s.t.Fatalf("initialize: %+v", m)
	}
	s.send(initializedLine)
	return s
}

func (s *session) send(lines ...string) {
	s.t.Helper()
	for _, l := range lines {
		if _, err := io.WriteString(s.in, l+"\n"); err != nil {
			s.t.Fatalf("sending %.100s: %v", l, err)
		}
	}
}

// call is the line of a call of a test tool. id is JSON text.
func callLine(id, tool, x string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":{"x":%q}}}`, id, tool, x)
}

func pingLine(id string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"ping"}`, id)
}

func cancelLine(id string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,"reason":"test"}}`, id)
}

// A received is a message from the server.
type received struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   *jsonrpc.Error  `json:"error"`
}

// text is the text of a tool's answer.
func (m received) text(t *testing.T) string {
	t.Helper()
	var r struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(m.Result, &r); err != nil || len(r.Content) != 1 {
		t.Fatalf("not the answer of a tool: %+v %s", m, m.Result)
	}
	return r.Content[0].Text
}

// receive returns the next message. It fails the test if the server says
// anything but JSON-RPC, or nothing for so long that it must have got stuck.
func (s *session) receive() received {
	s.t.Helper()
	m, err := s.next()
	if err != nil {
		s.t.Fatalf("receiving: %v", err)
	}
	return m
}

func (s *session) next() (received, error) {
	s.t.Helper()
	s.raw.SetReadDeadline(time.Now().Add(wait.Limit(s.t)))
	l, err := s.out.ReadBytes('\n')
	if err != nil {
		if len(l) > 0 {
			s.t.Fatalf("half a line: %.200s", l)
		}
		return received{}, err
	}
	return decode(s.t, l), nil
}

func decode(t *testing.T, l []byte) received {
	t.Helper()
	var m received
	d := json.NewDecoder(bytes.NewReader(l))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil || m.Version != "2.0" || d.More() {
		t.Fatalf("not JSON-RPC: %.300s (%v)", l, err)
	}
	if !bytes.Equal(bytes.TrimSpace(l), l[:len(l)-1]) {
		t.Fatalf("not a line of its own: %.300q", l)
	}
	return m
}

// refused expects the next message to be an error with the code and the id.
func (s *session) refused(code int64, id, reason string) {
	s.t.Helper()
	m := s.receive()
	if m.Error == nil {
		s.t.Fatalf("got %+v, want error %d", m, code)
	}
	if m.Error.Code != code || string(m.ID) != id || !strings.Contains(m.Error.Message, reason) {
		s.t.Fatalf("got error %d %q for id %s, want %d %q for id %s", m.Error.Code, m.Error.Message, m.ID, code, reason, id)
	}
}

// answered expects the next message to be the answer of a tool.
func (s *session) answered(id, text string) {
	s.t.Helper()
	m := s.receive()
	if m.Error != nil || string(m.ID) != id {
		s.t.Fatalf("got %+v (%v), want an answer to %s", m, m.Error, id)
	}
	if got := m.text(s.t); got != text {
		s.t.Fatalf("id %s: got %q, want %q", id, got, text)
	}
}

// alive expects the server to answer a call.
func (s *session) alive() {
	s.t.Helper()
	s.send(callLine(`"alive"`, "echo", "yes"))
	s.answered(`"alive"`, "yes")
}

// reached waits until calls with these x are in their handlers, whichever gets there
// first: the SDK starts calls at once.
func (s *session) reached(xs ...string) {
	s.t.Helper()
	for len(xs) > 0 {
		select {
		case got := <-s.entered:
			i := slices.Index(xs, got)
			if i < 0 {
				s.t.Fatalf("reached %q, want %q", got, xs)
			}
			xs = slices.Delete(xs, i, i+1)
		case <-time.After(wait.Limit(s.t)):
			s.t.Fatalf("%q were never reached", xs)
		}
	}
}

// ended waits for the end of the session, and returns what Run did.
func (s *session) ended() error {
	s.t.Helper()
	select {
	case err := <-s.end:
		s.end <- err
		return err
	case <-time.After(wait.Limit(s.t)):
		s.t.Error("the session doesn't end")
		return errors.New("stuck")
	}
}

// over expects that nothing more is said and that Run returns nil.
func (s *session) over() {
	s.t.Helper()
	if m, err := s.next(); err != io.EOF {
		s.t.Fatalf("got %+v (%v), want the end", m, err)
	}
	if err := s.ended(); err != nil {
		s.t.Fatalf("Run: %v", err)
	}
}
