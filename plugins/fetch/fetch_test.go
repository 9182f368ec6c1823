package fetch

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/core/wait"
	"github.com/mcp-pif/mcp-pif/plugins/internal/jsonvalue"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

func TestManifest(t *testing.T) {
	m, err := Plugin().Manifest()
	must.NoError(t, err)
	o, ok := m.Operation("fetch.request")
	if !ok || o.Verb != "get" || o.VerbParam != "method" || !o.Params[0].Main || !o.Params[0].Designates || o.Params[0].Name != "url" {
		t.Errorf("fetch.request is %+v", o)
	}
	for verb, flags := range map[string]string{
		"get": "ro idem", "head": "ro idem", "options": "ro idem", "put": "idem destr", "delete": "idem destr", "post": "destr", "patch": "destr",
	} {
		v, ok := m.Verb(verb)
		words := strings.Fields(strings.Join([]string{
			map[bool]string{true: "ro"}[v.ReadOnly], map[bool]string{true: "idem"}[v.Idempotent], map[bool]string{true: "destr"}[v.Destructive],
		}, " "))
		if !ok || !v.OpenWorld || strings.Join(words, " ") != flags {
			t.Errorf("the verb %s has the flags %+v", verb, v.Flags)
		}
	}
	if len(m.Verbs) != 7 {
		t.Errorf("verbs are %v", m.Verbs)
	}
}

func TestRequest(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Add("X-Two", "a")
		w.Header().Add("X-Two", "b, c")
		w.Header().Add("Set-Cookie", "a=1; Expires=Thu, 01 Jan 2026 00:00:00 GMT")
		w.Header().Add("Set-Cookie", "b=2")
		w.Header().Set("Date", "Thu, 01 Jan 2026 00:00:00 GMT")
		w.Header().Set("X-Latin", "caf\xe9")
		w.Header().Set("Content-Type", "application/problem+json; charset=utf-8")
		w.WriteHeader(418)
		fmt.Fprintf(w, `{"m":%q,"q":%q,"n":[12345678901234567890123,1.50,-0.1e2],"b":%q,"t":%q,"u":%q}`,
			r.Method, r.URL.RawQuery, body, r.Header.Get("Content-Type"), r.UserAgent())
	})
	h := open(t, world{}, s.URL+"/**")
	got := do(t, h, fields{"url": s.URL + "/a?x=1&y=%20", "method": "PoSt", "body": "hällo", "headers": fields{"content-type": "text/plain"}})
	body := `{"m":"POST","q":"x=1&y=%20","n":[12345678901234567890123,1.50,-0.1e2],"b":"hällo","t":"text/plain","u":"mcp-pif/1.0.0"}`
	dec := func(s string) value.Value { d, _ := value.ParseDec(s); return d }
	big, _ := jsonvalue.Read("12345678901234567890123")
	want := valueOf(fields{
		"status": 418, "url": s.URL + "/a?x=1&y=%20", "body": body,
		"headers": fields{
			"x-two": "a, b, c", "set-cookie": "a=1; Expires=Thu, 01 Jan 2026 00:00:00 GMT\nb=2", "date": "Thu, 01 Jan 2026 00:00:00 GMT", "x-latin": "café",
			"content-type": "application/problem+json; charset=utf-8", "content-length": fmt.Sprint(len(body)),
		},
		"json": fields{"m": "POST", "q": "x=1&y=%20", "n": []any{big, dec("1.50"), dec("-0.1e2")}, "b": "hällo", "t": "text/plain", "u": "mcp-pif/1.0.0"},
	})
	if diff := cmp.Diff(shown(want), shown(got)); diff != "" {
		t.Error(diff)
	}
}

// shown writes a value for comparison.
func shown(v value.Value) string {
	s, err := jsonvalue.Write(v)
	if err != nil {
		return err.Error()
	}
	return strings.ReplaceAll(s, ",\"", ",\n\"")
}

