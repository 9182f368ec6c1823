package mcpserver

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
)

// TestInputField: a record with a field that is called input is the input where it can
// be nothing else, and every failure shows a call that works.
func TestInputField(t *testing.T) {
	s := New(Options{})
	for name, code := range map[string]string{
		"one": "r => r.input + 1", "two": "r => r.input + r.other", "opt": `r => get(r, "input", 3) + get(r, "other", 4)`,
		"str": `r => r.input ++ "!"`, "mat": "r => match r { {input: x, other: y} => x + y; _ => 0 }",
		"num": "n => n + 1", "total": "xs => sum(xs)", "rec": "r => r.a + 1", "any": "x => x", "deep": "r => r.input.input + 1",
		"both": `input => match input { {input: n} => n; n => n + 1 }`,
	} {
		must(t, s, "evolve", string(wire.Begin().Text("name", name).Text("code", code).End()))
	}
	for _, c := range []struct{ tool, arguments, want, note string }{
		{"one", `{"input":5}`, "6", ""},
		{"one", `{"input":{"input":5}}`, "6", ""},
		{"one", `"{\"input\":5}"`, "6", ""},
		{"one", `{"input":"{\"input\":5}"}`, "6", "the string was read as JSON"},
		{"two", `{"input":5,"other":2}`, "7", ""},
		{"opt", `{"input":5}`, "9", ""},
		{"str", `{"input":"abc"}`, `"abc!"`, ""},
		{"str", `{"input":"{\"input\":\"abc\"}"}`, `"abc!"`, "the string was read as JSON"},
		{"deep", `{"input":{"input":5}}`, "6", ""},
		{"deep", `{"input":{"input":{"input":5}}}`, "6", ""},
		{"both", `{"input":5}`, "6", ""}, // which is the input
		{"mat", `{"input":{"input":5,"other":2}}`, "7", ""},
		{"num", `{"n":5}`, "6", ""},
		{"total", `{"xs":[1,2]}`, "3", ""},
		{"rec", `{"a":1}`, "2", ""},
	} {
		a := do(t, s, c.tool, c.arguments)
		if a.Fault != nil || a.Text != c.want || c.note == "" != (field(t, a, "notes") == "[]" || field(t, a, "notes") == "") || !strings.Contains(field(t, a, "notes"), c.note) {
			t.Errorf("%s %s: %s, %s", c.tool, c.arguments, a.Text, field(t, a, "notes"))
		}
	}
	for _, c := range []struct{ tool, arguments, call string }{
		{"two", `{"input":5}`, `{"name":"two","arguments":{"input":5,"other":2}}`},
		{"two", `{"other":5}`, `{"name":"two","arguments":{"input":5,"other":5}}`},
		{"two", `{"input":5,"wrong":1}`, `{"name":"two","arguments":{"input":5,"other":1}}`},
		{"mat", `{"input":5,"other":1}`, `{"name":"mat","arguments":{"input":{"input":5,"other":1}}}`},
		{"num", `{"input":7,"x":1}`, `{"name":"num","arguments":{"input":7}}`},
		{"num", `{"x":7}`, `{"name":"num","arguments":{"input":7}}`},
		{"num", `{"input":{"n":5}}`, `{"name":"num","arguments":{"input":5}}`},
		{"num", `{}`, `{"name":"num","arguments":{"input":5}}`},
		{"any", `{"x":{"input":3}}`, `{"name":"any","arguments":{"input":{"x":{"input":3}}}}`},
		{"any", `{"input":1,"b":2}`, `{"name":"any","arguments":{"input":{"input":1,"b":2}}}`},
		{"rec", `{"input":{"input":{"a":1}}}`, `{"name":"rec","arguments":{"a":5}}`},
		{"run", `{"tool":"rec","input":3}`, `{"name":"run","arguments":{"tool":"rec","input":{"a":5}}}`},
		{"run", `{"tool":"rec"}`, `{"name":"run","arguments":{"tool":"rec","input":{"a":5}}}`},
	} {
		a := do(t, s, c.tool, c.arguments)
		if a.Fault == nil {
			t.Errorf("%s %s: %s", c.tool, c.arguments, a.Text)
			continue
		}
		if text := a.Text + "\n" + strings.Join(a.More, "\n"); !strings.Contains(text, c.call) {
			t.Errorf("%s %s: %s\n shows no %s", c.tool, c.arguments, text, c.call)
		}
		var call struct {
			Name      string
			Arguments json.RawMessage
		}
		if err := json.Unmarshal([]byte(c.call), &call); err != nil {
			t.Fatal(err)
		}
		must(t, s, call.Name, string(call.Arguments))
	}
}
