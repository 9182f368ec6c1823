package mcpserver

import (
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/help"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
)

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
