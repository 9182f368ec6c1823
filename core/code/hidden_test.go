package code_test

import (
	"testing"

	"github.com/mcp-pif/mcp-pif/core/code"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// A term whose parameter has the hidden name, which no source can say, doesn't
// reach the variable that holds a function's authority.
func TestHiddenParameter(t *testing.T) {
	effect := &term.Effect{Op: "a.b", Arg: &term.Unit{}}
	lam := &term.Lam{Param: code.Hidden, Body: &term.Lam{Param: "x", Body: &term.List{Items: []term.Term{effect, &term.Var{Name: code.Hidden}}}}}
	o := code.Options{Eval: true, Depth: 1, Scope: []string{code.Hidden}}
	u := code.Compile(&term.App{Func: lam, Arg: &term.Int{}}, o)
	if len(u.Captures) != 1 || u.Captures[0] != 0 {
		t.Errorf("the function's authority is not that of the code around: it captures %v", u.Captures)
	}
	if bad := verify(u, o, 0); bad != nil {
		t.Error(bad)
	}
}
