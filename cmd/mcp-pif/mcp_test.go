//go:build linux

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/plugins/mcp/mcptest"
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
	line := []string{w.self, mcptest.Word, w.script}
	flags := []string{"--read", w.script, "--write", w.log, "--yes", "--"}
	w.prints(append(append([]string{"mcp", "add", "second"}, flags...), line...), "tools, pinned to", "reads, it says", "grant it with --cap second")
	w.fails(append(append([]string{"mcp", "add", "second"}, flags...), line...), "there is a server second already")
	w.fails([]string{"mcp", "add", "fs", "--", w.self}, "reserved")
	w.fails([]string{"mcp", "add", "third", "--", "npx", "server@latest"}, "isn't one exact version")
	w.fails([]string{"mcp", "add", "third", "--", "docker", "run", "image:latest"}, "by its digest")
	w.fails([]string{"mcp", "add", "third", "http://example.com/mcp"}, "without encryption")
	w.fails([]string{"mcp", "add", "third", "--network", "https://example.com/x", "--", w.self}, "--network", "is no origin")
	w.prints([]string{"mcp", "list"}, "second", "up", "0 accepted", "ok")
	w.prints([]string{"mcp", "show", "second", "echo"}, "words of the server second, not of this program", "takes")
	w.fails([]string{"mcp", "show", "second", "ecko"}, "has no tool ecko", "echo")
	w.prints([]string{"mcp", "try", "second"}, "echo")
	w.prints([]string{"mcp", "try", "second", "--tool", "echo", "--input", `{"in":"x","n":9007199254740993}`}, "9007199254740993")
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
	w.fails([]string{"mcp", "diff", "second"}, "HELD")
	w.fails([]string{"doctor"}, "second         differs", "1 tool changed", "mcp-pif mcp diff second")
	w.prints([]string{"mcp", "upgrade", "second"}, "HELD", "nothing was written")
	w.fails([]string{"mcp", "diff", "second"}, "HELD")
	w.prints([]string{"mcp", "upgrade", "second", "--accept"}, "wrote")
	w.prints([]string{"mcp", "diff", "second"}, "as they were accepted")
	w.prints([]string{"mcp", "show", "second", "echo"}, "until accepted", "| now it says something else")
	w.prints([]string{"mcp", "remove", "second"}, "removed second")
	w.says(mcptest.Script{Noise: "TOKEN is missing", DieAt: "initialize"})
	w.fails(append(append([]string{"mcp", "add", "third"}, flags...), line...), "TOKEN is missing", "doesn't start")
	w.fails([]string{"mcp", "show", "second"}, "there is no server second", "but up")
}
