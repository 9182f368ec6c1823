package parse

import (
	"slices"

	"github.com/mcp-pif/mcp-pif/core/term"
)

// Free gives the variables that nothing in the term binds, each once, in the
// order of their first use. Quoted code doesn't count: it is data until it is
// evaluated.
func Free(t term.Term) []string {
	var w freeWalk
	w.walk(t)
	return w.free
}

type freeWalk struct {
	bound map[string]int // how many lambdas around bind the name
	free  []string
	seen  map[string]struct{}
}

func (w *freeWalk) walk(t term.Term) {
	switch t := t.(type) {
	case *term.Var:
		if w.bound[t.Name] > 0 {
			return
		}
		if _, ok := w.seen[t.Name]; !ok {
			if w.seen == nil {
				w.seen = map[string]struct{}{}
			}
			w.seen[t.Name] = struct{}{}
			w.free = append(w.free, t.Name)
		}
	case *term.Lam:
		if w.bound == nil {
			w.bound = map[string]int{}
		}
		w.bound[t.Param]++
		w.walk(t.Body)
		w.bound[t.Param]--
	case *term.App:
		w.walk(t.Func)
		w.walk(t.Arg)
	case *term.If:
		w.walk(t.Cond)
		w.walk(t.Then)
		w.walk(t.Else)
	case *term.List:
		for _, item := range t.Items {
			w.walk(item)
		}
	case *term.Record:
		for _, f := range t.Fields {
			w.walk(f.Value)
		}
	case *term.Continue:
		w.walk(t.Input)
	case *term.Effect:
		w.walk(t.Arg)
	case *term.Prim:
		for _, a := range t.Args {
			w.walk(a)
		}
	}
}

// Effects gives the operations of capabilities a term asks for outside quoted
// code, each once, sorted.
func Effects(t term.Term) []string {
	var ops []string
	effects(t, &ops)
	slices.Sort(ops)
	return slices.Compact(ops)
}

func effects(t term.Term, ops *[]string) {
	switch t := t.(type) {
	case *term.Lam:
		effects(t.Body, ops)
	case *term.App:
		effects(t.Func, ops)
		effects(t.Arg, ops)
	case *term.If:
		effects(t.Cond, ops)
		effects(t.Then, ops)
		effects(t.Else, ops)
	case *term.List:
		for _, item := range t.Items {
			effects(item, ops)
		}
	case *term.Record:
		for _, f := range t.Fields {
			effects(f.Value, ops)
		}
	case *term.Continue:
		effects(t.Input, ops)
	case *term.Effect:
		*ops = append(*ops, t.Op)
		effects(t.Arg, ops)
	case *term.Prim:
		for _, a := range t.Args {
			effects(a, ops)
		}
	}
}
