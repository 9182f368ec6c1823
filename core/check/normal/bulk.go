package normal

import (
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// bulk is the further steps of work on structures that are known, which grows
// with them: for so many parts that are looked at, or made.
func (n *normaliser) bulk(id term.ID, args []val, b *block) int {
	switch id {
	case idKeys, idValues, idPut, idDel, idGet, idHas:
		r, ok := args[0].(*record)
		switch {
		case !ok:
			return 0
		case id == idKeys || id == idValues:
			return len(r.keys) / 2
		case id == idPut || id == idDel:
			return len(r.keys) / 8
		}
		return len(r.keys) / 32
	case idPush:
		return n.length(b, args[0]) / 4
	case prim.Length, idNth:
		return n.length(b, args[0]) / 16
	}
	return 0
}
