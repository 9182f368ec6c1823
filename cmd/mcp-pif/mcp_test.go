//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/plugins/host"
	"github.com/mcp-pif/mcp-pif/plugins/mcp/mcptest"
	"github.com/mcp-pif/mcp-pif/plugins/mcplock"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// does runs a command in the world, and returns what it prints and whether it succeeded.
func (w *servedWorld) does(args ...string) (out string, isOK bool) {
	w.t.Helper()
	text, err := w.command(args...).CombinedOutput()
	return string(text), err == nil
}

// prints runs a command that has to succeed and to print these words.
func (w *servedWorld) prints(args []string, words ...string) {
	w.t.Helper()
	out, isOK := w.does(args...)
	for _, word := range words {
		isOK = isOK && strings.Contains(out, word)
	}
	if !isOK {
		w.t.Errorf("mcp-pif %q, which has to print %q:\n%s", args, words, out)
	}
}

// fails runs a command that has to fail and to print these words.
func (w *servedWorld) fails(args []string, words ...string) {
	w.t.Helper()
	out, isOK := w.does(args...)
	for _, word := range words {
		isOK = isOK || !strings.Contains(out, word)
	}
	if isOK {
		w.t.Errorf("mcp-pif %q, which has to fail and print %q:\n%s", args, words, out)
	}
}

