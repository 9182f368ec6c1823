package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/inputs"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// What a tool's examples may take, all of them together. They are run while
// nothing else is read of the session, so it is a small part of what a run may.
const (
	exampleTime = 5 * time.Second
	// exampleBytes is how large a result may be to be compared.
	exampleBytes = 1 << 20
)

// A trial is the run of a candidate's examples. Nothing in it has authority, and
// no plugin is asked: what an effect gives is written in the example.
type trial struct {
	server    *Engine
	candidate *registry.Tool
	sees      *registry.Snapshot
	given     []registry.Example // in this call; the others are kept from before
	steps     uint64             // left
	until     time.Time
	// imported is set where the candidate is one of a document: where nothing may be
	// granted, and nobody evolves.
	imported bool

	notes []string // of how the inputs were read

	// Of the example under way:
	answered []bool // which of its outcomes were given
	missing  *fault.Fault
}

// try runs a candidate's examples, and refuses it at the first that differs.
// steps is what that one took, notes tell how inputs were read.
func (s *Engine) try(ctx context.Context, candidate *registry.Tool, sees *registry.Snapshot, given []registry.Example) (steps uint64, notes []string, f *fault.Fault) {
	if len(candidate.Examples) > 0 {
		if f = s.tellTried(candidate); f != nil {
			return 0, nil, f
		}
	}
	t := s.newTrial(candidate, sees, given)
	steps, f = t.all(ctx)
	return steps, t.notes, f
}

func (s *Engine) newTrial(candidate *registry.Tool, sees *registry.Snapshot, given []registry.Example) *trial {
	return &trial{
		server: s, candidate: candidate, sees: sees, given: given,
		steps: min(wire.ExampleSteps, s.limits.MaxSteps), until: time.Now().Add(min(exampleTime, s.limits.Timeout)),
	}
}

// all runs the examples, and stops at the first that differs.
func (t *trial) all(ctx context.Context) (steps uint64, f *fault.Fault) {
	for i := range t.candidate.Examples {
		if steps, f = t.example(ctx, i); f != nil {
			return steps, f
		}
	}
	return 0, nil
}

// example runs one.
func (t *trial) example(ctx context.Context, i int) (steps uint64, f *fault.Fault) {
	e := &t.candidate.Examples[i]
	in, f := t.input(e)
	if f != nil {
		return 0, t.refused(i, f, "its input can't be read: "+f.Message, "")
	}
	limits := t.server.limits
	budget := core.Budgets{Steps: t.steps, Memory: limits.MaxMemory, Depth: limits.MaxDepth}
	if budget.Steps == 0 {
		return 0, t.exhausted(i)
	}
	t.answered, t.missing = make([]bool, len(e.Effects)), nil
	p := t.run(ctx, e, in, budget)
	t.steps -= min(t.steps, p.Steps)
	return p.Steps, t.judge(i, &p)
}

// input reads the input of an example as a run of the candidate would.
func (t *trial) input(e *registry.Example) (core.Input, *fault.Fault) {
	if e.As == "" {
		in, err := core.ParseInput(e.Input, core.InputRounded)
		if err != nil {
			return in, wire.AsFault(err)
		}
		return in, nil
	}
	src, f := inputs.For(t.candidate, nil)
	if f != nil {
		return core.Input{}, f
	}
	src.Example = true
	r, f := check.Read(e.Input, src.Report, src.Declared)
	if f != nil {
		return core.Input{}, src.Corrected(f, e.Input)
	}
	if f := src.Check(r, true); f != nil {
		return core.Input{}, f
	}
	for _, note := range r.Notes {
		t.notes = append(t.notes, "example "+note)
	}
	var read task
	read.take(r)
	return read.parse()
}

// run evaluates the candidate on an example's input.
func (t *trial) run(ctx context.Context, e *registry.Example, in core.Input, b core.Budgets) product {
	s := t.server
	m := t.candidate.Program().Start(in, b, &trialView{trial: t, tool: t.candidate})
	j := job{keep: exampleBytes, until: t.until}
	_, end := s.draw(ctx, m, &j)
	defer end()
	for first := true; ; first = false {
		p, more := s.slice(ctx, m, &j, first)
		if more && m.State() == core.Suspended {
			answers := t.answer(e, m.Requests())
			if t.missing != nil {
				// Not an answer: a try around it would hide that it is missing.
				p, more = product{Steps: m.Steps(), Fault: t.missing}, false
			} else {
				m.Resume(answers)
			}
		}
		if more {
			if f := s.ends(ctx, &j, m.Steps(), run.Running); f != nil {
				p, more = product{Steps: m.Steps(), Fault: f}, false
			}
		}
		if !more {
			m.Release()
			return p
		}
	}
}

