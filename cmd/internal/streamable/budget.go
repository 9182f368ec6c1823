package streamable

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/semaphore"
)

// A budget is how much a handler does at once.
type budget struct {
	o        Options
	requests *semaphore.Weighted
	bodies   *semaphore.Weighted
}

func newBudget(o Options) budget {
	return budget{o: o, requests: semaphore.NewWeighted(int64(o.MaxRequests)), bodies: semaphore.NewWeighted(max(o.MaxBodies, o.MaxBody))}
}

// enter takes room for a request, and for its body; status is what to answer
// where there is none, else 0.
func (b *budget) enter(r *http.Request) (release func(), status int) {
	if r.ContentLength > b.o.MaxBody {
		return nil, http.StatusRequestEntityTooLarge
	}
	if !b.requests.TryAcquire(1) {
		return nil, http.StatusServiceUnavailable
	}
	size := r.ContentLength
	if size < 0 {
		size = b.o.MaxBody
	}
	if size > 0 {
		// Others' bodies are gone when they are answered: worth a wait.
		ctx, cancel := context.WithTimeout(r.Context(), b.o.BodyTime)
		defer cancel()
		if b.bodies.Acquire(ctx, size) != nil {
			b.requests.Release(1)
			return nil, http.StatusServiceUnavailable
		}
	}
	return func() {
		b.requests.Release(1)
		if size > 0 {
			b.bodies.Release(size)
		}
	}, 0
}

// read takes in the body, which has to arrive in time, and gives it back to the
// request.
func (b *budget) read(w http.ResponseWriter, r *http.Request) (body []byte, status int) {
	if r.Method != http.MethodPost || r.Body == nil {
		return nil, 0
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(b.o.BodyTime)) // where the connection has none, as in tests
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, b.o.MaxBody))
	_ = control.SetReadDeadline(time.Time{})
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, http.StatusRequestEntityTooLarge
	case err != nil:
		return nil, http.StatusRequestTimeout
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
