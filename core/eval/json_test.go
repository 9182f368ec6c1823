package eval_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// jsonText writes a random text that is JSON, or nearly so.
func jsonText(r *rand.Rand, depth int) string {
	blank := []string{"", "", "", " ", "\n\t"}[r.IntN(5)]
	if r.IntN(300) == 0 {
		return []string{"", "-", "01", "1.", ".5", "tru", `"a`, `"\ud800"`, `"\x"`, "[1,]", `{"a":1,}`, `{"a":1,"a":2}`, "1 1", "\"\x01\""}[r.IntN(14)]
	}
	switch k := r.IntN(12); {
	case k < 2:
		return blank + fmt.Sprint(r.IntN(2000)-1000) + blank
	case k == 2:
		return []string{"1.50", "-0.0", "1e3", "123456789012345678901", "0.000000000000000000001", "-12.5e-2", "999999999999999999", "4611686018427387904"}[r.IntN(8)]
	case k == 3:
		return []string{"true", "false", "null"}[r.IntN(3)]
	case k < 6 || depth == 0:
		return blank + []string{`""`, `"plain"`, `"é😀"`, `"a\"b\\c\n"`, `"\u0041\ud83d\ude00"`, `"` + strings.Repeat("x\\n", r.IntN(700)/(1+depth*9)) + `"`}[r.IntN(6)]
	case k < 9:
		items := make([]string, r.IntN(1+14*depth))
		for i := range items {
			items[i] = jsonText(r, depth-1)
		}
		return "[" + strings.Join(items, ",") + blank + "]"
	}
	fields := make([]string, r.IntN([]int{6, 45}[r.IntN(2)]))
	for i := range fields {
		fields[i] = fmt.Sprintf(`%s"%s%d"%s:%s`, blank, []string{"k", "é", "long key of many bytes "}[r.IntN(3)], (i*7)%40, blank, jsonText(r, depth-1))
	}
	return "{" + strings.Join(fields, ",") + "}"
}

// TestJSONInOnePass: text is read and written in the heap as the rows do it, for as many
// steps, whatever room there is.
func TestJSONInOnePass(t *testing.T) {
	codes := []string{
		`s => parse_json(s)`, `s => to_json(parse_json(s))`, `s => try(to_json(parse_json(s)))`, `s => to_text([parse_json(s), s])`,
		`s => let v = parse_json(s) in [to_json(v), to_json([v, v, {a: v}]), to_text((v, v))]`,
		`s => to_json([s ++ s ++ s, x => x])`, `s => parse_json(s ++ "")`, `s => keys(parse_json(s))`,
	}
	for seed := range must.Drawn(240, 8_000) {
		r := rand.New(rand.NewPCG(uint64(seed), 11))
		tr := trial{code: string(mustCompileText(t, codes[r.IntN(len(codes))]).Canonical()), input: fmt.Sprintf("%q", "x")}
		text := jsonText(r, 3)
		if len(text) > 60_000 {
			continue
		}
		tr.code = fmt.Sprintf(`{"app":[%s,%s]}`, tr.code, quoteJSON(text))
		tr.input = "null"
		if tr.slice = uint64(r.IntN(3) * 40); r.IntN(4) == 0 {
			tr.budgets = core.Budgets{Steps: uint64(1 + r.IntN(600))}
		}
		if seed%3 == 0 {
			stressed(t, seed%2 == 0)
		} else {
			stressedNot()
		}
		tr.check(t)
	}
	stressedNot()
}

// TestTextsAtTheLimit: a heap whose limit is any number is written to its end.
func TestTextsAtTheLimit(t *testing.T) {
	p := mustCompileText(t, `k => to_json(repeat_text("\u0001", k))`)
	for memory := int64(40_000); memory < 40_016; memory++ {
		for k := 3300; k < 3400; k++ {
			m := p.Start(mustInput(t, strconv.Itoa(k), core.InputTerm), core.Budgets{Memory: memory}, nil)
			m.Run(0)
			m.Release()
		}
	}
}

