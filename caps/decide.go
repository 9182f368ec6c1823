package caps

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
)

// mostDeclared bounds a tool's declarations.
const mostDeclared = 100

// DecideOptions is what [Policy.Decide] is told of the tool.
type DecideOptions struct {
	// Tool is the name of the tool, for hints; may be empty.
	Tool string
	// In is the document of faults; empty: "code".
	In string
}

// A Decision is what a tool version may do.
type Decision struct {
	// Held is in the order of Texts.
	Held []*Held
	// Texts is the exact effective capabilities, canonical, as tools see them.
	Texts []string
	// Ask is those of Held that a person has to approve first.
	Ask []*Held
	// Notes are sentences for whoever evolved the tool.
	Notes []string
}

// Decide gives what a tool may do: what its code can reach, and it declared, and
// the operator granted and didn't deny, and the plugin can do. It refuses a tool
// whose code uses what isn't among that, naming each place and what to do, and
// a declaration of which nothing is granted.
func (p *Policy) Decide(declared []string, n Needs, o DecideOptions) (Decision, *fault.Fault) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if o.In == "" {
		o.In = "code"
	}
	d := &decider{p: p, o: o}
	if len(declared) > mostDeclared {
		return Decision{}, refused(fmt.Sprintf("a tool declares at most %d capabilities", mostDeclared), "Declare wider ones.")
	}
	for i, text := range declared {
		if f := d.declare(i, text); f != nil {
			return Decision{}, f
		}
	}
	d.merge()
	for _, need := range n.Ops {
		d.use(need)
	}
	for _, need := range n.Calls {
		d.call(need)
	}
	for _, with := range n.Withs {
		d.with(with)
	}
	d.unknown(n.Unknown)
	for _, need := range n.Inert {
		d.inert(need)
	}
	if f := d.failure(); f != nil {
		return Decision{}, f
	}
	return d.decision(), nil
}

// A decider is one evolve on its way through the rules.
type decider struct {
	p      *Policy
	o      DecideOptions
	items  []*item
	notes  []string
	faults []*fault.Fault
}

// An item is a declaration and what it became.
type item struct {
	declared Capability
	held     *Held
	manifest *Manifest
	used     []string // verbs
	all      bool     // every verb may be used
	isRest   bool     // it has the verbs that another grant of the same declaration lacks
}

func (d *decider) note(format string, a ...any) {
	s := fmt.Sprintf(format, a...)
	if !slices.Contains(d.notes, s) {
		d.notes = append(d.notes, s)
	}
}

func refused(message, hint string) *fault.Fault {
	return &fault.Fault{Kind: fault.Refused, Message: message, Hint: hint}
}

// declare decides one declaration.
func (d *decider) declare(i int, text string) *fault.Fault {
	fail := func(kind fault.Kind, message, hint string) *fault.Fault {
		return &fault.Fault{Kind: kind, Message: message, Hint: hint, In: "capabilities", At: fault.Pointer("").Index(i)}
	}
	c, err := Parse(text, d.p.kinds)
	if err != nil {
		kind := fault.InvalidRequest
		if name, _, _ := strings.Cut(strings.SplitN(text, ":", 2)[0], "."); isWord(name) {
			if _, ok := d.p.kinds.Manifest(name); !ok && strings.Contains(text, ":") {
				kind = fault.Refused
			}
		}
		return fail(kind, err.Error(), "Write KIND.VERB:SCOPE, such as fs.read:./sandbox.")
	}
	if c.Name != "" {
		return fail(fault.InvalidRequest, fmt.Sprintf("%s: only the operator names paths", c), fmt.Sprintf("Declare %s.", quoted(c.Kind+":"+c.Name)))
	}
	m, _ := d.p.kinds.Manifest(c.Kind)
	if c.Kind == CallKind {
		return d.declareCall(c, fail)
	}
	if m.Algebra == Path && absolute(c.Scope) {
		return fail(fault.Refused, fmt.Sprintf("%s: a tool declares paths by the names that it sees, never absolute ones", c), d.p.absoluteHint(c, m))
	}
	missing, f := d.hold(c, m, false, fail)
	for _, v := range missing {
		if f == nil && slices.Contains(c.Verbs, v) {
			d.note("%s: the verb %s isn't granted", c, v)
		}
	}
	return f
}

