package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs testdata/script: a claim each, in its first line.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Condition: func(name string) (bool, error) {
			if name != "full" { // what is elsewhere in a smaller version
				return false, fmt.Errorf("no condition %s", name)
			}
			return full(), nil
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("XDG_STATE_HOME", env.WorkDir+"/state")
			repository, err := filepath.Abs("../..")
			env.Setenv("REPOSITORY", repository)
			if race, ok := os.LookupEnv("GORACE"); ok {
				env.Setenv("GORACE", race)
			}
			if err != nil {
				return err
			}
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"mcp":    transcript,
			"mode":   mode,
			"typed":  typing,
			"answer": answering,

			"stranger": stranger,
			"golang":   golang,
		},
	})
}

// TestScriptsHaveClaims: the first line of a script says what it shows.
func TestScriptsHaveClaims(t *testing.T) {
	entries, err := os.ReadDir("testdata/script")
	must.NoError(t, err)
	for _, e := range entries {
		b, err := os.ReadFile("testdata/script/" + e.Name())
		must.NoError(t, err)
		area, _, ok := strings.Cut(strings.TrimSuffix(e.Name(), ".txtar"), "_")
		first, _, _ := strings.Cut(string(b), "\n")
		if !ok || area == "" || !strings.HasPrefix(first, "# ") || len(first) < 20 {
			t.Errorf("%s: a script is called <area>_<case>.txtar and starts with its claim, # and a sentence of 18 characters at least", e.Name())
		}
	}
}

// mode checks a file's permissions: mode 600 FILE.
func mode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: mode OCTAL FILE")
	}
	info, err := os.Stat(ts.MkAbs(args[1]))
	ts.Check(err)
	if got := fmt.Sprintf("%o", info.Mode().Perm()); got != args[0] {
		ts.Fatalf("%s has the mode %s", args[1], got)
	}
}

// transcript speaks MCP with a server: mcp FILE [FLAGS…]. The server keeps what
// it makes in memory, unless the flags say where; "kept" among them is for what is
// done without any. The file says, line by line,
//
//	> JSON           send this
//	< JSON           the next message has at least these members; "*" is anything
//	? JSON           likewise, where what was sent last is sent again until it has
//	open             initialize, and say so
//	call TOOL JSON   call a tool with these arguments, and wait for the answer:
//	= TEXT           its text is this
//	~ TEXT           its text holds this
//	! KIND           it failed with this kind
//	. PATH JSON      its structured content has this at a path such as a/b
//
// $task is the task that a message named last, and $question the question that it had.
// Every line sent is awaited before the next, since a file piped in would lose
// replies, and pass against an empty expectation. At the end of the file input
// is closed, and the server must exit well with nothing more to say.
func transcript(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: mcp FILE [FLAGS…]")
	}
	flags := slices.DeleteFunc(slices.Clone(args[1:]), func(flag string) bool { return flag == "kept" })
	if len(flags) == len(args)-1 && !slices.ContainsFunc(flags, func(flag string) bool {
		return strings.HasPrefix(flag, "--store") || strings.HasPrefix(flag, "--profile")
	}) {
		flags = append(flags, "--store=memory")
	}
	cmd := exec.Command("mcp-pif", append([]string{"serve", "--log-level=error"}, flags...)...)
	cmd.Dir = ts.Getenv("WORK")
	if path, err := exec.LookPath("mcp-pif"); err == nil {
		cmd.Path = path
	}
	in, err := cmd.StdinPipe()
	ts.Check(err)
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	var log bytes.Buffer
	cmd.Stderr = &log
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+ts.Getenv("XDG_STATE_HOME"))
	ts.Check(cmd.Start())
	defer cmd.Process.Kill()
	s := &scripted{ts: ts, in: in, out: bufio.NewReaderSize(out, 1<<20)}
	for i, line := range strings.Split(strings.TrimSpace(ts.ReadFile(args[0])), "\n") {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			s.line, s.number = line, i+1
			s.do()
		}
	}
	in.Close()
	rest, _ := io.ReadAll(s.out)
	for line := range strings.Lines(string(rest)) {
		if !strings.Contains(line, `"method":"notifications/`) {
			ts.Fatalf("after the transcript came %s", line)
		}
	}
	if err := cmd.Wait(); err != nil {
		ts.Fatalf("the server ended with %v\n%s", err, log.String())
	}
}

// scripted is a transcript under way.
type scripted struct {
	ts                   *testscript.TestScript
	in                   io.Writer
	sent                 string
	out                  *bufio.Reader
	line                 string
	number               int
	calls                int
	task, question, plan string
	passed               []map[string]any // notifications since the last line sent that nobody wanted yet
	answer               struct {         // of the last call
		Content           []struct{ Text string }
		StructuredContent json.RawMessage
		IsError           bool
	}
}

func (s *scripted) fail(format string, args ...any) {
	s.ts.Fatalf("line %d, %s\n%s", s.number, s.line, fmt.Sprintf(format, args...))
}

