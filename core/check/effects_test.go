package check_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// TestEffects: which operations a tool can reach, through which places, and
// what of a declaration is needed for them.
func TestEffects(t *testing.T) {
	env := check.Env{
		Tool: "t",
		Callee: func(name string) (check.Callee, bool) {
			return check.Callee{
				Type: check.Function(check.String, check.Int, check.Row{Ops: []string{"kv.put"}}), Sound: true,
				Effects: []check.Effect{{Op: "kv.put"}, {Op: "fs.write", Inert: true}},
			}, name == "known"
		},
		Result: func(op string) (*check.Type, bool) { return check.String, op == "fs.read" },
	}
	for _, c := range []struct{ code, effects, absent string }{
		{`x => 1`, "", "fs.read fs.write kv.put"},
		{`x => !fs.read({path: x})`, "fs.read 1:6", "fs.write kv.put"},
		{`x => !fs.read({in: "./a", path: x})`, "fs.read 1:6 in ./a", "fs.write kv.put"},
		{`x => '{!fs.read(x)}`, "", "fs.read fs.write kv.put"},
		{`x => let f = y => !fs.read(y) in 1`, "", "fs.read fs.write kv.put"},
		{`x => let f = y => !fs.read(y) in map(f, x)`, "fs.read 1:19", "fs.write kv.put"},
		{`x => y => !fs.read(y)`, "fs.read 1:11", "fs.write kv.put"},
		{`x => [y => !fs.read(y)]`, "fs.read 1:12", "fs.write kv.put"},
		{`f => f(y => !fs.read(y))`, "fs.read 1:13", "fs.write kv.put"},
		{`x => eval('{!fs.read(x)})`, "fs.read 1:13 inert", "fs.read fs.write kv.put"},
		{`x => eval('{!fs.read(x)}, ["fs.read:./in"])`, "fs.read 1:13 with fs.read:./in", "fs.write kv.put"},
		{`x => eval('{!fs.read(x)}, ["fs.write,list:./in"])`, "fs.read 1:13 with fs.write,list:./in inert", "fs.read fs.write kv.put"},
		{`x => eval(x, ["fs:./in"])`, "* 1:6 with fs:./in", "kv.put"},
		{`x => eval(x, ["fs.read:./in", "call:known"])`, "* 1:6 with call:known fs.read:./in; fs.write 1:6 via known inert; kv.put 1:6 via known", "fs.write"},
		{`x => eval(x, ["fs.read", "call:other"])`, "* 1:6 via other; * 1:6 with call:other fs.read", ""},
		{`x => eval(x, ["fs.read", "call:*"])`, "* 1:6 via *; * 1:6 with call:* fs.read", ""},
		{`x => eval('{@known(x)}, ["call:*"])`, "call:known 1:13 with call:*; fs.write 1:13 via known inert; kv.put 1:13 via known", "fs.read fs.write"},
		{`x => eval(x)`, "* 1:6 inert", "fs.read fs.write kv.put"},
		{`x => let load = y => !fs.read(y) in eval('{load(x)})`, "fs.read 1:22 inert", "fs.read fs.write kv.put"},
		{`x => @known(x)`, "call:known 1:6; fs.write 1:6 via known inert; kv.put 1:6 via known", "fs.read fs.write"},
		{`x => @other(x)`, "* 1:6 via other; call:other 1:6", ""},
		{`x => par(!fs.read(x), try(!kv.put(x)))`, "fs.read 1:10; kv.put 1:27", "fs.write"},
	} {
		p, f := text.Parse([]byte(c.code), text.Options{Tool: "t"})
		if f != nil {
			t.Errorf("%v\n%s", f, c.code)
			continue
		}
		r := check.Infer(p.Term, p.Source, env, check.Budget{})
		var got []string
		for _, e := range r.Effects {
			s := fmt.Sprintf("%s %d:%d", e.Op, e.Line, e.Col)
			if e.In != "" {
				s += " in " + e.In
			}
			for _, list := range e.With {
				if len(list) > 0 {
					s += " with " + strings.Join(list, " ")
				}
			}
			if e.Via != "" {
				s += " via " + e.Via
			}
			if e.Inert {
				s += " inert"
			}
			got = append(got, s)
			if e.Line == 0 || e.Col == 0 {
				t.Errorf("%s: %s has no place", c.code, e.Op)
			}
		}
		slices.Sort(got)
		absent := slices.DeleteFunc([]string{"fs.read", "fs.write", "kv.put"}, func(op string) bool {
			return r.Open || slices.ContainsFunc(r.Effects, func(e check.Effect) bool { return e.May(op) })
		})
		if s := strings.Join(got, "; ") + " | " + strings.Join(absent, " "); s != c.effects+" | "+c.absent {
			t.Errorf("%s\ngot  %s\nwant %s | %s", c.code, s, c.effects, c.absent)
		}
	}
}

