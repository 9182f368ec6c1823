package streamable

import (
	"bufio"
	"bytes"
	"compress/flate"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// addressed is a connection from an address.
type addressed struct {
	net.Conn
	from net.IP
}

func (a *addressed) RemoteAddr() net.Addr { return &net.TCPAddr{IP: a.from, Port: 1} }

// closed reports whether the other end of a pipe is closed.
func closed(c net.Conn) bool {
	_ = c.SetReadDeadline(time.Now())
	_, err := c.Read(make([]byte, 1))
	timeout, ok := err.(net.Error)
	return !ok || !timeout.Timeout()
}

// A connGroup makes connections of some conns, a moment apart.
type connGroup struct {
	t  *testing.T
	cs *conns
}

func (g connGroup) open(from, principal string, states ...http.ConnState) (theirs net.Conn) {
	ours, theirs := net.Pipe()
	g.t.Cleanup(func() { ours.Close(); theirs.Close() })
	c := &addressed{ours, net.ParseIP(from)}
	ctx := g.cs.context(g.t.Context(), c)
	for _, state := range states {
		if g.cs.follow(c, state); state == http.StateActive && principal != "" {
			one := ctx.Value(connKey{}).(*conn)
			one.admitted, one.principal = true, principal
		}
	}
	time.Sleep(time.Millisecond)
	return theirs
}

const (
	newConn    = http.StateNew
	activeConn = http.StateActive
	idleConn   = http.StateIdle
)

// TestConnsGiveWay: there is room for one more connection, whatever others there are.
func TestConnsGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := connGroup{t, &conns{most: 6, share: 3, unknown: time.Hour}}
		expect := func(when string, all []net.Conn, gone ...int) {
			t.Helper()
			for i, c := range all {
				want := false
				for _, n := range gone {
					want = want || n == i
				}
				if closed(c) != want {
					t.Errorf("%s: connection %d closed: %v", when, i, !want)
				}
			}
		}
		all := []net.Conn{
			g.open("10.0.0.1", "", newConn),
			g.open("10.0.0.1", "", newConn, activeConn, idleConn),
			g.open("10.0.0.1", "", newConn),
		}
		all = append(all, g.open("10.0.0.1", "", newConn))
		expect("one more than an address may have", all, 0)
		for _, ip := range []string{"2001:db8::1", "2001:db8::2", "2001:db8::3"} {
			all = append(all, g.open(ip, "", newConn))
		}
		expect("as many as may be", all, 0)
		all = append(all, g.open("2001:db8::ffff", "", newConn))
		expect("one network is one address", all, 0, 4)
		all = append(all, g.open("10.0.0.3", "ann", newConn, activeConn, idleConn))
		expect("the longest idle one on which nobody was admitted", all, 0, 4, 1)
		for range 5 {
			all = append(all, g.open("10.0.0.4", "ann", newConn, activeConn, idleConn))
		}
		expect("all of these, before one that was let in", all, 0, 1, 2, 3, 4, 5, 6, 7)
		all = append(all, g.open("10.0.0.4", "bob", newConn, activeConn, idleConn))
		expect("the longest idle of who has most", all, 0, 1, 2, 3, 4, 5, 6, 7, 8)
		for range 3 {
			all = append(all, g.open("10.0.0.4", "ann", newConn, activeConn))
		}
		for range 2 {
			all = append(all, g.open("10.0.0.5", "bob", newConn, activeConn))
		}
		idle := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
		all = append(all, g.open("10.0.0.4", "ann", newConn, activeConn))
		expect("none of them idle", all, append(idle, 13, 14)...)
		all = append(all, g.open("10.0.0.6", "", newConn))
		expect("the newest of who has most", all, append(idle, 13, 14, 20)...)
		if n := len(g.cs.all); n != 6 {
			t.Errorf("%d connections are counted", n)
		}
	})
}

