package registry

import (
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
)

// SubjectOf is a version as a person approves it: its code, what it declared and
// holds, and, by their keys, the versions that it is bound to.
func SubjectOf(t *Tool) *caps.Subject {
	keys := map[*Tool]string{}
	// Versions are bound to earlier ones only, in chains of any length, but for those
	// of their group.
	for todo := []*Tool{t}; len(todo) > 0; {
		t := todo[len(todo)-1]
		waits := false
		members, bound := unit(t)
		for _, b := range bound {
			if keys[b] == "" {
				todo, waits = append(todo, b), true
			}
		}
		if waits {
			continue
		}
		todo = todo[:len(todo)-1]
		if keys[t] != "" {
			continue
		}
		// The others of a group are what they are without one another: their hashes
		// are over all its codes.
		for range min(len(members), 2) {
			of := make([]string, len(members))
			for i, m := range members {
				of[i] = subject(m, keys).Key()
			}
			for i, m := range members {
				keys[m] = of[i]
			}
		}
	}
	s := subject(t, keys)
	s.Late = t.Late()
	s.Reach = caps.Holdings(t.Reach()[len(t.Held):])
	slices.SortFunc(s.Reach, func(a, b caps.Holding) int { return strings.Compare(a.Text+"\x00"+a.Grant, b.Text+"\x00"+b.Grant) })
	s.Reach = slices.Compact(s.Reach)
	return s
}

// subject is a version without what follows from those that it is bound to, whose
// keys are given.
func subject(t *Tool, keys map[*Tool]string) *caps.Subject {
	s := &caps.Subject{Tool: t.Name, Code: t.Hash, Declared: slices.Clone(t.Declared), MadeUnder: slices.Clone(t.MadeUnder), Holds: caps.Holdings(t.Held)}
	for name, b := range t.Bound {
		s.Bound = append(s.Bound, caps.BoundSubject{Name: name, Key: keys[b]})
	}
	slices.SortFunc(s.Bound, func(a, b caps.BoundSubject) int { return strings.Compare(a.Name, b.Name) })
	return s
}
