package caps

import "strings"

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
