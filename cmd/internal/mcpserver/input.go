package mcpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/facts"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// inlineTypeSteps bounds the inference of inline code for the reading of its input.
const inlineTypeSteps = 60_000

// reading is what was read of a call's input, for the record: a replay takes it from
// there and never reads again.
type reading struct {
	Inputs []string `json:"inputs"` // as JSON, however deep
	As     string   `json:"as"`
	Notes  []string `json:"notes,omitempty"`
}

// A source is what an input is for: a tool, or inline code.
type source struct {
	tool     *registry.Tool
	program  *core.Program
	report   *check.Report
	declared *check.Declared
	byName   bool // the tool is called by its name
	example  bool // the input is that of an example
	// suggested gives the input of the call that is suggested of the tool; nil: none.
	suggested func() []byte
}

// sourceOf finds the types by which an input is read.
func sourceOf(t *registry.Tool, p *core.Program) (*source, *fault.Fault) {
	if t == nil {
		return &source{program: p, report: check.Infer(p.Term(), nil, check.Env{}, check.Budget{Steps: inlineTypeSteps, Places: 1})}, nil
	}
	d, f := t.Narrowed()
	if f != nil {
		return nil, f
	}
	return &source{tool: t, program: t.Program(), report: t.Report(), declared: d}, nil
}

// isPlain reports whether an input is read the same way whatever its type is: a whole
// number, a truth value, null, or a string that can't be JSON or code.
func isPlain(raw []byte) bool {
	if len(raw) == 0 {
		return true
	}
	switch c := raw[0]; {
	case c == '"':
		return false
	case c == '{', c == '[':
		return false
	}
	return !bytes.ContainsAny(raw, ".eE") || raw[0] == 't' || raw[0] == 'f'
}

// readInput reads the input of a task by its types, or from the record of the run that
// is replayed. byName is set for the arguments of a call by name.
func (s *Server) readInput(t *task, p *core.Program, raw json.RawMessage, tools *registry.Snapshot, byName bool) *fault.Fault {
	if s.record != nil && len(s.record.Read) > 0 {
		return t.fromRecord(s.record.Read)
	}
	raw = bytes.TrimSpace(raw)
	if t.tool == nil && len(p.Params()) < 2 && isPlain(raw) {
		t.input = raw
		return nil
	}
	src, f := sourceOf(t.tool, p)
	if f != nil {
		return f
	}
	src.byName = byName
	if t.tool != nil {
		src.suggested = func() []byte { return s.suggest(t.tool, tools).input }
	}
	read := check.Read
	if byName {
		read = check.ReadArguments
	}
	r, f := read(raw, src.report, src.declared)
	if f != nil {
		return src.corrected(f, raw)
	}
	if f := src.check(r, len(bytes.Trim(raw, "{} \t\r\n")) > 0); f != nil {
		return f
	}
	t.take(r)
	if params, _ := src.report.Arguments(); len(params) > 1 {
		for _, p := range params {
			t.names = append(t.names, p.Name)
		}
	}
	if r.Unquoted != nil {
		if call := src.call(r.Unquoted); call != nil {
			t.note("a string was kept as a string; if the JSON in it was meant, call %s", call)
		} else {
			t.note("a string was kept as a string; if the JSON in it was meant, send it without quotes")
		}
	}
	t.reread = byName || len(r.Values) != 1 || r.Term || len(t.notes) > 0 || !bytes.Equal(r.Values[0], raw)
	return nil
}

// inputNames is how a way to read an input is called.
var inputNames = [...]string{core.InputAuto: "auto", core.InputTerm: "term", core.InputData: "data"}

// take gives a task the inputs that were read.
func (t *task) take(r *check.Reading) {
	t.input, t.more = r.Values[0], r.Values[1:]
	if t.as = core.InputData; r.Term {
		t.as = core.InputTerm
	}
	t.notes = append(t.notes, r.Notes...)
}

// recorded is what was read of the input, nil where it is the input as it was sent.
func (t *task) recorded() []byte {
	if !t.reread {
		return nil
	}
	r := reading{[]string{string(t.input)}, inputNames[t.as], t.notes}
	for _, in := range t.more {
		r.Inputs = append(r.Inputs, string(in))
	}
	return wire.Encode(r)
}

