package normal

import (
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// An Equation is two terms in the text form, of which normalising makes the
// same. In them a, b, c and f are anything that gives a value, and x is a
// variable.
type Equation struct {
	Name  string
	Left  string
	Right string
	// When is what has to be known; empty where it always holds.
	When string
	// Let gives what is known to the variables of Left and Right: tests apply
	// both sides as functions. Not, where not empty, is what Left mustn't be
	// equal to where that isn't known.
	Let, Not string
}

// Equations is all that normalising does. Each holds for the value, the kind of
// failure, and what is asked for in which order.
var Equations = []Equation{
	{Name: "beta", Left: "(x => (x, x))(a)", Right: "let v = a in (v, v)", When: "a is evaluated once, before the body"},
	{Name: "variables", Left: "x => x", Right: "y => y"},
	{Name: "eta", Let: "let f = x => x(1) in ", Left: "y => f(y)", Right: "f", When: "f is known to be a function", Not: "f"},
	{Name: "if true", Left: "if true then a else b", Right: "a"},
	{Name: "if false", Left: "if false then a else b", Right: "b"},
	{Name: "if itself", Let: "let c = isEmpty(a) in ", Left: "if c then true else false", Right: "c", When: "c is a truth value", Not: "c"},
	{Name: "if not", Let: "let c = isEmpty(a) in ", Left: "if not c then a else b", Right: "if c then b else a", When: "c is a truth value"},
	{Name: "if same", Let: "let c = isEmpty(a) in ", Left: "if c then 1 else 1", Right: "1", When: "c is a truth value", Not: "1"},
	{Name: "what a condition says", Left: "if a then (if a then 1 else 2) else 3", Right: "if a then 1 else 3", When: "inside a branch of it"},
	{Name: "and", Left: "a and b", Right: "if a then (if b then true else false) else false"},
	{Name: "or", Left: "a or b", Right: "if a then true else (if b then true else false)"},
	{Name: "first", Left: "fst((a, b))", Right: "let x = a, y = b in x"},
	{Name: "second", Left: "snd((a, b))", Right: "let x = a, y = b in y"},
	{Name: "head", Left: "head([a, b])", Right: "let x = a, y = b in x"},
	{Name: "tail", Left: "tail([a, b])", Right: "let x = a, y = b in [y]"},
	{Name: "lists", Left: "cons(a, [b])", Right: "[a, b]"},
	{Name: "a record's key", Left: "{k: a, l: b}.k", Right: "let x = a, y = b in x"},
	{Name: "a record with a key put", Left: "put({k: a}, \"k\", b)", Right: "let x = a, y = b in {k: y}"},
	{Name: "fold of known items", Left: "fold(p => (snd(p), fst(p)), a, [b, c])", Right: "let x = a, y = b, z = c in (z, (y, x))"},
	{Name: "rows of the library", Left: "map(x => (x, a), [b])", Right: "let y = b in [(y, a)]", When: "they are the functions they are written as; one that calls itself stays where it isn't known how often"},
	{Name: "constants", Left: "2 * 3 + 4", Right: "10", When: "the row's own meaning gives it within a bound of size and work"},
	{Name: "certain failures", Left: "(raise(a), b)", Right: "raise(a)", When: "what comes after is never reached"},
	{Name: "failures of a kind", Left: "(1 - \"a\", b)", Right: "1 - \"a\"", When: "an operand is known to be of no kind that the row takes"},
	{Name: "done before", Left: "(a + b, a + b)", Right: "let x = a + b in (x, x)", When: "the row is strict, and its operands are the same"},
	{Name: "left out", Let: "let a = length(a) in ", Left: "let x = a + 1 in b", Right: "b", When: "the row can't fail for what its operands are", Not: "b"},
	{Name: "type", Let: "let a = a + 1 in ", Left: "type_of((a, 1))", Right: "\"pair\"", When: "the kind is known"},
	{Name: "larger", Left: "a > b", Right: "let x = a, y = b in y < x"},
	{Name: "at least", Left: "a >= b", Right: "let x = a, y = b in y <= x"},
	{Name: "not less", Left: "not (a < b)", Right: "b <= a"},
	{Name: "one comparison", Left: "if a < b then 1 else 2", Right: "if b <= a then 2 else 1"},
	{Name: "the other way round", Left: "[compare(a, b), 0 - compare(a, b)]", Right: "[0 - compare(b, a), compare(b, a)]", When: "the operands are values"},
	{Name: "not before", Left: "not lt(compare(a, b), 0)", Right: "let x = a, y = b in lte(compare(y, x), 0)"},
	{Name: "symmetric", Left: "[a + b, eq(a, b), equal(a, b), a * b]", Right: "[b + a, eq(b, a), equal(b, a), b * a]", When: "the operands are values"},
	{Name: "plus 0", Let: "let a = a + 1 in ", Left: "a + 0", Right: "a", When: "a is a number", Not: "a"},
	{Name: "minus 0", Let: "let a = a + 1 in ", Left: "a - 0", Right: "a", When: "a is a number", Not: "a"},
	{Name: "times 1", Let: "let a = a + 1 in ", Left: "a * 1", Right: "a", When: "a is a number", Not: "a"},
	{Name: "times 0", Let: "let a = length(a) in ", Left: "a * 0", Right: "0", When: "a is an integer", Not: "0"},
	{Name: "minus itself", Let: "let a = length(a) in ", Left: "a - a", Right: "0", When: "a is an integer", Not: "0"},
	{Name: "twice", Left: "a + a", Right: "a * 2"},
	{Name: "sums and products", Let: "let a = length(a), b = length(b), c = length(c) in ", Left: "[a * (b + c), (a + b) + c, (a + b) * (a - b)]",
		Right: "[c * a + a * b, a + (b + c), a * a - b * b]", When: "they are of integers: decimals have a bound of digits", Not: "[a * b + a * c, a + b + c, a * a - b * b]"},
	{Name: "differences that are known", Let: "let a = length(a) in ", Left: "[a < a + 1, a + 2 <= a, a + b == a + b]", Right: "[true, false, a + b == a + b]", When: "a is an integer", Not: "[true, false, a + b == a + b]"},
	{Name: "literals together", Let: "let a = length(a) in ", Left: "a + 1 - 3", Right: "a - 2", When: "a is an integer", Not: "a - 2"},
	{Name: "divided by 1", Let: "let a = length(a) in ", Left: "(a / 1, a % 1)", Right: "(a, 0)", When: "a is an integer", Not: "(a, 0)"},
	{Name: "compared with itself", Let: "let a = a + 1 in ", Left: "[a < a, a <= a, eq(a, a)]", Right: "[false, true, true]", When: "a is a number", Not: "[false, true, true]"},
	{Name: "strings joined", Left: "(a ++ \"x\") ++ (\"y\" ++ b)", Right: "a ++ (\"xy\" ++ b)"},
	{Name: "tested together", Left: "let x = a ++ \"1\", y = b ++ \"2\" in (y, x)", Right: "(b ++ \"2\", a ++ \"1\")", When: "nothing but computing that can't fail otherwise comes between"},
	{Name: "branches alike", Left: "if a then f(b) else f(b)", Right: "let x = not a in f(b)"},
	{Name: "map of map", Left: "map(f, map(x => (x, a), b))", Right: "map(x => f((x, a)), b)", When: "the inner function only computes"},
	{Name: "turned round twice", Left: "reverse(reverse(a))", Right: "let x = isEmpty(a) in a"},
	{Name: "map of the other way round", Left: "map(x => [x], reverse(a))", Right: "reverse(map(x => [x], a))", When: "the function only computes"},
	{Name: "nothing joined", Let: "let a = a ++ \"b\" in ", Left: "a ++ \"\"", Right: "a", When: "a is a string", Not: "a"},
	{Name: "not not", Let: "let a = isEmpty(a) in ", Left: "not not a", Right: "a", When: "a is a truth value", Not: "a"},
	{Name: "try of what can't fail", Left: "try((a, 1))", Right: "{ok: (a, 1)}"},
	{Name: "par of what can't fail", Left: "par(a, 1)", Right: "[a, 1]"},
	{Name: "eval of plain code", Left: "eval('{a + 1})", Right: "a + 1", When: "the code makes, applies and asks for nothing"},
}

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
