package code_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/code"
	"github.com/mcp-pif/mcp-pif/core/internal/vectors"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/prim/gen"
)

// sound compiles a source in all the ways there are, alone and as what eval
// links into a machine that has code already, and verifies each.
func sound(t *testing.T, src string) {
	t.Helper()
	p, f := parse.Code([]byte(src), parse.Options{})
	if f != nil {
		return // it is never compiled
	}
	for _, o := range []code.Options{
		{},
		{Tool: true},
		{Eval: true, Depth: 3, Scope: []string{"x", "unused", "acc", "n", "x"}, Base: 40 * code.InstrSize, ConstBase: 7, ScopeBase: 2},
	} {
		u := code.Compile(p.Term, o)
		if problems := verify(u, o, len(src)); len(problems) > 0 {
			t.Fatalf("%.2000s\n%+v\n%s", src, o, strings.Join(problems, "\n"))
		}
	}
}

// each calls visit with every line of the files of a pattern below core.
func each[T any](t *testing.T, pattern string, visit func(*T)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files %s (%v)", pattern, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		must.NoError(t, err)
		for d := json.NewDecoder(strings.NewReader(string(text))); d.More(); {
			v := new(T)
			if err := d.Decode(v); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			visit(v)
		}
	}
}

func TestCorpusIsSound(t *testing.T) {
	programs := 0
	each(t, "testdata/corpus/*.jsonl", func(c *vectors.Case) {
		for _, tool := range c.Setup() {
			sound(t, string(tool.Source()))
		}
		if _, src := c.Program(); src != nil {
			sound(t, string(src))
		}
		if len(c.Input) > 0 {
			sound(t, string(c.Input))
		}
		programs++
	})
	each(t, "testdata/bench/*.json", func(p *struct{ Code json.RawMessage }) {
		sound(t, string(p.Code))
		programs++
	})
	if programs < 500 {
		t.Errorf("only %d programs", programs)
	}
}

func TestGeneratedIsSound(t *testing.T) {
	n := must.Drawn(1_000, 150_000)
	for seed := range n {
		r := rand.New(rand.NewPCG(uint64(seed), 13))
		o := gen.Options{Wrong: []int{0, 30}[r.IntN(2)], Effects: r.IntN(4) == 0, Records: r.IntN(2) == 0, Tool: r.IntN(2) == 0}
		if size := 1 + r.IntN(200); r.IntN(2) == 0 {
			sound(t, gen.Term(r.IntN, size, o))
		} else {
			src, _ := gen.Function(r.IntN, size, o)
			sound(t, src)
		}
	}
}

// nest puts n of a part around an inner term; $ is where the next goes.
func nest(n int, part, inner string) string {
	before, after, _ := strings.Cut(part, "$")
	return strings.Repeat(before, n) + inner + strings.Repeat(after, n)
}

// numbered joins what format gives for v0 to v(n-1).
func numbered(n int, sep, format string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = strings.ReplaceAll(format, "#", "v"+strconv.Itoa(i))
	}
	return strings.Join(parts, sep)
}

// lets binds v0 to v(n-1) around an inner term.
func lets(n int, inner string) string {
	return numbered(n, "", `{"app":{"arg":{"add":[1,{"var":"in"}]},"func":{"lam":"#","body":`) + inner + strings.Repeat("}}}", n)
}

