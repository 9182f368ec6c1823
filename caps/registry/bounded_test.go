package registry

import (
	"fmt"
	"maps"
	"runtime"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check"
)

// hard is code that is made to be hard to find things out of: long, deep, or with
// types and costs that grow without end. deep is the nesting that the parser lets
// through.
func hard() map[string]string {
	nest := func(n int, before, inner, after string) string {
		return strings.Repeat(before, n) + inner + strings.Repeat(after, n)
	}
	fill := func(n int, before, unit, after string) string {
		return before + strings.TrimSuffix(strings.Repeat(unit, n/len(unit)), ",") + after
	}
	lets := func(n int, first, last, each string) string {
		var b strings.Builder
		fmt.Fprintf(&b, `{"let":[["v0",%s]`, first)
		for i := range n {
			b.WriteString(strings.NewReplacer("%0", fmt.Sprintf(`{"var":"v%d"}`, i), "%1", fmt.Sprint("v", i+1)).Replace(`,["%1",` + each + `]`))
		}
		return b.String() + `],"in":` + strings.ReplaceAll(last, "%0", fmt.Sprintf(`{"var":"v%d"}`, n)) + "}"
	}
	const whole = 250_000
	const small = proofBytes - 400
	m := map[string]string{
		"a list":               fill(whole, "[1,", "1,", "]"),
		"failures":             fill(whole-1000, "[1,", `{"add":[1,"a"]},`, "]"),
		"maps":                 fill(whole-1000, "[", `{"map":[{"lam":"x","body":{"mul":[{"var":"x"},3]}},[1,2,3]]},`, "]"),
		"operations":           fill(whole-1000, "[", `{"fs.read":"a"},`, "]"),
		"other operations":     `[` + many(1_000, `{"toy%d.get":{"path":"a"}}`) + `]`,
		"deep operands":        nest(4_900, `{"add":[1,`, `1`, `]}`),
		"deep functions":       nest(9_000, `{"lam":"x","body":`, `{"var":"x"}`, `}`),
		"deep lists":           nest(9_900, `[`, `1`, `]`),
		"deep evals":           nest(4_900, `{"eval":{"quote":`, `1`, `}}`),
		"deep tries":           nest(9_000, `{"try":`, `1`, `}`),
		"deep sorts":           nest(1_500, `{"sort":`, `[1]`, `}`),
		"pairs of pairs":       lets(100, `{"pair":[1,2]}`, `%0`, `{"pair":[%0,%0]}`),
		"functions giving two": lets(40, `{"lam":"z","body":{"var":"z"}}`, `{"app":[%0,1]}`, `{"lam":"z","body":{"pair":[{"app":[%0,{"var":"z"}]},{"app":[%0,{"var":"z"}]}]}}`),
		"functions twice over": lets(40, `{"lam":"x","body":{"add":[{"var":"x"},1]}}`, `{"app":[%0,1]}`, `{"lam":"x","body":{"app":[%0,{"app":[%0,{"var":"x"}]}]}}`),
		"squares of squares":   lets(60, `{"lam":"x","body":{"mul":[{"var":"x"},{"var":"x"}]}}`, `%0`, `{"lam":"x","body":{"app":[%0,{"mul":[{"var":"x"},{"var":"x"}]}]}}`),
		"any of many keys": `{"lam":"xs","body":{"fold":[{"lam":"p","body":{"cond":[` +
			many(40, `[{"eq":[{"snd":{"var":"p"}},%d]},{"put":[{"fst":{"var":"p"}},"k%[1]d",{"fst":{"var":"p"}}]}]`) + `],"else":{"fst":{"var":"p"}}}},{"record":{}},{"var":"xs"}]}}`,
		"self on parts": `{"lam":"x","body":[` + many(100, `{"app":[{"self":true},{"nth":[{"var":"x"},%d]}]}`) + `]}`,
	}
	maps.Copy(m, costly())
	// What is small enough for its cost and its certificate to be worked out.
	m["small: a list"] = fill(small, "[1,", "1,", "]")
	m["small: sorts"] = fill(small, `{"lam":"x","body":[`, `{"sort":{"var":"x"}},`, "]}")
	m["small: functions"] = nest(small/20, `{"lam":"x","body":`, `{"var":"x"}`, `}`)
	m["small: products"] = `{"lam":"x","body":` + nest(small/24, `{"mul":[{"var":"x"},`, `{"var":"x"}`, `]}`) + `}`
	m["small: tries"] = nest(small/9, `{"try":`, `1`, `}`)
	m["small: evals"] = nest(small/20, `{"eval":{"quote":`, `1`, `}}`)
	m["small: lists"] = nest(small/3, `[`, `1`, `]`)
	m["small: folds"] = `{"lam":"x","body":` + nest(small/90, `{"fold":[{"lam":"p","body":{"add":[{"fst":{"var":"p"}},`, `1`, `]}},0,{"var":"x"}]}`) + `}`
	return m
}

func many(n int, format string) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(list, ",")
}

// mostAllocated is how many bytes may be allocated to find out all of a tool: most
// of it is garbage at once.
const mostAllocated = 48 << 20

// TestBounded: whatever the code, what is found out of it takes bounded work, is
// small, and is left out with a reason where it would take more.
func TestBounded(t *testing.T) {
	for name, src := range hard() {
		d := Definition{Name: "t", Code: []byte(src), Description: "x"}
		tool, err := prepare(d)
		if err != nil {
			t.Errorf("%s: %.200v", name, err)
			continue
		}
		tool.Program().Canonical()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		k := tool.know(ofTypes | ofSchemas | ofCost | ofNormal | ofProof)
		f := tool.facts()
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > mostAllocated {
			t.Errorf("%s: %d MiB were allocated", name, n>>20)
		} else {
			t.Logf("%-22s %7d bytes: %4.1f MiB allocated, %6d kept, %5d steps, cost %t (%s), normal %t, proof %t", name, len(src),
				float64(n)/(1<<20), k.size, k.report.Steps, k.costed, k.cost.Class, k.normal != "", k.proof != nil)
		}
		if k.size > maxRemembered/4 {
			t.Errorf("%s: %d bytes are remembered", name, k.size)
		}
		if name == "other operations" && (!k.report.Open || len(tool.Unreachable([]string{"toy9999.get"})) > 0) {
			t.Errorf("%s: some are left out, and it isn't said: %d", name, len(k.report.Effects))
		}
		if k.report.Steps > typeSteps {
			t.Errorf("%s: %d steps", name, k.report.Steps)
		}
		if over := len(k.report.Dynamic) == 1 && k.report.Dynamic[0].Reason == check.ReasonComplex; k.report.Steps == typeSteps && !over {
			t.Errorf("%s: the budget was used up, and it isn't said: %+v", name, k.report.Dynamic)
		}
		if len(f.Certificate) > maxCertificate || len(f.Input) > maxSchema || len(f.Output) > maxSchema {
			t.Errorf("%s: a certificate of %d bytes, schemas of %d and %d", name, len(f.Certificate), len(f.Input), len(f.Output))
		}
		if n := len(k.report.Diagnostics) + len(k.report.Dynamic) + len(k.report.Effects); n > 2*mostFound+mostEffects {
			t.Errorf("%s: %d places", name, n)
		}
	}
}
