//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/pflag"

	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/streamable"
	"github.com/mcp-pif/mcp-pif/cmd/internal/telemetry"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// inProcess serves over HTTP in this process until the test ends it.
func inProcess(t testing.TB, idle time.Duration, flags ...string) (url string, stop func()) {
	t.Helper()
	var o serveOptions
	set := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	o.register(set)
	must.NoError(t, set.Parse(append([]string{"--http", "127.0.0.1:0"}, flags...)))
	limits, err := o.Limits()
	must.NoError(t, err)
	log := slog.New(slog.DiscardHandler)
	auth, err := o.Prepare(log)
	must.NoError(t, err)
	if auth.Telemetry, err = telemetry.Open(t.Context(), telemetry.Options{}); err != nil {
		t.Fatal(err)
	}
	read, write := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		w := &web{o: &o, auth: auth, limits: limits, log: log, errs: write, idle: idle}
		ended <- w.serve(ctx)
		write.Close()
	}()
	line, err := bufio.NewReader(read).ReadString('\n')
	m := regexp.MustCompile(`at (\S+)`).FindStringSubmatch(line)
	if m == nil {
		cancel()
		t.Fatalf("it said %q, %v; and ended with %v", line, err, wait.For(t, ended, "the end of serving"))
	}
	go io.Copy(io.Discard, read)
	return m[1], sync.OnceFunc(func() {
		cancel()
		if err := wait.For(t, ended, "the end of serving"); err != nil {
			t.Errorf("serving ended with %v", err)
		}
		closeTelemetry(auth.Telemetry)
		auth.Close()
	})
}

