package code

import (
	"math/bits"
	"slices"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

func maskOf(v int64) bool { return v > 0 && v&(v-1) == 0 }

// prim compiles a row of the table.
func (c *compiler) prim(n *node, dst, top uint8) {
	f := c.f
	if b, half, ok := halfOf(n); ok {
		f.pend += n.halfSteps()
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
		if a := n.list[0]; a.kind == kPrim {
			a.fresh = op == Concat
		}
		c.binary(n, op, dst, top, c.operand(n.list[0], top))
	case Head, Tail, Fst, Snd, IsEmpty, Length, Not, CodeOfV:
		a := c.operand(n.list[0], top)
		f.op(op, dst, a, 0, int32(above(a, top)), n.pos)
	default:
		in := Instr{Op: rowOps[n.id], A: dst, B: uint8(len(n.list)), D: int32(n.id)}
		if in.Op == Halt || in.Op == At && len(n.list) != 2 {
			in.Op = Prim
		}
		if n.own != nil && n.own.owns && n.own.owner == f {
			in.Op, in.B = PutOwn, n.own.reg+ownFlag
		}
		t := top
		if in.Op == Round {
			if scale, mode, name := rounding(n); name != nil {
				r := c.operand(n.list[0], t)
				f.pend += 2
				t = above(r, t)
				f.top = max(f.top, t+3)
				in.B, in.C, in.D, in.K = r, t, c.literal(name), int64(t)+3|scale<<8|mode<<16
				f.emit(in, n.pos)
				return
			}
			in.Op = Prim
		}
		if in.Op == Prim {
			for _, a := range n.list {
				c.value(a, t, t)
				t++
			}
			in.C, in.K = top, int64(t)
			f.emit(in, n.pos)
			return
		}
		if key, ok := constantKey(n); ok {
			r := c.operand(n.list[0], t)
			f.pend++
			t = above(r, t)
			f.top = max(f.top, t+2)
			f.emit(Instr{Op: GetK, A: dst, B: r, C: t, D: c.literal(key), K: int64(t) + 2}, n.pos)
			return
		}
		var from [3]uint8
		for i, a := range n.list {
			from[i] = c.operand(a, t)
			t = above(from[i], t)
		}
		// Copies for the row, above what holds the operands, so that it may be done again.
		in.C = t
		t += uint8(len(n.list))
		f.top = max(f.top, t)
		in.K = Packed(t, from)
		f.emit(in, n.pos)
	}
}

// constantKey returns the key of a get that has no other operand beside the record.
func constantKey(n *node) (key *term.Str, ok bool) {
	if n.id == prim.GetField && len(n.list) == 2 && n.list[1].kind == kConst {
		key, ok = n.list[1].t.(*term.Str)
	}
	return key, ok
}

// rounding returns the constants of a round_dec that has an instruction of its own; nil: it has none.
func rounding(n *node) (scale, mode int64, name *term.Str) {
	s, ok := n.list[1].t.(*term.Int)
	name, okName := n.list[2].t.(*term.Str)
	if !ok || !okName || n.list[1].kind != kConst || n.list[2].kind != kConst || s.Value < 0 || s.Value > 18 {
		return 0, 0, nil
	}
	i := slices.Index([]string{RoundDown: "down", RoundHalfUp: "half_up", RoundHalfEven: "half_even"}, name.Value)
	if i < 0 {
		return 0, 0, nil
	}
	return s.Value, int64(i), name
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
			c.f.top = max(c.f.top, t+2)
			c.f.emit(Instr{Op: ToText, A: t, B: 1, C: t + 1, D: int32(second.id), K: Packed(t+2, [3]uint8{t})}, second.pos)
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
		"get": Get, "compare": Compare, "at": At, "nth": Nth, "to_text": ToText, "push": Push, "round_dec": Round,
	} {
		if id, _, ok := prim.Lookup(name); ok {
			ops[id] = op
		}
	}
	return ops
}()

// sort_by with a plain key is tried by one instruction before what the row means in PIF,
// which stays there for all that the instruction leaves to it.

// A sortKey is what a list is sorted by: the items themselves, or a field of each; or the
// negative of it.
type sortKey struct {
	Field    *term.Str // nil: the item
	Negative bool
}

