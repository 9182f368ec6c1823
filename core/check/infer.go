package check

import (
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// The bounds of what is looked at beside the budget: how deep terms may be
// inside each other, counting what functions typed anew have in them, and from
// where on they aren't typed anew.
const (
	maxNesting   = 40_000
	deepNesting  = 2_000
	lookups      = 32 // what is looked at by name, for one step
	freshOfSteps = 4  // a quarter of the budget is for typing anew
)

// A context is what a piece of code belongs to.
type context struct {
	effects, raised *variable  // of the function around, or the program
	tool            bool       // self and continue are legal
	quotes          *quotes    // whose evaluation the code stands in
	with            [][]string // of the evals that the code stands in
	// sure is set where the code is evaluated whenever the program's function
	// is applied and gets that far.
	sure bool
}

// An env is the variables in scope, and what is known of paths into them.
type env struct {
	vars  *binding
	known *knowledge
}

type binding struct {
	name string
	path string // by which tests name it
	v    *variable
	// anew is a function's code, to be typed again at each use.
	anew *anew
	// means is the test whose outcome it is, and scope the variables of that.
	means term.Term
	scope *binding
	next  *binding
}

// anew is a function bound by let, or that of the name of those of a letrec.
type anew struct {
	t      term.Term
	group  *term.LetRec
	name   string
	env    env
	ctx    context
	shared *variable
}

func (e env) lookup(name string) *binding {
	b, _ := e.find(name)
	return b
}

// find is lookup, with how many bindings were looked at.
func (e env) find(name string) (*binding, int) {
	n := 0
	for b := e.vars; b != nil; b = b.next {
		if n++; b.name == name {
			return b, n
		}
	}
	return nil, n
}

func (e env) bind(b *binding) env {
	b.next = e.vars
	return env{b, e.known}
}

// infer gives the variable of what a term gives.
func (c *checker) infer(t term.Term, e env, ctx context) *variable {
	if !c.spend(1) {
		return c.basic[prim.KindUnit]
	}
	if c.depth++; c.depth > maxNesting {
		c.over = true
	}
	v := c.term(t, e, ctx)
	c.depth--
	if c.single {
		if w, ok := c.nodes[t]; ok && w != v {
			joined := c.variable()
			c.flow(w, joined)
			c.flow(v, joined)
			v = joined
		}
		c.nodes[t] = v
	}
	return v
}

func (c *checker) term(t term.Term, e env, ctx context) *variable {
	switch t := t.(type) {
	case *term.Int, *term.Big:
		return c.basic[prim.KindInt]
	case *term.Dec:
		return c.basic[prim.KindDec]
	case *term.Bool:
		return c.basic[prim.KindBool]
	case *term.Str:
		return c.basic[prim.KindString]
	case *term.Unit:
		return c.basic[prim.KindUnit]
	case *term.Var:
		return c.use(t, e)
	case *term.Lam:
		return c.function(t, e, ctx)
	case *term.LetRec:
		return c.letrec(t, e, ctx)
	case *term.App:
		return c.apply(t, e, ctx)
	case *term.If:
		return c.conditional(t, e, ctx)
	case *term.List:
		return c.list(t.Items, e, ctx)
	case *term.Record:
		r := &record{}
		for _, f := range t.Fields {
			r.fields = append(r.fields, field{f.Key, c.infer(f.Value, e, ctx), required})
		}
		return c.fixed(c.intern(r))
	case *term.Quote:
		s := c.shape(prim.KindQuoted)
		s.code = t
		return c.fixed(s)
	case *term.CodeOf:
		return c.codeOf(t, ctx)
	case *term.Self:
		if !ctx.tool {
			c.fails(t, prim.NoSelf())
			return c.variable()
		}
		return c.self
	case *term.Continue:
		in := c.infer(t.Input, e, ctx)
		if !ctx.tool {
			c.fails(t, prim.NoContinue())
			return c.variable()
		}
		s := c.shape(prim.KindContinuation)
		s.next = in
		return c.fixed(s)
	case *term.Effect:
		return c.effect(t, e, ctx)
	case *term.Prim:
		return c.prim(t, e, ctx)
	}
	return c.fixed(c.dynamic)
}

// maxItems is up to how many items of a list that is written out are told apart.
const maxItems = 8

func (c *checker) list(items []term.Term, e env, ctx context) *variable {
	if len(items) == 0 {
		return c.fixed(c.empty)
	}
	s := c.listOf(c.variable())
	for _, i := range items {
		v := c.infer(i, e, ctx)
		c.flow(v, s.item)
		if !c.single && len(items) <= maxItems {
			s.items = append(s.items, v)
		}
	}
	return c.fixed(s)
}

// use is a variable's type: that of what is known of it here, or of its
// function, typed anew.
func (c *checker) use(t *term.Var, e env) *variable {
	b, looked := e.find(t.Name)
	c.spend(looked / lookups)
	if b == nil {
		c.fails(t, prim.Unbound(t.Name, e.names()))
		return c.variable()
	}
	if v := e.known.of(b.path); v != nil {
		return v
	}
	if b.anew == nil {
		return b.v
	}
	if b.anew.shared == nil && c.steps < c.limit/freshOfSteps && c.depth < deepNesting {
		return c.again(b.anew)
	}
	return c.share(b.anew)
}

// share is the one type of a function for the uses that can't have their own.
func (c *checker) share(a *anew) *variable {
	if a.shared == nil {
		a.shared = c.again(a)
	}
	return a.shared
}

// again types a function.
func (c *checker) again(a *anew) *variable {
	if a.group != nil {
		return c.group(a.group, a.env, a.ctx).lookup(a.name).v
	}
	return c.infer(a.t, a.env, a.ctx)
}

// letrec types what functions are bound for: each use of one has its own type, but
// inside of them all uses have one.
func (c *checker) letrec(t *term.LetRec, e env, ctx context) *variable {
	if c.single {
		return c.infer(t.Body, c.group(t, e, ctx), ctx)
	}
	inside := e
	outer := ctx
	outer.sure = false
	for _, f := range t.Funcs {
		inside = inside.bind(&binding{name: f.Name, path: c.path(), anew: &anew{group: t, name: f.Name, env: e, ctx: outer}})
	}
	return c.infer(t.Body, inside, ctx)
}

// group is the variables that functions which see one another see.
func (c *checker) group(t *term.LetRec, e env, ctx context) env {
	vars := make([]*variable, len(t.Funcs))
	for i, f := range t.Funcs {
		vars[i] = c.variable()
		e = e.bind(&binding{name: f.Name, path: c.path(), v: vars[i]})
	}
	ctx.sure = false
	if c.loops == nil {
		c.loops = map[*term.Lam]bool{}
	}
	for i, f := range t.Funcs {
		for l, ok := f.Lam, true; ok; l, ok = l.Body.(*term.Lam) {
			c.loops[l] = true
		}
		c.flow(c.infer(f.Lam, e, ctx), vars[i])
	}
	return e
}

func (e env) names() []string {
	var names []string
	for b := e.vars; b != nil && len(names) < 1000; b = b.next {
		names = append(names, b.name)
	}
	return names
}

func (c *checker) function(t *term.Lam, e env, ctx context) *variable {
	s := c.shape(prim.KindFunction)
	s.param, s.result, s.effects, s.raised = c.variable(), c.variable(), c.variable(), c.variable()
	s.param.loops = c.loops[t]
	if c.params != nil {
		c.params[s.param] = t
	}
	inside := ctx
	inside.effects, inside.raised = s.effects, s.raised
	inside.sure = ctx.sure && c.outermost(t)
	defer c.perhaps()()
	c.flow(c.infer(t.Body, e.bind(&binding{name: t.Param, path: c.path(), v: s.param}), inside), s.result)
	return c.fixed(s)
}

// outermost reports whether a function is the program, or its body directly.
func (c *checker) outermost(l *term.Lam) bool {
	t := c.root
	for {
		f, ok := t.(*term.Lam)
		if !ok {
			return false
		}
		if f == l {
			return true
		}
		t = f.Body
	}
}

// apply types an application; of a literal function it is a let.
func (c *checker) apply(t *term.App, e env, ctx context) *variable {
	args := []*term.App{t}
	f := t.Func
	for a, ok := f.(*term.App); ok; a, ok = f.(*term.App) {
		args = append(args, a)
		f = a.Func
	}
	if _, ok := f.(*term.Lam); !ok {
		// From the inside out, without going down the Go stack for each.
		v := c.infer(f, e, ctx)
		var inputs []*variable
		for i := len(args) - 1; i >= 0; i-- {
			inputs = append(inputs, c.infer(args[i].Arg, e, ctx))
			v = c.applied(args[i], v, inputs[len(inputs)-1], ctx)
		}
		if _, ok := f.(*term.Self); ok {
			c.callsSelf(t, inputs)
		}
		return v
	}
	outer := e
	i := len(args) - 1
	for ; i >= 0; i-- {
		l, ok := f.(*term.Lam)
		if !ok {
			break
		}
		e = e.bind(c.let(l.Param, args[i].Arg, outer, ctx))
		f = l.Body
	}
	v := c.infer(f, e, ctx)
	if c.single && i+1 < len(args) {
		c.nodes[args[i+1]] = v
	}
	for ; i >= 0; i-- {
		v = c.applied(args[i], v, c.infer(args[i].Arg, outer, ctx), ctx)
	}
	return v
}

// let binds a name to a term's value.
func (c *checker) let(name string, t term.Term, e env, ctx context) *binding {
	b := &binding{name: name}
	if !c.single && isFunction(t) {
		b.path, b.anew = c.path(), &anew{t: t, env: e, ctx: ctx}
		b.anew.ctx.sure = false
		return b
	}
	b.v = c.infer(t, e, ctx)
	if isTest(t) {
		b.means, b.scope = t, e.vars
	}
	if b.path = e.path(t); b.path == "" {
		b.path = c.path()
	} else if v := e.known.of(b.path); v != nil {
		b.v = v
	}
	return b
}

// isFunction reports whether a term gives functions and does nothing else.
func isFunction(t term.Term) bool {
	switch t := t.(type) {
	case *term.Lam:
		return true
	case *term.Record:
		for _, f := range t.Fields {
			if !isFunction(f.Value) {
				return false
			}
		}
		return len(t.Fields) > 0
	case *term.Prim:
		return t.ID == prim.Pair && isFunction(t.Args[0]) && isFunction(t.Args[1])
	}
	return false
}

// applied is what a function gives of an argument.
func (c *checker) applied(t *term.App, f, arg *variable, ctx context) *variable {
	res := c.applying(c.testOf(t, prim.App, 0, "", prim.KindFunction), f, arg, ctx)
	if c.single {
		c.nodes[t] = res
	}
	return res
}

// applying is applied, with the test that it is a function.
func (c *checker) applying(x *test, f, arg *variable, ctx context) *variable {
	res := c.variable()
	c.takeAs(x, f, prim.KindFunction, func(s *shape) {
		if s.dynamic {
			c.sinks(arg)
			c.add(res, c.dynamic)
			c.add(ctx.raised, c.dynamic)
			c.flow(c.lent, ctx.effects)
			return
		}
		c.flow(arg, s.param)
		c.flow(s.result, res)
		c.flow(s.effects, ctx.effects)
		c.flow(s.raised, ctx.raised)
	})
	return res
}

func (c *checker) conditional(t *term.If, e env, ctx context) *variable {
	cond := c.infer(t.Cond, e, ctx)
	c.take(cond, t, prim.If, 0, prim.KindBool, nil)
	inside := ctx
	inside.sure = false
	defer c.perhaps()()
	res := c.variable()
	for _, is := range []bool{true, false} {
		branch := t.Else
		if is {
			branch = t.Then
		}
		known := c.narrow(t.Cond, is, e, ctx)
		c.branches = append(c.branches, tested{branch, known.known, e.known})
		c.flow(c.infer(branch, known, inside), res)
	}
	return res
}

// infer runs a check.
func infer(t term.Term, src *term.Source, env Env, b Budget, single bool) *checker {
	c := newChecker(t, src, env, b)
	c.run(single)
	if tuples := c.findTuples(); tuples != nil {
		d := newChecker(t, src, env, b)
		d.root, d.params, d.paths, d.tuples, d.final = c.root, map[*variable]*term.Lam{}, c.paths, tuples, true
		d.run(single)
		if d.over {
			c.took += d.steps
			return c
		}
		d.oneKind, d.took = c, c.took+c.steps
		return d
	}
	return c
}

func (c *checker) run(single bool) {
	c.typeProgram(single)
	c.conclude()
}

func (c *checker) typeProgram(single bool) {
	c.single = single
	if single {
		c.nodes = map[term.Term]*variable{}
	}
	t := c.root
	if c.env.Tool != "" {
		t = term.AsFunction(t)
		c.root = t
	}
	ctx := context{effects: c.effects, raised: c.raised, tool: c.env.Tool != "", sure: true}
	c.flow(c.infer(t, env0, ctx), c.main)
	if c.env.Tool != "" {
		c.watches(c.main, prim.KindAny, func(s *shape) {
			if s.kind == prim.KindFunction || s.dynamic {
				c.add(c.self, s)
			}
		})
	}
	c.solve()
	c.escapes(c.main)
	c.solve()
}

// conclude finds what fails, and what isn't known.
func (c *checker) conclude() {
	if c.over {
		c.found = nil
		c.failed, c.remarked = nil, nil
		c.unknownAt(c.root.Pos(), ReasonComplex, "", "the program is too complex to be typed within the budget; all of it is tested when it runs")
		return
	}
	c.decide()
	c.judge()
	c.judgeCalls()
	conflict := false
	for _, s := range c.seeds {
		if s.used && !s.tuple && (s.conflict || s.known() && !s.fits()) {
			c.conflict(s)
			conflict = true
		}
	}
	if c.env.Run != nil {
		c.judgeConstants()
		if conflict {
			c.judgeConflicts()
		}
	}
}

var env0 env

// conflict notes that no value of a parameter passes all the tests.
func (c *checker) conflict(s *seed) {
	s.conflict = true
	c.unknownAt(s.pos, ReasonConflict, s.name, "a parameter, or a part of one, is used in ways that no one type permits; which of them is meant is known only when it runs")
}

// isZero reports whether a term is the number 0, as a divisor.
func isZero(t term.Term) bool {
	n, ok := t.(*term.Int)
	return ok && n.Value == 0
}

// byZero is the fault of a division by 0.
func byZero(row *prim.Row) *fault.Fault {
	return &fault.Fault{
		Kind: fault.DivisionByZero, Message: row.Name + " by 0", Expected: "a divisor other than 0", Got: "0",
		Hint: "Divide by another number, or test the divisor first.",
	}
}
