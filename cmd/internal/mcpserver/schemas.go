package mcpserver

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/core/check"
)

// inputSchemaOf is the JSON Schema of the arguments of an evolved tool.
func inputSchemaOf(t *registry.Tool) json.RawMessage { return t.InputSchema() }

// outputSchemaOf is the JSON Schema of what a call of an evolved tool by its name
// has as structured content. Nothing in it is required: a result that is too
// large, or that readers of JSON don't take, is there in another way, and clients
// may hold failures to it, too.
func outputSchemaOf(t *registry.Tool) json.RawMessage {
	return slices.Concat([]byte(evolvedOutput), t.OutputSchema(), []byte(evolvedRest))
}

const (
	evolvedOutput = `{"type":"object","properties":{"result":`
	evolvedRest   = `,"type":{"type":"string"},"steps":{"type":"integer"},"notes":{"type":"array","items":{"type":"string"}},` +
		`"next":{"type":"object"},"text":{"type":"string"},"preview":{"type":"string"},"uri":{"type":"string"},"error":{"type":"object"}}}`
)

// mostShapes is how many output schemas are remembered as they were read.
const mostShapes = 1000

// A readShapes is output schemas that were read, by their JSON.
type readShapes struct {
	mu  sync.Mutex
	all map[string]*check.Shape
}

var shapes readShapes

// hold reports whether a tool's output schema lets a result through. What a program
// gives for an input outside of its type may be anything, and a client that holds
// results against schemas would keep it from whoever asked.
func (s *readShapes) hold(t *registry.Tool, result json.RawMessage) bool {
	schema := t.OutputSchema()
	s.mu.Lock()
	shape, ok := s.all[string(schema)]
	s.mu.Unlock()
	if !ok {
		var err error
		if shape, err = check.ParseShape(schema); err != nil {
			return true
		}
		s.mu.Lock()
		if s.all == nil || len(s.all) >= mostShapes {
			s.all = map[string]*check.Shape{}
		}
		s.all[string(schema)] = shape
		s.mu.Unlock()
	}
	return shape.Holds(result)
}
