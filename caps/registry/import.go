package registry

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/mcp-pif/mcp-pif/core/fault"
)

// Import makes the tools of a document, as [Decode] reads them, or new versions
// of those that differ: in code, description, declaration, examples or what they
// are bound to. Names are bound to the versions that the document says; to what
// there is where it says nothing. What they may do is decided anew; what is
// refused its capabilities is there, blocked. Everything is checked before
// anything is changed, and all of it is kept at once, or nothing.
func (r *Registry) Import(tools []Portable) (added, replaced, same int, err error) {
	return r.ImportChecked(tools, nil)
}

// ImportChecked is [Registry.Import] of tools that check, if it isn't nil, has
// judged: each version that is made is shown to it beside all tools as they will be
// then, and one that it refuses keeps out the whole document.
func (r *Registry) ImportChecked(tools []Portable, check Check) (added, replaced, same int, err error) {
	ordered, err := order(tools)
	if err != nil {
		return 0, 0, 0, err
	}
	r.turn.Lock()
	defer r.turn.Unlock()
	passed := map[*Portable]*Tool{}
	for range mostImports {
		if _, err = r.Refresh(); err != nil {
			return 0, 0, 0, err
		}
		over, copied := r.rehearsal()
		var n imported
		if n, err = (&importing{r: copied, check: check, passed: passed}).all(ordered); err != nil {
			return 0, 0, 0, err
		}
		if len(over.changes) > 0 {
			_, err = r.log.AppendAll(over.base, over.changes)
		}
		if err == nil {
			_, err = r.Refresh()
			return n.added, n.replaced, n.same, err
		}
		if !errors.Is(err, ErrBehind) {
			break
		}
	}
	hint := "The tools that exist are unchanged."
	if errors.Is(err, ErrBehind) {
		hint += " Others change them all the time: try again."
	}
	return 0, 0, 0, &fault.Fault{
		Kind: fault.Refused, Message: fmt.Sprintf("nothing was imported: %v", err),
		Hint: hint, Cause: err,
	}
}

// mostImports is how often an import is tried beside other processes that change
// the tools.
const mostImports = 10

// rehearsal is a registry like this one, whose changes nobody sees but who looks
// into the log that it has.
func (r *Registry) rehearsal() (*overlay, *Registry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.current.Load()
	over := &overlay{Log: r.log, base: s.seq, last: s.seq}
	copied := &Registry{
		log:    over,
		policy: r.policy,
		same:   newIndex(), // so that it finds out what is to be recorded
		held: holdings{
			count: maps.Clone(r.held.count), bySeq: maps.Clone(r.held.bySeq), code: r.held.code, told: r.held.told,
			place: r.held.place, rehearse: true,
		},
	}
	copied.current.Store(s)
	return over, copied
}

// An overlay is a log with changes of its own after one of another log.
type overlay struct {
	Log
	base, last uint64
	mu         sync.Mutex
	changes    []Change
}

func (o *overlay) Append(_ uint64, c *Change, _ ...string) (uint64, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last++
	kept := *c
	kept.Seq = o.last
	o.changes = append(o.changes, kept)
	return o.last, nil
}

// Changed is where the snapshot is, always.
func (o *overlay) Changed() (uint64, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last, nil
}

func (o *overlay) Since(uint64, int) ([]Change, bool, error) { return nil, false, nil }

func (o *overlay) Of(name string, before uint64, limit int) ([]Change, bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var list []Change
	for _, c := range slices.Backward(o.changes) {
		if c.Name == name && (before == 0 || c.Seq < before) {
			list = append(list, c)
		}
	}
	if len(list) >= limit {
		return list[:limit], true, nil
	}
	if before == 0 || before > o.base+1 {
		before = o.base + 1
	}
	rest, more, err := o.Log.Of(name, before, limit-len(list))
	return append(list, rest...), more, err
}

