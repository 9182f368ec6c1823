package cost_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check/cost"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/prim/gen"
)

// treeOf makes a tree at random: of records with two parts, with a list of them, lists in
// lists, or pairs; like decides which, lean that one side is deeper.
func treeOf(d gen.Draw, like, nodes int, lean bool) string {
	if nodes <= 0 {
		return []string{"null", "null", "3", `""`, "[]"}[d(5)*min(1, d(3))]
	}
	value := []string{"1", "-7", "40", "123456789012345678901234567890", `{"dec":"2.125"}`}[d(5)]
	rest := nodes - 1
	part := d(rest + 1)
	if lean {
		part = min(part, 1)
	}
	two := func(f string) string {
		x, y := treeOf(d, like, part, lean), treeOf(d, like, rest-part, lean)
		if d(2) == 0 {
			x, y = y, x
		}
		return fmt.Sprintf(f, x, y)
	}
	switch like {
	case 0:
		return two(`{"record":{"left":%s,"right":%s,"value":` + value + `}}`)
	case 1:
		return two(`{"pair":[%s,%s]}`)
	case 2:
		return two(`[%s,%s]`)
	}
	var kids []string
	for rest > 0 {
		n := 1 + d(rest)
		if lean && len(kids) == 0 {
			n = rest
		}
		if d(40) == 0 {
			kids = append(kids, "7")
		}
		kids = append(kids, treeOf(d, like, n, lean))
		rest -= n
	}
	if like == 3 {
		return "[" + strings.Join(kids, ",") + "]"
	}
	children := `,"children":[` + strings.Join(kids, ",") + "]"
	if len(kids) == 0 && d(2) == 0 {
		children = []string{"", `,"children":null`}[d(2)]
	}
	return `{"record":{"value":` + value + `,"name":"` + strings.Repeat("n", d(9)) + `","on":true` + children + `}}`
}

// walks is functions that go through trees, with the kind of their trees.
var walks = []struct {
	code  string
	like  int
	class cost.Class
}{
	{"t => if t == null then 0 else 1 + self(t.left) + self(t.right)", 0, cost.Linear},
	{"t => if t == null then 0 else t.value + self(t.left) + self(t.right)", 0, cost.Linear},
	{"t => match t { {left, right, value} => self(left) + value + self(right); _ => 0 }", 0, cost.Linear},
	{"t => if t == null then 0 else 1 + max(self(t.left), self(t.right))", 0, cost.Linear},
	{"t => if t == null then 0 else 1 + self(t.left ?? null) + self(t.right ?? null)", 0, cost.Linear},
	{"t => if t == null then [] else [...self(t.left), t.value, ...self(t.right)]", 0, cost.Polynomial},
	{"t => if t == null then null else {left: self(t.right), right: self(t.left), value: t.value * 2}", 0, cost.Linear},
	{"t => let go = (t, acc) => if t == null then acc else go(t.left, [t.value, ...go(t.right, acc)]) in go(t, [])", 0, cost.Linear},
	{"t => let go = (t, d) => if t == null then d else max(go(t.left, d + 1), go(t.right, d + 1)) in go(t, 0)", 0, cost.Linear},
	{"t => match t { (l, r) => self(l) + self(r); _ => 1 }", 1, cost.Linear},
	{"t => if type_of(t) == \"pair\" then self(fst(t)) + self(snd(t)) else 1", 1, cost.Linear},
	{"t => match t { [l, r] => self(l) + self(r); _ => 1 }", 2, cost.Linear},
	{"t => match t { [x, ...rest] => self(x) + self(rest); [] => 0; _ => 1 }", 3, cost.Linear},
	{"t => match t { [x, ...rest] => [...self(x), ...self(rest)]; [] => []; x => [x] }", 3, cost.Polynomial},
	{"x => match type_of(x) { \"list\" => sum(map(self, x)); \"record\" => sum(map(self, values(x))); _ => 1 }", 4, cost.Linear},
	{"t => t.value + sum(map(self, t.children))", 4, cost.Linear},
	{"t => t.value + sum(map(self, t.children ?? []))", 4, cost.Linear},
	{"t => 1 + fold((a, c) => a + self(c), 0, t.children ?? [])", 4, cost.Linear},
	{"t => 1 + max([0, ...map(self, t.children ?? [])])", 4, cost.Linear},
	{"t => [t.name, ...flat_map(self, t.children ?? [])]", 4, cost.Polynomial},
	{"t => {name: t.name, total: t.value + sum(map(c => c.total, map(self, t.children ?? [])))}", 4, cost.Linear},
	{"t => 1 + sum(map(self, filter(c => c.on, t.children ?? [])))", 4, cost.Linear},
	{"t => {...t, children: map(self, t.children ?? [])}", 4, cost.Linear},
	{"t => t.name ++ join(map(self, t.children ?? []), \",\")", 4, cost.Polynomial},
}

