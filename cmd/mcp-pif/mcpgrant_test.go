//go:build linux

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/help"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/wait"
	"github.com/mcp-pif/mcp-pif/plugins/mcp/mcptest"
	"github.com/mcp-pif/mcp-pif/plugins/mcplock"
)

// A servedWorld is a state directory whose lock has a scripted server, up.
type servedWorld struct {
	t               *testing.T
	state, log      string
	script, program string
	lock            *mcplock.Lock
}

func newServedWorld(t *testing.T) *servedWorld {
	t.Helper()
	w := &servedWorld{t: t, state: t.TempDir()}
	var err error
	w.program, err = theirs()
	must.NoError(t, err)
	dir := t.TempDir()
	w.log, w.script = filepath.Join(dir, "log"), filepath.Join(dir, "script")
	must.NoError(t, os.WriteFile(w.log, nil, 0o600))
	w.says(mcptest.Script{})
	if w.lock, err = mcplock.ReadOrNew(filepath.Join(w.state, "mcp-pif", mcplock.DefaultName)); err != nil {
		t.Fatal(err)
	}
	s, _, err := w.lock.Locate(w.program, nil)
	must.NoError(t, err)
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
	must.NoError(w.t, os.WriteFile(w.script, cli.Marshal(s), 0o600))
}

func (w *servedWorld) write() {
	w.t.Helper()
	must.NoError(w.t, w.lock.Write(nil))
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
	must.NoError(w.t, err)
	return string(text)
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
		r := p.call("evolve", string(cli.Marshal(map[string]any{"name": "bad", "code": code, "capabilities": []string{"up"}})))
		if !r.IsError && says != "" || !strings.Contains(r.Content[0].Text, says) {
			t.Errorf("%s: %s", code, r.Content[0].Text)
		}
	}
	if w.acted() != strings.Repeat("echo \n", 1)+"typed \ntyped \n" {
		t.Errorf("the server acted upon %q", w.acted())
	}
	p.end()
}

// What the policy file says of a server holds: arguments that it doesn't permit are denied
// before the server hears of them, a removed tool isn't there, and a secret is seen by the
// server alone.
func TestUpstreamPolicy(t *testing.T) {
	t.Parallel()
	w := newServedWorld(t)
	dir := t.TempDir()
	secret := filepath.Join(dir, "token")
	must.NoError(t, os.WriteFile(secret, []byte("swordfish-0123456789"), 0o600))
	policy := filepath.Join(dir, "policy.json")
	says := func(servers string) {
		t.Helper()
		text := `{"grant":["up.note,echo,look*"],"secrets":{"tok":{"for":"up","file":"` + secret + `"}},"servers":` + servers + `}`
		must.NoError(t, os.WriteFile(policy, []byte(text), 0o600))
	}
	says(`{"up":{"env":{"TOKEN":{"secret":"tok"}},"tools":{"note":{"doc":"Writes.","input":{"properties":{"line":{"const":"good"}}}},"look_wait":null}}}`)
	p := w.serve("--policy", policy)
	p.makes("note", `s => !up.note({line: s}).text`, "up.note")
	p.makes("empty", `u => !up.note({}).text`, "up.note")
	if got, failed := p.runs("note", "good"); failed || got != `"noted"` {
		t.Error(got)
	}
	for tool, input := range map[string]any{"note": "evil", "empty": nil} {
		r := p.call("run", string(cli.Marshal(map[string]any{"tool": tool, "input": input})))
		if kind, message := r.fault(); kind != "denied" || !strings.Contains(message, "the operator permits other arguments only") {
			t.Errorf("%s: %s %s", tool, kind, message)
		}
	}
	if w.acted() != "note good\n" {
		t.Errorf("the server acted upon %q", w.acted())
	}
	if r := p.call("help", `{"name":"up.note"}`); strings.Contains(r.Content[0].Text, mcptest.Canary) || !strings.Contains(r.Content[0].Text, "Writes.") {
		t.Errorf("the operator's words don't stand for the server's: %s", r.Content[0].Text)
	}
	if r := p.call("evolve", `{"name":"w","code":"u => !up.look_wait({})","capabilities":["up"]}`); !r.IsError {
		t.Error("a tool that the policy removes is there")
	}
	p.makes("echo", `s => !up.echo({in_: s}).data`, "up.echo")
	if got, _ := p.runs("echo", "the word is swordfish-0123456789"); strings.Contains(got, "swordfish") || !strings.Contains(got, "[secret tok]") {
		t.Errorf("a secret comes back: %s", got)
	}
	if strings.Contains(p.logged(), "swordfish") {
		t.Error("the log has the secret")
	}
	p.end()
	for servers, want := range map[string]string{
		`{"up":{"tools":{"note":{"input":{"properties":{"lime":{"const":"x"}}}}}}}`: "no argument lime",
		`{"up":{"tools":{"note":{"input":{"propertys":{"line":{"const":"x"}}}}}}}`:  "propertys",
		`{"up":{"tools":{"none":null}}}`:                                            "none",
		`{"up":{"tool":{}}}`:                                                        "tool",
		`{"down":{}}`:                                                               "no server",
		`{},"principals":{"ann":{"servers":{"up":{"tools":{"note":{"doc":"x"}}}}}}`: "said for everybody",
		`{"up":{"env":{"TOKEN":{"secret":"other"}}}}`:                               "no secret",
		`{"up":{"env":{"TOKEN":{"secret":"tok","x":1}}}}`:                           "secret",
		`{"up":{"network":["https://api.example.com/x"]}}`:                          "is no origin",
		`{"up":{"network":"some"}}`:                                                 "network",
		`{"up":{"read":["/nowhere/at/all"]}}`:                                       "/nowhere/at/all",
		`{"up":{"write":["` + w.state + `"]}}`:                                      "no tool may reach",
		`{"up":{"tools":{"look":null,"note":null,"echo":null,"look_wait":null}}}`:   "up",
	} {
		says(servers)
		if got := w.refuses("--policy", policy); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %q", servers, got, want)
		}
	}
}

