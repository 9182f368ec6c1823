package streamable

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type text struct {
	Text string `json:"text"`
}

// told makes a server with one tool, which says whose server it is.
func told(name string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "whose", Description: "say whose server this is"},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, text, error) {
			return nil, text{name}, nil
		})
	return s
}

// principals gives each its own server.
func principals() func(context.Context, string) (*mcp.Server, error) {
	servers := map[string]*mcp.Server{"": told("nobody"), "ann": told("ann"), "bob": told("bob")}
	return func(_ context.Context, p string) (*mcp.Server, error) {
		if s, ok := servers[p]; ok {
			return s, nil
		}
		return nil, errors.New("no such principal")
	}
}

func start(t *testing.T, o Options) string {
	t.Helper()
	if o.Server == nil {
		o.Server = principals()
	}
	h, err := New(o)
	must.NoError(t, err)
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

// bearer adds a token to every request.
type bearer struct{ token string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b.token != "" {
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return http.DefaultTransport.RoundTrip(r)
}

func connect(t *testing.T, url, token, version string) (*mcp.ClientSession, error) {
	t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil)
	session, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer{token}}},
		&mcp.ClientSessionOptions{ProtocolVersion: version})
	if err == nil {
		t.Cleanup(func() { session.Close() })
	}
	return session, err
}

func whose(t *testing.T, s *mcp.ClientSession) string {
	t.Helper()
	res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "whose"})
	must.NoError(t, err)
	m, _ := res.StructuredContent.(map[string]any)
	name, _ := m["text"].(string)
	return name
}

// Both eras, at both paths, on one server.
func TestErasShareOneURL(t *testing.T) {
	url := start(t, Options{})
	for _, path := range []string{Path, "/"} {
		for _, version := range []string{"2026-07-28", "2025-11-25", "2025-03-26"} {
			s, err := connect(t, url+path, "", version)
			if err != nil {
				t.Fatalf("%s, %s: %v", path, version, err)
			}
			if got := whose(t, s); got != "nobody" {
				t.Errorf("%s, %s: answered by %q", path, version, got)
			}
			if got := s.InitializeResult().ProtocolVersion; got != version {
				t.Errorf("%s: asked for %s, got %s", path, version, got)
			}
		}
	}
}

// post sends a raw request and gives its status.
func post(t *testing.T, url string, body io.Reader, change func(*http.Request)) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
	must.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if change != nil {
		change(r)
	}
	res, err := http.DefaultClient.Do(r)
	must.NoError(t, err)
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	return res.StatusCode, string(b)
}

