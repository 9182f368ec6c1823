// Package flows says, before a program runs, which rules about where data may go it can
// break: for each place that asks for an operation whether what it is given is never,
// must be or may be made of a source.
//
// The program is evaluated with sets in the place of values (value.go): the labels that
// package flow would give a value, at most and, of its data, at least; the parts that it
// may have by their names; the functions and quoted code that it may be. Both branches of
// a condition are gone through, and each function with all that it is ever given, again
// and again until nothing is added. A function bound by let is another one at each of its
// uses, and so is a row of the library, which is the PIF that it means.
//
// What it doesn't see: items of a source that are told by their values (it takes the
// union), code that is computed, functions that come from an input, and tools of which
// nothing is known: all of them may do everything.
//
// [Must] holds whenever the place is reached: package flow gives such a label too, which
// a test holds. [Never] holds of all runs.
package flows

import (
	"cmp"
	"slices"

	"github.com/mcp-pif/mcp-pif/core/flow"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// An Asking is a place that asks for an operation, as far as it is known.
type Asking struct {
	// Op is the operation and In the capability that it names, "" for none.
	Op, In string
	// Own is set where the program's own code asks, with what the program holds.
	Own bool
}

// A Rule is what may not be: that what a request is made of has certain labels.
type Rule struct {
	// Of reports whether the rule is about what is asked for, and whether it surely is.
	Of func(*Asking) (may, must bool)
	// Argument is the part of the argument that counts, a path as that of
	// [flow.Shadow.Label] that begins with a name; with Made set it counts as well that
	// the request is made, with Only nothing else does.
	Argument   []string
	Made, Only bool
	// Forbidden is the label that it may have nothing of or, with All, not all of.
	Forbidden flow.Label
	All       bool
	// Mask is the halves that count.
	Mask flow.Label
}

// A Query is what a program is asked about.
type Query struct {
	// Source gives the labels that the answer of an operation may have, and those that
	// all of it has for sure. alone is set where the answer doesn't depend on what is
	// asked.
	Source func(*Asking) (may, must flow.Label, alone bool)
	Rules  []Rule
	// Tool is set for the code of a tool.
	Tool bool
	// Code gives the code of a tool by its name; nil, or false: it isn't known.
	Code func(name string) (term.Term, bool)
	// All is every label that there is: what code that isn't known may have read.
	All flow.Label
	// Steps bounds the work; 0: a default.
	Steps int
}

// A Verdict is what is known of a rule at a place.
type Verdict string

// The verdicts.
const (
	Never Verdict = "never"
	Must  Verdict = "must"
	May   Verdict = "may"
)

// A Flow is the verdict of a rule at a place.
type Flow struct {
	Rule    int // its index
	Op      string
	At      int // of the term that asks, or calls or evaluates what isn't known
	Verdict Verdict
	// From is what it is, or may be, made of that is forbidden, as data; By whether that is
	// its data, or only what decided it.
	From flow.Label
	Data bool
	// Via is where it comes from, and what it goes through.
	Via []Step
}

// A Step is where a label comes from, an operation, or a part that is taken: the name of
// the row and of the field.
type Step struct {
	Name, Field string
	At          int
}

// Of gives the verdicts of a program at the places that rules are about, those at which
// nothing can happen too, in the order of places and rules. It is false if the program is
// too large to tell.
func Of(t term.Term, q Query) ([]Flow, bool) {
	a := &analysis{
		Query: q, closures: map[closureKey]*closure{}, scopes: map[scopeKey]*scope{}, tools: map[toolKey]*tool{}, foreign: map[*term.Quote]bool{}, expanded: map[*term.Prim]term.Term{},
		copies: map[copyKey]*term.Lam{}, args: map[term.Term]*abs{}, folds: map[*term.Prim]*abs{}, tries: map[*term.Prim]flow.Label{}, left: q.Steps,
	}
	a.left = cmp.Or(a.left, 300_000)
	for range maxPasses {
		a.changed, a.found = false, map[foundKey]*found{}
		for _, c := range a.closures {
			c.done = false
		}
		a.run(t)
		if a.left < 0 {
			return nil, false
		}
		if !a.changed {
			return a.verdicts(), true
		}
	}
	return nil, false
}

// maxPasses is after how many passes it is given up that something is still added.
const maxPasses = 60

type analysis struct {
	Query
	left     int
	changed  bool
	closures map[closureKey]*closure
	scopes   map[scopeKey]*scope
	tools    map[toolKey]*tool
	foreign  map[*term.Quote]bool // code of tools
	expanded map[*term.Prim]term.Term
	copies   map[copyKey]*term.Lam
	folds    map[*term.Prim]*abs       // what has accumulated
	tries    map[*term.Prim]flow.Label // what decided inside
	args     map[term.Term]*abs        // what functions were last given
	next     *abs                      // what the program continues with
	touched  flow.Label                // what was tested
	shown    flow.Label                // what messages may show
	nested   int
	main     *scope
	callAt   int // 1 + the place of the call of a tool under way
	found    map[foundKey]*found
}

type copyKey struct {
	use *term.Var
	lam *term.Lam
}

type foundKey struct{ at, rule int }

// found is what the uses of one place have in common.
type found struct {
	op        string
	may, must flow.Label // of what counts, must of its data
	surely    bool       // every use is one that the rule is about, outside of try
	via       *step
}

func (a *analysis) run(t term.Term) {
	if a.main == nil {
		a.main = &scope{tool: a.Tool, code: t}
		if a.Tool {
			a.main.code = term.AsFunction(t)
		}
	}
	v := a.program(a.main, where{})
	for range maxParams {
		if v == nil || len(v.fns) == 0 {
			break
		}
		v = a.applied(v, join(&abs{any: true}, a.next), where{})
	}
}

// maxParams is how many inputs a program is given at most.
const maxParams = 100

// program evaluates the code of a tool, or inline code.
func (a *analysis) program(ctx *scope, w where) *abs {
	if lam, ok := ctx.code.(*term.Lam); ok && ctx.tool {
		ctx.self = &abs{fns: []*closure{a.closure(lam, nil, ctx)}}
	}
	v := a.eval(ctx.code, nil, ctx, w)
	if ctx.tool {
		a.grow(&ctx.self, v)
	}
	return v
}

// grow adds to what is known from pass to pass.
func (a *analysis) grow(known **abs, v *abs) {
	if j := join(*known, v); !same(j, *known) {
		*known, a.changed = j, true
	}
}

// asks looks at the rules for a request.
func (a *analysis) asks(n *term.Effect, arg *abs, ctx *scope, w where) *Asking {
	for ctx.outer != nil {
		ctx = ctx.outer
	}
	asking := &Asking{Op: n.Op, In: n.In, Own: ctx == a.main}
	for i, rule := range a.Rules {
		may, must := rule.Of(asking)
		if !may {
			continue
		}
		var l, least flow.Label
		var via *step
		if !rule.Only {
			part := arg.raise(w.all).at(rule.Argument)
			l, least, via = part.all(), part.least(), part.via()
		}
		if rule.Made || rule.Only {
			l |= w.all
			via = cmp.Or(via, w.via)
		}
		via = cmp.Or(via, w.via)
		a.note(n.Pos(), i, found{n.Op, l, least, must && !w.tried, via})
	}
	return asking
}

// note adds what is known of a place; what a tool does is at its call.
func (a *analysis) note(at, rule int, f found) {
	key := foundKey{a.place(at), rule}
	g := a.found[key]
	if g == nil {
		a.found[key] = &f
		return
	}
	g.may, g.must, g.surely = g.may|f.may, g.must&f.must, g.surely && f.surely
	g.via = cmp.Or(g.via, f.via)
}

// unknown notes that what isn't known at a place may do everything.
func (a *analysis) unknown(at int) {
	for i := range a.Rules {
		a.note(at, i, found{op: "", may: a.All | a.All.Control()})
	}
}

func (a *analysis) verdicts() []Flow {
	var list []Flow
	for key, f := range a.found {
		rule := a.Rules[key.rule]
		breaks := func(l flow.Label) flow.Label {
			l = (l & rule.Mask).Atoms() & rule.Forbidden
			if rule.All && l != rule.Forbidden {
				return 0
			}
			return l
		}
		flow := Flow{Rule: key.rule, Op: f.op, At: key.at, Verdict: Never}
		if flow.From = breaks(f.may); flow.From != 0 {
			flow.Verdict, flow.Data, flow.Via = May, f.may&flow.From != 0, f.via.list()
		}
		if least := breaks(f.must); least != 0 && f.surely {
			flow.Verdict, flow.From = Must, least
		}
		list = append(list, flow)
	}
	slices.SortFunc(list, func(x, y Flow) int {
		if x.At != y.At {
			return x.At - y.At
		}
		return x.Rule - y.Rule
	})
	return list
}

// expand returns what a use of a row of the prelude means.
func (a *analysis) expand(p *term.Prim) term.Term {
	t, ok := a.expanded[p]
	if !ok {
		t = prim.Expand(p)
		a.expanded[p] = t
	}
	return t
}
