package flow

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// check refuses rules that can't be meant.
func (p *Policy) check(granted Granted, partial bool) error {
	var sourced Atoms // that something granted, or the session, can give
	for i, s := range p.Sources {
		if slices.ContainsFunc(granted, s.of.Reaches) {
			sourced |= s.Atoms
		} else if !partial && !slices.ContainsFunc(p.Rules, func(r *Rule) bool { return r.Forbidden()&s.Atoms != 0 }) {
			return fmt.Errorf("source %d, %s, is granted by nothing and no rule names it", i+1, s.Of)
		}
	}
	sourced |= p.Start
	for kind, marks := range p.marks {
		if slices.ContainsFunc(granted, func(g *caps.Grant) bool { return g.Manifest.Kind == kind }) {
			sourced |= marks[0] | marks[1]
		}
	}
	about := Atoms(0)
	for _, r := range p.Rules {
		about |= r.Forbidden()
	}
	if unused := p.Start &^ about; unused != 0 && !partial {
		return fmt.Errorf("flow.session: no rule is about %s, so that the model has seen it from the start changes nothing", p.Words(unused))
	}
	for _, r := range p.Rules {
		place := r.place
		if place == "" {
			place = fmt.Sprintf("rule %d", r.N)
		}
		if possible := r.Forbidden()&sourced != 0 && (r.AllOf == 0 || r.AllOf&sourced == r.AllOf); !possible && !partial {
			return fmt.Errorf("%s: it can never match: nothing that is granted gives %s", place, conjoin(p.names.list(r.Forbidden()&^sourced), "or"))
		}
		if always := r.AllOf | r.NotFrom&p.Start; always != 0 && always&^p.Start == 0 && r.Any && !p.IgnoreSession {
			return fmt.Errorf("%s: it always matches: flow.session says that the model has seen %s from the start, so that every %s depends on it",
				place, conjoin(p.names.list(always), "and"), cmp.Or(map[string]string{Model: "result"}[r.To], "request of "+r.To))
		}
		if r.To != Model && !partial && !slices.ContainsFunc(granted, r.to.Reaches) {
			wrong := fmt.Errorf("%s: it can never match: no grant permits %s", place, r.To)
			if i := strings.LastIndexByte(r.To, ':'); i > 0 && !strings.ContainsAny(r.To[i:], "/.") && strings.Contains(r.To[:i], ":") {
				wrong = fmt.Errorf("%w; what follows the last colon is an argument if it is one of %s", wrong, conjoin(argumentsOf(r.To[:i], p.kinds), "and"))
			}
			return wrong
		}
	}
	return nil
}

// index finds out which rules and sources each operation may meet.
func (p *Policy) index() {
	for _, r := range p.Rules {
		p.rules |= r.Forbidden()
		if r.To == Model {
			p.model = append(p.model, r)
		}
	}
	for _, m := range p.kinds {
		for i := range m.Operations {
			o := &m.Operations[i]
			for _, r := range p.Rules {
				if r.To != Model && (r.op == "" || r.op == o.Name) && r.to.May(m, o) {
					p.byOp[o.Name] = append(p.byOp[o.Name], r)
				}
			}
			for _, s := range p.Sources {
				if v, ok := m.Verb(o.Verb); s.of.May(m, o) || s.store == m.Kind && ok && !v.OpenWorld {
					p.ofOp[o.Name] = append(p.ofOp[o.Name], s)
				}
			}
		}
	}
}

// Matching is the rules that a request has to keep, in their order.
func (p *Policy) Matching(permit *caps.Permit) (list []*Rule) {
	for _, r := range p.byOp[permit.Operation.Name] {
		if r.to.Meets(permit) {
			list = append(list, r)
		}
	}
	return list
}

// Sourcing is the sources that an outcome comes from.
func (p *Policy) Sourcing(permit *caps.Permit) (list []*Source) {
	for _, s := range p.ofOp[permit.Operation.Name] {
		if s.of.Reads(permit) || s.store == permit.Held.Kind && !permit.Flags.OpenWorld && s.of.Near(permit) {
			list = append(list, s)
		}
	}
	return list
}

