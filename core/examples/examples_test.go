package examples_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/rogpeppe/go-internal/txtar"
)

// An example is what stands beside a NAME.pif, in NAME.json.
type example struct {
	trial
	// Also is more inputs.
	Also []trial `json:"also"`
	// InputAs is "auto", "term" or "data", which it also is where it isn't said.
	InputAs inputAs `json:"input_as"`
	// Tools is other tools by name, with the file of each without ".pif".
	Tools map[string]string `json:"tools"`
	// Drive is how often the tool continues before it is done, on Input.
	Drive int `json:"drive"`
	// MaxSteps is what a run may use at most; 0: the default budget.
	MaxSteps uint64 `json:"max_steps"`

	name string
	src  []byte
}

// A trial is an input with its result.
type trial struct {
	Input json.RawMessage `json:"input"`
	Want  json.RawMessage `json:"want"`
}

type inputAs string

func (a inputAs) mode(t *testing.T) core.InputAs {
	t.Helper()
	switch a {
	case "auto":
		return core.InputAuto
	case "term":
		return core.InputTerm
	case "data", "":
		return core.InputData
	}
	t.Fatalf("an input is never read as %q", a)
	return 0
}

// read gives the examples of a folder, in order.
func read(t *testing.T, dir string) []example {
	t.Helper()
	files, err := fs.Glob(os.DirFS(dir), "*.pif")
	must.NoError(t, err)
	var all []example
	for _, file := range files {
		e := example{name: strings.TrimSuffix(file, ".pif"), src: readFile(t, filepath.Join(dir, file))}
		e.read(t, readFile(t, filepath.Join(dir, e.name+".json")))
		all = append(all, e)
	}
	return all
}

// read reads what stands beside a program.
func (e *example) read(t *testing.T, src []byte) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(src))
	d.DisallowUnknownFields()
	if err := d.Decode(e); err != nil {
		t.Fatalf("%s.json: %v", e.name, err)
	}
	for _, tr := range append(e.Also, e.trial) {
		if tr.Want == nil || tr.Input == nil {
			t.Fatalf("%s.json has no input or nothing to expect", e.name)
		}
	}
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	must.NoError(t, err)
	return b
}

func compile(t *testing.T, name string, src []byte) *core.Program {
	t.Helper()
	p, err := core.CompileText(name, src)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if len(p.Notes()) > 0 {
		t.Errorf("%s has notes: %q", name, p.Notes())
	}
	return p
}

// registry is the tools that code_of finds.
type registry map[string]*core.Program

func (r registry) Callee(name string, _ [][]string, _ fault.Pointer) (core.Tool, *fault.Fault) {
	return core.Tool{}, fault.New(fault.Denied, "calling "+name+" is not allowed here")
}

func (r registry) Tool(name string, _ bool) (core.Tool, bool) {
	p, ok := r[name]
	if !ok {
		return core.Tool{}, false
	}
	return p.Tool(), true
}

// run runs a program on the machine and on the reference evaluator, which must
// agree to the step, and gives the result.
func run(t *testing.T, p *core.Program, input []byte, as core.InputAs, b core.Budgets, tools core.Tools) []byte {
	t.Helper()
	in, err := core.ParseInput(input, as)
	if err != nil {
		t.Fatalf("input %s: %v", input, err)
	}
	want, wantSteps, wantFault := p.Trace(in, b, tools, func(core.TraceEvent) {})
	m := p.Start(in, b, tools)
	defer m.Release()
	if state := m.Run(0); state != core.Done {
		t.Fatalf("on %s it is %v after %d steps: %v\nthe reference: %v", input, state, m.Steps(), faultOf(m.Fault()), faultOf(wantFault))
	}
	got, f := m.Encode(1 << 20)
	must.NoFault(t, f)
	if wantFault != nil || !bytes.Equal(got.JSON, want.JSON) || m.Steps() != wantSteps {
		t.Fatalf("on %s it gives %s in %d steps, the reference %s in %d: %v", input, got.JSON, m.Steps(), want.JSON, wantSteps, faultOf(wantFault))
	}
	return got.JSON
}

func faultOf(f *fault.Fault) any {
	if f == nil {
		return "no fault"
	}
	return f
}

// same reports whether two JSON texts say the same.
func same(t *testing.T, a, b []byte) bool {
	t.Helper()
	return reflect.DeepEqual(decode(t, a), decode(t, b))
}

func decode(t *testing.T, b []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return v
}

func TestExamples(t *testing.T) {
	all := read(t, ".")
	if len(all) < 20 {
		t.Fatalf("only %d examples are here", len(all))
	}
	for _, e := range all {
		t.Run(e.name, func(t *testing.T) { e.check(t) })
	}
}

