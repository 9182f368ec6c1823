package mcpserver

import (
	"context"
	"encoding/base64"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps/registry"
)

// The SDK keeps a list of its own, with the fixed tools only: with ten thousand
// evolved ones it would take seconds to fill at the start, and would have to be
// kept in step with what other servers change. What clients are shown is made from
// the registry when they ask.

// mostListed is how many tools a page of tools/list has.
const mostListed = 1000

// listing puts the tools there are in place of the SDK's list: the fixed ones in
// their order, then those evolved by name.
func (s *Server) listing(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		list, ok := req.(*mcp.ListToolsRequest)
		if !ok {
			return next(ctx, method, req)
		}
		params := new(mcp.ListToolsParams)
		if list.Params != nil {
			*params = *list.Params
		}
		after, err := readCursor(params.Cursor)
		if err != nil {
			return nil, err
		}
		first := params.Cursor == ""
		params.Cursor = ""
		// The rest of the answer, which differs by protocol, is the SDK's.
		res, err := next(ctx, method, &mcp.ListToolsRequest{Session: list.Session, Params: params, Extra: list.Extra})
		if page, ok := res.(*mcp.ListToolsResult); ok && err == nil {
			s.page(page, first, after)
		}
		return res, err
	}
}

// page fills a page with the tools after a name, on the first with the fixed ones
// before them.
func (s *Server) page(page *mcp.ListToolsResult, first bool, after string) {
	extras := s.extras(page.Tools)
	page.Tools, page.NextCursor = []*mcp.Tool{}, ""
	page.CacheScope = "private" // tools are a profile's
	if first {
		for i := range fixed {
			page.Tools = append(page.Tools, fixed[i].declare(s.broker.Policy()))
		}
		page.Tools = append(page.Tools, extras...)
	}
	if s.opts.HideEvolved {
		return
	}
	for _, t := range s.latest().All() {
		switch {
		case !first && t.Name <= after || !registry.Listed(t.Name) || t.As != registry.AsTool:
			continue
		case len(page.Tools) >= mostListed:
			page.NextCursor = writeCursor(page.Tools[len(page.Tools)-1].Name)
			return
		}
		page.Tools = append(page.Tools, s.shown(t))
	}
}

// cursorMark tells our cursors from others.
const cursorMark = "after:"

func writeCursor(name string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(cursorMark + name))
}

func readCursor(cursor string) (name string, err error) {
	if cursor == "" {
		return "", nil
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	name, ok := strings.CutPrefix(string(text), cursorMark)
	if err != nil || !ok {
		return "", &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the cursor is none that this server gave"}
	}
	return name, nil
}
