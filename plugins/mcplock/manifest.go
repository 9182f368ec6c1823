package mcplock

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/plugins/lock"
)

// Manifest returns the kind that a server of the lock is: an operation and a verb for each of
// its tools. policy is what the operator says of the server; nil: nothing. The same lock and
// policy give the same manifest.
func (l *Lock) Manifest(name string, policy *caps.ServerPolicy) (*caps.Manifest, error) {
	s, ok := l.Servers[name]
	if !ok {
		return nil, fmt.Errorf("the lock has no server %s", lock.Shown(name, 60))
	}
	return s.Manifest(name, policy)
}

// Manifest is [Lock.Manifest] of one server.
func (s *Server) Manifest(name string, policy *caps.ServerPolicy) (*caps.Manifest, error) {
	if policy == nil {
		policy = &caps.ServerPolicy{}
	}
	m := &caps.Manifest{
		Kind: name, Version: s.Protocol, Doc: "calls the MCP server " + name, Server: name, Algebra: caps.Exact,
		Privileges: []string{"command", "processes", "state"},
	}
	if s.URL != "" {
		m.Privileges = []string{"network"}
	}
	words := slices.DeleteFunc(slices.Sorted(maps.Keys(s.Tools)), func(word string) bool {
		said, known := policy.Tools[word]
		return known && said == nil
	})
	for _, word := range words {
		o, err := s.Tools[word].operation(name, word, policy.Tools[word])
		if err != nil {
			return nil, fmt.Errorf("the tool %s of the server %s: %w", word, name, err)
		}
		m.Operations = append(m.Operations, o)
		m.Verbs = append(m.Verbs, caps.Verb{Name: word, Flags: s.Tools[word].Flags()})
	}
	for _, word := range slices.Sorted(maps.Keys(policy.Tools)) {
		if s.Tools[word] == nil {
			return nil, fmt.Errorf("the policy names the tool %s, which the server %s doesn't have", lock.Shown(word, 60), name)
		}
	}
	return m, m.Check()
}

// Flags are those that hold: the worst, but for what was accepted.
func (t *Tool) Flags() caps.Flags {
	flags := lock.Worst
	if t.Accepted == nil {
		return flags
	}
	for _, f := range []struct {
		to *bool
		is *bool
	}{
		{&flags.ReadOnly, t.Accepted.ReadOnly}, {&flags.Idempotent, t.Accepted.Idempotent},
		{&flags.Destructive, t.Accepted.Destructive}, {&flags.OpenWorld, t.Accepted.OpenWorld},
	} {
		if f.is != nil {
			*f.to = *f.is
		}
	}
	if flags.ReadOnly { // what changes nothing destroys nothing, and may be done again
		flags.Destructive, flags.Idempotent = false, true
	}
	return flags
}

// operation returns what programs ask for in place of the tool.
func (t *Tool) operation(kind, word string, policy *caps.ToolPolicy) (caps.Operation, error) {
	o := caps.Operation{
		Name: kind + "." + word, Wire: t.Tool, Verb: word, Words: t.Description, Doc: "calls a tool of the MCP server " + kind,
		Hash: t.Hash, Result: "record: text, data, parts",
	}
	if policy == nil {
		policy = &caps.ToolPolicy{}
	}
	if policy.Doc != "" {
		o.Doc, o.Words = policy.Doc, ""
	}
	o.Input = &schema{raw: t.Input, params: t.Params}
	o.Late = sync.OnceValues(func() ([]caps.Param, *check.Type) { return t.params(policy.Designates), t.answer() })
	o.Cut = sync.OnceValue(func() bool {
		for _, raw := range []json.RawMessage{t.Input, t.Output} {
			if f, err := check.FromSchema(raw, check.MaxAnswer); raw != nil && err == nil && f.Truncated {
				return true
			}
		}
		return false
	})
	for _, name := range policy.Designates {
		if !slices.ContainsFunc(o.Takes(), func(p caps.Param) bool { return p.Name == name && p.Type == "string" }) {
			return o, fmt.Errorf("the policy says that %s designates, which is no argument of type string", lock.Shown(name, 60))
		}
	}
	return o, nil
}

// params returns the arguments that the schema has, in the order of their words.
func (t *Tool) params(designates []string) []caps.Param {
	fields, _ := check.FieldsFromSchema(t.Input, check.MaxAnswer) // the lock has objects only
	properties, _ := propertiesOf(t.Input)
	params := []caps.Param{}
	for _, f := range fields {
		p := caps.Param{Name: t.word(f.Key), Of: f.Type, Optional: f.Optional}
		p.Designates = slices.Contains(designates, p.Name)
		if p.Name != f.Key {
			p.Wire = f.Key
		}
		p.Type, p.Doc, p.Enum = described(properties[f.Key])
		params = append(params, p)
	}
	slices.SortFunc(params, func(a, b caps.Param) int { return strings.Compare(a.Name, b.Name) })
	return params
}

// word returns what programs call an argument.
func (t *Tool) word(wire string) string {
	for word, name := range t.Params {
		if name == wire {
			return word
		}
	}
	return wire
}

// parts is the type of what is no text in an answer.
var parts = func() *check.Type {
	fields := []check.Field{{Key: "type", Type: check.String}}
	for _, key := range []string{"data", "mime", "name", "text", "uri"} {
		fields = append(fields, check.Field{Key: key, Type: check.String, Optional: true})
	}
	return check.List(check.Record(fields, nil))
}()

// answer returns the type of the tool's answers: data is there, and of the type that the
// server declared, exactly if it declared one.
func (t *Tool) answer() *check.Type {
	typed := func(data *check.Type) *check.Type {
		return check.Record([]check.Field{
			{Key: "text", Type: check.String}, {Key: "data", Type: data, Optional: t.Output == nil}, {Key: "parts", Type: parts, Optional: true}, {Key: "ifc", Type: check.List(check.String), Optional: true},
		}, nil)
	}
	if t.Output == nil {
		return typed(check.JSON)
	}
	output, err := check.TypeFromSchema(t.Output, check.MaxAnswer-len(typed(check.JSON).String()))
	if err != nil { // the lock has objects only
		output = check.JSON
	}
	return typed(output)
}

// typeWords is the types of arguments by JSON Schema's names.
var typeWords = map[string]string{"string": "string", "integer": "int", "boolean": "bool", "array": "list", "object": "record"}

// described returns what a property's schema says of an argument: its type in the manifest's
// words, the server's words, and the strings that it may be.
func described(schema json.RawMessage) (kind, doc string, enum []string) {
	var s map[string]json.RawMessage
	_ = json.Unmarshal(schema, &s) // a schema may be true
	var name string
	if json.Unmarshal(s["type"], &name) == nil {
		kind = typeWords[name]
	}
	_ = json.Unmarshal(s["description"], &doc)
	kind = cmp.Or(kind, "any")
	if kind != "string" || json.Unmarshal(s["enum"], &enum) != nil {
		enum = nil
	}
	return kind, doc, enum
}
