package check_test

import (
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// A parameter that no type permits is used in one way or the other when it runs: what
// it is then may come out.
func TestConflictComesOut(t *testing.T) {
	for _, src := range []string{
		`x => if (if equal(type_of(x), "record") then "" else x) then x else replace(x, "a", "b")`,
		`x => if x then x else replace(x, "a", "b")`,
		`x => if (if equal(type_of(x), "record") then "" else x) then [x] else [replace(x, "a", "b")]`,
	} {
		p, f := text.Parse([]byte(src), text.Options{Tool: "tool"})
		if f != nil {
			t.Fatal(f)
		}
		r := check.Infer(p.Term, p.Source, check.Env{Tool: "tool"}, check.Budget{})
		if r.Sound() || !strings.Contains(r.Type.String(), "string | ?") {
			t.Errorf("%s\nis %s", src, r.Type)
		}
		if schema := string(check.OutputSchema(r)); strings.Contains(schema, `"type":"string"`) {
			t.Errorf("%s\ngives, by its schema, %s", src, schema)
		}
	}
}
