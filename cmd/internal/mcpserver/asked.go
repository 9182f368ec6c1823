package mcpserver

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// permits holds a request against what the tool that asks may ask for, by the
// manifest and the scopes it holds. Nothing is charged: no limit of a grant is
// touched. Where a leaf of the input is what was asked with, and another value of it
// would be better, leaf is its number and want the value; else leaf is -1. This only
// guides what is suggested: what is permitted is decided when it is asked for.
func (p *prober) permits(q *core.Request, leaves [][]byte) (f *fault.Fault, leaf int, want []byte) {
	m, o, known := p.server.broker.Policy().Kinds().Operation(q.Op)
	view, _ := q.Tools.(*trialView)
	if !known || view == nil {
		return unfit(q, "nobody can carry it out"), -1, nil
	}
	held := heldFor(view.tool.Held, m, q.In)
	if held == nil {
		return unfit(q, "the tool holds nothing that it falls under"), -1, nil
	}
	args := map[string]value.Value{}
	switch arg := value.Force(q.Arg).(type) {
	case *value.Record:
		for _, field := range arg.Fields {
			args[field.Key] = value.Force(field.Value)
		}
	default:
		if main := p.trial.main(q.Op); main != "" {
			args[main] = arg
		}
	}
	for name := range args {
		if !slices.ContainsFunc(o.Params, func(p caps.Param) bool { return p.Name == name }) {
			names := make([]string, len(o.Params))
			for i := range o.Params {
				names[i] = o.Params[i].Name
			}
			return unfit(q, fmt.Sprintf("it has no argument %s; it has %s", name, strings.Join(names, ", "))), -1, nil
		}
	}
	for i := range o.Params {
		param := &o.Params[i]
		v, ok := args[param.Name]
		if !ok {
			if !param.Optional {
				return unfit(q, param.Name+" is missing"), -1, nil
			}
			continue
		}
		why := wrongArgument(m, param, held, v)
		if at := leafOf(v, leaves); at >= 0 && (why != "" || param.Designates) {
			if better := argumentSample(m, o, param, held); !bytes.Equal(better, leaves[at]) {
				return nil, at, better
			}
		}
		if why != "" {
			return unfit(q, param.Name+" "+why), -1, nil
		}
	}
	return nil, -1, nil
}

func unfit(q *core.Request, why string) *fault.Fault {
	return &fault.Fault{Kind: fault.EffectFailed, Message: q.Op + ": " + why}
}

// heldFor is the one capability under which an operation of a kind is asked for; nil:
// there is none, or it isn't known which.
func heldFor(all []*caps.Held, m *caps.Manifest, in string) *caps.Held {
	var found *caps.Held
	for _, h := range all {
		switch {
		case h.Kind != m.Kind || h.Grant == nil:
		case in != "" && in != h.Scope && in != h.Declared && in != h.Grant.Label:
		case found != nil:
			return nil
		default:
			found = h
		}
	}
	return found
}

// wrongArgument says why a value can't be an argument; "": it can.
func wrongArgument(m *caps.Manifest, param *caps.Param, held *caps.Held, v value.Value) string {
	if param.Type != "any" && string(v.Type()) != param.Type {
		return "must be of type " + param.Type
	}
	text, isText := v.(value.Str)
	if isText && param.Enum != nil && !slices.Contains(param.Enum, string(text)) {
		return "must be one of " + strings.Join(param.Enum, ", ")
	}
	if !param.Designates {
		return ""
	}
	if file := held.Grant.File; file != "" && isText && string(text) != "." && string(text) != path.Base(held.Scope) {
		return "is outside the file " + held.String()
	}
	if err := m.Algebra.Covers(held.Scope, string(text)); err != nil {
		return "is outside " + held.String()
	}
	return ""
}

// leafOf is the number of the leaf that a value is; -1: none.
func leafOf(v value.Value, leaves [][]byte) int {
	var shown []byte
	switch v := v.(type) {
	case value.Str:
		shown = encode(string(v))
	case value.Int:
		shown = []byte(v.String())
	case value.Bool:
		shown = encode(bool(v))
	default:
		return -1
	}
	return slices.IndexFunc(leaves, func(leaf []byte) bool { return bytes.Equal(leaf, shown) })
}

// argumentSample is an argument of an operation that the capability lets through. A
// name in it is one that is seldom there, so that a call that is made as it is
// suggested replaces nothing.
func argumentSample(m *caps.Manifest, o *caps.Operation, param *caps.Param, held *caps.Held) []byte {
	switch {
	case len(param.Enum) > 0:
		return encode(param.Enum[0])
	case param.Type == "int":
		return []byte("1")
	case param.Type == "bool":
		return []byte("true")
	case param.Type == "list":
		return []byte("[]")
	case param.Type == "record":
		return []byte("{}")
	case !param.Designates:
		return []byte(`"abc"`)
	}
	name := "example"
	if n := slices.IndexFunc(o.Params, func(p caps.Param) bool { return p.Designates }); n >= 0 && o.Params[n].Name != param.Name {
		name = "example2"
	}
	switch m.Algebra {
	case caps.Path:
		if held.Grant.File != "" {
			return encode(path.Base(held.Scope))
		}
		if verb, ok := m.Verb(o.Verb); ok && verb.ReadOnly && strings.Contains(param.Doc, "directory") && !strings.Contains(param.Doc, "file") {
			return encode(".")
		}
		return encode(name + ".txt")
	case caps.Segments, caps.URL:
		return encode(strings.ReplaceAll(strings.ReplaceAll(held.Scope, "**", name), "*", name))
	}
	return encode(held.Scope)
}
