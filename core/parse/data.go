package parse

import (
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/internal/long"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// maxLong is how many digits {"int":"…"} may have.
const maxLong = 1_000_000

// datum builds an object of data: the shapes that results have for what JSON
// can't say are read back, everything else is a record.
func (b *builder) datum(i uint32) term.Term {
	n := &b.nodes[i]
	if n.count() != 1 {
		return b.record(i, i, data)
	}
	at := term.At(n.off)
	v := i + 2
	value := &b.nodes[v]
	switch b.string(i + 1) {
	case "pair":
		if value.kind() == array && value.count() == 2 {
			args := b.operands(2)
			b.items(v, args, data)
			return b.prim(at, prim.Pair, args)
		}
	case "dec":
		if value.kind() == text {
			if t, ok := decLiteral(at, b.string(v)); ok {
				return t
			}
		}
	case "record":
		if value.kind() == object {
			return b.record(i, v, data)
		}
	case "int":
		if value.kind() != text {
			break
		}
		if s := b.string(v); isInteger(s) {
			if len(s) > maxLong {
				return b.refuse(i, &fault.Fault{
					Message:  "the integer has more than a million digits",
					Expected: "at most 1000000 digits",
					Hint:     "Compute large numbers in the program, with mul.",
				})
			}
			if large := long.Parse(s, nil); !large.IsInt64() {
				return &term.Big{At: at, Value: large}
			} else {
				return &term.Int{At: at, Value: large.Int64()}
			}
		}
	}
	return b.record(i, i, data)
}

func isInteger(s string) bool {
	if s != "" && s[0] == '-' {
		s = s[1:]
	}
	return s != "" && digits(s, 0) == len(s)
}
