package eval

import (
	"github.com/mcp-pif/mcp-pif/core/code"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// natives are the rows that the machine does on its own objects, in place of
// the row's Eval: those whose cost would otherwise be the size of their
// operands. They do what Eval does, to the letter of its faults; where an
// operand is of a wrong kind they leave it to Eval.
var natives = func() map[term.ID]func(m *Machine, in *code.Instr) (done, stop bool) {
	fs := map[term.ID]func(m *Machine, in *code.Instr) (done, stop bool){}
	for name, f := range map[string]func(m *Machine, in *code.Instr) (done, stop bool){
		"get": (*Machine).nativeGet,
		"has": (*Machine).nativeHas,
		"put": (*Machine).nativePut,
		"del": (*Machine).nativeDel,
	} {
		if id, _, ok := prim.Lookup(name); ok {
			fs[id] = f
		}
	}
	return fs
}()

// native does the row if it is one of natives and its operands are of the
// kinds it takes; done is false otherwise.
func (m *Machine) native(in *code.Instr, id term.ID) (done, stop bool) {
	if f, ok := natives[id]; ok {
		return f(m, in)
	}
	return false, false
}

// field returns the record and key that are the first two operands.
func (m *Machine) field(in *code.Instr) (rec, key word, ok bool) {
	rec, key = *m.reg(in.C), *m.reg(in.C + 1)
	return rec, key, m.isRecord(rec) && m.isString(key)
}

func (m *Machine) nativeGet(in *code.Instr) (done, stop bool) {
	rec, key, ok := m.field(in)
	if !ok {
		return false, false
	}
	w, ok := m.recordGet(rec, m.view(key))
	if !ok {
		if in.B < 3 {
			return false, false
		}
		w = *m.reg(in.C + 2)
	}
	*m.reg(in.A) = w
	return true, false
}

func (m *Machine) nativeHas(in *code.Instr) (done, stop bool) {
	rec, key, ok := m.field(in)
	if !ok {
		return false, false
	}
	_, has := m.recordGet(rec, m.view(key))
	*m.reg(in.A) = fromBool(has)
	return true, false
}

func (m *Machine) nativePut(in *code.Instr) (done, stop bool) {
	if _, _, ok := m.field(in); !ok {
		return false, false
	}
	if !m.reserve(putWords+strWords(m.strLen(*m.reg(in.C + 1))), int(in.K)) {
		return true, true
	}
	rec, key, _ := m.field(in)
	if headerKind(*m.obj(key, 0)) != kStr {
		key = m.newString(m.goString(key))
	}
	*m.reg(in.A) = m.recordPut(rec, key, *m.reg(in.C + 2))
	return true, false
}

func (m *Machine) nativeDel(in *code.Instr) (done, stop bool) {
	if _, _, ok := m.field(in); !ok {
		return false, false
	}
	if !m.reserve(putWords, int(in.K)) {
		return true, true
	}
	rec, key, _ := m.field(in)
	*m.reg(in.A) = m.recordDel(rec, m.view(key))
	return true, false
}
