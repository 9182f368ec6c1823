package mcpserver

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/mcp-pif/mcp-pif/core/fault"
)

const thirdSchema = `{"type":"object","properties":{"input":{"type":"integer","minimum":10}}}`

// TestInputSchema: a declared schema is what tools/list shows, calls by name are held
// against it before anything runs, and run is bound by it, too.
func TestInputSchema(t *testing.T) {
	s := New(Options{})
	a := must(t, s, "evolve", `{"name":"third","code":"n => n / 3","input_schema":`+thirdSchema+`}`)
	if got := string(a.Structured) + string(must(t, s, "describe", `{"name":"third"}`).Structured); !strings.Contains(got, `"input_schema":{"additionalProperties":false,"properties":{"input":{"type":"integer","minimum":10}},"required":["input"],"type":"object"}`) ||
		!strings.Contains(got, `"input":10`) {
		t.Errorf("%s", got)
	}
	// As a string, and of several parameters, the names of which stay.
	must(t, s, "evolve", `{"name":"share","code":"(whole, parts) => whole / parts","input_schema":`+
		quoteJSON(`{"type":"object","properties":{"parts":{"type":"integer","minimum":1,"maximum":9,"description":"how many"}}}`)+`}`)
	must(t, s, "evolve", `{"name":"hail","code":"s => s ++ \"!\"","input_schema":{"type":"object","properties":{"input":{"type":"string","pattern":"^[a-z]+$","maxLength":5}}}}`)
	must(t, s, "evolve", `{"name":"tone","code":"x => x","input_schema":{"type":"object","properties":{"input":{"enum":["high",1.5]}}}}`)
	must(t, s, "evolve", `{"name":"plain","code":"x => x","input_schema":{}}`)
	cs := session(t, s, nil)
	shelf := shelfOfSchemas{}
	for tool, err := range cs.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(tool.InputSchema)
		if err != nil {
			t.Fatal(err)
		}
		var schema jsonschema.Schema
		if err := json.Unmarshal(raw, &schema); err != nil {
			t.Fatal(err)
		}
		in, err := schema.Resolve(nil)
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		shelf[tool.Name] = [2]*jsonschema.Resolved{in}
	}
	for _, c := range []struct{ tool, arguments, text string }{
		{"third", `{"input":12}`, "4"},
		{"third", `{"input":"12"}`, "4"},
		{"third", `"12"`, "4"},
		{"third", `{"input":9}`, "input: 9 is not at least 10"},
		{"third", `9`, "input: 9 is not at least 10"},
		{"third", `{"input":"x"}`, `"x" is not of the type integer`},
		{"third", `{}`, `missing: "input"`},
		{"third", `null`, `missing: "input"`},
		{"share", `{"whole":18,"parts":9}`, "2"},
		{"share", `{"whole":18,"parts":0}`, "parts: 0 is not at least 1"},
		{"share", `{"input":18}`, `parts is missing`},
		{"share", `18`, `parts is missing`},
		{"hail", `{"input":"abc"}`, `"abc!"`},
		{"hail", `{"input":"ABC"}`, "pattern"},
		{"hail", `{"input":"abcdef"}`, "at most 5"},
		{"tone", `{"input":1.50}`, `1.50`},
		{"tone", `{"input":"low"}`, `one of`},
		{"plain", `{"input":"low"}`, `"low"`},
	} {
		a := do(t, s, c.tool, c.arguments)
		if !strings.Contains(a.Text, c.text) || a.Fault == nil && a.Text != c.text {
			t.Errorf("%s %s: %s, expected %s", c.tool, c.arguments, a.Text, c.text)
		}
		if a.Fault != nil && (a.Fault.Kind != fault.InvalidRequest || a.Steps != 0) {
			t.Errorf("%s %s: %+v", c.tool, c.arguments, a.Fault)
		}
		if a.Fault != nil {
			// The hint is a call that is right.
			var call struct {
				Name      string
				Arguments json.RawMessage
			}
			text := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(a.Fault.Hint, "Call it as "), "Call "), ".")
			if err := json.Unmarshal([]byte(text), &call); err != nil {
				t.Fatalf("%s: %v", a.Fault.Hint, err)
			}
			if again := do(t, s, call.Name, string(call.Arguments)); again.Fault != nil && c.tool != "hail" || shelf.takes(t, call.Name, string(call.Arguments)) != nil {
				t.Errorf("%s: %s", text, again.Text)
			}
		}
		if strings.HasPrefix(c.arguments, "{\"input\":\"12") || c.arguments[0] != '{' {
			continue // not what a client that validates sends
		}
		if err := shelf.takes(t, c.tool, c.arguments); (err == nil) != (a.Fault == nil) {
			t.Errorf("%s %s: %s, and a client says %v", c.tool, c.arguments, a.Text, err)
		}
	}
	if a := do(t, s, "run", `{"tool":"third","input":9}`); a.Fault == nil || !strings.Contains(a.Text, "not at least 10") {
		t.Errorf("run isn't bound by it: %s", a.Text)
	}
	// describe has it, and what evolves that version again.
	a = must(t, s, "describe", `{"name":"third"}`)
	if !strings.Contains(string(a.Structured), `"minimum":10`) {
		t.Errorf("%s", a.Structured)
	}
	a = must(t, s, "evolve", `{"name":"third","code":"n => n / 3"}`)
	if got := string(a.Structured); !strings.Contains(got, "unchanged") || do(t, s, "third", `{"input":9}`).Fault == nil {
		t.Errorf("%s", got)
	}
	a = must(t, s, "evolve", `{"name":"third","code":"n => n / 3","input_schema":null}`)
	if got := string(a.Structured); strings.Contains(got, `"input_schema":`) || strings.Contains(got, "unchanged") {
		t.Errorf("%s", got)
	}
	if a = must(t, s, "third", `{"input":9}`); a.Text != "3" {
		t.Errorf("%s", a.Text)
	}
	must(t, s, "evolve", `{"name":"third","from_version":1}`)
	if a = do(t, s, "third", `{"input":9}`); a.Fault == nil {
		t.Errorf("%s", a.Text)
	}
}

