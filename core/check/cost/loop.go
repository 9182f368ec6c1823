package cost

import (
	"fmt"
	"maps"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/term"
)

// A loop is something that is done over and over: values that change from one
// round to the next are roots of their own, and what is known of a variable of
// theirs is worked out from what it is at first and what a round makes of it.
type loop struct {
	a *analyser
	// first is what a root is at first, and next what a round makes of it, one
	// for each way in which it goes on.
	first map[string]*aval
	next  map[string][]*aval
	// rounds is how often at most.
	rounds  size
	known   map[*variable]size
	solving map[*variable]bool
	// Of a recursion: how often at most what it works with goes on to what a call gives, or is
	// that; the root of what its calls give, and the number of each by its roots, negative of sums.
	events size
	result string
	call   map[string]int
	walk   *walk
	taken  map[string]bool // the roots of lists of which every call takes the tail of one
	// Of a list in it: the origin of the items, the spot of the one that a round is for, how
	// the list of a root was put together, and the sum of what each round has one of.
	origin, at string
	made       map[string]*gathered
	sums       map[string]string
}

func newLoop(a *analyser, rounds size) *loop {
	return &loop{a: a, first: map[string]*aval{}, next: map[string][]*aval{}, rounds: rounds, known: map[*variable]size{}, solving: map[*variable]bool{}}
}

// root makes a root that nothing else is called.
func (a *analyser) root() string {
	a.roots++
	return fmt.Sprintf("@%d", a.roots)
}

// maxLoopDepth is how long the paths may be that a loop is looked into: a value
// that takes itself apart has no bound for every depth.
const maxLoopDepth = 24

// solve returns the largest that a variable of the loop's roots gets.
func (l *loop) solve(v *variable) size {
	if s, ok := l.known[v]; ok {
		return s
	}
	root, rest := v.root, v.Path[len(v.root):]
	if n := l.call[root]; n != 0 {
		of := l.a.vars.variable(Var{Measure: v.Measure, Path: l.result + rest})
		if n > 0 || l.walk == nil {
			return l.solve(of)
		}
		return l.solveSum(v, of, rest)
	}
	if l.solving[v] || len(rest) > maxLoopDepth*4 || !l.a.spend() {
		return infinite
	}
	l.solving[v] = true
	s := infinite
	if v.Measure == Words {
		// A number that is not too large has no more words than that takes.
		of := func(m Measure) size {
			x := l.a.vars.variable(Var{Measure: m, Path: v.Path})
			if s := l.solve(x); !s.inf || len(l.solving) > 1 {
				return s
			}
			return l.together(x)
		}
		if abs := of(Int); !abs.inf {
			s = beyond(l.a.wordsOf(&aval{kind: isNumber, abs: abs, words: infinite, frac: of(frac)}))
		}
	}
	switch {
	case !s.inf:
	case l.walk != nil && root == l.walk.root && !l.walk.lists:
		s = l.deep(v, rest)
	case l.walk != nil && root == l.result:
		s = l.resulting(v, rest, false)
	case l.result != "" && root == l.result && v.Measure == Len && l.taken != nil:
		var ok bool
		if s, ok = l.held(rest); !ok {
			s = l.close(v, root, rest)
		}
	default:
		s = l.close(v, root, rest)
	}
	if s.inf && len(l.solving) == 1 {
		s = l.together(v)
	}
	delete(l.solving, v)
	l.known[v] = s
	return s
}

// close solves v ← max over the ways of a·v + b, from what it is at first.
func (l *loop) close(v *variable, root, rest string) size {
	start := l.a.measure(l.first[root], v.Measure, rest)
	if v.Measure == Words {
		start = beyond(start)
	}
	grows, raw := size{}, poly(nil)
	factor := uint64(1)
	for _, way := range l.next[root] {
		s := l.open(way, v.Measure, rest)
		if s.inf {
			return infinite
		}
		for _, p := range s.alts {
			g, b, ok := l.take(p, v)
			if !ok || b.inf {
				return infinite
			}
			switch {
			case g.f == 0:
				start = start.max(b)
			default:
				factor = max(factor, g.f)
				grows, raw = grows.max(b), raw.max(g.others)
			}
		}
	}
	switch {
	case len(grows.flat()) == 0:
	case l.origin != "":
		grows = l.gather(raw)
	default:
		grows = l.rounds.times(grows)
	}
	return l.rise(start, grows, factor)
}

