package flows_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check/flows"
	"github.com/mcp-pif/mcp-pif/core/flow"
	"github.com/mcp-pif/mcp-pif/core/internal/vectors"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/naive"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/prim/gen"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

var secret = flow.Atom(0)

// query asks for kv.put to be made of nothing that fs.read gave, and by data or at all.
func query(tool bool, code func(string) (term.Term, bool)) flows.Query {
	puts := func(q *flows.Asking) (may, must bool) { return q.Op == "kv.put", q.Op == "kv.put" }
	return flows.Query{
		Tool: tool, Code: code, All: secret,
		Source: func(q *flows.Asking) (may, must flow.Label, alone bool) {
			if strings.HasPrefix(q.Op, "fs.") {
				return secret, secret, false
			}
			return 0, 0, false
		},
		Rules: []flows.Rule{
			{Of: puts, Forbidden: secret, Mask: flow.Data},
			{Of: puts, Forbidden: secret, Mask: flow.Both, Made: true},
		},
	}
}

// TestHolds runs generated programs with labels: what is never so isn't, and what must be
// so is.
func TestHolds(t *testing.T) {
	n := must.Drawn(1_200, 300_000)
	tools := vectors.Library{Owner: "tool", Code: map[string]value.Tool{}}
	for name, code := range gen.Tools {
		p, f := parse.Code([]byte(code), parse.Options{Tool: name})
		must.NoFault(t, f)
		p.Source.In = "tool:" + name
		tools.Code[name] = value.Tool{Term: p.Term, Source: p.Source, Params: prim.Parameters(p.Term)}
	}
	tally := map[flows.Verdict]int{}
	told := 0
	for seed := range n {
		r := rand.New(rand.NewPCG(uint64(seed), 5))
		code := gen.Guarded(r.IntN, 2+r.IntN(25))
		p, err := core.CompileTool("tool", []byte(code))
		if err != nil {
			t.Fatalf("%v\n%s", err, code)
		}
		found, ok := flows.Of(p.Term(), query(true, func(name string) (term.Term, bool) {
			tool, ok := tools.Code[name]
			return tool.Term, ok
		}))
		if !ok {
			continue
		}
		told++
		at := map[string][]flows.Flow{}
		for _, f := range found {
			tally[f.Verdict]++
			at[fmt.Sprint(place(p, f.At))] = append(at[fmt.Sprint(place(p, f.At))], f)
		}
		_, err = flow.Run(context.Background(), flow.Config{
			Term: p.Term(), Source: p.Tool().Source, Tool: "tool", Tools: tools, Budgets: naive.Budgets{Steps: 20_000, Depth: 200},
			Handler: func(_ context.Context, round []flow.Request) ([]flow.Answer, error) {
				answers := make([]flow.Answer, len(round))
				for i, q := range round {
					answers[i].Value = datum(r, 2)
					if strings.HasPrefix(q.Op, "fs.") {
						answers[i].Shadow = flow.Whole(secret)
					}
					if q.Op != "kv.put" || q.Where != "tool:tool" {
						continue
					}
					for _, f := range at[string(q.At)] {
						l := q.Shadow.All() & flow.Data
						if f.Rule == 1 {
							l = (q.Shadow.All() | q.Made).Atoms()
						}
						if f.Verdict == flows.Never && l != 0 || f.Verdict == flows.Must && l == 0 {
							t.Errorf("seed %d: rule %d at %s is %s and %x\n%s\n%s", seed, f.Rule, q.At, f.Verdict, l, p.Text(), code)
						}
					}
					if at[string(q.At)] == nil {
						t.Errorf("seed %d: nothing is told of %s\n%s", seed, q.At, code)
					}
				}
				return answers, nil
			},
		})
		must.NoError(t, err)
		if t.Failed() {
			return
		}
	}
	t.Logf("%d of %d: %v", told, n, tally)
	if told < n*9/10 || tally[flows.Never] < n/10 || tally[flows.Must] < n/50 || tally[flows.May] < n/10 {
		t.Error("the programs show too little")
	}
}

func place(p *core.Program, at int) string {
	return string(parse.LocateAll(p.Tool().Source, p.Term().Pos(), []int{at})[0])
}

func datum(r *rand.Rand, deep int) value.Value {
	switch k := r.IntN(8); {
	case k == 0:
		return value.Bool(r.IntN(2) == 0)
	case k == 1:
		return value.Str([]string{"a", "b"}[r.IntN(2)])
	case k == 2 && deep > 0:
		return &value.Pair{First: datum(r, deep-1), Second: datum(r, deep-1)}
	case k == 3 && deep > 0:
		return value.FromSlice([]value.Value{datum(r, deep-1), datum(r, deep-1)})
	case k == 4 && deep > 0:
		return &value.Record{Fields: []value.Field{{Key: "a", Value: datum(r, deep-1)}, {Key: "b", Value: datum(r, deep-1)}}}
	}
	return value.NewInt(int64(r.IntN(3)))
}

