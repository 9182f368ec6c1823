package mcpserver

import "github.com/modelcontextprotocol/go-sdk/mcp"

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
