package check_test

import (
	"math/rand/v2"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/prim/gen"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// TestDerivation: each term's type agrees with those of its operands, by
// subtyping alone.
func TestDerivation(t *testing.T) {
	w := newWorld(t)
	derived, terms := 0, 0
	for seed := range trials(20_000) {
		r := rand.New(rand.NewPCG(uint64(seed), 31))
		src := gen.Term(r.IntN, 1+r.IntN(60), gen.Options{Records: true})
		if seed%2 == 0 {
			src, _ = gen.Function(r.IntN, 1+r.IntN(60), gen.Options{Records: true})
		}
		p := code(t, "", src)
		d := check.Derive(p.Term, p.Source, w.env(""), check.Budget{})
		if !d.Report().Sound() {
			continue
		}
		derived++
		within := func(at term.Term, a, b *check.Type) {
			terms++
			if a == nil || b == nil {
				return // not evaluated
			}
			if why := check.Within(a, b); why != "" {
				t.Fatalf("seed %d: %T at %d: %s\n%s\n%s\n%s", seed, at, at.Pos(), why, a, b, src)
			}
		}
		var walk func(n term.Term) bool
		walk = func(n term.Term) bool {
			switch n := n.(type) {
			case *term.Quote:
				return true
			case *term.If:
				within(n, d.Type(n.Then), d.Type(n))
				within(n, d.Type(n.Else), d.Type(n))
				within(n, d.Type(n.Cond), check.Bool)
			case *term.App:
				// Parts of a type that has a name hold that name, and mean nothing alone.
				if f := d.Type(n.Func); f != nil && f.IsFunction() && f.Name == "" {
					within(n, d.Type(n.Arg), f.Param)
					within(n, f.Result, d.Type(n))
				}
			case *term.List:
				for _, item := range n.Items {
					within(n, d.Type(item), d.Type(n).Item)
				}
			case *term.Prim:
				if row := prim.Get(n.ID); row.Eval != nil {
					for i, a := range n.Args {
						if k := row.Params[i].Kinds; k&prim.KindAny != prim.KindAny && d.Type(a) != nil && d.Type(a).Kinds&^k != 0 {
							t.Fatalf("seed %d: operand %d of %s is of type %s\n%s", seed, i, row.Name, d.Type(a), src)
						}
					}
				}
			}
			return term.Children(n, walk)
		}
		walk(p.Term)
	}
	t.Logf("%d derivations, %d times a type in another", derived, terms)
	if derived < 100 || terms < 500 {
		t.Error("too few: the test shows little")
	}
}
