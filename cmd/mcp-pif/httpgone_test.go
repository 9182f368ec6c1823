//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// endless is a program that runs until it is stopped.
const endless = `(f => f(f))(f => f(f))`

// TestHTTPGone: a client that goes away cancels what it called, in both protocols.
func TestHTTPGone(t *testing.T) {
	s := startWeb(t, t.TempDir(), "--timeout=30m")
	c := s.connect("", eras[1])
	journalled := func(kind string) int {
		text, _ := c.asks("journal", map[string]any{"kind": kind, "limit": 100})
		return strings.Count(text, `"kind":"`+kind+`"`)
	}
	for _, version := range eras {
		gone := s.connect("", version)
		begun := journalled("run.started")
		ended := journalled("run.ended")
		ctx, hangUp := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = gone.CallTool(ctx, &mcp.CallToolParams{Name: "run", Arguments: map[string]any{"code": endless, "steps": 1_000_000_000}})
		}()
		s.wait("the run's begin", func() bool { return journalled("run.started") > begun })
		hangUp()
		wait.For(t, done, "the end of the call")
		s.wait("the run's end", func() bool { return journalled("run.ended") > ended })
		if text, _ := c.asks("journal", map[string]any{"kind": "run.ended", "limit": 1}); !strings.Contains(text, "cancelled") {
			t.Errorf("%s: the run ended as %s", version, text)
		}
	}
	s.stop()
}

// TestHTTPEndAnswers: a server that is told to end takes nothing more, and answers what
// is under way.
func TestHTTPEndAnswers(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}, 1), make(chan struct{})
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
		fmt.Fprint(w, "late words")
	}))
	defer origin.Close()
	s := startWeb(t, t.TempDir(), "--http-tokens", bothTokens(t), "--cap", "fetch.get:"+origin.URL)
	c := s.connect(annToken, eras[1])
	c.makes("slow", "u => !fetch.request(u)", "fetch.get:"+origin.URL)
	answer := make(chan string, 1)
	go func() {
		res, err := c.CallTool(context.Background(), &mcp.CallToolParams{Name: "slow", Arguments: map[string]any{"input": origin.URL + "/"}})
		if err != nil {
			answer <- err.Error()
			return
		}
		answer <- res.Content[0].(*mcp.TextContent).Text
	}()
	wait.For(t, arrived, "the request")
	must.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	s.wait("the server is told to end", func() bool { return strings.Contains(s.logged(), "the server ends when") })
	close(release)
	if text := wait.For(t, answer, "the answer"); !strings.Contains(text, "late words") {
		t.Errorf("a call under way when the server was told to end: %s", text)
	}
	if wait.For(t, s.ended, "the end of the server"); s.err != nil {
		t.Errorf("the server ended with %v", s.err)
	}
}

// TestHTTPRefuses: what would let others in, or tools out, ends the start, in words
// that say what to give.
func TestHTTPRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		must.NoError(t, os.WriteFile(path, []byte(text), mode))
		must.NoError(t, os.Chmod(path, mode))
		return path
	}
	good := write("good", "ann "+annToken, 0o600)
	open := write("open", "ann "+annToken, 0o644)
	hashes := write("hashes", "ann sha256:"+strings.Repeat("1", 64), 0o644)
	link := filepath.Join(dir, "link")
	must.NoError(t, os.Symlink(good, link))
	for _, c := range []struct {
		flags string
		says  string // "": it starts
	}{
		{"--http 0.0.0.0:0", "needs tokens"}, {"--http [::]:0", "needs tokens"}, {"--http :0 --cap clock:now", "needs tokens"},
		{"--http :0", ""}, {"--http 0", ""}, {"--http localhost:0", ""}, {"--http nonsense", "host:port"}, {"--http :none", "host:port"}, {"--http 127.0.0.1:99999", "host:port"},
		{"--http-tokens " + good, "goes with --http"}, {"--http :0 --http-tokens " + good, ""}, {"--http :0 --http-tokens " + link, ""},
		{"--http 0.0.0.0:0 --http-tokens " + good, ""}, {"--http :0 --http-tokens " + open, "chmod 600"}, {"--http :0 --http-tokens " + hashes, ""},
		{"--http :0 --http-tokens " + dir, "regular file"}, {"--http :0 --http-tokens " + dir + "/none", "no such file"},
		{"--http :0 --http-tokens " + good + " --cap fs:" + dir, "no tool may reach"}, {"--http :0 --http-tokens " + link + " --cap fs:" + good, "no tool may reach"},
		{"--http :0 --http-tokens " + good + " --profile x", "--profile"}, {"--http :0 --http-tokens " + good + " --store x.db", "--store"},
		{"--http :0 --http-jwks " + good, "go together"}, {"--http :0 --http-jwks " + good + " --http-issuer i --http-audience a", "--http-jwks"},
		{"--http :0 --http-tls-cert " + good, "go together"}, {"--http :0 --http-tls-cert " + good + " --http-tls-key " + good, "--http-tls-cert"},
		{"--http :0 --http-tls-cert " + good + " --http-tls-key " + open, "others can read it"},
		{"--http :0 --http-host a/b", "is not a host's name"}, {"--http :0 --http-origin x", "is not an origin"}, {"--otlp nonsense", "collector"},
	} {
		cmd := self("mcp-pif", append(strings.Fields(c.flags), "--log-level=info")...)
		cmd.Dir = t.TempDir()
		var stdout strings.Builder
		cmd.Stdout = &stdout
		stderr, err := cmd.StderrPipe()
		must.NoError(t, err)
		must.NoError(t, wait.Start(cmd))
		said := new(strings.Builder)
		buf := make([]byte, 4096)
		for !strings.Contains(said.String(), "msg=\"serving MCP over HTTP\"") {
			n, err := stderr.Read(buf)
			said.Write(buf[:n])
			if err != nil {
				break
			}
		}
		_ = cmd.Process.Signal(syscall.SIGTERM)
		rest, _ := io.ReadAll(stderr)
		said.Write(rest)
		err = cmd.Wait()
		started := strings.Contains(said.String(), "mcp-pif serves MCP at http")
		switch {
		case c.says == "" && (!started || err != nil):
			t.Errorf("%s: it doesn't start: %s", c.flags, said)
		case c.says != "" && (started || err == nil || !strings.Contains(said.String(), c.says)):
			t.Errorf("%s: expected %q, it said (%v): %s", c.flags, c.says, err, said)
		case strings.Contains(said.String(), annToken):
			t.Errorf("%s: it tells the token: %s", c.flags, said)
		case strings.HasPrefix(c.flags, "--http 0.0.0.0") && started && !strings.Contains(said.String(), "--http-tls-cert"):
			t.Errorf("%s: no warning that TLS is missing: %s", c.flags, said)
		}
		if stdout.Len() > 0 {
			t.Errorf("%s: it wrote to standard output: %s", c.flags, &stdout)
		}
	}
}
