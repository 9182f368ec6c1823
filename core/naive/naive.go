// Package naive is the obvious evaluator of PIF: slow, and written to be
// evidently right. It is the measure that package eval is held against, and
// what a trace runs on.
//
// It walks [term.Term] trees with linked environments and computes with the
// values of package value. The program's recursion is the Go stack's; calls in
// tail position are a loop. What it decides is everything a program's meaning
// consists of: order of evaluation, when a step is charged, what counts as
// depth, which document a fault's place points into. What it takes from
// elsewhere is the table: the kinds, meaning, cost and size of strict rows are
// package prim's.
//
// The rules, each stated where it is done:
//
//   - A step is charged when a term's evaluation begins (run.step); work that
//     grows with its data is charged before it is done (run.strict).
//   - Operands are evaluated left to right, all before any is tested. In a
//     curried application {"app":[f,a,b]} that means f, a, the test of f and
//     its body, and only then b.
//   - Depth counts what is still to be returned to: applications that are no
//     tail calls, bodies of fold, evals (run.enter). Two applications return
//     at once and are not counted: of a literal lambda, which is a let, and of
//     a function whose body is a lambda, which only makes the next closure.
//   - Scope is lexical for variables, and for context: the tool, the evals
//     around and the document belong to the code a closure was made in
//     (context). Code that eval runs sees the variables at the eval and has no
//     self; neither has an input.
//   - Authority is lexical and dynamic: an effect is asked for in the name of
//     the tool that the code belongs to, or whose eval runs it, within what the
//     evals permit that are under way (the parameter called around). Applying a
//     closure puts those under way again in which it was made (closure.around),
//     until the application has its value.
//   - A branch of par is a coroutine: it runs until it asks, and goes on when
//     all requests of its round have their answers (effects.go).
//
// It is held to the steps and depth budgets exactly. Memory is a rough count:
// what is allocated is charged and never given back, so the limit is [slack]
// times the budget; but no single value may be larger than the budget.
package naive

