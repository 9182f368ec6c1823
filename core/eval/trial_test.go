package eval_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/eval"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/internal/vectors"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/naive"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A trial is a program with all that its run depends on. These tests are
// outside the package, since what compiles programs imports it.
type trial struct {
	tool        string
	code, input string
	tools       map[string]string
	budgets     core.Budgets
	slice       uint64 // steps a call of Run may take; 0: all
	reply       func(i int, op string, arg value.Value) (value.Value, *fault.Fault)
}

func (tr trial) String() string {
	code := tr.code
	if len(code) > 4000 {
		code = code[:4000] + "…"
	}
	return fmt.Sprintf("tool %q\ncode %s\ninput %.500s\nbudgets %+v, slice %d", tr.tool, code, tr.input, tr.budgets, tr.slice)
}

// echo answers an effect with its argument, unless there is a function in it,
// and fails every fifth.
func echo(i int, op string, arg value.Value) (value.Value, *fault.Fault) {
	if i%5 == 4 {
		return nil, &fault.Fault{Kind: fault.EffectFailed, Message: "the fifth effect fails"}
	}
	if e, f := text.Encode(arg, 0, 1<<20); f != nil || e.Function {
		return &value.Pair{First: value.Str(op), Second: value.NewInt(int64(i))}, nil
	}
	return arg, nil
}

func compileAs(tool, code string) (*core.Program, *fault.Fault) {
	var p *core.Program
	var err error
	if tool != "" {
		p, err = core.CompileTool(tool, []byte(code))
	} else {
		p, err = core.CompileTool("", []byte(code))
	}
	if err != nil {
		return nil, err.(*fault.Fault)
	}
	return p, nil
}

func mustCompile(t testing.TB, code string) *core.Program {
	t.Helper()
	p, f := compileAs("", code)
	if f != nil {
		t.Fatalf("%v\n%.500s", f, code)
	}
	return p
}

func mustInput(t testing.TB, input string, as core.InputAs) core.Input {
	t.Helper()
	in, err := core.ParseInput([]byte(input), as)
	must.NoError(t, err)
	return in
}

func (tr trial) library(t testing.TB) vectors.Library {
	l := vectors.Library{Owner: "program", Code: map[string]value.Tool{}}
	for name, code := range tr.tools {
		p, f := compileAs(name, code)
		if f != nil {
			t.Fatalf("tool %s: %v", name, f)
		}
		l.Code[name] = p.Tool()
	}
	return l
}

// start returns a machine for the trial, or the fault that it is refused with.
func (tr trial) start(t testing.TB) (*core.Machine, *fault.Fault) {
	p, f := compileAs(tr.tool, tr.code)
	if f != nil {
		return nil, f
	}
	input := tr.input
	if input == "" {
		input = "null"
	}
	in, err := core.ParseInput([]byte(input), core.InputAuto)
	if err != nil {
		return nil, err.(*fault.Fault)
	}
	return p.Start(in, tr.budgets, tr.library(t)), nil
}

// onEval runs the trial on the machine.
func (tr trial) onEval(t testing.TB) vectors.Outcome {
	m, f := tr.start(t)
	if f != nil {
		return vectors.Failed(f, 0)
	}
	defer m.Release()
	return tr.finish(t, m)
}

func (tr trial) finish(t testing.TB, m *core.Machine) vectors.Outcome {
	defer func() {
		if p := recover(); p != nil {
			t.Fatalf("panic: %v\n%s\n%s", p, tr, debug.Stack())
		}
	}()
	script := vectors.Script{Reply: tr.reply}
	for {
		switch m.Run(tr.slice) {
		case core.Paused:
			if tr.slice == 0 {
				t.Fatalf("a run without slices paused\n%s", tr)
			}
		case core.Suspended:
			m.Resume(script.Answer(m.Requests()))
		default:
			o := outcome(m)
			o.Asked = script.Log.String()
			return o
		}
	}
}

func outcome(m *eval.Machine) vectors.Outcome {
	if m.State() == core.Failed {
		return vectors.Failed(m.Fault(), m.Steps())
	}
	e, f := m.Encode(1 << 20)
	if f != nil {
		return vectors.Failed(f, m.Steps())
	}
	return vectors.Outcome{Result: e.JSON, Type: string(e.Type), Steps: m.Steps()}
}

