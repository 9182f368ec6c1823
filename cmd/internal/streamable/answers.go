package streamable

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"
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
	return a.ResponseWriter.Write(b)
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
