package core_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// A textForm is what the text form has beyond one spelling of each operation, and the JSON
// that it is. #n1 is a hole for an integer, #b for a truth value, #l for a list of integers,
// #s for a string, #r for a record; with ^ what is put there may name @x. @x and the like
// are names that nothing else has. The letter of kind is what it gives.
type textForm struct{ kind, text, json string }

var textForms = []textForm{
	{"n", `#b1 ? #n1 : #n2`, `{"if":{"cond":#b1,"then":#n1,"else":#n2}}`},
	{"n", `#n1 if #b1 else #n2`, `{"if":{"cond":#b1,"then":#n1,"else":#n2}}`},
	{"n", `if #b1 { #n1 } else { #n2 }`, `{"if":{"cond":#b1,"then":#n1,"else":#n2}}`},
	{"n", `(@x => { if #b1^ { return #n1^ }; return #n2^ })(#n3)`, `{"app":[{"lam":"@x","body":{"if":{"cond":#b1^,"then":#n1^,"else":#n2^}}},#n3]}`},
	{"n", `#n1 + #n2`, `{"add":[#n1,#n2]}`},
	{"n", `#n1 ** 2 - #n2`, `{"sub":[{"pow":[#n1,2]},#n2]}`},
	{"n", `-(@x => #n1^)(#n2)`, `{"sub":[0,{"app":[{"lam":"@x","body":#n1^},#n2]}]}`},
	{"n", `#l1[#n1]`, `{"at":[#l1,#n1]}`},
	{"n", `#l1[-1]`, `{"at":[#l1,-1]}`},
	{"n", `len(#l1[#n1:])`, `{"length":{"at":[#l1,#n1,null]}}`},
	{"n", `#l1[:2].size()`, `{"length":{"at":[#l1,null,2]}}`},
	{"n", `max(#n1, #n2, 3)`, `{"max":[#n1,#n2,3]}`},
	{"n", `Math.min(#n1, #n2)`, `{"min":[#n1,#n2]}`},
	{"n", `{ let @x = #n1; const @y = #n2^; #n3^ + @y }`, `{"let":[["@x",#n1],["@y",#n2^]],"in":{"add":[#n3^,{"var":"@y"}]}}`},
	{"n", `let (@y, @x) = (#s1, #n1) in #n2^`, `{"let":[[{"pair":[{"var":"@y"},{"var":"@x"}]},{"pair":[#s1,#n1]}]],"in":#n2^}`},
	{"n", `let {@x} = {@x: #n1} in #n2^`, `{"let":[[{"record":{"@x":{"var":"@x"}}},{"record":{"@x":#n1}}]],"in":#n2^}`},
	{"n", `fold((@y, @x) => @y + #n1^, #n2, #l1)`, `{"fold":[{"lam":{"pair":[{"var":"@y"},{"var":"@x"}]},"body":{"add":[{"var":"@y"},#n1^]}},#n2,#l1]}`},
	{"n", `#l1.reduce((@y, @z, @x) => @y + #n1^, #n2)`, `{"fold":[{"lam":{"pair":[{"var":"@y"},{"pair":[{"var":"@x"},{"var":"@z"}]}]},"body":{"add":[{"var":"@y"},#n1^]}},#n2,{"enumerate":#l1}]}`},
	{"n", `let @f = (@y, @x) => #n1^ - @y in fold(@f, #n2, #l1)`, `{"let":[["@f",{"lam":["@y","@x"],"body":{"sub":[#n1^,{"var":"@y"}]}}]],"in":{"fold":[{"lam":"pair","body":{"app":[{"var":"@f"},{"fst":{"var":"pair"}},{"snd":{"var":"pair"}}]}},#n2,#l1]}}`},
	{"n", `fold(add, #n1, #l1)`, `{"fold":[{"lam":{"pair":[{"var":"a"},{"var":"b"}]},"body":{"add":[{"var":"a"},{"var":"b"}]}},#n1,#l1]}`},
	{"n", `match #l1 { [] | [_] => #n1; [@x, ...@y] if #b1^ => #n2^; _ => 7 }`, `{"match":#l1,"with":[[{"or":[[],["_"]]},#n1],[[{"var":"@x"},{"rest":{"var":"@y"}}],{"if":#b1^},#n2^],["_",7]]}`},
	{"n", `let @f = @x => if @x <= 0 then #n1^ else @f(@x - 1) in @f(#n2)`, `{"letrec":[["@f",{"lam":"@x","body":{"if":{"cond":{"lte":[{"var":"@x"},0]},"then":#n1^,"else":{"app":[{"var":"@f"},{"sub":[{"var":"@x"},1]}]}}}}]],"in":{"app":[{"var":"@f"},#n2]}}`},
	{"n", `let @f = @x => if @x <= 0 then 0 else @g(@x - 1) in let @g = @y => if @y <= 0 then #n1 else @f(@y - 1) in @f(#n2)`, mutual},
	{"n", `let rec @f = @x => if @x <= 0 then 0 else @g(@x - 1) and @g = @y => if @y <= 0 then #n1 else @f(@y - 1) in @f(#n2)`, mutual},
	{"n", "{ let @f = @x => if @x <= 0 then 0 else @g(@x - 1)\n let @g = @y => if @y <= 0 then #n1 else @f(@y - 1)\n @f(#n2) }", mutual},
	{"n", `let @r = #r1 in length({...@r, k: #n1}.k) + length(keys(@r))`, `{"let":[["@r",#r1]],"in":{"add":[{"length":{"get":[{"put":[{"var":"@r"},"k",#n1]},"k"]}},{"length":{"keys":{"var":"@r"}}}]}}`},
	{"n", `get({[#s1]: #n1, ...#r1}, #s1)`, `{"get":[{"merge":[{"put":[{"record":{}},#s1,#n1]},#r1]},#s1]}`},
	{"n", `ord(#s1) |> to_text |> length`, `{"length":{"to_text":{"at":[{"codepoints":#s1},0]}}}`},
	{"b", `#b1 && #b2 || !#b3`, `{"or":[{"and":[#b1,#b2]},{"not":#b3}]}`},
	{"b", `#n1 === #n2`, `{"equal":[#n1,#n2]}`},
	{"b", `#l1 != #l2`, `{"not":{"equal":[#l1,#l2]}}`},
	{"b", `#n1 >= #n2`, `{"gte":[#n1,#n2]}`},
	{"b", `#s1 < "n"`, `{"lt":[{"compare":[#s1,"n"]},0]}`},
	{"b", `#l1.includes(#n1)`, `{"contains":[#l1,#n1]}`},
	{"b", `any(@x > #n1^ for @x in #l1)`, `{"any":[{"lam":"@x","body":{"gt":[{"var":"@x"},#n1^]}},#l1]}`},
	{"l", `[...#l1, #n1]`, `{"push":[#l1,#n1]}`},
	{"l", `[#n1, ...#l1]`, `{"cons":[#n1,#l1]}`},
	{"l", `[...#l1, ...#l2]`, `{"append":[#l1,#l2]}`},
	{"l", `#l1 ++ [#n1]`, `{"push":[#l1,#n1]}`},
	{"l", `[#n1^ + 1 for @x in #l1 if #b1^]`, `{"map":[{"lam":"@x","body":{"add":[#n1^,1]}},{"filter":[{"lam":"@x","body":#b1^},#l1]}]}`},
	{"l", `#l1.filter(@x => #b1^).map(@y => @y)`, `{"map":[{"lam":"@y","body":{"var":"@y"}},{"filter":[{"lam":"@x","body":#b1^},#l1]}]}`},
	{"l", `zip(#l1, #l2) |> map((@y, @x) => #n1^)`, `{"map":[{"lam":{"pair":[{"var":"@y"},{"var":"@x"}]},"body":#n1^},{"zip":[#l1,#l2]}]}`},
	{"l", `let @p = enumerate(#l1) in map(([@y, @x]) => #n1^, sort_by((@i, @x) => #n2^, @p))`, `{"let":[["@p",{"enumerate":#l1}]],"in":{"map":[{"lam":{"pair":[{"var":"@y"},{"var":"@x"}]},"body":#n1^},{"sort_by":[{"lam":{"pair":[{"var":"@i"},{"var":"@x"}]},"body":#n2^},{"var":"@p"}]}]}}`},
	{"l", `map(ord, chars(#s1))`, `{"map":[{"lam":"x","body":{"at":[{"codepoints":{"var":"x"}},0]}},{"chars":#s1}]}`},
	{"l", `range(4)`, `{"range":[0,4]}`},
	{"s", `$"a{#n1}b{#s1}"`, `{"concat":[{"concat":[{"concat":["a",{"to_text":#n1}]},"b"]},{"to_text":#s1}]}`},
	{"s", `"n: " + #n1`, `{"concat":["n: ",{"to_text":#n1}]}`},
	{"s", `fold((@y, @z) => @y < @z ? @y + @z : @z, "", map(to_text, #l1))`, `{"fold":[{"lam":{"pair":[{"var":"@y"},{"var":"@z"}]},"body":{"if":{"cond":{"lt":[{"compare":[{"var":"@y"},{"var":"@z"}]},0]},"then":{"concat":[{"var":"@y"},{"var":"@z"}]},"else":{"var":"@z"}}}},"",{"map":[{"lam":"x","body":{"to_text":{"var":"x"}}},#l1]}]}`},
	{"l", `#l1.reduce((@y, @z) => @y ++ [@z], [])`, `{"fold":[{"lam":{"pair":[{"var":"@y"},{"var":"@z"}]},"body":{"push":[{"var":"@y"},{"var":"@z"}]}},[],#l1]}`},
	{"s", `#s1.toUpperCase() ++ chr(65)`, `{"concat":[{"upper":#s1},{"from_codepoints":[65]}]}`},
	{"s", `to_text(sum(#l1) / length(#l2))`, `{"to_text":{"ratio":[{"sum":#l1},{"length":#l2}]}}`},
	{"s", `let @y = length(#l1) in to_text(sum(#l1) / @y + round(#n1 * 100) / 100)`, `{"let":[["@y",{"length":#l1}]],"in":{"to_text":{"add":[{"ratio":[{"sum":#l1},{"var":"@y"}]},{"div_dec":[{"round":[{"mul":[#n1,100]}]},100,2,"half_up"]}]}}}`},
	{"l", `#l1.sort((@x, @y) => @y - @x)`, `{"sort_by":[{"lam":"@y","body":{"sub":[0,{"var":"@y"}]}},#l1]}`},
	{"l", `let @l = #l1 in @l.map((@x, i) => @x + i)`, `{"let":[["@l",#l1]],"in":{"map":[{"lam":{"pair":[{"var":"place"},{"var":"item"}]},"body":{"app":[{"lam":["@x","i"],"body":{"add":[{"var":"@x"},{"var":"i"}]}},{"if":{"cond":{"equal":[{"type_of":{"var":"item"}},"pair"]},"then":{"fst":{"var":"item"}},"else":{"var":"item"}}},{"if":{"cond":{"equal":[{"type_of":{"var":"item"}},"pair"]},"then":{"snd":{"var":"item"}},"else":{"var":"place"}}}]}},{"enumerate":{"var":"@l"}}]}}`},
	{"n", `(@x => { if #b1^ then raise("no"); #n1^ })(#n2)`, `{"app":[{"lam":"@x","body":{"if":{"cond":#b1^,"then":{"raise":"no"},"else":#n1^}}},#n2]}`},
	{"s", `table([{z: #n1, a: #s1}])`, `{"table":[[{"record":{"a":#s1,"z":#n1}}],["z","a"]]}`},
	{"s", `to_text((#n1) ** 0.5)`, `{"to_text":{"sqrt":[#n1]}}`},
	{"n", `let @f = \@x -> if @x <= 0 then #n1^ else @f(@x - 1) in @f(#n2)`, `{"letrec":[["@f",{"lam":"@x","body":{"if":{"cond":{"lte":[{"var":"@x"},0]},"then":#n1^,"else":{"app":[{"var":"@f"},{"sub":[{"var":"@x"},1]}]}}}}]],"in":{"app":[{"var":"@f"},#n2]}}`},
	{"n", `fold(\@y @x -> @y + #n1^, #n2, #l1)`, `{"fold":[{"lam":{"pair":[{"var":"@y"},{"var":"@x"}]},"body":{"add":[{"var":"@y"},#n1^]}},#n2,#l1]}`},
	{"n", `#l1.iter().fold(#n2, |@y, @x| @y + #n1^)`, `{"fold":[{"lam":{"pair":[{"var":"@y"},{"var":"@x"}]},"body":{"add":[{"var":"@y"},#n1^]}},#n2,#l1]}`},
	{"l", `#l1.iter().map(|@x| @x + #n1^).collect()`, `{"map":[{"lam":"@x","body":{"add":[{"var":"@x"},#n1^]}},#l1]}`},
	{"l", `map(lambda @x: @x + #n1^, #l1)`, `{"map":[{"lam":"@x","body":{"add":[{"var":"@x"},#n1^]}},#l1]}`},
	{"l", `sorted(#l1, key=lambda @x: -@x, reverse=True)`, `{"reverse":{"sort_by":[{"lam":"@x","body":{"sub":[0,{"var":"@x"}]}},{"reverse":#l1}]}}`},
	{"l", `#l1.sort(reverse=True)`, `{"reverse":{"sort":#l1}}`},
	{"n", `max(#n1, #n2, key=@x -> -@x)`, `{"max_by":[{"lam":"@x","body":{"sub":[0,{"var":"@x"}]}},[#n1,#n2]]}`},
	{"n", `{ @x = #n1; mut = #n2^; @y = mut; @x + @y }`, `{"let":[["@x",#n1],["mut",#n2^],["@y",{"var":"mut"}]],"in":{"add":[{"var":"@x"},{"var":"@y"}]}}`},
	{"b", `#n1 is None`, `{"equal":[#n1,null]}`},
	{"b", `#s1 is not None`, `{"not":{"equal":[#s1,null]}}`},
	{"l", `[#n1] * #n2`, `{"repeat":[#n2,#n1]}`},
	{"s", `'a"b' ++ f'{#n1} it\'s'`, `{"concat":["a\"b",{"concat":[{"to_text":#n1}," it's"]}]}`},
	{"n", `match #n1 { None => 1; @x -> @x }`, `{"match":#n1,"with":[[null,1],[{"var":"@x"},{"var":"@x"}]]}`},
	{"s", `"ab" * #n1`, `{"repeat_text":["ab",#n1]}`},
	{"r", `from_entries(map(@x => [to_text(@x), #n1^], #l1))`, `{"from_entries":{"map":[{"lam":"@x","body":[{"to_text":{"var":"@x"}},#n1^]},#l1]}}`},
	{"n", `max(...#l1, #n1)`, `{"max":{"push":[#l1,#n1]}}`},
	{"r", `{...#r1, a: #n1}`, `{"put":[#r1,"a",#n1]}`},
	{"r", `{to_text(@x): #n1^ for @x in #l1}`, `{"from_entries":{"map":[{"lam":"@x","body":{"pair":[{"to_text":{"var":"@x"}},#n1^]}},#l1]}}`},
}

