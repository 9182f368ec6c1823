package streamable

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
)

// live is the requests under way, so that they can be ended before they do so by
// themselves: streams when the server stops, whatever a token began when it is no
// longer good.
type live struct {
	mu   sync.Mutex
	all  map[*request]struct{}
	over bool // no stream begins any more
	// changes is how often tokens or keys have changed.
	changes atomic.Uint64
}

// A request is one under way.
type request struct {
	cancel  context.CancelFunc
	http    *http.Request
	seen    uint64        // the changes of tokens before its own was verified
	stream  atomic.Bool   // it waits for what may come, and ends only when it is ended
	over    atomic.Bool   // its client has ended its session
	listens string        // the session whose stream it has, or waits for; under the lock of live
	ended   chan struct{} // is closed when it is answered
}

type (
	requestKey struct{}
	changesKey struct{}
)

// Listens reports whether the request that a context is of, as [Options.Server] was given it, only waits
// for what may come.
func Listens(ctx context.Context) bool {
	one, ok := ctx.Value(requestKey{}).(*request)
	return ok && one.stream.Load()
}

// End ends the request that a context is of.
func End(ctx context.Context) {
	if one, ok := ctx.Value(requestKey{}).(*request); ok {
		one.cancel()
	}
}

// begin puts a request among those under way. Its context ends when it does, or
// when what admitted it is no longer so.
func (l *live) begin(r *http.Request) (*http.Request, *request, func()) {
	ctx, cancel := context.WithCancel(r.Context())
	if info := auth.TokenInfoFromContext(ctx); info != nil && !info.Expiration.IsZero() {
		var expire context.CancelFunc
		ctx, expire = context.WithDeadline(ctx, info.Expiration.Add(leeway))
		both := cancel
		cancel = func() { expire(); both() }
	}
	one := &request{cancel: cancel, http: r, ended: make(chan struct{})}
	one.seen, _ = ctx.Value(changesKey{}).(uint64)
	one.stream.Store(r.Method == http.MethodGet)
	ctx = context.WithValue(ctx, requestKey{}, one)
	l.mu.Lock()
	if l.all == nil {
		l.all = map[*request]struct{}{}
	}
	l.all[one] = struct{}{}
	l.mu.Unlock()
	return r.WithContext(ctx), one, func() {
		l.mu.Lock()
		delete(l.all, one)
		l.mu.Unlock()
		cancel()
		close(one.ended)
	}
}

// streams marks a request as a stream.
func (l *live) streams(one *request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one.stream.Store(true)
	if l.over {
		one.cancel()
	}
}

// endStreams ends the streams, and those that are still to begin.
func (l *live) endStreams() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	for one := range l.all {
		if one.stream.Load() {
			one.cancel()
		}
	}
}

// Recheck ends what is under way by a token that isn't good any more. It is to be
// called when the tokens or keys have changed.
func (h *Handler) Recheck(ctx context.Context) {
	if h.o.Verify == nil {
		return
	}
	h.live.mu.Lock()
	defer h.live.mu.Unlock()
	h.live.changes.Add(1)
	for one := range h.live.all {
		if !h.stands(ctx, one) {
			one.cancel()
		}
	}
}

// stands reports whether the token of a request is good still, and its principal's.
func (h *Handler) stands(ctx context.Context, one *request) bool {
	_, token, _ := strings.Cut(strings.TrimSpace(one.http.Header.Get("Authorization")), " ")
	info, err := h.o.Verify(ctx, strings.TrimSpace(token), one.http)
	was := auth.TokenInfoFromContext(one.http.Context())
	return err == nil && was != nil && info.UserID == was.UserID
}

// maxStreamBytes is how many bytes a request that opens a stream may have: they are held as
// long as it is open.
const maxStreamBytes = 64 << 10

// message is what of a JSON-RPC message is looked at here.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
}

// methodsOf returns the methods of the messages in a body, of which there may be a
// thousand.
func methodsOf(body []byte) (methods []string) {
	var all []message
	if one := (message{}); json.Unmarshal(body, &one) == nil {
		all = []message{one}
	} else {
		_ = json.Unmarshal(body, &all)
	}
	for _, m := range all {
		methods = append(methods, m.Method)
	}
	return methods
}

// cancelRun cancels the calls of a request whose client is gone, in a session that
// goes on: no answer can reach it any more. It says so to the session as the client
// could have.
func (h *Handler) cancelRun(r *http.Request, body []byte) {
	var calls []message
	if trimmed := bytes.TrimLeft(body, " \t\r\n"); bytes.HasPrefix(trimmed, []byte("[")) {
		if json.Unmarshal(body, &calls) != nil {
			return
		}
	} else {
		var m message
		if json.Unmarshal(body, &m) != nil {
			return
		}
		calls = []message{m}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), time.Second)
	defer cancel()
	for _, m := range calls {
		if len(m.ID) == 0 || m.Method == "" || m.Method == "initialize" {
			continue
		}
		note, err := json.Marshal(map[string]any{
			"jsonrpc": "2.0", "method": "notifications/cancelled",
			"params": map[string]any{"requestId": m.ID, "reason": "the client is gone"},
		})
		if err != nil {
			continue
		}
		again := r.Clone(ctx)
		again.Body = io.NopCloser(bytes.NewReader(note))
		again.ContentLength = int64(len(note))
		h.session.ServeHTTP(&nobody{header: http.Header{}}, again)
	}
}

// nobody takes an answer that nobody reads.
type nobody struct{ header http.Header }

func (n *nobody) Header() http.Header         { return n.header }
func (n *nobody) Write(p []byte) (int, error) { return len(p), nil }
func (n *nobody) WriteHeader(int)             {}
