package flow

import (
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
	"math"
)

// eval evaluates t with the variables of e. tail says that nothing is left to
// do afterwards but return; then an application doesn't count as pending. around is as
// in package naive.
func (r *run) eval(t term.Term, e *env, ctx *scope, around limits, depth int, tail bool, w where) (value.Value, *Shadow, *fault.Fault) {
	for {
		if l, ok := t.(*term.List); ok {
			return r.list(l, e, ctx, around, depth, w)
		}
		if p, ok := t.(*term.Prim); ok && prim.Get(p.ID).Body != "" {
			if t = r.expand(p); !counts[p.ID] {
				continue
			}
			v, s, f := r.nest(t, e, ctx, around, depth, tail, w.inside())
			if f != nil {
				return nil, nil, f
			}
			return v, leaf(s.deep.Counted() | w.here), nil
		}
		if f := r.charge(1, t, ctx); f != nil {
			return nil, nil, f
		}
		switch n := t.(type) {
		case *term.Int:
			return value.NewInt(n.Value), leaf(w.here), nil
		case *term.Big:
			return value.NewBig(n.Value), leaf(w.here), nil
		case *term.Dec:
			d, _ := value.NewDec(n.Unscaled, n.Scale)
			return d, leaf(w.here), nil
		case *term.Bool:
			return value.Bool(n.Value), leaf(w.here), nil
		case *term.Str:
			return value.Str(n.Value), leaf(w.here), nil
		case *term.Unit:
			return value.Unit{}, leaf(w.here), nil
		case *term.Var:
			if b := e.lookup(n.Name); b != nil {
				s := b.shadow.Raise(w.here)
				if s != b.shadow {
					r.allocated += shadowBytes
				}
				return b.value, s, nil
			}
			f := r.fail(ctx, n, prim.Unbound(n.Name, e.names()), w.all)
			if term.Applied(ctx.root)[n.Pos()] {
				prim.Applied(f, n.Name)
			}
			return nil, nil, f
		case *term.Lam:
			r.alloc(closureBytes)
			return &value.Closure{Impl: &closure{n, e, ctx, around}}, r.function(w.here, e), nil
		case *term.LetRec:
			var f *fault.Fault
			if e, f = r.recursive(n, e, ctx, around, w); f != nil {
				return nil, nil, f
			}
			t = n.Body
		case *term.App:
			fn, fs, arg, as, f := r.application(n, e, ctx, around, depth, w)
			if f != nil {
				return nil, nil, f
			}
			if !tail && !term.IsLet(n) && !makesClosure(fn) {
				if depth, f = r.enter(depth, n, ctx); f != nil {
					return nil, nil, f
				}
				tail = true
			}
			w = w.under(fs.own)
			t, e, ctx = fn.lam.Body, bind(fn.lam.Param, arg, as, fn.env), fn.ctx
			around = value.Narrow(around, fn.around)
		case *term.If:
			cond, cs, f := r.operand(n.Cond, e, ctx, around, depth, w)
			if f != nil {
				return nil, nil, f
			}
			r.touched |= cs.own | w.all
			w = w.under(cs.own.Control())
			yes, ok := r.force(cond, n, ctx).(value.Bool)
			if !ok {
				return nil, nil, r.mismatch(ctx, n, prim.If, 0, cond, w.all|cs.own)
			}
			t = n.Else
			if yes {
				t = n.Then
			}
		case *term.Record:
			return r.record(n, e, ctx, around, depth, w)
		case *term.Quote:
			return &value.Code{Term: n.Body, Source: ctx.source}, leaf(w.here), nil
		case *term.CodeOf:
			return r.codeOf(n, n.Name, true, ctx, w)
		case *term.Self:
			if ctx.tool == nil || ctx.tool.self == nil {
				return nil, nil, r.fail(ctx, n, prim.NoSelf(), w.all)
			}
			return ctx.tool.self, ctx.tool.shadow.Raise(w.here), nil
		case *term.Continue:
			return r.continuation(n, e, ctx, around, depth, w)
		case *term.Effect:
			return r.effect(n, e, ctx, around, depth, w)
		case *term.Prim:
			switch n.ID {
			case prim.Eval:
				code, l, f := r.quotedCode(n, e, ctx, around, depth, w)
				if f != nil {
					return nil, nil, f
				}
				w = w.under(l)
				if !tail {
					if depth, f = r.enter(depth, n, ctx); f != nil {
						return nil, nil, f
					}
					tail = true
				}
				with, _ := term.With(n.Args)
				around = value.Narrow(around, value.Within(with))
				t, ctx = code.Term, ctx.inEval(code)
			case prim.And:
				return r.logic(n, false, e, ctx, around, depth, w)
			case prim.Or:
				return r.logic(n, true, e, ctx, around, depth, w)
			case prim.Fold:
				return r.fold(n, e, ctx, around, depth, w)
			case prim.CodeOf:
				return r.codeOfComputed(n, e, ctx, around, depth, w)
			case prim.Try:
				return r.try(n, e, ctx, around, depth, w)
			case prim.Call:
				return r.call(n, e, ctx, around, depth, w)
			case prim.Par:
				return r.par(n, e, ctx, around, depth, w)
			default:
				return r.strict(n, e, ctx, around, depth, w)
			}
		default:
			panic("flow: a term of unknown type")
		}
	}
}

