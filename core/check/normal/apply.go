package normal

import (
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
	"slices"
)

// apply applies f to a, which are values: a function that is known is unfolded,
// but not inside itself where it is not known that it is ever called.
func (n *normaliser) apply(f, a val, b *block) (val, bool) {
	f, a = b.resolve(f), b.resolve(a)
	if c, ok := f.(*closure); ok && (n.spec == 0 || n.active[c.lam] == 0) {
		n.active[c.lam]++
		v, ok := n.eval(c.lam.Body, &env{c.lam.Param, a, c.env}, b)
		n.active[c.lam]--
		return v, ok
	}
	c := &comp{what: aApp, args: []val{f, a}}
	if b.kinds(f)&prim.KindFunction == 0 {
		return n.fail(b, c)
	}
	v, ok := n.leave(b, c)
	b.learn(f, fact{kinds: prim.KindFunction})
	return v, ok
}

// A then evaluates a branch in a block.
type then func(b *block) (val, bool)

// branch normalises a conditional. Where the condition isn't known, each branch is
// normalised by itself, knowing it.
func (n *normaliser) branch(c val, b *block, yes, no then) (val, bool) {
	c = b.resolve(c)
	if l, ok := c.(lit); ok {
		if l.v == value.Value(value.Bool(true)) {
			return yes(b)
		}
		if l.v == value.Value(value.Bool(false)) {
			return no(b)
		}
	}
	if b.kinds(c)&prim.KindBool == 0 {
		// It fails whatever the branches are.
		null := func() *block { return &block{n: n, parent: b, result: lit{value.Unit{}}} }
		return n.fail(b, &comp{what: aIf, args: []val{c}, blocks: []*block{null(), null()}})
	}
	if a, ok := c.(*atom); ok && a.c != nil && a.c.what == aPrim && a.c.id == prim.Not && b.kinds(a.c.args[0]) == prim.KindBool {
		return n.branch(a.c.args[0], b, no, yes)
	}
	if a, ok := c.(*atom); ok && a.c != nil && a.c.pure && a.c.what == aPrim && a.c.id == prim.Lt {
		// One of the two is enough.
		c, ok := n.strict(prim.Lte, []val{a.c.args[1], a.c.args[0]}, b)
		if !ok {
			return nil, false
		}
		return n.branch(c, b, no, yes)
	}
	blocks := []*block{b.child(), b.child()}
	for i, f := range []then{yes, no} {
		sub := blocks[i]
		sub.assume(c, i == 0)
		n.spec++
		v, ok := f(sub)
		n.spec--
		if n.left < 0 || n.opaque != "" {
			return nil, false
		}
		sub.dead = !ok
		if ok {
			if sub.result, ok = n.freeze(sub.resolve(v), sub); !ok {
				return nil, false
			}
		}
	}
	if v, ok := n.joinBranches(c, b, blocks); ok {
		return v, true
	}
	if v, ok, done := n.mergeBranches(c, b, blocks); done {
		return v, ok
	}
	r := &atom{}
	for _, s := range blocks {
		if !s.dead {
			r.kinds |= s.kinds(s.result)
		}
	}
	v, ok := n.leave(b, &comp{what: aIf, args: []val{c}, blocks: blocks, result: r})
	b.learn(c, fact{kinds: prim.KindBool})
	if blocks[0].dead && blocks[1].dead {
		return nil, false
	}
	return v, ok
}

// joinBranches returns what a conditional with a truth value as its condition gives whose
// branches are truth values, one each: the condition, or its opposite.
func (n *normaliser) joinBranches(c val, b *block, blocks []*block) (val, bool) {
	for _, s := range blocks {
		if s.dead || len(s.comps) > 0 {
			return nil, false
		}
	}
	x, okX := blocks[0].result.(lit)
	y, okY := blocks[1].result.(lit)
	if !okX || !okY {
		return nil, false
	}
	t, f := value.Value(value.Bool(true)), value.Value(value.Bool(false))
	switch {
	case x.v == t && y.v == f && b.kinds(c) == prim.KindBool:
		return c, true
	case x.v == f && y.v == t:
		return n.strict(prim.Not, []val{c}, b)
	}
	return nil, false
}

