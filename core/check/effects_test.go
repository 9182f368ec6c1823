package check_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// TestEffects: which operations a tool can reach, through which places, and
// what of a declaration is needed for them.
func TestEffects(t *testing.T) {
	env := check.Env{
		Tool: "t", Ops: []string{"fs.read", "fs.write", "kv.put"},
		Callee: func(name string) (check.Callee, bool) {
			return check.Callee{
				Type: check.Function(check.String, check.Int, check.Row{Ops: []string{"kv.put"}}), Sound: true,
				Effects: []check.Effect{{Op: "kv.put"}, {Op: "fs.write", Inert: true}},
			}, name == "known"
		},
		Result: func(op string) (*check.Type, bool) { return check.String, op == "fs.read" },
	}
	for _, c := range []struct{ code, effects, absent, least string }{
		{`x => 1`, "", "fs.read fs.write kv.put", ""},
		{`x => !fs.read({path: x})`, "fs.read /body", "fs.write kv.put", "fs.read"},
		{`x => !fs.read({in: "./a", path: x})`, "fs.read /body in ./a", "fs.write kv.put", "fs.read:./a"},
		{`x => '{!fs.read(x)}`, "", "fs.read fs.write kv.put", ""},
		{`x => let f = y => !fs.read(y) in 1`, "", "fs.read fs.write kv.put", ""},
		{`x => let f = y => !fs.read(y) in map(f, x)`, "fs.read /body/app/arg/body", "fs.write kv.put", "fs.read"},
		{`x => y => !fs.read(y)`, "fs.read /body/body", "fs.write kv.put", "fs.read"},
		{`x => [y => !fs.read(y)]`, "fs.read /body/0/body", "fs.write kv.put", "fs.read"},
		{`f => f(y => !fs.read(y))`, "fs.read /body/app/arg/body", "fs.write kv.put", "fs.read"},
		{`x => eval('{!fs.read(x)})`, "fs.read /body/eval/quote inert", "fs.read fs.write kv.put", ""},
		{`x => eval('{!fs.read(x)}, ["fs.read:./in"])`, "fs.read /body/eval/quote with fs.read:./in", "fs.write kv.put", "fs.read"},
		{`x => eval('{!fs.read(x)}, ["fs.write,list:./in"])`, "fs.read /body/eval/quote with fs.write,list:./in inert", "fs.read fs.write kv.put", ""},
		{`x => eval(x, ["fs:./in"])`, "* /body with fs:./in", "", "fs:./in"},
		{`x => eval(x)`, "* /body inert", "fs.read fs.write kv.put", ""},
		{`x => let load = y => !fs.read(y) in eval('{load(x)})`, "fs.read /body/app/arg/body inert", "fs.read fs.write kv.put", ""},
		{`x => @known(x)`, "call:known /body; fs.write /body via known inert; kv.put /body via known", "fs.read fs.write", "call:known"},
		{`x => @other(x)`, "* /body via other; call:other /body", "", "call:other"},
		{`x => par(!fs.read(x), try(!kv.put(x)))`, "fs.read /body/par/0; kv.put /body/par/1/try", "fs.write", "fs.read kv.put"},
	} {
		p, f := text.Parse([]byte(c.code), text.Options{Tool: "t"})
		if f != nil {
			t.Errorf("%v\n%s", f, c.code)
			continue
		}
		r := check.Infer(p.Term, p.Source, env, check.Budget{})
		var got []string
		for _, e := range r.Effects {
			s := e.Op + " " + string(e.At)
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
		if s := fmt.Sprint(strings.Join(got, "; "), " | ", strings.Join(r.Absent, " "), " | ", strings.Join(r.Least(), " ")); s != c.effects+" | "+c.absent+" | "+c.least {
			t.Errorf("%s\ngot  %s\nwant %s | %s | %s", c.code, s, c.effects, c.absent, c.least)
		}
	}
}

func TestUnused(t *testing.T) {
	r := reportOf(t, `x => let a = !fs.read({in: "./a", path: x}) in eval('{!kv.put(1)})`)
	declared := []string{"fs.read:./a", "fs:./a", "fs.write:./b", "kv:x", "fetch:https://a.example", "call:t"}
	if got := r.Unused(declared); !slices.Equal(got, []string{"fs.write:./b", "kv:x", "fetch:https://a.example", "call:t"}) {
		t.Errorf("unused are %q", got)
	}
}
