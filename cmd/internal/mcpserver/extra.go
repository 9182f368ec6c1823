package mcpserver

import (
	"context"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

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
