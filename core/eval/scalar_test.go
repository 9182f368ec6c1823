package eval

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Characters are counted in pieces as they are at once, wherever the pieces end, in what is no text, too.
func TestCountRunes(t *testing.T) {
	t.Parallel()
	var m Machine
	for _, c := range []string{"é", "€", "𝄞", "\x80", "\xe2\x82", "\xf0\x9d\x84"} {
		for before := range 5 {
			s := strings.Repeat("a", copyPiece-before) + strings.Repeat(c, 8) + "a" + strings.Repeat(c, copyPiece/len(c))
			if n := m.countRunes(s); n != utf8.RuneCountInString(s) {
				t.Errorf("%q at %d: %d", c, before, n)
			}
		}
	}
}
