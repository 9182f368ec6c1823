package mcpserver

import (
	"context"
	"fmt"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// afterImport is what is to be done about an example of a document that differs.
const afterImport = "Correct the document: the tool's code, or the example, or take the example out; nothing was imported."

// Import makes the tools of a document, as [registry.Registry.Import] does, where the
// examples of each hold: they are run as evolve runs them, without authority, before
// anything is changed, and the first that differs keeps out the whole document.
func (s *Server) Import(ctx context.Context, tools []registry.Portable) (added, replaced, same int, err error) {
	for i := range tools {
		for k := range tools[i].Examples {
			at := fault.Pointer("").Key("examples").Index(k)
			if _, f := readExample(wire.Encode(tools[i].Examples[k]), at); f != nil {
				f.In = "document"
				return 0, 0, 0, fmt.Errorf("tool %q: %w", tools[i].Name, f)
			}
		}
	}
	return s.tools.ImportChecked(tools, func(candidate *registry.Tool, sees *registry.Snapshot) *fault.Fault {
		t := s.newTrial(candidate, sees, candidate.Examples)
		t.imported = true
		_, f := t.all(ctx)
		return f
	})
}

// held is what a tool holds that calls others in an example. Of one in a document, for
// which it may be that nothing is granted, it is the calls that it declared: nothing
// else of it takes part.
func (t *trial) held(tool *registry.Tool) []*caps.Held {
	if !t.imported || tool.State == registry.StateReady {
		return tool.Held
	}
	var calls []*caps.Held
	for _, text := range tool.Declared {
		if c, err := caps.Parse(text, t.server.broker.Policy().Kinds()); err == nil && c.Kind == caps.CallKind {
			calls = append(calls, &caps.Held{Capability: c})
		}
	}
	return calls
}