func TestMethods(t *testing.T) {
	var last string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { last = r.Method + " " + r.URL.String() })
	h := open(t, world{}, s.URL)
	for _, m := range []string{"get", "HEAD", "Post", "pUT", "patch", "DELETE", "options"} {
		do(t, h, fields{"url": s.URL + "/x", "method": m})
		if last != strings.ToUpper(m)+" /x" {
			t.Errorf("%s arrives as %s", m, last)
		}
	}
	last = ""
	for _, m := range []string{"CONNECT", "trace"} {
		fails(t, h, fields{"url": s.URL, "method": m}, "denied", "never")
	}
	for _, m := range []string{"GETT", "GET ", "GET\r\n", "PRI", "PROPFIND", "ＧＥＴ", "ſ"} {
		fails(t, h, fields{"url": s.URL, "method": m}, "invalid", "method")
	}
	narrow := open(t, world{}, s.URL, func(c *sdk.Capability) { c.Verbs = []string{"get", "put"} })
	for _, m := range []string{"POST", "delete", "HEAD", "OPTIONS"} {
		fails(t, narrow, fields{"url": s.URL, "method": m}, "denied", strings.ToUpper(m))
	}
	if last != "" {
		t.Errorf("the server got %s", last)
	}
	do(t, narrow, fields{"url": s.URL, "method": "put"})
}

func TestBodies(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		w.Header().Set("X-Length", fmt.Sprint(r.ContentLength))
		w.Write(body)
	})
	h := open(t, world{}, s.URL)
	bytes64 := base64.StdEncoding.EncodeToString([]byte{0xff, 0, 0xfe})
	for _, c := range []struct {
		args, want fields
	}{
		{fields{"body": "x"}, fields{"body": "x"}},
		{fields{"body": ""}, fields{"body": ""}},
		{fields{"body": "eA==", "encoding": "base64"}, fields{"body": "x"}},
		{fields{"body": bytes64, "encoding": "base64"}, fields{"body": bytes64, "encoding": "base64"}},
		{fields{"json": fields{"a": []any{1, "\x00\"é", true, value.Unit{}}}}, fields{"json": fields{"a": []any{1, "\x00\"é", true, value.Unit{}}}}},
		{fields{"json": value.Unit{}}, fields{"body": "null", "json": value.Unit{}}},
		{fields{"json": 1, "headers": fields{"Content-Type": "application/merge-patch+json"}}, fields{"json": 1}},
		{fields{"json": 1, "headers": fields{"content-type": "text/plain"}}, fields{"body": "1"}},
		// What isn't exactly JSON is text only.
		{fields{"body": `{"a":1,"a":2}`, "headers": fields{"content-type": "application/json"}}, fields{"body": `{"a":1,"a":2}`}},
		{fields{"body": `"\ud800"`, "headers": fields{"content-type": "application/json"}}, fields{"body": `"\ud800"`}},
		{fields{"body": ``, "headers": fields{"content-type": "application/json"}}, fields{"body": ``}},
	} {
		c.args["url"], c.args["method"] = s.URL, "POST"
		got := do(t, h, c.args)
		for _, key := range []string{"body", "encoding", "json"} {
			want, ok := c.want[key]
			if key == "body" && !ok {
				continue
			}
			if have := member(got, key); ok != (have != nil) || ok && shown(have) != shown(valueOf(want)) {
				t.Errorf("%v: %s is %v, expected %v", c.args, key, have, want)
			}
		}
	}
	if got := do(t, h, fields{"url": s.URL, "method": "POST"}); text(got, "headers", "x-length") != "0" {
		t.Errorf("a POST without a body says its length is %s", text(got, "headers", "x-length"))
	}
	for _, c := range []struct {
		args fields
		word string
	}{
		{fields{"body": "x", "json": 1}, "one"},
		{fields{"body": "x", "encoding": "base64"}, "base64"},
		{fields{"body": "eA", "encoding": "base64"}, "base64"},
		{fields{"body": "eA==\n", "encoding": "hex"}, "encoding"},
		{fields{"body": "x", "method": "GET"}, "no body"},
		{fields{"json": 1, "method": "head"}, "no body"},
		{fields{"json": &value.Pair{First: value.Unit{}, Second: value.Unit{}}}, "pair"},
		{fields{"timeout": 0}, "seconds"},
		{fields{"timeout": -1}, "seconds"},
		{fields{"timeout": 601}, "seconds"},
		{fields{"timeout": "5s"}, "seconds"},
		{fields{"headers": fields{"x": 1}}, "string"},
		{fields{"headers": fields{"x": fields{"value": "y"}}}, "string"},
		{fields{"headers": fields{"x": fields{"secret": "y", "suffix": "z"}}}, "prefix"},
		{fields{"headers": fields{"x": fields{"secret": "y", "prefix": "z\r\nX: y"}}}, "new line"},
		{fields{"headers": fields{"x": fields{"secret": "y", "prefix": "z", "user": "me"}}}, "one of them"},
		{fields{"headers": fields{"x": fields{"secret": "y", "user": "me:you"}}}, "colon"},
		{fields{"cookies": "x"}, "cookies"},
	} {
		c.args["url"] = s.URL
		if c.args["method"] == nil {
			c.args["method"] = "POST"
		}
		fails(t, h, c.args, "invalid", c.word)
	}
}

