package core_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/internal/vectors"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/prim/gen"
	"github.com/mcp-pif/mcp-pif/core/value"
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

// TestFaultCodes runs the example of every kind in the table of faults, on both
// evaluators.
func TestFaultCodes(t *testing.T) {
	examples := 0
	for _, c := range fault.Codes {
		if c.Example == "" {
			continue
		}
		examples++
		t.Run(string(c.Kind), func(t *testing.T) {
			p := program{code: c.Example, budgets: core.Budgets{Steps: 100_000}}
			p.onBoth(t, func(t *testing.T, got ending) { failsWith(t, got, c.Kind) })
		})
	}
	if examples == 0 {
		t.Error("no kind has an example")
	}
}

// failsWith wants a failure of a kind that can be acted upon: it says what
// happened and what to do.
func failsWith(t *testing.T, got ending, kind fault.Kind) {
	t.Helper()
	switch {
	case got.fault == nil:
		t.Errorf("got %s, want %s", got, kind)
	case got.fault.Kind != kind:
		t.Errorf("got %v, want %s", got.fault, kind)
	case got.fault.Message == "" || got.fault.Hint == "":
		t.Errorf("%s lacks message or hint: %+v", kind, got.fault)
	}
}

const (
	sum  = `{"lam":"n","body":{"if":{"cond":{"eq":[{"var":"n"},0]},"then":0,"else":{"add":[{"var":"n"},{"app":{"func":{"self":true},"arg":{"sub":[{"var":"n"},1]}}}]}}}}`
	list = `{"lam":"n","body":{"if":{"cond":{"eq":[{"var":"n"},0]},"then":[],"else":{"cons":[{"var":"n"},{"app":{"func":{"self":true},"arg":{"sub":[{"var":"n"},1]}}}]}}}}`
	// twice doubles a pair that it shares n times.
	twice = `{"lam":"n","body":{"if":{"cond":{"eq":[{"var":"n"},0]},"then":1,"else":{"app":[{"lam":"p","body":{"pair":[{"var":"p"},{"var":"p"}]}},{"app":{"func":{"self":true},"arg":{"sub":[{"var":"n"},1]}}}]}}}}`
)

// TestFaultKindsOfRuns: the kinds of the language whose examples need a tool,
// an input, an effect or small budgets.
func TestFaultKindsOfRuns(t *testing.T) {
	tool := func(code string) []vectors.Tool { return []vectors.Tool{{Name: "t", Code: []byte(code)}} }
	refuse := func(int, string, value.Value) (value.Value, *fault.Fault) {
		return nil, &fault.Fault{Kind: fault.EffectFailed, Message: "no such file", Hint: "Name a file that exists."}
	}
	for _, c := range []struct {
		kind fault.Kind
		p    program
	}{
		{fault.ParseError, program{code: `1`, input: `{"add":[1,2}`, as: core.InputAuto}},
		{fault.ParseError, program{code: `[1,2`}},
		{fault.ParseError, program{tools: tool(`{"lam":"x","body":[{"continue":{"input":1}}]}`), tool: "t"}},
		{fault.Unbound, program{code: `{"lam":"x","body":0}`, input: `{"var":"x"}`, as: core.InputAuto}},
		{fault.RuntimeError, program{code: `{"continue":{"input":1}}`}},
		{fault.RuntimeError, program{code: `{"code_of":"no_such_tool"}`}},
		{fault.RuntimeError, program{tools: tool(`{"lam":"n","body":{"app":[{"eval":{"code_of":"t"}},1]}}`), tool: "t"}},
		{fault.OutOfFuel, program{tools: tool(sum), tool: "t", input: `100`, budgets: core.Budgets{Steps: 100}}},
		{fault.TooDeep, program{tools: tool(sum), tool: "t", input: `100`, budgets: core.Budgets{Depth: 99}}},
		{fault.ResultTooLarge, program{tools: tool(twice), tool: "t", input: `60`, budgets: core.Budgets{Memory: 1 << 20}}},
		{fault.Denied, program{code: `{"lam":"x","body":0}`, input: `{"call":{"tool":"t","input":1}}`, as: core.InputAuto}},
		{fault.EffectFailed, program{code: `{"fs.read":"a.txt"}`, effect: refuse}},
	} {
		t.Run(string(c.kind), func(t *testing.T) {
			c.p.onBoth(t, func(t *testing.T, got ending) { failsWith(t, got, c.kind) })
		})
	}
}

