package core_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
)

// said is a program's needs, one a line.
func said(n core.Needs) string {
	var b strings.Builder
	list := func(title string, needs []core.Need) {
		for _, d := range needs {
			fmt.Fprintf(&b, "%s %s %q at %s %d:%d\n", title, d.Name, d.In, d.At, d.Line, d.Col)
		}
	}
	list("op", n.Ops)
	list("call", n.Calls)
	list("code", n.Codes)
	for _, w := range n.Withs {
		fmt.Fprintf(&b, "with %q at %s %d:%d\n", w.Texts, w.At, w.Line, w.Col)
	}
	list("unknown", n.Unknown)
	list("inert", n.Inert)
	return b.String()
}

func TestNeeds(t *testing.T) {
	for _, c := range []struct{ code, want string }{
		{`{"lam":"x","body":[{"fs.read":{"in":"./in","path":{"fetch":"u"}}},{"quote":{"kv.get":1}}]}`, `
op fs.read "./in" at /body/0 1:20
op fetch.request "" at /body/0/fs.read/path 1:51
`},
		{`[{"call":{"tool":"t","input":{"a.b":1}}},{"code_of":"u"},{"call":{"tool":{"var":"x"},"input":1}},{"code_of":{"var":"y"}}]`, `
op a.b "" at /0/call/input 1:30
call t "" at /0 1:2
code u "" at /1 1:42
unknown call "" at /2 1:58
`},
		{`{"eval":{"quote":[{"a.b":1},{"call":{"tool":"t","input":1}},{"eval":{"quote":{"a.c":1}}},{"code_of":"u"}]},"with":["a","call:t"]}`, `
op a.b "" at /eval/quote/0 1:19
call t "" at /eval/quote/1 1:29
code u "" at /eval/quote/3 1:90
with ["a" "call:t"] at  1:1
inert a.c "" at /eval/quote/2/eval/quote 1:78
`},
		{`{"eval":{"quote":[{"a.b":1},{"eval":{"quote":{"a.c":{"in":"x"}}},"with":["a"]},{"call":{"tool":"t","input":1}}]}}`, `
with ["a"] at /eval/quote/1 1:29
inert a.b "" at /eval/quote/0 1:19
inert a.c "x" at /eval/quote/1/eval/quote 1:46
inert call:t "" at /eval/quote/2 1:80
`},
		{`{"eval":{"app":[{"var":"f"},{"a.b":1}]}}`, `
op a.b "" at /eval/app/1 1:29
`},
		{`{"eval":{"app":[{"var":"f"},{"a.b":1}]},"with":["a"]}`, `
op a.b "" at /eval/app/1 1:29
with ["a"] at  1:1
unknown eval "" at  1:1
`},
		{`{"eval":{"var":"q"},"with":[]}`, `
with [] at  1:1
`},
		{"x =>\n  par(!a.b(x),\n    eval('{!a.c(1)}, [\"a\"]),\n    @t(x))", `
op a.b "" at  2:7
op a.c "" at  3:12
call t "" at  4:5
with ["a"] at  3:5
`},
		{`{"mul":[2,{"var":"x"}]}`, "\n"},
	} {
		compile := core.Compile
		if !strings.HasPrefix(c.code, "{") && !strings.HasPrefix(c.code, "[") {
			compile = func(src []byte) (*core.Program, error) { return core.CompileText("", src) }
		}
		p, err := compile([]byte(c.code))
		if err != nil {
			t.Errorf("%s: %v", c.code, err)
		} else if got := "\n" + said(p.Needs()); got != c.want {
			t.Errorf("%s needs%swant%s", c.code, got, c.want)
		}
	}
}
