package stdio

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serveEnv makes the test binary a server on its standard streams: "ours" or
// "sdk" says with which transport.
const serveEnv = "STDIO_TEST_SERVE"

func TestMain(m *testing.M) {
	switch os.Getenv(serveEnv) {
	case "":
		os.Exit(m.Run())
	case "sdk":
		serveProcess(&mcp.StdioTransport{})
	default:
		serveProcess(&Transport{In: os.Stdin, Out: os.Stdout})
	}
}

func serveProcess(t mcp.Transport) {
	if err := noopServer().Run(context.Background(), t); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func noopServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "noop", Version: "1"}, &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	answer := &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "49"}}}
	s.AddTool(&mcp.Tool{Name: "noop", InputSchema: map[string]any{"type": "object"}},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return answer, nil })
	big := &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Repeat("x", 1<<20)}}}
	s.AddTool(&mcp.Tool{Name: "big", InputSchema: map[string]any{"type": "object"}},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return big, nil })
	return s
}

// BenchmarkCall measures calls of a tool that does nothing, by this transport
// and by the SDK's, in the same run. "pipe" has the server in this process,
// "process" in one of its own, on its real standard streams. The figures
// include the client, which does the least that a client can do.
func BenchmarkCall(b *testing.B) {
	for _, place := range []string{"pipe", "process"} {
		for _, callers := range []int{1, 16, 256} {
			for _, which := range []string{"sdk", "ours"} {
				b.Run(fmt.Sprintf("%s/callers=%d/%s", place, callers, which), func(b *testing.B) {
					in, out := startBench(b, place, which)
					benchCalls(b, in, out, callers, "noop", "")
				})
			}
		}
	}
}

// BenchmarkBig measures a megabyte of argument, and one of result.
func BenchmarkBig(b *testing.B) {
	for _, tool := range []string{"noop", "big"} {
		for _, which := range []string{"sdk", "ours"} {
			b.Run(map[string]string{"noop": "argument", "big": "result"}[tool]+"/"+which, func(b *testing.B) {
				in, out := startBench(b, "process", which)
				arg := ""
				if tool == "noop" {
					arg = strings.Repeat("x", 1<<20)
				}
				benchCalls(b, in, out, 1, tool, arg)
			})
		}
	}
}

// BenchmarkConnection measures the transports alone: a request read, a response
// written, no server in between.
func BenchmarkConnection(b *testing.B) {
	for _, which := range []string{"sdk", "ours"} {
		b.Run(which, func(b *testing.B) {
			request := []byte(callLine("1", "noop", "x") + "\n")
			in := readerFunc(func(p []byte) (int, error) { return copy(p, request), nil })
			var t mcp.Transport = &Transport{In: in, Out: io.Discard}
			if which == "sdk" {
				t = &mcp.IOTransport{Reader: io.NopCloser(in), Writer: nopCloser{io.Discard}}
			}
			c, err := t.Connect(b.Context())
			must.NoError(b, err)
			defer c.Close()
			result := []byte(`{"content":[{"type":"text","text":"49"}]}`)
			b.ReportAllocs()
			for b.Loop() {
				m, err := c.Read(b.Context())
				must.NoError(b, err)
				must.NoError(b, c.Write(b.Context(), &jsonrpc.Response{ID: m.(*jsonrpc.Request).ID, Result: result}))
			}
		})
	}
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func startBench(b *testing.B, place, which string) (io.WriteCloser, io.Reader) {
	if place == "process" {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), serveEnv+"="+which)
		in, err := cmd.StdinPipe()
		must.NoError(b, err)
		out, err := cmd.StdoutPipe()
		must.NoError(b, err)
		must.NoError(b, cmd.Start())
		b.Cleanup(func() { in.Close(); cmd.Wait() })
		return in, out
	}
	serverIn, in, err := os.Pipe()
	must.NoError(b, err)
	out, serverOut, err := os.Pipe()
	must.NoError(b, err)
	var t mcp.Transport = &Transport{In: serverIn, Out: serverOut}
	if which == "sdk" {
		t = &mcp.IOTransport{Reader: serverIn, Writer: serverOut}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		noopServer().Run(context.Background(), t)
	}()
	b.Cleanup(func() { in.Close(); <-ended })
	return in, out
}

func benchCalls(b *testing.B, in io.Writer, out io.Reader, callers int, tool, arg string) {
	r := bufio.NewReaderSize(out, 64<<10)
	fmt.Fprintln(in, initializeLine)
	if _, err := r.ReadSlice('\n'); err != nil {
		b.Fatal(err)
	}
	fmt.Fprintln(in, initializedLine)

	// A reader hands each caller the news that its call was answered.
	var mu sync.Mutex
	waiting := map[int64]chan struct{}{}
	go func() {
		for {
			line, err := r.ReadSlice('\n')
			for err == bufio.ErrBufferFull {
				head := bytes.Clone(line[:64])
				_, err = r.ReadSlice('\n')
				line = head
			}
			if err != nil {
				return
			}
			rest := line[bytes.Index(line, []byte(`"id":`))+5:]
			id, _ := strconv.ParseInt(string(rest[:bytes.IndexByte(rest, ',')]), 10, 64)
			mu.Lock()
			done := waiting[id]
			delete(waiting, id)
			mu.Unlock()
			done <- struct{}{}
		}
	}()
	var next atomic.Int64
	tail := `","arguments":{"x":"` + arg + `"}}}` + "\n"
	call := func(done chan struct{}, buf []byte) []byte {
		id := next.Add(1)
		mu.Lock()
		waiting[id] = done
		mu.Unlock()
		buf = strconv.AppendInt(append(buf[:0], `{"jsonrpc":"2.0","id":`...), id, 10)
		buf = append(buf, `,"method":"tools/call","params":{"name":"`...)
		buf = append(append(buf, tool...), tail...)
		in.Write(buf)
		<-done
		return buf
	}
	b.ReportAllocs()
	if callers == 1 {
		done, buf := make(chan struct{}), []byte(nil)
		for b.Loop() {
			buf = call(done, buf)
		}
		return
	}
	// Each iteration is one call by each of the callers.
	starts := make([]chan struct{}, callers)
	var wg sync.WaitGroup
	for i := range starts {
		starts[i] = make(chan struct{}, 1)
		go func() {
			done, buf := make(chan struct{}), []byte(nil)
			for range starts[i] {
				buf = call(done, buf)
				wg.Done()
			}
		}()
	}
	for b.Loop() {
		wg.Add(callers)
		for _, s := range starts {
			s <- struct{}{}
		}
		wg.Wait()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*callers), "ns/call")
	for _, s := range starts {
		close(s)
	}
}