// TestCSVInOnePass: lines are read and written in the heap as the rows do it.
func TestCSVInOnePass(t *testing.T) {
	codes := []string{
		`s => parse_csv(s)`, `s => to_csv(parse_csv(s))`, `s => try(parse_csv(s))`, `s => try(to_csv(map(r => {...r, n: length(r), on: true, no: null}, parse_csv(s))))`,
		`s => to_csv(map(r => put(r, "b", [1.5, 12345678901234567890, -7, s, "", null][length(to_text(r)) % 6]), parse_csv(s)))`,
		`s => to_csv([...parse_csv(s), {a: 1}])`, `s => to_csv(reverse(parse_csv(s ++ s)))`,
	}
	for seed := range must.Drawn(240, 8_000) {
		r := rand.New(rand.NewPCG(uint64(seed), 12))
		columns := 1 + r.IntN(4)
		var text strings.Builder
		for range r.IntN(1 + r.IntN(80)) {
			for k := range columns {
				if k > 0 {
					text.WriteByte(',')
				}
				text.WriteString([]string{"", "a", "b", "name", "é", " x", `"a,b"`, `"a ""b"""`, `"""` + "\n" + `"`, `""`, "12", strings.Repeat("long ", r.IntN(9))}[r.IntN(12)])
				if r.IntN(400) == 0 {
					text.WriteString([]string{",", `"`, "\r", "\n"}[r.IntN(4)])
				}
			}
			text.WriteString([]string{"\n", "\n", "\n", "\n", "\n", "\n\n", "\r\n"}[r.IntN(7-r.IntN(2))])
			if text.Len() < 40 {
				// names that differ, mostly
				text.Reset()
				text.WriteString([]string{"a,b,c,d", "b,a,d,c", "d,c,é,a", "a,a,b,c"}[r.IntN(20)/6][:2*columns-1] + "\n")
			}
		}
		tr := trial{code: fmt.Sprintf(`{"app":[%s,%s]}`, mustCompileText(t, codes[r.IntN(len(codes))]).Canonical(), quoteJSON(strings.ToValidUTF8(text.String(), "?"))), input: "null"}
		if tr.slice = uint64(r.IntN(3) * 40); r.IntN(4) == 0 {
			tr.budgets = core.Budgets{Steps: uint64(1 + r.IntN(900))}
		}
		if seed%3 == 0 {
			stressed(t, seed%2 == 0)
		} else {
			stressedNot()
		}
		tr.check(t)
	}
	stressedNot()
}

