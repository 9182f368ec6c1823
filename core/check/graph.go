package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// A called is a call of a tool whose code is known, the tool itself too. Each of inputs is
// what one typing of it gives the first parameters; one without any may be given what isn't
// known.
type called struct {
	t      term.Term
	code   term.Term
	what   string // is called
	hint   string
	inputs [][]*variable
}

// calls notes what a call gives the parameters of a tool.
func (c *checker) calls(t *term.Prim, name string, callee Callee, inputs ...*variable) {
	if c.env.Code == nil || c.library != elsewhere {
		return
	}
	code, ok := c.env.Code(name)
	if !ok {
		return
	}
	c.gives(called{
		t: t, code: code, what: fmt.Sprintf("the tool %q", name),
		hint: fmt.Sprintf("Give it what its type takes: %s.", callee.Type),
	}, inputs)
}

// callsSelf notes what the tool gives its own parameters.
func (c *checker) callsSelf(t term.Term, inputs []*variable) {
	if c.env.Code == nil || c.library != elsewhere || c.nested > 0 || c.env.Tool == "" {
		return
	}
	c.gives(called{t: t, code: c.code, what: "self", hint: "Give self what the tool takes."}, inputs)
}

func (c *checker) gives(x called, inputs []*variable) {
	i := slices.IndexFunc(c.called, func(y *called) bool { return y.t == x.t })
	if i < 0 {
		i = len(c.called)
		c.called = append(c.called, &x)
	}
	c.called[i].inputs = append(c.called[i].inputs, inputs)
}

// judgeCalls finds the calls that fail in the tool, whatever isn't known of their
// inputs: its code is typed with them, as that of a row of the prelude is.
func (c *checker) judgeCalls() {
	left := c.limit
	for _, x := range c.called {
		var f *failure
		for _, inputs := range x.inputs {
			k, given := newChecker(x.code, nil, Env{Tool: "tool"}, Budget{Steps: left}), []*variable(nil)
			for _, in := range inputs {
				given = append(given, k.copied(in, map[*variable]*variable{}))
			}
			f = k.failing(given)
			if left = max(1, left-k.steps); f == nil {
				break
			}
		}
		if f == nil {
			continue
		}
		c.failsAt(x.t.Pos(), &fault.Fault{
			Kind: f.f.Kind, Message: fmt.Sprintf("%s fails on these inputs: %s", x.what, f.f.Message), Expected: f.f.Expected, Got: f.f.Got, Hint: x.hint,
		})
	}
}

// judgeConflicts finds the parameters of the program that fail of whatever kind they
// are: the places that do so are reached by values that passed those before.
func (c *checker) judgeConflicts() {
	left := c.limit
	t := c.root
	for a, ok := t.(*term.App); ok; a, ok = t.(*term.App) {
		l, ok := a.Func.(*term.Lam)
		if !ok {
			return
		}
		t = l.Body
	}
	var params []string
	for l, ok := t.(*term.Lam); ok; l, ok = l.Body.(*term.Lam) {
		params = append(params, l.Param)
	}
	for i, name := range params[:min(len(params), maxConflicts)] {
		var last *failure
		for _, kind := range unknownKinds {
			k := newChecker(c.code, nil, Env{Tool: c.env.Tool}, Budget{Steps: left})
			given := slices.Repeat([]*variable{k.fixed(k.dynamic)}, len(params))
			given[i] = k.fixed(k.someOf(kind, k.dynamic))
			f := k.failing(given)
			if left = max(1, left-k.steps); f == nil {
				last = nil
				break
			}
			if last == nil || f.pos > last.pos {
				last = f
			}
		}
		if last != nil && !slices.ContainsFunc(c.failed, func(f *failure) bool { return f.pos == last.pos }) {
			f := *last.f
			f.Message = fmt.Sprintf("no value of %q fits each of its uses: %s", name, f.Message)
			f.Hint = `Use it as one kind of value, or ask first which it is: {"if":{"cond":{"equal":[{"type_of":X},"string"]},"then":A,"else":B}}.`
			if _, _, is := prim.Lookup(name); is && strings.HasPrefix(last.f.Message, "app ") && c.src != nil && c.src.Form == term.PIF {
				f.Hint = fmt.Sprintf("%s is the variable here; ::%[1]s is the operation.", name)
			}
			c.failsAt(last.pos, &f)
		}
	}
}

// maxConflicts is how many parameters are looked at for conflicts.
const maxConflicts = 8

