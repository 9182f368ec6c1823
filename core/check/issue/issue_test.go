package issue_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/check/cert"
	"github.com/mcp-pif/mcp-pif/core/check/issue"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/prim/gen"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// tools is what the programs of these tests can name.
func tools(name string) (cert.Need, *cert.Type, bool) {
	if name == "gone" {
		return cert.Need{}, nil, false
	}
	return cert.Need{Name: name, Version: len(name), Hash: "hash of " + name}, nil, true
}

// A sample is a program with its certificate.
type sample struct {
	term   term.Term
	source *term.Source
	tool   string
	c      *cert.Certificate
}

func (s sample) String() string { return string(text.Print(s.term)) }

// ofText is a tool in the text form.
func ofText(t testing.TB, src string) sample {
	t.Helper()
	p, f := text.Parse([]byte(src), text.Options{Tool: "tool"})
	if f != nil {
		t.Fatalf("%s: %v", src, f)
	}
	return certified(sample{term: p.Term, source: p.Source, tool: "tool"})
}

func certified(s sample) sample {
	s.c = issue.Certificate(s.term, s.source, check.Env{Tool: s.tool}, tools, check.Budget{})
	return s
}

// written is tools, of which those with a type are claimed to have it.
var written = []struct {
	code  string
	typed bool
}{
	{"x => x * x", true}, {"xs => sum(xs)", true}, {"xs => map(x => x * 2, xs)", true}, {"(a, b) => a + b", true},
	{"let h = x => x * x in xs => map(x => h(x), xs)", true},
	{"n => if n <= 1 then 1 else n * self(n - 1)", true}, {"r => r.name ++ \"x\"", true}, {"s => split(s, \",\")", true},
	{"p => !fs.read({path: p})", true}, {"x => match x { (a, b) => a; _ => 0 }", true}, {"xs => filter(x => x > 2, xs)", true},
	{"x => let f = y => y + 1 in (f(x), f(2))", true}, {"x => [x, 1]", true}, {"x => {a: x, b: [1]}", true},
	{"x => put(x, \"k\", 1)", true}, {"x => get(x, \"k\", 0)", true}, {"x => '{x}", true}, {"xs => join(xs, \",\")", true},
	{"n => if n < 1 then n else continue(n - 1)", true}, {"xs => par(sum(xs), 1)", true}, {"x => to_json(x)", true},
	{"rs => to_csv(rs)", true}, {"rs => to_csv(rs, [\"a\"])", true}, {"x => to_csv([{a: x ++ \"\", b: [2]}], [\"a\"])", true},
	{"x => @square(x)", false}, {"x => eval(x)", false}, {"xs => sort(xs)", false}, {"x => code_of(\"square\")", true},
	{"x => let r = !fs.read(x), s = !kv.put({key: \"a\", value: r}) in [r, s]", true}, {"xs => fold(p => fst(p) + snd(p), 0, xs)", true},
	{"xs => map(x => map(y => x + y, xs), xs)", true}, {"x => raise(x)", true}, {"f => f(1)", true},
	{"xs => if length(xs) > 1000 then fold(p => fst(p) + 1, 0, xs) else self([...xs, ...xs])", true},
	{"xs => if isEmpty(xs) then 0 else sum(xs) + self(tail(xs))", true},
}

// samples is those and programs of the generator that have types.
func samples(t testing.TB, n int) []sample {
	var all []sample
	for _, w := range written {
		s := ofText(t, w.code)
		if s.c == nil {
			t.Fatalf("%s has no certificate", w.code)
		}
		if (len(s.c.Types) > 0) != w.typed {
			t.Errorf("%s: %d types", w.code, len(s.c.Types))
		}
		all = append(all, s)
	}
	for seed := 0; len(all) < n; seed++ {
		d := rand.New(rand.NewPCG(uint64(seed), 61)).IntN
		o := gen.Options{Records: true, Effects: seed%3 == 0, Tool: seed%2 == 0}
		s := sample{}
		if o.Tool {
			s.tool = "tool"
		}
		code, _ := gen.Function(d, 1+d(50), o)
		p, f := parse.Code([]byte(code), parse.Options{Tool: s.tool})
		if f != nil {
			continue
		}
		s.term, s.source = p.Term, p.Source
		if s = certified(s); s.c != nil {
			all = append(all, s)
		}
	}
	return all
}

