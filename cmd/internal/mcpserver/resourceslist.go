package mcpserver

import (
	"context"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// unchanging is how long what only another version of this program changes may be
// taken from a cache, in milliseconds. What the next call may change has no time:
// its reader would miss its own evolve.
const unchanging = 3_600_000

// listMore puts the resources and prompts there are in place of the SDK's lists,
// page by page, as listTools does with tools.
func (s *Server) listMore(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		cursor := ""
		switch list := req.(type) {
		case *mcp.ListResourcesRequest:
			params := new(mcp.ListResourcesParams)
			if list.Params != nil {
				*params = *list.Params
			}
			cursor, params.Cursor = params.Cursor, ""
			req = &mcp.ListResourcesRequest{Session: list.Session, Params: params, Extra: list.Extra}
		case *mcp.ListPromptsRequest:
			params := new(mcp.ListPromptsParams)
			if list.Params != nil {
				*params = *list.Params
			}
			cursor, params.Cursor = params.Cursor, ""
			req = &mcp.ListPromptsRequest{Session: list.Session, Params: params, Extra: list.Extra}
		}
		after, err := readCursor(cursor)
		if err != nil {
			return nil, err
		}
		res, err := next(ctx, method, req)
		if err != nil {
			return res, err
		}
		switch page := res.(type) {
		case *mcp.ListResourcesResult:
			s.pageResources(page, cursor == "", after)
		case *mcp.ListPromptsResult:
			s.pagePrompts(page, cursor == "", after)
		case *mcp.ListResourceTemplatesResult:
			page.CacheScope, page.TTLMs = "public", unchanging
		case *mcp.DiscoverResult:
			page.CacheScope, page.TTLMs = "public", unchanging
		}
		return res, nil
	}
}

// pageResources fills a page: first the addresses that are always there, then those
// of what is published, then those of the tools, each by name.
func (s *Server) pageResources(page *mcp.ListResourcesResult, first bool, after string) {
	var extras []*mcp.Resource
	for _, r := range page.Resources {
		if !strings.HasPrefix(r.URI, scheme) {
			extras = append(extras, r)
		}
	}
	page.Resources, page.NextCursor, page.CacheScope = []*mcp.Resource{}, "", "private"
	if first {
		page.Resources = append(append(page.Resources, fixedResources...), extras...)
		for _, c := range prim.Groups {
			page.Resources = append(page.Resources, &mcp.Resource{
				URI: scheme + "language/" + url.PathEscape(c), Name: c, Title: "PIF: " + c, MIMEType: plainText,
			})
		}
	}
	tools := s.latest().All()
	add := func(mark string, t *registry.Tool, r *mcp.Resource) (full bool) {
		if mark+t.Name <= after {
			return false
		}
		if len(page.Resources) >= mostListed {
			page.NextCursor = writeCursor(s.lastListed(page.Resources))
			return true
		}
		r.Name, r.Title, r.Description = t.Name, titled(t.Name), wire.Excerpt([]byte(s.words(t.Description, t.MadeUnder)), mostListedText)
		page.Resources = append(page.Resources, r)
		return false
	}
	for _, t := range tools {
		if t.As != registry.AsResource {
			continue
		}
		r := &mcp.Resource{URI: publishedURI(t.Name)}
		if t.GivesText() {
			r.MIMEType = plainText // else its result says it
		}
		if add(markPublished, t, r) {
			return
		}
	}
	if s.opts.HideEvolved {
		return
	}
	for _, t := range tools {
		if add(markTool, t, &mcp.Resource{URI: toolURI(t.Name), MIMEType: jsonText}) {
			return
		}
	}
}

// What a cursor says before a name, in the order of the list.
const (
	markPublished = "p"
	markTool      = "t"
)

// lastListed is the last of a page as a cursor has it; "" where all of it is always
// there.
func (s *Server) lastListed(page []*mcp.Resource) string {
	switch last := page[len(page)-1]; {
	case strings.HasPrefix(last.URI, toolURI("")):
		return markTool + last.Name
	case strings.HasPrefix(last.URI, publishedURI("")):
		return markPublished + last.Name
	}
	return ""
}

// pagePrompts fills a page: first the prompts that are always there, then those
// evolved by name.
func (s *Server) pagePrompts(page *mcp.ListPromptsResult, first bool, after string) {
	var extras []*mcp.Prompt
	for _, p := range page.Prompts {
		if fixedPrompt(p.Name) == nil {
			extras = append(extras, p)
		}
	}
	page.Prompts, page.NextCursor, page.CacheScope = []*mcp.Prompt{}, "", "private"
	if first {
		for i := range fixedPrompts {
			page.Prompts = append(page.Prompts, fixedPrompts[i].declare())
		}
		page.Prompts = append(page.Prompts, extras...)
	}
	for _, t := range s.latest().All() {
		switch {
		case t.As != registry.AsPrompt || fixedPrompt(t.Name) != nil || !first && t.Name <= after:
			continue
		case len(page.Prompts) >= mostListed:
			page.NextCursor = writeCursor(page.Prompts[len(page.Prompts)-1].Name)
			return
		}
		p := publishedPrompt(t)
		if p.Description = s.words(p.Description, t.MadeUnder); s.unseen(t.MadeUnder) {
			for _, a := range p.Arguments {
				a.Description = ""
			}
		}
		page.Prompts = append(page.Prompts, p)
	}
}

// mostListedText is how much of a tool's description a list of addresses shows.
const mostListedText = 120

// titled is a name as people read it: "word_count" is "Word count".
func titled(name string) string {
	words := strings.TrimSpace(strings.NewReplacer("_", " ", "-", " ", ".", " ").Replace(name))
	if words == "" || words[0] < 'a' || words[0] > 'z' {
		return words
	}
	return strings.ToUpper(words[:1]) + words[1:]
}
