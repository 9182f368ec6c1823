package eval_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/eval"
	"github.com/mcp-pif/mcp-pif/core/must"
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
	for seed := range must.Full(40, 2_000) {
		stressed(t, true)
		if seed%3 == 0 {
			stressedNot()
		}
		o := structures(rand.New(rand.NewPCG(uint64(seed), 3))).check(t)
		kinds[string(o.Kind)+o.Type]++
	}
	t.Log(kinds)
}

// A collection that raises the limit of the stack's clean part clears up to it:
// a window that comes to lie there has registers that nothing writes, like the
// closure of a function that needs none.
func TestNewWindowsAreClean(t *testing.T) {
	stressed(t, false)
	for _, deep := range []string{"5", "60", "400", "3000"} {
		// One list at the start, one at the bottom, none between.
		trial{tool: "sum", input: deep, code: `{"lam":"x","body":{"if":{
			"cond":{"lt":[{"var":"x"},1]},
			"then":{"head":[{"var":"x"}]},
			"else":{"add":[
				{"if":{"cond":{"eq":[{"var":"x"},` + deep + `]},"then":{"head":[{"var":"x"}]},"else":0}},
				{"add":[1,{"app":[{"self":true},{"sub":[{"var":"x"},1]}]}]}]}}}}`}.check(t)
	}
}

// An input's code may need a wider window than the program's.
func TestInputWithAWideWindow(t *testing.T) {
	for _, wide := range []int{20, 60, 120, 180, 250} {
		e := `{"app":[{"var":"f"},7]}`
		for i := range wide {
			e = fmt.Sprintf(`{"add":[{"head":{"tail":[0,%d]}},%s]}`, i, e)
		}
		in := `{"app":[{"lam":"f","body":` + e + `},{"lam":"n","body":{"head":[{"var":"n"}]}}]}`
		trial{code: `{"lam":"x","body":{"var":"x"}}`, input: in}.check(t)
		trial{code: `{"lam":"x","body":{"var":"x"}}`, input: `[1,` + in + `]`, slice: 7}.check(t)
	}
}

// TestOwned: a fold whose put changes its record in place, and a push that adds where the
// list is, leave what others see as it was.
func TestOwned(t *testing.T) {
	big := `fold((acc, i) => put(acc, to_text(i), i), {}, range(0, 50))`
	for _, src := range []string{
		`let r = {a: 1, b: 2} in [fold((acc, x) => put(acc, "a", x), r, [5, 6, 7]), fold((acc, x) => put(acc, "c", x), r, [8, 9]), r]`,
		`let r = ` + big + ` in [fold((acc, x) => put(acc, to_text(x), 0 - x), r, [5, 6, 5, 70]), r]`,
		`let r = ` + big + ` in [fold((acc, x) => if x > 5 then put(acc, "5", [x, get(acc, "5")]) else acc, r, [5, 6, 7]), fold((acc, x) => acc, r, [1]), r]`,
		`fold((acc, x) => put(acc, to_text(x % 5), [get(acc, "0", 0), has(acc, "3"), x]), {}, range(0, 50))`,
		`fold((acc, x) => put(acc, to_text(x), y => get(acc, "0", y)), {}, range(0, 4)) |> map_values(f => f(9))`,
		`fold((acc, x) => put(acc, "k", [acc, x]), {}, [1, 2, 3])`,
		`fold((acc, x) => put(put(acc, "a", x), "b", get(acc, "a", 0)), {a: 0, b: 0}, [1, 2, 3])`,
		`fold((acc, x) => let old = acc in put(acc, "k", get(old, "k", 0) + x), {}, [1, 2, 3])`,
		`fold((acc, x) => let before = [acc] in put(acc, "k", before), {k: 1}, [1, 2, 3])`,
		`fold((acc, x) => put(acc, "k", fold((a, y) => a + y + get(acc, "k", 1), 0, [x, x])), {}, [1, 2, 3])`,
		`fold((acc, x) => put(acc, "k", (y => get(acc, "k", y))(x)), {}, [1, 2, 3])`,
		`fold((acc, x) => put(acc, x, 1), {a: 1}, ["a", "b", 3])`,
		`fold((acc, x) => put(acc, "a", 1), 7, [1])`,
		`[try(fold((acc, x) => put(acc, "a", 10 / x), {a: 0}, [5, 2, 0])), fold((acc, x) => put(acc, "a" ++ to_text(x), x), {a: 0}, range(0, 60))]`,
		`let xs = range(0, 40), a = push(xs, 1), b = push(xs, 2), c = push(a, 3), d = push(a, 4), e = push(slice(c, 3, 41), 5) in [xs, a, b, c, d, e, push(c, 6)]`,
		`let xs = fold((acc, i) => push(acc, i), [], range(0, 12)), a = push(xs, 1), b = push(xs, 2) in [xs, a, b, [0, ...a], tail(b), push(cons(9, b), 3)]`,
		`let xs = fold((acc, x) => cons(x, acc), [], range(0, 70)) in reverse(xs)`,
		`let xs = fold((acc, x) => cons(x, acc), [], [1, 2, 3]) in [reverse(xs), reverse(xs), xs]`,
		`let xs = fold((acc, x) => cons([x, acc], acc), [], [1, 2, 3]) in reverse(xs)`,
		`let xs = fold((acc, x) => if x == 2 then acc else let a = acc in cons(x, a), [], [1, 2, 3]) in fold((a, x) => cons(x, a), [9, 8], xs)`,
		`let xs = fold((acc, x) => cons(x, acc), [], [1, 2, 3]) in fold((a, x) => cons(x, a), 7, xs)`,
		`let xs = fold((acc, x) => cons(x, acc), [5], [1, 2, 3]), ys = [5] in [reverse(xs), ys]`,
		`map(i => filter(x => x % 3 != i, map(x => x * i, range(0, 40))), range(0, 4))`,
		`scan((acc, i) => push(acc, i), [], range(0, 70)) |> map(xs => [length(xs), xs[0], last(xs)])`,
	} {
		for _, tight := range []bool{false, true} {
			tr := trial{code: string(mustCompileText(t, src).Canonical()), budgets: core.Budgets{Steps: 200_000, Memory: 16 << 20, Depth: 1000}}
			if tight {
				stressed(t, true)
			} else {
				stressedNot()
			}
			tr.check(t)
		}
	}
	stressedNot()
}

