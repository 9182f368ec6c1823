package eval_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/eval"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// A loop through functions that were made in evals takes no space, however
// long it is: narrowing that changes nothing leaves nothing to put back.
func TestLoopThroughNarrowedFunctions(t *testing.T) {
	made := func(with string) string {
		return `{"eval":{"quote":{"lam":"h","body":{"lam":"n","body":{"app":[{"var":"h"},{"var":"h"},{"var":"n"}]}}}},"with":` + with + `}`
	}
	code := `{"let":[["g",` + made(`["a"]`) + `],["k",` + made(`["a","b"]`) + `],
		["s",{"lam":"h","body":{"lam":"n","body":{"if":{"cond":{"lte":[{"var":"n"},0]},"then":"end","else":
			{"app":[{"if":{"cond":{"eq":[{"mod":[{"var":"n"},3]},0]},"then":{"var":"g"},"else":{"var":"k"}}},{"var":"h"},{"sub":[{"var":"n"},1]}]}}}}}]],
		"in":{"app":[{"var":"s"},{"var":"s"},1000000]}}`
	m := mustCompile(t, code).Start(mustInput(t, "null", core.InputAuto), core.Budgets{Steps: 100_000_000, Memory: 400_000, Depth: 1}, nil)
	defer m.Release()
	if m.Run(0) != core.Done {
		t.Fatal(m.Fault())
	}
}

// Recursion through functions that narrow, which return to what they found:
// the stack grows where they begin.
func TestDeepThroughNarrowedFunctions(t *testing.T) {
	for _, deep := range []int{1, 10, 100, 1000, 5000} {
		// f was made outside; g, made in an eval, applies what it is given.
		// Before g there is always an application that is not narrowed.
		code := fmt.Sprintf(`{"let":[["g",{"eval":{"quote":{"lam":"f","body":{"lam":"n","body":{"add":[1,{"app":[{"var":"f"},{"var":"n"}]}]}}}},"with":["a"]}],
			["s",{"lam":"h","body":{"lam":"n","body":{"if":{"cond":{"lte":[{"var":"n"},0]},"then":{"length":[{"a.b":0}]},"else":
				{"add":[{"app":[{"var":"g"},{"app":[{"var":"h"},{"var":"h"}]},{"sub":[{"var":"n"},1]}]},1]}}}}}]],
			"in":[{"app":[{"var":"s"},{"var":"s"},%d]},{"a.b":1}]}`, deep)
		for _, slice := range []uint64{0, 1, 13} {
			trial{code: code, input: "null", reply: echo, slice: slice, budgets: core.Budgets{Steps: 1_000_000, Memory: 16 << 20, Depth: 100_000}}.check(t)
		}
		stressed(t, deep < 1000)
		trial{code: code, input: "null", reply: echo, budgets: core.Budgets{Steps: 1_000_000, Memory: 16 << 20, Depth: 100_000}}.check(t)
	}
}

// A function of any number of parameters narrows where it begins, with any
// number of arguments given in an eval.
func TestNarrowedParameters(t *testing.T) {
	for n := 1; n <= 26; n++ {
		for k := range n {
			body := `{"a.b":[{"var":"x0"}`
			for i := 1; i < n; i++ {
				body += fmt.Sprintf(`,{"var":"x%d"}`, i)
			}
			body += `]}`
			for i := n - 1; i >= 0; i-- {
				body = fmt.Sprintf(`{"lam":"x%d","body":%s}`, i, body)
			}
			args := func(from, to int) string {
				s := ""
				for i := from; i < to; i++ {
					s += fmt.Sprintf(",%d", i)
				}
				return s
			}
			part := `{"var":"f"}`
			if k > 0 {
				part = `{"app":[{"var":"f"}` + args(0, k) + `]}`
			}
			for _, outside := range []bool{false, true} {
				f, in := `["f",`+body+`],`, part
				if !outside {
					f, in = "", strings.Replace(part, `{"var":"f"}`, body, 1)
				}
				code := `{"let":[` + f + `["g",{"eval":{"quote":` + in + `},"with":["a"]}]],"in":[{"app":[{"var":"g"}` + args(k, n) + `]},{"a.b":"out"}]}`
				trial{code: code, input: "null", reply: echo, budgets: core.Budgets{Steps: 100_000, Memory: 4 << 20, Depth: 100}, slice: uint64(k % 3)}.check(t)
			}
		}
	}
}

// doubled is code in which b is a string that was doubled so many times.
func doubled(times, rest string) string {
	return `let b = fold(p => fst(p) ++ fst(p), "x", range(0, ` + times + `)) in ` + rest
}

func mustCompileText(t testing.TB, code string) *core.Program {
	t.Helper()
	p, err := core.CompileText("", []byte(code))
	if err != nil {
		t.Fatalf("%v\n%s", err, code)
	}
	return p
}