const mutual = `{"letrec":[["@f",{"lam":"@x","body":{"if":{"cond":{"lte":[{"var":"@x"},0]},"then":0,"else":{"app":[{"var":"@g"},{"sub":[{"var":"@x"},1]}]}}}}],["@g",{"lam":"@y","body":{"if":{"cond":{"lte":[{"var":"@y"},0]},"then":#n1,"else":{"app":[{"var":"@f"},{"sub":[{"var":"@y"},1]}]}}}}]],"in":{"app":[{"var":"@f"},#n2]}}`

var textAtoms = map[string][]textForm{
	"n": {{"n", `3`, `3`}, {"n", `-1`, `-1`}, {"n", `0`, `0`}}, "b": {{"b", `true`, `true`}, {"b", `false`, `false`}},
	"l": {{"l", `[]`, `[]`}, {"l", `[5, 2, 8]`, `[5,2,8]`}}, "s": {{"s", `"ab"`, `"ab"`}, {"s", `""`, `""`}}, "r": {{"r", `{a: 1}`, `{"record":{"a":1}}`}},
}

var hole = regexp.MustCompile(`#([nblsr])\d(\^?)|@([a-z])`)

// drawTextForm draws a program of such forms, in text and in JSON; vars is what it may name.
func drawTextForm(r *rand.Rand, kind string, size int, vars []string, fresh *int) textForm {
	if size <= 0 || r.IntN(5) == 0 {
		if kind == "n" && len(vars) > 0 && r.IntN(2) == 0 {
			v := vars[r.IntN(len(vars))]
			return textForm{kind, v, `{"var":"` + v + `"}`}
		}
		return textAtoms[kind][r.IntN(len(textAtoms[kind]))]
	}
	f := textForms[r.IntN(len(textForms))]
	for f.kind != kind {
		f = textForms[r.IntN(len(textForms))]
	}
	filled := map[string]textForm{}
	name := func(letter string) string {
		if _, ok := filled[letter]; !ok {
			*fresh++
			filled[letter] = textForm{text: fmt.Sprintf("%s%d", letter, *fresh)}
		}
		return filled[letter].text
	}
	fill := func(src string, part func(textForm) string) string {
		return hole.ReplaceAllStringFunc(src, func(h string) string {
			m := hole.FindStringSubmatch(h)
			if m[3] != "" {
				return name(m[3])
			}
			if _, ok := filled[h]; !ok {
				inside := vars
				if m[2] != "" {
					inside = append(vars[:len(vars):len(vars)], name("x"))
				}
				filled[h] = drawTextForm(r, m[1], size-1-r.IntN(3), inside, fresh)
			}
			return part(filled[h])
		})
	}
	in := fill(f.text, func(f textForm) string {
		if strings.ContainsAny(f.text, " .*-") {
			return "(" + f.text + ")"
		}
		return f.text
	})
	return textForm{kind, in, fill(f.json, func(f textForm) string { return f.json })}
}

