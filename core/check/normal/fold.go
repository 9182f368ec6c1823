package normal

import (
	"slices"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// An rmap is a fold that makes, of each item of a list, one of another, the last
// first: what map is with a reverse around.
type rmap struct {
	steps []*closure // one after the other; none: it only reverses
	list  val
}

// fold goes through a list whose items are known with a function that is.
func (n *normaliser) fold(args []val, b *block) (val, bool) {
	f, acc, list := args[0], args[1], args[2]
	c := &comp{what: aPrim, id: prim.Fold, args: args}
	if b.kinds(list)&prim.KindList == 0 || b.kinds(f)&prim.KindFunction == 0 {
		return n.fail(b, c)
	}
	if _, ok := list.(empty); ok && b.kinds(f) == prim.KindFunction {
		return acc, true
	}
	if spine(b, list) && b.kinds(f) == prim.KindFunction {
		for {
			l, ok := b.resolve(list).(*cons)
			if !ok {
				return acc, true
			}
			if acc, ok = n.apply(f, &pair{acc, l.head}, b); !ok {
				return nil, false
			}
			list = l.tail
		}
	}
	if f, ok := f.(*closure); ok {
		return n.foldStep(f, acc, list, b)
	}
	v, ok := n.leave(b, c)
	b.learn(f, fact{kinds: prim.KindFunction})
	b.learn(list, fact{kinds: prim.KindList})
	return v, ok
}

// foldStep normalises a fold with a function that is known over a list that isn't. One
// whose function only computes can't fail but for what isn't a list. Where the list
// comes of a map that only computes, both go through its list at once.
func (n *normaliser) foldStep(f *closure, acc, list val, b *block) (val, bool) {
	var steps []*closure
	over := list
	if turned := mapOf(list); turned != nil && len(turned.steps) == 0 && b.kinds(list) == prim.KindList {
		if m := mapOf(turned.list); m != nil && len(m.steps) < maxFoldSteps {
			steps, over = m.steps, m.list
		}
	}
	step, kinds, plain, ok := n.compose(append(slices.Clip(steps), f), b.kinds(acc), b)
	if ok && !plain && steps != nil {
		steps, over = nil, list
		step, kinds, _, ok = n.compose([]*closure{f}, b.kinds(acc), b)
	}
	if !ok {
		return nil, false
	}
	var m *rmap
	if _, none := acc.(empty); none {
		if h, ok := mapStep(step); ok {
			m = &rmap{list: over}
			if !itself(h, step) {
				m.steps = append(slices.Clip(steps), f)
			}
			if v, done, ok := n.fuse(m, step, b); done {
				return v, ok
			}
		}
	}
	return n.leaveFold(step, acc, over, m, kinds, b)
}

// compose returns the function of a fold that does one after the other: all but the
// last make an item of an item, as those of an [rmap] do, whatever list they put it
// before; what the fold itself gathers need not be one. plain is set where that
// worked.
func (n *normaliser) compose(steps []*closure, first prim.Kinds, b *block) (f *fun, kinds prim.Kinds, plain, ok bool) {
	plain = true
	f, kinds, ok = n.step(first, func(p *atom, body *block) (val, bool) {
		last := steps[len(steps)-1]
		given := val(p)
		if len(steps) > 1 {
			acc, okA := n.strict(prim.Fst, []val{p}, body)
			item, okB := n.strict(prim.Snd, []val{p}, body)
			if !okA || !okB {
				return nil, false
			}
			for _, g := range steps[:len(steps)-1] {
				made, ok := n.apply(g, &pair{empty{}, item}, body)
				if !ok {
					return nil, false
				}
				c, isCons := body.resolve(made).(*cons)
				if !isCons {
					plain = false
					return lit{value.Unit{}}, true
				}
				item = body.resolve(c.head)
			}
			given = &pair{acc, item}
		}
		n.active[last.lam]++
		defer func() { n.active[last.lam]-- }()
		return n.eval(last.lam.Body, &env{last.lam.Param, given, last.env}, body)
	}, b)
	return f, kinds, plain, ok
}

func (n *normaliser) leaveFold(step *fun, acc, list val, m *rmap, kinds prim.Kinds, b *block) (val, bool) {
	c := &comp{what: aPrim, id: prim.Fold, args: []val{step, acc, list}, result: &atom{kinds: kinds}, m: m}
	if c.total = !step.body.dead && quiet(step.body); c.total && !n.guard(list, prim.KindList, b) {
		return nil, false
	}
	v, ok := n.leave(b, c)
	b.learn(list, fact{kinds: prim.KindList})
	return v, ok
}

// step normalises the function of a fold, of a pair of what came before and an item.
// What it is given first, and gives, is of some kinds: they are what the fold gives.
func (n *normaliser) step(first prim.Kinds, run func(p *atom, body *block) (val, bool), b *block) (*fun, prim.Kinds, bool) {
	if first&prim.KindNumber != 0 {
		first |= prim.KindNumber
	}
	for _, kinds := range []prim.Kinds{first, prim.KindAny} {
		n.atoms++
		p := &atom{kinds: prim.KindPair, id: n.atoms}
		body := b.child()
		fst := &comp{what: aPrim, id: prim.Fst, args: []val{p}, result: &atom{kinds: kinds}, total: true}
		if _, ok := n.leave(body, fst); !ok {
			return nil, 0, false
		}
		key, _ := n.key(prim.Fst, []val{p})
		body.note(key, fst.result)
		n.spec++
		v, ok := run(p, body)
		if ok {
			body.result, ok = n.freeze(body.resolve(v), body)
		}
		n.spec--
		if n.left < 0 || n.opaque != "" {
			return nil, 0, false
		}
		body.dead = !ok
		if body.dead || body.kinds(body.result)&^kinds == 0 {
			return &fun{p, body}, kinds, true
		}
	}
	return nil, 0, false
}

// mapStep reports whether the function of a fold puts something before what came
// before and does nothing else with that: it gives what.
func mapStep(f *fun) (val, bool) {
	if f.body.dead {
		return nil, false
	}
	c, ok := f.body.result.(*cons)
	if !ok {
		return nil, false
	}
	fst := f.body.comps[0].result
	if c.tail != val(fst) {
		return nil, false
	}
	look := mentions{of: []*atom{fst, f.param}, left: 1000}
	for _, k := range f.body.comps {
		if k.what != aPrim || k.id != prim.Fst && k.id != prim.Snd || k.args[0] != val(f.param) {
			look.comp(k)
		}
	}
	look.val(c.head)
	return c.head, !look.found && look.left > 0
}

// itself reports whether what a fold puts there is its item.
func itself(h val, f *fun) bool {
	a, ok := h.(*atom)
	return ok && a.c != nil && a.c.what == aPrim && a.c.id == prim.Snd && a.c.args[0] == val(f.param) && quiet(f.body)
}

// mentions looks for atoms.
type mentions struct {
	of    []*atom
	found bool
	left  int
}

func (m *mentions) comp(c *comp) {
	for _, a := range c.args {
		m.val(a)
	}
	for _, s := range c.blocks {
		m.block(s)
	}
}

func (m *mentions) block(b *block) {
	for _, c := range b.comps {
		m.comp(c)
	}
	if !b.dead {
		m.val(b.result)
	}
}

func (m *mentions) val(v val) {
	if m.left--; m.left < 0 || m.found {
		return
	}
	switch v := v.(type) {
	case *atom:
		m.found = slices.Contains(m.of, v)
	case *cons:
		m.val(v.head)
		m.val(v.tail)
	case *pair:
		m.val(v.a)
		m.val(v.b)
	case *record:
		for _, f := range v.vals {
			m.val(f)
		}
	case *fun:
		m.block(v.body)
	}
}

// fuse makes one of two folds that only compute: the items that the second makes may
// be made when those of the first are, the other way round.
func (n *normaliser) fuse(m *rmap, step *fun, b *block) (v val, done, ok bool) {
	over := mapOf(m.list)
	switch {
	case over == nil || b.kinds(m.list) != prim.KindList:
		return nil, false, false
	case len(m.steps) == 0:
		if len(over.steps) > 0 {
			return nil, false, false
		}
		return b.resolve(over.list), true, true // turned round twice
	case len(over.steps)+len(m.steps) > maxFoldSteps || !quiet(step.body):
		return nil, false, false
	}
	both := &rmap{steps: slices.Concat(over.steps, m.steps), list: over.list}
	one, kinds, plain, ok := n.compose(both.steps, prim.KindList, b)
	if !ok {
		return nil, true, false
	}
	if _, ok := mapStep(one); !plain || !ok || !quiet(one.body) {
		return nil, false, false
	}
	if v, ok = n.leaveFold(one, empty{}, both.list, both, kinds, b); ok {
		v, ok = n.fold([]val{turned, empty{}, v}, b)
	}
	return v, true, ok
}

// mapOf returns the fold that a list comes of, where that only computes.
func mapOf(v val) *rmap {
	if a, ok := v.(*atom); ok && a.c != nil && a.c.total {
		return a.c.m
	}
	return nil
}

// turned is the function of a fold that turns a list round.
var turned = &closure{lam: &term.Lam{Param: "p", Body: &term.Prim{ID: prim.Cons, Args: []term.Term{
	&term.Prim{ID: prim.Snd, Args: []term.Term{&term.Var{Name: "p"}}},
	&term.Prim{ID: prim.Fst, Args: []term.Term{&term.Var{Name: "p"}}},
}}}}

// maxFoldSteps is how many folds are made one.
const maxFoldSteps = 8
