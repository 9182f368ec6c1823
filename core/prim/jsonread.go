package prim

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// maxNesting is how deep JSON may be nested.
const maxNesting = 10_000

// A reader makes a value of JSON text, for parse_json. It is as strict as the
// parser of programs: no duplicate keys, no lone surrogates, numbers of at most
// 4,096 digits.
type reader struct {
	s     string
	m     *Meter
	i     int
	depth int
	bad   *fault.Fault
}

// readJSON reads one JSON value and nothing after it.
func readJSON(s string, m *Meter) (value.Value, *fault.Fault) {
	r := reader{s: s, m: m}
	v := r.value()
	if r.bad == nil {
		if r.space(); r.i < len(s) {
			r.fail("the end")
		}
	}
	if r.bad != nil {
		return nil, r.bad
	}
	return v, nil
}

// fail says what was wanted where the reader stands.
func (r *reader) fail(want string) value.Value {
	if r.bad != nil {
		return nil
	}
	before := r.s[:min(r.i, len(r.s))]
	line := 1 + strings.Count(before, "\n")
	col := 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
	got := "the end of the text"
	if r.i < len(r.s) {
		c, _ := utf8.DecodeRuneInString(r.s[r.i:])
		got = strconv.Quote(string(c))
	}
	r.bad = &fault.Fault{
		Kind:     fault.ParseError,
		Message:  fmt.Sprintf("parse_json: at line %d, column %d of the string: expected %s, got %s", line, col, want, got),
		Expected: want, Got: got,
		Hint: `Give parse_json one JSON value, or catch the failure: {"try":{"parse_json":S}}.`,
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

func (r *reader) value() value.Value {
	r.m.look(2)
	r.space()
	if r.i == len(r.s) {
		return r.fail("a JSON value")
	}
	switch c := r.s[r.i]; {
	case c == '{' || c == '[':
		if r.depth++; r.depth > maxNesting {
			return r.fail(fmt.Sprintf("at most %d brackets inside each other", maxNesting))
		}
		r.i++
		var v value.Value
		if c == '{' {
			v = r.object()
		} else {
			v = r.array()
		}
		r.depth--
		return v
	case c == '"':
		s, ok := r.string()
		if !ok {
			return nil
		}
		return value.Str(s)
	case c == '-' || c-'0' <= 9:
		return r.number()
	}
	for _, w := range [...]struct {
		word string
		v    value.Value
	}{{"true", value.Bool(true)}, {"false", value.Bool(false)}, {"null", value.Unit{}}} {
		if strings.HasPrefix(r.s[r.i:], w.word) {
			r.i += len(w.word)
			return w.v
		}
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
	var fields []value.Field
	if r.next('}') {
		return &value.Record{}
	}
	places := map[string]struct{}{}
	for {
		if r.space(); r.i == len(r.s) || r.s[r.i] != '"' {
			return r.fail("a key in double quotes")
		}
		start := r.i
		key, ok := r.string()
		if !ok {
			return nil
		}
		if _, twice := places[key]; twice {
			r.i = start
			return r.fail("each key once in its object")
		}
		places[key] = struct{}{}
		if !r.next(':') {
			return r.fail("a colon after the key")
		}
		fields = append(fields, value.Field{Key: key, Value: r.value()})
		switch {
		case r.bad != nil:
			return nil
		case r.next('}'):
			return recordOf(fields, r.m)
		case !r.next(','):
			return r.fail(`"," or "}"`)
		}
	}
}

// number reads an integer, or where it has a point or an exponent a decimal.
func (r *reader) number() value.Value {
	end := r.i
	for end < len(r.s) && strings.IndexByte("0123456789+-.eE", r.s[end]) >= 0 {
		end++
	}
	s := r.s[r.i:end]
	d, ok := value.ParseDec(s)
	if !ok {
		return r.fail("a JSON number of at most 4096 digits")
	}
	r.i = end
	if strings.ContainsAny(s, ".eE") {
		return d
	}
	return value.NewBig(new(big.Int).Set(d.Unscaled()))
}

// string reads the string that begins here.
func (r *reader) string() (string, bool) {
	start := r.i + 1
	var out []byte
	for r.i = start; r.i < len(r.s); r.i++ {
		switch c := r.s[r.i]; {
		case c == '"':
			out = append(out, r.s[start:r.i]...)
			r.m.look(len(out) / bytesPerPart)
			r.i++
			return string(out), true
		case c < ' ':
			r.fail("no control character in a string")
			return "", false
		case c == '\\':
			r.m.look(1)
			out = append(out, r.s[start:r.i]...)
			var ok bool
			if out, ok = r.escape(out); !ok {
				return "", false
			}
			start = r.i + 1
		}
	}
	r.fail("a closing double quote")
	return "", false
}

// escape reads an escape; afterwards the reader is at its last byte.
func (r *reader) escape(out []byte) ([]byte, bool) {
	if r.i+1 < len(r.s) {
		if k := strings.IndexByte(`"\/bfnrt`, r.s[r.i+1]); k >= 0 {
			r.i++
			return append(out, "\"\\/\b\f\n\r\t"[k]), true
		}
	}
	c, ok := r.hex(r.i)
	if !ok {
		r.fail(`an escape: \" \\ \/ \b \f \n \r \t or \u and four hexadecimal digits`)
		return nil, false
	}
	if utf16.IsSurrogate(c) {
		low, ok := r.hex(r.i + 6)
		c = utf16.DecodeRune(c, low)
		if !ok || c == utf8.RuneError {
			r.fail("both halves of a surrogate pair")
			return nil, false
		}
		r.i += 6
	}
	r.i += 5
	return utf8.AppendRune(out, c), true
}

// hex reads the escape \uXXXX at i.
func (r *reader) hex(i int) (rune, bool) {
	if i+6 > len(r.s) || r.s[i] != '\\' || r.s[i+1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(r.s[i+2:i+6], 16, 32)
	return rune(n), err == nil
}
