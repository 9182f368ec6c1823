package prim

import (
	"fmt"
	"sync"

	"github.com/mcp-pif/mcp-pif/core/term"
)

// ParseBody reads the text form; package text sets it, which this package
// can't import.
var ParseBody func(src string) (term.Term, error)

// bodies holds the terms of the rows with a body, read at their first use.
var bodies sync.Map // term.ID → term.Term

// Body returns the function that a row of the prelude is; nil for other rows.
// It panics if the row's body is no closed function: a test reads them all.
func Body(id term.ID) term.Term {
	if t, ok := bodies.Load(id); ok {
		return t.(term.Term)
	}
	row := &Table[id]
	if row.Body == "" {
		return nil
	}
	t, err := ParseBody(row.Body)
	if err != nil {
		panic(fmt.Sprintf("prim: the body of %s: %v", row.Name, err))
	}
	bodies.Store(id, t)
	return t
}

// Expand returns what the use of a row of the prelude means: its body applied
// to the operands. Every node of the body has the place of the use, so that a
// fault in it is a fault of the use. It returns nil for other rows.
func Expand(p *term.Prim) term.Term {
	body := Body(p.ID)
	if body == nil {
		return nil
	}
	t := term.Relocate(body, p.At)
	for _, a := range p.Args {
		t = &term.App{At: p.At, Func: t, Arg: a}
	}
	return t
}
