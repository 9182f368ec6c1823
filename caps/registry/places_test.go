package registry

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check"
)

// TestPlacesOfLongCode: however many findings long code has, those that are told have
// their places, in the order of the code.
func TestPlacesOfLongCode(t *testing.T) {
	for _, n := range []int{20, 99, 101, 700} {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = fmt.Sprintf("(1 + %q, parse_json(x) + %d)", strings.Repeat("a", 20<<10/n), i)
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
			if err != nil {
				t.Fatal(err)
			}
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