// unbounded is functions that look as if they went through trees. The first is told that type_of(null) is "unit", one has
// more calls than are looked at, others have an item of a slice, which is an item of the whole, or drop none.
func unbounded() []string {
	many := ""
	for i := range 65 {
		many += fmt.Sprintf("let x%d = self(t.f%d) in ", i, i)
	}
	return []string{
		`t => if type_of(t) == "null" then 1 else if type_of(t) == "record" then 1 + self(t.left) else 1 + self(null)`,
		`t => if type_of(t) == "record" then 1 + self(t.left) + fold((a, c) => ` + many + `a, 0, range(0, 10)) else 1`,
		`t => match type_of(t) { "list" => 1 + self(drop(1, t)[0]) + self(t[1]); _ => 1 }`,
		`t => match type_of(t) { "record" => 1 + self(t.k[1:][0]) + self(t.k[1]); _ => 1 }`,
		`t => match type_of(t) { "list" => 1 + self(head(tail(t[1:]))) + self(t[2]); _ => 1 }`,
		`t => match type_of(t) { "list" => 1 + self(t[0][1:][0]) + self(t[0][1]); _ => 1 }`,
		`t => if type_of(t) == "list" and length(t) > 1 then 1 + self(t[1:][0]) + self(t[1]) else 1`,
		`t => if t == null then 1 else sum(map(x => self(head(x[1:])) + self(nth(x,1)), t))`,
		`xs => if length(xs) < 1 then 1 else self(drop((length(xs) + length(xs) + 1) / 2 - length(xs), xs))`,
		`(xs, n) => if length(xs) < 1 then 1 else let d = (n + n + 1) / 2 - n in self(xs[d:], n)`,
	}
}

func TestUnboundedWalks(t *testing.T) {
	for _, code := range unbounded() {
		tr := trial{code: code, tool: "tool", inputs: []string{"null"}}
		if report, _ := tr.check(t); report.Class != cost.Budget {
			t.Errorf("%s is said to be %s: %s", code, report.Class, report.Steps)
		}
	}
}

// TestWalkOfTexts: a text that a call is given is no part of the input, however long.
func TestWalkOfTexts(t *testing.T) {
	text := strings.Repeat("a,", 2_000)
	trial{
		code:   `t => match type_of(t) { "string" => length(map(x => x, split(t, ","))); "unit" => 0; _ => self(t.left) + self("` + text + `") }`,
		tool:   "tool",
		inputs: []string{`{"record":{"left":{"record":{"left":{"record":{"left":null}}}}}}`},
	}.check(t)
}

// TestWalksOfWalks: what each call of a walk finds anywhere below is no part of that call alone, and a list of the
// values of entries is none of pairs.
func TestWalksOfWalks(t *testing.T) {
	const addUp = `u => let longest = u => if type_of(u) == "record" then longest(u.left) else length(u) in sum(range(0, longest(u)))`
	numbers := func(n int) string { return "[" + strings.TrimSuffix(strings.Repeat("7,", n), ",") + "]" }
	left := func(deep int, end string) string {
		return strings.Repeat(`{"record":{"left":`, deep) + end + strings.Repeat("}}", deep)
	}
	kids := func(deep, n int) string {
		return strings.Repeat(`{"record":{"kids":{"record":{"a":`+numbers(n)+`,"b":[1]}},"next":`, deep) + "null" + strings.Repeat("}}", deep)
	}
	text := func(deep, n int) string { return left(deep, `"`+strings.Repeat("a", n*40)+`"`) }
	of := func(list string) string {
		return `t => if t == null then 0 else sum(map(xs => length(map(x => map(y => 1, xs), xs)), ` + list + `)) + self(t.next)`
	}
	for code, in := range map[string]func(deep, n int) string{
		of("map(e => snd(e), entries(t.kids))"):                          kids,
		of("fold((a, e) => [snd(e), ...a], [], entries(t.kids))"):        kids,
		of("map(snd, reverse(entries(t.kids)))"):                         kids,
		of("map(e => snd(e), filter(e => fst(e) < 9, entries(t.kids)))"): kids,
		of("map(e => snd(e), sort_by(fst, entries(t.kids)))"):            kids,
		of("map(x => x, values(t.kids))"):                                kids,
		of("map(p => snd(p), map(e => (1, snd(e)), entries(t.kids)))"):   kids,
		`t => let g = u => if type_of(u) == "list" then (if isEmpty(u) then 0 else length(map(x => 1, u)) + g(tail(u))) ` +
			`else if type_of(u) == "record" then g(u.left) else 0 in if type_of(t) == "record" then g(t) + self(t.left) else 0`: func(deep, n int) string { return left(deep, numbers(n)) },
		"t => let addUp = " + addUp + ` in if type_of(t) == "record" then addUp(t) + self(t.left) else 0`: text,
		`t => if type_of(t) == "record" then @addUp(t) + self(t.left) else 0`:                             text,
	} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			for _, deep := range []int{1, 20, 120} {
				for _, n := range []int{2, 40, 120} {
					if report, ok := (trial{code: code, tool: "tool", tools: map[string]string{"addUp": addUp}, inputs: []string{in(deep, n)}, steps: 10_000_000}).check(t); !ok {
						t.Fatalf("%s has no bound: %v", code, report.Why)
					}
				}
			}
		})
	}
}

