package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/prim"
)

// A record is what is known of one: its fields, and of what type others are.
type record struct {
	fields []field // sorted by key
	// rest is the type of other fields that may be there. row is set for what
	// is known of a caller's record, whose other fields become known by use. A
	// record with neither has no others.
	rest *variable
	row  *row
}

type field struct {
	key      string
	v        *variable
	presence presence
}

type presence uint8

const (
	absent presence = iota
	optional
	required
)

// A row is the fields of a caller's record, as far as they are asked for.
type row struct {
	fields map[string]*rowField
	keys   []string // in the order of their asking
	rest   *variable
	seed   *seed
	watch  []func(key string, v *variable)
}

type rowField struct {
	v *variable
	// sure is set where the field is got whenever the function is applied.
	sure bool
}

func (c *checker) rowField(r *row, key string) *rowField {
	f, ok := r.fields[key]
	if !ok {
		f = &rowField{v: c.partOf(r.seed, "."+key)}
		r.fields[key] = f
		r.keys = append(r.keys, key)
		for _, w := range r.watch {
			w(key, f.v)
		}
	}
	return f
}

// lookup finds a field of a record's shape. sure is for a caller's: that the
// field is needed whenever the function is applied.
func (c *checker) lookup(s *shape, key string, sure bool) (*variable, presence) {
	r := s.record
	i, ok := slices.BinarySearchFunc(r.fields, key, func(f field, key string) int { return strings.Compare(f.key, key) })
	switch {
	case ok:
		return r.fields[i].v, r.fields[i].presence
	case r.row != nil:
		f := c.rowField(r.row, key)
		f.sure = f.sure || sure
		return f.v, optional
	case r.rest != nil:
		return r.rest, optional
	}
	return nil, absent
}

// fieldsOf visits the types of all fields that may be there, the key empty for
// those that aren't named.
func (c *checker) fieldsOf(s *shape, visit func(key string, v *variable)) {
	r := s.record
	if !c.spend(len(r.fields)) {
		return
	}
	named := map[string]bool{}
	for _, f := range r.fields {
		named[f.key] = true
		if f.presence != absent {
			visit(f.key, f.v)
		}
	}
	if r.rest != nil {
		visit("", r.rest)
	}
	if r.row != nil {
		visit("", r.row.rest)
		each := func(key string, v *variable) {
			if !named[key] {
				visit(key, v)
			}
		}
		r.row.watch = append(r.row.watch, each)
		for _, key := range r.row.keys {
			each(key, r.row.fields[key].v)
		}
	}
}

// intern gives the one shape of a record: programs that add fields in a loop
// make the same ones again and again.
func (c *checker) intern(r *record) *shape {
	var b strings.Builder
	for _, f := range r.fields {
		id := 0
		if f.v != nil {
			id = f.v.id
		}
		fmt.Fprintf(&b, "%q %d %d;", f.key, id, f.presence)
	}
	if r.rest != nil {
		fmt.Fprintf(&b, "* %d", r.rest.id)
	}
	if r.row != nil {
		fmt.Fprintf(&b, "row %d", r.row.rest.id)
	}
	s, ok := c.interned[b.String()]
	if !ok {
		s = c.shape(prim.KindRecord)
		s.record = r
		c.interned[b.String()] = s
	}
	c.spend(len(r.fields))
	return s
}

// other is the type of a field that isn't named, if it may be there.
func (r *record) other(key string) *variable {
	if _, ok := slices.BinarySearchFunc(r.fields, key, func(f field, key string) int { return strings.Compare(f.key, key) }); ok {
		return nil
	}
	if r.row == nil {
		return r.rest
	}
	if r.row.fields[key] != nil {
		return nil
	}
	return r.row.rest
}

// with is a record with others in the place of its fields, or beside them; they are sorted by their keys, as its own are.
func (c *checker) with(s *shape, others ...field) *shape {
	if len(others) == 0 {
		return s
	}
	own, closed := s.record.fields, s.record.row == nil && s.record.rest == nil
	fields := make([]field, 0, len(own)+len(others))
	for _, f := range others {
		i, found := slices.BinarySearchFunc(own, f.key, func(g field, key string) int { return strings.Compare(g.key, key) })
		fields = append(fields, own[:i]...)
		if own = own[i:]; found {
			own = own[1:]
		}
		if f.presence != absent || !closed {
			fields = append(fields, f)
		}
	}
	return c.intern(&record{append(fields, own...), s.record.rest, s.record.row})
}

// mostShapes is how many records a place makes before they become one whose
// fields may be there or not.
const mostShapes = 8

// A maker is what makes records at a place.
type maker struct {
	c    *checker
	to   *variable
	made []*shape
	// wide is the fields of all that were made, once there are too many.
	wide map[string]field
	rest *variable
}

func (m *maker) give(s *shape) {
	if m.wide == nil {
		if slices.Contains(m.made, s) {
			return
		}
		if len(m.made) < mostShapes {
			m.made = append(m.made, s)
			m.c.add(m.to, s)
			return
		}
		m.wide = map[string]field{}
		for _, s := range m.made {
			m.widen(s)
		}
	}
	m.widen(s)
	if !m.c.spend(len(m.wide)) {
		return
	}
	r := &record{rest: m.rest}
	for _, f := range m.wide {
		r.fields = append(r.fields, f)
	}
	slices.SortFunc(r.fields, func(a, b field) int { return strings.Compare(a.key, b.key) })
	m.c.add(m.to, m.c.intern(r))
}

func (m *maker) widen(s *shape) {
	if m.rest == nil && (s.record.rest != nil || s.record.row != nil) {
		m.rest = m.c.variable()
	}
	m.c.fieldsOf(s, func(key string, v *variable) {
		if key == "" || s.record.row != nil {
			// A caller's fields become known one by one.
			m.c.flow(v, m.rest)
		}
		if key == "" {
			return
		}
		f, ok := m.wide[key]
		if !ok {
			f = field{key, m.c.variable(), optional}
			m.wide[key] = f
		}
		m.c.flow(v, f.v)
	})
	if m.rest != nil {
		// One of the others may be called so.
		for _, key := range slices.Sorted(maps.Keys(m.wide)) {
			m.c.flow(m.rest, m.wide[key].v)
		}
	}
}
