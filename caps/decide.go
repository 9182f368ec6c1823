package caps

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
)

// MaxDeclared bounds a tool's declarations.
const MaxDeclared = 100

// DecideOptions is what [Policy.Decide] is told of the tool.
type DecideOptions struct {
	// Tool is the name of the tool, for hints; may be empty.
	Tool string
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
	d := &decider{p: p, o: o}
	if len(declared) > MaxDeclared {
		return Decision{}, refused(fmt.Sprintf("a tool declares at most %d capabilities", MaxDeclared), "Declare wider ones.")
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
	if s := fmt.Sprintf(format, a...); !slices.Contains(d.notes, s) {
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
		kind, write := fault.InvalidRequest, "Write KIND.VERB:SCOPE, such as fs.read:./sandbox."
		if name, _, _ := strings.Cut(strings.SplitN(text, ":", 2)[0], "."); isWord(name) {
			m, ok := d.p.kinds.Manifest(name)
			if !ok && strings.Contains(text, ":") {
				kind = fault.Refused
			}
			if ok && m.Server != "" {
				write = fmt.Sprintf("Write %s.VERB, or %[1]s for all that is granted of the server.", name)
			}
			for _, g := range d.p.grants {
				whole := strings.TrimSuffix(text, ":") + ":" + g.Shown().Scope
				if _, lacks := Parse(whole, d.p.kinds); ok && g.Kind == name && lacks == nil {
					err = &TextError{Text: text, At: len(text), Message: "the scope is missing"}
					write = fmt.Sprintf("Declare %s.", quoted(whole))
					break
				}
			}
		}
		return fail(kind, err.Error(), write)
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
	} else if all && m.Server != "" && len(permitted(&h.Grant.Capability, m)) == 0 {
		return nil, fail(fault.Refused, fmt.Sprintf("%s: none of its operations was accepted as read-only", c), upper(unaccepted(c.Kind))+".")
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

// A denial is what the operator took out of every grant.
type denial struct {
	Capability
	manifest *Manifest
	// abs and real are where a path is, as it was written and with links
	// resolved as far as it exists.
	abs, real string
}

func (p *Policy) denial(dir string, c Capability) (denial, error) {
	c, err := ParsePattern(c.String(), p.kinds)
	if err != nil {
		return denial{}, err
	}
	if len(c.Options) > 0 || c.Limits != (Limits{}) || !c.Until.IsZero() || c.Name != "" {
		return denial{}, fmt.Errorf("%s: it has options or a name, where only KIND, verbs and a scope can stand", c)
	}
	m, _ := p.kinds.Manifest(c.Kind)
	d := denial{Capability: c, manifest: m}
	if m.Algebra == Path {
		dir = cmp.Or(dir, ".")
		if d.abs, err = absolutePath(dir, c.Scope); err != nil {
			return denial{}, fmt.Errorf("%s: %w", c, err)
		}
		d.real = realPrefix(d.abs)
	}
	return d, nil
}

// below is the paths below a grant's root that are denied, "." for all of it;
// none where the denial lies elsewhere. A relative denial is meant for what
// lies there and for what tools call by that name.
func (d *denial) below(g *Grant) []string {
	var list []string
	add := func(root, path string, within func(outer, inner string) (string, bool)) {
		rel, ok := within(root, path)
		if _, all := within(path, root); all {
			rel, ok = ".", true
		}
		if ok && !slices.Contains(list, rel) {
			list = append(list, rel)
		}
	}
	add(g.abs, d.abs, inside)
	add(g.Real, d.real, leads)
	add(g.Real, d.abs, inside)
	if rel, ok := below(g.Label, d.Scope); ok && g.Label != "." && !slices.Contains(list, rel) {
		list = append(list, rel)
	}
	return list
}

// relate finds out which denials concern which grants, and which parts of them
// were taken back; p.mu is held.
func (p *Policy) relate() {
	p.concern = make(map[string][]Capability, len(p.grants))
	p.taken = nil
	for _, g := range p.grants {
		p.taken = append(p.taken, p.takenFrom(g)...)
		p.concern[g.ID] = append(p.concerning(g), p.takenDenies(g)...)
	}
	p.changes.Add(1)
}

// deniesOf is what concerns a grant of the policy, not to be changed.
func (p *Policy) deniesOf(g *Grant) []Capability { return p.concern[g.ID] }

// concerning is the denials that concern a grant, for those that can decide better
// on what was opened: the scope of a Path one is the path below the grant's
// root.
func (p *Policy) concerning(g *Grant) []Capability {
	var list []Capability
	for i := range p.denies {
		d := &p.denies[i]
		if d.Kind != g.Kind {
			continue
		}
		if g.Manifest.Algebra == Path {
			for _, rel := range d.below(g) {
				list = append(list, Capability{Kind: d.Kind, Verbs: d.Verbs, Scope: rel})
			}
		} else if g.Manifest.Algebra.Overlaps(d.Scope, g.Scope) {
			list = append(list, d.Capability)
		}
	}
	return list
}

// ShownDenies is the denials as tools see them, in the order of their texts: a path
// by the names of the grants that it concerns, and of one that concerns none no more
// than its last part, if it is absolute.
func (p *Policy) ShownDenies() []string {
	p.mu.RLock()
	defer p.mu.RUnlock()
	var texts []string
	for i := range p.denies {
		d := &p.denies[i]
		var shown []Capability
		for _, g := range p.grants {
			if d.manifest.Algebra != Path || g.Kind != d.Kind {
				continue
			}
			for _, rel := range d.below(g) {
				shown = append(shown, Capability{Kind: d.Kind, Verbs: d.Verbs, Scope: g.shownScope(rel)})
			}
		}
		if shown == nil {
			c := d.Capability
			if d.manifest.Algebra == Path {
				c.Scope = label(c)
			}
			shown = []Capability{c}
		}
		for _, c := range shown {
			texts = append(texts, c.String())
		}
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

// deniedArgument tells whether acting by a verb on what an argument designates
// is denied: it lies in a denied scope, or it has one inside and the verb
// changes things. For Path the argument is the path below the grant's root.
func deniedArgument(a Algebra, denies []Capability, verb Verb, argument string) bool {
	for i := range denies {
		d := &denies[i]
		meant := d.has(verb.Name)
		switch {
		case a == Path:
			if _, in := pathInside(d.Scope, argument); in && meant {
				return true
			}
			if _, around := pathInside(argument, d.Scope); around && !verb.ReadOnly {
				return true
			}
		case !meant:
		case a == URL:
			if a.Covers(d.Scope, argument) == nil {
				return true
			}
		case a.Overlaps(d.Scope, argument):
			return true
		}
	}
	return false
}

// place says where a need is, with a space before.
func place(n Need) string {
	switch {
	case n.Line > 0:
		return fmt.Sprintf(" at %d:%d", n.Line, n.Col)
	case n.At == "":
		return " at /"
	}
	return " at " + string(n.At)
}

// problem keeps a refusal at a place.
func (d *decider) problem(n Need, message, hint string) {
	d.faults = append(d.faults, &fault.Fault{
		Kind: fault.Refused, Message: message, Hint: hint, In: "code", At: n.At, Line: n.Line, Col: n.Col,
	})
}

// failure is the refusal of everything that is wrong: the first one, with up to
// four more; the message names every place.
func (d *decider) failure() *fault.Fault {
	if len(d.faults) == 0 {
		return nil
	}
	f := d.faults[0]
	// One operation in many places is one mistake.
	same := 0
	for _, g := range d.faults[1:] {
		if g.Message == f.Message && g.Hint == f.Hint {
			same++
			if same <= 10 {
				f.Message += place(Need{At: g.At, Line: g.Line, Col: g.Col})
			}
			continue
		}
		if len(f.More) < 4 {
			f.More = append(f.More, g)
		}
	}
	return f
}

// use holds an effect in the code against what the tool has.
func (d *decider) use(n Need) {
	m, o, ok := d.p.kinds.Operation(n.Name)
	if !ok {
		d.problem(n, "unknown operation "+quoted(n.Name), d.p.operationHint(n.Name))
		d.faults[len(d.faults)-1].Near = d.p.nearOperation(n.Name)
		return
	}
	var held []*Held
	for _, it := range d.items {
		if it.held.Kind == m.Kind {
			held = append(held, it.held)
		}
	}
	if len(held) == 0 {
		d.undeclared(n, m, o)
		return
	}
	h, err := Named(m, o, held, n.In)
	if err != nil {
		d.problem(n, o.Name+": "+err.Error(), fmt.Sprintf(`Write {%q:{"in":%s,…}}.`, o.Name, quoted(held[0].Scope)))
		return
	}
	it := d.items[slices.IndexFunc(d.items, func(it *item) bool { return it.held == h })]
	v, known := m.Verb(o.Verb)
	if o.VerbParam != "" {
		var text string
		main := o.main()
		if text, known = n.Says(o.VerbParam, main != nil && main.Name == o.VerbParam); known {
			v, known = m.Verb(cmp.Or(strings.ToLower(text), o.Verb))
		}
	}
	if !known {
		if held := permitted(&h.Capability, m); len(held) < len(m.Verbs) {
			d.note("%s: which %s the code uses can't be known before it runs; only %s is held", o.Name, o.VerbParam, strings.Join(held, ", "))
		}
		it.all = true
		return
	}
	if !h.permits(v) && m.Server != "" {
		d.undeclared(n, m, o)
		return
	}
	if !h.permits(v) {
		d.withoutVerb(n, it, o, v)
		return
	}
	if !slices.Contains(it.used, v.Name) {
		it.used = append(it.used, v.Name)
	}
}

// undeclared refuses an operation of a kind that the tool declared nothing of.
func (d *decider) undeclared(n Need, m *Manifest, o *Operation) {
	s := d.p.declaration(m, o, n.Says)
	text := s.String()
	if s.granted() {
		d.problem(n, fmt.Sprintf("the code uses %s, which isn't declared", o.Name), fmt.Sprintf(`Add "capabilities":[%s].`, quoted(text)))
		return
	}
	d.problem(n, fmt.Sprintf("the code uses %s, which isn't declared, and %s", o.Name, s.lack()),
		fmt.Sprintf(`Add "capabilities":[%s], and %s.`, quoted(text), s.ask()))
}

// withoutVerb refuses an operation whose verb a capability doesn't have.
func (d *decider) withoutVerb(n Need, it *item, o *Operation, v Verb) {
	if !it.declared.permits(v) {
		c := it.declared
		if c.Verbs != nil {
			c.Verbs = slices.Sorted(slices.Values(append([]string{v.Name}, c.Verbs...)))
		}
		c.Options = maps.Clone(c.Options)
		delete(c.Options, optionRO)
		d.problem(n, fmt.Sprintf("the code uses %s, and %s doesn't have the verb %s", o.Name, it.declared, v.Name),
			fmt.Sprintf("Declare %s.", quoted(c.String())))
		return
	}
	if it.held.Grant.permits(v) {
		d.problem(n, fmt.Sprintf("the code uses %s, which the operator denies for %s", o.Name, it.held), "Do without it: no call can change that.")
		return
	}
	d.problem(n, fmt.Sprintf("the code uses %s, which isn't granted for %s", o.Name, it.held), upper(d.p.widen(it.held.Grant, []string{v.Name}))+".")
}

// call holds a call of a tool by its name against the declarations.
func (d *decider) call(n Need) {
	text := Capability{Kind: CallKind, Scope: n.Name}.String()
	for i := range d.p.denies {
		if deny := &d.p.denies[i]; deny.Kind == CallKind && callNames.Contains(deny.Scope, n.Name) {
			d.problem(n, fmt.Sprintf("the code calls %s, which the operator denies", quoted(n.Name)), "Do without it: no call can change that.")
			return
		}
	}
	found := false
	for _, it := range d.items {
		if it.held.Kind == CallKind && callNames.Contains(it.held.Scope, n.Name) {
			it.all, found = true, true
		}
	}
	if found {
		return
	}
	hint := fmt.Sprintf("Add %s to the capabilities.", quoted(text))
	if n.Name == d.o.Tool {
		hint = "A tool that goes on with itself says self, not call. " + hint
	}
	d.problem(n, fmt.Sprintf("the code calls %s, which isn't declared", quoted(n.Name)), hint)
}

// with holds the list of an eval against the declarations.
func (d *decider) with(w With) {
	n := Need{At: w.At, Line: w.Line, Col: w.Col}
	if len(w.Texts) > MaxDeclared {
		d.problem(n, fmt.Sprintf("an eval is given at most %d capabilities", MaxDeclared), "Give it wider ones.")
		return
	}
	for _, text := range w.Texts {
		c, err := Parse(text, d.p.kinds)
		if err != nil {
			d.problem(n, err.Error(), "Write one of the tool's own capabilities.")
			continue
		}
		if m, _ := d.p.kinds.Manifest(c.Kind); m.Algebra == Path && absolute(c.Scope) {
			d.problem(n, fmt.Sprintf("the eval is given %s: a tool says paths by the names that it sees, never absolute ones", c), d.p.absoluteHint(c, m))
			continue
		}
		found := false
		for _, it := range d.items {
			if c.Kind != it.held.Kind || !verbsContain(it.declared, c, it.manifest) || !d.has(it, c) {
				continue
			}
			found = true
			if it.held.Grant == nil {
				it.all = true
				continue
			}
			for _, v := range it.manifest.Verbs {
				if c.permits(v) && it.held.permits(v) && !slices.Contains(it.used, v.Name) {
					it.used = append(it.used, v.Name)
				}
			}
		}
		if !found {
			d.problem(n, fmt.Sprintf("the eval is given %s, which isn't within what the tool declares", c), fmt.Sprintf("Declare %s, or give the eval less.", quoted(c.String())))
		}
	}
}

// has tells whether a capability's scope lies in a declaration.
func (d *decider) has(it *item, c Capability) bool {
	if it.manifest.Algebra == Path {
		if rel, ok := it.held.Grant.within(c.Scope); ok {
			_, in := pathInside(it.held.Within, rel)
			return in
		}
		return false
	}
	return it.manifest.Algebra.Contains(it.declared.Scope, c.Scope)
}

// unknown notes what can't be known before the tool runs.
func (d *decider) unknown(needs []Need) {
	for _, n := range needs {
		for _, it := range d.items {
			if n.Name == CallKind && it.held.Kind == CallKind {
				it.all = true
			}
		}
		d.note("what %s%s will be is known only when it runs; it can do no more than the tool's capabilities", strings.TrimSpace(n.Name), place(n))
	}
}

// inert notes what stands in code that no eval lets act.
func (d *decider) inert(n Need) {
	text := n.Name
	if m, o, ok := d.p.kinds.Operation(n.Name); ok {
		s := d.p.declaration(m, o, n.Says)
		for _, it := range d.items {
			if it.held.Kind == m.Kind {
				s.Scope = it.held.Scope
				break
			}
		}
		text = s.String()
	}
	d.note("%s%s stands in quoted code, where it can't act. %s The tool declares it, too", n.Name, place(n), insideEval(text))
}

// realOf is where a path below the grant's root is.
func (g *Grant) realOf(within string) string {
	if g.File != "" || within == "." {
		return g.Real
	}
	return filepath.Join(g.Real, filepath.FromSlash(within))
}
