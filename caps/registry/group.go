package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// MaxGroup is how many tools are made at once at most, bound to one another.
const MaxGroup = 16

// A Member is a tool of a group: tools that were made at once, each bound to the
// versions of all others that were made with it.
type Member struct {
	Name string `json:"tool"`
	// Code is the hash of its code, in which the members are named by their places.
	Code string `json:"code"`
}

// A group is the versions that are one another's; it is held as one.
type group struct {
	members []*Tool

	once  sync.Once
	types map[*Tool]known // nil: they aren't found
}

// InGroup reports whether a version was made at once with another, and is bound to it.
func (t *Tool) InGroup(b *Tool) bool { return t.group != nil && t.group == b.group }

// Together is the versions that a version was made with, itself among them; nil: it
// was made alone.
func (t *Tool) Together() []*Tool {
	if t.group == nil {
		return nil
	}
	return slices.Clone(t.group.members)
}

// outside is what a version, or its group, is bound to outside of the group.
func (t *Tool) outside() map[string]*Tool {
	if t.group == nil {
		return t.Bound
	}
	all := map[string]*Tool{}
	for _, m := range t.group.members {
		for name, b := range m.Bound {
			if b.group != t.group {
				all[m.Name+"\x00"+name] = b
			}
		}
	}
	return all
}

// memberHash is the hash of code in which the names of a group stand for places.
func memberHash(p *core.Program, names []string) string {
	t := term.Relocate(p.Term(), func(term.At) term.At { return 0 })
	place := func(name string) string {
		if i := slices.Index(names, name); i >= 0 {
			return "\x00" + strconv.Itoa(i)
		}
		if strings.HasPrefix(name, "\x00") { // no tool's name, and no place
			return "\x00" + name
		}
		return name
	}
	var walk func(t term.Term) bool
	walk = func(t term.Term) bool {
		switch t := t.(type) {
		case *term.CodeOf:
			t.Name = place(t.Name)
		case *term.Prim:
			if name, ok := first(t).(*term.Str); ok && (t.ID == prim.Call || t.ID == prim.CodeOf) {
				name.Value = place(name.Value)
			}
		}
		return term.Children(t, walk)
	}
	walk(t)
	return digest(text.Canonical(t))
}

func first(t *term.Prim) term.Term {
	if len(t.Args) == 0 {
		return nil
	}
	return t.Args[0]
}

// groupHash is the hash of the version at a place of a group: over all its codes.
func groupHash(members []Member, place int) string {
	said := "group " + strconv.Itoa(place)
	for _, m := range members {
		said += "\n" + m.Code
	}
	return digest([]byte(said))
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func memberNames(members []Member) []string {
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = m.Name
	}
	return names
}

// A part is one of several tools that are made at once.
type part struct {
	d    Definition
	edit Edit
	base *Tool // what is made of d, by itself
	// carried is the current version, where d is as that was; nil: it isn't.
	carried *Tool
	// from is the version that the tool is rolled back to; nil: it is made of d.
	from *Tool
}

// errMoved is why a change is to be begun anew: a tool is in another group than it was.
var errMoved = errors.New("the groups changed meanwhile")

// EvolveAll makes versions of several tools at once, all or none, that may call one
// another: each is bound to the versions that the others have then. The edits are
// those of the definitions, in their order. The error is that of [Registry.Evolve]
// for the tool that is named first in it.
func (r *Registry) EvolveAll(ds []Definition, edits []Edit) ([]*Tool, error) {
	if len(ds) < 2 || len(ds) > MaxGroup {
		count := "more" // whoever reads them stops after one too many
		if len(ds) < 2 {
			count = fmt.Sprint(len(ds))
		}
		return nil, &fault.Fault{
			Kind: fault.InvalidRequest, Message: fmt.Sprintf("2 to %d tools are evolved at once, not %s", MaxGroup, count),
			Expected: fmt.Sprintf("2 to %d", MaxGroup), Hint: "Evolve one tool by its name and code, those that don't call each other one by one.",
		}
	}
	parts := make([]part, len(ds))
	for i, d := range ds {
		if slices.ContainsFunc(ds[:i], func(e Definition) bool { return e.Name == d.Name }) {
			return nil, &fault.Fault{Kind: fault.InvalidRequest, Message: fmt.Sprintf("duplicate tool %q", d.Name), Hint: "Give each tool once."}
		}
		base, err := prepare(d)
		if err != nil {
			return nil, ofTool(d.Name, err)
		}
		parts[i] = part{d: d, edit: edits[i], base: base}
	}
	return r.makeAll(parts)
}

