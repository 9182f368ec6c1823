package check_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/prim/gen"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
	"pgregory.net/rapid"
)

// drawType is any type.
func drawType(t *rapid.T, deep int) *check.Type {
	part := func() *check.Type { return drawType(t, deep-1) }
	key := rapid.SampledFrom([]string{"a", "b_1", "kind", "é", "", "a b", `"`, "*", "rec"})
	fields := func() []check.Field {
		var fs []check.Field
		for _, k := range rapid.SliceOfNDistinct(key, 0, 3, func(s string) string { return s }).Draw(t, "keys") {
			fs = append(fs, check.Field{Key: k, Type: part(), Optional: rapid.Bool().Draw(t, "optional")})
		}
		return fs
	}
	n := 9
	if deep > 0 {
		n = 17
	}
	switch rapid.IntRange(0, n).Draw(t, "part") {
	case 0:
		return check.Int
	case 1:
		return check.Dec
	case 2:
		return check.Number
	case 3:
		return check.Bool
	case 4:
		return check.Any
	case 5:
		return check.Data
	case 6:
		return check.JSON
	case 7:
		return check.Nothing
	case 8:
		return check.Dynamic
	case 9:
		return &check.Type{Vars: []string{"a", "b2"}}
	case 10:
		return check.List(part())
	case 11:
		return check.Pair(part(), part())
	case 12:
		return check.Record(fields(), nil)
	case 13:
		return check.Record(fields(), part())
	case 14:
		return check.Function(part(), part(), check.Row{Ops: []string{"call:a b", "fs.read"}, Open: rapid.Bool().Draw(t, "open")})
	case 15:
		whole := *check.List(&check.Type{Vars: []string{"t"}})
		whole.Name = "t"
		whole.Kinds |= check.Unit.Kinds
		return &whole
	case 16:
		f := check.Function(part(), part(), check.Row{})
		f.Kinds |= check.String.Kinds | check.List(nil).Kinds
		f.Item = part()
		return f
	default:
		c := check.Record(fields(), nil)
		return &check.Type{Kinds: codeKind, Gives: part(), Expects: c.Fields, Asks: check.Row{Open: true}}
	}
}

var codeKind = func() (k check.Type) { _ = json.Unmarshal([]byte(`"code"`), &k); return }().Kinds

// TestNotation: what is printed is read back, and printed the same.
func TestNotation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := drawType(t, 3)
		s := typ.String()
		again, err := check.ParseType(s)
		if err != nil {
			t.Fatalf("%v\n%s", err, s)
		}
		if again.String() != s {
			t.Fatalf("%s\nis read as\n%s", s, again)
		}
		if why := check.Within(typ, again); why != "" {
			t.Fatalf("%s is not within itself: %s", s, why)
		}
		b, err := json.Marshal(typ)
		var back check.Type
		if err != nil || json.Unmarshal(b, &back) != nil || back.String() != s {
			t.Fatalf("%s is %s in JSON (%v)", s, b, err)
		}
	})
}

func TestNotationRefuses(t *testing.T) {
	for _, s := range []string{
		"", "in", "int |", "| int", "int int", "int | int", "num | int", "list", "list[", "list[int", "list[int]]", "pair[int]",
		"{a}", "{a:}", "{a: int,}", "{b: int, a: int}", "{a: int, a: int}", "{*: int, a: int}", "(int)", "(int) ->", "int -> int",
		"(int) -> int | (int) -> int", "rec . int", "rec int. int", "rec a. rec b. int", "code[", "code[int;]", "code{fs.read}", "any with", "A", "aa", "?x",
		"(int) ->{} int", "(int) ->{b.c, a.b} int",
	} {
		if got, err := check.ParseType(s); err == nil {
			t.Errorf("%q is read as %s", s, got)
		}
	}
}

func FuzzParseType(f *testing.F) {
	for _, s := range []string{"int", "rec a. unit | pair[num, a]", `((a) ->{fs.read, *} b) -> {a?: int, "é": code[int; x: num], *: any}`, "any with list[num] | ?"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		typ, err := check.ParseType(s)
		if err != nil {
			return
		}
		once := typ.String()
		again, err := check.ParseType(once)
		if err != nil || again.String() != once {
			t.Fatalf("%q is printed as %q, which is read as %v (%v)", s, once, again, err)
		}
	})
}

