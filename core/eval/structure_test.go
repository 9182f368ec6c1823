package eval_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
)

// structures makes a program that builds lists and records of up to some
// thousand items one out of another, in every representation, and gives all of
// them: a wrong one shows, and so does one that was changed in place.
func structures(r *rand.Rand) trial {
	lists, records, strs := []string{`[1,2]`, `{"range":[0,40]}`}, []string{`{"record":{"a":1}}`}, []string{`"k"`}
	var names, values []string
	// Where something fails its place is taken by what there was before.
	name := func(kind *[]string, value string) {
		value = fmt.Sprintf(`{"get":[{"try":%s},"ok",%s]}`, value, (*kind)[len(*kind)-1])
		v := fmt.Sprintf("v%d", len(names))
		names, values = append(names, v), append(values, value)
		*kind = append(*kind, `{"var":"`+v+`"}`)
	}
	pick := func(of []string) string { return of[max(r.IntN(len(of)), r.IntN(len(of)))] }
	index := func(l string) string {
		return fmt.Sprintf(`{"mod":[%d,{"add":[{"length":%s},%d]}]}`, r.IntN(5000), l, []int{0, 0, 0, 1}[r.IntN(4)])
	}
	key := func() string {
		switch r.IntN(4) {
		case 0:
			return pick(strs)
		case 1:
			return fmt.Sprintf(`{"concat":[%s,"%d"]}`, pick(strs), r.IntN(60))
		}
		return fmt.Sprintf(`"%d"`, r.IntN(60))
	}
	for range 5 + r.IntN(60) {
		l, rec := pick(lists), pick(records)
		switch r.IntN(18) {
		case 0:
			name(&lists, fmt.Sprintf(`{"range":[0,%d]}`, []int{1, 31, 32, 33, 63, 64, 65, 1023, 1025, 2000}[r.IntN(10)]))
		case 1, 2:
			name(&lists, fmt.Sprintf(`{"push":[%s,%d]}`, l, r.IntN(100)))
		case 3, 4:
			name(&lists, fmt.Sprintf(`{"set_nth":[%s,%s,%s]}`, l, index(l), pick(lists)))
		case 5, 6:
			from := r.IntN(70)
			name(&lists, fmt.Sprintf(`{"slice":[%s,%d,%d]}`, l, from, from+r.IntN(1100)))
		case 7:
			name(&lists, fmt.Sprintf(`{"cons":[%d,%s]}`, r.IntN(9), l))
		case 8:
			name(&lists, fmt.Sprintf(`{"tail":%s}`, l))
		case 9:
			name(&lists, fmt.Sprintf(`{"fold":[{"lam":"p","body":{"%s":[{"fst":{"var":"p"}},{"snd":{"var":"p"}}]}},[],%s]}`, []string{"push", "pair"}[r.IntN(16)/15], l))
		case 10:
			name(&lists, fmt.Sprintf(`[{"nth":[%s,%s]},{"length":%s},{"isEmpty":%s}]`, l, index(l), l, l))
		case 11, 12:
			name(&records, fmt.Sprintf(`{"put":[%s,%s,%s]}`, rec, key(), pick(lists)))
		case 13: // many at once: the record becomes a tree
			name(&records, fmt.Sprintf(`{"fold":[{"lam":"p","body":{"put":[{"fst":{"var":"p"}},{"to_text":{"mod":[{"mul":[{"snd":{"var":"p"}},%d]},%d]}},{"snd":{"var":"p"}}]}},%s,{"range":[0,%d]}]}`,
				7+r.IntN(90), 40+r.IntN(200), rec, r.IntN(150)))
		case 14:
			name(&records, fmt.Sprintf(`{"del":[%s,%s]}`, rec, key()))
		case 15:
			name(&records, fmt.Sprintf(`{"fold":[{"lam":"p","body":{"del":[{"fst":{"var":"p"}},{"to_text":{"mul":[{"snd":{"var":"p"}},%d]}}]}},%s,{"range":[0,%d]}]}`, 1+r.IntN(3), rec, r.IntN(80)))
		case 16:
			name(&lists, fmt.Sprintf(`[{"has":[%s,%s]},{"get":[%s,%s,null]},{"keys":%s}]`, rec, key(), rec, key(), rec))
		default:
			name(&strs, fmt.Sprintf(`{"concat":[%s,%s]}`, pick(strs), key()))
		}
	}
	code := `[` + strings.Join(append(append(lists[2:], records...), strs...), ",") + `]`
	for i := len(names) - 1; i >= 0; i-- {
		code = fmt.Sprintf(`{"let":[[%q,%s]],"in":%s}`, names[i], values[i], code)
	}
	return trial{code: code, input: "null", budgets: core.Budgets{Steps: 2_000_000, Memory: 64 << 20, Depth: 1000}}
}

func TestStressStructures(t *testing.T) {
	kinds := map[string]int{}
	for seed := range full(2_000, 100) {
		stressed(t, true)
		if seed%3 == 0 {
			stressedNot()
		}
		o := structures(rand.New(rand.NewPCG(uint64(seed), 3))).check(t)
		kinds[string(o.Kind)+o.Type]++
	}
	t.Log(kinds)
}
