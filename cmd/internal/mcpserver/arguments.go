package mcpserver

import (
	"encoding/json"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// inputSchema reads the schema that evolve is to declare of the tool's arguments;
// nil: none.
func readInputSchema(a *wire.Arguments) (json.RawMessage, *fault.Fault) {
	raw, ok := a.Raw("input_schema")
	if !ok {
		return nil, nil
	}
	inner := wire.Unwrap(raw)
	members, ok := wire.Split(inner)
	switch {
	case len(inner) == 0, string(inner) == "null", ok && len(members) == 0:
		return nil, nil
	case !ok || !json.Valid(inner):
		return nil, a.Wrong("input_schema", "a JSON Schema of an object", raw)
	}
	return inner, nil
}

// withInput adds what was declared of a tool's arguments, where something was.
func withInput(o wire.Object, t *registry.Tool) wire.Object {
	if t.Input == nil {
		return o
	}
	return o.Raw("input_schema", inputSchemaOf(t))
}
