package core

import (
	"slices"
	"sync"

	"github.com/mcp-pif/mcp-pif/core/code"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// An analysed is quoted code that is looked at, read from its canonical JSON, so
// that places are the same however it was made.
type analysed struct {
	term   term.Term
	source *term.Source
	size   uint64 // nodes, and 64 bytes of what is written in them each
	// tool is set where the code can only be that of a tool, since it says self or
	// continue; eval refuses such code.
	tool bool
}

// look pays for reading code, and reads it; false: that can't be paid.
func look(c *value.Code, m *prim.Meter) (*analysed, *fault.Fault, bool) {
	nodes, bytes := extent(c.Term)
	if !m.Spend(nodes*stepsPerNode + bytes*stepsPerText/8) {
		return nil, nil, false
	}
	if f := m.Hold(int64(nodes*bytesPerNode + bytes*bytesPerText)); f != nil {
		return nil, f, false
	}
	a := &analysed{term: c.Term, size: nodes + bytes/64, tool: ofTool(c.Term)}
	p, f := parse.Code(text.Canonical(c.Term), parse.Options{Tool: "tool", MaxBytes: 1 << 30})
	if f == nil {
		a.term, a.source = p.Term, p.Source
	}
	return a, nil, true
}

// closed returns the code as a function of the names that nothing in it binds, sorted; that
// of a tool is one as it is.
func (a *analysed) closed() (t term.Term, expects []string) {
	if a.tool {
		return a.term, nil
	}
	expects = expected(a.term)
	return prim.Function(term.At(a.term.Pos()), expects, a.term), expects
}

// libraryNodes is how many nodes the functions have that rows of the library stand
// for. They are counted when they are first asked for: not each process does.
var libraryNodes = sync.OnceValue(func() []uint64 {
	all := make([]uint64, len(prim.Table))
	for i := range prim.Table {
		if prim.Table[i].Body != "" {
			all[i], _ = extentOf(prim.Body(term.ID(i), len(prim.Table[i].Params)), nil)
		}
	}
	return all
})

// extent is how many nodes a term has, those of the library's rows in it included,
// and how many bytes what is written in them.
func extent(t term.Term) (nodes, bytes uint64) { return extentOf(t, libraryNodes()) }

func extentOf(t term.Term, library []uint64) (nodes, bytes uint64) {
	var walk func(t term.Term) bool
	walk = func(t term.Term) bool {
		nodes++
		switch t := t.(type) {
		case *term.Str:
			bytes += uint64(len(t.Value))
		case *term.Var:
			bytes += uint64(len(t.Name))
		case *term.Lam:
			bytes += uint64(len(t.Param))
		case *term.LetRec:
			for _, f := range t.Funcs {
				bytes += 16 + uint64(len(f.Name))
			}
		case *term.CodeOf:
			bytes += uint64(len(t.Name))
		case *term.Effect:
			bytes += uint64(len(t.Op) + len(t.In))
		case *term.Big:
			bytes += 24 * uint64(len(t.Value.Bits()))
		case *term.Dec:
			bytes += 24*uint64(len(t.Unscaled.Bits())) + uint64(max(t.Scale, 0))
		case *term.Record:
			for i := range t.Fields {
				bytes += 16 + uint64(len(t.Fields[i].Key))
			}
		case *term.Prim:
			if library != nil {
				nodes += library[t.ID]
			}
		}
		return term.Children(t, walk)
	}
	walk(t)
	return nodes, bytes
}

// ofTool reports whether a term says self or continue, outside quotes.
func ofTool(t term.Term) bool {
	switch t.(type) {
	case *term.Quote:
		return false
	case *term.Self, *term.Continue:
		return true
	}
	return !term.Children(t, func(t term.Term) bool { return !ofTool(t) })
}

// expected is the names that nothing in the terms binds, sorted: those of code
// that an eval in them evaluates, too, and where that is computed those of all
// the code that is quoted there.
func expected(ts ...term.Term) []string {
	var w expecting
	for _, t := range ts {
		w.bound, w.quoted, w.computes = map[string]int{}, nil, false
		w.walk(t)
		if w.computes {
			w.names = append(w.names, w.quoted...)
		}
	}
	slices.Sort(w.names)
	return slices.Compact(w.names)
}

type expecting struct {
	bound         map[string]int // how many lambdas around bind the name
	names, quoted []string
	computes      bool // some eval evaluates code that is computed
}

func (w *expecting) walk(t term.Term) bool {
	switch t := t.(type) {
	case *term.Var:
		if w.bound[t.Name] == 0 {
			w.names = append(w.names, t.Name)
		}
		return true
	case *term.Lam:
		w.bound[t.Param]++
		w.walk(t.Body)
		w.bound[t.Param]--
		return true
	case *term.LetRec:
		for _, f := range t.Funcs {
			w.bound[f.Name]++
		}
		term.Children(t, w.walk)
		for _, f := range t.Funcs {
			w.bound[f.Name]--
		}
		return true
	case *term.Quote:
		w.quoted = append(w.quoted, expected(t.Body)...)
		return true
	case *term.Prim:
		if t.ID == prim.Eval {
			if q, ok := t.Args[0].(*term.Quote); ok {
				return w.walk(q.Body)
			}
			w.computes = true
		}
	}
	return term.Children(t, w.walk)
}

// work is what an analysis tells of its steps, of which each holds so many bytes.
func work(m *prim.Meter, bytes int64, failed **fault.Fault) func(steps int) bool {
	return func(steps int) bool {
		if !m.Spend(uint64(steps) * stepsPerWork) {
			return false
		}
		*failed = m.Hold(int64(steps) * bytes)
		return *failed == nil
	}
}

// What parts of a program take in memory, in bytes, as Go lays them out on 64 bits.
const (
	programBytes = 512
	metaBytes    = 16
	constBytes   = 88
	termBytes    = 72 // of the largest kind, with the reference to it
	primBytes    = 48
	varBytes     = 40
	intBytes     = 32
	fieldBytes   = 16 // beside its value
)

// Size is about how many bytes of memory the program takes, with its source and
// its canonical JSON. The first call goes through all of the code.
func (p *Program) Size() int {
	d := p.derive()
	if n := d.size.Load(); n > 0 {
		return int(n)
	}
	u := p.prog.Unit
	n := programBytes + 2*len(p.prog.Source.Text) +
		len(u.Code)*code.InstrSize + len(u.Meta)*metaBytes + len(u.Consts)*constBytes +
		size(p.prog.Term)
	d.size.Store(int64(n))
	return n
}

// size is about what a term takes.
func size(t term.Term) int {
	n := termBytes
	switch t := t.(type) {
	case *term.Int:
		return intBytes
	case *term.Var:
		return varBytes
	case *term.Prim:
		n = primBytes
	case *term.Record:
		n += len(t.Fields) * fieldBytes
	}
	term.Children(t, func(c term.Term) bool {
		n += size(c)
		return true
	})
	return n
}
