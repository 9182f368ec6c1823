package core_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/flow"
	"github.com/mcp-pif/mcp-pif/core/internal/vectors"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/naive"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/prim/gen"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// failer is what a test, a fuzz target and rapid's have in common.
type failer interface {
	must.T
	Fatalf(format string, args ...any)
}

// A trial is a program with an input and budgets, to be run on both evaluators.
type trial struct {
	tool        string
	code, input string
	more        []string // inputs after the first
	none        bool     // there is no input at all
	budgets     core.Budgets
	slice       uint64
}

func (tr trial) String() string {
	return fmt.Sprintf("tool %q\ncode %s\ninput %s %q\nbudgets %+v, slice %d", tr.tool, tr.code, tr.input, tr.more, tr.budgets, tr.slice)
}

// reply is what becomes of the i-th effect, on both evaluators.
func reply(i int, op string, arg value.Value) (value.Value, *fault.Fault) {
	if i%8 == 6 {
		return nil, &fault.Fault{Kind: fault.OutOfFuel, Message: "a budget of the host is used up, not the steps"}
	}
	if i%4 == 3 {
		return nil, &fault.Fault{Kind: fault.EffectFailed, Message: "the fourth effect fails"}
	}
	return &value.Pair{First: value.Str(op), Second: value.NewInt(int64(i))}, nil
}

// library is the tools that every trial can look up and call.
func library(t failer) vectors.Library {
	l := vectors.Library{Owner: "program", Code: map[string]value.Tool{}}
	for name, code := range gen.Tools {
		p, f := parse.Code([]byte(code), parse.Options{Tool: name})
		must.NoFault(t, f)
		p.Source.In = "tool:" + name
		l.Code[name] = value.Tool{Term: p.Term, Source: p.Source, Params: prim.Parameters(p.Term), Takes: check.Takes(name, p.Term)}
	}
	return l
}

func (tr trial) onEval(t failer) (o vectors.Outcome, log string, refused bool) {
	p, err := tr.compile()
	if err != nil {
		return vectors.Failed(err.(*fault.Fault), 0), "", true
	}
	in, err := core.ParseInput([]byte(tr.input), core.InputAuto)
	if err != nil {
		return vectors.Failed(err.(*fault.Fault), 0), "", true
	}
	if in, err = tr.inputs(in); err != nil {
		return vectors.Failed(err.(*fault.Fault), 0), "", true
	}
	m := p.Start(in, tr.budgets, library(t))
	defer m.Release()
	script := vectors.Script{Reply: reply}
	for {
		switch m.Run(tr.slice) {
		case core.Paused:
			if tr.slice == 0 {
				t.Fatalf("a run without slices paused\n%s", tr)
			}
		case core.Suspended:
			m.Resume(script.Answer(m.Requests()))
		default:
			return outcome(m), script.Log.String(), false
		}
	}
}

func (tr trial) compile() (*core.Program, error) {
	if tr.tool != "" {
		return core.CompileTool(tr.tool, []byte(tr.code))
	}
	return core.CompileTool("", []byte(tr.code))
}

// onNaive runs the trial on the reference evaluator, and on the labelled one, which
// has to do the same whatever the labels are.
func (tr trial) onNaive(t failer) (o vectors.Outcome, log string) {
	p, err := tr.compile()
	must.NoError(t, err)
	in, f := parse.Input([]byte(tr.input), parse.Auto)
	must.NoFault(t, f)
	var more []*parse.Parsed
	for _, src := range tr.more {
		next, f := parse.Input([]byte(src), parse.Auto)
		must.NoFault(t, f)
		more = append(more, next)
	}
	script := vectors.Script{Reply: reply}
	b := naive.Budgets{Steps: tr.budgets.Steps, Memory: tr.budgets.Memory, Depth: tr.budgets.Depth}
	v, steps, f := naive.Run(naive.Config{
		Term: p.Term(), Source: p.Tool().Source, Tool: tr.tool, Input: in, More: more, Budgets: b,
		Tools: library(t), Handler: script.Answer,
	})
	log = script.Log.String()
	tr.onFlow(t, p, append([]*parse.Parsed{in}, more...), v, steps, f, log)
	if f != nil {
		return vectors.Failed(f, steps), log
	}
	e, written, f := text.EncodeWithin(v, 16<<20, cmp.Or(tr.budgets.Memory, core.DefaultMemory), steps, cmp.Or(tr.budgets.Steps, core.DefaultSteps), nil)
	if steps += written; f != nil {
		return vectors.Failed(f, steps), log
	}
	return vectors.Outcome{Result: e.JSON, Type: string(e.Type), Steps: steps}, log
}

