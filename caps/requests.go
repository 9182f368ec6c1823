package caps

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// OpenWorld is the text of [Requests] that means every request by a verb that reaches
// beyond this machine.
const OpenWorld = "openworld"

// Requests says which requests an operator means: KIND[.VERB[,VERB…]][:SCOPE] without
// options, or [OpenWorld]. Without a scope it is every request of the kind. Its zero
// value means none.
type Requests struct {
	Text   string
	where  denial
	scoped bool
	open   bool
	roots  *sync.Map // by the IDs of grants, what of their roots is meant: see below
}

// anywhere is a scope that a kind without one is read with.
var anywhere = map[Algebra]string{Path: ".", URL: "https://x.example", Segments: "**", Exact: "x", callNames: "**"}

// ParseRequests reads the text of [Requests]; relative paths are of dir, "" for the
// working directory.
func ParseRequests(text, dir string, kinds Kinds) (Requests, error) {
	if text == OpenWorld {
		return Requests{Text: text, open: true}, nil
	}
	whole := text
	kind, _, _ := strings.Cut(strings.SplitN(text, ":", 2)[0], ".")
	m, known := kinds.Manifest(kind)
	bare := known && m.Server == "" && m.Only == "" && !strings.Contains(text, ":")
	if bare {
		whole += ":" + anywhere[m.Algebra]
	}
	c, err := ParsePattern(whole, kinds)
	if err != nil {
		return Requests{}, err
	}
	if c.Kind == CallKind {
		return Requests{}, fmt.Errorf("%s: calls of other tools are followed, they are neither a source nor a sink", quoted(text))
	}
	d, err := (&Policy{kinds: kinds}).denial(dir, c)
	if err != nil {
		return Requests{}, err
	}
	return Requests{Text: text, where: d, scoped: !bare && m.Server == "" && m.Only == "", roots: new(sync.Map)}, nil
}

// Verbs is the kind's verbs that are meant, which may be none.
func (r *Requests) verbs(m *Manifest) (list []Verb) {
	for _, v := range m.Verbs {
		if r.open && v.OpenWorld || !r.open && m.Kind == r.where.Kind && r.where.has(v.Name) {
			list = append(list, v)
		}
	}
	return list
}

// May reports whether requests of an operation can be meant.
func (r *Requests) May(m *Manifest, o *Operation) bool {
	return slices.ContainsFunc(r.verbs(m), func(v Verb) bool { return o.VerbParam != "" || v.Name == o.Verb })
}

// Must reports whether all requests of an operation are meant, wherever they act.
func (r *Requests) Must(m *Manifest, o *Operation) bool {
	return !r.scoped && r.May(m, o) && (o.VerbParam == "" || len(r.verbs(m)) == len(m.Verbs))
}

// Reaches reports whether some request under a grant can be meant.
func (r *Requests) Reaches(g *Grant) bool {
	return slices.ContainsFunc(r.verbs(g.Manifest), func(v Verb) bool { return g.permits(v) }) && r.Overlaps(g)
}

// Overlaps is [Requests.Reaches] whatever the verb.
func (r *Requests) Overlaps(g *Grant) bool {
	switch {
	case !r.open && r.where.Kind != g.Kind:
		return false
	case !r.scoped:
		return true
	case g.Manifest.Algebra == Path:
		return len(r.below(g)) > 0
	}
	return g.Manifest.Algebra.Overlaps(r.where.Scope, g.Scope)
}

// Together reports whether some requests of one kind act where others do, whatever the verb.
func (r *Requests) Together(o *Requests) bool {
	switch {
	case r.where.Kind != o.where.Kind:
		return false
	case !r.scoped || !o.scoped:
		return true
	case r.where.manifest.Algebra == Path:
		_, in := leads(r.where.real, o.where.real)
		_, around := leads(o.where.real, r.where.real)
		return in || around
	}
	return r.where.manifest.Algebra.Overlaps(r.where.Scope, o.where.Scope)
}

// Lies reports whether some request under what is held can be meant, by any verb or its own. Where paths are links, what is
// below the grant's root counts.
func (r *Requests) Lies(h *Held, anyVerb bool) bool {
	m := h.Grant.Manifest
	return r.Overlaps(h.Grant) && (anyVerb || slices.ContainsFunc(r.verbs(m), h.Can)) && (!r.scoped || m.Algebra == Path || m.Algebra.Overlaps(r.where.Scope, h.Scope))
}

// Covers reports whether all requests of an operation under what is held are meant.
func (r *Requests) Covers(h *Held, o *Operation) bool {
	m := h.Grant.Manifest
	meant := r.verbs(m)
	for _, v := range m.Verbs {
		if (o.VerbParam != "" || v.Name == o.Verb) && h.Can(v) && !slices.ContainsFunc(meant, func(w Verb) bool { return w.Name == v.Name }) {
			return false
		}
	}
	return r.around(h)
}

// Around reports whether all that is held lies in the scope of one kind, whatever the verb.
func (r *Requests) Around(h *Held) bool { return !r.open && r.where.Kind == h.Kind && r.around(h) }

func (r *Requests) around(h *Held) bool {
	if m := h.Grant.Manifest; m.Algebra != Path || !r.scoped {
		return !r.scoped || m.Algebra.Contains(r.where.Scope, h.Scope)
	}
	_, in := inside(r.where.real, realPrefix(h.Grant.realOf(h.Within)))
	return in
}

