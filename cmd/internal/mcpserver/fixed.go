package mcpserver

import (
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
)

// shown is an evolved tool as clients see it.
func (s *Server) shown(t *registry.Tool) *mcp.Tool {
	flags := caps.Annotations(t.Reach())
	if t.Late() {
		flags = caps.Worst(flags, wire.Worst(s.broker.Policy()))
	}
	annotations := wire.Annotated(flags)
	return &mcp.Tool{
		Name:         t.Name,
		Title:        titled(t.Name),
		Description:  s.words(t.Description, t.MadeUnder),
		InputSchema:  s.shape(inputSchemaOf(t), t.MadeUnder),
		OutputSchema: s.shape(outputSchemaOf(t), t.MadeUnder),
		Annotations:  &annotations,
	}
}