// onNaive runs the trial on the reference; refused says it doesn't parse.
func (tr trial) onNaive(t testing.TB) (o vectors.Outcome, refused bool) {
	p, f := compileAs(tr.tool, tr.code)
	if f != nil {
		return vectors.Failed(f, 0), true
	}
	in, f := parse.Input([]byte(tr.input), parse.Auto)
	if f != nil {
		return vectors.Failed(f, 0), true
	}
	script := vectors.Script{Reply: tr.reply}
	defer func() { o.Asked = script.Log.String() }()
	c := naive.Config{
		Term: p.Term(), Source: p.Tool().Source, Tool: tr.tool, Input: in, Tools: tr.library(t), Handler: script.Answer,
		Budgets: naive.Budgets{Steps: tr.budgets.Steps, Memory: tr.budgets.Memory, Depth: tr.budgets.Depth},
	}
	v, steps, f := naive.Run(c)
	if f != nil {
		return vectors.Failed(f, steps), false
	}
	e, f := text.Encode(v, 1<<20, 64<<20)
	if f != nil {
		return vectors.Failed(f, steps), false
	}
	return vectors.Outcome{Result: e.JSON, Type: string(e.Type), Steps: steps}, false
}

// check holds the machine against the reference, by the rules of the
// differential test in core, and returns what the reference says.
func (tr trial) check(t testing.TB) vectors.Outcome {
	t.Helper()
	want, refused := tr.onNaive(t)
	if refused {
		t.Fatalf("refused: %v\n%s", want, tr)
	}
	tr.agree(t, tr.onEval(t), want)
	return want
}

func (tr trial) agree(t testing.TB, got, want vectors.Outcome) {
	t.Helper()
	if got.Kind == fault.OutOfMemory || want.Kind == fault.OutOfMemory {
		return
	}
	if vectors.ByBudget(got.Kind) {
		got.At, want.At, got.In, want.In, got.EvalDepth, want.EvalDepth = "", "", "", "", 0, 0
		if got.Kind == fault.TooDeep {
			got.Steps, want.Steps = 0, 0
		}
	}
	if !same(got, want) {
		t.Fatalf("eval  %v at %q in %q (%d)\nnaive %v at %q in %q (%d)\n%s",
			got, got.At, got.In, got.EvalDepth, want, want.At, want.In, want.EvalDepth, fmt.Sprintf("%s\neval asked %s\nnaive asked %s", tr, got.Asked, want.Asked))
	}
}

func same(a, b vectors.Outcome) bool {
	return a.Kind == b.Kind && a.Type == b.Type && a.Steps == b.Steps && a.At == b.At &&
		a.In == b.In && a.EvalDepth == b.EvalDepth && string(a.Result) == string(b.Result) && a.Asked == b.Asked
}

// TestCompareShort: integers and strings are compared as the reference does, and for as
// many steps: on both sides of the length from which a comparison takes some.
func TestCompareShort(t *testing.T) {
	texts := []string{`""`, `"a"`, `"b"`, `"é"`, `concat("a", "b")`, `concat(s, "x")`, `concat("x", s)`}
	for _, n := range []int{502, 503, 504, 505, 1100} {
		texts = append(texts, fmt.Sprintf("%q", strings.Repeat("a", n)), fmt.Sprintf("%q", strings.Repeat("a", n-1)+"b"))
	}
	numbers := []string{"0", "-1", "1", "4611686018427387903", "-4611686018427387904", "9223372036854775808", "n", "n - 1"}
	for _, of := range [][]string{texts, numbers, {"true", "1", `"1"`, "1.0"}} {
		for _, a := range of {
			for _, b := range of {
				for _, op := range []string{"compare", "equal"} {
					code := fmt.Sprintf("s => n => %s(%s, %s)", op, a, b)
					code = `x => (` + code + `)("` + strings.Repeat("a", 502) + `")(4611686018427387903)`
					trial{code: string(mustCompileText(t, code).Canonical()), input: "null"}.check(t)
				}
			}
		}
	}
	code := `xs => [sort(xs), sort_by(x => 0 - x, xs), unique(xs), sort(map(x => to_text(x), xs))]`
	trial{code: string(mustCompileText(t, code).Canonical()), input: "[3,1,2,9,3,-7,4]"}.check(t)
}