// TestTextForms draws programs of what the text form has beyond the operations, which are
// the term that their JSON is, are printed so that they are read back, and on which the
// evaluators agree.
func TestTextForms(t *testing.T) {
	n, used := must.Drawn(300, 100_000), 0
	for seed := range n {
		r := rand.New(rand.NewPCG(uint64(seed), 18))
		f := drawTextForm(r, "nblsr"[seed%5:seed%5+1], 1+r.IntN(6), nil, new(int))
		p, fault := text.Parse([]byte(f.text), text.Options{})
		if fault != nil {
			t.Fatalf("seed %d: %v\n%s", seed, fault, f.text)
		}
		q, fault := parse.Code([]byte(f.json), parse.Options{})
		if fault != nil {
			t.Fatalf("seed %d: %v\n%s", seed, fault, f.json)
		}
		canonical := string(text.Canonical(p.Term))
		if want := string(text.Canonical(q.Term)); canonical != want {
			t.Fatalf("seed %d: %s\nis  %s\nnot %s", seed, f.text, canonical, want)
		}
		printed := text.Print(p.Term)
		if again, fault := text.Parse(printed, text.Options{}); fault != nil || string(text.Canonical(again.Term)) != canonical {
			t.Fatalf("seed %d: %s\nis printed as %s: %v", seed, f.text, printed, fault)
		}
		if _, o := (trial{code: canonical, input: "null", budgets: core.Budgets{Steps: 20_000, Memory: 4 << 20, Depth: 200}}).compare(t); o.Kind == "" {
			used++
		}
	}
	if used < n/4 {
		t.Errorf("only %d of %d have a result", used, n)
	}
	t.Logf("%d of %d have a result", used, n)
}

