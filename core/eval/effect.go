package eval

import (
	"unsafe"

	"github.com/mcp-pif/mcp-pif/core/code"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// here is the place of the instruction being done. Finding one reads its
// source, so those of effects and calls are kept.
func (m *Machine) here() (at fault.Pointer, in string) {
	i := m.index()
	p, ok := m.places[i]
	if !ok {
		var f fault.Fault
		m.locate(&f, m.unitAt(i), int(m.meta[i].Pos))
		m.acted = true
		if m.places == nil {
			m.places = make(map[int]place)
		}
		p = place{f.At, f.In}
		m.places[i] = p
	}
	return p.at, p.in
}

// A place is where in which document something stands.
type place struct {
	at fault.Pointer
	in string
}

// effect makes a request, and stops the machine with it, or the branch of par.
// The path's steps are charged.
func (m *Machine) effect(in *code.Instr) bool {
	f := m.fuel + in.K
	if spent(f) {
		return m.exhausted(f)
	}
	op, u := &m.kinds[in.D], m.unitAt(m.index())
	e := exporter{m: m}
	arg := e.export(*m.reg(in.A))
	m.fuel = f
	at, where := m.here()
	r := Request{
		Op: op.Name, In: op.In, Arg: arg, At: at, Where: where, Tool: u.tool, Tools: u.tools(),
		With: m.lists(m.dyn),
	}
	if m.par == nil {
		m.requests, m.state = []Request{r}, Suspended
		return true
	}
	return m.ask(r, int(in.A), e.bytes)
}

// Resume answers the requests, in their order. The machine is [Paused] then,
// or [Failed] where an answer is a fault, or more than the budget allows.
// It panics if the machine isn't suspended or the count is wrong.
func (m *Machine) Resume(answers []Answer) {
	if m.state != Suspended || len(answers) != len(m.requests) {
		panic("eval: Resume of a machine that is not suspended, or with a wrong count of answers")
	}
	m.requests, m.state = nil, Paused
	if m.par != nil {
		m.nextRound(answers)
		return
	}
	m.deliver(answers[0])
}

// deliver gives an effect, the instruction before ip, its outcome.
func (m *Machine) deliver(a Answer) {
	in := m.instr()
	if a.Fault != nil {
		f := *a.Fault
		m.outcome(&f)
		return
	}
	w, ok := m.importValue(a.Value, int(in.A))
	if !ok {
		return
	}
	if m.foreign {
		m.foreign = false
		m.outcome(&fault.Fault{
			Kind:    fault.EffectFailed,
			Message: "the outcome holds a function, which can't come from outside",
			Hint:    "Give back data: numbers, strings, lists, pairs, records or code.",
		})
		return
	}
	*m.reg(in.A) = w
}

// A callee is a tool that the run calls, compiled.
type callee struct {
	tool Tool
	unit *code.Unit
	at   int // index of its unit
}

// calleeOf compiles a tool, at most once; nil: there is no memory for it.
func (m *Machine) calleeOf(t Tool) int {
	for i := range m.callees {
		if c := &m.callees[i].tool; c.Term == t.Term && c.Name == t.Name {
			return i
		}
	}
	ctx := &context{tool: t.Name, isTool: true, code: quoted{t.Term, t.Source}, library: t.Tools}
	l := m.link(asFunction(t.Term, true), t.Source, code.Options{Tool: true}, ctx)
	if l == nil {
		return -1
	}
	m.acted = true
	m.extra += int64(t.Size)
	m.callees = append(m.callees, callee{t, l.unit, len(m.units) - 1})
	return len(m.callees) - 1
}

// The frame of a call, below the window of the tool that is called: what the
// evals around permitted, with the number of the callee; the input; the word
// that says where the call returns to; and the caller's function for self.
const (
	frameDyn = iota
	frameInput
	frameReturn
	frameSelf
	frameWords
)

// callTool calls a tool: its name is in A, the input in A+1.
func (m *Machine) callTool(in *code.Instr) bool {
	if f := m.fuel + in.K; f&guard == 0 {
		return m.exhausted(f)
	}
	a := int(in.A)
	name := *m.reg(in.A)
	if !m.isString(name) {
		return m.mismatch(in, prim.Call, 0, name)
	}
	left := max(m.stepsIn()+int64(m.left)-m.pending(), 0)
	found, nested, cost := prim.NoData(m.shape(*m.reg(in.A + 1)), uint64(left))
	if cost > 0 && !m.work(cost) {
		return true
	}
	if found != nil {
		return m.fail(prim.NotData(found, nested))
	}
	u, called := m.unitAt(m.index()), m.goString(name)
	tools := u.tools()
	if tools == nil {
		return m.fail(prim.NoCall(called))
	}
	at, _ := m.here()
	t, f := tools.Callee(called, m.lists(m.dyn), at)
	if f != nil {
		mine := *f
		return m.fail(&mine)
	}
	if t.Name == "" {
		t.Name = called
	}
	// The work may have used up the slice: what the path took comes from the
	// budget, since a pause here would do all of this again.
	fuel := m.fuel + in.K
	if over := -(fuel&(1<<40-1) - guard); over > 0 {
		if uint64(over) > m.left {
			m.outOfFuel()
			return true
		}
		m.left -= uint64(over)
		m.fuel, fuel = m.fuel+over, fuel+over
	}
	if spent(fuel) {
		return m.exhausted(fuel)
	}
	c := m.calleeOf(t)
	if c < 0 {
		m.outOfMemory()
		return true
	}
	if m.hlim = min(m.hlim, m.heapBudget()); m.hlim == 0 {
		m.outOfMemory()
		return true
	}
	if !m.growStack(a+frameWords+2, a+2) {
		return true
	}
	m.fuel = fuel
	m.r = unsafe.Add(m.r, a*8)
	*m.word(frameDyn) = fromInt(int64(m.dyn)<<30 | int64(c))
	*m.word(frameReturn) = word(uintptr(m.ip)-uintptr(m.cb)) | word(a)<<35
	*m.word(frameSelf) = m.self
	m.dyn, m.self = 0, 0
	unit := m.callees[c].unit
	if unit.Root == nil {
		*m.word(frameWords) = wUnit
		m.enterAbove(frameWords, code.AtCallCode)
		m.ip = unsafe.Add(m.cb, unit.Entry)
		return false
	}
	if !m.charge(1) || !m.reserve(2, frameWords) {
		return true
	}
	return m.applyTool(m.closureOf(unit.Root))
}

// callCode goes on after a tool's code was evaluated, at the frame's window.
func (m *Machine) callCode() bool {
	w := *m.word(frameWords)
	if w&tagMask != tagClosure {
		return m.callDone()
	}
	m.self = w
	m.fuel -= code.Depth1 // the return gave back the depth of the call
	m.ip = unsafe.Add(m.cb, uintptr(uint32(*m.word(frameReturn))))
	return m.applyTool(w)
}

// applyTool applies a tool's function to the input.
func (m *Machine) applyTool(w word) bool {
	if !m.charge(1) {
		return true
	}
	*m.word(frameWords) = w
	*m.word(frameWords + 1) = *m.word(frameInput)
	if !m.reserve(2*16, frameWords+2) || !m.growStack(frameWords, frameWords+2) {
		return true
	}
	n := m.spread(frameWords, 1)
	w = *m.word(frameWords)
	h := *m.obj(w, 0)
	if n < headerArity(h) {
		// The function of the next parameter.
		if !m.charge(1) {
			return true
		}
		*m.word(frameWords) = m.partial(frameWords, n)
		m.fuel += code.Depth1
		return m.callDone()
	}
	m.r = unsafe.Add(m.r, frameWords*8)
	*m.word(n + 1) = word(code.AtCallDone) | word(frameWords)<<35
	m.ip = unsafe.Add(m.cb, headerEntry(h))
	return false
}

// callDone ends a call: the tool's result is above the frame's window.
func (m *Machine) callDone() bool {
	w, back := *m.word(frameWords), *m.word(frameReturn)
	was := toInt(*m.word(frameDyn))
	m.dyn, m.self = int(was>>30), *m.word(frameSelf)
	m.back(back, w)
	left := m.stepsIn() + int64(m.left)
	if left < 0 {
		m.outOfFuel()
		return true
	}
	found, nested, cost := prim.NoData(m.shape(w), uint64(left))
	if cost > 0 && !m.charge(cost) {
		return true
	}
	if found != nil {
		return m.outcome(prim.GaveNoData(m.callees[was&(1<<30-1)].tool.Name, found, nested))
	}
	return false
}

// shape is w for [prim.NoData]: its parts, as far as they are asked for, without
// what is in strings and numbers.
func (m *Machine) shape(w word) value.Value {
	switch tag := w & tagMask; {
	case isInt(w) || tag == tagImm:
		return value.Unit{}
	case tag == tagClosure:
		return &value.Closure{}
	case tag == tagBox:
		switch headerKind(*m.obj(w, 0)) {
		case kVec, kRecord, kNode:
		case kCont:
			return &value.Continuation{}
		default:
			return value.Unit{}
		}
	}
	return value.Lazy{In: shapes{m}, Word: w}
}

// shapes is a machine's memory as shape shows it.
type shapes struct{ m *Machine }

// Force returns the outermost part of a value.
func (s shapes) Force(w uint64) value.Value {
	m := s.m
	switch w & tagMask {
	case tagCons:
		return &value.Cons{Head: m.shape(*m.at(w - tagCons)), Tail: m.shape(*m.at(w - tagCons + 8))}
	case tagPair:
		return &value.Pair{First: m.shape(*m.at(w - tagPair)), Second: m.shape(*m.at(w - tagPair + 8))}
	}
	if headerKind(*m.obj(w, 0)) == kVec {
		return vecShapes{s, w}.Force(0)
	}
	r := &value.Record{Fields: make([]value.Field, 0, m.recordLen(w))}
	m.fields(w, func(_, v word) bool {
		r.Fields = append(r.Fields, value.Field{Value: m.shape(v)})
		return true
	})
	return r
}

// vecShapes is the items of a vector from one on.
type vecShapes struct {
	shapes
	w word
}

// Force returns the cell of item i.
func (s vecShapes) Force(i uint64) value.Value {
	c := &value.Cons{Head: s.m.shape(s.m.vecAt(s.w, int(i))), Tail: value.Nil{}}
	if int(i)+1 < s.m.vecLen(s.w) {
		c.Tail = value.Lazy{In: s, Word: i + 1}
	}
	return c
}