// Before the operator accepts what a server says of its tools, ro grants none, which the start
// says (8 A 4); afterwards it grants what only reads. A grant by a star has what there is at the start.
func TestUpstreamReadOnly(t *testing.T) {
	t.Parallel()
	w := newServedWorld(t)
	p := w.serve("--cap", "up,ro")
	r := p.call("evolve", `{"name":"a","code":"u => !up.look({line: \"x\"})","capabilities":["up"]}`)
	if !r.IsError || !strings.Contains(r.Content[0].Text, "mcp-pif mcp accept up") || strings.Contains(r.Content[0].Text, "in place of") {
		t.Errorf("ro grants what nobody accepted as read-only, or the way on is to drop it: %v", r.Content)
	}
	p.end()
	if !strings.Contains(p.logged(), "mcp-pif mcp accept up") {
		t.Errorf("the start doesn't say that the grant is empty: %s", p.logged())
	}
	if got := w.refuses("--cap", "up.look*,ro"); !strings.Contains(got, "mcp-pif mcp accept up") {
		t.Error(got)
	}
	// A denial by a star denies what is accepted after it, too (8 A 14), and a grant by one grants
	// what there is when the server starts (8 A 5).
	later := w.lock.Servers["up"].Tools["look_wait"]
	delete(w.lock.Servers["up"].Tools, "look_wait")
	w.accept("look", "note") // it claims nothing of note
	if out, _ := w.command("caps", "revoke", "up.look_*").CombinedOutput(); !strings.Contains(string(out), "revoked up.look_*") {
		t.Errorf("%s", out)
	}
	w.lock.Servers["up"].Tools["look_wait"] = later
	w.accept("look_wait")
	p = w.serve("--cap", "up,ro", "--deny", "up.log*")
	p.makes("a", `u => !up.look({line: "x"}).text`, "up.look")
	if got, failed := p.runs("a", nil); failed || got != `"noted"` {
		t.Error(got)
	}
	for _, code := range []string{`u => !up.note({line: \"x\"})`, `u => !up.look_wait({})`} {
		if r := p.call("evolve", `{"name":"b","code":"`+code+`","capabilities":["up"]}`); !r.IsError {
			t.Errorf("%s is granted", code)
		}
	}
	p.end()
}

