package check

import (
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// A tested branch is one of a condition, with what is known in it beyond what was known
// before.
type tested struct {
	branch        term.Term
	known, before *knowledge
}

// excluded reports whether no value comes to the branch: of something that its
// condition looks at there is none left.
func (b *tested) excluded() bool {
	for k := b.known; k != b.before; k = k.next {
		if len(k.v.lower) == 0 {
			return true
		}
	}
	return false
}

// guarded is the offsets of the terms that stand in quoted code, in what a try
// evaluates, or in a branch that is excluded however often the code is typed.
func (c *checker) guarded() map[int]bool {
	if len(c.failed) == 0 {
		return nil
	}
	reached := map[term.Term]bool{}
	for i := range c.branches {
		b := &c.branches[i]
		reached[b.branch] = reached[b.branch] || !b.excluded()
	}
	in := map[int]bool{}
	var inside func(t term.Term) bool
	inside = func(t term.Term) bool {
		in[t.Pos()] = true
		return term.Children(t, inside)
	}
	var outside func(t term.Term) bool
	outside = func(t term.Term) bool {
		alive, branch := reached[t]
		_, quoted := t.(*term.Quote)
		p, ok := t.(*term.Prim)
		switch {
		case branch && !alive:
			return inside(t)
		case quoted || ok && p.ID == prim.Try:
			return term.Children(t, inside)
		}
		return term.Children(t, outside)
	}
	outside(c.code)
	return in
}
