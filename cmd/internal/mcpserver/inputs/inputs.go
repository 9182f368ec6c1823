// Package inputs is the inputs of tools: by which types one is read, a call that is right in
// place of one that isn't, and samples that can be made up of a type.
//
// What was given stays where it fits; the rest is of the tool's example, else a sample, else
// nothing is suggested. Reading itself is package check's.
package inputs

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// inlineTypeSteps bounds the inference of inline code for the reading of its input.
const inlineTypeSteps = 60_000

// A Source is what an input is for: a tool, or inline code.
type Source struct {
	Tool     *registry.Tool
	program  *core.Program
	Report   *check.Report
	Declared *check.Declared
	ByName   bool // the tool is called by its name
	Example  bool // the input is that of an example
	// suggested gives the input of the call that is suggested of the tool; nil: none.
	Suggested func() []byte
}

// For finds the types by which an input is read.
func For(t *registry.Tool, p *core.Program) (*Source, *fault.Fault) {
	if t == nil {
		return &Source{program: p, Report: check.Infer(p.Term(), p.Tool().Source, check.Env{}, check.Budget{Steps: inlineTypeSteps, Places: 1})}, nil
	}
	d, f := t.Narrowed()
	if f != nil {
		return nil, f
	}
	return &Source{Tool: t, program: t.Program(), Report: t.Report(), Declared: d}, nil
}

// Noted is the notes on inline code that are made by its types.
func Noted(p *core.Program) []string {
	return check.Noted(p.Term(), p.Tool().Source, check.Budget{Steps: inlineTypeSteps})
}

// IsPlain reports whether an input is read the same way whatever its type is: a whole
// number, a truth value, null, or a string that can't be JSON or code.
func IsPlain(raw []byte) bool {
	return len(raw) == 0 || !strings.ContainsRune(`"{[`, rune(raw[0])) && (!bytes.ContainsAny(raw, ".eE") || raw[0] == 't' || raw[0] == 'f')
}

// Check holds inputs against the schema that was declared of the tool.
func (s *Source) Check(r *check.Reading, given bool) *fault.Fault {
	if s.Declared == nil {
		return nil
	}
	f := s.Declared.Check(r.Values, given)
	if f == nil {
		return nil
	}
	if input := s.Sample(s.params()); input != nil {
		s.suggest(f, input)
	}
	return f
}

// maxRepeatedBytes is how long arguments are that a hint repeats.
const maxRepeatedBytes = 200

// Call is the call that runs what the source is on an input; nil: it is too long to be
// repeated.
func (s *Source) Call(input json.RawMessage) []byte {
	if len(input) == 0 || len(input) > maxRepeatedBytes {
		return nil
	}
	o := wire.Begin()
	if s.ByName {
		params := s.params()
		if len(params) == 0 {
			input = json.RawMessage("{}")
		}
		if len(params) == 1 && (s.Declared == nil || !s.Declared.OfFields) {
			// A record may be given without the wrapping, but not to a client that holds
			// arguments against the schema.
			input = json.RawMessage(wire.Begin().Raw(check.Input, input).End())
		}
		return wire.Begin().Text("name", s.Tool.Name).Raw("arguments", input).End()
	}
	if s.Tool != nil {
		o = o.Text("tool", s.Tool.Name)
	} else {
		code := s.program.Text()
		if len(code) > maxRepeatedBytes {
			return nil
		}
		o = o.Text("code", string(code))
	}
	return wire.Begin().Text("name", "run").Raw("arguments", o.Raw("input", input).End()).End()
}

// Corrected is the fault of wrong arguments with a call that is right: with what was
// given where that fits, and for the rest with the input that is suggested of the tool.
func (s *Source) Corrected(f *fault.Fault, raw json.RawMessage) *fault.Fault {
	if f.Kind != fault.InvalidRequest {
		return f
	}
	g, params := *f, s.params()
	if len(params) == 0 {
		g.Hint = "It takes no input: call " + string(s.Call(json.RawMessage("{}"))) + "."
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
	sample := s.Sample(params)
	if len(params) == 1 && (params[0].Type.Kinds&^prim.KindUnit != prim.KindRecord || len(params[0].Type.Fields) == 0) {
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
			if v := valueOf(given, field.Key); !field.Optional || v != nil && check.Fits(v, field.Type) {
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
			if (!near || isNear(m.Name, w.Name)) && check.Fits(m.Value, w.Type) {
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
	input := json.RawMessage(o.End())
	if s.Declared != nil && len(params) == 1 && sample != nil && s.Declared.Check([]json.RawMessage{input}, true) != nil {
		input = sample // what was given isn't as the schema wants it
	}
	s.suggest(&g, input)
	return &g
}

// isNear reports whether a name may be meant for another, as old_text for old.
func isNear(name, wanted string) bool {
	name, wanted = strings.ToLower(name), strings.ToLower(wanted)
	return strings.HasPrefix(name, wanted) || strings.HasSuffix(name, wanted) || prim.Closest(name, []string{wanted}) != ""
}

// params is the parameters by the types that an input is read by.
func (s *Source) params() []check.Parameter {
	if s.Declared != nil {
		return s.Declared.Params()
	}
	params, _ := s.Report.Arguments()
	return params
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

// Sample is an input that is right: what is suggested of the tool, or else one of the
// types; nil: there is none.
func (s *Source) Sample(params []check.Parameter) json.RawMessage {
	if s.Suggested != nil {
		if input := s.Suggested(); input != nil {
			return input
		}
	}
	v, _ := Sample(s.Tool, params, commonPools(), 0)
	return v
}

// suggest puts an input that works into the hint of a fault.
func (s *Source) suggest(f *fault.Fault, input json.RawMessage) {
	switch call := s.Call(input); {
	case s.Example:
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
