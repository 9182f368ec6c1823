package core_test

import (
	"testing"

	"github.com/mcp-pif/mcp-pif/core/fault"
)

// TestNearApplied: a name that nothing binds is told with the one most like it that
// there is: a variable in scope, else, where it is applied, an operation; by both
// evaluators.
func TestNearApplied(t *testing.T) {
	for src, near := range map[string]string{
		`{"app":{"func":{"var":"lenth"},"arg":"abc"}}`:                                      "length",
		`{"app":[{"var":"lenth"},"abc"]}`:                                                   "length",
		`{"app":{"func":{"app":{"func":{"var":"mapp"},"arg":1}},"arg":2}}`:                  "map",
		`{"app":{"func":{"var":"plus"},"arg":1}}`:                                           "add",
		`{"let":[["lengths",{"lam":"x","body":1}]],"in":{"app":[{"var":"lengthz"},"abc"]}}`: "lengths",
		`{"let":[["x",1]],"in":{"app":[{"var":"lenth"},{"var":"x"}]}}`:                      "length",
		`{"add":[{"var":"lenth"},1]}`:                                                       "",
		`{"app":[{"var":"qqqqqq"},1]}`:                                                      "",
		`{"app":[{"lam":"x","body":1},{"var":"lenth"}]}`:                                    "",
	} {
		p := program{code: src}
		e, n := p.onEval(t), p.onNaive(t)
		sameFault(t, e, n)
		switch {
		case e.fault == nil:
			t.Errorf("%s gives %v", src, e)
		case e.fault.Near != near:
			t.Errorf("%s is near %q, want %q: %v", src, e.fault.Near, near, e.fault)
		case e.fault.Kind != fault.Unbound:
			t.Errorf("%s fails with %v", src, e.fault)
		}
	}
}
