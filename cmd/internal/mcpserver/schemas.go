package mcpserver

import (
	"bytes"
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

// bareInteger reports whether a result is an integer and nothing else. It stays
// the number that it is, however many digits it has: its reader asked for it.
func bareInteger(src []byte) bool {
	src = bytes.TrimPrefix(src, []byte("-"))
	return len(src) > 0 && len(bytes.Trim(src, "0123456789")) == 0
}

const (
	evolvedOutput = `{"type":"object","properties":{"result":`
	evolvedRest   = `,"type":{"type":"string"},"steps":{"type":"integer"},"notes":{"type":"array","items":{"type":"string"}},` +
		`"next":{"type":"object"},"text":{"type":"string"},"preview":{"type":"string"},"uri":{"type":"string"},"error":{"type":"object"}}}`
)

// longestNumber is how many digits a number has, before its point, that readers of JSON
// take which have doubles for numbers: others read an infinity, which no schema lets
// through, or nothing.
const longestNumber = 308

// longest is from how many digits on results have an integer as {"int":"…"}.
const longest = 4096

// longNumber reports whether JSON has a number of more digits, or an integer that is
// written {"int":"…"}.
func longNumber(src []byte) bool {
	for i := 0; i < len(src); i++ {
		switch c := src[i]; {
		case c == '"':
			from := i
			for i++; i < len(src) && src[i] != '"'; i++ {
				if src[i] == '\\' {
					i++
				}
			}
			if i-from > longest && bytes.HasSuffix(src[:from], []byte(`{"int":`)) {
				return true
			}
		case c >= '0' && c <= '9':
			from := i
			for i++; i < len(src) && src[i] >= '0' && src[i] <= '9'; i++ {
			}
			if i-from > longestNumber {
				return true
			}
			if i < len(src) && src[i] == '.' { // digits behind it make it no larger
				for i++; i < len(src) && src[i] >= '0' && src[i] <= '9'; i++ {
				}
			}
			i--
		}
	}
	return false
}

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
