package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/engine"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/help"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// What a server has to read, by address. Whoever can read it could have asked a
// tool for the same: describe, journal, help, list. A name in an address is
// percent-encoded, and is looked up among names: there are no folders that one
// could get out of.

// mostURI is how long an address may be, in bytes: that of a tool with the longest
// name, every byte of it encoded, is shorter.
const mostURI = 1024

// resourceTemplates is the addresses with a part to fill in.
var resourceTemplates = []*mcp.ResourceTemplate{
	{URITemplate: "pif://journal/{run}", Name: "run", Title: "A run", MIMEType: jsonText,
		Description: "The events of a run: what it was given, each effect asked for, denied or done, how it ended. {?after} goes on after the event of that number."},
	{URITemplate: "pif://language/{category}", Name: "category", Title: "A category of operations", MIMEType: plainText,
		Description: "The operations of PIF of one category, with examples that run."},
	{URITemplate: "pif://operations/{operation}", Name: "operation", Title: "An operation", MIMEType: plainText,
		Description: "One operation of PIF, or of a capability, or one of the server's own tools, with examples."},
	{URITemplate: "pif://published/{name}", Name: "published", Title: "What a tool publishes", MIMEType: plainText,
		Description: "What an evolved tool gives that was published as a resource: it is run when this is read."},
	{URITemplate: "pif://results/{id}", Name: "result", Title: "A large result", MIMEType: plainText,
		Description: "A result that was too large to show, whole or in parts: {?from} begins at that byte, and _meta says what follows."},
	{URITemplate: "pif://tools/{name}", Name: "tool", Title: "A tool", MIMEType: jsonText,
		Description: "All there is about an evolved tool: code, state, capabilities, examples, what it calls."},
	{URITemplate: "pif://tools/{name}/{version}", Name: "version", Title: "A version of a tool", MIMEType: jsonText,
		Description: "The same of one of its versions, also of a tool that was retired."},
}

// fixedResources is the addresses that are always there, in the order of a list.
var fixedResources = []*mcp.Resource{
	{URI: capabilitiesURI, Name: "capabilities", Title: "What tools may be granted", MIMEType: jsonText,
		Description: "What the operator grants, and the operations that come with it."},
	{URI: "pif://language", Name: "language", Title: "PIF, the language", MIMEType: plainText,
		Description: "How to write a tool: the authoring card, then every operation in a line."},
	{URI: wire.Scheme + "server", Name: "server", Title: "This server", MIMEType: jsonText,
		Description: "Its version, limits, profile, grants, sandbox and uptime, and how many tools and calls there are."},
}

// An address is one of ours, taken apart.
type address struct {
	parts []string // decoded; the first says what it is of
	query url.Values
}

// parseAddress takes an address apart; false where it can't be one of ours.
func parseAddress(uri string) (a address, ok bool) {
	rest, ours := strings.CutPrefix(uri, wire.Scheme)
	if !ours || len(uri) > mostURI || strings.Contains(rest, "#") {
		return a, false
	}
	path, query, _ := strings.Cut(rest, "?")
	var err error
	if a.query, err = url.ParseQuery(query); err != nil {
		return a, false
	}
	for _, part := range strings.Split(path, "/") {
		part, err := url.PathUnescape(part)
		if err != nil || part == "" || !utf8.ValidString(part) {
			return a, false
		}
		a.parts = append(a.parts, part)
	}
	return a, true
}

// number reads one that the query has; 0 where it has none.
func (a *address) number(name string) (n uint64, ok bool) {
	text := a.query.Get(name)
	if text == "" {
		return 0, true
	}
	n, err := strconv.ParseUint(text, 10, 63)
	return n, err == nil
}

// noResource is what the SDK, and so we, say of an address where nothing is.
const noResource = "Resource not found"

// notFound is the protocol's error for what isn't there: its code is another one
// since 2026-07-28.
func notFound(version, uri string) error {
	code := int64(jsonrpc.CodeInvalidParams)
	if version < firstStateless {
		code = -32002
	}
	shown := display.Truncate([]byte(strings.ToValidUTF8(uri, "\uFFFD")), mostURI)
	return &jsonrpc.Error{Code: code, Message: noResource, Data: json.RawMessage(wire.Begin().Text("uri", shown).End())}
}