// TestWithin: subtyping, with the reason where there is none.
func TestWithin(t *testing.T) {
	for _, c := range []struct {
		a, b string
		is   bool
	}{
		{"int", "num", true}, {"num", "int", false}, {"nothing", "int", true}, {"int", "any", true}, {"any", "int", false},
		{"list[int]", "list[num]", true}, {"list[num]", "list[int]", false}, {"list[nothing]", "list[int]", true},
		{"{a: int, b: int}", "{a: int, *: any}", true}, {"{a: int, b: int}", "{a: int}", false}, {"{a?: int}", "{a: int}", false}, {"{a: int}", "{a?: num, b?: int}", true},
		{"{*: int}", "{a: int, *: int}", false}, {"{*: int}", "{a?: num, *: num}", true},
		{"(num) -> int", "(int) -> num", true}, {"(int) -> int", "(num) -> int", false}, {"(int) ->{fs.read} int", "(int) -> int", false}, {"(int) -> int", "(int) ->{*} int", true},
		{"rec a. unit | pair[int, a]", "rec b. unit | pair[num, b]", true}, {"rec a. unit | pair[num, a]", "rec b. unit | pair[int, b]", false},
		{"pair[int, unit]", "rec b. unit | pair[num, b]", true}, {"rec a. (a) -> int", "rec b. (b) -> num", false},
		{"data", "any", true}, {"list[data]", "data", true}, {"list[any]", "data", false}, {"json", "data", true}, {"data", "json", false}, {"() -> int", "", false},
		{"a", "a", true}, {"a", "b", false}, {"a", "any", true}, {"int", "a", false}, {"?", "int", true}, {"int", "?", true},
		{"code[int]", "code", true}, {"code", "code[int]", false}, {"cont[int]", "cont[num]", true},
	} {
		a, errA := check.ParseType(c.a)
		b, errB := check.ParseType(c.b)
		if errA != nil || errB != nil {
			if c.b != "" {
				t.Errorf("%v, %v", errA, errB)
			}
			continue
		}
		if why := check.Within(a, b); (why == "") != c.is {
			t.Errorf("%s within %s: %q", a, b, why)
		}
	}
}

var update = flag.Bool("update", false, "write the types that are inferred into testdata")

// described is a report as testdata/types.txt has it: the type, then a line for
// each diagnostic and each dynamic place.
func described(r *check.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "    %s\n", r.Type)
	for _, d := range r.Diagnostics {
		fmt.Fprintf(&b, "    ! %s at %d:%d: %s\n", d.Kind, d.Line, d.Col, d.Message)
	}
	for _, d := range r.Dynamic {
		fmt.Fprintf(&b, "    ? %s at %d:%d\n", d.Reason, d.Line, d.Col)
	}
	return b.String()
}

// TestTypes: the types of terms in the text form, as the code of a tool.
func TestTypes(t *testing.T) {
	const name = "testdata/types.txt"
	src, err := os.ReadFile(name)
	must.NoError(t, err)
	var out strings.Builder
	n := 0
	for i, entry := range strings.Split(strings.TrimSpace(string(src)), "\n\n") {
		if strings.HasPrefix(entry, "#") {
			out.WriteString(entry + "\n\n")
			continue
		}
		n++
		code, want, _ := strings.Cut(entry, "\n")
		p, f := text.Parse([]byte(code), text.Options{Tool: "t"})
		if f != nil {
			t.Fatalf("entry %d: %v\n%s", i, f, code)
		}
		r := check.Infer(p.Term, p.Source, check.Env{Tool: "t"}, check.Budget{})
		got := described(r)
		if strings.TrimSpace(got) != strings.TrimSpace(want) && !*update {
			t.Errorf("%s\ngot\n%swant\n%s", code, got, want)
		}
		out.WriteString(code + "\n" + got + "\n")
		if again, err := check.ParseType(r.Type.String()); err != nil || again.String() != r.Type.String() {
			t.Errorf("%s\nis read back as %v (%v)", r.Type, again, err)
		}
	}
	if n < 150 {
		t.Errorf("%d terms are few", n)
	}
	if *update {
		must.NoError(t, os.WriteFile(name, []byte(strings.TrimSpace(out.String())+"\n"), 0o644))
	}
}

