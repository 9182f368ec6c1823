package check

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// maxParts is how many parts a type is shown with; more are dynamic.
const maxParts = 4_000

// maxShown is how deep the parts of a type that is shown are inside each other.
const maxShown = 300

// A typeBuilder makes types of variables: a type is the union of what flows in.
// Sets of the same shapes are one type, and one inside itself gets a name.
type typeBuilder struct {
	c     *checker
	parts int
	deep  int
	// flows is set where a parameter's type is what flows into it, and not what
	// a caller may give.
	flows bool
	open  map[string]*Type // types under way, by their shapes
	names map[string]string
	used  map[string]bool
	cut   bool
}

func (c *checker) buildTypes(flows bool) *typeBuilder {
	return &typeBuilder{c: c, flows: flows, open: map[string]*Type{}, names: map[string]string{}, used: map[string]bool{}}
}

// given is the type of what flows into a variable.
func (d *typeBuilder) given(vs ...*variable) *Type {
	var all []*shape
	for _, v := range vs {
		if v != nil {
			all = append(all, v.lower...)
		}
	}
	return d.union(all, false)
}

// taken is the type of what may be given for a parameter, or for a part of one.
func (d *typeBuilder) taken(v *variable) *Type {
	switch {
	case v == nil:
		return Nothing
	case v.open == nil || d.flows:
		return d.given(v)
	case v.open.tuple && v.open.whole == prim.KindAny:
		return Any
	case v.open.tuple:
		return &Type{Kinds: v.open.whole, Deep: true}
	case v.open.conflict:
		return Dynamic
	}
	may := []*shape{v.open.shape}
	if v.open.known() {
		may = v.open.alive()
	}
	t := d.union(may, true)
	if t != Dynamic {
		t.wants, t.orNull, t.asked = v.open.wanted(), v.open.wants&prim.KindUnit != 0, v.open.asked
	}
	return t
}

// part is the type of a part: of what is given, or may be.
func (d *typeBuilder) part(taken bool, vs []*variable) *Type {
	if !taken {
		return d.given(vs...)
	}
	var t *Type
	for _, v := range vs {
		if u := d.taken(v); t == nil {
			t = u
		} else {
			t = d.meet(t, u, 0)
		}
	}
	return t
}

// union is the type of shapes, which are of a caller's value where taken is
// set.
func (d *typeBuilder) union(all []*shape, taken bool) *Type {
	if d.parts += 1 + len(all)/32; d.parts > maxParts || d.deep > maxShown {
		d.cut = true
		return Dynamic
	}
	d.deep++
	defer func() { d.deep-- }()
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b *shape) int { return a.id - b.id })
	all = slices.Compact(all)
	all = slices.DeleteFunc(all, func(s *shape) bool {
		return s.unknown != nil && s.unknown.known() && !s.unknown.mayDiffer() || s.seed != nil && s.seed.dead&s.kind != 0 && !s.seed.mayDiffer()
	})
	structured := false
	var key strings.Builder
	whole := prim.Kinds(0) // those of a kind without parts are alike
	for _, s := range all {
		if s.kind&plain != 0 && s.unknown == nil && !s.dynamic {
			whole |= s.kind
			continue
		}
		key.WriteString(strconv.Itoa(s.id))
		key.WriteByte(' ')
		structured = structured || s.item != nil || s.first != nil || s.record != nil || s.param != nil || s.next != nil || s.code != nil
	}
	key.WriteString(strconv.Itoa(int(whole)))
	if taken {
		key.WriteByte('-')
	}
	k := key.String()
	if structured {
		if under, ok := d.open[k]; ok {
			// The type is inside itself.
			under.Name = cmp.Or(under.Name, "#"+k)
			return &Type{Vars: []string{under.Name}}
		}
	}
	t := &Type{}
	d.open[k] = t
	d.fill(t, all, taken)
	delete(d.open, k)
	return t
}

func (d *typeBuilder) fill(t *Type, all []*shape, taken bool) {
	by := map[prim.Kinds][]*shape{}
	for _, s := range all {
		switch {
		case s.unknown != nil:
			d.unknown(t, s.unknown, taken)
			continue
		case s.dynamic:
			t.Dynamic, t.Any = t.Dynamic || s != d.c.anything, t.Any || s == d.c.anything
			continue
		}
		t.Kinds |= s.kind
		by[s.kind] = append(by[s.kind], s)
	}
	each := func(k prim.Kinds, part func(*shape) *variable) []*variable {
		var vs []*variable
		for _, s := range by[k] {
			if v := part(s); v != nil {
				vs = append(vs, v)
			}
		}
		return vs
	}
	if by[prim.KindList] != nil {
		t.Item = d.part(taken, each(prim.KindList, func(s *shape) *variable { return s.item }))
	}
	if by[prim.KindPair] != nil {
		t.First = d.part(taken, each(prim.KindPair, func(s *shape) *variable { return s.first }))
		t.Second = d.part(taken, each(prim.KindPair, func(s *shape) *variable { return s.second }))
	}
	if rs := by[prim.KindRecord]; rs != nil {
		d.records(t, rs, taken)
	}
	if fs := by[prim.KindFunction]; fs != nil {
		d.functions(t, fs, taken)
	}
	if by[prim.KindContinuation] != nil {
		t.Next = d.part(taken, each(prim.KindContinuation, func(s *shape) *variable { return s.next }))
	}
	if cs := by[prim.KindQuoted]; cs != nil {
		d.codes(t, cs)
	}
	if t.Any {
		*t = Type{Kinds: prim.KindAny, Any: true}
	}
	if !d.flows && t.Kinds == prim.KindData && !t.Dynamic && d.anyData(by) {
		*t = Type{Kinds: prim.KindData, Deep: true, Vars: t.Vars}
	}
}

