package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// direct runs an evolved tool that was called by its own name.
func (s *Server) direct(ctx context.Context, c Call) wire.Answer {
	tool, ok := c.Tools.Get(c.Tool)
	if !ok {
		return wire.Failed(noTool(c.Tool, c.Tools))
	}
	if !registry.Listed(c.Tool) {
		f := &fault.Fault{Kind: fault.NoTool, Message: fmt.Sprintf("the tool %q can't be called by its name, which MCP clients don't accept", c.Tool), Hint: "Call it by run."}
		if call := s.suggest(tool, c.Tools).call; call != nil {
			f.Hint = "Call " + string(call) + "."
		}
		return wire.Failed(f)
	}
	t := task{
		tool: tool, as: core.InputData, step: 1, direct: true,
		budgets: s.budgets(),
	}
	return s.queued(ctx, c, &t, func() wire.Answer {
		// With a slot held: the types may have to be found first.
		if f := tool.Unusable(); f != nil {
			return wire.Failed(f)
		}
		if f := s.readInput(&t, tool.Program(), argumentsIn(c.Arguments, tool), c.Tools, true); f != nil {
			s.tell(tool) // what it takes is its writer's words
			return wire.Failed(f)
		}
		return s.perform(ctx, c, t)
	})
}

// argumentsIn is the arguments of a call by name: those in a string, where that holds
// an object with arguments of the tool, since some clients send all of them so.
func argumentsIn(raw json.RawMessage, tool *registry.Tool) json.RawMessage {
	raw = bytes.TrimSpace(raw)
	if string(raw) == "null" {
		return nil
	}
	var text string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &text) != nil {
		return raw
	}
	members, ok := wire.Split(bytes.TrimSpace([]byte(text)))
	if !ok || len(members) == 0 {
		return raw
	}
	params, _ := tool.Report().Arguments()
	for _, m := range members {
		if !slices.ContainsFunc(params, func(p check.Parameter) bool { return p.Name == m.Name }) && !(len(members) == 1 && m.Name == check.Input) {
			return raw
		}
	}
	return json.RawMessage(text)
}
