package caps

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// maxScope bounds a scope and an argument that designates, in bytes.
const maxScope = 4096

// Canonical is the one spelling of a scope, or the reason why it is none. A URL
// scope is given as it stands in a capability's text, with its percent-encoding;
// the scopes of the others are decoded already.
func (a Algebra) Canonical(scope string) (string, error) {
	if len(scope) > maxScope {
		return "", fmt.Errorf("a scope has at most %d bytes", maxScope)
	}
	if scope == "" {
		return "", errors.New("the scope is empty")
	}
	if a == URL {
		u, err := parseURL(scope, true)
		if err != nil {
			return "", err
		}
		return u.String(), nil
	}
	if err := plainText(scope); err != nil {
		return "", err
	}
	switch a {
	case Path:
		return canonicalPath(scope)
	case Segments:
		return scope, checkPattern(scope)
	case callNames, Exact:
		switch {
		case likeURL(scope):
			return "", errors.New("a name can't begin like a URL")
		case !strings.Contains(scope, "*"):
			return scope, nil
		case a == callNames:
			return scope, checkPattern(scope)
		}
		return "", errors.New("the scope is one name, never a pattern")
	}
	return "", fmt.Errorf("unknown scope algebra %s", quoted(string(a)))
}

// Contains reports whether everything within narrower is within scope. Both are
// canonical; what isn't is contained by nothing.
func (a Algebra) Contains(scope, narrower string) bool {
	switch a {
	case Path:
		_, ok := below(scope, narrower)
		return ok
	case URL:
		s, errS := scopeURL(scope)
		n, errN := scopeURL(narrower)
		return errS == nil && errN == nil && s.contains(n)
	case Segments:
		return segmentsContain(split(scope), split(narrower))
	case callNames:
		if !strings.Contains(scope, "*") {
			return scope == narrower
		}
		return segmentsContain(split(scope), split(narrower))
	case Exact:
		return scope == narrower
	}
	return false
}

// Overlaps reports whether something can be within both canonical scopes.
func (a Algebra) Overlaps(x, y string) bool {
	switch a {
	case URL:
		u, errU := scopeURL(x)
		v, errV := scopeURL(y)
		return errU == nil && errV == nil && u.overlaps(v)
	case Segments:
		return segmentsOverlap(split(x), split(y))
	case callNames:
		switch {
		case !strings.Contains(x, "*"):
			return a.Contains(y, x)
		case !strings.Contains(y, "*"):
			return a.Contains(x, y)
		}
		return segmentsOverlap(split(x), split(y))
	}
	return a.Contains(x, y) || a.Contains(y, x)
}

// Covers decides whether an argument that designates something is within a
// canonical scope: nil, [ErrOutside], or the reason why the argument designates
// nothing. Arguments for [Path] are relative to the scope, so that each that is
// well-formed is within.
func (a Algebra) Covers(scope, argument string) error {
	if len(argument) > maxScope {
		return fmt.Errorf("it has more than %d bytes", maxScope)
	}
	switch a {
	case Path:
		_, err := relative(argument)
		return err
	case URL:
		s, err := scopeURL(scope)
		if err != nil {
			return err
		}
		v, err := parseURL(argument, false)
		if err != nil {
			return err
		}
		if !s.covers(v) {
			return ErrOutside
		}
		return nil
	}
	if err := plainText(argument); err != nil {
		return err
	}
	if argument == "" {
		return errors.New("it is empty")
	}
	if a == Segments {
		if err := checkSegments(argument); err != nil {
			return err
		}
	}
	if !a.Contains(scope, argument) {
		return ErrOutside
	}
	return nil
}

// likeURL tells the texts that are read as URLs where nothing is known of the
// kind; no scope of another algebra is one.
func likeURL(s string) bool {
	s = strings.ToLower(s[:min(len(s), len("https://"))])
	return strings.HasPrefix(s, "http://") || s == "https://"
}

// ErrOutside is the answer of [Algebra.Covers] for a well-formed argument that
// the scope doesn't have.
var ErrOutside = errors.New("it is outside the scope")

// plainText refuses what nobody can read: bytes that aren't UTF-8 and control
// characters.
func plainText(s string) error {
	if !utf8.ValidString(s) {
		return errors.New("it isn't UTF-8")
	}
	if i := strings.IndexFunc(s, unicode.IsControl); i >= 0 {
		r, _ := utf8.DecodeRuneInString(s[i:])
		return fmt.Errorf("it has the control character %U", r)
	}
	return nil
}

