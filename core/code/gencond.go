package code

import (
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// cond compiles n as a condition: it jumps to l where n is sense and goes on
// where it isn't. ask and at say whose condition it is, for the fault where n
// is no truth value.
func (c *compiler) cond(n *node, sense bool, l *label, top uint8, ask Asker, at int32) {
	f := c.f
	if top > wide && !n.leaf() {
		c.outlined(n, top, false)
		c.branch(top, sense, l, ask, at)
		return
	}
	if n.kind == kPrim {
		switch op := opOf[n.id]; op {
		case Not:
			f.pend++
			c.cond(n.list[0], !sense, l, top, AskNot, n.pos)
			return
		case opAnd, opOr:
			f.pend++
			mine, other := AskAnd, AskAnd2
			if op == opOr {
				mine, other = AskOr, AskOr2
			}
			// The operand that decides alone: false for and, true for or.
			short := op == opOr
			if sense == short {
				c.cond(n.list[0], short, l, top, mine, n.pos)
				c.cond(n.list[1], short, l, top, other, n.pos)
				return
			}
			var skip label
			c.cond(n.list[0], short, &skip, top, mine, n.pos)
			c.cond(n.list[1], sense, l, top, other, n.pos)
			f.bind(&skip)
			return
		case IsEmpty:
			f.pend++
			a := c.operand(n.list[0], top)
			in := Instr{Op: JEmpty, A: a}
			if !sense {
				in.Op = JCons
			}
			f.jump(in, l, n.pos)
			return
		case Eq, Lt, Lte, Gt, Gte:
			c.compare(n, op, sense, l, top)
			return
		}
	}
	if n.kind == kConst {
		if b, ok := n.t.(*term.Bool); ok {
			f.pend++
			if b.Value == sense {
				f.jump(Instr{Op: Jmp}, l, n.pos)
				// What follows can't be reached, and is compiled all the same.
			}
			return
		}
	}
	r := c.operand(n, top)
	c.branch(r, sense, l, ask, at)
}

func (c *compiler) branch(r uint8, sense bool, l *label, ask Asker, at int32) {
	in := Instr{Op: JF, A: r, B: ask}
	if sense {
		in.Op = JT
	}
	c.f.jump(in, l, at)
}

// A comparison jumps by one of four operations on two registers, or one of
// six on a register and a small constant.
var jumps = [NumOps][2]struct {
	op   Op
	swap bool
	imm  Op // with the constant on the right
	left Op // with the constant on the left
}{
	Eq:  {{JNe, false, JNeI, JNeI}, {JEq, false, JEqI, JEqI}},
	Lt:  {{JGe, false, JGeI, JLeI}, {JLt, false, JLtI, JGtI}},
	Lte: {{JLt, true, JGtI, JLtI}, {JGe, true, JLeI, JGeI}},
	Gt:  {{JGe, true, JLeI, JGeI}, {JLt, true, JGtI, JLtI}},
	Gte: {{JLt, false, JLtI, JGtI}, {JGe, false, JGeI, JLeI}},
}

func (c *compiler) compare(n *node, op Op, sense bool, l *label, top uint8) {
	f := c.f
	f.pend++
	j := jumps[op][0]
	if sense {
		j = jumps[op][1]
	}
	if v, ok := n.list[1].smallInt(); ok && fits16(v) {
		a := c.operand(n.list[0], top)
		f.pend++
		f.jump(Instr{Op: j.imm, A: a, B: uint8(v), C: uint8(v >> 8)}, l, n.pos)
		f.sides(n.id, ConstRight, above(a, top))
		return
	}
	if v, ok := n.list[0].smallInt(); ok && fits16(v) {
		f.pend++
		b := c.operand(n.list[1], top)
		f.jump(Instr{Op: j.left, A: b, B: uint8(v), C: uint8(v >> 8)}, l, n.pos)
		f.sides(n.id, ConstLeft, above(b, top))
		return
	}
	a := c.operand(n.list[0], top)
	b := c.operand(n.list[1], above(a, top))
	height := above(b, above(a, top))
	side := InOrder
	if j.swap {
		a, b, side = b, a, Swapped
	}
	in := Instr{Op: j.op, A: a, B: b}
	if n.id == prim.Equal {
		in.C = 1
	}
	f.jump(in, l, n.pos)
	f.sides(n.id, side, height)
}

// JumpsWhen reports whether a comparison that jumps does so where it is true.
func JumpsWhen(op Op, row term.ID, side Side) bool {
	j := jumps[opOf[row]][1]
	switch side {
	case ConstRight:
		return op == j.imm
	case ConstLeft:
		return op == j.left
	}
	return op == j.op
}

// sides describes the comparison that the last instruction is.
func (f *fn) sides(row term.ID, side Side, height uint8) {
	m := &f.meta[len(f.meta)-1]
	m.Row, m.Side, m.Height = row, side, height
}

// reads reports whether any of the nodes may read the register, as a variable of the
// function being compiled.
func (c *compiler) reads(nodes []*node, reg uint8) bool {
	for _, n := range nodes {
		if c.readsOne(n, reg) {
			return true
		}
	}
	return false
}

func (c *compiler) readsOne(n *node, reg uint8) bool {
	if n == nil {
		return false
	}
	if n.size > 200 {
		return true
	}
	if n.kind == kVar && n.b.owner == c.f && !n.b.self {
		return n.b.reg == reg || n.b.half && n.b.reg+1 == reg
	}
	if n.kind == kEval {
		return true
	}
	return c.readsOne(n.a, reg) || c.readsOne(n.b2, reg) || c.readsOne(n.body, reg) || c.reads(n.list, reg)
}
