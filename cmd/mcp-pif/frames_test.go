package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// frames writes lines that a hostile or broken client might send: sentences of a
// grammar of JSON-RPC and MCP, most of them then damaged. The same seed gives the same
// lines. None is longer than a few kilobytes, but one in two thousand, which is longer
// than a line may be; none takes a server more than a moment.
type frames struct{ *rand.Rand }

func newFrames(seed uint64) frames { return frames{rand.New(rand.NewPCG(seed, 1))} }

// one picks one.
func (f frames) one(of ...string) string { return of[f.IntN(len(of))] }

// line is the next line. It may hold newlines, and so be several.
func (f frames) line() string {
	if f.IntN(2000) == 0 {
		return `{"jsonrpc":"2.0","id":"long","method":"tools/call","params":{"name":"run","arguments":{"code":"` + strings.Repeat("x", 17<<20) + `"}}}`
	}
	line := f.message()
	switch f.IntN(20) {
	case 0:
		line = "[" + line + "," + f.message() + "]"
	case 1:
		line = f.value(3)
	}
	for range f.IntN(4) {
		line = f.damage(line)
	}
	return line
}

// message is a request, a notification or a response.
func (f frames) message() string {
	members := []string{`"jsonrpc":` + f.rarely(`"2.0"`, `"1.0"`, `2.0`, `null`, `["2.0"]`)}
	if f.IntN(6) > 0 {
		members = append(members, `"id":`+f.id())
	}
	switch f.IntN(12) {
	case 0:
		members = append(members, `"result":`+f.value(3))
	case 1:
		members = append(members, `"error":`+f.one(`{"code":-32603,"message":"no"}`, f.value(2)))
	default:
		method := f.method()
		members = append(members, `"method":`+quoted(method))
		if f.IntN(10) > 0 {
			members = append(members, `"params":`+f.rarely(f.params(method), f.value(3), `null`, `[]`))
		}
	}
	if f.IntN(10) == 0 {
		members = append(members, members[f.IntN(len(members))])
	}
	f.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return "{" + strings.Join(members, f.rarely(",", " ,", ", ")) + "}"
}

// rarely is mostly the first, sometimes one of the others.
func (f frames) rarely(usual string, odd ...string) string {
	if f.IntN(8) > 0 {
		return usual
	}
	return f.one(odd...)
}

func (f frames) id() string {
	return f.rarely(fmt.Sprint(f.IntN(50)), `"s"`, `""`, `null`, `1.5`, `-1`, `1e3`, `9007199254740993`, `1e400`, `{}`, `[1]`, `true`, quoted(strings.Repeat("i", 3000)))
}

func (f frames) method() string {
	return f.one("tools/call", "tools/call", "tools/call", "tools/call", "tools/list", "ping", "initialize",
		"server/discover", "subscriptions/listen", "resources/list", "resources/read", "resources/templates/list",
		"resources/subscribe", "resources/unsubscribe", "prompts/list", "prompts/get", "completion/complete", "logging/setLevel",
		"notifications/initialized", "notifications/cancelled", "notifications/progress", "notifications/roots/list_changed",
		"sampling/createMessage", "elicitation/create", "roots/list", "tasks/get", "rpc.discover", "", "nope", strings.Repeat("m", 2000))
}