// TestFunctionEffects: the effects in the types of functions, where what is applied isn't known,
// and where the code isn't that is evaluated: its eval's list bounds it.
func TestFunctionEffects(t *testing.T) {
	for _, c := range []struct{ code, want string }{
		{`x => eval(x)`, `(code) -> ?`},
		{`x => eval(x, ["fs.read,list:./a"])`, `(code) ->{fs.list, fs.read} ?`},
		{`x => eval(x, ["fs:./a"])`, `(code) ->{fs.*} ?`},
		{`x => eval(x, ["fs:./a", "fs.read:./b"])`, `(code) ->{fs.*} ?`},
		{`x => eval(x, ["fetch.get:https://a.example"])`, `(code) ->{fetch.*} ?`},
		{`x => eval(x, ["call:a", "kv.put:b"])`, `(code) ->{call:a, kv.put} ?`},
		{`x => eval(x, ["call:a", "call:*"])`, `(code) ->{call:*} ?`},
		{`x => eval(x, ["call:a,until=2030-01-01T00:00:00Z"])`, `(code) ->{call:*} ?`},
		{`x => eval('{eval(x, ["fs.read,list:./a"])}, ["fs:./a", "kv"])`, `(code) ->{fs.list, fs.read} ?`},
		{`x => eval('{eval(x, ["fs", "kv.put"])}, ["fs.read", "kv"])`, `(code) ->{fs.read, kv.put} ?`},
		{`x => eval('{eval(x, ["fs"])}, ["kv"])`, `(code) -> ?`},
		{`x => let f = eval(x, ["fs.read:./a"]) in y => f(y)`, `(code) ->{fs.read} (any) ->{fs.read} ?`},
		{`x => let f = eval(x, ["fs.read"]) in y => fold(f, y, [1])`, `(code) ->{fs.read} (a) ->{fs.read} a | ?`},
		{`x => let f = eval(x, ["fs.read"]) in if equal(type_of(f), "function") then y => f(y) else 1`, `(code) ->{fs.read} int | ((any) ->{fs.read} ?)`},
		{`x => let h = y => !fs.read(y) in let f = eval(x) in z => f(z)`, `(code) -> (any) ->{fs.read} ?`},
		{`x => let h = [{g: y => !fs.read(y)}] in let f = eval(x) in z => f(z)`, `(code) -> (any) ->{fs.read} ?`},
		{`f => f(y => !fs.read(y))`, `(((any) ->{fs.read} ?) ->{fs.read} a) ->{fs.read} a`},
		{`f => let g = f([y => !fs.read(y)]) in z => g(z)`, `((list[(any) ->{fs.read} ?]) ->{fs.read} (a) ->{fs.read} b) ->{fs.read} (a) ->{fs.read} b`},
		{`(f, xs) => (map(f, xs), y => !fs.read(y))`, `((a) -> b) -> (list[a]) -> pair[list[b], (any) ->{fs.read} ?]`},
	} {
		got := reportOf(t, c.code).Type
		if got.String() != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.code, got, c.want)
		}
		if again, err := check.ParseType(got.String()); err != nil || again.String() != got.String() {
			t.Errorf("%s is read as %s: %v", got, again, err)
		}
	}
	kind, _ := check.ParseType("(int) ->{fs.*} int")
	one, _ := check.ParseType("(int) ->{fs.read} int")
	if check.Within(one, kind) != "" || check.Within(kind, one) == "" {
		t.Error("fs.read is of fs.*, and not the other way round")
	}
}

// small is a tool of some 30 terms, as most are.
const small = "(items, rate) => let total = sum(map(i => i.price * i.count, items)) in {total: total, tax: div(total * rate, 100)}"

func BenchmarkSmallTool(b *testing.B) {
	p, f := text.Parse([]byte(small), text.Options{Tool: "tool"})
	must.NoFault(b, f)
	b.ReportAllocs()
	for b.Loop() {
		check.Infer(p.Term, p.Source, check.Env{Tool: "tool"}, check.Budget{})
	}
}

// A parameter that no type permits is used in one way or the other when it runs: what
// it is then may come out.
func TestConflictComesOut(t *testing.T) {
	for _, src := range []string{
		`x => if (if equal(type_of(x), "record") then "" else x) then x else replace(x, "a", "b")`,
		`x => if x then x else replace(x, "a", "b")`,
		`x => if (if equal(type_of(x), "record") then "" else x) then [x] else [replace(x, "a", "b")]`,
	} {
		p, f := text.Parse([]byte(src), text.Options{Tool: "tool"})
		must.NoFault(t, f)
		r := check.Infer(p.Term, p.Source, check.Env{Tool: "tool"}, check.Budget{})
		if r.Sound() || !strings.Contains(r.Type.String(), "string | ?") {
			t.Errorf("%s\nis %s", src, r.Type)
		}
		if schema := string(check.OutputSchema(r)); strings.Contains(schema, `"type":"string"`) {
			t.Errorf("%s\ngives, by its schema, %s", src, schema)
		}
	}
}

// What a request or a call of a tool raises is some data, and a dynamic place where more is
// demanded of it.
func TestRaisedIsData(t *testing.T) {
	env := check.Env{
		Tool:     "tool",
		Result:   func(string) (*check.Type, bool) { return check.String, true },
		Argument: func(op string) (*check.Type, bool) { return check.Data, op == "log.write" },
		Callee: func(string) (check.Callee, bool) {
			return check.Callee{Type: check.Function(check.Any, check.Int, check.Row{}), Sound: true}, true
		},
	}
	for src, sound := range map[string]bool{
		`x => try(!fs.read(x)).error.value`:                                                  true,
		`x => try(@other(1)).error.value`:                                                    true,
		`x => to_text(try(!fs.read(x)).error.value)`:                                         true,
		`x => try(!fs.read(x)).error.value + 1`:                                              false,
		`x => try(map(y => !fs.read(y), [1])).error.value.a`:                                 false,
		`x => try(@other(1)).error.value ++ ""`:                                              false,
		`x => compare(try(!fs.read(x)).error.value, 1)`:                                      false,
		`x => compare("a", try(@other(1)).error.value)`:                                      false,
		`x => compare(try(!fs.read(x)).error.value, x)`:                                      false,
		`x => sort([1, try(!fs.read(x)).error.value])`:                                       false,
		`x => equal(try(!fs.read(x)).error.value, 1)`:                                        true,
		`x => match try(!fs.read(x)) { {error} => @log(error); _ => 1 }`:                     true,
		`x => !log.write(try(!fs.read(x)).error)`:                                            true,
		`x => let v = try(!fs.read(1)).error.value in if has(v, "a") then v.a else 1`:        false,
		`x => let v = try(!fs.read(1)).error.value in match v { {a: [b]} => b + 1; _ => 1 }`: false,
	} {
		p, f := text.Parse([]byte(src), text.Options{Tool: "tool"})
		must.NoFault(t, f)
		if r := check.Infer(p.Term, p.Source, env, check.Budget{}); r.Sound() != sound || len(r.Diagnostics) > 0 {
			t.Errorf("%s\nis %s, %v, %v", src, r.Type, r.Dynamic, r.Diagnostics)
		}
	}
}

