package streamable

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-pif/mcp-pif/cmd/internal/wait"
	"github.com/mcp-pif/mcp-pif/core/must"
)

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
		if _, err := fmt.Fprintf(c, head+framing, 3*limit); err != nil {
			t.Fatal(err)
		}
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
	if _, err := fmt.Fprintf(c, head+"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n", 3*limit); err != nil {
		t.Fatal(err)
	}
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
				ln, srv, ended := newPipes(), &http.Server{Handler: h}, make(chan error, 1)
				go func() { ended <- srv.Serve(ln) }()
				defer func() { srv.Close(); <-ended }()
				conn, err := ln.dial(t.Context(), "", "")
				must.NoError(t, err)
				defer conn.Close()
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

// A stream outlasts the time for the body that came with its request.
func TestStreamAfterBody(t *testing.T) {
	url := start(t, Options{BodyTime: 60 * time.Millisecond})
	id := session(t, url+Path, "")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+Path, strings.NewReader("{}"))
	must.NoError(t, err)
	r.Header.Set(sessionHeader, id)
	r.Header.Set("Accept", "text/event-stream")
	res, err := http.DefaultClient.Do(r)
	if err != nil || res.StatusCode != 200 {
		t.Fatalf("%+v %v", res, err)
	}
	defer res.Body.Close()
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, res.Body)
		ended <- err
	}()
	select {
	case err := <-ended:
		t.Errorf("the stream ended with %v", err)
	case <-time.After(200 * time.Millisecond):
	}
}

// answer expects a connection's next answer to be that too much was sent.
func answer(t *testing.T, c net.Conn) {
	t.Helper()
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || r.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("%+v %v", r, err)
	}
}
