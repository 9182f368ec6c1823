package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
	"github.com/mcp-pif/mcp-pif/plugins/host"
	"github.com/mcp-pif/mcp-pif/plugins/mcp/mcptest"
	"github.com/mcp-pif/mcp-pif/plugins/proc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// TestMain lets the test binary be the command itself, and a server of the
// SDK's with a tool that does nothing, for benchmarks to compare with.
func TestMain(m *testing.M) {
	app.MostLooks = int(5 * time.Minute / app.AwaitEvery) // servers of busy machines
	host.Launcher()
	proc.Keeper()
	mcptest.Main()
	if len(os.Args) == 2 && os.Args[1] == upstreamWord {
		waits()
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == app.PluginArgument {
		main() // started by its host, by the path of the test binary
	}
	testscript.Main(homeless{m}, map[string]func(){
		"mcp-pif":  main,
		"noop":     noop,
		"dying":    dying,
		"unfenced": unfenced,
	})
}

// homeless runs the tests with a state directory, and one for temporary files, that go
// with them: none writes to the state of whoever runs them, whatever it forgets, and
// nothing stays of the servers that are killed. Its name is short, for sockets.
type homeless struct{ tests testscript.TestingM }

func (h homeless) Run() int {
	dir, err := os.MkdirTemp("", "pif")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	for _, name := range []string{"TMPDIR", "TMP", "TEMP"} {
		os.Setenv(name, dir)
	}
	stateHomes = filepath.Join(dir, "states")
	if err := os.Mkdir(stateHomes, 0o700); err != nil {
		panic(err)
	}
	for _, name := range []string{"XDG_STATE_HOME", "LocalAppData"} {
		os.Setenv(name, stateHomes)
	}
	// Most of them wait for processes, and so more of them run at once than there are processors.
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		if err := flag.Set(parallel.Name, strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
	}
	return h.tests.Run()
}

// stateHomes is where servers that tests start have their state, each its own.
var stateHomes string

// alone is the environment of a process that shares no state with another.
func alone() []string {
	dir, err := os.MkdirTemp(stateHomes, "")
	if err != nil {
		panic(err)
	}
	return append(os.Environ(), "XDG_STATE_HOME="+dir)
}

// TestNothingIsWrittenHome: what a test starts without saying where its state is
// doesn't find the state of whoever runs the tests.
func TestNothingIsWrittenHome(t *testing.T) {
	if state, err := app.StateDir(); err != nil || stateHomes == "" || !strings.HasPrefix(state, stateHomes) {
		t.Errorf("the tests' state would be in %s, %v", state, err)
	}
}

// full reports whether the large counts are wanted.
func full() bool { return os.Getenv("PIF_FULL") == "1" }

// noop is the SDK's own server over its own transport, with the collector set
// as ours is.
func noop() {
	debug.SetGCPercent(400)
	s := mcp.NewServer(&mcp.Implementation{Name: "noop", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "noop", Description: "does nothing", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{
				Content:           []mcp.Content{&mcp.TextContent{Text: "49"}},
				StructuredContent: json.RawMessage(`{"result":49,"type":"int","steps":6,"notes":[]}`),
			}, nil
		})
	_ = s.Run(context.Background(), &mcp.StdioTransport{})
}

// self is a command line of this test binary as one of its commands.
func self(name string, args ...string) *exec.Cmd {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Args[0] = name
	cmd.Env = alone()
	return cmd
}

// A process is a server, spoken to line by line.
type process struct {
	t     testing.TB
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	log   *strings.Builder
	logMu *sync.Mutex
	next  int
	told  int // how often it said that the list of tools has changed
}

// start starts this program as a server.
func start(t testing.TB, args ...string) *process {
	t.Helper()
	return startCommand(t, self("mcp-pif", args...))
}

func startCommand(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, log: new(strings.Builder), logMu: new(sync.Mutex)}
	var err error
	if p.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	must.NoError(t, err)
	p.out = bufio.NewReaderSize(out, 1<<20)
	cmd.Stderr = locked{p.logMu, p.log}
	must.NoError(t, wait.Start(cmd))
	t.Cleanup(func() {
		p.in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the server's log:\n%.4000s", p.logged())
		}
	})
	return p
}

// locked is a writer that may be read from meanwhile.
type locked struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

