package issue_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check/cert"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// attacks is what somebody would change who wants a certificate to say what isn't
// so, of programs whose certificates have types.
var attacks = []struct {
	name, code string
	change     func(c *cert.Certificate)
}{
	{"a smaller cost", "xs => sum(xs)", func(c *cert.Certificate) { c.Cost = "9 + 4*n" }},
	{"a cost without its largest part", "xs => sum(xs)", func(c *cert.Certificate) { c.Cost, c.Class = "9", "constant" }},
	{"a smaller class", "xs => map(x => map(y => x + y, xs), xs)", func(c *cert.Certificate) { c.Class = "linear" }},
	{"a class of what has none", "x => @square(x)", func(c *cert.Certificate) { c.Class = "constant" }},
	{"a cost of what has none", "x => @square(x)", func(c *cert.Certificate) { c.Cost, c.Class = "5", "constant" }},
	{"another spelling of the cost", "xs => sum(xs)", func(c *cert.Certificate) { c.Cost = "5*n + 9" }},
	{"a larger cost", "x => x", func(c *cert.Certificate) { c.Cost = "300" }},
	{"an absent effect", "x => !fs.read(x)", func(c *cert.Certificate) { c.Effects = nil }},
	{"another effect", "x => !fs.read(x)", func(c *cert.Certificate) { c.Effects = []string{"fs.list"} }},
	{"effects that are not sorted", "x => [!fs.read(x), !kv.get(x)]", func(c *cert.Certificate) { slices.Reverse(c.Effects) }},
	{"an effect twice", "x => !fs.read(x)", func(c *cert.Certificate) { c.Effects = append(c.Effects, "fs.read") }},
	{"any effect", "x => !fs.read(x)", func(c *cert.Certificate) { c.Effects = []string{"*"} }},
	{"a need of another version", "x => code_of(\"square\")", func(c *cert.Certificate) { c.Needs[0].Version++ }},
	{"a need of another hash", "x => code_of(\"square\")", func(c *cert.Certificate) { c.Needs[0].Hash = "" }},
	{"a need twice", "x => code_of(\"square\")", func(c *cert.Certificate) { c.Needs = append(c.Needs, c.Needs[0]) }},
	{"a need that is none", "x => code_of(\"square\")", func(c *cert.Certificate) { c.Needs[0] = cert.Need{} }},
	{"no needs", "x => code_of(\"square\")", func(c *cert.Certificate) { c.Needs = nil }},
	{"needs that are not sorted", "x => [code_of(\"a\"), code_of(\"b\")]", func(c *cert.Certificate) { slices.Reverse(c.Needs) }},
	{"not a tool's", "n => if n <= 1 then 1 else n * self(n - 1)", func(c *cert.Certificate) { c.Tool = false }},
	{"a type that hides a type_error", "x => x + 1", func(c *cert.Certificate) { c.Table[c.Types[0]].Param = anything }},
	{"a type that hides a type_error in a branch", "(a, x) => if a then x + 1 else 2", func(c *cert.Certificate) { c.Table[c.Types[0]].Result.Param = kinds(prim.KindString | prim.KindInt) }},
	{"a result of another type", "x => x + 1", func(c *cert.Certificate) { c.Table[c.Types[0]].Result = kinds(prim.KindString) }},
	{"a result that is none", "x => x + 1", func(c *cert.Certificate) { c.Table[c.Types[0]].Result = nil }},
	{"a program of no type", "x => x + 1", func(c *cert.Certificate) { *c.Table[c.Types[0]] = cert.Type{} }},
	{"a program that is no function", "x => x + 1", func(c *cert.Certificate) { *c.Table[c.Types[0]] = *number }},
	{"entries of the table that are swapped", "xs => fold(p => fst(p) + snd(p), 0, xs)", func(c *cert.Certificate) { slices.Reverse(c.Table) }},
	{"types that are swapped", "xs => fold(p => fst(p) + snd(p), 0, xs)", func(c *cert.Certificate) { slices.Reverse(c.Types) }},
	{"an empty table", "xs => sum(xs)", func(c *cert.Certificate) { c.Table = nil }},
	{"a table without types", "xs => sum(xs)", func(c *cert.Certificate) { c.Types = nil }},
	{"empty places", "xs => sum(xs)", func(c *cert.Certificate) { clear(c.Table) }},
	{"places that there aren't", "xs => sum(xs)", func(c *cert.Certificate) { c.Types[1] = 1 << 40 }},
	{"places before the first", "xs => sum(xs)", func(c *cert.Certificate) { c.Types[0] = -1 }},
	{"all types the same, in itself", "xs => sum(xs)", func(c *cert.Certificate) {
		u := &cert.Type{Kinds: prim.KindAny}
		u.Item, u.First, u.Second, u.Rest, u.Param, u.Result = u, u, u, u, u, u
		c.Table = []*cert.Type{u}
		clear(c.Types)
	}},
}

