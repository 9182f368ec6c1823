package caps

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// with holds the request against the lists of every eval around, and narrows
// what it is made under to the entries that permit it, so that a plugin can open
// no more than those: links and redirects are its to follow. The limits of an
// entry are accounts of their own.
func (c *check) with(r Request) ([]account, *fault.Fault) {
	var accounts []account
	c.narrowed = c.h
	for _, list := range r.With {
		entry, ok := c.entryOf(list)
		if !ok {
			return nil, c.p.outsideEval(c.o, Capability{Kind: c.m.Kind, Verbs: []string{c.verb.Name}, Scope: c.h.Scope})
		}
		c.narrowed = c.narrowed.narrow(entry, c.m)
		key := c.h.Grant.ID + "\x00" + r.Tool + "\x00with " + entry.String()
		if entry.Limits != (Limits{}) && !slices.ContainsFunc(accounts, func(a account) bool { return a.key == key }) {
			accounts = append(accounts, account{key, entry.Limits, entry.String()})
		}
	}
	return accounts, nil
}

// entryOf finds the entry of a list under which the request is made: the first
// that permits it and has all of what the tool holds, or else the first that
// permits it.
func (c *check) entryOf(list []string) (found Capability, ok bool) {
	for _, text := range list[:min(len(list), mostDeclared)] {
		entry, known := c.p.entry(text)
		if !known || !c.covers(entry) {
			continue
		}
		if c.around(entry) {
			return entry, true
		}
		if !ok {
			found, ok = entry, true
		}
	}
	return found, ok
}

// around tells whether an entry's scope has all of what the tool holds.
func (c *check) around(entry Capability) bool {
	if c.m.Algebra != Path {
		return c.m.Algebra.Contains(entry.Scope, c.h.Scope)
	}
	within, ok := c.h.Grant.within(entry.Scope)
	if ok {
		_, ok = pathInside(within, c.h.Within)
	}
	return ok
}

// covers tells whether an entry of a with-list permits the request.
func (c *check) covers(entry Capability) bool {
	if entry.Kind != c.m.Kind || !entry.permits(c.verb) || !entry.Until.IsZero() && !c.now.Before(entry.Until) {
		return false
	}
	if c.m.Algebra == Path {
		within, ok := c.h.Grant.within(entry.Scope)
		if !ok {
			return false
		}
		for _, argument := range c.designates {
			if _, in := pathInside(within, argument); !in {
				return false
			}
		}
		return true
	}
	if len(c.designates) == 0 {
		return c.m.Algebra.Contains(entry.Scope, c.h.Scope)
	}
	for _, argument := range c.designates {
		if c.m.Algebra.Covers(entry.Scope, argument) != nil {
			return false
		}
	}
	return true
}

// narrow gives what both a held capability and an entry permit. A request that
// both permit lies in it: paths around one path are nested, and of patterns it
// is exactly what both match.
func (h *Held) narrow(entry Capability, m *Manifest) *Held {
	both, _ := entry.narrowTo(h.Capability, m)
	n := &Held{Capability: both, Grant: h.Grant, Within: h.Within, Declared: h.Declared}
	n.Name, n.Scope = "", h.Scope
	if m.Algebra == Path {
		within, _ := h.Grant.within(entry.Scope)
		if _, deeper := pathInside(h.Within, within); deeper && within != h.Within {
			n.Within, n.Scope = within, h.Grant.shownScope(within)
		}
		return n
	}
	n.Scope = m.Algebra.meet(h.Scope, entry.Scope)
	n.Within = n.Scope
	return n
}

// rebase gives the arguments relative to what the request was narrowed to.
func (c *check) rebase(args *value.Record) *value.Record {
	if c.m.Algebra != Path || c.h.Grant.File != "" || c.narrowed.Within == c.h.Within {
		return args
	}
	next := 0
	for i := range c.o.Params {
		param := &c.o.Params[i]
		if !param.Designates {
			continue
		}
		if _, ok := field(args, param.Name); ok {
			args = withField(args, param.Name, value.Str(restOf(c.narrowed.Within, c.designates[next])))
			next++
		}
	}
	return args
}

// restOf is the path of inner, which lies in outer, below it, with its letters
// as they are.
func restOf(outer, inner string) string {
	names := split(inner)
	if outer != "." {
		names = names[min(len(names), len(split(outer))):]
	}
	if len(names) == 0 {
		return "."
	}
	return strings.Join(names, "/")
}

// outsideEval is the denial of what the evals around don't have: c is what they
// would have to be given.
func (p *Policy) outsideEval(o *Operation, c Capability) *fault.Fault {
	return denied(fmt.Sprintf("%s: the eval around it doesn't have this capability", o.Name),
		insideEval(c.String())+" The tool declares it, too; don't retry.")
}

// insideEval says how code inside an eval can act.
func insideEval(text string) string {
	return fmt.Sprintf(`Inside eval nothing can act but what its "with" names: {"eval":T,"with":[%s]} in the tool's code.`, quoted(text))
}