func (p *process) logged() string {
	p.logMu.Lock()
	defer p.logMu.Unlock()
	return p.log.String()
}

// initialize is the request that opens a session.
const initialize = `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`

// open starts a session.
func (p *process) open() *process {
	p.t.Helper()
	p.send(initialize)
	if m := p.receive(); m.ID != `"init"` || m.Result == nil {
		p.t.Fatalf("initialize was answered with %+v", m)
	}
	p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return p
}

func (p *process) send(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		p.t.Fatalf("writing to the server: %v", err)
	}
}

// A message is a line from the server.
type message struct {
	Version string `json:"jsonrpc"`
	ID      rawText
	Method  string
	Params  json.RawMessage
	Result  json.RawMessage
	Error   *struct {
		Code    int
		Message string
	}
}

// rawText is JSON as a string, to compare.
type rawText string

func (r *rawText) UnmarshalJSON(b []byte) error {
	*r = rawText(b)
	return nil
}

// receiveTime is how long a command on a terminal may take.
const receiveTime = 5 * time.Minute

// bounded kills the server where what the test waits for takes too long, until it is stopped.
func (p *process) bounded() (stop func() bool) {
	return time.AfterFunc(wait.Limit(p.t), func() { _ = p.cmd.Process.Kill() }).Stop
}

// wait waits for the end of the server.
func (p *process) wait() error {
	defer p.bounded()()
	return p.cmd.Wait()
}

// receive reads the next line, which must be JSON-RPC.
func (p *process) receive() message {
	p.t.Helper()
	stop := p.bounded()
	line, err := p.out.ReadBytes('\n')
	stop()
	if err != nil {
		p.t.Fatalf("reading from the server: %v", err)
	}
	var m message
	if err := json.Unmarshal(line, &m); err != nil || m.Version != "2.0" {
		p.t.Fatalf("the server wrote what is not JSON-RPC: %.300q (%v)", line, err)
	}
	if m.Method == "notifications/tools/list_changed" {
		p.told++
	}
	return m
}

// changed reads until the client was told of a change more often than so many times. It
// may be told of one before the call that made it is answered.
func (p *process) changed(before int) {
	p.t.Helper()
	for p.told <= before {
		p.receive()
	}
}

// answer reads lines up to the answer with the id.
func (p *process) answer(id string) message {
	p.t.Helper()
	for {
		if m := p.receive(); string(m.ID) == id && m.Method == "" {
			return m
		}
	}
}

// toolReply is the answer of a tool.
type toolReply struct {
	Content           []struct{ Text string }
	StructuredContent map[string]json.RawMessage
	IsError           bool
}

// call calls a tool and waits for its answer.
func (p *process) call(tool, arguments string) toolReply {
	p.t.Helper()
	p.next++
	id := strconv.Itoa(p.next)
	p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, arguments))
	return p.tool(p.answer(id))
}

// tool reads a message as the answer of a tool.
func (p *process) tool(m message) toolReply {
	p.t.Helper()
	var r toolReply
	if m.Error != nil {
		p.t.Fatalf("call %s: %+v", m.ID, m.Error)
	}
	if err := json.Unmarshal(m.Result, &r); err != nil || len(r.Content) == 0 {
		p.t.Fatalf("call %s: %.300s", m.ID, m.Result)
	}
	// Text that a tool gives is no JSON; tests hold results against JSON.
	var plain string
	if result := r.StructuredContent["result"]; json.Unmarshal(result, &plain) == nil && plain == r.Content[0].Text && len(result) > 1 && result[0] == '"' {
		r.Content[0].Text = string(result)
	}
	return r
}

// fault is the kind and message of a failure.
func (r toolReply) fault() (kind, message string) {
	var e struct{ Kind, Message string }
	_ = json.Unmarshal(r.StructuredContent["error"], &e)
	return e.Kind, e.Message
}

// kind is the kind of a failure, or "".
func (r toolReply) kind() string {
	kind, _ := r.fault()
	return kind
}

// peak is the most memory the process has had resident, in bytes; 0 where the
// system doesn't say.
func (p *process) peak() int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, _ := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			return kib << 10
		}
	}
	return 0
}

