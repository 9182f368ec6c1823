package eval

import (
	"github.com/mcp-pif/mcp-pif/core/code"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
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

func (m *Machine) outOfFuel() {
	m.failed(prim.OutOfFuel(m.budget.Steps), m.place())
}

func (m *Machine) outOfMemory() { m.failed(prim.OutOfMemory(m.budget.Memory), m.place()) }

func (m *Machine) overloaded() { m.failed(prim.Overloaded(m.stake != nil && m.stake.own), m.place()) }

// place returns the instruction a fault of the machine itself is reported at; −1
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
