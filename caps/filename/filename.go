// Package filename knows which names a file system takes for the same.
//
// It is for files that aren't there yet: what is there has an identity, which tells more than
// any name. [Alike] errs on the side of the same, since no list of file systems is complete; it
// is for refusing, never for permitting. Rules of flow and the denials of plugin fs go by it.
package filename

import (
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Alike reports whether any file system that we know of takes two names for the same: by their case, how their
// characters are composed, and what isn't seen of them.
func Alike(a, b string) bool { return a == b || spelled(a) == spelled(b) }

func spelled(name string) string {
	name = strings.Map(func(c rune) rune {
		if unicode.In(c, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
			return -1
		}
		return c
	}, name)
	return norm.NFKC.String(cases.Fold().String(norm.NFKC.String(name)))
}