// makeAll makes a group of its parts.
func (r *Registry) makeAll(parts []part) ([]*Tool, error) {
	members := make([]Member, len(parts))
	for i := range parts {
		members[i].Name = parts[i].base.Name
	}
	names := memberNames(members)
	for i := range parts {
		base := parts[i].base
		members[i].Code = memberHash(base.Program(), names)
		base.code.names, base.code.hash = names, members[i].Code
	}
	r.turn.Lock()
	defer r.turn.Unlock()
	for range mostImports {
		if made, err := r.tryAll(parts, members); !errors.Is(err, ErrBehind) {
			return made, err
		}
	}
	return nil, unkept(strings.Join(names, ", "), errors.New("others change the tools all the time: try again"))
}

// ofTool says which of several tools a refusal is about.
func ofTool(name string, err error) error {
	var f *fault.Fault
	if !errors.As(err, &f) {
		return err
	}
	named := *f
	named.Message = fmt.Sprintf("tool %q: %s", name, f.Message)
	return &named
}

func (r *Registry) tryAll(parts []part, members []Member) ([]*Tool, error) {
	if _, err := r.Refresh(); err != nil {
		return nil, unkept(members[0].Name, err)
	}
	s := r.current.Load()
	g := &group{}
	same := true
	for i := range parts {
		p := &parts[i]
		t := *p.base
		old, _ := s.Get(t.Name)
		if p.carried != nil && p.carried != old {
			return nil, errMoved
		}
		if f := p.edit.compare(t.Name, old); f != nil {
			return nil, f
		}
		t.finding, t.group, t.Group, t.Hash = &finding{}, g, members, groupHash(members, i)
		var err error
		if t.Version, err = r.next(t.Name, old); err != nil {
			return nil, unkept(t.Name, err)
		}
		if p.from != nil {
			t.settle(r.policy)
		} else if err := t.keeps(old, &p.d); err != nil {
			return nil, ofTool(t.Name, err)
		} else if f := t.decide(r.policy); f != nil {
			return nil, ofTool(t.Name, f)
		}
		t.Seq = s.seq + 1 + uint64(i)
		g.members = append(g.members, &t)
	}
	var under []string
	for _, t := range g.members {
		under = labels(under, t.MadeUnder)
	}
	sees := s
	for i, t := range g.members {
		t.MadeUnder = under // what one says, another may call
		if from := parts[i].from; from != nil {
			t.rebind(from, s)
		} else {
			t.bind(s)
		}
		for _, m := range g.members {
			if m != t {
				t.boundTo(m)
			}
		}
		if f := t.unbound(); f != nil {
			return nil, ofTool(t.Name, f)
		}
	}
	for i, t := range g.members {
		if f := t.narrow(); f != nil && parts[i].from == nil {
			return nil, ofTool(t.Name, f)
		}
		sees = sees.Putting(t)
		old, ok := s.Get(t.Name)
		same = same && parts[i].from == nil && ok && slices.Equal(old.Group, members) && old.same(t) && old.sameAuthority(t) && old.sameSource(t)
	}
	if first, ok := s.Get(members[0].Name); same && ok && first.group != nil && maps.Equal(first.outside(), g.members[0].outside()) {
		return first.Together(), nil
	}
	over, copied := r.rehearsal()
	live := s.count
	for i, t := range g.members {
		if check := parts[i].edit.Check; check != nil {
			if f := check(t, sees); f != nil {
				return nil, ofTool(t.Name, f)
			}
		}
		old, ok := s.Get(t.Name)
		if !ok {
			live++
		}
		if err := copied.held.admit(old, t, live); err != nil {
			return nil, err
		}
		c := t.change(Evolved)
		if from := parts[i].from; from != nil {
			c = t.change(RolledBack)
			c.From = from.Version
		}
		c.Facts = t.facts()
		over.changes = append(over.changes, *c)
	}
	first, err := r.log.AppendAll(s.seq, over.changes)
	if err == nil {
		_, err = r.Refresh()
	}
	if err != nil {
		return nil, unkept(members[0].Name, err)
	}
	now, ok := r.current.Load().Get(members[0].Name)
	if !ok || now.Seq != first { // somebody has changed it already
		if now, err = r.version(g.members[0].ref()); err != nil {
			return nil, unkept(members[0].Name, err)
		}
	}
	return now.Together(), nil
}

