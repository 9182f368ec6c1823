package cost

import (
	"maps"
	"math/big"

	"github.com/mcp-pif/mcp-pif/core/term"
)

var zero = new(big.Int)

// apply returns what applying a function takes and gives, besides the step of the
// application.
func (a *analyser) apply(t term.Term, f, x *aval, s scope) (*aval, cost) {
	if f == nothing || x == nothing || a.abort != nil {
		return nothing, cost{}
	}
	r, total := nothing, cost{}
	for i, v := range f.variants() {
		switch v.kind {
		case isFunction:
			for j, c := range v.funcs {
				y, d := a.call(t, c, x, s)
				r = a.join(r, y)
				if i+j > 0 && !d.whole().equal(total.whole()) {
					a.inexact = true
				}
				total = total.max(d)
			}
		case isInput, isTop, isWithin:
			_, c := a.lost(t, "the function that is applied isn't known before the run")
			return top, total.max(c)
		}
	}
	return r, total
}

// A recursion is a function that is being applied. Where it calls itself, it is
// looked at again with what changes from call to call as roots.
type recursion struct {
	lam *term.Lam
	// open is set once it is known that it calls itself.
	open  bool
	state map[int]string // the roots of variables, by their place in the chain
	calls []selfCall
	// result is the root of what a call of itself gives.
	result string
	lost   bool
	apart  bool // it calls itself with other variables around it
	seen   *env // the variables of the call that was found
}

// A selfCall is the variables and the conditions of a call of a function by
// itself.
type selfCall struct {
	env   *env
	facts []fact
	// The roots of what it gives, and of the sum of that over the calls of one round.
	result, sum string
}

// call applies a known function.
func (a *analyser) call(t term.Term, c *closure, x *aval, s scope) (*aval, cost) {
	inner := &env{name: c.lam.Param, val: x, next: c.env}
	in := scope{env: inner, tool: c.tool, evals: c.evals, facts: s.facts}
	frame := cost{memory: number(8 * a.size(c.lam))}
	if _, ok := c.lam.Body.(*term.Lam); ok {
		v, d := a.eval(c.lam.Body, in)
		return v, d.plus(frame)
	}
	for i := len(a.active) - 1; i >= 0; i-- {
		r := a.active[i]
		if r.lam != c.lam {
			continue
		}
		if !r.open {
			r.seen = inner
			a.abort = r
			return nothing, cost{}
		}
		call := selfCall{inner, s.facts, a.root(), a.root()}
		r.calls = append(r.calls, call)
		a.results[call.result] = r.result
		return input(call.result), cost{calls: map[*recursion]uint64{r: 1}, never: true, spots: a.spots(r, inner)}
	}
	r := &recursion{lam: c.lam}
	a.vars.charge(len(a.active) / 32)
	a.active = append(a.active, r)
	why, inexact := len(a.why), a.inexact
	v, d := a.eval(c.lam.Body, in)
	a.active = a.active[:len(a.active)-1]
	if a.abort != r {
		return v, d.plus(frame)
	}
	a.abort = nil
	a.why, a.inexact = a.why[:why], inexact
	v, d = a.recursive(t, r, inner, in)
	return v, d.plus(frame)
}

// chain returns a chain of variables from the innermost, and nth the value of one of
// it.
func (a *analyser) chain(e *env) []*env {
	n := 0
	for f := e; f != nil; f = f.next {
		n++
	}
	a.vars.charge(n)
	all := make([]*env, 0, n)
	for ; e != nil; e = e.next {
		all = append(all, e)
	}
	return all
}

func (a *analyser) nth(e *env, place int) *aval {
	a.vars.charge(1 + place/16)
	for range place {
		e = e.next
	}
	return e.val
}

// maxTries is how often a recursion is looked at anew with more that changes.
const maxTries = 8

