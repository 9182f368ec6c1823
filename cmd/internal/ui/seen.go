package ui

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/display"
)

// maxMarks is how many marks a letter may have; further ones climb over what is beside it.
const maxMarks = 2

// visible has every character written out that hides, acts, or turns the direction of what
// is beside it, but for line ends and tabs. Escaping in templates stops markup; this stops
// what escaping doesn't know of. A page goes through it as a whole, so that no template
// and no value can forget it: the templates have no such character.
func visible(s string) string {
	var b strings.Builder
	marks, from := 0, 0
	for i, r := range s {
		if r < 0x7f && r >= ' ' || r == '\n' || r == '\t' {
			marks = 0
			continue
		}
		size := utf8.RuneLen(r)
		wrong := r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD")
		if wrong {
			size = 1
		}
		if unicode.Is(unicode.M, r) {
			marks++
		} else {
			marks = 0
		}
		if !wrong && caps.Seen(r) && marks <= maxMarks {
			continue
		}
		b.WriteString(s[from:i])
		if from = i + size; wrong {
			fmt.Fprintf(&b, `\x%02x`, s[i])
		} else {
			fmt.Fprintf(&b, `\u{%X}`, r)
		}
	}
	if from == 0 {
		return s
	}
	b.WriteString(s[from:])
	return b.String()
}

// cut shows the beginning of a text, on one line.
func cut(most int, s string) string {
	s = display.Truncate(s, most)
	return strings.Join(strings.Fields(s), " ")
}