func quoteJSON(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c < ' ':
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// deeps are a form inside itself: how many levels of JSON one takes, what
// opens it, what is innermost, and what closes it.
var deeps = map[string]struct {
	levels            int
	open, inner, shut string
}{
	"lam":             {1, `{"lam":"x","body":`, `{"var":"x"}`, `}`},
	"lam of its own":  {2, `[{"lam":"x#","body":`, `{"var":"x7"}`, `}]`},
	"app func":        {2, `{"app":{"func":`, `1`, `,"arg":1}}`},
	"app arg":         {2, `{"app":{"func":{"lam":"x","body":{"var":"x"}},"arg":`, `1`, `}}`},
	"unknown app arg": {2, `{"app":{"func":{"head":[{"lam":"x","body":{"var":"x"}}]},"arg":`, `1`, `}}`},
	"let":             {3, `{"app":[{"lam":"x","body":`, `{"var":"x"}`, `},1]}`},
	"lets":            {3, `{"app":[{"lam":"v#","body":`, `{"var":"v0"}`, `},{"head":[1]}]}`},
	"let value":       {2, `{"app":[{"lam":"x","body":{"var":"x"}},`, `1`, `]}`},
	"if cond":         {2, `{"if":{"then":true,"else":false,"cond":`, `true`, `}}`},
	"if then":         {2, `{"if":{"cond":true,"else":1,"then":`, `2`, `}}`},
	"if else":         {2, `{"if":{"cond":{"lt":[{"head":[1]},0]},"then":1,"else":`, `2`, `}}`},
	"add left":        {2, `{"add":[`, `1`, `,1]}`},
	"add right":       {2, `{"add":[1,`, `1`, `]}`},
	"and":             {2, `{"and":[`, `true`, `,true]}`},
	"or right":        {2, `{"or":[false,`, `true`, `]}`},
	"not":             {1, `{"not":`, `true`, `}`},
	"cons":            {2, `{"cons":{"head":1,"tail":`, `[]`, `}}`},
	"cons head":       {2, `{"cons":{"tail":[],"head":`, `[]`, `}}`},
	"list":            {1, `[`, `1`, `]`},
	"list of more":    {1, `[{"head":[1]},`, `1`, `]`},
	"pair":            {2, `{"pair":[`, `1`, `,1]}`},
	"fst":             {3, `{"fst":{"pair":[`, `1`, `,1]}}`},
	"concat":          {2, `{"concat":["ab",`, `"c"`, `]}`},
	"fold body":       {3, `{"fold":[{"lam":"p","body":`, `1`, `},0,[1]]}`},
	"fold init":       {2, `{"fold":[{"lam":"p","body":{"fst":{"var":"p"}}},`, `1`, `,[1]]}`},
	"fold list":       {3, `{"length":{"fold":[{"lam":"p","body":{"fst":{"var":"p"}}},[],`, `[]`, `]}}`},
	"quote":           {1, `{"quote":`, `1`, `}`},
	"eval":            {2, `{"eval":{"quote":`, `1`, `}}`},
	"record":          {2, `{"record":{"a":`, `1`, `}}`},
	"try":             {1, `{"try":`, `1`, `}`},
	"try head":        {3, `{"get":[{"try":`, `{"head":[]}`, `},"error",1]}`},
	"code_of":         {1, `{"code_of":`, `"nope"`, `}`},
	"length":          {1, `{"length":`, `[]`, `}`},
	"match":           {7, `{"match":1,"with":[[1,`, `5`, `]]}`},
	"cond":            {3, `{"cond":[[{"eq":[{"head":[1]},1]},`, `5`, `]],"else":1}`},
	"map":             {3, `{"map":[{"lam":"x","body":`, `{"var":"x"}`, `},[1]]}`},
}

// Each form nested as deep as the parser takes it gives what it should, and in
// a time that says that nothing is done again at every level.
func TestDeepCode(t *testing.T) {
	for name, d := range deeps {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			for _, levels := range []int{90, 1000, must.Drawn(3000, 9_990)} {
				n := levels / d.levels
				code := nest(n, d.open, d.inner, d.shut)
				for len(code) > 250_000 {
					n = n * 9 / 10
					code = nest(n, d.open, d.inner, d.shut)
				}
				tr := trial{code: code, input: "null", budgets: core.Budgets{Steps: 3_000_000}}
				if _, f := compileAs("", code); f != nil {
					t.Fatal(f)
				}
				start := time.Now()
				o := tr.onEval(t)
				if d := time.Since(start); d > 30*time.Millisecond {
					t.Logf("%s %d deep: %v %v", name, n, d, o)
				}
				if o.Kind != "" && o.Kind != fault.OutOfFuel && o.Kind != fault.RuntimeError && o.Kind != fault.TypeError {
					t.Errorf("%d deep: %v", n, o)
				}
				if strings.HasPrefix(name, "lam of") && levels > 1000 {
					continue // the reference copies nothing but looks names up one by one
				}
				tr.check(t)
			}
		})
	}
}