// same reports whether two values that are no composites are one.
func same(a, b value.Value) bool {
	switch a := a.(type) {
	case value.Int:
		b, ok := b.(value.Int)
		return ok && a.Big().Cmp(b.Big()) == 0
	case value.Dec:
		b, ok := b.(value.Dec)
		return ok && a.Scale() == b.Scale() && a.Unscaled().Cmp(b.Unscaled()) == 0
	}
	return a == b
}

// assume learns from a condition that it is so.
func (b *block) assume(c val, yes bool) {
	a, ok := c.(*atom)
	if !ok {
		return
	}
	b.learn(a, fact{kinds: prim.KindBool, is: lit{value.Bool(yes)}})
	p := a.c
	if p != nil && p.what == aIf {
		b.assumeBoth(p, yes)
	}
	if p == nil || p.what != aPrim {
		return
	}
	switch p.id {
	case prim.Not:
		b.assume(b.resolve(p.args[0]), !yes)
	case prim.IsEmpty:
		if yes {
			b.learn(p.args[0], fact{kinds: prim.KindList, is: empty{}})
		} else {
			b.learn(p.args[0], fact{kinds: prim.KindList, some: true})
		}
	case idEqual:
		x, y := p.args[0], p.args[1]
		if _, ok := x.(lit); ok {
			x, y = y, x
		}
		of, okX := x.(*atom)
		name, okY := y.(lit)
		if !okX || !okY || of.c == nil || of.c.what != aPrim || of.c.id != idTypeOf {
			return
		}
		s, _ := name.v.(value.Str)
		if k := prim.KindNamed(string(s)); yes {
			b.learn(of.c.args[0], fact{kinds: k})
		} else {
			b.learn(of.c.args[0], fact{kinds: prim.KindAny &^ k})
		}
	}
}

// assumeBoth learns from what and and or leave: if c then x else false is true, or
// if c then true else x is false.
func (b *block) assumeBoth(p *comp, yes bool) {
	i := 0
	if !yes {
		i = 1
	}
	on, off := p.blocks[i], p.blocks[1-i]
	if l, ok := off.result.(lit); !off.dead && !on.dead && ok && l.v == value.Value(value.Bool(!yes)) {
		b.assume(b.resolve(p.args[0]), yes)
		b.assume(on.result, yes)
	}
}

// spine reports whether it is known how many items a list has.
func spine(b *block, v val) bool {
	for {
		v = b.resolve(v)
		c, ok := v.(*cons)
		if !ok {
			_, ok := v.(empty)
			return ok
		}
		v = c.tail
	}
}

// try returns {"ok":v} where nothing is left to fail, and is left otherwise.
func (n *normaliser) try(t *term.Prim, e *env, b *block) (val, bool) {
	sub := b.child()
	n.run(t.Args[0], e, sub)
	if n.left < 0 || n.opaque != "" {
		return nil, false
	}
	if !sub.dead && quiet(sub) {
		b.comps = append(b.comps, sub.comps...)
		return &record{keys: []string{"ok"}, vals: []val{sub.result}}, true
	}
	c := &comp{what: aTry, blocks: []*block{sub}, result: &atom{kinds: prim.KindRecord}}
	n.tries = append(n.tries, c)
	return n.leave(b, c)
}

// quiet reports whether a block does nothing but compute.
func quiet(b *block) bool {
	return !slices.ContainsFunc(b.comps, func(c *comp) bool { return !c.total })
}

// par returns the list of its branches' values where they do nothing.
func (n *normaliser) par(t *term.Prim, e *env, b *block) (val, bool) {
	c := &comp{what: aPar, result: &atom{kinds: prim.KindList}}
	all := true
	for _, branch := range t.Args {
		sub := b.child()
		n.spec++
		n.run(branch, e, sub)
		n.spec--
		if n.left < 0 || n.opaque != "" {
			return nil, false
		}
		all = all && !sub.dead && quiet(sub)
		c.blocks = append(c.blocks, sub)
	}
	if !all {
		return n.leave(b, c)
	}
	var l val = empty{}
	for i := len(c.blocks) - 1; i >= 0; i-- {
		l = &cons{c.blocks[i].result, l}
	}
	for _, s := range c.blocks {
		b.comps = append(b.comps, s.comps...)
	}
	return l, true
}
