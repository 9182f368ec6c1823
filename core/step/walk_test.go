package step_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/step"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// walk is a walk through code on an input, whose effects give numbers.
func walk(t testing.TB, code, input string, budgets core.Budgets, max uint64) *step.Walk {
	t.Helper()
	p, err := core.Compile([]byte(code))
	must.NoError(t, err)
	in, err := core.ParseInput([]byte(input), core.InputData)
	must.NoError(t, err)
	return step.New([]step.Round{{Program: p, Input: in, Budgets: budgets, Begin: func() (core.Tools, func([]core.Request) []core.Answer) {
		n := 0
		return nil, func(requests []core.Request) []core.Answer {
			answers := make([]core.Answer, len(requests))
			for i := range answers {
				n++
				answers[i].Value = value.NewInt(int64(n))
			}
			return answers
		}
	}}}, max)
}

const program = `n =>
  let square = x =>
        x * x in
  let total = fold(((sum, x)) => sum + square(x), 0, range(0, n)) in
  let got = try(!fs.read("a.txt")) in
  let bad = try(1 / (n - n)) in
  par(!fs.read("b.txt"), total)`

func TestWhatIsShown(t *testing.T) {
	t.Parallel()
	w, ctx := walk(t, program, "3", core.Budgets{}, 0), t.Context()
	find := func(p *step.Point, err error) step.View {
		t.Helper()
		must.NoError(t, err)
		return p.View()
	}
	vars := func(v step.View) (s string) {
		for _, x := range v.Vars {
			s += x.Name + "=" + x.Value + " "
		}
		return s
	}
	calls := func(v step.View) (s string) {
		for _, c := range v.Calls {
			s += fmt.Sprintf("%s@%d ", c.Name, c.Line)
		}
		return s
	}
	for _, c := range []struct {
		name  string
		wants step.Wanted
		want  string
	}{
		{"breakpoint", step.Line("", 3), `eval code 3:11 x * x → 0; x=0 n=3 ; square@4 ((sum, x)) => …@4 code@1 `},
		{"effect", step.Acted, `effect code 5:17 !fs.read("a.txt") → 1; total=5 square=a function n=3 ; code@1 fs.read "a.txt" gave 1`},
		{"fault", step.Failed, `fault code 6:19 1 / (n - n) → division_by_zero: div of the integer 1 by 0; got={ok: 1} total=5 square=a function n=3 ; code@1 `},
		{"end", step.OfKind(step.End), `end    → [2,5]; ; `},
	} {
		v := find(w.Next(ctx, 0, c.wants))
		got := fmt.Sprintf("%s %s %s → %s; %s; %s", v.Kind, strings.TrimSuffix(v.Place.Text(), "/"), v.Term, v.Value+v.Failure, vars(v), calls(v))
		if v.Asked != "" {
			got += v.Asked + " gave " + v.Gave
		}
		if got != c.want {
			t.Errorf("%s:\n%s, expected\n%s", c.name, got, c.want)
		}
	}
	// Every line of the loop is come to three times, and once more back.
	lines := 0
	for p, err := w.Next(ctx, 0, step.Line("code", 3)); err == nil; p, err = w.Next(ctx, p.N, step.Line("code", 3)) {
		lines++
		if back := find(w.Previous(ctx, p.N+1, step.Line("code", 3))); back.N != p.N {
			t.Errorf("point %d is found again as %d", p.N, back.N)
		}
	}
	if lines != 3 {
		t.Errorf("line 3 was come to %d times", lines)
	}
	inner, err := w.Next(ctx, 0, step.Line("", 3))
	must.NoError(t, err)
	if v := find(w.Next(ctx, inner.N, step.Out(inner))); v.Line != 4 || len(v.Calls) != 2 && len(v.Calls) != 1 {
		t.Errorf("out of it is %+v", v)
	}
	if v := find(w.Next(ctx, 2, step.Over(must.Value(w.At(ctx, 2))))); v.N <= 2 {
		t.Errorf("over is %+v", v)
	}
	if branch := find(w.Previous(ctx, 1<<40, step.Acted)); branch.Branch != "0" || branch.Gave != "2" {
		t.Errorf("the effect in a branch is %+v", branch)
	}
	if v := find(w.Near(ctx, 1<<40)); v.Kind != step.End {
		t.Errorf("the last point is %+v", v)
	}
	if _, err := w.At(ctx, 1<<40); !errors.Is(err, step.ErrNoPoint) {
		t.Errorf("there is a point beyond the end: %v", err)
	}
	if _, err := w.Previous(ctx, 0, step.Any); !errors.Is(err, step.ErrNoPoint) {
		t.Errorf("there is a point before the first: %v", err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := walk(t, program, "3", core.Budgets{}, 0).At(ended, 3); !errors.Is(err, context.Canceled) {
		t.Errorf("a walk that nobody waits for gives %v", err)
	}
}

// A profile has all steps, by line and function, in calls.
func TestProfile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code, input string
		budgets     core.Budgets
	}{
		{program, "30", core.Budgets{}},
		{`let fib = n => if n < 2 then n else self(n - 1) in fib`, "3", core.Budgets{}},
		{"let rec fib = n =>\n if n < 2 then n\n else fib(n - 1) + fib(n - 2) in\nfib(15)", "null", core.Budgets{}},
		{"xs =>\n sort(map(x => x * 2, xs))", "[3,1,2]", core.Budgets{}},
		{`{"app":[{"lam":"x","body":{"mul":[{"var":"x"},{"var":"x"}]}},4]}`, "null", core.Budgets{}},
		{"let f = n => 1 + f(n + 1) in f(0)", "null", core.Budgets{Steps: 5000}},
	} {
		w := walk(t, c.code, c.input, c.budgets, 0)
		s, err := w.Summary(t.Context())
		must.NoError(t, err)
		var lines uint64
		all := s.Profile.Lines(1000)
		for _, l := range all {
			lines += l.Steps
			if l.All > s.Steps || l.All < l.Steps {
				t.Errorf("%s: %+v of %d steps", c.code, l, s.Steps)
			}
		}
		if s.Profile.Root.Total() != s.Steps || lines != s.Steps || s.Steps == 0 {
			t.Errorf("%s: %d steps, the tree has %d, the lines %d: %+v", c.code, s.Steps, s.Profile.Root.Total(), lines, all)
		}
	}
	s, err := walk(t, program, "100", core.Budgets{}, 0).Summary(t.Context())
	must.NoError(t, err)
	if top := s.Profile.Lines(2); top[0].Line != 4 || top[1].Name != "square" || top[1].Line != 3 {
		t.Errorf("most was taken by %+v", top)
	}
	if len(s.Effects) != 2 || len(s.Faults) != 1 || !s.Whole {
		t.Errorf("in sum it is %+v", s)
	}
}

