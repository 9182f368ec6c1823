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
// touched. filler is set where it names something by a text that no sample meant for a
// name. This only guides what is suggested: what is permitted is decided when it is
// asked for.
func (p *prober) permits(q *core.Request) (filler bool, f *fault.Fault) {
	m, o, known := p.server.broker.Policy().Kinds().Operation(q.Op)
	view, _ := q.Tools.(*trialView)
	if !known || view == nil {
		return false, unfit(q, "nobody can carry it out")
	}
	held := heldFor(view.tool.Held, m, q.In)
	if held == nil {
		return false, unfit(q, "the tool holds nothing that it falls under")
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
				names[i] = caps.QuoteName(o.Params[i].Name)
			}
			return false, unfit(q, fmt.Sprintf("it has no argument %s; it has %s", caps.QuoteName(name), strings.Join(names, ", ")))
		}
	}
	for i := range o.Params {
		param := &o.Params[i]
		v, ok := args[param.Name]
		if !ok {
			if !param.Optional {
				return false, unfit(q, caps.QuoteName(param.Name)+" is missing")
			}
			continue
		}
		if why := wrongArgument(m, param, held, v); why != "" {
			return false, unfit(q, caps.QuoteName(param.Name)+" "+why)
		}
		if text, ok := v.(value.Str); ok && param.Designates {
			filler = filler || slices.ContainsFunc(commonPools().texts, func(t []byte) bool { return bytes.Equal(t, encode(string(text))) })
		}
	}
	return filler, nil
}

// names is what the tool's operations can name within what it, and those it calls, hold.
func (p *prober) names() (names [][]byte) {
	ops, _ := operations(p.tool.Report())
	for _, op := range ops {
		m, o, ok := p.server.broker.Policy().Kinds().Operation(op)
		if !ok {
			continue
		}
		for _, held := range p.tool.Reach() {
			if held.Kind != m.Kind || held.Grant == nil {
				continue
			}
			for i := range o.Params {
				if param := &o.Params[i]; param.Designates || param.Enum != nil {
					name := nameSample(m, o, param, held)
					if !slices.ContainsFunc(names, func(n []byte) bool { return bytes.Equal(n, name) }) {
						names = append(names, name)
					}
				}
			}
		}
	}
	return names
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
		return "must be " + param.Choices()
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

// nameSample is a name, or a choice, that the capability lets through. A name is one that
// is seldom there, so that a call that is made as it is suggested replaces nothing.
func nameSample(m *caps.Manifest, o *caps.Operation, param *caps.Param, held *caps.Held) []byte {
	if len(param.Enum) > 0 {
		return encode(param.Enum[0])
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
