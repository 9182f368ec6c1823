package text

import (
	"fmt"
	"slices"
	"strings"

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
func (w *speller) operator(t term.Term) (tokKind, bool) {
	p, ok := t.(*term.Prim)
	if !ok || w.called[p] || w.named[p] {
		return 0, false
	}
	if p.ID == prim.Not {
		same, ok := p.Args[0].(*term.Prim)
		return tokNe, ok && same.ID == prim.Equal
	}
	if len(p.Args) == 2 && isPercent(p.ID, p.Args[0], p.Args[1]) {
		w.called[p.Args[1].(*term.Prim)] = true
	}
	if p.ID == prim.Sub && isNegated(p) || p.ID == prim.Div && w.kinds.isMean(p.Args[0], p.Args[1]) || len(p.Args) == 2 && w.kinds.byOperands(p.ID, p.Args[0], p.Args[1]) {
		return 0, false
	}
	w.isOpen(p)
	k, ok := operators[p.ID]
	return k, ok
}

// isOpen reports whether an operator, as it is written, is read by the types of its operands.
func (w *speller) isOpen(p *term.Prim) bool {
	open, known := w.open[p]
	if !known && !w.named[p] && w.quotes == 0 && len(p.Args) == 2 {
		open = w.kinds.undecided(p.ID, p.Args[0], p.Args[1])
		w.open[p] = open
	}
	return open
}

// rounds is the operations that a / b as their first operand is rounded by; see
// [reader.exactly].
var rounds = map[string]bool{"round": true, "format": true, "floor": true, "ceil": true, "to_int": true, "round_dec": true}

// divides returns the divisions in sums and products, or in the branches of a conditional.
func divides(t term.Term) []*term.Prim {
	if c, ok := t.(*term.If); ok {
		return append(divides(c.Then), divides(c.Else)...)
	}
	p, ok := t.(*term.Prim)
	if ok && prim.Get(p.ID).Name == "pow" {
		return divides(p.Args[0])
	}
	if !ok || len(p.Args) != 2 || p.ID != prim.Mul && p.ID != prim.Div && p.ID != prim.Add && p.ID != prim.Sub {
		return nil
	}
	all := append(divides(p.Args[0]), divides(p.Args[1])...)
	if p.ID == prim.Div {
		all = append(all, p)
	}
	return all
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
	k, _ := w.operator(t)
	level := int(levels[k])
	var ops []tokKind
	var right []term.Term
	var first term.Term = t
	for {
		k, ok := w.operator(first)
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

// A kinder tells of which kinds alone the values of a variable are, by its form; 0: not
// known.
type kinder struct {
	vars map[string][]prim.Kinds
	open func(*term.Prim) bool // whether it is read by the types of its operands
}

// bind adds a variable around what is read next, unbind takes it away again.
func (k kinder) bind(name string) { k.vars[name] = append(k.vars[name], 0) }

func (k kinder) unbind(name string) { k.vars[name] = k.vars[name][:len(k.vars[name])-1] }

// is notes what the values of the variable that was bound last under a name are.
func (k kinder) is(name string, kinds prim.Kinds) {
	if n := len(k.vars[name]); n > 0 {
		k.vars[name][n-1] = kinds
	}
}

// What is set beside the kinds of a variable: that it is a list of pairs, a sum or how
// many of a list fit, how long one is, what the one group of a pattern fits, or what
// clock.now gives.
const (
	pairs = prim.Kinds(1) << (15 - iota)
	total
	count
	found
	now
	inexact = total | count
)

// isMean reports whether a / b is a sum, or how many fit, divided by how many there are or
// by a sum, or has a root, a quotient or a mean in it, by its form: what is never meant to be
// rounded down.
func (k kinder) isMean(a, b term.Term) bool {
	x, y := k.amount(a), k.amount(b)
	return x&total != 0 && y != 0 || x == inexact || y == inexact
}

// amount tells whether a term is a sum or a length, or inexact, by its form.
func (k kinder) amount(t term.Term) prim.Kinds {
	if _, ok := lengthIn(t); ok {
		return count
	}
	switch t := t.(type) {
	case *term.Var:
		return k.of(t) & (total | count)
	case *term.Prim:
		switch name := prim.Get(t.ID).Name; {
		case name == "sum", name == "count", name == "fold" && givesSum(t.Args[0]):
			return total
		case t.ID == prim.Length:
			return count
		case name == "sqrt", name == "ratio", name == "mean":
			return inexact
		case t.ID == prim.Add, t.ID == prim.Sub, t.ID == prim.Mul:
			if k.amount(t.Args[0]) == inexact || k.amount(t.Args[1]) == inexact {
				return inexact
			}
		}
	}
	return 0
}

// givesSum reports whether a function gives a sum.
func givesSum(f term.Term) bool {
	l, sum := f.(*term.Lam)
	if sum {
		results(l.Body, nil, func(t term.Term) {
			p, ok := t.(*term.Prim)
			sum = sum && ok && p.ID == prim.Add
		})
	}
	return sum
}

// ofPairs reports whether a term gives a list of pairs, by its form.
func (k kinder) ofPairs(t term.Term) bool {
	switch t := t.(type) {
	case *term.Var:
		return k.of(t)&pairs != 0
	case *term.Prim:
		row := prim.Get(t.ID)
		if row.Name == "map" {
			f, written := t.Args[0].(*term.Lam)
			return written && givesPair(f.Body)
		}
		return row.Pairs || row.Keeps && k.ofPairs(row.Through(t.Args))
	case *term.List:
		return len(t.Items) > 0 && !slices.ContainsFunc(t.Items, func(x term.Term) bool { return !givesPair(x) })
	}
	return false
}

// givesPair reports whether what a term gives is written as a pair.
func givesPair(t term.Term) bool {
	pair := true
	results(t, nil, func(t term.Term) {
		p, ok := t.(*term.Prim)
		pair = pair && ok && p.ID == prim.Pair
	})
	return pair
}

// ofBound is of, for a value that a variable is bound to.
func (k kinder) ofBound(t term.Term) prim.Kinds {
	kinds := k.of(t) | k.amount(t)
	if k.ofPairs(t) {
		kinds |= pairs
	}
	return kinds | k.special(t)
}

// special tells whether a term is what the one group of a pattern fits, or what clock.now gives.
func (k kinder) special(t term.Term) prim.Kinds {
	switch t := t.(type) {
	case *term.Var:
		return k.of(t) & (found | now)
	case *term.Effect:
		if t.Op == "clock.now" {
			return now
		}
	case *term.Prim:
		if row := prim.Get(t.ID); row.Name == "re_find" {
			if of, _ := row.Facts(t.Args); of.Group {
				return found
			}
		}
	}
	return 0
}

// takesPairs reports whether a function of two parameters that is the row's first operand
// takes a pair apart, see [prim.Row.TakesPairs].
func (k kinder) takesPairs(row *prim.Row, args []term.Term) bool {
	return row.TakesPairs(args) || row.Passes == prim.PassesItem && (isLam(args[0]) || k.ofPairs(row.Through(args)))
}

// byOperands reports whether an operator is read by what its operands are: < of what is
// no number as the order that compare gives, + and ++ of what is a list or a string as
// both joined. A row of that name is what JSON means by it, numbers or strings only.
func (k kinder) byOperands(id term.ID, a, b term.Term) bool {
	kinds := prim.KindList
	switch id {
	case prim.Lt, prim.Lte, prim.Gt, prim.Gte:
		if k.always(a, prim.KindNumber) || k.always(b, prim.KindNumber) {
			return false
		}
		kinds = prim.KindString | prim.KindList | prim.KindPair
	case prim.Add:
		kinds = prim.KindString | prim.KindList
	case prim.Mul: // a text over and over; a number in quotes is rather a mistake
		kinds = prim.KindString
		for _, t := range []term.Term{a, b} {
			if s, ok := t.(*term.Str); ok && strings.ContainsAny(s.Value, "0123456789") {
				return false
			}
			if ofOne(t) { // [0] * 3
				return true
			}
		}
	case prim.Concat:
	default:
		return false
	}
	return k.always(a, kinds) || k.always(b, kinds)
}

// ofOne reports whether a list of one item is written out.
func ofOne(t term.Term) bool {
	l, ok := t.(*term.List)
	return ok && len(l.Items) == 1
}

// joins is of which kinds what an operator that is read by the types of its operands
// gives values, where it doesn't compare.
var joins = map[term.ID]prim.Kinds{
	prim.Add: prim.KindNumber | prim.KindString | prim.KindList, prim.Concat: prim.KindString | prim.KindList,
}

// undecided reports whether an operator is read by the types of its operands, since by
// their form they could be others than its row takes.
func (k kinder) undecided(id term.ID, a, b term.Term) bool {
	takes := prim.KindNumber
	switch id {
	case prim.Lt, prim.Lte, prim.Gt, prim.Gte, prim.Add:
	case prim.Concat:
		takes = prim.KindString
	default:
		return false
	}
	return !k.byOperands(id, a, b) && !isNumber(a) && !isNumber(b) && !k.always(a, takes) && !k.always(b, takes)
}

func isNumber(t term.Term) bool {
	switch t.(type) {
	case *term.Int, *term.Big, *term.Dec:
		return true
	}
	return false
}

// always reports whether a term gives values of the kinds alone, by its form.
func (k kinder) always(t term.Term, kinds prim.Kinds) bool {
	of := k.of(t) & prim.KindAny
	return of != 0 && of&^kinds == 0
}

// of returns of which kinds a term gives values, by its form; 0: not known.
func (k kinder) of(t term.Term) prim.Kinds {
	switch t := t.(type) {
	case *term.Str:
		return prim.KindString
	case *term.List:
		return prim.KindList
	case *term.Record:
		return prim.KindRecord
	case *term.Lam:
		return prim.KindFunction
	case *term.Var:
		if all := k.vars[t.Name]; len(all) > 0 {
			return all[len(all)-1]
		}
	case *term.Prim:
		if kinds := joins[t.ID]; kinds != 0 && k.open(t) {
			return kinds
		}
		if t.ID == prim.At && len(t.Args) == 3 { // a slice
			return k.of(t.Args[0]) & (pairs | prim.KindString | prim.KindList)
		}
		return prim.Get(t.ID).Result
	}
	return 0
}

// labelled returns a + b where one is a string that is written out, or joined to one: the
// other is shown as to_text does, as in a template. It is nil where none is.
func (r *reader) labelled(at term.At, a, b term.Term) term.Term {
	shown := func(t term.Term) term.Term {
		if r.kinds.always(t, prim.KindString|prim.KindList) {
			return t
		}
		return operationOf(at+1, "to_text", t)
	}
	switch {
	case r.isLabel(a):
		b = shown(b)
	case r.isLabel(b):
		a = shown(a)
	default:
		return nil
	}
	t := r.joined(at, a, b)
	if r.labels == nil {
		r.labels = map[term.Term]bool{}
	}
	r.labels[t] = true
	return t
}

// isLabel reports whether a string is written out in t.
func (r *reader) isLabel(t term.Term) bool {
	_, label := t.(*term.Str)
	if p, ok := t.(*term.Prim); ok && p.ID == prim.Concat {
		for _, arg := range p.Args {
			if _, ok := arg.(*term.Str); ok {
				label = true
			}
		}
	}
	return label || r.labels[t]
}

// joined returns a ++ b: of strings, or of lists as [...a, ...b] is read.
func (r *reader) joined(at term.At, a, b term.Term) term.Term {
	if list, text := prim.KindList, prim.KindString; !r.kinds.always(a, list) && !r.kinds.always(b, list) || r.kinds.always(a, text) || r.kinds.always(b, text) {
		return r.opens(&term.Prim{At: at, ID: prim.Concat, Args: []term.Term{a, b}})
	}
	return appended(at, a, b)
}

// appended returns one list after the other, as [...a, ...b] is read.
func appended(at term.At, a, b term.Term) *term.Prim {
	name, args := "append", []term.Term{a, b}
	if l, ok := b.(*term.List); ok && len(l.Items) == 1 {
		name, args = "push", []term.Term{a, l.Items[0]}
	} else if l, ok := a.(*term.List); ok && len(l.Items) == 1 {
		name, args = "cons", []term.Term{l.Items[0], b}
	}
	return operationOf(at, name, args...).(*term.Prim)
}

// joinedLate returns a ++ b, of lists or of strings by what a is when it runs.
func joinedLate(at term.At, a, b term.Term) term.Term {
	return bound(at, prim.Fresh("left", b), a, func(a term.Term) term.Term {
		return bound(at, prim.Fresh("right", a), b, func(b term.Term) term.Term {
			list := operationOf(at, "equal", operationOf(at, "type_of", a), &term.Str{At: at, Value: "list"})
			return &term.If{At: at, Cond: list, Then: operationOf(at, "append", again(a), b), Else: operationOf(at, "concat", again(a), again(b))}
		})
	})
}

// compared returns a comparison by the order that compare gives.
func compared(at term.At, id term.ID, a, b term.Term) *term.Prim {
	return &term.Prim{At: at, ID: id, Args: []term.Term{operationOf(at+1, "compare", a, b), &term.Int{At: at + 1}}}
}

// opens notes an operator that is read by the types of its operands.
func (r *reader) opens(t *term.Prim) *term.Prim {
	if !r.older && r.inQuote == 0 && r.kinds.undecided(t.ID, t.Args[0], t.Args[1]) {
		if r.open == nil {
			r.open = map[*term.Prim]bool{}
		}
		r.open[t] = true
	}
	return t
}

// Settle reads an operator that was open, see [Parsed], by the kinds that one of its
// operands is of: a comparison of others than numbers by the order that compare gives, +
// of strings as ++, + and ++ of lists as append.
func Settle(t *term.Prim, kinds prim.Kinds) {
	switch {
	case joins[t.ID] == 0 && kinds != prim.KindNumber:
		*t = *compared(t.At, t.ID, t.Args[0], t.Args[1])
	case t.ID == prim.Add && kinds == prim.KindString:
		t.ID = prim.Concat
	case joins[t.ID] != 0 && kinds == prim.KindList:
		*t = *appended(t.At, t.Args[0], t.Args[1])
	}
}

// remains reports whether what is divided by after op stands after a % somewhere, too: then the
// quotient goes with a remainder, and is rounded down.
func (r *reader) remains(op token) bool {
	by := r.toks[1+slices.IndexFunc(r.toks, func(t token) bool { return t.off == op.off }) : r.i]
	same := func(a, b token) bool { return r.src[a.off:a.end] == r.src[b.off:b.end] }
	for i, t := range r.toks {
		if t.kind == tokMod && i+len(by) < len(r.toks) && slices.EqualFunc(by, r.toks[i+1:i+1+len(by)], same) {
			return true
		}
	}
	return false
}

// noteTruth notes that what stands beside or is a literal that is neither true nor false.
func (r *reader) noteTruth(op token, left, right term.Term) {
	x := r.own(left, "x")
	d, rest := r.own(right, "d"), ""
	of := right
	if isZero(right) || isEmpty(right) || isList(right) && len(right.(*term.List).Items) == 0 {
		of = nil
	}
	if literally(left) {
		of = left
	}
	switch of.(type) {
	case *term.Str:
		rest = fmt.Sprintf(`, and if %[1]s != "" then %[1]s else %[2]s for an empty text`, x, d)
	case *term.Int, *term.Dec:
		rest = fmt.Sprintf(", and if %[1]s != 0 then %[1]s else %[2]s for 0", x, d)
	case *term.List:
		rest = fmt.Sprintf(", and if isEmpty(%[1]s) then %[2]s else %[1]s for an empty list", x, d)
	}
	r.note(int(op.off), "nothing but true and false stands beside %[1]s; write %[2]s ?? %[3]s where %[2]s may be null%[4]s", spelled[op.kind], x, d, rest)
}

// literally reports whether a term is a literal that is neither true nor false.
func literally(t term.Term) bool {
	switch t.(type) {
	case *term.Str, *term.Int, *term.Big, *term.Dec, *term.List, *term.Record, *term.Unit:
		return true
	}
	return false
}