// onFlow holds the labelled evaluator against what the reference gave; memory apart, of
// which both only estimate what a run takes.
func (tr trial) onFlow(t failer, p *core.Program, inputs []*parse.Parsed, want value.Value, wanted uint64, fails *fault.Fault, asked string) {
	script := vectors.Script{Reply: reply}
	c := flow.Config{
		Term: p.Term(), Source: p.Tool().Source, Tool: tr.tool, Tools: library(t),
		Budgets: naive.Budgets{Steps: tr.budgets.Steps, Memory: 64 * tr.budgets.Memory, Depth: tr.budgets.Depth},
		Code:    flow.Atom(0),
		Handler: func(_ context.Context, round []flow.Request) ([]flow.Answer, error) {
			plain := make([]value.Request, len(round))
			for i := range round {
				plain[i] = round[i].Request
			}
			answers := make([]flow.Answer, len(round))
			for i, a := range script.Answer(plain) {
				answers[i] = flow.Answer{Answer: a, Shadow: flow.Whole(flow.Atom(1 + len(asked)%3))}
			}
			return answers, nil
		},
	}
	for i, in := range inputs {
		c.Inputs = append(c.Inputs, flow.Input{Parsed: in, Shadow: flow.Whole(flow.Atom(4 + i))})
	}
	got, err := flow.Run(context.Background(), c)
	if err != nil {
		t.Fatalf("flow: %v\n%s", err, tr)
	}
	if fails != nil && fails.Kind == fault.OutOfMemory {
		return
	}
	var shown func(v value.Value, f *fault.Fault) string
	shown = func(v value.Value, f *fault.Fault) string {
		if f != nil {
			f := *f
			if v, ok := f.Raised.(value.Value); ok {
				f.Raised = shown(v, nil)
			}
			return fmt.Sprintf("%+v", f)
		}
		e, f := text.Encode(v, 1<<20, 1<<20)
		if f != nil {
			return f.Error()
		}
		return string(e.Type) + string(e.JSON)
	}
	if got.Steps != wanted || shown(got.Value, got.Fault) != shown(want, fails) || script.Log.String() != asked {
		t.Fatalf("flow  %s in %d steps\n%s\nnaive %s in %d steps\n%s\n%s",
			shown(got.Value, got.Fault), got.Steps, script.Log.String(), shown(want, fails), wanted, asked, tr)
	}
}

// compare holds the machine against the reference: value, kind, place and
// steps; not the place of a budget's fault, and not out_of_memory, which the
// reference only estimates.
func (tr trial) compare(t failer) (log string, o vectors.Outcome) {
	got, asked, refused := tr.onEval(t)
	if refused {
		return "", got
	}
	want, wanted := tr.onNaive(t)
	if got.Kind == fault.OutOfMemory || want.Kind == fault.OutOfMemory {
		return "", got
	}
	if vectors.ByBudget(got.Kind) {
		got.At, want.At, got.In, want.In, got.EvalDepth, want.EvalDepth = "", "", "", "", 0, 0
		if got.Kind == fault.TooDeep {
			// Both count alike up to the call; the machine has also counted
			// the rest of the path that the call ends.
			got.Steps, want.Steps = 0, 0
		}
	}
	if got.Kind != want.Kind || got.Type != want.Type || got.Steps != want.Steps || got.At != want.At ||
		got.In != want.In || got.EvalDepth != want.EvalDepth || string(got.Result) != string(want.Result) {
		t.Fatalf("eval  %v at %q in %q (%d)\nnaive %v at %q in %q (%d)\n%s",
			got, got.At, got.In, got.EvalDepth, want, want.At, want.In, want.EvalDepth, tr)
	}
	if asked != wanted {
		t.Fatalf("eval asked for\n%s\nnaive for\n%s\n%s", asked, wanted, tr)
	}
	return asked, got
}

// draw makes a trial of choices.
func draw(d gen.Draw) trial {
	tr := trial{budgets: core.Budgets{Steps: 20_000, Memory: 4 << 20, Depth: 200}}
	o := gen.Options{Wrong: []int{0, 5, 30}[d(3)], Effects: d(8) == 0, Records: d(2) == 0, Tool: d(2) == 0}
	if o.Tool {
		tr.tool = "tool"
	}
	size := 1 + d(120)
	if d(4) == 0 {
		tr.code, tr.input = gen.Term(d, size, o), "null"
	} else {
		tr.code, tr.input = gen.Function(d, size, o)
	}
	if d(20) == 0 {
		tr.code, tr.input = gen.Kept(d)
	}
	return tr.limited(d)
}