// A place that fails each time it is reached breaks a program, but for those that a
// program may be meant to have.
func TestBroken(t *testing.T) {
	for _, c := range []struct {
		src    string
		broken int
	}{
		{`n => foo(n)`, 1},
		{`n => if n < 0 then "a" - 1 else n`, 1},
		{`xs => match xs { [x] => 1 - "a"; _ => 0 }`, 1},
		{`n => map(x => x - "a", range(0, n))`, 1},
		{`n => [n - "a", foo, n ++ 1]`, 3},
		{`n => let f = x => x - "a" in if n < 0 then f(n) else f(1)`, 1},
		{`n => n / 0`, 1},
		{`n => try(n - "a")`, 0},
		{`n => let f = x => x - "a" in try(f(n))`, 1},
		{`n => quote(1 - "a")`, 0},
		{`n => eval(quote(1 - "a"))`, 0},
		{`n => raise("no")`, 0},
		{`n => match n { 1 => 2 }`, 0},
		{`match "a" { "b" => 1 }`, 0},
		{`let f = x => x in match f { (a, b) => a, [a] => a, {k: a} => a, _ => f(1) }`, 0},
		{`n => let x = 5 in if equal(type_of(x), "string") then x ++ foo else n`, 0},
		{`n => let x = 5 in if equal(type_of(x), "string") then [1 - "a"] else [x + n]`, 0},
		{`n => let x = 5 in if equal(type_of(x), "int") then [1 - "a"] else [n]`, 1},
		{`n => if equal(type_of(n), "string") then length(n) - "a" else 0`, 1},
		{`n => let f = x => if equal(type_of(x), "string") then x ++ "a" - 1 else x in [f(n), f(1)]`, 1},
		{`r => get({a: 1}, "b")`, 1},
		{`x + 1`, 0},
		{`x + y`, 2},
	} {
		p, f := text.Parse([]byte(c.src), text.Options{Tool: "tool"})
		if f != nil {
			t.Fatal(c.src, f)
		}
		r := check.Infer(p.Term, p.Source, check.Env{Tool: "tool"}, check.Budget{})
		if got := r.Broken(); len(got) != c.broken {
			t.Errorf("%s\nhas the broken places %v, expected %d", c.src, got, c.broken)
		}
	}
}

// What can't be the argument of an operation is told before it runs, and what a caller
// gives for it is typed by it.
func TestArgument(t *testing.T) {
	issues, err := check.ParseType("{labels?: list[string], owner: string, page?: int, sort?: {by: string, *: json} | string, where?: json}")
	must.NoError(t, err)
	read, _ := check.ParseType("string | {path: string}")
	for _, c := range []struct{ code, refused, typ string }{
		{code: `!github.list({owner: "a"})`},
		{code: `!github.list({owner: "a", page: 3, labels: ["x"], where: {a: [1, null]}})`},
		{code: `!github.list({owner: "a", page: 10.0})`},
		{code: `!github.list({owner: "a", sort: "up"})`},
		{code: `!github.list({owner: "a", sort: {by: "x", more: 1}})`},
		{code: `!github.list(parse_json("1"))`},
		{code: `!fs.read("a")`}, {code: `!fs.read({path: "a"})`}, {code: `!other.op(1)`},
		{code: `!github.list({owner: 3})`, refused: "github.list takes a string as owner, not an integer"},
		{code: `!github.list({owner: "a", page: "3"})`, refused: "github.list takes an integer as page, not a string"},
		{code: `!github.list({page: 3})`, refused: `github.list: the key "owner" is missing`},
		{code: `!github.list({owner: "a", pages: 3})`, refused: `github.list: unknown key "pages"; did you mean "page"?`},
		{code: `!github.list("a")`, refused: "github.list takes a record as its argument, not a string"},
		{code: `!github.list({owner: "a", sort: {}})`, refused: `github.list: the key "by" is missing`},
		{code: `!github.list({owner: "a", sort: 7})`, refused: "github.list takes a string or a record as sort, not an integer"},
		{code: `!github.list({owner: "a", where: x => x})`, refused: "github.list takes values that JSON has as where, not a function"},
		{code: `!fs.read(1)`, refused: "fs.read takes"},
		{code: `x => if x then !github.list({owner: 1}) else !github.list({owner: "a"})`, refused: "github.list takes a string as owner"},
		{code: `x => !github.list({owner: if x then 1 else "a"})`},
		{code: `r => !github.list({owner: r.owner, page: r.page})`, typ: "({owner: string, page: int, *: any}) ->{github.list} data"},
		{code: `o => !github.list({owner: o})`, typ: "(string) ->{github.list} data"},
	} {
		p, f := text.Parse([]byte(c.code), text.Options{Tool: "tool"})
		if f != nil {
			t.Errorf("%s: %v", c.code, f)
			continue
		}
		r := check.Infer(p.Term, p.Source, check.Env{
			Tool: "tool", Result: func(string) (*check.Type, bool) { return check.Data, true },
			Argument: func(op string) (*check.Type, bool) {
				typ, ok := map[string]*check.Type{"github.list": issues, "fs.read": read}[op]
				return typ, ok
			},
		}, check.Budget{})
		var all []string
		for _, d := range r.Diagnostics {
			all = append(all, d.Message)
		}
		if got := strings.Join(all, "; "); (c.refused == "") != (got == "") || !strings.Contains(got, c.refused) {
			t.Errorf("%s: %q, not %q", c.code, got, c.refused)
		}
		if c.typ != "" && r.Type.String() != c.typ {
			t.Errorf("%s: %s, not %s", c.code, r.Type, c.typ)
		}
	}
}