// A server whose program isn't the one that was added isn't started, and --mcp expects what was
// added.
func TestUpstreamPinned(t *testing.T) {
	t.Parallel()
	w := newServedWorld(t)
	line := w.program + " " + mcptest.Word + " " + w.script
	w.serve("--cap", "up", "--mcp", "up="+line).end()
	for expected, says := range map[string]string{
		"up=" + line + " more":     "mcp-pif mcp show up",
		"up=https://example.com/":  "mcp-pif mcp show up",
		"down=" + line:             "mcp-pif mcp add down -- " + line,
		"down=https://example.com": "mcp-pif mcp add down https://example.com",
		"up":                       "NAME=COMMAND",
	} {
		if got := w.refuses("--mcp", expected); !strings.Contains(got, says) {
			t.Errorf("%s: %s, want %q", expected, got, says)
		}
	}
	s := w.lock.Servers["up"]
	s.Program = "sha256:" + strings.Repeat("0", 64)
	w.write()
	if got := w.refuses("--cap", "up"); !strings.Contains(got, "was changed") || !strings.Contains(got, "mcp-pif mcp upgrade up") {
		t.Error(got)
	}
	w.serve("--cap", "clock:now").end() // who doesn't use it goes on
	exe, err := os.Executable()
	must.NoError(t, err)
	own, _, err := w.lock.Locate(exe, nil)
	must.NoError(t, err)
	s.Program, s.Command = own.Program, append(own.Command, w.lock.Path)
	if exe == own.Command[0] {
		w.write()
		if got := w.refuses("--cap", "up"); !strings.Contains(got, "would call itself") {
			t.Error(got)
		}
	}
}

// A changed tool is held and the others go on; a new one doesn't exist.
func TestUpstreamHeld(t *testing.T) {
	t.Parallel()
	w := newServedWorld(t)
	w.says(mcptest.Script{List: "changed=note"})
	p := w.serve("--cap", "up")
	p.makes("note", `u => !up.note({line: "x"}).text`, "up.note")
	p.makes("look", `u => !up.look({line: "y"}).text`, "up.look")
	r := p.call("run", `{"tool":"note","input":null}`)
	if kind, message := r.fault(); kind != "denied" || !strings.Contains(message, "mcp-pif mcp diff up") {
		t.Errorf("%s %s", kind, message)
	}
	if got, failed := p.runs("look", nil); failed || got != `"noted"` {
		t.Error(got)
	}
	if w.acted() != "look y\n" {
		t.Errorf("the server acted upon %q", w.acted())
	}
	p.end()
}

// TestFindsUpstream: what is granted of a server is counted in list, found by help with the
// server's words in a margin (8 A 1, as mcptest.Canary in all of these tests), and acts in the call that makes the tool.
func TestFindsUpstream(t *testing.T) {
	t.Parallel()
	w := newServedWorld(t)
	p := w.serve("--cap", "up.echo,note", "--ask", "up.fail")
	for _, c := range []struct{ tool, arguments, want string }{
		{"list", `{}`, `"servers":["up: 2 operations granted, 1 ask; help {\"search\":…}"]`},
		{"help", `{"search":"up"}`, "up.echo({filter?, in_?, n?}) → {text, data?: json, parts?}  granted\nup.fail({}) → {text, data?: json, parts?}  asks\nup.note({line?}) →"},
		{"help", `{"name":"up.note"}`, "words of the server up, not of this program:\n  |   does it"},
		{"help", `{"name":"up.look"}`, "up.look isn't granted here"},
		{"evolve", `{"name":"e","code":"x => !up.note(x)","capabilities":["up.note"],"run":{"input":{"line":"a"}}}`, `"run":{"result":{"text":"noted"}`},
	} {
		if r := p.call(c.tool, c.arguments); r.IsError || len(r.Content) == 0 || !strings.Contains(r.Content[0].Text, c.want) {
			t.Errorf("%s %s gives %v, want %s", c.tool, c.arguments, r.Content, c.want)
		}
	}
}

