package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// TestReadmes runs the examples of the documents, so that none goes stale:
//
//   - a console block: each "$ " line is a command (with "> " lines for more of
//     it), what follows its output, both streams together; "…" is anything;
//   - an sh block: every line is run, but for those that install something or
//     call another program;
//   - a json block with a client's configuration: each server in it is started
//     and spoken to.
func TestReadmes(t *testing.T) {
	for _, path := range []string{"../../README.md", "../README.md", "../../core/README.md", "../../core/check/README.md", "../../caps/README.md", "../../plugins/README.md"} {
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		must.NoError(t, err)
		name := filepath.Base(filepath.Dir(filepath.Clean(filepath.Join("/r/cmd/mcp-pif", path)))) + " README"
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, b := range blocks(string(text)) {
				switch b.language {
				case "console":
					b.console(t, dir)
				case "sh":
					if !strings.Contains(path, "plugins") { // TestPluginsReadme runs those
						b.shell(t, dir)
					}
				case "json":
					b.configuration(t, dir)
				}
			}
		})
	}
}

// TestReadmeHasExamples: the test above can't pass by finding nothing.
func TestReadmeHasExamples(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	must.NoError(t, err)
	count := map[string]int{}
	for _, b := range blocks(string(text)) {
		count[b.language]++
	}
	if count["console"] < 3 || count["json"] < 3 || count["sh"] < 2 {
		t.Errorf("the blocks of cmd/README.md are %v", count)
	}
}

// A block is a fenced part of a document.
type block struct {
	language string
	line     int // of its fence
	text     string
}

var fence = regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$")

func blocks(text string) []block {
	var all []block
	for _, m := range fence.FindAllStringSubmatchIndex(text, -1) {
		all = append(all, block{
			language: text[m[2]:m[3]],
			line:     strings.Count(text[:m[0]], "\n") + 1,
			text:     text[m[4]:m[5]],
		})
	}
	return all
}

// shell runs a command in the directory; its output is of both streams.
func shell(dir, command string) string {
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_STATE_HOME="+dir)
	out, _ := cmd.CombinedOutput()
	return string(out)
}

func (b *block) console(t *testing.T, dir string) {
	t.Helper()
	var command, want string
	run := func() {
		if command == "" {
			return
		}
		got := shell(dir, command)
		pattern := regexp.QuoteMeta(want)
		pattern = strings.ReplaceAll(pattern, "…", ".*?")
		if !regexp.MustCompile(`(?s)\A` + pattern + `\z`).MatchString(got) {
			t.Errorf("line %d: $ %s\ngave\n%s\nexpected\n%s", b.line, command, got, want)
		}
		command, want = "", ""
	}
	for line := range strings.Lines(b.text) {
		if c, ok := strings.CutPrefix(line, "$ "); ok {
			run()
			command = strings.TrimSuffix(c, "\n")
		} else if c, ok := strings.CutPrefix(line, "> "); ok && want == "" {
			command += "\n" + strings.TrimSuffix(c, "\n")
		} else {
			want += line
		}
	}
	run()
}

// others are the programs in examples that aren't ours to run.
var others = regexp.MustCompile(`^(go|git|claude|code|cursor|npx|sudo|brew|which|\.ci/run)\b`)

func (b *block) shell(t *testing.T, dir string) {
	t.Helper()
	for line := range strings.Lines(b.text) {
		if line = strings.TrimSpace(line); line == "" || others.MatchString(line) || line[0] == '#' {
			continue
		}
		cmd := exec.Command("sh", "-c", line)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("line %d: %s: %v\n%s", b.line, line, err, out)
		}
	}
}

func (b *block) configuration(t *testing.T, dir string) {
	t.Helper()
	type server struct {
		Command string
		Args    []string
	}
	var c struct {
		MCPServers map[string]server `json:"mcpServers"`
		Servers    map[string]server `json:"servers"`
	}
	if err := json.Unmarshal([]byte(b.text), &c); err != nil {
		if strings.Contains(b.text, "mcpServers") {
			t.Errorf("line %d: %v", b.line, err)
		}
		return
	}
	for _, servers := range []map[string]server{c.MCPServers, c.Servers} {
		for _, s := range servers {
			if s.Command != "mcp-pif" {
				t.Errorf("line %d: the command is %s", b.line, s.Command)
			}
			cmd := self(s.Command, s.Args...)
			cmd.Dir = dir
			p := startCommand(t, cmd).open()
			if r := p.call("run", `{"code":{"add":[1,2]}}`); r.Content[0].Text != "3" {
				t.Errorf("line %d: the server answered %s", b.line, r.Content[0].Text)
			}
			p.end()
		}
	}
}

