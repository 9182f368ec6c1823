package text

import (
	"strings"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/json"
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
		if s[i] != '\\' {
			b = append(b, s[i])
			i++
			continue
		}
		if strings.HasPrefix(s[i:], "\\`") {
			b = append(b, '`')
			i += 2
			continue
		}
		c, n, half := json.Unescape(s, i)
		switch {
		case half:
			return "", i, "a surrogate stands alone, without its other half"
		case n > 0:
			b = utf8.AppendRune(b, c)
			i += n
		case i+1 == len(s):
			return "", i, "a backslash begins an escape"
		case s[i+1] == 'u':
			return "", i, `\u takes four hexadecimal digits`
		default:
			return "", i, "there is no such escape"
		}
	}
	return string(b), 0, ""
}

// shorter truncates s as messages quote it.
func shorter(s string) string { return display.Truncate(s, 40) }
