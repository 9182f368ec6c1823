package eval_test

import (
	"math/rand/v2"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// A run that takes n steps has the same outcome with a budget of n, and is out
// of fuel with one of n-1; pausing changes nothing.
func TestStepsAreExactAtTheBoundary(t *testing.T) {
	for seed := range full(50_000, 1_000) {
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
	for seed := range full(30_000, 700) {
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
