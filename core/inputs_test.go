package core_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/prim/gen"
)

// inputs is the inputs of a trial, the first of which was read.
func (tr trial) inputs(first core.Input) (core.Input, error) {
	switch {
	case tr.none:
		return core.Inputs(), nil
	case len(tr.more) == 0:
		return core.Inputs(first), nil
	}
	all := []core.Input{first}
	for _, src := range tr.more {
		in, err := core.ParseInput([]byte(src), core.InputAuto)
		if err != nil {
			return core.Input{}, err
		}
		all = append(all, in)
	}
	if len(all) > 2 { // joined inputs may be joined again
		return core.Inputs(all[0], core.Inputs(all[1:]...)), nil
	}
	return core.Inputs(all...), nil
}

// curried makes a trial of a function of up to four parameters, which does
// something between them, and of up to five inputs.
func curried(d gen.Draw) trial {
	tr := trial{budgets: core.Budgets{Steps: 20_000, Memory: 4 << 20, Depth: 200}}
	o := gen.Options{Wrong: []int{0, 0, 10}[d(3)], Effects: d(2) == 0, Records: d(2) == 0}
	if d(2) == 0 {
		tr.tool = "tool"
	}
	params := d(5)
	var inputs []string
	tr.code = `[` + strings.TrimSuffix(strings.Repeat(`{"var":"r"},`, params), ",") + `]`
	if d(4) == 0 && tr.tool != "" {
		tr.code = `{"app":[{"lam":"f","body":` + tr.code + `},{"self":true}]}`
	}
	for range params {
		code, input := gen.Function(d, 1+d(30), o)
		inputs = append([]string{input}, inputs...)
		use := fmt.Sprintf(`{"app":[%s,{"var":"p"}]}`, code)
		switch d(4) {
		case 0: // what comes before it is done when the next input is asked for
			tr.code = fmt.Sprintf(`{"lam":"p","body":{"let":[["r",%s]],"in":%s}}`, use, tr.code)
		case 1: // only once it is full
			tr.code = fmt.Sprintf(`{"lam":["p","q"],"body":{"app":[{"lam":"r","body":%s},%s]}}`, tr.code, use)
			inputs = append([]string{inputs[0], input}, inputs[1:]...)
		case 2:
			tr.code = fmt.Sprintf(`{"lam":"p","body":{"let":[["r",{"var":"p"}]],"in":%s}}`, tr.code)
		default:
			with := []string{``, `,"with":["fs.read:a"]`, `,"with":[]`}[d(3)]
			tr.code = fmt.Sprintf(`{"lam":"p","body":{"let":[["r",%s]],"in":{"eval":{"quote":%s}%s}}}`, use, tr.code, with)
		}
	}
	switch d(5) {
	case 0:
		tr.code = `{"let":[["r",7]],"in":` + tr.code + `}`
	case 1:
		tr.code = `{"eval":{"quote":` + tr.code + `}}`
	case 2:
		tr.code = `{"let":[["r",{"fs.read":"x"}]],"in":` + tr.code + `}`
	}
	for len(inputs) < 20 && d(6) == 0 {
		inputs = append(inputs, `{"lam":"x","body":{"eval":{"quote":{"var":"x"}}}}`)
	}
	if len(inputs) > 0 && d(5) == 0 {
		inputs = inputs[:d(len(inputs))]
	}
	switch len(inputs) {
	case 0:
		tr.none, tr.input = true, "null"
	default:
		tr.input, tr.more = inputs[0], inputs[1:]
	}
	return tr.limited(d)
}

// TestSeveralInputs holds the evaluators against each other where what comes of
// an input is applied to the next.
func TestSeveralInputs(t *testing.T) {
	n := must.Drawn(1000, 100_000)
	seen := tally{}
	for seed := range n {
		r := rand.New(rand.NewPCG(uint64(seed), 88))
		tr := curried(r.IntN)
		log, o := tr.compare(t)
		seen.add(map[string]bool{
			"none": tr.none, "three": len(tr.more) == 2, "value": o.Kind == "" && len(tr.more) > 0, "function": o.Type == "function" && len(tr.more) > 0,
			"too many": o.Kind == fault.TypeError && o.At == "" && len(tr.more) > 0, "fuel": o.Kind == fault.OutOfFuel, "deep": o.Kind == fault.TooDeep,
			"effects": log != "" && len(tr.more) > 0, "limited": strings.Contains(log, `with [[]]`),
		})
	}
	seen.shows(t, n/1000, "none", "three", "value", "function", "too many", "fuel", "deep", "effects", "limited")
}

func FuzzSeveralInputs(f *testing.F) {
	f.Add([]byte("functions of functions, each with an input"))
	f.Fuzz(func(t *testing.T, data []byte) { curried(gen.Bytes(data)).compare(t) })
}

