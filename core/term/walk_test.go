package term_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"math/big"
	"reflect"
	"slices"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/term"
)

var a, b, c term.Term = &term.Var{Name: "a"}, &term.Var{Name: "b"}, &term.Var{Name: "c"}

var lam = &term.Lam{Param: "x", Body: a}

// nodes is one term of each type with its operands in order.
var nodes = []struct {
	t        term.Term
	operands []term.Term
}{
	{&term.Int{Value: 1}, nil},
	{&term.Big{Value: big.NewInt(1)}, nil},
	{&term.Dec{Unscaled: big.NewInt(1), Scale: 2}, nil},
	{&term.Bool{Value: true}, nil},
	{&term.Str{Value: "a"}, nil},
	{&term.Unit{}, nil},
	{&term.Var{Name: "a"}, nil},
	{&term.Lam{Param: "x", Body: a}, []term.Term{a}},
	{&term.LetRec{Funcs: []term.Func{{Name: "f", Lam: lam}, {Name: "g", Lam: lam}}, Body: b}, []term.Term{lam, lam, b}},
	{&term.App{Func: a, Arg: b}, []term.Term{a, b}},
	{&term.If{Cond: a, Then: b, Else: c}, []term.Term{a, b, c}},
	{&term.List{Items: []term.Term{a, b, c}}, []term.Term{a, b, c}},
	{&term.Record{Fields: []term.Field{{Key: "k", Value: a}, {Key: "l", Value: b}}}, []term.Term{a, b}},
	{&term.Quote{Body: a}, []term.Term{a}},
	{&term.CodeOf{Name: "a"}, nil},
	{&term.Self{}, nil},
	{&term.Continue{Input: a}, []term.Term{a}},
	{&term.Effect{Op: "fs.read", Arg: a}, []term.Term{a}},
	{&term.Prim{Args: []term.Term{a, b}}, []term.Term{a, b}},
}

func TestChildren(t *testing.T) {
	for _, n := range nodes {
		var got []term.Term
		if !term.Children(n.t, func(o term.Term) bool { got = append(got, o); return true }) {
			t.Errorf("%T: a visit that went on was stopped", n.t)
		}
		if !slices.Equal(got, n.operands) {
			t.Errorf("%T: visited %v, want %v", n.t, got, n.operands)
		}
	}
}

// TestChildrenStops: after a visit that says false there is no other.
func TestChildrenStops(t *testing.T) {
	for _, n := range nodes {
		for last := range n.operands {
			visits := 0
			whole := term.Children(n.t, func(term.Term) bool { visits++; return visits <= last })
			if whole || visits != last+1 {
				t.Errorf("%T: stopped after %d visits, want %d (%v)", n.t, visits, last+1, whole)
			}
		}
	}
}

// TestEveryNodeType: a node type that is added to the package is added to the
// table above, and so to Children.
func TestEveryNodeType(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "term.go", nil, 0)
	must.NoError(t, err)
	declared := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		s, ok := spec.Type.(*ast.StructType)
		if !ok || len(s.Fields.List) == 0 || len(s.Fields.List[0].Names) > 0 {
			return true // no node: it embeds no At
		}
		declared++
		if !slices.ContainsFunc(nodes, func(n struct {
			t        term.Term
			operands []term.Term
		},
		) bool {
			return reflect.TypeOf(n.t).Elem().Name() == spec.Name.Name
		}) {
			t.Errorf("the node type %s is not tested", spec.Name.Name)
		}
		return true
	})
	if declared != len(nodes) {
		t.Errorf("%d node types are declared, %d are tested", declared, len(nodes))
	}
}

func TestPos(t *testing.T) {
	if pos := (&term.App{At: 7, Func: a, Arg: b}).Pos(); pos != 7 {
		t.Errorf("the place is %d", pos)
	}
	if pos := (&term.Self{}).Pos(); pos != 0 {
		t.Errorf("the zero place is %d", pos)
	}
}
