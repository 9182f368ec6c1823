package text_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// names is so many names, with commas between.
func names(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("a%04d", i)
	}
	return strings.Join(all, ",")
}

// TestMethodsBeyondNotes: what a method is like isn't looked for where there is no room for another note.
func TestMethodsBeyondNotes(t *testing.T) {
	const most = 1000
	src := []byte("r => [" + strings.Repeat("r.mapp(1),", most) + "1]")
	if each := testing.AllocsPerRun(1, func() { text.Parse(src, text.Options{}) }) / most; each > 200 {
		t.Errorf("%.0f allocations for each of %d calls", each, most)
	}
}

// TestFaults: where each failure is, what it says, and that its hint tells what
// to write.
func TestFaults(t *testing.T) {
	for _, c := range []struct{ src, place, message, hint string }{
		{``, "1:1", "expected an expression, got the end of the text", "Write one here"},
		{`n => n +* 2`, "1:9", `expected an expression, got "*"`, "Write one here"},
		{"n =>\n  é + )", "2:7", `expected an expression, got ")"`, ""},
		{`f(1, 2`, "1:7", `expected ")" for the "(" of line 1, column 2, got the end of the text`, "Close it"},
		{"n => self(n)\nlet y = 1\ny", "2:1", "what follows this line's beginning is no part of the function before it", "Write n => { …; … }"},
		{"n => self(n)\ny = 1\ny", "2:1", "no part of the function before it", ""},
		{`[1 2]`, "1:4", `expected "," or "]" for the "[" of line 1, column 1, got "2"`, "with commas"},
		{`[1)`, "1:3", `expected "," or "]"`, "Close it"},
		{`1 2`, "1:3", "expected an operator or the end", ""},
		{`1)`, "1:2", `")" closes nothing`, "Take it away"},
		{`1, 2`, "1:2", "a comma stands between", "(1, 2) for a pair"},
		{`a == b < c`, "1:8", "comparisons don't chain", "a == (b < c)"},
		{`a == b != c`, "1:8", "comparisons don't chain", ""},
		{`length + 1`, "1:1", "length is a primitive: here it stands before its operands", "a => length(a). For a variable of that name write `length`"},
		{`1 + ::length`, "1:5", "::length is a primitive", ""},
		{`{a: 1, length}`, "1:8", "length is a primitive", ""},
		{`1 |> cons`, "1:6", "cons is a primitive", "(a, b) => cons(a, b)"},
		{`map(get, [])`, "1:5", "map passes its function one item, and get takes 2 operands", "Write x => get(x, key) in its place"},
		{`1 + get`, "1:5", "get is a primitive", "(a, b) => get(a, b)"},
		{`map(try, [])`, "1:5", "try is a primitive", "a => try(a)"},
		{`cons(1)`, "1:1", "cons takes 2 operands, got 1", "cons(h, t)"},
		{"x => let y = add(x) in\nlet add = t => t in y", "1:14", "add takes 2 operands, got 1", "add is the operation here: the let in line 2 binds its function add too late. Bind it before, or rename it."},
		{`length(1, 2)`, "1:1", "length takes 1 operand, got 2", "Write it as length(list)."},
		{`lam`, "1:1", "lam is no name in the text form: it is written x => e", ""},
		{`var(x)`, "1:1", "it is written x", ""},
		{`f()`, "1:2", "at least one argument", "f(null)"},
		{`()`, "1:1", "nothing stands in these parentheses", ""},
		{`(1,)`, "1:1", "a pair has two parts", "[a]"},
		{`(a + 1, x) => x`, "1:4", `got "+"`, "separate its parts with commas"},
		{`(x, f(y)) => x`, "1:6", `got "("`, "commas"},
		{`({a = 5}) => a`, "1:5", "a pattern has no default", "write r.a ?? 5 where"},
		{`({user: {name, roles = []}, n: [a], active = true}) => a`, "1:22", "a pattern has no default", "write r.user.roles ?? [] where"},
		{`({a: {"b c": {d}, e = f(1, 2)}}) => a`, "1:21", "a pattern has no default", "write r.a.e ?? f(1, 2) where"},
		{`1 /= 2`, "1:4", `got "="`, "Write 1 != 2."},
		{`(x, d) => x % d /= 0 and x > 1`, "1:18", `got "="`, "Write x % d != 0."},
		{`x => { x /= 3; x }`, "1:11", `got "="`, "write let y = x / … for another value, and x != 3 for"},
		{`[1,3..9]`, "1:5", `".." is no operator`, "Write range(1, 9 + 1, 2), which ends with 9 or before."},
		{`x => [2..x-1]`, "1:8", `".." is no operator`, "Write range(2, x), which has x - 1 as its last."},
		{`x => [2..x * 2]`, "1:8", `".." is no operator`, "Write range(2, x * 2 + 1), which has x * 2 as its last."},
		{`x => [2..f(x)]`, "1:8", `".." is no operator`, "Write range(2, f(x) + 1), which has f(x) as its last."},
		{`xs => sum(xs, x => x.n)`, "1:7", "got 2", "Write sum(map(x => x.n, xs))."},
		{`xs => zip(xs, tail xs)`, "1:15", "tail is a primitive", "Write tail(xs)."},
		{`5 ^ 3`, "1:3", `"^" is no operator`, "Write a ** b for a power, bit_xor(a, b) for the bits"},
		{`3 & 1`, "1:3", `"&" is no operator`, "Write a and b for conditions, bit_and(a, b) for the bits"},
		{`5 | 3`, "1:3", `got "|"`, "bit_or(a, b) for the bits"},
		{`1 << 3`, "1:4", `got "<"`, "Write shift(1, 3)."},
		{`x => x.n >> 1`, "1:11", `got ">"`, "Write shift(x.n, -1)."},
		{`~5`, "1:1", `"~" is no operator`, "Write -n - 1 for the opposite of each bit of n."},
		{`sum([1, 2], 10)`, "1:1", "got 2", "Write sum([1, 2]) + 10."},
		{`pow(2, 10, 1000)`, "1:1", "got 3", "Write pow(2, 10) % 1000."},
		{`trim("--a--", "-")`, "1:1", "got 2", `Write re_replace("--a--", "^[-]+|[-]+$", "").`},
		{`zip([1], [2], x)`, "1:1", "got 3", "Write transpose([[1], [2], x])"},
		{`replace(s, "X", "-", 1)`, "1:1", "got 4", `replace(s, old, new) for all; for the first: let i = index_of(s, "X") in if i < 0 then s else s[:i] ++ "-" ++ s[i + length("X"):]`},
		{`sort_by(f, xs, "desc")`, "1:1", "got 3", "Write sorted(xs, key=f, reverse=True)"},
		{`list({a: 1})`, "1:1", "list is of what is known to be a list or a text", "Write keys({a: 1}), as Python has it, or entries({a: 1}) for its pairs."},
		{`(amount, currency = "EUR", digits = 2) => amount`, "1:19", "a parameter has no default", `p.currency ?? "EUR"`},
		// Heads of functions as Rust and TypeScript have them; a body that isn't one expression is left out.
		{`fn gcd(a: u64, mut b: &u64) -> u64 { gcd(b, a % b) }`, "1:4", `got "gcd"`, "Write (a, b) => gcd(b, a % b), and name it"},
		{`n => [1..(n-1)]`, "1:8", "..", "Write range(1, (n-1) + 1), which has (n-1) as its last."},
		{`function (n): number { return n + 1 }`, "1:13", `got ":"`, "Write n => n + 1."},
		{`def (n): n`, "1:8", `got ":"`, "Write n => n."},
		{`trim(s, "+-*")`, "1:1", "got 2", `^[\\+\\*-]+|`},
		{`fn count(s: &str) -> usize { s.len() }`, "1:4", `got "count"`, "Write s => s.len(), and name it"},
		{`function merge(xs: number[][]): number { return xs.length; }`, "1:10", `got "merge"`, "Write xs => xs.length, and name it"},
		{`function slug(t) { return t.replace(/[^a-z]+/g, "-"); }`, "1:10", `got "slug"`, "Write t => …, and name it"},
		{"def total(xs):\n  t = 0\n  for x in xs:\n    t += x\n  return t", "1:5", `got "total"`, "Write xs => …, and name it"},
		{`function f({a, b}) { return a + b; }`, "1:10", `got "f"`, "Write ({a, b}) => a + b, and name it"},
		// Haskell.
		{`xs => [x + 1 | x <- xs, x > 1]`, "1:14", `got "|"`, "Write [x + 1 for x in xs if x > 1]."},
		{"(x, d) => f(x) `mod` d + 1", "1:16", "got", "Write f(x) % d."},
		{"(xs, d) => d.a `elem` xs", "1:16", "got", "Write contains(xs, d.a)."},
		{`xs => xs !! 1`, "1:10", `got "!"`, "Write xs[1]."},
		{`sum . map f`, "1:1", "sum is a primitive", "x => sum(f(x)), or x |> f |> sum"},
		{"f :: Int -> Int\nf x = x", "1:3", `got "::"`, "Leave the type away"},
		{`map((+ 1), xs)`, "1:6", `got "+"`, "Write x => x + 1."},
		// SQL and jq.
		{`r => case when r.n > 5 then "a" else "b" end`, "1:11", `got "when"`, `Write if r.n > 5 then "a" else "b".`},
		{`rows => filter(r => r.name like "o%", rows)`, "1:28", `got "like"`, `Write starts_with(r.name, "o").`},
		{`rows => filter(r => r.n between 5 and 9, rows)`, "1:25", `got "between"`, "Write 5 <= r.n and r.n <= 9."},
		{`d => map(select(.price > 3), d)`, "1:17", `got "."`, "Write filter(x => x.price > 3, list)."},
		{`d => map(.[0].n + 1, d)`, "1:10", `got "."`, "Write x => x[0].n + 1."},
		{`SELECT name FROM rows`, "1:8", `got "name"`, "Write map(r => {name: r.name}, filter("},
		{`sort_by(.price, xs)`, "1:9", `got "."`, "Write x => x.price."},
		{`d => d |> group_by(.price > 3, d)`, "1:20", `got "."`, "Write x => x.price > 3."},
		// Python and JavaScript.
		{`{1, 2}`, "1:2", "expected a key", "Write unique([1, 2]), a list"},
		{`lambda *a: len(a)`, "1:10", `got ":"`, "Write a => len(a), of one list."},
		{`rows => zip(*rows)`, "1:13", `got "*"`, "Write transpose(rows)."},
		{`n => f"{n:^7}"`, "1:10", "no such format", `Write {pad_right(pad_left(to_text(n), (length(to_text(n)) + 7) / 2, " "), 7, " ")}.`},
		{`n => f"{n:*<5}"`, "1:10", "no such format", `Write {pad_right(to_text(n), 5, "*")}.`},
		{`n => f"{n:08b}"`, "1:10", "no such format", `Write {pad_left(to_base(n, 2), 8, "0")}.`},
		{`n => f"{n:.2e}"`, "1:10", "no such format", "Formats are such as {x:.2f}"},
		{`r"\d+"`, "1:2", "expected an operator", "what is no escape keeps its backslash"},
		{`new Array(3).fill(1)`, "1:5", `got "Array"`, "Write repeat(n, 0) for n copies"},
		{`x => f"{x:X}"`, "1:10", "no such format", "Write {upper(to_base(x, 16))}."},
		{`({a, ...r}) => a`, "1:6", "the pattern of a record has no rest", `del(r, "name")`},
		{`((a, b), a) => a`, "1:10", `binds "a" twice`, "two names"},
		{`(a, b, c) => (a, {b, if}) => b`, "1:24", `expected ":"`, "if: x"},
		{`{a: 1, a: 2}`, "1:8", `the key "a" stands twice`, ""},
		{`{a 1}`, "1:4", `expected ":"`, "a: 1"},
		{`{ let x = 1; }`, "1:14", "no expression follows", "{ let x = 1; result"},
		{`{a: 1; b: 2}`, "1:6", `got ";"`, "{a: 1, b: 2}"},
		{`{ let a = 1; a, b }`, "1:15", `expected ";" or "}"`, "semicolons"},
		{"{ let a = 1; f(a)\n  a + 1 }", "2:3", `expected ";" or "}"`, "a semicolon between"},
		{"let x = 1\n(x, 2)", "2:1", `begins with "("`, "let x = 1;"},
		{"let x = 1\n[x, 2]", "2:1", `begins with "["`, "let x = 1;"},
		{"let x = 1\n-x", "2:1", `begins with "-"`, "let x = 1;"},
		{"x => { if (x) { return 1 } }", "1:28", "nothing follows in this block", "if a and b"},
		{"c => { if (c) { if (d) { return 1 }; 5 } return 2 }", "1:26", "this return doesn't end the function", "else if"},
		{"c => { if (c) { if (d) { return 1 } else { 5 } } return 2 }", "1:26", "this return doesn't end the function", ""},
		{"c => { if (c) { match c { 2 => { return 7 }; _ => 0 } } return 2 }", "1:34", "this return doesn't end the function", ""},
		{"c => { match c { 1 => { return 5 }; _ => 0 }; return 9 }", "1:25", "this return doesn't end the function", ""},
		{"c => { if (c) { return 1 } else { return 2 }; return 3 }", "1:17", "this return doesn't end the function", ""},
		{"c => { if c then { return 1 } else if d { return 2 } else { return 4 }; 3 }", "1:20", "this return doesn't end the function", ""},
		{"c => { c ? {return 1} : {return 2}; 3 }", "1:13", "this return doesn't end the function", ""},
		{"[1, 2, 3].map((a, i, c) => a)", "1:11", "map doesn't apply its function to three", "enumerate(xs)"},
		{"let a = 1; }", "1:12", `no "{" is open`, "Take this"},
		{"c => { return c; 5 }", "1:8", "this return doesn't end the function", ""},
		{"c => { let x = if c { return 1 } else { 2 }; x + 1 }", "1:23", "this return doesn't end the function", ""},
		{"c => 1 + { return c }", "1:12", "this return doesn't end the function", ""},
		{"{ return 1; 5 }", "1:3", "this return doesn't end the function", ""},
		{"c => { if (c) { map(x => { return x }, c) } 2 }", "1:45", `expected "else"`, ""},
		{"x => { if (x) { 1 }; 2 }", "1:20", `expected "else"`, "both branches are needed"},
		{`[x for x as xs]`, "1:10", `expected "in"`, ""},
		{`[x + for x in xs]`, "1:10", `expected "for"`, ""},
		{`match 1 { 0 => let a = 1; a; _ => 2 }`, "1:25", `expected "in", got ";"`, "{ let x = 1; x + 1 }"},
		{`{...r, a: 1, a: 2}`, "1:14", "stands twice", "Take one of the two away"},
		{`{...}`, "1:5", "expected an expression", ""},
		{`f(...x)`, "1:3", "expected an expression", "[x, ...xs]"},
		{`function(n) { n }`, "1:13", "expected an operator", "Write n => n."},
		{`n mod 2`, "1:3", "expected an operator", "a % b"},
		{`sum(1, 2)`, "1:1", "sum takes 1 operand, got 2", "a list is [a, b]"},
		{`match v { x if x > 0; 1 => 2 }`, "1:21", `expected "=>"`, "let x = 1"},
		{`match v { x if y => 1 => 2 }`, "1:23", `expected ";"`, "x => x + 1"},
		{`match v { x | 1 => 2 }`, "1:15", "bind the same names", "_ for what doesn't count"},
		{`1 | 2`, "1:3", `got "|"`, "1 | 2 => a"},
		{`{1: 2}`, "1:2", `expected a key`, `write {"1": …}`},
		{`{"add": [1, 2,]}`, "1:2", "this is not well-formed JSON", "a + b"},
		{`[let x = 1; x]`, "1:11", `expected "in", got ";"`, "let x = 1"},
		{`let (a | b) = p in a`, "1:8", `got "|"`, "match v { 1 | 2"},
		{`let f(x) = x in f(1)`, "1:6", `expected "="`, "let f = (x, y) =>"},
		{`let if = 1 in 2`, "1:5", "expected a name or a pattern after let", "`if`"},
		{`if a then b`, "1:12", `expected "else"`, "both branches"},
		{`if a b`, "1:6", `expected "then"`, ""},
		{`if (a) b else c`, "1:8", `expected "then", got "b"`, "if a then b else c"},
		{`1 + not a`, "1:5", "expected an operand", "(not a)"},
		{`x = 1`, "1:3", "expected an operator", "a == b"},
		{`fn x => x`, "1:4", "expected an operator", "x => x + 1"},
		{`1 + return 1`, "1:12", "expected an operator", "Write 1 alone"},
		{`a & b`, "1:3", `"&" is no operator`, "a and b"},
		{`xs[c ? 1 : 2]`, "1:6", `expected "," or "]"`, "(c ? a : b)"},
		{`match v { x if c ? true : false => 1 }`, "1:18", `expected "=>"`, "(c ? a : b)"},
		{`xs |> length ? 1 : 2`, "1:14", "expected another |>", "(x |> f) ? a : b"},
		{`c ? 1`, "1:6", `expected ":"`, "c ? a : b"},
		{`!a.b`, "1:1", "!a.b is an effect", "!a.b(a)"},
		{`!a.b(1, 2)`, "1:1", "takes 1 operand, got 2", ""},
		{`# c`, "1:1", "", "from //"},
		{`'{a + 1}'`, "1:9", "this string is not closed", `in double quotes, "{`},
		{`'abc`, "1:1", "this string is not closed", `Close it with '`},
		{`"""abc"""`, "1:3", "expected an operator", `"a" ++ "b"`},
		{`if a == 1: 2 else: 3`, "1:10", `expected "then"`, "Write if a == 1 then 2 else 3."},
		{`let x: int = 1`, "1:6", `expected "="`, "let x = 1."},
		{`try { 1/0 } catch (e) { 0 }`, "1:1", "try is a primitive", "match try(1/0) { {ok: v} => v; {error: e} => 0 }."},
		{"x => { try { return f({a: x}) } catch { return -1; } }", "1:12", `expected ":"`, "match try(f({a: x})) { {ok: v} => v; _ => -1 }."},
		{"try:\n  f(1)\nexcept ValueError as err:\n  err.kind", "1:1", "try is a primitive", "match try(f(1)) { {ok: v} => v; {error: err} => err.kind }."},
		{"try { f(1) } catch (e: any) { 2 }", "1:1", "try is a primitive", "{ {ok: v} => v; {error: e} => 2 }."},
		{"try { f(1) } finally { 2 }", "1:1", "try is a primitive", "match try(f(1)) { {ok: v} => v; {error: e} => null }."},
		{`open("x").read()`, "1:15", "at least one argument", "!fs.read("},
		{`random()`, "1:7", "at least one argument", "!random.seed({})"},
		{`xs[::2]`, "1:6", "primitive after ::", "Write [x for i, x in enumerate(xs) if i % 2 == 0]."},
		{`"abc`, "1:1", "this string is not closed", "Close it"},
		{"\"a\x01b\"", "1:3", "no control characters", `\n`},
		{`"a\q"`, "1:3", "no such escape", `\\`},
		{`"\ud800"`, "1:2", "surrogate", ""},
		{"`a", "1:1", "not closed", ""},
		{`007`, "1:1", "leading zeros", "7"},
		{`2x`, "1:1", "neither a number nor a name", "2 * x"},
		{`0x1f`, "1:1", "neither a number nor a name", "Write 31."},
		{`1_000`, "1:1", "neither a number nor a name", "Write 1000."},
		{"x\u00a0", "1:2", "U+00A0", ""},
		{"a + \xff", "1:5", "not valid UTF-8", ""},
		{`::nope(1)`, "1:3", "expected the name of a primitive after ::", ""},
		{`code_of(1)`, "1:1", "code_of takes a tool's name", `code_of("square")`},
		{`eval(q, [x])`, "1:1", "is a list of capabilities", `eval(code, ["fs.read:./in"])`},
		{`eval(q, "kv")`, "1:1", "is a list of capabilities", ""},
		{`!fs.read({in: x})`, "1:1", "names a capability, in quotes", `in: "./out"`},
		{`!fs.read({in: ""})`, "1:1", "names a capability, in quotes", ""},
		{`par()`, "1:1", "takes at least 1 operand, got 0", ""},
		{`call("t")`, "1:1", "takes at least 2 operands, got 1", ""},
		{`dec(1)`, "1:1", "dec takes the digits", "to_dec"},
		{`[1] |> length + 1`, "1:15", "expected another |>", "(x |> f) + 1"},
		{`[1] |> fold`, "1:8", "fold is a primitive", ""},
		{strings.Repeat("1", 4097), "1:1", "at most 4096 digits", ""},
		{"[" + strings.Repeat("1e4000,", 4294) + "1.5]", "1:30060", "more than 16777216 digits", ""},
		{"[" + strings.Repeat("1e4000,", 4294) + `dec("1.5")]`, "1:30060", "more than 16777216 digits", ""},
		{strings.Repeat("[", 10_100), "1:10009", "nested more than 10000 deep", ""},
		{strings.Repeat("1+", 6000) + "1", "1:1", "as JSON, the term is nested more than 10000 deep", ""},
		{"let {" + names(6000) + "} = {} in 1", "1:30006", "patterns are too large", ""},
		{`t => 1 + continue(1)`, "", "", ""},
		{`{name} => name`, "1:8", "", "parentheses: ({name}) =>"},
		{`map([a, b] => a, [])`, "1:12", "", "parentheses: ([a, b]) =>"},
	} {
		_, f := text.Parse([]byte(c.src), text.Options{})
		if c.place == "" {
			if f != nil {
				t.Errorf("%s: %v", c.src, f)
			}
			continue
		}
		if f == nil {
			t.Errorf("%.40q is no failure", c.src)
			continue
		}
		checkFault(t, c.src, f)
		if got := fmt.Sprintf("%d:%d", f.Line, f.Col); got != c.place || !strings.Contains(f.Message, c.message) || !strings.Contains(f.Hint, c.hint) {
			t.Errorf("%.40q at %s: %s\n%s", c.src, got, f.Message, f.Hint)
		}
	}
}