// answer gives a round of requests the outcomes written for them.
func (t *trial) answer(e *registry.Example, requests []core.Request) []core.Answer {
	answers := make([]core.Answer, len(requests))
	for i := range requests {
		q := &requests[i]
		args := t.arguments(q)
		k := t.outcome(e, q.Op, args)
		if k < 0 {
			t.missing = unwritten(q, args)
			return nil
		}
		t.answered[k] = true
		o := &e.Effects[k]
		if o.Error != "" {
			answers[i].Fault = &fault.Fault{Kind: fault.Kind(o.Error), Message: o.Message}
			if o.Message == "" {
				answers[i].Fault.Message = q.Op + " failed, as the example says"
			}
			continue
		}
		v, f := inputs.Value(o.Value, e.As == "")
		if f == nil {
			if t.missing = t.impossible(q, v); t.missing != nil {
				return nil
			}
		}
		answers[i].Value, answers[i].Fault = v, f
	}
	return answers
}

// outcome is the first of the example's outcomes that is for this request and
// was not given yet, or -1.
func (t *trial) outcome(e *registry.Example, op string, args []byte) int {
	for k := range e.Effects {
		o := &e.Effects[k]
		if t.answered[k] || o.Op != op {
			continue
		}
		if o.Args == nil {
			return k
		}
		want := o.Args
		if main := t.main(op); main != "" && want[0] != '{' {
			want = json.RawMessage(wire.Begin().Raw(main, want).End())
		}
		if same, err := inputs.Equal(args, want, e.As == ""); err == nil && same {
			return k
		}
	}
	return -1
}

// arguments is what a request asks with, as results are shown: a record, since
// an argument that stands alone is the operation's main one.
func (t *trial) arguments(q *core.Request) []byte {
	arg := value.Force(q.Arg)
	if _, ok := arg.(*value.Record); !ok {
		if main := t.main(q.Op); main != "" {
			arg = &value.Record{Fields: []value.Field{{Key: main, Value: arg}}}
		}
	}
	enc, f := text.Encode(arg, exampleBytes, exampleBytes)
	if f != nil {
		return []byte("null")
	}
	return enc.JSON
}

// main is the argument of an operation that may stand alone, or "".
func (t *trial) main(op string) string {
	if _, o, ok := t.server.broker.Policy().Kinds().Operation(op); ok {
		for _, p := range o.Takes() {
			if p.Main {
				return p.Name
			}
		}
	}
	return ""
}

// judge holds what a run gave against what was expected.
func (t *trial) judge(i int, p *product) *fault.Fault {
	e := &t.candidate.Examples[i]
	f := t.placed(p.Fault)
	switch {
	case f != nil && (f.Kind == fault.Overloaded || f.Kind == fault.Cancelled): // not what the candidate does
		return f
	case f != nil && p.Fault == t.missing:
		t.missing = f
		return t.refused(i, f, f.Message, "")
	case f != nil && f.Kind == fault.OutOfFuel && !fails(e.Error, f):
		return t.exhausted(i)
	case f != nil && fails(e.Error, f):
	case f != nil && e.Error != "":
		return t.refused(i, f, fmt.Sprintf("it fails with %s (%s), and %s is expected", f.Kind, f.Message, e.Error), e.Error)
	case f != nil:
		return t.refused(i, f, fmt.Sprintf("it fails with %s (%s), and %s is expected", f.Kind, f.Message, wire.Excerpt(e.Expect, 200)), string(e.Expect))
	case p.Total > int64(len(p.JSON)):
		return t.refused(i, nil, fmt.Sprintf("its result has %d bytes, at most %d are compared", p.Total, exampleBytes), "")
	default:
		got := shownResult(p)
		if e.Error != "" {
			return t.differs(i, got, e.Error)
		}
		want := e.Expect
		if e.As != "" {
			want = check.ReadResult(want, t.candidate.Report())
		}
		if same, err := inputs.Equal(got, want, e.As == ""); err != nil || !same {
			return t.differs(i, got, string(e.Expect))
		}
	}
	for k, given := range t.answered {
		if !given {
			o := &e.Effects[k]
			args := ""
			if o.Args != nil {
				args = " with " + wire.Excerpt(o.Args, 200)
			}
			return t.refused(i, nil, fmt.Sprintf("its outcome %d, of %s%s, was never asked for", k+1, o.Op, args), "")
		}
	}
	return nil
}

