package registry

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
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

// TestPanics: after a panic, which a server survives, changes and what is known of a
// tool can still be had: no lock is left.
func TestPanics(t *testing.T) {
	survived := func(f func()) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Error("it didn't panic")
			}
		}()
		f()
	}
	r := New(nil)
	// The changes beside it make it wait for its turn in the end, which it then has.
	tries := 0
	survived(func() {
		r.Evolve(def("a", "x => x"), Edit{Check: func(*Tool, *Snapshot) *fault.Fault {
			if tries++; tries > optimists {
				panic("alone")
			}
			evolve(t, r, def("a", fmt.Sprintf("x => x + %d", tries)))
			return nil
		}})
	})
	if made := evolve(t, r, def("a", "x => x")); made.Version != optimists+1 {
		t.Errorf("version %d", made.Version)
	}

	f := &finding{}
	survived(func() { f.get(ofTypes, func(*known, parts) { panic("at work") }) })
	if _, ok := f.remembers(ofTypes); ok {
		t.Error("it knows what it didn't work out")
	}
	if k := f.get(ofTypes, func(k *known, _ parts) { k.problems = 7 }); k.problems != 7 {
		t.Errorf("%+v", k)
	}
}

// TestPlacesOfLongCode: however many findings long code has, those that are told have
// their places, in the order of the code.
func TestPlacesOfLongCode(t *testing.T) {
	for _, n := range []int{20, 99, 101, 700} {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = fmt.Sprintf("(1 - %q, parse_json(x) + %d)", strings.Repeat("a", 20<<10/n), i)
		}
		fields := make([]string, n)
		for i, part := range parts {
			fields[i] = fmt.Sprintf("k%d: %s", i, part)
		}
		for _, code := range []string{
			"x => [" + strings.Join(parts, ",\n ") + "]",
			"x => {" + strings.Join(fields, ",\n ") + "}",
		} {
			tool, err := prepare(Definition{Name: "long", Code: []byte(code), Text: true})
			must.NoError(t, err)
			if len(code) <= placeBytes {
				t.Fatalf("%d parts are %d bytes", n, len(code))
			}
			r := tool.Report()
			problems, unknowns := tool.Counts()
			if problems != n || unknowns < n || len(r.Diagnostics) != min(n, mostPlaces) || len(r.Dynamic) != mostPlaces && n > mostPlaces {
				t.Errorf("%d parts: %d and %d, of which %d and %d are told", n, problems, unknowns, len(r.Diagnostics), len(r.Dynamic))
			}
			var lines []int
			for i, d := range r.Diagnostics {
				if d.Line != i+1 || d.Col == 0 {
					t.Errorf("%d parts: problem %d is told at line %d, %q", n, i, d.Line, d.At)
				}
			}
			for _, u := range r.Dynamic {
				lines = append(lines, u.Line)
				if u.Place == (check.Place{}) {
					t.Errorf("%d parts: a dynamic place has none", n)
				}
			}
			// No more places are worked out: each may be as long as the code.
			located := 0
			for _, d := range infer(tool.Program(), check.Env{Tool: "long"}).Diagnostics {
				if d.Place != (check.Place{}) {
					located++
				}
			}
			if located != min(n, mostPlaces) {
				t.Errorf("%d parts: %d have places", n, located)
			}
			if !slices.IsSorted(lines) {
				t.Errorf("%d parts: the dynamic places are at %v", n, lines)
			}
		}
	}
}