// TestOutOfMemory: only the machine counts memory exactly.
func TestOutOfMemory(t *testing.T) {
	p := program{
		tools: []vectors.Tool{{Name: "t", Code: []byte(list)}}, tool: "t", input: `100000`,
		budgets: core.Budgets{Memory: 1 << 20},
	}
	failsWith(t, p.onEval(t), fault.OutOfMemory)
	p.budgets.Memory = 64 << 20
	if got := p.onEval(t); got.fault != nil {
		t.Errorf("with 64 MiB: %v", got.fault)
	}
	p = program{code: `{"fold":[{"lam":"p","body":{"concat":[{"fst":{"var":"p"}},{"fst":{"var":"p"}}]}},"ab",[` + strings.Repeat("0,", 40) + `0]]}`}
	p.onBoth(t, func(t *testing.T, got ending) { failsWith(t, got, fault.OutOfMemory) })
}

// TestFaultDocuments: a failure says which document its place points into.
func TestFaultDocuments(t *testing.T) {
	for _, c := range []struct {
		in   string
		p    program
		deep int
	}{
		{"code", program{code: `{"add":[1,null]}`}, 0},
		{"input", program{code: `{"lam":"x","body":0}`, input: `{"add":[1,null]}`, as: core.InputAuto}, 0},
		{"input", program{code: `{"lam":"x","body":0}`, input: `{"add":[1]}`, as: core.InputAuto}, 0},
		{"tool:t", program{tools: []vectors.Tool{{Name: "t", Code: []byte(`{"lam":"x","body":{"not":{"var":"x"}}}`)}}, tool: "t"}, 0},
		{"eval", program{code: `{"eval":{"quote":{"eval":{"quote":{"not":null}}}}}`}, 2},
	} {
		c.p.onBoth(t, func(t *testing.T, got ending) {
			if got.fault == nil || got.fault.In != c.in || got.fault.EvalDepth != c.deep {
				t.Errorf("got %v %+v, want it in %q, %d deep", got, got.fault, c.in, c.deep)
			}
		})
	}
}

