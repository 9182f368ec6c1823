package fetch

import (
	"strings"

	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// A pattern is the scope of a capability: an origin, and which of its paths.
// The query is free, and a slash at the end of a path says nothing.
type pattern struct {
	origin // host without the label * where wild is set
	// wild is set for *.host: exactly one label more.
	wild bool
	// segments has to be matched one by one; "*" matches any.
	segments []string
	// open is set where any further segments may follow, and none.
	open bool
}

// parsePattern reads a scope in the host's canonical form, decoded:
// https://host[:port][/path], where * is a whole segment or the whole leftmost
// label, and ** is whole segments at the end. An origin alone is all its paths.
func parsePattern(text string) (pattern, error) {
	var p pattern
	if len(text) > maxURL {
		return p, invalid("the scope has %d bytes, at most %d are allowed", len(text), maxURL)
	}
	o, path, err := parseOrigin(text, true)
	if err != nil {
		return p, err
	}
	p.origin = o
	p.host, p.wild = strings.CutPrefix(o.host, "*.")
	if path == "" {
		p.open = true
		return p, nil
	}
	if strings.ContainsAny(path, "?#") {
		return p, invalid("the scope has a query or a fragment; a query is free in every scope")
	}
	parts := segmentsOf(path)
	for i, part := range parts {
		if part == "**" && i == len(parts)-1 {
			p.open = true
			break
		}
		if part != "*" && strings.Contains(part, "*") {
			return p, invalid("the scope has a * that is not a whole segment, or a ** before the last one")
		}
		if err := checkSegment(part); err != nil {
			return p, err
		}
		p.segments = append(p.segments, part)
	}
	return p, nil
}

// covers reports whether a URL lies within the pattern.
func (p pattern) covers(t target) bool {
	return p.hasOrigin(t.origin) && p.hasPath(t.segments, func(a, b string) bool { return a == b })
}

func (p pattern) hasOrigin(o origin) bool {
	if p.scheme != o.scheme || p.port != o.port {
		return false
	}
	if p.wild {
		label, ok := strings.CutSuffix(o.host, "."+p.host)
		return ok && label != "" && !strings.Contains(label, ".")
	}
	return p.host == o.host
}

func (p pattern) hasPath(segments []string, same func(a, b string) bool) bool {
	if len(segments) < len(p.segments) || len(segments) > len(p.segments) && !p.open {
		return false
	}
	for i, want := range p.segments {
		if want != "*" && !same(want, segments[i]) {
			return false
		}
	}
	return true
}

// touches does what covers does for a denial: it takes in the spellings of a path
// that servers commonly read as the same one.
func (p pattern) touches(t target) bool {
	return p.hasOrigin(t.origin) && p.hasPath(t.segments, func(a, b string) bool { return strings.EqualFold(loose(a), loose(b)) })
}

// loose returns a segment as a lenient server reads it: decoded again, without
// parameters and blanks.
func loose(segment string) string {
	for range maxDecodings {
		again, _ := unescape(segment)
		if again == segment {
			break
		}
		segment = again
	}
	name, _, _ := strings.Cut(segment, ";")
	return strings.Trim(name, " ")
}

// A denial is a scope taken out of a capability.
type denial struct {
	pattern
	verbs []string // nil: all
}

func parseDenials(denies []sdk.Deny) ([]denial, error) {
	var all []denial
	for _, d := range denies {
		p, err := parsePattern(d.Within)
		if err != nil {
			return nil, err
		}
		all = append(all, denial{p, d.Verbs})
	}
	return all, nil
}