func TestAttacks(t *testing.T) {
	for _, a := range attacks {
		s := ofText(t, a.code)
		if err := cert.Check(s.c, s.term, tools); err != nil {
			t.Errorf("%s: %v", a.code, err)
			continue
		}
		c := copied(s.c)
		a.change(c)
		if cert.Check(c, s.term, tools) == nil {
			t.Errorf("%s was accepted: %s", a.name, a.code)
		}
		// Nor is it once it was written and read, where that tells it from the true one.
		src, back := mustJSON(t, c), new(cert.Certificate)
		if string(src) != string(mustJSON(t, s.c)) && json.Unmarshal(src, back) == nil && cert.Check(back, s.term, tools) == nil {
			t.Errorf("%s was accepted once it was read: %s", a.name, src)
		}
	}
}

func mustJSON(t *testing.T, v any) []byte {
	src, err := json.Marshal(v)
	must.NoError(t, err)
	return src
}

// TestTables: whatever a table is like, reading a certificate and checking it ends,
// and says no.
func TestTables(t *testing.T) {
	s := ofText(t, "xs => sum(map(x => x + 1, filter(x => x > 1, xs)))")
	if len(s.c.Types) == 0 {
		t.Fatal("it has no types")
	}
	many := func(n int, entry func(i int) string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = entry(i)
		}
		return strings.Join(all, ",")
	}
	wide := func(key string) string {
		return `{"kinds":64,"parts":[0,0,0,0,0,0` + strings.Repeat(",1", 10_000) + `],"fields":[` + many(10_000, func(i int) string { return fmt.Sprintf(`{"key":"%s%d"}`, key, i) }) + `]}`
	}
	for name, table := range map[string]string{
		"lists in lists, far":      many(30_000, func(i int) string { return fmt.Sprintf(`{"kinds":16,"parts":[%d]}`, i+2) }),
		"pairs of the next, twice": many(25_000, func(i int) string { return fmt.Sprintf(`{"kinds":32,"parts":[0,%d,%[1]d]}`, i+2) }),
		"functions of the next":    many(22_000, func(i int) string { return fmt.Sprintf(`{"kinds":128,"parts":[0,0,0,0,%d,%[1]d]}`, i+2) }),
		"functions of all": many(20_000, func(i int) string {
			return fmt.Sprintf(`{"kinds":128,"parts":[0,0,0,0,%d,%d]}`, i*7919%20_000+1, i*104729%20_000+1)
		}),
		"itself":                    `{"kinds":128,"parts":[0,0,0,0,1,1]}`,
		"records of many keys":      wide("a") + "," + wide("b"),
		"one key many times":        `{"kinds":64,"fields":[` + strings.TrimSuffix(strings.Repeat(`{"key":"a"},`, 50_000), ",") + `]}`,
		"parts that there aren't":   `{"kinds":16,"parts":[-1]},{"kinds":16,"parts":[9223372036854775807]},{"kinds":16,"parts":[1,1,1,1,1,1,1,1,1]}`,
		"nothing but empty places":  strings.TrimSuffix(strings.Repeat("null,", 100_000), ","),
		"kinds that there aren't":   `{"kinds":65535,"parts":[1,1,1,1,1,1]}`,
		"more types than are asked": many(1_000, func(i int) string { return `{"kinds":2047,"parts":[1,1,1,1,1,1]}` }),
	} {
		for _, step := range []int{0, 1, 3} {
			head := mustJSON(t, cert.Certificate{Hash: s.c.Hash, Tool: true, Cost: s.c.Cost, Class: s.c.Class})
			types := many(100, func(i int) string { return fmt.Sprint(i * step) })
			src := strings.TrimSuffix(string(head), "}") + `,"table":[` + table + `],"types":[` + types + `]}`
			if len(src) > 1<<20 {
				t.Errorf("%s: %d bytes", name, len(src))
			}
			var c cert.Certificate
			if json.Unmarshal([]byte(src), &c) == nil && cert.Check(&c, s.term, tools) == nil {
				t.Errorf("%s was accepted", name)
			}
		}
	}
}

