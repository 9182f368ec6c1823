package eval

import (
	"math"
	"slices"
	"unsafe"

	"github.com/mcp-pif/mcp-pif/core/code"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// evalKey names code that was evaluated at a place.
type evalKey struct {
	term  term.Term
	scope int32
}

// quoted is code that a word of kind kCode refers to.
type quoted struct {
	term   term.Term
	source *term.Source
}

// link compiles t and adds it to the machine's code.
func (m *Machine) link(t term.Term, source *term.Source, o code.Options, ctx *context) *code.Unit {
	if !m.own {
		m.own = true
		m.instrs = append(make([]code.Instr, 0, 2*len(m.instrs)+64), m.instrs...)
		m.meta = append(make([]code.Meta, 0, cap(m.instrs)), m.meta...)
		m.kinds = append(make([]code.Const, 0, len(m.kinds)+8), m.kinds...)
		m.scopes = append(make([]code.Scope, 0, len(m.scopes)+8), m.scopes...)
	}
	o.Base = int32(len(m.instrs)) * code.InstrSize
	o.ConstBase = int32(len(m.kinds))
	o.ScopeBase = int32(len(m.scopes))
	u := code.Compile(t, o)
	if u.Entangled || len(m.instrs)+len(u.Code) > math.MaxInt32/code.InstrSize {
		return nil
	}
	m.units = append(m.units, unit{from: len(m.instrs), term: t, source: source, depth: o.Depth, scope: o.Scope, acting: u.Acting, uses: u.Uses, context: ctx})
	m.instrs = append(m.instrs, u.Code...)
	m.meta = append(m.meta, u.Meta...)
	m.kinds = append(m.kinds, u.Consts...)
	m.scopes = append(m.scopes, u.Scopes...)
	for len(m.consts) < len(m.kinds) {
		m.consts = append(m.consts, 0)
	}
	bytes := int64(len(u.Code))*2*code.InstrSize + int64(len(u.Consts))*64
	for i := range u.Scopes {
		bytes += int64(len(u.Scopes[i].Vars)) * 32
	}
	m.acted = true
	m.owe(bytes)
	cb := unsafe.Pointer(unsafe.SliceData(m.instrs))
	if m.ip != nil {
		m.ip = unsafe.Add(cb, uintptr(m.ip)-uintptr(m.cb))
	}
	m.cb = cb
	if u.Window > m.slack {
		m.slack = u.Window
		m.limitStack()
	}
	return u
}

// eval evaluates the code in register A: its units see the variables of the
// scope, and belong to no tool.
func (m *Machine) eval(in *code.Instr) bool {
	f := m.fuel + in.K
	if f&guard == 0 {
		return m.exhausted(f)
	}
	w := *m.reg(in.A)
	if !m.isKind(w, kCode) {
		return m.mismatch(prim.Eval, 0, w)
	}
	sc := &m.scopes[in.D]
	if sc.Depth >= prim.MaxEvals {
		return m.fail(prim.TooManyEvals())
	}
	if f < 0 {
		return m.exhausted(f)
	}
	q := m.codes[*m.obj(w, 1)>>1]
	key := evalKey{q.term, in.D}
	a := int(in.A)
	u, ok := m.evals[key]
	if !ok {
		names := make([]string, len(sc.Vars))
		for i, v := range sc.Vars {
			// The innermost comes first there and last here.
			names[len(names)-1-i] = v.Name
		}
		takes := int64(0)
		var count func(term.Term) bool
		count = func(t term.Term) bool {
			m.look(4)
			takes += compiling
			return term.Children(t, count)
		}
		if count(q.term); takes < lending {
			takes = 0
		}
		if !m.walk(a+1, func() {
			if m.borrow(takes) == nil {
				u = m.link(q.term, q.source, code.Options{Scope: names, Depth: sc.Depth + 1, Eval: true, Look: m.look}, m.unitAt(m.index()).within())
			}
		}) {
			return true
		}
		if u == nil {
			return m.outOfMemory()
		}
		if m.evals == nil {
			m.evals = make(map[evalKey]*code.Unit)
		}
		m.evals[key] = u
		in = m.instr()
		sc = &m.scopes[in.D]
		if !m.covered() {
			return true
		}
		if m.hlim == 0 {
			return m.outOfMemory()
		}
	}
	if n := len(u.Captures); n > 0 {
		size := even(n + 1)
		for _, c := range u.Captures {
			if v := sc.Vars[len(sc.Vars)-1-int(c)]; v.Const >= 0 {
				if _, ok := m.constant(int(v.Const), a+1); !ok {
					return true
				}
			}
		}
		if !m.reserve(size, a+1) {
			return true
		}
		p := m.alloc(size)
		*m.at(p + word(size-1)*8) = 0
		*m.at(p) = closureHeader(size, u.Entry, 0)
		for i, c := range u.Captures {
			v := sc.Vars[len(sc.Vars)-1-int(c)]
			var w word
			switch {
			case v.Const >= 0:
				w = m.consts[v.Const]
			case v.Slot >= 0:
				w = *m.word(int(v.Slot))
			default:
				w = *m.obj(*m.word(0), int(-v.Slot))
			}
			*m.at(p + 8 + word(i)*8) = w
		}
		*m.word(a) = p | tagClosure
	}
	dyn, ok := m.narrowed(sc, int(in.D))
	if !ok {
		return m.outOfMemory()
	}
	if !m.growStack(a+2, a+1) {
		return true
	}
	m.fuel = f
	m.enterEval(in, dyn)
	m.ip = unsafe.Add(m.cb, u.Entry)
	return false
}

// codeOf finds a tool's code. The name self means the tool that this code
// belongs to, unless a tool is called that.
func (m *Machine) codeOf(in *code.Instr, name string, literal bool, height int) bool {
	q := quoted{}
	u := m.unitAt(m.index())
	unnamed := false
	if u.library != nil {
		t, ok := u.library.Tool(name, literal)
		if unnamed = t.Unnamed; ok {
			q = quoted{t.Term, t.Source}
			if _, known := m.codeIndex[q.term]; !known {
				m.extra += int64(t.Size)
				if m.hlim = min(m.hlim, m.heapBudget()); m.hlim == 0 {
					return m.outOfMemory()
				}
			}
		}
	}
	if q.term == nil {
		if name != "self" {
			return m.fail(prim.UnknownTool(name, unnamed))
		}
		if !u.isTool {
			return m.fail(prim.NoCodeOfSelf())
		}
		q = u.code
	}
	w, ok := m.quote(q, height)
	if !ok {
		return true
	}
	*m.reg(in.A) = w
	return false
}

// addCode gives code a number that words can hold.
func (m *Machine) addCode(q quoted) int {
	i := len(m.codes)
	m.codes = append(m.codes, q)
	if m.codeIndex == nil {
		m.codeIndex = make(map[term.Term]int)
	}
	m.codeIndex[q.term] = i
	return i
}

// nodeBytes is about what a node of a term takes.
const nodeBytes = 64

// made counts the memory of code that the program has made itself.
func (m *Machine) made(t term.Term) {
	m.acted = true
	m.owe(madeBytes(t))
}

// compiling is about what a node takes while it is compiled.
const compiling = 256

// madeBytes returns about what a term takes, with the names and literals in it.
func madeBytes(t term.Term) int64 {
	n := int64(nodeBytes)
	switch t := t.(type) {
	case *term.Str:
		n += int64(len(t.Value))
	case *term.Var:
		n += int64(len(t.Name))
	case *term.Lam:
		n += int64(len(t.Param))
	case *term.LetRec:
		for _, f := range t.Funcs {
			n += nodeBytes + int64(len(f.Name))
		}
	case *term.Big:
		n += 8 * int64(len(t.Value.Bits()))
	case *term.Record:
		for i := range t.Fields {
			n += int64(len(t.Fields[i].Key))
		}
	}
	term.Children(t, func(c term.Term) bool {
		n += madeBytes(c)
		return true
	})
	return n
}

// quote makes a word for code.
func (m *Machine) quote(q quoted, height int) (word, bool) {
	i, ok := m.codeIndex[q.term]
	if !ok {
		i = m.addCode(q)
	}
	if !m.reserve(2, height) {
		return 0, false
	}
	p := m.alloc(2)
	*m.at(p) = header(kCode, 2)
	*m.at(p + 8) = fromInt(int64(i))
	return p | tagBox, true
}

// unitAt finds the unit an instruction belongs to.
func (m *Machine) unitAt(at int) *unit {
	lo, hi := 0, len(m.units)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; m.units[mid].from <= at {
			lo = mid
		} else {
			hi = mid
		}
	}
	return &m.units[lo]
}