// allocated is how many bytes Go was asked for while f ran.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A string of a megabyte that stands thousands of times in a list is a megabyte
// in the machine; no operation may copy each of them before it has looked
// whether the run can pay for that.
func TestSharedStringsAreNotCopiedUnpaid(t *testing.T) {
	for _, c := range []struct {
		code string
		want fault.Kind
	}{
		{`length(join(repeat(3000, b), "-"))`, fault.OutOfMemory},
		{`length(keys(from_entries(repeat(3000, (b, 1)))))`, fault.OutOfMemory},
		{`contains(repeat(3000, b), 5)`, ""},
		{`contains(repeat(3000, b), "x")`, ""},
		{`contains(repeat(3000, {a: b}), {a: b, b: b})`, ""},
		{`type_of(to_code({op: "list", args: repeat(3000, {op: "string", value: b})}))`, fault.OutOfMemory},
		{`fold(p => type_of(b), 0, range(0, 3000))`, ""},
		{`fold(p => equal(b, "x"), 0, range(0, 3000))`, ""},
	} {
		p := mustCompileText(t, doubled("20", c.code))
		n := allocated(func() {
			m := p.Start(core.Input{}, core.Budgets{Steps: 100_000_000}, nil)
			defer m.Release()
			m.Run(0)
			if f := m.Fault(); c.want == "" && f != nil || c.want != "" && (f == nil || f.Kind != c.want) {
				t.Errorf("%s: %v", c.code, f)
			}
		})
		if n > 256<<20 {
			t.Errorf("%s: Go was asked for %d MiB", c.code, n>>20)
		}
	}
}

// What compiling takes counts as long as it lasts.
func TestCompilingIsCounted(t *testing.T) {
	for nodes, want := range map[int]fault.Kind{100_000: "", 300_000: fault.OutOfMemory} {
		p := mustCompileText(t, fmt.Sprintf(`eval(to_code({op: "list", args: repeat(%d, {op: "int", value: 1})}))`, nodes))
		m := p.Start(core.Input{}, core.Budgets{Steps: 100_000_000}, nil)
		m.Run(0)
		if f := m.Fault(); want == "" && f != nil || want != "" && (f == nil || f.Kind != want) {
			t.Errorf("%d nodes: %v", nodes, f)
		}
		m.Release()
	}
}

// A list isn't copied for an effect that the run has no memory for.
func TestLargeArgumentsAreNotCopiedUnpaid(t *testing.T) {
	p, f := compileAs("t", `{"kv.put":{"range":[0,4000000]}}`)
	must.NoFault(t, f)
	n := allocated(func() {
		m := p.Start(core.Input{}, core.Budgets{}, nil)
		defer m.Release()
		m.Run(0)
		if f := m.Fault(); f == nil || f.Kind != fault.OutOfMemory {
			t.Errorf("%v", f)
		}
	})
	if n > 128<<20 {
		t.Errorf("Go was asked for %d MiB", n>>20)
	}
}

// Nothing put after a text makes it no longer.
func TestEmptyPartsTakeNoRoom(t *testing.T) {
	for _, part := range []string{`fst(p) ++ "" ++ ""`, `"" ++ fst(p) ++ ""`} {
		p := mustCompileText(t, `fold(p => `+part+`, repeat_text("a", 60), range(0, 300000))`)
		m := p.Start(core.Input{}, core.Budgets{}, nil)
		m.Run(0)
		if m.Fault() != nil || m.Memory() > 8<<20 {
			t.Errorf("%s: %d bytes, %v", part, m.Memory(), m.Fault())
		}
		m.Release()
	}
}

// What is copied for an operation that costs a step counts for the slice: a
// caller who wants to stop gets to it after one of them, not after thousands.
func TestCopyingCountsForTheSlice(t *testing.T) {
	for _, op := range []string{`starts_with(b, "y")`, `equal(compare(b, "x"), 2)`, `has({a: 1}, b)`, `get({a: 1}, b, false)`} {
		p := mustCompileText(t, doubled("20", `fold(p => if `+op+` then 1 else 2, 0, range(0, 100))`))
		m := p.Start(core.Input{}, core.Budgets{}, nil)
		slices := 0
		for m.Run(2000) == core.Paused {
			slices++
		}
		if m.Fault() != nil {
			t.Fatal(m.Fault())
		}
		m.Release()
		if slices < 90 {
			t.Errorf("%s: a hundred copies of a megabyte in %d slices", op, slices)
		}
	}
}

// Code that a program makes counts with its names, its literals and its text,
// in the run's budget and in the pool.
func TestCodeMadeIsCounted(t *testing.T) {
	for _, node := range []string{`{op: "string", value: b}`, `{op: "var", name: b}`, `{op: "record", keys: [b], args: [{op: "int", value: 1}]}`, `{op: "lam", param: b, args: [{op: "int", value: 1}]}`} {
		p := mustCompileText(t, doubled("20", `fold(p => type_of(to_code(`+node+`)), 0, range(0, 500))`))
		m := p.Start(core.Input{}, core.Budgets{Steps: 100_000_000}, nil)
		held := eval.PoolHeld()
		most := int64(0)
		for m.Run(500) == core.Paused {
			most = max(most, eval.PoolHeld()-held)
		}
		if f := m.Fault(); f == nil || f.Kind != fault.OutOfMemory {
			t.Errorf("%.40s: 500 times a megabyte of code: %v", node, f)
		}
		if most < 32<<20 {
			t.Errorf("%.40s: the pool lent no more than %d MiB", node, most>>20)
		}
		m.Release()
		if now := eval.PoolHeld(); now > held {
			t.Errorf("%.40s: %d bytes are held after the end", node, now-held)
		}
	}
}

// What is shared and small stays as cheap as it was.
func TestEntriesWithSharedKeys(t *testing.T) {
	p := mustCompileText(t, doubled("10", `from_entries([(b, 1), (b, 2)])`))
	m := p.Start(core.Input{}, core.Budgets{}, nil)
	defer m.Release()
	m.Run(0)
	must.NoFault(t, m.Fault())
	if enc, f := m.Encode(4 << 10); f != nil || string(enc.JSON) != `{"`+strings.Repeat("x", 1024)+`":2}` {
		t.Errorf("%v %.50s", f, enc.JSON)
	}
}
