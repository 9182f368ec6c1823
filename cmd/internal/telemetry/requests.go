package telemetry

import (
	"net/http"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Requests counts what a handler answers, when it has: a stream when it ends.
func (t *Telemetry) Requests(next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := &statusWriter{ResponseWriter: w}
		defer func() {
			if s.status == 0 {
				s.status = http.StatusOK // net/http's, where a handler says nothing
			}
			t.requests.Add(r.Context(), 1, labels(r, s.status))
		}()
		next.ServeHTTP(s, r)
	})
}

// A statusWriter remembers the status.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements [http.ResponseWriter].
func (s *statusWriter) WriteHeader(status int) {
	if s.status == 0 && status >= 200 {
		s.status = status
	}
	s.ResponseWriter.WriteHeader(status)
}

// Unwrap is for [http.ResponseController].
func (s *statusWriter) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// A kind is what requests are told apart by: few values, none of them a client's to
// choose.
type kind struct {
	path, method string
	status       int
}

var known sync.Map // a metric.MeasurementOption for each kind, which is costly to make

func labels(r *http.Request, status int) metric.MeasurementOption {
	k := kind{path: "other", method: "other", status: status}
	switch r.URL.Path {
	case "/", "/mcp", "/healthz", "/metrics":
		k.path = r.URL.Path
	}
	switch r.Method {
	case http.MethodGet, http.MethodPost, http.MethodDelete:
		k.method = r.Method
	}
	if o, ok := known.Load(k); ok {
		return o.(metric.MeasurementOption)
	}
	o := metric.WithAttributeSet(attribute.NewSet(
		attribute.String("path", k.path), attribute.String("method", k.method), attribute.Int("status", k.status)))
	known.Store(k, o)
	return o
}
