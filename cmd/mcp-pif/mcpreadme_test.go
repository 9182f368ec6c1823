//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/cmd/internal/pinned/npmtest"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// TestReadmeServers: the blocks of the READMEs that add servers of npm and start mcp-pif over
// them are executed, with servers of these names in a registry on loopback. The one by URL is
// TestMCPLogin's.
func TestReadmeServers(t *testing.T) {
	t.Parallel()
	must.SkipQuick(t)
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("there is no npm here")
	}
	const scope = "@modelcontextprotocol/server-"
	s := npmtest.Registry(t, map[string][]byte{
		scope + "memory-2026.8.31":     npmtest.Server(t, scope+"memory", "2026.8.31", "create_entities"),
		scope + "filesystem-2026.8.31": npmtest.Server(t, scope+"filesystem", "2026.8.31", "read_file", "list_directory"),
	})
	env := npmtest.Env(t, s)
	for readme, begins := range map[string]string{"../../README.md": "```text\n$ mkdir memory", "../README.md": "```text\nmkdir memory"} {
		text, err := os.ReadFile(readme)
		must.NoError(t, err)
		_, block, found := strings.Cut(string(text), begins)
		block, _, _ = strings.Cut(strings.TrimPrefix(begins, "```text\n")+block, "```")
		if !found {
			t.Fatalf("%s has no such block", readme)
		}
		state, dir, ran := t.TempDir(), t.TempDir(), 0
		if dir, err = filepath.EvalSymlinks(dir); err != nil {
			t.Fatal(err)
		}
		must.NoError(t, os.Mkdir(filepath.Join(dir, "docs"), 0o700))
		must.NoError(t, os.Mkdir(filepath.Join(dir, "memory"), 0o700))
		for line := range strings.Lines(strings.ReplaceAll(block, "\\\n", "")) {
			args := strings.Fields(strings.NewReplacer("$PWD", dir, "'", "").Replace(strings.TrimPrefix(line, "$ ")))
			if len(args) == 0 || args[0] != "mcp-pif" || strings.Contains(line, "https://") {
				continue
			}
			args = args[1:]
			switch {
			case args[0] == "mcp" && args[1] == "add":
				args = append([]string{args[0], args[1], "--yes", "--sandbox=best-effort"}, args[2:]...) // no terminal is there to say so
			case args[0] == "mcp" && args[1] == "accept":
				args = append(args, "--yes")
			case args[0] != "mcp":
				args = append(args, "--store=memory", "--sandbox=best-effort")
			}
			cmd := self("mcp-pif", args...)
			cmd.Dir, cmd.Env = dir, append(append(cmd.Env, env...), "XDG_STATE_HOME="+state)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %s: %v\n%s", readme, line, err, out)
			}
			if ran++; args[0] != "mcp" && !strings.Contains(string(out), "memory.create_entities") {
				t.Errorf("%s starts without the server:\n%s", line, out)
			}
		}
		if ran < 2 {
			t.Errorf("%s: %d lines were executed", readme, ran)
		}
	}
}
