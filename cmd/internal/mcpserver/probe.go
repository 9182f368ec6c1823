package mcpserver

import (
	"fmt"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// What looking for an input may take: a few milliseconds at most, beside an evolve
// that works out types. All candidates share the steps, and one has no more than
// probeEach of them. They are counted, so that the same tool gets the same suggestion.
const (
	probeSteps   = 20_000
	probeEach    = 5_000
	probeMemory  = 4 << 20
	probeBytes   = 64 << 10 // of the code
	mostProbes   = 24
	mostRequests = 8 // of one candidate
)

// A prober looks for arguments on which a tool succeeds.
type prober struct {
	server *Server
	tool   *registry.Tool
	trial  *trial // says which tools the code sees
	params []check.Parameter
	way    way
	left   uint64
	runs   int
}

// An attempt is what became of a candidate.
type attempt struct {
	fault *fault.Fault
	// asked is set where something was asked for, as the tool may. What comes of
	// it nobody knows before it is done.
	asked bool
	// want is the value that a leaf should have had, -1: none.
	leaf int
	want []byte
	// steps is what it took.
	steps uint64
}

// telling reports whether a failure says that an input led further into the code than
// one that took fewer steps and succeeded: a raise is meant, and what a budget ends
// says nothing.
func (a *attempt) telling() bool {
	switch a.fault.Kind {
	case fault.TypeError, fault.MissingKey, fault.DivisionByZero, fault.Unbound, fault.OutOfRange:
		return true
	}
	return false
}

// search tries candidates, the simplest first.
func (p *prober) search() suggestion {
	c := newCandidates(p.tool)
	plain, ok := p.arguments(c)
	if !ok {
		return suggestion{call: describing(p.tool)}
	}
	if len(p.tool.Program().Canonical()) > probeBytes {
		return suggestion{call: p.call(plain)}
	}
	first := ""
	if v, ok := p.fromExample(); ok {
		if a := p.run([][]byte{v}, nil); a.fault == nil {
			return suggestion{call: p.call([][]byte{v})}
		}
	}
	if len(p.tool.Reach()) > 0 {
		c.separate()
	}
	furthest := uint64(0) // of those that failed
	for turn := range c.turns() {
		c.vary(turn)
		for range mostRequests {
			args, _ := p.arguments(c)
			if p.runs++; p.runs > mostProbes || p.left == 0 {
				return p.shape(c, first)
			}
			a := p.run(args, c.written)
			switch {
			case a.fault == nil && a.steps >= furthest:
				return suggestion{p.call(args), c.named()}
			case a.fault == nil:
				// It dodges the fault of another, and shows nothing.
				a.fault = &fault.Fault{Kind: fault.RuntimeError, Message: "it comes to nothing"}
			case a.telling():
				furthest = max(furthest, a.steps)
			}
			if first == "" {
				first = fmt.Sprintf("on %s it fails with %s: %s", excerpt(p.shown(args)), a.fault.Kind, excerptOf([]byte(a.fault.Message), 120))
			}
			if a.leaf < 0 || !c.bind(a.leaf, a.want) {
				break
			}
		}
	}
	return p.shape(c, first)
}

// shape is a call to be filled in.
func (p *prober) shape(c *candidates, why string) suggestion {
	c.placeholders, c.inside = true, true
	args, _ := p.arguments(c)
	note := "next shows the shape of a call, to be filled in: no input was found on which it is known to succeed"
	if why != "" && len(p.tool.Report().Diagnostics) == 0 { // of what fails always there is a note
		note += "; " + why
	}
	return suggestion{p.call(args), note}
}

// shown is the input that arguments are together.
func (p *prober) shown(args [][]byte) []byte {
	switch len(args) {
	case 0:
		return []byte("null")
	case 1:
		return args[0]
	}
	o := begin()
	for i, v := range args {
		o = o.raw(p.params[i].Name, v)
	}
	return o.end()
}

// arguments is a value for each parameter; false: one can't be told.
func (p *prober) arguments(c *candidates) ([][]byte, bool) {
	c.begin()
	args := make([][]byte, len(p.params))
	for i, param := range p.params {
		s := &sampler{term: true, leaf: c.leaf}
		v, ok := []byte(nil), false
		s.left = mostSampled
		switch {
		case c.inside && len(param.Type.Fields) > 0:
			v, ok = s.record(param.Type)
		case c.inside && pairWanted(param.Type):
			v, ok = s.kind(prim.KindPair, param.Type)
		}
		if !ok {
			v, ok = argument(p.tool, param, s)
		}
		if !ok {
			return nil, false
		}
		args[i] = v
	}
	return args, true
}

// pairWanted reports whether a type is of all kinds, and its pairs are those that the
// code looks into.
func pairWanted(t *check.Type) bool {
	return t.Kinds == prim.KindAny && t.First != nil && t.Second != nil && !(t.First.Any && t.Second.Any)
}

// fromExample is the input of the tool's first example that succeeds.
func (p *prober) fromExample() ([]byte, bool) {
	if p.way != asRun || len(p.params) != 1 {
		return nil, false
	}
	for i := range p.tool.Examples {
		if e := &p.tool.Examples[i]; e.Error == "" && len(e.Input) > 0 && len(e.Input) <= mostShown {
			return e.Input, true
		}
	}
	return nil, false
}

// run evaluates the tool on arguments. What it asks for isn't done: it is held
// against what the tool may ask for, and answered with a value of its type.
func (p *prober) run(args, leaves [][]byte) attempt {
	program, in, f := p.given(args)
	if f != nil {
		return attempt{fault: f, leaf: -1}
	}
	budget := core.Budgets{Steps: min(p.left, probeEach, p.server.limits.MaxSteps), Memory: min(probeMemory, p.server.limits.MaxMemory), Depth: p.server.limits.MaxDepth}
	s := p.server
	defer s.cpu.enter(nil, s, false).end()
	m := program.Start(in, budget, &trialView{p.trial, p.tool})
	defer m.Release()
	a := attempt{leaf: -1}
	for requests := 0; ; {
		switch m.Run(0) {
		case core.Suspended:
			round := m.Requests()
			answers := make([]core.Answer, len(round))
			for i := range round {
				if requests++; requests > mostRequests {
					p.left -= min(p.left, m.Steps())
					return a
				}
				q := &round[i]
				if f, leaf, want := p.permits(q, leaves); f != nil || leaf >= 0 {
					p.left -= min(p.left, m.Steps())
					if f == nil {
						f = &fault.Fault{Kind: fault.EffectFailed, Message: q.Op}
					}
					return attempt{fault: f, leaf: leaf, want: want}
				}
				a.asked = true
				answers[i].Value = p.answer(q)
			}
			m.Resume(answers)
			continue
		case core.Failed:
			// After an answer that was made up a failure tells nothing.
			if a.fault = m.Fault(); a.asked {
				a.fault = nil
			}
		}
		if a.fault != nil && a.fault.Kind == fault.OutOfFuel {
			a.fault = &fault.Fault{Kind: fault.OutOfFuel, Message: fmt.Sprintf("it takes more than the %d steps that are spent on a try", budget.Steps)}
		}
		a.steps = m.Steps()
		p.left -= min(p.left, a.steps)
		return a
	}
}

// given is the program that a call runs, and its input, as the call has it.
func (p *prober) given(args [][]byte) (*core.Program, core.Input, *fault.Fault) {
	src, f := sourceOf(p.tool, nil)
	if f != nil {
		return nil, core.Input{}, f
	}
	r, f := check.Read(p.shown(args), src.report, src.declared)
	if f != nil {
		return nil, core.Input{}, f
	}
	var t task
	t.take(r)
	in, f := t.parse()
	return p.tool.Program(), in, f
}

// answer is a value of what an operation answers.
func (p *prober) answer(q *core.Request) value.Value {
	data := []byte(`"abc"`)
	if _, o, ok := p.server.broker.Policy().Kinds().Operation(q.Op); ok && o.Type != nil {
		if v, ok := (&sampler{left: mostSampled}).of(o.Type); ok {
			data = v
		}
	}
	if v, f := dataValue(data, false); f == nil {
		return v
	}
	return value.Str("abc")
}