// shapes are programs that need the compiler's special cases, many of them at
// the edge of what fits.
var shapes = map[string]string{
	"registers run out in operands":     nest(300, `{"add":[1,$]}`, `{"self":true}`),
	"registers run out on the left":     nest(300, `{"mul":[$,{"var":"in"}]}`, `2`),
	"registers run out in a condition":  nest(300, `{"if":{"cond":{"and":[$,{"lt":[1,{"head":[2]}]}]},"then":true,"else":false}}`, `{"app":[{"self":true},1]}`),
	"registers run out in a tail call":  lets(230, `{"app":[{"self":true},{"cons":[{"var":"v3"},[{"var":"in"}]]}]}`),
	"registers run out in a fold":       lets(186, `{"fold":[{"lam":"p","body":{"app":[{"self":true},{"add":[{"fst":{"var":"p"}},{"snd":{"var":"p"}}]}]}},0,[{"var":"in"}]]}`),
	"registers run out in an eval":      lets(195, `{"eval":{"quote":{"var":"v7"}}}`),
	"calls inside calls":                nest(300, `{"app":[{"self":true},$]}`, `{"var":"in"}`),
	"calls of many arguments":           `{"app":[{"lam":"f","body":{"app":[{"var":"f"},` + numbered(30, ",", `"#"`) + `]}},` + numbered(30, "", `{"lam":"#","body":`) + `{"var":"v29"}` + strings.Repeat("}", 30) + `]}`,
	"calls of too few arguments":        `{"app":[{"lam":"f","body":[{"app":[{"var":"f"},1]},{"app":[{"var":"f"},1,2]},{"app":[{"var":"f"},{"var":"in"},2,3,4]}]},{"lam":"a","body":{"lam":"b","body":{"lam":"c","body":[{"var":"a"},{"var":"c"},{"var":"in"}]}}}]}`,
	"captures in one instruction":       lets(6, `{"lam":"y","body":[`+numbered(6, ",", `{"var":"#"}`)+`]}`),
	"captures in many":                  lets(100, `{"lam":"y","body":{"lam":"z","body":[`+numbered(100, ",", `{"var":"#"}`)+`]}}`),
	"captures of captures":              nest(40, `{"lam":"y","body":[{"var":"in"},{"var":"y"},$]}`, `{"lam":"z","body":{"add":[{"var":"y"},{"var":"in"}]}}`),
	"a list that doesn't fit":           `[` + numbered(17, ",", `{"add":[{"var":"in"},1]}`) + `]`,
	"a list that does":                  `[` + numbered(16, ",", `{"var":"in"}`) + `]`,
	"a record that doesn't fit":         `{"record":{` + numbered(40, ",", `"#":{"var":"in"}`) + `}}`,
	"a record that does":                `{"record":{` + numbered(16, ",", `"#":{"var":"in"}`) + `}}`,
	"a pair that isn't built":           `{"app":[{"lam":"f","body":{"add":[{"app":[{"var":"f"},{"pair":[1,2]}]},{"app":[{"var":"f"},{"var":"in"}]}]}},{"lam":"p","body":{"sub":[{"fst":{"var":"p"}},{"snd":{"var":"p"}}]}}]}`,
	"a fold in a fold":                  nest(20, `{"fold":[{"lam":"p","body":$},0,[1,{"var":"in"}]]}`, `{"add":[{"fst":{"var":"p"}},{"snd":{"var":"p"}}]}`),
	"a fold that adds its items":        `[{"sum":[1,2,{"var":"in"},3]},{"fold":[{"lam":"p","body":{"add":[{"snd":{"var":"p"}},{"fst":{"var":"p"}}]}},{"var":"in"},[1,2]]},{"sum":{"range":[0,90]}}]`,
	"a fold of a function":              `{"fold":[{"var":"in"},{"var":"in"},[{"var":"in"}]]}`,
	"a fold's body that ends in a call": `{"fold":[{"lam":"p","body":{"if":{"cond":{"lt":[{"snd":{"var":"p"}},2]},"then":{"app":[{"var":"in"},{"fst":{"var":"p"}},3]},"else":{"eval":{"var":"in"}}}}},0,[1]]}`,
	"a function applied to itself":      `{"app":[{"lam":"f","body":{"app":[{"var":"f"},{"var":"f"},5]}},{"lam":"g","body":{"lam":"n","body":{"app":[{"var":"g"},{"var":"g"},{"sub":[{"var":"n"},1]}]}}}]}`,
	// The function is known and looks closed, but the eval in it sees x.
	"an eval in a known function":    `{"lam":"x","body":{"app":[{"lam":"f","body":{"app":[{"var":"f"},1]}},{"lam":"e","body":{"eval":{"quote":{"add":[{"var":"e"},{"var":"x"}]}}}}]}}`,
	"an eval among closed functions": `{"app":[{"lam":"f","body":{"app":[{"lam":"g","body":{"app":[{"var":"g"},{"var":"f"}]}},{"lam":"e","body":{"eval":{"var":"e"}}}]}},{"lam":"y","body":{"var":"y"}}]}`,
	"tools called and branches":      `{"par":[{"call":{"tool":"t","input":{"var":"in"}}},{"add":[{"fs.read":1},{"par":[{"lam":"x","body":{"fs.read":{"var":"x"}}},{"var":"in"}]}]}]}`,
	"functions that act":             `{"app":[{"lam":"f","body":{"eval":{"app":[{"var":"f"},{"var":"in"},2]},"with":["fs"]}},{"lam":["a","b"],"body":{"lam":"c","body":{"fs.read":{"in":"x","a":{"var":"c"},"b":{"var":"a"}}}}}]}`,
	"a tool of two that acts":        `{"lam":["a","b"],"body":{"if":{"cond":{"eq":[{"var":"a"},0]},"then":{"eval":{"quote":{"fs.read":1}}},"else":{"app":[{"self":true},0,{"call":{"tool":"t","input":{"app":[{"self":true},1,{"var":"b"}]}}}]}}}}`,
	"effects between":                `{"add":[{"fs.read":{"var":"in"}},{"fs.read":[{"var":"in"},{"fs.read":1}]}]}`,
	"tries in each other":            nest(30, `{"try":[1,$]}`, `{"add":[{"var":"in"},{"head":[]}]}`),
	"a try before a call":            `{"app":[{"self":true},{"if":{"cond":{"has":[{"try":{"div":[1,{"var":"in"}]}},"ok"]},"then":{"var":"in"},"else":0}}]}`,
	"a try of a call":                `{"try":{"fold":[{"lam":"p","body":{"app":[{"self":true},{"div":[{"fst":{"var":"p"}},{"snd":{"var":"p"}}]}]}},{"var":"in"},[2,1,0]]}}`,
	"dead code":                      `{"if":{"cond":true,"then":{"if":{"cond":{"not":false},"then":{"var":"no"},"else":[{"var":"in"}]}},"else":{"app":[{"var":"in"},1]}}}`,
}

