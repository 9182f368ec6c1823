package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"math/big"

	pifjson "github.com/mcp-pif/mcp-pif/core/json"
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
func ReadValue(src []byte) (v value.Value, err error) {
	if err = errJSON; json.Valid(src) {
		r := valueReader{pifjson.Cursor{Src: src}}
		v, err = r.value(0)
	}
	if err != nil {
		return nil, fmt.Errorf("reading a recorded value: %w", err)
	}
	return v, nil
}

var (
	errJSON  = errors.New("it is no JSON")
	errShape = errors.New("it has not the shape of a value")
)

// A valueReader reads valid JSON.
type valueReader struct{ pifjson.Cursor }

// part goes past a value, and returns it as it stands there.
func (r *valueReader) part() []byte {
	r.Space()
	from := r.At
	r.Value()
	return r.Src[from:r.At]
}

func (r *valueReader) value(depth int) (value.Value, error) {
	if depth > MaxNesting {
		return nil, ErrNesting
	}
	switch c := r.Space(); c {
	case '[':
		items, err := r.items(depth)
		return value.FromSlice(items), err
	case '{':
		return r.object(depth, false)
	case '"':
		s, _ := pifjson.Unquote(r.part())
		return value.Str(s), nil
	case 'n':
		r.Word()
		return value.Unit{}, nil
	case 't', 'f':
		r.Word()
		return value.Bool(c == 't'), nil
	}
	return integer(string(r.part()))
}

func integer(digits string) (value.Value, error) {
	n, ok := new(big.Int).SetString(digits, 10)
	if !ok {
		return nil, errShape
	}
	return value.NewBig(n), nil
}

func (r *valueReader) items(depth int) (items []value.Value, err error) {
	ok := r.Array(func() bool {
		var v value.Value
		v, err = r.value(depth + 1)
		items = append(items, v)
		return err == nil
	})
	if !ok && err == nil {
		err = errShape // no array
	}
	return items, err
}

// object reads a record or, unless it is plainly one, what its first key says.
func (r *valueReader) object(depth int, plain bool) (v value.Value, err error) {
	rec := &value.Record{}
	ok := r.Object(func(raw []byte) bool {
		key, _ := pifjson.Unquote(raw)
		switch n := len(rec.Fields); {
		case v != nil || n > 0 && rec.Fields[n-1].Key >= key:
			err = errShape
		case n == 0 && !plain && isMarker(key):
			v, err = r.marked(key, depth)
		default:
			f := value.Field{Key: key}
			f.Value, err = r.value(depth + 1)
			rec.Fields = append(rec.Fields, f)
		}
		return err == nil
	})
	switch {
	case err != nil:
		return nil, err
	case !ok: // no object
		return nil, errShape
	case v != nil:
		return v, nil
	}
	return rec, nil
}

// marked reads the value of an object's first key, which says what it is.
func (r *valueReader) marked(key string, depth int) (value.Value, error) {
	switch key {
	case "record":
		return r.object(depth, true)
	case "quote":
		parsed, f := parse.Code(bytes.Clone(r.part()), parse.Options{})
		if f != nil {
			return nil, f
		}
		return &value.Code{Term: parsed.Term, Source: parsed.Source}, nil
	case "pair":
		items, err := r.items(depth)
		if err != nil || len(items) != 2 {
			return nil, errors.Join(err, errShape)
		}
		return &value.Pair{First: items[0], Second: items[1]}, nil
	}
	digits, ok := pifjson.Unquote(r.part())
	switch {
	case !ok:
		return nil, errShape
	case key == "dec":
		if d, ok := value.ParseDec(digits); ok {
			return d, nil
		}
		return nil, errShape
	}
	return integer(digits)
}