// TestSeveralFaults: one parse tells of up to five failures, each in its place.
func TestSeveralFaults(t *testing.T) {
	for src, want := range map[string]string{
		"[1 +, {a: }, f(2 3, *), (x => ), 5, let = 1, ), ]": "[5 11 18 21 31]",
		"[1 2 [3, 4] 5, *]":                           "[4 17]",
		"match v { 1 2 (3; 4) => 5; * => 6; _ => 7 }": "[13 28]",
	} {
		_, f := text.Parse([]byte(src), text.Options{})
		if f == nil {
			t.Fatal("no failure")
		}
		var cols []int
		for _, f := range append([]*fault.Fault{f}, f.More...) {
			cols = append(cols, f.Col)
		}
		if got := fmt.Sprint(cols); got != want {
			t.Errorf("columns %s, want %s\n%v", got, want, f)
		}
	}
}

// TestContinuePlaces agrees with JSON on where a tool may continue.
func TestContinuePlaces(t *testing.T) {
	for _, src := range []string{
		`n => continue(n)`, `n => if n > 1 then continue(n) else 2`, `n => let m = n in continue(m)`, `n => ((a, b) => continue(a))(1, 2)`, `n => m => continue(n)`,
		`continue(n)`, `continue(1)`, `n => 1 + continue(n)`, `n => continue(continue(n))`, `n => let m = continue(n) in m`, `n => if continue(n) then 1 else 2`,
		`n => '{continue(1)}`, `n => [continue(n)]`, `n => (m => m)(continue(1))`, `n => ((a, b) => continue(a))(1)`, `n => eval('{1 + continue(n)})`, `n => (m => continue(m))`, `n => (a => continue(a))(1, 2)`, `let step = 1 in n => continue(n - step)`, `let f = n => continue(n) in f`, `let a = 1 in continue(a)`, `let g = (k) => g(k) in (n, m) => continue(n)`, `n => ((m => k => continue(m)))(1)(2)`,
	} {
		q, f := text.Parse([]byte(src), text.Options{})
		must.NoFault(t, f)
		_, f = text.Parse([]byte(src), text.Options{Tool: "t"})
		_, g := parse.Code(text.Canonical(q.Term), parse.Options{Tool: "t"})
		if (f == nil) != (g == nil) {
			t.Errorf("%s: as text %v, as JSON %v", src, f, g)
		}
		if f != nil && !strings.HasPrefix(src[f.Col-1:], "continue") {
			t.Errorf("%s: at column %d", src, f.Col)
		}
	}
}

