package registry

import (
	"fmt"
	"strings"
)

// costly is code as long as its cost is still looked at, that is made to be hard to
// find a bound for: the terms are few for the formulas, paths and values that come
// of them.
func costly() map[string]string {
	const n = costBytes * 3 / 5
	times := func(n int, unit string) string { return strings.TrimSuffix(strings.Repeat(unit, n/len(unit)), ",") }
	record := func(keys int, value string) string {
		return `{"record":{` + strings.ReplaceAll(many(keys, `"k%d":?`), "?", value) + `}}`
	}
	lets := func(n int, first, each, last string) string {
		var b strings.Builder
		fmt.Fprintf(&b, `{"lam":"x","body":{"let":[["v0",%s]`, first)
		for i := range n {
			fmt.Fprintf(&b, `,["v%d",%s]`, i+1, strings.ReplaceAll(each, "%0", fmt.Sprintf(`{"var":"v%d"}`, i)))
		}
		return b.String() + `],"in":` + strings.ReplaceAll(last, "%0", fmt.Sprintf(`{"var":"v%d"}`, n)) + "}}"
	}
	nest := func(n int, before, inner, after string) string {
		return `{"lam":"x","body":` + strings.Repeat(before, n) + inner + strings.Repeat(after, n) + "}"
	}
	const twice, applied = `{"lam":"z","body":{"app":[%0,{"app":[%0,{"var":"z"}]}]}}`, `{"app":[%0,{"var":"x"}]}`
	length := `{"length":{"get":[{"var":"x"},"k0"]}}`
	for i := range 180 {
		length = fmt.Sprintf(`{"add":[%s,{"length":{"get":[{"var":"x"},"k%d"]}}]}`, length, i+1)
	}
	ranged := lets(1, `{"range":[0,`+length+`]}`, `1`, `?`)
	ranged = strings.ReplaceAll(ranged, `{"var":"v1"}`, "")
	again := `{"app":[{"self":true},{"sub":[{"var":"x"},1]}]},`
	ending := func(more string) string {
		return `{"if":{"cond":{"lte":[{"var":"x"},0]},"then":1,"else":[` + more + `]}}`
	}
	return map[string]string{
		"cost: records in records": lets(3, `{"var":"x"}`, record(40, "%0"), `{"fold":[{"lam":"p","body":{"fst":{"var":"p"}}},%0,{"var":"x"}]}`),
		"cost: texts doubled":      lets(60, `"abcdefgh"`, `{"concat":[%0,%0]}`, `{"get":[{"var":"x"},%0]}`),
		"cost: a long path":        nest(n/16, `{"get":[`, `{"var":"x"}`, `,"abcd"]}`),
		"cost: long keys":          lets(14, `{"lam":"y","body":{"get":[{"var":"y"},"`+times(n/2, "k")+`"]}}`, twice, applied),
		"cost: long lists":         lets(20, `{"lam":"y","body":[`+times(n/2, "1,")+`]}`, twice, applied),
		"cost: sorts of sums":      strings.ReplaceAll(ranged, "?", "["+times(n/2, `{"sort":{"var":"v0"}},`)+"]"),
		"cost: maps of sums": strings.ReplaceAll(ranged, "?", strings.Repeat(`{"map":[{"lam":"i","body":`, 6)+`{"var":"i"}`+
			strings.Repeat(`},{"var":"v0"}]}`, 6)),
		"cost: selfs":          `{"lam":"x","body":` + ending(times(n-100, again)) + `}`,
		"cost: selfs in depth": nest(n/80, `{"app":[{"lam":"w","body":`, ending(times(n/4, again)), `},{"mul":[{"var":"x"},2]}]}`),
		"cost: conditions":     nest(n/60, `{"if":{"cond":{"lt":[{"var":"x"},5]},"then":`, `1`, `,"else":0}}`),
		"cost: ands":           nest(n/40, `{"and":[{"lt":[{"var":"x"},5]},`, `true`, `]}`),
		"cost: products":       nest(n/24, `{"mul":[{"var":"x"},`, `1`, `]}`),
		"cost: folds":          nest(n/90, `{"fold":[{"lam":"p","body":{"add":[{"fst":{"var":"p"}},`, `1`, `]}},0,{"var":"x"}]}`),
		"cost: tries":          nest(n/9, `{"try":`, `1`, `}`),
		"cost: functions":      nest(n/60, `{"app":[{"lam":"y","body":`, `["`+times(n/4, `a`)+`"]`, `},{"var":"x"}]}`),
		"cost: large records":  lets(1, record(n/16, "1"), `%0`, "["+times(n/3, `{"keys":{"var":"v0"}},`)+"]"),
		"cost: sorts":          `{"lam":"x","body":[` + times(n-100, `{"sort":{"var":"x"}},`) + `]}`,
	}
}
