package mcplock

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/lazyregexp"
)

// noSchema stands for a schema that was cut out.
const noSchema = "{}"

// schemaLevel is how many objects of a file a schema is in.
const schemaLevel = 5

// deepest is the start of the line that is nested deepest, in the layout of [encode].
var deepest = "\n" + strings.Repeat("  ", fileLevels)

// schemaKey is what is before a schema, and nowhere else in that layout.
var schemaKey = lazyregexp.New(`\n {10}"(in|out)put": `)

// cutSchemas returns a file's text with [noSchema] for the schemas of tools that are objects,
// and these, compact and in their order. It reports whether each is JSON in the layout of
// [encode], by its white space, that has no key twice.
func cutSchemas(text []byte) (rest []byte, schemas []json.RawMessage, ok bool) {
	l := &layout{text: text, compact: make([]byte, 0, len(text)/2)}
	for {
		at := schemaKey.Compiled().FindIndex(l.text)
		if at == nil {
			return append(rest, l.text...), schemas, utf8.Valid(text)
		}
		rest, l.text = append(rest, l.text[:at[1]]...), l.text[at[1]:]
		if l.next() != '{' {
			continue
		}
		l.compact = l.compact[len(l.compact):]
		if !l.value(schemaLevel) {
			return nil, nil, false
		}
		rest, schemas = append(rest, noSchema...), append(schemas, slices.Clip(l.compact))
	}
}

// A layout is JSON that is being read. Its methods report whether it is as it has to be.
type layout struct {
	text    []byte   // what is left
	compact []byte   // what was read
	keys    [][]byte // of the objects that are open
}

// next is the byte that comes; 0: none.
func (l *layout) next() byte {
	if len(l.text) > 0 {
		return l.text[0]
	}
	return 0
}

// take goes on by n bytes and returns them.
func (l *layout) take(n int) []byte {
	taken := l.text[:n]
	l.compact, l.text = append(l.compact, taken...), l.text[n:]
	return taken
}

// space goes on behind white space.
func (l *layout) space(s string) bool {
	n := min(len(s), len(l.text))
	before := l.text[:n]
	l.text = l.text[n:]
	return string(before) == s
}

// string goes on behind a string and returns it without its quotes.
func (l *layout) string() (s []byte, ok bool) {
	escaped := false
	for n := 1; n < len(l.text) && l.text[0] == '"'; n++ {
		switch c := l.text[n]; {
		case c == '"':
			if s = l.take(n + 1); !escaped {
				return s[1:n], true
			}
			var decoded string
			ok = json.Unmarshal(s, &decoded) == nil
			return []byte(decoded), ok
		case c == '\\':
			escaped = true
			n++
		case c < ' ':
			return nil, false
		}
	}
	return nil, false
}

func (l *layout) value(level int) bool {
	open := l.next()
	switch {
	case open == '"':
		_, ok := l.string()
		return ok
	case open != '{' && open != '[':
		word := l.take(max(0, bytes.IndexAny(l.text, ",\n")))
		return json.Valid(word) && !bytes.ContainsAny(word, " \t\r")
	case level == fileLevels:
		return false
	}
	l.take(1)
	shut, first := open+2, len(l.keys) // in ASCII, of both
	for more := l.next() != shut; more; {
		if !l.space(deepest[:3+2*level]) {
			return false
		}
		if open == '{' {
			key, ok := l.string()
			l.keys, l.compact = append(l.keys, key), append(l.compact, ':')
			if !ok || !l.space(": ") {
				return false
			}
		}
		if !l.value(level + 1) {
			return false
		}
		if more = l.next() == ','; more {
			l.take(1)
		} else if !l.space(deepest[:1+2*level]) {
			return false
		}
	}
	keys := l.keys[first:]
	slices.SortFunc(keys, bytes.Compare)
	l.keys = l.keys[:first]
	return l.next() == shut && len(l.take(1)) == 1 && len(slices.CompactFunc(keys, bytes.Equal)) == len(keys)
}
