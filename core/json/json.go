// Package json reads and writes the text of JSON for values of the language.
//
// [Read] is as strict as the parser of programs: it refuses a duplicate key, half of a
// surrogate pair, and a number of more than 4,096 digits. Numbers stay exact: one with a
// point or an exponent is a decimal, any other an integer. [Append] writes what Read
// reads back, and nothing for what JSON has no form for.
//
// [Unescape] and [WriteEscaped] decode and encode strings for the parsers and writers
// that have places, budgets or styles of their own: package parse reads programs,
// package text writes results.
package json

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/value"
)

// escapes is how the characters that can't stand in a string are written: as
// RFC 8785 has it, the shortest way.
var escapes = func() (e ['\\' + 1]string) {
	const hex = "0123456789abcdef"
	for c := range byte(' ') {
		e[c] = `\u00` + string(hex[c>>4]) + string(hex[c&15])
	}
	e['\b'], e['\t'], e['\n'], e['\f'], e['\r'] = `\b`, `\t`, `\n`, `\f`, `\r`
	e['"'], e['\\'] = `\"`, `\\`
	return e
}()

// Escape returns the escape for a byte, "" for one that stands for itself.
func Escape(c byte) string {
	if c > '\\' {
		return ""
	}
	return escapes[c]
}

// WriteEscaped writes s in parts, with no more escapes than a string needs, until write
// returns false.
func WriteEscaped(s string, write func(part string) bool) {
	start := 0
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		if !write(s[start:i]) || !write(escapes[s[i]]) {
			return
		}
		start = i + 1
	}
	write(s[start:])
}

// Append appends a value. odd is the part of it that JSON has no form for: a pair, a
// function, code; nil where there is none.
func Append(dst []byte, v value.Value) (out []byte, odd value.Value) {
	switch v := value.Force(v).(type) {
	case value.Unit:
		return append(dst, "null"...), nil
	case value.Bool:
		return strconv.AppendBool(dst, bool(v)), nil
	case value.Int:
		return append(dst, v.String()...), nil
	case value.Dec:
		return append(dst, v.String()...), nil
	case value.Str:
		return appendString(dst, string(v)), nil
	case value.Nil, *value.Cons:
		items, _ := value.Slice(v)
		dst = append(dst, '[')
		for i, item := range items {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, odd = Append(dst, item); odd != nil {
				return dst, odd
			}
		}
		return append(dst, ']'), nil
	case *value.Record:
		dst = append(dst, '{')
		for i, f := range v.Fields {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendString(dst, f.Key), ':')
			if dst, odd = Append(dst, f.Value); odd != nil {
				return dst, odd
			}
		}
		return append(dst, '}'), nil
	}
	return dst, v
}

func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	WriteEscaped(s, func(part string) bool {
		dst = append(dst, part...)
		return true
	})
	return append(dst, '"')
}

// Unescape decodes the escape at s[i], a backslash, and returns its character and its
// length, that of both halves of a surrogate pair. n is 0 where the escape is wrong; half
// is set where it is one half of a pair.
func Unescape(s string, i int) (c rune, n int, half bool) {
	if i+1 == len(s) {
		return 0, 0, false
	}
	if k := strings.IndexByte(`"\/bfnrt`, s[i+1]); k >= 0 {
		return rune("\"\\/\b\f\n\r\t"[k]), 2, false
	}
	c, ok := unit(s, i)
	if !ok || !utf16.IsSurrogate(c) {
		if ok {
			n = 6
		}
		return c, n, false
	}
	low, ok := unit(s, i+6)
	if c = utf16.DecodeRune(c, low); !ok || c == utf8.RuneError {
		return 0, 0, true
	}
	return c, 12, false
}

// unit reads the escape \uXXXX at s[i].
func unit(s string, i int) (r rune, ok bool) {
	if i+6 > len(s) || s[i] != '\\' || s[i+1] != 'u' {
		return 0, false
	}
	for _, c := range []byte(s[i+2 : i+6]) {
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
