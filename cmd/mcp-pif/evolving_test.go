package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
)

// sandboxed starts a server in a new folder with the files, and the flags.
func sandboxed(t testing.TB, files map[string]string, flags ...string) (*process, string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
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
