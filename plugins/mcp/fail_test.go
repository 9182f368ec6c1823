//go:build linux

package mcp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/core/wait"
	"github.com/mcp-pif/mcp-pif/plugins/mcp/mcptest"
	"github.com/mcp-pif/mcp-pif/plugins/mcplock"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// A person reads in plain words why there is no answer; only what the server may have said is quoted.
func TestSaid(t *testing.T) {
	for want, err := range map[string]error{
		"it gave no answer in time":          fmt.Errorf("calling %q: %w", "initialize", context.DeadlineExceeded),
		"it ended before it answered":        fmt.Errorf("calling %q: %w", "tools/call", io.EOF),
		"HTTP status 307":                    fmt.Errorf("calling: %w", &statusError{status: 307}),
		"the answer is against the protocol": errAnswer,
		`JSON-RPC error -32000, "a token?"`:  fmt.Errorf("calling: %w", &jsonrpc.Error{Code: -32000, Message: "a token?"}),
		`"unsupported \x1b"`:                 errors.New("unsupported \x1b"),
	} {
		u := &upstream{settings: Settings{Server: &mcplock.Server{}}}
		if got := u.said(err); got != want {
			t.Errorf("%v is said as %s, not %s", err, got, want)
		}
		u.settings.Server.URL = "https://mcp.example.com/" // far away a connection ends, not a process
		want = strings.Replace(want, "it ended", "the connection ended", 1)
		if got := u.said(err); got != want {
			t.Errorf("%v of a URL is said as %s, not %s", err, got, want)
		}
	}
}

// A failure's message is ours; the server's words are in its value.
func TestFailures(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fails("fail", `{}`, "failed", "the server says that it failed")
		if got := shown(t, f.Value); got != `{"text":"it failed: \u001b[31m`+mcptest.Canary+`"}` {
			t.Errorf("the failure's value is %s", got)
		}
		for code, want := range map[int]string{-32602: "invalid", -32603: "failed", -32000: "failed", -32003: "failed", -32004: "failed", 7: "failed"} {
			f := w.fails("error", fmt.Sprintf(`{"code":%d}`, code), want, fmt.Sprintf("error %d", code))
			if got, want := shown(t, f.Value), fmt.Sprintf(`{"code":%d,"text":"%s"}`, code, mcptest.Canary); got != want {
				t.Errorf("the failure's value is %s, want %s", got, want)
			}
			if want == "invalid" && !strings.HasPrefix(f.Hint, `Write {"srv.error":{}}.`) {
				t.Errorf("the hint has no right call: %s", f.Hint)
			}
		}
		if w.http != nil && w.script.Era == "" && w.http.Made() != 1 {
			t.Errorf("%d sessions were made", w.http.Made())
		}
		w.fails("error", `{"code":-32601}`, "not_found", "the server has it no longer")
		w.fails("large", `{"bytes":1048576}`, "unknown", "more than the 1048576 bytes")
		w.gives("large", `{"bytes":3}`, `{"text":"xxx"}`) // the session goes on
		if w.http != nil {
			w.http.Plain = true
			w.fails("large", `{"bytes":1048576}`, "unknown", "more than the 1048576 bytes")
			w.gives("large", `{"bytes":3}`, `{"text":"xxx"}`)
			w.http.Plain = false
		}
		if _, err := w.Invoke(w.context(), "srv.echo", argument("n", string(rune(0)))); err != nil {
			t.Errorf("a text with a zero: %v", err)
		}
		for _, method := range []string{"sampling/createMessage", "roots/list", "elicitation/create"} {
			args := fmt.Sprintf(`{"method":%q}`, method)
			if w.script.Era == mcptest.Stateless {
				w.fails("ask", args, "failed", "the server asks for input")
			} else {
				w.gives("ask", args, `{"text":"the client said "}`) // nothing: it refuses
			}
		}
	})
}