const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`

// What a page in a browser can send is refused, whatever its method; what no
// browser sends, or a trusted page, is not.
func TestWebPagesAreRefused(t *testing.T) {
	url := start(t, Options{Hosts: []string{"pif.example.com"}, Origins: []string{"https://app.example.com"}})
	for _, c := range []struct {
		name string
		set  func(*http.Request)
		want int
	}{
		{"no browser", nil, 200},
		{"a name that resolves here", func(r *http.Request) { r.Host = "evil.example.com" }, 403},
		{"that name with a port", func(r *http.Request) { r.Host = "evil.example.com:80" }, 403},
		{"a name that begins as ours", func(r *http.Request) { r.Host = "pif.example.com.evil.com" }, 403},
		{"no name", func(r *http.Request) { r.Host = "." }, 403},
		{"localhost", func(r *http.Request) { r.Host = "LocalHost:1" }, 200},
		{"an address", func(r *http.Request) { r.Host = "[::1]:99" }, 200},
		{"a name of ours", func(r *http.Request) { r.Host = "pif.example.com" }, 200},
		{"a page's origin", func(r *http.Request) { r.Header.Set("Origin", "https://evil.example.com") }, 403},
		{"a null origin", func(r *http.Request) { r.Header.Set("Origin", "null") }, 403},
		{"two origins", func(r *http.Request) { r.Header["Origin"] = []string{url, "https://evil.example.com"} }, 403},
		{"cross-site without origin", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
		{"same origin", func(r *http.Request) { r.Header.Set("Origin", "http://"+r.URL.Host) }, 200},
		{"a trusted origin", func(r *http.Request) { r.Header.Set("Origin", "https://app.example.com") }, 200},
	} {
		if got, body := post(t, url+Path, strings.NewReader(hello), c.set); got != c.want {
			t.Errorf("%s: status %d, want %d: %s", c.name, got, c.want, body)
		}
	}
	for _, method := range []string{"GET", "DELETE", "OPTIONS"} {
		for _, path := range []string{Path, "/healthz"} {
			if got, _ := post(t, url+path, nil, func(r *http.Request) {
				r.Method = method
				r.Header.Set("Origin", "https://evil.example.com")
			}); got != 403 {
				t.Errorf("%s %s from a page: status %d", method, path, got)
			}
		}
	}
	for _, bad := range []Options{{Hosts: []string{"a:80"}}, {Hosts: []string{"*"}}, {Hosts: []string{""}}, {Origins: []string{"*"}}, {Origins: []string{"https://a/b"}}, {Origins: []string{"a"}}} {
		bad.Server = principals()
		if _, err := New(bad); err == nil {
			t.Errorf("%v and %v were taken", bad.Hosts, bad.Origins)
		}
	}
}

// TestPagesLetIn: the browser of a page that is let in learns that it may send its requests, without a token, and read the
// answers; that of any other page learns nothing.
func TestPagesLetIn(t *testing.T) {
	const page = "https://app.example.com"
	var tokens Tokens
	must.NoError(t, tokens.Load([]byte("ann aaaaaaaaaaaaaaaaaaaaaaaa")))
	url := start(t, Options{Origins: []string{page}, Verify: tokens.Verify}) + Path
	for _, c := range []struct {
		method, origin, token string
		status                int
		allowed               string
	}{
		{"OPTIONS", page, "", 204, page}, {"POST", page, "", 401, page}, {"POST", page, "aaaaaaaaaaaaaaaaaaaaaaaa", 200, page},
		{"OPTIONS", "https://evil.example.com", "", 403, ""}, {"POST", "https://evil.example.com", "aaaaaaaaaaaaaaaaaaaaaaaa", 403, ""},
		{"OPTIONS", "", "", 401, ""}, {"POST", "", "aaaaaaaaaaaaaaaaaaaaaaaa", 200, ""},
	} {
		r, _ := http.NewRequestWithContext(t.Context(), c.method, url, strings.NewReader(hello))
		for name, value := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Origin": c.origin, "Sec-Fetch-Site": "cross-site",
			"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,mcp-param-city",
		} {
			if c.origin != "" || !strings.HasPrefix(name, "Sec-") && name != "Origin" {
				r.Header.Set(name, value)
			}
		}
		if c.token != "" {
			r.Header.Set("Authorization", "Bearer "+c.token)
		}
		res, err := http.DefaultClient.Do(r)
		must.NoError(t, err)
		res.Body.Close()
		got := res.Header
		if res.StatusCode != c.status || got.Get("Access-Control-Allow-Origin") != c.allowed {
			t.Errorf("%+v: status %d, %v", c, res.StatusCode, got)
		}
		if c.allowed != "" && (got.Get("Vary") != "Origin" || !strings.Contains(got.Get("Access-Control-Expose-Headers"), "Mcp-Session-Id")) {
			t.Errorf("%+v: %v", c, got)
		}
		if c.status == 204 && (!strings.Contains(got.Get("Access-Control-Allow-Methods"), "DELETE") || got.Get("Access-Control-Allow-Headers") != "authorization,mcp-param-city") {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// A principal reaches its own server only, with its own sessions.
func TestPrincipals(t *testing.T) {
	var tokens Tokens
	must.NoError(t, tokens.Load([]byte("# who\nann aaaaaaaaaaaaaaaaaaaaaaaa\n\nbob sha256:"+"25fbfd8f3d6fb4c9a3b0d6b6d6b8f6f1a3f0c9d2e7b1a4c5d6e7f8091a2b3c4d"+"\nbob bbbbbbbbbbbbbbbbbbbbbbbb\neve eeeeeeeeeeeeeeeeeeeeeeee\n")))
	url := start(t, Options{Verify: tokens.Verify}) + Path
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		for _, c := range []struct{ token, name string }{{"aaaaaaaaaaaaaaaaaaaaaaaa", "ann"}, {"bbbbbbbbbbbbbbbbbbbbbbbb", "bob"}} {
			s, err := connect(t, url, c.token, version)
			must.NoError(t, err)
			if got := whose(t, s); got != c.name {
				t.Errorf("%s, %s: answered by %q", version, c.name, got)
			}
		}
		if _, err := connect(t, url, "", version); err == nil {
			t.Errorf("%s: came in without a token", version)
		}
	}
	s, err := connect(t, url, "aaaaaaaaaaaaaaaaaaaaaaaa", "2025-11-25")
	must.NoError(t, err)
	call := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"whose","arguments":{}}}`
	for _, c := range []struct {
		name, token string
		want        int
	}{
		{"none", "", 401}, {"unknown", "Bearer cccccccccccccccccccccccc", 401}, {"no bearer", "aaaaaaaaaaaaaaaaaaaaaaaa", 401},
		{"basic", "Basic aaaaaaaaaaaaaaaaaaaaaaaa", 401}, {"a hash", "Bearer sha256:25fbfd8f3d6fb4c9a3b0d6b6d6b8f6f1a3f0c9d2e7b1a4c5d6e7f8091a2b3c4d", 401},
		{"another's session", "Bearer bbbbbbbbbbbbbbbbbbbbbbbb", 403}, {"its own", "Bearer aaaaaaaaaaaaaaaaaaaaaaaa", 200},
		{"no server", "Bearer eeeeeeeeeeeeeeeeeeeeeeee", 503},
	} {
		got, body := post(t, url, strings.NewReader(call), func(r *http.Request) {
			r.Header.Set("Authorization", c.token)
			r.Header.Set(sessionHeader, s.ID())
			r.Header.Set(versionHeader, "2025-11-25")
		})
		if got != c.want && !(c.name == "another's session" && got == 404) {
			t.Errorf("%s: status %d, want %d: %s", c.name, got, c.want, body)
		}
		if c.want != 200 && strings.Contains(body, "ann") {
			t.Errorf("%s: tells of ann: %s", c.name, body)
		}
	}
	// A token that is taken out of the file doesn't work any more, in a session that goes on.
	must.NoError(t, tokens.Load([]byte("bob bbbbbbbbbbbbbbbbbbbbbbbb")))
	if _, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "whose"}); err == nil {
		t.Error("a session goes on with a token that is gone")
	}
}