// TestUnknownConnsEnd: a connection on which nobody was admitted isn't kept for long.
func TestUnknownConnsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, err := New(Options{Server: principals(), Verify: func() *Tokens {
			var tokens Tokens
			must.NoError(t, tokens.Load([]byte("ann aaaaaaaaaaaaaaaaaaaaaaaa")))
			return &tokens
		}().Verify})
		must.NoError(t, err)
		ln, ended := newPipes(), make(chan error, 1)
		go func() { ended <- h.Serve(t.Context(), ln) }()
		ask := func(path, token string) (*bufio.Reader, net.Conn) {
			c, err := ln.dial(t.Context(), "", "")
			must.NoError(t, err)
			go fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", path, token)
			in := bufio.NewReader(c)
			r, err := http.ReadResponse(in, nil)
			must.NoError(t, err)
			_, _ = io.Copy(io.Discard, r.Body)
			return in, c
		}
		for _, c := range []struct {
			path, token string
			lasts       time.Duration
		}{
			{"/healthz", "", 5 * time.Second},
			{Path, "bbbbbbbbbbbbbbbbbbbbbbbb", 5 * time.Second},
			{Path, "aaaaaaaaaaaaaaaaaaaaaaaa", 2 * time.Minute},
		} {
			in, conn := ask(c.path, c.token)
			began := time.Now()
			if _, err := in.ReadByte(); err != io.EOF {
				t.Errorf("%s: %v", c.path, err)
			}
			if took := time.Since(began); took != c.lasts {
				t.Errorf("%s with %q: an idle connection lasted for %v", c.path, c.token, took)
			}
			conn.Close()
		}
		ln.Close()
		<-ended
	})
}

// TestUnusedConns: connections that nothing was asked on are closed at the end, and no others.
func TestUnusedConns(t *testing.T) {
	g := connGroup{t, &conns{most: 10, share: 10, unknown: time.Hour}}
	for i, c := range []net.Conn{
		g.open("::1", "", newConn),
		g.open("::1", "", newConn, activeConn),
		g.open("::1", "", newConn, activeConn, idleConn),
	} {
		if i == 0 {
			g.cs.closeUnused()
		}
		if closed(c) != (i == 0) {
			t.Errorf("connection %d", i)
		}
	}
}

// TestChunksEndConnections: what came in chunks may have come with a length, too, and been
// taken for two requests by a proxy: nothing more is read on that connection.
func TestChunksEndConnections(t *testing.T) {
	url := start(t, Options{})
	for _, head := range []string{
		"GET /healthz", "POST /mcp", "GET /none",
	} {
		c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		must.NoError(t, err)
		defer c.Close()
		if deadline, ok := t.Deadline(); ok {
			_ = c.SetDeadline(deadline)
		}
		smuggled := "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
		fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n%s", head, 5+len(smuggled), smuggled)
		in := bufio.NewReader(c)
		r, err := http.ReadResponse(in, nil)
		if err != nil || !r.Close {
			t.Fatalf("%s: %+v %v", head, r, err)
		}
		_, _ = io.Copy(io.Discard, r.Body)
		if rest, _ := io.ReadAll(in); len(rest) > 0 {
			t.Errorf("%s: a second answer: %q", head, rest)
		}
	}
}

// pipes is a listener whose connections are pipes in this process: with them what takes
// time can be tested by a clock that nothing but the test moves.
type pipes struct {
	conns chan net.Conn
	ended chan struct{}
	end   func()
}

func newPipes() *pipes {
	p := &pipes{conns: make(chan net.Conn), ended: make(chan struct{})}
	p.end = sync.OnceFunc(func() { close(p.ended) })
	return p
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.end()
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// dial is for [net/http.Transport].
func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.ended:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestShortKeys: a set with an RSA key that is too short is refused, and changes
// nothing.
func TestShortKeys(t *testing.T) {
	set := func(bits int) []byte {
		key, err := rsa.GenerateKey(rand.Reader, bits)
		must.NoError(t, err)
		text, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "r"}}})
		must.NoError(t, err)
		return text
	}
	var keys Keys
	must.NoError(t, keys.Load(set(2048)))
	before := keys.set.Load()
	if err := keys.Load(set(1024)); err == nil || !strings.Contains(err.Error(), "2048 bits at least, this one 1024") {
		t.Error(err)
	}
	if keys.set.Load() != before {
		t.Error("the keys are others")
	}
}

