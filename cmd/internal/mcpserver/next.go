package mcpserver

import (
	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// A sample is tried before it is suggested, within these budgets. They are counted, so
// that the same tool gets the same suggestion.
const (
	maxTries     = 12
	maxTrySteps  = 4_000
	maxTryMemory = 4 << 20
	maxTryBytes  = 64 << 10 // of the code
)

// A suggestion is a call of a tool that shows it at work; call is nil where none is known.
type suggestion struct {
	call  []byte
	input []byte // of the call
}

// suggest finds a call of a tool: on the input of its first example, else on the first
// sample of its types with which it succeeds without any effect.
func (s *Server) suggest(t *registry.Tool, sees *registry.Snapshot) suggestion {
	if t.Unusable() != nil {
		return suggestion{}
	}
	params, _ := t.Report().Arguments()
	for i := range t.Examples {
		if e := &t.Examples[i]; e.As == "data" && e.Error == "" && len(e.Input) <= wire.MaxShown {
			if read, f := inputOf(t, e.Input); f == nil {
				return suggested(t, params, byName(params, e.Input, &read))
			}
		}
	}
	if len(t.Program().Canonical()) > maxTryBytes {
		return suggestion{}
	}
	view := &trialView{&trial{server: s, candidate: t, sees: sees}, t}
	pools := poolsFor(t.Program())
	for turn := range maxTries {
		input, ok := sampleInput(t, params, pools, turn)
		if !ok {
			break
		}
		if s.succeeds(t, view, input) {
			return suggested(t, params, input)
		}
	}
	return suggestion{}
}

// suggested is the call of a tool on an input. It is made by run, which every client can
// call before it has read the list of tools again.
func suggested(t *registry.Tool, params []check.Parameter, input []byte) suggestion {
	o := wire.Begin().Text("tool", t.Name)
	if len(params) > 0 {
		o = o.Raw("input", []byte(caps.Visible(input)))
	}
	return suggestion{call: wire.Begin().Text("name", "run").Raw("arguments", o.End()).End(), input: input}
}

// describing is the call that shows a tool.
func describing(t *registry.Tool) []byte {
	return wire.Begin().Text("name", "describe").Raw("arguments", wire.Begin().Text("name", t.Name).End()).End()
}

// byName is an input of several parameters by their names, as it was read.
func byName(params []check.Parameter, input []byte, t *task) []byte {
	if len(t.more) == 0 || t.as != core.InputData {
		return input
	}
	o := wire.Begin().Raw(params[0].Name, t.input)
	for i, v := range t.more {
		o = o.Raw(params[i+1].Name, v)
	}
	return o.End()
}

// inputOf reads an input as a run of the tool does.
func inputOf(tool *registry.Tool, input []byte) (t task, f *fault.Fault) {
	src, f := sourceOf(tool, nil)
	if f != nil {
		return t, f
	}
	r, f := check.Read(input, src.report, src.declared)
	if f == nil {
		t.take(r)
	}
	return t, f
}

// succeeds reports whether a tool succeeds on an input, within a few steps and without asking
// for an effect.
func (s *Server) succeeds(t *registry.Tool, view core.Tools, input []byte) bool {
	read, f := inputOf(t, input)
	if f != nil {
		return false
	}
	in, f := read.parse()
	if f != nil {
		return false
	}
	defer s.cpu.Enter(nil, s, false).End()
	budget := core.Budgets{Steps: min(maxTrySteps, s.limits.MaxSteps), Memory: min(maxTryMemory, s.limits.MaxMemory), Depth: s.limits.MaxDepth}
	m := t.Program().Start(in, budget, view)
	defer m.Release()
	return m.Run(0) == core.Done && m.Fault() == nil
}