// TestSpokenPlaces: what may fail is told by what stands in the code, and not where a guard
// excludes it.
func TestSpokenPlaces(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		`s => split(s, ",").map(p => re_find(p, "(a)=(b)")).filter(g => g != null and g[1] == "E").map(g => g[0])`:                          ``,
		`s => split(s, ",").map(p => re_find(p, "(a)=(b)")).map(g => g[0])`:                                                                 `x[i] takes a string or a list or a pair or a record as x, not null`,
		`o => fold((acc, k) => if type_of(o[k]) == "list" then push(o[k], acc) else acc, 0, keys(o))`:                                       ``,
		`(cs, n) => fold((b, a) => push(b, fold((m, c) => if b[a - c] != null then [c, ...b[a - c]] else m, null, cs)), [[]], range(1, n))`: ``,
		`(cs, n) => fold((b, a) => push(b, fold((m, c) => if b[a - c] != null then [c, ...b[a + c]] else m, null, cs)), [[]], range(1, n))`: `what is joined to a list is a list, not null`,
		`s => map(([a, b]) => a, map(l => re_find(l, "(a)(b)"), split(s, ",")))`:                                                            `the pattern [a, b] takes a list, not null`,
		`s => parse_json(s)(1)`: `app takes a function as its "func", not data`,
		`n => keys(if n > 4 then {a: 1} else if n > 3 then "a" else if n > 2 then null else if n > 1 then [1] else if n > 0 then 1.5 else 2)`:    `keys takes a record as its operand, not a number or a string or null or a list`,
		`n => keys(if n > 4 then {a: 1} else if n > 3 then "a" else if n > 2 then null else if n > 1 then [1] else if n > 0 then n == 0 else 2)`: `not a value of another kind`,
		`s => {...(if s == "a" then null else {a: 2}), b: 1}`: `what ... takes into a record is a record, not null`,
	} {
		var all []string
		for _, d := range reportOf(t, code).Diagnostics {
			all = append(all, d.Message)
		}
		for _, u := range reportOf(t, code).Dynamic {
			if u.Reason == check.ReasonTested {
				all = append(all, u.Message)
			}
		}
		if got := strings.Join(all, "\n"); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, not %q", code, got, want)
		}
	}
}

