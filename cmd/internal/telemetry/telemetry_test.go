package telemetry

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// scripted is a handler that answers each act with the next outcome.
type scripted struct{ outcomes []*fault.Fault }

func (s *scripted) Prepare(*caps.Grant) {}

func (s *scripted) Perform(context.Context, run.Act) (value.Value, int64, *fault.Fault) {
	f := s.outcomes[0]
	s.outcomes = s.outcomes[1:]
	return value.Str("private"), 7, f
}

// act performs two effects in a run of a tool: one is done, one is denied.
func act(t *testing.T, m *Telemetry) {
	t.Helper()
	ctx, ended := m.Run(t.Context(), "abc-1", "read_it", 3)
	h := m.Handler(&scripted{[]*fault.Fault{nil, {Kind: fault.Denied, Message: "private"}}})
	a := run.Act{Operation: &caps.Operation{Name: "fs.read"}, Args: value.Str("private")}
	if v, n, f := h.Perform(ctx, a); f != nil || n != 7 || v != value.Value(value.Str("private")) {
		t.Errorf("the outcome is another: %v, %d, %v", v, n, f)
	}
	if _, _, f := h.Perform(ctx, a); f == nil || f.Kind != fault.Denied {
		t.Errorf("the failure is another: %v", f)
	}
	ended(12, &fault.Fault{Kind: fault.TypeError, Message: "private"})
}

func page(t *testing.T, m *Telemetry) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Metrics().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

func TestMetrics(t *testing.T) {
	m, err := Open(t.Context(), Options{Version: "1"})
	must.NoError(t, err)
	defer m.Close(context.Background())
	act(t, m)
	can := true
	must.NoError(t, m.Acts(func() bool { return can }))
	if got := page(t, m); !strings.Contains(got, "pif_cluster_can_act 1\n") {
		t.Error("the page lacks that the node may act")
	}
	can = false
	got := page(t, m)
	for _, want := range []string{
		`pif_cluster_can_act 0`,
		`pif_runs_total{outcome="type_error"} 1`, `pif_steps_total 12`, `pif_runs_active 0`,
		`pif_effects_total{op="fs.read",outcome="ok"} 1`, `pif_effects_total{op="fs.read",outcome="denied"} 1`,
		`pif_run_duration_seconds_count 1`, `pif_effect_duration_seconds_count{op="fs.read"} 2`,
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("the page lacks %s", want)
		}
	}
	for _, never := range []string{"private", "read_it", "abc-1"} {
		if strings.Contains(got, never) {
			t.Errorf("the page tells %q", never)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
}

// A collector sees a span for the run, and below it one for each effect.
func TestTraces(t *testing.T) {
	var mu sync.Mutex
	var spans []*traces.Span
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		var req collector.ExportTraceServiceRequest
		if err := proto.Unmarshal(b, &req); err != nil {
			t.Error(err)
		}
		if strings.Contains(string(b), "private") {
			t.Error("a span tells what went in or came out")
		}
		mu.Lock()
		defer mu.Unlock()
		for _, rs := range req.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				spans = append(spans, ss.Spans...)
			}
		}
	}))
	defer srv.Close()
	m, err := Open(t.Context(), Options{Version: "1", OTLP: srv.URL + "/v1/traces"})
	must.NoError(t, err)
	act(t, m)
	must.NoError(t, m.Close(context.Background()))
	var run *traces.Span
	names := map[string]int{}
	for _, s := range spans {
		names[s.Name]++
		if s.Name == "run read_it" {
			run = s
		}
	}
	if run == nil || names["fs.read"] != 2 || len(spans) != 3 {
		t.Fatalf("the spans are %v", names)
	}
	for _, s := range spans {
		if s != run && string(s.ParentSpanId) != string(run.SpanId) {
			t.Errorf("%s isn't below the run", s.Name)
		}
	}
	if run.Status.GetMessage() != "type_error" {
		t.Errorf("the run ended with %v", run.Status)
	}
}

func TestNothing(t *testing.T) {
	var m *Telemetry
	_, ended := m.Run(t.Context(), "a", "b", 1)
	ended(1, nil)
	if h := m.Handler(nil); h != nil || m.Close(t.Context()) != nil {
		t.Error("nothing measures something")
	}
}

// Requests are told apart by few values, whatever clients send, and streams can
// still be flushed.
func TestRequests(t *testing.T) {
	m, err := Open(t.Context(), Options{})
	must.NoError(t, err)
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
		must.NoError(t, err)
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
	must.NoError(t, err)
	_, ended := m.Run(t.Context(), "r-1", "tool", 1)
	ended(1, nil)
	err = m.Close(t.Context())
	if err == nil && !strings.Contains(log.String(), "spans aren't sent") {
		t.Errorf("nobody is told: %v, %s", err, &log)
	}
}