func TestTokensRefuse(t *testing.T) {
	for _, text := range []string{
		"", "# nothing\n", "ann", "ann short", "ann aaaaaaaaaaaaaaaaaaaaaaaa extra", "ann sha256:12",
		"ann sha256:zz" + strings.Repeat("0", 62), "jwt:ann aaaaaaaaaaaaaaaaaaaaaaaa",
		"ann aaaaaaaaaaaaaaaaaaaaaaaa\nbob aaaaaaaaaaaaaaaaaaaaaaaa",
	} {
		var tokens Tokens
		err := tokens.Load([]byte(text))
		if err == nil {
			t.Errorf("%q was taken", text)
		} else if strings.Contains(err.Error(), "aaaa") || strings.Contains(err.Error(), "short ") {
			t.Errorf("%q: the message tells the token: %v", text, err)
		}
		if _, err := tokens.Verify(t.Context(), "", nil); err == nil {
			t.Errorf("%q: an empty token came in", text)
		}
	}
}

// stalled is a body that begins and never goes on.
type stalled struct{ ctx context.Context }

func (s stalled) Read(p []byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

func TestBodies(t *testing.T) {
	url := start(t, Options{MaxBody: 1000, MaxBodies: 1000}) + Path
	large := hello + strings.Repeat(" ", 1000)
	if got, _ := post(t, url, strings.NewReader(large), nil); got != 413 {
		t.Errorf("a large body: status %d", got)
	}
	chunked := func(r *http.Request) { r.ContentLength = -1 }
	if got, _ := post(t, url, io.MultiReader(strings.NewReader(large)), chunked); got != 413 {
		t.Errorf("a large body of unknown length: status %d", got)
	}
	if got, body := post(t, url, io.MultiReader(strings.NewReader(hello)), chunked); got != 200 {
		t.Errorf("a small body of unknown length: status %d: %s", got, body)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	hasty := start(t, Options{MaxBody: 1000, MaxBodies: 1000, BodyTime: 100 * time.Millisecond}) + Path
	if got, _ := post(t, hasty, io.MultiReader(strings.NewReader(hello[:20]), stalled{ctx}), chunked); got != 408 {
		t.Errorf("a body that doesn't come: status %d", got)
	}
	for size, want := range map[int64]int{500: 408, 1500: 413} {
		known := func(r *http.Request) { r.ContentLength = size }
		if got, _ := post(t, hasty, io.MultiReader(strings.NewReader(hello[:20]), stalled{ctx}), known); got != want {
			t.Errorf("a body of %d bytes that doesn't come: status %d", size, got)
		}
	}
	if got, _ := post(t, url, bytes.NewReader([]byte("{")), nil); got != 400 {
		t.Errorf("a body that is no JSON: status %d", got)
	}
}

func TestSessionsAreBounded(t *testing.T) {
	url := start(t, Options{MaxSessions: 2}) + Path
	for i, want := range []int{200, 200, 503} {
		if got, _ := post(t, url, strings.NewReader(hello), nil); got != want {
			t.Errorf("session %d: status %d, want %d", i, got, want)
		}
	}
	if s, err := connect(t, url, "", "2026-07-28"); err != nil || whose(t, s) != "nobody" {
		t.Error("clients without sessions are refused too", err)
	}
}

// What is under way when the server is told to end is answered.
func TestGracefulStop(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "slow", Description: "wait"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, text, error) {
		close(entered)
		<-leave
		return nil, text{"done"}, nil
	})
	h, err := New(Options{Server: func(context.Context, string) (*mcp.Server, error) { return s, nil }, Grace: time.Minute})
	must.NoError(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(ctx, ln) }()
	session, err := connect(t, "http://"+ln.Addr().String()+Path, "", "2026-07-28")
	must.NoError(t, err)
	answer := make(chan error, 1)
	go func() {
		_, err := session.CallTool(context.WithoutCancel(ctx), &mcp.CallToolParams{Name: "slow"})
		answer <- err
	}()
	wait.For(t, entered, "the call")
	stop()
	close(leave)
	if err := wait.For(t, answer, "the answer"); err != nil {
		t.Errorf("a call under way: %v", err)
	}
	if err := wait.For(t, ended, "the end of serving"); err != nil {
		t.Errorf("serving ended with %v", err)
	}
	// By now its address may be another's.
	if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("it still listens: %v", err)
	}
}

