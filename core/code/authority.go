package code

import (
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// A function remembers what the evals permit that are under way when it is
// made, and applying it narrows what is permitted to that until it returns. Its
// closure holds it as the first captured value: a variable outside all scopes,
// given its value by Auth where the closure is made and read by Narrow, which
// stands where the function begins. Where no eval can be around there is none.

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

// inlined reports whether a function given to fold is compiled where it stands:
// it is applied where it is made, so that it has nothing to remember.
func (c *compiler) inlined(l *term.Lam) bool {
	_, several := l.Body.(*term.Lam)
	return !several
}

// effect compiles an effect, into top.
func (c *compiler) effect(n *node, top uint8) {
	f := c.f
	f.pend++
	c.value(n.a, top, top)
	e := n.t.(*term.Effect)
	d := int32(0)
	if e.In == "" {
		d = c.name(e.Op)
	} else {
		d = c.constant(Const{Name: e.Op, In: e.In})
	}
	f.end(Instr{Op: Effect, A: top, D: d}, 0, n.pos)
}

// toolCall compiles the call of a tool, into top. It takes a depth in tail
// position, too: what it changes has to be put back.
func (c *compiler) toolCall(n *node, top uint8) {
	f := c.f
	f.pend++
	c.value(n.list[0], top, top)
	c.value(n.list[1], top+1, top+1)
	f.end(Instr{Op: CallTool, A: top, B: uint8(n.pre)}, -1, n.pos)
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
