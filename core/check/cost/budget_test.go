package cost_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check/cost"
)

// hostile is programs that are small for what they make an analysis do, each by
// something else than many terms that are evaluated.
func hostile() map[string]string {
	repeat := strings.Repeat
	record := func(n int, value string) string {
		fields := make([]string, n)
		for i := range fields {
			fields[i] = fmt.Sprintf("k%d: %s", i, value)
		}
		return "{" + strings.Join(fields, ", ") + "}"
	}
	lets := func(n int, first, each, last string) string {
		var b strings.Builder
		b.WriteString("x => let v0 = " + first)
		for i := range n {
			b.WriteString(strings.NewReplacer("%0", fmt.Sprint("v", i), "%1", fmt.Sprint("v", i+1)).Replace(", %1 = " + each))
		}
		return b.String() + " in " + strings.ReplaceAll(last, "%0", fmt.Sprint("v", n))
	}
	sum := "length(x.k0)"
	for i := range 180 {
		sum += fmt.Sprintf(" + length(x.k%d)", i+1)
	}
	return map[string]string{
		"records in records":   lets(12, "x", record(30, "%0"), "fold(p => fst(p), %0, x)"),
		"texts doubled":        lets(60, `"abcdefgh"`, "%0 ++ %0", "%0"),
		"sums of sums":         "x => let s = " + sum + ", r = range(0, s) in map(i => map(j => map(k => i + j + k, r), r), r)",
		"squares of sums":      lets(30, "x => "+sum+" + x", "x => (%0)(x * x)", "range(0, (%0)(1))"),
		"sorts of sums":        "x => let s = " + sum + ", r = range(0, s) in [" + repeat("sort(r), ", 500) + "1]",
		"a path without end":   lets(16, "y => y."+repeat("k", 4_000), "z => %0(%0(z))", "%0(x)"),
		"conditions":           "x => " + repeat("if x < 5 then ", 1_500) + "1" + repeat(" else 0", 1_500),
		"lists over and over":  lets(20, "y => ["+repeat("1, ", 5_000)+"1]", "z => %0(%0(z))", "%0(x)"),
		"records over":         lets(20, "y => "+record(1_000, "1"), "z => merge(%0(%0(z)), {a: 1})", "%0(x)"),
		"variables around":     "x => " + repeat("(y => ", 1_500) + "[" + repeat("x, ", 2_000) + "1]" + repeat(")(x)", 1_500),
		"calls of itself":      "x => " + repeat("(y => ", 300) + "if x <= 0 then 1 else [" + repeat("self(x - 1), ", 300) + "1]" + repeat(")(x * 2)", 300),
		"parameters":           "x => " + repeat("y => ", 3_000) + "1",
		"tries":                "x => " + repeat("try(", 3_000) + "x" + repeat(")", 3_000),
		"numbers":              lets(16, "y => 1"+repeat("7", 4_000), "z => %0(%0(z))", "%0(x)"),
		"unlike calls of many": "x => " + repeat("(h => h(h, x))((h, n) => if n <= 0 then 0 else h(h, n - 1) + ", 100) + "1" + repeat(")", 100),
	}
}

// TestBudget: what an analysis allocates is in proportion to its steps, whatever
// the program, and where they are used up there is no bound and a reason.
func TestBudget(t *testing.T) {
	const perStep, always, perByte = 8 << 10, 2 << 20, 200
	for name, code := range hostile() {
		p, err := core.CompileText("tool", []byte(code))
		if err != nil {
			t.Errorf("%s: %.300v", name, err)
			continue
		}
		for _, steps := range []int{500, 2_000, 8_000} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r := cost.Of(p.Term(), cost.Options{Tool: true, Source: p.Tool().Source, Steps: steps})
			runtime.ReadMemStats(&after)
			n := after.TotalAlloc - before.TotalAlloc
			t.Logf("%-22s %6d bytes, %5d steps: %5.1f MiB, %s %d", name, len(code), steps, float64(n)/(1<<20), r.Class, len(r.Why))
			if n > uint64(always+perByte*len(code)+perStep*steps) {
				t.Errorf("%s: %d MiB were allocated in %d steps", name, n>>20, steps)
			}
			if !r.Steps.Finite() && (len(r.Why) == 0 || !r.Why[0].Unbounded) {
				t.Errorf("%s: no bound, and no reason: %+v", name, r.Why)
			}
		}
	}
}

// TestSteps: a program has the same report whatever the steps, if they are enough,
// and no bound if they are not.
func TestSteps(t *testing.T) {
	for _, code := range shapes {
		p, err := core.CompileText("tool", []byte(code))
		if err != nil {
			t.Fatal(err)
		}
		o := cost.Options{Tool: true, Source: p.Tool().Source}
		want := cost.Of(p.Term(), o)
		last := false
		for o.Steps = 1; o.Steps < cost.Steps; o.Steps *= 2 {
			r := cost.Of(p.Term(), o)
			same := r.Steps.Equal(want.Steps) && r.Memory.Equal(want.Memory)
			if !same && (r.Steps.Finite() || r.Memory.Finite() || len(r.Why) == 0 || !r.Why[0].Unbounded) || last && !same {
				t.Errorf("%s: in %d steps %s, %s", code, o.Steps, r.Steps, r.Memory)
			}
			last = same
		}
		if !last {
			t.Errorf("%s: %d steps are not enough", code, o.Steps/2)
		}
	}
}
