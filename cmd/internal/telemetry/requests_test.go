package telemetry

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Requests are told apart by few values, whatever clients send, and streams can
// still be flushed.
func TestRequests(t *testing.T) {
	m, err := Open(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(t.Context())
	srv := httptest.NewServer(m.Requests(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/mcp":
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Errorf("flushing: %v", err)
			}
		case "/healthz":
			io.WriteString(w, "ok")
		default:
			http.Error(w, "no", http.StatusNotFound)
		}
	})))
	defer srv.Close()
	for _, c := range []struct{ method, path string }{
		{"GET", "/mcp"}, {"POST", "/mcp"}, {"BREW", "/mcp"}, {"GET", "/healthz"}, {"GET", "/secret-path"}, {"GET", "/other-path"},
	} {
		r, _ := http.NewRequest(c.method, srv.URL+c.path, nil)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	srv.Close() // a request counts when its handler has returned
	w := httptest.NewRecorder()
	m.Metrics().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	page := w.Body.String()
	for _, want := range []string{
		`pif_http_requests_total{method="GET",path="/mcp",status="200"} 1`, `pif_http_requests_total{method="POST",path="/mcp",status="200"} 1`,
		`pif_http_requests_total{method="other",path="/mcp",status="200"} 1`, `pif_http_requests_total{method="GET",path="/healthz",status="200"} 1`,
		`pif_http_requests_total{method="GET",path="other",status="404"} 2`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	if strings.Contains(page, "secret-path") || strings.Contains(page, "BREW") {
		t.Error("the page has what a client chose")
	}
	var none *Telemetry
	if h := http.NotFoundHandler(); none.Requests(h) == nil {
		t.Error("without instruments there is no handler")
	}
}

// A collector's URL may leave out the path; what is none is refused.
func TestCollectorURL(t *testing.T) {
	for in, want := range map[string]string{
		"http://localhost:4318": "http://localhost:4318/v1/traces", "http://localhost:4318/": "http://localhost:4318/v1/traces",
		"https://x.example/otlp/v1/traces": "https://x.example/otlp/v1/traces",
		"localhost:4318":                   "", "http://": "", "ftp://x": "", "http://user:secret@x": "", "http://x?key=secret": "",
	} {
		got, err := tracesAt(in)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", in, got, err)
		}
		if err != nil && strings.Contains(in, "secret") && strings.Contains(err.Error(), "secret") {
			t.Errorf("the message tells a password: %v", err)
		}
	}
}

// What can't be sent is complained of in the log, and nowhere else.
func TestCollectorIsGone(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	var log strings.Builder
	m, err := Open(t.Context(), Options{OTLP: gone.URL, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	_, ended := m.Run(t.Context(), "r-1", "tool", 1)
	ended(1, nil)
	err = m.Close(t.Context())
	if err == nil && !strings.Contains(log.String(), "spans aren't sent") {
		t.Errorf("nobody is told: %v, %s", err, &log)
	}
}