// What isn't answered is unknown, unless it was accepted as read-only: then it is asked
// once more on a new session (8 A 7).
func TestLost(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.gives("note", `{"line":"0"}`, `{"text":"noted"}`)
		w.set(func(s *mcptest.Script) { s.DieAt = "acted" })
		w.fails("note", `{"line":"1"}`, "unknown", "the connection to the server was lost; nobody knows whether it was done")
		w.fails("look", `{"line":"2"}`, "unknown", "the connection to the server was lost")
		w.set(func(s *mcptest.Script) { s.DieAt = "" })
		w.gives("note", `{"line":"3"}`, `{"text":"noted"}`)
		if got := strings.Join(w.lines(), ","); got != "note 0,note 1,look 2,look 2,note 3" {
			t.Errorf("the server did %s", got)
		}
		w.set(func(s *mcptest.Script) { s.DieAt = "tools/call" })
		w.fails("note", `{"line":"4"}`, "unknown", "nobody knows")
		if got := w.lines(); len(got) != 5 {
			t.Errorf("the server did %s", got)
		}
	})
}

// A call that is out of time or cancelled is told to the server, and unknown; what it answers
// later is for nobody (8 A 12).
func TestCancelled(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.gives("log", `{}`, `{"text":"logged"}`)
		for i, cause := range []error{context.Canceled, context.DeadlineExceeded} { // as a request of the host's ends
			ctx, end := context.WithCancelCause(w.context())
			go func() {
				for len(w.lines()) < 2+2*i && ctx.Err() == nil {
					time.Sleep(time.Millisecond)
				}
				end(cause)
			}()
			v, err := w.call(ctx, "wait", `{}`)
			w.failed(v, err, "unknown", "nobody knows whether it was done")
			end(nil)
			w.until("the server hears of it", func() bool { return len(w.lines()) == 3+2*i })
		}
		w.gives("log", `{}`, `{"text":"logged"}`) // late answers are for nobody
	})
}

// Before anything is sent nothing is unknown.
func TestNotBegun(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.set(func(s *mcptest.Script) { s.DieAt = "tools/list" })
		w.fails("note", `{}`, "denied", "can't be read")
		begin := "initialize"
		if w.script.Era == mcptest.Stateless {
			begin = "server/discover"
		}
		w.restart()
		w.set(func(s *mcptest.Script) { s.DieAt = begin })
		if f := w.fails("note", `{}`, "unreachable", "nothing was asked of it"); !f.Retryable {
			t.Errorf("%v may be tried again", f)
		}
		if got := w.lines(); got[0] != "" {
			t.Errorf("the server did %s", got)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		v, err := w.call(ctx, "note", `{}`)
		w.failed(v, err, "failed", "it wasn't begun")
		w.set(func(s *mcptest.Script) { s.DieAt = "" })
		w.until("it is tried again", func() bool {
			_, err := w.call(w.context(), "note", `{}`)
			return err == nil
		})
	})
}

// The statuses of HTTP. No text of theirs goes further, not of a 401 that looks like an answer; after one from 500 on a tool
// that was accepted as read-only is asked once more, on a new session.
func TestStatuses(t *testing.T) {
	t.Parallel()
	for _, era := range []string{"", mcptest.Stateless} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, mcptest.Script{Era: era}, true, nil)
			for status, want := range map[int]string{302: "unknown", 304: "unknown", 400: "failed", 404: "failed", 401: "failed", 403: "failed", 429: "failed", 500: "unknown", 503: "unknown"} {
				f := w.fails("status", fmt.Sprintf(`{"status":%d}`, status), want, fmt.Sprintf("HTTP status %d", status))
				if isLogin := status == 401 || status == 403; isLogin != strings.Contains(f.Hint, "mcp-pif mcp login srv") {
					t.Errorf("%d: the hint is %q", status, f.Hint)
				}
				if (f.Value != nil) != (status == 429) || f.Value != nil && shown(t, f.Value) != `{"retry_after":7}` {
					t.Errorf("%d has the value %v", status, f.Value)
				}
			}
			if got := len(w.lines()); got != 9 {
				t.Errorf("the server was asked %d times for 9 statuses", got)
			}
			w.gives("log", `{}`, `{"text":"logged"}`)
			w = newWorld(t, mcptest.Script{Era: era}, true, func(s *Settings) {
				yes := true
				s.Server.Tools["status"].Accepted = &mcplock.Hints{ReadOnly: &yes}
			})
			w.fails("status", `{"status":503}`, "unknown", "HTTP status 503; it may be asked again")
			if asked, made := len(w.lines()), w.http.Made(); asked != 2 || era == "" && made != 2 {
				t.Errorf("the server was asked %d times in %d sessions", asked, made)
			}
		})
	}
}

