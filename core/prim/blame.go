package prim

import (
	"fmt"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// Uses is the uses of rows of the library that were expanded in a program, so that
// a fault in what one means is told as a fault of the row that was written. The
// zero value has none.
type Uses []use

// A use is of a row, at a place; one below 0 is in what another use means.
type use struct {
	at   term.At
	row  *Row
	body term.Term
}

// The place of a node of a body is the complement of its use's number and of its
// offset in the body.
const (
	bodyBits = 12
	maxUses  = 1 << (31 - bodyBits)
)

// Expand does what [Expand] does, with a place below 0 for each node, from which
// [Uses.Blame] finds that of the use.
func (u *Uses) Expand(p *term.Prim) term.Term {
	body := Body(p.ID, len(p.Args))
	if body == nil || len(*u) == maxUses {
		return Expand(p)
	}
	first := ^term.At(len(*u) << bodyBits)
	*u = append(*u, use{p.At, Get(p.ID), body})
	return apply(term.Relocate(body, func(at term.At) term.At { return first - at }), p.Args, first)
}

// An inner is a place in the body of a row of the library.
type inner struct {
	row  *Row
	body term.Term
	at   int
}

// term finds what stands there, of several the outermost that is wanted.
func (in inner) term(wanted func(term.Term) bool) (found term.Term) {
	var walk func(t term.Term) bool
	walk = func(t term.Term) bool {
		if t.Pos() == in.at && wanted(t) {
			found = t
			return false
		}
		return term.Children(t, walk)
	}
	walk(in.body)
	return found
}

// placed is a place in the library, from the inside out: a place in a body, that of
// the row's use in the body around it, and so on.
type placed []inner

// Blame returns the place in the source of a place that may be in what a use of a
// row of the library means. A fault there becomes one of that row: it names the row
// and its operand, and the hint is on it.
func (u Uses) Blame(f *fault.Fault, pos int) int {
	var path placed
	for pos < 0 {
		at := ^pos
		in := u[at>>bodyBits]
		path = append(path, inner{in.row, in.body, at & (1<<bodyBits - 1)})
		pos = int(in.at)
	}
	if len(path) > 0 {
		switch f.Kind {
		case fault.TypeError, fault.EmptyList, fault.OutOfRange, fault.MissingKey, fault.DivisionByZero, fault.RuntimeError:
			blame(f, path)
		}
	}
	return pos
}

// Row returns the name of the row that was written, of a place that may be in what a use
// of a row of the library means; "" of another place.
func (u Uses) Row(pos int) (name string) {
	for pos < 0 {
		in := u[^pos>>bodyBits]
		name, pos = in.row.Name, int(in.at)
	}
	return name
}

func blame(f *fault.Fault, path placed) {
	row := path[len(path)-1].row
	give := fmt.Sprintf("Give %s %%s. Correct: %s.", row.Name, strings.ReplaceAll(row.Correct(), "%", "%%"))
	operand := -1
	failed := path[0].term(func(t term.Term) bool {
		operand = failingOperand(t, f)
		return operand >= 0
	})
	switch {
	case f.Kind == fault.EmptyList:
		hint := fmt.Sprintf(give, "a list that is not empty")
		*f = *EmptyList(row.Name)
		if row.Shape != Unary {
			f.Hint = hint
		}
		return
	case f.Kind == fault.OutOfRange && row.negative(f):
		return
	case failed != nil:
		if o := path.origin(terms(failed)[operand], 0); o.how != unknown && o.param < len(row.Params) && row.blame(f, o, give) {
			return
		}
	}
	if rest, ok := strings.CutPrefix(f.Message, "compare "); ok {
		f.Message = row.Name + " " + rest
		f.Hint = fmt.Sprintf(give, "items that are of one type, such as all numbers or all strings")
		if strings.Contains(f.Message, "a function") {
			f.Hint = fmt.Sprintf("The function of %[1]s takes one item and gives what it is ordered by: %[1]s(x => x.k, xs), %[1]s(((a, b)) => b, pairs).", row.Name)
		}
		return
	}
	if f.Message = row.Name + ": " + f.Message; row.Name == "pow" && f.Kind == fault.OutOfRange {
		f.Hint = `Round the base: {"pow":[{"round_dec":[A,10,"half_even"]},N]} for an N up to 400.`
	}
}

// failingOperand gives which operand of t a fault is about; below 0: none.
func failingOperand(t term.Term, f *fault.Fault) int {
	if f.Kind != fault.TypeError {
		return -1
	}
	id := If
	switch t := t.(type) {
	case *term.Prim:
		id = t.ID
	case *term.App:
		id = App
	case *term.If:
	default:
		return -1
	}
	for i := range terms(t) {
		if Mismatch(id, i, f.Got).Message == f.Message {
			return i
		}
	}
	return -1
}

func terms(t term.Term) (list []term.Term) {
	term.Children(t, func(c term.Term) bool {
		list = append(list, c)
		return true
	})
	return list
}

// How a value in a row's body comes from one of the row's operands.
type how uint8

const (
	unknown how = iota
	itself
	item   // of it, a list
	result // of it, a function
)

type origin struct {
	how   how
	param int
}

// origin finds where the value of a term in the body of path[level] comes from, as
// an operand of the row that was written.
func (path placed) origin(t term.Term, level int) origin {
	in := path[level]
	switch t := t.(type) {
	case *term.Var:
		k := 0
		for l, ok := in.body.(*term.Lam); ok; l, ok = l.Body.(*term.Lam) {
			switch {
			case l.Param != t.Name:
			case level+1 == len(path):
				return origin{itself, k}
			default:
				return path.origin(path.use(level + 1).Args[k], level+1)
			}
			k++
		}
		if let := path.bindingOf(level, t.Name); let != nil {
			return path.origin(let, level)
		}
	case *term.App:
		if f := path.origin(t.Func, level); f.how == itself {
			return origin{result, f.param}
		}
	case *term.Prim:
		switch t.ID {
		case Tail, reverse():
			return path.origin(t.Args[0], level)
		case Head:
			return path.item(t.Args[0], level)
		case Fst, Snd:
			// Of the pair that a fold passes to its function.
			v, _ := t.Args[0].(*term.Var)
			fold := path.fold(level, v)
			switch {
			case fold == nil:
			case t.ID == Fst:
				return path.origin(fold.Args[1], level)
			default:
				return path.item(fold.Args[2], level)
			}
		}
	}
	return origin{}
}

func reverse() term.ID {
	id, _, _ := Lookup("reverse")
	return id
}

func (path placed) item(list term.Term, level int) origin {
	if o := path.origin(list, level); o.how == itself {
		return origin{item, o.param}
	}
	return origin{}
}

// use returns the use of a row that is in the body of path[level], and means what
// path[level-1] is in.
func (path placed) use(level int) *term.Prim {
	return path[level].term(func(t term.Term) bool {
		p, ok := t.(*term.Prim)
		return ok && Get(p.ID) == path[level-1].row
	}).(*term.Prim)
}

// bindingOf returns what a let in the body of path[level] binds to a name; nil: none
// does.
func (path placed) bindingOf(level int, name string) (value term.Term) {
	path.walk(level, func(t term.Term) bool {
		if a, ok := t.(*term.App); ok {
			if l, ok := a.Func.(*term.Lam); ok && l.Param == name {
				value = a.Arg
			}
		}
		return value == nil
	})
	return value
}

// fold returns the fold whose function has the parameter v.
func (path placed) fold(level int, v *term.Var) (fold *term.Prim) {
	path.walk(level, func(t term.Term) bool {
		if p, ok := t.(*term.Prim); ok && p.ID == Fold && v != nil {
			if l, ok := p.Args[0].(*term.Lam); ok && l.Param == v.Name {
				fold = p
			}
		}
		return fold == nil
	})
	return fold
}

func (path placed) walk(level int, visit func(term.Term) bool) {
	var walk func(t term.Term) bool
	walk = func(t term.Term) bool { return visit(t) && term.Children(t, walk) }
	walk(path[level].body)
}

// blame makes a fault one of the row, about an operand; give is the hint, with the
// place of what is to be given.
func (r *Row) blame(f *fault.Fault, o origin, give string) bool {
	want, which := r.Params[o.param].Kinds, r.which(o.param)
	switch o.how {
	case itself:
		if want&said(f.Got) != 0 {
			return false
		}
		*f = *r.mismatch(o.param, f.Got)
		return true
	case result:
		f.Message = fmt.Sprintf("%s takes as its %s a function that gives %s, and it gave %s", r.Name, which, f.Expected, f.Got)
		f.Hint = fmt.Sprintf(give, "a function that gives "+f.Expected)
		return true
	}
	f.Message = fmt.Sprintf("%s takes as its %s a list each of whose items is %s, and one is %s", r.Name, which, f.Expected, f.Got)
	f.Hint = fmt.Sprintf(give, "a list each of whose items is "+f.Expected)
	if r.Shape == Unary && f.Expected == KindNumber.Phrase() && said(f.Got) == KindString {
		f.Hint = fmt.Sprintf(`Make numbers of the items first: {%q:{"map":[{"lam":"x","body":{"to_dec":{"var":"x"}}},L]}}.`, r.Name)
	}
	return true
}

// negative makes a fault about a number below 0 one of the row's only operand that
// is an integer.
func (r *Row) negative(f *fault.Fault) bool {
	at := strings.Index(f.Got, "the integer -")
	k := -1
	for i, p := range r.Params {
		if p.Kinds&KindInt != 0 && p.Kinds&KindAny != KindAny {
			if k >= 0 {
				return false
			}
			k = i
		}
	}
	if at < 0 || k < 0 {
		return false
	}
	f.Got, _, _ = strings.Cut(f.Got[at:], " and ")
	f.Expected = "an integer that is not negative"
	f.Message = fmt.Sprintf("%s takes %s as its %s, not %s", r.Name, f.Expected, r.which(k), f.Got)
	f.Hint = fmt.Sprintf("Give %s %s. Correct: %s.", r.Name, f.Expected, r.Correct())
	return true
}

// said returns the kind of the value that [Describe] described; 0: it isn't known.
func said(got string) Kinds {
	_, after, ok := strings.Cut(got, " ")
	noun, _, _ := strings.Cut(after, " ")
	switch {
	case got == "true" || got == "false":
		return KindBool
	case got == "null":
		return KindUnit
	case got == "the empty list":
		return KindList
	case got == "quoted code":
		return KindQuoted
	case !ok:
		return 0
	}
	for _, w := range kindWords {
		if strings.HasSuffix(w.noun, " "+noun) {
			return w.kind
		}
	}
	return 0
}
