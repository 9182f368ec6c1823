package caps

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcp-pif/mcp-pif/core/fault"
)

// A lack is why a declaration is held under no grant, and by what the operator
// could change that.
type lack struct {
	why, hint string
	rank      int // of several lacks the highest is told
}

// lacking finds out what a grant lacks for a declaration that it overlaps; nil:
// nothing.
func (p *Policy) lacking(g *Grant, c Capability) *lack {
	shown := g.Shown().String()
	if g.Revoked() {
		return &lack{"revoked by the operator", p.restoreHint(shown, p.revokedBy(g)), 3}
	}
	if p.over(g) {
		return &lack{
			"its time is over: " + shown + " ended at " + g.Until.UTC().Format(time.RFC3339),
			"Tell the user: only the operator can grant it for longer; don't retry.", 2,
		}
	}
	if _, ok := c.narrowTo(g.Capability, g.Manifest); !ok {
		return &lack{"none of its verbs is granted", upper(p.widen(g, permitted(&c, g.Manifest))) + ".", 1}
	}
	return nil
}

// over tells whether a grant's time has passed.
func (p *Policy) over(g *Grant) bool { return !g.Until.IsZero() && !p.now().Before(g.Until) }

// holds tells whether a grant can be used now.
func (p *Policy) holds(g *Grant) bool { return !g.Revoked() && !p.over(g) }

// Offers reports whether a tool can hold an operation now: some grant has its verb and no
// denial takes all of that. asks is set if a person approves each tool that is to hold it.
func (p *Policy) Offers(m *Manifest, o *Operation) (offered, asks bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, g := range p.grants {
		if g.Kind != m.Kind || !p.holds(g) {
			continue
		}
		h := &Held{Capability: g.Capability, Grant: g, Within: g.Scope}
		if m.Algebra == Path {
			h.Within = "."
		}
		if o.VerbParam == "" {
			if v, _ := m.Verb(o.Verb); !g.permits(v) {
				continue
			}
			h.setVerbs(o.verbs())
		}
		left := h.undenied(m, p.deniesOf(g))
		if h.setVerbs(left); len(left) > 0 {
			if offered = true; !p.asks(h, m) {
				return true, false
			}
		}
	}
	return offered, offered
}

// unaccepted says how the operator grants with ro what nobody accepted as read-only; to grant it
// without would be the wrong way.
func unaccepted(kind string, words ...string) string {
	of := strings.Join(append([]string{kind}, words...), " ")
	return fmt.Sprintf("ask the operator to read 'mcp-pif mcp show %s', to take the server's word with 'mcp-pif mcp accept %[1]s', and to start anew: with ro only what was accepted as read-only is granted", of)
}

// widen says how the operator gives a grant more verbs: as the flag where its
// text has no path that tools don't see, else in words.
func (p *Policy) widen(g *Grant, verbs []string) string {
	var more []string
	for _, v := range verbs {
		if !slices.Contains(permitted(&g.Capability, g.Manifest), v) {
			more = append(more, v)
		}
	}
	if g.Manifest.Algebra == Path && (g.Name != "" || absolute(g.Scope)) {
		return fmt.Sprintf("ask the operator to add %s to what is granted as %s", strings.Join(more, ", "), bare(g.Label))
	}
	if _, ro := g.Capability.Options[optionRO]; ro && g.Manifest.Server != "" {
		return unaccepted(g.Kind, more...)
	}
	h := Held{Capability: g.Capability}
	h.setVerbs(slices.Concat(permitted(&g.Capability, g.Manifest), more))
	if p.principal != "" {
		return fmt.Sprintf("ask the operator to grant %s to %s, besides %s", quoted(h.String()), p.whom(), quoted(g.Capability.String()))
	}
	return fmt.Sprintf("ask the operator to start the server with --cap %s in place of %s", ShellQuote(h.String()), ShellQuote(g.Capability.String()))
}

// grant says what the operator does to grant a capability to whose policy it is, and
// to nobody else.
func (p *Policy) grant(c Capability, m *Manifest) string {
	if p.principal != "" {
		return fmt.Sprintf("grant %s to %s", quoted(suggested(c, m).String()), p.whom())
	}
	return "start the server with --cap " + ShellQuote(suggested(c, m).String())
}

