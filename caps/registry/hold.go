package registry

import (
	"fmt"
)

// holdings is the versions of which something is left, each with how many hold
// it: its name, where it is current, and every version that is bound to it. They
// are what a registry's memory is taken by.
type holdings struct {
	count map[*Tool]int
	bySeq map[uint64]*Tool
	code  int // bytes, of all together
	told  int // bytes of descriptions and examples, and of schemas
	same  *index
}

func newHoldings(same *index) holdings {
	return holdings{count: map[*Tool]int{}, bySeq: map[uint64]*Tool{}, same: same}
}

func told(t *Tool) int {
	return len(t.Description) + exampleBytes(t.Examples) + len(t.Input) + t.kept.size()
}

// lead is the version that stands for all of a group: they are held as one.
func lead(t *Tool) *Tool {
	if t.group == nil {
		return t
	}
	return t.group.members[0]
}

// unit is the versions that are held with a lead, and what they are bound to beside
// one another.
func unit(t *Tool) (members, bound []*Tool) {
	members = []*Tool{t}
	if t.group != nil {
		members = t.group.members
	}
	for _, m := range members {
		for _, b := range m.Bound {
			if !m.InGroup(b) {
				bound = append(bound, b)
			}
		}
	}
	return members, bound
}

// enter has one more hold a tool.
func (h *holdings) enter(t *Tool) {
	for todo := []*Tool{t}; len(todo) > 0; {
		t := lead(todo[len(todo)-1])
		todo = todo[:len(todo)-1]
		if h.count[t]++; h.count[t] > 1 {
			continue
		}
		members, bound := unit(t)
		for _, t := range members {
			h.count[t] = max(h.count[t], 1)
			h.code += len(t.Source)
			h.told += told(t)
			h.same.add(t)
			if t.Seq > 0 {
				h.bySeq[t.Seq] = t
			}
		}
		todo = append(todo, bound...)
	}
}

// leave has one less hold it; nil is held by nobody.
func (h *holdings) leave(t *Tool) {
	if t == nil {
		return
	}
	for todo := []*Tool{t}; len(todo) > 0; {
		t := lead(todo[len(todo)-1])
		todo = todo[:len(todo)-1]
		if h.count[t]--; h.count[t] > 0 {
			continue
		}
		members, bound := unit(t)
		for _, t := range members {
			delete(h.count, t)
			h.code -= len(t.Source)
			h.told -= told(t)
			h.same.remove(t)
			if h.bySeq[t.Seq] == t {
				delete(h.bySeq, t.Seq)
			}
		}
		todo = append(todo, bound...)
	}
}

// replace has next be held in place of old (nil: nothing), unless there is no
// room: live is how many tools there would be.
func (h *holdings) replace(old, next *Tool, live int) error {
	versions, code, all := len(h.count), h.code, h.told
	h.enter(next)
	h.leave(old)
	var err error
	switch {
	case live > MaxTools:
		err = full(fmt.Sprintf("there are %d tools already, and no more fit", MaxTools))
	case h.code > MaxTotal && h.code > code:
		err = full(fmt.Sprintf("the tools' code would take %d bytes together, at most %d fit", h.code, MaxTotal))
	case h.told > MaxTold && h.told > all:
		err = full(fmt.Sprintf("the tools' descriptions and examples would take %d bytes together, at most %d fit", h.told, MaxTold))
	case len(h.count) > MaxVersions && len(h.count) > versions:
		err = full(fmt.Sprintf("tools would be bound to so many old versions of others that there are %d in all, at most %d fit: "+
			"evolve those that call others anew", len(h.count), MaxVersions))
	}
	if err != nil {
		if old != nil {
			h.enter(old)
		}
		h.leave(next)
	}
	return err
}

// take brings the tools in line with changes, which are in the order of their
// numbers and later than the snapshot's.
func (r *Registry) take(e *editing, changes []Change) {
	last := make(map[string]int, len(changes))
	for i := range changes {
		if c := &changes[i]; c.Name != "" {
			last[c.Name] = i
		}
		e.next.seq = max(e.next.seq, changes[i].Seq)
	}
	l := newLoader(r.log, r.policy, func(seq uint64) *Tool { return r.held.bySeq[seq] })
	l.load(changes)
	for i := range changes {
		c := &changes[i]
		if c.Name == "" && c.Err != nil {
			r.problem(named(c, c.Err))
		}
		if n, ok := last[c.Name]; !ok || n != i {
			continue
		}
		old, _ := e.next.Get(c.Name)
		if c.Kind == Retired && c.Err == nil {
			r.held.leave(old)
			e.remove(c.Name)
			continue
		}
		t, err := l.tool(c.Seq)
		if err == nil {
			live := e.next.count
			if old == nil {
				live++
			}
			err = r.held.replace(old, t, live)
		}
		if err != nil {
			// What it was before isn't what it is now.
			r.problem(named(c, err))
			r.held.leave(old)
			e.remove(c.Name)
			continue
		}
		if t.code != nil && t.code.bad.Load() {
			r.problem(named(c, t.Problem()))
		}
		e.set(t)
	}
}

// redecide decides anew what every tool may do, and those that others are bound
// to. What is as it was stays the same object.
func (r *Registry) redecide(e *editing) {
	again := r.again()
	r.same.clear()
	r.held = newHoldings(r.same)
	for _, old := range e.next.All() {
		t := again(old)
		r.held.enter(t)
		if t != old {
			e.set(t)
		}
	}
}

// again gives for each tool the one with today's authority, and bound to such.
func (r *Registry) again() func(*Tool) *Tool {
	made := map[*Tool]*Tool{}
	return func(t *Tool) *Tool {
		for todo := []*Tool{t}; len(todo) > 0; {
			t := todo[len(todo)-1]
			waits := false
			members, bound := unit(t)
			for _, b := range bound {
				if made[b] == nil {
					todo, waits = append(todo, b), true
				}
			}
			if waits {
				continue
			}
			todo = todo[:len(todo)-1]
			if made[t] == nil {
				r.anew(members, made)
			}
		}
		return made[t]
	}
}

// anew makes the tools that are held together with today's authority, or themselves
// where nothing is different.
func (r *Registry) anew(members []*Tool, made map[*Tool]*Tool) {
	next := make([]*Tool, len(members))
	for i, t := range members {
		c := *t
		next[i], made[t] = &c, &c
	}
	g := &group{members: next}
	same := true
	for i, t := range members {
		n := next[i]
		if len(t.Declared) > 0 {
			n.settle(r.policy)
		}
		n.Bound = nil
		for _, b := range t.Bound {
			n.boundTo(made[b])
			same = same && (made[b] == b || t.InGroup(b))
		}
		if n.blockUnbound(); t.group != nil {
			n.group = g
		}
		same = same && t.sameAuthority(n)
	}
	for _, t := range members {
		if same {
			made[t] = t
		}
	}
}

// sameAuthority reports whether two tools may do the same under the same grants.
func (t *Tool) sameAuthority(u *Tool) bool {
	if t.State != u.State || t.Why != u.Why || len(t.Held) != len(u.Held) {
		return false
	}
	for i, h := range t.Held {
		if g := u.Held[i]; h.Grant != g.Grant || h.String() != g.String() || h.Within != g.Within {
			return false
		}
	}
	return true
}