// open returns the measure of what a round makes, with the loop's roots left as
// variables.
func (l *loop) open(way *aval, of Measure, rest string) size {
	l.a.vars.charge(len(l.first))
	var closed map[string]*loop
	for root := range l.first {
		if by := l.a.solved[root]; by != nil {
			if closed == nil {
				closed = map[string]*loop{}
			}
			closed[root] = by
			delete(l.a.solved, root)
		}
	}
	s := l.a.measure(way, of, rest)
	maps.Copy(l.a.solved, closed)
	if of == Words {
		return beyond(s)
	}
	return s
}

// A growth is how a variable v goes on: f·v and others. apart says that it is no more than what
// each of different calls gives once, sums that it is of a sum over calls.
type growth struct {
	f           uint64
	apart, sums bool
	others      poly
}

// take splits p into what depends on v and what doesn't; b is that with the other variables
// of the loop solved.
func (l *loop) take(p poly, v *variable) (g growth, b size, ok bool) {
	g.apart = true
	var calls map[int]uint64
	all, any := uint64(0), false
	for _, m := range p {
		has := false
		for _, x := range m.f {
			has = has || l.is(x.variable, v)
		}
		switch {
		case !has:
			g.others = append(g.others, m)
		case len(m.f) == 1 && m.f[0].pow == 1 && m.f[0].base == 0:
			if calls == nil {
				calls = map[int]uint64{}
			}
			n := l.call[m.f[0].root]
			any, g.sums = any || n == 0, g.sums || n < 0
			n = max(n, -n)
			calls[n] = sat(calls[n], m.c)
			all = sat(all, m.c)
			g.f = sat(g.f, whole(m.c))
			g.apart = g.apart && calls[n] <= unit
		default:
			return growth{}, size{}, false
		}
	}
	g.apart = g.apart && (!any || all <= unit)
	b, ok = l.replace(g.others)
	return g, b, ok && g.f < over
}

// is reports whether x is v, or v of what one of the calls gives.
func (l *loop) is(x, v *variable) bool {
	return x == v || v.root == l.result && l.call[x.root] != 0 && x.Measure == v.Measure && x.Log == v.Log && x.Path[len(x.root):] == v.Path[len(v.root):]
}

// replace puts what is known of the loop's variables in their places.
func (l *loop) replace(p poly) (size, bool) {
	sum, changing := p.partition(func(v *variable) bool {
		_, mine := l.first[v.root]
		return mine
	})
	for _, m := range changing {
		var mine []factor
		others := mono{c: m.c}
		for _, x := range m.f {
			if _, ok := l.first[x.root]; ok {
				mine = append(mine, x)
			} else {
				others.f = append(others.f, x)
			}
		}
		t := size{alts: []poly{{others}}}
		for _, x := range mine {
			s := x.of(l.solve(l.a.vars.variable(Var{Measure: x.Measure, Path: x.Path})))
			if s.inf {
				return infinite, false
			}
			for range max(x.pow, 1) {
				t = t.times(s)
			}
		}
		sum = sum.plus(t)
	}
	return sum, !sum.inf
}

// cost returns a cost with the loop's variables replaced.
func (l *loop) cost(c cost) (cost, bool) {
	steps, ok := l.replace(c.steps)
	memory, okM := l.replace(c.memory)
	base, okB := l.replace(c.base)
	r := cost{steps: steps.flat(), memory: memory.flat(), none: c.none || !ok || !okB, vast: c.vast || !okM, calls: c.calls, base: base.flat(), never: c.never}
	return r, ok && okB
}