// TestReadmeTables: the tables of cmd/README.md have every argument of the server's own
// tools, every command, and every flag of serve.
func TestReadmeTables(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	must.NoError(t, err)
	has := func(heading, row, what string) {
		_, part, _ := strings.Cut(string(text), "\n## "+heading+"\n")
		part, _, _ = strings.Cut(part, "\n## ")
		for line := range strings.Lines(part) {
			if strings.HasPrefix(line, "| "+row) && regexp.MustCompile("`"+what+"[][ `=|]").MatchString(line) {
				return
			}
		}
		t.Errorf("cmd/README.md, %q: no row of %q has `%s`", heading, strings.Trim(row, "`-"), what)
	}
	for _, tool := range wire.Tools {
		for _, name := range wire.NamesOf(tool.Arguments) {
			has("What a model sees", "`"+tool.Name+"` ", name)
		}
	}
	root := newRoot(io.Discard)
	for _, cmd := range root.Commands() {
		if !cmd.Hidden {
			has("Run it by hand", "`"+cmd.Name(), cmd.Name())
		}
	}
	serve, _, err := root.Find([]string{"serve"})
	must.NoError(t, err)
	serve.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			has("Flags", "`--", "--"+f.Name)
		}
	})
}

// kindCells returns what the table of plugins/README.md says of a kind: its operations,
// its verbs, and the options that are its own.
func kindCells(m *caps.Manifest) (operations, verbs, options string) {
	var names, said, own []string
	for _, o := range m.Operations {
		names = append(names, strings.TrimPrefix(o.Name, m.Kind+"."))
	}
	for _, v := range m.Verbs {
		said = append(said, v.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Options)) {
		option := "`" + name + "`"
		if values := m.Options[name]; len(values) > 0 {
			option = "`" + name + "=` " + strings.Join(values, ", ")
		}
		own = append(own, option)
	}
	operations, verbs = strings.Join(names, ", "), strings.Join(said, ", ")
	if verbs == operations {
		verbs = "the same"
	}
	return operations, verbs, strings.Join(own, "; ")
}

// TestReadmeKinds: the table in plugins/README.md has every kind that ships, with its
// operations, verbs and options, and no other; the root README names each.
func TestReadmeKinds(t *testing.T) {
	all, err := app.Kinds()
	must.NoError(t, err)
	const path = "../../plugins/README.md"
	text, err := os.ReadFile(path)
	must.NoError(t, err)
	rows := map[string][]string{}
	in := false
	for line := range strings.Lines(string(text)) {
		in = strings.HasPrefix(line, "| kind |") || in && strings.HasPrefix(line, "|")
		if !in || !strings.HasPrefix(line, "| [`") && !strings.HasPrefix(line, "| `") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		kind, _, _ := strings.Cut(strings.Trim(cells[0], "[`"), "`")
		rows[kind] = cells
	}
	for kind, m := range all {
		operations, verbs, options := kindCells(m)
		want := fmt.Sprintf("%s | %s | %s", operations, verbs, options)
		if cells := rows[kind]; len(cells) < 5 || strings.Join(cells[2:5], " | ") != want {
			t.Errorf("%s: the row of %s is %q; in columns 3 to 5 there is to be %q", path, kind, cells, want)
		}
		delete(rows, kind)
	}
	for kind := range rows {
		t.Errorf("%s: there is no kind %s", path, kind)
	}
	front, err := os.ReadFile("../../README.md")
	must.NoError(t, err)
	for kind := range all {
		if !regexp.MustCompile("`" + kind + "[.:`]").Match(front) {
			t.Errorf("the root README doesn't name the kind %s", kind)
		}
	}
}

// TestKindsExamples: the example that help and faults show of each operation that ships is
// code that asks for it with what it requires.
func TestKindsExamples(t *testing.T) {
	all, err := app.Kinds()
	must.NoError(t, err)
	for _, m := range all {
		for i := range m.Operations {
			o := &m.Operations[i]
			p, err := core.Compile([]byte(o.Example()))
			if err != nil {
				t.Errorf("%s: %s: %v", o.Name, o.Example(), err)
				continue
			}
			effect, ok := p.Term().(*term.Effect)
			if !ok || effect.Op != o.Name {
				t.Errorf("%s: %s is no call of it", o.Name, o.Example())
				continue
			}
			given, isRecord := effect.Argument().(*term.Record)
			for _, p := range o.Params {
				has := isRecord && slices.ContainsFunc(given.Fields, func(f term.Field) bool { return f.Key == p.Name })
				if alone := !isRecord && p.Main; !p.Optional && !has && !alone {
					t.Errorf("%s: %s lacks %s", o.Name, o.Example(), p.Name)
				}
			}
		}
	}
}

// steering does something to a terminal, or isn't seen there.
const steering = "\u202e\u009b2J\u2066\u200b\u2028\U000e0041"

// TestListsSteerNoTerminal: what a model put into names, descriptions, code, examples
// and inputs reaches no terminal as it is, whatever command shows it.
func TestListsSteerNoTerminal(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	must.NoError(t, os.Chmod(state, 0o700))
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
		must.Succeed(t)(lines.Write([]byte(text[i : i+1])))
	}
	if shown.String() != string(cli.EscapeJSON([]byte(text))) {
		t.Errorf("%q", shown.String())
	}
}
