package text

import (
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// checkContinue refuses every continue of a tool's code that is not in tail
// position: in the tool's outermost lambdas, then in branches of if and in the
// bodies of lambdas applied at once. Code with one free variable and no lambda
// is the body of a lambda.
func (r *reader) checkContinue(t term.Term) {
	body, isLam := t, false
	for {
		l, ok := body.(*term.Lam)
		if !ok {
			break
		}
		body, isLam = l.Body, true
	}
	r.tail(body, isLam || len(r.free) == 1)
}

// tail walks a term outside quoted code; at tells that it is in tail position.
func (r *reader) tail(t term.Term, at bool) {
	switch t := t.(type) {
	case *term.Quote:
		return
	case *term.Continue:
		if !at {
			r.refuse(t.Pos(), &fault.Fault{
				Message:  "continue is not in tail position of the tool's function, so something would still be to do after it",
				Expected: "continue as the last thing the tool's function does",
				Got:      "continue as an operand",
				Hint:     `Make it the whole result of a branch: n => if n <= 0 then "done" else continue(n - 1).`,
			})
		}
	case *term.App:
		f, n := t.Func, 1
		for inner, ok := f.(*term.App); ok; inner, ok = f.(*term.App) {
			f, n = inner.Func, n+1
		}
		applied := false
		for l, ok := f.(*term.Lam); ok && n > 0; l, ok = f.(*term.Lam) {
			f, applied, n = l.Body, true, n-1
		}
		r.tail(f, at && applied && n == 0)
		for t != nil {
			r.tail(t.Arg, false)
			t, _ = t.Func.(*term.App)
		}
		return
	case *term.LetRec:
		for _, f := range t.Funcs {
			r.tail(f.Lam, false)
		}
		r.tail(t.Body, at)
		return
	case *term.If:
		r.tail(t.Cond, false)
		r.tail(t.Then, at)
		r.tail(t.Else, at)
		return
	}
	term.Children(t, func(child term.Term) bool {
		r.tail(child, false)
		return true
	})
}

// nesting returns how deep brackets are nested in a term's canonical JSON, inside so
// many around it. It stops counting soon after MaxDepth.
func nesting(t term.Term, around int) int {
	switch t := t.(type) {
	case *term.LetRec:
		deep := 0
		for _, f := range t.Funcs {
			if deep = max(deep, nesting(f.Lam, around+3)); deep > MaxDepth {
				return deep
			}
		}
		return max(deep, nesting(t.Body, around+1))
	case *term.App, *term.If, *term.Record, *term.Continue:
		around += 2
	case *term.Prim:
		around++
		row := prim.Get(t.ID)
		switch row.Shape {
		case prim.Flag, prim.Unary, prim.NamedOrTerm, prim.Within:
		default:
			around++
		}
		if row.Listed(len(t.Args)) {
			around++
		}
	case *term.Int, *term.Big, *term.Bool, *term.Str, *term.Unit:
	default:
		around++
	}
	deep := around
	if deep <= MaxDepth {
		term.Children(t, func(child term.Term) bool {
			deep = max(deep, nesting(child, around))
			return deep <= MaxDepth
		})
	}
	return deep
}