// TestLibraryFaults: a fault inside a row of the library names the row that was
// written and its operand, on both evaluators, with a hint for the value that came;
// one in a function that it was given stays that function's.
func TestLibraryFaults(t *testing.T) {
	for src, want := range map[string]string{
		`{"max":[]}`:                                       "max of the empty list",
		`{"max":5}`:                                        "max takes a list as its operand, not the integer 5",
		`{"sort":{"record":{"a":1}}}`:                      "sort takes a list as its operand, not a record",
		`{"sort":[1,"a"]}`:                                 `sort can't compare the string "a" with the integer 1`,
		`{"map":[[1],{"lam":"x","body":1}]}`:               "map takes a list as its second operand, not a function",
		`{"map":[3,[1]]}`:                                  "map takes a function as its first operand, not the integer 3",
		`{"filter":[{"lam":"x","body":1},[1]]}`:            "filter takes as its first operand a function that gives true or false, and it gave the integer 1",
		`{"group":[{"lam":"x","body":{"var":"x"}},[7]]}`:   "group takes as its first operand a function that gives a string, and it gave the integer 7",
		`{"group":[{"lam":"x","body":"a"},"b"]}`:           `group takes a list as its second operand, not the string "b"`,
		`{"take":["a",[1]]}`:                               `take takes an integer as its first operand, not the string "a"`,
		`{"take":[-1,[1]]}`:                                "take takes an integer that is not negative as its first operand, not the integer -1",
		`{"drop":[-1,[1]]}`:                                "drop takes an integer that is not negative as its first operand, not the integer -1",
		`{"sum":[1,"2"]}`:                                  `sum takes as its operand a list each of whose items is a number, and one is the string "2"`,
		`{"zip":[[1],3]}`:                                  "zip takes a list as its second operand, not the integer 3",
		`{"zip":[3,[1]]}`:                                  "zip takes a list as its first operand, not the integer 3",
		`{"append":[[1],2]}`:                               "append takes a list as its second operand, not the integer 2",
		`{"append":[1,[2]]}`:                               "append takes a list as its first operand, not the integer 1",
		`{"flatten":[1]}`:                                  "flatten takes as its operand a list each of whose items is a list, and one is the integer 1",
		`{"app":[{"compose":[{"lam":"x","body":1},2]},3]}`: "compose takes a function as its second operand, not the integer 2",
		`{"pow":[2,{"dec":"1.5"}]}`:                        "pow takes an integer as its second operand, not the decimal 1.5",
		`{"pipeline":[[1],5]}`:                             "pipeline takes as its first operand a list each of whose items is a function, and one is the integer 1",
		`{"map":[{"lam":"x","body":{"head":{"var":"x"}}},[[]]]}`: "head of the empty list",
	} {
		p := program{code: src}
		e, n := p.onEval(t), p.onNaive(t)
		sameFault(t, e, n)
		switch {
		case e.fault == nil:
			t.Errorf("%s gives %v", src, e)
		case e.fault.Message != want:
			t.Errorf("%s fails with %q, want %q", src, e.fault.Message, want)
		}
	}
	for src, hint := range map[string]string{
		`{"sort":{"record":{"a":1}}}`:                    `Make a list of the record: {"entries":R}`,
		`{"pow":[{"dec":"1.00233333333333333333"},300]}`: `Round the base: {"pow":[{"round_dec":[A,10,"half_even"]},N]}`,
		`{"parse_int":" 3"}`:                             `{"parse_int":{"trim":S}}`,
		`{"to_dec":"12,5"}`:                              `{"to_dec":{"replace":[S,",","."]}}`,
		`{"to_dec":"-1.234,50"}`:                         `{"to_dec":{"replace":[{"replace":[S,".",""]},",","."]}}`,
		`{"to_dec":"€ 1,234.50"}`:                        `{"to_dec":{"re_replace":[S,"[^0-9.-]",""]}}`,
		`{"to_dec":"1.234,50 €"}`:                        `Write the number as in {"to_dec":"12.30"}`,
		`{"parse_int":"12px"}`:                           `{"parse_int":{"re_replace":[S,"[^0-9.-]",""]}}`,
		`{"parse_int":"4.5"}`:                            `Write {"to_dec":S}`,
		`{"to_dec":"-1,234.5"}`:                          `{"to_dec":{"replace":[S,",",""]}}`,
		`{"sum":["2"]}`:                                  `{"sum":{"map":[{"lam":"x","body":{"to_dec":{"var":"x"}}},L]}}`,
		`{"map":[[1],{"lam":"x","body":1}]}`:             "The function is the first operand, the list the last",
		`{"max":[]}`:                                     `"else":{"max":L}`,
	} {
		if e := (&program{code: src}).onEval(t); e.fault == nil || !strings.Contains(e.fault.Hint, hint) {
			t.Errorf("%s fails with the hint %q, want %q", src, e.fault.Hint, hint)
		}
	}
}

// TestLibraryNamed: each example of a row of the library that fails names the row,
// and fails in the same words on both evaluators.
func TestLibraryNamed(t *testing.T) {
	n := 0
	for i := range prim.Table {
		row := &prim.Table[i]
		for _, x := range row.Examples {
			if row.Body == "" || x.Fault == "" || x.Fault == fault.Raised || x.Input != "" {
				continue
			}
			p := program{code: x.Code}
			e, naive := p.onEval(t), p.onNaive(t)
			if sameFault(t, e, naive); e.fault == nil || e.fault.Kind == fault.ParseError {
				continue
			}
			if e.fault.At != "" { // it is that of a function that the row was given
				continue
			}
			n++
			if !strings.HasPrefix(e.fault.Message, row.Name+" ") && !strings.HasPrefix(e.fault.Message, row.Name+": ") {
				t.Errorf("%s fails with %q, which doesn't name %s", x.Code, e.fault.Message, row.Name)
			}
		}
	}
	if n < 25 {
		t.Errorf("%d examples are few", n)
	}
}
