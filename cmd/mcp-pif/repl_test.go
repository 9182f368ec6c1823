package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// readmeRun is a command of a README that runs a program, perhaps with an input.
var readmeRun = regexp.MustCompile(`(?m)^\$ mcp-pif run '([^'\n]*)'(?: '?([^'\n]*)'?)?\n((?:[^$\n].*\n)*)`)

// TestReadmesInRepl types the programs of the READMEs into the repl: each gives what
// the README says of run.
func TestReadmesInRepl(t *testing.T) {
	typed := 0
	for _, path := range []string{"../../README.md", "../README.md"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range blocks(string(text)) {
			for _, m := range readmeRun.FindAllStringSubmatch(b.text, -1) {
				typed++
				entry := strings.TrimSpace(m[1] + " " + m[2])
				cmd := self("mcp-pif", "repl")
				cmd.Env = append(cmd.Environ(), "XDG_STATE_HOME="+t.TempDir())
				cmd.Stdin = strings.NewReader(entry + "\n")
				got, err := cmd.CombinedOutput()
				want := strings.ReplaceAll(regexp.QuoteMeta(m[3]), "…", ".*?")
				if err != nil || !regexp.MustCompile(`(?s)\A`+want+`\z`).Match(got) {
					t.Errorf("%s: %s\ngave (%v)\n%s\nexpected\n%s", path, entry, err, got, m[3])
				}
			}
		}
	}
	if typed < 5 {
		t.Errorf("only %d programs of the READMEs were typed", typed)
	}
}