// TestInputSchemaRefused: a schema that widens, or isn't flat, changes nothing.
func TestInputSchemaRefused(t *testing.T) {
	s := New(Options{})
	for schema, want := range map[string]string{
		`{"type":"object","properties":{"input":{"type":"number"}}}`: "can't take",
		`{"type":"object","properties":{"n":{"type":"integer"}}}`:    "no such parameter",
		`{"type":"object","properties":{"input":{"$ref":"#/x"}}}`:    "$ref",
		`[1]`:                      "a JSON Schema of an object",
		`7`:                        "a JSON Schema of an object",
		`"{"`:                      "a JSON Schema of an object",
		`"{\"type\":\"object\"}x"`: "a JSON Schema of an object",
		`{"type":"object","description":"` + strings.Repeat("x", 17<<10) + `"}`: "at most 16384",
	} {
		a := do(t, s, "evolve", fmt.Sprintf(`{"name":"half","code":"n => shift(n, -1)","input_schema":%s}`, schema))
		if a.Fault == nil || a.Fault.Kind != fault.InvalidRequest || !strings.Contains(a.Text, want) || len(a.Text) > 2000 {
			t.Errorf("%.100s: %.500s", schema, a.Text)
		}
	}
	if n := s.tools.Snapshot().Len(); n != 0 {
		t.Error(n)
	}
	for _, none := range []string{`""`, `{}`, `null`, `"{}"`, `" "`} {
		a := must(t, s, "evolve", fmt.Sprintf(`{"name":"half","code":"n => shift(n, -1)","input_schema":%s}`, none))
		if strings.Contains(string(a.Structured), "input_schema") {
			t.Errorf("%s: %s", none, a.Structured)
		}
	}
}

// TestReplayInputSchema: what was let through replays as it ran, also when the schema
// is another by then, and what was refused has left no run.
func TestReplayInputSchema(t *testing.T) {
	w := newRecordedWorld(t, 9)
	must(t, w.server, "evolve", `{"name":"third","code":"n => n / 3","input_schema":`+thirdSchema+`}`)
	was := do(t, w.server, "third", `{"input":"12"}`)
	id := w.newest()
	w.identical(id, was)
	for range 2 {
		if a := do(t, w.server, "third", `{"input":9}`); a.Fault == nil || w.newest() != id {
			t.Errorf("%s, and the newest run is %s", a.Text, w.newest())
		}
	}
	must(t, w.server, "evolve", `{"name":"third","code":"n => n / 3","input_schema":{"type":"object","properties":{"input":{"type":"integer","minimum":20}}}}`)
	w.identical(id, was)
}