// value returns v with the loop's variables replaced in its sizes. Paths of the
// loop's roots stay, and mean what the loop has worked out.
func (l *loop) value(v *aval) *aval {
	c := &closer{l: l, done: map[*aval]*aval{}, envs: map[*env]*env{}}
	return c.value(v)
}

type closer struct {
	l    *loop
	done map[*aval]*aval
	envs map[*env]*env
}

func (c *closer) size(s size) size {
	return s.each(func(p poly) size { q, _ := c.l.replace(p); return q })
}

func (c *closer) value(v *aval) *aval {
	if v == nil {
		return nil
	}
	if w, ok := c.done[v]; ok {
		return w
	}
	if !c.l.a.spend() {
		return top
	}
	if v.kind <= isInput || v.kind == isBool || v.kind == isUnit || v.kind == isCode {
		return v
	}
	w := *v
	w.mod, w.whole = [2]string{}, ""
	c.done[v] = &w
	w.abs, w.words, w.frac, w.n = c.size(v.abs), c.size(v.words), c.size(v.frac), c.size(v.n)
	if _, known := v.lin.constant(); !known {
		w.lin = nil
	}
	if v.tailOf != "" {
		if _, mine := c.l.first[rootOf(v.tailOf)]; mine {
			w.tailOf = ""
		}
	}
	w.item, w.a, w.b = c.value(v.item), c.value(v.a), c.value(v.b)
	if v.fields != nil {
		c.l.a.vars.charge(4 * len(v.fields))
		w.fields = make(map[string]*aval, len(v.fields))
		for _, k := range v.keys() {
			w.fields[k] = c.value(v.fields[k])
		}
	}
	w.alts, w.funcs = nil, nil
	for _, x := range v.alts {
		w.alts = append(w.alts, c.value(x))
	}
	for _, f := range v.funcs {
		g := *f
		g.env = c.env(f.env)
		if g.env == f.env {
			w.funcs = append(w.funcs, f)
		} else {
			w.funcs = append(w.funcs, &g)
		}
	}
	return &w
}

func (c *closer) env(e *env) *env {
	if e == nil {
		return nil
	}
	if f, ok := c.envs[e]; ok {
		return f
	}
	if !c.l.a.vars.charge(4) {
		return e
	}
	next, val := c.env(e.next), c.value(e.val)
	f := e
	if next != e.next || val != e.val {
		f = e.with(val, next)
	}
	c.envs[e] = f
	return f
}

// fold goes through a list.
func (a *analyser) fold(t *term.Prim, args []*aval, s scope) (*aval, cost) {
	f, init, l := args[0], args[1], args[2]
	if f == nothing || init == nothing || l == nothing {
		return nothing, cost{}
	}
	n, item := a.asList(l)
	if item == nothing {
		return init, cost{} // no list, or an empty one
	}
	if n.inf {
		return a.lost(t, "the list can be of any length")
	}
	acc, before := a.root(), a.calls()
	loop := newLoop(a, n)
	v, c := a.apply(t, f, &aval{kind: isPair, a: input(acc), b: loop.through(l, item)}, s)
	if a.abort != nil {
		return nothing, cost{}
	}
	loop.ties(before)
	loop.first[acc] = init
	loop.next[acc] = []*aval{v}
	each, ok := loop.cost(c)
	if !ok {
		return a.lost(t, "what is gathered grows too fast for a bound")
	}
	for root := range loop.first {
		a.solved[root] = loop
	}
	result := input(acc) // what the loop knows of it is solved
	if a.functional(v, 8) || a.functional(init, 8) {
		result = a.join(init, loop.value(v))
	} else if l := loop.collected(acc, init, v, item); l != nil {
		result = l
	}
	count := n.flat()
	if _, rest := count.split(); len(rest) > 0 {
		a.inexact = true
		if !each.none {
			a.tell(t, "goes through a list of up to "+a.show(count)+" items, with "+a.show(each.whole())+" steps for each", false)
		}
	} else if _, written := t.Args[2].(*term.List); !written || len(each.whole()) > 1 {
		a.inexact = true // how many items there are, or what each takes, may be less
	}
	for r := range each.calls {
		r.lost = true // it calls itself as often as a list has items
	}
	total := cost{steps: count.times(each.whole()), memory: count.times(each.memory.plus(number(16))), none: each.none, vast: each.vast, spots: loop.everyItem(c.spots)}
	if total.steps.over() || total.memory.over() {
		_, lost := a.lost(t, "the formula is too large to be told")
		return result, lost
	}
	return result, total
}