// TestInsteadRuns: the code that a hint has for what there is no operation for runs, alike on both
// evaluators.
func TestInsteadRuns(t *testing.T) {
	_, code, ok := strings.Cut(prim.Instead("log"), "write ")
	code, _, cut := strings.Cut(code, " for a to the power")
	if !ok || !cut {
		t.Fatal(prim.Instead("log"))
	}
	for input, want := range map[string]string{
		`{"a":2,"b":0.5}`: "1.4142135624", `{"a":1.05,"b":0.0833333333333333}`: "1.0040741238", `{"a":1000,"b":-0.3333333333333333}`: "0.1000000000", `{"a":0.25,"b":1.5}`: "0.1250000000",
	} {
		p := program{code: "({a, b}) => " + code, text: true, input: input}
		if e, n := p.onEval(t), p.onNaive(t); e.result != want || n.result != want || e.steps != n.steps {
			t.Errorf("%s gives %v on eval, %v on naive", input, e, n)
		}
	}
}

// TestInsteadOfEffects: what is said to write in place of an operation on files or keys that there isn't is code.
func TestInsteadOfEffects(t *testing.T) {
	for _, name := range []string{
		"fs.copy", "fs.delete", "fs.rename", "fs.exists", "fs.ls", "fs.read_file", "fs.write_file", "kv.set", "kv.has", "kv.keys", "kv.remove", "kv.incr", "clock.time", "clock.today",
		"uuid", "shuffle", "random.int", "random.choice", "sleep", "http.get", "escape_html", "par_map",
	} {
		code, ok := strings.CutPrefix(prim.Instead(name), "write ")
		for _, end := range []string{"; of what", " for ", ", with an effect", ", an effect", ", .body"} {
			code, _, _ = strings.Cut(code, end)
		}
		if _, err := core.Compile([]byte("(a, b, f, from, k, n, p, s, to, u, v, xs) => " + code)); !ok || err != nil {
			t.Errorf("%s: %s: %v", name, prim.Instead(name), err)
		}
	}
}

