package mcpserver

import (
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// example is a call of a tool, as exact as can be told from its code.
func example(t *registry.Tool) []byte {
	args := begin().text("tool", t.Name)
	if t.Program().IsFunction() {
		args = args.raw("input", []byte(sample(t)))
	}
	return begin().text("name", "run").raw("arguments", args.end()).end()
}

// samples is an input of each kind, the commonest first: what is wanted may be
// several kinds, as the operand of length is.
var samples = []struct {
	kind prim.Kinds
	json string
}{
	{prim.KindInt, `5`},
	{prim.KindList, `[1,2,3]`},
	{prim.KindString, `"abc"`},
	{prim.KindBool, `true`},
	{prim.KindPair, `{"pair":[1,2]}`},
	{prim.KindFunction, `{"lam":"n","body":{"var":"n"}}`},
	{prim.KindQuoted, `{"quote":{"add":[1,2]}}`},
}

// sample is an input that the tool may well take: of a kind that the first
// operation on its parameter wants.
func sample(t *registry.Tool) string {
	code := t.Program().Term()
	if lam, ok := code.(*term.Lam); ok {
		code = lam.Body
	}
	w := want{left: 1000}
	if params := t.Program().Params(); len(params) > 0 {
		w.name = params[0]
		w.search(code)
	}
	if w.found == 0 {
		return `5`
	}
	for _, s := range samples {
		if w.found&s.kind != 0 {
			return s.json
		}
	}
	return `5`
}

// want is a search for the kinds that a variable is used as.
type want struct {
	name  string
	left  int // nodes still to be looked at: a hint isn't worth more
	found prim.Kinds
}

func (w *want) search(t term.Term) {
	if w.left--; w.left < 0 || w.found != 0 {
		return
	}
	switch t := t.(type) {
	case *term.Prim:
		row := prim.Get(t.ID)
		for i, arg := range t.Args {
			if v, ok := arg.(*term.Var); ok && v.Name == w.name && i < len(row.Params) {
				if k := row.Params[i].Kinds; k&prim.KindAny != prim.KindAny && w.found == 0 {
					w.found = k
					return
				}
			}
			w.search(arg)
		}
	case *term.Lam:
		if t.Param != w.name {
			w.search(t.Body)
		}
	case *term.App:
		if v, ok := t.Func.(*term.Var); ok && v.Name == w.name {
			w.found = prim.KindFunction
			return
		}
		w.search(t.Func)
		w.search(t.Arg)
	case *term.If:
		if v, ok := t.Cond.(*term.Var); ok && v.Name == w.name {
			w.found = prim.KindBool
			return
		}
		w.search(t.Cond)
		w.search(t.Then)
		w.search(t.Else)
	case *term.List:
		for _, item := range t.Items {
			w.search(item)
		}
	case *term.Record:
		for _, f := range t.Fields {
			w.search(f.Value)
		}
	case *term.Effect:
		// What designates is a string in every kind there is.
		if w.is(t.Arg) {
			w.found = prim.KindString
			return
		}
		if r, ok := t.Arg.(*term.Record); ok {
			for _, f := range r.Fields {
				if w.is(f.Value) {
					w.found = prim.KindString
					return
				}
			}
		}
		w.search(t.Arg)
	case *term.Continue:
		w.search(t.Input)
	}
}

// is reports whether a term is the variable.
func (w *want) is(t term.Term) bool {
	v, ok := t.(*term.Var)
	return ok && v.Name == w.name
}
