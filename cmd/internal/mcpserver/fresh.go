package mcpserver

import (
	"context"
	"slices"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/registry"
)

// Other servers on the same store change the tools, too. A request sees what was
// changed before it was read; a client that asks for nothing is told soon.

// glance is how often a server with a session looks for changes of others.
const glance = 200 * time.Millisecond

// latest is the tools with what other servers changed until now. Where that can't
// be read they are as this server last saw them.
func (s *Server) latest() *registry.Snapshot {
	if _, err := s.tools.Refresh(); err != nil {
		if last := s.complained.Load(); last == nil || *last != err.Error() {
			words := err.Error()
			s.complained.Store(&words)
			s.log.Error("what other servers changed can't be read", "error", err)
		}
	} else if s.complained.Load() != nil {
		s.complained.Store(nil)
	}
	return s.tools.Snapshot()
}

// watch looks for changes while a session is open. One session looks for all.
func (s *Server) watch(ctx context.Context) (stop func()) {
	s.sessions.Lock()
	defer s.sessions.Unlock()
	if s.open++; s.open == 1 {
		var watching context.Context
		watching, s.unwatch = context.WithCancel(context.WithoutCancel(ctx))
		go func() {
			tick := time.NewTicker(glance)
			defer tick.Stop()
			for {
				select {
				case <-watching.Done():
					return
				case <-tick.C:
					s.latest()
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
	tools := s.tools.Snapshot()
	for _, name := range names {
		if t, ok := tools.Get(name); ok {
			s.broker.Prepare(t.Held)
		} else {
			s.withdraw(name)
		}
	}
	// The SDK tells clients when one of its own tools changes, each in the way of
	// its protocol, and several changes at once.
	if !s.opts.HideEvolved && slices.ContainsFunc(names, registry.Listed) {
		s.listens.note(toolsChanged)
		s.addCallTool()
	}
	s.changedPublished(names, tools)
}