// madeWith is the versions of a tool's group, its own among them, that are current: those
// that a change of the tool carries along; nil: there are no others.
func (s *Snapshot) madeWith(name string) (current []*Tool) {
	t, ok := s.Get(name)
	if !ok || t.group == nil {
		return nil
	}
	for _, m := range t.group.members {
		if now, _ := s.Get(m.Name); now == m {
			current = append(current, m)
		}
	}
	if len(current) < 2 {
		return nil
	}
	return current
}

// one changes a tool: by itself, or where it is of a group as a part of that, with the
// others carried along.
func (r *Registry) one(name string, alone func() (*Tool, error), inGroup func() (part, error)) (*Tool, error) {
	for range mostImports {
		var t *Tool
		var err error
		if current := r.current.Load().madeWith(name); current != nil {
			var p part
			if p, err = inGroup(); err == nil {
				t, err = r.carry(current, name, p)
			}
		} else {
			t, err = alone()
		}
		if !errors.Is(err, errMoved) {
			return t, err
		}
	}
	return nil, unkept(name, errors.New("others change the tools all the time: try again"))
}

// carry makes one of a group, and with it the others as they are.
func (r *Registry) carry(current []*Tool, name string, p part) (*Tool, error) {
	var parts []part
	at := 0
	for _, m := range current {
		if m.Name == name {
			at = len(parts)
			parts = append(parts, p)
			continue
		}
		d := Definition{
			Name: m.Name, Code: m.Source, Text: m.Text, Capabilities: m.Declared, MadeUnder: m.MadeUnder,
			Keep: Keep{Description: true, As: true, Input: true},
		}
		if m.readOtherwise() {
			d.Code, d.Text = m.Program().Canonical(), false
		}
		base, err := prepare(d)
		if err != nil {
			return nil, ofTool(m.Name, err)
		}
		if m.readOtherwise() {
			base.writtenAs(m.Source, m.Text)
		}
		parts = append(parts, part{d: d, base: base, carried: m, edit: Edit{Check: func(candidate *Tool, sees *Snapshot) *fault.Fault {
			if f := fits(candidate, m, name); f != nil || p.edit.Carried == nil {
				return f
			}
			return p.edit.Carried(candidate, sees)
		}}})
	}
	made, err := r.makeAll(parts)
	if err != nil {
		return nil, err
	}
	return made[at], nil
}

