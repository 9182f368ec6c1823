package text_test

import (
	"testing"

	"github.com/mcp-pif/mcp-pif/core/text"
)

// TestOtherSigns: what && || and ?: are, as JSON, and that their print is read as the same.
func TestOtherSigns(t *testing.T) {
	for src, json := range map[string]string{
		`a && b || c && not d`:       `{"or":[{"and":[{"var":"a"},{"var":"b"}]},{"and":[{"var":"c"},{"not":{"var":"d"}}]}]}`,
		`a or b && c`:                `{"or":[{"var":"a"},{"and":[{"var":"b"},{"var":"c"}]}]}`,
		`a ? 1 : b ? 2 : 3`:          `{"if":{"cond":{"var":"a"},"then":1,"else":{"if":{"cond":{"var":"b"},"then":2,"else":3}}}}`,
		`a ? b ? 1 : 2 : 3`:          `{"if":{"cond":{"var":"a"},"then":{"if":{"cond":{"var":"b"},"then":1,"else":2}},"else":3}}`,
		`a || b ? x => x : 2`:        `{"if":{"cond":{"or":[{"var":"a"},{"var":"b"}]},"then":{"lam":"x","body":{"var":"x"}},"else":2}}`,
		`c ? x : y |> f`:             `{"app":[{"var":"f"},{"if":{"cond":{"var":"c"},"then":{"var":"x"},"else":{"var":"y"}}}]}`,
		`v |> (c ? f : g)`:           `{"app":[{"if":{"cond":{"var":"c"},"then":{"var":"f"},"else":{"var":"g"}}},{"var":"v"}]}`,
		`xs[(c ? 0 : 1)]`:            `{"at":[{"var":"xs"},{"if":{"cond":{"var":"c"},"then":0,"else":1}}]}`,
		`xs[f(c ? 0 : 1):2]`:         `{"at":[{"var":"xs"},{"app":[{"var":"f"},{"if":{"cond":{"var":"c"},"then":0,"else":1}}]},2]}`,
		`{k: c ? "add" : "b"}`:       `{"record":{"k":{"if":{"cond":{"var":"c"},"then":"add","else":"b"}}}}`,
		"let x = c\n  ? 1\n  : 2\nx": `{"let":[["x",{"if":{"cond":{"var":"c"},"then":1,"else":2}}]],"in":{"var":"x"}}`,
	} {
		reads(t, src, json)
	}
	for src, same := range map[string]string{
		`match v { x if (c ? a : b) => 1; _ => 2 }`: `match v { x if (if c then a else b) => 1; _ => 2 }`,
		`match v { x if a && b || c => 1; _ => 2 }`: `match v { x if a and b or c => 1; _ => 2 }`,
		`match v { x => c ? 1 : 2; _ => 2 }`:        `match v { x => if c then 1 else 2; _ => 2 }`,
	} {
		reads(t, src, string(text.Canonical(mustRead(t, same).Term)))
	}
}

