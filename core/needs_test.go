package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// said is a program's needs, one a line.
func said(n core.Needs) string {
	var b strings.Builder
	list := func(title string, needs []core.Need) {
		for _, d := range needs {
			fmt.Fprintf(&b, "%s %s %q at %s %d:%d\n", title, d.Name, d.In, d.At, d.Line, d.Col)
		}
	}
	list("op", n.Ops)
	list("call", n.Calls)
	list("code", n.Codes)
	if n.AnyCode {
		b.WriteString("code of any\n")
	}
	for _, w := range n.Withs {
		fmt.Fprintf(&b, "with %q at %s %d:%d\n", w.Texts, w.At, w.Line, w.Col)
	}
	list("unknown", n.Unknown)
	list("inert", n.Inert)
	return b.String()
}

func TestNeeds(t *testing.T) {
	for _, c := range []struct{ code, want string }{
		{`{"lam":"x","body":[{"fs.read":{"in":"./in","path":{"fetch":"u"}}},{"quote":{"kv.get":1}}]}`, `
op fs.read "./in" at /body/0 1:20
op fetch.request "" at /body/0/fs.read/path 1:51
`},
		{`[{"call":{"tool":"t","input":{"a.b":1}}},{"code_of":"u"},{"call":{"tool":{"var":"x"},"input":1}},{"code_of":{"var":"y"}}]`, `
op a.b "" at /0/call/input 1:30
call t "" at /0 1:2
code u "" at /1 1:42
code of any
unknown call "" at /2 1:58
`},
		{`{"eval":{"quote":[{"a.b":1},{"call":{"tool":"t","input":1}},{"eval":{"quote":{"a.c":1}}},{"code_of":"u"}]},"with":["a","call:t"]}`, `
op a.b "" at /eval/quote/0 1:19
call t "" at /eval/quote/1 1:29
code u "" at /eval/quote/3 1:90
with ["a" "call:t"] at  1:1
inert a.c "" at /eval/quote/2/eval/quote 1:78
`},
		{`{"eval":{"quote":[{"a.b":1},{"eval":{"quote":{"a.c":{"in":"x"}}},"with":["a"]},{"call":{"tool":"t","input":1}}]}}`, `
with ["a"] at /eval/quote/1 1:29
inert a.b "" at /eval/quote/0 1:19
inert a.c "x" at /eval/quote/1/eval/quote 1:46
inert call:t "" at /eval/quote/2 1:80
`},
		{`{"eval":{"app":[{"var":"f"},{"a.b":1}]}}`, `
op a.b "" at /eval/app/1 1:29
`},
		{`{"eval":{"app":[{"var":"f"},{"a.b":1}]},"with":["a"]}`, `
op a.b "" at /eval/app/1 1:29
with ["a"] at  1:1
unknown eval "" at  1:1
`},
		{`{"eval":{"var":"q"},"with":[]}`, `
with [] at  1:1
`},
		{"x =>\n  par(!a.b(x),\n    eval('{!a.c(1)}, [\"a\"]),\n    @t(x))", `
op a.b "" at  2:7
op a.c "" at  3:12
call t "" at  4:5
with ["a"] at  3:5
`},
		{`{"mul":[2,{"var":"x"}]}`, "\n"},
		{`{"quote":{"eval":{"quote":[{"code_of":{"a.b":1}},{"call":{"tool":"t","input":{"code_of":"u"}}}]},"with":["a"]}}`, `
code u "" at /quote/eval/quote/1/call/input 1:78
code of any
`},
		{`{"code_of":{"quote":1}}`, "\ncode of any\n"},
	} {
		compile := core.Compile
		if !strings.HasPrefix(c.code, "{") && !strings.HasPrefix(c.code, "[") {
			compile = func(src []byte) (*core.Program, error) { return core.CompileText("", src) }
		}
		if p, err := compile([]byte(c.code)); err != nil {
			t.Errorf("%s: %v", c.code, err)
		} else if got := "\n" + said(p.Needs()); got != c.want {
			t.Errorf("%s needs%swant%s", c.code, got, c.want)
		}
	}
}

