//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// The interpreters of the tests, as an operator maps them.
const (
	mapsPython = "python3=/usr/bin/python3 -i -q"
	mapsSQLite = "sqlite3=/usr/bin/sqlite3 -interactive"
)

// requireProc skips where the interpreters aren't there, unless they have to be.
func requireProc(t *testing.T) {
	t.Helper()
	for _, program := range []string{"/usr/bin/python3", "/usr/bin/sqlite3"} {
		if _, err := os.Stat(program); err == nil {
			continue
		}
		if os.Getenv("PIF_REQUIRE_PROC") == "1" {
			t.Fatalf("PIF_REQUIRE_PROC is set and there is no %s", program)
		}
		t.Skipf("there is no %s: .ci/run installs it where it may", program)
	}
}

// The grants of them. An interpreter on a busy machine takes its time, and so may those
// who wait for it.
const (
	capPython = "proc:python3,timeout=30m"
	capSQLite = "proc:sqlite3,timeout=30m"
)

// The tools with which the tests drive an interpreter.
const (
	opens = `u => !proc.start({})`
	types = `p => let s = !proc.send({session: p.session, text: p.text}) in !proc.read({session: p.session, pattern: p.until, wait: 600000})`
)

// interpreting starts a server that may drive them.
func interpreting(t *testing.T, state string, flags ...string) *process {
	t.Helper()
	return withState(t, state, append([]string{"--timeout=30m"}, flags...)...)
}

// drives makes those tools for a name.
func (p *process) drives(name string) {
	p.t.Helper()
	p.makes("open_"+name, opens, "proc.start:"+name)
	p.makes("type_"+name, types, "proc.send,read:"+name)
	p.makes("stop_"+name, `s => !proc.stop(s)`, "proc.stop:"+name)
}

// starts starts a session.
func (p *process) starts(name string) string {
	p.t.Helper()
	text, failed := p.runs("open_"+name, nil)
	var session string
	if err := json.Unmarshal([]byte(text), &session); err != nil || failed {
		p.t.Fatalf("%s doesn't start: %s", name, text)
	}
	return session
}

type lineRead struct {
	Stdout, Stderr, Over string
	Running              bool
	Code                 *int
}

// types types into a session, and gives what it says up to a pattern.
func (p *process) types(name, session, text, until string) (got lineRead) {
	p.t.Helper()
	said, failed := p.runs("type_"+name, map[string]any{"session": session, "text": text, "until": until})
	if err := json.Unmarshal([]byte(said), &got); err != nil || failed {
		p.t.Fatalf("typing %q: %s", text, said)
	}
	return got
}

// commandsWith is how many processes have a word in their command line.
func commandsWith(t *testing.T, word string) (n int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must.NoError(t, err)
	for _, name := range all {
		if line, err := os.ReadFile(name); err == nil && strings.Contains(string(line), word) {
			n++
		}
	}
	return n
}

// gone waits until no process has a word in its command line.
func gone(t *testing.T, word string) {
	t.Helper()
	wait.Until(t, "no process is left with "+word, func() bool { return commandsWith(t, word) == 0 })
}