func (o *overlay) One(seq uint64) (Change, bool, error) {
	if seq <= o.base {
		return o.Log.One(seq)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if seq > o.last {
		return Change{}, false, nil
	}
	return o.changes[seq-o.base-1], true, nil
}

// importing is an import under way: what became of each entry, by its name and
// what the document calls it by.
type importing struct {
	r     *Registry
	check Check
	// passed is the candidates that check let through, also in earlier tries.
	passed map[*Portable]*Tool
	made   map[portableID]*Tool
	// grouped is what became of those that were made with others.
	grouped map[*Portable]oneMade
}

type portableID struct{ name, hash string }

type imported struct{ added, replaced, same int }

// errSame says that there is nothing to change.
var errSame = errors.New("it is there already")

func (m *importing) all(ordered []*Portable) (n imported, err error) {
	m.made, m.grouped = make(map[portableID]*Tool, len(ordered)), map[*Portable]oneMade{}
	before := m.r.current.Load()
	// passing is the names that only older versions were made of.
	passing := map[string]bool{}
	var fresh []freshOne
	for _, p := range ordered {
		t, err := m.one(p)
		if err != nil {
			return n, fmt.Errorf("tool %q: %w", p.Name, err)
		}
		m.made[portableID{p.Name, p.Hash}] = t.Tool
		if t.isNew {
			fresh = append(fresh, freshOne{p, t.Tool})
		}
		_, there := before.Get(p.Name)
		switch {
		case p.Old:
			passing[p.Name] = passing[p.Name] || t.isNew
			continue
		case !t.isNew:
			n.same++
		case there:
			n.replaced++
		default:
			n.added++
		}
		passing[p.Name] = false
	}
	for _, name := range slices.Sorted(maps.Keys(passing)) {
		if !passing[name] {
			continue
		}
		if old, there := before.Get(name); there {
			_, err = m.r.rollbackAlone(name, old.Version, Edit{}, true)
		} else {
			_, err = m.r.Retire(name, Edit{})
		}
		if err != nil {
			return n, fmt.Errorf("tool %q: %w", name, err)
		}
	}
	return n, m.judge(fresh)
}

// A freshOne is a version that was made of an entry.
type freshOne struct {
	from *Portable
	tool *Tool
}

// judge has check judge what was made. It does so when everything is there, since
// code may call tools that it doesn't name.
func (m *importing) judge(fresh []freshOne) error {
	if m.check == nil {
		return nil
	}
	sees := m.r.current.Load()
	for _, f := range fresh {
		// What was said in an earlier try holds for code that is bound to the same
		// and neither calls nor takes the code of anything else.
		if before := m.passed[f.from]; before != nil && !f.tool.Late() && !f.tool.Copies() && sameBound(before.Bound, f.tool.Bound) {
			continue
		}
		if fault := m.check(f.tool, sees); fault != nil {
			return fmt.Errorf("tool %q: %w", f.tool.Name, fault)
		}
		m.passed[f.from] = f.tool
	}
	return nil
}

// oneMade is what became of an entry.
type oneMade struct {
	*Tool
	isNew bool
}

func (m *importing) one(p *Portable) (oneMade, error) {
	if p.with != nil {
		if _, done := m.grouped[p]; !done {
			if err := m.together(p.with); err != nil {
				return oneMade{}, err
			}
		}
		return m.grouped[p], nil
	}
	if p.Old {
		if t, err := m.recorded(p); t != nil || err != nil {
			return oneMade{t, false}, err
		}
	}
	var now *Tool
	t, err := m.r.change(p.Name, Edit{}, func(s *Snapshot, old *Tool) (*Tool, *Change, error) {
		now = old
		return m.build(p, s, old)
	})
	if errors.Is(err, errSame) {
		return oneMade{now, false}, nil
	}
	return oneMade{t, true}, err
}

// recorded is a version on record that is what an older one of the document is;
// nil: there is none.
func (m *importing) recorded(p *Portable) (*Tool, error) {
	bound, err := m.bindings(p)
	if err != nil {
		return nil, err
	}
	for before, more := uint64(0), true; more; {
		var changes []Change
		changes, more, err = m.r.log.Of(p.Name, before, page)
		if err != nil {
			return nil, err
		}
		for i := range changes {
			c := &changes[i]
			before = c.Seq
			if c.Err != nil || c.Kind == Retired || c.Hash != p.base.Hash || !slices.Equal(c.Definition.Capabilities, p.Definition.Capabilities) {
				continue
			}
			if t, err := m.r.load(*c); err == nil && sameBound(t.Bound, bound) {
				return t, nil
			}
		}
		more = more && len(changes) > 0
	}
	return nil, nil
}

// bindings is the versions that the document says.
func (m *importing) bindings(p *Portable) (map[string]*Tool, error) {
	bound := make(map[string]*Tool, len(p.Bound))
	for name, hash := range p.Bound {
		t := m.made[portableID{name, hash}]
		if t == nil {
			var err error
			if t, err = m.byHash(name, hash); err != nil {
				return nil, err
			}
		}
		bound[name] = t
	}
	return bound, nil
}

// byHash is the newest version on record of a name with a hash.
func (m *importing) byHash(name, hash string) (*Tool, error) {
	for before, more := uint64(0), true; more; {
		changes, further, err := m.r.log.Of(name, before, page)
		if err != nil {
			return nil, err
		}
		for i := range changes {
			c := &changes[i]
			before = c.Seq
			if c.Err == nil && c.Kind != Retired && c.Hash == hash {
				if t, err := m.r.load(*c); err == nil {
					return t, nil
				}
			}
		}
		more = further && len(changes) > 0
	}
	return nil, fault.Newf(fault.InvalidRequest, "it is bound to the version of %q with the hash %.16s…, which is neither in the document nor on record here", name, hash).
		Hinted(fmt.Sprintf(`Take "%s" out of its "bound" to bind it to the version there is.`, name))
}

// build makes an entry's new version, unless it is there already.
func (m *importing) build(p *Portable, s *Snapshot, old *Tool) (*Tool, *Change, error) {
	t := *p.base
	t.finding = &finding{}
	bound, err := m.bindings(p)
	if err != nil {
		return nil, nil, err
	}
	t.settle(m.r.policy)
	t.bind(s)
	for _, b := range bound {
		t.boundTo(b)
	}
	if f := t.unbound(); f != nil {
		return nil, nil, f
	}
	if f := t.narrow(); f != nil {
		return nil, nil, f
	}
	if old != nil && old.same(&t) && old.sameSource(&t) && sameBound(old.Bound, t.Bound) {
		return nil, nil, errSame
	}
	return &t, &Change{Kind: Evolved}, nil
}

func sameBound(a, b map[string]*Tool) bool {
	return maps.EqualFunc(a, b, func(t, u *Tool) bool { return t.Hash == u.Hash && (t == u || sameBound(t.outside(), u.outside())) })
}

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

// groupOf is the entries that an entry was made with, itself among them, in their
// order; nil: it was made alone.
func groupOf(p *Portable, byID map[portableID]*Portable) ([]*Portable, error) {
	if p.Group == nil {
		return nil, nil
	}
	wrong := func() ([]*Portable, error) {
		return nil, fault.Newf(fault.InvalidRequest, "tool %q: its group isn't in the document as it says", p.Name).
			Hinted(`Each of a group lists the names of all in "group", in the same order, and the hashes of the others in "bound".`)
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
		if err := r.held.admit(old, t, live); err != nil {
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