// Arguments whose names are those of the language's own forms stay arguments (8 A 2): the call that
// help shows of a tool is read as that call, in both notations.
func TestAttackFormArguments(t *testing.T) {
	t.Parallel()
	names := []string{"in", "record", "op", "args", "quote", "code"}
	for i := range prim.Table {
		names = append(names, prim.Table[i].Name)
	}
	sets := [][]string{{"func", "arg"}, {"lam", "body"}, {"if", "then", "else"}, {"let", "in"}, {"match", "cases"}, {"fs.read"}, {"call", "input"}, {"up.note"}}
	for _, name := range names {
		sets = append(sets, []string{name}, []string{name, "other"})
	}
	var listed []json.RawMessage
	for i, set := range sets {
		properties := map[string]any{}
		for _, name := range set {
			properties[name] = map[string]any{"type": "string"}
		}
		listed = append(listed, cli.Marshal(map[string]any{"name": fmt.Sprintf("t%d", i), "inputSchema": map[string]any{"type": "object", "properties": properties, "required": set}}))
	}
	tools, err := mcplock.NewTools(listed, nil)
	must.NoError(t, err)
	l := &mcplock.Lock{Servers: map[string]*mcplock.Server{"up": {Command: []string{"/x"}, Tools: tools}}}
	m, err := l.Manifest("up", nil)
	must.NoError(t, err)
	for i := range m.Operations {
		o := &m.Operations[i]
		var want []string
		for _, p := range o.Takes() {
			want = append(want, p.Name)
		}
		slices.Sort(want)
		for _, source := range []string{o.Example(), help.ExampleOf(o)} {
			p, err := core.Compile([]byte(source))
			if err != nil {
				t.Errorf("%s: %v", source, err)
				continue
			}
			effect, _ := p.Term().(*term.Effect)
			if effect == nil || effect.Op != o.Name {
				t.Errorf("%s is no call of %s", source, o.Name)
				continue
			}
			var got []string
			if given, ok := effect.Argument().(*term.Record); ok {
				for _, f := range given.Fields {
					got = append(got, f.Key)
				}
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("%s gives it %q, want %q", source, got, want)
			}
		}
	}
}

// Two grants of a server, and one that asks, have one process and one session of it (8 A 3): what
// one tool leaves there the next finds.
func TestAttackTwoGrants(t *testing.T) {
	t.Parallel()
	w := newServedWorld(t)
	p := w.serve("--cap", "up.note,calls=9", "--cap", "up.echo", "--cap", "up.look,max=1MiB")
	for _, op := range []string{"note", "echo", "look"} {
		p.makes(op, `u => !up.`+op+`({}).text`, "up."+op)
		if got, failed := p.runs(op, nil); failed {
			t.Fatal(got)
		}
	}
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must.NoError(t, err)
	servers := 0
	for _, path := range all {
		if line, err := os.ReadFile(path); err == nil && strings.HasSuffix(string(line), mcptest.Word+"\x00"+w.script+"\x00") {
			servers++
		}
	}
	if servers != 1 {
		t.Errorf("%d processes of one server", servers)
	}
	p.end()
}

// A variable that a server needs comes from this process's environment, and goes to the server
// alone: what looks like a secret by its name is hidden in what comes back.
func TestAttackUpstreamVariable(t *testing.T) {
	t.Parallel()
	w := newServedWorld(t)
	w.lock.Servers["up"].Env = []string{"UP_TOKEN", "UP_MODE"}
	w.write()
	cmd := w.command("serve", "--store=memory", "--cap", "up.echo")
	cmd.Env = append(cmd.Env, "UP_TOKEN=swordfish-0123456789")
	p := startCommand(t, cmd).open()
	p.makes("echo", `s => !up.echo({in_: s}).data`, "up.echo")
	if got, _ := p.runs("echo", "swordfish-0123456789"); strings.Contains(got, "swordfish") {
		t.Errorf("the variable's value comes back: %s", got)
	}
	p.end()
	if log := p.logged(); !strings.Contains(log, "name=UP_MODE") || strings.Contains(log, "name=UP_TOKEN") {
		t.Errorf("the start tells which variables are missing: %s", log)
	}
	cmd = w.command("serve", "--store=memory", "--cap", "up.echo", "--cap", "env:UP_TOKEN")
	cmd.Env = append(cmd.Env, "UP_TOKEN=swordfish-0123456789")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "no tool may read") {
		t.Errorf("tools may read the variable: %s", out)
	}
}

