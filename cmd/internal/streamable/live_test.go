package streamable

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// blocking is a server with a tool that waits until it is cancelled, and says so.
func blocking() (s *mcp.Server, entered, cancelled chan struct{}) {
	entered, cancelled = make(chan struct{}, 10), make(chan struct{}, 10)
	s = told("x")
	mcp.AddTool(s, &mcp.Tool{Name: "block", Description: "wait"},
		func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, text, error) {
			entered <- struct{}{}
			<-ctx.Done()
			cancelled <- struct{}{}
			return nil, text{"cancelled"}, nil
		})
	return s, entered, cancelled
}

func only(s *mcp.Server) func(context.Context, string) (*mcp.Server, error) {
	return func(context.Context, string) (*mcp.Server, error) { return s, nil }
}

const block = `{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"block","arguments":{}}}`

// session opens one of the older protocol and gives its identity.
func session(t *testing.T, url, token string) string {
	t.Helper()
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(hello))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(r)
	must.NoError(t, err)
	io.Copy(io.Discard, res.Body)
	res.Body.Close()
	id := res.Header.Get(sessionHeader)
	if id == "" {
		t.Fatalf("no session: %s", res.Status)
	}
	post(t, url, strings.NewReader(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), func(r *http.Request) {
		r.Header.Set(sessionHeader, id)
		r.Header.Set("Authorization", "Bearer "+token)
	})
	return id
}

// A client that goes away in the middle of a call cancels it, in a session as well,
// alone and in a batch; a session goes on.
func TestDisconnectCancels(t *testing.T) {
	s, entered, cancelled := blocking()
	url := start(t, Options{Server: only(s)}) + Path
	id := session(t, url, "")
	for _, c := range []struct {
		name, body string
		set        func(*http.Request)
		calls      int
	}{
		{"session", block, func(r *http.Request) { r.Header.Set(sessionHeader, id); r.Header.Set(versionHeader, "2025-11-25") }, 1},
		// The one before may not be over yet: ids of their own.
		{"batch", "[" + strings.Replace(block, `"a"`, `"b"`, 1) + "," + strings.Replace(block, `"a"`, "7", 1) + "]", func(r *http.Request) { r.Header.Set(sessionHeader, id); r.Header.Set(versionHeader, "2025-03-26") }, 2},
		{"modern", strings.Replace(block, `"arguments":{}`, `"arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`, 1),
			func(r *http.Request) {
				r.Header.Set(versionHeader, "2026-07-28")
				r.Header.Set("Mcp-Method", "tools/call")
				r.Header.Set("Mcp-Name", "block")
			}, 1},
	} {
		ctx, hangUp := context.WithCancel(t.Context())
		r, _ := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(c.body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		c.set(r)
		done := make(chan string, 1)
		go func() {
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				done <- ""
				return
			}
			b, _ := io.ReadAll(res.Body)
			done <- string(b)
		}()
		for range c.calls {
			select {
			case <-entered:
			case b := <-done:
				t.Fatalf("%s: answered before it began: %s", c.name, b)
			case <-time.After(wait.Limit(t)):
				t.Fatalf("%s: the call doesn't begin", c.name)
			}
		}
		hangUp()
		for range c.calls {
			wait.For(t, cancelled, c.name+": the end of the call")
		}
	}
	if status, body := post(t, url, strings.NewReader(`{"jsonrpc":"2.0","id":9,"method":"tools/list"}`), func(r *http.Request) { r.Header.Set(sessionHeader, id) }); status != 200 {
		t.Errorf("the session is gone: %d %s", status, body)
	}
}

// TestDeleteCancels: a session that its client ends doesn't wait for its calls, and no other session's call ends.
func TestDeleteCancels(t *testing.T) {
	s, entered, cancelled := blocking()
	url := start(t, Options{Server: only(s)}) + Path
	call := func(ctx context.Context, id string) <-chan int {
		r, _ := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(block))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set(sessionHeader, id)
		status := make(chan int, 1)
		go func() {
			if res, err := http.DefaultClient.Do(r); err == nil {
				res.Body.Close()
				status <- res.StatusCode
			}
		}()
		wait.For(t, entered, "the call")
		return status
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	call(ctx, session(t, url, ""))
	id := session(t, url, "")
	called := call(ctx, id)
	ended := make(chan int, 1)
	go func() {
		r, _ := http.NewRequestWithContext(ctx, http.MethodDelete, url, nil)
		r.Header.Set(sessionHeader, id)
		if res, err := http.DefaultClient.Do(r); err == nil {
			res.Body.Close()
			ended <- res.StatusCode
		}
	}()
	wait.For(t, cancelled, "the end of the call")
	if status := wait.For(t, ended, "the end of the session"); status != http.StatusNoContent {
		t.Errorf("the session's end: status %d", status)
	}
	if status := wait.For(t, called, "the call's answer"); status != http.StatusNotFound {
		t.Errorf("the call's answer: status %d", status)
	}
	select {
	case <-cancelled:
		t.Error("another session's call was ended")
	default:
	}
}

