package check

import (
	"cmp"
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
	places map[int]*variable // items, from the end where the place is negative
	rests  map[int]*shape    // lists of the items from a place on, which isn't 0
}

// A partKey is a part of what a caller gives, in the part that it is of.
type partKey struct {
	of   int       // the number of that; 0: it is what is given for the parameter of lam
	lam  *term.Lam // nil: part is of another
	part string
}

// pathOf numbers where a part of what a caller gives stands in that, the same in all checks that
// number with paths; 0: in what isn't given to the program's own code.
func (c *checker) pathOf(s *seed) int {
	if s.path == 0 {
		x := partKey{lam: c.params[s.v], part: s.part}
		if s.parent != nil {
			x.of = c.pathOf(s.parent)
		}
		if x.of == 0 && x.lam == nil {
			return 0
		}
		if c.paths[x] == 0 {
			c.paths[x] = len(c.paths) + 1
		}
		s.path = c.paths[x]
	}
	return s.path
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
			v = c.partOf(s.seed, anItem)
		}
		x.places[i] = v
	}
	return v
}

// rest is the list of the items from a place on, which t takes of a list that a caller gives.
func (c *checker) rest(s *shape, i int, t *term.Prim) *shape {
	x := c.takes(s, t)
	if i > maxItems-s.from {
		return s
	}
	i += s.from
	r, ok := x.rests[i]
	if !ok {
		if r = s; c.byPlace {
			r = c.listOf(c.partOf(s.seed, anItem))
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
		x = &taking{map[int]*variable{}, map[int]*shape{}}
		s.seed.taking = x
	}
	if item := s.item.open; len(c.tuples) > 0 && !item.tuple {
		if whole, ok := c.tuples[c.pathOf(s.seed)]; ok {
			item.tuple, item.whole, item.conflict, item.pending = true, whole, true, true
			c.unknown(t, ReasonConflict, "tuple", "the items of a list that is given are used as values of several kinds; whether each is of the kind that is used at its place is tested when it runs")
			c.add(s.item, c.anything)
		}
	}
	return x
}

// findTuples returns the lists that are tuples, nil where neither there are any, as far as the
// budget tells, nor any in what a tool takes that is called.
func (c *checker) findTuples() (tuples map[int]prim.Kinds) {
	several := func(s *seed) bool { return s.taking != nil && (len(s.taking.places) > 1 || len(s.taking.rests) > 0) }
	if c.differs && !c.over {
		tuples = map[int]prim.Kinds{}
	}
	if c.env.OneKind || c.over || c.steps > c.limit/2 || !slices.ContainsFunc(c.seeds, several) {
		return tuples
	}
	k := newChecker(c.code, nil, c.env, Budget{Steps: c.limit})
	k.root, k.params, k.paths, k.byPlace, k.final = c.root, map[*variable]*term.Lam{}, map[partKey]int{}, true, true
	k.typeProgram(false)
	k.decide()
	c.took, c.paths = k.steps, k.paths
	if k.over {
		return tuples
	}
	for _, s := range k.seeds {
		if s.isTuple() && k.pathOf(s) != 0 {
			if tuples == nil {
				tuples = map[int]prim.Kinds{}
			}
			whole := prim.KindAny
			for _, m := range s.made {
				if m.kind == prim.KindList {
					whole = m.item.open.deep
				}
			}
			tuples[k.pathOf(s)] |= whole
		}
	}
	return tuples
}

// likens notes that two places of one list are compared: they are meant to be of one kind.
func likens(a, b *shape) {
	x, y := cmp.Or(a.unknown, a.seed), cmp.Or(b.unknown, b.seed)
	if x == nil || y == nil || x == y || a.letter || b.letter || x.parent == nil || x.parent != y.parent || x.part != anItem {
		return
	}
	for _, of := range [][2]*seed{{x, y}, {y, x}} {
		if of[0].like == nil {
			of[0].like = map[*seed]bool{}
		}
		of[0].like[of[1]] = true
	}
}

// isTuple reports whether what is taken of a list by places is of several kinds. What is
// demanded of all items from a place on is demanded of those that are taken there.
func (s *seed) isTuple() bool {
	if s.taking == nil {
		return false
	}
	lists, found, kinds := map[int]prim.Kinds{}, map[prim.Kinds]bool{}, map[*seed]prim.Kinds{}
	for _, m := range s.made {
		if m.kind == prim.KindList {
			lists[0] = m.item.open.means()
			kinds[m.item.open] = lists[0]
		}
	}
	last := 0
	for i := range s.taking.places {
		last = max(last, i)
	}
	for from, r := range s.taking.rests {
		lists[from] = r.item.open.means()
		kinds[r.item.open] = lists[from]
	}
	for _, k := range lists {
		if k != 0 {
			found[k] = true
		}
	}
	among := func(i int, k prim.Kinds) prim.Kinds {
		for from, all := range lists {
			if k == 0 && (from <= i || i < 0) {
				k = all
			}
		}
		return k
	}
	for i, v := range s.taking.places {
		kinds[v.open] = among(i, v.open.means())
	}
	var told []*seed
	for of, k := range kinds {
		if k != 0 {
			told = append(told, of)
		}
	}
	for ; len(told) > 0; told = told[1:] {
		for other := range told[0].like {
			if k, ok := kinds[other]; ok && k == 0 {
				kinds[other] = kinds[told[0]]
				told = append(told, other)
			}
		}
	}
	for _, v := range s.taking.places {
		found[kinds[v.open]] = true
	}
	for from := range s.taking.rests {
		if from <= last && s.taking.places[from-1] == nil {
			found[among(from-1, 0)] = true // the _ of [_, n]
		}
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
