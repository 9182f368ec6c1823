// Package jsonvalue reads and writes values of the language as JSON, exactly, for
// plugins that speak with the world: no number goes through a double. It takes and
// gives what the language's parse_json and to_json do.
//
// It refuses what these refuse: on reading a key that is there twice, half of a
// surrogate pair and nesting deeper than [Deepest]; on writing what JSON has no form
// for. The text that is read has to be UTF-8, which the caller has checked.
package jsonvalue

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/value"
)

// Deepest is how deep JSON that is read may be nested.
const Deepest = 500

// Write writes a value as to_json does: numbers with all their digits, lists
// and records; and refuses what JSON has no form for, with its type in the error.
func Write(v value.Value) (string, error) {
	var out strings.Builder
	err := write(&out, v)
	return out.String(), err
}

func write(out *strings.Builder, v value.Value) error {
	switch v := value.Force(v).(type) {
	case value.Unit:
		out.WriteString("null")
	case value.Bool:
		out.WriteString(strconv.FormatBool(bool(v)))
	case value.Int:
		out.WriteString(v.String())
	case value.Dec:
		out.WriteString(v.String())
	case value.Str:
		quote(out, string(v))
	case value.Nil, *value.Cons:
		items, _ := value.Slice(v)
		out.WriteByte('[')
		for i, item := range items {
			if i > 0 {
				out.WriteByte(',')
			}
			if err := write(out, item); err != nil {
				return err
			}
		}
		out.WriteByte(']')
	case *value.Record:
		out.WriteByte('{')
		for i, f := range v.Fields {
			if i > 0 {
				out.WriteByte(',')
			}
			quote(out, f.Key)
			out.WriteByte(':')
			if err := write(out, f.Value); err != nil {
				return err
			}
		}
		out.WriteByte('}')
	default:
		return fmt.Errorf("json has a %s in it, which JSON has no form for", v.Type())
	}
	return nil
}

// quote writes a string with no more escapes than it needs.
func quote(out *strings.Builder, s string) {
	const hex = "0123456789abcdef"
	out.WriteByte('"')
	for _, c := range []byte(s) {
		if k := strings.IndexByte("\"\\\b\t\n\f\r", c); k >= 0 {
			out.Write([]byte{'\\', `"\btnfr`[k]})
		} else if c < ' ' {
			out.Write([]byte{'\\', 'u', '0', '0', hex[c>>4], hex[c&15]})
		} else {
			out.WriteByte(c)
		}
	}
	out.WriteByte('"')
}

// A reader makes a value of JSON text, or nothing: it takes the text that
// parse_json takes, and no key twice, no half of a surrogate pair and no number
// that would be rounded.
type reader struct {
	s     string
	i     int
	depth int
}

// Read reads one JSON value and nothing after it.
func Read(s string) (value.Value, bool) {
	r := reader{s: s}
	v, ok := r.value()
	r.space()
	return v, ok && r.i == len(s)
}

func (r *reader) space() {
	for r.i < len(r.s) && strings.IndexByte(" \t\r\n", r.s[r.i]) >= 0 {
		r.i++
	}
}

// next skips blanks and takes c if it comes then.
func (r *reader) next(c byte) bool {
	if r.space(); r.i < len(r.s) && r.s[r.i] == c {
		r.i++
		return true
	}
	return false
}

func (r *reader) word(word string) bool {
	if strings.HasPrefix(r.s[r.i:], word) {
		r.i += len(word)
		return true
	}
	return false
}

func (r *reader) value() (value.Value, bool) {
	r.depth++
	defer func() { r.depth-- }()
	if r.space(); r.i == len(r.s) || r.depth > Deepest {
		return nil, false
	}
	switch r.s[r.i] {
	case '{':
		return r.object()
	case '[':
		return r.array()
	case '"':
		s, ok := r.string()
		return value.Str(s), ok
	case 't':
		return value.Bool(true), r.word("true")
	case 'f':
		return value.Bool(false), r.word("false")
	case 'n':
		return value.Unit{}, r.word("null")
	}
	return r.number()
}

func (r *reader) array() (value.Value, bool) {
	r.i++
	var items []value.Value
	for !r.next(']') {
		if len(items) > 0 && !r.next(',') {
			return nil, false
		}
		item, ok := r.value()
		if !ok {
			return nil, false
		}
		items = append(items, item)
	}
	return value.FromSlice(items), true
}

func (r *reader) object() (value.Value, bool) {
	r.i++
	record := &value.Record{}
	for !r.next('}') {
		if len(record.Fields) > 0 && !r.next(',') {
			return nil, false
		}
		if r.space(); r.i == len(r.s) || r.s[r.i] != '"' {
			return nil, false
		}
		key, ok := r.string()
		if !ok || !r.next(':') {
			return nil, false
		}
		v, ok := r.value()
		if !ok {
			return nil, false
		}
		record.Fields = append(record.Fields, value.Field{Key: key, Value: v})
	}
	slices.SortFunc(record.Fields, func(a, b value.Field) int { return strings.Compare(a.Key, b.Key) })
	for i := 1; i < len(record.Fields); i++ {
		if record.Fields[i].Key == record.Fields[i-1].Key {
			return nil, false
		}
	}
	return record, true
}

// number reads an integer, or where it has a point or an exponent a decimal.
func (r *reader) number() (value.Value, bool) {
	end := r.i
	for end < len(r.s) && strings.IndexByte("0123456789+-.eE", r.s[end]) >= 0 {
		end++
	}
	text := r.s[r.i:end]
	r.i = end
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && text == strconv.FormatInt(n, 10) {
		return value.NewInt(n), true
	}
	d, ok := value.ParseDec(text)
	switch {
	case !ok:
		return nil, false
	case strings.ContainsAny(text, ".eE"):
		return d, true
	}
	return value.NewBig(new(big.Int).Set(d.Unscaled())), true
}

func (r *reader) string() (string, bool) {
	r.i++
	start := r.i
	var out []byte
	for r.i < len(r.s) {
		c := r.s[r.i]
		switch {
		case c == '"':
			r.i++
			if out == nil {
				return r.s[start : r.i-1], true
			}
			return string(out), true
		case c < ' ':
			return "", false
		case c == '\\':
			if out == nil {
				out = append(make([]byte, 0, r.i-start+16), r.s[start:r.i]...)
			}
			var ok bool
			if out, ok = r.escape(out); !ok {
				return "", false
			}
		default:
			if out != nil {
				out = append(out, c)
			}
			r.i++
		}
	}
	return "", false
}

func (r *reader) escape(out []byte) ([]byte, bool) {
	if r.i+1 < len(r.s) {
		if k := strings.IndexByte(`"\/bfnrt`, r.s[r.i+1]); k >= 0 {
			r.i += 2
			return append(out, "\"\\/\b\f\n\r\t"[k]), true
		}
	}
	c, ok := r.unit()
	if !ok {
		return nil, false
	}
	if utf16.IsSurrogate(c) {
		low, ok := r.unit()
		if c = utf16.DecodeRune(c, low); !ok || c == utf8.RuneError {
			return nil, false
		}
	}
	return utf8.AppendRune(out, c), true
}

// unit takes an escape \uXXXX.
func (r *reader) unit() (rune, bool) {
	if r.i+6 > len(r.s) || r.s[r.i] != '\\' || r.s[r.i+1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(r.s[r.i+2:r.i+6], 16, 32)
	r.i += 6
	return rune(n), err == nil
}