// TestInsteadOfRandom: the code that is told for what there is no operation gives what it is told for, of any seed.
func TestInsteadOfRandom(t *testing.T) {
	for _, c := range []struct{ name, after, end, around, want string }{
		{"escape_html", "write ", "", `let s = "<a b='\"&\"'>" in %s`, `"&lt;a b=&#39;&quot;&amp;&quot;&#39;&gt;"`},
		{"uuid", "write ", ", with an effect", `re_match(%s, "^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}$")`, "true"},
		{"shuffle", "write ", " for xs in", `let xs = range(0, 49), ys = (%s) in sort(ys) == xs and ys != xs`, "true"},
		{"random.int", "; ", " for 1,000", `let xs = (%s), n = count_by(x => x, xs) in (length(xs), sort(unique(xs)), all(k => n[to_text(k)] > 120, range(1, 7)))`, `[1000,[1,2,3,4,5,6],true]`},
	} {
		_, code, ok := strings.Cut(prim.Instead(c.name), c.after)
		if c.end != "" {
			code, _, ok = strings.Cut(code, c.end)
		}
		for _, seed := range []string{"0", "7", "1234567890123456789012345678901234567890123456789012345678901234567890"} {
			p := program{code: "({a}) => " + fmt.Sprintf(c.around, strings.TrimPrefix(strings.ReplaceAll(code, "!random.seed({})", seed), "write ")), text: true, input: `{"a":1}`}
			if e, n := p.onEval(t), p.onNaive(t); !ok || e.result != c.want || n.result != c.want {
				t.Errorf("%s gives %v on eval, %v on naive", p.code, e, n)
			}
		}
	}
}

