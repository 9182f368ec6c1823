package normal

import (
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// mergeBranches returns a conditional whose branches do the same: what they do, once the
// condition is known to be a truth value.
func (n *normaliser) mergeBranches(c val, b *block, blocks []*block) (v val, ok, done bool) {
	x, y := blocks[0], blocks[1]
	p := pairing{of: map[*atom]*atom{}, left: 1000}
	if !p.block(x, y) {
		return nil, false, false
	}
	n.spend((1000 - p.left) / 16)
	if b.kinds(c) != prim.KindBool && !n.guard(c, prim.KindBool, b) {
		return nil, false, true
	}
	b.comps = append(b.comps, x.comps...)
	return x.result, !x.dead, true
}

// A pairing holds two blocks against each other: what one calls so is what the other
// calls otherwise.
type pairing struct {
	of   map[*atom]*atom
	left int
}

func (p *pairing) block(x, y *block) bool {
	if x.dead != y.dead || !slices.EqualFunc(x.comps, y.comps, p.comp) {
		return false
	}
	return x.dead || p.val(x.result, y.result)
}

func (p *pairing) comp(x, y *comp) bool {
	if x.what != y.what || x.id != y.id || x.name != y.name || x.in != y.in || x.guard != y.guard || x.total != y.total || (x.sum == nil) != (y.sum == nil) {
		return false
	}
	if !slices.EqualFunc(x.args, y.args, p.val) || !slices.EqualFunc(x.blocks, y.blocks, p.block) {
		return false
	}
	if x.sum != nil && !slices.EqualFunc(x.sum.terms, y.sum.terms, func(t, u product) bool {
		return t.times.Cmp(u.times) == 0 && slices.EqualFunc(t.of, u.of, func(a, b *atom) bool { return p.val(a, b) })
	}) {
		return false
	}
	p.of[x.result] = y.result
	return true
}

func (p *pairing) val(x, y val) bool {
	if p.left--; p.left < 0 || rank(x) != rank(y) {
		return false
	}
	switch x := x.(type) {
	case *atom:
		if a, ok := p.of[x]; ok {
			return val(a) == y
		}
		return val(x) == y
	case *cons:
		y := y.(*cons)
		return p.val(x.head, y.head) && p.val(x.tail, y.tail)
	case *pair:
		y := y.(*pair)
		return p.val(x.a, y.a) && p.val(x.b, y.b)
	case *record:
		y := y.(*record)
		return slices.Equal(x.keys, y.keys) && slices.EqualFunc(x.vals, y.vals, p.val)
	case *fun:
		y, ok := y.(*fun)
		if !ok {
			return false
		}
		p.of[x.param] = y.param
		return p.block(x.body, y.body)
	case lit:
		return literals(x.v, y.(lit).v) == 0
	case empty:
		return true
	}
	return false
}

// maxJoined is how many parts a string is known to have.
const maxJoined = 24

// joinedStrings normalises concat of strings: it is known of what parts they are
// made, and no two literals stand together.
func (n *normaliser) joinedStrings(args []val, b *block) (v val, done bool) {
	var parts []val
	for _, v := range args {
		if a, ok := v.(*atom); ok && a.c != nil && a.c.what == aJoin {
			parts = append(parts, a.c.args...)
			continue
		}
		parts = append(parts, v)
	}
	var all []val
	for _, p := range parts {
		l, ok := p.(lit)
		if !ok {
			all = append(all, p)
			continue
		}
		s := l.v.(value.Str)
		if s == "" {
			continue
		}
		if len(all) > 0 {
			if before, ok := all[len(all)-1].(lit); ok {
				both := before.v.(value.Str) + s
				if len(both) > maxResultBytes || !n.spend(len(both)/256) {
					return nil, false
				}
				all[len(all)-1] = lit{both}
				continue
			}
		}
		all = append(all, p)
	}
	switch {
	case len(all) == 0:
		return lit{value.Str("")}, true
	case len(all) == 1:
		return all[0], true
	case len(all) > maxJoined:
		return nil, false
	}
	var w strings.Builder
	w.WriteString("join")
	left := 4 * maxJoined
	keyed := true
	for _, p := range all {
		w.WriteByte(' ')
		keyed = keyed && n.keyOf(&w, p, &left)
	}
	if a, ok := b.done(w.String()); ok && keyed {
		return b.resolve(a), true
	}
	v, ok := n.leave(b, &comp{what: aJoin, args: all, result: &atom{kinds: prim.KindString}, total: true})
	if ok && keyed {
		b.note(w.String(), v.(*atom))
	}
	return v, true
}

// joins writes what strings are made of.
func (w *writer) joins(args []term.Term) term.Term {
	t := args[0]
	for _, a := range args[1:] {
		t = &term.Prim{ID: prim.Concat, Args: []term.Term{t, a}}
	}
	w.deepest = max(w.deepest, w.nesting+len(args))
	return t
}