// TestTrue: certificates as they are made are accepted, also when they were
// written and read.
func TestTrue(t *testing.T) {
	typed := 0
	all := samples(t, must.Full(50, 5_000))
	for _, s := range all {
		src, err := json.Marshal(s.c)
		must.NoError(t, err)
		var c cert.Certificate
		must.NoError(t, json.Unmarshal(src, &c))
		if err := cert.Check(&c, s.term, tools); err != nil {
			t.Fatalf("%v\n%s\n%s", err, s, src)
		}
		if len(c.Types) > 0 {
			typed++
		}
	}
	t.Logf("%d of %d have types", typed, len(all))
	if typed < len(all)/5 {
		t.Errorf("only %d of %d certificates have types", typed, len(all))
	}
}

// copied is a certificate that can be changed.
func copied(c *cert.Certificate) *cert.Certificate {
	src, _ := json.Marshal(c)
	d := new(cert.Certificate)
	if json.Unmarshal(src, d) != nil {
		return nil
	}
	return d
}

// mutate changes what a certificate claims; ok is false where it didn't.
func mutate(d gen.Draw, c *cert.Certificate) (how string, ok bool) {
	switch d(12) {
	case 0:
		h := []byte(c.Hash)
		i := d(len(h))
		h[i] = "0123456789abcdef"[(strings.IndexByte("0123456789abcdef", h[i])+1+d(15))%16]
		c.Hash = string(h)
		return "hash", true
	case 1:
		c.Effects = append(c.Effects, "zz.more")
		return "more effects", true
	case 2:
		if len(c.Effects) == 0 {
			return "", false
		}
		c.Effects = slices.Delete(c.Effects, 0, 1)
		return "fewer effects", true
	case 3:
		all := slices.DeleteFunc([]string{"constant", "linear", "polynomial", "budget"}, func(s string) bool { return s == c.Class })
		c.Class = all[d(len(all))]
		return "class", true
	case 4:
		c.Cost = []string{"1", "0 + " + c.Cost, c.Cost + " + n^3", "unbounded ", ""}[d(5)]
		return "cost", true
	case 5:
		if len(c.Needs) == 0 {
			c.Needs = []cert.Need{{Name: "other", Version: 5, Hash: "hash of other"}}
			return "more needs", true
		}
		switch d(4) {
		case 0:
			c.Needs = c.Needs[1:]
		case 1:
			c.Needs[0].Version++
		case 2:
			c.Needs[0].Hash += "x"
		default:
			c.Needs[0].Name += "x"
		}
		return "needs", true
	}
	if len(c.Types) == 0 {
		return "", false
	}
	switch d(4) {
	case 0:
		c.Types = append(c.Types, 0)
		return "a type more", true
	case 1:
		if len(c.Types) == 1 {
			return "", false
		}
		c.Types = c.Types[:1+d(len(c.Types)-1)]
		return "fewer types", true
	}
	// The type of the whole: it takes more, or gives something else.
	root := *c.Table[c.Types[0]]
	if root.Kinds != prim.KindFunction {
		root = cert.Type{Kinds: prim.KindAny &^ (root.Kinds | prim.KindFunction) & prim.KindBool}
		if root.Kinds == 0 {
			return "", false
		}
	} else if r := root.Result; d(2) == 0 && r != nil && r.Kinds != 0 {
		if other := plain &^ r.Kinds; other != 0 {
			root.Result = &cert.Type{Kinds: other}
		} else {
			return "", false
		}
	} else if p := root.Param; p != nil && p.Kinds&prim.KindBool == 0 {
		param := *p
		param.Kinds |= prim.KindBool
		root.Param = &param
	} else {
		return "", false
	}
	c.Table = append(c.Table, &root)
	c.Types[0] = len(c.Table) - 1
	return "type", true
}

