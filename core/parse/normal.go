package parse

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"

	"github.com/mcp-pif/mcp-pif/core/display"
)

// normalise reads the strings of the scanned input as what they spell, as the
// predecessor did: JSON (and the strings in that), then a number as Haskell
// reads it, then true, false or null in any case. It returns the input as JSON
// and a note; the note is empty where nothing changed.
func (b *builder) normalise() (out []byte, note string) {
	for i := range b.nodes {
		if b.nodes[i].isValue() && mayChange(b.string(uint32(i))) {
			var w rewriter
			w.scanner(&b.scanner, 0)
			return w.out, w.note()
		}
	}
	return nil, ""
}

func (w *rewriter) note() string {
	if w.count == 0 {
		return ""
	}
	more := ""
	if w.count > 1 {
		more = fmt.Sprintf(" (and %d more)", w.count-1)
	}
	return w.first + more
}

// mayChange tests quickly whether a string may be anything but plain.
func mayChange(s string) bool {
	for _, c := range s {
		if haskellSpace(c) {
			continue
		}
		return strings.ContainsRune(`{["-0123456789(tTfFnNI`, c)
	}
	return false
}

// isDec reports whether node i is the digits of {"dec":"1.50"}, which stay as
// they are.
func (s *scanner) isDec(i int) bool {
	return i >= 2 && s.nodes[i-1].meta&isKey != 0 && s.nodes[i-2].kind() == object && s.nodes[i-2].count() == 1 && s.string(uint32(i-1)) == "dec"
}

// isValue reports whether a node is a string that is no key.
func (n *node) isValue() bool { return n.kind() == text && n.meta&isKey == 0 }

// A rewriter copies an input and puts what strings spell in their place.
type rewriter struct {
	out []byte
	// inside is how many strings the document being copied stands in.
	inside int
	// count is how many strings of the input itself were replaced, first tells
	// of the first.
	count int
	first string
}

// scanner copies a scanned document that stands at the given depth.
func (w *rewriter) scanner(s *scanner, depth int) {
	from := s.nodes[0].off
	for i := range s.nodes {
		n := &s.nodes[i]
		if !n.isValue() {
			continue
		}
		v := s.string(uint32(i))
		if !mayChange(v) || s.isDec(i) {
			continue
		}
		// What is between two changes is copied once, when the second is found.
		in := rewriter{inside: w.inside + 1}
		if !in.replace(v, depth) {
			continue
		}
		w.out = append(w.out, s.src[from:n.off]...)
		at := len(w.out)
		w.out = append(w.out, in.out...)
		from = n.end
		if w.inside > 0 {
			continue
		}
		if w.count++; w.count == 1 {
			w.first = fmt.Sprintf("the string %s in the input was read as %s", display.Truncate(oneLine(s.src[n.off:n.end]), 40), excerpt(oneLine(string(w.out[at:]))))
		}
	}
	w.out = append(w.out, s.src[from:s.nodes[0].end]...)
}

// replace appends what the string spells, and reports whether it spells
// anything but itself.
func (w *rewriter) replace(v string, depth int) bool {
	var s scanner
	s.reset(v)
	switch bad := s.scan(depth, MaxValues); {
	case bad == nil:
		w.scanner(&s, depth+1)
		return true
	case bad.why == tooDeep:
		// The whole will be refused for its depth where it is parsed.
		w.out = append(w.out, v...)
		return true
	}
	if n, ok := haskellNumber(v); ok {
		w.out = append(w.out, n...)
		return true
	}
	switch strings.ToLower(v) {
	case "true", "false", "null":
		if len(v) <= 5 {
			w.out = append(w.out, strings.ToLower(v)...)
			return true
		}
	}
	return false
}

// haskellSpace reports what Haskell's isSpace does.
func haskellSpace(r rune) bool {
	return r == ' ' || r >= 9 && r <= 13 || r == 0xa0 || r > 0xff && unicode.Is(unicode.Zs, r)
}

// haskellNumber reads what Haskell's reads::Double reads of the whole of s: a
// number, perhaps hexadecimal or octal, perhaps with a minus, perhaps in
// parentheses, with space before each part but not at the end. It returns a
// JSON number. What is no number (NaN, Infinity) is 0.
func haskellNumber(s string) (string, bool) {
	n, rest, ok := haskellParens(s, 0)
	if !ok || rest != "" {
		return "", false
	}
	return n, true
}

func skipSpace(s string) string { return strings.TrimLeftFunc(s, haskellSpace) }

// maxParens bounds parentheses around a number.
const maxParens = 1000

func haskellParens(s string, depth int) (n, rest string, ok bool) {
	s = skipSpace(s)
	if strings.HasPrefix(s, "(") {
		if depth == maxParens {
			return "", "", false
		}
		n, rest, ok = haskellParens(s[1:], depth+1)
		if rest = skipSpace(rest); !ok || !strings.HasPrefix(rest, ")") {
			return "", "", false
		}
		return n, rest[1:], true
	}
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", skipSpace(s[1:])
	}
	n, rest, ok = haskellLexeme(s)
	return sign + n, rest, ok
}

func haskellLexeme(s string) (n, rest string, ok bool) {
	for _, word := range [...]string{"NaN", "Infinity"} {
		if rest, ok := strings.CutPrefix(s, word); ok {
			return "0", rest, true
		}
	}
	if len(s) > 2 && s[0] == '0' && s[1]|0x20 == 'x' {
		if j := 2 + countFunc(s[2:], isHex); j > 2 && j <= 2+MaxDigits/2 {
			return decimalOf(s[2:j], 16), s[j:], true
		}
	}
	if len(s) > 2 && s[0] == '0' && s[1]|0x20 == 'o' {
		if j := 2 + countFunc(s[2:], isOctal); j > 2 && j <= 2+MaxDigits/2 {
			return decimalOf(s[2:j], 8), s[j:], true
		}
	}
	j := digits(s, 0)
	if j == 0 {
		return "", "", false
	}
	whole := cmp.Or(strings.TrimLeft(s[:j], "0"), "0")
	tail := j
	if tail < len(s) && s[tail] == '.' {
		if n := digits(s, tail+1); n > 0 {
			tail += 1 + n
		}
	}
	if tail < len(s) && s[tail]|0x20 == 'e' {
		e := tail + 1
		if e < len(s) && (s[e] == '+' || s[e] == '-') {
			e++
		}
		if n := digits(s, e); n > 0 {
			tail = e + n
		}
	}
	n = whole + s[j:tail]
	if _, _, bad := lexNumber(n, 0); bad != nil {
		return "", "", false
	}
	return n, s[tail:], true
}

func isHex(c byte) bool   { return c-'0' <= 9 || c|0x20 >= 'a' && c|0x20 <= 'f' }
func isOctal(c byte) bool { return c-'0' <= 7 }

func countFunc(s string, is func(byte) bool) int {
	n := 0
	for n < len(s) && is(s[n]) {
		n++
	}
	return n
}
