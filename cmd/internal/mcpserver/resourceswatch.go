package mcpserver

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps/registry"
)

// Clients may watch the addresses of tools and of what is granted. Nothing else
// that has an address changes, but for what tools publish: nobody knows when that
// does.

// publishing is what clients were told of.
type publishing struct {
	mu      sync.Mutex
	as      map[string]string // how tools are published that are
	granted []string          // what is granted, and the secrets there are
	updates map[string]bool   // addresses that clients are still to be told of
	telling bool
}

// subscribe says whether an address can be watched. It must be written as this
// server writes it, so that a client can't watch one thing under many names.
func (s *Server) subscribe(_ context.Context, req *mcp.SubscribeRequest) error {
	uri := req.Params.URI
	a, ok := parseAddress(uri)
	if !ok {
		return notFound(req.ProtocolVersion(), uri)
	}
	switch {
	case uri == capabilitiesURI:
		return nil
	case a.parts[0] == "tools" && len(a.parts) == 2 && len(a.query) == 0:
		if _, ok := s.latest().Get(a.parts[1]); !ok {
			return notFound(req.ProtocolVersion(), uri)
		}
		if want := toolURI(a.parts[1]); uri != want {
			return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "to be watched, this resource is written " + want}
		}
		return nil
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("this resource can't be watched; %s and pif://tools/NAME can", capabilitiesURI)}
}

// capabilitiesURI is the address of what is granted.
const capabilitiesURI = scheme + "capabilities"

// watchPublished begins with what there is.
func (s *Server) watchPublished() {
	s.publish.as, s.publish.updates = map[string]string{}, map[string]bool{}
	for _, t := range s.tools.Snapshot().All() {
		if t.As != registry.AsTool {
			s.publish.as[t.Name] = t.As
		}
	}
	s.publish.granted = s.granted()
}

// granted is what the resource of capabilities depends on.
func (s *Server) granted() []string {
	policy := s.broker.Policy()
	grants, ofServers := grantsOf(policy)
	return slices.Concat(grants, ofServers, policy.SecretTexts())
}

// changedPublished tells clients what else is another when tools are: the lists of
// prompts and of resources, and the resources they watch.
func (s *Server) changedPublished(names []string, tools *registry.Snapshot) {
	uris := make([]string, len(names))
	prompts := false
	s.publish.mu.Lock()
	for i, name := range names {
		uris[i] = toolURI(name)
		as := ""
		if t, ok := tools.Get(name); ok {
			as = t.As
		}
		prompts = prompts || as == registry.AsPrompt || s.publish.as[name] == registry.AsPrompt
		if as == registry.AsTool {
			delete(s.publish.as, name)
		} else {
			s.publish.as[name] = as
		}
	}
	s.publish.mu.Unlock()
	// The SDK tells clients of its own lists; see changed.
	if prompts {
		s.listens.note(promptsChanged)
		s.mcp.AddPrompt(fixedPrompts[0].declare(), s.prompt)
	}
	s.listens.note(resourcesChanged)
	s.mcp.AddResource(fixedResources[1], s.read)
	s.updated(uris...)
}

// changedGrants tells clients if something else is granted now than they were told.
func (s *Server) changedGrants() {
	now := s.granted()
	s.publish.mu.Lock()
	same := slices.Equal(now, s.publish.granted)
	s.publish.granted = now
	s.publish.mu.Unlock()
	if !same {
		s.updated(capabilitiesURI)
	}
}

// updated tells those who watch an address, without waiting for them: one that
// changes often meanwhile is told of once.
func (s *Server) updated(uris ...string) {
	s.listens.note(uris...)
	s.publish.mu.Lock()
	defer s.publish.mu.Unlock()
	for _, uri := range uris {
		s.publish.updates[uri] = true
	}
	if !s.publish.telling && len(s.publish.updates) > 0 {
		s.publish.telling = true
		go s.tellUpdates()
	}
}

// tellUpdates tells until there is nothing more to tell.
func (s *Server) tellUpdates() {
	for {
		s.publish.mu.Lock()
		todo := s.publish.updates
		s.publish.updates = map[string]bool{}
		s.publish.telling = len(todo) > 0
		s.publish.mu.Unlock()
		if len(todo) == 0 {
			return
		}
		for _, uri := range slices.Sorted(maps.Keys(todo)) {
			if err := s.mcp.ResourceUpdated(context.Background(), &mcp.ResourceUpdatedNotificationParams{URI: uri}); err != nil {
				s.log.Debug("an update not sent", "uri", uri, "err", err)
			}
		}
	}
}
