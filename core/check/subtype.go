package check

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// Within says why not every value of type a is one of type b; empty: each is.
// A type variable is some type of which nothing is known: only itself and any
// hold it. What is dynamic is in everything, and holds everything.
func Within(a, b *Type) string {
	if a.or().String() == b.or().String() {
		return ""
	}
	s := subtyping{a: map[string]*Type{}, b: map[string]*Type{}, seen: map[[2]*Type]bool{}}
	return s.within(a.or(), b.or(), 0)
}

type subtyping struct {
	a, b map[string]*Type // what names stand for
	seen map[[2]*Type]bool
	work int
	// back compares the other way around: parameters.
	back *subtyping
}

// The bounds of a comparison of types.
const (
	maxComparisons = 100_000
	maxDeep        = 500
)

func (s *subtyping) within(a, b *Type, deep int) string {
	if s.work++; s.work > maxComparisons || deep > maxDeep {
		return "the types are too large to be compared"
	}
	a, b = named(a, s.a), named(b, s.b)
	k := [2]*Type{a, b}
	if s.seen[k] {
		return ""
	}
	s.seen[k] = true
	if a.Name != "" {
		s.a[a.Name] = a
	}
	if b.Name != "" {
		s.b[b.Name] = b
	}
	if b.Any || b.Dynamic {
		return ""
	}
	for _, v := range a.Vars {
		if of := s.a[v]; of != nil {
			if why := s.within(of, b, deep+1); why != "" {
				return why
			}
		} else if !slices.Contains(b.Vars, v) {
			return fmt.Sprintf("%s may be anything, and %s is expected", v, b)
		}
	}
	// A name among b's parts stands for what it names.
	for _, v := range b.Vars {
		if of := s.b[v]; of != nil && a.Kinds != 0 && a.Kinds&^b.Kinds != 0 {
			return s.within(a, of, deep+1)
		}
	}
	if a.Any {
		return fmt.Sprintf("anything is more than %s", b)
	}
	if more := a.Kinds &^ b.Kinds; more != 0 {
		return fmt.Sprintf("%s is not %s", describe(more), b)
	}
	switch {
	case b.Deep:
		return s.parts(a, &Type{Kinds: b.Kinds, Item: b, First: b, Second: b, Rest: b, Unknown: true, Next: b}, deep)
	case a.Deep:
		return s.parts(&Type{Kinds: a.Kinds, Item: a, First: a, Second: a, Rest: a, Unknown: true, Next: a}, b, deep)
	}
	return s.parts(a, b, deep)
}

// named is what a type that is a name alone stands for.
func named(t *Type, names map[string]*Type) *Type {
	if t.Kinds == 0 && len(t.Vars) == 1 && !t.Dynamic && t.Name == "" {
		if of := names[t.Vars[0]]; of != nil {
			return of
		}
	}
	return t
}

func (s *subtyping) parts(a, b *Type, deep int) string {
	deep++
	in := func(where, why string) string {
		if why == "" {
			return ""
		}
		return where + ": " + why
	}
	if a.Kinds&prim.KindList != 0 {
		if why := s.within(a.Item.or(), b.Item.or(), deep); why != "" {
			return in("items", why)
		}
	}
	if a.Kinds&prim.KindPair != 0 {
		if why := s.within(a.First.or(), b.First.or(), deep); why != "" {
			return in("first", why)
		}
		if why := s.within(a.Second.or(), b.Second.or(), deep); why != "" {
			return in("second", why)
		}
	}
	if a.Kinds&prim.KindRecord != 0 {
		if why := s.records(a, b, deep); why != "" {
			return why
		}
	}
	if a.Kinds&prim.KindFunction != 0 {
		if why := s.functions(a, b, deep); why != "" {
			return why
		}
	}
	if a.Kinds&prim.KindQuoted != 0 && !b.Unknown && a.code() != b.code() {
		return "the code may be other code"
	}
	if a.Kinds&prim.KindContinuation != 0 {
		return in("next", s.within(a.Next.or(), b.Next.or(), deep))
	}
	return ""
}

