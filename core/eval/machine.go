// Package eval is the machine: it runs compiled code with exact budgets.
//
// A [Machine] is one run. It keeps values in a heap of its own, collected by
// copying, and the program's recursion on a stack of its own, so that nothing
// a program does can use the Go stack or grow past the budget. The dispatch
// loop (loop.go) holds five things in registers and calls nothing: whatever is
// rare, from a collection to an addition that overflows, leaves it for the
// functions of slow.go and comes back.
//
// Steps and depth are one word, the fuel: steps left in the low 39 bits, a
// guard above them, depth left above that, so that a call charges both and
// checks both with one addition.
//
// A machine can stop between any two instructions that end a path: when its
// slice of steps is used up ([Paused]), or when the program asks for an effect
// ([Suspended]). Nothing about it is tied to a goroutine. A run's order is in
// order.go, what evals permit in authority.go, effects and calls of tools are in
// effect.go, branches in par.go.
package eval

import (
	"cmp"
	"sync"
	"unsafe"

	"github.com/mcp-pif/mcp-pif/core/code"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// Budgets bound a run. A field of 0 means its default, as a negative one of Memory and Depth does; more than
// [MaxSteps], [MaxMemory] and [MaxDepth] means those.
type Budgets struct {
	Steps  uint64
	Memory int64 // bytes
	Depth  int
}

// The defaults of [Budgets].
const (
	DefaultSteps  = 10_000_000
	DefaultMemory = 64 << 20
	DefaultDepth  = 1_000_000
)

// OrDefault returns the budgets that hold: with the defaults, and no larger than a machine can count.
func (b Budgets) OrDefault() Budgets {
	if b.Memory <= 0 {
		b.Memory = DefaultMemory
	}
	if b.Depth <= 0 {
		b.Depth = DefaultDepth
	}
	return Budgets{min(cmp.Or(b.Steps, DefaultSteps), MaxSteps), min(b.Memory, MaxMemory), min(b.Depth, MaxDepth)}
}

// A Program is a term with its code: immutable, shared between goroutines.
type Program struct {
	Term   term.Term
	Source *term.Source
	Tool   string // the name of the tool whose code it is, empty for inline code
	IsTool bool
	// Evals is set, of an input, where it evaluates code.
	Evals bool
	// Next is, of an input, the one that the result is applied to; nil: none.
	Next *Program
	// Large is of a large input alone.
	Large *Large
	Unit  *code.Unit
}

// Large is what a large input has to say.
type Large struct {
	// Whole returns the input, which this one only stands for; nil: it is the input.
	Whole func() *Program
	// Imported is called, of the input itself, when Term isn't needed any more beside the value.
	Imported func()
}

// What a machine exchanges with its host; see package value.
type (
	Tool    = value.Tool
	Tools   = value.Tools
	Request = value.Request
	Answer  = value.Answer
)

// State says why Run returned.
type State uint8

// The states of a machine.
const (
	Paused    State = iota // the slice of steps is used up
	Done                   // the result is there
	Suspended              // requests wait for Resume
	Failed                 // Fault says why
)

// phase is what the machine is to do after the code that runs now.
type phase uint8

const (
	inCode phase = iota
	inInput
	inBody
	inNext // nothing runs: the function in held is to be applied to the next input
	ended
)

// guard is the bit of the fuel word that is clear when steps have run out.
const guard = 1 << 39

// The largest budgets a machine can count.
const (
	MaxSteps  = guard - 1
	MaxMemory = 1 << 48
	MaxDepth  = 1<<23 - 1
)

// Machine is one run. It is not safe for concurrent use. Get one with [Start].
type Machine struct {
	// The loop's registers while it isn't running, and what it reads.
	ip, r, cb unsafe.Pointer
	fuel      int64
	hp, hlim  uintptr
	slim      uintptr
	consts    []word

	stake       *Stake // in the pool; nil: nobody's
	stack, heap []word
	first       []word         // where both start
	hb          unsafe.Pointer // the heap; so far down for the loop's place: see TestDispatch
	tainted     bool           // an earlier run may have left references in the stack
	plain       bool           // all that is left to do is to run the function, or was: and nothing else has changed
	dirty       int            // stack words from here on were never written since they were cleared
	slack       int            // words a window may need above the stack's limit

	prog     *Program
	unit     *code.Unit // whose tables the machine has
	input    *Program
	given    Budgets
	budget   Budgets // given, with defaults
	main     context // of the program's own code
	phase    phase
	state    State
	started  bool
	further  bool   // the input is not the first
	left     uint64 // steps of the budget that are not in fuel yet
	result   word
	held     word // a word that must survive a collection
	handler  int  // see failing.go
	foreign  bool // a value from outside held a function
	copied   int  // words copied out of the heap since paced
	pinned   int
	stop     func() bool // see look.go
	unlooked int         // parts of values gone through since stop was asked
	borrowed int64       // bytes of Go's memory that a walk has
	short    bool        // a walk had no room
	inside   bool        // Run is under way, or it panicked
	pins     []word      // what importValue has seen in the heap, while it makes room
	self     word        // the function of a tool whose code is no lambda, once it is there
	dyn      int         // what the evals under way permit, see authority.go
	par      *par        // the par whose branch runs; nil: none, see par.go
	fault    *fault.Fault
	requests []Request

	// What follows is there only in a run that has acted.
	acted   bool
	auths   []authority
	authOf  map[string]int
	narrow  map[[2]int32]int
	places  map[int]place
	callees []callee
	names   []string // tools of continuations
	pars    []*par
	answers []Answer
	asked   int64 // bytes that the requests of this round take
	outside int64 // bytes of extra that are Go's memory, for branches
	lent    int64 // bytes the pool lent for those

	row       code.Instr // see unpacked
	extra     int64      // bytes of code that was made or compiled during the run, and of saved branches
	units     []unit
	codeIndex map[term.Term]int
	kinds     []code.Const // what consts are made from
	scopes    []code.Scope
	codes     []quoted
	evals     map[evalKey]*code.Unit
	own       bool // code and tables are the machine's own, not the program's
	instrs    []code.Instr
	meta      []code.Meta
	most      int64 // the most bytes that there were at a collection; see Memory
}

// A unit is where the code of one term lies in the machine.
type unit struct {
	from   int // index of its first instruction
	term   term.Term
	source *term.Source
	depth  int      // evals around it
	scope  []string // the variables around code that eval runs, the innermost last
	input  bool
	acting []int32 // see [code.Unit.Acting]
	uses   prim.Uses
	*context
}

// A context is what the code of a unit belongs to.
type context struct {
	tool string // the name; empty for inline code and inputs
	// isTool is set for the code of a tool itself: code is what code_of "self"
	// gives.
	isTool bool
	code   quoted
	// library is where code_of looks; see tools.
	library Tools
	outside bool // of an input
}

// tools finds where call looks, and says who asks for effects: nobody for an input.
func (c *context) tools() Tools {
	if c.outside {
		return nil
	}
	return c.library
}

// within returns the context of evaluated code in this one.
func (c *context) within() *context {
	if !c.isTool {
		return c
	}
	return &context{tool: c.tool, library: c.library}
}

var machines = sync.Pool{New: func() any { return new(Machine) }}

// Start returns a machine that is going to run p on the input, which may be
// nil for null.
func Start(p *Program, input *Program, b Budgets, tools Tools) *Machine {
	m := machines.Get().(*Machine)
	m.Reset(p, input, b, tools)
	return m
}

// Reset makes a machine ready for another run, as Start would.
func (m *Machine) Reset(p *Program, input *Program, b Budgets, tools Tools) {
	if m.plain && p == m.prog && p.Unit == m.unit && b == m.given && m.hp == 16 && input != nil {
		// What begin lays out is there, nothing else has changed.
		if n, ok := wordOf(input); ok {
			m.input, m.main.library = input, tools
			m.state, m.left, m.fuel = Paused, m.budget.Steps-3, int64(m.budget.Depth)<<40|guard
			m.enterRoot(m.unit.Root, n)
			return
		}
	}
	m.reset(p, input, b, tools)
}

func (m *Machine) reset(p *Program, input *Program, b Budgets, tools Tools) {
	if input != nil && input.Large != nil && input.Large.Whole != nil {
		input = input.Large.Whole()
	}
	m.given, b = b, b.OrDefault()
	m.prog, m.input, m.budget, m.plain = p, input, b, false
	m.phase, m.state, m.started, m.further = inCode, Paused, false, false
	m.fault, m.requests = nil, nil
	m.left = b.Steps
	m.result, m.held, m.self = wUnit, wUnit, 0
	m.handler, m.pins, m.pinned, m.extra, m.most, m.foreign = -1, m.pins[:0], 0, 0, 0, false
	m.unlooked, m.borrowed, m.short = 0, 0, false
	m.main.library = tools
	if m.acted {
		m.forget()
	}
	m.fuel = int64(b.Depth)<<40 | guard
	m.tainted = m.tainted || m.hp > 16
	m.hp = 16
	if len(m.codes) > 0 {
		clear(m.codes)
		m.codes, m.codeIndex = m.codes[:0], nil
	}
	u := p.Unit
	if input != nil && input.Evals && !u.Narrows {
		// Its functions may be applied inside evals of the input.
		t := p.Term
		if p.IsTool {
			t = term.AsFunction(t)
		}
		u = code.Compile(t, code.Options{Tool: p.IsTool, Narrows: true})
		if u.Entangled {
			m.state, m.fault, u = Failed, prim.OutOfMemory(b.Memory), p.Unit
		}
	}
	if u == m.unit && !m.own {
		// The same program again: all tables are as they have to be.
		clear(m.consts)
		m.ip = m.cb
		return
	}
	m.unit, m.own = u, false
	m.instrs, m.meta, m.kinds, m.scopes = u.Code, u.Meta, u.Consts, u.Scopes
	m.cb = unsafe.Pointer(unsafe.SliceData(u.Code))
	m.ip = m.cb
	if cap(m.consts) < len(u.Consts) {
		m.consts = make([]word, len(u.Consts), len(u.Consts)+8)
	} else {
		m.consts = m.consts[:len(u.Consts)]
		clear(m.consts)
	}
	m.main = context{tool: p.Tool, isTool: p.IsTool, code: quoted{p.Term, p.Source}, library: tools}
	m.units = append(m.units[:0], unit{term: p.Term, source: p.Source, acting: u.Acting, uses: u.Uses, context: &m.main})
	m.evals = nil
	m.slack = u.Window
}

// Release gives the machine's memory back. The machine must not be used again. One that
// panicked in Run is abandoned.
func (m *Machine) Release() {
	if m.prog == nil {
		return
	}
	if m.inside {
		m.Abandon()
		m.prog = nil
		return
	}
	m.giveSlab(m.heap)
	m.giveSlab(m.stack)
	m.heap, m.stack, m.hb, m.r = nil, nil, nil, nil // an idle machine keeps no slab alive
	m.tainted = m.tainted || m.hp > 16
	m.prog, m.input, m.fault, m.requests = nil, nil, nil, nil
	m.main.library = nil
	if m.acted {
		m.forget()
	}
	m.stake = nil
	if m.own {
		m.unit, m.instrs, m.meta, m.kinds, m.scopes, m.cb, m.ip = nil, nil, nil, nil, nil, nil, nil
	}
	machines.Put(m)
}

// Abandon is [Machine.Release] of a machine that panicked: it isn't used again, nor is its memory.
func (m *Machine) Abandon() {
	held := m.lent
	for _, s := range [...][]word{m.heap, m.stack} {
		if cap(s) > firstHeap {
			held += int64(cap(s)) * 8
		}
	}
	pool.lend(m.stake, -held)
}

// begin lays out the first memory, which belongs to the machine and isn't
// counted in the pool: it is small, and idle machines keep it.
func (m *Machine) begin() {
	if m.first == nil {
		m.first = make([]word, firstHeap+firstStack)
	}
	if len(m.heap) != firstHeap || len(m.stack) != firstStack {
		m.giveSlab(m.heap)
		m.giveSlab(m.stack)
		m.heap, m.stack = m.first[:firstHeap:firstHeap], m.first[firstHeap:]
	}
	m.hb = unsafe.Pointer(unsafe.SliceData(m.heap))
	m.hlim = min(uintptr(len(m.heap))*8, m.heapBudget())
	m.r = unsafe.Pointer(unsafe.SliceData(m.stack))
	before := m.dirty
	m.clean(0, 64)
	if m.tainted || m.dirty > before {
		// A run before this one has left words that referred to its heap.
		clear(m.stack[:m.dirty])
		m.tainted = false
	}
	if stress != nil {
		stress(m, nil, 0)
	}
}

// heapBudget returns how many bytes the heap may use beside the stack and the code.
func (m *Machine) heapBudget() uintptr {
	other := int64(len(m.stack))*8 + m.extra
	if other >= m.budget.Memory {
		return 0
	}
	return uintptr(m.budget.Memory - other)
}

// Run goes on for about steps steps (0: without pause) and says why it stopped.
func (m *Machine) Run(steps uint64) State {
	m.inside = true
	s := m.run(steps)
	m.inside = false
	return s
}

func (m *Machine) run(steps uint64) State {
	whole := steps == 0
	if m.state != Paused {
		return m.state
	}
	m.slice(steps)
	if !m.started {
		m.begin()
		m.started, m.plain = true, m.enterCode()
	}
	for m.state == Paused && m.phase != ended {
		switch m.loop() {
		case exitHalt:
			m.fuel -= code.Depth1 // the return gave back what no call had taken
			if !m.plain || m.stepsIn() < 0 {
				m.plain = false
				m.next(*(*word)(m.r))
				continue
			}
			m.result, m.phase, m.state = *(*word)(m.r), ended, Done
			return Done
		case exitSlow:
			m.plain = false
			if !m.slow() {
				break
			}
			if m.state != Paused || !whole {
				return m.state
			}
			m.slice(0)
		}
	}
	return m.state
}

// slice moves steps of the budget (0: all) to where the loop takes them from.
func (m *Machine) slice(steps uint64) {
	if steps == 0 || steps > m.left {
		steps = m.left
	}
	m.left -= steps
	m.fuel += int64(steps)
}

// Memory returns the most bytes that the run held at once so far, of its budget: the stack, and what it made up to a
// collection.
func (m *Machine) Memory() int64 {
	return max(m.most, int64(len(m.stack))*8+m.extra+int64(m.hp))
}

// Steps returns how many steps the run has used so far.
func (m *Machine) Steps() uint64 {
	return uint64(int64(m.budget.Steps) - int64(m.left) - m.stepsIn())
}

// stepsIn returns the steps left in the fuel word.
func (m *Machine) stepsIn() int64 { return m.fuel&(1<<40-1) - guard }

// Fault returns why the run failed; nil where it didn't.
func (m *Machine) Fault() *fault.Fault { return m.fault }

// Requests returns what a suspended program asks for.
func (m *Machine) Requests() []Request { return m.requests }

// State returns what Run returned last.
func (m *Machine) State() State { return m.state }
