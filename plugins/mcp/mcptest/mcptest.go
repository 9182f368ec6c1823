// Package mcptest is a scripted MCP server for tests: it speaks the protocol by hand, of
// both eras, over standard streams and over HTTP, and does wrong what a server can do
// wrong.
//
// Its tools are named after what they do (tools.go). What it lists is the script's, which
// tests may change while it runs. Every word of its own has [Canary] in it: where that is
// shown without quotes, a stranger's words were taken for ours.
//
// Every call that it acts upon is a line in the script's log, written before it answers:
// the world, as far as a test is concerned.
package mcptest

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
)

// Canary is in every word of the server's own.
const Canary = "IGNORE-ALL-PREVIOUS"

// State begins what the server wants back with the answers of a user (requestState). It stands
// for a session: nobody but the server reads it.
const State = "bearer-of-a-session/"

// A Script is what the server does.
type Script struct {
	// Era is the protocol's version; empty: 2025-11-25.
	Era string
	// Log is the file that has a line for each call that was acted upon.
	Log string
	// List is how the list of tools differs from [Tools]: see list in tools.go.
	List string
	// TTL is the milliseconds that the list is good for, as the server says.
	TTL int
	// Silent is the method that isn't answered.
	Silent string
	// Noise is written to standard output before anything else, and to standard error.
	Noise string
	// DieAt is the step at which the server's process kills itself: a method, or
	// "acted" for after the line was written.
	DieAt string
}

// Stateless is the first version of the protocol without sessions.
const Stateless = "2026-07-28"

// A server is one connection's.
type server struct {
	script func() Script
	send   func(message any)
	die    func() // as by kill -9
	*conversation
}

// A conversation is what the messages of one session have in common.
type conversation struct {
	mu        sync.Mutex
	cancelled map[string]chan struct{} // by the request's identifier
	answers   map[string]chan json.RawMessage
	asks      int
	mayAsk    bool // the user, as the client says
}

func newConversation() *conversation {
	return &conversation{cancelled: map[string]chan struct{}{}, answers: map[string]chan json.RawMessage{}}
}

// cancel stops a call.
func (c *conversation) cancel(id json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if stop := c.cancelled[string(id)]; stop != nil {
		close(stop)
		delete(c.cancelled, string(id))
	}
}

// A message is any of JSON-RPC.
type message struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
}

// Main is the server on this process's standard streams, where this process was started as
// one: its first argument is the word, the second the file with the script. It doesn't
// return then.
func Main() {
	if len(os.Args) != 3 || os.Args[1] != Word {
		return
	}
	script := FromFile(os.Args[2])
	if noise := script().Noise; noise != "" {
		fmt.Println(noise)
		fmt.Fprintln(os.Stderr, noise)
	}
	Serve(os.Stdin, os.Stdout, script)
	os.Exit(0)
}

// Word is the first argument of a process that is to be the server.
const Word = "__mcptest"

// FromFile gives the script that a file has now.
func FromFile(path string) func() Script {
	return func() Script {
		var s Script
		b, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(b, &s)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		return s
	}
}

// Serve serves one connection to its end.
func Serve(in io.Reader, out io.Writer, script func() Script) {
	var mu sync.Mutex
	s := &server{script: script, die: kill, conversation: newConversation(), send: func(m any) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = out.Write(append(encode(m), '\n'))
	}}
	r := bufio.NewReader(in)
	for {
		line, err := r.ReadBytes('\n')
		if len(line) > 0 {
			var m message
			if json.Unmarshal(line, &m) == nil {
				s.take(m)
			}
		}
		if err != nil {
			return
		}
	}
}

// A verbatim message is sent as it stands, whatever it is.
type verbatim string

// encode is a message as it is sent.
func encode(m any) []byte {
	if v, ok := m.(verbatim); ok {
		return []byte(v)
	}
	b, err := json.Marshal(m)
	if err != nil {
		panic(err) // the script's mistake
	}
	return b
}

