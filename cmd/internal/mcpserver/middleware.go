package mcpserver

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps/run"
)

// recovering answers a panic anywhere below it, so that no request ends the
// server. It is the outermost middleware.
func (s *Server) recovering(next mcp.MethodHandler) mcp.MethodHandler {
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

// calledKey is the context's key for the name that a client called.
type calledKey struct{}

// dispatching takes calls of tools before the SDK looks them up, because a tool
// can be called that no list shows, and because a call sees the tools there
// were when it arrived. The SDK must still handle the call, since only it can
// say in the newer protocol that the result is complete: to it every call is
// one of run.
func (s *Server) dispatching(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if call, ok := req.(*mcp.CallToolRequest); ok && call.Params != nil && !s.extra[call.Params.Name] {
			ctx = context.WithValue(ctx, calledKey{}, call.Params.Name)
			params := *call.Params
			params.Name = "run"
			req = &mcp.CallToolRequest{Session: call.Session, Params: &params, Extra: call.Extra}
			var task mcp.Result
			ctx = context.WithValue(ctx, promotedKey{}, &task)
			if res, err := next(ctx, method, req); err != nil || task == nil {
				return res, err
			}
			return task, nil
		}
		return next(ctx, method, req)
	}
}

// metaHops is the member of a call's _meta by which a row of these servers, each the client
// of the next, knows how long it is.
const metaHops = "mcp-pif-hops"

// handle is a call of a tool as MCP has it.
func (s *Server) handle(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	name, _ := ctx.Value(calledKey{}).(string)
	c := Call{Tool: name, Arguments: req.Params.Arguments}
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