// A run that takes n steps has the same outcome with a budget of n, and is out
// of fuel with one of n-1; pausing changes nothing.
func TestStepsAreExactAtTheBoundary(t *testing.T) {
	for seed := range must.Drawn(400, 50_000) {
		r := rand.New(rand.NewPCG(uint64(seed), 4))
		tr := draw(r.IntN)
		tr.budgets, tr.slice = core.Budgets{Steps: 20_000, Memory: 4 << 20, Depth: 200}, 0
		want := tr.onEval(t)
		if want.Kind == fault.ParseError || want.Kind == fault.OutOfFuel || want.Steps == 0 {
			continue
		}
		for _, tr.slice = range []uint64{1, 7, 97} {
			if got := tr.onEval(t); !same(got, want) {
				t.Fatalf("in slices of %d %v at %q, whole %v at %q\n%s", tr.slice, got, got.At, want, want.At, tr)
			}
		}
		for _, tr.slice = range []uint64{0, 3} {
			tr.budgets.Steps = want.Steps
			if got := tr.onEval(t); !same(got, want) {
				t.Fatalf("with just enough steps %v at %q, want %v at %q\n%s", got, got.At, want, want.At, tr)
			}
			if tr.budgets.Steps--; tr.budgets.Steps == 0 {
				continue
			}
			if got := tr.onEval(t); got.Kind != fault.OutOfFuel || got.Steps != tr.budgets.Steps {
				t.Fatalf("with a step too few %v\n%s", got, tr)
			}
		}
	}
}

// A depth that is just enough changes nothing; with one less it is too_deep, on
// both evaluators.
func TestDepthIsExactAtTheBoundary(t *testing.T) {
	for seed := range must.Drawn(280, 30_000) {
		r := rand.New(rand.NewPCG(uint64(seed), 5))
		tr := draw(r.IntN)
		tr.budgets, tr.slice = core.Budgets{Steps: 20_000, Memory: 4 << 20, Depth: 200}, uint64(seed%4)
		want := tr.onEval(t)
		if want.Kind == fault.ParseError || want.Kind == fault.OutOfFuel || want.Kind == fault.TooDeep {
			continue
		}
		lo, hi := 0, 200 // too deep with lo, not with hi
		for hi-lo > 1 {
			tr.budgets.Depth = (lo + hi) / 2
			if tr.onEval(t).Kind == fault.TooDeep {
				lo = tr.budgets.Depth
			} else {
				hi = tr.budgets.Depth
			}
		}
		tr.budgets.Depth = hi
		tr.agree(t, want, tr.check(t))
		if tr.budgets.Depth = lo; lo > 0 {
			tr.check(t)
		}
	}
}

// Work that grows with its data counts for the slice: a caller who wants to
// stop gets to do so after the operation under way, not after all of them.
func TestWorkCountsForTheSlice(t *testing.T) {
	loop := func(op string) string {
		return `{"app":[{"lam":"s","body":{"fold":[{"lam":"p","body":{"app":[{"lam":"_","body":0},` + op + `]}},0,{"range":[0,1000]}]}},
			{"fold":[{"lam":"p","body":{"concat":[{"fst":{"var":"p"}},{"fst":{"var":"p"}}]}},"1",{"range":[0,13]}]}]}`
	}
	for op, cost := range map[string]uint64{
		`{"trim":{"var":"s"}}`:      16,
		`{"parse_int":{"var":"s"}}`: 2904,
		`{"mul":[{"parse_int":{"var":"s"}},{"parse_int":{"var":"s"}}]}`: 3 * 2904,
	} {
		m := mustCompile(t, loop(op)).Start(mustInput(t, "null", core.InputAuto), core.Budgets{}, nil)
		const slice = 1000
		for before := uint64(0); m.Run(slice) == core.Paused; before = m.Steps() {
			if took := m.Steps() - before; took > slice+cost+64 {
				t.Errorf("%s: a slice of %d took %d steps", op, slice, took)
				break
			}
		}
		m.Release()
	}
}