// A server is added from its command line, looked at, tried, accepted, held to what was
// added when it changes, upgraded and removed, all by commands.
func TestMCPCommands(t *testing.T) {
	t.Parallel()
	w := newServedWorld(t)
	line := []string{w.program, mcptest.Word, w.script}
	flags := []string{"--read", w.script, "--write", w.log, "--yes", "--"}
	for _, command := range []string{w.program, t.TempDir()} {
		w.fails([]string{"mcp", "add", "second", command, "npx", "-y", "pkg"}, "put -- before the command")
	}
	w.prints(append(append([]string{"mcp", "add", "second"}, flags...), line...), "tools, pinned to", "by its own word these only read", "grant it with --cap second")
	w.fails(append(append([]string{"mcp", "add", "second"}, flags...), line...), "there is a server second already")
	w.fails([]string{"mcp", "add", "fs", "--", w.program}, "reserved")
	w.fails([]string{"mcp", "add", "third", "--", "npx", "server@latest"}, "isn't one exact version")
	w.fails([]string{"mcp", "add", "third", "--env", "TOKEN=abc123", "--", "npx", "server@latest"}, "fewer than 8 characters", "--env NAME without the value")
	w.fails([]string{"mcp", "add", "third", "--", "docker", "run", "image:latest"}, "by its digest")
	w.fails([]string{"mcp", "add", "third", "http://example.com/mcp"}, "without encryption")
	w.fails([]string{"mcp", "add", "third", "wss://example.com/mcp"}, "begins with https, or http on this machine, not with wss")
	w.fails([]string{"mcp", "add", "third", "--network", "https://example.com/x", "--", w.program}, "--network", "is no origin")
	w.prints([]string{"mcp", "list"}, "SERVER", "second", "up", "ok")
	w.prints([]string{"mcp", "show", "second", "echo"}, "words of the server second, not of this program", "takes")
	w.fails([]string{"mcp", "add", "third", "--", "sh", "no-such.sh"}, "there is no file no-such.sh")
	w.fails([]string{"mcp", "show", "second", "ecko"}, "has no tool ecko", "did you mean echo?")
	w.prints([]string{"mcp", "try", "second"}, "echo", "words of the server second, not of this program:\n  | "+mcptest.Canary)
	w.prints([]string{"mcp", "show", "second"}, "instructions sha256:", "'mcp-pif mcp try second' prints them")
	calls := filepath.Join(t.TempDir(), "calls.json")
	for text, says := range map[string]string{
		`[{"tool":"second.echo","input":{"n":9007199254740993},"data":{"n":9007199254740993.0}},{"tool":"second.fail","fails":true,"has":"it failed"},{"tool":"up.note","text":"noted"}]`: "",
		`[{"tool":"second.echo","input":{"n":1},"data":{"n":2}}]`:        `second.echo  its data are {"n":1}`,
		`[{"tool":"second.note","data":{}}]`:                             "second.note  its data are none",
		`[{"tool":"second.note","has":"x"},{"tool":"second.note"}]`:      "second.note  its text is noted",
		`[{"tool":"second.fail"}]`:                                       "second.fail  it fails: it failed: \\x1b[31m" + mcptest.Canary,
		`[{"tool":"second.echo","fails":true}]`:                          "second.echo  it doesn't fail",
		`[{"tool":"second.none"}]`:                                       "--calls: call 1: the server has no tool none",
		`[{"tool":"third.echo"}]`:                                        "--calls: call 1: there is no server third",
		`[{"tool":"second.echo","expect":{}}]`:                           "--calls: json: unknown field",
		`[{"tool":"second.fail","fails":true}] [{"tool":"second.none"}]`: "--calls: there is something after the list",
	} {
		must.NoError(t, os.WriteFile(calls, []byte(text), 0o600))
		args := []string{"mcp", "test", "second", "--calls", calls}
		if says == "" {
			w.prints(args, "second.echo  as it was written down", "second.fail  as it was written down")
			w.prints(append(args, "--json"), `"tool": "second.fail"`)
			continue
		}
		w.fails(args, says)
	}
	w.prints([]string{"mcp", "try", "second", "--tool", "echo", "--input", `{"in":"x","n":9007199254740993}`}, "9007199254740993")
	w.prints(append([]string{"mcp", "try", "third", "--read", w.script, "--write", w.log, "--"}, line...), "echo")
	w.prints([]string{"mcp", "try", "second", "echo", `{"n":9007199254740993}`}, "9007199254740993")
	w.fails([]string{"mcp", "try", "second", "fail"}, "the tool answers that it failed")
	w.fails([]string{"mcp", "try", "second", "ecko"}, "the server has no tool ecko, but ", "did you mean echo?")
	w.fails([]string{"mcp", "accept", "second", "echo"}, "not a terminal, so it can't ask")
	if out, _ := w.does("mcp", "accept", "second", "echo"); strings.Contains(out, "(accepted ") {
		t.Errorf("it is accepted before that is asked: %s", out)
	}
	w.prints([]string{"mcp", "accept", "second", "echo", "--as", "read-only"}, "reads only", "--cap second,ro now grants echo")
	w.fails([]string{"mcp", "accept", "second", "--as", "harmless"}, "read-only, idempotent, destructive or open-world")

	w.says(mcptest.Script{Noise: "hello \x1b[2J"})
	store := filepath.Join(t.TempDir(), "tools.db")
	p := w.serve("--cap", "second,ro", "--store", store)
	p.makes("echo", `r => !second.echo({in_: r.text, n: 1}).data.n`, "second.echo")
	if got, failed := p.runs("echo", map[string]any{"text": "x"}); failed || got != "1" {
		t.Error(got)
	}

	w.prints([]string{"doctor"}, "second         ok", "up             ok")
	w.prints([]string{"help", "second.echo"}, "!second.echo({", "words of the server second, not of this program", "--cap second.echo grants it")
	other := filepath.Join(t.TempDir(), "other.json")
	w.prints(append(append([]string{"mcp", "add", "elsewhere", "--mcp-lock", other}, flags...), line...), "added elsewhere")
	w.fails([]string{"help", "elsewhere.echo"}, "no command, operation or topic")
	w.prints([]string{"help", "elsewhere.echo", "--mcp-lock", other}, "!elsewhere.echo({")
	w.fails([]string{"caps", "revoke", "elsewhere.ech*"}, "no kind of that name is known")
	w.fails([]string{"caps", "revoke", "elsewhere.ech*", "--mcp-lock", other}, "revoked elsewhere.ech*") // of no server that runs
	w.prints([]string{"caps", "restore", "elsewhere.ech*", "--mcp-lock", other}, "restored")
	w.prints([]string{"mcp", "logs", "second", "--store", store}, `hello \x1b[2J`)
	w.says(mcptest.Script{})
	w.prints([]string{"mcp", "test"}, "second: its", "up: its")
	w.says(mcptest.Script{List: "words=echo"})
	w.fails([]string{"mcp", "test", "second"}, "second.echo  HELD: its words changed", "now it says something else")
	w.fails([]string{"mcp", "diff", "second", "--json"}, `"echo": "its words changed"`)
	w.prints([]string{"__complete", "mcp", "accept", "second", "e"}, "echo")
	w.fails([]string{"doctor"}, "second         differs", "1 tool changed", "mcp-pif mcp diff second")
	w.fails([]string{"mcp", "upgrade", "second"}, "HELD", "nothing was written")
	w.fails([]string{"mcp", "diff", "second"}, "HELD")
	w.prints([]string{"mcp", "upgrade", "second", "--accept"}, "wrote")
	w.prints([]string{"mcp", "diff", "second"}, "tools are as accepted")
	if out, isOK := w.does("mcp", "upgrade", "second"); !isOK || strings.Contains(out, "nothing was written") {
		t.Errorf("an upgrade to what there is says %s", out)
	}
	w.prints([]string{"mcp", "show", "second", "echo"}, "until accepted", "| now it says something else")
	w.says(mcptest.Script{List: "renamed=note"})
	w.prints([]string{"mcp", "upgrade", "second", "--accept"}, "note_2  new, which is note under another name", "second.note  gone", "mcp-pif mcp accept second",
		"--cap second, and one with a star that fits, now grants note_2, too")
	w.prints([]string{"mcp", "remove", "second"}, "removed second")
	// What a server has for clients that may be asked is there where it may ask.
	w.says(mcptest.Script{List: "asked=ask"})
	w.prints(append(append([]string{"mcp", "add", "asks"}, flags...), line...), "added asks")
	w.fails([]string{"mcp", "show", "asks", "ask"}, "has no tool ask")
	w.prints([]string{"mcp", "upgrade", "asks", "--elicit", "--accept"}, "ask  new", "asking you by forms", "now grants ask")
	w.prints([]string{"mcp", "test", "asks"}, "as accepted")
	p = w.serve("--cap", "asks.ask", "--cap", "ask")
	p.makes("ask", `u => !asks.ask({method: "elicitation/create"}).text`, "asks.ask", "ask")
	if got, failed := p.runs("ask", nil); failed || !strings.Contains(got, "decline") { // this client has nobody to ask
		t.Error(got)
	}
	p.end()
	w.prints([]string{"mcp", "remove", "asks"}, "removed asks")
	w.says(mcptest.Script{Noise: "TOKEN is missing", DieAt: "initialize"})
	w.fails(append(append([]string{"mcp", "add", "third"}, flags...), line...), "TOKEN is missing", "doesn't start")
	w.fails([]string{"mcp", "show", "second"}, "there is no server second", "but up")
}

