package mcpserver

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestCompletion: what an argument may go on to, in an order that is always the
// same, a hundred at most.
func TestCompletion(t *testing.T) {
	inEras(t, func(t *testing.T, version string) {
		s := New(Options{})
		cs := speaking(t, s, version, nil)
		for i := range 150 {
			must(t, s, "evolve", fmt.Sprintf(`{"name":"tool_%03d","code":"n => n"}`, i))
		}
		must(t, s, "evolve", `{"name":"my_tool","code":"n => n"}`)
		must(t, s, "evolve", `{"name":"my_tool","code":"n => n + 1"}`)
		must(t, s, "evolve", `{"name":"ask_so","as":"prompt","code":"(a, b) => a ++ b"}`)
		must(t, s, "run", `{"tool":"my_tool","input":1}`)
		prompt := func(name string) *mcp.CompleteReference {
			return &mcp.CompleteReference{Type: "ref/prompt", Name: name}
		}
		uri := func(uri string) *mcp.CompleteReference { return &mcp.CompleteReference{Type: "ref/resource", URI: uri} }
		for _, c := range []struct {
			ref        *mcp.CompleteReference
			arg, value string
			given      map[string]string
			want       string
			total      int
		}{
			{prompt("repair_tool"), "name", "MY", nil, "my_tool", 1},
			{prompt("review_capabilities"), "name", "_00", nil, "tool_000 tool_001 tool_002 tool_003 tool_004 tool_005 tool_006 tool_007 tool_008 tool_009", 10},
			{prompt("review_capabilities"), "name", "nope", nil, "", 0},
			{prompt("make_tool"), "task", "x", nil, "", 0},
			{prompt("port_function"), "language", "j", nil, "Java JavaScript Clojure", 3},
			{prompt("ask_so"), "b", "", nil, "", 0},
			{uri("pif://language/{category}"), "category", "l", nil, "literals lambda lists library logic control failure any value", 0},
			{uri("pif://operations/{operation}"), "operation", "fold", nil, "fold", 1},
			{uri("pif://operations/{operation}"), "operation", "evol", nil, "evolve", 1},
			{uri("pif://tools/{name}"), "name", "tool", nil, "", 151},
			{uri("pif://tools/{name}/{version}"), "version", "", map[string]string{"name": "my_tool"}, "2 1", 2},
			{uri("pif://tools/{name}/{version}"), "version", "", map[string]string{"name": "my%5Ftool"}, "2 1", 2},
			{uri("pif://tools/{name}/{version}"), "version", "", nil, "", 0},
			{uri("pif://journal/{run}"), "run", "", nil, aRun(t, s), 1},
			{uri("pif://results/{id}"), "id", "", nil, "", 0},
		} {
			params := &mcp.CompleteParams{Ref: c.ref, Argument: mcp.CompleteParamsArgument{Name: c.arg, Value: c.value}}
			if c.given != nil {
				params.Context = &mcp.CompleteContext{Arguments: c.given}
			}
			res, err := cs.Complete(t.Context(), params)
			if err != nil {
				t.Errorf("%s%s %s: %v", c.ref.Name, c.ref.URI, c.arg, err)
				continue
			}
			got := res.Completion
			again, err := cs.Complete(t.Context(), params)
			if err != nil || !slices.Equal(again.Completion.Values, got.Values) {
				t.Errorf("%s%s %s: another order each time", c.ref.Name, c.ref.URI, c.arg)
			}
			if c.total == 151 {
				if got.Total != 151 || !got.HasMore || len(got.Values) != 100 || got.Values[0] != "tool_000" || got.Values[99] != "tool_099" {
					t.Errorf("%d of %d, %v: %v", len(got.Values), got.Total, got.HasMore, got.Values)
				}
				continue
			}
			if c.arg == "category" { // which there are is the table's matter
				if len(got.Values) == 0 || !strings.HasPrefix(got.Values[0], "l") || !slices.Contains(got.Values, "control") {
					t.Errorf("%v", got.Values)
				}
				continue
			}
			if strings.Join(got.Values, " ") != c.want || got.Total != c.total || got.HasMore {
				t.Errorf("%s%s %s %q: %v of %d, expected %s of %d", c.ref.Name, c.ref.URI, c.arg, c.value, got.Values, got.Total, c.want, c.total)
			}
		}
		for _, ref := range []*mcp.CompleteReference{prompt("absent"), prompt("my_tool"), prompt("make_tool"), uri("pif://absent/{x}"), uri("pif://tools/{name}"), uri("file:///{path}")} {
			_, err := cs.Complete(t.Context(), &mcp.CompleteParams{Ref: ref, Argument: mcp.CompleteParamsArgument{Name: "absent", Value: "x"}})
			if code(err) != -32602 {
				t.Errorf("%s%s: %v", ref.Name, ref.URI, err)
			}
		}
	})
}
