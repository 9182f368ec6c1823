package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
)

// TestPrintedJSON: what turns the direction of text, or moves the cursor, is written
// with escapes in what is printed as JSON, which says the same.
func TestPrintedJSON(t *testing.T) {
	for _, code := range []string{
		"{\"add\":[\"\u202e\u0085\u2066\u200f\u061c\",1]}", "\u202e => 1", "x => {\"\u202e\": x + \"\u009b\u007f\"}",
		"{\"\u202ea.b\":1}", "{\"call\":{\"tool\":\"\u202e\",\"input\":1}}", "x => \u202e",
	} {
		_, out := checked(t, "--json", code)
		if strings.ContainsAny(out, "\u202e\u0085\u009b\u2066\u200f\u061c\u007f\x1b") {
			t.Errorf("check --json %q prints %q", code, out)
		}
		if !json.Valid([]byte(out)) {
			t.Errorf("check --json %q prints what is no JSON: %q", code, out)
		}
	}
	// The escapes are the characters again.
	_, out := checked(t, "--json", `{"lam":"x","body":{"record":{"\u202eé":{"var":"x"}}}}`)
	var doc struct{ Type string }
	if err := json.Unmarshal([]byte(out), &doc); err != nil || !strings.Contains(doc.Type, `\u202eé`) {
		t.Errorf("the type is %q: %v", doc.Type, err)
	}
}

// TestFmtSaysTheSame: code that fmt wrote with escapes is the code that it read.
func TestFmtSaysTheSame(t *testing.T) {
	for _, code := range []string{
		`"` + steering + `"`,
		`{"lam":"` + steering + `","body":{"record":{"` + steering + `":{"get":[{"var":"` + steering + `"},"` + steering + `"]}}}}`,
	} {
		for _, asJSON := range []bool{false, true} {
			once, err := formatted(code, asJSON)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(once, cli.Sanitize(once)) {
				t.Errorf("fmt writes %q", once)
			}
			again, err := formatted(string(once), true)
			if err != nil {
				t.Fatalf("%q: %v", once, err)
			}
			if want, err := formatted(code, true); err != nil || !bytes.Equal(again, want) {
				t.Errorf("%q is read back as %q, not %q: %v", once, again, want, err)
			}
		}
	}
}