func TestRequestHeaders(t *testing.T) {
	got := make(chan http.Header, 1)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { got <- r.Header })
	h := open(t, world{}, s.URL)
	do(t, h, fields{"url": s.URL, "headers": fields{
		"authorization": "Bearer x", "X-List": []any{"a", " b "}, "cookie": "c=d", "user-agent": "mine", "x-utf8": "é", "x-none": []any{}, "x-empty": "",
	}})
	want := http.Header{
		"Authorization": {"Bearer x"}, "X-List": {"a", "b"}, "Cookie": {"c=d"}, "User-Agent": {"mine"}, "X-Utf8": {"é"}, "X-Empty": {""}, "Accept-Encoding": {"gzip"},
	}
	if diff := cmp.Diff(want, <-got); diff != "" {
		t.Error(diff)
	}
	// No cookie is kept, no referrer sent.
	do(t, h, fields{"url": s.URL})
	if diff := cmp.Diff(http.Header{"User-Agent": {"mcp-pif/1.0.0"}, "Accept-Encoding": {"gzip"}}, <-got); diff != "" {
		t.Error(diff)
	}
}

func TestCompressed(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	io.WriteString(z, `{"a":1}`)
	z.Close()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/none":
		case "/damaged":
			w.Write(zipped.Bytes()[:zipped.Len()-4])
		case "/garbage":
			w.Write([]byte("not gzip"))
		case "/part":
			w.WriteHeader(206)
			w.Write(zipped.Bytes()[4:])
		case "/other":
			w.Header().Set("Content-Encoding", "br")
			w.Write([]byte{0xff})
		default:
			w.Write(zipped.Bytes())
		}
	})
	h := open(t, world{}, s.URL)
	got := do(t, h, fields{"url": s.URL})
	if text(got, "body") != `{"a":1}` || member(got, "json") == nil || member(member(got, "headers"), "content-encoding") != nil || member(member(got, "headers"), "content-length") != nil {
		t.Errorf("gave %s", shown(got))
	}
	if got := do(t, h, fields{"url": s.URL + "/none"}); text(got, "body") != "" || member(got, "json") != nil {
		t.Errorf("without a body gave %s", shown(got))
	}
	for _, path := range []string{"/part", "/other"} {
		if got := do(t, h, fields{"url": s.URL + path}); text(got, "encoding") != "base64" || text(got, "headers", "content-encoding") == "" {
			t.Errorf("%s gave %s", path, shown(got))
		}
	}
	if got := do(t, h, fields{"url": s.URL, "method": "head"}); text(got, "headers", "content-encoding") != "gzip" {
		t.Errorf("HEAD gave %s", shown(got))
	}
	fails(t, h, fields{"url": s.URL + "/damaged"}, "failed")
	fails(t, h, fields{"url": s.URL + "/garbage"}, "failed")
}