// keyOf reports whether a function only finds a plain key.
func keyOf(f term.Term) (k sortKey, ok bool) {
	l, ok := f.(*term.Lam)
	if !ok {
		return k, false
	}
	body := l.Body
	if p, ok := body.(*term.Prim); ok && p.ID == prim.Sub {
		if zero, ok := p.Args[0].(*term.Int); !ok || zero.Value != 0 {
			return k, false
		}
		k.Negative, body = true, p.Args[1]
	}
	if p, ok := body.(*term.Prim); ok && p.ID == prim.GetField && len(p.Args) == 2 {
		if k.Field, ok = p.Args[1].(*term.Str); !ok {
			return k, false
		}
		body = p.Args[0]
	}
	v, ok := body.(*term.Var)
	return k, ok && v.Name == l.Param
}

// trySort puts the instruction before the body of a use of sort_by: n is what binds the
// row's two operands.
func (c *compiler) trySort(n *node, t *term.Prim) {
	key, ok := keyOf(t.Args[0])
	if !ok || c.unit.Narrows || n.kind != kLet || n.body.kind != kLet {
		return
	}
	list := c.newNode()
	list.kind, list.b, list.pos, list.size = kVar, n.body.b, n.pos, 1
	list.b.uses++
	m := c.newNode()
	m.kind, m.a, m.body, m.key, m.pos, m.size = kSort, list, n.body.body, &key, n.pos, n.body.body.size
	n.body.body = m
}

// sort compiles it: the value of either way is in dst.
func (c *compiler) sort(n *node, dst, top uint8) {
	f := c.f
	var end label
	if w := c.locate(f, n.a.b, 0); w.kind == inReg && !n.a.b.self && top < wide {
		if n.key.Field != nil {
			f.emit(Instr{Op: LoadK, A: top, D: c.constant(Const{Term: n.key.Field}), K: int64(top)}, n.pos)
		} else {
			f.emit(Instr{Op: LoadI, A: top, K: WordUnit}, n.pos)
		}
		side := ConstRight
		if n.key.Negative {
			side = ConstLeft
		}
		f.jump(Instr{Op: Sort, A: dst, B: uint8(w.n), C: top}, &end, n.pos)
		f.sides(prim.SortBy, side, top+1)
	}
	c.value(n.body, dst, top)
	f.bind(&end)
}

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
		at := len(f.code)
		a := c.operand(n.list[0], top)
		f.pend++
		if v == 0 && at < len(f.code) {
			c.tryCompare(j.imm, l, n.pos)
		}
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

// tryCompare puts before a compare, the last instruction, what does it together with the
// jump on whether it is 0 or on which side.
func (c *compiler) tryCompare(jump Op, l *label, pos int32) {
	f := c.f
	last := len(f.code) - 1
	in, meta := f.code[last], f.meta[last]
	a, b := in.Unpacked(0), in.Unpacked(1)
	try := Instr{Op: TryLt, A: a, B: b}
	switch jump {
	case JGeI:
		try.Op = TryGe
	case JGtI:
		try.A, try.B = b, a
	case JLeI:
		try.Op, try.A, try.B = TryGe, b, a
	case JLtI:
	default:
		return
	}
	if in.Op != Compare || f.bound > last {
		return
	}
	f.code, f.meta = f.code[:last], f.meta[:last]
	f.jump(try, l, pos)
	f.meta[last].Pend = meta.Pend
	f.code, f.meta = append(f.code, in), append(f.meta, meta)
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
	return slices.ContainsFunc(nodes, func(n *node) bool { return c.readsOne(n, reg) })
}

func (c *compiler) readsOne(n *node, reg uint8) bool {
	if n == nil {
		return false
	}
	if n.size > 200 {
		return true
	}
	if n.kind == kVar && n.b.owner == c.f && !n.b.self {
		return n.b.reg == reg || n.b.half && n.b.reg+1 == reg || n.b.acc > 0 && (n.b.acc == reg || n.b.acc+1 == reg)
	}
	return n.kind == kEval || c.readsOne(n.a, reg) || c.readsOne(n.b2, reg) || c.readsOne(n.body, reg) || c.reads(n.list, reg)
}