// Came is the sources that an answer comes from, and which of them label it part by part, if that is one alone; alone is
// set where the same would have been answered to any question. A server's answer, or the value of its failure, may say
// of itself that it is untrusted or private.
func (p *Policy) Came(permit *caps.Permit, answer value.Value) (all Atoms, by *Source, alone bool) {
	sources := p.Sourcing(permit)
	var marks Atoms
	said, marked := false, false
	if m := permit.Held.Grant.Manifest; m.Server != "" {
		if r, ok := value.Force(answer).(*value.Record); ok {
			for _, f := range r.Fields {
				list, isList := value.Slice(value.Force(f.Value))
				if f.Key != "ifc" || !isList {
					continue
				}
				said = true
				for _, one := range list {
					s, _ := value.Force(one).(value.Str)
					if i := slices.Index(markNames[:], string(s)); i >= 0 {
						marked, marks = true, marks|p.marks[m.Kind][i]
					}
				}
			}
		}
	}
	if said && !marked {
		sources = slices.DeleteFunc(sources, func(s *Source) bool { return s.trust })
	}
	alone = len(sources) > 0
	for _, s := range sources {
		all |= s.Atoms
		alone = alone && s.IgnoreArguments
	}
	if len(sources) == 1 && marks == 0 {
		by = sources[0]
	}
	return all | marks, by, alone
}

// Gives is the sources that answers under what is held, which a grant permits, may come from.
func (p *Policy) Gives(h *caps.Held) (a Atoms) {
	for _, s := range p.Sources {
		near := s.store == h.Kind && slices.ContainsFunc(h.Grant.Manifest.Verbs, func(v caps.Verb) bool { return !v.OpenWorld && h.Can(v) })
		if s.of.Lies(h, near) {
			a |= s.Atoms
		}
	}
	marks := p.marks[h.Kind]
	return a | marks[0] | marks[1]
}

// stores reports whether an operation of a kind keeps what it is given for others to read:
// it changes something, on this machine.
func stores(m *caps.Manifest, o *caps.Operation) bool {
	if m.Server != "" {
		return false
	}
	v, ok := m.Verb(o.Verb)
	return ok && o.VerbParam == "" && !v.ReadOnly && (!v.OpenWorld || remembers(m))
}

// remembers reports whether what is sent to a kind comes back with what it gives later: it
// drives a process.
func remembers(m *caps.Manifest) bool { return slices.Contains(m.Privileges, "command") }

// Stores reports whether a request keeps what it is given for others to read.
func (p *Policy) Stores(permit *caps.Permit) bool {
	return p != nil && p.rules != 0 && stores(permit.Held.Grant.Manifest, permit.Operation)
}

// Moves reports whether a request acts on several stores of which one may take on a label while it is under way.
func (p *Policy) Moves(permit *caps.Permit) bool {
	return len(permit.Designates) > 1 && !p.Report && p.Stores(permit) && slices.ContainsFunc(p.Rules, func(r *Rule) bool {
		m := permit.Held.Grant.Manifest
		return r.Else == Taint && slices.ContainsFunc(m.Operations, func(o caps.Operation) bool { return r.to.May(m, &o) })
	})
}

// Unkept reports whether whatever depends on sources is denied to an operation that keeps it, also where a rule would
// ask a person: no source is about a place that the rule is about, with those as its label.
func (p *Policy) Unkept(op string, r *Rule, from Atoms, grants []*caps.Grant) bool {
	m, o, ok := p.kinds.Operation(op)
	if !ok || !stores(m, o) || remembers(m) {
		return false
	}
	reached := false
	for _, g := range grants {
		if g == nil || g.Kind != m.Kind || !r.to.Reaches(g) {
			continue
		}
		left := from
		for _, s := range p.Sources {
			if s.of.Overlaps(g) && s.of.Together(&r.to) {
				left &^= s.Atoms
			}
		}
		for _, t := range p.byOp[op] {
			if t.Else == Taint && t.to.Reaches(g) && t.to.Together(&r.to) {
				left &^= t.Forbidden()
			}
		}
		if reached = true; p.About(left) == 0 {
			return false
		}
	}
	return reached
}

