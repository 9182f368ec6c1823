package check

import (
	"slices"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// A variable is what a term, a parameter or a part gives: the shapes that flow
// into it, its lower bounds. What flows in flows on, to other variables and to
// the watchers, which are its upper bounds.
type variable struct {
	id    int
	lower []*shape
	has   map[*shape]struct{} // lower, where that is long
	to    []*variable
	toHas map[*variable]struct{} // to, where that is long
	watch []watcher
	// fixed says that nothing flows in any more, so nothing need be kept.
	fixed bool
	// open is the unknown that a caller gives; sunk, escaped and lent, that all
	// that flows in goes where nothing is known of it, to the caller, or to a
	// function of the caller's.
	open                *seed
	sunk, escaped, lent bool
}

// A watcher is run for each shape that flows into a variable; where it has a test,
// for those that fit. accepts is the kinds that it has something to do with, to find
// what an unknown may be. run is nil where the test is all.
type watcher struct {
	accepts prim.Kinds
	test    *test
	run     func(*shape)
}

// A shape is a value's outermost part: its kind, and variables for the parts.
// Shapes of one kind and the same variables are one shape where programs could
// make them without end (see intern), and are told apart by their place
// otherwise.
type shape struct {
	id   int
	kind prim.Kinds // one; 0 for what is dynamic, unknown or an effect
	// dynamic is a value of which nothing is known, or, with data, that it is
	// data.
	dynamic, data bool
	// unknown is what a caller gives, before it is tested; seed, that the shape
	// is what it became.
	unknown, seed *seed

	item, first, second *variable // of a list, a pair
	length              length    // of a list
	record              *record
	param, result       *variable // of a function
	effects, raised     *variable
	code                *term.Quote // of quoted code; nil: not known
	foreign             bool        // it stands in another source
	node                bool        // a record that to_data made
	next                *variable   // of a continuation
	atom                *atom       // an effect, in variables of effects only
}

// A length is what a test has shown of a list.
type length uint8

const (
	anyLength length = iota
	empty
	filled // it has items
)

// A checker is the state of one check.
type checker struct {
	env      Env
	src      *term.Source
	limit    int
	places   int // of [Budget]
	steps    int
	over     bool // the budget is used up
	told     int  // the steps that spending was told of
	spending func(steps int) bool
	depth    int  // of the Go stack
	single   bool // every function has one type, for all its uses
	library  certainty
	nested   int // how many checks of quoted code this one is inside

	ids int
	// What there is much of is made many at a time: variables, shapes, tests, and
	// room for the first of what a variable has, which is mostly all.
	freeVars   []variable
	freeShapes []shape
	freeTests  []test
	freeUses   []use
	firstLower []*shape
	firstTo    []*variable
	firstWatch []watcher
	queue      []event
	pending    []*seed
	seeds      []*seed

	basic    map[prim.Kinds]*variable
	dynamic  *shape
	dynData  *shape
	empty    *shape // the empty list
	codeNode *shape // what to_data gives
	interned map[string]*shape
	atoms    map[string]*shape
	filters  map[filterKey][2]*variable
	compared map[compareKey]bool
	doubts   []doubt
	deeps    map[deepKey]bool

	tests    map[testKey]*test
	order    []*test // tests in the order of their making
	failures map[failureKey]*failure
	failed   []*failure
	unknowns map[unknownKey]*unknown
	found    []*unknown

	remarks  map[term.Term]*remark
	remarked []*remark

	branches []tested
	called   []*called

	nodes    map[term.Term]*variable
	expanded map[*term.Prim]term.Term
	// code is the term as given, and root the function that it may stand for.
	code, root term.Term
	main       *variable // what the program gives
	self       *variable
	effects    *variable // that the program has
	// lent is the effects that applying a function has of which nothing is known:
	// those of all functions that such a one, or such code, was given, and what
	// evals let code that isn't known ask for.
	lent   *variable
	raised *variable
}

// An event is a shape that is on its way to a variable, or to a watcher.
type event struct {
	v *variable
	w *watcher
	s *shape
}

func newChecker(t term.Term, src *term.Source, env Env, b Budget) *checker {
	c := &checker{
		env: env, src: src, limit: b.Steps, places: b.Places, code: t, root: t,
		basic: map[prim.Kinds]*variable{}, interned: map[string]*shape{}, atoms: map[string]*shape{},
		remarks: map[term.Term]*remark{},
		filters: map[filterKey][2]*variable{}, compared: map[compareKey]bool{}, deeps: map[deepKey]bool{},
		tests: map[testKey]*test{}, failures: map[failureKey]*failure{}, unknowns: map[unknownKey]*unknown{},
		expanded: map[*term.Prim]term.Term{},
	}
	if c.limit <= 0 {
		c.limit = DefaultSteps
	}
	if c.told = c.limit; b.Spend != nil {
		c.told, c.spending = 0, b.Spend
	}
	for _, k := range []prim.Kinds{prim.KindInt, prim.KindDec, prim.KindBool, prim.KindString, prim.KindUnit} {
		c.basic[k] = c.fixed(c.shape(k))
	}
	c.dynamic, c.dynData = c.shape(0), c.shape(0)
	c.dynamic.dynamic, c.dynData.dynamic, c.dynData.data = true, true, true
	c.empty = c.shape(prim.KindList)
	c.empty.item = c.fixed()
	c.main, c.self, c.effects, c.raised, c.lent = c.variable(), c.variable(), c.variable(), c.variable(), c.variable()
	return c
}

// first is an empty slice with room for one, of room for many.
func first[T any](room *[]T) []T {
	if len(*room) == 0 {
		*room = make([]T, slab)
	}
	s := (*room)[:0:1]
	*room = (*room)[1:]
	return s
}

// slab is how many are made at a time.
const slab = 64

func (c *checker) variable() *variable {
	c.ids++
	if len(c.freeVars) == 0 {
		c.freeVars = make([]variable, slab)
	}
	v := &c.freeVars[0]
	c.freeVars = c.freeVars[1:]
	v.id = c.ids
	return v
}

// fixed is a variable with the shapes and no more.
func (c *checker) fixed(shapes ...*shape) *variable {
	v := c.variable()
	v.lower, v.fixed = shapes, true
	return v
}

func (c *checker) shape(kind prim.Kinds) *shape {
	c.ids++
	if len(c.freeShapes) == 0 {
		c.freeShapes = make([]shape, slab/2)
	}
	s := &c.freeShapes[0]
	c.freeShapes = c.freeShapes[1:]
	s.id, s.kind = c.ids, kind
	return s
}

func (c *checker) listOf(item *variable) *shape {
	s := c.shape(prim.KindList)
	s.item = item
	return s
}

func (c *checker) pairOf(a, b *variable) *shape {
	s := c.shape(prim.KindPair)
	s.first, s.second = a, b
	return s
}

// spend takes a step of the budget, and says whether there was one.
func (c *checker) spend(n int) bool {
	if c.steps += n; c.steps > c.told && !c.tell() {
		c.over = true
		c.queue = nil
	}
	return !c.over
}

// portion is how many steps are told of at a time.
const portion = 64

// tell tells of steps beyond those that were told of; false: they are not there.
func (c *checker) tell() bool {
	for c.steps > c.told && c.steps <= c.limit {
		c.told = min(c.told+portion, c.limit)
		if !c.spending(portion) {
			c.limit = c.steps
			return false
		}
	}
	return c.steps <= c.limit
}

// add lets a shape flow into a variable.
func (c *checker) add(v *variable, s *shape) {
	if v.holds(s) || !c.spend(1) {
		return
	}
	if v.lower == nil {
		v.lower = first(&c.firstLower)
	}
	v.lower = append(v.lower, s)
	if v.has != nil {
		v.has[s] = struct{}{}
	} else if len(v.lower) > 12 {
		v.has = make(map[*shape]struct{}, 32)
		for _, l := range v.lower {
			v.has[l] = struct{}{}
		}
	}
	if s.unknown != nil {
		s.unknown.holders = append(s.unknown.holders, v)
	}
	for _, to := range v.to {
		c.queue = append(c.queue, event{v: to, s: s})
	}
	for i := range v.watch {
		c.queue = append(c.queue, event{w: &v.watch[i], s: s})
	}
}

func (v *variable) holds(s *shape) bool {
	if v.has != nil {
		_, ok := v.has[s]
		return ok
	}
	for _, l := range v.lower {
		if l == s {
			return true
		}
	}
	return false
}

// flow lets all of from flow into to.
func (c *checker) flow(from, to *variable) {
	if from == to || from == nil || to == nil || !c.spend(1) {
		return
	}
	if !from.fixed {
		if !c.leads(from, to) {
			return
		}
	}
	for _, s := range from.lower {
		c.add(to, s)
	}
}

// leads adds a variable that v flows to, and says whether it is a new one.
func (c *checker) leads(v, to *variable) bool {
	if v.toHas != nil {
		if _, ok := v.toHas[to]; ok {
			return false
		}
		v.toHas[to] = struct{}{}
	} else if slices.Contains(v.to, to) {
		return false
	}
	if v.to == nil {
		v.to = first(&c.firstTo)
	}
	v.to = append(v.to, to)
	if v.toHas == nil && len(v.to) > 24 {
		v.toHas = make(map[*variable]struct{}, 64)
		for _, t := range v.to {
			v.toHas[t] = struct{}{}
		}
	}
	return true
}

// watches runs f for each shape that flows into v, now or later.
func (c *checker) watches(v *variable, accepts prim.Kinds, f func(*shape)) {
	c.watch(v, watcher{accepts: accepts, run: f})
}

func (c *checker) watch(v *variable, w watcher) {
	if !c.spend(1) {
		return
	}
	if v.fixed {
		for _, s := range v.lower {
			c.queue = append(c.queue, event{w: &append(first(&c.firstWatch), w)[0], s: s})
		}
		return
	}
	if v.watch == nil {
		v.watch = first(&c.firstWatch)
	}
	v.watch = append(v.watch, w)
	for _, s := range v.lower {
		c.queue = append(c.queue, event{w: &v.watch[len(v.watch)-1], s: s})
	}
}

// runs lets a shape come to a watcher.
func (c *checker) runs(w *watcher, s *shape) {
	if (w.test == nil || c.fits(w.test, s, w.accepts)) && w.run != nil {
		w.run(s)
	}
}

// solve lets everything flow as far as it does, and what unknowns become with
// it.
func (c *checker) solve() {
	for !c.over {
		for head := 0; head < len(c.queue) && !c.over; head++ {
			e := c.queue[head]
			if e.v != nil {
				c.add(e.v, e.s)
			} else if c.spend(1) {
				c.runs(e.w, e.s)
			}
			if head > 1<<14 {
				c.queue = append(c.queue[:0], c.queue[head+1:]...)
				head = -1
			}
		}
		c.queue = c.queue[:0]
		if len(c.pending) == 0 {
			return
		}
		s := c.pending[0]
		c.pending = c.pending[1:]
		c.become(s)
	}
}
