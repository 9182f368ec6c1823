package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strconv"

	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// MaxNesting is how deep a value may nest to be recorded.
const MaxNesting = 1000

// ErrNesting is the error of a value that nests deeper.
var ErrNesting = fmt.Errorf("it nests deeper than %d", MaxNesting)

// AppendValue writes a value so that [ReadValue] gives it back exactly: as it is
// shown, with quoted code as {"quote":T}. It fails for functions and
// continuations, and for what nests deeper than [MaxNesting].
func AppendValue(b []byte, v value.Value) ([]byte, error) { return appendValue(b, v, 0) }

func appendValue(b []byte, v value.Value, depth int) ([]byte, error) {
	if depth > MaxNesting {
		return b, ErrNesting
	}
	var err error
	switch v := v.(type) {
	case value.Int:
		if v.Words() > 1 {
			return append(append(append(b, `{"int":"`...), v.String()...), `"}`...), nil
		}
		return append(b, v.String()...), nil
	case value.Dec:
		return append(append(append(b, `{"dec":"`...), v.String()...), `"}`...), nil
	case value.Bool:
		return strconv.AppendBool(b, bool(v)), nil
	case value.Str:
		return AppendString(b, string(v)), nil
	case value.Unit:
		return append(b, "null"...), nil
	case value.Nil:
		return append(b, "[]"...), nil
	case *value.Cons:
		b = append(b, '[')
		for first := true; ; first = false {
			if !first {
				b = append(b, ',')
			}
			if b, err = appendValue(b, v.Head, depth+1); err != nil {
				return b, err
			}
			next, ok := v.Tail.(*value.Cons)
			if !ok {
				return append(b, ']'), nil
			}
			v = next
		}
	case *value.Pair:
		b = append(b, `{"pair":[`...)
		if b, err = appendValue(b, v.First, depth+1); err != nil {
			return b, err
		}
		if b, err = appendValue(append(b, ','), v.Second, depth+1); err != nil {
			return b, err
		}
		return append(b, "]}"...), nil
	case *value.Record:
		wrap := len(v.Fields) > 0 && marked(v.Fields[0].Key)
		if wrap {
			b = append(b, `{"record":`...)
		}
		b = append(b, '{')
		for i, f := range v.Fields {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(AppendString(b, f.Key), ':')
			if b, err = appendValue(b, f.Value, depth+1); err != nil {
				return b, err
			}
		}
		if wrap {
			b = append(b, '}')
		}
		return append(b, '}'), nil
	case *value.Code:
		return append(append(append(b, `{"quote":`...), text.Canonical(v.Term)...), '}'), nil
	}
	return b, fmt.Errorf("a %s can't be recorded", v.Type())
}

// marked reports whether an object whose first key this is, is no record.
func marked(key string) bool {
	switch key {
	case "pair", "dec", "int", "record", "quote":
		return true
	}
	return false
}

// AppendString writes a string as JSON.
func AppendString(b []byte, s string) []byte {
	if plain(s) {
		return append(append(append(b, '"'), s...), '"')
	}
	if printed, ok := appendASCII(b, s); ok {
		return printed
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err) // a string always encodes
	}
	return append(b, bytes.TrimSuffix(out.Bytes(), []byte("\n"))...)
}

// appendASCII writes a string that is ASCII with nothing to escape but quotes,
// backslashes and the ends of lines, as JSON in a string is.
func appendASCII(b []byte, s string) ([]byte, bool) {
	b = append(b, '"')
	from := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c < 0x7f && c != '"' && c != '\\' {
			continue
		}
		switch c {
		case '"', '\\':
		case '\n':
			c = 'n'
		case '\t':
			c = 't'
		default:
			return b, false
		}
		b = append(append(b, s[from:i]...), '\\', c)
		from = i + 1
	}
	return append(append(b, s[from:]...), '"'), true
}

// plain reports whether a string is all printable ASCII that JSON doesn't escape,
// eight bytes at a time: what is borrowed, or has a high bit, is not.
func plain(s string) bool {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	for len(s) >= 8 {
		w := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		quote, slash, del := w^ones*'"', w^ones*'\\', w^ones*0x7f
		if (w|(w-ones*' ')|(quote-ones)|(slash-ones)|(del-ones))&high != 0 {
			return false
		}
		s = s[8:]
	}
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			return false
		}
	}
	return true
}