// fits refuses a version whose code is as it was, and fails where that didn't.
func fits(t, before *Tool, changed string) *fault.Fault {
	was := before.Report().Diagnostics
	for _, d := range t.Report().Diagnostics {
		if !slices.ContainsFunc(was, func(e check.Diagnostic) bool { return e.Place == d.Place && e.Message == d.Message }) {
			return &fault.Fault{
				Kind: fault.Refused, Message: fmt.Sprintf("it was made together with %q, which it calls, and would fail with the new one: %s", changed, d.Message),
				Expected: d.Expected, Got: d.Got,
				Hint: fmt.Sprintf(`Evolve both at once: {"tools":[{"name":%q,"code":…},{"name":%q,"code":…}]}.`, changed, t.Name),
			}
		}
	}
	if before.Report().Sound() && !t.Report().Sound() {
		return fault.Newf(fault.Refused, "%q was made together with %q, which it calls, and isn't known to work with the new one", t.Name, changed).
			Hinted(fmt.Sprintf(`Evolve both at once: {"tools":[{"name":%q,"code":…},{"name":%q,"code":…}]}.`, changed, t.Name))
	}
	return nil
}

// change is what goes on record of a new version.
func (t *Tool) change(kind ChangeKind) *Change {
	return &Change{
		Kind: kind, Capabilities: t.Capabilities, Home: t.Home,
		Stored: Stored{
			Definition: Definition{
				Name: t.Name, Description: t.Description, Code: t.Source, Text: t.Text,
				Capabilities: t.Declared, Examples: t.Examples, As: t.As, Input: t.Input, MadeUnder: t.MadeUnder,
			},
			Version: t.Version, Hash: t.Hash, Bound: t.bindings(), Group: t.Group, Canonical: t.canonical(),
		},
	}
}

// rebind binds a version to what another one of the same code was bound to, and beside
// that to today's.
func (t *Tool) rebind(was *Tool, s *Snapshot) {
	t.Bound = maps.Clone(was.Bound)
	for _, name := range t.names() {
		if now, ok := s.Get(name); ok && t.Bound[name] == nil {
			t.boundTo(now)
		}
	}
}

// alone takes a version out of its group: bound to what the group's others were.
func (t *Tool) alone() {
	t.group, t.Group = nil, nil
	c := &code{name: t.Name, source: t.Source, text: t.Text}
	if t.readOtherwise() {
		c.hash, c.json = t.Program().Hash(), t.Program().Canonical()
	}
	t.code = c
	t.Hash = t.Program().Hash()
	t.code.hash = t.Hash
}

// with reports whether two changes say that they are of one group: each is bound to
// the other.
func (c *Change) with(d *Change) bool {
	binds := func(c, d *Change) bool {
		return slices.ContainsFunc(c.Bound, func(b Binding) bool { return b.Ref == Ref{d.Name, d.Version} })
	}
	return len(c.Group) > 0 && slices.Equal(c.Group, d.Group) && binds(c, d) && binds(d, c)
}

// grouped says why what a change says of its group can't be true; nil: it can.
func (c *Change) grouped() error {
	if len(c.Group) == 0 {
		return nil
	}
	names := memberNames(c.Group)
	place := slices.Index(names, c.Name)
	if place < 0 || len(names) > MaxGroup || c.Hash != groupHash(c.Group, place) {
		return errors.New("its hash isn't that of its group")
	}
	for i, name := range names {
		bound := slices.ContainsFunc(c.Bound, func(b Binding) bool { return b.Name == name })
		if slices.Index(names, name) != i || bound == (i == place) {
			return errors.New("it isn't bound to its group")
		}
	}
	return nil
}

// spoilGroups has no version be made whose group isn't the same to each of its members.
// bound is what each change is bound to.
func (l *loader) spoilGroups(bound map[uint64][]*Change) {
	known := map[uint64][]uint64{} // each is asked by all of its group
	whole := func(c *Change) (all []uint64, err error) {
		if all = known[c.Seq]; all != nil {
			return all, nil
		}
		all = []uint64{c.Seq}
		for _, b := range bound[c.Seq] {
			if slices.ContainsFunc(c.Group, func(m Member) bool { return m.Name == b.Name }) {
				if !c.with(b) {
					return nil, errors.New("its group is another's")
				}
				all = append(all, b.Seq)
			}
		}
		slices.Sort(all)
		known[c.Seq] = all
		return all, nil
	}
	for seq, t := range l.made {
		if len(t.Group) == 0 || l.bad[seq] != nil {
			continue
		}
		mine, err := whole(l.changes[seq])
		for _, other := range mine {
			if l.found(other) != nil || l.made[other] == nil {
				continue
			}
			if theirs, bad := whole(l.changes[other]); bad != nil || !slices.Equal(mine, theirs) {
				err = errors.New("its group is another's")
			}
		}
		if err != nil {
			l.bad[seq] = err
		}
	}
}