// failing is the first failure that a new checker's code, applied to what it is given,
// can't but come to; nil: none, or nothing is given.
func (c *checker) failing(given []*variable) *failure {
	c.library = certain
	t, e, ctx := term.AsFunction(c.code), env{}, context{effects: c.effects, raised: c.raised, tool: true}
	for rest := given; len(rest) > 0; {
		l, ok := t.(*term.Lam)
		if a, let := t.(*term.App); let {
			if l, ok = a.Func.(*term.Lam); ok {
				e, t = e.bind(c.let(l.Param, a.Arg, e, ctx)), l.Body
				continue
			}
		}
		if !ok {
			return nil
		}
		e, t, rest = e.bind(&binding{name: l.Param, path: c.path(), v: rest[0]}), l.Body, rest[1:]
	}
	c.infer(t, e, ctx)
	c.library = possible // what is typed while it flows may be anywhere
	c.solve()
	if c.over || len(given) == 0 {
		return nil
	}
	c.judge()
	if len(c.failed) == 0 {
		return nil
	}
	return slices.MinFunc(c.failed, func(a, b *failure) int { return a.pos - b.pos })
}

// copied is what flows into a variable of another checker, so far. What isn't known,
// or is a caller's, is dynamic.
func (c *checker) copied(v *variable, seen map[*variable]*variable) *variable {
	w, ok := seen[v]
	if v == nil || ok {
		return w
	}
	w = c.variable()
	seen[v] = w
	for _, s := range v.lower {
		to := c.dynamic
		if basic, ok := c.basic[s.kind]; ok {
			to = basic.lower[0]
		}
		switch {
		case s.seed != nil || s.unknown != nil || s.dynamic:
			to = c.dynamic
		case s.kind == prim.KindList:
			to = c.listOf(c.copied(s.item, seen))
		case s.kind == prim.KindPair:
			to = c.pairOf(c.copied(s.first, seen), c.copied(s.second, seen))
		case s.kind == prim.KindRecord && s.record.row == nil:
			r := &record{fields: slices.Clone(s.record.fields), rest: c.copied(s.record.rest, seen)}
			for i := range r.fields {
				r.fields[i].v = c.copied(r.fields[i].v, seen)
			}
			to = c.intern(r)
		}
		c.add(w, to)
	}
	return w
}

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
	// loops says that it is a parameter of a function that names itself.
	loops bool
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
	last    prim.Kinds // those of accepts that an unknown becomes only where it can't become others
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
	unsaid        *unknown // the dynamic place that a demand of it makes
	// unknown is what a caller gives, before it is tested; seed, that the shape
	// is what it became.
	unknown, seed *seed
	letter        bool // what is computed with the seed, a character

	item, first, second *variable   // of a list, a pair
	length              length      // of a list
	base                *shape      // of one of which a test has shown that: what it was before
	items               []*variable // of a list that is written out, each by itself
	from                int         // of a caller's list, the place of its first item in that
	record              *record
	param, result       *variable // of a function
	effects, raised     *variable
	code                *term.Quote // of quoted code; nil: not known
	foreign             bool        // it stands in another source
	node                bool        // a record that to_data made
	group               bool        // a string that the one group of a pattern fits
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
	usedRow  *term.Prim         // of a row of the prelude, in the program's own code, whose code is typed; nil: none
	loops    map[*term.Lam]bool // functions that name themselves, and those they give
	nested   int                // how many checks of quoted code this one is inside

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
	byPlace    bool                    // each place of a caller's list has an unknown of its own
	tuples     map[int]prim.Kinds      // the paths of lists that a caller gives as tuples, with what all items of each may be
	params     map[*variable]*term.Lam // whose parameters they are, where paths are asked for
	paths      map[partKey]int         // their numbers
	oneKind    *checker                // the same where no list is a tuple; nil: none is
	final      bool                    // it knows which lists are tuples, also of tools that are called
	differs    bool                    // a tool is called of which the check without tuples knows another type
	took       int                     // steps of checks beside this one

	basic    map[prim.Kinds]*variable
	dynamic  *shape
	anything *shape // an item of a tuple
	quotient *shape // a decimal of ratio, which an integer may stand for
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
	decimals map[*term.Prim]bool // divisions of what is a decimal
	oneGroup *shape              // a string that the one group of a pattern fits
	tested   *variable           // the operand of the last type_of

	branches []tested
	called   []*called

	nodes    map[term.Term]*variable
	open     map[*term.Prim]*opened // operators that are read by the types of their operands
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
		remarks: map[term.Term]*remark{}, decimals: map[*term.Prim]bool{},
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
	c.quotient = c.shape(prim.KindDec)
	c.dynamic, c.dynData, c.anything = c.shape(0), c.shape(0), c.shape(0)
	c.dynamic.dynamic, c.dynData.dynamic, c.anything.dynamic, c.dynData.data = true, true, true, true
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
		s.unknown.holders = append(s.unknown.holders, holder{v, s == s.unknown.rest})
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
	return slices.Contains(v.lower, s)
}

// flow lets all of from flow into to.
func (c *checker) flow(from, to *variable) {
	if from == to || from == nil || to == nil || !c.spend(1) {
		return
	}
	if !from.fixed && !c.leads(from, to) {
		return
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
			if e := c.queue[head]; e.v != nil {
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
