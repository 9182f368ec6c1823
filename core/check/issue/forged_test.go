package issue_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check/cert"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/prim/gen"
	"github.com/mcp-pif/mcp-pif/core/term"
)

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

// A place is where the checker asks for a type, as it is found again in a
// program that was changed elsewhere.
type place struct {
	pos  int
	what string
}

func placeOf(t term.Term) place {
	switch t := t.(type) {
	case *term.Lam:
		return place{t.Pos(), "lam " + t.Param}
	case *term.Prim:
		return place{t.Pos(), prim.Get(t.ID).Name}
	}
	return place{t.Pos(), fmt.Sprintf("%T", t)}
}

// forged is a certificate of a program with everything right that can be worked
// out, and types from elsewhere.
func forged(t testing.TB, s sample, root *cert.Type, says func(term.Term) *cert.Type) *cert.Certificate {
	var table []*cert.Type
	var types []int
	c, _, err := cert.Claims(s.term, s.tool != "", tools, prim.Expand, func(t term.Term) *cert.Type {
		u := root
		if len(types) > 0 {
			u = says(t)
		}
		table, types = append(table, u), append(types, len(types))
		return u
	})
	must.NoError(t, err)
	c.Table, c.Types = table, types
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
		said := map[place]*cert.Type{}
		asked := 0
		_, _, err := cert.Claims(s.term, s.tool != "", tools, prim.Expand, func(t term.Term) *cert.Type {
			u := s.c.Table[s.c.Types[asked]]
			if asked++; asked > 1 {
				said[placeOf(t)] = u
			}
			return u
		})
		must.NoError(t, err)
		var all []term.Term
		var walk func(term.Term) bool
		walk = func(t term.Term) bool {
			switch t.(type) {
			case *term.Quote:
				return true
			case *term.Int, *term.Str, *term.Bool, *term.Unit, *term.Var, *term.List, *term.Record, *term.Prim, *term.If:
				all = append(all, t)
			}
			return term.Children(t, walk)
		}
		walk(s.term)
		for k, old := range all {
			d := gen.Draw(rand.New(rand.NewPCG(uint64(i), uint64(k))).IntN)
			leaf := leaves[d(len(leaves))]
			broken := sample{replaced(s.term, old, leaf.t), s.source, s.tool, nil}
			broken.c = forged(t, broken, s.c.Table[s.c.Types[0]], func(t term.Term) *cert.Type { return said[placeOf(t)] })
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

// lies is programs that fail, with types of which one alone is wrong: the
// program's, and those that are asked for.
var lies = []struct {
	name, code string
	types      []*cert.Type
}{
	{"a function that is said to take more", `x => head([y => y + 1])("a")`, []*cert.Type{function(anything, number), anything}},
	{"a function in a list that is given another argument", `x => head([y => y + 1])("a")`, []*cert.Type{function(anything, number), number}},
	{"a fold that begins with something else", `x => fold(p => fst(p) + snd(p), "a", [1])`, []*cert.Type{function(anything, number), number}},
	{"a fold that goes on with something else", `x => fold(p => if fst(p) > 3 then fst(p) else "a", 1, [1, 2])`, []*cert.Type{function(anything, number), number, anything}},
	{"a list with another item", `x => head([1, "a"]) + 1`, []*cert.Type{function(anything, number), kinds(prim.KindInt)}},
	{"a list longer by something else", `x => head(cons("a", [1])) + 1`, []*cert.Type{function(anything, number), listOf(number)}},
	{"a condition that is none", `x => if x then 1 else 2`, []*cert.Type{function(number, number)}},
	{"a branch that gives something else", `x => (if x then 1 else "a") + 1`, []*cert.Type{function(kinds(prim.KindBool), number), number}},
	{"a function that gives something else", `x => self(x) + 1`, []*cert.Type{function(anything, kinds(prim.KindString))}},
	{"an application that gives something else", `f => f(1) + 1`, []*cert.Type{function(function(kinds(prim.KindInt), kinds(prim.KindString)), number)}},
	{"a parameter of all kinds that is added to", `x => x + 1`, []*cert.Type{function(anything, number)}},
	{"a list that is said to be in itself", `xs => head(xs) + 1`, []*cert.Type{function(nested, number)}},
	{"a function that takes itself", `f => f(1)`, []*cert.Type{function(endless, number)}},
	{"data that is a function", `f => f`, []*cert.Type{function(function(number, number), data)}},
	{"a key that is of another type", `r => r.a + 1`, []*cert.Type{function(record("a", kinds(prim.KindString)), number)}},
	{"a column that isn't written as a cell", `rs => to_csv(rs, ["a"])`, []*cert.Type{function(listOf(record("a", listOf(number))), kinds(prim.KindString))}},
	{"a column that the term doesn't name", `x => to_csv([{a: [1]}], ["b", x])`, []*cert.Type{function(kinds(prim.KindString), kinds(prim.KindString))}},
	{"a key twice", `r => r.a + 1`, []*cert.Type{function(twice, number)}},
	{"a function that takes less than is said", `x => (if x then (y => y + 1) else (y => 2))("a")`, []*cert.Type{function(kinds(prim.KindBool), number), function(anything, number), number, anything}},
	{"comparing functions", `f => equal(f, f)`, []*cert.Type{function(function(number, number), kinds(prim.KindBool))}},
	{"comparing what may be functions", `x => equal(x, x)`, []*cert.Type{function(anything, kinds(prim.KindBool))}},
}

// nested is lists of such lists, and endless a function of such functions.
var nested, endless = &cert.Type{Kinds: prim.KindList}, &cert.Type{Kinds: prim.KindFunction, Result: number}

func init() {
	nested.Item, endless.Param = nested, endless
	data.Item, data.First, data.Second, data.Rest = data, data, data, data
	anything.Item, anything.First, anything.Second, anything.Rest, anything.Result = anything, anything, anything, anything, anything
}

var (
	number   = kinds(prim.KindNumber)
	twice    = &cert.Type{Kinds: prim.KindRecord, Fields: []cert.Field{{Key: "a", Type: kinds(prim.KindString)}, {Key: "a", Type: number}}}
	anything = &cert.Type{Kinds: prim.KindAny}
	data     = &cert.Type{Kinds: prim.KindData}
)

func kinds(k prim.Kinds) *cert.Type { return &cert.Type{Kinds: k} }

func function(param, result *cert.Type) *cert.Type {
	return &cert.Type{Kinds: prim.KindFunction, Param: param, Result: result}
}

func listOf(item *cert.Type) *cert.Type { return &cert.Type{Kinds: prim.KindList, Item: item} }

func record(key string, typ *cert.Type) *cert.Type {
	return &cert.Type{Kinds: prim.KindRecord, Fields: []cert.Field{{Key: key, Type: typ}}}
}

// TestLies: each of the programs fails for some input of the type that it is said
// to have, or gives what isn't of it.
func TestLies(t *testing.T) {
	for _, l := range lies {
		s := ofText(t, l.code)
		asked := 0
		c := forged(t, s, l.types[0], func(t term.Term) *cert.Type {
			if asked++; asked >= len(l.types) {
				return nothing
			}
			return l.types[asked]
		})
		if asked >= len(l.types) {
			t.Errorf("%s: %d types are asked for", l.name, asked)
		}
		if cert.Check(c, s.term, tools) == nil {
			t.Errorf("%s was accepted", l.name)
		}
	}
}

var nothing = &cert.Type{}
