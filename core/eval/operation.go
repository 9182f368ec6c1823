package eval

import (
	"unsafe"

	"github.com/mcp-pif/mcp-pif/core/code"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// arithmetic does an operation on integers whose operands or result are not
// both small, or fails it: by the row of the table, as naive does.
func (m *Machine) arithmetic(in *code.Instr) bool {
	if m.meta[m.index()].Row == prim.Equal {
		return m.equal(in)
	}
	id := rowOf[in.Op]
	var a, b word
	height := int(in.D)
	switch in.Op {
	case code.Add, code.Sub, code.Mul, code.Div, code.Mod, code.Eq, code.Lt, code.Lte, code.Gt, code.Gte:
		a, b = *m.reg(in.B), *m.reg(in.C)
	case code.RetAdd:
		a, b = *m.reg(in.A), *m.reg(in.B)
	case code.MulI, code.DivI, code.ModI:
		a, b = *m.reg(in.B), word(in.K)
	case code.AndI:
		a, b = *m.reg(in.B), word(in.K)+fromInt(1)
	case code.ShrI:
		a, b = *m.reg(in.B), fromInt(1<<in.C)
	case code.AddI:
		id, a, b = prim.Add, *m.reg(in.B), word(in.K)
		if in.C == 1 {
			id, b = prim.Sub, -b
		}
	case code.CallKSubI:
		id, a, b, height = prim.Sub, *m.reg(in.B), fromInt(int64(in.C)), int(in.A)
	default:
		id = m.meta[m.index()].Row
		a, b = m.compared(in)
	}
	if order := prim.Order(id); order != nil {
		truth := false
		if d, ok := m.compareNumbers(a, b); ok {
			truth = order(d)
		} else {
			v, ok := m.strict(id, []value.Value{m.sketch(a), m.sketch(b)})
			if !ok {
				return true
			}
			truth = bool(v.(value.Bool))
		}
		if in.Op >= code.Eq && in.Op <= code.Gte {
			*m.reg(in.A) = fromBool(truth)
		} else {
			m.decide(in, truth)
		}
		return false
	}
	to := in.A
	if in.Op == code.CallKSubI {
		to++
	}
	if s, ok := m.onDecimals(id, a, b); ok {
		if !m.giveDec(to, s, height) {
			return true
		}
	} else {
		v, ok := m.strict(id, []value.Value{m.sketch(a), m.sketch(b)})
		if !ok {
			return true
		}
		w, ok := m.importValue(v, height)
		if !ok {
			return true
		}
		*m.reg(to) = w
	}
	switch in.Op {
	case code.RetAdd:
		m.ret(*m.reg(to), in.C, in.K)
	case code.CallKSubI:
		return m.callKnown(in, 1)
	}
	return false
}

// strict computes a row that is strict and of the first order.
func (m *Machine) strict(id term.ID, args []value.Value) (value.Value, bool) {
	row := prim.Get(id)
	n := uint64(0)
	switch {
	case row.Cost != nil:
		n = row.Cost(args)
	case row.Work != nil:
		n = row.Work(args, uint64(max(m.stepsIn()+int64(m.left)-m.pending(), 0)))
	}
	if n > 0 {
		if !m.work(n) {
			return nil, false
		}
		m.look(int(min(n, lookEvery)))
	}
	if row.Size != nil && row.Size(args) > m.budget.Memory {
		m.outOfMemory()
		return nil, false
	}
	var v value.Value
	var f *fault.Fault
	if row.Walk != nil && n > 0 {
		v, f = row.Walk(args, &prim.Meter{Left: prim.Unlimited, Look: m.look})
	} else {
		v, f = row.Eval(args)
	}
	m.paced()
	if f != nil {
		m.fail(f)
		return nil, false
	}
	return v, true
}

// through does a row that goes through values of any size, of the operands that a
// function gives, since they may move. Not ok: stop says whether Run has to return.
func (m *Machine) through(row *prim.Row, height int, operands func() []value.Value) (v value.Value, ok, stop bool) {
	left := uint64(max(m.stepsIn()+int64(m.left)-m.pending(), 0))
	var f *fault.Fault
	var used uint64
	if !m.walk(height, func() {
		meter := prim.Meter{Left: left, Memory: m.budget.Memory, Hold: m.borrow, Look: m.look}
		v, f = row.Walk(operands(), &meter)
		used = meter.Used()
	}) || used > 0 && !m.work(used) {
		return nil, false, true
	}
	m.paced()
	if f != nil {
		return nil, false, m.fail(f)
	}
	return v, true, false
}

// equal does the row equal, alone or where it jumps, of operands that aren't both
// small integers.
func (m *Machine) equal(in *code.Instr) bool {
	meta := &m.meta[m.index()]
	jump, height := in.Op != code.Eq, int(in.D)
	if jump {
		height = int(meta.Height)
	}
	operands := func() (a, b word) {
		if jump {
			return m.compared(in)
		}
		return *m.reg(in.B), *m.reg(in.C)
	}
	a, b := *m.reg(in.B), *m.reg(in.C)
	if jump {
		a, b = m.compared(in)
	}
	d, ok := m.compareShort(a, b)
	truth := d == 0
	switch {
	case ok:
	case atomic(a) || atomic(b):
		truth = a == b
	default:
		v, ok, stop := m.through(prim.Get(prim.Equal), height, func() []value.Value {
			a, b := operands()
			return []value.Value{m.lazy(a), m.lazy(b)}
		})
		if !ok {
			return stop
		}
		truth = bool(v.(value.Bool))
	}
	if jump {
		m.decide(in, truth)
	} else {
		*m.reg(in.A) = fromBool(truth)
	}
	return false
}

// atomic reports whether w is a truth value, null or the empty list, to which no
// other word is equal.
func atomic(w word) bool { return w == wTrue || w == wFalse || w == wUnit || w == wNil }

// paced counts for the slice what was copied out of the heap for an operation:
// it takes no steps, but a caller who wants to stop must get to it.
func (m *Machine) paced() {
	if m.copied >= 64 {
		m.effort(m.copied / 64)
	}
	m.copied = 0
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
func (m *Machine) compared(in *code.Instr) (a, b word) {
	a = *m.reg(in.A)
	switch m.meta[m.index()].Side {
	case code.ConstRight:
		return a, fromInt(constantOf(in))
	case code.ConstLeft:
		return fromInt(constantOf(in)), a
	case code.Swapped:
		return *m.reg(in.B), a
	}
	return a, *m.reg(in.B)
}

// constantOf returns the constant that an instruction compares with.
func constantOf(in *code.Instr) int64 { return int64(int16(uint16(in.B) | uint16(in.C)<<8)) }

// decide takes or doesn't take the jump of a comparison whose result is known.
func (m *Machine) decide(in *code.Instr, truth bool) {
	if meta := &m.meta[m.index()]; truth == code.JumpsWhen(in.Op, meta.Row, meta.Side) {
		m.fuel += in.K
		m.ip = unsafe.Add(unsafe.Pointer(in), int(in.D))
	}
}

// generic does a row of the table that has no instruction of its own.
func (m *Machine) generic(in *code.Instr) bool {
	id := term.ID(in.D)
	if f := natives[id]; f != nil {
		if done, stop := f(m, in); done {
			m.paced()
			return stop
		}
	}
	switch row := prim.Get(id); {
	case row.Analysis != nil:
		return m.analysis(in, row)
	case row.Walk != nil && row.Cost == nil:
		v, ok, stop := m.through(row, int(in.K), func() []value.Value { return m.operands(in) })
		if !ok {
			return stop
		}
		return m.give(in, v)
	}
	v, ok := m.strict(id, m.operands(in))
	return !ok || m.give(in, v)
}

// give returns what a row of the table gives; true: there was no room for it.
func (m *Machine) give(in *code.Instr, v value.Value) bool {
	w, ok := m.importValue(v, int(in.K))
	if !ok {
		return true
	}
	*m.reg(in.A) = w
	return false
}

// operands returns the operands of a row of the table.
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
		return m.mismatch(prim.Length, 0, w)
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

// effort counts work that costs no steps but counts for the slice, so that a caller
// who wants to stop the machine soon can.
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
	case m.state == Failed, meter.Used() > 0 && !m.work(meter.Used()): // there was no room, or are no steps
		return true
	case f != nil:
		return m.fail(f)
	}
	return m.give(in, v)
}

// giveBack returns to the pool what it lent and isn't held.
func (m *Machine) giveBack() {
	if spare := (m.lent - m.outside) / lending * lending; spare > 0 {
		pool.lend(m.stake, -spare)
		m.lent -= spare
	}
}