// fails reports whether a fault is the failure that an example expects: a kind, and behind
// a colon words that its message has; or words that the code raises, which may begin as a kind.
func fails(expected string, f *fault.Fault) bool {
	kind, words, _ := strings.Cut(expected, ": ")
	return kind == string(f.Kind) && strings.Contains(f.Message, words) ||
		words != "" && f.Kind == fault.Raised && strings.Contains(f.Message, expected)
}

// placed says where a fault is as the caller knows it: the candidate's code is
// what the call brought.
func (t *trial) placed(f *fault.Fault) *fault.Fault {
	if f == nil {
		return nil
	}
	if f.In != "tool:"+t.candidate.Name {
		return placed(f, nil, t.sees)
	}
	g := *f
	g.In = "code"
	return &g
}

// differs is the fault of a result that isn't what was expected.
func (t *trial) differs(i int, got []byte, want string) *fault.Fault {
	f := t.refused(i, nil, fmt.Sprintf("it gives %s, and %s is expected", wire.Excerpt(got, 200), wire.Excerpt([]byte(want), 200)), want)
	f.Got = wire.Excerpt(got, 1000)
	return f
}

// refused is the fault of a candidate whose example failed at a place, or
// (cause nil) gave something else.
func (t *trial) refused(i int, cause *fault.Fault, what, want string) *fault.Fault {
	e := &t.candidate.Examples[i]
	f := &fault.Fault{
		Kind:     fault.Refused,
		Message:  fmt.Sprintf("example %d of %d, on the input %s: %s", i+1, len(t.candidate.Examples), wire.Excerpt(e.Input, 200), what),
		Expected: wire.Excerpt([]byte(want), 1000),
		Hint:     "Correct the code, or the example, and evolve again; nothing was changed.",
	}
	if t.imported {
		f.Hint = afterImport
	}
	if cause != nil {
		f.At, f.In, f.Line, f.Col, f.Fragment, f.EvalDepth = cause.At, cause.In, cause.Line, cause.Col, "", cause.EvalDepth
		if cause == t.missing {
			f.Hint = cause.Hint
		} else if cause.Hint != "" {
			f.Hint = cause.Hint + " " + f.Hint
		}
		if cause.Kind == fault.Timeout {
			f.Kind = cause.Kind
		}
		f.Got = string(cause.Kind)
	}
	if !slices.ContainsFunc(t.given, func(o registry.Example) bool { return string(o.Input) == string(e.Input) }) {
		f.Message = strings.Replace(f.Message, ", on", ", which an earlier version kept, on", 1)
		f.Hint += ` Where the new behaviour is meant, give this example anew with the same input, or drop all of them with "examples":[].`
	}
	return f
}

// exhausted is the fault of examples that take too much.
func (t *trial) exhausted(i int) *fault.Fault {
	f := t.refused(i, nil, fmt.Sprintf("the examples of a tool may take %d steps in all, and these take more", min(wire.ExampleSteps, t.server.limits.MaxSteps)), "")
	f.Hint = "Give smaller inputs, or fewer examples."
	return f
}

// shownResult is a result as an example says it: that of a continuation is
// {"continue":{"input":T}}, a function is "<function>".
func shownResult(p *product) []byte {
	if p.Type != value.TypeContinuation {
		return p.JSON
	}
	if input := wire.MemberOf(p.JSON, "next_input"); input != nil {
		return wire.Begin().Raw("continue", wire.Begin().Raw("input", input).End()).End()
	}
	return p.JSON
}

// TryExample runs one of a version's examples, for somebody who looks at it: without
// authority, with no plugin and no record. The fault says in what it differs.
func (s *Engine) TryExample(ctx context.Context, t *registry.Tool, i int) (steps uint64, f *fault.Fault) {
	trial := s.newTrial(t, s.tools.Snapshot(), t.Examples)
	trial.steps = min(10*wire.ExampleSteps, s.limits.MaxSteps)
	return trial.example(ctx, i)
}

