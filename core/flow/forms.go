package flow

import (
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// recursive gives the variables of a letrec's body: functions in one environment, in
// which all of them are. What they hold is what is around all of them, the least that
// is the same with them in it.
func (r *run) recursive(n *term.LetRec, e *env, ctx *scope, around limits, w where) (*env, *fault.Fault) {
	s := r.function(w.here, e)
	made := make([]*value.Closure, len(n.Funcs))
	for i, f := range n.Funcs {
		made[i] = new(value.Closure)
		e = bind(f.Name, made[i], s, e)
	}
	for i, f := range n.Funcs {
		made[i].Impl = &closure{f.Lam, e, ctx, around}
	}
	// One step was taken; each function takes three, as in a let.
	if f := r.charge(uint64(2*len(n.Funcs)-1), n, ctx); f != nil {
		return nil, f
	}
	for _, f := range n.Funcs {
		if f := r.charge(1, f.Lam, ctx); f != nil {
			return nil, f
		}
		r.alloc(closureBytes + envBytes)
	}
	return e, nil
}

// list evaluates a list literal as the cells it means: a step for each cell
// before its item, one for the nil at the end.
func (r *run) list(n *term.List, e *env, ctx *scope, around limits, depth int, w where) (value.Value, *Shadow, *fault.Fault) {
	items := make([]value.Value, len(n.Items))
	shadows := make([]*Shadow, len(n.Items))
	for i, item := range n.Items {
		if f := r.charge(1, n, ctx); f != nil {
			return nil, nil, f
		}
		v, s, f := r.operand(item, e, ctx, around, depth, w)
		if f != nil {
			return nil, nil, f
		}
		items[i], shadows[i] = v, s
	}
	if f := r.charge(1, n, ctx); f != nil {
		return nil, nil, f
	}
	r.alloc(int64(len(items)) * cellBytes)
	return value.FromSlice(items), listOf(shadows, w.here), nil
}

// record evaluates the values in the order of the keys.
func (r *run) record(n *term.Record, e *env, ctx *scope, around limits, depth int, w where) (value.Value, *Shadow, *fault.Fault) {
	fields := make([]value.Field, len(n.Fields))
	shadows := make([]*Shadow, len(n.Fields))
	for i, field := range n.Fields {
		v, s, f := r.operand(field.Value, e, ctx, around, depth, w)
		if f != nil {
			return nil, nil, f
		}
		fields[i], shadows[i] = value.Field{Key: field.Key, Value: v}, s
	}
	r.alloc(int64(len(fields)+1) * fieldBytes)
	return &value.Record{Fields: fields}, node(w.here, shadows...), nil
}

// logic evaluates and or or; short is the operand that decides alone. The
// second operand must be a truth value too, so it is in no tail position.
func (r *run) logic(n *term.Prim, short value.Bool, e *env, ctx *scope, around limits, depth int, w where) (value.Value, *Shadow, *fault.Fault) {
	var all Label
	inside := w
	for i, a := range n.Args {
		v, s, f := r.operand(a, e, ctx, around, depth, inside)
		if f != nil {
			return nil, nil, f
		}
		r.touched |= s.own | inside.all
		all |= s.own | all.Control()
		inside = inside.under(s.own.Control())
		b, ok := r.force(v, n, ctx).(value.Bool)
		if !ok {
			return nil, nil, r.mismatch(ctx, n, n.ID, i, v, inside.all|all)
		}
		if b == short {
			return short, leaf(w.here | all), nil
		}
	}
	return !short, leaf(w.here | all), nil
}

// fold evaluates function, start and list, tests the list and then the
// function (even for an empty list), and applies the function for each item to
// the pair of what has accumulated and the item. Each cell decides that there is one
// more application.
func (r *run) fold(n *term.Prim, e *env, ctx *scope, around limits, depth int, w where) (value.Value, *Shadow, *fault.Fault) {
	var args [3]value.Value
	var shadows [3]*Shadow
	for i, a := range n.Args {
		v, s, f := r.operand(a, e, ctx, around, depth, w)
		if f != nil {
			return nil, nil, f
		}
		args[i], shadows[i] = v, s
	}
	fs, as, ls := shadows[0], shadows[1], shadows[2]
	acc, list := args[1], r.force(args[2], n, ctx)
	r.touched |= w.all | fs.own | ls.own
	if list.Type() != value.TypeList {
		return nil, nil, r.mismatch(ctx, n, prim.Fold, 2, list, w.all|ls.own)
	}
	fn, ok := r.force(args[0], n, ctx).(*value.Closure)
	if !ok {
		return nil, nil, r.mismatch(ctx, n, prim.Fold, 0, args[0], w.all|fs.own|ls.own)
	}
	c := fn.Impl.(*closure)
	w = w.under(fs.own)
	for cell, ok := list.(*value.Cons); ok; cell, ok = cell.Tail.(*value.Cons) {
		inside, f := r.enter(depth, n, ctx)
		if f != nil {
			return nil, nil, f
		}
		r.alloc(cellBytes + envBytes)
		w = w.under(ls.own.Control())
		r.touched |= w.all | ls.own
		pair, ps := &value.Pair{First: acc, Second: cell.Head}, two(0, as, ls.kid(0))
		// The body is a function's, so a call at its end is a tail call.
		if acc, as, f = r.nest(c.lam.Body, bind(c.lam.Param, pair, ps, c.env), c.ctx, value.Narrow(around, c.around), inside, true, w); f != nil {
			return nil, nil, f
		}
		ls = ls.kid(1)
	}
	r.touched |= ls.own
	return acc, as.Raise(w.here | ls.own.Control()), nil
}

// try evaluates its operand and gives a record of the value, or of the fault
// if a program may go on after one of its kind. Inside it nothing is in tail
// position; it is pending itself. Which of the two records it is was decided by all
// that was tested inside.
func (r *run) try(n *term.Prim, e *env, ctx *scope, around limits, depth int, w where) (value.Value, *Shadow, *fault.Fault) {
	inside, f := r.enter(depth, n, ctx)
	if f != nil {
		return nil, nil, f
	}
	before, guessed := r.watch, r.guessed
	if before.guarded {
		r.base |= before.touched
	} else {
		r.trusted = guessed
	}
	r.saved |= before.touched
	r.touched, r.guarded = w.all, true
	v, s, f := r.operand(n.Args[0], e, ctx, around, inside, w)
	decided := r.touched.Control()
	r.touched |= before.touched
	r.base, r.guarded, r.saved, r.trusted = before.base, before.guarded, before.saved, before.trusted
	r.alloc(4 * fieldBytes)
	switch {
	case f == nil && r.guessed > guessed: // whether it fails isn't known
		return hole(&Hole{Steps: r.guess.Steps, Made: true}), leaf(decided | s.deep | w.here), nil
	case f == nil:
		return &value.Record{Fields: []value.Field{{Key: "ok", Value: v}}}, node(decided, s).Raise(w.here), nil
	case f.Kind.Catchable():
		return value.Caught(f), node(decided|r.failed.Control(), leaf(decided|r.failed)).Raise(w.here), nil
	}
	return nil, nil, f
}

// quotedCode evaluates the operand of eval and tests that it can be evaluated.
func (r *run) quotedCode(n *term.Prim, e *env, ctx *scope, around limits, depth int, w where) (*value.Code, Label, *fault.Fault) {
	v, s, f := r.operand(n.Args[0], e, ctx, around, depth, w)
	if f != nil {
		return nil, 0, f
	}
	r.touched |= s.deep | w.all
	code, ok := r.force(v, n, ctx).(*value.Code)
	if !ok {
		return nil, 0, r.mismatch(ctx, n, prim.Eval, 0, v, w.all|s.own)
	}
	if ctx.evals >= prim.MaxEvals {
		return nil, 0, r.fail(ctx, n, prim.TooManyEvals(), w.all)
	}
	return code, s.deep, nil
}

// codeOf finds a tool's code. The name self means the tool that this code
// belongs to, unless a tool is called that.
func (r *run) codeOf(n term.Term, name string, literal bool, ctx *scope, w where) (value.Value, *Shadow, *fault.Fault) {
	unnamed := false
	if ctx.library != nil {
		t, ok := ctx.library.Tool(name, literal)
		if unnamed = t.Unnamed; ok {
			return &value.Code{Term: t.Term, Source: t.Source}, leaf(w.here | r.madeUnder(t)), nil
		}
	}
	if name != "self" {
		return nil, nil, r.fail(ctx, n, prim.UnknownTool(name, unnamed), w.all)
	}
	if ctx.tool == nil {
		return nil, nil, r.fail(ctx, n, prim.NoCodeOfSelf(), w.all)
	}
	return &value.Code{Term: ctx.tool.code, Source: ctx.tool.source}, leaf(w.here | ctx.tool.under), nil
}

func (r *run) madeUnder(t value.Tool) Label {
	if r.MadeUnder == nil {
		return 0
	}
	return r.MadeUnder(t)
}

// codeOfComputed evaluates code_of with a term that gives the name.
func (r *run) codeOfComputed(n *term.Prim, e *env, ctx *scope, around limits, depth int, w where) (value.Value, *Shadow, *fault.Fault) {
	v, s, f := r.operand(n.Args[0], e, ctx, around, depth, w)
	if f != nil {
		return nil, nil, f
	}
	r.touched |= s.own | w.all
	name, ok := r.force(v, n, ctx).(value.Str)
	if !ok {
		return nil, nil, r.mismatch(ctx, n, prim.CodeOf, 0, v, w.all|s.own)
	}
	return r.codeOf(n, string(name), false, ctx, w.under(s.own))
}

// continuation evaluates the next input, and only then needs a tool.
func (r *run) continuation(n *term.Continue, e *env, ctx *scope, around limits, depth int, w where) (value.Value, *Shadow, *fault.Fault) {
	in, s, f := r.operand(n.Input, e, ctx, around, depth, w)
	if f != nil {
		return nil, nil, f
	}
	if ctx.tool == nil {
		return nil, nil, r.fail(ctx, n, prim.NoContinue(), w.all)
	}
	return &value.Continuation{Tool: ctx.tool.name, Input: in}, node(w.here, s), nil
}
