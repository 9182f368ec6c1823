package mcpserver

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/facts"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/help"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// mostDescribed is how many bytes of a tool's code, and of its examples, a
// description holds.
const mostDescribed = 32 << 10

// mostCallers is how many callers of a tool are named.
const mostCallers = 50

// describe shows all there is about a tool.
func (s *Server) describe(c Call, in wire.DescribeArguments) wire.Answer {
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
	o := s.description(t, current, in.Detail, c.Tools)
	if in.Canonical {
		o = o.Raw("canonical", t.Program().Canonical())
	}
	return wire.Succeeded(o)
}

// description is what describe answers of a version, current or not: what matters for
// using it and for changing it; with detail all there is.
func (s *Server) description(t *registry.Tool, current, detail bool, tools *registry.Snapshot) wire.Object {
	var notes []string
	state, why := s.stateOf(t)
	next := suggestion{call: wire.Begin().Text("name", "history").Raw("arguments", wire.Begin().Text("name", t.Name).End()).End()}
	if current {
		next = s.suggest(t, tools)
	} else if now, ok := tools.Get(t.Name); ok {
		state, why = "superseded", fmt.Sprintf("version %d is the current one", now.Version)
		next.call = describing(now)
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
	s.tell(t)
	if o = o.Text("description", t.Description); len(t.MadeUnder) > 0 {
		o = o.Raw("made_under", wire.EncodeTexts(t.MadeUnder))
	}
	switch code := t.Shown(); {
	case len(code) > mostDescribed:
		o = o.Text("text", wire.Beginning(code, mostDescribed))
		notes = append(notes, fmt.Sprintf("the code has %d bytes, of which these are the first", len(code)))
	case !t.Text && json.Valid(code):
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
	o = withInput(o, t)
	if detail || len(t.Bound) > 0 {
		o = o.Raw("bound_to", boundTo(t))
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
	case len(examples) > mostDescribed:
		notes = append(notes, fmt.Sprintf("it has %d examples of %d bytes, which are too many to show", len(t.Examples), len(examples)))
		examples = []byte("[]")
	}
	if detail || len(t.Examples) > 0 {
		o = o.Raw("examples", examples)
	}
	if detail {
		o = s.detailed(o, t, current)
	}
	return o.Raw("notes", wire.EncodeTexts(notes)).Call("next", next.call)
}

// detailed adds what is of interest to few: how a version came to be, and all that is
// known of it before it runs.
func (s *Server) detailed(o wire.Object, t *registry.Tool, current bool) wire.Object {
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
func boundTo(t *registry.Tool) []byte {
	names := make([]string, 0, len(t.Bound))
	for name := range t.Bound {
		names = append(names, name)
	}
	slices.Sort(names)
	list := []byte{'['}
	for i, name := range names {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, wire.Begin().Text("name", name).Number("version", uint64(t.Bound[name].Version)).End()...)
	}
	return append(list, ']')
}

// callersOf is the current tools that are bound to a version of a tool, and how
// many there are beyond those named; those that are bound to but are left out.
func callersOf(name string, but *registry.Tool, tools *registry.Snapshot) (callers []string, more int) {
	for _, t := range tools.All() {
		if b := t.Bound[name]; b == nil || b == but {
			continue
		}
		if len(callers) == mostCallers {
			more++
			continue
		}
		callers = append(callers, t.Name)
	}
	return callers, more
}

// noVersion is the fault of a version that can't be had.
func (s *Server) noVersion(name string, version int, err error, tools *registry.Snapshot) *fault.Fault {
	changes, _, herr := s.tools.History(name, 0, 1)
	if herr != nil || len(changes) == 0 {
		return noTool(name, tools)
	}
	f := *wire.AsFault(err)
	f.Hint = fmt.Sprintf("Call %s to see the versions there are.", wire.Begin().Text("name", "history").Raw("arguments", wire.Begin().Text("name", name).End()).End())
	if f.Kind != fault.OutOfRange {
		s.log.Error("a version can't be had", "tool", name, "version", version, "error", err)
		f.Message = fmt.Sprintf("version %d of %q can't be made from what is on record", version, wire.Short([]byte(name)))
	}
	return &f
}

// help explains the language, finds operations, and shows a tool.
func (s *Server) help(c Call, in wire.HelpArguments) wire.Answer {
	switch {
	case in.Search != "":
		return help.Search(s.broker.Policy(), in.Search)
	case in.Name != "":
		evolved := ""
		if t, ok := c.Tools.Get(in.Name); ok {
			call := s.suggest(t, c.Tools).call
			if call == nil {
				call = describing(t)
			}
			s.tell(t)
			evolved = fmt.Sprintf("%s (version %d): %s\n  %s\n  code: %s", t.Name, t.Version, t.Description, call, wire.Cut(t.Program().Canonical(), preview))
		}
		return help.Name(s.broker.Policy(), in.Name, evolved, names(c.Tools))
	case in.Category != "":
		return help.Category(in.Category)
	}
	return help.All()
}

// Known is what is known of a version before it runs, as describe tells it with detail.
func (s *Server) Known(t *registry.Tool, current bool) json.RawMessage {
	return json.RawMessage(s.facts.Known(t, current))
}

// list shows the evolved tools and the grants, as many as one answer holds.
func (s *Server) list(c Call, in wire.ListArguments) wire.Answer {
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
			Text("description", s.words(t.Description, t.MadeUnder)).
			Raw("capabilities", wire.Encode(t.Capabilities))
		if t.As != registry.AsTool {
			o = o.Text("as", t.As)
		}
		if t.Group != nil {
			o = o.Raw("made_with", wire.Encode(madeWith(t)))
		}
		if state, why := s.stateOf(t); why != "" {
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
	grants, _ := grantsOf(policy)
	o := wire.Begin().Raw("tools", append(rows, ']')).Raw("grants", wire.Encode(grants))
	if asks := asksOf(policy); len(asks) > 0 {
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

// asksOf is those of the grants that the user approves for each tool.
func asksOf(policy *caps.Policy) (texts []string) {
	for _, g := range policy.Grants() {
		if g.Asked && !g.Revoked() && g.Manifest.Server == "" {
			texts = append(texts, g.Shown().String())
		}
	}
	return texts
}

// grantsOf is what tools may declare, as they say it. That of MCP servers is apart: a grant
// may have a hundred verbs, and help has them.
func grantsOf(policy *caps.Policy) (texts, ofServers []string) {
	texts = []string{}
	for _, g := range policy.Grants() {
		switch text := g.Shown().String(); {
		case g.Revoked():
		case g.Manifest.Server != "":
			ofServers = append(ofServers, text)
		default:
			texts = append(texts, text)
		}
	}
	return texts, ofServers
}
