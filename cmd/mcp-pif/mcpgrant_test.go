//go:build linux

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/plugins/mcp/mcptest"
	"github.com/mcp-pif/mcp-pif/plugins/mcplock"
)

// A servedWorld is a state directory whose lock has a scripted server, up.
type servedWorld struct {
	t            *testing.T
	state, log   string
	script, self string
	lock         *mcplock.Lock
}

func newServedWorld(t *testing.T) *servedWorld {
	t.Helper()
	w := &servedWorld{t: t, state: t.TempDir()}
	var err error
	if w.self, err = os.Executable(); err == nil {
		w.self, err = filepath.EvalSymlinks(w.self)
	}
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	w.log, w.script = filepath.Join(dir, "log"), filepath.Join(dir, "script")
	if err := os.WriteFile(w.log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.says(mcptest.Script{})
	if w.lock, err = mcplock.ReadOrNew(filepath.Join(w.state, "mcp-pif", mcplock.DefaultName)); err != nil {
		t.Fatal(err)
	}
	s, _, err := w.lock.Locate(w.self, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Command = append(s.Command, mcptest.Word, w.script)
	s.Read, s.Write = []string{w.script}, []string{w.log}
	s.Protocol, s.Info, s.Added = "2025-11-25", mcplock.Info{Name: "mcptest", Version: "1"}, "2026-11-23"
	if s.Tools, err = mcplock.NewTools(mcptest.Tools(), nil); err != nil {
		t.Fatal(err)
	}
	w.lock.Servers["up"] = s
	w.write()
	return w
}

// says is what the server does from now on.
func (w *servedWorld) says(s mcptest.Script) {
	w.t.Helper()
	s.Log = w.log
	if err := os.WriteFile(w.script, marshal(s), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *servedWorld) write() {
	w.t.Helper()
	if err := w.lock.Write(); err != nil {
		w.t.Fatal(err)
	}
}

// accept takes the server's word for some of its tools.
func (w *servedWorld) accept(words ...string) {
	w.t.Helper()
	for _, word := range words {
		tool := w.lock.Servers["up"].Tools[word]
		tool.Accepted, tool.AcceptedOn = &tool.Claims, "2026-11-23"
	}
	w.write()
}

// command is this program with the world's state.
func (w *servedWorld) command(args ...string) *exec.Cmd {
	cmd := self("mcp-pif", args...)
	cmd.Env = append(cmd.Env, "XDG_STATE_HOME="+w.state)
	cmd.Dir = w.t.TempDir()
	return cmd
}

// serve starts a server whose tools are kept in memory.
func (w *servedWorld) serve(args ...string) *process {
	w.t.Helper()
	return startCommand(w.t, w.command(append([]string{"serve", "--store=memory", "--timeout=30m"}, args...)...)).open()
}

// refuses starts a server that doesn't start, and gives what it says.
func (w *servedWorld) refuses(args ...string) string {
	w.t.Helper()
	out, err := w.command(append([]string{"serve", "--store=memory"}, args...)...).CombinedOutput()
	if err == nil {
		w.t.Errorf("%q: it starts", args)
	}
	return string(out)
}

// acted is the lines that the server wrote when it was called.
func (w *servedWorld) acted() string {
	w.t.Helper()
	text, err := os.ReadFile(w.log)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
}

// fault is the kind and message of a failure.
func (r toolReply) fault() (kind, message string) {
	var e struct{ Kind, Message string }
	_ = json.Unmarshal(r.StructuredContent["error"], &e)
	return e.Kind, e.Message
}

// A program calls the tools of a server that the lock has, typed and exact, and no other.
func TestUpstreamCalls(t *testing.T) {
	t.Parallel()
	w := newServedWorld(t)
	p := w.serve("--cap", "up.echo,typed,note")
	p.makes("echo", `r => !up.echo({in_: "x", n: r.n}).data`, "up.echo")
	if got, failed := p.runs("echo", map[string]any{"n": json.Number("9007199254740993")}); failed || got != `{"in":"x","n":9007199254740993}` {
		t.Error(got)
	}
	p.makes("typed", `s => map(i => i.number, !up.typed({data: s}).data.issues)`, "up.typed")
	if got, failed := p.runs("typed", `{"issues":[{"number":7},{"number":1e1}]}`); failed || got != "[7,10]" {
		t.Error(got)
	}
	r := p.call("run", `{"tool":"typed","input":"{\"issues\":[{\"number\":\"seven\"}]}"}`)
	if kind, message := r.fault(); kind != "outcome_unknown" || strings.Contains(message, mcptest.Canary) {
		t.Errorf("an answer of another type: %s %s", kind, message)
	}
	for code, says := range map[string]string{
		`u => !up.look({line: "x"})`:              "up.look", // not granted
		`u => !up.echo("x")`:                      "up.echo", // a record
		`u => !up.note({line: 5})`:                "line",    // another type
		`u => !up.none({})`:                       "up.none", // not there
		`u => !up.note({line: "x", in: "other"})`: "",
	} {
		r := p.call("evolve", string(marshal(map[string]any{"name": "bad", "code": code, "capabilities": []string{"up"}})))
		if !r.IsError && says != "" || !strings.Contains(r.Content[0].Text, says) {
			t.Errorf("%s: %s", code, r.Content[0].Text)
		}
	}
	if w.acted() != strings.Repeat("echo \n", 1)+"typed \ntyped \n" {
		t.Errorf("the server acted upon %q", w.acted())
	}
	p.end()
}