// TestTLS: certificates are checked against the host of the URL, and HTTP/2 is
// spoken where the server does.
func TestTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/headers" {
			for i := range 4 * maxResponseHeaders / 1000 {
				w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("x", 1000))
			}
		}
		io.WriteString(w, r.Proto)
	}))
	s.EnableHTTP2 = true
	s.Config.ErrorLog = quiet
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())

	trusting := open(t, world{roots: roots}, s.URL)
	if got := do(t, trusting, fields{"url": s.URL}); text(got, "body") != "HTTP/2.0" {
		t.Errorf("the protocol is %s", text(got, "body"))
	}
	fails(t, trusting, fields{"url": s.URL + "/headers"}, "failed") // HTTP/2 ends the connection
	fails(t, open(t, world{}, s.URL), fields{"url": s.URL}, "unreachable", "nobody this system trusts")

	// The certificate is for example.com and 127.0.0.1.
	n := &names{answers: map[string][][]string{"example.com": {{"93.184.215.14"}}, "example.org": {{"93.184.215.14"}}}, servers: map[string]string{"93.184.215.14": host(s)}}
	w := n.world()
	w.roots = roots
	if got := do(t, open(t, w, "https://example.com"), fields{"url": "https://example.com/"}); status(got) != 200 {
		t.Errorf("gave %s", shown(got))
	}
	fails(t, open(t, w, "https://example.org"), fields{"url": "https://example.org"}, "unreachable", "another host")

	// What breaks TLS after a request was read is no connection that there never was.
	first := s.TLS.Clone()
	first.NextProtos = nil // HTTP/1
	broken := raw(t, func(c net.Conn) {
		secure := tls.Server(c, first)
		if _, err := http.ReadRequest(bufio.NewReader(secure)); err == nil {
			io.WriteString(c, "HTTP/1.1 500 Internal Server Error\r\n\r\n")
		}
	})
	at := "https" + strings.TrimPrefix(broken, "http")
	h := open(t, world{roots: roots}, at)
	fails(t, h, fields{"url": at}, "unreachable", "agree on no TLS")
	fails(t, h, fields{"url": at, "method": "POST", "body": "x"}, "unknown", "is not known")

	plain := serve(t, func(http.ResponseWriter, *http.Request) {})
	fails(t, open(t, world{}, "https://"+host(plain)), fields{"url": "https://" + host(plain)}, "unreachable", "TLS")
}

func TestUnreachable(t *testing.T) {
	// A connection's own port: nobody listens there, nor can as long as it is open.
	c, err := net.Dial("tcp", host(serve(t, nil)))
	must.NoError(t, err)
	defer c.Close()
	at := "http://" + c.LocalAddr().String()
	fails(t, open(t, world{}, at), fields{"url": at}, "unreachable", "could not be connected to")
	n := &names{}
	h := open(t, n.world(), "https://nowhere.example")
	_, err = h.Invoke(t.Context(), "fetch.request", valueOf(fields{"url": "https://nowhere.example"}))
	failedWith(t, nil, err, "unreachable", "nowhere.example")
	if strings.Contains(err.Error(), "10.9.8.7") {
		t.Errorf("the message names the resolver: %v", err)
	}
}

// TestManyAtOnce: requests don't mix, and each is answered.
func TestManyAtOnce(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s", r.URL.Path, r.Header.Get("X-N"), body)
	})
	h := open(t, world{}, s.URL)
	var all sync.WaitGroup
	for i := range 300 {
		all.Go(func() {
			n := fmt.Sprint(i)
			v, err := h.Invoke(t.Context(), "fetch.request", valueOf(fields{"url": s.URL + "/" + n, "method": "POST", "body": n, "headers": fields{"x-n": n}}))
			if want := "/" + n + " " + n + " " + n; err != nil || text(v, "body") != want {
				t.Errorf("gave %v, %v; expected %s", v, err, want)
			}
		})
	}
	all.Wait()
}

