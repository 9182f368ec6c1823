package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"math/big"

	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// MaxNesting is how deep a value may nest to be recorded.
const MaxNesting = text.MaxNesting

// ErrNesting is the error of a value that nests deeper, ErrSize that of one that
// is larger than it may be.
var ErrNesting, ErrSize = text.ErrNesting, text.ErrSize

// AppendValue writes a value so that [ReadValue] gives it back exactly: as it is
// shown, with quoted code as {"quote":T}. It fails past most bytes, for functions
// and continuations, and for what nests deeper than [MaxNesting].
func AppendValue(b []byte, v value.Value, most int64) ([]byte, error) {
	return text.AppendRecorded(b, v, most)
}

// isMarker reports whether an object whose first key this is, is no record.
func isMarker(key string) bool { return key == "quote" || text.Wrapped(key) }

// HashValue writes to h what [AppendValue] appends, without all of it being in
// memory at once, and returns how many bytes that was.
func HashValue(h hash.Hash, v value.Value, most int64) (int64, error) {
	return text.HashRecorded(h, v, most)
}

// AppendString writes a string as JSON.
func AppendString(b []byte, s string) []byte { return text.AppendRecordedString(b, s) }

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
		if len(r.Fields) == 0 && isMarker(key) {
			v, err := readMarked(dec, key, depth)
			if err == nil {
				err = objectEnd(dec)
			}
			return v, err
		}
		if err := readField(dec, r, key, depth); err != nil {
			return nil, err
		}
	}
	return r, objectEnd(dec)
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

// objectEnd consumes the closing brace.
func objectEnd(dec *json.Decoder) error {
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
		return r, objectEnd(dec)
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