// code is what is known of code, in the notation.
func (t *Type) code() string {
	only := Type{Kinds: prim.KindQuoted, Gives: t.Gives, Asks: t.Asks, Expects: t.Expects, Unknown: t.Unknown}
	return only.String()
}

func (s *subtyping) records(a, b *Type, deep int) string {
	named := map[string]bool{}
	for _, g := range b.Fields {
		named[g.Key] = true
		i := slices.IndexFunc(a.Fields, func(f Field) bool { return f.Key == g.Key })
		f := Field{Type: a.Rest, Optional: true}
		if i >= 0 {
			f = a.Fields[i]
		}
		if f.Optional && !g.Optional {
			return fmt.Sprintf("the key %q may be missing", g.Key)
		}
		if f.Type != nil {
			if why := s.within(f.Type, g.Type, deep); why != "" {
				return g.Key + ": " + why
			}
		}
	}
	for _, f := range a.Fields {
		if named[f.Key] {
			continue
		}
		if b.Rest == nil {
			return fmt.Sprintf("there may be a key %q", f.Key)
		}
		if why := s.within(f.Type, b.Rest, deep); why != "" {
			return f.Key + ": " + why
		}
	}
	switch {
	case a.Rest == nil:
		return ""
	case b.Rest == nil:
		return "there may be other keys"
	}
	return s.within(a.Rest, b.Rest, deep)
}

func (s *subtyping) functions(a, b *Type, deep int) string {
	// A parameter's names are the other side's.
	if s.back == nil {
		s.back = &subtyping{a: s.b, b: s.a, seen: map[[2]*Type]bool{}, back: s}
	}
	back := s.back
	back.work = s.work
	if why := back.within(b.Param.or(), a.Param.or(), deep); why != "" {
		return "parameter: " + why
	}
	s.work = back.work
	if why := s.within(a.Result.or(), b.Result.or(), deep); why != "" {
		return "result: " + why
	}
	if b.Effects.Open {
		return ""
	}
	for _, op := range a.Effects.Ops {
		if !b.Effects.has(op) {
			return "it can ask for " + op
		}
	}
	if a.Effects.Open {
		return "it can ask for anything"
	}
	return ""
}

// Widen returns the report with the input of a run that succeeded in the parameters'
// types: what was inferred otherwise is proven wrong by it. What doesn't fit is of any
// type, and the rest stays. Where all fits, or the input isn't one that [Read] reads,
// the report is as it was.
func (r *Report) Widen(input json.RawMessage) *Report {
	c, f := r.call(input, nil, false)
	if f != nil {
		return r
	}
	wide := *r
	if wide.Type = r.widened(r.Type, c.values); wide.Type != r.Type {
		wide.Typed, wide.wide = false, true
	}
	if r.Reads != nil {
		wide.Reads = r.widened(r.Reads, c.values)
	}
	if wide.Type == r.Type && wide.Reads == r.Reads {
		return r
	}
	return &wide
}

// widened is the type with the values in its parameters' types.
func (r *Report) widened(t *Type, values []read) *Type {
	params, gives := r.argumentsOf(t)
	if len(values) == len(params) {
		for i := range params {
			params[i].Type = params[i].Type.widen(json.RawMessage(values[i].Src))
		}
	}
	return t.arguments(params, gives)
}

// arguments is the type with other parameters and another result, itself where they
// are the same.
func (t *Type) arguments(params []Parameter, result *Type) *Type {
	switch {
	case len(params) == 0:
		return result
	case !t.IsFunction() || t.Name != "":
		return t // the type doesn't tell its parameters
	}
	rest := t.Result.or().arguments(params[1:], result)
	if params[0].Type == t.Param.or() && rest == t.Result.or() {
		return t
	}
	u := *t
	u.Param, u.Result = params[0].Type, rest
	return &u
}

