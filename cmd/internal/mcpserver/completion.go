package mcpserver

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/engine"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/help"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// mostCompleted is how many values the protocol lets one completion have.
const mostCompleted = 100

// complete gives the values that an argument of a prompt, or a part of an address,
// may go on to: those that begin with what there is, then those that have it
// elsewhere, each in order.
func (s *Server) complete(_ context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	ref, arg := req.Params.Ref, req.Params.Argument
	var values []string
	var ok bool
	switch ref.Type {
	case "ref/prompt":
		values, ok = s.promptValues(ref.Name, arg.Name)
	case "ref/resource":
		var given map[string]string
		if req.Params.Context != nil {
			given = req.Params.Context.Arguments
		}
		values, ok = s.addressValues(ref.URI, arg.Name, given)
	}
	if !ok {
		return nil, &jsonrpc.Error{
			Code:    jsonrpc.CodeInvalidParams,
			Message: fmt.Sprintf("%s %q has no argument %q", strings.TrimPrefix(ref.Type, "ref/"), wire.Short([]byte(ref.Name+ref.URI)), wire.Short([]byte(arg.Name))),
		}
	}
	values = matching(values, arg.Value)
	res := &mcp.CompleteResult{}
	res.Completion.Total = len(values)
	if len(values) > mostCompleted {
		values, res.Completion.HasMore = values[:mostCompleted], true
	}
	res.Completion.Values = append([]string{}, values...)
	return res, nil
}

// matching is those of some values that have a text in them, in upper or lower case:
// where they begin with it they come first.
func matching(values []string, text string) []string {
	text = strings.ToLower(text)
	var first, others []string
	for _, v := range values {
		switch lower := strings.ToLower(v); {
		case strings.HasPrefix(lower, text):
			first = append(first, v)
		case strings.Contains(lower, text):
			others = append(others, v)
		}
	}
	return append(first, others...)
}

// promptValues is the values of a prompt's argument; none where nobody knows them.
func (s *Server) promptValues(prompt, argument string) (values []string, ok bool) {
	if p := fixedPrompt(prompt); p != nil {
		for _, a := range p.arguments {
			if a.name == argument {
				if a.complete != nil {
					values = a.complete(s)
				}
				return values, true
			}
		}
		return nil, false
	}
	t, ok := s.Latest().Get(prompt)
	if !ok || t.As != registry.AsPrompt {
		return nil, false
	}
	return nil, slices.ContainsFunc(engine.PromptArguments(t), func(f check.Field) bool { return f.Key == argument })
}

// addressValues is the values of a part of an address, given other parts.
func (s *Server) addressValues(template, part string, given map[string]string) (values []string, ok bool) {
	switch {
	case template == "pif://language/{category}" && part == "category":
		return prim.Groups, true
	case template == "pif://operations/{operation}" && part == "operation":
		return s.operationNames(), true
	case template == "pif://tools/{name}" && part == "name", template == "pif://tools/{name}/{version}" && part == "name":
		return s.toolNames(), true
	case template == "pif://tools/{name}/{version}" && part == "version":
		return s.versions(given["name"]), true
	case template == "pif://published/{name}" && part == "name":
		for _, t := range s.Latest().All() {
			if t.As == registry.AsResource {
				values = append(values, t.Name)
			}
		}
		return values, true
	case template == "pif://journal/{run}" && part == "run":
		return s.recentRuns(), true
	case template == "pif://results/{id}" && part == "id":
		return nil, true // who has one was told it
	}
	return nil, false
}

// toolNames is the tools there are.
func (s *Server) toolNames() []string { return engine.Names(s.Latest()) }

// operationNames is what help explains by name, but for evolved tools.
func (s *Server) operationNames() []string {
	var all []string
	for i := range prim.Table {
		all = append(all, prim.Table[i].Name)
	}
	all = slices.Concat(all, wire.ToolNames(), help.Operations(s.broker.Policy()))
	slices.Sort(all)
	return slices.Compact(all)
}

// versions is the numbers of a tool's versions, the newest first. The name may be
// as an address has it.
func (s *Server) versions(name string) []string {
	if name == "" {
		return nil
	}
	if _, ok := s.Latest().Get(name); !ok {
		if plain, err := url.PathUnescape(name); err == nil {
			name = plain
		}
	}
	changes, _, err := s.tools.History(name, 0, mostCompleted)
	if err != nil {
		s.log.Error("reading a tool's history", "tool", name, "error", err)
		return nil
	}
	var list []string
	for i := range changes {
		if changes[i].Kind != registry.Retired && changes[i].Version > 0 {
			list = append(list, strconv.Itoa(changes[i].Version))
		}
	}
	return list
}

// recentRuns is the runs that began last, the newest first; none where the model may not see the record.
func (s *Server) recentRuns() []string {
	if s.Secretive() != nil {
		return nil
	}
	events, _, err := s.broker.Journal().Read(journal.Query{Kind: journal.RunStarted, Limit: mostCompleted, Last: true})
	if err != nil {
		s.log.Error("reading the journal", "error", err)
		return nil
	}
	var runs []string
	for i := range events {
		runs = append(runs, events[i].Run)
	}
	slices.Reverse(runs)
	return runs
}
