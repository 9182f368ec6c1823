package eval

import (
	"unsafe"

	"github.com/mcp-pif/mcp-pif/core/code"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

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
	w, ok := m.importValue(value.Caught(f), int(in.A)+1)
	if ok {
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
