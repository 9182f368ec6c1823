package text

import (
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// index reads what stands in brackets after t: an index, a key, or from:to.
func (r *reader) index(t term.Term) (term.Term, bool) {
	open := r.tok()
	r.i++
	at := term.At(open.off)
	args := []term.Term{t}
	out := r.inside()
	r.noChoice = true
	end := func(closer tokKind) bool {
		if r.tok().kind == closer {
			args = append(args, &term.Unit{At: at})
			return true
		}
		a, ok := r.expr()
		args = append(args, a)
		return ok
	}
	ok := end(tokColon)
	if ok && r.take(tokColon) {
		ok = end(tokCloseList)
	}
	out()
	if !r.close(open, tokCloseList, ok) {
		return nil, false
	}
	if key, literal := args[1].(*term.Str); literal && len(args) == 2 {
		return operationOf(at, "get", t, key), true
	}
	return &term.Prim{At: at, ID: prim.At, Args: args}, true
}

// spread reads the items of a list from the first ...xs on; before are those that
// stand before it.
func (r *reader) spread(at term.At, before []term.Term, rest []item) term.Term {
	list := rest[0].value
	if len(before)+len(rest) == 1 {
		list = operationOf(at, "append", list, &term.List{At: at}) // which tests that it is one
	}
	for _, x := range rest[1:] {
		if x.spread {
			list = operationOf(at, "append", list, x.value)
		} else {
			list = operationOf(at, "push", list, x.value)
		}
	}
	for i := len(before) - 1; i >= 0; i-- {
		list = operationOf(at, "cons", before[i], list)
	}
	return list
}

// operationOf returns an operation that the text form has a spelling of its own for.
func operationOf(at term.At, name string, args ...term.Term) term.Term {
	id, _, ok := prim.Lookup(name)
	if !ok {
		panic("text: there is no " + name)
	}
	return &term.Prim{At: at, ID: id, Args: args}
}

// An item is one of a list, or ...xs.
type item struct {
	value  term.Term
	spread bool
}

// items reads a list.
func (r *reader) items() (term.Term, bool) {
	open := r.tok()
	r.i++
	if at := r.comprehends(); at > 0 {
		out := r.inside()
		t, ok := r.comprehension(at, r.expr)
		out()
		return t, r.close(open, tokCloseList, ok)
	}
	l := &term.List{At: term.At(open.off)}
	var rest []item
	ok := r.list(open, tokCloseList, func() bool {
		spread := r.take(tokRest) || !r.older && r.take(tokTimes)
		x, ok := r.expr()
		if spread || rest != nil {
			rest = append(rest, item{x, spread})
		} else {
			l.Items = append(l.Items, x)
		}
		return ok
	})
	if !ok || rest == nil {
		return l, ok
	}
	return r.spread(l.At, l.Items, rest), true
}

// fallback reads the right side of ??: it counts where the left one is null, or, of a chain of
// .k and [i], where there is no such key or item, or null stands in it.
func (r *reader) fallback(left term.Term, op token) (term.Term, bool) {
	// The names on the right are looked at once for each ?? around it.
	if r.matches++; !r.costs(op, r.matches) || !r.deeper() {
		return nil, false
	}
	right, ok := r.binary(levelDefault)
	r.depth--
	if r.matches--; !ok {
		return nil, false
	}
	at := term.At(op.off)
	if p, ok := left.(*term.Prim); ok && prim.Get(p.ID).Name == "try" {
		r.note(int(op.off), "try gives {ok: v} or {error: e}, never null; write match %s { {ok: v} => v; _ => %s }", r.own(left, "try(x)"), r.own(right, "d"))
	}
	return bound(at, prim.Fresh("value", right), orNull(at, left), func(v term.Term) term.Term {
		return unlessNull(at, v, right, v)
	}), true
}

// orNull returns a term that gives null where the chain that t is ends early, and what t
// gives otherwise.
func orNull(at term.At, t term.Term) term.Term {
	if x, ok := lengthIn(t); ok {
		return bound(at, "whole", orNull(at, x), func(whole term.Term) term.Term {
			field := operationOf(at, "get", whole, &term.Str{At: at, Value: "length"}, &term.Unit{At: at})
			return unlessNull(at, whole, &term.Unit{At: at}, lengthOf(at, whole, field))
		})
	}
	p, ok := t.(*term.Prim)
	if !ok || len(p.Args) != 2 || p.ID != prim.At && prim.Get(p.ID).Name != "get" {
		return t
	}
	null, key := term.Term(&term.Unit{At: at}), p.Args[1]
	found := func(whole term.Term) term.Term {
		if p.ID != prim.At {
			return operationOf(p.At, "get", whole, key, null)
		}
		return bound(at, prim.Fresh("index", whole), key, func(i term.Term) term.Term {
			item := &term.Prim{At: p.At, ID: p.ID, Args: []term.Term{whole, i}}
			str := func(s string) term.Term { return &term.Str{At: at, Value: s} }
			return bound(at, prim.Fresh("found", whole, i), operationOf(at, "try", item), func(f term.Term) term.Term {
				kind := operationOf(at, "get", operationOf(at, "get", f, str("error")), str("kind"))
				missing := operationOf(at, "contains", &term.List{At: at, Items: []term.Term{str("out_of_range"), str("missing_key")}}, kind)
				// What else fails does so outside of try.
				otherwise := &term.If{At: at, Cond: missing, Then: null, Else: item}
				return &term.If{At: at, Cond: operationOf(at, "has", f, str("ok")), Then: operationOf(at, "get", f, str("ok")), Else: otherwise}
			})
		})
	}
	return bound(at, prim.Fresh("whole", key), orNull(at, p.Args[0]), func(whole term.Term) term.Term {
		return unlessNull(at, whole, null, found(whole))
	})
}

// unlessNull returns null where v is null, and otherwise what else gives.
func unlessNull(at term.At, v, null, otherwise term.Term) term.Term {
	return &term.If{At: at, Cond: operationOf(at, "equal", v, &term.Unit{At: at}), Then: null, Else: otherwise}
}

// bound returns a term in which value is evaluated once: a variable stands for itself,
// and so does a literal.
func bound(at term.At, name string, value term.Term, in func(term.Term) term.Term) term.Term {
	switch value.(type) {
	case *term.Var, *term.Int, *term.Str, *term.Unit:
		return in(value)
	}
	return &term.App{At: at, Func: &term.Lam{At: at, Param: name, Body: in(&term.Var{At: at, Name: name})}, Arg: value}
}