// TestInputsCost: what several inputs cost, and where a run fails that has too
// many.
func TestInputsCost(t *testing.T) {
	for _, c := range []struct {
		code   string
		inputs []string
		result string
		steps  uint64
		kind   fault.Kind
		in     string
	}{
		{`{"lam":"x","body":{"lam":"y","body":{"sub":[{"var":"x"},{"var":"y"}]}}}`, []string{"9", "4"}, "5", 9, "", ""},
		{`{"lam":["x","y"],"body":{"sub":[{"var":"x"},{"var":"y"}]}}`, []string{"9"}, `"<function>"`, 4, "", ""},
		{`{"lam":["x","y"],"body":{"sub":[{"var":"x"},{"var":"y"}]}}`, []string{"9", `{"add":[1,3]}`}, "5", 11, "", ""},
		{`{"lam":["x","y"],"body":[{"var":"x"},{"var":"y"}]}`, []string{``, ``}, "[null,null]", 11, "", ""},
		{`7`, []string{"1", `{"div":[1,0]}`}, "7", 1, "", ""},
		{`{"lam":"x","body":{"var":"x"}}`, []string{"1", `{"div":[1,0]}`}, "", 4, fault.TypeError, "tool:t"},
		{`{"lam":["x","y"],"body":{"var":"y"}}`, []string{"1", `{"div":[1,0]}`}, "", 7, fault.DivisionByZero, "input"},
		{`{"lam":["n","k"],"body":{"if":{"cond":{"eq":[{"var":"n"},0]},"then":{"var":"k"},"else":{"app":[{"self":true},{"sub":[{"var":"n"},1]},{"add":[{"var":"k"},2]}]}}}}`, []string{"3", "1"}, "7", 53, "", ""},
	} {
		p, err := core.CompileTool("t", []byte(c.code))
		must.NoError(t, err)
		var all []core.Input
		for _, src := range c.inputs {
			in, err := core.ParseInput([]byte(src), core.InputAuto)
			must.NoError(t, err)
			all = append(all, in)
		}
		m := p.Start(core.Inputs(all...), core.Budgets{}, nil)
		for m.Run(1) == core.Paused {
		}
		got := fmt.Sprint(m.Steps(), " ")
		if f := m.Fault(); f != nil {
			got += fmt.Sprint(f.Kind, f.In, f.At)
		} else if e, f := m.Encode(100); f == nil {
			got += string(e.JSON)
		}
		m.Release()
		if want := fmt.Sprint(c.steps, " ", c.result, c.kind, c.in); got != want {
			t.Errorf("%s on %q: %s, want %s", c.code, c.inputs, got, want)
		}
		e, steps, f := p.Trace(core.Inputs(all...), core.Budgets{}, nil, func(core.TraceEvent) {})
		got = fmt.Sprint(steps, " ")
		if f != nil {
			got += fmt.Sprint(f.Kind, f.In, f.At)
		} else {
			got += string(e.JSON)
		}
		if want := fmt.Sprint(c.steps, " ", c.result, c.kind, c.in); got != want {
			t.Errorf("the trace of %s on %q: %s, want %s", c.code, c.inputs, got, want)
		}
	}
}

// TestManyInputs: as many as there can be take no stack, and a fault or a used-up
// budget among them is told.
func TestManyInputs(t *testing.T) {
	const n = 10_000
	code := `{"let":[["k",{"lam":"k","body":{"lam":"x","body":{"app":[{"var":"k"},{"var":"k"}]}}}]],"in":{"app":[{"var":"k"},{"var":"k"}]}}`
	p, err := core.CompileTool("t", []byte(code))
	must.NoError(t, err)
	all := make([]core.Input, n)
	in := core.Inputs(all...)
	m := p.Start(in, core.Budgets{}, nil)
	defer m.Release()
	if m.Run(0) != core.Done {
		t.Fatal(m.Fault())
	}
	if got := string(m.Value().Type()); got != "function" {
		t.Error(got)
	}
	steps := m.Steps()
	p.Restart(m, in, core.Budgets{Steps: steps - 1}, nil)
	if m.Run(0) != core.Failed || m.Fault().Kind != fault.OutOfFuel {
		t.Error(m.State(), m.Fault())
	}
	p.Restart(m, in, core.Budgets{Steps: steps}, nil)
	if m.Run(0) != core.Done {
		t.Error(m.Fault())
	}
}

// TestInputsAuthority: what an eval in an input permits limits the functions that
// the program's code makes in it, wherever they are applied, in whichever input
// the eval is.
func TestInputsAuthority(t *testing.T) {
	const inEval = `{"lam":"k","body":{"eval":{"quote":{"app":[{"var":"k"},"a"]}}}}`
	for _, inputs := range [][]string{{inEval, "1"}, {"1", inEval}} {
		for _, made := range []string{`{"lam":["p","q"],"body":{"fs.read":{"var":"q"}}}`, `{"lam":"p","body":{"let":[["r",{"var":"p"}]],"in":{"lam":"q","body":{"fs.read":{"var":"r"}}}}}`} {
			code := `{"lam":["f","g"],"body":{"app":[{"if":{"cond":{"equal":[{"type_of":{"var":"f"}},"int"]},"then":{"var":"g"},"else":{"var":"f"}}},` + made + `,"b"]}}`
			tr := trial{tool: "t", code: code, input: inputs[0], more: inputs[1:]}
			if log, _ := tr.compare(t); !strings.Contains(log, `with [[]]`) {
				t.Errorf("%q: the effect was asked for with %s", inputs, log)
			}
		}
	}
}

// TestBudgetsOfAnySize: what is out of a budget's range means the default, or the largest.
func TestBudgetsOfAnySize(t *testing.T) {
	p, err := core.Compile([]byte(`n => fold((a, x) => [...a, x * n], [], range(0, 3))`))
	must.NoError(t, err)
	in, err := core.ParseInput([]byte(`2`), core.InputData)
	must.NoError(t, err)
	for _, b := range []core.Budgets{{}, {Memory: -1, Depth: -1}, {Steps: math.MaxUint64, Memory: math.MaxInt64, Depth: math.MaxInt}} {
		m := p.Start(in, b, nil)
		if m.Run(0) != core.Done {
			t.Fatal(b, m.Fault())
		}
		ran, _ := m.Encode(100)
		m.Release()
		traced, _, f := p.Trace(in, b, nil, func(core.TraceEvent) {})
		if f != nil || string(traced.JSON) != "[0,2,4]" || string(ran.JSON) != "[0,2,4]" {
			t.Errorf("%v: ran %s, traced %s, %v", b, ran.JSON, traced.JSON, f)
		}
	}
}