// bound gives the variables that are bound at a place, the innermost first.
func (u *unit) bound(pos int) []string {
	names := slices.Clone(u.scope)
	var walk func(t term.Term) bool
	walk = func(t term.Term) bool {
		if v, ok := t.(*term.Var); ok && v.Pos() == pos {
			return false
		}
		around := len(names)
		switch t := t.(type) {
		case *term.Lam:
			names = append(names, t.Param)
		case *term.LetRec:
			for _, f := range t.Funcs {
				names = append(names, f.Name)
			}
		}
		if !term.Children(t, walk) {
			return false
		}
		names = names[:around]
		return true
	}
	if walk(u.term) {
		return nil
	}
	slices.Reverse(names)
	return names
}

// locate gives a fault its place.
func (m *Machine) locate(f *fault.Fault, u *unit, pos int) {
	pos = u.uses.Blame(f, pos)
	f.EvalDepth = u.depth
	switch {
	case u.depth > 0:
		f.In = "eval"
	case u.input:
		f.In = "input"
	default:
		f.In = "code"
		if u.source != nil && u.source.In != "" {
			f.In = u.source.In
		}
	}
	switch {
	case u.source == nil:
	case u.source.Form == term.PIF:
		text.At(f, u.source, pos)
	default:
		parse.At(f, u.source, u.term.Pos(), pos)
	}
}
