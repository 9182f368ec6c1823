//go:build linux

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/core/wait"
	"github.com/mcp-pif/mcp-pif/plugins/internal/jsonvalue"
	"github.com/mcp-pif/mcp-pif/plugins/internal/keeper"
	"github.com/mcp-pif/mcp-pif/plugins/internal/sandbox"
	"github.com/mcp-pif/mcp-pif/plugins/mcp/mcptest"
	"github.com/mcp-pif/mcp-pif/plugins/mcplock"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// TestMain lets the test binary be the scripted server, its keeper and the launcher.
func TestMain(m *testing.M) {
	sandbox.Main()
	keeper.Main()
	mcptest.Main()
	servePlugin()
	os.Exit(m.Run())
}

// patience is how long tests wait for what has to come.
const patience = time.Minute

// A world is a scripted server and the plugin that stands for it.
type world struct {
	*sdk.Handle
	t        testing.TB
	upstream *upstream
	script   mcptest.Script
	file     string
	http     *mcptest.HTTP // nil: it is a process
	log      *wait.Log     // the operator's
	state    string
	command  *sdk.Command
}

// each runs a test over every transport and era.
func each(t *testing.T, test func(t *testing.T, w *world)) {
	for name, o := range map[string]struct {
		era  string
		http bool
	}{"stdio": {}, "http": {http: true}, "stdio 2026": {mcptest.Stateless, false}, "http 2026": {mcptest.Stateless, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newWorld(t, mcptest.Script{Era: o.era}, o.http, nil))
		})
	}
}

// newWorld makes a world. more changes the settings.
func newWorld(t testing.TB, script mcptest.Script, overHTTP bool, more func(*Settings)) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t, script: script, file: filepath.Join(dir, "script"), log: &wait.Log{}, state: t.TempDir()}
	w.script.Log = filepath.Join(dir, "log")
	w.write()
	tools, err := mcplock.NewTools(mcptest.Tools(), nil)
	must.NoError(t, err)
	yes := true
	for _, tool := range tools {
		if tool.Claims.ReadOnly != nil {
			tool.Accepted = &mcplock.Hints{ReadOnly: &yes}
		}
	}
	s := Settings{Name: "srv", Server: &mcplock.Server{Protocol: lastWithSessions, Added: "2026-11-03", Tools: tools}, Concurrent: 64}
	if script.Era != "" {
		s.Server.Protocol = script.Era
	}
	c := sdk.Capability{Max: 1 << 20, State: w.state}
	if overHTTP {
		w.http = &mcptest.HTTP{Script: mcptest.FromFile(w.file)}
		server := httptest.NewServer(w.http)
		t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
		s.Server.URL = server.URL
	} else {
		exe, err := os.Executable()
		must.NoError(t, err)
		mode := sandbox.Off
		if sandbox.System().Holds() {
			mode = sandbox.Require
		}
		c.Command = &sdk.Command{
			Args: []string{exe, mcptest.Word, w.file}, Path: exe, Read: []string{dir}, Write: []string{dir}, Memory: 1 << 30, Processes: 64, FileSize: 1 << 30, Sandbox: string(mode),
		}
		s.Server.Command, w.command = c.Command.Args, c.Command
	}
	if more != nil {
		more(&s)
	}
	u, p := pluginOf(t, s)
	u.log.to, w.upstream = w.log, u
	if w.Handle, err = sdk.Direct(context.Background(), p, c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.Handle.Close()
		if t.Failed() {
			t.Logf("log:\n%.5000s", w.log.String())
		}
	})
	return w
}

// pluginOf is the plugin of settings, and the upstream in it.
func pluginOf(t testing.TB, s Settings) (*upstream, sdk.Plugin) {
	t.Helper()
	p, err := Plugin(s)
	must.NoError(t, err)
	c, err := p.Open(context.Background(), sdk.Capability{})
	must.NoError(t, err)
	u := c.(*capability).u
	u.opened-- // that one isn't closed
	return u, p
}

// write has the server follow the script.
func (w *world) write() {
	w.t.Helper()
	b, err := json.Marshal(w.script)
	if err == nil {
		err = os.WriteFile(w.file+".new", b, 0o600)
	}
	if err == nil {
		err = os.Rename(w.file+".new", w.file)
	}
	must.NoError(w.t, err)
}

// set changes the script.
func (w *world) set(change func(*mcptest.Script)) {
	change(&w.script)
	w.write()
}

// lines is what the server did, by its own log.
func (w *world) lines() []string {
	b, err := os.ReadFile(w.script.Log)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

// call calls a tool with arguments in JSON.
func (w *world) call(ctx context.Context, word, args string) (value.Value, error) {
	w.t.Helper()
	v, ok := jsonvalue.Read(args)
	if !ok {
		w.t.Fatalf("%s is no JSON", args)
	}
	return w.Invoke(ctx, "srv."+word, v)
}

// gives calls a tool that succeeds, and holds the answer to JSON.
func (w *world) gives(word, args, want string) {
	w.t.Helper()
	v, err := w.call(w.context(), word, args)
	if err != nil {
		w.t.Fatalf("%s %s: %v", word, args, err)
	}
	if got := shown(w.t, v); got != want {
		w.t.Errorf("%s %s gives\n%s, want\n%s", word, args, got, want)
	}
}

// fails calls a tool that fails with a code and a message that has a part.
func (w *world) fails(word, args, code, says string) sdk.Failure {
	w.t.Helper()
	v, err := w.call(w.context(), word, args)
	return w.failed(v, err, code, says)
}

func (w *world) failed(v value.Value, err error, code, says string) sdk.Failure {
	w.t.Helper()
	f, ok := errors.AsType[sdk.Failure](err)
	if !ok {
		w.t.Fatalf("it gave %v, %v; want a failure", v, err)
	}
	if f.Code != code || !strings.Contains(f.Message, says) {
		w.t.Fatalf("%v, want %s with %q", f, code, says)
	}
	if strings.Contains(f.Message+f.Hint, mcptest.Canary) {
		w.t.Errorf("the server's words are ours: %v, %s", f, f.Hint)
	}
	return f
}

func (w *world) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	w.t.Cleanup(cancel)
	return ctx
}

func shown(t testing.TB, v value.Value) string {
	t.Helper()
	s, err := jsonvalue.Write(v)
	must.NoError(t, err)
	return s
}

// until waits for something that has to come.
func (w *world) until(what string, so func() bool) {
	w.t.Helper()
	for end := time.Now().Add(patience); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("%s: it didn't come; log:\n%s", what, w.log.String())
		}
	}
}
