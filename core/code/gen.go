package code

import (
	"math/bits"
	"slices"

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
			f.pend += 2
			return r
		}
	}
	c.value(n, top, top)
	return top
}

// halfOf returns the binder and half that fst or snd of an unbuilt pair reads.
func halfOf(n *node) (*binder, uint8, bool) {
	if n.kind == kPrim && (n.id == prim.Fst || n.id == prim.Snd) {
		if v := n.list[0]; v.kind == kVar && v.b.half {
			if n.id == prim.Fst {
				return v.b, 1, true
			}
			return v.b, 2, true
		}
	}
	return nil, 0, false
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

// valueOf is value for an operand (inner) or for a fold's body (body).
func (c *compiler) valueOf(n *node, dst, top uint8, m mode) {
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
		c.load(n.b, 0, dst, n.pos)
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
		top = c.let(n, top)
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
	case kEval:
		f.pend++
		c.value(n.a, top, top)
		d := c.visible(n)
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
		top = c.let(n, top)
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
			c.value(n.a, top, top)
			d := c.visible(n)
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
	b.info, b.half, b.self, b.twins = nil, false, false, false
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

// twinned says whether a variable is only ever applied to itself.
func twinned(b *binder) bool { return b.uses == 2*b.twin && !b.seen }

// splits says whether a variable is only ever an operand of fst and snd.
func splits(b *binder) bool { return b.uses == b.proj && b.uses > 0 && !b.seen }

// closureOf compiles a lambda and makes its closure in dst.
func (c *compiler) closureOf(n *node, info *fnInfo, b *binder, dst, top uint8) {
	if n.b != nil {
		c.f.op(Auth, top, 0, 0, 0, n.pos)
		n.b.owner, n.b.reg = c.f, top
		top++
		c.f.top = max(c.f.top, top)
	}
	c.captured(n, info, c.function(n, info, b), dst, top)
}

// captured makes the closure of a compiled function in dst.
func (c *compiler) captured(n *node, info *fnInfo, caps []capture, dst, top uint8) {
	f := c.f
	if len(caps) == 0 {
		f.emit(Instr{Op: LoadK, A: dst, D: c.closure(info), K: int64(top)}, n.pos)
		return
	}
	slots := make([]int16, len(caps))
	for i, k := range caps {
		switch w := c.locate(f, k.b, k.half); w.kind {
		case inReg:
			slots[i] = int16(w.n)
		default:
			slots[i] = int16(-1 - w.n)
		}
	}
	f.emit(Instr{Op: Closure, A: dst, B: uint8(len(caps)), C: uint8(len(caps) >> 8), D: info.id}, n.pos)
	for i := 0; i < len(slots); i += capsPer {
		var s [capsPer]int16
		copy(s[:], slots[i:])
		f.emit(Instr{
			Op: Caps, A: top,
			D: int32(uint16(s[0])) | int32(s[1])<<16,
			K: int64(uint16(s[2])) | int64(uint16(s[3]))<<16 | int64(uint16(s[4]))<<32 | int64(s[5])<<48,
		}, n.pos)
	}
}

// Capture reads the capture slots that follow a Closure instruction: a
// register, or −1−n for captured value n.
func Capture(in []Instr, i int) int {
	k := &in[i/capsPer]
	switch i % capsPer {
	case 0:
		return int(int16(k.D))
	case 1:
		return int(int16(k.D >> 16))
	case 2:
		return int(int16(k.K))
	case 3:
		return int(int16(k.K >> 16))
	case 4:
		return int(int16(k.K >> 32))
	}
	return int(int16(k.K >> 48))
}

// CapsLen is how many instructions hold n captures.
func CapsLen(n int) int { return (n + capsPer - 1) / capsPer }

// function compiles a lambda's code; b is the variable it is known by, if any.
func (c *compiler) function(n *node, info *fnInfo, b *binder) []capture {
	f := c.newFn(info, 0)
	info.busy = true
	params := n.params
	for _, p := range params {
		p.info, p.half, p.self, p.twins, p.owner = nil, false, false, false, f
	}
	if info.twin {
		g := params[0]
		g.self, g.info, g.twins = true, info, true
		params = params[1:]
	}
	for i, p := range params {
		p.reg = uint8(1 + i)
	}
	f.ret = uint8(len(params) + 1)
	if n.b != nil {
		c.locate(f, n.b, 0) // the first captured value
		f.op(Narrow, f.ret, 0, 0, 0, n.pos)
		f.start = 1
	}
	known := b != nil || info == c.root
	if known && n.b == nil && len(params) == 1 && splits(params[0]) && c.plain == 0 && n.body.size < 1000 {
		info.worker = 0
		p := params[0]
		f.op(Unpair, 0, 0, 0, 0, n.pos)
		c.plain++
		c.tail(n.body, f.ret+1)
		c.plain--
		f.code[0].D = int32(len(f.code)) * InstrSize
		info.worker = int32(len(f.code))
		f.start, f.split, f.ret, f.pend, f.dead = info.worker, true, 3, 0, false
		p.half, p.owner, p.reg = true, f, 1
	}
	c.tail(n.body, f.ret+1)
	c.finish(f)
	info.busy = false
	if b != nil && n.b == nil && !info.twin && len(n.params) > 1 && n.size < 300 {
		info.lam = n
	}
	return f.caps
}

// partial compiles the application of a known function to fewer arguments
// than it takes: a closure of its code for the others, into top. It returns
// false, with nothing done, where that code isn't to be made.
func (c *compiler) partial(info *fnInfo, args []*node, top uint8, pos int32) bool {
	k := len(args)
	if info.lam == nil || info.busy || c.plain > 0 && info.parts[k] == nil {
		return false
	}
	f := c.f
	for i, a := range args {
		t := top + 1 + uint8(i)
		c.value(a, t, t)
		// Each application gives the next lambda.
		f.pend++
	}
	for i, p := range info.lam.params[:k] {
		p.info, p.half, p.self, p.twins = nil, false, false, false
		p.owner, p.reg = f, top+1+uint8(i)
	}
	pt := info.parts[k]
	if pt == nil {
		rest := &node{kind: kLam, pos: info.lam.pos, params: info.lam.params[k:], body: info.lam.body, size: info.lam.size}
		pt = &part{info: c.declare(rest)}
		info.parts[k] = pt
		info.busy = true
		c.plain++
		pt.caps = slices.Clone(c.function(rest, pt.info, nil))
		c.plain--
		info.busy = false
	}
	c.captured(info.lam, pt.info, pt.caps, top, top+1+uint8(k))
	return true
}

// outlined compiles a part of a function as one of its own, where registers
// run out. It takes no step and, where the part is no tail, no depth.
func (c *compiler) outlined(n *node, top uint8, last bool) {
	info := &fnInfo{worker: -1, id: int32(len(c.infos))}
	c.infos = append(c.infos, info)
	outline := !last || c.f.outline
	f := c.newFn(info, 1)
	f.outline = outline
	c.tail(n, 2)
	c.finish(f)
	outer := c.f
	if len(f.caps) > 0 {
		c.captured(n, info, f.caps, top, top)
	}
	if last {
		outer.end(Instr{Op: TailK, A: top, C: outer.ret, D: info.id}, 0, n.pos)
		outer.dead = true
		return
	}
	outer.end(Instr{Op: CallK, A: top, D: info.id}, 0, n.pos)
}

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
		if v, ok := n.list[1].smallInt(); ok && (v != 0 || op < Div) {
			a := c.operand(n.list[0], top)
			f.pend++
			in := Instr{A: dst, B: a, D: int32(above(a, top)), K: v << 1}
			switch {
			case op == Add:
				in.Op = AddI
			case op == Sub && v != MinInt:
				in.Op, in.K, in.C = AddI, -v<<1, 1
			case op == Sub:
				c.binary(n, op, dst, top, a)
				return
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
		f.emit(Instr{Op: Prim, A: dst, B: uint8(len(n.list)), C: top, D: int32(n.id), K: int64(t)}, n.pos)
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
	t := above(a, top)
	b := c.operand(n.list[1], t)
	c.f.op(op, dst, a, b, int32(above(b, t)), n.pos)
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
		"eq": Eq, "lt": Lt, "lte": Lte, "gt": Gt, "gte": Gte, "not": Not,
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