// TestNearApplied: a name that nothing binds is told with the one most like it that
// there is: a variable in scope, else, where it is applied, an operation; by both
// evaluators.
func TestNearApplied(t *testing.T) {
	for src, near := range map[string]string{
		`{"app":{"func":{"var":"lenth"},"arg":"abc"}}`:                                      "length",
		`{"app":[{"var":"lenth"},"abc"]}`:                                                   "length",
		`{"app":{"func":{"app":{"func":{"var":"mapp"},"arg":1}},"arg":2}}`:                  "map",
		`{"app":{"func":{"var":"plus"},"arg":1}}`:                                           "add",
		`{"let":[["lengths",{"lam":"x","body":1}]],"in":{"app":[{"var":"lengthz"},"abc"]}}`: "lengths",
		`{"let":[["x",1]],"in":{"app":[{"var":"lenth"},{"var":"x"}]}}`:                      "length",
		`{"add":[{"var":"lenth"},1]}`:                                                       "",
		`{"app":[{"var":"qqqqqq"},1]}`:                                                      "",
		`{"app":[{"lam":"x","body":1},{"var":"lenth"}]}`:                                    "",
	} {
		p := program{code: src}
		e, n := p.onEval(t), p.onNaive(t)
		sameFault(t, e, n)
		switch {
		case e.fault == nil:
			t.Errorf("%s gives %v", src, e)
		case e.fault.Near != near:
			t.Errorf("%s is near %q, want %q: %v", src, e.fault.Near, near, e.fault)
		case e.fault.Kind != fault.Unbound:
			t.Errorf("%s fails with %v", src, e.fault)
		}
	}
}

// alike is tools that are all alike, each compiled when it is looked up.
type alike struct{ made map[string]*core.Program }

func (l *alike) Tool(name string, _ bool) (core.Tool, bool) {
	if l.made[name] == nil {
		l.made[name], _ = core.CompileText(name, []byte("x => ["+strings.Repeat("-x,", 1000)+"x]"))
	}
	return l.made[name].Tool(), true
}

func (l *alike) Callee(name string, _ [][]string, _ fault.Pointer) (core.Tool, *fault.Fault) {
	t, _ := l.Tool(name, true)
	t.Tools = l
	return t, nil
}

// TestLookedUpCounts: the code of tools that a run looks up counts as the run's
// memory, once each: a short program can't hold a library of any size.
func TestLookedUpCounts(t *testing.T) {
	for _, c := range []struct {
		what, each string
		tools      int
		out        bool
	}{
		{"code_of few", `code_of(concat("t", to_text(i)))`, 3, false},
		{"code_of many", `code_of(concat("t", to_text(i)))`, 20, true},
		{"code_of one, often", `code_of("t")`, 2000, false},
		{"call few", `length(call(concat("t", to_text(i)), 1))`, 3, false},
		{"call many", `length(call(concat("t", to_text(i)), 1))`, 20, true},
		{"call one, often", `length(call("t", 1))`, 100, false},
	} {
		p, err := core.CompileText("user", fmt.Appendf(nil, "map(i => %s, range(0, %d))", c.each, c.tools))
		must.NoError(t, err)
		m := p.Start(core.Input{}, core.Budgets{Memory: 2 << 20}, &alike{map[string]*core.Program{}})
		state := m.Run(0)
		switch {
		case c.out && (state != core.Failed || m.Fault().Kind != fault.OutOfMemory):
			t.Errorf("%s: %v, %v; expected out_of_memory", c.what, state, m.Fault())
		case !c.out && state != core.Done:
			t.Errorf("%s: %v, %v", c.what, state, m.Fault())
		}
		m.Release()
	}
}

