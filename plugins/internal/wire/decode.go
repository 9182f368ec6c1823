package wire

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// ErrMalformed is the error of bytes that are no value.
var ErrMalformed = errors.New("it is not a well-formed value")

// DecodeValue reads a message Value. Fields it doesn't know are skipped, as
// protobuf has it; a value without a kind, or with two, is an error. The bytes
// may be used again afterwards.
func DecodeValue(b []byte) (value.Value, error) { return decodeValue(string(b), len(b)) }

// decodeValue reads a message Value that is part of a message of so many bytes.
func decodeValue(s string, message int) (value.Value, error) {
	r := reader{message: message}
	return r.value(s, 0)
}

// A reader counts the values it makes, and the bytes of their quoted terms.
type reader struct {
	nodes, code int
	message     int // bytes that a part of it would keep
}

func malformed(what string) error { return fmt.Errorf("%w: %s", ErrMalformed, what) }

// fields calls visit with each field of a message. The contents are those of
// length-delimited fields, the number those of varints; other types are skipped.
func fields(s string, visit func(number protowire.Number, wire protowire.Type, contents string, n uint64) error) error {
	for s != "" {
		f, n, err := consumeField(s)
		if err != nil {
			return err
		}
		s = s[n:]
		if f.wire != protowire.BytesType && f.wire != protowire.VarintType {
			continue
		}
		if err := visit(f.number, f.wire, f.contents, f.varint); err != nil {
			return err
		}
	}
	return nil
}

// A field is one of a message, with what is in it if it is length-delimited or a varint.
type field struct {
	number   protowire.Number
	wire     protowire.Type
	contents string
	varint   uint64
}

// consumeField reads the first field of a message, of n bytes.
func consumeField(s string) (f field, n int, err error) {
	tag, n := consumeVarint(s)
	if f.number, f.wire = protowire.DecodeTag(tag); n < 0 || f.number < protowire.MinValidNumber {
		return f, 0, malformed("a field's tag is broken")
	}
	size, rest := 0, s[n:]
	switch f.wire {
	case protowire.BytesType:
		f.contents, size = consumeText(rest)
	case protowire.VarintType:
		f.varint, size = consumeVarint(rest)
	case protowire.Fixed32Type:
		size = 4
	case protowire.Fixed64Type:
		size = 8
	default:
		return f, 0, malformed("a group")
	}
	if size < 0 || size > len(rest) {
		return f, 0, malformed("a field is cut short")
	}
	return f, n + size, nil
}

// consumeVarint is [protowire.ConsumeVarint] of a text.
func consumeVarint(s string) (v uint64, n int) {
	if s != "" && s[0] < 0x80 {
		return uint64(s[0]), 1
	}
	var b [10]byte // as many as one has at most
	return protowire.ConsumeVarint(b[:copy(b[:], s)])
}

// consumeText is [protowire.ConsumeBytes] of a text.
func consumeText(s string) (contents string, n int) {
	size, n := consumeVarint(s)
	if n < 0 || size > uint64(len(s)-n) {
		return "", -1
	}
	return s[n : n+int(size)], n + int(size)
}

func (r *reader) value(b string, depth int) (v value.Value, err error) {
	if depth > MaxDepth {
		return nil, ErrTooDeep
	}
	if r.nodes++; r.nodes > MaxNodes {
		return nil, ErrTooMany
	}
	err = fields(b, func(number protowire.Number, wire protowire.Type, contents string, n uint64) error {
		if number < kindInteger || number > kindCode {
			return nil
		}
		if scalar := number == kindInteger || number == kindBoolean; scalar != (wire == protowire.VarintType) {
			return malformed("a kind of value is written as another type")
		}
		if v != nil {
			return malformed("a value has two kinds")
		}
		v, err = r.kind(number, contents, n, depth)
		return err
	})
	if err != nil {
		return nil, err
	}
	if v == nil {
		return nil, malformed("a value has no kind")
	}
	return v, nil
}

// kind reads what a value is.
func (r *reader) kind(number protowire.Number, b string, n uint64, depth int) (value.Value, error) {
	switch number {
	case kindInteger:
		return value.NewInt(protowire.DecodeZigZag(n)), nil
	case kindBoolean:
		return value.Bool(protowire.DecodeBool(n)), nil
	case kindBig:
		i, err := decodeBig(b)
		if err != nil {
			return nil, err
		}
		return value.NewBig(i), nil
	case kindDecimal:
		return decodeDecimal(b)
	case kindText:
		s, err := r.text(b)
		return value.Str(s), err
	case kindUnit:
		return value.Unit{}, fields(b, func(protowire.Number, protowire.Type, string, uint64) error { return nil })
	case kindList:
		return r.list(b, depth)
	case kindPair:
		return r.pair(b, depth)
	case kindRecord:
		return r.record(b, depth)
	}
	if r.code += len(b); r.code > MaxCode {
		return nil, ErrTooLarge
	}
	parsed, f := parse.Code([]byte(b), parse.Options{MaxBytes: MaxCode})
	if f != nil {
		return nil, malformed("a quoted term can't be read")
	}
	return &value.Code{Term: parsed.Term, Source: parsed.Source}, nil
}