// TestEndedIsAnswered: a request that the server ends has an answer that says so, while it waits for its call and in it: there
// without a time after which to send it again, or a token to renew for that.
func TestEndedIsAnswered(t *testing.T) {
	var request context.Context // of the request
	var hangUp func()
	modern := strings.Replace(block, `"arguments":{}`, `"arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`, 1)
	for name, c := range map[string]struct {
		end  func(h *Handler, tokens *Tokens)
		want int
	}{
		"its token is gone": {func(h *Handler, tokens *Tokens) {
			_ = tokens.Load(nil)
			h.Recheck(request)
		}, http.StatusUnauthorized},
		"its token is over":  {func(*Handler, *Tokens) { time.Sleep(time.Minute) }, http.StatusUnauthorized},
		"it gives way":       {func(*Handler, *Tokens) { End(request) }, http.StatusServiceUnavailable},
		"its client is gone": {func(*Handler, *Tokens) { hangUp() }, clientGone},
	} {
		for _, waits := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				s, leave := told("x"), make(chan struct{})
				mcp.AddTool(s, &mcp.Tool{Name: "block", Description: "wait"},
					func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, text, error) {
						<-leave
						return nil, text{}, nil
					})
				var tokens Tokens
				must.NoError(t, tokens.Load([]byte("ann aaaaaaaaaaaaaaaaaaaaaaaa")))
				h, err := New(Options{
					Server: func(ctx context.Context, _ string) (*mcp.Server, error) {
						request = ctx
						return s, nil
					},
					Verify: func(ctx context.Context, token string, r *http.Request) (*auth.TokenInfo, error) {
						info, err := tokens.Verify(ctx, token, r)
						if err == nil {
							info.Expiration = time.Now().Add(time.Second)
						}
						return info, err
					},
				})
				must.NoError(t, err)
				for range callsInside {
					if waits {
						_, err := h.calls.enter(t.Context(), "ann")
						must.NoError(t, err)
					}
				}
				var ctx context.Context
				ctx, hangUp = context.WithCancel(t.Context())
				defer hangUp()
				r, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost"+Path, strings.NewReader(modern))
				for name, value := range map[string]string{
					"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer aaaaaaaaaaaaaaaaaaaaaaaa",
					versionHeader: "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "block",
				} {
					r.Header.Set(name, value)
				}
				w := httptest.NewRecorder()
				done := make(chan struct{})
				go func() { h.ServeHTTP(w, r); close(done) }()
				synctest.Wait()
				c.end(h, &tokens)
				synctest.Wait()
				close(leave)
				<-done
				want := c.want
				if !waits && want != clientGone {
					want = http.StatusInternalServerError
				}
				if w.Code != want || (w.Header().Get("WWW-Authenticate") != "") != (want == http.StatusUnauthorized) ||
					(w.Header().Get("Retry-After") != "") != (want == http.StatusServiceUnavailable) || strings.Contains(w.Body.String(), "may be done") == waits {
					t.Errorf("%s, waiting %v: status %d, %v: %s", name, waits, w.Code, w.Header(), w.Body)
				}
			})
		}
	}
}