// TestContains: plain values are looked for in a list as the reference does it, for as
// many steps, and so are those that aren't plain.
func TestContains(t *testing.T) {
	items := []string{"1", "2", `"a"`, `"b"`, `"` + strings.Repeat("a", 700) + `"`, "true", "null", "[]", "1.0", "[1]", `concat("` + strings.Repeat("b", 60) + `", "a")`, "9223372036854775808"}
	for _, n := range []int{0, 1, 5, 70, 3000} {
		for _, part := range items {
			for _, list := range []string{"range(0, %d)", "map(x => to_text(x), range(0, %d))", "[" + strings.Join(items[:8], ", ") + ", %d]", "[" + strings.Join(items, ", ") + ", %d]"} {
				code := fmt.Sprintf("x => let xs = %s in [contains(xs, %s), type_of(%s)]", fmt.Sprintf(list, n), part, part)
				trial{code: string(mustCompileText(t, code).Canonical()), input: "1"}.check(t)
			}
		}
	}
}

// TestDecimalsInLoop: sums, differences and products of decimals and integers are those of
// the reference, on both sides of what the loop computes itself.
func TestDecimalsInLoop(t *testing.T) {
	stressedNot()
	r := rand.New(rand.NewPCG(7, 21))
	edges := []uint64{0, 1, 2, 1<<31 - 2, 1<<31 - 1, 1 << 31, 1<<32 + 1, 1<<61 - 1, 1 << 62, 1<<63 - 1, 1 << 63, 1<<64 - 5, 1<<64 - 1}
	number := func() string {
		n := edges[r.IntN(len(edges))]
		if r.IntN(2) == 0 {
			n = r.Uint64() >> r.IntN(64)
		}
		s := fmt.Sprint(n)
		if scale := []int{0, 0, 1, 2, 2, 8, 9, 10, 18, 19, 40, 130}[r.IntN(12)]; scale > 0 {
			s = strings.Repeat("0", max(0, scale+1-len(s))) + s
			s = s[:len(s)-scale] + "." + s[len(s)-scale:]
		}
		if r.IntN(3) == 0 {
			s = "-" + s
		}
		return fmt.Sprintf(`{"dec":%q}`, s)
	}
	ints := []string{"0", "1", "-1", "7", "2147483647", "-2147483648", "4611686018427387903", "-4611686018427387904"}
	for range must.Drawn(120, 5_000) {
		a, b := number(), number()
		switch r.IntN(6) {
		case 0:
			a = ints[r.IntN(len(ints))]
		case 1:
			b = ints[r.IntN(len(ints))]
		}
		// Twice, so that operands are what the machine made itself, too.
		code := fmt.Sprintf(`{"let":[["a",%s],["b",%s],["s",{"add":[{"var":"a"},{"var":"b"}]}],["d",{"sub":[{"var":"a"},{"var":"b"}]}],["m",{"mul":[{"var":"a"},{"var":"b"}]}]],
			"in":[{"var":"s"},{"var":"d"},{"var":"m"},{"sub":[{"var":"s"},{"var":"a"}]},{"add":[{"var":"d"},{"var":"s"}]},{"mul":[{"var":"d"},{"var":"b"}]},
			{"sub":[{"var":"d"},{"var":"d"}]},{"equal":[{"var":"s"},{"var":"d"}]},{"lt":[{"var":"m"},{"var":"s"}]},
			{"round_dec":[{"var":"a"},%d,%q]},{"round_dec":[{"var":"m"},2,"half_up"]},{"sub":[{"var":"b"},"x"]}]}`,
			a, b, r.IntN(22)-1, []string{"down", "half_up", "half_even", "up", "half"}[r.IntN(5)])
		if r.IntN(2) == 0 {
			code = strings.Replace(code, `,{"sub":[{"var":"b"},"x"]}`, "", 1)
		}
		trial{code: code, budgets: core.Budgets{Steps: 100_000, Memory: 4 << 20, Depth: 100}}.check(t)
	}
}

