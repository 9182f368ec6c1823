package naive

import (
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A Scene is a term that is about to be evaluated, as [Config.Visit] sees it. It
// may be kept.
type Scene struct {
	Step  uint64 // steps used before it
	Left  uint64 // steps of the budget that are left
	Depth int
	Term  term.Term

	env *env
	ctx *context
	run *run
}

// A Place is where a term stands: the document's name and the pointer into it,
// with line and column where the source is text.
type Place struct {
	In        string
	At        fault.Pointer
	Line, Col int
}

// Place finds where the term stands. It is to be asked while the run is at the term.
func (s Scene) Place() Place {
	key := standing{s.Term, s.ctx}
	p, ok := s.run.places[key]
	if !ok {
		// Finding it reads the source, and a loop is often at the same place.
		f := s.ctx.fail(s.Term, &fault.Fault{})
		p = Place{f.In, f.At, f.Line, f.Col}
		if s.run.places == nil {
			s.run.places = map[standing]Place{}
		}
		s.run.places[key] = p
	}
	return p
}

// standing is a term in a document.
type standing struct {
	term term.Term
	ctx  *context
}

// Vars calls visit for the variables in scope, the innermost first, until it
// says false. Of a name that is bound twice the outer one comes later. Values
// must not be changed; functions are opaque.
func (s Scene) Vars(visit func(name string, v value.Value) bool) {
	for e := s.env; e != nil && visit(e.name, e.val); e = e.next {
	}
}
