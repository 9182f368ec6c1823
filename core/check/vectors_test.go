package check_test

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/internal/vectors"
	"github.com/mcp-pif/mcp-pif/core/naive"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// registry is the tools of a vector or a case, and what is known of them.
type registry struct {
	tools   map[string]*parse.Parsed
	callees map[string]check.Callee
}

func (r registry) Tool(name string, _ bool) (value.Tool, bool) {
	p, ok := r.tools[name]
	if !ok {
		return value.Tool{}, false
	}
	return value.Tool{Term: p.Term, Source: p.Source, Name: name, Tools: r}, true
}

func (r registry) Callee(name string, with [][]string, _ fault.Pointer) (value.Tool, *fault.Fault) {
	return vectors.Callee(r, name, with)
}

func evolve(tools []vectors.Tool) (registry, *fault.Fault) {
	r := registry{map[string]*parse.Parsed{}, map[string]check.Callee{}}
	for _, tool := range tools {
		p, f := parse.Code(tool.Source(), parse.Options{Tool: tool.Name})
		if f != nil {
			return r, f
		}
		p.Source = &term.Source{Text: p.Source.Text, In: "tool:" + tool.Name + "@1"}
		r.tools[tool.Name] = p
	}
	// Tools that call each other know of each other what the calls before said.
	for range 2 {
		for name, p := range r.tools {
			report := check.Infer(p.Term, p.Source, r.env(name), check.Budget{})
			r.callees[name] = check.Callee{Type: report.Type, Effects: report.Effects}
		}
	}
	return r, nil
}

func (r registry) env(tool string) check.Env {
	return check.Env{Tool: tool, Code: func(name string) (term.Term, bool) {
		p, ok := r.tools[name]
		if !ok {
			return nil, false
		}
		return p.Term, true
	}, Callee: func(name string) (check.Callee, bool) { c, ok := r.callees[name]; return c, ok }}
}

// observed is what was seen of the programs that end without a failure.
type observed struct {
	sound, explained, outside int
	reasons                   map[string]int
}

// run runs a program and holds what comes of it against its report.
func (o *observed) run(t *testing.T, r registry, tool string, source []byte, c naive.Config) vectors.Outcome {
	p := r.tools[tool]
	if tool == "" {
		var f *fault.Fault
		if p, f = parse.Code(source, parse.Options{}); f != nil {
			return vectors.Failed(f, 0)
		}
	}
	c.Term, c.Source, c.Tool, c.Tools = p.Term, p.Source, tool, r
	report := check.Infer(c.Term, c.Source, r.env(tool), check.Budget{})
	v, steps, f := naive.Run(c)
	typ := report.Type
	inside := true
	if typ.Kinds == check.Function(nil, nil, check.Row{}).Kinds || typ.IsFunction() {
		in := check.Infer(c.Input.Term, c.Input.Source, check.Env{}, check.Budget{})
		if in.Type.IsFunction() {
			typ, inside = check.Dynamic, false
		}
		given, _, failed := naive.Run(naive.Config{Term: c.Input.Term, Source: c.Input.Source})
		inside = inside && failed == nil && in.Sound() && misfit(given, typ.Param, map[string]*check.Type{}) == ""
		if typ.Result != nil {
			typ = typ.Result
		}
	}
	if f != nil {
		if report.Sound() && inside && f.In != "input" && (f.Kind == fault.TypeError || f.Kind == fault.Unbound) {
			t.Errorf("%v\n%s: %s", f, c.Source.Text, report.Type)
		}
		return vectors.Failed(f, steps)
	}
	for _, d := range report.Diagnostics {
		t.Logf("a diagnostic: %+v", d)
	}
	switch {
	case !inside:
		o.outside++
		if os.Getenv("ZZ") != "" {
			fmt.Printf("OUTSIDE %s of %s\n   %s\n", c.Source.Text, c.Input.Source.Text, report.Type)
		}
	case report.Sound():
		if why := misfit(v, typ, map[string]*check.Type{}); why != "" {
			t.Errorf("%s\n%s: %s", why, c.Source.Text, report.Type)
		}
	}
	if report.Sound() {
		o.sound++
	} else if len(report.Diagnostics) == 0 {
		o.explained++
		if os.Getenv("ZZ") != "" {
			fmt.Printf("DYN %s\n   %s\n  %v\n", c.Source.Text, report.Type, report.Dynamic)
		}
		for _, d := range report.Dynamic {
			o.reasons[d.Reason]++
			if d.Message == "" {
				t.Errorf("%s has no message", d.Reason)
			}
		}
	} else if os.Getenv("ZZ") != "" {
		fmt.Printf("DIAG %s\n   %s\n  %v\n", c.Source.Text, report.Type, report.Diagnostics)
	}
	e, f := text.Encode(v, 64<<20, 64<<20)
	if f != nil {
		return vectors.Failed(f, steps)
	}
	return vectors.Outcome{Result: json.RawMessage(e.JSON), Type: string(e.Type), Steps: steps}
}

// TestVectors: the predecessor's programs run as their reports say, and of
// those that end without a failure at least 95% have no diagnostic, and a
// reason for every dynamic place.
func TestVectors(t *testing.T) {
	o := observed{reasons: map[string]int{}}
	ended := 0
	vectors.Each(t, func(t *testing.T, v vectors.Vector) vectors.Outcome {
		r, f := evolve(v.Setup)
		if f != nil {
			return vectors.Failed(f, 0)
		}
		var c naive.Config
		if c.Input, f = parse.Input(v.Input, parse.Auto); f != nil {
			return vectors.Failed(f, 0)
		}
		tool, source := v.Program()
		out := o.run(t, r, tool, source, c)
		if out.Kind == "" {
			ended++
		}
		return out
	})
	t.Logf("%d end without a failure: %d type without a dynamic place, %d with explained ones (%v); %d inputs are outside of the input's type",
		ended, o.sound, o.explained, o.reasons, o.outside)
	if (o.sound+o.explained)*100 < ended*95 {
		t.Error("fewer than 95% have types")
	}
}