// A server that forgot the session gets another before the next call, however it says so.
func TestSessionEnded(t *testing.T) {
	t.Parallel()
	for _, says := range []struct {
		status int
		body   string
	}{
		{},
		{404, `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"` + mcptest.Canary + `"}}`},
		{400, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"` + mcptest.Canary + `"}}`},
		{401, `{"error":"Unauthorized: Session not found"}`},
		{400, `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"` + mcptest.Canary + `"}}`},
	} {
		w := newWorld(t, mcptest.Script{}, true, nil)
		w.http.Unknown, w.http.UnknownBody = says.status, says.body
		w.gives("log", `{}`, `{"text":"logged"}`)
		w.http.Forget()
		w.fails("note", `{}`, "failed", fmt.Sprint("HTTP status ", cmp.Or(says.status, 404)))
		w.gives("note", `{}`, `{"text":"noted"}`)
		w.http.Forget()
		w.gives("look", `{}`, `{"text":"noted"}`)
	}
}

// Headers go to the server and nowhere else, and answers of another type aren't read.
func TestHTTPRefused(t *testing.T) {
	t.Parallel()
	stolen := make(chan string, 100)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { stolen <- r.Header.Get("Authorization") }))
	defer elsewhere.Close()
	w := newWorld(t, mcptest.Script{}, true, func(s *Settings) { s.Headers = map[string]string{"Authorization": "Bearer s3cret"} })
	w.http.Header, w.http.Value = "Authorization", "Bearer s3cret"
	w.gives("log", `{}`, `{"text":"logged"}`)
	if got := w.http.Versions(); got[len(got)-1] != "2025-11-25" {
		t.Errorf("the last request names the version %q", got)
	}
	other := newWorld(t, mcptest.Script{}, true, func(s *Settings) { s.Headers = map[string]string{"Authorization": "Bearer s3cret"} })
	other.http.Redirect = elsewhere.URL
	other.fails("log", `{}`, "failed", "HTTP status 307")
	select {
	case got := <-stolen:
		t.Errorf("a redirect took the request elsewhere, with %q", got)
	default:
	}
	wrong := newWorld(t, mcptest.Script{}, true, nil)
	wrong.http.ContentType = "text/html"
	wrong.fails("log", `{}`, "unreachable", "")
	locked := newWorld(t, mcptest.Script{}, true, nil)
	locked.http.Header, locked.http.Value = "Authorization", "x"
	if f := locked.fails("log", `{}`, "failed", "HTTP status 401"); !strings.Contains(f.Hint, "mcp login srv") {
		t.Errorf("the hint is %q", f.Hint)
	}
}

// Progress is passed on in numbers; what a server says with it isn't.
func TestProgress(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		heard := make(chan string, 1000)
		ctx := sdk.WithProgress(w.context(), func(s string) { heard <- s })
		must.Succeed(t)(w.call(ctx, "progress", `{"times":100}`))
		for i := range 100 {
			if got, want := wait.For(t, heard, "progress"), fmt.Sprintf("srv.progress %d/100", i+1); got != want {
				t.Fatalf("the progress is %q, want %q", got, want)
			}
		}
	})
}

// What comes before an answer takes no room, however much it is.
func TestProgressTakesNoRoom(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		ctx := sdk.WithRoom(w.context(), func(bytes int64) error { return fmt.Errorf("asked for %d bytes", bytes) })
		if _, err := w.call(ctx, "progress", `{"times":2000}`); err != nil {
			t.Error(err)
		}
	})
}

// What isn't the answer to a call is dropped where there is no room for it, and the call goes on.
func TestNoRoomForNotice(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		ctx := sdk.WithRoom(w.context(), func(bytes int64) error { return sdk.Fail("failed", "there was no room for %d bytes", bytes) })
		if v, err := w.call(ctx, "log", `{"bytes":300000}`); err != nil || shown(t, v) != `{"text":"logged"}` {
			t.Errorf("after a notice without room: %v, %v", v, err)
		}
		v, err := w.call(ctx, "large", `{"bytes":300000}`)
		w.failed(v, err, "unknown", "the server answered, and there was no room")
		// Nor is it another's.
		one, _ := jsonrpc.MakeID(1.0)
		two, _ := jsonrpc.MakeID(2.0)
		e := exchanges{byID: map[jsonrpc.ID]pending{one: {exchange: &exchange{}, ctx: ctx}}}
		for id, asks := range map[jsonrpc.ID]bool{one: true, {}: true, two: false} {
			if err := e.room(id, 1<<20); (err != nil) != asks {
				t.Errorf("the room for %v: %v", id.Raw(), err)
			}
		}
	})
}

// What a server logs, and writes to its standard error, is in the operator's log in
// quotes, and the latter is kept.
func TestLogged(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		noise := mcptest.Canary + "\x1b]0;title"
		w.set(func(s *mcptest.Script) { s.Noise = noise })
		w.gives("log", `{}`, `{"text":"logged"}`)
		w.until("the log has it", func() bool {
			return strings.Contains(w.log.String(), `it logs: "`+mcptest.Canary+`\x1b[31m\nline"`) &&
				(w.http != nil || strings.Contains(w.log.String(), `it wrote: "`+mcptest.Canary+`\x1b]0;title"`))
		})
		if strings.ContainsRune(w.log.String(), '\x1b') {
			t.Error("the log has a control character")
		}
	})
}

// Values that a server was given are hidden in all that it says to the operator, wherever a line is cut.
func TestGivenValuesAreHidden(t *testing.T) {
	t.Parallel()
	const key, token = "first-line-of-it\nsecond-line-of-it\n", "s3cret-t0ken"
	u, _ := pluginOf(t, Settings{Name: "srv", Server: &mcplock.Server{URL: "http://127.0.0.1:9"}, Env: map[string]string{"KEY": key, "PART": "second-line"}, Headers: map[string]string{"Authorization": "Bearer " + token}})
	var log wait.Log
	u.log.to, u.log.file = &log, filepath.Join(t.TempDir(), "stderr")
	s := newSession(u, "")
	r, w, err := os.Pipe()
	must.NoError(t, err)
	over := make(chan struct{})
	go func() { defer close(over); u.log.copy(r) }()
	encoded := []string{base64.StdEncoding.EncodeToString([]byte(token)), hex.EncodeToString([]byte(token)), strings.ReplaceAll(token, "-", "%2D"), strings.ReplaceAll(token, "-", `\u002d`)}
	for _, before := range []int{0, maxLine - 5, 4<<10 - 5, maxWritten - 5} {
		words := strings.Repeat("x ", before/2) + strings.Join(encoded, " ")
		fmt.Fprintln(w, words)
		s.notice("notifications/message", json.RawMessage(`{"data":`+strconv.Quote(words)+`}`))
		words = strings.Repeat("x", before) + token
		s.notice("notifications/message", json.RawMessage(`{"data":"`+words+`"}`))
		(&stdioConn{log: u.log}).message(frame{line: []byte(words), size: int64(len(words))})
		fmt.Fprintf(w, "%s\n%s", words, key)
	}
	w.Close()
	wait.For(t, over, "the end of what it wrote")
	kept, err := os.ReadFile(u.log.file)
	must.NoError(t, err)
	for name, text := range map[string]string{"log": log.String(), "file": string(kept)} {
		for _, part := range append([]string{"s3cr", "t0ken", "first", "second"}, encoded[0][:4], encoded[1][:6]) {
			if strings.Contains(text, part) {
				t.Errorf("the %s has %s", name, part)
			}
		}
		if !strings.Contains(text, "[KEY]") || !strings.Contains(text, "[Authorization]") {
			t.Errorf("the %s has no marks: %.500s", name, text)
		}
	}
}

// Of a header Authorization: Basic, what the server makes of it is hidden, too.
func TestBasicIsHidden(t *testing.T) {
	t.Parallel()
	const user = "anne:s3cret-pass"
	u, _ := pluginOf(t, Settings{Name: "srv", Server: &mcplock.Server{URL: "http://127.0.0.1:9"}, Headers: map[string]string{"Authorization": "basic " + base64.RawStdEncoding.EncodeToString([]byte(user))}})
	var log wait.Log
	u.log.to = &log
	r, w, err := os.Pipe()
	must.NoError(t, err)
	fmt.Fprintf(w, "login of %s\npassword s3cret-pass\ngot basic %s\n", user, base64.RawStdEncoding.EncodeToString([]byte(user)))
	w.Close()
	u.log.copy(r)
	if got := log.String(); strings.Contains(got, "s3cret") || strings.Contains(got, "YW5u") || strings.Count(got, "[Authorization]") != 3 {
		t.Errorf("the log has %s", got)
	}
}

// Concurrent calls are bounded, and a chain of these programs is too.
func TestBounds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, mcptest.Script{}, false, func(s *Settings) { s.Concurrent = 1 })
	w.gives("log", `{}`, `{"text":"logged"}`)
	ctx, cancel := context.WithCancel(w.context())
	waiting := make(chan error, 1)
	go func() {
		_, err := w.call(ctx, "wait", `{}`)
		waiting <- err
	}()
	w.until("the first runs", func() bool { return len(w.lines()) == 2 })
	soon, end := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer end()
	v, err := w.call(soon, "note", `{}`)
	w.failed(v, err, "failed", "it wasn't begun")
	cancel()
	wait.For(t, waiting, "the end of the first")
	w.gives("note", `{}`, `{"text":"noted"}`)
	near := newWorld(t, mcptest.Script{}, false, func(s *Settings) { s.Hops, s.Env = maxHops-1, map[string]string{"SECRET": "s3cret"} })
	near.gives("hops", `{}`, `{"text":"3 3 s3cret"}`)
	far := newWorld(t, mcptest.Script{}, false, func(s *Settings) { s.Hops = maxHops })
	far.fails("note", `{}`, "denied", "more than 3 in a row")
}

// A session that is asked nothing ends with its process; the next call makes another.
func TestIdle(t *testing.T) {
	t.Parallel()
	w := newWorld(t, mcptest.Script{}, true, func(s *Settings) { s.Idle = time.Millisecond })
	w.gives("note", `{}`, `{"text":"noted"}`)
	w.until("the session is over", func() bool { return w.http.Open() == 0 })
	w.gives("note", `{}`, `{"text":"noted"}`)
	if made := w.http.Made(); made != 2 {
		t.Errorf("%d sessions were made", made)
	}
}

// A session of a run isn't another run's.
func TestSessionOfRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, mcptest.Script{}, true, func(s *Settings) { s.Session = "run" })
	for _, key := range []string{"a-1", "a-2", "b-1", "a-3"} {
		must.Succeed(t)(w.Invoke(sdk.WithKey(w.context(), key), "srv.note", value.Value(&value.Record{})))
	}
	if made := w.http.Made(); made != 2 {
		t.Errorf("%d sessions for two runs", made)
	}
}

// Servers are told that their sessions end, all at once, and have time to hear it. Where the host ends, the process is killed
// before that time is over.
func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	both := make(chan struct{})
	var came, heard atomic.Int32
	w := newWorld(t, mcptest.Script{}, true, func(s *Settings) {
		s.Session = "run"
		at, err := url.Parse(s.Server.URL)
		must.NoError(t, err)
		server := httputil.NewSingleHostReverseProxy(at)
		far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodDelete {
				if came.Add(1) == 2 {
					close(both)
				}
				select {
				case <-both:
				case <-r.Context().Done():
					return
				}
				select {
				case <-time.After(noticeTimeout / 10):
					heard.Add(1)
				case <-r.Context().Done():
				}
			}
			server.ServeHTTP(w, r)
		}))
		t.Cleanup(func() { far.CloseClientConnections(); far.Close() })
		s.Server.URL = far.URL
	})
	for _, key := range []string{"a-1", "b-1"} {
		must.Succeed(t)(w.Invoke(sdk.WithKey(w.context(), key), "srv.note", value.Value(&value.Record{})))
	}
	w.Handle.Close()
	if n := heard.Load(); n != 2 {
		t.Errorf("%d of 2 sessions ended", n)
	}
}

// An answer is the record of its text, data and parts, exactly (8 A 6), and a text that repeats the
// data isn't kept twice (8 A 10).
func TestAnswers(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		// Arguments go by their names on the wire, and no number is another afterwards.
		w.gives("echo", `{"in_":"x","n":9007199254740993}`, `{"data":{"in":"x","n":9007199254740993},"text":""}`)
		w.gives("echo", `{"n":1.10}`, `{"data":{"n":1.10},"text":""}`)
		w.gives("echo", `{"n":123456789012345678901234567890,"filter":"a"}`, `{"data":{"filter":"a","n":123456789012345678901234567890},"text":""}`)
		for result, want := range map[string]string{
			`{"content":[]}`: `{"text":""}`,
			`{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`:                                                   `{"text":"a\nb"}`,
			`{"content":[{"type":"text","text":"{\"a\":1}"}]}`:                                                                      `{"text":"{\"a\":1}"}`,
			`{"content":[{"type":"text","text":"{\"b\":[], \"a\":1}"}],"structuredContent":{"a":1,"b":[]}}`:                         `{"data":{"a":1,"b":[]},"text":""}`,
			`{"content":[{"type":"text","text":"{\"a\":2}"}],"structuredContent":{"a":1}}`:                                          `{"data":{"a":1},"text":"{\"a\":2}"}`,
			`{"structuredContent":{"n":12345678901234567890123,"d":0.10}}`:                                                          `{"data":{"d":0.10,"n":12345678901234567890123},"text":""}`,
			`{"content":[{"type":"image","mimeType":"image/png","data":"AAAA"},{"type":"text","text":"t"}]}`:                        `{"parts":[{"data":"AAAA","mime":"image/png","type":"image"}],"text":"t"}`,
			`{"content":[{"type":"text","text":"t"}],"_meta":{"ifc":{"integrity":"trusted","confidentiality":["public"]}}}`:         `{"ifc":[],"text":"t"}`,
			`{"content":[{"type":"text","text":"t"}],"_meta":{"ifc":{"integrity":"untrusted","confidentiality":["bob","public"]}}}`: `{"ifc":["untrusted","private"],"text":"t"}`,
			`{"content":[{"type":"text","text":"t"}],"_meta":{"ifc":"trusted"}}`:                                                    `{"ifc":["untrusted","private"],"text":"t"}`,
			`{"content":[{"type":"resource_link","uri":"x://y","name":"n","mimeType":"m","description":"d"}]}`:                      `{"parts":[{"mime":"m","name":"n","type":"resource_link","uri":"x://y"}],"text":""}`,
			`{"content":[{"type":"resource","resource":{"uri":"x://y","text":"t"}},{"type":"hologram","data":"x"}]}`:                `{"parts":[{"text":"t","type":"resource","uri":"x://y"},{"type":"unknown"}],"text":""}`,
			`{"content":[{"type":"resource","resource":{"uri":"x://y","blob":"AAAA","mimeType":"m"}}]}`:                             `{"parts":[{"data":"AAAA","mime":"m","type":"resource","uri":"x://y"}],"text":""}`,
		} {
			w.gives("raw", shown(t, argument("result", result)), want)
		}
		w.gives("typed", `{"data":"{\"issues\":[{\"number\":7.0}]}"}`, `{"data":{"issues":[{"number":7}]},"text":""}`)
	})
}

// What can't be an answer fails, and what happened stays unknown.
func TestWrongAnswers(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		for _, result := range []string{
			`{"content":"` + mcptest.Canary + `"}`, `{"content":[1]}`, `{}`, `[]`, `"` + mcptest.Canary + `"`, `{"content":[],"content":[]}`,
			`{"content":[{"type":"text","text":"\ud800"}]}`, `{"content":[],"structuredContent":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`,
			`{"content":[],"structuredContent":` + strings.Repeat("[", 400_000) + strings.Repeat("]", 400_000) + `}`,
		} {
			w.fails("raw", shown(t, argument("result", result)), "unknown", "")
		}
		w.fails("typed", `{"data":"{\"issues\":[{\"number\":\"`+mcptest.Canary+`\"}]}"}`, "unknown", `answered typed with another type than it declared, at "/issues/0/number"`)
		w.fails("typed", `{"data":"{\"issues\":7}"}`, "unknown", "with another type")
		w.fails("typed", `{"data":"null"}`, "unknown", "with another type")
		// What is held to the type is what is given on, whatever else has nearly its name.
		w.fails("typed", shown(t, argument("data", `{"issues":7},"StructuredContent":{"issues":[]}`)), "unknown", "with another type")
		w.gives("raw", shown(t, argument("result", `{"content":[],"resultType":"complete","ResultType":"input_required"}`)), `{"text":""}`)
	})
}

// argument is a record of one argument.
func argument(name, text string) value.Value {
	return &value.Record{Fields: []value.Field{{Key: name, Value: value.Str(text)}}}
}

// FuzzFrame: lines are found with their sizes, a longer one than allowed is dropped, and the
// identifier that is seen in passing is the one that a parser finds.
func FuzzFrame(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":7,"result":{}}`, `{"result":{"id":1,"a":["id",{"id":2}]},"id":7}`, `{"i\"d":8,"id" : 9 }`, `{"id":"7"}`, `{"id":null}`,
		`{"id":-1}`, `{"id":1.5}`, `{"a":"id","id":3}`, `{"a":"\\","id":4}`, `{"a":{},"id":5}`, `[{"id":1}]`, `{"id":[6]}`, `id`, "", "\x00", `{"id":12345678901234567890123}`,
	} {
		f.Add(s, uint8(20))
	}
	f.Fuzz(func(t *testing.T, line string, most uint8) {
		line, _, _ = strings.Cut(line, "\n")
		r := bufio.NewReaderSize(iotest.OneByteReader(strings.NewReader(line+"\nnext\n")), 16)
		got, err := readFrame(r, func() int64 { return int64(most) }, nil)
		if err != nil || got.size != int64(len(line))+1 {
			t.Fatalf("%q has %d bytes, it says %d (%v)", line, len(line)+1, got.size, err)
		}
		if isKept := got.line != nil; isKept && string(got.line) != strings.TrimSpace(line) && !bytes.Equal(got.line, bytes.TrimSpace([]byte(line))) || isKept && got.size > int64(most) {
			t.Fatalf("%q is %q", line, got.line)
		}
		var object struct {
			ID json.Number `json:"id"`
		}
		d := json.NewDecoder(strings.NewReader(line))
		if isOne := strings.Count(line, `"id"`) == 1 && !strings.Contains(line, `\u`); isOne && d.Decode(&object) == nil && !d.More() && strings.HasPrefix(strings.TrimSpace(line), "{") {
			if n, err := object.ID.Int64(); err == nil && n >= 0 && n < 1<<51 && strings.Contains(line, `"id"`) {
				if id, _ := got.id.Raw().(int64); id != n && strings.Contains(line, object.ID.String()) && !strings.Contains(line, `"`+object.ID.String()+`"`) {
					t.Fatalf("%q has the identifier %d, not %v", line, n, got.id.Raw())
				}
			}
		}
		if next, err := readFrame(r, func() int64 { return 10 }, nil); err != nil || string(next.line) != "next" {
			t.Fatalf("after %q comes %q (%v)", line, next.line, err)
		}
	})
}

