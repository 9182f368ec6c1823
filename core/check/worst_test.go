package check_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/parse"
)

func repeated(n int, before, inner, after string) string {
	return strings.Repeat(before, n) + inner + strings.Repeat(after, n)
}

// worst is programs that are made to be hard: each has to end within the
// budget, whatever comes of it.
func worst() map[string]string {
	var twice, keys, pairs, selfs strings.Builder
	for i := range 40 {
		fmt.Fprintf(&twice, `["f%d",{"lam":"x","body":{"app":[{"var":"f%d"},{"app":[{"var":"f%[2]d"},{"var":"x"}]}]}}],`, i+1, i)
		fmt.Fprintf(&pairs, `["p%d",{"lam":"z","body":{"pair":[{"app":[{"var":"p%d"},{"var":"z"}]},{"app":[{"var":"p%[2]d"},{"var":"z"}]}]}}],`, i+1, i)
		fmt.Fprintf(&keys, `[{"eq":[{"snd":{"var":"p"}},%d]},{"put":[{"fst":{"var":"p"}},"k%[1]d",{"fst":{"var":"p"}}]}],`, i)
		fmt.Fprintf(&selfs, `{"app":[{"self":true},{"nth":[{"var":"x"},%d]}]},`, i)
	}
	cut := func(b *strings.Builder) string { return strings.TrimSuffix(b.String(), ",") }
	return map[string]string{
		"functions of functions twice over": `{"let":[["f0",{"lam":"x","body":{"add":[{"var":"x"},1]}}],` + cut(&twice) + `],"in":{"app":[{"var":"f40"},1]}}`,
		"pairs of pairs":                    `{"let":[["p0",{"lam":"z","body":{"var":"z"}}],` + cut(&pairs) + `],"in":{"app":[{"var":"p40"},1]}}`,
		"records with any of many keys":     `{"lam":"xs","body":{"fold":[{"lam":"p","body":{"cond":[` + cut(&keys) + `],"else":{"fst":{"var":"p"}}}},{"record":{}},{"var":"xs"}]}}`,
		"self on parts of parts":            `{"lam":"x","body":[` + cut(&selfs) + `]}`,
		"self on what it gives":             `{"lam":"x","body":{"app":[{"self":true},{"pair":[{"app":[{"self":true},{"var":"x"}]},{"fst":{"var":"x"}}]}]}}`,
		"code that evaluates itself":        `{"lam":"q","body":{"let":[["q",{"quote":{"eval":{"var":"q"}}}]],"in":{"eval":{"var":"q"}}}}`,
		"omega":                             `{"app":[{"lam":"x","body":{"app":[{"var":"x"},{"var":"x"}]}},{"lam":"x","body":{"app":[{"var":"x"},{"var":"x"}]}}]}`,
		"deep operands":                     repeated(4_900, `{"add":[1,`, `1`, `]}`),
		"deep functions":                    repeated(9_000, `{"lam":"x","body":`, `{"var":"x"}`, `}`),
		"deep conditionals":                 repeated(3_300, `{"if":{"cond":true,"then":`, `1`, `,"else":2}}`),
		"deep lists":                        repeated(9_900, `[`, `1`, `]`),
		"deep lets":                         repeated(3_000, `{"app":[{"lam":"x","body":`, `{"var":"x"}`, `},1]}`),
		"deep evals":                        repeated(4_900, `{"eval":{"quote":`, `1`, `}}`),
		"deep tries":                        repeated(9_000, `{"try":`, `1`, `}`),
		"deep parts":                        `{"lam":"x","body":` + repeated(9_000, `{"fst":`, `{"var":"x"}`, `}`) + `}`,
		"deep maps":                         repeated(1_500, `{"map":[{"lam":"x","body":{"var":"x"}},`, `[1]`, `]}`),
		"deep sorts":                        repeated(1_500, `{"sort":`, `[1]`, `}`),
	}
}

// TestWorst: what is made to be hard ends within the budget, and what is beyond
// it is said to be dynamic.
func TestWorst(t *testing.T) {
	for name, src := range worst() {
		t.Run(name, func(t *testing.T) {
			p, f := parse.Code([]byte(src), parse.Options{Tool: "t"})
			if f != nil {
				t.Fatal(f)
			}
			for _, b := range []check.Budget{{}, {Steps: 1_000}, {Steps: 1}} {
				r := check.Infer(p.Term, p.Source, check.Env{Tool: "t"}, b)
				if limit := max(b.Steps, 1); b.Steps != 0 && r.Steps > limit {
					t.Errorf("%d steps of %d", r.Steps, limit)
				}
				if b.Steps == 1 && (len(r.Dynamic) != 1 || r.Dynamic[0].Reason != check.ReasonComplex || r.Type.Known()) {
					t.Errorf("with no budget the type is %s, and dynamic is %v", r.Type, r.Dynamic)
				}
				if s := r.Type.String(); len(s) > 1<<20 {
					t.Errorf("a type of %d bytes", len(s))
				} else if again, err := check.ParseType(s); err != nil || again.String() != s {
					t.Errorf("%.200s is read back as %.200v (%v)", s, again, err)
				}
				check.InputSchema(r)
				check.OutputSchema(r)
			}
		})
	}
}

// TestSameTwice: one program has one report, to the byte.
func TestSameTwice(t *testing.T) {
	for name, src := range worst() {
		p, f := parse.Code([]byte(src), parse.Options{Tool: "t"})
		if f != nil {
			t.Fatal(f)
		}
		var first []byte
		for range 3 {
			b, err := json.Marshal(check.Infer(p.Term, p.Source, check.Env{Tool: "t"}, check.Budget{Steps: 50_000}))
			if err != nil {
				t.Fatal(err)
			}
			if first != nil && string(first) != string(b) {
				t.Errorf("%s:\n%.500s\n%.500s", name, first, b)
			}
			first = b
		}
	}
}
