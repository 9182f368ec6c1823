package normal_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/check/normal"
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

// read is the term of canonical JSON, with its source.
func read(t testing.TB, src []byte) *parse.Parsed {
	t.Helper()
	p, f := parse.Code(src, parse.Options{MaxBytes: 4 << 20})
	if f != nil {
		t.Fatalf("%s: %v", src, f)
	}
	return p
}

// reply is what becomes of the i-th effect.
func reply(i int, op string, arg value.Value) (value.Value, *fault.Fault) {
	if i%4 == 3 {
		return nil, &fault.Fault{Kind: fault.EffectFailed, Message: "the fourth effect fails"}
	}
	return &value.Pair{First: value.Str(op), Second: value.NewInt(int64(i))}, nil
}

func library(t testing.TB) vectors.Library {
	l := vectors.Library{Owner: "program", Code: map[string]value.Tool{}}
	for name, code := range gen.Tools {
		p, f := parse.Code([]byte(code), parse.Options{Tool: name})
		must.NoFault(t, f)
		l.Code[name] = value.Tool{Term: p.Term, Source: p.Source, Params: prim.Parameters(p.Term), Takes: check.Takes(name, p.Term)}
	}
	return l
}

// observed is what a run shows: its value or the kind of its failure, and what
// it asked for, in order.
func observed(t testing.TB, code []byte, tool, input string, steps uint64) (outcome string, inconclusive bool) {
	t.Helper()
	p := read(t, code)
	in, f := parse.Input([]byte(input), parse.Auto)
	if f != nil {
		return "", true // what was generated is no input
	}
	log := ""
	asked := 0
	v, _, f := naive.Run(naive.Config{
		Term: p.Term, Source: p.Source, Tool: tool, Input: in,
		Budgets: naive.Budgets{Steps: steps, Memory: 8 << 20, Depth: 2000},
		Tools:   library(t),
		Handler: func(round []value.Request) []value.Answer {
			answers := make([]value.Answer, len(round))
			for i, r := range round {
				e, f := text.Encode(r.Arg, 1<<16, 1<<20)
				if f != nil {
					e.JSON = []byte("large")
				}
				log += fmt.Sprintf("%s in %q with %q tool %q branch %q: %s\n", r.Op, r.In, r.With, r.Tool, r.Branch, e.JSON)
				if !vectors.Permits(r.With, r.Op) {
					answers[i].Fault = fault.New(fault.Denied, "no")
					continue
				}
				answers[i].Value, answers[i].Fault = reply(asked, r.Op, r.Arg)
				asked++
			}
			return answers
		},
	})
	if f != nil {
		return log + string(f.Kind), vectors.ByBudget(f.Kind)
	}
	w := text.NewWriter(4<<20, 4<<20)
	w.Term(v) // as a term, so that code is told from the value it looks like
	if w.Full() {
		return "", true
	}
	return log + string(w.Bytes()), false
}

// program draws a program with an input.
func program(d gen.Draw) (code, input, tool string) {
	o := gen.Options{Wrong: []int{0, 5, 30}[d(3)], Effects: d(4) == 0, Records: d(2) == 0, Tool: d(2) == 0}
	if o.Tool {
		tool = "tool"
	}
	size := 1 + d(100)
	if d(4) == 0 {
		return gen.Term(d, size, o), "null", tool
	}
	code, input = gen.Function(d, size, o)
	return code, input, tool
}

// TestSameAsItsForm: a program and its normal form give the same, fail with the
// same kind and ask for the same in the same order.
func TestSameAsItsForm(t *testing.T) {
	n := must.Drawn(700, 50_000)
	compared, opaque, budget := 0, 0, 0
	for seed := range n {
		r := rand.New(rand.NewPCG(uint64(seed), 21))
		code, input, tool := program(r.IntN)
		parsed := read(t, []byte(code))
		form, err := normal.Of(parsed.Term, normal.Options{Tool: tool != ""})
		if err != nil {
			budget++
			continue
		}
		if form.Opaque != "" {
			opaque++
			continue
		}
		checkForm(t, parsed.Term, form, tool, input)
		compared++
	}
	t.Logf("%d compared, %d opaque, %d beyond the budget, %d forms with another form", compared, opaque, budget, drift)
	if drift > n/100 {
		t.Errorf("%d forms are not their own form", drift)
	}
	if compared < n/2 {
		t.Errorf("only %d of %d programs were compared", compared, n)
	}
}

func checkForm(t *testing.T, code term.Term, form normal.Form, tool, input string) {
	t.Helper()
	canonical := text.Canonical(code)
	want, unsure := observed(t, canonical, tool, input, 20_000)
	if unsure {
		return
	}
	got, unsure := observed(t, form.JSON, tool, input, 200_000)
	if unsure || got != want {
		t.Fatalf("got  %s\nwant %s\ncode %s\nform %s\ncode %s\nform %s\ninput %s tool %q", got, want, canonical, form.JSON, text.Print(code), text.Print(form.Term), input, tool)
	}
	again, err := normal.Of(form.Term, normal.Options{Tool: tool != ""})
	if err != nil {
		t.Fatalf("the form of a form: %v\n%s", err, form.JSON)
	}
	if string(again.JSON) != string(form.JSON) {
		drift++
	}
}

// drift counts the forms that have another form.
var drift int

func BenchmarkSmallTool(b *testing.B) {
	p, f := text.Parse([]byte("(items, rate) => let total = sum(map(i => i.price * i.count, items)) in {total: total, tax: div(total * rate, 100)}"), text.Options{Tool: "tool"})
	must.NoFault(b, f)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := normal.Of(p.Term, normal.Options{Tool: true}); err != nil {
			b.Fatal(err)
		}
	}
}

// A part may stand in a value in so many places that nobody can go through them,
// be it to compare two values or to show one.
func TestEqualOfSharedParts(t *testing.T) {
	doubled := func(first, with string) string {
		var b strings.Builder
		fmt.Fprintf(&b, "x => let a0 = %s", first)
		for i := range 60 {
			fmt.Fprintf(&b, ", a%d = "+with, i+1, i)
		}
		return b.String() + " in a60"
	}
	for _, c := range []struct{ a, b, answer string }{
		{doubled("[x + x]", "[a%d, a%[2]d]"), doubled("[2 * x]", "[a%d, a%[2]d]"), "unknown"},
		{doubled("x + x", "{a: a%d, b: a%[2]d}"), doubled("2 * x", "{a: a%d, b: a%[2]d}"), "unknown"},
		{doubled("x + x", "(a%d, a%[2]d)"), doubled("2 * x", "(a%d, a%[2]d)"), "unknown"},
		{doubled("x + x", "(a%d, a%[2]d)"), "x => 0", "different"},
	} {
		a, f := text.Parse([]byte(c.a), text.Options{Tool: "tool"})
		must.NoFault(t, f)
		b, f := text.Parse([]byte(c.b), text.Options{Tool: "tool"})
		must.NoFault(t, f)
		if v := normal.Equal(a.Term, b.Term, true, normal.Limits{}); string(v.Answer) != c.answer {
			t.Errorf("%s: %s", v.Answer, v.Reason)
		}
	}
}
