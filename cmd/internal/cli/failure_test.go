package cli

import (
	"strings"
	"testing"
)

// TestInCommands: hints for a model become commands, or stay.
func TestInCommands(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`else call {"name":"run","arguments":{"tool":"sq","input":…}}`:                   `else run 'mcp-pif run sq INPUT'`,
		`To run the tool "sq", call {"name":"run","arguments":{"tool":"sq","input":…}}.`: `To run the tool "sq", run 'mcp-pif run sq INPUT'.`,
		`Call {"name":"run","arguments":{"tool":"hyp","input":[1,2]}}.`:                  `Run 'mcp-pif run hyp INPUT'.`,
		`Call {"name":"history","arguments":{"name":"sq"}}.`:                             `Run 'mcp-pif tools history sq'.`,
		`Call {"name":"run","arguments":{"code":"1"}}.`:                                  `Call {"name":"run","arguments":{"code":"1"}}.`,
	} {
		if got := InCommands(text); got != want {
			t.Errorf("%s is %s, not %s", text, got, want)
		}
	}
}

// TestFoldIndented: a description with a word that is wide for its column stays in the terminal.
func TestFoldIndented(t *testing.T) {
	t.Parallel()
	indent := strings.Repeat(" ", 20)
	got := FoldIndented("  --f ORDER  a "+strings.Repeat("b ", 30)+"\n"+indent+"postgres://USER@HOST/ in one or order://HOST\nend", 42)
	if _, after, _ := strings.Cut(got, "\n"); after != indent+"postgres://USER@HOST/\n"+indent+"in one or order://HOST\nend" {
		t.Error(got)
	}
}
