package core_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/flow"
	"github.com/mcp-pif/mcp-pif/core/internal/vectors"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// Read code and input, run, and write the result as JSON.
func Example() {
	p, err := core.Compile([]byte(`{"lam":"x","body":{"mul":[{"var":"x"},{"var":"x"}]}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	in, err := core.ParseInput([]byte(`4294967296`), core.InputData)
	if err != nil {
		fmt.Println(err)
		return
	}
	m := p.Start(in, core.Budgets{}, nil) // the default budgets, no tools to look up
	defer m.Release()                     // its memory serves the next machine
	if m.Run(0) == core.Failed {
		fmt.Println(m.Fault())
		return
	}
	result, f := m.Encode(256 << 10) // the first 256 KiB
	if f != nil {
		fmt.Println(f)
		return
	}
	fmt.Println(string(result.JSON), result.Type, m.Steps(), "steps")
	// Output: 18446744073709551616 int 6 steps
}

// The shortest way, which README.md shows.
func ExampleRun() {
	p, err := core.Compile([]byte("(price, count) => price * count"))
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := core.Run(context.Background(), p, []byte(`{"price": 1.10, "count": 3}`), core.Budgets{Steps: 1000})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(r.JSON), r.Steps, "steps")
	// Output: 3.30 9 steps
}

// Go's own JSON makes inputs of structs and reads results into them. A decimal keeps its zeros,
// 6.00, which no Go integer takes: json.Number does.
func ExampleRun_structs() {
	type line struct {
		Price json.Number `json:"price"`
		Count int         `json:"count"`
	}
	type invoice struct {
		Lines int
		Total json.Number
	}
	p, err := core.Compile([]byte("lines => {Lines: length(lines), Total: lines |> map(l => l.price * l.count) |> sum}"))
	if err != nil {
		fmt.Println(err)
		return
	}
	in, err := json.Marshal([]line{{"1.50", 2}, {"3.00", 1}})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := core.Run(context.Background(), p, in, core.Budgets{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var out invoice
	fmt.Println(json.Unmarshal(r.JSON, &out), out)
	// Output: <nil> {2 6.00}
}

// A user is shown where in the code a run failed, and a hint in words of that code.
func ExampleRun_place() {
	src := []byte("xs =>\n  xs |> map(x => 10 / x)")
	p, err := core.Compile(src)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = core.Run(context.Background(), p, []byte("[5, 0]"), core.Budgets{})
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		fmt.Println(f.Kind, "at", f.Place())
		fmt.Print(text.Caret(src, f))
		fmt.Println(f.Hint)
	}
	// Output:
	// division_by_zero at 2:21
	// 2 |   xs |> map(x => 10 / x)
	//   |                     ^
	// Test the divisor first: if x == 0 then 0 else 10 / x.
}

// A program's type, and what it may ask for, are known before it runs.
func ExampleProgram_Term() {
	p, err := core.Compile([]byte("(url, n) => !fetch.get({url: url}) |> words |> take(n)"))
	if err != nil {
		fmt.Println(err)
		return
	}
	r := check.Infer(p.Term(), p.Tool().Source, check.Env{}, check.Budget{})
	fmt.Println(r.Type)
	for _, e := range r.Effects {
		fmt.Printf("%s at %d:%d\n", e.Op, e.Line, e.Col)
	}
	// Output:
	// (any) -> (int) ->{fetch.get} list[string]
	// fetch.get at 1:13
}

// Code has two spellings, and either is read; a term is printed in the text form.
func Example_spellings() {
	for _, src := range []string{`{"lam":"x","body":{"mul":[{"var":"x"},{"var":"x"}]}}`, `x=>x*x`} {
		t, err := core.Parse([]byte(src))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s\n", core.Print(t))
	}
	// Output:
	// x => x * x
	// x => x * x
}

// What comes from strangers runs with budgets. Each has its own kind of
// failure, and the answer says what was used.
func Example_budgets() {
	p, err := core.Compile([]byte(`{"lam":"f","body":{"app":[{"var":"f"},{"var":"f"}]}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	in, err := core.ParseInput([]byte(`{"lam":"f","body":{"app":[{"var":"f"},{"var":"f"}]}}`), core.InputTerm)
	if err != nil {
		fmt.Println(err)
		return
	}
	m := p.Start(in, core.Budgets{Steps: 100_000, Memory: 1 << 20, Depth: 1000}, nil)
	defer m.Release()
	if m.Run(0) == core.Failed {
		fmt.Println(m.Fault().Kind, "after", m.Steps())
		fmt.Println(m.Fault().Hint)
	}
	// Output:
	// out_of_fuel after 100000
	// Ask for more steps (run's "steps"), or make the program do less; check that its recursion ends.
}

// A tool is code with a name: self is its function.
func Example_tool() {
	p, err := core.CompileTool("factorial", []byte(`
		{"lam":"n","body":{"if":{
			"cond":{"lte":[{"var":"n"},1]},
			"then":1,
			"else":{"mul":[{"var":"n"},{"app":{"func":{"self":true},"arg":{"sub":[{"var":"n"},1]}}}]}}}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.IsFunction(), p.Params(), p.Hash()[:8])
	in, err := core.ParseInput([]byte(`30`), core.InputData)
	if err != nil {
		fmt.Println(err)
		return
	}
	m := p.Start(in, core.Budgets{}, nil)
	defer m.Release()
	if m.Run(0) == core.Done {
		result, _ := m.Encode(1 << 10)
		fmt.Println(string(result.JSON))
	}
	// Output:
	// true [n] f9b432d2
	// 265252859812191058636308480000000
}

// A run is cancelled by not going on with it: it runs in slices of steps, and
// between two of them the caller looks whether anybody still wants the answer.
func Example_cancel() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p, err := core.CompileTool("forever", []byte(`{"lam":"n","body":{"app":{"func":{"self":true},"arg":{"add":[{"var":"n"},1]}}}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	in, _ := core.ParseInput([]byte(`0`), core.InputData)
	m := p.Start(in, core.Budgets{Steps: 1_000_000_000}, nil)
	defer m.Release()
	for slices := 1; ctx.Err() == nil && m.Run(100_000) == core.Paused; slices++ {
		if slices == 3 {
			cancel() // as a client would, from elsewhere
		}
	}
	fmt.Println(m.State() == core.Paused, m.Steps() <= 300_000, context.Cause(ctx))
	// Output: true true context canceled
}

// A program that asks for an effect stops. The host decides what becomes of the
// request; nothing happens unless it does it.
func Example_effect() {
	p, err := core.Compile([]byte(`{"lam":"path","body":{"length":{"fs.read":{"path":{"var":"path"}}}}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Effects()) // what the code may ask for, known before it runs
	files := map[string]string{"greeting.txt": "hello, world"}
	for _, path := range []string{`"greeting.txt"`, `"/etc/passwd"`} {
		in, err := core.ParseInput([]byte(path), core.InputData)
		if err != nil {
			fmt.Println(err)
			return
		}
		m := p.Start(in, core.Budgets{}, nil)
		for m.Run(0) == core.Suspended {
			var answers []core.Answer
			for _, request := range m.Requests() {
				answers = append(answers, perform(files, request))
			}
			m.Resume(answers)
		}
		if f := m.Fault(); f != nil {
			fmt.Println(f.Kind, "at", f.At)
		} else {
			fmt.Println(m.Value().Type(), m.Steps())
		}
		m.Release()
	}
	// Output:
	// [fs.read]
	// int 7
	// denied at /body/length
}

// perform is a host's policy and its handler in one. What is asked for inside
// an eval it doesn't do: With would say what the eval permits.
func perform(files map[string]string, r core.Request) core.Answer {
	arg, ok := r.Arg.(*value.Record)
	if r.With != nil || r.Op != "fs.read" || !ok || len(arg.Fields) != 1 || arg.Fields[0].Key != "path" {
		return core.Answer{Fault: fault.New(fault.Denied, r.Op+" is not allowed here")}
	}
	path, _ := arg.Fields[0].Value.(value.Str)
	text, ok := files[string(path)]
	if !ok {
		return core.Answer{Fault: fault.New(fault.Denied, "there is nothing to read but the files I know")}
	}
	return core.Answer{Value: value.Str(text)}
}

// Every error is a fault, of which a program reads the kind and the place, and
// a person or a model the rest.
func Example_faults() {
	_, err := core.Compile([]byte(`{"lam":"n","body":{"ad":[{"var":"n"},1]}}`))
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		fmt.Println(f.Kind, f.At, f.Near)
		fmt.Println(f.Hint)
	}

	p, err := core.Compile([]byte(`{"lam":"n","body":{"div":[100,{"var":"n"}]}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	in, _ := core.ParseInput([]byte(`0`), core.InputData)
	m := p.Start(in, core.Budgets{}, nil)
	defer m.Release()
	if m.Run(0) == core.Failed {
		fmt.Println(m.Fault())
	}
	// Output:
	// parse_error /body add
	// Did you mean add? Write it as in {"add":[2,3]}.
	// division_by_zero at code /body: div of the integer 100 by 0: {"div":[100,{"var":"n"}]}
	// Test the divisor first: {"if":{"cond":{"equal":[B,0]},"then":0,"else":{"div":[A,B]}}}.
}

// snapshot is the tools there were when a run began. It must not change while
// the run goes on.
type snapshot map[string]core.Tool

func (s snapshot) Tool(name string, _ bool) (core.Tool, bool) {
	t, ok := s[name]
	return t, ok
}

// Callee lets no tool be called.
func (s snapshot) Callee(name string, _ [][]string, _ fault.Pointer) (core.Tool, *fault.Fault) {
	return core.Tool{}, fault.New(fault.Denied, "calling "+name+" is not allowed here")
}

// The code of tools can be looked up by a run that is given them.
func Example_codeOf() {
	double, err := core.CompileTool("double", []byte(`{"lam":"x","body":{"mul":[{"var":"x"},2]}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	tools := snapshot{"double": double.Tool()}

	p, err := core.Compile([]byte(`{"lam":"x","body":{"app":[{"eval":{"code_of":"double"}},{"var":"x"}]}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	in, _ := core.ParseInput([]byte(`21`), core.InputData)
	m := p.Start(in, core.Budgets{}, tools)
	defer m.Release()
	if m.Run(0) == core.Done {
		result, _ := m.Encode(1 << 10)
		fmt.Println(string(result.JSON))
	}
	// Output: 42
}

// A program that is called again and again keeps its machine.
func ExampleProgram_Restart() {
	p, err := core.Compile([]byte(`{"lam":"x","body":{"mod":[{"mul":[{"var":"x"},7]},10]}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	var m *core.Machine
	sum := int64(0)
	for i := range 1000 {
		in, err := core.ParseInput(fmt.Append(nil, i), core.InputData)
		if err != nil {
			fmt.Println(err)
			return
		}
		if m == nil {
			m = p.Start(in, core.Budgets{}, nil)
			defer m.Release()
		} else {
			p.Restart(m, in, core.Budgets{}, nil)
		}
		if m.Run(0) != core.Done {
			fmt.Println(m.Fault())
			return
		}
		n, _ := m.Value().(value.Int).Int64()
		sum += n
	}
	fmt.Println(sum)
	// Output: 4500
}

// Trace shows every evaluation of a term, on the reference evaluator.
func ExampleProgram_Trace() {
	p, err := core.Compile([]byte(`{"add":[1,{"mul":[2,3]}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	result, steps, f := p.Trace(core.Input{}, core.Budgets{Steps: 100}, nil, func(e core.TraceEvent) {
		fmt.Printf("%d steps left: %T\n", e.Left, e.Term)
	})
	fmt.Println(string(result.JSON), steps, f == nil)
	// Output:
	// 100 steps left: *term.Prim
	// 99 steps left: *term.Int
	// 98 steps left: *term.Prim
	// 97 steps left: *term.Int
	// 96 steps left: *term.Int
	// 7 5 true
}

// TestReadmeShowsExample: README.md shows ExampleRun, to the letter.
func TestReadmeShowsExample(t *testing.T) {
	source, err := os.ReadFile("example_test.go")
	must.NoError(t, err)
	text, err := os.ReadFile("README.md")
	must.NoError(t, err)
	_, code, _ := strings.Cut(string(source), "\nfunc ExampleRun")
	code, _, found := strings.Cut(code, "\n}\n")
	if !found || !strings.Contains(string(text), "```go\nfunc ExampleRun"+code+"\n}\n```\n") {
		t.Error("core/README.md shows another example than core/example_test.go")
	}
}

// Follow tells what a request is made of: here its recipient of what mail.read gave, its
// text of the input.
func ExampleProgram_Follow() {
	p, err := core.CompileText("reply", []byte(`(id, text) => !mail.send({to: get(!mail.read({id: id}), "from"), text: text})`))
	if err != nil {
		fmt.Println(err)
		return
	}
	in, err := p.ReadInput([]byte(`{"id": 7, "text": "Thanks"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	mail, given := flow.Atom(0), flow.Atom(1)
	answer := func(_ context.Context, round []flow.Request) ([]flow.Answer, error) {
		if q := round[0]; q.Op == "mail.send" {
			fmt.Println("to of mail:", q.Shadow.Label(q.Arg, []string{"to"})&mail != 0)
			fmt.Println("text of mail:", q.Shadow.Label(q.Arg, []string{"text"})&mail != 0)
		}
		from := &value.Record{Fields: []value.Field{{Key: "from", Value: value.Str("bob@acme.com")}}}
		return []flow.Answer{{Answer: value.Answer{Value: from}, Shadow: flow.Whole(mail)}}, nil
	}
	r, err := p.Follow(context.Background(), in, core.Budgets{}, flow.Config{Handler: answer}, flow.Whole(given))
	fmt.Println(r.Fault, err)
	// Output:
	// to of mail: true
	// text of mail: false
	// <nil> <nil>
}

// TestTopics runs the examples of the card and of help's topics, as tools, on both
// evaluators.
func TestTopics(t *testing.T) {
	for _, x := range prim.CardExamples() {
		t.Run("card/"+x.Code, func(t *testing.T) { runWritten(t, x) })
	}
	for _, topic := range prim.Topics {
		for _, x := range topic.Examples {
			t.Run(topic.Names[0]+"/"+x.Code, func(t *testing.T) { runWritten(t, x) })
		}
	}
}

func runWritten(t *testing.T, x prim.Written) {
	t.Helper()
	code := x.Code
	if p, err := core.CompileText("it", []byte(code)); err == nil && len(p.Params()) > 1 && x.Input != "" {
		code = fmt.Sprintf("r => (%s)(r.%s)", code, strings.Join(p.Params(), ", r.")) // as a call by name is read
	}
	tools := []vectors.Tool{{Name: "it", Code: canonical(t, "it", code)}}
	if x.Beside[0] != "" {
		tools = append(tools, vectors.Tool{Name: x.Beside[0], Code: canonical(t, x.Beside[0], x.Beside[1])})
	}
	p := program{tools: tools, tool: "it", input: x.Input, as: core.InputData, budgets: core.Budgets{Steps: 100_000}}
	if x.Input == "" {
		p.input = "null"
	}
	if quoted, ok := strings.CutPrefix(x.Input, `"'`); ok { // code is an input as a tool reads it
		p.as, p.input = core.InputTerm, string(canonical(t, "", "'"+strings.TrimSuffix(quoted, `"`)))
	}
	if x.Gives != "" {
		p.effect = func(int, string, value.Value) (value.Value, *fault.Fault) { return datum(t, x.Gives), nil }
	}
	p.onBoth(t, func(t *testing.T, got ending) {
		switch {
		case x.Fault != "":
			if got.fault == nil || got.fault.Kind != x.Fault {
				t.Errorf("it gives %s, want %s", got, x.Fault)
			}
		case got.fault != nil:
			t.Errorf("it fails: %v", got.fault)
		case !vectors.SameJSON(json.RawMessage(got.result), json.RawMessage(x.Want)):
			t.Errorf("it gives %s, want %s", got, x.Want)
		}
	})
}

// canonical is the JSON of code in the text form, which has nothing that is noted.
func canonical(t *testing.T, name, code string) json.RawMessage {
	t.Helper()
	p, err := core.CompileText(name, []byte(code))
	if err != nil {
		t.Fatalf("%s: %v", code, err)
	}
	if len(p.Notes()) > 0 {
		t.Errorf("%s: %q", code, p.Notes())
	}
	return p.Canonical()
}

// TestPrimExamples runs the examples of every row of the table, which are what
// help shows, on both evaluators: result, or kind of failure, and steps where
// the example states them.
func TestPrimExamples(t *testing.T) {
	for i := range prim.Table {
		row := &prim.Table[i]
		for k, x := range row.Examples {
			t.Run(fmt.Sprintf("%s/%d", row.Name, k), func(t *testing.T) {
				if x.Text != "" {
					if read, err := core.Compile([]byte(x.Code)); err != nil || !bytes.Equal(read.Canonical(), canonical(t, "", x.Text)) {
						t.Errorf("%s is not %s: %v", x.Text, x.Code, err)
					}
				}
				p := program{code: x.Code, input: x.Input}
				p.onBoth(t, func(t *testing.T, got ending) {
					switch {
					case x.Fault != "":
						if got.fault == nil || got.fault.Kind != x.Fault {
							t.Errorf("%s gives %s, want %s", x.Code, got, x.Fault)
						}
					case got.fault != nil:
						t.Errorf("%s fails: %v", x.Code, got.fault)
					case !vectors.SameJSON(json.RawMessage(got.result), json.RawMessage(x.Want)):
						t.Errorf("%s gives %s, want %s", x.Code, got, x.Want)
					}
					if x.Steps != 0 && got.steps != x.Steps {
						t.Errorf("%s takes %d steps, want %d", x.Code, got.steps, x.Steps)
					}
				})
			})
		}
	}
}

// TestPrimResultKinds: what a row's examples give is of a kind the row says,
// where the row is what the example is.
func TestPrimResultKinds(t *testing.T) {
	for i := range prim.Table {
		row := &prim.Table[i]
		for _, x := range row.Examples {
			if x.Fault != "" || !row.Operation() || !topmost(x.Code, row.Name) || row.Name == "lam" {
				continue // a lam's example gives what its body does
			}
			got := (&program{code: x.Code, input: x.Input}).onEval(t)
			if kinds := strings.Split(row.Result.String(), "|"); row.Result != prim.KindAny && !slices.Contains(kinds, string(got.kind)) {
				t.Errorf("%s gives %s, the row says %s", x.Code, got.kind, row.Result)
			}
		}
	}
}

// topmost reports whether the operation is the whole of a term.
func topmost(code, name string) bool {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(code), &object) != nil {
		return false
	}
	_, ok := object[name]
	return ok
}