// TestSumInLoop: a sum is that of the reference, of items that are small integers and of others among them, in cells
// and in vectors, past what a word holds, and wherever the steps end.
func TestSumInLoop(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 21))
	others := []string{`1.5`, `"a"`, `null`, `[1]`, `9223372036854775808`, `4611686018427387903`, `-4611686018427387904`, `4611686018427387903`}
	codes := []string{
		"xs => sum(xs)", "xs => sum(map(x => x, xs))", "xs => [sum(xs), sum(xs)]", "xs => sum(slice(xs, 1, length(xs)))",
		"xs => sum(cons(1, xs))", "xs => fold((a, x) => a + x, 4611686018427387000, xs)", "xs => fold((a, x) => x + a, 1, xs)",
		"xs => fold((a, x) => a + x + 0, 1, xs)", "xs => fold((a, x) => a + sum([x, a]), 1, xs)", "xs => try(sum(xs))",
	}
	for i := range must.Drawn(200, 6_000) {
		list := make([]string, r.IntN([]int{4, 34, 66, 1200}[r.IntN(4)]))
		odd, from := []int{0, 3, 40, 300}[r.IntN(4)], 5*r.IntN(2)
		for k := range list {
			if list[k] = fmt.Sprint(r.IntN(2000) - 1000); odd > 0 && r.IntN(odd) == 0 {
				list[k] = others[from+r.IntN(len(others)-from)]
			}
		}
		tr := trial{code: string(mustCompileText(t, codes[r.IntN(len(codes))]).Canonical()), input: "[" + strings.Join(list, ",") + "]"}
		if i%3 == 0 {
			stressed(t, i%2 == 0)
		} else {
			stressedNot()
		}
		switch r.IntN(4) {
		case 0:
			tr.budgets = core.Budgets{Steps: uint64(1 + r.IntN(8*len(list)+20))}
		case 1:
			tr.budgets = core.Budgets{Depth: 1 + r.IntN(5)}
		}
		tr.slice = uint64(r.IntN(3) * 25)
		tr.check(t)
	}
	stressedNot()
}

// TestTextsInLoop: texts put together of short ones and of numbers are those of the reference, and
// are equal to the same written out, on both sides of what the loop does itself.
func TestTextsInLoop(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 21))
	ints := []int64{0, 1, 9, 10, 99, 100, 12_345, 9_999_999, 10_000_000, 99_999_999, 100_000_000, 4_294_967_296, -1, -99_999_999}
	for i := range must.Drawn(120, 5_000) {
		code, want := `""`, ""
		for range 1 + r.IntN(5) {
			piece := strings.Repeat([]string{"a", "é", "z9", "日"}[r.IntN(4)], r.IntN(6))
			next := fmt.Sprintf("%q", piece)
			if r.IntN(2) == 0 {
				n := ints[r.IntN(len(ints))]
				piece, next = fmt.Sprint(n), fmt.Sprintf(`{"to_text":%d}`, n)
			}
			if want += piece; code == `""` {
				code = next
			} else {
				code = fmt.Sprintf(`{"concat":[%s,%s]}`, code, next)
			}
		}
		code = fmt.Sprintf(`{"let":[["s",%s]],"in":[{"var":"s"},{"equal":[{"var":"s"},%q]},{"length":{"var":"s"}},{"concat":[{"var":"s"},{"to_text":%d}]},{"get":[{"record":{%q:1}},{"var":"s"},2]}]}`,
			code, want, ints[r.IntN(len(ints))], want)
		if i%3 == 0 {
			stressed(t, true)
		} else {
			stressedNot()
		}
		trial{code: code, budgets: core.Budgets{Steps: 100_000, Memory: 4 << 20, Depth: 100}}.check(t)
	}
}

