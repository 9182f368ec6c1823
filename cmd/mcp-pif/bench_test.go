package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// Benchmarks of the server as a process, spoken to over its pipes:
//
//	go test -bench . -run - ./cmd/mcp-pif
//
// What counts is the ratio to the SDK's own server with a tool that does
// nothing, on the same machine in the same run; both are this test binary.

// build makes the program as it ships, for the time it takes to start.
func build(b *testing.B) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "mcp-pif")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return path
}

// BenchmarkStartup is from starting the process to the answer to initialize.
func BenchmarkStartup(b *testing.B) { benchmarkStart(b, "--store=memory") }

// BenchmarkStartFull is the same with 10,000 tools in the store.
func BenchmarkStartFull(b *testing.B) { benchmarkStart(b, "--store="+keptTools(b, 10_000)) }

func benchmarkStart(b *testing.B, store string) {
	path := build(b)
	for b.Loop() {
		cmd := exec.Command(path, "--log-level=error", store)
		in, _ := cmd.StdinPipe()
		out, _ := cmd.StdoutPipe()
		must.NoError(b, cmd.Start())
		if _, err := io.WriteString(in, initialize+"\n"); err != nil {
			b.Fatal(err)
		}
		buf := make([]byte, 64<<10)
		if _, err := out.Read(buf); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		in.Close()
		_ = cmd.Wait()
		b.StartTimer()
	}
}

// BenchmarkJournalled is run with a journal in a file, held against the same with
// one in memory: calls one after the other, and many under way at once. file/memory
// is the ratio of what is done in the same time.
func BenchmarkJournalled(b *testing.B) {
	for _, window := range []int{1, 64} {
		b.Run(fmt.Sprintf("window=%d", window), func(b *testing.B) {
			memory := windowed(b, window, "--store=memory")
			file := windowed(b, window, "--store="+filepath.Join(b.TempDir(), "pif.db"))
			var m, f stopwatch
			for b.Loop() {
				m.time(memory)
				f.time(file)
			}
			b.ReportMetric(m.median()/f.median(), "file/memory")
			b.ReportMetric(m.median()/batch/1e3, "memory-µs/run")
			b.ReportMetric(f.median()/batch/1e3, "file-µs/run")
		})
	}
}

// batch is how many runs are timed together.
const batch = 512

// windowed opens a server and gives a function that makes a batch of runs, so
// many of them under way at once.
func windowed(b *testing.B, window int, flags ...string) func() {
	b.Helper()
	p := startCommand(b, self("mcp-pif", append([]string{"--log-level=error"}, flags...)...)).open()
	makeSquare(p)
	line := request("run", `{"tool":"square","input":7}`) + "\n"
	return func() {
		for sent, got := 0, 0; got < batch; {
			for sent < batch && sent-got < window {
				if _, err := io.WriteString(p.in, strings.Replace(line, `"id":7`, fmt.Sprintf(`"id":%d`, sent), 1)); err != nil {
					b.Fatal(err)
				}
				sent++
			}
			if _, err := p.out.ReadSlice('\n'); err != nil {
				b.Fatal(err)
			}
			got++
		}
	}
}

// BenchmarkEvolve is an evolve that is on disk when it is answered.
func BenchmarkEvolve(b *testing.B) {
	for _, store := range []string{"memory", filepath.Join(b.TempDir(), "pif.db")} {
		name := "file"
		if store == app.InMemory {
			name = store
		}
		b.Run(name, func(b *testing.B) {
			call := calling(b, self("mcp-pif", "--log-level=error", "--list-evolved=false", "--store", store), nil, request("evolve", `{"name":"square","code":`+square+`}`))
			for b.Loop() {
				call()
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "evolves/s")
		})
	}
}

