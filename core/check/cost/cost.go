// Package cost bounds what a run takes before it runs: steps and memory, as
// formulas of the sizes of what it is given.
//
// The program is evaluated with sizes in the place of values ([Of]): a number is
// its magnitude and its words, a list its length and what an item can be, an
// input whatever is at its path. Functions that are known are gone through where
// they are applied. A fold, and a function that calls itself, is gone through
// once with what changes from round to round as variables of their own; how
// often it goes on, and how those grow (m ← a·m + b), gives the formula. A
// function that calls itself needs something that gets smaller with every call:
// a list's tail, or a number that a condition tests against a limit.
//
// A bound is never less than what a run takes; it may be more. Where there is
// none it is [Unbounded], and [Report.Why] says at which place that begins: a
// function or code from an input, a call of another tool, a recursion without
// a limit, a formula too large to be told. Bounds have one spelling
// ([Bound.String]), and are worked out for given sizes ([Bound.Eval], [Sizes]).
//
// Integers beyond 64 bits take more steps: that is in the formula (words), and
// not in the class. Steps that reading the input takes are its terms.
package cost

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// Steps is how much work an analysis may make where Options don't say. A step is a
// term that is evaluated, or some tens of products of formulas, fields of records
// or bytes of paths that are gone through: time and memory are in proportion.
const Steps = 400_000

// Options say what a term is.
type Options struct {
	// Tool is set for the code of a tool: self is its function, and code with
	// one free variable is a function of that.
	Tool bool
	// Source is what the term's places refer to; nil: reasons have no places.
	Source *term.Source
	// Callee gives the report of the tool that a call with the literal name runs;
	// nil, or false: what it takes isn't known. What the tool gives is measured
	// under the root "!call:NAME", as the answers of operations are.
	Callee func(name string) (Report, bool)
	// Steps is the budget of the analysis; 0: [Steps].
	Steps int
	// Spend, where it isn't nil, is told of steps as they are taken, 64 at a time. false
	// ends the analysis; its report says nothing then.
	Spend func(steps int) bool

	self *aval
}

// A Report says what a program takes at most.
type Report struct {
	// Steps and Memory (bytes) are bounds of a run, in sizes of its inputs. They
	// hold for runs that fail, too, and for those of a function that is given
	// all of its parameters.
	Steps  Bound `json:"steps"`
	Memory Bound `json:"memory"`
	// Class is that of Steps.
	Class Class `json:"class"`
	// Exact is set where every run that doesn't fail takes just those steps.
	Exact bool `json:"exact,omitempty"`
	// Roots is what the paths of variables begin with, one for each parameter:
	// its name, with a number where another has that.
	Roots []string `json:"roots,omitempty"`
	// Why is the places that make the bound what it is, those that take it away
	// first.
	Why []Place `json:"why,omitempty"`
}

// A Place is what makes a bound larger than a constant.
type Place struct {
	At      fault.Pointer `json:"at"`
	Line    int           `json:"line,omitempty"`
	Col     int           `json:"col,omitempty"`
	Message string        `json:"message"`
	// Unbounded is set where there is no bound because of it.
	Unbounded bool `json:"unbounded,omitempty"`
}

