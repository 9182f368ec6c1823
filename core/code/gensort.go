package code

import (
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// sort_by with a plain key is tried by one instruction before what the row means in PIF,
// which stays there for all that the instruction leaves to it.

// A sortKey is what a list is sorted by: the items themselves, or a field of each; or the
// negative of it.
type sortKey struct {
	Field    *term.Str // nil: the item
	Negative bool
}

// keyOf reports whether a function only finds a plain key.
func keyOf(f term.Term) (k sortKey, ok bool) {
	l, ok := f.(*term.Lam)
	if !ok {
		return k, false
	}
	body := l.Body
	if p, ok := body.(*term.Prim); ok && p.ID == prim.Sub {
		if zero, ok := p.Args[0].(*term.Int); !ok || zero.Value != 0 {
			return k, false
		}
		k.Negative, body = true, p.Args[1]
	}
	if p, ok := body.(*term.Prim); ok && p.ID == prim.GetField && len(p.Args) == 2 {
		if k.Field, ok = p.Args[1].(*term.Str); !ok {
			return k, false
		}
		body = p.Args[0]
	}
	v, ok := body.(*term.Var)
	return k, ok && v.Name == l.Param
}

// trySort puts the instruction before the body of a use of sort_by: n is what binds the
// row's two operands.
func (c *compiler) trySort(n *node, t *term.Prim) {
	key, ok := keyOf(t.Args[0])
	if !ok || c.unit.Narrows || n.kind != kLet || n.body.kind != kLet {
		return
	}
	list := c.newNode()
	list.kind, list.b, list.pos, list.size = kVar, n.body.b, n.pos, 1
	list.b.uses++
	m := c.newNode()
	m.kind, m.a, m.body, m.key, m.pos, m.size = kSort, list, n.body.body, &key, n.pos, n.body.body.size
	n.body.body = m
}

// sort compiles it: the value of either way is in dst.
func (c *compiler) sort(n *node, dst, top uint8) {
	f := c.f
	var end label
	if w := c.locate(f, n.a.b, 0); w.kind == inReg && !n.a.b.self && top < wide {
		if n.key.Field != nil {
			f.emit(Instr{Op: LoadK, A: top, D: c.constant(Const{Term: n.key.Field}), K: int64(top)}, n.pos)
		} else {
			f.emit(Instr{Op: LoadI, A: top, K: WordUnit}, n.pos)
		}
		side := ConstRight
		if n.key.Negative {
			side = ConstLeft
		}
		f.jump(Instr{Op: Sort, A: dst, B: uint8(w.n), C: top}, &end, n.pos)
		f.sides(prim.SortBy, side, top+1)
	}
	c.value(n.body, dst, top)
	f.bind(&end)
}
