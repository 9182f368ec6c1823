package check

import (
	"maps"
	"slices"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// A taking is what a program takes, by places that are written in its code, of a list
// that a caller gives. A type has one type for all items of a list, but of a row,
// ["ann", "oslo", 3], the program takes items of several kinds. Such lists are tuples: their
// items may be anything. They are found by typing the program a second time, with an
// unknown for each place; nothing else comes of that.
type taking struct {
	by     map[*term.Prim]bool // the operations that take it
	places map[int]*variable   // items, from the end where the place is negative
	rests  map[int]*shape      // lists of the items from a place on, which isn't 0
}

// place is the item at a place, which t takes of a list that a caller gives.
func (c *checker) place(s *shape, i int, t *term.Prim) *variable {
	x := c.takes(s, t)
	if i >= 0 {
		i += s.from
	}
	v, ok := x.places[i]
	if !ok {
		if v = s.item; c.byPlace {
			v = c.partOf(s.seed)
		}
		x.places[i] = v
	}
	return v
}

// rest is the list of the items from a place on, which t takes of a list that a caller gives.
func (c *checker) rest(s *shape, i int, t *term.Prim) *shape {
	x := c.takes(s, t)
	if i += s.from; i > maxItems {
		return s
	}
	r, ok := x.rests[i]
	if !ok {
		if r = s; c.byPlace {
			r = c.listOf(c.partOf(s.seed))
			r.seed, r.from, r.item.open.mixed = s.seed, i, true
		}
		x.rests[i] = r
	}
	return r
}

// takes notes that t takes something of a list that a caller gives, and whose items, if it is
// a tuple, may be anything.
func (c *checker) takes(s *shape, t *term.Prim) *taking {
	x := s.seed.taking
	if x == nil {
		x = &taking{map[*term.Prim]bool{}, map[int]*variable{}, map[int]*shape{}}
		s.seed.taking = x
	}
	x.by[t] = true
	if item := s.item.open; c.tuples[t] && !item.tuple {
		item.tuple, item.conflict, item.pending = true, true, true
		c.unknown(t, ReasonConflict, "tuple", "the items of a list that is given are used as values of several kinds; whether each is of the kind that is used at its place is tested when it runs")
		c.add(s.item, c.anything)
	}
	return x
}

// findTuples returns the operations that take something of a tuple, nil where there are none or the
// budget is too small to find them, and the steps that it took.
func (c *checker) findTuples() (by map[*term.Prim]bool, steps int) {
	several := func(s *seed) bool { return s.taking != nil && (len(s.taking.places) > 1 || len(s.taking.rests) > 0) }
	if c.env.OneKind || c.over || c.steps > c.limit/8 || !slices.ContainsFunc(c.seeds, several) {
		return nil, 0
	}
	k := newChecker(c.code, nil, c.env, Budget{Steps: c.limit / 4})
	k.byPlace = true
	k.typeProgram(false)
	for _, s := range k.seeds {
		if !k.over && s.isTuple() {
			if by == nil {
				by = map[*term.Prim]bool{}
			}
			maps.Copy(by, s.taking.by)
		}
	}
	return by, k.steps
}

// isTuple reports whether what is taken of a list by places is of several kinds. What is
// demanded of all items from a place on is demanded of those that are taken there.
func (s *seed) isTuple() bool {
	if s.taking == nil {
		return false
	}
	lists, found := map[int]prim.Kinds{}, map[prim.Kinds]bool{}
	for _, m := range s.made {
		if m.kind == prim.KindList {
			lists[0] = m.item.open.means()
		}
	}
	places, last := map[int]prim.Kinds{}, 0
	for i, v := range s.taking.places {
		places[i], last = v.open.means(), max(last, i)
	}
	for from, r := range s.taking.rests {
		if lists[from] = r.item.open.means(); from <= last && s.taking.places[from-1] == nil {
			places[from-1] = 0 // the _ of [_, n]
		}
	}
	for _, k := range lists {
		if k != 0 {
			found[k] = true
		}
	}
	for i, k := range places {
		for from, all := range lists {
			if k == 0 && (from <= i || i < 0) {
				k = all
			}
		}
		found[k] = true
	}
	return len(found) > 1
}

// means is the kinds that an unknown is meant to be of, numbers being one and null none; 0: nothing tells.
func (s *seed) means() (kinds prim.Kinds) {
	switch {
	case !s.known():
		kinds = s.wanted()
	case !s.conflict && s.fits():
		for _, m := range s.alive() {
			kinds |= m.kind
		}
	}
	if kinds&prim.KindNumber != 0 {
		kinds |= prim.KindNumber
	}
	if kinds&prim.KindData == prim.KindData {
		return 0
	}
	return kinds &^ prim.KindUnit
}

// ofTuple reports whether an unknown is an item of a tuple, or a part of one.
func (s *seed) ofTuple() bool { return s.tuple || s.parent != nil && s.parent.ofTuple() }

// mayDiffer reports whether what comes of an unknown may be of a kind that one of its uses excludes.
func (s *seed) mayDiffer() bool { return s.conflict || s.ofTuple() }
