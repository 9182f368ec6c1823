package cost_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/core/check/cost"
	"github.com/mcp-pif/mcp-pif/core/internal/vectors"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/naive"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// outcome runs a program, and holds what it took against its bound.
func outcome(t *testing.T, c naive.Config, bounded *int) vectors.Outcome {
	report := cost.Of(c.Term, cost.Options{Tool: c.Tool != "", Source: c.Source})
	v, steps, f := naive.Run(c)
	if report.Steps.Finite() {
		*bounded++
		name, used := "input", uint64(0)
		if len(report.Roots) > 0 {
			name = report.Roots[0]
		}
		sizes := cost.Sizes{}
		// An input that computes takes steps of its own.
		in, own, inFault := naive.Run(naive.Config{Term: c.Input.Term, Source: c.Input.Source})
		if inFault == nil && len(report.Roots) < 2 {
			if _, isFunction := in.(*value.Closure); !isFunction {
				sizes[name] = []value.Value{in}
				terms := sizes.Of(cost.Var{Measure: cost.Terms, Path: cost.RootName(name)})
				used = steps
				if extra := int64(own) - terms.Int64(); extra > 0 && uint64(extra) < steps {
					used -= uint64(extra)
				}
			}
		}
		most, ok := report.Steps.Eval(sizes.Of)
		if ok && len(sizes) > 0 && most.Cmp(new(big.Int).SetUint64(used)) < 0 && !strings.Contains(report.Steps.String(), `"!`) {
			t.Errorf("%d steps, more than %s: %s\n%s", used, most, report.Steps, text.Print(c.Term))
		}
	}
	if f != nil {
		return vectors.Failed(f, steps)
	}
	e, f := text.Encode(v, 64<<20, 64<<20)
	if f != nil {
		return vectors.Failed(f, steps)
	}
	return vectors.Outcome{Result: json.RawMessage(e.JSON), Type: string(e.Type), Steps: steps}
}

// TestVectors: the programs of the predecessor's vectors take no more than
// their bounds.
func TestVectors(t *testing.T) {
	bounded, all := 0, 0
	vectors.Each(t, func(t *testing.T, v vectors.Vector) vectors.Outcome {
		tools, f := vectors.Parse(v.Setup)
		if f != nil {
			return vectors.Failed(f, 0)
		}
		tool, source := v.Program()
		p, f := tools.Program(tool, source)
		if f != nil {
			return vectors.Failed(f, 0)
		}
		in, f := parse.Input(v.Input, parse.Auto)
		if f != nil {
			return vectors.Failed(f, 0)
		}
		all++
		c := naive.Config{Term: p.Term, Source: p.Source, Tool: tool, Tools: tools, Input: in, Budgets: naive.Budgets{Steps: v.Steps()}}
		return outcome(t, c, &bounded)
	})
	t.Logf("%d of %d have bounds", bounded, all)
	if all > 0 && bounded < all/2 {
		t.Errorf("only %d of %d programs have bounds", bounded, all)
	}
}

// TestWorst: programs that are made to take long to look at end soon, with a
// bound or without.
func TestWorst(t *testing.T) {
	doubled := "x"
	for range 11 {
		doubled = "(" + doubled + ") * (" + doubled + ")"
	}
	nested := "x"
	for range 60 {
		nested = "fold(p => fst(p) + " + nested + ", 0, x)"
	}
	church := "(f => x => f(f(x)))"
	towers := strings.Repeat(church, 1)
	for range 12 {
		towers += "(" + church + ")"
	}
	lets := "let a = (x, x)"
	for range 100 {
		lets += ", a = (a, a)"
	}
	powers := "let a = x * x"
	for range 60 {
		powers += ", a = a * a"
	}
	for name, code := range map[string]string{
		"wide": "x => " + doubled, "loops": "x => " + nested, "towers": "x => " + towers + "(y => y + 1)(x)",
		"shared": "x => " + lets + " in equal(a, a)", "powers": "x => " + powers + " in a",
		"deep": "x => " + strings.Repeat("(", 2000) + "x" + strings.Repeat(" + 1)", 2000),
		"self": "x => self(self(self(x)))", "many selfs": "x => if x <= 0 then 1 else " + strings.Repeat("self(x - 1) + ", 300) + "1",
	} {
		p, f := text.Parse([]byte(code), text.Options{Tool: "tool"})
		if f != nil {
			t.Errorf("%s: %v", name, f)
			continue
		}
		start := time.Now()
		r := cost.Of(p.Term, cost.Options{Tool: true, Source: p.Source})
		t.Logf("%s: %.200s %v", name, r.Steps, time.Since(start))
		if !r.Steps.Finite() && len(r.Why) == 0 {
			t.Errorf("%s: no bound and no reason", name)
		}
	}
}

// TestSameReport: the same program has the same report each time.
func TestSameReport(t *testing.T) {
	for _, code := range everyShape() {
		p, f := text.Parse([]byte(code), text.Options{Tool: "tool"})
		must.NoFault(t, f)
		want, _ := json.Marshal(cost.Of(p.Term, cost.Options{Tool: true, Source: p.Source}))
		for range 5 {
			if got, _ := json.Marshal(cost.Of(p.Term, cost.Options{Tool: true, Source: p.Source})); string(got) != string(want) {
				t.Fatalf("%s\n%s\n%s", code, got, want)
			}
		}
	}
}

func BenchmarkOf(b *testing.B) {
	for _, code := range []string{"x => x * x", "xs => sum(map(x => x * x, filter(x => x % 2 == 0, xs)))", "n => if n <= 1 then 1 else n * self(n - 1)", "xs => sort(xs)"} {
		p, f := text.Parse([]byte(code), text.Options{Tool: "tool"})
		must.NoFault(b, f)
		b.Run(code, func(b *testing.B) {
			for b.Loop() {
				cost.Of(p.Term, cost.Options{Tool: true, Source: p.Source})
			}
		})
	}
}

// TestREADME: tools and their bounds, in the blocks "cost" of core/check/README.md.
func TestREADME(t *testing.T) {
	src, err := os.ReadFile("../README.md")
	must.NoError(t, err)
	n := 0
	for _, block := range strings.Split(string(src), "```cost\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		lines := strings.Split(strings.TrimSpace(block), "\n")
		for i := 0; i+1 < len(lines); i += 2 {
			n++
			p, f := text.Parse([]byte(lines[i]), text.Options{Tool: "tool"})
			must.NoFault(t, f)
			r := cost.Of(p.Term, cost.Options{Tool: true, Source: p.Source})
			got := string(r.Class) + ": " + r.Steps.Explain()
			if !r.Steps.Finite() {
				got = fmt.Sprintf("%s at %d:%d: %s", r.Class, r.Why[0].Line, r.Why[0].Col, r.Why[0].Message)
			}
			if got != lines[i+1] {
				t.Errorf("%s\n%s\nwant\n%s", lines[i], got, lines[i+1])
			}
		}
	}
	if n < 5 {
		t.Errorf("the README has %d bounds", n)
	}
}
