package caps

import (
	"cmp"
	"slices"
	"strings"
)

// A taken part of a grant is what a revocation names that overlaps the grant
// without having all of it: it is in force as a denial until it is restored.
type taken struct {
	grant *Grant
	// deny is as plugins get it: the scope of a Path one is below the root.
	deny Capability
	// text is what was taken, as tools see it, and by what.
	text string
	by   Revocation
}

// key is the same for the same part of the same grant.
func (t *taken) key() string { return t.grant.ID + "\x00" + t.text }

// part is what of a grant a revocation takes that isn't meant for all of it.
func (p *Policy) part(e Revocation, g *Grant) (t taken, ok bool) {
	c, err := ParsePattern(e.Text, p.kinds)
	if err != nil || c.Kind != g.Kind || !p.concerns(e) || p.names(e, g) {
		return taken{}, false
	}
	verbs := permitted(&c, g.Manifest)
	common := func(v string) bool { return slices.Contains(permitted(&g.Capability, g.Manifest), v) }
	if len(g.Manifest.Verbs) > 0 && !slices.ContainsFunc(verbs, common) {
		return taken{}, false
	}
	d := Capability{Kind: g.Kind, Scope: c.Scope}
	if len(verbs) < len(g.Manifest.Verbs) {
		d.Verbs = slices.Sorted(slices.Values(verbs))
	}
	shown := d
	if g.Manifest.Algebra == Path {
		rel, in := p.below(e, g)
		if !in {
			return taken{}, false
		}
		d.Scope, shown.Scope = rel, g.shownScope(rel)
	} else if !g.Manifest.Algebra.Overlaps(c.Scope, g.Scope) {
		return taken{}, false
	}
	return taken{grant: g, deny: d, text: shown.String(), by: e}, true
}

// below is where in a Path grant a revocation has its place, "." where that is around
// the grant.
func (p *Policy) below(e Revocation, g *Grant) (rel string, in bool) {
	if e.File != "" && e.File == g.file {
		return ".", true
	}
	for _, at := range g.paths() {
		for _, taken := range e.paths() {
			if _, around := inside(taken, at); around {
				return ".", true
			}
			if r, within := inside(at, taken); within && !in {
				rel, in = r, true
			}
		}
	}
	return rel, in
}

// takenFrom is the parts of a grant that were taken.
func (p *Policy) takenFrom(g *Grant) []taken {
	var list []taken
	for _, e := range p.revocations {
		t, ok := p.part(e, g)
		if ok && !slices.ContainsFunc(list, func(other taken) bool { return other.text == t.text }) {
			list = append(list, t)
		}
	}
	return list
}

// takenDenies is the same as denials.
func (p *Policy) takenDenies(g *Grant) []Capability {
	var list []Capability
	for _, t := range p.taken {
		if t.grant.ID == g.ID {
			list = append(list, t.deny)
		}
	}
	return list
}

// take brings the parts that are denied in line with the entries, and gives
// those that changed since the last time it was asked. What is under way under a
// grant of which a part was taken ends: nobody can tell which part it acts on.
func (p *Policy) take(entries []Revocation) (changed []Change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Equal(entries, p.revocations) {
		p.revocations = slices.Clone(entries)
		p.relate()
	}
	now := make(map[string]Change, len(p.taken))
	for i := range p.taken {
		t := &p.taken[i]
		now[t.key()] = Change{Grant: t.grant, Text: t.text}
		if _, told := p.told[t.key()]; !told {
			t.grant.interrupt()
			changed = append(changed, Change{Grant: t.grant, Text: t.text, Revoked: true})
		}
	}
	for key, c := range p.told {
		_, still := now[key]
		if _, there := p.find(c.Grant.ID); there && !still {
			changed = append(changed, c)
		}
	}
	p.told = now
	slices.SortFunc(changed, func(a, b Change) int {
		return cmp.Or(strings.Compare(a.Text, b.Text), strings.Compare(a.Grant.ID, b.Grant.ID))
	})
	return changed
}

// interrupt ends what is under way under the grant, which goes on to hold.
func (g *Grant) interrupt() {
	if !g.Revoked() {
		g.revoke()
		g.restore()
	}
}

// restoreHint says who can give back what revocations took: with the command,
// where their texts have no path of the operator's that tools don't see.
func (p *Policy) restoreHint(shown string, by []Revocation) string {
	var commands []string
	for _, e := range by {
		c, err := ParsePattern(e.Text, p.kinds)
		if err != nil || c.Name != "" || p.isPath(c.Kind) && absolute(c.Scope) {
			return "Tell the user: only the operator can restore what is granted as " + shown + "; don't retry."
		}
		command := "mcp-pif caps restore " + shellQuote(c.String())
		if e.Principal != "" {
			command += " --principal " + shellQuote(e.Principal)
		}
		commands = append(commands, command)
	}
	if commands == nil {
		return "Tell the user: only the operator can restore it; don't retry."
	}
	return "Tell the user: only the operator can restore it, with " + strings.Join(commands, " and ") + "; don't retry."
}

func (p *Policy) isPath(kind string) bool {
	m, ok := p.kinds.Manifest(kind)
	return ok && m.Algebra == Path
}

// revokedBy is the revocations that are meant for all of a grant.
func (p *Policy) revokedBy(g *Grant) []Revocation {
	var list []Revocation
	for _, e := range p.revocations {
		if p.names(e, g) {
			list = append(list, e)
		}
	}
	return list
}

// takenAway is the revocations by which acting on what an argument designates is
// denied.
func (p *Policy) takenAway(g *Grant, verb Verb, argument string) (by []Revocation) {
	for i := range p.taken {
		t := &p.taken[i]
		if t.grant.ID == g.ID && deniedArgument(g.Manifest.Algebra, []Capability{t.deny}, verb, argument) {
			by = append(by, t.by)
		}
	}
	return by
}

// takenBy is the revocations that took something of a grant.
func (p *Policy) takenBy(g *Grant) []Revocation {
	var list []Revocation
	for _, t := range p.taken {
		if t.grant.ID == g.ID {
			list = append(list, t.by)
		}
	}
	return list
}
