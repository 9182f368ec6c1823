package core_test

import (
	"math/rand/v2"
	"strings"
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

// TestPatternWords: what a pattern of let or of a parameter fails with tells of the
// pattern, and what an operation fails with of that.
func TestPatternWords(t *testing.T) {
	for src, want := range map[string]string{
		`let (a, b) = 5 in a`:                                     "the pattern (a, b) takes a pair, not the integer 5",
		`let [a, b] = [1, 2, 3] in a`:                             "the pattern [a, b] doesn't fit a list",
		`let [a, ...r] = "x" in a`:                                `the pattern [a, ...r] takes a list, not the string "x"`,
		`let {name} = 3 in name`:                                  "the pattern with the key name takes a record, not the integer 3",
		`let {} = 3 in 1`:                                         "the pattern {} takes a record, not the integer 3",
		`let (0, x) = (1, 2) in x`:                                "the pattern 0 doesn't fit the integer 1",
		`fold((a, (x, y)) => a, 0, [1])`:                          "the pattern (x, y) takes a pair, not the integer 1",
		`let {name} = {nme: 1} in name`:                           `the record has no key "name"`,
		`let x = 5 in (fst(x))`:                                   "fst takes a pair as its operand, not the integer 5",
		`get(3, "a")`:                                             "get takes a record as its first operand, not the integer 3",
		`let x = 3 in x.a`:                                        "get takes a record as its first operand, not the integer 3",
		`[isEmpty(3)]`:                                            "isEmpty takes a list as its operand, not the integer 3",
		`match 5 { [] => 1; [0] => 2 }`:                           "no pattern fits the integer 5",
		`[no_match([1])]`:                                         "no pattern fits a list",
		`{"let":[[[{"var":"a"}],[]]],"in":1}`:                     `the pattern [{"var":"a"}] doesn't fit the empty list`,
		`{"let":[[{"record":{"a":{"var":"a"}}},5]],"in":1}`:       `the pattern with the key "a" takes a record, not the integer 5`,
		`{"let":[[{"pair":[{"var":"a"},{"var":"b"}]},6]],"in":1}`: `the pattern {"pair":[{"var":"a"},{"var":"b"}]} takes a pair, not the integer 6`,
		`{"get":[3,"a"]}`:                                         "get takes a record as its first operand, not the integer 3",
		`{"isEmpty":5}`:                                           "isEmpty takes a list as its operand, not the integer 5",
		`{"fst":{"fst":{"pair":[1,2]}}}`:                          "fst takes a pair as its operand, not the integer 1",
	} {
		p := &program{code: src, text: !strings.HasPrefix(src, `{"`)}
		e, n := p.onEval(t), p.onNaive(t)
		sameFault(t, e, n)
		if e.fault == nil || e.fault.Message != want {
			t.Errorf("%s ends with %v, not %s", src, e.fault, want)
		}
	}
}