// TestNotes: what is compared and can never be equal is a note, and so is a quotient
// that is used as if it had digits after the point.
func TestNotes(t *testing.T) {
	for _, c := range []struct{ code, want string }{
		{`x => type_of(x) == "number"`, `line 1, column 20: type_of never gives "number", but one of int, dec, bool`},
		{`p => match try(!fs.read(p)) { {ok: s} => s; {error: e} if e.kind == "not_found" => null }`, `an effect that fails has the kind "effect_failed", and its message says not_found: write contains(e.message, "not_found")`},
		{`p => match try(!fs.read(p)) { {error: {kind: "not_found"}} => null; _ => 1 }`, `write contains(e.message, "not_found")`},
		{`p => filter(e => e.kind == "file", !fs.list(p))`, ""},
		{`x => match type_of(x) { "null" => 1; _ => 2 }`, `type_of never gives "null"`},
		{`s => length(s) == "2"`, "line 1, column 16: this is never true: an integer and a string"},
		{`xs => if xs[0] == "put" then xs[1] + 1 else 0`, ""},
		{`n => n + 1 != "2"`, "line 1, column 13: this is always true: a number and a string"},
		{`n => n + 1 > 0 and n == "a"`, "line 1, column 22: this is true of a string only, and the code takes a number there, as its type says"},
		{`rows => map(r => match r.x { "N/A" => 0; n => n + 1 }, rows)`, "column 30: this is true of a string only, and the code takes a number there"},
		{`rows => rows |> filter(r => r.x != "N/A") |> map(r => r.x + 1)`, "column 34: this is false of a string only, and the code takes a number there"},
		{`rows => map(r => if r.x in ["", "N/A"] then 0 else r.x + 1, rows)`, "column 25: this finds a string only, and the code takes a number there"},
		{`(xs, n) => [contains(xs, "a"), sum(xs), "a" == n, n / 2.5]`, "line 1, column 45: this is true of a string only, and the code takes a number there, as its type says"},
		{`x => match to_text(x) { 1 => 2; _ => 3 }`, "column 25: this is never true"},
		{`s => match re_find(s, "(a)(b)?") { [a, b] if b != null => b; _ => "" }`, `this is always true: a string and null are never equal; a group of re_find that took no part is ""`},
		{`s => let i = index_of(s, "z") in if i == null then "none" else s[i:]`, "an integer and null are never equal; index_of gives -1 where there is none"},
		{`s => let i = index_of(s, "z"), u = lower(s) in if i == null or i < 0 then "" else if u != null and u != "" then u else s`, ""},
		{`s => if length(s) == null then 1 else 2`, "never true: an integer and null are never equal"},
		{`s => let m = re_find(s, "id=(\\w+)") in if m == null then "none" else m[1]`, "column 72: [1] is one character of the text that the group fits"},
		{`s => map(m => m[0], re_find_all(s, "#(\\w+)"))`, "column 16: [0] is one character of the text that the group fits"},
		{`s => map(m => m[0], re_find_all(s, "(#)(\\w+)")) ++ map(w => w[0], re_find_all(s, "\\w+")) ++ [re_find_all(s, "#(\\w+)")[0]]`, ""},
		{`s => let first = m => m[0] in [first(["a"]), first(re_find_all(s, "(a)")), first(re_find(s, "(a)"))]`, ""},
		// Patterns that never fit.
		{`s => match parse_int(s) { {ok: n} => n; _ => 0 }`, "column 27: the pattern {ok: n} never fits an integer; try gives it: match try(…)"},
		{`s => match try(parse_int(s)) { {value: v} => v; _ => 0 }`, `column 32: the pattern {value: v} never fits: there is no key "value"; try gives {ok: v} or {error: e}`},
		{`s => match try(parse_int(s)) { {ok: v} => v; {error: e} => 0 }`, ""},
		{`s => match re_find_all(s, "x(\\d+)") { [[a], ...r] => a; _ => "" }`, "column 41: the pattern [a] never fits a string; one group gives its text alone: write a"},
		{`xs => match enumerate(xs) { [[i, x, y], ...r] => x; _ => 0 }`, "column 30: the pattern [i, x, y] never fits a pair; write (a, b)"},
		{`v => match v { [] => 0; (a, b) => 1; [x, ...r] => 2; {k} => 3; _ => 4 }`, ""},
		{`let f = v => match v { [a, b] => a; (a, b) => b; _ => 0 } in [f((1, 2)), f([1, 2])]`, ""},
		{`x => x == 1 or x == "a"`, ""},
		{`(a, b) => a == b`, ""},
		{`r => r.kind == "a"`, ""},
		{`x => match x { 1 => 2; "a" => 3; _ => 4 }`, ""},
		{`let f = x => x == 1 in [f(1), f("a")]`, ""},
		{`xs => unique(xs)`, ""},
		{`n => (n + 1) * 1.5 == 2`, ""},
		{`xs => div(sum(xs), length(xs)) + 1`, "line 1, column 7: / of two integers is rounded down: ratio("},
		{`(a, b) => {pct: 1 + a * 100 / b}`, "line 1, column 29: / of two integers is rounded down: ratio("},
		{`(a, b) => {average: if b == 0 then 0 else a / b}`, "line 1, column 45: / of two integers is rounded down: ratio("},
		{`(a, b) => $"{a / b} each"`, "line 1, column 16: / of two integers is rounded down: ratio("},
		{`xs => round_dec(div(sum(xs), length(xs)), 2, "half_up")`, "line 1, column 17: / of two integers is rounded down"},
		{`n => to_dec(n / 2)`, "line 1, column 15: / of two integers is rounded down"},
		{`n => n / 2 * 1.5`, "line 1, column 8: / of two integers is rounded down"},
		{`xs => round(sum(xs) / length(xs), 2)`, ""},
		{`xs => sqrt(sum(xs) / length(xs), 2)`, ""},
		{`r => let p = r.a / r.b in p * 100`, "line 1, column 18: / of two integers is rounded down: ratio(r.a, r.b) has the digits after the point, round(r.a / r.b, 2) two of them"},
		{`f => {c: (f - 32) * 5 / 9, d: 5 / 9 * (f - 32)}`, "line 1, column 23: / of two integers is rounded down: ratio((f - 32) * 5, 9) has the digits after the point, round((f - 32) * 5 / 9, 2) two of them; and 1 more"},
		{`xs => let s = sort(xs) in let n = length(s) in if n % 2 == 1 then s[n / 2] else (s[n / 2 - 1] + s[n / 2]) / 2`, "line 1, column 107: /"},
		{`xs => round(sum(map(x => x / 3, xs)), 2)`, "line 1, column 28: /"},
		{`(a, b) => let q = if b > 0 then a / b else 0 in format(q + 1, 2)`, "line 1, column 35: /"},
		{`s => {hours: s / 3600, minutes: s % 3600 / 60, quarter: s / 4, n: s * (s + 1) / 2}`, ""},
		{`(xs, n) => map(i => xs[i * n:i * n + n], range((length(xs) + n - 1) / n)) ++ [xs[length(xs) / 2], x => x / 10 * 10, (a, b) => a / gcd(a, b)]`, ""},
		{`(xs, x) => let go = (lo, hi) => let m = (lo + hi) / 2 in if lo > hi then m else if xs[m] < x then go(m + 1, hi) else go(lo, m - 1) in go(0, length(xs))`, ""},
		{`n => if n < 2 then n else n % 2 + self(n / 2)`, ""},
		// What a recursion gathers, and what it counts, indexes and halves.
		{`(a, tiers) => let go = (prev, ts, acc) => match ts { [] => acc; [[limit, pct], ...rest] => let hi = if limit == null then a else min([a, limit]) in if hi <= prev then acc else go(hi, rest, acc + (hi - prev) * pct / 100) } in round(go(0, tiers, 0), 2)`, "column 214: / of two integers"},
		{`(n, total) => if n == 0 then total else self(n - 1, total + n / 2)`, "column 63: /"},
		{`(p, rate, y) => let go = (b, n) => if n == 0 then b else go(b + b * rate / 100, n - 1) in round(go(p, y), 2)`, "column 74: /"},
		{`(p, n) => let go = (b, n) => if n == 0 then b else go(b + b / 10, n - 1) in go(p, n)`, "column 61: /"},
		{`(p, n) => let go = (b, n) => if n == 0 then b else go(b * 21 / 20, n - 1) in go(p, n)`, "column 62: /"},
		{`(p, y) => let go = (b, n) => if n == 0 then b else go(b * 105 / 100, n - 1) in go(p, y)`, "column 63: /"},
		{`(ts, a) => let go = (ts, acc) => if isEmpty(ts) then {sum: acc} else let t = a * ts[0].p / 100 in if t < 5 then go(tail(ts), acc) else go(tail(ts), acc + t) in go(ts, 0)`, "column 90: /"},
		{`(ts, a) => let go = (ts, acc) => match ts { [] => acc; [t, ...r] => let next = acc + a * t.p / 100 in go(r, next) } in go(ts, 0)`, "column 94: /"},
		{`(n, lo, hi) => let go = (lo, hi) => if lo >= hi then lo else if lo * lo > n then go(lo, (lo + hi) / 2) else go(lo + (hi - lo + 1) / 2, hi) in go(lo, hi)`, ""},
		{`(n, lo, hi) => let go = (lo, hi) => let m = lo + (hi - lo) / 2 in if lo >= hi then lo else if m * m > n then go(lo, m) else go(m, hi) in go(lo, hi)`, ""},
		{`n => let go = (n, zeros) => if n == 0 then zeros else go(n / 5, zeros + n / 5) in go(n, 0)`, ""},
		{`n => let go = (n, k) => if n <= 1 then k else go(n - n / 2, k + 1) in go(n, 0)`, ""},
		{`n => let go = (n, acc) => if n == 0 then acc else go(n / 10, acc * 10 + n % 10) in go(n, 0)`, ""},
		{`(xs, x) => let go = (from, n) => let half = n / 2 in if n == 0 then from else if xs[from + half] < x then go(from + half, n - half) else go(from, half) in go(0, length(xs))`, ""},
		{`(n, x) => let y = (x + n / x) / 2 in if y >= x then x else self(n, y)`, ""},
		{`(a, b) => if b == 0 then a else self(b, a - a / b * b)`, ""},
		{`(n, k, acc) => if k > n then acc else self(n, k + 1, acc * (n - k + 1) / k)`, ""},
		// mean gives an integer where it is whole.
		{`xs => let m = mean(xs) in let v = sum(map(x => (x - m) ** 2, xs)) / (length(xs) - 1) in sqrt(v)`, "line 1, column 67: / of two integers is rounded down: ratio(sum(map(x => (x - m) ** 2, xs)), length(xs) - 1) has the digits after the point, round(sum(map(x => (x - m) ** 2, xs)) / (length(xs) - 1), 2) two of them"},
		{`xs => mean(xs) * 1.5 / 2`, ""},
		{`(n, d) => (n + d - 1) / d + (n + 9) / 10`, ""},
		// Rounded to the nearest, towards 0, and of days.
		{`(a, b) => if a < 0 then -((-2 * a + b) / (2 * b)) else (a * 12 + 120) / 240`, ""},
		{`(a, b) => (a + b) / (3 * b)`, "column 19: /"},
		{`(a, b) => let q = abs(a) / abs(b) in if (a < 0) == (b < 0) then q else -q`, ""},
		{`(y, m) => 365 * y + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5`, ""},
		{`(y, m) => y / 4 - y / 100 + m / 400`, "column 13: /"},
		{`(y, mo, d) => let a = (14 - mo) / 12, m = mo + 12 * a - 3 in let y = y + 4800 - a in d + (153 * m + 2) / 5 + 365 * y + y / 4 - y / 100 + y / 400 - 32045`, ""},
		{`(y, m) => let leaps = n => n / 4 - n / 100 + n / 400, q = y / 400, c = y / 100 in [365 * y + leaps(y - 1) + (367 * m - 362) / 12, y * 365 + y / 4 - c + q + m * 3 / 5]`, ""},
		{`(y, m) => 365 * y + (let q = y / 4 in q - y / 100 + y / 400) + (367 * m - 362) / 12`, ""},
		{`(y, m) => (if m > 2 then y / 4 - y / 100 + y / 400 else 0) + (367 * m - 362) / 12`, ""},
		{`let leaps = n => let y = n - 1 in y / 4 - y / 100 + y / 400 in (y, m) => leaps(y) + (367 * m - 362) / 12`, ""},
		{`2023 / 4 - 2023 / 100 + 2023 / 400 + (367 * 3 - 362) / 12`, ""},
		{`let y = 2023, m = 3 in y / 4 - y / 100 + y / 400 + (367 * m - 362) / 12`, ""},
		{`(y, m) => (if y / 4 - y / 100 + y / 400 > 3 then 1 else 0) + m / 12`, "column 64: /"},
		{`(y, m) => (let d = y / 4 - y / 100 + y / 400 in m) + m / 12`, "column 56: /"},
		{`o => {vat: o.sum / 100, part: o.sum / 400, avg: o.total / o.n}`, "column 57: / of two integers is rounded down: ratio(o.total, o.n) has the digits after the point, round(o.total / o.n, 2) two of them"},
		{`(y, n) => {days: y / 4 - y / 100 + y / 400, avg: (y + 1) / n}`, "column 58: / of two integers is rounded down: ratio(y + 1, n) has the digits after the point, round((y + 1) / n, 2) two of them"},
		{`(a, b) => let rate = a / b in rate`, "line 1, column 24: / of two integers is rounded down"},
		{`xs => floor(sum(xs) / length(xs))`, ""},
		{`n => n / 2.0 * 1.5`, ""},
		{`[1 / 0, 6 / 3]`, ""},
		{`n => { let pages = n / 10; ceil(pages) }`, "ratio(n, 10) has"},
		{`n => { let pages = n / 10; pages }`, ""},
		{`xs => xs.reduce((a, b) => a + b) / 2`, "ratio(xs.reduce((a, b) => a + b), 2) has the digits after the point, round(xs.reduce((a, b) => a + b) / 2, 2) two"},
		{`n => 1 + n.a[0] * 2 / -n.b * 3`, "ratio(n.a[0] * 2, -n.b) has"},
		{`n => n / 2 + 1`, "line 1, column 8: /"},
		// Compared with an integer, a quotient may be rounded down before >= and <, not before > and <=.
		{`(spent, budget) => if spent / budget > 1 then "over" else "ok"`, "column 29: / of two integers is rounded down: ratio(spent, budget)"},
		{`(a, b) => [3 < a / b]`, "column 18: /"},
		{`(a, b) => [a / 2 <= b]`, "column 14: /"},
		{`(a, b) => [a / 2 + 1 > b]`, "column 14: /"},
		{`(a, b) => [1 + a / 2 >= b, b > a / 2 + 1, a / 2 - 1 < b, b <= a / 2]`, ""},
		{`(a, b) => [1 - a / 2 >= b]`, "column 18: /"},
		{`(done, total) => done / total * 100 >= 50`, "column 23: /"},
		{`(a, b, c, d) => a / b < c / d`, "column 19: / of two integers is rounded down: ratio(a, b) has the digits after the point, round(a / b, 2) two of them; and 1 more"},
		{`n => n / 10 * 10 > 3`, ""},
		{`(n, d) => n / d * d == n`, ""},
		{`(n, k) => n / k > 0`, ""},
		{`n => [n / 10 * 10, 1 / 3 * 3]`, "column 22: /"},
		// Looked for in a list of others.
		{`contains(["1", "2"], 1)`, "column 1: this finds nothing: a string and an integer are never equal"},
		{`xs => 1 in map(to_text, xs)`, "column 9: this finds nothing"},
		{`x => [x in ["1", 2], contains([1, "a"], 2), index_of(x, 2), index_of(["a", 1], "b")]`, ""},
		{`xs => index_of(map(length, xs), "2")`, "column 7: this finds nothing"},
		// Dates.
		{`d => contains(["Sat", "Sunday"], weekday(d))`, `column 16: weekday never gives "Sat", but Monday, Tuesday … Sunday; write "Saturday"`},
		{`d => let w = weekday(d), end = ["Saturday", "sun"] in w == "friday" or w in end`, `column 45: weekday never gives "sun", but Monday, Tuesday … Sunday; write "Sunday"` + "\n" + `line 1, column 60: weekday never gives "friday"`},
		{`d => match weekday(d) { "Saturday" | "Sunday" => 1; _ => weekday(d) == d }`, ""},
		{`xs => let d = weekday("2026-11-27") in map(d => d == "total", xs)`, ""},
		{`(dates, start) => let t = add_time(start, 14) in map(t => weekday(t), dates)`, ""},
		{`(t, n) => weekday(add_time(t, 24 * 60 * 60 * n))`, ""},
		{`(t, n) => let day = 86400 in weekday(add_time(t, -(n * day)))`, ""},
		{`(start, n) => format_time(add_time(start, n), "YYYY-MM-DD")`, "column 27: add_time adds a number as seconds; where n is a number of days write add_time(start, {days: n})"},
		{`start => let due = add_time(start, 14) in weekday(due) ++ format_time(due, "D MMM")`, "column 20: add_time adds a number as seconds; 14 days later is add_time(start, {days: 14})"},
		{`(t, n) => [format_time(add_time(t, n), "HH:mm"), format_time(add_time(t, {days: n}), "D"), format_time(add_time(t, n * 86400), "D"), weekday(add_time(t, 90000)), add_time(t, n)]`, ""},
		{`t => format_time(t, "YYYY-DDD") ++ format_time(t, "[DDD] MMMM DD")`, "column 21: DDD is no part of a time and is read as DD and D; the day of the year is diff_time("},
		{`s => match try(parse_int(s)) { {ok: n} => to_text(n), {error: e} => $"bad: {e}" }`, "column 77: e is the record of an error; its text is e.message"},
		{`s => match try(parse_int(s)) { {ok: n} => to_text(n), {error: e} => $"bad: {e.message}" }`, ""},
		{`(a, b) => let g = gcd(a, b), k = if b < 0 then -g else g in {n: a / k, d: b / k}`, ""},
		{`r => let bs = map(v => v / r.width, r.values) in map(i => {from: i * r.width, n: count(b => b == i, bs)}, range(min(bs), max(bs) + 1))`, ""},
		{`r => let each = map(v => v / r.n, r.values) in {least: min(each), most: max(each), all: each}`, "line 1, column 28: / of two integers is rounded down"},
		{`(s, d) => if starts_with(d, s) then weekday(add_time(d ++ "-01", {days: 1})) else ""`, ""},
	} {
		var got []string
		for _, n := range reportOf(t, c.code).Notes {
			got = append(got, fmt.Sprintf("line %d, column %d: %s", n.Line, n.Col, n.Message))
		}
		if said := strings.Join(got, "\n"); !strings.Contains(said, c.want) || c.want == "" && said != "" {
			t.Errorf("%s: the notes are %q, want %q", c.code, said, c.want)
		}
	}
}