// hold holds a declaration under the grant that is best for it, and what verbs that
// grant lacks under others. isRest is set for those. missing is the verbs that no grant
// gives.
func (d *decider) hold(c Capability, m *Manifest, isRest bool, fail func(fault.Kind, string, string) *fault.Fault) (missing []string, f *fault.Fault) {
	h, whole, lacks := d.p.grantFor(c, m)
	if h == nil {
		return nil, fail(fault.Refused, fmt.Sprintf("%s: %s", c, lacks.why), lacks.hint)
	}
	if !whole {
		d.note("%s is granted in part: the tool has %s", c, h)
	}
	missing = slices.DeleteFunc(permitted(&c, m), func(v string) bool { return slices.Contains(permitted(&h.Capability, m), v) })
	if len(missing) > 0 {
		rest := c
		rest.Verbs = missing
		if left, f := d.hold(rest, m, true, fail); f == nil {
			missing = left
		}
	}
	if l := c.Limits; l.and(h.Grant.Limit()) != l && l != (Limits{}) && exceeds(l, h.Grant.Limit()) {
		d.note("%s: the limits of %s hold", c, h.Grant.Shown())
	}
	if all, took := d.deny(h, m); took {
		return nil, fail(fault.Refused, fmt.Sprintf("%s: revoked by the operator", c), d.p.restoreHint(h.Grant.Shown().String(), d.p.takenBy(h.Grant)))
	} else if all {
		return nil, fail(fault.Refused, fmt.Sprintf("%s: the operator denies it", c), "Do without it: no call can change that.")
	}
	d.items = append(d.items, &item{declared: c, held: h, manifest: m, isRest: isRest})
	return missing, nil
}

// exceeds reports whether some limit is wider than the grant's.
func exceeds(l, grant Limits) bool {
	return l.Calls > grant.Calls || l.Bytes > grant.Bytes || l.Max > grant.Max || l.Timeout > grant.Timeout ||
		l.Rate.Per != 0 && grant.Rate.Per != 0 && l.Rate.and(grant.Rate) != l.Rate
}

func (d *decider) declareCall(c Capability, fail func(fault.Kind, string, string) *fault.Fault) *fault.Fault {
	for i := range d.p.denies {
		switch deny := &d.p.denies[i]; {
		case deny.Kind != CallKind:
		case callNames.Contains(deny.Scope, c.Scope):
			return fail(fault.Refused, fmt.Sprintf("%s: the operator denies it", c), "Do without it: no call can change that.")
		case callNames.Overlaps(deny.Scope, c.Scope):
			d.note("%s: the operator denies a part of it, %s", c, deny.Capability)
		}
	}
	h := &Held{Capability: c, Within: c.Scope, Declared: c.Scope}
	d.items = append(d.items, &item{declared: c, held: h, manifest: callManifest})
	return nil
}

// grantFor finds the grant that a declaration is best held under: one that has
// all of it before one that has a part, then the one with more of the verbs, then
// the narrower one. Without one it says what is lacking.
func (p *Policy) grantFor(c Capability, m *Manifest) (best *Held, whole bool, l *lack) {
	l = &lack{why: "nothing of the kind " + c.Kind + " is granted"}
	score := -1
	for _, g := range p.grants {
		if g.Kind != c.Kind {
			continue
		}
		if l.rank == 0 {
			l.why = "it isn't granted"
		}
		scope, within, all, ok := g.meet(c.Scope)
		if !ok {
			continue
		}
		if lacks := p.lacking(g, c); lacks != nil {
			if lacks.rank > l.rank {
				l = lacks
			}
			continue
		}
		narrowed, _ := c.narrowTo(g.Capability, m)
		s := len(permitted(&narrowed, m))*(maxScope+1) + len(g.Label)
		if all {
			s += 1 << 30
		}
		if s <= score {
			continue
		}
		narrowed.Scope, narrowed.Name = scope, ""
		best, whole, score = &Held{Capability: narrowed, Grant: g, Within: within, Declared: c.Scope}, all, s
	}
	if best != nil {
		return best, whole, nil
	}
	if l.hint == "" {
		l.hint = p.askFor(c, m)
	}
	return nil, false, l
}

// deny takes the verbs out that are denied for all of what is held; all tells
// that none is left, and took that one would be if nothing had been taken back.
func (d *decider) deny(h *Held, m *Manifest) (all, took bool) {
	whole := permitted(&h.Capability, m)
	denies := d.p.deniesOf(h.Grant)
	left := h.undenied(m, denies)
	if len(left) == 0 {
		own := denies[:len(denies)-len(d.p.takenDenies(h.Grant))]
		return true, len(h.undenied(m, own)) > 0
	}
	if len(left) < len(whole) {
		h.setVerbs(left)
		d.note("%s: the operator denies other verbs", h)
	}
	for _, deny := range denies {
		if m.Algebra != Path {
			if m.Algebra.Overlaps(deny.Scope, h.Scope) && !m.Algebra.Contains(deny.Scope, h.Scope) {
				d.note("the operator denies %s, a part of %s", deny, h)
			}
		} else if rel, in := pathInside(h.Within, deny.Scope); in && rel != "." {
			deny.Scope = h.Grant.shownScope(deny.Scope)
			d.note("the operator denies %s, a part of %s", deny, h)
		}
	}
	return false, false
}

