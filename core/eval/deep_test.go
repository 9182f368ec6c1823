package eval_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// deeps are a form inside itself: how many levels of JSON one takes, what
// opens it, what is innermost, and what closes it.
var deeps = map[string]struct {
	levels            int
	open, inner, shut string
}{
	"lam":             {1, `{"lam":"x","body":`, `{"var":"x"}`, `}`},
	"lam of its own":  {2, `[{"lam":"x#","body":`, `{"var":"x7"}`, `}]`},
	"app func":        {2, `{"app":{"func":`, `1`, `,"arg":1}}`},
	"app arg":         {2, `{"app":{"func":{"lam":"x","body":{"var":"x"}},"arg":`, `1`, `}}`},
	"unknown app arg": {2, `{"app":{"func":{"head":[{"lam":"x","body":{"var":"x"}}]},"arg":`, `1`, `}}`},
	"let":             {3, `{"app":[{"lam":"x","body":`, `{"var":"x"}`, `},1]}`},
	"lets":            {3, `{"app":[{"lam":"v#","body":`, `{"var":"v0"}`, `},{"head":[1]}]}`},
	"let value":       {2, `{"app":[{"lam":"x","body":{"var":"x"}},`, `1`, `]}`},
	"if cond":         {2, `{"if":{"then":true,"else":false,"cond":`, `true`, `}}`},
	"if then":         {2, `{"if":{"cond":true,"else":1,"then":`, `2`, `}}`},
	"if else":         {2, `{"if":{"cond":{"lt":[{"head":[1]},0]},"then":1,"else":`, `2`, `}}`},
	"add left":        {2, `{"add":[`, `1`, `,1]}`},
	"add right":       {2, `{"add":[1,`, `1`, `]}`},
	"and":             {2, `{"and":[`, `true`, `,true]}`},
	"or right":        {2, `{"or":[false,`, `true`, `]}`},
	"not":             {1, `{"not":`, `true`, `}`},
	"cons":            {2, `{"cons":{"head":1,"tail":`, `[]`, `}}`},
	"cons head":       {2, `{"cons":{"tail":[],"head":`, `[]`, `}}`},
	"list":            {1, `[`, `1`, `]`},
	"list of more":    {1, `[{"head":[1]},`, `1`, `]`},
	"pair":            {2, `{"pair":[`, `1`, `,1]}`},
	"fst":             {3, `{"fst":{"pair":[`, `1`, `,1]}}`},
	"concat":          {2, `{"concat":["ab",`, `"c"`, `]}`},
	"fold body":       {3, `{"fold":[{"lam":"p","body":`, `1`, `},0,[1]]}`},
	"fold init":       {2, `{"fold":[{"lam":"p","body":{"fst":{"var":"p"}}},`, `1`, `,[1]]}`},
	"fold list":       {3, `{"length":{"fold":[{"lam":"p","body":{"fst":{"var":"p"}}},[],`, `[]`, `]}}`},
	"quote":           {1, `{"quote":`, `1`, `}`},
	"eval":            {2, `{"eval":{"quote":`, `1`, `}}`},
	"record":          {2, `{"record":{"a":`, `1`, `}}`},
	"try":             {1, `{"try":`, `1`, `}`},
	"try head":        {3, `{"get":[{"try":`, `{"head":[]}`, `},"error",1]}`},
	"code_of":         {1, `{"code_of":`, `"nope"`, `}`},
	"length":          {1, `{"length":`, `[]`, `}`},
	"match":           {7, `{"match":1,"with":[[1,`, `5`, `]]}`},
	"cond":            {3, `{"cond":[[{"eq":[{"head":[1]},1]},`, `5`, `]],"else":1}`},
	"map":             {3, `{"map":[{"lam":"x","body":`, `{"var":"x"}`, `},[1]]}`},
}

// Each form nested as deep as the parser takes it gives what it should, and in
// a time that says that nothing is done again at every level.
func TestDeepCode(t *testing.T) {
	for name, d := range deeps {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			for _, levels := range []int{90, 1000, full(9_990, 3000)} {
				n := levels / d.levels
				code := nest(n, d.open, d.inner, d.shut)
				for len(code) > 250_000 {
					n = n * 9 / 10
					code = nest(n, d.open, d.inner, d.shut)
				}
				tr := trial{code: code, input: "null", budgets: core.Budgets{Steps: 3_000_000}}
				if _, f := compileAs("", code); f != nil {
					t.Fatal(f)
				}
				start := time.Now()
				o := tr.onEval(t)
				if d := time.Since(start); d > 30*time.Millisecond {
					t.Logf("%s %d deep: %v %v", name, n, d, o)
				}
				if o.Kind != "" && o.Kind != fault.OutOfFuel && o.Kind != fault.RuntimeError && o.Kind != fault.TypeError {
					t.Errorf("%d deep: %v", n, o)
				}
				if strings.HasPrefix(name, "lam of") && levels > 1000 {
					continue // the reference copies nothing but looks names up one by one
				}
				tr.check(t)
			}
		})
	}
}
