package flow_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/flow"
	"github.com/mcp-pif/mcp-pif/core/internal/vectors"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/naive"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/prim/gen"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// secret is the label of what differs between the two runs.
var secret = flow.Atom(0)

// TestTwoRuns runs each generated program twice. What is secret of the answers comes from
// two generators, the rest from the unlabelled requests so far. Whoever sees only what
// isn't labelled must see no difference: the same requests in each branch, or a beginning
// of them where a run failed, and the same parts of the result, or the same failure.
func TestTwoRuns(t *testing.T) {
	n := must.Drawn(7_000, 1_000_000)
	if s := os.Getenv("FLOW_RUNS"); s != "" {
		n, _ = strconv.Atoi(s)
	}
	tools := library(t)
	ran, both, differ, secrets, open := 0, 0, 0, 0, 0
	for seed := range n {
		p, ok := program(rand.New(rand.NewPCG(uint64(seed), 77)).IntN)
		if !ok {
			continue
		}
		ran++
		a, b := p.observe(t, tools, 1), p.observe(t, tools, uint64(2+seed%5))
		if diff := a.differs(b); diff != "" {
			t.Fatalf("seed %d: %s\n%s", seed, diff, p)
		}
		secrets, open = secrets+a.secrets, open+a.open
		if a.kind == "" && b.kind == "" {
			both++
		}
		if a.steps != b.steps {
			differ++
		}
	}
	t.Logf("%d programs, %d with a value twice, %d with other steps; %d secret and %d open requests", ran, both, differ, secrets, open)
	if both < ran/3 || differ < ran/20 || secrets < ran/20 || open < ran/4 {
		t.Error("the programs show too little")
	}
}

// A prog is a program to run twice.
type prog struct {
	*core.Program
	tool, code, input string
	in                *parse.Parsed
}

func (p *prog) String() string {
	return fmt.Sprintf("tool %q\ncode %s\ninput %s", p.tool, p.code, p.input)
}

func program(d gen.Draw) (*prog, bool) {
	p := &prog{}
	o := gen.Options{Wrong: []int{0, 0, 10}[d(3)], Effects: true, Records: true, Tool: d(2) == 0}
	if o.Tool {
		p.tool = "tool"
	}
	if size := 1 + d(100); d(2) == 0 {
		p.code, p.input = gen.Term(d, size, o), "null"
	} else {
		p.code, p.input = gen.Function(d, size, o)
	}
	switch d(10) {
	case 0:
		p.code, p.input = gen.Between(d)
	case 1, 2, 3, 4, 5:
		p.code, p.input = gen.Guarded(d, 2+d(25)), "null"
	}
	if d(3) == 0 {
		p.code, p.tool = `{"try":`+p.code+`}`, ""
	}
	var err error
	if p.Program, err = core.CompileTool(p.tool, []byte(p.code)); err != nil {
		return nil, false
	}
	var f *fault.Fault
	p.in, f = parse.Input([]byte(p.input), parse.Auto)
	return p, f == nil
}

func library(t testing.TB) vectors.Library {
	l := vectors.Library{Owner: "program", Code: map[string]value.Tool{}}
	for name, code := range gen.Tools {
		p, f := parse.Code([]byte(code), parse.Options{Tool: name})
		must.NoFault(t, f)
		p.Source.In = "tool:" + name
		l.Code[name] = value.Tool{Term: p.Term, Source: p.Source, Params: prim.Parameters(p.Term)}
	}
	return l
}

// A sight is what is seen of a run.
type sight struct {
	asked         map[string][]string // by branch
	result        string
	kind          fault.Kind
	fault         string // "?": labelled
	steps         uint64
	secrets, open int // requests
}

func (p *prog) observe(t *testing.T, tools value.Tools, world uint64) *sight {
	o := &sight{asked: map[string][]string{}}
	n := 0
	res, err := flow.Run(context.Background(), flow.Config{
		Term: p.Term(), Source: p.Tool().Source, Tool: p.tool, Inputs: []flow.Input{{Parsed: p.in}}, Tools: tools,
		Budgets: naive.Budgets{Steps: 20_000, Memory: 64 << 20, Depth: 200},
		Handler: func(_ context.Context, round []flow.Request) ([]flow.Answer, error) {
			answers := make([]flow.Answer, len(round))
			for i, q := range round {
				n++
				high := fnv.New64a()
				fmt.Fprint(high, world, n)
				if q.Made|q.Shadow.All() != 0 {
					o.secrets++
					answers[i] = flow.Answer{Answer: answer(high.Sum64())}
					continue
				}
				o.open++
				o.asked[q.Branch] = append(o.asked[q.Branch], fmt.Sprint(q.Op, q.In, q.At, q.Where, q.Tool, q.With, show(q.Arg)))
				low := fnv.New64a()
				fmt.Fprint(low, q.Branch, len(o.asked[q.Branch]), q.Op)
				switch {
				case !vectors.Permits(q.With, q.Op):
					answers[i].Fault = fault.New(fault.Denied, q.Op+" is not permitted by an eval around")
				case q.Op == "fs.read":
					answers[i] = mixed(low.Sum64(), high.Sum64())
				default:
					answers[i].Answer = answer(low.Sum64())
				}
			}
			return answers, nil
		},
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, p)
	}
	o.steps = res.Steps
	switch f := res.Fault; {
	case f == nil:
		o.result = flow.Project(res.Value, res.Shadow, show)
	case res.Label != 0:
		o.kind, o.fault = f.Kind, "?"
	default:
		o.kind, o.fault = f.Kind, fmt.Sprint(f.Kind, f.Message, f.At, f.In)
	}
	return o
}