// What a token began ends when it is taken out of the file, streams and calls alike,
// and nobody else's does.
func TestRecheck(t *testing.T) {
	var tokens Tokens
	load := func(text string) {
		t.Helper()
		must.NoError(t, tokens.Load([]byte(text)))
	}
	load("ann aaaaaaaaaaaaaaaaaaaaaaaa\nbob bbbbbbbbbbbbbbbbbbbbbbbb")
	s, entered, cancelled := blocking()
	h, err := New(Options{Server: only(s), Verify: tokens.Verify})
	must.NoError(t, err)
	srv := httptest.NewServer(h)
	defer func() { h.live.endStreams(); srv.Close() }()
	url := srv.URL + Path
	ended := map[string]chan struct{}{}
	for _, token := range []string{"aaaaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbbbbbb"} {
		id := session(t, url, token)
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		r.Header.Set("Accept", "text/event-stream")
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set(sessionHeader, id)
		res, err := http.DefaultClient.Do(r)
		if err != nil || res.StatusCode != 200 {
			t.Fatal(err, res)
		}
		ended[token] = make(chan struct{})
		go func() { io.Copy(io.Discard, res.Body); close(ended[token]) }()
		if token[0] == 'a' {
			call, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(block))
			call.Header = r.Header.Clone()
			call.Header.Set("Accept", "application/json, text/event-stream")
			call.Header.Set("Content-Type", "application/json")
			go func() {
				if res, err := http.DefaultClient.Do(call); err == nil {
					res.Body.Close()
				}
			}()
			wait.For(t, entered, "the call")
		}
	}
	h.Recheck(t.Context()) // nothing changed
	select {
	case <-cancelled:
		t.Fatal("a good token's call was ended")
	default:
	}
	load("bob bbbbbbbbbbbbbbbbbbbbbbbb")
	h.Recheck(t.Context())
	wait.For(t, ended["aaaaaaaaaaaaaaaaaaaaaaaa"], "the end of the stream")
	wait.For(t, cancelled, "the end of the call")
	select {
	case <-ended["bbbbbbbbbbbbbbbbbbbbbbbb"]:
		t.Error("another's stream was ended")
	default:
	}
}

