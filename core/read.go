package core

import (
	"encoding/json"

	"github.com/mcp-pif/mcp-pif/core/check"
)

// readSteps bounds the inference of a program's types for reading its input.
const readSteps = 60_000

// ReadInput reads an input by the types that are inferred of the program's parameters,
// as the server does; see [check.Read]. Several parameters are one record by their
// names. An empty src is null. Faults: parse_error, and invalid_request for a missing
// or unknown parameter.
func (p *Program) ReadInput(src []byte) (Input, error) {
	env := check.Env{Tool: p.tool}
	r, f := check.Read(json.RawMessage(src), check.Infer(p.Term(), nil, env, check.Budget{Steps: readSteps, Places: 1}), nil)
	if f != nil {
		return Input{}, f
	}
	as := InputData
	if r.Term {
		as = InputTerm
	}
	all := make([]Input, len(r.Values))
	for i, raw := range r.Values {
		in, err := ParseInput(raw, as)
		if err != nil {
			return Input{}, err
		}
		all[i] = in
	}
	in := Inputs(all...)
	in.Notes = append(r.Notes[:len(r.Notes):len(r.Notes)], in.Notes...)
	return in, nil
}
