package fetch

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/internal/jsonvalue"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

func atMost(n int64) func(*sdk.Capability) { return func(c *sdk.Capability) { c.Max = n } }

// answering is a server that reads a request and writes what it is given, then
// runs more, which may write on.
func answering(t *testing.T, head string, more func(net.Conn)) string {
	return raw(t, func(c net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
			return
		}
		io.WriteString(c, head)
		if more != nil {
			more(c)
		}
	})
}

// forever writes s until nobody reads it any more.
func forever(s string) func(net.Conn) {
	return func(c net.Conn) {
		for {
			if _, err := io.WriteString(c, s); err != nil {
				return
			}
		}
	}
}

// silent waits until the other side is gone.
func silent(c net.Conn) { io.Copy(io.Discard, c) }

func second() value.Value { d, _ := value.ParseDec("0.2"); return d }

func TestBodyLimit(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var n int
		fmt.Sscan(r.URL.Path[1:], &n)
		if r.URL.RawQuery == "chunked" {
			w.(http.Flusher).Flush()
		}
		w.Write(bytes.Repeat([]byte("x"), n))
	})
	h := open(t, world{}, s.URL, atMost(1000))
	for _, query := range []string{"", "?chunked"} {
		if got := do(t, h, fields{"url": s.URL + "/1000" + query}); len(text(got, "body")) != 1000 {
			t.Errorf("%q: %d bytes came", query, len(text(got, "body")))
		}
		fails(t, h, fields{"url": s.URL + "/1001" + query}, "too_large", "1000 bytes")
		fails(t, h, fields{"url": s.URL + "/1001" + query, "method": "POST"}, "unknown", "answered with status 200", "1000 bytes")
	}
	do(t, h, fields{"url": s.URL + "/1001", "method": "HEAD"})
	fails(t, h, fields{"url": s.URL + "/", "method": "POST", "body": strings.Repeat("x", 1001)}, "too_large", "1001")

	// More than what is read at once, up to the default.
	h = open(t, world{}, s.URL)
	if got := do(t, h, fields{"url": s.URL + "/" + fmt.Sprint(3*smallBody+7) + "?chunked"}); len(text(got, "body")) != 3*smallBody+7 {
		t.Errorf("%d bytes came", len(text(got, "body")))
	}
	fails(t, h, fields{"url": s.URL + "/" + fmt.Sprint(defaultMax+1)}, "too_large")
}

// TestJSONLimit: the value beside the text is left out where it would be too much.
func TestJSONLimit(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/deep":
			io.WriteString(w, strings.Repeat("[", 100_000))
		case "/nested":
			io.WriteString(w, strings.Repeat("[", jsonvalue.Deepest+1)+strings.Repeat("]", jsonvalue.Deepest+1))
		case "/large":
			io.WriteString(w, "["+strings.Repeat("0,", maxJSON/2)+"0]")
		default:
			io.WriteString(w, "["+strings.Repeat("0,", 20)+"0]")
		}
	})
	for _, path := range []string{"/deep", "/nested", "/large"} {
		if got := do(t, open(t, world{}, s.URL), fields{"url": s.URL + path}); member(got, "json") != nil || text(got, "body") == "" {
			t.Errorf("%s has json", path)
		}
	}
	for most, want := range map[int64]bool{43: false, 86: true} {
		if got := do(t, open(t, world{}, s.URL, atMost(most)), fields{"url": s.URL}); (member(got, "json") != nil) != want {
			t.Errorf("with at most %d bytes json is there: %v", most, !want)
		}
	}
}

// Nothing is taken for a body, whatever it says of its length, before there is room for it.
func TestNoMemoryWithoutRoom(t *testing.T) {
	const size = 64 << 20
	refused := errors.New("no room")
	ctx := sdk.WithRoom(t.Context(), func(int64) error { return refused })
	resp := &http.Response{ContentLength: size, Body: io.NopCloser(io.LimitReader(zeros{}, size)), Request: &http.Request{Method: http.MethodGet}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := readBody(ctx, resp, size)
	runtime.ReadMemStats(&after)
	if taken := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, refused) || taken > size/4 {
		t.Errorf("%v, and %d bytes were taken", err, taken)
	}
}

// An answer without room tells of the request that it was made, also where the time is over by then.
func TestNoRoomLate(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat("x", 2*smallBody)) })
	h := open(t, world{}, s.URL)
	for method, code := range map[string]string{"POST": "unknown", "GET": "failed"} {
		ctx, cancel := context.WithCancel(t.Context())
		ctx = sdk.WithRoom(ctx, func(int64) error {
			cancel()
			return sdk.Fail("failed", "there was no room")
		})
		v, err := h.Invoke(ctx, "fetch.request", valueOf(fields{"url": s.URL, "method": method}))
		failedWith(t, v, err, code, "status 200", "no room")
	}
}