// differs tells in what two sights differ that may not.
func (o *sight) differs(p *sight) string {
	ended := o.kind == "" && p.kind == ""
	if ended && o.result != p.result {
		return fmt.Sprintf("results\n%s\n%s", o.result, p.result)
	}
	if o.kind != "" && p.kind != "" && o.fault != "?" && p.fault != "?" && o.fault != p.fault && !vectors.ByBudget(o.kind) && !vectors.ByBudget(p.kind) {
		return fmt.Sprintf("failures\n%s\n%s", o.fault, p.fault)
	}
	for _, branches := range []map[string][]string{o.asked, p.asked} {
		for branch := range branches {
			x, y := o.asked[branch], p.asked[branch]
			n := min(len(x), len(y))
			if strings.Join(x[:n], "\n") != strings.Join(y[:n], "\n") || ended && len(x) != len(y) {
				return fmt.Sprintf("requests in branch %q\n%q\n%q\nended %q %q", branch, x, y, o.kind, p.kind)
			}
		}
	}
	return ""
}

func show(v value.Value) string {
	e, f := text.Encode(v, 1<<16, 1<<22)
	if f != nil {
		return "unencodable " + string(f.Kind)
	}
	return string(e.Type) + string(e.JSON)
}

// answer makes a value or a failure of a number.
func answer(seed uint64) value.Answer {
	r := rand.New(rand.NewPCG(seed, 1))
	if r.IntN(9) == 0 {
		return value.Answer{Fault: &fault.Fault{Kind: fault.EffectFailed, Message: "it failed " + strconv.Itoa(r.IntN(5))}}
	}
	return value.Answer{Value: datum(r, 2)}
}

func datum(r *rand.Rand, deep int) value.Value {
	n := 6
	if deep > 0 {
		n = 9
	}
	switch r.IntN(n) {
	case 0:
		return value.Bool(r.IntN(2) == 0)
	case 1:
		return value.Str("s" + strconv.Itoa(r.IntN(4)))
	case 6:
		return &value.Pair{First: value.Str("fs"), Second: datum(r, deep-1)}
	case 7:
		var items []value.Value
		for range r.IntN(4) {
			items = append(items, datum(r, deep-1))
		}
		return value.FromSlice(items)
	case 8:
		return &value.Record{Fields: []value.Field{{Key: "a", Value: datum(r, deep-1)}, {Key: "b", Value: value.Str("x")}}}
	}
	return value.NewInt(int64(r.IntN(12)) - 2)
}

// mixed makes an answer all of which is secret, or parts of it, which come from high.
func mixed(low, high uint64) flow.Answer {
	r, h := rand.New(rand.NewPCG(low, 2)), rand.New(rand.NewPCG(high, 3))
	if r.IntN(3) > 0 {
		return flow.Answer{Answer: answer(high), Shadow: flow.Whole(secret)}
	}
	v, tree := parts(r, h, 2)
	s, ok := flow.Items(tree, v, func(string) (flow.Label, bool) { return secret, true })
	if !ok {
		panic("flow_test: a tree that doesn't fit")
	}
	return flow.Answer{Answer: value.Answer{Value: v}, Shadow: s}
}

func parts(r, h *rand.Rand, deep int) (v, tree value.Value) {
	labelled := &value.Record{Fields: []value.Field{{Key: "label", Value: value.FromSlice([]value.Value{value.Str("secret")})}}}
	k := r.IntN(4)
	switch {
	case k == 0 || deep == 0:
		return datum(h, 1), labelled
	case k == 1:
		return datum(r, 1), &value.Record{}
	case k == 2:
		var items, trees []value.Value
		for range 1 + r.IntN(3) {
			item, tree := parts(r, h, deep-1)
			items, trees = append(items, item), append(trees, tree)
		}
		return value.FromSlice(items), &value.Record{Fields: []value.Field{{Key: "items", Value: value.FromSlice(trees)}}}
	}
	a, at := parts(r, h, deep-1)
	b, bt := parts(r, h, deep-1)
	return &value.Record{Fields: []value.Field{{Key: "a", Value: a}, {Key: "b", Value: b}}},
		&value.Record{Fields: []value.Field{{Key: "fields", Value: &value.Record{Fields: []value.Field{{Key: "a", Value: at}, {Key: "b", Value: bt}}}}}}
}
