//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The tokens of the tests' principals.
const (
	annToken = "ann-ann-ann-ann-ann-ann"
	bobToken = "bob-bob-bob-bob-bob-bob"
)

var eras = []string{"2026-07-28", "2025-11-25"}

// A webServer is a process that serves over HTTP.
type webServer struct {
	t      testing.TB
	cmd    *exec.Cmd
	url    string
	state  string
	stdout *strings.Builder
	log    *strings.Builder
	mu     *sync.Mutex
	ended  chan struct{}
	err    error // with which it ended
}

// startWeb starts one, with the tokens of ann and bob where there is a file for them.
func startWeb(t testing.TB, state string, flags ...string) *webServer {
	t.Helper()
	return startWebAs(t, "mcp-pif", state, flags...)
}

// startWebAs starts one of the commands of TestMain.
func startWebAs(t testing.TB, command, state string, flags ...string) *webServer {
	t.Helper()
	s := &webServer{t: t, state: state, stdout: new(strings.Builder), log: new(strings.Builder), mu: new(sync.Mutex), ended: make(chan struct{})}
	s.cmd = self(command, append([]string{"--http", "127.0.0.1:0"}, flags...)...)
	s.cmd.Env = append(slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "XDG_STATE_HOME=") }), "XDG_STATE_HOME="+state)
	s.cmd.Dir = t.TempDir()
	s.cmd.Stdout, s.cmd.Stderr = locked{s.mu, s.stdout}, locked{s.mu, s.log}
	must.NoError(t, wait.Start(s.cmd))
	go func() {
		defer close(s.ended)
		s.err = s.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		wait.For(t, s.ended, "the end of the server") // before its folders are removed
		if t.Failed() {
			t.Logf("the server's log:\n%.4000s", s.logged())
		}
	})
	served := regexp.MustCompile(`mcp-pif serves MCP at (\S+)`)
	s.wait("the server's URL", func() bool {
		if m := served.FindStringSubmatch(s.logged()); m != nil {
			s.url = m[1]
		}
		return s.url != ""
	})
	return s
}

func (s *webServer) logged() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// wait waits for what comes by itself, or not at all.
func (s *webServer) wait(what string, done func() bool) {
	s.t.Helper()
	for until := time.Now().Add(wait.Limit(s.t)); !done(); time.Sleep(10 * time.Millisecond) {
		select {
		case <-s.ended:
			s.t.Fatalf("the server ended before %s: %v\n%s", what, s.err, s.logged())
		default:
		}
		if time.Now().After(until) {
			s.t.Fatalf("never came: %s", what)
		}
	}
}

// stop ends the server as a service manager does.
func (s *webServer) stop() {
	s.t.Helper()
	must.NoError(s.t, s.cmd.Process.Signal(syscall.SIGTERM))
	if wait.For(s.t, s.ended, "the end of the server"); s.err != nil {
		s.t.Errorf("the server ended with %v", s.err)
	}
	if s.stdout.Len() > 0 {
		s.t.Errorf("it wrote to standard output: %.300q", s.stdout)
	}
}

