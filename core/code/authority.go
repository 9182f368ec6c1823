package code

import (
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// A function's authority is that of the code around it, and what the evals
// permit that were under way when it was made. It is a variable that the
// compiler puts around a lambda that can act, {"let":[[Hidden,AUTH]],"in":λ},
// so that the function captures it as it does others, and evaluated code finds
// it in its scope as it does others. Where no eval can be around there is none.

// Evals reports whether a term evaluates code, outside quotes.
func Evals(t term.Term) bool {
	switch t := t.(type) {
	case *term.Quote:
		return false
	case *term.Prim:
		if t.ID == prim.Eval {
			return true
		}
	}
	found := false
	term.Children(t, func(c term.Term) bool {
		found = Evals(c)
		return !found
	})
	return found
}

// acts reports whether a term can act, now or in a function that it makes: ask
// for an effect, call a tool, or evaluate code, which may. It notes the lambdas
// of which that is true.
func (c *compiler) acts(t term.Term) bool {
	acting := false
	switch t := t.(type) {
	case *term.Quote:
		return false
	case *term.Effect:
		acting = true
	case *term.Prim:
		acting = t.ID == prim.Eval || t.ID == prim.Call
	}
	term.Children(t, func(child term.Term) bool {
		acting = c.acts(child) || acting
		return true
	})
	if l, ok := t.(*term.Lam); ok && acting {
		c.acting[l] = true
	}
	return acting
}

// inlined reports whether a function given to fold is compiled where it stands,
// so that it needs no authority of its own.
func (c *compiler) inlined(l *term.Lam) bool {
	_, several := l.Body.(*term.Lam)
	return !several
}

// authority finds the variable that holds the authority of the function around;
// nil: it has all of its tool's.
func (c *compiler) authority(s *scope) *binder {
	if c.acting == nil {
		return nil
	}
	b := c.find(s, Hidden)
	if b != nil {
		b.uses++
		c.refer(b)
	}
	return b
}

// resolveActing resolves a lambda that can act.
func (c *compiler) resolveActing(n *node, t *term.Lam, s *scope) *node {
	auth := c.newNode()
	auth.kind, auth.pos, auth.size, auth.b = kAuth, n.pos, 1, c.authority(s)
	let := c.newNode()
	let.kind, let.pos, let.a, let.b = kLet, n.pos, auth, c.newBinder(Hidden)
	n.b = let.b
	c.resolveLam(n, t, c.push(s, let.b))
	let.body, let.size = n, n.size+2
	return let
}

// visibleName is the name of a variable of the program. None is called Hidden
// that was read or made of valid strings; one that is all the same is another.
func visibleName(name string) string {
	if name == Hidden {
		return Hidden + Hidden
	}
	return name
}

// own gives the register of an authority, loading it where need be; has is 0
// where there is none.
func (c *compiler) own(b *binder, top uint8, pos int32) (reg, has uint8) {
	if b == nil {
		return 0, 0
	}
	if w := c.locate(c.f, b, 0); w.kind == inReg {
		return uint8(w.n), 1
	}
	c.load(b, 0, top, pos)
	return top, 1
}

// effect compiles an effect, into top.
func (c *compiler) effect(n *node, top uint8) {
	f := c.f
	f.pend++
	c.value(n.a, top, top)
	own, has := c.own(n.b, top+1, n.pos)
	e := n.t.(*term.Effect)
	d := int32(0)
	if e.In == "" {
		d = c.name(e.Op)
	} else {
		d = c.constant(Const{Name: e.Op, In: e.In})
	}
	f.end(Instr{Op: Effect, A: top, B: own, C: has, D: d}, 0, n.pos)
}

// toolCall compiles the call of a tool, into top. It takes a depth in tail
// position, too: what it changes has to be put back.
func (c *compiler) toolCall(n *node, top uint8) {
	f := c.f
	f.pend++
	c.value(n.list[0], top, top)
	c.value(n.list[1], top+1, top+1)
	own, has := c.own(n.b, top+2, n.pos)
	f.end(Instr{Op: CallTool, A: top, B: own, C: has}, -1, n.pos)
}

// par compiles the branches of par one after the other; the machine decides
// when each of them runs.
func (c *compiler) par(n *node, top uint8) {
	f := c.f
	f.pend++
	f.end(Instr{Op: Par, A: top, D: int32(len(n.list))}, -1, n.pos)
	table := len(f.code)
	for range len(n.list) + 1 {
		f.op(Branch, 0, 0, 0, 0, n.pos)
	}
	for i, b := range n.list {
		f.code[table+i].D = int32(len(f.code)-table-i) * InstrSize
		f.pend, f.dead = 0, false
		c.value(b, top, top)
		f.end(Instr{Op: EndPar, A: top}, 0, n.pos)
	}
	last := table + len(n.list)
	f.code[last].D = int32(len(f.code)-last) * InstrSize
	f.pend, f.dead = 0, false
}
