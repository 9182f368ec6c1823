package check

import (
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/prim"
)

// A Type is a set of values: the union of parts, at most one of each kind, of
// type variables, and of what is unknown. The zero value is the type of no
// value, "nothing". A Type is immutable: neither it nor what it refers to may
// be changed.
//
// A part with structure has it in the fields below, nil standing for nothing.
// A type that refers to itself has a Name, the binder, and the parts inside
// refer to it by that name among their Vars.
type Type struct {
	// Kinds is the kinds of values that are in the type.
	Kinds prim.Kinds
	// Any is set for the type of every value; Deep for all values of Kinds
	// whose parts, at any depth, are of Kinds. Other fields are empty then.
	Any, Deep bool
	// Dynamic is set where a part is not known before the program runs.
	Dynamic bool
	// Vars is type variables, sorted: names of unknown types, or of binders.
	Vars []string
	// Name is what the parts call the whole type by; empty where they don't.
	Name string

	Item          *Type // of a list
	First, Second *Type // of a pair
	Fields        []Field
	// Rest is the type of a record's other fields; nil: it has none.
	Rest   *Type
	Param  *Type // of a function
	Result *Type // of a function
	// Effects is what applying a function can ask for.
	Effects Row
	// Gives is what code gives where it is evaluated, Asks what that can ask
	// for, and Expects the variables that it uses and doesn't bind. Unknown is
	// set for code of which nothing is known.
	Gives   *Type
	Asks    Row
	Expects []Field
	Unknown bool
	Next    *Type // the input of a continuation
	// wants is what Wanted gives: a string that holds one of those is read as that.
	wants prim.Kinds
}

// A Field is a member of a record's type, or a variable with its type. Fields
// are sorted by their keys' bytes.
type Field struct {
	Key      string
	Type     *Type
	Optional bool
}

// A Row is the operations that can be asked for, sorted, each once; "fs.*" is all of
// a kind. Open is set where there can be others, too.
type Row struct {
	Ops  []string
	Open bool
}

// has reports whether an operation is among those that are named.
func (r Row) has(op string) bool {
	kind := op[:strings.IndexAny(op, ".:")+1]
	return slices.Contains(r.Ops, op) || slices.Contains(r.Ops, kind+"*")
}

// The types without structure.
var (
	Nothing = &Type{}
	Any     = &Type{Kinds: prim.KindAny, Any: true}
	// Data is what crosses between tools: neither functions nor continuations,
	// nor what has one in it.
	Data = &Type{Kinds: prim.KindData, Deep: true}
	// JSON is what to_json writes: data without code and pairs.
	JSON    = &Type{Kinds: jsonKinds, Deep: true}
	Dynamic = &Type{Dynamic: true}
	Int     = &Type{Kinds: prim.KindInt}
	Dec     = &Type{Kinds: prim.KindDec}
	Number  = &Type{Kinds: prim.KindNumber}
	Bool    = &Type{Kinds: prim.KindBool}
	String  = &Type{Kinds: prim.KindString}
	Unit    = &Type{Kinds: prim.KindUnit}
)

const jsonKinds = prim.KindData &^ (prim.KindQuoted | prim.KindPair)

// List is the type of lists of items of a type.
func List(item *Type) *Type { return &Type{Kinds: prim.KindList, Item: item} }

// Pair is the type of pairs of two types.
func Pair(first, second *Type) *Type {
	return &Type{Kinds: prim.KindPair, First: first, Second: second}
}

// Record is the type of records with the fields, which are sorted here, and
// others of type rest; nil: no others.
func Record(fields []Field, rest *Type) *Type {
	fields = slices.Clone(fields)
	slices.SortFunc(fields, func(a, b Field) int { return strings.Compare(a.Key, b.Key) })
	return &Type{Kinds: prim.KindRecord, Fields: fields, Rest: rest}
}

// Function is the type of functions.
func Function(param, result *Type, effects Row) *Type {
	return &Type{Kinds: prim.KindFunction, Param: param, Result: result, Effects: effects}
}

// IsFunction reports whether every value of the type is a function.
func (t *Type) IsFunction() bool {
	return t.Kinds == prim.KindFunction && !t.Any && !t.Dynamic && len(t.Vars) == 0
}

// Known reports whether nothing in the type is dynamic.
func (t *Type) Known() bool {
	known := true
	t.walk(func(u *Type) { known = known && !u.Dynamic && !u.Effects.Open && !u.Asks.Open })
	return known
}

// walk visits the type and all its parts.
func (t *Type) walk(visit func(*Type)) {
	if t == nil {
		return
	}
	visit(t)
	for _, p := range []*Type{t.Item, t.First, t.Second, t.Rest, t.Param, t.Result, t.Gives, t.Next} {
		p.walk(visit)
	}
	for _, f := range t.Fields {
		f.Type.walk(visit)
	}
	for _, f := range t.Expects {
		f.Type.walk(visit)
	}
}

// Wanted is the kinds of the literals that a parameter of any type is compared with,
// where those are of one kind; else 0.
func (t *Type) Wanted() prim.Kinds {
	if !t.Any {
		return 0
	}
	return t.wants
}

// or is t, or nothing for nil.
func (t *Type) or() *Type {
	if t == nil {
		return Nothing
	}
	return t
}