// TestCancel: the end of the context, and of the capability, ends requests, and
// the server sees it.
func TestCancel(t *testing.T) {
	arrived, gone := make(chan struct{}), make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
		}
		arrived <- struct{}{}
		<-r.Context().Done()
		gone <- struct{}{}
	})
	for _, path := range []string{"/head", "/body"} {
		h := open(t, world{}, s.URL)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-arrived; cancel() }()
		v, err := h.Invoke(ctx, "fetch.request", valueOf(fields{"url": s.URL + path}))
		failedWith(t, v, err, "failed", "cancelled")
		wait.For(t, gone, "the server sees the end")

		go func() { <-arrived; h.Close() }()
		v, err = h.Invoke(t.Context(), "fetch.request", valueOf(fields{"url": s.URL + path}))
		failedWith(t, v, err, "denied", "closed")
		wait.For(t, gone, "the server sees the end")
		fails(t, h, fields{"url": s.URL + path}, "denied", "closed")

		h = open(t, world{}, s.URL)
		go func() { <-arrived; h.Close() }()
		v, err = h.Invoke(t.Context(), "fetch.request", valueOf(fields{"url": s.URL + path, "method": "POST"}))
		failedWith(t, v, err, "unknown", "closed", "is not known")
		wait.For(t, gone, "the server sees the end")
	}
	h := open(t, world{}, s.URL)
	ctx, cancel := context.WithDeadlineCause(t.Context(), time.Now().Add(-time.Second), errors.New("x"))
	defer cancel()
	v, err := h.Invoke(ctx, "fetch.request", valueOf(fields{"url": s.URL, "method": "POST"}))
	failedWith(t, v, err, "failed", "it wasn't begun")
}

// TestCancelledOther: net/http gives a connection back before an answer without a body
// is taken; who is cancelled in between takes the next request on it along. That one
// is made again where it may be, and else says that it isn't known.
func TestCancelledOther(t *testing.T) {
	for method, code := range map[string]string{"GET": "", "POST": codeUnknown} {
		arrived, leave := make(chan struct{}), make(chan struct{})
		var asked atomic.Int32
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == "/first":
				w.WriteHeader(http.StatusNoContent)
				return
			case asked.Add(1) == 1:
				close(arrived)
				<-leave // its connection is taken away meanwhile
			}
			io.WriteString(w, "here")
		})
		h := open(t, world{}, s.URL)
		var second error
		var body string
		var kept atomic.Bool
		done := make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), wait.Limit(t))
		defer cancel()
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{PutIdleConn: func(error) {
			kept.Store(true)
			go func() {
				defer close(done)
				v, err := h.Invoke(t.Context(), "fetch.request", valueOf(fields{"url": s.URL + "/second", "method": method}))
				if second = err; err == nil {
					body = text(v, "body")
				}
			}()
			<-arrived
			cancel()
			<-done
		}})
		for !kept.Load() { // on a busy machine a connection isn't always
			_, _ = h.Invoke(ctx, "fetch.request", valueOf(fields{"url": s.URL + "/first"}))
		}
		wait.For(t, done, "the answer to the second")
		close(leave)
		if f, _ := errors.AsType[sdk.Failure](second); f.Code != code || code == "" && body != "here" {
			t.Errorf("%s gave %q, %v", method, body, second)
		}
	}
}

// BenchmarkRequest is an answer of 100 bytes, through the plugin's handler and
// by net/http alone.
func BenchmarkRequest(b *testing.B) {
	body := strings.Repeat("x", 100)
	s := serve(b, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, body) })
	b.Run("plugin", func(b *testing.B) {
		h := open(b, world{}, s.URL)
		args := valueOf(fields{"url": s.URL + "/a/b?c=d"})
		b.ReportAllocs()
		for b.Loop() {
			if v, err := h.Invoke(b.Context(), "fetch.request", args); err != nil || text(v, "body") != body {
				b.Fatal(v, err)
			}
		}
	})
	b.Run("net/http", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			resp, err := s.Client().Get(s.URL + "/a/b?c=d")
			must.NoError(b, err)
			got, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || string(got) != body {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkDecide is what is decided before anything is sent.
func BenchmarkDecide(b *testing.B) {
	k, err := world{}.open(b.Context(), sdk.Capability{Within: "https://*.example.com/v1/*/items/**"})
	must.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		t, err := parseTarget("https://api.example.com/v1/acme%20inc/items/17?expand=all")
		if err == nil {
			err = k.permits("GET", t)
		}
		must.NoError(b, err)
	}
}