// text is one that stands by itself: it is a part of the message only where it is most of that.
func (r *reader) text(s string) (string, error) {
	if !utf8.ValidString(s) {
		return "", malformed("a text isn't UTF-8")
	}
	if 2*len(s) < r.message {
		s = strings.Clone(s)
	}
	return s, nil
}

func decodeBig(b string) (*big.Int, error) {
	var i big.Int
	negative := false
	err := fields(b, func(number protowire.Number, wire protowire.Type, contents string, n uint64) error {
		switch {
		case number == bigNegative && wire == protowire.VarintType:
			negative = protowire.DecodeBool(n)
		case number == bigMagnitude && wire == protowire.BytesType:
			i.SetBytes([]byte(contents))
		}
		return nil
	})
	if negative {
		i.Neg(&i)
	}
	return &i, err
}

func decodeDecimal(b string) (value.Value, error) {
	unscaled, scale := new(big.Int), uint64(0)
	err := fields(b, func(number protowire.Number, wire protowire.Type, contents string, n uint64) (err error) {
		switch {
		case number == decimalUnscaled && wire == protowire.BytesType:
			unscaled, err = decodeBig(contents)
		case number == decimalFrac && wire == protowire.VarintType:
			scale = n
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if scale > value.MaxDigits {
		return nil, malformed("a decimal's scale is too large")
	}
	d, ok := value.NewDec(unscaled, int(scale))
	if !ok {
		return nil, malformed("a decimal has too many digits")
	}
	return d, nil
}

func (r *reader) list(b string, depth int) (value.Value, error) {
	var first value.Value = value.Nil{}
	var last *value.Cons
	err := fields(b, func(number protowire.Number, wire protowire.Type, contents string, _ uint64) error {
		if number != listItems || wire != protowire.BytesType {
			return nil
		}
		item, err := r.value(contents, depth+1)
		if err != nil {
			return err
		}
		c := &value.Cons{Head: item, Tail: value.Nil{}}
		if last == nil {
			first = c
		} else {
			last.Tail = c
		}
		last = c
		return nil
	})
	return first, err
}

func (r *reader) pair(b string, depth int) (value.Value, error) {
	p := &value.Pair{}
	err := fields(b, func(number protowire.Number, wire protowire.Type, contents string, _ uint64) (err error) {
		if wire != protowire.BytesType {
			return nil
		}
		switch {
		case number == pairFirst && p.First == nil:
			p.First, err = r.value(contents, depth+1)
		case number == pairSecond && p.Second == nil:
			p.Second, err = r.value(contents, depth+1)
		case number == pairFirst || number == pairSecond:
			err = malformed("a pair has a part twice")
		}
		return err
	})
	if err == nil && (p.First == nil || p.Second == nil) {
		err = malformed("a pair lacks a part")
	}
	return p, err
}

func (r *reader) record(b string, depth int) (value.Value, error) {
	record := &value.Record{}
	err := fields(b, func(number protowire.Number, wire protowire.Type, contents string, _ uint64) error {
		if number != recordFields || wire != protowire.BytesType {
			return nil
		}
		f, err := r.field(contents, depth)
		record.Fields = append(record.Fields, f)
		return err
	})
	if err != nil {
		return nil, err
	}
	if !slices.IsSortedFunc(record.Fields, byKey) {
		slices.SortFunc(record.Fields, byKey)
	}
	for i := 1; i < len(record.Fields); i++ {
		if record.Fields[i].Key == record.Fields[i-1].Key {
			return nil, malformed("a record has a key twice")
		}
	}
	return record, nil
}

func (r *reader) field(b string, depth int) (f value.Field, err error) {
	err = fields(b, func(number protowire.Number, wire protowire.Type, contents string, _ uint64) (err error) {
		if wire != protowire.BytesType {
			return nil
		}
		switch number {
		case fieldKey:
			f.Key, err = r.text(contents)
		case fieldValue:
			if f.Value != nil {
				return malformed("a field has two values")
			}
			f.Value, err = r.value(contents, depth+1)
		}
		return err
	})
	if err == nil && f.Value == nil {
		err = malformed("a field has no value")
	}
	return f, err
}
