package parse

import (
	"unicode/utf16"
	"unicode/utf8"
)

// escape measures the escape sequence at src[i], a backslash: its bytes, both
// halves of a surrogate pair together; 0 and the reason where it is wrong.
func escape(src string, i int) (n int, why reason) {
	if i+1 == len(src) {
		return 0, badEscape
	}
	switch src[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, 0
	case 'u':
		r, ok := hex4(src, i+2)
		switch {
		case !ok:
			return 0, badEscape
		case !utf16.IsSurrogate(r):
			return 6, 0
		}
		if i+8 <= len(src) && src[i+6] == '\\' && src[i+7] == 'u' {
			if low, ok := hex4(src, i+8); ok && utf16.DecodeRune(r, low) != utf8.RuneError {
				return 12, 0
			}
		}
		return 0, loneSurrogate
	}
	return 0, badEscape
}

func hex4(src string, i int) (r rune, ok bool) {
	if i+4 > len(src) {
		return 0, false
	}
	for _, c := range []byte(src[i : i+4]) {
		switch {
		case c-'0' <= 9:
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// unescape gives the value of what stands between a string's quotes. The
// escapes in it are known to be right.
func unescape(s string) string {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '\\' {
			b = append(b, c)
			continue
		}
		i++
		switch s[i] {
		case 'b':
			b = append(b, '\b')
		case 'f':
			b = append(b, '\f')
		case 'n':
			b = append(b, '\n')
		case 'r':
			b = append(b, '\r')
		case 't':
			b = append(b, '\t')
		case 'u':
			r, _ := hex4(s, i+1)
			i += 4
			if utf16.IsSurrogate(r) {
				low, _ := hex4(s, i+3)
				r = utf16.DecodeRune(r, low)
				i += 6
			}
			b = utf8.AppendRune(b, r)
		default:
			b = append(b, s[i])
		}
	}
	return string(b)
}
