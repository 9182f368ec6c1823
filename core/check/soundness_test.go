package check_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/internal/vectors"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/naive"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/prim/gen"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

func code(t testing.TB, tool, src string) *parse.Parsed {
	t.Helper()
	p, f := parse.Code([]byte(src), parse.Options{Tool: tool})
	if f != nil {
		t.Fatalf("%v\n%s", f, src)
	}
	return p
}

// world is the tools of package gen with what is known of them, and operations
// of which one is declared.
type world struct {
	vectors.Library
	callees map[string]check.Callee
}

func newWorld(t testing.TB) *world {
	w := &world{vectors.Library{Owner: "program", Code: map[string]value.Tool{}}, map[string]check.Callee{}}
	for name, src := range gen.Tools {
		p := code(t, name, src)
		p.Source.In = "tool:" + name
		w.Code[name] = value.Tool{Term: p.Term, Source: p.Source, Params: prim.Parameters(p.Term), Takes: check.Takes(name, p.Term)}
	}
	// A tool is known when those that it calls are: none calls more than two deep.
	for range 3 {
		for name, tool := range w.Code {
			r := check.Infer(tool.Term, tool.Source, w.env(name), check.Budget{})
			w.callees[name] = check.Callee{Type: r.Type, Params: r.Params, Effects: r.Effects, Sound: r.Sound()}
		}
	}
	return w
}

func (w *world) env(tool string) check.Env {
	return check.Env{
		Tool: tool, Run: core.RunConstant,
		Code:   func(name string) (term.Term, bool) { c, ok := w.Code[name]; return c.Term, ok },
		Callee: func(name string) (check.Callee, bool) { c, ok := w.callees[name]; return c, ok },
		Result: func(op string) (*check.Type, bool) {
			return check.Pair(check.String, check.Int), op == "fs.read"
		},
	}
}

// trial is a program with its report, and what is seen when it runs.
type trial struct {
	w      *world
	tool   string
	src    string
	parsed *parse.Parsed
	report *check.Report

	asked   []value.Request
	terms   map[term.Term]bool // of the program
	visited map[int]bool
}

func (w *world) trial(t testing.TB, tool, src string) *trial {
	p := code(t, tool, src)
	tr := &trial{
		w: w, tool: tool, src: src, parsed: p, report: check.Infer(p.Term, p.Source, w.env(tool), check.Budget{}),
		visited: map[int]bool{}, terms: map[term.Term]bool{},
	}
	var note func(t term.Term) bool
	note = func(t term.Term) bool {
		tr.terms[t] = true
		return term.Children(t, note)
	}
	note(p.Term)
	return tr
}

func (tr *trial) run(t testing.TB, input string) (value.Value, *fault.Fault) {
	var in *parse.Parsed
	if input != "" {
		var f *fault.Fault
		if in, f = parse.Input([]byte(input), parse.Term); f != nil {
			t.Fatalf("%v\n%s", f, input)
		}
	}
	v, _, f := naive.Run(naive.Config{
		Term: tr.parsed.Term, Source: tr.parsed.Source, Tool: tr.tool, Input: in, Tools: tr.w.Library,
		Budgets: naive.Budgets{Steps: 20_000, Memory: 4 << 20, Depth: 200},
		Handler: func(round []value.Request) []value.Answer {
			answers := make([]value.Answer, len(round))
			for i, r := range round {
				tr.asked = append(tr.asked, r)
				switch {
				case !vectors.Permits(r.With, r.Op):
					answers[i].Fault = fault.New(fault.Denied, "an eval around doesn't permit it")
				case len(tr.asked)%4 == 3:
					answers[i].Fault = fault.New(fault.EffectFailed, "every fourth effect fails")
					answers[i].Fault.Raised = value.Str("data")
				default:
					answers[i].Value = &value.Pair{First: value.Str(r.Op), Second: value.NewInt(int64(i))}
				}
			}
			return answers
		},
		Visit: func(s naive.Scene) bool {
			if tr.terms[s.Term] {
				tr.visited[s.Term.Pos()] = true
			}
			return true
		},
	})
	return v, f
}

// further gives a result that is a function what it takes, as long as it is
// one: the program applied to several inputs. ok is false where there is none.
func (tr *trial) further(t testing.TB, s *sampler, input string) (next *trial, typ *check.Type, ok bool) {
	typ = tr.report.Type.Result
	if tr.tool != "" || !typ.IsFunction() {
		return nil, nil, false
	}
	src := `{"app":[` + tr.src + "," + input
	for typ.IsFunction() {
		more, ok := s.term(typ.Param)
		if !ok {
			return nil, nil, false
		}
		src, typ = src+","+more, typ.Result
	}
	if typ.Kinds&prim.KindFunction != 0 {
		return nil, nil, false
	}
	next = tr.w.trial(t, "", src+"]}")
	next.report = tr.report
	return next, typ, true
}

