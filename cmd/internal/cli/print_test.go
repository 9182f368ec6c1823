package cli

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
)

// TestReadLine: what is typed after somebody no longer waits for it is read by whoever asks next.
func TestReadLine(t *testing.T) {
	in, keys := io.Pipe()
	ended, end := context.WithCancel(t.Context())
	end()
	if text, err := ReadLine(ended, in); err == nil {
		t.Errorf("%q was read", text)
	}
	go func() {
		_, _ = io.WriteString(keys, "yes\nno\n")
		keys.Close()
	}()
	for _, want := range []string{"yes\n", "no\n", ""} {
		if text, err := ReadLine(t.Context(), in); text != want || (err == nil) != (want != "") {
			t.Errorf("read %q, %v, expected %q", text, err, want)
		}
	}
}

// TestEscaped: every character that does something is escaped, and nothing else is.
func TestEscaped(t *testing.T) {
	for r := rune(0x7f); r < 0x3000; r++ {
		if got := string(EscapeJSON([]byte(string(r)))); Steers(r) == (got == string(r)) {
			t.Errorf("%U is written %q", r, got)
		}
	}
	// What shows nothing makes two names look alike.
	for text, want := range map[string]string{"a\u200bb\u2028\ufeff": `a\u200bb\u2028\ufeff`, "a\U000e0041": `a\udb40\udc41`} {
		if got := string(EscapeJSON([]byte(text))); got != want {
			t.Errorf("%q is written %s", text, got)
		}
		if got := Printable(text); got != strings.Map(func(r rune) rune {
			if r == 'a' || r == 'b' {
				return r
			}
			return '\ufffd'
		}, text) {
			t.Errorf("%q is shown as %q", text, got)
		}
	}
	if text := "é\n\t\"日本\" 🙂"; string(EscapeJSON([]byte(text+"\u202e"))) != text+`\u202e` {
		t.Errorf("%q", EscapeJSON([]byte(text+"\u202e")))
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
			d := &TerminalWriter{Out: &out}
			for rest := []byte(text); len(rest) > 0; rest = rest[min(size, len(rest)):] {
				if n, err := d.Write(rest[:min(size, len(rest))]); n != min(size, len(rest)) || err != nil {
					t.Fatal(n, err)
				}
			}
			must.NoError(t, d.Close())
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
