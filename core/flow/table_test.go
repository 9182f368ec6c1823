package flow_test

import (
	"context"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/flow"
	"github.com/mcp-pif/mcp-pif/core/internal/vectors"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// small has for each rule a program that shows whether it is there: how the requests of
// kv.put are labelled, where all that fs answers is secret. d: the argument is made of
// it; c: decided by it; m: the request is made because of it; -: none of these.
var small = []struct{ code, want string }{
	{`u => !kv.put(!fs.read({}))`, "d"},
	{`u => !kv.put([1, !fs.read({})])`, "d"},
	{`u => let s = !fs.read({}) in !kv.put(1)`, "-"},
	{`u => let s = [1, !fs.read({})] in !kv.put(head(s))`, "-"},
	{`u => let s = [1, !fs.read({})] in !kv.put(nth(s, 1))`, "d"},
	{`u => let s = {a: 1, b: !fs.read({})} in !kv.put(s.a)`, "-"},
	{`u => let s = {a: 1, b: !fs.read({})} in !kv.put(keys(s))`, "-"},
	{`u => let s = {a: 1, b: !fs.read({})} in !kv.put(s)`, "d"},
	{`u => let a = 1, b = 2, s = !fs.read({}) in !kv.put(if equal(s, 1) then a else b)`, "c"},
	{`u => let s = !fs.read({}) in if equal(s, 0) then !kv.put(1) else !kv.put(2)`, "cm"},
	{`u => fold(p => let q = !kv.put(1) in 0, 0, [!fs.read({}), 2])`, "- -"},
	{`u => fold(p => let q = !kv.put(1) in 0, 0, !fs.list({}))`, "cm cm"},
	{`u => !kv.put(fold(p => 1, 0, !fs.list({})))`, "c"},
	{`u => !kv.put(length([!fs.read({})]))`, "-"},
	{`u => !kv.put(length(!fs.list({})))`, "d"},
	{`u => !kv.put(isEmpty(!fs.list({})))`, "d"},
	{`u => let k = if equal(!fs.read({}), 1) then "a" else "b" in !kv.put(get({a: 1, b: 2}, k))`, "c"},
	{`u => !kv.put(nth([1, 2], !fs.read({})))`, "d"},
	{`u => !kv.put(equal([!fs.read({})], [1]))`, "d"},
	{`u => !kv.put(map(x => x + 1, [1, !fs.read({})]))`, "d"},
	{`u => !kv.put(head(map(x => x + 1, [1, !fs.read({})])))`, "-"},
	{`u => !kv.put(head(filter(x => x > 0, [1, !fs.read({})])))`, "c"},
	{`u => !kv.put(nth(filter(x => x < 9, [!fs.read({}), 1]), 1))`, "c"},
	{`u => let s = !fs.read({}), x = try(nth([1, 2], s)) in !kv.put(has(x, "ok"))`, "c"},
	{`u => let s = !fs.read({}), x = try(nth([1, 2], s + 7)) in !kv.put(has(x, "ok"))`, "c"},
	{`u => let s = !fs.read({}), x = try(nth([1, 2], s + 7)) in !kv.put(x)`, "d"},
	{`u => let s = !fs.read({}), x = try(nth([1, 2], s)) in !kv.put(3)`, "-"},
	{`u => let s = !fs.read({}) in try([nth([1, 2], s), !kv.put(3)])`, "m"},
	{`u => try([nth([1, 2], !fs.read({})), try(!kv.put(3))])`, "m"},
	{`u => let x = try(!fs.fail({})) in !kv.put(x.error.message)`, "d"},
	{`u => let x = try(!fs.fail({})) in !kv.put(has(x, "ok"))`, "c"},
	{`u => let f = if equal(!fs.read({}), 1) then x => 1 else x => 2 in !kv.put(f(0))`, "c"},
	{`u => let f = nth([x => 1, x => 2], !fs.read({})) in !kv.put(f(0))`, "d"},
	{`u => let s = !fs.read({}), f = x => s in !kv.put(f(0))`, "d"},
	{`u => let s = !fs.read({}), f = x => x in !kv.put(f(0))`, "-"},
	{`u => !kv.put(equal(!fs.read({}), 1) and true)`, "d"},
	{`u => !kv.put(true or equal(!fs.read({}), 1))`, "-"},
	{`u => let x = equal(!fs.read({}), 0) and (let q = !kv.put(1) in true) in 0`, "cm"},
	{`u => par(let s = !fs.read({}), x = nth([1, 2], s) in x, let a = !kv.put(1), b = !kv.put(2) in 2)`, "- -"},
	{`u => try(par(let s = !fs.read({}), x = nth([1, 2], s) in x, let a = !kv.put(1), b = !kv.put(2) in 2))`, "- m"},
	{`u => try(par(let s = !fs.read({}), x = nth([1, 2], s), y = try(!kv.put(0)) in 1, let a = !kv.put(1), b = !kv.put(2) in 2))`, "- m m"},
	{`u => try(par(let s = !fs.read({}) in par(nth([1, 2], s), !kv.put(0)), let a = !kv.put(1), b = !kv.put(2) in 2))`, "- m m"},
	{`u => let x = par(!fs.read({}), 1) in !kv.put(nth(x, 1))`, "-"},
	{`u => let x = par(!fs.read({}), 1) in !kv.put(head(x))`, "d"},
	{`u => !kv.put(merge({a: 1}, {b: !fs.read({})}).a)`, "-"},
	{`u => !kv.put(merge({b: 1}, {b: !fs.read({})}).b)`, "d"},
	{`u => !kv.put(put({a: 1}, "b", !fs.read({})).a)`, "-"},
	{`u => !kv.put(get({}, "a", !fs.read({})))`, "d"},
	{`u => !kv.put(get({a: 1}, "a", !fs.read({})))`, "-"},
	{`u => !kv.put(!fs.read(!fs.read({})))`, "d"},
	{`u => !kv.put(!kv.get(!fs.read({})))`, "d"},
	{`u => !kv.put(length(cons(1, if equal(!fs.read({}), 1) then [] else [2])))`, "d"},
	{`u => !kv.put(slice([1, 2], 0, !fs.read({})))`, "d"},
	{`{"lam":"u","body":{"call":{"tool":{"if":{"cond":{"equal":[{"fs.read":{}},1]},"then":"puts","else":"puts"}},"input":1}}}`, "cm"},
	{`{"lam":"u","body":{"kv.put":{"call":{"tool":"gives","input":{"fs.read":{}}}}}}`, "d"},
	{`{"lam":"u","body":{"app":[{"lam":"s","body":{"kv.put":{"call":{"tool":"one","input":{"var":"s"}}}}},{"fs.read":{}}]}}`, "-"},
	{`{"lam":"u","body":{"kv.put":{"eval":{"if":{"cond":{"equal":[{"fs.read":{}},1]},"then":{"quote":1},"else":{"quote":2}}}}}}`, "c"},
	// Recursive let: what is around the group.
	{`u => let s = !fs.read({}), f = n => if n == 0 then s else f(n - 1) in !kv.put(f(1))`, "d"},
	{`u => let s = !fs.read({}), f = n => if n == 0 then 7 else f(n - 1) in !kv.put(f(1))`, "-"},
	{`u => let f = n => if n == 0 then 7 else g(n - 1), g = n => f(n), s = !fs.read({}) in !kv.put([f])`, "-"},
	{`u => let s = !fs.read({}), f = n => g(n), g = n => if n == 0 then s else f(n - 1) in !kv.put([f])`, "d"},
	{`u => let f = if equal(!fs.read({}), 1) then (let g = n => g(n) in n => 0) else n => 1 in !kv.put(f(0))`, "c"},
	// Spread: cells by their own and the spine, fields by the overriding record.
	{`u => let r = {a: 1, b: !fs.read({})} in !kv.put({...r, c: 2}.a)`, "-"},
	{`u => let r = {a: 1, b: !fs.read({})} in !kv.put({...r, c: 2}.b)`, "d"},
	{`u => let r = {a: 1, b: !fs.read({})} in !kv.put({...r, b: 2}.b)`, "-"},
	{`u => let o = if equal(!fs.read({}), 1) then {a: 2} else {} in !kv.put({...{a: 1, b: 3}, ...o}.a)`, "c"},
	{`u => let o = if equal(!fs.read({}), 1) then {a: 2} else {} in !kv.put({...o, b: 3}.b)`, "c"},
	{`u => let xs = [1, !fs.read({})] in !kv.put(head([...xs, 2]))`, "-"},
	{`u => let xs = [1, !fs.read({})] in !kv.put(nth([...xs, 2], 2))`, "-"},
	{`u => let xs = if equal(!fs.read({}), 1) then [1] else [] in !kv.put(nth([...xs, 2], 0))`, "c"},
	{`u => let xs = if equal(!fs.read({}), 1) then [1] else [] in !kv.put(head([2, ...xs]))`, "-"},
	// Patterns are get and fst; a branch that is missed controls those after it.
	{`u => match [1, !fs.read({})] { [x, y] => !kv.put(x); _ => 0 }`, "-"},
	{`u => match [1, !fs.read({})] { [x, y] => !kv.put(y); _ => 0 }`, "d"},
	{`u => match {k: !fs.read({}), l: 2} { {l: x} => !kv.put(x); _ => 0 }`, "-"},
	{`u => match !fs.read({}) { 5 => 0; _ => !kv.put(1) }`, "cm"},
	{`u => match (!fs.read({}), 1) { (5, x) => 0; (_, y) => !kv.put(y) }`, "cm"},
	{`u => match (!fs.read({}), 1) { (_, y) => !kv.put(y) }`, "-"},
	{`u => let s = !fs.read({}) in match 1 { x if equal(s, 9) => 0; y => !kv.put(y) }`, "cm"},
	{`u => let s = !fs.read({}), f = (a, (b, c)) => !kv.put(b) in f(1, (2, s))`, "-"},
	// ?? asks for presence and null.
	{`u => let r = {a: !fs.read({})} in !kv.put(r.b ?? 1)`, "-"},
	{`u => let r = {a: !fs.read({})} in !kv.put(r.a ?? 1)`, "d"},
	{`u => let r = if equal(!fs.read({}), 1) then {a: 1} else {} in !kv.put(r.a ?? 2)`, "c"},
	{`u => let x = if equal(!fs.read({}), 1) then null else 3 in !kv.put(x ?? 2)`, "c"},
	// An operation as a value has the rule of its row.
	{`u => !kv.put(nth(map(length, [!fs.list({}), [1]]), 1))`, "-"},
	{`u => !kv.put(head(map(length, [!fs.list({}), [1]])))`, "d"},
	{`u => !kv.put(head(map(length, [[!fs.read({})], [1]])))`, "-"},
	{`u => !kv.put(head(map(type_of, [[!fs.read({})]])))`, "-"},
	// Text is made of all that is in it.
	{`u => let s = !fs.read({}) in !kv.put("a" ++ to_text([1, s]))`, "d"},
	{`u => let t = if equal(!fs.read({}), 1) then "a" else "b" in !kv.put("x" ++ t)`, "c"},
	// Slices of lists, part by part.
	{`u => !kv.put(head(slice([1, !fs.read({})], 0, 1)))`, "-"},
	{`u => !kv.put([1, !fs.read({})][0:1])`, "-"},
	{`u => !kv.put([1, !fs.read({})][1:])`, "d"},
	{`u => !kv.put([1, 2, 3][0:!fs.read({})])`, "d"},
	{`u => let xs = [1, !fs.read({})] in !kv.put(xs[-2])`, "-"},
	{`u => let xs = [1, 2] in !kv.put(xs[!fs.read({})])`, "d"},
	{`u => !kv.put(length(slice(cons(1, if equal(!fs.read({}), 1) then [] else [2]), 0, 1)))`, "-"},
	{`u => !kv.put({a: 1, b: !fs.read({})}["a"])`, "-"},
	{`u => !kv.put(set_nth([1, 2], 0, !fs.read({}))[1])`, "-"},
	{`u => !kv.put(set_nth([1, 2], !fs.read({}), 3)[1])`, "d"},
	// A number of items is made of what decided how many there are, a choice isn't.
	{`u => let s = !fs.read({}) in !kv.put(count(x => equal(x, s), [1, 2]))`, "d"},
	{`u => let s = !fs.read({}) in !kv.put(find_index(x => equal(x, s), [1, 2]))`, "d"},
	{`u => let s = !fs.read({}) in !kv.put(index_of(filter(x => equal(x, s), [1, 2]), 1))`, "d"},
	{`u => let s = !fs.read({}) in !kv.put(length(filter(x => equal(x, s), [1, 2])))`, "d"},
	{`u => let s = !fs.read({}) in !kv.put(find(x => equal(x, s), [1, 2], 3))`, "c"},
	{`u => !kv.put(find(x => false, [1], !fs.read({})))`, "d"},
	{`u => if equal(!fs.read({}), 0) then !kv.put(length([1, 2])) else 0`, "cm"},
	// Parts of records.
	{`u => !kv.put(has({a: !fs.read({})}, "a"))`, "-"},
	{`u => !kv.put(keys(from_entries([(to_text(!fs.read({})), 1)])))`, "d"},
	{`u => !kv.put(del({a: 1, b: !fs.read({})}, "b"))`, "-"},
	{`u => !kv.put(head(values({a: 1, b: !fs.read({})})))`, "-"},
	{`u => !kv.put(map(p => fst(p), entries({a: !fs.read({})})))`, "-"},
	{`u => !kv.put(from_entries([("a", 1), ("b", !fs.read({}))]).a)`, "-"},
	{`u => !kv.put(get_in({a: [1, !fs.read({})]}, ["a", 0]))`, "-"},
	{`u => !kv.put(get({a: 1, b: 2}, if equal(!fs.read({}), 1) then "a" else "b", 0))`, "c"},
	{`u => !kv.put(get({a: 1}, to_text(!fs.read({})), 5))`, "d"},
	// Functions and code that were chosen.
	{`u => let s = !fs.read({}), f = nth([x => !kv.put(1), x => !kv.put(2)], s) in f(0)`, "dm"},
	{`u => !kv.put(fold(nth([p => 1, p => 2], !fs.read({})), 0, [1]))`, "d"},
	{`u => !kv.put(eval(to_code({op: "int", value: !fs.read({})})))`, "d"},
	{`u => !kv.put(eval(quote(add(!fs.read({}), 1))))`, "d"},
	{`u => !kv.put(try(raise([1, !fs.read({})])).error.kind)`, "d"},
	{`{"lam":"u","body":{"kv.put":{"code_of":{"if":{"cond":{"equal":[{"fs.read":{}},0]},"then":"one","else":"gives"}}}}}`, "c"},
	{`{"lam":"u","body":{"kv.put":{"call":{"tool":"first","inputs":[1,{"fs.read":{}}]}}}}`, "-"},
	{`{"lam":"u","body":{"kv.put":{"call":{"tool":"first","inputs":[{"fs.read":{}},2]}}}}`, "d"},
	{`{"lam":"u","body":{"kv.put":{"call":{"tool":"first","input":{"record":{"a":1,"b":{"fs.read":{}}}}}}}}`, "-"},
	{`{"lam":"u","body":{"kv.put":{"call":{"tool":"counts","input":{"pair":[1,{"fs.read":{}}]}}}}}`, "c"},
	{`{"lam":"u","body":{"kv.put":{"call":{"tool":{"if":{"cond":{"equal":[{"fs.read":{}},0]},"then":"one","else":"two"}},"input":3}}}}`, "c"},
	{`let f = nth([u => !kv.put(1), u => !kv.put(2)], !fs.read({})) in f`, "dm"},
	{`u => let xs = cons(1, if equal(!fs.read({}), 1) then [] else [2]) in !kv.put(xs[-2])`, "c"},
	{`u => let xs = cons(1, if equal(!fs.read({}), 1) then [] else [2]) in !kv.put(nth(xs, 0))`, "-"},
	{`u => let xs = cons(1, if equal(!fs.read({}), 1) then [] else [2]) in !kv.put(xs[1])`, "c"},
	// What failed, and whether it did.
	{`u => let b = !fs.flag({}) in try([if b then 0 else raise(1), !kv.put(3)])`, "m"},
	{`u => let b = !fs.flag({}) in try([b and true, !kv.put(3)])`, "m"},
	{`u => let xs = cons(1, if equal(!fs.read({}), 1) then [] else [2]) in try([nth(xs, 1), !kv.put(3)])`, "m"},
	{`u => let fs = nth([x => 1, 2], !fs.read({})) in try([fold(x => 1, 0, []), fs(1), !kv.put(3)])`, "m"},
	{`u => let xs = cons(1, if equal(!fs.read({}), 1) then [] else [2]) in try([fold(p => snd(p), 0, xs), !kv.put(3)])`, "m"},
	{`u => let s = !fs.read({}) in try([nth([1, 2], s), par(!kv.put(3), 1)])`, "m"},
	{`u => let s = !fs.read({}) in try(par(par(let x = nth([1, 2], s), y = try(!kv.put(0)) in 1, 2), let a = !kv.put(1), b = !kv.put(2) in 2))`, "m m m"},
	{`u => let s = !fs.read({}) in try([if equal(s, 5) then raise(1) else 0, !kv.put(3)])`, "m"},
	{`u => let s = !fs.read({}) in try([equal(s, 5) and raise(1), !kv.put(3)])`, "m"},
	{`u => let s = !fs.list({}) in try([fold(p => 1, 0, s), !kv.put(3)])`, "m"},
	{`u => try([!fs.read({}), !kv.put(3)])`, "m"},
	{`u => let f = nth([x => 1, x => 2], !fs.read({})) in try([f(1), !kv.put(3)])`, "m"},
	{`u => let x = try(par(!fs.fail({}), 1)) in !kv.put(x.error.message)`, "d"},
	{`u => let x = try(!kv.get(!fs.read({}))) in !kv.put(has(x, "ok"))`, "c"},
}

func TestSmall(t *testing.T) {
	for _, c := range small {
		if got, res := labels(t, c.code); got != c.want {
			t.Errorf("%s\n  labels %q, want %q (%v)", c.code, got, c.want, res.Fault)
		}
	}
}

// callees is the tools that small programs call.
var callees = map[string]string{
	"puts": `{"lam":"x","body":{"kv.put":1}}`, "gives": `{"lam":"x","body":{"var":"x"}}`, "one": `{"lam":"x","body":1}`, "two": `{"lam":"x","body":2}`,
	"counts": `{"lam":"a","body":{"lam":"b","body":{"add":[{"var":"a"},{"length":[{"var":"b"}]}]}}}`,
	"first":  `{"lam":"a","body":{"lam":"b","body":{"var":"a"}}}`,
}

// labels runs a program and gives the labels of its requests of kv.put.
func labels(t *testing.T, code string) (string, flow.Result) {
	t.Helper()
	tools := vectors.Library{Owner: "tool", Code: map[string]value.Tool{}}
	for name, code := range callees {
		p, f := parse.Code([]byte(code), parse.Options{Tool: name})
		must.NoFault(t, f)
		tools.Code[name] = value.Tool{Term: p.Term, Source: p.Source, Params: prim.Parameters(p.Term), Takes: check.Takes(name, p.Term)}
	}
	compile := core.CompileText
	if code[0] == '{' {
		compile = core.CompileTool
	}
	p, err := compile("tool", []byte(code))
	if err != nil {
		t.Fatalf("%s\n%v", code, err)
	}
	var got []string
	res, err := flow.Run(context.Background(), flow.Config{
		Term: p.Term(), Source: p.Tool().Source, Tool: "tool", Tools: tools,
		Handler: func(_ context.Context, round []flow.Request) ([]flow.Answer, error) {
			answers := make([]flow.Answer, len(round))
			for i, q := range round {
				if q.Op == "kv.put" {
					got = append(got, letters(q))
				}
				answers[i] = answerSmall(q)
			}
			return answers, nil
		},
	})
	if err != nil {
		t.Fatalf("%s\n%v", code, err)
	}
	return strings.Join(got, " "), res
}

func letters(q flow.Request) string {
	s := ""
	switch l := q.Shadow.All(); {
	case l&flow.Data != 0:
		s = "d"
	case l != 0:
		s = "c"
	}
	if q.Made != 0 {
		s += "m"
	}
	if s == "" {
		return "-"
	}
	return s
}

// answerSmall is what a request of a small program is answered.
func answerSmall(q flow.Request) (a flow.Answer) {
	if strings.HasPrefix(q.Op, "fs.") {
		a.Shadow = flow.Whole(secret)
	}
	switch q.Op {
	case "fs.list":
		a.Value = value.FromSlice([]value.Value{value.NewInt(1), value.NewInt(2)})
	case "fs.flag":
		a.Value = value.Bool(true)
	case "fs.fail":
		a.Fault = fault.New(fault.EffectFailed, "it failed")
	default:
		a.Value = value.NewInt(0)
	}
	return a
}