// Who answers at a URL under another name than was added is told by all commands that look, and taken by one.
func TestMCPOtherServer(t *testing.T) {
	t.Parallel()
	w := newServedWorld(t)
	web := httptest.NewServer(&mcptest.HTTP{Script: mcptest.FromFile(w.script)})
	t.Cleanup(web.Close)
	t.Cleanup(web.CloseClientConnections)
	w.prints([]string{"mcp", "add", "web", web.URL + "/mcp", "--yes"}, "added web")
	w.prints([]string{"mcp", "diff", "web"}, "as accepted")
	l, err := mcplock.Read(w.lock.Path)
	must.NoError(t, err)
	l.Servers["web"].Info.Name = "theirs"
	must.NoError(t, l.Write(nil))
	says := `who answers at its URL is \"scripted-` + mcptest.Canary + `\", and \"theirs\" was added`
	w.fails([]string{"mcp", "diff", "web"}, "web  HELD: "+strings.ReplaceAll(says, `\"`, `"`))
	w.fails([]string{"mcp", "test", "web", "--json"}, "another server answers at its URL")
	w.fails([]string{"doctor"}, "web            differs", "theirs was added")
	w.prints([]string{"mcp", "upgrade", "web", "--accept"}, "HELD", "wrote")
	w.prints([]string{"mcp", "test", "web"}, "as accepted")
}

