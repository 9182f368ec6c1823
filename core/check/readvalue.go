package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
	pifjson "github.com/mcp-pif/mcp-pif/core/json"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A read is a value being read by its type, in one go: what it is as data goes to out.
type read struct {
	pifjson.Cursor
	out    []byte
	where  []step
	deep   int
	notes  []string
	more   int // notes that aren't there
	misfit bool
	// inString is set in JSON that a string held: the strings in it stay strings.
	inString bool
	row      int    // how deep the strings of a row are that has numbers, too, and so stay strings; 0: there is none
	strings  []span // in the source, that may be meant as JSON
	codes    []code
	bad      *fault.Fault
	*used
}

// used is what the values that are read together have used of their bounds.
type used struct {
	digits int // of numbers with an exponent, written out
	terms  int
	typed  int // steps
}

// maxTerms is how many functions and pieces of code an input may hold.
const maxTerms = 10_000

// A step is a part of a value: the key in quotes, or, where that is nil, the index.
type step struct {
	key   []byte
	index int
	// shape is set for the key of a shape, which is no part of the value.
	shape bool
}

// A span is a string of the source, and the JSON in it.
type span struct {
	from, to int
	inner    []byte
}

// A code is a term that stands in an input as code or as a function.
type code struct {
	where []step
	term  term.Term
}

// note reports on the value where the reader is.
func (d *read) note(format string, args ...any) {
	const most, longest = 19, 200
	if len(d.notes) >= most {
		d.more++
		return
	}
	var b strings.Builder
	for i, s := range d.where {
		if i > 0 {
			b.WriteByte('/')
		}
		if b.Len() > longest {
			b.WriteString("…")
			break
		}
		if s.key == nil {
			b.WriteString(strconv.Itoa(s.index))
		} else {
			b.WriteString(short(string(bytes.Trim(s.key, `"`))))
		}
	}
	d.notes = append(d.notes, b.String()+": "+fmt.Sprintf(format, args...))
}

// maxTyped is how deep data is read by its type; deeper it is read as any data is.
const maxTyped = 16

// readValue reads a value of a parameter's type. What is no JSON stays as it is:
// whoever reads it next reports what is wrong with it.
func readValue(raw json.RawMessage, p Parameter) read { return new(used).read(raw, p, false) }

// read is readValue for one of several, which stood in JSON that a string held, or didn't.
func (u *used) read(raw json.RawMessage, p Parameter, inString bool) read {
	raw = bytes.TrimSpace(raw)
	d := read{Cursor: pifjson.Cursor{Src: raw}, out: make([]byte, 0, len(raw)+16), inString: inString, used: u}
	d.where = append(d.where, step{key: []byte(p.Name)})
	if !d.value(p.Type) && d.bad == nil || d.At != len(raw) && d.bad == nil {
		return read{Cursor: pifjson.Cursor{Src: raw}, out: raw, misfit: true}
	}
	if bytes.Equal(d.out, raw) {
		d.out = raw // one text less, of a large input
	}
	if d.more > 0 {
		d.notes = append(d.notes, fmt.Sprintf("and %d more values were read in such ways", d.more))
	}
	return d
}

// isOpen reports whether what a type holds isn't known in each part.
func isOpen(t *Type) bool {
	return t.Any || t.Deep || t.Dynamic || len(t.Vars) > 0 || t.Name != "" || t.Kinds == 0
}

// isString reports whether a string is one of the type.
func isString(t *Type) bool { return isOpen(t) || t.Kinds&prim.KindString != 0 }

// isCode reports whether every value of the type is code or a function, or null.
func isCode(t *Type) bool {
	return t.Kinds&^prim.KindUnit != 0 && t.Kinds&^(prim.KindQuoted|prim.KindFunction|prim.KindUnit) == 0 && !t.Any && !t.Deep && !t.Dynamic && len(t.Vars) == 0
}

