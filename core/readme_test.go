package core_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/internal/vectors"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/value"
)

var update = flag.Bool("update", false, "rewrite what language.md takes from the program")

// language is the specification.
const language = "language.md"

// TestReadmeTables holds the parts of language.md that stand between
// <!-- name --> and <!-- end name --> against what they are made from.
func TestReadmeTables(t *testing.T) {
	text, err := os.ReadFile(language)
	must.NoError(t, err)
	parts := map[string]string{"rows": rowTable(), "order": keyOrder(), "kinds": kindTable(t)}
	for name, want := range parts {
		begin, end := "<!-- "+name+" -->\n", "<!-- end "+name+" -->"
		before, rest, ok := strings.Cut(string(text), begin)
		got, after, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			t.Errorf("there are no marks %s…%s", begin, end)
			continue
		}
		if *update {
			text = []byte(before + begin + want + end + after)
		} else if got != want {
			t.Errorf("the part %q is out of date; run with -update and look at it: %s", name, firstChange(got, want))
		}
	}
	if *update {
		must.NoError(t, os.WriteFile(language, text, 0o644))
	}
}

// firstChange shows where two parts begin to differ.
func firstChange(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("\nit says   %s\nit should %s", g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines, not %d", len(g), len(w))
}

// rowTable is the table of forms and primitives.
func rowTable() string {
	var b strings.Builder
	b.WriteString("| | term | operands | gives | meaning |\n|---|---|---|---|---|\n")
	group := ""
	for i := range prim.Table {
		r := &prim.Table[i]
		head := ""
		if r.Group != group {
			group = r.Group
			head = "**" + group + "**"
		}
		spelled, meaning := r.Spelling(), r.Doc
		switch {
		case r.Shape == prim.Literal:
			spelled = r.Examples[0].Code
		case r.Operation():
			meaning = "`" + r.Name + "` " + meaning
		}
		spelled = "`" + spelled + "`"
		if r.Shape == prim.KeyedOrArray {
			spelled += fmt.Sprintf(" or `{%q:[%s]}`", r.Name, initials(r))
		}
		spelled = strings.ReplaceAll(spelled, " or {", "` or `{")
		var operands []string
		for _, p := range r.Params {
			operands = append(operands, p.Name+": "+words(p.Kinds))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", head, spelled, strings.Join(operands, ", "), words(r.Result), strings.ReplaceAll(meaning, "|", `\|`))
	}
	return b.String()
}

// words is kinds for a cell of a table, which bars would end.
func words(k prim.Kinds) string { return strings.ReplaceAll(k.String(), "|", " or ") }

// initials is a row's operands as Spelling writes them in an object.
func initials(r *prim.Row) string {
	names := make([]string, len(r.Params))
	for i, p := range r.Params {
		names[i] = strings.ToUpper(p.Name[:1])
	}
	return strings.Join(names, ",")
}

// keyOrder is the order in which the keys of one object are tried.
func keyOrder() string {
	var rows []*prim.Row
	for i := range prim.Table {
		if r := &prim.Table[i]; r.Operation() && r.Rank < prim.NewRank {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b *prim.Row) int { return a.Rank - b.Rank })
	var names []string
	for _, r := range rows {
		name := "`" + r.Name + "`"
		if r.Falls {
			name += "\\*"
		}
		names = append(names, name)
	}
	return strings.Join(names, " ") + "\n"
}

// kindTable is the table of the kinds of failure, those apart that nothing in
// this module gives yet.
func kindTable(t *testing.T) string {
	used := mentioned(t)
	var b strings.Builder
	var reserved []string
	b.WriteString("| kind | occurs when | caught by `try` |\n|---|---|---|\n")
	for _, c := range fault.Codes {
		if !used[c.Kind] {
			reserved = append(reserved, "`"+string(c.Kind)+"`")
			continue
		}
		when := c.When
		if c.Example != "" && len(c.Example) < 40 {
			when += ": `" + c.Example + "`"
		}
		caught := "yes"
		if c.Uncatchable {
			caught = "no"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", c.Kind, when, caught)
	}
	if len(reserved) > 0 {
		fmt.Fprintf(&b, "\nReserved, since nothing in this module gives them yet: %s.\n", strings.Join(reserved, ", "))
	}
	return b.String()
}

// mentioned finds the kinds that the module's sources use, but for tests and
// the table itself.
func mentioned(t *testing.T) map[fault.Kind]bool {
	t.Helper()
	names := map[string]fault.Kind{}
	for _, c := range fault.Codes {
		name := ""
		for _, word := range strings.Split(string(c.Kind), "_") {
			name += strings.ToUpper(word[:1]) + word[1:]
		}
		names[name] = c.Kind
	}
	use := regexp.MustCompile(`\bfault\.([A-Z]\w+)`)
	used := map[fault.Kind]bool{}
	err := filepath.WalkDir("..", func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != ".." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules") {
			return filepath.SkipDir // others work there meanwhile, such as git
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/internal/vectors/") {
			return err
		}
		src, err := os.ReadFile(path)
		for _, m := range use.FindAllSubmatch(src, -1) {
			if k, ok := names[string(m[1])]; ok {
				used[k] = true
			}
		}
		return err
	})
	must.NoError(t, err)
	return used
}

// An example is one of a ```pif block.
type example struct {
	program
	line  int
	notes []string // of the code or the input, as far as they are given
	want  string   // JSON, or
	fails string   // a kind of failure with " at " and its place, or a whole fault as JSON
	steps uint64
	// readNotes is the notes of reading the input by its type.
	readNotes []string
}

// TestReadmeExamples runs every example of the documents on both evaluators.
func TestReadmeExamples(t *testing.T) {
	count := 0
	for _, file := range []string{"README.md", language, "running.md"} {
		count += runExamples(t, file)
	}
	if count < 50 {
		t.Errorf("only %d examples: are they still marked ```pif?", count)
	}
}

// runExamples runs the examples of one document, and returns how many there are.
func runExamples(t *testing.T, file string) (count int) {
	text, err := os.ReadFile(file)
	must.NoError(t, err)
	lines := strings.Split(string(text), "\n")
	for i := 0; i < len(lines); i++ {
		if lines[i] != "```pif" {
			if strings.HasPrefix(lines[i], "```json") {
				t.Errorf("%s:%d: JSON that no test runs", file, i+1)
			}
			continue
		}
		from := i + 1
		for i++; i < len(lines) && lines[i] != "```"; i++ {
		}
		for _, x := range examples(t, file, lines[from:i], from+1) {
			count++
			t.Run(fmt.Sprintf("line%d", x.line), x.check)
		}
	}
	return count
}

// examples reads a block. An example is code, or the tools it needs (the last
// of them is run where there is no code), what it is run with, and what comes
// of it:
//
//	tool NAME: CODE
//	CODE
//	input: JSON
//	input_as: auto, term or data
//	steps: N, memory: N or depth: N
//	effect: OPERATION ARGUMENT => OUTCOME
//	note: what a note says
//	=> RESULT (N steps)
//	!> KIND at PLACE, or a whole fault as JSON
//
// The steps may be left out. What follows in the same block has the same code
// and tools, unless it brings its own.
func examples(t *testing.T, file string, lines []string, first int) (found []example) {
	var x example
	fresh, outcome := true, false
	for i, line := range lines {
		if outcome && strings.HasPrefix(line, " ") {
			last := &found[len(found)-1]
			last.fails += "\n" + line
			continue
		}
		outcome = false
		word, rest, _ := strings.Cut(line, " ")
		if fresh && line != "" {
			x = example{program: program{tools: x.tools, tool: x.tool, code: x.code}, line: first + i}
		}
		switch word {
		case "":
			continue
		case "tool":
			name, code, ok := strings.Cut(rest, ": ")
			if !ok {
				t.Fatalf("%s:%d: a tool is NAME: CODE", file, first+i)
			}
			if fresh {
				x.tools = nil
			}
			x.tools = append(slices.Clip(x.tools), vectors.Tool{Name: name, Code: json.RawMessage(code)})
			x.tool, x.code = name, ""
		case "input:":
			x.input = rest
		case "input_as:":
			x.as = map[string]core.InputAs{"auto": core.InputAuto, "term": core.InputTerm, "data": core.InputData}[rest]
		case "steps:", "memory:", "depth:":
			n, err := strconv.Atoi(rest)
			if err != nil {
				t.Fatalf("%s:%d: %v", file, first+i, err)
			}
			switch word {
			case "steps:":
				x.budgets.Steps = uint64(n)
			case "memory:":
				x.budgets.Memory = int64(n)
			default:
				x.budgets.Depth = n
			}
		case "effect:":
			x.effect = answering(t, rest)
		case "note:":
			x.notes = append(x.notes, rest)
		case "=>", "!>":
			if word == "=>" {
				x.want = rest
				if m := regexp.MustCompile(`^(.*) \((\d+) steps?\)$`).FindStringSubmatch(rest); m != nil {
					x.want = m[1]
					x.steps, _ = strconv.ParseUint(m[2], 10, 64)
				}
			} else {
				x.fails = rest
			}
			x.text = !json.Valid([]byte(x.code))
			found = append(found, x)
			fresh, outcome = true, true
			continue
		default:
			if x.tool != "" || fresh {
				x.tool, x.code = "", ""
			}
			x.code += line + "\n"
		}
		fresh = false
	}
	if !fresh {
		t.Errorf("%s:%d: the block ends without an outcome", file, first+len(lines))
	}
	return found
}

// answering performs the one effect that is said, and denies every other.
func answering(t *testing.T, rule string) func(int, string, value.Value) (value.Value, *fault.Fault) {
	t.Helper()
	request, outcome, ok := strings.Cut(rule, " => ")
	op, arg, ok2 := strings.Cut(request, " ")
	if !ok || !ok2 {
		t.Fatalf("an effect is OPERATION ARGUMENT => OUTCOME: %s", rule)
	}
	return func(_ int, asked string, v value.Value) (value.Value, *fault.Fault) {
		if asked != op || !vectors.SameJSON(encoded(t, v), []byte(arg)) {
			return nil, fault.New(fault.Denied, "not "+asked)
		}
		return datum(t, outcome), nil
	}
}

func (x *example) check(t *testing.T) {
	x.read(t)
	x.checkNotes(t)
	x.onBoth(t, func(t *testing.T, got ending) {
		if x.steps != 0 && got.steps != x.steps {
			t.Errorf("%d steps, want %d", got.steps, x.steps)
		}
		if x.fails == "" {
			if got.fault != nil || !vectors.SameJSON([]byte(got.result), []byte(x.want)) {
				t.Errorf("got %s, want %s", got, x.want)
			}
			return
		}
		if got.fault == nil {
			t.Errorf("got %s, want %s", got, x.fails)
			return
		}
		if strings.HasPrefix(x.fails, "{") {
			if !vectors.SameJSON([]byte(got.whole(t)), []byte(x.fails)) {
				t.Errorf("got %s, want %s", got.whole(t), x.fails)
			}
			return
		}
		kind, at, placed := strings.Cut(x.fails, " at ")
		if string(got.fault.Kind) != kind || placed && string(got.fault.At) != strings.Trim(at, `"`) {
			t.Errorf("got %v, want %s", got.fault, x.fails)
		}
	})
}

// read reads the input by the types of the code, as the server does.
func (x *example) read(t *testing.T) {
	p, _, f := x.prepare()
	if f != nil || x.as != core.InputData || x.input == "" {
		return
	}
	r, f := check.Read(json.RawMessage(x.input), check.Infer(p.Term(), nil, check.Env{Tool: x.tool}, check.Budget{}), nil)
	if f != nil || len(r.Values) != 1 {
		t.Fatalf("%s is read as %v (%v)", x.input, r, f)
	}
	if x.input = string(r.Values[0]); r.Term {
		x.as = core.InputTerm
	}
	x.readNotes = r.Notes
}

// checkNotes finds the notes that the example speaks of.
func (x *example) checkNotes(t *testing.T) {
	var notes []string
	if p, _, f := x.prepare(); f == nil {
		notes = p.Notes()
	}
	if in, err := core.ParseInput([]byte(x.input), x.as); err == nil {
		notes = append(slices.Clip(notes), in.Notes...)
	}
	notes = append(slices.Clip(notes), x.readNotes...)
	for _, want := range x.notes {
		if !slices.Contains(notes, want) {
			t.Errorf("there is no note %q among %q", want, notes)
		}
	}
}
