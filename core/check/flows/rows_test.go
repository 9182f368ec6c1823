package flows_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check/flows"
	"github.com/mcp-pif/mcp-pif/core/flow"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/naive"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/prim/gen"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// TestRowsTold puts what each row gives for its examples into a request, with an operand,
// or an item of one, read from a source: what is said of it before holds when it runs, of
// the example's operand and of an empty one.
func TestRowsTold(t *testing.T) {
	tally := map[flows.Verdict]int{}
	for i := range prim.Table {
		row := &prim.Table[i]
		for _, e := range row.Examples {
			p, f := parse.Code([]byte(e.Code), parse.Options{})
			if f != nil || e.Fault != "" {
				continue
			}
			n := gen.Use(p.Term, term.ID(i))
			if n == nil {
				continue
			}
			for k := range n.Args {
				for _, secrets := range read(n.Args[k]) {
					args := slices.Clone(n.Args)
					args[k] = secrets
					code := &term.Effect{Op: "kv.put", Arg: &term.Prim{ID: n.ID, Args: args}}
					found, ok := flows.Of(code, query(false, nil))
					if !ok || len(found) == 0 {
						continue // it has variables
					}
					tally[found[0].Verdict]++
					for _, empty := range []bool{false, true} {
						made, asked := put(t, code, empty)
						if v := found[0].Verdict; asked && (v == flows.Never && made || v == flows.Must && !made) {
							t.Errorf("%s is told as %s, made of it: %v, operand %d, empty: %v\n%s", row.Name, v, made, k, empty, e.Code)
						}
					}
				}
			}
		}
	}
	t.Log(tally)
	if tally[flows.Must] < 300 || tally[flows.May] < 100 || tally[flows.Never] < 30 {
		t.Errorf("too little is told: %v", tally)
	}
}

// TestFormsTold says of programs as they are written what is told of what kv.put is given,
// and holds it against a run. fs.read gives what it is asked for.
func TestFormsTold(t *testing.T) {
	for _, c := range strings.Split(strings.TrimSpace(forms), "\n") {
		want, code, _ := strings.Cut(strings.TrimSpace(c), " ")
		p, err := core.CompileText("tool", []byte(code))
		if err != nil {
			t.Fatalf("%s\n%v", code, err)
		}
		found, _ := flows.Of(p.Term(), query(true, nil))
		made, asked := put(t, p.Term(), false)
		if !asked || len(found) != 2 {
			t.Fatalf("%s\nruns to its request: %v, and what is told of it: %v", code, asked, found)
		}
		if v := found[0].Verdict; string(v) != want || v == flows.Never && made || v == flows.Must && !made {
			t.Errorf("%s\nis told as %s, want %s; made of it: %v", code, v, want, made)
		}
	}
}

