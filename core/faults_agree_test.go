package core_test

import (
	"math/rand/v2"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/internal/vectors"
	"github.com/mcp-pif/mcp-pif/core/prim/gen"
)

// sameFault holds two endings of one program against each other: the whole of
// the fault as a client sees it, words included. Of a budget's fault the place
// is not compared, and the reference only estimates memory.
func sameFault(t *testing.T, eval, naive ending) {
	t.Helper()
	if eval.fault == nil && naive.fault == nil {
		return
	}
	if eval.fault == nil || naive.fault == nil {
		t.Errorf("eval ends with %v\nnaive with %v", eval, naive)
		return
	}
	if eval.fault.Kind == fault.OutOfMemory || naive.fault.Kind == fault.OutOfMemory {
		return
	}
	if vectors.ByBudget(eval.fault.Kind) {
		eval.fault, naive.fault = placeless(eval.fault), placeless(naive.fault)
	}
	if e, n := eval.whole(t), naive.whole(t); e != n {
		t.Errorf("eval  fails with %s\nnaive fails with %s", e, n)
	}
}

func placeless(f *fault.Fault) *fault.Fault {
	c := *f
	c.At, c.In, c.Fragment, c.EvalDepth = "", "", "", 0
	return &c
}

// agreeing runs a program on both evaluators and returns the machine's outcome.
func agreeing(t *testing.T, p *program) vectors.Outcome {
	t.Helper()
	e, n := p.onEval(t), p.onNaive(t)
	sameFault(t, e, n)
	if e.fault != nil {
		return vectors.Failed(e.fault, e.steps)
	}
	return vectors.Outcome{Result: []byte(e.result), Type: string(e.kind), Steps: e.steps}
}

// TestCorpusFaults: what fails in the corpus fails in the same words on both
// evaluators.
func TestCorpusFaults(t *testing.T) {
	modes := map[string]core.InputAs{"": core.InputAuto, "auto": core.InputAuto, "term": core.InputTerm, "data": core.InputData}
	vectors.EachCase(t, func(t *testing.T, c *vectors.Case) vectors.Outcome {
		p := program{tools: c.Setup(), input: string(c.Input), as: modes[c.InputAs]}
		p.budgets = core.Budgets{Steps: c.Budgets.Steps, Memory: c.Budgets.Memory, Depth: c.Budgets.Depth}
		var src []byte
		p.tool, src = c.Program()
		p.code = string(src)
		p.rounds = func() func([]core.Request) []core.Answer {
			asked, rounds := 0, 0
			return func(round []core.Request) (answers []core.Answer) {
				for _, e := range c.Answers(t, round, func(v core.Value) []byte { return encoded(t, v) }, &asked, &rounds) {
					answers = append(answers, answer(t, e))
				}
				return answers
			}
		}
		return agreeing(t, &p)
	})
}

// TestVectorFaults does the same with the predecessor's vectors.
func TestVectorFaults(t *testing.T) {
	vectors.Each(t, func(t *testing.T, v vectors.Vector) vectors.Outcome {
		p := program{tools: v.Setup, input: string(v.Input), as: core.InputAuto, budgets: core.Budgets{Steps: v.Steps()}}
		var src []byte
		p.tool, src = v.Program()
		p.code = string(src)
		return agreeing(t, &p)
	})
}

// TestGeneratedFaults does the same with generated programs of which most fail.
func TestGeneratedFaults(t *testing.T) {
	failed := 0
	for seed := range 3000 {
		r := rand.New(rand.NewPCG(uint64(seed), 11))
		tr := draw(r.IntN)
		p := program{code: tr.code, input: tr.input, as: core.InputAuto, budgets: tr.budgets, effect: reply}
		for name, code := range gen.Tools {
			p.tools = append(p.tools, vectors.Tool{Name: name, Code: []byte(code)})
		}
		if p.tool = tr.tool; p.tool != "" {
			p.tools = append(p.tools, vectors.Tool{Name: p.tool, Code: []byte(tr.code)})
		}
		e, n := p.onEval(t), p.onNaive(t)
		if sameFault(t, e, n); t.Failed() {
			t.Fatalf("seed %d: %s", seed, tr)
		}
		if e.fault != nil {
			failed++
		}
	}
	if failed < 300 {
		t.Errorf("only %d programs failed: the test shows little", failed)
	}
}