// TestEndless: what has no end is cut off by bytes or by time, and the server is
// left alone then.
func TestEndless(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	io.Copy(z, io.LimitReader(zeros{}, 8<<20))
	z.Close()
	var empty bytes.Buffer
	gzip.NewWriter(&empty).Close()
	const ok = "HTTP/1.1 200 OK\r\n"
	for _, c := range []struct {
		name, code string
		head       string
		more       func(net.Conn)
	}{
		{"body without length", "too_large", ok + "\r\n", forever(strings.Repeat("x", 1000))},
		{"chunks", "too_large", ok + "Transfer-Encoding: chunked\r\n\r\n", forever("3e8\r\n" + strings.Repeat("x", 1000) + "\r\n")},
		{"chunk extensions", "failed", ok + "Transfer-Encoding: chunked\r\n\r\n1", forever(";" + strings.Repeat("x", 1000))},
		{"claimed length", "too_large", ok + "Content-Length: 99999999999\r\n\r\n", silent},
		{"gzip bomb", "too_large", ok + "Content-Encoding: gzip\r\nContent-Length: " + fmt.Sprint(bomb.Len()) + "\r\n\r\n" + bomb.String(), nil},
		{"gzip of nothing, again and again", "too_large", ok + "Content-Encoding: gzip\r\n\r\n", forever(empty.String())},
		{"header line", "too_large", ok + "X: ", forever(strings.Repeat("x", 1000))},
		{"200 KiB of a header", "too_large", ok + "X: " + strings.Repeat("x", 200<<10) + "\r\nContent-Length: 0\r\n\r\n", nil},
		{"headers", "too_large", ok, forever("X: " + strings.Repeat("x", 1000) + "\r\n")},
		{"status line", "too_large", "HTTP/1.1 200 ", forever(strings.Repeat("x", 1000))},
		{"interim answers", "too_large", "", forever("HTTP/1.1 103 Early Hints\r\n\r\n")},
		{"continue", "too_large", "", forever("HTTP/1.1 100 Continue\r\n\r\n")},
		{"trailers", "failed", ok + "Transfer-Encoding: chunked\r\n\r\n0\r\n", forever("X: " + strings.Repeat("x", 1000) + "\r\n")},
		{"no answer", "timeout", "", silent},
		{"half an answer", "timeout", ok + "X: y", silent},
		{"half a body", "timeout", ok + "Content-Length: 10\r\n\r\nx", silent},
		{"half a chunk", "timeout", ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nx", silent},
		{"half of gzip", "timeout", ok + "Content-Encoding: gzip\r\nContent-Length: 1000\r\n\r\n\x1f\x8b\x08", silent},
		{"cut body", "failed", ok + "Content-Length: 10\r\n\r\nx", nil},
		{"cut chunk", "failed", ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nx", nil},
		{"cut header", "failed", ok + "X: y", nil},
		{"nothing", "failed", "", nil},
		{"no HTTP", "failed", "SSH-2.0-OpenSSH_9.6\r\n\r\n", nil},
		{"two lengths", "failed", ok + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx", nil},
		{"negative length", "failed", ok + "Content-Length: -1\r\n\r\n", nil},
		{"unknown transfer encoding", "failed", ok + "Transfer-Encoding: gzip\r\n\r\n", nil},
		{"another protocol", "failed", "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", silent},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := answering(t, c.head, c.more)
			args := fields{"url": at, "timeout": 600}
			if c.code == "timeout" {
				args["timeout"] = second()
			}
			fails(t, open(t, world{}, at, atMost(100_000)), args, c.code)
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestUnknownOutcome: where a request that changes something got no answer, the
// failure says that it may have been done.
func TestUnknownOutcome(t *testing.T) {
	at := answering(t, "", nil)
	h := open(t, world{}, at)
	fails(t, h, fields{"url": at, "method": "POST", "body": "x"}, "unknown", "not known")
	_, err := h.Invoke(t.Context(), "fetch.request", valueOf(fields{"url": at}))
	failedWith(t, nil, err, "failed")
	if strings.Contains(err.Error(), "not known") {
		t.Errorf("a GET says %v", err)
	}
	for answer, words := range map[string]string{
		"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 200<<10) + "\r\n\r\n": "headers", strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 100): "",
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n": "another protocol",
	} {
		at := answering(t, answer, nil)
		fails(t, open(t, world{}, at), fields{"url": at, "method": "POST", "body": "x"}, "unknown", words)
	}
	var reached atomic.Int32
	at = answering(t, "", func(c net.Conn) { reached.Add(1); silent(c) })
	h = open(t, world{}, at)
	for method, again := range map[string]bool{"GET": true, "POST": false} {
		before := reached.Load()
		// As much time as it takes for the request to be made.
		for tenths := 2; reached.Load() == before; tenths *= 2 {
			timeout, _ := value.ParseDec(fmt.Sprintf("%d.%d", tenths/10, tenths%10))
			_, err = h.Invoke(t.Context(), "fetch.request", valueOf(fields{"url": at, "method": method, "timeout": value.Value(timeout)}))
		}
		failedWith(t, nil, err, "timeout")
		if f, _ := errors.AsType[sdk.Failure](err); f.Retryable != again {
			t.Errorf("after the timeout of a %s it can be tried again: %v", method, !again)
		}
	}
}

// TestNothingSent: where no connection was made in time nothing is unknown.
func TestNothingSent(t *testing.T) {
	for name, connect := range map[string]func(context.Context, netip.AddrPort) (net.Conn, error){
		"silent": func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() },
		"given up": func(context.Context, netip.AddrPort) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
		},
	} {
		h := open(t, world{connect: connect}, "http://127.0.0.1:9/**")
		_, err := h.Invoke(t.Context(), "fetch.request", valueOf(fields{"url": "http://127.0.0.1:9/", "method": "POST", "body": "x", "timeout": second()}))
		failedWith(t, nil, err, "unreachable", "could not be connected to")
		if f, _ := errors.AsType[sdk.Failure](err); !f.Retryable {
			t.Errorf("%s: it may be tried again", name)
		}
	}
}

// TestTrickle: a server that sends a byte now and then is cut off by the time of
// the whole.
func TestTrickle(t *testing.T) {
	var began atomic.Bool
	at := answering(t, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", func(c net.Conn) {
		began.Store(true)
		gone := make(chan struct{})
		go func() { silent(c); close(gone) }()
		for {
			select {
			case <-gone:
				return
			case <-time.After(time.Millisecond):
				if _, err := io.WriteString(c, "x"); err != nil {
					return
				}
			}
		}
	})
	// As much time as it takes for the answer to begin.
	for timeout := 50 * time.Millisecond; !began.Load(); timeout *= 2 {
		fails(t, open(t, world{}, at, func(c *sdk.Capability) { c.Timeout = timeout }), fields{"url": at, "timeout": 600}, "timeout")
	}
}

// TestAtOnce: where as many requests run as may, another one waits within its
// time.
func TestAtOnce(t *testing.T) {
	var reached atomic.Int32
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
	})
	k, err := world{}.open(t.Context(), sdk.Capability{Within: s.URL})
	must.NoError(t, err)
	defer k.Close()
	run := func(timeout value.Value) error {
		_, err := perform(t.Context(), k, arguments{URL: s.URL + "/", Timeout: timeout})
		return err
	}
	must.NoError(t, k.running.Acquire(t.Context(), atOnce))
	failedWith(t, nil, run(second()), "failed", "it wasn't begun")
	if reached.Load() > 0 {
		t.Error("a request was made out of turn")
	}
	go k.running.Release(1)
	if err := run(nil); err != nil {
		t.Error(err)
	}
	if !k.running.TryAcquire(1) || k.running.TryAcquire(1) {
		t.Error("the turn wasn't given back, or more")
	}
}

