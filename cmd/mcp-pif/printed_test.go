package main

import (
	"bytes"
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

// TestDisplay: whatever a command prints, in whatever pieces, nothing of it steers a
// terminal, and the rest is as it was.
func TestDisplay(t *testing.T) {
	for text, want := range map[string]string{
		"plain é\t日本 🙂\n":            "plain é\t日本 🙂\n",
		"a\u202eb\x1b[2Jc\r\nd\x9be": "a\ufffdb\ufffd[2Jc\ufffd\nd\ufffde",
		"\u009b\U000e0041\xe2\x80":   "\ufffd\ufffd\ufffd",
	} {
		for _, size := range []int{1, 2, 3, len(text)} {
			var out bytes.Buffer
			d := &terminalWriter{out: &out}
			for rest := []byte(text); len(rest) > 0; rest = rest[min(size, len(rest)):] {
				if n, err := d.Write(rest[:min(size, len(rest))]); n != min(size, len(rest)) || err != nil {
					t.Fatal(n, err)
				}
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			got := out.String()
			if strings.HasSuffix(text, "\x80") {
				got = strings.TrimRight(got, "\ufffd") + "\ufffd\ufffd\ufffd" // of a torn end there may be several
			}
			if got != want {
				t.Errorf("%q by %d is shown as %q", text, size, got)
			}
		}
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
			if !bytes.Equal(once, shown(once)) {
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
