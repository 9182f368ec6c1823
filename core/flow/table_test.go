package flow_test

import (
	"context"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/flow"
	"github.com/mcp-pif/mcp-pif/core/internal/vectors"
	"github.com/mcp-pif/mcp-pif/core/parse"
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
	"puts": `{"lam":"x","body":{"kv.put":1}}`, "gives": `{"lam":"x","body":{"var":"x"}}`, "one": `{"lam":"x","body":1}`,
}

// labels runs a program and gives the labels of its requests of kv.put.
func labels(t *testing.T, code string) (string, flow.Result) {
	t.Helper()
	tools := vectors.Library{Owner: "tool", Code: map[string]value.Tool{}}
	for name, code := range callees {
		p, f := parse.Code([]byte(code), parse.Options{Tool: name})
		if f != nil {
			t.Fatal(f)
		}
		tools.Code[name] = value.Tool{Term: p.Term, Source: p.Source}
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
				answers[i] = told(q)
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

// told is what a request of a small program is answered.
func told(q flow.Request) (a flow.Answer) {
	if strings.HasPrefix(q.Op, "fs.") {
		a.Shadow = flow.Whole(secret)
	}
	switch q.Op {
	case "fs.list":
		a.Value = value.FromSlice([]value.Value{value.NewInt(1), value.NewInt(2)})
	case "fs.fail":
		a.Fault = fault.New(fault.EffectFailed, "it failed")
	default:
		a.Value = value.NewInt(0)
	}
	return a
}
