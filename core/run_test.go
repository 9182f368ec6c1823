package core_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// TestRun: code in either form runs on an input read by its types, and ends with its
// budgets or its context, or where it would act.
func TestRun(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		ctx         context.Context
		code, input string
		budgets     core.Budgets
		want        string
		kind        fault.Kind
	}{
		{t.Context(), `n => n * n`, `12`, core.Budgets{}, "144", ""},
		{t.Context(), `{"lam":"n","body":{"mul":[{"var":"n"},{"var":"n"}]}}`, `1.5`, core.Budgets{}, "2.25", ""},
		{t.Context(), `(a, b) => a - b`, `{"b":1,"a":3}`, core.Budgets{}, "2", ""},
		{t.Context(), `s => s ++ "!"`, `"hi"`, core.Budgets{}, `"hi!"`, ""},
		{t.Context(), ` [1, 2] `, ``, core.Budgets{}, "[1,2]", ""},
		{t.Context(), `x => length(x)`, `{`, core.Budgets{}, "", fault.ParseError},
		{t.Context(), `(a, b) => a - b`, `{"b":1}`, core.Budgets{}, "", fault.InvalidRequest},
		{t.Context(), `n => n / 0`, `1`, core.Budgets{}, "", fault.DivisionByZero},
		{t.Context(), `let f = n => f(n + 1) in f(0)`, ``, core.Budgets{Steps: 1000}, "", fault.OutOfFuel},
		{t.Context(), `range(0, 1000000)`, ``, core.Budgets{Memory: 1 << 20}, "", fault.OutOfMemory},
		{t.Context(), `p => !fs.read(p)`, `"a"`, core.Budgets{}, "", fault.Denied},
		{over, `n => n`, `1`, core.Budgets{}, "", fault.Cancelled},
	} {
		p, err := core.Compile([]byte(c.code))
		if err != nil {
			t.Fatal(err)
		}
		r, err := core.Run(c.ctx, p, []byte(c.input), c.budgets)
		f := new(fault.Fault)
		if string(r.JSON) != c.want || (err == nil) != (c.kind == "") || errors.As(err, &f) && f.Kind != c.kind {
			t.Errorf("%s on %s: %s, %v", c.code, c.input, r.JSON, err)
		}
		if c.ctx == over && !errors.Is(err, context.Canceled) {
			t.Errorf("the cause is lost: %v", err)
		}
	}
	for code, want := range map[string]string{`{"add":[1,2,]}`: "JSON", `[{"add":[1]`: "", `n => (n`: "line 1", ``: ""} {
		if _, err := core.Compile([]byte(code)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", code, err)
		}
	}
}
