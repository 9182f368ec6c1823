package mcpserver

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
)

// TestCostNames: a cost is told in sizes of what a caller gives, by the names that the
// input schema has.
func TestCostNames(t *testing.T) {
	s := New(Options{})
	measured := regexp.MustCompile(`(?:length|magnitude|words beyond 64 bits|bytes|terms) of ([^, ;\[]+)`)
	for i, c := range []struct{ code, has string }{
		{"s => length(s)", "length of input"},
		{"`my list` => sum(`my list`)", "length of input"},
		{"r => length(r.name)", `length of input["name"]`},
		{"(x, x) => x", "terms of x_2"},
		{"(xs, xs) => length(xs)", "length of xs_2"},
		{"(`a b`, `a_b`) => length(`a_b`)", "length of a_b_2"},
		{"(`__proto__`, n) => n + 1", "terms of _proto_"},
		{"(xs, n) => length(xs) + n", "length of xs"},
		{`{"lam":"!a","body":{"lam":"@b","body":{"length":{"var":"@b"}}}}`, "length of _b"},
	} {
		name := fmt.Sprintf("t%d", i)
		must(t, s, "evolve", string(wire.Begin().Text("name", name).Text("code", c.code).End()))
		whole := field(t, must(t, s, "describe", fmt.Sprintf(`{"name":%q,"detail":true}`, name)), "check/cost")
		steps := whole
		if !strings.Contains(steps, strings.ReplaceAll(c.has, `"`, `\"`)) {
			t.Errorf("%s: %s has no %s", c.code, steps, c.has)
		}
		tool, _ := s.Registry().Snapshot().Get(name)
		var schema struct{ Properties map[string]any }
		if err := json.Unmarshal(tool.InputSchema(), &schema); err != nil {
			t.Fatal(err)
		}
		found := measured.FindAllStringSubmatch(whole, -1)
		if len(found) < 2 {
			t.Errorf("%s: %s and %s tell of no arguments", c.code, steps, whole)
		}
		for _, m := range found {
			if _, ok := schema.Properties[strings.Trim(m[1], `"\}`)]; !ok {
				t.Errorf("%s: the cost is told in sizes of %s, the arguments are %v", c.code, m[1], schema.Properties)
			}
		}
	}
}
