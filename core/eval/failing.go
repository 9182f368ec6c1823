package eval

import (
	"strings"
	"unsafe"

	"github.com/mcp-pif/mcp-pif/core/code"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// exhausted decides what a fuel word that is spent means. The instruction has not
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

// outOfFuel and outOfMemory end the run; true: Run has to return.
func (m *Machine) outOfFuel() bool {
	m.useUp()
	return m.failed(prim.OutOfFuel(m.budget.Steps), m.place())
}

// useUp takes all steps that are left.
func (m *Machine) useUp() { m.left, m.fuel = 0, m.fuel&^(1<<40-1)|guard }

func (m *Machine) outOfMemory() bool { return m.failed(prim.OutOfMemory(m.budget.Memory), m.place()) }

func (m *Machine) overloaded() { m.failed(m.stake.Overloaded(), m.place()) }

// place returns the instruction a fault of the machine itself is reported at; −1
// where none is running.
func (m *Machine) place() int {
	if m.ip == nil || m.cb == nil {
		return -1
	}
	return m.index()
}

// failed ends the run with a fault at an instruction; true, always.
func (m *Machine) failed(f *fault.Fault, at int) bool {
	m.fault, m.state = f, Failed
	if at >= 0 && at < len(m.meta) {
		m.locate(f, m.unitAt(at), int(m.meta[at].Pos))
	}
	return true
}

// fail ends the run with a fault of the instruction being done, its path's
// steps counted; or with out_of_fuel, where those steps were not there.
func (m *Machine) fail(f *fault.Fault) bool {
	p := m.pending()
	if p > m.stepsIn()+int64(m.left) {
		return m.outOfFuel()
	}
	m.fuel -= p
	return m.outcome(f)
}

// outcome takes a fault of the instruction before ip whose path is charged. The
// fault goes to the innermost try, or else ends a branch of par, or the run; false:
// the machine can go on.
func (m *Machine) outcome(f *fault.Fault) bool {
	m.failed(f, m.index())
	return m.caught(f)
}

// caught does what [Machine.outcome] does for a fault that has its place.
func (m *Machine) caught(f *fault.Fault) bool {
	m.fault, m.state = f, Failed
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
	f.Raised = said(f.Raised)
	return true
}

// said is the text of a value that was raised, apart from this machine's heap, to
// which all else of it may refer; nil: it has none.
func said(raised any) any {
	if r, ok := raised.(*value.Record); ok {
		for _, field := range r.Fields {
			if text, ok := value.Force(field.Value).(value.Str); ok && field.Key == "text" {
				return value.Str(strings.Clone(string(text)))
			}
		}
	}
	return nil
}

func (m *Machine) mismatch(id term.ID, i int, got word) bool {
	return m.fail(prim.Mismatch(id, i, prim.Describe(m.sketch(got))))
}

// wrongOperand fails an instruction of one operand by its row.
func (m *Machine) wrongOperand(in *code.Instr, got word) bool {
	id := rowOf[in.Op]
	if got == wNil && (in.Op == code.Head || in.Op == code.Tail) {
		return m.fail(prim.EmptyList(prim.Get(id).Name))
	}
	return m.mismatch(id, 0, got)
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

// A handler is four registers of the window that tries: the handler around
// it, the offset of its Try instruction, the depth that was left with what the
// evals around permitted, and the function of the tool.
// Machine.handler is the index of the innermost on the stack; −1: none.

// try starts a try.
func (m *Machine) try(in *code.Instr) bool {
	f := m.fuel + in.K
	if spent(f) {
		return m.exhausted(f)
	}
	if !m.growStack(int(in.A)+5, int(in.A)) {
		return true
	}
	*m.reg(in.A) = fromInt(int64(m.handler))
	*m.reg(in.A + 1) = fromInt(int64(uintptr(unsafe.Pointer(in)) - uintptr(m.cb)))
	*m.reg(in.A + 2) = fromInt(m.fuel>>40 | int64(m.dyn)<<24)
	*m.reg(in.A + 3) = m.self
	m.handler = int((uintptr(m.r)-uintptr(unsafe.Pointer(unsafe.SliceData(m.stack))))/8) + int(in.A)
	m.fuel = f
	return false
}

// endTry ends a try whose operand gave a value.
func (m *Machine) endTry(in *code.Instr) bool {
	if !m.reserve(recordWords(1)+strWords(2), int(in.D)) {
		return true
	}
	m.handler = int(toInt(*m.reg(in.A)))
	v := *m.reg(in.B)
	*m.reg(in.A) = m.makeRecord(0, 1, func(int) (word, word) { return m.newString("ok"), v })
	m.fuel += in.K
	return false
}

// catch goes on after the innermost try with what a fault becomes there. The
// fault has its place; the path's steps are charged.
func (m *Machine) catch(f *fault.Fault) {
	in := m.handle()
	if w, ok := m.importValue(value.Caught(f), int(in.A)+1); ok {
		*m.reg(in.A) = w
	}
}

// handle takes the innermost handler and puts back what it says.
func (m *Machine) handle() *code.Instr {
	at := m.handler
	m.handler = int(toInt(m.stack[at]))
	in := (*code.Instr)(unsafe.Add(m.cb, int(toInt(m.stack[at+1]))))
	was := toInt(m.stack[at+2])
	m.fuel = m.fuel&(1<<40-1) | (was&(1<<24-1))<<40
	m.dyn, m.self = int(was>>24), m.stack[at+3]
	m.r = unsafe.Pointer(&m.stack[at-int(in.A)])
	m.ip = unsafe.Add(unsafe.Pointer(in), int(in.D))
	return in
}
