package registry

import (
	"errors"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/fault"
)

const square = `{"lam":"x","body":{"mul":[{"var":"x"},{"var":"x"}]}}`

func kind(err error) fault.Kind {
	var f *fault.Fault
	if !errors.As(err, &f) {
		return ""
	}
	return f.Kind
}

func TestCompile(t *testing.T) {
	for _, c := range []struct {
		name, description, code string
		want                    fault.Kind // "": it can be made
	}{
		{"square", "", square, ""},
		{"é-tool", "", `1`, ""},
		{"do it", "", `1`, ""},
		{strings.Repeat("x", 256), "", `1`, ""},
		{"Run", "", `1`, ""},
		{"x", strings.Repeat("d", MaxDescription), `1`, ""},
		{"x", "", `{"quote":{"fs.read":{"path":"a"}}}`, ""},
		{"", "", `1`, fault.InvalidRequest},
		{strings.Repeat("x", 257), "", `1`, fault.InvalidRequest},
		{"a\nb", "", `1`, fault.InvalidRequest},
		{"a\x7fb", "", `1`, fault.InvalidRequest},
		{"a\u0085b", "", `1`, fault.InvalidRequest},
		{"\xff", "", `1`, fault.InvalidRequest},
		{"x", strings.Repeat("d", MaxDescription+1), `1`, fault.InvalidRequest},
		{"run", "", `1`, fault.Refused},
		{"journal", "", `1`, fault.Refused},
		{"x", "", `{"add":[1]}`, fault.ParseError},
		{"x", "", `"` + strings.Repeat("s", MaxCode) + `"`, fault.ParseError},
		{"x", "", `{"lam":"p","body":{"fs.write":{"path":"a","content":{"var":"p"}}}}`, fault.Refused},
		{"x", "", `{"if":{"cond":false,"then":{"fetch":"http://x"},"else":1}}`, fault.Refused},
	} {
		made, err := prepare(Definition{Name: c.name, Description: c.description, Code: []byte(c.code)})
		if err == nil {
			if f := made.decide(nil); f != nil {
				err = f
			}
		}
		if kind(err) != c.want || (err != nil) != (c.want != "") {
			t.Errorf("%.40q %.60s: %v, expected %q", c.name, c.code, err, c.want)
		}
		if err == nil && (made.Description == "" || len(made.Hash) != 64 || made.State != StateReady) {
			t.Errorf("%q: %+v", c.name, made)
		}
	}
}

func TestListed(t *testing.T) {
	for name, want := range map[string]bool{
		"square": true, "A.b_c-9": true, strings.Repeat("x", 64): true, strings.Repeat("x", 65): false,
		"": false, "do it": false, "é": false, "a/b": false, "a\n": false,
	} {
		if Listed(name) != want {
			t.Errorf("Listed(%q) = %v", name, !want)
		}
	}
}
