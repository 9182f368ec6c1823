package streamable

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/mcp-pif/mcp-pif/cmd/internal/stdio"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// An answer is written by one handler while its client takes it, which may be slow, or never do
// it: meanwhile all of it is held, in as many copies as the SDK makes. So those that are being
// written have a room, and those that are large whatever was asked (lists, and what is
// read of resources) are made a few at a time, the principals in turn.

// How much of memory answers have that are being written, and how much of that each principal
// for itself.
const (
	answerRoom = 32 << 20
	ownAnswers = 256 << 10
	// copies is how many there are of one: its result, its message, its event.
	copies = 3
	// smallAnswer is what isn't counted.
	smallAnswer = 4 << 10
)

// answering is a writer of answers.
type answering struct {
	http.ResponseWriter
	room      *room
	principal string
	ctx       context.Context
	cancel    func() // ends the request
	begun     func() // is called when something is written; nil: nobody asks
	wrote     bool   // something of it
}

var errUnread = errors.New("the client doesn't read, and others need the memory")

// Write implements [http.ResponseWriter].
func (a *answering) Write(b []byte) (int, error) {
	if len(b) > smallAnswer {
		control := http.NewResponseController(a.ResponseWriter)
		h := a.room.hold(a.principal, func() {
			_ = control.SetWriteDeadline(time.Now())
			a.cancel()
		})
		defer h.end()
		if !h.take(a.ctx, copies*int64(len(b))) {
			return 0, errUnread
		}
	}
	if a.begun != nil {
		a.begun()
	}
	a.wrote = true
	return a.ResponseWriter.Write(b)
}

// WriteHeader implements [http.ResponseWriter].
func (a *answering) WriteHeader(status int) {
	a.wrote = true
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap serves [http.ResponseController].
func (a *answering) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// lists counts the methods that answer what is large whatever was asked, and no run's.
func lists(methods []string) (n int) {
	for _, m := range methods {
		if strings.HasSuffix(m, "/list") || m == "resources/read" {
			n++
		}
	}
	return n
}

// maxLists is how many such messages a batch may have: they are answered at once.
const maxLists = 4

// longTurn is after how long a turn is over, written or not: what is read of resources may be a run's.
const longTurn = time.Second

// turns lets so many be at work at once, of one principal one fewer; who waits is let in
// in the order of principals, so that one with many doesn't keep another waiting.
type turns struct {
	most int

	mu      sync.Mutex
	at      map[string]int // at work, of each principal
	work    int
	waiting map[string][]chan struct{}
	order   []string // of those who wait, whose turn is next first
}

// enter waits for a turn; the error is that of ctx. leave ends it, and may be called more than once.
func (t *turns) enter(ctx context.Context, principal string) (leave func(), err error) {
	t.mu.Lock()
	if t.at == nil {
		t.at, t.waiting = map[string]int{}, map[string][]chan struct{}{}
	}
	leave = sync.OnceFunc(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.work--
		if t.at[principal]--; t.at[principal] == 0 {
			delete(t.at, principal)
		}
		t.next()
	})
	turn := make(chan struct{})
	if len(t.waiting[principal]) == 0 {
		t.order = append(t.order, principal)
	}
	t.waiting[principal] = append(t.waiting[principal], turn)
	t.next()
	t.mu.Unlock()
	select {
	case <-turn:
		time.AfterFunc(longTurn, leave)
		return leave, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	for i, c := range t.waiting[principal] {
		if c == turn {
			t.remove(principal, i)
			t.mu.Unlock()
			return nil, ctx.Err()
		}
	}
	t.mu.Unlock()
	leave() // its turn came at the same moment
	return nil, ctx.Err()
}

// next lets in those for whom there is room. The caller holds the lock.
func (t *turns) next() {
	for i := 0; i < len(t.order) && t.work < t.most; {
		p := t.order[i]
		if t.at[p] >= max(1, t.most-1) {
			i++
			continue
		}
		turn := t.waiting[p][0]
		t.remove(p, 0)
		if len(t.waiting[p]) > 0 { // behind the others
			t.order = append(append(t.order[:i], t.order[i+1:]...), p)
		}
		t.work++
		t.at[p]++
		close(turn)
	}
}

// remove takes one who waits off. The caller holds the lock.
func (t *turns) remove(principal string, i int) {
	q := append(t.waiting[principal][:i], t.waiting[principal][i+1:]...)
	if t.waiting[principal] = q; len(q) > 0 {
		return
	}
	delete(t.waiting, principal)
	for i, p := range t.order {
		if p == principal {
			t.order = append(t.order[:i], t.order[i+1:]...)
			return
		}
	}
}

// paced is a writer to a client that has to read: a write that doesn't get on for
// so long fails, and with it the request. Between writes there is no hurry, since a
// stream may have nothing to tell for hours.
type paced struct {
	http.ResponseWriter
	control *http.ResponseController
	time    time.Duration
	ctx     context.Context
	last    bool // the connection ends with this answer
}

// paceAnswers gives a handler paced writers.
func paceAnswers(d time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// RFC 9112 section 6.1: a connection on which a request came with a length and in chunks
		// ends with its answer, since they may have been taken for two by whoever is between. net/http drops the length, so all with chunks end.
		p := &paced{w, http.NewResponseController(w), d, r.Context(), r.ProtoMajor == 1 && len(r.TransferEncoding) > 0}
		p.rest() // of the request before, on the same connection
		defer p.hurry()
		next.ServeHTTP(p, r)
	})
}

