package normal

import (
	"strings"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

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
