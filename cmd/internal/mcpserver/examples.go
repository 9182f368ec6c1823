package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
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
	server    *Server
	candidate *registry.Tool
	sees      *registry.Snapshot
	given     []registry.Example // in this call; the others are kept from before
	steps     uint64             // left
	until     time.Time
	// imported is set where the candidate is one of a document: where nothing may be
	// granted, and nobody evolves.
	imported bool

	// Of the example under way:
	answered []bool // which of its outcomes were given
	missing  *fault.Fault
}

// try runs a candidate's examples, and refuses it at the first that differs.
// steps is what that one took.
func (s *Server) try(ctx context.Context, candidate *registry.Tool, sees *registry.Snapshot, given []registry.Example) (steps uint64, f *fault.Fault) {
	return s.newTrial(candidate, sees, given).all(ctx)
}

func (s *Server) newTrial(candidate *registry.Tool, sees *registry.Snapshot, given []registry.Example) *trial {
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
	src, f := sourceOf(t.candidate, nil)
	if f != nil {
		return core.Input{}, f
	}
	src.example = true
	r, f := check.Read(e.Input, src.report, src.declared)
	if f != nil {
		return core.Input{}, src.corrected(f, e.Input)
	}
	if f := src.check(r, true); f != nil {
		return core.Input{}, f
	}
	var read task
	read.take(r)
	return read.parse()
}

// run evaluates the candidate on an example's input.
func (t *trial) run(ctx context.Context, e *registry.Example, in core.Input, b core.Budgets) product {
	s := t.server
	m := t.candidate.Program().Start(in, b, &trialView{t, t.candidate})
	j := job{keep: exampleBytes, until: t.until}
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
			if f := s.stopped(ctx, t.until); f != nil {
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
		v, f := dataValue(o.Value, e.As == "")
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
		if same, err := equalData(args, want, e.As == ""); err == nil && same {
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
		for i := range o.Params {
			if o.Params[i].Main {
				return o.Params[i].Name
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
	case f != nil && p.Fault == t.missing:
		t.missing = f
		return t.refused(i, f, f.Message, "")
	case f != nil && f.Kind == fault.OutOfFuel && e.Error != string(fault.OutOfFuel):
		return t.exhausted(i)
	case f != nil && e.Error == string(f.Kind):
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
		if same, err := equalData(got, want, e.As == ""); err != nil || !same {
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
		if cause.Kind == fault.Cancelled || cause.Kind == fault.Timeout || cause.Kind == fault.Overloaded {
			f.Kind = cause.Kind
		}
		f.Got = string(cause.Kind)
	}
	if !t.isGiven(e) {
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

func (t *trial) isGiven(e *registry.Example) bool {
	for i := range t.given {
		if string(t.given[i].Input) == string(e.Input) {
			return true
		}
	}
	return false
}

// shownResult is a result as an example says it: that of a continuation is
// {"continue":{"input":T}}, a function is "<function>".
func shownResult(p *product) []byte {
	if p.Type != value.TypeContinuation {
		return p.JSON
	}
	members, _ := wire.Split(p.JSON)
	for _, m := range members {
		if m.Name == "next_input" {
			return wire.Begin().Raw("continue", wire.Begin().Raw("input", m.Value).End()).End()
		}
	}
	return p.JSON
}

// TryExample runs one of a version's examples, for somebody who looks at it: without
// authority, with no plugin and no record. The fault says in what it differs.
func (s *Server) TryExample(ctx context.Context, t *registry.Tool, i int) (steps uint64, f *fault.Fault) {
	trial := s.newTrial(t, s.tools.Snapshot(), t.Examples)
	trial.steps = min(10*wire.ExampleSteps, s.limits.MaxSteps)
	return trial.example(ctx, i)
}
