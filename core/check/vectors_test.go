package check_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/internal/vectors"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/naive"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// registry is the tools of a vector or a case, and what is known of them.
type registry struct {
	vectors.Parsed
	callees map[string]check.Callee
}

func evolve(tools []vectors.Tool) (registry, *fault.Fault) {
	parsed, f := vectors.Parse(tools)
	r := registry{parsed, map[string]check.Callee{}}
	if f != nil {
		return r, f
	}
	// Tools that call each other know of each other what the calls before said.
	for range 2 {
		for name, p := range r.Parsed {
			report := check.Infer(p.Term, p.Source, r.env(name), check.Budget{})
			r.callees[name] = check.Callee{Type: report.Type, Params: report.Params, Effects: report.Effects, Sound: report.Sound()}
		}
	}
	return r, nil
}

func (r registry) env(tool string) check.Env {
	return check.Env{Tool: tool, Code: func(name string) (term.Term, bool) {
		p, ok := r.Parsed[name]
		if !ok {
			return nil, false
		}
		return p.Term, true
	}, Callee: func(name string) (check.Callee, bool) { c, ok := r.callees[name]; return c, ok }}
}

// observed is what was seen of programs.
type observed struct {
	ended, sound, explained, outside, validated int

	reasons map[string]int
}

// input is the value of an input, and whether it is data: a function that a
// term gives is one without a type.
func input(in *parse.Parsed, tools value.Tools) (value.Value, bool) {
	if _, ok := in.Term.(*term.Lam); ok {
		return nil, false
	}
	v, _, f := naive.Run(naive.Config{Term: in.Term, Source: in.Source, Tools: tools})
	if f != nil {
		return nil, false
	}
	found, _, _ := prim.NoData(v, 1<<40)
	return v, found == nil
}

// run runs a program and holds what comes of it against its report.
func (o *observed) run(t *testing.T, r registry, tool string, source []byte, in json.RawMessage, as parse.Mode, c naive.Config) vectors.Outcome {
	p := r.Parsed[tool]
	if tool == "" {
		var f *fault.Fault
		if p, f = parse.Code(source, parse.Options{}); f != nil {
			return vectors.Failed(f, 0)
		}
	}
	c.Term, c.Source, c.Tool, c.Tools = p.Term, p.Source, tool, r
	var f *fault.Fault
	if c.Input, f = parse.Input(in, as); f != nil {
		return vectors.Failed(f, 0)
	}
	report := check.Infer(c.Term, c.Source, r.env(tool), check.Budget{})
	for _, d := range report.Dynamic {
		o.reasons[d.Reason]++
		if d.Message == "" || d.Line == 0 {
			t.Errorf("a dynamic place without an explanation: %+v", d)
		}
	}
	typ := report.Type
	inside := typ.Kinds&prim.KindFunction == 0
	given, data := input(c.Input, r)
	if typ.IsFunction() {
		inside = data && misfit(given, typ.Param, map[string]*check.Type{}) == ""
		typ = typ.Result
	}
	v, steps, f := naive.Run(c)
	if f != nil {
		if report.Sound() && inside && f.In != "input" && (f.Kind == fault.TypeError || f.Kind == fault.Unbound) {
			t.Errorf("%v\n%s: %s", f, c.Source.Text, report.Type)
		}
		return vectors.Failed(f, steps)
	}
	e, f := text.Encode(v, 64<<20, 64<<20)
	if f != nil {
		return vectors.Failed(f, steps)
	}
	o.ended++
	switch {
	case report.Sound():
		o.sound++
	case len(report.Diagnostics) == 0:
		o.explained++
	}
	if data && !inside && report.Type.IsFunction() {
		o.outside++
		t.Logf("the input %s is not of type %s", c.Input.Source.Text, report.Type)
	}
	if inside {
		o.schemas(t, report, given, typ, e.JSON)
		if why := misfit(v, typ, map[string]*check.Type{}); why != "" && report.Sound() {
			t.Errorf("%s\n%s: %s", why, c.Source.Text, report.Type)
		}
	}
	return vectors.Outcome{Result: json.RawMessage(e.JSON), Type: string(e.Type), Steps: steps}
}

// schemas holds an input and a result against the schemas.
func (o *observed) schemas(t *testing.T, report *check.Report, given value.Value, typ *check.Type, result []byte) {
	if len(report.Params) == 1 && report.Type.IsFunction() {
		arguments := append([]byte(`{"input":`), append(shown(t, given), '}')...)
		if err := validates(t, check.InputSchema(report), arguments); err != nil {
			t.Errorf("%v\n%s\n%s", err, arguments, check.InputSchema(report))
		}
	}
	if strings.Contains(string(result), `{"int":`) {
		return // more digits than the schema is for
	}
	o.validated++
	if err := validates(t, check.SchemaOf(typ), result); err != nil {
		t.Errorf("%v\n%.300s\n%s", err, result, check.SchemaOf(typ))
	}
}

func (o *observed) check(t *testing.T) {
	t.Logf("%d end without a failure: %d type without a dynamic place, %d with explained ones (%v); %d inputs are outside of the input's type; %d results are held against schemas",
		o.ended, o.sound, o.explained, o.reasons, o.outside, o.validated)
	if (o.sound+o.explained)*100 < o.ended*95 {
		t.Error("fewer than 95% have types")
	}
	if o.outside > 0 {
		t.Error("an input that a program takes is not of its type")
	}
}

// TestVectors: the predecessor's programs run as their reports say, and of
// those that end without a failure at least 95% have no diagnostic, and a
// reason for every dynamic place.
func TestVectors(t *testing.T) {
	o := observed{reasons: map[string]int{}}
	vectors.Each(t, func(t *testing.T, v vectors.Vector) vectors.Outcome {
		r, f := evolve(v.Setup)
		if f != nil {
			return vectors.Failed(f, 0)
		}
		tool, source := v.Program()
		return o.run(t, r, tool, source, v.Input, parse.Auto, naive.Config{Budgets: naive.Budgets{Steps: v.Steps()}})
	})
	o.check(t)
}

var modes = map[string]parse.Mode{"": parse.Auto, "auto": parse.Auto, "term": parse.Term, "data": parse.Data}

// TestCorpus: the same of this project's own corpus.
func TestCorpus(t *testing.T) {
	o := observed{reasons: map[string]int{}}
	vectors.EachCase(t, func(t *testing.T, c *vectors.Case) vectors.Outcome {
		r, f := evolve(c.Setup())
		if f != nil {
			return vectors.Failed(f, 0)
		}
		config := naive.Config{Budgets: naive.Budgets{Steps: c.Budgets.Steps, Memory: c.Budgets.Memory, Depth: c.Budgets.Depth}}
		asked, rounds := 0, 0
		config.Handler = func(round []value.Request) []value.Answer {
			var answers []value.Answer
			for _, e := range c.Answers(t, round, func(v value.Value) []byte { return shown(t, v) }, &asked, &rounds) {
				if e.Fault != "" {
					answers = append(answers, value.Answer{Fault: fault.New(e.Fault, "so the case says")})
				} else {
					answers = append(answers, value.Answer{Value: datum(t, e.Result)})
				}
			}
			return answers
		}
		tool, source := c.Program()
		return o.run(t, r, tool, source, c.Input, modes[c.InputAs], config)
	})
	o.check(t)
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
