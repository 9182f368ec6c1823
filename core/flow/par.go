package flow

import (
	"iter"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A branch is one branch of a par under way: a coroutine, which runs only
// while the par waits for it.
type branch struct {
	index  int
	parent *branch

	// next has it go on up to its next requests, false at its end; stop abandons it.
	next    func() ([]Request, bool)
	stop    func()
	yield   func([]Request) bool
	answers []Answer

	requests int // it waits for so many answers
	nested   int // evaluations on its stack
	done     bool
	watch    watch
	value    value.Value
	shadow   *Shadow
	fault    *fault.Fault
	failed   Label
}

// abandoned is the panic that unwinds a branch that is not needed any more.
type abandoned struct{}

func (b *branch) ask(requests []Request) []Answer {
	if !b.yield(requests) {
		panic(abandoned{})
	}
	return b.answers
}

// branchOf makes branch i of a par, which begins when it is resumed.
func (r *run) branchOf(i int, start func() (value.Value, *Shadow, *fault.Fault)) *branch {
	b := &branch{index: i, parent: r.branch, watch: r.watch}
	if b.watch.guarded {
		b.watch.base |= r.touched
	}
	b.watch.touched, b.watch.saved = 0, 0
	b.next, b.stop = iter.Pull(func(yield func([]Request) bool) {
		defer func() {
			if p := recover(); p != nil && p != any(abandoned{}) {
				panic(p)
			}
		}()
		b.yield = yield
		b.value, b.shadow, b.fault = start()
		b.failed = r.failed
	})
	return b
}

// par runs the branches in rounds: each up to the requests it makes next, its
// value or its fault. After a fault the branches behind it are abandoned, and
// those before it go on. The requests of a round are asked together.
func (r *run) par(n *term.Prim, e *env, ctx *scope, around limits, depth int, w where) (value.Value, *Shadow, *fault.Fault) {
	inside, f := r.enter(depth, n, ctx)
	if f != nil {
		return nil, nil, f
	}
	r.alloc(int64(len(n.Args)) * branchBytes)
	branches := make([]*branch, len(n.Args))
	for i := range branches {
		branches[i] = r.branchOf(i, func() (value.Value, *Shadow, *fault.Fault) {
			r.touched = w.all
			return r.nest(n.Args[i], e, ctx, around, inside, false, w.inside())
		})
	}
	left := branches // those that are still of interest
	abandon := func(from int) {
		for _, b := range left[from:] {
			nested := r.nested - b.nested
			b.stop()
			r.nested, b.nested = nested, 0
		}
		left = left[:from]
	}
	defer func() { abandon(0) }()
	var failed *branch
	var answers []Answer
	guessed := r.guessed
	for round := 0; ; round++ {
		var requests []Request
		for i := 0; i < len(left); i++ {
			b := left[i]
			if b.done {
				continue
			}
			// What those before it do decides, where a failure is caught, whether it goes on.
			var lower Label
			if r.guarded {
				for _, c := range branches[:i] {
					lower |= c.watch.touched | c.watch.saved
				}
			}
			b.answers = answers[:b.requests]
			answers = answers[b.requests:]
			asked := r.resume(b, lower)
			if b.fault != nil {
				failed = b
				if !b.fault.Kind.Catchable() {
					r.failed = b.failed
					return nil, nil, b.fault
				}
				abandon(i)
			}
			b.requests = len(asked)
			requests = append(requests, asked...)
		}
		if len(requests) == 0 {
			break
		}
		if round > 0 {
			r.at, r.term = ctx, n
			r.needGuesses(guessed) // a branch that fails ends those behind it
		}
		answers = r.ask(requests)
	}
	if failed != nil {
		r.failed = r.touched
		return nil, nil, failed.fault
	}
	items := make([]value.Value, len(branches))
	shadows := make([]*Shadow, len(branches))
	for i, b := range branches {
		items[i], shadows[i] = b.value, b.shadow
	}
	r.alloc(int64(len(items)) * cellBytes)
	return value.FromSlice(items), listOf(shadows, w.here), nil
}

// resume lets a branch go on, from its beginning or with answers, up to its
// next requests, or its end where it asks for nothing.
func (r *run) resume(b *branch, lower Label) []Request {
	outer, around, nested := r.branch, r.watch, r.nested
	r.branch, r.watch = b, b.watch
	r.lower = around.lower | lower
	requests, asks := b.next()
	b.done = !asks
	b.watch = r.watch
	b.nested += r.nested - nested
	r.branch, r.watch = outer, around
	r.touched |= b.watch.touched | b.watch.saved
	return requests
}