func (t *task) fromRecord(recorded []byte) *fault.Fault {
	var r reading
	if err := json.Unmarshal(recorded, &r); err != nil || len(r.Inputs) == 0 {
		return &fault.Fault{Kind: fault.Internal, Message: "the input on record can't be read", Cause: err}
	}
	t.input, t.more, t.notes = json.RawMessage(r.Inputs[0]), nil, append(t.notes, r.Notes...)
	for _, in := range r.Inputs[1:] {
		t.more = append(t.more, json.RawMessage(in))
	}
	t.as = core.InputAs(max(0, slices.Index(inputNames[:], r.As)))
	return nil
}

// check holds inputs against the schema that was declared of the tool.
func (s *source) check(r *check.Reading, given bool) *fault.Fault {
	if s.declared == nil {
		return nil
	}
	f := s.declared.Check(r.Values, given)
	if f == nil {
		return nil
	}
	params, _ := s.report.Arguments()
	if input := s.sample(params); input != nil {
		s.suggest(f, input)
	}
	return f
}

// maxRepeatedBytes is how long arguments are that a hint repeats.
const maxRepeatedBytes = 200

// call is the call that runs what the source is on an input; nil: it is too long to be
// repeated.
func (s *source) call(input json.RawMessage) []byte {
	if len(input) == 0 || len(input) > maxRepeatedBytes {
		return nil
	}
	o := wire.Begin()
	params, _ := s.report.Arguments()
	if s.byName {
		if len(params) == 0 {
			input = json.RawMessage("{}")
		}
		if len(params) == 1 && !(len(input) > 0 && input[0] == '{' && params[0].Type.Kinds == prim.KindRecord) {
			input = json.RawMessage(wire.Begin().Raw(check.Input, input).End())
		}
		return wire.Begin().Text("name", s.tool.Name).Raw("arguments", input).End()
	}
	if s.tool != nil {
		o = o.Text("tool", s.tool.Name)
	} else {
		code := s.program.Text()
		if len(code) > maxRepeatedBytes {
			return nil
		}
		o = o.Text("code", string(code))
	}
	return wire.Begin().Text("name", "run").Raw("arguments", o.Raw("input", input).End()).End()
}

// corrected is the fault of wrong arguments with a call that is right: with what was
// given where that fits, and for the rest with the input that is suggested of the tool.
func (s *source) corrected(f *fault.Fault, raw json.RawMessage) *fault.Fault {
	if f.Kind != fault.InvalidRequest {
		return f
	}
	g := *f
	params, _ := s.report.Arguments()
	if len(params) == 0 {
		g.Hint = "It takes no input: call " + string(s.call(json.RawMessage("{}"))) + "."
		return &g
	}
	if len(raw) > maxRepeatedBytes {
		return &g // what it says of the types will do
	}
	given, isObject := once(raw)
	if len(given) == 1 && given[0].Name == check.Input && len(params) > 1 {
		raw = given[0].Value
		given, isObject = once(raw)
	}
	if isObject {
		o := wire.Begin()
		for _, m := range given {
			o = o.Raw(m.Name, m.Value)
		}
		raw = json.RawMessage(o.End())
	}
	sample := s.sample(params)
	if len(params) == 1 && (params[0].Type.Kinds != prim.KindRecord || len(params[0].Type.Fields) == 0) {
		v := sample
		for _, m := range append(given, wire.Member{Name: "", Value: raw}) {
			if check.Fits(m.Value, params[0].Type) {
				v = m.Value
			}
		}
		if named := valueOf(given, check.Input); named != nil && !check.Fits(raw, params[0].Type) && check.Fits(named, params[0].Type) {
			v = named
		}
		if v != nil {
			s.suggest(&g, v)
		}
		return &g
	}
	// What is wanted: of a record that is the input, its fields.
	wanted := params
	if len(params) == 1 {
		wanted = nil
		for _, field := range params[0].Type.Fields {
			if !field.Optional {
				wanted = append(wanted, check.Parameter{Name: field.Key, Type: field.Type})
			}
		}
	}
	if !isObject && len(raw) > 0 {
		given = []wire.Member{{Name: "", Value: raw}}
	}
	// What was given by other names goes to what is missing, where it fits: to the name
	// nearest first.
	others := slices.DeleteFunc(slices.Clone(given), func(m wire.Member) bool {
		return slices.ContainsFunc(wanted, func(p check.Parameter) bool { return p.Name == m.Name })
	})
	taken := func(w check.Parameter, near bool) json.RawMessage {
		for i, m := range others {
			if (!near || prim.Closest(m.Name, []string{w.Name}) != "") && check.Fits(m.Value, w.Type) {
				others = slices.Delete(others, i, i+1)
				return m.Value
			}
		}
		return nil
	}
	samples, _ := wire.Split(sample)
	values := make([]json.RawMessage, len(wanted))
	for _, look := range []func(check.Parameter) json.RawMessage{
		func(w check.Parameter) json.RawMessage {
			if v := valueOf(given, w.Name); v != nil && check.Fits(v, w.Type) {
				return v
			}
			return nil
		},
		func(w check.Parameter) json.RawMessage { return taken(w, true) },
		func(w check.Parameter) json.RawMessage { return taken(w, false) },
		func(w check.Parameter) json.RawMessage { return valueOf(samples, w.Name) },
	} {
		for i, w := range wanted {
			if values[i] == nil {
				values[i] = look(w)
			}
		}
	}
	o := wire.Begin()
	for i, w := range wanted {
		if values[i] == nil {
			return &g
		}
		o = o.Raw(w.Name, values[i])
	}
	s.suggest(&g, json.RawMessage(o.End()))
	return &g
}

