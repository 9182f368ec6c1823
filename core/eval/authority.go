package eval

import (
	"encoding/binary"
	"slices"
	"unsafe"

	"github.com/mcp-pif/mcp-pif/core/code"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// An authority is what the evals around permit, as lists of capabilities (see
// [value.Request.With]). A machine numbers those it meets; 0 is all there is.
// Machine.dyn is what is permitted now. Where evals may narrow at all, a function
// holds that of its creation as the first captured value, the word for it is its
// number, and narrows it to that where it begins.
type authority = [][]string

// authorityBytes is about what an authority takes besides its lists.
const authorityBytes = 96

// intern gives an authority its number.
func (m *Machine) intern(a authority) int {
	if len(a) == 0 {
		return 0
	}
	var key []byte
	for _, list := range a {
		key = binary.AppendUvarint(key, uint64(len(list)))
		for _, text := range list {
			key = append(binary.AppendUvarint(key, uint64(len(text))), text...)
		}
	}
	if id, ok := m.authOf[string(key)]; ok {
		return id
	}
	if m.authOf == nil {
		m.authOf = make(map[string]int)
	}
	m.acted = true
	m.auths = append(m.auths, a)
	m.authOf[string(key)] = len(m.auths)
	m.extra += authorityBytes + 24*int64(len(a)) + int64(len(key))
	m.hlim = min(m.hlim, m.heapBudget())
	return len(m.auths)
}

// lists returns the authority of a number.
func (m *Machine) lists(id int) authority {
	if id == 0 {
		return nil
	}
	return m.auths[id-1]
}

// both returns the authority that permits what both do.
func (m *Machine) both(a, b int) int {
	if a == b || b == 0 {
		return a
	}
	if a == 0 {
		return b
	}
	key := [2]int32{int32(a), int32(b)}
	id, ok := m.narrow[key]
	if !ok {
		id = m.intern(value.Narrow(m.lists(a), m.lists(b)))
		m.remember(key, id)
	}
	return id
}

// narrowed returns the authority under way inside an eval of the scope; false: there
// is no memory for it.
func (m *Machine) narrowed(sc *code.Scope, index int) (int, bool) {
	key := [2]int32{int32(m.dyn), int32(-1 - index)}
	id, ok := m.narrow[key]
	if !ok {
		id = m.intern(value.Narrow(m.lists(m.dyn), value.Within(sc.With)))
		m.remember(key, id)
	}
	return id, m.heapBudget() > 0
}

func (m *Machine) remember(key [2]int32, id int) {
	if m.narrow == nil {
		m.narrow = make(map[[2]int32]int)
	}
	m.narrow[key] = id
	m.extra += 32
}

// enterEval makes the window for evaluated code, whose closure is in register
// A. Where the eval narrows what is permitted, a frame before it puts that back:
// what was permitted, and the word that says where the eval returns to.
func (m *Machine) enterEval(in *code.Instr, dyn int) {
	a := int(in.A)
	closure := *m.word(a)
	tail := in.Op == code.TailEval
	switch {
	case dyn == m.dyn && !tail:
		m.frame(a, 0)
		return
	case dyn == m.dyn:
		back := *m.reg(in.C)
		*m.word(0), *m.word(1) = closure, back
		return
	case !tail:
		m.frame(a, 0)
	default:
		*m.word(1) = *m.reg(in.C)
	}
	*m.word(0) = fromInt(int64(m.dyn))
	m.dyn = dyn
	m.enterAbove(2, code.AtRestore)
	*m.word(0) = closure
}

// enterAbove makes the window that starts at register a the current one, whose
// function of no parameters returns to the instruction at an offset.
func (m *Machine) enterAbove(a int, to uintptr) {
	m.r = unsafe.Add(m.r, a*8)
	*m.word(1) = word(to) | word(a)<<35
}

// enterNarrowed narrows what is permitted for the function that begins, whose
// return word is in register A. Where that changes anything, its window moves
// up by two words for a frame like that of an eval.
func (m *Machine) enterNarrowed(in *code.Instr) bool {
	dyn := m.both(m.dyn, int(toInt(*m.obj(*m.word(0), 1))))
	if m.heapBudget() == 0 {
		return m.outOfMemory()
	}
	if dyn == m.dyn {
		return false
	}
	n := int(in.A)
	if !m.growStack(2, n+1) {
		return true
	}
	back := *m.word(n)
	for i := n - 1; i >= 0; i-- {
		*m.word(i + 2) = *m.word(i)
	}
	*m.word(0), *m.word(1) = fromInt(int64(m.dyn)), back
	m.dyn = dyn
	m.r = unsafe.Add(m.r, 2*8)
	*m.word(n) = word(code.AtRestore) | 2<<35
	return false
}

// restore ends an eval or a function that narrowed what is permitted: its result is in
// register 2.
func (m *Machine) restore() {
	m.dyn = int(toInt(*m.word(0)))
	m.back(*m.word(1), *m.word(2))
}

// back returns w from the current window to where a return word says.
func (m *Machine) back(to, w word) {
	*m.word(0) = w
	m.r = unsafe.Add(m.r, -int(to>>32))
	m.ip = unsafe.Add(m.cb, uintptr(uint32(to)))
}

// acting reports whether the closure w, no partial application, holds its
// authority as the first captured value and stands for several functions.
func (m *Machine) acting(w word) bool {
	entry := int32(headerEntry(*m.obj(w, 0)))
	u := m.unitAt(int(entry) / code.InstrSize)
	_, ok := slices.BinarySearch(u.acting, entry)
	return ok
}

// restrict gives the function in register a, which is going to be applied to
// too few arguments, the authority that there is now: the function that comes
// of it is made here. Room for a copy has been reserved.
func (m *Machine) restrict(a int) {
	w := *m.word(a)
	if m.dyn == 0 || !m.acting(w) {
		return
	}
	had := int(toInt(*m.obj(w, 1)))
	has := m.both(had, m.dyn)
	if has == had {
		return
	}
	n := headerWords(*m.obj(w, 0))
	p := m.alloc(n)
	for i := range n {
		*m.at(p + word(i)*8) = *m.obj(w, i)
	}
	*m.at(p + 8) = fromInt(int64(has))
	*m.word(a) = p | tagClosure
}

// copyWords returns how many words restrict may need for the function at a, which
// may be a partial application, or what an earlier part of the chain gave.
func (m *Machine) copyWords(a int) int {
	if m.dyn == 0 {
		return 0
	}
	w := *m.word(a)
	if v, _, ok := m.pendingValue(a); ok {
		w = v
	}
	if w&tagMask != tagClosure {
		return 0
	}
	h := *m.obj(w, 0)
	if headerKind(h) == kPartial {
		h = *m.obj(*m.obj(w, 1), 0)
	}
	return headerWords(h)
}
