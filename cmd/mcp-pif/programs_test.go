//go:build linux

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// TestKnownPrograms: usual interpreters start in one line, answer, and end; those that
// this machine has.
func TestKnownPrograms(t *testing.T) {
	venv := ""
	if python, err := exec.LookPath("python3"); err == nil {
		if dir := filepath.Join(t.TempDir(), ".venv"); exec.Command(python, "-m", "venv", "--without-pip", dir).Run() == nil {
			venv = filepath.Join(dir, "bin", "python")
		}
	}
	pyenv, _ := filepath.Glob(filepath.Join(os.Getenv("HOME"), ".pyenv", "versions", "3.1*", "bin", "python3"))
	newest := ""
	if len(pyenv) > 0 {
		newest = pyenv[0]
	}
	for _, c := range []struct{ command, text, want string }{
		{"ghci", ":t map", "map :: (a -> b) -> [a] -> [b]"},
		{"python3", "6 * 7", "42"},
		{"/usr/bin/python3", "6 * 7", "42"},
		{newest, "import json, sys; print(sys.prefix, 6 * 7)", " 42"},
		{venv, "import sys; print(sys.prefix != sys.base_prefix, 6 * 7)", "True 42"},
		{"node", "6 * 7", "42"},
		{"sqlite3", "select 6 * 7;", "42"},
	} {
		if c.command == "" {
			continue
		}
		if _, err := exec.LookPath(strings.Fields(c.command)[0]); err != nil {
			continue
		}
		t.Run(strings.ReplaceAll(c.command, "/", "_"), func(t *testing.T) {
			t.Parallel()
			p := withState(t, t.TempDir(), "--timeout=30m", "--store", "memory", "--proc", c.command, "--with", "sessions")
			var began struct{ Session string }
			r := p.call("session_start", `{}`)
			if err := json.Unmarshal([]byte(r.Content[0].Text), &began); err != nil || r.IsError {
				t.Fatalf("%s", r.Content[0].Text)
			}
			for _, text := range []string{c.text, c.text} {
				r = p.call("session_send", string(cli.Marshal(map[string]any{"session": began.Session, "text": text, "wait": 600000})))
				var got lineRead
				if err := json.Unmarshal([]byte(r.Content[0].Text), &got); err != nil || got.Over != "prompt" || !got.Running {
					t.Fatalf("%s gave %s", text, r.Content[0].Text)
				}
				if !strings.Contains(got.Stdout, c.want) { // the prompt was that of a slow start, and the answer is still to come
					r = p.call("session_listen", string(cli.Marshal(map[string]any{"session": began.Session, "pattern": regexp.QuoteMeta(c.want), "wait": 600000})))
				}
				if err := json.Unmarshal([]byte(r.Content[0].Text), &got); err != nil || !strings.Contains(got.Stdout, c.want) {
					t.Fatalf("%s gave %s", text, r.Content[0].Text)
				}
			}
		})
	}
}

// TestProcNames: a command that stands alone is granted by its program's name, one with
// a name isn't, and what is added is told.
func TestProcNames(t *testing.T) {
	script := filepath.Join(t.TempDir(), "tool.sh")
	must.NoError(t, os.WriteFile(script, []byte("#!/bin/sh -e\nexec cat\n"), 0o700))
	for _, c := range []struct {
		flags []string
		want  string // among the grants
		told  string
	}{
		{[]string{"--proc", script}, `"proc:tool.sh"`, "is a script: /bin/sh is started with it"},
		{[]string{"--proc", "mine=" + script}, `"grants":[]`, ""},
		{[]string{"--proc", "mine=/bin/sh"}, `"grants":[]`, "prompts only with -i: write mine=/bin/sh -i"},
		{[]string{"--proc", "mine=" + script, "--cap", "proc.start:mine"}, `["proc.start:mine"]`, "may read " + script},
		{[]string{"--proc", script, "--cap", "proc.start:tool.sh"}, `["proc.start:tool.sh"]`, ""},
	} {
		p := withState(t, t.TempDir(), append([]string{"--store", "memory"}, c.flags...)...)
		if r := p.call("list", `{}`); !strings.Contains(r.Content[0].Text, c.want) {
			t.Errorf("%q: %s, expected %s", c.flags, r.Content[0].Text, c.want)
		}
		if log := p.logged(); !strings.Contains(log, c.told) {
			t.Errorf("%q: the log lacks %q:\n%s", c.flags, c.told, log)
		}
	}
}