// TestInlineSelf: self in code that is a function and no tool's is that function, alike on both
// evaluators, for several parameters too; in quoted code, and elsewhere, it is none.
func TestInlineSelf(t *testing.T) {
	for _, c := range []struct{ code, input, want string }{
		{`n => if n <= 1 then 1 else n * self(n - 1)`, `5`, `120`},
		{`({k}) => if k == 0 then 0 else 1 + self({k: k - 1})`, `{"k":3}`, `3`},
		{`xs => match xs { [] => []; [p, ...r] => self(filter(x => x < p, r)) ++ [p] ++ self(filter(x => x >= p, r)) }`, `[3,1,2]`, `[1,2,3]`},
		{`|n| if n < 2 { n } else { self(n - 1) + self(n - 2) }`, `9`, `34`},
		{`n => eval('{self})`, `1`, ``},
		{`self(1)`, `null`, ``},
		{`(n => self)(1)`, `null`, ``},
	} {
		p := program{code: c.code, inline: true, input: c.input}
		e, n := p.onEval(t), p.onNaive(t)
		if e.steps != n.steps || e.fault == nil && e.result != c.want || n.result != e.result || (e.fault == nil) == (c.want == "") {
			t.Errorf("%s gives %v on eval, %v on naive", c.code, e, n)
		}
	}
	p := program{code: `n => if n <= 1 then 1 else self(n - 1)`, text: true, input: `5`}
	if e := p.onEval(t); e.fault == nil {
		t.Errorf("outside a run of the server self gives %v", e)
	}
}

