package prim

import (
	"math"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A Type is what is known of the parts of a value of some kinds.
type Type struct {
	Kinds Kinds
	// Item is what a list's items are.
	Item *Type
	// Fields is what a record has, in the order of the keys, and Rest what it may have
	// besides; nil: nothing.
	Fields []Field
	Rest   *Type
	// Group is set of a string that is what the one group of a pattern fits.
	Group bool
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

var twoValuesAny = []Param{{"a", KindAny}, {"b", KindAny}}

// generic is the rows that take values of every type.
var generic = []Row{
	{
		Name: "equal", Group: "any value", Shape: Array, Params: twoValuesAny, Result: KindBool,
		Doc:  "is true if a and b are the same value through and through; numbers by what they are worth, values of different types never, and two functions can't be compared.",
		Also: []string{"equals", "same", "deep_equal", "==", "="},
		Examples: []Example{
			{Code: `{"equal":[[1,"a"],[1,"a"]]}`, Want: `true`, Steps: 11},
			{Code: `{"equal":[1,{"dec":"1.00"}]}`, Want: `true`, Steps: 3},
			{Code: `{"equal":[1,"1"]}`, Want: `false`, Steps: 3},
			{Code: `{"equal":[{"quote":{"var":"x"}},{"quote":{"var":"x"}}]}`, Want: `true`, Steps: 3},
			{Code: `{"equal":[{"lam":"x","body":1},{"lam":"x","body":1}]}`, Fault: fault.TypeError},
		},
		Walk: func(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
			c := newComparer(false, m)
			d := c.run(args[0], args[1])
			m.setWalked(c.words, 0)
			return value.Bool(d == 0), c.fault
		},
	},
	{
		Name: "compare", Group: "any value", Shape: Array, Params: twoValuesAny, Result: KindInt,
		Doc:  "gives -1, 0 or 1 as a is less than, equal to or more than b, which is of a's type: numbers, strings by code points, false before true, lists, pairs and records by their first difference.",
		Also: []string{"cmp"},
		Examples: []Example{
			{Code: `{"compare":["apple","pear"]}`, Want: `-1`, Steps: 3},
			{Code: `{"compare":[[1,3],[1,2,9]]}`, Want: `1`, Steps: 13},
			{Code: `{"compare":[{"dec":"2.0"},2]}`, Want: `0`, Steps: 3},
			{Code: `{"compare":["1",1]}`, Fault: fault.TypeError},
		},
		Walk: func(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
			c := newComparer(true, m)
			d := c.run(args[0], args[1])
			m.setWalked(c.words, 0)
			if c.fault != nil {
				return nil, c.fault
			}
			return value.NewInt(int64(d)), nil
		},
	},
	{
		Name: "type_of", Group: "any value", Shape: Unary, Params: []Param{{"a", KindAny}}, Result: KindString,
		Doc:   "gives the name of a's type: int, dec, bool, string, unit, list, pair, record, function, quoted or continuation.",
		Total: true,
		Also:  []string{"typeof", "type"},
		Examples: []Example{
			{Code: `{"type_of":[1]}`, Want: `"list"`, Steps: 4},
			{Code: `{"type_of":null}`, Want: `"unit"`, Steps: 2},
			{Code: `{"type_of":{"var":"x"}}`, Fault: fault.Unbound},
		},
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			return value.Str(args[0].Type()), nil
		},
	},
}

// maxWords is how many words one step's work may look at: seconds of it, and
// more than any value has that isn't shared many times over. A walk that is
// longer is one that no budget of steps is enough for, so that a run can always
// be stopped soon.
const maxWords = 1 << 28

// limitOf returns how many words may be looked at with so many steps left, and a few
// more, so that what is beyond shows.
func limitOf(left uint64) uint64 { return (min(left, maxWords/perStep) + 1) * perStep }

// stepsOf returns the cost of a walk over so many words.
func stepsOf(words uint64) uint64 {
	if words > maxWords {
		return math.MaxUint64
	}
	return words / perStep
}
