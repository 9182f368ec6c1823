package prim

import (
	"iter"
	"math/big"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// uncons takes a list apart; ok is false for the empty one.
func uncons(list value.Value) (head, tail value.Value, ok bool) {
	c, ok := value.Force(list).(*value.Cons)
	if !ok {
		return nil, nil, false
	}
	return c.Head, c.Tail, true
}

// items goes through a list; its parts may be lazy.
func items(list value.Value) iter.Seq[value.Value] {
	return func(yield func(value.Value) bool) {
		for {
			head, tail, ok := uncons(list)
			if !ok || !yield(head) {
				return
			}
			list = tail
		}
	}
}

// count returns the length of a list; 0 for a string.
func count(v value.Value) int {
	n := 0
	for range items(v) {
		n++
	}
	return n
}

// slice collects a list's items.
func slice(list value.Value) []value.Value { return slices.Collect(items(list)) }

// A comparison counts a word for each of the first smallValue parts, and
// perPart words for each further one.
const (
	smallValue = 1024
	perPart    = 8
)

// perStep is how many words one step looks at or copies.
const perStep = 64

// FreeText is how many bytes the shorter of two strings has at most for their comparison
// to take no steps beyond the row's own.
const FreeText = 8*(perStep-1) - 1

// BytesCost returns the cost of reading or making so many bytes.
func BytesCost(n int) uint64 { return uint64(n) / (8 * perStep) }

// WriteCost returns the cost of writing a value of so many parts as so many bytes.
func WriteCost(bytes, parts uint64) uint64 { return walkWords(bytes, parts) / perStep }

// walkWords returns what a walk over so many parts that writes so many bytes is
// worth: the characters, and the parts as a comparison counts them.
func walkWords(bytes, parts uint64) uint64 {
	few := min(parts, smallValue)
	return bytes/8 + few + perPart*(parts-few)
}

// ItemsCost returns the cost of making a list of n items, four words each.
func ItemsCost(n int) uint64 { return uint64(n) / (perStep / 4) }

// A Comparison counts what comparing values of no parts takes, one after the other.
type Comparison struct{ words uint64 }

// Part counts two of them.
func (c *Comparison) Part() { c.words = countPart(c.words) }

// Text counts the bytes that two strings may have in common.
func (c *Comparison) Text(bytes int) { c.words += uint64(bytes) / 8 }

// Steps returns what they take in all.
func (c *Comparison) Steps() uint64 { return stepsOf(c.words) }

// countPart counts a part: small values cost little; in large ones, which may be shared
// over and over, a part counts for the work that going there is.
func countPart(words uint64) uint64 {
	if words < smallValue {
		return words + 1
	}
	return words + perPart
}

// A comparison goes through two values at once, with a stack of its own: they
// may be deeper than Go's.
type comparer struct {
	// ordered is set for compare, which knows more and less than; equal
	// doesn't and takes values of all types.
	ordered bool
	words   uint64 // looked at
	limit   uint64 // stop beyond
	todo    Stack[twoValues]
	fault   *fault.Fault
}

type twoValues struct{ a, b value.Value }

func newComparer(ordered bool, m *Meter) *comparer {
	c := &comparer{ordered: ordered, limit: limitOf(m.Left)}
	c.todo.Hold = m.Hold
	return c
}

// run gives -1, 0 or 1; only 0 has a meaning where it is not ordered.
func (c *comparer) run(a, b value.Value) int {
	c.todo.Clear()
	c.later(a, b)
	for !c.todo.Empty() && c.fault == nil && c.words <= c.limit {
		next := *c.todo.Top()
		c.todo.Pop()
		c.words = countPart(c.words)
		if !c.ordered && c.apart(next.a, next.b) {
			return 1
		}
		if d := c.one(value.Force(next.a), value.Force(next.b)); d != 0 {
			return d
		}
		if c.todo.Fault != nil {
			c.fault = c.todo.Fault
		}
	}
	return 0
}

// apart reports that two values are not equal where that shows before either
// is copied: by their types, or the sizes of two strings or records. It counts
// what one would.
func (c *comparer) apart(a, b value.Value) bool {
	_, lazyA := a.(value.Lazy)
	_, lazyB := b.(value.Lazy)
	if !lazyA && !lazyB {
		return false
	}
	ta, na := value.Measure(a)
	tb, nb := value.Measure(b)
	switch {
	case isNumber(ta) && isNumber(tb):
		return false
	case ta != tb:
		return true
	case na == nb:
		return false
	}
	if ta == value.TypeString {
		c.words += uint64(min(na, nb)) / 8
	}
	return true
}

func isNumber(t value.Type) bool { return t == value.TypeInt || t == value.TypeDec }

func (c *comparer) later(a, b value.Value) { c.todo.Push(twoValues{a, b}) }

// one compares what is outermost and leaves the parts for later.
func (c *comparer) one(a, b value.Value) int {
	ka, kb := KindOf(a), KindOf(b)
	if ka&KindNumber != 0 && kb&KindNumber != 0 {
		c.words += max(size(a), size(b)) - 1
		return cmpNumbers(a, b)
	}
	if ka != kb {
		if c.ordered {
			c.refuse(a, b)
		}
		return 1
	}
	switch a := a.(type) {
	case value.Bool:
		switch b := b.(value.Bool); {
		case a == b:
			return 0
		case bool(b):
			return -1
		}
		return 1
	case value.Str:
		b := b.(value.Str)
		c.words += uint64(min(len(a), len(b))) / 8
		return strings.Compare(string(a), string(b))
	case value.Unit:
		return 0
	case *value.Pair:
		b := b.(*value.Pair)
		c.later(a.Second, b.Second)
		c.later(a.First, b.First)
		return 0
	case *value.Record:
		return c.records(a, b.(*value.Record))
	}
	switch ka {
	case KindList:
		return c.lists(a, b)
	case KindQuoted:
		if !c.ordered {
			if x, y := a.(*value.Code), b.(*value.Code); c.sameTerm(x.Term, y.Term) {
				return 0
			}
			return 1
		}
	}
	c.refuse(a, b)
	return 1
}

func (c *comparer) lists(a, b value.Value) int {
	x, restA, okA := uncons(a)
	y, restB, okB := uncons(b)
	switch {
	case okA && okB:
		c.later(restA, restB)
		c.later(x, y)
		return 0
	case okA:
		return 1
	case okB:
		return -1
	}
	return 0
}

// records compares what the records' lists of keys and values are.
func (c *comparer) records(a, b *value.Record) int {
	n := min(len(a.Fields), len(b.Fields))
	if !c.ordered && len(a.Fields) != len(b.Fields) {
		return 1
	}
	c.later(value.NewInt(int64(len(a.Fields))), value.NewInt(int64(len(b.Fields))))
	for i := n - 1; i >= 0; i-- {
		c.later(a.Fields[i].Value, b.Fields[i].Value)
		c.later(value.Str(a.Fields[i].Key), value.Str(b.Fields[i].Key))
	}
	return 0
}

func (c *comparer) refuse(a, b value.Value) {
	name, hint := "equal", `Compare what the functions give: {"equal":[{"app":[F,1]},{"app":[G,1]}]}.`
	expected := "values that are no functions"
	if c.ordered {
		name, hint = "compare", `Give compare two numbers, strings, truth values, lists, pairs or records: {"compare":["a","b"]}.`
		expected = "two values of one type, neither a function nor code"
		if kinds := KindOf(a) | KindOf(b); kinds&KindString != 0 && kinds&KindNumber != 0 {
			hint = `Make both of one kind: a string of a number with {"to_text":N}, a number of a string with {"parse_int":S} or {"to_dec":S}.`
		}
		for _, v := range []value.Value{a, b} {
			if s, ok := v.(value.Str); ok && slices.Contains(weekdayNames[:], string(s)) {
				hint = Weekends
			}
		}
	}
	c.fault = &fault.Fault{
		Kind:     fault.TypeError,
		Message:  name + " can't compare " + Describe(a) + " with " + Describe(b),
		Expected: expected,
		Got:      Describe(a) + " and " + Describe(b),
		Hint:     hint,
	}
}

// sameTerm compares code without its places.
func (c *comparer) sameTerm(a, b term.Term) bool {
	if c.words++; c.words > c.limit || opOf(a) != opOf(b) {
		return false
	}
	switch x := a.(type) {
	case *term.Int:
		y, ok := b.(*term.Int)
		return ok && x.Value == y.Value
	case *term.Big:
		c.words += uint64(len(x.Value.Bits()))
		y, ok := b.(*term.Big)
		return ok && x.Value.Cmp(y.Value) == 0
	case *term.Dec:
		y := b.(*term.Dec)
		return x.Scale == y.Scale && x.Unscaled.Cmp(y.Unscaled) == 0
	case *term.Bool:
		return x.Value == b.(*term.Bool).Value
	case *term.Str:
		c.words += uint64(len(x.Value)) / 8
		return x.Value == b.(*term.Str).Value
	case *term.Var:
		return x.Name == b.(*term.Var).Name
	case *term.Lam:
		if x.Param != b.(*term.Lam).Param {
			return false
		}
	case *term.LetRec:
		if !slices.Equal(namesOf(x), namesOf(b.(*term.LetRec))) {
			return false
		}
	case *term.CodeOf:
		return x.Name == b.(*term.CodeOf).Name
	case *term.Effect:
		if x.Op != b.(*term.Effect).Op {
			return false
		}
	case *term.Record:
		y := b.(*term.Record)
		if len(x.Fields) != len(y.Fields) {
			return false
		}
		for i := range x.Fields {
			if x.Fields[i].Key != y.Fields[i].Key {
				return false
			}
		}
	}
	return slices.EqualFunc(operands(a), operands(b), c.sameTerm)
}

func operands(t term.Term) []term.Term {
	if e, ok := t.(*term.Effect); ok {
		return []term.Term{e.Argument()}
	}
	var all []term.Term
	term.Children(t, func(c term.Term) bool {
		all = append(all, c)
		return true
	})
	return all
}

// bigOf returns a literal integer's value, whatever its size.
func bigOf(t term.Term) (value.Int, bool) {
	switch t := t.(type) {
	case *term.Int:
		return value.NewInt(t.Value), true
	case *term.Big:
		return value.NewBig(new(big.Int).Set(t.Value)), true
	}
	return value.Int{}, false
}

// NoData looks for what isn't data in a value: a function or a continuation,
// found, which is nested in it or is it; nil: there is none. cost is the steps
// that looking takes, as [PartsCost] has it. It gives up where that is more than
// left.
func NoData(v value.Value, left uint64) (found value.Value, nested bool, cost uint64) {
	n, most := uint64(0), MaxParts(left)
	todo := []value.Value{v}
	for len(todo) > 0 && n < most {
		v := value.Force(todo[len(todo)-1])
		todo = todo[:len(todo)-1]
		n++
		switch v := v.(type) {
		case *value.Closure, *value.Continuation:
			return v, nested, PartsCost(n)
		case *value.Cons:
			todo = append(todo, v.Tail, v.Head)
		case *value.Pair:
			todo = append(todo, v.Second, v.First)
		case *value.Record:
			for i := len(v.Fields) - 1; i >= 0; i-- {
				todo = append(todo, v.Fields[i].Value)
			}
		}
		nested = true
	}
	return nil, false, PartsCost(n)
}

// MaxParts returns after how many parts a walk ends for which so many steps are
// left: those that it can pay for, and a few more, so that this shows.
func MaxParts(left uint64) uint64 {
	words := (min(left, 1<<50) + 1) * perStep
	if words <= smallValue {
		return words
	}
	return smallValue + (words-smallValue+perPart-1)/perPart
}

// PartsCost returns the cost of going through so many parts.
func PartsCost(n uint64) uint64 { return walkWords(0, n) / perStep }

// A Stack is what a walk through values has still to do: they may be nested deeper
// than Go's stack is. It grows in pieces, which are never copied, and each counts for
// the memory of the run. The zero value is empty and counts for nobody.
type Stack[T any] struct {
	// Hold, where not nil, takes bytes from the run's memory.
	Hold func(bytes int64) *fault.Fault
	// Fault is set where there was no room for more; what was pushed then is lost.
	Fault *fault.Fault
	first [8]T
	now   []T
	full  [][]T
	spare []T
}

// stackPiece is the most entries of a piece.
const stackPiece = 2048

// entryBytes is about what an entry takes, with what it alone refers to.
const entryBytes = 64

// Empty reports whether the stack is empty.
func (s *Stack[T]) Empty() bool { return len(s.now) == 0 }

// Top returns the last entry, until the stack changes.
func (s *Stack[T]) Top() *T { return &s.now[len(s.now)-1] }

// Push adds an entry.
func (s *Stack[T]) Push(v T) {
	if len(s.now) == cap(s.now) && !s.grow() {
		return
	}
	s.now = append(s.now, v)
}

func (s *Stack[T]) grow() bool {
	if s.now == nil {
		s.now = s.first[:0]
		return true
	}
	if s.spare == nil {
		n := min(4*cap(s.now), stackPiece)
		if s.Hold != nil && n > 128 {
			if s.Fault = s.Hold(int64(n) * entryBytes); s.Fault != nil {
				return false
			}
		}
		s.spare = make([]T, 0, n)
	}
	s.full = append(s.full, s.now)
	s.now, s.spare = s.spare, nil
	return true
}

// Pop takes the last entry off.
func (s *Stack[T]) Pop() {
	var none T
	s.now[len(s.now)-1] = none
	s.now = s.now[:len(s.now)-1]
	if n := len(s.full) - 1; len(s.now) == 0 && n >= 0 {
		s.spare = s.now
		s.now, s.full = s.full[n], s.full[:n]
	}
}

// Clear takes all entries off.
func (s *Stack[T]) Clear() {
	for !s.Empty() {
		s.Pop()
	}
}