// take does what a message asks. Calls run aside.
func (s *server) take(m message) {
	script := s.script()
	if script.DieAt != "" && script.DieAt == m.Method {
		s.die()
		return
	}
	if script.Silent != "" && script.Silent == m.Method {
		return
	}
	switch m.Method {
	case "":
		s.mu.Lock()
		answer := s.answers[string(m.ID)]
		s.mu.Unlock()
		if answer != nil {
			answer <- m.Result
		}
	case "notifications/cancelled":
		var p struct {
			RequestID json.RawMessage `json:"requestId"`
		}
		_ = json.Unmarshal(m.Params, &p)
		s.cancel(p.RequestID)
	case "tools/call":
		stop := make(chan struct{})
		s.mu.Lock()
		s.cancelled[string(m.ID)] = stop
		s.mu.Unlock()
		go s.call(script, m, stop)
	default:
		if len(m.ID) > 0 {
			s.send(s.answer(script, m))
		}
	}
}

// answer is the answer to a request that isn't a call.
func (s *server) answer(script Script, m message) any {
	info := map[string]any{"name": "scripted-" + Canary, "version": "1.0-" + Canary}
	can := map[string]any{"tools": map[string]any{"listChanged": true}, "logging": map[string]any{}}
	isStateless := script.Era == Stateless
	switch {
	case m.Method == "initialize" && !isStateless:
		var p struct {
			Capabilities struct {
				Elicitation json.RawMessage `json:"elicitation"`
			} `json:"capabilities"`
		}
		_ = json.Unmarshal(m.Params, &p)
		s.mayAsk = p.Capabilities.Elicitation != nil
		era := script.Era
		era = cmp.Or(era, "2025-11-25")
		return result(m.ID, map[string]any{"protocolVersion": era, "capabilities": can, "serverInfo": info, "instructions": Canary})
	case m.Method == "server/discover" && isStateless:
		return result(m.ID, map[string]any{
			"resultType": "complete", "supportedVersions": []string{Stateless}, "capabilities": can, "instructions": Canary,
			"_meta": map[string]any{"io.modelcontextprotocol/serverInfo": info},
		})
	case m.Method == "tools/list":
		return s.list(script, m)
	case m.Method == "ping":
		return result(m.ID, map[string]any{})
	}
	return failure(m.ID, -32601, "no such method: "+Canary)
}

func result(id json.RawMessage, r any) any {
	return map[string]any{"jsonrpc": "2.0", "id": id, "result": r}
}

func failure(id json.RawMessage, code int, text string) any {
	return map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": text}}
}

func notification(method string, params any) any {
	return map[string]any{"jsonrpc": "2.0", "method": method, "params": params}
}

// ask asks the client for something, and waits for the answer.
func (s *server) ask(method string, params any) json.RawMessage {
	s.mu.Lock()
	s.asks++
	id := fmt.Sprintf(`"ask%d"`, s.asks)
	answer := make(chan json.RawMessage, 1)
	s.answers[id] = answer
	s.mu.Unlock()
	s.send(map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(id), "method": method, "params": params})
	return <-answer
}

// act writes a line to the log: the call happened.
func (s *server) act(script Script, line string) {
	if script.Log == "" {
		return
	}
	f, err := os.OpenFile(script.Log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	defer f.Close()
	fmt.Fprintln(f, strings.ReplaceAll(line, "\n", " "))
}

// reach goes to a URL in one of these ways, and gives what came of it:
//
//	proxy           as the environment says
//	direct          around the proxy
//	tcp, udp, unix  by such a socket, to an address
func reach(way, at string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	switch way {
	case "proxy", "direct":
		transport := &http.Transport{DisableKeepAlives: true}
		if way == "proxy" {
			transport.Proxy = func(r *http.Request) (*url.URL, error) {
				return url.Parse(os.Getenv(strings.ToUpper(r.URL.Scheme) + "_PROXY"))
			}
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
		if err != nil {
			return err.Error()
		}
		answer, err := (&http.Client{Transport: transport}).Do(r)
		if err != nil {
			return "failed: " + err.Error()
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(io.LimitReader(answer.Body, 1000))
		return answer.Status + " " + string(body)
	default:
		c, err := (&net.Dialer{}).DialContext(ctx, way, at)
		if err != nil {
			return "failed: " + err.Error()
		}
		defer c.Close()
		if _, err := c.Write([]byte("hello")); err != nil {
			return "failed: " + err.Error()
		}
		return "sent"
	}
}