// String shows the trial where a test fails.
func (tr *trial) String() string {
	b, _ := json.MarshalIndent(tr.report, "", " ")
	return fmt.Sprintf("tool %q\n%s\n%s", tr.tool, tr.src, b)
}

// generated makes a program of choices.
func (w *world) generated(t testing.TB, d gen.Draw) *trial {
	o := gen.Options{Wrong: []int{0, 0, 10}[d(3)], Effects: d(3) == 0, Records: d(3) > 0, Tool: d(2) == 0}
	tool := ""
	if o.Tool {
		tool = "tool"
	}
	size := 1 + d(60)
	if d(3) == 0 {
		return w.trial(t, tool, gen.Term(d, size, o))
	}
	src, _ := gen.Function(d, size, o)
	return w.trial(t, tool, src)
}

// TestSound: a program that types without a dynamic place and without a
// diagnostic never fails with type_error or unbound, on any input of its type,
// and what it gives is of its type.
func TestSound(t *testing.T) {
	w := newWorld(t)
	n := must.Drawn(600, 100_000)
	sound, ran, functions := 0, 0, 0
	for seed := range n {
		r := rand.New(rand.NewPCG(uint64(seed), 21))
		tr := w.generated(t, r.IntN)
		if !tr.report.Sound() {
			continue
		}
		sound++
		for range 3 {
			tr, typ, input := tr, tr.report.Type, ""
			if typ.IsFunction() {
				s := sampler{draw: r.IntN, deep: 3}
				var ok bool
				if input, ok = s.term(typ.Param); !ok {
					break
				}
				functions++
				if next, result, ok := tr.further(t, &s, input); ok {
					tr, typ, input = next, result, ""
				} else {
					typ = typ.Result
				}
			} else if typ.Kinds&prim.KindFunction != 0 {
				break // which input it takes depends on what comes of the code
			}
			ran++
			v, f := tr.run(t, input)
			if f != nil {
				if f.In != "input" && (f.Kind == fault.TypeError || f.Kind == fault.Unbound) {
					t.Fatalf("seed %d: %v\ninput %s\n%s", seed, f, input, tr)
				}
				continue
			}
			if why := misfit(v, typ, map[string]*check.Type{}); why != "" {
				t.Fatalf("seed %d: %s\n%s\ninput %s\n%s", seed, why, typ, input, tr)
			}
		}
	}
	t.Logf("of %d programs %d type without a dynamic place; %d runs, %d of them of functions", n, sound, ran, functions)
	if sound < n/4 || functions < n/4 {
		t.Error("too few: the test shows little")
	}
}

// TestEffectsInRow: every effect that is asked for was in the report, and one
// that was permitted was not said to be inert.
func TestEffectsInRow(t *testing.T) {
	w := newWorld(t)
	n := must.Drawn(600, 100_000)
	asked, denied, exact := 0, 0, 0
	for seed := range n {
		r := rand.New(rand.NewPCG(uint64(seed), 22))
		tr := w.generated(t, r.IntN)
		input := "null"
		if typ := tr.report.Type; typ.IsFunction() {
			s := sampler{draw: r.IntN, deep: 3}
			input, _ = s.term(typ.Param)
		}
		tr.run(t, input)
		if !tr.report.Open {
			exact++
		}
		for _, q := range tr.asked {
			asked++
			permitted := vectors.Permits(q.With, q.Op)
			if !permitted {
				denied++
			}
			if q.Tools == nil {
				continue // code in an input, which has no authority
			}
			if !slices.ContainsFunc(tr.report.Effects, func(e check.Effect) bool {
				return (e.Op == q.Op || e.Op == "*") && (!e.Inert || !permitted)
			}) {
				t.Fatalf("seed %d: %s with %q at %s of %s was asked for\ninput %s\n%s", seed, q.Op, q.With, q.At, q.Where, input, tr)
			}
			if permitted && !tr.report.Open && !slices.ContainsFunc(tr.report.Effects, func(e check.Effect) bool { return e.May(q.Op) }) {
				t.Fatalf("seed %d: %s was to be absent\ninput %s\n%s", seed, q.Op, input, tr)
			}
		}
	}
	t.Logf("%d requests, %d of them denied; of %d programs the row is closed", asked, denied, exact)
	if asked < n/10 || denied < n/100 || exact < n/2 {
		t.Error("too few: the test shows little")
	}
}

