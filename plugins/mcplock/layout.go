package mcplock

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// noSchema stands for a schema that was cut out.
const noSchema = "{}"

// cutSchemas reads a file's text in one pass and returns it with [noSchema] for the schemas of
// tools that are objects, and these, compact and in their order. It reports whether the text is
// JSON in the layout of [encode], by its white space, that has no key twice.
func cutSchemas(text []byte) (rest []byte, schemas []json.RawMessage, ok bool) {
	l := &layout{text: text, compact: make([]byte, 0, len(text)/2)}
	ok = utf8.Valid(text) && l.value(atTop, 0) && l.at == len(text)
	return append(l.rest, text[l.copied:]...), l.schemas, ok
}

// A layout is a text that is being read. Its methods report whether it is as it has to be.
type layout struct {
	text    []byte
	at      int
	keys    [][]byte // of the objects that are open
	rest    []byte
	copied  int // how much of text is in rest or in schemas
	schemas []json.RawMessage
	compact []byte // the schema that is being read
	inside  bool   // of a schema
}

// Where a value is.
const (
	elsewhere = iota
	atTop
	atServers
	atServer
	atTools
	atTool
	atSchema
)

// within returns where the value of a key is.
func within(where int, key []byte) int {
	switch name := string(key); {
	case where == atTop && name == "servers", where == atServer && name == "tools", where == atServers, where == atTools:
		return where + 1
	case where == atTool && (name == "input" || name == "output"):
		return atSchema
	}
	return elsewhere
}

// take goes on by n bytes.
func (l *layout) take(n int) {
	if l.inside {
		l.compact = append(l.compact, l.text[l.at:l.at+n]...)
	}
	l.at += n
}

// skip goes on by a byte, if it is that.
func (l *layout) skip(c byte) bool {
	if l.next() != c {
		return false
	}
	l.take(1)
	return true
}

// next is the byte that comes; 0: none.
func (l *layout) next() byte {
	if l.at < len(l.text) {
		return l.text[l.at]
	}
	return 0
}

func (l *layout) value(where, depth int) bool {
	switch c := l.next(); {
	case c == '{' && where == atSchema:
		l.rest = append(append(l.rest, l.text[l.copied:l.at]...), noSchema...)
		from := len(l.compact)
		l.inside = true
		ok := l.parts(elsewhere, depth)
		l.inside = false
		l.schemas = append(l.schemas, l.compact[from:len(l.compact):len(l.compact)])
		l.copied = l.at
		return ok
	case c == '{', c == '[':
		return l.parts(where, depth)
	case c == '"':
		_, ok := l.string()
		return ok
	}
	n := bytes.IndexAny(l.text[l.at:], ",\n")
	if n < 0 {
		n = len(l.text) - l.at
	}
	word := l.text[l.at : l.at+n]
	l.take(n)
	return json.Valid(word) && !bytes.ContainsAny(word, " \t\r")
}

// string reads a string and returns it without its quotes.
func (l *layout) string() (s []byte, ok bool) {
	escaped, from := false, l.at
	if l.next() != '"' {
		return nil, false
	}
	for at := from + 1; at < len(l.text); at++ {
		switch c := l.text[at]; {
		case c == '"':
			l.take(at + 1 - from)
			if escaped {
				var decoded string
				ok = json.Unmarshal(l.text[from:l.at], &decoded) == nil
				return []byte(decoded), ok
			}
			return l.text[from+1 : at], true
		case c == '\\':
			escaped = true
			at++
		case c < ' ':
			return nil, false
		}
	}
	return nil, false
}

// parts reads an object or a list.
func (l *layout) parts(where, depth int) bool {
	open := l.text[l.at]
	l.take(1)
	shut := open + 2 // in ASCII, of both
	if l.skip(shut) {
		return depth < maxLevels
	}
	first := len(l.keys)
	for {
		if depth == maxLevels || !l.line(depth+1) {
			return false
		}
		at := elsewhere
		if open == '{' {
			key, ok := l.string()
			if !ok || !l.skip(':') || l.next() != ' ' {
				return false
			}
			l.at++
			l.keys = append(l.keys, key)
			at = within(where, key)
		}
		if !l.value(at, depth+1) {
			return false
		}
		if !l.skip(',') {
			break
		}
	}
	keys := l.keys[first:]
	slices.SortFunc(keys, bytes.Compare)
	l.keys = l.keys[:first]
	return l.line(depth) && l.skip(shut) && len(slices.CompactFunc(keys, bytes.Equal)) == len(keys)
}

// indent is the start of the line that is nested deepest.
var indent = "\n" + strings.Repeat("  ", maxLevels)

// line reads the start of a line.
func (l *layout) line(depth int) bool {
	n := 1 + 2*depth
	if len(l.text)-l.at < n || string(l.text[l.at:l.at+n]) != indent[:n] {
		return false
	}
	l.at += n
	return true
}
