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
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	pifjson "github.com/mcp-pif/mcp-pif/core/json"
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
	{"memory", "remembers values by keys, across restarts of the server", "kv", "--cap 'kv:memory/**'", "memory/**"},
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
		if !slices.Contains(labels, g.Label) {
			labels = append(labels, g.Label)
		}
	}
	return labels
}

// A listed is a tool of a pack as tools.json has it.
type listed struct {
	Name        string             `json:"name"`
	Verbs       []string           `json:"verbs"`
	Also        []string           `json:"also,omitempty"` // without these it does a part
	Calls       []string           `json:"calls"`
	Description string             `json:"description"`
	Properties  json.RawMessage    `json:"properties"`
	Required    []string           `json:"required,omitempty"`
	Examples    []registry.Example `json:"examples"`
}

// list gives the pack's tools as a filling has them.
func (p *Pack) list(f filling) (list []listed, err error) {
	text, err := f.fill(path.Join(p.Name, "tools.json"))
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("the pack %s: %w", p.Name, err)
	}
	return list, nil
}

// usable reports whether the grants have a tool's verbs for a label.
func (t *listed) usable(grants []*caps.Grant, kind, label string) bool {
	return !slices.ContainsFunc(t.Verbs, func(verb string) bool {
		return !slices.ContainsFunc(grants, func(g *caps.Grant) bool { return g.Kind == kind && g.Permits(verb, label) })
	})
}

// Fill gives the pack's tools for those of the grants that it can use, and the names of
// those whose verbs none of them has; where there are none, for a scope of its own. First
// among scopes comes that of most tools: it is what they act on if nothing is chosen.
func (p *Pack) Fill(grants []*caps.Grant) (tools []registry.Definition, lacking []string, err error) {
	labels := p.labels(grants)
	granted := len(labels) > 0
	if !granted {
		labels = []string{p.scope}
	}
	all, err := p.list(filling{labels: labels, kind: p.Kind})
	if err != nil {
		return nil, nil, err
	}
	if p.Kind != "kv" { // it has one
		tools := func(label string) (n int) {
			for i := range all {
				if all[i].usable(grants, p.Kind, label) {
					n++
				}
			}
			return n
		}
		slices.SortStableFunc(labels, func(a, b string) int { return tools(b) - tools(a) })
	}
	for i := range all {
		f := filling{labels: labels, kind: p.Kind, several: len(labels) > 1}
		if granted {
			f.labels = slices.DeleteFunc(slices.Clone(labels), func(label string) bool { return !all[i].usable(grants, p.Kind, label) })
		}
		if len(f.labels) == 0 {
			lacking = append(lacking, all[i].Name)
			continue
		}
		list, err := p.list(f)
		if err != nil {
			return nil, nil, err
		}
		t := list[i]
		code, err := f.fill(path.Join(p.Name, t.Name+".pif"))
		if err != nil {
			return nil, nil, err
		}
		schema, err := json.Marshal(struct {
			Type       string          `json:"type"`
			Properties json.RawMessage `json:"properties"`
			Required   []string        `json:"required,omitempty"`
		}{"object", t.Properties, t.Required})
		if err != nil {
			return nil, nil, err
		}
		for k := range t.Examples {
			t.Examples[k].As = "data"
		}
		d := registry.Definition{
			Name: t.Name, Description: t.Description, Text: true, Code: append([]byte(mark+p.Name+".\n"), code...),
			Examples: t.Examples, Input: schema,
		}
		if string(t.Properties) == "{}" {
			d.Input = nil
		}
		for _, name := range t.Calls {
			d.Capabilities = append(d.Capabilities, "call:"+name)
		}
		for _, label := range f.labels {
			if p.Kind == "" {
				break
			}
			d.Capabilities = append(d.Capabilities, caps.Capability{Kind: p.Kind, Verbs: slices.Concat(t.Also, t.Verbs), Scope: label}.String())
		}
		tools = append(tools, d)
	}
	return tools, lacking, nil
}

// A filling is what the templates of a pack are filled with: what tools call the
// scopes that they use, one at least.
type filling struct {
	kind    string
	labels  []string
	several bool // the pack's tools have several, if not this one
}