func TestCheck(t *testing.T) {
	addr := func(s string) net.Addr {
		a, err := net.ResolveTCPAddr("tcp", s)
		must.NoError(t, err)
		return a
	}
	var tokens Tokens
	for _, c := range []struct {
		addr            string
		granted, tokens bool
		ok              bool
	}{
		{"127.0.0.1:1", false, false, true}, {"[::1]:1", false, false, true},
		{"127.0.0.1:1", true, false, false}, {"0.0.0.0:1", false, false, false}, {"[::]:1", false, false, false},
		{"192.0.2.1:1", false, false, false}, {"192.0.2.1:1", true, true, true}, {"127.0.0.1:1", true, true, true},
	} {
		var o Options
		if c.tokens {
			o.Verify = tokens.Verify
		}
		if err := o.Check(addr(c.addr), c.granted); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestHealthAndMetrics(t *testing.T) {
	var tokens Tokens
	must.NoError(t, tokens.Load([]byte("ann aaaaaaaaaaaaaaaaaaaaaaaa")))
	url := start(t, Options{Verify: tokens.Verify, Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "m 1\n") })})
	get := func(path, token string) int {
		status, _ := post(t, url+path, nil, func(r *http.Request) {
			r.Method = http.MethodGet
			r.Header.Set("Authorization", "Bearer "+token)
		})
		return status
	}
	for _, c := range []struct {
		path, token string
		want        int
	}{{"/healthz", "", 200}, {"/metrics", "", 401}, {"/metrics", "aaaaaaaaaaaaaaaaaaaaaaaa", 200}, {"/other", "", 404}, {"/mcp/x", "", 404}} {
		if got := get(c.path, c.token); got != c.want {
			t.Errorf("%s with %q: status %d, want %d", c.path, c.token, got, c.want)
		}
	}
}