// TestUnsendableTokens: what no client can send is refused, such as a hash that isn't
// marked as it should be: it would be taken for the token itself.
func TestUnsendableTokens(t *testing.T) {
	digits := strings.Repeat("ab", 32)
	for token, ok := range map[string]bool{
		"sha256:" + digits: true, digits: true, "aB3-._~+/" + digits + "==": true,
		"SHA256:" + digits: false, "sha-256:" + digits: false, "sha512:" + digits + digits: false, `"` + digits + `"`: false, "ü" + digits: false,
	} {
		var tokens Tokens
		if err := tokens.Load([]byte("ann " + token + "\n")); (err == nil) != ok || err != nil && strings.Contains(err.Error(), digits) {
			t.Errorf("%s: %v", token, err)
		}
	}
}

// TestLongestIdleSessionEnds: where there is no room for a session the one that was
// longest idle ends, and none that has a stream under way or was used a moment ago.
func TestLongestIdleSessionEnds(t *testing.T) {
	url := start(t, Options{MaxSessions: 3, KeptSession: time.Nanosecond}) + Path
	do := func(method, body, session string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		must.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			r.Header.Set(sessionHeader, session)
		}
		res, err := http.DefaultClient.Do(r)
		must.NoError(t, err)
		t.Cleanup(func() { res.Body.Close() })
		return res
	}
	// done waits for all of an answer: the server has noted it by then.
	done := func(res *http.Response) *http.Response {
		t.Helper()
		must.Succeed(t)(io.Copy(io.Discard, res.Body))
		return res
	}
	begin := func() string {
		t.Helper()
		res := done(do(http.MethodPost, hello, ""))
		if res.StatusCode != http.StatusOK {
			t.Fatalf("no session: %s", res.Status)
		}
		return res.Header.Get(sessionHeader)
	}
	uses := func(session string) int {
		t.Helper()
		return done(do(http.MethodPost, `{"jsonrpc":"2.0","id":9,"method":"ping"}`, session)).StatusCode
	}
	listening := begin()
	if res := do(http.MethodGet, "", listening); res.StatusCode != http.StatusOK {
		t.Fatal(res.Status)
	}
	first, second := begin(), begin()
	if got := uses(first); got != http.StatusOK { // second is the longest idle one now, but for the one that listens
		t.Fatal(got)
	}
	third := begin()
	for _, s := range []struct {
		name, id string
		want     int
	}{{"listening", listening, 200}, {"first", first, 200}, {"second", second, 404}, {"third", third, 200}} {
		if got := uses(s.id); got != s.want {
			t.Errorf("%s: status %d, want %d", s.name, got, s.want)
		}
	}
}

// endings is what servers of a test share.
type endings struct{ ended sync.Map }

func (e *endings) End(_ context.Context, session string) error {
	e.ended.Store(session, true)
	return nil
}

func (e *endings) Ended(session string) bool {
	_, ended := e.ended.Load(session)
	return ended
}

