package code

import (
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// maxArgs is how many arguments one call instruction takes.
const maxArgs = maxParams

// A mode says what an application is for.
type mode uint8

const (
	inner mode = iota // its result is used
	tail              // its result is the function's
	body              // its result is that of a fold's body, which takes a depth already
)

// endCall emits a call that comes back.
func (f *fn) endCall(in Instr, m mode, pos int32) {
	if m == body {
		f.pend -= Depth1
	}
	f.end(in, -1, pos)
	if m == body {
		// The callee's return gives back a depth that its call didn't take.
		f.pend = Depth1
	}
}

// settle takes a depth that such a return gave back, before something looks
// at the depth without charging the path.
func (f *fn) settle(pos int32) {
	if f.pend > Depth1/2 {
		f.emit(Instr{Op: Jmp, D: InstrSize, K: -Depth1}, pos)
		f.pend -= Depth1
	}
}

// call compiles an application chain: its result is in top, or is returned.
func (c *compiler) call(n *node, top uint8, m mode) {
	f := c.f
	f.pend += int64(n.pre)
	head, args, apps := n.a, n.list, n.apps
	var info *fnInfo
	switch head.kind {
	case kSelf:
		info = c.root
	case kVar:
		info = head.b.info
	}
	b, half := n.paired()
	paired := b != nil && b.pair != nil
	if paired {
		// The row, its operand, the pair as an argument, and the lambda that is given.
		info = b.pair[half]
		f.pend += 4
		args, apps = args[1:], apps[1:]
	}
	twins := head.kind == kVar && head.b.twins
	if twins {
		// The variable, its twin, and the lambda that this application gives.
		f.pend += 3
		args, apps = args[1:], apps[1:]
		if len(args) == 0 {
			c.load(head.b, 0, top, head.pos)
			if c.unit.Narrows {
				f.op(Restrict, top, 0, 0, int32(top)+1, n.pos)
			}
			if m == tail {
				f.end(Instr{Op: Ret, A: top, C: f.ret}, f.retDepth(), n.pos)
				f.dead = true
			}
			return
		}
	}
	if info != nil && len(args) < info.Arity && !twins && len(args) < maxParams && head.kind == kVar && top < wide {
		f.pend++
		if c.partial(info, args, top) {
			if m == tail {
				f.end(Instr{Op: Ret, A: top, C: f.ret}, f.retDepth(), n.pos)
				f.dead = true
			}
			return
		}
		f.pend--
	}
	if info == nil || len(args) < info.Arity {
		if twins {
			c.load(head.b, 0, top, head.pos)
		} else {
			c.value(head, top, top)
		}
		c.apply(args, apps, top, m)
		return
	}
	if !twins && !paired {
		f.pend++
	}
	rest := args[info.Arity:]
	args = args[:info.Arity]
	if len(rest) == 0 {
		c.direct(n, info, head.b, args, top, m)
		return
	}
	c.direct(n, info, head.b, args, top, inner)
	c.apply(rest, apps[info.Arity:], top, m)
}

// direct calls a function that is known, with all its arguments.
func (c *compiler) direct(n *node, info *fnInfo, b *binder, args []*node, top uint8, m mode) {
	f := c.f
	target := info.id
	pos := n.apps[len(n.apps)-1]
	if info.worker >= 0 && args[0].kind == kPrim && args[0].id == prim.Pair {
		f.pend++
		args = args[0].list
		target = -1 - info.id
	}
	if m == tail && info == f.info && f.split == (target < 0) ||
		m == tail && info.Closed && !info.hidden && target >= 0 && !f.split && len(args)+1 == int(f.ret) {
		c.loop(n, info, args, top)
		return
	}
	if !info.Closed && b.group != nil {
		c.load(b.group.self, 0, top, n.pos)
	} else if !info.Closed {
		c.load(b, 0, top, n.pos)
	} else if info.hidden {
		f.emit(Instr{Op: LoadK, A: top, D: c.closure(info), K: int64(top)}, n.pos)
	}
	if len(args) == 1 && m != tail && top <= wide {
		if a := args[0]; a.kind == kPrim && a.id == prim.Sub {
			if v, ok := a.list[1].smallInt(); ok && v >= 0 && v < 256 {
				if r, ok := c.plainReg(a.list[0]); ok {
					f.pend += 2 + a.list[0].halfSteps()
					f.endCall(Instr{Op: CallKSubI, A: top, B: r, C: uint8(v), D: target}, m, a.pos)
					return
				}
			}
		}
	}
	if len(args) == 1 && m != tail {
		f.top = max(f.top, top+1)
		if r := c.operand(args[0], top+1); r != top+1 {
			f.endCall(Instr{Op: CallKReg, A: top, B: 1, C: r, D: target}, m, pos)
			return
		}
		f.endCall(Instr{Op: CallK, A: top, B: 1, D: target}, m, pos)
		return
	}
	for i, a := range args {
		t := top + 1 + uint8(i)
		c.value(a, t, t)
		if target >= 0 && i < len(args)-1 {
			f.pend++
		}
	}
	if m == tail {
		f.end(Instr{Op: TailK, A: top, B: uint8(len(args)), C: f.ret, D: target}, 0, pos)
		f.dead = true
		return
	}
	f.endCall(Instr{Op: CallK, A: top, B: uint8(len(args)), D: target}, m, pos)
}

// plainReg returns the register of a variable, or of the half of a pair, that
// is in one.
func (c *compiler) plainReg(n *node) (uint8, bool) {
	if n.kind == kVar {
		if w := c.locate(c.f, n.b, 0); w.kind == inReg {
			return uint8(w.n), true
		}
		return 0, false
	}
	return c.halfReg(n)
}

// loop calls the function itself, or one like it that needs no closure, in tail
// position: new values for the parameters, and a jump.
func (c *compiler) loop(n *node, info *fnInfo, args []*node, top uint8) {
	f := c.f
	type move struct{ from, to uint8 }
	var moves [maxArgs]move
	k := 0
	free := top
	for i, a := range args {
		to := uint8(1 + i)
		if r, ok := c.plainReg(a); ok && r == to {
			f.pend += a.halfSteps()
		} else if c.reads(args[i+1:], to) {
			c.value(a, free, free)
			moves[k] = move{free, to}
			k++
			free++
		} else {
			c.value(a, to, free)
		}
		if !f.split && i < len(args)-1 {
			f.pend++
		}
	}
	pos := n.apps[len(n.apps)-1]
	for k > 2 || k > 0 && info != f.info {
		k--
		f.op(Move, moves[k].to, moves[k].from, 0, 0, pos)
	}
	in := Instr{Op: Loop0, D: (f.start - int32(len(f.code))) * InstrSize}
	if info != f.info {
		in = Instr{Op: TailIn, D: info.id}
	}
	switch k {
	case 1:
		in.Op, in.A, in.B = Loop1, moves[0].from, moves[0].to
	case 2:
		in.Op, in.A, in.B, in.C = Loop2, moves[0].from, moves[0].to, moves[1].to
	}
	f.end(in, 0, pos)
	f.dead = true
}

// apply calls what is in top with the arguments, one after the other as the
// language says: a function must be there before its next argument is
// evaluated, and where it takes fewer it is called in between (see [Check]).
func (c *compiler) apply(args []*node, apps []int32, top uint8, m mode) {
	f := c.f
	for len(args) > 0 {
		k := min(len(args), maxArgs)
		last := k == len(args)
		for i, a := range args[:k] {
			t := top + 1 + uint8(i)
			c.value(a, t, t)
			if i < k-1 {
				f.settle(apps[i])
				f.op(Check, top, uint8(i+1), uint8(k), int32(t+1), apps[i])
				f.emit(Instr{Op: Pend, A: top, B: uint8(i + 1), K: f.pend}, apps[i])
				f.pend++
			}
		}
		pos := apps[k-1]
		if last && m == tail {
			f.end(Instr{Op: TailCall, A: top, B: uint8(k), C: f.ret, D: int32(top) + int32(k) + 1}, 0, pos)
			f.dead = true
			return
		}
		how := inner
		if last {
			how = m
		}
		f.endCall(Instr{Op: Call, A: top, B: uint8(k), D: int32(top) + int32(k) + 1}, how, pos)
		args, apps = args[k:], apps[k:]
	}
}

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