// Headers that a server is given are not sent to another origin in an upgrade, unless they are given for it.
func TestMCPUpgradeHeaders(t *testing.T) {
	t.Parallel()
	w := newServedWorld(t)
	var mu sync.Mutex
	sent := map[string]bool{}
	web := func(value string) string {
		server := &mcptest.HTTP{Script: mcptest.FromFile(w.script)}
		s := httptest.NewServer(http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
			mu.Lock()
			sent[value+" "+r.URL.Path+" "+r.Header.Get("Authorization")] = true
			mu.Unlock()
			server.ServeHTTP(to, r)
		}))
		t.Cleanup(s.Close)
		t.Cleanup(s.CloseClientConnections)
		return s.URL
	}
	first, second := web("first"), web("second")
	w.prints([]string{"mcp", "add", "web", first + "/mcp", "--yes", "--header", "Authorization=Bearer secret-0123456789"}, "added web", "kept as a secret")
	w.prints([]string{"mcp", "upgrade", "web", "--accept", "--", first + "/other"}, "wrote")
	w.fails([]string{"mcp", "upgrade", "web", "--", second + "/mcp"}, "Authorization isn't sent to another origin: give it with --header")
	w.prints([]string{"mcp", "upgrade", "web", "--accept", "--header", "Authorization=Bearer second-0123456789", "--", second + "/other"}, "wrote")
	mu.Lock()
	defer mu.Unlock()
	for _, want := range []string{"first /mcp Bearer secret-0123456789", "first /other Bearer secret-0123456789", "second /mcp ", "second /other Bearer second-0123456789"} {
		if !sent[want] {
			t.Errorf("%q isn't sent: %v", want, sent)
		}
		delete(sent, want)
	}
	if len(sent) > 0 {
		t.Errorf("there is more: %v", sent)
	}
}

// A server is tried in the sandbox that it will have, and what it fails for is proposed as the
// flags that would give it that (8 A 13): a file, the network, a variable, its own folder.
func TestAttackSandboxProposals(t *testing.T) {
	t.Parallel()
	w := newServedWorld(t)
	line := []string{"--yes", "--", w.program, mcptest.Word, w.script}
	add := func(flags ...string) []string {
		return append(append([]string{"mcp", "add", "third"}, flags...), line...)
	}
	if host.System().Holds() {
		w.fails(add(), "permission denied", "if it may, --read "+w.script)
	}
	flags := []string{"--read", w.script, "--write", w.log}
	for _, c := range []struct{ says, proposes string }{
		{"Error: getaddrinfo EAI_AGAIN api.example.com", "if it may, --network https://api.example.com"},
		{"API_TOKEN environment variable is required", "if it may, --env API_TOKEN=VALUE"},
		{"open /srv/$(reboot): Permission denied", "doesn't speak MCP\n"}, // would be more than a path to a shell
	} {
		w.says(mcptest.Script{Noise: c.says, DieAt: "initialize"})
		w.fails(add(flags...), c.proposes, "words of the server third, not of this program:\n  | "+c.says)
	}
	w.says(mcptest.Script{DieAt: "initialize"})
	w.fails(add(flags...), "no session with it can be made: it ended before it answered\n", "doesn't speak MCP\n")
	w.says(mcptest.Script{})
	w.prints(add("--read", filepath.Dir(w.script), "--write", w.log), "added third")
	folder := t.TempDir()
	must.NoError(t, os.Mkdir(filepath.Join(folder, "app"), 0o700))
	must.NoError(t, os.WriteFile(filepath.Join(folder, "app", "main"), nil, 0o600))
	w.fails([]string{"mcp", "add", "fourth", "--", "sh", filepath.Join(folder, "app", "main")}, "copying "+filepath.Join(folder, "app")+", where ", " main is started", "doesn't speak MCP")
}