// read gives what is at an address.
func (s *Server) read(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := requested(ctx).name
	a, ok := parseAddress(uri)
	if !ok {
		return nil, notFound(req.ProtocolVersion(), uri)
	}
	var all []*mcp.ResourceContents
	var err error
	if len(a.parts) == 2 && a.parts[0] == "published" && len(a.query) == 0 {
		all, err = s.publishedContent(ctx, a.parts[1])
	} else {
		var large wire.Large
		if len(a.parts) == 2 && a.parts[0] == "results" { // a run may be done again for it, for which no turn waits
			var instead *wire.Answer
			if large, instead, _ = s.Result(ctx, a.parts[1]); instead != nil && instead.Fault != nil && !instead.IsSealed {
				return nil, promptError(codeOverloaded, instead.Fault)
			}
		}
		leave, full := s.turn(ctx, req)
		if full != nil {
			return nil, full
		}
		defer leave()
		if c := s.content(a, large); c != nil {
			all = append(all, c)
		}
	}
	if err != nil {
		return nil, err
	}
	if all == nil {
		return nil, notFound(req.ProtocolVersion(), uri)
	}
	for _, c := range all {
		c.URI = cmp.Or(c.URI, uri)
	}
	res := &mcp.ReadResourceResult{Contents: all}
	res.CacheScope = "private"
	if a.parts[0] == "language" {
		res.CacheScope, res.TTLMs = "public", unchanging
	}
	return res, nil
}

// content is what is at an address, of a result if it is one's; nil where there is nothing.
func (s *Server) content(a address, large wire.Large) *mcp.ResourceContents {
	kind, rest := a.parts[0], a.parts[1:]
	if len(a.query) > 0 && kind != "results" && kind != "journal" {
		return nil
	}
	switch {
	case kind == "language" && len(rest) == 0:
		return textOf(help.All())
	case kind == "language" && len(rest) == 1:
		return textOf(help.Category(rest[0]))
	case kind == "operations" && len(rest) == 1:
		return textOf(help.Name(s.broker.Policy(), rest[0], "", nil))
	case kind == "capabilities" && len(rest) == 0:
		return &mcp.ResourceContents{MIMEType: jsonText, Text: string(s.capabilities())}
	case kind == "server" && len(rest) == 0:
		return &mcp.ResourceContents{MIMEType: jsonText, Text: string(s.about())}
	case kind == "tools" && len(rest) == 1:
		return s.toolContent(rest[0], 0)
	case kind == "tools" && len(rest) == 2:
		version, err := strconv.ParseUint(rest[1], 10, 31)
		if err != nil || version == 0 || rest[1] != strconv.FormatUint(version, 10) {
			return nil
		}
		return s.toolContent(rest[0], version)
	case kind == "journal" && len(rest) == 1:
		return s.runContent(rest[0], a)
	case kind == "results" && len(rest) == 1:
		return resultContent(rest[0], a, large)
	}
	return nil
}

// about is what there is to say of the server itself.
func (s *Server) about() []byte {
	grants, ofServers := help.Grants(s.broker.Policy())
	states := map[string]int{registry.StateReady: 0}
	for _, t := range s.Latest().All() {
		state, _ := registry.StateOf(t, s.broker.Policy())
		states[state]++
	}
	return wire.Encode(struct {
		Name     string         `json:"name"`
		Version  string         `json:"version"`
		Profile  string         `json:"profile,omitempty"`
		UptimeMS int64          `json:"uptime_ms"`
		Limits   map[string]any `json:"limits"`
		Grants   []string       `json:"grants"`
		Sandbox  []string       `json:"sandbox,omitempty"`
		Tools    map[string]int `json:"tools"`
		Calls    uint64         `json:"calls"`
	}{
		cmp.Or(s.opts.Name, "mcp-pif"), s.opts.Version, s.opts.Profile, time.Since(s.started).Milliseconds(),
		map[string]any{
			"steps": s.limits.MaxSteps, "memory": s.limits.MaxMemory, "depth": s.limits.MaxDepth, "timeout_ms": s.limits.Timeout.Milliseconds(),
			"result": s.limits.Result, "runs": s.limits.Runs, "waiting": s.limits.Waiting,
		},
		append(grants, ofServers...), s.opts.Sandbox, states, s.Calls(),
	})
}

