package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/engine"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/help"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
)

// recoverPanics answers a panic anywhere below it, so that no request ends the
// server. It is the outermost middleware.
func (s *Server) recoverPanics(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				s.log.Error("recovered from a panic", "method", method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				res, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error; see the server log"}
			}
		}()
		res, err = next(ctx, method, req)
		return res, coded(err) // over HTTP nothing of ours is behind this
	}
}

// callTool is the name of the one tool that the SDK knows.
const callTool = "call"

// addCallTool has the SDK know that tool; once more, it tells clients that tools changed.
func (s *Server) addCallTool() {
	s.mcp.AddTool(&mcp.Tool{Name: callTool, InputSchema: map[string]any{"type": "object"}}, s.handle)
}

// addHandlers has the SDK know that tool, the prompts and a resource.
func (s *Server) addHandlers() {
	s.addCallTool()
	s.mcp.AddResource(fixedResources[1], s.read)
	for _, t := range resourceTemplates {
		s.mcp.AddResourceTemplate(t, s.read)
	}
	for _, p := range fixedPrompts {
		s.mcp.AddPrompt(p.declare(), s.prompt)
	}
}

// The newest version of the protocol that initialize may settle, and the first that is without it.
const newestHandshake, firstStateless = "2025-11-25", "2026-07-28"

// route sends each request to where it is answered.
func (s *Server) route(next mcp.MethodHandler) mcp.MethodHandler {
	ours := func(ctx context.Context, method, name string, req mcp.Request) (mcp.Result, error) {
		r := &request{name: name}
		res, err := next(context.WithValue(ctx, requestKey{}, r), method, req)
		if err == nil && r.task != nil {
			return r.task, nil
		}
		return res, err
	}
	listTools, listMore, listen := s.inTurn(s.listTools(next)), s.inTurn(s.listMore(next)), s.listening(next)
	complete := s.inTurn(next)
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch r := req.(type) {
		case *mcp.CallToolRequest:
			if r.Params != nil && !s.extra[r.Params.Name] {
				return ours(ctx, method, r.Params.Name, with(r, func(p *mcp.CallToolParamsRaw) { p.Name = callTool }))
			}
		case *mcp.GetPromptRequest:
			if r.Params != nil && s.isPrompt(r.Params.Name) {
				return ours(ctx, method, r.Params.Name, with(r, func(p *mcp.GetPromptParams) { p.Name = fixedPrompts[0].name }))
			}
		case *mcp.ReadResourceRequest:
			if r.Params != nil && strings.HasPrefix(r.Params.URI, wire.Scheme) {
				return ours(ctx, method, r.Params.URI, with(r, func(p *mcp.ReadResourceParams) { p.URI = fixedResources[1].URI }))
			}
			res, err := next(ctx, method, req)
			if absent := new(jsonrpc.Error); r.Params != nil && errors.As(err, &absent) && absent.Message == noResource {
				err = notFound(r.ProtocolVersion(), r.Params.URI) // the SDK has one code for all versions
			}
			return res, err
		case *mcp.ServerRequest[*mcp.InitializeParams]:
			if p := r.Params; p != nil && (p.ProtocolVersion >= firstStateless || !slices.Contains(mcp.SupportedProtocolVersions(), p.ProtocolVersion)) {
				p.ProtocolVersion = newestHandshake // which is what the SDK answers; it goes by what was asked for
			}
			return s.instructed(next(ctx, method, req))
		case *mcp.ListToolsRequest:
			return listTools(ctx, method, req)
		case *mcp.ListResourcesRequest, *mcp.ListPromptsRequest, *mcp.ListResourceTemplatesRequest:
			return listMore(ctx, method, req)
		case *mcp.CompleteRequest:
			return complete(ctx, method, req)
		case *mcp.ServerRequest[*mcp.DiscoverParams]:
			return s.instructed(next(ctx, method, req))
		case *mcp.SubscriptionsListenRequest:
			return listen(ctx, method, req)
		}
		return next(ctx, method, req)
	}
}

// instructed has the answer of initialize or server/discover tell of what is granted now.
func (s *Server) instructed(res mcp.Result, err error) (mcp.Result, error) {
	if err != nil {
		return res, err
	}
	instructions := help.Instructions(s.broker.Policy())
	switch r := res.(type) {
	case *mcp.InitializeResult:
		r.Instructions = instructions
	case *mcp.DiscoverResult:
		r.Instructions = instructions
	}
	return res, nil
}

// metaHops is the member of a call's _meta by which a row of these servers, each the client
// of the next, knows how long it is.
const metaHops = "mcp-pif-hops"

// ArgumentsHeader is the header of a call over HTTP that has its arguments, where whoever serves that moved them
// there; it lets no client set it.
const ArgumentsHeader = "Mcp-Pif-Arguments"

