package core_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

var update = flag.Bool("update", false, "write the tables of README.md anew")

// TestReadme: what README.md says of the language is so.
func TestReadme(t *testing.T) {
	b, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(b)
	for name, table := range map[string]string{"operations": operations(), "faults": faults()} {
		start := strings.Index(doc, "<!-- "+name+":")
		if start < 0 {
			t.Fatalf("no table of %s", name)
		}
		start += strings.Index(doc[start:], "\n") + 1
		end := start + strings.Index(doc[start:], "<!-- end -->")
		if doc[start:end] != table {
			if !*update {
				t.Errorf("the table of %s is not what the code says: run go test ./core -run TestReadme -update", name)
			}
			doc = doc[:start] + table + doc[end:]
		}
	}
	if *update {
		if err := os.WriteFile("README.md", []byte(doc), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ran := 0
	for _, block := range strings.Split(doc, "```pif\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		code := ""
		for line := range strings.Lines(block) {
			want, isResult := strings.CutPrefix(line, "=> ")
			kind, isFault := strings.CutPrefix(line, "!> ")
			if !isResult && !isFault {
				code += line
				continue
			}
			ran++
			got := evaluated(t, strings.TrimSpace(code))
			if isFault {
				want = kind
			}
			if want = strings.TrimSpace(want); want != "*" && got != want {
				t.Errorf("%sgives %s, the document says %s", code, got, want)
			}
			code = ""
		}
	}
	if ran < 6 {
		t.Errorf("only %d examples ran", ran)
	}
}

// evaluated is the result of inline code as JSON, or the kind of its fault.
func evaluated(t *testing.T, code string) string {
	p, err := core.Compile([]byte(code))
	if !strings.HasPrefix(code, "{") {
		p, err = core.CompileText("", []byte(code))
	}
	if err != nil {
		return string(err.(*fault.Fault).Kind)
	}
	m := p.Start(core.Input{}, core.Budgets{}, nil)
	defer m.Release()
	in, err := core.ParseInput([]byte("5"), core.InputAuto)
	if err != nil {
		t.Fatal(err)
	}
	p.Restart(m, in, core.Budgets{}, nil)
	if m.Run(0) != core.Done {
		return string(m.Fault().Kind)
	}
	e, f := m.Encode(1 << 16)
	if f != nil {
		return string(f.Kind)
	}
	return string(e.JSON)
}

// operations is the table of rows, group by group.
func operations() string {
	var b strings.Builder
	for _, group := range prim.Groups {
		fmt.Fprintf(&b, "\n**%s**\n\n| operation | |\n|---|---|\n", group)
		for i := range prim.Table {
			if r := &prim.Table[i]; r.Group == group {
				fmt.Fprintf(&b, "| `%s` | %s |\n", strings.ReplaceAll(r.Spelling(), "|", `\|`), strings.ReplaceAll(r.Doc, "|", `\|`))
			}
		}
	}
	return b.String() + "\n"
}

func faults() string {
	var b strings.Builder
	b.WriteString("\n| kind | occurs when |\n|---|---|\n")
	for _, c := range fault.Codes {
		fmt.Fprintf(&b, "| `%s` | %s |\n", c.Kind, c.When)
	}
	return b.String() + "\n"
}