// calling opens a server and gives a function that makes one call and waits.
func calling(b *testing.B, cmd *exec.Cmd, prepare func(*process), request string) func() {
	b.Helper()
	p := startCommand(b, cmd).open()
	if prepare != nil {
		prepare(p)
	}
	line := request + "\n"
	return func() {
		if _, err := io.WriteString(p.in, line); err != nil {
			b.Fatal(err)
		}
		if _, err := p.out.ReadSlice('\n'); err != nil {
			b.Fatal(err)
		}
	}
}

func makeSquare(p *process) {
	before := p.told
	if r := p.call("evolve", `{"name":"square","code":`+square+`}`); r.IsError {
		p.t.Fatal(r.Content[0].Text)
	}
	p.changed(before)
}

func request(tool, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, arguments)
}

// BenchmarkCall is one call after the other.
func BenchmarkCall(b *testing.B) {
	for _, c := range []struct {
		name    string
		cmd     func() *exec.Cmd
		prepare func(*process)
		request string
	}{
		{"sdk-noop", func() *exec.Cmd { return self("noop") }, nil, request("noop", `{"input":7}`)},
		{"run-square", func() *exec.Cmd { return self("mcp-pif", "--log-level=error") }, makeSquare, request("run", `{"tool":"square","input":7}`)},
		{"run-code", func() *exec.Cmd { return self("mcp-pif", "--log-level=error") }, nil, request("run", `{"code":`+square+`,"input":7}`)},
		{"direct", func() *exec.Cmd { return self("mcp-pif", "--log-level=error") }, makeSquare, request("square", `{"input":7}`)},
	} {
		b.Run(c.name, func(b *testing.B) {
			call := calling(b, c.cmd(), c.prepare, c.request)
			for b.Loop() {
				call()
			}
		})
	}
}

// BenchmarkRatio interleaves calls of run on square and of the SDK's tool that
// does nothing, and reports the ratio of their times.
func BenchmarkRatio(b *testing.B) {
	noop := calling(b, self("noop"), nil, request("noop", `{"input":7}`))
	run := calling(b, self("mcp-pif", "--log-level=error"), makeSquare, request("run", `{"tool":"square","input":7}`))
	const batch = 50
	var a, c stopwatch
	for b.Loop() {
		a.time(func() {
			for range batch {
				noop()
			}
		})
		c.time(func() {
			for range batch {
				run()
			}
		})
	}
	b.ReportMetric(c.median()/a.median(), "run/noop")
	b.ReportMetric(a.median()/batch/1e3, "noop-µs")
	b.ReportMetric(c.median()/batch/1e3, "run-µs")
}

// BenchmarkPipelined is many calls under way at once.
func BenchmarkPipelined(b *testing.B) {
	for _, c := range []struct {
		name    string
		cmd     func() *exec.Cmd
		prepare func(*process)
		tool    string
		input   string
	}{
		{"sdk-noop", func() *exec.Cmd { return self("noop") }, nil, "noop", `{"input":7}`},
		{"run-square", func() *exec.Cmd { return self("mcp-pif", "--log-level=error") }, makeSquare, "run", `{"tool":"square","input":7}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			p := startCommand(b, c.cmd()).open()
			if c.prepare != nil {
				c.prepare(p)
			}
			const window = 64
			room := make(chan struct{}, window)
			var reading sync.WaitGroup
			answers := make(chan struct{})
			reading.Go(func() {
				for range answers {
					if line, err := p.out.ReadSlice('\n'); err != nil || !json.Valid(line) {
						b.Error(err)
						return
					}
					<-room
				}
			})
			id := 0
			for b.Loop() {
				room <- struct{}{}
				id++
				fmt.Fprintf(p.in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`+"\n", id, c.tool, c.input)
				answers <- struct{}{}
			}
			close(answers)
			reading.Wait()
		})
	}
}

// upstreamWord has this test binary be a server with tools that only wait.
const upstreamWord = "__waits"

