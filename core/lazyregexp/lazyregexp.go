// Package lazyregexp compiles regular expressions at their first use.
//
// This program is started for each plugin and command, and few of its processes use more
// than a few of its sixty expressions: compiled as it begins they were a fifth of the memory
// that a start touches. The tests of cmd/internal/arch compile each expression that is
// given to [New], since nothing else would before its first use.
package lazyregexp

import (
	"regexp"
	"sync"
)

// A Regexp is compiled once, at its first use; it panics then if it isn't an expression.
type Regexp struct{ compiled func() *regexp.Regexp }

// New returns an expression that isn't compiled yet.
func New(expr string) *Regexp {
	return &Regexp{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })}
}

// Compiled returns the expression, for what isn't among the methods.
func (r *Regexp) Compiled() *regexp.Regexp { return r.compiled() }

// MatchString is that of the compiled expression, as all below.
func (r *Regexp) MatchString(s string) bool { return r.compiled().MatchString(s) }

// FindStringSubmatch returns the leftmost match and its parts.
func (r *Regexp) FindStringSubmatch(s string) []string { return r.compiled().FindStringSubmatch(s) }

// ReplaceAllString replaces each match.
func (r *Regexp) ReplaceAllString(src, by string) string {
	return r.compiled().ReplaceAllString(src, by)
}
