package check

import (
	"fmt"
	"slices"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// A called is a call of a tool whose code is known. Each of inputs is what one typing
// of it gives the first parameters; one without any may be given what isn't known.
type called struct {
	t      *term.Prim
	code   term.Term
	callee Callee
	inputs [][]*variable
}

// calls notes what a call gives the parameters of a tool.
func (c *checker) calls(t *term.Prim, name string, callee Callee, inputs ...*variable) {
	if c.env.Code == nil || c.library != elsewhere {
		return
	}
	i := slices.IndexFunc(c.called, func(x *called) bool { return x.t == t })
	if i < 0 {
		code, ok := c.env.Code(name)
		if !ok {
			return
		}
		i = len(c.called)
		c.called = append(c.called, &called{t: t, code: code, callee: callee})
	}
	c.called[i].inputs = append(c.called[i].inputs, inputs)
}

// judgeCalls finds the calls that fail in the tool, whatever isn't known of their
// inputs: its code is typed with them, as that of a row of the prelude is.
func (c *checker) judgeCalls() {
	left := c.limit
	for _, x := range c.called {
		var f *fault.Fault
		for _, inputs := range x.inputs {
			if f = c.failsOn(x.code, inputs, &left); f == nil {
				break
			}
		}
		if f == nil {
			continue
		}
		name := x.t.Args[0].(*term.Str).Value
		c.failsAt(x.t.Pos(), &fault.Fault{
			Kind: f.Kind, Message: fmt.Sprintf("the tool %q fails on such inputs: %s", name, f.Message), Expected: f.Expected, Got: f.Got,
			Hint: fmt.Sprintf("Give it what its type takes: %s.", x.callee.Type),
		})
	}
}

// failsOn is the first fault that code, applied to inputs, can't but come to.
func (c *checker) failsOn(code term.Term, inputs []*variable, left *int) *fault.Fault {
	if len(inputs) == 0 || *left <= 0 {
		return nil
	}
	k := newChecker(code, nil, Env{Tool: "tool"}, Budget{Steps: *left})
	k.library = certain
	t, e, seen := asFunction(code), env{}, map[*variable]*variable{}
	for _, in := range inputs {
		l, ok := t.(*term.Lam)
		if !ok {
			return nil
		}
		e = e.bind(&binding{name: l.Param, path: k.path(), v: k.copied(in, seen)})
		t = l.Body
	}
	k.infer(t, e, context{effects: k.effects, raised: k.raised, tool: true})
	k.library = possible // what is typed from now on is typed for what flows, from anywhere
	k.solve()
	*left -= k.steps
	if k.over {
		return nil
	}
	k.judge()
	if len(k.failed) == 0 {
		return nil
	}
	return slices.MinFunc(k.failed, func(a, b *failure) int { return a.pos - b.pos }).f
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