func everyShape() []string {
	all := slices.Clone(shapes)
	for _, w := range walks {
		all = append(all, w.code)
	}
	return all
}

func TestWalks(t *testing.T) {
	n := must.Full(20, 2_000)
	for _, w := range walks {
		for seed := range n {
			r := rand.New(rand.NewPCG(uint64(seed), 61))
			size := r.IntN(1 + min(3*seed, 300))
			tr := trial{code: w.code, tool: "tool", inputs: []string{treeOf(r.IntN, w.like, size, r.IntN(2) == 0)}}
			if report, _ := tr.check(t); report.Class != w.class {
				t.Errorf("%s: %s, want %s: %s %v", w.code, report.Class, w.class, report.Steps, report.Why)
				break
			}
		}
	}
}

// words is what walkers of trees of a kind are made of.
type words struct {
	leaf, inner          string
	parts, lists, values []string
	tree                 func(d gen.Draw, nodes int, lean bool) string
}

// deepest makes a walk of t's own, to a part each, for the largest of what is there.
func deepest(of, part string) string {
	return "(let g = u => if type_of(u) == \"record\" or type_of(u) == \"list\" and not isEmpty(u) then max(" + of + ", g(" + part + ")) else 0 in g(t))"
}

var vocabularies = []*words{{
	leaf: "t == null", inner: `type_of(t) == "record"`,
	parts: []string{"t.left", "t.right", "t.left ?? null", "t.right.left", "t.children[0]", "head(t.children)", "t.value", "t", "t.children[1:][0]", "t.children[1]", "head(drop(1, t.children))"},
	lists: []string{"t.children ?? []", "t.children", "filter(c => c.on, t.children ?? [])", "reverse(t.children ?? [])", "tail(t.children)", "values(t)", "[t.left, t.right]", "map(c => self(c), t.children ?? [])", "t.children[1:]", "take(2, t.children)", "sort_by(c => c.value, t.children)",
		"map(snd, entries(t))", "map(e => snd(e), entries(t.left))", "fold((a, e) => [snd(e), ...a], [], entries(t))", "map(x => x, values(t.right))", "map(fst, entries(t))", "map(x => t.children, values(t))"},
	values: []string{"t.value", "length(t.name)", "length(t.children)", deepest("length(u.children)", "u.left"), deepest("length(u.name)", "u.right"), "length(range(0, " + deepest("length(u.children)", "u.left") + "))"},
	tree:   fullTree,
}, {
	leaf: `type_of(t) != "list" or isEmpty(t)`, inner: `type_of(t) == "list" and not isEmpty(t)`,
	parts:  []string{"head(t)", "tail(t)", "t[0]", "t[1] ?? null", "head(t) ?? []", "tail(tail(t))", "t[1:]", "nth(t, 0)", "t", "t[1:][0]", "head(drop(1, t))", "tail(t[1:])", "t[0][1:][0]", "t[0][1]"},
	lists:  []string{"t", "tail(t)", "t[1:]", "reverse(t)", "filter(c => c != null, t)", "[head(t)]", "map(self, tail(t))", "drop(1, t)", "sort_by(c => self(c), t)"},
	values: []string{"length(t)", "2", deepest("length(u)", "head(u)"), "length(range(0, " + deepest("length(u)", "u[0]") + "))"},
	tree:   func(d gen.Draw, nodes int, lean bool) string { return treeOf(d, 3, nodes, lean) },
}}

