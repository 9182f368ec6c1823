package check

import (
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// indexing is an item of a list, a character of a string or a record's field, or a
// part of a list or a string. Which index is wanted follows from what it is into: of
// two that a caller gives, which may be anything, the first is taken for a list or a
// string.
func indexing(u *use) *variable {
	c, res := u.c, u.c.variable()
	sliced := len(u.args) == 3
	if _, literal := u.t.Args[1].(*term.Str); literal && !sliced {
		return getting(u)
	}
	x := c.testOf(u.t, u.t.ID, 1, "", u.row.Params[1].Kinds)
	both := func(s, i *shape) {
		record := s.kind == prim.KindRecord
		fits := i.kind == prim.KindInt && !record || i.kind == prim.KindString && record && !sliced || i.kind == prim.KindUnit && sliced && !record
		switch {
		case s.dynamic || i.dynamic || fits:
			x.ok = true
		case s.seed != nil && (i.seed == nil || record):
			s.seed.dead |= s.kind
			return
		case i.seed != nil:
			i.seed.dead |= i.kind
			return
		default:
			x.bad |= i.kind
			return
		}
		switch {
		case s.dynamic || sliced || s.kind == prim.KindString:
			c.add(res, s)
		case s.kind == prim.KindList:
			c.flow(s.item, res)
		case record:
			c.fieldsOf(s, func(_ string, v *variable) { c.flow(v, res) })
		}
	}
	u.pairs(0, 1, both)
	u.rest(2)
	return res
}
