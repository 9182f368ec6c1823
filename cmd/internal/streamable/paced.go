package streamable

import (
	"net/http"
	"time"
)

// paced is a writer to a client that has to read: a write that doesn't get on for
// so long fails, and with it the request. Between writes there is no hurry, since a
// stream may have nothing to tell for hours.
type paced struct {
	http.ResponseWriter
	control *http.ResponseController
	time    time.Duration
	last    bool // the connection ends with this answer
}

// pacing gives a handler paced writers.
func pacing(d time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// RFC 9112 section 6.1: a connection on which a request came with a length and in chunks
		// ends with its answer, since they may have been taken for two by whoever is between. net/http drops the length, so all with chunks end.
		p := &paced{w, http.NewResponseController(w), d, r.ProtoMajor == 1 && len(r.TransferEncoding) > 0}
		p.rest() // of the request before, on the same connection
		defer p.hurry()
		next.ServeHTTP(p, r)
	})
}

// Where the connection has no deadlines, as in tests, there is no pace.
func (p *paced) hurry() { _ = p.control.SetWriteDeadline(time.Now().Add(p.time)) }
func (p *paced) rest()  { _ = p.control.SetWriteDeadline(time.Time{}) }

// WriteHeader implements [http.ResponseWriter].
func (p *paced) WriteHeader(status int) {
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