// Remembers reports whether a store has the label of whatever was sent to it.
func (p *Policy) Remembers(permit *caps.Permit) bool { return remembers(permit.Held.Grant.Manifest) }

// StoreLabel is the sources that a store's own label has, whatever is written there: a policy gives
// it one by a source. moved is those of what a request takes along from where it acts.
func (p *Policy) StoreLabel(permit *caps.Permit) (label, moved Atoms) {
	for _, s := range p.Sources {
		if s.of.Keeps(permit) {
			label |= s.Atoms
		}
		if len(permit.Designates) > 1 && s.of.Near(permit) {
			moved |= s.Atoms
		}
	}
	return label, moved
}

// Store is what the policy calls the store that a request writes to, for [Session.Taint]: what the rule
// is about, or else all that the request's capability has.
func (r *Rule) Store(permit *caps.Permit) string {
	if r != nil && r.Else == Taint {
		return r.to.Anywhere()
	}
	g := permit.Held.Grant
	return caps.Capability{Kind: g.Kind, Scope: cmp.Or(filepath.ToSlash(g.Real), g.Scope)}.String()
}

// Keeps reports whether all that a request designates lies in the scope of the rule, whatever the verb; of none it doesn't.
func (r *Rule) Keeps(permit *caps.Permit) bool { return r != nil && r.to.Keeps(permit) }

// About is the sources among some that rules are about.
func (p *Policy) About(a Atoms) Atoms { return a & p.rules }

// Shown is the rules about what the model is shown.
func (p *Policy) Shown() []*Rule {
	if p == nil {
		return nil
	}
	return p.model
}

// Keeps reports whether something of sources may not be shown to the model.
func (p *Policy) Keeps(a Atoms) bool {
	return p != nil && !p.Report && slices.ContainsFunc(p.model, func(r *Rule) bool { return r.Violation(Both(a), Both(a)) != 0 })
}

// Released is the sources that a version's results lose on the way to where a rule is about. hash gives that of all of
// its code.
func (p *Policy) Released(name string, hash func() string, r *Rule) (a Atoms) {
	for _, rel := range p.releases {
		if rel.name == name && rel.hash == hash() && (rel.to == nil || slices.Contains(rel.to, r.To)) {
			a |= rel.from
		}
	}
	return a
}

// Names is the names of sources.
func (p *Policy) Names(a Atoms) []string { return p.names.list(a) }

// Known is the sources among names that the policy has; those that it hasn't are gone from it.
func (p *Policy) Known(list []string) (a Atoms) {
	for _, name := range list {
		a |= p.names.of(name)
	}
	return a
}

// Words is a set of sources in a sentence: "mail and web".
func (p *Policy) Words(a Atoms) string { return conjoin(p.names.list(a), "and") }

// givers is what is read to get sources, in words.
func (p *Policy) givers(a Atoms, with string) string {
	var list []string
	for i, name := range p.names {
		one := Atoms(1 << i)
		if a&one == 0 {
			continue
		}
		var of []string
		for _, s := range p.Sources {
			if s.Atoms&one != 0 {
				of = append(of, s.Of)
			}
		}
		if len(of) == 0 {
			of = []string{"the session"}
			if kind, mark, ok := strings.Cut(name, "."); ok && (p.marks[kind][0]|p.marks[kind][1])&one != 0 {
				of = []string{"what the server calls " + mark}
			}
		}
		if words := strings.Join(of, ", "); words != name {
			name += " (" + words + ")"
		}
		list = append(list, name)
	}
	return conjoin(list, with)
}
