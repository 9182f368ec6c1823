package fs

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// maxMatchedNames is how many names of one directory a pattern may concern.
const maxMatchedNames = 100_000

type globArgs struct {
	Pattern string `pif:"pattern,main,designates" doc:"names between slashes; in a name * is any characters, ? one, [a-z] one of these; ** for a name is any directories"`
	Limit   int    `pif:"limit,optional" doc:"how many entries at most, the first by path; if left out, more than 1000 are a failure"`
}

func glob(ctx context.Context, s *scope, a globArgs) ([]entry, error) {
	c, err := s.begin(ctx, "glob", a.Pattern)
	if err != nil {
		return nil, err
	}
	defer c.end()
	l, err := c.newListing(a.Limit)
	if err != nil {
		return nil, err
	}
	p, err := parsePattern(a.Pattern)
	if err != nil {
		return nil, err
	}
	root, err := c.find(".", true)
	if err != nil {
		return nil, err
	}
	defer root.release()
	c.guard.subject = a.Pattern
	d, err := c.directory(root)
	if err != nil {
		return nil, because(".", err)
	}
	defer d.close()
	if err := l.match(d, "", p, p.closure([]int{0}), 0); err != nil {
		return nil, because(a.Pattern, err)
	}
	return l.end(), nil
}

// A pattern is its segments. A state is how many of them are met; several
// states at once, in ascending order, stand for the choices of **, so that no pattern
// takes more than one look at an entry, nor more than one at a segment for that.
type pattern []string

const anyDirectories = "**"

func parsePattern(text string) (pattern, error) {
	segments, err := split(text)
	if err != nil {
		return nil, err
	}
	var p pattern
	for _, s := range segments {
		_, err := path.Match(s, "")
		switch {
		case err != nil:
			return nil, sdk.Fail("invalid", "%s: %s is not a pattern of a name", quote(text), quote(s)).
				WithHint(`Close each [ with ], and write \[ for the character itself.`)
		case s != anyDirectories && strings.Contains(s, anyDirectories):
			return nil, sdk.Fail("invalid", "%s: ** stands for whole names only", quote(text)).
				WithHint("Write **/*.txt for all .txt below.")
		}
		p = append(p, s)
	}
	if len(p) > 0 && p[len(p)-1] == anyDirectories {
		p = append(p, "*") // everything below, and not the directory itself
	}
	return p, nil
}

// closure adds the states that are reached by ** standing for nothing.
func (p pattern) closure(states []int) []int {
	var all []int
	for _, s := range states {
		for len(all) == 0 || all[len(all)-1] < s {
			if all = append(all, s); s < len(p) && p[s] == anyDirectories {
				s++
			}
		}
	}
	return all
}

// step gives the states after a name.
func (p pattern) step(states []int, name string) []int {
	var next []int
	for _, s := range states {
		if s == len(p) {
			continue
		}
		to := s
		if p[s] != anyDirectories {
			if ok, _ := path.Match(p[s], name); !ok {
				continue
			}
			to = s + 1
		}
		if len(next) == 0 || next[len(next)-1] < to {
			next = append(next, to)
		}
	}
	return p.closure(next)
}

// literal gives the only names that can match, where they are few.
func (p pattern) literal(states []int) (names []string, ok bool) {
	for _, s := range states {
		if s == len(p) {
			continue
		}
		if strings.ContainsAny(p[s], `*?[\`) {
			return nil, false
		}
		names = append(names, p[s])
	}
	slices.Sort(names)
	return slices.Compact(names), true
}

// match goes through a directory in the order of names.
func (l *listing) match(d dir, prefix string, p pattern, states []int, depth int) error {
	if depth > maxDepth {
		return tooDeep(prefix)
	}
	names, ok := p.literal(states)
	if !ok {
		var err error
		names, err = l.names(d, maxMatchedNames+1, func(name string) bool { return len(p.step(states, name)) > 0 })
		if isAbsent(err) && depth > 0 {
			return nil // gone meanwhile
		}
		if err != nil {
			return because(cmp.Or(prefix, "."), err)
		}
		if len(names) > maxMatchedNames {
			return sdk.Fail("too_large", "the pattern %s concerns more than %d names of one directory", quote(l.guard.subject), maxMatchedNames).
				WithHint("Write a narrower pattern.")
		}
	}
	for _, name := range names {
		if err := l.ctx.Err(); err != nil {
			return err
		}
		i, err := d.lstat(name)
		switch {
		case isAbsent(err), err == nil && l.guard.permit(i) != nil:
			continue // gone meanwhile, or denied
		case err != nil:
			return because(join(prefix, name), err)
		}
		next := p.step(states, name)
		if slices.Contains(next, len(p)) {
			if err := l.add(join(prefix, name), i); err != nil || l.done {
				return err
			}
		}
		if !i.isDir() || !slices.ContainsFunc(next, func(s int) bool { return s < len(p) }) {
			continue
		}
		sub, err := l.enter(d, name)
		if err == nil && sub != nil {
			err = l.match(sub, join(prefix, name), p, next, depth+1)
			sub.close()
		}
		if err != nil || l.done {
			return because(join(prefix, name), err)
		}
	}
	return nil
}