var (
	exampleMembers = []string{"input", "expect", "error", "effects", "as"}
	effectMembers  = []string{"op", "args", "value", "error", "message"}
)

// maxExampleEffects is how many effects an example may have: more take more bytes than examples may.
const maxExampleEffects = registry.MaxExampleBytes / 16

// exampleShape is how examples are written.
const exampleShape = `"examples":[{"input":3,"expect":9}], or {"input":"x","error":"type_error"} where it is to fail; for a tool that acts also "effects":[{"op":"fs.read","args":{"path":"a.txt"},"value":"text"}], with "error":"not_found" in place of "value" where it fails`

// effectFaults is how an effect can fail: the kinds, and the reasons of an effect_failed.
var effectFaults = append([]string{string(fault.EffectFailed), string(fault.Denied), string(fault.Conflict), string(fault.OutcomeUnknown)}, check.Reasons...)

// examples reads the examples of evolve; nil: there is no such argument. An empty
// list, or null, drops those kept from earlier versions.
func readExamples(a *wire.Arguments) (examples []registry.Example, f *fault.Fault) {
	raw, ok := a.Any("examples")
	if !ok {
		return nil, nil
	}
	if raw = wire.Unwrap(raw); len(raw) == 0 || string(raw) == "null" {
		return []registry.Example{}, nil
	}
	if raw[0] == '{' {
		raw = append(append([]byte{'['}, raw...), ']') // one alone
	}
	items, ok := wire.Items(raw, registry.MaxExamples+1)
	if !ok || len(items) > registry.MaxExamples {
		return nil, a.Wrong("examples", fmt.Sprintf("a list of at most %d examples", registry.MaxExamples), raw)
	}
	examples = make([]registry.Example, len(items))
	for i, item := range items {
		if examples[i], f = readExample(item, fault.Pointer("").Key("examples").Index(i)); f != nil {
			return nil, f
		}
	}
	return examples, nil
}

// misshapen is the fault of an example that isn't one.
func misshapen(at fault.Pointer, format string, args ...any) *fault.Fault {
	return &fault.Fault{
		Kind: fault.InvalidRequest, At: at, In: "arguments",
		Message: fmt.Sprintf(format, args...),
		Hint:    "Write " + exampleShape + ".",
	}
}

// members takes an object apart and refuses members that aren't known.
func membersOf(raw json.RawMessage, what string, at fault.Pointer, known []string) (*wire.Arguments, *fault.Fault) {
	raw = wire.Unwrap(raw)
	members, ok := wire.SplitMost(raw, len(known)+1) // among which one is wrong if that isn't all
	if !ok {
		return nil, misshapen(at, "%s is an object with %s, not %s", what, strings.Join(known, ", "), wire.Short(raw))
	}
	for i, m := range members {
		if !slices.Contains(known, m.Name) {
			f := misshapen(at.Key(m.Name), "%s has no member %q; it has %s", what, wire.Short([]byte(m.Name)), strings.Join(known, ", "))
			f.Near = wire.Nearest(m.Name, known)
			return nil, f
		}
		if slices.ContainsFunc(members[:i], func(n wire.Member) bool { return n.Name == m.Name }) {
			return nil, misshapen(at.Key(m.Name), "%s has %q twice", what, m.Name)
		}
	}
	return &wire.Arguments{Tool: "evolve", Members: members}, nil
}

