package cert

import (
	"slices"

	"github.com/mcp-pif/mcp-pif/core/prim"
)

// A Type is a set of values: the union of kinds, with the types of their
// parts. What isn't known before a program runs, and what refers to itself, no
// certificate says.
type Type struct {
	// Kinds is the kinds of values in it, Deep that all their parts are of
	// Kinds, too, and Vars the names of types of which nothing is known.
	Kinds prim.Kinds `json:"kinds,omitempty"`
	Any   bool       `json:"any,omitempty"`
	Deep  bool       `json:"deep,omitempty"`
	Vars  []string   `json:"vars,omitempty"`

	Item   *Type   `json:"item,omitempty"` // of a list
	First  *Type   `json:"first,omitempty"`
	Second *Type   `json:"second,omitempty"` // of a pair
	Fields []Field `json:"fields,omitempty"`
	Rest   *Type   `json:"rest,omitempty"` // a record's other fields; nil: none
	Param  *Type   `json:"param,omitempty"`
	Result *Type   `json:"result,omitempty"`
	// Asks is the operations that applying a function can ask for.
	Asks []string `json:"asks,omitempty"`
}

// A Field is a member of a record's type.
type Field struct {
	Key      string `json:"key"`
	Type     *Type  `json:"type"`
	Optional bool   `json:"optional,omitempty"`
}

var (
	nothing  = &Type{}
	anything = &Type{Kinds: prim.KindAny, Any: true}
	boolean  = &Type{Kinds: prim.KindBool}
	data     = &Type{Kinds: prim.KindData, Deep: true}
)

func of(k prim.Kinds) *Type { return &Type{Kinds: k} }

func listOf(item *Type) *Type { return &Type{Kinds: prim.KindList, Item: item} }

func orNothing(t *Type) *Type {
	if t == nil {
		return nothing
	}
	return t
}

// within reports whether every value of a is one of b. left bounds the work.
func within(a, b *Type, left *int) bool {
	a, b = orNothing(a), orNothing(b)
	if *left--; *left < 0 {
		return false
	}
	if a == b || b.Any {
		return true
	}
	if a.Any || a.Kinds&^b.Kinds != 0 {
		return false
	}
	for _, v := range a.Vars {
		if !slices.Contains(b.Vars, v) {
			return false
		}
	}
	if a.Deep && b.Deep {
		return true
	}
	if b.Deep {
		b = parts(b)
	}
	if a.Deep {
		a = parts(a)
	}
	if a.Kinds&prim.KindList != 0 && !within(a.Item, b.Item, left) {
		return false
	}
	if a.Kinds&prim.KindPair != 0 && !(within(a.First, b.First, left) && within(a.Second, b.Second, left)) {
		return false
	}
	if a.Kinds&prim.KindRecord != 0 && !records(a, b, left) {
		return false
	}
	if a.Kinds&prim.KindFunction != 0 {
		if !within(b.Param, a.Param, left) || !within(a.Result, b.Result, left) || !subset(a.Asks, b.Asks) {
			return false
		}
	}
	return true // of code and continuations nothing more is said
}

// parts is a deep type with its parts written out.
func parts(t *Type) *Type {
	return &Type{Kinds: t.Kinds, Item: t, First: t, Second: t, Rest: t}
}

// subset reports whether all operations of a are among b's; "*" is any.
func subset(a, b []string) bool {
	for _, op := range a {
		if !slices.Contains(b, op) && !slices.Contains(b, "*") {
			return false
		}
	}
	return true
}

// get is the type of a record's field; may says whether it can be missing.
func (t *Type) get(key string) (f *Type, may bool) {
	if t.Deep {
		return t, true
	}
	for _, f := range t.Fields {
		if f.Key == key {
			return f.Type, f.Optional
		}
	}
	return t.Rest, true
}

func records(a, b *Type, left *int) bool {
	for _, g := range b.Fields {
		f, may := a.get(g.Key)
		if may && !g.Optional || f != nil && !within(f, g.Type, left) {
			return false
		}
	}
	for _, f := range a.Fields {
		g, _ := b.get(f.Key)
		if g == nil || !within(f.Type, g, left) {
			return false
		}
	}
	return a.Rest == nil || b.Rest != nil && within(a.Rest, b.Rest, left)
}

// all is the types of a record's fields.
func (t *Type) all() []*Type {
	types := []*Type{orNothing(t.Rest)}
	if t.Deep {
		types[0] = t
	}
	for _, f := range t.Fields {
		types = append(types, f.Type)
	}
	return types
}
