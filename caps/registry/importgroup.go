package registry

import (
	"fmt"
	"maps"
	"slices"

	"github.com/mcp-pif/mcp-pif/core/fault"
)

// groupOf is the entries that an entry was made with, itself among them, in their
// order; nil: it was made alone.
func groupOf(p *Portable, byID map[portableID]*Portable) ([]*Portable, error) {
	if p.Group == nil {
		return nil, nil
	}
	wrong := func() ([]*Portable, error) {
		return nil, &fault.Fault{
			Kind: fault.InvalidRequest, Message: fmt.Sprintf("tool %q: its group isn't in the document as it says", p.Name),
			Hint: `Each of a group lists the names of all in "group", in the same order, and the hashes of the others in "bound".`,
		}
	}
	var all []*Portable
	for i, name := range p.Group {
		m := p
		if name != p.Name {
			m = byID[portableID{name, p.Bound[name]}]
		}
		if m == nil || !slices.Equal(m.Group, p.Group) || m.Old != p.Old || slices.Index(p.Group, name) != i || m != p && m.Bound[p.Name] != p.Hash {
			return wrong()
		}
		all = append(all, m)
	}
	if len(all) < 2 || len(all) > MaxGroup || !slices.Contains(all, p) {
		return wrong()
	}
	return all, nil
}

// together makes the versions of a group of entries, unless they are there already.
func (m *importing) together(all []*Portable) error {
	names := all[0].Group
	members := make([]Member, len(all))
	for i, p := range all {
		members[i] = Member{p.Name, memberHash(p.base.Program(), names)}
		p.base.code.names, p.base.code.hash = names, members[i].Code
	}
	s := m.r.current.Load()
	g := &group{}
	outside := make([]map[string]*Tool, len(all))
	for i, p := range all {
		alone := *p
		alone.Bound = maps.Clone(p.Bound)
		maps.DeleteFunc(alone.Bound, func(name, _ string) bool { return slices.Contains(names, name) })
		var err error
		if outside[i], err = m.bindings(&alone); err != nil {
			return fmt.Errorf("tool %q: %w", p.Name, err)
		}
		t := *p.base
		t.finding, t.group, t.Group, t.Hash = &finding{}, g, members, groupHash(members, i)
		g.members = append(g.members, &t)
	}
	for i, t := range g.members {
		t.settle(m.r.policy)
		t.bind(s)
		for _, b := range outside[i] {
			t.boundTo(b)
		}
		for _, other := range g.members {
			if other != t {
				t.boundTo(other)
			}
		}
		if f := t.unbound(); f != nil {
			return fmt.Errorf("tool %q: %w", t.Name, f)
		}
	}
	for _, t := range g.members {
		if f := t.narrow(); f != nil {
			return fmt.Errorf("tool %q: %w", t.Name, f)
		}
	}
	there, err := m.there(all, g, s)
	if err != nil || there != nil {
		for i := range there {
			m.grouped[all[i]] = oneMade{there[i], false}
		}
		return err
	}
	made, err := m.r.keepAll(s, g)
	if err != nil {
		return err
	}
	for i, t := range made {
		m.grouped[all[i]] = oneMade{t, true}
	}
	return nil
}

// there is the versions that a group of entries is already: current ones, or, for
// older ones, any on record; nil: there are none.
func (m *importing) there(all []*Portable, g *group, s *Snapshot) ([]*Tool, error) {
	is := func(t *Tool) bool {
		return t != nil && t.group != nil && slices.Equal(t.Group, g.members[0].Group) && sameBound(t.outside(), g.members[0].outside())
	}
	if now, _ := s.Get(all[0].Name); !all[0].Old && is(now) {
		for i, t := range now.group.members {
			if current, _ := s.Get(t.Name); current != t || !t.same(g.members[i]) {
				return nil, nil
			}
		}
		return now.Together(), nil
	}
	for before, more := uint64(0), all[0].Old; more; {
		changes, further, err := m.r.log.Of(all[0].Name, before, page)
		if err != nil {
			return nil, err
		}
		for i := range changes {
			c := &changes[i]
			before = c.Seq
			if c.Err != nil || c.Kind == Retired || c.Hash != g.members[0].Hash || !slices.Equal(c.Group, g.members[0].Group) {
				continue
			}
			if t, err := m.r.load(*c); err == nil && is(t) {
				return t.Together(), nil
			}
		}
		more = further && len(changes) > 0
	}
	return nil, nil
}

// keepAll keeps the versions of a group at once in a rehearsal, which nobody else
// changes.
func (r *Registry) keepAll(s *Snapshot, g *group) ([]*Tool, error) {
	e := s.edit()
	live := s.count
	for i, t := range g.members {
		old, ok := s.Get(t.Name)
		if !ok {
			live++
		}
		var err error
		if t.Version, err = r.next(t.Name, old); err != nil {
			return nil, unkept(t.Name, err)
		}
		t.Seq = s.seq + 1 + uint64(i)
		if err := r.held.replace(old, t, live); err != nil {
			return nil, err
		}
	}
	for _, t := range g.members {
		c := t.change(Evolved)
		c.Facts = t.facts()
		t.kept = c.Facts.keep()
		seq, err := r.log.Append(e.next.seq, c)
		if err != nil {
			return nil, unkept(t.Name, err)
		}
		r.held.bySeq[seq] = t
		e.set(t)
		e.next.seq = seq
	}
	r.current.Store(e.done())
	return g.members, nil
}
