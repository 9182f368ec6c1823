package issue_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check/cert"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/internal/vectors"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/naive"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/prim/gen"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// holds runs a program with inputs of the type that its certificate claims:
// none fails with type_error or unbound, none asks for anything else, and none
// takes more evaluations.
func holds(t testing.TB, s sample, d gen.Draw) (ran bool) {
	t.Helper()
	data := []string{"3", "0", `"a"`, "true", "null", "[]", "[1,2,3]", `["a"]`, `{"pair":[1,2]}`, `{"name":"x"}`, `{"dec":"1.5"}`, `[[1],[2]]`, "[1" + strings.Repeat(",2", 40) + "]"}[d(13)]
	in, f := parse.Input([]byte(data), parse.Data)
	must.NoFault(t, f)
	v, _, _ := naive.Run(naive.Config{Term: in.Term, Source: in.Source})
	mine := map[term.Term]bool{} // the input's
	var inside func(x term.Term) bool
	inside = func(x term.Term) bool {
		mine[x] = true
		return term.Children(x, inside)
	}
	inside(in.Term)
	evaluations, calls := uint64(0), uint64(0)
	var asked []string
	result, _, f := naive.Run(naive.Config{
		Term: s.term, Source: s.source, Tool: s.tool, Input: in, Budgets: naive.Budgets{Steps: 50_000, Memory: 16 << 20, Depth: 5_000},
		Visit: func(at naive.Scene) bool {
			if !mine[at.Term] {
				evaluations++
			}
			if _, ok := at.Term.(*term.Self); ok {
				calls++
			}
			return true
		},
		Handler: func(round []value.Request) []value.Answer {
			answers := make([]value.Answer, len(round))
			for i, r := range round {
				if !vectors.Permits(r.With, r.Op) {
					answers[i] = value.Answer{Fault: fault.New(fault.Denied, "an eval around doesn't permit it")}
					continue
				}
				asked = append(asked, r.Op)
				answers[i] = value.Answer{Value: value.FromSlice([]value.Value{value.NewInt(int64(len(asked)))})}
			}
			return answers
		},
	})
	for _, op := range asked {
		if !slices.Contains(s.c.Effects, op) && !slices.Contains(s.c.Effects, "*") {
			t.Fatalf("it asked for %s: %q\n%s", op, s.c.Effects, s)
		}
	}
	if most, ok := evaluate(s.c.Cost, v, calls); ok && evaluations > most {
		t.Fatalf("%d evaluations, more than %s = %d\n%s\ninput %s", evaluations, s.c.Cost, most, s, data)
	}
	if len(s.c.Types) == 0 {
		return false
	}
	root := s.c.Table[s.c.Types[0]]
	if root.Kinds == prim.KindFunction && !inhabits(v, root.Param) {
		return false
	}
	if f != nil && (f.Kind == fault.TypeError || f.Kind == fault.Unbound) {
		src, _ := json.Marshal(root)
		t.Fatalf("%v\n%s\ninput %s\ntype %s", f, s, data, src)
	}
	if f == nil && root.Kinds == prim.KindFunction && ofData(result) && !inhabits(result, root.Result) {
		src, _ := json.Marshal(root)
		e, _ := text.Encode(result, 1000, 1<<20)
		t.Fatalf("%s is not of the type\n%s\ninput %s\ntype %s", e.JSON, s, data, src)
	}
	return true
}

// ofData reports whether a value is made of what inhabits knows.
func ofData(v value.Value) bool {
	switch v := v.(type) {
	case *value.Closure, *value.Code, *value.Continuation:
		return false
	case *value.Cons:
		return ofData(v.Head) && ofData(v.Tail)
	case *value.Pair:
		return ofData(v.First) && ofData(v.Second)
	case *value.Record:
		return !slices.ContainsFunc(v.Fields, func(f value.Field) bool { return !ofData(f.Value) })
	}
	return true
}

// evaluate works a formula out for one input.
func evaluate(formula string, v value.Value, calls uint64) (uint64, bool) {
	if formula == "unbounded" {
		return 0, false
	}
	items, _ := value.Slice(v)
	n := uint64(len(items))
	factor := uint64(1)
	if inner, ok := strings.CutSuffix(formula, ")*(1 + calls)"); ok {
		formula, factor = inner[1:], 1+calls
	}
	sum := uint64(0)
	for _, s := range strings.Split(formula, " + ") {
		coefficient, power, _ := strings.Cut(s, "*")
		product, err := strconv.ParseUint(coefficient, 10, 64)
		if err != nil {
			return 0, false
		}
		for range map[string]int{"": 0, "n": 1, "n^2": 2, "n^3": 3}[power] {
			product *= n
		}
		sum += product
	}
	return factor * sum, true
}

// inhabits reports whether a value is of a type.
func inhabits(v value.Value, t *cert.Type) bool {
	if t == nil {
		return false
	}
	kind := map[value.Type]prim.Kinds{
		value.TypeInt: prim.KindInt, value.TypeDec: prim.KindDec, value.TypeBool: prim.KindBool, value.TypeString: prim.KindString,
		value.TypeUnit: prim.KindUnit, value.TypeList: prim.KindList, value.TypePair: prim.KindPair, value.TypeRecord: prim.KindRecord,
	}[v.Type()]
	if t.Kinds&kind == 0 || kind == 0 {
		return false
	}
	switch v := v.(type) {
	case *value.Cons:
		items, _ := value.Slice(v)
		return !slices.ContainsFunc(items, func(x value.Value) bool { return !inhabits(x, t.Item) })
	case *value.Pair:
		return inhabits(v.First, t.First) && inhabits(v.Second, t.Second)
	case *value.Record:
		for _, f := range t.Fields {
			i := slices.IndexFunc(v.Fields, func(g value.Field) bool { return g.Key == f.Key })
			if i < 0 && !f.Optional || i >= 0 && !inhabits(v.Fields[i].Value, f.Type) {
				return false
			}
		}
		for _, g := range v.Fields {
			if !slices.ContainsFunc(t.Fields, func(f cert.Field) bool { return f.Key == g.Key }) && !inhabits(g.Value, t.Rest) {
				return false
			}
		}
	}
	return true
}

// TestHolds: what certificates claim is so.
func TestHolds(t *testing.T) {
	ran := 0
	all := samples(t, must.Full(75, 20_000))
	for _, s := range all {
		for k := range 13 {
			if holds(t, s, func(n int) int { return k % n }) {
				ran++
			}
		}
	}
	t.Logf("%d runs with inputs of the claimed type", ran)
	if ran < len(all)/4 {
		t.Errorf("only %d runs had inputs of the claimed type", ran)
	}
}

func BenchmarkCheck(b *testing.B) {
	s := ofText(b, "xs => sum(map(x => x * x, filter(x => x > 1, xs)))")
	for b.Loop() {
		must.NoError(b, cert.Check(s.c, s.term, tools))
	}
}