import (
	"cmp"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// Budgets bound a run. A zero field means its default.
type Budgets struct {
	Steps  uint64
	Memory int64 // bytes
	Depth  int
}

// The defaults of [Budgets].
const (
	DefaultSteps  = 10_000_000
	DefaultMemory = 64 << 20
	DefaultDepth  = 1_000_000
)

// Config is a program with all that its run depends on.
type Config struct {
	// Term is the code and Source what its places refer to (nil: faults have
	// no places).
	Term   term.Term
	Source *term.Source
	// Tool is the name of the tool whose code Term is; empty for inline code,
	// which has no self and can't continue.
	Tool string
	// Input is what Term is applied to if it is a function; nil is null.
	Input *parse.Parsed
	// More is the inputs that what came of the one before is applied to.
	More    []*parse.Parsed
	Budgets Budgets
	// Tools is what the code looks tools up in; nil: there are none.
	Tools value.Tools
	// Handler performs a round of effects and answers them, in order: one
	// outside par, inside it those that the branches ask for next. nil: every
	// effect is denied. A fault it returns is given the effect's place.
	Handler func([]value.Request) []value.Answer
	// Visit is called before each term's evaluation; false ends the run, with a
	// fault of kind cancelled. nil: nothing is called.
	Visit func(Scene) bool
	// Ended is told of the end of each evaluation, but not of a branch of par that is
	// abandoned. nil: nothing is called.
	Ended func(Ending)
	// Asked is told of the steps used before each round of effects. nil: nothing is called.
	Asked func(steps uint64)
}

// run is one run's state.
type run struct {
	Config
	steps     uint64 // used
	allocated int64
	nested    int // evaluations on the Go stack
	// expanded is what the uses of the prelude's rows mean.
	expanded map[*term.Prim]term.Term
	uses     prim.Uses
	// branch is the branch of par that runs; nil: none. branches is how many there were.
	branch   *branch
	branches int
}

// A context is what a piece of code belongs to. Closures carry the context
// they were made in.
type context struct {
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
func (ctx *context) inEval(code *value.Code) *context {
	return &context{
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
}

// An env is the variables in scope, innermost first.
type env struct {
	name string
	val  value.Value
	next *env
}

func (e *env) lookup(name string) (value.Value, bool) {
	for ; e != nil; e = e.next {
		if e.name == name {
			return e.val, true
		}
	}
	return nil, false
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
	ctx    *context
	around limits
}

// Run evaluates the code and, if that gives a function, applies it to the
// input. It returns the value or the fault, and the steps used: those of a run
// that is out of fuel are its budget.
//
// The order is: code, then the input, then one step for the application, then
// the function's body. Code that gives no function ignores the input. Of several
// inputs, what came of one is applied to the next in the same way; there it has
// to be a function.
func Run(c Config) (value.Value, uint64, *fault.Fault) {
	r := &run{Config: c}
	r.Budgets.Steps = cmp.Or(r.Budgets.Steps, DefaultSteps)
	r.Budgets.Memory = cmp.Or(r.Budgets.Memory, DefaultMemory)
	r.Budgets.Depth = cmp.Or(r.Budgets.Depth, DefaultDepth)
	v, f := r.run()
	r.ended(v, f)
	return v, r.steps, f
}

// ended tells of the end of the evaluation that runs.
func (r *run) ended(v value.Value, f *fault.Fault) {
	if r.Ended != nil {
		r.Ended(Ending{r.steps, r.nested, r.branch.number(), v, f})
	}
}

func (r *run) run() (value.Value, *fault.Fault) {
	input := func(i int) (value.Value, *fault.Fault) {
		if i > 0 {
			return r.input(r.More[i-1])
		}
		return r.input(r.Input)
	}
	return r.program(r.Term, r.Source, r.Tool, r.Tools, 1+len(r.More), input, 0)
}

// program evaluates the code of a tool, or inline code where name is empty,
// and applies what it gives to the inputs if that is a function.
func (r *run) program(t term.Term, source *term.Source, name string, tools value.Tools, inputs int, input func(i int) (value.Value, *fault.Fault), depth int) (value.Value, *fault.Fault) {
	ctx := &context{run: r, source: source, root: t, in: "code", holder: name, tools: tools, library: tools}
	if source != nil && source.In != "" {
		ctx.in = source.In
	}
	code := t
	if name != "" {
		ctx.tool = &tool{name: name, code: t, source: source}
		code = term.AsFunction(code)
		// The function of a tool whose code is a lambda exists before the code
		// is evaluated.
		if lam, ok := code.(*term.Lam); ok {
			ctx.tool.self = &value.Closure{Impl: &closure{lam, nil, ctx, nil}}
		}
	}
	v, f := r.nest(code, nil, ctx, nil, depth, true)
	if f != nil {
		return nil, f
	}
	for i := range inputs {
		fn, ok := v.(*value.Closure)
		switch {
		case !ok && i == 0:
			return v, nil
		case !ok:
			return nil, ctx.mismatch(code, prim.App, 0, v)
		case i == 0 && ctx.tool != nil:
			ctx.tool.self = fn
		}
		arg, f := input(i)
		if f != nil {
			return nil, f
		}
		c := fn.Impl.(*closure)
		if f := r.step(code, c.env, ctx, depth); f != nil {
			return nil, f
		}
		if v, f = r.nest(c.lam.Body, &env{c.lam.Param, arg, c.env}, c.ctx, c.around, depth, true); f != nil {
			return nil, f
		}
	}
	return v, nil
}

// input evaluates an input: with no variables, no tool and no authority.
func (r *run) input(in *parse.Parsed) (value.Value, *fault.Fault) {
	if in == nil {
		in = &parse.Parsed{Term: &term.Unit{}}
	}
	return r.nest(in.Term, nil, &context{run: r, source: in.Source, root: in.Term, in: "input", library: r.Tools}, nil, 0, true)
}

// step charges the one step of evaluating t with the variables of e.
func (r *run) step(t term.Term, e *env, ctx *context, depth int) *fault.Fault {
	if r.Visit != nil && !r.Visit(Scene{r.steps, r.Budgets.Steps - r.steps, depth, r.nested, t, e, ctx, r.branch}) {
		return ctx.fail(t, fault.New(fault.Cancelled, "the visitor has seen enough"))
	}
	return r.charge(1, t, ctx)
}

// charge charges n steps for work on t. Where they don't fit, all are used.
func (r *run) charge(n uint64, t term.Term, ctx *context) *fault.Fault {
	if n > r.Budgets.Steps-r.steps {
		r.steps = r.Budgets.Steps
		return ctx.fail(t, prim.OutOfFuel(r.Budgets.Steps))
	}
	r.steps += n
	return nil
}

// slack is how many times its budget of memory a run may allocate in all.
const slack = 16

// The bytes charged for what has no row of its own.
const (
	cellBytes    = 16
	closureBytes = 32
	fieldBytes   = 16
)

// alloc charges n bytes for the value of t.
func (r *run) alloc(n int64, t term.Term, ctx *context) *fault.Fault {
	if n > r.Budgets.Memory || r.allocated > slack*r.Budgets.Memory-n {
		return ctx.fail(t, prim.OutOfMemory(r.Budgets.Memory))
	}
	r.allocated += n
	return nil
}

// enter gives the depth inside a pending application, fold body or eval.
func (r *run) enter(depth int, t term.Term, ctx *context) (int, *fault.Fault) {
	if depth >= r.Budgets.Depth {
		return 0, ctx.fail(t, prim.TooDeep(r.Budgets.Depth))
	}
	return depth + 1, nil
}

// mismatch returns the type_error of operand i of a row, at t.
func (ctx *context) mismatch(t term.Term, id term.ID, i int, got value.Value) *fault.Fault {
	return ctx.fail(t, prim.Mismatch(id, i, prim.Describe(got)))
}

// fail gives a fault its place: the term, in the document its code stands in.
func (ctx *context) fail(t term.Term, f *fault.Fault) *fault.Fault {
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

// A Scene is a term that is about to be evaluated, as [Config.Visit] sees it. It
// may be kept.
type Scene struct {
	Step  uint64 // steps used before it
	Left  uint64 // steps of the budget that are left
	Depth int
	// Level is how many evaluations wait for this one, in its branch of par. A scene
	// at the level of the one before goes on with the same evaluation.
	Level int
	Term  term.Term

	env    *env
	ctx    *context
	branch *branch
}

// An Ending is the end of the evaluation at a level of a branch, with its value or
// its fault.
type Ending struct {
	Steps  uint64 // used up to then
	Level  int
	Branch int // see [Scene.Branch]
	Value  value.Value
	Fault  *fault.Fault
}

// A Place is where a term stands: the document's name and the pointer into it,
// with line and column where the source is text.
type Place struct {
	In        string
	At        fault.Pointer
	Line, Col int
}

// Place finds where the term stands. It reads the source.
func (s Scene) Place() Place {
	f := s.ctx.fail(s.Term, &fault.Fault{})
	return Place{f.In, f.At, f.Line, f.Col}
}

// Source is what the term was read from, and the offset in it; nil: nothing is known.
func (s Scene) Source() (src *term.Source, offset int) {
	return s.ctx.source, s.ctx.run.uses.Blame(&fault.Fault{}, s.Term.Pos())
}

// In is the name of the document that the term stands in.
func (s Scene) In() string { return s.ctx.in }

// Tool is the tool in whose name the code acts; "" for inline code.
func (s Scene) Tool() string { return s.ctx.holder }

// Root is the term that the code stands for which the term is a part of.
func (s Scene) Root() term.Term { return s.ctx.root }

// Row is the name of the row of the library in whose meaning t stands, which belongs to
// the scene's program; "" for what was written.
func (s Scene) Row(t term.Term) string { return s.ctx.run.uses.Row(t.Pos()) }

// Branch is the number of the branch of par that the scene is in, from 1 as they are
// made; 0: it is in none.
func (s Scene) Branch() int { return s.branch.number() }

// Path is the indices of the branches around, as requests have it, and outer the branch
// that this one's par is in.
func (s Scene) Path() (path string, outer int) {
	if s.branch == nil {
		return "", 0
	}
	return s.branch.path(), s.branch.parent.number()
}

// Vars calls visit for the variables in scope, the innermost first, until it
// says false. Of a name that is bound twice the outer one comes later. Values
// must not be changed; functions are opaque.
func (s Scene) Vars(visit func(name string, v value.Value) bool) {
	for e := s.env; e != nil && visit(e.name, e.val); e = e.next {
	}
}