// widen is the type, made to fit data.
func (t *Type) widen(raw json.RawMessage) *Type {
	if isOpen(t) || t.Kinds&^(prim.KindData&^prim.KindQuoted) != 0 {
		return t
	}
	u := t
	if given, ok := members(raw); ok && t.Kinds&prim.KindRecord != 0 {
		u = t.widenRecord(given)
	}
	var items []json.RawMessage
	if t.Kinds&prim.KindList != 0 && json.Unmarshal(raw, &items) == nil {
		item := t.Item.or()
		for _, i := range items {
			item = item.widen(i)
		}
		if item != t.Item.or() {
			list := *t
			list.Item = item
			u = &list
		}
	}
	if !Fits(raw, u) {
		return Any
	}
	return u
}

// widenRecord is widen for a record with the members.
func (t *Type) widenRecord(given []member) *Type {
	u := *t
	u.Fields = slices.Clone(t.Fields)
	changed, isAbsent := false, lacking(given)
	for i, f := range u.Fields {
		if isAbsent(f) {
			u.Fields[i].Optional, changed = true, true
		}
	}
	for _, m := range given {
		at, ok := slices.BinarySearchFunc(u.Fields, m.key, func(f Field, key string) int { return strings.Compare(f.Key, key) })
		of := &u.Rest
		if ok {
			of = &u.Fields[at].Type
		} else if u.Rest == nil {
			continue
		}
		if wide := (*of).widen(m.value); wide != *of {
			*of, changed = wide, true
		}
	}
	if !changed {
		return t
	}
	return &u
}

// Takes is [value.Tool.Takes] of a tool's code. What is known is worked out when it
// is first asked for, of the code alone: the tools that it calls may be others
// tomorrow, and a run has to be the same then.
func Takes(name string, t term.Term) func(param int, v value.Value) bool {
	params := sync.OnceValue(func() []Parameter {
		params, _ := Infer(t, nil, Env{Tool: name, OneKind: true}, Budget{Steps: takesSteps}).Arguments()
		return params
	})
	return func(param int, v value.Value) bool {
		all := params()
		return param >= len(all) || all[param].Type.Admits(v)
	}
}

// takesSteps is the budget of what is worked out while a program runs.
const takesSteps = 100_000

// Admits reports whether a value may be of the type: what isn't known of the type
// admits every value, and of large values only the first parts are looked at.
func (t *Type) Admits(v value.Value) bool {
	return (&admitting{parts: maxAdmitted}).value(t, v, 0)
}

// The bounds of what [Type.Admits] looks at.
const (
	maxAdmitted = 10_000 // parts
	deepest     = 1_000
)

type admitting struct {
	parts int              // that may still be looked at
	named map[string]*Type // what parts refer to by name
}

func (a *admitting) value(t *Type, v value.Value, depth int) bool {
	if a.parts--; a.parts < 0 || depth > deepest || t.Any || t.Dynamic {
		return true
	}
	if t.Name != "" {
		if a.named == nil {
			a.named = map[string]*Type{}
		}
		a.named[t.Name] = t
	}
	for _, name := range t.Vars {
		if of := a.named[name]; of == nil || a.value(of, v, depth+1) {
			return true
		}
	}
	v = value.Force(v)
	if !t.Kinds.Has(v) {
		return false
	}
	part := func(u *Type, v value.Value) bool {
		if t.Deep {
			u = t
		}
		return a.value(u.or(), v, depth+1)
	}
	switch v := v.(type) {
	case *value.Cons:
		for ok := true; ok && a.parts > 0; v, ok = value.Force(v.Tail).(*value.Cons) {
			if !part(t.Item, v.Head) {
				return false
			}
		}
	case *value.Pair:
		return part(t.First, v.First) && part(t.Second, v.Second)
	case *value.Record:
		return a.record(t, v, part)
	}
	return true
}

func (a *admitting) record(t *Type, r *value.Record, part func(*Type, value.Value) bool) bool {
	required := 0
	for _, f := range t.Fields {
		if !f.Optional {
			required++
		}
	}
	for _, f := range r.Fields {
		of := t.Rest
		if i, ok := slices.BinarySearchFunc(t.Fields, f.Key, func(f Field, key string) int { return strings.Compare(f.Key, key) }); ok {
			if of = t.Fields[i].Type; !t.Fields[i].Optional {
				required--
			}
		} else if of == nil && !t.Deep {
			return false
		}
		if !part(of, f.Value) {
			return false
		}
	}
	return required == 0
}
