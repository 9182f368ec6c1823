package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/facts"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/inputs"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// readInput reads the input of a task by its types, or from the record of the run that
// is replayed. byName is set for the arguments of a call by name.
func (s *Engine) readInput(t *task, p *core.Program, raw json.RawMessage, tools *registry.Snapshot, byName bool) *fault.Fault {
	if s.record != nil && len(s.record.Read) > 0 {
		return t.fromRecord(s.record.Read)
	}
	raw = bytes.TrimSpace(raw)
	if s.record != nil && !byName {
		t.input = raw // it was read as it stands there
		return nil
	}
	if s.record == nil && t.tool == nil && len(raw) > 0 && string(raw) != "null" && !p.IsFunction() {
		src, _ := inputs.For(nil, p)
		if params, _ := src.Report.Arguments(); len(params) == 0 {
			t.note("the input was ignored: the code is not a function")
			t.reread = true
		}
	}
	if t.tool == nil && len(p.Params()) < 2 && inputs.IsPlain(raw) {
		t.input = raw
		return nil
	}
	src, f := inputs.For(t.tool, p)
	if f != nil {
		return f
	}
	src.ByName = byName
	if t.tool != nil {
		src.Suggested = func() []byte { return s.Suggest(t.tool, tools).Input }
	}
	read := check.Read
	if byName {
		read = check.ReadArguments
	}
	r, f := read(raw, src.Report, src.Declared)
	if f != nil {
		return src.Corrected(f, raw)
	}
	if f := src.Check(r, len(bytes.Trim(raw, "{} \t\r\n")) > 0); f != nil {
		return f
	}
	t.take(r)
	if params, _ := src.Report.Arguments(); len(params) > 1 {
		for _, p := range params {
			t.names = append(t.names, p.Name)
		}
	}
	if r.Unquoted != nil {
		if call := src.Call(r.Unquoted); call != nil {
			t.note("a string was kept as a string; if the JSON in it was meant, call %s", call)
		} else {
			t.note("a string was kept as a string; if the JSON in it was meant, send it without quotes")
		}
	}
	t.reread = byName || len(r.Values) != 1 || r.Term || len(t.notes) > 0 || !bytes.Equal(r.Values[0], raw)
	return nil
}

// advise reports why a run failed on an input that isn't of the tool's type.
func (s *Engine) advise(a *wire.Answer, t *task, tools *registry.Snapshot) {
	if a.Fault == nil || a.Fault.Kind != fault.TypeError && a.Fault.Kind != fault.MissingKey || t.as != core.InputData {
		return
	}
	params, _ := t.tool.Report().Arguments()
	input, is := t.input, "the input is "+wire.Short(t.input)
	if len(input) == 0 {
		input, is = json.RawMessage("null"), "no input was given"
	}
	if len(params) != 1 || check.Fits(input, params[0].Type) || a.Fault.Kind == fault.TypeError && isOuter(input[0], params[0].Type) {
		return
	}
	declared, _ := t.tool.Narrowed()
	src := inputs.Source{Tool: t.tool, Report: t.tool.Report(), Declared: declared, ByName: t.direct}
	// What is asked for isn't tried: a replay has to find the same.
	if len(t.tool.Reach()) == 0 || len(t.tool.Examples) > 0 {
		src.Suggested = func() []byte { return s.Suggest(t.tool, tools).Input }
	}
	note := fmt.Sprintf("note: %s, and its type must be %s", is, display.Truncate([]byte(params[0].Type.String()), facts.LongestType))
	if call := src.Call(src.Sample(params)); call != nil {
		note += ": call " + string(call)
	}
	a.More = append(a.More, note)
}

// isOuter reports whether what begins an input is a list or record, and the type has some:
// what then fails is rather the code, whose type follows from it.
func isOuter(first byte, t *check.Type) bool {
	return first == '[' && t.Kinds&prim.KindList != 0 || first == '{' && t.Kinds&prim.KindRecord != 0
}

// A sample is tried before it is suggested, within these budgets. They are counted, so
// that the same tool gets the same suggestion.
const (
	maxTries     = 12
	maxTrySteps  = 4_000
	maxTryMemory = 4 << 20
	maxTryBytes  = 64 << 10 // of the code
)

// A suggestion is a call of a tool that shows it at work; call is nil where none is known.
type Suggestion struct {
	Call  []byte
	Input []byte // of the call
}

// suggest finds a call of a tool: on the input of its first example, else on the first
// sample of its types with which it succeeds without any effect.
func (s *Engine) Suggest(t *registry.Tool, sees *registry.Snapshot) Suggestion {
	if t.Unusable() != nil {
		return Suggestion{}
	}
	params, _ := t.Report().Arguments()
	for i := range t.Examples {
		if e := &t.Examples[i]; e.As == "data" && e.Error == "" && len(e.Input) <= wire.MaxShown {
			if read, f := inputOf(t, e.Input); f == nil {
				return suggested(t, params, byName(params, e.Input, &read))
			}
		}
	}
	if len(t.Program().Canonical()) > maxTryBytes || slices.ContainsFunc(boundTools(t), func(b *registry.Tool) bool { return s.Unseen(b.MadeUnder) }) {
		return Suggestion{} // with which it succeeds tells of those, too
	}
	view := &trialView{trial: &trial{server: s, candidate: t, sees: sees}, tool: t}
	pools := inputs.PoolsFor(t.Program())
	for turn := range maxTries {
		input, ok := inputs.Sample(t, params, pools, turn)
		if !ok {
			break
		}
		if s.succeeds(t, view, input) {
			return suggested(t, params, input)
		}
	}
	return Suggestion{}
}

// suggested is the call of a tool on an input. It is made by run, which every client can
// call before it has read the list of tools again.
func suggested(t *registry.Tool, params []check.Parameter, input []byte) Suggestion {
	o := wire.Begin().Text("tool", t.Name)
	if len(params) > 0 {
		o = o.Raw("input", []byte(caps.Visible(input)))
	}
	return Suggestion{Call: wire.Begin().Text("name", "run").Raw("arguments", o.End()).End(), Input: input}
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
	src, f := inputs.For(tool, nil)
	if f != nil {
		return t, f
	}
	r, f := check.Read(input, src.Report, src.Declared)
	if f == nil {
		t.take(r)
	}
	return t, f
}

// succeeds reports whether a tool succeeds on an input, within a few steps and without asking
// for an effect.
func (s *Engine) succeeds(t *registry.Tool, view core.Tools, input []byte) bool {
	read, f := inputOf(t, input)
	if f != nil {
		return false
	}
	in, f := read.parse()
	if f != nil {
		return false
	}
	defer s.cpu.Enter(nil, s.as, false).End()
	budget := core.Budgets{Steps: min(maxTrySteps, s.limits.MaxSteps), Memory: min(maxTryMemory, s.limits.MaxMemory), Depth: s.limits.MaxDepth}
	m := t.Program().Start(in, budget, view)
	defer m.Release()
	return m.Run(0) == core.Done && m.Fault() == nil
}
