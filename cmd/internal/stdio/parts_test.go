package stdio

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// The scanner takes for JSON what the standard library does: of a text that has
// everything, of all its beginnings, and of it with any byte replaced.
func TestScanner(t *testing.T) {
	const text = ` {"a" : [ -0.5e+1 , 10, 2E-03,true ,false,null,"\"\\\/\b\f\n\r\t\u00aF\ud800é",{},[ ], {"b":{"c":[[0 ] ]},"":""}] , "d":"" } `
	check := func(b []byte) {
		t.Helper()
		s := scanner{b: b}
		i := s.space(0)
		end := s.value(i)
		got := end >= 0 && s.space(end) == len(b)
		if want := json.Valid(b); got != want {
			t.Fatalf("%q: valid %v, want %v", b, got, want)
		}
		if end < 0 && (s.at > len(b) || s.fault == "") {
			t.Fatalf("%q: fault %q at %d", b, s.fault, s.at)
		}
		// As the members of an object it is the same.
		if i < len(b) && b[i] == '{' {
			s := scanner{b: b}
			end := s.members(i, func(key, value []byte) {
				if !json.Valid(key) || !json.Valid(value) {
					t.Fatalf("%q: member %q: %q", b, key, value)
				}
			})
			if got != (end >= 0 && s.space(end) == len(b)) {
				t.Fatalf("%q: as an object, valid %v", b, !got)
			}
		}
	}
	for i := range len(text) + 1 {
		check([]byte(text[:i]))
	}
	for i := range len(text) {
		for _, c := range "\x00\x1f \"\\,:[]{}019.-+eEtrufalsn\x7f" {
			b := []byte(text)
			b[i] = byte(c)
			check(b)
		}
	}
	s := scanner{b: []byte(nested(100) + "," + nested(5000))}
	if end := s.value(0); end != 200 || s.deepest != 100 {
		t.Errorf("ends at %d, deepest %d", end, s.deepest)
	}
	if end := s.value(201); end != len(s.b) || s.deepest != 5000 {
		t.Errorf("ends at %d, deepest %d", end, s.deepest)
	}
}

func TestInteger(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"0", "0"}, {"-0.0", "0"}, {"0e999", "0"}, {"1.0", "1"}, {"-1.50e1", "-15"}, {"100e-2", "1"}, {"1e18", "1000000000000000000"},
		{"0.001e3", "1"}, {"1e-1", ""}, {"0.5", ""}, {"1e400", ""}, {"1e99999999999999999999", ""}, {"12345678901234567890.0", ""},
	} {
		if got, ok := integer(c.text); got != c.want || ok != (c.want != "") {
			t.Errorf("%s: %q, %v, want %q", c.text, got, ok, c.want)
		}
	}
}

// However a stream is cut into reads, the lines are the same.
func TestFrames(t *testing.T) {
	const limit = 70_000
	random := rand.New(rand.NewPCG(1, 2))
	for _, mark := range []string{"", "\xef\xbb\xbf"} {
		var text strings.Builder
		var want []string
		for range 200 {
			size := random.IntN(1000)
			switch random.IntN(20) {
			case 0:
				size = random.IntN(2 * limit)
			case 1:
				size = limit + random.IntN(3) - 1
			}
			l := strings.Repeat(string(rune('a'+random.IntN(26))), size)
			text.WriteString(l + "\n")
			if size > limit {
				l = fmt.Sprint("long ", size)
			}
			if size > 0 {
				want = append(want, l)
			}
		}
		text.WriteString("last")
		want = append(want, "last")
		for name, in := range map[string]io.Reader{
			"whole":    strings.NewReader(mark + text.String()),
			"one byte": iotest.OneByteReader(strings.NewReader(mark + text.String())),
			"half":     iotest.HalfReader(strings.NewReader(mark + text.String())),
			"data+EOF": iotest.DataErrReader(strings.NewReader(mark + text.String())),
		} {
			f := newFrames(in, limit, nil)
			for i := 0; ; i++ {
				got, err := f.next()
				if err != nil {
					if err != io.EOF || i != len(want) {
						t.Errorf("%s: %v after %d lines of %d", name, err, i, len(want))
					}
					break
				}
				l := string(got.line)
				if got.long != nil {
					l = fmt.Sprint("long ", got.long.size)
					if got.line != nil || len(got.long.tail) != tailSize || len(got.long.head) != headSize {
						t.Fatalf("%s: head %d, tail %d", name, len(got.long.head), len(got.long.tail))
					}
				}
				if l != want[i] {
					t.Fatalf("%s: line %d: %.40q of %d, want %.40q of %d", name, i, l, len(l), want[i], len(want[i]))
				}
			}
			if _, err := f.next(); err != io.EOF {
				t.Errorf("%s: after the end: %v", name, err)
			}
		}
	}
}

