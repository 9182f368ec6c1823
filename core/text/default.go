package text

import (
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

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
	return bound(at, prim.Fresh("value", right), orNull(at, left), func(v term.Term) term.Term {
		return unlessNull(at, v, right, v)
	}), true
}

// orNull returns a term that gives null where the chain that t is ends early, and what t
// gives otherwise.
func orNull(at term.At, t term.Term) term.Term {
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
