package display

import "unicode"

// Seen reports whether a character neither hides nor acts: letters with their marks, digits,
// punctuation, symbols, and the plain space.
func Seen(r rune) bool {
	if r == 0x2800 || unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) { // blank
		return false
	}
	return r == ' ' || unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S)
}