// ReadValue reads what [AppendValue] wrote.
func ReadValue(src []byte) (value.Value, error) {
	dec := json.NewDecoder(bytes.NewReader(src))
	dec.UseNumber()
	v, err := readValue(dec, 0)
	if err != nil {
		return nil, fmt.Errorf("reading a recorded value: %w", err)
	}
	return v, nil
}

var errShape = errors.New("it has not the shape of a value")

func readValue(dec *json.Decoder, depth int) (value.Value, error) {
	if depth > MaxNesting {
		return nil, ErrNesting
	}
	t, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case nil:
		return value.Unit{}, nil
	case bool:
		return value.Bool(t), nil
	case string:
		return value.Str(t), nil
	case json.Number:
		n, ok := new(big.Int).SetString(t.String(), 10)
		if !ok {
			return nil, errShape
		}
		return value.NewBig(n), nil
	case json.Delim:
		if t == '[' {
			items, err := readItems(dec, depth)
			return value.FromSlice(items), err
		}
		return readObject(dec, depth)
	}
	return nil, errShape
}

// readItems reads what follows [ up to and with ].
func readItems(dec *json.Decoder, depth int) ([]value.Value, error) {
	var items []value.Value
	for dec.More() {
		v, err := readValue(dec, depth+1)
		if err != nil {
			return nil, err
		}
		items = append(items, v)
	}
	_, err := dec.Token()
	return items, err
}

// readObject reads what follows { up to and with }.
func readObject(dec *json.Decoder, depth int) (value.Value, error) {
	r := &value.Record{}
	for dec.More() {
		key, err := readKey(dec)
		if err != nil {
			return nil, err
		}
		if len(r.Fields) == 0 && marked(key) {
			v, err := readMarked(dec, key, depth)
			if err == nil {
				err = closed(dec)
			}
			return v, err
		}
		if err := readField(dec, r, key, depth); err != nil {
			return nil, err
		}
	}
	return r, closed(dec)
}

func readKey(dec *json.Decoder) (string, error) {
	t, err := dec.Token()
	if err != nil {
		return "", err
	}
	key, ok := t.(string)
	if !ok {
		return "", errShape
	}
	return key, nil
}

func readField(dec *json.Decoder, r *value.Record, key string, depth int) error {
	v, err := readValue(dec, depth+1)
	if err != nil {
		return err
	}
	if n := len(r.Fields); n > 0 && r.Fields[n-1].Key >= key {
		return errShape
	}
	r.Fields = append(r.Fields, value.Field{Key: key, Value: v})
	return nil
}

// closed reads the } of an object.
func closed(dec *json.Decoder) error {
	t, err := dec.Token()
	if err == nil && t != json.Delim('}') {
		err = errShape
	}
	return err
}

// readMarked reads the value of an object's first key, which says what it is.
func readMarked(dec *json.Decoder, key string, depth int) (value.Value, error) {
	switch key {
	case "record":
		if t, err := dec.Token(); err != nil || t != json.Delim('{') {
			return nil, errors.Join(err, errShape)
		}
		r := &value.Record{}
		for dec.More() {
			key, err := readKey(dec)
			if err != nil {
				return nil, err
			}
			if err := readField(dec, r, key, depth); err != nil {
				return nil, err
			}
		}
		return r, closed(dec)
	case "quote":
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, err
		}
		parsed, f := parse.Code(raw, parse.Options{})
		if f != nil {
			return nil, f
		}
		return &value.Code{Term: parsed.Term, Source: parsed.Source}, nil
	case "pair":
		if t, err := dec.Token(); err != nil || t != json.Delim('[') {
			return nil, errors.Join(err, errShape)
		}
		items, err := readItems(dec, depth)
		if err != nil || len(items) != 2 {
			return nil, errors.Join(err, errShape)
		}
		return &value.Pair{First: items[0], Second: items[1]}, nil
	}
	t, err := dec.Token()
	if err != nil {
		return nil, err
	}
	digits, ok := t.(string)
	if !ok {
		return nil, errShape
	}
	if key == "dec" {
		d, ok := value.ParseDec(digits)
		if !ok {
			return nil, errShape
		}
		return d, nil
	}
	n, ok := new(big.Int).SetString(digits, 10)
	if !ok {
		return nil, errShape
	}
	return value.NewBig(n), nil
}
