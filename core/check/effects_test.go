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
		{`x => !fs.read({path: x})`, "fs.read 1:6", "fs.write kv.put", "fs.read"},
		{`x => !fs.read({in: "./a", path: x})`, "fs.read 1:6 in ./a", "fs.write kv.put", "fs.read:./a"},
		{`x => '{!fs.read(x)}`, "", "fs.read fs.write kv.put", ""},
		{`x => let f = y => !fs.read(y) in 1`, "", "fs.read fs.write kv.put", ""},
		{`x => let f = y => !fs.read(y) in map(f, x)`, "fs.read 1:19", "fs.write kv.put", "fs.read"},
		{`x => y => !fs.read(y)`, "fs.read 1:11", "fs.write kv.put", "fs.read"},
		{`x => [y => !fs.read(y)]`, "fs.read 1:12", "fs.write kv.put", "fs.read"},
		{`f => f(y => !fs.read(y))`, "fs.read 1:13", "fs.write kv.put", "fs.read"},
		{`x => eval('{!fs.read(x)})`, "fs.read 1:13 inert", "fs.read fs.write kv.put", ""},
		{`x => eval('{!fs.read(x)}, ["fs.read:./in"])`, "fs.read 1:13 with fs.read:./in", "fs.write kv.put", "fs.read"},
		{`x => eval('{!fs.read(x)}, ["fs.write,list:./in"])`, "fs.read 1:13 with fs.write,list:./in inert", "fs.read fs.write kv.put", ""},
		{`x => eval(x, ["fs:./in"])`, "* 1:6 with fs:./in", "kv.put", "fs:./in"},
		{`x => eval(x, ["fs.read:./in", "call:known"])`, "* 1:6 with call:known fs.read:./in; fs.write 1:6 via known inert; kv.put 1:6 via known", "fs.write", "call:known fs.read:./in"},
		{`x => eval(x, ["fs.read", "call:other"])`, "* 1:6 via other; * 1:6 with call:other fs.read", "", "call:other fs.read"},
		{`x => eval(x, ["fs.read", "call:*"])`, "* 1:6 via *; * 1:6 with call:* fs.read", "", "call:* fs.read"},
		{`x => eval('{@known(x)}, ["call:*"])`, "call:known 1:13 with call:*; fs.write 1:13 via known inert; kv.put 1:13 via known", "fs.read fs.write", "call:known"},
		{`x => eval(x)`, "* 1:6 inert", "fs.read fs.write kv.put", ""},
		{`x => let load = y => !fs.read(y) in eval('{load(x)})`, "fs.read 1:22 inert", "fs.read fs.write kv.put", ""},
		{`x => @known(x)`, "call:known 1:6; fs.write 1:6 via known inert; kv.put 1:6 via known", "fs.read fs.write", "call:known"},
		{`x => @other(x)`, "* 1:6 via other; call:other 1:6", "", "call:other"},
		{`x => par(!fs.read(x), try(!kv.put(x)))`, "fs.read 1:10; kv.put 1:27", "fs.write", "fs.read kv.put"},
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
		if s := fmt.Sprint(strings.Join(got, "; "), " | ", strings.Join(r.Absent, " "), " | ", strings.Join(r.Least(), " ")); s != c.effects+" | "+c.absent+" | "+c.least {
			t.Errorf("%s\ngot  %s\nwant %s | %s | %s", c.code, s, c.effects, c.absent, c.least)
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

func TestUnused(t *testing.T) {
	r := reportOf(t, `x => let a = !fs.read({in: "./a", path: x}) in eval('{!kv.put(1)})`)
	open := reportOf(t, `x => eval(x, ["fs.read,list:./a", "kv"])`)
	if got := open.Unused([]string{"fs:./a", "fs.read", "fs.write", "kv.get", "clock"}); !slices.Equal(got, []string{"fs.write", "clock"}) {
		t.Errorf("of code that isn't known, unused are %q", got)
	}
	declared := []string{"fs.read:./a", "fs:./a", "fs.write:./b", "kv:x", "fetch:https://a.example", "call:t"}
	if got := r.Unused(declared); !slices.Equal(got, []string{"fs.write:./b", "kv:x", "fetch:https://a.example", "call:t"}) {
		t.Errorf("unused are %q", got)
	}
}
