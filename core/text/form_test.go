package text_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
)

func mustRead(t testing.TB, src string) *text.Parsed {
	t.Helper()
	p, f := text.Parse([]byte(src), text.Options{})
	if f != nil {
		t.Fatalf("%v\n%s", f, text.Caret([]byte(src), f))
	}
	return p
}

// TestParse: what each form of the grammar means, as JSON.
func TestParse(t *testing.T) {
	for _, c := range []struct{ src, json string }{
		{`x => e`, `{"lam":"x","body":{"var":"e"}}`},
		{`(x) => x`, `{"lam":"x","body":{"var":"x"}}`},
		{`(x, y) => x`, `{"lam":"x","body":{"lam":"y","body":{"var":"x"}}}`},
		{`x => y => x`, `{"lam":"x","body":{"lam":"y","body":{"var":"x"}}}`},
		{`f(1, 2)(3)`, `{"app":[{"var":"f"},1,2,3]}`},
		{"f\n(1)", `{"app":[{"var":"f"},1]}`},
		{`f(1,)`, `{"app":[{"var":"f"},1]}`},
		{`(1, 2)`, `{"pair":[1,2]}`},
		{`((1))`, `1`},
		{`[1, 2,]`, `[1,2]`},
		{`{b: 1, "a": 2, if: 3}`, `{"record":{"a":2,"b":1,"if":3}}`},
		{`{}`, `{"record":{}}`},
		{`!fs.read({path: "a"})`, `{"fs.read":{"path":"a"}}`},
		{`!readFile(1)`, `{"fs.read":1}`},
		{"!`a b.c`(1)", `{"a b.c":1}`},
		{`'{x + 1}`, `{"quote":{"add":[{"var":"x"},1]}}`},
		{`self(1)`, `{"app":[{"self":true},1]}`},
		{`let x = 1 in x`, `{"app":[{"lam":"x","body":{"var":"x"}},1]}`},
		{`let x = 1, y = x in y`, `{"app":[{"lam":"x","body":{"app":[{"lam":"y","body":{"var":"y"}},{"var":"x"}]}},1]}`},
		{`[let length = 1 in length, length([])]`, `[{"app":[{"lam":"length","body":{"var":"length"}},1]},{"length":[]}]`},
		{`let x = x in x`, `{"app":[{"lam":"x","body":{"var":"x"}},{"var":"x"}]}`},
		{`if true then 1 else if false then 2 else 3`, `{"if":{"cond":true,"then":1,"else":{"if":{"cond":false,"then":2,"else":3}}}}`},
		{`1 |> f`, `{"app":[{"var":"f"},1]}`},
		{`1 |> f(2) |> g`, `{"app":[{"var":"g"},{"app":[{"var":"f"},2,1]}]}`},
		{`[1] |> length`, `{"length":[1]}`},
		{`[1] |> ::length`, `{"length":[1]}`},
		{`[1] |> fold(f, 0)`, `{"fold":[{"var":"f"},0,[1]]}`},
		{`[1] |> cons(0)`, `{"cons":[0,[1]]}`},
		{`{k: 1} |> map_values(f)`, `{"map_values":[{"var":"f"},{"record":{"k":1}}]}`},
		{`5 |> sub(3)`, `{"sub":[5,3]}`},
		{`1 |> eval(q)`, `{"app":[{"eval":{"var":"q"}},1]}`},
		{`1 |> eval(q)(2)`, `{"app":[{"eval":{"var":"q"}},2,1]}`},
		{`1 |> !a.b`, `{"a.b":1}`},
		{`1 |> x => x`, `{"app":[{"lam":"x","body":{"var":"x"}},1]}`},
		{`length => [1] |> length`, `{"lam":"length","body":{"app":[{"var":"length"},[1]]}}`},
		{`1 + 2 * 3 - 4`, `{"sub":[{"add":[1,{"mul":[2,3]}]},4]}`},
		{`1 - 2 - 3`, `{"sub":[{"sub":[1,2]},3]}`},
		{`8 / 4 % 3 * 2`, `{"mul":[{"mod":[{"div":[8,4]},3]},2]}`},
		{`"a" ++ "b" ++ "c"`, `{"concat":[{"concat":["a","b"]},"c"]}`},
		{`a or b and not c == 1`, `{"or":[{"var":"a"},{"and":[{"var":"b"},{"not":{"equal":[{"var":"c"},1]}}]}]}`},
		{`not not a`, `{"not":{"not":{"var":"a"}}}`},
		{`1 < 2 and 3 >= 4 or 5 <= 6 and 7 > 8`, `{"or":[{"and":[{"lt":[1,2]},{"gte":[3,4]}]},{"and":[{"lte":[5,6]},{"gt":[7,8]}]}]}`},
		{`a != b`, `{"not":{"equal":[{"var":"a"},{"var":"b"}]}}`},
		{`1 + x => x + 1`, `{"add":[1,{"lam":"x","body":{"add":[{"var":"x"},1]}}]}`},
		{`1 + if a then 2 else 3 + 4`, `{"add":[1,{"if":{"cond":{"var":"a"},"then":2,"else":{"add":[3,4]}}}]}`},
		{`-1`, `-1`}, {`- 1`, `-1`}, {`-(1)`, `{"sub":[0,1]}`}, {`--1`, `{"sub":[0,-1]}`}, {`-x`, `{"sub":[0,{"var":"x"}]}`},
		{`1-1`, `{"sub":[1,1]}`}, {`1 - -1`, `{"sub":[1,-1]}`}, {`-f(1)`, `{"sub":[0,{"app":[{"var":"f"},1]}]}`}, {`-2 * 3`, `{"mul":[-2,3]}`},
		{`-9223372036854775808`, `-9223372036854775808`}, {`123456789012345678901`, `123456789012345678901`},
		{`"a\n\"\\\u00e9\ud83d\ude00/\/"`, `"a\n\"\\é😀//"`},
		{`nil`, `{"nil":true}`}, {`[]`, `[]`}, {`null`, `null`}, {`true`, `true`},
		{`length("a")`, `{"length":"a"}`}, {`continue(1)`, `{"continue":{"input":1}}`}, {`cons(1, nil)`, `{"cons":[1,{"nil":true}]}`},
		{`code_of("t")`, `{"code_of":"t"}`}, {`code_of(t)`, `{"code_of":{"var":"t"}}`}, {`eval('{1})`, `{"eval":{"quote":1}}`},
		{`!fs.read({in: "./out", path: p})`, `{"fs.read":{"in":"./out","path":{"var":"p"}}}`}, {`!fs.read({path: "a", length: 10})`, `{"fs.read":{"path":"a","length":10}}`},
		{`eval(q, ["fs.read:./in", "kv"])`, `{"eval":{"var":"q"},"with":["fs.read:./in","kv"]}`}, {`q |> eval`, `{"eval":{"var":"q"}}`}, {`q |> eval(["kv"])`, `{"eval":{"var":"q"},"with":["kv"]}`}, {`x |> eval(q)`, `{"app":[{"eval":{"var":"q"}},{"var":"x"}]}`},
		{`@square(5)`, `{"call":{"tool":"square","input":5}}`}, {"@`a b`([1])", `{"call":{"tool":"a b","input":[1]}}`}, {`call(f(x), 5)`, `{"call":{"tool":{"app":[{"var":"f"},{"var":"x"}]},"input":5}}`}, {`5 |> @square`, `{"call":{"tool":"square","input":5}}`}, {`5 |> call("square")`, `{"call":{"tool":"square","input":5}}`},
		{`par(1, a, [])`, `{"par":[1,{"var":"a"},[]]}`}, {`par(x)`, `{"par":[{"var":"x"}]}`}, {`x |> par(f)`, `{"app":[{"par":[{"var":"f"}]},{"var":"x"}]}`},
		{`add(1, 2)`, `{"add":[1,2]}`}, {`quote(x)`, `{"quote":{"var":"x"}}`}, {`app(f, 1, 2)`, `{"app":[{"var":"f"},1,2]}`}, {`::if(true, 1, 2)`, `{"if":{"cond":true,"then":1,"else":2}}`},
		{"`a b` => `a b`", `{"lam":"a b","body":{"var":"a b"}}`}, {"`length`", `{"var":"length"}`}, {"``", `{"var":""}`}, {"`\\`\\n`", "{\"var\":\"`\\n\"}"},
		{`length => length(1)`, `{"lam":"length","body":{"app":[{"var":"length"},1]}}`},
		{`length => ::length([])`, `{"lam":"length","body":{"length":[]}}`},
		{`length => '{length([])}`, `{"lam":"length","body":{"quote":{"app":[{"var":"length"},[]]}}}`},
		{`(length => length)(length([]))`, `{"app":[{"lam":"length","body":{"var":"length"}},{"length":[]}]}`},
		{"\uFEFF// first\n1 // last", `1`},
		{`3.14`, `{"dec":"3.14"}`}, {`-0.50`, `{"dec":"-0.50"}`}, {`1e3`, `{"dec":"1000"}`}, {`dec("2")`, `{"dec":"2"}`}, {`3.0 - 1.5`, `{"sub":[{"dec":"3.0"},{"dec":"1.5"}]}`},
	} {
		p := mustRead(t, c.src)
		if got, want := string(text.Canonical(p.Term)), string(text.Canonical(mustParse(t, c.json).Term)); got != want {
			t.Errorf("%s is\n%s, not\n%s", c.src, got, want)
		}
		if p.Source.Form != term.PIF || string(p.Source.Text) != c.src || p.Source.In != "code" {
			t.Errorf("source %+v", p.Source)
		}
		roundTrip(t, p.Term)
	}
}

