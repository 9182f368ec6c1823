package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestInCommands: hints for a model become commands, or stay.
func TestInCommands(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`else call {"name":"run","arguments":{"tool":"sq","input":…}}`:                        `else run 'mcp-pif run sq INPUT'`,
		`To run the tool "sq", call {"name":"run","arguments":{"tool":"sq","input":…}}.`:      `To run the tool "sq", run 'mcp-pif run sq INPUT'.`,
		`Call {"name":"run","arguments":{"tool":"hyp","input":[1,2]}}.`:                       `Run 'mcp-pif run hyp INPUT'.`,
		`Call {"name":"history","arguments":{"name":"sq"}}.`:                                  `Run 'mcp-pif tools history sq'.`,
		`Call {"name":"run","arguments":{"tool":"hyp","input":{"a":{"b":[…]},"c":…}}}.`:       `Run 'mcp-pif run hyp INPUT'.`,
		`Call {"name":"run","arguments":{"code":"f","input":{"a":1}}}.`:                       `Run 'mcp-pif run CODE INPUT' with the INPUT {"a":1}.`,
		`Call {"name":"run","arguments":{"code":"1"}}.`:                                       `Run 'mcp-pif run CODE INPUT'.`,
		`Call {"name":"evolve","arguments":{"code":"1"}}.`:                                    `Call {"name":"evolve","arguments":{"code":"1"}}.`,
		`To bring it back call {"name":"evolve","arguments":{"name":"sq","from_version":3}}.`: `To bring it back run 'mcp-pif tools rollback sq 3'.`,
		`Plan it again: run with "tool", "input" and "plan":true.`:                            `Have your model plan it again: run with "tool", "input" and "plan":true.`,
		`Ask for more steps (run's "steps"), or less.`:                                        `Ask for more steps (run's --steps), or less.`,
		`Ask the operator to start the server with --cap 'fs.read:./a'.`:                      `Give this command --cap 'fs.read:./a'.`,
		"if_version is 7, and the current version of \"sq\" is 2: somebody changed it\nLook at version 2 with describe, work your change into it, then use if_version 2.":               "--if-version is 7, and the current version of \"sq\" is 2: somebody changed it\nLook at version 2 with 'mcp-pif tools show NAME', then use --if-version 2.",
		"See what became of it with history, then use if_version 0 to make \"sq\" anew.":                                                                                                "See what became of it with 'mcp-pif tools history NAME', then use --if-version 0 to make \"sq\" anew.",
		`Evolve both at once: {"tools":[{"name":"a","code":…}]}.`:                                                                                                                       `Have your model evolve both at once: {"tools":[{"name":"a","code":…}]}.`,
		`Call run with "plan" and "resume":true once no other server does it.`:                                                                                                          `Have your model call run with "plan" and "resume":true once no other server does it.`,
		"denied\nThe fs isn't granted: ask the operator to start the server with --cap 'fs:./a'. Then evolve a tool with this code and \"capabilities\":[\"fs:./a\"], and run that.\nx": "denied\nCode that is typed can't act, whatever --cap grants. Ask your model to make a tool of it with \"capabilities\":[\"fs:./a\"]; 'mcp-pif tools list' shows it then.\nx",
		`Evolve a tool with this code and "capabilities":["echo"], and run that. Ask the operator to start the server with --cap 'echo'.`:                                               `Code that is typed can't act, whatever --cap grants. Ask your model to make a tool of it with "capabilities":["echo"]; 'mcp-pif tools list' shows it then.`,
	} {
		if got := InCommands(text); got != want {
			t.Errorf("%s is %s, not %s", text, got, want)
		}
	}
}

// TestWords: a file that isn't there is told in words; what stands around that stays.
func TestWords(t *testing.T) {
	t.Parallel()
	_, err := os.Open("no/such.pif")
	for want, err := range map[string]error{
		"there is no file no/such.pif":         Failed(err),
		"a lock: there is no file no/such.pif": fmt.Errorf("a lock: %w", err),
		"interrupted":                          Failed(context.Canceled),
		"another":                              errors.New("another"),
	} {
		if got := Words(err); got != want {
			t.Errorf("%s, not %s", got, want)
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