func (f frames) params(method string) string {
	var members []string
	switch method {
	case "tools/call":
		name, arguments := f.call()
		members = []string{`"name":` + f.rarely(quoted(name), f.value(1)), `"arguments":` + f.rarely(arguments, f.value(3), quoted(arguments))}
	case "initialize":
		members = []string{`"protocolVersion":` + f.one(`"2025-11-25"`, `"2024-11-05"`, `"2026-07-28"`, `"x"`, `5`), `"capabilities":` + f.rarely(`{}`, f.value(2)), `"clientInfo":` + f.rarely(`{"name":"c","version":"1"}`, f.value(2))}
	case "notifications/cancelled":
		members = []string{`"requestId":` + f.id()}
	case "subscriptions/listen":
		members = []string{`"notifications":` + f.rarely(`{"toolsListChanged":true}`, f.value(2))}
	case "resources/read", "resources/subscribe", "resources/unsubscribe":
		members = []string{`"uri":` + f.one(`"pif://language"`, `"pif://tools/a"`, `"pif://tools/..%2f..%2fetc"`, `"file:///etc/passwd"`, `"%"`, `""`, f.value(1))}
	case "prompts/get":
		members = []string{`"name":` + f.one(`"make_tool"`, `"nope"`, f.value(1)), `"arguments":` + f.value(2)}
	case "completion/complete":
		members = []string{`"ref":` + f.rarely(`{"type":"ref/prompt","name":"make_tool"}`, f.value(2)), `"argument":` + f.rarely(`{"name":"name","value":"a"}`, f.value(2))}
	case "tools/list", "resources/list", "prompts/list":
		members = []string{`"cursor":` + f.one(`""`, `"x"`, `"YWZ0ZXI6YQ"`, f.value(1))}
	}
	switch f.IntN(6) {
	case 0:
		members = append(members, `"_meta":`+f.value(2))
	case 1:
		members = append(members, `"_meta":{"progressToken":`+f.id()+`}`)
	case 2, 3:
		members = append(members, `"_meta":{"io.modelcontextprotocol/protocolVersion":`+f.rarely(`"2026-07-28"`, `"2025-11-25"`, `"9"`, `1`)+
			`,"io.modelcontextprotocol/clientInfo":`+f.rarely(`{"name":"c","version":"1"}`, f.value(1))+
			`,"io.modelcontextprotocol/clientCapabilities":`+f.rarely(`{}`, f.value(2))+`}`)
	}
	return "{" + strings.Join(members, ",") + "}"
}

// call is a call of a tool, which may be a right one.
func (f frames) call() (name, arguments string) {
	switch f.IntN(10) {
	case 0:
		return "evolve", `{"name":` + f.one(`"a"`, `"b.c"`, `"run"`, `"../x"`, `""`, f.value(1)) + `,"code":` + f.code() + `,"capabilities":` + f.one(`[]`, `["fs:/"]`, f.value(2)) + `}`
	case 1:
		return "retire", `{"name":` + f.one(`"a"`, `"b.c"`, f.value(1)) + `}`
	case 2:
		return f.one("list", "help", "describe", "history", "journal"), `{` + f.one(``, `"name":"a"`, `"limit":`+f.value(1), `"after":`+f.value(1), `"category":"lists"`) + `}`
	case 3:
		return f.one("a", "b.c", "nope", "__proto__", strings.Repeat("n", 500)), `{"input":` + f.value(3) + `}`
	}
	return "run", `{"code":` + f.code() + `,"input":` + f.value(2) + f.one(``, `,"steps":`+f.value(1), `,"steps":5000`, `,"drive":true`, `,"memory":1`) + `}`
}

func (f frames) code() string {
	return f.one(`{"add":[1,2]}`, `"n => n * n"`, `{"lam":"n","body":{"mul":[{"var":"n"},{"var":"n"}]}}`, `{"div":[1,0]}`,
		`{"var":"x"}`, `"((("`, `"!fs.read({path: \"/etc/passwd\"})"`, `{"app":{"func":1,"arg":2}}`, `{"eval":{"quote":{"var":"x"}}}`,
		`{"add":`+f.value(3)+`}`, f.value(4))
}

