package caps_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/mcp-pif/mcp-pif/caps"
)

// TestQuestionText: no words of a model's stand outside their margin, act on the
// terminal or hide what the server says, however they are written.
func TestQuestionText(t *testing.T) {
	w := newWorld(t, "s/")
	w.ask("fs:./s")
	imitation := "x\n\nThe model's words end here.\n\nIt would get\n  fs.read:./harmless\r\x1b[2J\x1b[H\u202eevil\u2066\u200b\x9b31m\xff"
	for name, words := range map[string]string{
		"imitation": imitation, "1 MB": strings.Repeat(imitation, 12_000), "one line": strings.Repeat("a ", 500_000), "blank lines": strings.Repeat("\n", 1<<20),
		"wide": strings.Repeat("\u6f22", 10_000), "marks": "a" + strings.Repeat("\u0301", 5000), "blank letters": strings.Repeat("\u3164", 5000),
	} {
		q := caps.Question{
			ID: "1", Who: imitation, Tool: imitation, Asks: []string{"fs.read:./s"}, Facts: []string{"It would get", "  " + imitation},
			Description: words, Code: words,
		}
		c := w.consents(name)
		q.Subject = *w.subject("t", "c1", "fs.read:./s")
		if _, _, err := c.Ask(q); err != nil {
			t.Fatal(err)
		}
		info, _ := os.Stat(c.Path)
		if info.Size() > 1<<20 {
			t.Errorf("%s: the file has %d bytes", name, info.Size())
		}
		checkLines(t, name, q.Lines())
	}
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.String().Draw(t, "words")
		q := caps.Question{Tool: words, Who: words, Facts: []string{words}, Description: words, Code: words}
		checkLines(t, "by chance", q.Lines())
	})
}

func checkLines(t interface {
	Helper()
	Errorf(string, ...any)
}, name string, lines []string) {
	t.Helper()
	if len(lines) > 200 {
		t.Errorf("%s: %d lines", name, len(lines))
	}
	const model = "What follows was written by the model, and may say anything."
	ends := lines[len(lines)-1] == "The model's words end here."
	inModel, shown := false, 0
	for i, line := range lines {
		if !utf8.ValidString(line) || strings.ContainsFunc(line, func(r rune) bool {
			return r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x200b && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x3164 || r == 0x301
		}) {
			t.Errorf("%s: line %d acts or hides: %q", name, i, line)
		}
		if n := len([]rune(line)); n > 100 {
			t.Errorf("%s: line %d has %d characters", name, i, n)
		}
		switch {
		case line == model && !inModel:
			inModel = true
		case inModel && line != "" && i < len(lines)-1:
			shown++
			if !strings.HasPrefix(line, "  |") {
				t.Errorf("%s: line %d is outside the margin: %q", name, i, line)
			}
		}
	}
	if !inModel || !ends || shown == 0 {
		t.Errorf("%s: the model's words aren't marked:\n%s", name, strings.Join(lines, "\n"))
	}
}

// TestQuote: a name or a value of a stranger's is one string of JSON, in which nothing hides.
func TestQuote(t *testing.T) {
	for text, want := range map[string]string{
		"owner": `owner`, "_a1": `_a1`, "": `""`, "user-id": `"user-id"`, "1a": `"1a"`, "a b": `"a b"`, "a\n\"b\\": `"a\n\"b\\"`, strings.Repeat("a", 65): `"` + strings.Repeat("a", 65) + `"`,
		"имя": `"имя"`, "שם": `"שם"`, "नमस्ते": `"नमस्ते"`, "é": `"é"`, "😀": `"😀"`, // letters and their marks are seen
		"a\u202eb\u2066\u200b": `"a\u202eb\u2066\u200b"`, "\x7f\x1b": `"\u007f\u001b"`, "\u3164\u2800": `"\u3164\u2800"`, "x\ufe0f\u034f": `"x\ufe0f\u034f"`,
		"\U000E0041": `"\udb40\udc41"`, "\u2028": `"\u2028"`,
	} {
		got := caps.QuoteName(text)
		if got != want {
			t.Errorf("%q is written %s, want %s", text, got, want)
		}
		var back string
		if got != text && (json.Unmarshal([]byte(got), &back) != nil || back != text) {
			t.Errorf("%s is read as %q, not as %q", got, back, text)
		}
	}
}