func readExample(raw json.RawMessage, at fault.Pointer) (e registry.Example, f *fault.Fault) {
	a, f := membersOf(raw, "an example", at, exampleMembers)
	if f != nil {
		return e, f
	}
	if e.Input, f = readData(a, "input", at); f != nil {
		return e, f
	}
	e.As = "data"
	if e.Input == nil {
		e.Input = json.RawMessage("null") // as in a call without one
	}
	expect, hasExpect := a.Any("expect")
	expected, hasError, f := a.Text("error")
	switch {
	case f != nil:
		return e, misshapen(at.Key("error"), "the error that an example expects is a text: a kind such as type_error, or the words that the code raises")
	case hasError && hasExpect && string(expect) != "null":
		return e, misshapen(at, `an example expects a result ("expect") or a failure ("error"), not both`)
	case hasError:
		if e.Error, f = failure(expected, at.Key("error")); f != nil {
			return e, f
		}
	case !hasExpect:
		return e, misshapen(at, `the example doesn't say what is expected: "expect" or "error" is missing`)
	default:
		if e.Expect, f = readData(a, "expect", at); f != nil {
			return e, f
		}
	}
	raw, ok := a.Raw("effects")
	if !ok {
		return e, nil
	}
	raw = wire.Unwrap(raw)
	items, ok := wire.Items(raw, maxExampleEffects+1)
	switch {
	case !ok:
		return e, misshapen(at.Key("effects"), "the effects of an example are a list, not %s", wire.Short(raw))
	case len(items) > maxExampleEffects:
		return e, misshapen(at.Key("effects"), "the effects of an example are at most %d", maxExampleEffects)
	}
	for i, item := range items {
		o, f := readOutcome(item, at.Key("effects").Index(i))
		if f != nil {
			return e, f
		}
		e.Effects = append(e.Effects, o)
	}
	return e, nil
}

// failure is the failure that an example expects: a kind, or the kind, a colon and words of the
// message. Words alone are what the code raises.
func failure(expected string, at fault.Pointer) (string, *fault.Fault) {
	var known []string
	for _, c := range fault.Codes {
		switch c.Kind {
		case fault.Overloaded, fault.Cancelled, fault.Timeout, fault.Internal, fault.Refused, fault.InvalidRequest:
			continue // not what code does
		}
		known = append(known, string(c.Kind))
	}
	expected = strings.TrimSpace(expected)
	kind, _, _ := strings.Cut(expected, ": ")
	switch {
	case slices.Contains(known, kind):
		return expected, nil
	case strings.Contains(expected, " "):
		return string(fault.Raised) + ": " + expected, nil
	}
	f := misshapen(at, "no example can expect the error %q; it can be %s; or the words that the code raises, raised: WORDS", wire.Short([]byte(kind)), strings.Join(known, ", "))
	f.Near = wire.Nearest(kind, known)
	return "", f
}

// data reads a member that is data; nil where it isn't there.
func readData(a *wire.Arguments, name string, at fault.Pointer) (json.RawMessage, *fault.Fault) {
	raw, ok := a.Any(name)
	if !ok {
		return nil, nil
	}
	if _, err := core.ParseInput(raw, core.InputData); err != nil {
		f := misshapen(at.Key(name), "%s", wire.AsFault(err).Message)
		f.Hint = wire.AsFault(err).Hint
		return nil, f
	}
	return bytes.Clone(raw), nil
}

// readOutcome reads what an effect of an example gives.
func readOutcome(raw json.RawMessage, at fault.Pointer) (o registry.ExampleEffect, f *fault.Fault) {
	a, f := membersOf(raw, "an effect of an example", at, effectMembers)
	if f != nil {
		return o, f
	}
	op, ok, f := a.Text("op")
	if f != nil || !ok || op == "" {
		return o, misshapen(at, `"op" says which effect it is, such as "fs.read"`)
	}
	if o.Op = op; prim.Aliases[op] != "" {
		o.Op = prim.Aliases[op]
	}
	if _, ok := a.Raw("args"); ok {
		if o.Args, f = readData(a, "args", at); f != nil {
			return o, f
		}
	}
	kind, fails, f := a.Text("error")
	value, gives := a.Any("value")
	message, _, f2 := a.Text("message")
	switch {
	case f != nil || f2 != nil:
		return o, misshapen(at, `"error" and "message" of an effect are strings`)
	case fails && gives && string(value) != "null":
		return o, misshapen(at, `an effect gives a "value" or fails with an "error", not both`)
	case fails && !slices.Contains(effectFaults, kind):
		return o, misshapen(at.Key("error"), "an effect fails with %s, not %q", strings.Join(effectFaults, ", "), wire.Short([]byte(kind)))
	case fails && slices.Contains(check.Reasons, kind): // as a plugin's failure reads
		o.Error, o.Message = string(fault.EffectFailed), o.Op+": "+kind+": "+cmp.Or(message, "as the example says")
	case fails:
		o.Error, o.Message = kind, message
	case !gives:
		return o, misshapen(at, `what does %s give? "value" or "error" is missing`, op)
	default:
		o.Value, f = readData(a, "value", at)
	}
	return o, f
}

