package check_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/text"
)

var update = flag.Bool("update", false, "write the types that are inferred into testdata")

// described is a report as testdata/types.txt has it: the type, then a line for
// each diagnostic and each dynamic place.
func described(r *check.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "    %s\n", r.Type)
	for _, d := range r.Diagnostics {
		fmt.Fprintf(&b, "    ! %s at %d:%d: %s\n", d.Kind, d.Line, d.Col, d.Message)
	}
	for _, d := range r.Dynamic {
		fmt.Fprintf(&b, "    ? %s at %d:%d\n", d.Reason, d.Line, d.Col)
	}
	return b.String()
}

// TestTypes: the types of terms in the text form, as the code of a tool.
func TestTypes(t *testing.T) {
	const name = "testdata/types.txt"
	src, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	n := 0
	for i, entry := range strings.Split(strings.TrimSpace(string(src)), "\n\n") {
		if strings.HasPrefix(entry, "#") {
			out.WriteString(entry + "\n\n")
			continue
		}
		n++
		code, want, _ := strings.Cut(entry, "\n")
		p, f := text.Parse([]byte(code), text.Options{Tool: "t"})
		if f != nil {
			t.Fatalf("entry %d: %v\n%s", i, f, code)
		}
		r := check.Infer(p.Term, p.Source, check.Env{Tool: "t"}, check.Budget{})
		got := described(r)
		if strings.TrimSpace(got) != strings.TrimSpace(want) && !*update {
			t.Errorf("%s\ngot\n%swant\n%s", code, got, want)
		}
		out.WriteString(code + "\n" + got + "\n")
		again, err := check.ParseType(r.Type.String())
		if err != nil || again.String() != r.Type.String() {
			t.Errorf("%s\nis read back as %v (%v)", r.Type, again, err)
		}
	}
	if n < 150 {
		t.Errorf("%d terms are few", n)
	}
	if *update {
		if err := os.WriteFile(name, []byte(strings.TrimSpace(out.String())+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