// TestGet: fields are get with a literal key.
func TestGet(t *testing.T) {
	if _, _, ok := prim.Lookup("get"); !ok {
		t.Skip("there is no get")
	}
	for _, c := range []struct{ src, json, printed string }{
		{`r.k`, `{"get":[{"var":"r"},"k"]}`, `r.k`},
		{`r["length"]`, `{"get":[{"var":"r"},"length"]}`, `get(r, "length")`},
		{"`len`(`Math`.max)", `{"app":[{"var":"len"},{"get":[{"var":"Math"},"max"]}]}`, "`len`(`Math`.max)"},
		{`(r.includes)(1)`, `{"app":[{"get":[{"var":"r"},"includes"]},1]}`, `(r.includes)(1)`},
		{`r.if.k2(1).x`, `{"get":[{"app":[{"get":[{"get":[{"var":"r"},"if"]},"k2"]},1]},"x"]}`, `r.if.k2(1).x`},
		{`get(r, "a b")`, `{"get":[{"var":"r"},"a b"]}`, `get(r, "a b")`},
		{`get(r, "k", 0)`, `{"get":[{"var":"r"},"k",0]}`, `get(r, "k", 0)`},
		{`get(r, k)`, `{"get":[{"var":"r"},{"var":"k"}]}`, `get(r, k)`},
		{`-r.k`, `{"sub":[0,{"get":[{"var":"r"},"k"]}]}`, `-r.k`},
		{`(-r).k`, `{"get":[{"sub":[0,{"var":"r"}]},"k"]}`, `(-r).k`},
		{`r |> get("k")`, `{"get":[{"var":"r"},"k"]}`, `r.k`},
		{`r |> get("k", 0)`, `{"get":[{"var":"r"},"k",0]}`, `get(r, "k", 0)`},
		{`get => get.k`, `{"lam":"get","body":{"get":[{"var":"get"},"k"]}}`, `get => get.k`},
		{`get => ::get(get, 1)`, `{"lam":"get","body":{"get":[{"var":"get"},1]}}`, `get => ::get(get, 1)`},
	} {
		p := mustRead(t, c.src)
		if got, want := string(text.Canonical(p.Term)), string(text.Canonical(mustParse(t, c.json).Term)); got != want {
			t.Errorf("%s is\n%s, not\n%s", c.src, got, want)
		}
		if got := roundTrip(t, p.Term); got != c.printed {
			t.Errorf("%s is printed %s", c.src, got)
		}
	}
}

