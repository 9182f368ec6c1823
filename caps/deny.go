package caps

import (
	"fmt"
	"slices"
)

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
		return denial{}, fmt.Errorf("%s: a denial has no options and no name, only KIND, verbs and a scope", c)
	}
	m, _ := p.kinds.Manifest(c.Kind)
	d := denial{Capability: c, manifest: m}
	if m.Algebra == Path {
		if dir == "" {
			dir = "."
		}
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
	add := func(root, path string) {
		rel, ok := inside(root, path)
		if _, all := inside(path, root); all {
			rel, ok = ".", true
		}
		if ok && !slices.Contains(list, rel) {
			list = append(list, rel)
		}
	}
	add(g.abs, d.abs)
	add(g.Real, d.real)
	add(g.Real, d.abs)
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
