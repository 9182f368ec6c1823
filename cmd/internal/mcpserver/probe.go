package mcpserver

import (
	"fmt"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
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
	data   bool // inputs are data, whatever they look like
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
		p.data = true
		if a := p.run([][]byte{v}, nil); a.fault == nil {
			return suggestion{call: p.call([][]byte{v})}
		}
		p.data = false
	}
	if len(p.tool.Reach()) > 0 {
		c.separate()
	}
	for turn := range c.turns() {
		c.vary(turn)
		for range mostRequests {
			args, _ := p.arguments(c)
			if p.runs++; p.runs > mostProbes || p.left == 0 {
				return p.shape(c, first)
			}
			a := p.run(args, c.written)
			if a.fault == nil {
				return suggestion{p.call(args), c.named()}
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

// shown is arguments in a sentence.
func (p *prober) shown(args [][]byte) []byte {
	if len(args) == 1 {
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
		s := &sampler{term: p.way != asName, leaf: c.leaf}
		v, ok := []byte(nil), false
		if c.inside && len(param.Type.Fields) > 0 {
			s.left = mostSampled
			v, ok = s.record(param.Type)
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
	s.cpu.enter(false)
	defer s.cpu.leave()
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
		p.left -= min(p.left, m.Steps())
		return a
	}
}

// given is the program that a call runs, and its input, as the call has it.
func (p *prober) given(args [][]byte) (*core.Program, core.Input, *fault.Fault) {
	if p.way == asCode {
		program, err := core.CompileText("", p.applied(args))
		if err != nil {
			return nil, core.Input{}, asFault(err)
		}
		return program, core.Input{}, nil
	}
	inputs := make([]core.Input, len(args))
	for i, v := range args {
		as := core.InputData
		if p.way == asRun {
			as = p.readAs(v)
		}
		in, err := core.ParseInput(v, as)
		if err != nil {
			return nil, core.Input{}, asFault(err)
		}
		inputs[i] = in
	}
	return p.tool.Program(), core.Inputs(inputs...), nil
}

// answer is a value of what an operation answers.
func (p *prober) answer(q *core.Request) value.Value {
	data := []byte(`"abc"`)
	if _, o, ok := p.server.broker.Policy().Kinds().Operation(q.Op); ok && o.Type != nil {
		if v, ok := (&sampler{left: mostSampled}).of(o.Type); ok {
			data = v
		}
	}
	if v, f := dataValue(data); f == nil {
		return v
	}
	return value.Str("abc")
}