// A walk through a long run holds little, and goes only so far.
func TestLongRuns(t *testing.T) {
	t.Parallel()
	w := walk(t, `fold(((sum, x)) => length(push(range(0, 100), x)), 0, range(0, 200000))`, "null", core.Budgets{Steps: 1 << 40}, 100_000)
	p, err := w.Near(t.Context(), 30_000)
	must.NoError(t, err)
	if p.Steps < 29_000 || p.Steps > 30_000 {
		t.Errorf("near 30000 is %d", p.Steps)
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	if m.HeapAlloc > 200<<20 {
		t.Errorf("%d bytes are held", m.HeapAlloc)
	}
	p, err = w.Near(t.Context(), 1<<40)
	if err != nil || p.Kind != step.Limit || p.N != 99_999 {
		t.Errorf("it ends with %+v: %v", p, err)
	}
}

// A run that allocates more than the reference evaluator may, and succeeds, isn't shown as failed.
func TestMemory(t *testing.T) {
	t.Parallel()
	w := walk(t, `fold((acc, x) => [...acc, x], [], range(0, 3000)) |> length`, "null", core.Budgets{Memory: 1 << 20}, 0)
	s, err := w.Summary(t.Context())
	must.NoError(t, err)
	if s.Whole || len(s.Faults) > 0 {
		t.Errorf("the walk is whole: %v, faults at %v", s.Whole, s.Faults)
	}
	p, err := w.At(t.Context(), s.Points-1)
	must.NoError(t, err)
	if p.Kind != step.Limit || p.View().Failure != "" || p.Steps == 0 {
		t.Errorf("it ends with %+v", p.View())
	}
}

// BenchmarkAt goes to points within a million steps, each in a pass of its own.
func BenchmarkAt(b *testing.B) {
	for name, code := range map[string]string{
		"loop":      `let go = (n, sum) => if n == 0 then sum else go(n - 1, sum + n) in go(90000, 0)`,
		"recursive": `let fib = n => if n < 2 then n else fib(n - 1) + fib(n - 2) in fib(23)`,
		"library":   `range(0, 60000) |> map(x => x * x) |> filter(x => x > 10) |> sum`,
	} {
		b.Run(name, func(b *testing.B) {
			w := walk(b, code, "null", core.Budgets{}, 0)
			s, err := w.Summary(b.Context())
			must.NoError(b, err)
			b.Logf("%d points, %d steps", s.Points, s.Steps)
			n := uint64(0)
			for b.Loop() {
				n = (n + 390_001) % min(s.Points, 1_000_000)
				if _, err := w.At(b.Context(), n); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
