package cost

import (
	"strconv"
	"strings"
)

// A reader takes a path apart:
//
//	path = root { "[]" | "[*]" | "[**]" | ".1" | ".2" | "[" string "]" }
type reader struct{ s string }

func (r *reader) take(s string) bool {
	rest, ok := strings.CutPrefix(r.s, s)
	if ok {
		r.s = rest
	}
	return ok
}

// root reads a path's beginning: a name, or one in quotes.
func (r *reader) root() bool {
	if strings.HasPrefix(r.s, `"`) {
		quoted, err := strconv.QuotedPrefix(r.s)
		if err != nil {
			return false
		}
		r.s = r.s[len(quoted):]
		return true
	}
	n := 0
	for n < len(r.s) && plain(r.s[n]) {
		n++
	}
	r.s = r.s[n:]
	return n > 0
}

func plain(c byte) bool {
	return c-'0' <= 9 || c|0x20-'a' <= 25 || c == '_' || c == '@'
}

// RootName returns a name as a path begins with it.
func RootName(name string) string {
	for i := 0; i < len(name); i++ {
		if !plain(name[i]) || name[i] == '@' || i == 0 && name[0]-'0' <= 9 {
			return strconv.Quote(name)
		}
	}
	if name == "" {
		return `""`
	}
	return name
}

// rootOf returns what a path begins with.
func rootOf(path string) string {
	r := reader{s: path}
	if !r.root() {
		return path
	}
	return path[:len(path)-len(r.s)]
}
