package eval_test

import (
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/eval"
)

const sumTo = `{"lam":"x","body":{"if":{"cond":{"lt":[{"var":"x"},1]},"then":0,"else":{"add":[{"var":"x"},{"app":[{"self":true},{"sub":[{"var":"x"},1]}]}]}}}}`

// What a run took from the pool is given back, whatever the sizes: a slab that
// served as a stack may be longer than the stack was.
func TestPoolGetsBackWhatItGave(t *testing.T) {
	p, f := compileAs("sum", sumTo)
	if f != nil {
		t.Fatal(f)
	}
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
