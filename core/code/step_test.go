package code_test

import (
	"slices"

	"github.com/mcp-pif/mcp-pif/core/code"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// step follows one instruction: what it reads, writes, keeps, and where it goes.
func (v *verifier) step(i int, s *state) {
	in := &v.u.Code[i]
	a, b, c, d := int(in.A), int(in.B), int(in.C), int(in.D)
	switch in.Op {
	case code.Move:
		v.reads(i, s, b)
		v.writes(i, s, a)
	case code.Move2:
		v.reads(i, s, b)
		v.writes(i, s, a)
		v.reads(i, s, d)
		v.writes(i, s, c)
	case code.LoadI, code.NoSelf:
		v.writes(i, s, a)
	case code.LoadK:
		v.constant(i, literal)
		if !v.function(in) {
			v.keeps(i, s, int(in.K)) // a function's height is the most there has been
		}
		v.writes(i, s, a)
	case code.LoadCap:
		v.captured(i, s, d)
		v.writes(i, s, a)
	case code.Add, code.Sub, code.Mul, code.Div, code.Mod, code.Eq, code.Lt, code.Lte, code.Gt, code.Gte,
		code.Cons, code.Pair, code.Concat:
		v.reads(i, s, b, c)
		v.keeps(i, s, d)
		v.writes(i, s, a)
	case code.AddI, code.MulI, code.DivI, code.ModI, code.AndI, code.ShrI,
		code.Not, code.Head, code.Tail, code.Fst, code.Snd, code.IsEmpty, code.Length, code.Cont, code.CodeOfV:
		v.reads(i, s, b)
		v.keeps(i, s, d)
		v.writes(i, s, a)
	case code.Rev:
		v.reads(i, s, b)
		v.keeps(i, s, d)
		if b >= d {
			v.bad(i, "the list in register %d is not kept", b)
		}
		v.writes(i, s, a)
	case code.Sort:
		v.reads(i, s, b, c)
		v.keeps(i, s, int(v.u.Meta[i].Height))
		after := *s
		v.writes(i, &after, a)
		v.jumps(i, &after, in.D, in.K)
	case code.Prim:
		v.readsFrom(i, s, c, b)
		v.keeps(i, s, int(in.K))
		v.writes(i, s, a)
	case code.Get, code.Compare, code.At, code.Nth, code.ToText, code.Push:
		v.unpacks(i, s, b)
		v.writes(i, s, a)
	case code.GetK:
		v.reads(i, s, b)
		v.constant(i, func(k *code.Const) bool { _, ok := k.Term.(*term.Str); return ok })
		v.copies(i, s, 2)
		v.writes(i, s, a)
	case code.Round:
		v.reads(i, s, b)
		v.constant(i, func(k *code.Const) bool { _, ok := k.Term.(*term.Str); return ok })
		v.copies(i, s, 3)
		v.writes(i, s, a)
	case code.ConcatT:
		v.reads(i, s, b, c)
		v.keeps(i, s, d)
		after := *s
		v.writes(i, &after, a)
		v.reach(i, i+3, &after)
	case code.PutOwn:
		v.unpacks(i, s, 3)
		v.writes(i, s, a, b)
	case code.List:
		v.readsFrom(i, s, c, b)
		v.keeps(i, s, d)
		v.writes(i, s, a)
	case code.Record, code.RecordL:
		if in.Op == code.Record {
			v.readsFrom(i, s, c, b)
			v.constant(i, func(k *code.Const) bool { return len(k.Keys) == b })
		} else {
			v.reads(i, s, b)
			v.constant(i, func(k *code.Const) bool { return k.Keys != nil })
		}
		v.keeps(i, s, int(in.K))
		v.writes(i, s, a)
	case code.CodeOf:
		v.constant(i, named)
		v.keeps(i, s, int(in.K))
		v.writes(i, s, a)
	case code.Effect:
		v.constant(i, named)
		v.reads(i, s, a)
		v.keeps(i, s, a)
		after := *s
		after.depth = v.charges(i, s)
		v.reach(i, i+1, &after)
		return
	case code.Auth:
		v.writes(i, s, a)
	case code.Narrow:
		if i != s.fn.entry || a != s.ret {
			v.bad(i, "is not where a function begins that returns by register %d", s.ret)
		}
		v.captured(i, s, 0)
	case code.Restrict:
		v.reads(i, s, a)
		v.keeps(i, s, d)
	case code.CallTool:
		v.reads(i, s, a, a+1)
		v.keeps(i, s, a+2)
		v.comesBack(i, s, a, 1)
		return
	case code.Par:
		v.keeps(i, s, a)
		if d < 1 || i+1+d >= len(v.u.Code) {
			v.bad(i, "has %d branches", d)
			return
		}
		branch := *s
		branch.depth = v.charges(i, s)
		for r := a; r < len(branch.defined); r++ {
			branch.defined[r] = false
		}
		for k := range d + 1 {
			at := i + 1 + k
			if v.u.Code[at].Op != code.Branch {
				v.bad(i, "is followed by %d, not by the places of its branches", v.u.Code[at].Op)
				return
			}
			to := at + int(v.u.Code[at].D)/code.InstrSize
			if k < d {
				v.reach(i, to, &branch)
				continue
			}
			end := branch
			v.writes(i, &end, a)
			end.depth = branch.depth + 1
			v.reach(i, to, &end)
		}
		return
	case code.EndPar:
		v.reads(i, s, a)
		v.charges(i, s)
		return
	case code.Unbound:
		v.constant(i, named)
		return

	case code.Jmp:
		v.jumps(i, s, in.D, in.K)
		return
	case code.JF, code.JT, code.JEqI, code.JNeI, code.JLtI, code.JGeI, code.JGtI, code.JLeI, code.JEmpty, code.JCons:
		v.reads(i, s, a)
		v.jumps(i, s, in.D, in.K)
	case code.JEq, code.JNe, code.JLt, code.JGe:
		v.reads(i, s, a, b)
		v.keeps(i, s, int(v.u.Meta[i].Height))
		v.jumps(i, s, in.D, in.K)
	case code.TryLt, code.TryGe:
		v.reads(i, s, a, b)
		v.jumps(i, s, in.D, in.K)
		v.next(i, code.Compare)
		v.goes(i, i+3, s, 0)
	case code.TryMax, code.TryMin:
		v.reads(i, s, b, c)
		v.next(i, code.List)
		after, to := *s, i+d/code.InstrSize
		v.writes(i, &after, a)
		// It takes what the loop does that the fold goes through once.
		if !slices.ContainsFunc(v.u.Code[i:max(i, min(to, len(v.u.Code)))], func(loop code.Instr) bool { return loop.Op == code.FoldLoop && loop.K == in.K }) {
			v.bad(i, "takes other steps than the fold before %d", to)
		}
		v.reach(i, to, &after)
	case code.Loop0:
		v.loops(i, s)
		return
	case code.Loop1:
		v.reads(i, s, a)
		v.writes(i, s, b)
		v.loops(i, s)
		return
	case code.Loop2:
		v.reads(i, s, a, a+1)
		v.writes(i, s, b, c)
		v.loops(i, s)
		return

	case code.CallK, code.CallKReg, code.CallKSubI:
		args := b
		switch in.Op {
		case code.CallKSubI:
			v.reads(i, s, b)
			args = 1
		case code.CallKReg:
			v.reads(i, s, c)
		default:
			v.readsFrom(i, s, a+1, b)
		}
		v.fits(i, a+args+1)
		// A call without arguments is of an outlined part, which takes no depth.
		gives := min(args, 1)
		v.enter(i, in.D, function{args: args, gives: gives}, s.defined[a])
		v.comesBack(i, s, a, gives)
		return
	case code.TailK:
		v.readsFrom(i, s, a+1, b)
		gives := 1
		if b == 0 {
			gives = s.fn.gives
		}
		v.enter(i, in.D, function{args: b, gives: gives}, s.defined[a])
		v.returns(i, s, in.C, 0)
		return
	case code.TailIn:
		v.readsFrom(i, s, 1, s.ret-1)
		v.enter(i, in.D, function{args: s.ret - 1, gives: 1}, false)
		v.returns(i, s, uint8(s.ret), 0)
		return
	case code.Call, code.TailCall:
		v.reads(i, s, a)
		v.readsFrom(i, s, a+1, b)
		v.keeps(i, s, d)
		v.fits(i, a+b+1)
		if d < a+b+1 {
			v.bad(i, "the arguments up to register %d are not kept", a+b)
		}
		if in.Op == code.TailCall {
			v.returns(i, s, in.C, 0)
		} else {
			v.comesBack(i, s, a, 1)
		}
		return
	case code.Check:
		v.readsFrom(i, s, a, b+1)
		v.keeps(i, s, d)
		if i+1 >= len(v.u.Code) || v.u.Code[i+1].Op != code.Pend || v.u.Code[i+1].A != in.A || v.u.Code[i+1].B != in.B {
			v.bad(i, "is not followed by its Pend")
			return
		}
		v.goes(i, i+2, s, 0)
	case code.Pend:
		v.keeps(i, s, a+b+1)
		if depth, steps := split(in.K); depth != 0 || steps != int64(v.u.Meta[i].Pend) {
			v.bad(i, "gives back %d steps of %d, and a depth of %d", steps, v.u.Meta[i].Pend, depth)
		}
	case code.Ret:
		v.reads(i, s, a)
		v.returns(i, s, in.C, s.fn.gives)
		return
	case code.RetAdd:
		v.reads(i, s, a, b)
		v.keeps(i, s, d)
		v.returns(i, s, in.C, s.fn.gives)
		return
	case code.RetImm:
		v.returns(i, s, in.C, s.fn.gives)
		return

	case code.FoldInit, code.FoldPair:
		v.reads(i, s, a, a+1)
		v.keeps(i, s, a+2)
		v.jumps(i, s, in.D, in.K)
		v.writes(i, s, a+1, a+2)
		s.depth--
	case code.FoldLoop, code.FoldPLoop:
		v.reads(i, s, a, a+2)
		v.keeps(i, s, a+3)
		v.jumps(i, s, in.D, in.K)
		s.depth++
	case code.FoldCons, code.FoldRev, code.FoldAdd:
		v.reads(i, s, a, a+2)
		v.reads(i, s, b)
		v.jumps(i, s, in.D, in.K)
		if in.Op != code.FoldAdd {
			v.next(i, code.Cons)
		} else if add := &v.u.Code[i+1]; add.Op != code.Add || add.A != in.A || add.B != in.A || int(add.C) != a+1 || b != a+1 {
			v.bad(i, "is not followed by the addition of the item")
		}
		if loop := &v.u.Code[i+2]; loop.Op != code.FoldLoop || loop.A != in.A || loop.D != in.D-2*code.InstrSize || loop.K != in.K {
			v.bad(i, "is not followed by the loop it does")
		}
	case code.FoldFn:
		v.reads(i, s, a, a+1, a+2)
		v.jumps(i, s, in.D, in.K)
	case code.FoldCall:
		v.reads(i, s, a, a+1, a+2)
		v.keeps(i, s, a+3)
		v.jumps(i, s, in.D, in.K)
		v.writes(i, s, a+2, a+3, a+4)
	case code.Alike:
		v.reads(i, s, a)
		v.keeps(i, s, b)
		v.writes(i, s, a)
		v.alike(i)
	case code.Closure:
		v.closure(i, s)
		return
	case code.Unpair:
		if i != s.fn.entry || s.fn.args != 1 {
			v.bad(i, "is not at the start of a function of one parameter")
		}
		halves := *s
		halves.ret = 3
		halves.defined[2], halves.defined[3] = true, true
		v.jumps(i, &halves, in.D, 0)
	case code.Eval:
		v.reads(i, s, a)
		v.scope(i, s)
		v.keeps(i, s, a+1)
		v.comesBack(i, s, a, 1)
		return
	case code.Try:
		v.keeps(i, s, a)
		caught := *s
		v.writes(i, &caught, a)
		v.reach(i, i+d/code.InstrSize, &caught)
		s.depth = v.charges(i, s)
		v.writes(i, s, a, a+1, a+2, a+3)
		v.reach(i, i+1, s)
		return
	case code.EndTry:
		v.reads(i, s, a, b)
		v.keeps(i, s, d)
		v.writes(i, s, a)
		s.depth = v.charges(i, s)
		v.reach(i, i+1, s)
		return
	case code.TailEval:
		v.reads(i, s, a)
		v.scope(i, s)
		v.returns(i, s, in.C, 0)
		return
	default:
		v.bad(i, "is not to be reached")
		return
	}
	v.goes(i, i+1, s, 0)
}

// unpacks checks a row of the table whose operands are where K says, and which may be
// copied to the registers from C on.
func (v *verifier) unpacks(i int, s *state, n int) {
	in := &v.u.Code[i]
	for k := range n {
		r := int(in.Unpacked(k))
		v.reads(i, s, r)
		if r >= int(in.C) {
			v.bad(i, "its operand in register %d is overwritten by the copy", r)
		}
	}
	v.copies(i, s, n)
}

// copies checks that there is room for n operands, which are the last below the height.
func (v *verifier) copies(i int, s *state, n int) {
	in := &v.u.Code[i]
	if h := int(in.K & 255); h != int(in.C)+n || h > v.u.Window {
		v.bad(i, "the height %d isn't that of the operands in a window of %d", h, v.u.Window)
	}
	v.keeps(i, s, int(in.C))
}

// next checks that the instruction after one is that which it may do, too.
func (v *verifier) next(i int, op code.Op) {
	if i+2 >= len(v.u.Code) || v.u.Code[i+1].Op != op {
		v.bad(i, "is not followed by what it does")
	}
}

// loops is a jump back: of a function that calls itself, which takes all the
// path's steps, or to a fold's next item, which takes what the path has more.
func (v *verifier) loops(i int, s *state) {
	in := &v.u.Code[i]
	if in.D > 0 {
		v.bad(i, "loops forward")
	}
	if v.folds(i) {
		v.jumps(i, s, in.D, in.K)
		return
	}
	next := *s
	next.depth = v.charges(i, s)
	v.reach(i, i+int(in.D)/code.InstrSize, &next)
}

// folds reports whether a jump back leads to the next item of a fold.
func (v *verifier) folds(i int) bool {
	to := i + int(v.u.Code[i].D)/code.InstrSize
	return to >= 0 && to < len(v.u.Code) && v.u.Code[to].Op == code.FoldCall
}

// fits checks that the window holds what a callee is given.
func (v *verifier) fits(i, register int) {
	if register >= v.u.Window {
		v.bad(i, "the callee's arguments reach register %d of a window of %d", register, v.u.Window)
	}
}

// alike checks that a closure is made of one that holds the same.
func (v *verifier) alike(i int) {
	in := &v.u.Code[i]
	arity := int(uint64(in.K) >> 56)
	if in.K != code.ClosureHeader(0, in.D, arity) {
		v.bad(i, "the header is %x", in.K)
	}
	if !slices.ContainsFunc(v.u.Kin, func(kin []int32) bool { return slices.Contains(kin, in.D) }) {
		v.bad(i, "makes the closure of a function that has no kin")
	}
	if in.C == 1 && v.caps[v.index(i, in.D)] < 2 {
		v.bad(i, "takes the authority from a second captured value")
	}
	v.enter(i, in.D, function{args: arity, gives: 1}, true)
}

// closure checks what a function captures where its closure is made.
func (v *verifier) closure(i int, s *state) {
	in := &v.u.Code[i]
	n := int(in.B) + int(in.C)<<8
	caps := code.CapsLen(n)
	if n == 0 || i+1+caps > len(v.u.Code) {
		v.bad(i, "captures %d values", n)
		return
	}
	slots := v.u.Code[i+1 : i+1+caps]
	for k := range slots {
		if slots[k].Op != code.Caps {
			v.bad(i, "is followed by %d, not by what it captures", slots[k].Op)
			return
		}
		v.keeps(i, s, int(slots[k].A))
	}
	for k := range n {
		v.slot(i, s, code.Capture(slots, k))
	}
	arity := int(uint64(in.K) >> 56)
	if in.K != code.ClosureHeader((n+2)&^1, in.D, arity) {
		v.bad(i, "the header %x is not that of %d values", in.K, n)
	}
	if arity > 0 {
		// The closure of an outlined part, which has none, is called right here.
		v.enter(i, in.D, function{args: arity, gives: 1}, true)
	}
	v.writes(i, s, int(in.A))
	v.goes(i, i+1+caps, s, 0)
}
