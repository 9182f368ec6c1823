// Package caps is what a tool may do: capabilities and their text form, what
// the operator granted, what a tool declared, and the decision with its reason.
//
// A [Capability] is text: [Parse] gives any spelling the one canonical text.
// What lies within a scope is decided by the four scope algebras ([Algebra]),
// by whole segments of parsed components, never by prefixes of strings. What a
// plugin offers is its [Manifest]; [Kinds] is all of them.
//
// The operator's capabilities become a [Grant] by [Resolve], which opens a root
// once and refuses one that touches what is protected. A [Policy] holds grants
// and denials. It decides twice: [Policy.Decide] when a tool is evolved, and
// gives what the tool holds, and [Policy.Permit] for each request when it runs,
// debited to the run's [Ledger]. Deny beats ask, ask beats grant.
//
// It refuses: what isn't known (kinds, verbs, options, arguments, keys of
// files), what could be read in two ways, authority for inline code and inputs,
// and hints that would suggest the whole system or a home directory. Tools and
// models are shown labels, never where a grant lies.
//
// It acts on nothing: package caps/run asks it and has plugins act, which
// decide once more on what they open.
//
// Design: ../shared/design/capabilities.md.
package caps

import (
	"time"

	"github.com/mcp-pif/mcp-pif/core"
)

// A Capability is authority over some operations of one kind within one scope,
// with limits. The zero value is none.
type Capability struct {
	// Name is the name an operator gave the scope ("docs" in
	// fs:docs=./very/long/path), empty for none.
	Name string
	Kind string
	// Verbs is sorted; nil is every verb of the kind.
	Verbs []string
	// Scope is decoded and canonical in its algebra.
	Scope   string
	Options map[string]string // ro, links: what the manifest allows
	Limits  Limits
	Until   time.Time // zero: no end
}

// Limits of acting. Zero is no limit of its own.
type Limits struct {
	Calls   int64         // per run
	Bytes   int64         // of outcomes, per run
	Max     int64         // of one outcome or one content, bytes
	Rate    Rate          // per grant
	Timeout time.Duration // per call
}

// Rate is how often: Calls in Per.
type Rate struct {
	Calls int64
	Per   time.Duration
}

// What a term can ask of the world, as package core reads it off the code.
type (
	Needs = core.Needs
	Need  = core.Need
	With  = core.With
)

// Worst is the worst of several: of none, that of a tool that can't act.
func Worst(flags ...Flags) Flags {
	worst := Flags{ReadOnly: true, Idempotent: true}
	for _, f := range flags {
		worst.ReadOnly = worst.ReadOnly && f.ReadOnly
		worst.Idempotent = worst.Idempotent && f.Idempotent
		worst.Destructive = worst.Destructive || f.Destructive
		worst.OpenWorld = worst.OpenWorld || f.OpenWorld
	}
	return worst
}

// Annotations is the worst that tools with these capabilities can do by
// themselves. What the tools can do that they call is for the caller to add, by
// giving their capabilities too.
func Annotations(held []*Held) Flags {
	flags := make([]Flags, len(held))
	for i, h := range held {
		flags[i] = h.Flags()
	}
	return Worst(flags...)
}

// Flags is the worst that can be done under the capability.
func (h *Held) Flags() Flags {
	if h.Grant == nil {
		return Worst()
	}
	return worstOf(&h.Capability, h.Grant.Manifest)
}

// Permits reports whether the grant has a verb for all of a scope as tools call it.
func (g *Grant) Permits(verb, scope string) bool {
	v, ok := g.Manifest.Verb(verb)
	return ok && g.permits(v) && (g.Label == scope || g.Manifest.Algebra.Contains(g.Label, scope))
}

// Flags is the worst that can be done under the grant.
func (g *Grant) Flags() Flags { return worstOf(&g.Capability, g.Manifest) }

func worstOf(c *Capability, m *Manifest) Flags {
	var flags []Flags
	for _, v := range m.Verbs {
		if c.permits(v) {
			flags = append(flags, v.Flags)
		}
	}
	return Worst(flags...)
}
