package eval

import (
	"unsafe"

	"github.com/mcp-pif/mcp-pif/core/code"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// instr returns the instruction before ip: the one that left the loop.
func (m *Machine) instr() *code.Instr {
	return (*code.Instr)(unsafe.Add(m.ip, -code.InstrSize))
}

// index returns the index of that instruction.
func (m *Machine) index() int {
	return int(uintptr(m.ip)-uintptr(m.cb))/code.InstrSize - 1
}

// again makes the loop do the instruction once more.
func (m *Machine) again() { m.ip = unsafe.Add(m.ip, -code.InstrSize) }

func (m *Machine) reg(i uint8) *word { return reg(m.r, i) }

// slow does the instruction that left the loop, or makes it possible and has
// it done again. It returns true when Run has to return.
func (m *Machine) slow() bool {
	switch in := m.instr(); in.Op {
	case code.Prim:
		return m.generic(in)
	case code.LoadK:
		w, ok := m.constant(int(in.D), int(in.K))
		if !ok {
			return true
		}
		*m.reg(in.A) = w
	case code.Cons:
		if t := *m.reg(in.C); !m.isList(t) {
			return m.mismatch(prim.Cons, 1, t)
		}
		if !m.reserve(2, int(in.D)) {
			return true
		}
		p := m.alloc(2)
		*m.at(p), *m.at(p + 8) = *m.reg(in.B), *m.reg(in.C)
		*m.reg(in.A) = p | tagCons
	case code.Pair:
		return m.room(2, int(in.D))
	case code.List:
		return m.room(2*int(in.B), int(in.D))
	case code.FoldPair, code.FoldInit:
		if l := *m.reg(in.A + 1); l&tagMask != tagCons {
			if m.isVec(l) {
				return m.expandAt(in.A+1, int(in.A)+2)
			}
			return m.mismatch(prim.Fold, 2, l)
		}
		if m.fuel-code.Depth1 < 0 {
			return m.exhausted(m.fuel - m.pending() - code.Depth1)
		}
		return m.room(2, int(in.A)+2)
	case code.FoldPLoop, code.FoldLoop:
		if m.isVec(*m.reg(in.A + 2)) {
			if body := (*code.Instr)(unsafe.Add(unsafe.Pointer(in), int(in.D))); body.Op == code.FoldAdd {
				return m.addItems(in)
			}
			return m.expandAt(in.A+2, int(in.A)+3)
		}
		if f := m.fuel + in.K; spent(f) {
			return m.exhausted(f)
		}
		return m.room(2, int(in.A)+3)
	case code.FoldFn:
		if l := *m.reg(in.A + 2); !m.isList(l) {
			return m.mismatch(prim.Fold, 2, l)
		}
		if f := *m.reg(in.A); f&tagMask != tagClosure {
			return m.mismatch(prim.Fold, 0, f)
		}
		return m.expandAt(in.A+2, int(in.A)+3)
	case code.FoldCall:
		if m.isVec(*m.reg(in.A + 2)) {
			return m.expandAt(in.A+2, int(in.A)+3)
		}
		return m.room(2, int(in.A)+3)
	case code.Closure:
		n := int(in.B) + int(in.C)<<8
		if n <= 6 {
			return m.room(even(n+1), m.capsHeight())
		}
		return m.bigClosure(in, n)
	case code.Alike:
		n := headerWords(*m.obj(*m.reg(in.A), 0))
		if !m.reserve(n, int(in.B)) {
			return true
		}
		p := m.alloc(n)
		for i := range n {
			*m.at(p + word(i)*8) = *m.obj(*m.reg(in.A), i)
		}
		*m.at(p) = word(in.K) | *m.at(p)&((1<<20-1)<<8)
		if in.C == 1 {
			*m.at(p + 8) = *m.at(p + 16)
		}
		*m.reg(in.A) = p | tagClosure
	case code.JF, code.JT:
		ask := asked[in.B]
		return m.mismatch(ask.row, ask.operand, *m.reg(in.A))
	case code.Not:
		return m.mismatch(prim.Not, 0, *m.reg(in.B))
	case code.Head, code.Tail, code.Fst, code.Snd, code.IsEmpty:
		if w := *m.reg(in.B); m.isVec(w) && in.Op != code.Fst && in.Op != code.Snd {
			return m.vecOperand(in, w)
		}
		return m.wrongOperand(in, *m.reg(in.B))
	case code.JEmpty, code.JCons:
		if m.isVec(*m.reg(in.A)) {
			if in.Op == code.JCons {
				m.fuel += in.K
				m.ip = unsafe.Add(unsafe.Pointer(in), int(in.D))
			}
			return false
		}
		return m.mismatch(prim.IsEmpty, 0, *m.reg(in.A))
	case code.Length:
		return m.length(in)
	case code.Concat:
		return m.concat(in)
	case code.ConcatT:
		return m.concatText(in)
	case code.CallKReg:
		*m.reg(in.A + 1) = *m.reg(in.C)
		return m.slowCall(in)
	case code.CallK, code.CallKSubI, code.Call, code.TailK, code.TailIn, code.TailCall,
		code.Check, code.Pend, code.Loop0, code.Loop1, code.Loop2:
		return m.slowCall(in)
	case code.Eval, code.TailEval:
		return m.eval(in)
	case code.CodeOf:
		return m.codeOf(in, m.kinds[in.D].Name, true, int(in.K))
	case code.CodeOfV:
		w := *m.reg(in.B)
		if !m.isString(w) {
			return m.mismatch(prim.CodeOf, 0, w)
		}
		return m.codeOf(in, m.goString(w), false, int(in.D))
	case code.NoSelf:
		if m.self == 0 || !m.unitAt(m.index()).isTool {
			return m.fail(prim.NoSelf())
		}
		*m.reg(in.A) = m.self
	case code.Cont:
		if !m.unitAt(m.index()).isTool {
			return m.fail(prim.NoContinue())
		}
		if !m.reserve(contWords, int(in.D)) {
			return true
		}
		*m.reg(in.A) = m.newCont(*m.reg(in.B), m.unitAt(m.index()).tool)
	case code.Narrow:
		return m.enterNarrowed(in)
	case code.Restrict:
		if !m.reserve(m.copyWords(int(in.A)), int(in.D)) {
			return true
		}
		m.restrict(int(in.A))
	case code.Effect:
		return m.effect(in)
	case code.CallTool:
		return m.callTool(in)
	case code.CallCode:
		return m.callCode()
	case code.CallDone:
		return m.callDone()
	case code.Restore:
		m.restore()
	case code.Par:
		return m.startPar(in)
	case code.EndPar:
		return m.endBranch(in)
	case code.Unbound:
		at := m.index()
		name := m.kinds[in.D].Name
		u, pos := m.unitAt(at), int(m.meta[at].Pos)
		f := prim.Unbound(name, u.bound(pos))
		if term.Applied(u.term)[pos] {
			prim.Applied(f, name)
		}
		return m.fail(f)
	case code.Rev:
		return m.reverse(in)
	case code.Record, code.RecordL:
		return m.record(in)
	case code.Get, code.Compare, code.At, code.Nth, code.ToText, code.Push, code.GetK, code.Round:
		row, ok := m.unpacked(in)
		return !ok || m.generic(row)
	case code.PutOwn:
		row, _ := m.unpacked(in)
		return m.putOwn(in.B, row)
	case code.Sort:
		return m.sort(in)
	case code.Try:
		return m.try(in)
	case code.EndTry:
		return m.endTry(in)
	default:
		return m.arithmetic(in)
	}
	return false
}

// unpacked returns the row that an instruction stands for, with its operands one after
// the other, below the height.
func (m *Machine) unpacked(in *code.Instr) (row *code.Instr, ok bool) {
	row = &m.row
	*row = code.Instr{Op: code.Prim, A: in.A, B: in.B, C: in.C, D: in.D, K: in.K & 255}
	switch in.Op {
	case code.GetK:
		row.B, row.D = 2, int32(prim.GetField)
		*m.reg(row.C) = *m.reg(in.B)
		key, ok := m.constant(int(in.D), int(row.C)+1)
		*m.reg(row.C + 1) = key
		return row, ok
	case code.Round:
		row.B, row.D = 3, int32(roundDec)
		*m.reg(row.C), *m.reg(row.C + 1) = *m.reg(in.B), fromInt(in.K>>8&255)
		mode, ok := m.constant(int(in.D), int(row.C)+2)
		*m.reg(row.C + 2) = mode
		return row, ok
	case code.PutOwn:
		row.B = 3
	}
	for i := range row.B {
		*m.reg(row.C + i) = *m.reg(in.Unpacked(int(i)))
	}
	return row, true
}

var roundDec, _, _ = prim.Lookup("round_dec")

// asked says what a condition that is no truth value is an operand of.
var asked = [...]struct {
	row     term.ID
	operand int
}{
	code.AskIf: {prim.If, 0}, code.AskNot: {prim.Not, 0},
	code.AskAnd: {prim.And, 0}, code.AskAnd2: {prim.And, 1},
	code.AskOr: {prim.Or, 0}, code.AskOr2: {prim.Or, 1},
}

// room reserves n words and has the instruction done again.
func (m *Machine) room(n, height int) bool {
	if !m.reserve(n, height) {
		return true
	}
	m.again()
	return false
}

// capsHeight returns the height that the instruction after a Closure carries.
func (m *Machine) capsHeight() int { return int((*code.Instr)(m.ip).A) }

// pending returns what the current path has evaluated and not yet charged.
func (m *Machine) pending() int64 { return int64(m.meta[m.index()].Pend) }

// ret returns w from the function whose return word is in the slot.
func (m *Machine) ret(w word, slot uint8, k int64) {
	back := *m.reg(slot)
	*(*word)(m.r) = w
	m.fuel += k
	m.r = unsafe.Add(m.r, -int(back>>32))
	m.ip = unsafe.Add(m.cb, uintptr(uint32(back)))
}

// bigClosure makes a closure of more captured values than the loop handles.
func (m *Machine) bigClosure(in *code.Instr, n int) bool {
	size := even(n + 1)
	if !m.reserve(size, m.capsHeight()) {
		return true
	}
	p := m.alloc(size)
	*m.at(p + word(size-1)*8) = 0
	*m.at(p) = word(in.K)
	caps := unsafe.Slice((*code.Instr)(m.ip), code.CapsLen(n))
	for i := range n {
		if s := code.Capture(caps, i); s >= 0 {
			*m.at(p + 8 + word(i)*8) = *(*word)(unsafe.Add(m.r, s*8))
		} else {
			*m.at(p + 8 + word(i)*8) = *m.obj(*(*word)(m.r), -s)
		}
	}
	m.ip = unsafe.Add(m.ip, len(caps)*code.InstrSize)
	*m.reg(in.A) = p | tagClosure
	return false
}

// expandAt takes the first items out of the vector in a register that a fold
// goes through, and has the instruction done again.
func (m *Machine) expandAt(i uint8, height int) bool {
	if !m.reserve(expandWords, height) {
		return true
	}
	*m.reg(i) = m.expand(*m.reg(i))
	m.again()
	return false
}

// vecOperand does head, tail or isEmpty of a vector.
func (m *Machine) vecOperand(in *code.Instr, w word) bool {
	switch in.Op {
	case code.Head:
		*m.reg(in.A) = m.vecAt(w, 0)
	case code.IsEmpty:
		*m.reg(in.A) = wFalse
	default:
		if !m.reserve(vecWords, int(in.D)) {
			return true
		}
		w = *m.reg(in.B)
		*m.reg(in.A) = m.vecSlice(w, 1, m.vecLen(w))
	}
	return false
}