func TestPositionAndCaret(t *testing.T) {
	src := []byte("é =>\n\té + é\r\n")
	for off, want := range map[int][2]int{0: {1, 1}, 3: {1, 3}, 6: {2, 1}, 7: {2, 2}, 9: {2, 3}, 10: {2, 4}, 99: {3, 1}, -1: {1, 1}} {
		if line, col := text.Position(src, off); line != want[0] || col != want[1] {
			t.Errorf("%d is %d:%d", off, line, col)
		}
	}
	for _, src := range []string{string(src), strings.Repeat("é\xff\r\n\n+", 1000), strings.Repeat("xé\xff", 300) + "\n" + strings.Repeat("日", 100)} {
		lines := text.Lines([]byte(src))
		for off := -1; off <= len(src)+1; off++ {
			line, col := lines.Position(off)
			if l, c := text.Position([]byte(src), off); l != line || c != col {
				t.Fatalf("%d of %.9q… is %d:%d, of its index %d:%d", off, src, l, c, line, col)
			}
		}
	}
	// This would take hours if each column was counted from the line's beginning.
	one := []byte(strings.Repeat("x", 2<<20))
	for lines, off := text.Lines(one), 0; off < len(one); off++ {
		if line, col := lines.Position(off); line != 1 || col != off+1 {
			t.Fatalf("%d is %d:%d", off, line, col)
		}
	}
	if got, want := text.Caret(src, &fault.Fault{Line: 2, Col: 4}), "2 | \té + é\n  | \t  ^\n"; got != want {
		t.Errorf("caret\n%q, want\n%q", got, want)
	}
	long := strings.Repeat("é", 100) + "!" + strings.Repeat("ü", 100)
	lines := strings.Split(text.Caret([]byte(long), &fault.Fault{Line: 1, Col: 101}), "\n")
	if at := len([]rune(strings.TrimSuffix(lines[1], "^"))); []rune(lines[0])[at] != '!' || len([]rune(lines[0])) > 90 {
		t.Errorf("%q", lines)
	}
	if got := text.Caret(src, &fault.Fault{}); got != "" {
		t.Errorf("%q", got)
	}
}

