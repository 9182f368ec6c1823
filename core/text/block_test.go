package text_test

import (
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/text"
)

// TestBlocks: blocks, and let without in, mean what let with in does.
func TestBlocks(t *testing.T) {
	for src, same := range map[string]string{
		"x => { let a = 1; let b = 2; a + b + x }":                 "x => let a = 1, b = 2 in a + b + x",
		"x => {\n  let a = 1\n  let {b} = x // two\n\n  a + b;\n}": "x => let a = 1, {b} = x in a + b",
		"let a = 1\nlet b = a\na + b":                              "let a = 1, b = a in a + b",
		"let a = 1; let b = a; a + b;":                             "let a = 1, b = a in a + b",
		"let a = 1, b = 2\n{a, b}":                                 "let a = 1, b = 2 in {a, b}",
		"let a = 1;\n(a, 2)":                                       "let a = 1 in (a, 2)",
		"let a = 1;\n[a]":                                          "let a = 1 in [a]",
		"let a = 1;\n-a":                                           "let a = 1 in -a",
		"let a = f\n  (2) in a":                                    "let a = f(2) in a",
		"let a = 1\n  - 2\n  + 3 in a":                             "let a = 1 - 2 + 3 in a",
		"let a = [1]\n  |> map(x => x)\nlet b = if a == a\n  then 1\n  else 2\nb": "let a = [1] |> map(x => x), b = if a == a then 1 else 2 in b",
		"let f = x =>\n  let y = x\n  y\nf(1)":                                    "let f = x => let y = x in y in f(1)",
		"let f = x => { let y = x; y }; f(1)":                                     "let f = x => let y = x in y in f(1)",
		"x => let a = x; let b = a; b":                                            "x => let a = x, b = a in b",
		"match 1 { 0 => { let a = 1; a }; _ => 2 }":                               "match 1 { 0 => let a = 1 in a; _ => 2 }",
		"match 1 {\n  0 => let a = 1\n    a;\n  _ => 2 }":                         "match 1 { 0 => let a = 1 in a; _ => 2 }",
		"if c then { let a = 1; a } else { let b = 2 in b }":                      "if c then let a = 1 in a else let b = 2 in b",
		"{ !fs.write(1); !fs.read(2) }":                                           "let _ = !fs.write(1) in !fs.read(2)",
		"{ f(1);\n  f(2)\n  let a = 2\n  a }":                                     "let _ = f(1), _ = f(2), a = 2 in a",
		"[{ let a = 1; a }, { let: 1 }, {let: 1, in: 2}]":                         "[let a = 1 in a, { \"let\": 1 }, {\"let\": 1, \"in\": 2}]",
		"{ let f = n => g(n); let g = n => f(n); let h = g; f(1) }":               "let f = n => g(n), g = n => f(n), h = g in f(1)",
		"let f = n => h(n)\nlet g = n => n\nlet h = n => g(n)\nf(1)":              "let f = n => h(n), g = n => n, h = n => g(n) in f(1)",
		"let f = n => g(n)\nlet a = 1\nlet g = n => n\nf(a)":                      "let f = n => g(n) in let a = 1 in let g = n => n in f(a)",
		"g => { let f = n => g(n); let g = n => f(n); f(1) }":                     "g => let f = n => g(n) in let g = n => f(n) in f(1)",
		"x => { x + 1 }": "x => x + 1",
		"if { a.b } then { c ? 1 : 2 } else { match a { 0 => 1, 1 => { -2 } } }": "if a.b then (if c then 1 else 2) else match a { 0 => 1; 1 => -2 }",
		"[{x}, {k: {x}}, {[k]: 1}, {a, [k ++ `x`]: c ? 1 : 2, $\"{k}\": 3}]":     "[{x: x}, {k: {x: x}}, put({}, k, 1), put(put({a: a}, k ++ x, if c then 1 else 2), to_text(k), 3)]",
		"a => !a.b and !c(a) or !(!a[0] == true)":                                "a => not a.b and not c(a) or not (equal((not a[0]), true))",
		"p |> !fs.read": "!fs.read(p)",
		"c => c >= \"0\" && (a, 1) < c && lower(c) < c && length(c) < 3": "c => compare(c, \"0\") >= 0 and compare((a, 1), c) < 0 and compare(lower(c), c) < 0 and length(c) < 3",
		"(xs, x) => xs ++ [x] ++ ys ++ [1, 2] ++ \"a\"":                  "(xs, x) => append(append(append(push(xs, x), ys), [1, 2]), \"a\")",
		"n => range(n) ++ range(1, n)":                                   "n => append(range(0, n), range(1, n))",
		"[x] ++ xs":                                                      "[x, ...xs]",
		"\"a\n\tb\\d+\\.\\'\"":                                           `"a\n\tb\\d+\\.'"`,
		"$\"a\nb{x}\\w\"":                                                `"a\nb" ++ to_text(x) ++ "\\w"`,
		"'{ { let a = x; a } }":                                          "'{ let a = x in a }",
	} {
		p := mustRead(t, src)
		if got, want := string(text.Canonical(p.Term)), string(text.Canonical(mustRead(t, same).Term)); got != want {
			t.Errorf("%s is\n%s, not\n%s", src, got, want)
		}
		roundTrip(t, p.Term)
	}
	p := mustRead(t, "{ length([1]); f(2); 3 }")
	if len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "column 3: what this gives is not used") {
		t.Errorf("the notes are %q", p.Notes)
	}
	if _, f := text.Parse([]byte(strings.Repeat("1;", 30_000)), text.Options{}); f == nil || !strings.Contains(f.Message, "nested") {
		t.Errorf("too many expressions: %v", f)
	}
}
