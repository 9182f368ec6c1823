package text

import (
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// isNegated reports whether 0 - a is written -a: where a needs no parentheses for
// it and is no number, which would take the sign.
func isNegated(t *term.Prim) bool {
	if zero, ok := t.Args[0].(*term.Int); !ok || zero.Value != 0 {
		return false
	}
	switch a := t.Args[1].(type) {
	case *term.Var, *term.CodeOf, *term.Self:
		return true
	case *term.Dec:
		return a.Scale == 0
	case *term.App:
		_, let := a.Func.(*term.Lam)
		return !let
	case *term.Prim:
		_, infix := operators[a.ID]
		return !infix && a.ID != prim.Not && a.ID != prim.Pair
	}
	return false
}

// operator returns the infix operator a term is written with.
func operator(t term.Term) (tokKind, bool) {
	p, ok := t.(*term.Prim)
	if !ok {
		return 0, false
	}
	if p.ID == prim.Not {
		same, ok := p.Args[0].(*term.Prim)
		return tokNe, ok && same.ID == prim.Equal
	}
	if p.ID == prim.Sub && isNegated(p) || len(p.Args) == 2 && byOperands(p.ID, p.Args[0], p.Args[1]) {
		return 0, false
	}
	k, ok := operators[p.ID]
	return k, ok
}

// operators is the infix operator of each row that has one.
var operators = func() map[term.ID]tokKind {
	m := map[term.ID]tokKind{}
	for k := tokPipe; k < tokKinds; k++ {
		if id, ok := infix(k); ok && k != tokNe {
			m[id] = k
		}
	}
	return m
}()

// operands of an infix operator's term.
func operands(t *term.Prim) (a, b term.Term) {
	if t.ID == prim.Not {
		t = t.Args[0].(*term.Prim)
	}
	return t.Args[0], t.Args[1]
}

// chain spells infix operators of one level, each the left operand of the next.
func (w *speller) chain(t *term.Prim) (*doc, int) {
	k, _ := operator(t)
	level := int(levels[k])
	var ops []tokKind
	var right []term.Term
	var first term.Term = t
	for {
		k, ok := operator(first)
		if !ok || int(levels[k]) != level || level == levelCompare && len(ops) > 0 {
			break
		}
		a, b := operands(first.(*term.Prim))
		ops, right, first = append(ops, k), append(right, b), a
	}
	left := level
	if level == levelCompare {
		left = level + 1
	}
	head := w.term(first, left)
	rest := make([]*doc, 0, 3*len(ops))
	for i := len(ops) - 1; i >= 0; i-- {
		rest = append(rest, line, lit(spelled[ops[i]]+" "), w.term(right[i], level+1))
	}
	return group(head, nest(indent, rest...)), level
}

// byOperands reports whether an operator is read by what its operands are: < of what is
// no number as the order that compare gives, ++ of what is a list as the items of both.
// A row of that name is what JSON means by it, numbers or strings only.
func byOperands(id term.ID, a, b term.Term) bool {
	switch id {
	case prim.Lt, prim.Lte, prim.Gt, prim.Gte:
		const ordered = prim.KindString | prim.KindList | prim.KindPair
		return always(a, ordered) || always(b, ordered)
	case prim.Concat:
		return always(a, prim.KindList) || always(b, prim.KindList)
	}
	return false
}

// always reports whether a term gives values of the kinds alone, by its form.
func always(t term.Term, kinds prim.Kinds) bool {
	switch t := t.(type) {
	case *term.Str:
		return kinds&prim.KindString != 0
	case *term.List:
		return kinds&prim.KindList != 0
	case *term.Prim:
		result := prim.Get(t.ID).Result
		return result != 0 && result&^kinds == 0
	}
	return false
}

// joined returns a ++ b of lists, as [...a, ...b] is read.
func (r *reader) joined(at term.At, a, b term.Term) term.Term {
	if l, ok := b.(*term.List); ok && len(l.Items) == 1 {
		return operationOf(at, "push", a, l.Items[0])
	}
	if l, ok := a.(*term.List); ok && len(l.Items) == 1 {
		return operationOf(at, "cons", l.Items[0], b)
	}
	return operationOf(at, "append", a, b)
}
