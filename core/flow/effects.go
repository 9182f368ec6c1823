package flow

import (
	"cmp"
	"strconv"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// watch is what decided, so far, whether something fails: where that is caught further
// out, it has decided what is reached after it.
type watch struct {
	// touched is what decided whether the innermost try fails, saved what did before
	// the tries under way, since the branch began.
	touched, saved Label
	// guarded is set where a try is under way; base is what decided whether those
	// further out fail, lower what the branches of par before this one have touched.
	guarded     bool
	base, lower Label
	// trusted is how much was guessed before the outermost try under way.
	trusted int
}

// decided returns what decided that a request is made in the context w.
func (r *run) decided(w where) Label {
	l := w.all | r.base | r.lower
	if r.guarded {
		l |= r.touched
	}
	return l
}

// effect evaluates the argument and asks for the operation.
func (r *run) effect(n *term.Effect, e *env, ctx *scope, around limits, depth int, w where) (value.Value, *Shadow, *fault.Fault) {
	arg, s, f := r.operand(n.Arg, e, ctx, around, depth, w)
	if f != nil {
		return nil, nil, f
	}
	measured, isDeep := arg, false
	if r.holes {
		has := false
		depth := Holes(arg, func(*Hole) { has = true })
		if isDeep = has && depth > MaxNested; isDeep {
			measured = value.Unit{}
		} else if has {
			measured = Fill(arg, func(h *Hole) value.Value { return value.Str(h.String()) })
		}
	}
	size, steps := text.MeasureRecorded(measured, r.Budgets.Memory, r.left(), func() bool { return r.context.Err() != nil })
	if isDeep {
		size = r.Budgets.Memory + 1
	}
	r.look()
	if f := r.charge(steps, n, ctx); f != nil {
		return nil, nil, f
	}
	asked := w.all | s.deep
	if r.Handler == nil {
		return nil, nil, r.fail(ctx, n, prim.Denied(n.Op), asked)
	}
	r.at, r.term = ctx, n
	place := ctx.fail(n, &fault.Fault{})
	a := r.ask([]Request{{
		Request: value.Request{
			Op: n.Op, In: n.In, Arg: arg, Size: size, Most: r.Budgets.Memory, At: fault.Pointer(place.Place()), Where: place.In,
			Tool: ctx.holder, Tools: ctx.tools, With: around, Branch: r.branch.path(),
		},
		Made: r.decided(w), Shadow: s.Raise(w.all),
	}})[0]
	as := a.Shadow
	if as == nil {
		as = leaf(0)
	}
	r.entered |= as.deep.Atoms()
	if a.Fault != nil && a.Judged {
		r.touched |= w.all | as.deep
		mine := *a.Fault
		return nil, nil, r.fail(ctx, n, &mine, w.all|as.deep)
	}
	// Whether it was answered at all is decided by what was asked, whatever the answer is.
	r.touched |= asked | as.deep
	if a.Fault != nil {
		mine := *a.Fault // the handler's own fault isn't ours to change
		return nil, nil, r.fail(ctx, n, &mine, asked|as.deep)
	}
	if a.Value == nil {
		a.Value = value.Unit{}
	}
	if a.Alone {
		return a.Value, as.fit(a.Value).Raise(w.here), nil
	}
	return a.Value, as.fit(a.Value).Raise(asked), nil
}

// ask has requests answered: by the handler, or in a branch of par together
// with those of the other branches.
func (r *run) ask(requests []Request) []Answer {
	if r.guarded {
		r.needGuesses(r.trusted) // these are made only if what was guessed is so
	}
	if r.branch != nil {
		return r.branch.ask(requests)
	}
	answers, err := r.Handler(r.context, requests)
	if err != nil {
		panic(stop{err})
	}
	for _, a := range answers {
		r.alloc(a.Bytes)
		if h := HoleOf(a.Value); h != nil {
			r.holes = true
			r.guesses(h)
		}
	}
	return answers
}

// guesses notes that the run goes on as if what is in a hole made nothing fail.
func (r *run) guesses(h *Hole) { r.guessed, r.guess = r.guessed+1, h }

// needGuesses ends the run if anything was guessed since: what follows depends on it.
func (r *run) needGuesses(since int) {
	if r.guessed > since {
		panic(needed{r.guess})
	}
}

// call evaluates a tool's name and its input, and runs the tool's code on it
// as it is run by itself, but with what is left of this run's budgets.
func (r *run) call(n *term.Prim, e *env, ctx *scope, around limits, depth int, w where) (value.Value, *Shadow, *fault.Fault) {
	v, ns, f := r.operand(n.Args[0], e, ctx, around, depth, w)
	if f != nil {
		return nil, nil, f
	}
	in, several := n.Args[1], len(n.Args) > 2
	if several {
		in = &term.List{At: n.At, Items: n.Args[1:]}
	}
	input, is, f := r.operand(in, e, ctx, around, depth, w)
	if f != nil {
		return nil, nil, f
	}
	w = w.under(ns.own)
	asked := w.all | is.deep
	r.touched |= asked
	name, ok := r.force(v, n, ctx).(value.Str)
	if !ok {
		return nil, nil, r.mismatch(ctx, n, prim.Call, 0, v, asked)
	}
	if ctx.tools == nil {
		return nil, nil, r.fail(ctx, n, prim.NoCall(string(name)), asked)
	}
	place := ctx.fail(n, &fault.Fault{})
	t, f := ctx.tools.Callee(string(name), around, fault.Pointer(place.Place()))
	if f != nil {
		mine := *f
		return nil, nil, r.fail(ctx, n, &mine, asked)
	}
	r.at, r.term = ctx, n // data may have a hole in it
	found, nested, words := prim.NoData(input, r.left())
	if f := r.charge(words, n, ctx); f != nil {
		return nil, nil, f
	}
	if found != nil {
		return nil, nil, r.fail(ctx, n, prim.NotData(found, nested), asked)
	}
	t.Name = cmp.Or(t.Name, string(name))
	by, missing := prim.Place(t, input, several)
	if missing != nil && several {
		return nil, nil, r.fail(ctx, n, missing, asked)
	}
	inside, f := r.enter(depth, n, ctx)
	if f != nil {
		return nil, nil, f
	}
	inputs, shadows, placed := placeInputs(t, input, is, by)
	if several {
		placed = 0 // by how many were written
	}
	w = w.under(r.madeUnder(t)).under(placed.Control())
	v, s, f := r.program(t.Term, t.Source, t.Name, t.Tools, len(inputs), func(i int, _ where) (value.Value, *Shadow, *fault.Fault) {
		return inputs[i], shadows[i], nil
	}, inside, w)
	if f != nil {
		return nil, nil, f
	}
	r.touched |= s.deep
	r.at, r.term = ctx, n
	found, nested, words = prim.NoData(v, r.left())
	if f := r.charge(words, n, ctx); f != nil {
		return nil, nil, f
	}
	if found != nil {
		return nil, nil, r.fail(ctx, n, prim.GaveNoData(t.Name, found, nested, missing), w.all|s.deep|placed.Control())
	}
	return v, s, nil
}

// placeInputs returns the inputs in the order of the parameters, and what decided how
// they are placed where that isn't the code alone: the keys of a record, or the types of
// all in a list or a pair.
func placeInputs(t value.Tool, in value.Value, s *Shadow, by prim.Placing) (inputs []value.Value, shadows []*Shadow, placed Label) {
	inputs = prim.PlaceInputs(t, in, by)
	switch {
	case by == prim.Whole && len(t.Params) < 2:
	case value.Force(in).Type() == value.TypeRecord:
		placed = s.own
	default:
		placed = s.deep
	}
	if by == prim.Whole {
		return inputs, []*Shadow{s}, placed
	}
	switch v := value.Force(in).(type) {
	case *value.Record:
		for _, name := range t.Params {
			if i, ok := field(v, name); ok {
				shadows = append(shadows, s.kid(i))
			}
		}
	case *value.Pair:
		shadows = []*Shadow{s.kid(0), s.kid(1)}
	default:
		shadows, _ = spine(v, s, -1)
	}
	return inputs, shadows, placed
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
