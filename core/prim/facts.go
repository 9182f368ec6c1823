package prim

import "github.com/mcp-pif/mcp-pif/core/term"

// A Type is what is known of the parts of a value of some kinds.
type Type struct {
	Kinds Kinds
	// Item is what a list's items are.
	Item *Type
	// Fields is what a record has, in the order of the keys, and Rest what it may have
	// besides; nil: nothing.
	Fields []Field
	Rest   *Type
}

// A Field is one of a record's; Optional where it may not be there.
type Field struct {
	Key      string
	Type     *Type
	Optional bool
}

var (
	typeInt     = &Type{Kinds: KindInt}
	typeNumber  = &Type{Kinds: KindNumber}
	typeString  = &Type{Kinds: KindString}
	typeStrings = listOf(typeString)
)

// Facts returns what the row gives and how it grows with those operands: [Row.Gives]
// and [Row.Grows], or more where some are strings written out.
func (r *Row) Facts(args []term.Term) (*Type, *Growth) {
	if r.For == nil {
		return r.Gives, r.Grows
	}
	known := make([]*string, len(args))
	for i, a := range args {
		if s, ok := a.(*term.Str); ok {
			known[i] = &s.Value
		}
	}
	return r.For(known)
}

func listOf(item *Type) *Type { return &Type{Kinds: KindList, Item: item} }

// A Growth bounds what a strict row gives by measures of its operands: the Bytes of a
// string, and of each string in it; the Items of a list, or fields of a record; the
// Value of an integer without its sign, and the Words of its digits, without which the
// value tells them. Of data of any shape Bytes are those of all that is in it.
//
// The steps are those of reading the operands, all that is in them, and writing the
// result; Steps is more than these.
type Growth struct {
	Bytes, Items, Value, Words, Steps Bound
}

// A Bound is a sum of products.
type Bound []Product

// A Product is Times measures multiplied, divided by Per, where that isn't 0.
type Product struct {
	Times, Per uint64
	Of         []Measure
}

// A Measure is one of an operand, from 0.
type Measure struct {
	What    MeasureOf
	Operand int
}

// MeasureOf is what is measured.
type MeasureOf uint8

// The measures. One of what an operand isn't, or of an operand that is left out, is 0.
const (
	// BytesOf is the bytes of a string.
	BytesOf MeasureOf = iota
	// ItemsOf is the items of a list, or fields of a record.
	ItemsOf
	// ValueOf is a number without its sign.
	ValueOf
	// WordsOf is the words that a number takes, of 64 bits or of 19 digits.
	WordsOf
	// TotalOf is the bytes of all that is in the operand: 64 for each part, and what
	// strings and numbers take.
	TotalOf
)

func bytesOf(operand int) Measure { return Measure{BytesOf, operand} }
func itemsOf(operand int) Measure { return Measure{ItemsOf, operand} }
func valueOf(operand int) Measure { return Measure{ValueOf, operand} }
func wordsOf(operand int) Measure { return Measure{WordsOf, operand} }
func totalOf(operand int) Measure { return Measure{TotalOf, operand} }

// some returns a product of measures.
func some(times uint64, of ...Measure) Product { return Product{Times: times, Of: of} }

// per returns a part of a product of measures.
func per(part uint64, of ...Measure) Product { return Product{Times: 1, Per: part, Of: of} }