// recursive looks at a function that calls itself: what changes from call to
// call is a root each.
func (a *analyser) recursive(t term.Term, r *recursion, inner *env, in scope) (*aval, cost) {
	first := a.chain(inner)
	r.state = map[int]string{}
	last := a.chain(r.seen)
	for range maxTries {
		if len(last) != len(first) {
			return a.lost(t, "it calls itself with other variables around it")
		}
		for i := range first {
			x, y := first[i].val, last[i].val
			if _, known := r.state[i]; !known && (x != y && !same(x, y) || x != nil && x.kind == isWithin) { // that may be a part of it
				r.state[i] = a.root()
				a.states[r.state[i]] = true
			}
		}
		v, c, again := a.attempt(r, first, in)
		if a.abort != nil {
			return nothing, cost{}
		}
		if again == nil || a.vars.left < 0 {
			return a.solveRecursion(t, r, first, v, c, in)
		}
		last = again
	}
	return a.lost(t, "too much changes from call to call")
}

// same reports whether two functions are one.
func same(v, w *aval) bool {
	return v.kind == isFunction && w.kind == isFunction && len(v.funcs) == 1 && len(w.funcs) == 1 &&
		v.funcs[0].lam == w.funcs[0].lam && v.funcs[0].env == w.funcs[0].env
}

// attempt evaluates the body with the state as roots. again is the variables
// of a call in which more changes.
func (a *analyser) attempt(r *recursion, first []*env, in scope) (v *aval, c cost, again []*env) {
	r.open, r.calls, r.lost, r.apart = true, nil, false, false
	r.result = a.root()
	a.results[r.result] = r.result
	why := len(a.why)
	v, c, e := a.round(r, first, in, -1, nil)
	if a.abort != nil {
		return v, c, nil
	}
	here := a.chain(e)
	for _, call := range r.calls {
		next := a.chain(call.env)
		if len(next) != len(here) {
			r.apart = true
			continue
		}
		for i := range here {
			if _, changes := r.state[i]; !changes && next[i].val != here[i].val && !same(next[i].val, here[i].val) {
				a.why = a.why[:why]
				return v, c, next
			}
		}
	}
	return v, c, nil
}

// round evaluates the body with the state as roots, but for one place with a value.
func (a *analyser) round(r *recursion, first []*env, in scope, place int, at *aval) (v *aval, c cost, e *env) {
	a.vars.charge(len(first))
	for i := len(first) - 1; i >= 0; i-- {
		val := first[i].val
		if root, ok := r.state[i]; ok {
			val = input(root)
		}
		if i == place {
			val = at
		}
		// What didn't change keeps its place, so that functions made outside
		// are the same ones.
		if e == first[i].next && val == first[i].val {
			e = first[i]
		} else {
			e = first[i].with(val, e)
		}
	}
	a.active = append(a.active, r)
	in.env, in.facts = e, nil
	v, c = a.eval(r.lam.Body, in)
	a.active = a.active[:len(a.active)-1]
	return v, c, e
}