// TestLatin: a body in a declared ISO-8859-1 is text, where it is one.
func TestLatin(t *testing.T) {
	if compressed := bodyFields("gr\xf6\xdfe", http.Header{"Content-Type": {"text/html; charset=latin1"}, "Content-Encoding": {"br"}}, 100); len(compressed) == 1 {
		t.Error(compressed)
	}
	for _, c := range []struct{ kind, body, want string }{
		{"text/html; charset=ISO-8859-1", "gr\xf6\xdfe \x80", "größe €"},
		{`text/plain;charset="windows-1252"`, "gr\xf6\xdfe na\xefve", "größe naïve"},
		{"text/html; charset=latin1", "größe", "größe"},
		{"text/html; charset=latin1", strings.Repeat("\x80", 9), ""},
		{"text/html; charset=utf-8", "gr\xf6\xdfe", ""},
		{"text/html; charset", "gr\xf6\xdfe", ""},
		{"image/png", "gr\xf6\xdfe", ""},
	} {
		fields := bodyFields(c.body, http.Header{"Content-Type": {c.kind}}, 100)
		if len(fields) == 1 != (c.want != "") || c.want != "" && fields[0].Value != value.Value(value.Str(c.want)) {
			t.Errorf("%s, %q: %v", c.kind, c.body, fields)
		}
	}
}