// function returns the shadow of a function made with variables: what it gives may
// tell of each of them.
func (r *run) function(own Label, e *env) *Shadow {
	deep := e.labels() | own
	if deep == own {
		return leaf(own)
	}
	if last := r.made; last == nil || last.own != own || last.deep != deep {
		r.made = &Shadow{own: own, deep: deep}
	}
	return r.made
}

// operand evaluates a term whose value something in the context w waits for.
func (r *run) operand(t term.Term, e *env, ctx *scope, around limits, depth int, w where) (value.Value, *Shadow, *fault.Fault) {
	return r.nest(t, e, ctx, around, depth, false, w.inside())
}

// nest evaluates a level further up on the stack.
func (r *run) nest(t term.Term, e *env, ctx *scope, around limits, depth int, tail bool, w where) (value.Value, *Shadow, *fault.Fault) {
	if r.nested++; r.nested&63 == 0 {
		r.alloc(0)
	}
	v, s, f := r.eval(t, e, ctx, around, depth, tail, w)
	r.nested--
	return v, s, f
}

// force returns a value of which t depends on what it is. The run ends if that is in
// a hole.
func (r *run) force(v value.Value, t term.Term, ctx *scope) value.Value {
	if l, ok := v.(value.Lazy); ok {
		r.term, r.at = t, ctx
		return l.In.Force(l.Word)
	}
	return v
}