// written are shapes in the text form.
var written = map[string]string{
	"halves of a pair that call one another": `let p = ((p, n, a) => if n < 1 then a else (snd(p))(p, n - 1, a + n), (p, n, a) => if n < 1 then [a] else (fst(p))(p, n - 1, a + 1)) in
	  [(fst(p))(p, inp, 0), (snd(p))(p, inp, inp), map(x => (fst(p))(p, x, x), [1, 2])]`,
	"halves with arguments in another order": `let p = ((p, a, b) => if a < 1 then (a, b) else (snd(p))(p, b - 1, a - 1), (p, b, a) => if b < 1 then [a, b] else (fst(p))(p, a - 1, b)) in (fst(p))(p, inp, 7)`,
	"halves that are given more or fewer":    `let p = ((p, n) => if n < 1 then (x => x + n) else (snd(p))(p, n - 1), (p, n, m) => n + m) in [(fst(p))(p, inp), (fst(p))(p, 0, 5)]`,
	"halves of several lengths":              `let p = ((p, n) => if n < 1 then 0 else (snd(p))(p, n - 1, 2), (p, n, m) => if n < 1 then m else (fst(p))(p, n - m)) in (fst(p))(p, inp) + (snd(p))(p, inp, 1)`,
	"a pair of functions that is seen":       `let p = ((p, n) => n + 1, (p, n) => if n < 1 then p else (fst(p))(p, n)) in [(fst(p))(p, inp), (snd(p))(p, 0)]`,
	"a pair of functions that see more":      `let k = inp in let p = ((p, n) => if n < 1 then k else (snd(p))(p, n - 1), (p, n) => (fst(p))(p, n - 1)) in (fst(p))(p, 5)`,
	"the larger of two":                      `[max(inp, 4), min(inp, 4), max(inp, "s"), max(2, max(inp, 1.5)), (x => max(x, inp))(9), fold((a, x) => max(a, min(x, inp)), inp, [3, 1, 5])]`,
	"the larger of two or none":              `[max([inp]), try(max([])), max([inp, inp]), if max(inp, 1) > 2 then 1 else 2]`,
	"comparisons of all kinds":               `map(x => [if compare(x, inp) < 0 then 1 else 2, if compare(inp, x) >= 0 then 1 else 2, if 0 < compare(x, inp) then 1 else 2, compare(x, inp) <= 0, if compare(x, inp) == 0 then 1 else 2], [inp, 3, 2, 4])`,
	"a reversed list and none":               `[reverse([inp, 2, 3]), fold((a, x) => cons(x, a), inp, [1, 2, 3]), reverse(range(0, 70)), fold((a, x) => cons(inp, a), range(0, 40), [1, 2])]`,
	"cons on one way only":                   `fold((a, x) => if x == inp then a else cons(x, a), [], [1, 3, 2, 3])`,
	"fields by constant keys":                `let r = {a: inp, b: [inp], long_key_of_many_bytes: 2} in [r.a, r.b[0], r.long_key_of_many_bytes, get(r, "c", inp), try(r.c), try(inp.a), try({a: {b: inp}}.a.b)]`,
	"pushed":                                 `[fold((a, x) => [...a, x, inp], [], range(0, 50)), try(push(inp, 1)), push(push(range(0, 40), inp), 2)]`,
	"halves by name in a loop":               `let go = ((a, b)) => let x = a in let y = b in if x < 1 then [x, y] else go((y - 1, x - 1)) in go((inp, 9))`,
	"halves by name in a fold":               `fold(((a, x)) => let y = a in let z = x in (z, y), inp, [1, 2, 3])`,
	"an accumulator of two":                  `[fold(((a, b), x) => (b, a + x), (inp, 0), [1, 2, 3]), fold(((a, b), x) => (a + x, [a, ...b]), (1, []), inp), enumerate([inp, 2]), scan((a, x) => a * x, inp, [2, 3]), fold(((a, b), x) => (b, a), (inp, 1), [])]`,
	"an accumulator of two as it is":         `[fold(p => if snd(p) > 1 then (snd(fst(p)), fst(fst(p))) else fst(p), (inp, [inp]), [1, 2, 3]), fold((q, x) => let a = fst(q) in if x == 2 then q else (snd(q), [a, x]), (1, inp), [1, 2, 3, inp])]`,
	"an accumulator of two in functions":     `[fold((q, x) => (map(y => [fst(q), y, x], [x]), snd(q)), (inp, inp), [1, 2]), fold((q, x) => (y => y + snd(q), x), (inp, 1), [1, 2]) |> (r => (fst(r))(5))]`,
	"an accumulator of two in each other":    `fold(((a, b), x) => fold(((c, d), y) => (d + x, c), (a, b), [x, inp]), (inp, 1), [1, 2]) |> (r => [r, fold(((a, b), x) => (fold(((c, d), y) => (d, c + a), (x, inp), [1, 2]), a), (0, 1), [1, 2])])`,
	"an accumulator of two that fails":       `[try(fold(((a, b), x) => (a + x, head(b)), (inp, [1]), [1, 2])), try(fold(((a, b), x) => (a, b), (inp, 2), 5)), try(fold((q, x) => (fst(q) + 1, q), (1, inp), [inp])), fold(((a, b), x) => if a < 3 then (a + 1, (b, x)) else (a, b), (inp, 1), [1, 2])]`,
	"functions of the same length in tails":  `let even = (n, a) => if n < 1 then a else odd(n - 1, n), odd = (n, b) => if n < 1 then [b] else even(b - 2, n - 1) in even(inp, 3)`,
}