// textOf is an answer of help; nothing where it failed.
func textOf(a wire.Answer) *mcp.ResourceContents {
	if a.Fault != nil {
		return nil
	}
	return &mcp.ResourceContents{MIMEType: plainText, Text: a.Text}
}

// objectOf is an answer that is an object; nothing where it failed.
func objectOf(a wire.Answer) *mcp.ResourceContents {
	if a.Fault != nil {
		return nil
	}
	return &mcp.ResourceContents{MIMEType: jsonText, Text: string(a.Structured)}
}

// toolContent is what describe says with detail; version 0 is the current one.
func (s *Server) toolContent(name string, version uint64) *mcp.ResourceContents {
	return objectOf(s.Describe(Call{Tools: s.Latest()}, wire.DescribeArguments{Name: wire.ToolName(name), Version: wire.Count(version), Detail: true}))
}

// runContent is what journal says of a run from its beginning, or from an event on.
func (s *Server) runContent(run string, a address) *mcp.ResourceContents {
	after, ok := a.number("after")
	if !ok {
		return nil
	}
	answer := s.Journal(Call{}, wire.JournalArguments{Run: run, After: (*wire.Number)(&after), Limit: engine.MaxEvents})
	var shown struct {
		Events []struct{ Seq uint64 }
		Next   json.RawMessage
	}
	if answer.Fault != nil || json.Unmarshal(answer.Structured, &shown) != nil || len(shown.Events) == 0 {
		return nil
	}
	c := objectOf(answer)
	if shown.Next != nil {
		c.Meta = mcp.Meta{"next": fmt.Sprintf("%sjournal/%s?after=%d", wire.Scheme, url.PathEscape(run), shown.Events[len(shown.Events)-1].Seq)}
	}
	return c
}

// resultContent is a large result, or as much of it as fits from a place on.
func resultContent(id string, a address, k wire.Large) *mcp.ResourceContents {
	from, ok := a.number("from")
	if !ok || k.Shown == nil || from > uint64(len(k.Shown)) {
		return nil
	}
	text, at := k.Part(int64(from), mostRead)
	c := &mcp.ResourceContents{MIMEType: plainText, Text: text, Meta: mcp.Meta{"from": at, "total": k.Total}}
	switch end := at + int64(len(text)); {
	case end < int64(len(k.Shown)):
		c.Meta["next"] = fmt.Sprintf("%s?from=%d", wire.ResultURI(id), end)
	case at == 0 && end == k.Total && !k.Text:
		c.MIMEType = jsonText
	}
	return c
}

// mostRead is how much of a large result one read gives, in bytes: within what
// clients take as one message, however it has to be escaped.
const mostRead = 1 << 20

// capabilities is what is granted, and what can be done with it.
func (s *Server) capabilities() []byte {
	policy := s.broker.Policy()
	grants, _ := help.Grants(policy)
	o := wire.Begin().Raw("grants", wire.Encode(grants))
	if secrets := policy.SecretTexts(); len(secrets) > 0 {
		o = o.Raw("secrets", wire.Encode(secrets))
	}
	if servers := help.Servers(s.broker.Policy()); len(servers) > 0 {
		o = o.Raw("servers", wire.Encode(servers))
	}
	granted := map[string]bool{}
	for _, g := range policy.Grants() {
		if !g.Revoked() && g.Manifest.Server == "" {
			granted[g.Kind] = true
		}
	}
	ops := []byte{'['}
	kinds := policy.Kinds()
	for _, kind := range slices.Sorted(maps.Keys(granted)) {
		m := kinds[kind]
		if m == nil {
			continue
		}
		for i := range m.Operations {
			if len(ops) > 1 {
				ops = append(ops, ',')
			}
			var b strings.Builder
			help.Explain(&b, m, &m.Operations[i])
			ops = append(ops, wire.Begin().Text("name", m.Operations[i].Name).Text("help", b.String()).End()...)
		}
	}
	return o.Raw("operations", append(ops, ']')).End()
}

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
			req = with(list, func(p *mcp.ListResourcesParams) { cursor, p.Cursor = p.Cursor, "" })
		case *mcp.ListPromptsRequest:
			req = with(list, func(p *mcp.ListPromptsParams) { cursor, p.Cursor = p.Cursor, "" })
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
		}
		return res, nil
	}
}

