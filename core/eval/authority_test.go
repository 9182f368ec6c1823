package eval_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
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