// TestVerdicts asks whether the argument to of mail.send is made of what mail.read gave,
// and whether anything of it, or that it is sent, depends on that.
func TestVerdicts(t *testing.T) {
	for _, c := range []struct{ code, want string }{
		{`r => !mail.send({to: r.to, text: "x"})`, "never never"},
		{`r => let m = !mail.read({id: r.id}) in !mail.send({to: m.from, text: r.text})`, "must must: mail.read, get from"},
		{`r => let m = !mail.read({id: r.id}) in !mail.send({to: m.data.from, text: 1})`, "must must: mail.read, get data, get from"},
		{`r => let m = !mail.read({id: r.id}) in !mail.send({to: get(r, "to", m.from), text: 1})`, "may may: mail.read, get from"},
		{`r => let m = !mail.read({id: r.id}) in !mail.send({to: r.to, text: "Re: " ++ m.subject})`, "never must"},
		{`r => let m = !mail.read(1) in if equal(m.from, "me") then !mail.send({to: r.to}) else 0`, "never may"},
		{`r => let ms = !mail.list(1) in !mail.send({to: head(filter(m => equal(m.from, "me"), ms)).to})`, "must must: mail.list, head, get to"},
		{`r => let ms = !mail.list(1) in map(m => !mail.send({to: m.from}), ms)`, "must must: mail.list, get from"},
		{`r => let ms = !mail.list(1) in map(m => !mail.send({to: r.to}), ms)`, "never may"},
		{`r => let ms = !mail.list(1) in !mail.send({to: r.to, n: length(ms)})`, "never must"},
		{`r => let f = x => [x.a], m = !mail.read(1) in [f(m), !mail.send({to: f({a: 1})})]`, "never never"},
		{`r => let go = n => if n == 0 then !mail.read(1).from else go(n - 1) in !mail.send({to: go(3)})`, "must must"},
		{`r => !mail.send({to: (try(!mail.read(1))).error.message})`, "may may"},
		{`r => !mail.send({to: try(!mail.read(1)).ok.from})`, "must must"},
		{`r => try(let m = !mail.read(1) in !mail.send({to: m.from}))`, "may may"},
		{`r => par(!mail.read(1), !mail.send({to: r.to}))`, "never never"},
		{`r => let m = !mail.read(1) in !mail.send({...r, to: m.from})`, "must must"},
		{`r => let m = !mail.read(1) in !mail.send({...m, to: r.to})`, "must must"},
		{`r => match !mail.read(1) { {from: x} => !mail.send({to: x}); _ => 0 }`, "must must"},
		{`r => eval(r.code)`, "never never"},
		{`r => eval(r.code, ["mail.send"])`, "may may"},
		{`r => eval('{!mail.send({to: 1})})`, "never never"},
		{`r => let m = !mail.read(1) in eval('{!mail.send({to: m})})`, "must must"},
		{`r => @reads(1)`, "never never"},
		{`r => !mail.send({to: @reads(1)})`, "must must"},
		{`r => @sends(!mail.read(1).from)`, "must must"},
		{`r => [@sends(r.to), !mail.read(1)]`, "never never"},
		{`r => @nobody(1)`, "may may"},
		{`x => !mail.send({to: 1, To: !mail.read(x)})`, "may must: mail.read"},
		{`r => r.f(!mail.read(1), x => !mail.send({to: x}))`, "may may"},
	} {
		p, err := core.CompileText("tool", []byte(c.code))
		if err != nil {
			t.Fatalf("%s\n%v", c.code, err)
		}
		tools := map[string]string{"reads": `x => !mail.read(x).from`, "sends": `x => !mail.send({to: x})`}
		found, ok := flows.Of(p.Term(), flows.Query{
			Tool: true, All: secret,
			Code: func(name string) (term.Term, bool) {
				p, err := core.CompileText(name, []byte(tools[name]))
				if err != nil {
					return nil, false
				}
				return p.Term(), true
			},
			Source: func(q *flows.Asking) (may, must flow.Label, alone bool) {
				if q.Op == "mail.read" || q.Op == "mail.list" {
					return secret, secret, false
				}
				return 0, 0, false
			},
			Rules: []flows.Rule{
				{Of: sends, Argument: []string{"to"}, Forbidden: secret, Mask: flow.Data},
				{Of: sends, Forbidden: secret, Mask: flow.Both, Made: true},
			},
		})
		if !ok {
			t.Fatalf("%s: too large", c.code)
		}
		got := map[int]flows.Flow{0: {Verdict: flows.Never}, 1: {Verdict: flows.Never}}
		for _, f := range found {
			got[f.Rule] = f
		}
		shown := fmt.Sprint(got[0].Verdict, " ", got[1].Verdict)
		var via []string
		for _, s := range got[0].Via {
			via = append(via, strings.TrimSpace(s.Name+" "+s.Field))
		}
		if _, path, _ := strings.Cut(c.want, ": "); path != "" {
			shown += ": " + strings.Join(via, ", ")
		}
		if shown != c.want {
			t.Errorf("%s\n  %s, want %s", c.code, shown, c.want)
		}
	}
}

func sends(q *flows.Asking) (may, must bool) { return q.Op == "mail.send", q.Op == "mail.send" }
