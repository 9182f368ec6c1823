package check

import (
	"fmt"
	"slices"

	"github.com/mcp-pif/mcp-pif/core/prim"
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
