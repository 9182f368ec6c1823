package eval_test

import (
	"fmt"
	"runtime/debug"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/eval"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/internal/vectors"
	"github.com/mcp-pif/mcp-pif/core/naive"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A trial is a program with all that its run depends on. These tests are
// outside the package, since what compiles programs imports it.
type trial struct {
	tool        string
	code, input string
	tools       map[string]string
	budgets     core.Budgets
	slice       uint64 // steps a call of Run may take; 0: all
	reply       func(i int, op string, arg value.Value) (value.Value, *fault.Fault)
}

func (tr trial) String() string {
	code := tr.code
	if len(code) > 4000 {
		code = code[:4000] + "…"
	}
	return fmt.Sprintf("tool %q\ncode %s\ninput %.500s\nbudgets %+v, slice %d", tr.tool, code, tr.input, tr.budgets, tr.slice)
}

// echo answers an effect with its argument, unless there is a function in it,
// and fails every fifth.
func echo(i int, op string, arg value.Value) (value.Value, *fault.Fault) {
	if i%5 == 4 {
		return nil, &fault.Fault{Kind: fault.EffectFailed, Message: "the fifth effect fails"}
	}
	if e, f := text.Encode(arg, 0, 1<<20); f != nil || e.Function {
		return &value.Pair{First: value.Str(op), Second: value.NewInt(int64(i))}, nil
	}
	return arg, nil
}

func compileAs(tool, code string) (*core.Program, *fault.Fault) {
	var p *core.Program
	var err error
	if tool != "" {
		p, err = core.CompileTool(tool, []byte(code))
	} else {
		p, err = core.CompileTool("", []byte(code))
	}
	if err != nil {
		return nil, err.(*fault.Fault)
	}
	return p, nil
}

func mustCompile(t testing.TB, code string) *core.Program {
	t.Helper()
	p, f := compileAs("", code)
	if f != nil {
		t.Fatalf("%v\n%.500s", f, code)
	}
	return p
}

func mustInput(t testing.TB, input string, as core.InputAs) core.Input {
	t.Helper()
	in, err := core.ParseInput([]byte(input), as)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func (tr trial) library(t testing.TB) vectors.Library {
	l := vectors.Library{Owner: "program", Code: map[string]value.Tool{}}
	for name, code := range tr.tools {
		p, f := compileAs(name, code)
		if f != nil {
			t.Fatalf("tool %s: %v", name, f)
		}
		l.Code[name] = p.Tool()
	}
	return l
}

// start returns a machine for the trial, or the fault that it is refused with.
func (tr trial) start(t testing.TB) (*core.Machine, *fault.Fault) {
	p, f := compileAs(tr.tool, tr.code)
	if f != nil {
		return nil, f
	}
	input := tr.input
	if input == "" {
		input = "null"
	}
	in, err := core.ParseInput([]byte(input), core.InputAuto)
	if err != nil {
		return nil, err.(*fault.Fault)
	}
	return p.Start(in, tr.budgets, tr.library(t)), nil
}

// onEval runs the trial on the machine.
func (tr trial) onEval(t testing.TB) vectors.Outcome {
	m, f := tr.start(t)
	if f != nil {
		return vectors.Failed(f, 0)
	}
	defer m.Release()
	return tr.finish(t, m)
}

func (tr trial) finish(t testing.TB, m *core.Machine) vectors.Outcome {
	defer func() {
		if p := recover(); p != nil {
			t.Fatalf("panic: %v\n%s\n%s", p, tr, debug.Stack())
		}
	}()
	script := vectors.Script{Reply: tr.reply}
	for {
		switch m.Run(tr.slice) {
		case core.Paused:
			if tr.slice == 0 {
				t.Fatalf("a run without slices paused\n%s", tr)
			}
		case core.Suspended:
			m.Resume(script.Answer(m.Requests()))
		default:
			o := outcome(m)
			o.Asked = script.Log.String()
			return o
		}
	}
}

func outcome(m *eval.Machine) vectors.Outcome {
	if m.State() == core.Failed {
		return vectors.Failed(m.Fault(), m.Steps())
	}
	e, f := m.Encode(1 << 20)
	if f != nil {
		return vectors.Failed(f, m.Steps())
	}
	return vectors.Outcome{Result: e.JSON, Type: string(e.Type), Steps: m.Steps()}
}

// onNaive runs the trial on the reference; refused says it doesn't parse.
func (tr trial) onNaive(t testing.TB) (o vectors.Outcome, refused bool) {
	p, f := compileAs(tr.tool, tr.code)
	if f != nil {
		return vectors.Failed(f, 0), true
	}
	in, f := parse.Input([]byte(tr.input), parse.Auto)
	if f != nil {
		return vectors.Failed(f, 0), true
	}
	script := vectors.Script{Reply: tr.reply}
	defer func() { o.Asked = script.Log.String() }()
	c := naive.Config{
		Term: p.Term(), Source: p.Tool().Source, Tool: tr.tool, Input: in, Tools: tr.library(t), Handler: script.Answer,
		Budgets: naive.Budgets{Steps: tr.budgets.Steps, Memory: tr.budgets.Memory, Depth: tr.budgets.Depth},
	}
	v, steps, f := naive.Run(c)
	if f != nil {
		return vectors.Failed(f, steps), false
	}
	e, f := text.Encode(v, 1<<20, 64<<20)
	if f != nil {
		return vectors.Failed(f, steps), false
	}
	return vectors.Outcome{Result: e.JSON, Type: string(e.Type), Steps: steps}, false
}

// check holds the machine against the reference, by the rules of the
// differential test in core, and returns what the reference says.
func (tr trial) check(t testing.TB) vectors.Outcome {
	t.Helper()
	want, refused := tr.onNaive(t)
	if refused {
		t.Fatalf("refused: %v\n%s", want, tr)
	}
	tr.agree(t, tr.onEval(t), want)
	return want
}

func (tr trial) agree(t testing.TB, got, want vectors.Outcome) {
	t.Helper()
	if got.Kind == fault.OutOfMemory || want.Kind == fault.OutOfMemory {
		return
	}
	if vectors.ByBudget(got.Kind) {
		got.At, want.At, got.In, want.In, got.EvalDepth, want.EvalDepth = "", "", "", "", 0, 0
		if got.Kind == fault.TooDeep {
			got.Steps, want.Steps = 0, 0
		}
	}
	if !same(got, want) {
		t.Fatalf("eval  %v at %q in %q (%d)\nnaive %v at %q in %q (%d)\n%s",
			got, got.At, got.In, got.EvalDepth, want, want.At, want.In, want.EvalDepth, fmt.Sprintf("%s\neval asked %s\nnaive asked %s", tr, got.Asked, want.Asked))
	}
}

func same(a, b vectors.Outcome) bool {
	return a.Kind == b.Kind && a.Type == b.Type && a.Steps == b.Steps && a.At == b.At &&
		a.In == b.In && a.EvalDepth == b.EvalDepth && string(a.Result) == string(b.Result) && a.Asked == b.Asked
}
