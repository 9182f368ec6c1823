package code_test

import (
	"fmt"

	"github.com/mcp-pif/mcp-pif/core/code"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// A state is what is known where an instruction is reached, whichever way.
type state struct {
	defined [256]bool // registers that hold a value of this call
	ret     int       // the register of the return word
	depth   int       // what the path has changed the depth by since the function was entered
	fn      *function
}

// A function is an entry point with what a call of it brings.
type function struct {
	entry int // index
	args  int
	gives int // what its return changes the depth by: 1, or 0 for an outlined part
	caps  int // values its closure holds; 0 where it may have none
}

// A verifier walks a unit's code along every path and checks what the machine
// relies on without looking: that jumps and calls lead to instructions, that
// registers are written before they are read and lie inside the window, that
// the return word is where a return looks for it and nothing overwrites it,
// that what the collector is told to keep is there, that each path charges its
// steps once and takes as much depth as it gives back.
type verifier struct {
	u        *code.Unit
	o        code.Options
	source   int // length of the source
	states   []*state
	todo     []int
	entries  map[int]*function
	caps     map[int]int // how many values the closure of a function holds, by its index
	workers  map[int]bool
	flows    map[int]bool // what is reached otherwise than by a call
	windows  [256]bool    // registers where the window of a known call starts
	problems []string
}

// verify gives what is wrong with a unit that was compiled with o from a source
// of so many bytes.
func verify(u *code.Unit, o code.Options, source int) []string {
	v := &verifier{
		u: u, o: o, source: source, states: make([]*state, len(u.Code)),
		entries: map[int]*function{}, caps: map[int]int{}, workers: map[int]bool{}, flows: map[int]bool{},
	}
	if len(u.Meta) != len(u.Code) {
		return []string{fmt.Sprintf("%d instructions with %d places", len(u.Code), len(u.Meta))}
	}
	for i, m := range u.Meta {
		if pos := u.Uses.Blame(&fault.Fault{}, int(m.Pos)); pos < 0 || pos > source || m.Pend < 0 {
			v.bad(i, "the place is %d with %d steps", m.Pos, m.Pend)
		}
	}
	v.closures()
	if u.Root != nil {
		v.enterFunc(-1, u.Root, true)
	} else {
		v.enter(-1, u.Entry, function{gives: 1}, true)
		for _, c := range u.Captures {
			if int(c) >= len(o.Scope) {
				v.bad(-1, "captures variable %d of %d", c, len(o.Scope))
			}
		}
	}
	for i := range u.Consts {
		if f := u.Consts[i].Func; f != nil {
			v.enterFunc(-1, f, true)
		}
	}
	for len(v.todo) > 0 && len(v.problems) < 10 {
		i := v.todo[len(v.todo)-1]
		v.todo = v.todo[:len(v.todo)-1]
		s := *v.states[i]
		v.step(i, &s)
	}
	for i := range v.entries {
		if v.flows[i] && !v.workers[i] {
			v.bad(i, "is called, and lies in the middle of a function")
		}
	}
	return v.problems
}

// closures finds what the closure of each function holds.
func (v *verifier) closures() {
	if v.u.Root == nil {
		v.caps[v.index(-1, v.u.Entry)] = len(v.u.Captures)
	}
	for i := 0; i < len(v.u.Code); i++ {
		if in := &v.u.Code[i]; in.Op == code.Closure {
			n := int(in.B) + int(in.C)<<8
			v.caps[v.index(i, in.D)] = n
			i += code.CapsLen(n)
		}
	}
	// A call of a known function has a window, and so has one that gives fewer
	// arguments than it takes and makes a closure, or finds one, instead.
	for i := range v.u.Code {
		switch in := &v.u.Code[i]; in.Op {
		case code.CallK, code.CallKReg, code.CallKSubI, code.TailK, code.Closure:
			v.windows[in.A] = true
		case code.LoadK:
			v.windows[in.A] = v.windows[in.A] || v.function(in)
		}
	}
	for _, kin := range v.u.Kin {
		n := 0
		for _, entry := range kin {
			n = max(n, v.caps[v.index(-1, entry)])
		}
		for _, entry := range kin {
			v.caps[v.index(-1, entry)] = n
		}
	}
	// The function of a program that holds its authority has a closure whose
	// first captured value is 0.
	for _, entry := range v.u.Acting {
		if i := v.index(-1, entry); v.u.Root != nil && v.u.Root.Entry == entry {
			v.caps[i] = 1
		} else if v.caps[i] == 0 {
			v.bad(i, "is said to hold its authority, and captures nothing")
		}
	}
	// A worker has the closure of its function, at whose start is an Unpair.
	for i := range v.u.Code {
		if in := &v.u.Code[i]; in.Op == code.Unpair {
			worker := i + int(in.D)/code.InstrSize
			v.caps[worker], v.workers[worker] = v.caps[i], true
		}
	}
}

func (v *verifier) bad(i int, format string, args ...any) {
	where := "the unit"
	if i >= 0 {
		where = fmt.Sprintf("instruction %d %+v %+v", i, v.u.Code[i], v.u.Meta[i])
	}
	v.problems = append(v.problems, where+": "+fmt.Sprintf(format, args...))
}

// index turns a code offset into an index; −1: it is none.
func (v *verifier) index(from int, offset int32) int {
	i := int(offset-v.o.Base) / code.InstrSize
	if (offset-v.o.Base)%code.InstrSize != 0 || offset < v.o.Base || i >= len(v.u.Code) {
		v.bad(from, "the offset %d is not in the code", offset)
		return -1
	}
	return i
}

func (v *verifier) enterFunc(from int, f *code.Func, closure bool) {
	v.enter(from, f.Entry, function{args: f.Arity, gives: 1}, closure)
}

// enter notes a call of a function: with its arguments, the return word after
// them, and its closure if there is one.
func (v *verifier) enter(from int, entry int32, f function, closure bool) {
	i := v.index(from, entry)
	if i < 0 {
		return
	}
	known := v.entries[i]
	if known == nil {
		f.entry, f.caps = i, v.caps[i]
		known = &f
		v.entries[i] = known
	} else if known.args != f.args || known.gives != f.gives {
		v.bad(from, "the function at %d takes %d arguments (%d), here %d (%d)", i, known.args, known.gives, f.args, f.gives)
	}
	s := &state{fn: known, ret: known.args + 1}
	for r := 1; r <= s.ret; r++ {
		s.defined[r] = true
	}
	s.defined[0] = closure
	v.reach(from, i, s)
}

// reach merges a state into that of an instruction.
func (v *verifier) reach(from, i int, s *state) {
	if i < 0 || i >= len(v.u.Code) {
		v.bad(from, "leads to instruction %d of %d", i, len(v.u.Code))
		return
	}
	v.flows[i] = v.flows[i] || s.fn.entry != i
	old := v.states[i]
	if old == nil {
		mine := *s
		v.states[i] = &mine
		v.todo = append(v.todo, i)
		return
	}
	// A part that a worker shares with its function has one of both as its own.
	if old.ret != s.ret || old.depth != s.depth || old.fn.gives != s.fn.gives {
		v.bad(from, "reaches %d with return in %d and depth %+d, others with %d and %+d", i, s.ret, s.depth, old.ret, old.depth)
		return
	}
	changed := false
	for r := range old.defined {
		if old.defined[r] && !s.defined[r] {
			old.defined[r], changed = false, true
		}
	}
	if changed {
		v.todo = append(v.todo, i)
	}
}

// split takes the change of the fuel word apart: depth, and steps (negative
// where they are charged).
func split(k int64) (depth int, steps int64) {
	depth = int((k + code.Depth1/2) >> 40)
	return depth, k - int64(depth)*code.Depth1
}

// reads checks that a register holds a value.
func (v *verifier) reads(i int, s *state, registers ...int) {
	for _, r := range registers {
		if r > 255 || !s.defined[r] {
			v.bad(i, "reads register %d, which holds nothing", r)
		}
	}
}

// readsFrom is reads for n registers from the first on.
func (v *verifier) readsFrom(i int, s *state, first, n int) {
	for r := range n {
		v.reads(i, s, first+r)
	}
}

// writes notes that a register holds a value.
func (v *verifier) writes(i int, s *state, registers ...int) {
	for _, r := range registers {
		switch {
		case r > 255 || r >= v.u.Window:
			v.bad(i, "writes register %d of a window of %d", r, v.u.Window)
			continue
		case r == 0:
			v.bad(i, "overwrites the closure")
		case r == s.ret:
			v.bad(i, "overwrites the return word")
		}
		s.defined[r] = true
	}
}

// keeps checks a height: every register below it holds a value. The register
// for the closure of a function that has none is exempt: what lies there is an
// old word, in the function's own window and where a known call is prepared.
func (v *verifier) keeps(i int, s *state, height int) {
	for r := 1; r < height; r++ {
		if r > 255 || !s.defined[r] && !v.windows[r] {
			v.bad(i, "register %d is below the height %d and holds nothing", r, height)
			return
		}
	}
}

// goes is the flow to another instruction that changes the fuel by k: the
// steps pending there are those pending here with the change, and more only
// where the next term has begun.
func (v *verifier) goes(i, to int, s *state, k int64) {
	d, steps := split(k)
	next := *s
	next.depth += d
	if to >= 0 && to < len(v.u.Code) {
		if pend := int64(v.u.Meta[i].Pend) + steps; pend < 0 || pend > int64(v.u.Meta[to].Pend) {
			v.bad(i, "leads to %d with %d steps pending, there are %d", to, pend, v.u.Meta[to].Pend)
		}
	}
	v.reach(i, to, &next)
}

// jumps is goes to a place given by its distance.
func (v *verifier) jumps(i int, s *state, distance int32, k int64) {
	if distance%code.InstrSize != 0 {
		v.bad(i, "jumps by %d bytes", distance)
	}
	v.goes(i, i+int(distance)/code.InstrSize, s, k)
}

// charges checks that an instruction takes all pending steps, and returns the
// depth with its change.
func (v *verifier) charges(i int, s *state) (depth int) {
	d, steps := split(v.u.Code[i].K)
	if -steps != int64(v.u.Meta[i].Pend) {
		v.bad(i, "charges %d steps of %d", -steps, v.u.Meta[i].Pend)
	}
	return s.depth + d
}

// returns checks an instruction after which the function is gone, with a
// return slot and the depth that must be given back in all.
func (v *verifier) returns(i int, s *state, slot uint8, gives int) {
	if int(slot) != s.ret {
		v.bad(i, "looks for the return word in register %d, it is in %d", slot, s.ret)
	}
	if d := v.charges(i, s); d != gives {
		v.bad(i, "gives back a depth of %d, not %d", d, gives)
	}
}

// comesBack is what follows a call whose window is at register a.
func (v *verifier) comesBack(i int, s *state, a, gives int) {
	if a <= s.ret {
		v.bad(i, "the window at register %d covers the return word in %d", a, s.ret)
	}
	after := *s
	for r := a; r < len(after.defined); r++ {
		after.defined[r] = false
	}
	v.writes(i, &after, a)
	after.depth = v.charges(i, s) + gives
	v.reach(i, i+1, &after)
}

// constant checks that an operand names a constant of a kind.
func (v *verifier) constant(i int, is func(*code.Const) bool) {
	if k := v.u.Code[i].D - v.o.ConstBase; k < 0 || int(k) >= len(v.u.Consts) || !is(&v.u.Consts[k]) {
		v.bad(i, "constant %d of %d is not what it needs", k, len(v.u.Consts))
	}
}

// function reports whether an instruction's constant is a function.
func (v *verifier) function(in *code.Instr) bool {
	k := in.D - v.o.ConstBase
	return k >= 0 && int(k) < len(v.u.Consts) && v.u.Consts[k].Func != nil
}

func named(c *code.Const) bool   { return c.Term == nil && c.Keys == nil && c.Func == nil }
func literal(c *code.Const) bool { return (c.Term == nil) != (c.Func == nil) && c.Keys == nil }

// slot checks where a captured value or a visible variable is: in a register,
// or, negative, in the closure.
func (v *verifier) slot(i int, s *state, slot int) {
	if slot >= 0 {
		v.reads(i, s, slot)
		return
	}
	v.captured(i, s, -1-slot)
}

func (v *verifier) captured(i int, s *state, n int) {
	if !s.defined[0] {
		v.bad(i, "reads captured value %d of a function that may be called without its closure", n)
	}
	if n >= s.fn.caps {
		v.bad(i, "reads captured value %d of %d", n, s.fn.caps)
	}
}

// scope checks the variables that an eval sees.
func (v *verifier) scope(i int, s *state) {
	k := v.u.Code[i].D - v.o.ScopeBase
	if k < 0 || int(k) >= len(v.u.Scopes) {
		v.bad(i, "there is no scope %d", k)
		return
	}
	for _, x := range v.u.Scopes[k].Vars {
		if x.Const < 0 {
			v.slot(i, s, int(x.Slot))
		} else if n := x.Const - v.o.ConstBase; n < 0 || int(n) >= len(v.u.Consts) || v.u.Consts[n].Func == nil {
			v.bad(i, "the variable %q is constant %d, which is no function", x.Name, n)
		}
	}
	if v.u.Scopes[k].Depth != v.o.Depth {
		v.bad(i, "the scope is %d evals deep, the code %d", v.u.Scopes[k].Depth, v.o.Depth)
	}
}
