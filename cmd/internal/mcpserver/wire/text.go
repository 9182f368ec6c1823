package wire

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// MaxDepth is how deep a result may nest and still be structured content.
// Clients exist that read no more than 1,000 levels, and the message around it
// takes some.
const MaxDepth = 900

// DeeperThan reports whether JSON nests deeper than n.
func DeeperThan(json []byte, n int) bool {
	if len(json) <= 2*n {
		return false
	}
	depth, quoted := 0, false
	for i := 0; i < len(json); i++ {
		switch c := json[i]; {
		case c == '"':
			quoted = !quoted
		case quoted:
			if c == '\\' {
				i++
			}
		case c == '{', c == '[':
			if depth++; depth > n {
				return true
			}
		case c == '}', c == ']':
			depth--
		}
	}
	return false
}

// Instant is a time as answers have it.
func Instant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// Excerpt shows up to n bytes of a text, on one line.
func Excerpt(b []byte, n int) string { return strings.ReplaceAll(display.Truncate(b, n), "\n", " ") }

// ReadText gives the text that JSON is a string of; of the beginning of one (cut), the text
// that it holds whole. Anything else is none.
func ReadText(json []byte, cut bool) (text string, ok bool) {
	if len(json) == 0 || json[0] != '"' {
		return "", false
	}
	if !cut {
		return text, ReadString(json, &text)
	}
	// The longest escape has six bytes, and so much may be of one, or of a character.
	for n := len(json); n > max(0, len(json)-6); n-- {
		if r, size := utf8.DecodeLastRune(json[:n]); r == utf8.RuneError && size == 1 {
			continue
		}
		if ReadString(append(json[:n:n], '"'), &text) {
			return text, true
		}
	}
	return "", false
}

// Nearest is the name among those given that name was probably meant to be, or
// "". Names too long or too short to be near are left out first, since there
// may be ten thousand.
func Nearest(name string, among []string) string {
	var likely []string
	for _, other := range among {
		if d := len(other) - len(name); -8 <= d && d <= 8 {
			likely = append(likely, other)
		}
	}
	return prim.Closest(name, likely)
}

func Plural(n int, one, many string) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// IsInteger reports whether a result is an integer and nothing else. It stays
// the number that it is, however many digits it has: its reader asked for it.
func IsInteger(src []byte) bool {
	src = bytes.TrimPrefix(src, []byte("-"))
	return len(src) > 0 && len(bytes.Trim(src, "0123456789")) == 0
}

// MaxNumber is how many digits a number has, before its point, that readers of JSON
// take which have doubles for numbers: others read an infinity, which no schema lets
// through, or nothing.
const MaxNumber = 308

// longest is from how many digits on results have an integer as {"int":"…"}.
const longest = 4096

// HasLongNumber reports whether JSON has a number of more digits, or an integer that is
// written {"int":"…"}.
func HasLongNumber(src []byte) bool {
	for i := 0; i < len(src); i++ {
		switch c := src[i]; {
		case c == '"':
			from := i
			for i++; i < len(src) && src[i] != '"'; i++ {
				if src[i] == '\\' {
					i++
				}
			}
			if i-from > longest && bytes.HasSuffix(src[:from], []byte(`{"int":`)) {
				return true
			}
		case c >= '0' && c <= '9':
			from := i
			for i++; i < len(src) && src[i] >= '0' && src[i] <= '9'; i++ {
			}
			if i-from > MaxNumber {
				return true
			}
			if i < len(src) && src[i] == '.' { // digits behind it make it no larger
				for i++; i < len(src) && src[i] >= '0' && src[i] <= '9'; i++ {
				}
			}
			i--
		}
	}
	return false
}

// MaxShown is how many bytes of a recorded text are shown.
const MaxShown = 300

// MaxDescribed is how many bytes of a tool's code, and of its examples, a
// description holds.
const MaxDescribed = 32 << 10

// Scheme begins every address of ours.
const Scheme = "pif://"

// ToolURI is the address of a tool.
func ToolURI(name string) string { return Scheme + "tools/" + url.PathEscape(name) }

// PublishedURI is the address of what a tool publishes.
func PublishedURI(name string) string { return Scheme + "published/" + url.PathEscape(name) }

// ResultURI is the address of a large result.
func ResultURI(id string) string { return Scheme + "results/" + id }
