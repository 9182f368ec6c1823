package prim

import (
	"iter"
	"strings"
	"unicode/utf8"
)

// searchPiece is how many bytes are searched, or changed, between two looks.
const searchPiece = 256 << 10

// bytesPerPart is how many bytes that are searched or copied are worth a part.
const bytesPerPart = 32

// indexOf does [strings.Index] in pieces; a part that is longer is as long as one.
func indexOf(s, part string, m *Meter) int {
	step := max(searchPiece, len(part))
	for at := 0; ; at += step {
		end := min(len(s), at+step+len(part))
		i := strings.Index(s[at:end], part)
		m.look(1 + (end-at)/bytesPerPart)
		switch {
		case i >= 0:
			return at + i
		case end == len(s):
			return -1
		}
	}
}

// lastIndexOf does [strings.LastIndex] in pieces.
func lastIndexOf(s, part string, m *Meter) int {
	step := max(searchPiece, len(part))
	for end := len(s); ; end -= step {
		at := max(0, end-step-len(part))
		i := strings.LastIndex(s[at:end], part)
		m.look(1 + (end-at)/bytesPerPart)
		switch {
		case i >= 0:
			return at + i
		case at == 0:
			return -1
		}
	}
}

// found goes through the places of part, which isn't empty, in s, from left to right
// and none inside another.
func found(s, part string, m *Meter) iter.Seq[int] {
	return func(yield func(int) bool) {
		for at := 0; ; {
			i := indexOf(s[at:], part, m)
			if i < 0 || !yield(at+i) {
				return
			}
			at += i + len(part)
		}
	}
}

// countParts returns how many places part has in s; 0 for an empty part.
func countParts(s, part string, m *Meter) int {
	n := 0
	if part != "" {
		for range found(s, part, m) {
			n++
		}
	}
	return n
}

// mapText makes a string of pieces of whole characters.
func mapText(s string, m *Meter, change func(string) string) string {
	if len(s) <= searchPiece {
		return change(s)
	}
	var out strings.Builder
	out.Grow(len(s))
	for len(s) > 0 {
		n := min(searchPiece, len(s))
		for n > 0 && n < len(s) && !utf8.RuneStart(s[n]) {
			n--
		}
		m.look(n / bytesPerPart * 8)
		out.WriteString(change(s[:n]))
		s = s[n:]
	}
	return out.String()
}