// end closes the server's input and waits for it to exit well.
func (p *process) end() {
	p.t.Helper()
	defer p.bounded()()
	p.in.Close()
	rest, _ := io.ReadAll(p.out)
	for line := range strings.Lines(string(rest)) {
		if !strings.Contains(line, `"method":"notifications/`) {
			p.t.Errorf("after the last answer came %.300q", line)
		}
	}
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("the server ended with %v", err)
	}
}

// TestMisused: a flag with a value that can't be meant is status 2, as one that there
// isn't; a right one for which there is nothing is 1.
func TestMisused(t *testing.T) {
	for args, want := range map[string]int{
		"--no-such-flag":                    cli.StatusUsage,
		"--log-level=loud":                  cli.StatusUsage,
		"--timeout=soon":                    cli.StatusUsage,
		"--ask-via=mail":                    cli.StatusUsage,
		"--sandbox=maybe":                   cli.StatusUsage,
		"--sandbox=fs=off --sandbox=fs=off": cli.StatusUsage,
		"caps --sandbox=maybe":              cli.StatusUsage,
		"--cap=fs:./no-such-folder":         cli.StatusFailed,
	} {
		var out, errs strings.Builder
		status := command(append(strings.Fields(args), "--store=memory"), strings.NewReader(""), &out, &errs)
		if status != want || out.Len() > 0 || errs.Len() == 0 {
			t.Errorf("%s: status %d, want %d\nstdout: %s\nstderr: %s", args, status, want, out.String(), errs.String())
		}
	}
	if status := command([]string{"--store=memory"}, strings.NewReader(""), io.Discard, io.Discard); status != 0 {
		t.Errorf("without any: status %d", status)
	}
}

// A fullDisk takes nothing.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("the disk is full") }

// TestLostOutput: what can't be printed is a failure, whichever way it is printed.
func TestLostOutput(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", dir)
	kept := " --store " + filepath.ToSlash(filepath.Join(dir, "pif.db"))
	if status := command(strings.Fields("tools import pack:self"+kept), strings.NewReader(""), io.Discard, io.Discard); status != 0 {
		t.Fatalf("import: status %d", status)
	}
	for _, line := range []string{"run 1", "run --json 1", "tools list" + kept, "tools history interpret" + kept, "mcp list", "help fold", "caps", "fmt x=>x", "check 1", "version", "--help", "help", "run --help", "completion bash", "completion zsh", "completion fish", "completion powershell"} {
		var errs strings.Builder
		status := command(strings.Fields(line), strings.NewReader(""), fullDisk{}, &errs)
		if status != cli.StatusFailed || errs.String() != "mcp-pif: the disk is full\n" {
			t.Errorf("%s: status %d\nstderr: %s", line, status, errs.String())
		}
	}
}

// TestRestoreUnconfirmed: what is restored is said to be, also where a server that is starting says nothing of it yet.
func TestRestoreUnconfirmed(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	defer func(looks int) { app.MostLooks = looks }(app.MostLooks)
	app.MostLooks = 1
	do := func(args ...string) (int, string, string) {
		var out, errs strings.Builder
		return command(append([]string{"caps"}, args...), strings.NewReader(""), &out, &errs), out.String(), errs.String()
	}
	if status, out, errs := do("revoke", "kv:notes"); status != cli.StatusFailed || errs != "" {
		t.Fatalf("revoke: status %d\n%s%s", status, out, errs)
	}
	server, err := caps.Announce(filepath.Join(state, "mcp-pif", "running"))
	must.NoError(t, err)
	defer server.Close()
	status, out, errs := do("restore", "kv:notes")
	want := fmt.Sprintf("mcp-pif: restored; not yet confirmed by a server that is starting (pid %d): it takes effect there when that goes on\n", os.Getpid())
	if status != cli.StatusFailed || out != "restored kv:notes\n" || errs != want {
		t.Errorf("restore: status %d\n%s%s", status, out, errs)
	}
	if status, out, errs := do("revoked"); status != 0 || out != "nothing is revoked\n" {
		t.Errorf("revoked: status %d\n%s%s", status, out, errs)
	}
}

// TestNarrowEvent: where there is no room for columns a line has what the event tells.
func TestNarrowEvent(t *testing.T) {
	t.Parallel()
	e := &journal.Event{Seq: 4, Run: "abcdefgh-2", Kind: journal.EffectRequested, Data: []byte(`{"op":"fs.read","args":"a"}`)}
	if got := eventLine(e, 40); !strings.Contains(got, " effect.requested fs.read") || ansi.StringWidth(got) > 40 {
		t.Error(got)
	}
}