// TestIndexAndSpread: what indexes, slices and spread in lists and records are, as JSON, and that
// their print is read as the same.
func TestIndexAndSpread(t *testing.T) {
	for src, json := range map[string]string{
		`xs[0]`:                    `{"at":[{"var":"xs"},0]}`,
		`xs[-1].k`:                 `{"get":[{"at":[{"var":"xs"},-1]},"k"]}`,
		`r["k"]`:                   `{"get":[{"var":"r"},"k"]}`,
		`r[k]`:                     `{"at":[{"var":"r"},{"var":"k"}]}`,
		`s[1:4]`:                   `{"at":[{"var":"s"},1,4]}`,
		`s[:-1]`:                   `{"at":[{"var":"s"},null,-1]}`,
		`s[2:]`:                    `{"at":[{"var":"s"},2,null]}`,
		`s[:]`:                     `{"at":[{"var":"s"},null,null]}`,
		`[1, 2][f(1)][0]`:          `{"at":[{"at":[[1,2],{"app":[{"var":"f"},1]}]},0]}`,
		`[x, ...xs]`:               `{"cons":[{"var":"x"},{"var":"xs"}]}`,
		`[...xs, x, y]`:            `{"push":[{"push":[{"var":"xs"},{"var":"x"}]},{"var":"y"}]}`,
		`[...xs]`:                  `{"append":[{"var":"xs"},[]]}`,
		`{...r, k: 1}`:             `{"put":[{"var":"r"},"k",1]}`,
		`{...r, n}`:                `{"put":[{"var":"r"},"n",{"var":"n"}]}`,
		`{n, ...r}`:                `{"merge":[{"record":{"n":{"var":"n"}}},{"var":"r"}]}`,
		`{...r}`:                   `{"merge":[{"var":"r"},{"record":{}}]}`,
		`{...a, ...b}`:             `{"merge":[{"var":"a"},{"var":"b"}]}`,
		`{a: 1, b: 2, ...r}`:       `{"merge":[{"record":{"a":1,"b":2}},{"var":"r"}]}`,
		`{b: 1, a: 2, ...r}`:       `{"merge":[{"put":[{"record":{"b":1}},"a",2]},{"var":"r"}]}`,
		`{...r, b: 1, ...s, b: 2}`: `{"put":[{"merge":[{"put":[{"var":"r"},"b",1]},{"var":"s"}]},"b",2]}`,
		`[1, ...a, 2, ...b]`:       `{"cons":[1,{"append":[{"push":[{"var":"a"},2]},{"var":"b"}]}]}`,
	} {
		reads(t, src, json)
	}
}

// TestTemplates: what template strings are.
func TestTemplates(t *testing.T) {
	for src, same := range map[string]string{
		`$"total: {x}"`:               `"total: " ++ to_text(x)`,
		`$"{a}{b}\n"`:                 `to_text(a) ++ to_text(b) ++ "\n"`,
		`$""`:                         `""`,
		`$"a\{b\}\"}"`:                `"a{b}\"}"`,
		`$"{ {a: "}"}.a } {f("{")}!"`: `to_text({a: "}"}.a) ++ " " ++ to_text(f("{")) ++ "!"`,
		`$"<{$"[{x}]"}>"`:             `"<" ++ to_text("[" ++ to_text(x) ++ "]") ++ ">"`,
		`$"{c ? 1 : 2} // a"`:         `to_text(if c then 1 else 2) ++ " // a"`,
	} {
		reads(t, src, string(text.Canonical(mustRead(t, same).Term)))
	}
	for _, src := range []string{`$"a`, `$"{x"`, `$"{}"`, `$"\q"`, `$"{x`, `$"{"`, `$`, "$\"\x01\""} {
		if _, f := text.Parse([]byte(src), text.Options{}); f == nil {
			t.Errorf("%s is read", src)
		} else {
			checkFault(t, src, f)
		}
	}
}

// TestDefault: what ?? is, also printed.
func TestDefault(t *testing.T) {
	for src, same := range map[string]string{
		`a ?? b ?? c`:    `if a == null then (if b == null then c else b) else a`,
		`a ?? 1 + 2`:     `if a == null then 1 + 2 else a`,
		`f(1) ?? value`:  `let value1 = f(1) in if value1 == null then value else value1`,
		`a ?? b ? 1 : 2`: `if (if a == null then b else a) then 1 else 2`,
		`r.k ?? whole`:   `let value = if r == null then null else get(r, "k", null) in if value == null then whole else value`,
		`r.a.b ?? 0`:     `let value = (let whole = if r == null then null else get(r, "a", null) in if whole == null then null else get(whole, "b", null)) in if value == null then 0 else value`,
		`xs[0] ?? 1`:     `let value = if xs == null then null else (let found = try(xs[0]) in if has(found, "ok") then found.ok else if contains(["out_of_range", "missing_key"], found.error.kind) then null else xs[0]) in if value == null then 1 else value`,
	} {
		reads(t, src, string(text.Canonical(mustRead(t, same).Term)))
	}
}

// reads tests what a source is read as, and that the print of that is read as the same.
func reads(t *testing.T, src, json string) {
	t.Helper()
	p := mustRead(t, src)
	if got, want := string(text.Canonical(p.Term)), string(text.Canonical(mustParse(t, json).Term)); got != want {
		t.Errorf("%s is %s, not %s", src, got, want)
	}
	roundTrip(t, p.Term)
}