// value is any JSON.
func (f frames) value(depth int) string {
	if depth > 0 && f.IntN(3) == 0 {
		parts := make([]string, f.IntN(4))
		object := f.IntN(2) == 0
		for i := range parts {
			if parts[i] = f.value(depth - 1); object {
				parts[i] = quoted(f.one("a", "name", "__proto__", "", "jsonrpc", "input", "code", "\x00", "é")) + ":" + parts[i]
			}
		}
		if object {
			return "{" + strings.Join(parts, ",") + "}"
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	return f.one(`0`, `-0`, `1`, `-7`, `1.5`, `1e999`, `-1e-999`, `9223372036854775808`, strings.Repeat("9", 400), `true`, `false`, `null`, `""`, `"a"`,
		`"\ud800"`, `"\u0000"`, `"😀"`, quoted(strings.Repeat("long ", 200)), strings.Repeat("[", 60)+strings.Repeat("]", 60), `{"a":1,"a":2}`)
}

// damage changes a few bytes.
func (f frames) damage(line string) string {
	if line == "" {
		return line
	}
	i := f.IntN(len(line))
	switch f.IntN(8) {
	case 0:
		return line[:i]
	case 1:
		return line[i:]
	case 2:
		return line[:i] + f.one(`"`, `{`, `}`, `[`, `]`, `,`, `:`, `\`, "\x00", "\xff", "\n", "\r", "\u2028", " ", "é", "\xef\xbb\xbf") + line[i:]
	case 3:
		return line[:i] + string(rune(line[i]^byte(1<<f.IntN(7)))) + line[i+1:]
	case 4:
		j := i + f.IntN(min(len(line)-i, 20))
		return line[:i] + line[j:]
	case 5:
		j := i + f.IntN(min(len(line)-i, 200))
		return line[:j] + line[i:]
	case 6:
		return line + f.one(" ", "\t", "}", " x", line)
	}
	return line // some are left whole
}

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// hostileFrames is how many are sent.
func hostileFrames() int {
	if full() {
		return 10_000
	}
	return 1000
}

// TestHostileFrames: whatever lines come, the server says nothing but JSON-RPC, a right
// call after each hundred is answered rightly, and it ends well within its memory.
func TestHostileFrames(t *testing.T) {
	t.Parallel()
	const seed = 20261121
	p := start(t, "--log-level=error").open()
	f := newFrames(seed)
	for sent := 0; sent < hostileFrames(); sent += 100 {
		var lines strings.Builder
		for range 100 {
			lines.WriteString(f.line() + "\n")
		}
		id := fmt.Sprintf(`"right-%d"`, sent)
		go io.WriteString(p.in, lines.String()+fmt.Sprintf(
			`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"run","arguments":{"code":%s,"input":%d}}}`+"\n", id, square, sent))
		if r := p.tool(p.answer(id)); r.IsError || r.Content[0].Text != fmt.Sprint(sent*sent) {
			t.Fatalf("seed %d, after %d lines a right call gave %s", seed, sent+100, r.Content[0].Text)
		}
	}
	p.still(t)
	t.Logf("at most %d MiB were resident", p.peak()>>20)
	p.in.Close()
	rest, _ := io.ReadAll(p.out) // of listeners that end, and of calls that took longer
	onlyJSONRPC(t, rest)
	if err := p.wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
	if log := p.logged(); strings.Contains(log, "panic") {
		t.Errorf("the log tells of a panic: %.2000s", log)
	}
}

func onlyJSONRPC(t *testing.T, output []byte) {
	t.Helper()
	for line := range strings.Lines(string(output)) {
		var m message
		if err := json.Unmarshal([]byte(line), &m); err != nil || m.Version != "2.0" {
			t.Errorf("the server wrote what is not JSON-RPC: %.300q", line)
		}
	}
}

// TestOnlyJSONRPC: at every level of the log, the most talkative too, nothing but
// JSON-RPC is on standard output while calls fail in all ways.
func TestOnlyJSONRPC(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{{"--log-level=debug"}, {"--log-level=info"}, {"--log-level=warn"}, {"--log-level=error"}, {"--log-level=debug", "--trace", "--cap", "fs:" + t.TempDir()}} {
		t.Run(strings.Join(flags[:min(2, len(flags))], " "), func(t *testing.T) {
			var lines strings.Builder
			f := newFrames(7)
			lines.WriteString(initialize + "\n")
			for range 300 {
				lines.WriteString(f.line() + "\n")
			}
			for i, code := range []string{omega, `{"div":[1,0]}`, `"!fs.read({path: \"nope\"})"`, `"((("`} {
				fmt.Fprintf(&lines, `{"jsonrpc":"2.0","id":"c%d","method":"tools/call","params":{"name":"run","arguments":{"code":%s,"steps":10000}}}`+"\n", i, code)
			}
			cmd := self("mcp-pif", flags...)
			cmd.Stdin = strings.NewReader(lines.String())
			out, err := cmd.Output()
			if err != nil {
				t.Errorf("the server ended with %v", err)
			}
			onlyJSONRPC(t, out)
			if n := strings.Count(string(out), "\n"); n < 100 {
				t.Errorf("%d lines came back", n)
			}
		})
	}
}

// TestFailingStart: a server that can't start says why on standard error, and nothing
// on standard output.
func TestFailingStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken.db")
	must.NoError(t, os.WriteFile(broken, []byte("no database at all"), 0o600))
	for _, flags := range [][]string{
		{"--nope"}, {"nope"}, {"--log-level=loud"}, {"--cap", "nonsense"}, {"--cap", "fs:" + filepath.Join(dir, "missing")},
		{"--store", broken}, {"--policy", broken}, {"--timeout=x"}, {"--steps"},
		{"--http", "nowhere"}, {"--http", "256.256.256.256:1"}, {"serve", "--http", "127.0.0.1:0", "--http-tokens", broken},
	} {
		t.Run(strings.Join(flags[:1], " "), func(t *testing.T) {
			cmd := self("mcp-pif", flags...)
			cmd.Stdin = strings.NewReader(initialize + "\n")
			var log strings.Builder
			cmd.Stderr = &log
			if out, err := cmd.Output(); err == nil || len(out) > 0 || log.Len() == 0 {
				t.Errorf("%v: ended with %v, standard output has %.200q, standard error %.200q", flags, err, out, log.String())
			}
			if strings.Contains(log.String(), "goroutine ") {
				t.Errorf("%v: %s", flags, log.String())
			}
		})
	}
}

// TestSlowClient: a client that sends a great deal before it reads anything is held
// back, not given up: in the end everything is answered, some of it by the word that it
// was too much, and the server hasn't kept it all in memory.
func TestSlowClient(t *testing.T) {
	t.Parallel()
	p := start(t, "--log-level=error", "--max-result=64KiB").open()
	const calls, size = 500, 40 << 10
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		text := quoted(strings.Repeat("x", size))
		for i := range calls {
			if _, err := fmt.Fprintf(p.in, `{"jsonrpc":"2.0","id":"s%d","method":"tools/call","params":{"name":"run","arguments":{"code":{"lam":"x","body":{"var":"x"}},"input":%s}}}`+"\n", i, text); err != nil {
				return
			}
		}
	}()
	// For a while nobody reads, so that nobody writes any more either: what there is to
	// say is forty megabytes.
	select {
	case <-sent:
	case <-time.After(2 * time.Second):
	}
	seen, done := map[rawText]bool{}, 0
	for len(seen) < calls {
		m := p.receive()
		if m.Method != "" {
			continue
		}
		if seen[m.ID] {
			t.Fatalf("%s was answered twice", m.ID)
		}
		seen[m.ID] = true
		if m.Error != nil && m.Error.Code == -32000 {
			continue
		}
		if r := p.tool(m); r.IsError || len(r.Content[0].Text) != size+2 {
			t.Fatalf("%s gave %.200s", m.ID, r.Content[0].Text)
		}
		done++
	}
	wait.For(t, sent, "the end of sending")
	if done < calls/4 {
		t.Errorf("only %d of %d calls were done", done, calls)
	}
	p.still(t)
	t.Logf("%d of %d calls were done; at most %d MiB were resident", done, calls, p.peak()>>20)
	p.end()
}

// TestClientGone: a client that closes its end of standard output, or is gone, ends the
// server without a signal, and without a word on standard error that looks like a crash.
func TestClientGone(t *testing.T) {
	t.Parallel()
	cmd := self("mcp-pif", "--log-level=warn")
	read, write, err := os.Pipe()
	must.NoError(t, err)
	cmd.Stdout = write
	in, err := cmd.StdinPipe()
	must.NoError(t, err)
	var log strings.Builder
	cmd.Stderr = &log
	must.NoError(t, cmd.Start())
	write.Close()
	read.Close()
	for range 1000 {
		if _, err := io.WriteString(in, initialize+"\n"+`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`+"\n"); err != nil {
			break // it has ended, as it should
		}
	}
	// Standard input stays open: it must have ended by itself.
	defer time.AfterFunc(wait.Limit(t), func() { _ = cmd.Process.Kill() }).Stop()
	err = cmd.Wait()
	if err != nil || strings.Contains(log.String(), "panic") {
		t.Errorf("the server ended with %v: %s", err, log.String())
	}
	in.Close()
}

// sandboxed starts a server in a new folder with the files, and the flags.
func sandboxed(t testing.TB, files map[string]string, flags ...string) (*process, string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		must.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	cmd := self("mcp-pif", flags...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+t.TempDir())
	return startCommand(t, cmd).open(), dir
}

// makes evolves a tool.
func (p *process) makes(name, code string, capabilities ...string) {
	p.t.Helper()
	r := p.call("evolve", string(cli.Marshal(map[string]any{"name": name, "code": code, "capabilities": capabilities})))
	if r.IsError {
		p.t.Fatalf("evolve %s: %s", name, r.Content[0].Text)
	}
}

// runs runs a tool and gives what it says.
func (p *process) runs(tool string, input any) (text string, failed bool) {
	p.t.Helper()
	r := p.call("run", string(cli.Marshal(map[string]any{"tool": tool, "input": input, "input_as": "data"})))
	return r.Content[0].Text, r.IsError
}

// checked runs check, and gives its exit status and what it prints.
func checked(t *testing.T, args ...string) (status int, out string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status = command(append([]string{"check"}, args...), strings.NewReader(""), &stdout, &stderr)
	return status, stdout.String()
}

// TestCheckStatus: the exit status says what came of a check.
func TestCheckStatus(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	missing := filepath.Join(t.TempDir(), "none.db")
	for _, c := range []struct {
		status int
		args   []string
	}{
		{0, []string{"x => x + 1"}},
		{0, []string{"x => parse_json(x) + 1"}},
		{1, []string{"--strict", "x => parse_json(x) + 1"}},
		{1, []string{`x => x - "a"`}},
		{1, []string{"x => !fs.read(x)"}},
		{2, []string{"x =>"}},
		{2, []string{"--json", "x =>"}},
		{2, []string{}},
		{2, []string{"--file", missing}},
		{2, []string{"--tool", "it", "1"}},
		{2, []string{"--store", missing, "--tool", "it"}},
		{0, []string{"x => x", "--equal", "y => y"}},
		{1, []string{"x => x", "--equal", "y => 1"}},
		{2, []string{"x => x", "--equal", "y =>"}},
		{2, []string{"x =>", "--equal", "y => y"}},
		{2, []string{"x => x", "--equal", ""}},
		{2, []string{"--store", missing, "--tool", "it", "--equal", "y => y"}},
		{0, []string{"x => x + x", "--equal", "x => 2 * x"}},
		{3, []string{"x => x + x + x", "--equal", "x => 3 * x"}},
	} {
		if got, out := checked(t, c.args...); got != c.status {
			t.Errorf("check %q exits with %d, want %d\n%s", c.args, got, c.status, out)
		}
	}
}

// TestCheckJSON: the document has every member that is promised, whatever the
// code, and lists where there is nothing.
func TestCheckJSON(t *testing.T) {
	promised := map[string]reflect.Kind{
		"ok": reflect.Bool, "hash": reflect.String, "type": reflect.String, "params": reflect.Slice, "result": reflect.String,
		"sound": reflect.Bool, "problems": reflect.Slice, "unknown": reflect.Slice, "effects": reflect.Slice, "open": reflect.Bool,
		"cannot": reflect.Slice, "least": reflect.Slice, "certificate": reflect.Map, "notes": reflect.Slice,
	}
	for _, code := range []string{
		"1", "x => x", `x => x - "a"`, "x => !fs.read({path: x})", "q => eval(q)", "x => self(x)", "x + y",
		"x => " + strings.Repeat("[", 2_000) + strings.Repeat("]", 2_000),
		"x => [" + strings.Repeat(`1 - "a", `, 300) + "1]",
	} {
		status, out := checked(t, "--json", code)
		var doc map[string]any
		if err := json.Unmarshal([]byte(out), &doc); err != nil {
			t.Errorf("%.60s: %v", code, err)
			continue
		}
		for name, kind := range promised {
			if got := reflect.ValueOf(doc[name]).Kind(); got != kind {
				t.Errorf("%.60s: %s is a %s, not a %s", code, name, got, kind)
			}
		}
		if doc["ok"] != (status == 0) {
			t.Errorf("%.60s: ok is %v, and the status %d", code, doc["ok"], status)
		}
		if cost, ok := doc["cost"].(map[string]any); ok && cost["class"] == "" {
			t.Errorf("%.60s: the cost is %v", code, cost)
		}
	}
	if _, out := checked(t, "--json", "x => ["+strings.Repeat(`1 - "a", `, 300)+"1]"); !strings.Contains(out, `"more": 200`) {
		t.Error("300 problems are cut without a word")
	}
}

// TestCheckPrintable: what turns the direction of text, or moves the cursor, doesn't
// reach a terminal, wherever it stands in the code.
func TestCheckPrintable(t *testing.T) {
	for _, code := range []string{
		"{\"add\":[\"\u202e\u0085\",1]}", "\u202e => 1", `{"lam":"\u001b[2J","body":{"add":["\u202e",{"var":"\u009b"}]}}`,
		`{"lam":"x","body":{"get":[{"record":{"\u001b]0;":1}},"\u202e"]}}`, `{"\u202ea.b":1}`, `{"call":{"tool":"\u202e","input":1}}`,
	} {
		if _, out := checked(t, code); strings.ContainsAny(out, "\u202e\u0085\u009b\x1b") {
			t.Errorf("check %q prints %q", code, out)
		}
	}
}

// edited is a session of an editor: what it sends, and what has to be in the answer of
// the server to that; "" where there is none.
var edited = []struct{ method, params, says string }{
	{"initialize", `{}`, `"hoverProvider":true`},
	{"initialized", `{}`, ""},
	{"textDocument/didOpen", `{"textDocument":{"uri":"a","text":"n => if n < 0 then \"é𝄞\" else n - \"s\""}}`, `"start":{"line":0,"character":32},"end":{"line":0,"character":33}`},
	{"textDocument/didChange", `{"textDocument":{"uri":"a"},"contentChanges":[{"text":"n => n +"}]}`, `"code":"parse_error"`},
	{"textDocument/formatting", `{"textDocument":{"uri":"a"}}`, `"result":[]`},
	{"textDocument/didChange", `{"textDocument":{"uri":"a"},"contentChanges":[{"text":"// of numbers\nlist=>list|>sum"}]}`, `"diagnostics":[]`},
	{"textDocument/hover", `{"textDocument":{"uri":"a"},"position":{"line":1,"character":1}}`, `"value":"list: list[num]"`},
	{"textDocument/hover", `{"textDocument":{"uri":"a"},"position":{"line":1,"character":5}}`, `(list[num]) -\u003e num\ncost: linear`},
	{"textDocument/hover", `{"textDocument":{"uri":"a"},"position":{"line":1,"character":13}}`, `sum (library)`},
	{"textDocument/completion", `{"textDocument":{"uri":"a"},"position":{"line":1,"character":14}}`, `"label":"list"`},
	{"textDocument/formatting", `{"textDocument":{"uri":"a"}}`, `"newText":"// of numbers\nlist =\u003e list |\u003e sum\n"`},
	{"textDocument/didOpen", `{"textDocument":{"uri":"b","text":"p => !fs.re"}}`, `"uri":"b"`},
	{"textDocument/completion", `{"textDocument":{"uri":"b"},"position":{"line":0,"character":11}}`, `"label":"fs.read","textEdit":{"newText":"fs.read","range":{"start":{"line":0,"character":6},"end":{"line":0,"character":11}}}`},
	{"textDocument/didOpen", `{"textDocument":{"uri":"c","text":"list => list.su(1)"}}`, `"uri":"c"`},
	{"textDocument/completion", `{"textDocument":{"uri":"c"},"position":{"line":0,"character":15}}`, `"label":"sum","textEdit":{"newText":"sum","range":{"start":{"line":0,"character":13},"end":{"line":0,"character":15}}}`},
	{"textDocument/didChange", `{"textDocument":{"uri":"c"},"contentChanges":[{"text":"list => list.sum(1)"}]}`, `"uri":"c"`},
	{"textDocument/hover", `{"textDocument":{"uri":"c"},"position":{"line":0,"character":14}}`, `sum (library)`},
	{"textDocument/didOpen", `{"textDocument":{"uri":"d","text":"// é\nr => let x = r.name ++ \"é\", n = 2 in n * x.length + r.next.a"}}`, `"uri":"d"`},
	{"textDocument/hover", `{"textDocument":{"uri":"d"},"position":{"line":1,"character":9}}`, `"value":"x: string"`},
	{"textDocument/hover", `{"textDocument":{"uri":"d"},"position":{"line":1,"character":38}}`, `"value":"n: int"`},
	{"textDocument/hover", `{"textDocument":{"uri":"d"},"position":{"line":1,"character":57}}`, `"value":"next: {a?: num, *: a}"`},
	{"textDocument/hover", `{"textDocument":{"uri":"d"},"position":{"line":0,"character":3}}`, `-\u003e num\ncost`},
	{"textDocument/didChange", `{"textDocument":{"uri":"d"},"contentChanges":[{"text":"rows => map(rows => rows.count + 1, rows)"}]}`, `"uri":"d"`},
	{"textDocument/hover", `{"textDocument":{"uri":"d"},"position":{"line":0,"character":1}}`, `"value":"rows: list[{count?: num, *: a}]"`},
	{"textDocument/hover", `{"textDocument":{"uri":"d"},"position":{"line":0,"character":27}}`, `"value":"count: num"`},
	{"textDocument/didClose", `{"textDocument":{"uri":"c"}}`, `"params":{"diagnostics":[],"uri":"c"}`},
	{"textDocument/hover", `{"textDocument":{"uri":"gone"},"position":{"line":7,"character":7}}`, `"result":null`},
	{"no/such", `{}`, `-32601`},
	{"shutdown", `{}`, `"result":null`},
	{"exit", `{}`, ""},
}

// TestLSP has each message of a session answered.
func TestLSP(t *testing.T) {
	t.Parallel()
	var in, out, errs bytes.Buffer
	for i, m := range edited {
		id := fmt.Sprintf(`"id":%d,`, i)
		if strings.Contains(m.method, "/did") || m.method == "initialized" || m.method == "exit" {
			id = ""
		}
		body := fmt.Sprintf(`{"jsonrpc":"2.0",%s"method":%q,"params":%s}`, id, m.method, m.params)
		fmt.Fprintf(&in, "Content-Length: %d\r\n\r\n%s", len(body), body)
	}
	if status := command([]string{"lsp"}, &in, &out, &errs); status != 0 {
		t.Fatalf("status %d: %s", status, &errs)
	}
	for _, m := range edited {
		if m.says == "" {
			continue
		}
		var n int
		if _, err := fmt.Fscanf(&out, "Content-Length: %d\r\n\r\n", &n); err != nil {
			t.Fatalf("%s: %v", m.method, err)
		}
		body := make([]byte, n)
		if _, err := io.ReadFull(&out, body); err != nil || !json.Valid(body) || !bytes.Contains(body, []byte(m.says)) {
			t.Errorf("%s %s: there is no %s in %s, %v", m.method, m.params, m.says, body, err)
		}
	}
	if out.Len() > 0 {
		t.Errorf("it says more: %s", &out)
	}
}

// TestGrammarOfEditors holds the copy of the grammar in the extension against the
// grammar.
func TestGrammarOfEditors(t *testing.T) {
	t.Parallel()
	grammar, err := os.ReadFile("../../core/text/pif.tmLanguage.json")
	must.NoError(t, err)
	copied, err := os.ReadFile("../editors/vscode/syntaxes/pif.tmLanguage.json")
	if err != nil || !bytes.Equal(grammar, copied) {
		t.Errorf("cmd/editors/vscode/syntaxes has another grammar than core/text: copy it (%v)", err)
	}
}

// TestInJSON: what help writes in JSON goes, and no line of a tool's code or of a stranger's words.
func TestInJSON(t *testing.T) {
	const code = "code: n =>\n  if n == 1 then\n    [1]\n  else\n    \"many\"\n\nlist_issues: gives the issues, in JSON format, 100 at most"
	const row = "  head(list) gives any%s\n  head([1])  → 1%s\n  head([])  fails: out_of_range%s\n\nno_tool is a kind of failure: it occurs when.\n  @t(1)%s\n"
	asJSON := fmt.Sprintf(row, `, in JSON {"head":list}`, "\n    {\"head\":[1]}", "\n    {\"head\":[]}", "\n    {\"call\":{}}")
	if got := inJSON.ReplaceAllString(asJSON+code, "$1$2$3"); got != fmt.Sprintf(row, "", "", "", "")+code {
		t.Errorf("%s", got)
	}
}
