package code

import (
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// wide is the register from which on an operand is compiled as a function of
// its own, so that no window needs more than 256.
const wide = 190

// maxItems is how many items of a list or record are held in registers at once.
const maxItems = 16

func (n *node) leaf() bool {
	switch n.kind {
	case kConst, kVar, kUnbound, kQuote, kCodeOf, kSelf:
		return true
	}
	return false
}

// immediate returns the word of a constant that needs no heap.
func immediate(t term.Term) (int64, bool) {
	switch t := t.(type) {
	case *term.Int:
		return smallInt(t.Value)
	case *term.Bool:
		if t.Value {
			return WordTrue, true
		}
		return WordFalse, true
	case *term.Unit:
		return WordUnit, true
	case *term.List:
		if len(t.Items) == 0 {
			return WordNil, true
		}
	case *term.Prim:
		if t.ID == prim.Nil {
			return WordNil, true
		}
	}
	return 0, false
}

func (n *node) smallInt() (int64, bool) {
	if n.kind == kConst {
		if t, ok := n.t.(*term.Int); ok {
			_, small := smallInt(t.Value)
			return t.Value, small
		}
	}
	return 0, false
}

// operand evaluates n and returns the register it is in: a variable's own, or top.
func (c *compiler) operand(n *node, top uint8) uint8 {
	f := c.f
	switch n.kind {
	case kVar:
		if w := c.locate(f, n.b, 0); w.kind == inReg {
			f.pend++
			return uint8(w.n)
		}
	case kPrim:
		if r, ok := c.halfReg(n); ok {
			f.pend += n.halfSteps()
			return r
		}
	}
	c.value(n, top, top)
	return top
}

// halfOf returns the binder and half that fst or snd of an unbuilt pair reads.
func halfOf(n *node) (*binder, uint8, bool) {
	if n.kind == kPrim && (n.id == prim.Fst || n.id == prim.Snd) {
		half := uint8(1)
		if n.id == prim.Snd {
			half = 2
		}
		v := n.list[0]
		if v.kind == kVar && v.b.half {
			return v.b, half, true
		}
		if b := v.first(); b != nil && b.acc > 0 {
			return b, half + 2, true
		}
	}
	return nil, 0, false
}

// halfSteps returns the steps of a variable or of what halfOf finds.
func (n *node) halfSteps() int64 {
	if n.kind == kVar {
		return 1
	}
	return 1 + n.list[0].halfSteps()
}

func (c *compiler) halfReg(n *node) (uint8, bool) {
	if b, half, ok := halfOf(n); ok {
		if w := c.locate(c.f, b, half); w.kind == inReg {
			return uint8(w.n), true
		}
	}
	return 0, false
}

func above(r, top uint8) uint8 {
	if r == top {
		return top + 1
	}
	return top
}

// value evaluates n into dst, which it writes last of all. Registers from top
// on are free; dst is top or below it.
func (c *compiler) value(n *node, dst, top uint8) { c.valueOf(n, dst, top, inner) }

// valueOf does what value does for an operand (inner) or for a fold's body (body).
func (c *compiler) valueOf(n *node, dst, top uint8, m mode) {
	c.look()
	f := c.f
	f.top = max(f.top, top)
	if top > wide && !n.leaf() {
		c.outlined(n, top, false)
		c.move(dst, top, n.pos)
		return
	}
	switch n.kind {
	case kConst:
		f.pend += int64(n.pre)
		if w, ok := immediate(n.t); ok {
			f.emit(Instr{Op: LoadI, A: dst, K: w}, n.pos)
		} else {
			f.emit(Instr{Op: LoadK, A: dst, D: c.constant(Const{Term: n.t}), K: int64(top)}, n.pos)
		}
	case kVar:
		f.pend++
		if n.b.group != nil {
			c.member(n.b, dst, top, n.pos)
		} else {
			c.load(n.b, 0, dst, n.pos)
		}
	case kUnbound:
		f.pend++
		f.op(Unbound, 0, 0, 0, c.name(n.name), n.pos)
	case kLam:
		f.pend++
		info := c.declare(n)
		c.closureOf(n, info, nil, dst, top)
	case kCall:
		c.call(n, top, m)
		c.move(dst, top, n.pos)
	case kLet:
		if n.tries() {
			c.extreme(n, dst, top)
			return
		}
		top = c.let(n, top)
		c.valueOf(n.body, dst, top, m)
	case kLetRec:
		top = c.letrec(n, top)
		c.valueOf(n.body, dst, top, m)
	case kIf:
		f.pend++
		var no, end label
		c.cond(n.a, false, &no, top, AskIf, n.pos)
		c.valueOf(n.b2, dst, top, m)
		f.jump(Instr{Op: Jmp}, &end, n.pos)
		f.dead = true
		f.bind(&no)
		c.valueOf(n.body, dst, top, m)
		f.bind(&end)
	case kPrim:
		c.prim(n, dst, top)
	case kFold:
		c.fold(n, dst, top)
	case kList:
		c.list(n, dst, top)
	case kRecord:
		c.record(n, dst, top)
	case kQuote:
		f.pend++
		f.emit(Instr{Op: LoadK, A: dst, D: c.constant(Const{Term: n.t}), K: int64(top)}, n.pos)
	case kCodeOf:
		f.pend++
		f.emit(Instr{Op: CodeOf, A: dst, D: c.name(n.name), K: int64(top)}, n.pos)
	case kSelf:
		f.pend++
		if c.root == nil {
			f.op(NoSelf, dst, 0, 0, 0, n.pos)
		} else {
			f.emit(Instr{Op: LoadK, A: dst, D: c.closure(c.root), K: int64(top)}, n.pos)
		}
	case kCont:
		f.pend++
		r := c.operand(n.a, top)
		f.op(Cont, dst, r, 0, int32(above(r, top)), n.pos)
	case kEffect:
		c.effect(n, top)
		c.move(dst, top, n.pos)
	case kTool:
		c.toolCall(n, top)
		c.move(dst, top, n.pos)
	case kPar:
		c.par(n, top)
		c.move(dst, top, n.pos)
	case kSort:
		c.sort(n, dst, top)
	case kEval:
		f.pend++
		top = c.members(n, top)
		d := c.visible(n)
		c.value(n.a, top, top)
		f.endCall(Instr{Op: Eval, A: top, D: d}, m, n.pos)
		c.move(dst, top, n.pos)
	}
}

func (c *compiler) move(dst, src uint8, pos int32) {
	if dst != src {
		c.f.op(Move, dst, src, 0, 0, pos)
	}
}

// tail evaluates n as the function's result.
func (c *compiler) tail(n *node, top uint8) {
	c.look()
	f := c.f
	f.top = max(f.top, top)
	if top > wide && !n.leaf() {
		c.outlined(n, top, true)
		return
	}
	switch n.kind {
	case kIf:
		f.pend++
		var no label
		c.cond(n.a, false, &no, top, AskIf, n.pos)
		c.tail(n.b2, top)
		f.bind(&no)
		c.tail(n.body, top)
		return
	case kLet:
		if n.tries() {
			break
		}
		top = c.let(n, top)
		c.tail(n.body, top)
		return
	case kLetRec:
		top = c.letrec(n, top)
		c.tail(n.body, top)
		return
	case kCall:
		if !f.outline {
			c.call(n, top, tail)
			return
		}
	case kEval:
		if !f.outline {
			f.pend++
			top = c.members(n, top)
			d := c.visible(n)
			c.value(n.a, top, top)
			f.end(Instr{Op: TailEval, A: top, C: f.ret, D: d}, 0, n.pos)
			f.dead = true
			return
		}
	case kConst:
		if w, ok := immediate(n.t); ok && fits32(w) {
			f.pend += int64(n.pre)
			f.end(Instr{Op: RetImm, C: f.ret, D: int32(w)}, f.retDepth(), n.pos)
			f.dead = true
			return
		}
	case kPrim:
		if n.id == prim.Add {
			if _, ok := n.list[1].smallInt(); !ok {
				f.pend++
				a := c.operand(n.list[0], top)
				t := above(a, top)
				b := c.operand(n.list[1], t)
				f.end(Instr{Op: RetAdd, A: a, B: b, C: f.ret, D: int32(above(b, t))}, f.retDepth(), n.pos)
				f.dead = true
				return
			}
		}
	}
	r := c.operand(n, top)
	f.end(Instr{Op: Ret, A: r, C: f.ret}, f.retDepth(), n.pos)
	f.dead = true
}

// let binds n.b and returns the first register free after it.
func (c *compiler) let(n *node, top uint8) uint8 {
	f, b := c.f, n.b
	f.pend += int64(n.pre)
	if n.body.kind == kFold && b.uses == 1 && !b.seen && n.body.list[2].kind == kVar && n.body.list[2].b == b {
		n.body.fresh = makesList(n.a)
	}
	b.info, b.half, b.self, b.twins, b.group, b.pair, b.acc = nil, false, false, false, nil, nil, 0
	if c.pairOf(n.a, b) {
		f.pend += 3
		return top
	}
	if r, ok := c.halfReg(n.a); ok {
		f.pend += n.a.halfSteps()
		b.owner, b.reg = f, r
		return top
	}
	switch a := n.a; {
	case a.kind == kLam:
		f.pend++
		info := c.declare(a)
		b.info = info
		if g := a.params[0]; len(a.params) > 1 && twinned(b) && twinned(g) {
			b.twins, info.twin = true, true
			info.Arity--
		}
		if info.Closed {
			c.function(a, info, b)
			return top
		}
		c.closureOf(a, info, b, top, top)
	case a.kind == kVar:
		if w := c.locate(f, a.b, 0); w.kind == inReg && !a.b.self {
			f.pend++
			b.owner, b.reg = f, uint8(w.n)
			return top
		}
		c.value(a, top, top)
	case a.kind == kPrim && a.id == prim.Pair && splits(b):
		f.pend++
		c.value(a.list[0], top, top)
		c.value(a.list[1], top+1, top+1)
		b.owner, b.reg, b.half = f, top, true
		return top + 2
	default:
		c.value(a, top, top)
	}
	b.owner, b.reg = f, top
	return top + 1
}
