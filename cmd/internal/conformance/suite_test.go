package conformance

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/engine"
	"github.com/mcp-pif/mcp-pif/cmd/internal/nodejs"
	"github.com/mcp-pif/mcp-pif/cmd/internal/streamable"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// A suite is one of the ways to run the suite.
type suite struct {
	name, pkg string
	arguments []string
	scenarios int  // that it has
	always    bool // without PIF_FULL, too
}

var suites = []suite{
	{"2025-11-25, as released", "conformance-sessions", []string{"--suite", "active", "--spec-version", "2025-11-25"}, 30, true},
	{"2026-07-28", "conformance-stateless", []string{"--suite", "all", "--spec-version", "2026-07-28"}, 40, true},
	{"2025-11-25", "conformance-stateless", []string{"--suite", "all", "--spec-version", "2025-11-25"}, 33, false},
	{"2025-06-18", "conformance-stateless", []string{"--suite", "all", "--spec-version", "2025-06-18"}, 27, false},
	{"2025-03-26", "conformance-stateless", []string{"--suite", "all", "--spec-version", "2025-03-26"}, 1, false},
	{"requirements of 2026-07-28", "conformance-stateless", []string{"--requirements", "2026-07-28"}, 50, true},
}

// A check is what the suite found at one place of a scenario.
type check struct {
	scenario         string
	ID, ErrorMessage string
	Status           string // SUCCESS, INFO, WARNING, FAILURE, SKIPPED
}

// An exception is what isn't held against us, with the reason. An empty check is all
// of a scenario; both may be the beginning of a name, with a star.
type exception struct{ scenario, check, reason string }

func (e exception) covers(c check) bool {
	return matches(e.scenario, c.scenario) && (e.check == "" || matches(e.check, c.ID))
}

func matches(pattern, name string) bool {
	beginning, star := strings.CutSuffix(pattern, "*")
	return pattern == name || star && strings.HasPrefix(name, beginning)
}

var overHTTP = []exception{
	{"tasks-*", "", "they call tools of the suite's own, which take their time: TestTasksSuite in cmd/mcp-pif runs them"},
	{"server-sse-polling", "server-sse-priming-event", "a recommendation: answers aren't kept for clients that come back for them"},
}

var overStdio = []exception{
	{"tasks-*", "", "as over HTTP"},
	{"dns-rebinding-protection", "", "is about HTTP"},
	{"http-*", "", "is about HTTP's headers"},
	{"server-sse-polling", "", "is about HTTP's streams"},
	{"server-stateless", "sep-2575-http-*", "is about HTTP's status"},
	{"server-stateless", "sep-2575-missing-capability-http-400", "is about HTTP's status"},
	{"server-stateless", "sep-2575-request-meta-invalid-missing-*", "without _meta, and without HTTP's header, it is a request of the older protocol"},
}

// judge runs the suite on an URL.
func judge(t *testing.T, s suite, url string) []check {
	t.Helper()
	node := nodejs.Require(t, ".", s.pkg)
	out := t.TempDir()
	main, err := filepath.Abs(filepath.Join("node_modules", s.pkg, "dist", "index.js"))
	must.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, append([]string{main, "server", "--url", url, "--output-dir", out}, s.arguments...)...)
	cmd.Dir = out
	said, ended := cmd.CombinedOutput()
	files, err := filepath.Glob(filepath.Join(out, "*", "checks.json"))
	must.NoError(t, err)
	t.Logf("%d scenarios", len(files))
	if len(files) < s.scenarios {
		t.Fatalf("%d scenarios were judged, the suite has %d; it ended with %v: %s", len(files), s.scenarios, ended, said)
	}
	var all []check
	for _, file := range files {
		data, err := os.ReadFile(file)
		must.NoError(t, err)
		var some []check
		must.NoError(t, json.Unmarshal(data, &some))
		for i := range some {
			some[i].scenario = scenario(file)
		}
		all = append(all, some...)
	}
	return all
}

// scenario is the name in the path of a file of checks: …/server-NAME-TIME/checks.json.
func scenario(file string) string {
	name := strings.TrimPrefix(filepath.Base(filepath.Dir(file)), "server-")
	if i := strings.LastIndex(name, "T"); i > len("-2006-01-02") {
		name = name[:i-len("-2006-01-02")]
	}
	return name
}

// server is ours, with the fixtures.
func server(t *testing.T) *mcpserver.Server {
	s := mcpserver.New(engine.Options{Version: "test"}, extra())
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go change(ctx, s.Protocol())
	return s
}

// serve gives an URL to a handler.
func serve(t *testing.T, h http.Handler) string {
	srv := httptest.NewServer(h)
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return srv.URL
}

// TestHTTP: the suite finds nothing wrong with our server over HTTP, in either era, on
// one URL.
func TestHTTP(t *testing.T) {
	t.Parallel()
	s := server(t)
	h, err := streamable.New(streamable.Options{
		Server: func(context.Context, string) (*mcp.Server, error) { return s.Protocol(), nil },
	})
	must.NoError(t, err)
	judged(t, serve(t, h)+streamable.Path, overHTTP)
}

// TestStdio: nor over stdio.
func TestStdio(t *testing.T) {
	t.Parallel()
	judged(t, serve(t, newBridge(t, server(t))), overStdio)
}

// judged runs all the suites on an URL, or without PIF_FULL the newest of each era, and
// holds it to every check that isn't excepted. An exception that none of all needs is one
// too many.
func judged(t *testing.T, url string, exceptions []exception) {
	nodejs.Require(t, ".", "conformance-sessions", "conformance-stateless")
	needed, full := make([]bool, len(exceptions)), os.Getenv("PIF_FULL") != ""
	for _, s := range suites {
		if !s.always && !full {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
		checks:
			for _, c := range judge(t, s, url) {
				if c.Status == "SUCCESS" || c.Status == "INFO" {
					continue
				}
				for i, e := range exceptions {
					if e.covers(c) {
						needed[i] = true
						continue checks
					}
				}
				t.Errorf("%s: %s: %s: %s", c.Status, c.scenario, c.ID, c.ErrorMessage)
			}
		})
	}
	for i, e := range exceptions {
		if full && !needed[i] && !t.Failed() {
			t.Errorf("nothing of %s %s has to be excepted", e.scenario, e.check)
		}
	}
}