// TestLongDividends: what is noted of divisions takes memory in proportion to the code.
func TestLongDividends(t *testing.T) {
	for before, part := range map[string]string{"n => n": " / 100", "m => m": " % 100", "a => a / (1": " * (n - 1)", "b => 1": " - 2 * b"} {
		code := before + strings.Repeat(part, 400)
		p, f := text.Parse([]byte(code+strings.Repeat(")", strings.Count(code, "(")-strings.Count(code, ")"))), text.Options{Tool: "t"})
		must.NoFault(t, f)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		check.Noted(p.Term, p.Source, check.Budget{Steps: 1})
		if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 1<<20 {
			t.Errorf("%.30s… takes %d KiB", code, (after.TotalAlloc-before.TotalAlloc)>>10)
		}
	}
}

// TestManyFunctions: the type of a list of functions whose records have other fields is
// worked out in a bounded number of parts.
func TestManyFunctions(t *testing.T) {
	var fs strings.Builder
	for i := range 700 {
		fmt.Fprintf(&fs, "y => y.k%d, ", i)
	}
	p, f := text.Parse([]byte("x => ["+fs.String()+"x]"), text.Options{Tool: "t"})
	must.NoFault(t, f)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := check.Infer(p.Term, p.Source, check.Env{Tool: "t"}, check.Budget{})
	if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 64<<20 {
		t.Errorf("it takes %d MiB", (after.TotalAlloc-before.TotalAlloc)>>20)
	}
	if r.Sound() {
		t.Error("a type that was left open is said to be whole")
	}
}