func init() {
	for name, src := range written {
		p, err := core.CompileText("", []byte("inp => "+src))
		if err != nil {
			panic(name + ": " + err.Error())
		}
		var code struct{ Body json.RawMessage }
		if err := json.Unmarshal(p.Canonical(), &code); err != nil {
			panic(err)
		}
		shapes[name] = strings.ReplaceAll(string(code.Body), `{"var":"inp"}`, `{"var":"in"}`)
	}
}

func TestShapesAreSound(t *testing.T) {
	for name, src := range shapes {
		t.Run(name, func(t *testing.T) {
			// As an expression, as a function's body, and inside one.
			sound(t, src)
			sound(t, `{"lam":"in","body":`+src+`}`)
			sound(t, `{"lam":"in","body":{"lam":"two","body":{"not":`+src+`}}}`)
			sound(t, `{"app":[{"lam":"in","body":{"app":[{"lam":"k","body":[{"app":[{"var":"k"},1]}]},{"lam":"u","body":`+src+`}]}},7]}`)
		})
	}
}

// TestVerifierSees breaks sound code and wants it to be noticed: one change of
// each kind that the compiler could make by mistake.
func TestVerifierSees(t *testing.T) {
	src := `{"lam":"n","body":{"if":{"cond":{"lt":[{"var":"n"},2]},"then":[{"var":"n"},7],"else":{"add":[{"app":[{"self":true},{"mul":[{"var":"n"},{"var":"n"}]}]},{"length":[{"lam":"y","body":{"var":"n"}}]}]}}}}`
	p, f := parse.Code([]byte(src), parse.Options{Tool: "t"})
	must.NoFault(t, f)
	o := code.Options{Tool: true}
	changes := 0
	for i := range code.Compile(p.Term, o).Code {
		for _, change := range []struct {
			name string
			do   func(*code.Instr) bool
		}{
			{"a jump further", func(in *code.Instr) bool { in.D += code.InstrSize; return in.Op >= code.Jmp && in.Op <= code.JCons }},
			{"a jump nowhere", func(in *code.Instr) bool {
				in.D += 1000 * code.InstrSize
				return in.Op >= code.Jmp && in.Op <= code.TailK
			}},
			{"another function", func(in *code.Instr) bool { in.D += code.InstrSize; return in.Op == code.CallK || in.Op == code.Closure }},
			{"a step too few", func(in *code.Instr) bool {
				in.K++
				return in.Op == code.CallK || in.Op >= code.Ret && in.Op <= code.RetImm
			}},
			{"a depth too much", func(in *code.Instr) bool {
				in.K += code.Depth1
				return in.Op == code.CallK || in.Op >= code.Ret && in.Op <= code.RetImm
			}},
			{"another return word", func(in *code.Instr) bool { in.C++; return in.Op >= code.Ret && in.Op <= code.RetImm }},
			{"a register without value", func(in *code.Instr) bool { in.B += 50; return in.Op >= code.Add && in.Op <= code.Concat }},
			{"a result over the return word", func(in *code.Instr) bool { in.A = 2; return in.Op >= code.LoadI && in.Op <= code.Concat }},
			{"a height too great", func(in *code.Instr) bool { in.D += 20; return in.Op == code.Mul || in.Op == code.List }},
			{"another constant", func(in *code.Instr) bool { in.D += 100; return in.Op == code.LoadK }},
			{"a captured value more", func(in *code.Instr) bool { in.D++; return in.Op == code.LoadCap }},
			{"a register far away", func(in *code.Instr) bool { in.A = 255; return in.Op == code.Move || in.Op == code.LoadI }},
		} {
			u := code.Compile(p.Term, o)
			if !change.do(&u.Code[i]) {
				continue
			}
			changes++
			if len(verify(u, o, len(src))) == 0 {
				t.Errorf("%s at instruction %d %+v isn't noticed", change.name, i, u.Code[i])
			}
		}
	}
	if changes < 12 {
		t.Errorf("only %d changes were tried", changes)
	}
}