// quoted shows a word of somebody else's, shortened.
func quoted(s string) string { return fmt.Sprintf("%q", display.Truncate(s, 80)) }

// within resolves a scope that a tool names, by the label, to the path below
// the grant's root. An absolute path is no tool's word: by trying such, a model
// could find out where a grant lies.
func (g *Grant) within(scope string) (rel string, ok bool) {
	if absolute(scope) {
		return "", false
	}
	rel, ok = below(g.Label, scope)
	return rel, ok && (g.File == "" || rel == ".")
}

// shownScope is the scope, as tools see it, of a path below the grant's root.
func (g *Grant) shownScope(rel string) string {
	switch {
	case rel == ".":
		return g.Label
	case g.Label == ".":
		return "./" + rel
	}
	return strings.TrimSuffix(g.Label, "/") + "/" + rel
}

// meet is what lies both in a declared scope and in a grant: as tools see it
// and relative to the grant. whole is set where that is all of what was
// declared.
func (g *Grant) meet(declared string) (scope, within string, whole, ok bool) {
	a := g.Manifest.Algebra
	if a == Path {
		if rel, ok := g.within(declared); ok {
			return g.shownScope(rel), rel, true, true
		}
		_, around := below(declared, g.Label)
		return g.Label, ".", false, around
	}
	if g.Manifest.Server != "" {
		return "", "", true, true
	}
	scope = a.meet(g.Scope, declared)
	return scope, scope, scope == declared, scope != ""
}

// meet is the scope of what lies in both scopes, of an algebra that isn't Path;
// empty where nothing does.
func (a Algebra) meet(x, y string) string {
	switch {
	case a.Contains(x, y):
		return y
	case a.Contains(y, x):
		return x
	case !a.Overlaps(x, y):
		return ""
	}
	switch a {
	case URL:
		u, _ := scopeURL(x)
		v, _ := scopeURL(y)
		if hostContains(u.host, v.host) {
			u.host = v.host
		}
		u.segments = meetSegments(u.segments, v.segments)
		return u.String()
	case Segments:
		return strings.Join(meetSegments(split(x), split(y)), "/")
	}
	return ""
}

// meetSegments is the pattern of what two overlapping patterns both match.
func meetSegments(a, b []string) []string {
	var both []string
	for i := 0; ; i++ {
		switch {
		case i == len(a) || i == len(b):
			return both
		case a[i] == "**" && i == len(a)-1:
			return append(both, b[i:]...)
		case b[i] == "**" && i == len(b)-1:
			return append(both, a[i:]...)
		case a[i] == "*":
			both = append(both, b[i])
		default:
			both = append(both, a[i])
		}
	}
}

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
	return c.Verbs == nil && len(c.Options) == 0 || len(m.Verbs) == 0 || !slices.ContainsFunc(m.Verbs, func(v Verb) bool { return narrower.permits(v) && !c.permits(v) })
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

// ShellQuote writes a word so that a shell gives it back.
func ShellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

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
		of := c.p.principal + "\x00" + r.Tool
		key := c.h.Grant.ID + "\x00" + of + "\x00with " + entry.String()
		if entry.Limits != (Limits{}) && !slices.ContainsFunc(accounts, func(a account) bool { return a.key == key }) {
			accounts = append(accounts, account{key, entry.Limits, entry.String(), of})
		}
	}
	return accounts, nil
}

// entryOf finds the entry of a list under which the request is made: the first
// that permits it and has all of what the tool holds, or else the first that
// permits it.
func (c *check) entryOf(list []string) (found Capability, ok bool) {
	for _, text := range list[:min(len(list), MaxDeclared)] {
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
		return !slices.ContainsFunc(c.designates, func(argument string) bool {
			_, in := pathInside(within, argument)
			return !in
		})
	}
	if len(c.designates) == 0 {
		return c.m.Algebra.Contains(entry.Scope, c.h.Scope)
	}
	return !slices.ContainsFunc(c.designates, func(argument string) bool { return c.m.Algebra.Covers(entry.Scope, argument) != nil })
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
	for _, param := range c.o.Takes() {
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
