package flows

import (
	"github.com/mcp-pif/mcp-pif/core/flow"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"maps"
	"slices"
)

// prim evaluates a form, or a row whose operands are evaluated first.
func (a *analysis) prim(n *term.Prim, e *env, ctx *scope, w where) *abs {
	switch n.ID {
	case prim.Eval:
		return a.quoted(n, e, ctx, w)
	case prim.And, prim.Or:
		first := a.operand(n.Args[0], e, ctx, w)
		if first == nil {
			return nil
		}
		inside := w.under(first.own.Control(), first)
		second := a.operand(n.Args[1], e, ctx, inside)
		a.touched |= first.own | second.all() | inside.all
		return (&abs{own: w.here | first.own | first.own.Control() | second.all(), must: first.must, from: join(first, second).via()})
	case prim.Fold:
		return a.fold(n, e, ctx, w)
	case prim.Try:
		return a.try(n, e, ctx, w)
	case prim.Call:
		return a.toolCall(n, e, ctx, w)
	case prim.Par:
		v := &abs{own: w.here}
		fails := false
		for _, branch := range n.Args {
			b := a.operand(branch, e, ctx, w)
			fails = fails || b == nil
			v.item = join(v.item, b)
			v.holds |= b.least()
		}
		if fails {
			return nil
		}
		return v
	}
	args := make([]*abs, len(n.Args))
	var owns, deep flow.Label
	for i, t := range n.Args {
		if args[i] = a.operand(t, e, ctx, w); args[i] == nil {
			return nil
		}
		owns |= args[i].own
		deep |= args[i].all()
	}
	a.show(deep | w.all)
	name := prim.Get(n.ID).Name
	if name == "code_of" {
		v := &abs{any: true, own: owns}
		if args[0].text != nil {
			v = a.codeOf(*args[0].text).raise(owns)
		}
		a.touched |= owns | w.all
		return v.raise(w.here)
	}
	rule := rules[name]
	if a.touched |= w.all | deep; rule == nil {
		switch prim.Get(n.ID).Group {
		case "failure":
			return nil
		}
		return flat(args...).raise(w.here)
	}
	v := rule(args)
	if v != nil && v.from == nil && v.own != 0 {
		u := *v
		u.from = flat(args...).from
		v = &u
	}
	if name == "get" || name == "head" || name == "nth" || name == "at" {
		field := ""
		if len(args) > 1 && args[1].text != nil {
			field = *args[1].text
		}
		v = v.along(Step{name, field, a.place(n.Pos())}, args[0])
	}
	return v.raise(w.here)
}

func (a *analysis) fold(n *term.Prim, e *env, ctx *scope, w where) *abs {
	f, init, list := a.operand(n.Args[0], e, ctx, w), a.operand(n.Args[1], e, ctx, w), a.operand(n.Args[2], e, ctx, w)
	if f == nil || init == nil || list == nil {
		return nil
	}
	spine := list.own | list.cells
	if list.any {
		spine |= list.deep
	}
	a.touched |= f.own | spine | w.all
	a.show(spine | w.all)
	inside := w.under(spine.Control(), list)
	acc := join(init, a.folds[n])
	if item := list.part(list.item); item != nil {
		v := a.applied(f, &abs{first: acc, second: item}, inside).raise(spine.Control())
		known := a.folds[n]
		a.grow(&known, v)
		if known != nil {
			a.folds[n] = known
		}
		acc = join(init, known)
	}
	return acc.raise(w.here | f.own | spine.Control()).sure(f.must)
}

func (a *analysis) try(n *term.Prim, e *env, ctx *scope, w where) *abs {
	before := a.touched
	inside := w
	inside.tried = true
	inside.all |= a.tries[n]
	a.touched = w.all
	v := a.operand(n.Args[0], e, ctx, inside)
	decided := a.tries[n] | a.touched
	if decided != a.tries[n] {
		a.tries[n], a.changed = decided, true
	}
	a.touched |= before
	shown := a.shown | decided
	r := &abs{own: w.here | decided.Control(), fields: map[string]*abs{
		"error": {own: shown, deep: shown, any: true, optional: true, from: v.via()},
	}}
	if v != nil {
		r.fields["ok"] = perhaps(v)
	}
	return r
}