// limited is the trial with a small budget, or in slices, now and then.
func (tr trial) limited(d gen.Draw) trial {
	switch d(8) {
	case 0:
		tr.budgets.Steps = uint64(1 + d(300))
	case 1:
		tr.budgets.Depth = 1 + d(12)
	}
	if d(3) == 0 {
		tr.slice = uint64(1 + d(40))
	}
	return tr
}

func TestEvalAgreesWithNaive(t *testing.T) {
	n := must.Drawn(2500, 1_000_000)
	for seed := range n {
		r := rand.New(rand.NewPCG(uint64(seed), 7))
		draw(r.IntN).compare(t)
	}
}

// acting makes a trial of a program that asks, calls, evaluates and branches
// all over.
func acting(d gen.Draw) trial {
	tr := trial{budgets: core.Budgets{Steps: 20_000, Memory: 4 << 20, Depth: 200}}
	o := gen.Options{Wrong: []int{0, 0, 10}[d(3)], Effects: true, Records: true, Tool: d(2) == 0}
	if o.Tool {
		tr.tool = "tool"
	}
	if size := 1 + d(100); d(2) == 0 {
		tr.code, tr.input = gen.Term(d, size, o), "null"
	} else {
		tr.code, tr.input = gen.Function(d, size, o)
	}
	if d(10) == 0 {
		tr.code, tr.input = gen.Between(d)
	}
	return tr.limited(d)
}

// TestActing holds the evaluators against each other on what acts: not only
// what comes of it, but each round of requests with all that they say.
func TestActing(t *testing.T) {
	n := must.Drawn(1200, 300_000)
	seen := tally{}
	for seed := range n {
		r := rand.New(rand.NewPCG(uint64(seed), 8))
		tr := acting(r.IntN)
		log, o := tr.compare(t)
		seen.add(map[string]bool{
			"round of 2": strings.Contains(log, "round of 2"), "round of 3": strings.Contains(log, "round of 3"),
			"nothing": strings.Contains(log, `with [[]]`), "limits": strings.Contains(log, `with [["`), "two limits": strings.Contains(log, `"] ["`),
			"nested branches": strings.Contains(log, `branch "0.`), "a tool": strings.Contains(log, `tool "asks"`),
			"value": o.Kind == "", "denied": o.Kind == fault.Denied, "deep": o.Kind == fault.TooDeep, "fuel": o.Kind == fault.OutOfFuel,
		})
	}
	seen.shows(t, n/1000, "round of 2", "round of 3", "nothing", "limits", "two limits", "nested branches", "a tool", "value", "denied", "deep", "fuel")
}

func FuzzActing(f *testing.F) {
	f.Add([]byte("calls, branches and evals"))
	f.Add([]byte{1, 0, 1, 60, 1, 4, 2, 9, 200, 7, 3, 3, 3, 90, 14, 15, 92, 65, 35})
	f.Fuzz(func(t *testing.T, data []byte) { acting(gen.Bytes(data)).compare(t) })
}

func FuzzEval(f *testing.F) {
	f.Add([]byte("a tool that calls itself and folds"))
	f.Add([]byte{1, 0, 1, 60, 1, 4, 2, 9, 200, 7, 3, 3, 3, 90, 14, 15, 92, 65, 35})
	f.Fuzz(func(t *testing.T, data []byte) { draw(gen.Bytes(data)).compare(t) })
}

// brokenPlaces is the messages of the places that break a tool's code.
func brokenPlaces(t *testing.T, compile func(string, []byte) (*core.Program, error), src string) (why []string) {
	t.Helper()
	p, err := compile("tool", []byte(src))
	if err != nil {
		t.Fatal(src, err)
	}
	r := check.Infer(p.Term(), p.Tool().Source, check.Env{Tool: "tool", Run: core.RunConstant}, check.Budget{})
	for _, d := range r.Broken() {
		why = append(why, fmt.Sprintf("%s: %s %s", d.Kind, d.Message, d.Hint))
	}
	return why
}

