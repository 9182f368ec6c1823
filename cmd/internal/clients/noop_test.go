package clients

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/engine"
	"github.com/mcp-pif/mcp-pif/cmd/internal/stdio"
	"github.com/mcp-pif/mcp-pif/cmd/internal/streamable"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// BenchmarkNoop is calls of a tool that does nothing: on our server, through all of it,
// and on a bare one of the SDK's with the SDK's own transport, in turns, so that what
// else the machine does hits both. ours/sdk is the ratio of their times, which is to be
// at most 1.15:
//
//	go test -run - -bench Noop ./cmd/internal/clients
func BenchmarkNoop(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // as the server sets it
	for _, transport := range []struct {
		name      string
		sdk, ours func(*testing.B) caller
	}{
		{"stdio", func(b *testing.B) caller {
			return overPipes(b, func(in io.ReadCloser, out io.WriteCloser) {
				_ = bare().Run(b.Context(), &mcp.IOTransport{Reader: in, Writer: out})
			})
		}, func(b *testing.B) caller {
			return overPipes(b, func(in io.ReadCloser, out io.WriteCloser) {
				_ = whole().Serve(b.Context(), &stdio.Transport{In: in, Out: out})
			})
		}},
		{"http-sessions", func(b *testing.B) caller { return overHTTP(b, bareHTTP(false), false) }, func(b *testing.B) caller { return overHTTP(b, wholeHTTP(b), false) }},
		{"http-stateless", func(b *testing.B) caller { return overHTTP(b, bareHTTP(true), true) }, func(b *testing.B) caller { return overHTTP(b, wholeHTTP(b), true) }},
	} {
		for _, callers := range []int{1, 16} {
			b.Run(fmt.Sprintf("%s/callers=%d", transport.name, callers), func(b *testing.B) {
				compare(b, transport.sdk(b), transport.ours(b), callers)
			})
		}
	}
}

// turn is how many calls are timed together.
const turn = 64

// A caller makes a call, with a number of its own, and waits for the answer.
type caller func(n int) error

// compare times turns of both.
func compare(b *testing.B, sdk, ours caller, callers int) {
	var times [2][]float64
	n := 0
	for b.Loop() {
		for i, call := range []caller{sdk, ours} {
			began := time.Now()
			var all sync.WaitGroup
			for c := range callers {
				all.Go(func() {
					for k := c; k < turn; k += callers {
						if err := call(n + k); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			times[i] = append(times[i], float64(time.Since(began))/turn/1e3)
		}
		n += turn
	}
	for i := range times {
		slices.Sort(times[i])
	}
	median := func(t []float64) float64 { return t[len(t)/2] }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(times[0]), "sdk-µs")
	b.ReportMetric(median(times[1]), "ours-µs")
	b.ReportMetric(median(times[1])/median(times[0]), "ours/sdk")
}

// noop is the tool.
func noop(s *mcp.Server) []string {
	s.AddTool(&mcp.Tool{Name: "noop", Description: "does nothing", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{
				Content:           []mcp.Content{&mcp.TextContent{Text: "49"}},
				StructuredContent: json.RawMessage(`{"result":49,"type":"int","steps":6,"notes":[]}`),
			}, nil
		})
	return []string{"noop"}
}

// bare is the SDK's server, whole is ours.
func bare() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "noop", Version: "1"}, nil)
	noop(s)
	return s
}

func whole() *mcpserver.Server {
	return mcpserver.New(engine.Options{Version: "1"}, &mcpserver.Extra{Options: func(*mcp.ServerOptions) {}, Add: noop})
}

func bareHTTP(stateless bool) http.Handler {
	s := bare()
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: stateless})
}

func wholeHTTP(b *testing.B) http.Handler {
	s := whole()
	h, err := streamable.New(streamable.Options{
		Server: func(context.Context, string) (*mcp.Server, error) { return s.Protocol(), nil },
	})
	must.NoError(b, err)
	return h
}

const (
	helloLine = `{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"b","version":"1"}}}`
	readyLine = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	callLine  = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"noop","arguments":{"input":7}%s}}`
	newMeta   = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"b","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
)

// overPipes serves on the system's pipes, and calls through them.
func overPipes(b *testing.B, serve func(in io.ReadCloser, out io.WriteCloser)) caller {
	b.Helper()
	serverIn, clientOut, err := os.Pipe()
	clientIn, serverOut, err2 := os.Pipe()
	must.NoError(b, errors.Join(err, err2))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		serve(serverIn, serverOut)
	}()
	var mu sync.Mutex
	waiting := map[int]chan struct{}{}
	go func() {
		lines := bufio.NewReaderSize(clientIn, 64<<10)
		for {
			line, err := lines.ReadSlice('\n')
			if err != nil {
				return
			}
			id := -1
			if i := bytes.Index(line, []byte(`"id":`)); i >= 0 {
				_, _ = fmt.Sscan(string(line[i+len(`"id":`):i+len(`"id":`)+12]), &id)
			}
			mu.Lock()
			if done := waiting[id]; done != nil {
				close(done)
				delete(waiting, id)
			}
			mu.Unlock()
		}
	}()
	b.Cleanup(func() {
		clientOut.Close()
		<-ended
		serverOut.Close()
		clientIn.Close()
	})
	if _, err := io.WriteString(clientOut, helloLine+"\n"+readyLine+"\n"); err != nil {
		b.Fatal(err)
	}
	return func(n int) error {
		done := make(chan struct{})
		mu.Lock()
		waiting[n] = done
		mu.Unlock()
		if _, err := fmt.Fprintf(clientOut, callLine+"\n", n, ""); err != nil {
			return err
		}
		<-done
		return nil
	}
}

// overHTTP serves on the loopback, and calls there.
func overHTTP(b *testing.B, h http.Handler, stateless bool) caller {
	b.Helper()
	srv := httptest.NewServer(h)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	b.Cleanup(func() {
		client.CloseIdleConnections()
		srv.CloseClientConnections()
		srv.Close()
	})
	headers := map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
	meta := ""
	post := func(body string) (http.Header, error) {
		r, err := http.NewRequest(http.MethodPost, srv.URL, bytes.NewReader([]byte(body)))
		if err != nil {
			return nil, err
		}
		for name, value := range headers {
			r.Header.Set(name, value)
		}
		res, err := client.Do(r)
		if err != nil {
			return nil, err
		}
		defer res.Body.Close()
		said, err := io.ReadAll(res.Body)
		if err == nil && (res.StatusCode/100 != 2 || meta != "" && !bytes.Contains(said, []byte(`"49"`))) {
			err = fmt.Errorf("%s: %s", res.Status, said)
		}
		return res.Header, err
	}
	if stateless {
		meta = newMeta
		headers["Mcp-Protocol-Version"], headers["Mcp-Method"], headers["Mcp-Name"] = "2026-07-28", "tools/call", "noop"
	} else {
		hello, err := post(helloLine)
		must.NoError(b, err)
		headers["Mcp-Protocol-Version"], headers["Mcp-Session-Id"] = "2025-11-25", hello.Get("Mcp-Session-Id")
		if _, err := post(readyLine); err != nil {
			b.Fatal(err)
		}
	}
	return func(n int) error {
		_, err := post(fmt.Sprintf(callLine, n, meta))
		return err
	}
}
