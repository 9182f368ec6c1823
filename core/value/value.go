// Package value is what evaluation gives: the values of PIF as Go data.
//
// The machine keeps values in a heap of its own; these types are how they
// cross to and from a host, and what package naive computes with. Values are
// immutable; sharing inside one is kept when it crosses, so that a value never
// has more parts in Go than it had in the machine.
//
// Lists are chains of [Cons] ended by [Nil]; use [FromSlice] and [Slice].
// A [Closure] is opaque and doesn't cross: what a host gives back can hold none.
package value

import (
	"math/big"
	"strconv"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// A Value is one of the types of this package. The interface is sealed.
type Value interface {
	// Type is the value's type as answers show it.
	Type() Type
	isValue()
}

// Type is a kind of value as it is called in answers.
type Type string

// The types of values.
const (
	TypeInt          Type = "int"
	TypeBool         Type = "bool"
	TypeString       Type = "string"
	TypeUnit         Type = "unit"
	TypeList         Type = "list"
	TypePair         Type = "pair"
	TypeRecord       Type = "record"
	TypeFunction     Type = "function"
	TypeQuoted       Type = "quoted"
	TypeContinuation Type = "continuation"
	TypeDec          Type = "dec"
)

// The types of values. Int is exact at any size: use [NewInt] and [NewBig].
type (
	// Int is an integer. b is set only where the number doesn't fit n.
	Int struct {
		n int64
		b *big.Int
	}
	// Bool is a truth value.
	Bool bool
	// Str is a string, valid UTF-8.
	Str string
	// Unit is the value of null.
	Unit struct{}
	// Nil is the empty list.
	Nil struct{}
	// Cons is a list with a first item. Tail is a Nil or a *Cons.
	Cons struct{ Head, Tail Value }
	// Pair is two values.
	Pair struct{ First, Second Value }
	// Record is an immutable map; Fields are sorted by the bytes of their keys.
	Record struct{ Fields []Field }
	// Closure is a function. Impl belongs to the evaluator that made it.
	Closure struct{ Impl any }
	// Code is a quoted term with the source its places refer to (nil: none).
	Code struct {
		Term   term.Term
		Source *term.Source
	}
	// Continuation is a tool's wish to be called again with Input.
	Continuation struct {
		Tool  string
		Input Value
	}
)

// A Memory is where an evaluator keeps values.
type Memory interface {
	// Force returns the outermost part of a value, the rest in [Lazy] ones.
	Force(word uint64) Value
}

// Lazy is a value that is still in its evaluator's memory, for readers that
// take one part at a time and drop it. It never leaves package core and the
// packages below.
type Lazy struct {
	In   Memory
	Word uint64
}

// Measurer is a [Memory] that knows what a value is and how large without
// copying it: of a string its bytes, of a record its fields, of others 0.
type Measurer interface {
	Measure(word uint64) (Type, int)
}

// Type returns the value's type.
func (l Lazy) Type() Type {
	t, _ := Measure(l)
	return t
}

func (Lazy) isValue() {}

// Force returns v itself, or the outermost part of a lazy one.
func Force(v Value) Value {
	if l, ok := v.(Lazy); ok {
		return l.In.Force(l.Word)
	}
	return v
}

// Measure returns what v is, and how large: of a string its bytes, of a record
// its fields, of others 0. Of a lazy value nothing is copied for it, where its
// memory is a [Measurer].
func Measure(v Value) (Type, int) {
	if l, ok := v.(Lazy); ok {
		if in, ok := l.In.(Measurer); ok {
			return in.Measure(l.Word)
		}
		v = l.In.Force(l.Word)
	}
	switch x := v.(type) {
	case Str:
		return TypeString, len(x)
	case *Record:
		return TypeRecord, len(x.Fields)
	}
	return v.Type(), 0
}

// A Field is one member of a record.
type Field struct {
	Key   string
	Value Value
}

func (Int) Type() Type           { return TypeInt }
func (Dec) Type() Type           { return TypeDec }
func (Bool) Type() Type          { return TypeBool }
func (Str) Type() Type           { return TypeString }
func (Unit) Type() Type          { return TypeUnit }
func (Nil) Type() Type           { return TypeList }
func (*Cons) Type() Type         { return TypeList }
func (*Pair) Type() Type         { return TypePair }
func (*Record) Type() Type       { return TypeRecord }
func (*Closure) Type() Type      { return TypeFunction }
func (*Code) Type() Type         { return TypeQuoted }
func (*Continuation) Type() Type { return TypeContinuation }

func (Int) isValue()           {}
func (Dec) isValue()           {}
func (Bool) isValue()          {}
func (Str) isValue()           {}
func (Unit) isValue()          {}
func (Nil) isValue()           {}
func (*Cons) isValue()         {}
func (*Pair) isValue()         {}
func (*Record) isValue()       {}
func (*Closure) isValue()      {}
func (*Code) isValue()         {}
func (*Continuation) isValue() {}

// NewInt returns the integer n.
func NewInt(n int64) Int { return Int{n: n} }

// NewBig returns the integer b, which the caller must not change afterwards.
func NewBig(b *big.Int) Int {
	if b.IsInt64() {
		return Int{n: b.Int64()}
	}
	return Int{b: b}
}

// Int64 returns the integer and whether it fits 64 bits.
func (i Int) Int64() (int64, bool) { return i.n, i.b == nil }

// Big returns the integer as a big.Int, not to be changed by the caller.
func (i Int) Big() *big.Int {
	if i.b != nil {
		return i.b
	}
	return big.NewInt(i.n)
}

// String returns the integer in decimal.
func (i Int) String() string {
	if i.b == nil {
		return strconv.FormatInt(i.n, 10)
	}
	return i.b.String()
}

// Words returns the size of the integer in 64-bit words; 1 for every number that fits
// one.
func (i Int) Words() int {
	if i.b == nil {
		return 1
	}
	return len(i.b.Bits())
}

// FromSlice returns the list of the items.
func FromSlice(items []Value) Value {
	var list Value = Nil{}
	for i := len(items) - 1; i >= 0; i-- {
		list = &Cons{Head: items[i], Tail: list}
	}
	return list
}

// Texts is a list of strings.
func Texts(list []string) Value {
	items := make([]Value, len(list))
	for i, s := range list {
		items[i] = Str(s)
	}
	return FromSlice(items)
}

// Slice returns the items of a list, and false where v is no list.
func Slice(v Value) ([]Value, bool) {
	var items []Value
	for {
		switch c := v.(type) {
		case Nil:
			return items, true
		case *Cons:
			items = append(items, c.Head)
			v = c.Tail
		default:
			return nil, false
		}
	}
}

// Caught returns what a fault becomes where a program tries: the record
// {"error":{"at","kind","message"}}, with "value" beside them where the program
// raised one.
func Caught(f *fault.Fault) Value {
	fields := []Field{
		{"at", Str(f.Place())},
		{"kind", Str(f.Kind)},
		{"message", Str(f.Message)},
	}
	if v, ok := f.Raised.(Value); ok {
		fields = append(fields, Field{"value", v})
	}
	return &Record{Fields: []Field{{"error", &Record{Fields: fields}}}}
}