// TestSessionsRoam: a session goes on at another server, and after a restart, under the name that
// the client knows; each principal has its own; a name that says nothing is refused.
func TestSessionsRoam(t *testing.T) {
	t.Parallel()
	shared := &endings{}
	one, two := start(t, Options{Roams: shared})+Path, start(t, Options{Roams: shared})+Path
	do := func(url, method, body, session string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		must.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			r.Header.Set(sessionHeader, session)
			r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
		}
		res, err := http.DefaultClient.Do(r)
		must.NoError(t, err)
		t.Cleanup(func() { res.Body.Close() })
		return res
	}
	session := do(one, http.MethodPost, hello, "").Header.Get(sessionHeader)
	if strings.Count(session, ".") != 2 {
		t.Fatal(session)
	}
	for i, url := range []string{two, one, two, one} {
		res := do(url, http.MethodPost, `{"jsonrpc":"2.0","id":9,"method":"tools/list"}`, session)
		if got := res.Header.Get(sessionHeader); res.StatusCode != http.StatusOK || got != "" && got != session {
			t.Errorf("request %d: %s, %s", i, res.Status, got)
		}
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
	begun, goOn, first := make(chan struct{}), make(chan struct{}), atomic.Bool{}
	release := sync.OnceFunc(func() { close(goOn) })
	defer release()
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			if method == "initialize" && first.CompareAndSwap(false, true) {
				close(begun)
				<-goOn
			}
			return next(ctx, method, r)
		}
	})
	three := start(t, Options{Roams: shared, Server: func(context.Context, string) (*mcp.Server, error) { return server, nil }}) + Path
	other := do(one, http.MethodPost, hello, "").Header.Get(sessionHeader)
	if res := do(three, http.MethodDelete, "", other); res.StatusCode != http.StatusNoContent || len(slices.Collect(server.Sessions())) > 0 {
		t.Errorf("its end where it never was: %s, and it is there", res.Status)
	}
	answered := make(chan int, 2)
	ping := func(session string) {
		answered <- do(three, http.MethodPost, `{"jsonrpc":"2.0","id":9,"method":"ping"}`, session).StatusCode
	}
	go ping(session)
	wait.For(t, begun, "a session that begins slowly")
	go ping(do(one, http.MethodPost, hello, "").Header.Get(sessionHeader))
	status := wait.For(t, answered, "an answer to another session")
	release()
	if later := wait.For(t, answered, "the answer to the slow one"); status != http.StatusOK || later != http.StatusOK {
		t.Error(status, later)
	}
	if res := do(two, http.MethodGet, "", session); res.StatusCode != http.StatusOK {
		t.Errorf("a stream: %s", res.Status)
	}
	if res := do(two, http.MethodDelete, "", session); res.StatusCode != http.StatusNoContent {
		t.Errorf("its end: %s", res.Status)
	}
	at := strings.LastIndex(session, ".") + 1
	var written bytes.Buffer
	z, _ := flate.NewWriter(&written, flate.NoCompression)
	_, err := z.Write(opened(session[at:]))
	must.NoError(t, errors.Join(err, z.Close()))
	for _, ended := range []string{session, session[:at] + base64.RawURLEncoding.EncodeToString(written.Bytes()), session[:at] + "AAAA", other} {
		for _, url := range []string{one, two, three} {
			if res := do(url, http.MethodPost, `{"jsonrpc":"2.0","id":9,"method":"ping"}`, ended); res.StatusCode != http.StatusNotFound {
				t.Errorf("after its end: %s", res.Status)
			}
		}
	}
	at = strings.LastIndex(other, ".") + 1
	packed, err := base64.RawURLEncoding.DecodeString(other[at:])
	must.NoError(t, err)
	more := other[:at] + base64.RawURLEncoding.EncodeToString(append(packed, "more"...))
	for _, name := range []string{strings.Repeat("x", 2048) + other, more, "x", ".", "..", "...", ".y.z", "x.y", "x.y.", "x.y.z", "x.y.AAAA", strings.Replace(session, ".", ".1", 1)[:len(session)-9]} {
		for _, body := range []string{`{"jsonrpc":"2.0","id":9,"method":"ping"}`, hello} {
			if res := do(two, http.MethodPost, body, name); res.StatusCode != http.StatusNotFound {
				t.Errorf("%s: %s", name, res.Status)
			}
		}
	}
}

