package caps

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/display"
)

// maxScope bounds a scope and an argument that designates, in bytes.
const maxScope = 4096

// Canonical is the one spelling of a scope, or the reason why it is none. A URL
// scope is given as it stands in a capability's text, with its percent-encoding;
// the scopes of the others are decoded already.
func (a Algebra) Canonical(scope string) (string, error) {
	if len(scope) > maxScope {
		return "", fmt.Errorf("a scope has at most %d bytes", maxScope)
	}
	if scope == "" {
		return "", errors.New("the scope is empty")
	}
	if a == URL {
		u, err := parseURL(scope, true)
		if err != nil {
			return "", err
		}
		return u.String(), nil
	}
	if err := plainText(scope); err != nil {
		return "", err
	}
	switch a {
	case Path:
		return canonicalPath(scope)
	case Segments:
		return scope, checkPattern(scope)
	case callNames, Exact:
		switch {
		case likeURL(scope):
			return "", errors.New("a name can't begin like a URL")
		case !strings.Contains(scope, "*"):
			return scope, nil
		case a == callNames:
			return scope, checkPattern(scope)
		}
		return "", errors.New("the scope is one name, never a pattern")
	}
	return "", fmt.Errorf("unknown scope algebra %s", quoted(string(a)))
}

// Contains reports whether everything within narrower is within scope. Both are
// canonical; what isn't is contained by nothing.
func (a Algebra) Contains(scope, narrower string) bool {
	switch a {
	case Path:
		_, ok := below(scope, narrower)
		return ok
	case URL:
		s, errS := scopeURL(scope)
		n, errN := scopeURL(narrower)
		return errS == nil && errN == nil && s.contains(n)
	case Segments:
		return segmentsContain(split(scope), split(narrower))
	case callNames:
		if !strings.Contains(scope, "*") {
			return scope == narrower
		}
		return segmentsContain(split(scope), split(narrower))
	case Exact:
		return scope == narrower
	}
	return false
}

// Overlaps reports whether something can be within both canonical scopes.
func (a Algebra) Overlaps(x, y string) bool {
	switch a {
	case URL:
		u, errU := scopeURL(x)
		v, errV := scopeURL(y)
		return errU == nil && errV == nil && u.overlaps(v)
	case Segments:
		return segmentsOverlap(split(x), split(y))
	case callNames:
		switch {
		case !strings.Contains(x, "*"):
			return a.Contains(y, x)
		case !strings.Contains(y, "*"):
			return a.Contains(x, y)
		}
		return segmentsOverlap(split(x), split(y))
	}
	return a.Contains(x, y) || a.Contains(y, x)
}

// Covers decides whether an argument that designates something is within a
// canonical scope: nil, [ErrOutside], or the reason why the argument designates
// nothing. Arguments for [Path] are relative to the scope, so that each that is
// well-formed is within.
func (a Algebra) Covers(scope, argument string) error {
	if len(argument) > maxScope {
		return fmt.Errorf("it has more than %d bytes", maxScope)
	}
	switch a {
	case Path:
		_, err := relative(argument)
		return err
	case URL:
		s, err := scopeURL(scope)
		if err != nil {
			return err
		}
		v, err := parseURL(argument, false)
		if err != nil {
			return err
		}
		if !s.covers(v) {
			return ErrOutside
		}
		return nil
	}
	if err := plainText(argument); err != nil {
		return err
	}
	if argument == "" {
		return errors.New("it is empty")
	}
	if a == Segments {
		if err := checkSegments(argument); err != nil {
			return err
		}
	}
	if !a.Contains(scope, argument) {
		return ErrOutside
	}
	return nil
}

// likeURL tells the texts that are read as URLs where nothing is known of the
// kind; no scope of another algebra is one.
func likeURL(s string) bool {
	s = strings.ToLower(s[:min(len(s), len("https://"))])
	return strings.HasPrefix(s, "http://") || s == "https://"
}

// ErrOutside is the answer of [Algebra.Covers] for a well-formed argument that
// the scope doesn't have.
var ErrOutside = errors.New("it is outside the scope")

// plainText refuses what nobody can read: bytes that aren't UTF-8 and control
// characters.
func plainText(s string) error {
	if !utf8.ValidString(s) {
		return errors.New("it isn't UTF-8")
	}
	if i := strings.IndexFunc(s, unicode.IsControl); i >= 0 {
		r, _ := utf8.DecodeRuneInString(s[i:])
		return fmt.Errorf("it has the control character %U", r)
	}
	return nil
}

// quoted shows a word of somebody else's, shortened.
func quoted(s string) string { return fmt.Sprintf("%q", display.Truncate(s, 80)) }
