// Package term is the syntax tree of PIF: a sealed sum of node types.
//
// A [Term] is what a program says, before anything decides what it means.
// Nodes are immutable once a parser has returned them, and are shared freely
// between goroutines, programs and quoted values.
//
// Every node carries its place: the byte offset of its first character in the
// source it was read from. A JSON Pointer or a line and column is worked out
// from that offset only when a fault needs one (see [Source]), so that reading
// a program costs nothing for places nobody asks about.
//
// Everything that is spelled `{"name":[T…]}` with a fixed number of operands,
// strict or not, is a [Prim] whose row in the table of package prim says the
// rest. The other nodes are those whose operands are not all terms.
package term

import (
	"math/big"
)

// A Term is one of the node types of this package. The interface is sealed.
type Term interface {
	// Pos is the byte offset of the term in its source.
	Pos() int
	isTerm()
}

// At is the place of a node: the byte offset of its first character in the
// source. The zero value is the start of the source.
type At int32

// Pos returns the place as an int.
func (a At) Pos() int { return int(a) }

func (At) isTerm() {}

// ID names a row of the primitive table; package prim gives the numbers.
type ID uint16

// The node types. Pointers to them are Terms.
type (
	// Int is an integer literal that fits 64 bits.
	Int struct {
		At
		Value int64
	}
	// Big is an integer literal that doesn't fit 64 bits. Value is not to be changed.
	Big struct {
		At
		Value *big.Int
	}
	// Dec is a decimal literal: Unscaled / 10^Scale. Unscaled is not to be changed.
	Dec struct {
		At
		Unscaled *big.Int
		Scale    int
	}
	// Bool is true or false.
	Bool struct {
		At
		Value bool
	}
	// Str is a string literal, valid UTF-8.
	Str struct {
		At
		Value string
	}
	// Unit is null.
	Unit struct{ At }
	// Var is the use of a variable.
	Var struct {
		At
		Name string
	}
	// Lam is a function of one parameter.
	Lam struct {
		At
		Param string
		Body  Term
	}
	// LetRec is Body with names for functions that see one another: each name
	// is bound in Body and in every function. Three steps for each function, as
	// for a let of it, and Body's.
	LetRec struct {
		At
		Funcs []Func
		Body  Term
	}
	// App is the application of Func to one argument.
	App struct {
		At
		Func, Arg Term
	}
	// If is the conditional; only the branch taken is evaluated.
	If struct {
		At
		Cond, Then, Else Term
	}
	// List is a literal […]. It means nested cons cells ended by nil, and is
	// charged as those: n+1 steps and its items'.
	List struct {
		At
		Items []Term
	}
	// Record is a record literal: its fields sorted by the bytes of their
	// keys, no key twice. One step and its fields' values'.
	Record struct {
		At
		Fields []Field
	}
	// Quote is code as a value; Body is not evaluated.
	Quote struct {
		At
		Body Term
	}
	// CodeOf is code_of with a literal name.
	CodeOf struct {
		At
		Name string
	}
	// Self is the function of the tool that the code belongs to.
	Self struct{ At }
	// Continue hands the tool's next input back to the caller.
	Continue struct {
		At
		Input Term
	}
	// Effect asks for an operation of a capability, "kind.verb". In, where not
	// empty, is the capability that the argument names, a literal; Arg is a
	// *Record then, and holds the other fields.
	Effect struct {
		At
		Op  string
		In  string
		Arg Term
	}
	// Prim is a row of the table applied to its operands: a strict primitive
	// or one of the forms whose operands are all terms (and, or, fold, eval,
	// code_of with a computed name, call, par). The second operand of an eval,
	// where there is one, is a list of strings and isn't evaluated: see [With].
	Prim struct {
		At
		ID   ID
		Args []Term
	}
)

// A Func is a function of a [LetRec] with its name, which no other there has.
type Func struct {
	Name string
	Lam  *Lam
}

// A Field is one member of a record literal.
type Field struct {
	Key   string
	Value Term
}

// A Source is the text a term was read from, kept to turn places into words.
// It is immutable.
type Source struct {
	// Text is the JSON (or, with the text form, PIF text) as given.
	Text []byte
	// In is the document's name in faults: "code", "input", "eval", "tool:NAME@V".
	In string
	// Form is how Text is spelled; the zero value is JSON.
	Form Form
}

// Form is how a source spells its term.
type Form uint8

// The forms of sources.
const (
	// JSON is the canonical spelling; package parse reads it.
	JSON Form = iota
	// PIF is the text form; package text reads it.
	PIF
)
