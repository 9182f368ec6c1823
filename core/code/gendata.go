package code

import (
	"slices"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// list compiles a list literal that isn't constant. Its steps are those of
// the cons cells it means, each before its item, and of the nil at the end.
func (c *compiler) list(n *node, dst, top uint8) {
	f := c.f
	if k := len(n.list); k <= maxItems {
		t := top
		for _, it := range n.list {
			f.pend++
			c.value(it, t, t)
			t++
		}
		f.pend++
		if n.try != Halt {
			f.settle(n.pos)
			c.tried = f.emit(Instr{Op: n.try, B: top, C: top + 1}, n.pos)
		}
		f.op(List, dst, uint8(k), top, int32(t), n.pos)
		return
	}
	f.emit(Instr{Op: LoadI, A: top, K: WordNil}, n.pos)
	for _, it := range n.list {
		f.pend++
		c.value(it, top+1, top+1)
		f.op(Cons, top, top+1, top, int32(top+2), n.pos)
	}
	f.pend++
	f.op(Rev, dst, top, 0, int32(top+1), n.pos)
}

// record compiles a record literal that isn't constant.
func (c *compiler) record(n *node, dst, top uint8) {
	f := c.f
	f.pend++
	fields := n.t.(*term.Record).Fields
	keys := make([]string, len(fields))
	for i := range fields {
		keys[i] = fields[i].Key
	}
	k := c.constant(Const{Keys: keys})
	if len(n.list) <= maxItems {
		t := top
		for _, v := range n.list {
			c.value(v, t, t)
			t++
		}
		f.emit(Instr{Op: Record, A: dst, B: uint8(len(keys)), C: top, D: k, K: int64(t)}, n.pos)
		return
	}
	f.emit(Instr{Op: LoadI, A: top, K: WordNil}, n.pos)
	for _, v := range n.list {
		c.value(v, top+1, top+1)
		f.op(Cons, top, top+1, top, int32(top+2), n.pos)
	}
	f.emit(Instr{Op: RecordL, A: dst, B: top, D: k, K: int64(top + 1)}, n.pos)
}

// fold compiles fold. With a literal function of one parameter it is a loop;
// where the function only takes the pair apart, the pair is never built.
func (c *compiler) fold(n *node, dst, top uint8) {
	f := c.f
	f.pend++
	fun, init, list := n.list[0], n.list[1], n.list[2]
	var end label
	if fun.kind != kLam || len(fun.params) != 1 {
		c.value(fun, top, top)
		c.value(init, top+1, top+1)
		c.value(list, top+2, top+2)
		f.jump(Instr{Op: FoldFn, A: top}, &end, n.pos)
		at, start := len(f.code), f.pend
		f.jump(Instr{Op: FoldCall, A: top}, &end, n.pos)
		f.end(Instr{Op: Call, A: top + 3, B: 1, C: 1, D: int32(top) + 5}, -1, n.pos)
		f.emit(Instr{Op: Loop1, A: top + 3, B: top + 1, D: int32(at-len(f.code)) * InstrSize, K: start - f.pend}, n.pos)
		f.dead = true
		f.bind(&end)
		c.move(dst, top+1, n.pos)
		return
	}
	f.pend++
	p := fun.params[0]
	p.info, p.self, p.twins, p.acc = nil, false, false, 0
	if init.kind == kPrim && init.id == prim.Pair && top < wide/2 && (&halves{p: p}).only(fun.body) {
		c.foldHalves(n, dst, top)
		return
	}
	c.value(init, top, top)
	c.value(list, top+1, top+1)
	p.owner, p.reg, p.half = f, top+1, false
	first, next := FoldPair, FoldPLoop
	if p.uses == 0 && !p.seen {
		first, next = FoldInit, FoldLoop
	}
	if splits(p) {
		first, next = FoldInit, FoldLoop
		p.half, p.reg = true, top
	}
	free := top + 3
	p.owns = p.half && top < wide && fun.body.size < 1000 && (&accumulator{p: p, id: prim.Put}).owned(fun.body)
	if p.owns {
		f.emit(Instr{Op: LoadI, A: top + ownFlag, K: WordFalse}, n.pos)
		free++
	}
	f.settle(n.pos)
	f.jump(Instr{Op: first, A: top}, &end, n.pos)
	start, at := f.pend, len(f.code)
	c.valueOf(fun.body, top, free, body)
	c.foldCons(next, top, at, start, n.fresh)
	f.emit(Instr{Op: next, A: top, D: int32(at-len(f.code)) * InstrSize, K: start - f.pend}, n.pos)
	f.bind(&end)
	c.move(dst, top, n.pos)
}

// halves is of a fold over p whose accumulator is a pair that is made and taken apart.
type halves struct {
	p     *binder
	whole int32
	names []*binder // of variables that are the accumulator, too
	uses  []int32   // as the value of the body
}

// only reports whether the accumulator is used as the value of the body, or taken apart.
func (h *halves) only(body *node) bool {
	if !splits(h.p) || body.size >= 60 || !h.made(body) || h.p.firsts-h.p.deep != h.whole {
		return false
	}
	for i, b := range h.names {
		if b.uses-h.uses[i] != b.proj || b.seen {
			return false
		}
	}
	return true
}

// made reports whether each path through n gives a pair that is written there, or the
// accumulator.
func (h *halves) made(n *node) bool {
	switch {
	case n.kind == kPrim && n.id == prim.Pair:
		return true
	case n.kind == kIf:
		return h.made(n.b2) && h.made(n.body)
	case n.kind == kLet:
		if n.a.first() == h.p {
			h.whole++
			h.names, h.uses = append(h.names, n.b), append(h.uses, 0)
		}
		return h.made(n.body)
	case n.first() == h.p:
		h.whole++
		return true
	case n.kind == kVar && slices.Contains(h.names, n.b):
		h.uses[slices.Index(h.names, n.b)]++
		return true
	}
	return false
}

// foldHalves compiles such a fold: the halves are in top and top+1, and the pair is made
// at the end.
func (c *compiler) foldHalves(n *node, dst, top uint8) {
	f := c.f
	fun, init, base := n.list[0], n.list[1], top+2
	f.pend++
	c.value(init.list[0], top, top)
	c.value(init.list[1], top+1, top+1)
	f.emit(Instr{Op: LoadI, A: base, K: WordNil}, n.pos)
	c.value(n.list[2], base+1, base+1)
	p := fun.params[0]
	p.owner, p.reg, p.half, p.acc, p.owns = f, base, true, top, false
	f.settle(n.pos)
	var end label
	f.jump(Instr{Op: FoldInit, A: base}, &end, n.pos)
	start, at := f.pend, len(f.code)
	c.halvesOf(fun.body, p, base+3)
	f.emit(Instr{Op: FoldLoop, A: base, D: int32(at-len(f.code)) * InstrSize, K: start - f.pend}, n.pos)
	f.bind(&end)
	f.op(Pair, dst, top, top+1, int32(base), n.pos)
}

// halvesOf compiles the body of such a fold, or a part that is its value.
func (c *compiler) halvesOf(n *node, p *binder, top uint8) {
	f := c.f
	f.top = max(f.top, top+1)
	switch {
	case n.kind == kIf:
		f.pend++
		var no, end label
		c.cond(n.a, false, &no, top, AskIf, n.pos)
		c.halvesOf(n.b2, p, top)
		f.jump(Instr{Op: Jmp}, &end, n.pos)
		f.dead = true
		f.bind(&no)
		c.halvesOf(n.body, p, top)
		f.bind(&end)
	case n.kind == kLet && n.a.first() == p:
		b := n.b
		b.info, b.half, b.self, b.twins, b.group, b.pair, b.acc = nil, true, false, false, nil, nil, 0
		b.owner, b.reg = f, p.acc
		f.pend += int64(n.pre) + 2
		c.halvesOf(n.body, p, top)
	case n.kind == kLet:
		c.halvesOf(n.body, p, c.let(n, top))
	case n.kind == kVar:
		f.pend++
	case n.id == prim.Pair:
		f.pend++
		x, y := n.list[0], n.list[1]
		if !c.readsOne(y, p.acc) {
			c.value(x, p.acc, top)
			c.value(y, p.acc+1, top)
			return
		}
		c.value(x, top, top)
		c.value(y, p.acc+1, top+1)
		f.op(Move, p.acc, top, 0, 0, n.pos)
	default:
		f.pend += 2
	}
}

// tries reports whether a let is that of the larger or smaller of two.
func (n *node) tries() bool { return n.a.kind == kList && n.a.try != Halt }

// extreme compiles the larger or smaller of two: before the fold over the list of them
// stands what finds it among small integers. It takes the steps of the fold's one loop.
func (c *compiler) extreme(n *node, dst, top uint8) {
	f := c.f
	inner := c.let(n, top)
	at := c.tried
	c.value(n.body, dst, inner)
	in := &f.code[at]
	in.A, in.D = dst, int32(len(f.code)-at)*InstrSize
	for i := len(f.code) - 1; i > at; i-- {
		if f.code[i].Op == FoldLoop {
			in.K = f.code[i].K
			break
		}
	}
	f.bound = len(f.code)
}

// foldCons puts before the cons that ends the body of a fold, or the addition that is one, what does it together
// with the loop: f.code[at] is where the body begins, with start steps pending. A list that is
// known here alone, and reversed, is reversed in place.
func (c *compiler) foldCons(next Op, top uint8, at int, start int64, fresh bool) {
	f := c.f
	last := len(f.code) - 1
	if next != FoldLoop || last < at || f.bound > last {
		return
	}
	in, meta := f.code[last], f.meta[last]
	with := Instr{Op: FoldCons, A: top, B: in.B, D: int32(at-last) * InstrSize, K: start - f.pend}
	switch {
	case last == at && in.Op == Add && in.A == top && in.B == top && in.C == top+1:
		with.Op, with.B = FoldAdd, top+1
	case in.Op != Cons || in.A != top || in.C != top:
		return
	case last == at && in.B == top+1:
		with.Op = FoldRev
		if fresh {
			with.C = 1
		}
	}
	f.code[last] = with
	f.code, f.meta = append(f.code, in), append(f.meta, meta)
}

// visible lists the variables an eval can see from here.
func (c *compiler) visible(n *node) int32 {
	f := c.f
	sc := Scope{Depth: c.opt.Depth}
	sc.With, _ = term.With(n.t.(*term.Prim).Args)
	var seen map[string]bool
	for l := n.scope; l != nil; l = l.next {
		name := l.b.name
		if l.n > 24 && seen == nil {
			seen = make(map[string]bool)
			for _, v := range sc.Vars {
				seen[v.Name] = true
			}
		}
		if seen != nil {
			if seen[name] {
				continue
			}
			seen[name] = true
		} else if slices.ContainsFunc(sc.Vars, func(v ScopeVar) bool { return v.Name == name }) {
			continue
		}
		v := ScopeVar{Name: name, Const: -1}
		switch w := c.locate(f, l.b, 0); w.kind {
		case inReg:
			v.Slot = w.n
		case inCap:
			v.Slot = -1 - w.n
		case inConst:
			v.Const = w.n
		case inGroup:
			v.Slot = int32(l.b.reg)
		}
		sc.Vars = append(sc.Vars, v)
	}
	c.take(len(sc.Vars))
	c.extra.Scopes = append(c.extra.Scopes, sc)
	return c.opt.ScopeBase + int32(len(c.extra.Scopes)-1)
}

// ownFlag is how far from a fold's accumulator the register is that is true once the
// record there was made by the fold's own put, which nothing else can see.
const ownFlag = 3

// An accumulator is that of a fold over p, which row id changes, and the names of variables
// that are bound to it too.
type accumulator struct {
	p     *binder
	id    term.ID
	names []*binder
}

// owned reports whether each path through the body of the fold gives the accumulator as
// it was or as one put changes it, and nothing else has it but get and has, which read it;
// it marks those puts.
func (acc *accumulator) owned(n *node) bool {
	switch {
	case n.kind == kLet && acc.is(n.a) && !n.b.seen:
		acc.names = append(acc.names, n.b)
		return acc.owned(n.body)
	case n.kind == kLet:
		return !acc.seen(n.a, false) && acc.owned(n.body)
	case n.kind == kIf:
		return !acc.seen(n.a, false) && acc.owned(n.b2) && acc.owned(n.body)
	case acc.is(n):
		return true
	case n.kind == kPrim && n.id == prim.Cons && acc.id == prim.Cons:
		return acc.is(n.list[1]) && !acc.seen(n.list[0], false)
	case n.kind == kPrim && n.id == prim.Put && acc.id == prim.Put && acc.is(n.list[0]) && !acc.seen(n.list[1], false) && !acc.seen(n.list[2], false):
		n.own = acc.p
		return true
	}
	return false
}

// makesList reports whether n is a fold that gives a list that it made, cell by cell, and
// that nothing else has a part of.
func makesList(n *node) bool {
	if n.kind != kFold || n.list[0].kind != kLam || len(n.list[0].params) != 1 || !isNil(n.list[1]) {
		return false
	}
	p, body := n.list[0].params[0], n.list[0].body
	if !splits(p) || body.size >= 1000 {
		return false
	}
	p.half = true // as it is once the fold is compiled
	return (&accumulator{p: p, id: prim.Cons}).owned(body)
}

// isNil reports whether n is the empty list.
func isNil(n *node) bool {
	switch t := n.t.(type) {
	case *term.List:
		return n.kind == kConst && len(t.Items) == 0
	case *term.Prim:
		return n.kind == kConst && t.ID == prim.Nil
	}
	return false
}

// is reports whether n is the accumulator.
func (acc *accumulator) is(n *node) bool {
	b, half, ok := halfOf(n)
	return ok && b == acc.p && half == 1 || n.kind == kVar && slices.Contains(acc.names, n.b)
}

// seen reports whether n may give or keep the accumulator; a function that reads it later
// may, too.
func (acc *accumulator) seen(n *node, later bool) bool {
	if n == nil {
		return false
	}
	if acc.is(n) {
		return true
	}
	list := n.list
	if n.kind == kPrim && (n.id == prim.GetField || n.id == prim.Has) && acc.is(list[0]) && !later {
		list = list[1:]
	}
	later = later || n.kind == kLam
	for _, m := range list {
		if acc.seen(m, later) {
			return true
		}
	}
	return acc.seen(n.a, later) || acc.seen(n.b2, later) || acc.seen(n.body, later)
}
