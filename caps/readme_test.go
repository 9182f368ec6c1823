package caps_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
)

// TestReadme: the capabilities that the README shows are canonical, and its
// table has the default limits that hold.
func TestReadme(t *testing.T) {
	data, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(data), "```capabilities\n")
	block, _, _ := strings.Cut(after, "\n```")
	lines := strings.Split(block, "\n")
	if len(lines) < 5 {
		t.Fatalf("the README shows %q", lines)
	}
	kinds := testKinds(t)
	for _, line := range lines {
		if c, err := caps.Parse(line, kinds); err != nil || c.String() != line {
			t.Errorf("the README shows %s: got %s, %v", line, c, err)
		}
	}
	w := newWorld(t)
	l := w.grant("kv:x")[0].Limit()
	shown := caps.Capability{Kind: "kv", Scope: "x", Limits: l}.String()
	for _, o := range strings.Split(shown, ",")[1:] {
		name, value, _ := strings.Cut(o, "=")
		row := fmt.Sprintf("| `%s=", name)
		_, after, ok := strings.Cut(string(data), row)
		cells, _, _ := strings.Cut(after, "\n")
		if !ok || !strings.HasSuffix(cells, "| "+value+" |") {
			t.Errorf("the default of %s is %s, the README says %q", name, value, cells)
		}
	}
}
