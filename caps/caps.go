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