const forms = `
must  u => let a = !fs.read(1), b = 2 in !kv.put({a, b})
never u => let a = !fs.read(1), b = 2 in !kv.put({b})
must  u => let a = !fs.read(1) in !kv.put({...{b: 1}, a})
must  u => let a = !fs.read(1) in !kv.put({...{a}, b: 1})
never u => let a = !fs.read(1) in !kv.put({...{a}, a: 1})
must  u => let a = !fs.read(1), k = "x" in !kv.put({[k]: a})
must  u => !kv.put({[to_text(!fs.read(1))]: 1})
must  u => let a = !fs.read({x: 1}) in !kv.put([1, a.x])
must  u => let a = !fs.read(1) in !kv.put([1, ...[a]])
must  u => let a = !fs.read(1) in !kv.put([1] ++ [a] ++ [2])
may   u => let a = !fs.read(1) in !kv.put(head([1, a]))
must  u => let a = !fs.read(1) in !kv.put(push([1], a))
must  u => let a = !fs.read(1) in !kv.put(update({k: 1}, "k", x => a))
must  u => let a = !fs.read(1) in !kv.put(put({k: 1}, "k", a))
must  u => let a = !fs.read(1) in !kv.put(put_in({}, ["k", "l"], a))
must  u => let a = !fs.read("k") in !kv.put({k: 1}[a])
must  u => let a = !fs.read(1) in !kv.put([1, 2][a])
must  u => let a = !fs.read(1) in !kv.put("abc"[a:])
must  u => let a = !fs.read(1) in !kv.put([1, 2, 3][0:a])
must  u => let a = !fs.read(1) in !kv.put("x" ++ to_text(a) ++ "y")
must  u => { let a = !fs.read(1); !kv.put(a) }
must  u => let {x} = !fs.read({x: 2}) in !kv.put({to: 1, x})
must  u => let (a, b) = (!fs.read(1), 2) in !kv.put(a)
never u => let (a, b) = (!fs.read(1), 2) in !kv.put(b)
must  u => match !fs.read({a: {b: 1}}) { {a: {b}} => !kv.put(b); x => 0 }
must  u => match !fs.read([1, 2]) { [a, b] => !kv.put(b); x => 0 }
never u => match 1 { x if equal(!fs.read(1), 1) => !kv.put(x); _ => 0 }
may   u => !kv.put({}.x ?? !fs.read(1))
may   u => !kv.put(!fs.read(1) ?? 1)
may   u => !kv.put((!fs.read({x: 1})).x ?? 1)
must  u => let f = n => if n == 0 then [!fs.read(1)] else f(n - 1) in !kv.put(f(2))
must  u => !fs.read(1) |> to_text |> upper |> (x => !kv.put(x))
must  u => !kv.put(par(!fs.read(1), 2))
must  u => !kv.put(try(!fs.read(1)).ok)
may   u => !kv.put(try(!fs.read(1)))
must  u => let a = !fs.read(1) in !kv.put(eval('{a}))
must  u => !kv.put(eval(to_code({op: "int", value: !fs.read(1)})))
must  u => !kv.put(re_replace("a", "b", to_text(!fs.read(1))))
must  u => !kv.put(parse_csv(to_text(!fs.read(1))))
may   u => !kv.put(table([{a: !fs.read(1)}]))
never u => let k = !fs.read(1) in !kv.put(sort_by(x => x * k, [1, 2]))
must  u => !kv.put(sort_by(x => 0 - x, [1, !fs.read(1)]))
may   u => !kv.put(map(x => x, [1, !fs.read(1)]))
must  u => !kv.put(join(["a", to_text(!fs.read(1))], ","))
must  u => !kv.put(1 + !fs.read(1))
must  u => !kv.put(!fs.read(1) < 3)
must  u => let a = !fs.read(1) in !kv.put(values({a, b: 1}))
must  u => let a = !fs.read(1) in !kv.put(to_json({x: [a]}))
must  u => !kv.put(if true then !fs.read(1) else !fs.read(2))
may   u => !kv.put(if true then !fs.read(1) else 2)
never u => !kv.put(if !fs.read(true) then 1 else 2)
`

// read is an operand that is read from a source and, of a list or record, each with a part that is.
func read(t term.Term) []term.Term {
	from := func(t term.Term) term.Term { return &term.Effect{Op: "fs.read", Arg: t} }
	list := []term.Term{from(t)}
	switch n := t.(type) {
	case *term.List:
		for i := range n.Items {
			items := slices.Clone(n.Items)
			items[i] = from(items[i])
			list = append(list, &term.List{Items: items})
		}
	case *term.Record:
		for i := range n.Fields {
			fields := slices.Clone(n.Fields)
			fields[i].Value = from(fields[i].Value)
			list = append(list, &term.Record{Fields: fields})
		}
	}
	return list
}

// put runs a program, of which sources answer what they are asked for or what is like it and
// empty, and gives whether what it puts is made of that.
func put(t *testing.T, code term.Term, empty bool) (made, asked bool) {
	t.Helper()
	_, err := flow.Run(context.Background(), flow.Config{Term: code, Budgets: naive.Budgets{Steps: 100_000},
		Handler: func(_ context.Context, round []flow.Request) ([]flow.Answer, error) {
			answers := make([]flow.Answer, len(round))
			for i, q := range round {
				answers[i].Value = q.Arg
				if q.Op == "kv.put" {
					made, asked = q.Shadow.All()&flow.Data != 0, true
					continue
				}
				answers[i].Shadow = flow.Whole(secret)
				if v := q.Arg; empty {
					switch v.(type) {
					case *value.Cons:
						v = value.Nil{}
					case *value.Record:
						v = &value.Record{}
					case value.Str:
						v = value.Str("")
					}
					answers[i].Value = v
				}
			}
			return answers, nil
		}})
	must.NoError(t, err)
	return made, asked
}