// keeps is the lists among the operands of rows of the library of which all items are in
// what the row gives.
var keeps = map[string][]int{
	"append": {0, 1}, "reverse": {0}, "sort": {0}, "sort_by": {1}, "enumerate": {0}, "intersperse": {0}, "chunk": {0},
	"partition": {1}, "group": {1}, "group_by": {1}, "scan": {1},
}

// rules is the rows that keep the labels of their operands' parts apart, as in package flow.
var rules = map[string]func([]*abs) *abs{
	"nil": func([]*abs) *abs { return &abs{} },
	"cons": func(x []*abs) *abs {
		return &abs{item: join(x[0], x[1].part(x[1].item)), cells: x[1].spine(), holds: x[0].least() | x[1].least()}
	},
	"pair":    func(x []*abs) *abs { return &abs{first: x[0], second: x[1], exact: true} },
	"head":    func(x []*abs) *abs { return x[0].part(x[0].item) },
	"tail":    func(x []*abs) *abs { return x[0].list(x[0].cells) },
	"fst":     func(x []*abs) *abs { return x[0].part(x[0].first) },
	"snd":     func(x []*abs) *abs { return x[0].part(x[0].second) },
	"isEmpty": outermost, "type_of": outermost, "has": outermost,
	"keys": func(x []*abs) *abs { return &abs{own: x[0].own, must: x[0].must, item: &abs{own: x[0].own}} },
	"equal": func(x []*abs) *abs {
		v := flat(x...)
		v.must = x[0].must | x[1].must
		return v
	},
	"length": func(x []*abs) *abs {
		l := x[0].spine().Counted()
		return &abs{own: l, must: x[0].must, from: x[0].via()}
	},
	"index_of": counted, "last_index_of": counted,
	"get": get, "put": put, "del": func(x []*abs) *abs { return x[0].record(x[1]) },
	"merge": merge,
	"values": func(x []*abs) *abs {
		return &abs{own: x[0].own, must: x[0].must, holds: x[0].inner(), item: x[0].anyField()}
	},
	"entries": func(x []*abs) *abs {
		return &abs{own: x[0].own, must: x[0].must, holds: x[0].inner(), item: &abs{own: x[0].own, first: &abs{own: x[0].own}, second: x[0].anyField()}}
	},
	"from_entries": func(x []*abs) *abs {
		p := x[0].part(x[0].item)
		if p == nil {
			return &abs{own: x[0].spine()}
		}
		part := p.part(p.item) // of a list of two
		l := x[0].spine() | p.spine() | p.part(p.first).all() | part.all()
		v := flatten(&abs{second: join(p.part(p.second), part)})
		v.own, v.must, v.holds, v.from = l, 0, 0, p.via()
		return v
	},
	"nth": func(x []*abs) *abs { return x[0].part(x[0].item).raise(x[1].own | x[0].spine()).sure(x[1].must) },
	"at": func(x []*abs) *abs {
		if len(x) == 3 {
			return x[0].list(x[1].own | x[2].own | x[0].spine()).sure(x[1].must | x[2].must)
		}
		v := join(x[0].part(x[0].item), join(x[0].part(x[0].first), x[0].part(x[0].second)))
		if x[0].fields != nil || x[0].any {
			v = join(v, get(x))
		}
		if x[0].text != nil || v == nil {
			v = join(v, flat(x...))
		}
		return v.raise(x[1].own | x[0].spine()).sure(x[1].must)
	},
	"slice": func(x []*abs) *abs { return x[0].list(x[1].own | x[2].own | x[0].spine()).sure(x[1].must | x[2].must) },
	"push":  func(x []*abs) *abs { return x[0].plus(x[1], x[0].spine()).with(x[0].inner()) },
	"set_nth": func(x []*abs) *abs {
		return x[0].plus(x[2], x[1].own|x[0].spine()).sure(x[1].must)
	},
}