// undenied is the verbs that denials leave of all that is held.
func (h *Held) undenied(m *Manifest, denies []Capability) []string {
	var left []string
	for _, name := range permitted(&h.Capability, m) {
		if !slices.ContainsFunc(denies, func(deny Capability) bool {
			if !deny.has(name) {
				return false
			}
			if m.Algebra == Path {
				_, in := pathInside(deny.Scope, h.Within)
				return in
			}
			return m.Algebra.Contains(deny.Scope, h.Scope)
		}) {
			left = append(left, name)
		}
	}
	return left
}

// setVerbs narrows to verbs, and drops ro where they say it already.
func (h *Held) setVerbs(verbs []string) {
	h.Verbs = slices.Sorted(slices.Values(verbs))
	if _, ro := h.Options[optionRO]; ro {
		options := map[string]string{}
		for name, value := range h.Options {
			if name != optionRO {
				options[name] = value
			}
		}
		if h.Options = options; len(options) == 0 {
			h.Options = nil
		}
	}
}

// merge makes one of declarations that differ in their verbs only, so that no
// request has to say which it means.
func (d *decider) merge() {
	var kept []*item
	for _, it := range d.items {
		i := slices.IndexFunc(kept, func(k *item) bool {
			return k.held.Grant == it.held.Grant && k.held.Within == it.held.Within && sameBut(k.held.Capability, it.held.Capability)
		})
		if i < 0 {
			kept = append(kept, it)
			continue
		}
		into := kept[i]
		if into.held.Verbs == nil || it.held.Verbs == nil {
			into.held.Verbs, into.declared.Verbs = nil, nil
			continue
		}
		union := func(a, b []string) []string {
			all := slices.Sorted(slices.Values(slices.Concat(a, b)))
			return slices.Compact(all)
		}
		into.held.Verbs = union(into.held.Verbs, it.held.Verbs)
		if into.declared.Verbs != nil && it.declared.Verbs != nil {
			into.declared.Verbs = union(into.declared.Verbs, it.declared.Verbs)
		} else {
			into.declared.Verbs = nil
		}
	}
	d.items = kept
}

// decision is what is left: the verbs that can be used of what is held.
func (d *decider) decision() Decision {
	var out Decision
	callsServer := slices.ContainsFunc(d.items, func(it *item) bool { return it.used != nil && it.manifest.Server != "" })
	for _, it := range d.items {
		h := it.held
		if it.used == nil && it.manifest.Lent && callsServer {
			it.used = permitted(&h.Capability, it.manifest)
		}
		if it.used == nil && !it.all {
			if !it.isRest {
				d.note("%s is declared and not used: the tool doesn't get it", it.declared)
			}
			continue
		}
		if h.Grant != nil {
			if _, ro := h.Options[optionRO]; !it.all {
				h.setVerbs(it.used)
			} else if ro {
				h.setVerbs(permitted(&h.Capability, it.manifest))
			}
			if d.p.asks(h, it.manifest) {
				out.Ask = append(out.Ask, h)
			}
		}
		out.Held = append(out.Held, h)
	}
	slices.SortStableFunc(out.Held, func(a, b *Held) int { return strings.Compare(a.String(), b.String()) })
	for _, h := range out.Held {
		out.Texts = append(out.Texts, h.String())
	}
	out.Notes = d.notes
	return out
}

// DecideInline refuses inline code that would act: it never has authority. It
// tells to evolve a tool, with the declaration, and the flag where nothing is
// granted. nil: the code asks for nothing.
func (p *Policy) DecideInline(n Needs) *fault.Fault {
	if len(n.Ops) == 0 {
		return nil
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	need := n.Ops[0]
	var f *fault.Fault
	if m, o, ok := p.kinds.Operation(need.Name); ok {
		f = p.inline(m, o)
	} else {
		f = p.unknownOperation(need.Name)
	}
	f.In, f.At, f.Line, f.Col = "code", need.At, need.Line, need.Col
	return f
}
