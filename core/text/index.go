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
	l := &term.List{At: term.At(open.off)}
	var rest []item
	ok := r.list(open, tokCloseList, func() bool {
		spread := r.take(tokRest)
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