// spine returns the label of all cells of a list.
func (v *abs) spine() flow.Label {
	l := v.own | v.cells
	if v.any {
		l |= v.deep
	}
	return l
}

// list returns a list of some of a list's items, or a part of a text.
func (v *abs) list(l flow.Label) *abs {
	u := *v
	u.text, u.own, u.holds = nil, v.own|l, 0
	if u.any && len(u.fns) == 0 {
		u.own |= v.deep
	}
	return &u
}

// plus returns the list with an item more.
func (v *abs) plus(item *abs, l flow.Label) *abs {
	return &abs{own: l, must: v.must, holds: item.least(), item: join(v.part(v.item), item), from: v.via()}
}

func outermost(x []*abs) *abs {
	v := &abs{}
	for _, y := range x {
		v.own |= y.own
		v.must |= y.must
	}
	return v
}

func counted(x []*abs) *abs {
	v := flat(x...)
	return v.raise(v.own.Counted())
}

func (v *abs) anyField() (f *abs) {
	for _, k := range slices.Sorted(maps.Keys(v.fields)) {
		f = join(f, v.part(v.fields[k]))
	}
	if v.any {
		f = join(f, v.part(nil))
	}
	return f
}

func get(x []*abs) *abs {
	r, key := x[0], x[1]
	var v *abs
	missing := true
	if key.text == nil {
		v = r.anyField()
	} else {
		var sure bool
		v, sure = r.field(*key.text)
		missing = !sure
	}
	if len(x) == 3 && missing {
		v = join(v, x[2])
	}
	return v.raise(r.own | key.own).sure(r.must | key.must)
}

// record returns a record with some of the fields of one, as something decides.
func (v *abs) record(by *abs) *abs {
	u := &abs{own: v.own | by.own, must: v.must | by.must, any: v.any, deep: v.deep, fns: v.fns, codes: v.codes, from: v.from, fields: map[string]*abs{}}
	for k, f := range v.fields {
		u.fields[k] = perhaps(v.part(f))
	}
	return u
}

func put(x []*abs) *abs {
	u := x[0].record(x[1])
	u.holds = x[2].least()
	u.exact = x[1].text != nil
	for k, f := range x[0].fields {
		u.fields[k] = x[0].part(f)
		if f.optional {
			u.fields[k] = perhaps(u.fields[k])
		}
	}
	if x[1].text != nil {
		u.fields[*x[1].text] = x[2]
		return u
	}
	for k, f := range u.fields {
		u.fields[k] = join(f, x[2])
	}
	v := flatten(x[2])
	return join(u, &abs{own: u.own, must: u.must, holds: u.holds, any: true, deep: v.deep, fns: v.fns, codes: v.codes})
}

func merge(x []*abs) *abs {
	v, over := x[0].record(x[1]), x[1].record(x[0])
	v.holds = x[1].least()
	for k, f := range x[0].fields {
		g, both := x[1].fields[k]
		switch {
		case both && !g.optional:
			v.fields[k] = x[1].part(g)
		case both:
			v.fields[k] = join(x[0].part(f), x[1].part(g))
		case !f.optional:
			v.fields[k] = x[0].part(f)
			if x[1].any {
				v.fields[k] = join(v.fields[k], x[1].part(nil))
			}
		}
	}
	for k, g := range x[1].fields {
		if _, both := x[0].fields[k]; !both {
			if v.fields[k] = x[1].part(g); g.optional {
				v.fields[k] = perhaps(v.fields[k])
			}
		}
	}
	v.exact = true
	v.any, v.deep = v.any || over.any, v.deep|over.deep
	v.fns, v.codes = union(v.fns, over.fns), union(v.codes, over.codes)
	return v
}