// application evaluates function and argument, and tests the function then.
func (r *run) application(n *term.App, e *env, ctx *scope, around limits, depth int, w where) (*closure, *Shadow, value.Value, *Shadow, *fault.Fault) {
	fn, fs, f := r.operand(n.Func, e, ctx, around, depth, w)
	if f != nil {
		return nil, nil, nil, nil, f
	}
	arg, as, f := r.operand(n.Arg, e, ctx, around, depth, w)
	if f != nil {
		return nil, nil, nil, nil, f
	}
	r.touched |= fs.own | w.all
	c, ok := r.force(fn, n, ctx).(*value.Closure)
	if !ok {
		return nil, nil, nil, nil, r.mismatch(ctx, n, prim.App, 0, fn, w.all|fs.own)
	}
	r.alloc(envBytes)
	return c.Impl.(*closure), fs, arg, as, nil
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
func (r *run) strict(n *term.Prim, e *env, ctx *scope, around limits, depth int, w where) (value.Value, *Shadow, *fault.Fault) {
	o := r.operands()
	args, shadows := o.values[:len(n.Args)], o.shadows[:len(n.Args)]
	v, s, f := r.apply(n, args, shadows, e, ctx, around, depth, w)
	r.free = append(r.free, o)
	return v, s, f
}

// operands is room for those of a row. Rows don't keep it.
type operands struct {
	values  [maxOperands]value.Value
	shadows [maxOperands]*Shadow
}

// maxOperands is how many a strict row has at most.
const maxOperands = 4

func (r *run) operands() *operands {
	n := len(r.free)
	if n == 0 {
		return new(operands)
	}
	o := r.free[n-1]
	r.free = r.free[:n-1]
	return o
}

// apply evaluates a row's operands, and the row.
func (r *run) apply(n *term.Prim, args []value.Value, shadows []*Shadow, e *env, ctx *scope, around limits, depth int, w where) (value.Value, *Shadow, *fault.Fault) {
	var deep Label
	for i, a := range n.Args {
		v, s, f := r.operand(a, e, ctx, around, depth, w)
		if f != nil {
			return nil, nil, f
		}
		args[i], shadows[i] = v, s
		deep |= s.deep
	}
	rule := rules[n.ID]
	// What it is tested for, and so may fail because of.
	tested := deep
	if rule != nil && deep != 0 {
		if tested = owns(shadows); rule.tests != nil {
			tested |= rule.tests(args, shadows)
		}
	}
	r.touched |= tested | w.all
	r.parts = deep != 0
	if indexing[n.ID] {
		most := math.MaxInt64
		if i, ok := args[1].(value.Int); ok && n.ID == nthID && len(shadows[0].kids) == 0 { // no more of it is looked at
			if i, ok := i.Int64(); ok && i >= 0 {
				most = int(i) + 1
			}
		}
		r.walk(args[0], most)
	}
	v, f := r.compute(prim.Get(n.ID), args, n, ctx)
	switch {
	case f != nil:
		// Messages and raised values show what is inside.
		return nil, nil, r.fail(ctx, n, f, w.all|deep)
	case deep == 0:
		return v, leaf(w.here), nil
	case rule == nil, HoleOf(v) != nil:
		return v, leaf(w.here | deep), nil
	}
	return v, rule.of(args, shadows, v).Raise(w.here), nil
}

// compute charges and does what a row does with its operands.
func (r *run) compute(row *prim.Row, args []value.Value, n *term.Prim, ctx *scope) (v value.Value, f *fault.Fault) {
	if r.holes {
		return r.withHoles(row, args, n, ctx)
	}
	return r.row(row, args, n, ctx)
}

// withHoles does what a row does with operands that may have holes in them: what it
// makes of one is a hole, unless it is a part of it.
func (r *run) withHoles(row *prim.Row, args []value.Value, n *term.Prim, ctx *scope) (v value.Value, f *fault.Fault) {
	if len(args) == 2 && (row.Name == "get" || row.Name == "at") {
		if key, ok := args[1].(value.Str); ok && HoleOf(args[0]) != nil {
			r.guesses(HoleOf(args[0]))
			return HoleOf(args[0]).part(string(key)), nil
		}
	}
	if r.at, r.term = ctx, n; row.Group == "failure" {
		return r.row(row, args, n, ctx) // it always fails
	}
	steps := r.steps
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(needed); !ok {
				panic(p)
			}
			r.steps = steps
			v, f = madeOf(args), nil
			r.guesses(HoleOf(v))
		}
	}()
	return r.row(row, args, n, ctx)
}

func (r *run) row(row *prim.Row, args []value.Value, n *term.Prim, ctx *scope) (value.Value, *fault.Fault) {
	switch {
	case row.Analysis != nil:
		return r.analysis(row.Analysis, args, n, ctx)
	case row.Walk != nil && row.Cost == nil:
		v, f := r.analysis(row.Walk, args, n, ctx)
		if f == nil && row.Size != nil {
			r.alloc(r.size(row, args))
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
		if f := r.charge(row.Work(args, r.left()), n, ctx); f != nil {
			return nil, f
		}
	}
	if row.Size != nil {
		r.alloc(r.size(row, args))
	}
	return row.Eval(args)
}

// size returns what a row's value takes. The row's own size is that of words, of which
// a part takes two here, for what is in it as well, and the shadow of one four more.
func (r *run) size(row *prim.Row, args []value.Value) int64 {
	switch bytes := row.Size(args); {
	case row.Result&(prim.KindList|prim.KindRecord|prim.KindPair) == 0:
		return bytes
	case r.parts:
		return 7 * bytes
	default:
		return 3 * bytes
	}
}

// analysis does a row that reasons about code, or goes through values: its steps are
// charged before anything else comes of it, and its memory is given back.
func (r *run) analysis(do func([]value.Value, *prim.Meter) (value.Value, *fault.Fault), args []value.Value, n *term.Prim, ctx *scope) (value.Value, *fault.Fault) {
	before := r.allocated
	meter := &prim.Meter{
		Left: r.left(), Memory: r.Budgets.Memory,
		Hold: func(bytes int64) *fault.Fault {
			r.alloc(bytes)
			return nil
		},
	}
	v, f := do(args, meter)
	r.allocated = before
	if f := r.charge(meter.Used(), n, ctx); f != nil {
		return nil, f
	}
	return v, f
}
