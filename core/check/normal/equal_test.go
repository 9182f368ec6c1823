package normal_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check/normal"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/internal/vectors"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/naive"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/prim/gen"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

func parseText(t testing.TB, src string) term.Term {
	t.Helper()
	p, f := text.Parse([]byte(src), text.Options{Tool: "tool"})
	if f != nil {
		t.Fatalf("%s: %v", src, f)
	}
	return p.Term
}

// verdicts is pairs of tools with what Equal is to say of them, and a part of
// the reason, or of the input that shows the difference.
var verdicts = []struct {
	a, b   string
	answer normal.Answer
	reason string
}{
	{"x => x + 1", "x => x + 1", normal.Same, "same term"},
	{"x => x + 1", "y => y + 1", normal.Same, "names"},
	{"x => let y = x + 1 in y * 2", "a => (a + 1) * 2", normal.Same, "normal form"},
	{"x => 2 + 3", "x => 5", normal.Same, "normal form"},
	{"x => if true then x else 1", "x => x", normal.Same, "normal form"},
	{"x => fst((x, 1))", "x => {a: x}.a", normal.Same, "normal form"},
	{"(xs) => map(x => x + 1, map(x => x, [xs, 2]))", "(y) => [y + 1, 3]", normal.Same, "normal form"},
	{"xs => sum(map(x => 1, xs))", "xs => fold(p => fst(p) + 1, 0, xs)", normal.Same, "normal form"},
	{"xs => sum(map(x => 1, xs))", "xs => fold(p => cons(1, fst(p)), 0, xs)", normal.Different, "[0]"},
	{"xs => fold(p => fst(p), 7, map(x => {a: x}, xs))", "xs => fold(p => fst(p), 7, xs)", normal.Same, "normal form"},
	{"(xs, y) => fold(p => (fst(p), snd(p)), y, map(x => [x], xs))", "(xs, y) => fold(p => (fst(p), [snd(p)]), y, xs)", normal.Same, "normal form"},
	{"xs => max(map(x => 1, xs))", "xs => let n = map(x => 1, xs) in fold(p => if compare(1, fst(p)) > 0 then 1 else fst(p), head(n), xs)", normal.Same, "normal form"},
	{"x => x > 3 and true", "x => 3 < x", normal.Same, "normal form"},
	{"x => not not (x < 3)", "x => if x < 3 then true else false", normal.Same, "normal form"},
	{"n => if n <= 1 then 1 else n * self(n - 1)", "k => if k <= 1 then 1 else let r = self(k - 1) in k * r", normal.Same, "normal form"},
	{"x => (y => !fs.read({path: y}))(x)", "x => !fs.read({path: x})", normal.Same, "normal form"},
	{"x => x + 1", "x => x + 2", normal.Different, "0"},
	{"x => x + x", "x => x * 2", normal.Same, "normal form"},
	{"x => x + x + x", "x => x * 3", normal.Unknown, "no difference"}, // decimals have a bound of digits
	{"(a, b, c) => (a + b) + c", "(a, b, c) => a + (b + c)", normal.Unknown, ""},
	{"xs => let a = length(xs) in a * (a + 1)", "ys => let b = length(ys) in b * b + b", normal.Same, "normal form"},
	{"xs => let a = length(xs) in a * (a + 1)", "ys => let b = length(ys) in b * b + 1", normal.Different, `""`},
	{"(x, y) => (length(x) + length(y)) * (length(x) - length(y))", "(x, y) => let b = length(y), a = length(x) in a * a - b * b", normal.Same, "normal form"},
	{"xs => let n = length(xs) in div(n, 2) * (n + 1)", "xs => let n = length(xs) in let k = div(n, 2) in n * k + k", normal.Same, "normal form"},
	{"xs => let n = length(xs) in div(n, 2) * 2 + mod(n, 2)", "xs => let n = length(xs) in mod(n, 2) + 2 * div(n, 2)", normal.Same, "normal form"},
	{`(x, y) => if equal(type_of(x), "int") and equal(type_of(y), "int") then (x + y) * (x - y) else 0`,
		`(y, x) => if equal(type_of(y), "int") and equal(type_of(x), "int") then y * y - x * x else 0`, normal.Same, "normal form"},
	{"(a, b) => if a < b then 1 else 2", "(a, b) => if b <= a then 2 else 1", normal.Same, "normal form"},
	{"(a, b) => not (a < b)", "(a, b) => b <= a", normal.Same, "normal form"},
	{"(a, b) => (a < b, a + 1)", "(a, b) => let y = a + 1 in (b > a, y)", normal.Unknown, ""}, // a + 1 may be too long

	{"(a, b, c) => (a ++ b) ++ c", "(a, b, c) => a ++ (b ++ c)", normal.Same, "normal form"},
	{`(a, b, c) => a ++ "x" ++ ("y" ++ c)`, `(a, b, c) => let d = "y" ++ c in a ++ "x" ++ d`, normal.Same, "normal form"},
	{"(a, b, c) => (a ++ b) ++ c", "(a, b, c) => (a ++ c) ++ b", normal.Different, ""},
	{"c => if c then 1 else 1", "c => let x = not c in 1", normal.Same, "normal form"},
	{"c => if c then 1 else 1", "c => 1", normal.Different, "type_error"},
	{"(c, a) => if c then !fs.read(a) else !fs.read(a)", "(c, a) => let x = not c in !fs.read(a)", normal.Same, "normal form"},
	{"xs => map(x => (x, 1), map(x => [x], xs))", "xs => map(x => ([x], 1), xs)", normal.Same, "normal form"},
	{"xs => map(p => !fs.read(fst(p)), map(x => (x, 1), xs))", "xs => map(x => !fs.read(x), xs)", normal.Same, "normal form"},
	{"xs => map(x => !fs.write(x), map(x => !fs.read(x), xs))", "xs => map(x => !fs.write(!fs.read(x)), xs)", normal.Different, "asked"},
	{"xs => reverse(map(x => [x], xs))", "xs => map(x => [x], reverse(xs))", normal.Same, "normal form"},
	{"xs => reverse(map(x => !fs.read(x), xs))", "xs => map(x => !fs.read(x), reverse(xs))", normal.Different, ""},
	{"xs => sum(map(p => snd(p), map(x => (1, x), xs)))", "xs => sum(xs)", normal.Same, "normal form"},
	{"xs => reverse(reverse(xs))", "xs => let y = isEmpty(xs) in xs", normal.Same, "normal form"},
	{"xs => reverse(reverse(xs))", "xs => xs", normal.Different, "type_error"},
	{"(a, b) => (a ++ \"x\", b ++ \"y\")", "(a, b) => let q = b ++ \"y\", p = a ++ \"x\" in (p, q)", normal.Same, "normal form"},
	{"(a, b) => let x = a ++ \"\", y = !fs.read(1) in b ++ \"\"", "(a, b) => let x = a ++ b, y = !fs.read(1) in b", normal.Different, "asked"},
	{"x => x * x", "x => x + x", normal.Different, "1"},
	{"x => x + 0", "x => x", normal.Different, "type_error"},
	{"xs => fold(p => fst(p) + snd(p), 0, xs)", "xs => fold(p => fst(p) + snd(p), 1, xs)", normal.Different, "[]"},
	{"xs => length(xs)", "xs => if length(xs) > 3 then 3 else length(xs)", normal.Different, `"aaaa"`},
	{`r => r.name`, `r => get(r, "name", "")`, normal.Different, "{}"},
	{"(a, b) => a - b", "(a, b) => b - a", normal.Different, ""},
	{"(a, b) => a + b", "(x, y) => y + x", normal.Same, "normal form"},
	{"x => div_dec(1, x, 2, \"down\")", "x => div_dec(1, x, 2, \"up\")", normal.Different, "3"},
	{"x => if x == 12345 then 1 else 0", "x => 0 * x", normal.Different, ""},
	{"x => if eq(x * 3, 12345) then 1 else 0", "x => if eq(x, 0) then 0 else 0", normal.Different, "4115"},
	{"(a, b) => if a + b == 1234 then 1 else 0", "(a, b) => 0 * (a + b)", normal.Different, ""},
	{"xs => if length(xs) > 17 then 1 else 0", "xs => 0 * length(xs)", normal.Different, ""},
	{"xs => if sum(xs) == 4321 then 1 else 0", "xs => 0 * sum(xs)", normal.Different, ""},
	{"x => !fs.read({path: x})", "x => !fs.read({path: x ++ \"\"})", normal.Different, ""},
	{"x => '{add(1, x)}", "x => '{add(1, y)}", normal.Different, ""},
	{"x => y => x", "x => z => x", normal.Same, "names"},
	{"f => x => f(x)", "f => x => f(f(x))", normal.Unknown, ""},
	{"x => let y = !fs.read(x), z = !fs.read(x) in 1", "x => let y = !fs.read(x) in 1", normal.Different, "asked"},
	{"x => let y = !fs.read(x) in 1", "x => let y = !fs.write(x) in 1", normal.Different, "asked"},
	{"xs => sort(xs)", "ys => sort_by(x => x, ys)", normal.Same, "normal form"},
	{"x => sort([3, 1, 2])", "x => [1, 2, 3]", normal.Same, "normal form"},
	{"xs => any(x => x > 1, xs)", "xs => all(x => x > 1, xs)", normal.Different, ""},
	{"3 + 4", "7", normal.Same, ""},
	{"let f = x => x in f(1)", "2", normal.Different, ""},
	{"x => raise(x)", "x => let y = raise(x) in 1", normal.Same, "normal form"},
	{"x => let y = x + 1 in 1", "x => 1", normal.Different, ""},
	{"x => let y = 1 / 0 in 1", "x => 1 / 0", normal.Same, "normal form"},
	{"let k = 2 in x => x * k", "x => x + x", normal.Same, "normal form"},
	{"let k = 2 in x => x * k", "x => x + 1", normal.Different, "0"},
	{"let k = 3, f = n => if n <= 0 then 0 else self(n - k) in f", "n => let m = n - 1 in 1", normal.Different, "0"},
	{"let add = (a, b) => a + b in add", "let k = x => x in (a, b) => a + k(b)", normal.Same, "normal form"},
	{"let add = (a, b) => if a == 1234 then b else 0 in add", "let k = 0 in (a, b) => k * (a + b)", normal.Different, ""},
}

