package text_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/text"
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
		p, f := text.Parse([]byte(c.text), text.Options{})
		if f != nil {
			t.Fatal(c.text, f)
		}
		out := text.Alone(p.Term, text.Print(p.Term))
		if string(out) != c.alone {
			t.Errorf("%s is written %s, want %s", c.text, out, c.alone)
		}
		if again, f := text.Parse(out, text.Options{}); f != nil || string(text.Canonical(again.Term)) != string(text.Canonical(p.Term)) {
			t.Errorf("%s is read as another term: %v", out, f)
		}
		if json.Valid(out) && strings.ContainsAny(string(out), ".{") {
			t.Errorf("%s may be read as JSON", out)
		}
	}
}

// TestParts: the parts are the source, and each has its class, also where the source is none.
func TestParts(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		`let x = 1 in x + 2.5 // done`:      `keyword:let operator:= number:1 keyword:in operator:+ number:2.5 comment:// done`,
		"p => @words(!fs.read(p)) ++ \"a\"": `operator:=> tool:@words effect:!fs.read operator:++ string:"a"`,
		`$"n is {n} here"`:                  `string:$"n is  string: here"`,
		"// a\n// b\n1 # 2":                 "comment:// a comment:// b number:1 bad:# number:2",
		`"open`:                             `bad:"open`,
		"":                                  "",
	} {
		var got []string
		whole := ""
		for _, p := range text.Parts(src) {
			whole += p.Text
			if p.Class != text.ClassNone {
				got = append(got, string(p.Class)+":"+p.Text)
			}
		}
		if whole != src {
			t.Errorf("%q comes back as %q", src, whole)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q", src, got)
		}
	}
}
