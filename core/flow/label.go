package flow

import (
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/value"
)

// A Label is two sets of sources, of which there are at most [MaxAtoms]: in the low
// half those that a value was made of, its data, and in the high half those that
// decided that it is this value and no other, its control. Joining labels is OR.
type Label uint64

// MaxAtoms is how many sources there are at most.
const MaxAtoms = 32

// Both masks the two halves, Data the first one.
const (
	Data Label = 1<<MaxAtoms - 1
	Both Label = 1<<(2*MaxAtoms) - 1
)

// Atom returns the label of what was made of source i.
func Atom(i int) Label { return 1 << i }

// Control returns what deciding by a value labelled l means for what is decided.
func (l Label) Control() Label { return l&^Data | l<<MaxAtoms }

// Atoms returns the set of sources in either half, as the data of a label.
func (l Label) Atoms() Label { return l&Data | l>>MaxAtoms }

// Counted returns the label of a number that was made of a list's structure: what
// decided the structure is what the number was made of.
func (l Label) Counted() Label { return l | l>>MaxAtoms }

// A Shadow says where the parts of a value come from. It has the value's shape as
// far as its parts differ: items and the rest of a list, the two of a pair, the
// values of a record in the order of its keys, the input of a continuation. Shadows
// are immutable and share parts as values do.
type Shadow struct {
	// own is the label of the outermost constructor, which counts for everything
	// below it; deep is that of all of it. Without kids all parts have own.
	own, deep Label
	kids      []*Shadow
}

// Whole returns the shadow of a value of which all has one label.
func Whole(l Label) *Shadow { return leaf(l) }

// Own returns the label of the value without its parts: of a list that there is an
// item or none, of a record its keys.
func (s *Shadow) Own() Label { return s.own }

// All returns the label of the value with all its parts.
func (s *Shadow) All() Label { return s.deep }

// Bytes returns what it takes, about.
func (s *Shadow) Bytes() (n int64) {
	for _, kid := range s.kids {
		n += kid.Bytes()
	}
	return n + shadowBytes
}

// Raise returns the shadow with a label added to all of it.
func (s *Shadow) Raise(l Label) *Shadow {
	if l&^s.own == 0 {
		return s
	}
	l |= s.own
	if s.deep&^l == 0 {
		return leaf(l)
	}
	return &Shadow{l, s.deep | l, s.kids}
}

// Join returns the shadow of a value that has both shadows.
func (s *Shadow) Join(o *Shadow) *Shadow {
	switch {
	case s.kids == nil:
		return o.Raise(s.own).closure(s)
	case o.kids == nil:
		return s.Raise(o.own).closure(o)
	}
	kids := make([]*Shadow, max(len(s.kids), len(o.kids)))
	for i := range kids {
		kids[i] = s.kid(i).Join(o.kid(i))
	}
	return node(s.own|o.own, kids...)
}

// closure adds what a function holds, of which only deep tells.
func (s *Shadow) closure(of *Shadow) *Shadow {
	if of.deep&^s.deep == 0 {
		return s
	}
	return &Shadow{s.own, s.deep | of.deep, s.kids}
}

// Label returns the label of a part of v, whose shadow s is: path is names of fields,
// with "[]" for each item of a list, such as attachments, [], url; empty, it is all of v.
// Names are met in any case, since there are those who read them so. Of a part that isn't
// there it is what decided that.
func (s *Shadow) Label(v value.Value, path []string) Label {
	if len(path) == 0 {
		return s.deep
	}
	v = peek(v)
	if r, ok := v.(*value.Record); ok && path[0] != "[]" {
		l := s.own
		for i, f := range r.Fields {
			if strings.EqualFold(f.Key, path[0]) {
				l |= s.kid(i).Label(f.Value, path[1:])
			}
		}
		return l
	}
	if path[0] == "[]" {
		l := s.own
		c, ok := v.(*value.Cons)
		for ; ok; c, ok = v.(*value.Cons) {
			l |= s.kid(0).Label(c.Head, path[1:])
			v, s = peek(c.Tail), s.kid(1)
			l |= s.own
		}
		if _, ok := v.(value.Nil); ok {
			return l
		}
		return l | s.deep
	}
	return s.deep // nothing that has such a part: all of it is what was given there
}

// Mark returns the shadow of v with another label where it has some: what of gives for the way there from the outside,
// of so many fields and lists at most, such as "attachments[].url".
func (s *Shadow) Mark(v value.Value, depth int, of func(path string) Label) *Shadow {
	return s.mark(v, depth, "", of)
}

func (s *Shadow) mark(v value.Value, depth int, path string, of func(path string) Label) *Shadow {
	if s.deep == 0 {
		return leaf(0)
	}
	if v != nil {
		v = peek(v)
	}
	var own Label
	if s.own != 0 {
		own = of(path)
	}
	switch x := v.(type) {
	case *value.Record:
		if depth == 0 {
			break
		}
		kids := make([]*Shadow, len(x.Fields))
		for i, f := range x.Fields {
			kids[i] = s.kid(i).mark(f.Value, depth-1, strings.TrimPrefix(path+"."+f.Key, "."), of)
		}
		return node(own, kids...)
	case *value.Cons:
		if depth == 0 {
			break
		}
		var items []*Shadow
		for c, ok := v.(*value.Cons); ok; c, ok = peek(c.Tail).(*value.Cons) {
			items = append(items, s.kid(0).mark(c.Head, depth-1, path+"[]", of))
			s = s.kid(1)
		}
		return listOf(items, own)
	}
	return leaf(of(path))
}

