package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
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
		if err != nil {
			t.Fatal(err)
		}
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
	if err != nil {
		t.Fatal(err)
	}
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