func TestEncode(t *testing.T) {
	one := key(1.0)
	long := strings.Repeat("é", maxErrorText)
	for _, c := range []struct {
		msg        jsonrpc.Message
		echo, want string
	}{
		{&jsonrpc.Response{ID: one, Result: []byte(`{"a":1}`)}, "", `{"jsonrpc":"2.0","id":1,"result":{"a":1}}`},
		{&jsonrpc.Response{ID: one, Result: []byte(`{}`)}, "1.0", `{"jsonrpc":"2.0","id":1.0,"result":{}}`},
		{&jsonrpc.Response{ID: key("a\n<\x7f")}, "", `{"jsonrpc":"2.0","id":"a\n\u003c` + "\x7f" + `","result":null}`},
		{&jsonrpc.Response{ID: one, Result: []byte("{\n\"a\" :\n1}")}, "", `{"jsonrpc":"2.0","id":1,"result":{"a":1}}`},
		{&jsonrpc.Response{ID: one, Result: []byte("{\n")}, "", `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"stdio: malformed message: unexpected end of JSON input"}}`},
		{&jsonrpc.Response{ID: one, Error: errors.New("<plain>\n")}, "", `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"<plain>\n"}}`},
		{&jsonrpc.Response{ID: one, Error: fmt.Errorf("outer: %w", &jsonrpc.Error{Code: 7, Message: "inner"})}, "", `{"jsonrpc":"2.0","id":1,"error":{"code":7,"message":"outer: inner"}}`},
		{&jsonrpc.Response{Error: &jsonrpc.Error{Code: 7, Message: "m", Data: []byte(`[ 1 ]`)}}, "", `{"jsonrpc":"2.0","id":null,"error":{"code":7,"message":"m","data":[1]}}`},
		{&jsonrpc.Response{ID: one, Error: &jsonrpc.Error{Code: 7, Message: "m", Data: []byte(`[`)}}, "", `{"jsonrpc":"2.0","id":1,"error":{"code":7,"message":"m"}}`},
		{&jsonrpc.Response{ID: one, Error: errors.New("x" + long)}, "", `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"x` + long[:maxErrorText-2] + `… (the first 8191 of 16385 bytes)"}}`},
		{&jsonrpc.Request{ID: one, Method: "a\"b", Params: []byte(`[1]`)}, "", `{"jsonrpc":"2.0","id":1,"method":"a\"b","params":[1]}`},
		{&jsonrpc.Request{Method: "n"}, "", `{"jsonrpc":"2.0","method":"n"}`},
	} {
		l, err := newLine(c.msg, c.echo)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := string(l.appendTo(nil)); got != c.want+"\n" {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
	if _, err := newLine(&jsonrpc.Request{Method: "n", Params: []byte("\n")}, ""); err == nil {
		t.Error("params of a newline were encoded")
	}
}

// What the SDK says when it can't decode params isn't quoted back whole.
func TestErrorText(t *testing.T) {
	s := start(t, nil).initialized()
	s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["` + strings.Repeat("x", 1<<20) + `"]}`)
	if m := s.receive(); m.Error == nil || m.Error.Code != jsonrpc.CodeInvalidParams || len(m.Error.Message) > 2*maxErrorText {
		t.Errorf("%v of %d bytes", m.Error.Code, len(m.Error.Message))
	}
}

// A notification for which there is no room waits for the ping, once.
func TestNotesRoom(t *testing.T) {
	n := notes{passed: make(chan struct{}, 1)}
	stopped := make(chan struct{})
	fill := func() {
		t.Helper()
		for range maxNotes {
			if !n.room(1, 0, stopped) {
				t.Fatal("no room")
			}
		}
	}
	fill()
	if n.ping() == nil || n.ping() != nil {
		t.Fatal("want one ping")
	}
	fill()
	if n.room(1, 0, stopped) || !n.stalled {
		t.Error("room without bounds")
	}
	if n.room(1, time.Hour, stopped) {
		t.Error("waited twice in vain")
	}
	n.pass()
	n.pass()
	if !n.room(maxNoteBytes, 0, stopped) || n.ping() == nil {
		t.Error("no room, or no ping, after the answer")
	}
	fill()
	go n.pass()
	if !n.room(1, time.Hour, stopped) || n.ping() == nil {
		t.Error("the answer wasn't awaited")
	}
	fill()
	close(stopped)
	if n.room(1, time.Hour, stopped) {
		t.Error("room after the end")
	}
}

// A client that never reads keeps nobody from ending the session.
func TestStuckClient(t *testing.T) {
	in, clientIn := io.Pipe()
	entered := make(chan struct{}, 100)
	blocked := writerFunc(func(p []byte) (int, error) {
		entered <- struct{}{}
		select {}
	})
	ctx, cancel := context.WithCancel(t.Context())
	end := make(chan error)
	go func() {
		end <- noopServer().Run(ctx, connector(func(ctx context.Context) *conn {
			c := (&Transport{In: in, Out: blocked}).connect(ctx)
			c.grace = time.Millisecond
			return c
		}))
	}()
	fmt.Fprintln(clientIn, initializeLine)
	wait.For(t, entered, "the first write")
	for i := range 4 { // each of a megabyte, so that handlers wait for room
		fmt.Fprintln(clientIn, callLine(fmt.Sprint(i), "big", ""))
	}
	cancel()
	if err := wait.For(t, end, "the end of the session"); err != context.Canceled {
		t.Errorf("Run: %v", err)
	}
	if _, err := clientIn.Write([]byte("x")); err != io.ErrClosedPipe {
		t.Errorf("In isn't closed: %v", err)
	}
}

// A call of ours that we give up is out of the account.
func TestGivenUp(t *testing.T) {
	var out strings.Builder
	c := (&Transport{In: strings.NewReader(""), Out: &out}).connect(t.Context())
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Write(done, request(t, 1, "elicitation/create")); err != context.Canceled {
		t.Errorf("got %v", err)
	}
	c.Write(t.Context(), request(t, 1, "elicitation/create"))
	if len(c.calls.asked) != 1 {
		t.Errorf("asked: %v", c.calls.asked)
	}
	c.Write(t.Context(), &jsonrpc.Request{Method: methodCancelled, Params: []byte(`{"requestId":1}`)})
	if len(c.calls.asked) != 0 {
		t.Errorf("asked: %v", c.calls.asked)
	}
	c.Close()
	if strings.Count(out.String(), "\n") != 2 {
		t.Errorf("wrote %s", out.String())
	}
	if _, err := c.Read(t.Context()); err != io.EOF {
		t.Errorf("Read: %v", err)
	}
}

// Subscriptions are ended by the server only when no other answer is owed, and
// those that the client has ended not at all.
func TestEndListen(t *testing.T) {
	c := calls{maxCalls: 10, maxBytes: 10}
	one, two, three := key("one"), key("two"), key("three")
	for k, method := range map[jsonrpc.ID]string{one: methodListen, two: methodListen, three: "x"} {
		if got, _ := c.begin(id{key: k}, method, 1, nil); got != admitted {
			t.Fatal(got)
		}
	}
	none := func() {
		t.Helper()
		if k, ok := c.endListen(); ok {
			t.Errorf("ended %v", k.Raw())
		}
	}
	none()
	c.cancel(one)
	none()
	c.finish(three)
	none() // the answer is on its way to the writer
	c.countAnswer()
	if k, ok := c.endListen(); !ok || k != two {
		t.Errorf("ended %v", k.Raw())
	}
	none()
	c.finish(two)
	c.countAnswer()
	none()
}

func TestSlots(t *testing.T) {
	c := (&Transport{In: strings.NewReader(""), Out: io.Discard, MaxCalls: 1, MaxCallBytes: 1}).connect(t.Context())
	defer c.Close()
	take := func(l string) (jsonrpc.Message, *refusal) { return c.take(part{frame: frame{line: []byte(l)}}) }

	// Alone, a call of any size fits. With another, it waits in vain, once.
	if _, refused := take(pingLine("1")); refused != nil {
		t.Error(refused.reason)
	}
	c.patience = 0
	if _, refused := take(pingLine("2")); refused == nil || refused.code != codeOverloaded {
		t.Errorf("got %+v", refused)
	}
	c.patience = time.Hour
	if _, refused := take(pingLine("2")); refused == nil || refused.code != codeOverloaded {
		t.Errorf("got %+v", refused)
	}
	// When calls end again, so does the patience come back.
	c.calls.finish(key(1.0))
	if _, refused := take(pingLine("2")); refused != nil {
		t.Error(refused.reason)
	}
	go c.calls.finish(key(2.0))
	if _, refused := take(pingLine("3")); refused != nil {
		t.Error(refused.reason)
	}
	// A response that nobody waits for isn't the SDK's business.
	if m, refused := take(`{"jsonrpc":"2.0","id":1,"result":{}}`); m != nil || refused != nil {
		t.Errorf("got %v, %v", m, refused)
	}
}

// Only a regular file has the long patience.
func TestFilePatience(t *testing.T) {
	file, err := os.Open("parts_test.go")
	must.NoError(t, err)
	r, w := pipe(t)
	defer w.Close()
	for in, want := range map[*os.File]time.Duration{file: fileTimeout, r: backpressureTimeout} {
		c := (&Transport{In: in, Out: io.Discard}).connect(t.Context())
		if c.patience != want {
			t.Errorf("patience %v, want %v", c.patience, want)
		}
		c.Close()
	}
}