const sumTo = `{"lam":"x","body":{"if":{"cond":{"lt":[{"var":"x"},1]},"then":0,"else":{"add":[{"var":"x"},{"app":[{"self":true},{"sub":[{"var":"x"},1]}]}]}}}}`

// What a run took from the pool is given back, whatever the sizes: a slab that
// served as a stack may be longer than the stack was.
func TestPoolGetsBackWhatItGave(t *testing.T) {
	p, f := compileAs("sum", sumTo)
	must.NoFault(t, f)
	held := eval.PoolHeld()
	for _, deep := range []string{"300", "600", "1000", "3000", "20000", "1000"} {
		m := p.Start(mustInput(t, deep, core.InputAuto), core.Budgets{}, nil)
		if m.Run(0) != core.Done {
			t.Fatal(m.Fault())
		}
		m.Release()
		if now := eval.PoolHeld(); now != held {
			t.Errorf("%d bytes are held after a recursion %s deep", now-held, deep)
		}
	}
}

// A machine that runs again does what a new one does, whatever it did before.
func TestRestartForgets(t *testing.T) {
	var progs []*core.Program
	for _, src := range []string{
		`x => x * x`, `x => y => x - y`, `x => [x, x]`, `x => 1 / x`, `x => f(x)`,
		`x => if x == 5 then 0 else y => z => x + y`, `x => if x == 0 then [x, [x], [x]] else x`,
		"x => let a = [x, x]" + strings.Repeat(", a = [a, a]", 12) + " in a",
	} {
		progs = append(progs, mustCompileText(t, src))
	}
	one, two := mustInput(t, "7", core.InputAuto), mustInput(t, "[8]", core.InputAuto)
	inputs := []core.Input{one, core.Inputs(one, mustInput(t, "5", core.InputAuto)), two, {}, mustInput(t, "0", core.InputAuto), mustInput(t, `{"eval":{"quote":3}}`, core.InputAuto)}
	budgets := []core.Budgets{{}, {Steps: 5}, {Depth: 1}, {Memory: 20_000}, {Memory: 16_450}}
	tell := func(m *core.Machine, look int) string {
		told := fmt.Sprint(m.Run(0), m.Steps(), m.Memory(), m.Fault())
		switch {
		case m.State() != core.Done:
		case look == 0:
			told += fmt.Sprintf("%T", m.Value())
		case look == 1:
			enc, f := m.Encode(1 << 10)
			told += fmt.Sprint(string(enc.JSON), f)
		}
		return told
	}
	again := progs[0].Start(one, budgets[0], nil)
	defer again.Release()
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 1_000 {
		p := progs[rnd.IntN(len(progs))]
		for range 4 {
			in, b, look := inputs[rnd.IntN(len(inputs))], budgets[rnd.IntN(len(budgets))], rnd.IntN(3)
			p.Restart(again, in, b, nil)
			got := tell(again, look)
			m := p.Start(in, b, nil)
			if want := tell(m, look); got != want {
				t.Fatalf("%s: %s, as a new machine %s", p.Text(), got, want)
			}
			m.Release()
		}
	}
}
