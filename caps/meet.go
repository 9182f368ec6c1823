package caps

import "strings"

// within resolves a scope that a tool names, by the label, to the path below
// the grant's root. An operator's absolute path means the same.
func (g *Grant) within(scope string) (rel string, ok bool) {
	if absolute(scope) {
		for _, root := range []string{g.abs, g.Real} {
			if rel, ok = inside(root, scope); ok {
				break
			}
		}
	} else {
		rel, ok = below(g.Label, scope)
	}
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
		// An absolute path around the grant is no match: by trying such, a
		// model could find out where the grant lies.
		_, around := below(declared, g.Label)
		return g.Label, ".", false, around
	}
	switch {
	case a.Contains(g.Scope, declared):
		return declared, declared, true, true
	case a.Contains(declared, g.Scope):
		return g.Scope, g.Scope, false, true
	case !a.Overlaps(g.Scope, declared):
		return "", "", false, false
	}
	switch a {
	case URL:
		x, _ := scopeURL(g.Scope)
		y, _ := scopeURL(declared)
		if hostContains(x.host, y.host) {
			x.host = y.host
		}
		x.segments = meetSegments(x.segments, y.segments)
		scope = x.String()
	case Segments:
		scope = strings.Join(meetSegments(split(g.Scope), split(declared)), "/")
	default:
		return "", "", false, false
	}
	return scope, scope, false, true
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
