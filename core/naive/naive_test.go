package naive_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/internal/vectors"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/naive"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// tool is the configuration that runs a tool's code with an input.
func tool(t *testing.T, code, input string) naive.Config {
	t.Helper()
	tools, f := vectors.Parse([]vectors.Tool{{Name: "t", Code: []byte(code)}})
	must.NoFault(t, f)
	var c naive.Config
	must.NoFault(t, program(&c, tools, "t", nil))
	if c.Input, f = parse.Input([]byte(input), parse.Auto); f != nil {
		t.Fatal(f)
	}
	return c
}

const (
	count = `{"lam":"n","body":{"if":{"cond":{"lte":[{"var":"n"},0]},"then":"done","else":{"app":{"func":{"self":true},"arg":{"sub":[{"var":"n"},1]}}}}}}`
	sum   = `{"lam":"n","body":{"if":{"cond":{"lte":[{"var":"n"},0]},"then":0,"else":{"add":[{"var":"n"},{"app":{"func":{"self":true},"arg":{"sub":[{"var":"n"},1]}}}]}}}}`
)

// TestTailCalls recurs ten million times in tail position, less often without PIF_FULL.
func TestTailCalls(t *testing.T) {
	n := uint64(must.Full(200_000, 10_000_000))
	c := tool(t, count, fmt.Sprint(n))
	c.Budgets = naive.Budgets{Steps: 1_000_000_000, Depth: 1}
	v, steps, f := naive.Run(c)
	must.NoFault(t, f)
	if v != value.Str("done") || steps != 3+9*n+5 {
		t.Errorf("%v in %d steps", v, steps)
	}
}

// TestDeepRecursion goes deeper than one goroutine's stack would be let.
func TestDeepRecursion(t *testing.T) {
	v, steps, f := naive.Run(tool(t, sum, "400000"))
	must.NoFault(t, f)
	if v != value.NewInt(400_000*400_001/2) || steps != 3+11*400_000+5 {
		t.Errorf("%v in %d steps", v, steps)
	}
}

// TestStackIsBounded runs a program whose recursion is shallow by its depth
// but takes most of a stack for each call: nested operands between two calls.
func TestStackIsBounded(t *testing.T) {
	body := `{"app":{"func":{"self":true},"arg":{"var":"n"}}}`
	for range 2000 {
		body = `{"not":` + body + `}`
	}
	c := tool(t, `{"lam":"n","body":`+body+`}`, "1")
	c.Budgets = naive.Budgets{Steps: 100_000_000, Memory: 8 << 20}
	if _, _, f := naive.Run(c); f == nil || f.Kind != fault.OutOfMemory {
		t.Errorf("got %v, want out_of_memory", f)
	}
}

// TestVisit sees every step of a run before it is charged.
func TestVisit(t *testing.T) {
	c := tool(t, sum, "3")
	c.Budgets.Steps = 1000
	var steps uint64
	deepest := 0
	var first term.Term
	c.Visit = func(s naive.Scene) bool {
		if s.Step != steps || s.Left != 1000-steps {
			t.Errorf("step %d with %d left, want %d", s.Step, s.Left, steps)
		}
		if steps++; steps == 1 {
			first = s.Term
		}
		deepest = max(deepest, s.Depth)
		return true
	}
	_, used, f := naive.Run(c)
	must.NoFault(t, f)
	if used != steps || steps != 3+11*3+5 {
		t.Errorf("visited %d terms in %d steps", steps, used)
	}
	if deepest != 3 || first != c.Term {
		t.Errorf("deepest %d, first %v", deepest, first)
	}
}

// TestScene: a visitor sees place and variables, and may end the run.
func TestScene(t *testing.T) {
	c := tool(t, `{"lam":"x","body":{"app":{"func":{"lam":"x","body":{"add":[{"var":"x"},1]}},"arg":[{"var":"x"},2]}}}`, `7`)
	c.Budgets.Steps = 1000
	var lines []string
	c.Visit = func(s naive.Scene) bool {
		line := fmt.Sprintf("%s %s", s.Place().In, s.Place().At)
		s.Vars(func(name string, v value.Value) bool {
			line += fmt.Sprintf(" %s:%s", name, v.Type())
			return true
		})
		lines = append(lines, line)
		return !strings.HasSuffix(string(s.Place().At), "/add/1")
	}
	_, steps, f := naive.Run(c)
	if f == nil || f.Kind != fault.Cancelled {
		t.Errorf("it ended with %v", f)
	}
	last := lines[len(lines)-1]
	if want := "/body/app/func/body/add/1 x:list x:int"; !strings.HasSuffix(last, want) || int(steps) != len(lines)-1 {
		t.Errorf("the last of %d, after %d steps, is %q, not %q", len(lines), steps, last, want)
	}
}

// TestPanicsCross checks that a panic deep inside reaches the caller, who may
// recover, and doesn't end the process on another goroutine.
func TestPanicsCross(t *testing.T) {
	c := tool(t, sum, "200000")
	c.Visit = func(s naive.Scene) bool {
		if s.Depth == 199_999 {
			panic("deep")
		}
		return true
	}
	defer func() {
		if p := recover(); p != "deep" {
			t.Errorf("recovered %v", p)
		}
	}()
	naive.Run(c)
	t.Error("no panic")
}

