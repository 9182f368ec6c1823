package mcptest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"syscall"
)

// kill ends this process as kill -9 does.
func kill() {
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Signal(syscall.SIGKILL)
	}
	select {}
}

// An HTTP server is the scripted server at a URL. Calls are answered by streams of events;
// all else by JSON.
type HTTP struct {
	Script func() Script
	// Header is one that every request needs, and what it has to be; empty: none is needed.
	Header, Value string
	// ContentType is of answers, where it is wrong.
	ContentType string
	// Plain has calls answered by JSON, too.
	Plain bool
	// Unknown is how it answers for a session that it doesn't know, in JSON; 0: with 404, in a text.
	Unknown     int
	UnknownBody string
	// Redirect is where every request is sent to instead.
	Redirect string

	mu       sync.Mutex
	sessions map[string]*conversation
	streams  map[string]chan any // of what is said outside of answers
	made     int
	versions []string // of the protocol, as requests named them
}

// Versions is the versions of the protocol that requests named, in order.
func (h *HTTP) Versions() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.versions
}

// Forget ends all sessions, as a server that was started again has.
func (h *HTTP) Forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sessions = nil
}

// ServeHTTP answers one request.
func (h *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.Redirect != "" {
		http.Redirect(w, r, h.Redirect, http.StatusTemporaryRedirect)
		return
	}
	if h.Header != "" && r.Header.Get(h.Header) != h.Value {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"`+Canary+`"}}`)
		return
	}
	script := h.Script()
	h.mu.Lock()
	h.versions = append(h.versions, r.Header.Get("Mcp-Protocol-Version"))
	h.mu.Unlock()
	switch r.Method {
	case http.MethodGet:
		h.listen(w, r)
		return
	case http.MethodDelete:
		h.mu.Lock()
		delete(h.sessions, r.Header.Get("Mcp-Session-Id"))
		h.mu.Unlock()
		return
	}
	body, err := io.ReadAll(r.Body)
	var m message
	if err != nil || json.Unmarshal(body, &m) != nil {
		http.Error(w, Canary, http.StatusBadRequest)
		return
	}
	with := newConversation()
	if script.Era != Stateless && m.Method != "initialize" {
		h.mu.Lock()
		kept := h.sessions[r.Header.Get("Mcp-Session-Id")]
		h.mu.Unlock()
		if kept == nil {
			if m.Method == "server/discover" {
				http.Error(w, Canary, http.StatusBadRequest)
				return
			}
			if h.Unknown == 0 {
				http.Error(w, Canary, http.StatusNotFound)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(h.Unknown)
			fmt.Fprint(w, h.UnknownBody)
			return
		}
		with = kept
	}
	sent := make(chan any, 1000)
	broken := make(chan struct{})
	var once sync.Once
	one := &server{
		script: h.Script, send: func(m any) {
			select {
			case sent <- m:
			case <-broken:
			}
		}, die: func() { once.Do(func() { close(broken) }) },
		conversation: with,
	}
	if m.Method == "initialize" {
		h.mu.Lock()
		h.made++
		id := fmt.Sprint("session-", h.made)
		if h.sessions == nil {
			h.sessions = map[string]*conversation{}
		}
		h.sessions[id] = with
		h.mu.Unlock()
		w.Header().Set("Mcp-Session-Id", id)
	}
	one.take(m)
	if len(m.ID) == 0 || m.Method == "" {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	h.respond(w, r, one, m, sent, broken)
}

// respond writes what the server sends for one request.
func (h *HTTP) respond(w http.ResponseWriter, r *http.Request, s *server, m message, sent <-chan any, broken <-chan struct{}) {
	isCall, begun := m.Method == "tools/call" && !h.Plain, false
	for {
		var out any
		select {
		case out = <-sent:
		case <-broken:
			panic(http.ErrAbortHandler) // the connection breaks
		case <-r.Context().Done():
			s.cancel(m.ID)
			return
		}
		if status, ok := out.(httpStatus); ok {
			w.Header().Set("Retry-After", "7")
			if status >= 500 || status == http.StatusUnauthorized || status == http.StatusForbidden {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(int(status))
				_, _ = w.Write(encode(failure(m.ID, -32000, Canary)))
				return
			}
			http.Error(w, Canary, int(status))
			return
		}
		b := encode(out)
		var is message
		_ = json.Unmarshal(b, &is) // what isn't one is an answer
		if !isCall {
			kind := "application/json"
			if h.ContentType != "" {
				kind = h.ContentType
			}
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write(b)
			return
		}
		if !begun {
			begun = true
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(http.StatusOK)
		}
		fmt.Fprintf(w, "event: message\ndata: %s\n\n", b)
		w.(http.Flusher).Flush()
		if is.Method == "" {
			return
		}
	}
}

// listen is the stream of what is said outside of answers: nothing, until it ends.
func (h *HTTP) listen(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	ch := make(chan any, 10)
	id := r.Header.Get("Mcp-Session-Id")
	h.mu.Lock()
	if h.streams == nil {
		h.streams = map[string]chan any{}
	}
	h.streams[id] = ch
	h.mu.Unlock()
	for {
		select {
		case m := <-ch:
			if b, err := json.Marshal(m); err == nil {
				fmt.Fprintf(w, "data: %s\n\n", b)
				w.(http.Flusher).Flush()
			}
		case <-r.Context().Done():
			return
		}
	}
}

// Changed says on every open stream that the list of tools changed.
func (h *HTTP) Changed() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, ch := range h.streams {
		ch <- notification("notifications/tools/list_changed", map[string]any{})
	}
}

// Listens reports whether a client hears what is said outside of answers.
func (h *HTTP) Listens() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.streams) > 0
}

// Open is how many sessions there are.
func (h *HTTP) Open() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.sessions)
}

// Made is how many sessions were begun.
func (h *HTTP) Made() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.made
}
