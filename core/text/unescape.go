package text

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/display"
)

// unescape decodes what stands between the delimiters of a string or of a name
// in backquotes: JSON's escapes, and \` besides. at and why say what is wrong;
// why is empty where nothing is.
func unescape(s string) (decoded string, at int, why string) {
	i := strings.IndexByte(s, '\\')
	if i < 0 {
		return s, 0, ""
	}
	b := make([]byte, 0, len(s))
	b = append(b, s[:i]...)
	for i < len(s) {
		c := s[i]
		if c != '\\' {
			b = append(b, c)
			i++
			continue
		}
		if i+1 == len(s) {
			return "", i, "a backslash begins an escape"
		}
		if s[i+1] == 'u' {
			r, n := hex4(s[i:])
			if n == 0 {
				return "", i, `\u takes four hexadecimal digits`
			}
			if utf16.IsSurrogate(r) {
				low, m := hex4(s[i+n:])
				if r = utf16.DecodeRune(r, low); m == 0 || r == utf8.RuneError {
					return "", i, "a surrogate stands alone, without its other half"
				}
				n += m
			}
			b = utf8.AppendRune(b, r)
			i += n
			continue
		}
		k := strings.IndexByte("\"\\/bfnrt`", s[i+1])
		if k < 0 {
			return "", i, "there is no such escape"
		}
		b = append(b, "\"\\/\b\f\n\r\t`"[k])
		i += 2
	}
	return string(b), 0, ""
}

// hex4 reads \uXXXX; n is 0 where s doesn't begin with one.
func hex4(s string) (r rune, n int) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, 0
	}
	for _, c := range []byte(s[2:6]) {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, 0
		}
	}
	return r, 6
}

// shorter truncates s as messages quote it.
func shorter(s string) string { return display.Truncate(s, 40) }
