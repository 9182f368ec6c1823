package core_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/check/cost"
	"github.com/mcp-pif/mcp-pif/core/check/normal"
	"github.com/mcp-pif/mcp-pif/core/eval"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/prim/gen"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// asking is a random program that says something of code.
func asking(d gen.Draw) trial {
	o := gen.Options{Wrong: []int{0, 10}[d(2)], Effects: d(3) == 0, Records: true, Tool: d(3) == 0}
	code := func() string {
		if d(3) == 0 {
			return gen.Term(d, 1+d(40), o)
		}
		f, _ := gen.Function(d, 1+d(60), o)
		return f
	}
	a := code()
	b := a
	if d(3) > 0 {
		b = code()
	}
	quote := func(code string) string { return `{"quote":` + code + `}` }
	tr := trial{input: "null", budgets: core.Budgets{Steps: 2_000_000, Memory: 32 << 20, Depth: 200}}
	switch d(5) {
	case 4:
		tr.code = `{"cost":` + quote(a) + `}`
	case 0:
		tr.code = `{"infer":` + quote(a) + `}`
	case 1:
		tr.code = `{"normalize":` + quote(a) + `}`
	case 2:
		tr.code = `{"equivalent":[` + quote(a) + `,` + quote(b) + `]}`
	default:
		tr.code = `{"equivalent":[` + quote(a) + `,{"get":[{"normalize":` + quote(b) + `},"code"]}]}`
	}
	if d(4) == 0 {
		tr.budgets.Steps = uint64(1 + d(20_000))
	}
	if d(3) == 0 {
		tr.slice = uint64(1 + d(500))
	}
	return tr
}

// TestAnalysesAgree: what is said of code is the same on both evaluators, with
// the same steps, whatever the budget.
func TestAnalysesAgree(t *testing.T) {
	n := must.Drawn(150, 20_000)
	seen := tally{}
	for seed := range n {
		r := rand.New(rand.NewPCG(uint64(seed), 21))
		tr := asking(r.IntN)
		_, o := tr.compare(t)
		switch {
		case o.Kind != "":
			seen[string(o.Kind)]++
		default:
			for _, answer := range []string{`"equal"`, `"different"`, `"unknown"`, `"sound":true`, `"normal":true`, `"normal":false`} {
				if strings.Contains(string(o.Result), answer) {
					seen[answer]++
				}
			}
		}
	}
	seen.shows(t, n/100, `"equal"`, `"different"`, `"unknown"`, `"sound":true`, `"normal":true`, `"normal":false`, "out_of_fuel")
}

// TestAnalysesRepeat: what is said of code takes the same steps each time, whatever the
// order of a Go map.
func TestAnalysesRepeat(t *testing.T) {
	for _, seed := range []uint64{6731, 1, 2, 3} {
		steps := map[uint64]int{}
		for range 30 {
			r := rand.New(rand.NewPCG(seed, 21))
			tr := asking(r.IntN)
			got, _, _ := tr.onEval(t)
			steps[got.Steps]++
		}
		if len(steps) != 1 {
			t.Errorf("seed %d: %v, want the same steps each time", seed, steps)
		}
	}
}

// analysing is programs that say something of code, of all sorts.
var analysing = map[string]string{
	"infer":      `infer('{(f, xs) => map(f, xs)})`,
	"cost":       `cost('{xs => map(x => x * 2, sort(xs))})`,
	"normalize":  `normalize('{x => let y = x + 1 in map(z => z * y, [y, y])})`,
	"different":  `equivalent('{x => x * x}, '{x => x + x})`,
	"unknown":    `equivalent('{x => x + x + x}, '{x => x * 3})`,
	"as values":  `equivalent('{range(0, 3)}, '{[0, 1, 2]})`,
	"with tools": `equivalent('{n => if n <= 0 then 0 else self(n - 1)}, '{n => 0})`,
}

