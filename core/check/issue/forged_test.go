package issue_test

import (
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check/cert"
	"github.com/mcp-pif/mcp-pif/core/check/cert/count"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/prim/gen"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// order is the terms that have types in a certificate, in their order.
func order(t term.Term) (all []term.Term) {
	if _, args, body := cert.Let(t); body != nil {
		for _, x := range args {
			all = append(all, order(x)...)
		}
		return append(all, order(body)...)
	}
	all = []term.Term{t}
	switch t := t.(type) {
	case *term.Quote:
		return all
	case *term.Prim:
		if prim.Get(t.ID).Body != "" {
			return append(all, order(prim.Expand(t))...)
		}
	}
	term.Children(t, func(x term.Term) bool {
		all = append(all, order(x)...)
		return true
	})
	return all
}

// replaced is t with one term in it, by its identity, in the place of another.
func replaced(t, old, by term.Term) term.Term {
	if t == old {
		return by
	}
	all := func(ts []term.Term) []term.Term {
		out := make([]term.Term, len(ts))
		for i, x := range ts {
			out[i] = replaced(x, old, by)
		}
		return out
	}
	switch t := t.(type) {
	case *term.Lam:
		return &term.Lam{At: t.At, Param: t.Param, Body: replaced(t.Body, old, by)}
	case *term.App:
		return &term.App{At: t.At, Func: replaced(t.Func, old, by), Arg: replaced(t.Arg, old, by)}
	case *term.If:
		return &term.If{At: t.At, Cond: replaced(t.Cond, old, by), Then: replaced(t.Then, old, by), Else: replaced(t.Else, old, by)}
	case *term.List:
		return &term.List{At: t.At, Items: all(t.Items)}
	case *term.Record:
		fields := make([]term.Field, len(t.Fields))
		for i, f := range t.Fields {
			fields[i] = term.Field{Key: f.Key, Value: replaced(f.Value, old, by)}
		}
		return &term.Record{At: t.At, Fields: fields}
	case *term.Prim:
		return &term.Prim{At: t.At, ID: t.ID, Args: all(t.Args)}
	}
	return t
}

// forged is a certificate of a term with everything right that can be worked
// out, and types from elsewhere.
func forged(s sample, table []*cert.Type, types []int) *cert.Certificate {
	sum := sha256.Sum256(text.Canonical(s.term))
	c := &cert.Certificate{Hash: hex.EncodeToString(sum[:]), Tool: s.tool != "", Table: table, Types: types}
	var names []string
	c.Effects, names = cert.Asks(s.term)
	for _, name := range names {
		n, _, _ := tools(name)
		c.Needs = append(c.Needs, n)
	}
	c.Cost, c.Class = count.Of(s.term)
	return c
}

// TestForged: a program that was broken after it was certified, a leaf in it
// being of another kind, isn't accepted with the old types; or it is not broken.
func TestForged(t *testing.T) {
	leaves := []struct {
		t term.Term
		k prim.Kinds
	}{
		{&term.Int{Value: 1}, prim.KindInt}, {&term.Str{Value: "a"}, prim.KindString}, {&term.Bool{Value: true}, prim.KindBool}, {&term.Unit{}, prim.KindUnit},
		{&term.Quote{Body: &term.Unit{}}, prim.KindQuoted},
	}
	rejected, accepted := 0, 0
	for i, s := range samples(t, 900) {
		if len(s.c.Types) == 0 {
			continue
		}
		before := order(s.term)
		for k, old := range before {
			switch old.(type) {
			case *term.Int, *term.Str, *term.Bool, *term.Unit, *term.Var, *term.List, *term.Record, *term.Prim, *term.If:
			default:
				continue
			}
			d := gen.Draw(rand.New(rand.NewPCG(uint64(i), uint64(k))).IntN)
			leaf := leaves[d(len(leaves))]
			broken := sample{replaced(s.term, old, leaf.t), s.source, s.tool, nil}
			after := order(broken.term)
			table := append(append([]*cert.Type{}, s.c.Table...), &cert.Type{Kinds: leaf.k})
			// The types of what is still there, by where they stood.
			var types []int
			gone := len(order(old)) - 1
			for j, from := 0, 0; j < len(after) && from < len(before); j++ {
				if after[j] == leaf.t {
					types = append(types, len(table)-1)
					from += 1 + gone
					continue
				}
				types = append(types, s.c.Types[from])
				from++
			}
			broken.c = forged(broken, table, types)
			if cert.Check(broken.c, broken.term, tools) != nil {
				rejected++
				continue
			}
			accepted++
			for n := range 12 {
				holds(t, broken, func(m int) int { return n % m })
			}
		}
	}
	t.Logf("%d rejected, %d accepted that hold", rejected, accepted)
	if rejected < 1_000 {
		t.Errorf("only %d were rejected", rejected)
	}
}

// lies is programs that fail, with types of which one alone is wrong.
var lies = []struct {
	name, code string
	types      []*cert.Type
}{
	{"a function that is said to take more", `x => (f => f("a"))(y => y + 1)`, []*cert.Type{
		function(kinds(prim.KindInt), number), function(number, number), number, number, kinds(prim.KindInt), number, function(anything, number), kinds(prim.KindString),
	}},
	{"a fold that begins with something else", `x => fold(p => fst(p) + snd(p), "a", [1])`, []*cert.Type{
		function(anything, number), number, function(pairOf(number, number), number), number, number, pairOf(number, number), number, pairOf(number, number),
		kinds(prim.KindString), {Kinds: prim.KindList, Item: number}, kinds(prim.KindInt),
	}},
	{"a list with another item", `x => head([1, "a"]) + 1`, []*cert.Type{
		function(anything, number), number, number, {Kinds: prim.KindList, Item: number}, kinds(prim.KindInt), kinds(prim.KindString), kinds(prim.KindInt),
	}},
	{"a condition that is none", `x => if x then 1 else 2`, []*cert.Type{
		function(number, number), number, number, kinds(prim.KindInt), kinds(prim.KindInt),
	}},
	{"a branch that gives something else", `x => (if x then 1 else "a") + 1`, []*cert.Type{
		function(kinds(prim.KindBool), number), number, number, kinds(prim.KindBool), kinds(prim.KindInt), kinds(prim.KindString), kinds(prim.KindInt),
	}},
	{"a function that gives something else", `x => self(x) + 1`, []*cert.Type{
		function(anything, kinds(prim.KindString)), number, number, function(anything, number), anything, kinds(prim.KindInt),
	}},
	{"an application that gives something else", `f => f(1) + 1`, []*cert.Type{
		function(function(kinds(prim.KindInt), kinds(prim.KindString)), number), number, number, function(kinds(prim.KindInt), kinds(prim.KindString)), kinds(prim.KindInt), kinds(prim.KindInt),
	}},
	{"an operation that isn't in the type", `x => !fs.read(x)`, []*cert.Type{function(anything, data), data, anything}},
}

var (
	number   = kinds(prim.KindNumber)
	anything = &cert.Type{Kinds: prim.KindAny, Any: true}
	data     = &cert.Type{Kinds: prim.KindData, Deep: true}
)

func kinds(k prim.Kinds) *cert.Type { return &cert.Type{Kinds: k} }

func function(param, result *cert.Type) *cert.Type {
	return &cert.Type{Kinds: prim.KindFunction, Param: param, Result: result}
}

func pairOf(a, b *cert.Type) *cert.Type { return &cert.Type{Kinds: prim.KindPair, First: a, Second: b} }

func TestLies(t *testing.T) {
	for _, l := range lies {
		s := ofText(t, l.code)
		types := make([]int, len(l.types))
		for i := range types {
			types[i] = i
		}
		if n := len(order(s.term)); n != len(types) {
			t.Errorf("%s: %d types of %d terms", l.name, len(types), n)
		}
		if cert.Check(forged(s, l.types, types), s.term, tools) == nil {
			t.Errorf("%s was accepted", l.name)
		}
	}
}