// A server that may reach one origin reaches that through the proxy and nothing else: no other
// origin by the proxy, nothing around it by TCP, UDP or a unix socket, and no name that leads
// to this machine.
func TestMCPNetwork(t *testing.T) {
	t.Parallel()
	if why := host.Isolation(); why != "" {
		t.Skip(why)
	}
	w := newServedWorld(t)
	var hits atomic.Int64
	hello := func(words string) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			hits.Add(1)
			_, _ = io.WriteString(w, words)
		}))
		t.Cleanup(s.Close)
		t.Cleanup(s.CloseClientConnections)
		return s
	}
	listed, other := hello("hello from the origin"), hello("hello from another")
	socket := filepath.Join(t.TempDir(), "s")
	unix, err := net.Listen("unix", socket)
	must.NoError(t, err)
	defer unix.Close()
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	must.NoError(t, err)
	defer packets.Close()

	s := w.lock.Servers["up"]
	s.Network = []string{listed.URL, "http://localhost:" + strings.Split(other.URL, ":")[2]}
	w.write()
	w.prints([]string{"mcp", "test", "up"}, "as accepted")
	p := w.serve("--cap", "up.reach")
	p.makes("reach", `r => !up.reach(r).text`, "up.reach")
	for _, c := range []struct {
		way, at string
		reaches bool
		says    string
	}{
		{"proxy", listed.URL, true, "hello from the origin"},
		{"proxy", other.URL, false, "403"},
		{"proxy", "http://localhost:" + strings.Split(other.URL, ":")[2], false, "502"},
		{"proxy", strings.Replace(other.URL, "http:", "https:", 1), false, "Forbidden"},
		{"direct", listed.URL, false, "failed"},
		{"direct", other.URL, false, "failed"},
		{"tcp", "1.1.1.1:443", false, "failed"},
		{"tcp", strings.TrimPrefix(listed.URL, "http://"), false, "failed"},
		{"udp", packets.LocalAddr().String(), false, "failed"},
		{"unix", socket, false, "failed"},
	} {
		before := hits.Load()
		r := p.call("run", string(cli.Marshal(map[string]any{"tool": "reach", "input": map[string]any{"way": c.way, "url": c.at}})))
		if got := r.Content[0].Text; r.IsError || !strings.Contains(got, c.says) || (hits.Load() > before) != c.reaches {
			t.Errorf("%s %s: %s, %d requests; want %q", c.way, c.at, got, hits.Load()-before, c.says)
		}
	}
	if log := p.logged(); !strings.Contains(log, "origins") || !strings.Contains(log, "isn't among the origins") {
		t.Errorf("the log tells neither of the layer nor of what was refused:\n%s", log)
	}
	p.end()

	// Without a layer it isn't silent.
	p = w.serve("--cap", "up.reach", "--sandbox=off")
	p.makes("reach", `r => !up.reach(r).text`, "up.reach")
	if got, failed := p.runs("reach", json.RawMessage(`{"way":"proxy","url":"`+listed.URL+`"}`)); failed || !strings.Contains(got, "hello from the origin") {
		t.Error(got)
	}
	if log := p.logged(); !strings.Contains(log, "isn't held to its origins") {
		t.Errorf("the log doesn't say that nothing holds it:\n%s", log)
	}
	p.end()
}

// A client with a person before it, who fills in n with 7.
type clientWithPerson struct {
	*mcp.ClientSession
	t     *testing.T
	mu    sync.Mutex
	asked []*mcp.ElicitParams
}

// newClient starts this program for a client in a version of the protocol.
func (w *servedWorld) newClient(version string, args ...string) *clientWithPerson {
	w.t.Helper()
	c := &clientWithPerson{t: w.t}
	o := &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.asked = append(c.asked, r.Params)
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"n": 7}}, nil
	}}
	var err error
	c.ClientSession, err = mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o).
		Connect(w.t.Context(), &mcp.CommandTransport{Command: w.command(append([]string{"serve", "--log-level=error"}, args...)...)}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	must.NoError(w.t, err)
	w.t.Cleanup(func() { c.Close() })
	return c
}