// TestMalformed: what is no message is told so as JSON-RPC, whatever protocol it is in, and no
// id is given back as another.
func TestMalformed(t *testing.T) {
	url := start(t, Options{}) + Path
	call := func(id string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	}
	newer := func(r *http.Request) {
		r.Header.Set(versionHeader, "2026-07-28")
		r.Header.Set("Mcp-Method", "tools/list")
	}
	for _, c := range []struct {
		body   string
		code   int
		id     string
		change func(*http.Request)
	}{
		{"", -32700, "null", nil},
		{"{nope", -32700, "null", nil},
		{"5", -32600, "null", nil},
		{"{}", -32600, "null", nil},
		{call("1")[:40], -32700, "null", newer},
		{"\xef\xbb\xbf" + call("1"), -32700, "null", newer},
		{call(`"` + "\xff" + `"`), -32700, "null", newer},
		{call("1.5"), -32600, "null", newer},
		{call("null"), -32600, "null", newer},
		{call("true"), -32600, "null", newer},
		{call(`1,"id":2`), -32600, "null", newer},
		{call("9007199254740993"), -32600, "9007199254740993", newer},
		{strings.Repeat("[", 100_000), -32700, "null", newer},
		{"[" + call("1") + "]", -32600, "null", newer},
		{"[" + hello + "]", -32600, "null", func(r *http.Request) { r.Header.Set(versionHeader, "2025-06-18") }},
		{"[]", -32600, "null", func(r *http.Request) { r.Header.Set(versionHeader, "2025-03-26") }},
		{"[" + hello + ",1]", -32600, "null", nil},
	} {
		status, text := post(t, url, strings.NewReader(c.body), c.change)
		var got struct {
			JSONRPC string
			ID      json.RawMessage
			Error   struct {
				Code    int
				Message string
			}
		}
		err := json.Unmarshal([]byte(text), &got)
		if err != nil || status != http.StatusBadRequest || got.JSONRPC != "2.0" || string(got.ID) != c.id || got.Error.Code != c.code || got.Error.Message == "" {
			t.Errorf("%.80s: %d %s", c.body, status, text)
		}
	}
	for _, id := range []string{"1", `"a"`, `""`, "-7", "9007199254740992"} {
		if status, text := post(t, url, strings.NewReader(call(id)), newer); status != http.StatusOK || !strings.Contains(text, `"id":`+id+`,`) {
			t.Errorf("%s: %d %s", id, status, text)
		}
	}
}

// TestLargeBodies: a client that reads nothing until it has sent all it has is told that it
// was too much; one that asks first is told before it sends.
func TestLargeBodies(t *testing.T) {
	const limit = 8 << 20 // beyond what the system keeps of a connection
	url := start(t, Options{MaxBody: limit})
	dial := func() net.Conn {
		c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		must.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		_ = c.SetDeadline(time.Now().Add(wait.Limit(t)))
		return c
	}
	const head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	for _, framing := range []string{"Content-Length: %d\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n%x\r\n"} {
		c := dial()
		must.Succeed(t)(fmt.Fprintf(c, head+framing, 3*limit))
		tail := ""
		if strings.Contains(framing, "chunked") {
			tail = "\r\n0\r\n\r\n"
		}
		if _, err := io.WriteString(c, strings.Repeat(" ", 3*limit)+tail); err != nil {
			t.Errorf("%.20q: sending: %v", framing, err)
		}
		answer(t, c)
	}
	c := dial()
	must.Succeed(t)(fmt.Fprintf(c, head+"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n", 3*limit))
	answer(t, c)
}