func TestEqual(t *testing.T) {
	for _, c := range verdicts {
		v := normal.Equal(parseText(t, c.a), parseText(t, c.b), true, normal.Limits{Lets: true})
		inputs := ""
		for _, in := range v.Inputs {
			inputs += string(in) + " "
		}
		if v.Answer != c.answer || !strings.Contains(v.Reason+" "+inputs, c.reason) {
			x, _ := normal.Of(parseText(t, c.a), normal.Options{Tool: true})
			y, _ := normal.Of(parseText(t, c.b), normal.Options{Tool: true})
			t.Errorf("%s and %s: %+v, want %s %s\n%s\n%s", c.a, c.b, v, c.answer, c.reason, x.JSON, y.JSON)
		}
		back := normal.Equal(parseText(t, c.b), parseText(t, c.a), true, normal.Limits{Lets: true})
		if back.Answer != v.Answer {
			t.Errorf("%s and %s are %s, and the other way round %s", c.a, c.b, v.Answer, back.Answer)
		}
	}
}

// A rewriter changes one node of a term.
type rewriter struct {
	draw   gen.Draw
	at     int // the node, counted in the order of the walk
	change func(t term.Term) term.Term
	done   bool
}

// term gives t with its at-th node outside quotes changed.
func (r *rewriter) term(t term.Term) term.Term {
	if r.at == 0 && !r.done {
		r.done = true
		return r.change(t)
	}
	r.at--
	all := func(ts []term.Term) []term.Term {
		out := make([]term.Term, len(ts))
		for i, t := range ts {
			out[i] = r.term(t)
		}
		return out
	}
	switch t := t.(type) {
	case *term.Lam:
		return &term.Lam{Param: t.Param, Body: r.term(t.Body)}
	case *term.App:
		f := r.term(t.Func)
		return &term.App{Func: f, Arg: r.term(t.Arg)}
	case *term.If:
		c, x := r.term(t.Cond), r.term(t.Then)
		return &term.If{Cond: c, Then: x, Else: r.term(t.Else)}
	case *term.List:
		return &term.List{Items: all(t.Items)}
	case *term.Record:
		fields := make([]term.Field, len(t.Fields))
		for i, f := range t.Fields {
			fields[i] = term.Field{Key: f.Key, Value: r.term(f.Value)}
		}
		return &term.Record{Fields: fields}
	case *term.Effect:
		if t.In != "" {
			return t
		}
		return &term.Effect{Op: t.Op, Arg: r.term(t.Arg)}
	case *term.Prim:
		if t.ID == prim.Eval {
			return t
		}
		return &term.Prim{ID: t.ID, Args: all(t.Args)}
	}
	return t
}