func (s *scripted) send(line string) {
	s.passed, s.sent = nil, line
	if _, err := io.WriteString(s.in, line+"\n"); err != nil {
		s.fail("sending: %v", err)
	}
}

// next is the next message; notifications are passed over, but for those of the
// method that is wanted, which may have come before the answer that was read.
func (s *scripted) next(notification string) map[string]any {
	for i, m := range s.passed {
		if m["method"] == notification {
			s.passed = slices.Delete(s.passed, i, i+1)
			return m
		}
	}
	for {
		line, err := s.out.ReadBytes('\n')
		if err != nil {
			s.fail("waiting for a message: %v", err)
		}
		dec := json.NewDecoder(bytes.NewReader(line))
		dec.UseNumber()
		var m map[string]any
		if err := dec.Decode(&m); err != nil {
			s.fail("%q is not JSON: %v", line, err)
		}
		if method, is := m["method"]; is && method != notification {
			s.passed = append(s.passed, m)
			continue
		}
		s.note(m)
		return m
	}
}

var planShown = regexp.MustCompile(`p_[0-9a-z]{8}-[0-9]+(?:\.[0-9]+)?`)

// note remembers the task that a message names, and its question, and the plan.
func (s *scripted) note(m map[string]any) {
	result, _ := m["result"].(map[string]any)
	structured, _ := result["structuredContent"].(map[string]any)
	questions, _ := result["inputRequests"].(map[string]any)
	for _, id := range []any{result["taskId"], structured["task"]} {
		if id, ok := id.(string); ok {
			s.task = id
		}
	}
	for key := range questions {
		s.question = key
	}
	text, _ := json.Marshal(structured)
	if id := planShown.Find(text); id != nil {
		s.plan = string(id)
	}
}