const plain = prim.KindInt | prim.KindBool | prim.KindString | prim.KindUnit

// TestMutated: what is claimed can't be changed. Of a changed type the checker
// may accept one that is true all the same: a function that never gives a value
// gives any, and one that doesn't look at its input takes any.
func TestMutated(t *testing.T) {
	all := samples(t, must.Drawn(120, 400))
	n := must.Drawn(2_400, 12_000)
	wanted := n
	rejected, accepted := map[string]int{}, 0
	for seed := 0; seed < n; {
		d := rand.New(rand.NewPCG(uint64(seed), 62)).IntN
		s := all[(seed*7919)%len(all)]
		c := copied(s.c)
		how, ok := mutate(d, c)
		seed++
		if !ok {
			n++
			continue
		}
		if err := cert.Check(c, s.term, tools); err != nil {
			rejected[how]++
			continue
		}
		if how != "type" {
			src, _ := json.Marshal(c)
			t.Fatalf("%s was accepted\n%s\n%s", how, s, src)
		}
		accepted++
		holds(t, sample{s.term, s.source, s.tool, c}, d)
	}
	total := 0
	for _, k := range rejected {
		total += k
	}
	t.Logf("%d rejected %v, %d types accepted that hold", total, rejected, accepted)
	if total < wanted*5/6 || rejected["type"] < wanted/24 {
		t.Errorf("only %d were rejected: %v", total, rejected)
	}
}

// TestInner: a type that was asked for and is of other kinds than its values is
// found.
func TestInner(t *testing.T) {
	rejected := 0
	for i, s := range samples(t, 900) {
		if len(s.c.Types) < 2 {
			continue
		}
		for k := range s.c.Types[1:] {
			for wrong := range 3 {
				c := copied(s.c)
				c.Table = append(c.Table, &cert.Type{Kinds: prim.KindUnit}, &cert.Type{Kinds: prim.KindFunction}, nil)
				c.Types[k+1] = len(c.Table) - 1 - wrong
				if cert.Check(c, s.term, tools) != nil {
					rejected++
					continue
				}
				// The claims are the same, and hold: nothing depended on that type.
				holds(t, sample{s.term, s.source, s.tool, c}, rand.New(rand.NewPCG(uint64(i), uint64(k))).IntN)
			}
		}
	}
	t.Logf("%d rejected", rejected)
	if rejected < 900 {
		t.Errorf("only %d were rejected", rejected)
	}
}

// TestVoid: a certificate holds of one term, and as long as the tools that it
// names are what they were.
func TestVoid(t *testing.T) {
	s := ofText(t, "x => @square(x) + 1")
	if len(s.c.Needs) != 1 || !slices.Equal(s.c.Effects, []string{"call:square"}) {
		t.Fatalf("%+v", s.c)
	}
	for name, changed := range map[string]cert.Tools{
		"a version": func(n string) (cert.Need, *cert.Type, bool) {
			return cert.Need{Name: n, Version: 7, Hash: "hash of " + n}, nil, true
		},
		"a hash": func(n string) (cert.Need, *cert.Type, bool) {
			return cert.Need{Name: n, Version: 6, Hash: "other"}, nil, true
		},
		"gone": func(n string) (cert.Need, *cert.Type, bool) { return cert.Need{}, nil, false },
	} {
		if cert.Check(s.c, s.term, changed) == nil {
			t.Errorf("%s: the certificate is not void", name)
		}
	}
	if err := cert.Check(s.c, s.term, tools); err != nil {
		t.Error(err)
	}
	if cert.Check(s.c, ofText(t, "x => @square(x) + 2").term, tools) == nil {
		t.Error("it is accepted for another term")
	}
	if ofText(t, "x => @gone(x)").c != nil {
		t.Error("a tool that isn't there is certified")
	}
}