// TestMetricsInTurn: the page is made for a few at once, and what is slow to read it holds no more than its text.
func TestMetricsInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inside, made := 0, make(chan struct{})
		var mu sync.Mutex
		h, err := New(Options{Server: principals(), Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			mu.Lock()
			inside++
			mu.Unlock()
			<-made
			for range 3 {
				io.WriteString(w, "m 1\n")
			}
		})})
		must.NoError(t, err)
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				w := &writes{nobody: nobody{header: http.Header{}}}
				r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/metrics", nil)
				if h.ServeHTTP(w, r); !slices.Equal(w.all, []string{"m 1\nm 1\nm 1\n"}) {
					t.Errorf("written is %q", w.all)
				}
			})
		}
		synctest.Wait()
		mu.Lock()
		if inside != max(1, h.turns.most-1) {
			t.Errorf("%d are made at once", inside)
		}
		mu.Unlock()
		close(made)
		all.Wait()
	})
}

// writes is what was written, each time.
type writes struct {
	nobody
	all []string
}

func (w *writes) Write(b []byte) (int, error) {
	w.all = append(w.all, string(b))
	return len(b), nil
}

func TestHashed(t *testing.T) {
	hash := "sha256:" + strings.Repeat("0", 64)
	for text, want := range map[string]bool{
		"ann " + hash: true, "# who\n\nann " + hash + "\r\nbob\t" + hash + "\n": true,
		"ann aaaaaaaaaaaaaaaaaaaaaaaa": false, "ann " + hash + "\nbob aaaaaaaaaaaaaaaaaaaaaaaa": false, "ann": false, "ann x " + hash: false,
	} {
		if got := Hashed([]byte(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestOutsideSessions: what belongs to a session and names none is refused with a code
// and in words, and makes no session; what begins one, or needs none, isn't.
func TestOutsideSessions(t *testing.T) {
	url := start(t, Options{Server: principals(), MaxSessions: 1})
	for _, test := range []struct {
		body  string
		code  int // 0: it is answered
		words string
	}{
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"whose"}}`, -32600, "send initialize first"},
		{`{"jsonrpc":"2.0","id":"a","method":"tools/list"}`, -32600, "send initialize first"},
		{`[{"jsonrpc":"2.0","id":1,"method":"tools/list"},{"jsonrpc":"2.0","method":"notifications/initialized"}]`, -32600, "send initialize first"},
		{`{"jsonrpc":"2.0","id":1,"method":"initialize"}`, -32602, `"clientInfo"`},
		{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":5}}`, -32602, `"clientInfo"`},
		{hello, 0, "serverInfo"},
	} {
		status, text := post(t, url, strings.NewReader(test.body), nil)
		if test.code == 0 {
			// The one session that there may be wasn't made before.
			if status != http.StatusOK || !strings.Contains(text, test.words) {
				t.Errorf("%s: %d %s", test.body, status, text)
			}
			continue
		}
		var got struct {
			ID    any
			Error struct {
				Code    int
				Message string
			}
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil || status != http.StatusBadRequest || (got.ID == nil) != (test.body[0] == '[') || got.Error.Code != test.code || !strings.Contains(got.Error.Message, test.words) {
			t.Errorf("%s: %d %s", test.body, status, text)
		}
	}
}

// TestUnserved: what there is nothing to do for is answered as over stdio, and what the SDK serves is left to it.
func TestUnserved(t *testing.T) {
	url := start(t, Options{}) + Path
	send := func(id, body string) (int, string) {
		return post(t, url, strings.NewReader(body), func(r *http.Request) {
			r.Header.Set(sessionHeader, id)
			r.Header.Set(versionHeader, "2025-11-25")
		})
	}
	id := session(t, url, "")
	for _, c := range []struct {
		body   string
		status int
		answer string
	}{
		{`{"jsonrpc":"2.0","id":7,"method":"x/y"}`, 200, `{"error":{"code":-32601,"message":"method not found: \"x/y\""},"id":7,"jsonrpc":"2.0"}`},
		{`{"jsonrpc":"2.0","id":7,"method":"notifications/initialized"}`, 400, `{"error":{"code":-32600,"message":"invalid request: unexpected id for \"notifications/initialized\""},"id":7,"jsonrpc":"2.0"}`},
		{`{"jsonrpc":"2.0","method":"notifications/x"}`, 202, ""},
		{`{"jsonrpc":"2.0","method":"tools/list"}`, 202, ""},
		{`{"jsonrpc":"2.0","method":"notifications/progress"}`, 202, ""},
	} {
		if status, answer := send(id, c.body); status != c.status || answer != c.answer {
			t.Errorf("%s: %d %s", c.body, status, answer)
		}
	}
	for _, c := range []struct {
		body   string
		status int
		answer string
	}{
		{`{"jsonrpc":"2.0","id":7,"method":"x/y","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, 404, `{"error":{"code":-32601,"message":"method not found: \"x/y\""},"id":7,"jsonrpc":"2.0"}`},
		{`{"jsonrpc":"2.0","method":"notifications/x"}`, 202, ""},
	} {
		status, answer := post(t, url, strings.NewReader(c.body), func(r *http.Request) { r.Header.Set(versionHeader, "2026-07-28") })
		if status != c.status || answer != c.answer {
			t.Errorf("without a session, %s: %d %s", c.body, status, answer)
		}
	}
	unknown, note := `{"jsonrpc":"2.0","id":7,"method":"x/y"}`, `{"jsonrpc":"2.0","method":"notifications/x"}`
	const refused = "event: message\ndata: " + `{"error":{"code":-32601,"message":"method not found: \"x/y\""},"id":7,"jsonrpc":"2.0"}` + "\n\n"
	for _, c := range []struct {
		body, session string
		status        int
		answer        string
	}{
		{"[" + unknown + "," + note + `,{"jsonrpc":"2.0","id":8,"method":"ping"}]`, id, 200, refused + "event: message\ndata: " + `{"jsonrpc":"2.0","id":8,"result":{}}` + "\n\n"},
		{"[" + unknown + `,{"jsonrpc":"2.0","method":"notifications/initialized"}]`, id, 200, refused},
		{"[" + unknown + "]", id, 200, refused},
		{"[" + note + "]", id, 202, ""},
		{"[" + unknown + "]", "none", 404, "session not found\n"},
	} {
		status, answer := post(t, url, strings.NewReader(c.body), func(r *http.Request) {
			r.Header.Set(sessionHeader, c.session)
			r.Header.Set(versionHeader, "2025-03-26")
		})
		if status != c.status || answer != c.answer {
			t.Errorf("%s: %d %q", c.body, status, answer)
		}
	}
	if status, _ := send("none", `{"jsonrpc":"2.0","id":7,"method":"x/y"}`); status != 404 {
		t.Errorf("in no session: status %d", status)
	}
	for _, method := range requests {
		if status, answer := send(id, `{"jsonrpc":"2.0","id":7,"method":"`+method+`","params":{"name":"whose","uri":"a:b","level":"info","ref":{"type":"ref/prompt"},"argument":{},"taskId":"a"}}`); strings.HasPrefix(method, "tasks/") != (status == 400) {
			t.Errorf("%s: %d %s", method, status, answer) // tasks are no method of the SDK's
		}
	}
	for _, method := range notifications {
		if status, answer := send(id, `{"jsonrpc":"2.0","method":"`+method+`","params":{"progressToken":1,"progress":1,"requestId":1}}`); status != 202 {
			t.Errorf("%s: %d %s", method, status, answer)
		}
	}
}

// TestUnspokenVersions: a version that there isn't is refused as that, whatever else the
// request lacks.
func TestUnspokenVersions(t *testing.T) {
	url := start(t, Options{}) + Path
	body := `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`
	for _, v := range []string{"nonsense", "zzz", "1", "2026-07-28x", "2099-01-01", "2026-7-28", "2023-01-01"} {
		got, answer := post(t, url, strings.NewReader(body), func(r *http.Request) { r.Header.Set(versionHeader, v) })
		if got != 400 || !strings.Contains(answer, `"requested":"`+v+`"`) || !strings.Contains(answer, `"id":7`) || !strings.Contains(answer, "-32022") {
			t.Errorf("%s: status %d: %s", v, got, answer)
		}
	}
	for _, v := range versions {
		got, answer := post(t, url, strings.NewReader(body), func(r *http.Request) { r.Header.Set(versionHeader, v) })
		if strings.Contains(answer, "-32022") {
			t.Errorf("%s: status %d: %s", v, got, answer)
		}
	}
	// The SDK's list is this one.
	_, answer := post(t, url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`),
		func(r *http.Request) {
			r.Header.Set(versionHeader, "2026-07-28")
			r.Header.Set("Mcp-Method", "server/discover")
		})
	if want := `"supportedVersions":["` + strings.Join(versions, `","`) + `"]`; !strings.Contains(answer, want) {
		t.Errorf("the SDK speaks others: %s", answer)
	}
}

