package main

import (
	"encoding/json"
	"strings"
	"testing"
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

// TestEscaped: every character that does something is escaped, and nothing else is.
func TestEscaped(t *testing.T) {
	for r := rune(0x7f); r < 0x3000; r++ {
		got := string(escaped([]byte(string(r))))
		if steers(r) == (got == string(r)) {
			t.Errorf("%U is written %q", r, got)
		}
	}
	// What shows nothing makes two names look alike.
	for text, want := range map[string]string{"a\u200bb\u2028\ufeff": `a\u200bb\u2028\ufeff`, "a\U000e0041": `a\udb40\udc41`} {
		if got := string(escaped([]byte(text))); got != want {
			t.Errorf("%q is written %s", text, got)
		}
		if got := printable(text); got != strings.Map(func(r rune) rune {
			if r == 'a' || r == 'b' {
				return r
			}
			return '\ufffd'
		}, text) {
			t.Errorf("%q is shown as %q", text, got)
		}
	}
	if text := "é\n\t\"日本\" 🙂"; string(escaped([]byte(text+"\u202e"))) != text+`\u202e` {
		t.Errorf("%q", escaped([]byte(text+"\u202e")))
	}
}