// TestAnalysesBudget: an analysis takes the same steps whatever there are, and
// gives the same; with one less the program is out of fuel.
func TestAnalysesBudget(t *testing.T) {
	for name, code := range analysing {
		t.Run(name, func(t *testing.T) {
			p := program{code: code, text: true}
			want := p.onEval(t)
			if want.fault != nil {
				t.Fatal(want.fault)
			}
			for less := range uint64(3) {
				p.budgets.Steps = want.steps + 1 - less
				p.onBoth(t, func(t *testing.T, got ending) {
					if less < 2 && (got.fault != nil || got.result != want.result || got.steps != want.steps) {
						t.Errorf("with %d steps: %v, %d steps; want %v, %d", p.budgets.Steps, got, got.steps, want, want.steps)
					}
					if less == 2 && (got.fault == nil || got.fault.Kind != fault.OutOfFuel || got.steps != p.budgets.Steps) {
						t.Errorf("with %d steps, one less than needed: %v, %d steps", p.budgets.Steps, got, got.steps)
					}
				})
			}
			// Anything less is refused, too, and at once: work isn't done on credit.
			for steps := uint64(1); steps < want.steps; steps += 1 + want.steps/23 {
				p.budgets.Steps = steps
				if got := p.onEval(t); got.fault == nil || got.fault.Kind != fault.OutOfFuel || got.steps != steps {
					t.Errorf("with %d steps: %v, %d steps", steps, got, got.steps)
				}
			}
		})
	}
}

// TestAnalysesMemory: what an analysis builds counts, can't be had where there is
// no room, and is given back.
func TestAnalysesMemory(t *testing.T) {
	before := eval.PoolHeld()
	for name, code := range analysing {
		p := program{code: code, text: true}
		want := p.onEval(t)
		few, enough := false, false
		for memory := int64(16 << 10); memory <= 32<<20; memory *= 2 {
			p.budgets.Memory = memory
			got := p.onEval(t)
			switch {
			case got.fault == nil && got.result == want.result:
				enough = true
			case got.fault != nil && got.fault.Kind == fault.OutOfMemory && !enough:
				few = true
			default:
				t.Errorf("%s with %d bytes: %v", name, memory, got)
			}
		}
		if !few || !enough {
			t.Errorf("%s: too little memory was never too little, or enough never enough (%v, %v)", name, few, enough)
		}
		// It is there again for the next one.
		again := program{code: "fold(p => fst(p) + length(to_text(has(" + code + ", \"x\"))), 0, range(0, 30))", text: true}
		for again.budgets.Memory = 64 << 10; again.onEval(t).fault != nil; again.budgets.Memory *= 2 {
			if again.budgets.Memory > 8<<20 {
				t.Errorf("%s: thirty times takes more than %d bytes", name, again.budgets.Memory)
				break
			}
		}
		// A program can't catch that.
		p = program{code: "try(" + code + ")", text: true, budgets: core.Budgets{Memory: 16 << 10}}
		if got := p.onEval(t); got.fault == nil || got.fault.Kind != fault.OutOfMemory {
			t.Errorf("%s: caught: %v", name, got)
		}
	}
	// A machine that waits holds no more than it needs.
	p := program{code: "x => let a = " + analysing["unknown"] + " in !kv.put(a.answer)", text: true, effect: func(int, string, value.Value) (value.Value, *fault.Fault) {
		if held := eval.PoolHeld() - before; held > 1<<20 {
			t.Errorf("a machine that has made an analysis holds %d bytes of the pool", held)
		}
		return value.Unit{}, nil
	}}
	if got := p.onEval(t); got.fault != nil {
		t.Error(got.fault)
	}
	if after := eval.PoolHeld(); after != before {
		t.Errorf("machines hold %d bytes of the pool, before it were %d", after, before)
	}
}

// TestAnalysesPool: where the machines of the process have no room, neither has
// an analysis, nor a run that it makes: it says so, and never that it doesn't know.
func TestAnalysesPool(t *testing.T) {
	defer core.SetPool(eval.DefaultPool)
	programs := maps.Clone(analysing)
	text := strings.Repeat("a", 400)
	programs["runs that need memory"] = `equivalent('{x => length(replace(replace("` + text[:100] + `", "a", "` + text + `"), "b", to_text(x)))}, '{x => 1 + length(replace(replace("` + text[:100] + `", "a", "` + text + `"), "b", to_text(x)))})`
	for name, code := range programs {
		p := program{code: code, text: true}
		want := p.onEval(t)
		if want.fault != nil {
			t.Fatal(want.fault)
		}
		refused := false
		for pool := int64(0); pool <= 5<<20; pool += 60_000 {
			core.SetPool(pool)
			got := p.onEval(t)
			switch {
			case got.fault == nil && got.result == want.result:
			case got.fault != nil && got.fault.Kind == fault.Overloaded:
				refused = true
			default:
				t.Errorf("%s with a pool of %d bytes: %v", name, pool, got)
			}
		}
		if !refused {
			t.Errorf("%s: no pool was too small", name)
		}
		core.SetPool(eval.DefaultPool)
	}
}

