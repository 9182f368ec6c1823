package mcpserver

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestFormContent: of what a client says that the person filled in, only what fits
// the form reaches the tool; a client that offers no choice but sends one, or another
// type, is told so, whatever it checked itself.
func TestFormContent(t *testing.T) {
	all := form{
		{name: "n", typ: "integer", optional: true}, {name: "x", typ: "number", optional: true}, {name: "yes", typ: "boolean", optional: true},
		{name: "size", typ: "string", choices: []string{"S", "L"}, optional: true}, {name: "note", typ: "string", optional: true},
	}
	for _, test := range []struct {
		name  string
		given any
		want  string // ""; it is refused
	}{
		{"size", "L", `{"size":"L"}`}, {"size", "XL", ""}, {"size", "s", ""}, {"size", "", ""}, {"size", "S ", ""}, {"size", true, ""}, {"size", []any{"S"}, ""},
		{"n", 3.0, `{"n":3}`}, {"n", -0.5, ""}, {"n", 9007199254740991.0, `{"n":9007199254740991}`}, {"n", 9007199254740992.0, ""}, {"n", -9007199254740992.0, ""},
		{"n", math.NaN(), ""}, {"n", math.Inf(1), ""}, {"n", 1e300, ""}, {"n", "3", ""}, {"n", true, ""},
		{"x", 0.5, `{"x":0.5}`}, {"x", "0.5", ""}, {"x", false, ""},
		{"yes", false, `{"yes":false}`}, {"yes", "true", ""}, {"yes", 1.0, ""},
		{"note", "a", `{"note":"a"}`}, {"note", 1.0, ""}, {"note", map[string]any{"a": 1}, ""}, {"note", true, ""},
		{"note", strings.Repeat("x", mostAnswer), `{"note":"` + strings.Repeat("x", mostAnswer) + `"}`}, {"note", strings.Repeat("x", mostAnswer+1), ""},
		{"note", nil, `{}`}, {"more", "x", `{}`},
	} {
		content, f := all.content(map[string]any{test.name: test.given})
		if test.want == "" && f == nil || test.want != "" && (f != nil || string(content) != test.want) {
			t.Errorf("%s %.40v: %.60s, %v", test.name, test.given, content, f)
		}
	}
	all[4].optional = false
	for _, given := range []map[string]any{nil, {}, {"note": nil}, {"n": 1.0}} {
		if content, f := all.content(given); f == nil {
			t.Errorf("%v: %s", given, content)
		}
	}
}

// TestChoiceOutsideTheForm: an answer that isn't one of the choices is no value, over
// the protocol, too; the tool learns of it and can go on.
func TestChoiceOutsideTheForm(t *testing.T) {
	w := newConsenting(t, filepath.Join(t.TempDir(), "consent.json"), "p")
	cs := manually(t, w.server)
	ask(t, cs, "evolve", `{"name":"size","code":"m => match try(!ask.user({message: m, schema: {size: {enum: [\"S\", \"L\"]}}})) { {ok: v} => v; {error: e} => e.message }","capabilities":["ask"]}`)
	for given, want := range map[string]string{"L": `{"action":"accept","content":{"size":"L"}}`, "XL": "isn't what was asked for", "": "isn't what was asked for"} {
		state := call(t, cs, "size", `{"input":"?"}`, "", "").RequestState
		res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{
			Name: "size", Arguments: map[string]any{"input": "?"}, RequestState: state,
			InputResponses: mcp.InputResponseMap{questionName: &mcp.ElicitResult{Action: "accept", Content: map[string]any{"size": given}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if text := res.Content[0].(*mcp.TextContent).Text; !strings.Contains(text, want) {
			t.Errorf("%q: %s", given, text)
		}
	}
}