// TestCalls: the type of a program that calls a tool is claimed where the
// tool's is, and holds only for that.
func TestCalls(t *testing.T) {
	square := ofText(t, "x => x * x")
	of := func(typ *cert.Type) cert.Tools {
		return func(n string) (cert.Need, *cert.Type, bool) {
			return cert.Need{Name: n, Version: 1, Hash: square.c.Hash}, typ, true
		}
	}
	typ := square.c.Table[square.c.Types[0]]
	s := ofText(t, "x => @square(x + 1) * 2")
	env := check.Env{Tool: "tool", Callee: func(string) (check.Callee, bool) {
		return check.Callee{Type: check.Function(check.Number, check.Number, check.Row{}), Sound: true}, true
	}}
	c := issue.Certificate(s.term, s.source, env, of(typ), check.Budget{})
	if len(c.Types) == 0 {
		t.Fatal("it has no types")
	}
	if err := cert.Check(c, s.term, of(typ)); err != nil {
		t.Error(err)
	}
	other := *typ
	other.Param = &cert.Type{Kinds: prim.KindString}
	if cert.Check(c, s.term, of(&other)) == nil || cert.Check(c, s.term, of(nil)) == nil {
		t.Error("it is accepted with another type of the tool")
	}
}

func BenchmarkSmallTool(b *testing.B) {
	p, f := text.Parse([]byte("(items, rate) => let total = sum(map(i => i.price * i.count, items)) in {total: total, tax: div(total * rate, 100)}"), text.Options{Tool: "tool"})
	must.NoFault(b, f)
	b.ReportAllocs()
	for b.Loop() {
		if c := issue.Certificate(p.Term, p.Source, check.Env{Tool: "tool"}, tools, check.Budget{}); len(c.Types) == 0 {
			b.Fatal("it has no types")
		}
	}
}

// answering is tools among which the operation toy.get answers what is of a type;
// nil: some data.
func answering(typ *check.Type) cert.Tools {
	return func(name string) (cert.Need, *cert.Type, bool) {
		if name != "!toy.get" {
			return tools(name)
		}
		if typ == nil {
			return cert.Need{}, nil, false
		}
		return cert.Need{Name: name, Hash: typ.String()}, issue.Type(typ), true
	}
}

// TestAnswers: what an operation answers is claimed where that is said, holds while
// it is, and of other answers nothing more is believed than that they are data.
func TestAnswers(t *testing.T) {
	ints := check.List(check.Int)
	types := []*check.Type{nil, check.Int, check.Number, check.String, ints, check.JSON}
	for _, c := range []struct {
		code  string
		typed []*check.Type // by which it has a type
	}{
		{"k => !toy.get(k)", types},
		{"k => !toy.get(k) + 1", []*check.Type{check.Int, check.Number}},
		{"k => sum(!toy.get(k))", []*check.Type{ints}},
		{`k => length(!toy.get(k))`, []*check.Type{check.String, ints}},
		{`k => to_json(!toy.get(k))`, []*check.Type{check.Int, check.Number, check.String, ints, check.JSON}},
	} {
		s := ofText(t, c.code)
		for _, typ := range types {
			env := check.Env{Tool: "tool", Result: func(string) (*check.Type, bool) { return typ, typ != nil }}
			if typ == nil {
				env.Result = nil
			}
			made := issue.Certificate(s.term, s.source, env, answering(typ), check.Budget{})
			if typed := len(made.Types) > 0; typed != slices.Contains(c.typed, typ) {
				t.Errorf("%s of %s: it has a type: %t", c.code, typ, typed)
			}
			for _, now := range types {
				if err := cert.Check(made, s.term, answering(now)); (err == nil) != (now == typ) {
					t.Errorf("%s of %s, checked with %s: %v", c.code, typ, now, err)
				}
				// The same claim that says nothing of what it relies on.
				bare := new(cert.Certificate)
				must.NoError(t, json.Unmarshal(mustJSON(t, made), bare))
				bare.Needs = nil
				if len(bare.Types) > 0 && typ != nil && c.code != "k => !toy.get(k)" && cert.Check(bare, s.term, answering(nil)) == nil {
					t.Errorf("%s of %s: it is accepted of any data", c.code, typ)
				}
			}
		}
	}
}