// TestAnalysesPay: for code that is made to be hard, an analysis holds as much
// memory as it makes garbage and all, or half of that, and ends.
func TestAnalysesPay(t *testing.T) {
	for name, src := range hard() {
		p, f := parse.Code([]byte(src), parse.Options{Tool: "t"})
		if f != nil {
			t.Fatal(name, f)
		}
		code := &value.Code{Term: p.Term, Source: p.Source}
		for _, row := range []string{"infer", "cost", "normalize"} {
			_, r, _ := prim.Lookup(row)
			held := int64(0)
			m := &prim.Meter{Left: core.DefaultSteps, Hold: func(bytes int64) *fault.Fault {
				if held += bytes; held > core.DefaultMemory {
					return prim.OutOfMemory(core.DefaultMemory)
				}
				return nil
			}}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if v, f := r.Analysis([]value.Value{code}, m); (v == nil) == (f == nil) && m.Used() <= m.Left {
				t.Errorf("%s of %s gives %v, %v", row, name, v, f)
			}
			runtime.ReadMemStats(&after)
			if made := int64(after.TotalAlloc - before.TotalAlloc); made > 2*held+1<<20 {
				t.Errorf("%s of %s makes %d bytes, and holds %d", row, name, made, held)
			}
			if made := after.Mallocs - before.Mallocs; made > m.Used() {
				t.Errorf("%s of %s makes %d objects, and takes %d steps", row, name, made, m.Used())
			}
		}
	}
}

// hard is code that is made to be hard.
func hard() map[string]string {
	around := func(n int, before, inner, after string) string {
		return strings.Repeat(before, n) + inner + strings.Repeat(after, n)
	}
	var twice, wide, keys strings.Builder
	for i := range 40 {
		fmt.Fprintf(&twice, `["f%d",{"lam":"x","body":{"app":[{"var":"f%d"},{"app":[{"var":"f%[2]d"},{"var":"x"}]}]}}],`, i+1, i)
		fmt.Fprintf(&keys, `[{"eq":[{"snd":{"var":"p"}},%d]},{"put":[{"fst":{"var":"p"}},"k%[1]d",{"fst":{"var":"p"}}]}],`, i)
	}
	for i := range 1_200 {
		fmt.Fprintf(&wide, `"k%06d":%d,`, i, i)
	}
	cut := func(b *strings.Builder) string { return strings.TrimSuffix(b.String(), ",") }
	record, ones := `{"record":{`+cut(&wide)+`}}`, "["+strings.Repeat("1,", 3_999)+"1]"
	folding := func(body string) string {
		return `{"lam":"x","body":{"let":[["r",` + record + `]],"in":{"fold":[{"lam":"p","body":` + body + `},[],` + ones + `]}}}`
	}
	return map[string]string{
		"functions twice over": `{"let":[["f0",{"lam":"x","body":{"add":[{"var":"x"},1]}}],` + cut(&twice) + `],"in":{"app":[{"var":"f40"},1]}}`,
		"any of many keys":     `{"lam":"xs","body":{"fold":[{"lam":"p","body":{"cond":[` + cut(&keys) + `],"else":{"fst":{"var":"p"}}}},{"record":{}},{"var":"xs"}]}}`,
		"omega":                `{"app":[{"lam":"x","body":{"app":[{"var":"x"},{"var":"x"}]}},{"lam":"x","body":{"app":[{"var":"x"},{"var":"x"}]}}]}`,
		"deep functions":       around(9_000, `{"lam":"x","body":`, `{"var":"x"}`, `}`),
		"deep lists":           around(9_900, `[`, `1`, `]`),
		"deep tries":           around(9_000, `{"try":`, `1`, `}`),
		"deep sorts":           around(1_500, `{"sort":`, `[1]`, `}`),
		"puts":                 folding(`{"cons":[{"put":[{"var":"r"},"z",{"snd":{"var":"p"}}]},{"fst":{"var":"p"}}]}`),
		"dels":                 folding(`{"cons":[{"del":[{"var":"r"},"k000001"]},{"fst":{"var":"p"}}]}`),
		"keys":                 folding(`{"cons":[{"keys":{"var":"r"}},{"fst":{"var":"p"}}]}`),
		"push":                 folding(`{"push":[{"fst":{"var":"p"}},{"var":"x"}]}`),
		"texts":                `{"lam":"x","body":{"fold":[{"lam":"p","body":{"cons":[{"concat":["` + strings.Repeat("a", 15_000) + `",{"to_text":{"snd":{"var":"p"}}}]},{"fst":{"var":"p"}}]}},[],{"range":[0,1000]}]}}`,
		"long keys":            `{"lam":"x","body":[{"get":[{"var":"x"},"` + strings.Repeat("q", 90_000) + `"]},{"get":[{"var":"x"},"` + strings.Repeat("r", 90_000) + `"]}]}`,
	}
}

