package check

import (
	"fmt"
	"slices"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// A called is a call of a tool whose code is known, the tool itself too. Each of inputs is
// what one typing of it gives the first parameters; one without any may be given what isn't
// known.
type called struct {
	t      term.Term
	code   term.Term
	what   string // is called
	hint   string
	inputs [][]*variable
}

// calls notes what a call gives the parameters of a tool.
func (c *checker) calls(t *term.Prim, name string, callee Callee, inputs ...*variable) {
	if c.env.Code == nil || c.library != elsewhere {
		return
	}
	code, ok := c.env.Code(name)
	if !ok {
		return
	}
	c.gives(called{
		t: t, code: code, what: fmt.Sprintf("the tool %q", name),
		hint: fmt.Sprintf("Give it what its type takes: %s.", callee.Type),
	}, inputs)
}

// callsSelf notes what the tool gives its own parameters.
func (c *checker) callsSelf(t term.Term, inputs []*variable) {
	if c.env.Code == nil || c.library != elsewhere || c.nested > 0 || c.env.Tool == "" {
		return
	}
	c.gives(called{t: t, code: c.code, what: "self", hint: "Give self what the tool takes."}, inputs)
}

func (c *checker) gives(x called, inputs []*variable) {
	i := slices.IndexFunc(c.called, func(y *called) bool { return y.t == x.t })
	if i < 0 {
		i = len(c.called)
		c.called = append(c.called, &x)
	}
	c.called[i].inputs = append(c.called[i].inputs, inputs)
}

// judgeCalls finds the calls that fail in the tool, whatever isn't known of their
// inputs: its code is typed with them, as that of a row of the prelude is.
func (c *checker) judgeCalls() {
	left := c.limit
	for _, x := range c.called {
		var f *failure
		for _, inputs := range x.inputs {
			k, given := newChecker(x.code, nil, Env{Tool: "tool"}, Budget{Steps: left}), []*variable(nil)
			for _, in := range inputs {
				given = append(given, k.copied(in, map[*variable]*variable{}))
			}
			f = k.failing(given)
			if left = max(1, left-k.steps); f == nil {
				break
			}
		}
		if f == nil {
			continue
		}
		c.failsAt(x.t.Pos(), &fault.Fault{
			Kind: f.f.Kind, Message: fmt.Sprintf("%s fails on these inputs: %s", x.what, f.f.Message), Expected: f.f.Expected, Got: f.f.Got, Hint: x.hint,
		})
	}
}

// judgeConflicts finds the parameters of the program that fail of whatever kind they
// are: the places that do so are reached by values that passed those before.
func (c *checker) judgeConflicts() {
	left := c.limit
	t := c.root
	for a, ok := t.(*term.App); ok; a, ok = t.(*term.App) {
		l, ok := a.Func.(*term.Lam)
		if !ok {
			return
		}
		t = l.Body
	}
	var params []string
	for l, ok := t.(*term.Lam); ok; l, ok = l.Body.(*term.Lam) {
		params = append(params, l.Param)
	}
	for i, name := range params[:min(len(params), maxConflicts)] {
		var last *failure
		for _, kind := range unknownKinds {
			k := newChecker(c.code, nil, Env{Tool: c.env.Tool}, Budget{Steps: left})
			given := slices.Repeat([]*variable{k.fixed(k.dynamic)}, len(params))
			given[i] = k.fixed(k.someOf(kind, k.dynamic))
			f := k.failing(given)
			if left = max(1, left-k.steps); f == nil {
				last = nil
				break
			}
			if last == nil || f.pos > last.pos {
				last = f
			}
		}
		if last != nil && !slices.ContainsFunc(c.failed, func(f *failure) bool { return f.pos == last.pos }) {
			f := *last.f
			f.Message = fmt.Sprintf("no value of %q fits each of its uses: %s", name, f.Message)
			f.Hint = `Use it as one kind of value, or ask first which it is: {"if":{"cond":{"equal":[{"type_of":X},"string"]},"then":A,"else":B}}.`
			c.failsAt(last.pos, &f)
		}
	}
}

// maxConflicts is how many parameters are looked at for conflicts.
const maxConflicts = 8

// failing is the first failure that a new checker's code, applied to what it is given,
// can't but come to; nil: none, or nothing is given.
func (c *checker) failing(given []*variable) *failure {
	c.library = certain
	t, e, ctx := term.AsFunction(c.code), env{}, context{effects: c.effects, raised: c.raised, tool: true}
	for rest := given; len(rest) > 0; {
		l, ok := t.(*term.Lam)
		if a, let := t.(*term.App); let {
			if l, ok = a.Func.(*term.Lam); ok {
				e, t = e.bind(c.let(l.Param, a.Arg, e, ctx)), l.Body
				continue
			}
		}
		if !ok {
			return nil
		}
		e, t, rest = e.bind(&binding{name: l.Param, path: c.path(), v: rest[0]}), l.Body, rest[1:]
	}
	c.infer(t, e, ctx)
	c.library = possible // what is typed while it flows may be anywhere
	c.solve()
	if c.over || len(given) == 0 {
		return nil
	}
	c.judge()
	if len(c.failed) == 0 {
		return nil
	}
	return slices.MinFunc(c.failed, func(a, b *failure) int { return a.pos - b.pos })
}

// copied is what flows into a variable of another checker, so far. What isn't known,
// or is a caller's, is dynamic.
func (c *checker) copied(v *variable, seen map[*variable]*variable) *variable {
	w, ok := seen[v]
	if v == nil || ok {
		return w
	}
	w = c.variable()
	seen[v] = w
	for _, s := range v.lower {
		to := c.dynamic
		if basic, ok := c.basic[s.kind]; ok {
			to = basic.lower[0]
		}
		switch {
		case s.seed != nil || s.unknown != nil || s.dynamic:
			to = c.dynamic
		case s.kind == prim.KindList:
			to = c.listOf(c.copied(s.item, seen))
		case s.kind == prim.KindPair:
			to = c.pairOf(c.copied(s.first, seen), c.copied(s.second, seen))
		case s.kind == prim.KindRecord && s.record.row == nil:
			r := &record{fields: slices.Clone(s.record.fields), rest: c.copied(s.record.rest, seen)}
			for i := range r.fields {
				r.fields[i].v = c.copied(r.fields[i].v, seen)
			}
			to = c.intern(r)
		}
		c.add(w, to)
	}
	return w
}