// walker makes the body of a function of a tree t at random, of calls of itself among them.
func walker(d gen.Draw, deep int, w *words, env []string) string {
	e := func() string { return walker(d, deep-1, w, env) }
	in := func(x string) string { return walker(d, deep-1, w, append(env[:len(env):len(env)], x)) }
	part := func() string { return append(w.parts, env[d(len(env))])[d(len(w.parts)+1)*min(1, d(4))] }
	list := func() string { return w.lists[d(len(w.lists))*min(1, d(3))] }
	if deep <= 0 {
		return append(w.values, "1", "self("+part()+")", env[d(len(env))])[d(len(w.values)+3)]
	}
	x := fmt.Sprint("v", len(env))
	switch d(18) {
	case 0, 1:
		return "(" + e() + " + " + e() + ")"
	case 2:
		return "(" + e() + " * " + e() + ")"
	case 3, 4:
		return "self(" + part() + ")"
	case 5, 6:
		return "sum(map(self, " + list() + "))"
	case 7:
		return "sum(map(" + x + " => " + in(x) + ", " + list() + "))"
	case 8, 9:
		return "fold((a" + x + ", " + x + ") => " + walker(d, deep-1, w, append(env[:len(env):len(env)], x, "a"+x)) + ", " + e() + ", " + list() + ")"
	case 10:
		return "max(" + e() + ", " + e() + ")"
	case 11:
		return "(if " + e() + " > 3 then " + e() + " else " + e() + ")"
	case 12:
		return "(let " + x + " = " + e() + " in " + in(x) + ")"
	case 13:
		return "length(range(0, " + e() + "))"
	case 14:
		return "max([0, ...map(self, " + list() + ")])"
	case 15:
		return "length([..." + "map(" + x + " => " + in(x) + ", " + list() + "), " + e() + "])"
	case 16:
		return "sum(flat_map(" + x + " => [" + in(x) + ", " + x + "], map(self, " + list() + ")))"
	}
	return "(let " + x + " = map(self, " + list() + ") in " + in("sum("+x+")") + " + length(" + x + "))"
}

// fullTree makes a tree of records that have all that a walker asks for.
func fullTree(d gen.Draw, nodes int, lean bool) string {
	if nodes <= 0 {
		return "null"
	}
	rest := nodes - 1
	take := func() string {
		n := d(rest + 1)
		if lean {
			n = d(2) * rest
		}
		rest -= n
		return fullTree(d, n, lean)
	}
	var kids []string
	left, right := take(), take()
	for range d(5) {
		if kid := take(); kid != "null" || d(8) == 0 {
			kids = append(kids, kid)
		}
	}
	return fmt.Sprintf(`{"record":{"left":%s,"right":%s,"value":%d,"name":"%s","on":%v,"children":[%s]}}`,
		left, right, d(4), strings.Repeat("n", d(9)), d(3) > 0, strings.Join(kids, ","))
}

// TestWalkersHold: functions made at random that call themselves for parts of trees take no more
// than their bounds.
func TestWalkersHold(t *testing.T) {
	n := must.Drawn(400, 20_000)
	bounded, all := 0, 0
	for seed := range n {
		r := rand.New(rand.NewPCG(uint64(seed), 62))
		w := vocabularies[r.IntN(2)]
		code := "t => if " + w.leaf + " then " + []string{"0", "1", "3"}[r.IntN(3)] + " else " + walker(r.IntN, 1+r.IntN(4), w, []string{"t"})
		if r.IntN(4) == 0 {
			code = "t => let go = (d, t) => if not (" + w.inner + ") then d else " +
				strings.ReplaceAll(walker(r.IntN, 1+r.IntN(3), w, []string{"t", "d"}), "self", "go(d + 1)") + " in go(1, t)"
		}
		if !strings.Contains(code, "self") && !strings.Contains(code, "go(d") {
			continue
		}
		tr := trial{code: code, tool: "tool"}
		all++
		for range 3 {
			tr.inputs = []string{w.tree(r.IntN, r.IntN(30), r.IntN(2) == 0)}
			if _, ok := tr.check(t); !ok {
				break
			}
			bounded++
		}
	}
	t.Logf("%d of %d have bounds", bounded/3, all)
	if bounded/3 < all/20 {
		t.Errorf("only %d of %d programs have bounds", bounded/3, all)
	}
}