// TestHTTPLoad: a hundred clients of two principals, in both protocols, that make
// tools, run them, list and hang up in the middle, each get their own answers; when
// they are gone nothing of them is left.
func TestHTTPLoad(t *testing.T) {
	const clients = 100
	lasts := 2 * time.Second
	if full() {
		lasts = 15 * time.Second
	}
	others := runtime.NumGoroutine() // of tests that wait for their turn, as well
	url, stop := inProcess(t, 30*time.Second, "--http-tokens", bothTokens(t), "--store", "memory")
	defer stop()
	begin := func() (int, uint64) {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return runtime.NumGoroutine(), m.HeapAlloc
	}
	var calls, hungUp atomic.Int64
	load := func(lasts time.Duration, enough func() bool) {
		ctx, over := context.WithCancel(t.Context())
		defer over()
		time.AfterFunc(lasts, func() {
			for !enough() && !t.Failed() { // as on a slow machine
				time.Sleep(20 * time.Millisecond)
			}
			over()
		})
		var all sync.WaitGroup
		for i := range clients {
			all.Go(func() {
				client := &loadClient{t: t, url: url, number: i, token: []string{annToken, bobToken}[i%2], version: eras[i/2%2], calls: &calls, hungUp: &hungUp}
				for ctx.Err() == nil && !t.Failed() {
					client.session(ctx)
				}
			})
		}
		all.Wait()
	}
	load(300*time.Millisecond, func() bool { return true }) // so that what is kept for later is there
	settle := func(most int) int {
		n := 0
		for range 3000 {
			if n = runtime.NumGoroutine(); n <= most {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		return n
	}
	settle(others + 40)
	goroutines, heap := begin()
	load(lasts, func() bool { return calls.Load() >= clients && hungUp.Load() > 0 })
	left := settle(goroutines + 10)
	_, after := begin()
	t.Logf("%d calls, %d hung up; goroutines %d before, %d after; heap %d KiB before, %d after", calls.Load(), hungUp.Load(), goroutines, left, heap>>10, after>>10)
	if left > goroutines+10 {
		buf := make([]byte, 1<<20)
		t.Errorf("%d goroutines are left of %d:\n%.6000s", left, goroutines, buf[:runtime.Stack(buf, true)])
	}
	// The journals in memory may fill up: 8 MiB for each principal.
	if most := heap + 2*app.PureJournal*3 + 16<<20; after > most {
		t.Errorf("the heap is %d bytes after, it was %d before", after, heap)
	}
}

// A loadClient is one of many.
type loadClient struct {
	t             testing.TB
	url           string
	number        int
	token         string
	version       string
	calls, hungUp *atomic.Int64
}

// session connects, makes some calls, and goes; sometimes without a word.
func (l *loadClient) session(ctx context.Context) {
	c := mcp.NewClient(&mcp.Implementation{Name: "load", Version: "1"}, nil)
	life, hangUp := context.WithCancel(ctx)
	defer hangUp()
	// Connections of its own: net/http gives one back before an answer without a body
	// is taken, and who hangs up in between cancels what the next one sent on it.
	transport := &http.Transport{IdleConnTimeout: 5 * time.Second}
	defer transport.CloseIdleConnections()
	s, err := c.Connect(life, &mcp.StreamableClientTransport{Endpoint: l.url, HTTPClient: &http.Client{Transport: bearer{l.token, transport}}, DisableStandaloneSSE: rand.IntN(2) == 0},
		&mcp.ClientSessionOptions{ProtocolVersion: l.version})
	if err != nil {
		if ctx.Err() == nil {
			l.t.Errorf("connecting: %v", err)
		}
		return
	}
	defer s.Close()
	name := fmt.Sprintf("tool_%d", l.number)
	for i := range 5 + rand.IntN(10) {
		want := ""
		tool, arguments := "", map[string]any(nil)
		switch i % 4 {
		case 0:
			tool, arguments = "evolve", map[string]any{"name": name, "code": fmt.Sprintf("n => n + %d", l.number)}
		case 1:
			tool, arguments, want = name, map[string]any{"input": 1000}, fmt.Sprint(1000+l.number)
		case 2:
			tool, arguments, want = "run", map[string]any{"tool": name, "input": 1}, fmt.Sprint(1+l.number)
		case 3:
			for _, err := range s.Tools(life, nil) {
				if err != nil && ctx.Err() == nil {
					l.t.Errorf("listing: %v", err)
				}
				break
			}
			continue
		}
		if i > 0 && rand.IntN(20) == 0 { // goes away in the middle of a long run
			call, leave := context.WithCancel(life)
			time.AfterFunc(time.Duration(rand.IntN(20))*time.Millisecond, leave)
			_, _ = s.CallTool(call, &mcp.CallToolParams{Name: "run", Arguments: map[string]any{"code": endless, "steps": 1_000_000_000}})
			l.hungUp.Add(1)
			leave()
			continue
		}
		res, err := s.CallTool(life, &mcp.CallToolParams{Name: tool, Arguments: arguments})
		if err != nil {
			if ctx.Err() == nil {
				l.t.Errorf("%s: %v", tool, err)
			}
			return
		}
		l.calls.Add(1)
		text := res.Content[0].(*mcp.TextContent).Text
		if res.IsError && !strings.Contains(text, "cancelled") || want != "" && text != want && !res.IsError {
			l.t.Errorf("client %d: %s answers %q, not %q", l.number, tool, text, want)
			return
		}
	}
}

// TestHTTPHostile: clients that send slowly, read nothing, send what is no request,
// or are killed in the middle, keep nobody else from being answered.
func TestHTTPHostile(t *testing.T) {
	url, stop := inProcess(t, time.Second, "--http-tokens", bothTokens(t), "--store", "memory")
	defer stop()
	address := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), streamable.Path)
	head := "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + annToken + "\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"help","arguments":{"category":"library"}}}`
	for i := range 200 {
		c, err := net.Dial("tcp", address)
		must.NoError(t, err)
		defer c.Close()
		switch i % 6 {
		case 0: // a body that doesn't come
			fmt.Fprintf(c, "%sContent-Length: 1000000\r\n\r\n{", head)
		case 1: // chunks that don't end
			fmt.Fprintf(c, "%sTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", head)
		case 2: // headers that don't
			fmt.Fprint(c, head)
		case 3: // no HTTP
			fmt.Fprint(c, strings.Repeat("\x16\x03\x01", 100))
		case 4: // nobody reads the answers
			for range 100 {
				fmt.Fprintf(c, "%sContent-Length: %d\r\n\r\n%s", head, len(call), call)
			}
		case 5: // gone
			fmt.Fprintf(c, "%sContent-Length: %d\r\n\r\n%s", head, len(call), call)
			c.Close()
		}
	}
	for range 20 {
		r, _ := http.NewRequest(http.MethodPost, url, strings.NewReader(initialize))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Authorization", "Bearer "+bobToken)
		res, err := http.DefaultClient.Do(r)
		must.NoError(t, err)
		b, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != http.StatusOK || !strings.Contains(string(b), "serverInfo") {
			t.Fatalf("another client: %s %s", res.Status, b)
		}
	}
}

// BenchmarkHTTP compares a call over HTTP with one of a tool that does nothing on the
// SDK's own handler, in the protocol without sessions.
func BenchmarkHTTP(b *testing.B) {
	url, stop := inProcess(b, 0, "--store", "memory")
	defer stop()
	bare := mcp.NewServer(&mcp.Implementation{Name: "noop", Version: "1"}, nil)
	bare.AddTool(&mcp.Tool{Name: "run", Description: "does nothing", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{
				Content:           []mcp.Content{&mcp.TextContent{Text: "1"}},
				StructuredContent: json.RawMessage(`{"result":1,"type":"int","steps":1,"notes":[]}`),
			}, nil
		})
	sdk := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return bare }, &mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true}))
	defer sdk.Close()
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run","arguments":{"code":1},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	for _, c := range []struct{ name, url string }{{"sdk-noop", sdk.URL}, {"run", url}} {
		for _, callers := range []int{1, 16} {
			b.Run(fmt.Sprintf("%s/%d", c.name, callers), func(b *testing.B) {
				transport := &http.Transport{MaxIdleConnsPerHost: 64}
				defer transport.CloseIdleConnections()
				client := &http.Client{Transport: transport}
				b.SetParallelism(callers)
				one := func() {
					r, _ := http.NewRequest(http.MethodPost, c.url, strings.NewReader(body))
					for k, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "run"} {
						r.Header.Set(k, v)
					}
					res, err := client.Do(r)
					if err != nil {
						b.Error(err)
						return
					}
					answer, _ := io.ReadAll(res.Body)
					res.Body.Close()
					if res.StatusCode != 200 || !strings.Contains(string(answer), `"result":1`) {
						b.Errorf("%s %.300s", res.Status, answer)
					}
				}
				if callers == 1 {
					for b.Loop() {
						one()
					}
					return
				}
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						one()
					}
				})
			})
		}
	}
}
