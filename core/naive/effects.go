package naive

import (
	"cmp"
	"strconv"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// effect evaluates the argument and asks for the operation.
func (r *run) effect(n *term.Effect, e *env, ctx *context, around limits, depth int) (value.Value, *fault.Fault) {
	arg, f := r.operand(n.Arg, e, ctx, around, depth)
	if f != nil {
		return nil, f
	}
	size, steps := text.MeasureRecorded(arg, r.Budgets.Memory, r.Budgets.Steps-r.steps, nil)
	if f := r.charge(steps, n, ctx); f != nil {
		return nil, f
	}
	if r.Handler == nil {
		return nil, ctx.fail(n, prim.Denied(n.Op))
	}
	place := ctx.fail(n, &fault.Fault{})
	a := r.ask([]value.Request{{
		Op: n.Op, In: n.In, Arg: arg, Size: size, Most: r.Budgets.Memory, At: fault.Pointer(place.Place()), Where: place.In,
		Tool: ctx.holder, Tools: ctx.tools, With: around, Branch: r.branch.path(),
	}})[0]
	if a.Fault != nil {
		mine := *a.Fault // the handler's own fault isn't ours to change
		return nil, ctx.fail(n, &mine)
	}
	if a.Value == nil {
		return value.Unit{}, nil
	}
	return a.Value, nil
}

// ask has requests answered: by the handler, or in a branch of par together
// with those of the other branches.
func (r *run) ask(requests []value.Request) []value.Answer {
	if r.branch != nil {
		return r.branch.ask(requests)
	}
	if r.Asked != nil {
		r.Asked(r.steps)
	}
	return r.Handler(requests)
}

// call evaluates a tool's name and its input, and runs the tool's code on it
// as it is run by itself, but with what is left of this run's budgets.
func (r *run) call(n *term.Prim, e *env, ctx *context, around limits, depth int) (value.Value, *fault.Fault) {
	v, f := r.operand(n.Args[0], e, ctx, around, depth)
	if f != nil {
		return nil, f
	}
	in, several := n.Args[1], len(n.Args) > 2
	if several {
		in = &term.List{At: n.At, Items: n.Args[1:]}
	}
	input, f := r.operand(in, e, ctx, around, depth)
	if f != nil {
		return nil, f
	}
	name, ok := v.(value.Str)
	if !ok {
		return nil, ctx.mismatch(n, prim.Call, 0, v)
	}
	if ctx.tools == nil {
		return nil, ctx.fail(n, prim.NoCall(string(name)))
	}
	place := ctx.fail(n, &fault.Fault{})
	t, f := ctx.tools.Callee(string(name), around, fault.Pointer(place.Place()))
	if f != nil {
		mine := *f
		return nil, ctx.fail(n, &mine)
	}
	found, nested, words := prim.NoData(input, r.Budgets.Steps-r.steps)
	if f := r.charge(words, n, ctx); f != nil {
		return nil, f
	}
	if found != nil {
		return nil, ctx.fail(n, prim.NotData(found, nested))
	}
	t.Name = cmp.Or(t.Name, string(name))
	by, missing := prim.Place(t, input, several)
	if missing != nil && several {
		return nil, ctx.fail(n, missing)
	}
	inside, f := r.enter(depth, n, ctx)
	if f != nil {
		return nil, f
	}
	inputs := prim.PlaceInputs(t, input, by)
	v, f = r.program(t.Term, t.Source, t.Name, t.Tools, len(inputs), func(i int) (value.Value, *fault.Fault) { return inputs[i], nil }, inside)
	if f != nil {
		return nil, f
	}
	found, nested, words = prim.NoData(v, r.Budgets.Steps-r.steps)
	if f := r.charge(words, n, ctx); f != nil {
		return nil, f
	}
	if found != nil {
		return nil, ctx.fail(n, prim.GaveNoData(t.Name, found, nested, missing))
	}
	return v, nil
}

// A branch is one branch of a par under way: a coroutine, which runs only
// while the par waits for it.
type branch struct {
	id     int // from 1, in the order in which they are made
	index  int
	parent *branch
	nested int // its evaluations on the Go stack

	out chan []value.Request // closed where the branch has come to its end
	in  chan []value.Answer  // closed where the branch is abandoned

	requests int // it waits for so many answers
	started  bool
	done     bool
	value    value.Value
	fault    *fault.Fault
	panicked any
}

// abandoned is the panic that unwinds a branch that is not needed any more.
type abandoned struct{}

// number returns the branch's number; 0: it is none.
func (b *branch) number() int {
	if b == nil {
		return 0
	}
	return b.id
}

// path returns the indices of the branches around, as requests have it.
func (b *branch) path() string {
	if b == nil {
		return ""
	}
	if p := b.parent.path(); p != "" {
		return p + "." + strconv.Itoa(b.index)
	}
	return strconv.Itoa(b.index)
}

func (b *branch) ask(requests []value.Request) []value.Answer {
	b.out <- requests
	answers, ok := <-b.in
	if !ok {
		panic(abandoned{})
	}
	return answers
}

// par runs the branches in rounds: each up to the requests it makes next, its
// value or its fault. After a fault the branches behind it are abandoned, and
// those before it go on. The requests of a round are asked together.
func (r *run) par(n *term.Prim, e *env, ctx *context, around limits, depth int) (value.Value, *fault.Fault) {
	inside, f := r.enter(depth, n, ctx)
	if f != nil {
		return nil, f
	}
	if f := r.alloc(int64(len(n.Args))*branchBytes, n, ctx); f != nil {
		return nil, f
	}
	branches := make([]*branch, len(n.Args))
	for i := range branches {
		r.branches++
		branches[i] = &branch{id: r.branches, index: i, parent: r.branch, out: make(chan []value.Request), in: make(chan []value.Answer)}
	}
	left := branches // those that are still of interest
	abandon := func(from int) {
		for _, b := range left[from:] {
			b.abandon()
		}
		left = left[:from]
	}
	defer func() { abandon(0) }()
	var failed *fault.Fault
	var answers []value.Answer
	for {
		var requests []value.Request
		for i := 0; i < len(left); i++ {
			b := left[i]
			if b.done {
				continue
			}
			mine := answers[:b.requests]
			answers = answers[b.requests:]
			asked := r.resume(b, mine, func() (value.Value, *fault.Fault) {
				v, f := r.eval(n.Args[b.index], e, ctx, around, inside, false)
				r.ended(v, f)
				return v, f
			})
			if b.panicked != nil {
				panic(b.panicked)
			}
			if b.fault != nil {
				if failed = b.fault; !failed.Kind.Catchable() {
					return nil, failed
				}
				abandon(i)
			}
			b.requests = len(asked)
			requests = append(requests, asked...)
		}
		if len(requests) == 0 {
			break
		}
		answers = r.ask(requests)
	}
	if failed != nil {
		return nil, failed
	}
	items := make([]value.Value, len(branches))
	for i, b := range branches {
		items[i] = b.value
	}
	if f := r.alloc(int64(len(items))*cellBytes, n, ctx); f != nil {
		return nil, f
	}
	return value.FromSlice(items), nil
}

// branchBytes is about what a branch takes.
const branchBytes = 64

// resume lets a branch go on, from its beginning or with answers, up to its
// next requests, or its end where it asks for nothing.
func (r *run) resume(b *branch, answers []value.Answer, start func() (value.Value, *fault.Fault)) []value.Request {
	outer, nested := r.branch, r.nested
	r.branch, r.nested = b, b.nested
	if b.started {
		b.in <- answers
	} else {
		b.started = true
		go func() {
			defer close(b.out)
			defer func() {
				if p := recover(); p != nil {
					if _, ok := p.(abandoned); !ok {
						b.panicked = p
					}
				}
			}()
			b.value, b.fault = start()
		}()
	}
	requests, asks := <-b.out
	b.done = !asks
	b.nested = r.nested
	r.branch, r.nested = outer, nested
	return requests
}

// abandon ends a branch's coroutine.
func (b *branch) abandon() {
	if b.started && !b.done {
		close(b.in)
		<-b.out
		b.done = true
	}
}
