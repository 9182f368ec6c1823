package mcpserver

import (
	"context"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/flow"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/elicit"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// converse does a call, and puts its questions to the person.
func (s *Server) converse(ctx context.Context, req *mcp.CallToolRequest, c Call) (*mcp.CallToolResult, error) {
	if req.Params.RequestState != "" {
		if !older(req) {
			if res, err, ok := s.talks.Resume(ctx, req.Params.RequestState, s.who(), c.Tool, c.Arguments, req.Params.InputResponses); ok {
				return res, err
			}
		}
		a := wire.Failed(fault.New(fault.InvalidRequest, "the requestState names no call that waits for this answer: it was answered, it is over, or it isn't of this call").
			Hinted("Call the tool again without requestState and inputResponses."))
		return a.Result(), nil
	}
	if declaresTasks(req.Params.Meta) && !older(req) && s.MayBeTask(&c) {
		return s.asTask(ctx, req, c), nil
	}
	able := req.ClientCapabilities()
	if able == nil || able.Elicitation == nil || able.Elicitation.Form == nil && able.Elicitation.URL != nil || !s.asksAnybody(c.Tool) {
		a := s.Call(ctx, c)
		return a.Result(), nil
	}
	if older(req) {
		a := s.Call(elicit.With(ctx, &elicit.Elicitor{Calls: &s.talks, Put: req.Session.Elicit}), c)
		return a.Result(), nil
	}
	return s.talks.Start(ctx, s.who(), elicit.Digest(c.Tool, c.Arguments), func(under context.Context) wire.Answer { return s.Call(under, c) })
}

// older reports whether a call is of a protocol in which the server asks the client.
func older(req *mcp.CallToolRequest) bool {
	p := req.Session.InitializeParams()
	return p != nil && p.ProtocolVersion < firstStateless
}

// who is whose server this is.
func (s *Server) who() string {
	if c := s.broker.Consents(); c != nil {
		return c.Who
	}
	return ""
}

// asksAnybody reports whether a call of a tool may have a question.
func (s *Server) asksAnybody(tool string) bool {
	if p := s.broker.Policy(); s.opts.Elicit && (tool != "evolve" && len(p.Confirms()) > 0 || (tool == "evolve" || tool == "run") && p.Asking() ||
		s.broker.Flow() != nil && slices.ContainsFunc(s.broker.Flow().Rules, func(r *flow.Rule) bool { return r.Else == flow.Ask })) {
		return true
	}
	return slices.ContainsFunc(s.broker.Policy().Grants(), func(g *caps.Grant) bool { return g.Kind == elicit.Kind })
}