// An answer has no more than its own request allows, though its identifier isn't seen in passing.
func TestBoundOfHiddenIdentifier(t *testing.T) {
	t.Parallel()
	one, _ := jsonrpc.MakeID(1.0)
	two, _ := jsonrpc.MakeID(2.0)
	for bytes, want := range map[int]error{50: nil, 200: errTooLarge} {
		x := &exchange{most: 100}
		c := &stdioConn{exchanges: exchanges{byID: map[jsonrpc.ID]pending{one: {exchange: x, method: "tools/list"}, two: {exchange: &exchange{most: 1 << 20}}}}}
		f, err := readFrame(bufio.NewReader(strings.NewReader(`{"jsonrpc":"2.0","\u0069d":1,"result":{"a":"`+strings.Repeat("x", bytes)+`"}}`+"\n")), c.most, nil)
		must.NoError(t, err)
		if m, ok := c.message(f).(*jsonrpc.Response); !ok || m.ID != one {
			t.Fatalf("%d bytes are no answer", bytes)
		}
		if raw, err := x.result(); err != want || (raw != nil) != (want == nil) {
			t.Errorf("%d bytes give %.80s, %v", bytes, raw, err)
		}
	}
}

// What is kept of what a server writes is what is logged of it: no more than an operator reads.
func TestKeptIsLogged(t *testing.T) {
	t.Parallel()
	u, _ := pluginOf(t, Settings{Name: "srv", Server: &mcplock.Server{URL: "http://127.0.0.1:9"}})
	var log wait.Log
	u.log.to, u.log.file = &log, filepath.Join(t.TempDir(), "stderr")
	r, w, err := os.Pipe()
	must.NoError(t, err)
	over := make(chan struct{})
	go func() { defer close(over); u.log.copy(r) }()
	_, err = w.WriteString(strings.Repeat("noise\n", 5000))
	must.NoError(t, err)
	w.Close()
	wait.For(t, over, "the end of what it wrote")
	kept, err := os.ReadFile(u.log.file)
	must.NoError(t, err)
	if kept, logged := strings.Count(string(kept), "noise"), strings.Count(log.String(), "noise"); kept != logged || kept == 0 {
		t.Errorf("%d lines are kept, %d logged", kept, logged)
	}
}

