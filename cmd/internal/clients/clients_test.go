package clients

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/cmd/internal/nodejs"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// patience is how long a client may take for its whole tour. It takes seconds.
const patience = 15 * time.Minute

// A way is how to start a client.
type way struct {
	name  string
	start func(t *testing.T, p *place, era string) client
	eras  []string // that it knows
}

const (
	legacy = "legacy"
	modern = "modern"
)

var ways = []way{
	{"sdk", node("sdk"), []string{legacy}},
	{"client", node("client"), []string{legacy, modern}},
	{"mcp-go", inGo, []string{legacy, modern}},
	{"inspector", inspect, []string{legacy, modern}},
}

// seldom is for what takes a process for each request: it does the tour over either
// transport and in either era once, and all four ways with PIF_FULL.
func (w way) seldom(era string, http bool) bool {
	return w.name == "inspector" && http != (era == modern) && os.Getenv("PIF_FULL") == ""
}

// TestTour: every client does everything, over both transports, in the eras it knows.
func TestTour(t *testing.T) {
	for _, w := range ways {
		for _, era := range w.eras {
			for _, http := range []bool{false, true} {
				if w.seldom(era, http) {
					continue
				}
				over := "stdio"
				if http {
					over = "http"
				}
				t.Run(w.name+"/"+era+"/"+over, func(t *testing.T) {
					t.Parallel()
					p := newPlace(t, http)
					tour(t, w.start(t, p, era), p.dir)
				})
			}
		}
	}
}

// A driven client is a program that does what it is told, line by line.
type driven struct {
	in  io.WriteCloser
	out *bufio.Reader
	log *wait.Log
}

// node drives a client in Node.js.
func node(pkg string) func(*testing.T, *place, string) client {
	return func(t *testing.T, p *place, era string) client {
		exe := nodejs.Require(t, ".", "@modelcontextprotocol/"+pkg)
		script, err := filepath.Abs("drive.mjs")
		must.NoError(t, err)
		return drive(t, p, era, exe, script, pkg, era)
	}
}

var driver = sync.OnceValues(func() (string, error) { return build("mcpgo", "mcpgo") })

// fetched is nil where the modules that mcpgo needs are there.
var fetched = sync.OnceValue(func() error {
	cmd := exec.Command("go", "mod", "download")
	cmd.Dir = "mcpgo"
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
})

// inGo drives mcp-go.
func inGo(t *testing.T, p *place, era string) client {
	if err := fetched(); err != nil && os.Getenv("PIF_REQUIRE_NODE") != "1" {
		t.Skipf("mcp-go can't be had: %v", err)
	}
	exe, err := driver()
	must.NoError(t, err)
	return drive(t, p, era, exe, era)
}

// drive starts a program that drives a client to a server.
func drive(t *testing.T, p *place, era string, command ...string) *driven {
	t.Helper()
	if p.url != "" {
		command = append(command, "--http", p.url, token)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	command = append(command, p.command...)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.Env = p.dir, p.env
	cmd.WaitDelay = 10 * time.Second
	d := &driven{log: new(wait.Log)}
	cmd.Stderr = d.log
	in, err := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	must.NoError(t, errors.Join(err, err2))
	d.in, d.out = in, bufio.NewReader(out)
	must.NoError(t, cmd.Start())
	t.Cleanup(func() {
		defer cancel()
		in.Close()
		_, _ = io.Copy(io.Discard, d.out)
		if err := cmd.Wait(); err != nil && !t.Failed() {
			t.Errorf("the client ended with %v: %s", err, d.log)
		}
	})
	var hello struct{ Version string }
	must.NoError(t, json.Unmarshal(d.line(t), &hello))
	if hello.Version != "" && (hello.Version >= "2026") != (era == modern) {
		t.Fatalf("the client speaks %s, not that of the %s era", hello.Version, era)
	}
	t.Logf("speaks %s", hello.Version)
	return d
}

func (d *driven) line(t *testing.T) []byte {
	t.Helper()
	line, err := d.out.ReadBytes('\n')
	if err != nil {
		t.Fatalf("the client is gone: %v: %s", err, d.log)
	}
	return line
}

// do has the client do something.
func (d *driven) do(t *testing.T, result any, order map[string]any) {
	t.Helper()
	line, err := json.Marshal(order)
	if err == nil {
		_, err = d.in.Write(append(line, '\n'))
	}
	must.NoError(t, err)
	var answer struct {
		Result json.RawMessage
		Failed string
	}
	must.NoError(t, json.Unmarshal(d.line(t), &answer))
	if answer.Failed != "" {
		t.Fatalf("the client failed at %s: %s", line, answer.Failed)
	}
	must.NoError(t, json.Unmarshal(answer.Result, result))
}

// A toolList is what tools/list gives.
type toolList struct{ Tools []struct{ Name string } }

func (l toolList) names() (names []string) {
	for _, t := range l.Tools {
		names = append(names, t.Name)
	}
	return names
}

func (d *driven) tools(t *testing.T) []string {
	t.Helper()
	var list toolList
	d.do(t, &list, map[string]any{"do": "list"})
	return list.names()
}

func (d *driven) call(t *testing.T, tool, arguments string) (r reply) {
	t.Helper()
	d.do(t, &r, map[string]any{"do": "call", "tool": tool, "arguments": json.RawMessage(arguments)})
	return r
}

func (d *driven) ask(t *testing.T, method, params string, result any) bool {
	t.Helper()
	d.do(t, result, map[string]any{"do": "ask", "method": method, "params": json.RawMessage(params)})
	return true
}

func (d *driven) watch(t *testing.T, uri string) bool {
	t.Helper()
	var ok bool
	d.do(t, &ok, map[string]any{"do": "watch", "uri": uri})
	return ok
}

func (d *driven) updates(t *testing.T) (n int) {
	t.Helper()
	d.do(t, &n, map[string]any{"do": "updated"})
	return n
}

func (d *driven) changes(t *testing.T) (n int, hears bool) {
	t.Helper()
	d.do(t, &n, map[string]any{"do": "changed"})
	return n, true
}
