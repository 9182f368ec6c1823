package normal

import (
	"github.com/mcp-pif/mcp-pif/core/value"
)

// observesPlaces reports whether the record of a failure that a try caught goes
// anywhere but into a look at whether it failed, at the kind or at what was
// raised. Rewriting moves places and may change the words of a message, so a
// program that passes those on is left alone.
func (n *normaliser) observesPlaces(top *block) bool {
	o := observer{suspects: map[*atom]bool{}, left: &n.left}
	for _, c := range n.tries {
		o.suspects[c.result] = true
	}
	// The "error" of a suspect is one, too.
	for _, c := range n.comps {
		if c.what == aPrim && c.id == idGet && o.suspect(c.args[0]) && key(c.args[1]) == "error" {
			o.suspects[c.result] = true
		}
	}
	for _, c := range n.comps {
		o.comp(c)
	}
	if !top.dead {
		o.val(top.result)
	}
	return o.seen
}

type observer struct {
	suspects map[*atom]bool
	seen     bool
	left     *int
}

func (o *observer) suspect(v val) bool {
	a, ok := v.(*atom)
	return ok && o.suspects[a]
}

func key(v val) string {
	if l, ok := v.(lit); ok {
		if s, ok := l.v.(value.Str); ok {
			return string(s)
		}
	}
	return ""
}

func (o *observer) comp(c *comp) {
	for i, a := range c.args {
		if i == 0 && c.what == aPrim && o.suspect(a) {
			switch c.id {
			case idGet:
				if k := key(c.args[1]); k == "ok" || k == "error" || k == "kind" || k == "value" {
					continue
				}
			case idHas, idTypeOf, idNoMatch:
				continue
			}
		}
		o.val(a)
	}
	for _, b := range c.blocks {
		if !b.dead {
			o.val(b.result)
		}
	}
}

// val looks for a suspect that is passed on.
func (o *observer) val(v val) {
	if *o.left--; *o.left < 0 || o.seen {
		return
	}
	switch v := v.(type) {
	case *atom:
		o.seen = o.seen || o.suspects[v]
	case *fun:
		if !v.body.dead {
			o.val(v.body.result)
		}
	default:
		eachPart(v, true, o.val)
	}
}
