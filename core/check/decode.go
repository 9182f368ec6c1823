package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// Decoded is the arguments of a direct call as the program is to be given them.
type Decoded struct {
	// Inputs is the values, one for each parameter, as JSON that is read as data
	// (parse.Data).
	Inputs []json.RawMessage
	// Notes tell of what was read otherwise than it stands there.
	Notes []string
}

// Decode reads the arguments of a direct call, an object, by the types of the
// parameters: a string stays one where a string is wanted, and is read as JSON
// where only something else is; a number with a fraction is an exact decimal,
// where only integers are wanted it is left to the reader of data, which rounds
// it. What fits no type is given to the program as it is, which fails at the place
// that can't use it.
//
// A function of several parameters is called with each by its name, or with
// the first alone as "input". One of a record may have the record's keys in
// place of "input". Code that is no function has "input", which is ignored.
// Faults: invalid_request.
func Decode(arguments json.RawMessage, r *Report) (*Decoded, *fault.Fault) {
	params, _ := r.Arguments()
	given, f := givenArguments(arguments, params)
	if f != nil {
		return nil, f
	}
	for i, m := range given {
		if slices.ContainsFunc(given[:min(i, maxArguments)], func(n member) bool { return n.key == m.key }) {
			return nil, &fault.Fault{
				Kind: fault.InvalidRequest, Message: fmt.Sprintf("the argument %s is given twice", quoted(m.key)),
				Hint: "Call with " + sketch(params) + ".",
			}
		}
		if i >= len(params) && i >= maxArguments {
			return nil, unknownArgument(given, params)
		}
	}
	if len(params) > 1 {
		return several(params, given)
	}
	p := Parameter{Input, Any}
	if len(params) == 1 {
		p = params[0]
	}
	raw := json.RawMessage("null") // without an argument, as in run
	switch {
	case len(given) == 1 && given[0].key == Input:
		raw = given[0].value
	case len(given) > 0 && isRecord(p.Type, given):
		d := DecodeInputs([]json.RawMessage{arguments}, &Report{Type: Function(p.Type, Any, Row{})})
		d.Notes = append([]string{`the arguments were read as the record that is the "input"`}, d.Notes...)
		return d, nil
	case len(given) > 0:
		return nil, unknownArgument(given, []Parameter{p})
	}
	d := &decoder{}
	return &Decoded{Inputs: []json.RawMessage{d.read(raw, p)}, Notes: d.told()}, nil
}

// maxArguments is how many arguments are looked at where the tool has fewer
// parameters.
const maxArguments = 100

// DecodeInputs reads values by the types of the parameters, in their order, as
// [Decode] does: what clients give that has no names. Those beyond the parameters
// are as for [Any].
func DecodeInputs(inputs []json.RawMessage, r *Report) *Decoded {
	params, _ := r.Arguments()
	d := &decoder{}
	out := &Decoded{}
	for i, raw := range inputs {
		p := Parameter{fmt.Sprintf("input %d", i+1), Any}
		if i < len(params) {
			p = params[i]
		}
		out.Inputs = append(out.Inputs, d.read(raw, p))
	}
	out.Notes = d.told()
	return out
}

// isRecord reports whether arguments are the fields of a record that is wanted.
func isRecord(t *Type, given []member) bool {
	if t.Kinds != prim.KindRecord || len(t.Fields) == 0 {
		return false
	}
	has := func(key string) bool {
		return slices.ContainsFunc(given, func(m member) bool { return m.key == key })
	}
	known := false
	for _, f := range t.Fields {
		if has(f.Key) {
			known = true
		} else if !f.Optional {
			return false
		}
	}
	return known
}

func several(params []Parameter, given []member) (*Decoded, *fault.Fault) {
	byName := make(map[string]json.RawMessage, len(given))
	for _, m := range given {
		byName[m.key] = m.value
	}
	d := &decoder{}
	if raw, ok := byName[Input]; ok && len(given) == 1 && !slices.ContainsFunc(params, func(p Parameter) bool { return p.Name == Input }) {
		p := Parameter{Input, params[0].Type}
		return &Decoded{Inputs: []json.RawMessage{d.read(raw, p)}, Notes: d.told()}, nil
	}
	out := &Decoded{}
	var missing []string
	for _, p := range params {
		raw, ok := byName[p.Name]
		if !ok {
			missing = append(missing, quoted(p.Name))
			continue
		}
		delete(byName, p.Name)
		out.Inputs = append(out.Inputs, d.read(raw, p))
	}
	if len(byName) > 0 {
		return nil, unknownArgument(given, params)
	}
	if missing != nil {
		return nil, &fault.Fault{
			Kind: fault.InvalidRequest, Message: "missing: " + listed(missing),
			Expected: "every parameter by its name", Hint: "Call with " + sketch(params) + ".",
		}
	}
	out.Notes = d.told()
	return out, nil
}

// listed is the first of many names.
func listed(names []string) string {
	const most = 10
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// quoted is a name, or the beginning of a long one, in quotes.
func quoted(name string) string { return string(text.AppendString(nil, short(name))) }

func short(name string) string {
	if len(name) <= longestName {
		return name
	}
	return strings.ToValidUTF8(name[:longestName], "") + "…"
}

// sketch is an object with the parameters' names and types.
func sketch(params []Parameter) string {
	const most = 10
	var parts []string
	for i, p := range params {
		if i == most {
			parts = append(parts, fmt.Sprintf("and %d more", len(params)-most))
			break
		}
		parts = append(parts, quoted(p.Name)+": "+short(p.Type.String()))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func unknownArgument(given []member, params []Parameter) *fault.Fault {
	var names []string
	for _, p := range params {
		names = append(names, p.Name)
	}
	unknown := Input // beside others
	for _, m := range given {
		if !slices.Contains(names, m.key) {
			unknown = m.key
			break
		}
	}
	return &fault.Fault{
		Kind: fault.InvalidRequest, Message: "the tool takes no argument " + quoted(unknown),
		Expected: "the arguments " + listed(names), Got: short(unknown),
		Near: prim.Closest(short(unknown), names[:min(len(names), maxArguments)]), Hint: "Call with " + sketch(params) + ".",
	}
}

// A member of an object, in the order of the source.
type member struct {
	key   string
	value json.RawMessage
}

// givenArguments takes the arguments apart; none are an empty object.
func givenArguments(arguments json.RawMessage, params []Parameter) ([]member, *fault.Fault) {
	src := bytes.TrimSpace(arguments)
	if len(src) == 0 {
		return nil, nil
	}
	all, ok := members(src)
	if !ok {
		return nil, &fault.Fault{
			Kind: fault.InvalidRequest, Message: "the arguments are no JSON object", Expected: "an object",
			Hint: "Give the arguments by their names: " + sketch(params) + ".",
		}
	}
	return all, nil
}

// members takes an object apart; false: it is none.
func members(src []byte) (all []member, ok bool) {
	s := scan{src: src}
	ok = s.object(func(key []byte) bool {
		from := s.at
		var name string
		if !s.value() || json.Unmarshal(key, &name) != nil {
			return false
		}
		all = append(all, member{name, src[from:s.at]})
		return true
	})
	return all, ok && s.space() == 0 && s.at == len(src)
}