// TestUnreadBodies: who is refused, and announces a body that doesn't come, is answered
// all the same, and holds no connection: neither who has no token, nor anybody else.
func TestUnreadBodies(t *testing.T) {
	var tokens Tokens
	must.NoError(t, tokens.Load([]byte("ann aaaaaaaaaaaaaaaaaaaaaaaa")))
	const known = "Authorization: Bearer aaaaaaaaaaaaaaaaaaaaaaaa\r\n"
	for _, c := range []struct {
		line, headers string
		status        int
	}{
		{"POST /mcp", "", 401},
		{"POST /mcp", "Authorization: Bearer b\r\n", 401},
		{"POST /mcp", "Origin: https://evil.example\r\n", 403},
		{"POST /mcp", known + "Content-Type: application/json\r\n", 408},
		{"GET /mcp", known, 408},
		{"DELETE /mcp", known, 408},
		{"POST /none", known, 404},
		{"POST /healthz", "", 405},
		{"GET /healthz", "", 200},
	} {
		for _, body := range []string{"Content-Length: 900\r\n\r\n{", "Content-Length: 100000000\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"} {
			want := c.status
			if want == 408 && strings.Contains(body, "00000") {
				want = 413
			}
			synctest.Test(t, func(t *testing.T) { // so that the times are those of every server
				h, err := New(Options{Server: principals(), Verify: tokens.Verify})
				must.NoError(t, err)
				conn, end := dialed(t, h)
				defer end()
				go fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: localhost\r\n%s%s", c.line, c.headers, body)
				in := bufio.NewReader(conn)
				r, err := http.ReadResponse(in, nil)
				if err != nil || r.StatusCode != want {
					t.Errorf("%s %q %.30q: %+v %v", c.line, c.headers, body, r, err)
					return
				}
				if rest, err := io.ReadAll(in); err != nil || len(rest) > 200 {
					t.Errorf("%s %q %.30q: afterwards %q, %v", c.line, c.headers, body, rest, err)
				}
			})
		}
	}
}

// dialed is a connection to a server of the handler's; with end both are gone.
func dialed(t *testing.T, h http.Handler) (conn net.Conn, end func()) {
	t.Helper()
	ln, srv, ended := newPipes(), &http.Server{Handler: h}, make(chan error, 1)
	go func() { ended <- srv.Serve(ln) }()
	conn, err := ln.dial(t.Context(), "", "")
	must.NoError(t, err)
	return conn, func() { conn.Close(); srv.Close(); <-ended }
}

// TestUnreadBodyOfOneTooMany: whoever has as many requests as may be holds no connection for long with the body of another.
func TestUnreadBodyOfOneTooMany(t *testing.T) {
	var tokens Tokens
	must.NoError(t, tokens.Load([]byte("ann aaaaaaaaaaaaaaaaaaaaaaaa")))
	synctest.Test(t, func(t *testing.T) {
		h, err := New(Options{Server: principals(), Verify: tokens.Verify, MaxRequests: part})
		must.NoError(t, err)
		place, _ := h.budget.enter("ann", func() {})
		defer place.leave()
		conn, end := dialed(t, h)
		defer end()
		began := time.Now()
		go fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer aaaaaaaaaaaaaaaaaaaaaaaa\r\nContent-Length: 900\r\n\r\n{")
		r, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if took := time.Since(began); err != nil || r.StatusCode != http.StatusTooManyRequests || took > time.Second {
			t.Errorf("after %v: %+v, %v", took, r, err)
		}
	})
}

// A stream outlasts the time for the body that came with its request.
func TestStreamAfterBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 60 * time.Millisecond
		h, err := New(Options{Server: principals(), BodyTime: most})
		must.NoError(t, err)
		t.Cleanup(func() { time.Sleep(time.Hour) }) // for the session to end
		ask := func(r string) *http.Response {
			t.Helper()
			conn, end := dialed(t, h)
			t.Cleanup(end)
			go fmt.Fprint(conn, r)
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil || res.StatusCode != 200 {
				t.Fatalf("%+v %v", res, err)
			}
			return res
		}
		const accept = " /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: application/json, text/event-stream\r\n"
		id := ask(fmt.Sprintf("POST%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", accept, len(hello), hello)).Header.Get(sessionHeader)
		stream := ask("GET" + accept + sessionHeader + ": " + id + "\r\nContent-Length: 2\r\n\r\n{}")
		ended := make(chan error, 1)
		go func() {
			_, err := io.Copy(io.Discard, stream.Body)
			ended <- err
		}()
		time.Sleep(10 * most)
		synctest.Wait()
		select {
		case err := <-ended:
			t.Errorf("the stream ended with %v", err)
		default:
		}
	})
}

// answer expects a connection's next answer to be that too much was sent.
func answer(t *testing.T, c net.Conn) {
	t.Helper()
	if r, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || r.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("%+v %v", r, err)
	}
}
