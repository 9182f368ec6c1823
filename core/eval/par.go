package eval

import (
	"slices"
	"unsafe"

	"github.com/mcp-pif/mcp-pif/core/code"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A par is the branches of a par under way. All its branches run at the same
// place of the stack, from base on, so that what of the stack belongs to one
// that waits is copied out, and in again when it goes on: offsets and handlers
// in it stay what they are. Pars inside each other are a tree; Machine.par is
// the one whose branch now is the machine's stack and registers.
type par struct {
	parent   *par
	base     int // the index on the stack of its register A
	was      state
	instr    int // index of its Par instruction
	branches []branch
	now      int // the branch that runs, or did last
	limit    int // branches from here on are abandoned, or there are none
	// fault is that of branch limit, and caught what it becomes for a try.
	fault  *fault.Fault
	caught word
	place  int // in Machine.pars
	bytes  int64
}

// A state is what a branch has besides its part of the stack.
type state struct {
	r, ip   int // the window, an index on the stack, and an offset in the code
	depth   int64
	handler int
	dyn     int
	self    word
}

// A branch of a par.
type branch struct {
	status status
	value  word
	stack  []word
	at     state
	child  *par // what it waits for, if that is no request
	asked  int  // which request of the round it waits for otherwise
}

type status uint8

const (
	fresh status = iota
	waiting
	finished
)

const (
	parBytes    = int64(unsafe.Sizeof(par{}))
	branchBytes = int64(unsafe.Sizeof(branch{}))
)

// move moves everything in the par, for the collector.
func (t *par) move(g *gc) {
	t.was.self, t.caught = g.move(t.was.self), g.move(t.caught)
	for i := range t.branches {
		b := &t.branches[i]
		b.value, b.at.self = g.move(b.value), g.move(b.at.self)
		for i, w := range b.stack {
			b.stack[i] = g.move(w)
		}
	}
}

// hold counts bytes that are neither in the heap nor on the stack. Registers
// below height are alive. false: there is no room for them.
func (m *Machine) hold(bytes int64, height int) bool {
	m.owe(bytes)
	return m.covered() && m.reserve(0, height)
}

// owe counts bytes as hold does, for which room is to be found by covered.
func (m *Machine) owe(bytes int64) {
	m.extra += bytes
	m.outside += bytes
}

// covered finds room for what is owed: in the pool, and beside the heap.
func (m *Machine) covered() bool {
	if !m.lend() {
		return false
	}
	m.hlim = min(m.hlim, m.heapBudget())
	return true
}

// lend has the pool lend what is owed; false: it has no room.
func (m *Machine) lend() bool {
	for m.outside > m.lent {
		if !pool.lend(m.stake, lending) {
			m.overloaded()
			return false
		}
		m.lent += lending
	}
	return true
}

// lending is how much the pool lends at a time.
const lending = 256 << 10

func (m *Machine) drop(bytes int64) {
	m.extra -= bytes
	m.outside -= bytes
}

// forget drops all that acting has left.
func (m *Machine) forget() {
	if m.lent > 0 {
		pool.lend(m.stake, -m.lent)
	}
	m.acted, m.dyn, m.par, m.pars, m.answers = false, 0, nil, nil, nil
	m.asked, m.outside, m.lent = 0, 0, 0
	m.auths, m.authOf, m.narrow, m.places, m.callees, m.names = nil, nil, nil, nil, nil, nil
}

// top returns the index on the stack of register i.
func (m *Machine) top(i int) int {
	return int((uintptr(m.r)-uintptr(unsafe.Pointer(unsafe.SliceData(m.stack))))/8) + i
}

func (m *Machine) now() state {
	return state{m.top(0), int(uintptr(m.ip) - uintptr(m.cb)), m.fuel >> 40, m.handler, m.dyn, m.self}
}

func (m *Machine) become(s state) {
	m.r = unsafe.Pointer(&m.stack[s.r])
	m.ip = unsafe.Add(m.cb, s.ip)
	m.fuel = m.fuel&(1<<40-1) | s.depth<<40
	m.handler, m.dyn, m.self = s.handler, s.dyn, s.self
}

// startPar begins a par with its first branch.
func (m *Machine) startPar(in *code.Instr) bool {
	f := m.fuel + in.K
	if spent(f) {
		return m.exhausted(f)
	}
	n := int(in.D)
	bytes := parBytes + int64(n)*branchBytes
	if !m.hold(bytes, int(in.A)) {
		return true
	}
	m.fuel = f
	t := &par{parent: m.par, base: m.top(int(in.A)), was: m.now(), instr: m.index(), branches: make([]branch, n), now: -1, limit: n, place: len(m.pars), bytes: bytes}
	m.acted = true
	m.pars = append(m.pars, t)
	m.par = t
	m.proceed()
	return m.state != Paused
}

// branchAt returns the offset of where branch i begins; one more than there are is
// the end.
func (m *Machine) branchAt(t *par, i int) int {
	at := t.instr + 1 + i
	return at*code.InstrSize + int(m.instrs[at].D)
}

// endBranch ends the branch that runs with a value.
func (m *Machine) endBranch(in *code.Instr) bool {
	f := m.fuel + in.K
	if f&guard == 0 {
		return m.exhausted(f)
	}
	m.fuel = f
	b := &m.par.branches[m.par.now]
	b.status, b.value = finished, *m.reg(in.A)
	m.proceed()
	return m.state != Paused
}

// failBranch ends the branch that runs with a fault: those behind it are
// abandoned. Its place and kind are known, and its path is charged.
func (m *Machine) failBranch(f *fault.Fault) {
	t := m.par
	m.r = unsafe.Pointer(&m.stack[t.was.r])
	w, ok := m.importValue(value.Caught(f), t.base-t.was.r)
	if !ok {
		return
	}
	f.Raised = said(f.Raised)
	for i := t.now; i < t.limit; i++ {
		m.abandon(&t.branches[i])
	}
	t.limit, t.fault, t.caught = t.now, f, w
	m.proceed()
}

// abandon drops what a branch holds, with all pars in it.
func (m *Machine) abandon(b *branch) {
	todo := []*branch{b}
	for len(todo) > 0 {
		b := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		m.drop(int64(len(b.stack)) * 8)
		if t := b.child; t != nil {
			for i := range t.branches {
				todo = append(todo, &t.branches[i])
			}
			m.remove(t)
		}
		*b = branch{status: finished, value: wUnit}
	}
}

// remove takes a par out of those that are under way.
func (m *Machine) remove(t *par) {
	last := m.pars[len(m.pars)-1]
	m.pars[t.place], last.place = last, t.place
	m.pars[len(m.pars)-1] = nil
	m.pars = m.pars[:len(m.pars)-1]
	m.drop(t.bytes)
}

// ask has the branch that runs wait for a request. Registers below height are
// its own, and what it asks with takes so many bytes.
func (m *Machine) ask(r Request, height int, bytes int64) bool {
	var path []byte
	for t := m.par; t != nil; t = t.parent {
		// The digits backwards, as the branches are met.
		for n := t.now; ; n /= 10 {
			path = append(path, byte('0'+n%10))
			if n < 10 {
				break
			}
		}
		path = append(path, '.')
	}
	path = path[:len(path)-1]
	slices.Reverse(path)
	r.Branch = string(path)
	size := int64(unsafe.Sizeof(r)) + int64(len(path)) + bytes
	m.asked += size
	if !m.hold(size, height) || !m.wait(height) {
		return true
	}
	m.par.branches[m.par.now].asked = len(m.requests)
	m.requests = append(m.requests, r)
	m.proceed()
	return m.state != Paused
}

// wait saves the branch that runs; registers below height are its own.
func (m *Machine) wait(height int) bool {
	t := m.par
	b := &t.branches[t.now]
	n := m.top(height) - t.base
	if !m.hold(int64(n)*8, height) {
		return false
	}
	b.status, b.at = waiting, m.now()
	b.stack = slices.Clone(m.stack[t.base : t.base+n])
	m.effort(1 + n/64)
	return true
}

// nextRound goes on with all branches that wait.
func (m *Machine) nextRound(answers []Answer) {
	m.answers = slices.Clone(answers)
	m.drop(m.asked)
	m.asked = 0
	t := m.par
	t.now = -1
	m.proceed()
}

// proceed goes on with the next branch of this round, or where there is none
// with what is after the par, or ends the round.
func (m *Machine) proceed() {
	for m.state == Paused {
		t := m.par
		if t.now++; t.now < t.limit {
			b := &t.branches[t.now]
			switch {
			case b.status == finished:
				continue
			case b.status == fresh:
				s := t.was
				s.ip, s.handler = m.branchAt(t, t.now), -1
				m.become(s)
				return
			}
			if !m.restoreBranch(t, b) {
				return
			}
			if b.child != nil {
				m.par, b.child = b.child, nil
				m.par.now = -1
				continue
			}
			m.deliver(m.answers[b.asked])
			return
		}
		if unfinished(t) {
			p := t.parent
			if p == nil {
				m.state, m.par, m.answers = Suspended, t, nil
				return
			}
			// What is below this par belongs to the branch that it is in.
			m.become(t.was)
			m.par = p
			if !m.wait(t.base - t.was.r) {
				return
			}
			p.branches[p.now].child = t
			continue
		}
		m.endPar(t)
		return
	}
}

func unfinished(t *par) bool {
	return slices.ContainsFunc(t.branches[:t.limit], func(b branch) bool { return b.status != finished })
}

// restoreBranch puts a branch that waits back on the stack.
func (m *Machine) restoreBranch(t *par, b *branch) bool {
	m.r = unsafe.Pointer(&m.stack[t.was.r])
	if height := t.base - t.was.r; !m.growStack(height+len(b.stack), height) {
		return false
	}
	copy(m.stack[t.base:], b.stack)
	m.become(b.at)
	m.drop(int64(len(b.stack)) * 8)
	m.effort(1 + len(b.stack)/64)
	b.stack = nil
	return true
}

// endPar goes on after a par whose branches have come to their ends.
func (m *Machine) endPar(t *par) {
	m.become(t.was)
	m.fuel += code.Depth1
	if m.par = t.parent; m.par == nil {
		m.answers = nil
	}
	if t.fault != nil {
		m.remove(t)
		m.failAt(t)
		return
	}
	// The par stays until the list is there: it holds the values.
	height := t.base - t.was.r
	if !m.reserve(listWords(len(t.branches)), height) {
		return
	}
	*m.word(height) = m.makeList(len(t.branches), func(i int) word { return t.branches[i].value })
	m.ip = unsafe.Add(m.cb, m.branchAt(t, len(t.branches)))
	m.remove(t)
}

// failAt goes on with the fault of a par's branch, outside it.
func (m *Machine) failAt(t *par) {
	switch {
	case m.handler >= 0:
		in := m.handle()
		*m.reg(in.A) = t.caught
	case m.par == nil:
		m.fault, m.state = t.fault, Failed
	default:
		p := m.par
		for i := p.now; i < p.limit; i++ {
			m.abandon(&p.branches[i])
		}
		p.limit, p.fault, p.caught = p.now, t.fault, t.caught
		m.proceed()
	}
}