// handle is a call of a tool as MCP has it.
func (s *Server) handle(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	r := requested(ctx)
	if x := req.Extra; x != nil {
		if moved := x.Header[ArgumentsHeader]; len(moved) == 1 && moved[0] != "" {
			r.arguments, moved[0] = []byte(moved[0]), "" // which would be kept twice
		}
	}
	c := Call{Tool: r.name, Arguments: req.Params.Arguments}
	if r.arguments != nil {
		c.Arguments = r.arguments
	}
	if n, ok := req.Params.Meta[metaHops].(float64); ok && n > 0 {
		ctx = run.WithHops(ctx, int(min(n, 1000)))
	}
	if a := arrivalOf(req.Extra); a != nil {
		c.Tools, c.Ticket, c.Arrival = a.tools, a.ticket, a
	}
	if token := req.Params.GetProgressToken(); token != nil && req.Session != nil {
		var end func()
		c.Progress, end = s.notifier(ctx, req.Session, token)
		defer end()
	}
	return s.converse(ctx, req, c)
}

// maxUntold is how many notifications of its progress a call may have that its client hasn't taken.
const maxUntold = 16

// notifier tells a client how a run gets on. What is told last is always further than
// what was told before, as MCP asks: where only an operation has something to say
// that is by a little. A run doesn't wait until its client reads: of what couldn't be told yet the newest is left.
// With end nothing is told any more.
func (s *Server) notifier(ctx context.Context, session *mcp.ServerSession, token any) (tell func(engine.Progress), end func()) {
	const little = 1.0 / 1024
	var (
		mu      sync.Mutex
		last    = -1.0
		untold  []*mcp.ProgressNotificationParams
		over    bool
		sending sync.WaitGroup
		busy    bool
	)
	send := func() {
		for {
			mu.Lock()
			if busy = len(untold) > 0; !busy {
				mu.Unlock()
				return
			}
			n := untold[0]
			untold = untold[1:]
			mu.Unlock()
			if err := session.NotifyProgress(ctx, n); err != nil {
				s.log.Debug("progress not sent", "err", err)
			}
		}
	}
	tell = func(p engine.Progress) {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return
		}
		n := &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(p.Steps), Total: float64(p.Of), Message: p.Message}
		if n.Progress <= last {
			n.Progress = last + little
		}
		last = n.Progress
		switch {
		case p.Message != "":
		case p.Round > 0:
			n.Message = fmt.Sprintf("round %d, %d steps", p.Round, p.Steps)
		default:
			n.Message = fmt.Sprintf("%d steps", p.Steps)
		}
		if len(untold) == maxUntold {
			untold = untold[1:]
		}
		if untold = append(untold, n); !busy {
			busy = true
			sending.Go(send)
		}
	}
	return tell, func() {
		mu.Lock()
		over = true
		mu.Unlock()
		sending.Wait()
	}
}

// quieter is the SDK's log one level down: what it thinks worth telling about
// sessions is for those who debug, and what it calls errors are requests it
// refused.
type quieter struct{ slog.Handler }

func (q quieter) level(l slog.Level) slog.Level { return l - 4 }

func (q quieter) Enabled(ctx context.Context, l slog.Level) bool {
	return q.Handler.Enabled(ctx, q.level(l))
}

func (q quieter) Handle(ctx context.Context, r slog.Record) error {
	r.Level = q.level(r.Level)
	if slips[r.Message] {
		if r.Level = slog.LevelDebug; !q.Handler.Enabled(ctx, r.Level) {
			return nil
		}
	}
	return q.Handler.Handle(ctx, r)
}

// slips is what the SDK logs of requests that it refuses with an answer that says the
// same: a client that sends ping in the newer protocol would write a line each time.
var slips = map[string]bool{
	"server run cancelled":               true, // as who ended it knows
	"method removed in the new protocol": true, "method invalid during initialization": true,
	"duplicate initialize request": true, "initialized before initialize": true, "duplicate initialized notification": true,
}

func (q quieter) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quieter{q.Handler.WithAttrs(attrs)}
}
func (q quieter) WithGroup(name string) slog.Handler { return quieter{q.Handler.WithGroup(name)} }

// inTurn has requests wait for their turn.
func (s *Server) inTurn(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		leave, err := s.turn(ctx, req)
		if err != nil {
			return nil, err
		}
		defer leave()
		return next(ctx, method, req)
	}
}

// turn waits for the turn of a request.
func (s *Server) turn(ctx context.Context, req mcp.Request) (leave func(), err error) {
	a := arrivalOf(req.GetExtra())
	ticket := uint64(0)
	if a != nil {
		ticket = a.ticket
	}
	end, f := s.Turn(ctx, ticket)
	switch {
	case f != nil:
		return nil, &jsonrpc.Error{Code: codeOverloaded, Message: f.Error()}
	case a == nil:
		return end, nil
	}
	return func() { a.WhenAnswered(end) }, nil
}

// codeOverloaded is what standard input and output answer where there is no room, too.
const codeOverloaded = -32000