// does calls a tool of this program's.
func (c *clientWithPerson) does(tool string, args map[string]any) (text string, failed bool) {
	c.t.Helper()
	res, err := c.CallTool(c.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	must.NoError(c.t, err)
	return res.Content[0].(*mcp.TextContent).Text, res.IsError
}

// A server that the operator lets ask reaches the user in the runs of tools that may ask
// themselves: its words are in the margin or in quotes, the answer goes to it, both are on
// record, and a replay asks nobody. Without either leave nobody is asked.
func TestUpstreamAsks(t *testing.T) {
	t.Parallel()
	form := func(name, more string) string {
		return fmt.Sprintf(`{"mode":"form","message":"How many?\n%[1]s","requestedSchema":{"type":"object","properties":{%[2]q:{"type":"integer","title":"T %[1]s","description":"D %[1]s","minimum":1%[3]s}},"required":[%[2]q]}}`, mcptest.Canary, name, more)
	}
	for i, era := range eras {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			w := newServedWorld(t)
			if i == 0 {
				w.lock.Servers["up"].Protocol = mcptest.Stateless
				w.write()
				w.says(mcptest.Script{Era: mcptest.Stateless})
			}
			policy := filepath.Join(t.TempDir(), "policy.json")
			says := func(elicit bool) {
				t.Helper()
				text := fmt.Sprintf(`{"grant":["up.ask","ask"],"servers":{"up":{"elicit":%t}}}`, elicit)
				must.NoError(t, os.WriteFile(policy, []byte(text), 0o600))
			}
			says(true)
			c := w.newClient(era, "--policy", policy)
			makes := func(name string, capabilities ...string) {
				t.Helper()
				if text, failed := c.does("evolve", map[string]any{"name": name, "code": `p => !up.ask({method: "elicitation/create", params: p}).text`, "capabilities": capabilities}); failed {
					t.Fatal(text)
				}
			}
			makes("may", "up.ask", "ask")
			makes("may_not", "up.ask")
			text, failed := c.does("run", map[string]any{"tool": "may", "input": form("n", "")})
			if failed || !strings.Contains(text, `"n":7`) {
				t.Errorf("it gives %s", text)
			}
			if len(c.asked) != 1 {
				t.Fatalf("the user was asked %d times", len(c.asked))
			}
			asked, _ := json.Marshal(c.asked[0])
			for _, want := range []string{`The MCP server \"up\" asks you`, `run of your tool \"may\", version 1`, `\n  |   How many?\n  |   ` + mcptest.Canary, `"title":"\"T ` + mcptest.Canary, `"description":"\"D ` + mcptest.Canary} {
				if !strings.Contains(string(asked), want) {
					t.Errorf("the user reads %s, without %s", asked, want)
				}
			}
			for tool, input := range map[string]string{
				"may_not": form("n", ""), "may": `{"mode":"url","message":"x","url":"https://evil.example/","elicitationId":"1"}`,
			} {
				if text, _ := c.does("run", map[string]any{"tool": tool, "input": input}); !strings.Contains(text, "decline") {
					t.Errorf("%s: %s", tool, text)
				}
			}
			for _, name := range []string{"password", "apiKey", "access_token", "PIN"} {
				if text, _ := c.does("run", map[string]any{"tool": "may", "input": form(name, "")}); !strings.Contains(text, "decline") {
					t.Errorf("%s: %s", name, text)
				}
			}
			if len(c.asked) != 1 {
				t.Errorf("the user was asked %d times", len(c.asked))
			}
			c.Close()
			prints := func(want string, args ...string) string {
				t.Helper()
				out, err := w.command(args...).CombinedOutput()
				if err != nil || !strings.Contains(string(out), want) {
					t.Errorf("%q: %s, %v; want %s", args, out, err, want)
				}
				return string(out)
			}
			w.says(mcptest.Script{Silent: "tools/call"})
			var runs []struct{ Run string }
			if err := json.Unmarshal([]byte(prints("may", "journal", "runs", "--json")), &runs); err != nil || len(runs) == 0 {
				t.Fatal(err)
			}
			prints("identical", "replay", runs[0].Run)
			prints(`the server asked the user`, "journal", "show", runs[0].Run)
			prints(`accept  {"n":7}`, "journal", "show", runs[0].Run)
			if all := prints(`"effect.asked"`, "journal", "export"); strings.Contains(all, mcptest.State) {
				t.Error("the journal has what stands for a session (8 A 8)")
			}
		})
	}
}

// What help lists of a server at a shell names commands, and says of nothing that it is granted.
func TestHelpAtShell(t *testing.T) {
	t.Parallel()
	said := "up: calls the MCP server up\nup.a({}) → {text}  granted\nand 14 more: help {\"search\":…} finds those of a word"
	if got := asked(said, "up"); got != "up: calls the MCP server up\nup.a({}) → {text}\nand 14 more: 'mcp-pif mcp show up' lists all" {
		t.Error(got)
	}
}
