package caps

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
)

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
		Kind: fault.Refused, Message: message, Hint: hint, In: d.o.In, At: n.At, Line: n.Line, Col: n.Col,
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
	h, err := named(m, o, held, n.In)
	if err != nil {
		d.problem(n, o.Name+": "+err.Error(), fmt.Sprintf(`Write {%q:{"in":%s,…}}.`, o.Name, quoted(held[0].Scope)))
		return
	}
	it := d.item(h)
	if o.VerbParam != "" {
		if held := permitted(&h.Capability, m); len(held) < len(m.Verbs) {
			d.note("%s: which %s the code uses can't be known before it runs; only %s is held", o.Name, o.VerbParam, strings.Join(held, ", "))
		}
		it.all = true
		return
	}
	v, _ := m.Verb(o.Verb)
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

func (d *decider) item(h *Held) *item {
	return d.items[slices.IndexFunc(d.items, func(it *item) bool { return it.held == h })]
}

// undeclared refuses an operation of a kind that the tool declared nothing of.
func (d *decider) undeclared(n Need, m *Manifest, o *Operation) {
	s := d.p.declaration(m, o)
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
	if len(w.Texts) > mostDeclared {
		d.problem(n, fmt.Sprintf("an eval is given at most %d capabilities", mostDeclared), "Give it wider ones.")
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
		s := d.p.declaration(m, o)
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
