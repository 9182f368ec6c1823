package eval

import (
	"cmp"
	"unsafe"

	"github.com/mcp-pif/mcp-pif/core/code"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// here returns the place of the instruction being done. Finding one reads its
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
		p = place{fault.Pointer(f.Place()), f.In}
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
	e := exporter{m: m, limit: m.budget.Memory}
	arg := e.export(*m.reg(in.A))
	if e.full() {
		return m.outOfMemory()
	}
	m.fuel = f
	at, where := m.here()
	size, steps := text.MeasureRecorded(arg, m.budget.Memory, uint64(max(m.stepsIn()+int64(m.left), 0)), m.lookOften)
	if steps > 0 && !m.charge(steps) {
		return true
	}
	r := Request{
		Op: op.Name, In: op.In, Arg: arg, Size: size, Most: m.budget.Memory,
		At: at, Where: where, Tool: u.tool, Tools: u.tools(), With: m.lists(m.dyn),
	}
	if m.par != nil {
		return m.ask(r, int(in.A), e.bytes)
	}
	if e.bytes > lending {
		m.acted = true
		m.asked = e.bytes
		if !m.hold(e.bytes, int(in.A)) {
			return true
		}
	}
	m.requests, m.state = []Request{r}, Suspended
	return true
}

// Resume answers the requests, in their order. The machine is [Paused] then,
// or [Failed] where an answer is a fault, or more than the budget allows.
// It panics if the machine isn't suspended or the count is wrong. The slice isn't kept.
func (m *Machine) Resume(answers []Answer) {
	if m.state != Suspended || len(answers) != len(m.requests) {
		panic("eval: Resume of a machine that is not suspended, or with a wrong count of answers")
	}
	m.requests, m.state = nil, Paused
	if m.par != nil {
		m.nextRound(answers)
		return
	}
	if m.asked > 0 {
		m.drop(m.asked)
		m.asked = 0
		m.giveBack()
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
	m.foreign = false // a fault that was caught may have brought a function
	w, ok := m.importValue(a.Value, int(in.A))
	if !ok {
		return
	}
	if m.foreign {
		m.outcome(fault.New(fault.EffectFailed, "the outcome holds a function, which can't come from outside").
			Hinted("Give back data: numbers, strings, lists, pairs, records or code."))
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
	u := m.link(term.AsFunction(t.Term), t.Source, code.Options{Tool: true}, ctx)
	if u == nil {
		return -1
	}
	m.acted = true
	m.extra += int64(t.Size)
	m.callees = append(m.callees, callee{t, u, len(m.units) - 1})
	return len(m.callees) - 1
}

// The frame of a call, below the window of the tool that is called: what the
// evals around permitted, with the number of the callee; the input; the word
// that says where the call returns to; the caller's function for self; and the
// list of the inputs that follow, with how many of a vector were taken, -1 where the
// call has one input for the first parameter.
const (
	frameDyn = iota
	frameInput
	frameReturn
	frameSelf
	frameMore
	frameTaken
	frameWords
)

// callTool calls a tool: its name is in A, the input in A+1, or the list of several
// where B is 1.
func (m *Machine) callTool(in *code.Instr) bool {
	if f := m.fuel + in.K; f&guard == 0 {
		return m.exhausted(f)
	}
	a := int(in.A)
	name := *m.reg(in.A)
	if !m.isString(name) {
		return m.mismatch(prim.Call, 0, name)
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
	left := uint64(max(m.stepsIn()+int64(m.left)-m.pending(), 0))
	var found value.Value
	var nested bool
	var cost uint64
	if !m.walk(a+2, func() { found, nested, cost = m.noData(*m.reg(in.A + 1), left) }) || cost > 0 && !m.work(cost) {
		return true
	}
	if found != nil {
		return m.fail(prim.NotData(found, nested))
	}
	t.Name = cmp.Or(t.Name, called)
	by, missing := prim.Place(t, shapes{m}.of(*m.reg(in.A + 1)), in.B == 1)
	if missing != nil && in.B == 1 {
		return m.fail(missing)
	}
	// The work may have used up the slice: what the path took comes from the
	// budget, since a pause here would do all of this again.
	fuel := m.fuel + in.K
	if over := -(fuel&(1<<40-1) - guard); over > 0 {
		if uint64(over) > m.left {
			return m.outOfFuel()
		}
		m.left -= uint64(over)
		m.fuel, fuel = m.fuel+over, fuel+over
	}
	if spent(fuel) {
		return m.exhausted(fuel)
	}
	c := m.calleeOf(t)
	if c < 0 {
		return m.outOfMemory()
	}
	if m.hlim = min(m.hlim, m.heapBudget()); m.hlim == 0 {
		return m.outOfMemory()
	}
	if !m.growStack(a+frameWords+2, a+2) {
		return true
	}
	inputs, ok := m.placed(t.Params, a, by)
	if !ok {
		return true
	}
	m.fuel = fuel
	m.r = unsafe.Add(m.r, a*8)
	*m.word(frameMore), *m.word(frameTaken) = inputs, fromInt(0)
	if by != prim.Whole {
		*m.word(frameInput), _ = m.moreInput()
	} else {
		*m.word(frameTaken) = fromInt(-1)
	}
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
		*m.word(frameMore) = wNil // all inputs are ignored
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

// placed makes the list of the inputs of a call, of which the input is in a+1; nil
// where that is the only one. Nothing is above it.
func (m *Machine) placed(names []string, a int, by prim.Placing) (list word, ok bool) {
	switch by {
	case prim.ByName:
		if !m.reserve(listWords(len(names)), a+2) {
			return 0, false
		}
		return m.makeList(len(names), func(i int) word {
			w, _ := m.recordFind(*m.word(a + 1), &textKey{bytes: []byte(names[i])})
			return w
		}), true
	case prim.InOrder:
		if (*m.word(a + 1))&tagMask != tagPair {
			return *m.word(a + 1), true
		}
		if !m.reserve(listWords(2), a+2) {
			return 0, false
		}
		p := *m.word(a + 1) - tagPair
		return m.makeList(2, func(i int) word { return *m.at(p + word(i)*8) }), true
	}
	return wNil, true
}

// moreInput takes the next input out of the frame; false: there is none.
func (m *Machine) moreInput() (word, bool) {
	list := *m.word(frameMore)
	switch {
	case list&tagMask == tagCons:
		*m.word(frameMore) = *m.at(list - tagCons + 8)
		return *m.at(list - tagCons), true
	case m.isVec(list):
		if i := int(toInt(*m.word(frameTaken))); i < m.vecLen(list) {
			*m.word(frameTaken) = fromInt(int64(i + 1))
			return m.vecAt(list, i), true
		}
	}
	return 0, false
}

// applyNext applies what came of an input, above the frame's window, to the next one.
func (m *Machine) applyNext(input word) bool {
	if m.stepsIn()+int64(m.left) < 0 {
		return m.outOfFuel()
	}
	w := *m.word(frameWords)
	if w&tagMask != tagClosure {
		c := &m.callees[toInt(*m.word(frameDyn))&(1<<30-1)]
		f := prim.Mismatch(prim.App, 0, prim.Describe(m.sketch(w)))
		m.locate(f, &m.units[c.at], c.tool.Term.Pos())
		return m.caught(f)
	}
	*m.word(frameInput) = input
	m.fuel -= code.Depth1 // the return gave back the depth of the call
	m.ip = unsafe.Add(m.cb, uintptr(uint32(*m.word(frameReturn))))
	return m.applyTool(w)
}

// callDone ends a call, or goes on with its next input: what came of the one before
// is above the frame's window.
func (m *Machine) callDone() bool {
	if input, ok := m.moreInput(); ok {
		return m.applyNext(input)
	}
	left := m.stepsIn() + int64(m.left)
	if left < 0 {
		return m.outOfFuel()
	}
	var found value.Value
	var nested bool
	var cost uint64
	if !m.walk(frameWords+1, func() { found, nested, cost = m.noData(*m.word(frameWords), uint64(left)) }) {
		return true
	}
	w, back := *m.word(frameWords), *m.word(frameReturn)
	was := toInt(*m.word(frameDyn))
	m.dyn, m.self = int(was>>30), *m.word(frameSelf)
	tool := &m.callees[was&(1<<30-1)].tool
	var missing *fault.Fault
	if w&tagMask == tagClosure && toInt(*m.word(frameTaken)) < 0 {
		_, missing = prim.Place(*tool, shapes{m}.of(*m.word(frameInput)), false)
	}
	m.back(back, w)
	if cost > 0 && !m.charge(cost) {
		return true
	}
	if found != nil {
		return m.outcome(prim.GaveNoData(tool.Name, found, nested, missing))
	}
	return false
}

// shapes is a machine's memory by the kinds of its values: their parts, as far as
// they are asked for, without what is in strings and numbers.
type shapes struct{ m *Machine }

// of returns w by its kind.
func (s shapes) of(w word) value.Value {
	switch tag := w & tagMask; {
	case isInt(w):
		return value.NewInt(0)
	case tag == tagImm:
		return immediates[w>>4&7]
	case tag == tagClosure:
		return &value.Closure{}
	case tag == tagBox:
		switch headerKind(*s.m.obj(w, 0)) {
		case kVec, kRecord, kNode:
		case kStr, kRope:
			return value.Str("")
		case kDec:
			return value.Dec{}
		case kCode:
			return &value.Code{}
		case kCont:
			return &value.Continuation{}
		default:
			return value.NewInt(0)
		}
	}
	return value.Lazy{In: s, Word: w}
}

// Force returns the outermost part of a value.
func (s shapes) Force(w uint64) value.Value {
	m := s.m
	m.look(1)
	switch w & tagMask {
	case tagCons:
		return &value.Cons{Head: s.of(*m.at(w - tagCons)), Tail: s.of(*m.at(w - tagCons + 8))}
	case tagPair:
		return &value.Pair{First: s.of(*m.at(w - tagPair)), Second: s.of(*m.at(w - tagPair + 8))}
	}
	if headerKind(*m.obj(w, 0)) == kVec {
		return vecShapes{s, w}.Force(0)
	}
	r := &value.Record{Fields: make([]value.Field, 0, m.recordLen(w))}
	m.fields(w, func(k, v word) bool {
		r.Fields = append(r.Fields, value.Field{Key: m.goString(k), Value: s.of(v)})
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
	c := &value.Cons{Head: s.of(s.m.vecAt(s.w, int(i))), Tail: value.Nil{}}
	if int(i)+1 < s.m.vecLen(s.w) {
		c.Tail = value.Lazy{In: s, Word: i + 1}
	}
	return c
}
