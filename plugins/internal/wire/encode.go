package wire

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"

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
	errText     = errors.New("a text in it is no UTF-8")
	errTwice    = errors.New("a record in it has a key twice")
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
	w := writer{most: most, nodes: 1}
	err := w.value(v, 0)
	return w.out[w.at:], err
}

// A writer writes a message from its end to its beginning, so that the length of a
// part is known where it is written.
type writer struct {
	out   []byte // what is written begins at at
	at    int
	most  int
	nodes int // that are written, and their parts
	code  int // bytes of codes
}

// size is the bytes that are written.
func (w *writer) size() int { return len(w.out) - w.at }

// room gives n bytes before what is written.
func (w *writer) room(n int) []byte {
	if used := w.size(); n > w.at {
		out := make([]byte, max(used+n+n/8+64, used+used/2))
		copy(out[len(out)-used:], w.out[w.at:])
		w.out, w.at = out, len(out)-used
	}
	w.at -= n
	return w.out[w.at : w.at+n]
}

func (w *writer) uint(n uint64) { protowire.AppendVarint(w.room(protowire.SizeVarint(n))[:0], n) }

func (w *writer) varint(number protowire.Number, n uint64) {
	w.uint(n)
	w.uint(protowire.EncodeTag(number, protowire.VarintType))
}

// open writes a field's number and the length of its message, which is written and
// ends where so many bytes were.
func (w *writer) open(number protowire.Number, end int) {
	w.uint(uint64(w.size() - end))
	w.uint(protowire.EncodeTag(number, protowire.BytesType))
}

// string writes a field of bytes, if they fit.
func (w *writer) string(number protowire.Number, s string) error {
	if len(s) > w.most-w.size() {
		return ErrTooLarge
	}
	if !utf8.ValidString(s) {
		return errText
	}
	end := w.size()
	copy(w.room(len(s)), s)
	w.open(number, end)
	return nil
}

// value writes the message Value of v.
func (w *writer) value(v value.Value, depth int) (err error) {
	switch {
	case depth > MaxDepth:
		return ErrTooDeep
	case w.nodes > MaxNodes:
		return ErrTooMany
	}
	end := w.size()
	switch v := value.Force(v).(type) {
	case nil:
		return errMissing
	case value.Int:
		if i, small := v.Int64(); small {
			w.varint(kindInteger, protowire.EncodeZigZag(i))
		} else {
			w.big(kindBig, v.Big())
		}
	case value.Dec:
		if v.Scale() > 0 {
			w.varint(decimalFrac, uint64(v.Scale()))
		}
		w.big(decimalUnscaled, v.Unscaled())
		w.open(kindDecimal, end)
	case value.Bool:
		w.varint(kindBoolean, protowire.EncodeBool(bool(v)))
	case value.Str:
		err = w.string(kindText, string(v))
	case value.Unit:
		w.open(kindUnit, end)
	case value.Nil:
		w.open(kindList, end)
	case *value.Code:
		c := text.NewWriter(MaxCode, int64(MaxCode-w.code))
		if c.Canonical(v.Term); c.Full() {
			return ErrTooLarge
		}
		w.code += len(c.Bytes())
		err = w.string(kindCode, string(c.Bytes()))
	case *value.Cons:
		err = w.list(v, depth)
		w.open(kindList, end)
	case *value.Pair:
		w.nodes += 2
		if err = w.part(pairSecond, v.Second, depth); err == nil {
			err = w.part(pairFirst, v.First, depth)
		}
		w.open(kindPair, end)
	case *value.Record:
		err = w.record(v, depth)
		w.open(kindRecord, end)
	case *value.Closure:
		return ErrFunction
	default:
		return fmt.Errorf("a %s has no place on the wire", v.Type())
	}
	if err == nil && w.size() > w.most {
		err = ErrTooLarge
	}
	return err
}

// part writes a value as a field.
func (w *writer) part(number protowire.Number, v value.Value, depth int) error {
	end := w.size()
	err := w.value(v, depth+1)
	w.open(number, end)
	return err
}

func (w *writer) list(c *value.Cons, depth int) error {
	var items []value.Value
	for ok := true; ok; {
		if w.nodes++; w.nodes > MaxNodes {
			return ErrTooMany
		}
		items = append(items, c.Head)
		tail := value.Force(c.Tail)
		if c, ok = tail.(*value.Cons); !ok && tail != (value.Nil{}) {
			return errMissing
		}
	}
	for _, item := range slices.Backward(items) {
		if err := w.part(listItems, item, depth); err != nil {
			return err
		}
	}
	return nil
}

func byKey(a, b value.Field) int { return strings.Compare(a.Key, b.Key) }

func (w *writer) record(r *value.Record, depth int) error {
	w.nodes += len(r.Fields)
	fields := r.Fields
	if !slices.IsSortedFunc(fields, byKey) {
		fields = slices.SortedFunc(slices.Values(fields), byKey)
	}
	for i, f := range slices.Backward(fields) {
		if i > 0 && fields[i-1].Key == f.Key {
			return errTwice
		}
		end := w.size()
		err := w.part(fieldValue, f.Value, depth)
		if err == nil && f.Key != "" {
			err = w.string(fieldKey, f.Key)
		}
		if err != nil {
			return err
		}
		w.open(recordFields, end)
	}
	return nil
}

func (w *writer) big(number protowire.Number, b *big.Int) {
	end := w.size()
	if magnitude := b.Bytes(); len(magnitude) > 0 {
		copy(w.room(len(magnitude)), magnitude)
		w.open(bigMagnitude, end)
	}
	if b.Sign() < 0 {
		w.varint(bigNegative, 1)
	}
	w.open(number, end)
}
