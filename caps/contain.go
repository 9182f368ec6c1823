package caps

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// permits tells whether a capability has the verb, ro considered.
func (c *Capability) permits(verb Verb) bool {
	if !c.has(verb.Name) {
		return false
	}
	_, ro := c.Options[optionRO]
	return !ro || verb.ReadOnly
}

// has tells whether a capability names the verb, by a pattern too, ro left aside.
func (c *Capability) has(verb string) bool {
	return c.Verbs == nil || slices.ContainsFunc(c.Verbs, func(v string) bool {
		prefix, star := strings.CutSuffix(v, "*")
		return v == verb || star && strings.HasPrefix(verb, prefix)
	})
}

// verbsContain tells whether every verb of the kind that narrower permits is
// permitted by c.
func verbsContain(c, narrower Capability, m *Manifest) bool {
	if c.Verbs == nil && len(c.Options) == 0 || len(m.Verbs) == 0 {
		return true
	}
	for _, v := range m.Verbs {
		if narrower.permits(v) && !c.permits(v) {
			return false
		}
	}
	return true
}

// Contains reports whether everything that narrower permits, c permits too:
// verbs, scope, the kind's options, limits and time. Both are canonical; scopes
// are compared as texts, so that it is about capabilities of the same speaker:
// an operator's, or a tool's.
func (k Kinds) Contains(c, narrower Capability) bool {
	m, ok := k.Manifest(c.Kind)
	if !ok || c.Kind != narrower.Kind || !verbsContain(c, narrower, m) || !m.Algebra.Contains(c.Scope, narrower.Scope) {
		return false
	}
	for name, value := range narrower.Options {
		if own, has := c.Options[name]; name != optionRO && (!has || own != value) {
			return false
		}
	}
	l, n := c.Limits, narrower.Limits
	within := func(own, other int64) bool { return own == 0 || other != 0 && other <= own }
	if !within(l.Calls, n.Calls) || !within(l.Bytes, n.Bytes) || !within(l.Max, n.Max) || !within(int64(l.Timeout), int64(n.Timeout)) {
		return false
	}
	if l.Rate.Per != 0 && (n.Rate.Per == 0 || n.Rate.Calls > l.Rate.Calls || l.Rate.and(n.Rate) != n.Rate && l.Rate != n.Rate) {
		return false
	}
	return c.Until.IsZero() || !narrower.Until.IsZero() && !narrower.Until.After(c.Until)
}

// narrowTo narrows c, whose scope lies within the grant's, to what the grant
// permits too. The kind's own options are the grant's: a tool has them without
// saying so, and none by saying so. ok is false where no verb is left.
func (c Capability) narrowTo(grant Capability, m *Manifest) (narrowed Capability, ok bool) {
	_, ro := c.Options[optionRO]
	n := c
	n.Limits = c.Limits.and(grant.Limits)
	n.Until = earlier(c.Until, grant.Until)
	n.Options = maps.Clone(grant.Options)
	delete(n.Options, optionRO)
	if _, grantRO := grant.Options[optionRO]; c.Verbs == nil && grant.Verbs == nil {
		if ro || grantRO {
			setOption(&n, optionRO, "")
		}
	} else {
		n.Verbs = nil
		for _, v := range m.Verbs {
			if c.permits(v) && grant.permits(v) {
				n.Verbs = append(n.Verbs, v.Name)
			}
		}
		if n.Verbs == nil {
			return n, false
		}
		slices.Sort(n.Verbs)
	}
	if len(n.Options) == 0 {
		n.Options = nil
	}
	return n, true
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// sameBut reports whether two capabilities differ in their verbs only.
func sameBut(a, b Capability) bool {
	return a.Kind == b.Kind && a.Scope == b.Scope && a.Limits == b.Limits && a.Until.Equal(b.Until) && maps.Equal(a.Options, b.Options)
}

// shellQuote writes a word so that a shell gives it back.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
