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
var bodies sync.Map // string → term.Term

// Body returns the function of n operands that a row of the prelude is; nil for other
// rows. It panics if the row's body is no closed function: a test reads them all.
func Body(id term.ID, n int) term.Term {
	row := &Table[id]
	body := row.Body
	if row.Short != "" && n < len(row.Params) {
		body = row.Short
	}
	if body == "" {
		return nil
	}
	if t, ok := bodies.Load(body); ok {
		return t.(term.Term)
	}
	t, err := ParseBody(body)
	if err != nil {
		panic(fmt.Sprintf("prim: the body of %s: %v", row.Name, err))
	}
	bodies.Store(body, t)
	return t
}

// Expand returns what the use of a row of the prelude means: its body applied
// to the operands. Every node of the body has the place of the use, so that a
// fault in it is a fault of the use. It returns nil for other rows.
func Expand(p *term.Prim) term.Term {
	body := Body(p.ID, len(p.Args))
	if body == nil {
		return nil
	}
	return applied(term.Relocate(body, func(term.At) term.At { return p.At }), p.Args, p.At)
}

func applied(t term.Term, args []term.Term, at term.At) term.Term {
	for _, a := range args {
		t = &term.App{At: at, Func: t, Arg: a}
	}
	return t
}