// unwritten is the fault of an effect for which the example has no outcome.
func unwritten(q *core.Request, args []byte) *fault.Fault {
	shown := wire.Excerpt(args, 200)
	sample := args
	if len(sample) > 200 {
		sample = nil
	}
	o := wire.Begin().Text("op", q.Op)
	if sample != nil {
		o = o.Raw("args", sample)
	}
	return &fault.Fault{
		Kind: fault.Refused, At: q.At, In: q.Where,
		Message: fmt.Sprintf("it asks for %s with %s, and the example has no outcome for that", q.Op, shown),
		Hint: fmt.Sprintf(`Effects of an example aren't carried out. Write what this one gives into the example: "effects":[%s], with "value":V, or with "error":"not_found" where it fails; "args" may be left out.`,
			o.Raw("value", []byte(`"…"`)).End()),
	}
}

// impossible is the fault of an outcome that the operation never gives, by the type
// that its plugin is held to: what an example shows has to be what a run can see.
func (t *trial) impossible(q *core.Request, v value.Value) *fault.Fault {
	_, o, ok := t.server.broker.Policy().Kinds().Operation(q.Op)
	if !ok || o.Gives() == nil {
		return nil
	}
	why := o.Gives().Misfit(v)
	if why == "" {
		return nil
	}
	return &fault.Fault{
		Kind: fault.Refused, At: q.At, In: q.Where,
		Message: fmt.Sprintf("it asks for %s, and the outcome in the example is none that this gives: %s", q.Op, why),
		Hint:    fmt.Sprintf(`%s gives %s: write such a "value" into the example, all of it.`, q.Op, o.Gives()),
	}
}

// A trialView is the tools as a tool's code sees them in an example: itself as
// it is to be, those it is bound to, and the others as they are.
type trialView struct {
	trial *trial
	tool  *registry.Tool
	near  registry.Near
}

var _ core.Tools = (*trialView)(nil)

// sees gives the current version.
func (v *trialView) sees(name string) (*registry.Tool, bool) {
	if name == v.trial.candidate.Name && v.tool == v.trial.candidate {
		return v.tool, true
	}
	return v.trial.sees.Get(name)
}

// Tool finds what code_of gives.
func (v *trialView) Tool(name string, literal bool) (core.Tool, bool) {
	t, ok := v.sees(name)
	if of, current := v.near.CodeOf(v.tool, name, literal); !current {
		if of == nil {
			return core.Tool{Unnamed: ok}, false
		}
		t, ok = of, true
	}
	if !ok || t.Unusable() != nil {
		return core.Tool{}, false
	}
	return t.Program().Tool(), true
}

// Callee decides a call as it is decided in a run.
func (v *trialView) Callee(name string, with [][]string, _ fault.Pointer) (core.Tool, *fault.Fault) {
	if f := v.trial.server.broker.Policy().PermitCall(v.trial.held(v.tool), name, v.tool.Name, with); f != nil {
		return core.Tool{}, f
	}
	t, ok := v.tool.Bound[name]
	if !ok {
		t, ok = v.sees(name)
	}
	if !ok {
		return core.Tool{}, &fault.Fault{Kind: fault.NoTool, Message: fmt.Sprintf("there is no tool %q to call", name)}
	}
	if f := t.Unusable(); f != nil {
		return core.Tool{}, f
	}
	tool := t.Program().Tool()
	tool.Name, tool.Tools = t.Name, &trialView{trial: v.trial, tool: t}
	return tool, nil
}

// afterImport is what is to be done about an example of a document that differs.
const afterImport = "Correct the document: the tool's code, or the example, or take the example out; nothing was imported."

// held is what a tool holds that calls others in an example. Of one in a document, for
// which it may be that nothing is granted, it is the calls that it declared: nothing
// else of it takes part.
func (t *trial) held(tool *registry.Tool) []*caps.Held {
	if !t.imported || tool.State == registry.StateReady {
		return tool.Held
	}
	var calls []*caps.Held
	for _, text := range tool.Declared {
		if c, err := caps.Parse(text, t.server.broker.Policy().Kinds()); err == nil && c.Kind == caps.CallKind {
			calls = append(calls, &caps.Held{Capability: c})
		}
	}
	return calls
}