// group makes one of those that were made together, of which all can be made. bound is
// what each change is bound to.
func (l *loader) group(bound map[uint64][]*Change) {
	if !slices.ContainsFunc(slices.Collect(maps.Values(l.made)), func(t *Tool) bool { return len(t.Group) > 0 }) {
		return
	}
	for again := true; again; {
		again = false
		for seq := range l.made {
			if l.bad[seq] == nil && slices.ContainsFunc(bound[seq], func(c *Change) bool { return l.bad[c.Seq] != nil && l.found(c.Seq) == nil }) {
				l.bad[seq], again = errors.New("one of its group, or what that is bound to, can't be made"), true
			}
		}
	}
	for seq, t := range l.made {
		if len(t.Group) == 0 || t.group != nil || l.bad[seq] != nil || l.found(seq) != nil {
			continue
		}
		g := &group{}
		for _, m := range t.Group {
			member := t
			if m.Name != t.Name {
				member = t.Bound[m.Name]
			}
			g.members = append(g.members, member)
		}
		for _, m := range g.members {
			m.group = g
		}
	}
}

// mostRounds is how often the types of a group are worked out from one another until
// they stay what they are.
const mostRounds = 4

// withGroup is found, with what the others of its group are for a version. Their types
// are the least that give one another; where that takes too many rounds nothing is
// known of them.
func (t *Tool) withGroup(found map[*Tool]known) map[*Tool]known {
	if t.group == nil {
		return found
	}
	t.group.once.Do(t.group.infer)
	all := maps.Clone(found)
	if all == nil {
		all = map[*Tool]known{}
	}
	for _, m := range t.group.members {
		delete(all, m)
		if k, ok := t.group.types[m]; ok && m != t {
			all[m] = k
		}
	}
	return all
}

func (g *group) infer() {
	found := map[*Tool]known{}
	for _, m := range g.members {
		for _, b := range m.Bound {
			if _, ok := found[b]; !ok && !m.InGroup(b) {
				found[b] = b.know(ofTypes)
			}
		}
	}
	// They begin as functions of anything that give nothing and ask for nothing.
	for _, m := range g.members {
		params := m.Program().Params()
		typ := check.Nothing
		for range params {
			typ = check.Function(check.Any, typ, check.Row{})
		}
		found[m] = known{report: &check.Report{Type: typ, Params: params}}
	}
	for range mostRounds {
		next := make([]known, len(g.members))
		same := true
		for i, m := range g.members {
			k := known{answers: m.relied(found)}
			r := m.widen(check.Infer(m.Program().Term(), m.Program().Tool().Source, m.noting(m.env(found), &k), check.Budget{Steps: typeSteps / len(g.members), Places: 1}))
			c := callee(r)
			told := &check.Report{Type: c.Type, Reads: c.Reads, Params: r.Params, Effects: c.Effects, Dynamic: r.Dynamic[:min(len(r.Dynamic), 1)]}
			if !c.Sound && len(told.Dynamic) == 0 {
				told.Dynamic = []check.Unknown{{Reason: check.ReasonCall}}
			}
			was := found[m].report
			same = same && was.Type.String() == told.Type.String() && len(was.Effects) == len(told.Effects) && was.Sound() == told.Sound()
			k.report = told
			next[i] = k
		}
		for i, m := range g.members {
			found[m] = next[i]
		}
		if same {
			g.types = map[*Tool]known{}
			for _, m := range g.members {
				g.types[m] = found[m]
			}
			return
		}
	}
}
