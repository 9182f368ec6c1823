package eval

import (
	"unsafe"

	"github.com/mcp-pif/mcp-pif/core/code"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
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
	in := m.instr()
	switch in.Op {
	case code.LoadK:
		w, ok := m.constant(int(in.D), int(in.K))
		if !ok {
			return true
		}
		*m.reg(in.A) = w
	case code.Cons:
		if t := *m.reg(in.C); !m.isList(t) {
			return m.mismatch(in, prim.Cons, 1, t)
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
			return m.mismatch(in, prim.Fold, 2, l)
		}
		if m.fuel-code.Depth1 < 0 {
			return m.exhausted(m.fuel - m.pending() - code.Depth1)
		}
		return m.room(2, int(in.A)+2)
	case code.FoldPLoop, code.FoldLoop:
		if m.isVec(*m.reg(in.A + 2)) {
			return m.expandAt(in.A+2, int(in.A)+3)
		}
		if f := m.fuel + in.K; spent(f) {
			return m.exhausted(f)
		}
		return m.room(2, int(in.A)+3)
	case code.FoldFn:
		l := *m.reg(in.A + 2)
		if !m.isList(l) {
			return m.mismatch(in, prim.Fold, 2, l)
		}
		if f := *m.reg(in.A); f&tagMask != tagClosure {
			return m.mismatch(in, prim.Fold, 0, f)
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
	case code.JF, code.JT:
		ask := asked[in.B]
		return m.mismatch(in, ask.row, ask.operand, *m.reg(in.A))
	case code.Not:
		return m.mismatch(in, prim.Not, 0, *m.reg(in.B))
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
		return m.mismatch(in, prim.IsEmpty, 0, *m.reg(in.A))
	case code.Length:
		return m.length(in)
	case code.Concat:
		return m.concat(in)
	case code.CallK, code.CallKSubI, code.Call, code.TailK, code.TailCall,
		code.Check, code.Pend, code.Loop0, code.Loop1, code.Loop2:
		return m.slowCall(in)
	case code.Eval, code.TailEval:
		return m.eval(in)
	case code.CodeOf:
		return m.codeOf(in, m.kinds[in.D].Name, true, int(in.K))
	case code.CodeOfV:
		w := *m.reg(in.B)
		if !m.isString(w) {
			return m.mismatch(in, prim.CodeOf, 0, w)
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
		return m.fail(prim.Unbound(m.kinds[in.D].Name, m.unitAt(at).bound(int(m.meta[at].Pos))))
	case code.Rev:
		return m.reverse(in)
	case code.Record, code.RecordL:
		return m.record(in)
	case code.Prim:
		return m.generic(in)
	case code.Try:
		return m.try(in)
	case code.EndTry:
		return m.endTry(in)
	default:
		return m.arithmetic(in)
	}
	return false
}

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

// capsHeight is the height that the instruction after a Closure carries.
func (m *Machine) capsHeight() int { return int((*code.Instr)(m.ip).A) }

// pending is what the current path has evaluated and not yet charged.
func (m *Machine) pending() int64 { return int64(m.meta[m.index()].Pend) }

// exhausted says what a fuel word that is spent means. The instruction has not
// been done.
func (m *Machine) exhausted(f int64) bool {
	switch {
	case f&guard == 0 && m.left > 0:
		m.again()
		return true
	case f&guard == 0:
		m.outOfFuel()
	default:
		m.fuel -= m.pending()
		m.failed(prim.TooDeep(m.budget.Depth), m.index())
	}
	return true
}

func (m *Machine) outOfFuel() {
	m.failed(prim.OutOfFuel(m.budget.Steps), m.place())
}

func (m *Machine) outOfMemory() { m.failed(prim.OutOfMemory(m.budget.Memory), m.place()) }

func (m *Machine) overloaded() { m.failed(prim.Overloaded(), m.place()) }

// place is the instruction a fault of the machine itself is reported at; −1
// where none is running.
func (m *Machine) place() int {
	if m.ip == nil || m.cb == nil {
		return -1
	}
	return m.index()
}

// failed ends the run with a fault at an instruction.
func (m *Machine) failed(f *fault.Fault, at int) {
	m.fault, m.state = f, Failed
	if at < 0 || at >= len(m.meta) {
		return
	}
	m.locate(f, m.unitAt(at), int(m.meta[at].Pos))
}

// fail ends the run with a fault of the instruction being done, its path's
// steps counted; or with out_of_fuel, where those steps were not there.
func (m *Machine) fail(f *fault.Fault) bool {
	p := m.pending()
	if p > m.stepsIn()+int64(m.left) {
		m.outOfFuel()
		return true
	}
	m.fuel -= p
	return m.outcome(f)
}

// outcome is a fault of the instruction before ip whose path is charged. It
// goes to the innermost try, or else ends a branch of par, or the run; false:
// the machine can go on.
func (m *Machine) outcome(f *fault.Fault) bool {
	m.failed(f, m.index())
	switch {
	case !f.Kind.Catchable():
	case m.handler >= 0:
		m.fault, m.state = nil, Paused
		m.catch(f)
		return m.state != Paused
	case m.par != nil:
		m.fault, m.state = nil, Paused
		m.failBranch(f)
		return m.state != Paused
	}
	f.Raised = nil // it may refer to this machine's heap
	return true
}

func (m *Machine) mismatch(in *code.Instr, id term.ID, i int, got word) bool {
	return m.fail(prim.Mismatch(id, i, prim.Describe(m.sketch(got))))
}

// wrongOperand fails an instruction of one operand by its row.
func (m *Machine) wrongOperand(in *code.Instr, got word) bool {
	id := rowOf[in.Op]
	if got == wNil && (in.Op == code.Head || in.Op == code.Tail) {
		return m.fail(prim.EmptyList(prim.Get(id).Name))
	}
	return m.mismatch(in, id, 0, got)
}

// rowOf gives the row of an operation.
var rowOf = func() (ids [code.NumOps]term.ID) {
	for op, id := range map[code.Op]term.ID{
		code.Add: prim.Add, code.Sub: prim.Sub, code.Mul: prim.Mul, code.Div: prim.Div, code.Mod: prim.Mod,
		code.Eq: prim.Eq, code.Lt: prim.Lt, code.Lte: prim.Lte, code.Gt: prim.Gt, code.Gte: prim.Gte,
		code.RetAdd: prim.Add, code.MulI: prim.Mul, code.DivI: prim.Div, code.ShrI: prim.Div,
		code.ModI: prim.Mod, code.AndI: prim.Mod,
		code.Head: prim.Head, code.Tail: prim.Tail, code.Fst: prim.Fst, code.Snd: prim.Snd,
		code.IsEmpty: prim.IsEmpty, code.Length: prim.Length, code.Concat: prim.Concat, code.Cons: prim.Cons,
	} {
		ids[op] = id
	}
	return ids
}()

// arithmetic does an operation on integers whose operands or result are not
// both small, or fails it: by the row of the table, as naive does.
func (m *Machine) arithmetic(in *code.Instr) bool {
	id := rowOf[in.Op]
	var args [2]value.Value
	height := int(in.D)
	jump := false
	switch in.Op {
	case code.Add, code.Sub, code.Mul, code.Div, code.Mod, code.Eq, code.Lt, code.Lte, code.Gt, code.Gte:
		args[0], args[1] = m.sketch(*m.reg(in.B)), m.sketch(*m.reg(in.C))
	case code.RetAdd:
		args[0], args[1] = m.sketch(*m.reg(in.A)), m.sketch(*m.reg(in.B))
	case code.MulI, code.DivI, code.ModI:
		args[0], args[1] = m.sketch(*m.reg(in.B)), value.NewInt(toInt(word(in.K)))
	case code.AndI:
		args[0], args[1] = m.sketch(*m.reg(in.B)), value.NewInt(toInt(word(in.K))+1)
	case code.ShrI:
		args[0], args[1] = m.sketch(*m.reg(in.B)), value.NewInt(1<<in.C)
	case code.AddI, code.CallKSubI:
		return m.addConstant(in)
	default:
		jump = true
		id = m.meta[m.index()].Row
		args = m.compared(in)
	}
	v, ok := m.strict(id, args[:])
	if !ok {
		return true
	}
	if jump {
		m.decide(in, bool(v.(value.Bool)))
		return false
	}
	if in.Op == code.RetAdd {
		w, ok := m.importValue(v, height)
		if !ok {
			return true
		}
		m.ret(w, in.C, in.K)
		return false
	}
	w, ok := m.importValue(v, height)
	if !ok {
		return true
	}
	*m.reg(in.A) = w
	return false
}

// addConstant is addition or subtraction of a constant, alone or before a call.
func (m *Machine) addConstant(in *code.Instr) bool {
	args := [2]value.Value{m.sketch(*m.reg(in.B)), value.NewInt(int64(in.C))}
	if in.Op == code.AddI {
		id := prim.Add
		args[1] = value.NewInt(toInt(word(in.K)))
		if in.C == 1 {
			id, args[1] = prim.Sub, value.NewInt(-toInt(word(in.K)))
		}
		v, ok := m.strict(id, args[:])
		if !ok {
			return true
		}
		w, ok := m.importValue(v, int(in.D))
		if ok {
			*m.reg(in.A) = w
		}
		return !ok
	}
	v, ok := m.strict(prim.Sub, args[:])
	if !ok {
		return true
	}
	w, ok := m.importValue(v, int(in.A))
	if !ok {
		return true
	}
	*reg(m.r, in.A+1) = w
	return m.callKnown(in, 1)
}

// strict computes a row that is strict and of the first order.
func (m *Machine) strict(id term.ID, args []value.Value) (value.Value, bool) {
	row := prim.Get(id)
	switch {
	case row.Cost != nil:
		if n := row.Cost(args); n > 0 && !m.work(n) {
			return nil, false
		}
	case row.Work != nil:
		left := max(m.stepsIn()+int64(m.left)-m.pending(), 0)
		if n := row.Work(args, uint64(left)); n > 0 && !m.work(n) {
			return nil, false
		}
	}
	if row.Size != nil && row.Size(args) > m.budget.Memory {
		m.outOfMemory()
		return nil, false
	}
	v, f := row.Eval(args)
	if f != nil {
		m.fail(f)
		return nil, false
	}
	return v, true
}

// work charges steps for work that grows with its data, before it is done.
func (m *Machine) work(n uint64) bool {
	p := m.pending()
	if have := m.stepsIn() + int64(m.left) - p; have < 0 || n > uint64(have) {
		m.outOfFuel()
		return false
	}
	// It counts for the slice as far as there is one, so that a caller who wants
	// to stop can.
	in := m.stepsIn()
	keep := max(in-int64(n), min(in, 0))
	m.left = uint64(int64(m.left) + in - int64(n) - keep)
	m.fuel += keep - in
	return true
}

// compared returns the operands of a comparison that jumps, as the source has them.
func (m *Machine) compared(in *code.Instr) [2]value.Value {
	a := m.sketch(*m.reg(in.A))
	c := value.NewInt(int64(int16(uint16(in.B) | uint16(in.C)<<8)))
	switch m.meta[m.index()].Side {
	case code.ConstRight:
		return [2]value.Value{a, c}
	case code.ConstLeft:
		return [2]value.Value{c, a}
	case code.Swapped:
		return [2]value.Value{m.sketch(*m.reg(in.B)), a}
	}
	return [2]value.Value{a, m.sketch(*m.reg(in.B))}
}

// decide takes or doesn't take the jump of a comparison whose result is known.
func (m *Machine) decide(in *code.Instr, truth bool) {
	if meta := &m.meta[m.index()]; truth == code.JumpsWhen(in.Op, meta.Row, meta.Side) {
		m.fuel += in.K
		m.ip = unsafe.Add(unsafe.Pointer(in), int(in.D))
	}
}

// ret returns w from the function whose return word is in the slot.
func (m *Machine) ret(w word, slot uint8, k int64) {
	back := *m.reg(slot)
	*(*word)(m.r) = w
	m.fuel += k
	m.r = unsafe.Add(m.r, -int(back>>32))
	m.ip = unsafe.Add(m.cb, uintptr(uint32(back)))
}

// generic does a row of the table that has no instruction of its own.
func (m *Machine) generic(in *code.Instr) bool {
	id := term.ID(in.D)
	if done, stop := m.native(in, id); done {
		return stop
	}
	if row := prim.Get(id); row.Analysis != nil {
		return m.analysis(in, row)
	}
	v, ok := m.strict(id, m.operands(in))
	if !ok {
		return true
	}
	w, ok := m.importValue(v, int(in.K))
	if !ok {
		return true
	}
	*m.reg(in.A) = w
	return false
}

// operands is the operands of a row of the table.
func (m *Machine) operands(in *code.Instr) []value.Value {
	args := make([]value.Value, in.B)
	for i := range args {
		args[i] = m.lazy(*m.reg(in.C + uint8(i)))
	}
	return args
}

// length walks a list, or reads what a string knows.
func (m *Machine) length(in *code.Instr) bool {
	w := *m.reg(in.B)
	if m.isString(w) {
		*m.reg(in.A) = fromInt(int64(*m.obj(w, 1) >> 32))
		return false
	}
	if !m.isList(w) {
		return m.mismatch(in, prim.Length, 0, w)
	}
	n, cells := m.listLen(w)
	if c := prim.LengthCost(n); c > 0 {
		if !m.work(c) {
			return true
		}
	} else {
		m.effort(cells / 64)
	}
	*m.reg(in.A) = fromInt(int64(n))
	return false
}

// effort is work that costs no steps but counts for the slice, so that a
// caller who wants to stop the machine soon can.
func (m *Machine) effort(n int) {
	n = min(n, int(max(m.stepsIn(), 0)))
	m.fuel -= int64(n)
	m.left += uint64(n)
}

// reverse makes the list that a long literal was collected into backwards.
func (m *Machine) reverse(in *code.Instr) bool {
	n := 0
	for w := *m.reg(in.B); w&tagMask == tagCons; w = *m.at(w - tagCons + 8) {
		n++
	}
	if !m.reserve(2*n, int(in.D)) {
		return true
	}
	out := word(wNil)
	for w := *m.reg(in.B); w&tagMask == tagCons; w = *m.at(w - tagCons + 8) {
		p := m.alloc(2)
		*m.at(p), *m.at(p + 8) = *m.at(w - tagCons), out
		out = p | tagCons
	}
	*m.reg(in.A) = out
	return false
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
		s := code.Capture(caps, i)
		if s >= 0 {
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
