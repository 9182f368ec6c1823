package check_test

import (
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// What can't be the argument of an operation is told before it runs, and what a caller
// gives for it is typed by it.
func TestArgument(t *testing.T) {
	issues, err := check.ParseType("{labels?: list[string], owner: string, page?: int, sort?: {by: string, *: json} | string, where?: json}")
	if err != nil {
		t.Fatal(err)
	}
	read, _ := check.ParseType("string | {path: string}")
	for _, c := range []struct{ code, refused, typ string }{
		{code: `!github.list({owner: "a"})`},
		{code: `!github.list({owner: "a", page: 3, labels: ["x"], where: {a: [1, null]}})`},
		{code: `!github.list({owner: "a", page: 10.0})`},
		{code: `!github.list({owner: "a", sort: "up"})`},
		{code: `!github.list({owner: "a", sort: {by: "x", more: 1}})`},
		{code: `!github.list(parse_json("1"))`},
		{code: `!fs.read("a")`}, {code: `!fs.read({path: "a"})`}, {code: `!other.op(1)`},
		{code: `!github.list({owner: 3})`, refused: "github.list takes a string as owner, not an integer"},
		{code: `!github.list({owner: "a", page: "3"})`, refused: "github.list takes an integer as page, not a string"},
		{code: `!github.list({page: 3})`, refused: `github.list: the key "owner" is missing`},
		{code: `!github.list({owner: "a", pages: 3})`, refused: `github.list: unknown key "pages"; did you mean "page"?`},
		{code: `!github.list("a")`, refused: "github.list takes a record as its argument, not a string"},
		{code: `!github.list({owner: "a", sort: {}})`, refused: `github.list: the key "by" is missing`},
		{code: `!github.list({owner: "a", sort: 7})`, refused: "github.list takes a string or a record as sort, not an integer"},
		{code: `!github.list({owner: "a", where: x => x})`, refused: "github.list takes values that JSON has as where, not a function"},
		{code: `!fs.read(1)`, refused: "fs.read takes"},
		{code: `x => if x then !github.list({owner: 1}) else !github.list({owner: "a"})`, refused: "github.list takes a string as owner"},
		{code: `x => !github.list({owner: if x then 1 else "a"})`},
		{code: `r => !github.list({owner: r.owner, page: r.page})`, typ: "({owner: string, page: int, *: any}) ->{github.list} data"},
		{code: `o => !github.list({owner: o})`, typ: "(string) ->{github.list} data"},
	} {
		p, f := text.Parse([]byte(c.code), text.Options{Tool: "tool"})
		if f != nil {
			t.Errorf("%s: %v", c.code, f)
			continue
		}
		r := check.Infer(p.Term, p.Source, check.Env{
			Tool: "tool", Result: func(string) (*check.Type, bool) { return check.Data, true },
			Argument: func(op string) (*check.Type, bool) {
				typ, ok := map[string]*check.Type{"github.list": issues, "fs.read": read}[op]
				return typ, ok
			},
		}, check.Budget{})
		var all []string
		for _, d := range r.Diagnostics {
			all = append(all, d.Message)
		}
		if got := strings.Join(all, "; "); (c.refused == "") != (got == "") || !strings.Contains(got, c.refused) {
			t.Errorf("%s: %q, not %q", c.code, got, c.refused)
		}
		if c.typ != "" && r.Type.String() != c.typ {
			t.Errorf("%s: %s, not %s", c.code, r.Type, c.typ)
		}
	}
}
