package check_test

import (
	"encoding/json"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
)

// TestWiden: a run that succeeded widens the parts of a type that it doesn't fit, and
// nothing else.
func TestWiden(t *testing.T) {
	for _, c := range []struct{ code, input, want string }{
		{`n => n * 2`, `3`, `(num) -> num`},
		{`n => n * 2`, `"3"`, `(num) -> num`}, // it is read as 3
		{`n => n * 2`, `{"input":3}`, `(num) -> num`},
		{`n => n * 2`, `"x"`, `(any) -> num`},
		{`n => n * 2`, `[3]`, `(any) -> num`},
		{`xs => sum(xs)`, `[1,"x"]`, `(list[any]) -> num`},
		{`r => r.a + r.b`, `{"a":1,"b":"x"}`, `({a: num, b: any, *: any}) -> num`},
		{`r => r.a + r.b`, `{"a":1}`, `({a: num, b?: num, *: any}) -> num`},
		{`(k, n) => n + k`, `{"k":"A","n":1}`, `(any) -> (num) -> num`},
		{`(k, n) => n + k`, `[1,2]`, `(num) -> (num) -> num`},
		{`(k, n) => n + k`, `{"k":1}`, `(num) -> (num) -> num`}, // it can't be read
		{`x => y => x + y`, `7`, `(num) -> (num) -> num`},
		{`1 + 1`, `null`, `int`},
	} {
		p, err := core.CompileText("t", []byte(c.code))
		if err != nil {
			t.Fatal(err)
		}
		r := check.Infer(p.Term(), nil, check.Env{}, check.Budget{})
		before := r.Type.String()
		w := r.Widen(json.RawMessage(c.input))
		if got := w.Type.String(); got != c.want {
			t.Errorf("%s with %s has the type %s, not %s", c.code, c.input, got, c.want)
		}
		if wide := c.want != before; w.Sound() == wide || r.Type.String() != before {
			t.Errorf("%s with %s is sound: %v", c.code, c.input, w.Sound())
		}
		if again := w.Widen(json.RawMessage(c.input)); again != w {
			t.Errorf("%s with %s is %s when it is widened again", c.code, c.input, again.Type)
		}
	}
}