// value reads one value of the type.
func (d *read) value(t *Type) bool {
	t = t.or()
	c := d.Space()
	from := d.At
	if isCode(t) && d.deep < maxTyped && !d.inString && (c != 'n' || t.Kinds&prim.KindUnit == 0) {
		return d.code(t)
	}
	if d.deep >= maxTyped {
		return d.any()
	}
	d.deep++
	defer func() { d.deep-- }()
	open := isOpen(t)
	switch {
	case c == '"':
		if !d.Text() {
			return false
		}
		d.str(d.Src[from:d.At], from, t)
	case open:
		return d.any()
	case c == '-' || c >= '0' && c <= '9':
		if !d.Word() {
			return false
		}
		d.number(d.Src[from:d.At], t)
	case c == '[' && t.Kinds&prim.KindList != 0:
		return d.list(t)
	case c == '[' && t.Kinds&prim.KindPair != 0 && d.isTwo():
		d.out = append(d.out, `{"pair":`...)
		ok := d.pair(t)
		d.out = append(d.out, '}')
		return ok
	case c == '{':
		return d.object(t)
	default:
		if c == 'n' && t.Kinds&prim.KindUnit == 0 && !t.orNull || (c == 't' || c == 'f') && t.Kinds&prim.KindBool == 0 || c == '[' {
			d.misfit = true
		}
		return d.any()
	}
	return true
}

// any reads a value as data of any type.
func (d *read) any() bool {
	d.Space()
	from := d.At
	ok := d.Cursor.Value()
	d.out = append(d.out, d.Src[from:d.At]...)
	return ok
}

// str is a string, or, where none is wanted, the JSON in it: some clients send
// everything as strings.
func (d *read) str(raw []byte, from int, t *Type) {
	admitted := isString(t)
	if d.row == len(d.where) {
		d.misfit = d.misfit || !admitted
		d.out = append(d.out, raw...)
		return
	}
	if k := t.Wanted(); k != 0 && !d.inString && d.quoted(raw, &Type{Kinds: k}) {
		return
	}
	if admitted && (isOpen(t) || t.Kinds&(prim.KindList|prim.KindRecord|prim.KindPair) != 0) && !d.inString {
		if inner := unquote(raw); inner != nil && (inner[0] == '[' || inner[0] == '{') && json.Valid(inner) {
			d.strings = append(d.strings, span{from, d.At, inner})
		}
	}
	if admitted || d.inString {
		d.misfit = d.misfit || !admitted
		d.out = append(d.out, raw...)
		return
	}
	if !t.asked && d.quoted(raw, t) {
		return
	}
	d.misfit = true
	d.out = append(d.out, raw...)
}

// quoted reads a string as the JSON in it, if that is of the type.
func (d *read) quoted(raw []byte, t *Type) bool {
	inner := unquote(raw)
	if inner == nil || !fitsKind(inner[0], t.Kinds) || !json.Valid(inner) {
		return false
	}
	in := read{Cursor: pifjson.Cursor{Src: inner}, where: slices.Clone(d.where), inString: true, used: d.used}
	if !in.value(t) || in.At != len(inner) || in.misfit || in.bad != nil {
		return false
	}
	d.note("the string was read as JSON")
	d.out = append(d.out, in.out...)
	return true
}

// unquote is what a string holds, without the space around it; nil: nothing.
func unquote(raw []byte) []byte {
	if len(raw) < 2 {
		return nil
	}
	inner := raw[1 : len(raw)-1]
	if bytes.IndexByte(raw, '\\') >= 0 {
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return nil
		}
		inner = []byte(s)
	}
	if inner = bytes.Trim(inner, " \t\r\n"); len(inner) == 0 {
		return nil
	}
	return inner
}

// fitsKind reports whether JSON that begins so may be of one of the kinds.
func fitsKind(c byte, k prim.Kinds) bool {
	switch c {
	case '[':
		return k&prim.KindList != 0
	case '{':
		return k&(prim.KindRecord|prim.KindPair|prim.KindDec|prim.KindInt) != 0
	case 't', 'f':
		return k&prim.KindBool != 0
	case 'n':
		return k&prim.KindUnit != 0
	case '"':
		return false
	}
	return k&prim.KindNumber != 0
}

// number is an integer, or with a point or an exponent an exact decimal.
func (d *read) number(raw []byte, t *Type) {
	isInt, isDec := t.Kinds&prim.KindInt != 0, t.Kinds&prim.KindDec != 0
	point := bytes.ContainsAny(raw, ".eE")
	d.misfit = d.misfit || !isInt && !isDec
	switch {
	case point && isInt && !isDec:
		if digits := d.integer(string(raw)); digits != nil {
			raw = digits
		} else {
			d.misfit = true
		}
	case !point && isDec && !isInt:
		raw = slices.Concat(raw, []byte(".0"))
	}
	d.out = append(d.out, raw...)
}