// TestStressInputs: a function that waits for its next input stays what it is
// through every collection, while that input is made and while effects are away.
func TestStressInputs(t *testing.T) {
	for _, c := range []struct {
		code   string
		inputs []string
		want   string
	}{
		{`{"lam":["a","b","c"],"body":[{"var":"a"},{"var":"b"},{"var":"c"}]}`, []string{`["x","y"]`, `{"concat":["p","q"]}`, `{"lam":"z","body":1}`}, `[["x","y"],"pq","<function>"]`},
		{`{"lam":"a","body":{"let":[["r",{"concat":[{"var":"a"},"!"]}]],"in":{"lam":"b","body":{"pair":[{"var":"r"},{"var":"b"}]}}}}`, []string{`{"concat":["p","q"]}`, `{"fold":[{"lam":"p","body":{"cons":[{"snd":{"var":"p"}},{"fst":{"var":"p"}}]}},[],[1,2,3]]}`}, `{"pair":["pq!",[3,2,1]]}`},
		{`{"let":[["s",{"concat":["a","b"]}]],"in":{"lam":["a","b"],"body":[{"var":"s"},{"var":"a"},{"var":"b"}]}}`, []string{`"1x"`, `{"eval":{"quote":{"concat":["c","d"]}}}`}, `["ab","1x","cd"]`},
		{`{"lam":"a","body":{"let":[["r",{"fs.read":{"concat":["f",{"var":"a"}]}}]],"in":{"lam":"b","body":{"let":[["s",{"fs.read":{"var":"b"}}]],"in":[{"var":"a"},{"var":"r"},{"var":"b"},{"var":"s"}]}}}}`, []string{`"1x"`, `{"concat":["c","d"]}`}, `["1x","f1x","cd","cd"]`},
	} {
		p, err := core.CompileTool("t", []byte(c.code))
		must.NoError(t, err)
		var all []core.Input
		for _, src := range c.inputs {
			in, err := core.ParseInput([]byte(src), core.InputAuto)
			must.NoError(t, err)
			all = append(all, in)
		}
		stressed(t, true)
		m := p.Start(core.Inputs(all...), core.Budgets{}, nil)
		for {
			if state := m.Run(1); state == core.Suspended {
				answers := make([]core.Answer, len(m.Requests()))
				for i, r := range m.Requests() {
					answers[i].Value = r.Arg
				}
				m.Resume(answers)
			} else if state != core.Paused {
				break
			}
		}
		stressedNot()
		if m.State() != core.Done {
			t.Errorf("%s: %v", c.code, m.Fault())
		} else if e, f := m.Encode(1000); f != nil || string(e.JSON) != c.want {
			t.Errorf("%s gives %s (%v), want %s", c.code, e.JSON, f, c.want)
		}
		m.Release()
	}
}