// A token that is taken out of the file once it was verified, and before its request is among those under way, lets
// nobody in.
func TestRecheckMeanwhile(t *testing.T) {
	var tokens Tokens
	must.NoError(t, tokens.Load([]byte("ann aaaaaaaaaaaaaaaaaaaaaaaa\nbob bbbbbbbbbbbbbbbbbbbbbbbb")))
	s, _, _ := blocking()
	var h *Handler
	var once sync.Once
	h, err := New(Options{Server: only(s), Verify: func(ctx context.Context, token string, r *http.Request) (*auth.TokenInfo, error) {
		info, err := tokens.Verify(ctx, token, r)
		once.Do(func() {
			must.NoError(t, tokens.Load([]byte("bob bbbbbbbbbbbbbbbbbbbbbbbb")))
			h.Recheck(ctx)
		})
		return info, err
	}})
	must.NoError(t, err)
	srv := httptest.NewServer(h)
	defer srv.Close()
	for _, c := range []struct {
		token string
		want  int
	}{{"aaaaaaaaaaaaaaaaaaaaaaaa", http.StatusUnauthorized}, {"bbbbbbbbbbbbbbbbbbbbbbbb", http.StatusOK}} {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+Path, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`))
		r.Header.Set("Authorization", "Bearer "+c.token)
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(r)
		must.NoError(t, err)
		if res.Body.Close(); res.StatusCode != c.want {
			t.Errorf("%c gets %s", c.token[0], res.Status)
		}
	}
}

// Streams don't hold up the end, and calls are cancelled before it takes too long.
func TestStopWithStreams(t *testing.T) {
	s, entered, cancelled := blocking()
	h, err := New(Options{Server: only(s), Grace: 2 * time.Second})
	must.NoError(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(ctx, ln) }()
	url := "http://" + ln.Addr().String() + Path
	id := session(t, url, "")
	stream := make(chan struct{})
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set(sessionHeader, id)
	res, err := http.DefaultClient.Do(r)
	must.NoError(t, err)
	go func() { io.Copy(io.Discard, res.Body); close(stream) }()
	call, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(block))
	call.Header = r.Header.Clone()
	call.Header.Set("Accept", "application/json, text/event-stream")
	call.Header.Set("Content-Type", "application/json")
	status := make(chan int, 1)
	go func() {
		if res, err := http.DefaultClient.Do(call); err == nil {
			io.Copy(io.Discard, res.Body)
			res.Body.Close()
			status <- res.StatusCode
		}
	}()
	wait.For(t, entered, "the call")
	stop()
	wait.For(t, stream, "the end of the stream")
	wait.For(t, cancelled, "the end of the call")
	if err := wait.For(t, ended, "the end of serving"); err != nil {
		t.Errorf("serving ended with %v", err)
	}
	if got := wait.For(t, status, "the answer to the call"); got != http.StatusInternalServerError {
		t.Errorf("the call has status %d", got)
	}
}

// A principal that holds all it may have keeps nobody else out.
func TestShares(t *testing.T) {
	var tokens Tokens
	must.NoError(t, tokens.Load([]byte("ann aaaaaaaaaaaaaaaaaaaaaaaa\nbob bbbbbbbbbbbbbbbbbbbbbbbb")))
	s, entered, _ := blocking()
	url := start(t, Options{Server: only(s), Verify: tokens.Verify, MaxRequests: 8, MaxBody: 1 << 10, MaxBodies: 8 << 10}) + Path
	id := session(t, url, "aaaaaaaaaaaaaaaaaaaaaaaa")
	as := func(token string) func(*http.Request) {
		return func(r *http.Request) {
			r.Header.Set("Authorization", "Bearer "+token)
			r.Header.Set(sessionHeader, id)
		}
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	for i := range 2 {
		r, _ := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(strings.Replace(block, `"a"`, fmt.Sprint(i+100), 1)))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		as("aaaaaaaaaaaaaaaaaaaaaaaa")(r)
		go func() {
			if res, err := http.DefaultClient.Do(r); err == nil {
				res.Body.Close()
			}
		}()
		wait.For(t, entered, "the call")
	}
	if got, body := post(t, url, strings.NewReader(hello), as("aaaaaaaaaaaaaaaaaaaaaaaa")); got != 429 {
		t.Errorf("one more than a quarter: status %d: %s", got, body)
	}
	if got, body := post(t, url, strings.NewReader(hello), func(r *http.Request) { r.Header.Set("Authorization", "Bearer bbbbbbbbbbbbbbbbbbbbbbbb") }); got != 200 {
		t.Errorf("another principal: status %d: %s", got, body)
	}
}

// A client that reads nothing doesn't hold its request for ever, and one that reads
// late but reads gets all of it.
func TestSlowReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pace = 300 * time.Millisecond
		left := make(chan error, 1)
		h := paceAnswers(pace, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/late" {
				for range 4 {
					io.WriteString(w, "some")
					_ = http.NewResponseController(w).Flush()
					time.Sleep(2 * pace)
				}
				return
			}
			_, err := io.WriteString(w, strings.Repeat("x", 1<<20))
			left <- err
		}))
		ln := newPipes()
		srv := &http.Server{Handler: h}
		ended := make(chan error, 1)
		go func() { ended <- srv.Serve(ln) }()
		began := time.Now()
		c, err := ln.dial(t.Context(), "", "")
		must.NoError(t, err)
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		if err := <-left; err == nil {
			t.Error("a mebibyte went to a client that doesn't read")
		}
		if took := time.Since(began); took != pace {
			t.Errorf("a client that doesn't read was given up after %v", took)
		}
		c.Close()
		transport := &http.Transport{DialContext: ln.dial}
		res, err := (&http.Client{Transport: transport}).Get("http://localhost/late")
		must.NoError(t, err)
		if b, err := io.ReadAll(res.Body); err != nil || string(b) != "somesomesomesome" {
			t.Errorf("a stream that takes its time: %q, %v", b, err)
		}
		transport.CloseIdleConnections()
		srv.Close()
		<-ended
	})
}

// Headers that are too large are refused, and slow ones are given up.
func TestHeaders(t *testing.T) {
	h, err := New(Options{Server: principals()})
	must.NoError(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(ctx, ln) }()
	defer func() { stop(); wait.For(t, ended, "the end of serving") }()
	c, err := net.Dial("tcp", ln.Addr().String())
	must.NoError(t, err)
	defer c.Close()
	go func() {
		fmt.Fprint(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ")
		for range 200 {
			if _, err := fmt.Fprint(c, strings.Repeat("a", 1<<10)); err != nil {
				return
			}
		}
	}()
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil || !strings.Contains(line, "431") {
		t.Errorf("200 KiB of headers: %q, %v", line, err)
	}
}

// TestTLS: over TLS it speaks HTTP/1.1 alone, and streams stay open without a word.
func TestTLS(t *testing.T) {
	proto := httptest.NewUnstartedServer(nil)
	proto.StartTLS()
	cert, roots := proto.TLS.Certificates[0], x509.NewCertPool()
	roots.AddCert(proto.Certificate())
	proto.Close()
	synctest.Test(t, func(t *testing.T) {
		const pace = 100 * time.Millisecond
		h, err := New(Options{Server: principals(), WriteTime: pace, TLS: &tls.Config{
			Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2", "http/1.1"},
			SessionTicketsDisabled: true, // a pipe has no room for one that nobody reads
		}})
		must.NoError(t, err)
		ln := newPipes()
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- h.Serve(ctx, ln) }()
		transport := &http.Transport{DialContext: ln.dial, TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
		client := &http.Client{Transport: transport}
		const url = "https://127.0.0.1" + Path
		res, err := client.Post(url, "application/json", strings.NewReader(hello))
		if err != nil || res.ProtoMajor != 1 {
			t.Fatalf("%+v, %v", res, err)
		}
		res.Body.Close()
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(hello))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if res, err = client.Do(r); err != nil || res.StatusCode != 200 {
			t.Fatalf("%+v, %v", res, err)
		}
		id := res.Header.Get(sessionHeader)
		res.Body.Close()
		stream, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		stream.Header.Set("Accept", "text/event-stream")
		stream.Header.Set(sessionHeader, id)
		if res, err = client.Do(stream); err != nil || res.StatusCode != 200 {
			t.Fatalf("%+v, %v", res, err)
		}
		read := make(chan error, 1)
		go func() { _, err := io.ReadAll(res.Body); read <- err }()
		time.Sleep(5 * pace)
		synctest.Wait()
		select {
		case err := <-read:
			t.Fatalf("a stream with nothing to tell ended: %v", err)
		default:
		}
		stop()
		<-read
		if err := <-ended; err != nil {
			t.Error(err)
		}
		transport.CloseIdleConnections()
		time.Sleep(time.Hour) // for the session to end
	})
}

// TestSecondStream: a session's newest stream has what there is to tell, and the one before ends; another principal's stays,
// and one stays where the next is refused.
func TestSecondStream(t *testing.T) {
	ann, bob := told("ann"), told("bob")
	var tokens Tokens
	must.NoError(t, tokens.Load([]byte("ann aaaaaaaaaaaaaaaaaaaaaaaa\nbob bbbbbbbbbbbbbbbbbbbbbbbb")))
	annToken, bobToken := strings.Repeat("a", 24), strings.Repeat("b", 24)
	ctx, cancel := context.WithTimeout(t.Context(), wait.Limit(t))
	t.Cleanup(cancel)
	url := start(t, Options{Verify: tokens.Verify, Server: func(_ context.Context, p string) (*mcp.Server, error) {
		return map[string]*mcp.Server{"ann": ann, "bob": bob}[p], nil
	}}) + Path
	open := func(token, id string, want int, headers ...string) io.ReadCloser {
		t.Helper()
		r, _ := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		r.Header.Set("Accept", "application/json, Text/Event-Stream;q=0.5")
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set(sessionHeader, id)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		res, err := http.DefaultClient.Do(r)
		must.NoError(t, err)
		t.Cleanup(func() { res.Body.Close() })
		if res.StatusCode != want {
			t.Fatalf("%s is answered %s", token, res.Status)
		}
		return res.Body
	}
	id := session(t, url, annToken)
	first := open(annToken, id, http.StatusOK)
	bobs := session(t, url, bobToken)
	other := open(bobToken, bobs, http.StatusOK)
	open(bobToken, bobs, http.StatusBadRequest, "Accept", "application/json")
	open(bobToken, bobs, http.StatusBadRequest, "Last-Event-Id", "")
	open(bobToken, bobs, http.StatusBadRequest, versionHeader, "2025-01-01")
	second := open(annToken, id, http.StatusOK)
	if _, err := io.Copy(io.Discard, first); err != nil {
		t.Error(err)
	}
	for body, server := range map[io.Reader]*mcp.Server{second: ann, other: bob} {
		mcp.AddTool(server, &mcp.Tool{Name: "more"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, text, error) {
			return nil, text{}, nil
		})
		lines := bufio.NewScanner(body)
		for lines.Scan() && !strings.Contains(lines.Text(), "tools/list_changed") {
		}
		must.NoError(t, lines.Err())
		if !strings.Contains(lines.Text(), "tools/list_changed") {
			t.Error("the stream ended without what there is to tell")
		}
	}
}