// TestCaseOfKeys: no message passes for one of another method, by a key that only encoding/json takes for one of the
// protocol's.
func TestCaseOfKeys(t *testing.T) {
	url := start(t, Options{}) + Path
	for _, key := range []string{"JsonRPC", "ID", "Method", `\u004dethod`, "paramſ", "Result", "ERROR"} {
		for _, rest := range []string{`"id":7,"method":"tools/list","params":{}`, `"id":7,"result":{}`, `"error":{}`} {
			body := `{"jsonrpc":"2.0",` + rest + `,"` + key + `":"x"}`
			for _, v := range versions {
				status, answer := post(t, url, strings.NewReader(body), func(r *http.Request) { r.Header.Set(versionHeader, v) })
				if status != http.StatusBadRequest || !strings.Contains(answer, "-32600") || !strings.Contains(answer, "case-sensitive") {
					t.Errorf("%s %s: status %d: %s", v, body, status, answer)
				}
			}
		}
	}
	var packed strings.Builder
	z, _ := flate.NewWriter(&packed, flate.BestCompression)
	io.WriteString(z, `{"jsonrpc":"2.0","id":7,"method":"tools/list","Method":"initialize"}`)
	z.Close()
	if body := opened(base64.RawURLEncoding.EncodeToString([]byte(packed.String()))); body != nil {
		t.Errorf("a session is begun by %s", body)
	}
	if modern(httptest.NewRequest(http.MethodPost, Path, nil), []byte(`{"params":{"_META":{"`+versionMember+`":"2026-07-28"}}}`)) {
		t.Error("what isn't _meta names the version")
	}
}