// waits is the SDK's server with a tool that says it reads and one that says it writes.
func waits() {
	s := mcp.NewServer(&mcp.Implementation{Name: "waits", Version: "1"}, nil)
	type wait struct {
		Ms int `json:"ms"`
	}
	for name, reads := range map[string]bool{"read": true, "write": false} {
		mcp.AddTool(s, &mcp.Tool{Name: name, Description: "waits", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: reads}},
			func(_ context.Context, _ *mcp.CallToolRequest, in wait) (*mcp.CallToolResult, wait, error) {
				time.Sleep(time.Duration(in.Ms) * time.Millisecond)
				return nil, in, nil
			})
	}
	_ = s.Run(context.Background(), &mcp.StdioTransport{})
}

// BenchmarkUpstream is calls of an MCP server's tools by a program, its journal on disk, beside
// the same calls by the bare SDK, in turns. What a bare gRPC call takes, which reads may add 2.5
// times, BenchmarkBareGRPC100 of plugins/host measures:
//
//	go test -run - -bench 'Upstream|BareGRPC100$' ./cmd/mcp-pif ./plugins/host
func BenchmarkUpstream(b *testing.B) {
	exe, err := os.Executable()
	must.NoError(b, err)
	dir := b.TempDir()
	ours := func(args ...string) *exec.Cmd {
		cmd := self("mcp-pif", args...)
		cmd.Env, cmd.Dir = append(cmd.Env, "XDG_STATE_HOME="+dir), dir
		return cmd
	}
	if out, err := ours("mcp", "add", "up", "--yes", "--accept", "--", exe, upstreamWord).CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	must.NoError(b, os.WriteFile(filepath.Join(dir, "policy.json"), []byte(`{"servers":{"up":{"concurrent":64}}}`), 0o600))
	p := startCommand(b, ours("serve", "--policy", "policy.json", "--cap", "up", "--store", "tools.db", "--log-level=error")).open()
	calls := `((n, ms) => fold((s, i) => s + !up.%s({ms: ms}).data.ms, 0, range(n)))`
	p.makes("reads", fmt.Sprintf(calls, "read"), "up")
	p.makes("writes", fmt.Sprintf(calls, "write"), "up")
	p.makes("together", "ms => length(par("+strings.Repeat("!up.read({ms: ms}), ", 63)+"!up.read({ms: ms})))", "up")
	client, err := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil).Connect(b.Context(), &mcp.CommandTransport{Command: exec.Command(exe, upstreamWord)}, nil)
	must.NoError(b, err)
	defer client.Close()
	bare := func(n, ms int) {
		for range n {
			if r, err := client.CallTool(b.Context(), &mcp.CallToolParams{Name: "read", Arguments: map[string]int{"ms": ms}}); err != nil || r.IsError {
				b.Fatal(r, err)
			}
		}
	}
	by := func(tool string, n, ms int) {
		if text, failed := p.runs(tool, map[string]int{"n": n, "ms": ms}); failed {
			b.Fatal(text)
		}
	}
	const batch = 100
	var sdk, reads, writes, sdkSlow, slow, one, all stopwatch
	by("reads", 1, 0) // starts it
	for b.Loop() {
		sdk.time(func() { bare(batch, 0) })
		reads.time(func() { by("reads", batch, 0) })
		writes.time(func() { by("writes", batch, 0) })
		sdkSlow.time(func() { bare(batch/5, 5) })
		slow.time(func() { by("reads", batch/5, 5) })
		one.time(func() { bare(1, 50) })
		all.time(func() {
			if text, failed := p.runs("together", 50); failed || text != "64" {
				b.Fatal(text)
			}
		})
	}
	b.ReportMetric(sdk.median()/batch/1e3, "sdk-µs")
	b.ReportMetric((reads.median()-sdk.median())/batch/1e3, "read-adds-µs")
	b.ReportMetric((writes.median()-sdk.median())/batch/1e3, "write-adds-µs")
	b.ReportMetric(slow.median()/sdkSlow.median(), "5ms/sdk")
	b.ReportMetric(all.median()/one.median(), "64at50ms/one")
}
