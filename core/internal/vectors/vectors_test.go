package vectors

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
)

func TestSameJSON(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{`1`, `1`, true},
		{`1`, `1.0`, false},
		{`9223372036854775808`, `9223372036854775809`, false},
		{`[1,"a",null,{"x":[]}]`, `[1, "a", null, {"x": []}]`, true},
		{`[1]`, `[1,2]`, false},
		{`{"a":1}`, `{"a":1,"b":2}`, false},
		{`{"a":1,"b":2}`, `{"a":1}`, false},
		{`{"a":1,"b":2}`, `{"b":2,"a":1}`, true},
		{`{"a":null}`, `{"b":null}`, false},
		{`"1"`, `1`, false},
		{``, `1`, false},
		{`{"type":"continuation","tool":"t","next_input":1,"message":"x"}`, `{"type":"continuation","tool":"t","next_input":1,"step":1}`, true},
		{`{"type":"continuation","tool":"t","next_input":1}`, `{"type":"continuation","tool":"t","next_input":2}`, false},
		{`{"type":"continuation","tool":"t","next_input":1}`, `{"type":"continuation","tool":"u","next_input":1}`, false},
	} {
		if SameJSON(json.RawMessage(c.a), json.RawMessage(c.b)) != c.same {
			t.Errorf("SameJSON(%s, %s) = %v", c.a, c.b, !c.same)
		}
	}
}

func TestProgram(t *testing.T) {
	for _, c := range []struct{ code, tool, source string }{
		{`"sq"`, "sq", ""},
		{`"42"`, "42", ""},
		{`"{\"add\":[1,2]}"`, "", `{"add":[1,2]}`},
		{`"nosuch"`, "", "nosuch"},
		{`{"add":[1,2]}`, "", `{"add":[1,2]}`},
		{`null`, "", "null"},
		{`2.50`, "", "2.50"},
	} {
		v := Vector{Code: json.RawMessage(c.code), Setup: []Tool{{Name: "sq"}, {Name: "42"}}}
		if tool, source := v.Program(); tool != c.tool || string(source) != c.source {
			t.Errorf("%s: %q, %q", c.code, tool, source)
		}
	}
	for code, source := range map[string]string{`"hello"`: `"hello"`, `"{\"nil\":true}"`: `{"nil":true}`, `5`: `5`} {
		if got := (Tool{Code: json.RawMessage(code)}).Source(); string(got) != source {
			t.Errorf("the source of %s is %s", code, got)
		}
	}
}

// TestByDesign checks that every exception is of a vector that the seed's
// README allows to differ.
func TestByDesign(t *testing.T) {
	dir, ok := Seed()
	if !ok {
		t.Skip("no seed")
	}
	may := []string{"dynamic-self", "reserved-name", "continuation-in-data", "continuation-nontail", "open-tool", "input-context", "extension", "duplicate-keys"}
	left := map[string]bool{}
	for id := range byDesign {
		left[id] = true
	}
	for _, file := range Files {
		lines(t, filepath.Join(dir, file.Name), func(line []byte) {
			var r record
			must.NoError(t, json.Unmarshal(line, &r))
			if !left[r.ID] {
				return
			}
			delete(left, r.ID)
			switch file.Name {
			case "public.jsonl":
				if !slices.ContainsFunc(r.Tags, func(tag string) bool { return slices.Contains(may, tag) }) {
					t.Errorf("%s may not differ: %v", r.ID, r.Tags)
				}
			case "fuel.jsonl":
				if r.Error == nil || r.Error.Kind != "out_of_fuel" {
					t.Errorf("%s ended, so it may not differ", r.ID)
				}
			}
		})
	}
	for id := range left {
		t.Errorf("no vector is called %s", id)
	}
}