// TestSpend: a check and a normalisation that are told to stop do, and are asked
// no more; while they are not they come to the same as without being asked.
func TestSpend(t *testing.T) {
	for name, src := range hard() {
		p, f := parse.Code([]byte(src), parse.Options{Tool: "t"})
		if f != nil {
			t.Fatal(name, f)
		}
		for what, do := range map[string]func(spend func(int) bool) string{
			"infer": func(spend func(int) bool) string {
				r := check.Infer(p.Term, nil, check.Env{Tool: "t"}, check.Budget{Steps: 20_000, Spend: spend})
				return fmt.Sprint(r.Type, len(r.Dynamic), r.Steps)
			},
			"cost": func(spend func(int) bool) string {
				r := cost.Of(p.Term, cost.Options{Tool: true, Steps: 20_000, Spend: spend})
				return fmt.Sprint(r.Steps, r.Memory, r.Why)
			},
			"normalize": func(spend func(int) bool) string {
				form, err := normal.Of(p.Term, normal.Options{Tool: true, Steps: 20_000, Spend: spend})
				return fmt.Sprint(form.Hash, form.Steps, err)
			},
		} {
			told, most := 0, 1<<30
			spend := func(steps int) bool { told += steps; return told <= most }
			if with, without := do(spend), do(nil); with != without {
				t.Errorf("%s of %s gives %s, and %s without being asked", what, name, with, without)
			}
			all := told
			for _, most = range []int{0, all / 2, all * 9 / 10} {
				if told = 0; all < 1_000 {
					break
				}
				do(spend)
				if told > most+64 {
					t.Errorf("%s of %s goes on: it may take %d steps, and tells of %d", what, name, most, told)
				}
			}
		}
	}
}

// TestAnalysesRuns: the runs that show a difference are bounded, ask nobody, and
// keep no more of what they ask than they may have.
func TestAnalysesRuns(t *testing.T) {
	many := "[" + strings.Repeat("1,", 499) + "1]"
	for name, code := range map[string]string{
		"asks often":        `equivalent('{x => fold(p => !kv.put(snd(p)), 0, ` + many + `)}, '{x => fold(p => !kv.put(snd(p) + 1), 0, ` + many + `)})`,
		"asks with much":    `equivalent('{x => let s = join(map(y => "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", range(0, 60)), "bbbbbbbbbbbbbbbbbbb") in fold(p => !kv.put(s), 0, ` + many + `)}, '{x => 1})`,
		"never ends":        `equivalent('{x => let f = g => g(g) in f(f)}, '{x => 1})`,
		"asks itself":       `let e = '{x => equivalent('{y => y + x}, '{y => y * x}).answer} in equivalent(e, '{x => "unknown"})`,
		"asks many times":   `fold(p => get(equivalent('{x => x + 1}, '{x => x + 2}), "left"), "", range(0, 20))`,
		"deep in quotes":    `equivalent('{x => equivalent('{x => equivalent('{x => 1}, '{x => x})}, '{x => 2})}, '{x => 3})`,
		"deep recursions":   `equivalent('{n => 1 + self(n)}, '{n => 2 + self(n)})`,
		"inside each other": `equivalent('{equivalent('{1}, '{1}).answer}, '{"equal"})`,
		"more by branches":  `equivalent('{x => par(!a.b(1), !a.b(2))}, '{x => [!a.b(1), !a.b(2)]})`,
	} {
		t.Run(name, func(t *testing.T) {
			p := program{code: code, text: true, effect: func(int, string, value.Value) (value.Value, *fault.Fault) {
				t.Error("an analysis asks the host")
				return value.Unit{}, nil
			}}
			first := p.onEval(t)
			if first.fault != nil {
				t.Fatal(first.fault)
			}
			if name == "inside each other" && !strings.Contains(first.result, `"unknown"`) {
				t.Errorf("a run that shows a difference answered the same question: %s", first.result)
			}
			p.onBoth(t, func(t *testing.T, got ending) {
				if got.fault != nil || got.result != first.result || got.steps != first.steps {
					t.Errorf("%v in %d steps, before %v in %d", got, got.steps, first, first.steps)
				}
			})
		})
	}
}