// TestHandlerFault leaves a handler's fault as it is and gives the place to a
// copy.
func TestHandlerFault(t *testing.T) {
	mine := fault.New(fault.EffectFailed, "no such file")
	c := tool(t, `{"lam":"x","body":[{"fs.read":{"var":"x"}}]}`, `1`)
	c.Handler = func([]value.Request) []value.Answer { return []value.Answer{{Fault: mine}} }
	_, _, f := naive.Run(c)
	if f == nil || f.Kind != fault.EffectFailed || f.At != "/body/0" || f.In != "tool:t@1" || f.Message != mine.Message {
		t.Errorf("%v", f)
	}
	if mine.At != "" || mine.In != "" {
		t.Errorf("the handler's fault was changed: %v", mine)
	}
}

// TestNoSource runs a term that has no text: faults have no place then.
func TestNoSource(t *testing.T) {
	_, _, f := naive.Run(naive.Config{Term: &term.Var{Name: "x"}})
	if f == nil || f.Kind != fault.Unbound || f.At != "" || f.In != "code" {
		t.Errorf("%v", f)
	}
}

// TestSharedTerms runs one parse from several goroutines at once: terms are
// immutable.
func TestSharedTerms(t *testing.T) {
	c := tool(t, sum, "1000")
	done := make(chan value.Value)
	for range 4 {
		go func() {
			v, _, _ := naive.Run(c)
			done <- v
		}()
	}
	for range 4 {
		if v := <-done; v != value.NewInt(500500) {
			t.Errorf("got %v", v)
		}
	}
}

var modes = map[string]parse.Mode{"": parse.Auto, "auto": parse.Auto, "term": parse.Term, "data": parse.Data}

func TestCorpus(t *testing.T) {
	vectors.EachCase(t, func(t *testing.T, c *vectors.Case) vectors.Outcome {
		tools, f := vectors.Parse(c.Setup())
		if f != nil {
			return vectors.Failed(f, 0)
		}
		config := naive.Config{Budgets: naive.Budgets{Steps: c.Budgets.Steps, Memory: c.Budgets.Memory, Depth: c.Budgets.Depth}}
		tool, source := c.Program()
		if f := program(&config, tools, tool, source); f != nil {
			return vectors.Failed(f, 0)
		}
		if config.Input, f = parse.Input(c.Input, modes[c.InputAs]); f != nil {
			return vectors.Failed(f, 0)
		}
		asked, rounds := 0, 0
		config.Handler = func(round []value.Request) []value.Answer {
			var answers []value.Answer
			for _, e := range c.Answers(t, round, func(v value.Value) []byte { return encode(t, v) }, &asked, &rounds) {
				if e.Fault != "" {
					answers = append(answers, value.Answer{Fault: fault.New(e.Fault, "so the case says")})
				} else {
					answers = append(answers, value.Answer{Value: datum(t, e.Result)})
				}
			}
			return answers
		}
		o := outcome(config)
		if o.Kind == "" && asked != len(c.Effects) {
			t.Errorf("%d effects were asked for, want %d", asked, len(c.Effects))
		}
		return o
	})
}

func encode(t *testing.T, v value.Value) []byte {
	t.Helper()
	e, f := text.Encode(v, 1<<20, 1<<20)
	must.NoFault(t, f)
	return e.JSON
}

// datum is the value of JSON data.
func datum(t *testing.T, data []byte) value.Value {
	t.Helper()
	p, f := parse.Input(data, parse.Data)
	must.NoFault(t, f)
	v, _, f := naive.Run(naive.Config{Term: p.Term, Source: p.Source})
	must.NoFault(t, f)
	return v
}

// program fills in the code to run: that of a tool, or a source.
func program(c *naive.Config, tools vectors.Parsed, tool string, source []byte) *fault.Fault {
	p, f := tools.Program(tool, source)
	if f == nil {
		c.Term, c.Source, c.Tool, c.Tools = p.Term, p.Source, tool, tools
	}
	return f
}

// outcome runs and encodes.
func outcome(c naive.Config) vectors.Outcome {
	v, steps, f := naive.Run(c)
	if f != nil {
		return vectors.Failed(f, steps)
	}
	e, f := text.Encode(v, 64<<20, 64<<20)
	if f != nil {
		return vectors.Failed(f, steps)
	}
	return vectors.Outcome{Result: json.RawMessage(e.JSON), Type: string(e.Type), Steps: steps}
}

func TestVectors(t *testing.T) {
	vectors.Each(t, func(t *testing.T, v vectors.Vector) vectors.Outcome {
		tools, f := vectors.Parse(v.Setup)
		if f != nil {
			return vectors.Failed(f, 0)
		}
		c := naive.Config{Budgets: naive.Budgets{Steps: v.Steps()}}
		tool, source := v.Program()
		if f := program(&c, tools, tool, source); f != nil {
			return vectors.Failed(f, 0)
		}
		if c.Input, f = parse.Input(v.Input, parse.Auto); f != nil {
			return vectors.Failed(f, 0)
		}
		return outcome(c)
	})
}