// size counts the nodes that a rewriter reaches.
func size(t term.Term) int {
	r := &rewriter{at: -1}
	r.term(t)
	return -1 - r.at
}

// refactored says the same in other words.
func refactored(d gen.Draw, t term.Term) term.Term {
	for range 1 + d(3) {
		r := &rewriter{draw: d, at: d(size(t)), change: func(t term.Term) term.Term {
			switch d(5) {
			case 0: // under a name
				return &term.App{Func: &term.Lam{Param: "the value", Body: &term.Var{Name: "the value"}}, Arg: t}
			case 1: // in a branch
				return &term.If{Cond: &term.Bool{Value: true}, Then: t, Else: &term.Unit{}}
			case 2: // out of a pair
				return &term.Prim{ID: prim.Fst, Args: []term.Term{&term.Prim{ID: prim.Pair, Args: []term.Term{t, &term.Int{Value: 1}}}}}
			case 3: // out of a list
				return &term.Prim{ID: prim.Head, Args: []term.Term{&term.List{Items: []term.Term{t, &term.Unit{}}}}}
			}
			if n, ok := t.(*term.Int); ok && n.Value < 1<<62 {
				return &term.Prim{ID: prim.Sub, Args: []term.Term{&term.Int{Value: n.Value + 1}, &term.Int{Value: 1}}}
			}
			return t
		}}
		t = r.term(t)
	}
	return t
}

