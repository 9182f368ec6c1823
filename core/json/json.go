// Package json reads and writes the text of JSON for values of the language.
//
// [Read] is as strict as the parser of programs: it refuses a duplicate key, half of a
// surrogate pair, and a number of more than 4,096 digits. Numbers stay exact: one with a
// point or an exponent is a decimal, any other an integer. [Append] writes what Read
// reads back, but a decimal without a digit after its point as the integer, and nothing
// for what JSON has no form for.
//
// [Unescape] and [WriteEscaped] decode and encode strings for the parsers and writers
// that have places, budgets or styles of their own: package parse reads programs,
// package text writes results. [Encode] and [Decode] are for values of Go. A [Cursor] goes
// past the parts of a text that stays one.
package json

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
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

// malformed stands for nil, and for the rest of a list that is none.
type malformed struct{ value.Unit }

func (malformed) Type() value.Type { return "malformed part" }

// Append appends a value; a decimal such as 1e3, with no digit after its point, becomes an
// integer when it is read back. odd is the part of it that JSON has no form for: a pair, a
// function, code, what is no value of the language; nil where there is none.
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
	case value.Nil:
		return append(dst, "[]"...), nil
	case *value.Cons:
		for sep := byte('['); ; sep = ',' {
			if dst, odd = Append(append(dst, sep), v.Head); odd != nil {
				return dst, odd
			}
			switch tail := value.Force(v.Tail).(type) {
			case *value.Cons:
				v = tail
			case value.Nil:
				return append(dst, ']'), nil
			default:
				return dst, malformed{}
			}
		}
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
	case nil:
		return dst, malformed{}
	default:
		return dst, v
	}
}

func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	WriteEscaped(s, func(part string) bool {
		dst = append(dst, part...)
		return true
	})
	return append(dst, '"')
}

// Encode writes a value of Go compactly, as encoding/json does but without escapes for HTML.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// MustEncode is [Encode] of what always has JSON.
func MustEncode(v any) []byte {
	b, err := Encode(v)
	if err != nil {
		panic(fmt.Sprintf("%T has no JSON: %v", v, err))
	}
	return b
}

// Decode reads the value of Go that a text begins with. A number that goes into an any stays
// as it is written ([json.Number]).
func Decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(into)
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

// An Error is where a text is no JSON, and what it should have there.
type Error struct {
	At   int // the offset in bytes
	Want string
}

func (e *Error) Error() string { return fmt.Sprintf("byte %d: expected %s", e.At, e.Want) }

// Read reads one JSON value of at most so many brackets inside each other, and nothing
// after it. Where look isn't nil, it is told of the work as it is done: about the values,
// and every 32 bytes of strings.
func Read(s string, maxNesting int, look func(parts int)) (value.Value, *Error) {
	r := reader{s: s, left: maxNesting, max: maxNesting, look: look}
	v := r.value()
	if r.space(); r.bad == nil && r.i < len(s) {
		r.fail("the end")
	}
	if r.bad != nil {
		return nil, r.bad
	}
	return v, nil
}

// Exponents bounds the bytes of the digits that numbers have for their Exponents.
func Exponents(s string) (bytes int64) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			quoted = !quoted
		case quoted:
			if c == '\\' {
				i++
			}
		case c|0x20 == 'e':
			n := int64(0)
			for i++; i < len(s) && (s[i] == '+' || s[i]-'0' <= 9); i++ {
				if n = min(10*n+int64(s[i]&15), 10*value.MaxDigits); s[i] == '+' {
					n = 0
				}
			}
			i--
			if n <= 2*value.MaxDigits {
				bytes += n / 2
			}
		}
	}
	return bytes
}

// A reader stands at byte i of a text.
type reader struct {
	s         string
	i         int
	left, max int // brackets that may still be opened, and in all
	look      func(parts int)
	bad       *Error
}

const bytesPerPart = 32

func (r *reader) work(parts int) {
	if r.look != nil {
		r.look(parts)
	}
}

// fail notes what was wanted where the reader stands.
func (r *reader) fail(want string) value.Value {
	if r.bad == nil {
		r.bad = &Error{r.i, want}
	}
	return nil
}

func (r *reader) space() {
	for r.i < len(r.s) && (r.s[r.i] == ' ' || r.s[r.i] == '\n' || r.s[r.i] == '\t' || r.s[r.i] == '\r') {
		r.i++
	}
}

