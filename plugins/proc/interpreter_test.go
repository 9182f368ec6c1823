//go:build linux

package proc

import (
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

const pythonPath, sqlitePath = "/usr/bin/python3", "/usr/bin/sqlite3"

func python(t testing.TB) sdk.Command {
	requires(t, pythonPath)
	return sdk.Command{Args: []string{pythonPath, "-i", "-q"}}
}

func sqlite(t testing.TB) sdk.Command {
	requires(t, sqlitePath)
	return sdk.Command{Args: []string{sqlitePath, "-interactive"}}
}

// asks types into an interpreter, and gives what it wrote up to its next prompt.
func (h holder) asks(session, line, prompt string) (stdout, stderr string) {
	h.Helper()
	h.does("send", "session", session, "text", line)
	return h.until(session, prompt)
}

// TestPython: an interpreter is driven as a person drives it.
func TestPython(t *testing.T) {
	h := hold(t, python(t))
	s := h.start()
	h.until(s, `>>> $`)
	if out, _ := h.asks(s, "6 * 7\n", `>>> $`); out != "42\n" {
		t.Errorf("6 * 7 is %q", out)
	}
	if out, errs := h.asks(s, "def f(n):\n    if n < 2:\n        return 1\n    return n * f(n - 1)\n\nf(20)\n", `>>> >>> $|\.\.\. >>> >>> $`); out != "2432902008176640000\n" {
		t.Errorf("f(20) is %q %q", out, errs)
	}
	if out, errs := h.asks(s, "1 / 0\n", `>>> $`); out != "" || !strings.Contains(errs, "ZeroDivisionError") {
		t.Errorf("an error gives %q %q", out, errs)
	}
	// It says so from within the loop: an interrupt before the loop wouldn't end it.
	h.does("send", "session", s, "text", "import itertools\nfor i in itertools.count():\n    if i == 0: print('spinning', flush=True)\n\n")
	h.until(s, "spinning")
	h.does("signal", "session", s, "signal", "INT")
	if _, errs := h.until(s, `KeyboardInterrupt\s+(.*\n)*.*>>> $`); !strings.Contains(errs, "Interrupt") {
		t.Errorf("an endless loop interrupted gives %q", errs)
	}
	if out, _ := h.asks(s, "f(5)\n", `>>> $`); out != "120\n" {
		t.Errorf("afterwards f(5) is %q", out)
	}
	h.does("send", "session", s, "text", "import sys; sys.exit(7)\n")
	if _, _, v := h.rest(s); number(v, "code") != 7 || bool(field(v, "running").(value.Bool)) {
		t.Errorf("it ended as %v", v)
	}
	if f := h.fails("failed", "send", "session", s, "text", "1\n"); f.Hint == "" {
		t.Error("no hint")
	}
	if v := h.does("status", s); number(v, "code") != 7 || text(v, "why") != "" {
		t.Errorf("%v", v)
	}
}

// TestPrompt: without a condition a read is over at the prompt that follows what was
// sent, in pipes and in a terminal.
func TestPrompt(t *testing.T) {
	for _, pty := range []bool{false, true} {
		c := python(t)
		c.PTY = pty
		h := hold(t, c)
		s := h.start()
		if v := h.does("read", "session", s, "wait", patient); text(v, "over") != "prompt" {
			t.Fatalf("pty %v: %v", pty, v)
		}
		h.does("send", "session", s, "text", "import time; time.sleep(0.3); print(2 ** 100)\n")
		v := h.does("read", "session", s, "wait", patient)
		if text(v, "over") != "prompt" || !strings.Contains(text(v, "stdout"), "1267650600228229401496703205376\n") {
			t.Errorf("pty %v: %v", pty, v)
		}
		if pty {
			out, _ := h.asks(s, "import os, sys; print(sys.stdin.isatty(), os.ttyname(0)[:9], os.getsid(0) == os.getpid())\n", `>>> $`)
			if !strings.Contains(out, "True /dev/pts/ True") {
				t.Errorf("its terminal: %q", out)
			}
			h.does("send", "session", s, "text", "while True: print('spinning'); time.sleep(0.5)\n\n") // a signal just before a sleep doesn't end it
			h.until(s, "spinning\n")
			h.does("send", "session", s, "text", "\x03") // as a person does
			h.until(s, `KeyboardInterrupt\s+>>> $`)
			h.asks(s, "1 + 1\n", `2\n>>> $`) // Python ends by a signal after an interrupt
			h.does("send", "session", s, "eof", true)
			if _, _, v := h.rest(s); number(v, "code") != 0 {
				t.Errorf("at the end of its input: %v", v)
			}
		}
	}
}

// TestSQLite: another interpreter, which asks on its output.
func TestSQLite(t *testing.T) {
	h := hold(t, sqlite(t))
	s := h.start()
	h.until(s, `sqlite> $`)
	out, _ := h.asks(s, "create table t(n);\ninsert into t values (1),(2),\n(3);\nselect sum(n) from t;\n", `6\nsqlite> $`)
	if !strings.Contains(out, "6\n") {
		t.Errorf("%q", out)
	}
	if out, errs := h.asks(s, "select nonsense;\n", `sqlite> $`); !strings.Contains(out+errs, "no such column") {
		t.Errorf("%q %q", out, errs)
	}
	h.does("send", "session", s, "text", ".exit 4\n")
	if _, _, v := h.rest(s); number(v, "code") != 4 {
		t.Errorf("%v", v)
	}
}

// TestLargeOutput: 10 MB come whole where the buffer has room, and it is said how
// much is lost where it has none.
func TestLargeOutput(t *testing.T) {
	const bytes = 10 << 20
	for _, room := range []int64{16 << 20, 1 << 20} {
		c := python(t)
		c.Buffer, c.Sessions = room, 4
		h := hold(t, c)
		s := h.start()
		h.does("send", "session", s, "text", fmt.Sprintf("import sys; n = sys.stdout.write('0123456789abcde\\n' * %d); print('over', flush=True)\n", bytes/16))
		h.does("send", "session", s, "eof", true)
		h.does("wait_for", "session", s, "pattern", "over\n", "wait", patient)
		var lost int64
		out := ""
		for {
			v := h.does("read", "session", s, "stream", "stdout", "prompt", false, "wait", patient, "max", mostMost)
			out += text(v, "stdout")
			lost += max(0, number(v, "lost"))
			if text(v, "over") == "end" && !bool(field(v, "more").(value.Bool)) {
				break
			}
		}
		if want := int64(bytes + len("over\n")); int64(len(out))+lost != want || room > bytes && lost != 0 || room < bytes && (lost == 0 || int64(len(out)) != room) {
			t.Errorf("%d bytes and %d lost of %d, with room for %d", len(out), lost, want, room)
		}
		if !strings.HasSuffix(out, "abcde\nover\n") {
			t.Errorf("the end is %q", out[max(0, len(out)-40):])
		}
	}
}

// TestManySessions: 20 at once, each its own; one more than may run is refused.
func TestManySessions(t *testing.T) {
	c := python(t)
	c.Sessions = 20
	h := hold(t, c)
	names := make([]string, 20)
	var all sync.WaitGroup
	for i := range names {
		all.Go(func() {
			s := h.start()
			names[i] = s
			h.does("send", "session", s, "text", fmt.Sprintf("n = %d\n", i))
		})
	}
	all.Wait()
	h.fails("conflict", "start")
	for i, s := range names {
		all.Go(func() {
			h.does("send", "session", s, "text", "print('n is', n, flush=True)\n")
			if out, _ := h.until(s, `n is \d+\n`); out != fmt.Sprintf("n is %d\n", i) {
				t.Errorf("the session %d: %q", i, out)
			}
		})
	}
	all.Wait()
	if states, _ := value.Slice(h.does("list")); len(states) != 20 {
		t.Errorf("%d sessions are listed", len(states))
	}
	h.does("stop", names[0])
	h.start()
}

// TestBytes: what isn't text comes exactly as base64, and readably as text.
func TestBytes(t *testing.T) {
	h := hold(t, helper(t, "cat"))
	s := h.start()
	raw := []byte("a\xffb\x00\xe2\x82\xac\xe2\x82")
	h.does("send", "session", s, "bytes", base64.StdEncoding.EncodeToString(raw), "eof", true)
	h.does("wait_for", "session", s, "prompt", false, "wait", patient)
	begin := map[string]any{"stdout": 0, "stderr": 0}
	v := h.does("read", "session", s, "encoding", "base64", "from", begin)
	if got, err := base64.StdEncoding.DecodeString(text(v, "stdout")); err != nil || string(got) != string(raw) {
		t.Errorf("%q, %v", got, err)
	}
	v = h.does("read", "session", s, "from", begin)
	if got := text(v, "stdout"); got != "a\ufffdb\x00€\ufffd" {
		t.Errorf("%q", got)
	}
	h.fails("invalid", "send", "session", h.start(), "bytes", "*")
}