// Unconfirmed is what a person may not expect of the requests that have to be confirmed: those under which nothing is
// granted, and verbs beside the named ones that change something in the same place and aren't confirmed.
func Unconfirmed(confirms []Requests, grants []*Grant) (list []string) {
	for _, r := range confirms {
		reached, free := false, []string{}
		for _, g := range grants {
			if r.open || g.Kind != r.where.Kind {
				reached = reached || r.Reaches(g)
				continue
			}
			if !r.Reaches(g) {
				continue
			}
			reached = true
			for _, v := range g.Manifest.Verbs {
				other := func(c Requests) bool {
					return c.Reaches(g) && slices.ContainsFunc(c.verbs(g.Manifest), func(w Verb) bool { return w.Name == v.Name })
				}
				if word := g.Kind + "." + v.Name; !v.ReadOnly && g.permits(v) && !slices.ContainsFunc(confirms, other) && !slices.Contains(free, word) {
					free = append(free, word)
				}
			}
		}
		switch {
		case !reached:
			list = append(list, fmt.Sprintf("--confirm %s: nothing is granted under it", r.Text))
		case len(free) > 0:
			list = append(list, fmt.Sprintf("--confirm %s leaves %s free, which change things there as well: --confirm %s covers them", r.Text, strings.Join(free, ", "), r.whole()))
		}
	}
	return list
}

// whole is the text without its verbs.
func (r *Requests) whole() string {
	head, scope, scoped := strings.Cut(r.Text, ":")
	kind, _, _ := strings.Cut(head, ".")
	if scoped {
		return kind + ":" + scope
	}
	return kind
}

// Anywhere is a text that means the scope's requests by any verb, from any folder.
func (r *Requests) Anywhere() string {
	if !r.scoped {
		return r.where.Kind
	}
	c := Capability{Kind: r.where.Kind, Scope: r.where.Scope}
	if r.where.abs != "" {
		c.Scope = filepath.ToSlash(r.where.abs)
	}
	return c.String()
}

// Meets reports whether a request lies within what is meant, or acts on a part of it, by any
// name of a file that leads there.
func (r *Requests) Meets(p *Permit) bool { return r.meant(p) && r.touches(p, false) }

// Reads is [Requests.Meets] for where an outcome comes from: a redirect may lead to
// whatever the capability permits.
func (r *Requests) Reads(p *Permit) bool { return r.meant(p) && r.touches(p, true) }

// Keeps reports whether all that a request designates lies in the scope, whatever the
// verb: what is put there is there for who reads it.
func (r *Requests) Keeps(p *Permit) bool {
	return !r.open && p.Held.Kind == r.where.Kind && (!r.scoped || r.all(p))
}

// Near is [Requests.Meets] whatever the verb.
func (r *Requests) Near(p *Permit) bool {
	return !r.open && p.Held.Kind == r.where.Kind && r.touches(p, false)
}

func (r *Requests) meant(p *Permit) bool {
	if r.open {
		return p.Flags.OpenWorld
	}
	return p.Held.Kind == r.where.Kind && r.where.has(p.Verb)
}

func (r *Requests) touches(p *Permit, redirected bool) bool {
	a := p.Held.Grant.Manifest.Algebra
	switch {
	case !r.scoped:
		return true
	case a == Path:
		return slices.ContainsFunc(p.Designates, func(rel string) bool { return r.onPath(p.Held.Grant, literalPath(rel)) })
	case redirected && a == URL, len(p.Designates) == 0:
		return a.Overlaps(r.where.Scope, p.Held.Scope)
	}
	return slices.ContainsFunc(p.Designates, func(s string) bool {
		return a.Covers(r.where.Scope, s) == nil || p.begins(r.where.Scope, s)
	})
}

// onPath reports whether a path below a grant's root lies in the scope or has a part of it below, as
// it is written or with links resolved.
func (r *Requests) onPath(g *Grant, rel string) bool {
	scopes := r.below(g)
	if len(scopes) == 0 {
		return false
	}
	for _, scope := range scopes {
		if _, in := pathInside(scope, rel); in {
			return true
		}
		if _, around := pathInside(rel, scope); around {
			return true
		}
	}
	real := g.realBelow(rel)
	_, in := leads(r.where.real, real)
	_, around := leads(real, r.where.real)
	return in || around
}

// below is what is meant below a grant's root, as it is written, "." for all of it. Where that is nothing, nothing within
// the root leads there, since plugins are held to it.
func (r *Requests) below(g *Grant) []string {
	known, ok := r.roots.Load(g.ID)
	if !ok {
		known, _ = r.roots.LoadOrStore(g.ID, r.where.below(g))
	}
	return known.([]string)
}

// all reports whether everything designated lies in the scope.
func (r *Requests) all(p *Permit) bool {
	a, g := p.Held.Grant.Manifest.Algebra, p.Held.Grant
	if len(p.Designates) == 0 {
		return a.Contains(r.where.Scope, p.Held.Scope)
	}
	return !slices.ContainsFunc(p.Designates, func(s string) bool {
		if a != Path {
			return a.Covers(r.where.Scope, s) != nil
		}
		_, in := inside(r.where.real, g.realBelow(literalPath(s)))
		return !in
	})
}

// literalPath is a path, or the folder that a pattern looks in.
func literalPath(rel string) string {
	i := strings.IndexAny(rel, `*?[{\`)
	if i < 0 {
		return rel
	}
	if i = strings.LastIndexByte(rel[:i], '/'); i < 0 {
		return "."
	}
	return rel[:i]
}

// Can reports whether what is held has a verb.
func (h *Held) Can(v Verb) bool { return h.permits(v) }
