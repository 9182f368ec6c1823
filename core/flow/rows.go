package flow

import (
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A rule is how a row keeps the labels of its operands' parts apart. A row without one
// gives what has the labels of all parts of all operands.
type rule struct {
	// tests is what decides whether the row fails besides the operands' own labels.
	tests func(args []value.Value, s []*Shadow) Label
	// of gives the shadow of v, which the row made of args.
	of func(args []value.Value, s []*Shadow, v value.Value) *Shadow
}

// counts is the rows of the library that give how many items, or where one is.
var counts = map[term.ID]bool{id("count"): true, id("find_index"): true}

// indexing is the rows that walk a list here and take one step, since the machine's lists are arrays.
var indexing = map[term.ID]bool{nthID: true, id("at"): true}

var nthID = id("nth")

// rules has the rules by their rows.
var rules = func() []*rule {
	all := make([]*rule, len(prim.Table))
	for name, r := range map[string]*rule{
		"cons": {of: parts}, "pair": {of: parts},
		"head": {of: part(0)}, "tail": {of: part(1)}, "fst": {of: part(0)}, "snd": {of: part(1)},
		"equal":   {of: equal, tests: compared},
		"isEmpty": {of: outermost}, "type_of": {of: outermost}, "has": {of: outermost}, "keys": {of: outermost},
		"length":   {of: length},
		"index_of": {of: position}, "last_index_of": {of: position},
		"get": {of: get}, "put": {of: put}, "del": {of: del}, "merge": {of: merge},
		"values": {of: values}, "entries": {of: entries}, "from_entries": {of: fromEntries, tests: entryCells},
		"nth": {of: nth, tests: allCells}, "at": {of: at, tests: allCells}, "slice": {of: slice},
		"push": {of: push}, "set_nth": {of: setNth, tests: allCells},
	} {
		all[id(name)] = r
	}
	return all
}()

func id(name string) term.ID {
	id, _, ok := prim.Lookup(name)
	if !ok {
		panic("flow: no row named " + name)
	}
	return id
}

// Counts reports whether a row of the library gives how many items there are, or where
// one is.
func Counts(of term.ID) bool { return counts[of] }

func parts(_ []value.Value, s []*Shadow, _ value.Value) *Shadow { return two(0, s[0], s[1]) }

func part(i int) func([]value.Value, []*Shadow, value.Value) *Shadow {
	return func(_ []value.Value, s []*Shadow, _ value.Value) *Shadow { return s[0].kid(i) }
}

// outermost is for what is told by the constructors of the operands alone.
func outermost(_ []value.Value, s []*Shadow, _ value.Value) *Shadow { return leaf(owns(s)) }

func owns(s []*Shadow) (l Label) {
	for _, x := range s {
		l |= x.own
	}
	return l
}

// allCells is for a row that fails for how many items a list has, or what they are.
func allCells(a []value.Value, s []*Shadow) (l Label) {
	for i := range a {
		l |= cells(a[i], s[i])
	}
	return l
}

// compared returns what a comparison looks at: of something without parts and another
// value no more than that value's constructor.
func compared(a []value.Value, s []*Shadow) Label {
	if isAtom(a[0]) || isAtom(a[1]) {
		return owns(s)
	}
	return s[0].deep | s[1].deep
}

func isAtom(v value.Value) bool {
	switch v.(type) {
	case value.Int, value.Dec, value.Bool, value.Str, value.Unit, value.Nil:
		return true
	}
	return false
}

func equal(a []value.Value, s []*Shadow, _ value.Value) *Shadow { return leaf(compared(a, s)) }

func length(a []value.Value, s []*Shadow, _ value.Value) *Shadow {
	if a[0].Type() == value.TypeString {
		return leaf(s[0].own)
	}
	return leaf(cells(a[0], s[0]).Counted())
}

func position(a []value.Value, s []*Shadow, _ value.Value) *Shadow {
	l := s[0].deep | s[1].deep
	if a[0].Type() == value.TypeList {
		l |= cells(a[0], s[0]).Counted()
	}
	return leaf(l)
}

func get(a []value.Value, s []*Shadow, _ value.Value) *Shadow {
	l := s[0].own | s[1].own
	if i, ok := field(a[0].(*value.Record), string(a[1].(value.Str))); ok {
		return s[0].kid(i).Raise(l)
	}
	return s[2].Raise(l)
}

// fields returns the shadow of a record.
func fields(v value.Value, own Label, of func(key string) *Shadow) *Shadow {
	r := v.(*value.Record)
	kids := make([]*Shadow, len(r.Fields))
	for i, f := range r.Fields {
		kids[i] = of(f.Key)
	}
	return node(own, kids...)
}

// under returns the shadow of a record's field.
func under(v value.Value, s *Shadow, key string) *Shadow {
	i, _ := field(v.(*value.Record), key)
	return s.kid(i)
}

func put(a []value.Value, s []*Shadow, v value.Value) *Shadow {
	key := string(a[1].(value.Str))
	return fields(v, s[0].own|s[1].own, func(k string) *Shadow {
		if k == key {
			return s[2]
		}
		return under(a[0], s[0], k)
	})
}

func del(a []value.Value, s []*Shadow, v value.Value) *Shadow {
	return fields(v, owns(s), func(k string) *Shadow { return under(a[0], s[0], k) })
}

func merge(a []value.Value, s []*Shadow, v value.Value) *Shadow {
	return fields(v, owns(s), func(k string) *Shadow {
		if i, ok := field(a[1].(*value.Record), k); ok {
			return s[1].kid(i)
		}
		return under(a[0], s[0], k)
	})
}

func values(a []value.Value, s []*Shadow, _ value.Value) *Shadow {
	items := make([]*Shadow, len(a[0].(*value.Record).Fields))
	for i := range items {
		items[i] = s[0].kid(i)
	}
	return listOf(items, s[0].own)
}

func entries(a []value.Value, s []*Shadow, _ value.Value) *Shadow {
	items := make([]*Shadow, len(a[0].(*value.Record).Fields))
	for i := range items {
		items[i] = two(s[0].own, leaf(s[0].own), s[0].kid(i))
	}
	return listOf(items, s[0].own)
}

// fromEntries: which keys there are is told by cells, pairs and keys.
func fromEntries(a []value.Value, s []*Shadow, v value.Value) *Shadow {
	items, _ := spine(a[0], s[0], -1)
	last := map[string]*Shadow{}
	i := 0
	for c, ok := a[0].(*value.Cons); ok; c, ok = c.Tail.(*value.Cons) {
		if item, ok := c.Head.(*value.Cons); ok {
			last[string(item.Head.(value.Str))] = items[i].kid(1).kid(0)
		} else {
			last[string(c.Head.(*value.Pair).First.(value.Str))] = items[i].kid(1)
		}
		i++
	}
	return fields(v, entryCells(a, s), func(k string) *Shadow { return last[k] })
}

func entryCells(a []value.Value, s []*Shadow) Label {
	items, l := spine(a[0], s[0], -1)
	i := 0
	for c, ok := a[0].(*value.Cons); ok; c, ok = c.Tail.(*value.Cons) {
		l |= cells(c.Head, items[i]) | items[i].kid(0).own
		i++
	}
	return l
}

func nth(a []value.Value, s []*Shadow, _ value.Value) *Shadow {
	n, _ := a[1].(value.Int).Int64()
	return item(s[0], int(n)).Raise(s[1].own)
}

// item returns the shadow of an item, which cells up to its own decide.
func item(s *Shadow, n int) *Shadow {
	for range n {
		s = s.kid(1)
	}
	return s.kid(0)
}

// at is get, nth or slice; an index from the end is decided by all cells.
func at(a []value.Value, s []*Shadow, v value.Value) *Shadow {
	if a[0].Type() == value.TypeRecord {
		return get(a, s, v)
	}
	if a[0].Type() == value.TypeString {
		return leaf(owns(s))
	}
	if a[0].Type() == value.TypePair {
		i, _ := prim.Index(a[1], 2)
		return s[0].kid(i).Raise(s[1].own)
	}
	if len(a) == 2 {
		if n, _ := a[1].(value.Int).Int64(); n >= 0 {
			return nth(a, s, v)
		}
	}
	items, l := spine(a[0], s[0], -1)
	if len(a) == 2 {
		n, _ := prim.Index(a[1], len(items))
		return items[n].Raise(l | s[1].own)
	}
	from, to := prim.Bounds(a[1], a[2], len(items))
	return listOf(items[from:to], l|s[1].own|s[2].own)
}

// slice looks at no more of a list than it gives.
func slice(a []value.Value, s []*Shadow, _ value.Value) *Shadow {
	if a[0].Type() == value.TypeString {
		return leaf(owns(s))
	}
	from, to := prim.Bounds(a[1], a[2], maxItems)
	items, l := spine(a[0], s[0], to)
	return listOf(items[min(from, len(items)):], l|s[1].own|s[2].own)
}

// maxItems is more items than a list can have.
const maxItems = 1 << 40

func push(a []value.Value, s []*Shadow, _ value.Value) *Shadow {
	items, l := spine(a[0], s[0], -1)
	return listOf(append(items, s[1]), l)
}

func setNth(a []value.Value, s []*Shadow, _ value.Value) *Shadow {
	items, l := spine(a[0], s[0], -1)
	n, _ := a[1].(value.Int).Int64()
	items[n] = s[2]
	return listOf(items, l|s[1].own)
}