// mutated says mostly something else.
func mutated(d gen.Draw, t term.Term) term.Term {
	r := &rewriter{draw: d, at: d(size(t)), change: func(t term.Term) term.Term {
		switch t := t.(type) {
		case *term.Int:
			return &term.Int{Value: t.Value/2 + 1}
		case *term.Bool:
			return &term.Bool{Value: !t.Value}
		case *term.Str:
			return &term.Str{Value: t.Value + "x"}
		case *term.If:
			return &term.If{Cond: t.Cond, Then: t.Else, Else: t.Then}
		case *term.App:
			return t.Arg
		case *term.Prim:
			if len(t.Args) == 2 && t.ID != prim.Eval {
				return &term.Prim{ID: t.ID, Args: []term.Term{t.Args[1], t.Args[0]}}
			}
		case *term.Var:
			return &term.Var{Name: []string{"x", "y", "n", "p", "acc"}[d(5)]}
		case *term.List:
			if len(t.Items) > 0 {
				return &term.List{Items: t.Items[1:]}
			}
		}
		return &term.Int{Value: 7}
	}}
	return r.term(t)
}

// contains reports whether a primitive is in a term.
func contains(t term.Term, id term.ID) bool {
	if p, ok := t.(*term.Prim); ok && p.ID == id {
		return true
	}
	return !term.Children(t, func(t term.Term) bool { return !contains(t, id) })
}

