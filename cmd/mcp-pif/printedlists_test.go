package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
)

// steering does something to a terminal, or isn't seen there.
const steering = "\u202e\u009b2J\u2066\u200b\u2028\U000e0041"

// TestListsSteerNoTerminal: what a model put into names, descriptions, code, examples
// and inputs reaches no terminal as it is, whatever command shows it.
func TestListsSteerNoTerminal(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	if err := os.Chmod(state, 0o700); err != nil {
		t.Fatal(err)
	}
	store := filepath.Join(t.TempDir(), "pif.db")
	run := func(args []string, in string) (out, errs string) {
		var stdout, stderr bytes.Buffer
		command(args, strings.NewReader(in), &stdout, &stderr)
		return stdout.String(), stderr.String()
	}
	messages := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c` + steering + `","version":"1"}}}` + "\n"
	for _, call := range []string{
		`{"name":"evolve","arguments":{"name":"a","description":"D","code":{"lam":"xS","body":{"concat":["S",{"var":"xS"}]}},"examples":[{"input":"S","expect":"SS"}]}}`,
		`{"name":"evolve","arguments":{"name":"a","description":"DS","examples":[],"code":{"lam":"xS","body":{"concat":["SS",{"var":"xS"}]}}}}`,
		`{"name":"a","arguments":{"input":"S"}}`,
	} {
		call = strings.ReplaceAll(call, "S", steering)
		messages += `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + call + "}\n"
	}
	if out, errs := run([]string{"--store", store}, messages); strings.Contains(out, `"isError":true`) {
		t.Fatal(out, errs)
	}
	exported, _ := run([]string{"journal", "export", "--store", store, "--kind", "run.started"}, "")
	var started struct{ Run string }
	if err := json.Unmarshal([]byte(strings.SplitN(exported, "\n", 2)[0]), &started); err != nil {
		t.Fatal(err, exported)
	}
	for _, args := range [][]string{
		{"tools", "list"}, {"tools", "list", "--json"}, {"tools", "show", "a"}, {"tools", "show", "a", "--json"},
		{"tools", "history", "a"}, {"tools", "history", "a", "--json"}, {"tools", "diff", "a", "1", "2"}, {"tools", "export"},
		{"tools", "show", steering}, {"tools", "diff", steering, "1"}, {"tools", "import", steering},
		{"journal", "tail"}, {"journal", "show", "3"}, {"journal", "verify"}, {"journal", "verify", "--file", steering},
		{"replay", started.Run}, {"replay", started.Run, "--json"}, {"replay", started.Run, "--trace"},
		{"check", "--tool", "a"}, {"check", steering},
		{"run", `"` + steering + `"`}, {"run", "--json", `"` + steering + `"`}, {"run", steering}, {"fmt", steering},
		{"fmt", `"` + steering + `"`}, {"fmt", "--json", `{"lam":"` + steering + `","body":{"record":{"` + steering + `":1}}}`},
		{"fmt", `{"lam":"` + steering + `","body":{"get":[{"var":"` + steering + `"},"` + steering + `"]}}`},
		{"caps", "explain", steering}, {"doctor", "--policy", steering}, {"doctor", "--cap", steering}, {steering},
	} {
		if args[0] == "tools" || args[0] == "journal" || args[0] == "replay" || args[0] == "check" {
			args = append(args, "--store", store)
		}
		out, errs := run(args, "")
		if out+errs == "" {
			t.Errorf("%q says nothing", args)
		}
		for _, text := range []string{out, errs} {
			if at := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && cli.Steers(r) }); at >= 0 {
				t.Errorf("%q prints %q", args, text[at:])
			}
		}
	}
}

// TestExportedSteering: a document of tools says what it said, and goes back in; the
// lines of a journal are as they were recorded, but on a terminal.
func TestExportedSteering(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	store, other := filepath.Join(t.TempDir(), "pif.db"), filepath.Join(t.TempDir(), "other.db")
	p := start(t, "--log-level=error", "--store", store).open()
	p.makes("a", `{"lam":"x","body":{"concat":["`+steering+`",{"var":"x"}]}}`)
	p.end()
	var document, again bytes.Buffer
	for _, c := range []struct {
		args []string
		in   string
		out  *bytes.Buffer
	}{
		{[]string{"tools", "export", "--store", store}, "", &document},
		{[]string{"tools", "import", "-", "--store", other}, "document", new(bytes.Buffer)},
		{[]string{"tools", "export", "--store", other}, "", &again},
	} {
		var errs bytes.Buffer
		in := c.in
		if in != "" {
			in = document.String()
		}
		if status := command(c.args, strings.NewReader(in), c.out, &errs); status != 0 {
			t.Fatal(c.args, errs.String())
		}
	}
	if document.String() != again.String() || !strings.Contains(document.String(), `\u202e\u009b2J`) {
		t.Errorf("%s\nand again\n%s", document.String(), again.String())
	}
	var shown bytes.Buffer
	lines := &cli.JSONLines{Out: &shown}
	text := "{\"a\":\"" + steering + "\"}\n{\"b\":\"" + steering + "\"}\n"
	for i := range len(text) { // a write may end within a character
		if _, err := lines.Write([]byte(text[i : i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if shown.String() != string(cli.EscapeJSON([]byte(text))) {
		t.Errorf("%q", shown.String())
	}
}