// TestProcInterpreters: a client drives Python and SQLite through the server, in the
// sandbox: several lines, an error, a loop interrupted, an exit.
func TestProcInterpreters(t *testing.T) {
	t.Parallel()
	requireProc(t)
	p := interpreting(t, t.TempDir(), "--store", "memory", "--cap", capPython, "--cap", capSQLite, "--proc", mapsPython, "--proc", mapsSQLite)
	p.drives("python3")
	p.drives("sqlite3")
	p.makes("interrupt", `s => !proc.signal({session: s, signal: "INT"})`, "proc.signal:python3")
	py := p.starts("python3")
	if got := p.types("python3", py, "def f(n):\n  return 1 if n < 2 else n * f(n - 1)\n\nprint(f(25))\n", `\d\n`); !strings.HasSuffix(got.Stdout, "15511210043330985984000000\n") {
		t.Errorf("%+v", got)
	}
	if got := p.types("python3", py, "open('/etc/passwd')\n", `Error.*\n`); !strings.Contains(got.Stderr, "PermissionError") {
		t.Errorf("%+v", got)
	}
	// It says so from within the loop: an interrupt before the loop wouldn't end it.
	p.types("python3", py, "import itertools\nfor i in itertools.count():\n  if i == 0: print('on', flush=True)\n\n", "on\n")
	if got, failed := p.runs("interrupt", py); failed || got != "true" {
		t.Fatal(got)
	}
	p.types("python3", py, "", "KeyboardInterrupt")
	sq := p.starts("sqlite3")
	if got := p.types("sqlite3", sq, "create table t(a, b);\ninsert into t values (1,\n2);\nselect a + b from t;\n", `3\n`); !strings.Contains(got.Stdout, "3\n") {
		t.Errorf("%+v", got)
	}
	// A session is of its grant alone.
	if got, failed := p.runs("stop_sqlite3", py); !failed || !strings.Contains(got, "no session of that name") {
		t.Errorf("SQLite's tool said of Python's session: %s", got)
	}
	if got := p.types("python3", py, "import sys; sys.exit(3)\n", "never"); got.Over != "end" || got.Code == nil || *got.Code != 3 {
		t.Errorf("%+v", got)
	}
}

// TestProcTwenty: twenty sessions at once, by calls at once.
func TestProcTwenty(t *testing.T) {
	t.Parallel()
	requireProc(t)
	p := interpreting(t, t.TempDir(), "--store", "memory", "--cap", capPython, "--proc", mapsPython)
	p.drives("python3")
	const n = 20
	var sessions []string
	for range n {
		sessions = append(sessions, p.starts("python3"))
	}
	for i, s := range sessions {
		p.request(1000+i, "type_python3", map[string]any{"session": s, "text": fmt.Sprintf("print('is', %d * 2, flush=True)\n", i), "until": `is \d+\n`})
	}
	got := map[string]bool{}
	for range n {
		m := p.receive()
		for m.Method != "" {
			m = p.receive()
		}
		var r lineRead
		must.NoError(t, json.Unmarshal([]byte(p.tool(m).Content[0].Text), &r))
		got[r.Stdout] = true
	}
	for i := range n {
		if !got[fmt.Sprintf("is %d\n", 2*i)] {
			t.Errorf("the session %d didn't answer", i)
		}
	}
}

// TestProcProgress: what a session writes while a call waits for it is told to the
// client as it comes, each time further than before.
func TestProcProgress(t *testing.T) {
	t.Parallel()
	requireProc(t)
	p := interpreting(t, t.TempDir(), "--store", "memory", "--cap", capPython, "--proc", mapsPython)
	p.drives("python3")
	p.makes("tell", `p => !proc.send(p)`, "proc.send:python3")
	s := p.starts("python3")
	p.send(`{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"_meta":{"progressToken":"t"},"name":"type_python3","arguments":` +
		string(cli.Marshal(map[string]any{"input": map[string]any{"session": s, "text": "print('the first', flush=True); input(); print('the second', flush=True)\n", "until": "second\n"}})) + `}}`)
	told, last := "", -1.0
	for {
		m := p.receive()
		if m.Method == "" && m.ID == "77" {
			break
		}
		if m.Method != "notifications/progress" {
			continue
		}
		var n struct {
			Message  string
			Progress float64
		}
		must.NoError(t, json.Unmarshal(m.Params, &n))
		if told += n.Message + "\n"; n.Progress <= last {
			t.Errorf("the progress %v after %v", n.Progress, last)
		}
		last = n.Progress
		if strings.Contains(n.Message, "stdout: the first") { // it goes on when the client has been told
			p.request(78, "tell", map[string]any{"session": s, "text": "\n"})
		}
	}
	if !strings.Contains(told, "stdout: the first\n") {
		t.Errorf("it told\n%s", told)
	}
}

