package streamable

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/semaphore"
)

// A budget is how much a handler does at once, and how much of that one principal
// may have, so that none keeps the others out.
type budget struct {
	o        Options
	requests *semaphore.Weighted
	bodies   *semaphore.Weighted

	mu   sync.Mutex
	each map[string]share // of those with a request
}

// A share is what a principal has of a budget.
type share struct {
	requests int
	bytes    int64
}

func newBudget(o Options) budget {
	return budget{
		o: o, requests: semaphore.NewWeighted(int64(o.MaxRequests)), bodies: semaphore.NewWeighted(max(o.MaxBodies, o.MaxBody)),
		each: map[string]share{},
	}
}

// enter takes room for a request, and for its body; status is what to answer
// where there is none, else 0.
func (b *budget) enter(r *http.Request, principal string) (release func(), status int) {
	if r.ContentLength > b.o.MaxBody {
		return nil, http.StatusRequestEntityTooLarge
	}
	size := r.ContentLength
	if size < 0 {
		size = b.o.MaxBody
	}
	if !b.take(principal, size) {
		return nil, http.StatusTooManyRequests
	}
	if !b.requests.TryAcquire(1) {
		b.give(principal, size)
		return nil, http.StatusServiceUnavailable
	}
	if size > 0 {
		// Others' bodies are gone when they are answered: worth a wait.
		ctx, cancel := context.WithTimeout(r.Context(), b.o.BodyTime)
		defer cancel()
		if b.bodies.Acquire(ctx, size) != nil {
			b.requests.Release(1)
			b.give(principal, size)
			return nil, http.StatusServiceUnavailable
		}
	}
	return func() {
		if size > 0 {
			b.bodies.Release(size)
		}
		b.requests.Release(1)
		b.give(principal, size)
	}, 0
}

// take reports whether a principal may have one more request. Without tokens there
// is only one, who may have all.
func (b *budget) take(principal string, size int64) bool {
	if principal == "" {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.each[principal]
	if s.requests >= max(1, b.o.MaxRequests/part) || s.requests > 0 && s.bytes+size > b.o.MaxBodies/part {
		return false
	}
	b.each[principal] = share{s.requests + 1, s.bytes + size}
	return true
}

// part is the part of all that a principal may have: one in so many.
const part = 4

func (b *budget) give(principal string, size int64) {
	if principal == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.each[principal]
	if s.requests--; s.requests == 0 {
		delete(b.each, principal)
		return
	}
	s.bytes -= size
	b.each[principal] = s
}

// arriving gives a body so much time. One that nobody asks for, since its request is
// refused, net/http reads before it answers: it has to be less than there is for the
// answer.
func arriving(d time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(d)) // where the connection has none, as in tests
		}
		next.ServeHTTP(w, r)
	})
}

// read takes in the body, which has to arrive in time, and gives that of a POST back
// to the request; others' mean nothing.
func (b *budget) read(w http.ResponseWriter, r *http.Request) (body []byte, status int) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, 0
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(b.o.BodyTime)) // anew: it may have waited for room
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, b.o.MaxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, http.StatusRequestEntityTooLarge // which reads on, with a time of its own
	case err != nil:
		// The time stays over: before it answers, net/http would wait for the rest.
		return nil, http.StatusRequestTimeout
	}
	_ = control.SetReadDeadline(time.Time{})
	if r.Method != http.MethodPost {
		r.Body, r.ContentLength = http.NoBody, 0
		return nil, 0
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	return body, 0
}

// session reports whether one more session fits.
func (b *budget) session(s *mcp.Server) bool {
	n := 0
	for range s.Sessions() {
		if n++; n >= b.o.MaxSessions {
			return false
		}
	}
	return true
}