// TestTypedLong: the repl notices what the editor leaves out of a line.
func TestTypedLong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pasted, typed, read int
		cut                 bool
	}{
		{0, maxTyped, maxTyped, false}, {0, maxTyped + 1, maxTyped, true}, {maxTyped, 1, maxTyped, true}, {maxTyped + 4, 1, maxTyped + 5, false},
	} {
		keys := "\x1b[200~" + strings.Repeat("1", c.pasted) + "\x1b[201~" + strings.Repeat("1", c.typed) + "\r"
		in := &typed{}
		editor := term.NewTerminal(struct {
			io.Reader
			io.Writer
		}{strings.NewReader(keys), io.Discard}, "")
		editor.AutoCompleteCallback = in.tab
		if line, err := editor.ReadLine(); err != nil || len(line) != c.read || in.cut != c.cut {
			t.Errorf("of %d pasted characters and %d more %d are read, %v, cut: %v", c.pasted, c.typed, len(line), err, in.cut)
		}
	}
}

// TestMisusedCommands: of every command a flag that there isn't is status 2, and of one that has
// commands a word that is none.
func TestMisusedCommands(t *testing.T) {
	misused := func(line, want string) {
		t.Helper()
		var out, errs strings.Builder
		if status := command(strings.Fields(line)[1:], strings.NewReader(""), &out, &errs); status != cli.StatusUsage || out.Len() > 0 || !strings.Contains(errs.String(), want) {
			t.Errorf("%s: status %d\nstdout: %.300s\nstderr: %s", line, status, out.String(), errs.String())
		}
	}
	n := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if n++; c.HasSubCommands() {
			misused(c.CommandPath()+" no-such-word", "has no command")
		}
		misused(c.CommandPath()+" --no-such-flag", "unknown flag")
		for _, sub := range c.Commands() {
			if !sub.Hidden {
				walk(sub)
			}
		}
	}
	walk(newRoot(io.Discard))
	if n < 60 {
		t.Errorf("%d commands", n)
	}
	misused("mcp-pif tools diff x", "V1 is missing: mcp-pif tools diff NAME V1 [V2]\n")
	misused("mcp-pif step", "RUN is missing: mcp-pif step RUN\n")
	misused("mcp-pif run a b c", "too many arguments: \"c\" is none of CODE and INPUT")
	misused("mcp-pif plugin add", "too few arguments: mcp-pif plugin add PROGRAM | FOLDER COMMAND…\n")
	misused("mcp-pif doctor x", "mcp-pif doctor takes no argument: \"x\"\n")
	misused("mcp-pif install cursor", "Write --client cursor")
	misused("mcp-pif approve --json x", "--list and --json take nothing else")
	misused("mcp-pif journal tail --kind nope", "the kinds are")
}

// TestOverloaded: calls beyond those that may run and wait fail as calls do, with the
// kind overloaded, and are no errors of the protocol.
func TestOverloaded(t *testing.T) {
	if !full() {
		t.Skip("sends over 10,000 calls: PIF_FULL=1")
	}
	// With so much time none ends for another reason.
	p := start(t, "--store=memory", "--log-level=error", "--timeout=30m").open()
	go func() { // the server is killed at the end
		for i := range 10_500 {
			_, _ = fmt.Fprintf(p.in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"run","arguments":{"code":"(x => x(x))(x => x(x))","steps":1000000000}}}`+"\n", i+1)
		}
	}()
	for range 100 {
		if m := p.receive(); m.Error != nil || !strings.Contains(string(m.Result), `"kind":"overloaded"`) {
			t.Fatalf("%s was answered with %v %.300s", m.ID, m.Error, m.Result)
		}
	}
	if p.peak() > mostMemory && !must.Racing() {
		t.Errorf("the server took %d bytes", p.peak())
	}
}

// A stopwatch collects times, in nanoseconds.
type stopwatch []float64

func (s *stopwatch) time(do func()) {
	start := time.Now()
	do()
	*s = append(*s, float64(time.Since(start)))
}

func (s *stopwatch) median() float64 {
	sorted := slices.Sorted(slices.Values(*s))
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)/2]
}
