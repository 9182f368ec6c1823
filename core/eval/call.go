package eval

import (
	"unsafe"

	"github.com/mcp-pif/mcp-pif/core/code"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// slowCall does a call that the loop couldn't: fuel or stack have run out, the
// callee isn't a function that takes just these arguments, or is none.
func (m *Machine) slowCall(in *code.Instr) bool {
	f := m.fuel + in.K
	switch in.Op {
	case code.Loop0, code.Loop1, code.Loop2, code.TailK, code.TailIn:
		return m.exhausted(f)
	case code.CallK, code.CallKReg:
		if spent(f) {
			return m.exhausted(f)
		}
		if !m.growStack(int(in.A), int(in.A)+int(in.B)+1) {
			return true
		}
		m.again()
		return false
	case code.CallKSubI:
		if f&guard == 0 {
			// Before the subtraction, which may be charged for.
			return m.exhausted(f)
		}
		if a := *m.reg(in.B); !isInt(a) || int64(a) < 2*code.MinInt+1024 {
			return m.arithmetic(in)
		}
		if spent(f) {
			return m.exhausted(f)
		}
		if !m.growStack(int(in.A), int(in.A)) {
			return true
		}
		m.again()
		return false
	case code.Check:
		return m.check(in)
	case code.Pend:
		return m.pend(in)
	}
	return m.apply(in)
}

// callKnown calls the function at D after its argument was put in its place.
func (m *Machine) callKnown(in *code.Instr, n int) bool {
	f := m.fuel + in.K
	if over := -(f&(1<<40-1) - guard); over > 0 && uint64(over) <= m.left {
		// What computing the argument took of the slice comes from the budget:
		// a pause here would compute, and charge for, the argument again.
		m.left -= uint64(over)
		m.fuel, f = m.fuel+over, f+over
	}
	if spent(f) {
		return m.exhausted(f)
	}
	if !m.growStack(int(in.A), int(in.A)+n+1) {
		return true
	}
	m.fuel = f
	m.frame(int(in.A), n)
	m.ip = unsafe.Add(m.cb, int(in.D))
	return false
}

// frame makes the window at register a the current one, for n arguments, with
// the next instruction to return to.
func (m *Machine) frame(a, n int) {
	nr := unsafe.Add(m.r, a*8)
	*(*word)(unsafe.Add(nr, (n+1)*8)) = word(uintptr(m.ip)-uintptr(m.cb)) | word(a)<<35
	m.r = nr
}

// apply calls what is in register A with B arguments, whatever it is. Three
// things can be there besides a function of B parameters: one that takes more
// (a partial application is made), a partial application, and what an earlier
// part of the same chain gave (see pend).
func (m *Machine) apply(in *code.Instr) bool {
	a, n, tail := int(in.A), int(in.B), in.Op == code.TailCall
	f := m.fuel + in.K
	if f&guard == 0 {
		return m.exhausted(f)
	}
	const room = 2 * 16
	if !m.reserve(room+m.copyWords(a), a+n+1) || !m.growStack(a, a+n+1) {
		return true
	}
	if v, used, ok := m.pendingValue(a); ok {
		*m.word(a) = v
		for i := 1; i+used <= n; i++ {
			*m.word(a + i) = *m.word(a + i + used)
		}
		n -= used
	}
	w := *m.word(a)
	if w&tagMask != tagClosure {
		return m.fail(prim.Mismatch(prim.App, 0, prim.Describe(m.sketch(w))))
	}
	n = m.spread(a, n)
	w = *m.word(a)
	h := *m.obj(w, 0)
	if arity := headerArity(h); n < arity {
		if in.C == 1 && !tail && f < 0 { // a fold's body counts even if it only makes a closure
			return m.exhausted(f)
		}
		p := m.partial(a, n)
		m.fuel = f - 1
		if tail {
			m.ret(p, in.C, code.Depth1)
			return false
		}
		m.fuel += code.Depth1
		*m.word(a) = p
		return false
	}
	if f < 0 {
		return m.exhausted(f)
	}
	m.fuel = f
	if tail {
		back := *m.reg(in.C)
		for i := 0; i <= n; i++ {
			*m.word(i) = *m.word(a + i)
		}
		*m.word(n + 1) = back
	} else {
		m.frame(a, n)
	}
	m.ip = unsafe.Add(m.cb, headerEntry(h))
	return false
}

// word returns register i, which may lie past those an instruction can name.
func (m *Machine) word(i int) *word { return (*word)(unsafe.Add(m.r, i*8)) }

// spread puts a partial application's arguments before the n that are at a+1,
// and its function at a. It returns how many there are then.
func (m *Machine) spread(a, n int) int {
	w := *m.word(a)
	if h := *m.obj(w, 0); headerKind(h) != kPartial {
		return n
	}
	k := int(*m.obj(w, 2) >> 1)
	for i := n; i > 0; i-- {
		*m.word(a + i + k) = *m.word(a + i)
	}
	for i := range k {
		*m.word(a + 1 + i) = *m.obj(w, 3+i)
	}
	*m.word(a) = *m.obj(w, 1)
	return n + k
}

// arity returns how many arguments the closure w still takes.
func (m *Machine) arity(w word) int {
	h := *m.obj(w, 0)
	if headerKind(h) == kPartial {
		return headerArity(*m.obj(*m.obj(w, 1), 0)) - int(*m.obj(w, 2)>>1)
	}
	return headerArity(h)
}

// partial makes the partial application of the function at a to n arguments.
// Room for it has been reserved.
func (m *Machine) partial(a, n int) word {
	m.restrict(a)
	size := even(n + 3)
	p := m.alloc(size)
	*m.at(p + word(size-1)*8) = 0
	*m.at(p) = closureHeader(size, 0, 255)&^(15<<4) | kPartial<<4
	*m.at(p + 8) = *m.word(a)
	*m.at(p + 16) = fromInt(int64(n))
	for i := range n {
		*m.at(p + 24 + word(i)*8) = *m.word(a + 1 + i)
	}
	return p | tagClosure
}

// pendingValue returns what an earlier part of the chain at a gave, and how
// many arguments it used.
func (m *Machine) pendingValue(a int) (v word, used int, ok bool) {
	w := *m.word(a)
	if w&tagMask != tagBox || headerKind(*m.obj(w, 0)) != kPending {
		return 0, 0, false
	}
	return *m.obj(w, 1), int(*m.obj(w, 2) >> 1), true
}

// check stands between two arguments of a call whose callee is only known
// now: A holds it, B of C arguments are there. A callee that takes all C was
// passed by the loop. One that takes more than B has nothing to do yet. One
// that takes exactly B is called now, before the next argument is evaluated,
// and comes back to the Pend instruction that follows.
func (m *Machine) check(in *code.Instr) bool {
	a, n := int(in.A), int(in.B)
	v, used, pending := m.pendingValue(a)
	if !pending {
		v, used = *m.word(a), 0
	}
	if v&tagMask != tagClosure {
		return m.fail(prim.Mismatch(prim.App, 0, prim.Describe(m.sketch(v))))
	}
	have := n - used
	if have < m.arity(v) {
		m.ip = unsafe.Add(m.ip, code.InstrSize)
		return false
	}
	f := m.fuel - m.pending() - code.Depth1
	if spent(f) {
		return m.exhausted(f)
	}
	if !m.growStack(a+used, a+n+1) {
		return true
	}
	if v, _, ok := m.pendingValue(a); ok {
		*m.word(a + used) = v
	}
	total := m.spread(a+used, have)
	h := *m.obj(*m.word(a + used), 0)
	m.fuel = f
	m.frame(a+used, total)
	m.ip = unsafe.Add(m.cb, headerEntry(h))
	return false
}

// pend takes the result of the call that check made, and keeps it with the
// count of arguments used where the callee of the chain is looked for.
func (m *Machine) pend(in *code.Instr) bool {
	a := int(in.A)
	if !m.reserve(4, a+int(in.B)+1) {
		return true
	}
	_, used, ok := m.pendingValue(a)
	if !ok {
		used = 0
	}
	p := m.alloc(4)
	*m.at(p) = header(kPending, 4)
	*m.at(p + 8) = *m.word(a + used)
	*m.at(p + 16) = fromInt(int64(in.B))
	*m.at(p + 24) = 0
	*m.word(a) = p | tagBox
	// The path goes on as if this application had made a closure, which is
	// one step; it made none. What the path had counted was charged.
	m.fuel += in.K + 1
	return false
}

// applyRoot calls the closure in R0 with the argument in R1, to return to halt.
func (m *Machine) applyRoot() {
	if !m.reserve(2*16+m.copyWords(0), 2) {
		return
	}
	n := m.spread(0, 1)
	w := *m.word(0)
	h := *m.obj(w, 0)
	if n < headerArity(h) {
		if !m.charge(1) {
			return
		}
		m.applied(m.partial(0, n))
		return
	}
	*m.word(n + 1) = 0
	m.ip = unsafe.Add(m.cb, headerEntry(h))
}