// TestLiteralNodes: a long list of literals takes no memory for each while it is compiled.
func TestLiteralNodes(t *testing.T) {
	p, f := parse.Code([]byte(`{"lam":"x","body":[`+strings.Repeat(`[1,true],`, 20_000)+`1]}`), parse.Options{Tool: "t"})
	must.NoFault(t, f)
	if n := testing.AllocsPerRun(1, func() { code.Compile(p.Term, code.Options{Tool: true}) }); n > 300 {
		t.Errorf("%v allocations", n)
	}
}

// TestFarCaptures: a captured value that a Caps instruction has no number for ends the compilation.
func TestFarCaptures(t *testing.T) {
	p, f := parse.Code([]byte(`{"lam":"y","body":{"eval":{"var":"y"}}}`), parse.Options{})
	must.NoFault(t, f)
	o := code.Options{Eval: true}
	for len(o.Scope) < 1<<15 {
		o.Scope = append(o.Scope, "v"+strconv.Itoa(len(o.Scope)))
	}
	u := code.Compile(p.Term, o)
	if problems := verify(u, o, 40); u.Entangled || len(problems) > 0 {
		t.Fatalf("entangled: %t; %s", u.Entangled, strings.Join(problems, "\n"))
	}
	o.Scope = append(o.Scope, "last")
	if u := code.Compile(p.Term, o); !u.Entangled {
		t.Errorf("compiled: %s", strings.Join(verify(u, o, 40), "\n"))
	}
}
