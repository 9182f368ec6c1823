package code

import (
	"math"
	"slices"

	"github.com/mcp-pif/mcp-pif/core/prim"
)

// twinned reports whether a variable is only ever applied to itself.
func twinned(b *binder) bool { return b.uses == 2*b.twin && !b.seen }

// pairOf makes the functions of a pair known that is only taken apart to be given one of
// its halves, with all arguments, as functions are that see one another without letrec.
// It returns false where n is no such pair.
func (c *compiler) pairOf(n *node, b *binder) bool {
	if n.kind != kPrim || n.id != prim.Pair || b.pairs == 0 {
		return false
	}
	most := 0
	fewest := b.fewest
	binders := []*binder{b}
	for _, l := range n.list {
		if l.kind != kLam || !l.closed || len(l.params) < 2 {
			return false
		}
		g := l.params[0]
		binders = append(binders, g)
		most = max(most, len(l.params)-1)
		if g.pairs > 0 {
			fewest = min(fewest, g.fewest)
		}
	}
	for _, g := range binders {
		if g.uses != 2*g.pairs || g.seen {
			return false
		}
	}
	if int(fewest) < most {
		return false
	}
	b.pair = &[2]*fnInfo{}
	for i, l := range n.list {
		info := c.declare(l)
		info.Arity--
		info.pair = b.pair
		b.pair[i] = info
	}
	for i, l := range n.list {
		c.function(l, b.pair[i], nil)
	}
	return true
}

// splits reports whether a variable is only ever an operand of fst and snd.
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
	if len(caps) > math.MaxUint16 {
		panic(entangled{})
	}
	slots := make([]int16, len(caps))
	for i, k := range caps {
		switch w := c.locate(f, k.b, k.half); w.kind {
		case inReg:
			slots[i] = int16(w.n)
		default:
			if w.n > math.MaxInt16 {
				panic(entangled{})
			}
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

// CapsLen returns how many instructions hold n captures.
func CapsLen(n int) int { return (n + capsPer - 1) / capsPer }

// function compiles a lambda's code; b is the variable it is known by, if any.
func (c *compiler) function(n *node, info *fnInfo, b *binder) []capture {
	return c.functionOf(n, info, b, nil)
}

// functionOf does what function does for one whose own closure is what the variable
// self is inside; where that is a group's, the functions of the group capture the
// same.
func (c *compiler) functionOf(n *node, info *fnInfo, b, self *binder) []capture {
	f := c.newFn(info, 0)
	if self != nil {
		self.owner, self.self = f, true
		if b.group != nil {
			f.caps = b.group.caps
		}
	}
	info.busy = true
	params := n.params
	for _, p := range params {
		p.info, p.half, p.self, p.twins, p.owner, p.pair, p.reg, p.acc = nil, false, false, false, f, nil, 0, 0
	}
	if info.pair != nil {
		params[0].pair = info.pair
		params = params[1:]
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
		if b != nil && b.group != nil {
			c.locate(f, b.group.made, 0) // the second
		}
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

// A group is functions that see one another, and more than their own variables. One
// closure has what all of them capture: it is what a known call of any gives along,
// and what the closure of each is made of where its value is needed.
type group struct {
	self *binder // the closure
	made *binder // the authority of the group, which a closure in use may have less of
	caps []capture
}

// letrec binds the functions of n and returns the first register free after them.
func (c *compiler) letrec(n *node, top uint8) uint8 {
	f := c.f
	f.pend += 3 * int64(len(n.list))
	f.top = max(f.top, top)
	for i, b := range n.params {
		b.info, b.half, b.self, b.twins, b.group = c.declare(n.list[i]), false, false, false, nil
	}
	if n.closed {
		for i, b := range n.params {
			c.function(n.list[i], b.info, b)
		}
		return top
	}
	first := n.params[0]
	if len(n.params) == 1 && n.b == nil {
		caps := c.functionOf(n.list[0], first.info, first, first)
		first.owner, first.reg, first.self = f, top, false
		c.captured(n.list[0], first.info, caps, top, top)
		return top + 1
	}
	g := &group{self: c.newBinder(""), made: c.newBinder("")}
	if n.b != nil {
		f.op(Auth, top, 0, 0, 0, n.pos)
		for _, b := range []*binder{n.b, g.made} {
			b.owner, b.reg = f, top
		}
		top++
	}
	for _, b := range n.params {
		b.group = g
	}
	for i, b := range n.params {
		g.caps = c.functionOf(n.list[i], b.info, b, g.self)
	}
	g.self.owner, g.self.reg, g.self.self = f, top, false
	f.top = max(f.top, top)
	c.captured(n.list[0], first.info, g.caps, top, top)
	kin := make([]int32, len(n.params))
	for i, b := range n.params {
		kin[i] = b.info.Entry
	}
	c.extra.Kin = append(c.extra.Kin, kin)
	return top + 1
}

// member makes the closure of a function of a group in dst; registers from top on
// are free.
func (c *compiler) member(b *binder, dst, top uint8, pos int32) {
	c.load(b.group.self, 0, dst, pos)
	in := Instr{Op: Alike, A: dst, B: above(dst, top), D: b.info.id}
	if c.unit.Narrows {
		in.C = 1
	}
	c.f.top = max(c.f.top, in.B)
	c.f.emit(in, pos)
}

// members makes the closures of those functions that an eval can see in registers,
// and returns the first that is free after them.
func (c *compiler) members(n *node, top uint8) uint8 {
	var seen map[string]bool
	for l := n.scope; l != nil; l = l.next {
		b := l.b
		if b.group == nil || seen[b.name] {
			continue
		}
		if seen == nil {
			seen = map[string]bool{}
		}
		if seen[b.name] = true; top > 240 {
			panic(entangled{})
		}
		c.member(b, top, top, n.pos)
		b.reg = top
		top++
	}
	return top
}

// partial compiles the application of a known function to fewer arguments
// than it takes: a closure of its code for the others, into top. It returns
// false, with nothing done, where that code isn't to be made.
func (c *compiler) partial(info *fnInfo, args []*node, top uint8) bool {
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
		p.info, p.half, p.self, p.twins, p.acc = nil, false, false, false, 0
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
	info := c.newInfo()
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
