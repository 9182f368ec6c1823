package mcpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// What looking for an input may take: a few milliseconds at most, beside an evolve
// that works out types. All tries share the steps, and one has no more than probeEach
// of them. They are counted, so that the same tool gets the same suggestion.
const (
	probeSteps  = 20_000
	probeEach   = 5_000
	probeMemory = 4 << 20
	probeBytes  = 64 << 10 // of the code
	maxProbes   = 24
	maxRequests = 8 // of one try
)

// A suggestion is a call of a tool that shows it at work; call is nil where no such
// call is known.
type suggestion struct {
	call  []byte
	input []byte // of the call
	note  string // about the call, or why there is none
}

// suggest finds a call of a tool: on the input of its first example, or else on a
// sample of its types on which it does something. Samples are tried with few steps, and
// none of their effects is carried out.
func (s *Server) suggest(t *registry.Tool, sees *registry.Snapshot) suggestion {
	if t.Unusable() != nil {
		return suggestion{}
	}
	return s.prober(t, sees).search()
}

// describing is the call that shows a tool.
func describing(t *registry.Tool) []byte {
	return begin().text("name", "describe").raw("arguments", begin().text("name", t.Name).end()).end()
}

// A prober looks for an input on which a tool does something.
type prober struct {
	server *Server
	tool   *registry.Tool
	trial  *trial // knows which tools the code sees
	params []check.Parameter
	left   uint64 // steps
	runs   int
}

func (s *Server) prober(t *registry.Tool, sees *registry.Snapshot) *prober {
	params, _ := t.Report().Arguments()
	return &prober{server: s, tool: t, trial: &trial{server: s, candidate: t, sees: sees}, params: params, left: probeSteps}
}

// An attempt is the outcome of a try.
type attempt struct {
	fault *fault.Fault
	steps uint64
	// idle is set for a result that shows nothing: it is empty, or a part of the input.
	idle bool
}

// search tries samples. An idle one is suggested if no other does more, unless a
// failure got further into the code: it would only dodge that.
func (p *prober) search() suggestion {
	for i := range p.tool.Examples {
		if e := &p.tool.Examples[i]; e.As == "data" && e.Error == "" && len(e.Input) <= mostShown {
			if t, f := p.read(e.Input); f == nil {
				return p.suggestion(p.byName(e.Input, t), nil)
			}
		}
	}
	if len(p.tool.Program().Canonical()) > probeBytes {
		return suggestion{note: "no next call is suggested: the code is too large to look for an input"}
	}
	pools := poolsFor(p.tool.Program())
	names := p.names()
	pools.add(names)
	var idle []byte
	var furthest, idleSteps uint64
	why := ""
	tried := map[string]bool{}
	for turn := range maxProbes {
		input, ok := sampleInput(p.tool, p.params, pools, turn)
		if !ok || p.left == 0 {
			break
		}
		if tried[string(input)] {
			continue
		}
		tried[string(input)] = true
		p.runs++
		a := p.run(input)
		switch {
		case a.fault == nil && !a.idle:
			return p.suggestion(input, names)
		case a.fault == nil && idle == nil:
			idle, idleSteps = input, a.steps
		case a.fault != nil:
			switch a.fault.Kind {
			case fault.TypeError, fault.MissingKey, fault.DivisionByZero, fault.OutOfRange:
				furthest = max(furthest, a.steps)
			}
			if why == "" {
				why = fmt.Sprintf("on %s it fails with %s: %s", excerpt(input), a.fault.Kind, excerptOf([]byte(a.fault.Message), 120))
			}
		}
	}
	switch {
	case idle != nil && idleSteps >= furthest:
		return p.suggestion(idle, names)
	case len(p.tool.Report().Diagnostics) > 0: // what always fails has a note
		return suggestion{}
	case why == "":
		return suggestion{note: "no next call is suggested: its input can't be made up"}
	}
	return suggestion{note: "no next call is suggested: no input was found on which it succeeds; " + why}
}