// whom is whose policy it is, as the operator's file has it.
func (p *Policy) whom() string {
	return fmt.Sprintf(`the principal %s, in "principals" of the policy file`, quoted(p.principal))
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// askFor says what the operator would have to do for a capability that no grant
// overlaps, and what is granted instead.
func (p *Policy) askFor(c Capability, m *Manifest) string {
	if shown := p.shown(c.Kind); shown != "" {
		return "Declare what is granted: " + shown + "." + p.inside(c, m) + " For more ask the operator to " + p.grant(c, m) + "."
	}
	return "Ask the operator to " + p.grant(c, m) + "."
}

// inside is the capability that is meant where a scope is written as relative to the one
// granted directory, which no tool's is.
func (p *Policy) inside(c Capability, m *Manifest) string {
	var in []string
	for _, g := range p.grants {
		if g.Kind == c.Kind && p.holds(g) {
			in = append(in, g.Shown().Scope)
		}
	}
	part, relative := strings.CutPrefix(c.Scope, "./")
	if m.Algebra != Path || len(in) != 1 || !relative || !strings.HasPrefix(in[0], "./") {
		return ""
	}
	c.Scope = in[0] + "/" + part
	return fmt.Sprintf(" What %s is inside it is %s; paths are relative to that.", part, quoted(c.String()))
}

// shown is what is granted of a kind now, as tools see it.
func (p *Policy) shown(kind string) string {
	var shown []string
	for _, g := range p.grants {
		if g.Kind == kind && p.holds(g) {
			shown = append(shown, quoted(g.Shown().String()))
		}
	}
	return strings.Join(shown, ", ")
}

// absoluteHint is what to declare in place of an absolute path, the same for
// those that are granted, those that exist and all others.
func (p *Policy) absoluteHint(c Capability, m *Manifest) string {
	if shown := p.shown(c.Kind); shown != "" {
		return "Declare what is granted: " + shown + "."
	}
	c.Scope = placeholder(m)
	return fmt.Sprintf("Nothing of the kind is granted: declare %s, and ask the operator to %s.", quoted(c.String()), p.grant(c, m))
}

// A suggestion is the capability that a tool should declare for an operation.
type suggestion struct {
	Capability
	policy   *Policy
	manifest *Manifest
	// grant is the one it is of; nil: there is none of the kind. short is set
	// where the grant doesn't have the verb.
	grant *Grant
	short bool
}

// declaration suggests of what is granted where there is something: first what has the verb, then
// what has all that is acted on, as far as says tells both; see [Need.Says].
func (p *Policy) declaration(m *Manifest, o *Operation, says func(field string, isMain bool) (string, bool)) suggestion {
	s := suggestion{Capability: Capability{Kind: m.Kind, Verbs: o.verbs(), Scope: placeholder(m)}, policy: p, manifest: m}
	told := func(name string) string {
		param := o.param(name)
		text, _ := says(name, param != nil && param.Main)
		return text
	}
	if o.VerbParam != "" {
		if v, ok := m.Verb(strings.ToLower(told(o.VerbParam))); ok {
			s.Verbs = []string{v.Name}
		}
	}
	best := 0
	for _, g := range p.grants {
		if g.Kind != m.Kind || !p.holds(g) {
			continue
		}
		fits := 1
		if may := permitted(&g.Capability, m); !slices.ContainsFunc(s.Verbs, func(v string) bool { return !slices.Contains(may, v) }) {
			fits = 3
		}
		if m.Server == "" && !slices.ContainsFunc(o.Takes(), func(param Param) bool {
			text := told(param.Name)
			return param.Designates && text != "" && m.Algebra.Covers(g.Scope, folder(text)) != nil
		}) {
			fits++
		}
		if fits > best {
			best, s.grant, s.short, s.Scope = fits, g, fits < 3, g.Label
		}
	}
	return s
}

// granted tells whether nothing need be asked of the operator.
func (s *suggestion) granted() bool { return s.grant != nil && !s.short }

// lack says what isn't granted, and ask what to ask of the operator.
func (s *suggestion) lack() string {
	if s.short {
		return fmt.Sprintf("the verb %s isn't granted", strings.Join(s.Verbs, ", "))
	}
	return "nothing of the kind " + s.Kind + " is granted"
}

func (s *suggestion) ask() string {
	if s.short {
		return s.policy.widen(s.grant, s.Verbs)
	}
	return "ask the operator to " + s.policy.grant(s.Capability, s.manifest)
}

// unheld is the denial of an operation of whose kind the tool holds nothing: in
// an eval that isn't given it, or because what was declared isn't granted now,
// or wasn't when the tool was decided, or nothing was declared.
func (p *Policy) unheld(m *Manifest, o *Operation, r Request) *fault.Fault {
	s := p.declaration(m, o, r.says)
	var declared []Capability
	for _, text := range r.Declared[:min(len(r.Declared), MaxDeclared)] {
		if c, ok := p.entry(text); ok && c.Kind == m.Kind {
			declared = append(declared, c)
		}
	}
	if len(declared) > 0 {
		s.Capability = Capability{Kind: m.Kind, Verbs: s.Verbs, Scope: declared[0].Scope}
	}
	if p.lackingList(r.With, m, strings.Join(s.Verbs, "")) {
		return p.outsideEval(o, s.Capability)
	}
	for _, c := range declared {
		h, _, l := p.grantFor(c, m)
		if l != nil {
			return denied(fmt.Sprintf("%s: %s isn't granted now: %s", o.Name, c, l.why), l.hint)
		}
		if node := h.Grant.Node; r.Home != "" && node != "" && r.Home != node {
			return denied(fmt.Sprintf("%s: %s", o.Name, NotHere(r.Home, h.Grant)), fmt.Sprintf("Call it at the node %s, or tell the user; don't retry.", r.Home))
		}
	}
	message := fmt.Sprintf("%s: the tool %s holds no capability of the kind %s", o.Name, quoted(r.Tool), m.Kind)
	if len(declared) > 0 {
		return denied(message, fmt.Sprintf("What it declares is granted, and wasn't when it was made: evolve it anew with %s; don't retry.", quoted(s.String())))
	}
	hint := "Evolve it anew with the declaration " + quoted(s.String())
	if !s.granted() {
		hint += fmt.Sprintf("; %s: %s", s.lack(), s.ask())
	}
	return denied(message, hint+"; don't retry.")
}

// NotHere says why a tool doesn't act that was made at the node home, to act on a folder of that node's.
func NotHere(home string, g *Grant) string {
	return fmt.Sprintf("it acts on a folder of the node %s, and this is the node %s of the cluster: the operator can grant one that is the same on each with %s,shared=NAME", home, g.Node, g.Shown())
}

// lackingList tells whether a list of the evals around has nothing by which an
// operation of the verb could act.
func (p *Policy) lackingList(with [][]string, m *Manifest, verb string) bool {
	v, _ := m.Verb(verb)
	return slices.ContainsFunc(with, func(list []string) bool {
		return !slices.ContainsFunc(list[:min(len(list), MaxDeclared)], func(text string) bool {
			c, ok := p.entry(text)
			return ok && c.Kind == m.Kind && c.permits(v)
		})
	})
}
