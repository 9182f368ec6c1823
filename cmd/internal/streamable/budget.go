package streamable

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A budget is how much a handler does at once, and how much of that one principal
// may have, so that none keeps the others out.
type budget struct {
	o      Options
	bodies room

	mu     sync.Mutex
	places map[*place]struct{}
	all    int            // messages
	each   map[string]int // of those with one
	number uint64
}

// A place is that of a request among those under way.
type place struct {
	b         *budget
	principal string
	number    uint64
	messages  int // one, but a batch has more
	cancel    func()
	stream    bool // it waits for what may come
	told      bool // to give way
	body      *hold
}

// ownBody is how many bytes of requests each principal has whatever others have.
const ownBody = 64 << 10

func newBudget(o Options) budget {
	return budget{
		o: o, bodies: room{size: max(o.MaxBodies, o.MaxBody), own: min(ownBody, o.MaxBodies/part)},
		places: map[*place]struct{}{}, each: map[string]int{},
	}
}

// part is the part of all that a principal may have: one in so many.
const part = 4

// enter takes a place for a request, which ends by cancel; status is what to answer where there is
// none, else 0. Where there are as many as may be, one gives way to a principal that has less
// than its share: the newest stream of whoever has most, or else that one's newest request.
func (b *budget) enter(principal string, cancel func()) (p *place, status int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	// Without tokens there is only one principal, who may have all.
	if principal != "" && b.each[principal] >= max(1, b.o.MaxRequests/part) {
		return nil, http.StatusTooManyRequests
	}
	if b.all >= b.o.MaxRequests {
		victim := b.newest(principal)
		if victim == nil {
			return nil, http.StatusServiceUnavailable
		}
		victim.told = true
		victim.cancel()
	}
	b.number++
	p = &place{b: b, principal: principal, number: b.number, cancel: cancel}
	b.places[p] = struct{}{}
	b.add(p, 1)
	return p, 0
}

// add counts messages of a request. The caller holds the lock.
func (b *budget) add(p *place, n int) {
	p.messages += n
	b.all += n
	if b.each[p.principal] += n; b.each[p.principal] == 0 {
		delete(b.each, p.principal)
	}
}

// fits has a request be one of so many messages, and reports whether there is room for them.
func (p *place) fits(messages int) bool {
	b, more := p.b, max(messages, 1)-p.messages
	b.mu.Lock()
	defer b.mu.Unlock()
	if more > 0 && (b.all+more > b.o.MaxRequests || p.principal != "" && b.each[p.principal]+more > max(1, b.o.MaxRequests/part)) {
		return false
	}
	b.add(p, more)
	return true
}

// newest returns the request that gives way to one of a principal; nil: none does. The
// caller holds the lock.
func (b *budget) newest(principal string) (victim *place) {
	active := len(b.each)
	if b.each[principal] == 0 {
		active++
	}
	if b.each[principal] >= max(1, b.o.MaxRequests/active) {
		return nil
	}
	most := 0
	for name, n := range b.each {
		if name != principal {
			most = max(most, n)
		}
	}
	for p := range b.places {
		if p.told || p.principal == principal || b.each[p.principal] < most || most <= b.o.MaxRequests/active {
			continue
		}
		if victim == nil || p.stream && !victim.stream || p.stream == victim.stream && p.number > victim.number {
			victim = p
		}
	}
	return victim
}

// leave gives a place back.
func (p *place) leave() {
	if p.body != nil {
		p.body.end()
	}
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	delete(p.b.places, p)
	p.b.add(p, -p.messages)
}

// streams marks a place as a stream's.
func (p *place) streams() {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	p.stream = true
}

// boundArrival gives a body so much time. One that nobody asks for, since its request is
// refused, net/http reads before it answers: it has to be less than there is for the
// answer.
func boundArrival(d time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(d)) // where the connection has none, as in tests
		}
		next.ServeHTTP(w, r)
	})
}

// read takes in the body, which has to arrive in time, and gives that of a POST back
// to the request; others' mean nothing, and nothing is kept of them. Room for it is taken as it arrives:
// what was only announced takes none.
func (p *place) read(w http.ResponseWriter, r *http.Request) (body []byte, status int) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, 0
	}
	if r.ContentLength > p.b.o.MaxBody {
		return nil, http.StatusRequestEntityTooLarge
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(p.b.o.BodyTime))
	ctx, cancel := context.WithTimeout(r.Context(), p.b.o.BodyTime)
	defer cancel()
	in := http.MaxBytesReader(w, r.Body, p.b.o.MaxBody)
	var err error
	if r.Method != http.MethodPost {
		_, err = io.Copy(io.Discard, in)
	} else {
		p.body = p.b.bodies.hold(p.principal, func() { _ = control.SetReadDeadline(time.Now()) })
		body, err = p.take(ctx, in, r.ContentLength)
		if !p.body.stay() {
			err = errNoRoom
		}
	}
	var large *http.MaxBytesError
	switch {
	case err == errTooMuch:
		_ = control.SetReadDeadline(time.Now().Add(p.b.o.BodyTime / 3))
		return nil, http.StatusTooManyRequests
	case err == errNoRoom:
		return nil, http.StatusServiceUnavailable
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

// Why a body isn't taken: the principal has too much of the room, or there is none.
var errTooMuch, errNoRoom = errors.New("too much"), errors.New("no room")

// take reads a body of so many bytes (−1: who knows), a piece at a time, with room for each
// before it is read.
func (p *place) take(ctx context.Context, in io.Reader, size int64) ([]byte, error) {
	var pieces [][]byte
	read, piece := int64(0), int64(4<<10)
	for {
		if size >= 0 {
			piece = min(piece, max(size-read, 1))
		}
		if p.principal != "" && p.others() && p.b.bodies.has(p.principal)+piece > p.b.o.MaxBodies/part {
			return nil, errTooMuch
		}
		if !p.body.take(ctx, piece) {
			return nil, errNoRoom
		}
		buf := make([]byte, piece)
		n, err := io.ReadFull(in, buf)
		pieces, read = append(pieces, buf[:n]), read+int64(n)
		switch {
		case err == io.EOF, err == io.ErrUnexpectedEOF, err == nil && read == size:
			p.body.give(piece - int64(n))
			return slices.Concat(pieces...), nil
		case err != nil:
			return nil, err
		}
		piece = 64 << 10
	}
}

// others reports whether the principal has other bodies under way: a single one may be as large as any.
func (p *place) others() bool { return p.b.bodies.has(p.principal) > p.body.bytes }

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
