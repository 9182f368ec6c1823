package naive_test

import (
	"testing"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/internal/vectors"
	"github.com/mcp-pif/mcp-pif/core/naive"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

var modes = map[string]parse.Mode{"": parse.Auto, "auto": parse.Auto, "term": parse.Term, "data": parse.Data}

func TestCorpus(t *testing.T) {
	vectors.EachCase(t, func(t *testing.T, c *vectors.Case) vectors.Outcome {
		tools, f := evolve(c.Setup())
		if f != nil {
			return vectors.Failed(f, 0)
		}
		config := naive.Config{Budgets: naive.Budgets{Steps: c.Budgets.Steps, Memory: c.Budgets.Memory, Depth: c.Budgets.Depth}}
		tool, source := c.Program()
		if f := tools.program(&config, tool, source); f != nil {
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
	if f != nil {
		t.Fatal(f)
	}
	return e.JSON
}

// datum is the value of JSON data.
func datum(t *testing.T, data []byte) value.Value {
	t.Helper()
	p, f := parse.Input(data, parse.Data)
	if f != nil {
		t.Fatal(f)
	}
	v, _, f := naive.Run(naive.Config{Term: p.Term, Source: p.Source})
	if f != nil {
		t.Fatal(f)
	}
	return v
}
