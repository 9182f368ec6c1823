package eval_test

import (
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/eval"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/internal/vectors"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/prim/gen"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// stressed collects at every allocation until the test ends.
func stressed(t testing.TB, tight bool) {
	eval.SetStress(tight)
	was := debug.SetPanicOnFault(true)
	t.Cleanup(func() {
		eval.Calm()
		debug.SetPanicOnFault(was)
	})
}

// stressedNot is for runs in between, with the sizes of real ones.
func stressedNot() { eval.Calm() }

func TestStressVectors(t *testing.T) {
	n := 0
	vectors.Each(t, func(t *testing.T, v vectors.Vector) vectors.Outcome {
		if n++; n%must.Full(4, 1) != 0 {
			t.Skip("one in four: all with PIF_FULL=1")
		}
		stressed(t, true)
		tr := trial{input: string(v.Input), slice: 97, tools: map[string]string{}}
		for _, s := range v.Setup {
			if _, err := core.CompileTool(s.Name, s.Source()); err != nil {
				return vectors.Failed(err.(*fault.Fault), 0)
			}
			tr.tools[s.Name] = string(s.Source())
		}
		name, src := v.Program()
		tr.tool, tr.code = name, string(src)
		if name != "" {
			tr.code = tr.tools[name]
		}
		return tr.onEval(t)
	})
}

func TestStressCorpus(t *testing.T) {
	n := 0
	vectors.EachCase(t, func(t *testing.T, c *vectors.Case) vectors.Outcome {
		if n++; n%4 != 0 && must.Quick() {
			t.Skip("one in four: all with PIF_CI=1")
		}
		stressed(t, true)
		if c.Budgets.Steps > 1_000_000 {
			t.Skip("too long for a collection at every allocation")
		}
		tr := trial{tools: map[string]string{}}
		for _, s := range c.Setup() {
			if _, err := core.CompileTool(s.Name, s.Source()); err != nil {
				return vectors.Failed(err.(*fault.Fault), 0)
			}
			tr.tools[s.Name] = string(s.Source())
		}
		name, src := c.Program()
		tr.tool, tr.code = name, string(src)
		if name != "" {
			tr.code = tr.tools[name]
		}
		p, f := compileAs(tr.tool, tr.code)
		if f != nil {
			return vectors.Failed(f, 0)
		}
		as := map[string]core.InputAs{"": core.InputAuto, "auto": core.InputAuto, "term": core.InputTerm, "data": core.InputData}[c.InputAs]
		in, err := core.ParseInput(c.Input, as)
		if err != nil {
			return vectors.Failed(err.(*fault.Fault), 0)
		}
		m := p.Start(in, core.Budgets{Steps: c.Budgets.Steps, Memory: c.Budgets.Memory, Depth: c.Budgets.Depth}, tr.library(t))
		defer m.Release()
		asked, rounds := 0, 0
		encode := func(v core.Value) []byte {
			e, f := text.Encode(v, 1<<20, 1<<20)
			must.NoFault(t, f)
			return e.JSON
		}
		for {
			switch m.Run(uint64(len(c.Name) % 4)) {
			case core.Paused:
				continue
			case core.Suspended:
				var answers []core.Answer
				for _, e := range c.Answers(t, m.Requests(), encode, &asked, &rounds) {
					if e.Fault != "" {
						answers = append(answers, core.Answer{Fault: &fault.Fault{Kind: e.Fault, Message: "as the case says"}})
					} else {
						answers = append(answers, core.Answer{Value: dataValue(t, string(e.Result))})
					}
				}
				m.Resume(answers)
				continue
			}
			return outcome(m)
		}
	})
}

// dataValue is JSON read as data.
func dataValue(t testing.TB, json string) core.Value {
	t.Helper()
	m := mustCompile(t, `{"lam":"x","body":{"var":"x"}}`).Start(mustInput(t, json, core.InputData), core.Budgets{}, nil)
	defer m.Release()
	if m.Run(0) != core.Done {
		t.Fatal(m.Fault())
	}
	return m.Value()
}

// draw makes a trial of choices: a typed program, mostly.
func draw(d gen.Draw) trial { return drawWith(d, d(4) == 0) }

func drawWith(d gen.Draw, effects bool) trial {
	tr := trial{
		budgets: core.Budgets{Steps: 20_000, Memory: 4 << 20, Depth: 200},
		tools:   gen.Tools,
		reply:   echo,
	}
	o := gen.Options{Wrong: []int{0, 5, 30}[d(3)], Effects: effects, Records: d(2) == 0, Tool: d(2) == 0}
	if o.Tool {
		tr.tool = "tool"
	}
	size := 1 + d(160)
	if d(4) == 0 {
		tr.code, tr.input = gen.Term(d, size, o), "null"
	} else {
		tr.code, tr.input = gen.Function(d, size, o)
	}
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

// TestStressActing does the same with what asks, calls and branches all over.
func TestStressActing(t *testing.T) {
	n, rounds := must.Drawn(520, 20_000), 0
	for seed := range n {
		stressed(t, seed%2 == 0)
		r := rand.New(rand.NewPCG(uint64(seed), 98))
		tr := drawWith(r.IntN, true)
		if _, refused := tr.onNaive(t); refused {
			continue
		}
		if o := tr.check(t); strings.Contains(o.Asked, "round of 2") {
			rounds++
		}
	}
	if rounds < n/35 {
		t.Errorf("only %d programs have a round of two requests", rounds)
	}
}

func TestStressGenerated(t *testing.T) {
	stressed(t, true)
	for seed := range must.Drawn(520, 20_000) {
		stressed(t, seed%2 == 0)
		r := rand.New(rand.NewPCG(uint64(seed), 99))
		tr := draw(r.IntN)
		if _, refused := tr.onNaive(t); !refused {
			tr.check(t)
		}
	}
}