// solveRecursion works out how often a function calls itself, how its variables
// grow, and what it takes in all.
func (a *analyser) solveRecursion(t term.Term, r *recursion, first []*env, v *aval, c cost, in scope) (*aval, cost) {
	calls := c.calls[r]
	a.inexact = true
	var depth size
	ok := false
	if !r.apart {
		depth, ok = a.levels(r, first)
		if r.lost || !ok || calls > 1 {
			w := a.walks(r, first, c, in)
			if w == nil {
				w = a.divides(r, first, c)
			}
			if w != nil {
				return a.walkThrough(t, r, first, v, c, w)
			}
		}
	}
	if r.lost || r.apart {
		return a.lost(t, "it calls itself as often as something else says")
	}
	if !ok {
		return a.lost(t, "calls itself, and nothing was found that every call makes smaller, down to a limit that <, <=, > or >= tests (== 0 never stops a negative number)")
	}
	l := a.loopOf(r, first, depth)
	l.gives(r, v)
	if calls == 1 {
		l.taken = a.takenOf(r)
	}
	l.events = depth.plus(depth).plus(exactly(2))
	if calls > 1 {
		l.events = infinite
		if p, ok := power(calls, depth.plus(exactly(1)).flat()); ok {
			l.events = sizeOf(p.times(number(2)))
		}
	}
	own := c
	own.calls, own.base, own.never = maps.Clone(c.calls), c.endingSteps(), false
	spots := r.others(c.spots)
	delete(own.calls, r)
	each, ok := l.cost(own)
	if !ok {
		return a.lost(t, "what it works with grows too fast for a bound")
	}
	for root := range l.first {
		a.solved[root] = l
	}
	count := depth.plus(exactly(1))
	var steps poly
	if calls == 0 {
		steps, count = each.steps, exactly(1)
	} else if calls > 1 {
		p, ok := power(calls, count.flat())
		if !ok {
			return a.lost(t, "it calls itself more often than can be told")
		}
		count = sizeOf(p)
		steps = p.times(each.steps.max(each.base))
	} else {
		// Every call but the last one goes on.
		steps = depth.flat().times(each.steps).plus(each.base)
		if len(own.calls) > 0 {
			steps = count.flat().times(each.steps.max(each.base))
		}
	}
	n := count.flat()
	if !each.none {
		a.tell(t, "calls itself, in all up to "+a.show(n)+" times, with "+a.show(each.steps)+" steps for each", false)
	}
	total := cost{steps: steps, memory: n.times(each.memory.plus(number(8 * a.size(r.lam)))), none: each.none || count.inf, vast: each.vast, spots: spots}
	for other := range own.calls {
		other.lost = true
	}
	if total.steps.over() || total.memory.over() {
		_, lost := a.lost(t, "the formula is too large to be told")
		return top, lost
	}
	result := input(r.result)
	if a.functional(v, 8) {
		result = l.value(v)
	}
	return result, total
}

// loopOf is the loop of what changes from call to call.
func (a *analyser) loopOf(r *recursion, first []*env, rounds size) *loop {
	l := newLoop(a, rounds)
	for i, root := range r.state {
		l.first[root] = first[i].val
		for _, call := range r.calls {
			l.next[root] = append(l.next[root], a.nth(call.env, i))
		}
	}
	return l
}

// countdown returns how often a number can be taken from, or added to, before the
// condition of the call doesn't hold any more.
func (a *analyser) countdown(r *recursion, first []*env, call selfCall, root string, down bool, start *aval) (size, bool) {
	a.vars.charge(len(call.facts) / 8)
	for _, f := range call.facts {
		if f.whole || f.path != root || f.least != down {
			continue
		}
		n := start.abs.plus(exactly(1))
		if f.other == nil {
			switch {
			case down && f.bound > 0:
				n = start.abs
			case down:
				n = n.plus(exactly(uint64(-f.bound)))
			case f.bound > 0:
				n = n.plus(exactly(uint64(f.bound)))
			}
			return n, true
		}
		if limit, ok := a.steady(r, first, f.other); ok {
			return n.plus(limit).plus(exactly(uint64(max(f.bound, -f.bound)))), true
		}
	}
	return infinite, false
}

// steady returns the magnitude of a limit that is the same in every call.
func (a *analyser) steady(r *recursion, first []*env, v *aval) (size, bool) {
	if v.abs.inf {
		return infinite, false
	}
	l := a.loopOf(r, first, infinite)
	for _, p := range v.abs.alts {
		for _, m := range p {
			for _, f := range m.f {
				of := f.root
				if a.results[of] == r.result {
					return infinite, false
				}
				for i, root := range r.state {
					if root != of {
						continue
					}
					for _, c := range r.calls {
						if x := a.nth(c.env, i); x.kind != isInput || x.path != root {
							return infinite, false
						}
					}
				}
			}
		}
	}
	s := v.abs.each(func(p poly) size { q, _ := l.replace(p); return q })
	return s, !s.inf
}
