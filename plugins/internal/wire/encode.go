package wire

import (
	"errors"
	"fmt"
	"math/big"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// The bounds of a value on the wire.
const (
	// MaxDepth is how deep lists, pairs and records may be nested. A level takes
	// up to three messages, of which protobuf's libraries read 10,000.
	MaxDepth = 2_000
	// MaxNodes is how many values one may be made of. Parts that are shared
	// count each time: the wire has no sharing.
	MaxNodes = 1_000_000
	// MaxCode is how many bytes all quoted terms of a value may have together;
	// each is read to a tree that is many times as large.
	MaxCode = 1 << 20
)

// The ways in which a value can't cross.
var (
	ErrTooLarge = errors.New("it has too many bytes")
	ErrTooMany  = fmt.Errorf("it is made of more than %d values", MaxNodes)
	ErrTooDeep  = fmt.Errorf("it is nested deeper than %d", MaxDepth)
	errMissing  = errors.New("a part of it is missing")
	ErrFunction = errors.New("it holds a function, and functions stay where they were made")
)

// The field numbers of the messages of a value; see plugin.proto.
const (
	kindInteger = 1
	kindBig     = 2
	kindDecimal = 3
	kindBoolean = 4
	kindText    = 5
	kindUnit    = 6
	kindList    = 7
	kindPair    = 8
	kindRecord  = 9
	kindCode    = 10

	bigNegative, bigMagnitude    = 1, 2
	decimalUnscaled, decimalFrac = 1, 2
	listItems                    = 1
	pairFirst, pairSecond        = 1, 2
	recordFields                 = 1
	fieldKey, fieldValue         = 1, 2
)

// EncodeValue writes a value as a message Value of at most most bytes. It stops
// as soon as a bound is passed, so that a value that shares its parts 2^60 times
// costs no more than one that is too large.
func EncodeValue(v value.Value, most int) ([]byte, error) {
	e, err := Measure(v, most)
	if err != nil {
		return nil, err
	}
	return e.Append(make([]byte, 0, e.size)), nil
}

// An Encoding is a value that was found to fit, and isn't written yet.
type Encoding struct {
	value value.Value
	size  int
	sizes []int
	codes [][]byte
}

// Measure is the first half of [EncodeValue], for those who have room for the
// bytes elsewhere.
func Measure(v value.Value, most int) (Encoding, error) {
	m := measure{most: most}
	n, err := m.value(v, 0)
	if err == nil && n > most {
		err = ErrTooLarge
	}
	return Encoding{value: v, size: n, sizes: m.sizes, codes: m.codes}, err
}

// Len is the bytes of the message.
func (e Encoding) Len() int { return e.size }

// Append writes the message behind dst.
func (e Encoding) Append(dst []byte) []byte {
	w := writer{out: dst, sizes: e.sizes, codes: e.codes}
	w.value(e.value)
	return w.out
}

// A measure is the first of two passes: the lengths that stand before nested
// messages, in the order in which the second needs them.
type measure struct {
	most  int
	nodes int
	bytes int // lower bound of what was seen
	sizes []int
	codes [][]byte
	code  int // bytes of codes
}

// field is the bytes of a nested message of n bytes in a field below 16.
func field(n int) int { return 1 + protowire.SizeBytes(n) }

// count charges a node with bytes of its own.
func (m *measure) count(bytes int) error {
	m.nodes++
	m.bytes += bytes
	switch {
	case m.nodes > MaxNodes:
		return ErrTooMany
	case m.bytes > m.most:
		return ErrTooLarge
	}
	return nil
}

// value is the bytes of the message Value of v.
func (m *measure) value(v value.Value, depth int) (int, error) {
	if depth > MaxDepth {
		return 0, ErrTooDeep
	}
	v = value.Force(v)
	n := 0
	switch v := v.(type) {
	case nil:
		return 0, errMissing
	case value.Int:
		if i, small := v.Int64(); small {
			n = 1 + protowire.SizeVarint(protowire.EncodeZigZag(i))
		} else {
			n = field(m.big(v.Big()))
		}
	case value.Dec:
		inner := field(m.big(v.Unscaled()))
		if v.Scale() > 0 {
			inner += 1 + protowire.SizeVarint(uint64(v.Scale()))
		}
		m.sizes = append(m.sizes, inner)
		n = field(inner)
	case value.Bool:
		n = 2
	case value.Str:
		n = field(len(v))
	case value.Unit, value.Nil:
		n = 2
	case *value.Code:
		c := text.NewWriter(MaxCode, int64(MaxCode-m.code))
		if c.Canonical(v.Term); c.Full() {
			return 0, ErrTooLarge
		}
		b := c.Bytes()
		m.codes, m.code = append(m.codes, b), m.code+len(b)
		n = field(len(b))
	default:
		return m.compound(v, depth)
	}
	return n, m.count(n)
}

// compound is the bytes of a value that has parts.
func (m *measure) compound(v value.Value, depth int) (int, error) {
	if err := m.count(2); err != nil {
		return 0, err
	}
	at := len(m.sizes)
	m.sizes = append(m.sizes, 0)
	inner := 0
	part := func(v value.Value) error {
		at := len(m.sizes)
		m.sizes = append(m.sizes, 0)
		n, err := m.value(v, depth+1)
		m.sizes[at] = n
		inner += field(n)
		return err
	}
	switch v := v.(type) {
	case *value.Cons:
		for rest := value.Value(v); ; {
			c, ok := rest.(*value.Cons)
			if !ok {
				break
			}
			if err := part(c.Head); err != nil {
				return 0, err
			}
			rest = value.Force(c.Tail)
		}
	case *value.Pair:
		if err := part(v.First); err != nil {
			return 0, err
		}
		if err := part(v.Second); err != nil {
			return 0, err
		}
	case *value.Record:
		for _, f := range v.Fields {
			n, err := m.member(f, depth)
			if err != nil {
				return 0, err
			}
			inner += field(n)
		}
	case *value.Closure:
		return 0, ErrFunction
	default:
		return 0, fmt.Errorf("a %s has no place on the wire", v.Type())
	}
	m.sizes[at] = inner
	return field(inner), nil
}

// member is the bytes of the message Field.
func (m *measure) member(f value.Field, depth int) (int, error) {
	at := len(m.sizes)
	m.sizes = append(m.sizes, 0, 0)
	if err := m.count(len(f.Key)); err != nil {
		return 0, err
	}
	n, err := m.value(f.Value, depth+1)
	size := field(n)
	if f.Key != "" {
		size += field(len(f.Key))
	}
	m.sizes[at], m.sizes[at+1] = size, n
	return size, err
}

// big is the bytes of the message Big.
func (m *measure) big(b *big.Int) int {
	n := 0
	if b.Sign() < 0 {
		n = 2
	}
	if length := (b.BitLen() + 7) / 8; length > 0 {
		n += field(length)
	}
	m.sizes = append(m.sizes, n)
	return n
}

// A writer is the second pass.
type writer struct {
	out   []byte
	sizes []int
	codes [][]byte
}

func (w *writer) next() int {
	n := w.sizes[0]
	w.sizes = w.sizes[1:]
	return n
}

// open writes a field's number and the length of its message.
func (w *writer) open(number protowire.Number, n int) {
	w.out = protowire.AppendTag(w.out, number, protowire.BytesType)
	w.out = protowire.AppendVarint(w.out, uint64(n))
}

func (w *writer) varint(number protowire.Number, n uint64) {
	w.out = protowire.AppendTag(w.out, number, protowire.VarintType)
	w.out = protowire.AppendVarint(w.out, n)
}

func (w *writer) string(number protowire.Number, s string) {
	w.open(number, len(s))
	w.out = append(w.out, s...)
}

func (w *writer) value(v value.Value) {
	switch v := value.Force(v).(type) {
	case value.Int:
		if i, small := v.Int64(); small {
			w.varint(kindInteger, protowire.EncodeZigZag(i))
		} else {
			w.big(kindBig, w.next(), v.Big())
		}
	case value.Dec:
		digits := w.next()
		w.open(kindDecimal, w.next())
		w.big(decimalUnscaled, digits, v.Unscaled())
		if v.Scale() > 0 {
			w.varint(decimalFrac, uint64(v.Scale()))
		}
	case value.Bool:
		w.varint(kindBoolean, protowire.EncodeBool(bool(v)))
	case value.Str:
		w.string(kindText, string(v))
	case value.Unit:
		w.open(kindUnit, 0)
	case value.Nil:
		w.open(kindList, 0)
	case *value.Code:
		w.open(kindCode, len(w.codes[0]))
		w.out = append(w.out, w.codes[0]...)
		w.codes = w.codes[1:]
	case *value.Cons:
		w.open(kindList, w.next())
		for rest := value.Value(v); ; {
			c, ok := rest.(*value.Cons)
			if !ok {
				return
			}
			w.open(listItems, w.next())
			w.value(c.Head)
			rest = value.Force(c.Tail)
		}
	case *value.Pair:
		w.open(kindPair, w.next())
		w.open(pairFirst, w.next())
		w.value(v.First)
		w.open(pairSecond, w.next())
		w.value(v.Second)
	case *value.Record:
		w.open(kindRecord, w.next())
		for _, f := range v.Fields {
			w.open(recordFields, w.next())
			n := w.next()
			if f.Key != "" {
				w.string(fieldKey, f.Key)
			}
			w.open(fieldValue, n)
			w.value(f.Value)
		}
	}
}

func (w *writer) big(number protowire.Number, n int, b *big.Int) {
	w.open(number, n)
	if b.Sign() < 0 {
		w.varint(bigNegative, 1)
	}
	if b.Sign() != 0 {
		magnitude := b.Bytes()
		w.open(bigMagnitude, len(magnitude))
		w.out = append(w.out, magnitude...)
	}
}
