package naive

import (
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// eval evaluates t with the variables of e. tail says that nothing is left to
// do afterwards but return; then an application doesn't count as pending.
//
// The loop is for terms whose value is that of another term: branches, bodies
// and evaluated code. Everything else returns.
//
// around is what the evals permit that are under way, and those that were when
// a function was made that has been applied and hasn't returned.
func (r *run) eval(t term.Term, e *env, ctx *context, around limits, depth int, tail bool) (value.Value, *fault.Fault) {
	for {
		if l, ok := t.(*term.List); ok {
			return r.list(l, e, ctx, around, depth)
		}
		if p, ok := t.(*term.Prim); ok {
			if prim.Get(p.ID).Body != "" {
				t = r.expand(p)
				continue
			}
		}
		f := r.step(t, e, ctx, depth)
		if f != nil {
			return nil, f
		}
		switch n := t.(type) {
		case *term.Int:
			return value.NewInt(n.Value), nil
		case *term.Big:
			return value.NewBig(n.Value), nil
		case *term.Dec:
			d, _ := value.NewDec(n.Unscaled, n.Scale)
			return d, nil
		case *term.Bool:
			return value.Bool(n.Value), nil
		case *term.Str:
			return value.Str(n.Value), nil
		case *term.Unit:
			return value.Unit{}, nil
		case *term.Var:
			if v, ok := e.lookup(n.Name); ok {
				return v, nil
			}
			f := ctx.fail(n, prim.Unbound(n.Name, e.names()))
			if term.Applied(ctx.root)[n.Pos()] {
				prim.Applied(f, n.Name)
			}
			return nil, f
		case *term.Lam:
			return &value.Closure{Impl: &closure{n, e, ctx, around}}, r.alloc(closureBytes, n, ctx)
		case *term.LetRec:
			if e, f = r.recursive(n, e, ctx, around, depth); f != nil {
				return nil, f
			}
			t = n.Body
		case *term.App:
			fn, arg, f := r.application(n, e, ctx, around, depth)
			if f != nil {
				return nil, f
			}
			if !tail && !term.IsLet(n) && !makesClosure(fn) {
				if depth, f = r.enter(depth, n, ctx); f != nil {
					return nil, f
				}
				tail = true
			}
			t, e, ctx = fn.lam.Body, &env{fn.lam.Param, arg, fn.env}, fn.ctx
			around = value.Narrow(around, fn.around)
		case *term.If:
			cond, f := r.operand(n.Cond, e, ctx, around, depth)
			if f != nil {
				return nil, f
			}
			yes, ok := cond.(value.Bool)
			if !ok {
				return nil, ctx.mismatch(n, prim.If, 0, cond)
			}
			t = n.Else
			if yes {
				t = n.Then
			}
		case *term.Record:
			return r.record(n, e, ctx, around, depth)
		case *term.Quote:
			return &value.Code{Term: n.Body, Source: ctx.source}, nil
		case *term.CodeOf:
			return r.codeOf(n, n.Name, true, ctx)
		case *term.Self:
			if ctx.tool == nil || ctx.tool.self == nil {
				return nil, ctx.fail(n, prim.NoSelf())
			}
			return ctx.tool.self, nil
		case *term.Continue:
			return r.continuation(n, e, ctx, around, depth)
		case *term.Effect:
			return r.effect(n, e, ctx, around, depth)
		case *term.Prim:
			switch n.ID {
			case prim.Eval:
				code, f := r.quotedCode(n, e, ctx, around, depth)
				if f != nil {
					return nil, f
				}
				if !tail {
					if depth, f = r.enter(depth, n, ctx); f != nil {
						return nil, f
					}
					tail = true
				}
				with, _ := term.With(n.Args)
				around = value.Narrow(around, value.Within(with))
				t, ctx = code.Term, ctx.inEval(code)
			case prim.And:
				return r.logic(n, false, e, ctx, around, depth)
			case prim.Or:
				return r.logic(n, true, e, ctx, around, depth)
			case prim.Fold:
				return r.fold(n, e, ctx, around, depth)
			case prim.CodeOf:
				return r.codeOfComputed(n, e, ctx, around, depth)
			case prim.Try:
				return r.try(n, e, ctx, around, depth)
			case prim.Call:
				return r.call(n, e, ctx, around, depth)
			case prim.Par:
				return r.par(n, e, ctx, around, depth)
			default:
				return r.strict(n, e, ctx, around, depth)
			}
		default:
			panic("naive: a term of unknown type")
		}
	}
}

// stackEvals is how many evaluations may be nested on one goroutine's stack.
// A stack is limited to a gigabyte and exceeding that ends the process, so
// deeper ones go on on another goroutine's.
const stackEvals = 100_000

// frameBytes is about what a nested evaluation takes of a stack.
const frameBytes = 1000

// operand evaluates a term whose value something waits for.
func (r *run) operand(t term.Term, e *env, ctx *context, around limits, depth int) (value.Value, *fault.Fault) {
	return r.nest(t, e, ctx, around, depth, false)
}

// nest evaluates a level further up on the stack.
func (r *run) nest(t term.Term, e *env, ctx *context, around limits, depth int, tail bool) (value.Value, *fault.Fault) {
	var v value.Value
	var f *fault.Fault
	r.nested++
	if r.nested%stackEvals != 0 {
		v, f = r.eval(t, e, ctx, around, depth, tail)
	} else if int64(r.nested)*frameBytes > slack*r.Budgets.Memory {
		f = ctx.fail(t, prim.OutOfMemory(r.Budgets.Memory))
	} else {
		v, f = r.elsewhere(t, e, ctx, around, depth, tail)
	}
	r.ended(v, f)
	r.nested--
	return v, f
}

// elsewhere evaluates on another goroutine's stack.
func (r *run) elsewhere(t term.Term, e *env, ctx *context, around limits, depth int, tail bool) (v value.Value, f *fault.Fault) {
	done := make(chan any)
	go func() {
		defer func() { done <- recover() }()
		v, f = r.eval(t, e, ctx, around, depth, tail)
	}()
	if p := <-done; p != nil {
		panic(p)
	}
	return v, f
}

// application evaluates function and argument, and tests the function then.
func (r *run) application(n *term.App, e *env, ctx *context, around limits, depth int) (*closure, value.Value, *fault.Fault) {
	fn, f := r.operand(n.Func, e, ctx, around, depth)
	if f != nil {
		return nil, nil, f
	}
	arg, f := r.operand(n.Arg, e, ctx, around, depth)
	if f != nil {
		return nil, nil, f
	}
	c, ok := fn.(*value.Closure)
	if !ok {
		return nil, nil, ctx.mismatch(n, prim.App, 0, fn)
	}
	return c.Impl.(*closure), arg, nil
}

// makesClosure reports whether applying fn does nothing but make the closure
// of its body: it is a function of several parameters that isn't full yet.
func makesClosure(fn *closure) bool {
	_, ok := fn.lam.Body.(*term.Lam)
	return ok
}

// expand returns what a use of a row of the prelude means, and takes no step for.
func (r *run) expand(p *term.Prim) term.Term {
	t, ok := r.expanded[p]
	if !ok {
		t = r.uses.Expand(p)
		if r.expanded == nil {
			r.expanded = map[*term.Prim]term.Term{}
		}
		r.expanded[p] = t
	}
	return t
}

// strict evaluates a row whose operands are evaluated first, in order.
func (r *run) strict(n *term.Prim, e *env, ctx *context, around limits, depth int) (value.Value, *fault.Fault) {
	row := prim.Get(n.ID)
	args := make([]value.Value, len(n.Args))
	for i, a := range n.Args {
		v, f := r.operand(a, e, ctx, around, depth)
		if f != nil {
			return nil, f
		}
		args[i] = v
	}
	switch {
	case row.Analysis != nil:
		return r.analysis(row.Analysis, args, n, ctx)
	case row.Walk != nil && row.Cost == nil:
		v, f := r.analysis(row.Walk, args, n, ctx)
		if f == nil && row.Size != nil {
			if f := r.alloc(row.Size(args), n, ctx); f != nil {
				return nil, f
			}
		}
		return v, f
	}
	// Cost and size are 0 where the operands are of wrong kinds, so that the
	// type error comes before a budget's.
	if row.Cost != nil {
		if f := r.charge(row.Cost(args), n, ctx); f != nil {
			return nil, f
		}
	}
	if row.Work != nil {
		if f := r.charge(row.Work(args, r.Budgets.Steps-r.steps), n, ctx); f != nil {
			return nil, f
		}
	}
	if row.Size != nil {
		if f := r.alloc(row.Size(args), n, ctx); f != nil {
			return nil, f
		}
	}
	v, f := row.Eval(args)
	if f != nil {
		return nil, ctx.fail(n, f)
	}
	return v, nil
}
