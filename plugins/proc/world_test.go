//go:build linux

package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/internal/sandbox"
	"github.com/mcp-pif/mcp-pif/plugins/plugintest"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// TestMain lets the test binary be a keeper, the launcher, and the commands of the
// sessions.
func TestMain(m *testing.M) {
	sandbox.Main()
	Keeper()
	if len(os.Args) > 2 && os.Args[1] == "act" {
		roles[os.Args[2]](os.Args[3:])
		return
	}
	os.Exit(m.Run())
}

// A holder is an open capability, and the plugin that it is of.
type holder struct {
	testing.TB
	*sdk.Handle
	plugin sdk.Plugin
}

// mode is how sessions are held here.
func mode(t testing.TB) sandbox.Mode {
	if sandbox.System().Holds() {
		return sandbox.Require
	}
	if os.Getenv("PIF_REQUIRE_SANDBOX") == "1" {
		t.Fatalf("this system doesn't hold plugins: %s", sandbox.System())
	}
	return sandbox.BestEffort
}

// requires skips where a program isn't there, unless it has to be.
func requires(t testing.TB, program string) {
	t.Helper()
	if _, err := os.Stat(program); err != nil {
		if os.Getenv("PIF_REQUIRE_PROC") == "1" {
			t.Fatalf("PIF_REQUIRE_PROC is set and there is no %s", program)
		}
		t.Skipf("there is no %s: .ci/run installs it where it may", program)
	}
}

// mapped is a command, resolved as the server does it.
func mapped(t testing.TB, c sdk.Command) *sdk.Command {
	t.Helper()
	c, err := c.Resolve(nil, nil)
	must.NoError(t, err)
	c.Sandbox = string(mode(t))
	return &c
}

// hold opens a capability for a command.
func hold(t testing.TB, c sdk.Command) holder {
	t.Helper()
	return open(t, Plugin(), "it", mapped(t, c))
}

func open(t testing.TB, p sdk.Plugin, name string, c *sdk.Command) holder {
	t.Helper()
	h, err := sdk.Direct(context.Background(), p, sdk.Capability{Text: "proc:" + name, Within: name, Command: c})
	must.NoError(t, err)
	t.Cleanup(func() { h.Close() })
	return holder{t, h, p}
}

// helper is the command of this test binary acting, with a copy of the binary where
// the sandbox lets it be executed.
func helper(t testing.TB, args ...string) sdk.Command {
	t.Helper()
	exe, err := os.Executable()
	must.NoError(t, err)
	return sdk.Command{Args: append([]string{exe, "act"}, args...), Env: map[string]string{"GOMAXPROCS": "2"}}
}

// patient is how many milliseconds the tests wait for what has to come. It ends what
// hangs, and nothing else: a machine may be busy.
const patient = 240_000

func (h holder) try(operation string, args ...any) (value.Value, error) {
	ctx, cancel := context.WithTimeout(context.Background(), (patient+60_000)*time.Millisecond)
	defer cancel()
	if len(args) == 1 {
		args = []any{"session", args[0]}
	}
	return h.Invoke(ctx, "proc."+operation, plugintest.Arguments(args...))
}

func (h holder) does(operation string, args ...any) value.Value {
	h.Helper()
	v, err := h.try(operation, args...)
	if err != nil {
		h.Fatalf("proc.%s %.200v: %v", operation, args, err)
	}
	return v
}

func (h holder) fails(code, operation string, args ...any) sdk.Failure {
	h.Helper()
	v, err := h.try(operation, args...)
	f, ok := errors.AsType[sdk.Failure](err)
	if !ok || f.Code != code {
		h.Fatalf("proc.%s %.200v: %v, %v; a failure %s was expected", operation, args, v, err, code)
	}
	return f
}

func (h holder) start() string {
	h.Helper()
	return string(h.does("start").(value.Str))
}

// until reads until a pattern, and gives all that was read of both streams.
func (h holder) until(session, pattern string) (stdout, stderr string) {
	h.Helper()
	for {
		v := h.does("read", "session", session, "pattern", pattern, "wait", patient, "max", mostMost)
		stdout, stderr = stdout+text(v, "stdout"), stderr+text(v, "stderr")
		switch text(v, "over") {
		case "pattern":
			return stdout, stderr
		case "full":
		default:
			h.Fatalf("%q didn't come: %s: %.300q %.300q", pattern, text(v, "over"), stdout, stderr)
		}
	}
}

// rest reads to the end of the session.
func (h holder) rest(session string) (stdout, stderr string, v value.Value) {
	h.Helper()
	for {
		v = h.does("read", "session", session, "prompt", false, "wait", patient, "max", mostMost)
		stdout, stderr = stdout+text(v, "stdout"), stderr+text(v, "stderr")
		if over := text(v, "over"); over == "end" && !bool(field(v, "more").(value.Bool)) {
			return stdout, stderr, v
		} else if over == "time" {
			h.Fatalf("it doesn't end: %.300q %.300q", stdout, stderr)
		}
	}
}

func field(v value.Value, name string) value.Value {
	r, _ := v.(*value.Record)
	for i := 0; r != nil && i < len(r.Fields); i++ {
		if r.Fields[i].Key == name {
			return r.Fields[i].Value
		}
	}
	return nil
}

func text(v value.Value, name string) string {
	s, _ := field(v, name).(value.Str)
	return string(s)
}

func number(v value.Value, name string) int64 {
	i, ok := field(v, name).(value.Int)
	n, fits := i.Int64()
	if !ok || !fits {
		return -1
	}
	return n
}

// marked is the processes whose command line has a word, by their numbers.
func marked(t testing.TB, mark string) (pids []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must.NoError(t, err)
	for _, name := range all {
		if line, err := os.ReadFile(name); err == nil && strings.Contains(string(line), mark) {
			pids = append(pids, strings.Split(name, "/")[2])
		}
	}
	return pids
}

// newMark is a word that no other process's command line has.
func newMark(t testing.TB) string {
	return fmt.Sprintf("mark-%d-%s-%d", os.Getpid(), t.Name(), time.Now().UnixNano())
}

// roles is what the commands of sessions do.
var roles = map[string]func(args []string){
	"echo": func([]string) {
		var line string
		for {
			if _, err := fmt.Scanln(&line); err != nil {
				os.Exit(3)
			}
			fmt.Println("echo", line)
			fmt.Fprintln(os.Stderr, "heard", line)
		}
	},
	"cat":   func([]string) { io.Copy(os.Stdout, os.Stdin) },
	"sleep": func([]string) { time.Sleep(time.Hour) },
}

// again is this program as another act.
func again(args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", append([]string{"act"}, args...)...)
	exe, _ := os.Executable()
	cmd.Path = exe
	return cmd
}
