package normal

import (
	"slices"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// eval evaluates t as far as it is known, in the order of the language, and
// leaves what isn't in block b. It is false where no value comes of it.
func (n *normaliser) eval(t term.Term, e *env, b *block) (v val, ok bool) {
	if !n.spend(1) {
		return nil, false
	}
	if n.depth++; n.depth > maxNesting {
		n.left = -1
		return nil, false
	}
	defer func() { n.depth-- }()
	switch t := t.(type) {
	case *term.Int:
		return lit{value.NewInt(t.Value)}, true
	case *term.Big:
		return lit{value.NewBig(t.Value)}, true
	case *term.Dec:
		d, _ := value.NewDec(t.Unscaled, t.Scale)
		return lit{d}, true
	case *term.Bool:
		return lit{value.Bool(t.Value)}, true
	case *term.Str:
		return lit{value.Str(t.Value)}, true
	case *term.Unit:
		return lit{value.Unit{}}, true
	case *term.Var:
		if v, ok := n.lookup(e, t.Name); ok {
			return b.resolve(v), true
		}
		return n.once(b, &comp{what: aVar, name: t.Name}, "var "+t.Name)
	case *term.Lam:
		return &closure{t, e}, true
	case *term.LetRec:
		n.opaque = "functions that see one another are left as they are"
		return nil, false
	case *term.App:
		f, ok := n.eval(t.Func, e, b)
		if !ok {
			return nil, false
		}
		a, ok := n.eval(t.Arg, e, b)
		if !ok {
			return nil, false
		}
		return n.apply(f, a, b)
	case *term.If:
		c, ok := n.eval(t.Cond, e, b)
		if !ok {
			return nil, false
		}
		return n.branch(c, b,
			func(b *block) (val, bool) { return n.eval(t.Then, e, b) },
			func(b *block) (val, bool) { return n.eval(t.Else, e, b) })
	case *term.List:
		items := make([]val, len(t.Items))
		for i, item := range t.Items {
			if items[i], ok = n.eval(item, e, b); !ok {
				return nil, false
			}
		}
		var l val = empty{}
		for i := len(items) - 1; i >= 0; i-- {
			l = &cons{items[i], l}
		}
		return l, true
	case *term.Record:
		r := &record{keys: make([]string, len(t.Fields)), vals: make([]val, len(t.Fields))}
		for i, f := range t.Fields {
			r.keys[i] = f.Key
			if r.vals[i], ok = n.eval(f.Value, e, b); !ok {
				return nil, false
			}
		}
		return r, true
	case *term.Quote:
		return quoted{t.Body}, true
	case *term.CodeOf:
		return n.once(b, &comp{what: aCodeOf, name: t.Name, result: &atom{kinds: prim.KindQuoted}}, "code_of "+t.Name)
	case *term.Self:
		switch {
		case n.evals > 0 || !n.tool:
			return n.fail(b, &comp{what: aSelf})
		case n.self != nil:
			return n.self, true
		}
		return n.leave(b, &comp{what: aSelf, result: &atom{kinds: prim.KindFunction}})
	case *term.Continue:
		in, ok := n.eval(t.Input, e, b)
		if !ok {
			return nil, false
		}
		c := &comp{what: aContinue, args: []val{in}, result: &atom{kinds: prim.KindContinuation}}
		if n.evals > 0 || !n.tool {
			return n.fail(b, c)
		}
		return n.leave(b, c)
	case *term.Effect:
		arg, ok := n.eval(t.Arg, e, b)
		if !ok {
			return nil, false
		}
		if arg, ok = n.argument(t, arg, b); !ok {
			return nil, false
		}
		return n.leave(b, &comp{what: anEffect, name: t.Op, in: t.In, args: []val{arg}})
	case *term.Prim:
		return n.prim(t, e, b)
	}
	panic("normal: a term of unknown type")
}

// argument returns an effect's argument. A record with a field "in" that wasn't
// written out must not be, or the field would name a capability.
func (n *normaliser) argument(t *term.Effect, arg val, b *block) (val, bool) {
	r, ok := arg.(*record)
	if !ok || t.In != "" {
		return arg, true
	}
	for i, key := range r.keys {
		if key == "in" {
			rest := &record{keys: without(r.keys, i), vals: without(r.vals, i)}
			return n.leave(b, &comp{what: aPrim, id: idPut, args: []val{rest, lit{value.Str("in")}, r.vals[i]}, result: &atom{kinds: prim.KindRecord}, total: true})
		}
	}
	return arg, true
}

func without[T any](all []T, i int) []T {
	return append(append([]T{}, all[:i]...), all[i+1:]...)
}

// operands evaluates operands from left to right.
func (n *normaliser) operands(ts []term.Term, e *env, b *block) ([]val, bool) {
	args := make([]val, len(ts))
	for i, t := range ts {
		v, ok := n.eval(t, e, b)
		if !ok {
			return nil, false
		}
		args[i] = v
	}
	for i := range args {
		args[i] = b.resolve(args[i])
	}
	return args, true
}

func (n *normaliser) prim(t *term.Prim, e *env, b *block) (val, bool) {
	if row := prim.Get(t.ID); row.Body != "" {
		if row.Rounds != "" {
			return n.recursive(t, row, e, b)
		}
		body, ok := n.expanded[t]
		if !ok {
			body = prim.Expand(t)
			n.expanded[t] = body
		}
		return n.eval(body, e, b)
	}
	switch t.ID {
	case prim.And, prim.Or:
		return n.logic(t, e, b)
	case prim.Eval:
		return n.evalCode(t, e, b)
	case prim.Try:
		return n.try(t, e, b)
	case prim.Par:
		return n.par(t, e, b)
	}
	args, ok := n.operands(t.Args, e, b)
	if !ok {
		return nil, false
	}
	switch t.ID {
	case prim.Fold:
		return n.fold(args, b)
	case prim.Call:
		if b.kinds(args[0])&prim.KindString == 0 {
			return n.fail(b, &comp{what: aPrim, id: t.ID, args: args})
		}
		v, ok := n.leave(b, &comp{what: aPrim, id: t.ID, args: args, result: &atom{kinds: prim.KindData}})
		b.learn(args[0], fact{kinds: prim.KindString})
		return v, ok
	}
	return n.strict(t.ID, args, b)
}

// recursive normalises a row of the library that calls itself: it is computed where
// the operand is known that says how often, and stays what it is otherwise.
func (n *normaliser) recursive(t *term.Prim, row *prim.Row, e *env, b *block) (val, bool) {
	args, ok := n.operands(t.Args, e, b)
	if !ok {
		return nil, false
	}
	of := slices.IndexFunc(row.Params, func(p prim.Param) bool { return p.Name == row.Rounds })
	left := 1000
	if _, known := ground(args[of], &left); known {
		// It comes to an end, so it may be unfolded inside itself.
		spec := n.spec
		n.spec = 0
		f, ok := n.eval(prim.Body(t.ID, len(args)), nil, b)
		for i := 0; ok && i < len(args); i++ {
			f, ok = n.apply(f, args[i], b)
		}
		n.spec = spec
		return f, ok
	}
	return n.leave(b, &comp{what: aPrim, id: t.ID, args: args, result: &atom{kinds: row.Result & prim.KindAny}})
}

// logic normalises and and or: conditionals of which the second operand is a truth
// value, too.
func (n *normaliser) logic(t *term.Prim, e *env, b *block) (val, bool) {
	c, ok := n.eval(t.Args[0], e, b)
	if !ok {
		return nil, false
	}
	second := func(b *block) (val, bool) {
		v, ok := n.eval(t.Args[1], e, b)
		if !ok {
			return nil, false
		}
		return n.truth(v, b)
	}
	short := func(*block) (val, bool) { return lit{value.Bool(t.ID == prim.Or)}, true }
	if t.ID == prim.And {
		return n.branch(c, b, second, short)
	}
	return n.branch(c, b, short, second)
}

// truth returns v, which has to be a truth value.
func (n *normaliser) truth(v val, b *block) (val, bool) {
	return n.branch(v, b,
		func(*block) (val, bool) { return lit{value.Bool(true)}, true },
		func(*block) (val, bool) { return lit{value.Bool(false)}, true })
}

// evalCode normalises eval: of code that is there and does nothing that its
// authority, its context or its being evaluated could matter to.
func (n *normaliser) evalCode(t *term.Prim, e *env, b *block) (val, bool) {
	v, ok := n.eval(t.Args[0], e, b)
	if !ok {
		return nil, false
	}
	v = b.resolve(v)
	q, ok := v.(quoted)
	if !ok && b.kinds(v)&prim.KindQuoted == 0 {
		return n.fail(b, &comp{what: aPrim, id: t.ID, args: []val{v}})
	}
	if !ok || !simple(q.t) || n.evals >= prim.MaxEvals {
		n.opaque = "an eval sees the variables around it by their names, and what it makes keeps its limits"
		return nil, false
	}
	n.evals++
	r, ok := n.eval(q.t, e, b)
	n.evals--
	return r, ok
}

// simple reports whether evaluating code is the same inside an eval and
// outside: it makes, applies and asks for nothing. A let is only a name.
func simple(t term.Term) bool {
	switch t := t.(type) {
	case *term.Lam, *term.LetRec, *term.Effect, *term.Self, *term.Continue, *term.CodeOf:
		return false
	case *term.Quote:
		return true
	case *term.App:
		l, ok := t.Func.(*term.Lam)
		return ok && simple(l.Body) && simple(t.Arg)
	case *term.Prim:
		switch t.ID {
		case prim.Fold, prim.Call, prim.Par, prim.Try, prim.CodeOf:
			return false
		case prim.Eval:
			q, ok := t.Args[0].(*term.Quote)
			return ok && simple(q.Body)
		}
		if prim.Get(t.ID).Body != "" {
			return false
		}
	}
	return term.Children(t, simple)
}