// next skips blanks and reports whether c comes then, which it takes.
func (r *reader) next(c byte) bool {
	r.space()
	if r.i < len(r.s) && r.s[r.i] == c {
		r.i++
		return true
	}
	return false
}

func (r *reader) word(word string, v value.Value) value.Value {
	if !strings.HasPrefix(r.s[r.i:], word) {
		return r.fail("a JSON value")
	}
	r.i += len(word)
	return v
}

func (r *reader) value() value.Value {
	r.work(2)
	if r.space(); r.i == len(r.s) {
		return r.fail("a JSON value")
	}
	switch c := r.s[r.i]; {
	case c == '{' || c == '[':
		if r.left == 0 {
			return r.fail(fmt.Sprintf("at most %d brackets inside each other", r.max))
		}
		r.i++
		r.left--
		var v value.Value
		if c == '{' {
			v = r.object()
		} else {
			v = r.array()
		}
		r.left++
		return v
	case c == '"':
		return value.Str(r.string())
	case c == 't':
		return r.word("true", value.Bool(true))
	case c == 'f':
		return r.word("false", value.Bool(false))
	case c == 'n':
		return r.word("null", value.Unit{})
	case c == '-' || c-'0' <= 9:
		return r.number()
	}
	return r.fail("a JSON value")
}

func (r *reader) array() value.Value {
	var all []value.Value
	if r.next(']') {
		return value.Nil{}
	}
	for {
		all = append(all, r.value())
		switch {
		case r.bad != nil:
			return nil
		case r.next(']'):
			return value.FromSlice(all)
		case !r.next(','):
			return r.fail(`"," or "]"`)
		}
	}
}

func (r *reader) object() value.Value {
	if r.next('}') {
		return &value.Record{}
	}
	var fields []value.Field
	seen := map[string]struct{}{}
	for {
		if r.space(); r.i == len(r.s) || r.s[r.i] != '"' {
			return r.fail("a key in double quotes")
		}
		start := r.i
		key := r.string()
		if _, dup := seen[key]; dup && r.bad == nil {
			r.i = start
			return r.fail("each key once in its object")
		}
		seen[key] = struct{}{}
		if r.bad == nil && !r.next(':') {
			r.fail("a colon after the key")
		}
		if r.bad != nil {
			return nil
		}
		fields = append(fields, value.Field{Key: key, Value: r.value()})
		switch {
		case r.bad != nil:
			return nil
		case r.next('}'):
			slices.SortFunc(fields, func(a, b value.Field) int {
				r.work(1 + min(len(a.Key), len(b.Key))/bytesPerPart)
				return strings.Compare(a.Key, b.Key)
			})
			return &value.Record{Fields: fields}
		case !r.next(','):
			return r.fail(`"," or "}"`)
		}
	}
}

func (r *reader) number() value.Value {
	end := r.i
	for end < len(r.s) && strings.IndexByte("0123456789+-.eE", r.s[end]) >= 0 {
		end++
	}
	s := r.s[r.i:end]
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && s == strconv.FormatInt(n, 10) {
		r.i = end
		return value.NewInt(n)
	}
	d, ok := value.ParseDec(s)
	if !ok {
		return r.fail("a JSON number of at most 4096 digits")
	}
	r.i = end
	r.work(3 * d.Words())
	if strings.ContainsAny(s, ".eE") {
		return d
	}
	return value.NewBig(new(big.Int).Set(d.Unscaled()))
}

// string reads the string that begins here; "" where it fails.
func (r *reader) string() string {
	r.i++
	start := r.i
	var out []byte
	for r.i < len(r.s) {
		switch c := r.s[r.i]; {
		case c == '"':
			out = append(out, r.s[start:r.i]...)
			r.work(len(out) / bytesPerPart)
			r.i++
			return string(out)
		case c < ' ':
			r.fail("no control character in a string")
			return ""
		case c == '\\':
			r.work(1)
			out = append(out, r.s[start:r.i]...)
			c, n, half := Unescape(r.s, r.i)
			switch {
			case half:
				r.fail("both halves of a surrogate pair")
				return ""
			case n == 0:
				r.fail(`an escape: \" \\ \/ \b \f \n \r \t or \u and four hexadecimal digits`)
				return ""
			}
			out = utf8.AppendRune(out, c)
			r.i += n
			start = r.i
		default:
			r.i++
		}
	}
	r.fail("a closing double quote")
	return ""
}