// TestMisrouted: a request about a task is refused where its header names another task, and taken without one.
func TestMisrouted(t *testing.T) {
	url := start(t, Options{}) + Path
	for name, refused := range map[string]bool{"a-1": false, "a-2": true, "": false} {
		status, answer := post(t, url, strings.NewReader(`{"jsonrpc":"2.0","id":7,"method":"tasks/get","params":{"taskId":"a-1","TASKID":"a-2","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`), func(r *http.Request) {
			r.Header.Set(versionHeader, "2026-07-28")
			r.Header.Set("Mcp-Method", "tasks/get")
			if name != "" {
				r.Header.Set("Mcp-Name", name)
			}
		})
		if got := status == http.StatusBadRequest && strings.Contains(answer, "-32020") && strings.Contains(answer, `"id":7`); got != refused {
			t.Errorf("%q: status %d: %s", name, status, answer)
		}
	}
}

// Whatever can't be answered now tells when to come again: that the server isn't ready, that a principal's can't be
// made, that a session doesn't end since the cluster doesn't answer.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	fails := func() error { return io.ErrClosedPipe }
	url := start(t, Options{Ready: fails, Server: func(context.Context, string) (*mcp.Server, error) { return nil, fails() }})
	lost := start(t, Options{Roams: lostEnds{}})
	opening := func() string {
		var packed bytes.Buffer
		z, _ := flate.NewWriter(&packed, flate.BestCompression)
		_, _ = io.WriteString(z, `{"jsonrpc":"2.0","id":1,"method":"initialize"}`)
		must.NoError(t, z.Close())
		return base64.RawURLEncoding.EncodeToString(packed.Bytes())
	}()
	for _, asked := range []struct{ method, url, session string }{
		{http.MethodGet, url + "/readyz", ""}, {http.MethodPost, url + Path, ""}, {http.MethodDelete, lost + Path, "x.y." + opening},
	} {
		r, err := http.NewRequestWithContext(t.Context(), asked.method, asked.url, http.NoBody)
		must.NoError(t, err)
		r.Header.Set(sessionHeader, asked.session)
		res, err := http.DefaultClient.Do(r)
		must.NoError(t, err)
		res.Body.Close()
		if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %s %q", asked.url, res.Status, res.Header)
		}
	}
}