// TestEveryRow: each row of the table that is called has its name before its
// operands, with as many operands as it takes, in text as in JSON.
func TestEveryRow(t *testing.T) {
	for i := range prim.Table {
		row := &prim.Table[i]
		for _, x := range row.Examples {
			p, f := parse.Code([]byte(x.Code), parse.Options{})
			if f != nil {
				continue
			}
			if printed := roundTrip(t, p.Term); row.With == "" && len(printed) > len(x.Code)+4 {
				t.Errorf("%s is longer as text: %s", x.Code, printed)
			}
		}
		if row.Operation() && text.Shape(row) == "" {
			t.Errorf("%s has no shape", row.Name)
		}
	}
}

// TestFree: what nothing binds, outside quotes, with what is near.
func TestFree(t *testing.T) {
	p := mustRead(t, "xs => [lenght(xs), ys, '{zs}, `length`, Null, ys, x, lenght, name]")
	var got []string
	for _, f := range p.Free {
		got = append(got, f.Name+">"+f.Near)
	}
	if want := []string{"lenght>length", "ys>xs", "length>", "Null>null", "x>", "name>"}; !slices.Equal(got, want) {
		t.Errorf("free %q, want %q", got, want)
	}
	if want := []string{"lenght", "ys", "length", "Null", "x", "name"}; !slices.Equal(parse.Free(p.Term), want) {
		t.Errorf("parse.Free gives %q", parse.Free(p.Term))
	}
	if len(p.Notes) != 3 || p.Notes[0] != `line 1, column 8: "lenght" is neither bound here nor a primitive; did you mean length, as in length(list)?` {
		t.Errorf("notes %q", p.Notes)
	}
}

