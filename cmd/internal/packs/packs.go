// Package packs has tools that are ready to use: each a program of PIF over one kind
// of capability, with examples.
//
// A pack is a folder: tools.json has what its tools are called, say and declare, and
// their examples; NAME.pif is the code of one. Both are templates, filled in for the
// grants there are, since a tool declares and names the scopes of its capabilities.
// A tool of a pack has nothing that another couldn't have: it declares, and the policy
// decides.
//
// [Fill] gives the tools as definitions; [Made] tells a tool that a pack made from one
// that somebody wrote.
package packs

import (
	"embed"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

//go:embed */tools.json */*.pif
var files embed.FS

// A Pack is tools over capabilities of one kind.
type Pack struct {
	Name string
	Doc  string
	// Kind is that of the capability that its tools need, and Grant the flag that
	// grants one; "": they only compute.
	Kind, Grant string

	scope string // where none is granted
}

// All is the packs there are.
var All = []Pack{
	{"memory", "remembers values by keys, beyond the end of the server", "kv", "--cap 'kv:memory/**'", "memory/**"},
	{"files", "reads, writes, edits, lists and searches the files below a folder", "fs", "--folder FOLDER", "./files"},
	{"web", "fetches JSON and pages", "fetch", "--cap fetch:https://example.com", "https://example.com"},
	{"sessions", "drives programs, such as interpreters, in sessions that go on between calls", "proc", "--proc python3", "python3"},
	{"self", "interprets PIF, written in PIF", "", "", ""},
}

// Named finds a pack.
func Named(name string) (*Pack, error) {
	names := make([]string, len(All))
	for i := range All {
		if All[i].Name == name {
			return &All[i], nil
		}
		names[i] = All[i].Name
	}
	if near := prim.Closest(name, names); near != "" {
		return nil, fmt.Errorf("there is no pack %q; did you mean %s?", name, near)
	}
	return nil, fmt.Errorf("there is no pack %q: there are %s", name, strings.Join(names, ", "))
}

// mark begins the code of each tool, and Made looks for it.
const mark = "// A tool of mcp-pif's pack "

// Made reports whether a tool is as a pack made it, not by somebody who wrote one of
// its name.
func Made(t *registry.Tool) bool { return strings.HasPrefix(string(t.Source), mark) }

// Granted reports whether one of the grants is of the pack's kind.
func (p *Pack) Granted(grants []*caps.Grant) bool { return p.Kind == "" || len(p.labels(grants)) > 0 }

// labels is what tools call the scopes of these grants that the pack can use.
func (p *Pack) labels(grants []*caps.Grant) (labels []string) {
	for _, g := range grants {
		if g.Kind != p.Kind || p.Kind == "kv" && (!strings.HasSuffix(g.Label, "/**") || strings.Contains(g.Label, "*/")) {
			continue
		}
		if p.Kind == "kv" && len(labels) > 0 {
			if g.Label == p.scope {
				labels[0] = g.Label
			}
			continue // it keeps all in one place
		}
		labels = append(labels, g.Label)
	}
	return labels
}

// A listed is a tool of a pack as tools.json has it.
type listed struct {
	Name        string             `json:"name"`
	Verbs       []string           `json:"verbs"`
	Calls       []string           `json:"calls"`
	Description string             `json:"description"`
	Properties  json.RawMessage    `json:"properties"`
	Required    []string           `json:"required,omitempty"`
	Examples    []registry.Example `json:"examples"`
}

// Fill gives the pack's tools for those of the grants that it can use; where there are
// none, for a scope of its own.
func (p *Pack) Fill(grants []*caps.Grant) ([]registry.Definition, error) {
	f := filling{labels: p.labels(grants), kind: p.Kind}
	if len(f.labels) == 0 {
		f.labels = []string{p.scope}
	}
	text, err := f.fill(path.Join(p.Name, "tools.json"))
	if err != nil {
		return nil, err
	}
	var list []listed
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("the pack %s: %w", p.Name, err)
	}
	tools := make([]registry.Definition, len(list))
	for i, t := range list {
		code, err := f.fill(path.Join(p.Name, t.Name+".pif"))
		if err != nil {
			return nil, err
		}
		schema, err := json.Marshal(struct {
			Type       string          `json:"type"`
			Properties json.RawMessage `json:"properties"`
			Required   []string        `json:"required,omitempty"`
		}{"object", t.Properties, t.Required})
		if err != nil {
			return nil, err
		}
		for k := range t.Examples {
			t.Examples[k].As = "data"
		}
		tools[i] = registry.Definition{
			Name: t.Name, Description: t.Description, Text: true, Code: append([]byte(mark+p.Name+".\n"), code...),
			Examples: t.Examples, Input: schema,
		}
		if string(t.Properties) == "{}" {
			tools[i].Input = nil
		}
		for _, name := range t.Calls {
			tools[i].Capabilities = append(tools[i].Capabilities, "call:"+name)
		}
		for _, label := range f.labels {
			if p.Kind == "" {
				break
			}
			tools[i].Capabilities = append(tools[i].Capabilities, caps.Capability{Kind: p.Kind, Verbs: t.Verbs, Scope: label}.String())
		}
	}
	return tools, nil
}
