package eval

import (
	"unsafe"

	"github.com/mcp-pif/mcp-pif/core/code"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// The order of a run: the code, then each input, with the application of what
// there is by then, until the result is there.

// enterCode starts the evaluation of the program's code, and reports whether all that is
// left to do is to run its function.
func (m *Machine) enterCode() bool {
	u := m.unit
	if u.Root != nil && u.Root.Arity == 1 && m.input != nil && m.stepsIn() >= 3 {
		if n, ok := wordOf(m.input); ok {
			// The usual case of what follows, in one: the closure, a number,
			// the application.
			m.fuel -= 3
			m.enterRoot(u.Root, n)
			return true
		}
	}
	if u.Root != nil {
		// The code is a lambda: one step gives its closure.
		if m.charge(1) {
			m.enterInput()
		}
		for m.phase == inNext {
			m.enterInput()
		}
		return false
	}
	m.enter(u.Entry)
	return false
}

// wordOf returns an input that is the only one and fits a word.
func wordOf(input *Program) (word, bool) {
	n, ok := input.Term.(*term.Int)
	if !ok || !fitsWord(n.Value) || input.Next != nil {
		return 0, false
	}
	return fromInt(n.Value), true
}

// enter starts the function of no parameters at the offset.
func (m *Machine) enter(at int32) {
	*(*word)(unsafe.Add(m.r, 8)) = 0
	m.ip = unsafe.Add(m.cb, at)
}

// next goes on after code that ran to its end, and gave w.
func (m *Machine) next(w word) {
	switch m.phase {
	case inBody:
		m.applied(w)
	case inCode:
		if w&tagMask != tagClosure {
			m.finish(w)
			return
		}
		m.held = w
		if m.prog.IsTool {
			m.self = w
		}
		m.enterInput()
	case inInput:
		m.enterBody(w)
	}
	for m.phase == inNext {
		m.enterInput()
	}
}

func (m *Machine) finish(w word) {
	m.result, m.phase = w, ended
	if m.settle() {
		m.state = Done
	}
}

// settle pays what was charged without being checked; false: it can't be paid.
func (m *Machine) settle() bool {
	// Returns charge without checking: what they took beyond the slice is
	// still to be had, or not.
	if over := -m.stepsIn(); over > 0 {
		if uint64(over) > m.left {
			m.outOfFuel()
			return false
		}
		m.left -= uint64(over)
		m.fuel += over
	}
	return true
}

// applied goes on with what the function gave for an input.
func (m *Machine) applied(w word) {
	if m.input == nil || m.input.Next == nil {
		m.finish(w)
		return
	}
	if w&tagMask != tagClosure {
		if m.settle() {
			f := prim.Mismatch(prim.App, 0, prim.Describe(m.sketch(w)))
			m.fault, m.state = f, Failed
			m.locate(f, &m.units[0], m.prog.Term.Pos())
		}
		return
	}
	m.held, m.input = w, m.input.Next
	m.phase, m.further = inNext, true
}

// enterInput evaluates the input; the function is in held, or is the root for
// the first one.
func (m *Machine) enterInput() {
	m.phase = inInput
	if m.input == nil {
		if m.charge(1) {
			m.enterBody(wUnit)
		}
		return
	}
	if steps, ok := code.ConstSteps(m.input.Term); ok {
		if !m.charge(uint64(steps)) {
			return
		}
		w, ok := m.importTerm(m.input.Term, 0)
		if large := m.input.Large; large != nil {
			m.input = &Program{Next: m.input.Next}
			large.Imported()
		}
		if ok {
			m.enterBody(w)
		}
		return
	}
	// What the program evaluates may be around its functions.
	u := m.link(m.input.Term, m.input.Source, code.Options{Narrows: m.unit.Narrows, Look: m.look}, &context{library: m.main.library, outside: true})
	if u == nil {
		m.outOfMemory()
		return
	}
	m.units[len(m.units)-1].input = true
	// Its windows may be wider than those the stack was begun for, and a
	// function of it may be entered by a tail call, which doesn't look.
	if !m.growStack(0, 0) {
		return
	}
	if u.Root != nil {
		if !m.charge(1) || !m.reserve(2, 0) {
			return
		}
		m.enterBody(m.closureOf(u.Root))
		return
	}
	m.enter(u.Entry)
}

// enterBody applies the program's function to its input.
func (m *Machine) enterBody(input word) {
	m.phase = inBody
	if !m.charge(1) {
		return
	}
	root := m.unit.Root
	if m.further {
		root = nil // the function is what came of the input before
	}
	if root != nil && root.Arity == 1 {
		m.enterRoot(root, input)
		return
	}
	if root != nil {
		m.held = input
		if !m.reserve(2, 0) {
			return
		}
		input = m.held
		m.held = m.closureOf(root)
	}
	*(*word)(m.r) = m.held
	*(*word)(unsafe.Add(m.r, 8)) = input
	m.applyRoot()
}

// enterRoot starts a function of one parameter.
func (m *Machine) enterRoot(f *code.Func, input word) {
	m.phase = inBody
	*(*word)(unsafe.Add(m.r, 8)) = input
	*(*word)(unsafe.Add(m.r, 16)) = 0
	m.ip = unsafe.Add(m.cb, f.Entry)
}

// closureOf makes the closure of a function that captures nothing. Room for
// it has been reserved.
func (m *Machine) closureOf(f *code.Func) word {
	p := m.alloc(2)
	*m.at(p), *m.at(p + 8) = closureHeader(2, f.Entry, f.Arity), 0
	return p | tagClosure
}

// charge takes steps outside the loop; false: the run is out of fuel or its
// slice, which is then made larger by what is left.
func (m *Machine) charge(steps uint64) bool {
	for int64(steps) > m.stepsIn() {
		if m.left == 0 {
			m.outOfFuel()
			return false
		}
		// Whole units of work are not cut by a slice.
		more := min(m.left, steps)
		m.left -= more
		m.fuel += int64(more)
	}
	m.fuel -= int64(steps)
	return true
}