func (s *scripted) do() {
	s.line = strings.NewReplacer("$task", s.task, "$plan", s.plan, "$question", s.question).Replace(s.line)
	switch word, rest, _ := strings.Cut(s.line, " "); word {
	case ">":
		s.send(rest)
	case "<":
		want := s.decode(rest)
		notification, _ := want.(map[string]any)["method"].(string)
		if got := s.next(notification); !like(want, got) {
			text, _ := json.Marshal(got)
			s.fail("came %s", text)
		}
	case "?":
		want := s.decode(rest)
		for end := time.Now().Add(5 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
			got := s.next("")
			if like(want, got) {
				break
			}
			if time.Now().After(end) {
				s.fail("came %v", got)
			}
			s.send(s.sent)
		}
	case "open":
		s.send(initialize)
		s.next("")
		s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	case "call":
		tool, arguments, _ := strings.Cut(rest, " ")
		if arguments == "" {
			arguments = "{}"
		}
		s.calls++
		s.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"call%d","method":"tools/call","params":{"name":%q,"arguments":%s}}`, s.calls, tool, arguments))
		m := s.next("")
		text, _ := json.Marshal(m["result"])
		s.answer.StructuredContent, s.answer.Content, s.answer.IsError = nil, nil, false
		if err := json.Unmarshal(text, &s.answer); err != nil || len(s.answer.Content) == 0 || m["id"] != fmt.Sprintf("call%d", s.calls) {
			s.fail("came %v", m)
		}
	case "=":
		// The text of a tool that gives text is no JSON.
		var plain string
		got := s.answer.Content[0].Text
		if s.answer.IsError || got != rest && (json.Unmarshal([]byte(rest), &plain) != nil || got != plain) {
			s.fail("the text is %s", got)
		}
	case "~":
		var all []string
		for _, c := range s.answer.Content {
			all = append(all, c.Text)
		}
		if got := strings.Join(all, "\n"); !strings.Contains(got, rest) {
			s.fail("the text is %s", got)
		}
	case "!":
		if got, _ := s.at("error/kind").(string); !s.answer.IsError || got != rest {
			s.fail("the answer is %s %s", got, s.answer.Content[0].Text)
		}
	case ".":
		path, want, _ := strings.Cut(rest, " ")
		if got := s.at(path); !like(s.decode(want), got) {
			text, _ := json.Marshal(got)
			s.fail("there is %s", text)
		}
	default:
		s.fail("no such line")
	}
}

// at is a part of the last answer's structured content.
func (s *scripted) at(path string) any {
	v := s.decode(string(s.answer.StructuredContent))
	for _, name := range strings.Split(path, "/") {
		switch c := v.(type) {
		case map[string]any:
			v = c[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(c) {
				return nil
			}
			v = c[i]
		default:
			return nil
		}
	}
	return v
}

func (s *scripted) decode(text string) any {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		s.fail("%q is not JSON: %v", text, err)
	}
	return v
}

// like reports whether a value is as wanted: objects have at least the members.
func like(want, got any) bool {
	switch want := want.(type) {
	case string:
		return want == "*" && got != nil || want == got
	case map[string]any:
		object, ok := got.(map[string]any)
		for name, v := range want {
			if !ok || !like(v, object[name]) {
				return false
			}
		}
		return ok
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(want) {
			return false
		}
		for i := range want {
			if !like(want[i], list[i]) {
				return false
			}
		}
		return true
	}
	return want == got
}

// prompted finds a prompt that waits for a line: a type has an arrow, too, and a list
// of completions is followed by the line again.
var prompted = regexp.MustCompile(`2004h(pif|step|\.\.\.)> `)

// typing runs the repl on a terminal and types: typed FILE. Each line of the file
// is typed, with Go's escapes and no return at its end, when the prompt has come.
// What the terminal shows is the script's stdout.
func typing(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: typed FILE")
	}
	cmd := exec.Command("script", "-qec", "mcp-pif repl", "/dev/null")
	cmd.Env = append(cmd.Environ(), "TERM=xterm", "NO_COLOR="+ts.Getenv("NO_COLOR"), "XDG_STATE_HOME="+ts.Getenv("XDG_STATE_HOME"))
	in, err := cmd.StdinPipe()
	ts.Check(err)
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	defer cmd.Process.Kill()
	timer := time.AfterFunc(receiveTime, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	var screen bytes.Buffer
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		keys, err := strconv.Unquote(`"` + strings.ReplaceAll(strings.TrimSuffix(line, "\n"), `"`, `\"`) + `"`)
		ts.Check(err)
		shown := screen.Len()
		for b := make([]byte, 4096); !prompted.Match(screen.Bytes()[shown:]); {
			n, err := out.Read(b)
			screen.Write(b[:n])
			if err != nil {
				ts.Fatalf("the repl ended before %s was typed:\n%s", line, screen.String())
			}
		}
		_, err = io.WriteString(in, keys)
		ts.Check(err)
	}
	_, _ = io.Copy(&screen, out)
	in.Close()
	if err := cmd.Wait(); err != nil {
		ts.Fatalf("%v\n%s", err, screen.String())
	}
	_, err = ts.Stdout().Write(screen.Bytes())
	ts.Check(err)
}

// readmeRun is a command of a README that runs a program, perhaps with an input.
var readmeRun = regexp.MustCompile(`(?m)^\$ mcp-pif run '([^'\n]*)'(?: '?([^'\n]*)'?)?\n((?:[^$\n].*\n)*)`)

// TestReadmesInRepl types the programs of the READMEs into the repl: each gives what
// the README says of run.
func TestReadmesInRepl(t *testing.T) {
	typed := 0
	for _, path := range []string{"../../README.md", "../README.md"} {
		text, err := os.ReadFile(path)
		must.NoError(t, err)
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

// TestPrintedJSON: what turns the direction of text, or moves the cursor, is written
// with escapes in what is printed as JSON, which says the same.
func TestPrintedJSON(t *testing.T) {
	for _, code := range []string{
		"{\"add\":[\"\u202e\u0085\u2066\u200f\u061c\",1]}", "\u202e => 1", "x => {\"\u202e\": x + \"\u009b\u007f\"}",
		"{\"\u202ea.b\":1}", "{\"call\":{\"tool\":\"\u202e\",\"input\":1}}", "x => \u202e",
	} {
		_, out := checked(t, "--json", code)
		if strings.ContainsAny(out, "\u202e\u0085\u009b\u2066\u200f\u061c\u007f\x1b") {
			t.Errorf("check --json %q prints %q", code, out)
		}
		if !json.Valid([]byte(out)) {
			t.Errorf("check --json %q prints what is no JSON: %q", code, out)
		}
	}
	// The escapes are the characters again.
	_, out := checked(t, "--json", `{"lam":"x","body":{"record":{"\u202eé":{"var":"x"}}}}`)
	var doc struct{ Type string }
	if err := json.Unmarshal([]byte(out), &doc); err != nil || !strings.Contains(doc.Type, `\u202eé`) {
		t.Errorf("the type is %q: %v", doc.Type, err)
	}
}

// TestFmtSaysTheSame: code that fmt wrote with escapes is the code that it read.
func TestFmtSaysTheSame(t *testing.T) {
	for _, code := range []string{
		`"` + steering + `"`,
		`{"lam":"` + steering + `","body":{"record":{"` + steering + `":{"get":[{"var":"` + steering + `"},"` + steering + `"]}}}}`,
	} {
		for _, asJSON := range []bool{false, true} {
			once, err := formatted(code, asJSON)
			must.NoError(t, err)
			if !bytes.Equal(once, cli.Sanitize(once)) {
				t.Errorf("fmt writes %q", once)
			}
			again, err := formatted(string(once), true)
			if err != nil {
				t.Fatalf("%q: %v", once, err)
			}
			if want, err := formatted(code, true); err != nil || !bytes.Equal(again, want) {
				t.Errorf("%q is read back as %q, not %q: %v", once, again, want, err)
			}
		}
	}
}