// bearer adds a token to requests.
type bearer struct {
	token string
	next  http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b.token != "" {
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.next.RoundTrip(r)
}

// A webClient is the SDK's, of one principal.
type webClient struct {
	t testing.TB
	*mcp.ClientSession
	changed chan struct{}
}

func (s *webServer) try(token, version string) (*webClient, error) {
	return s.speak(token, version, new(mcp.ClientOptions))
}

// speak connects a client that can more.
func (s *webServer) speak(token, version string, options *mcp.ClientOptions) (*webClient, error) {
	c := &webClient{t: s.t, changed: make(chan struct{}, 1)}
	options.ToolListChangedHandler = func(context.Context, *mcp.ToolListChangedRequest) {
		select {
		case c.changed <- struct{}{}:
		default:
		}
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, options)
	transport := &http.Transport{}
	s.t.Cleanup(transport.CloseIdleConnections)
	var err error
	c.ClientSession, err = client.Connect(context.Background(),
		&mcp.StreamableClientTransport{Endpoint: s.url, HTTPClient: &http.Client{Transport: bearer{token, transport}}},
		&mcp.ClientSessionOptions{ProtocolVersion: version})
	if err == nil {
		s.t.Cleanup(func() { c.Close() })
	}
	return c, err
}

func (s *webServer) connect(token, version string) *webClient {
	s.t.Helper()
	c, err := s.try(token, version)
	must.NoError(s.t, err)
	return c
}

// asks calls a tool, and gives its text and whether it failed.
func (c *webClient) asks(tool string, arguments any) (string, bool) {
	c.t.Helper()
	res, err := c.CallTool(context.Background(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		c.t.Fatalf("%s: %v", tool, err)
	}
	b, _ := json.Marshal(res.StructuredContent)
	return res.Content[0].(*mcp.TextContent).Text + string(b), res.IsError
}

func (c *webClient) makes(name, code string, capabilities ...string) {
	c.t.Helper()
	if text, failed := c.asks("evolve", map[string]any{"name": name, "code": code, "capabilities": capabilities}); failed {
		c.t.Fatalf("evolve %s: %s", name, text)
	}
}

func (c *webClient) names() (names []string) {
	c.t.Helper()
	for tool, err := range c.Tools(context.Background(), nil) {
		must.NoError(c.t, err)
		names = append(names, tool.Name)
	}
	return names
}

// tokensFile writes a file that only this user can read.
func tokensFile(t testing.TB, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens")
	must.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	return path
}

func bothTokens(t testing.TB) string { return tokensFile(t, "ann "+annToken, "bob "+bobToken) }

// TestHTTPPrincipals: nothing of one principal's can be reached by another, whatever
// it guesses; all of it is there again after a restart, for whom it belongs to.
func TestHTTPPrincipals(t *testing.T) {
	t.Parallel()
	state, tokens := t.TempDir(), bothTokens(t)
	for round, version := range eras {
		s := startWeb(t, state, "--http-tokens", tokens, "--cap", "kv:notes/**")
		ann, bob := s.connect(annToken, version), s.connect(bobToken, version)
		if round == 0 {
			// Digits enough that no hash has them by chance.
			ann.makes("private_sauce", `n => n * 42424242424242`)
			ann.makes("keep", `v => !kv.put({key: "notes/a", value: v})`, "kv:notes/**")
			bob.makes("peek", `u => !kv.get("notes/a")`, "kv:notes/**")
			if text, failed := ann.asks("keep", map[string]any{"input": "private_note"}); failed {
				t.Fatal(text)
			}
		}
		if text, failed := ann.asks("private_sauce", map[string]any{"input": 2}); failed || !strings.HasPrefix(text, "8484") {
			t.Fatalf("%s: %s", version, text)
		}
		text, _ := ann.asks("journal", map[string]any{"kind": "run.started"})
		id := regexp.MustCompile(`[a-z2-7]{8}-\d+`).FindString(text)
		if id == "" {
			t.Fatalf("no run in ann's journal: %s", text)
		}
		if !slices.Contains(ann.names(), "private_sauce") {
			t.Errorf("%s: ann's tools are %v", version, ann.names())
		}
		if names := bob.names(); slices.Contains(names, "private_sauce") || !slices.Contains(names, "peek") {
			t.Errorf("%s: bob's tools are %v", version, names)
		}
		for _, c := range []struct {
			tool      string
			arguments any
		}{
			{"private_sauce", map[string]any{"input": 2}}, {"private_sauc", map[string]any{}}, {"run", map[string]any{"tool": "private_sauce", "input": 2}},
			{"run", map[string]any{"code": map[string]any{"code_of": "private_sauce"}}}, {"describe", map[string]any{"name": "private_sauce"}},
			{"history", map[string]any{"name": "private_sauce"}}, {"retire", map[string]any{"name": "private_sauce"}}, {"list", map[string]any{}},
			{"journal", map[string]any{}}, {"journal", map[string]any{"run": id}}, {"journal", map[string]any{"tool": "private_sauce"}},
			{"peek", map[string]any{}}, {"help", map[string]any{"name": "private_sauce"}},
		} {
			text, _ := bob.asks(c.tool, c.arguments)
			for _, mine := range []string{"42424242424242", "84848484848484", "private_note", id} {
				// What bob says himself may be said back.
				if said, _ := json.Marshal(c.arguments); strings.Contains(text, mine) && !strings.Contains(string(said), mine) {
					t.Errorf("%s: %s %v tells of ann's %q: %s", version, c.tool, c.arguments, mine, text)
				}
			}
		}
		if text, failed := bob.asks("private_sauce", map[string]any{}); !failed || !strings.Contains(text, "no_tool") {
			t.Errorf("%s: bob called ann's tool: %s", version, text)
		}
		if session := ann.ID(); session != "" {
			for _, method := range []string{"POST", "GET", "DELETE"} {
				r, _ := http.NewRequest(method, s.url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Accept", "application/json, text/event-stream")
				r.Header.Set("Authorization", "Bearer "+bobToken)
				r.Header.Set("Mcp-Session-Id", session)
				res, err := http.DefaultClient.Do(r)
				must.NoError(t, err)
				b, _ := io.ReadAll(res.Body)
				res.Body.Close()
				if res.StatusCode != http.StatusForbidden && res.StatusCode != http.StatusNotFound {
					t.Errorf("%s with ann's session: status %d: %s", method, res.StatusCode, b)
				}
			}
		} else if version < eras[0] {
			t.Error("a session without a name")
		}
		for _, token := range []string{"", "wrong-wrong-wrong-wrong-wrong", annToken + "x", annToken[:len(annToken)-1], "http:ann"} {
			if _, err := s.try(token, version); err == nil {
				t.Errorf("%s: the token %q came in", version, token)
			}
		}
		s.stop()
	}
	for _, name := range []string{"http:ann", "http:bob"} {
		if _, err := os.Stat(filepath.Join(state, "mcp-pif", "profiles", app.FolderName(name), app.JournalFile)); err != nil {
			t.Error(err)
		}
	}
	// The name that a client on standard input gives itself is no principal's.
	cmd := self("mcp-pif", "--log-level=error")
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+state)
	p := startCommand(t, cmd)
	p.send(strings.Replace(initialize, `"name":"test"`, `"name":"http:ann"`, 1))
	p.receive()
	if names := strings.Join(listed(p), " "); strings.Contains(names, "private_sauce") {
		t.Errorf("a client called http:ann has ann's tools: %s", names)
	}
}

// TestHTTPTokensRotate: after SIGHUP a token that was taken out doesn't work, a new
// one does, a file that is wrong or that others can read changes nothing, and one that was
// emptied lets nobody in.
func TestHTTPTokensRotate(t *testing.T) {
	tokens := tokensFile(t, "ann "+annToken)
	s := startWeb(t, t.TempDir(), "--http-tokens", tokens, "--store", "memory")
	ann := s.connect(annToken, eras[1])
	ann.makes("one", "1")
	again := func(text string, mode os.FileMode, said string) {
		t.Helper()
		before := strings.Count(s.logged(), said)
		must.NoError(t, os.WriteFile(tokens, []byte(text), mode))
		must.NoError(t, os.Chmod(tokens, mode))
		must.NoError(t, s.cmd.Process.Signal(syscall.SIGHUP))
		s.wait(said, func() bool { return strings.Count(s.logged(), said) > before })
	}
	again("ann short", 0o600, "refused; what held before stays")
	again("ann "+bobToken, 0o644, "refused; what held before stays")
	again("ann "+bobToken, 0o600|0o020, "refused; what held before stays")
	if text, failed := ann.asks("one", map[string]any{}); failed {
		t.Errorf("a wrong file changed something: %s", text)
	}
	again("bob "+bobToken+"\nann sha256:"+strings.Repeat("0", 64), 0o600, "taken=1")
	if _, err := ann.CallTool(t.Context(), &mcp.CallToolParams{Name: "one"}); err == nil {
		t.Error("a token that was taken out still works, in its session")
	}
	if _, err := s.try(annToken, eras[0]); err == nil {
		t.Error("a token that was taken out comes in")
	}
	if names := s.connect(bobToken, eras[0]).names(); slices.Contains(names, "one") {
		t.Errorf("bob has ann's tools: %v", names)
	}
	again("# none\n", 0o600, "it lets nobody in")
	if _, err := s.try(bobToken, eras[0]); err == nil {
		t.Error("a file that was emptied lets somebody in")
	}
	if strings.Contains(s.logged(), annToken) || strings.Contains(s.logged(), bobToken) {
		t.Error("the log tells a token")
	}
	s.stop()
}

// TestHTTPEras: in both protocols a tool can be called as soon as its evolve is
// answered, clients are told of changes, of others' too, and long runs report.
func TestHTTPEras(t *testing.T) {
	t.Parallel()
	s := startWeb(t, t.TempDir())
	other := s.connect("", eras[1])
	for _, version := range eras {
		c := s.connect("", version)
		if got := c.InitializeResult().ProtocolVersion; got != version {
			t.Fatalf("asked for %s, got %s", version, got)
		}
		for i := range 20 {
			name := fmt.Sprintf("t%s_%d", version[:4], i)
			c.makes(name, fmt.Sprintf("n => n + %d", i))
			if text, failed := c.asks(name, map[string]any{"input": 1}); failed || !strings.HasPrefix(text, fmt.Sprint(i+1)) {
				t.Errorf("%s: %s after its evolve: %s", version, name, text)
			}
		}
		if names := c.names(); !slices.Contains(names, "t"+version[:4]+"_19") {
			t.Errorf("%s: listed are %v", version, names)
		}
		s.wait("a change of the list, "+version, func() bool { return len(c.changed) > 0 })
		<-c.changed
		other.makes("of_another_"+version[:4], "2")
		s.wait("another's change, "+version, func() bool { return len(c.changed) > 0 })
	}
	metrics, err := http.Get(strings.TrimSuffix(s.url, "/mcp") + "/metrics")
	must.NoError(t, err)
	b, _ := io.ReadAll(metrics.Body)
	metrics.Body.Close()
	for _, want := range []string{`pif_runs_total{outcome="ok"} 40`, `pif_http_requests_total{method="POST",path="/mcp",status="200"}`, "pif_runs_active 0"} {
		if !strings.Contains(string(b), want) {
			t.Errorf("/metrics has no %s:\n%.3000s", want, b)
		}
	}
	if strings.Contains(string(b), "t2026") || strings.Contains(string(b), "of_another") {
		t.Error("/metrics tells the names of tools")
	}
	s.stop()
}

// TestHTTPResults: a large result is read on by whose it is, in a later request and by
// another of its tokens, and by no other principal, who is told what is told of one that
// never was.
func TestHTTPResults(t *testing.T) {
	t.Parallel()
	s := startPolicied(t, t.TempDir(), `{}`)
	const unknown = "AAAAAAAAAAAAAAAAAAAAAAAAAA"
	for _, version := range eras {
		ann, bob := s.connect(annToken, version), s.connect(bobToken, version)
		text, failed := ann.asks("run", map[string]any{"code": `s => "ann's: " ++ s ++ "end"`, "input": strings.Repeat("long", 100_000)})
		id := strings.TrimPrefix(regexp.MustCompile(`pif://results/[A-Z2-7]+`).FindString(text), "pif://results/")
		if failed || id == "" {
			t.Fatalf("%s: no handle: %.300s", version, text)
		}
		uri := "pif://results/" + id
		for who, c := range map[string]*webClient{"ann": ann, "ann by her other token": s.connect(annsOther, version)} {
			res, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
			if err != nil || !strings.HasPrefix(res.Contents[0].Text, `"ann's: long`) {
				t.Errorf("%s: %s reads %+.300v, %v", version, who, res, err)
			}
			if text, failed := c.asks("run", map[string]any{"result": id, "from": 400_000}); failed || !strings.Contains(text, "end") {
				t.Errorf("%s: %s reads on: %.300s", version, who, text)
			}
		}
		var said [2]string
		for i, handle := range []string{id, unknown} {
			res, err := bob.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "pif://results/" + handle})
			if err == nil {
				t.Fatalf("%s: bob reads %+.300v", version, res)
			}
			text, failed := bob.asks("run", map[string]any{"result": handle})
			if !failed {
				t.Fatalf("%s: bob reads on: %.300s", version, text)
			}
			said[i] = strings.ReplaceAll(err.Error()+text, handle, "ID")
		}
		if said[0] != said[1] {
			t.Errorf("%s: of ann's bob is told %s, and of none %s", version, said[0], said[1])
		}
		if _, err := ann.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err != nil {
			t.Errorf("%s: after bob's attempts ann's is gone: %v", version, err)
		}
	}
	s.stop()
}

