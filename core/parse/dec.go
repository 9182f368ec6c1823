package parse

import (
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// dec builds the decimal of the object i, whose digits are the value v.
func (b *builder) dec(i, v uint32) term.Term {
	if b.nodes[v].kind() != text {
		return b.failShape(i, prim.Get(prim.Dec), v, code)
	}
	t, ok := decLiteral(term.At(b.nodes[i].off), b.string(v))
	if !ok {
		return b.refuse(v, &fault.Fault{
			Message:  b.describe(v) + " is no decimal of at most 4,096 digits",
			Expected: "a number in quotes, as JSON writes it",
			Got:      b.describe(v),
			Hint:     `Write digits with a point: {"dec":"3.14"}.`,
		})
	}
	return t
}

func decLiteral(at term.At, digits string) (term.Term, bool) {
	d, ok := value.ParseDec(digits)
	if !ok {
		return nil, false
	}
	return &term.Dec{At: at, Unscaled: d.Unscaled(), Scale: d.Scale()}, true
}
