package text

import (
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// standsAlone reports whether c, which no parentheses follow, is a primitive that is
// read as a function of its operands: one that takes so many and no other number of
// them, and has no operator or operand beside it, since a function is none of its.
func (r *reader) standsAlone(c callee) bool {
	if c.row == nil || c.tool || c.row.Form && c.id != prim.Fold && c.id != prim.And && c.id != prim.Or {
		return false
	}
	if least, most := arity(c.row); least != most && !c.row.Beside {
		return false
	}
	first := r.i - 1
	if r.toks[first].off != c.tok.off {
		first-- // ::name
	}
	if first > 0 {
		if k := r.toks[first-1].kind; k == tokNot || levels[k] > levelPipe {
			return false
		}
	}
	switch k := r.tok().kind; {
	case r.begins(r.i):
		return true
	case k == tokDot, k == tokOpenList, k == tokName, k == tokQuoted, k == tokInt, k == tokDec, k == tokString, k == tokOpenBrace, k == tokBad:
		return false
	default:
		return levels[k] <= levelPipe
	}
}

// function returns a primitive as a value: x => length(x), (a, b) => add(a, b). Where a
// pair is passed to it, max is a function of the pair's parts too; see
// [reader.passPair].
func (r *reader) function(c callee) term.Term {
	if !c.row.Beside {
		return r.functionOf(c, len(c.row.Params))
	}
	f := r.functionOf(c, 1)
	r.two[f.(*term.Lam)] = r.two[r.functionOf(c, 2).(*term.Lam)]
	return f
}

// functionOf returns the function that applies c to so many operands.
func (r *reader) functionOf(c callee, n int) term.Term {
	at := term.At(c.tok.off)
	params, operands := make([]prim.Parameter, n), make([]term.Term, n)
	for i := range params {
		name := "x"
		if n > 1 {
			name = string(rune('a' + i))
		}
		params[i] = prim.Parameter{At: at, Pattern: prim.Pattern{Name: name, Bind: true}}
		operands[i] = &term.Var{At: at, Name: name}
	}
	body, _ := r.apply(c, operands)
	return r.ofParams(params, body)
}