// TestPlaces: terms that can fail have places of their own, which are lines and columns,
// and no pointers: those would lead into what nobody wrote.
func TestPlaces(t *testing.T) {
	src := `r => let a = -r, b = a != 1 in
  if b then f(a, [1, {k: a / 0}])(2) else '{x(1)} |> eval |> (y => length((y, a)))`
	p := mustRead(t, src)
	seen := map[int]string{}
	var walk func(term.Term)
	walk = func(u term.Term) {
		switch u.(type) {
		case *term.Int, *term.Str:
		default:
			if before := seen[u.Pos()]; before != "" {
				t.Errorf("two terms at %d: %s and %s", u.Pos(), before, text.Canonical(u))
			}
			seen[u.Pos()] = string(text.Canonical(u))
		}
		term.Children(u, func(v term.Term) bool { walk(v); return true })
	}
	walk(p.Term)
	div := strings.Index(src, "/ 0")
	f := &fault.Fault{Kind: fault.DivisionByZero, Message: "x"}
	text.At(f, p.Source, div)
	if f.Line != 2 || f.Col != 28 || f.In != "code" || f.At != "" || f.Place() != "2:28" || !strings.Contains(f.Fragment, "a / 0") {
		t.Errorf("%+v", f)
	}
}

// TestHintsAreRight: what Shape says of a primitive is legal text.
func TestHintsAreRight(t *testing.T) {
	for i := range prim.Table {
		row := &prim.Table[i]
		if !row.Operation() || row.With != "" || row.Name == "get" || row.Name == "match" || row.Name == "call" {
			continue
		}
		shape := strings.ReplaceAll(text.Shape(row), "?", "") // after what may be left out
		p, f := text.Parse([]byte(shape), text.Options{})
		if f != nil {
			t.Errorf("%s: %s: %v", row.Name, shape, f)
			continue
		}
		if got := string(text.Canonical(p.Term)); row.Name != "dec" && !strings.Contains(got, `"`+row.Name+`":`) {
			t.Errorf("%s is written %s, which is %s", row.Name, shape, got)
		}
	}
}
