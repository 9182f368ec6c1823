package eval

import (
	"github.com/mcp-pif/mcp-pif/core/code"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// analysis does a row that reasons about code. What it builds on the way is Go's
// memory: as long as it lasts that counts as the machine's, and as the pool's.
func (m *Machine) analysis(in *code.Instr, row *prim.Row) bool {
	height := int(in.K)
	args := m.operands(in)
	held := int64(0)
	meter := &prim.Meter{
		Left: uint64(max(m.stepsIn()+int64(m.left)-m.pending(), 0)),
		Hold: func(bytes int64) *fault.Fault {
			held += bytes
			if !m.hold(bytes, height) {
				return m.fault
			}
			return nil
		},
		Look: m.look,
	}
	v, f := row.Analysis(args, meter)
	m.drop(held)
	m.giveBack()
	switch {
	case m.state == Failed:
		return true // there was no room
	case meter.Used() > 0 && !m.work(meter.Used()):
		return true
	case f != nil:
		return m.fail(f)
	}
	w, ok := m.importValue(v, height)
	if !ok {
		return true
	}
	*m.reg(in.A) = w
	return false
}

// giveBack returns to the pool what it lent and isn't held.
func (m *Machine) giveBack() {
	if spare := (m.lent - m.outside) / lending * lending; spare > 0 {
		pool.lend(m.stake, -spare)
		m.lent -= spare
	}
}