// few is how many sources have preallocated shadows.
const few = 6

// leaves are the shadows of parts that all have one label of the first few sources.
var leaves = func() (all [1 << (2 * few)]Shadow) {
	for i := range all {
		l := Label(i&(1<<few-1)) | Label(i>>few)<<MaxAtoms
		all[i] = Shadow{own: l, deep: l}
	}
	return all
}()

func leaf(l Label) *Shadow {
	const low = Label(1<<few-1) | Label(1<<few-1)<<MaxAtoms
	if l&^low == 0 {
		return &leaves[l&(1<<few-1)|l>>MaxAtoms<<few]
	}
	return &Shadow{own: l, deep: l}
}

// two returns the shadow of a value of two parts.
func two(own Label, a, b *Shadow) *Shadow {
	deep := own | a.deep | b.deep
	if deep == own {
		return leaf(own)
	}
	n := &struct {
		Shadow
		kids [2]*Shadow
	}{Shadow{own: own, deep: deep}, [2]*Shadow{a, b}}
	n.Shadow.kids = n.kids[:]
	return &n.Shadow
}

// node returns the shadow of a value of these parts, which it keeps.
func node(own Label, kids ...*Shadow) *Shadow {
	deep := own
	for _, k := range kids {
		deep |= k.deep
	}
	if deep == own {
		return leaf(own)
	}
	return &Shadow{own, deep, kids}
}

// kid returns the shadow of part i.
func (s *Shadow) kid(i int) *Shadow {
	if i >= len(s.kids) {
		if s.own == s.deep {
			return s
		}
		return leaf(s.own | s.deep)
	}
	return s.kids[i].Raise(s.own)
}

// listOf returns the shadow of a list whose cells have the label own, and then one of
// the rest.
func listOf(items []*Shadow, own Label) *Shadow {
	s := leaf(own)
	for _, it := range slices.Backward(items) {
		s = two(own, it, s)
	}
	return s
}

// spine returns the shadows of a list's items, the first n, and the label of their
// cells: of all of the list, and that it ends, for n of -1.
func spine(v value.Value, s *Shadow, n int) (items []*Shadow, l Label) {
	l = s.own
	for c, ok := v.(*value.Cons); ok && n != 0; c, ok = c.Tail.(*value.Cons) {
		items = append(items, s.kid(0))
		if n--; n != 0 {
			s = s.kid(1)
			l |= s.own
		}
	}
	return items, l
}

// cells returns the label of all cells of a list.
func cells(v value.Value, s *Shadow) Label {
	l := s.own
	for c, ok := v.(*value.Cons); ok && len(s.kids) > 0; c, ok = c.Tail.(*value.Cons) {
		s = s.kid(1)
		l |= s.own
	}
	return l
}

// field finds where a record has a key.
func field(r *value.Record, key string) (int, bool) {
	return slices.BinarySearchFunc(r.Fields, key, func(f value.Field, k string) int { return strings.Compare(f.Key, k) })
}

// fit returns a shadow of the value's shape: parts of s that are of another shape have
// the label of all of it. It is for shadows and values that come from different hands.
func (s *Shadow) fit(v value.Value) *Shadow {
	if len(s.kids) == 0 {
		return s
	}
	switch x := peek(v).(type) {
	case *value.Cons:
		// A list may be long, so that its rest is no call of its own.
		var kids []*Shadow
		var owns []Label
		var rest value.Value = x
		for c, ok := rest.(*value.Cons); ok && len(s.kids) == 2; c, ok = rest.(*value.Cons) {
			kids, owns = append(kids, s.kids[0].fit(c.Head)), append(owns, s.own)
			rest, s = c.Tail, s.kids[1]
		}
		if len(s.kids) > 0 {
			s = leaf(s.deep)
		}
		for i, k := range slices.Backward(kids) {
			s = two(owns[i], k, s)
		}
		return s
	case *value.Pair:
		if len(s.kids) == 2 {
			return two(s.own, s.kids[0].fit(x.First), s.kids[1].fit(x.Second))
		}
	case *value.Record:
		if len(s.kids) == len(x.Fields) {
			kids := make([]*Shadow, len(s.kids))
			for i, k := range s.kids {
				kids[i] = k.fit(x.Fields[i].Value)
			}
			return node(s.own, kids...)
		}
	case *value.Continuation:
		if len(s.kids) == 1 {
			return node(s.own, s.kids[0].fit(x.Input))
		}
	}
	return leaf(s.deep)
}

// peek returns the outermost part of a value, but leaves a hole as it is.
func peek(v value.Value) value.Value {
	if HoleOf(v) != nil {
		return v
	}
	return value.Force(v)
}
