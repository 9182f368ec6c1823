package mcpcmd

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/cmd/internal/clientconfig"
	"github.com/mcp-pif/mcp-pif/cmd/internal/pinned"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/spf13/cobra"
)

// TestAttackTemporaryFolder: installers, which read settings of all folders around theirs, work in none below that for
// temporary files, where any user may write them.
func TestAttackTemporaryFolder(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the installers here are scripts of a shell")
	}
	state, bin, shared := t.TempDir(), t.TempDir(), t.TempDir()
	log := filepath.Join(bin, "log")
	for _, name := range []string{"uv.toml", "package.json", ".npmrc"} {
		must.NoError(t, os.WriteFile(filepath.Join(shared, name), nil, 0o600))
	}
	script := fmt.Sprintf("#!/bin/sh\necho ran \"$0\" >> %s\nd=$PWD\nwhile [ \"$d\" != / ]; do\n  ls -a \"$d\" | grep -E '^(uv.toml|package.json|.npmrc)$' | sed \"s,^,$d/,\" >> %s\n  d=$(dirname \"$d\")\ndone\n", log, log)
	for name, then := range map[string]string{"npm": "exit 1", "uv": "exit 1", "node": "echo /usr/bin/node", "python3": "echo /usr/bin/python3"} {
		must.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte(script+then+"\n"), 0o700))
	}
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	t.Setenv("XDG_STATE_HOME", state)
	t.Setenv("TMPDIR", shared)
	l, err := (&ServerLock{Path: filepath.Join(t.TempDir(), "lock.json")}).Read()
	must.NoError(t, err)
	cmd := &cobra.Command{}
	cmd.SetErr(&strings.Builder{})
	for _, line := range []string{"npx server", "uvx server"} {
		if _, err := (&Move{cmd: cmd}).pinnedLine(&clientconfig.Upstream{Command: strings.Fields(line)}); err == nil {
			t.Errorf("%s: it was found", line)
		}
		if _, _, err := newServer(cmd, l, strings.Fields(line), &serverOptions{}); err == nil {
			t.Errorf("%s: it was added", line)
		}
		p, _, err := pinned.Parse(strings.Fields(line + "@1.0.0"))
		must.NoError(t, err)
		if _, _, err := installPinned(cmd, l, p, &serverOptions{}); err == nil {
			t.Errorf("%s: it was installed", line)
		}
	}
	said, err := os.ReadFile(log)
	must.NoError(t, err)
	for _, name := range []string{"npm", "uv", "node", "python3"} {
		if !strings.Contains(string(said), "ran "+filepath.Join(bin, name)+"\n") {
			t.Errorf("%s did not run", name)
		}
	}
	if strings.Contains(string(said), shared) {
		t.Errorf("installers find settings of others: %s", said)
	}
	info, err := os.Stat(filepath.Join(state, "mcp-pif", "installing"))
	if must.NoError(t, err); info.Mode().Perm() != 0o700 {
		t.Errorf("others may look into the folder: %v", info.Mode())
	}
	left, err := os.ReadDir(filepath.Join(state, "mcp-pif", "installing"))
	if must.NoError(t, err); len(left) > 0 {
		t.Errorf("%v stays", left)
	}
}
