package flows

import (
	"github.com/mcp-pif/mcp-pif/core/flow"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// where is the label of the context of what is evaluated, as in package flow, with where
// that comes from; tried is set inside a try.
type where struct {
	all, here flow.Label
	tried     bool
	via       *step
}

func (w where) under(l flow.Label, of *abs) where {
	if w.via == nil && l != 0 {
		w.via = of.via()
	}
	w.all, w.here = w.all|l, w.here|l
	return w
}

func (w where) inside() where {
	w.here = 0
	return w
}

// A scope is what a piece of code belongs to.
type scope struct {
	tool  bool
	code  term.Term
	self  *abs
	quote *term.Quote // that an eval evaluates
	outer *scope      // of the eval
}

type scopeKey struct {
	at    term.Term // the eval
	quote *term.Quote
	outer *scope
}

type closureKey struct {
	lam *term.Lam
	ctx *scope
}

// A toolKey is a tool at the place of its call, nil: one that is looked up.
type toolKey struct {
	name string
	call *term.Prim
}

// A tool is one that is called or looked up.
type tool struct {
	scope  *scope
	quote  *term.Quote
	active bool
}

// An env is the variables in scope, innermost first.
type env struct {
	name  string
	value *abs
	// A function bound by let is another one at each use.
	lam  *term.Lam
	outs *env // the variables around it
	next *env
}

func (e *env) bind(name string, v *abs) *env { return &env{name: name, value: v, next: e} }

// labels returns the label of all variables.
func (e *env) labels() (l flow.Label) {
	for ; e != nil; e = e.next {
		l |= e.value.all()
	}
	return l
}

// joinEnvs returns the variables with what two evaluations of one lambda have for them.
func joinEnvs(e, f *env) *env {
	if e == f || e == nil || f == nil {
		return f
	}
	return &env{f.name, join(e.value, f.value), f.lam, f.outs, joinEnvs(e.next, f.next)}
}

// maxCopies is how many uses of functions bound by let are told apart.
const maxCopies = 300

// maxNested is how deep terms and calls are inside each other.
const maxNested = 4000

func (a *analysis) eval(t term.Term, e *env, ctx *scope, w where) *abs {
	if a.left--; a.left < 0 || a.nested > maxNested {
		a.left = -1
		return nil
	}
	a.nested++
	v := a.term(t, e, ctx, w)
	a.nested--
	return v
}

// operand evaluates what something in the context w waits for.
func (a *analysis) operand(t term.Term, e *env, ctx *scope, w where) *abs {
	return a.eval(t, e, ctx, w.inside())
}

func (a *analysis) term(t term.Term, e *env, ctx *scope, w where) *abs {
	switch n := t.(type) {
	case *term.Str:
		return &abs{own: w.here, text: &n.Value}
	case *term.Var:
		for ; e != nil; e = e.next {
			if e.name == n.Name {
				return a.use(n, e, ctx).raise(w.here)
			}
		}
		return nil
	case *term.Lam:
		return &abs{own: w.here, fns: []*closure{a.closure(n, e, ctx)}}
	case *term.LetRec:
		made := make([]*closure, len(n.Funcs))
		inside := e
		for i, f := range n.Funcs {
			made[i] = a.closure(f.Lam, nil, ctx)
			inside = inside.bind(f.Name, &abs{fns: []*closure{made[i]}})
		}
		for _, c := range made {
			a.closure(c.lam, inside, ctx)
		}
		return a.eval(n.Body, inside, ctx, w)
	case *term.App:
		return a.application(n, e, ctx, w)
	case *term.If:
		cond := a.operand(n.Cond, e, ctx, w)
		if cond == nil {
			return nil
		}
		a.touched |= cond.own | w.all
		w = w.under(cond.own.Control(), cond)
		return join(a.eval(n.Then, e, ctx, w), a.eval(n.Else, e, ctx, w))
	case *term.List:
		v := &abs{own: w.here}
		for _, item := range n.Items {
			i := a.operand(item, e, ctx, w)
			if i == nil {
				return nil
			}
			v.item = join(v.item, i)
			v.holds |= i.least()
		}
		return v
	case *term.Record:
		v := &abs{own: w.here, fields: map[string]*abs{}, exact: true}
		for _, f := range n.Fields {
			if v.fields[f.Key] = a.operand(f.Value, e, ctx, w); v.fields[f.Key] == nil {
				return nil
			}
		}
		if len(v.fields) > maxFields {
			return flatten(v)
		}
		return v
	case *term.Quote:
		return &abs{own: w.here, codes: []*term.Quote{n}}
	case *term.CodeOf:
		return a.codeOf(n.Name).raise(w.here)
	case *term.Self:
		for ctx.outer != nil {
			ctx = ctx.outer
		}
		return ctx.self.raise(w.here)
	case *term.Continue:
		in := a.operand(n.Input, e, ctx, w)
		if in == nil {
			return nil
		}
		a.grow(&a.next, flatten(in.raise(w.all)))
		return flat(in).raise(w.here)
	case *term.Effect:
		return a.effect(n, e, ctx, w)
	case *term.Prim:
		if prim.Get(n.ID).Body != "" {
			if !flow.Counts(n.ID) {
				v := a.eval(a.expand(n), e, ctx, w)
				if v != nil {
					name := prim.Get(n.ID).Name
					for _, i := range keeps[name] {
						v = v.with(a.args[n.Args[i]].inner())
					}
					if name == "put_in" {
						v = v.with(a.args[n.Args[2]].least())
					}
				}
				return v
			}
			v := a.operand(a.expand(n), e, ctx, w)
			return v.raise(w.here | v.all().Counted())
		}
		return a.prim(n, e, ctx, w)
	}
	return &abs{own: w.here} // a number or another constant
}

// use gives what a variable is.
func (a *analysis) use(n *term.Var, b *env, ctx *scope) *abs {
	if b.lam == nil {
		return b.value
	}
	key := copyKey{n, b.lam}
	lam := a.copies[key]
	if lam == nil {
		if lam = b.lam; len(a.copies) < maxCopies {
			lam = term.Relocate(b.lam, func(at term.At) term.At { return at }).(*term.Lam)
		}
		a.copies[key] = lam
	}
	return &abs{fns: []*closure{a.closure(lam, b.outs, ctx)}}
}

// closure gives the function of a lambda, of which e is some of the variables around it.
func (a *analysis) closure(lam *term.Lam, e *env, ctx *scope) *closure {
	key := closureKey{lam, ctx}
	c := a.closures[key]
	if c == nil {
		c = &closure{lam: lam, ctx: ctx}
		a.closures[key] = c
	}
	c.env = joinEnvs(c.env, e)
	if l := c.holds | c.env.labels(); l != c.holds {
		c.holds, c.done, a.changed = l, false, true
	}
	return c
}

func (a *analysis) application(n *term.App, e *env, ctx *scope, w where) *abs {
	if lam, ok := n.Func.(*term.Lam); ok {
		if f, ok := n.Arg.(*term.Lam); ok {
			c := a.closure(f, e, ctx)
			return a.eval(lam.Body, &env{name: lam.Param, value: &abs{fns: []*closure{c}}, lam: f, outs: e, next: e}, ctx, w)
		}
		arg := a.operand(n.Arg, e, ctx, w)
		if arg == nil {
			return nil
		}
		return a.eval(lam.Body, e.bind(lam.Param, arg), ctx, w)
	}
	f := a.operand(n.Func, e, ctx, w)
	arg := a.operand(n.Arg, e, ctx, w)
	if f == nil || arg == nil {
		return nil
	}
	a.args[n.Arg] = arg
	a.touched |= f.own | w.all
	return a.applied(f, arg, w).raise(w.here)
}

// applied gives what functions give for an argument, without the label of the context.
func (a *analysis) applied(f, arg *abs, w where) (v *abs) {
	w = w.under(f.own, f)
	for _, c := range f.fns {
		v = join(v, a.call(c, arg, w))
	}
	if f.any {
		// A function that isn't known gives something of what it is given, and may apply
		// the functions in that.
		arg.inside(func(p *abs) {
			for _, c := range p.fns {
				v = join(v, a.call(c, &abs{any: true, own: arg.all(), deep: arg.all()}, w))
			}
		})
		a.touched |= f.all() | arg.all()
		a.show(f.all() | arg.all())
		given := flatten(arg)
		given.must, given.holds = 0, 0
		v = join(v, given.raise(f.all()))
	}
	return v.raise(f.own)
}

func (a *analysis) call(c *closure, arg *abs, w where) *abs {
	if param := join(c.param, arg); !same(param, c.param) {
		c.param, c.done, a.changed = param, false, true
	}
	if l := c.under.all | w.all; l != c.under.all || w.tried && !c.under.tried {
		c.under.all, c.under.tried, c.done, a.changed = l, w.tried || c.under.tried, false, true
		if c.under.via == nil {
			c.under.via = w.via
		}
	}
	if !c.active && !c.done {
		before := a.touched
		a.touched = 0
		c.active, c.done = true, true
		v := a.eval(c.lam.Body, c.env.bind(c.lam.Param, c.param), c.ctx, c.under)
		c.active = false
		a.grow(&c.result, v)
		c.touched |= a.touched
		a.touched = before
	}
	a.touched |= c.touched
	return c.result
}

func (a *analysis) effect(n *term.Effect, e *env, ctx *scope, w where) *abs {
	arg := a.operand(n.Arg, e, ctx, w)
	if arg == nil {
		return nil
	}
	asking := a.asks(n, arg, ctx, w)
	v := &abs{any: true}
	asked := w.all | arg.all()
	if a.Source != nil {
		may, must, alone := a.Source(asking)
		v.own, v.deep, v.must = may, may, must
		if may != 0 {
			v.from = &step{Step: Step{Name: n.Op, At: a.place(n.Pos())}}
		}
		if alone {
			asked = 0
		}
	}
	a.touched |= w.all | arg.all() | v.own
	a.show(arg.all() | v.own | w.all)
	if v.from == nil && asked != 0 {
		v.from = arg.via()
	}
	return v.raise(asked | w.here)
}

// show notes what the message of a failure may show.
func (a *analysis) show(l flow.Label) {
	if l |= a.shown; l != a.shown {
		a.shown, a.changed = l, true
	}
}

func (a *analysis) codeOf(name string) *abs {
	if t := a.tool(name, nil); t != nil {
		return &abs{codes: []*term.Quote{t.quote}}
	}
	return &abs{any: true}
}

// tool finds a tool's code; nil: it isn't known.
func (a *analysis) tool(name string, call *term.Prim) *tool {
	key := toolKey{name, call}
	t, ok := a.tools[key]
	if !ok && a.Code != nil {
		if code, found := a.Code(name); found {
			t = &tool{scope: &scope{tool: true, code: term.AsFunction(code)}, quote: &term.Quote{Body: code}}
			a.foreign[t.quote] = true
		}
		a.tools[key] = t
	}
	return t
}

// elsewhere has all that is noted be at a place until it is called: it is in code that
// stands elsewhere.
func (a *analysis) elsewhere(at int) (back func()) {
	outer := a.callAt
	if outer == 0 {
		a.callAt = at + 1
	}
	return func() { a.callAt = outer }
}

// place returns the place in the program's own code.
func (a *analysis) place(at int) int {
	if a.callAt > 0 {
		return a.callAt - 1
	}
	return at
}

func (a *analysis) toolCall(n *term.Prim, e *env, ctx *scope, w where) *abs {
	name := a.operand(n.Args[0], e, ctx, w)
	var inputs []*abs
	for _, arg := range n.Args[1:] {
		in := a.operand(arg, e, ctx, w)
		if in == nil {
			return nil
		}
		inputs = append(inputs, in)
	}
	if name == nil {
		return nil
	}
	in := flat(inputs...)
	a.touched |= name.own | in.own | w.all
	a.show(name.own | in.own | w.all)
	var t *tool
	if name.text != nil {
		t = a.tool(*name.text, n)
	}
	if t == nil || t.active {
		a.unknown(n.Pos())
		a.touched |= a.All | in.own
		a.show(a.All)
		return (&abs{any: true, own: a.All | in.own, deep: a.All | in.own}).raise(name.own | w.here)
	}
	t.active = true
	back := a.elsewhere(n.Pos())
	defer func() {
		t.active = false
		back()
	}()
	w = w.under(name.own, name)
	v := a.program(t.scope, where{all: w.all, tried: w.tried, via: w.via})
	if params := prim.Parameters(t.scope.code); len(inputs) == 1 && len(params) > 1 {
		// By their names, in order, or all for the first.
		one := inputs[0]
		inputs = nil
		for i, p := range params {
			given := join(join(one.part(one.fields[p]), one.part(one.item)), join(one.part(one.first), one.part(one.second)))
			if i == 0 {
				given = join(given, one)
			}
			if given == nil {
				break
			}
			inputs = append(inputs, given.raise(one.all().Control()))
		}
	}
	for _, in := range inputs {
		if v == nil || len(v.fns) == 0 {
			break
		}
		v = a.applied(v, in, w)
	}
	if v != nil {
		a.touched |= v.all()
		a.show(v.all())
	}
	return v.raise(w.here)
}

func (a *analysis) quoted(n *term.Prim, e *env, ctx *scope, w where) *abs {
	code := a.operand(n.Args[0], e, ctx, w)
	if code == nil {
		return nil
	}
	a.touched |= code.all() | w.all
	w = w.under(code.all(), code)
	var v *abs
	for _, q := range code.codes {
		key := scopeKey{n, q, ctx}
		inside := a.scopes[key]
		if inside == nil {
			inside = &scope{code: q.Body, quote: q, outer: ctx}
			a.scopes[key] = inside
		}
		again := false
		for o := ctx; o != nil; o = o.outer {
			again = again || o.quote == q
		}
		if again {
			code = join(code, &abs{any: true})
			continue
		}
		back := func() {}
		if a.foreign[q] {
			back = a.elsewhere(n.Pos())
		}
		v = join(v, a.eval(q.Body, e, inside, w))
		back()
	}
	if code.any {
		if with, limited := term.With(n.Args); !limited || len(with) > 0 {
			a.unknown(n.Pos())
		}
		l := a.All | e.labels()
		a.touched |= l
		a.show(l)
		v = join(v, &abs{any: true, own: l, deep: l})
	}
	return v.raise(w.here).sure(code.least())
}