// lostEnds is a cluster that doesn't answer.
type lostEnds struct{}

func (lostEnds) Ended(string) bool                 { return false }
func (lostEnds) End(context.Context, string) error { return io.ErrClosedPipe }

// A large call's arguments come by the header of ours, which no client can set; the SDK makes no Go values of them.
func TestArgumentsAreMoved(t *testing.T) {
	t.Parallel()
	const header = "Mcp-Test-Arguments"
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "f", InputSchema: map[string]any{"type": "object"}}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf("%d %d", len(r.Params.Arguments), len(r.Extra.Header.Get(header)))}}}, nil
	})
	url := start(t, Options{ArgumentsHeader: header, Server: func(ctx context.Context, _ string) (*mcp.Server, error) {
		if have := ctx.Value(requestKey{}).(*request).http.Header[header]; len(have) != 1 || have[0] != "" {
			t.Errorf("others look at the headers %q, which are still to change", have)
		}
		return server, nil
	}})
	for _, n := range []int{1, 50_000} {
		arguments := `{"xs":[` + strings.Repeat("0,", n) + `0]}`
		code, text := post(t, url+Path, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"f","arguments":`+arguments+`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`),
			func(r *http.Request) {
				for key, value := range map[string]string{versionHeader: "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "f", header: "mine"} {
					r.Header.Set(key, value)
				}
			})
		want := fmt.Sprintf(`"%d 0"`, len(arguments))
		if n > 1 {
			want = fmt.Sprintf(`"2 %d"`, len(arguments))
		}
		if code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%d items: %d %s, want %s", n, code, text, want)
		}
	}
}