// TestHTTPProgress: in both protocols a long run tells who called it how far it is, on
// the answer's stream, with the token of that call and only while it is under way; a
// call that asked for nothing is told nothing.
func TestHTTPProgress(t *testing.T) {
	t.Parallel()
	s := startWeb(t, t.TempDir())
	for _, version := range eras {
		var mu sync.Mutex
		told := map[any][]*mcp.ProgressNotificationParams{}
		several := make(chan struct{}, 1000)
		c, err := s.speak("", version, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			mu.Lock()
			defer mu.Unlock()
			told[r.Params.ProgressToken] = append(told[r.Params.ProgressToken], r.Params)
			several <- struct{}{}
		}})
		must.NoError(t, err)
		ctx, hangUp := context.WithCancel(t.Context())
		var calls sync.WaitGroup
		for _, token := range []any{"mine", nil} {
			p := &mcp.CallToolParams{Name: "run", Arguments: map[string]any{"code": endless, "steps": 1_000_000_000}}
			if token != nil {
				p.SetProgressToken(token)
			}
			calls.Go(func() { _, _ = c.CallTool(ctx, p) })
		}
		s.wait("two reports, "+version, func() bool { return len(several) >= 2 })
		hangUp()
		calls.Wait()
		mu.Lock()
		if len(told) != 1 || len(told["mine"]) < 2 {
			t.Errorf("%s: told were %v", version, told)
		}
		last := -1.0
		for _, p := range told["mine"] {
			if p.Progress <= last || p.Total != 1_000_000_000 || p.Progress > p.Total {
				t.Errorf("%s: %+v after %v", version, p, last)
			}
			last = p.Progress
		}
		mu.Unlock()
	}
	if page := s.metrics(""); !strings.Contains(page, "pif_runs_total") {
		t.Errorf("the server answers %s", page)
	}
	s.stop()
}

// TestCurlReadme runs the requests of the README by curl.
func TestCurlReadme(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip(err)
	}
	text, err := os.ReadFile("../README.md")
	must.NoError(t, err)
	all := blocks(string(text))
	i := slices.IndexFunc(all, func(b block) bool { return strings.HasPrefix(b.text, "$ curl") })
	if i < 0 {
		t.Fatal("the README has no request by curl")
	}
	s := startWeb(t, t.TempDir(), "--store=memory")
	b := all[i]
	b.text = strings.ReplaceAll(b.text, "http://127.0.0.1:8080/mcp", s.url)
	b.text = strings.ReplaceAll(b.text, "http://127.0.0.1:8080", strings.TrimSuffix(s.url, "/mcp"))
	b.console(t, t.TempDir())
}