func TestNotes(t *testing.T) {
	for _, c := range []struct{ src, note string }{
		{`fold(a => x => a + x, 0, [1])`, `line 1, column 6: fold passes its function one pair, and this one takes one value after the other: write fold((a, b) => f(a, b), …)`},
		{`let add2 = a => x => a + x in fold(add2, 0, [1])`, `line 1, column 36: fold passes its function one pair, and this one takes one value after the other: write fold((a, b) => add2(a, b), …)`},
		{`let add2 = (a, x) => a + x in fold(add2, 0, [1])`, ``},
		{`let f = k => v => v in map(f, entries({}))`, `line 1, column 28: map passes its function one pair`},
		{"let f = n => g(n) + h(n)\nlet g = n => f(n)\nlet h = n => n\nf(1)", ``},
		{`let f = (a, x) => a in f => fold(f, 0, [1])`, ``},
		{`let f = (k, v) => v in xs => map(f, xs)`, ``},
		{`fold((a, x) => a + x, 0, [1])`, ``},
		{`entries({}) |> map((k, v) => v)`, ``},
		{`xs => map((k, v) => v, xs)`, ``},
		{`n => $"{repeat(n, " ")}|"`, `line 1, column 9: repeat(n, item) gives a list; repeat_text(text, n) repeats a text`},
		{`n => $"{repeat(n, 1)}|"`, ``},
		{`xs => repeat(0, length(xs) + 1)`, `line 1, column 7: repeat(0, x) is always []; n copies of 0 is repeat(n, 0), here repeat(length(xs) + 1, 0)`},
		{`n => [repeat(0, 0), repeat(0, "a"), repeat(n, 0)]`, ``},
		{`n => {"add": n, "count": 1}`, ``},
		{`n => {"add": [n, 1]}`, `line 1, column 7: "add" is a key of a record here; the operation is written a + b`},
		{`let go = [n => go(n - 1)] in go`, `line 1, column 16: go isn't there yet in its own value; only a function sees itself, let go = x => … go(x) …`},
		{`let f = 1 in let f = n => f(n - 1) in f(2)`, `line 1, column 20: the name "f" means the function bound by this let in it and in the functions beside it, not what is called so around them`},
		{`let sum = xs => if xs == [] then 0 else xs[0] + sum(xs[1:]) in sum([2])`, ``},
		{`let sum = n => sum(n - 1) in sum(2)`, `line 1, column 5: sum is the function of this let in its own body; ::sum is the operation`},
		{`xs => let f = ys => sum(ys) in let sum = zs => 100 in f(xs)`, `line 1, column 21: sum is the operation here: the let in line 1 binds its function sum too late`},
		{"xs => {\n let t = map(y => sum(y), xs)\n let sum = zs => 100\n sum(t) }", `line 2, column 19: sum is the operation here: the let in line 3`},
		{`xs => map(y => let f = z => sum(z) in f(y), xs) ++ (let sum = zs => 100 in sum(xs))`, ``},
		{`v => match v { [x] => let f = z => sum(z) in f(x); _ => let sum = z => 1 in sum(v) }`, ``},
		{`(max, scores) => max(values(scores))`, `line 1, column 18: max is the variable here; ::max is the operation`},
		{`(entries, r) => r |> entries |> map((k, v) => k)`, `line 1, column 19: entries is the variable here; ::entries is the operation`},
		{`s => split(s, "\|")`, `line 1, column 15: this text has a backslash in it, since \| is for regular expressions; write "|" for the sign, or \\ for a backslash`},
		{`s => s.indexOf("\\d\{") == 0`, `line 1, column 16: this text has a backslash in it, since \{ is`},
		{`s => s != "\."`, `line 1, column 11: this text has a backslash in it, since \. is`},
		{`s => [split(s, "\\."), re_split(s, "\."), index_of(s, "\n\"")]`, ``},
		{`(max, f) => f(max) + (let min = x => 1 in min(max))`, ``},
		{`s => match re_find(s, "(\\d+)-(\\d+)") { [all, a, b] => a; _ => "" }`, `line 1, column 42: this pattern never fits: re_find gives the 2 groups alone`},
		{`s => match re_find(s, "(\\d+)-(\\d+)") { [a, b] => a; [a, ...r] => a; _ => "" }`, ``},
		{`s => try(parse_int(s)) ?? 0`, `line 1, column 24: try gives {ok: v} or {error: e}, never null; write match try(parse_int(s)) { {ok: v} => v; _ => 0 }`},
		{`x => fs.read(x)`, `line 1, column 6: "fs" is not bound; an effect has a mark before it: !fs.read(a)`},
		{`xs => { let avg = sum(xs)/length(xs); return round(avg, 2) }`, ``},
		{`(a, b) => round(a / b * 100) / 100`, ``},
		{`(a, b) => round(a / b * 100) / 10`, `line 1, column 30: round gives an integer here, and / of two integers rounds down; write round(x, 2)`},
		{`xs => round(xs[length(xs) / 2] * 1.5, 2) + round(sum(map(x => x / 2.0, xs)))`, ``},
		{"n => n * 2 // doubled\n// 2\n", ``},
		{`[1, // 2` + "\n" + ` 3] // n times`, ``},
		{`fold(p => fst(p), 0, [1])`, ``},
		{`n => {add: n, "b": 1}`, ``},
		{`s => re_find_all(s, "[a-z]+(\\.com|\\.uk)")`, `line 1, column 6: re_find_all gives what the group (…) in the pattern fits, not the whole; write (?:…)`},
		{`xs => fold((acc, k, v) => acc + v, 0, xs)`, `line 1, column 13: the third parameter of the function of fold is the item's index; for the parts of pairs write fold((acc, (k, v)) => …`},
		{`xs => fold((acc, x, i) => acc + i, 0, xs) + xs.reduce((acc, k, v) => acc + v, 0)`, ``},
		{`x => $"{{x}}"`, `line 1, column 8: {{x}} shows the record {x: x}; {x} shows the value, and \{x\} stands for`},
		{`x => f"{{x}}" ++ $"{x}" ++ $"{ {a: x}.a}"`, ``},
		{`r => {...r, price: undefined}`, `line 1, column 20: undefined is null here, and the key stays; del(r, "price") is the record without it`},
		{`r => {...r, price: null, n: r.a == undefined}`, ``},
		{`x => x or 5`, `line 1, column 8: nothing but true and false stands beside or; write x ?? 5 where`},
		{`r => entries(r).filter((e, i) => i < 1)`, `line 1, column 17: filter over pairs takes them apart: i is the second part of each; for its index write filter((i, (a, b)) => …, enumerate(pairs))`},
		{`r => [entries(r).map((kv, i) => kv[1]), entries(r).map((k, v) => v), map((e, i) => i, entries(r))]`, ``},
		{`s => re_replace(s, "b", "[\\0]")`, `line 1, column 25: \0 is put in as it stands; write ${0} for what that fits`},
		{`s => re_replace(s, "(b)", "[\\g<1>]") ++ re_replace(s, "(b)", "$1")`, `line 1, column 27: \g<1> is put in as it stands; write ${1} for`},
		{`null([])`, `line 1, column 1: null is a value here, no function; isEmpty([]) tells`},
		{`xs => xs.pop(0)`, `line 1, column 10: values have no methods, unless a record has a function as its pop; write xs[0] for the item, xs[1:] for the others`},
		{`xs => xs.pop(-1)`, `line 1, column 10: values have no methods, unless a record has a function as its pop; write xs[-1] for the item, xs[:-1] for the others`},
		{`xs => xs.flat(1)`, `line 1, column 10: values have no methods, unless a record has a function as its flat; write flatten(xs)`},
		{`[1, 2, 3].splice(1, 2)`, `line 1, column 11: values have no methods, unless a record has a function as its splice; write take(2, drop(1, [1, 2, 3])) for the items taken out`},
		{`s => s.rsplit(",", 1)`, `line 1, column 8: values have no methods, unless a record has a function as its rsplit; write let parts = split(s, ",") in [join(parts[:-1], ","), parts[-1]]`},
		{`s => s.substr(-2, 2)`, `line 1, column 8: values have no methods, unless a record has a function as its substr; write s[-2:][:2]`},
		{`r => r.update({b: 2})`, `line 1, column 8: values have no methods, unless a record has a function as its update; write {...r, ...{b: 2}}`},
		{`Number.isInteger(5)`, `line 1, column 1: there is no Number.isInteger; write type_of(x) == "int"`},
		{`r => r.n || 5`, `line 1, column 10: nothing but true and false stands beside ||; write r.n ?? 5 where r.n may be null, and if r.n != 0 then r.n else 5 for 0`},
		{`r => r.n || "-"`, `line 1, column 10: nothing but true and false stands beside ||; write r.n ?? "-" where r.n may be null, and if r.n != "" then r.n else "-" for an empty text`},
		{`r => r.n || 0`, `line 1, column 10: nothing but true and false stands beside ||; write r.n ?? 0 where r.n may be null`},
		{`s => starts_with("ab", s)`, `line 1, column 6: starts_with takes the text first: starts_with(s, "ab")`},
		{`re_find_all("\d+", "a1 b2")`, `line 1, column 1: re_find_all takes the text first: re_find_all("a1 b2", "\d+")`},
		{`s => [starts_with("abc", "a"), re_find("a1", "\d"), re_find("\d", "\\d")]`, ``},
		{`s => re_find_all(s, "id=(\\d+)") ++ re_find_all(s, "[a-z]+(?:\\.com|\\.uk)")`, ``},
	} {
		notes := mustRead(t, c.src).Notes
		if c.note == "" && len(notes) > 0 || c.note != "" && (len(notes) != 1 || !strings.HasPrefix(notes[0], c.note)) {
			t.Errorf("%s has notes %q", c.src, notes)
		}
	}
}

func TestLone(t *testing.T) {
	for src, want := range map[string]string{"square": "square", " // t\n square \n": "square", "`a b`": "a b", "é": "é", "my_tool2": "my_tool2"} {
		if got, ok := text.Lone([]byte(src)); !ok || got != want {
			t.Errorf("%q: %q %v", src, got, ok)
		}
	}
	for _, src := range []string{"", "a b", "a(1)", "length", "if", "null", "1", `"a"`, "a.b", "a-b", "\xff", "`a", "(a)"} {
		if got, ok := text.Lone([]byte(src)); ok {
			t.Errorf("%q is the lone name %q", src, got)
		}
	}
}
