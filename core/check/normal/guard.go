package normal

import (
	"slices"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A row that fails for nothing but its operands' kinds is two things: a test of
// them, which is done where the row stands, and a computation, which may be done
// anywhere or not at all. Tests that nothing comes between may change places, since
// they fail alike. A test by itself is written as a row that makes it and of which
// nothing is used; a test beside a row that makes it anyway isn't written.

// testableKinds returns the kinds that there is a test for.
func testableKinds(k prim.Kinds) bool {
	switch k {
	case prim.KindNumber, prim.KindInt, prim.KindString, prim.KindBool, prim.KindList, prim.KindList | prim.KindString, prim.KindRecord:
		return true
	}
	return false
}

// splits reports whether a row can be left as tests of its operands and a computation.
func (n *normaliser) splits(id term.ID, args []val, b *block) bool {
	if !prim.Get(id).Total && !dividesSafely(id, args, b) {
		return false
	}
	r := prim.Get(id)
	for i, a := range args {
		k := r.Params[i].Kinds
		if b.kinds(a)&^k == 0 {
			continue
		}
		if _, ok := a.(*atom); !ok || !testableKinds(k) {
			return false
		}
	}
	return true
}

// dividesSafely reports whether a row is a division by a literal that isn't 0, of what
// is an integer if it fits.
func dividesSafely(id term.ID, args []val, b *block) bool {
	if id != prim.Mod && (id != prim.Div || b.kinds(args[0]) != prim.KindInt) {
		return false
	}
	k, ok := integer(args[1])
	return ok && k.Big().Sign() != 0
}

// guard leaves a test of what v is, where that isn't known.
func (n *normaliser) guard(v val, k prim.Kinds, b *block) bool {
	a, ok := v.(*atom)
	if !ok || b.kinds(a)&^k == 0 {
		return true
	}
	c := &comp{what: aGuard, guard: k, args: []val{a}, result: &atom{kinds: prim.KindUnit}}
	if _, ok := n.leave(b, c); !ok {
		return false
	}
	b.learn(a, fact{kinds: k})
	return true
}

// guard writes the term of a test by itself.
func (w *writer) guard(k prim.Kinds, a term.Term) term.Term {
	switch k {
	case prim.KindNumber:
		return &term.Prim{ID: prim.Lt, Args: []term.Term{a, literal(value.NewInt(0))}}
	case prim.KindInt:
		return &term.Prim{ID: prim.Mod, Args: []term.Term{a, literal(value.NewInt(1))}}
	case prim.KindString:
		return &term.Prim{ID: prim.Concat, Args: []term.Term{a, &term.Str{}}}
	case prim.KindBool:
		return &term.Prim{ID: prim.Not, Args: []term.Term{a}}
	case prim.KindList:
		return &term.Prim{ID: prim.IsEmpty, Args: []term.Term{a}}
	case prim.KindRecord:
		return &term.Prim{ID: idKeys, Args: []term.Term{a}}
	}
	return &term.Prim{ID: prim.Length, Args: []term.Term{a}}
}

// A test is of an atom.
type test struct {
	of    *atom
	kinds prim.Kinds
}

// guards places the tests of a block and of those inside it.
func (w *writer) guards(b *block) {
	for _, c := range b.comps {
		for _, s := range c.blocks {
			w.guards(s)
		}
		for _, a := range c.args {
			w.bodies(a, w.guards)
		}
	}
	if !b.dead {
		w.bodies(b.result, w.guards)
	}
	for i := 0; i < len(b.comps); i++ {
		if b.comps[i].what != aGuard || b.comps[i].placed {
			continue
		}
		end := i + 1
		for end < len(b.comps) && (b.comps[end].total || b.comps[end].what == aGuard) {
			end++
		}
		var next *comp
		if end < len(b.comps) {
			next = b.comps[end]
		}
		// What comes next makes tests itself.
		var made []test
		switch {
		case next != nil:
			made = makes(next)
			if len(next.args) > 0 {
				made = tails(made, next.args[len(next.args)-1])
			}
		case !b.dead:
			made = tails(nil, b.result)
		}
		run := w.place(b.comps[i:end], made)
		b.comps = append(b.comps[:i:i], append(run, b.comps[end:]...)...)
		i += len(run) - 1
	}
}

// tails returns the test that making a value makes after all else: what items are
// put before is a list.
func tails(all []test, v val) []test {
	for {
		c, ok := v.(*cons)
		if !ok {
			return all
		}
		if a, ok := c.tail.(*atom); ok {
			return append(all, test{a, prim.KindList})
		}
		v = c.tail
	}
}

// maxPlaced is how long a run may be that is put into order.
const maxPlaced = 300

// place orders tests and what only computes between them. made is the tests that are
// made right after them.
func (w *writer) place(run []*comp, made []test) []*comp {
	if len(run) > maxPlaced {
		for _, c := range run {
			c.placed = true
		}
		return run
	}
	var tests []test
	var rest []*comp
	for _, c := range run {
		if c.what != aGuard {
			rest = append(rest, c)
			continue
		}
		tests = append(tests, test{c.args[0].(*atom), c.guard})
		w.countVal(c.args[0], -1)
	}
	// Of two tests of one value the narrower is enough.
	all := tests
	tests = nil
	for i, t := range all {
		if !slices.ContainsFunc(all[:i], func(u test) bool { return u == t }) &&
			!slices.ContainsFunc(all, func(u test) bool { return u.of == t.of && u.kinds != t.kinds && u.kinds&^t.kinds == 0 }) {
			tests = append(tests, t)
		}
	}
	// Of a decimal, arithmetic may fail in another way than a test for an integer does.
	var first []test
	if slices.ContainsFunc(rest, calculates) {
		for _, t := range tests {
			if t.kinds == prim.KindInt {
				first = append(first, t)
			}
		}
	}
	tests = slices.DeleteFunc(tests, func(t test) bool {
		return slices.Contains(first, t) || slices.ContainsFunc(made, func(u test) bool { return u.of == t.of && u.kinds&^t.kinds == 0 })
	})
	slices.SortFunc(rest, func(a, b *comp) int { return w.n.compare(a.result, b.result) })
	for len(tests) > 0 && w.n.spend(len(rest)) {
		var best *comp
		most := 0
		for _, c := range rest {
			if !c.total || c.uses <= 0 {
				continue
			}
			if k := len(w.meets(c, run, tests)); k > most {
				best, most = c, k
			}
		}
		if best == nil {
			break
		}
		met := w.meets(best, run, tests)
		tests = slices.DeleteFunc(tests, func(t test) bool { return slices.Contains(met, t) })
		best.total = false
	}
	tests = append(tests, first...)
	slices.SortFunc(tests, func(a, b test) int {
		if c := w.n.compare(a.of, b.of); c != 0 {
			return c
		}
		return int(a.kinds) - int(b.kinds)
	})
	// What is tested comes first.
	out := make([]*comp, 0, len(run))
	test := func(of func(*atom) bool) {
		for _, t := range tests {
			if of(t.of) {
				out = append(out, w.tests(t))
			}
		}
	}
	test(func(a *atom) bool { return a.c == nil || !slices.Contains(rest, a.c) })
	for _, c := range rest {
		out = append(out, c)
		test(func(a *atom) bool { return a.c == c })
	}
	return out
}

// tests returns a test by itself.
func (w *writer) tests(t test) *comp {
	w.countVal(t.of, 1)
	w.n.atoms++
	c := &comp{what: aGuard, guard: t.kinds, args: []val{t.of}, result: &atom{kinds: prim.KindUnit, id: w.n.atoms}, placed: true}
	c.result.c = c
	return c
}

// calculates reports whether a computation may have arithmetic in it.
func calculates(c *comp) bool {
	return c.what == aSum || c.what == aPrim && (integral[c.id] || c.id == prim.Div) || slices.ContainsFunc(c.args, func(v val) bool {
		_, function := v.(*fun)
		return function
	})
}

// makes returns the tests that a computation makes of its operands when it is done.
func makes(c *comp) []test {
	var all []test
	note := func(v val, k prim.Kinds) {
		if a, ok := v.(*atom); ok {
			all = append(all, test{a, k})
		}
	}
	switch c.what {
	case aIf:
		note(c.args[0], prim.KindBool)
	case aPrim:
		if prim.Get(c.id).Body != "" {
			return nil // what it is written as may not come to look
		}
		params := prim.Get(c.id).Params
		for i, a := range c.args {
			note(a, params[min(i, len(params)-1)].Kinds)
		}
	case aJoin:
		for _, a := range c.args {
			note(a, prim.KindString)
		}
	}
	return all
}

// free reports whether what only computes does so by what its operands are in
// themselves.
func (n *normaliser) free(c *comp) bool {
	bare := &block{n: n}
	for _, a := range c.args {
		if _, function := a.(*fun); function {
			return false // which may need anything
		}
	}
	switch c.what {
	case aPrim:
		return n.total(c.id, c.args, bare)
	case aSum, aJoin:
		return !slices.ContainsFunc(c.args, func(a val) bool {
			k := bare.kinds(a)
			return k != prim.KindInt && k != prim.KindString
		})
	}
	return false
}

// meets returns those of some tests that are made where a computation of a run is
// done, with what stands inside it.
func (w *writer) meets(c *comp, run []*comp, tests []test) []test {
	var met []test
	left := 64
	var walk func(c *comp)
	walk = func(c *comp) {
		if left--; left < 0 {
			return
		}
		for _, t := range makes(c) {
			if slices.Contains(tests, t) && !slices.Contains(met, t) {
				met = append(met, t)
			}
		}
		for _, v := range c.args {
			if a, ok := v.(*atom); ok && a.c != nil && a.c.total && a.c.uses == 1 && slices.Contains(run, a.c) {
				walk(a.c)
			}
		}
	}
	walk(c)
	return met
}
