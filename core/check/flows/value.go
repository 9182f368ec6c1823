package flows

import (
	"maps"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/flow"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// An abs is what a value may be: any of what its parts tell of. nil is no value: the
// place isn't reached, or fails. It is immutable.
type abs struct {
	// own is the label of the outermost constructor at most, must what its data has at
	// least.
	own, must flow.Label
	// holds is what its parts have in their data, together and at least.
	holds flow.Label
	// cells is the label of a list's cells after the first.
	cells flow.Label
	// exact is set where it is surely a record, or a pair, of the parts that are known.
	exact bool
	// optional is set of a record's field that may be missing.
	optional bool
	// any is set where nothing is known of the parts but deep, their label.
	any  bool
	deep flow.Label
	// fields are those of a record, item is any of a list, first and second are the two of
	// a pair.
	fields              map[string]*abs
	item, first, second *abs
	// fns and codes are the functions and the quoted code that it may be or, with any,
	// hold.
	fns   []*closure
	codes []*term.Quote
	// text is what it is if it is always the same text.
	text *string
	from *step
}

// A closure is a function with the variables around it. One lambda has one: what it is
// ever given is added.
type closure struct {
	lam   *term.Lam
	env   *env
	ctx   *scope
	under where

	param, result *abs
	holds         flow.Label // of the variables around
	touched       flow.Label
	done, active  bool // in this pass
}

// A step is where a label comes from.
type step struct {
	Step
	next *step // what that was taken of
}

// maxSteps is how many steps are told, the last ones.
const maxSteps = 8

func (s *step) list() (steps []Step) {
	for ; s != nil && len(steps) < maxSteps; s = s.next {
		steps = append(steps, s.Step)
	}
	slices.Reverse(steps)
	return steps
}

// The bounds of what is kept apart.
const (
	maxDepth  = 8
	maxFields = 64
)

// all returns the label of a value with all its parts, at most.
func (v *abs) all() flow.Label {
	if v == nil {
		return 0
	}
	l := v.own | v.deep | v.cells | v.item.all() | v.first.all() | v.second.all()
	for _, f := range v.fields {
		l |= f.all()
	}
	for _, f := range v.fns {
		l |= f.holds
	}
	return l
}

// least returns the label of the data of a value with all its parts, at least.
func (v *abs) least() flow.Label {
	if v == nil {
		return 0
	}
	return v.must | v.inner()
}

// inner is [abs.least] of the parts alone.
func (v *abs) inner() flow.Label {
	if v == nil {
		return 0
	}
	l := v.holds
	if v.exact {
		l |= v.first.least() | v.second.least()
		for _, f := range v.fields {
			if !f.optional {
				l |= f.least()
			}
		}
	}
	return l
}

func (v *abs) via() *step {
	switch {
	case v == nil:
		return nil
	case v.from != nil && v.own|v.deep != 0:
		return v.from
	}
	for _, p := range []*abs{v.item, v.first, v.second} {
		if via := p.via(); via != nil {
			return via
		}
	}
	for _, k := range slices.Sorted(maps.Keys(v.fields)) {
		if via := v.fields[k].via(); via != nil {
			return via
		}
	}
	return nil
}

// raise returns the value with a label added to all of it.
func (v *abs) raise(l flow.Label) *abs {
	if v == nil || l&^v.own == 0 {
		return v
	}
	u := *v
	u.own |= l
	return &u
}

// sure returns the value with a label that its data surely has.
func (v *abs) sure(l flow.Label) *abs {
	if v == nil || l&^v.must == 0 {
		return v
	}
	u := *v
	u.must |= l
	return &u
}

// with returns the value with a label that the data of some of its parts surely has.
func (v *abs) with(l flow.Label) *abs {
	if l&^v.holds == 0 {
		return v
	}
	u := *v
	u.holds |= l
	return &u
}

// along returns the value as taken from a step.
func (v *abs) along(s Step, of *abs) *abs {
	if v == nil || v.own|v.deep == 0 {
		return v
	}
	u := *v
	u.from = &step{s, of.via()}
	if s.Name == "" || u.from.next == nil {
		u.from = v.via()
	}
	return &u
}

// flat is a value made of all that is in others.
func flat(vs ...*abs) *abs {
	u := &abs{any: true}
	for _, v := range vs {
		u.own |= v.all()
		u.must |= v.least()
		if u.from == nil {
			u.from = v.via()
		}
	}
	u.deep = u.own
	return u
}

// part returns what a part may be that is p, where it is known, or else something of v.
func (v *abs) part(p *abs) *abs {
	if v == nil {
		return nil
	}
	if v.any {
		p = join(p, &abs{own: v.deep, deep: v.deep, any: true, must: v.must, fns: v.fns, codes: v.codes, from: v.from})
	}
	p = p.raise(v.own).sure(v.must)
	if p != nil && p.optional {
		u := *p
		u.optional = false
		p = &u
	}
	return p
}

// field returns the part of a name: what is known of it if it is surely there.
func (v *abs) field(name string) (part *abs, sure bool) {
	f := v.fields[name]
	if f == nil || f.optional {
		return v.part(f), false
	}
	u := *v
	u.any = false
	return u.part(f), true
}

// at returns the part at a path.
func (v *abs) at(path []string) *abs {
	if v == nil || len(path) == 0 {
		return v
	}
	if path[0] == "[]" { // there may be no item, and it may be a name
		items := join(v.part(v.item), v.part(v.fields["[]"]))
		all := flatten(join(items, &abs{own: v.own | v.cells, must: v.must}).at(path[1:]))
		all.must, all.holds = v.must, 0
		return all
	}
	part, there := v.field(path[0])
	if !there {
		part = join(part, &abs{own: v.own, must: v.must}) // it may not be there
	}
	part = part.at(path[1:])
	for _, name := range slices.Sorted(maps.Keys(v.fields)) { // see flow.Shadow.Label
		if name != path[0] && strings.EqualFold(name, path[0]) {
			other, _ := v.field(name)
			part = join(part, other.at(path[1:]))
		}
	}
	return part
}

func join(v, u *abs) *abs { return joinTo(v, u, maxDepth) }

func joinTo(v, u *abs, depth int) *abs {
	switch {
	case v == u || u == nil:
		return v
	case v == nil:
		return u
	case depth == 0:
		return join1(flatten(v), flatten(u))
	}
	j := join1(v, u)
	j.item, j.first, j.second = joinTo(v.item, u.item, depth-1), joinTo(v.first, u.first, depth-1), joinTo(v.second, u.second, depth-1)
	if v.fields != nil || u.fields != nil {
		j.fields = make(map[string]*abs, len(v.fields)+len(u.fields))
		for k, f := range v.fields {
			if g, both := u.fields[k]; both {
				maybe := f.optional || g.optional
				f = joinTo(f, g, depth-1)
				if maybe {
					f = perhaps(f)
				}
			} else {
				f = perhaps(f)
			}
			j.fields[k] = f
		}
		for k, g := range u.fields {
			if _, both := v.fields[k]; !both {
				j.fields[k] = perhaps(g)
			}
		}
		if len(j.fields) > maxFields {
			return flatten(j)
		}
	}
	return j
}

// perhaps returns a field that may be missing.
func perhaps(f *abs) *abs {
	if f == nil || f.optional {
		return f
	}
	u := *f
	u.optional = true
	return &u
}

// join1 joins what is outermost.
func join1(v, u *abs) *abs {
	j := &abs{own: v.own | u.own, must: v.must & u.must, holds: v.inner() & u.inner(), any: v.any || u.any, deep: v.deep | u.deep, cells: v.cells | u.cells, optional: v.optional || u.optional, from: v.from}
	if j.from == nil || v.own|v.deep == 0 && u.own|u.deep != 0 {
		j.from = u.from
	}
	j.exact = v.exact && u.exact && (v.first == nil) == (u.first == nil)
	if v.text != nil && u.text != nil && *v.text == *u.text {
		j.text = v.text
	}
	j.fns = union(v.fns, u.fns)
	j.codes = union(v.codes, u.codes)
	return j
}

func union[T comparable](a, b []T) []T {
	all := a[:len(a):len(a)]
	for _, x := range b {
		if !slices.Contains(a, x) {
			all = append(all, x)
		}
	}
	return all
}

// flatten returns the value of which nothing is known of the parts but their label.
func flatten(v *abs) *abs {
	u := &abs{own: v.own, must: v.must, holds: v.inner(), any: true, deep: v.all(), cells: v.cells, optional: v.optional, from: v.via()}
	v.inside(func(p *abs) {
		u.fns, u.codes = union(u.fns, p.fns), union(u.codes, p.codes)
	})
	return u
}

func (v *abs) inside(visit func(*abs)) {
	if v == nil {
		return
	}
	visit(v)
	v.item.inside(visit)
	v.first.inside(visit)
	v.second.inside(visit)
	for _, f := range v.fields {
		f.inside(visit)
	}
}

// same reports whether two values tell the same, where they come from apart.
func same(v, u *abs) bool {
	if v == u {
		return true
	}
	if v == nil || u == nil || v.own != u.own || v.must != u.must || v.holds != u.holds || v.any != u.any || v.deep != u.deep || len(v.fns) != len(u.fns) || len(v.codes) != len(u.codes) ||
		(v.text == nil) != (u.text == nil) || v.optional != u.optional || v.exact != u.exact || v.cells != u.cells || len(v.fields) != len(u.fields) || (v.fields == nil) != (u.fields == nil) ||
		!same(v.item, u.item) || !same(v.first, u.first) || !same(v.second, u.second) {
		return false
	}
	for k, f := range v.fields {
		if g, ok := u.fields[k]; !ok || !same(f, g) {
			return false
		}
	}
	return true
}