// anyData reports whether shapes are all data there is, as an operation answers it.
func (d *typeBuilder) anyData(by map[prim.Kinds][]*shape) bool {
	return !slices.ContainsFunc([]prim.Kinds{prim.KindList, prim.KindPair, prim.KindRecord, prim.KindQuoted}, func(k prim.Kinds) bool {
		return len(by[k]) != 1 || by[k][0] != d.c.someOf(k, d.c.dynData)
	})
}

func (d *typeBuilder) unknown(t *Type, s *seed, taken bool) {
	switch {
	case s.ofTuple():
		t.Any = true
	case s.conflict:
		t.Dynamic = true
	case s.deep == prim.KindAny:
		t.Vars = append(t.Vars, "$"+strconv.Itoa(s.v.id))
		if !taken {
			d.used["$"+strconv.Itoa(s.v.id)] = true
		}
	default:
		t.Vars = append(t.Vars, "&"+strconv.Itoa(int(s.deep)))
	}
}

// functions is the functions of all shapes: each has to take the parameter.
func (d *typeBuilder) functions(t *Type, fs []*shape, taken bool) {
	var results, effects []*variable
	for _, s := range fs {
		var p *Type
		if taken {
			p = d.given(s.param)
		} else {
			p = d.taken(s.param)
		}
		if t.Param == nil {
			t.Param = p
		} else {
			t.Param = d.meet(t.Param, p, 0)
		}
		results, effects = append(results, s.result), append(effects, s.effects)
	}
	t.Result = d.part(taken, results)
	t.Effects = d.row(effects...)
}

// row is the operations among effects that evals don't deny.
func (d *typeBuilder) row(vs ...*variable) Row {
	var r Row
	for _, v := range vs {
		if v == nil {
			continue
		}
		for _, s := range v.lower {
			switch a := s.atom; {
			case a == nil || a.inert || !permits(a.with, a.op):
			case a.via != "":
			case a.op == "*" && len(a.with) == 0:
				r.Open = true
			case a.op == "*":
				r.Ops = append(r.Ops, allowed(a.with)...)
			default:
				r.Ops = append(r.Ops, a.op)
			}
		}
	}
	slices.Sort(r.Ops)
	r.Ops = narrowest(slices.Compact(r.Ops))
	return r
}

// records is the fields that any of the shapes may have; one is required that
// all have.
func (d *typeBuilder) records(t *Type, rs []*shape, taken bool) {
	named := map[string][]*variable{}
	count := map[string]int{}
	var rest []*variable
	var keys []string
	note := func(key string, v *variable, sure bool) {
		if _, ok := named[key]; !ok {
			keys = append(keys, key)
		}
		named[key] = append(named[key], v)
		if sure {
			count[key]++
		}
	}
	for _, s := range rs {
		r := s.record
		over := map[string]bool{}
		for _, f := range r.fields {
			over[f.key] = true
			if f.presence != absent {
				note(f.key, f.v, f.presence == required)
			}
		}
		if r.rest != nil {
			rest = append(rest, r.rest)
		}
		if r.row != nil {
			rest = append(rest, r.row.rest)
			for _, key := range r.row.keys {
				if !over[key] {
					f := r.row.fields[key]
					note(key, f.v, f.sure && taken)
				}
			}
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		vs := named[key]
		for _, s := range rs {
			// One of the others of a record may be called so.
			if v := s.record.other(key); v != nil {
				vs = append(vs, v)
			}
		}
		f := Field{Key: key, Type: d.part(taken, vs), Optional: count[key] < len(rs)}
		t.Fields = append(t.Fields, f)
	}
	if rest != nil {
		t.Rest = d.part(taken, rest)
	}
}

// codes is quoted code: of one quote, its type with the variables that it
// expects.
func (d *typeBuilder) codes(t *Type, cs []*shape) {
	t.Unknown = true
	if len(cs) != 1 || cs[0].code == nil || d.c.nested >= 2 || d.c.over {
		return
	}
	body := cs[0].code.Body
	free := term.Free(body)
	slices.Sort(free)
	inner := newChecker(prim.Function(term.At(body.Pos()), free, body), nil, d.c.env, Budget{Steps: max(1, (d.c.limit-d.c.steps)/8), Spend: d.c.spending})
	inner.env.Tool = ""
	inner.nested, inner.final = d.c.nested+1, d.c.final
	inner.run(false)
	d.c.steps = min(d.c.limit, d.c.steps+inner.steps)
	if inner.over {
		return
	}
	typ := inner.mainType()
	for _, name := range free {
		if !typ.IsFunction() {
			return
		}
		t.Expects = append(t.Expects, Field{Key: name, Type: typ.Param})
		t.Asks = typ.Effects
		typ = typ.Result
	}
	if len(free) == 0 {
		t.Asks = inner.buildTypes(false).row(inner.effects)
	}
	t.Unknown, t.Gives = false, typ
}

// mainType is the type of the program's value.
func (c *checker) mainType() *Type {
	d := c.buildTypes(false)
	t := d.given(c.main)
	if d.cut {
		c.unknownAt(c.root.Pos(), ReasonComplex, "type", "the type is too large to be written out; parts of it are left open")
	}
	return d.finish(t)
}
