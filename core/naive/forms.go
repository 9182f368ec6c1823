package naive

import (
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// recursive gives the variables of a letrec's body: functions in one environment, in
// which all of them are.
func (r *run) recursive(n *term.LetRec, e *env, ctx *context, around limits, depth int) (*env, *fault.Fault) {
	made := make([]*value.Closure, len(n.Funcs))
	for i, f := range n.Funcs {
		made[i] = new(value.Closure)
		e = &env{f.Name, made[i], e}
	}
	for i, f := range n.Funcs {
		made[i].Impl = &closure{f.Lam, e, ctx, around}
	}
	// One step was taken; each function takes three, as in a let.
	if f := r.charge(uint64(2*len(n.Funcs)-1), n, ctx); f != nil {
		return nil, f
	}
	for _, f := range n.Funcs {
		if f := r.step(f.Lam, e, ctx, depth); f != nil {
			return nil, f
		}
		if f := r.alloc(closureBytes, f.Lam, ctx); f != nil {
			return nil, f
		}
	}
	return e, nil
}

// list evaluates a list literal as the cells it means: a step for each cell
// before its item, one for the nil at the end.
func (r *run) list(n *term.List, e *env, ctx *context, around limits, depth int) (value.Value, *fault.Fault) {
	items := make([]value.Value, len(n.Items))
	for i, item := range n.Items {
		if f := r.step(n, e, ctx, depth); f != nil {
			return nil, f
		}
		v, f := r.operand(item, e, ctx, around, depth)
		if f != nil {
			return nil, f
		}
		items[i] = v
	}
	if f := r.step(n, e, ctx, depth); f != nil {
		return nil, f
	}
	if f := r.alloc(int64(len(items))*cellBytes, n, ctx); f != nil {
		return nil, f
	}
	return value.FromSlice(items), nil
}

// record evaluates the values in the order of the keys.
func (r *run) record(n *term.Record, e *env, ctx *context, around limits, depth int) (value.Value, *fault.Fault) {
	fields := make([]value.Field, len(n.Fields))
	for i, field := range n.Fields {
		v, f := r.operand(field.Value, e, ctx, around, depth)
		if f != nil {
			return nil, f
		}
		fields[i] = value.Field{Key: field.Key, Value: v}
	}
	if f := r.alloc(int64(len(fields)+1)*fieldBytes, n, ctx); f != nil {
		return nil, f
	}
	return &value.Record{Fields: fields}, nil
}

// logic evaluates and or or; short is the operand that decides alone. The
// second operand must be a truth value too, so it is in no tail position.
func (r *run) logic(n *term.Prim, short value.Bool, e *env, ctx *context, around limits, depth int) (value.Value, *fault.Fault) {
	for i, a := range n.Args {
		v, f := r.operand(a, e, ctx, around, depth)
		if f != nil {
			return nil, f
		}
		b, ok := v.(value.Bool)
		if !ok {
			return nil, ctx.mismatch(n, n.ID, i, v)
		}
		if b == short {
			return short, nil
		}
	}
	return !short, nil
}

// fold evaluates function, start and list, tests the list and then the
// function (even for an empty list), and applies the function for each item to
// the pair of what has accumulated and the item.
func (r *run) fold(n *term.Prim, e *env, ctx *context, around limits, depth int) (value.Value, *fault.Fault) {
	var args [3]value.Value
	for i, a := range n.Args {
		v, f := r.operand(a, e, ctx, around, depth)
		if f != nil {
			return nil, f
		}
		args[i] = v
	}
	acc, list := args[1], args[2]
	if list.Type() != value.TypeList {
		return nil, ctx.mismatch(n, prim.Fold, 2, list)
	}
	fn, ok := args[0].(*value.Closure)
	if !ok {
		return nil, ctx.mismatch(n, prim.Fold, 0, args[0])
	}
	c := fn.Impl.(*closure)
	for cell, ok := list.(*value.Cons); ok; cell, ok = cell.Tail.(*value.Cons) {
		inside, f := r.enter(depth, n, ctx)
		if f != nil {
			return nil, f
		}
		if f := r.alloc(cellBytes, n, ctx); f != nil {
			return nil, f
		}
		pair := &value.Pair{First: acc, Second: cell.Head}
		// The body is a function's, so a call at its end is a tail call.
		if acc, f = r.nest(c.lam.Body, &env{c.lam.Param, pair, c.env}, c.ctx, value.Narrow(around, c.around), inside, true); f != nil {
			return nil, f
		}
	}
	return acc, nil
}

// try evaluates its operand and gives a record of the value, or of the fault
// if a program may go on after one of its kind. Inside it nothing is in tail
// position; it is pending itself.
func (r *run) try(n *term.Prim, e *env, ctx *context, around limits, depth int) (value.Value, *fault.Fault) {
	inside, f := r.enter(depth, n, ctx)
	if f != nil {
		return nil, f
	}
	v, f := r.operand(n.Args[0], e, ctx, around, inside)
	switch {
	case f == nil:
		v = &value.Record{Fields: []value.Field{{Key: "ok", Value: v}}}
	case f.Kind.Catchable():
		v = value.Caught(f)
	default:
		return nil, f
	}
	if f := r.alloc(4*fieldBytes, n, ctx); f != nil {
		return nil, f
	}
	return v, nil
}

// quotedCode evaluates the operand of eval and tests that it can be evaluated.
func (r *run) quotedCode(n *term.Prim, e *env, ctx *context, around limits, depth int) (*value.Code, *fault.Fault) {
	v, f := r.operand(n.Args[0], e, ctx, around, depth)
	if f != nil {
		return nil, f
	}
	code, ok := v.(*value.Code)
	if !ok {
		return nil, ctx.mismatch(n, prim.Eval, 0, v)
	}
	if ctx.evals >= prim.MaxEvals {
		return nil, ctx.fail(n, prim.TooManyEvals())
	}
	return code, nil
}

// codeOf finds a tool's code. The name self means the tool that this code
// belongs to, unless a tool is called that.
func (r *run) codeOf(n term.Term, name string, literal bool, ctx *context) (value.Value, *fault.Fault) {
	unnamed := false
	if ctx.library != nil {
		t, ok := ctx.library.Tool(name, literal)
		if unnamed = t.Unnamed; ok {
			return &value.Code{Term: t.Term, Source: t.Source}, nil
		}
	}
	if name != "self" {
		return nil, ctx.fail(n, prim.UnknownTool(name, unnamed))
	}
	if ctx.tool == nil {
		return nil, ctx.fail(n, prim.NoCodeOfSelf())
	}
	return &value.Code{Term: ctx.tool.code, Source: ctx.tool.source}, nil
}

// codeOfComputed evaluates code_of with a term that gives the name.
func (r *run) codeOfComputed(n *term.Prim, e *env, ctx *context, around limits, depth int) (value.Value, *fault.Fault) {
	v, f := r.operand(n.Args[0], e, ctx, around, depth)
	if f != nil {
		return nil, f
	}
	name, ok := v.(value.Str)
	if !ok {
		return nil, ctx.mismatch(n, prim.CodeOf, 0, v)
	}
	return r.codeOf(n, string(name), false, ctx)
}

// continuation evaluates the next input, and only then needs a tool.
func (r *run) continuation(n *term.Continue, e *env, ctx *context, around limits, depth int) (value.Value, *fault.Fault) {
	in, f := r.operand(n.Input, e, ctx, around, depth)
	if f != nil {
		return nil, f
	}
	if ctx.tool == nil {
		return nil, ctx.fail(n, prim.NoContinue())
	}
	return &value.Continuation{Tool: ctx.tool.name, Input: in}, nil
}

// analysis does a row that reasons about code, or goes through values: its steps are
// charged before anything else comes of it, and its memory is given back.
func (r *run) analysis(do func([]value.Value, *prim.Meter) (value.Value, *fault.Fault), args []value.Value, n *term.Prim, ctx *context) (value.Value, *fault.Fault) {
	before := r.allocated
	meter := &prim.Meter{
		Left: r.Budgets.Steps - r.steps, Memory: r.Budgets.Memory,
		Hold: func(bytes int64) *fault.Fault { return r.alloc(bytes, n, ctx) },
	}
	v, f := do(args, meter)
	r.allocated = before
	if f := r.charge(meter.Used(), n, ctx); f != nil {
		return nil, f
	}
	if f != nil {
		return nil, ctx.fail(n, f)
	}
	return v, nil
}
