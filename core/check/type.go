package check

import (
	"slices"
	"strconv"
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
	// orNull is set where the code compares it with null, which then is no reason for not
	// fitting.
	orNull bool
	// asked is set where the code asks of which type it is: a string stays one.
	asked bool
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

// finish gives a type its variables' names, in the order of their reading. An
// unknown that nothing is given of is any value.
func (d *typeBuilder) finish(t *Type) *Type {
	if !d.flows {
		d.shorten(t)
	}
	taken := map[string]bool{}
	t.walk(func(u *Type) {
		for _, v := range append(slices.Clone(u.Vars), u.Name) {
			if v != "" && !strings.ContainsAny(v[:1], "$#&") {
				taken[v] = true
			}
		}
	})
	next := 0
	name := func(v string) string {
		if n, ok := d.names[v]; ok {
			return n
		}
		if d.flows && v[0] == '$' {
			// The same unknown in the types of all terms.
			return "u" + v[1:]
		}
		for {
			n := string(rune('a' + next%26))
			if next >= 26 {
				n += strconv.Itoa(next / 26)
			}
			if next++; !taken[n] && (!d.flows || n[0] != 'u') {
				d.names[v] = n
				return n
			}
		}
	}
	d.rename(t, name)
	return t
}

// shorten makes one word of each type that says in many words what any, data or json
// says. An unknown in one may be anything then, wherever else it is.
func (d *typeBuilder) shorten(t *Type) {
	anything := map[string]bool{}
	post(t, func(u *Type) {
		for _, w := range []*Type{Any, Data, JSON} {
			if unknowns, ok := u.saysNoMore(w); ok {
				*u = Type{Kinds: w.Kinds, Any: w.Any, Deep: w.Deep, Dynamic: u.Dynamic, wants: u.wants}
				for _, v := range unknowns {
					anything[v] = true
				}
				return
			}
		}
	})
	if len(anything) == 0 {
		return
	}
	post(t, func(u *Type) {
		if slices.ContainsFunc(u.Vars, func(v string) bool { return anything[v] }) {
			*u = Type{Kinds: prim.KindAny, Any: true, Dynamic: u.Dynamic}
		}
	})
}

// post visits the parts of a type and then the type.
func post(t *Type, visit func(*Type)) {
	var all []*Type
	t.walk(func(u *Type) { all = append(all, u) })
	for _, u := range slices.Backward(all) {
		if u != Any && u != Dynamic && u != Nothing {
			visit(u)
		}
	}
}

// saysNoMore reports whether all parts of the type are w again, or unknowns where that is
// any. Lists of data that are compared lack only quoted code of it.
func (t *Type) saysNoMore(w *Type) (unknowns []string, ok bool) {
	lacks := w.Kinds &^ t.Kinds
	if t.Any || t.Deep || t.Kinds&^w.Kinds != 0 || lacks != 0 && (w != Data || lacks != prim.KindQuoted || t.Name != "") ||
		len(t.Vars)+len(t.Fields)+len(t.Effects.Ops) > 0 || t.Effects.Open || t.Kinds&prim.KindQuoted != 0 && !t.Unknown {
		return nil, false
	}
	parts := []*Type{t.Item, t.Rest}
	if w.Kinds&prim.KindPair != 0 {
		parts = append(parts, t.First, t.Second)
	}
	if w.Any {
		parts = append(parts, t.Result, t.Next)
		if t.Param.or().String() != "nothing" {
			parts = append(parts, t.Param)
		}
	}
	for _, p := range parts {
		switch p = p.or(); {
		case p.Any && w.Any, p.Deep && p.Kinds == w.Kinds:
		case w.Any && isUnknown(p):
			unknowns = append(unknowns, p.Vars...)
		case p.Kinds != 0 || p.Dynamic || len(p.Vars) != 1 || (p.Vars[0] != t.Name && p.Vars[0] != "&"+strconv.Itoa(int(w.Kinds))):
			return nil, false
		}
	}
	return unknowns, true
}

// rename goes through a type that nobody else has yet, in the order in which it
// is written.
func (d *typeBuilder) rename(t *Type, name func(string) string) {
	if t == nil || t == Dynamic || t == Any || t == Nothing {
		return
	}
	if strings.HasPrefix(t.Name, "#") {
		t.Name = name(t.Name)
	}
	var vars []string
	var deep prim.Kinds
	unknown := false
	for _, v := range t.Vars {
		switch v[0] {
		case '$':
			if !d.used[v] {
				unknown = true
				continue
			}
			v = name(v)
		case '#':
			v = name(v)
		case '&':
			n, _ := strconv.Atoi(v[1:])
			deep |= prim.Kinds(n)
			continue
		}
		vars = append(vars, v)
	}
	slices.Sort(vars)
	t.Vars = slices.Compact(vars)
	for _, p := range []*Type{t.Item, t.First, t.Second} {
		d.rename(p, name)
	}
	for _, f := range t.Fields {
		d.rename(f.Type, name)
	}
	d.rename(t.Rest, name)
	d.rename(t.Param, name)
	d.rename(t.Result, name)
	d.rename(t.Gives, name)
	for _, f := range t.Expects {
		d.rename(f.Type, name)
	}
	d.rename(t.Next, name)
	switch {
	case unknown || deep != 0 && t.Kinds&^deep != 0 || t.Kinds == prim.KindAny && !t.Deep && t.special() == 0:
		*t = Type{Kinds: prim.KindAny, Any: true, Dynamic: t.Dynamic, wants: t.wants}
	case deep != 0:
		*t = Type{Kinds: deep, Deep: true, Dynamic: t.Dynamic, Vars: t.Vars}
	}
}

// meet is a type of values that are of both types; where it would take too
// much to say which are, of fewer.
func (d *typeBuilder) meet(a, b *Type, deep int) *Type {
	a, b = a.or(), b.or()
	if a == b {
		return a
	}
	if d.parts += (len(a.Fields) + len(b.Fields) + len(a.Vars) + len(b.Vars)) / 32; d.parts > maxParts {
		d.cut = true
		return Dynamic
	}
	switch {
	case b.Any:
		return a
	case a.Any:
		return b
	case a.String() == b.String():
		return a
	case !d.flows && isUnknown(a) && isUnknown(b):
		return &Type{Vars: append(slices.Clone(a.Vars), b.Vars...)}
	case a.Name != "" || b.Name != "" || deep > 20:
		return Nothing
	case a.Kinds == 0 && a.Dynamic && len(a.Vars) == 0:
		return b
	case b.Kinds == 0 && b.Dynamic && len(b.Vars) == 0:
		return a
	}
	t := &Type{Kinds: a.Kinds & b.Kinds, Dynamic: a.Dynamic && b.Dynamic}
	for _, v := range a.Vars {
		if slices.Contains(b.Vars, v) {
			t.Vars = append(t.Vars, v)
		}
	}
	if a.Deep || b.Deep {
		if a.Deep && b.Deep {
			t.Deep = true
			return t
		}
		// The parts of one have to be of the other.
		t.Kinds &= plain
		return t
	}
	deep++
	if t.Kinds&prim.KindList != 0 {
		t.Item = d.meet(a.Item, b.Item, deep)
	}
	if t.Kinds&prim.KindPair != 0 {
		t.First, t.Second = d.meet(a.First, b.First, deep), d.meet(a.Second, b.Second, deep)
	}
	if t.Kinds&prim.KindRecord != 0 && !d.meetRecords(t, a, b, deep) {
		t.Kinds &^= prim.KindRecord
	}
	// What is to be a function of both, or code, isn't worked out.
	t.Kinds &^= prim.KindFunction | prim.KindQuoted | prim.KindContinuation
	return t
}

// isUnknown reports whether a type is that of an unknown: two of them that are
// to be one value are that.
func isUnknown(t *Type) bool {
	return t.Kinds == 0 && !t.Dynamic && len(t.Vars) > 0 && t.Name == "" &&
		!slices.ContainsFunc(t.Vars, func(v string) bool { return v[0] != '$' })
}

func (d *typeBuilder) meetRecords(t, a, b *Type, deep int) bool {
	of := func(t *Type, key string) (Field, bool) {
		i, ok := slices.BinarySearchFunc(t.Fields, key, func(f Field, key string) int { return strings.Compare(f.Key, key) })
		if ok {
			return t.Fields[i], true
		}
		return Field{Key: key, Type: t.Rest, Optional: true}, t.Rest != nil
	}
	var keys []string
	for _, f := range append(slices.Clone(a.Fields), b.Fields...) {
		keys = append(keys, f.Key)
	}
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		f, okA := of(a, key)
		g, okB := of(b, key)
		switch {
		case okA && okB:
			t.Fields = append(t.Fields, Field{key, d.meet(f.Type, g.Type, deep), f.Optional && g.Optional})
		case okA && !f.Optional || okB && !g.Optional:
			return false
		}
	}
	if a.Rest != nil && b.Rest != nil {
		t.Rest = d.meet(a.Rest, b.Rest, deep)
	}
	return true
}
