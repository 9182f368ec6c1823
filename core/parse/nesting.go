package parse

import (
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// nesting returns how deep brackets are nested in a term's canonical JSON. It is
// that of the source but for applications to several arguments, which are written
// out one inside the other, and for records given to effects.
func nesting(t term.Term) int {
	switch t := t.(type) {
	case *term.Var, *term.Self, *term.CodeOf, *term.Dec:
		return 1
	case *term.Lam:
		return 1 + nesting(t.Body)
	case *term.LetRec:
		deep := 1 + nesting(t.Body)
		for _, f := range t.Funcs {
			deep = max(deep, 3+nesting(f.Lam))
		}
		return deep
	case *term.App:
		return 2 + max(nesting(t.Func), nesting(t.Arg))
	case *term.If:
		return 2 + max(nesting(t.Cond), nesting(t.Then), nesting(t.Else))
	case *term.List:
		return 1 + depthOf(t.Items)
	case *term.Record:
		deep := 0
		for _, f := range t.Fields {
			deep = max(deep, nesting(f.Value))
		}
		return 2 + deep
	case *term.Quote:
		return 1 + nesting(t.Body)
	case *term.Continue:
		return 2 + nesting(t.Input)
	case *term.Effect:
		return 1 + nesting(t.Arg)
	case *term.Prim:
		row := prim.Get(t.ID)
		switch row.Shape {
		case prim.Flag, prim.Unary, prim.NamedOrTerm, prim.Within:
			return 1 + depthOf(t.Args)
		}
		if row.Listed(len(t.Args)) {
			return 3 + depthOf(t.Args)
		}
		return 2 + depthOf(t.Args)
	}
	return 0
}

func depthOf(ts []term.Term) int {
	deep := 0
	for _, t := range ts {
		deep = max(deep, nesting(t))
	}
	return deep
}