// run is what comes of a program for an input that is data.
func run(t testing.TB, code term.Term, tool string, inputs []string) (outcome string, unsure bool) {
	t.Helper()
	p := read(t, text.Canonical(code))
	c := naive.Config{Term: p.Term, Source: p.Source, Tool: tool, Budgets: naive.Budgets{Steps: 40_000, Memory: 8 << 20, Depth: 3000}}
	var args []*parse.Parsed
	for _, s := range inputs {
		in, f := parse.Input([]byte(s), parse.Data)
		if f != nil {
			t.Fatalf("%s: %v", s, f)
		}
		args = append(args, in)
	}
	if len(args) == 1 {
		c.Input = args[0]
	} else {
		for _, a := range args {
			c.Term = &term.App{Func: c.Term, Arg: a.Term}
		}
	}
	log, asked := "", 0
	c.Handler = func(round []value.Request) []value.Answer {
		answers := make([]value.Answer, len(round))
		for i, r := range round {
			e, _ := text.Encode(r.Arg, 1<<16, 1<<20)
			log += r.Op + string(e.JSON) + "\n"
			if !vectors.Permits(r.With, r.Op) {
				answers[i].Fault = fault.New(fault.Denied, "no")
				continue
			}
			asked++
			answers[i].Value = value.NewInt(int64(asked))
		}
		return answers
	}
	v, _, f := naive.Run(c)
	if f != nil {
		return log + string(f.Kind), vectors.ByBudget(f.Kind)
	}
	e, f := text.Encode(v, 1<<20, 1<<22)
	if f != nil || e.Function {
		return "", true
	}
	w := text.NewWriter(1<<20, 1<<22)
	w.Term(v) // code shows as such
	return log + string(w.Bytes()), false
}

// TestNeverWrong: of programs made of each other, one that says the same is
// never called different, and one that is called different is; what is called
// the same gives the same for inputs that Equal didn't see.
func TestNeverWrong(t *testing.T) {
	n := must.Drawn(300, 20_000)
	seen := map[string]int{}
	for seed := range n {
		r := rand.New(rand.NewPCG(uint64(seed), 33))
		o := gen.Options{Wrong: []int{0, 5}[r.IntN(2)], Effects: r.IntN(6) == 0, Records: true, Tool: r.IntN(2) == 0}
		tool := ""
		if o.Tool {
			tool = "tool"
		}
		code, input := gen.Function(r.IntN, 1+r.IntN(60), o)
		a := read(t, []byte(code)).Term
		if contains(a, prim.Try) || bytes.Contains([]byte(code), []byte("code_of")) {
			continue // it may show where it failed, or what it says
		}
		b, how := refactored(r.IntN, a), "refactored"
		if r.IntN(2) == 0 {
			b, how = mutated(r.IntN, a), "mutated"
		}
		if _, ok := b.(*term.Lam); !ok && o.Tool && len(term.Free(b)) > 0 {
			continue // as a tool it is a function of what nothing binds
		}
		v := normal.Equal(a, b, o.Tool, normal.Limits{Runs: 40, RunSteps: 5_000})
		seen[how+" "+string(v.Answer)]++
		switch v.Answer {
		case normal.Different:
			if how == "refactored" {
				t.Fatalf("refactored, and %+v\n%s\n%s", v, text.Print(a), text.Print(b))
			}
			if o.Tool && len(v.Inputs) > 1 && len(term.Free(b)) > 0 {
				continue // applied to them it is a function of what nothing binds
			}
			var inputs []string
			for _, in := range v.Inputs {
				inputs = append(inputs, string(in))
			}
			x, unsureX := run(t, a, tool, inputs)
			y, unsureY := run(t, b, tool, inputs)
			if !unsureX && !unsureY && x == y && !strings.Contains(v.Reason, "asked") && !strings.Contains(x, "fs.read") && !strings.Contains(x, "kv.put") {
				t.Fatalf("seed %d: %+v, but both give %s\n%s\n%s", seed, v, x, text.Print(a), text.Print(b))
			}
		case normal.Same:
			x, unsureX := run(t, a, tool, []string{"3"})
			y, unsureY := run(t, b, tool, []string{"3"})
			if !unsureX && !unsureY && x != y {
				t.Fatalf("%+v, but for 3 %s and %s\n%s\n%s", v, x, y, text.Print(a), text.Print(b))
			}
			x, unsureX = observed(t, text.Canonical(a), tool, input, 20_000)
			y, unsureY = observed(t, text.Canonical(b), tool, input, 20_000)
			if !unsureX && !unsureY && x != y {
				t.Fatalf("%+v, but for %s %s and %s\n%s\n%s", v, input, x, y, text.Print(a), text.Print(b))
			}
		}
	}
	t.Log(seen)
	for _, what := range []string{"refactored equal", "mutated different"} {
		if seen[what] < n/10 {
			t.Errorf("%s only %d times: the test shows little", what, seen[what])
		}
	}
}