// dec reads a number, unless there are as many digits as an input has bytes.
func (u *used) dec(s string) (value.Dec, bool) {
	if u.digits > value.MaxGrown {
		return value.Dec{}, false
	}
	d, ok := value.ParseDec(s)
	u.digits += d.Grown(s)
	return d, ok
}

// integer is the digits of the integer that a number of JSON is worth; nil: it is none, or
// there are as many digits as an input has bytes.
func (u *used) integer(s string) []byte {
	d, ok := u.dec(s)
	if !ok {
		return nil
	}
	n, rest := new(big.Int).QuoRem(d.Unscaled(), value.Power10(d.Scale()), new(big.Int))
	digits := n.Append(nil, 10)
	if u.digits += d.Scale() + len(digits); rest.Sign() != 0 {
		return nil
	}
	return digits
}

func (d *read) list(t *Type) bool {
	row := d.row
	defer func() { d.row = row }()
	if d.row = 0; d.where[len(d.where)-1].key == nil && d.isMixed() {
		d.row = len(d.where) + 1
	}
	d.out = append(d.out, '[')
	d.where = append(d.where, step{})
	at := len(d.where) - 1
	i := 0
	ok := d.Array(func() bool {
		if i > 0 {
			d.out = append(d.out, ',')
		}
		d.where[at].index = i
		i++
		return d.value(t.Item)
	})
	d.where = d.where[:at]
	d.out = append(d.out, ']')
	return ok
}

// isMixed reports whether the list here has both strings and numbers, as the row of a table
// has: there a text of digits is a text, whatever the other columns are.
func (d *read) isMixed() bool {
	if first := bytes.IndexByte(d.Src[d.At:], ']'); first >= 0 && bytes.IndexByte(d.Src[d.At:d.At+first], '"') < 0 {
		return false
	}
	s, texts, numbers := d.Cursor, false, false
	s.Array(func() bool {
		c := s.Space()
		texts, numbers = texts || c == '"', numbers || c == '-' || c >= '0' && c <= '9'
		return s.Value()
	})
	return texts && numbers
}

// object is a record, or one of the shapes of what JSON can't say.
func (d *read) object(t *Type) bool {
	isRecord := t.Kinds&prim.KindRecord != 0
	if key, ok := d.shape(); ok {
		if !isRecord || !hasField(t, key) {
			return d.shaped(key, t)
		}
		// The record that the type declares, which as data is spelled so.
		d.out = append(d.out, `{"record":`...)
		ok := d.record(t)
		d.out = append(d.out, '}')
		return ok
	}
	if !isRecord {
		d.misfit = true
		return d.any()
	}
	return d.record(t)
}

// shape reports whether the object here is one of the shapes that results have, by
// the rules that data is read by.
func (d *read) shape() (key string, ok bool) {
	key, inner, ok := lone(d.Cursor)
	if !ok {
		return "", false
	}
	s := pifjson.Cursor{Src: inner}
	switch key {
	case "pair":
		items := 0
		ok = s.Array(func() bool {
			items++
			return s.Value()
		}) && items == 2
	case "record":
		ok = inner[0] == '{'
	case "dec", "int":
		var digits string
		if ok = inner[0] == '"' && json.Unmarshal(inner, &digits) == nil; ok && key == "dec" {
			_, ok = d.dec(digits)
		} else if ok {
			digits = strings.TrimPrefix(digits, "-")
			ok = digits != "" && strings.Trim(digits, "0123456789") == ""
		}
	default:
		ok = false
	}
	return key, ok
}

// lone is the key of the object that begins here and its value, if it has one key.
func lone(s pifjson.Cursor) (key string, inner []byte, ok bool) {
	s.At++
	s.Space()
	from := s.At
	if !s.Text() || json.Unmarshal(s.Src[from:s.At], &key) != nil || s.Space() != ':' {
		return "", nil, false
	}
	s.At++
	s.Space()
	from = s.At
	ok = s.Value()
	inner = s.Src[from:s.At]
	return key, inner, ok && len(inner) > 0 && s.Space() == '}'
}

// shaped reads a shape.
func (d *read) shaped(key string, t *Type) bool {
	isInt, isDec := t.Kinds&prim.KindInt != 0, t.Kinds&prim.KindDec != 0
	switch {
	case key == "pair" && t.Kinds&prim.KindPair != 0:
		return d.within("pair", func() bool { return d.pair(t) })
	case key == "record" && t.Kinds&prim.KindRecord != 0:
		return d.within("record", func() bool { return d.record(t) })
	case key == "dec" && isInt && !isDec:
		_, inner, _ := lone(d.Cursor)
		if digits := d.integer(string(inner[1 : len(inner)-1])); digits != nil {
			d.out = append(d.out, digits...)
			return d.Cursor.Value()
		}
	case key == "dec" && isDec, key == "int" && isInt:
		return d.any()
	}
	d.misfit = true
	return d.any()
}

