package core

import (
	"encoding/json"
	"slices"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/eval"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// Inputs joins inputs for functions of several parameters, one after the other:
// what comes of the first is applied to the second, and so on. Each costs what
// the first one does: its own steps, and one for the application. Where anything
// but a function comes of an input that others follow, the run fails with
// type_error at the whole code; code that gives no function ignores all of them.
// Without any the input is null.
func Inputs(all ...Input) Input {
	if len(all) == 1 {
		return all[0]
	}
	var joined Input
	var parsed []*parse.Parsed
	var progs []eval.Program
	for _, in := range all {
		joined.Notes = append(joined.Notes, in.Notes...)
		parsed = append(append(parsed, in.in), in.more...)
		if in.prog == nil {
			progs = append(progs, eval.Program{Term: &term.Unit{}})
		}
		for p := in.prog; p != nil; p = p.Next {
			progs = append(progs, *p)
		}
	}
	if len(progs) == 0 {
		return joined
	}
	for i := range progs[1:] {
		progs[i].Next = &progs[i+1]
	}
	// Whether the program is compiled for evals around it is decided once.
	progs[0].Evals = slices.ContainsFunc(progs, func(p eval.Program) bool { return p.Evals })
	joined.prog, joined.in, joined.more = &progs[0], parsed[0], parsed[1:]
	return joined
}

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