func (e example) check(t *testing.T) {
	if line, _, _ := bytes.Cut(e.src, []byte("\n")); !bytes.HasPrefix(line, []byte("// ")) {
		t.Errorf("the first line doesn't say what it does: %s", line)
	}
	p := compile(t, e.name, e.src)
	tools := registry{e.name: p}
	for name, file := range e.Tools {
		tools[name] = compile(t, name, readFile(t, file+".pif"))
	}
	for i, tr := range append([]trial{e.trial}, e.Also...) {
		got, rounds := e.drive(t, p, tr.Input, tools)
		if !same(t, got, tr.Want) {
			t.Errorf("on %s it gives\n%s, not\n%s", tr.Input, got, tr.Want)
		}
		if i == 0 && rounds != e.Drive {
			t.Errorf("it continued %d times, not %d", rounds, e.Drive)
		}
	}
	e.reread(t, p)
}

// drive runs a tool until it no longer continues, and gives the result and how
// often it did.
func (e example) drive(t *testing.T, p *core.Program, input []byte, tools core.Tools) (got []byte, rounds int) {
	t.Helper()
	budgets := core.Budgets{Steps: e.MaxSteps}
	got = run(t, p, input, e.InputAs.mode(t), budgets, tools)
	for ; ; rounds++ {
		var c struct {
			Type string
			Next struct {
				Arguments struct {
					Tool    string
					Input   json.RawMessage
					InputAs inputAs `json:"input_as"`
				}
			}
		}
		if json.Unmarshal(got, &c) != nil || c.Type != "continuation" {
			return got, rounds
		}
		next := c.Next.Arguments
		if next.Tool != e.name || rounds == 1000 {
			t.Fatalf("round %d: %s", rounds, got)
		}
		got = run(t, p, next.Input, next.InputAs.mode(t), budgets, tools)
	}
}

// reread checks that the program, printed, is the same program, and that its
// JSON is too.
func (e example) reread(t *testing.T, p *core.Program) {
	if again := compile(t, e.name, p.Text()); !bytes.Equal(again.Canonical(), p.Canonical()) {
		t.Errorf("printed as\n%s\nit is another program", p.Text())
	}
	asJSON, err := core.CompileTool(e.name, slices.Clone(p.Canonical()))
	must.NoError(t, err)
	if asJSON.Hash() != p.Hash() {
		t.Error("its JSON is another program")
	}
}

// TestTasks: every task gives what is expected. tasks/README.md says how they are kept;
// that the programs in other languages give the same, and how long all of them are, is
// checked where those languages are, in cmd/internal/peerbench.
func TestTasks(t *testing.T) {
	files, err := filepath.Glob("tasks/*.txtar")
	must.NoError(t, err)
	count := 0
	for _, file := range files {
		tasks, err := txtar.ParseFile(file)
		must.NoError(t, err)
		section := map[string][]byte{}
		for _, f := range tasks.Files {
			section[f.Name] = f.Data
		}
		for _, f := range tasks.Files {
			name, ok := strings.CutSuffix(f.Name, ".pif")
			if !ok {
				continue
			}
			count++
			t.Run(name, func(t *testing.T) {
				e := example{name: name, src: f.Data}
				e.read(t, section[name+".json"])
				for _, ext := range []string{".star", ".js"} {
					if len(section[name+ext]) == 0 {
						t.Errorf("%s has no %s%s", file, name, ext)
					}
				}
				e.check(t)
			})
		}
	}
	if count != 80 {
		t.Errorf("%d tasks, not 80", count)
	}
}

// The predecessor's documents show count_operations with both operands in its
// own spelling: analyze with its code in an array, code_of with a term. That
// is the example's program, but for the array, and does the same.
func TestCountOperationsAsPrinted(t *testing.T) {
	const printed = `{"lam":"tool_name","body":{"analyze":[{"code_of":{"var":"tool_name"}}]}}`
	p, err := core.CompileTool("count_operations", []byte(printed))
	must.NoError(t, err)
	square, err := core.CompileTool("square", []byte(`{"lam":"x","body":{"mul":[{"var":"x"},{"var":"x"}]}}`))
	must.NoError(t, err)
	tools := registry{"count_operations": p, "square": square}
	for name, want := range map[string]string{
		"square":           `{"count":2,"depth":3,"effects":[],"free":[],"operations":{"lam":1,"mul":1},"parameters":["x"],"size":4}`,
		"count_operations": `{"count":3,"depth":4,"effects":[],"free":[],"operations":{"analyze":1,"code_of":1,"lam":1},"parameters":["tool_name"],"size":4}`,
	} {
		if got := run(t, p, []byte(`"`+name+`"`), core.InputAuto, core.Budgets{}, tools); string(got) != want {
			t.Errorf("of %s it gives %s, not %s", name, got, want)
		}
	}
}
