package conformance

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"testing"

	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver"
	"github.com/mcp-pif/mcp-pif/cmd/internal/stdio"
)

// A bridge gives stdio an URL. Each session of the older protocols is a pair of pipes
// to our server, and each request of the newer one, which knows no sessions, has a pair
// of its own. It passes lines on, and understands of them only whose answer is whose.
type bridge struct {
	server *mcpserver.Server
	life   context.Context // of the pipes
	t      *testing.T

	mu    sync.Mutex
	pipes map[string]*pipe // by session
	made  int
}

func newBridge(t *testing.T, s *mcpserver.Server) *bridge {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	return &bridge{server: s, life: ctx, t: t, pipes: map[string]*pipe{}}
}

// A line is a message of which only this much is looked at.
type line struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Meta map[string]any `json:"_meta"`
	} `json:"params"`
	Version string `json:"jsonrpc"`
}

// A pipe is one connection to our server by stdio.
type pipe struct {
	in io.WriteCloser

	mu      sync.Mutex
	readers []*reader // oldest first
}

// A reader takes what the server says: the answer to one request, and what is said
// beside answers while it is the first.
type reader struct {
	id    string // of the request; "" has none
	lines chan []byte
}

// connect starts a session of our server on a pair of pipes.
func (b *bridge) connect() *pipe {
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	p := &pipe{in: toServer}
	ctx, cancel := context.WithCancel(b.life)
	go func() {
		defer cancel()
		defer toClient.Close()
		_ = b.server.Serve(ctx, &stdio.Transport{In: fromClient, Out: toClient, Log: slog.New(slog.DiscardHandler)})
	}()
	go p.read(b.t, fromServer)
	return p
}

// read gives each line to whom it is for.
func (p *pipe) read(t *testing.T, from io.Reader) {
	in := bufio.NewReader(from)
	for {
		text, err := in.ReadBytes('\n')
		if err != nil {
			break
		}
		var m line
		if err := json.Unmarshal(text, &m); err != nil || m.Version != "2.0" {
			t.Errorf("not JSON-RPC: %.200s", text)
			continue
		}
		p.mu.Lock()
		for _, r := range p.readers {
			if m.Method != "" || string(m.ID) == r.id {
				r.lines <- bytes.TrimSuffix(text, []byte("\n"))
				break
			}
		}
		p.mu.Unlock()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.readers {
		close(r.lines)
	}
	p.readers = nil
}

// attend adds a reader; one without a request comes after all others.
func (p *pipe) attend(id string) (r *reader, leave func()) {
	r = &reader{id: id, lines: make(chan []byte, 1000)}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.readers = append([]*reader{r}, p.readers...); id == "" {
		p.readers = append(p.readers[1:], r)
	}
	return r, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for i := range p.readers {
			if p.readers[i] == r {
				p.readers = append(p.readers[:i:i], p.readers[i+1:]...)
				return
			}
		}
	}
}

func (p *pipe) say(text []byte) error {
	var compact bytes.Buffer
	if json.Compact(&compact, text) != nil {
		compact.Reset()
		compact.Write(bytes.ReplaceAll(text, []byte("\n"), []byte(" ")))
	}
	_, err := p.in.Write(append(compact.Bytes(), '\n'))
	return err
}

const metaVersion = "io.modelcontextprotocol/protocolVersion"

// ServeHTTP passes a request on and streams what comes back.
func (b *bridge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var m line
	_ = json.Unmarshal(body, &m)
	session := r.Header.Get("Mcp-Session-Id")
	version, _ := m.Params.Meta[metaVersion].(string)
	stateless := session == "" && m.Method != "initialize" && (version != "" || r.Header.Get("Mcp-Protocol-Version") >= "2026-07-28")
	p := b.pipe(&session, m.Method == "initialize" || stateless, stateless)
	switch {
	case p == nil:
		http.Error(w, "no such session", http.StatusNotFound)
		return
	case r.Method == http.MethodDelete:
		b.end(session)
		return
	case stateless:
		defer p.in.Close()
	}
	w.Header().Set("Mcp-Session-Id", session)
	if stateless {
		w.Header().Del("Mcp-Session-Id")
	}
	if r.Method == http.MethodPost && (m.ID == nil || m.Method == "") {
		if err := p.say(body); err != nil {
			b.t.Errorf("a line wasn't taken: %v", err)
		}
		w.WriteHeader(http.StatusAccepted)
		return
	}
	reader, leave := p.attend(string(m.ID))
	defer leave()
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	flusher := w.(http.Flusher)
	flusher.Flush()
	if r.Method == http.MethodPost {
		if err := p.say(body); err != nil {
			b.t.Errorf("a line wasn't taken: %v", err)
			return
		}
	}
	for {
		select {
		case text, ok := <-reader.lines:
			if !ok {
				return
			}
			fmt.Fprintf(w, "event: message\ndata: %s\n\n", text)
			flusher.Flush()
			var said line
			_ = json.Unmarshal(text, &said)
			if said.Method == "" && m.ID != nil {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

// pipe is a session's, or a new one.
func (b *bridge) pipe(session *string, begin, stateless bool) *pipe {
	if stateless {
		return b.connect()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if begin {
		b.made++
		*session = fmt.Sprintf("session-%d", b.made)
		b.pipes[*session] = b.connect()
	}
	return b.pipes[*session]
}

// end ends a session.
func (b *bridge) end(session string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pipes[session].in.Close()
	delete(b.pipes, session)
}
