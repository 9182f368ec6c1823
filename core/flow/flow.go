// Package flow evaluates a program once more, with a label at every value: which
// sources it was made of, and which decided that it is this value. It is how a server
// that has rules about where data may go knows, of a request that is about to be made,
// what its argument and the fact that it is made depend on.
//
// It is package naive with labels: values, faults, places, steps and requests are the
// same, which tests hold, as they hold that a run's unlabelled requests don't depend on
// what labelled ones were answered. The labels are those of table 4.6 of the design:
//
//   - What is made in a branch has the control label of what decided it; what a
//     function gives, all of the label of the function; a part keeps the label of that
//     part (rows.go). A label is told where a value leaves the context in which all
//     values have it, and at a request, whose argument has all of its context's.
//   - A [Shadow] is beside each value, of its shape as far as its parts differ.
//   - A request is labelled by what decided that it is made; inside a try that is also
//     what decided whether something failed before it, in branches before it too.
//   - Rows of the library are the PIF they mean, as in naive.
//   - A number that counts a list's items is made of what decided how many there are.
//   - A failure has the label of all that decided it, and of what its message shows.
//
// What a label doesn't tell of: whether a run ends, how many steps and how long it
// takes, the order in which branches of par ask, and how much is recorded.
//
// It decides nothing about rules, sources or policies: the handler gives labels to
// answers and may refuse to go on. It is bounded by [Bounds] and by the memory of the
// run; exceeding them is an error of type [Exceeded], no fault of the program.
//
// An answer may be a [Hole], some value that isn't known: a plan is a run in which
// writes are answered by holes. See [Result.Hole].
package flow