// TestDerivation: each term's type agrees with those of its operands, by
// subtyping alone.
func TestDerivation(t *testing.T) {
	w := newWorld(t)
	n, derived, terms := must.Drawn(600, 20_000), 0, 0
	for seed := range n {
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
					if d.Type(n).Name == "" { // as above
						within(n, d.Type(item), d.Type(n).Item)
					}
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
	if derived < n/6 || terms < n {
		t.Error("too few: the test shows little")
	}
}

// large is programs of about 10,000 nodes, by what they are made of.
func large() map[string]string {
	repeat := func(n int, before, after, inner string) string {
		return strings.Repeat(before, n) + inner + strings.Repeat(after, n)
	}
	var lets, list, records strings.Builder
	for i := range 1_200 {
		fmt.Fprintf(&lets, `["f%d",{"lam":"x","body":{"add":[{"var":"x"},{"app":[{"var":"f%d"},%d]}]}}],`, i+1, i, i)
		fmt.Fprintf(&list, `{"map":[{"lam":"x","body":{"mul":[{"var":"x"},%d]}},[1,2,3]]},`, i)
		fmt.Fprintf(&records, `{"record":{"id":%d,"name":"n","tags":["a"],"at":{"pair":[1,2]}}},`, i)
	}
	return map[string]string{
		"deep":    `{"lam":"n","body":` + repeat(4_900, `{"add":[1,`, `]}`, `{"var":"n"}`) + `}`,
		"lets":    `{"let":[["f0",{"lam":"x","body":{"var":"x"}}],` + strings.TrimSuffix(lets.String(), ",") + `],"in":{"app":[{"var":"f1200"},1]}}`,
		"maps":    `[` + strings.TrimSuffix(list.String(), ",") + `]`,
		"records": `{"map":[{"lam":"r","body":{"get":[{"var":"r"},"id"]}},[` + strings.TrimSuffix(records.String(), ",") + `]]}`,
		"matches": `{"lam":"x","body":` + repeat(350, `{"match":{"var":"x"},"with":[[{"pair":[{"var":"a"},"_"]},{"var":"a"}],[[{"var":"h"},{"rest":"_"}],{"var":"h"}],["_",`, `]]}`, `0`) + `}`,
		"pairs":   `{"let":[["p0",{"pair":[1,2]}],` + doubling(60) + `],"in":{"var":"p60"}}`,
	}
}

// doubling is pairs of the same pair, over and over: a type of 2^n parts.
func doubling(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `["p%d",{"pair":[{"var":"p%d"},{"var":"p%[2]d"}]}],`, i+1, i)
	}
	return strings.TrimSuffix(b.String(), ",")
}

func size(t term.Term) int {
	n := 1
	term.Children(t, func(c term.Term) bool { n += size(c); return true })
	return n
}

func BenchmarkInfer(b *testing.B) {
	for name, src := range large() {
		b.Run(name, func(b *testing.B) {
			p, f := parse.Code([]byte(src), parse.Options{})
			must.NoFault(b, f)
			var r *check.Report
			for b.Loop() {
				r = check.Infer(p.Term, p.Source, check.Env{}, check.Budget{})
			}
			b.ReportMetric(float64(size(p.Term)), "nodes")
			b.ReportMetric(float64(r.Steps), "steps")
		})
	}
}

// TestReadme: the types in README.md are those that are inferred.
func TestReadme(t *testing.T) {
	src, err := os.ReadFile("README.md")
	must.NoError(t, err)
	_, block, _ := strings.Cut(string(src), "\n```types\n")
	block, _, _ = strings.Cut(block, "\n```")
	var code string
	var got, want []string
	n := 0
	compare := func() {
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s\ngot  %q\nwant %q", code, got, want)
		}
	}
	for _, line := range strings.Split(block, "\n") {
		if strings.HasPrefix(line, ": ") || strings.HasPrefix(line, "? ") || strings.HasPrefix(line, "! ") {
			want = append(want, line)
			continue
		}
		compare()
		code, got, want = line, nil, nil
		n++
		p, f := text.Parse([]byte(code), text.Options{Tool: "t"})
		if f != nil {
			t.Fatalf("%v\n%s", f, code)
		}
		r := check.Infer(p.Term, p.Source, check.Env{Tool: "t"}, check.Budget{})
		got = append(got, ": "+r.Type.String())
		for _, d := range r.Dynamic {
			got = append(got, fmt.Sprintf("? %s at %d:%d", d.Reason, d.Line, d.Col))
		}
		for _, d := range r.Diagnostics {
			got = append(got, fmt.Sprintf("! %s at %d:%d", d.Kind, d.Line, d.Col))
		}
	}
	compare()
	if n < 5 {
		t.Errorf("%d types are few: is the block still marked ```types?", n)
	}
}
