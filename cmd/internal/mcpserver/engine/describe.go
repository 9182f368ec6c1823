package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/facts"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/help"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// describe shows all there is about a tool.
func (s *Engine) Describe(c Call, in wire.DescribeArguments) wire.Answer {
	name, version := string(in.Name), int(in.Version)
	t, current := c.Tools.Get(name)
	if version > 0 && (!current || t.Version != version) {
		old, err := s.tools.Version(registry.Ref{Name: name, Version: version})
		if err != nil {
			return wire.Failed(s.noVersion(name, version, err, c.Tools))
		}
		t, current = old, false
	} else if !current {
		return wire.Failed(s.gone(name, c.Tools))
	}
	if f := s.Tell(t); f != nil {
		return wire.Failed(f)
	}
	o := s.description(t, current, in.Detail, c.Tools)
	if in.Canonical {
		if code := t.Program().Canonical(); wire.DeeperThan(code, wire.MaxDepth) {
			o = o.Text("canonical", string(code)) // many readers of JSON don't take it, as of results
		} else {
			o = o.Raw("canonical", code)
		}
	}
	return wire.Succeeded(o)
}

// description is what describe answers of a version, current or not: what matters for
// using it and for changing it; with detail all there is.
func (s *Engine) description(t *registry.Tool, current, detail bool, tools *registry.Snapshot) wire.Object {
	var notes []string
	state, why := s.StateOf(t)
	next := Suggestion{Call: wire.Begin().Text("name", "history").Raw("arguments", wire.Begin().Text("name", t.Name).End()).End()}
	if current {
		next = s.Suggest(t, tools)
	} else if now, ok := tools.Get(t.Name); ok {
		state, why = "superseded", fmt.Sprintf("version %d is the current one", now.Version)
		next.Call = describing(now)
	} else {
		state, why = "retired", ""
	}
	o := wire.Begin().Text("name", t.Name).Number("version", uint64(t.Version)).Text("state", state)
	if why != "" {
		o = o.Text("why", why)
	}
	usable := t.Unusable() == nil // else nothing is known of it
	if usable {
		o = facts.WithProblems(o, t)
	}
	if o = o.Text("description", inShort(t)); len(t.MadeUnder) > 0 {
		o = o.Raw("made_under", wire.EncodeTexts(t.MadeUnder))
	}
	switch code := t.Shown(); {
	case len(code) > wire.MaxDescribed:
		o = o.Text("text", display.Truncate(code, wire.MaxDescribed))
		notes = append(notes, fmt.Sprintf("the code has %d bytes, of which these are the first", len(code)))
	case !t.Text && json.Valid(code) && !wire.DeeperThan(code, wire.MaxDepth):
		o = o.Raw("code", code)
	default:
		o = o.Text("text", string(code))
	}
	if usable && !detail {
		o = facts.KnownBriefly(o, t)
	} else if o = o.Raw("capabilities", wire.EncodeTexts(t.Capabilities)); t.As != registry.AsTool {
		o = o.Text("as", t.As)
	}
	if detail || !slices.Equal(t.Declared, t.Capabilities) {
		o = o.Raw("declared", wire.EncodeTexts(t.Declared))
	}
	if t.Input != nil {
		o = o.Raw("input_schema", t.InputSchema())
	}
	if uses := t.Uses(); detail || len(uses) > 0 {
		o = o.Raw("bound_to", boundTo(uses))
	}
	if reaches := reachedBy(t); len(reaches) > 0 {
		o = o.Raw("reaches", wire.EncodeTexts(reaches))
	}
	if t.Group != nil {
		o = o.Raw("made_with", wire.EncodeTexts(madeWith(t)))
	}
	if current {
		callers, more := callersOf(t.Name, nil, tools)
		if detail || len(callers) > 0 {
			o = o.Raw("called_by", wire.EncodeTexts(callers))
		}
		if more > 0 {
			notes = append(notes, fmt.Sprintf("%d more tools are bound to it", more))
		}
	}
	examples := wire.Encode(t.Examples)
	switch {
	case len(t.Examples) == 0:
		examples = []byte("[]")
	case len(examples) > wire.MaxDescribed:
		notes = append(notes, fmt.Sprintf("it has %d examples of %d bytes, which are too many to show", len(t.Examples), len(examples)))
		examples = []byte("[]")
	}
	if detail || len(t.Examples) > 0 {
		o = o.Raw("examples", examples)
	}
	if detail {
		o = s.detailed(o, t, current)
	}
	return o.Raw("notes", wire.EncodeTexts(notes)).Call("next", next.Call)
}

// inShort is a tool's description, in one line of that of a tool which has only its code for it.
func inShort(t *registry.Tool) string {
	const longest = 120
	if len(t.Description) <= longest && !strings.Contains(t.Description, "\n") || t.Unusable() != nil || !t.DescribesItself() {
		return t.Description
	}
	code := ""
	for _, part := range text.Parts(t.Description) {
		if part.Class != text.ClassComment {
			code += part.Text
		}
	}
	return display.Truncate(strings.Join(strings.Fields(code), " "), longest)
}