// Principals don't share a login unless the policy says so.
func TestAttackSharedLogin(t *testing.T) {
	t.Parallel()
	w := newServedWorld(t)
	dir := t.TempDir()
	tokens, policy := filepath.Join(dir, "tokens"), filepath.Join(dir, "policy.json")
	must.NoError(t, os.WriteFile(tokens, []byte("ann 0123456789012345678901234567\nbob 1123456789012345678901234567\n"), 0o600))
	for text, refused := range map[string]bool{
		`{"grant":["up"],"servers":{"up":{"headers":{"Authorization":"x"}}}}`:        true,
		`{"principals":{"ann":{"grant":["up"],"servers":{"up":{"env":{"A":"x"}}}}}}`: false,
		`{"grant":["up"],"servers":{"up":{"env":{"A":"x"},"shared":true}}}`:          false,
		`{"grant":["up.note"]}`: false,
	} {
		must.NoError(t, os.WriteFile(policy, []byte(text), 0o600))
		args := []string{"serve", "--store=memory", "--http", "127.0.0.1:0", "--http-tokens", tokens, "--policy", policy}
		if refused {
			if got := w.refuses(args[2:]...); !strings.Contains(got, `"shared": true`) {
				t.Errorf("%s: %s", text, got)
			}
			continue
		}
		p := startCommand(t, w.command(args...))
		wait.Until(t, "it listens", func() bool { return strings.Contains(p.logged(), "http://127.0.0.1") })
	}
}

// What the policy file permits of arguments is read again on SIGHUP.
func TestUpstreamPolicyIsReadAgain(t *testing.T) {
	t.Parallel()
	w := newServedWorld(t)
	policy := filepath.Join(t.TempDir(), "policy.json")
	write := func(line string) {
		t.Helper()
		text := `{"grant":["up.note"],"servers":{"up":{"tools":{"note":{"input":{"properties":{"line":{"const":"` + line + `"}}}}}}}}`
		must.NoError(t, os.WriteFile(policy, []byte(text), 0o600))
	}
	write("one")
	p := w.serve("--policy", policy)
	p.makes("note", `s => !up.note({line: s}).text`, "up.note")
	if got, failed := p.runs("note", "one"); failed {
		t.Fatal(got)
	}
	write("two")
	must.NoError(t, p.cmd.Process.Signal(syscall.SIGHUP))
	wait.Until(t, "the policy was read again", func() bool { return strings.Contains(p.logged(), `msg="the policy was read again"`) })
	p.makes("again", `s => !up.note({line: s}).text`, "up.note")
	if got, failed := p.runs("again", "two"); failed {
		t.Error(got)
	}
	for _, tool := range []string{"note", "again"} {
		if got, failed := p.runs(tool, "one"); !failed {
			t.Errorf("%s: %s", tool, got)
		}
	}
	if w.acted() != "note one\nnote two\n" {
		t.Errorf("the server acted upon %q", w.acted())
	}
	p.end()
}

