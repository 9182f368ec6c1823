package registry

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// order puts tools after those that they are bound to, and the older versions of
// each name before the newer ones.
func order(tools []Portable) ([]*Portable, error) {
	rest := make([]*Portable, len(tools))
	byID := map[portableID]*Portable{}
	current := map[string]*Portable{}
	versions := map[string][]*Portable{}
	for i := range tools {
		p := &tools[i]
		rest[i] = p
		byID[portableID{p.Name, p.Hash}] = p
		versions[p.Name] = append(versions[p.Name], p)
		if !p.Old {
			current[p.Name] = p
		}
	}
	// must is what an entry has to come after, should where it had better.
	must, should := map[*Portable][]*Portable{}, map[*Portable][]*Portable{}
	for name, list := range versions {
		slices.SortStableFunc(list, byAge)
		for i := 1; i < len(list); i++ {
			must[list[i]] = append(must[list[i]], list[i-1])
		}
		versions[name] = list
	}
	for _, p := range rest {
		members, err := groupOf(p, byID)
		if err != nil {
			return nil, err
		}
		p.with = members
	}
	for _, p := range rest {
		for name, hash := range p.Bound {
			if on := byID[portableID{name, hash}]; on != nil && !slices.Contains(p.with, on) {
				// What one of a group must follow all must, and all of one it is bound to.
				for _, q := range either(p.with, p) {
					must[q] = append(must[q], either(on.with, on)...)
				}
			}
		}
		for _, name := range p.base.names() {
			if on := current[name]; on != nil && p.Bound[name] == "" {
				should[p] = append(should[p], on)
			}
		}
	}
	slices.SortStableFunc(rest, func(a, b *Portable) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), byAge(a, b))
	})
	return sortBy(rest, must, should)
}

// either is the entries of a group, or one alone.
func either(group []*Portable, alone *Portable) []*Portable {
	if group == nil {
		return []*Portable{alone}
	}
	return group
}

// byAge puts the older versions of a name before its tool.
func byAge(a, b *Portable) int {
	switch {
	case a.Old && !b.Old:
		return -1
	case b.Old && !a.Old:
		return 1
	}
	return cmp.Compare(a.Version, b.Version)
}

// sortBy gives each entry after those that it must follow and, where that is
// possible, after those that it should.
func sortBy(rest []*Portable, must, should map[*Portable][]*Portable) ([]*Portable, error) {
	out := make([]*Portable, 0, len(rest))
	done := make(map[*Portable]bool, len(rest))
	all := func(list []*Portable) bool {
		return !slices.ContainsFunc(list, func(p *Portable) bool { return !done[p] })
	}
	for len(rest) > 0 {
		before := len(rest)
		pass := func(ready func(*Portable) bool, most int) {
			rest = slices.DeleteFunc(rest, func(p *Portable) bool {
				if most == 0 || !ready(p) {
					return false
				}
				most--
				done[p] = true
				out = append(out, p)
				return true
			})
		}
		pass(func(p *Portable) bool { return all(must[p]) && all(should[p]) }, -1)
		if len(rest) == before {
			pass(func(p *Portable) bool { return all(must[p]) }, 1)
		}
		if len(rest) == before {
			return nil, fmt.Errorf("tool %q: what it is bound to is bound to it in turn", rest[0].Name)
		}
	}
	return out, nil
}