// suggestion is the call of the tool on an input. It is made by run, which every client
// can call before it has read the list of tools again. A name in it that was chosen to
// lie within the tool's capabilities is noted.
func (p *prober) suggestion(input []byte, names [][]byte) suggestion {
	o := begin().text("tool", p.tool.Name)
	if len(p.params) > 0 {
		o = o.raw("input", []byte(caps.Visible(input)))
	}
	s := suggestion{call: begin().text("name", "run").raw("arguments", o.end()).end(), input: input}
	for _, name := range names {
		if bytes.Contains(input, name) {
			s.note = caps.Visible(name) + " in next is a name within the tool's capabilities: give one that is meant"
			break
		}
	}
	return s
}

// byName is an input of several parameters by their names, as it was read.
func (p *prober) byName(input []byte, t task) []byte {
	if len(t.more) == 0 || t.as != core.InputData {
		return input
	}
	o := begin().raw(p.params[0].Name, t.input)
	for i, v := range t.more {
		o = o.raw(p.params[i+1].Name, v)
	}
	return o.end()
}

// read reads an input as a run does.
func (p *prober) read(input []byte) (task, *fault.Fault) {
	src, f := sourceOf(p.tool, nil)
	if f != nil {
		return task{}, f
	}
	r, f := check.Read(input, src.report, src.declared)
	if f != nil {
		return task{}, f
	}
	var t task
	t.take(r)
	return t, nil
}

// run evaluates the tool on an input. Its requests are held against what it may ask
// for, and answered with values of their types.
func (p *prober) run(input []byte) (a attempt) {
	t, f := p.read(input)
	if f != nil {
		return attempt{fault: f}
	}
	in, f := t.parse()
	if f != nil {
		return attempt{fault: f}
	}
	s := p.server
	budget := core.Budgets{Steps: min(p.left, probeEach, s.limits.MaxSteps), Memory: min(probeMemory, s.limits.MaxMemory), Depth: s.limits.MaxDepth}
	defer s.cpu.enter(nil, s, false).end()
	m := p.tool.Program().Start(in, budget, &trialView{p.trial, p.tool})
	defer m.Release()
	defer func() {
		a.steps = m.Steps()
		p.left -= min(p.left, a.steps)
	}()
	requests := 0
	for m.Run(0) == core.Suspended {
		round := m.Requests()
		answers := make([]core.Answer, len(round))
		for i := range round {
			if requests++; requests > maxRequests {
				return a
			}
			filler, f := p.permits(&round[i])
			if f != nil {
				return attempt{fault: f}
			}
			a.idle = a.idle || filler
			answers[i].Value = p.answer(&round[i])
		}
		m.Resume(answers)
	}
	switch f := m.Fault(); {
	case requests > 0:
		// What comes of an answer that was made up tells nothing.
	case f != nil && f.Kind == fault.OutOfFuel:
		a.fault = &fault.Fault{Kind: f.Kind, Message: fmt.Sprintf("it takes more than the %d steps of a try", budget.Steps)}
	case f != nil:
		a.fault = f
	default:
		a.idle = isIdle(m.Value(), append(t.more, t.input))
	}
	return a
}

// isIdle reports whether a result shows nothing of what a tool does: it is null, zero,
// empty, a function, or an input itself.
func isIdle(v value.Value, inputs []json.RawMessage) bool {
	enc, f := text.Encode(v, mostShown, mostShown)
	if f != nil {
		return false
	}
	if string(enc.JSON) == `"<function>"` || strings.Trim(strings.ReplaceAll(string(enc.JSON), "null", ""), `[]{},:"0. `) == "" {
		return true
	}
	several := len(inputs) > 1
	if !several {
		fields, _ := split(inputs[0])
		for _, field := range fields {
			inputs = append(inputs, field.value)
		}
	}
	return slices.ContainsFunc(inputs, func(in json.RawMessage) bool {
		if several && !bytes.ContainsAny(in[:1], `"[{`) {
			return false // of several numbers one may be the result
		}
		same, err := equalData(enc.JSON, in, false)
		return err == nil && same
	})
}

// answer is a value of what an operation answers.
func (p *prober) answer(q *core.Request) value.Value {
	if _, o, ok := p.server.broker.Policy().Kinds().Operation(q.Op); ok && o.Type != nil {
		if data, ok := newSampler(commonPools(), 0).of(o.Type); ok {
			if v, f := dataValue(data, false); f == nil {
				return v
			}
		}
	}
	return value.Str("abc")
}