// TestManyDefaults: the fields of a record that is spread with another are put together once.
func TestManyDefaults(t *testing.T) {
	var fields strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&fields, "k%05d: 1, ", i)
	}
	for _, code := range []string{"r => {" + fields.String() + "...r}", "r => let a = {" + fields.String() + "}, b = {x: r} in {...a, ...b}", "r => let a = {" + fields.String() + "}, b = {x: r} in {...b, ...a}"} {
		p, f := text.Parse([]byte(code), text.Options{Tool: "t"})
		must.NoFault(t, f)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		check.Infer(p.Term, p.Source, check.Env{Tool: "t"}, check.Budget{})
		if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 64<<20 {
			t.Errorf("%.20s… %s takes %d MiB", code, code[len(code)-12:], (after.TotalAlloc-before.TotalAlloc)>>20)
		}
	}
}

// TestDeepDivisions: looking for divisions takes time in proportion to the code, where it took minutes.
func TestDeepDivisions(t *testing.T) {
	n, one := &term.Var{Name: "n"}, &term.Int{Value: 1}
	div := &term.Prim{ID: prim.Div, Args: []term.Term{n, &term.Int{Value: 2}}}
	for name, c := range map[string]struct {
		depth int
		wrap  func(term.Term) term.Term
	}{
		"arguments": {600_000, func(t term.Term) term.Term { return &term.App{Func: t, Arg: one} }},
		"calls": {must.Full(60_000, 240_000), func(t term.Term) term.Term {
			return &term.App{Func: &term.Self{}, Arg: &term.Prim{ID: prim.Add, Args: []term.Term{n, t}}}
		}},
		"sums": {600_000, func(t term.Term) term.Term { return &term.Prim{ID: prim.Add, Args: []term.Term{t, one}} }},
	} {
		t.Run(name, func(t *testing.T) {
			var all term.Term = &term.Self{}
			if name == "sums" {
				all = div
			}
			for range c.depth {
				all = c.wrap(all)
			}
			if name == "sums" {
				all = &term.Prim{ID: prim.Gte, Args: []term.Term{all, one}}
			}
			if notes := check.Noted(&term.Lam{Param: "n", Body: all}, &term.Source{Form: term.PIF}, check.Budget{Steps: 1}); notes != nil {
				t.Error(notes)
			}
		})
	}
}

