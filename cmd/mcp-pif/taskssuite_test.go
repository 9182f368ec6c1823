//go:build unix

package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/mcp-pif/mcp-pif/cmd/internal/nodejs"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// suiteTools is the tools that the official suite's scenarios of the tasks extension call, as programs. What
// takes seconds there takes longer than a call that isn't a task.
var suiteTools = map[string]struct{ code, capability string }{
	"greet":          {`p => "Hello, " ++ p.name ++ "!"`, ""},
	"slow_compute":   {`p => let t = if p.seconds > 0 then !clock.sleep(min(p.seconds * 1000 + 2100, 25000)) else 0 in "did " ++ p.label`, "clock:utc"},
	"failing_job":    {`p => let t = !clock.sleep(2500) in raise("the job failed")`, "clock:utc"},
	"confirm_delete": {`p => let a = !ask.user({message: "delete " ++ p.filename ++ "?", schema: {confirm: {type: "boolean"}}}) in a.action`, "ask"},
	"multi_input":    {`p => let a = par(!ask.user({message: "name?", schema: {name: {type: "string"}}}), !ask.user({message: "sure?", schema: {confirm: {type: "boolean"}}})) in "done"`, "ask"},
}

// suiteExceptions is the checks of those scenarios that aren't held against the server, with the reason.
var suiteExceptions = map[string]string{
	"sep-2663-tasks-get-status-failed":                         "a tool that breaks down gives a result with isError, as any other that fails",
	"sep-2663-server-returns-missing-capability-when-required": "no tool needs a task: who doesn't declare the extension waits",
}

// TestTasksSuite: the official suite finds nothing wrong with the tasks extension of the command over HTTP. It has
// limits in seconds, so it runs in full counts only.
func TestTasksSuite(t *testing.T) {
	t.Parallel()
	if !full() {
		t.Skip("it has limits in seconds: PIF_FULL=1")
	}
	dir := filepath.Join("..", "internal", "conformance")
	node := nodejs.Require(t, dir, "conformance-stateless")
	main, err := filepath.Abs(filepath.Join(dir, "node_modules", "conformance-stateless", "dist", "index.js"))
	must.NoError(t, err)
	s := startWeb(t, t.TempDir(), "--cap", "clock:utc", "--cap", "ask", "--http-tokens", bothTokens(t))
	ann := s.connect(annToken, eras[0])
	for name, tool := range suiteTools {
		if tool.capability == "" {
			ann.makes(name, tool.code)
		} else {
			ann.makes(name, tool.code, tool.capability)
		}
	}
	target, err := url.Parse(s.url)
	must.NoError(t, err)
	proxy := &httputil.ReverseProxy{ // the suite has no tokens
		Rewrite:       func(r *httputil.ProxyRequest) { r.Out.URL, r.Out.Host = target, target.Host },
		Transport:     bearer{annToken, http.DefaultTransport},
		FlushInterval: -1,
	}
	srv := httptest.NewServer(proxy)
	t.Cleanup(srv.Close)
	for _, name := range []string{
		"tasks-lifecycle", "tasks-capability-negotiation", "tasks-dispatch-and-envelope", "tasks-wire-fields", "tasks-mrtr-input",
		"tasks-request-headers", "tasks-request-state-removal", "tasks-required-task-error",
	} { // tasks-mrtr-composition wants questions before a task; here they are the task's
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := t.TempDir()
			cmd := exec.CommandContext(t.Context(), node, main, "server", "--url", srv.URL, "--output-dir", out, "--scenario", name, "--spec-version", "2026-07-28", "--force", "--timeout", "300000")
			cmd.Dir = out
			said, _ := cmd.CombinedOutput()
			files, _ := filepath.Glob(filepath.Join(out, "*", "checks.json"))
			var checks []struct{ ID, Status, ErrorMessage string }
			for _, file := range files {
				if text, err := os.ReadFile(file); err != nil || json.Unmarshal(text, &checks) != nil {
					t.Fatalf("%v: %s", err, text)
				}
			}
			if len(checks) == 0 {
				t.Fatalf("nothing was judged: %s", said)
			}
			for _, c := range checks {
				t.Log(c.Status, c.ID)
				if c.Status != "SUCCESS" && c.Status != "INFO" && suiteExceptions[c.ID] == "" {
					t.Errorf("%s: %s: %s", c.Status, c.ID, c.ErrorMessage)
				}
			}
		})
	}
}