// TestProcEndsWithServer: kill -9 of the server, its orderly end, and revocation
// leave no process behind, not even one that left its group.
func TestProcEndsWithServer(t *testing.T) {
	t.Parallel()
	requireProc(t)
	for name, end := range map[string]func(p *process, state string){
		"killed": func(p *process, _ string) { p.cmd.Process.Kill(); _ = p.wait() },
		"closed": func(p *process, _ string) { p.in.Close(); _ = p.wait() },
		"TERM":   func(p *process, _ string) { p.cmd.Process.Signal(syscall.SIGTERM); _ = p.wait() },
		"revoked": func(p *process, state string) {
			cmd := self("mcp-pif", "caps", "revoke", "proc:python3")
			cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+state)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v", out, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			mark := "mark" + strconv.FormatInt(time.Now().UnixNano(), 36)
			state := t.TempDir()
			p := interpreting(t, state, "--store", "memory", "--cap", capPython, "--proc", mapsPython+" -X "+mark)
			p.drives("python3")
			s := p.starts("python3")
			const leave = `import os, time
def leave():
  if os.fork() == 0:
    os.setsid()
    if os.fork() == 0: time.sleep(3600)
    os._exit(0)
  os.wait()

leave(); leave(); print('left', flush=True)
`
			p.types("python3", s, leave, "left\n")
			if n := commandsWith(t, mark); n < 4 { // the server has it, too
				t.Fatalf("%d processes are there", n)
			}
			end(p, state)
			if name == "revoked" {
				wait.Until(t, "none is left beside the server", func() bool { return commandsWith(t, mark) == 1 })
				if got, failed := p.runs("open_python3", nil); !failed {
					t.Errorf("it started again: %s", got)
				}
				return
			}
			gone(t, mark)
		})
	}
}

// TestProcMapping: what the operator maps is checked at the start.
func TestProcMapping(t *testing.T) {
	t.Parallel()
	requireProc(t)
	dir := t.TempDir()
	policy := filepath.Join(dir, "policy.json")
	script := filepath.Join(dir, "script")
	must.NoError(t, os.WriteFile(script, []byte("#!/usr/bin/env no-such-interpreter\n"), 0o700))
	for _, c := range []struct {
		policy string
		flags  []string
		want   string
	}{
		{"", nil, "no command is mapped"},
		{"", []string{"--proc", ""}, "NAME=COMMAND"},
		{"", []string{"--proc", "no-such-program"}, "no program"},
		{"", []string{"--proc", "python3=no-such-program"}, "no program"},
		{"", []string{"--proc", "python3=./python3"}, "no such file"},
		{"", []string{"--proc", "python3='/usr/bin/python3"}, "isn't closed"},
		{"", []string{"--proc", "python3=" + script}, "no program \"no-such-interpreter\""},
		{"", []string{"--proc", mapsPython, "--proc", mapsPython}, "duplicate"},
		{`{"processes":{"python3":{"command":["/usr/bin/python3"]}}}`, []string{"--proc", mapsPython}, "both map"},
		{`{"processes":{"python3":{"command":[]}}}`, nil, "no program"},
		{`{"processes":{"python3":{"command":["/usr/bin/python3"],"wirte":["/tmp"]}}}`, nil, "wirte"},
		{`{"processes":{"python3":{"command":["/usr/bin/python3"],"Path":"/bin/sh"}}}`, nil, "unknown member"},
		{`{"processes":{"python3":{"command":["/usr/bin/python3"],"sandbox":"off"}}}`, nil, "unknown member"},
		{`{"processes":{"python3":{"command":["/usr/bin/python3"],"write":["` + dir + `"]}}}`, nil, "no tool may reach"},
		{`{"processes":{"python3":{"command":["/usr/bin/python3"],"read":["` + dir + `/state"]}}}`, nil, "no tool may reach"},
		{`{"processes":{"python3":{"command":["/usr/bin/python3"],"read":["/proc"]}}}`, nil, "shows itself"},
		{`{"processes":{"python3":{"command":["/usr/bin/python3"],"idle":"-1s"}}}`, nil, "a time such as"},
	} {
		flags := append([]string{"caps", "--cap", "proc:python3"}, c.flags...)
		if c.policy != "" {
			must.NoError(t, os.WriteFile(policy, []byte(c.policy), 0o600))
			flags = append(flags, "--policy", policy)
		}
		must.NoError(t, os.MkdirAll(filepath.Join(dir, "state", "mcp-pif"), 0o700))
		cmd := self("mcp-pif", flags...)
		cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(dir, "state"))
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%s %v: %s", c.policy, c.flags, out)
		}
	}
}