// Of gives the bounds of a program. Where none can be given they are
// [Unbounded], and Why says where that comes from. The same term and options
// give the same report on every machine.
func Of(t term.Term, o Options) Report {
	o.Steps = cmp.Or(o.Steps, Steps)
	root := t
	if _, ok := t.(*term.Lam); !ok && o.Tool {
		if free := term.Free(t); len(free) == 1 {
			t = &term.Lam{At: term.At(t.Pos()), Param: free[0], Body: t}
		}
	}
	a := &analyser{
		o: o, vars: table{vars: map[Var]*variable{}, left: min(o.Steps, math.MaxInt/grain) * grain}, solved: map[string]*loop{}, states: map[string]bool{}, results: map[string]string{}, counts: map[term.Term]uint64{},
		expand: map[*term.Prim]term.Term{}, at: -1, last: -1,
	}
	a.vars.told, a.vars.spend = a.vars.left, o.Spend
	defer a.vars.borrow()()
	if _, ok := t.(*term.Lam); ok && o.Tool {
		a.o.self = &aval{kind: isFunction, funcs: []*closure{{lam: t.(*term.Lam), tool: true}}}
	}
	s := scope{tool: o.Tool}
	v, c := a.eval(t, s)
	if o.Tool && a.o.self == nil {
		a.o.self = v // what the code gives, as soon as it is applied
	}
	roots := a.names(t)
	c = c.plus(a.run(t, v, roots, s))
	r := Report{Steps: a.bound(c.steps, c.none), Roots: roots}
	// What a machine has before it begins, and the room that its collections
	// need.
	memory := c.memory.times(number(4)).plus(number(256 << 10))
	r.Memory = a.bound(memory, c.none || c.vast)
	if a.vars.left < 0 {
		r.Steps, r.Memory = Unbounded, Unbounded
		a.why = append(a.why, reason{pos: max(a.last, root.Pos()), message: tooComplex, fatal: true})
	}
	if !r.Steps.Finite() && !slices.ContainsFunc(a.why, func(x reason) bool { return x.fatal }) {
		a.why = append(a.why, reason{pos: root.Pos(), message: overBounds, fatal: true})
	}
	r.Class = r.Steps.Class()
	r.Exact = r.Steps.Finite() && !a.inexact
	r.Why = a.places(root)
	return r
}

// names returns what the paths of the parameters of a function begin with: their
// names, told apart where two are one.
func (a *analyser) names(t term.Term) []string {
	var names []string
	seen := map[string]bool{}
	for _, name := range term.Params(t) {
		for seen[name] || strings.HasPrefix(name, "@") || strings.HasPrefix(name, "!") {
			name = "_" + strings.TrimLeft(name, "@!") + "#" + strconv.Itoa(len(names)+1)
		}
		seen[name] = true
		names = append(names, name)
	}
	return names
}

// run runs what the code gave, where that is a function: with an input for each
// parameter that it is known to have.
func (a *analyser) run(t term.Term, v *aval, roots []string, s scope) cost {
	total := cost{}
	if len(roots) == 0 && v.kind != isInput && v.kind != isTop && v.kind != isFunction && v.kind != isUnion {
		return total
	}
	if len(roots) == 0 {
		roots = []string{"input"}
		if v.kind == isUnion && !slices.ContainsFunc(v.alts, func(x *aval) bool { return x.kind == isFunction || x.kind == isInput || x.kind == isTop }) {
			return total
		}
	}
	for _, name := range roots {
		name = RootName(name)
		in := cost{
			steps:  number(1).plus(a.vars.variable(Var{Measure: Terms, Path: name}).poly()),
			memory: a.vars.variable(Var{Measure: Bytes, Path: name}).poly().times(number(4)).plus(number(64)),
		}
		w, c := a.apply(t, v, input(name), s)
		total = total.plus(in).plus(c)
		v = w
	}
	return total
}

// bound returns p as a bound, with nothing left in it that is not an input.
func (a *analyser) bound(p poly, none bool) Bound {
	if none || a.vars.left < 0 {
		return Unbounded
	}
	s := a.resolve(p)
	if s.inf {
		return Unbounded
	}
	q := s.flat()
	if q.over() {
		return Unbounded
	}
	for _, m := range q {
		for _, f := range m.f {
			if strings.HasPrefix(f.Path, "@") {
				return Unbounded
			}
		}
	}
	return Bound{p: canonical(q)}
}

// places gives the reasons their places in words.
func (a *analyser) places(root term.Term) []Place {
	if len(a.why) == 0 {
		return nil
	}
	slices.SortStableFunc(a.why, func(x, y reason) int {
		if x.fatal != y.fatal {
			if x.fatal {
				return -1
			}
			return 1
		}
		return cmp.Compare(x.pos, y.pos)
	})
	places := make([]Place, len(a.why))
	offsets := make([]int, len(a.why))
	for i, r := range a.why {
		places[i] = Place{Message: r.message, Unbounded: r.fatal}
		offsets[i] = r.pos
	}
	src := a.o.Source
	if src == nil {
		return places
	}
	at := parse.LocateAll(src, root.Pos(), offsets)
	lines := text.Lines(src.Text)
	for i := range places {
		places[i].At = at[i]
		places[i].Line, places[i].Col = lines.Position(offsets[i])
	}
	return places
}
