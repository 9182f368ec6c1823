package eval

import (
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// RunUntil does what Run does, and asks stop from time to time, also inside work that
// is one step or one instruction: at least each 50 ms or so. Where it says true the
// run has failed with cancelled, and can't go on. When it is asked depends on the
// work alone, so that of two runs of one program both are asked at the same places.
func (m *Machine) RunUntil(steps uint64, stop func() bool) State {
	m.until(stop, func() { m.Run(steps) })
	return m.state
}

// ValueUntil does what Value does, with out_of_memory where the value takes more of Go's memory than the budget, and
// asks stop from time to time whether to give up; the fault is of kind cancelled then.
func (m *Machine) ValueUntil(stop func() bool) (v value.Value, f *fault.Fault) {
	if m.state != Done {
		return nil, m.unfinished()
	}
	m.plain = false
	e := exporter{m: m, limit: m.budget.Memory}
	m.until(stop, func() { v = e.export(m.result) })
	switch {
	case m.state != Done:
		return nil, m.fault
	case e.full():
		return nil, prim.OutOfMemory(m.budget.Memory)
	}
	return v, nil
}

func (m *Machine) until(stop func() bool, do func()) {
	m.stop = stop
	defer func() {
		m.stop = nil
		switch p := recover().(type) {
		case nil:
		case stopped:
			// What the work had taken is given back with the machine.
			m.acted, m.inside = true, false
			m.state, m.fault = Failed, &fault.Fault{Kind: fault.Cancelled, Message: "the run was not wanted any more"}
		default:
			panic(p)
		}
	}()
	do()
}

// stopped is the panic that leaves work in the middle.
type stopped struct{}

// lookEvery is the work after which stop is asked, in parts of values gone through:
// a few milliseconds.
const lookEvery = 1 << 16

// look counts work on so many parts of values, each worth some tens of nanoseconds.
func (m *Machine) look(parts int) {
	if m.unlooked += parts; m.unlooked >= lookEvery {
		m.unlooked = 0
		if m.stop != nil && m.stop() {
			panic(stopped{})
		}
	}
}

// perBytes is how many bytes that are copied or compared are worth a part.
const perBytes = 256

// lookOften looks for those who call a function now and then, and never stop.
func (m *Machine) lookOften() bool {
	m.look(lookEvery / 4)
	return false
}

// walk does work that goes through values and may borrow memory for that. Where
// there was no room it is done once more after a collection: do leaves nothing
// behind. Registers below height are alive. false: the run has failed.
func (m *Machine) walk(height int, do func()) bool {
	for again := false; ; again = true {
		do()
		m.repay()
		switch {
		case !m.short:
			return m.state != Failed
		case again:
			m.outOfMemory()
			return false
		}
		m.short = false
		if !m.collect(0, height) {
			return false
		}
	}
}

// repay gives back what was borrowed.
func (m *Machine) repay() {
	if m.borrowed > 0 {
		m.drop(m.borrowed)
		m.borrowed = 0
		m.giveBack()
	}
}

// borrow takes bytes of Go's memory that count as the run's while a walk lasts.
// Nothing in the heap moves for that: a walk refers to it.
func (m *Machine) borrow(bytes int64) *fault.Fault {
	m.acted = true
	if m.short || int64(len(m.stack))*8+m.extra+int64(m.hp)+bytes > m.budget.Memory {
		m.short = true
		return prim.OutOfMemory(m.budget.Memory)
	}
	m.borrowed += bytes
	m.owe(bytes)
	if !m.lend() {
		return m.fault
	}
	return nil
}