// A grant is another one if what serves it, holds it or may be asked of it is, and no secret's
// value is in that.
func TestUpstreamIdentity(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, c := range []struct {
		who, command, policy, inherit string
	}{
		{who: "a"}, {who: "b"}, {who: "a", command: "/bin/a"}, {who: "a", inherit: "TOKEN"},
		{who: "a", policy: `{"env":{"A":{"secret":"x"}}}`}, {who: "a", policy: `{"env":{"A":{"secret":"y"}}}`}, {who: "a", policy: `{"env":{"A":"x"}}`},
		{who: "a", policy: `{"headers":{"A":"x"}}`}, {who: "a", policy: `{"network":"any"}`}, {who: "a", policy: `{"elicit":true}`},
		{who: "a", policy: `{"session":"run"}`}, {who: "a", policy: `{"shared":true}`},
		{who: "a", policy: `{"tools":{"a":{"input":{"properties":{"x":{"const":1}}}}}}`}, {who: "a", policy: `{"tools":{"a":{"input":{"properties":{"x":{"const":2}}}}}}`},
	} {
		policy, err := caps.ParseServer([]byte(cmp.Or(c.policy, "{}")))
		must.NoError(t, err)
		var command *caps.Command
		if c.command != "" {
			command = &caps.Command{Args: []string{c.command}}
		}
		got, err := app.IdentityOf(c.who, command, policy, mcplock.Inherited{Env: strings.Fields(c.inherit)})
		if err != nil || seen[got] != "" {
			t.Errorf("%+v is the same as %s: %v", c, seen[got], err)
		}
		seen[got] = fmt.Sprintf("%+v", c)
	}
	base, _ := caps.ParseServer([]byte("{}"))
	for _, text := range []string{`{"concurrent":2,"idle":"1m"}`, `{"tools":{"a":{"doc":"other"},"b":null}}`} {
		policy, err := caps.ParseServer([]byte(text))
		must.NoError(t, err)
		a, _ := app.IdentityOf("a", nil, base, mcplock.Inherited{})
		if b, _ := app.IdentityOf("a", nil, policy, mcplock.Inherited{}); a != b {
			t.Errorf("%s makes another grant", text)
		}
	}
}

// actsElsewhere has effects of what isn't this server's: a model's, an MCP server's, an interpreter's; and of what
// never answers the same.
const actsElsewhere = `i => let t = try(!clock.now({})) in let r = try(!random.seed({})) in let e = try(!env.get({default: "C"})) in
  let m = try(!model.extract({text: i, as: "{n: num}"})) in
  let u = try(!up.note({line: i})) in
  let s = try(!proc.start({})) in
  let id = s.ok ?? "none" in
  let w = try(!proc.send({session: id, text: "print(6 * 7)\n"})) in
  let o = try(!proc.read({session: id, pattern: "42", wait: 600000})) in
  let both = par(try(!up.note({line: i ++ "+"})), try(!model.extract({text: i ++ "+", as: "{n: num}"}))) in
  [i, t, r, e, map(x => has(x, "ok"), [m, u, s, w, o]), map(x => has(x, "ok"), both)]`

// TestTasksSurviveKillElsewhere: as TestTasksSurviveKill, with effects of a model, an MCP server and an interpreter.
func TestTasksSurviveKillElsewhere(t *testing.T) {
	t.Parallel()
	requireProc(t)
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"finish_reason": "stop", "message": map[string]any{"content": `{"found":true,"value":{"n":7}}`}}}})
	}))
	t.Cleanup(endpoint.Close)
	// task.created, run.started, ten requests with their outcomes, run.ended
	for _, at := range killedAt(23, []int{10, -14}) {
		t.Run(strconv.Itoa(at), func(t *testing.T) {
			served, w := newServedWorld(t), newTasksWorld(t)
			w.state = served.state
			w.more = []string{
				"--task-timeout=30m", "--cap", "clock:utc", "--cap", "random:seed", "--cap", "env:LANG", "--cap", "up.note", "--cap", "model:small",
				"--model", "small=" + endpoint.URL + "/v1,model=m", "--cap", capPython, "--proc", mapsPython,
			}
			w.survives(t, at, actsElsewhere, []string{"clock:utc", "random:seed", "env:LANG", "up.note", "model:small", "proc:python3"}, func(input, result string, _ int) {
				done := 0
				for _, line := range []string{input, input + "+"} {
					times := strings.Count(served.acted(), "note "+line+"\n")
					if done += times; times > 1 {
						t.Errorf("%s was noted %d times", line, times)
					}
				}
				var got [6]json.RawMessage
				var alone, both []bool // whether the program was told that it was done
				if json.Unmarshal([]byte(result), &got) != nil || json.Unmarshal(got[4], &alone) != nil || json.Unmarshal(got[5], &both) != nil {
					t.Fatalf("the result is %s", result)
				}
				for _, told := range []bool{alone[1], both[0]} {
					if told {
						done--
					}
				}
				if done < 0 {
					t.Errorf("a note that wasn't made is told as done: %s", result)
				}
			})
		})
	}
}
