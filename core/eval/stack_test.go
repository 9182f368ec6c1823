package eval_test

import (
	"fmt"
	"testing"
)

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