// detailed adds what is of interest to few: how a version came to be, and all that is
// known of it before it runs.
func (s *Engine) detailed(o wire.Object, t *registry.Tool, current bool) wire.Object {
	inputs := t.Program().Params()
	if len(inputs) > mostInputs {
		inputs = append(slices.Clone(inputs[:mostInputs]), "…")
	}
	o = o.Raw("inputs", wire.EncodeTexts(inputs)).Text("hash", t.Hash)
	if !t.Time.IsZero() {
		o = o.Text("time", wire.Instant(t.Time))
	}
	o = o.Raw("check", s.facts.Known(t, current))
	return o
}

// reachedBy is what a version can act with by the tools that it calls, and they call, beside what it holds itself; of calls
// only those of tools whose names are worked out when they run.
func reachedBy(t *registry.Tool) (texts []string) {
	for _, h := range t.Reach()[len(t.Held):] {
		if text := h.String(); (h.Kind != caps.CallKind || strings.Contains(h.Scope, "*")) && !slices.Contains(t.Capabilities, text) {
			texts = append(texts, text)
		}
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

// madeWith is the names of a version's group but its own.
func madeWith(t *registry.Tool) []string {
	var names []string
	for _, m := range t.Group {
		if m.Name != t.Name {
			names = append(names, m.Name)
		}
	}
	return names
}

// boundTo is the versions that names in a tool's code stand for.
func boundTo(uses map[string]*registry.Tool) []byte {
	var list [][]byte
	for _, name := range slices.Sorted(maps.Keys(uses)) {
		list = append(list, wire.Begin().Text("name", name).Number("version", uint64(uses[name].Version)).End())
	}
	return wire.Array(list)
}

// help explains the language, finds operations, and shows a tool.
func (s *Engine) help(c Call, in wire.HelpArguments) wire.Answer {
	switch {
	case in.Search != "":
		return help.Search(s.broker.Policy(), in.Search)
	case in.Name != "":
		evolved := ""
		if t, ok := c.Tools.Get(in.Name); ok {
			call := s.Suggest(t, c.Tools).Call
			if call == nil {
				call = describing(t)
			}
			if f := s.Tell(t); f != nil {
				return wire.Failed(f)
			}
			evolved = fmt.Sprintf("%s (version %d): %s\n  %s\n  code: %s", t.Name, t.Version, t.Description, call, display.Prefix(t.Program().Text(), preview))
		}
		return help.Name(s.broker.Policy(), in.Name, evolved, Names(c.Tools))
	case in.Category != "":
		return help.Category(in.Category)
	}
	return help.Overview()
}

// Known is what is known of a version before it runs, as describe tells it with detail.
func (s *Engine) Known(t *registry.Tool, current bool) json.RawMessage {
	return json.RawMessage(s.facts.Known(t, current))
}

// list shows the evolved tools and the grants, as many as one answer holds.
func (s *Engine) list(c Call, in wire.ListArguments) wire.Answer {
	tools := c.Tools.All()
	if in.After != nil {
		i, found := slices.BinarySearchFunc(tools, *in.After, func(t *registry.Tool, name string) int {
			return strings.Compare(t.Name, name)
		})
		if found {
			i++
		}
		tools = tools[i:]
	}
	policy := s.broker.Policy()
	rows := []byte{'['}
	next := ""
	for i, t := range tools {
		o := wire.Begin().
			Text("name", t.Name).
			Number("version", uint64(t.Version)).
			Text("description", s.Words(inShort(t), t.MadeUnder))
		unseen := s.Unseen(t.MadeUnder)
		if !unseen {
			o = o.Raw("capabilities", wire.Encode(t.Capabilities))
		}
		if t.As != registry.AsTool {
			o = o.Text("as", t.As)
		}
		if t.Group != nil {
			o = o.Raw("made_with", wire.Encode(madeWith(t)))
		}
		if state, why := s.StateOf(t); why != "" && !unseen { // it names what the tool declares
			o = o.Text("state", state).Text("why", why)
		} else {
			o = o.Text("state", state)
		}
		row := o.End()
		if i > 0 {
			if len(rows)+len(row) > s.limits.Result {
				next = string(wire.Begin().Text("name", "list").Raw("arguments", wire.Begin().Text("after", tools[i-1].Name).End()).End())
				break
			}
			rows = append(rows, ',')
		}
		rows = append(rows, row...)
	}
	grants, _ := help.Grants(policy)
	o := wire.Begin().Raw("tools", append(rows, ']')).Raw("grants", wire.Encode(grants))
	if asks := help.Asked(policy); len(asks) > 0 {
		o = o.Raw("asks", wire.Encode(asks))
	}
	if servers := help.Servers(s.broker.Policy()); len(servers) > 0 {
		o = o.Raw("servers", wire.Encode(servers))
	}
	if secrets := policy.SecretTexts(); len(secrets) > 0 {
		o = o.Raw("secrets", wire.Encode(secrets))
	}
	if next != "" {
		o = o.Number("total", uint64(c.Tools.Len())).Raw("next", []byte(next))
	}
	return wire.Succeeded(o)
}