// TestWanted: a parameter that is compared only with literals of one kind is read as
// that kind, wherever its type leaves it open; and how one is given by its name.
func TestWanted(t *testing.T) {
	for _, c := range []struct{ code, input, want string }{
		{`n => n == 1`, `"1"`, `[1]`},
		{`n => if n == 1 or n == 2.5 then n else 0`, `"2.5"`, `[2.5]`},
		{`r => r.n == 1`, `{"n":"1"}`, `[{"n":1}]`},
		{`x => x == true`, `"true"`, `[true]`},
		{`n => n == 1`, `"one"`, `["one"]`},
		{`s => s == "1"`, `"1"`, `["1"]`},
		{`x => x == 1 or x == "1"`, `"1"`, `["1"]`},
		{`x => x == 1 or x == [1]`, `"1"`, `["1"]`},
		{`n => eq(n, 1)`, `"1"`, `[1]`},
		// By the only parameter's name, unless the code reads that key of it.
		{`n => n == 1`, `{"n":"1"}`, `[1]`},
		{`day => if day == "Mon" then 1 else 0`, `{"day":"Mon"}`, `["Mon"]`},
		{`user => user.name`, `{"user":{"name":"Bob"}}`, `[{"name":"Bob"}]`},
		{`user => user.name`, `{"user":{"nme":"Bob"}}`, `[{"nme":"Bob"}]`},
		{`r => map(x => if x.c == null then 0 else x.c + 1, r)`, `{"r":[{"c":1},{"c":null}]}`, `[[{"c":1},{"c":null}]]`},
		{`xs => sum(xs)`, `{"xs":[1,null]}`, `[[1,null]]`},
		{`v => match v { {v: n} => n; n => n }`, `{"v":5}`, `[{"v":5}]`},
		{`name => $"Hello {name}"`, `{"name":"Bob"}`, `["Bob"] noted`},
		{`path => {path, ok: true}`, `{"path":"x"}`, `["x"] noted`},
		{`path => {path, ok: true}`, `{"path":{"path":"x"}}`, `[{"path":"x"}] noted`},
		{`path => {path, ok: true}`, `{"path":"x","more":1}`, `[{"path":"x","more":1}]`},
		{`m => length(keys(m))`, `{"m":{"a":1,"b":2}}`, `[{"a":1,"b":2}] noted`},
		{`m => length(keys(m))`, `{"m":5}`, `[{"m":5}] noted`},
		{`items => match items { [] => 0; [x, ...] => x }`, `{"items":[4]}`, `[[4]] noted`},
	} {
		d, f := check.Read(json.RawMessage(c.input), reportOf(t, c.code), nil)
		must.NoFault(t, f)
		got := fmt.Sprintf("%s", d.Values)
		if len(d.Notes) > 0 && strings.Contains(d.Notes[0], "record") {
			got += " noted"
		}
		if got != c.want {
			t.Errorf("%s with %s reads %s, want %s", c.code, c.input, got, c.want)
		}
	}
}