// pageResources fills a page: first the addresses that are always there, then those
// of what is published, then those of the tools, each by name.
func (s *Server) pageResources(page *mcp.ListResourcesResult, first bool, after string) {
	extras := slices.DeleteFunc(slices.Clone(page.Resources), func(r *mcp.Resource) bool { return strings.HasPrefix(r.URI, wire.Scheme) })
	page.Resources, page.NextCursor, page.CacheScope = []*mcp.Resource{}, "", "private"
	if first {
		page.Resources = append(append(page.Resources, fixedResources...), extras...)
		for _, c := range prim.Groups {
			page.Resources = append(page.Resources, &mcp.Resource{
				URI: wire.Scheme + "language/" + url.PathEscape(c), Name: c, Title: "PIF: " + c, MIMEType: plainText,
			})
		}
	}
	tools := s.Latest().All()
	add := func(mark string, t *registry.Tool, r *mcp.Resource) (full bool) {
		if mark+t.Name <= after {
			return false
		}
		if len(page.Resources) >= mostListed {
			page.NextCursor = writeCursor(s.lastListed(page.Resources))
			return true
		}
		r.Name, r.Title, r.Description = t.Name, titled(t.Name), wire.Excerpt([]byte(s.Words(t.Description, t.MadeUnder)), mostListedText)
		page.Resources = append(page.Resources, r)
		return false
	}
	for _, t := range tools {
		if t.As != registry.AsResource {
			continue
		}
		r := &mcp.Resource{URI: wire.PublishedURI(t.Name)}
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
		if add(markTool, t, &mcp.Resource{URI: wire.ToolURI(t.Name), MIMEType: jsonText}) {
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
	case strings.HasPrefix(last.URI, wire.ToolURI("")):
		return markTool + last.Name
	case strings.HasPrefix(last.URI, wire.PublishedURI("")):
		return markPublished + last.Name
	}
	return ""
}

// pagePrompts fills a page: first the prompts that are always there, then those
// evolved by name.
func (s *Server) pagePrompts(page *mcp.ListPromptsResult, first bool, after string) {
	extras := slices.DeleteFunc(slices.Clone(page.Prompts), func(p *mcp.Prompt) bool { return fixedPrompt(p.Name) != nil })
	page.Prompts, page.NextCursor, page.CacheScope = []*mcp.Prompt{}, "", "private"
	if first {
		for i := range fixedPrompts {
			page.Prompts = append(page.Prompts, fixedPrompts[i].declare())
		}
		page.Prompts = append(page.Prompts, extras...)
	}
	for _, t := range s.Latest().All() {
		switch {
		case t.As != registry.AsPrompt || fixedPrompt(t.Name) != nil || !first && t.Name <= after:
			continue
		case len(page.Prompts) >= mostListed:
			page.NextCursor = writeCursor(page.Prompts[len(page.Prompts)-1].Name)
			return
		}
		p := publishedPrompt(t)
		if p.Description = s.Words(p.Description, t.MadeUnder); s.Unseen(t.MadeUnder) {
			for _, a := range p.Arguments {
				a.Description = ""
			}
		}
		page.Prompts = append(page.Prompts, p)
	}
}

// mostListedText is how much of a tool's description a list of addresses shows.
const mostListedText = 120

// Clients may watch the addresses of tools and of what is granted. Nothing else
// that has an address changes, but for what tools publish: nobody knows when that
// does.

// capabilitiesURI is the address of what is granted.
const capabilitiesURI = wire.Scheme + "capabilities"
