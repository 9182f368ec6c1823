package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A decoder reads data by its type, in one go: what it reads, as data is to say
// it, goes to out.
type decoder struct {
	scan
	out   []byte
	where []step
	deep  int
	notes []string
	more  int // notes that are not there
}

// A step is a part of a value: the key in quotes, or, where that is nil, the index.
type step struct {
	key   []byte
	index int
}

// note tells of the value where the decoder is.
func (d *decoder) note(format string, args ...any) {
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

// told is the notes.
func (d *decoder) told() []string {
	if d.more > 0 {
		return append(d.notes, fmt.Sprintf("and %d more values were read in such ways", d.more))
	}
	return d.notes
}

// maxData is how deep data is read by its type; deeper it is read as any data is.
const maxData = 16

// read gives an argument as data.
func (d *decoder) read(raw json.RawMessage, p Parameter) json.RawMessage {
	raw = bytes.TrimSpace(raw)
	if len(raw) > 0 && raw[0] == '"' && isString(p.Type) {
		return raw
	}
	d.scan, d.out = scan{src: raw}, make([]byte, 0, len(raw)+16)
	d.where = append(d.where[:0], step{key: []byte(p.Name)})
	if !d.value(p.Type) || d.at != len(raw) {
		return raw // whoever reads it tells what is wrong with it
	}
	return d.out
}

// isOpen reports whether what a type holds isn't known in each part.
func isOpen(t *Type) bool {
	return t.Any || t.Deep || t.Dynamic || len(t.Vars) > 0 || t.Name != "" || t.Kinds == 0
}

// isString reports whether a string is one of the type.
func isString(t *Type) bool { return isOpen(t) || t.Kinds&prim.KindString != 0 }

// value reads one value of the type.
func (d *decoder) value(t *Type) bool {
	t = t.or()
	c := d.space()
	from := d.at
	if isOpen(t) || d.deep >= maxData {
		return d.any()
	}
	d.deep++
	ok := true
	switch {
	case c == '"':
		if ok = d.string(); ok {
			d.str(d.src[from:d.at], t)
		}
	case c == '-' || c >= '0' && c <= '9':
		if ok = d.word(); ok {
			d.number(d.src[from:d.at], t)
		}
	case c == '[' && t.Kinds&prim.KindList != 0:
		ok = d.list(t)
	case c == '{':
		ok = d.object(t)
	default:
		ok = d.any()
	}
	d.deep--
	return ok
}

// any reads a value of which nothing is known: only numbers become exact.
func (d *decoder) any() bool {
	from := d.at
	if !d.scan.value() {
		return false
	}
	s := scan{src: d.src[from:d.at]}
	for last := 0; ; {
		switch c := s.space(); {
		case c == 0:
			d.out = append(d.out, s.src[last:]...)
			return true
		case c == '"':
			s.string()
		case c == '-' || c >= '0' && c <= '9':
			d.out = append(d.out, s.src[last:s.at]...)
			last = s.at
			s.word()
			d.number(s.src[last:s.at], Any)
			last = s.at
		case !s.word():
			s.at++
		}
	}
}

// str is a string, or, where no string is wanted, the JSON in it: some clients
// send everything as strings.
func (d *decoder) str(raw []byte, t *Type) {
	inner, ok := jsonIn(raw, t)
	if !ok {
		d.out = append(d.out, raw...)
		return
	}
	d.note("the string was read as JSON")
	outer, start := d.scan, len(d.out)
	d.scan = scan{src: inner}
	if !d.value(t) {
		d.out = append(d.out[:start], inner...)
	}
	d.scan = outer
}

// jsonIn is the JSON in a string that is of the type, where no string is.
func jsonIn(raw []byte, t *Type) (inner []byte, ok bool) {
	if isString(t) {
		return nil, false
	}
	inner = raw[1 : len(raw)-1]
	if bytes.IndexByte(raw, '\\') >= 0 {
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return nil, false
		}
		inner = []byte(s)
	}
	inner = bytes.TrimSpace(inner)
	if len(inner) == 0 || !fitsKind(inner[0], t.Kinds) || !json.Valid(inner) {
		return nil, false
	}
	if inner[0] == '{' && t.Kinds&prim.KindRecord == 0 {
		d := decoder{scan: scan{src: inner}}
		_, _, _, ok := d.lone()
		return inner, ok
	}
	return inner, true
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

// number is an integer, or with a fraction an exact decimal.
func (d *decoder) number(raw []byte, t *Type) {
	open := isOpen(t)
	fraction, exponent := bytes.IndexByte(raw, '.') >= 0, bytes.ContainsAny(raw, "eE")
	isInt := open || t.Kinds&prim.KindInt != 0 || t.Kinds&prim.KindNumber == 0
	isDec := open || t.Kinds&prim.KindDec != 0
	switch {
	case !fraction && !exponent && isInt, !isDec && exponent:
	case !isDec:
		whole, zeros, _ := strings.Cut(string(raw), ".")
		if strings.Trim(zeros, "0") == "" {
			d.note("%s was read as the integer %s", short(string(raw)), short(whole))
			raw = []byte(whole)
			if whole == "-0" {
				raw = raw[1:]
			}
		}
	case isInt && !fraction && bytes.IndexByte(raw, '-') <= 0:
		// Some clients write large integers so: 1e21.
	default:
		if _, ok := value.ParseDec(string(raw)); ok {
			raw = append(text.AppendString([]byte(`{"dec":`), string(raw)), '}')
		}
	}
	d.out = append(d.out, raw...)
}

func (d *decoder) list(t *Type) bool {
	d.out = append(d.out, '[')
	d.where = append(d.where, step{})
	at := len(d.where) - 1
	i := 0
	ok := d.parts('[', ']', func() bool {
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

// object is a record, or one of the shapes of what JSON can't say. An object
// with one key that looks like such a shape is a record where only that fits.
func (d *decoder) object(t *Type) bool {
	if key, first, items, ok := d.lone(); ok {
		return d.shape(key, first, items, t)
	}
	if t.Kinds&prim.KindRecord == 0 {
		return d.any()
	}
	return d.record(t)
}

// lone looks whether the object here has one key, which is one of a shape, and
// says what its value begins with, and how many parts it has as a list.
func (d *decoder) lone() (key string, first byte, items int, ok bool) {
	s := d.scan
	s.at++
	s.space()
	from := s.at
	if !s.string() || json.Unmarshal(s.src[from:s.at], &key) != nil || !slices.Contains(wrapped, key) || s.space() != ':' {
		return "", 0, 0, false
	}
	s.at++
	first = s.space()
	if first == '[' {
		ok = s.parts('[', ']', func() bool {
			items++
			return s.value()
		})
	} else {
		ok = s.value()
	}
	return key, first, items, ok && s.space() == '}'
}

func (d *decoder) shape(key string, first byte, items int, t *Type) bool {
	isRecord := t.Kinds&prim.KindRecord != 0
	switch {
	case key == "pair" && t.Kinds&prim.KindPair != 0 && items == 2:
		return d.wrap("pair", func() bool { return d.pair(t) })
	case key == "dec" && t.Kinds&prim.KindDec != 0 || key == "int" && t.Kinds&prim.KindInt != 0:
		return d.any()
	case key == "record" && first == '{' && isRecord && !hasField(t, "record"):
		return d.wrap("record", func() bool { return d.record(t) })
	case isRecord:
		d.out = append(d.out, `{"record":`...)
		ok := d.record(t)
		d.out = append(d.out, '}')
		return ok
	}
	return d.any()
}

// wrap goes past an object of one member with a value that read goes past.
func (d *decoder) wrap(key string, read func() bool) bool {
	d.out = append(append(append(d.out, `{"`...), key...), `":`...)
	ok := d.scan.object(func(raw []byte) bool {
		d.where = append(d.where, step{key: raw})
		ok := read()
		d.where = d.where[:len(d.where)-1]
		return ok
	})
	d.out = append(d.out, '}')
	return ok
}

func (d *decoder) pair(t *Type) bool {
	types := []*Type{t.First, t.Second}
	d.out = append(d.out, '[')
	i := 0
	ok := d.parts('[', ']', func() bool {
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
func (d *decoder) record(t *Type) bool {
	d.out = append(d.out, '{')
	i := 0
	ok := d.scan.object(func(key []byte) bool {
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
			of = t.Fields[at].Type
		}
		d.where = append(d.where, step{key: key})
		ok = d.value(of)
		d.where = d.where[:len(d.where)-1]
		return ok
	})
	d.out = append(d.out, '}')
	return ok
}

func hasField(t *Type, key string) bool {
	return slices.ContainsFunc(t.Fields, func(f Field) bool { return f.Key == key })
}