// within reads the value of a shape.
func (d *read) within(key string, read func() bool) bool {
	d.out = append(append(append(d.out, `{"`...), key...), `":`...)
	ok := d.Cursor.Object(func(raw []byte) bool {
		d.where = append(d.where, step{key: raw, shape: true})
		ok := read()
		d.where = d.where[:len(d.where)-1]
		return ok
	})
	d.out = append(d.out, '}')
	return ok
}

// isTwo reports whether a list of two begins here, which is read as a pair where the type
// has no list.
func (d *read) isTwo() bool {
	s, n := d.Cursor, 0
	return s.Array(func() bool { n++; return s.Value() }) && n == 2
}

func (d *read) pair(t *Type) bool {
	types := []*Type{t.First, t.Second}
	d.out = append(d.out, '[')
	i := 0
	ok := d.Array(func() bool {
		if i == len(types) {
			return false
		}
		if i > 0 {
			d.out = append(d.out, ',')
		}
		d.where = append(d.where, step{index: i})
		ok := d.value(types[i])
		d.where = d.where[:len(d.where)-1]
		i++
		return ok
	})
	d.out = append(d.out, ']')
	return ok
}

// record goes past an object, the keys of which are fields.
func (d *read) record(t *Type) bool {
	d.out = append(d.out, '{')
	i, required := 0, 0
	ok := d.Cursor.Object(func(key []byte) bool {
		var name string
		if json.Unmarshal(key, &name) != nil {
			return false
		}
		if i > 0 {
			d.out = append(d.out, ',')
		}
		i++
		d.out = append(append(d.out, key...), ':')
		of := Any
		if t.Rest != nil {
			of = t.Rest
		}
		at, ok := slices.BinarySearchFunc(t.Fields, name, func(f Field, key string) int { return strings.Compare(f.Key, key) })
		if ok {
			if of = t.Fields[at].Type; !t.Fields[at].Optional {
				required++
			}
		}
		d.where = append(d.where, step{key: key})
		ok = d.value(of)
		d.where = d.where[:len(d.where)-1]
		return ok
	})
	for _, f := range t.Fields {
		if !f.Optional {
			required--
		}
	}
	d.misfit = d.misfit || required < 0
	d.out = append(d.out, '}')
	return ok
}

func hasField(t *Type, key string) bool {
	_, ok := slices.BinarySearchFunc(t.Fields, key, func(f Field, key string) int { return strings.Compare(f.Key, key) })
	return ok
}

// unquoted is the source with JSON in place of the strings that hold it.
func (d *read) unquoted() json.RawMessage {
	if len(d.strings) == 0 {
		return nil
	}
	var out []byte
	last := 0
	for _, s := range d.strings {
		out = append(append(out, d.Src[last:s.from]...), s.inner...)
		last = s.to
	}
	return append(out, d.Src[last:]...)
}

// code reads code, or a function.
func (d *read) code(t *Type) bool {
	from := d.At
	if !d.Cursor.Value() {
		return false
	}
	src := d.Src[from:d.At]
	function := t.Kinds&prim.KindQuoted == 0
	if src[0] == '{' {
		if key, inner, ok := lone(pifjson.Cursor{Src: src}); ok && key == "quote" {
			src = inner
		} else {
			function = function || t.Kinds&prim.KindFunction != 0
		}
	} else {
		function = function || t.Kinds&prim.KindFunction != 0
	}
	u, f := d.readTerm(src)
	if f != nil {
		g := *f
		g.At, g.In, g.Line, g.Col = placeOf(d.where)+f.At, "input", 0, 0
		d.bad = &g
		return false
	}
	if t.Kinds&^prim.KindUnit == prim.KindFunction && isLiteral(u) {
		d.misfit = true
	}
	if _, is := u.(*term.Lam); !function || t.Kinds&prim.KindQuoted != 0 && !is {
		u = &term.Quote{Body: u}
	}
	d.codes = append(d.codes, code{slices.Clone(d.where), u})
	d.out = append(d.out, "null"...)
	return true
}
