package json_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	pifjson "github.com/mcp-pif/mcp-pif/core/json"
)

// FuzzCursor: a cursor goes exactly past a value of JSON, and never beyond a text that is none; an
// object is taken apart as encoding/json does.
func FuzzCursor(f *testing.F) {
	for _, text := range []string{`{"a":[1,{"b":"\"}"}],"é":null}`, `{"a\u00e9":1,"a":2}`, `[1,2`, `{"a"`, `"\`, `}`, `{"a":1}x`, `{null:1}`, `{"a" 1}`, `[[],{}]`, ` 1 `, "\x00", `{"` + "\n" + `":1}`, "{\"\x80\":1}", `{"a":1,}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c := pifjson.Cursor{Src: text}
		ok := c.Value()
		if c.At > len(text) {
			t.Fatalf("at %d of %d", c.At, len(text))
		}
		valid := json.Valid(text)
		if c.Space(); valid && (!ok || c.At != len(text)) {
			t.Errorf("%q: %t, at %d", text, ok, c.At)
		}
		all, ok := pifjson.Members(text, 1<<30)
		isObject := strings.HasPrefix(strings.TrimLeft(string(text), " \t\r\n"), "{")
		if !valid {
			return
		}
		if ok != isObject {
			t.Fatalf("%q is an object: %t", text, ok)
		}
		want := map[string]json.RawMessage{}
		if isObject && json.Unmarshal(text, &want) != nil {
			t.Fatalf("%q isn't taken apart", text)
		}
		slices.Reverse(all) // the last of a name counts
		got := map[string]bool{}
		for _, m := range all {
			if !got[m.Name] && string(want[m.Name]) != string(m.Value) {
				t.Errorf("%q: %q is %s, expected %s", text, m.Name, m.Value, want[m.Name])
			}
			got[m.Name] = true
		}
		if len(got) != len(want) {
			t.Errorf("%q has %d names, expected %d", text, len(got), len(want))
		}
		if len(all) > 1 {
			if first, ok := pifjson.Members(text, 1); !ok || len(first) != 1 {
				t.Errorf("%q: %d members at most 1, %t", text, len(first), ok)
			}
		}
	})
}