// functional reports whether a function may be in a value.
func (a *analyser) functional(v *aval, deep int) bool {
	if v == nil {
		return false
	}
	if deep == 0 || !a.vars.charge(2+len(v.fields)) || v.kind == isFunction {
		return true
	}
	for _, x := range v.alts {
		if a.functional(x, deep-1) {
			return true
		}
	}
	for _, k := range v.keys() {
		if a.functional(v.fields[k], deep-1) {
			return true
		}
	}
	return a.functional(v.item, deep-1) || a.functional(v.a, deep-1) || a.functional(v.b, deep-1)
}

// show returns a formula as a reader sees it.
func (a *analyser) show(p poly) string {
	if !a.vars.charge(8 * len(p)) {
		return "some"
	}
	s := Bound{p: canonical(p)}.String()
	if len(s) > 200 || strings.Contains(s, "@") {
		return "some"
	}
	return s
}

// maxTogether is how many variables that grow by one another are looked at.
const maxTogether = 12

// together solves variables of which each is made of others of them, as a and b in
// (a, b) ← (b, a + b): the largest of all grows as max ← a·max + b.
func (l *loop) together(v *variable) size {
	group := []*variable{v}
	in := map[*variable]bool{v: true}
	start, grows, factor := size{}, size{}, uint64(1)
	rounds := l.rounds
	for i := 0; i < len(group); i++ {
		x := group[i]
		rest := x.Path[len(x.root):]
		if len(group) > maxTogether || len(rest) > maxLoopDepth*4 || !l.a.spend() {
			return infinite
		}
		first := l.a.measure(l.first[x.root], x.Measure, rest)
		if x.Measure == Words {
			first = beyond(first)
		}
		start = start.max(first)
		if x.root == l.result { // what a call gives may be what the next one is given
			rounds = l.events
		}
		for _, way := range l.next[x.root] {
			s := l.open(way, x.Measure, rest)
			if s.inf {
				return infinite
			}
			for _, p := range s.alts {
				f, others := uint64(0), poly(nil)
				for _, m := range p {
					y, ok := l.member(m)
					if !ok {
						others = append(others, m)
						continue
					}
					if !in[y] {
						in[y] = true
						group = append(group, y)
					}
					if f += whole(m.c); f >= over {
						return infinite
					}
				}
				b, ok := l.replace(others)
				if !ok {
					return infinite
				}
				grows, factor = grows.max(b), max(factor, f)
			}
		}
	}
	if start.inf || rounds.inf {
		return infinite
	}
	most := start.plus(rounds.times(grows))
	if factor > 1 {
		p, ok := power(factor, rounds.flat())
		if !ok {
			return infinite
		}
		most = most.times(sizeOf(p))
	}
	for _, x := range group {
		if s, ok := l.known[x]; !ok || s.inf {
			l.known[x] = most
		}
	}
	return most
}

// member returns the variable of the loop that a product is a multiple of, where it
// is not known yet how large that gets.
func (l *loop) member(m mono) (*variable, bool) {
	if len(m.f) != 1 || m.f[0].pow != 1 || m.f[0].base != 0 || m.f[0].Log {
		return nil, false
	}
	x := m.f[0].variable
	if _, mine := l.first[x.root]; !mine || l.walk != nil && (x.root == l.walk.root && !l.walk.lists || l.call[x.root] < 0) {
		return nil, false
	}
	if l.call[x.root] != 0 {
		x = l.a.vars.variable(Var{Measure: x.Measure, Path: l.result + x.Path[len(x.root):]})
	}
	s, ok := l.known[x]
	return x, !ok || s.inf
}