// once is the members of an object, each key once: with its last value.
func once(raw []byte) (members []wire.Member, isObject bool) {
	all, isObject := wire.Split(raw)
	for i, m := range all {
		if !slices.ContainsFunc(all[i+1:], func(n wire.Member) bool { return n.Name == m.Name }) {
			members = append(members, m)
		}
	}
	return members, isObject
}

// sample is an input that is right: what is suggested of the tool, or else one of the
// types; nil: there is none.
func (s *source) sample(params []check.Parameter) json.RawMessage {
	if s.suggested != nil {
		if input := s.suggested(); input != nil {
			return input
		}
	}
	v, _ := sampleInput(s.tool, params, commonPools(), 0)
	return v
}

// suggest puts an input that works into the hint of a fault.
func (s *source) suggest(f *fault.Fault, input json.RawMessage) {
	switch call := s.call(input); {
	case s.example:
		f.Hint = `Write "input":` + string(input) + "."
	case call != nil:
		f.Hint = "Call " + string(call) + "."
	}
}

// valueOf is the value of a member; nil: there is none.
func valueOf(members []wire.Member, name string) json.RawMessage {
	for _, m := range members {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// advise reports why a run failed on an input that isn't of the tool's type.
func (s *Server) advise(a *wire.Answer, t *task, tools *registry.Snapshot) {
	if a.Fault == nil || a.Fault.Kind != fault.TypeError && a.Fault.Kind != fault.MissingKey || t.as != core.InputData {
		return
	}
	params, _ := t.tool.Report().Arguments()
	input, is := t.input, "the input is "+wire.Short(t.input)
	if len(input) == 0 {
		input, is = json.RawMessage("null"), "no input was given"
	}
	if len(params) != 1 || check.Fits(input, params[0].Type) {
		return
	}
	src := source{tool: t.tool, report: t.tool.Report(), byName: t.direct}
	// What is asked for isn't tried: a replay has to find the same.
	if len(t.tool.Reach()) == 0 || len(t.tool.Examples) > 0 {
		src.suggested = func() []byte { return s.suggest(t.tool, tools).input }
	}
	note := fmt.Sprintf("note: %s, and its type must be %s", is, wire.Beginning([]byte(params[0].Type.String()), facts.LongestType))
	if call := src.call(src.sample(params)); call != nil {
		note += ": call " + string(call)
	}
	a.More = append(a.More, note)
}