// Where the connection has no deadlines, as in tests, there is no pace.
func (p *paced) hurry() { _ = p.control.SetWriteDeadline(time.Now().Add(p.time)) }
func (p *paced) rest()  { _ = p.control.SetWriteDeadline(time.Time{}) }

// clientGone is, for the metrics, the status of a request that failed since its client hung up.
const clientGone = 499

// WriteHeader implements [http.ResponseWriter].
func (p *paced) WriteHeader(status int) {
	if status >= http.StatusInternalServerError && context.Cause(p.ctx) == context.Canceled { // not errEnds
		status = clientGone
	}
	if forNow := status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests; forNow && p.Header().Get("Retry-After") == "" {
		p.Header().Set("Retry-After", "1") // whoever refuses
	}
	if p.last {
		p.Header().Set("Connection", "close")
	}
	p.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (p *paced) Write(b []byte) (int, error) {
	if p.last {
		p.Header().Set("Connection", "close") // where this is the first
	}
	p.hurry()
	defer p.rest()
	return p.ResponseWriter.Write(b)
}

// FlushError implements what [http.ResponseController] calls.
func (p *paced) FlushError() error {
	p.hurry()
	defer p.rest()
	return p.control.Flush()
}

// Unwrap serves [http.ResponseController], too.
func (p *paced) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// noBatches is the first version of the protocol without batches.
const noBatches = "2025-06-18"

// refuseMalformed answers a body that is no message, in the same words as on standard input
// and output, and reports whether it did. The SDK would name its own types, take the
// last of two ids, and answer 1.5 as the id 1.
func refuseMalformed(w http.ResponseWriter, r *http.Request, body []byte) bool {
	batches := !modern(r, body) && r.Header.Get(versionHeader) < noBatches
	refusal := stdio.Refusal(body, batches)
	if refusal == nil {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = w.Write(refusal)
	return true
}

// refuse answers the message in a body, which is wrong, with an error of the protocol; data may be nil.
func refuse(w http.ResponseWriter, body []byte, code int64, words string, data any) {
	answerError(w, http.StatusBadRequest, body, code, words, data)
}

// answerError answers the message in a body with an error of the protocol; data may be nil.
func answerError(w http.ResponseWriter, status int, body []byte, code int64, words string, data any) {
	var m message
	_ = json.Unmarshal(body, &m) // a batch has no id
	if len(m.ID) == 0 {
		m.ID = json.RawMessage("null")
	}
	refusal := jsonrpc.Error{Code: code, Message: words}
	if data != nil {
		refusal.Data, _ = json.Marshal(data) // of strings
	}
	text, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": &refusal})
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

// tooLarge answers a body over the limit. Most clients read an answer only when they
// have sent all they have, and would see a broken connection: so some of it is taken
// first, and thrown away.
func (h *Handler) tooLarge(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Expect") == "" { // who asks before sending has sent nothing
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(time.Now().Add(h.o.BodyTime)) // where the connection has none, as in tests
		if _, err := io.CopyN(io.Discard, r.Body, thrownAway*h.o.MaxBody); err == nil || err == io.EOF {
			_ = control.SetReadDeadline(time.Time{})
		} // else the time stays over: before it answers, net/http would wait for the rest
	}
	http.Error(w, http.StatusText(http.StatusRequestEntityTooLarge), http.StatusRequestEntityTooLarge)
}

// thrownAway is how much of a body that is too large is taken, in limits.
const thrownAway = 4
