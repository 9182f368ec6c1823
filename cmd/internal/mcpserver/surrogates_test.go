package mcpserver

import (
	"testing"

	"github.com/mcp-pif/mcp-pif/core/fault"
)

// TestHalfACharacter: half a surrogate pair in a string of code is refused as
// it is in code that is JSON, and not read as U+FFFD.
func TestHalfACharacter(t *testing.T) {
	s := evolved(t)
	for _, c := range []struct {
		tool, arguments string
		kind            fault.Kind
	}{
		{"run", `{"code":["\ud800"]}`, fault.ParseError},
		{"run", `{"code":"[\"\ud800\"]"}`, fault.ParseError},
		{"run", `{"code":"x => \"\ud800\""}`, fault.ParseError},
		{"run", `{"code":"x => \"\udc00\ud800\""}`, fault.ParseError},
		{"run", `{"code":"x => \"\\ud800\""}`, fault.ParseError},
		{"run", `{"code":"\udfff"}`, fault.ParseError},
		{"run", `{"code":1,"input":"\ud800"}`, fault.ParseError},
		{"run", `{"tool":"\ud800"}`, fault.InvalidRequest},
		{"evolve", `{"name":"half","code":"x => \"\ud800\""}`, fault.ParseError},
		{"evolve", `{"name":"half\ud800","code":"x => x"}`, fault.InvalidRequest},
	} {
		if a := do(t, s, c.tool, c.arguments); a.Fault == nil || a.Fault.Kind != c.kind {
			t.Errorf("%s %s: %v, want %s", c.tool, c.arguments, a.Fault, c.kind)
		}
	}
	for code, want := range map[string]string{
		`"[\"\ufffd\",]"`:       `["�"]`,
		`"[\"\ud83d\ude00\",]"`: `["😀"]`,
	} {
		if a := must(t, s, "run", `{"code":`+code+`}`); field(t, a, "result") != want {
			t.Errorf("%s gives %s, want %s", code, field(t, a, "result"), want)
		}
	}
}
