// Package mcpserver is MCP over the language: the eight fixed tools, and every
// evolved one as a tool of its own, with the prompts and resources there are besides.
//
// What a call does is package engine's, which knows no protocol; here is what clients
// see of it, and in which order their requests are taken. An error of the protocol is
// left to the transport and to the SDK, for requests that are malformed: a call that
// can't be done is an answer.
//
// Begin with [New] and [Server.Serve]; middleware.go is the way of a request from the
// SDK, arrival.go what it is stamped with before, converse.go and taskmethods.go how a
// call is answered with a question or a task. listing.go, resources.go, prompts.go and
// completion.go are what there is to read, listens.go tells who watches it.
package mcpserver

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/engine"
)

// New makes a server. It doesn't serve until [Server.Serve] is called;
// [engine.Engine.Call] works at once. What a test adds is extra.
func New(opts Options, extra ...*Extra) *Server {
	e := engine.New(opts)
	s := &Server{Engine: e, opts: opts, limits: e.Limits(), tools: e.Registry(), broker: e.Broker(), log: e.Log(), started: time.Now()}
	sdk := &mcp.ServerOptions{
		Logger: slog.New(quieter{s.log.Handler()}),
		Capabilities: &mcp.ServerCapabilities{
			Tools:      &mcp.ToolCapabilities{ListChanged: true},
			Prompts:    &mcp.PromptCapabilities{ListChanged: true},
			Resources:  &mcp.ResourceCapabilities{ListChanged: true, Subscribe: true},
			Extensions: map[string]any{tasksExtension: map[string]any{}},
		},
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) {
			c.CacheScope = cmp.Or(c.CacheScope, "private")
		},
		CompletionHandler:  s.complete,
		SubscribeHandler:   s.subscribe,
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	}
	for _, x := range extra {
		x.Options(sdk)
	}
	s.mcp = mcp.NewServer(&mcp.Implementation{Name: cmp.Or(opts.Name, "mcp-pif"), Title: cmp.Or(opts.Name, "PIF"), Version: opts.Version}, sdk)
	s.mcp.AddReceivingMiddleware(s.recoverPanics, s.route)
	s.mcp.AddSendingMiddleware(s.telling)
	s.addTaskMethods()
	s.addHandlers()
	for _, x := range extra {
		s.extra = map[string]bool{}
		for _, name := range x.Add(s.mcp) {
			s.extra[name] = true
		}
	}
	s.watchPublished()
	s.tools.OnChange(s.changed)
	return s
}

// Serve answers the requests of one session until it ends. The error is nil
// when the client ended it.
func (s *Server) Serve(ctx context.Context, t mcp.Transport) error {
	defer s.hangUp()
	ctx = context.WithValue(ctx, sinceKey{}, s.listens.noted())
	defer s.watch(ctx)()
	return s.mcp.Run(ctx, arriving{t, s})
}

// hangUp ends the calls that wait, when the last session is over.
func (s *Server) hangUp() {
	s.sessions.Lock()
	open := s.open
	s.sessions.Unlock()
	if open == 0 {
		s.EndWaiting()
	}
}

// Busy reports whether a task is under way which needs the server, or a call that waits for a person's answer.
func (s *Server) Busy() bool { return s.talks.Parked() || s.Engine.Busy() }

// EndWaiting ends the calls that wait for a person, and returns when they have
// ended.
func (s *Server) EndWaiting() {
	s.talks.End()
}

// Protocol is the server for transports that make sessions by themselves, as HTTP
// does. [Server.Attend] is to be called while they do.
func (s *Server) Protocol() *mcp.Server { return s.mcp }

// Attend looks for what other servers on the same store change, and tells clients,
// until it is stopped. [Server.Serve] does so by itself. It may be called several
// times.
func (s *Server) Attend(ctx context.Context) (stop func()) { return sync.OnceFunc(s.watch(ctx)) }

// watch looks for changes while a session is open. One session looks for all.
func (s *Server) watch(ctx context.Context) (stop func()) {
	s.sessions.Lock()
	defer s.sessions.Unlock()
	if s.open++; s.open == 1 {
		var watching context.Context
		watching, s.unwatch = context.WithCancel(context.WithoutCancel(ctx))
		go func() {
			tick := time.NewTicker(engine.Glance)
			defer tick.Stop()
			for {
				select {
				case <-watching.Done():
					return
				case <-tick.C:
					s.Latest()
					s.changedGrants()
				}
			}
		}()
	}
	return func() {
		s.sessions.Lock()
		defer s.sessions.Unlock()
		if s.open--; s.open == 0 {
			s.unwatch()
		}
	}
}

// changed is told which tools are others now, whoever changed them.
func (s *Server) changed(names []string) {
	// The SDK tells clients when one of its own tools changes, each in the way of
	// its protocol, and several changes at once.
	if !s.opts.HideEvolved && slices.ContainsFunc(names, registry.Listed) {
		s.listens.note(toolsChanged)
		s.addCallTool()
	}
	s.changedPublished(names, s.tools.Snapshot())
}
