package check

import (
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// prim types the use of a row of the table: a form by its own rule, a row of
// the prelude by what it means, and a strict row by its operands' and result's
// kinds, or by a rule where those say too little.
func (c *checker) prim(t *term.Prim, e env, ctx context) *variable {
	row := prim.Get(t.ID)
	switch t.ID {
	case prim.And, prim.Or:
		return c.logic(t, e, ctx)
	case prim.Fold:
		return c.fold(t, e, ctx)
	case prim.Try:
		return c.try(t, e, ctx)
	case prim.Eval:
		return c.eval(t, e, ctx)
	case prim.Call:
		return c.call(t, e, ctx)
	case prim.Par:
		inside := ctx
		inside.sure = false
		return c.list(t.Args, e, inside)
	case prim.Lt, prim.Lte, prim.Gt, prim.Gte, prim.Add, prim.Concat:
		if o := c.open[t]; o != nil {
			return c.operator(t, o, e, ctx)
		}
	case prim.CodeOf:
		c.take(c.infer(t.Args[0], e, ctx), t, t.ID, 0, prim.KindString, nil)
		return c.fixed(c.shape(prim.KindQuoted))
	}
	if row.Body != "" {
		if t.ID == getIn && len(t.Args) == 3 && !c.single {
			return c.reached(t, e, ctx)
		}
		if t.ID == pipeline && !c.single {
			if l, ok := t.Args[0].(*term.List); ok {
				return c.pipeline(t, l, e, ctx)
			}
		}
		return c.prelude(t, e, ctx)
	}
	if len(c.freeUses) == 0 {
		c.freeUses = make([]use, slab/2)
	}
	u := &c.freeUses[0]
	c.freeUses = c.freeUses[1:]
	*u = use{c: c, t: t, row: row, ctx: ctx, own: c.library == elsewhere}
	u.args = u.first[:0]
	for _, a := range t.Args {
		u.args = append(u.args, c.infer(a, e, ctx))
	}
	switch t.ID {
	case typeOf:
		c.tested = u.args[0]
		if c.library == elsewhere && !c.formats(t) {
			c.asksType(c.tested)
		}
	case has:
		if key, ok := t.Args[1].(*term.Str); ok {
			c.pattern(t, u.args[0], prim.KindRecord, key.Value)
		}
	}
	if (t.ID == prim.Div || t.ID == prim.Mod) && isZero(t.Args[1]) {
		c.fails(t, byZero(row))
	}
	res := u.apply()
	if known := e.known; known != nil {
		c.spend(1)
		if v := known.of(e.path(t)); v != nil {
			return v
		}
	}
	return res
}

// prelude types the use of a row of the prelude: its body, with the operands
// for its parameters.
func (c *checker) prelude(t *term.Prim, e env, ctx context) *variable {
	body := c.expand(t)
	for range t.Args {
		body = body.(*term.App).Func
	}
	inside := env{}
	for _, a := range t.Args {
		f := body.(*term.Lam)
		inside = inside.bind(&binding{name: f.Param, path: c.path(), v: c.infer(a, e, ctx)})
		body = f.Body
	}
	outer, row := c.library, c.usedRow
	if c.library = max(outer, certain); outer == elsewhere {
		c.usedRow = t
	}
	v := c.infer(body, inside, ctx)
	c.library, c.usedRow = outer, row
	if l, ok := t.Args[0].(*term.Lam); ok && t.ID == filterRow && !c.single && neverNull(l.Body, l.Param) {
		items := c.variable()
		c.watches(v, prim.KindList, func(s *shape) {
			if s.dynamic {
				c.add(items, s)
			} else if s.item != nil {
				c.flow(s.item, items)
			}
		})
		return c.fixed(c.listOf(c.notNull(items)))
	}
	return v
}

// neverNull reports whether a condition, where it is true, shows that a variable isn't
// null: x != null, alone or with others.
func neverNull(cond term.Term, name string) bool {
	t, ok := cond.(*term.Prim)
	switch {
	case !ok:
	case t.ID == prim.And:
		return neverNull(t.Args[0], name) || neverNull(t.Args[1], name)
	case t.ID == prim.Not:
		same, ok := t.Args[0].(*term.Prim)
		if !ok || same.ID != prim.Equal {
			break
		}
		for i := range 2 {
			_, null := same.Args[1-i].(*term.Unit)
			if v, ok := same.Args[i].(*term.Var); ok && null && v.Name == name {
				return true
			}
		}
	}
	return false
}

var filterRow, getIn = id("filter"), id("get_in")

// reached types get_in with a default: it takes anything, and may give any part of it.
func (c *checker) reached(t *term.Prim, e env, ctx context) *variable {
	c.sinks(c.infer(t.Args[0], e, ctx))
	c.take(c.infer(t.Args[1], e, ctx), t, t.ID, 1, prim.KindList, nil)
	res := c.variable()
	c.flow(c.infer(t.Args[2], e, ctx), res)
	c.add(res, c.dynamic)
	c.unknown(t, ReasonIndex, "", "what a path reaches is known only when it runs")
	return res
}

var pipeline = id("pipeline")

// pipeline types the functions of a list that is written out each by itself: what
// one gives need not be what another takes.
func (c *checker) pipeline(t *term.Prim, l *term.List, e env, ctx context) *variable {
	var fs []*variable
	for _, f := range l.Items {
		fs = append(fs, c.infer(f, e, ctx))
	}
	v := c.infer(t.Args[1], e, ctx)
	outer := c.library
	c.library = max(outer, certain)
	for i, f := range fs {
		v = c.applying(c.testAt(t.Pos(), l.Items[i], prim.App, 0, "", prim.KindFunction), f, v, ctx)
	}
	c.library = outer
	return v
}

// certainty says how the code of a row of the prelude is evaluated, whose
// places are that of its use.
type certainty uint8

const (
	elsewhere certainty = iota // code of the program
	certain                    // whenever the use is
	possible                   // perhaps, and perhaps often
)

// perhaps is for code that need not be evaluated where that around it is.
func (c *checker) perhaps() (restore func()) {
	outer := c.library
	if outer == certain {
		c.library = possible
	}
	return func() { c.library = outer }
}

// expand is what a use of a row of the prelude means.
func (c *checker) expand(t *term.Prim) term.Term {
	x, ok := c.expanded[t]
	if !ok {
		x = prim.Expand(t)
		c.expanded[t] = x
		if t.ID == update && !c.single {
			if key, ok := t.Args[1].(*term.Str); ok && c.final {
				naming(x.(*term.App).Func.(*term.App).Func.(*term.App).Func, key)
			} else if ok && !c.env.OneKind {
				c.differs = true
			}
		}
	}
	return x
}

var update = id("update")

// naming writes the key that is written out at a use of update into what that means: the other
// fields of its record may be anything.
func naming(t term.Term, key *term.Str) {
	if p, ok := t.(*term.Prim); ok && len(p.Args) > 1 {
		p.Args[1] = key
	}
	each(t, func(child term.Term) { naming(child, key) })
}

// A use is a strict row with its operands.
type use struct {
	c    *checker
	t    *term.Prim
	row  *prim.Row
	ctx  context
	own  bool // it stands in the program
	args []*variable
	// first is room for the operands; most rows have no more.
	first [2]*variable
}

func (u *use) apply() *variable {
	if rule, ok := rules[u.row.Name]; ok {
		return rule(u)
	}
	for i := range u.args {
		if k := u.row.Params[min(i, len(u.row.Params)-1)].Kinds; k&prim.KindAny != prim.KindAny {
			u.operand(i)
		}
	}
	if of, _ := u.row.Facts(u.t.Args); of != nil {
		return u.c.declared(of)
	}
	return u.given()
}

// operand tests operand i, and each item of a list of it, by what the row says of them.
func (u *use) operand(i int) {
	u.take(i, func(s *shape) {
		if i < len(u.row.Items) && !s.dynamic && s.item != nil {
			u.c.takeInner(s.item, u.t, u.t.ID, i, "each item of the list", u.row.Items[i], nil)
		}
	})
}

// take tests operand i by its kinds in the row.
func (u *use) take(i int, f func(*shape)) {
	w := watcher{accepts: u.row.Params[i].Kinds, run: f}
	if w.test = u.c.testOf(u.t, u.t.ID, i, "", w.accepts); u.t.ID == prim.At {
		w.last = w.accepts & prim.KindPair
	}
	u.c.watch(u.args[i], w)
}

// pairs tests operands i and j, and calls both with each pair of their shapes once.
func (u *use) pairs(i, j int, both func(a, b *shape)) {
	var as, bs []*shape
	u.take(i, func(a *shape) {
		as = append(as, a)
		for _, b := range bs {
			both(a, b)
		}
	})
	u.take(j, func(b *shape) {
		bs = append(bs, b)
		for _, a := range as {
			both(a, b)
		}
	})
}

// declared is what a row declares of the parts of its result.
func (c *checker) declared(t *prim.Type) *variable {
	if t.Kinds&prim.KindData == prim.KindData {
		return c.fixed(c.dynData)
	}
	if v, ok := c.basic[t.Kinds]; ok && !t.Group {
		return v
	}
	var shapes []*shape
	for k := prim.KindInt; k < prim.KindName; k <<= 1 {
		switch v, basic := c.basic[k]; {
		case t.Kinds&k == 0:
		case k == prim.KindString && t.Group:
			if c.oneGroup == nil {
				c.oneGroup = c.shape(k)
				c.oneGroup.group = true
			}
			shapes = append(shapes, c.oneGroup)
		case basic:
			shapes = append(shapes, v.lower...)
		case k == prim.KindList:
			shapes = append(shapes, c.listOf(c.declared(t.Item)))
		case k == prim.KindRecord:
			r := &record{}
			for _, f := range t.Fields {
				p := required
				if f.Optional {
					p = optional
				}
				r.fields = append(r.fields, field{f.Key, c.declared(f.Type), p})
			}
			if t.Rest != nil {
				r.rest = c.declared(t.Rest)
			}
			shapes = append(shapes, c.intern(r))
		default:
			shapes = append(shapes, c.shape(k))
		}
	}
	return c.fixed(shapes...)
}

// given is a result of which the row's kinds are known and no more.
func (u *use) given() *variable {
	c := u.c
	if v, ok := c.basic[u.row.Result]; ok {
		return v
	}
	v := c.variable()
	for _, k := range unknownKinds {
		if u.row.Result&k == 0 {
			continue
		}
		s := c.someOf(k, c.dynamic)
		if s.item != nil || s.first != nil || s.record != nil || s.param != nil || s.next != nil {
			c.unknown(u.t, ReasonRow, u.row.Name, "of what "+u.row.Name+" gives only the kind is known: "+u.row.Result.Phrase())
		}
		c.add(v, s)
	}
	return v
}

func (c *checker) logic(t *term.Prim, e env, ctx context) *variable {
	c.take(c.infer(t.Args[0], e, ctx), t, t.ID, 0, prim.KindBool, nil)
	inside := ctx
	inside.sure = false
	defer c.perhaps()()
	second := c.infer(t.Args[1], c.narrow(t.Args[0], t.ID == prim.And, e, ctx), inside)
	// It is tested only where it is evaluated.
	c.takeAs(c.testAt(t.Args[1].Pos(), t, t.ID, 1, "", prim.KindBool), second, prim.KindBool, nil)
	return c.basic[prim.KindBool]
}

func (c *checker) fold(t *term.Prim, e env, ctx context) *variable {
	f := c.infer(t.Args[0], e, ctx)
	acc, item := c.variable(), c.variable()
	c.flow(c.infer(t.Args[1], e, ctx), acc)
	list := c.infer(t.Args[2], e, ctx)
	c.take(list, t, t.ID, 2, prim.KindList, func(s *shape) {
		if s.dynamic {
			c.add(item, s)
			return
		}
		c.flow(s.item, item)
	})
	both := c.pairOf(acc, item)
	c.take(f, t, t.ID, 0, prim.KindFunction, func(s *shape) {
		if s.dynamic {
			c.add(acc, c.dynamic)
			c.add(ctx.raised, c.dynamic)
			c.sinks(acc)
			c.sinks(item)
			c.flow(c.lent, ctx.effects)
			return
		}
		c.add(s.param, both)
		c.flow(s.result, acc)
		c.flow(s.effects, ctx.effects)
		c.flow(s.raised, ctx.raised)
	})
	return acc
}

// try gives what the term gives, or the failure, with what was raised.
func (c *checker) try(t *term.Prim, e env, ctx context) *variable {
	inside := ctx
	inside.raised, inside.sure = c.variable(), false
	defer c.perhaps()()
	v := c.infer(t.Args[0], e, inside)
	str := c.basic[prim.KindString]
	failed := c.intern(&record{fields: []field{
		{"at", str, required}, {"kind", str, required}, {"message", str, required}, {"value", inside.raised, optional},
	}})
	// One of the two is there; a record type per outcome says so.
	return c.fixed(
		c.intern(&record{fields: []field{{"ok", v, required}}}),
		c.intern(&record{fields: []field{{"error", c.fixed(failed), required}}}),
	)
}