// TestHard: of programs that are made to be hard to check something is said, and
// it is accepted.
func TestHard(t *testing.T) {
	var twice strings.Builder
	for i := range 60 {
		fmt.Fprintf(&twice, `["f%d",{"lam":"x","body":{"app":[{"var":"f%d"},{"app":[{"var":"f%[2]d"},{"var":"x"}]}]}}],`, i+1, i)
	}
	nested := func(n int, before, inner, after string) string {
		return strings.Repeat(before, n) + inner + strings.Repeat(after, n)
	}
	for name, src := range map[string]string{
		"twice over":   `{"let":[["f0",{"lam":"x","body":{"add":[{"var":"x"},1]}}],` + strings.TrimSuffix(twice.String(), ",") + `],"in":{"app":[{"var":"f60"},1]}}`,
		"omega":        `{"app":[{"lam":"x","body":{"app":[{"var":"x"},{"var":"x"}]}},{"lam":"x","body":{"app":[{"var":"x"},{"var":"x"}]}}]}`,
		"evals":        nested(2_000, `{"eval":{"quote":`, `{"fs.read":1}`, `},"with":["fs.read"]}`),
		"lets":         nested(3_000, `{"app":[{"lam":"x","body":`, `{"var":"x"}`, `},1]}`),
		"functions":    nested(4_000, `{"lam":"x","body":`, `{"var":"x"}`, `}`),
		"folds":        nested(2_000, `{"fold":[{"lam":"p","body":{"fst":{"var":"p"}}},`, `1`, `,[1,2]]}`),
		"folds inside": nested(1_000, `{"fold":[{"lam":"p","body":`, `{"fst":{"var":"p"}}`, `},1,[1,2]]}`),
		"sorts":        nested(1_500, `{"sort":`, `[1]`, `}`),
		"operands":     nested(4_900, `{"add":[1,`, `1`, `]}`),
		"list":         "[" + strings.TrimSuffix(strings.Repeat("1,", 100_000), ",") + "]",
		"puts":         nested(2_400, `{"put":[`, `{"record":{}}`, `,"k",1]}`),
	} {
		p, f := parse.Code([]byte(src), parse.Options{Tool: "tool"})
		if f != nil {
			t.Errorf("%s: %v", name, f)
			continue
		}
		s := certified(sample{term: p.Term, source: p.Source, tool: "tool"})
		if err := cert.Check(s.c, s.term, tools); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if name == "evals" && !slices.Equal(s.c.Effects, []string{"fs.read"}) {
			t.Errorf("%s: %q", name, s.c.Effects)
		}
	}
}

// TestSize: what a certificate takes beside the code, of tools that have types.
func TestSize(t *testing.T) {
	code, bytes := 0, 0
	for _, w := range written {
		if s := ofText(t, w.code); len(s.c.Types) > 0 {
			code += len(text.Canonical(s.term))
			bytes += len(mustJSON(t, s.c))
		}
	}
	t.Logf("%d bytes of certificates for %d of code", bytes, code)
	if bytes > 4*code {
		t.Errorf("certificates take %d bytes, of %d of code", bytes, code)
	}
}
