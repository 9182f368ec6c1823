package mcpserver

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"weak"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
)

// The SDK keeps a list of its own, with the fixed tools only: with ten thousand
// evolved ones it would take seconds to fill at the start, and would have to be
// kept in step with what other servers change. What clients are shown is made from
// the registry when they ask.

// mostListed is how many tools a page of tools/list has.
const mostListed = 1000

// listTools puts the tools there are in place of the SDK's list: the fixed ones in
// their order, then those evolved by name.
func (s *Server) listTools(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		cursor := ""
		req = with(req.(*mcp.ListToolsRequest), func(p *mcp.ListToolsParams) { cursor, p.Cursor = p.Cursor, "" })
		after, err := readCursor(cursor)
		if err != nil {
			return nil, err
		}
		// The rest of the answer, which differs by protocol, is the SDK's.
		res, err := next(ctx, method, req)
		page, ok := res.(*mcp.ListToolsResult)
		if !ok || err != nil {
			return res, err
		}
		return s.fill(page, cursor == "", after), nil
	}
}

// maxListed is how many pages are kept: as many as there are of the most tools, and some for cursors made up.
const maxListed = 16

// fill fills a page, with what was made for the one before where no tool and no grant changed since.
func (s *Server) fill(page *mcp.ListToolsResult, first bool, after string) *encodedPage {
	cursor := ""
	if !first {
		cursor = writeCursor(after)
	}
	tools, changes := s.Latest(), s.broker.Policy().Changes()
	under, err := s.broker.Shown()
	s.pages.Lock()
	l := s.pages.of[cursor].Value()
	s.pages.Unlock()
	if l == nil || err != nil || l.tools != tools || l.changes != changes || !slices.Equal(l.under, under) || s.extra != nil {
		s.page(page, tools, first, after)
		l = &listPage{tools, changes, under, wire.Encode(page.Tools), page.NextCursor}
		s.pages.Lock()
		if s.pages.of == nil || len(s.pages.of) >= maxListed {
			s.pages.of = map[string]weak.Pointer[listPage]{}
		}
		s.pages.of[cursor] = weak.Make(l)
		s.pages.Unlock()
	}
	page.Tools, page.NextCursor, page.CacheScope = []*mcp.Tool{}, l.next, "private" // tools are a profile's
	return &encodedPage{page, l}
}

// An encodedPage is a page whose tools are encoded already.
type encodedPage struct {
	*mcp.ListToolsResult
	made *listPage
}

// MarshalJSON implements [json.Marshaler].
func (p *encodedPage) MarshalJSON() ([]byte, error) {
	text, err := json.Marshal(p.ListToolsResult)
	empty := []byte("[]}")
	if err == nil && !bytes.HasSuffix(text, empty) {
		return nil, errors.New("the tools of a page aren't its last member")
	}
	return slices.Concat(bytes.TrimSuffix(text, empty), p.made.text, []byte("}")), err
}

// page fills a page with the tools after a name, on the first with the fixed ones
// before them.
func (s *Server) page(page *mcp.ListToolsResult, tools *registry.Snapshot, first bool, after string) {
	extras := s.extras(page.Tools)
	page.Tools, page.NextCursor = []*mcp.Tool{}, ""
	if first {
		for i := range wire.Tools {
			page.Tools = append(page.Tools, wire.Tools[i].Declare(s.broker.Policy()))
		}
		page.Tools = append(page.Tools, extras...)
	}
	if s.opts.HideEvolved {
		return
	}
	for _, t := range tools.All() {
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
	if err != nil || !ok || len(cursor) > mostURI { // pages are kept by cursor
		return "", &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the cursor is none that this server gave"}
	}
	return name, nil
}

const (
	evolvedOutput = `{"type":"object","properties":{"result":`
	evolvedRest   = `,"type":{"type":"string"},"steps":{"type":"integer"},"notes":{"type":"array","items":{"type":"string"}},` +
		`"next":{"type":"object"},"text":{"type":"string"},"preview":{"type":"string"},"uri":{"type":"string"},"error":{"type":"object"}}}`
)

// shown is an evolved tool as clients see it.
func (s *Server) shown(t *registry.Tool) *mcp.Tool {
	flags := caps.Annotations(t.Reach())
	if t.Late() {
		flags = caps.Worst(flags, wire.Worst(s.broker.Policy()))
	}
	annotations := wire.Annotated(flags)
	return &mcp.Tool{
		Name:        t.Name,
		Title:       titled(t.Name),
		Description: s.Words(t.Description, t.MadeUnder),
		InputSchema: s.Shape(t.InputSchema(), t.MadeUnder),
		// Nothing in it is required: a result that is too large, or that readers of JSON don't
		// take, is there in another way, and clients may hold failures to it, too.
		OutputSchema: s.Shape(slices.Concat([]byte(evolvedOutput), t.OutputSchema(), []byte(evolvedRest)), t.MadeUnder),
		Annotations:  &annotations,
	}
}