// TestProcReplay: a run that drove an interpreter is replayed without one.
func TestProcReplay(t *testing.T) {
	t.Parallel()
	requireProc(t)
	state := t.TempDir()
	flags := []string{"--profile", "one", "--cap", capPython, "--proc", mapsPython}
	p := interpreting(t, state, flags...)
	p.makes("ask", `u => let s = !proc.start({}), sent = !proc.send({session: s, text: "import random; print(random.random())\nexit()\n"}), r = !proc.read({session: s, pattern: "never", wait: 600000}) in {out: r.stdout, code: r.code, session: s}`, "proc:python3")
	was, failed := p.runs("ask", nil)
	if failed || !strings.Contains(was, `"code":0`) {
		t.Fatal(was)
	}
	p.in.Close()
	must.NoError(t, p.wait())
	cmd := self("mcp-pif", "journal", "export", "--profile", "one")
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+state)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s", out)
	}
	var run string
	for line := range strings.Lines(string(out)) {
		var e struct{ Run, Kind string }
		if json.Unmarshal([]byte(line), &e) == nil && e.Kind == "run.started" {
			run = e.Run
		}
	}
	cmd = self("mcp-pif", "replay", "--profile", "one", run)
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+state)
	again, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(again), was) {
		t.Errorf("the run %s gave %s; replayed: %s (%v)", run, was, again, err)
	}
}

// TestProcTerminal: with a terminal, and a folder to write to, as the policy file
// maps them, in the plugin's sandbox.
func TestProcTerminal(t *testing.T) {
	t.Parallel()
	requireProc(t)
	dir := t.TempDir()
	policy := filepath.Join(t.TempDir(), "policy.json")
	text := cli.Marshal(map[string]any{"grant": []string{capPython}, "processes": map[string]any{"python3": map[string]any{
		"command": []string{"/usr/bin/python3", "-q"}, "pty": true, "dir": dir, "write": []string{dir}, "env": map[string]string{"COLOUR": "green"},
	}}})
	must.NoError(t, os.WriteFile(policy, text, 0o600))
	p := interpreting(t, t.TempDir(), "--store", "memory", "--policy", policy)
	p.drives("python3")
	s := p.starts("python3")
	p.types("python3", s, "", ">>> $")
	got := p.types("python3", s, "import os; print('tty', os.isatty(0), os.getcwd() == "+strconv.Quote(dir)+", os.environ['COLOUR'], os.environ.get('XDG_STATE_HOME'))\n", `tty .*\n`)
	if !strings.Contains(got.Stdout, "tty True True green None\n") {
		t.Errorf("%+v", got)
	}
	p.types("python3", s, "print(open('kept', 'w').write('abc'), 'written')\n", "3 written")
	if b, err := os.ReadFile(filepath.Join(dir, "kept")); err != nil || len(b) > 3 {
		t.Errorf("%q, %v", b, err)
	}
	for _, other := range []string{"/dev/pts/ptmx", "/dev/ptmx", "/proc/self/environ", "/etc/hostname"} {
		if got := p.types("python3", s, "open("+strconv.Quote(other)+")\n", `PermissionError.*\n|IOWrapper`); !strings.Contains(got.Stdout, "Error") {
			t.Errorf("%s: %+v", other, got)
		}
	}
}

// TestProcReadme makes the calls that plugins/proc/README.md shows, each block of them
// in a server of its own, in one profile.
func TestProcReadme(t *testing.T) {
	t.Parallel()
	requireProc(t)
	readme, err := os.ReadFile("../../plugins/proc/README.md")
	must.NoError(t, err)
	calls := callsShown(t, string(readme), "--cap", "proc:python3", "--cap", "proc:sqlite3", "--cap", "kv:notes/**", "--proc", mapsPython, "--proc", mapsSQLite)
	_, policy, _ := strings.Cut(string(readme), "```json\n")
	policy, _, _ = strings.Cut(policy, "```")
	if p, err := caps.ParsePolicy([]byte(policy)); err != nil || len(p.Processes) != 2 {
		t.Errorf("its policy: %v, %v", p, err)
	}
	if calls < 8 {
		t.Errorf("%d calls were found", calls)
	}
}
