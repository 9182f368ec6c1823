package lock

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/display"
)

// Shown is a text of somebody else's, fit for a terminal: at most most bytes of
// it, on one line, and every character that a terminal would act on or that turns
// the order of reading written as its escape.
func Shown(s string, most int) string {
	all := len(s)
	s = display.Prefix(s, most)
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\n' || r == '\t':
			b.WriteByte(' ')
		case r < 0x80 && (r < ' ' || r == 0x7f):
			fmt.Fprintf(&b, `\x%02x`, r)
		case r != ' ' && !unicode.IsPrint(r):
			// Controls, marks of direction, separators of lines, private ones.
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		i += n
	}
	if len(s) < all {
		b.WriteString("…")
	}
	return b.String()
}
