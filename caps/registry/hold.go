package registry

import (
	"fmt"
	"slices"
	"sync"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core"
)

// perVersion is about how many bytes a version takes besides what it was made from.
const perVersion = 1 << 10

// A Room bounds what the tools of several registries take in memory together. A quarter of
// it is for each of them in equal parts, the rest for who comes first.
type Room struct {
	bytes, own int64
	changed    func(held int64)
	keeper     core.Keeper

	mu     sync.Mutex
	held   int64
	beyond int64 // of held, what registries hold beside their own parts
}

// NewRoom makes room of so many bytes for so many registries. changed, if it isn't nil, is told what
// they hold whenever that is another.
func NewRoom(bytes int64, registries int, changed func(held int64)) *Room {
	return &Room{bytes: bytes, own: bytes / 4 / int64(registries), changed: changed}
}

// A place is a registry's in a room.
type place struct {
	room   *Room
	copies int // how often what tools are made from is in memory
	held   int64
}

func (p *place) beyond(bytes int64) int64 { return max(0, bytes-p.room.own) }

// note counts that the registry holds so many bytes now.
func (p *place) note(bytes int64) {
	r := p.room
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keeper.Note(bytes - p.held)
	r.held += bytes - p.held
	r.beyond += p.beyond(bytes) - p.beyond(p.held)
	if p.held = bytes; r.changed != nil {
		r.changed(r.held)
	}
}

// admits reports whether the registry may come to hold so many bytes.
func (p *place) admits(bytes int64) bool {
	p.room.mu.Lock()
	defer p.room.mu.Unlock()
	return bytes <= p.room.own || p.room.beyond-p.beyond(p.held)+p.beyond(bytes) <= p.room.bytes/4*3
}

// Enter has the registry take its place in a room, until it leaves. What its tools are made from is so many
// times in memory.
func (r *Registry) Enter(room *Room, copies int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held.place = &place{room: room, copies: copies}
	r.held.note()
}

// Leave gives up the registry's place.
func (r *Registry) Leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.held.place; p != nil {
		r.held.place = nil
		p.note(0)
	}
}

// Beyond reports whether the registry takes more than its own part of the room, and whether others have to
// leave for it.
func (r *Registry) Beyond() (beyond, tooMuch bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.held.place
	if p == nil {
		return false, false
	}
	p.room.mu.Lock()
	defer p.room.mu.Unlock()
	mine := p.beyond(p.held)
	return mine > 0, mine > 0 && p.room.beyond > max(mine, p.room.bytes/4*3)
}

// holdings is the versions of which something is left, each with how many hold
// it: its name, where it is current, and every version that is bound to it. They
// are what a registry's memory is taken by.
type holdings struct {
	count map[*Tool]int
	bySeq map[uint64]*Tool
	code  int // bytes, of all together
	told  int // bytes of descriptions and examples, and of schemas
	same  *index

	place    *place // nil: it has none in a room
	rehearse bool   // what is held isn't counted there
}

// weight is about how many bytes of the room it takes.
func (h *holdings) weight() int64 {
	return int64(h.place.copies*(h.code+h.told) + perVersion*len(h.count))
}

func (h *holdings) note() {
	if h.place != nil && !h.rehearse {
		h.place.note(h.weight())
	}
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
	defer h.note()
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
	defer h.note()
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

// How much of what may be held: all, when a tool is made; an eighth more of what is read of a log, since servers that
// made tools at the same time left room for their own only; and anything that was made while this one ran.
const (
	whole    = 8
	recorded = 9
	anything = 1 << 20
)

// replace has next be held in place of old (nil: nothing), unless there is no
// room: live is how many tools there would be, of so many eighths of what may be.
func (h *holdings) replace(old, next *Tool, live, eighths int) error {
	versions, code, all := len(h.count), h.code, h.told
	h.enter(next)
	h.leave(old)
	beyond := func(n, most int) bool { return n > most/8*eighths }
	var err error
	switch {
	case beyond(live, MaxTools):
		err = full(fmt.Sprintf("there are %d tools already, and no more fit", MaxTools))
	case beyond(h.code, MaxTotal) && h.code > code:
		err = full(fmt.Sprintf("the tools' code would take %d bytes together, at most %d fit", h.code, MaxTotal))
	case beyond(h.told, MaxTold) && h.told > all:
		err = full(fmt.Sprintf("the tools' descriptions and examples would take %d bytes together, at most %d fit", h.told, MaxTold))
	case beyond(len(h.count), MaxVersions) && len(h.count) > versions:
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

// admit is replace, where the tools of all registries of the room have to fit, too. What is on record
// already is there whatever others hold.
func (h *holdings) admit(old, next *Tool, live int) error {
	if h.place == nil {
		return h.replace(old, next, live, whole)
	}
	before := h.weight()
	if err := h.replace(old, next, live, whole); err != nil {
		return err
	}
	after := h.weight()
	if after <= before || h.place.admits(after) {
		return nil
	}
	if old != nil {
		h.enter(old)
	}
	h.leave(next)
	return full(fmt.Sprintf("the tools would take %d bytes of memory, %d are for each who uses this server, and of what is for all no more is left", after, h.place.room.own))
}

// take brings the tools in line with changes, which are in the order of their
// numbers and later than the snapshot's. They may take so many eighths of what may be held.
func (r *Registry) take(e *editing, changes []Change, eighths int) {
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
			err = r.held.replace(old, t, live, eighths)
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
	at := r.held.place
	r.held = newHoldings(r.same)
	defer func() { // others must not take the room meanwhile
		r.held.place = at
		r.held.note()
	}()
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
	return t.State == u.State && t.Why == u.Why && slices.EqualFunc(t.Held, u.Held, func(h, g *caps.Held) bool {
		return h.Grant == g.Grant && h.String() == g.String() && h.Within == g.Within
	})
}
