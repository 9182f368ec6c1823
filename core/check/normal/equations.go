package normal

import (
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// orderOperands writes gt and gte as lt and lte, and puts the operands of what is symmetric
// into one order.
func (n *normaliser) orderOperands(id term.ID, args []val) (term.ID, []val) {
	switch {
	case id == prim.Gt:
		return prim.Lt, []val{args[1], args[0]}
	case id == prim.Gte:
		return prim.Lte, []val{args[1], args[0]}
	case symmetric(id) && n.compare(args[0], args[1]) > 0:
		return id, []val{args[1], args[0]}
	}
	return id, args
}

func integer(v val) (value.Int, bool) {
	l, ok := v.(lit)
	if !ok {
		return value.Int{}, false
	}
	i, ok := l.v.(value.Int)
	return i, ok
}

func is(v val, k int64) bool {
	i, ok := integer(v)
	if !ok {
		return false
	}
	x, ok := i.Int64()
	return ok && x == k
}

// identity applies the equations of single rows.
func (n *normaliser) identity(id term.ID, args []val, b *block) (val, bool) {
	number := func(v val) bool { k := b.kinds(v); return k != 0 && k&^prim.KindNumber == 0 }
	whole := func(v val) bool { return b.kinds(v) == prim.KindInt }
	switch id {
	case prim.Add, prim.Sub, prim.Mul:
		if v, done := n.arithmetic(id, args, b); done {
			return v, true
		}
		switch {
		case id != prim.Mul && is(args[1], 0) && number(args[0]), id == prim.Mul && is(args[1], 1) && number(args[0]):
			return args[0], true
		case id == prim.Add && args[0] == args[1]:
			// A decimal has as many digits after the point, and fails alike.
			if _, ok := args[0].(*atom); ok {
				return n.strict(prim.Mul, []val{args[0], lit{value.NewInt(2)}}, b)
			}
		}
	case prim.Div:
		if is(args[1], 1) && whole(args[0]) {
			return args[0], true
		}
	case prim.Mod:
		if is(args[1], 1) && whole(args[0]) {
			return lit{value.NewInt(0)}, true
		}
	case prim.Eq, prim.Lte, prim.Lt:
		if a, ok := args[0].(*atom); ok && args[1] == val(a) && number(a) {
			return lit{value.Bool(id != prim.Lt)}, true
		}
		for i, a := range args { // -x < 0 is 0 < x
			if x := negative(a); x != nil && is(args[1-i], 0) && id != prim.Eq {
				turned := []val{x, x}
				turned[i] = args[1-i]
				return n.strict(id, turned, b)
			}
		}
		return n.decide(id, args, b)
	case prim.Not:
		return n.not(args[0], b)
	}
	return nil, false
}

// negative returns the unknown that v is minus; nil: none.
func negative(v val) val {
	a, ok := v.(*atom)
	if !ok || a.c == nil || a.c.sum == nil || len(a.c.sum.terms) != 1 {
		return nil
	}
	if t := a.c.sum.terms[0]; len(t.of) == 1 && t.times.IsInt64() && t.times.Int64() == -1 {
		return t.of[0]
	}
	return nil
}

// not turns a comparison of numbers round, and takes a second not away.
func (n *normaliser) not(v val, b *block) (val, bool) {
	a, ok := v.(*atom)
	if !ok || a.c == nil || a.c.what != aPrim {
		return nil, false
	}
	x := a.c.args
	if !a.c.total {
		return nil, false // it stays there anyway, to fail
	}
	switch a.c.id {
	case prim.Not:
		if b.kinds(x[0]) == prim.KindBool {
			return b.resolve(x[0]), true
		}
	case prim.Lt:
		return n.strict(prim.Lte, []val{x[1], x[0]}, b)
	case prim.Lte:
		return n.strict(prim.Lt, []val{x[1], x[0]}, b)
	}
	return nil, false
}

// total reports whether a row gives a value whatever its operands are that are
// not known.
func (n *normaliser) total(id term.ID, args []val, b *block) bool {
	r := prim.Get(id)
	for i, a := range args {
		if k := b.kinds(a); k == 0 || k&^r.Params[i].Kinds != 0 {
			return false
		}
	}
	if prim.Get(id).Total {
		return true
	}
	switch {
	case integral[id]:
		return b.kinds(args[0]) == prim.KindInt && b.kinds(args[1]) == prim.KindInt
	case dividesSafely(id, args, b):
		return true
	case id == idGet:
		return len(args) == 3
	case id == prim.Head || id == prim.Tail:
		a, ok := args[0].(*atom)
		return ok && b.fact(a).some
	case id == idEqual || id == idContains:
		// Functions can't be compared; these operands hold none.
		scalar := prim.KindNumber | prim.KindBool | prim.KindString | prim.KindUnit
		return id == idEqual && (b.kinds(args[0])&^scalar == 0 || b.kinds(args[1])&^scalar == 0) ||
			id == idContains && b.kinds(args[0]) == prim.KindString && b.kinds(args[1]) == prim.KindString
	}
	return false
}

// resultKinds returns what a row can give for its operands.
func resultKinds(id term.ID, args []val, b *block) prim.Kinds {
	k := prim.Get(id).Result & prim.KindAny
	switch id {
	case prim.Add, prim.Sub, prim.Mul, prim.Div:
		x, y := b.kinds(args[0]), b.kinds(args[1])
		switch {
		case x == prim.KindInt && y == prim.KindInt:
			return prim.KindInt
		case x == prim.KindDec || y == prim.KindDec:
			return prim.KindDec
		}
	case idSlice:
		if x := b.kinds(args[0]) & k; x != 0 {
			return x
		}
	}
	return k
}

var idSlice = row("slice")