// written returns the programs of core/testdata/bench that do what people write, as JSON.
func written(t testing.TB) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../testdata/bench/*.pif")
	if err != nil || len(files) < 12 {
		t.Fatal("no programs", err)
	}
	all := map[string]string{}
	for _, file := range files {
		src, err := os.ReadFile(file)
		must.NoError(t, err)
		all[strings.TrimSuffix(filepath.Base(file), ".pif")] = string(mustCompileText(t, string(src)).Canonical())
	}
	return all
}

// TestWritten: these programs give on the machine what they give on the reference, for
// as many steps, however they are cut: in slices, by collections, by a budget anywhere.
func TestWritten(t *testing.T) {
	for name, code := range written(t) {
		for _, input := range []string{"0", "1", "2", "40"} {
			tr := trial{code: code, input: input}
			stressedNot()
			want, refused := tr.onNaive(t)
			if refused {
				t.Fatalf("%s: %v", name, want)
			}
			tr.agree(t, tr.onEval(t), want)
			tr.slice = 97
			for _, tight := range []bool{false, true} {
				stressed(t, tight)
				tr.agree(t, tr.onEval(t), want)
			}
			stressedNot()
			each := 1 + want.Steps/uint64(must.Full(12, 40))
			for steps := each; steps <= want.Steps; steps += each {
				tr.budgets = core.Budgets{Steps: steps}
				o := tr.onEval(t)
				if cut, _ := tr.onNaive(t); cut.Kind != o.Kind || o.Steps != cut.Steps {
					t.Fatalf("%s: of %d steps: eval %v, naive %v", name, steps, o, cut)
				}
				if o.Kind != "" && o.Kind != fault.OutOfFuel && o.Kind != want.Kind {
					t.Fatalf("%s: %v", name, o)
				}
			}
		}
	}
}

// TestSortInOne: a list that is sorted by one instruction comes out as from the row's
// body, for as many steps, and so does one that the instruction leaves alone.
func TestSortInOne(t *testing.T) {
	keys := []string{"x => x", "x => 0 - x", "x => x.k", "x => -x.k", "x => x.k + 1", "x => to_text(x)", "x => get(x, \"k\", 0)"}
	items := []func(r *rand.Rand) string{
		func(r *rand.Rand) string { return fmt.Sprint(r.IntN(20) - 10) },
		func(r *rand.Rand) string { return fmt.Sprint(r.Int64()) },
		func(r *rand.Rand) string { return fmt.Sprintf("%d.%d", r.IntN(3), r.IntN(100)) },
		func(r *rand.Rand) string {
			return fmt.Sprintf("%q", "abcdefgh"[:r.IntN(9)]+strings.Repeat("é", r.IntN(3)))
		},
		func(r *rand.Rand) string { return fmt.Sprintf(`"same first bytes %d"`, r.IntN(9)) },
		func(r *rand.Rand) string { return fmt.Sprintf("%q", strings.Repeat("a", 500+r.IntN(8))) },
		func(r *rand.Rand) string { return fmt.Sprintf(`{k: %d, n: %d}`, r.IntN(5), r.IntN(1000)) },
		func(r *rand.Rand) string { return fmt.Sprintf(`{k: "%d", l: 1}`, r.IntN(50)) },
		func(r *rand.Rand) string { return "-4611686018427387904" },
		func(r *rand.Rand) string { return "null" },
	}
	for seed := range must.Drawn(280, 6_000) {
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		kind := r.IntN(len(items))
		list := make([]string, r.IntN([]int{4, 12, 70}[r.IntN(3)]))
		for i := range list {
			if r.IntN(200) == 0 {
				kind = r.IntN(len(items))
			}
			list[i] = items[kind](r)
		}
		code := fmt.Sprintf("n => let xs = [%s] in length(sort_by(%s, xs)) + n", strings.Join(list, ", "), keys[r.IntN(len(keys))])
		if r.IntN(2) == 0 {
			code = fmt.Sprintf("n => sort_by(%s, [%s])", keys[r.IntN(len(keys))], strings.Join(list, ", "))
		}
		tr := trial{code: string(mustCompileText(t, code).Canonical()), input: "1"}
		if seed%3 == 0 {
			stressed(t, seed%2 == 0)
		} else {
			stressedNot()
		}
		switch r.IntN(4) {
		case 0:
			tr.budgets = core.Budgets{Steps: uint64(1 + r.IntN(9000))}
		case 1:
			tr.budgets = core.Budgets{Depth: 1 + r.IntN(40)}
		}
		tr.slice = uint64(r.IntN(3) * 50)
		tr.check(t)
	}
	stressedNot()
	// So many integers are sorted by their digits, unless they lie too far apart.
	r := rand.New(rand.NewPCG(4, 3))
	for i := range must.Full(8, 300) {
		list := make([]int64, 254+r.IntN(80))
		last := int64(1) << []int{0, 1, 4, 8, 16, 47, 48, 61}[i%8]
		for k := range list {
			list[k] = r.Int64N(last) - last/2
		}
		switch r.IntN(4) {
		case 0:
			slices.Sort(list)
		case 1:
			slices.Sort(list)
			slices.Reverse(list)
		}
		in := strings.ReplaceAll(fmt.Sprint(list), " ", ",")
		code := []string{"xs => sort(xs)", "xs => sort_by(x => 0 - x, xs)", "xs => map(r => r.i, sort_by(r => r.k, map((i, k) => {i: i, k: k}, enumerate(xs))))"}[r.IntN(3)]
		tr := trial{code: string(mustCompileText(t, code).Canonical()), input: in}
		if i%5 == 4 {
			tr.budgets = core.Budgets{Steps: 60_000 + r.Uint64N(100_000)}
		}
		tr.check(t)
	}
	// The length of so long a list takes steps, too.
	tr := trial{code: string(mustCompileText(t, "n => length(sort(map(x => x * 7919 % 10007, range(0, n))))").Canonical()), input: "16500"}
	tr.budgets = core.Budgets{Steps: 100_000_000}
	tr.check(t)
}
