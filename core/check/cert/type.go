package cert

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// A Type is a set of values: the union of kinds, with the types of their parts,
// nil for that of no value. A type may be among its own parts.
type Type struct {
	Kinds prim.Kinds `json:"kinds,omitempty"`
	// Parts is how the types below are written, in this order and then those of the
	// fields: by their places in the table, from 1; 0 for nil.
	Parts         []int `json:"parts,omitempty"`
	Item          *Type `json:"-"` // of a list
	First, Second *Type `json:"-"` // of a pair
	Rest          *Type `json:"-"` // a record's other fields; nil: none
	Param, Result *Type `json:"-"` // of a function

	Fields []Field `json:"fields,omitempty"`
	// What more is known of a value doesn't depend on types, which nobody may have
	// claimed: how many items a list has at most, and a function's code.
	size bound
	lam  *term.Lam
	env  *env
}

// A Field is a member of a record's type.
type Field struct {
	Key      string `json:"key"`
	Optional bool   `json:"optional,omitempty"`
	Type     *Type  `json:"-"`
}

// Link lets the parts of a type be those of the table that Parts says.
func (t *Type) Link(table []*Type) {
	parts := []**Type{&t.Item, &t.First, &t.Second, &t.Rest, &t.Param, &t.Result}
	for i := range t.Fields {
		parts = append(parts, &t.Fields[i].Type)
	}
	for i, n := range t.Parts[:min(len(t.Parts), len(parts))] {
		if n > 0 && n <= len(table) {
			*parts[i] = table[n-1]
		}
	}
}

var (
	nothing = of(0)
	chars   = of(prim.KindString)
	data    = deep(prim.KindData)
	written = deep(prim.KindData &^ (prim.KindQuoted | prim.KindPair)) // as JSON
	// A function that takes nothing can't be applied, so all functions are in it.
	anything = deep(prim.KindAny)
)

// deep is all values whose parts, at any depth, are of the kinds.
func deep(k prim.Kinds) *Type {
	t := of(k)
	t.Item, t.First, t.Second, t.Rest, t.Result = t, t, t, t, t
	return t
}

func of(k prim.Kinds) *Type   { return &Type{Kinds: k} }
func listOf(item *Type) *Type { return &Type{Kinds: prim.KindList, Item: item} }
func orNothing(t *Type) *Type { return cmp.Or(t, nothing) }

// sized is a type of lists that have so many items at most.
func (t *Type) sized(size bound) *Type {
	u := *t
	u.size = size
	return &u
}

// structured is the kinds with parts of which a type says something.
const structured = prim.KindList | prim.KindPair | prim.KindRecord | prim.KindFunction

// within reports whether every value of a is one of b. Of types that are among
// their own parts it is so if nothing speaks against it: what is being compared
// counts as compared. So nothing may be concluded once it was false.
func (c *pass) within(a, b *Type) bool {
	a, b = orNothing(a), orNothing(b)
	k, both, fields := a.Kinds, [2]*Type{a, b}, len(a.Fields)+len(b.Fields)
	if a == b || k&structured == 0 || k&^b.Kinds != 0 || c.seen[both] || !c.spend(20+fields*fields) {
		return k&^b.Kinds == 0 && c.err == nil
	}
	c.seen[both] = true
	c.deep++
	defer func() { c.deep-- }()
	c.code(a)
	return (k&prim.KindList == 0 || c.within(a.Item, b.Item)) &&
		(k&prim.KindPair == 0 || c.within(a.First, b.First) && c.within(a.Second, b.Second)) &&
		(k&prim.KindRecord == 0 || c.records(a, b)) &&
		(k&prim.KindFunction == 0 || c.within(b.Param, a.Param) && c.within(a.Result, b.Result))
}

func (c *pass) records(a, b *Type) bool {
	for _, f := range slices.Concat(a.Fields, b.Fields) {
		x, mayX := a.get(f.Key)
		y, mayY := b.get(f.Key)
		if mayX && !mayY || x != nil && (y == nil || !c.within(x, y)) {
			return false
		}
	}
	return a.Rest == nil || b.Rest != nil && c.within(a.Rest, b.Rest)
}

// get is the type of a record's field, nil where it has none; may says whether it
// can be missing.
func (t *Type) get(key string) (f *Type, may bool) {
	for _, f := range t.Fields {
		if f.Key == key {
			return orNothing(f.Type), f.Optional
		}
	}
	return t.Rest, true
}

// A bound is a sum of powers of n, the length of the longest of the parameters'
// lists: how often each is in it. Of the zero value nothing is known.
type bound struct {
	ok bool
	by [4]float64
	// on is the fold to whose accumulated list this is added, as a size; 0: none.
	on int
}

// longest is the length of a parameter.
var longest = bound{ok: true, by: [4]float64{0, 1}}

// tooMany is what is unbounded; smaller numbers are exact.
const tooMany = 1 << 40

func exactly(n int) bound { return bound{ok: true, by: [4]float64{float64(n)}} }

// with is the sum of two bounds, or, where it isn't the sum, the larger.
func (b bound) with(c bound, sum bool) bound {
	b.ok = b.ok && c.ok && (b.on == 0 || c.on == 0 || b.on == c.on && !sum)
	b.on = max(b.on, c.on)
	for i, x := range c.by {
		if sum {
			b.by[i] += x
		}
		b.by[i] = max(b.by[i], x)
	}
	return b
}

func (b bound) times(c bound) bound {
	r := bound{ok: b.ok && c.ok && b.on == 0 && c.on == 0}
	for i, x := range b.by {
		for j, y := range c.by[:len(c.by)-i] {
			r.by[i+j] += x * y
		}
		for _, y := range c.by[len(c.by)-i:] {
			r.ok = r.ok && x*y == 0 // no higher powers
		}
	}
	return r
}

// claim is a bound in words, and how it grows; calls says that it is that of one
// call of self.
func (b bound) claim(calls bool) (cost, class string) {
	for i, x := range b.by {
		if b.ok = b.ok && x < tooMany; x > 0 {
			cost += fmt.Sprint(" + ", uint64(x), []string{"", "*n", "*n^2", "*n^3"}[i])
			class = []string{"constant", "linear", "polynomial", "polynomial"}[i]
		}
	}
	if !b.ok {
		return "unbounded", "budget"
	} else if cost = cost[min(len(" + "), len(cost)):]; calls {
		return "(" + cost + ")*(1 + calls)", "budget"
	}
	return cost, class
}
