package cost_test

import (
	"cmp"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/check/cost"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/internal/vectors"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/naive"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/prim/gen"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

const runSteps = 300_000

// A trial is a program with what it is given.
type trial struct {
	code   string
	tool   string
	inputs []string          // as data
	tools  map[string]string // that it may call besides those of gen
	steps  uint64            // that it may take; 0: runSteps
}

// datum is the value of JSON that is data.
func datum(t testing.TB, data string) (value.Value, bool) {
	t.Helper()
	in, f := parse.Input([]byte(data), parse.Data)
	if f != nil {
		return nil, false
	}
	v, _, f := naive.Run(naive.Config{Term: in.Term, Source: in.Source})
	return v, f == nil
}

// check runs a trial and holds what it took against the bounds. It reports
// whether there were bounds.
func (tr trial) check(t testing.TB) (report cost.Report, bounded bool) {
	t.Helper()
	p, err := tr.compile()
	if err != nil {
		return report, false
	}
	report = cost.Of(p.Term(), cost.Options{Tool: tr.tool != "", Source: p.Tool().Source, Callee: tr.callee(t)})
	if !report.Steps.Finite() {
		if len(report.Why) == 0 || !report.Why[0].Unbounded {
			t.Fatalf("no bound, and no reason: %+v\n%s", report, tr.code)
		}
		return report, false
	}
	sizes := cost.Sizes{}
	for name := range tr.tools {
		sizes["!call:"+name] = []value.Value{value.NewInt(1 << 40)}
	}
	for i, data := range tr.inputs {
		v, ok := datum(t, data)
		if !ok {
			return report, false
		}
		name := "input"
		if i < len(report.Roots) {
			name = report.Roots[i]
		}
		sizes[name] = append(sizes[name], v)
	}
	memory := int64(1 << 30)
	for round := range 2 {
		limit := cmp.Or(tr.steps, runSteps)
		steps, f := tr.run(t, p, sizes, core.Budgets{Steps: limit, Memory: memory, Depth: 1 << 22})
		if round == 0 {
			if f == fault.OutOfFuel {
				steps = limit + 1
			}
			most, ok := report.Steps.Eval(sizes.Of)
			if ok && most.Cmp(new(big.Int).SetUint64(steps)) < 0 {
				t.Fatalf("%d steps, more than %s: %s\n%s\ninputs %s, tool %q", steps, most, report.Steps, tr.show(p), tr.inputs, tr.tool)
			}
			if ok && report.Exact && f == "" && len(tr.inputs) == max(1, len(report.Roots)) && small(report.Steps, sizes) && most.Cmp(new(big.Int).SetUint64(steps)) != 0 {
				t.Fatalf("%d steps, not exactly %s: %s\n%s\ninputs %s, tool %q", steps, most, report.Steps, tr.show(p), tr.inputs, tr.tool)
			}
			bytes, ok := report.Memory.Eval(sizes.Of)
			if !ok || f == fault.OutOfFuel || !bytes.IsInt64() || bytes.Int64() > 1<<27 {
				break
			}
			memory = bytes.Int64()
			continue
		}
		if f == fault.OutOfMemory {
			t.Fatalf("%d bytes are not enough: %s\n%s\ninputs %s", memory, report.Memory, tr.show(p), tr.inputs)
		}
	}
	return report, true
}

// callee is the reports of the tools that a trial may call; nil: there are none.
func (tr trial) callee(t testing.TB) func(string) (cost.Report, bool) {
	if tr.tools == nil {
		return nil
	}
	return func(name string) (cost.Report, bool) {
		p, err := core.CompileText(name, []byte(tr.tools[name]))
		must.NoError(t, err)
		return cost.Of(p.Term(), cost.Options{Tool: true}), true
	}
}

// small reports whether all numbers fit 64 bits.
func small(b cost.Bound, sizes cost.Sizes) bool {
	for _, v := range b.Vars() {
		if v.Measure == cost.Words && sizes.Of(v).Sign() > 0 {
			return false
		}
	}
	return true
}

func (tr trial) show(p *core.Program) string { return tr.code + "\n" + string(p.Text()) }

func (tr trial) compile() (*core.Program, error) {
	compile := func(s string) (*core.Program, error) {
		if tr.tool != "" {
			return core.CompileTool(tr.tool, []byte(s))
		}
		return core.Compile([]byte(s))
	}
	if !strings.HasPrefix(tr.code, "{") && !strings.HasPrefix(tr.code, "[") {
		return core.CompileText(tr.tool, []byte(tr.code))
	}
	return compile(tr.code)
}

// run runs a trial. Of several inputs each is given to what came of the one
// before; the steps are those of all.
func (tr trial) run(t testing.TB, p *core.Program, sizes cost.Sizes, b core.Budgets) (steps uint64, failed fault.Kind) {
	t.Helper()
	if len(tr.inputs) > 1 {
		apply := string(p.Canonical())
		for _, in := range tr.inputs {
			parsed, f := parse.Input([]byte(in), parse.Data)
			must.NoFault(t, f)
			apply = fmt.Sprintf(`{"app":[%s,%s]}`, apply, text.Canonical(parsed.Term))
		}
		q, err := core.Compile([]byte(apply))
		must.NoError(t, err)
		p = q
	}
	data := "null"
	if len(tr.inputs) == 1 {
		data = tr.inputs[0]
	}
	in, err := core.ParseInput([]byte(data), core.InputData)
	must.NoError(t, err)
	tools := library(t)
	for name, code := range tr.tools {
		p, err := core.CompileText(name, []byte(code))
		must.NoError(t, err)
		tools.Code[name] = p.Tool()
	}
	m := p.Start(in, b, tools)
	defer m.Release()
	asked := 0
	for {
		switch m.Run(0) {
		case core.Suspended:
			var answers []core.Answer
			for _, r := range m.Requests() {
				if !vectors.Permits(r.With, r.Op) {
					answers = append(answers, core.Answer{Fault: fault.New(fault.Denied, "no")})
					continue
				}
				v := reply(asked, r.Op)
				asked++
				sizes["!"+r.Op] = append(sizes["!"+r.Op], v)
				answers = append(answers, core.Answer{Value: v})
			}
			m.Resume(answers)
		case core.Failed:
			return m.Steps(), m.Fault().Kind
		default:
			return m.Steps(), ""
		}
	}
}

// reply is what becomes of the i-th effect.
func reply(i int, op string) value.Value {
	switch i % 3 {
	case 0:
		return value.Str(strings.Repeat("a line\n", 30*i+3))
	case 1:
		return value.FromSlice([]value.Value{value.NewInt(int64(i)), value.Str(op), value.Str("x")})
	}
	return &value.Pair{First: value.Str(op), Second: value.NewInt(int64(i))}
}

func library(t testing.TB) vectors.Library {
	l := vectors.Library{Owner: "program", Code: map[string]value.Tool{}}
	for name, code := range gen.Tools {
		p, f := parse.Code([]byte(code), parse.Options{Tool: name})
		must.NoFault(t, f)
		l.Code[name] = value.Tool{Term: p.Term, Source: p.Source, Params: prim.Parameters(p.Term), Takes: check.Takes(name, p.Term)}
	}
	return l
}

// TestBoundsHold: programs of the generator take no more than their bounds.
func TestBoundsHold(t *testing.T) {
	n := must.Drawn(700, 100_000)
	bounded, seen := 0, map[cost.Class]int{}
	for seed := range n {
		r := rand.New(rand.NewPCG(uint64(seed), 51))
		d := r.IntN
		o := gen.Options{Wrong: []int{0, 5, 30}[d(3)], Effects: d(6) == 0, Records: d(2) == 0, Tool: d(2) == 0}
		tr := trial{}
		if o.Tool {
			tr.tool = "tool"
		}
		size := 1 + d(80)
		if d(4) == 0 {
			tr.code, tr.inputs = gen.Term(d, size, o), []string{"null"}
		} else {
			var in string
			tr.code, in = gen.Function(d, size, o)
			tr.inputs = []string{in}
		}
		report, ok := tr.check(t)
		seen[report.Class]++
		if ok {
			bounded++
		}
	}
	t.Logf("%d of %d have bounds: %v", bounded, n, seen)
	if bounded < n/3 {
		t.Errorf("only %d of %d programs have bounds", bounded, n)
	}
}

// shapes is programs that have bounds of every class, and inputs are made for
// them at random.
var shapes = []string{
	"let k = 1 in n => if n <= 0 then 0 else 1 + self(n - k)", "let h = n => if n <= 0 then 0 else 1 + self(n - 1) in h",
	"x => x * x", "xs => sum(xs)", "xs => fold(p => fst(p) + snd(p), 0, xs)", "xs => map(x => x * 2, xs)",
	"xs => filter(x => x > 2, xs)", "xs => map(x => map(y => x + y, xs), xs)", "xs => sort(xs)",
	"n => if n <= 1 then 1 else n * self(n - 1)", "n => if n <= 0 then 0 else 1 + self(n - 1)",
	"n => if n < 2 then n else self(n - 1) + self(n - 2)", "xs => if isEmpty(xs) then 0 else head(xs) + self(tail(xs))",
	"n => sum(range(0, n))", "xs => any(x => x > 3, xs)", "xs => all(x => x > 3, xs)", "xs => find(x => x > 3, xs, 0)",
	"(xs, ys) => zip(xs, ys)", "n => repeat(n, \"ab\")", "s => join(reverse(chars(s)), \"-\")", "xs => unique(xs)",
	"xs => group(x => to_text(x), xs)", "x => pow(x, 3)", "n => pow(2, n)", "n => pow(n, n)",
	"n => let go = (go, i) => if i >= n then 0 else go(go, i + 1) in go(go, 0)",
	"(a, b) => if a > b then a else b", "xs => reverse(xs)", "(xs, ys) => append(xs, ys)", "xs => flatten(xs)",
	"xs => flat_map(x => [x, x], xs)", "xs => take(2, xs)", "xs => drop(2, xs)", "xs => enumerate(xs)", "xs => product(xs)",
	"xs => min(xs)", "xs => max(xs)", "xs => count(x => x > 1, xs)", "xs => partition(x => x > 1, xs)",
	"xs => sort_by(x => 0 - x, xs)", "xs => last(xs)", "x => compose(y => y + 1, z => z * 2)(x)", "x => pipeline([y => y + 1, z => z * 2], x)",
	"x => abs(x)", "s => split(s, \",\")", "s => upper(trim(s)) ++ lower(s)", "s => replace(s, \"a\", \"bcd\")", "s => parse_int(s)",
	"s => parse_json(s)", "x => to_json(x)", "x => to_text(x)", "(x, y) => equal(x, y)", "(x, y) => compare(x, y)",
	"(xs, x) => contains(xs, x)", "r => keys(r)", "r => values(r)", "r => map(p => fst(p), entries(r))", "r => merge(r, {a: 1})",
	"xs => from_entries(map(x => (to_text(x), x), xs))", "r => put(r, \"k\", r)", "xs => fold(p => put(fst(p), to_text(snd(p)), 1), {}, xs)",
	"xs => fold(p => fst(p) ++ to_text(snd(p)), \"\", xs)", "xs => fold(p => fst(p) ++ fst(p), \"ab\", take(12, xs))",
	"xs => fold(p => (fst(fst(p)) + 1, snd(fst(p)) + snd(p)), (0, 0), xs)", "x => try(head(x))", "x => match x { [a, b] => a; (a, b) => b; _ => 0 }",
	"x => get(try(parse_json(x)), \"ok\", 0)", "xs => length(map(x => to_json(x), xs))", "x => let y = x * x, z = y * y, w = z * z in w * w",
	"xs => fold(p => fst(p) * 2, 1, xs)", "xs => fold(p => if snd(p) > 2 then cons(snd(p), fst(p)) else fst(p), [], xs)",
	"(n, m) => let go = (go, n, acc) => if n <= 0 then acc else go(go, n - 1, acc + m) in go(go, n, 0)",
	"xs => let go = (go, xs, acc) => if isEmpty(xs) then acc else go(go, tail(xs), cons(head(xs), acc)) in go(go, xs, [])",
	"n => let go = (go, x) => if x <= 0 then 0 else go(go, x / 2) in go(go, sqrt(2, 20))",
	"xs => let s = sqrt(2, 2000) in map(y => s * s, xs)", "xs => let s = pow(1.7, 2000) in map(y => s * s, xs)",
	"x => div_dec(x, 7, 20, \"half_even\")", "x => round_dec(x, 2, \"down\") * x", "x => to_dec(x)", "x => x - x / 2 + x % 3",
	"xs => fold(p => max([fst(p), snd(p)]), 0, xs)", "xs => sum(map(x => x * x, filter(x => x % 2 == 0, xs)))",
	"n => map(i => range(0, i), range(0, n))", "s => map(c => index_of(s, c), chars(s))", "s => starts_with(s, s) and ends_with(s, s)",
	"p => length(!fs.read({path: p}))", "p => map(l => trim(l), split(!fs.read(p), \"\\n\"))", "xs => par(sum(xs), length(xs))",
	"x => eval('{map(y => y + 1, x)})", "x => length(values(to_data('{x => x + 1})))", "q => analyze(q)",
	"n => if n <= 0 then [] else cons(n, self(n - 1))", "n => if n <= 0 then \"\" else self(n - 1) ++ self(n - 1)",
	"n => if n <= 0 then 0 else if n % 2 == 0 then self(n - 1) else self(n - 2)", "(n, acc) => if n <= 0 then acc else self(n - 1, acc + n)",
	"(xs, ys) => map(x => map(y => (x, y), ys), xs)", "xs => nth(xs, 1) + length(slice(xs, 0, 2))", "x => fold(p => fst(p) * x, x, range(0, 120))", "n => reverse(range(0, n * 1000))",
	"x => fold(p => fst(p) * parse_int(\"99999999999999999999\"), parse_int(\"7\"), range(0, 600))", "x => fold(p => fst(p) * 7, x, range(0, 3000))",
	"n => fold(p => put(fst(p), to_text(snd(p)), [snd(p)]), {}, range(0, n * 100))", "n => map(i => {a: i, b: [i]}, range(0, n * 200))",
	"n => fold(p => push(fst(p), snd(p)), [], range(0, n * 20))", "n => if n <= 0 then [] else [n, self(n - 1), self(n - 1)]", "xs => set_nth(push(xs, 1), 0, 2)",
	"n => if n < 10 then [n] else [...self(n / 10), n % 10]", "n => if n <= 0 then 0 else 1 + self(n / 2)", "n => if n <= 1 then 1 else self(n / 2) + self(n / 2)",
	"n => if n <= 0 then 0 else if n % 3 == 0 then self(n / 3) else self(n - 1)", "n => if n <= 0 then 0 else 1 + self((n - 1) / 2)",
	"(a, b) => let go = (a, b) => if b == 0 then a else go(b, a % b) in go(a, b)", "n => let go = (n, sum) => if n <= 0 then sum else go(n / 10, sum + n % 10) in go(n, 0)",
	"xs => let go = (lo, hi) => if lo >= hi then lo else let m = (lo + hi) / 2 in if xs[m] < 7 then go(m + 1, hi) else go(lo, m) in go(0, length(xs))",
	"xs => let go = (lo, hi) => if lo > hi then lo else let m = lo + (hi - lo) / 2 in if xs[m] > 7 then go(lo, m - 1) else go(m + 1, hi) in go(0, length(xs) - 1)",
	"xs => let go = (i, j) => if i >= j then true else if xs[i] != xs[j] then false else go(i + 1, j - 1) in go(0, length(xs) - 1)",
	"(i, xs) => append(take(i, xs), drop(i + 1, xs))", "(i, xs) => fold((acc, x) => {l: append(take(i, acc.l), drop(i, acc.l))}, {l: xs}, xs)",
	"(a, b) => let go = (a, b) => match (a, b) { ([], _) => b; (_, []) => a; ([x, ...r], [y, ...s]) => if x <= y then [x, ...go(r, b)] else [y, ...go(a, s)] } in go(a, b)",
}

// dataOf makes an input at random.
func dataOf(d gen.Draw, deep int) string {
	number := func() string {
		switch d(8) {
		case 0:
			return `{"dec":"` + fmt.Sprint(d(100)) + `.` + strings.Repeat("3", 1+d(60)) + `"}`
		case 1:
			return "-" + fmt.Sprint(1+d(30))
		case 2:
			return "1" + strings.Repeat("7", d(400))
		}
		return fmt.Sprint(d(30))
	}
	str := func() string {
		return []string{`"a"`, `"a,b,c"`, `"12"`, `"[1,{\"a\":2}]"`, `"` + strings.Repeat("abc ", d(300)) + `"`, `""`, `"[` + strings.Repeat("1,", d(200)) + `2]"`}[d(7)]
	}
	switch k := d(10); {
	case k < 3 || deep == 0:
		if d(3) == 0 {
			return str()
		}
		return number()
	case k < 4:
		return []string{"null", "true", "false"}[d(3)]
	case k < 5:
		return `{"pair":[` + dataOf(d, deep-1) + "," + dataOf(d, deep-1) + `]}`
	case k < 6:
		return `{"record":{"a":` + dataOf(d, deep-1) + `,"name":` + dataOf(d, deep-1) + `}}`
	}
	var items []string
	like := d(3)
	for range d(40) {
		switch like {
		case 0:
			items = append(items, number())
		case 1:
			items = append(items, str())
		default:
			items = append(items, dataOf(d, deep-1))
		}
	}
	return "[" + strings.Join(items, ",") + "]"
}

// TestCalls: the bound of a program that calls a tool is made of the tool's.
func TestCalls(t *testing.T) {
	lib := map[string]string{"total": "xs => sum(xs)", "twice": "xs => map(x => (x, x), xs)"}
	l := vectors.Library{Owner: "program", Code: map[string]value.Tool{}}
	reports := map[string]cost.Report{}
	for name, src := range lib {
		p, err := core.CompileText(name, []byte(src))
		must.NoError(t, err)
		l.Code[name] = p.Tool()
		reports[name] = cost.Of(p.Term(), cost.Options{Tool: true})
	}
	callee := func(name string) (cost.Report, bool) { r, ok := reports[name]; return r, ok }
	for _, code := range []string{"xs => @total(xs)", "xs => @total(map(x => x + 1, xs)) * 2", "xs => map(x => @total([x, x]), xs)", "xs => length(@twice(xs))"} {
		p, err := core.CompileText("tool", []byte(code))
		must.NoError(t, err)
		r := cost.Of(p.Term(), cost.Options{Tool: true, Source: p.Tool().Source, Callee: callee})
		if !r.Steps.Finite() {
			t.Fatalf("%s has no bound: %v", code, r.Why)
		}
		for n := range 40 {
			in := "[" + strings.TrimSuffix(strings.Repeat("7,", n), ",") + "]"
			v, _ := datum(t, in)
			gives := make([]value.Value, n)
			for i := range gives {
				gives[i] = &value.Pair{First: value.NewInt(7), Second: value.NewInt(7)}
			}
			input, _ := core.ParseInput([]byte(in), core.InputData)
			m := p.Start(input, core.Budgets{}, l)
			if m.Run(0) != core.Done {
				t.Fatal(m.Fault())
			}
			steps := m.Steps()
			m.Release()
			sizes := cost.Sizes{"xs": {v}, "!call:total": {value.NewInt(14 * int64(n))}, "!call:twice": {value.FromSlice(gives)}}
			if most, ok := r.Steps.Eval(sizes.Of); !ok || most.Cmp(new(big.Int).SetUint64(steps)) < 0 {
				t.Errorf("%s of %d items: %d steps, more than %s: %s", code, n, steps, most, r.Steps)
			}
		}
	}
	if r := cost.Of(&term.Prim{ID: prim.Call, Args: []term.Term{&term.Str{Value: "none"}, &term.Unit{}}}, cost.Options{Callee: callee}); r.Steps.Finite() {
		t.Errorf("a call of what isn't known has the bound %s", r.Steps)
	}
}

// TestShapesHold: programs of every shape take no more than their bounds, and
// all but a few have some.
func TestShapesHold(t *testing.T) {
	n := must.Drawn(900, 200_000)
	without := map[string]bool{}
	for seed := range n {
		r := rand.New(rand.NewPCG(uint64(seed), 52))
		tr := trial{code: shapes[seed%len(shapes)], tool: "tool"}
		params := 1
		if strings.HasPrefix(tr.code, "(") {
			params = 2
		}
		for range params {
			tr.inputs = append(tr.inputs, dataOf(r.IntN, 2))
		}
		if params == 2 {
			if strings.Contains(tr.code, "self") {
				continue // it can't be given both as inline code
			}
			tr.tool = ""
		}
		if report, ok := tr.check(t); !ok && !report.Steps.Finite() {
			without[tr.code] = true
		}
	}
	for code := range without {
		t.Errorf("%s has no bound", code)
	}
}

func BenchmarkSmallTool(b *testing.B) {
	p, f := text.Parse([]byte("(items, rate) => let total = sum(map(i => i.price * i.count, items)) in {total: total, tax: div(total * rate, 100)}"), text.Options{Tool: "tool"})
	must.NoFault(b, f)
	b.ReportAllocs()
	for b.Loop() {
		cost.Of(p.Term, cost.Options{Source: p.Source})
	}
}
