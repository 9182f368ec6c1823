package fs

import (
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps/filename"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// A denial is a deny of the capability. What it names is known by identity, too,
// since the capability was opened: a new name for it changes nothing.
type denial struct {
	verbs  []string // nil: all
	names  []string // below the grant's root; none: all of it
	held   []identity
	unpins []func()
}

// A guard is what one operation may not touch.
type guard struct {
	strict  bool       // there are denials at all
	denied  []identity // refused for this verb, and everything below
	above   []identity // on the way to what is denied for any verb
	paths   [][]string // of denials for this verb
	absent  [][]string // those of them that name nothing, for now
	all     [][]string // of denials for any verb
	subject string     // the path as the program said it, for messages
}

// guardOf looks up what the denials name now.
func (s *scope) guardOf(verb string) (guard, error) {
	g := guard{strict: len(s.denials) > 0}
	for i := range s.denials {
		d := &s.denials[i]
		above, now, err := s.identify(d.names)
		if err != nil {
			return guard{}, because(strings.Join(d.names, "/"), err)
		}
		g.above = append(g.above, above...)
		g.all = append(g.all, d.names)
		// Whoever moves something can do anything with it at its new place.
		if verb != "move" && d.verbs != nil && !slices.Contains(d.verbs, verb) {
			continue
		}
		g.denied = append(append(g.denied, d.held...), now...)
		g.paths = append(g.paths, d.names)
		if len(now) == 0 {
			g.absent = append(g.absent, d.names)
		}
	}
	return g, nil
}

// pass decides on a path below the grant's root before anything is opened.
func (g *guard) pass(names []string) error {
	for _, p := range g.paths {
		if prefixes(p, names, equal) {
			return g.refuse()
		}
	}
	// Something that isn't there has no identity. Where the file system takes
	// a for A, or one spelling of é for the other, the name alone would let it be made under another.
	for _, p := range g.absent {
		if prefixes(p, names, filename.Alike) {
			return g.refuse()
		}
	}
	return nil
}

// permit decides on something that was reached.
func (g *guard) permit(i info) error {
	if i.among(g.denied) {
		return g.refuse()
	}
	return nil
}

// checkBelow refuses to let something go that a denial lies below.
func (g *guard) checkBelow(i info) error {
	if i.among(g.above) {
		return g.refuseAbove()
	}
	return nil
}

// checkBelowPath refuses the same by its path, for what isn't there, too: nothing
// comes to a place above a denial, or goes from there.
func (g *guard) checkBelowPath(names []string) error {
	for _, p := range g.all {
		if len(names) < len(p) && prefixes(names, p, filename.Alike) {
			return g.refuseAbove()
		}
	}
	return nil
}

func (g *guard) refuse() error {
	return sdk.Fail("denied", "%s lies in what the operator denied", quote(g.subject)).
		WithHint("Only the operator can change that; don't try again.")
}

func (g *guard) refuseAbove() error {
	return sdk.Fail("denied", "%s holds something that the operator denied, so it stays where it is", quote(g.subject)).
		WithHint("Only the operator can change that; act on what is in it one by one.")
}

func equal(a, b string) bool { return a == b }

// prefixes reports whether the names of outer begin those of inner.
func prefixes(outer, inner []string, same func(a, b string) bool) bool {
	return len(outer) <= len(inner) && slices.EqualFunc(outer, inner[:len(outer)], same)
}

// identify gives the identities of the directories on the way to a path below
// the grant's root, the root's too, and of what is there: several where it is a
// link, none where there is nothing. It follows links, as a denial may be named by one.
func (s *scope) identify(names []string) (above, there []identity, err error) {
	w := &walk{root: s.root, follow: true}
	w.seen = func(i info) { above = append(above, i.identity) }
	top, err := s.root.stat()
	if err != nil {
		return nil, nil, err
	}
	if len(names) == 0 {
		return nil, []identity{top.identity}, nil
	}
	above = append(above, top.identity)
	d, name, err := w.to(names)
	switch {
	case leadsNowhere(err):
		return above, nil, nil
	case err != nil:
		return nil, nil, err
	}
	defer w.release(d)
	i, err := d.lstat(name)
	switch {
	case leadsNowhere(err):
		return above, nil, nil
	case err != nil:
		return nil, nil, err
	}
	there = []identity{i.identity}
	if i.isLink() {
		w := &walk{root: s.root, follow: true, last: true}
		d, name, err := w.to(names)
		if err != nil {
			return above, there, nil // it leads nowhere, or out, where nobody gets
		}
		defer w.release(d)
		if name == "" {
			i, err = d.stat()
		} else {
			i, err = d.lstat(name)
		}
		if err == nil {
			there = append(there, i.identity)
		}
	}
	return above, there, nil
}

// hold remembers what a denial names, for as long as the capability is open.
func (s *scope) hold(d *denial) error {
	_, there, err := s.identify(d.names)
	if err != nil {
		return err
	}
	d.held = there
	w := &walk{root: s.root, follow: true, last: true}
	in, name, err := w.to(d.names)
	if err != nil || name == "" {
		return nil
	}
	defer w.release(in)
	if unpin := in.pin(name); unpin != nil {
		d.unpins = append(d.unpins, unpin)
	}
	return nil
}
