package mcpserver

import (
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/registry"
)

// list shows the evolved tools and the grants, as many as one answer holds.
func (s *Server) list(c Call) Answer {
	a, f := readArguments("list", c.Arguments, "after")
	if f != nil {
		return failed(f)
	}
	after, given, f := a.text("after")
	if f != nil {
		return failed(f)
	}
	tools := c.Tools.All()
	if given {
		i, found := slices.BinarySearchFunc(tools, after, func(t *registry.Tool, name string) int {
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
		o := begin().
			text("name", t.Name).
			number("version", uint64(t.Version)).
			text("description", s.words(t.Description, t.MadeUnder)).
			raw("capabilities", encode(t.Capabilities))
		if t.As != registry.AsTool {
			o = o.text("as", t.As)
		}
		if t.Group != nil {
			o = o.raw("made_with", encode(madeWith(t)))
		}
		if state, why := s.stateOf(t); why != "" {
			o = o.text("state", state).text("why", why)
		} else {
			o = o.text("state", state)
		}
		row := o.end()
		if i > 0 {
			if len(rows)+len(row) > s.limits.Result {
				next = string(begin().text("name", "list").raw("arguments", begin().text("after", tools[i-1].Name).end()).end())
				break
			}
			rows = append(rows, ',')
		}
		rows = append(rows, row...)
	}
	grants, _ := grantsOf(policy)
	o := begin().raw("tools", append(rows, ']')).raw("grants", encode(grants))
	if asks := asksOf(policy); len(asks) > 0 {
		o = o.raw("asks", encode(asks))
	}
	if servers := s.servers(); len(servers) > 0 {
		o = o.raw("servers", encode(servers))
	}
	if secrets := policy.SecretTexts(); len(secrets) > 0 {
		o = o.raw("secrets", encode(secrets))
	}
	if next != "" {
		o = o.number("total", uint64(c.Tools.Len())).raw("next", []byte(next))
	}
	return succeeded(o)
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