// What a message may have is asked when it comes: the wait for it began before the call that allows it more.
func TestFrameAllowedLate(t *testing.T) {
	t.Parallel()
	most, text := int64(1), strings.NewReader("an answer\n")
	r := bufio.NewReader(readFunc(func(p []byte) (int, error) {
		most = 100
		return text.Read(p)
	}))
	if f, err := readFrame(r, func() int64 { return most }, nil); err != nil || string(f.line) != "an answer" {
		t.Fatalf("got %q (%v)", f.line, err)
	}
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// Events are read as the specification of server-sent events has them, and bounded.
func TestEvents(t *testing.T) {
	const stream = ": a comment\n\nid: 1\nretry: 20\ndata: {\"a\":\ndata: 1}\n\nevent: other\ndata: x\r\n\r\ndata\n\ndata: last"
	r := bufio.NewReaderSize(strings.NewReader(stream), 16)
	for _, want := range []struct{ id, name, data string }{{"1", "", "{\"a\":\n1}"}, {"", "other", "x"}, {"", "", ""}} {
		if e, err := readEvent(r, 100, nil); err != nil || e.id != want.id || e.name != want.name || string(e.data) != want.data {
			t.Fatalf("%+v, %v; want %+v", e, err, want)
		}
	}
	if e, err := readEvent(r, 100, nil); err != io.EOF {
		t.Errorf("an event without an end is %+v, %v", e, err)
	}
	for _, long := range []string{"data: " + strings.Repeat("x", 3000), "id: " + strings.Repeat("x", 1100), strings.Repeat("data: x\n", 1000)} {
		if _, err := readEvent(bufio.NewReaderSize(strings.NewReader(long+"\n\n"), 16), 100, nil); err != errTooLarge {
			t.Errorf("%.20s…: %v", long, err)
		}
	}
}

// Room is waited for by each event of a stream for itself, however much came before it.
func TestEventsWaitForRoom(t *testing.T) {
	t.Parallel()
	small, large := "data: "+strings.Repeat("x", 50_000)+"\n\n", "data: "+strings.Repeat("x", 300_000)+"\n\n"
	r := bufio.NewReaderSize(strings.NewReader(strings.Repeat(small, 20)+large+small+large), 16<<10)
	var asked []int64
	room := func(bytes int64) error { asked = append(asked, bytes); return nil }
	for i := range 22 {
		if e, err := readEvent(r, 1<<20, room); err != nil || len(e.data) != 50_000 && i != 20 {
			t.Fatalf("event %d: %d bytes, %v", i, len(e.data), err)
		}
	}
	if len(asked) == 0 || asked[0] < 64<<10 || slices.Max(asked) < 300_000 || slices.Max(asked) > 600_000 {
		t.Errorf("asked for %d", asked)
	}
	none := errors.New("none")
	long := "data: {\"result\":\"" + strings.Repeat("x", 300_000) + "\",\ndata: \"id\":7,\nid: e7\ndata:" + strings.Repeat(" ", 5000) + "}\n\ndata: next\n\n"
	r = bufio.NewReaderSize(strings.NewReader(long), 16<<10)
	seven, _ := jsonrpc.MakeID(7.0)
	if e, err := readEvent(r, 1<<20, func(int64) error { return none }); err != nil || e.noRoom != none || len(e.data) > 0 || e.answers != seven || e.id != "e7" {
		t.Errorf("without room: %d bytes of %v, %q, %v, %v", len(e.data), e.answers.Raw(), e.id, e.noRoom, err)
	}
	if e, err := readEvent(r, 1<<20, func(int64) error { return none }); err != nil || string(e.data) != "next" || e.noRoom != nil {
		t.Errorf("after one without room: %+v, %v", e, err)
	}
}

// TestHugeMessages counts values, of which a parser takes a hundred bytes each: in texts there are none.
func TestHugeMessages(t *testing.T) {
	t.Parallel()
	for text, huge := range map[string]bool{
		`{"id":1,"result":{"_meta":[` + strings.Repeat("[],", maxValues/2) + `1]}}`: true,
		`{"id":1,"result":{"text":"` + strings.Repeat("[],", maxValues/2) + `"}}`:   false,
	} {
		f, err := readFrame(bufio.NewReader(strings.NewReader(text+"\n")), func() int64 { return 1 << 30 }, nil)
		if err != nil || f.isHuge != huge || isHuge([]byte(text)) != huge || !f.id.IsValid() {
			t.Errorf("%.40s…: %v, %v", text, f.isHuge, err)
		}
	}
}