// TestAsElsewhere: what Python and JavaScript write gives what it gives there, alike on both
// evaluators; under Semantics 13 what it gave then.
func TestAsElsewhere(t *testing.T) {
	for _, c := range []struct{ code, input, want, before string }{
		{`n => f'{{"a": {n}}}'`, `5`, `"{\"a\": 5}"`, `"{\"a\":{\"n\":5}}"`},
		{`x => f"{{x}} {{{x}}} \{}}" ++ $"{({a: x}).a}"`, `1`, `"{x} {1} {}1"`, ``},
		{`x => f"{x:,}|{x:,f}|{x:f}|{x:.1f}"`, `1234.56`, `"1,234.56|1,234.560000|1234.560000|1234.6"`, ``},
		{`x => f"{x:,}|{x:,d}|{x:10,}"`, `-1234567`, `"-1,234,567|-1,234,567|-1,234,567"`, ``},
		{`x => f"{x:05d}|{x:08.2f}|{x:05}|{x:6}|{x:<6}|{x:06}|{x:>06}"`, `-42`, `"-0042|-0042.00|-0042|   -42|-42   |-00042|000-42"`, `"00-42|00-42.00|00-42|   -42|-42   |000-42|000-42"`},
		{`s => f"{s:6}|{s:6s}|{s:>6}|{s:<6}|{str(s):6}|{2:3}|"`, `"ab"`, `"ab    |ab    |    ab|ab    |ab    |  2|"`, ``},
		{`x => f"{x / 3:.2f}|{x / 3:07.2f}"`, `10`, `"3.33|0003.33"`, ``},
		{`s => [s.find("a", 2), s.find("b", 1), s.find("b", 2), s.find("a")]`, `"abca"`, `[3,1,-1,0]`, `[0,1,1,0]`},
		{`xs => xs.reduce((acc, x, i) => acc + x * i)`, `[1,2,3]`, `9`, `4`},
		{`xs => xs.reduce((acc, x, i) => acc + x * i, 0)`, `[1,2,3]`, `8`, `8`},
		{`r => fold((acc, k, v) => acc + v, 0, entries(r))`, `{"a":10,"b":20}`, `30`, `1`},
		{`xs => fold((acc, i, x) => acc + i * x, 0, enumerate(xs))`, `[1,2,3]`, `8`, ``},
		{`xs => fold((acc, a, b) => acc + a * b, 0, zip(xs, xs))`, `[1,2,3]`, `14`, ``},
		{`r => Object.entries(r).reduce((acc, [k, v], i) => acc + v * i, 0)`, `{"a":10,"b":20}`, `20`, ``},
		{`xs => fold((acc, x, i) => acc + snd(x) * i, 0, zip(xs, xs))`, `[1,2,3]`, `8`, `8`},
		{`xs => filter((a, b) => b > 2, xs)`, `[[1,2],[3,4]]`, `[[3,4]]`, ``},
		{`xs => sort_by((a, b) => -b, xs)`, `[[1,2],[3,4]]`, `[[3,4],[1,2]]`, ``},
		{`xs => group_by((a, b) => a, xs)`, `[[1,2],[3,4]]`, `{"1":[[1,2]],"3":[[3,4]]}`, ``},
		{`xs => { let ys = filter((a, b) => b > 2, xs); [ys[0] == [3, 4], length(ys[0])] }`, `[[1,2],[3,4]]`, `[true,2]`, ``},
		{`r => { let f = q => entries(q); filter((a, b) => b > 2, f(r)) }`, `{"a":1,"b":4}`, `[{"pair":["b",4]}]`, `[{"pair":["b",4]}]`},
		{`xs => [list(range(3)), list(map(lambda x: x + 1, xs)), list(filter(lambda x: x > 1, xs)), list(str(12))]`, `[1,2]`, `[[0,1,2],[2,3],[2],["1","2"]]`, ``},
		{`xs => [i * x for i, x in enumerate(xs, start=1)]`, `[1,5]`, `[1,10]`, ``},
		{`xs => Object.groupBy(xs, x => x % 2)`, `[1,2]`, `{"0":[2],"1":[1]}`, ``},
		{`v => match v { [] => 0; [h, ...t] => h; _ => v + 1 }`, `5`, `6`, ``},
		{`v => match v { [] => 0; 5 => v + 1; _ => 0 }`, `5`, `6`, ``},
		{`x => { let n = match x { [] => 0; _ => 1 }; x + n + 1 }`, `5`, `7`, ``},
		{`([xs, ys]) => match xs { [] => ys; _ => xs + ys }`, `[[1],[2]]`, `[1,2]`, `[1,2]`},
		{`([xs, ys]) => match xs { [] => ys; [h, ...t] => xs + ys + [h] }`, `[[1],[2]]`, `[1,2,1]`, ``},
		// Semantics 15
		{`r => Object.entries(r).sort((a, b) => b[1] - a[1]).map((kv, i) => ` + "`${i + 1}. ${kv[0]}: ${kv[1]}`" + `)`, `{"tea":3,"cup":5}`, `["1. cup: 5","2. tea: 3"]`, `["6. c: u","4. t: e"]`},
		{`r => entries(r).map(([k, v], i) => f"{i}{k}{v}").concat(entries(r).map(((k, v), i) => f"{i}{k}{v}"))`, `{"a":1,"b":2}`, `["0a1","1b2","0a1","1b2"]`, ``},
		{`r => entries(r).filter((e, i) => e[1] > 1 and i > 0)`, `{"a":4,"b":5}`, `[{"pair":["b",5]}]`, ``},
		{`s => [s.zfill(5), "7".zfill(3), "+1".zfill(4), "-12".zfill(2), "-7".zfill(length(s))]`, `"-7"`, `["-0007","007","+001","-12","-7"]`, ``},
		{`s => s.zfill(5)`, `"-7"`, `"-0007"`, `"000-7"`},
		{`x => [x in ("a", "b"), x not in ("a", "c"), x in ("a", "b", "c")]`, `"b"`, `[true,true,true]`, ``},
		{`xs => [xs.with(1, 9), ["a"].entries()]`, `[1,2]`, `[[1,9],[{"pair":[0,"a"]}]]`, ``},
		{`xs => [p.email?.trim() ?? "none" for p in xs]`, `[{"email":" a "},{},{"email":null}]`, `["a","none","none"]`, ``},
		{`p => [p.a?.b?.upper(), p?.a?.includes("x"), p.n?.toFixed(1), p.xs?.map(x => x + 1)]`, `{"n":2,"xs":[1]}`, `[null,null,"2.0",[2]]`, ``},
		{`u => [u?.trim() ?? "-", u?.length ?? 0]`, `null`, `["-",0]`, ``},
		{`xs => zip(xs, xs).some((p, i) => p[0] == i) == any((p, i) => p == i, zip(xs, xs))`, `[3,1]`, `true`, ``},
		{`r => { let f = qs => qs.map((q, i) => f"{i}{q[0]}"); [f(entries(r)), f([["c", 3], ["d", 4]])] }`, `{"a":1,"b":2}`, `[["0a","1b"],["0c","1d"]]`, `[["1a","2b"],["0c","1d"]]`},
		{`r => [entries(r).map((k, v) => k + k[0]), map((k, i) => f"{k[0]}{i}", entries(r)), entries(r).map((k, i) => f"{k}{k[0]}{i}")]`, `{"ab":1}`, `[["aba"],["a1"],["aba1"]]`, `[["aba"],["a1"],["aba1"]]`},
	} {
		p := program{code: c.code, inline: true, input: c.input}
		e, n := p.onEval(t), p.onNaive(t)
		if e.steps != n.steps || e.result != c.want || n.result != e.result {
			t.Errorf("%s gives %v on eval, %v on naive", c.code, e, n)
		}
		if c.before == "" {
			continue
		}
		p.semantics = 13
		if e := p.onEval(t); e.result != c.before {
			t.Errorf("%s gave %s, and gives %v as before", c.code, c.before, e)
		}
	}
	for code, last := range map[string]int{`(a, b) => unique(a) - unique(b)`: 13, `x => f"{x:08,.2f}"`: 14, `x => f"{x:08z}"`: 0} {
		for _, semantics := range []int{13, 14, core.Semantics} {
			if _, err := core.CompileUnder(semantics, []byte(code)); (err == nil) != (semantics <= last) {
				t.Errorf("%s under %d: %v", code, semantics, err)
			}
		}
	}
	if _, err := core.CompileInline([]byte(`x => f"{x:08,.2f}"`)); !strings.Contains(fmt.Sprint(err), "Leave the 0 before the width") {
		t.Error(err)
	}
	p := program{code: `r => Object.entries(r).reduce((acc, [k, v], i) => acc + v * i, 0)`, inline: true, input: `{"a":10}`, semantics: 13}
	if e := p.onEval(t); e.fault == nil || e.fault.Kind != fault.TypeError {
		t.Errorf("a list that takes a pair apart gave a fault, and gives %v", e)
	}
	p = program{code: `(s, i) => s.find("a", i)`, inline: true}
	if e := p.onEval(t); e.fault == nil || e.fault.Kind != fault.ParseError || !strings.Contains(e.fault.Hint, "index_of(s[from:], part)") {
		t.Errorf("a place from which is looked gives %v", e)
	}
}