// TestRun: code in either form runs on an input read by its types, and ends with its
// budgets or its context, or where it would act.
func TestRun(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		ctx         context.Context
		code, input string
		budgets     core.Budgets
		want        string
		kind        fault.Kind
	}{
		{t.Context(), `n => n * n`, `12`, core.Budgets{}, "144", ""},
		{t.Context(), `{"lam":"n","body":{"mul":[{"var":"n"},{"var":"n"}]}}`, `1.5`, core.Budgets{}, "2.25", ""},
		{t.Context(), `(a, b) => a - b`, `{"b":1,"a":3}`, core.Budgets{}, "2", ""},
		{t.Context(), `s => s ++ "!"`, `"hi"`, core.Budgets{}, `"hi!"`, ""},
		{t.Context(), ` [1, 2] `, ``, core.Budgets{}, "[1,2]", ""},
		{t.Context(), `x => length(x)`, `{`, core.Budgets{}, "", fault.ParseError},
		{t.Context(), `(a, b) => a - b`, `{"b":1}`, core.Budgets{}, "", fault.InvalidRequest},
		{t.Context(), `n => n / 0`, `1`, core.Budgets{}, "", fault.DivisionByZero},
		{t.Context(), `let f = n => f(n + 1) in f(0)`, ``, core.Budgets{Steps: 1000}, "", fault.OutOfFuel},
		{t.Context(), `range(0, 1000000)`, ``, core.Budgets{Memory: 1 << 20}, "", fault.OutOfMemory},
		{t.Context(), `p => !fs.read(p)`, `"a"`, core.Budgets{}, "", fault.Denied},
		{over, `n => n`, `1`, core.Budgets{}, "", fault.Cancelled},
	} {
		p, err := core.Compile([]byte(c.code))
		must.NoError(t, err)
		r, err := core.Run(c.ctx, p, []byte(c.input), c.budgets)
		f := new(fault.Fault)
		if string(r.JSON) != c.want || (err == nil) != (c.kind == "") || errors.As(err, &f) && f.Kind != c.kind {
			t.Errorf("%s on %s: %s, %v", c.code, c.input, r.JSON, err)
		}
		if c.ctx == over && !errors.Is(err, context.Canceled) {
			t.Errorf("the cause is lost: %v", err)
		}
	}
	for code, want := range map[string]string{`{"add":[1,2,]}`: "JSON", `[{"add":[1]`: "", `n => (n`: "line 1", ``: ""} {
		if _, err := core.Compile([]byte(code)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", code, err)
		}
	}
}

// A tally counts what generated programs showed, by its name.
type tally map[string]int

// add counts what is so.
func (c tally) add(is map[string]bool) {
	for what, so := range is {
		if so {
			c[what]++
		}
	}
}

// shows fails where one of these was there less often.
func (c tally) shows(t *testing.T, least int, names ...string) {
	t.Helper()
	t.Log(c)
	for _, what := range names {
		if c[what] < least {
			t.Errorf("%s was there only %d times: the test shows little", what, c[what])
		}
	}
}

// stepsOf runs a program in the text form on n, with the steps it may use.
func stepsOf(t *testing.T, code string, n int, want string) uint64 {
	t.Helper()
	p, err := core.CompileText("t", []byte(code))
	must.NoError(t, err)
	in, err := core.ParseInput(fmt.Append(nil, n), core.InputAuto)
	must.NoError(t, err)
	m := p.Start(in, core.Budgets{Steps: 200_000_000}, nil)
	defer m.Release()
	if m.Run(0) != core.Done {
		t.Fatalf("%s of %d: %v", code, n, m.Fault())
	}
	if e, f := m.Encode(1 << 10); f != nil || want != "" && string(e.JSON) != want {
		t.Fatalf("%s of %d gives %s (%v), want %s", code, n, e.JSON, f, want)
	}
	return m.Steps()
}

// The library's sort, and records, take n log n steps: twice as many items
// take little more than twice the steps.
func TestScale(t *testing.T) {
	for name, code := range map[string]string{
		"sort":            `n => range(0, n) |> map(i => i * 7919 % 100003) |> sort |> length`,
		"sort sorted":     `n => range(0, n) |> sort |> length`,
		"sort backwards":  `n => range(0, n) |> reverse |> sort |> length`,
		"record":          `n => keys(fold(p => put(fst(p), to_text(snd(p) * 7919 % 100003), snd(p)), {}, range(0, n))) |> length`,
		"record read":     `n => let r = fold(p => put(fst(p), to_text(snd(p)), snd(p)), {}, range(0, n)) in fold(p => fst(p) + get(r, to_text(snd(p))) - snd(p), n, range(0, n))`,
		"vector":          `n => let xs = range(0, n) in fold(p => fst(p) + nth(xs, snd(p)) - snd(p), n, xs)`,
		"vector by parts": `n => fold(p => push(fst(p), snd(p)), [], range(0, n)) |> length`,
	} {
		t.Run(name, func(t *testing.T) {
			once := stepsOf(t, code, 25_000, "25000")
			twice := stepsOf(t, code, 50_000, "50000")
			if twice > once*23/10 {
				t.Errorf("25,000 items take %d steps, 50,000 %d", once, twice)
			}
		})
	}
	// A hundred thousand keys and a million items fit the default memory.
	stepsOf(t, `n => keys(fold(p => put(fst(p), to_text(snd(p)), snd(p)), {}, range(0, n))) |> length`, 100_000, "100000")
	stepsOf(t, `n => range(0, n) |> map(x => x + 1) |> sum`, 1_000_000, "500000500000")
}
