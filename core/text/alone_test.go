package text

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestAlone reads what was written as the server does: as JSON where it is
// well-formed JSON, and one name alone as a tool's name or a string.
func TestAlone(t *testing.T) {
	for _, c := range []struct{ text, alone string }{
		{`0.2`, `(0.2)`},
		{`-0.005`, `(-0.005)`},
		{`{}`, `({})`},
		{`{"a b": 1}`, `({"a b": 1})`},
		{`[[1, 0.5], {}]`, `([[1, 0.5], {}])`},
		{`[1, "a", [null, true]]`, `[1, "a", [null, true]]`},
		{`{a: 1}`, `{a: 1}`},
		{`dec("2")`, `dec("2")`},
		{`[0.5, x]`, "[0.5, x]"},
		{`0.5 + 1`, "0.5 + 1"},
		{`x => 0.5`, `x => 0.5`},
		{`x`, `(x)`},
		{"`a b`", "(`a b`)"},
		{`x + y`, `x + y`},
		{`self`, `self`},
	} {
		p, f := Parse([]byte(c.text), Options{})
		if f != nil {
			t.Fatal(c.text, f)
		}
		out := Alone(p.Term)
		if string(out) != c.alone {
			t.Errorf("%s is written %s, want %s", c.text, out, c.alone)
		}
		if again, f := Parse(out, Options{}); f != nil || string(Canonical(again.Term)) != string(Canonical(p.Term)) {
			t.Errorf("%s is read as another term: %v", out, f)
		}
		if json.Valid(out) && strings.ContainsAny(string(out), ".{") {
			t.Errorf("%s may be read as JSON", out)
		}
	}
}
