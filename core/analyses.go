package core

import (
	"slices"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/check/cost"
	"github.com/mcp-pif/mcp-pif/core/check/normal"
	"github.com/mcp-pif/mcp-pif/core/code"
	"github.com/mcp-pif/mcp-pif/core/eval"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

func init() {
	prim.Analyses.Infer, prim.Analyses.Cost, prim.Analyses.Normalize, prim.Analyses.Equivalent = infer, costs, normalize, equivalent
}

// What analyses cost: steps, and bytes of memory that they may have in use at
// once, for each node of the code that is read, each byte of its strings and
// names, and each step of the analysis, which takes as long as some steps of a
// program. Tests hold them against what is used.
const (
	stepsPerNode, bytesPerNode = 100, 1_024
	stepsPerText, bytesPerText = 1, 16 // steps for each 8 bytes
	stepsPerWork, bytesPerWork = 20, 320
	bytesPerCost               = 800 // in place of bytesPerWork: a step of its sums makes more
)

// The bounds of analyses, beyond which they say that they don't know: how much
// work they may make, whatever budget the program has.
const (
	mostInfer     = 100_000
	mostCost      = 50_000
	mostNormalize = 20_000
	// Runs to show a difference, what each may take, and what is in use at once
	// for them besides: two machines' values outside of their memory.
	mostRuns  = 64 // and fewer of large code: as many as with so many nodes in all
	runsNodes = 100_000
	runSteps  = 2_000
	runMemory = 256 << 10
	runBytes  = 12 * runMemory
	// What preparing a run costs, and a part of that for each node.
	runCost, stepsPerRunNode = 200, 20
)

// infer says what code is. Its free variables are parameters, given by whoever
// evaluates it, unless it is the code of a tool.
func infer(code []*value.Code, m *prim.Meter) (value.Value, *fault.Fault) {
	a, f, ok := look(code[0], m)
	if !ok {
		return nil, f
	}
	t, expects := a.closed()
	env := check.Env{OneKind: true}
	if a.tool {
		env.Tool = "tool"
	}
	r := check.Infer(t, a.source, env, check.Budget{Steps: mostInfer, Spend: work(m, bytesPerWork, &f)})
	if f != nil {
		return nil, f
	}
	return reported(r, expects), nil
}

// reported is a report as a record.
func reported(r *check.Report, expects []string) value.Value {
	typ, names := r.Type, r.Params[min(len(expects), len(r.Params)):]
	var given []value.Field
	for _, name := range expects {
		of := check.Dynamic
		if typ.IsFunction() {
			of, typ = typ.Param, typ.Result
		}
		given = append(given, field(name, value.Str(of.String())))
	}
	result := typ
	var params []value.Value
	for _, name := range names {
		of := check.Dynamic
		if result.IsFunction() {
			of, result = result.Param, result.Result
		}
		params = append(params, record(field("name", value.Str(name)), field("type", value.Str(of.String()))))
	}
	var effects []string
	for _, e := range r.Effects {
		if !e.Inert && e.Via == "" {
			effects = append(effects, e.Ops()...)
		}
	}
	if r.Open {
		effects = append(effects, "*")
	}
	slices.Sort(effects)
	var problems, unknown []value.Value
	for _, d := range r.Diagnostics {
		problems = append(problems, record(field("at", value.Str(d.At)), field("kind", value.Str(d.Kind)), field("message", value.Str(d.Message))))
	}
	for _, u := range r.Dynamic {
		unknown = append(unknown, record(field("at", value.Str(u.At)), field("message", value.Str(u.Message)), field("reason", value.Str(u.Reason))))
	}
	return record(
		field("effects", value.Texts(slices.Compact(effects))),
		field("expects", record(given...)),
		field("params", value.FromSlice(params)),
		field("problems", value.FromSlice(problems)),
		field("result", value.Str(result.String())),
		field("sound", value.Bool(r.Sound())),
		field("type", value.Str(typ.String())),
		field("unknown", value.FromSlice(unknown)),
	)
}

// costs says what a run of code takes at most, with free variables as infer has them.
func costs(code []*value.Code, m *prim.Meter) (value.Value, *fault.Fault) {
	a, f, ok := look(code[0], m)
	if !ok {
		return nil, f
	}
	t, _ := a.closed()
	r := cost.Of(t, cost.Options{Tool: a.tool, Source: a.source, Steps: mostCost, Spend: work(m, bytesPerCost, &f)})
	if f != nil {
		return nil, f
	}
	formula := func(b cost.Bound) value.Value {
		if !b.Finite() {
			return value.Str("")
		}
		return value.Str(b.Explain())
	}
	why := make([]value.Value, len(r.Why))
	for i, p := range r.Why {
		why[i] = record(field("at", value.Str(p.At)), field("message", value.Str(p.Message)))
	}
	return record(
		field("class", value.Str(r.Class)),
		field("exact", value.Bool(r.Exact)),
		field("memory", formula(r.Memory)),
		field("steps", formula(r.Steps)),
		field("why", value.FromSlice(why)),
	), nil
}

// normalize gives code's normal form, or the code itself with the reason.
func normalize(code []*value.Code, m *prim.Meter) (value.Value, *fault.Fault) {
	a, f, ok := look(code[0], m)
	if !ok {
		return nil, f
	}
	form, err := normal.Of(a.term, normal.Options{Tool: a.tool, Steps: mostNormalize, Spend: work(m, bytesPerWork, &f)})
	if f != nil {
		return nil, f
	}
	reason := form.Opaque
	if err != nil {
		form.Term, form.JSON, form.Hash, reason = a.term, text.Canonical(a.term), hashOf(text.Canonical(a.term)), "its normal form takes more work than the bound allows"
	}
	return record(
		field("code", quoted(form.Term, form.JSON)),
		field("hash", value.Str(form.Hash)),
		field("normal", value.Bool(reason == "")),
		field("reason", value.Str(reason)),
	), nil
}

// quoted is a term as a value whose places are in its canonical JSON.
func quoted(t term.Term, canonical []byte) *value.Code {
	p, f := parse.Code(canonical, parse.Options{Tool: "tool", MaxBytes: 1 << 30})
	if f != nil {
		return &value.Code{Term: t}
	}
	p.Source.In = "eval"
	return &value.Code{Term: p.Term, Source: p.Source}
}

// equivalent says whether two pieces of code are the same: as the code of tools
// where one of them can only be that, and otherwise for all values of the
// variables that either expects.
func equivalent(code []*value.Code, m *prim.Meter) (value.Value, *fault.Fault) {
	// A run that is made to show a difference has no more than this: so none of
	// them can ask the same question.
	if !m.Spend(runSteps) {
		return nil, nil
	}
	var two [2]*analysed
	for i := range two {
		a, f, ok := look(code[i], m)
		if !ok {
			return nil, f
		}
		two[i] = a
	}
	size := two[0].size + two[1].size
	f := m.Hold(runBytes)
	if f != nil {
		return nil, f
	}
	x, y := two[0].term, two[1].term
	tool := two[0].tool || two[1].tool
	switch names := expected(x, y); {
	case tool && (open(x) || open(y)):
		return verdict(normal.Verdict{Answer: normal.Unknown, Reason: "one is the code of a tool, and one has variables that nothing binds"}), nil
	case !tool:
		x, y = prim.Function(term.At(x.Pos()), names, x), prim.Function(term.At(y.Pos()), names, y)
	}
	v := normal.Equal(x, y, tool, normal.Limits{
		Steps: mostNormalize, Runs: max(4, min(mostRuns, runsNodes/int(size))), RunSteps: runSteps, RunMemory: runMemory,
		Spend: work(m, bytesPerWork, &f),
		Ran: func(steps uint64) bool {
			return m.Spend(steps + runCost + stepsPerRunNode*size)
		},
	})
	switch {
	case f != nil:
		return nil, f
	case v.Overloaded:
		return nil, prim.Overloaded(prim.NoRoom)
	}
	return verdict(v), nil
}

// open reports whether the code of a tool has variables that nothing binds.
func open(t term.Term) bool {
	_, lambda := t.(*term.Lam)
	n := len(expected(t))
	return n > 1 || n == 1 && lambda
}

// verdict is a verdict as a record.
func verdict(v normal.Verdict) value.Value {
	return record(
		field("answer", value.Str(v.Answer)),
		field("inputs", value.FromSlice(v.Values)),
		field("left", value.Str(v.Left)),
		field("reason", value.Str(v.Reason)),
		field("right", value.Str(v.Right)),
	)
}

func field(key string, v value.Value) value.Field { return value.Field{Key: key, Value: v} }

// record makes a record of fields in the order of their keys.
func record(fields ...value.Field) *value.Record { return &value.Record{Fields: fields} }

// constantRun is the budget of [RunConstant].
var constantRun = eval.Budgets{Steps: 2_000, Memory: 256 << 10, Depth: 1_000}

// RunConstant evaluates a closed term that asks for nothing, and returns what it fails
// with; nil if it has a value, or comes to the end of a small budget. It is what
// check.Env has as Run.
func RunConstant(t term.Term) *fault.Fault {
	list := &term.List{Items: []term.Term{t}} // a function alone would be applied
	unit := code.Compile(list, code.Options{})
	if unit.Entangled {
		return nil
	}
	m := eval.Start(&eval.Program{Term: list, Unit: unit}, nil, constantRun, nil)
	defer m.Release()
	if m.Run(0) != eval.Failed || !m.Fault().Kind.Catchable() {
		return nil
	}
	return m.Fault()
}
