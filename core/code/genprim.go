package code

import (
	"math/bits"

	"github.com/mcp-pif/mcp-pif/core/prim"
)

func maskOf(v int64) bool { return v > 0 && v&(v-1) == 0 }

// prim compiles a row of the table.
func (c *compiler) prim(n *node, dst, top uint8) {
	f := c.f
	if b, half, ok := halfOf(n); ok {
		f.pend += 2
		c.load(b, half, dst, n.pos)
		return
	}
	op := opOf[n.id]
	switch op {
	case opAnd, opOr:
		var no, end label
		c.cond(n, false, &no, top, AskIf, n.pos)
		f.emit(Instr{Op: LoadI, A: dst, K: WordTrue}, n.pos)
		f.jump(Instr{Op: Jmp}, &end, n.pos)
		f.dead = true
		f.bind(&no)
		f.emit(Instr{Op: LoadI, A: dst, K: WordFalse}, n.pos)
		f.bind(&end)
		return
	case opTry:
		c.try(n, top)
		c.move(dst, top, n.pos)
		return
	}
	f.pend++
	switch op {
	case Add, Sub, Mul, Div, Mod:
		// -MinInt is no word, so subtracting MinInt has no immediate form.
		if v, ok := n.list[1].smallInt(); ok && (v != 0 || op < Div) && (v != MinInt || op != Sub) {
			a := c.operand(n.list[0], top)
			f.pend++
			in := Instr{A: dst, B: a, D: int32(above(a, top)), K: v << 1}
			switch {
			case op == Add:
				in.Op = AddI
			case op == Sub:
				in.Op, in.K, in.C = AddI, -v<<1, 1
			case op == Mul:
				in.Op = MulI
			case op == Div && maskOf(v):
				in.Op, in.C = ShrI, uint8(bits.TrailingZeros64(uint64(v)))
			case op == Mod && maskOf(v):
				in.Op, in.K = AndI, (v-1)<<1
			case op == Div:
				in.Op = DivI
			default:
				in.Op = ModI
			}
			f.emit(in, n.pos)
			return
		}
		c.binary(n, op, dst, top, c.operand(n.list[0], top))
	case Eq, Lt, Lte, Gt, Gte, Cons, Pair, Concat:
		n.list[0].fresh = op == Concat
		c.binary(n, op, dst, top, c.operand(n.list[0], top))
	case Head, Tail, Fst, Snd, IsEmpty, Length, Not:
		a := c.operand(n.list[0], top)
		f.op(op, dst, a, 0, int32(above(a, top)), n.pos)
	case CodeOfV:
		a := c.operand(n.list[0], top)
		f.op(op, dst, a, 0, int32(above(a, top)), n.pos)
	default:
		t := top
		for _, a := range n.list {
			c.value(a, t, t)
			t++
		}
		row := rowOps[n.id]
		if row == Halt || row == At && len(n.list) != 2 {
			row = Prim
		}
		in := Instr{Op: row, A: dst, B: uint8(len(n.list)), C: top, D: int32(n.id), K: int64(t)}
		if n.own != nil && n.own.owns && n.own.owner == f {
			in.Op, in.B = PutOwn, n.own.reg+ownFlag
		}
		f.emit(in, n.pos)
	}
}

// try compiles try: its operand, and what a fault in it becomes, into top.
func (c *compiler) try(n *node, top uint8) {
	f := c.f
	f.settle(n.pos)
	f.pend++
	at := len(f.code)
	f.end(Instr{Op: Try, A: top}, -1, n.pos)
	c.value(n.list[0], top+4, top+4)
	f.end(Instr{Op: EndTry, A: top, B: top + 4, D: int32(top) + 5}, 1, n.pos)
	f.code[at].D = int32(len(f.code)-at) * InstrSize
}

// binary emits op on the operand in a and the second one, still to be evaluated.
func (c *compiler) binary(n *node, op Op, dst, top, a uint8) {
	t, second := above(a, top), n.list[1]
	in := Instr{Op: op, A: dst, B: a}
	switch {
	case n.id == prim.Equal:
		in.K = 1
	case op == Concat:
		if n.list[0].kind == kPrim && n.list[0].id == prim.Concat {
			in.K = JoinsFresh
		}
		if n.fresh {
			in.K |= GivesFresh
		}
		if second.kind == kPrim && second.id == prim.ToText && len(second.list) == 1 && t < wide {
			c.f.pend++
			c.value(second.list[0], t, t)
			in.Op, in.C, in.D = ConcatT, t, int32(t)+1
			c.f.emit(in, n.pos)
			c.f.emit(Instr{Op: ToText, A: t, B: 1, C: t, D: int32(second.id), K: int64(t) + 1}, second.pos)
			in.Op = Concat
			c.f.emit(in, n.pos)
			return
		}
	}
	b := c.operand(second, t)
	in.C, in.D = b, int32(above(b, t))
	c.f.emit(in, n.pos)
	c.f.meta[len(c.f.meta)-1].Row = n.id
}

// Pseudo operations: forms that have no instruction of their own.
const (
	opGeneric = NumOps + iota
	opAnd
	opOr
	opTry
)

// opOf gives the instruction of a row, opGeneric where it has none.
var opOf = func() []Op {
	ops := make([]Op, len(prim.Table))
	for i := range ops {
		ops[i] = opGeneric
	}
	for name, op := range map[string]Op{
		"add": Add, "sub": Sub, "mul": Mul, "div": Div, "mod": Mod,
		"eq": Eq, "equal": Eq, "lt": Lt, "lte": Lte, "gt": Gt, "gte": Gte, "not": Not,
		"and": opAnd, "or": opOr, "try": opTry,
		"cons": Cons, "head": Head, "tail": Tail, "isEmpty": IsEmpty, "length": Length,
		"pair": Pair, "fst": Fst, "snd": Snd, "concat": Concat, "code_of": CodeOfV,
	} {
		if id, _, ok := prim.Lookup(name); ok {
			ops[id] = op
		}
	}
	return ops
}()

// rowOps gives the instruction of a row that has one in place of Prim, with the same
// operands; Halt where it has none.
var rowOps = func() []Op {
	ops := make([]Op, len(prim.Table))
	for name, op := range map[string]Op{
		"get": Get, "compare": Compare, "at": At, "nth": Nth, "to_text": ToText,
	} {
		if id, _, ok := prim.Lookup(name); ok {
			ops[id] = op
		}
	}
	return ops
}()