// TestDiagnosticsAreCertain: a run that evaluates a place with a diagnostic
// doesn't come to an end with a value.
func TestDiagnosticsAreCertain(t *testing.T) {
	w := newWorld(t)
	n := must.Drawn(600, 100_000)
	with, met := 0, 0
	for seed := range n {
		r := rand.New(rand.NewPCG(uint64(seed), 23))
		o := gen.Options{Wrong: 40, Records: true, Tool: r.IntN(2) == 0, Effects: r.IntN(3) == 0}
		tool := ""
		if o.Tool {
			tool = "tool"
		}
		src, input := gen.Function(r.IntN, 1+r.IntN(40), o)
		if r.IntN(3) == 0 {
			src, input = gen.Term(r.IntN, 1+r.IntN(40), o), ""
		}
		tr := w.trial(t, tool, src)
		if len(tr.report.Diagnostics) == 0 || strings.Contains(src, `"try"`) {
			continue
		}
		with++
		places := map[fault.Pointer]bool{}
		for _, d := range tr.report.Diagnostics {
			places[d.At] = true
		}
		_, f := tr.run(t, input)
		var at []int
		for pos := range tr.visited {
			at = append(at, pos)
		}
		reached := ""
		for i, p := range parse.LocateAll(tr.parsed.Source, tr.parsed.Term.Pos(), at) {
			if places[p] && tr.visited[at[i]] {
				reached = string(p) + " "
			}
		}
		if reached == "" {
			continue
		}
		met++
		if f == nil {
			t.Fatalf("seed %d: %s was evaluated and the run succeeded\ninput %s\n%s", seed, reached, input, tr)
		}
	}
	t.Logf("of %d programs %d have a diagnostic and no try, and %d came to one", n, with, met)
	if met < n/10 {
		t.Error("too few: the test shows little")
	}
}

// TestFailsByConstants: a row that is given constants and a caller's value fails by them only where it does so with
// whatever the caller gives.
func TestFailsByConstants(t *testing.T) {
	t.Parallel()
	for src, fails := range map[string]bool{
		`r => update(r, "qty", n => n + 1)`:              false,
		`(rows, f) => map(r => update(r, "n", f), rows)`: false,
		`f => update({a: 1}, "b", f)`:                    true,
		`(s, pattern) => re_replace(s, pattern, "$1")`:   false,
		`s => re_replace(s, "a", "$1")`:                  true,
		`r => get(r, "qty")`:                             false,
		`xs => nth(xs, -1)`:                              true,
		`xs => nth(xs, 7)`:                               false,
	} {
		p, err := core.CompileText("t", []byte(src))
		must.NoError(t, err)
		r := check.Infer(p.Term(), p.Tool().Source, check.Env{Tool: "t", Run: core.RunConstant}, check.Budget{})
		if broken := r.Broken(); len(broken) > 0 != fails {
			t.Errorf("%s has the broken places %v", src, broken)
		}
	}
}

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
			must.NoFault(t, f)
			for _, b := range []check.Budget{{}, {Steps: 1_000}, {Steps: 1}} {
				r := check.Infer(p.Term, p.Source, check.Env{Tool: "t"}, b)
				if limit := max(b.Steps, 1); b.Steps != 0 && r.Steps > limit {
					t.Errorf("%d steps of %d", r.Steps, limit)
				}
				if b.Steps == 1 && (len(r.Dynamic) != 1 || r.Dynamic[0].Reason != check.ReasonComplex || !strings.Contains(r.Type.String(), "?")) {
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

// TestConstantsBounded: constants whose sizes double from let to let are evaluated until the bound of all of them is
// used up, and no further, however large a size is.
func TestConstantsBounded(t *testing.T) {
	runs := func(lets int) (n int) {
		src := `0`
		for range lets {
			src = `{"app":[{"lam":"x","body":` + src + `},{"pair":[{"var":"x"},{"var":"x"}]}]}`
		}
		p := code(t, "", `{"app":[{"lam":"x","body":`+src+`},0]}`)
		check.Infer(p.Term, p.Source, check.Env{Run: func(term.Term) *fault.Fault { n++; return nil }}, check.Budget{})
		return n
	}
	if few, many := runs(30), runs(150); few < 10 || few != many {
		t.Errorf("%d are evaluated of 30, and %d of 150", few, many)
	}
}

// TestSameTwice: one program has one report, to the byte.
func TestSameTwice(t *testing.T) {
	for name, src := range worst() {
		p, f := parse.Code([]byte(src), parse.Options{Tool: "t"})
		must.NoFault(t, f)
		var first []byte
		for range 3 {
			b, err := json.Marshal(check.Infer(p.Term, p.Source, check.Env{Tool: "t"}, check.Budget{Steps: 50_000}))
			must.NoError(t, err)
			if first != nil && string(first) != string(b) {
				t.Errorf("%s:\n%.500s\n%.500s", name, first, b)
			}
			first = b
		}
	}
}
