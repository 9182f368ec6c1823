package mcplock

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	pifjson "github.com/mcp-pif/mcp-pif/core/json"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/lock"
)

// A schema holds arguments to a JSON Schema, as they are sent.
type schema struct {
	raw    json.RawMessage
	params map[string]string // word to wire name, where they differ

	// The rules are read when they are first asked for: few of a server's tools are called.
	once  sync.Once
	rules *check.Foreign
	wrong error
}

// Check is [caps.Schema]'s.
func (s *schema) Check(args *value.Record) *fault.Fault {
	text, err := Arguments(args, s.params)
	if err != nil {
		return &fault.Fault{Kind: fault.InvalidRequest, Message: err.Error()}
	}
	s.once.Do(func() {
		if s.rules == nil {
			s.rules, s.wrong = check.FromSchema(s.raw, check.MaxAnswer)
		}
	})
	if s.wrong != nil {
		return &fault.Fault{Kind: fault.InvalidRequest, Message: s.wrong.Error()}
	}
	return s.rules.Check(text)
}

// Arguments writes a call's arguments as they are sent: as JSON, exactly, under their names on
// the wire. params is those of [Tool.Params].
func Arguments(args *value.Record, params map[string]string) (json.RawMessage, error) {
	sent := slices.Clone(args.Fields)
	for i, f := range sent {
		if wire, ok := params[f.Key]; ok {
			sent[i].Key = wire
		}
	}
	text, odd := pifjson.Append(nil, &value.Record{Fields: sent})
	if odd != nil {
		return nil, fmt.Errorf("JSON has no form for a %s", odd.Type())
	}
	return text, nil
}

// Narrow returns what the operator permits of the arguments of each operation, by its name.
// An argument for which a schema lists values has to be there; any other may be left out.
func (s *Server) Narrow(name string, policy *caps.ServerPolicy) (map[string]caps.Schema, error) {
	var narrow map[string]caps.Schema
	for _, word := range slices.Sorted(maps.Keys(policy.Tools)) {
		said, t := policy.Tools[word], s.Tools[word]
		if said == nil || said.Input == nil || t == nil {
			continue
		}
		rules, err := t.restrict(said.Input)
		if err != nil {
			return nil, fmt.Errorf("what the policy permits of %s.%s: %w", name, word, err)
		}
		if narrow == nil {
			narrow = map[string]caps.Schema{}
		}
		narrow[name+"."+word] = &schema{rules: rules, params: t.Params}
	}
	return narrow, nil
}

// restrict reads the operator's schema of a tool's arguments. It refuses one that speaks of an
// argument that isn't there, since that would restrict nothing.
func (t *Tool) restrict(raw json.RawMessage) (*check.Foreign, error) {
	var top map[string]json.RawMessage
	if err := json.Unmarshal(raw, &top); err != nil || top == nil {
		return nil, fmt.Errorf(`it isn't a schema, such as {"properties":{"owner":{"const":"acme"}}}`)
	}
	said, err := propertiesOf(raw)
	if err != nil {
		return nil, err
	}
	var required []string
	if list, ok := top["required"]; ok && json.Unmarshal(list, &required) != nil {
		return nil, fmt.Errorf(`"required" is a list of names`)
	}
	known, err := propertiesOf(t.Input)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(said)) {
		var values struct{ Const, Enum json.RawMessage }
		_ = json.Unmarshal(said[name], &values)
		if values.Const != nil || values.Enum != nil {
			required = append(required, name)
		}
		if known[name] == nil {
			return nil, fmt.Errorf("the tool has no argument %s", lock.Shown(name, 60))
		}
	}
	if required != nil {
		slices.Sort(required)
		top["required"], _ = json.Marshal(slices.Compact(required)) // strings have JSON
	}
	whole, err := json.Marshal(top)
	if err != nil {
		return nil, err
	}
	return check.Restrict(whole)
}