// fill gives a file of a pack.
func (f filling) fill(name string) ([]byte, error) {
	text, err := files.ReadFile(name)
	if err != nil {
		return nil, err
	}
	t, err := template.New(path.Base(name)).Delims("<%", "%>").Funcs(template.FuncMap{
		"ask":     f.ask,
		"each":    f.each,
		"rest":    f.rest,
		"choice":  f.choice,
		"labels":  func() string { return string(quoted(f.labels)) },
		"quoted":  func() string { return string(quoted(f.labels[0])) },
		"prefix":  func() string { return string(quoted(f.prefix())) },
		"library": prim.LibraryText,
		// Within a string:
		"scope":  func() string { return inString(f.prefix()) },
		"first":  func() string { return inString(strings.ReplaceAll(strings.TrimSuffix(f.labels[0], "/**"), "*", "a")) },
		"scopes": func() string { return inString(strings.Join(f.labels, ", ")) },
	}).Parse(string(text))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, nil); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// quoted is a value as JSON, which is also how the text form writes strings and lists.
var quoted = pifjson.MustEncode

func inString(s string) string { return strings.Trim(string(quoted(s)), `"`) }

// prefix is what the keys of a scope begin with.
func (f filling) prefix() string { return strings.TrimSuffix(f.labels[0], "**") }

// ask is a request of an operation: where there are several grants, of the one that
// the tool's arguments mean.
func (f filling) ask(op, args string) string {
	if len(f.labels) == 1 && !(f.several && f.kind == "fs") {
		return request(op, "", args)
	}
	last := len(f.labels) - 1
	if f.kind == "fetch" {
		last-- // the one after it checks the URL itself
	}
	var b strings.Builder
	for _, label := range f.labels[:last+1] {
		fmt.Fprintf(&b, "if %s then %s else ", f.means(label), request(op, label, args))
	}
	there := string(quoted("; there are " + strings.Join(f.labels, ", ")))
	switch f.kind {
	case "fs":
		fmt.Fprintf(&b, `raise("there is no folder " ++ to_text(a.folder) ++ %s)`, there)
	case "proc":
		fmt.Fprintf(&b, `raise("there is no program " ++ to_text(program) ++ %s)`, there)
	default:
		b.WriteString(request(op, f.labels[last+1], args))
	}
	return "(" + b.String() + ")"
}

// means is the condition that a tool's arguments mean a scope.
func (f filling) means(label string) string {
	name := string(quoted(label))
	switch f.kind {
	case "fs":
		return fmt.Sprintf(`get(a, "folder", %s) == %s`, quoted(f.labels[0]), name)
	case "fetch":
		all := strings.HasSuffix(label, "/**")
		p := regexp.QuoteMeta(strings.TrimSuffix(label, "/**"))
		p = "^" + strings.ReplaceAll(p, `\*`, "[^/]*")
		if all || strings.Count(label, "/") == 2 {
			p += "($|[/?])"
		} else {
			p += `($|\?)`
		}
		return fmt.Sprintf("re_match(a.url, %s)", quoted(p))
	}
	return "program == " + name
}

// request is a request of an operation under one capability of the tool's, named if
// there are several.
func request(op, label, args string) string {
	if label != "" {
		in := "in: " + string(quoted(label))
		if args != "" {
			in += ", "
		}
		args = in + args
	}
	return fmt.Sprintf("!%s({%s})", op, args)
}

// each is what a format makes of each scope and the request of an operation there.
func (f filling) each(format, op string) string {
	all := make([]string, len(f.labels))
	for i, label := range f.labels {
		in := label
		if len(f.labels) == 1 {
			in = ""
		}
		all[i] = fmt.Sprintf(format, quoted(label), request(op, in, ""))
	}
	return strings.Join(all, ", ")
}

// rest is the outcomes, in an example, of such requests but the first: none.
func (f filling) rest(op string) string {
	return strings.Repeat(fmt.Sprintf(`, {"op": %q, "value": []}`, op), len(f.labels)-1)
}

// choice is the property by which a folder is chosen, where there are several.
func (f filling) choice() string {
	if !f.several {
		return ""
	}
	return fmt.Sprintf(`"folder": {"enum": %s, "description": "which folder; the first if left out"}, `, quoted(f.labels))
}