import (
	"cmp"
	"context"
	"fmt"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/naive"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// Config is a program with all that its run depends on.
type Config struct {
	// Term is the code and Source what its places refer to (nil: faults have no places).
	Term   term.Term
	Source *term.Source
	// Tool is the name of the tool whose code Term is; empty for inline code.
	Tool string
	// Inputs is what Term is applied to, one after the other, if it is a function; none
	// is null.
	Inputs []Input
	// Budgets are the run's own: a program that exceeds its steps or depth fails as it
	// does elsewhere. Memory bounds what is allocated in all; see [Exceeded].
	Budgets naive.Budgets
	Bounds  Bounds
	// Lend is asked for so many bytes more of memory that is shared with others, and gets them back at the end, as a
	// number below 0; false: there are none. nil: nobody is asked.
	Lend func(bytes int64) bool
	// Tools is what the code looks tools up in; nil: there are none.
	Tools value.Tools
	// Code is the label of all that the code says, MadeUnder that of the code of tools
	// that are called or looked up; nil: none have one.
	Code      Label
	MadeUnder func(value.Tool) Label
	// Handler answers a round of requests, in order: one outside par, inside it those
	// that the branches ask for next. It may take its time. An error ends the run, which
	// returns it. nil: every effect is denied.
	Handler func(ctx context.Context, round []Request) ([]Answer, error)
}

// An Input is evaluated as package parse reads it or, where that is nil, is Value. The
// zero value is null.
type Input struct {
	Parsed *parse.Parsed
	Value  value.Value
	// Shadow tells where its parts come from; nil: it has no labels.
	Shadow *Shadow
}

// A Request is an effect that is asked for, with labels.
type Request struct {
	value.Request
	// Made is what decided that the request is made, Shadow where the parts of its
	// argument come from.
	Made   Label
	Shadow *Shadow
}

// An Answer is what became of a request.
type Answer struct {
	value.Answer
	// Shadow is the label of a fault, or tells where the parts of the value come from;
	// nil: nothing. What the request was made of, and because of, is added to it unless
	// Alone is set: the same would have been answered to any question.
	Shadow *Shadow
	Alone  bool
	// Judged is set of a fault that was decided by labels, and not by what they are of: it
	// tells of what made the request and of Shadow, and not of what was asked with.
	Judged bool
	// Bytes is what the value takes, where it was made for the run.
	Bytes int64
}

// Bounds are what the labelled evaluation may use besides the run's own budgets. A
// zero field is its default.
type Bounds struct {
	Steps uint64
	Depth int
}

// The defaults of [Bounds].
const (
	DefaultSteps = 5_000_000
	DefaultDepth = 50_000
)

// Exceeded is the error of an evaluation that took more than it may: it isn't known
// what the program goes on to do.
type Exceeded struct {
	What  string // steps, depth or memory
	Bound int64
}

func (e *Exceeded) Error() string {
	return fmt.Sprintf("following the run took more than %d of %s", e.Bound, e.What)
}

// A Result is what came of a run: a value, a fault, or a hole that something depends on.
type Result struct {
	// Value may have holes in it; Shadow is its.
	Value  value.Value
	Shadow *Shadow
	// Fault is why it failed, and Label what that tells of.
	Fault *fault.Fault
	Label Label
	// Hole is set where the run ended because something depends on what is in it, At
	// the place of that.
	Hole *Hole
	At   fault.Pointer
	// Steps is how many were used.
	Steps uint64
	// Ended is what decided whether the run failed, and which way it took: what is told by that it came
	// to this end.
	Ended Label
}

// Run evaluates the program. An error is of type [*Exceeded], the context's, or the
// handler's.
func Run(ctx context.Context, c Config) (res Result, err error) {
	r := &run{Config: c, context: ctx}
	r.Budgets.Steps = cmp.Or(r.Budgets.Steps, naive.DefaultSteps)
	r.Budgets.Memory = cmp.Or(r.Budgets.Memory, naive.DefaultMemory)
	r.Budgets.Depth = cmp.Or(r.Budgets.Depth, naive.DefaultDepth)
	r.Bounds.Steps = cmp.Or(r.Bounds.Steps, DefaultSteps)
	r.Bounds.Depth = cmp.Or(r.Bounds.Depth, DefaultDepth)
	if len(r.Inputs) == 0 {
		r.Inputs = []Input{{}}
	}
	defer func() {
		if r.lent > 0 {
			r.Lend(-r.lent)
		}
		switch p := recover().(type) {
		case nil:
		case stop:
			res, err = Result{Steps: r.steps}, p.err
		case needed:
			place := r.at.fail(r.term, &fault.Fault{})
			res = Result{Hole: p.hole, At: fault.Pointer(place.Place()), Steps: r.steps, Label: r.entered}
		default:
			panic(p)
		}
	}()
	v, s, f := r.program(r.Term, r.Source, r.Tool, r.Tools, len(r.Inputs), r.input, 0, where{r.Code, r.Code})
	if f != nil {
		if !f.Kind.Catchable() {
			// How far it got is what all that came in decided.
			r.failed |= r.entered.Control()
		}
		return Result{Fault: f, Label: r.failed, Steps: r.steps, Ended: r.touched.Control()}, nil
	}
	return Result{Value: v, Shadow: s, Steps: r.steps, Ended: r.touched.Control()}, nil
}

// run is one run's state.
type run struct {
	Config
	context   context.Context
	steps     uint64 // used
	walked    uint64 // cells of lists that no step was taken for
	allocated int64
	lent      int64 // of what was allocated
	nested    int   // evaluations on Go stacks, of all branches
	// expanded is what the uses of the prelude's rows mean.
	expanded map[*term.Prim]term.Term
	uses     prim.Uses
	// branch is the branch of par that runs; nil: none.
	branch *branch
	// holes is set when something may depend on a hole, at and term where.
	holes bool
	at    *scope
	term  term.Term
	// guessed is how often it went on as if something that isn't known had succeeded: a
	// request answered by a hole, or a row that may fail with what is in one, the last of
	// which was on guess.
	guessed int
	guess   *Hole

	free  []*operands
	parts bool    // the row under way has labelled operands
	made  *Shadow // of the last function, as the next often has it too

	entered Label // by answers and inputs
	failed  Label // of the fault under way
	watch
}

// A stop is the panic that ends a run with an error.
type stop struct{ err error }

// where is the label of the context of what is evaluated: all of it, and what a value
// that is evaluated here has when it leaves for what waits for it.
type where struct{ all, here Label }

// under returns the context of what l decides.
func (w where) under(l Label) where { return where{w.all | l, w.here | l} }

// inside returns the context of what is evaluated for something that is in this one,
// and so has its label.
func (w where) inside() where { return where{all: w.all} }

// A scope is what a piece of code belongs to. Closures carry the context
// they were made in.
type scope struct {
	run    *run
	source *term.Source
	root   term.Term // that pointers start from
	in     string    // the document's name in faults
	tool   *tool     // nil: no self, no continue
	evals  int       // how many evals deep the code is
	// holder is the tool that effects are asked for by, and tools what says so;
	// library is where code_of looks, also for an input.
	holder         string
	tools, library value.Tools
}

// limits is lists of capabilities, each of which has to permit an effect; see
// [value.Request.With]. nil permits everything.
type limits = [][]string

// inEval returns the context of code that an eval in this one evaluates.
func (ctx *scope) inEval(code *value.Code) *scope {
	return &scope{
		run:    ctx.run,
		source: code.Source, root: code.Term, in: "eval", evals: ctx.evals + 1,
		holder: ctx.holder, tools: ctx.tools, library: ctx.library,
	}
}

// A tool is what self, continue and code_of "self" refer to.
type tool struct {
	name   string
	code   term.Term
	source *term.Source
	self   value.Value // nil until the code has given a function
	shadow *Shadow
	under  Label // of its code
}

// An env is the variables in scope, innermost first.
type env struct {
	name   string
	value  value.Value
	shadow *Shadow
	next   *env
	all    Label // of this one and those further out
}

func bind(name string, v value.Value, s *Shadow, next *env) *env {
	return &env{name, v, s, next, s.deep | next.labels()}
}

func (e *env) labels() Label {
	if e == nil {
		return 0
	}
	return e.all
}

func (e *env) lookup(name string) *env {
	for ; e != nil && e.name != name; e = e.next {
	}
	return e
}

// names gives the variables in scope, innermost first.
func (e *env) names() []string {
	var names []string
	for ; e != nil; e = e.next {
		names = append(names, e.name)
	}
	return names
}

// A closure is a lambda with the variables and the context around it, and what
// the evals permit in which it was made.
type closure struct {
	lam    *term.Lam
	env    *env
	ctx    *scope
	around limits
}

// program evaluates the code of a tool, or inline code where name is empty, and
// applies what it gives to the inputs if that is a function.
func (r *run) program(t term.Term, source *term.Source, name string, tools value.Tools, inputs int, input func(i int, w where) (value.Value, *Shadow, *fault.Fault), depth int, w where) (value.Value, *Shadow, *fault.Fault) {
	ctx := &scope{run: r, source: source, root: t, in: "code", holder: name, tools: tools, library: tools}
	if source != nil && source.In != "" {
		ctx.in = source.In
	}
	code := t
	if name != "" {
		ctx.tool = &tool{name: name, code: t, source: source, under: w.here}
		code = term.AsFunction(code)
		if lam, ok := code.(*term.Lam); ok {
			ctx.tool.self, ctx.tool.shadow = &value.Closure{Impl: &closure{lam, nil, ctx, nil}}, leaf(w.here)
		}
	}
	v, s, f := r.eval(code, nil, ctx, nil, depth, true, w)
	if f != nil {
		return nil, nil, f
	}
	for i := range inputs {
		fn, ok := value.Force(v).(*value.Closure)
		switch {
		case !ok && i == 0:
			return v, s, nil
		case !ok:
			return nil, nil, r.mismatch(ctx, code, prim.App, 0, v, w.all|s.own)
		case i == 0 && ctx.tool != nil:
			ctx.tool.self, ctx.tool.shadow = fn, s
		}
		arg, as, f := input(i, w)
		if f != nil {
			return nil, nil, f
		}
		c := fn.Impl.(*closure)
		if f := r.charge(1, code, ctx); f != nil {
			return nil, nil, f
		}
		r.touched |= s.own | w.all
		if v, s, f = r.eval(c.lam.Body, bind(c.lam.Param, arg, as, c.env), c.ctx, c.around, depth, true, w.under(s.own)); f != nil {
			return nil, nil, f
		}
	}
	return v, s, nil
}

// input evaluates an input: with no variables, no tool and no authority.
func (r *run) input(i int, w where) (value.Value, *Shadow, *fault.Fault) {
	in := r.Inputs[i]
	if in.Parsed == nil && in.Value == nil {
		in.Parsed = &parse.Parsed{Term: &term.Unit{}}
	}
	v, s := in.Value, leaf(0)
	given := in.Shadow
	given = cmp.Or(given, s)
	r.entered |= given.deep.Atoms()
	if in.Parsed != nil {
		var f *fault.Fault
		ctx := &scope{run: r, source: in.Parsed.Source, root: in.Parsed.Term, in: "input", library: r.Tools}
		// What it computes isn't known apart from what it was given.
		if v, s, f = r.eval(in.Parsed.Term, nil, ctx, nil, 0, true, where{w.all, 0}.under(in.within())); f != nil {
			return nil, nil, f
		}
	}
	return v, given.fit(v).Join(s), nil
}

// within returns the label under which an input is evaluated: all of its where it is a
// term, nothing where it is data, whose parts have labels of their own.
func (in *Input) within() Label {
	if in.Shadow == nil || len(in.Shadow.kids) > 0 {
		return 0
	}
	return in.Shadow.deep
}

// charge charges n steps for work on t. Where they don't fit, all are used.
func (r *run) charge(n uint64, t term.Term, ctx *scope) *fault.Fault {
	if n > r.Budgets.Steps-r.steps {
		r.steps = r.Budgets.Steps
		return ctx.fail(t, prim.OutOfFuel(r.Budgets.Steps))
	}
	before := r.steps
	if r.steps += n; r.steps+r.walked/cellsPerStep > r.Bounds.Steps {
		panic(stop{&Exceeded{"steps", int64(r.Bounds.Steps)}})
	}
	if before/lookEvery != r.steps/lookEvery {
		r.look()
	}
	return nil
}

// walk counts the cells of a list that a row goes through, so many at most, besides its steps.
func (r *run) walk(list value.Value, most int) {
	before := r.walked
	for c, ok := list.(*value.Cons); ok && r.walked-before < uint64(most); c, ok = c.Tail.(*value.Cons) {
		r.walked++
	}
	if r.walked/cellsPerStep > r.Bounds.Steps-r.steps {
		panic(stop{&Exceeded{"steps", int64(r.Bounds.Steps)}})
	}
	if before/(lookEvery*cellsPerStep) != r.walked/(lookEvery*cellsPerStep) {
		r.look()
	}
}

// look ends the run where its context has ended.
func (r *run) look() {
	if r.context.Err() != nil {
		panic(stop{context.Cause(r.context)})
	}
}

// left returns how many steps there are for work on one row.
func (r *run) left() uint64 { return min(r.Budgets.Steps, r.Bounds.Steps) - r.steps }

// lookEvery is after how many steps it is asked whether the context has ended.
const lookEvery = 1 << 12

// cellsPerStep is how many cells are walked in the time of a step, about.
const cellsPerStep = 16

// The bytes charged for what has no row of its own.
const (
	cellBytes    = 112
	closureBytes = 80
	fieldBytes   = 64
	envBytes     = 64
	shadowBytes  = 48
	branchBytes  = 1 << 12
	// A nested evaluation takes so much of a stack, about.
	frameBytes = 1600
	// So much is asked for at a time.
	lendBytes = 1 << 20
	// No stack of Go's may be larger than a gigabyte.
	maxNested = 400_000
)

// alloc charges n bytes.
func (r *run) alloc(n int64) {
	if n > r.Budgets.Memory || r.nested > maxNested || r.allocated+int64(r.nested)*frameBytes > r.Budgets.Memory-n {
		panic(stop{&Exceeded{"memory", r.Budgets.Memory}})
	}
	r.allocated += n
	if need := r.allocated + int64(r.nested)*frameBytes - r.lent; need > 0 && r.Lend != nil {
		if need = max(need, lendBytes); !r.Lend(need) {
			panic(stop{&Exceeded{"the memory that others left", r.lent}})
		}
		r.lent += need
	}
}

// enter gives the depth inside a pending application, fold body or eval.
func (r *run) enter(depth int, t term.Term, ctx *scope) (int, *fault.Fault) {
	if depth >= r.Budgets.Depth {
		return 0, ctx.fail(t, prim.TooDeep(r.Budgets.Depth))
	}
	if depth >= r.Bounds.Depth {
		panic(stop{&Exceeded{"depth", int64(r.Bounds.Depth)}})
	}
	return depth + 1, nil
}

// fail gives the fault of t its place, and remembers that it tells of l.
func (r *run) fail(ctx *scope, t term.Term, f *fault.Fault, l Label) *fault.Fault {
	r.failed = l
	r.touched |= l
	return ctx.fail(t, f)
}

// mismatch returns the type_error of operand i of a row, at t, decided by l.
func (r *run) mismatch(ctx *scope, t term.Term, id term.ID, i int, got value.Value, l Label) *fault.Fault {
	return r.fail(ctx, t, prim.Mismatch(id, i, prim.Describe(got)), l)
}

// fail gives a fault its place: the term, in the document its code stands in.
func (ctx *scope) fail(t term.Term, f *fault.Fault) *fault.Fault {
	pos := ctx.run.uses.Blame(f, t.Pos())
	f.In, f.EvalDepth = ctx.in, ctx.evals
	if ctx.source != nil {
		if ctx.source.Form == term.PIF {
			text.At(f, ctx.source, pos)
		} else {
			parse.At(f, ctx.source, ctx.root.Pos(), pos)
		}
	}
	return f
}
