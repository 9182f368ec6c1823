package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/core/fault"
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
		return next(ctx, method, req)
	}
}

// A request is what a client asks for by a name of ours. The SDK must handle it, since only
// it can say in the newer protocol that a result is complete; but a tool can be called that
// no list shows, and a call sees the tools there were when it arrived. So the SDK knows one
// tool, one prompt and one resource, and the handlers of these find the request in the
// context.
type request struct {
	name string     // of the tool or the prompt, or the address of the resource
	task mcp.Result // the answer in place of what the handler returns; nil: that
}

type requestKey struct{}

// requested is the request that the SDK handles.
func requested(ctx context.Context) *request { return ctx.Value(requestKey{}).(*request) }

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
	listTools, listMore, listen := s.inTurn(s.listTools(next)), s.listMore(next), s.listening(next)
	listMoreInTurn := s.inTurn(listMore)
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch r := req.(type) {
		case *mcp.CallToolRequest:
			if r.Params != nil && !s.extra[r.Params.Name] {
				params := *r.Params
				params.Name = callTool
				return ours(ctx, method, r.Params.Name, &mcp.CallToolRequest{Session: r.Session, Params: &params, Extra: r.Extra})
			}
		case *mcp.GetPromptRequest:
			if r.Params != nil && s.isPrompt(r.Params.Name) {
				params := *r.Params
				params.Name = fixedPrompts[0].name
				return ours(ctx, method, r.Params.Name, &mcp.GetPromptRequest{Session: r.Session, Params: &params, Extra: r.Extra})
			}
		case *mcp.ReadResourceRequest:
			if r.Params != nil && strings.HasPrefix(r.Params.URI, scheme) {
				params := *r.Params
				params.URI = fixedResources[1].URI
				return ours(ctx, method, r.Params.URI, &mcp.ReadResourceRequest{Session: r.Session, Params: &params, Extra: r.Extra})
			}
			res, err := next(ctx, method, req)
			if absent := new(jsonrpc.Error); r.Params != nil && errors.As(err, &absent) && absent.Message == noResource {
				err = notFound(r.ProtocolVersion(), r.Params.URI) // the SDK has one code for all versions
			}
			return res, err
		case *mcp.ListToolsRequest:
			return listTools(ctx, method, req)
		case *mcp.ListResourcesRequest, *mcp.ListPromptsRequest, *mcp.ListResourceTemplatesRequest:
			return listMoreInTurn(ctx, method, req)
		case *mcp.DiscoverRequest:
			return listMore(ctx, method, req)
		case *mcp.SubscriptionsListenRequest:
			return listen(ctx, method, req)
		}
		return next(ctx, method, req)
	}
}

// metaHops is the member of a call's _meta by which a row of these servers, each the client
// of the next, knows how long it is.
const metaHops = "mcp-pif-hops"

// handle is a call of a tool as MCP has it.
func (s *Server) handle(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	c := Call{Tool: requested(ctx).name, Arguments: req.Params.Arguments}
	if n, ok := req.Params.Meta[metaHops].(float64); ok && n > 0 {
		ctx = run.WithHops(ctx, int(min(n, 1000)))
	}
	if a := arrivalOf(req.Extra); a != nil {
		c.Tools, c.ticket, c.arrival = a.tools, a.ticket, a
	}
	if token := req.Params.GetProgressToken(); token != nil && req.Session != nil {
		c.Progress = s.notifier(ctx, req.Session, token)
	}
	return s.converse(ctx, req, c)
}

// notifier tells a client how a run gets on. What is told last is always further than
// what was told before, as MCP asks: where only an operation has something to say
// that is by a little.
func (s *Server) notifier(ctx context.Context, session *mcp.ServerSession, token any) func(Progress) {
	const little = 1.0 / 1024
	var mu sync.Mutex
	last := -1.0
	return func(p Progress) {
		mu.Lock()
		defer mu.Unlock()
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
		if err := session.NotifyProgress(ctx, n); err != nil {
			s.log.Debug("progress not sent", "err", err)
		}
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
	"method removed in the new protocol": true, "method invalid during initialization": true,
	"duplicate initialize request": true, "initialized before initialize": true, "duplicate initialized notification": true,
}

func (q quieter) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quieter{q.Handler.WithAttrs(attrs)}
}
func (q quieter) WithGroup(name string) slog.Handler { return quieter{q.Handler.WithGroup(name)} }

// Extra is what a test adds to a server beside what is ours: the fixtures of the
// conformance suite, behind our middleware and transports. Programs leave it nil.
type Extra struct {
	// Options changes what the SDK's server is made with.
	Options func(*mcp.ServerOptions)
	// Add adds to the SDK's server, and names the tools that it added: a call of
	// another is one of ours.
	Add func(*mcp.Server) (tools []string)
}

// extend adds what is extra, if anything is.
func (s *Server) extend() {
	if s.opts.Extra == nil {
		return
	}
	s.extra = map[string]bool{}
	for _, name := range s.opts.Extra.Add(s.mcp) {
		s.extra[name] = true
	}
}

// extras are the tools among these that a test added.
func (s *Server) extras(tools []*mcp.Tool) (more []*mcp.Tool) {
	for _, t := range tools {
		if s.extra[t.Name] {
			more = append(more, t)
		}
	}
	return more
}

// An Observer is told of runs: package telemetry.
type Observer interface {
	// Run is told that a run begins, of a tool's version or, with the name "", of
	// inline code. What the run does is below the context it gives; ended is called
	// once.
	Run(ctx context.Context, id, tool string, version int) (_ context.Context, ended func(steps uint64, f *fault.Fault))
}

// observed tells the observer, if there is one, that a run begins.
func (s *Server) observed(ctx context.Context, r *run.Run, t *task) (context.Context, func(uint64, *fault.Fault)) {
	if s.opts.Observer == nil {
		return ctx, func(uint64, *fault.Fault) {}
	}
	if t.tool == nil {
		return s.opts.Observer.Run(ctx, r.ID(), "", 0)
	}
	return s.opts.Observer.Run(ctx, r.ID(), t.tool.Name, t.tool.Version)
}

// Protocol is the server for transports that make sessions by themselves, as HTTP
// does. [Server.Attend] is to be called while they do.
func (s *Server) Protocol() *mcp.Server { return s.mcp }

// Attend looks for what other servers on the same store change, and tells clients,
// until it is stopped. [Server.Serve] does so by itself. It may be called several
// times.
func (s *Server) Attend(ctx context.Context) (stop func()) { return sync.OnceFunc(s.watch(ctx)) }
