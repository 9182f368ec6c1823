package check_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// TestReadme: the types in README.md are those that are inferred.
func TestReadme(t *testing.T) {
	src, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(src), "\n```types\n")
	block, _, _ = strings.Cut(block, "\n```")
	var code string
	var got, want []string
	n := 0
	compare := func() {
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s\ngot  %q\nwant %q", code, got, want)
		}
	}
	for _, line := range strings.Split(block, "\n") {
		if strings.HasPrefix(line, ": ") || strings.HasPrefix(line, "? ") || strings.HasPrefix(line, "! ") {
			want = append(want, line)
			continue
		}
		compare()
		code, got, want = line, nil, nil
		n++
		p, f := text.Parse([]byte(code), text.Options{Tool: "t"})
		if f != nil {
			t.Fatalf("%v\n%s", f, code)
		}
		r := check.Infer(p.Term, p.Source, check.Env{Tool: "t"}, check.Budget{})
		got = append(got, ": "+r.Type.String())
		for _, d := range r.Dynamic {
			got = append(got, fmt.Sprintf("? %s at %d:%d", d.Reason, d.Line, d.Col))
		}
		for _, d := range r.Diagnostics {
			got = append(got, fmt.Sprintf("! %s at %d:%d", d.Kind, d.Line, d.Col))
		}
	}
	compare()
	if n < 5 {
		t.Errorf("%d types are few: is the block still marked ```types?", n)
	}
}
