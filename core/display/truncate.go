// Package display prepares texts for a reader: a person at a terminal or a model.
//
// A message, a list or a log line often shows a part of a longer text, which may come
// from a stranger. [Truncate] marks the cut with "…" and [Prefix] doesn't; neither splits
// a character. Both work in bytes, because every bound of an answer is one of bytes.
package display

import "unicode/utf8"

// Truncate returns s if it has at most maxBytes bytes. Otherwise it returns [Prefix] of
// s and "…", which isn't counted.
func Truncate[T ~string | ~[]byte](s T, maxBytes int) string {
	if len(s) <= maxBytes {
		return string(s)
	}
	return Prefix(s, maxBytes) + "…"
}

// Prefix returns the first maxBytes bytes of s, or up to three fewer if that would split
// a character.
func Prefix[T ~string | ~[]byte](s T, maxBytes int) string {
	if len(s) <= maxBytes {
		return string(s)
	}
	n := maxBytes
	for n > 0 && n > maxBytes-utf8.UTFMax && !utf8.RuneStart(s[n]) {
		n--
	}
	return string(s[:n])
}

// InvalidAt returns the offset of the first byte of s that is not UTF-8; 0 if all are.
func InvalidAt(s string) int {
	for i, c := range s {
		if c == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				return i
			}
		}
	}
	return 0
}