// TestFailingExamplesAreBroken: every example of a row that fails breaks the tool that
// it is the code of, but for those that a program may be meant to fail with, or that
// don't fail in a tool.
func TestFailingExamplesAreBroken(t *testing.T) {
	except := []string{"continue", "self", "code_of", "match", "raise", "no_match", "try"}
	for _, r := range prim.Table {
		if slices.Contains(except, r.Name) {
			continue
		}
		for _, e := range r.Examples {
			if e.Fault == "" || e.Fault == fault.ParseError && !compiles(e.Code) {
				continue
			}
			if why := brokenPlaces(t, core.CompileTool, `{"lam":"unused","body":`+e.Code+`}`); len(why) == 0 {
				t.Errorf("%s: %s fails with %s, and is broken by %q", r.Name, e.Code, e.Fault, why)
			}
		}
	}
}

func compiles(code string) bool {
	_, err := core.CompileTool("tool", []byte(code))
	return err == nil
}

// operands is values of each kind, as code.
var operands = []string{
	`0`, `1`, `-1`, `2`, `7`, `-3`, `300`, `100000000000000000000`, `{"dec":"2.5"}`, `{"dec":"0.0"}`, `{"dec":"-1.25"}`,
	`""`, `"a"`, `"abc"`, `"12"`, `"2.5"`, `"half_even"`, `"down"`, `","`, `"{\"a\":[1]}"`,
	`[]`, `[1]`, `[3,1,2]`, `["b","a"]`, `[1,"a"]`, `[[1],[]]`, `[null]`, `{"range":[0,300]}`, `[{"pair":["k",1]}]`, `[{"lam":"x","body":5}]`,
	`{"pair":[1,2]}`, `{"pair":["a",[]]}`, `{"pair":[{"pair":[1,2]},"a"]}`, `{"record":{}}`, `{"record":{"a":1}}`, `{"record":{"abc":[1],"a":"b"}}`,
	`{"lam":"x","body":{"var":"x"}}`, `{"lam":"x","body":true}`, `{"lam":"x","body":[]}`, `{"lam":"x","body":"k"}`, `{"lam":"x","body":{"fst":{"var":"x"}}}`,
	`{"lam":"x","body":{"add":[{"var":"x"},1]}}`, `{"lam":"x","body":{"get":[{"var":"x"},"a"]}}`, `{"lam":"x","body":{"lam":"y","body":{"var":"x"}}}`,
	`true`, `false`, `null`, `{"quote":1}`, `{"quote":{"var":"x"}}`,
}

// TestBrokenAlwaysFails: a row that is given some constants, and is broken by them,
// fails on whatever else it is given.
func TestBrokenAlwaysFails(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	broken, other := 0, 0
	for _, r := range prim.Table {
		if r.Form || r.Eval == nil && r.Body == "" || len(r.Params) < 2 || r.Shape != prim.Array && r.Shape != prim.KeyedOrArray {
			continue
		}
		if r.Name == "scan" || r.Name == "filter_entries" {
			continue // the function, which is given a pair or a string, fails for each item, if there is one
		}
		for range must.Full(20, 60) {
			args, names := make([]string, max(r.Min, len(r.Params)-rng.IntN(2))), []string{}
			if len(args) < len(r.Params) && r.Min == 0 {
				args = make([]string, len(r.Params))
			}
			for i := range args {
				if args[i] = operands[rng.IntN(len(operands))]; rng.IntN(2) == 0 {
					names = append(names, fmt.Sprintf("v%d", i))
					args[i] = fmt.Sprintf(`{"var":"v%d"}`, i)
				}
			}
			code := fmt.Sprintf(`{"lam":"unused","body":{%q:[%s]}}`, r.Name, strings.Join(args, ","))
			for _, name := range names {
				code = fmt.Sprintf(`{"lam":%q,"body":%s}`, name, code)
			}
			why := brokenPlaces(t, core.CompileTool, code)
			if len(names) == 0 || len(names) == len(args) || len(why) == 0 {
				other++
				continue
			}
			broken++
			for range must.Full(10, 30) {
				given := code
				for range names {
					given = fmt.Sprintf(`{"app":[%s,%s]}`, given, operands[rng.IntN(len(operands))])
				}
				p, err := core.Compile([]byte(fmt.Sprintf(`{"app":[%s,null]}`, given)))
				must.NoError(t, err)
				if core.RunConstant(p.Term()) == nil {
					t.Fatalf("%s is broken by %q, and %s doesn't fail", code, why, given)
				}
			}
		}
	}
	if broken < 150 || other < 150 {
		t.Errorf("%d broken, %d not", broken, other)
	}
}
