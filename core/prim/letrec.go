package prim

import (
	"cmp"
	"slices"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// Local recursion. Of the functions that stand beside one another in a let, those
// that name themselves or a later one become a [term.LetRec], which has all that
// stand between them; everything else is functions applied at once. Both parsers
// note what uses a name while they read, in a [Names], so that finding this out
// takes no more walks through a term than there are.

var recursion = []Row{
	{
		Name: "letrec", Group: "lambda", Form: true, Shape: Recursive, With: "in", Result: KindAny,
		Params: []Param{{"functions", KindCode}, {"in", KindAny}},
		Doc:    "gives names to functions, each seen by all of them and by in; let is read as this where a function names itself or a later one.",
		Also:   []string{"fix"},
		Examples: []Example{
			{
				Code: `{"letrec":[["fact",{"lam":"n","body":{"if":{"cond":{"lte":[{"var":"n"},1]},"then":1,"else":{"mul":[{"var":"n"},{"app":[{"var":"fact"},{"sub":[{"var":"n"},1]}]}]}}}}]],"in":{"app":[{"var":"fact"},5]}}`,
				Want: `120`, Steps: 55,
			},
			{Code: `{"letrec":[["f",{"lam":"x","body":{"var":"f"}}]],"in":{"var":"f"}}`, Input: `1`, Want: `"<function>"`},
			{Code: `{"letrec":[["x",1]],"in":{"var":"x"}}`, Fault: fault.ParseError},
			{Code: `{"letrec":[["f",{"lam":"x","body":{"add":[{"var":"x"},"a"]}}]],"in":{"app":[{"var":"f"},1]}}`, Fault: fault.TypeError},
		},
	},
}

// A Binding is a name, or a pattern, with the term that it stands for.
type Binding struct {
	At    term.At // of the application, or the letrec
	Of    term.At // of the name; 0: At
	Name  string
	Value term.Term
	// Pattern takes the value apart, if it isn't nil; Name doesn't count then.
	Pattern *Pattern
	// From and To are the [Names.Mark]s before and after Value was read.
	From, To int
}

// Let returns body with names bound in sequence.
func Let(bindings []Binding, body term.Term) term.Term {
	for i := len(bindings) - 1; i >= 0; i-- {
		body = bindings[i].let(body)
	}
	return body
}

func (b Binding) let(body term.Term) term.Term {
	if b.Pattern != nil {
		b.Name, body = takeApart(*b.Pattern, "match", body)
	}
	return &term.App{At: b.At, Func: &term.Lam{At: cmp.Or(b.Of, b.At), Param: b.Name, Body: body}, Arg: b.Value}
}

// Names notes which variables are used in what is being read, in the order in
// which it is read: a term's uses are those between two marks. A nil Names notes
// nothing.
type Names struct {
	// Hidden, if set, is told of a function that names itself, or one beside it,
	// by a name that something around them has as well.
	Hidden func(at term.At, name string)
	n      int
	free   map[string][]int // uses that nothing binds yet, in order
	rec    map[string][]recursive
}

// A recursive is a letrec whose name nothing around is known to have.
type recursive struct {
	from int
	at   term.At
}

// Mark returns how many uses were noted.
func (u *Names) Mark() int {
	if u == nil {
		return 0
	}
	return u.n
}

// Use notes the use of a variable.
func (u *Names) Use(name string) {
	if u == nil {
		return
	}
	if u.free == nil {
		u.free = map[string][]int{}
	}
	u.free[name] = append(u.free[name], u.n)
	u.n++
}

// Bind takes the uses of a name since the mark for those of a variable that has
// just been bound around them.
func (u *Names) Bind(name string, from int) {
	if u == nil {
		return
	}
	if uses := u.free[name]; len(uses) > 0 && uses[len(uses)-1] >= from {
		i, _ := slices.BinarySearch(uses, from)
		u.free[name] = uses[:i]
	}
	for rec := u.rec[name]; len(rec) > 0 && rec[len(rec)-1].from >= from; rec = u.rec[name] {
		u.rec[name] = rec[:len(rec)-1]
		if u.Hidden != nil {
			u.Hidden(rec[len(rec)-1].at, name)
		}
	}
}

// Uses reports whether a name was used between two marks and isn't bound there.
func (u *Names) Uses(name string, from, to int) bool {
	if u == nil {
		return false
	}
	uses := u.free[name]
	i, _ := slices.BinarySearch(uses, from)
	return i < len(uses) && uses[i] < to
}

// Groups returns, of bindings, all of functions, how far each group of those goes
// that see one another: ends[i] is the index after the group that begins at i, and i
// itself where the binding at i is no more than a let; other indexes don't count.
// twice is the index of one that has the name of an earlier one, where that leaves
// open which is meant; -1: there is none.
func (u *Names) Groups(run []Binding) (ends []int, twice int) {
	ends = make([]int, len(run))
	reach := make([]int, len(run)) // 1 + the last binding that each names, from itself on
	twice = -1
	at := make(map[string]int, len(run))
	recursive := false
	for k := range run {
		if _, dup := at[run[k].Name]; dup {
			twice = k
		}
		at[run[k].Name] = k
	}
	for name, k := range at {
		uses := u.free[name]
		first, _ := slices.BinarySearch(uses, run[0].From)
		m := 0
		for _, p := range uses[first:] {
			for m < len(run) && p >= run[m].To {
				m++
			}
			if m == len(run) {
				break
			}
			if p >= run[m].From && m <= k {
				reach[m] = max(reach[m], k+1)
				recursive = true
			}
		}
	}
	if !recursive {
		twice = -1
	}
	for i := 0; i < len(run); {
		end := reach[i]
		for m := i; m < end; m++ {
			end = max(end, reach[m])
		}
		ends[i] = end
		i = max(end, i+1)
		if end == 0 {
			ends[i-1] = i - 1
		}
	}
	return ends, twice
}

// Let returns body with names bound in sequence, functions that see one another
// together. twice is the index of a binding whose name can't be told from that of
// one beside it, -1 where there is none.
func (u *Names) Let(bindings []Binding, body term.Term) (t term.Term, twice int) {
	if u == nil {
		return Let(bindings, body), -1
	}
	twice = -1
	end := len(bindings)
	for end > 0 {
		start := end
		for start > 0 && isLam(bindings[start-1].Value) && bindings[start-1].Pattern == nil {
			start--
		}
		if start == end {
			body = u.single(&bindings[end-1], body)
			end--
			continue
		}
		run := bindings[start:end]
		ends, dup := u.Groups(run)
		if dup >= 0 {
			twice = start + dup
		}
		var starts []int
		for i := 0; i < len(run); i = max(ends[i], i+1) {
			starts = append(starts, i)
		}
		for _, i := range slices.Backward(starts) {
			if ends[i] == i {
				body = u.single(&run[i], body)
			} else {
				body = u.Rec(run[i:ends[i]], body)
			}
		}
		end = start
	}
	return body, twice
}

func (u *Names) single(b *Binding, body term.Term) term.Term {
	if b.Pattern == nil {
		u.Bind(b.Name, b.To)
	} else {
		m := matcher{used: map[string]bool{}}
		m.patternNames(*b.Pattern)
		for name := range m.used {
			u.Bind(name, b.To)
		}
	}
	return b.let(body)
}

// Rec returns body with functions bound together.
func (u *Names) Rec(group []Binding, body term.Term) term.Term {
	t := &term.LetRec{At: group[0].At, Funcs: make([]term.Func, len(group)), Body: body}
	for i, b := range group {
		t.Funcs[i] = term.Func{Name: b.Name, Lam: b.Value.(*term.Lam)}
		if u == nil {
			continue
		}
		from := group[0].From
		seen := u.Uses(b.Name, from, group[len(group)-1].To)
		u.Bind(b.Name, from)
		if seen {
			if u.rec == nil {
				u.rec = map[string][]recursive{}
			}
			u.rec[b.Name] = append(u.rec[b.Name], recursive{from, b.At})
		}
	}
	return t
}

// HiddenName returns the note on a function that names itself, or one beside it, by a
// name that something around them has as well.
func HiddenName(name string) string {
	return "the name " + quoted(name) + " means the function bound by this let in it and in the functions beside it, not what is called so around them"
}

func isLam(t term.Term) bool {
	_, ok := t.(*term.Lam)
	return ok
}
